//! Which cases of two arms can be compared, which cannot and why, and what a reader has to know of the rest.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use super::arm::{Arm, CaseFacts, CaseTrials, Side};

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

impl Paired<'_> {
    /// The new arm's mean less the old one's.
    pub fn delta(&self) -> f64 {
        self.new.score().unwrap_or_default() - self.old.score().unwrap_or_default()
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
    /// No trial of the old arm has a score.
    NoScoreInOld,
    /// No trial of the new arm has a score.
    NoScoreInNew,
}

/// Something that does not stop a comparison, and that its reader has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Doubt {
    /// What it is about.
    pub about: About,
    /// For people.
    pub text: String,
}

/// What a doubt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum About {
    /// The baseline was made from the run that is compared with it.
    SameRun,
    /// The manifests of a harness differ, or one changed in the middle of a run.
    Harness,
    /// What trials ran in differs.
    Sandbox,
    /// Nobody knows whether the trials of both met the same.
    Played,
    /// Another version of the agent played.
    Agent,
    /// Other judges were asked, or such as nobody has calibrated.
    Judges,
    /// Costs come from a price table.
    Prices,
    /// The runs were made by different versions of the program.
    Version,
    /// Several models answered in one arm, or others than before under the same name.
    Model,
    /// Harnesses and models that only one side has.
    Unmatched,
    /// Trials were errored.
    Errors,
    /// Trials could not be judged.
    Ungraded,
    /// Cases have different numbers of trials.
    Trials,
    /// Cases are left out.
    Unpaired,
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
        return no(Reason::OnlyInNew, "only the new one has it");
    };
    let (Some(now), Some(is)) = (new.cases.get(id), new_side.cases.get(id)) else {
        return no(Reason::OnlyInOld, "only the old one has it");
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

/// What a reader has to know of a comparison that can be made.
pub fn doubts(old: (&Side, &Arm), new: (&Side, &Arm), joined: &Joined<'_>) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let mut doubt = |about, text: String| doubts.push(Doubt { about, text });
    if old.0.baseline && old.0.run == new.0.run {
        doubt(About::SameRun, "the baseline was made from this very run".to_owned());
    }
    if !joined.unpaired.is_empty() {
        let mut reasons: Vec<(Reason, &str, usize)> = Vec::new();
        for case in &joined.unpaired {
            match reasons.iter_mut().find(|(reason, ..)| *reason == case.reason) {
                Some((.., count)) => *count += 1,
                None => reasons.push((case.reason, &case.text, 1)),
            }
        }
        for (_, text, count) in reasons {
            let cases = if count == 1 { "1 case is".to_owned() } else { format!("{count} cases are") };
            doubt(About::Unpaired, format!("{cases} left out: {text}"));
        }
    }
    let digest = |(side, arm): (&Side, &Arm)| side.harnesses.get(&arm.harness).cloned();
    if old.1.harness == new.1.harness && digest(old) != digest(new) {
        doubt(About::Harness, format!("the manifest of harness `{}` has changed", new.1.harness));
    }
    for (_, arm) in [old, new].iter().filter(|(_, arm)| arm.mixed) {
        let text = format!("{}: the manifest of harness `{}` changed between its trials", arm.name, arm.harness);
        doubt(About::Harness, text);
    }
    let untold = |facts: Option<&CaseFacts>| facts.is_none_or(|facts| facts.played.is_none());
    let of_both = |id: &str| untold(old.0.cases.get(id)) || untold(new.0.cases.get(id));
    let unknown = joined.cases.iter().filter(|case| (old.0.graded || new.0.graded) && of_both(case.id)).count();
    if unknown > 0 {
        let cases = if unknown == 1 { "1 case was".to_owned() } else { format!("{unknown} cases were") };
        doubt(About::Played, format!("{cases} graded again, and nobody knows whether both sides had met the same"));
    }
    let known = !old.1.sandboxes.is_empty() && !new.1.sandboxes.is_empty();
    if known && old.1.sandboxes != new.1.sandboxes {
        let words = |arm: &Arm| arm.sandboxes.iter().cloned().collect::<Vec<_>>().join(", ");
        let text = format!("the sandbox is not the same: {} before, {} now", words(old.1), words(new.1));
        doubt(About::Sandbox, text);
    }
    let some = |names: &BTreeSet<String>| names.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
    let known = !old.1.agents.is_empty() && !new.1.agents.is_empty();
    if old.1.harness == new.1.harness && known && old.1.agents != new.1.agents {
        let text = format!("the agent is not the same: {} before, {} now", some(&old.1.agents), some(&new.1.agents));
        doubt(About::Agent, text);
    }
    // One that asked nobody is no other judge: it had no key, or no grader that asks.
    if !old.1.judges.is_empty() && !new.1.judges.is_empty() && old.1.judges != new.1.judges {
        let text = format!("the judges are not the same: {} before, {} now", some(&old.1.judges), some(&new.1.judges));
        doubt(About::Judges, text);
    }
    let uncalibrated: BTreeSet<String> = old.1.uncalibrated.union(&new.1.uncalibrated).cloned().collect();
    if !uncalibrated.is_empty() {
        doubt(About::Judges, format!("scores rest on judges that nobody has calibrated: {}", some(&uncalibrated)));
    }
    for (_, arm) in [old, new] {
        let count = |of: fn(&CaseTrials) -> u64| arm.cases.values().map(of).sum::<u64>();
        if let priced @ 1.. = count(|it| it.priced) {
            let all = count(CaseTrials::trials);
            doubt(
                About::Prices,
                format!("{}: the cost of {priced} of {all} trials comes from a price table", arm.name),
            );
        }
    }
    if old.0.evals != new.0.evals {
        let text = format!("evals {} wrote the old one, {} the new one", old.0.evals, new.0.evals);
        doubt(About::Version, text);
    }
    let known = !old.1.models.is_empty() && !new.1.models.is_empty();
    if old.1.column == new.1.column && known && old.1.models != new.1.models {
        let text = format!("another model answered: {} before, {} now", some(&old.1.models), some(&new.1.models));
        doubt(About::Model, text);
    }
    for (_, arm) in [old, new] {
        if arm.models.len() > 1 {
            doubt(About::Model, format!("{}: several models answered: {}", arm.name, some(&arm.models)));
        }
        let count = |of: fn(&CaseTrials) -> u64| arm.cases.values().map(of).sum::<u64>();
        for (about, lost, what) in [
            (About::Errors, count(|it| it.errored), "errored and in no score"),
            (About::Ungraded, count(|it| it.ungraded), "not judged and in no score"),
        ] {
            if lost > 0 {
                doubt(about, format!("{}: {lost} of {} trials {what}", arm.name, count(CaseTrials::trials)));
            }
        }
    }
    let mut numbers: Vec<usize> =
        joined.cases.iter().flat_map(|case| [case.old.scores.len(), case.new.scores.len()]).collect();
    numbers.sort_unstable();
    if let (Some(fewest), Some(most)) = (numbers.first(), numbers.last())
        && fewest != most
    {
        doubt(About::Trials, format!("cases have from {fewest} to {most} trials with a score; each case counts once"));
    }
    doubts
}
