//! Files that an agent must leave as they are: what became of them is noticed, and undone.

use std::io;
use std::path::Path;

use crate::values::PathGlob;
use crate::workspace::change::{Change, How, differences};
use crate::workspace::restore::put_back;
use crate::workspace::tree::Tree;

/// How many are named in a result.
const NAMED: usize = 20;

/// Puts protected files back. Gives a line for each, for people; none where all are as they were.
///
/// A file that is ignored is protected where the original has it: what a build leaves beside it is not.
///
/// # Errors
/// The file system refused.
pub(super) fn restore(globs: &[String], before: &Path, workspace: &Path, now: &Tree) -> io::Result<Vec<String>> {
    let globs: Vec<PathGlob> = globs.iter().filter_map(|glob| glob.parse().ok()).collect();
    if globs.is_empty() {
        return Ok(Vec::new());
    }
    let wanted = |path: &Path| globs.iter().any(|glob| glob.is_match_path(path) && means(glob, path));
    let (old, new) = (Tree::only(before, wanted)?, Tree::only(workspace, wanted)?);
    let mut found = differences(&old, &new)?;
    found.retain(|(path, how)| *how != How::Created || now.entries.contains_key(*path));
    // First away with what is new: it may lie where something else belongs.
    found.sort_by_key(|(_, how)| *how != How::Created);
    let mut told = Vec::new();
    for (n, (path, how)) in found.iter().enumerate() {
        put_back(before, workspace, path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        if n < NAMED {
            let (how, path) = (how.word(), path.display());
            told.push(told_of(how, &path.to_string()));
        }
    }
    if found.len() > NAMED {
        told.push(format!("{} more protected files were put back before grading", found.len() - NAMED));
    }
    Ok(told)
}

/// How a result tells of a protected file that was put back.
fn told_of(how: &str, path: &str) -> String {
    format!("the agent {how} {PROTECTED}{path}{PUT_BACK}")
}

const PROTECTED: &str = "the protected file ";
const PUT_BACK: &str = "; it was put back before grading";

/// What an earlier result, and the change that it left, say of files that are protected now.
pub(super) fn touched_before(globs: &[String], change: Option<&Change>, warnings: &[String]) -> Vec<String> {
    let globs: Vec<PathGlob> = globs.iter().filter_map(|glob| glob.parse().ok()).collect();
    let is_protected = |path: &str| globs.iter().any(|glob| glob.is_match(path) && means(glob, Path::new(path)));
    // Of ignored files only the earlier result tells.
    let said = warnings.iter().filter(|line| {
        let path = line.split_once(PROTECTED).map(|(_, rest)| rest.strip_suffix(PUT_BACK).unwrap_or(rest));
        path.is_some_and(is_protected)
    });
    let mut told: Vec<String> = said.cloned().collect();
    for (path, how) in change.iter().flat_map(|change| change.all()).filter(|(path, _)| is_protected(path)) {
        let line = told_of(how, path);
        if !told.iter().any(|known| without_putting_back(known) == without_putting_back(&line)) {
            told.push(line);
        }
    }
    told
}

/// The same line where nothing was put back.
pub(super) fn without_putting_back(line: &str) -> String {
    line.strip_suffix(PUT_BACK).unwrap_or(line).to_owned()
}

/// Whether a line of a result tells of protected files.
pub(super) fn tells(line: &str) -> bool {
    line.contains(PROTECTED) || line.contains("protected files were put back")
}

/// The repository's own folder is meant only where it is named: agents commit.
fn means(glob: &PathGlob, path: &Path) -> bool {
    glob.to_string().contains(".git") || !path.components().any(|part| part.as_os_str() == ".git")
}
