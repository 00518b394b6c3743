//! Finds the place of a part of an expression in a YAML file, accounting for quotes, escapes, folding and
//! indentation.

use std::ops::Range;
use std::path::Path;

use super::Wrong;
use crate::yaml::{Step, StepPart, YamlError, find};

/// Returns the error of an expression at these steps of a YAML text, with line and column within the file.
pub fn error(path: &Path, text: &str, steps: &[Step<'_>], expression: &str, wrong: &Wrong) -> YamlError {
    let place =
        find(text, steps, StepPart::Value).and_then(|value| within(text, value.start, expression, &wrong.range));
    let error = match place {
        Some(range) => YamlError::at(path, text, Some(range), wrong.message.clone()),
        None => YamlError::at_steps(path, text, steps, StepPart::Value, wrong.message.clone()),
    };
    match &wrong.help {
        Some(help) => error.with_help(help.clone()),
        None => error,
    }
}

/// Returns the range in a YAML text that a range of a value was read from. The value's scalar begins at `start`.
pub fn within(text: &str, start: usize, value: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let raw = text.get(start..)?;
    let style = raw.chars().next()?;
    let mut at = match style {
        '\'' | '"' => 1,
        '|' | '>' => raw.find('\n')? + 1,
        _ => 0,
    };
    let mut first = None;
    let indent = match style {
        '|' | '>' => {
            let line = raw.get(at..)?.lines().find(|line| !line.trim().is_empty())?;
            line.len() - line.trim_start_matches(' ').len()
        }
        _ => usize::MAX,
    };
    let mut decoded = value.char_indices();
    loop {
        let (offset, wanted) = match decoded.next() {
            Some(next) => next,
            None => (value.len(), '\0'),
        };
        // The indentation before a line's text does not belong to the value.
        if offset == 0 && matches!(style, '|' | '>') {
            at += raw.get(at..)?.bytes().take(indent).take_while(|byte| *byte == b' ').count();
        }
        if offset >= range.start && first.is_none() {
            first = Some(start + at);
        }
        if offset >= range.end || offset >= value.len() {
            let first = first?;
            let end = (start + at).max(first);
            return Some(first..if end == first { text.ceil_char_boundary((end + 1).min(text.len())) } else { end });
        }
        at += raw_length(raw.get(at..)?, wanted, style, indent)?;
    }
}

/// Returns the number of bytes of the raw text for one character of the value. A line's end includes the indentation of
/// the next line. In a block, spaces beyond `indent` are text.
fn raw_length(raw: &str, wanted: char, style: char, indent: usize) -> Option<usize> {
    let next = raw.chars().next()?;
    if style == '\'' && wanted == '\'' {
        return raw.starts_with("''").then_some(2);
    }
    if style == '"' && next == '\\' {
        let escape = raw.chars().nth(1)?;
        return Some(match escape {
            'x' => 4,
            'u' => 6,
            'U' => 10,
            other => 1 + other.len_utf8(),
        });
    }
    if matches!(wanted, ' ' | '\n') && raw.trim_start_matches(' ').starts_with(['\n', '\r']) {
        if indent == usize::MAX {
            return Some(raw.len() - raw.trim_start().len());
        }
        let mut end = raw.find('\n')? + 1;
        // A folded block drops one of several line ends.
        while style == '>' && raw.get(end..)?.starts_with('\n') {
            end += 1;
        }
        let spaces = raw.get(end..)?.bytes().take(indent).take_while(|byte| *byte == b' ').count();
        return Some(end + spaces);
    }
    (next == wanted).then(|| next.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_a_text_is_followed() {
        for (text, value) in [
            ("x: a == 'b' && oops", "a == 'b' && oops"),
            ("x: a == 'b'\n  && oops", "a == 'b' && oops"),
            ("x: 'a == ''b'' && oops'", "a == 'b' && oops"),
            ("x: \"a == \\\"b\\\" &&\\toops\"", "a == \"b\" &&\toops"),
            ("x: \"a\n  && oops\"", "a && oops"),
            ("x: |\n  a\n    && oops\n", "a\n  && oops\n"),
            ("x: |-\n\n  a\n\n  && oops", "\na\n\n&& oops"),
            ("x: >-\n  a\n  && oops", "a && oops"),
            ("x: >\n  a\n\n  && oops\n", "a\n&& oops\n"),
            ("x: |\r\n  a\r\n  && oops\r\n", "a\n&& oops\n"),
        ] {
            let read: std::collections::BTreeMap<String, String> = serde_yaml::from_str(text).unwrap();
            assert_eq!(read["x"], value, "{text:?}");
            let at = value.find("oops").unwrap();
            let found = within(text, 3, value, &(at..at + 4)).map(|range| &text[range]);
            assert_eq!(found, Some("oops"), "{text:?}");
            let all = within(text, 3, value, &(0..1)).map(|range| &text[range]);
            assert!(all == Some("a") || value.starts_with('\n'), "{text:?}: {all:?}");
        }
    }
}
