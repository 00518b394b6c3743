//! Runs one planned Trial: workspace → agent → trace → change → hidden files → grades → verdict → files on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use crate::adapter::drive::{Task, drive};
use crate::adapter::{Adapter, Translation, replay};
use crate::case::Case;
use crate::embedded;
use crate::environment::{self};
use crate::grader::Grading;
use crate::harness::Manifest;
use crate::interaction::{Interaction, Person};
use crate::judge::Judges;
use crate::judge::adviser::OfTrial;
use crate::price;
use crate::result::TrialResult;
use crate::run::temporary::Vanishing;
use crate::run::{Keep, RunError, TrialRecord, put_in_place, sync_folder};
use crate::sandbox::{self};
use crate::secrets::{self};
use crate::session::{self, Left, Session, Setup};
use crate::trace::recorder::{Finished, Recorder};
use crate::trace::{ErrorCategory, Event, Header};
use crate::wire::EngineLine;

mod after;
pub mod again;
pub mod audited;
mod before;
pub mod command;
mod confined;
mod earlier;
mod ending;
pub mod in_place_of_model;
mod judging;
pub mod kept;
mod lost;
pub mod metrics;
mod outside;
mod protected;
mod scripted;
mod servers;
mod stored;
mod task;
pub mod trace_file;

use after::{After, after_the_agent};
use before::set_up;
use confined::{confine, graders_shell, inside, nowhere, outside, shell};
use ending::{finish_without_agent, mark_flaky, mask_result, no_stop, tail_worth_keeping, warn_after, write_result};
use judging::{Over, Site};
use metrics::Observed;
use outside::Outside;
use scripted::ScriptedModel;
use task::{
    attach, header_of, missing_env, model_asked, placeholders, shown_as, task_of, trace_of_recording, warnings_before,
};
use trace_file::TraceFile;

/// What every trial of a run shares.
pub struct Engine {
    /// The engine's own environment.
    pub env: BTreeMap<String, String>,
    /// This program, for `{self}`.
    pub this_program: PathBuf,
    /// Which workspaces are kept.
    pub keep: Keep,
    /// Turns true when the user interrupts the run.
    pub interrupt: watch::Receiver<bool>,
    /// A private folder of the system's temporary one.
    pub temporary: PathBuf,
    /// An empty folder in it: what an empty workspace was before.
    pub empty: PathBuf,
    /// What no agent has to see: cases and what they hide, graders, runs.
    pub hides: Vec<PathBuf>,
    /// A sandbox in the place of the cases' and the manifests' own.
    pub sandbox: Option<sandbox::Kind>,
    /// Who answers what the policy `manual` asks.
    pub person: Option<Arc<dyn Person>>,
    /// Asks models, for graders and the policy `llm`.
    pub judges: Judges,
}

/// One attempt at a trial.
pub struct Attempt {
    /// The case.
    pub case: Arc<Case>,
    /// The harness.
    pub manifest: Arc<Manifest>,
    /// Its place in the plan.
    pub trial: TrialRecord,
    /// What answers permission requests.
    pub interaction: Interaction,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Where its files go.
    pub folder: PathBuf,
}

/// What an attempt came to.
pub enum Outcome {
    /// It is done, and everything of it is on disk but its journal line.
    Done(Box<TrialResult>),
    /// The user interrupted it; it is run again by `--resume`.
    Interrupted,
}

/// Why an attempt could not be brought to a result. This is the engine's own failure.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// Its files could not be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file system refused.
    #[error("could not {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The engine itself has a mistake. The trial ends with it, and the others go on.
    #[error("the engine broke off: {0}")]
    Panicked(String),
}

impl TrialError {
    /// Whether no trial can go on: the disk takes nothing more.
    pub fn is_of_the_disk(&self) -> bool {
        use std::io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        let source = match self {
            TrialError::Run(RunError::Io { source, .. }) | TrialError::Io { source, .. } => source,
            TrialError::Run(_) | TrialError::Panicked(_) => return false,
        };
        matches!(source.kind(), StorageFull | QuotaExceeded | ReadOnlyFilesystem)
    }

    /// The same as an error of the run.
    pub fn of_run(self, folder: &Path) -> RunError {
        match self {
            TrialError::Panicked(_) => RunError::Malformed { path: folder.to_owned(), message: self.to_string() },
            TrialError::Run(error) => error,
            TrialError::Io { doing, source } => {
                RunError::Malformed { path: folder.to_owned(), message: format!("could not {doing}: {source}") }
            }
        }
    }
}

fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> TrialError {
    let doing = doing.into();
    move |source| TrialError::Io { doing, source }
}

/// The folders of a trial while it runs, all below one that vanishes with it.
struct Folders {
    /// Vanishes with them.
    _root: Vanishing,
    workspace: PathBuf,
    home: PathBuf,
}

impl Folders {
    fn make(temporary: &Path) -> Result<Self, TrialError> {
        let root = Vanishing::make(temporary, "trial-")
            .map_err(io(format!("make a private folder in {}", temporary.display())))?;
        // Agents report real paths, so the workspace's own must be one.
        let path = root.path().canonicalize().map_err(io("find the private folder"))?;
        let (workspace, home) = (path.join("workspace"), path.join("home"));
        fs::create_dir(&home).map_err(io("make the private home"))?;
        Ok(Self { _root: root, workspace, home })
    }

    /// A further folder of the trial's.
    fn beside(&self, name: &str) -> PathBuf {
        self.home.with_file_name(name)
    }
}

/// Runs an attempt to its result.
///
/// # Errors
/// The engine itself failed; the agent's failures are results.
pub async fn run(engine: &Engine, attempt: &Attempt) -> Result<Outcome, TrialError> {
    make_durable(&attempt.folder)?;
    let folders = Folders::make(&engine.temporary)?;
    let pointed = attempt.case.model_script.as_ref().and_then(|_| scripted::pointed(attempt));
    let outcome = run_in(engine, pointed.as_ref().unwrap_or(attempt), &folders).await;
    // It may hold very much, and other trials go on.
    aside(move || drop(folders)).await?;
    outcome
}

/// Does work that waits for the file system, perhaps for long, while other trials and the user are served.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, TrialError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| TrialError::Panicked(error.to_string()))
}

async fn run_in(engine: &Engine, attempt: &Attempt, folders: &Folders) -> Result<Outcome, TrialError> {
    let case = &attempt.case;
    let inside = match inside(engine, attempt, folders) {
        Ok(inside) => inside,
        Err(error) => {
            let masker = masker_before(engine, attempt);
            return finish_without_agent(attempt, &masker, ErrorCategory::Setup, error.to_string());
        }
    };
    let shell = shell(engine, attempt, folders, &inside)?;
    let scripted = match scripted::begin(attempt, folders, &inside).await {
        Ok(scripted) => scripted,
        Err(message) => {
            return finish_without_agent(attempt, &masker_before(engine, attempt), ErrorCategory::Setup, message);
        }
    };
    let placeholders = placeholders(engine, attempt, folders, scripted.as_ref().map(ScriptedModel::base_url))?;
    let mut env = environment::of_agent(&engine.env, &attempt.manifest, &case.env, &placeholders);
    if scripted.is_some() {
        env = scripted::environment(env, attempt, &placeholders);
    }
    let masker = Arc::new(environment::masker(&engine.env, &env, &attempt.manifest, &case.mcp_servers));
    let before = match unless_interrupted(engine, set_up(engine, attempt, folders, &shell)).await {
        Some(Ok(before)) => before,
        Some(Err(message)) => return finish_without_agent(attempt, &masker, ErrorCategory::Setup, message),
        None => return Ok(Outcome::Interrupted),
    };
    let mut warnings = warnings_before(attempt, &env, &masker);
    let mut task = task_of(attempt, folders, &placeholders, env, shell.clone());
    task.policy = task.policy.asking(engine.person.clone(), shown_as(attempt));
    let adviser = OfTrial { judges: engine.judges.clone(), masker: masker.as_ref().clone() };
    task.policy = task.policy.advised_by(Arc::new(adviser));
    if let Err(message) = attach(&mut task, attempt, folders) {
        return finish_without_agent(attempt, &masker, ErrorCategory::Setup, message);
    }
    let relay = scripted.as_ref().and_then(|scripted| scripted.relay.as_ref());
    confine(&mut task, inside.clone(), engine, &placeholders, relay);
    if let Some(message) = missing_env(&task) {
        return finish_without_agent(attempt, &masker, ErrorCategory::Auth, message);
    }
    let user_home = engine.env.get("HOME").map(PathBuf::from);
    environment::fill_home(&folders.home, user_home.as_deref(), &attempt.manifest, &placeholders)
        .map_err(io("fill the private home"))?;

    let mut header = header_of(attempt, &folders.workspace);
    if let Some(Ok(recorded)) = task.recording.as_deref().map(replay::recorded_in) {
        // What is played shows what it showed, and its lines are read as what they are.
        recorded.adapter.word().clone_into(&mut header.adapter);
        header.capabilities = recorded.capabilities;
    }
    let judged = Arc::new(Mutex::new(Watch {
        grading: Grading::new(&case.judges, &header),
        observed: Observed::default(),
        file: TraceFile::new(&attempt.folder, masker.clone()),
        outside: outside(&inside, folders),
    }));
    let sink = {
        let judged = judged.clone();
        Box::new(move |event: Event| lock(&judged).take(event))
    };
    let (finished, left) = match trace_of_recording(&task) {
        Some(path) => match replay::trace(&path, header, sink) {
            Ok(finished) => (finished, Left::default()),
            Err(error) => {
                let message = format!("the recording {} could not be read: {error}", path.display());
                return finish_without_agent(attempt, &masker, ErrorCategory::StartFailed, message);
            }
        },
        None => {
            let setup = Setup {
                wire: attempt.folder.join("wire.jsonl"),
                stderr: attempt.folder.join("stderr.log"),
                masker: masker.clone(),
                limits: case.limits,
                interrupt: engine.interrupt.clone(),
                sink,
                max_wire: session::MAX_WIRE,
            };
            run_session(setup, attempt, header, &mut task, &judged).await?
        }
    };
    let watch = Arc::try_unwrap(judged).ok().and_then(|watch| watch.into_inner().ok());
    let Some(Watch { grading, observed, file, .. }) = watch else {
        return Err(io("end the session")(std::io::Error::other("the trace is still being written")));
    };
    if file.joined_a_secret() && task.recording.is_none() {
        // A long log takes a while, and others wait for this thread.
        let (wire, masker) = (attempt.folder.join("wire.jsonl"), masker.clone());
        let masked = tokio::task::spawn_blocking(move || secrets::split::mask_wire(&wire, &masker)).await;
        masked.map_err(|error| io("mask the wire log")(std::io::Error::other(error)))??;
    }
    let trace = file.write(&attempt.folder.join("trace.jsonl"), &finished.header)?;
    let (mut not_played, mut left_of_script) = (None, Vec::new());
    let model_log = match scripted.map(|scripted| scripted.end(attempt, &masker)).transpose()? {
        Some(ended) => {
            warnings.extend(ended.warnings);
            (not_played, left_of_script) = (ended.not_played, ended.left);
            Some(ended.part)
        }
        None => None,
    };
    if left.interrupted {
        return Ok(Outcome::Interrupted);
    }
    if left.log_failed {
        return Err(io("write the wire log")(std::io::Error::other("the disk is full, or the file is gone")));
    }

    let after = {
        let (case, masker) = (case.clone(), masker.clone());
        let (workspace, trial) = (folders.workspace.clone(), attempt.folder.clone());
        aside(move || after_the_agent(&case, &workspace, &before.path, &trial, &masker)).await??
    };
    let After { change, patch, touched, warnings: more } = after;
    warnings.extend(more);
    let mut graders_shell = graders_shell(&shell, folders, &case.judges)?;
    // A grading command works in the workspace, so what it is to read is named from the root.
    let [trace_path, patch_path] = [trace.written(), patch.written()].map(|path| std::path::absolute(path).ok());
    // A recording was made in another workspace; of this one it says nothing.
    let live = task.recording.is_none();
    if !live {
        graders_shell = nowhere(&graders_shell, folders)?;
    }
    let site = Site {
        workspace: live.then_some(&*folders.workspace),
        change: live.then_some(&change),
        touched,
        trace: trace_path.as_deref(),
        patch: patch_path.as_deref().filter(|_| live),
        shell: &graders_shell,
        judges: &engine.judges,
    };
    let (stop, by_engine) = (observed.stop.clone(), observed.stopped_by_engine);
    let over = Over { finished, observed, grading, another_case: not_played };
    let Some(mut result) = unless_interrupted(engine, judging::judge(attempt, over, &site)).await else {
        return Ok(Outcome::Interrupted);
    };
    let stop = stop.unwrap_or_else(|| no_stop("the trace has no stop"));
    if let Some(record) = &mut result.stop {
        record.stderr_tail = tail_worth_keeping(&left, &stop);
    }
    if result.error.is_none() {
        warnings.extend(left_of_script);
    }
    warnings.append(&mut result.warnings);
    result.warnings = warnings;
    mark_flaky(&mut result, attempt);
    if !by_engine {
        warn_after(&mut result, &stop, left.held_on);
    }
    if engine.keep.keeps(result.verdict) {
        let (workspace, trial, masker) = (folders.workspace.clone(), attempt.folder.clone(), masker.clone());
        result.warnings.extend(aside(move || kept::keep(&workspace, &trial, &masker)).await?);
    }
    mask_result(&mut result, &masker);
    let wire = attempt.folder.join("wire.jsonl");
    if wire.exists() {
        fs::File::open(&wire).and_then(|log| log.sync_data()).map_err(io("sync the wire log"))?;
    }
    model_log.map_or(Ok(()), |part| put_in_place([part]))?;
    put_in_place([trace, patch, write_result(attempt, &mut result)?])?;
    sync_folder(&attempt.folder)?;
    Ok(Outcome::Done(Box::new(result)))
}

/// What commands of the case are waited for; nothing once the user interrupts the run, which ends them.
async fn unless_interrupted<T>(engine: &Engine, work: impl Future<Output = T>) -> Option<T> {
    let mut interrupt = engine.interrupt.clone();
    let interrupted = async move {
        if interrupt.wait_for(|on| *on).await.is_err() {
            // Nobody is left who could interrupt.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        done = work => Some(done),
        () = interrupted => None,
    }
}

/// Everything that watches the events of a session go by.
struct Watch {
    grading: Grading,
    observed: Observed,
    file: TraceFile,
    outside: Outside,
}

/// What calls named outside of the trial, those that have not ended too.
fn watched_outside(judged: &Mutex<Watch>, recorder: &Recorder) -> Vec<String> {
    let mut outside = std::mem::take(&mut lock(judged).outside);
    recorder.held().for_each(|event| outside.event(event));
    outside.notices()
}

impl Watch {
    fn take(&mut self, event: Event) {
        // Graders read the masked trace: what no file shows must decide nothing.
        let event = self.file.take(event);
        self.observed.event(&event);
        self.outside.event(&event);
        self.grading.event(&event);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

async fn run_session(
    setup: Setup,
    attempt: &Attempt,
    header: Header,
    task: &mut Task,
    judged: &Mutex<Watch>,
) -> Result<(Finished, Left), TrialError> {
    let recorded = task.recording.as_ref().and_then(|path| replay::recorded_in(path).ok());
    let adapter = match (&task.recording, &recorded) {
        (Some(_), Some(recorded)) => recorded.adapter,
        (Some(_), None) => Adapter::OutputOnly,
        (None, _) => attempt.manifest.adapter,
    };
    // What the lines of a stream are is said by the manifest of the agent that it was recorded with.
    let recorded_with = recorded.and_then(|recorded| recorded.harness).filter(|_| attempt.manifest.stream.is_empty());
    let manifest = recorded_with.and_then(|name| embedded::manifests().iter().find(|known| known.name == name));
    let manifest = manifest.unwrap_or(&*attempt.manifest);
    let masker = setup.masker.clone();
    let translation = Translation::new(adapter, manifest, header.clone());
    let mut session = Session::begin(setup, translation).map_err(io("begin the wire log"))?;
    session.engine(&EngineLine::Start { header: Box::new(header) });
    let patience = drive(&mut session, task).await;
    let mut ended = session.close(patience).await;
    // A cost that the agent did not tell may follow from its tokens and a price table.
    if let Some(line) = price::line_for(ended.recorder()) {
        ended.engine(&line);
    }
    for text in watched_outside(judged, ended.recorder()) {
        ended.engine(&EngineLine::Notice { code: "read-outside".to_owned(), text });
    }
    if lock(judged).file.joined_a_secret() || masker.finds(ended.recorder().answer()) {
        let text = "a secret came in pieces over several lines; they are masked in this log".to_owned();
        ended.engine(&EngineLine::Notice { code: "secret_split".to_owned(), text });
    }
    Ok(ended.finish())
}

/// The result of an attempt that failed in the engine itself.
pub fn internal_error(engine: &Engine, attempt: &Attempt, error: &TrialError) -> Result<Outcome, TrialError> {
    finish_without_agent(attempt, &masker_before(engine, attempt), ErrorCategory::Internal, error.to_string())
}

/// What is masked before the agent's environment is known.
fn masker_before(engine: &Engine, attempt: &Attempt) -> secrets::Masker {
    let case = &attempt.case;
    environment::masker(&engine.env, &case.env, &attempt.manifest, &case.mcp_servers)
}

/// Makes a folder and whatever is missing above it, and syncs each folder that got a new name.
fn make_durable(folder: &Path) -> Result<(), TrialError> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    make_durable(parent)?;
    match fs::create_dir(folder) {
        Ok(()) => Ok(sync_folder(parent)?),
        // Another trial of the cell was quicker.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(io(format!("make {}", folder.display()))(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_full_disk_ends_the_run_and_another_error_one_trial() {
        let of = |kind| TrialError::Io { doing: "write".to_owned(), source: Error::from(kind) };
        for (kind, ends) in [
            (ErrorKind::StorageFull, true),
            (ErrorKind::QuotaExceeded, true),
            (ErrorKind::ReadOnlyFilesystem, true),
            (ErrorKind::PermissionDenied, false),
        ] {
            assert_eq!(of(kind).is_of_the_disk(), ends, "{kind:?}");
            let run = RunError::Io { doing: "write", path: "x".into(), source: Error::from(kind) };
            assert_eq!(TrialError::Run(run).is_of_the_disk(), ends, "{kind:?}");
        }
        assert!(!TrialError::Panicked("x".to_owned()).is_of_the_disk());
    }
}
