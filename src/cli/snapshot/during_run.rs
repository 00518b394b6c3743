//! `evals run --snapshot`: compares a run that has just ended with its snapshots, or accepts it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::acceptance::Acceptance;
use super::trials;
use super::unreferenced::{self, Unreferenced};
use super::{KEPT, keep, kept};
use crate::case::Case;
use crate::cli::CliError;
use crate::ids::{SnapshotCellId, TrialId, TrialRecord};
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
            Arc::make_mut(judge).kind.spec_mut().mark_as_updating();
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
    /// The error about new snapshots that could not be written. Their cells differ.
    pub unwritten: Option<CliError>,
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
/// `finished` is not replaced, and not written again if the run has accepted it before and it was removed since.
pub fn after_resume(
    mode: Option<Mode>,
    run: &RunFolder,
    record: &RunRecord,
    cases: &HashMap<String, Arc<Case>>,
    whole: bool,
    finished: &HashSet<TrialId>,
) -> Result<SnapshotResults, CliError> {
    if mode == Some(Mode::Off) {
        // What an earlier engine found does not count any more, except that graders passed for what the run accepted.
        let compared = Acceptance::of(run, record).accepted()?;
        keep_over_earlier(run, &compared)?;
        return Ok(SnapshotResults { compared, ..SnapshotResults::default() });
    }
    let (placed, _) = trials::of_run(run, record, cases, mode.is_some())?;
    let writes = accepts(mode) && whole;
    if mode == Some(Mode::Update) && !writes {
        let why = if whole { "CI is set" } else { "the run did not finish" };
        crate::cli::terminal::note(format_args!("note: {why}, so snapshots were compared but not written"));
    }
    // A file that cannot be read is no reason to leave the others out: it is written anew.
    let before = kept(run).unwrap_or_default();
    // There may be as many cells as trials. Of several comparisons of a cell, the first counts.
    let before: HashMap<&SnapshotCellId, &Compared> = before.iter().rev().map(|it| (&it.id, it)).collect();
    let running = cells_run_now(record, finished);
    let mut all = Vec::new();
    let (mut not_replaced, mut unwritten) = (0_usize, Unwritten::default());
    for one in &placed {
        let mut compared = one.compared(mode.is_some());
        let runs_now = running.contains(&one.cell.id);
        let earlier = before.get(&compared.id).filter(|_| !runs_now);
        let (was_accepted, was_rejected) = earlier.map_or((false, false), |it| (it.accepted, it.rejected));
        let is_new = matches!(one.accepted, Ok(None));
        if is_new && was_accepted && mode == Some(Mode::Update) {
            // The run has done what it was asked to, and the file was removed since.
            (compared.differs, compared.file_removed) = (false, true);
            compared.tell("the run accepted its snapshot, and the file was removed since".to_owned());
        } else if writes && compared.differs && compared.trials > 0 {
            if runs_now || (is_new && !was_rejected) {
                if let Err(error) = one.accept(false, &mut compared) {
                    unwritten.add(&mut compared, &error);
                }
            } else if !is_new {
                not_replaced += 1;
            }
        }
        compared.accepted |= was_accepted && !compared.differs;
        compared.rejected |= was_rejected && compared.differs;
        all.push(compared);
    }
    if not_replaced > 0 {
        let (cells, word) = (plural(not_replaced, "cell"), run_word(record, &run.path));
        crate::cli::terminal::note(format_args!(
            "note: the accepted snapshots of {cells} were not replaced, because no trial of these cells ran now, \
             and others may have been accepted since; to replace them: evals snapshot accept {word}"
        ));
    }
    keep_over_earlier(run, &all)?;
    let notes = match mode {
        // Without a requested mode, snapshots without a reference are not reported.
        None => Vec::new(),
        Some(_) => unreferenced::of_run(record, cases, &placed).iter().map(Unreferenced::sentence).collect(),
    };
    let unwritten = unwritten.error(&run_word(record, &run.path));
    Ok(SnapshotResults { compared: all, notes, unwritten })
}

/// The new snapshots that could not be written.
#[derive(Default)]
struct Unwritten {
    count: usize,
    first: Option<String>,
}

impl Unwritten {
    /// Adds a cell, which still differs.
    fn add(&mut self, compared: &mut Compared, error: &CliError) {
        self.count += 1;
        self.first.get_or_insert_with(|| error.text());
        compared.tell(format!("the new snapshot could not be written: {}", error.text()));
    }

    /// Returns the error of the run, if there is any.
    fn error(self, run: &str) -> Option<CliError> {
        let first = self.first?;
        let what = match self.count {
            1 => format!("a new snapshot could not be written: {first}"),
            more => format!("{more} new snapshots could not be written, the first one because: {first}"),
        };
        Some(CliError::of_the_engine(format!("{what}; the results are on disk; to accept: evals run --resume {run}")))
    }
}

/// Stores the comparisons of a merged run that is compared with nothing: those of what its shards accepted.
pub fn of_shards(run: &RunFolder, shards: &[(RunFolder, RunRecord)]) -> Result<SnapshotResults, CliError> {
    let mut all: Vec<Compared> = Vec::new();
    for (shard, record) in shards {
        all.extend(Acceptance::of(shard, record).accepted()?);
    }
    // The trials of a cell may be in several shards.
    let mut seen: HashSet<&SnapshotCellId> = HashSet::new();
    let compared: Vec<Compared> = all.iter().filter(|it| seen.insert(&it.id)).cloned().collect();
    keep_over_earlier(run, &compared)?;
    Ok(SnapshotResults { compared, ..SnapshotResults::default() })
}

/// Stores the comparison, unless it is empty and there is no earlier one to replace.
fn keep_over_earlier(run: &RunFolder, all: &[Compared]) -> Result<(), CliError> {
    if all.is_empty() && !run.path.join(KEPT).exists() {
        return Ok(());
    }
    keep(run, all)
}

/// Returns the cells with a trial that is not among those that had finished before.
fn cells_run_now(record: &RunRecord, finished: &HashSet<TrialId>) -> HashSet<SnapshotCellId> {
    let run_now = record.trials.iter().filter(|trial| trial.skip.is_none() && !finished.contains(&trial.id()));
    run_now.map(TrialRecord::snapshot_cell).collect()
}
