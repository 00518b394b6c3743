//! Runs one planned trial: workspace → agent → trace → change → hidden files → grades → verdict → files on
//! disk.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use crate::case::Case;
use crate::case::seal::Seal;
use crate::environment;
use crate::gateway::route::Route;
use crate::gateway::settings::Settings;
use crate::harness::Manifest;
use crate::ids::TrialRecord;
use crate::interaction::{Interaction, Person};
use crate::judge::Judges;
use crate::resources::{self, Exhausted};
use crate::result::{TrialResult, Warning};
use crate::run::temporary::{self, Vanishing};
use crate::run::{Keep, RunError};
use crate::sandbox;
use crate::secrets::Masker;
use crate::trace::ErrorCategory;
use crate::whole_file::FileError;
use crate::whole_file::sync_folder;

mod above;
mod between;
mod changed_evidence;
mod case_in_sight;
mod measure;
pub mod regrade;
pub mod settings_above;
pub mod audited;
mod prepare_workspace;
pub mod command;
mod finish;
mod followed_links;
mod hooks;
pub mod foreign;
mod sandboxing;
pub mod previous_attempts;
pub mod ending;
pub mod agent_as_model;
mod inputs;
mod grade_trial;
mod graders_home;
pub mod keep_workspace;
mod limits;
mod check_loaded;
mod check_requests;
mod workspace_gaps;
mod other_keys;
pub mod metrics;
mod read_outside;
mod refusal;
mod play;
mod protected;
mod renewed_files;
mod idle_time;
mod prepare;
mod gateway;
mod mcp_config;
mod grade_stored;
mod grade_live;
mod silent_turns;
mod solution;
mod task;
mod usage;
pub mod trace_file;
pub mod version;

use ending::finish_without_agent;
use finish::{FinishedTrial, conclude};
use measure::measure;
use play::play;
use prepare::prepare_trial;
use prepare_workspace::Before;
use previous_attempts::PreviousAttempts;
use settings_above::SettingsAbove;

/// The data that all trials of a run share.
pub struct Engine {
    /// The environment variables of this program that are valid UTF-8.
    pub env: BTreeMap<String, String>,
    /// The path of this program, for `{self}`.
    pub this_program: PathBuf,
    /// Which workspaces are kept.
    pub keep: Keep,
    /// Becomes true when the user interrupts the run.
    pub interrupt: watch::Receiver<bool>,
    /// A private folder in the system's temporary folder.
    pub temporary: PathBuf,
    /// The settings of test runners in the folders above it, as they were before the first agent.
    pub settings_above: SettingsAbove,
    /// The paths that agents must not see: cases and their hidden files, graders, runs.
    pub hides: Vec<PathBuf>,
    /// The limit of the memory of commands of set-up and of graders for built-in agents, in bytes. Absent: half of the machine's.
    pub memory: Option<u64>,
    /// A sandbox that overrides those of the cases and the manifests.
    pub sandbox: Option<sandbox::Kind>,
    /// The person who answers the policy `manual`.
    pub person: Option<Arc<dyn Person>>,
    /// Calls models, for graders and the policy `llm`.
    pub judges: Judges,
    /// Variables of the user's environment that agents get in this run, besides those of their manifests.
    pub pass: Vec<String>,
    /// The settings for the gateways of the trials.
    pub gateway: Settings,
    /// The versions of the agents' programs, as far as requested.
    pub versions: version::Versions,
}

/// An attempt at a trial.
#[derive(Clone)]
pub struct Attempt {
    pub case: Arc<Case>,
    /// The harness.
    pub manifest: Arc<Manifest>,
    /// The planned trial.
    pub trial: TrialRecord,
    /// The policy that answers the agent's requests: that of the case, unless the run has another.
    pub interaction: Interaction,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The source of the model's answers, if the agent is pointed at the gateway.
    pub route: Option<Route>,
    /// The folder of the attempt's files.
    pub folder: PathBuf,
    /// A warning if the folder contained files before.
    pub foreign: Option<Warning>,
    /// The attempts before this one.
    pub previous: PreviousAttempts,
    /// The files that the arms of the run's experiment give their agents. Absent without an experiment.
    pub arms: Option<Arc<OfArms>>,
    /// Checks that the files of the case have not changed since the run began. Absent outside a run.
    pub seal: Option<Arc<Seal>>,
}

impl Attempt {
    /// Makes the first attempt at a trial outside a run, with the case's own policy.
    pub fn alone(case: Arc<Case>, manifest: Arc<Manifest>, trial: TrialRecord, folder: PathBuf) -> Self {
        Self {
            interaction: case.interaction.clone(),
            case,
            manifest,
            trial,
            attempt: 1,
            route: None,
            folder,
            foreign: None,
            previous: PreviousAttempts::default(),
            arms: None,
            seal: None,
        }
    }
}

/// The files that the arms of an experiment give their agents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OfArms {
    pub skills: Vec<SkillOfArm>,
    /// The names of the MCP servers of all arms.
    pub servers: BTreeSet<String>,
    /// The texts of the instruction files of all arms.
    pub instructions: Vec<String>,
}

/// A skill that an arm of an experiment lays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillOfArm {
    pub name: String,
    /// The skill's description, which agents offer to their models.
    pub description: Option<String>,
}

/// The outcome of an attempt.
pub enum Outcome {
    /// The attempt is done, and everything except its journal line is on disk.
    Done(Box<TrialResult>),
    /// The user interrupted the attempt; `--resume` runs it again.
    Interrupted,
}

/// The reason why an attempt has no result. This is a failure of the engine itself.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The trial's files could not be written.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file system returned an error.
    #[error("could not {doing}: {source}{}", resources::hint(source))]
    Io {
        /// The operation.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// The disk of the trial's folders was full when the agent or the graders ended.
    #[error("could not {doing}: {source}{}", resources::hint(source))]
    NoRoom {
        /// The operation.
        doing: String,
        /// The system's error.
        source: io::Error,
    },
    /// A bug in the engine. Only this trial ends with it.
    #[error("the engine failed: {0}")]
    Panicked(String),
}

impl TrialError {
    /// Returns true if no trial can continue, because the disk cannot be written.
    pub fn is_of_the_disk(&self) -> bool {
        match self {
            TrialError::Run(RunError::Io { source, .. })
            | TrialError::Io { source, .. }
            | TrialError::NoRoom { source, .. } => Exhausted::of(source) == Some(Exhausted::Disk),
            TrialError::Run(_) | TrialError::Panicked(_) => false,
        }
    }

    /// Converts the error to one of the run.
    pub fn of_run(self, folder: &Path) -> RunError {
        match self {
            TrialError::Run(error) => error,
            TrialError::Io { .. } | TrialError::NoRoom { .. } | TrialError::Panicked(_) => {
                RunError::Trial { path: folder.to_owned(), message: self.to_string() }
            }
        }
    }
}

fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> TrialError {
    let doing = doing.into();
    move |source| TrialError::Io { doing, source }
}

/// The folders of a running trial, all in one that is removed with it.
struct Folders {
    /// The folder that contains the others. Dropping it removes them all.
    _root: Vanishing,
    workspace: PathBuf,
    home: PathBuf,
    /// The number of times that the engine's folder had been made again when these folders were made in it.
    restored: u32,
}

impl Folders {
    fn make(temporary: &Path) -> Result<Self, TrialError> {
        let root = Vanishing::make(temporary, "trial-")
            .map_err(io(format!("make a private folder in {}", temporary.display())))?;
        // Agents report real paths, so the workspace's own must be one.
        let path = root.path().canonicalize().map_err(io("find the private folder"))?;
        let (workspace, home) = (path.join("workspace"), path.join("home"));
        fs::create_dir(&home).map_err(io("make the private home"))?;
        Ok(Self { _root: root, workspace, home, restored: temporary::restored() })
    }

    /// Checks that the disk of the folders is not full: what a program could not write would be taken for its failure.
    fn check_disk(&self, after: &str) -> Result<(), TrialError> {
        let folder = self.beside(".");
        match temporary::no_room(&folder) {
            Some(source) => {
                Err(TrialError::NoRoom { doing: format!("write to {} after {after}", folder.display()), source })
            }
            None => Ok(()),
        }
    }

    /// Checks that nothing removed the engine's folder, and these folders with it, since they were made.
    fn check_not_removed(&self, temporary: &Path) -> Result<(), TrialError> {
        if temporary.is_dir() && self.restored == temporary::restored() {
            return Ok(());
        }
        let removed = io::Error::from(ErrorKind::NotFound);
        Err(io(format!("find {}, which a program removed during the trial", temporary.display()))(removed))
    }

    /// Returns another folder of the trial.
    fn beside(&self, name: &str) -> PathBuf {
        self.home.with_file_name(name)
    }
}

/// Runs an attempt and returns its result.
///
/// # Errors
/// Returns an error if the engine itself fails; failures of the agent are results.
pub async fn run(engine: &Engine, attempt: &Attempt) -> Result<Outcome, TrialError> {
    make_folder(&attempt.folder)?;
    let folders = Folders::make(&engine.temporary)?;
    let played = match gateway::pointed(engine, attempt) {
        Ok(pointed) => run_in(engine, pointed.as_ref().unwrap_or(attempt), &folders).await,
        Err(why) => Err(Ended::without_agent(attempt, &masker_before(engine, attempt), ErrorCategory::Setup, why)),
    };
    let (played, before) = match played {
        Ok((finished, before)) => (Ok(finished), Some(before)),
        Err(ended) => (Err(ended), None),
    };
    // Removing the folders and syncing the files may take long, and other trials must not wait.
    let removed = tokio::task::spawn_blocking(move || drop((folders, before)));
    let outcome = match played {
        Ok(finished) => on_blocking_thread(move || finished.store()).await.flatten().map(Outcome::Done),
        Err(Ended::With(outcome)) => Ok(outcome),
        Err(Ended::Broken(error)) => Err(error),
    };
    removed.await.map_err(|error| TrialError::Panicked(error.to_string()))?;
    // With the folders removed, there is room again if this trial alone filled the disk: the other trials go on.
    if let Err(error @ TrialError::NoRoom { .. }) = &outcome
        && temporary::no_room(&engine.temporary).is_none()
    {
        return internal_error(engine, attempt, error);
    }
    outcome
}

/// Runs blocking file system work on another thread, so that other trials and the user are not blocked.
async fn on_blocking_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, TrialError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| TrialError::Panicked(error.to_string()))
}

async fn run_in(engine: &Engine, attempt: &Attempt, folders: &Folders) -> Result<(FinishedTrial, Before), Ended> {
    let inputs = inputs::check_before_use(engine, attempt).await?;
    let mut prepared = prepare_trial(engine, attempt, folders).await?;
    let played = play(engine, attempt, folders, &mut prepared).await?;
    folders.check_not_removed(&engine.temporary)?;
    folders.check_disk("the agent ended")?;
    let measured = measure(engine, attempt, folders, &prepared, played.answered()).await?;
    conclude(engine, attempt, folders, prepared, played, measured, inputs).await
}

/// The reason why an attempt ended early.
enum Ended {
    /// The attempt has an outcome.
    With(Outcome),
    /// The engine itself failed.
    Broken(TrialError),
}

impl Ended {
    /// Returns the result of an attempt without an agent, with the reason.
    fn without_agent(attempt: &Attempt, masker: &Masker, category: ErrorCategory, why: String) -> Self {
        finish_without_agent(attempt, masker, category, why).map_or_else(Self::Broken, Self::With)
    }
}

impl From<FileError> for TrialError {
    fn from(error: FileError) -> Self {
        TrialError::Run(error.into())
    }
}

impl<E: Into<TrialError>> From<E> for Ended {
    fn from(error: E) -> Self {
        Ended::Broken(error.into())
    }
}

/// Waits for commands of the case; `None` if the user interrupts the run, which ends them.
async fn unless_interrupted<T>(engine: &Engine, work: impl Future<Output = T>) -> Option<T> {
    let mut interrupt = engine.interrupt.clone();
    let interrupted = async move {
        if interrupt.wait_for(|on| *on).await.is_err() {
            // The sender was dropped, so no interrupt can come.
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        done = work => Some(done),
        () = interrupted => None,
    }
}

/// Returns the result of an attempt in which the engine itself failed.
pub fn internal_error(engine: &Engine, attempt: &Attempt, error: &TrialError) -> Result<Outcome, TrialError> {
    finish_without_agent(attempt, &masker_before(engine, attempt), ErrorCategory::Internal, error.to_string())
}

/// Returns the masker to use before the agent's environment is known.
fn masker_before(engine: &Engine, attempt: &Attempt) -> Masker {
    let case = &attempt.case;
    let given = environment::given_by(case);
    environment::masker_of_what_is_known(&engine.env, &case.env, &attempt.manifest, &given).0
}

/// Makes the folder of a trial and its missing parents. The entry of the folder itself is durable after [`sync_trial`].
fn make_folder(folder: &Path) -> Result<(), TrialError> {
    let made = match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            folder.parent().map_or(Ok(()), make_durable)?;
            fs::create_dir(folder)
        }
        made => made,
    };
    made_or_there(folder, made).map(drop)
}

/// Makes a folder and its missing parents, and syncs each folder that got a new entry.
fn make_durable(folder: &Path) -> Result<(), TrialError> {
    if folder.is_dir() {
        return Ok(());
    }
    let Some(parent) = folder.parent() else { return Ok(()) };
    make_durable(parent)?;
    if made_or_there(folder, fs::create_dir(folder))? {
        sync_folder(parent)?;
    }
    Ok(())
}

/// Returns true if a folder was made, and false if it was there.
fn made_or_there(folder: &Path, made: io::Result<()>) -> Result<bool, TrialError> {
    match made {
        Ok(()) => Ok(true),
        // An earlier attempt made it, or another trial of the cell was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && folder.is_dir() => Ok(false),
        Err(error) => Err(io(format!("make {}", folder.display()))(error)),
    }
}

/// Syncs the names of a trial's files, and the name of its folder. The files themselves are synced before.
fn sync_trial(folder: &Path) -> Result<(), FileError> {
    sync_folder(folder)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Error;

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
