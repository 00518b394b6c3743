//! Notices protected files that the commands of a grader change, or that are not as before the agent: then a pass of the grader
//! does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{IgnoredByGit, fixed_folders, is_any, permission_bits};
use crate::case::Case;
use crate::regular;
use crate::workspace::hidden::changed::{is_lock_file, is_of_scripts};
use crate::workspace::same;
use crate::workspace::stamp::{Stamp, Stamper};
use crate::workspace::tree::{Ignore, Tree};
use crate::workspace::walk::{Descend, walk};

/// The maximum number of folders that [`folders`] returns.
const MAX_FOLDERS: usize = 64;

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
    /// The state before the agent, which these files must have. Absent if they were not restored from it.
    original: Option<Original>,
    looks: Mutex<Looks>,
}

/// The protected files in the state before the agent.
struct Original {
    root: PathBuf,
    /// The files that no hidden file replaces, and their folders.
    paths: BTreeSet<PathBuf>,
}

#[derive(Default)]
struct Looks {
    /// A file that was missing before the first command of a grader.
    missing: Option<PathBuf>,
    /// The marks of the files before the commands of a grader, while they run.
    before: Option<BTreeMap<PathBuf, Mark>>,
    /// The marks of the files that were found to be as before the agent. A file is read again if its mark differs, such as after it
    /// was written anew between two graders.
    same: BTreeMap<PathBuf, Mark>,
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
    /// before the agent; without it, all protected files of the workspace count. `is_restored` is true if the protected files were
    /// restored from it when the agent had stopped.
    ///
    /// # Errors
    /// Returns an error if the state before the agent cannot be read.
    pub(in crate::trial) fn of(
        case: &Case,
        before: Option<&Path>,
        workspace: &Path,
        is_restored: bool,
    ) -> io::Result<Option<Self>> {
        let mut files = files(case, before.unwrap_or(workspace))?;
        if let Some(before) = before {
            leave_out_ignored(&mut files, case, before)?;
        }
        if files.is_empty() {
            return Ok(None);
        }
        let original = before.filter(|_| is_restored).map(|before| {
            let kept = files.iter().filter(|path| !is_replaced(case.hidden.as_deref(), path));
            let kept: BTreeSet<PathBuf> = kept.cloned().collect();
            Original { root: before.to_owned(), paths: folders_of(&kept).into_iter().chain(kept).collect() }
        });
        let paths = folders_of(&files).into_iter().chain(files).collect();
        Ok(Some(Self { workspace: workspace.to_owned(), paths, original, looks: Mutex::default() }))
    }

    /// Looks for missing files before any command of a grader, also those with which its line begins and that remove files.
    pub(in crate::trial) fn look(&self) {
        let mut expected = self.original.iter().flat_map(|original| &original.paths);
        let missing = expected.find(|path| self.workspace.join(path).symlink_metadata().is_err());
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).missing = missing.cloned();
    }

    /// Records the state of the files before a grader runs commands that the agent may have written.
    pub(in crate::trial) fn begin(&self) {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner).before = Some(self.marks());
    }

    /// Returns why a pass of the grader does not count, if its commands changed files that [`WatchedFiles::begin`] looked at, or if
    /// files are not as before the agent.
    pub(in crate::trial) fn end(&self) -> Option<String> {
        let mut looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let before = looks.before.take()?;
        let now = self.marks();
        if let Some((path, _)) = before.iter().find(|(path, mark)| now.get(*path) != Some(*mark)) {
            return Some(format!(
                "passed, but the protected path `{}` was changed, removed or written while the commands ran: what was checked \
                 is unknown. If the check itself changes it, let the check work on a copy, or leave the path out of \
                 `workspace.protect`",
                path.display()
            ));
        }
        let other = looks.missing.take().or_else(|| self.first_other(now, &mut looks.same))?;
        Some(format!(
            "passed, but the protected path `{}` is not as before the agent: another program, such as the agent of another trial, \
             changed it before the commands ran, so what was checked is unknown. Use a sandbox",
            other.display()
        ))
    }

    /// Returns the first file or folder that is not as before the agent. `now` are the marks, and `same` those of the files that
    /// were found to be as before.
    fn first_other(&self, now: BTreeMap<PathBuf, Mark>, same: &mut BTreeMap<PathBuf, Mark>) -> Option<PathBuf> {
        let original = self.original.as_ref()?;
        // Files that the grader itself removed first are not there.
        for (path, mark) in now.into_iter().filter(|(path, _)| original.paths.contains(path)) {
            if same.get(&path) == Some(&mark) {
                continue;
            }
            if !is_same(&original.root.join(&path), &self.workspace.join(&path)) {
                return Some(path);
            }
            same.insert(path, mark);
        }
        None
    }

    /// Returns the marks of the files and folders that exist and can be reached.
    fn marks(&self) -> BTreeMap<PathBuf, Mark> {
        let mut stamper = Stamper::default();
        let mark = |path: &PathBuf| {
            let place = self.workspace.join(path);
            let meta = place.symlink_metadata().ok()?;
            Some((path.clone(), Mark::of(&place, &meta, &mut stamper)))
        };
        self.paths.iter().filter_map(mark).collect()
    }
}

impl Mark {
    fn of(path: &Path, meta: &Metadata, stamper: &mut Stamper) -> Self {
        match () {
            () if meta.is_dir() => Self::Folder(permission_bits(meta)),
            () if is_lock_file(path) => Self::Content(regular::read(path).ok()),
            () => Self::Stamp(stamper.stamp(path, meta)),
        }
    }
}

/// Returns true if hidden files replace a protected path.
fn is_replaced(hidden: Option<&Path>, path: &Path) -> bool {
    let has = |hidden: &Path| hidden.join(path).symlink_metadata().is_ok();
    let is_file = |hidden: &Path, above: &Path| hidden.join(above).symlink_metadata().is_ok_and(|meta| !meta.is_dir());
    let above = || path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    hidden.is_some_and(|hidden| has(hidden) || above().any(|above| is_file(hidden, above)))
}

/// Returns true if two paths are folders, files with the same content, or links to the same target. The files in a folder are
/// compared by themselves.
fn is_same(original: &Path, place: &Path) -> bool {
    let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    (is_folder(original) && is_folder(place)) || same::content(original, place)
}

/// Returns the folders with which protecting globs begin, and those above and below them: `src`, `src/tests` and its folders of
/// `src/tests/**`. Only folders with a protected file that git does not ignore count, because builds remove and rename the others.
/// The least deep ones are first, and there are at most [`MAX_FOLDERS`].
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
    folders.truncate(MAX_FOLDERS);
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
    use std::fs;

    use super::*;

    #[test]
    fn files_that_are_not_as_before_the_agent_count_unless_the_grader_removed_them() {
        type Act = fn(&Path);
        let none: Act = |_| {};
        let write = |path: &Path, text: &str| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        // What happens before the grader, and as its own first command.
        let acts: [(&str, Act, Act, Option<&str>); 6] = [
            ("nothing", none, none, None),
            ("same", |root| fs::write(root.join("tests/a"), "old").unwrap(), none, None),
            ("changed", |root| fs::write(root.join("tests/a"), "new").unwrap(), none, Some("tests/a")),
            ("removed", |root| fs::remove_file(root.join("tests/a")).unwrap(), none, Some("tests/a")),
            ("own", none, |root| fs::remove_file(root.join("tests/a")).unwrap(), None),
            (
                "linked",
                |root| {
                    fs::rename(root.join("tests"), root.join("else")).unwrap();
                    std::os::unix::fs::symlink("else", root.join("tests")).unwrap();
                },
                none,
                Some("tests"),
            ),
        ];
        for (name, before, own, expected) in acts {
            let root = tempfile::tempdir().unwrap();
            let [original, workspace] = ["original", "workspace"].map(|name| root.path().join(name));
            for path in [&original, &workspace] {
                write(&path.join("tests/a"), "old");
                write(&path.join("tests/b"), "old");
            }
            let paths: BTreeSet<PathBuf> = ["tests", "tests/a", "tests/b"].map(PathBuf::from).into();
            let original = Some(Original { root: original, paths: paths.clone() });
            let files = WatchedFiles { workspace: workspace.clone(), paths, original, looks: Mutex::default() };
            // Files that were compared once are compared again if they change.
            files.look();
            files.begin();
            assert_eq!(files.end(), None, "{name}");
            // File systems count time in steps of a few milliseconds.
            std::thread::sleep(std::time::Duration::from_millis(30));
            before(&workspace);
            files.look();
            own(&workspace);
            files.begin();
            let end = files.end();
            let is_named =
                |path: &str| end.as_ref().is_some_and(|end| end.contains(&format!("`{path}` is not as before")));
            assert_eq!(expected.map(is_named), expected.map(|_| true), "{name}: {end:?}");
            assert_eq!(end.is_some(), expected.is_some(), "{name}: {end:?}");
        }
    }

    #[test]
    fn protected_files_that_hidden_files_replace_are_known() {
        let hidden = tempfile::tempdir().unwrap();
        fs::create_dir(hidden.path().join("tests")).unwrap();
        for path in ["tests/a", "data"] {
            fs::write(hidden.path().join(path), "").unwrap();
        }
        for (path, expected) in [("tests/a", true), ("tests/b", false), ("data/x", true), ("tests", true)] {
            assert_eq!(is_replaced(Some(hidden.path()), Path::new(path)), expected, "{path}");
            assert!(!is_replaced(None, Path::new(path)));
        }
    }

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
