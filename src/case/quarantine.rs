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
    let mut inside = false;
    let kept = text.split_inclusive('\n').filter(|line| {
        inside = line.starts_with("quarantine:") || (inside && line.starts_with([' ', '\t']));
        !inside
    });
    kept.collect()
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
    }
}
