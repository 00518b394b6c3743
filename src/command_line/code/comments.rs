//! Programs without their comments.

use super::{end_of, is_javascript};
use crate::command_line::python::{end_of_text, is_python};

/// The maximum number of characters of a regular expression.
const MAX_PATTERN_CHARS: usize = 1000;

/// Returns code without its comments. In languages other than Python and JavaScript, those are the lines that begin with `#`.
pub(super) fn without_comments(program: &str, code: &str) -> String {
    match program {
        name if is_python(name) => of_python(code),
        name if is_javascript(name) => of_javascript(code),
        _ => {
            let lines = code.split_inclusive('\n').filter(|line| !line.trim_start().starts_with('#'));
            lines.collect()
        }
    }
}

fn of_python(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        if next == '#' {
            rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
            continue;
        }
        let size = if matches!(next, '"' | '\'') { end_of_text(rest) } else { next.len_utf8() };
        let (part, behind) = rest.split_at_checked(size).unwrap_or((rest, ""));
        kept.push_str(part);
        rest = behind;
    }
    kept
}

fn of_javascript(code: &str) -> String {
    let mut kept = String::with_capacity(code.len());
    let mut has_ends = true;
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        // The sign before `//` in an address is none before a comment.
        if rest.starts_with("//") && !kept.ends_with(':') {
            rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
            continue;
        }
        if let Some(inner) = rest.strip_prefix("/*").filter(|_| has_ends) {
            match inner.split_once("*/") {
                Some((_, behind)) => {
                    kept.push(' ');
                    rest = behind;
                    continue;
                }
                None => has_ends = false,
            }
        }
        let inner = rest.get(next.len_utf8()..).unwrap_or_default();
        let line = || inner.lines().next().unwrap_or_default();
        let end = match next {
            '\\' => inner.chars().next().map(|escaped| escaped.len_utf8() - 1),
            '`' => end_of(inner, next),
            '"' | '\'' => end_of(line(), next),
            '/' if may_begin_expression(&kept) => end_of_regular_expression(line()),
            _ => None,
        };
        let size = next.len_utf8() + end.map_or(0, |end| end + 1);
        let (part, behind) = rest.split_at_checked(size).unwrap_or((rest, ""));
        kept.push_str(part);
        rest = behind;
    }
    kept
}

/// Returns true if an expression of JavaScript may begin behind code. A `/` elsewhere divides.
fn may_begin_expression(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty() || before.ends_with("return") || before.ends_with(|c: char| "(,=:[!&|?{};+-*%~^<>".contains(c))
}

/// Returns the place of the sign that ends a regular expression.
fn end_of_regular_expression(line: &str) -> Option<usize> {
    let (mut is_escaped, mut is_in_class) = (false, false);
    for (at, c) in line.char_indices().take(MAX_PATTERN_CHARS) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            '/' if !is_in_class => return Some(at),
            _ => {}
        }
    }
    None
}
