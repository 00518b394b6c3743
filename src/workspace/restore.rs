//! Restores single files of a workspace. Nothing outside the workspace is changed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use rustix::fs::{FileType, Mode, OFlags, RawMode, fchmod, mkdirat, openat, symlinkat};
use rustix::io::Errno;

use super::openat::{kind, open_folder, open_own};
use super::remove::remove_in;

/// Restores a path of the workspace from the original. A path that the original does not have is removed.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn put_back(original: &Path, workspace: &Path, path: &Path) -> io::Result<()> {
    let source = original.join(path);
    let was = source.symlink_metadata().ok().filter(|meta| meta.is_file() || meta.is_symlink());
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let Some(folder) = folder(original, workspace, parent, was.is_some())? else { return Ok(()) };
    remove_in(&folder, name)?;
    match was {
        Some(meta) if meta.is_symlink() => Ok(symlinkat(fs::read_link(&source)?, &folder, name)?),
        Some(meta) => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut place = File::from(openat(&folder, name, flags, Mode::RUSR | Mode::WUSR)?);
            io::copy(&mut File::open(&source)?, &mut place)?;
            place.set_permissions(meta.permissions())
        }
        None => Ok(()),
    }
}

/// Restores a folder of the workspace with these permission bits. What lies in its place is removed, and missing folders are made.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn put_back_folder(workspace: &Path, path: &Path, mode: u32) -> io::Result<()> {
    let Some(folder) = folder(workspace, workspace, path, true)? else { return Ok(()) };
    Ok(fchmod(&folder, Mode::from_raw_mode(mode as RawMode & 0o7777))?)
}

/// Opens a folder of the workspace, one path component after the other. With `make`, obstacles are removed and missing
/// folders are made; otherwise, returns `None` if the path does not lead to a folder.
fn folder(original: &Path, workspace: &Path, path: &Path, make: bool) -> io::Result<Option<OwnedFd>> {
    let mut folder = open_own(workspace)?;
    let mut so_far = original.to_owned();
    for part in path.components() {
        let Component::Normal(name) = part else { return Err(io::Error::other("it is not a path in the workspace")) };
        so_far.push(name);
        let next = match open_folder(&folder, name) {
            Ok(next) => next,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if make => made(&folder, name)?,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if let Ok(meta) = so_far.symlink_metadata().as_ref().map(fs::Metadata::permissions) {
            // The owner gets all permissions, even if the original lacks them: graders and the engine work in the
            // folder.
            let _ = fchmod(&next, Mode::from_raw_mode(meta.mode() as RawMode & 0o777) | Mode::RWXU);
        }
        folder = next;
    }
    Ok(Some(folder))
}

fn made(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    if kind(parent, name).is_ok_and(|kind| kind != FileType::Directory) {
        remove_in(parent, name)?;
    }
    mkdirat(parent, name, Mode::from_raw_mode(0o755))?;
    Ok(open_folder(parent, name)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Stand {
        root: tempfile::TempDir,
    }

    impl Stand {
        fn new() -> Self {
            let stand = Self { root: tempfile::tempdir().unwrap() };
            for folder in ["original/tests/deep", "workspace", "precious"] {
                fs::create_dir_all(stand.path(folder)).unwrap();
            }
            fs::write(stand.path("original/tests/deep/x"), "right").unwrap();
            fs::set_permissions(stand.path("original/tests/deep/x"), fs::Permissions::from_mode(0o755)).unwrap();
            symlink("deep/x", stand.path("original/tests/link")).unwrap();
            fs::write(stand.path("precious/x"), "mine").unwrap();
            stand
        }

        fn path(&self, path: &str) -> std::path::PathBuf {
            self.root.path().join(path)
        }

        fn put_back(&self, path: &str) {
            put_back(&self.path("original"), &self.path("workspace"), Path::new(path)).unwrap();
        }

        fn is_right(&self) {
            self.put_back("tests/deep/x");
            let x = self.path("workspace/tests/deep/x");
            assert_eq!(fs::read_to_string(&x).unwrap(), "right");
            assert_eq!(fs::symlink_metadata(&x).unwrap().permissions().mode() & 0o777, 0o755);
            for folder in ["workspace/tests", "workspace/tests/deep"] {
                let meta = fs::symlink_metadata(self.path(folder)).unwrap();
                assert!(meta.is_dir() && meta.permissions().mode() & 0o700 == 0o700, "{folder}");
            }
            assert_eq!(fs::read_to_string(self.path("precious/x")).unwrap(), "mine");
            assert_eq!(fs::read_dir(self.path("precious")).unwrap().count(), 1);
        }
    }

    #[test]
    fn links_files_and_closed_folders_in_the_way_are_cleared_and_nothing_outside_is_touched() {
        let stand = Stand::new();
        symlink(stand.path("precious"), stand.path("workspace/tests")).unwrap();
        stand.is_right();

        let stand = Stand::new();
        fs::create_dir(stand.path("workspace/tests")).unwrap();
        symlink("../../precious", stand.path("workspace/tests/deep")).unwrap();
        stand.is_right();

        let stand = Stand::new();
        fs::create_dir_all(stand.path("workspace/tests/deep")).unwrap();
        symlink("../../../precious/x", stand.path("workspace/tests/deep/x")).unwrap();
        stand.is_right();

        let stand = Stand::new();
        fs::write(stand.path("workspace/tests"), "junk").unwrap();
        stand.is_right();

        let stand = Stand::new();
        fs::create_dir_all(stand.path("workspace/tests/deep/x/y")).unwrap();
        for folder in ["workspace/tests/deep", "workspace/tests"] {
            fs::set_permissions(stand.path(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        stand.is_right();
    }

    #[test]
    fn what_was_not_there_is_removed_only_where_it_is() {
        let stand = Stand::new();
        symlink(stand.path("precious"), stand.path("workspace/made")).unwrap();
        stand.put_back("made/x");
        assert_eq!(fs::read_to_string(stand.path("precious/x")).unwrap(), "mine");
        stand.put_back("made");
        assert!(!stand.path("workspace/made").is_symlink());
    }

    #[test]
    fn a_folder_gets_its_permissions_back_and_nothing_outside_is_touched() {
        let stand = Stand::new();
        let deep = stand.path("workspace/tests/deep");
        let put_back = || put_back_folder(&stand.path("workspace"), Path::new("tests/deep"), 0o2750).unwrap();
        let mode = |path: &str| fs::symlink_metadata(stand.path(path)).unwrap().permissions().mode();
        put_back();
        assert_eq!(mode("workspace/tests/deep") & 0o7777, 0o2750);
        for folder in ["workspace/tests/deep", "workspace/tests"] {
            fs::set_permissions(stand.path(folder), fs::Permissions::from_mode(0o000)).unwrap();
        }
        put_back();
        assert_eq!(mode("workspace/tests/deep") & 0o7777, 0o2750);
        let precious = mode("precious");
        fs::remove_dir(&deep).unwrap();
        symlink("../../precious", &deep).unwrap();
        put_back();
        assert!(deep.symlink_metadata().unwrap().is_dir());
        assert_eq!(mode("precious"), precious);
    }

    #[test]
    fn a_link_comes_back_as_a_link() {
        let stand = Stand::new();
        fs::create_dir_all(stand.path("workspace/tests")).unwrap();
        fs::write(stand.path("workspace/tests/link"), "junk").unwrap();
        stand.put_back("tests/link");
        assert_eq!(fs::read_link(stand.path("workspace/tests/link")).unwrap(), Path::new("deep/x"));
    }
}
