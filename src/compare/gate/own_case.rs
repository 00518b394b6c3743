//! Gates and verdicts that rest on scores of agents that could read files of their own case: what these agents reached shows
//! nothing.

use super::{Gate, Kind, MAX_NAMES};
use crate::compare::effect::EffectVerdict;
use crate::compare::join::Paired;
use crate::compare::side::Arm;
use crate::fold::CaseTrials;
use crate::statistics::gates::GateVerdict;
use crate::text::some_of;

/// Returns the compared cases with a score above 0 in the new arm whose agents of that arm could read files of their own case.
pub fn read_in_new<'a>(cases: &[Paired<'a>]) -> Vec<&'a str> {
    cases.iter().filter(|case| is_doubtful(case.new)).map(|case| case.id).collect()
}

/// Returns the verdict on a difference, inconclusive instead of improved or equivalent if `read` names cases. If such agents are
/// worse, the verdict counts.
pub fn verdict(verdict: EffectVerdict, read: &[&str]) -> EffectVerdict {
    match verdict {
        EffectVerdict::Improved | EffectVerdict::Equivalent if !read.is_empty() => EffectVerdict::Inconclusive,
        it => it,
    }
}

/// Returns a gate for a pair of arms, inconclusive instead of passed if it rests on scores of compared cases whose agents could
/// read files of their own case. If such agents fail, the failure counts.
pub fn of_pair(gate: Gate, cases: &[Paired<'_>]) -> Gate {
    let is_critical = gate.kind == Kind::Critical;
    let cases = cases.iter().filter(|case| !is_critical || case.facts.critical);
    let read: Vec<&str> = cases.filter(|case| is_doubtful(case.new)).map(|case| case.id).collect();
    without_read(gate, &read)
}

/// Returns a gate for a single arm, inconclusive instead of passed if it rests on scores of agents that could read files of
/// their own case.
pub fn of_arm(gate: Gate, arm: &Arm) -> Gate {
    let read: Vec<&str> = arm.cases.iter().filter(|(_, case)| is_doubtful(case)).map(|(id, _)| &**id).collect();
    without_read(gate, &read)
}

/// Returns the gate, inconclusive instead of passed if it rests on scores and `read` names cases whose agents could read files of
/// their own case.
pub fn without_read(gate: Gate, read: &[&str]) -> Gate {
    let rests_on_scores = match gate.kind {
        Kind::Margin | Kind::Critical | Kind::FailUnder | Kind::NoRegressions => true,
        Kind::MaxCost | Kind::Completed | Kind::Cases => false,
    };
    if !rests_on_scores || gate.verdict != GateVerdict::Pass || read.is_empty() {
        return gate;
    }
    let names = some_of(read, MAX_NAMES);
    let text = format!("{}; inconclusive, because agents could read files of their own case: {names}", gate.text);
    Gate { verdict: GateVerdict::Inconclusive, text, ..gate }
}

/// Returns true if a case has a score above 0 and agents could read its files.
pub fn is_doubtful(case: &CaseTrials) -> bool {
    case.case_in_workspace > 0 && case.score().is_some_and(|score| score > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(score: f64, case_in_workspace: u64) -> CaseTrials {
        CaseTrials { scores: vec![score], case_in_workspace, ..CaseTrials::default() }
    }

    fn gate(kind: Kind) -> Gate {
        Gate::new("x".to_owned(), kind, GateVerdict::Pass, "text".to_owned())
    }

    #[test]
    fn a_gate_does_not_pass_on_scores_of_agents_that_could_read_their_case() {
        let verdict = |read: &[(&str, u64)], kind: Kind| {
            let mut arm = Arm::default();
            for (id, score) in [("a", 1.0), ("b", 0.0)] {
                let read = read.iter().find(|(read, _)| *read == id).map_or(0, |(_, trials)| *trials);
                arm.cases.insert(id.to_owned(), case(score, read));
            }
            of_arm(gate(kind), &arm).verdict
        };
        assert_eq!(verdict(&[], Kind::FailUnder), GateVerdict::Pass);
        assert_eq!(verdict(&[("b", 1)], Kind::FailUnder), GateVerdict::Pass);
        for kind in [Kind::NoRegressions, Kind::Margin, Kind::Critical, Kind::FailUnder] {
            assert_eq!(verdict(&[("a", 1)], kind), GateVerdict::Inconclusive);
        }
        assert_eq!(verdict(&[("a", 1)], Kind::Completed), GateVerdict::Pass);
    }

    #[test]
    fn a_better_arm_whose_agents_could_read_their_case_shows_nothing_and_a_worse_one_does() {
        let after = |found| verdict(found, &["a"]);
        for found in [EffectVerdict::Improved, EffectVerdict::Equivalent, EffectVerdict::Inconclusive] {
            assert_eq!((after(found), verdict(found, &[])), (EffectVerdict::Inconclusive, found));
        }
        assert_eq!(after(EffectVerdict::Regressed), EffectVerdict::Regressed);
    }
}
