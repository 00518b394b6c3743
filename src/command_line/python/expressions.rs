//! The syntax of expressions: their ends and their parts.

use super::quotes::end_of_text;
use crate::command_line::tokens;

/// Returns the end of an expression: one of the signs outside of brackets and texts, or a bracket that closes what was opened
/// before.
pub(super) fn end_of_expression(code: &str, ends: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(next) = code.get(at..).and_then(|rest| rest.chars().next()) {
        match next {
            '"' | '\'' => {
                at += end_of_text(code.get(at..).unwrap_or_default());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            end if depth == 0 && ends.contains(&end) => return at,
            _ => {}
        }
        at += next.len_utf8();
    }
    code.len()
}

/// Splits an expression at a sign outside of brackets and texts.
pub(super) fn split(code: &str, sign: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = code;
    loop {
        let end = end_of_expression(rest, &[sign]);
        let (part, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        parts.push(part);
        let Some(behind) = behind.strip_prefix(sign) else { return parts };
        rest = behind;
    }
}

/// Returns the elements of a list or a tuple that is the whole expression.
pub(super) fn elements_of(expression: &str) -> Option<&str> {
    let elements = expression.strip_prefix(['[', '('])?;
    let elements = elements.get(..elements.len().checked_sub(1)?)?;
    (end_of_expression(elements, &[]) == elements.len()).then_some(elements)
}

/// Returns a part of a list or a tuple.
pub(super) fn part_of(expression: &str, index: usize) -> Option<&str> {
    let parts = split(elements_of(expression)?, ',');
    let is_whole = parts.iter().all(|part| !part.trim_start().starts_with('*'));
    parts.get(index).copied().filter(|_| is_whole)
}

/// Returns the two values of `A if C else B`.
pub(super) fn alternatives(expression: &str) -> Option<(&str, &str)> {
    let (mut at, mut first) = (0, None);
    for part in split(expression, ' ') {
        match (part, first) {
            ("if", None) => first = expression.get(..at),
            ("else", Some(first)) => return Some((first, expression.get(at + part.len()..)?)),
            _ => {}
        }
        at += part.len() + 1;
    }
    None
}

/// Returns true if a text is the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    tokens::is_name(text) && !matches!(text, "None" | "True" | "False")
}

/// Returns true if a character can be a part of a name.
pub(super) fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::{alternatives, elements_of, end_of_expression, is_name, part_of, split};

    #[test]
    fn brackets_and_texts_are_not_split() {
        assert_eq!(split("a, f(b, c), 'd, e'", ','), ["a", " f(b, c)", " 'd, e'"]);
        assert_eq!(end_of_expression("a[1] + b) c", &[]), 8);
        assert_eq!(end_of_expression("a(b, c), d", &[',']), 7);
    }

    #[test]
    fn the_elements_are_those_of_the_whole_expression() {
        assert_eq!(elements_of("[a, b]"), Some("a, b"));
        assert_eq!(elements_of("[a] + [b]"), None);
        assert_eq!(part_of("('a', 'b')", 1), Some(" 'b'"));
        assert_eq!(part_of("[*a, b]", 1), None);
    }

    #[test]
    fn alternatives_are_outside_of_brackets() {
        assert_eq!(alternatives("a if b else c"), Some(("a ", " c")));
        assert_eq!(alternatives("f(a if b else c)"), None);
    }

    #[test]
    fn a_constant_is_no_name() {
        assert!(is_name("a_1"));
        assert!(!is_name("None"));
    }
}
