//! Finds hidden files that code under test changed after they were laid over a workspace, and puts them back.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use super::{COMPILED, reached_without_links};
use crate::regular;
use crate::workspace::remove::remove;
use crate::workspace::walk::{Descend, walk};
use crate::workspace::{WorkspaceError, copy_folder};

/// Returns the hidden files that a workspace has in another form, or not at all. `None` if they cannot be read.
pub fn changed(hidden: &Path, workspace: &Path) -> Option<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let unread = walk(hidden, |path, meta| {
        let place = workspace.join(path);
        let is_there = || reached_without_links(workspace, &place) && is_same(&hidden.join(path), meta, &place);
        if !meta.is_dir() && !is_there() {
            found.insert(path.to_owned());
        }
        Descend::Enter
    });
    unread.is_ok_and(|unread| unread.is_empty()).then_some(found)
}

/// Returns true if a file or a link of the workspace is as the hidden one.
fn is_same(hidden: &Path, meta: &Metadata, place: &Path) -> bool {
    let Ok(now) = place.symlink_metadata() else { return false };
    if meta.is_symlink() {
        return now.is_symlink() && fs::read_link(hidden).ok() == fs::read_link(place).ok();
    }
    let read = |path: &Path| regular::read(path).ok();
    now.is_file() && now.len() == meta.len() && read(hidden).is_some_and(|text| read(place) == Some(text))
}

/// Puts back the hidden files that a workspace has in another form, or not at all, and returns their paths. Compiled
/// modules beside hidden files are removed.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn put_back(hidden: &Path, workspace: &Path) -> Result<BTreeSet<PathBuf>, WorkspaceError> {
    let io = |doing, path: &Path, source: io::Error| WorkspaceError::Io { doing, path: path.to_owned(), source };
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
    let compare = || {
        let unknown = || io("compare the files in", workspace, io::Error::other("a folder cannot be read"));
        changed(hidden, workspace).ok_or_else(unknown)
    };
    let found = compare()?;
    if !found.is_empty() {
        copy_folder(hidden, workspace, true)?;
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

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

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
        // A folder of the same files behind a link.
        fs::rename(workspace.join("b"), workspace.join("else")).unwrap();
        symlink("else", workspace.join("b")).unwrap();
        for path in ["a/result.txt", "a/__pycache__/same.pyc", "__pycache__/top.pyc"] {
            write(&workspace, path, "made");
        }
        let expected = ["a/changed.py", "a/gone.py", "a/link.py", "a/own", "a/pipe.py", "b/in/c.py"].map(PathBuf::from);
        assert_eq!(put_back(&hidden, &workspace).unwrap(), BTreeSet::from(expected));
        assert_eq!(changed(&hidden, &workspace), Some(BTreeSet::new()));
        assert!(!workspace.join("b").is_symlink() && workspace.join("else/in/c.py").exists());
        assert!(workspace.join("a/result.txt").exists());
        assert!(!workspace.join("a/__pycache__").exists() && !workspace.join("__pycache__").exists());
    }
}
