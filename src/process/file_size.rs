//! Lets writes beyond the limit of file sizes (`ulimit -f`) fail with an error instead of ending `evals`.

use std::io;

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};

use super::descriptors::MIN_OPEN_FILES;
use crate::resources::open_files_limit;

/// Handles SIGXFSZ, which by default ends `evals` without a message. Started programs have the default again. Does
/// nothing if the limit of open files is too low to run a trial, because tokio panics if it has no descriptor for a
/// handler.
///
/// # Errors
/// Returns an error if the signal cannot be handled.
pub fn survive_limit() -> io::Result<()> {
    if open_files_limit().is_some_and(|limit| limit < MIN_OPEN_FILES) {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    // The handler stays when the listener is dropped. No listener is needed, because the write itself fails.
    signal(SignalKind::from_raw(Signal::XFSZ.as_raw())).map(drop)
}
