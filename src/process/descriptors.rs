//! The open files of this process: they are not inherited by children, their limit is raised, and the limit bounds
//! the number of concurrent trials.

use std::fs::File;
use std::io;
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::resources::{Exhausted, open_files_limit};

/// The number of descriptors of a trial: its agent's pipes and supervisor, its logs, its graders, and a few
/// connections.
const OF_A_TRIAL: u64 = 16;
/// The number of descriptors of the engine itself.
const OF_THE_ENGINE: u64 = 64;

/// The limit below which not even one trial can run.
pub const MIN_OPEN_FILES: u64 = 32;
/// The number of descriptors held in reserve: for a folder of `/proc`, and a file in it.
const RESERVED: usize = 2;

/// The reserve. It is closed during work that must be done even if no descriptor is left.
static RESERVE: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// The soft limit with which this process was started.
static ORIGINAL: OnceLock<Option<u64>> = OnceLock::new();

/// Marks all inherited descriptors above standard error as close-on-exec, so that no child inherits them.
pub fn close_on_exec() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// Raises the soft limit of open files to the hard limit, for this process alone: its children get the original limit.
pub fn raise_limit() {
    ORIGINAL.get_or_init(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let raised = current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
        current.filter(|_| raised)
    });
}

/// Returns the soft limit for children, or `None` if this process has not raised its own.
pub fn original() -> Option<u64> {
    ORIGINAL.get().copied().flatten()
}

/// Does work that must be done even if no descriptor is left, such as searching for processes to end. The reserve is
/// closed if the work needs it.
///
/// # Errors
/// Returns an error if the work fails, even with the reserve if it lacked descriptors.
pub fn with_reserve<T>(work: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut reserve = RESERVE.lock().unwrap_or_else(PoisonError::into_inner);
    let done = match work() {
        Err(error) if Exhausted::of(&error) == Some(Exhausted::OpenFiles) => {
            reserve.clear();
            work()
        }
        done => done,
    };
    while reserve.len() < RESERVED {
        let Ok(file) = File::open("/dev/null") else { break };
        reserve.push(file);
    }
    done
}

/// Returns how many trials may run at once, and the limit of open files. `None` if there is no limit.
pub fn most_trials() -> Option<(usize, u64)> {
    let limit = open_files_limit()?;
    Some((trials_within(limit), limit))
}

fn trials_within(limit: u64) -> usize {
    let trials = limit.saturating_sub(OF_THE_ENGINE) / OF_A_TRIAL;
    usize::try_from(trials).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_leaves_room_for_one_trial() {
        assert_eq!([0, 64, 80, 96, 1024].map(trials_within), [1, 1, 1, 2, 60]);
    }
}
