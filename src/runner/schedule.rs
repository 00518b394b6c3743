//! The number of trials of each cell: fixed by the plan, or increased after each stage until the results are clear.

use std::collections::HashMap;

use crate::ids::{CellId, TrialRecord};
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::run::events::StageDecision;

/// The plan of a run after its first trials.
#[derive(Debug, Clone, Copy)]
pub enum Schedule {
    /// No trials are added.
    Fixed,
    /// More trials after each stage, until the results are clear.
    Auto {
        /// Trials of each cell at the end of each stage.
        stages: &'static [u32],
        /// Returns true if the results are clear, and `None` if further trials show nothing.
        is_clear: fn(&RunRecord, &[TrialResult]) -> Option<bool>,
    },
}

impl Schedule {
    /// Decides the continuation after a stage whose trials all ran, and plans it. Returns `None` if the schedule is
    /// fixed.
    pub(super) fn decide(self, record: &mut RunRecord, results: &[TrialResult]) -> Option<(u32, StageDecision)> {
        let Self::Auto { stages, is_clear } = self else { return None };
        let done = fewest(record);
        let next = stages.iter().find(|stage| **stage > done);
        let decision = match (is_clear(record, results), next) {
            (Some(true), _) => StageDecision::Clear,
            (None, _) => StageDecision::NothingToCompare,
            (Some(false), Some(next)) => {
                grow(record, *next);
                StageDecision::GoesOn(*next)
            }
            (Some(false), None) => StageDecision::StillNotClear,
        };
        Some((done, decision))
    }
}

/// Returns the smallest number of trials of any cell.
fn fewest(record: &RunRecord) -> u32 {
    last_trials(record).values().copied().min().unwrap_or(0)
}

/// Returns the number of the last trial of each cell that is run.
fn last_trials(record: &RunRecord) -> HashMap<CellId, u32> {
    let mut last = HashMap::new();
    for trial in record.trials.iter().filter(|trial| trial.skip.is_none()) {
        let most = last.entry(trial.cell()).or_insert(0);
        *most = trial.trial.max(*most);
    }
    last
}

/// Raises the number of trials of each cell that is not skipped to `trials`. The trials of a cell stay together.
fn grow(record: &mut RunRecord, trials: u32) {
    let last = last_trials(record);
    let mut grown = Vec::with_capacity(record.trials.len() * 2);
    for trial in std::mem::take(&mut record.trials) {
        let most = last.get(&trial.cell()).copied().unwrap_or(u32::MAX);
        let ends = trial.skip.is_none() && trial.trial == most;
        let template = trial.clone();
        grown.push(trial);
        if ends {
            grown.extend((most + 1..=trials).map(|number| TrialRecord { trial: number, ..template.clone() }));
        }
    }
    record.trials = grown;
}
