//! Finds the numbers in a text, as people and agents write them.

use std::borrow::Cow;

use crate::decimal::Decimal;

/// Returns the number if the text consists of a number only.
pub fn only(text: &str) -> Option<Decimal> {
    let text = plain(text);
    let text = text.trim().trim_end_matches('.');
    match piece_at(text, 0)? {
        (Piece::Number(number), end) if end == text.len() => Some(number),
        _ => None,
    }
}

/// Returns the numbers in a text: digits with a sign, a point, an exponent and separators between thousands.
/// Versions, dates, powers and other words that contain digits are not numbers, and neither is text that could
/// be one number or several, such as `0,5`, `3,14` and `1,000,00`.
pub fn all(text: &str) -> Vec<Decimal> {
    let text = plain(text);
    let (mut found, mut at) = (Vec::new(), 0);
    while at < text.len() {
        match piece_at(&text, at) {
            Some((piece, end)) => {
                if let Piece::Number(number) = piece {
                    found.push(number);
                }
                at = end;
            }
            None => at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8),
        }
    }
    found
}

/// A piece of a text at a position.
enum Piece {
    Number(Decimal),
    /// Digits that are not a number.
    Other,
}

/// Replaces signs, digits and separators of other scripts by ASCII.
fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(plain_char).collect())
}

fn plain_char(c: char) -> char {
    match c {
        // Minus signs, and dashes and hyphens used as minus signs.
        '\u{2212}' | '\u{2010}' | '\u{2011}' | '\u{2013}' | '\u{fe63}' | '\u{ff0d}' => '-',
        '\u{ff0b}' => '+',
        // Fullwidth forms.
        '\u{ff10}'..='\u{ff19}' => char::from(b'0' + (u32::from(c) - 0xff10) as u8),
        '\u{ff0e}' => '.',
        '\u{ff0c}' => ',',
        // Non-breaking spaces between thousands.
        '\u{a0}' | '\u{202f}' | '\u{2009}' | '\u{2007}' => NARROW,
        // Quotes between thousands.
        '\u{2019}' => '\'',
        c => c,
    }
}

/// The placeholder for a non-breaking space.
const NARROW: char = '\u{1f}';

fn piece_at(text: &str, start: usize) -> Option<(Piece, usize)> {
    let bytes = text.as_bytes();
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    if !is(start, b"0123456789+-.") {
        return None;
    }
    // Markdown writes `_42_` and `__42__` for emphasis.
    let ahead = text.get(..start).unwrap_or_default();
    let unmarked = ahead.trim_end_matches('_');
    let marks = ahead.len() - unmarked.len();
    let before = unmarked.chars().next_back().unwrap_or(' ');
    let is_after_dots = unmarked.strip_suffix("...").is_some_and(|it| !it.ends_with(|c: char| c.is_ascii_digit()));
    // The 8 of `utf8` and the 3 of `v1.2.3` are not separate numbers.
    if before.is_alphanumeric() || (".^".contains(before) && !is_after_dots) {
        return None;
    }
    let signed = start + usize::from(is(start, b"+-"));
    let whole = digits(signed);
    if whole == 0 && !(is(signed, b".") && digits(signed + 1) > 0) {
        return None;
    }
    let mut at = signed + whole;
    let groups = groups(text, signed, whole);
    at = groups.unwrap_or(at);
    if is(at, b".") && digits(at + 1) > 0 {
        at += 1 + digits(at + 1);
    }
    if is(at, b"eE") {
        let sign = usize::from(is(at + 1, b"+-"));
        let power = digits(at + 1 + sign);
        at += if power > 0 { 1 + sign + power } else { 0 };
    }
    if marks > 0 && !ends_marks(text.get(at..).unwrap_or_default(), marks) {
        return None;
    }
    if let Some(end) = not_a_number(text, signed, at, groups.is_some()) {
        return Some((Piece::Other, end));
    }
    let kept = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let written: String = bytes.get(start..at)?.iter().filter(kept).map(|byte| char::from(*byte)).collect();
    match Decimal::parse(&written) {
        Some(number) => Some((Piece::Number(number), at)),
        // The exponent is out of range.
        None => Some((Piece::Other, at)),
    }
}

/// Returns true if a text begins with so many `_` as an emphasis began with, and a word ends there.
fn ends_marks(text: &str, marks: usize) -> bool {
    let rest = text.trim_start_matches('_');
    text.len() - rest.len() == marks && !rest.starts_with(char::is_alphanumeric)
}

/// The separators between thousands.
const SEPARATORS: [char; 4] = [',', '\'', '_', NARROW];

/// Returns true if digits with one kind of separator could be one number in another form than groups of three digits, and
/// could be several: `1,000,00` and `12,34,567`, but not `1,2,3`.
fn is_uneven(text: &str, start: usize, end: usize) -> bool {
    let Some(separator) = text.get(end..).and_then(|rest| rest.chars().next()).filter(|c| SEPARATORS.contains(c))
    else {
        return false;
    };
    if is_part_of_list(text, start, separator) {
        return false;
    }
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.find(|c: char| !c.is_ascii_digit() && c != separator).unwrap_or(rest.len());
    let run = rest.get(..length).unwrap_or_default().trim_end_matches(separator);
    let groups: Vec<&str> = run.split(separator).collect();
    let [first, groups @ ..] = groups.as_slice() else { return false };
    let is_padded = groups.iter().any(|group| group.len() > 1 && group.starts_with('0'));
    let has_thousands = groups.iter().any(|group| group.len() == 3);
    first.len() <= 3 && (is_padded || (has_thousands && groups.iter().all(|group| matches!(group.len(), 2 | 3))))
}

/// Returns the end of groups of three digits with one kind of separator, if all groups that follow have three
/// digits.
fn groups(text: &str, start: usize, whole: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = start + whole;
    let separator = *bytes.get(at).filter(|byte| b",'_\x1f".contains(byte))?;
    // A number with separators does not begin with a zero, or after a digit and a separator.
    let behind = start.checked_sub(2).and_then(|at| bytes.get(at..start));
    let goes_on = behind.is_some_and(|it| it[0].is_ascii_digit() && it[1] == separator);
    if !(1..=3).contains(&whole) || bytes.get(start) == Some(&b'0') || goes_on {
        return None;
    }
    while bytes.get(at) == Some(&separator) && digits(at + 1) > 0 {
        if digits(at + 1) != 3 {
            return None;
        }
        at += 4;
    }
    (at > start + whole).then_some(at)
}

/// Returns the end of digits that look like a number from `start` to `end` but are not one.
fn not_a_number(text: &str, start: usize, end: usize, grouped: bool) -> Option<usize> {
    let rest = text.get(end..).unwrap_or_default();
    let digit = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    let word_end = |more: &str| {
        let part = |c: char| c.is_alphanumeric() || more.contains(c);
        let length = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
        end + rest.get(..length).unwrap_or_default().trim_end_matches(|c: char| ".:-+,^*".contains(c)).len()
    };
    let number = text.get(start..end).unwrap_or_default();
    let plain_digits = number.bytes().all(|byte| byte.is_ascii_digit());
    // 10^6, 10**6, 10⁶, and 1.5 × 10^6.
    let raised =
        rest.starts_with('^') || rest.strip_prefix("**").is_some_and(|rest| digit(rest.trim_start_matches('-')));
    let superscript = rest.starts_with(|c| "⁰¹²³⁴⁵⁶⁷⁸⁹⁻".contains(c));
    let times = rest.trim_start_matches(' ').strip_prefix(['×', '·', '*', 'x', '⋅']).map(str::trim_start);
    let scaled = times.and_then(|rest| rest.strip_prefix("10")).filter(|rest| rest.starts_with('^'));
    if let Some(power) = scaled {
        let power = power.get(1..).unwrap_or_default();
        let length = power.find(|c: char| !c.is_ascii_digit() && !"+-".contains(c)).unwrap_or(power.len());
        return Some(text.len() - power.len() + length);
    }
    if raised || superscript {
        return Some(word_end("^*-+.").max(end + 1));
    }
    // 0x1f, 0b11 and 0o17.
    if number == "0" && rest.starts_with(['x', 'X', 'b', 'B', 'o', 'O']) && rest.len() > 1 {
        let after = rest.get(1..).unwrap_or_default();
        if after.starts_with(|c: char| c.is_ascii_hexdigit()) {
            return Some(word_end("_"));
        }
    }
    // 1.2.3, and 1.234,5.
    if rest.strip_prefix('.').is_some_and(digit) {
        return Some(word_end("._-+,"));
    }
    if number.contains('.') && !grouped && rest.strip_prefix(',').is_some_and(digit) && !rest.starts_with(", ") {
        return Some(word_end(".,"));
    }
    if plain_digits && !grouped && is_uneven(text, start, end) {
        return Some(word_end(",.'_\u{1f}").max(end + 1));
    }
    // `0,5` is one half to some readers, and two numbers to others. So is `3,14`, and `1,2,3` is a list.
    if let Some(behind) = rest.strip_prefix(',').filter(|behind| plain_digits && digit(behind)) {
        let goes_on = behind.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_list = goes_on.strip_prefix(',').is_some_and(digit) || is_part_of_list(text, start, ',');
        if number == "0" || !is_list {
            return Some(word_end(",."));
        }
    }
    // 2026-11-22, 22/11/2026 and 12:30:15.
    let joint = rest.chars().next().filter(|c| plain_digits && "-/:".contains(*c))?;
    let second = rest.get(1..).filter(|rest| digit(rest))?;
    let third = second.trim_start_matches(|c: char| c.is_ascii_digit()).strip_prefix(joint)?;
    digit(third).then(|| word_end("-/:.+"))
}

/// Returns true if a digit and a separator stand before a position.
fn is_part_of_list(text: &str, start: usize, separator: char) -> bool {
    let before = text.get(..start).and_then(|before| before.strip_suffix(separator));
    before.is_some_and(|before| before.ends_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        all(text).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn numbers_are_found_as_people_write_them() {
        for (text, numbers) in [
            ("a 1, b -2.5 and 3e2", &["1", "-2.5", "300"][..]),
            ("1,234,567 of 12, 34", &["1234567", "12", "34"]),
            ("It is 42.", &["42"]),
            ("$3.50, 50%, (7), .5", &["3.5", "50", "7", "0.5"]),
            ("utf8 x_2 v1.2.3", &[]),
            ("no", &[]),
            ("1e99999 5 6e", &["5", "6"]),
            ("\u{2212}5 and (\u{2212}0.5)", &["-5", "-0.5"]),
            ("\u{2013}5, \u{ff0d}6 and 3-4", &["-5", "-6", "3", "4"]),
            ("\u{ff14}\u{ff12} and \u{ff11}\u{ff0c}\u{ff12}\u{ff13}\u{ff14}\u{ff0e}\u{ff15}", &["42", "1234.5"]),
            ("1\u{202f}234\u{202f}567, 1'234'567, 1_000_000", &["1234567", "1234567", "1000000"]),
            ("1 234", &["1", "234"]),
            ("1,23,456 and 1,2345, 5", &["5"]),
            ("1,000,00 and 3,000,50 and 12,34,567, 8", &["8"]),
            ("1'000'00 1_000_00 1\u{202f}000\u{202f}00 9", &["9"]),
            ("[1,2,300] 5,100,1000", &["1", "2", "300", "5", "100", "1000"]),
            ("_42_, __43__ and _1_000_", &["42", "43", "1000"]),
            ("_42, x_42_, _42_x, __42_ and _4_2", &[]),
            ("is...42, 1...43 and ..44", &["42", "1"]),
            ("[1,2,3] and 10,20,30,40", &["1", "2", "3", "10", "20", "30", "40"]),
            ("1,234.5 and 1,234,", &["1234.5", "1234"]),
            ("1e6 1E+6 1.5e-3", &["1000000", "1000000", "0.0015"]),
            ("42px, 5x, 3rd and 0x", &["42", "5", "3", "0"]),
            ("3/4 and 12:30", &["3", "4", "12", "30"]),
            ("123456789012345678901234567890", &["123456789012345678901234567890"]),
        ] {
            assert_eq!(found(text), numbers, "{text}");
        }
    }

    #[test]
    fn words_with_digits_are_no_numbers() {
        for text in [
            "10^6",
            "10^-6",
            "2**10",
            "10\u{2076}",
            "1.5 × 10^6",
            "1.5x10^6",
            "1.5·10^-6",
            "0,123",
            "3,14",
            "12,5",
            "-1,5",
            "-0,5",
            "1.2.3",
            "v1.2.3-rc1",
            "1.2.3-4",
            "10.0.0.1",
            "1.234.567,89",
            "1.234,5",
            "2026-11-22",
            "2026-11-22T10:30:00Z",
            "22/11/2026",
            "10:30:15",
            "0x1F",
            "0b11",
        ] {
            assert_eq!(found(text), [] as [&str; 0], "{text}");
            assert_eq!(only(text), None, "{text}");
        }
        assert_eq!(found("10^6 is 1000000, 0,123 is not 7"), ["1000000", "7"]);
    }

    #[test]
    fn a_text_may_be_a_number_and_nothing_else() {
        for (text, number) in
            [(" 42. ", "42"), ("-1,000", "-1000"), ("\u{2212}5", "-5"), ("+.5", "0.5"), ("1e3", "1000")]
        {
            assert_eq!(only(text).unwrap().to_string(), number, "{text}");
        }
        for text in ["42 apples", "5%", "", "-", "4 2", "1,2"] {
            assert_eq!(only(text), None, "{text}");
        }
    }
}
