//! Detects from errors that the machine has run out of disk space or of open files.

use std::error::Error;
use std::io::{self, ErrorKind};

use rustix::process::{Resource, getrlimit};

/// An exhausted resource of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// The disk cannot be written: full, over a quota, read-only, or beyond this process's limit of file sizes.
    Disk,
    /// No more files can be opened, by this process or on the whole machine.
    OpenFiles,
}

impl Exhausted {
    /// Returns the exhausted resource that caused an error, if there is one.
    pub fn of(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<io::Error>().and_then(Self::of_io) {
                return Some(found);
            }
            next = error.source();
        }
        None
    }

    fn of_io(error: &io::Error) -> Option<Self> {
        use rustix::io::Errno;
        match error.kind() {
            ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::FileTooLarge => Some(Self::Disk),
            _ if matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE)) => Some(Self::OpenFiles),
            _ => error.get_ref().and_then(|inner| Self::of(inner)),
        }
    }
}

/// Returns a hint for the end of an error message; empty unless a limit of this process is reached.
pub fn hint(error: &(dyn Error + 'static)) -> String {
    match Exhausted::of(error) {
        Some(Exhausted::OpenFiles) => {}
        Some(Exhausted::Disk) if is_too_large(error) => {
            let limit = getrlimit(Resource::Fsize).current;
            let limit = limit.map_or_else(String::new, |limit| format!(", which is {limit} bytes"));
            return format!("; raise the limit of file sizes{limit} (ulimit -f)");
        }
        _ => return String::new(),
    }
    let limit = open_files_limit().map_or_else(String::new, |limit| format!(", which is {limit}"));
    format!("; raise the limit of open files{limit} (ulimit -n), or run fewer trials at once (--jobs)")
}

/// Returns true if the cause is a file that would be larger than this process may write.
fn is_too_large(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let io = error.downcast_ref::<io::Error>();
        let inner = io.and_then(io::Error::get_ref);
        if io.is_some_and(|io| io.kind() == ErrorKind::FileTooLarge) || inner.is_some_and(|inner| is_too_large(inner)) {
            return true;
        }
        next = error.source();
    }
    false
}

/// Returns the limit of open files of this process; `None` if there is no limit.
pub fn open_files_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] io::Error);

    #[test]
    fn the_cause_is_found_below_other_errors() {
        let of = |code| io::Error::from_raw_os_error(code);
        for (error, found) in [
            (of(28), Some(Exhausted::Disk)),
            (of(30), Some(Exhausted::Disk)),
            (of(27), Some(Exhausted::Disk)),
            (of(24), Some(Exhausted::OpenFiles)),
            (of(23), Some(Exhausted::OpenFiles)),
            (of(13), None),
            (io::Error::other(Outer(of(28))), Some(Exhausted::Disk)),
            (io::Error::other(Outer(of(24))), Some(Exhausted::OpenFiles)),
            (io::Error::other(of(24)), Some(Exhausted::OpenFiles)),
            (io::Error::other("Too many open files"), None),
        ] {
            assert_eq!(Exhausted::of(&error), found, "{error:?}");
            assert_eq!(hint(&error).contains("ulimit -n"), found == Some(Exhausted::OpenFiles), "{error:?}");
        }
    }
}
