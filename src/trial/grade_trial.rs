//! Derives the result from a finished session: error, grades, limits, verdict. Live, stored and audited
//! sessions are graded here, and nowhere else.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::between::Between;
use super::changed_evidence::WrittenFiles;
use super::ending::{check_all_answered, error_of, is_manual, limits_and_grades, message_of, no_stop, wrong_model};
use super::limits::unknown_by_stop;
use super::metrics::{self, Observed};
use super::{Attempt, above};
use crate::grader::{Evidence, Grading, Renewed, Surroundings};
use crate::judge::Judges;
use crate::result::{ErrorRecord, StopRecord, TrialResult, Warning};
use crate::shell::Shell;
use crate::text::some_of;
use crate::trace::ErrorCategory;
use crate::trace::recorder::Finished;
use crate::trace::usage::Measure;
use crate::values::{Fraction, Time};
use crate::verdict::Verdict;
use crate::workspace::change::Change;

/// A finished session, with the observers of all of its events.
pub(super) struct ObservedSession {
    /// The header, and the usage.
    pub finished: Finished,
    /// The counts.
    pub observed: Observed,
    /// The graders.
    pub grading: Grading,
    /// The reason why the session must not be graded although the agent answered, such as another model than the
    /// planned one.
    pub not_as_set_up: Option<(ErrorCategory, String)>,
}

/// The workspace after a session, ready for the graders.
pub(super) struct GradedWorkspace<'a> {
    /// The folder. Absent if it no longer exists.
    pub workspace: Option<&'a Path>,
    /// The change made by the agent. Absent if unknown.
    pub change: Option<&'a Change>,
    /// The file of the trace. Absent if there is none.
    pub trace: Option<&'a Path>,
    /// The file of the change. Absent if there is none.
    pub patch: Option<&'a Path>,
    /// True if protected files had to be restored.
    pub touched: bool,
    /// Restores what a grader's commands changed before the next grader runs commands.
    pub between: &'a Between,
    /// The reason why no grader can run commands, if there is one.
    pub obstacle: Option<&'a str>,
    /// The evidence that a grader's commands must not change. Absent if no grader runs commands, or if no files are written.
    pub written: Option<&'a WrittenFiles>,
    /// The shell for commands of graders.
    pub shell: &'a Shell,
    /// The judge models.
    pub judges: &'a Judges,
    /// A variable whose value is a secret that is too short to be masked. Absent if every secret is masked.
    pub unmasked: Option<&'a str>,
}

impl Surroundings for GradedWorkspace<'_> {
    fn obstacle(&self) -> Option<String> {
        self.obstacle.map(str::to_owned)
    }

    fn doubt(&self) -> Option<String> {
        self.between.doubt().map(str::to_owned)
    }

    fn restore(&self) -> Result<Renewed, String> {
        self.between.restore()
    }

    fn has_files(&self) -> bool {
        self.between.watched().is_some()
    }

    fn look(&self) {
        self.between.watched().iter().for_each(|files| files.look());
    }

    fn begin(&self) {
        self.between.watched().iter().for_each(|files| files.begin());
    }

    fn end(&self) -> Option<String> {
        self.written.iter().for_each(|files| files.look());
        self.between.look_above();
        self.between.watched()?.end()
    }
}

/// Returns the result of a session. The caller adds the data that only the process reported, and earlier warnings.
pub(super) async fn grade(attempt: &Attempt, session: ObservedSession, site: &GradedWorkspace<'_>) -> TrialResult {
    let ObservedSession { finished, observed, grading, not_as_set_up } = session;
    let case = &attempt.case;
    let stop = observed.stop.clone().unwrap_or_else(|| no_stop("the trace has no stop"));
    let mut metrics = metrics::of(&finished, &observed);
    metrics.changed_files = site.change.map(|change| change.all().count() as u64);
    if site.change.is_some_and(Change::may_lack_files) {
        metrics.lower_bounds.push(Measure::ChangedFiles);
    }
    let evidence = Evidence {
        header: &finished.header,
        harness: &attempt.manifest.name,
        model: attempt.trial.model.as_deref(),
        arm: &attempt.trial.arm,
        lasting_answer: grading.lasting_answer(),
        stop: &stop,
        usage: &finished.total,
        output: stop.output.as_deref().unwrap_or(""),
        metrics: &metrics,
        duration_ms: observed.duration_ms(&finished.header),
        workspace: site.workspace,
        change: site.change,
        hidden: case.hidden.as_deref().filter(|_| site.workspace.is_some()),
        case_folder: case.folder(),
        trace: site.trace,
        patch: site.patch,
        shell: site.shell,
        judges: site.judges,
        unmasked: site.unmasked,
    };
    let failed = error_of(&stop);
    // If the session failed, no model answered, which explains why it is not the required one.
    let required = case.require_model && failed.is_none();
    let wrong_model = required.then(|| wrong_model(&finished.header.model)).flatten();
    let stopped_ms = finished.header.stopped_ms.filter(|_| failed.is_none()).unwrap_or_default();
    let of_stop = unknown_by_stop(&case.limits, &observed, stopped_ms).map(|key| {
        let stopped = Time(Duration::from_millis(stopped_ms));
        format!("evals itself was stopped for {stopped}, so it is unknown whether limit `{key}` was kept")
    });
    // What the gateway saw of the model is the cause of what the agent then did.
    let (of_model, of_setup) = match not_as_set_up {
        Some((ErrorCategory::Setup, why)) => (None, Some(why)),
        other => (other, None),
    };
    let error = of_model
        .as_ref()
        .map(|(category, _)| *category)
        .or(failed)
        .or(wrong_model.as_ref().map(|_| ErrorCategory::Handshake))
        .or(of_setup.as_ref().map(|_| ErrorCategory::Setup))
        .or(of_stop.as_ref().map(|_| ErrorCategory::Internal));
    let mut restored = BTreeSet::new();
    let grades = match error {
        Some(_) => Vec::new(),
        None => grading.finish_in(&evidence, &mut restored, site).await,
    };
    let mut result = TrialResult {
        model: finished.header.model.clone(),
        agent: finished.header.agent.clone(),
        metrics,
        stop: Some(StopRecord { reason: stop.reason, detail: stop.detail.clone(), exit: stop.exit, stderr_tail: None }),
        error: error.map(|category| {
            let reason = of_model.map(|(_, why)| why).or(wrong_model).or(of_setup).or(of_stop);
            let message = reason.unwrap_or_else(|| message_of(category, &stop, &attempt.manifest));
            ErrorRecord { category, message }
        }),
        attempt: attempt.attempt,
        shape: observed.shape.clone(),
        warnings: observed.warnings(),
        manual: is_manual(attempt),
        grades,
        ..TrialResult::blank(&attempt.trial, Verdict::Errored)
    };
    if !restored.is_empty() {
        let files = some_of(restored.iter().map(|path| path.display().to_string()), 5);
        result.warnings.push(Warning::HiddenPutBack { files });
    }
    result.warnings.extend(finished.header.stopped_ms.map(|ms| Warning::EngineStopped { ms }));
    let undone = site.between.warnings();
    above::withdraw(&mut result, &undone);
    result.warnings.extend(undone);
    decide(&mut result, attempt, &observed, site.touched);
    result
}

/// Sets the verdict that follows from the content of a result.
pub(super) fn decide(result: &mut TrialResult, attempt: &Attempt, observed: &Observed, touched: bool) {
    if result.error.is_some() {
        return;
    }
    limits_and_grades(result, attempt, observed);
    if touched && attempt.case.workspace.protect_strict {
        (result.verdict, result.score) = (Verdict::Fail, Some(Fraction::ZERO));
    }
    check_all_answered(result, observed);
}
