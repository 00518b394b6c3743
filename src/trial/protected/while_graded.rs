//! Notices protected files that the commands of a grader change: then a pass of the grader does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{is_any, permission_bits};
use crate::case::Case;
use crate::regular;
use crate::values::PathGlob;
use crate::workspace::hidden::changed::{is_lock_file, is_of_scripts};
use crate::workspace::stamp::Stamp;
use crate::workspace::walk::{Descend, walk};

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

/// The protected files of a workspace while graders run commands.
pub(in crate::trial) struct WatchedFiles {
    workspace: PathBuf,
    globs: Vec<PathGlob>,
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
    /// Returns the protected files. `None` if the case protects none, or if its hidden files hold scripts of a converted case, which
    /// change protected files themselves, such as by a patch.
    pub(in crate::trial) fn of(case: &Case, workspace: &Path) -> Option<Self> {
        let globs = case.workspace.protect.clone();
        let mut hidden = case.hidden.iter().flat_map(|hidden| hidden.read_dir()).flatten().flatten();
        if globs.is_empty() || hidden.any(|entry| is_of_scripts(Path::new(&entry.file_name()))) {
            return None;
        }
        Some(Self { workspace: workspace.to_owned(), globs, before: Mutex::default() })
    }

    /// Looks at the files before the commands of a grader.
    pub(in crate::trial) fn begin(&self) {
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = self.marks();
    }

    /// Returns why a pass of the grader does not count, if its commands changed files that [`WatchedFiles::begin`] looked at.
    pub(in crate::trial) fn end(&self) -> Option<String> {
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let Some(now) = self.marks() else {
            return Some("passed, but the protected files could not be compared with those before it".to_owned());
        };
        let (path, _) = before.iter().find(|(path, mark)| now.get(*path) != Some(*mark))?;
        Some(format!(
            "passed, but the protected path `{}` was changed, removed or written while the commands ran: what was checked is \
             unknown. If the check itself changes it, let the check work on a copy, or leave the path out of \
             `workspace.protect`",
            path.display()
        ))
    }

    /// Returns the marks of the protected files and of their folders. `None` if the workspace cannot be read.
    fn marks(&self) -> Option<BTreeMap<PathBuf, Mark>> {
        let mut marks = BTreeMap::new();
        walk(&self.workspace, |path, meta| {
            if !meta.is_dir() && is_any(&self.globs, path) && !is_by_product(path) {
                marks.insert(path.to_owned(), Mark::of(&self.workspace.join(path), meta));
            }
            Descend::Enter
        })
        .ok()?;
        let folders = marks.keys().flat_map(|path| path.ancestors().skip(1)).map(Path::to_owned);
        let folders: BTreeSet<PathBuf> = folders.filter(|folder| !folder.as_os_str().is_empty()).collect();
        for folder in folders {
            if let Ok(meta) = self.workspace.join(&folder).symlink_metadata() {
                marks.insert(folder, Mark::Folder(permission_bits(&meta)));
            }
        }
        Some(marks)
    }
}

impl Mark {
    fn of(path: &Path, meta: &Metadata) -> Self {
        match is_lock_file(path) {
            true => Self::Content(regular::read(path).ok()),
            false => Self::Stamp(Stamp::of(meta)),
        }
    }
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
