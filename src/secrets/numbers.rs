//! Secrets within the numbers of a JSON text: the mark replaces the whole number as a string, so that the text stays JSON.

use std::ops::Range;

/// The number of bytes before and after a place that are searched for the rest of its number.
const MAX_NUMBER_BYTES: usize = 400;

/// The quotation marks around a mark that replaces a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// The number is a value of the text.
    Plain,
    /// The number is a value of JSON inside a string of the text.
    Escaped,
}

impl Quote {
    /// Returns the quotation mark.
    pub fn text(self) -> &'static str {
        match self {
            Quote::Plain => "\"",
            Quote::Escaped => "\\\"",
        }
    }
}

/// Finds the numbers of a JSON text around places that come in order. It reads the text once.
pub struct NumbersIn<'a> {
    text: &'a [u8],
    is_json: bool,
    /// The position up to which `inside` and `escaped` hold.
    read: usize,
    inside: bool,
    escaped: bool,
}

impl<'a> NumbersIn<'a> {
    /// Begins to read a text. A text that is no JSON object or list has no numbers.
    pub fn new(text: &'a [u8]) -> Self {
        let begins = text.iter().find(|byte| !byte.is_ascii_whitespace());
        Self { text, is_json: matches!(begins, Some(b'{' | b'[')), read: 0, inside: false, escaped: false }
    }

    /// Returns the place of the number that contains a place, and how a string is written there. Returns `None` if the
    /// place is not within a number.
    pub fn around(&mut self, place: &Range<usize>) -> Option<(Range<usize>, Quote)> {
        if !self.is_json {
            return None;
        }
        let is_part = |byte: &&u8| byte.is_ascii_digit() || b"+-.eE".contains(*byte);
        let (before, after) = (self.text.get(self.read..place.start)?, self.text.get(place.end..)?);
        let start = place.start - before.iter().rev().take(MAX_NUMBER_BYTES).take_while(is_part).count();
        let end = place.end + after.iter().take(MAX_NUMBER_BYTES).take_while(is_part).count();
        let number = std::str::from_utf8(self.text.get(start..end)?).ok()?;
        serde_json::from_str::<serde_json::Number>(number).ok()?;
        let inside = self.read_to(start);
        let before = self.text.get(..start)?.trim_ascii_end();
        let after = self.text.get(end..)?.trim_ascii_start();
        if !inside {
            let is_value = before.ends_with(b":") || before.ends_with(b",") || before.ends_with(b"[");
            return is_value.then_some((start..end, Quote::Plain));
        }
        let is_member = before.strip_suffix(b":").is_some_and(|key| key.trim_ascii_end().ends_with(b"\\\""));
        let is_whole = after.starts_with(b",") || after.starts_with(b"}");
        (is_member && is_whole).then_some((start..end, Quote::Escaped))
    }

    /// Reads the text up to a position. Returns true if the position is within a string.
    fn read_to(&mut self, position: usize) -> bool {
        for byte in self.text.get(self.read..position).unwrap_or_default() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.inside => self.escaped = true,
                b'"' => self.inside = !self.inside,
                _ => {}
            }
        }
        self.read = self.read.max(position);
        self.inside
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
mod tests {
    use crate::secrets::Masker;

    #[test]
    fn a_number_with_a_secret_becomes_a_string_and_the_text_stays_json() {
        let masker = Masker::of([("PIN", "12345678")]);
        for (text, masked) in [
            (r#"{"a": 12345678}"#, r#"{"a": "[redacted:PIN]"}"#),
            (r#"{"a":[1,-12345678.5e3 ,2]}"#, r#"{"a":[1,"[redacted:PIN]" ,2]}"#),
            (r#"{"a":9123456780,"b":"x"}"#, r#"{"a":"[redacted:PIN]","b":"x"}"#),
            (r#"{"a":12345678,"b":12345678}"#, r#"{"a":"[redacted:PIN]","b":"[redacted:PIN]"}"#),
            (r#"{"a":1234567812345678}"#, r#"{"a":"[redacted:PIN]"}"#),
            (r#"{"a":"b: 12345678, c"}"#, r#"{"a":"b: [redacted:PIN], c"}"#),
            (r#"{"a":"{\"b\": 12345678}"}"#, r#"{"a":"{\"b\": \"[redacted:PIN]\"}"}"#),
            ("pin: 12345678", "pin: [redacted:PIN]"),
        ] {
            assert_eq!(masker.mask(text), masked);
            assert!(!text.starts_with('{') || serde_json::from_str::<serde_json::Value>(masked).is_ok(), "{masked}");
        }
    }

    #[test]
    fn secrets_side_by_side_are_masked_each_once() {
        let masker = Masker::of([("NAMED", "abc:12345678"), ("PIN", "87654321"), ("LONG", "24682468xyz")]);
        for (text, masked) in [
            ("{abc:1234567887654321 x", "{[redacted:NAMED][redacted:PIN] x"),
            ("{abc:123456781 x", "{[redacted:NAMED]1 x"),
            (r#"{"a":8765432187654321}"#, r#"{"a":"[redacted:PIN]"}"#),
            (r#"{"a":8765432124682468xyz}"#, r#"{"a":"[redacted:PIN]"[redacted:LONG]}"#),
        ] {
            assert_eq!(masker.mask(text), masked);
        }
    }
}
