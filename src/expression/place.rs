//! Where in a YAML file a part of an expression stands: quotes, escapes, folded and indented lines undone.

use std::ops::Range;
use std::path::Path;

use super::Wrong;
use crate::yaml::{Part, Step, YamlError, find};

/// The error of an expression that stands at these steps of a YAML text, with line and column within the file.
pub fn error(path: &Path, text: &str, steps: &[Step<'_>], expression: &str, wrong: &Wrong) -> YamlError {
    let place = find(text, steps, Part::Value).and_then(|value| within(text, value.start, expression, &wrong.range));
    let error = match place {
        Some(range) => YamlError::at(path, text, Some(range), wrong.message.clone()),
        None => YamlError::at_steps(path, text, steps, Part::Value, wrong.message.clone()),
    };
    match &wrong.help {
        Some(help) => error.with_help(help.clone()),
        None => error,
    }
}

/// The bytes of the text that hold these bytes of a value, whose scalar begins at `start`.
pub fn within(text: &str, start: usize, value: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let raw = text.get(start..)?;
    let style = raw.chars().next()?;
    let mut at = match style {
        '\'' | '"' => 1,
        '|' | '>' => raw.find('\n')? + 1,
        _ => 0,
    };
    let mut first = None;
    let mut decoded = value.char_indices();
    loop {
        let (offset, wanted) = match decoded.next() {
            Some(next) => next,
            None => (value.len(), '\0'),
        };
        // In front of a line's text stands what indents it, which is no part of the value.
        if offset == 0 && matches!(style, '|' | '>') {
            at += raw.get(at..)?.len() - raw.get(at..)?.trim_start_matches([' ', '\n']).len();
        }
        if offset >= range.start && first.is_none() {
            first = Some(start + at);
        }
        if offset >= range.end || offset >= value.len() {
            let first = first?;
            let end = (start + at).max(first);
            return Some(first..if end == first { text.ceil_char_boundary((end + 1).min(text.len())) } else { end });
        }
        at += raw_length(raw.get(at..)?, wanted, style)?;
    }
}

/// The bytes of the raw text that stand for one character of the value.
fn raw_length(raw: &str, wanted: char, style: char) -> Option<usize> {
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
        return Some(raw.len() - raw.trim_start().len());
    }
    (next == wanted).then(|| next.len_utf8())
}
