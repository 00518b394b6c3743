//! Child processes: each in a group of its own, so that everything it started can be ended with it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use crate::trace::{ErrorCategory, Exit};

mod escaped;

use escaped::{Leader, Origin};

/// How long a group has between SIGTERM and SIGKILL.
pub const TERM_TO_KILL: Duration = Duration::from_secs(2);

/// How long what is left of a group whose first process has exited may take to end by itself.
const SETTLE: Duration = Duration::from_millis(500);

/// A child process and its group.
pub struct Group {
    child: Child,
    pid: Option<Pid>,
    exit: Option<Exit>,
    origin: Origin,
    /// Whether everything was ended, what left the group included.
    over: bool,
}

/// The groups that are alive, so that they can be ended when the program ends at once.
static ALIVE: Mutex<Vec<Leader>> = Mutex::new(Vec::new());

fn alive() -> MutexGuard<'static, Vec<Leader>> {
    ALIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The groups that are alive; none can be added while this is held.
struct Held(MutexGuard<'static, Vec<Leader>>);

impl AsRef<[Leader]> for Held {
    fn as_ref(&self) -> &[Leader] {
        &self.0
    }
}

/// Ends every group at once, and whatever has left one.
pub fn kill_all() {
    // This is not let go: nothing may be started any more.
    let alive = std::mem::ManuallyDrop::new(alive());
    for leader in alive.iter() {
        let _ = rustix::process::kill_process_group(leader.pid, Signal::KILL);
    }
    escaped::end_all();
}

/// Why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SpawnError {
    /// `not_installed` or `start_failed`.
    pub category: ErrorCategory,
    /// What failed, with which value.
    pub message: String,
}

/// What standard input the child gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// None.
    Null,
    /// A pipe.
    Piped,
}

impl Group {
    /// Starts a program in a group of its own. Nothing of the engine's environment is inherited.
    ///
    /// # Errors
    /// The program was not found, or could not be started.
    pub fn spawn(
        command: &[String],
        folder: &Path,
        env: &BTreeMap<String, String>,
        stdin: Stdin,
    ) -> Result<Self, SpawnError> {
        let stdin = if stdin == Stdin::Piped { Stdio::piped() } else { Stdio::null() };
        let mut group = Self::start(command, folder, folder, env, [stdin, Stdio::piped(), Stdio::piped()])?;
        let child = &group.child;
        let ends = [
            child.stdin.as_ref().and_then(escaped::pipe),
            child.stdout.as_ref().and_then(escaped::pipe),
            child.stderr.as_ref().and_then(escaped::pipe),
        ];
        group.origin.pipes = ends.into_iter().flatten().collect();
        Ok(group)
    }

    /// Starts a program of a trial in a folder of its workspace, without input and with one pipe for all that it
    /// prints, so that its lines stay in order.
    ///
    /// # Errors
    /// The program was not found, or could not be started.
    pub fn spawn_in_one_pipe(
        command: &[String],
        workspace: &Path,
        folder: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<(Self, ChildStdout), SpawnError> {
        let failed = |error: io::Error| SpawnError {
            category: ErrorCategory::StartFailed,
            message: format!("no pipe could be made: {error}"),
        };
        let (output, end) = io::pipe().map_err(failed)?;
        let other_end = end.try_clone().map_err(failed)?;
        let stdio = [Stdio::null(), Stdio::from(end), Stdio::from(other_end)];
        let mut group = Self::start(command, workspace, folder, env, stdio)?;
        group.origin.pipes = escaped::pipe(&output).into_iter().collect();
        let output = std::process::ChildStdout::from(OwnedFd::from(output));
        Ok((group, ChildStdout::from_std(output).map_err(failed)?))
    }

    /// Starts a program; `workspace` is the folder by which it is known.
    fn start(
        command: &[String],
        workspace: &Path,
        folder: &Path,
        env: &BTreeMap<String, String>,
        [stdin, stdout, stderr]: [Stdio; 3],
    ) -> Result<Self, SpawnError> {
        let failed = |category, message| SpawnError { category, message };
        let Some((program, args)) = command.split_first() else {
            return Err(failed(ErrorCategory::StartFailed, "the command is empty".to_owned()));
        };
        let Some(path) = find(program, folder, env.get("PATH").map(String::as_str)) else {
            return Err(failed(ErrorCategory::NotInstalled, format!("program `{program}` was not found on PATH")));
        };
        escaped::adopt_orphans();
        let mut command = Command::new(path);
        command
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs(env)
            .process_group(0)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr)
            .kill_on_drop(true);
        // Held until the child is known: whoever looks for orphans must not take it for one.
        let mut alive = alive();
        let child = command.spawn().map_err(|error| {
            failed(ErrorCategory::StartFailed, format!("program `{program}` could not be started: {error}"))
        })?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        alive.extend(pid.map(|pid| Leader { pid, folder: workspace.to_owned() }));
        drop(alive);
        // A trial's home stands beside its workspace, in a folder of its own; any other home is not its alone.
        let own = |home: &&String| {
            let trial = workspace.parent().filter(|trial| trial.is_absolute() && trial.components().count() > 2);
            trial.is_some() && Path::new(home).parent() == trial
        };
        let origin = Origin {
            home: env.get("HOME").filter(own).cloned(),
            leader: pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
            folder: workspace.to_owned(),
            pipes: std::collections::HashSet::new(),
        };
        Ok(Self { child, pid, exit: None, origin, over: false })
    }

    /// The child, to take its pipes.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the child itself to exit. May be called again, and dropped before it is done.
    pub async fn wait(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let exit = match self.child.wait().await {
            Ok(status) => exit_of(status),
            Err(_) => Exit { code: None, signal: None },
        };
        self.exit = Some(exit);
        exit
    }

    /// How the child ended, if it has.
    pub fn exited(&self) -> Option<Exit> {
        self.exit
    }

    /// Sends a signal to the whole group. Answers whether anything was there to get it.
    pub fn signal(&self, signal: Signal) -> bool {
        self.pid.is_some_and(|pid| rustix::process::kill_process_group(pid, signal).is_ok())
    }

    /// Whether any process of the group is alive.
    pub fn is_alive(&self) -> bool {
        self.pid.is_some_and(|pid| {
            if self.exit.is_some() {
                escaped::reap_group(pid);
            }
            rustix::process::test_kill_process_group(pid).is_ok()
        })
    }

    /// Ends whatever has left the group. Answers how many processes there were.
    pub async fn end_escaped(&mut self) -> usize {
        let origin = self.origin.clone();
        let ended = tokio::task::spawn_blocking(move || escaped::end(&origin, || Held(alive()))).await;
        self.over = true;
        ended.unwrap_or(0)
    }

    /// Gives what an agent that has exited leaves in its group a moment to end by itself, as its children do when
    /// their pipes are closed.
    pub async fn settle(&mut self) {
        self.wait_gone(SETTLE).await;
    }

    /// What leaves the group is left to whoever ends the trial's other programs.
    pub fn leave_escaped(&mut self) {
        self.over = true;
    }

    /// Ends the group: SIGTERM, [`TERM_TO_KILL`], SIGKILL. Tells each signal that it sends.
    pub async fn end(&mut self, mut told: impl FnMut(&'static str)) -> Option<Exit> {
        if !self.gone() {
            told("SIGTERM");
            self.signal(Signal::TERM);
            self.wait_gone(TERM_TO_KILL).await;
        }
        self.kill(told).await
    }

    /// Ends at once whatever is left of the group.
    pub async fn kill(&mut self, mut told: impl FnMut(&'static str)) -> Option<Exit> {
        if !self.gone() {
            told("SIGKILL");
            self.signal(Signal::KILL);
            self.wait_gone(Duration::from_millis(500)).await;
        }
        // The child itself is a zombie until it is waited for.
        let _ = timeout(Duration::from_millis(500), self.wait()).await;
        self.exit
    }

    fn gone(&self) -> bool {
        self.exit.is_some() && !self.is_alive()
    }

    async fn wait_gone(&mut self, limit: Duration) {
        let _ = timeout(limit, async {
            self.wait().await;
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
        // Whatever happens to the engine's own task, the agent's processes do not outlive it.
        if self.exit.is_none() || self.is_alive() {
            self.signal(Signal::KILL);
        }
        if !self.over {
            escaped::end(&self.origin, || Held(alive()));
        }
        alive().retain(|leader| Some(leader.pid) != self.pid);
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    Exit { code: status.code(), signal: status.signal() }
}

/// The file that a program's name means: a path is taken from the folder, a bare name is looked for on `PATH`.
pub fn find(program: &str, folder: &Path, path: Option<&str>) -> Option<std::path::PathBuf> {
    let runs = |file: &Path| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        let file = folder.join(program);
        return file.exists().then_some(file);
    }
    std::env::split_paths(path.unwrap_or("/usr/local/bin:/usr/bin:/bin"))
        .map(|dir| dir.join(program))
        .find(|file| runs(file))
}

/// Reads what is left of a pipe, but no longer than this after the last byte.
///
/// # Errors
/// Reading failed.
pub async fn read_rest(
    pipe: &mut (impl tokio::io::AsyncRead + Unpin),
    silence: Duration,
    mut each: impl FnMut(&[u8]),
) -> io::Result<()> {
    use tokio::io::AsyncReadExt;
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read) = timeout(silence, pipe.read(&mut buffer)).await {
        match read? {
            0 => break,
            n => each(&buffer[..n]),
        }
    }
    Ok(())
}
