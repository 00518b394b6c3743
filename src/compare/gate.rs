//! Gates: not worse by more than a margin, a score that is reached, a cost that is kept, no critical case lost.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

use super::arm::{Arm, CaseTrials, Known, Side};
use super::effect::Effect;
use super::join::{Joined, Paired, Reason};
use super::not_worse::not_worse_than;
use super::summary::ArmSummary;
use crate::statistics::gates::GateVerdict;
use crate::verdict::Verdict;

/// The error that a gate's bound may have, one-sided.
pub const ALPHA: f64 = 0.05;

/// What is asked for by `--gate`: `margin=0.05`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margin(pub f64);

impl FromStr for Margin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a gate; write margin=NUMBER, such as margin=0.05");
        let number = text.strip_prefix("margin=").ok_or_else(wrong)?;
        let number: f64 = number.parse().map_err(|_| wrong())?;
        // Without a margin no number of cases would ever pass.
        if number > 0.0 && number < 1.0 {
            Ok(Self(number))
        } else {
            Err(format!("{}; it lies between 0 and 1", wrong()))
        }
    }
}

/// The gates that are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Asked {
    /// The new arm is not worse by more than this.
    pub margin: Option<Margin>,
    /// The new arm scores at least this.
    pub fail_under: Option<f64>,
    /// The new arm costs at most this, in US dollars.
    pub max_cost: Option<f64>,
}

impl Asked {
    /// Whether there is a gate at all.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// A gate and what it says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Gate {
    /// The arm that it is about.
    pub arm: String,
    /// What it demands.
    pub kind: Kind,
    /// What it says.
    pub verdict: GateVerdict,
    /// The margin, the least score or the highest cost.
    pub bound: Option<f64>,
    /// What was found: the one-sided lower bound of new less old, the score, or the cost.
    pub found: Option<f64>,
    /// The p that the new arm is worse by more than the margin.
    pub p: Option<f64>,
    /// The same for people.
    pub text: String,
}

/// What a gate demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Not worse than the old arm by more than a margin.
    Margin,
    /// No critical case lost.
    Critical,
    /// A score that is reached.
    FailUnder,
    /// A cost that is not exceeded.
    MaxCost,
}

/// What the gates say of a pair of arms.
pub fn of_pair(
    asked: &Asked,
    (old_side, _): (&Side, &Arm),
    (new_side, new): (&Side, &Arm),
    joined: &Joined<'_>,
    effect: Option<&Effect>,
) -> Vec<Gate> {
    if !asked.any() {
        return Vec::new();
    }
    let mut gates: Vec<Gate> =
        asked.margin.iter().map(|Margin(margin)| of_margin(*margin, new, joined, effect)).collect();
    gates.extend(of_critical(new, &joined.cases));
    gates.extend(of_critical_left_out(old_side, new_side, new, joined));
    gates
}

fn of_margin(margin: f64, new: &Arm, joined: &Joined<'_>, effect: Option<&Effect>) -> Gate {
    let said = effect.map(|effect| (effect, not_worse_than(&joined.cases, effect, margin, ALPHA)));
    let verdict = said.map_or(GateVerdict::Inconclusive, |(_, said)| said.verdict);
    // A case that the new one never came to a score in may be lost.
    let open = joined.unpaired.iter().filter(|it| it.reason.is_open_in_new()).count();
    let passed_but = verdict == GateVerdict::Pass && open > 0;
    let verdict = if passed_but { GateVerdict::Inconclusive } else { verdict };
    let (found, p) = (said.and_then(|(_, it)| it.lower), said.and_then(|(_, it)| it.p));
    let points = |share: f64| format!("{:+.1} pp", share * 100.0);
    let bound = found.map_or_else(|| "there is no bound".to_owned(), |it| format!("at worst {}", points(it)));
    let allowed = points(-margin);
    let text = match verdict {
        GateVerdict::Pass => {
            format!("not worse by more than the margin: {bound}, and {allowed} is allowed{}", over(joined))
        }
        GateVerdict::Fail => format!("worse by more than the margin of {allowed}"),
        GateVerdict::Inconclusive if passed_but => {
            let cases = if open == 1 { "1 case has".to_owned() } else { format!("{open} cases have") };
            format!(
                "not shown, since {cases} no score in the new one: {bound} over the others, and {allowed} is allowed"
            )
        }
        GateVerdict::Inconclusive if said.is_some_and(|(effect, _)| effect.counts.discordant() == 0) => format!(
            "no case differs, and so few do not exclude a loss: {bound}, and {allowed} is allowed; {} cases would do",
            crate::statistics::power::trials_without_failure(margin, 1.0 - ALPHA).0
        ),
        GateVerdict::Inconclusive => format!("neither is shown: {bound}, and {allowed} is allowed"),
    };
    Gate { arm: new.name.clone(), kind: Kind::Margin, verdict, bound: Some(margin), found, p, text }
}

/// Over how many cases a gate passes, where the old arm had more than could be compared.
fn over(joined: &Joined<'_>) -> String {
    let gone = joined.unpaired.iter().filter(|it| it.reason != Reason::OnlyInNew).count();
    let compared = joined.cases.len();
    if gone == 0 { String::new() } else { format!("; over {compared} of the old one's {} cases", compared + gone) }
}

/// A critical case is lost where it fails, by how many of its trials must pass, and passed before; or where no trial
/// passes any more and some did.
fn of_critical(new: &Arm, cases: &[Paired<'_>]) -> Option<Gate> {
    let critical: Vec<&Paired<'_>> = cases.iter().filter(|case| case.facts.critical).collect();
    let passed_before = |case: &Paired<'_>| case.old.verdict_of_judged(case.facts.pass) == Verdict::Pass;
    let none_any_more = |case: &Paired<'_>| case.old.passed > 0 && case.new.passed == 0;
    let of = |found: &dyn Fn(&Paired<'_>, Verdict) -> bool| {
        let now = |case: &Paired<'_>| case.new.verdict(case.facts.pass);
        critical.iter().filter(|case| found(case, now(case))).map(|case| case.id).collect::<Vec<_>>()
    };
    let lost = of(&|case, now| now == Verdict::Fail && (passed_before(case) || none_any_more(case)));
    let open = of(&|case, now| {
        matches!(now, Verdict::Errored | Verdict::Ungraded) && (passed_before(case) || none_any_more(case))
    });
    let (verdict, text) = match (critical.len(), lost.as_slice(), open.as_slice()) {
        (0, ..) => return None,
        (_, [], []) if critical.len() == 1 => (GateVerdict::Pass, "the critical case is not lost".to_owned()),
        (n, [], []) => (GateVerdict::Pass, format!("none of {n} critical cases is lost")),
        (_, [], open) => (
            GateVerdict::Inconclusive,
            format!("critical, and open whether lost, for errors and what could not be judged: {}", open.join(", ")),
        ),
        (_, lost, _) => (GateVerdict::Fail, format!("critical and lost: {}", lost.join(", "))),
    };
    Some(Gate { arm: new.name.clone(), kind: Kind::Critical, verdict, bound: None, found: None, p: None, text })
}

/// Critical cases that were not compared: nobody knows whether they are lost.
fn of_critical_left_out(old: &Side, new: &Side, arm: &Arm, joined: &Joined<'_>) -> Option<Gate> {
    let critical = |id: &str| [old, new].iter().any(|side| side.cases.get(id).is_some_and(|case| case.critical));
    let left_out = joined.unpaired.iter().filter(|it| critical(&it.case));
    let names: Vec<String> = left_out.map(|it| format!("{} ({})", it.case, it.text)).collect();
    (!names.is_empty()).then(|| Gate {
        arm: arm.name.clone(),
        kind: Kind::Critical,
        verdict: GateVerdict::Inconclusive,
        bound: None,
        found: None,
        p: None,
        text: format!("critical, and not compared: {}", names.join(", ")),
    })
}

fn trials(count: u64) -> String {
    if count == 1 { "1 trial".to_owned() } else { format!("{count} trials") }
}

/// What the gates say of an arm by itself.
pub fn of_arm(asked: &Asked, arm: &Arm, row: &ArmSummary) -> Vec<Gate> {
    let mut gates = Vec::new();
    let name = arm.name.clone();
    if let Some(least) = asked.fail_under {
        gates.push(of_score(least, name.clone(), row.score, arm.cases.values().any(|case| case.scores.is_empty())));
    }
    if let Some(most) = asked.max_cost {
        let cost = arm.cases.values().map(|case: &CaseTrials| case.cost).fold(Known::default(), Known::and);
        let (verdict, text) = match (cost.sum > most, cost.untold) {
            (true, _) => (GateVerdict::Fail, format!("costs ${:.4}, and ${most} is allowed", cost.sum)),
            (false, 0) => (GateVerdict::Pass, format!("costs ${:.4} of ${most}", cost.sum)),
            (false, untold) => (
                GateVerdict::Inconclusive,
                format!("the cost of {} is not known; the others cost ${:.4}", trials(untold), cost.sum),
            ),
        };
        let found = cost.mean().map(|_| cost.sum);
        gates.push(Gate { arm: name, kind: Kind::MaxCost, verdict, bound: Some(most), found, p: None, text });
    }
    gates
}

/// Whether a score is reached; with a case that has none nobody knows the score of the suite.
pub fn of_score(least: f64, arm: String, score: Option<f64>, open: bool) -> Gate {
    let (verdict, text) = match score {
        // Summing up makes rounding; 0.8 of five cases is 0.8.
        Some(score) if score < least - 1e-9 => {
            (GateVerdict::Fail, format!("scores {:.1} %, below {:.1} %", score * 100.0, least * 100.0))
        }
        Some(score) if open => (
            GateVerdict::Inconclusive,
            format!("scores {:.1} % in the cases that could be judged, and some could not", score * 100.0),
        ),
        Some(score) => (GateVerdict::Pass, format!("scores {:.1} % of at least {:.1} %", score * 100.0, least * 100.0)),
        None => (GateVerdict::Inconclusive, "has no score".to_owned()),
    };
    Gate { arm, kind: Kind::FailUnder, verdict, bound: Some(least), found: score, p: None, text }
}

/// What all gates say together: fail before inconclusive before pass.
pub fn of_all(gates: &[Gate]) -> GateVerdict {
    let any = |verdict| gates.iter().any(|gate| gate.verdict == verdict);
    if any(GateVerdict::Fail) {
        GateVerdict::Fail
    } else if any(GateVerdict::Inconclusive) {
        GateVerdict::Inconclusive
    } else {
        GateVerdict::Pass
    }
}

/// The exit code of a gate.
pub fn exit_code(verdict: GateVerdict) -> u8 {
    match verdict {
        GateVerdict::Pass => 0,
        GateVerdict::Fail => 1,
        GateVerdict::Inconclusive => 3,
    }
}
