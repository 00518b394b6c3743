//! Finds files of the case in its workspace: an agent that reads them knows how it is graded, or the solution.

use std::io;
use std::path::{Component, Path, PathBuf};

use crate::case::{Case, Oracle, WorkspaceSource};
use crate::harness::Manifest;
use crate::overlay::{self, Laid, OverlayPlace};
use crate::regular;
use crate::result::Warning;
use crate::workspace::git_source::GitRepository;
use crate::workspace::tree::{Entry, Tree};

/// The maximum number of files that are named in a result.
const MAX_NAMED_FILES: usize = 5;

/// Returns a warning if the workspace, as it was before the agent started, contains the case's own file, its reference
/// solution, a script beside it, or its hidden files.
///
/// In a checkout of the repository that contains the case, these files are found by their paths, as an older version of
/// them shows the same. In all workspaces, the case's file and its solution are found by their content, and the files of its
/// hidden folder and of a solution that is a folder by their content below a folder of the same name.
///
/// # Errors
/// Returns an error if a file of the workspace cannot be read.
pub(super) fn warning(case: &Case, before: &Tree) -> io::Result<Option<Warning>> {
    let mut found = by_path(case, before);
    found.extend(by_content(case, before)?);
    found.extend(in_folders(case, before, |below, own| is_copy(before, below, own)));
    Ok(named(found))
}

/// Adds the files of the case in the skills that are laid into the home, as they are laid, to the warning about its workspace.
/// `before` is the folder with the state of the workspace before the agent. Only a case with hidden files or a solution has
/// something to find.
///
/// # Errors
/// Returns an error if a skill cannot be read.
pub(super) fn add_home(warnings: &mut Vec<Warning>, case: &Case, manifest: &Manifest, before: &Path) -> io::Result<()> {
    if case.hidden.is_none() && case.oracle.is_none() {
        return Ok(());
    }
    let is_public = |below: &Path, own: &Path| {
        let both = regular::read(before.join(below)).ok().zip(regular::read(own).ok());
        both.is_some_and(|(public, own)| public == own)
    };
    let mut found = Vec::new();
    for item in overlay::items(&case.overlay, manifest).unwrap_or_default() {
        let Laid::Skill { folder, .. } = item.what else { continue };
        if item.place != OverlayPlace::User {
            continue;
        }
        let left_out = case.evals_in(folder);
        let is_laid = |path: &Path| left_out.as_ref().is_none_or(|part| !path.starts_with(part));
        let skill = Tree::only(folder, is_laid)?;
        let files = by_content(case, &skill)?.into_iter().chain(in_folders(case, &skill, is_public));
        found.extend(files.map(|path| Path::new("~").join(&item.path).join(path)));
    }
    let Some(Warning::CaseInWorkspace { files, count }) = named(found) else { return Ok(()) };
    let known = warnings.iter_mut().find_map(|warning| match warning {
        Warning::CaseInWorkspace { files, count } => Some((files, count)),
        _ => None,
    });
    match known {
        Some((known, known_count)) => {
            known.extend(files);
            known.truncate(MAX_NAMED_FILES);
            *known_count += count;
        }
        None => warnings.push(Warning::CaseInWorkspace { files, count }),
    }
    Ok(())
}

/// Returns the warning that names these files, if there are some.
fn named(mut found: Vec<PathBuf>) -> Option<Warning> {
    found.sort();
    found.dedup();
    if found.is_empty() {
        return None;
    }
    let count = u64::try_from(found.len()).unwrap_or(u64::MAX);
    let files = found.into_iter().take(MAX_NAMED_FILES).map(|path| path.to_string_lossy().into_owned()).collect();
    Some(Warning::CaseInWorkspace { files, count })
}

fn by_path(case: &Case, before: &Tree) -> Vec<PathBuf> {
    let WorkspaceSource::Git(source) = &case.workspace.source else { return Vec::new() };
    let Some(mut root) = local(&source.repository).and_then(|path| path.canonicalize().ok()) else { return Vec::new() };
    root.extend(&source.subdir);
    let below = |path: &Path| Some(path.canonicalize().ok()?.strip_prefix(&root).ok()?.to_owned());
    // A solution may be a later state of the same folder.
    let is_part = |path: &PathBuf| !path.as_os_str().is_empty();
    let own: Vec<PathBuf> = case.kept_from_agent().filter_map(below).filter(is_part).collect();
    let is_in = |kept: &Path| kept.canonicalize().is_ok_and(|kept| root.starts_with(&kept) && root != kept);
    let is_hidden = case.hidden.as_ref().and_then(|path| path.canonicalize().ok()).is_some_and(|path| path == root);
    if is_hidden || case.kept_from_agent().any(is_in) {
        return before.entries.keys().cloned().collect();
    }
    before.entries.keys().filter(|path| own.iter().any(|own| path.starts_with(own))).cloned().collect()
}

/// Returns the folder of a repository on this machine.
fn local(repository: &GitRepository) -> Option<&Path> {
    let url = match repository {
        GitRepository::Path(path) => return Some(work_tree(path)),
        GitRepository::Url(url) => url.as_str(),
    };
    let path = url.strip_prefix("file://localhost").or_else(|| url.strip_prefix("file://")).unwrap_or(url);
    Some(Path::new(path)).filter(|path| path.is_absolute()).map(work_tree)
}

/// Returns the folder of the files of a repository that may be named by its folder `.git`.
fn work_tree(repository: &Path) -> &Path {
    match repository.parent() {
        Some(above) if repository.ends_with(".git") => above,
        _ => repository,
    }
}

fn by_content(case: &Case, before: &Tree) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for own in case.kept_from_agent().filter(|path| path.is_file()) {
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

/// Returns copies of hidden files, and of files of a solution that is a folder: `x/app.hidden/test.sh` is one of the hidden folder
/// `app.hidden` if the files are equal. A file that the workspace also has in its own place is no secret. Without the name of the
/// folder, a file that the task is to move or to copy would count. `is_public` is true if the workspace has, at the path, a copy of
/// the file.
fn in_folders(case: &Case, before: &Tree, is_public: impl Fn(&Path, &Path) -> bool) -> Vec<PathBuf> {
    let solution = case.oracle.as_ref().and_then(|oracle| match oracle {
        Oracle::Copy(folder) => Some(folder.as_path()),
        Oracle::Script(_) | Oracle::Patch(_) => None,
    });
    let mut found = Vec::new();
    for folder in [case.hidden.as_deref(), solution].into_iter().flatten() {
        let Some(name) = folder.file_name() else { continue };
        for path in before.entries.keys() {
            let mut rest = path.components();
            while let Some(part) = rest.next() {
                let (is_folder, below) = (part == Component::Normal(name), rest.as_path());
                if is_folder && is_copy(before, path, &folder.join(below)) {
                    found.extend((!is_public(below, &folder.join(below))).then(|| path.clone()));
                }
            }
        }
    }
    found
}

/// Returns true if a file of a tree has the content of another file, and is not empty.
fn is_copy(tree: &Tree, path: &Path, other: &Path) -> bool {
    let Some(Entry::File { len, .. }) = tree.entries.get(path).filter(|entry| !entry.is_empty()) else { return false };
    let is_as_long = other.symlink_metadata().is_ok_and(|meta| meta.is_file() && meta.len() == *len);
    let is_same = |content: Vec<u8>| tree.bytes(path, len.saturating_add(1)).is_ok_and(|bytes| bytes == content);
    is_as_long && regular::read(other).is_ok_and(is_same)
}
