//! Gates on the evidence of a comparison: completed trials, and cases of the old arm with a score in the new
//! one.

use super::{Gate, Kind, SHOWN};
use crate::compare::coverage::{Trials, missing};
use crate::compare::join::Joined;
use crate::compare::side::Arm;
use crate::fold::CaseTrials;
use crate::judgement::tolerance;
use crate::rounding::{percent_beside, percent_bound};
use crate::statistics::gates::GateVerdict;
use crate::text::{plural, some_of};

/// Checks whether enough of an arm's planned trials have a score.
pub fn of_trials(least: f64, arm: &Arm) -> Gate {
    let count = |of: fn(&CaseTrials) -> u64| arm.cases.values().map(of).sum::<u64>();
    let lost = [
        (count(|it| it.errored + it.counted_errors), "errored"),
        (count(|it| it.ungraded), "ungraded"),
        (count(|it| it.not_run), "never run"),
    ];
    of_counts(least, arm.name.clone(), Trials::of(arm), &lost)
}

/// Checks the share of completed trials from their counts; `lost` lists how many trials were lost for which
/// reason.
pub fn of_counts(least: f64, arm: String, trials: Trials, lost: &[(u64, &str)]) -> Gate {
    let Trials { planned, completed } = trials;
    let enough = trials.share().is_some_and(|share| tolerance::reaches(share, least));
    let verdict = if enough { GateVerdict::Pass } else { GateVerdict::Inconclusive };
    let lost: Vec<String> = lost.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}")).collect();
    let lost = if lost.is_empty() { String::new() } else { format!(": {}", lost.join(", ")) };
    let text = match trials.share() {
        Some(share) => {
            let share = percent_beside(share, least);
            let least = percent_bound(least);
            format!("completed {completed} of {planned} planned trials ({share}{lost}), {least} required")
        }
        None => "all planned trials were skipped".to_owned(),
    };
    Gate { arm, column: None, kind: Kind::Completed, verdict, bound: Some(least), found: trials.share(), p: None, text }
}

/// Checks whether enough of the old arm's cases have a comparable score in the new one.
pub fn of_cases(least: f64, old: &Arm, new: &Arm, joined: &Joined<'_>) -> Gate {
    let (missing, all) = (missing(old, new, joined), old.cases.len());
    let share = (all > 0).then(|| (all - missing.len()) as f64 / all as f64);
    let enough = share.is_some_and(|share| tolerance::reaches(share, least));
    let verdict = if enough { GateVerdict::Pass } else { GateVerdict::Inconclusive };
    let names: Vec<String> = missing.iter().map(|(case, why)| format!("{case} ({why})")).collect();
    let gone = if names.is_empty() { String::new() } else { format!("; without: {}", some_of(&names, SHOWN)) };
    let text = match share {
        Some(share) => format!(
            "has a comparable score in {} of the {all} cases of the old side ({}), {} required{gone}",
            all - missing.len(),
            percent_beside(share, least),
            percent_bound(least)
        ),
        None => "the old side skipped all its cases".to_owned(),
    };
    Gate {
        arm: new.name.clone(),
        column: None,
        kind: Kind::Cases,
        verdict,
        bound: Some(least),
        found: share,
        p: None,
        text,
    }
}

/// Checks an arm that only the old side has: none of its cases has a score in the new side.
pub fn of_gone(least: f64, old: &Arm) -> Gate {
    let enough = tolerance::reaches(0.0, least);
    let text = format!(
        "only the old side has it, so 0 of its {} {} a score in the new side, {} required",
        plural(old.cases.len(), "case"),
        if old.cases.len() == 1 { "has" } else { "have" },
        percent_bound(least)
    );
    Gate {
        arm: old.name.clone(),
        column: None,
        kind: Kind::Cases,
        verdict: if enough { GateVerdict::Pass } else { GateVerdict::Inconclusive },
        bound: Some(least),
        found: Some(0.0),
        p: None,
        text,
    }
}
