//! Writes a file that a user names: a regular file is replaced completely, a device or a pipe is written into.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::RunError;
use crate::paths;
use crate::whole_file::{FileError, write_unnamed};

/// The maximum number of links that are followed; the system's own limit.
const LINKS: usize = 40;

/// Writes a file that a user names. A link is kept, and its target is written. A file that is not regular is
/// written into, like `>` of a shell, and not replaced. The folder of a regular file is made if it does not exist.
///
/// # Errors
/// Returns an error if the file cannot be written. No partial regular file is left.
pub fn write_named(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), RunError> {
    match target(path) {
        Target::Regular(path) => {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(FileError::io("make the folder", folder))?;
            }
            Ok(write_unnamed(&path, write)?)
        }
        Target::Output => into(path, io::stdout().lock(), write),
        Target::Errors => into(path, io::stderr().lock(), write),
        Target::Stream => {
            let file = OpenOptions::new().append(true).open(path).map_err(RunError::io("write", path))?;
            into(path, file, write)
        }
    }
}

/// Returns true if a name is a regular file, or a file that does not exist yet: no device, pipe or open stream.
pub fn is_regular(path: &Path) -> bool {
    matches!(target(path), Target::Regular(_))
}

/// Returns the target of a name's links, which may not exist yet.
pub fn leads_to(path: &Path) -> PathBuf {
    match target(path) {
        Target::Regular(path) => {
            let whole = paths::absolute(Path::new(""), &path);
            // The folder may be reached by a link, and it may not exist yet.
            match (whole.parent().and_then(|folder| folder.canonicalize().ok()), whole.file_name()) {
                (Some(folder), Some(name)) => folder.join(name),
                _ => whole,
            }
        }
        _ => path.to_owned(),
    }
}

/// The target of a name.
enum Target {
    /// A file that is replaced completely, at the end of all links.
    Regular(PathBuf),
    /// Standard output.
    Output,
    /// Standard error.
    Errors,
    /// A device, a pipe, or an open file named by a path in `/proc`. It is appended to, and not replaced.
    Stream,
}

fn target(path: &Path) -> Target {
    let (end, of_a_program) = followed(path);
    let Ok(found) = fs::metadata(path) else {
        // A cycle of links has no target, and none of them may be replaced.
        return if end.is_symlink() { Target::Stream } else { Target::Regular(end) };
    };
    let is = |stream: &dyn AsFd| is_same(&found, stream);
    if found.is_file() && !of_a_program {
        Target::Regular(end)
    } else if is(&io::stdout()) {
        Target::Output
    } else if is(&io::stderr()) {
        Target::Errors
    } else {
        Target::Stream
    }
}

/// Returns the end of all links, and true if one of them was a program's open file: `/dev/stdout` points to one, and
/// replacing it would take the file from that program.
fn followed(path: &Path) -> (PathBuf, bool) {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        if let Some(folder) = path.parent().and_then(|folder| fs::canonicalize(folder).ok())
            && folder.starts_with("/proc")
        {
            return (path, true);
        }
        let Ok(next) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(next);
    }
    (path, false)
}

fn is_same(found: &Metadata, stream: &dyn AsFd) -> bool {
    let open = stream.as_fd().try_clone_to_owned().map(File::from).and_then(|file| file.metadata());
    open.is_ok_and(|open| (open.dev(), open.ino(), open.rdev()) == (found.dev(), found.ino(), found.rdev()))
}

fn into(path: &Path, stream: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), RunError> {
    let mut out = io::BufWriter::with_capacity(64 << 10, stream);
    match write(&mut out).and_then(|()| out.flush()) {
        // A reader that has closed the pipe has read enough, as for standard output.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            let _ = out.into_parts();
            Ok(())
        }
        done => done.map_err(RunError::io("write", path)),
    }
}
