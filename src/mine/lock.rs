//! Locks the folder of the cases, so that two processes of `evals mine` do not write into it at the same time.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::MineError;
use crate::whole_file::FileError;

/// The timeout for the lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// Locks a folder until the file is closed. The end of this process closes it.
///
/// # Errors
/// Returns an error if another `evals mine` has locked the folder, or if the folder cannot be opened.
pub(super) async fn lock(folder: &Path) -> Result<File, MineError> {
    let file = File::open(folder).map_err(FileError::io("open", folder))?;
    let begun = Instant::now();
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            // Some file systems of networks have no locks for folders.
            Ok(()) | Err(_) => return Ok(file),
        }
        // A program that another `evals mine` was just starting when it was killed holds the lock until it has begun.
        if begun.elapsed() > PATIENCE {
            return Err(MineError::Busy(folder.to_owned()));
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
