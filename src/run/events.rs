//! The events of a run for its observers: one for each thing that happens to its trials.

use crate::result::TrialResult;

/// An event of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// The plan is complete and nothing has started. A resumed run counts only remaining trials.
    Planned {
        /// Trials that will run.
        trials: usize,
        /// Trials that are skipped because of requirements of their cases; they have no further event.
        skipped: usize,
    },
    /// An attempt started.
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
    /// An attempt was errored, and the trial will be retried.
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
        /// The error.
        why: String,
    },
    /// A trial is done.
    Finished {
        /// The result.
        result: Box<TrialResult>,
    },
    /// Some trials will never start.
    NotRun {
        /// The number of trials.
        count: usize,
        /// The reason: the first failure, the cost, or the time.
        why: String,
    },
}
