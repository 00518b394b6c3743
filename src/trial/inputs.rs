//! Checks that the inputs of a trial have not changed since its run began: before they are used, and when the
//! trial is graded.

use std::sync::Arc;

use super::{Attempt, Ended, Engine, TrialError, masker_before, on_blocking_thread};
use crate::case::seal::{FileStates, Seal};
use crate::result::{ErrorRecord, TrialResult};
use crate::trace::ErrorCategory;
use crate::verdict::Verdict;

/// The state of the inputs before their use; `None` if no run checks them.
pub(super) type InputState = Option<FileStates>;

/// Checks the inputs before anything is made from them. If one has changed, the trial ends.
pub(super) async fn check_before_use(engine: &Engine, attempt: &Attempt) -> Result<InputState, Ended> {
    let Some(seal) = attempt.seal.clone() else { return Ok(None) };
    match with_seal(seal, Seal::check_content).await? {
        Ok(states) => Ok(Some(states)),
        Err(why) => {
            let masker = masker_before(engine, attempt);
            Err(Ended::without_agent(attempt, &masker, ErrorCategory::Setup, why))
        }
    }
}

/// Checks the inputs again after their use. A trial with changed inputs or graders is not graded.
pub(super) async fn check_after_use(
    attempt: &Attempt,
    before: InputState,
    result: &mut TrialResult,
) -> Result<(), TrialError> {
    let (Some(seal), Some(before)) = (attempt.seal.clone(), before) else { return Ok(()) };
    if let Err(why) = with_seal(seal, move |seal| seal.check_unchanged_since(&before)).await? {
        result.error = Some(ErrorRecord { category: ErrorCategory::Setup, message: why });
        (result.verdict, result.score, result.grades) = (Verdict::Errored, None, Vec::new());
    }
    Ok(())
}

/// Runs a check of the seal: on another thread if the seal has many files.
async fn with_seal<T: Send + 'static>(
    seal: Arc<Seal>,
    check: impl FnOnce(&Seal) -> T + Send + 'static,
) -> Result<T, TrialError> {
    if seal.is_quick() { Ok(check(&seal)) } else { on_blocking_thread(move || check(&seal)).await }
}
