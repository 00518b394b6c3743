//! `--fail-under`: the exit code by the score of every column, in the place of that of its cells.

use std::io::Write;

use super::RunArgs;
use crate::cli::CliError;
use crate::compare::gate::{self, Gate};
use crate::report::Report;
use crate::report::compare::page::gate_word;
use crate::run::RunRecord;
use crate::statistics::gates::GateVerdict;
use crate::values::Fraction;
use crate::verdict::Verdict;

/// The gates that were asked for, told as they are made.
pub fn of(args: &RunArgs, record: &RunRecord, report: &Report) -> Result<Vec<Gate>, CliError> {
    let Some(least) = args.fail_under.map(Fraction::get) else { return Ok(Vec::new()) };
    let mut gates: Vec<Gate> = Vec::new();
    for column in &report.columns {
        let mut cells = report.cells.iter().filter(|cell| cell.harness == column.harness && cell.arm == column.arm);
        let open = cells.any(|cell| cell.score.is_none() && cell.verdict != Some(Verdict::Skipped));
        gates.push(gate::of_score(least, column.name(), column.score, open || column.tally.not_run > 0));
    }
    let critical = |id: &str| record.cases.iter().any(|case| case.id == id && case.critical);
    let lost = report.cells.iter().filter(|cell| critical(&cell.case) && cell.verdict == Some(Verdict::Fail));
    gates.extend(lost.map(|cell| Gate {
        arm: cell.name(),
        kind: gate::Kind::Critical,
        verdict: GateVerdict::Fail,
        bound: None,
        found: None,
        p: None,
        text: "is critical and fails".to_owned(),
    }));
    let mut err = std::io::stderr().lock();
    for gate in &gates {
        writeln!(err, "gate {}: {} {}", gate_word(gate.verdict), gate.arm, gate.text)?;
    }
    Ok(gates)
}
