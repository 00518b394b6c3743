//! Joins the surrogate pairs of a JSON text: YAML has no such escapes.

use serde::de::IgnoredAny;

/// Returns a JSON text in which each escaped surrogate pair is its character. Returns `None` if the text has no such escapes, or
/// is not JSON: elsewhere, a backslash may be part of a text.
pub(super) fn joined(text: &str) -> Option<String> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return None;
    }
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        joined.push_str(before);
        let length = match pair(escape) {
            Some(character) => {
                joined.push(character);
                12
            }
            None => {
                joined.push_str(escape.get(..2)?);
                2
            }
        };
        rest = escape.get(length..)?;
    }
    joined.push_str(rest);
    Some(joined)
}

/// Returns the character of the surrogate pair with which a text begins.
fn pair(text: &str) -> Option<char> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok()
    };
    char::decode_utf16([unit(0)?, unit(6)?]).next()?.ok().filter(|character| character.len_utf16() == 2)
}
