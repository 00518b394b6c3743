//! Supervisors whose programs did only a little and left nothing behind. Each can start another program, which costs
//! less than starting a supervisor.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::process::Child;
use tokio::runtime::{Handle, Id};
use tokio::time::timeout;

use super::link::Link;
use super::running::alive;

/// The maximum number of supervisors that wait.
const MAX_IDLE_SUPERVISORS: usize = 32;

/// The maximum time in which a supervisor ends that has nothing to do.
const END: Duration = Duration::from_secs(1);

/// A supervisor without a program. It stays among the running groups, so that a search for orphans does not take it for
/// one.
pub(super) struct Idle {
    pub child: Child,
    pub pid: Pid,
    pub link: Link,
    /// The runtime that the child and the link belong to.
    runtime: Option<Id>,
}

static WAITING: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

fn waiting() -> MutexGuard<'static, Vec<Idle>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

fn runtime() -> Option<Id> {
    Handle::try_current().ok().map(|handle| handle.id())
}

/// Keeps a supervisor for another program.
pub(super) fn keep(child: Child, pid: Pid, link: Link) {
    let idle = Idle { child, pid, link: link.again(), runtime: runtime() };
    works_in(pid, Path::new(""));
    let mut waiting = waiting();
    if waiting.len() < MAX_IDLE_SUPERVISORS {
        waiting.push(idle);
    } else {
        drop(waiting);
        idle.dismiss();
    }
}

/// Returns a supervisor for a program in this folder, if one waits.
pub(super) fn take(folder: &Path) -> Option<Idle> {
    loop {
        let mut idle = waiting().pop()?;
        idle.link.catch_up();
        if !idle.link.closed && idle.runtime == runtime() {
            // An agent of the same user may have stopped it.
            let _ = rustix::process::kill_process(idle.pid, Signal::CONT);
            works_in(idle.pid, folder);
            return Some(idle);
        }
        idle.dismiss();
    }
}

fn works_in(pid: Pid, folder: &Path) {
    if let Some(leader) = alive().iter_mut().find(|leader| leader.pid == pid) {
        leader.folder = PathBuf::from(folder);
    }
}

impl Idle {
    /// Lets the supervisor end: it does so when its socket is closed.
    pub fn dismiss(self) {
        alive().retain(|leader| leader.pid != self.pid);
    }
}

/// Ends the supervisors that wait.
pub async fn dismiss_all() {
    let all = std::mem::take(&mut *waiting());
    let ending: Vec<_> = all.into_iter().map(|Idle { child, pid, .. }| (child, pid)).collect();
    for (mut child, pid) in ending {
        let _ = timeout(END, child.wait()).await;
        alive().retain(|leader| leader.pid != pid);
    }
}
