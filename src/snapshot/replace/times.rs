//! Dates and times, in the forms in which programs write them.

use std::borrow::Cow;

use super::chances::{and, between, patterns};

patterns! {
    /// As ISO writes them, and as they stand in names of files: `2026-11-22T10:17:10Z`, `2026-11-22_10-17-10`.
    ISO = r"\d{4}-[01]\d-[0-3]\d[T _-][0-2]\d[:-]?[0-5]\d(?:[:-]?[0-6]\d(?:[.,]\d+)?)?(?:Z|\s?[+-][0-2]\d:?[0-5]\d\b)?";
    /// The same without dashes: `20261122-101710`, `20261122T101710Z`, `20261122101710`.
    COMPACT = r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])[T_-]?(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d(?:[.,]?\d+)?)?(?:Z|[+-][0-2]\d:?[0-5]\d)?";
    /// `date`, `ctime`, `git log` and `ls -l`: `Sun Nov 22 10:17:10 UTC 2026`, `Sun Nov 22 10:17:10 2026 +0000`, `Nov 22 10:17`.
    MONTH_FIRST = r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? {1,2})?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}[0-3]?\d,? {1,2}[0-2]?\d:[0-5]\d(?::[0-6]\d)?(?: [AP]M)?(?: [A-Z]{2,5} (?:19|20)\d{2}\b| (?:UTC|GMT)(?: (?:19|20)\d{2})?\b| (?:19|20)\d{2}\b(?: [+-]\d{4}\b)?| [+-]\d{2,4} (?:19|20)\d{2}\b)?";
    /// Mails and HTTP: `Sun, 22 Nov 2026 10:17:10 GMT`; with a full month as other locales of `date` have it.
    DAY_FIRST = r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? )?[0-3]?\d[ -](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:[ -](?:19|20)?\d{2})?,? [0-2]?\d:[0-5]\d(?::[0-6]\d)?(?: [AP]M)?(?: [A-Z]{2,5} (?:19|20)\d{2}\b| (?:UTC|GMT|[ECMP][SD]T|CES?T)\b| [+-]\d{4}\b)?";
    DAY = r"(?:19|20)\d{2}-[01]\d-[0-3]\d";
    COMPACT_DAY = r"20[23]\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])";
    WRITTEN_DAY = r"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:day|sday|nesday|rsday|urday)?,? )?(?:(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)? {1,2}[0-3]?\d(?:st|nd|rd|th)?,? {1,2}(?:19|20)\d{2}|[0-3]?\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|tember|ober|ember)? (?:19|20)\d{2})\b";
    CLOCK = r"\b(?P<hour>[0-2]?\d):[0-5]\d:[0-6]\d(?:[.,]\d+)?(?: ?[AP]M)?\b";
    /// `11/22/2026`, `22.11.2026`, `2026/11/22`.
    NUMERIC_DAY = r"(?P<before>^|[^\w./-])(?:(?P<one>\d{1,2})/(?P<two>\d{1,2})/(?:19|20)\d{2}|[0-3]?\d\.(?:0?[1-9]|1[0-2])\.(?:19|20)\d{2}|(?:19|20)\d{2}/(?:0?[1-9]|1[0-2])/[0-3]?\d)(?P<after>$|[^\w/.-]|\.(?:\s|$))";
    /// A time without seconds, where a word or a date before it says what it is: `at 10:17`, and not `at 3:16`, which is
    /// a place in a file.
    HOUR = r"(?P<word>\b(?:[Aa]t|[Ss]ince) |\{date\},? )(?:(?:[01]\d|2[0-3]):[0-5]\d(?: ?[AaPp][Mm]\b)?|\d:[0-5]\d ?[AaPp][Mm]\b)(?: (?:UTC|GMT)\b)?(?P<after>[^\w:]|$)";
    /// Seconds since 1970, from 2020 to 2033, or thousandths, millionths and so on of them.
    EPOCH = r"1[6-9]\d{8}(?:\d{9}|\d{6}|\d{3}|\.\d+)?";
}

/// Dates and times become words; in prose also those that could be a path, a number or a place in a file elsewhere.
pub fn replaced(text: Cow<'_, str>, prose: bool) -> Cow<'_, str> {
    if !prose {
        return in_any_text(text);
    }
    let text = and(text, &NUMERIC_DAY, |found| {
        let number = |name: &str| found.name(name).and_then(|it| it.as_str().parse::<u8>().ok());
        // Day and month in either order, and with points the day first.
        let (one, two) = (number("one").unwrap_or(1), number("two").unwrap_or(1));
        let is_day = (1..=31).contains(&one.max(two)) && (1..=12).contains(&one.min(two));
        if is_day { format!("{}{{date}}{}", &found["before"], &found["after"]) } else { found[0].to_owned() }
    });
    let text = in_any_text(text);
    and(text, &HOUR, |found| format!("{}{{time}}{}", &found["word"], &found["after"]))
}

fn in_any_text(text: Cow<'_, str>) -> Cow<'_, str> {
    let text = and(text, &MONTH_FIRST, |_| "{time}".to_owned());
    let text = and(text, &DAY_FIRST, |_| "{time}".to_owned());
    let text = between(text, &ISO, |found, before, after| alone(&found[0], before, after, "{time}"));
    let text = between(text, &COMPACT, |found, before, after| alone(&found[0], before, after, "{time}"));
    let text = and(text, &WRITTEN_DAY, |_| "{date}".to_owned());
    let text = between(text, &DAY, |found, before, after| alone(&found[0], before, after, "{date}"));
    let text = between(text, &COMPACT_DAY, |found, before, after| alone(&found[0], before, after, "{date}"));
    let text = between(text, &CLOCK, |found, before, after| {
        // `[0:10:20]` takes a part of a list.
        let part = before == Some('[') && after == Some(']') && found["hour"].len() == 1;
        if part { found[0].to_owned() } else { "{time}".to_owned() }
    });
    between(text, &EPOCH, |found, before, after| alone(&found[0], before, after, "{time}"))
}

/// The word, where the figures are no part of a longer number or word. A name may go on after `_`.
fn alone(found: &str, before: Option<char>, after: Option<char>, word: &str) -> String {
    let goes_on = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    // A figure behind a point, or before one with more figures, is a part of a number.
    let is_part = before == Some('.') && found.bytes().all(|b| b.is_ascii_digit());
    if goes_on(before) || goes_on(after) || is_part { found.to_owned() } else { word.to_owned() }
}
