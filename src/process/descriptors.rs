//! Open files of this process: none is inherited by a child, the limit is raised, and it bounds how many trials run at once.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors of a trial: its agent's pipes and supervisor, its logs, its graders, and a few connections.
const OF_A_TRIAL: u64 = 16;
/// Descriptors of the engine itself.
const OF_THE_ENGINE: u64 = 64;

/// The soft limit with which this process was started.
static ORIGINAL: OnceLock<Option<u64>> = OnceLock::new();

/// Marks everything above standard error that whoever started this process left open: no child inherits it.
pub fn close_on_exec() {
    close_fds::set_fds_cloexec(3, &[]);
}

/// Raises the soft limit to the hard one, for this process alone: its children get the one it was started with.
pub fn raise_limit() {
    ORIGINAL.get_or_init(|| {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        let raised = current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
        current.filter(|_| raised)
    });
}

/// The soft limit that children get; `None` if this process has kept its own.
pub fn original() -> Option<u64> {
    ORIGINAL.get().copied().flatten()
}

/// How many trials may run at once with the limit as it is; `None` if there is no limit.
pub fn most_trials() -> Option<(usize, u64)> {
    let limit = getrlimit(Resource::Nofile).current?;
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
