//! Splits texts into words and their segments, and decides which segments were generated at random.

use std::ops::Range;

/// Returns true if a character belongs to a word: a name, a number, an id, a component of a path.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '@' | '+' | '-')
}

/// Returns the words of a text, in order, without punctuation at their ends.
pub fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        loop {
            let start = rest + text[rest..].find(is_of_word)?;
            let end = text[start..].find(|c: char| !is_of_word(c)).map_or(text.len(), |n| start + n);
            rest = end;
            let word = text[start..end].trim_end_matches(['.', '-', '@', '+']);
            let trimmed = word.trim_start_matches(['.', '-', '@', '+']);
            if !trimmed.is_empty() {
                let start = start + word.len() - trimmed.len();
                return Some(start..start + trimmed.len());
            }
        }
    })
}

/// Returns the segments of a word: runs of letters and digits.
pub fn segments(text: &str, word: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut rest = word.start;
    std::iter::from_fn(move || {
        let part = &text[rest..word.end];
        let start = rest + part.find(char::is_alphanumeric)?;
        let end = text[start..word.end].find(|c: char| !c.is_alphanumeric()).map_or(word.end, |n| start + n);
        rest = end;
        Some(start..end)
    })
}

/// Returns true if a segment is hexadecimal.
pub fn is_hex(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_hexdigit())
}

pub fn is_number(segment: &str) -> bool {
    !segment.is_empty() && segment.bytes().all(|b| b.is_ascii_digit())
}

/// Returns true if a segment is a hash by its digits alone: hexadecimal, long enough, with letters and digits mixed as
/// at random. `100000e9`, `2097152b` and `facade1` are not.
pub fn is_hash(segment: &str) -> bool {
    let one_case =
        !(segment.contains(|c: char| c.is_ascii_lowercase()) && segment.contains(|c: char| c.is_ascii_uppercase()));
    let letters = segment.bytes().filter(u8::is_ascii_alphabetic).count();
    let figures = segment.len() - letters;
    let number_with_unit = letters == 1 && segment.ends_with(|c: char| c.is_ascii_alphabetic());
    let exponent = letters == 1 && segment.contains(['e', 'E']);
    let word_with_number = figures == 1 && segment.ends_with(|c: char| c.is_ascii_digit());
    let counted =
        segment.bytes().take_while(u8::is_ascii_alphabetic).count() == letters && letters <= 4 && segment.len() < 9
            || segment.bytes().take_while(u8::is_ascii_alphabetic).count() == letters && letters >= 4 && figures <= 4;
    (7..=128).contains(&segment.len())
        && is_hex(segment)
        && one_case
        && letters > 0
        && figures > 0
        && !number_with_unit
        && !exponent
        && !word_with_number
        && !counted
}

pub fn is_ulid(segment: &str) -> bool {
    let crockford = |b: u8| {
        b.is_ascii_digit() || (b.is_ascii_alphabetic() && !matches!(b.to_ascii_uppercase(), b'I' | b'L' | b'O' | b'U'))
    };
    let one_case =
        !(segment.bytes().any(|b| b.is_ascii_lowercase()) && segment.bytes().any(|b| b.is_ascii_uppercase()));
    segment.len() == 26
        && one_case
        && segment.starts_with(|c| ('0'..='7').contains(&c))
        && segment.bytes().all(crockford)
        && segment.bytes().any(|b| b.is_ascii_digit())
        && segment.bytes().any(|b| b.is_ascii_alphabetic())
}

/// The order of the kinds of characters in a segment.
struct Runs {
    /// The number of changes between letters and digits.
    changes: usize,
    /// The number of runs of lower-case letters, upper-case letters and digits.
    classes: usize,
    /// The length of the longest run of letters of one case.
    longest: usize,
    figures: usize,
    lower: bool,
    upper: bool,
}

fn runs(segment: &str) -> Option<Runs> {
    let mut runs = Runs { changes: 0, classes: 0, longest: 0, figures: 0, lower: false, upper: false };
    let (mut last, mut length) = (None, 0);
    for b in segment.bytes() {
        let class = match b {
            b'a'..=b'z' => 'a',
            b'A'..=b'Z' => 'A',
            b'0'..=b'9' => '0',
            _ => return None,
        };
        match class {
            'a' => runs.lower = true,
            'A' => runs.upper = true,
            _ => runs.figures += 1,
        }
        if last == Some(class) {
            length += 1;
        } else {
            runs.changes += usize::from(last.is_some_and(|last| (last == '0') != (class == '0')));
            runs.classes += 1;
            length = 1;
        }
        if class != '0' {
            runs.longest = runs.longest.max(length);
        }
        last = Some(class);
    }
    Some(runs)
}

/// Returns true if a segment alone looks random: `x7k2m9qp`, `01AbCdEfGh2`. Words with numbers, such as `utf8mb4`,
/// `status200`, `sha256sum`, `x86` and `getHTTP2Response`, do not.
pub fn is_random(segment: &str) -> bool {
    let Some(runs) = runs(segment).filter(|_| segment.len() >= 8) else { return false };
    match (runs.lower, runs.upper) {
        // Without a digit, the segment may be several words, such as `getUserById`.
        (true, true) if runs.figures == 0 => {
            segment.len() >= 16 && runs.classes >= segment.len() / 2 && runs.longest <= 4
        }
        (true, true) if segment.len() < 16 => {
            // `MyRepo12` is words with a number after them.
            runs.changes >= 2 && runs.classes >= (segment.len() / 3).max(5) && runs.longest <= 4
        }

        (true, true) if runs.figures == 1 => runs.classes >= segment.len() * 2 / 5,
        (true, true) => runs.classes >= segment.len() / 4 && runs.longest <= 8,
        (false, false) => false,
        _ => runs.figures >= 2 && runs.changes >= 3 && runs.longest <= if segment.len() < 20 { 4 } else { 8 },
    }
}

/// Returns true if a segment may be generated, given that the text around it calls it an id.
pub fn may_be_random(segment: &str) -> bool {
    let Some(runs) = runs(segment).filter(|_| segment.len() >= 6) else { return false };
    is_random(segment)
        || is_hash(segment)
        || (runs.figures >= 2 && runs.changes >= 3 && runs.longest <= 4)
        || (runs.lower && runs.upper && runs.figures > 0 && runs.classes >= 4 && runs.longest <= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_segments_are_told_from_words_with_numbers() {
        for segment in ["x7k2m9qp", "01AbCdEfGh2", "9f3K2mQ8zL1x", "k3jf9x2a", "01XFDUDYJgAACzvnptvVoYEL"] {
            assert!(is_random(segment), "{segment}");
        }
        for segment in [
            "utf8mb4",
            "status200",
            "sha256sum",
            "getHTTP2Response",
            "FooBarBazQux",
            "getUserByIdAndNameFromDatabase",
            "v2alpha1",
            "markdown",
            "README",
            "20261122",
            "x86",
            "python3",
            "base64url",
            "test12case",
            "release2024",
            "MyRepo12",
        ] {
            assert!(!is_random(segment), "{segment}");
            assert!(segment == "utf8mb4" || !may_be_random(segment), "{segment}");
        }
        for hash in ["a1b2c3d", "7c9e6679", "0f1e2d3c4b5a69788796a5b4c3d2e1f001234567"] {
            assert!(is_hash(hash), "{hash}");
        }
        for word in ["1234567", "defaced", "2097152b", "1e10000000", "facade1", "beef2024", "abc1234"] {
            assert!(!is_hash(word), "{word}");
        }
        assert!(is_ulid("01ARZ3NDEKTSV4RRFFQ69G5FAV") && !is_ulid("ABCDEFGHJKMNPQRSTVWXYZABCD"));
    }

    #[test]
    fn words_and_segments_cover_a_text() {
        let text = "x=/tmp/tmp.Ab-1/a, é2_b. --";
        let found: Vec<&str> = words(text).map(|range| &text[range]).collect();
        assert_eq!(found, ["x", "tmp", "tmp.Ab-1", "a", "é2_b"]);
        let parts: Vec<&str> = segments(text, 7..15).map(|range| &text[range]).collect();
        assert_eq!(parts, ["tmp", "Ab", "1"]);
    }
}
