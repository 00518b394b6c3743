//! The set-up of every command that runs or grades trials: a runtime, a private folder, and the engine in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use rustix::process::{Resource, getrlimit};
use tokio::sync::watch;

use super::CliError;
use crate::case::{Case, WorkspaceSource};
use crate::gateway::settings::Settings;
use crate::judge::Judges;
use crate::process::{self, descriptors};
use crate::project;
use crate::resources::{Exhausted, hint};
use crate::run::Keep;
use crate::run::temporary::Temporary;
use crate::trial::Engine;
use crate::trial::settings_above::SettingsAbove;
use crate::trial::version::Versions;
use crate::workspace::git_folders;

/// Makes a runtime for trials.
///
/// # Errors
/// Returns an error if the runtime cannot be made, or if the limit of open files or of threads is too low.
pub fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    enough_open_files()?;
    enough_threads()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::of_the_engine(format!("could not start the runtime: {error}{}", hint(&error))))?;
    runtime.spawn(process::continue_stopped());
    Ok(runtime)
}

/// Checks that the process may open enough files.
///
/// # Errors
/// Returns an error if the limit is too low for one trial.
pub fn enough_open_files() -> Result<(), CliError> {
    if let Some(limit) = crate::resources::open_files_limit().filter(|limit| *limit < descriptors::MIN_OPEN_FILES) {
        return Err(CliError::of_the_engine(format!(
            "this process may have {limit} files open (ulimit -n), and a trial needs at least {}; raise the limit",
            descriptors::MIN_OPEN_FILES
        )));
    }
    Ok(())
}

/// Checks that the process may start enough threads, without which the runtime would panic.
///
/// # Errors
/// Returns an error if the limit of processes is too low for one trial.
pub fn enough_threads() -> Result<(), CliError> {
    // Beside those of the runtime: signals, the clock, the display, and work that blocks.
    const OTHERS: usize = 6;
    let wanted = default_jobs() + OTHERS;
    let gate = &Mutex::new(());
    let started = thread::scope(|scope| {
        let _closed = gate.lock();
        (0..wanted).try_for_each(|_| thread::Builder::new().spawn_scoped(scope, move || drop(gate.lock())).map(drop))
    });
    started.map_err(|error| {
        let limit = getrlimit(Resource::Nproc).current;
        let limit = limit.map_or_else(String::new, |limit| format!(", which is {limit} for this user"));
        CliError::of_the_engine(format!(
            "could not start the {wanted} threads of the engine: {error}; raise the limit of processes{limit} (ulimit -u), or \
             that of the container"
        ))
    })
}

/// Makes a private folder in the system's temporary folder.
///
/// # Errors
/// Returns an error if the folder cannot be made.
pub fn temporary() -> Result<Temporary, CliError> {
    Temporary::make().map_err(not_made(format!("make a private folder in {}", std::env::temp_dir().display())))
}

/// Returns a function that turns an I/O error into the command's error. An exhausted disk or limit of open files is an
/// engine error.
fn not_made(doing: String) -> impl FnOnce(std::io::Error) -> CliError {
    move |error| {
        let message = format!("could not {doing}: {error}{}", hint(&error));
        match Exhausted::of(&error) {
            Some(_) => CliError::of_the_engine(message),
            None => CliError::unreadable(message),
        }
    }
}

/// Makes an engine that keeps no workspace and asks no person.
///
/// # Errors
/// Returns an error if a folder cannot be made, or the path of this program is unknown.
pub fn engine(
    temporary: &Temporary,
    interrupt: watch::Receiver<bool>,
    hides: Vec<PathBuf>,
) -> Result<Engine, CliError> {
    let this_program = std::env::current_exe()
        .map_err(|error| CliError::unreadable(format!("could not find this program itself: {error}")))?;
    process::supervise_with(&this_program);
    let settings_above =
        SettingsAbove::of(temporary.path()).map_err(not_made(format!("find {}", temporary.path().display())))?;
    Ok(Engine {
        env: environment(),
        this_program,
        keep: Keep::Never,
        interrupt,
        temporary: temporary.path().to_owned(),
        settings_above,
        hides,
        memory: None,
        sandbox: None,
        person: None,
        judges: Judges::none(),
        pass: Vec::new(),
        gateway: Settings::default(),
        versions: Versions::default(),
    })
}

/// Returns the environment variables of this program that are valid UTF-8.
pub fn environment() -> BTreeMap<String, String> {
    crate::own_environment::texts()
}

/// Returns the paths that agents must not see: the cases and their grading files, the commits of repositories on this machine,
/// named graders, and runs.
///
/// # Errors
/// Returns an error if the working directory does not exist.
pub fn hides<'a>(runs: &Path, cases: impl Iterator<Item = &'a Case>) -> Result<Vec<PathBuf>, CliError> {
    let mut hides = vec![std::path::absolute(runs)?, project::root().join("graders"), project::root().join(".evals")];
    for case in cases {
        let oracle = case.oracle.as_ref().map(|oracle| oracle.path().to_owned());
        let named = [
            Some(case.cases_root.clone()),
            case.hidden.clone(),
            oracle,
            case.model.as_ref().map(|model| model.file().to_owned()),
        ];
        hides.extend(named.into_iter().flatten());
        // A repository contains the commits after the commit of the workspace, so it is hidden. Its work trees are not: the agent's
        // program, or a folder that the user mounts, may be in one. `sandboxing::outside` watches them.
        let repository = match &case.workspace.source {
            WorkspaceSource::Git(source) => source.repository.on_this_machine(),
            _ => None,
        };
        hides.extend(repository.iter().flat_map(|path| git_folders::with_commits(path)));
    }
    hides.sort();
    hides.dedup();
    Ok(hides)
}

/// Returns the default number of concurrent trials.
pub fn default_jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
