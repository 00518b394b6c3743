//! Gates: not worse by more than a margin, a score that is reached, a cost that is kept, no critical case lost.

use std::str::FromStr;

use schemars::JsonSchema;
use serde::Serialize;

use super::arm::{Arm, CaseTrials, Known};
use super::effect::{Effect, not_worse_than};
use super::join::Paired;
use super::summary::ArmSummary;
use crate::statistics::gates::GateVerdict;

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
pub fn of_pair(asked: &Asked, new: &Arm, cases: &[Paired<'_>], effect: Option<&Effect>) -> Vec<Gate> {
    let Some(Margin(margin)) = asked.margin else { return Vec::new() };
    let mut gates = vec![of_margin(margin, new, cases, effect)];
    gates.extend(of_critical(new, cases));
    gates
}

fn of_margin(margin: f64, new: &Arm, cases: &[Paired<'_>], effect: Option<&Effect>) -> Gate {
    let said = effect.map(|effect| (effect, not_worse_than(cases, effect, margin, ALPHA)));
    let verdict = said.map_or(GateVerdict::Inconclusive, |(_, said)| said.verdict);
    let (found, p) = (said.and_then(|(_, it)| it.lower), said.and_then(|(_, it)| it.p));
    let points = |share: f64| format!("{:+.1} pp", share * 100.0);
    let bound = found.map_or_else(|| "there is no bound".to_owned(), |it| format!("at worst {}", points(it)));
    let allowed = points(-margin);
    let text = match verdict {
        GateVerdict::Pass => format!("not worse by more than the margin: {bound}, and {allowed} is allowed"),
        GateVerdict::Fail => format!("worse by more than the margin of {allowed}"),
        GateVerdict::Inconclusive if said.is_some_and(|(effect, _)| effect.counts.discordant() == 0) => format!(
            "no case differs, and so few do not exclude a loss: {bound}, and {allowed} is allowed; {} cases would do",
            crate::statistics::power::trials_without_failure(margin, 1.0 - ALPHA).0
        ),
        GateVerdict::Inconclusive => format!("neither is shown: {bound}, and {allowed} is allowed"),
    };
    Gate { arm: new.name.clone(), kind: Kind::Margin, verdict, bound: Some(margin), found, p, text }
}

/// A critical case is lost where every trial fails and some passed before.
fn of_critical(new: &Arm, cases: &[Paired<'_>]) -> Option<Gate> {
    let lost = |case: &&Paired<'_>| case.new.passed == 0 && case.new.failed > 0 && case.old.passed > 0;
    let critical: Vec<&Paired<'_>> = cases.iter().filter(|case| case.facts.critical).collect();
    let names: Vec<&str> = critical.iter().copied().filter(|case| lost(case)).map(|case| case.id).collect();
    let (verdict, text) = match (critical.len(), names.as_slice()) {
        (0, _) => return None,
        (1, []) => (GateVerdict::Pass, "the critical case is not lost".to_owned()),
        (n, []) => (GateVerdict::Pass, format!("none of {n} critical cases is lost")),
        (_, names) => (GateVerdict::Fail, format!("critical and lost, every trial fails: {}", names.join(", "))),
    };
    Some(Gate { arm: new.name.clone(), kind: Kind::Critical, verdict, bound: None, found: None, p: None, text })
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
                format!("the cost of {untold} trials is not known; the others cost ${:.4}", cost.sum),
            ),
        };
        let found = (cost.told > 0).then_some(cost.sum);
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
