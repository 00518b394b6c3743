//! Gates of a run against a baseline of another harness: a pipeline may have run another agent by mistake.

use super::{Gate, Kind};
use crate::compare::ArmPair;
use crate::statistics::gates::GateVerdict;

/// Returns the gate, inconclusive instead of passed if it compares the arm with a baseline of another harness. A gate that
/// fails still fails. Two runs that a user names can be of different harnesses.
pub fn without_other(gate: Gate, pairs: &[ArmPair<'_>]) -> Gate {
    let is_relative = match gate.kind {
        Kind::Margin | Kind::NoRegressions => true,
        Kind::Critical | Kind::FailUnder | Kind::MaxCost | Kind::Completed | Kind::Cases => false,
    };
    if !is_relative || gate.verdict != GateVerdict::Pass {
        return gate;
    }
    let of_gate = pairs.iter().filter(|(_, (_, new))| new.name == gate.arm);
    let is_other = |((side, old), (_, new)): &&ArmPair<'_>| side.baseline && old.harness != new.harness;
    let Some(((_, old), (side, new))) = of_gate.clone().find(is_other) else { return gate };
    let text = format!(
        "{}; inconclusive, because the baseline is of harness `{}` and the run of harness `{}`; if the \
         new harness is meant, set a baseline of it (`evals baseline set {} --replace`), or, if both runs are there, compare \
         them: `evals compare {} {} --gate`",
        gate.text, old.harness, new.harness, side.run, old.run, side.run
    );
    Gate { verdict: GateVerdict::Inconclusive, text, ..gate }
}
