//! Gates of an arm whose agents could read files of their own case: what these agents reached shows nothing.

use super::{Gate, Kind, MAX_NAMES};
use crate::compare::side::Arm;
use crate::statistics::gates::GateVerdict;
use crate::text::some_of;

/// Returns the gate, inconclusive instead of passed if it rests on scores of the arm and the agents could read files of their own
/// case in a case that has one above 0. If such agents fail, the failure counts.
pub fn without_seen(gate: Gate, arm: &Arm) -> Gate {
    let rests_on_scores = match gate.kind {
        Kind::Margin | Kind::Critical | Kind::FailUnder | Kind::NoRegressions => true,
        Kind::MaxCost | Kind::Completed | Kind::Cases => false,
    };
    if !rests_on_scores || gate.verdict != GateVerdict::Pass {
        return gate;
    }
    let has_score = |case: &&String| arm.cases.get(*case).is_some_and(|it| it.score().is_some_and(|score| score > 0.0));
    let seen: Vec<&String> = arm.details.iter().flat_map(|it| it.case_in_workspace.keys()).filter(has_score).collect();
    if seen.is_empty() {
        return gate;
    }
    let names = some_of(seen, MAX_NAMES);
    let text = format!("{}; inconclusive, because agents could read files of their own case: {names}", gate.text);
    Gate { verdict: GateVerdict::Inconclusive, text, ..gate }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::side::ArmDetails;
    use crate::fold::CaseTrials;

    #[test]
    fn a_gate_does_not_pass_on_scores_of_agents_that_could_read_their_case() {
        let mut arm = Arm { details: Some(ArmDetails::default()), ..Arm::default() };
        for (case, score) in [("a", 1.0), ("b", 0.0)] {
            arm.cases.insert(case.to_owned(), CaseTrials { scores: vec![score], ..CaseTrials::default() });
        }
        let verdict = |arm: &Arm, kind: Kind| {
            let gate = Gate::new("x".to_owned(), kind, GateVerdict::Pass, "text".to_owned());
            without_seen(gate, arm).verdict
        };
        let see = |arm: &Arm, case: &str| {
            let mut arm = arm.clone();
            arm.details.get_or_insert_default().case_in_workspace.insert(case.to_owned(), 1);
            arm
        };
        assert_eq!(verdict(&arm, Kind::NoRegressions), GateVerdict::Pass);
        assert_eq!(verdict(&see(&arm, "b"), Kind::NoRegressions), GateVerdict::Pass);
        for kind in [Kind::NoRegressions, Kind::Margin, Kind::Critical, Kind::FailUnder] {
            assert_eq!(verdict(&see(&arm, "a"), kind), GateVerdict::Inconclusive);
        }
        assert_eq!(verdict(&see(&arm, "a"), Kind::Completed), GateVerdict::Pass);
    }
}
