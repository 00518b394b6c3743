//! A trial with a built-in agent without a process: the agent changes the workspace, returns a message, and
//! ends. Everything else is as for other agents.

use std::collections::BTreeMap;
use std::fs;
use std::io as std_io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::between::Between;
use super::grade_trial::{self, GradedWorkspace, ObservedSession};
use super::measure::{MeasuredChange, after_the_agent};
use super::metrics::Observed;
use super::prepare_workspace::{NotSetUp, set_up};
use super::sandboxing::{graders_shell, inside, shell};
use super::{Attempt, Engine, Folders, TrialError, io, on_blocking_thread, unless_interrupted};
use crate::case::Case;
use crate::case::digest::file_digest;
use crate::environment;
use crate::grader::Grading;
use crate::harness::Manifest;
use crate::ids::TrialRecord;
use crate::interaction::Interaction;
use crate::process::memory;
use crate::result::{TrialResult, Warning};
use crate::sandbox;
use crate::secrets::Masker;
use crate::shell::Shell;
use crate::trace::recorder::{Continuation, Finished, Recorder, Voice};
use crate::trace::{Exit, Header, Seen, Stop, StopReason};
use crate::workspace::git;

/// The outcome of the trial.
pub enum Played {
    Graded(Box<TrialResult>),
    /// The workspace could not be made, so the agent did not run; with the reason.
    NotReady(String),
    /// The user interrupted the trial.
    Interrupted,
}

/// The observations of a trial, besides its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observations {
    /// The patch of the agent's change.
    pub patch: Vec<u8>,
    /// True if the patch may lack a part of the change: ignored files, or files that could not be read.
    pub is_partial: bool,
    /// The digests of the requested files, as the graders found them.
    pub files: BTreeMap<PathBuf, String>,
}

/// The files whose digests are taken before a trial is graded.
#[derive(Debug, Clone)]
pub enum LookAt {
    /// The files that the agent changed, and the patch.
    Changes,
    File(PathBuf),
}

/// Returns the attempt of a built-in agent at a case.
pub fn attempt_of(case: &Arc<Case>, manifest: Manifest, folder: PathBuf) -> Attempt {
    let sandbox = sandbox::kind(None, case.sandbox.as_ref(), manifest.sandbox.as_ref());
    let trial = TrialRecord::alone(&case.id, &manifest.name, None, sandbox);
    // During an audit, no person and no model answers.
    let interaction = match &case.interaction {
        Interaction::Manual | Interaction::Llm(_) => Interaction::AutoApprove,
        other => other.clone(),
    };
    Attempt { interaction, ..Attempt::alone(case.clone(), Arc::new(manifest), trial, folder) }
}

/// Returns an act that applies a patch to the workspace with git.
pub fn applies(engine: &Engine, patch: &Path) -> impl FnOnce(&Path) -> std_io::Result<()> + Send + 'static {
    let (patch, allowed) = (patch.to_owned(), environment::allowed(&engine.env));
    move |workspace: &Path| {
        let env: BTreeMap<String, String> = allowed;
        let shell = Shell { folder: workspace.to_owned(), env, ..Shell::default() };
        // The act runs on a thread for blocking work, within the runtime.
        tokio::runtime::Handle::current().block_on(git::apply(&patch, false, &shell)).map_err(std_io::Error::other)
    }
}

/// Runs a trial with a built-in agent. None of its files are kept.
///
/// # Errors
/// Returns an error if the engine itself fails.
pub async fn play(
    engine: &Engine,
    attempt: &Attempt,
    act: impl FnOnce(&Path) -> std_io::Result<()> + Send + 'static,
    says: Option<&str>,
) -> Result<Played, TrialError> {
    Ok(play_and_look(engine, attempt, act, says, None).await?.0)
}

/// Runs a trial as [`play`] does, and returns its result with further observations.
///
/// # Errors
/// Returns an error if the engine itself fails.
pub async fn play_and_look(
    engine: &Engine,
    attempt: &Attempt,
    act: impl FnOnce(&Path) -> std_io::Result<()> + Send + 'static,
    says: Option<&str>,
    at: Option<LookAt>,
) -> Result<(Played, Observations), TrialError> {
    let case = &attempt.case;
    let not_ready = |why: String| Ok((Played::NotReady(why), Observations::default()));
    let folders = Folders::make(&engine.temporary)?;
    let inside = match inside(engine, attempt, &folders) {
        Ok(inside) => inside,
        Err(error) => return not_ready(error.to_string()),
    };
    // Half a solution, such as a mutation of it, may ask for memory without end.
    let memory = engine.memory.or_else(memory::half_of_the_machine);
    let shell = Shell { memory, ..shell(engine, attempt, &folders, &inside)? };
    let before = match unless_interrupted(engine, set_up(engine, attempt, &folders, &shell)).await {
        Some(Ok(before)) => before,
        Some(Err(NotSetUp::Case(why))) => return not_ready(why),
        Some(Err(NotSetUp::Engine(error))) => return Err(error),
        None => return Ok((Played::Interrupted, Observations::default())),
    };
    let trial = folders.beside("trial");
    fs::create_dir(&trial).map_err(io("make a folder for the trial"))?;
    let (after, observations) = {
        let (case, workspace) = (case.clone(), folders.workspace.clone());
        let before = before.state();
        on_blocking_thread(move || -> Result<(MeasuredChange, Observations), TrialError> {
            act(&workspace).map_err(io("change the workspace"))?;
            let after = after_the_agent(&case, &workspace, &before, &trial, &Masker::default())?;
            let observations = at.map(|at| look(&at, &workspace, &after)).transpose().map_err(io("read the change"))?;
            Ok((after, observations.unwrap_or_default()))
        })
        .await??
    };
    let session = session(attempt, &folders.workspace, says);
    let graders_shell = graders_shell(&shell, &folders, case, Some(&before))?;
    let between = Between::of(case, &folders, &graders_shell, Some(&before), engine, &[], true)?;
    let site = GradedWorkspace {
        workspace: Some(&folders.workspace),
        change: Some(&after.change),
        trace: None,
        patch: None,
        touched: after.touched,
        between: &between,
        obstacle: None,
        written: None,
        shell: &graders_shell,
        judges: &engine.judges,
        unmasked: None,
    };
    let mut result = unless_interrupted(engine, grade_trial::grade(attempt, session, &site)).await;
    folders.check_disk("the graders ended")?;
    if let Some(result) = &mut result {
        let shows_case = |warning: &Warning| matches!(warning, Warning::CaseInWorkspace { .. });
        result.warnings.extend(after.warnings.into_iter().filter(shows_case));
    }
    on_blocking_thread(move || drop(folders)).await?;
    Ok((result.map_or(Played::Interrupted, |result| Played::Graded(Box::new(result))), observations))
}

/// Reads the state of a trial before it is graded.
fn look(at: &LookAt, workspace: &Path, after: &MeasuredChange) -> std_io::Result<Observations> {
    let digest = |path: PathBuf| file_digest(&workspace.join(&path)).ok().map(|digest| (path, digest));
    match at {
        LookAt::File(path) => {
            Ok(Observations { files: digest(path.clone()).into_iter().collect(), ..Observations::default() })
        }
        LookAt::Changes => {
            let is_partial = after.warnings.iter().any(|warning| {
                use Warning::{CaseInWorkspace, ProtectMatchedNothing, ProtectedFile, ProtectedFiles};
                let is_of_case = matches!(warning, ProtectMatchedNothing { .. } | CaseInWorkspace { .. });
                !is_of_case && !matches!(warning, ProtectedFile { .. } | ProtectedFiles { .. })
            });
            let files = after.change.all().map(|(path, _)| PathBuf::from(path)).filter_map(digest).collect();
            Ok(Observations { patch: fs::read(after.patch.written())?, is_partial, files })
        }
    }
}

/// Returns a session that can show everything and contains no tool call.
fn session(attempt: &Attempt, workspace: &Path, says: Option<&str>) -> ObservedSession {
    let mut header = Header::new("audit", Seen { tracing: true, interaction: true });
    header.case = Some(attempt.case.id.clone());
    header.harness = Some(attempt.manifest.name.clone());
    header.trial = Some(attempt.trial.trial);
    header.cwd = Some(workspace.to_string_lossy().into_owned());
    let mut recorder = Recorder::new(header);
    for turn in &attempt.case.turns {
        recorder.say(Voice::User, None, turn, Continuation::Block);
        if let Some(text) = says {
            recorder.say(Voice::Agent, None, text, Continuation::Block);
        }
    }
    let exit = Some(Exit { code: Some(0), signal: None });
    let stop = Stop { reason: StopReason::EndTurn, category: None, detail: None, output: None, gap: None, exit };
    let Finished { header, events, total } = recorder.finish(stop, false);
    let mut grading = Grading::new(&attempt.case.graders, &header, Some(&attempt.manifest));
    let mut observed = Observed::default();
    for event in &events {
        observed.event(event);
        grading.event(event);
    }
    ObservedSession { finished: Finished { header, events: Vec::new(), total }, observed, grading, not_as_set_up: None }
}
