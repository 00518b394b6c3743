//! Runs one planned Trial: workspace → agent → trace → change → hidden files → grades → verdict → files on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use crate::case::Case;
use crate::case::seal::Seal;
use crate::environment;
use crate::harness::Manifest;
use crate::ids::TrialRecord;
use crate::interaction::{Interaction, Person};
use crate::judge::Judges;
use crate::resources::{self, Exhausted};
use crate::result::{TrialResult, Warning};
use crate::run::temporary::Vanishing;
use crate::run::{Keep, RunError};
use crate::sandbox;
use crate::secrets::Masker;
use crate::trace::ErrorCategory;
use crate::whole_file::FileError;
use crate::whole_file::sync_folder;

mod measure;
pub mod regrade;
pub mod audited;
mod prepare_workspace;
pub mod command;
mod finish;
mod sandboxing;
mod previous_attempts;
mod ending;
pub mod agent_as_model;
mod inputs;
mod grade_trial;
pub mod keep_workspace;
mod limits;
mod workspace_gaps;
pub mod metrics;
mod read_outside;
mod play;
mod protected;
mod quiet;
mod prepare;
mod scripted;
mod mcp_config;
mod grade_stored;
mod task;
pub mod trace_file;
pub mod version;

use ending::finish_without_agent;
use finish::conclude;
use measure::measure;
use play::play;
use prepare::make_ready;

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
    /// Variables of the user's environment that agents get in this run, beside those of their manifests.
    pub pass: Vec<String>,
    /// The versions of the agents' programs, as far as they were asked for.
    pub versions: version::Versions,
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
    /// What lay in that folder before, if anything did.
    pub foreign: Option<Warning>,
    /// Holds the files of the case to what they were when the run began; absent where no run was begun.
    pub seal: Option<Arc<Seal>>,
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
    #[error("could not {doing}: {source}{}", resources::hint(source))]
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
        match self {
            TrialError::Run(RunError::Io { source, .. }) | TrialError::Io { source, .. } => {
                Exhausted::of(source) == Some(Exhausted::Disk)
            }
            TrialError::Run(_) | TrialError::Panicked(_) => false,
        }
    }

    /// The same as an error of the run.
    pub fn of_run(self, folder: &Path) -> RunError {
        match self {
            TrialError::Run(error) => error,
            TrialError::Io { .. } | TrialError::Panicked(_) => {
                RunError::Trial { path: folder.to_owned(), message: self.to_string() }
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
    match outcome {
        Ok(outcome) | Err(Ended::With(outcome)) => Ok(outcome),
        Err(Ended::Broken(error)) => Err(error),
    }
}

/// Does work that waits for the file system, perhaps for long, while other trials and the user are served.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, TrialError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| TrialError::Panicked(error.to_string()))
}

async fn run_in(engine: &Engine, attempt: &Attempt, folders: &Folders) -> Result<Outcome, Ended> {
    let held = inputs::hold(engine, attempt).await?;
    let mut ready = make_ready(engine, attempt, folders).await?;
    let played = play(engine, attempt, folders, &mut ready).await?;
    let after = measure(attempt, folders, &ready).await?;
    let result = conclude(engine, attempt, folders, ready, played, after, held).await?;
    Ok(Outcome::Done(Box::new(result)))
}

/// Why an attempt went no further.
enum Ended {
    /// It has come to its outcome.
    With(Outcome),
    /// The engine itself failed.
    Broken(TrialError),
}

impl Ended {
    /// No agent ran, or none could be seen: the result says why.
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

/// The result of an attempt that failed in the engine itself.
pub fn internal_error(engine: &Engine, attempt: &Attempt, error: &TrialError) -> Result<Outcome, TrialError> {
    finish_without_agent(attempt, &masker_before(engine, attempt), ErrorCategory::Internal, error.to_string())
}

/// What is masked before the agent's environment is known.
fn masker_before(engine: &Engine, attempt: &Attempt) -> Masker {
    let case = &attempt.case;
    let given = environment::given_by(case);
    environment::masker_of_what_is_known(&engine.env, &case.env, &attempt.manifest, &given).0
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
