//! The running groups of this process: continues those that were stopped, and ends all of them at once.

use std::sync::{Mutex, MutexGuard};

use rustix::process::{Signal, WaitId, WaitIdOptions, waitid};

use super::escaped::{self, Leader};

/// The running groups. They are ended if this program must end at once.
static ALIVE: Mutex<Vec<Leader>> = Mutex::new(Vec::new());

pub(super) fn alive() -> MutexGuard<'static, Vec<Leader>> {
    ALIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The running groups. None can be added while this value exists.
pub(super) struct LeadersGuard(pub(super) MutexGuard<'static, Vec<Leader>>);

impl AsRef<[Leader]> for LeadersGuard {
    fn as_ref(&self) -> &[Leader] {
        &self.0
    }
}

/// Continues supervisors that agents stop, as long as it is polled. Their state is looked up when the system says that the
/// state of a child has changed.
pub async fn continue_stopped() {
    let Ok(mut changes) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::child()) else { return };
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    while changes.recv().await.is_some() {
        // One call finds out that there is none, as a rule.
        if !matches!(waitid(WaitId::All, options | WaitIdOptions::NOWAIT), Ok(Some(_))) {
            continue;
        }
        for leader in alive().iter() {
            if matches!(waitid(WaitId::Pid(leader.pid), options), Ok(Some(_))) {
                let _ = rustix::process::kill_process(leader.pid, Signal::CONT);
            }
        }
    }
}

/// Ends every group at once, and all processes that have left their group.
pub fn kill_all() {
    // The lock is never released, so that no further program can be started.
    let alive = std::mem::ManuallyDrop::new(alive());
    for leader in alive.iter() {
        let _ = rustix::process::kill_process_group(leader.pid, Signal::KILL);
    }
    // Processes that lose their supervisor become children of this process, and are found then.
    escaped::end_all();
}
