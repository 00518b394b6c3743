//! Finishes a trial after its session: grades, warnings, redaction, and files on disk.

use std::fs;
use std::io::ErrorKind;
use std::mem::take;
use std::path::PathBuf;
use std::sync::Arc;

use super::changed_evidence;
use super::ending::{
    check_all_sent, mark_flaky, mask_result, message_of_held_on, no_stop, tail_worth_keeping, warn_after, write_result,
};
use super::grade_live::LiveTrial;
use super::grade_trial::ObservedSession;
use super::inputs::{InputState, check_after_use};
use super::measure::MeasuredChange;
use super::play::Played;
use super::prepare::PreparedTrial;
use super::prepare_workspace::Before;
use super::{
    Attempt, Ended, Engine, Folders, TrialError, foreign, gateway, io, keep_workspace, on_blocking_thread, sync_trial,
};
use crate::result::{ErrorRecord, TrialResult, Warning};
use crate::run::integrity;
use crate::secrets::Masker;
use crate::session::SessionRemains;
use crate::trace::{ErrorCategory, Stop};
use crate::whole_file::{PartFile, put_in_place};
use crate::workspace::beyond_patch::{LINKED, SPECIAL};
use crate::workspace::tree_digest::tree_digest;

/// Grades the trial, and writes its files. The caller makes them durable, and removes the state before.
pub(super) async fn conclude(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    mut prepared: PreparedTrial,
    played: Played,
    mut measured: MeasuredChange,
    inputs: InputState,
) -> Result<(FinishedTrial, Before), Ended> {
    let Played { finished, remains, observed, grading, trace, mut gateway, loaded } = played;
    let mut warnings = take(&mut prepared.warnings);
    warnings.extend(gateway.iter_mut().flat_map(|gateway| take(&mut gateway.warnings)));
    warnings.extend(loaded.warnings());
    warnings.append(&mut measured.warnings);
    warnings.extend(attempt.foreign.clone());

    let stop = observed.stop.clone().unwrap_or_else(|| no_stop("the trace has no stop"));
    let by_engine = observed.stopped_by_engine;
    let of_gateway = gateway.as_mut().and_then(|gateway| gateway.error.take());
    let not_as_set_up = of_gateway.or(loaded.wrong.map(|why| (ErrorCategory::Setup, why)));
    let version = finished.header.agent.as_ref().and_then(|agent| agent.version.clone());
    let session = ObservedSession { finished, observed, grading, not_as_set_up };
    let live = LiveTrial {
        engine,
        attempt,
        folders,
        prepared: &prepared,
        measured: &measured,
        trace: &trace,
        wire_changed: remains.wire_changed,
    };
    let mut result = live.grade(session, &mut warnings).await?;
    let stderr_changed = remains.stderr_changed.then(|| "`stderr.log`".to_owned());
    warnings.extend(changed_evidence::warning(stderr_changed.as_slice(), false));

    (result.beyond_patch, result.beside_patch) = (take(&mut measured.beyond_patch), measured.beside_patch.take());
    result.model_from = gateway.as_ref().and_then(|gateway| gateway.source);
    check_after_use(attempt, inputs, &mut result).await?;
    if let Some(record) = &mut result.stop {
        record.stderr_tail = tail_worth_keeping(&remains, &stop);
    }
    match &mut result.error {
        None => warnings.extend(gateway.iter_mut().flat_map(|gateway| take(&mut gateway.left))),
        Some(error) => add_facts_of_process(error, attempt, &prepared, &stop, &remains, version.as_deref()),
    }
    warnings.append(&mut result.warnings);
    result.warnings = warnings;
    check_all_sent(&mut result, attempt, remains.prompts, by_engine);
    mark_flaky(&mut result, attempt);
    if !by_engine {
        warn_after(&mut result, &stop, &remains);
    }
    let files = TrialFiles { trace, patch: measured.patch, gateway, after_setup: measured.after_setup };
    let finished = write_files(engine, attempt, folders, &prepared, files, result).await?;
    Ok((finished, prepared.before))
}

/// Adds what the process and the sandbox show to the message of an error.
fn add_facts_of_process(
    error: &mut ErrorRecord,
    attempt: &Attempt,
    prepared: &PreparedTrial,
    stop: &Stop,
    remains: &SessionRemains,
    version: Option<&str>,
) {
    if error.category == ErrorCategory::Crashed
        && let Some(message) = message_of_held_on(stop, remains, &attempt.manifest)
    {
        error.message = message;
    }
    let words = format!("{}\n{}", error.message, remains.stderr_tail);
    if let Some(missing) = prepared.inside.missing(&prepared.task.command, &words) {
        error.message = format!("{} ({missing})", error.message);
    }
    let unverified = version.and_then(|version| Some((version, attempt.manifest.newest_if_unverified(version)?)));
    if let Some((version, newest)) = unverified.filter(|_| error.category == ErrorCategory::Crashed) {
        let message = &error.message;
        error.message = format!("{message} (the agent is version {version}, its manifest was verified with {newest})");
    }
}

/// The files of a trial that are complete before its result.
struct TrialFiles {
    trace: PartFile,
    patch: PartFile,
    gateway: Option<gateway::Ended>,
    /// The digest of the workspace as setup left it. Absent if the case has no setup commands.
    after_setup: Option<String>,
}

/// Keeps the workspace if the verdict requires it, completes the result, and writes it beside the other files.
async fn write_files(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    prepared: &PreparedTrial,
    files: TrialFiles,
    mut result: TrialResult,
) -> Result<FinishedTrial, TrialError> {
    let TrialFiles { trace, patch, gateway, after_setup } = files;
    let (model_log, recorded) = gateway.map(|gateway| (gateway.part, gateway.recorded)).unzip();
    let has_workspace = engine.keep.keeps(result.verdict);
    let kept_digest = match has_workspace {
        true => kept_workspace(attempt, folders, prepared.masker.clone(), &mut result).await?,
        false => None,
    };
    let is_own = |name: &str| match name {
        "wire.jsonl" | "stderr.log" => true,
        integrity::WORKSPACE => has_workspace,
        "attempts" => attempt.attempt > 1,
        _ => [&trace, &patch].into_iter().chain(&model_log).any(|part| part.written().ends_with(name)),
    };
    result.warnings.extend(foreign::take_all(&attempt.folder, is_own)?);
    result.policy_model = prepared.adviser.record();
    mask_result(&mut result, &prepared.masker);
    result.files.insert("trace.jsonl".to_owned(), trace.digest());
    result.files.insert("workspace.patch".to_owned(), patch.digest());
    result.files.extend(kept_digest.map(|digest| (integrity::WORKSPACE.to_owned(), digest)));
    result.files.extend(after_setup.map(|digest| (integrity::AFTER_SETUP.to_owned(), digest)));

    model_log.map_or(Ok(()), |part| put_in_place([part]))?;
    if let Some(recorded) = recorded.flatten().filter(|_| result.error.is_none()) {
        engine.gateway.keep(attempt.trial.trial, &recorded.file, &recorded.cassette)?;
    }
    let written = write_result(attempt, &mut result)?;
    Ok(FinishedTrial { folder: attempt.folder.clone(), trace, patch, written, result: Box::new(result) })
}

/// Keeps the workspace of a trial, and returns its digest, if one could be made.
async fn kept_workspace(
    attempt: &Attempt,
    folders: &Folders,
    masker: Arc<Masker>,
    result: &mut TrialResult,
) -> Result<Option<String>, TrialError> {
    let (workspace, trial) = (folders.workspace.clone(), attempt.folder.clone());
    let is_beyond = result.beyond_patch.iter().any(|words| [SPECIAL, LINKED].contains(&words.as_str()));
    let (warnings, kept_beyond, digest) = on_blocking_thread(move || {
        let warnings = keep_workspace::keep(&workspace, &trial, &masker);
        let kept = trial.join(integrity::WORKSPACE);
        let kept_beyond = if is_beyond { keep_workspace::kept_beyond_patch(&kept).ok() } else { None };
        (warnings, kept_beyond, tree_digest(&kept))
    })
    .await?;
    result.kept_beyond_patch = kept_beyond;
    result.warnings.extend(warnings);
    match digest {
        Ok(digest) => Ok(Some(digest)),
        // A workspace that could not be kept has its own warning.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        // Without its digest, a later change would not be noticed.
        Err(error) => {
            let error = format!("its digest could not be made: {error}");
            result.warnings.push(Warning::WorkspaceKeptInPart { error });
            Ok(None)
        }
    }
}

/// A graded trial whose files are complete, and not yet durable.
pub(super) struct FinishedTrial {
    folder: PathBuf,
    trace: PartFile,
    patch: PartFile,
    written: PartFile,
    result: Box<TrialResult>,
}

impl FinishedTrial {
    /// Makes the files durable, and returns the result. Blocks.
    pub(super) fn store(self) -> Result<Box<TrialResult>, TrialError> {
        match fs::File::open(self.folder.join("wire.jsonl")).and_then(|log| log.sync_data()) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io("sync the wire log")(error)),
            _ => {}
        }
        put_in_place([self.trace, self.patch, self.written])?;
        sync_trial(&self.folder)?;
        Ok(self.result)
    }
}
