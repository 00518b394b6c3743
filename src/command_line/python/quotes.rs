//! The texts in quotes of code, and the code without them.

use crate::command_line::code::unescaped;

/// Returns the size of a text in quotes, with its quotes. A text without its last quote ends at the end of the code.
pub(in crate::command_line) fn end_of_text(code: &str) -> usize {
    let quote = code.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let quote = if code.starts_with(&triple) { triple.as_str() } else { quote };
    let mut at = quote.len();
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(quote) {
            return at + quote.len();
        }
        let mut signs = rest.chars();
        let first = signs.next().map_or(1, char::len_utf8);
        let escaped = signs.next().filter(|_| rest.starts_with('\\')).map_or(0, char::len_utf8);
        at += first + escaped;
    }
    code.len()
}

/// Returns code in which the signs of texts and comments are blanks. The places of what remains are the same. Texts that the
/// program may evaluate stay: those with values in braces, and those of `exec` and `eval`.
pub(super) fn without_texts(code: &str) -> String {
    let mut masked = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        let size = match next {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => end_of_text(rest),
            _ => {
                masked.push(next);
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
                continue;
            }
        };
        let (text, behind) = rest.split_at_checked(size).unwrap_or((rest, ""));
        let before = masked.trim_end_matches(['r', 'R', 'b', 'B']);
        let is_evaluated = before.ends_with(['f', 'F']) || before.ends_with("exec(") || before.ends_with("eval(");
        if is_evaluated && next != '#' {
            masked.push_str(text);
        } else {
            masked.extend(text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
        rest = behind;
    }
    masked
}

/// Returns the text in quotes at the beginning of code, whether it is an f-string, and what follows it.
pub(super) fn literal(code: &str) -> Option<(String, bool, &str)> {
    let start = code.find(['"', '\''])?;
    let prefix = code.get(..start)?.to_ascii_lowercase();
    if !matches!(prefix.as_str(), "" | "f" | "r" | "b" | "u" | "rf" | "fr" | "rb" | "br") {
        return None;
    }
    let (text, behind) = code.get(start..)?.split_at_checked(end_of_text(code.get(start..)?))?;
    let size = if text.len() >= 6 && (text.starts_with("\"\"\"") || text.starts_with("'''")) { 3 } else { 1 };
    let inner = text.get(size..text.len().checked_sub(size)?)?;
    Some((unescaped(inner), prefix.contains('f'), behind))
}

#[cfg(test)]
mod tests {
    use super::{end_of_text, literal, without_texts};

    #[test]
    fn texts_and_comments_are_blanks() {
        assert_eq!(without_texts("a('b', f'{c}') # d\n"), "a(   , f'{c}')    \n");
        assert_eq!(without_texts("x = '''a\nb'''\ny"), "x =     \n    \ny");
    }

    #[test]
    fn a_text_ends_at_its_own_quote() {
        assert_eq!(end_of_text(r"'a\'b' c"), 6);
        assert_eq!(end_of_text("'' c"), 2);
        assert_eq!(end_of_text("'ab"), 3);
    }

    #[test]
    fn a_literal_may_have_a_prefix() {
        assert_eq!(literal("rb'a' + c"), Some(("a".to_owned(), false, " + c")));
        assert_eq!(literal("f\"a\""), Some(("a".to_owned(), true, "")));
        assert_eq!(literal("a.b('c')"), None);
    }
}
