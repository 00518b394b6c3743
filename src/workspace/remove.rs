//! Removes files that a program left, at any depth and with any modes. Links are not followed.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, chmodat, renameat, unlinkat};
use rustix::io::Errno;

use super::openat::{kind, open_folder, open_own};

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
    let done = match unlinkat(parent, name, AtFlags::empty()) {
        // The system refuses a folder with one of these errors.
        Err(Errno::ISDIR | Errno::PERM) if kind(parent, name) == Ok(FileType::Directory) => remove_folder(parent, name),
        done => done,
    };
    match done {
        Err(Errno::NOENT) => Ok(()),
        done => Ok(done?),
    }
}

/// Moves inner folders to the top before they are emptied, so that neither depth nor the length of a path matters.
fn remove_folder(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    let mut moved = 0;
    let mut top = Listing::of(open_folder(parent, name)?)?;
    top.empty(
        |top, name| {
            let mut folder = Listing::of(open_folder(top, name)?)?;
            folder.empty(
                |folder, name| move_up(folder, name, top, &mut moved),
                || unlinkat(top, name, AtFlags::REMOVEDIR),
            )
        },
        || unlinkat(parent, name, AtFlags::REMOVEDIR),
    )
}

/// An open folder and the names in it.
struct Listing(Dir);

impl Listing {
    fn of(folder: OwnedFd) -> Result<Self, Errno> {
        Ok(Self(Dir::new(folder)?))
    }

    /// Removes everything in the folder with one listing, and then the folder itself with `remove`. Lists the folder again
    /// only if something is left. `take_away` gets the inner folders that are not empty.
    fn empty(
        &mut self,
        mut take_away: impl FnMut(BorrowedFd<'_>, &OsStr) -> Result<(), Errno>,
        remove: impl Fn() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        loop {
            let (mut any, mut refused) = (false, None);
            while let Some(entry) = self.0.read() {
                let entry = entry?;
                let name = entry.file_name().to_bytes();
                if matches!(name, b"." | b"..") {
                    continue;
                }
                match take(self.0.fd()?, OsStr::from_bytes(name), entry.file_type(), &mut take_away) {
                    Ok(()) | Err(Errno::NOENT) => any = true,
                    Err(error) => refused = Some(error),
                }
            }
            match (remove(), refused) {
                (Err(Errno::NOTEMPTY | Errno::EXIST), _) if any => self.0.rewind(),
                (Err(Errno::NOTEMPTY | Errno::EXIST), Some(refused)) => return Err(refused),
                (done, _) => return done,
            }
        }
    }
}

/// Removes a file or an empty folder from a folder. Calls `take_away` for a folder that is not empty.
fn take(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    listed: FileType,
    take_away: &mut impl FnMut(BorrowedFd<'_>, &OsStr) -> Result<(), Errno>,
) -> Result<(), Errno> {
    // Not every file system lists the kinds.
    let kind = if listed == FileType::Unknown { kind(folder, name)? } else { listed };
    if kind != FileType::Directory {
        return unlinkat(folder, name, AtFlags::empty());
    }
    match unlinkat(folder, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => take_away(folder, name),
        done => done,
    }
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
        chain(&gone, 5_000);
        for n in 0..2000 {
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
    fn a_file_a_link_and_an_empty_folder_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        fs::write(path("file"), "x").unwrap();
        symlink("nowhere", path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        for name in ["file", "link", "folder"] {
            remove(&path(name)).unwrap();
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
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
