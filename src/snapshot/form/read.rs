//! Reads the text form of a snapshot, or reports the invalid line and how to fix it.

use super::VERSION;
use crate::snapshot::set::{Accepted, AcceptedShape, Several};
use crate::snapshot::settings::SnapshotText;
use crate::snapshot::{Body, Call, Item, Range, Shape, value};
use crate::text::first_chars;
use crate::trace::ToolKind;

/// The reason why a text is not a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FormError {
    /// A line is invalid.
    #[error("line {line}: {message}; correct the line, or accept the snapshot again with `evals snapshot accept`")]
    Line {
        /// The line's number, from 1.
        line: usize,
        message: String,
    },
    /// The snapshot has a newer version of the form.
    #[error("it has version {0}, this program reads up to {VERSION}; use a newer evals")]
    Newer(u32),
}

/// The words of version 1 that stood for values without a number, or that meant more than now.
const OLD_WORDS: [&str; 14] = [
    "{uuid}",
    "{hash}",
    "{id}",
    "{time}",
    "{date}",
    "{port}",
    "{pid}",
    "{made}",
    "{tmp}",
    "{home}",
    "{user-home}",
    "{other-trial}",
    "{duration}",
    "{version}",
];

/// A line without its indentation.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    number: usize,
    depth: usize,
    text: &'a str,
}

/// Reads the whole file.
///
/// # Errors
/// Returns an error if a line does not have the form of a snapshot.
pub fn read(text: &str) -> Result<Accepted, FormError> {
    let mut lines = Vec::with_capacity(memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1);
    for (n, raw) in text.split('\n').enumerate() {
        let raw = raw.strip_suffix('\r').unwrap_or(raw);
        let inner = raw.trim_start_matches(' ');
        if inner.is_empty() || raw.starts_with('#') {
            continue;
        }
        let (number, blanks) = (n + 1, raw.len() - inner.len());
        if blanks % 2 == 1 {
            return wrong(number, "is indented by an odd number of spaces; each level has two");
        }
        lines.push(Line { number, depth: blanks / 2, text: inner });
    }
    let mut reading = Reading { lines, next: 0 };
    let mut accepted = reading.head()?;
    accepted.outdated &= OLD_WORDS.iter().any(|word| text.contains(word));
    match reading.peek() {
        Some(line) => wrong(line.number, format!("`{}` does not belong to any line above it", short(line.text))),
        None => Ok(accepted),
    }
}

fn wrong<T>(line: usize, message: impl Into<String>) -> Result<T, FormError> {
    Err(FormError::Line { line, message: message.into() })
}

fn short(text: &str) -> &str {
    first_chars(text, 60)
}

struct Reading<'a> {
    lines: Vec<Line<'a>>,
    next: usize,
}

impl<'a> Reading<'a> {
    fn peek(&self) -> Option<Line<'a>> {
        self.lines.get(self.next).copied()
    }

    /// Returns the next line, if it is at this depth.
    fn at(&mut self, depth: usize) -> Option<Line<'a>> {
        let line = self.peek().filter(|line| line.depth == depth)?;
        self.next += 1;
        Some(line)
    }

    /// Returns the number of the next lines at this depth, up to a line that is less deep. A long session has many short
    /// lists, so their memory is measured.
    fn count(&self, depth: usize) -> usize {
        let rest = self.lines.get(self.next..).unwrap_or_default();
        rest.iter().take_while(|line| line.depth >= depth).filter(|line| line.depth == depth).count()
    }

    fn head(&mut self) -> Result<Accepted, FormError> {
        let mut accepted = Accepted::default();
        let mut version = None;
        let (mut shapes, mut last) = (Vec::new(), 1);
        while let Some(line) = self.at(0) {
            last = line.number;
            let (key, text) = self.entry(line)?;
            let one = || value::from_one_line(&text);
            match key {
                "evals-snapshot" => match text.parse::<u32>() {
                    Ok(number) if number > VERSION => return Err(FormError::Newer(number)),
                    Ok(number) => {
                        version = Some(number);
                        accepted.outdated = number < VERSION;
                    }
                    Err(_) => return wrong(line.number, format!("`{text}` is not a version")),
                },
                _ if version.is_none() => {
                    return wrong(line.number, format!("a snapshot begins with `evals-snapshot: {VERSION}`"));
                }
                "case" => accepted.id.case = one(),
                "harness" => accepted.id.harness = one(),
                "model" => accepted.id.model = Some(one()),
                "variant" => accepted.id.variant = Some(one()),
                "text" => {
                    let known = [SnapshotText::None, SnapshotText::Full, SnapshotText::Digest];
                    match known.into_iter().find(|it| super::text_word(*it) == text) {
                        Some(known) => accepted.text = known,
                        None => return wrong(line.number, format!("`{text}` is not `none`, `full` or `digest`")),
                    }
                }
                "several" if text == "core" => accepted.several = Several::Core,
                "several" if text == "set" => {}
                "shape" => {
                    let counts = text.strip_suffix(" trials").and_then(|text| text.split_once(" of "));
                    let counts = counts.and_then(|(seen, of)| Some((seen.parse().ok()?, of.parse().ok()?)));
                    let Some((seen, of)) = counts else {
                        return wrong(line.number, format!("`{}` is not `shape: N of M trials`", short(line.text)));
                    };
                    shapes.push(AcceptedShape { shape: self.shape()?, seen, of });
                }
                other => return wrong(line.number, format!("`{}` is not a key of a snapshot", short(other))),
            }
        }
        if version.is_none() {
            return wrong(last, format!("a snapshot begins with `evals-snapshot: {VERSION}`"));
        }
        if shapes.is_empty() {
            return wrong(last, "the shape is missing");
        }
        accepted.shapes = shapes;
        Ok(accepted)
    }

    fn shape(&mut self) -> Result<Shape, FormError> {
        let mut shape = Shape { items: self.items(1)?, ..Shape::default() };
        while let Some(line) = self.at(1) {
            let (key, text) = self.entry(line)?;
            let range = match text.split_once("..") {
                Some((least, most)) => least.parse().ok().zip(most.parse().ok()),
                None => text.parse().ok().map(|figure| (figure, figure)),
            };
            let range = range.map(|(least, most)| Range { least, most });
            match (key, range) {
                ("tokens", Some(range)) => shape.tokens = Some(range),
                ("output-tokens", Some(range)) => shape.output_tokens = Some(range),
                _ => return wrong(line.number, format!("`{}` is not allowed here in a shape", short(line.text))),
            }
        }
        Ok(shape)
    }

    /// Reads the items at a depth, up to the first line that is not an item.
    fn items(&mut self, depth: usize) -> Result<Vec<Item>, FormError> {
        let mut items = Vec::new();
        while let Some(line) = self.peek().filter(|line| line.depth == depth) {
            let word = line.text.split(':').next().unwrap_or_default();
            if !["user", "says", "thinks", "plan", "step", "stop"].contains(&word) {
                break;
            }
            self.next += 1;
            let body = match (word, line.text) {
                (_, "user") => Body::User(None),
                (_, "plan") => {
                    let mut lines = Vec::new();
                    while let Some(line) = self.at(depth + 1) {
                        let (status, text) = self.entry(line)?;
                        lines.push((status.to_owned(), text));
                    }
                    Body::Plan(lines)
                }
                (_, "step") => Body::Step(self.calls(depth + 1)?),
                ("user", _) => Body::User(Some(self.entry(line)?.1)),
                ("says", _) => Body::Says(self.entry(line)?.1),
                ("thinks", _) => Body::Thinks(self.entry(line)?.1),
                ("stop", _) => {
                    let text = self.entry(line)?.1;
                    match text.split_once(' ') {
                        Some((reason, detail)) => Body::Stop(reason.to_owned(), Some(detail.to_owned())),
                        None => Body::Stop(text, None),
                    }
                }
                _ => return wrong(line.number, format!("`{}` takes no text", word)),
            };
            items.push(Item { body, events: Vec::new() });
        }
        Ok(items)
    }

    fn calls(&mut self, depth: usize) -> Result<Vec<Call>, FormError> {
        let mut calls = Vec::with_capacity(self.count(depth));
        while let Some(line) = self.at(depth) {
            let (kind, name) = match line.text.split_once(' ') {
                Some((kind, name)) => (kind, Some(value::from_one_line(name))),
                None => (line.text, None),
            };
            let Some(kind) = ToolKind::from_word(kind) else {
                return wrong(line.number, format!("`{}` is not a tool kind", short(kind)));
            };
            let details = Vec::with_capacity(self.count(depth + 1));
            let mut call = Call { kind, name, details, inner: Vec::new(), events: Vec::new() };
            while let Some(line) = self.at(depth + 1) {
                if line.text == "@agent" {
                    call.inner = self.items(depth + 2)?;
                } else {
                    let (key, text) = self.entry(line)?;
                    call.details.push((key.to_owned(), text));
                }
            }
            calls.push(call);
        }
        Ok(calls)
    }

    /// Returns the key of a line and its value, which may be the lines below it.
    fn entry(&mut self, line: Line<'a>) -> Result<(&'a str, String), FormError> {
        let Some((key, rest)) = line.text.split_once(':') else {
            return wrong(line.number, format!("`{}` has no `:`", short(line.text)));
        };
        if let Some(text) = rest.strip_prefix(' ') {
            return Ok((key, text.to_owned()));
        }
        if !rest.is_empty() {
            return wrong(line.number, format!("`{}` has no space after its `:`", short(line.text)));
        }
        let mut parts = Vec::new();
        while let Some(part) = self.peek().filter(|it| it.depth == line.depth + 1 && it.text.starts_with('|')) {
            self.next += 1;
            parts.push(part.text.strip_prefix("| ").unwrap_or_else(|| part.text.trim_start_matches('|')));
        }
        if parts.is_empty() {
            return wrong(line.number, format!("`{}` has no value", short(line.text)));
        }
        Ok((key, parts.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_of_a_snapshot_take_no_more_memory_than_they_need() {
        let mut text = "evals-snapshot: 2\ncase: a\nharness: h\ntext: none\n\nshape: 1 of 1 trials\n".to_owned();
        for calls in [1, 3, 2] {
            text.push_str("  step\n");
            for details in 0..calls {
                text.push_str("    execute Bash\n");
                (0..=details).for_each(|n| text.push_str(&format!("      key-{n}: value\n")));
                text.push_str("      @agent\n        step\n          read Read\n            path: a\n");
            }
        }
        let accepted = read(&text).unwrap();
        let steps = accepted.shapes[0].shape.items.iter().filter_map(|item| match &item.body {
            Body::Step(calls) => Some(calls),
            _ => None,
        });
        let steps: Vec<&Vec<Call>> = steps.collect();
        assert_eq!(steps.iter().map(|calls| calls.len()).collect::<Vec<_>>(), [1, 3, 2]);
        assert!(steps.iter().all(|calls| calls.capacity() == calls.len()));
        // A sub-agent has a line of its own among the details.
        assert!(steps.iter().copied().flatten().all(|call| call.details.capacity() <= call.details.len() + 1));
    }
}
