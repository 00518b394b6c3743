//! `--fail-under`: the exit code by the score of every column, in the place of that of its cells.

use std::io::Write;

use super::{Prepared, RunArgs};
use crate::cli::CliError;
use crate::compare::gate::{self, Gate};
use crate::report::Report;
use crate::report::compare::page::gate_word;
use crate::statistics::gates::GateVerdict;
use crate::values::Fraction;
use crate::verdict::Verdict;

/// The exit code: the gate's where there is one, else that of the cells. A snapshot that differs is no matter of scores.
pub fn code(args: &RunArgs, prepared: &Prepared, of_cells: u8, differs: bool) -> Result<u8, CliError> {
    let Some(least) = args.fail_under.map(Fraction::get) else { return Ok(of_cells) };
    let results = prepared.folder.results(&prepared.record)?;
    let not_run = prepared.record.trials.len() - results.len();
    let report = Report::new(&prepared.record, results, not_run, &prepared.folder.path);
    let mut gates: Vec<Gate> = Vec::new();
    for column in &report.columns {
        let mut cells = report.cells.iter().filter(|cell| cell.harness == column.harness && cell.arm == column.arm);
        let open = cells.any(|cell| cell.score.is_none() && cell.verdict != Some(Verdict::Skipped));
        gates.push(gate::of_score(least, column.name(), column.score, open || column.tally.not_run > 0));
    }
    let critical = |id: &str| prepared.record.cases.iter().any(|case| case.id == id && case.critical);
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
    Ok(if differs { 1 } else { gate::exit_code(gate::of_all(&gates)) })
}
