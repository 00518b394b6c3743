//! The gates of a run: `--fail-under`, which is stored in its options, and its critical cases. They set the
//! exit code.

use super::cells::{Cell, Column};
use super::problems;
use crate::compare::coverage::Trials;
use crate::compare::gate::{self, Gate, Kind};
use crate::ids::CellId;
use crate::run::RunRecord;
use crate::statistics::gates::GateVerdict;
use crate::statistics::means::mean;
use crate::text::some_of;
use crate::values::Fraction;
use crate::verdict::Verdict;

/// Returns the gates of a run with `--fail-under`: the score of each column, each column with too few completed trials,
/// and the critical cases that are lost or may be lost. Without `--fail-under`, and with `--aa`, there are none. A column whose
/// cases were all skipped or are in quarantine has none, unless all columns are like this.
pub fn of_run(run: &RunRecord, cells: &[Cell], columns: &[Column]) -> Vec<Gate> {
    // An arm that is compared with itself is neither good nor bad.
    let Some(least) = run.options.fail_under.filter(|_| !run.options.aa).map(Fraction::get) else { return Vec::new() };
    let mut gates: Vec<Gate> = Vec::new();
    let (aside, cells): (Vec<&Cell>, Vec<&Cell>) = cells.iter().partition(|cell| cell.quarantine.is_some());
    let aside: Vec<&CellId> = aside.into_iter().map(|cell| &cell.id).collect();
    let nothing_counts = columns.iter().all(|column| column.tally.trials == 0);
    for column in columns.iter().filter(|column| nothing_counts || column.tally.trials > 0) {
        let here = |cell: &&&Cell| cell.id.harness == column.id.harness && cell.id.arm == column.id.arm;
        let mut here = cells.iter().filter(here);
        let at_best: Vec<f64> = here.clone().filter_map(|cell| cell.score_at_best()).collect();
        let open = here.any(|cell| cell.score.is_none() && cell.verdict != Some(Verdict::Skipped));
        // A run that was not finished is no pass, whatever its score is. A comparison counts such trials as not completed.
        let open = open || column.tally.not_run > 0;
        let mut score = gate::of_score(least, column.id.to_string(), (column.score, mean(&at_best)), open);
        let aside: Vec<&str> = aside.iter().filter(|id| id.column() == column.id).map(|id| &*id.case).collect();
        if !aside.is_empty() {
            score.text.push_str(&format!("; without cases in quarantine: {}", some_of(&aside, 5)));
        }
        gates.extend(
            [Some(score), of_trials(column)].into_iter().flatten().map(|gate| gate.of_column(column.id.clone())),
        );
    }
    let critical = |cell: &&&Cell| run.case(&cell.id.case).is_some_and(|case| case.critical);
    gates.extend(cells.iter().filter(critical).filter_map(|cell| of_critical(cell)));
    gates
}

/// Checks that enough of the planned trials are completed: a score from too few trials does not show that the
/// minimum is reached.
fn of_trials(column: &Column) -> Option<Gate> {
    let tally = &column.tally;
    let (planned, completed) = (tally.trials as u64, tally.completed() as u64);
    let lost = [(tally.errored, "errored"), (tally.ungraded, "ungraded"), (tally.not_run, "never run")];
    let lost = lost.map(|(count, how)| (count as u64, how));
    let trials = Trials { planned, completed };
    let gate = gate::evidence::of_counts(gate::usual_completed(), column.id.to_string(), trials, &lost);
    (planned > 0 && gate.verdict != GateVerdict::Pass).then_some(gate)
}

/// Returns the gate of a critical case: failed if the case fails, inconclusive if it was errored, ungraded or not
/// decided. Returns `None` if the case passed or was skipped.
fn of_critical(cell: &Cell) -> Option<Gate> {
    let (verdict, text) = match cell.verdict {
        Some(Verdict::Pass | Verdict::Skipped) => return None,
        Some(Verdict::Fail) => (GateVerdict::Fail, "is critical and fails".to_owned()),
        Some(Verdict::Errored | Verdict::Ungraded) | None => {
            let counts = problems::counts(cell);
            (GateVerdict::Inconclusive, format!("is critical, and it is unknown whether it passes: {counts}"))
        }
    };
    let (arm, column) = (cell.id.to_string(), Some(cell.id.column()));
    Some(Gate { arm, column, kind: Kind::Critical, verdict, bound: None, found: None, p: None, text })
}
