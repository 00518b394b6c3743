//! Finds the attempts that have no result, in the folders of their trials: what they cost is in no result.

use crate::ids::TrialRecord;
use crate::result::{EarlierAttempts, TrialResult};
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::trial::previous_attempts;
use crate::verdict::Verdict;

/// A trial that may have attempts that no result includes.
#[derive(Debug, Clone, Copy)]
pub struct OpenTrial<'a> {
    pub trial: &'a TrialRecord,
    /// The number of the attempt whose result counts, or 0 if the trial has no result.
    pub counting: u32,
}

/// Collects the open trials of a plan while its results are read.
#[derive(Debug)]
pub struct OpenTrials<'a> {
    run: &'a RunRecord,
    /// The trials after the last result.
    rest: &'a [TrialRecord],
    found: Vec<OpenTrial<'a>>,
}

impl<'a> OpenTrials<'a> {
    /// Begins with a plan.
    pub fn of(run: &'a RunRecord) -> Self {
        Self { run, rest: &run.trials, found: Vec::new() }
    }

    /// Handles the next result, in the order of the plan.
    pub fn see(&mut self, result: &TrialResult) {
        while let Some((trial, rest)) = self.rest.split_first() {
            self.rest = rest;
            let TrialRecord { case, harness, arm, trial: number, .. } = trial;
            if *number == result.trial && *case == result.case && *arm == result.arm && *harness == result.harness {
                if may_have_later_attempts(self.run, result.verdict) {
                    self.found.push(OpenTrial { trial, counting: result.attempt });
                }
                return;
            }
            self.found.push(OpenTrial { trial, counting: 0 });
        }
    }

    /// Returns the trials without a result, and those that may have attempts after the one whose result counts.
    pub fn all(mut self) -> Vec<OpenTrial<'a>> {
        self.found.extend(self.rest.iter().map(|trial| OpenTrial { trial, counting: 0 }));
        self.found
    }
}

/// Returns true if a trial with this verdict may have attempts after the one whose result counts: a retry or `--rerun` was
/// interrupted. A regraded run has such attempts of the original run, whose verdict may have been another one.
pub fn may_have_later_attempts(run: &RunRecord, verdict: Verdict) -> bool {
    run.graded || matches!(verdict, Verdict::Errored | Verdict::Ungraded)
}

/// The attempts of a trial that no result includes.
#[derive(Debug)]
pub struct Unfinished<'a> {
    pub trial: &'a TrialRecord,
    /// The sum of the attempts that have ended.
    pub attempts: EarlierAttempts,
    /// True if an engine is running or retrying the trial.
    pub is_running: bool,
}

/// Returns the open trials with attempts that no result includes: all of a trial without a result, or those after the attempt
/// whose result counts. `is_in_use` is true if an engine is using the run. Then the attempts that this engine is making are
/// left out: their results will have their costs.
pub fn of<'a>(run: &RunRecord, stored: &RunFolder, open: Vec<OpenTrial<'a>>, is_in_use: bool) -> Vec<Unfinished<'a>> {
    let attempts = open.into_iter().filter_map(|OpenTrial { trial, counting }| {
        let manifest = run.harnesses.iter().find(|known| known.name == trial.harness).map(|known| &known.manifest);
        let path = stored.stored_trial(&trial.id()).ok().filter(|path| path.is_dir())?;
        let is_running = is_in_use && stored.is_of_last_engine(&path);
        let left = previous_attempts::without_result(&path, counting, 0, is_running);
        Some(Unfinished { trial, attempts: previous_attempts::cost_of(&left, manifest)?, is_running })
    });
    attempts.collect()
}
