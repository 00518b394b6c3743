//! Reads JSON with unpaired surrogates, as JavaScript writes them when a text was cut within a character.

use serde_json::{Error, Value};

/// Parses JSON. If the text is invalid because of unpaired surrogates, each of them is read as U+FFFD.
///
/// # Errors
/// Returns an error if the text is not valid JSON for another reason.
pub(crate) fn parse(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).or_else(|error| match mended(text) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// Returns the text with each unpaired surrogate replaced, or `None` if there is none.
fn mended(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let unit = |at: usize| -> Option<u16> {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
    };
    let (mut out, mut from, mut at) = (String::new(), 0, 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xD800..=0xDBFF) if matches!(unit(at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                out.push_str(&text[from..at]);
                out.push_str("\\ufffd");
                at += 6;
                from = at;
            }
            Some(_) => at += 6,
            // Another escape: the character after the backslash belongs to it.
            None => at += 2,
        }
    }
    (from > 0).then(|| out + &text[from..])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_halves_are_replaced_and_nothing_else() {
        for (text, read) in [
            (r#"{"a":"x \ud83d"}"#, json!({"a": "x \u{fffd}"})),
            (r#"{"a":"\ude00 \ud83d\ude00"}"#, json!({"a": "\u{fffd} 😀"})),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, json!({"a": "\u{fffd}😀"})),
            (r#"{"a":"\\ud83d \n é"}"#, json!({"a": "\\ud83d \n é"})),
        ] {
            assert_eq!(parse(text).unwrap(), read, "{text}");
        }
        assert!(parse(r#"{"a":"\ud83d""#).is_err() && parse("{\\").is_err() && parse("\\").is_err());
    }
}
