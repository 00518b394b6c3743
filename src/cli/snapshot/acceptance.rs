//! Whether a run accepted its snapshots: a run that accepts them passes its `snapshot` graders before it does so.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashSet;

use super::kept;
use crate::cli::CliError;
use crate::grade::{ComparedWith, GradeRecord};
use crate::ids::{SnapshotCellId, TrialId, TrialRecord};
use crate::result::TrialResult;
use crate::run::folder::RunFolder;
use crate::run::{RunError, RunRecord};
use crate::snapshot::compare::Compared;
use crate::values::Fraction;
use crate::verdict::Verdict;

/// The reason of a grade that has passed for a snapshot that was not accepted.
const NOT_ACCEPTED: &str = "the run accepts the new snapshot (`--snapshot update`), but it was not accepted";

/// The snapshots that a run accepted, as its folder says. The folder is read when a trial needs it.
pub struct Acceptance<'a> {
    run: &'a RunFolder,
    record: &'a RunRecord,
    open: OnceCell<HashSet<TrialId>>,
}

impl<'a> Acceptance<'a> {
    pub fn of(run: &'a RunFolder, record: &'a RunRecord) -> Self {
        Self { run, record, open: OnceCell::new() }
    }

    /// Returns true if a grader has passed the trial because the run accepts its snapshots, and the snapshot of its cell was
    /// not accepted, or that is unknown.
    pub fn is_open(&self, result: &TrialResult) -> bool {
        has_own_pass(result) && self.open.get_or_init(|| self.open_trials()).contains(&result.id())
    }

    /// Returns the result as it counts: what has passed for a snapshot that was not accepted is ungraded.
    pub fn counted<'r>(&self, result: &'r TrialResult) -> Cow<'r, TrialResult> {
        if !self.is_open(result) {
            return Cow::Borrowed(result);
        }
        let mut counted = result.clone();
        for grade in counted.grades.iter_mut().filter(|grade| is_own_pass(grade)) {
            grade.withdraw(NOT_ACCEPTED.to_owned());
        }
        // What fails with a pass fails without it, but only a failed gate leaves the score known.
        counted.score = counted.score.filter(|score| counted.verdict == Verdict::Fail && *score == Fraction::ZERO);
        if counted.verdict == Verdict::Pass {
            counted.verdict = Verdict::Ungraded;
        }
        Cow::Owned(counted)
    }

    /// Returns the results as they count ([`Acceptance::counted`]), and the cells of those that count as ungraded by it.
    pub fn all_counted(&self, mut results: Vec<TrialResult>) -> (Vec<TrialResult>, Vec<String>) {
        let mut cells = Vec::new();
        for result in &mut results {
            let withdrawn = match self.counted(result) {
                Cow::Owned(counted) => Some(counted),
                Cow::Borrowed(_) => None,
            };
            if let Some(counted) = withdrawn {
                cells.push(counted.cell().to_string());
                *result = counted;
            }
        }
        (results, cells)
    }

    /// Returns the names of the cells with a trial for which [`Acceptance::is_open`] is true.
    ///
    /// # Errors
    /// Returns an error if a result exists but cannot be read.
    pub fn open_cells(&self) -> Result<Vec<String>, RunError> {
        let mut cells: Vec<String> = Vec::new();
        for result in self.run.results_of_trials(self.record)?.iter().filter(|result| self.is_open(result)) {
            let cell = result.cell().to_string();
            cells.extend((cells.last() != Some(&cell)).then_some(cell));
        }
        Ok(cells)
    }

    /// Returns the stored comparisons of the cells that are as accepted and have a trial that passed because the run accepts
    /// its snapshots. They stay true if nothing is compared any more.
    ///
    /// # Errors
    /// Returns an error if a result exists but cannot be read.
    pub fn accepted(&self) -> Result<Vec<Compared>, CliError> {
        let mut all = kept(self.run).unwrap_or_default();
        all.retain(Compared::is_as_accepted);
        if all.is_empty() {
            return Ok(all);
        }
        let results = self.run.results_of_trials(self.record)?;
        let own: HashSet<TrialId> = results.iter().filter(|result| has_own_pass(result)).map(TrialResult::id).collect();
        let trials = self.record.trials.iter().filter(|trial| own.contains(&trial.id()));
        let cells: HashSet<SnapshotCellId> = trials.map(TrialRecord::snapshot_cell).collect();
        all.retain(|it| cells.contains(&it.id));
        Ok(all)
    }

    fn open_trials(&self) -> HashSet<TrialId> {
        let has_ended = self.run.lacks_end(self.record).is_ok_and(|lacks_end| !lacks_end);
        // A file that cannot be read shows nothing that was accepted.
        let compared = if has_ended { kept(self.run).unwrap_or_default() } else { Vec::new() };
        let accepted: HashSet<SnapshotCellId> =
            compared.into_iter().filter(Compared::is_as_accepted).map(|it| it.id).collect();
        let planned = self.record.trials.iter().filter(|trial| trial.skip.is_none());
        planned.filter(|trial| !accepted.contains(&trial.snapshot_cell())).map(TrialRecord::id).collect()
    }
}

/// Returns true if a counting grade of the result has passed because the run accepts its snapshots.
fn has_own_pass(result: &TrialResult) -> bool {
    matches!(result.verdict, Verdict::Pass | Verdict::Fail) && result.grades.iter().any(is_own_pass)
}

fn is_own_pass(grade: &GradeRecord) -> bool {
    grade.snapshot == Some(ComparedWith::OwnRun) && grade.passed == Some(true) && !grade.diagnostic
}
