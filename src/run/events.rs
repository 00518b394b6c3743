//! What a Run tells those who watch it: one event for each thing that happens to its trials.

use crate::result::TrialResult;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// The plan is made and nothing has begun. A resumed run counts only what is left.
    Planned {
        /// Trials that will run.
        trials: usize,
        /// Trials that will not, for what their cases demand; they need no further event.
        skipped: usize,
    },
    /// An attempt at a trial began.
    Started {
        /// Id of the case.
        case: String,
        /// Name of the harness.
        harness: String,
        /// Name of the column.
        arm: String,
        /// Number of the trial, from 1.
        trial: u32,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt was errored, and the trial will be tried again.
    Retry {
        /// Id of the case.
        case: String,
        /// Name of the harness.
        harness: String,
        /// Name of the column.
        arm: String,
        /// Number of the trial, from 1.
        trial: u32,
        /// Number of the attempt that was errored, from 1.
        attempt: u32,
        /// What happened to it.
        why: String,
    },
    /// A trial is done: this is its result.
    Finished {
        /// The result.
        result: Box<TrialResult>,
    },
    /// Trials will never start.
    NotRun {
        /// How many.
        count: usize,
        /// Why: the first failure, the cost, the time.
        why: String,
    },
}
