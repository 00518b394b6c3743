//! Finds secrets that are broken over several lines: base64 as `base64` and PEM files wrap it, and raw values.

use std::ops::Range;

use super::view::View;

/// The number of bytes of joined text that are searched at once.
const WINDOW: usize = 256 << 10;

/// The bytes after a line end that are left out together with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    Indentation,
    /// The sign of a line in a patch (`+`, `-` or a blank), then blanks.
    PatchMark,
}

/// Calls `search` with the text without its line ends, in windows that overlap by `overlap` bytes, and adds the places
/// of every match that extends over a line end: one place for each line, the first with the mark, the others with an
/// empty mark, so that the line ends stay. Line ends are recognised raw and as JSON escapes, at any depth. The
/// indentation of the next line is left out, and in a second search also the sign that a patch puts before each line.
/// If `blanks` is true, secrets contain blanks, and the text is also searched with its indentation.
pub(super) fn places<'m>(
    bytes: &[u8],
    overlap: usize,
    blanks: bool,
    mut search: impl FnMut(&[u8]) -> Vec<(Range<usize>, &'m str)>,
    places: &mut Vec<(Range<usize>, &'m str)>,
) {
    let next = joined(bytes, LeftOut::Indentation, overlap, &mut search, places);
    if next.mark {
        joined(bytes, LeftOut::PatchMark, overlap, &mut search, places);
    }
    if next.blank && blanks {
        joined(bytes, LeftOut::Nothing, overlap, &mut search, places);
    }
}

/// The kinds of characters with which the lines of a text begin.
#[derive(Default)]
struct Beginnings {
    blank: bool,
    mark: bool,
}

fn joined<'m>(
    bytes: &[u8],
    left_out: LeftOut,
    overlap: usize,
    search: &mut impl FnMut(&[u8]) -> Vec<(Range<usize>, &'m str)>,
    places: &mut Vec<(Range<usize>, &'m str)>,
) -> Beginnings {
    let window = WINDOW.max(4 * overlap);
    let mut view = View::default();
    let mut next = Beginnings::default();
    // The end of the copied text, and the end of the text in which no line end begins.
    let (mut copied, mut searched) = (0, 0);
    for at in memchr::memchr3_iter(b'\n', b'\r', b'\\', bytes) {
        if at < searched {
            continue;
        }
        let mut end = match line_end(&bytes[at..]) {
            Ok(length) => at + length,
            Err(slashes) => {
                searched = at + slashes;
                continue;
            }
        };
        let first = bytes.get(end).copied();
        next.blank |= first.is_some_and(is_blank);
        next.mark |= matches!(first, Some(b'+' | b'-'));
        if left_out == LeftOut::PatchMark && matches!(first, Some(b'+' | b'-')) {
            end += 1;
        }
        if left_out != LeftOut::Nothing {
            end += bytes[end..].iter().take_while(|byte| is_blank(**byte)).count();
        }
        view.text.extend_from_slice(&bytes[copied..at]);
        view.decoded(&[], at..end);
        (copied, searched) = (end, end);
        if view.text.len() > window {
            over_lines(&view, search, places);
            view = view.tail(view.text.len() - overlap);
        }
    }
    if copied > 0 {
        view.text.extend_from_slice(&bytes[copied..]);
        over_lines(&view, search, places);
    }
    next
}

fn over_lines<'m>(
    view: &View,
    search: &mut impl FnMut(&[u8]) -> Vec<(Range<usize>, &'m str)>,
    places: &mut Vec<(Range<usize>, &'m str)>,
) {
    for (found, mut mark) in search(&view.text) {
        let pieces = view.pieces(found);
        // Matches in a single line are found without this search.
        if pieces.len() > 1 {
            places.extend(pieces.into_iter().map(|piece| (piece, std::mem::take(&mut mark))));
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Returns the length of the line ends at the start of the text or, as the error, the number of bytes to skip if
/// there are none.
fn line_end(bytes: &[u8]) -> Result<usize, usize> {
    let mut at = 0;
    loop {
        let slashes = bytes[at..].iter().take_while(|byte| **byte == b'\\').count();
        match bytes.get(at + slashes) {
            Some(b'\n' | b'\r') if slashes == 0 => at += 1,
            Some(b'n' | b'r') if slashes > 0 => at += slashes + 1,
            _ if at == 0 => return Err(slashes.max(1)),
            _ => return Ok(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, secret: &'static str, blanks: bool) -> Vec<String> {
        let search = |text: &[u8]| {
            let found = memchr::memmem::find_iter(text, secret);
            found.map(|at| (at..at + secret.len(), "mark")).collect()
        };
        let mut all = Vec::new();
        places(text.as_bytes(), 6 * secret.len(), blanks, search, &mut all);
        all.sort_by_key(|(at, _)| at.start);
        all.dedup();
        all.into_iter().map(|(at, mark)| format!("{mark}:{}", &text[at])).collect()
    }

    #[test]
    fn each_line_of_a_secret_is_a_place_of_its_own() {
        for end in ["\n", "\r\n", "\\n", "\\\\n", "\\r\\n", "\n    ", "\n+", "\n-", "\n ", "\\n+  ", "\n\n\n", "\n+\n+"]
        {
            let text = format!("x: hun{end}ter2{end}-secret\nrest");
            assert_eq!(found(&text, "hunter2-secret", false), ["mark:hun", "ter2", "-secret"].map(piece), "{text}");
        }
        assert_eq!(found("a hunter2-secret\nrest \\x", "hunter2-secret", false), [""; 0]);
        assert_eq!(found("two\n words", "two words", true), ["mark:two", ": words"]);
    }

    fn piece(text: &str) -> String {
        if text.contains(':') { text.to_owned() } else { format!(":{text}") }
    }

    #[test]
    fn long_texts_are_searched_in_windows_and_nothing_is_lost_between_them() {
        let secret = "abcdefghijklmnop";
        let text: String = format!("{secret}x").repeat(60_000);
        for width in [1, 7, 16, 76] {
            let lines: Vec<&str> = text.as_bytes().chunks(width).map(|line| str::from_utf8(line).unwrap()).collect();
            let lines = lines.join("\n");
            let mut rest = lines.clone().into_bytes();
            let search = |text: &[u8]| {
                let found = memchr::memmem::find_iter(text, secret);
                found.map(|at| (at..at + secret.len(), "mark")).collect()
            };
            let mut all = Vec::new();
            places(lines.as_bytes(), 6 * secret.len(), false, search, &mut all);
            all.into_iter().for_each(|(at, _)| rest[at].fill(b'.'));
            rest.retain(|byte| *byte != b'\n');
            let rest = String::from_utf8(rest).unwrap();
            // The remaining secrets are each complete in one line.
            for part in rest.split(['x', '.']).filter(|part| !part.is_empty()) {
                assert_eq!(part, secret);
            }
        }
    }

    #[test]
    fn a_long_run_of_backslashes_is_read_once() {
        let text = "\\".repeat(4 << 20);
        let begun = std::time::Instant::now();
        assert_eq!(found(&text, "secret", false), [""; 0]);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }
}
