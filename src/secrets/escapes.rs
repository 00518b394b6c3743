//! Decodes the escapes of JSON in all their spellings.

use super::view::View;

/// Returns true if a text contains escapes that [`serde_json`] does not write: `\u0026`, `\/`.
pub(super) fn odd(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'\\', bytes).any(|at| matches!(bytes.get(at + 1), Some(b'u' | b'/')))
}

/// Decodes one level of escapes. A backslash that does not begin an escape is kept.
pub(super) fn undone(bytes: &[u8]) -> View {
    let mut view = View::default();
    let mut copied = 0;
    while let Some(at) = memchr::memchr(b'\\', &bytes[copied..]).map(|at| copied + at) {
        view.text.extend_from_slice(&bytes[copied..at]);
        let Some((decoded, length)) = escape(&bytes[at..]) else {
            view.text.push(b'\\');
            copied = at + 1;
            continue;
        };
        copied = at + length;
        view.decoded(decoded.encode_utf8(&mut [0; 4]).as_bytes(), at..copied);
    }
    view.text.extend_from_slice(&bytes[copied..]);
    view
}

/// Returns the character of the escape at the start, and the length of the escape.
fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let decoded = match bytes.get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        plain @ (b'"' | b'\\' | b'/') => char::from(*plain),
        b'u' => {
            let high = unit(&bytes[2..])?;
            if let Some(decoded) = char::from_u32(high) {
                return Some((decoded, 6));
            }
            // Two halves of one character (a surrogate pair).
            let low = bytes.get(6..)?.strip_prefix(b"\\u").and_then(unit)?;
            let pair = char::decode_utf16([high as u16, low as u16]).next()?.ok()?;
            return Some((pair, 12));
        }
        _ => return None,
    };
    Some((decoded, 2))
}

fn unit(bytes: &[u8]) -> Option<u32> {
    let mut digits = bytes.get(..4)?.iter().map(|digit| char::from(*digit).to_digit(16));
    digits.try_fold(0, |sum, digit| Some(sum * 16 + digit?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_every_place_is_known() {
        let raw = br#"a\u0026b\ud83d\ude00\/\\u\x\"e"#;
        let plain = undone(raw);
        assert_eq!(String::from_utf8(plain.text.clone()).unwrap(), "a&b😀/\\u\\x\"e");
        let of = |text: &str| {
            let at = plain.text.windows(text.len()).position(|part| part == text.as_bytes()).unwrap();
            let part = &raw[plain.original(at..at + text.len())];
            String::from_utf8_lossy(part).into_owned()
        };
        assert_eq!(of("&b"), r"\u0026b");
        assert_eq!(of("😀"), r"\ud83d\ude00");
        assert_eq!(of("/"), r"\/");
        assert_eq!(of("x\""), r#"x\""#);
        assert_eq!(of("e"), "e");
    }

    #[test]
    fn what_is_no_escape_stays() {
        for text in ["", "\\", "\\u", "\\u12", "\\ud800", "\\ud800\\n", "\\ud800\\u0041", "C:\\users"] {
            let plain = undone(text.as_bytes());
            assert!(plain.text.starts_with(&text.as_bytes()[..text.len().min(2)]), "{text}");
            assert_eq!(plain.original(0..plain.text.len()).end, text.len());
        }
    }
}
