//! Facts about a text from one cheap pass, which exclude patterns that cannot match in it.
//!
//! Patterns with word boundaries are slow in texts with characters beyond ASCII, and most outputs hold no value of most
//! forms. A fact never excludes a match: the tests of the patterns compare both.

use super::words::may_be_random;

/// Facts about a text.
#[derive(Debug, Clone, Copy)]
pub struct Signs<'t> {
    text: &'t str,
    /// The length of the longest run of ASCII digits.
    pub figures: usize,
    /// The length of the longest run of lower-case hexadecimal digits.
    pub hex: usize,
    /// True if the text may contain an id under a key.
    pub id: bool,
}

/// The maximum length in bytes of an id under a key. A longer one is cut, so that its parts are others.
const MAX_ID_BYTES: usize = 64;

impl<'t> Signs<'t> {
    /// Looks at a text.
    pub fn of(text: &'t str) -> Self {
        let mut signs = Self { text, figures: 0, hex: 0, id: false };
        // The starts of the current runs: digits, hexadecimal digits, letters with digits, and what an id may hold.
        let (mut figures, mut hex, mut part, mut id) = (0, 0, 0, 0);
        // A byte that is in no run ends the last ones.
        for (at, byte) in text.bytes().chain(std::iter::once(b'\n')).enumerate() {
            if !byte.is_ascii_digit() {
                signs.figures = signs.figures.max(at - figures);
                figures = at + 1;
            }
            if !matches!(byte, b'0'..=b'9' | b'a'..=b'f') {
                signs.hex = signs.hex.max(at - hex);
                hex = at + 1;
            }
            if !byte.is_ascii_alphanumeric() {
                signs.id = signs.id || text.get(part..at).is_some_and(may_be_random);
                part = at + 1;
            }
            // Two other characters fold to ASCII letters if case is ignored, so none beyond ASCII ends an id.
            if byte.is_ascii() && !byte.is_ascii_alphanumeric() && byte != b'_' && byte != b'-' {
                signs.id = signs.id || at - id >= MAX_ID_BYTES;
                id = at + 1;
            }
        }
        signs.id = signs.id || signs.figures >= 15;
        signs
    }

    /// Returns true if the text is ASCII.
    pub fn is_ascii(&self) -> bool {
        self.text.is_ascii()
    }

    /// Returns true if the text contains a literal.
    pub fn has(&self, literal: &str) -> bool {
        memchr::memmem::find(self.text.as_bytes(), literal.as_bytes()).is_some()
    }

    /// Returns true if the text contains a literal, in lower or upper case. The literal is in lower case, and has no `k`
    /// and no `s`, to which other characters fold.
    pub fn has_any_case(&self, literal: &str) -> bool {
        let (text, literal) = (self.text.as_bytes(), literal.as_bytes());
        let Some(first) = literal.first() else { return true };
        let matches = |at: usize| text.get(at..at + literal.len()).is_some_and(|it| it.eq_ignore_ascii_case(literal));
        memchr::memchr2_iter(*first, first.to_ascii_uppercase(), text).any(matches)
    }

    /// Returns true if three bytes that follow each other are one of some words.
    pub fn has_word_of(&self, is_one: impl Fn(&[u8]) -> bool) -> bool {
        self.text.as_bytes().windows(3).any(|word| word[0].is_ascii_uppercase() && is_one(word))
    }

    /// Returns true if the text contains one of these bytes after this one.
    pub fn has_pair(&self, first: u8, then: impl Fn(u8) -> bool) -> bool {
        let text = self.text.as_bytes();
        memchr::memchr_iter(first, text).any(|at| text.get(at + 1).is_some_and(|byte| then(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_measured_to_the_end_of_the_text() {
        let signs = Signs::of("a1 é1234567 deadbee 99");
        assert_eq!((signs.figures, signs.hex, signs.id), (7, 7, false));
        assert_eq!(Signs::of("x 12345678").figures, 8);
        assert!(Signs::of("x7k2m9qp").id && Signs::of("id: x7k2m9qpé").id && Signs::of("123456789012345").id);
        assert!(!Signs::of("some plain words_and-names 2026").id);
        assert!(Signs::of(&"a-".repeat(32)).id && !Signs::of(&"a-".repeat(31)).id);
        assert!(signs.has("1234") && !signs.has("x") && signs.has_any_case("deadbee"));
        assert!(Signs::of("a PID: 1").has_any_case("pid") && !Signs::of("a PI D").has_any_case("pid"));
        assert!(signs.has_pair(b'9', |byte| byte == b'9') && !signs.has_pair(b'9', |byte| byte == b'1'));
    }
}
