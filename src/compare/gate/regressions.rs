//! The gate of a bare `--gate`: no case that passed before is lost. It needs no statistics, so it works on few cases.

use super::{Gate, Kind, SHOWN};
use crate::case::CaseKind;
use crate::compare::join::{Joined, Unpaired};
use crate::compare::side::{Arm, CaseFacts, Side};
use crate::fold::CaseTrials;
use crate::statistics::gates::GateVerdict;
use crate::text::{plural, some_of};
use crate::verdict::Verdict;

/// The outcome of a case that passed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Lost,
    /// Undecided: its new trials were errored, ungraded or not run.
    Open,
}

/// Checks whether a case that passed before is lost. A critical or regression case is lost if it fails now, by
/// the number of trials that must pass. Any other case is lost if all of its trials passed before and none
/// passes now.
pub fn of_regressions(old: (&Side, &Arm), new: &Arm, joined: &Joined<'_>) -> Gate {
    let before_and_now = |was: &CaseTrials, is: &CaseTrials| {
        format!("{}/{} before, {}/{} now", was.passed, was.passed + was.failed, is.passed, is.planned())
    };
    let mut found: Vec<(Fate, String)> = Vec::new();
    for case in &joined.cases {
        let text = || format!("{} ({})", case.id, before_and_now(case.old, case.new));
        found.push((fate(case.facts, case.old, case.new), text()));
    }
    let without_score = joined.unpaired.iter().filter(|it| it.reason.is_open_in_new());
    found.extend(without_score.filter_map(|it| unscored(old, it)));
    let of = |fate: Fate| found.iter().filter(|it| it.0 == fate).map(|it| it.1.clone()).collect::<Vec<_>>();
    let (lost, open) = (of(Fate::Lost), of(Fate::Open));
    let compared = joined.cases.len();
    let (verdict, text) = if !lost.is_empty() {
        (GateVerdict::Fail, format!("lost: {}", some_of(&lost, SHOWN)))
    } else if !open.is_empty() {
        let why = "passed before, and unknown whether lost because of trials without a score";
        (GateVerdict::Inconclusive, format!("{why}: {}", some_of(&open, SHOWN)))
    } else if compared == 0 {
        (GateVerdict::Inconclusive, "no case could be compared".to_owned())
    } else {
        let cases = plural(compared, "case");
        (GateVerdict::Pass, format!("none of {cases} is lost"))
    };
    let found = Some(lost.len() as f64);
    Gate { arm: new.name.clone(), column: None, kind: Kind::NoRegressions, verdict, bound: None, found, p: None, text }
}

fn passed_before(facts: &CaseFacts, old: &CaseTrials) -> bool {
    old.verdict_of_judged(facts.pass) == Verdict::Pass
}

fn all_passed_before(old: &CaseTrials) -> bool {
    old.passed > 0 && old.failed == 0
}

fn is_guarded(facts: &CaseFacts) -> bool {
    facts.critical || facts.kind == CaseKind::Regression
}

fn fate(facts: &CaseFacts, old: &CaseTrials, new: &CaseTrials) -> Fate {
    let mut fate = Fate::Kept;
    if is_guarded(facts) && passed_before(facts, old) {
        fate = match new.verdict(facts.pass) {
            Verdict::Pass | Verdict::Skipped => Fate::Kept,
            Verdict::Fail => Fate::Lost,
            Verdict::Ungraded | Verdict::Errored => Fate::Open,
        };
    }
    if fate != Fate::Lost && all_passed_before(old) && new.passed == 0 {
        fate = if new.unknown() > 0 { Fate::Open } else { Fate::Lost };
    }
    fate
}

/// Returns the outcome of a case that passed before and has no score now.
fn unscored((side, old): (&Side, &Arm), case: &Unpaired) -> Option<(Fate, String)> {
    let (facts, was) = (side.cases.get(&case.case)?, old.cases.get(&case.case)?);
    let could_be_lost = all_passed_before(was) || (is_guarded(facts) && passed_before(facts, was));
    could_be_lost.then(|| (Fate::Open, format!("{} ({})", case.case, case.text)))
}
