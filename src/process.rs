//! Child processes: each in its own process group and under a supervisor, so that everything that it started can be
//! ended with it.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStdin};
use tokio::time::{sleep, timeout};

use crate::supervisor::Order;
use crate::trace::Exit;

pub mod descriptors;
mod escaped;
pub mod file_size;
mod idle;
mod link;
pub mod memory;
mod output;
mod program;
mod read_buffer;
mod running;
mod start;

use escaped::Origin;
pub use idle::dismiss_all;
use link::Link;
pub use output::{Output, Stream, Tail};
pub use program::{find, not_found};
use running::{LeadersGuard, alive};
pub use running::{continue_stopped, kill_all};
pub use start::{Launch, SpawnError, Stdin};

/// The time between SIGTERM and SIGKILL to a group.
pub const TERM_TO_KILL: Duration = Duration::from_secs(2);

/// The time that the rest of a group has to end by itself after its first process has exited.
const SETTLE: Duration = Duration::from_millis(500);

/// The maximum time in which a supervisor ends everything that its program started; the supervisor itself gives up
/// earlier.
const END: Duration = Duration::from_secs(7);

/// A program and its process group.
pub struct Group {
    /// The supervisor, or the sandbox around it. Without a supervisor, the program itself. Absent only while it is dropped.
    child: Option<Child>,
    pid: Option<Pid>,
    /// The link to the supervisor, if there is one.
    link: Option<Link>,
    pipes: Pipes,
    exit: Option<Exit>,
    origin: Origin,
    /// True if all processes were ended, including those that left the group.
    over: bool,
    /// True if the supervisor did not answer and was killed.
    killed: bool,
}

/// The engine's ends of a program's standard streams.
#[derive(Default)]
pub struct Pipes {
    /// The program's standard input, if it has one.
    pub stdin: Option<ChildStdin>,
    /// The program's standard output and standard error.
    pub output: Output,
}

impl Group {
    /// Takes the engine's ends of the program's standard streams. They can be taken only once.
    pub fn pipes(&mut self) -> Pipes {
        std::mem::take(&mut self.pipes)
    }

    /// Returns the process around everything that the program starts: its supervisor or sandbox, or the program itself.
    pub fn root(&self) -> Option<Pid> {
        self.pid
    }

    /// Returns true if the supervisor was ended or stopped from outside while its program ran.
    pub fn lost_its_supervisor(&self) -> bool {
        self.link.as_ref().is_some_and(|link| (link.closed || self.killed) && link.done.is_none())
    }

    /// Waits for the program itself to exit. May be called repeatedly, and dropped before it is done.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit = match &mut self.link {
            Some(link) => loop {
                if let Some(exit) = link.exit {
                    break exit;
                }
                if link.closed {
                    // Without its supervisor, it is unknown how the program ends.
                    break Exit { code: None, signal: None };
                }
                link.hear().await;
            },
            None => match &mut self.child {
                Some(child) => child.wait().await.map_or(Exit { code: None, signal: None }, exit_of),
                None => Exit { code: None, signal: None },
            },
        };
        self.exit = Some(exit);
        exit
    }

    /// Returns how the program ended, if it has.
    pub fn exited(&self) -> Option<Exit> {
        self.exit
    }

    /// Sends a signal to the whole group. Returns true if there was a process to receive it.
    fn signal(&self, order: Order) -> bool {
        let signal = if order == Order::Term { Signal::TERM } else { Signal::KILL };
        match &self.link {
            Some(link) => link.order(order),
            None => self.pid.is_some_and(|pid| rustix::process::kill_process_group(pid, signal).is_ok()),
        }
    }

    /// Returns true if any process of the group is alive.
    fn is_alive(&mut self) -> bool {
        if let Some(link) = &mut self.link {
            link.catch_up();
            return link.group_is_alive();
        }
        self.pid.is_some_and(|pid| {
            if self.exit.is_some() {
                escaped::reap_group(pid);
            }
            rustix::process::test_kill_process_group(pid).is_ok()
        })
    }

    /// Returns true if the program has a supervisor, which finds everything that the program started.
    pub fn is_supervised(&self) -> bool {
        self.link.is_some()
    }

    /// Waits until all processes of the program have ended, or until it is unknown whether any remain.
    pub async fn until_done(&mut self) {
        if let Some(link) = &mut self.link {
            while link.done.is_none() && !link.closed {
                link.hear().await;
            }
        }
    }

    /// Ends all processes that have left the group. Returns their number.
    pub async fn end_escaped(&mut self) -> usize {
        let mut ended = 0;
        if let Some(link) = &mut self.link {
            // A supervisor of which nothing is left has reported this with the exit.
            link.catch_up();
            if link.done.is_none() {
                link.order(Order::End);
            }
            let done = timeout(END, async {
                while !link.closed && link.done.is_none() {
                    link.hear().await;
                }
            });
            let _ = done.await;
            if let Some(ended) = link.done {
                self.over = true;
                if let Some(child) = self.child.as_mut().filter(|_| !link.free) {
                    let _ = timeout(END, child.wait()).await;
                }
                return ended;
            }
            ended = 1;
            self.kill_supervisor();
        }
        let origin = self.origin.clone();
        let found = tokio::task::spawn_blocking(move || escaped::end(&origin, || LeadersGuard(alive()))).await;
        self.over = true;
        found.unwrap_or(0).max(ended)
    }

    /// Kills a supervisor that no longer answers. Its remaining processes become children of this process.
    fn kill_supervisor(&mut self) {
        self.killed = true;
        if let Some(child) = &mut self.child {
            let _ = child.start_kill();
        }
        if let Some(pid) = self.pid {
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    }

    /// Waits a moment for the remaining processes of a group to end by themselves, as an agent's children do when
    /// their pipes are closed.
    pub async fn settle(&mut self) {
        self.wait_gone(SETTLE).await;
    }

    /// Leaves processes that leave the group to the code that ends the trial's other programs.
    pub fn leave_escaped(&mut self) {
        self.over = true;
    }

    /// Ends the group: SIGTERM, [`TERM_TO_KILL`], SIGKILL. Calls `told` with each signal that is sent.
    pub async fn end(&mut self, mut told: impl FnMut(&'static str)) -> Option<Exit> {
        if !self.gone() {
            told("SIGTERM");
            self.signal(Order::Term);
            self.wait_gone(TERM_TO_KILL).await;
        }
        self.kill(told).await
    }

    /// Ends the rest of the group at once.
    pub async fn kill(&mut self, mut told: impl FnMut(&'static str)) -> Option<Exit> {
        if !self.gone() {
            told("SIGKILL");
            self.signal(Order::Kill);
            self.wait_gone(Duration::from_millis(500)).await;
        }
        // The child itself is a zombie until its exit is collected.
        let _ = timeout(Duration::from_millis(500), self.wait()).await;
        self.exit
    }

    fn gone(&mut self) -> bool {
        let alive = self.is_alive();
        if let Some(link) = &self.link {
            self.exit = self.exit.or(link.exit);
        }
        self.exit.is_some() && !alive
    }

    async fn wait_gone(&mut self, limit: Duration) {
        let _ = timeout(limit, async {
            self.wait().await;
            if let Some(link) = &mut self.link {
                while link.group_is_alive() {
                    link.hear().await;
                }
                return;
            }
            let mut pause = Duration::from_millis(1);
            while self.is_alive() {
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        })
        .await;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The agent's processes must not outlive the engine's task, however it ends.
        if let Some(link) = &mut self.link
            && !self.over
        {
            link.order(Order::End);
            link.hear_until(Instant::now() + END, |link| link.done.is_some());
            self.over = link.done.is_some();
            if !self.over {
                self.kill_supervisor();
            }
        } else if !self.over && (self.exit.is_none() || self.is_alive()) {
            self.signal(Order::Kill);
        }
        if !self.over {
            escaped::end(&self.origin, || LeadersGuard(alive()));
        }
        let free = self.link.take().filter(|link| link.free && !link.closed);
        if let (Some(link), Some(pid), Some(child)) = (free, self.pid, self.child.take()) {
            return idle::keep(child, pid, link);
        }
        alive().retain(|leader| Some(leader.pid) != self.pid);
        if self.origin.sandboxed {
            escaped::reap_orphans(|| LeadersGuard(alive()));
        }
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    Exit { code: status.code(), signal: status.signal() }
}

/// The path of this program, which supervises other programs.
static SUPERVISOR: OnceLock<PathBuf> = OnceLock::new();

/// True if a supervisor could not adopt its program's orphans, or if programs run without a supervisor.
static UNCERTAIN: AtomicBool = AtomicBool::new(cfg!(not(target_os = "linux")));

/// Sets the program that supervises every program from now on.
pub fn supervise_with(program: &Path) {
    if cfg!(target_os = "linux") {
        let _ = SUPERVISOR.set(program.to_owned());
    }
}

/// Returns the program that supervises others, if there is one.
pub fn supervisor() -> Option<&'static Path> {
    SUPERVISOR.get().map(PathBuf::as_path)
}

/// Returns true if processes that left their group may have outlived a trial without being found.
pub fn may_have_missed_some() -> bool {
    UNCERTAIN.load(Ordering::Relaxed)
}

/// Returns true if the search for processes that left their group failed because no file descriptor was left.
pub fn could_not_look() -> bool {
    escaped::could_not_look()
}
