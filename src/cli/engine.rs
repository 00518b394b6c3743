//! The engine for commands that run trials of their own, beside `evals run`: checks of harnesses, and parity.

use std::path::PathBuf;

use tokio::sync::watch;

use super::CliError;
use crate::run::Keep;
use crate::run::temporary::Temporary;
use crate::trial::Engine;

/// A runtime for trials.
///
/// # Errors
/// The system has none to give.
pub fn runtime() -> Result<tokio::runtime::Runtime, CliError> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::unreadable(format!("could not start the runtime: {error}")))
}

/// A private folder of the system's temporary one.
///
/// # Errors
/// It could not be made.
pub fn temporary() -> Result<Temporary, CliError> {
    Temporary::make()
        .map_err(|error| CliError::unreadable(format!("could not make a private temporary folder: {error}")))
}

/// An engine that keeps no workspace and asks nobody.
///
/// # Errors
/// A folder could not be made, or this program does not find itself.
pub fn engine(
    temporary: &Temporary,
    interrupt: watch::Receiver<bool>,
    hides: Vec<PathBuf>,
) -> Result<Engine, CliError> {
    let empty = temporary.path().join("empty");
    std::fs::create_dir(&empty)?;
    let this_program = std::env::current_exe()
        .map_err(|error| CliError::unreadable(format!("could not find this program itself: {error}")))?;
    let env =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Engine {
        env: env.collect(),
        this_program,
        keep: Keep::Never,
        interrupt,
        temporary: temporary.path().to_owned(),
        empty,
        hides,
        sandbox: None,
        person: None,
    })
}
