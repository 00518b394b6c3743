//! Gates of a comparison or a run: margin, minimum score, maximum cost, critical cases, no regressions, and minimum shares of
//! completed trials and compared cases.

use std::collections::BTreeSet;

use serde::Serialize;

use super::effect::Effect;
use super::join::{Joined, Paired, Reason};
use super::non_inferiority::not_worse_than;
use super::result_doubts::ResultDoubts;
use super::sequential::level_of;
use super::side::{Arm, Side};
use crate::fold::KnownSum;
use crate::ids::ColumnId;
use crate::judgement::tolerance;
use crate::reason_text::money_beside;
use crate::rounding::{points_beside, points_bound};
use crate::statistics::gates::GateVerdict;
use crate::statistics::power::{ALPHA, trials_without_failure};
use crate::text::{plural, some_of};
use crate::trace::amount::Amount;
use crate::verdict::Verdict;

pub mod arm;
mod asked;
mod doubted;
pub mod evidence;
pub mod regressions;

use arm::ArmEvidence;
pub use asked::{Demand, GateRequest, NO_REGRESSIONS, usual_completed};

/// The maximum number of names in the text of a gate.
const MAX_NAMES: usize = 8;

/// A gate and its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Gate {
    /// The arm that the gate applies to.
    pub arm: String,
    /// The column of a run that the gate applies to, or `None` if it is a gate of a comparison.
    #[serde(skip)]
    pub column: Option<ColumnId>,
    /// The cases whose results the gate rests on. `None`: all cases of the arm.
    #[serde(skip)]
    pub cases: Option<BTreeSet<String>>,
    /// The condition of the gate.
    pub kind: Kind,
    /// The verdict of the gate.
    pub verdict: GateVerdict,
    /// The bound: the margin, the minimum score, the maximum cost, or the minimum share of trials or cases. Null for
    /// `critical` and `no-regressions`.
    pub bound: Option<f64>,
    /// The measured value: the one-sided lower bound of new minus old, the score, the cost, the number of lost
    /// cases, or the share of trials or cases. Null for `critical`, and if the value is unknown.
    pub found: Option<f64>,
    /// The p-value of the test that the new arm is worse by more than the margin. Null for all
    /// kinds but `margin`, and if it is unknown.
    pub p: Option<f64>,
    /// The result as text.
    pub text: String,
}

impl Gate {
    /// Makes a gate without figures.
    pub fn new(arm: String, kind: Kind, verdict: GateVerdict, text: String) -> Self {
        Self { arm, column: None, cases: None, kind, verdict, bound: None, found: None, p: None, text }
    }

    /// Returns the gate as one of a column of a run.
    pub fn of_column(self, column: ColumnId) -> Self {
        Self { column: Some(column), ..self }
    }

    /// Returns the gate as one of a pair of arms, which rests on the compared cases.
    fn of_compared(self, joined: &Joined<'_>) -> Self {
        let kind = self.kind;
        let compared = joined.cases.iter().filter(|case| kind != Kind::Critical || case.facts.critical);
        // A case that the baseline lacks is kept by what its agents reach now.
        let is_lacked = |reason: Reason| kind == Kind::NoRegressions && reason == Reason::QuarantinedInOld;
        let lacked = joined.unpaired.iter().filter(|it| is_lacked(it.reason));
        let cases = compared.map(|case| case.id).chain(lacked.map(|it| &*it.case));
        Self { cases: Some(cases.map(str::to_owned).collect()), ..self }
    }

    /// Returns the gate with the names of the cases that it leaves out because they are in quarantine. The gates on the cost
    /// and on critical cases have their own text.
    #[must_use]
    pub fn without_quarantined<N: AsRef<str>>(mut self, names: &[N]) -> Self {
        if !names.is_empty() && !matches!(self.kind, Kind::MaxCost | Kind::Critical) {
            let names = some_of(names.iter().map(AsRef::as_ref), MAX_NAMES);
            self.text.push_str(&format!("; without cases in quarantine: {names}"));
        }
        self
    }

    /// Returns the result on one line.
    pub fn line(&self) -> String {
        format!("gate {}: {} {}", self.verdict.word(), self.arm, self.text)
    }
}

/// The condition of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The new arm is not worse than the old arm by more than a margin.
    Margin,
    /// No critical case is lost.
    Critical,
    /// The score reaches a minimum.
    FailUnder,
    /// The cost does not exceed a maximum.
    MaxCost,
    /// No critical or regression case that passed before fails now, and no case that passed all its trials before passes
    /// none now.
    NoRegressions,
    /// Enough of the planned trials have a score.
    Completed,
    /// Enough of the old arm's cases have a score in the new one.
    Cases,
}

/// Returns the results of the gates for a pair of arms.
pub fn of_pair(
    asked: &GateRequest,
    old: (&Side, &Arm),
    new: (&Side, &Arm),
    joined: &Joined<'_>,
    effect: Option<&Effect>,
    doubts: &ResultDoubts,
) -> Vec<Gate> {
    if !asked.any() {
        return Vec::new();
    }
    let gates = over_cases(asked, old, new, joined, effect, doubts);
    let read = doubts.read_of(old.1, new.1, joined).old;
    if read.is_empty() || of_all(&gates) != GateVerdict::Fail {
        return gates;
    }
    let others = joined.without(&read);
    let effect = super::effect::effect(&others.cases, level_of(old.0, new.0));
    let without = over_cases(asked, old, new, &others, effect.as_ref(), doubts);
    gates.into_iter().map(|gate| gate.settled_without(&old.1.name, &read, &without)).collect()
}

/// Returns the results of the gates for a pair of arms over the cases of `joined`.
fn over_cases(
    asked: &GateRequest,
    (old_side, old): (&Side, &Arm),
    (new_side, new): (&Side, &Arm),
    joined: &Joined<'_>,
    effect: Option<&Effect>,
    doubts: &ResultDoubts,
) -> Vec<Gate> {
    let enough = evidence::of_cases(asked.cases(), old, new, joined).verdict == GateVerdict::Pass;
    let mut gates: Vec<Gate> =
        asked.margin.iter().map(|margin| of_margin(*margin, (old, new), joined, effect, enough)).collect();
    if asked.no_regressions {
        let covered = enough.then(|| asked.cases());
        gates.push(regressions::of_regressions((old_side, old), (new_side, new), joined, covered, doubts));
    }
    // `no-regressions` checks critical cases itself.
    if asked.margin.is_some() || asked.fail_under.is_some() || asked.max_cost.is_some() {
        gates.extend(of_critical(new, &joined.cases));
    }
    gates.extend(of_critical_left_out(old_side, new_side, new, joined));
    gates.into_iter().map(|gate| gate.of_compared(joined)).collect()
}

fn of_margin(
    margin: f64,
    (old, new): (&Arm, &Arm),
    joined: &Joined<'_>,
    effect: Option<&Effect>,
    enough_cases: bool,
) -> Gate {
    let outcome = effect.map(|effect| (effect, not_worse_than(&joined.cases, effect, margin, ALPHA)));
    let verdict = outcome.map_or(GateVerdict::Inconclusive, |(_, outcome)| outcome.verdict);
    // A case without a score in the new arm may be lost.
    let open = joined.unpaired.iter().filter(|it| it.reason.is_open_in_new()).count();
    let passed_but = verdict == GateVerdict::Pass && open > 0 && !enough_cases;
    let verdict = if passed_but { GateVerdict::Inconclusive } else { verdict };
    let (found, p) = (outcome.and_then(|(_, it)| it.lower), outcome.and_then(|(_, it)| it.p));
    let at_worst = |found| format!("at worst {} pp", points_beside(found, -margin));
    let bound = found.map_or_else(|| "there is no bound".to_owned(), at_worst);
    let allowed = format!("{} pp", points_bound(-margin));
    let text = match verdict {
        GateVerdict::Pass => {
            let coverage = coverage(joined, old.cases.len());
            format!("not worse by more than the margin: {bound}, and {allowed} is allowed{coverage}")
        }
        GateVerdict::Fail => format!("worse by more than the margin of {allowed}"),
        GateVerdict::Inconclusive if passed_but => {
            let cases = if open == 1 { "1 case has".to_owned() } else { format!("{open} cases have") };
            format!(
                "inconclusive, because {cases} no score in the new side: {bound} over the others, and {allowed} is \
                 allowed"
            )
        }
        GateVerdict::Inconclusive if outcome.is_some_and(|(effect, _)| effect.counts.discordant() == 0) => format!(
            "no case differs, but there are too few cases to exclude a loss: {bound}, and {allowed} is allowed; {} \
             cases would be enough",
            trials_without_failure(margin, 1.0 - ALPHA).0
        ),
        GateVerdict::Inconclusive => format!(
            "neither a loss nor its absence is shown: {bound}, and {allowed} is \
            allowed"
        ),
    };
    Gate { bound: Some(margin), found, p, ..Gate::new(new.name.clone(), Kind::Margin, verdict, text) }
}

/// Returns the text for the number of cases that a gate is based on, if the old arm has more of them than could be
/// compared. Cases that it skipped or that are in quarantine are not among its cases, as for the gate `cases`. Cases of which a
/// baseline has no results because they were in quarantine are named.
fn coverage(joined: &Joined<'_>, all: usize) -> String {
    let compared = joined.cases.len();
    let coverage =
        if compared == all { String::new() } else { format!("; over {compared} of the {all} cases of the old side") };
    let lacked = joined.unpaired.iter().filter(|it| it.reason == Reason::QuarantinedInOld).map(|it| &it.case);
    let lacked: Vec<&String> = lacked.collect();
    match lacked.is_empty() {
        true => coverage,
        false => {
            let names = some_of(lacked, MAX_NAMES);
            format!("{coverage}; without cases that the baseline lacks because they were in quarantine: {names}")
        }
    }
}

/// Returns the result for critical cases. A critical case is lost if it fails now, by the number of trials that
/// must pass, and passed before; or if no trial passes now and some passed before.
fn of_critical(new: &Arm, cases: &[Paired<'_>]) -> Option<Gate> {
    let critical: Vec<&Paired<'_>> = cases.iter().filter(|case| case.facts.critical).collect();
    let passed_before = |case: &Paired<'_>| case.old.verdict_of_judged(case.facts.pass) == Verdict::Pass;
    let none_any_more = |case: &Paired<'_>| case.old.passed > 0 && case.new.passed == 0;
    let of = |verdict: GateVerdict| {
        let now = |case: &Paired<'_>| must_pass(case.new.verdict(case.facts.pass));
        let can_be_lost = critical.iter().filter(|case| passed_before(case) || none_any_more(case));
        can_be_lost.filter(|case| now(case) == verdict).map(|case| case.id).collect::<Vec<_>>()
    };
    let (lost, open) = (of(GateVerdict::Fail), of(GateVerdict::Inconclusive));
    let (verdict, text) = match (critical.len(), lost.as_slice(), open.as_slice()) {
        (0, ..) => return None,
        (_, [], []) if critical.len() == 1 => (GateVerdict::Pass, "the critical case is not lost".to_owned()),
        (n, [], []) => (GateVerdict::Pass, format!("none of {n} critical cases is lost")),
        (_, [], open) => (
            GateVerdict::Inconclusive,
            format!("critical, and unknown whether lost because of errored or ungraded trials: {}", open.join(", ")),
        ),
        (_, lost, _) => (GateVerdict::Fail, format!("critical and lost: {}", lost.join(", "))),
    };
    Some(Gate::new(new.name.clone(), Kind::Critical, verdict, text))
}

/// Returns the verdict of a gate on a case that must pass, from the verdict on its trials.
pub fn must_pass(verdict: Verdict) -> GateVerdict {
    match verdict {
        Verdict::Pass | Verdict::Skipped => GateVerdict::Pass,
        Verdict::Fail => GateVerdict::Fail,
        Verdict::Errored | Verdict::Ungraded => GateVerdict::Inconclusive,
    }
}

/// Returns the result for critical cases that were not compared: it is unknown whether they are lost.
fn of_critical_left_out(old: &Side, new: &Side, arm: &Arm, joined: &Joined<'_>) -> Option<Gate> {
    let critical = |id: &str| [old, new].iter().any(|side| side.cases.get(id).is_some_and(|case| case.critical));
    let left_out = joined.unpaired.iter().filter(|it| critical(&it.case));
    critical_not_compared(arm, &left_out.map(|it| format!("{} ({})", it.case, it.text)).collect::<Vec<_>>())
}

/// Returns the results for an arm that only the old side has: none of its cases has a score in the new side.
pub fn of_gone(asked: &GateRequest, old: &Side, arm: &Arm) -> Vec<Gate> {
    if !asked.any() || arm.cases.is_empty() && arm.left_out.is_empty() {
        return Vec::new();
    }
    let all = arm.cases.keys().chain(arm.left_out.keys());
    let critical = all.filter(|id| old.cases.get(*id).is_some_and(|case| case.critical));
    let critical: Vec<String> = critical.cloned().collect();
    let regressions = asked.no_regressions.then(|| regressions::of_gone(old, arm)).flatten();
    let gates = [Some(evidence::of_gone(asked.cases(), arm)), regressions, critical_not_compared(arm, &critical)];
    gates.into_iter().flatten().collect()
}

/// Returns the result for an arm's critical cases without a comparison, if there are any.
fn critical_not_compared(arm: &Arm, names: &[String]) -> Option<Gate> {
    let text = || format!("critical, and not compared: {}", names.join(", "));
    (!names.is_empty()).then(|| Gate::new(arm.name.clone(), Kind::Critical, GateVerdict::Inconclusive, text()))
}

/// Returns the results of the gates for a single arm.
pub fn of_arm(asked: &GateRequest, arm: &Arm) -> Vec<Gate> {
    let mut gates: Vec<Gate> =
        asked.fail_under.map(|least| ArmEvidence::of(arm).fail_under(least)).into_iter().collect();
    if let Some(most) = asked.max_cost {
        let cost: KnownSum = arm.cases.values().map(|case| case.cost).sum();
        let spent = money_beside(cost.bound().value(), most);
        // A case in quarantine fails no gate; but what it cost was spent, so the gate does not pass without it.
        let with_quarantined: KnownSum = [cost, arm.quarantined.values().map(|case| case.cost).sum()].into_iter().sum();
        let quarantined = some_of(arm.quarantined.keys(), MAX_NAMES);
        let unknown = |cost: KnownSum| plural(cost.unknown_trials(), "trial");
        let (verdict, text) = match (cost.bound(), with_quarantined.bound()) {
            (cost, _) if tolerance::exceeds(cost.value(), most) => {
                (GateVerdict::Fail, format!("costs ${spent}, and ${most} is allowed"))
            }
            (Amount::AtLeast(_), _) => {
                let others =
                    if cost.known_trials() > 0 { format!("; the others cost ${spent}") } else { String::new() };
                (GateVerdict::Inconclusive, format!("the cost of {} is unknown{others}", unknown(cost)))
            }
            (Amount::Exact(_), with_quarantined) if tolerance::exceeds(with_quarantined.value(), most) => {
                let with_quarantined = money_beside(with_quarantined.value(), most);
                let text = format!(
                    "costs ${spent} of ${most}, but ${with_quarantined} with the cases in quarantine: {quarantined}"
                );
                (GateVerdict::Inconclusive, text)
            }
            (Amount::Exact(_), Amount::AtLeast(_)) => {
                let unknown = unknown(with_quarantined);
                let text = format!(
                    "costs ${spent} of ${most}, but the cost of {unknown} in quarantine is unknown: {quarantined}"
                );
                (GateVerdict::Inconclusive, text)
            }
            (Amount::Exact(_), Amount::Exact(_)) => {
                let without = format!("; without cases in quarantine: {quarantined}");
                let without = if quarantined.is_empty() { "" } else { &without };
                (GateVerdict::Pass, format!("costs ${spent} of ${most}{without}"))
            }
        };
        let found = cost.total().map(Amount::value);
        gates.push(Gate { bound: Some(most), found, ..Gate::new(arm.name.clone(), Kind::MaxCost, verdict, text) });
    }
    gates
}

/// Returns the verdict over all gates: fail before inconclusive before pass.
pub fn of_all(gates: &[Gate]) -> GateVerdict {
    worst(gates.iter().map(|gate| gate.verdict))
}

/// Returns the worst of verdicts: fail before inconclusive before pass.
pub fn worst(verdicts: impl Iterator<Item = GateVerdict>) -> GateVerdict {
    verdicts.fold(GateVerdict::Pass, |worst, verdict| match (worst, verdict) {
        (GateVerdict::Fail, _) | (_, GateVerdict::Fail) => GateVerdict::Fail,
        (GateVerdict::Inconclusive, _) | (_, GateVerdict::Inconclusive) => GateVerdict::Inconclusive,
        _ => GateVerdict::Pass,
    })
}

/// Returns the exit code of a gate's verdict.
pub fn exit_code(verdict: GateVerdict) -> u8 {
    match verdict {
        GateVerdict::Pass => 0,
        GateVerdict::Fail => 1,
        GateVerdict::Inconclusive => 3,
    }
}
