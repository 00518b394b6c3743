//! `evals run --snapshot`: compares a run that has just ended with its snapshots, or accepts it.

use std::collections::HashMap;
use std::sync::Arc;

use super::unreferenced::{self, Unreferenced};
use super::{keep, trials};
use crate::case::Case;
use crate::cli::CliError;
use crate::own_environment::in_ci;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::snapshot::compare::Compared;

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
    for one in &placed {
        let mut compared = one.compared(mode.is_some());
        if writes && compared.differs && compared.trials > 0 {
            one.accept(false, &mut compared)?;
        }
        all.push(compared);
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
