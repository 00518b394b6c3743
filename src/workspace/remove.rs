//! Removes files that a program left, at any depth and with any modes. Links are not followed.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, chmodat, renameat, unlinkat};
use rustix::io::Errno;

use super::openat::{kind, open_folder, open_own};

/// The number of names that are read at once.
const BATCH: usize = 1024;

/// Removes a folder with everything in it, a link, or a file. A missing path is not an error.
///
/// # Errors
/// Returns an error of the file system. Everything that could be removed is gone.
pub fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it has no name in a folder"));
    };
    match open_own(parent) {
        Ok(parent) => remove_in(&parent, name),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the file, link or folder with a name in a folder.
///
/// # Errors
/// Returns the errors of [`remove`].
pub fn remove_in(parent: impl AsFd, name: &OsStr) -> io::Result<()> {
    let parent = parent.as_fd();
    let done = match kind(parent, name) {
        Ok(FileType::Directory) => remove_folder(parent, name),
        Ok(_) => unlinkat(parent, name, AtFlags::empty()),
        Err(error) => Err(error),
    };
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}

/// Moves inner folders to the top before they are emptied, so that neither depth nor the length of a path matters.
fn remove_folder(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let top = open_folder(parent, name)?;
    let mut moved = 0;
    each_until_empty(top.as_fd(), |name| match kind(&top, name)? {
        FileType::Directory => {
            let folder = open_folder(&top, name)?;
            each_until_empty(folder.as_fd(), |name| match kind(&folder, name)? {
                FileType::Directory => move_up(folder.as_fd(), name, top.as_fd(), &mut moved),
                _ => unlinkat(&folder, name, AtFlags::empty()),
            })?;
            unlinkat(&top, name, AtFlags::REMOVEDIR)
        }
        _ => unlinkat(&top, name, AtFlags::empty()),
    })?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Calls `take_away` with each name in a folder, until none is left.
fn each_until_empty(
    folder: BorrowedFd<'_>,
    mut take_away: impl FnMut(&OsStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    loop {
        let names = some_names(folder)?;
        if names.is_empty() {
            return Ok(());
        }
        let (mut any, mut refused) = (false, None);
        for name in &names {
            match take_away(OsStr::from_bytes(name.as_bytes())) {
                Ok(()) | Err(Errno::NOENT) => any = true,
                Err(error) => refused = Some(error),
            }
        }
        if let (false, Some(error)) = (any, refused) {
            return Err(error);
        }
    }
}

fn some_names(folder: BorrowedFd<'_>) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
        if names.len() == BATCH {
            break;
        }
    }
    Ok(names)
}

fn move_up(folder: BorrowedFd<'_>, name: &OsStr, top: BorrowedFd<'_>, moved: &mut u64) -> Result<(), Errno> {
    let mut opened = false;
    loop {
        let free = OsString::from(format!(".evals-removes-{moved}"));
        *moved += 1;
        match renameat(folder, name, top, &free) {
            // The name is taken.
            Err(Errno::EXIST | Errno::NOTEMPTY | Errno::NOTDIR) => {}
            // A folder can be moved to another parent only if it is writable.
            Err(Errno::ACCESS) if !opened => {
                opened = true;
                chmodat(folder, name, Mode::RWXU, AtFlags::empty())?;
            }
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use rustix::fs::mkdirat;

    use super::*;

    /// Makes a chain of folders that is too deep for a path.
    pub(crate) fn chain(folder: &Path, depth: usize) {
        let mut at = open_own(folder).unwrap();
        for _ in 0..depth {
            mkdirat(&at, "d", Mode::RWXU).unwrap();
            at = open_folder(&at, OsStr::new("d")).unwrap();
        }
        rustix::fs::openat(&at, "end", rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY, Mode::RUSR).unwrap();
    }

    #[test]
    fn what_is_very_deep_very_wide_or_closed_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let gone = root.path().join("gone");
        fs::create_dir_all(gone.join("wide")).unwrap();
        chain(&gone, 10_000);
        for n in 0..3000 {
            fs::create_dir(gone.join(format!("wide/{n}"))).unwrap();
            fs::write(gone.join(format!("wide/{n}/x")), "").unwrap();
        }
        fs::create_dir_all(gone.join("closed/.evals-removes-0/x")).unwrap();
        fs::set_permissions(gone.join("closed/.evals-removes-0"), fs::Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(gone.join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
        remove(&gone).unwrap();
        assert!(gone.symlink_metadata().is_err());
        remove(&gone).unwrap();
        remove(&gone.join("x")).unwrap();
    }

    #[test]
    fn what_links_point_to_stays() {
        let root = tempfile::tempdir().unwrap();
        let (gone, stays) = (root.path().join("gone"), root.path().join("stays"));
        fs::create_dir(&stays).unwrap();
        fs::write(stays.join("x"), "mine").unwrap();
        fs::create_dir(&gone).unwrap();
        symlink(&stays, gone.join("link")).unwrap();
        symlink(&stays, root.path().join("link")).unwrap();
        remove(&gone).unwrap();
        remove(&root.path().join("link")).unwrap();
        assert_eq!(fs::read_to_string(stays.join("x")).unwrap(), "mine");
        assert!(!root.path().join("link").is_symlink());
    }
}
