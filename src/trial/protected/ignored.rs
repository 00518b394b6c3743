//! Finds the protected files that git ignores and that no glob names: what a build leaves beside protected files.

use std::io;
use std::path::Path;

use super::{ignored_folder, names_what_is_ignored};
use crate::values::PathGlob;
use crate::workspace::tree::{Ignore, Tree};

/// The files of the state before the agent, by which the protected files that git ignores are known.
pub(super) struct IgnoredByGit<'a> {
    globs: &'a [PathGlob],
    /// The files that git does not ignore.
    tree: Tree,
}

impl<'a> IgnoredByGit<'a> {
    /// Reads the state before the agent. `globs` are those of the protected files.
    ///
    /// # Errors
    /// Returns an error if the state or a `.gitignore` cannot be read.
    pub(super) fn of(globs: &'a [PathGlob], before: &Path) -> io::Result<Self> {
        Ok(Self { globs, tree: Tree::read(before, &Ignore::of(before, &[])?)? })
    }

    /// Returns true if git ignores a file of the state before the agent, and no glob names the ignored folder, or the file unless its
    /// folder is ignored.
    pub(super) fn has(&self, path: &Path) -> bool {
        let tree = &self.tree;
        let is_seen = tree.entries.contains_key(path) || tree.beyond.special.contains(path) || tree.is_unknown(path);
        let names_file = |glob: &PathGlob| {
            let glob = glob.to_string();
            ignored_folder(path, tree).is_none()
                && glob.rsplit('/').next().is_some_and(|part| part.contains(char::is_alphanumeric))
        };
        let names = |glob: &PathGlob| glob.is_match_path(path) && (glob.is_path() || names_file(glob));
        let is_named = || self.globs.iter().any(names);
        let is_of_git = || path.iter().any(|part| part == ".git");
        !is_seen && !is_of_git() && !is_named() && !names_what_is_ignored(self.globs, path, tree)
    }
}
