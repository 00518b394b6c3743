//! Finds the run that a command names, and warns about runs that are dated in the future.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::terminal;
use crate::run::find::Names;
use crate::run::folder::RunFolder;
use crate::run::{RunError, find, names};

/// Returns the run with this name, as [`find::by_name`] does.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn by_name(runs: &Path, name: &str) -> Result<RunFolder, RunError> {
    among(&Names::of(runs), name)
}

/// Returns the run with this name among runs that were looked at before, as [`by_name`] does.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn among(names: &Names<'_>, name: &str) -> Result<RunFolder, RunError> {
    let found = names.by_name(name)?;
    warn_of_runs_ahead(names.folder(), name);
    Ok(found)
}

/// Returns the run with this name in order to resume it, as [`find::to_resume`] does.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn to_resume(runs: &Path, name: &str, reruns: bool) -> Result<RunFolder, RunError> {
    let found = find::to_resume(runs, name, reruns)?;
    warn_of_runs_ahead(runs, name);
    Ok(found)
}

fn warn_of_runs_ahead(runs: &Path, name: &str) {
    if name != "latest" {
        return;
    }
    // IDs begin with the time, so most runs need not be read.
    let now = names::new_run_id(jiff::Timestamp::now());
    let is_later = |path: &PathBuf| path.file_name().is_some_and(|name| name > OsStr::new(&now));
    for path in find::paths(runs).into_iter().filter(is_later) {
        let Ok(head) = RunFolder::open(&path).head() else { continue };
        if !find::is_ahead(&head.started) {
            continue;
        }
        terminal::note(format_args!(
            "warning: run {} is dated {}, in the future, so the clock of a machine was wrong; `latest` is this run only if no other \
             run has played trials; remove {} if it is not needed",
            head.run,
            head.started,
            path.display()
        ));
    }
}
