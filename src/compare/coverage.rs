//! The evidence that a comparison is based on: the share of planned trials that have a score, and the cases of
//! the old arm that have a comparable score in the new one. Pure.

use serde::Serialize;

use super::join::{Joined, Reason};
use super::side::Arm;
use crate::fold::CaseTrials;

/// The evidence that a comparison of two arms is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RestsOn {
    /// The old arm's trials.
    pub old: Trials,
    /// The new arm's trials.
    pub new: Trials,
    /// The number of the old arm's cases, without the cases that the arm skipped.
    pub cases_of_old: usize,
    /// The number of these cases that the gate `cases` counts as covered: those with a comparable score in the new arm, and
    /// those without a score in the old arm that have one in the new arm.
    pub cases: usize,
}

/// The trials of an arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trials {
    /// The number of planned trials, without skipped ones.
    pub planned: u64,
    /// The number of planned trials that have a score. An errored, ungraded or missing trial has none.
    pub completed: u64,
}

impl Trials {
    /// Counts the trials of an arm.
    pub fn of(arm: &Arm) -> Self {
        let count = |of: fn(&CaseTrials) -> u64| arm.cases.values().map(of).sum();
        Self { planned: count(CaseTrials::planned), completed: count(CaseTrials::completed) }
    }

    /// Returns the completed share of the planned trials, or `None` if none was planned.
    pub fn share(self) -> Option<f64> {
        (self.planned > 0).then(|| self.completed as f64 / self.planned as f64)
    }
}

impl RestsOn {
    /// Computes the evidence for a comparison of these arms.
    pub fn of(old: &Arm, new: &Arm, joined: &Joined<'_>) -> Self {
        let cases_of_old = old.cases.len();
        let cases = cases_of_old - missing(old, new, joined).len();
        Self { old: Trials::of(old), new: Trials::of(new), cases_of_old, cases }
    }
}

/// Returns the cases of the old arm that had no score in it and have one in the new arm. They cannot be compared, and nothing
/// of them can be lost.
pub fn gained<'a>(old: &Arm, new: &Arm, joined: &'a Joined<'_>) -> Vec<&'a str> {
    let is_gained = |case: &str| old.cases.contains_key(case) && is_scored(new, case);
    let gained = joined.unpaired.iter().filter(|it| it.reason == Reason::NoScoreInOld && is_gained(&it.case));
    gained.map(|it| &*it.case).collect()
}

fn is_scored(arm: &Arm, case: &str) -> bool {
    arm.cases.get(case).is_some_and(|case| !case.scores.is_empty())
}

/// Returns the cases of the old arm without a comparable score in the new one, each with the reason.
pub fn missing<'a>(old: &Arm, new: &Arm, joined: &'a Joined<'_>) -> Vec<(&'a str, &'a str)> {
    let is_missing = |case: &str, reason: Reason| match reason {
        Reason::OnlyInNew | Reason::QuarantinedInOld | Reason::SkippedInOld => false,
        // A case that had no score in the old arm cannot be lost if it has one now.
        Reason::NoScoreInOld => !is_scored(new, case),
        Reason::OnlyInOld
        | Reason::OtherDigest
        | Reason::OtherTask
        | Reason::Mixed
        | Reason::OtherLimits
        | Reason::OtherInteraction
        | Reason::Manual
        | Reason::Quarantined
        | Reason::SkippedInNew
        | Reason::NoScoreInNew => true,
    };
    let missing =
        joined.unpaired.iter().filter(|it| old.cases.contains_key(&it.case) && is_missing(&it.case, it.reason));
    missing.map(|it| (&*it.case, &*it.text)).collect()
}
