//! The quarantine of a case: until a day its verdicts are shown and do not count.

use serde::{Deserialize, Serialize};

use crate::values::Day;

/// The quarantine of a case. Until its last day the case's verdicts are shown and change no exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Quarantine {
    /// The last day of the quarantine, in UTC: `2027-01-31`.
    pub until: Day,
    /// The reason.
    pub why: String,
}

impl Quarantine {
    /// Returns true if the quarantine holds for a run that began at this time, in RFC 3339 and UTC. It does not hold if
    /// the time cannot be read.
    pub fn holds(&self, started: &str) -> bool {
        started.get(..10).and_then(|day| day.parse::<Day>().ok()).is_some_and(|day| day <= self.until)
    }
}

/// Returns the text of a case file without its quarantine. A file that is written as a map in braces stays as it is.
pub fn without(text: &str) -> String {
    around(text).map_or_else(|| text.to_owned(), |(before, after)| format!("{before}{after}"))
}

/// Returns true if two texts of a case file differ only in the quarantine, with the blank lines around it and at the end of the
/// file.
pub(super) fn is_all_that_differs(one: &str, other: &str) -> bool {
    match (around(one), around(other)) {
        (None, None) => one.trim_end() == other.trim_end(),
        (Some(parts), None) => is_joined_from(other, parts),
        (None, Some(parts)) => is_joined_from(one, parts),
        (Some(_), Some(parts)) => is_joined_from(&without(one), parts),
    }
}

/// Returns true if a text consists of two parts, with any number of blank lines between them.
fn is_joined_from(text: &str, (before, after): (&str, &str)) -> bool {
    let (before, after) = (before.trim_end(), after.trim_end());
    // Blank lines are left out, and an indent is kept.
    let after = match after.find(|c: char| !c.is_whitespace()) {
        Some(first) => &after[after[..first].rfind('\n').map_or(0, |end| end + 1)..],
        None => "",
    };
    let between = text.trim_end().strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
    let are_two = !before.is_empty() && !after.is_empty();
    between.is_some_and(|it| it.trim().is_empty() && (it.ends_with('\n') || !are_two))
}

/// Returns the parts of a text before and after its quarantine.
fn around(text: &str) -> Option<(&str, &str)> {
    let is_key = |line: &str| line.starts_with("quarantine:");
    let (mut start, mut end, mut at) = (None, 0, 0);
    for line in text.split_inclusive('\n') {
        let from = at;
        at += line.len();
        match start {
            None if is_key(line) => (start, end) = (Some(from), at),
            None => {}
            // Blank lines belong to the quarantine if it goes on after them, or if another one follows.
            Some(_) if line.trim().is_empty() => {}
            Some(_) if line.starts_with([' ', '\t']) || is_key(line) => end = at,
            Some(_) => break,
        }
    }
    Some((&text[..start?], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_day_still_counts() {
        let quarantine = Quarantine { until: "2027-01-31".parse().unwrap(), why: String::new() };
        assert!(quarantine.holds("2027-01-31T23:59:59Z"));
        assert!(!quarantine.holds("2027-02-01T00:00:00Z"));
        assert!(!quarantine.holds("yesterday"));
    }

    #[test]
    fn the_rest_of_a_file_stays() {
        let text = "prompt: x\nquarantine:\n  until: 2027-01-31\n  why: |\n    long\ngraders: []\n";
        assert_eq!(without(text), "prompt: x\ngraders: []\n");
        assert_eq!(without("a: 1\nquarantine: {until: x,\n  why: y}\n"), "a: 1\n");
        assert_eq!(without("a: 1\nquarantine:\n  why: |\n    x\n\n    y\n\nb: 2\n"), "a: 1\n\nb: 2\n");
    }

    #[test]
    fn a_quarantine_is_all_that_differs_in_any_layout() {
        let of = ["quarantine: {until: x, why: y}\n", "quarantine:\n  until: x\n  why: |\n    a\n\n    b\n"];
        for text in ["a: 1\nb:\n- c\n", "a: 1\nb:\n- c", "a: 1\n\nb:\n- c\n"] {
            for quarantine in of {
                for with in [
                    format!("a: 1\n{quarantine}b:\n- c\n"),
                    format!("a: 1\n\n{quarantine}\nb:\n- c\n"),
                    format!("{quarantine}\na: 1\nb:\n- c\n").replace("a: 1\n", &text[..text.find("b:").unwrap()]),
                ] {
                    assert!(is_all_that_differs(&with, text) && is_all_that_differs(text, &with), "{text:?} {with:?}");
                }
                let end = format!("{}\n\n{}", text.trim_end(), quarantine.trim_end());
                assert!(is_all_that_differs(&end, text), "{end:?}");
            }
        }
        let with = "a: 1\n\nquarantine: {until: x, why: y}\nb: 2\n";
        for other in ["a: 1b: 2\n", "a: 1\nb: 3\n", "a: 1\n  b: 2\n", "a: 1\n# c\nb: 2\n", "b: 2\n", "a: 1\n"] {
            assert!(!is_all_that_differs(with, other) && !is_all_that_differs(other, with), "{other:?}");
        }
        assert!(is_all_that_differs(with, &with.replace("x,", "z,")));
    }
}
