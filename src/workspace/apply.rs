//! Applies a patch of this program to the state from which it was made: exactly, or not at all.

use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use super::change::FileChangeKind;
use super::openat::open_file;
use super::patch::object_name;
use super::patch::read::{Edit, Hunk, PatchError, Piece};

/// Applies a patch to a workspace. Returns the paths whose content the patch does not hold.
///
/// # Errors
/// Returns an error if a file differs from the one that the patch was made from, or the file system refuses. The
/// workspace is then unusable.
pub fn apply(workspace: &Path, pieces: &[Piece]) -> Result<Vec<PathBuf>, PatchError> {
    // Deletions come first: something else may have taken the place of a deleted file.
    let mut ordered: Vec<&Piece> = pieces.iter().collect();
    ordered.sort_by_key(|piece| piece.how != FileChangeKind::Deleted);
    let mut unknown = Vec::new();
    for piece in ordered {
        let refused = |source| PatchError::Io { path: piece.path.display().to_string(), source };
        match (&piece.edit, piece.how) {
            (Edit::LeftOut, FileChangeKind::Deleted) => {}
            (Edit::LeftOut, _) => {
                unknown.push(piece.path.clone());
                continue;
            }
            _ => {}
        }
        let place = place(workspace, &piece.path, piece.how == FileChangeKind::Created).map_err(refused)?;
        let old = match (piece.how, place.symlink_metadata()) {
            (FileChangeKind::Created, Err(error)) if error.kind() == io::ErrorKind::NotFound => None,
            (FileChangeKind::Created, Ok(meta)) if meta.is_dir() && fs::remove_dir(&place).is_ok() => None,
            (FileChangeKind::Changed | FileChangeKind::Deleted, Ok(meta)) if meta.is_symlink() => {
                Some((fs::read_link(&place).map_err(refused)?.into_os_string().into_vec(), None))
            }
            (FileChangeKind::Changed | FileChangeKind::Deleted, Ok(meta)) if meta.is_file() => {
                Some((content(&place).map_err(refused)?, Some(meta.permissions())))
            }
            _ => return Err(other(piece)),
        };
        let (before, permissions) = old.unwrap_or_default();
        let after = match &piece.edit {
            Edit::None if piece.how == FileChangeKind::Deleted && !before.is_empty() => return Err(other(piece)),
            Edit::None => before,
            Edit::Lines(hunks) => edited(&before, hunks).ok_or_else(|| other(piece))?,
            Edit::Whole(name, _) if piece.how != FileChangeKind::Created && *name != object_name(&before) => {
                return Err(other(piece));
            }
            Edit::Whole(_, bytes) => bytes.clone(),
            Edit::LeftOut => Vec::new(),
        };
        if piece.how == FileChangeKind::Deleted {
            fs::remove_file(&place).map_err(refused)?;
            remove_empty(workspace, &piece.path);
            continue;
        }
        put(&place, &after, piece.mode.as_deref(), permissions).map_err(refused)?;
    }
    Ok(unknown)
}

fn other(piece: &Piece) -> PatchError {
    PatchError::Other(piece.path.display().to_string())
}

/// Returns the place of a path of the workspace. A link on the way is an error, because it may lead outside.
pub(super) fn place(workspace: &Path, path: &Path, make: bool) -> io::Result<PathBuf> {
    let mut place = workspace.to_owned();
    for part in path.parent().unwrap_or(Path::new("")).components() {
        let Component::Normal(name) = part else { return Err(io::Error::other("it is not a path in the workspace")) };
        place.push(name);
        match place.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(io::Error::other("one of its parents is not a folder")),
            Err(error) if make && error.kind() == io::ErrorKind::NotFound => fs::create_dir(&place)?,
            Err(error) => return Err(error),
        }
    }
    Ok(workspace.join(path))
}

fn content(place: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(place)?.take(super::change::MAX_PATCH_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the lines of a text with the hunks applied, or `None` if a hunk does not fit.
fn edited(before: &[u8], hunks: &[Hunk]) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut after, mut at) = (Vec::with_capacity(before.len()), 0);
    for hunk in hunks {
        after.extend(lines.get(at..hunk.before)?.concat());
        let end = hunk.before.checked_add(hunk.old.len())?;
        if lines.get(hunk.before..end)? != hunk.old {
            return None;
        }
        after.extend(hunk.new.concat());
        at = end;
    }
    after.extend(lines.get(at..)?.concat());
    Some(after)
}

fn put(place: &Path, bytes: &[u8], mode: Option<&str>, old: Option<Permissions>) -> io::Result<()> {
    let was_link = place.symlink_metadata().is_ok_and(|meta| meta.is_symlink());
    if mode == Some("120000") || (mode.is_none() && was_link) {
        if was_link {
            fs::remove_file(place)?;
        }
        return symlink(std::ffi::OsStr::from_bytes(bytes), place);
    }
    fs::write(place, bytes)?;
    match mode {
        Some("100755") => fs::set_permissions(place, Permissions::from_mode(0o755)),
        Some(_) => fs::set_permissions(place, Permissions::from_mode(0o644)),
        None => old.map_or(Ok(()), |permissions| fs::set_permissions(place, permissions)),
    }
}

/// Removes the folders above a deleted file that have become empty, as git does.
fn remove_empty(workspace: &Path, path: &Path) {
    for folder in path.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
        if fs::remove_dir(workspace.join(folder)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use proptest::prelude::*;

    use super::*;
    use crate::workspace::change::{Compared, compare};
    use crate::workspace::copy_folder;
    use crate::workspace::patch::read::{change, read};
    use crate::workspace::patch::{every_change, left_out};
    use crate::workspace::tree::{Ignore, Tree};

    /// Makes a patch of the changes of `after`, applies it to the state before, and checks that no difference is left.
    fn round_trip(before: impl Fn(&Path), after: impl Fn(&Path)) {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (root.path().join("old"), root.path().join("new"));
        fs::create_dir(&old).unwrap();
        before(&old);
        copy_folder(&old, &new, false).unwrap();
        after(&new);
        let ignore = Ignore::of(&old, &[]).unwrap();
        let tree = |path: &Path| Tree::read(path, &ignore).unwrap();
        let Compared { change: truth, patch, .. } = compare(&tree(&old), &tree(&new), &|_| None).unwrap();
        let pieces = read(&patch).unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&patch)));
        assert_eq!(change(&pieces), truth);
        let text = String::from_utf8_lossy(&patch).into_owned();
        let unknown = apply(&old, &pieces).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(unknown, Vec::<PathBuf>::new());
        let again = compare(&tree(&old), &tree(&new), &|_| None).unwrap();
        assert!(again.change.is_empty(), "{again:?}\n{text}");
    }

    #[test]
    fn every_kind_of_change_comes_back() {
        round_trip(
            |dir| {
                every_change::before(dir);
                fs::create_dir(dir.join("name b")).unwrap();
                fs::write(dir.join("name b/x b"), "x\n").unwrap();
                fs::write(dir.join("back\\slash"), "x\n").unwrap();
                fs::write(dir.join("to-folder"), "text\n").unwrap();
                fs::create_dir_all(dir.join("folder/deep")).unwrap();
                fs::write(dir.join("folder/deep/x"), "x\n").unwrap();
            },
            |dir| {
                every_change::after(dir);
                fs::write(dir.join("name b/x b"), "y\n").unwrap();
                fs::write(dir.join("back\\slash"), "y\n").unwrap();
                fs::remove_file(dir.join("to-folder")).unwrap();
                fs::create_dir(dir.join("to-folder")).unwrap();
                fs::write(dir.join("to-folder/x"), "x").unwrap();
                fs::remove_dir_all(dir.join("folder")).unwrap();
                symlink("text", dir.join("folder")).unwrap();
                fs::write(dir.join("new/run"), "#!/bin/sh\n").unwrap();
                fs::set_permissions(dir.join("new/run"), Permissions::from_mode(0o755)).unwrap();
            },
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
        #[test]
        fn any_change_of_a_file_comes_back(
            old in proptest::option::of("[ab\r\n\u{0}]{0,40}"),
            new in proptest::option::of("[ab\r\n\u{0}]{0,40}"),
        ) {
            let put = |dir: &Path, text: &Option<String>| match text {
                Some(text) => fs::write(dir.join("f"), text).unwrap(),
                None => _ = fs::remove_file(dir.join("f")),
            };
            round_trip(|dir| put(dir, &old), |dir| put(dir, &new));
        }

        /// Whatever a patch contains, reading and applying it changes nothing outside the workspace and does not
        /// panic.
        #[test]
        fn no_patch_breaks_anything(text in "(diff --git a/(x|\\.\\./x) b/(x|\\.\\./x)\n|new file mode 100644\n|--- /dev/null\n|\\+\\+\\+ b/x\n|@@ -0,0 \\+1 @@\n|\\+a\n|index 0..1\n|GIT binary patch\n|literal 3\nAzzzzz\n\n|# left out: (y|\"z) \\(created, 3 bytes\\)\n){0,8}") {
            let root = tempfile::tempdir().unwrap();
            let workspace = root.path().join("w");
            fs::create_dir(&workspace).unwrap();
            if let Ok(pieces) = read(text.as_bytes()) {
                let _ = apply(&workspace, &pieces);
            }
            prop_assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn what_is_not_what_the_patch_was_made_from_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let patch = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n";
        fs::write(root.path().join("f"), "other\n").unwrap();
        let error = apply(root.path(), &read(patch).unwrap()).unwrap_err();
        assert_eq!(error.to_string(), "`f` is not what the patch was made from");
        fs::remove_file(root.path().join("f")).unwrap();
        assert!(apply(root.path(), &read(patch).unwrap()).is_err());
        // Nothing is written through a link.
        fs::create_dir(root.path().join("outside")).unwrap();
        let workspace = root.path().join("workspace");
        fs::create_dir(&workspace).unwrap();
        symlink("../outside", workspace.join("d")).unwrap();
        let patch = b"diff --git a/d/f b/d/f\nnew file mode 100644\n--- /dev/null\n+++ b/d/f\n@@ -0,0 +1 @@\n+x\n";
        assert!(apply(&workspace, &read(patch).unwrap()).is_err());
        assert_eq!(fs::read_dir(root.path().join("outside")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_left_out_is_named() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("old (1)"), "x").unwrap();
        let patch = b"# left out: big (created, 99 bytes)\n# left out: \"o\\303\\244\" (it could not be read)\n# left out: old (1) (deleted, 9 bytes)\n";
        let pieces = read(patch).unwrap();
        let now = change(&pieces);
        assert_eq!(
            (now.created, now.changed, now.deleted),
            (vec!["big".into()], vec!["o\u{e4}".into()], vec!["old (1)".into()])
        );
        let unknown = apply(root.path(), &pieces).unwrap();
        assert_eq!(unknown, [PathBuf::from("big"), PathBuf::from("o\u{e4}")]);
        assert!(!root.path().join("old (1)").exists());
    }

    #[test]
    fn the_reason_of_what_is_left_out_is_no_part_of_its_name() {
        let why = "Permission denied (os error 13)";
        let mut patch = Vec::new();
        left_out(&mut patch, Path::new("a (1)"), why);
        left_out(&mut patch, Path::new("b"), "it is no file (:");
        // A patch of an earlier version.
        patch.extend_from_slice(format!("# left out: c (2) ({why})\n").as_bytes());
        let pieces = read(&patch).unwrap();
        let names: Vec<&Path> = pieces.iter().map(|piece| piece.path.as_path()).collect();
        assert_eq!(names, ["a (1)", "b", "c (2)"].map(Path::new));
    }
}
