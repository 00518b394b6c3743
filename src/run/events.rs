//! The events of a run for its observers: one for each thing that happens to its trials.

use crate::ids::TrialId;
use crate::result::TrialResult;

#[derive(Debug, Clone, PartialEq)]
pub enum RunEvent {
    /// The plan of a stage is complete and nothing of it has started. A resumed run counts only remaining trials.
    Planned {
        /// Trials that will run.
        trials: usize,
        /// Trials that are skipped because of requirements of their cases; they have no further event.
        skipped: usize,
    },
    /// An attempt started.
    Started {
        trial: TrialId,
        /// Number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt was errored, and the trial will be retried.
    Retry {
        trial: TrialId,
        /// Number of the attempt that was errored, from 1.
        attempt: u32,
        /// The error.
        why: String,
    },
    /// A trial is done.
    Finished { result: Box<TrialResult> },
    /// Some trials will never start.
    NotRun {
        /// The number of trials.
        count: usize,
        /// The reason: the first failure, the cost, or the time.
        why: String,
    },
    /// Some finished trials were to be run again (`--rerun`) and will not start. Their earlier results stay.
    NotRerun {
        /// The number of trials.
        count: usize,
        /// The reason: the first failure, the cost, or the time.
        why: String,
    },
    /// A stage of a run that adds trials has ended.
    StageEnded {
        /// The smallest number of trials of a cell.
        trials: u32,
        /// The consequence.
        decision: StageDecision,
    },
}

/// The continuation of a run that adds trials, after one of its stages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageDecision {
    /// The run is complete: the results are clear.
    Clear,
    /// The run is complete: the results are not clear, but no stage is left.
    StillNotClear,
    /// The run is complete, because further trials show nothing: no two arms have a case that can be compared, none of the
    /// trials of an arm has a score, or the scores are those of agents that could read files of their own case.
    NothingToCompare,
    /// Another stage follows, with this number of trials of each cell.
    GoesOn(u32),
}
