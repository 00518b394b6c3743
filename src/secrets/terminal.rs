//! Finds the sequences that control a terminal, such as colours: a program may write them within or before a secret.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::view::View;

/// The pattern of a sequence that sets a colour or clears a part of a line. The escape character is raw, or written as in
/// JSON, C or a shell.
pub const COLOUR: &str = r"(?:\x1b|\\+(?:u001[bB]|u\{1[bB]\}|x1[bB]|0?33|e))\[[0-?]*[ -/]*[@-~]";

/// A sequence: a colour, a title or link with its text, or a sequence of two or three characters.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    let escape = r"(?:\x1b|\\+u001[bB])";
    let text = format!(r"{escape}\][^\x07\x1b\\]*(?:\x07|\\+u0007|{escape}\\+)");
    Regex::new(&format!(r"(?-u)(?:{COLOUR}|{text}|{escape}[(-/][0-~])")).unwrap()
});

/// Returns true if a text may contain sequences: the escape character, raw or written as in C or a shell. As written in
/// JSON, it is decoded by [`super::escapes`].
pub(super) fn occurs(bytes: &[u8]) -> bool {
    const WRITTEN: [&str; 7] = ["x1b[", "x1B[", "033[", "33[", "e[", "u{1b}[", "u{1B}["];
    let is_written = |at: usize| WRITTEN.iter().any(|escape| bytes[at + 1..].starts_with(escape.as_bytes()));
    memchr::memchr(0x1b, bytes).is_some() || memchr::memchr_iter(b'\\', bytes).any(is_written)
}

/// Returns the text without its sequences, or `None` if it has none.
pub(super) fn undone(bytes: &[u8]) -> Option<View> {
    let mut view = View::default();
    let mut copied = 0;
    for found in SEQUENCE.find_iter(bytes) {
        view.text.extend_from_slice(&bytes[copied..found.start()]);
        view.decoded(&[], found.range());
        copied = found.end();
    }
    view.text.extend_from_slice(&bytes[copied..]);
    (copied > 0).then_some(view)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_left_out_and_every_place_is_known() {
        for escape in ["\x1b", r"\u001b", r"\\u001B", r"\x1b", r"\033", r"\33", r"\e", r"\u{1b}"] {
            let raw = format!("a{escape}[01;31m{escape}[Kbc{escape}[m[1m");
            let view = undone(raw.as_bytes()).unwrap();
            assert_eq!(view.text, b"abc[1m", "{raw}");
            let pieces: Vec<&str> = view.pieces(0..3).into_iter().map(|piece| &raw[piece]).collect();
            assert_eq!(pieces, ["a", "bc"], "{raw}");
        }
        let link = "\x1b]8;;http://h\x1b\\text\x1b]8;;\x07\x1b(B!";
        assert_eq!(undone(link.as_bytes()).unwrap().text, b"text!");
        assert_eq!(undone(br"\u001b]0;title\u0007x").unwrap().text, b"x");
        for text in ["", "plain [0m", "\x1b", r"C:\users\e", "\x1b]0;no end"] {
            assert!(undone(text.as_bytes()).is_none(), "{text:?}");
        }
        for text in ["a\x1b[m", r"a\033[m", r"a\x1B[m", r"a\\e[m", r"a\u{1b}[m"] {
            assert!(occurs(text.as_bytes()), "{text:?}");
        }
        assert!(!occurs(br"\u001b[m C:\e \"));
    }
}
