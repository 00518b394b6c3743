//! Decodes the percent-encoding of URLs and forms.

use super::view::View;

/// Returns true if a text contains a percent-encoded byte.
pub(super) fn occurs(bytes: &[u8]) -> bool {
    memchr::memchr_iter(b'%', bytes).any(|at| byte(&bytes[at..]).is_some())
}

/// Decodes one level of percent-encoding. A percent sign that does not begin an encoded byte is kept.
pub(super) fn undone(bytes: &[u8]) -> View {
    let mut view = View::default();
    let mut copied = 0;
    for at in memchr::memchr_iter(b'%', bytes) {
        if at < copied {
            continue;
        }
        if let Some(decoded) = byte(&bytes[at..]) {
            view.text.extend_from_slice(&bytes[copied..at]);
            copied = at + 3;
            view.decoded(&[decoded], at..copied);
        }
    }
    view.text.extend_from_slice(&bytes[copied..]);
    view
}

/// Returns the byte that `%XX` at the start encodes.
fn byte(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*bytes.get(at)?).to_digit(16);
    u8::try_from(digit(1)? * 16 + digit(2)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_decoded_and_their_places_known() {
        let raw = b"a%20b%2fc%zz%4";
        let view = undone(raw);
        assert_eq!(view.text, b"a b/c%zz%4");
        assert_eq!(&raw[view.original(1..4)], b"%20b%2f");
        assert_eq!(&raw[view.original(2..3)], b"b");
        assert!(occurs(raw) && !occurs(b"100 %, %s and %"));
    }
}
