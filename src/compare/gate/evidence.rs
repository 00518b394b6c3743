//! The gate on the cases of a comparison: enough cases of the old arm have a score in the new one.

use super::{Gate, Kind, MAX_NAMES};
use crate::compare::coverage::{cases_of_old, gained, missing};
use crate::compare::join::{Joined, Reason};
use crate::compare::side::Arm;
use crate::judgement::tolerance;
use crate::rounding::{percent_beside, percent_bound};
use crate::statistics::gates::GateVerdict;
use crate::text::{plural, some_of};

/// Checks whether enough of the old arm's cases have a comparable score in the new one.
pub fn of_cases(least: f64, old: &Arm, new: &Arm, joined: &Joined<'_>) -> Gate {
    let (missing, all) = (missing(old, new, joined), cases_of_old(old, new, joined));
    let share = (all > 0).then(|| (all - missing.len()) as f64 / all as f64);
    let enough = share.is_some_and(|share| tolerance::reaches(share, least));
    let verdict = if enough { GateVerdict::Pass } else { GateVerdict::Inconclusive };
    let gained = gained(old, new, joined);
    let no_gap = match gained.len() {
        0 => String::new(),
        count => {
            format!(
                ", and {} had no score before, which is no gap: {}",
                plural(count, "case"),
                some_of(&gained, MAX_NAMES)
            )
        }
    };
    let names: Vec<String> = missing.iter().map(|(case, why)| format!("{case} ({why})")).collect();
    let lacking = if names.is_empty() { String::new() } else { format!("; without: {}", some_of(&names, MAX_NAMES)) };
    // They are no gap, but nothing shows whether one of them is lost.
    let is_added = |reason: Reason| matches!(reason, Reason::OnlyInNew | Reason::QuarantinedInOld);
    let is_missing = |id: &str| missing.iter().any(|(case, _)| *case == id);
    let added = joined.unpaired.iter().filter(|it| is_added(it.reason) && !is_missing(&it.case));
    let added: Vec<&str> = added.map(|it| &*it.case).collect();
    let added = match added.is_empty() {
        true => String::new(),
        false => format!("; not compared, without results on the old side: {}", some_of(&added, MAX_NAMES)),
    };
    let text = match share {
        Some(share) => format!(
            "has a comparable score in {} of the {all} cases of the old side{no_gap} ({}), {} required{lacking}{added}",
            all - missing.len() - gained.len(),
            percent_beside(share, least),
            percent_bound(least)
        ),
        None => "all cases of the old side were skipped or in quarantine".to_owned(),
    };
    Gate { bound: Some(least), found: share, ..Gate::new(new.name.clone(), Kind::Cases, verdict, text) }
}

/// Checks an arm that only the old side has: none of its cases has a score in the new side.
pub fn of_gone(least: f64, old: &Arm) -> Gate {
    let enough = tolerance::reaches(0.0, least);
    let all = old.cases.len() + old.left_out.len();
    let lacked = match old.left_out.is_empty() {
        true => String::new(),
        false => {
            let names = some_of(old.left_out.keys(), MAX_NAMES);
            format!("; without results in the baseline, because of a quarantine: {names}")
        }
    };
    let text = format!(
        "only the old side has it, so 0 of its {} {} a score in the new side, {} required{lacked}",
        plural(all, "case"),
        if all == 1 { "has" } else { "have" },
        percent_bound(least)
    );
    let verdict = if enough { GateVerdict::Pass } else { GateVerdict::Inconclusive };
    Gate { bound: Some(least), found: Some(0.0), ..Gate::new(old.name.clone(), Kind::Cases, verdict, text) }
}
