//! Pairs the cases of two arms: which can be compared, and which cannot and why.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::side::{Arm, CaseFacts, Side};
use crate::case::digest::is_same;
use crate::fold::CaseTrials;
use crate::judgement::tolerance;

/// The policy under which a person answers. No two such runs are comparable.
const MANUAL: &str = "manual";

/// A case with scores in both arms.
#[derive(Debug, Clone)]
pub struct Paired<'a> {
    /// The case's id.
    pub id: &'a str,
    /// The case's properties.
    pub facts: &'a CaseFacts,
    /// The old arm's trials.
    pub old: &'a CaseTrials,
    /// The new arm's trials.
    pub new: &'a CaseTrials,
}

/// Differences up to this are rounding.
pub const SAME: f64 = tolerance::OF_SCORES;

impl Paired<'_> {
    /// Returns the new arm's mean minus the old one's; a difference of rounding size is 0.
    pub fn delta(&self) -> f64 {
        let delta = self.new.score().unwrap_or_default() - self.old.score().unwrap_or_default();
        if delta.abs() <= SAME { 0.0 } else { delta }
    }
}

/// A case that is left out, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unpaired {
    /// The case's id.
    pub case: String,
    /// The code of the reason why the case is not compared.
    pub reason: Reason,
    /// The reason as text.
    pub text: String,
}

/// The reason why a case is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Only the old arm has the case.
    OnlyInOld,
    /// Only the new arm has the case.
    OnlyInNew,
    /// The case, its graders or its files differ.
    OtherDigest,
    /// The trials were given another task than the case states now: they were graded again, or a policy was
    /// changed.
    OtherTask,
    /// The case changed between the trials of one side.
    Mixed,
    /// The limits differ.
    OtherLimits,
    /// The interaction policies differ.
    OtherInteraction,
    /// A person answered the permission requests of a side.
    Manual,
    /// The case is in quarantine.
    Quarantined,
    /// The baseline has no results of the case, because the case was in quarantine when the baseline was set.
    QuarantinedInOld,
    /// The old arm skipped the case: its harness lacks a capability that the case requires.
    SkippedInOld,
    /// The new arm skipped the case.
    SkippedInNew,
    /// No trial of the old arm has a score.
    NoScoreInOld,
    /// No trial of the new arm has a score.
    NoScoreInNew,
}

impl Reason {
    /// Returns true if the case could have been compared if it had scores.
    pub fn is_without_score(self) -> bool {
        matches!(self, Reason::NoScoreInOld | Reason::NoScoreInNew | Reason::SkippedInOld | Reason::SkippedInNew)
    }

    /// Returns true if the outcome in the new arm is unknown.
    pub fn is_open_in_new(self) -> bool {
        matches!(self, Reason::NoScoreInNew | Reason::SkippedInNew)
    }
}

/// The cases of two arms.
#[derive(Debug)]
pub struct Joined<'a> {
    /// The cases that can be compared, in the order of their ids.
    pub cases: Vec<Paired<'a>>,
    /// The cases that cannot be compared.
    pub unpaired: Vec<Unpaired>,
}

impl<'a> Joined<'a> {
    /// Returns the cases of the arms without some of those that can be compared.
    pub fn without(&self, cases: &[&str]) -> Joined<'a> {
        let rest = self.cases.iter().filter(|case| !cases.contains(&case.id)).cloned();
        Joined { cases: rest.collect(), unpaired: self.unpaired.clone() }
    }

    /// Returns the names of the cases in quarantine.
    pub fn quarantined(&self) -> impl Iterator<Item = &str> {
        self.unpaired.iter().filter(|it| it.reason == Reason::Quarantined).map(|it| &*it.case)
    }

    /// Returns true if the baseline has nothing to compare with, because all cases were in quarantine when it was set.
    pub fn is_quarantined_in_old(&self) -> bool {
        let is_lacked = |it: &Unpaired| it.reason == Reason::QuarantinedInOld;
        let is_aside = |it: &Unpaired| is_lacked(it) || it.reason == Reason::Quarantined;
        self.cases.is_empty() && self.unpaired.iter().any(is_lacked) && self.unpaired.iter().all(is_aside)
    }
}

/// Pairs the cases of two arms.
pub fn join<'a>(old: (&'a Side, &'a Arm), new: (&'a Side, &'a Arm)) -> Joined<'a> {
    let quarantined: BTreeMap<&String, &String> = old.0.quarantined.iter().chain(&new.0.quarantined).collect();
    let of_arms = old.1.cases.keys().chain(old.1.left_out.keys()).chain(new.1.cases.keys());
    let ids: BTreeSet<&String> = of_arms.filter(|id| !quarantined.contains_key(id)).collect();
    let mut joined = Joined { cases: Vec::new(), unpaired: Vec::new() };
    for (id, text) in quarantined {
        joined.unpaired.push(Unpaired { case: id.clone(), reason: Reason::Quarantined, text: text.clone() });
    }
    for id in ids {
        match pair(id, old, new) {
            Ok(paired) => joined.cases.push(paired),
            Err((reason, text)) => joined.unpaired.push(Unpaired { case: id.clone(), reason, text }),
        }
    }
    joined
}

fn pair<'a>(
    id: &'a str,
    (old_side, old): (&'a Side, &'a Arm),
    (new_side, new): (&'a Side, &'a Arm),
) -> Result<Paired<'a>, (Reason, String)> {
    let no = |reason, text: &str| Err((reason, text.to_owned()));
    let (Some(before), Some(old_facts)) = (old.cases.get(id), old_side.cases.get(id)) else {
        return match old.skipped.contains(id) {
            true => no(Reason::SkippedInOld, "the old side skipped it"),
            false if old.left_out.contains_key(id) => {
                let now = match new.cases.contains_key(id) {
                    true => "",
                    false if new.skipped.contains(id) => ", and the new side skipped it",
                    false => ", and the new side does not have it",
                };
                let why = "the baseline has no results of it, because it was in quarantine when the baseline was set";
                Err((Reason::QuarantinedInOld, format!("{why}{now}")))
            }
            false => no(Reason::OnlyInNew, "only the new side has it"),
        };
    };
    let (Some(now), Some(new_facts)) = (new.cases.get(id), new_side.cases.get(id)) else {
        return match new.skipped.contains(id) {
            true => no(Reason::SkippedInNew, "the new side skipped it"),
            false => no(Reason::OnlyInOld, "only the old side has it"),
        };
    };
    let asked = |arm: &Arm| arm.details.as_ref().is_some_and(|details| details.manual.contains(id));
    if !is_same(&old_facts.digest, &new_facts.digest) {
        return no(Reason::OtherDigest, "the case, its graders or its files have changed");
    }
    if old_facts.limits != new_facts.limits {
        return Err((
            Reason::OtherLimits,
            format!("the limits differ: {} before, {} now", old_facts.limits, new_facts.limits),
        ));
    }
    if old_facts.interaction == MANUAL || new_facts.interaction == MANUAL || asked(old) || asked(new) {
        return no(Reason::Manual, "a person answered the agent, which is not repeatable");
    }
    if old_facts.interaction != new_facts.interaction {
        let text = format!("the policy differs: {} before, {} now", old_facts.interaction, new_facts.interaction);
        return Err((Reason::OtherInteraction, text));
    }
    if old_facts.mixed || new_facts.mixed {
        return no(Reason::Mixed, "it changed during one of the runs, so its trials are not comparable");
    }
    if old_facts
        .played
        .as_ref()
        .zip(new_facts.played.as_ref())
        .is_some_and(|(old_facts, new_facts)| !is_same(old_facts, new_facts))
    {
        let text = "its agents had other inputs: another prompt, workspace, environment, policy or limits";
        return no(Reason::OtherTask, text);
    }
    if before.scores.is_empty() {
        return no(Reason::NoScoreInOld, "no trial of the old side has a score");
    }
    if now.scores.is_empty() {
        return no(Reason::NoScoreInNew, "no trial of the new side has a score");
    }
    Ok(Paired { id, facts: new_facts, old: before, new: now })
}
