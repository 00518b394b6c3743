//! Small values in YAML files: durations, shares, globs, regular expressions. Each is parsed when it is read.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use globset::{GlobBuilder, GlobMatcher};
use regex::Regex;
#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

mod path_glob;
mod regex_once;

pub use path_glob::{Below, PathGlob, escaped_glob, is_plain};
use regex_once::RegexOnce;

/// The longest duration that can be written, in seconds: 365 days. Deadlines are calculated as "now" plus a duration,
/// which has no value for much longer ones.
const MAX_SECONDS: f64 = 365.0 * 86_400.0;

/// A duration of at most 365 days: `500ms`, `2s`, `5m`, `1h30m`; a bare number is in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a length of time; write it like 500ms, 90s, 5m or 1h30m");
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(wrong());
        }
        let of = |seconds: f64| {
            if seconds > MAX_SECONDS {
                return Err(format!("`{text}` is more than 365 days, the longest time that can be set"));
            }
            Duration::try_from_secs_f64(seconds).map(Time).map_err(|_| wrong())
        };
        if let Ok(seconds) = rest.parse::<f64>() {
            return of(seconds);
        }
        let mut total = 0.0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
            let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            total += number
                * match &rest[..letters] {
                    "ms" => 0.001,
                    "s" | "sec" => 1.0,
                    "m" | "min" => 60.0,
                    "h" => 3600.0,
                    "d" => 86_400.0,
                    _ => return Err(wrong()),
                };
            rest = rest[letters..].trim_start();
        }
        of(total)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        match ms {
            0 => f.write_str("0s"),
            _ if ms.is_multiple_of(3_600_000) => write!(f, "{}h", ms / 3_600_000),
            _ if ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            _ if ms.is_multiple_of(1000) => write!(f, "{}s", ms / 1000),
            _ => write!(f, "{ms}ms"),
        }
    }
}

/// A share from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Fraction(f64);

impl Fraction {
    /// The share 0.
    pub const ZERO: Fraction = Fraction(0.0);
    /// The share 1.
    pub const ONE: Fraction = Fraction(1.0);

    /// Makes a share, or returns `None` if the value is outside 0 to 1.
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }

    /// Returns `part` divided by `whole`; 1 if both are 0.
    pub fn of(part: usize, whole: usize) -> Self {
        if whole == 0 { Self::ONE } else { Self((part as f64 / whole as f64).clamp(0.0, 1.0)) }
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Fraction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number from 0 to 1"))?;
        Self::new(number).ok_or_else(|| format!("`{text}` is not within 0 and 1"))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Returns the current time in RFC 3339 and UTC, with milliseconds.
pub fn now_text() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// A day of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(jiff::civil::Date);

impl Day {
    /// Returns the current day in UTC.
    pub fn today() -> Self {
        Self(jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date())
    }
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_shaped = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let date = text.parse::<jiff::civil::Date>().ok().filter(|_| is_shaped);
        date.map(Self).ok_or_else(|| format!("`{text}` is not a date; write it as year, month and day: 2027-01-31"))
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Returns true if a character reorders or hides text, or is invisible.
pub fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{80}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}'..='\u{ffff}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Returns true if a character only selects a variant of the character before it.
pub fn is_variation(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// A regular expression, unanchored.
#[derive(Debug, Clone)]
pub struct Pattern(pub RegexOnce);

impl Pattern {
    /// Returns true if the pattern is found in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns true if the pattern is found in every text, so that finding it shows nothing: it needs no
    /// character at the beginning or at the end of a text, as `(ok)?` and `^(ok)?`. A pattern for the whole text, such as `^$` or
    /// `\A[^!]*\z`, is never one, nor is one that says plainly that any text will do, such as `.*`.
    pub fn is_in_any_text(&self) -> bool {
        const ANY: [&str; 5] = [".*", "(?s).*", "^.*", ".*$", r"[\s\S]*"];
        if ANY.contains(&self.0.as_str()) {
            return false;
        }
        let is_empty_with = |kept| {
            let without = Regex::new(&without_assertions(self.0.as_str(), kept));
            without.is_ok_and(|without| without.is_match(""))
        };
        self.is_match("") && [["^", "\\A"], ["$", "\\z"]].into_iter().any(is_empty_with)
    }

    /// Returns true if the pattern is found in each text that holds one in which it is found: it has no assertion about what comes
    /// before or behind a place, such as `^`, `$` or `\b`.
    pub fn is_found_in_longer_texts(&self) -> bool {
        self.assertions().is_some_and(|assertions| assertions.is_empty())
    }

    /// Returns true if the pattern is found in each text that begins or ends with more than this one. An assertion such as `\b` or
    /// `(?m)^` sees only the characters beside a place, so it holds on if the text has them. `^` without `(?m)` does not.
    pub fn holds_in_longer_texts(&self, text: &str) -> bool {
        use regex_syntax::hir::Look;
        match self.assertions() {
            Some(assertions) if assertions.is_empty() => self.is_match(text),
            Some(assertions) if !assertions.contains(Look::Start) && !assertions.contains(Look::End) => {
                let second = text.chars().next().map_or(0, char::len_utf8);
                self.0.shortest_match_at(text, second).is_some_and(|end| second > 0 && end < text.len())
            }
            _ => false,
        }
    }

    /// Returns true if the pattern has an assertion about the beginning or the end of the whole text: `^`, `$`, `\A` or `\z`,
    /// without `(?m)`.
    pub fn has_anchor_of_whole_text(&self) -> bool {
        use regex_syntax::hir::Look;
        self.assertions().is_none_or(|found| found.contains(Look::Start) || found.contains(Look::End))
    }

    fn assertions(&self) -> Option<regex_syntax::hir::LookSet> {
        regex_syntax::parse(self.0.as_str()).ok().map(|parsed| parsed.properties().look_set())
    }

    /// Returns the match of the first group in the text.
    pub fn first_group<'a>(&self, text: &'a str) -> Option<&'a str> {
        Some(self.0.captures(text)?.get(1)?.as_str())
    }
}

/// Returns a pattern in which each assertion, such as `\b`, is replaced by a class without characters, which is never found.
/// Those in `kept` stay.
fn without_assertions(pattern: &str, kept: [&str; 2]) -> String {
    const ASSERTIONS: [&str; 8] = ["^", "$", "\\A", "\\z", "\\b", "\\B", "\\<", "\\>"];
    let mut plain = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while !rest.is_empty() {
        let is_pair = rest.starts_with('\\') || rest.starts_with("[^");
        let size: usize = rest.chars().take(if is_pair { 2 } else { 1 }).map(char::len_utf8).sum();
        let (token, after) = rest.split_at(size);
        let is_replaced = ASSERTIONS.contains(&token) && !kept.contains(&token);
        plain.push_str(if is_replaced { "[a&&b]" } else { token });
        rest = after;
    }
    plain
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        RegexOnce::new(text).map(Pattern).map_err(|error| {
            let error = error.to_string();
            let short = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            format!("`{text}` is not a regular expression: {short}")
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// A glob for names, where `*` matches anything.
#[derive(Debug, Clone)]
pub struct NameGlob(GlobMatcher);

impl NameGlob {
    pub fn is_match(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl FromStr for NameGlob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let glob =
            GlobBuilder::new(text).literal_separator(false).backslash_escape(true).empty_alternates(true).build();
        glob.map(|glob| NameGlob(glob.compile_matcher())).map_err(|e| format!("`{text}` is not a glob: {}", e.kind()))
    }
}

impl fmt::Display for NameGlob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.glob().glob())
    }
}

impl PartialEq for NameGlob {
    fn eq(&self, other: &Self) -> bool {
        self.0.glob() == other.0.glob()
    }
}

/// Implements serde and the schema for a value that is written as a text (or, for numbers, as a number). A
/// regular expression or a glob is read as text even if YAML would see a number: `1.10` is not `1.1`.
macro_rules! written_as_text {
    ($type:ty, $read:ident, $name:literal, $schema:tt) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TextVisitor;
                impl Visitor<'_> for TextVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($name)
                    }

                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }

                    fn visit_u64<E: de::Error>(self, number: u64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }

                    fn visit_i64<E: de::Error>(self, number: i64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }

                    fn visit_f64<E: de::Error>(self, number: f64) -> Result<$type, E> {
                        number.to_string().parse().map_err(E::custom)
                    }
                }
                deserializer.$read(TextVisitor)
            }
        }

        #[cfg(test)]
        impl JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

written_as_text!(Time, deserialize_any, "a length of time such as 500ms, 90s or 5m", {
    "type": ["string", "number"],
    "description": "a length of time: 500ms, 90s, 5m, 1h30m; a bare number is seconds; at most 365 days"
});
written_as_text!(Fraction, deserialize_any, "a number from 0 to 1", {"type": "number", "minimum": 0, "maximum": 1});
written_as_text!(Day, deserialize_str, "a date", {"type": "string", "format": "date"});
written_as_text!(Pattern, deserialize_str, "a regular expression", {"type": "string", "format": "regex"});
written_as_text!(PathGlob, deserialize_str, "a glob", {"type": "string", "description": "a glob: `*` stays within a folder, `**` crosses"});
written_as_text!(NameGlob, deserialize_str, "a glob", {"type": "string", "description": "a glob: `*` is anything"});

impl Serialize for Fraction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

macro_rules! serialized_as_text {
    ($($type:ty),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )*};
}

serialized_as_text!(Time, Day, Pattern, PathGlob, NameGlob);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, ms) in [("500ms", 500), ("90s", 90_000), ("5m", 300_000), ("1h30m", 5_400_000), ("2", 2000)] {
            let time: Time = text.parse().unwrap();
            assert_eq!(time.0.as_millis(), ms, "{text}");
            assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        }
        for text in ["", "m", "5 parsecs", "-3s", "1e99h", "nan"] {
            assert!(text.parse::<Time>().is_err(), "{text}");
        }
        assert_eq!("365d".parse::<Time>().unwrap().to_string(), "8760h");
        for text in ["366d", "1e19", "inf", "364d24h1ms", "31536001"] {
            assert!(text.parse::<Time>().unwrap_err().contains("365 days"), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_is_in_any_text_is_known() {
        let is_in_any = |text: &str| text.parse::<Pattern>().unwrap().is_in_any_text();
        let any =
            ["(?i)(fixed|done|)", "[0-9]*", "(ok)?", "^", "$", r"\s*", r"^[^!]*", r"[$^]*\z", r"(\bok\b)?", "^|$"];
        for text in any {
            assert!(is_in_any(text), "{text}");
        }
        let of_whole_text =
            [r"(?s)\A.{0,280}\z", r"^[^!]*$", r"\A[\x00-\x7F]*\z", r"\A[^\r]*\z", r"^\s*$", "^(yes|no)?$"];
        for text in [".*", "(?s).*", "^$", r"\A\z", "(?m)^$", ".+", ".", r"\b", r"\^?\$", "ok", "(?s)."]
            .into_iter()
            .chain(of_whole_text)
        {
            assert!(!is_in_any(text), "{text}");
        }
    }

    #[test]
    fn a_pattern_without_assertions_is_found_in_longer_texts() {
        let stays = |text: &str| text.parse::<Pattern>().unwrap().is_found_in_longer_texts();
        for text in ["ok", "[^x]+y", "(?i)a.*b", r"\^ok\$", "a{2,3}", "[$^]", r"\d+ tests"] {
            assert!(stays(text), "{text}");
        }
        for text in ["^ok", "ok$", r"\bok", r"\Bok", r"\Aok", r"ok\z", "(?m)ok$", "a|^b", "(^)?ok", r"\b{start}ok"] {
            assert!(!stays(text), "{text}");
        }
    }

    #[test]
    fn a_match_holds_in_longer_texts_if_it_touches_no_end_of_the_known_one() {
        let holds = |pattern: &str, text: &str| pattern.parse::<Pattern>().unwrap().holds_in_longer_texts(text);
        for (pattern, text) in [
            ("41", "41"),
            (r"\b41\b", "It is 41 now."),
            (r"(?m)^test result: ok", "run\ntest result: ok. 3 passed"),
            (r"(?m)^test result: ok.*", "run\ntest result: ok"),
            (r"(?m)^ok$", "ok\nok\nok"),
            (r"\Bk", "ok"),
            (r"\bé\b", "é é é"),
        ] {
            // `.*` needs nothing of what it matches.
            let is_at_end = text.ends_with("result: ok") || pattern == r"\Bk";
            assert_eq!(holds(pattern, text), !is_at_end, "{pattern}");
        }
        for (pattern, text) in [
            ("^It is", "\nIt is 41"),
            ("ok$", "ok\n"),
            (r"\b41\b", "41 now"),
            (r"\b41\b", "now 41"),
            (r"\b", ""),
            ("x", "y"),
        ] {
            assert!(!holds(pattern, text), "{pattern}");
        }
    }

    #[test]
    fn an_anchor_of_the_whole_text_is_known() {
        let has_one = |text: &str| text.parse::<Pattern>().unwrap().has_anchor_of_whole_text();
        for text in ["^ok", "ok$", r"\Aok", r"ok\z", "a|^b", r"\bok$"] {
            assert!(has_one(text), "{text}");
        }
        for text in ["ok", r"\bok\b", "(?m)^ok$", r"\^ok\$", "[$^]"] {
            assert!(!has_one(text), "{text}");
        }
    }

    #[test]
    fn a_date_has_one_form() {
        for text in ["2027-02-30", "27-01-31", "2027-1-31", "20270131", "2027-01-31T00:00"] {
            assert!(text.parse::<Day>().is_err(), "{text}");
        }
    }
}
