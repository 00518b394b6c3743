//! The flag of a case over all of its trials: saturated or broken. Reports and comparisons show it.

use super::Tally;
use crate::case::CaseKind;

/// The result of all trials of a case, if it says something about the case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseFlag {
    /// Every planned trial of a capability case passed, two or more of each harness and model.
    Saturated,
    /// No trial passed, all were run, and two or more of one harness and model failed.
    Broken,
}

impl CaseFlag {
    /// Returns the flag of a case from its trials by harness and model.
    pub fn of(kind: CaseKind, trials: impl Iterator<Item = Tally> + Clone) -> Option<Self> {
        // One trial of a harness and model says nothing about the others that it could have been.
        let mut played = trials.filter(|tally| tally.trials > 0);
        let all_pass = played.clone().all(|tally| tally.trials > 1 && tally.passed == tally.trials);
        // An errored or ungraded trial could have passed; but a case that failed more than once and never passed needs a look.
        let none_passes = played.clone().all(|tally| tally.passed == 0 && tally.not_run == 0);
        match kind {
            _ if played.clone().next().is_none() => None,
            CaseKind::Capability if all_pass => Some(Self::Saturated),
            _ if none_passes && played.any(|tally| tally.failed > 1) => Some(Self::Broken),
            _ => None,
        }
    }
}
