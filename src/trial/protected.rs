//! Files that an agent must leave as they are: what became of them is noticed, and undone.

use std::io;
use std::path::Path;

use crate::values::PathGlob;
use crate::workspace::change::{How, differences};
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
            told.push(format!("the agent {how} the protected file {path}; it was put back before grading"));
        }
    }
    if found.len() > NAMED {
        told.push(format!("{} more protected files were put back before grading", found.len() - NAMED));
    }
    Ok(told)
}

/// The repository's own folder is meant only where it is named: agents commit.
fn means(glob: &PathGlob, path: &Path) -> bool {
    glob.to_string().contains(".git") || !path.components().any(|part| part.as_os_str() == ".git")
}
