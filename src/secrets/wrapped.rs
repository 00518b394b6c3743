//! Joins the lines of wrapped base64, as `base64` and PEM files break them after 76 or 64 characters.

use super::view::View;

/// A line of base64 is taken for wrapped if at least so many of its characters stand before its end.
const SHORTEST_LINE: usize = 16;

/// The text without the line ends inside of base64, or `None` if it holds no base64 of several lines. Line ends count as
/// they are and as JSON escapes them, at any depth; so does the indentation of the next line.
pub(super) fn joined(bytes: &[u8]) -> Option<View> {
    let mut view: Option<View> = None;
    let mut copied = 0;
    for at in memchr::memchr3_iter(b'\n', b'\r', b'\\', bytes) {
        if at < copied {
            continue;
        }
        let before = bytes[copied..at].iter().rev().take(SHORTEST_LINE).take_while(|byte| in_base64(**byte)).count();
        if before < SHORTEST_LINE {
            continue;
        }
        let end = at + line_end(&bytes[at..]);
        if end > at && bytes.get(end).copied().is_some_and(in_base64) {
            let view = view.get_or_insert_default();
            view.text.extend_from_slice(&bytes[copied..at]);
            copied = end;
            view.decoded(&[], at..end);
        }
    }
    let mut view = view?;
    view.text.extend_from_slice(&bytes[copied..]);
    Some(view)
}

fn in_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// The length of a line end at the start, with the indentation after it; 0 if none is there.
fn line_end(bytes: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let slashes = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
        match bytes.get(at + slashes) {
            Some(b'\n' | b'\r') if slashes == 0 => at += 1,
            Some(b'n' | b'r') if slashes > 0 => at += slashes + 1,
            _ => break,
        }
    }
    match at {
        0 => 0,
        at => at + bytes[at..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_base64_are_joined_and_prose_is_left() {
        let line = "QUJDREVGR0hJSktMTU5PUFFS";
        for end in ["\n", "\r\n", "\\n", "\\\\n", "\\r\\n", "\n    "] {
            let text = format!("x: {line}{end}{line}{end}UVI=\nrest");
            let view = joined(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(view.text.clone()).unwrap(), format!("x: {line}{line}UVI=\nrest"));
            let whole = view.original(3..3 + 2 * line.len());
            assert_eq!(&text[whole], format!("{line}{end}{line}"));
        }
        assert!(joined(b"some words\nin two lines\nand a long_identifier_of_code;\n").is_none());
    }
}
