//! Notices protected files that the commands of a grader change: then a pass of the grader does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{IgnoredByGit, fixed_folders, is_any, permission_bits};
use crate::case::Case;
use crate::regular;
use crate::workspace::hidden::changed::{is_lock_file, is_of_scripts};
use crate::workspace::stamp::Stamp;
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::walk::{Descend, walk};

/// The maximum number of folders that [`folders`] returns.
const MOST_FOLDERS: usize = 64;

/// Files and folders, by their names, that test runners write and that decide no test.
const BY_PRODUCTS: [&str; 8] = [
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    ".nyc_output",
    "htmlcov",
    ".coverage",
];
/// The same in a folder `node_modules`.
const OF_NODE: [&str; 5] = [".cache", ".vite", ".vite-temp", ".vitest", ".package-lock.json"];

/// The protected files that the agent found, while graders run commands.
pub(in crate::trial) struct WatchedFiles {
    workspace: PathBuf,
    /// The files and their folders, relative to the workspace.
    paths: BTreeSet<PathBuf>,
    /// The marks of the files before the commands of a grader, while they run.
    before: Mutex<Option<BTreeMap<PathBuf, Mark>>>,
}

/// Identifies a version of a file, or the permission bits of a folder.
#[derive(PartialEq, Eq)]
enum Mark {
    Stamp(Stamp),
    /// The content of a lock file, which package managers write again. Absent if it cannot be read.
    Content(Option<Vec<u8>>),
    Folder(u32),
}

impl WatchedFiles {
    /// Returns the protected files, except those that git ignores and no glob names. `None` if there are none. `before` is the state
    /// before the agent; without it, all protected files of the workspace count.
    ///
    /// # Errors
    /// Returns an error if the state before the agent cannot be read.
    pub(in crate::trial) fn of(case: &Case, before: Option<&Path>, workspace: &Path) -> io::Result<Option<Self>> {
        let mut files = files(case, before.unwrap_or(workspace))?;
        if let Some(before) = before {
            leave_out_ignored(&mut files, case, before)?;
        }
        if files.is_empty() {
            return Ok(None);
        }
        let paths = folders_of(&files).into_iter().chain(files).collect();
        Ok(Some(Self { workspace: workspace.to_owned(), paths, before: Mutex::default() }))
    }

    /// Looks at the files before the commands of a grader.
    pub(in crate::trial) fn begin(&self) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.marks());
    }

    /// Returns why a pass of the grader does not count, if its commands changed files that [`WatchedFiles::begin`] looked at.
    pub(in crate::trial) fn end(&self) -> Option<String> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let now = self.marks();
        let (path, _) = before.iter().find(|(path, mark)| now.get(*path) != Some(*mark))?;
        Some(format!(
            "passed, but the protected path `{}` was changed, removed or written while the commands ran: what was checked is \
             unknown. If the check itself changes it, let the check work on a copy, or leave the path out of \
             `workspace.protect`",
            path.display()
        ))
    }

    /// Returns the marks of the files and folders that exist and can be reached.
    fn marks(&self) -> BTreeMap<PathBuf, Mark> {
        let mark = |path: &PathBuf| {
            let place = self.workspace.join(path);
            let meta = place.symlink_metadata().ok()?;
            Some((path.clone(), Mark::of(&place, &meta)))
        };
        self.paths.iter().filter_map(mark).collect()
    }
}

impl Mark {
    fn of(path: &Path, meta: &Metadata) -> Self {
        match () {
            () if meta.is_dir() => Self::Folder(permission_bits(meta)),
            () if is_lock_file(path) => Self::Content(regular::read(path).ok()),
            () => Self::Stamp(Stamp::of(meta)),
        }
    }
}

/// Returns the folders with which protecting globs begin, and those above and below them: `src`, `src/tests` and its folders of
/// `src/tests/**`. Only folders with a protected file that git does not ignore count, because builds remove and rename the others.
/// The least deep ones are first, and there are at most [`MOST_FOLDERS`].
///
/// # Errors
/// Returns an error if the state before the agent cannot be read.
pub(in crate::trial) fn folders(case: &Case, before: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = files(case, before)?;
    if !files.is_empty() {
        let tree = Tree::read(before, &Ignore::of(before, &[])?)?;
        files.retain(|path| tree.entries.contains_key(path));
    }
    // A glob that is a path protects a file, and its folder may hold anything.
    let globs = case.workspace.protect.iter().filter(|glob| !glob.is_path());
    let begins = globs.map(|glob| fixed_folders(&glob.to_string()));
    let begins: Vec<PathBuf> = begins.filter(|begin| !begin.as_os_str().is_empty()).collect();
    let mut folders: Vec<PathBuf> = folders_of(&files).into_iter().collect();
    folders.retain(|folder| begins.iter().any(|begin| begin.starts_with(folder) || folder.starts_with(begin)));
    folders.sort_by_key(|path| (path.iter().count(), path.clone()));
    folders.truncate(MOST_FOLDERS);
    Ok(folders)
}

/// Returns the protected files in the state before the agent: new ones were removed when it had stopped, except those that git
/// ignores, which a build leaves beside protected files. There are none if the hidden files of the case hold scripts of a converted
/// case, which change protected files themselves, such as by a patch.
fn files(case: &Case, before: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let globs = &case.workspace.protect;
    let mut hidden = case.hidden.iter().flat_map(|hidden| hidden.read_dir()).flatten().flatten();
    let mut files = BTreeSet::new();
    if globs.is_empty() || !before.is_dir() || hidden.any(|entry| is_of_scripts(Path::new(&entry.file_name()))) {
        return Ok(files);
    }
    walk(before, |path, meta| {
        if !meta.is_dir() && is_any(globs, path) && !is_by_product(path) {
            files.insert(path.to_owned());
        }
        Descend::Enter
    })?;
    Ok(files)
}

/// Leaves out the files that git ignores and no glob names: a grader that builds them anew does not change what it checks. `before` is
/// the state before the agent, whose `.gitignore` files no agent wrote.
fn leave_out_ignored(files: &mut BTreeSet<PathBuf>, case: &Case, before: &Path) -> io::Result<()> {
    if !files.is_empty() {
        let ignored = IgnoredByGit::of(&case.workspace.protect, before)?;
        files.retain(|path| !ignored.has(path));
    }
    Ok(())
}

/// Returns the folders that contain files, without the workspace itself.
fn folders_of(files: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let folders = files.iter().flat_map(|path| path.ancestors().skip(1));
    folders.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned).collect()
}

fn is_by_product(path: &Path) -> bool {
    let names: Vec<String> = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    let is_of_node = |pair: &[String]| pair[0] == "node_modules" && OF_NODE.iter().any(|name| pair[1] == *name);
    names.iter().any(|name| BY_PRODUCTS.iter().any(|known| name == known)) || names.windows(2).any(is_of_node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_products_of_test_runners_are_known_by_their_names() {
        for path in ["tests/__pycache__/a.pyc", ".coverage", "node_modules/.vite/vitest/results.json"] {
            assert!(is_by_product(Path::new(path)), "{path}");
        }
        for path in ["tests/a.py", "tests/.cache/a", "node_modules/a/index.js", "tests/a.snap", "coverage/a.js"] {
            assert!(!is_by_product(Path::new(path)), "{path}");
        }
    }
}
