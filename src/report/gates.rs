//! The gates of a run: `--fail-under`, which is stored in its options, and its critical cases. They set the
//! exit code.

use super::cells::{Cell, Column};
use super::problems;
use crate::compare::coverage::Trials;
use crate::compare::gate::arm::{ArmEvidence, CaseEvidence};
use crate::compare::gate::{self, Gate, Kind};
use crate::compare::result_doubts::{ResultDoubt, ResultDoubts};
use crate::fold::Tally;
use crate::ids::CellId;
use crate::run::RunRecord;
use crate::statistics::gates::GateVerdict;
use crate::text::some_of;
use crate::values::Fraction;

/// Returns the gates of a run with `--fail-under`: the score of each column, each column with too few completed trials,
/// and the critical cases that are lost or may be lost. Without `--fail-under`, and with `--aa`, there are none. A column whose
/// cases were all skipped or are in quarantine has none, unless all columns are like this.
pub fn of_run(run: &RunRecord, cells: &[Cell], columns: &[Column]) -> Vec<Gate> {
    // An arm that is compared with itself is neither good nor bad.
    let Some(least) = run.options.fail_under.filter(|_| !run.options.aa).map(Fraction::get) else { return Vec::new() };
    let mut gates: Vec<Gate> = Vec::new();
    let (quarantined, cells): (Vec<&Cell>, Vec<&Cell>) = cells.iter().partition(|cell| cell.quarantine.is_some());
    let quarantined: Vec<&CellId> = quarantined.into_iter().map(|cell| &cell.id).collect();
    let doubts: ResultDoubts = cells.iter().filter_map(|cell| doubt(cell)).collect();
    let nothing_counts = columns.iter().all(|column| column.tally.trials == 0);
    for column in columns.iter().filter(|column| nothing_counts || column.tally.trials > 0) {
        let evidence = evidence(column, &cells);
        let mut score = evidence.fail_under(least).settled(&doubts);
        let quarantined: Vec<&str> =
            quarantined.iter().filter(|id| id.column() == column.id).map(|id| &*id.case).collect();
        if !quarantined.is_empty() {
            score.text.push_str(&format!("; without cases in quarantine: {}", some_of(&quarantined, 5)));
        }
        let completed = evidence.completed(gate::usual_completed());
        let is_shown = column.tally.trials > 0 && completed.verdict != GateVerdict::Pass;
        let shown = std::iter::once(score).chain(is_shown.then_some(completed));
        gates.extend(shown.map(|gate| gate.of_column(column.id.clone())));
    }
    let critical = |cell: &&&Cell| run.case(&cell.id.case).is_some_and(|case| case.critical);
    gates.extend(cells.iter().filter(critical).filter_map(|cell| of_critical(cell)));
    gates
}

/// Returns the doubt about the results of a cell, if there is one.
fn doubt(cell: &Cell) -> Option<ResultDoubt> {
    let column = cell.id.column().to_string();
    ResultDoubt::of_own_case(&column, &cell.id.case, cell.case_in_workspace, cell.score)
}

fn is_of_column(cell: &Cell, column: &Column) -> bool {
    cell.id.harness == column.id.harness && cell.id.arm == column.id.arm
}

/// Collects the evidence of a column from its cells that are not in quarantine.
fn evidence(column: &Column, cells: &[&Cell]) -> ArmEvidence {
    let here = |cell: &&&Cell| is_of_column(cell, column);
    let case = |cell: &&Cell| {
        let Tally { ungraded, errored, not_run, .. } = cell.tally;
        let (scored, unknown) = (cell.tally.completed() as u64, (ungraded + errored + not_run) as u64);
        CaseEvidence { score: cell.score, scored, unknown }
    };
    let tally = column.tally;
    ArmEvidence {
        name: column.id.to_string(),
        cases: cells.iter().filter(here).map(case).collect(),
        trials: Trials { planned: tally.trials as u64, completed: tally.completed() as u64 },
        errored: tally.errored as u64,
        ungraded: tally.ungraded as u64,
        not_run: tally.not_run as u64,
        must_be_finished: true,
    }
}

/// Returns the gate of a critical case: failed if the case fails, inconclusive if it was errored, ungraded or not
/// decided. Returns `None` if the case passed or was skipped.
fn of_critical(cell: &Cell) -> Option<Gate> {
    let verdict = cell.verdict.map_or(GateVerdict::Inconclusive, gate::must_pass);
    let text = match verdict {
        GateVerdict::Pass => return None,
        GateVerdict::Fail => "is critical and fails".to_owned(),
        GateVerdict::Inconclusive => {
            format!("is critical, and it is unknown whether it passes: {}", problems::counts(cell))
        }
    };
    Some(Gate::new(cell.id.to_string(), Kind::Critical, verdict, text).of_column(cell.id.column()))
}
