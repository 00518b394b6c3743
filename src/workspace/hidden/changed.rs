//! Finds hidden files that code under test changed after they were laid over a workspace, and puts them back.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{COMPILED, reached_without_links};
use crate::workspace::remove::remove;
use crate::workspace::same;
use crate::workspace::stamp::{Stamp, Stamper};
use crate::workspace::walk::{Descend, walk};
use crate::workspace::{WorkspaceError, copy_folder};

/// The beginning of the names of folders that scripts of converted cases move away while a command runs, and back. In bubblewrap,
/// the files are then copied.
const MOVED: &str = ".evals-";

/// Lock files of package managers, which write them again with the same content when they install.
const LOCK_FILES: [&str; 13] = [
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "Cargo.lock",
    "go.sum",
    "go.mod",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "composer.lock",
    "Gemfile.lock",
];

/// The maximum number of folders that [`folders`] returns.
const MAX_FOLDERS: usize = 64;

/// Returns the hidden files that a workspace has in another form, or not at all, and the files and folders from which a permission
/// was taken. `None` if they cannot be read.
pub fn changed(hidden: &Path, workspace: &Path) -> Option<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let unread = walk(hidden, |path, meta| {
        let place = workspace.join(path);
        let is_reached = || reached_without_links(workspace, &place);
        let is_as_laid = match meta.is_dir() {
            true => !is_reached() || !lacks_permissions(meta, &place),
            false => is_reached() && same::with_permissions(&hidden.join(path), &place),
        };
        if !is_as_laid {
            found.insert(path.to_owned());
        }
        Descend::Enter
    });
    if workspace.symlink_metadata().is_ok_and(|now| now.permissions().mode() & 0o700 != 0o700) {
        found.insert(PathBuf::from("."));
    }
    unread.is_ok_and(|unread| unread.is_empty()).then_some(found)
}

/// Returns true if a folder of the workspace lacks permissions that it must have for the checks.
fn lacks_permissions(hidden: &Metadata, place: &Path) -> bool {
    let needed = permissions_of_folder(hidden);
    place.symlink_metadata().is_ok_and(|now| now.is_dir() && now.permissions().mode() & needed != needed)
}

/// Returns the permission bits that a folder of hidden files must have in a workspace.
fn permissions_of_folder(hidden: &Metadata) -> u32 {
    (hidden.permissions().mode() & 0o777) | 0o700
}

/// Gives the folders of hidden files in a workspace, and the workspace itself, the permissions that the checks need. Permissions of
/// another user's folder stay as they are.
///
/// # Errors
/// Returns an error if the folder of hidden files cannot be read.
pub(super) fn open_folders(hidden: &Path, workspace: &Path) -> io::Result<()> {
    let open = |place: &Path, needed: u32| {
        let Ok(now) = place.symlink_metadata() else { return };
        let mode = now.permissions().mode() & 0o7777;
        if now.is_dir() && mode & needed != needed {
            let _ = fs::set_permissions(place, Permissions::from_mode(mode | needed));
        }
    };
    open(workspace, 0o700);
    walk(hidden, |path, meta| {
        let place = workspace.join(path);
        if meta.is_dir() && reached_without_links(workspace, &place) {
            open(&place, permissions_of_folder(meta));
        }
        Descend::Enter
    })
    .map(drop)
}

/// Returns the folders of hidden files, the least deep ones first and at most [`MAX_FOLDERS`]. Folders that scripts of converted
/// cases move are left out.
pub fn folders(hidden: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let _ = walk(hidden, |path, meta| {
        if meta.is_dir() && !is_of_scripts(path) {
            folders.push(path.to_owned());
        }
        Descend::Enter
    });
    folders.sort_by_key(|path| (path.iter().count(), path.clone()));
    folders.truncate(MAX_FOLDERS);
    folders
}

/// Returns true for the folders that scripts of converted cases move, and for everything in them.
pub fn is_of_scripts(path: &Path) -> bool {
    path.iter().next().is_some_and(|name| name.to_string_lossy().starts_with(MOVED))
}

/// Returns true for the lock files of package managers, by their names.
pub fn is_lock_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| LOCK_FILES.iter().any(|lock| name == *lock))
}

/// Returns the stamps of the hidden files in a workspace, by which a change that was undone is noticed. Of lock files, only the
/// content counts.
pub fn stamps(hidden: &Path, workspace: &Path) -> BTreeMap<PathBuf, Stamp> {
    let (mut stamps, mut stamper) = (BTreeMap::new(), Stamper::default());
    let walked = walk(hidden, |path, meta| {
        let has_stamp = !meta.is_dir() && !is_of_scripts(path) && !is_lock_file(path);
        let place = workspace.join(path);
        if let (true, Ok(now)) = (has_stamp, place.symlink_metadata()) {
            stamps.insert(path.to_owned(), stamper.stamp(&place, &now));
        }
        Descend::Enter
    });
    // Without the hidden files, `changed` returns `None`.
    if walked.is_ok() { stamps } else { BTreeMap::new() }
}

/// Puts back what [`changed`] finds, and returns the paths. Compiled modules beside hidden files are removed.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn put_back(hidden: &Path, workspace: &Path) -> Result<BTreeSet<PathBuf>, WorkspaceError> {
    let io = |doing, path: &Path, source: io::Error| WorkspaceError::Io { doing, path: path.to_owned(), source };
    let compare = || {
        let unknown = || io("compare the files in", workspace, io::Error::other("a folder cannot be read"));
        changed(hidden, workspace).ok_or_else(unknown)
    };
    let found = compare()?;
    let open = || open_folders(hidden, workspace).map_err(|error| io("read the folder", hidden, error));
    open()?;
    let mut compiled = BTreeSet::new();
    walk(hidden, |path, meta| {
        if !meta.is_dir() {
            compiled.extend(path.parent().map(|folder| folder.join(COMPILED)));
        }
        Descend::Enter
    })
    .map_err(|error| io("read the folder", hidden, error))?;
    for path in compiled.iter().filter(|path| !hidden.join(path).exists()) {
        remove_within(workspace, path).map_err(|error| io("empty the folder", &workspace.join(path), error))?;
    }
    if !found.is_empty() {
        copy_folder(hidden, workspace, true)?;
        open()?;
        if let Some(path) = compare()?.first() {
            return Err(io("replace", &workspace.join(path), io::Error::other("it still differs")));
        }
    }
    Ok(found)
}

/// Removes a path below a folder, unless a link leads to it.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn remove_within(folder: &Path, path: &Path) -> io::Result<()> {
    let path = folder.join(path);
    if reached_without_links(folder, &path) { remove(&path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::tests::write;
    use super::*;

    #[test]
    fn hidden_files_that_differ_are_put_back_and_other_files_stay() {
        let root = tempfile::tempdir().unwrap();
        let [hidden, workspace] = ["hidden", "workspace"].map(|name| root.path().join(name));
        for path in ["a/same.py", "a/changed.py", "a/gone.py", "a/pipe.py", "a/link.py", "b/in/c.py", "top.py"] {
            write(&hidden, path, "right");
        }
        symlink("same.py", hidden.join("a/own")).unwrap();
        copy_folder(&hidden, &workspace, false).unwrap();
        assert_eq!(put_back(&hidden, &workspace).unwrap(), BTreeSet::new());
        write(&workspace, "a/changed.py", "wrong");
        for path in ["a/gone.py", "a/pipe.py", "a/link.py", "a/own"] {
            fs::remove_file(workspace.join(path)).unwrap();
        }
        assert!(std::process::Command::new("mkfifo").arg(workspace.join("a/pipe.py")).status().unwrap().success());
        symlink("same.py", workspace.join("a/link.py")).unwrap();
        write(&workspace, "a/own", "right");
        // Fewer permissions count, and more do not.
        let mode = |path: &str, mode| fs::set_permissions(workspace.join(path), Permissions::from_mode(mode)).unwrap();
        mode("top.py", 0o100);
        mode("a/same.py", 0o777);
        mode("a", 0o300);
        // A folder of the same files behind a link.
        fs::rename(workspace.join("b"), workspace.join("else")).unwrap();
        symlink("else", workspace.join("b")).unwrap();
        for path in ["a/result.txt", "a/__pycache__/same.pyc", "__pycache__/top.pyc"] {
            write(&workspace, path, "made");
        }
        let expected = ["a", "a/changed.py", "a/gone.py", "a/link.py", "a/own", "a/pipe.py", "b/in/c.py", "top.py"];
        assert_eq!(put_back(&hidden, &workspace).unwrap(), BTreeSet::from(expected.map(PathBuf::from)));
        assert_eq!(changed(&hidden, &workspace), Some(BTreeSet::new()));
        assert!(!workspace.join("b").is_symlink() && workspace.join("else/in/c.py").exists());
        assert!(workspace.join("a/result.txt").exists());
        assert!(!workspace.join("a/__pycache__").exists() && !workspace.join("__pycache__").exists());
    }
}
