//! Dates, times and durations, in the forms in which programs write them.

use std::ops::Range;

use regex::Regex;

use super::forms::Form;

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

/// Adds the dates and times of a text.
pub fn times(text: &str, spans: &mut Vec<Span>) {
    // The shortest date has six digits.
    if text.bytes().filter(u8::is_ascii_digit).nth(4).is_none() {
        return;
    }
    let patterns: [(&Regex, Form); 9] = [
        (&MONTH_FIRST, Form::Time),
        (&DAY_FIRST, Form::Time),
        (&ISO, Form::Time),
        (&COMPACT, Form::Time),
        (&WRITTEN_DAY, Form::Date),
        (&DAY, Form::Date),
        (&COMPACT_DAY, Form::Date),
        (&CLOCK, Form::Time),
        (&NUMERIC_DAY, Form::Date),
    ];
    for (pattern, form) in patterns {
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
}

/// Adds seconds since 1970, if the text around them names a time.
pub fn seconds_since_1970(text: &str, spans: &mut Vec<Span>) {
    spans.extend(EPOCH.captures_iter(text).filter_map(|found| Some((found.name("time")?.range(), Form::Time))));
}

/// Adds measured durations.
pub fn durations(text: &str, spans: &mut Vec<Span>) {
    for found in DURATION.find_iter(text) {
        let before = text[..found.start()].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) {
            spans.push((found.range(), Form::Duration));
        }
    }
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
