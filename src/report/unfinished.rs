//! Finds the attempts that have no result, in the folders of their trials: what they cost is in no result.

use std::path::Path;

use super::cells::CellFolds;
use super::gathered::TrialInBrief;
use crate::ids::TrialRecord;
use crate::result::EarlierAttempts;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::trial::previous_attempts;
use crate::verdict::Verdict;

/// The attempts of a trial that no result of the report includes.
#[derive(Debug)]
pub(super) struct Unfinished<'a> {
    pub trial: &'a TrialRecord,
    /// The sum of the attempts that have ended.
    pub attempts: EarlierAttempts,
    /// True if an engine is running or retrying the trial.
    pub is_running: bool,
}

/// Returns the trials with attempts that no result of the report includes: all of a trial without a result, or the last one of
/// an errored trial that is tried again. `is_in_use` is true if an engine is using the run. Then the attempts that this engine
/// is making are left out: their results will have their costs.
pub(super) fn of<'a>(
    run: &'a RunRecord,
    folder: &Path,
    cells: &CellFolds,
    results: &[TrialInBrief],
    is_in_use: bool,
) -> Vec<Unfinished<'a>> {
    let may_go_on = results.len() < run.trials.len() || results.iter().any(|it| it.verdict == Verdict::Errored);
    if !may_go_on {
        return Vec::new();
    }
    let stored = RunFolder::open(folder);
    let attempts = cells.open(run, results).into_iter().filter_map(|(trial, has_result)| {
        let manifest = run.harnesses.iter().find(|known| known.name == trial.harness).map(|known| &known.manifest);
        let path = stored.stored_trial(&trial.id()).ok().filter(|path| path.is_dir())?;
        let is_running = is_in_use && stored.is_of_last_engine(&path);
        let attempts = match (has_result, is_running) {
            (true, true) => None,
            (true, false) => previous_attempts::of_last(&path, manifest),
            // An attempt with a result has ended: it is retried later, or the result is newer than the report.
            (false, true) if !path.join("result.json").exists() => previous_attempts::of_ended(&path, manifest),
            (false, _) => previous_attempts::of_unfinished(&path, manifest),
        };
        Some(Unfinished { trial, attempts: attempts?, is_running })
    });
    attempts.collect()
}
