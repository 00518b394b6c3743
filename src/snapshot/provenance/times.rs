//! Dates, times and durations, in the forms in which programs write them.

use std::ops::Range;

use regex::Regex;

use super::forms::Form;
use super::signs::Signs;

patterns! {
    /// ISO 8601, also as in names of files: `2026-11-22T10:17:10Z`, `2026-11-22_10-17-10`.
    ISO = r"\d{4}-[01]\d-[0-3]\d[T _-][0-2]\d[:-]?[0-5]\d(?:[:-]?[0-6]\d(?:[.,]\d+)?)?(?:Z|\s?[+-][0-2]\d:?[0-5]\d\b)?";
    /// ISO 8601 without dashes: `20261122-101710`, `20261122T101710Z`, `20261122101710`.
    COMPACT = r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])[T_-]?(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d(?:[.,]?\d+)?)?(?:Z|[+-][0-2]\d:?[0-5]\d)?";
    /// `date`, `ctime`, `git log` and `ls -l`: `Sun Nov 22 10:17:10 UTC 2026`, `Sun Nov 22 10:17:10 2026 +0000`,
    /// `Nov 22 10:17`.
    MONTH_FIRST = r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {1,2})?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}[0-3]?\d,? {1,2}[0-2]?\d:[0-5]\d(?::[0-6]\d)?(?: [AP]M)?(?: [A-Z]{2,5} (?:19|20)\d{2}\b| (?:UTC|GMT)(?: (?:19|20)\d{2})?\b| (?:19|20)\d{2}\b(?: [+-]\d{4}\b)?| [+-]\d{2,4} (?:19|20)\d{2}\b)?";
    /// Mails and HTTP: `Sun, 22 Nov 2026 10:17:10 GMT`; with a full month, as in other locales of `date`.
    DAY_FIRST = r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?[0-3]?\d[ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:[ -](?:19|20)\d{2})?,? [0-2]?\d:[0-5]\d(?::[0-6]\d)?(?: [AP]M)?(?: [A-Z]{2,5} (?:19|20)\d{2}\b| (?:UTC|GMT|[ECMP][SD]T|CES?T)\b| [+-]\d{4}\b)?";
    DAY = r"(?:19|20)\d{2}-[01]\d-[0-3]\d";
    COMPACT_DAY = r"20[23]\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])";
    WRITTEN_DAY = r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:day|sday|nesday|rsday|urday)?,? )?(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)? {1,2}[0-3]?\d(?:st|nd|rd|th)?,? {1,2}(?:19|20)\d{2}|[0-3]?\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)? (?:19|20)\d{2})\b";
    CLOCK = r"\b(?P<hour>[0-2]?\d):[0-5]\d:[0-6]\d(?:[.,]\d+)?(?: ?[AP]M)?\b";
    /// The clock within a longer time.
    CLOCK_OF_TIME = r"[0-2]\d:[0-5]\d:[0-6]\d";
    /// `11/22/2026`, `22.11.2026`, `2026/11/22`.
    NUMERIC_DAY = r"(?P<before>^|[^\w./-])(?:(?P<one>\d{1,2})/(?P<two>\d{1,2})/(?:19|20)\d{2}|[0-3]?\d\.(?:0?[1-9]|1[0-2])\.(?:19|20)\d{2}|(?:19|20)\d{2}/(?:0?[1-9]|1[0-2])/[0-3]?\d)(?P<after>$|[^\w/.-]|\.(?:\s|$))";
    /// Seconds since 1970, from 2020 to 2033, or their thousandths, millionths and so on, if the line holds nothing
    /// else or a key names a time.
    EPOCH = r#"(?im)(?:^[ \t]*|\b(?:\w*(?:time|date|stamp|epoch)|ts|now|since|until|started|ended|created|updated|modified|expires|\w+_at|\w+At|at|exp|iat|nbf)["']?[ ]?[:=][ ]?["']?)(?P<time>1[6-9]\d{8}(?:\d{9}|\d{6}|\d{3}|\.\d+)?)(?P<after>["']?[ \t,;}\])]|["']?$)"#;
    /// A measured duration.
    DURATION = r"(?:\d+ ?(?:d|h|hrs?|hours?|m|mins?|minutes?),? ?)*\d+(?:\.\d+)?\s?(?:ms|µs|us|ns|s|secs?|seconds?|milliseconds?|mins?|minutes?|h|hrs?|hours?|m)\b";
}

/// A match in a text, with its form.
pub type Span = (Range<usize>, Form);

/// A pattern with the fact without which it finds nothing.
type Dated<'p> = (&'p Regex, Form, fn(&Signs<'_>) -> bool);

fn dated() -> [Dated<'static>; 9] {
    [
        (&MONTH_FIRST, Form::Time, |signs| has_clock(signs) && names_month(signs)),
        (&DAY_FIRST, Form::Time, |signs| has_clock(signs) && names_month(signs)),
        (&ISO, Form::Time, has_dash_of_day),
        (&COMPACT, Form::Time, has_compact_day),
        (&WRITTEN_DAY, Form::Date, names_month),
        (&DAY, Form::Date, has_dash_of_day),
        (&COMPACT_DAY, Form::Date, has_compact_day),
        (&CLOCK, Form::Time, has_clock),
        (&NUMERIC_DAY, Form::Date, |signs| signs.has("/") || signs.has(".")),
    ]
}

/// Returns true if the text may hold minutes after hours.
fn has_clock(signs: &Signs<'_>) -> bool {
    signs.has_pair(b':', |byte| matches!(byte, b'0'..=b'5'))
}

/// Returns true if the text may hold the dash before the number of a month.
fn has_dash_of_day(signs: &Signs<'_>) -> bool {
    signs.has_pair(b'-', |byte| matches!(byte, b'0' | b'1'))
}

/// Returns true if the text may hold a day without dashes. The last digits of its year may be others than those of ASCII.
fn has_compact_day(signs: &Signs<'_>) -> bool {
    signs.figures >= 8 || !signs.is_ascii()
}

fn names_month(signs: &Signs<'_>) -> bool {
    signs.has_word_of(|word| {
        matches!(
            word,
            b"Jan" | b"Feb" | b"Mar" | b"Apr" | b"May" | b"Jun" | b"Jul" | b"Aug" | b"Sep" | b"Oct" | b"Nov" | b"Dec"
        )
    })
}

/// Adds the dates and times of a text.
pub fn times(signs: &Signs<'_>, text: &str, spans: &mut Vec<Span>) {
    // The shortest date has six digits.
    if text.bytes().filter(u8::is_ascii_digit).nth(4).is_none() {
        return;
    }
    for (pattern, form, may_match) in dated() {
        if may_match(signs) {
            of_pattern(pattern, form, text, spans);
        }
    }
}

fn of_pattern(pattern: &Regex, form: Form, text: &str, spans: &mut Vec<Span>) {
    for found in pattern.find_iter(text) {
        let range = found.range();
        let inner = found.as_str().trim_matches(|c: char| !c.is_alphanumeric());
        let start = range.start + found.as_str().find(inner).unwrap_or(0);
        let range = start..start + inner.len();
        if is_alone(text, &range) {
            spans.push((range, form));
        }
    }
}

/// Adds seconds since 1970, if the text around them names a time.
pub fn seconds_since_1970(signs: &Signs<'_>, text: &str, spans: &mut Vec<Span>) {
    if may_hold_seconds(signs) {
        spans.extend(EPOCH.captures_iter(text).filter_map(|found| Some((found.name("time")?.range(), Form::Time))));
    }
}

/// Returns true if the text may hold a number of seconds since 1970. Digits may be others than those of ASCII, but for
/// the first two.
fn may_hold_seconds(signs: &Signs<'_>) -> bool {
    signs.has_pair(b'1', |byte| matches!(byte, b'6'..=b'9')) && (signs.figures >= 10 || !signs.is_ascii())
}

/// Adds measured durations.
pub fn durations(text: &str, spans: &mut Vec<Span>) {
    for part in may_be_durations(text) {
        // A character more, so that the end of a word is seen.
        let end = part.end + text[part.end..].chars().next().map_or(0, char::len_utf8);
        for found in DURATION.find_iter(&text[part.start..end]) {
            let range = part.start + found.start()..part.start + found.end();
            let before = text[..range.start].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) {
                spans.push((range, Form::Duration));
            }
        }
    }
}

/// Returns the parts of a text in which all durations are: digits, and the characters that may follow them.
fn may_be_durations(text: &str) -> impl Iterator<Item = Range<usize>> {
    let may = |c: char| {
        c.is_numeric()
            || c.is_whitespace()
            || matches!(c, 'c'..='e' | 'h' | 'i' | 'l'..='o' | 'r'..='u' | 'µ' | ',' | '.')
    };
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(char::is_numeric)?;
        let end = text[start..].find(|c: char| !may(c)).map_or(text.len(), |n| start + n);
        rest = end;
        Some(start..end)
    })
}

/// Returns true if digits are no part of a longer number or word. A name may continue after `_`; `[0:10:20]` is a
/// slice.
fn is_alone(text: &str, range: &Range<usize>) -> bool {
    let (before, after) = (text[..range.start].chars().next_back(), text[range.end..].chars().next());
    let goes_on = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let figures = text[range.clone()].bytes().all(|b| b.is_ascii_digit());
    let part_of_number = before == Some('.') && figures;
    let slice = before == Some('[') && after == Some(']');
    !goes_on(before) && !goes_on(after) && !part_of_number && !slice
}

/// Adds the day and the clock of a time that holds both.
pub fn parts(text: &str, spans: &mut Vec<Span>) {
    let part = |found: regex::Match<'_>| Some(found.range()).filter(|range| *range != (0..text.len()));
    let day = DAY.find(text).or_else(|| COMPACT_DAY.find(text)).and_then(part);
    spans.extend(day.map(|range| (range, Form::Date)));
    spans.extend(CLOCK_OF_TIME.find(text).and_then(part).map(|range| (range, Form::Time)));
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Compares what is found with what the patterns alone find.
    pub fn no_fact_excludes_a_time(text: &str) -> Result<(), TestCaseError> {
        let signs = Signs::of(text);
        for (pattern, form, may_match) in dated() {
            let mut found = Vec::new();
            of_pattern(pattern, form, text, &mut found);
            prop_assert!(found.is_empty() || may_match(&signs), "{pattern} in {text:?}: {found:?}");
        }
        prop_assert!(!EPOCH.is_match(text) || may_hold_seconds(&signs), "{text:?}");
        let mut found = Vec::new();
        durations(text, &mut found);
        let alone = |range: &Range<usize>| {
            let before = text[..range.start].chars().next_back();
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
        };
        let all: Vec<Range<usize>> = DURATION.find_iter(text).map(|found| found.range()).filter(alone).collect();
        prop_assert_eq!(found.into_iter().map(|(range, _)| range).collect::<Vec<_>>(), all, "{:?}", text);
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

        #[test]
        fn durations_are_found_in_parts_of_a_text(text in "[0-9 .,hmsd\nxzµé\u{661}]{0,24}") {
            no_fact_excludes_a_time(&text)?;
        }
    }

    #[test]
    fn durations_end_with_a_word() {
        let found = |text: &str| {
            let mut spans = Vec::new();
            durations(text, &mut spans);
            spans.into_iter().map(|(range, _)| text[range].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(found("in 1m 20s, é 3 ms → 5 minutes"), ["1m 20s", "3 ms", "5 minutes"]);
        assert_eq!(found("5mx 7sé 3µs 2\ns x4s"), ["3µs", "2\ns"]);
    }
}
