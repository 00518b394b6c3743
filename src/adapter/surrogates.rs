//! Reads JSON with unpaired surrogates, as JavaScript writes them when a text was cut within a character, and joins the
//! two halves of such a character if they are in two pieces of one text.

use serde_json::{Error, Value};

/// The code point of the mark of the surrogate 0. The marks of all surrogates are characters of a private plane.
const MARKS: u32 = 0xF_0000 - 0xD800;

/// Parses JSON. If the text is invalid because of unpaired surrogates, each of them is read as U+FFFD.
///
/// # Errors
/// Returns an error if the text is not valid JSON for another reason.
pub(crate) fn parse(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).or_else(|error| match mended(text, |_| char::REPLACEMENT_CHARACTER) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// Parses JSON with a mark in the place of each unpaired surrogate. The JSON may itself contain the characters of a mark, so
/// only a difference from the result of [`parse`] is a mark. Returns `None` if there are no unpaired surrogates.
pub(crate) fn marked(text: &str) -> Option<Value> {
    if !text.contains("\\u") {
        return None;
    }
    let mark = |unit: u16| char::from_u32(MARKS + u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER);
    serde_json::from_str(&mended(text, mark)?).ok()
}

/// The half of a character with which a text has ended so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Cut(Option<u16>);

impl Cut {
    /// Takes the next piece of the text. `marked` is the same piece as [`marked`] reads it. If the piece begins with the
    /// second half of the character, returns the character and the rest of the piece: the character takes the place of the
    /// U+FFFD at the end of the text so far.
    pub(crate) fn take<'a>(&mut self, piece: &'a str, marked: Option<&str>) -> (Option<char>, &'a str) {
        if piece.is_empty() {
            return (None, piece);
        }
        let marked = marked.unwrap_or(piece);
        let first = half(piece.chars().next(), marked.chars().next());
        let last = half(piece.chars().next_back(), marked.chars().next_back());
        let before = std::mem::replace(&mut self.0, last);
        let whole = before.zip(first).and_then(|(before, first)| char::decode_utf16([before, first]).next()?.ok());
        match whole {
            Some(whole) => (Some(whole), &piece[char::REPLACEMENT_CHARACTER.len_utf8()..]),
            None => (None, piece),
        }
    }

    /// Takes the next piece of a text that is kept here, and adds it.
    pub(crate) fn push(&mut self, text: &mut String, piece: &str, marked: Option<&str>) {
        let (whole, rest) = self.take(piece, marked);
        if let Some(whole) = whole
            && text.ends_with(char::REPLACEMENT_CHARACTER)
        {
            text.pop();
            text.push(whole);
        }
        text.push_str(rest);
    }

    /// Returns true if the text has ended with half of a character.
    pub(crate) fn is_open(self) -> bool {
        self.0.is_some()
    }
}

/// Returns the unpaired surrogate that was read as a character, by the two readings of the character.
fn half(read: Option<char>, marked: Option<char>) -> Option<u16> {
    let mark = marked.filter(|_| marked != read)?;
    u32::from(mark).checked_sub(MARKS).and_then(|unit| u16::try_from(unit).ok())
}

/// Returns the text with each unpaired surrogate replaced, or `None` if there is none.
fn mended(text: &str, with: impl Fn(u16) -> char) -> Option<String> {
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
            Some(half @ 0xD800..=0xDFFF) => {
                out.push_str(&text[from..at]);
                out.push(with(half));
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

    #[test]
    fn the_halves_of_a_character_in_two_pieces_are_joined() {
        let joined = |pieces: &[&str]| {
            let (mut cut, mut text) = (Cut::default(), String::new());
            for piece in pieces {
                let line = format!("\"{piece}\"");
                let (read, marked) = (parse(&line).unwrap(), marked(&line));
                let marked = marked.as_ref().and_then(Value::as_str);
                cut.push(&mut text, read.as_str().unwrap(), marked);
            }
            text
        };
        for (pieces, text) in [
            (&[r"a \ud83d", r"\ude00 b"][..], "a 😀 b"),
            (&[r"\ud83d", "", r"\ude00"], "😀"),
            (&[r"\ud83d", r"\ude00\ud83d", r"\uDE01"], "😀😁"),
            (&[r"a \ud83d", "b", r"\ude00"], "a \u{fffd}b\u{fffd}"),
            (&[r"a \ud83d", r"\ud83d\ude00"], "a \u{fffd}😀"),
            (&[r"\ude00", r"\ud83d"], "\u{fffd}\u{fffd}"),
            // Characters that are equal to the marks, or to what an unpaired surrogate is read as, are text.
            (&["a \u{f003d}", "\u{f0600}"], "a \u{f003d}\u{f0600}"),
            (&["a \u{fffd}", r"\ude00"], "a \u{fffd}\u{fffd}"),
        ] {
            assert_eq!(joined(pieces), text, "{pieces:?}");
        }
    }
}
