//! Which cases of two arms can be compared, and which cannot and why.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::side::{Arm, CaseFacts, CaseTrials, Side};

/// The policy under which a person answers: no two runs of it are alike.
const MANUAL: &str = "manual";

/// A case that both arms have scores of.
#[derive(Debug, Clone)]
pub struct Paired<'a> {
    /// Its id.
    pub id: &'a str,
    /// What it is.
    pub facts: &'a CaseFacts,
    /// What the old arm did.
    pub old: &'a CaseTrials,
    /// What the new arm did.
    pub new: &'a CaseTrials,
}

/// Differences up to this are rounding.
pub(super) const SAME: f64 = 1e-9;

impl Paired<'_> {
    /// The new arm's mean less the old one's; what is rounding alone is none.
    pub fn delta(&self) -> f64 {
        let delta = self.new.score().unwrap_or_default() - self.old.score().unwrap_or_default();
        if delta.abs() <= SAME { 0.0 } else { delta }
    }
}

/// A case that is left out, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Unpaired {
    /// Its id.
    pub case: String,
    /// Why.
    pub reason: Reason,
    /// The same for people.
    pub text: String,
}

/// Why a case is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Only the old arm has it.
    OnlyInOld,
    /// Only the new arm has it.
    OnlyInNew,
    /// The case, its graders or its files are not the same.
    OtherDigest,
    /// Its trials met something else than it says now: they were graded again, or a policy was changed.
    OtherTask,
    /// It changed between the trials of one side.
    Mixed,
    /// It ran under other limits.
    OtherLimits,
    /// Another policy answered.
    OtherInteraction,
    /// A person answered.
    Manual,
    /// The old arm skipped it: its harness cannot do what the case requires.
    SkippedInOld,
    /// The new arm skipped it.
    SkippedInNew,
    /// No trial of the old arm has a score.
    NoScoreInOld,
    /// No trial of the new arm has a score.
    NoScoreInNew,
}

impl Reason {
    /// Whether the case could have been compared, had there been scores.
    pub fn is_without_score(self) -> bool {
        matches!(self, Reason::NoScoreInOld | Reason::NoScoreInNew | Reason::SkippedInOld | Reason::SkippedInNew)
    }

    /// Whether it is unknown what the new arm would have come to.
    pub fn is_open_in_new(self) -> bool {
        matches!(self, Reason::NoScoreInNew | Reason::SkippedInNew)
    }
}

/// The cases of two arms.
#[derive(Debug)]
pub struct Joined<'a> {
    /// Those that can be compared, in the order of their ids.
    pub cases: Vec<Paired<'a>>,
    /// Those that cannot.
    pub unpaired: Vec<Unpaired>,
}

/// Joins two arms by case.
pub fn join<'a>(old: (&'a Side, &'a Arm), new: (&'a Side, &'a Arm)) -> Joined<'a> {
    let ids: BTreeSet<&String> = old.1.cases.keys().chain(new.1.cases.keys()).collect();
    let mut joined = Joined { cases: Vec::new(), unpaired: Vec::new() };
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
    let (Some(before), Some(was)) = (old.cases.get(id), old_side.cases.get(id)) else {
        return match old.skipped.contains(id) {
            true => no(Reason::SkippedInOld, "the old one skipped it"),
            false => no(Reason::OnlyInNew, "only the new one has it"),
        };
    };
    let (Some(now), Some(is)) = (new.cases.get(id), new_side.cases.get(id)) else {
        return match new.skipped.contains(id) {
            true => no(Reason::SkippedInNew, "the new one skipped it"),
            false => no(Reason::OnlyInOld, "only the old one has it"),
        };
    };
    let asked = |arm: &Arm| arm.told.as_ref().is_some_and(|told| told.manual.contains(id));
    if was.digest != is.digest {
        return no(Reason::OtherDigest, "the case, its graders or its files have changed");
    }
    if was.limits != is.limits {
        return Err((Reason::OtherLimits, format!("other limits: {} before, {} now", was.limits, is.limits)));
    }
    if was.interaction == MANUAL || is.interaction == MANUAL || asked(old) || asked(new) {
        return no(Reason::Manual, "a person answered the agent, which is not the same twice");
    }
    if was.interaction != is.interaction {
        let text = format!("another policy: {} before, {} now", was.interaction, is.interaction);
        return Err((Reason::OtherInteraction, text));
    }
    if was.mixed || is.mixed {
        return no(Reason::Mixed, "it changed while one of the runs was going on, so its trials are not alike");
    }
    if was.played.is_some() && is.played.is_some() && was.played != is.played {
        let text = "its agents met something else: another prompt, workspace, environment, policy or limits";
        return no(Reason::OtherTask, text);
    }
    if before.scores.is_empty() {
        return no(Reason::NoScoreInOld, "no trial of the old one has a score");
    }
    if now.scores.is_empty() {
        return no(Reason::NoScoreInNew, "no trial of the new one has a score");
    }
    Ok(Paired { id, facts: is, old: before, new: now })
}
