//! The evidence that a comparison is based on: the share of planned trials that have a score, and the cases of
//! the old arm that have a comparable score in the new one. Pure.

use serde::Serialize;

use super::join::{Joined, Reason, Unpaired};
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
    /// The number of the old arm's cases, without the cases that the arm skipped. A case of which a baseline has no results
    /// because of a quarantine counts if the new arm has no score of it.
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
        let cases_of_old = cases_of_old(old, new, joined);
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

/// Returns the number of cases of the old arm: those with results, and those that a baseline lacks because of a quarantine and
/// that have no score in the new arm.
pub fn cases_of_old(old: &Arm, new: &Arm, joined: &Joined<'_>) -> usize {
    let is_lacked = |it: &Unpaired| it.reason == Reason::QuarantinedInOld && !is_scored(new, &it.case);
    old.cases.len() + joined.unpaired.iter().filter(|it| is_lacked(it)).count()
}

fn is_scored(arm: &Arm, case: &str) -> bool {
    arm.cases.get(case).is_some_and(|case| !case.scores.is_empty())
}

/// Returns the cases of the old arm without a comparable score in the new one, each with the reason.
pub fn missing<'a>(old: &Arm, new: &Arm, joined: &'a Joined<'_>) -> Vec<(&'a str, &'a str)> {
    let is_missing = |case: &str, reason: Reason| match reason {
        Reason::OnlyInNew | Reason::SkippedInOld => false,
        // Such a case is no gap if it has a score now: a case without a score in the old arm cannot be lost, and the gate
        // `no-regressions` looks at one that a baseline lacks.
        Reason::NoScoreInOld | Reason::QuarantinedInOld => !is_scored(new, case),
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
    let is_of_old = |it: &Unpaired| old.cases.contains_key(&it.case) || it.reason == Reason::QuarantinedInOld;
    let missing = joined.unpaired.iter().filter(|it| is_of_old(it) && is_missing(&it.case, it.reason));
    missing.map(|it| (&*it.case, &*it.text)).collect()
}
