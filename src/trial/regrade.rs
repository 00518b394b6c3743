//! Grades a stored trial again: its trace, and the workspace that was kept or is rebuilt from its source and
//! patch.

use std::mem::take;
use std::path::PathBuf;

use super::between::Between;
use super::ending::{check_all_sent, error_of, mask_result};
use super::grade_trial::{self, GradedWorkspace, ObservedSession, decide};
use super::metrics::Observed;
use super::{
    Attempt, Engine, Folders, Outcome, TrialError, above, grade_stored, io, limits, on_blocking_thread, other_keys,
    unless_interrupted,
};
use crate::case::EvidenceKeys;
use crate::environment;
use crate::ids::TrialRecord;
use crate::result::{EarlierAttempts, ErrorRecord, ResultBefore, TrialResult, Warning};
use crate::secrets::Masker;
use crate::shell::Shell;
use crate::trace::ErrorCategory;
use crate::verdict::Verdict;
use prepare::{RegradeSetup, prepare_stored};

mod kept;
mod prepare;
mod rebuilt;

/// The comparison of the inputs that the agent of a stored trial had with those that the case names now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InputsOfAgent {
    /// They are the same, also those of the case by which the earlier result was graded.
    Same,
    /// They may differ: nothing records what the agent had, or the earlier result was graded by a case of unknown inputs.
    #[default]
    Unknown,
    /// They differ: another prompt, workspace, environment, policy or limits.
    Other,
}

/// The stored files of a trial.
#[derive(Debug, Clone, Default)]
pub struct StoredFiles {
    pub trace: Option<PathBuf>,
    /// The patch of the workspace.
    pub patch: Option<PathBuf>,
    /// The workspace, if it was kept.
    pub kept: Option<PathBuf>,
    /// The digest of the kept workspace as the graders of its run left it; absent in runs of older versions.
    pub kept_digest: Option<String>,
    /// The reason why the workspace cannot be rebuilt from the current sources of the case, if there is one.
    pub no_source: Option<String>,
    /// The reason why a rebuilt workspace may be wrong, if there is one.
    pub doubt: Option<String>,
    /// The keys of the case when the trial ran; absent for single traces and in runs of older versions.
    pub keys: Option<EvidenceKeys>,
    /// The comparison of the agent's inputs with those of the case.
    pub inputs: InputsOfAgent,
    /// The reason why the trace or the patch differs from the one that was graded, if it does.
    pub changed: Option<String>,
    /// The earlier result.
    pub earlier: Option<TrialResult>,
    /// The result beside a single trace, if it belongs to the trace. Another case may have graded it.
    pub beside: Option<TrialResult>,
    /// The stored error of the trial, used if its stored result is not; the trace alone may not show it.
    pub error: Option<ErrorRecord>,
}

impl StoredFiles {
    /// Returns the stored result of the trial, or else the one beside a single trace.
    fn result(&self) -> Option<&TrialResult> {
        self.earlier.as_ref().or(self.beside.as_ref())
    }

    fn warnings(&self) -> &[Warning] {
        self.result().map(|result| result.warnings.as_slice()).unwrap_or_default()
    }

    /// Returns why the trial cannot be graded, if another program changed its evidence while the trial ran.
    fn changed_evidence(&self) -> Option<String> {
        self.warnings().iter().find_map(|warning| match warning {
            Warning::EvidenceChanged { files, ungraded: true } => {
                Some(format!("another program changed files of the engine during the trial: {files}"))
            }
            _ => None,
        })
    }

    /// Returns the number of prompts that were sent, as far as it is known. `shown` is the number that the trace shows.
    fn prompts_sent(&self, shown: usize) -> Option<usize> {
        let of_result = self.earlier.iter().flat_map(|earlier| &earlier.warnings).find_map(|warning| match warning {
            Warning::PromptsNotSent { sent, .. } => Some(*sent as usize),
            _ => None,
        });
        // Without its warning, all prompts of the case were sent that graded the earlier result: the case may have more now.
        let is_of_trace = self.earlier.is_none() || self.inputs != InputsOfAgent::Same;
        of_result.or_else(|| is_of_trace.then_some(shown))
    }
}

const MAY_BE_TOUCHED: &str = "`protect-strict` is set, and no result of the trial records whether the agent changed a \
                              protected file";

/// Grades a stored trial by the current graders of its case. No agent is started, and the stored files are not
/// changed.
///
/// # Errors
/// Returns an error if the engine itself fails.
pub async fn grade(engine: &Engine, attempt: &Attempt, stored: &StoredFiles) -> Result<Outcome, TrialError> {
    let case = &attempt.case;
    let given = environment::given_by(case);
    let (masker, unread) = environment::masker_of_what_is_known(&engine.env, &case.env, &attempt.manifest, &given);
    if let Some(unread) = unread {
        return Ok(completed(without_trace(attempt, stored, &unread.to_string()), stored, &masker));
    }
    let session = match observe(attempt, stored, &masker).await? {
        Ok(session) => session,
        Err(why) => return Ok(completed(without_trace(attempt, stored, &why), stored, &masker)),
    };
    let errored = session.observed.stop.as_ref().and_then(error_of).is_some();
    // A recording was made in another workspace, and workspaces of errored trials are not graded.
    let has_workspace = !errored && attempt.manifest.recording.is_none();
    let looked_into = !errored && case.graders.iter().any(|grader| grader.kind.needs().reads_files());
    let folders = if looked_into { Some(Folders::make(&engine.temporary)?) } else { None };
    let preparing = async {
        match has_workspace {
            true => prepare_stored(engine, attempt, stored, folders.as_ref()).await,
            false => Ok(RegradeSetup::default()),
        }
    };
    let Some(result) = unless_interrupted(engine, preparing).await else { return Ok(Outcome::Interrupted) };
    let mut prepared = result?;
    // If there never was a workspace, a script grades without one. A lost workspace is a different situation.
    let never_had_one =
        !has_workspace || (stored.earlier.is_none() && stored.kept.is_none() && prepared.shell.is_none());
    let nowhere = match &folders {
        Some(folders) if never_had_one => prepared.shell_without_workspace(engine, attempt, folders)?,
        _ => Shell::default(),
    };
    let unknown_protection = other_keys::of_protection(stored.keys.as_ref(), case, prepared.change.as_ref())
        .filter(|_| has_workspace && case.workspace.protect_strict && prepared.touched.is_empty());
    let other_change = other_keys::of_change(stored.keys.as_ref(), case).filter(|_| has_workspace);
    if let Some(why) = other_change {
        prepared.is_of_other_keys(why);
    }
    let from_root = |path: &Option<PathBuf>| path.as_deref().and_then(|path| std::path::absolute(path).ok());
    let (trace, patch) = (from_root(&stored.trace), from_root(&stored.patch));
    let between = match (&folders, &prepared.shell) {
        (Some(folders), Some(shell)) => {
            // What is kept is as the graders left it, and setup may have made other files now.
            Between::of(case, folders, shell, prepared.before.as_ref(), engine, &prepared.touched, false)?
        }
        _ => Between::default(),
    };
    let site = GradedWorkspace {
        workspace: folders.as_ref().filter(|_| prepared.shell.is_some()).map(|folders| &*folders.workspace),
        change: prepared.change.as_ref(),
        trace: trace.as_deref(),
        patch: patch.as_deref().filter(|_| has_workspace && other_change.is_none()),
        touched: !prepared.touched.is_empty(),
        between: &between,
        obstacle: None,
        written: None,
        shell: prepared.shell.as_ref().unwrap_or(&nowhere),
        judges: &engine.judges,
        unmasked: stored.warnings().iter().find_map(Warning::unmasked),
    };
    let observed = session.observed.clone();
    let Some(mut result) = unless_interrupted(engine, grade_trial::grade(attempt, session, &site)).await else {
        return Ok(Outcome::Interrupted);
    };
    folders.as_ref().map_or(Ok(()), |folders| folders.check_disk("the graders ended"))?;
    let may_be_touched = (has_workspace && prepared.may_be_touched(attempt)).then(|| MAY_BE_TOUCHED.to_owned());
    withdraw_and_warn(&mut result, attempt, stored, &observed, &mut prepared);
    if let Some(why) = unknown_protection.or(may_be_touched).filter(|_| result.verdict == Verdict::Pass) {
        (result.verdict, result.score) = (Verdict::Ungraded, None);
        result.warnings.push(Warning::NotGradedAgain { why });
    }
    if let (Some(now), Some(earlier)) =
        (&mut result.stop, stored.earlier.as_ref().and_then(|earlier| earlier.stop.as_ref()))
    {
        now.stderr_tail.clone_from(&earlier.stderr_tail);
    }
    on_blocking_thread(move || drop(folders)).await?;
    Ok(completed(result, stored, &masker))
}

/// Reads the trace of a stored trial, and passes its events to the current graders. Returns the reason if the trial cannot be
/// graded by its trace.
///
/// # Errors
/// Returns an error if a single trace cannot be read.
async fn observe(
    attempt: &Attempt,
    stored: &StoredFiles,
    masker: &Masker,
) -> Result<Result<ObservedSession, String>, TrialError> {
    let Some(trace) = stored.trace.clone() else { return Ok(Err("its trace is missing".to_owned())) };
    let (graders, manifest) = (attempt.case.graders.clone(), attempt.manifest.clone());
    let marks = attempt.case.secrets_in_graders(masker);
    let watched = on_blocking_thread(move || grade_stored::watch(&trace, &graders, marks, &manifest)).await?;
    let mut session = match watched {
        Ok(session) => session,
        Err(error) if stored.earlier.is_none() => return Err(io("read the trace")(std::io::Error::other(error))),
        Err(error) => return Ok(Err(format!("its trace could not be read: {error}"))),
    };
    if let Some(why) = stored.changed.clone().or_else(|| stored.changed_evidence()) {
        return Ok(Err(why));
    }
    let of_stop = session.observed.stop.as_ref().and_then(error_of);
    // The trace does not show whether the trial belongs to another case, or whether its model was the planned one.
    let error = stored.earlier.as_ref().and_then(|earlier| earlier.error.as_ref()).or(stored.error.as_ref());
    let of_gateway =
        |category| matches!(category, ErrorCategory::Provider | ErrorCategory::Auth) && of_stop != Some(category);
    let kept = error.filter(|it| it.category == ErrorCategory::Setup || of_gateway(it.category));
    session.not_as_set_up = kept.map(|it| (it.category, it.message.clone()));
    Ok(Ok(session))
}

/// Withdraws the results that the stored workspace cannot show, and collects the warnings: those of the session, of the workspace
/// and of the new grades.
fn withdraw_and_warn(
    result: &mut TrialResult,
    attempt: &Attempt,
    stored: &StoredFiles,
    observed: &Observed,
    prepared: &mut RegradeSetup,
) {
    let mut earlier = take(&mut result.warnings);
    // What lay above the workspace may still lie there, and may have left traces in a kept workspace.
    let is_withdrawn = above::withdraw(result, stored.warnings());
    if prepared.says_less_than_before(result, attempt, stored.earlier.as_ref()) || is_withdrawn {
        decide(result, attempt, observed, !prepared.touched.is_empty());
    }
    result.warnings = carried(stored);
    result.warnings.append(&mut prepared.touched);
    result.warnings.append(&mut prepared.warnings);
    // Warnings from the trace were already added.
    earlier.retain(|line| !result.warnings.contains(line));
    result.warnings.append(&mut earlier);
    let sent = stored.prompts_sent(observed.prompts).unwrap_or_default();
    check_all_sent(result, attempt, sent, observed.stopped_by_engine);
    if stored.inputs == InputsOfAgent::Other && result.error.is_none() {
        result.warnings.push(Warning::OtherInputs);
        let another = limits::ended_by_another(&attempt.case.limits, &result.metrics, observed);
        // The limits of a single trace's session are unknown.
        let is_of_run = stored.earlier.is_some();
        if let Some(key) = another.filter(|_| is_of_run && result.verdict == Verdict::Pass) {
            let why =
                format!("limit `{key}` ended the session, and the limits of the case would have let the agent go on");
            (result.verdict, result.score) = (Verdict::Ungraded, None);
            result.warnings.push(Warning::NotGradedAgain { why });
        }
    }
}

fn completed(mut result: TrialResult, stored: &StoredFiles, masker: &Masker) -> Outcome {
    mask_result(&mut result, masker);
    if let Some(earlier) = &stored.earlier {
        // A person's part in the stored trial does not depend on the current case.
        result.manual = earlier.manual;
        result.files.clone_from(&earlier.files);
        result.beyond_patch.clone_from(&earlier.beyond_patch);
        result.beside_patch.clone_from(&earlier.beside_patch);
        result.kept_beyond_patch.clone_from(&earlier.kept_beyond_patch);
        result.policy_model.clone_from(&earlier.policy_model);
        result.model_from = earlier.model_from;
        // Of the judges, those of this grading count.
        result.earlier_attempts = earlier.earlier_attempts.map(|earlier| EarlierAttempts { judges: None, ..earlier });
        result.flaky = earlier.flaky && result.verdict == Verdict::Pass;
        if result.flaky {
            let flaky = earlier.warnings.iter().filter(|warning| matches!(warning, Warning::Flaky { .. }));
            result.warnings.extend(flaky.cloned());
        }
        result.was = ResultBefore::of(earlier, &result);
    }
    Outcome::Done(Box::new(result))
}

/// Returns the warnings about the session itself, which remain valid.
fn carried(stored: &StoredFiles) -> Vec<Warning> {
    let warnings = stored.earlier.iter().flat_map(|earlier| &earlier.warnings);
    warnings.filter(|warning| !warning.is_of_grading()).cloned().collect()
}

/// Returns the result of a trial without a trace: errored as before, or ungraded.
fn without_trace(attempt: &Attempt, stored: &StoredFiles, why: &str) -> TrialResult {
    if let Some(earlier) = stored.earlier.clone().filter(|earlier| earlier.error.is_some()) {
        return earlier;
    }
    ungraded(&attempt.trial, attempt.attempt, stored, why)
}

/// Returns the result of a trial that can no longer be graded.
pub fn ungraded(trial: &TrialRecord, attempt: u32, stored: &StoredFiles, why: &str) -> TrialResult {
    let earlier = stored.earlier.clone();
    let blank = || TrialResult { attempt, ..TrialResult::blank(trial, Verdict::Ungraded) };
    let mut result = earlier.unwrap_or_else(blank);
    (result.verdict, result.score, result.grades) = (Verdict::Ungraded, None, Vec::new());
    result.warnings.retain(|warning| !warning.tells_of_a_lack());
    result.warnings.push(Warning::NotGradedAgain { why: why.to_owned() });
    if let Some(earlier) = &stored.earlier {
        result.was = ResultBefore::of(earlier, &result);
    }
    result
}

/// Returns the result of a trial whose case no longer exists: errored as before, or ungraded.
pub fn without_case(trial: &TrialRecord, attempt: u32, stored: &StoredFiles, why: &str) -> TrialResult {
    let errored = stored.earlier.clone().filter(|earlier| earlier.error.is_some());
    errored.unwrap_or_else(|| ungraded(trial, attempt, stored, why))
}
