//! `evals run --snapshot`: compares a run that has just ended with its snapshots, or accepts it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::keep;
use super::trials::{self, Placed};
use super::unreferenced::{self, Unreferenced};
use crate::case::Case;
use crate::cli::CliError;
use crate::ids::TrialId;
use crate::own_environment::in_ci;
use crate::report::commands::run_word;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::snapshot::compare::Compared;
use crate::text::plural;

pub use crate::snapshot::mode::SnapshotMode as Mode;

/// Returns true if a run in this mode accepts new snapshots.
fn accepts(mode: Option<Mode>) -> bool {
    mode == Some(Mode::Update) && !in_ci()
}

/// Marks the snapshot graders as updating: the run accepts new snapshots.
pub fn tell(mode: Option<Mode>, cases: &mut HashMap<String, Arc<Case>>) {
    if !accepts(mode) {
        return;
    }
    for case in cases.values_mut() {
        for judge in &mut Arc::make_mut(case).graders {
            Arc::make_mut(judge).run_accepts();
        }
    }
}

/// The result of comparing a run.
#[derive(Debug, Default)]
pub struct SnapshotResults {
    /// The cells.
    pub compared: Vec<Compared>,
    /// Notes: snapshots without a reference.
    pub notes: Vec<String>,
}

/// Compares the cells of a run and stores the result in its folder. Without a mode, cells without a snapshot
/// are ignored.
pub fn after(
    mode: Option<Mode>,
    run: &RunFolder,
    record: &RunRecord,
    cases: &HashMap<String, Arc<Case>>,
    whole: bool,
) -> Result<SnapshotResults, CliError> {
    after_resume(mode, run, record, cases, whole, &HashSet::new())
}

/// Compares the cells of a resumed run and stores the result in its folder. A snapshot of a cell whose trials are all in
/// `finished` is not replaced.
pub fn after_resume(
    mode: Option<Mode>,
    run: &RunFolder,
    record: &RunRecord,
    cases: &HashMap<String, Arc<Case>>,
    whole: bool,
    finished: &HashSet<TrialId>,
) -> Result<SnapshotResults, CliError> {
    if mode == Some(Mode::Off) {
        return Ok(SnapshotResults::default());
    }
    let (placed, _) = trials::of_run(run, record, cases, mode.is_some())?;
    let writes = accepts(mode) && whole;
    if mode == Some(Mode::Update) && !writes {
        let why = if whole { "CI is set" } else { "the run did not finish" };
        crate::cli::terminal::note(format_args!("note: {why}, so snapshots were compared but not written"));
    }
    let mut all = Vec::new();
    let mut kept = 0_usize;
    for one in &placed {
        let mut compared = one.compared(mode.is_some());
        if writes && compared.differs && compared.trials > 0 {
            if matches!(one.accepted, Ok(None)) || has_run_now(one, record, finished) {
                one.accept(false, &mut compared)?;
            } else {
                kept += 1;
            }
        }
        all.push(compared);
    }
    if kept > 0 {
        let (cells, word) = (plural(kept, "cell"), run_word(record, &run.path));
        crate::cli::terminal::note(format_args!(
            "note: the accepted snapshots of {cells} were not replaced, because no trial of these cells ran now, \
             and others may have been accepted since; to replace them: evals snapshot accept {word}"
        ));
    }
    if !all.is_empty() {
        keep(run, &all)?;
    }
    let notes = match mode {
        // Without a requested mode, snapshots without a reference are not reported.
        None => Vec::new(),
        Some(_) => unreferenced::of_run(record, cases, &placed).iter().map(Unreferenced::sentence).collect(),
    };
    Ok(SnapshotResults { compared: all, notes })
}

/// Returns true if a trial of the cell is not among those that had finished before.
fn has_run_now(placed: &Placed, record: &RunRecord, finished: &HashSet<TrialId>) -> bool {
    let cell = &placed.cell;
    record.trials.iter().filter(|trial| trial.skip.is_none()).any(|trial| {
        let is_own = trial.case == cell.case && trial.harness == cell.harness && trial.arm_of() == cell.arm();
        is_own && !finished.contains(&trial.id())
    })
}
