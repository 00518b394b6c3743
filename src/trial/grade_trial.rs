//! From a session that is over to its result: error, grades, limits, verdict. What is live, what is stored and what is
//! audited is judged here, and nowhere else.

use std::path::Path;

use super::Attempt;
use super::ending::{error_of, is_manual, limits_and_grades, message_of, no_stop, wrong_model};
use super::metrics::{self, Observed};
use crate::grader::{Evidence, Grading};
use crate::judge::Judges;
use crate::result::{ErrorRecord, StopRecord, TrialResult};
use crate::shell::Shell;
use crate::trace::ErrorCategory;
use crate::trace::recorder::Finished;
use crate::values::Fraction;
use crate::verdict::Verdict;
use crate::workspace::change::Change;

/// A session that is over, with those who saw all of it.
pub(super) struct Over {
    /// Its header and what it spent.
    pub finished: Finished,
    /// What was counted.
    pub observed: Observed,
    /// Its graders.
    pub grading: Grading,
    /// What made it another case than the one that was asked for, which nobody may judge.
    pub another_case: Option<String>,
}

/// The workspace that a session left, ready for the graders.
pub(super) struct Site<'a> {
    /// The folder; absent where it is gone.
    pub workspace: Option<&'a Path>,
    /// What the agent changed; absent where nobody knows.
    pub change: Option<&'a Change>,
    /// The file that holds the Trace; absent where there is none.
    pub trace: Option<&'a Path>,
    /// The file that holds what was changed, likewise.
    pub patch: Option<&'a Path>,
    /// Whether protected files had to be put back.
    pub touched: bool,
    /// In which graders run their commands.
    pub shell: &'a Shell,
    /// Who asks models.
    pub judges: &'a Judges,
}

/// The result of a session. What only its process told, and what was warned of before, is for the caller to add.
pub(super) async fn judge(attempt: &Attempt, over: Over, site: &Site<'_>) -> TrialResult {
    let Over { finished, observed, grading, another_case } = over;
    let case = &attempt.case;
    let stop = observed.stop.clone().unwrap_or_else(|| no_stop("the trace has no stop"));
    let metrics = metrics::of(&finished, &observed);
    let evidence = Evidence {
        header: &finished.header,
        harness: &attempt.manifest.name,
        model: attempt.trial.model.as_deref(),
        stop: &stop,
        usage: &finished.total,
        output: stop.output.as_deref().unwrap_or(""),
        metrics: &metrics,
        duration_ms: observed.duration_ms(&finished.header),
        workspace: site.workspace,
        change: site.change,
        case_folder: case.folder(),
        trace: site.trace,
        patch: site.patch,
        shell: site.shell,
        judges: site.judges,
    };
    let failed = error_of(&stop);
    // Where the session failed nothing answered, and that is why no model is the one required.
    let required = case.require_model && failed.is_none();
    let wrong_model = required.then(|| wrong_model(&finished.header.model)).flatten();
    let error = failed
        .or(wrong_model.as_ref().map(|_| ErrorCategory::Handshake))
        .or(another_case.as_ref().map(|_| ErrorCategory::Setup));
    let grades = if error.is_some() { Vec::new() } else { grading.finish(&evidence).await };
    let mut result = TrialResult {
        model: finished.header.model.clone(),
        agent: finished.header.agent.clone(),
        metrics,
        stop: Some(StopRecord { reason: stop.reason, detail: stop.detail.clone(), exit: stop.exit, stderr_tail: None }),
        error: error.map(|category| {
            let message =
                wrong_model.or(another_case).unwrap_or_else(|| message_of(category, &stop, &attempt.manifest));
            ErrorRecord { category, message }
        }),
        attempt: attempt.attempt,
        shape: observed.shape.clone(),
        warnings: observed.warning().into_iter().collect(),
        manual: is_manual(attempt),
        grades,
        ..TrialResult::blank(&attempt.trial, Verdict::Errored)
    };
    decide(&mut result, attempt, &observed, site.touched);
    result
}

/// The verdict that follows from what stands in a result.
pub(super) fn decide(result: &mut TrialResult, attempt: &Attempt, observed: &Observed, touched: bool) {
    if result.error.is_some() {
        return;
    }
    limits_and_grades(result, attempt, observed);
    if touched && attempt.case.workspace.protect_strict {
        (result.verdict, result.score) = (Verdict::Fail, Some(Fraction::ZERO));
    }
}
