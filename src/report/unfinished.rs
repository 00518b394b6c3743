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

/// Returns the trials with an attempt that is going on or was interrupted, with the sums of the attempts that no result of
/// the report includes: all of a trial without a result, or the last one of an errored trial that is tried again.
pub(super) fn of<'a>(
    run: &'a RunRecord,
    folder: &Path,
    cells: &CellFolds,
    results: &[TrialInBrief],
) -> Vec<(&'a TrialRecord, EarlierAttempts)> {
    let may_go_on = results.len() < run.trials.len() || results.iter().any(|it| it.verdict == Verdict::Errored);
    if !may_go_on {
        return Vec::new();
    }
    let stored = RunFolder::open(folder);
    let attempts = cells.open(run, results).into_iter().filter_map(|(trial, has_result)| {
        let manifest = run.harnesses.iter().find(|known| known.name == trial.harness).map(|known| &known.manifest);
        let path = stored.stored_trial(&trial.id()).ok().filter(|path| path.is_dir())?;
        let attempts = match has_result {
            true => previous_attempts::of_last(&path, manifest),
            false => previous_attempts::of_unfinished(&path, manifest),
        };
        Some((trial, attempts?))
    });
    attempts.collect()
}
