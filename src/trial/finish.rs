//! Finishes a trial after its session: grades, warnings, redaction, and files on disk.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use super::between::Between;
use super::changed_evidence::{self, WrittenFiles};
use super::ending::{
    mark_flaky, mask_result, message_of_held_on, no_stop, tail_worth_keeping, warn_after, write_result,
};
use super::grade_trial::{self, GradedWorkspace, ObservedSession};
use super::graders_home::UseOfHome;
use super::inputs::{InputState, still_held};
use super::measure::After;
use super::metrics::Observed;
use super::play::Played;
use super::prepare::Ready;
use super::prepare_workspace::{Before, Copies};
use super::sandboxing::{graders_shell, nowhere};
use super::{
    Attempt, Ended, Engine, Folders, Outcome, TrialError, above, foreign, graders_home, io, keep_workspace,
    on_blocking_thread, sync_trial, unless_interrupted,
};
use crate::result::{TrialResult, Warning};
use crate::run::integrity;
use crate::sandbox;
use crate::secrets::Masker;
use crate::trace::ErrorCategory;
use crate::whole_file::{PartFile, put_in_place};
use crate::workspace::tree_digest::tree_digest;

/// Grades the trial, and writes its files. The caller makes them durable, and removes the state before.
pub(super) async fn conclude(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    ready: Ready,
    played: Played,
    after: After,
    held: InputState,
) -> Result<(FinishedTrial, Before), Ended> {
    let Ready { task, inside, shell, masker, adviser, mut warnings, before, .. } = ready;
    let Played { finished, left, observed, grading, trace, gateway, loaded } = played;
    let After { change, patch, touched, beyond_patch, beside_patch, changed_copy, after_setup, warnings: of_workspace } =
        after;
    let (mut of_gateway, mut left_of_model, mut model_log, mut recorded) = (None, Vec::new(), None, None);
    let mut model_from = None;
    if let Some(gateway) = gateway {
        warnings.extend(gateway.warnings);
        (of_gateway, left_of_model, recorded) = (gateway.error, gateway.left, gateway.recorded);
        (model_log, model_from) = (Some(gateway.part), gateway.source);
    }
    let not_as_set_up = of_gateway.or(loaded.wrong.map(|why| (ErrorCategory::Setup, why)));
    if !loaded.unexpected.is_empty() {
        warnings.push(Warning::UnexpectedSkill { names: loaded.unexpected });
    }
    warnings.extend(loaded.skills_not_shown.then_some(Warning::SkillsNotListed));
    warnings.extend(loaded.servers_not_shown.then_some(Warning::ServersNotListed));
    warnings.extend(of_workspace);
    warnings.extend(attempt.foreign.clone());

    let (mut graders_shell, obstacle) = match graders_shell(&shell, folders, &attempt.case, Some(&before)) {
        Ok(graders) => (graders, None),
        // The agent took the permission away.
        Err(TrialError::Io { doing, source }) if source.kind() == ErrorKind::PermissionDenied => {
            let why =
                format!("could not be graded, because the agent's files are in the way: could not {doing}: {source}");
            (shell.clone(), Some(why))
        }
        Err(error) => return Err(error.into()),
    };
    // Grading commands run in the workspace, so the paths of their input files are absolute.
    let [trace_path, patch_path] = [trace.written(), patch.written()].map(|path| std::path::absolute(path).ok());
    // A recording was made in another workspace, so it is not evidence about this one.
    let live = task.recording.is_none();
    if !live {
        graders_shell = nowhere(&graders_shell, folders)?;
    }
    let runs_programs = above::matters(&attempt.case);
    let is_hidden = inside.sandbox.kind() != sandbox::Kind::None;
    let use_of_home = match graders_home::place_of_agents(folders, before.home(), is_hidden) {
        Some(agents) if live && runs_programs => {
            let (workspace, home) = (folders.workspace.clone(), folders.home.clone());
            let files: Vec<PathBuf> = change.created.iter().chain(&change.changed).map(PathBuf::from).collect();
            on_blocking_thread(move || graders_home::use_of_agents_home(&workspace, &home, &agents, &files)).await?
        }
        _ => None,
    };
    let files = runs_programs.then(|| WrittenFiles::of(&trace, &patch, &attempt.folder.join("wire.jsonl")));
    let unmasked = warnings.iter().find_map(Warning::unmasked).map(str::to_owned);
    let between = match obstacle {
        None => Between::of(&attempt.case, folders, &graders_shell, Some(&before), engine, &warnings, live)?,
        Some(_) => Between::default(),
    };
    let site = GradedWorkspace {
        workspace: live.then_some(&*folders.workspace),
        change: live.then_some(&change),
        touched,
        between: &between,
        obstacle: obstacle.as_deref(),
        written: files.as_ref(),
        trace: trace_path.as_deref(),
        patch: patch_path.as_deref().filter(|_| live),
        shell: &graders_shell,
        judges: &engine.judges,
        unmasked: unmasked.as_deref(),
    };
    let (stop, by_engine) = (observed.stop.clone(), observed.stopped_by_engine);
    let mut changed: Vec<String> = changed_copy.into_iter().collect();
    changed.extend(left.wire_changed.then(|| "`wire.jsonl`".to_owned()));
    let as_observed = (runs_programs || !changed.is_empty()).then(|| observed.clone());
    let over = ObservedSession { finished, observed, grading, not_as_set_up };
    let Some(mut result) = unless_interrupted(engine, grade_trial::grade(attempt, over, &site)).await else {
        return Err(Ended::With(Outcome::Interrupted));
    };
    folders.check_not_removed(&engine.temporary)?;
    folders.check_disk("the graders ended")?;
    (result.beyond_patch, result.beside_patch) = (beyond_patch, beside_patch);
    if let Some(observed) = as_observed {
        let copies = runs_programs.then(|| before.state().copies);
        let touched = site.touched;
        let evidence = EvidenceAtStake { observed, touched, copies, use_of_home, files };
        withdraw_after_grading(engine, attempt, evidence, &mut result, &mut warnings, &mut changed).await?;
    }
    warnings.extend(changed_evidence::warning(&changed, true));
    let stderr_changed = left.stderr_changed.then(|| "`stderr.log`".to_owned());
    warnings.extend(changed_evidence::warning(stderr_changed.as_slice(), false));

    result.model_from = model_from;
    still_held(attempt, held, &mut result).await?;
    let stop = stop.unwrap_or_else(|| no_stop("the trace has no stop"));
    if let Some(record) = &mut result.stop {
        record.stderr_tail = tail_worth_keeping(&left, &stop);
    }
    match &mut result.error {
        None => warnings.extend(left_of_model),
        Some(error) => {
            if error.category == ErrorCategory::Crashed
                && let Some(message) = message_of_held_on(&stop, &left, &attempt.manifest)
            {
                error.message = message;
            }
            let words = format!("{}\n{}", error.message, left.stderr_tail);
            if let Some(missing) = inside.missing(&task.command, &words) {
                error.message = format!("{} ({missing})", error.message);
            }
        }
    }
    warnings.append(&mut result.warnings);
    result.warnings = warnings;
    mark_flaky(&mut result, attempt);
    if !by_engine {
        warn_after(&mut result, &stop, &left);
    }
    let (sent, planned) = (left.prompts, attempt.case.turns.len());
    if result.error.is_none() && (1..planned).contains(&sent) {
        result.warnings.push(Warning::PromptsNotSent { sent: sent as u64, planned: planned as u64 });
    }
    let has_workspace = engine.keep.keeps(result.verdict);
    let kept_digest = match has_workspace {
        true => kept_workspace(attempt, folders, masker.clone(), &mut result).await?,
        false => None,
    };
    let is_own = |name: &str| match name {
        "wire.jsonl" | "stderr.log" => true,
        integrity::WORKSPACE => has_workspace,
        "attempts" => attempt.attempt > 1,
        _ => [&trace, &patch].into_iter().chain(&model_log).any(|part| part.written().ends_with(name)),
    };
    result.warnings.extend(foreign::take_all(&attempt.folder, is_own)?);
    result.policy_model = adviser.record();
    mask_result(&mut result, &masker);
    result.files.insert("trace.jsonl".to_owned(), trace.digest());
    result.files.insert("workspace.patch".to_owned(), patch.digest());
    result.files.extend(kept_digest.map(|digest| (integrity::WORKSPACE.to_owned(), digest)));
    result.files.extend(after_setup.map(|digest| (integrity::AFTER_SETUP.to_owned(), digest)));

    model_log.map_or(Ok(()), |part| put_in_place([part]))?;
    if let Some(recorded) = recorded.filter(|_| result.error.is_none()) {
        engine.gateway.keep(attempt.trial.trial, &recorded.file, &recorded.cassette)?;
    }
    let written = write_result(attempt, &mut result)?;
    Ok((FinishedTrial { folder: attempt.folder.clone(), trace, patch, written, result: Box::new(result) }, before))
}

/// The evidence of a session that programs of the agent may have changed while the graders ran.
struct EvidenceAtStake {
    observed: Observed,
    /// True if the agent changed a protected file.
    touched: bool,
    /// The engine's copies. `None` if no grader ran a program.
    copies: Option<Arc<Copies>>,
    use_of_home: Option<UseOfHome>,
    files: Option<WrittenFiles>,
}

/// Withdraws the grades that programs of the agent may have decided while the graders ran, and adds what was changed meanwhile.
async fn withdraw_after_grading(
    engine: &Engine,
    attempt: &Attempt,
    evidence: EvidenceAtStake,
    result: &mut TrialResult,
    warnings: &mut Vec<Warning>,
    changed: &mut Vec<String>,
) -> Result<(), TrialError> {
    let EvidenceAtStake { observed, touched, copies, use_of_home, files } = evidence;
    let mut is_withdrawn = false;
    if let Some(copies) = copies {
        let temporary = engine.temporary.clone();
        let left_meanwhile = on_blocking_thread(move || above::after_grading(&temporary)).await?;
        let left_meanwhile = left_meanwhile.map_err(io("remove what an agent left above the workspace"))?;
        // The same may have been found between two graders.
        warnings.extend(left_meanwhile.filter(|warning| !result.warnings.contains(warning)));
        is_withdrawn = above::withdraw(result, warnings);
        is_withdrawn |= graders_home::withdraw(result, use_of_home.as_ref());
        // Code of the agent that a grader ran can write to the copies, too.
        let copy = on_blocking_thread(move || copies.first_change()).await?;
        if changed.is_empty() {
            changed.extend(copy);
        }
    }
    changed.extend(files.iter().flat_map(WrittenFiles::changed));
    if !changed.is_empty() {
        changed_evidence::withdraw(result, changed);
        is_withdrawn = true;
    }
    if is_withdrawn {
        let told = std::mem::take(&mut result.warnings);
        // Whether a protected file was changed is unknown without the evidence.
        grade_trial::decide(result, attempt, &observed, touched && changed.is_empty());
        result.warnings = told;
    }
    Ok(())
}

/// Keeps the workspace of a trial, and returns its digest, if one could be made.
async fn kept_workspace(
    attempt: &Attempt,
    folders: &Folders,
    masker: Arc<Masker>,
    result: &mut TrialResult,
) -> Result<Option<String>, TrialError> {
    let (workspace, trial) = (folders.workspace.clone(), attempt.folder.clone());
    let (told, digest) = on_blocking_thread(move || {
        let told = keep_workspace::keep(&workspace, &trial, &masker);
        (told, tree_digest(&trial.join(integrity::WORKSPACE)))
    })
    .await?;
    result.warnings.extend(told);
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
