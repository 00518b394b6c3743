//! Finds files of the case in its workspace: an agent that reads them knows how it is graded, or the solution.

use std::io;
use std::path::{Path, PathBuf};

use crate::case::{Case, WorkspaceSource};
use crate::regular;
use crate::result::Warning;
use crate::workspace::git_source::{GitRepository, GitSource};
use crate::workspace::tree::{Entry, Tree};

/// The maximum number of files that are named in a result.
const NAMED: usize = 5;

/// Returns a warning if the workspace, as it was before the agent started, contains the case's own file, its reference
/// solution, a script beside it, or its hidden files.
///
/// In a checkout of the repository that contains the case, these files are found by their paths, as an older version of
/// them shows the same. In all workspaces, the case's file and its solution are found by their content.
///
/// # Errors
/// Returns an error if a file of the workspace cannot be read.
pub(super) fn warning(case: &Case, before: &Tree) -> io::Result<Option<Warning>> {
    let mut found = by_path(case, before);
    found.extend(by_content(case, before)?);
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Ok(None);
    }
    let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let files = found.into_iter().take(NAMED).map(|path| path.to_string_lossy().into_owned()).collect();
    Ok(Some(Warning::CaseInWorkspace { files, count }))
}

/// Returns the files of the case that an agent must not see. `hidden` and a solution may be folders.
fn own_files(case: &Case) -> impl Iterator<Item = &Path> {
    let oracle = case.oracle.as_ref().map(|oracle| oracle.path());
    let scripts = case.demo_scripts.values().map(PathBuf::as_path);
    [Some(case.file.as_path()), case.hidden.as_deref(), oracle].into_iter().flatten().chain(scripts)
}

fn by_path(case: &Case, before: &Tree) -> Vec<PathBuf> {
    let WorkspaceSource::Git(GitSource { repository: GitRepository::Path(repository), .. }) = &case.workspace.source
    else {
        return Vec::new();
    };
    let Ok(repository) = repository.canonicalize() else { return Vec::new() };
    let below = |path: &Path| Some(path.canonicalize().ok()?.strip_prefix(&repository).ok()?.to_owned());
    let own: Vec<PathBuf> = own_files(case).filter_map(below).collect();
    before.entries.keys().filter(|path| own.iter().any(|own| path.starts_with(own))).cloned().collect()
}

fn by_content(case: &Case, before: &Tree) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for own in own_files(case).filter(|path| path.is_file()) {
        let Ok(content) = regular::read(own) else { continue };
        let len = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let has_len = |entry: &Entry| matches!(entry, Entry::File { len: other, .. } if *other == len && len > 0);
        for (path, _) in before.entries.iter().filter(|(_, entry)| has_len(entry)) {
            if before.bytes(path, len.saturating_add(1))? == content {
                found.push(path.clone());
            }
        }
    }
    Ok(found)
}
