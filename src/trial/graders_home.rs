//! The home of the graders: as setup left it, without what the agent changed.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::{Folders, TrialError, io as failed};
use crate::grade::Outcome;
use crate::grader::Kind;
use crate::result::TrialResult;
use crate::workspace::copy_as_it_is;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, walk};

/// The folder in which the agent's home lies while the graders have its place.
const AGENTS_HOME: &str = "agents-home";

/// Returns the place of the graders' home. What setup left in its home may contain the path of that home: absolute links, `#!`
/// lines, `pyvenv.cfg`. So a copy of it lies at the same place. `as_set_up` is the home as setup left it, if it left anything.
pub(super) fn place(folders: &Folders, as_set_up: Option<&Path>) -> PathBuf {
    match as_set_up {
        Some(_) => folders.home.clone(),
        None => folders.beside("graders-home"),
    }
}

/// Makes the graders' home, and returns its place.
///
/// # Errors
/// Returns an error if the file system refuses.
pub(super) fn make(folders: &Folders, as_set_up: Option<&Path>) -> Result<PathBuf, TrialError> {
    const MAKE: &str = "make a home for the graders";
    let home = place(folders, as_set_up);
    if as_set_up.is_some() {
        set_aside(&home).map_err(failed("move the agent's home"))?;
    }
    // An agent without a sandbox may have created the folder.
    remove(&home).map_err(failed(MAKE))?;
    fs::create_dir(&home).map_err(failed(MAKE))?;
    if let Some(before) = as_set_up {
        copy_as_it_is(before, &home).map_err(|error| failed(MAKE)(io::Error::other(error)))?;
    }
    Ok(home)
}

/// Moves the agent's home out of the graders' way.
fn set_aside(home: &Path) -> io::Result<()> {
    let aside = home.with_file_name(AGENTS_HOME);
    remove(&aside)?;
    match fs::rename(home, &aside) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns the first link of a workspace that leads to something that only the agent's home has, if the graders' home has the
/// place of the agent's home.
pub(super) fn link_to_agents_home(workspace: &Path, home: &Path) -> Option<PathBuf> {
    let agents = home.with_file_name(AGENTS_HOME);
    let leads_there = |link: &Path| {
        let Ok(target) = fs::read_link(link) else { return false };
        let Ok(inner) = target.strip_prefix(home) else { return false };
        agents.join(inner).symlink_metadata().is_ok() && home.join(inner).symlink_metadata().is_err()
    };
    let mut found = None;
    let walked = walk(workspace, |path, meta| {
        if found.is_none() && meta.is_symlink() && leads_there(&workspace.join(path)) {
            found = Some(path.to_owned());
        }
        Descend::Enter
    });
    found.filter(|_| walked.is_ok())
}

/// Withdraws what failed by a command if a link of the workspace leads to something that only the agent's home has. Returns true
/// if anything was withdrawn.
pub(super) fn withdraw(result: &mut TrialResult, link: Option<&Path>) -> bool {
    let Some(link) = link else { return false };
    let mut any = false;
    for grade in &mut result.grades {
        if grade.passed == Some(false) && Kind::needs_of(&grade.grader).commands {
            (grade.outcome, grade.value, grade.bounds, grade.passed) = (Outcome::Ungraded, None, None, None);
            (grade.evidence, grade.broken) = (Vec::new(), Vec::new());
            grade.reason = format!(
                "`{}` leads to something in the agent's home, which graders do not get, so it is unknown whether this fails. The \
                 grader failed: {}",
                link.display(),
                grade.reason
            );
            any = true;
        }
    }
    any
}
