//! Reads regular files, and refuses other file types: reading a pipe or a device might never end.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file for reading. Links are followed.
///
/// # Errors
/// Returns an error if the file cannot be opened, or is not a regular file. A pipe without a writer is refused at
/// once.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    open_with(path.as_ref(), OFlags::empty())
}

/// Opens a file that the engine wrote, for reading. The engine makes no links among its files, so a link there is the work
/// of another program, and might lead to any file of the user.
///
/// # Errors
/// Returns the errors of [`open`], and an error if the file is a link.
pub fn open_own(path: impl AsRef<Path>) -> io::Result<File> {
    open_with(path.as_ref(), OFlags::NOFOLLOW)
}

fn open_with(path: &Path, more: OFlags) -> io::Result<File> {
    // Without `NONBLOCK`, opening a pipe waits for a writer.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | more;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::LOOP) if path.is_symlink() && more.contains(OFlags::NOFOLLOW) => {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is a link, which evals did not make"));
        }
        opened => File::from(opened?),
    };
    checked(file)
}

/// Opens a file of the engine for writing, and makes the file if it does not exist.
///
/// # Errors
/// Returns an error if the file cannot be opened, is a link, or is not a regular file. A pipe is refused at once.
pub fn create_own(path: impl AsRef<Path>, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    checked(options.create(true).truncate(false).custom_flags(flags.cast_signed()).open(path)?)
}

fn checked(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "this is a folder, not a file"));
    }
    if !kind.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "this is a pipe, a socket or a device, not a regular file",
        ));
    }
    Ok(file)
}

/// Reads a complete regular file.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn read(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a complete file that the engine wrote.
///
/// # Errors
/// Returns the errors of [`open_own`].
pub fn read_own(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_own(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns the BLAKE3 digest of the rest of a file, which may be larger than the memory.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn digest(mut file: File) -> io::Result<blake3::Hash> {
    // Most files are small, and a large buffer would be cleared for each of them.
    const SMALL: usize = 4 << 10;
    const LARGE: usize = 64 << 10;
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; SMALL]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            length => {
                hasher.update(&piece[..length]);
                if length == piece.len() && length < LARGE {
                    piece = vec![0; LARGE];
                }
            }
        }
    }
}

/// The byte order mark that some editors write at the start of a UTF-8 file. It does not belong to the text.
pub const BOM: char = '\u{feff}';

/// Reads a complete regular file as text.
/// A byte order mark at its start is left out.
///
/// # Errors
/// Returns the errors of [`open`], and an error if the file is not UTF-8.
pub fn read_to_string(path: impl AsRef<Path>) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(without_bom(text))
}

/// Returns the text without a byte order mark at its start.
pub fn without_bom(mut text: String) -> String {
    if text.starts_with(BOM) {
        text.drain(..BOM.len_utf8());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_a_files_place_is_refused_at_once() {
        let root = tempfile::tempdir().unwrap();
        let (file, pipe) = (root.path().join("file"), root.path().join("pipe"));
        std::fs::write(&file, "text").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read_to_string(&file).unwrap(), "text");
        assert_eq!(read(&pipe).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(read(root.path()).unwrap_err().kind(), io::ErrorKind::IsADirectory);
        assert_eq!(open("/dev/null").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link).unwrap(), b"text");
        assert_eq!(read_own(&file).unwrap(), b"text");
        assert_eq!(read_own(&link).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let dangling = root.path().join("dangling");
        std::os::unix::fs::symlink("made", &dangling).unwrap();
        let open = |path: &Path| create_own(path, OpenOptions::new().append(true));
        for path in [&link, &dangling, &pipe] {
            open(path).unwrap_err();
        }
        assert!(!root.path().join("made").exists());
        open(&file).unwrap();
        open(&root.path().join("new")).unwrap();
    }
}
