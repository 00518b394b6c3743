//! Opens files in a folder: links are never followed, and removed permissions are restored.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawMode, chmodat, fchmod, fstat, openat, statat};
use rustix::io::Errno;

/// Opens a folder by the engine's own path: links above it and at its end are followed.
pub(super) fn open_own(path: &Path) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    Ok(openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens a folder in another folder, with the permissions to list it and to work in it.
pub(super) fn open_folder(parent: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let parent = parent.as_fd();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match openat(parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) if kind(parent, name)? == FileType::Directory => {
            chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
            openat(parent, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    let mode = Mode::from_raw_mode(fstat(&folder)?.st_mode as RawMode);
    if !mode.contains(Mode::RWXU) {
        // A folder of another user may be listable even if its mode cannot be changed.
        let _ = fchmod(&folder, mode | Mode::RWXU);
    }
    Ok(folder)
}

/// Returns the kind of the file with a name in a folder.
pub(super) fn kind(parent: impl AsFd, name: &OsStr) -> Result<FileType, Errno> {
    let stat = statat(parent.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode as RawMode))
}

/// Opens a file for reading. If it has become a pipe or a link in the meantime, opening it neither blocks nor follows
/// it.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(CWD, path, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a file")) }
}
