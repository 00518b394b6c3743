//! The home of the graders: as setup left it, without what the agent changed.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use super::{Folders, TrialError, io as failed};
use crate::grader::Kind;
use crate::paths::MAX_LINKS;
use crate::result::TrialResult;
use crate::workspace::copy_as_it_is;
use crate::workspace::old_place::file_with;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, walk};

/// The folder in which the agent's home lies while the graders have its place.
pub(super) const AGENTS_HOME: &str = "agents-home";

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

/// A part of a workspace that needs the agent's home.
pub(super) enum UseOfHome {
    /// A link to something that only the agent's home has.
    Link(PathBuf),
    /// A file of the agent that contains a path in the home.
    File(PathBuf),
}

/// Returns the place in which the agent's home lies while graders run, if they do not find it at its own place: it was moved aside,
/// or their sandbox hides it. `as_set_up` is the home as setup left it, if it left anything.
pub(super) fn place_of_agents(folders: &Folders, as_set_up: Option<&Path>, is_hidden: bool) -> Option<PathBuf> {
    match as_set_up {
        Some(_) => Some(folders.beside(AGENTS_HOME)),
        None => is_hidden.then(|| folders.home.clone()),
    }
}

/// Returns the first link of a workspace that leads to something that only the agent's home has, or the first of the agent's files
/// that contains a path in its home. `home` is the place of the agent's home while the agent ran, and `agents` its place now.
pub(super) fn use_of_agents_home(workspace: &Path, home: &Path, agents: &Path, files: &[PathBuf]) -> Option<UseOfHome> {
    let link = link_to_agents_home(workspace, home, agents).map(UseOfHome::Link);
    link.or_else(|| file_with(workspace, files, &paths_in_home(home, agents)).map(UseOfHome::File))
}

/// Returns the links of a workspace that lead to something in a home.
pub(super) fn links_into(workspace: &Path, home: &Path) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let Ok(home) = home.canonicalize() else { return links };
    let _ = walk(workspace, |path, meta| {
        let link = workspace.join(path);
        if meta.is_symlink() && link.canonicalize().is_ok_and(|target| target.starts_with(&home)) {
            links.push(link);
        }
        Descend::Enter
    });
    links
}

/// Returns the texts by which a file can name something in the agent's home: the path of the home, and `../home/` with the name of
/// an entry. The name matters, because projects have folders named `home`, too.
fn paths_in_home(home: &Path, agents: &Path) -> Vec<Vec<u8>> {
    let entries = fs::read_dir(agents).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let relative = Path::new("..").join(home.file_name().unwrap_or_default());
    let relative = entries.map(|name| relative.join(name).into_os_string().into_vec());
    relative.chain([home.as_os_str().as_bytes().to_vec()]).collect()
}

/// Returns the path to which a path of the workspace led while the agent's home, now at `agents`, was at `home`. Returns `None` if
/// there is nothing.
fn target_of(path: &Path, home: &Path, agents: &Path) -> Option<PathBuf> {
    let parts = |path: &Path| {
        let parts = path.components().rev().filter(|part| matches!(part, Component::ParentDir | Component::Normal(_)));
        parts.map(|part| part.as_os_str().to_owned()).collect::<Vec<OsString>>()
    };
    let (mut target, mut rest, mut links) = (PathBuf::from("/"), parts(path), 0);
    while let Some(part) = rest.pop() {
        if part == ".." {
            target.pop();
            continue;
        }
        let next = target.join(part);
        let place = next.strip_prefix(home).map_or_else(|_| next.clone(), |inner| agents.join(inner));
        if !place.symlink_metadata().ok()?.is_symlink() {
            target = next;
            continue;
        }
        links += 1;
        let leads = fs::read_link(&place).ok().filter(|_| links <= MAX_LINKS)?;
        if leads.is_absolute() {
            target = PathBuf::from("/");
        }
        rest.extend(parts(&leads));
    }
    Some(target)
}

/// Returns the first link of a workspace that leads to something that only the agent's home has.
fn link_to_agents_home(workspace: &Path, home: &Path, agents: &Path) -> Option<PathBuf> {
    let leads_there = |link: &Path| {
        let target = target_of(link, home, agents);
        let inner = target.as_deref().and_then(|target| target.strip_prefix(home).ok());
        // A home that is still at its place is hidden from the graders.
        inner.is_some_and(|inner| agents == home || home.join(inner).symlink_metadata().is_err())
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

/// Withdraws what failed by a command if a part of the workspace needs the agent's home. Returns true if anything was withdrawn.
pub(super) fn withdraw(result: &mut TrialResult, found: Option<&UseOfHome>) -> bool {
    let what = match found {
        Some(UseOfHome::Link(link)) => format!("`{}` leads to something in the agent's home", link.display()),
        Some(UseOfHome::File(file)) => format!("`{}` contains a path in the agent's home", file.display()),
        None => return false,
    };
    let mut any = false;
    for grade in &mut result.grades {
        if grade.passed == Some(false) && Kind::needs_of(&grade.grader).commands {
            grade.withdraw(format!(
                "{what}, which graders do not get, so it is unknown whether this fails. The grader failed: {}",
                grade.reason
            ));
            any = true;
        }
    }
    any
}
