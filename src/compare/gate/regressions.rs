//! The gate of a bare `--gate`: no critical or regression case that passed before fails now, and no case that passed all
//! its trials before passes none now. It needs no statistics, so it works on few cases.

use super::{Gate, Kind, MAX_NAMES, must_pass};
use crate::case::CaseKind;
use crate::compare::join::{Joined, Reason, Unpaired};
use crate::compare::result_doubts::ResultDoubts;
use crate::compare::side::{Arm, Side};
use crate::fold::CaseTrials;
use crate::rounding::percent_bound;
use crate::statistics::gates::GateVerdict;
use crate::text::{plural, some_of};
use crate::verdict::{PassTrials, Verdict};

/// The text for critical and regression cases without a comparison.
const NOT_COMPARED: &str = "critical or regression, passed before and not compared";

/// The text for regression cases that only the old side has.
const NOT_RUN: &str = "regression, passed before and not compared";

/// The text for cases that may have passed before their quarantine.
const NOT_IN_BASELINE: &str = "not passing now, and unknown whether that is new, because the baseline has no results of what was \
                               in quarantine; a new baseline would have them";

/// The text for cases that may have passed before their quarantine and are skipped now.
const NOT_IN_BASELINE_AND_SKIPPED: &str =
    "skipped now, and unknown whether passed before, because the baseline has no results of what was in quarantine";

/// The outcome of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The case passes, or it did not pass before.
    Kept,
    /// A critical or regression case passed before, and fails now.
    Fails,
    /// The case passed all its trials that have a score before, and passes none now.
    NoneAnyMore,
    /// The outcome is unknown: new trials of the case were errored, ungraded or not run.
    Open,
    /// A critical or regression case passed before, and was not compared although it may have a score: it was edited, for
    /// example, or it is critical and not in the new run.
    NotCompared,
    /// A regression case that is not critical passed before, and is not in the new run, such as a run of a part of the suite.
    /// The gate `cases` decides how many cases may be missing.
    Absent,
    /// The baseline has no results of the case, and the case does not pass now: it may have passed before.
    NotInBaseline,
    /// The baseline has no results of the case, and the arm skipped it.
    NotInBaselineAndSkipped,
    /// The case has no score now, and the user allowed that.
    Covered,
}

/// Checks whether a case that passed before fails now: a critical or regression case by the number of trials that must
/// pass, and any other case if all of its trials passed before and none passes now.
///
/// `covered` is the share of the old side's cases that must have a score in the new one, if they have it: then other cases
/// may lack one. It covers no critical or regression case, of which the user wants to know whether it fails.
pub fn of_regressions(
    old: (&Side, &Arm),
    (new_side, new): (&Side, &Arm),
    joined: &Joined<'_>,
    covered: Option<f64>,
    doubts: &ResultDoubts,
) -> Gate {
    let before_and_now = |before: &CaseTrials, now: &CaseTrials| {
        let counts = |trials: &CaseTrials| {
            let without = trials.unknown();
            let without = if without > 0 { format!(" and {without} without a score") } else { String::new() };
            format!("{}/{}{without}", trials.passed, trials.passed + trials.failed)
        };
        format!("{} before, {} now", counts(before), counts(now))
    };
    let mut found: Vec<(Fate, String)> = Vec::new();
    for case in &joined.cases {
        let text = || format!("{} ({})", case.id, before_and_now(case.old, case.new));
        let guarded = is_guarded(case.facts.critical, case.facts.kind);
        found.push((fate(guarded, case.facts.pass, case.old, case.new), text()));
    }
    found.extend(joined.unpaired.iter().filter_map(|it| not_compared(old, new_side, it, covered.is_some())));
    found.extend(doubts.not_in_baseline(&new.name).map(|(case, now)| {
        let is_skipped = now.planned == 0;
        let fate = match is_skipped {
            _ if now.may_be_missing && covered.is_some() => Fate::Covered,
            true => Fate::NotInBaselineAndSkipped,
            false => Fate::NotInBaseline,
        };
        let text = if is_skipped { case.to_owned() } else { format!("{case} ({}/{})", now.passed, now.planned) };
        (fate, text)
    }));
    let of = |fate: Fate| found.iter().filter(|it| it.0 == fate).map(|it| it.1.clone()).collect::<Vec<_>>();
    let (fails, none_any_more, open) = (of(Fate::Fails), of(Fate::NoneAnyMore), of(Fate::Open));
    let (not_compared, absent, unchecked) = (of(Fate::NotCompared), of(Fate::Absent), of(Fate::Covered));
    let (not_in_baseline, lacked_and_skipped) = (of(Fate::NotInBaseline), of(Fate::NotInBaselineAndSkipped));
    let is_open = [&open, &not_compared, &not_in_baseline, &lacked_and_skipped].iter().any(|cases| !cases.is_empty());
    let compared = joined.cases.len();
    let named =
        |what: &str, cases: &[String]| (!cases.is_empty()).then(|| format!("{what}: {}", some_of(cases, MAX_NAMES)));
    let lost = fails.len() + none_any_more.len();
    let (verdict, text) = if lost > 0 {
        let parts = [
            named("critical or regression, passed before and failing now", &fails),
            named("passed all trials before and none now", &none_any_more),
        ];
        (GateVerdict::Fail, parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    } else if is_open {
        let parts = [
            named("passed before, and trials without a score leave it open whether that is so now", &open),
            named(NOT_COMPARED, &not_compared),
            named(NOT_IN_BASELINE, &not_in_baseline),
            named(NOT_IN_BASELINE_AND_SKIPPED, &lacked_and_skipped),
        ];
        (GateVerdict::Inconclusive, parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
    } else if joined.is_quarantined_in_old() && lacks_no_score(new, joined) {
        let names = joined.unpaired.iter().filter(|it| it.reason == Reason::QuarantinedInOld).map(|it| &it.case);
        let text =
            "the baseline has no results of this arm, because its cases were in quarantine; none of them can be lost";
        (GateVerdict::Pass, format!("{text}: {}", some_of(names, MAX_NAMES)))
    } else if compared == 0 {
        (GateVerdict::Inconclusive, "no case could be compared".to_owned())
    } else {
        let cases = plural(compared, "case");
        let text = format!(
            "of {cases}, no critical or regression case that passed before fails now, and none that passed all trials \
             before passes none now"
        );
        (GateVerdict::Pass, text)
    };
    let why =
        covered.map(|share| format!("not checked, because only {} of the cases need a score", percent_bound(share)));
    let unchecked = why.and_then(|why| named(&why, &unchecked)).map(|it| format!("; {it}")).unwrap_or_default();
    let absent = named(NOT_RUN, &absent).map(|it| format!("; {it}")).unwrap_or_default();
    let text = format!("{text}{absent}{unchecked}");
    Gate { found: Some(lost as f64), ..Gate::new(new.name.clone(), Kind::NoRegressions, verdict, text) }
}

/// Returns the result for an arm that only the old side has, if a critical or regression case of it passed before.
pub fn of_gone(side: &Side, arm: &Arm) -> Option<Gate> {
    let is_open = |(id, before): &(&String, &CaseTrials)| {
        side.cases.get(*id).is_some_and(|it| is_guarded(it.critical, it.kind) && passed_before(it.pass, before))
    };
    let names: Vec<&String> = arm.cases.iter().filter(is_open).map(|(id, _)| id).collect();
    let text = || format!("{NOT_COMPARED}: {}", some_of(&names, MAX_NAMES));
    let gate = || Gate::new(arm.name.clone(), Kind::NoRegressions, GateVerdict::Inconclusive, text());
    (!names.is_empty()).then(gate)
}

/// Returns true if the new arm has a score of each case that the baseline lacks because of a quarantine.
fn lacks_no_score(new: &Arm, joined: &Joined<'_>) -> bool {
    let mut lacked = joined.unpaired.iter().filter(|it| it.reason == Reason::QuarantinedInOld);
    lacked.all(|it| new.cases.get(&it.case).is_some_and(|case| !case.scores.is_empty()))
}

fn passed_before(pass: PassTrials, old: &CaseTrials) -> bool {
    old.verdict_of_judged(pass) == Verdict::Pass
}

fn all_passed_before(old: &CaseTrials) -> bool {
    old.passed > 0 && old.failed == 0
}

/// Returns true if a case must not fail by the number of trials that must pass: it is critical or a regression case.
pub fn is_guarded(critical: bool, kind: CaseKind) -> bool {
    critical || kind == CaseKind::Regression
}

/// Returns true if a case fails the gate. `guarded` is the result of [`is_guarded`].
pub fn is_lost(guarded: bool, pass: PassTrials, old: &CaseTrials, new: &CaseTrials) -> bool {
    matches!(fate(guarded, pass, old, new), Fate::Fails | Fate::NoneAnyMore)
}

fn fate(guarded: bool, pass: PassTrials, old: &CaseTrials, new: &CaseTrials) -> Fate {
    let mut fate = Fate::Kept;
    if guarded && passed_before(pass, old) {
        fate = match must_pass(new.verdict(pass)) {
            GateVerdict::Pass => Fate::Kept,
            GateVerdict::Fail => Fate::Fails,
            GateVerdict::Inconclusive => Fate::Open,
        };
    }
    if fate != Fate::Fails && all_passed_before(old) && new.passed == 0 {
        fate = if new.unknown() > 0 { Fate::Open } else { Fate::NoneAnyMore };
    }
    fate
}

/// Returns the outcome of a case that passed before and was not compared. A case that is neither critical nor a regression
/// case has one if its outcome now is unknown. `is_covered` is true if enough other cases have a score.
fn not_compared(
    (side, old): (&Side, &Arm),
    new_side: &Side,
    case: &Unpaired,
    is_covered: bool,
) -> Option<(Fate, String)> {
    let (facts, before) = (side.cases.get(&case.case)?, old.cases.get(&case.case)?);
    let now = new_side.cases.get(&case.case);
    let sides = || [Some(facts), now].into_iter().flatten();
    let guarded = sides().any(|it| is_guarded(it.critical, it.kind)) && passed_before(facts.pass, before);
    let is_absent = case.reason == Reason::OnlyInOld && !sides().any(|it| it.critical);
    let fate = match (guarded, case.reason.is_open_in_new()) {
        (true, true) => Fate::Open,
        (true, false) if is_absent => Fate::Absent,
        (true, false) => Fate::NotCompared,
        (false, true) if !all_passed_before(before) => return None,
        (false, true) if is_covered => Fate::Covered,
        (false, true) => Fate::Open,
        (false, false) => return None,
    };
    Some((fate, format!("{} ({})", case.case, case.text)))
}
