//! Child processes: each in its own process group and under a supervisor, so that everything that it started can be
//! ended with it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

use crate::project;
use crate::resources::hint;
use crate::supervisor::{self, Order, Request};
use crate::trace::{ErrorCategory, Exit};

pub mod descriptors;
mod escaped;
pub mod file_size;
mod idle;
mod link;

use escaped::{Leader, Origin};
use idle::Idle;
pub use idle::dismiss_all;
use link::Link;

/// The time between SIGTERM and SIGKILL to a group.
pub const TERM_TO_KILL: Duration = Duration::from_secs(2);

/// The time that the rest of a group has to end by itself after its first process has exited.
const SETTLE: Duration = Duration::from_millis(500);

/// The maximum time in which a supervisor starts its program.
const START: Duration = Duration::from_secs(60);

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
    /// The program's standard output.
    pub stdout: Option<ChildStdout>,
    /// The program's standard error.
    pub stderr: Option<ChildStderr>,
}

/// A command line, ready to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// The arguments of a sandbox around the supervisor, up to the command. Empty if there is no sandbox.
    pub around: Vec<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The folders of this machine that are visible in that sandbox. Empty if there is none.
    pub seen: Vec<PathBuf>,
}

impl From<Vec<String>> for Launch {
    fn from(command: Vec<String>) -> Self {
        Self { command, ..Self::default() }
    }
}

impl Launch {
    /// Returns the program, without its sandbox and supervisor.
    pub fn program(&self) -> Option<&str> {
        self.command.first().map(String::as_str)
    }
}

/// The path of this program, which supervises other programs.
static SUPERVISOR: OnceLock<PathBuf> = OnceLock::new();

/// Set if a supervisor could not adopt its program's orphans, or if programs run without a supervisor.
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

/// The running groups. They are ended if this program must end at once.
static ALIVE: Mutex<Vec<Leader>> = Mutex::new(Vec::new());

fn alive() -> MutexGuard<'static, Vec<Leader>> {
    ALIVE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The running groups. None can be added while this value exists.
struct LeadersGuard(MutexGuard<'static, Vec<Leader>>);

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

/// Returns the way out if a file may not be executed, which is usually a script that was not made executable.
fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; make the file executable with `chmod +x`, or name the program that runs it first, as in `command: [python3, …]`"
        }
        _ => "",
    }
}

/// The reason why a program could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SpawnError {
    /// `not_installed` or `start_failed`.
    pub category: ErrorCategory,
    /// The failure, with the value that caused it.
    pub message: String,
}

/// The standard input of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// No standard input.
    Null,
    /// A pipe.
    Piped,
}

impl Group {
    /// Starts a program in a new process group. The engine's environment is not inherited.
    ///
    /// # Errors
    /// Returns an error if the program is not found, or cannot be started.
    pub async fn spawn(
        launch: &Launch,
        folder: &Path,
        env: &BTreeMap<String, String>,
        stdin: Stdin,
    ) -> Result<Self, SpawnError> {
        let (input, own_input) = match stdin {
            Stdin::Piped => {
                let (end, own) = io::pipe().map_err(no_pipe)?;
                (OwnedFd::from(end), Some(std::process::ChildStdin::from(OwnedFd::from(own))))
            }
            Stdin::Null => (null()?, None),
        };
        let (own_output, output) = io::pipe().map_err(no_pipe)?;
        let (own_errors, errors) = io::pipe().map_err(no_pipe)?;
        let ends: Vec<PathBuf> =
            [own_input.as_ref().and_then(escaped::pipe), escaped::pipe(&own_output), escaped::pipe(&own_errors)]
                .into_iter()
                .flatten()
                .collect();
        let around = errors.try_clone().map_err(no_pipe)?.into();
        let streams = Streams { stdin: input, stdout: output.into(), stderr: errors.into(), around };
        let (output, errors) = (OwnedFd::from(own_output), OwnedFd::from(own_errors));
        let pipes = Pipes {
            stdin: own_input.map(ChildStdin::from_std).transpose().map_err(no_pipe)?,
            stdout: Some(ChildStdout::from_std(output.into()).map_err(no_pipe)?),
            stderr: Some(ChildStderr::from_std(errors.into()).map_err(no_pipe)?),
        };
        Self::start(launch, folder, folder, env, streams, pipes, ends).await
    }

    /// Starts a program of a trial in a folder of its workspace, without input and with one pipe for standard output
    /// and standard error, so that the lines stay in order.
    ///
    /// # Errors
    /// Returns an error if the program is not found, or cannot be started.
    pub async fn spawn_in_one_pipe(
        launch: &Launch,
        workspace: &Path,
        folder: &Path,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, SpawnError> {
        let (own_output, output) = io::pipe().map_err(no_pipe)?;
        let errors = output.try_clone().map_err(no_pipe)?.into();
        let ends = escaped::pipe(&own_output).into_iter().collect();
        let streams = Streams { stdin: null()?, stdout: output.into(), stderr: errors, around: null()? };
        let output = std::process::ChildStdout::from(OwnedFd::from(own_output));
        let stdout = Some(ChildStdout::from_std(output).map_err(no_pipe)?);
        Self::start(launch, workspace, folder, env, streams, Pipes { stdout, ..Pipes::default() }, ends).await
    }

    /// Starts a program; its processes are recognised by the folder `workspace`.
    async fn start(
        launch: &Launch,
        workspace: &Path,
        folder: &Path,
        env: &BTreeMap<String, String>,
        streams: Streams,
        pipes: Pipes,
        ends: Vec<PathBuf>,
    ) -> Result<Self, SpawnError> {
        let failed = |category, message| SpawnError { category, message };
        let Some(program) = launch.program() else {
            return Err(failed(ErrorCategory::StartFailed, "the command is empty".to_owned()));
        };
        let first = launch.around.first().map_or(program, String::as_str);
        let Some(path) = find(first, folder, env.get("PATH").map(String::as_str)) else {
            return Err(failed(ErrorCategory::NotInstalled, not_found(first, folder)));
        };
        let cannot = |error: io::Error| {
            failed(
                ErrorCategory::StartFailed,
                format!("program `{program}` could not be started: {error}{}{}", hint(&error), way_out(&error)),
            )
        };
        escaped::adopt_orphans();
        // A program in a sandbox has its supervisor there.
        let arguments = &launch.command[1..];
        let request = Request { folder, program: &path, arguments, env };
        let outside = launch.around.is_empty() && supervisor().is_some();
        let message = outside.then(|| request.message()).flatten();
        let waiting = match &message {
            Some(message) => begin_again(workspace, &streams, message).await,
            None => None,
        };
        let (child, pid, mut link, begun) = if let Some((Idle { child, pid, link, .. }, begun)) = waiting {
            // Closes the program's ends of the pipes, so that the end of each pipe is seen.
            drop(streams);
            (child, Some(pid), Some(link), Some(begun))
        } else {
            let (mut command, link) = command(launch, &path, streams, message.as_deref()).map_err(cannot)?;
            command.env_clear();
            if message.is_none() {
                command.current_dir(folder).envs(env);
            }
            // Locked until the child is registered, so that a search for orphans does not take it for one.
            let mut alive = alive();
            let child = command.spawn().map_err(cannot)?;
            let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            alive.extend(pid.map(|pid| Leader { pid, folder: workspace.to_owned() }));
            (child, pid, link, None)
        };
        // A trial's home is beside its workspace, in the trial's folder. Any other home may be shared.
        let own = |home: &&String| {
            let trial = workspace.parent().filter(|trial| trial.is_absolute() && trial.components().count() > 2);
            trial.is_some() && Path::new(home).parent() == trial
        };
        let origin = Origin {
            home: env.get("HOME").filter(own).cloned(),
            leader: pid.map_or(0, |pid| pid.as_raw_nonzero().get()),
            folder: workspace.to_owned(),
            pipes: ends.into_iter().collect(),
            supervised: link.is_some(),
            sandboxed: !launch.around.is_empty(),
        };
        let started = match (begun, &mut link) {
            (Some(begun), _) => begun.map_err(Some),
            (None, Some(link)) => started(link).await,
            (None, None) => Ok(()),
        };
        let mut group = Self { child: Some(child), pid, link, pipes, exit: None, origin, over: false, killed: false };
        match started {
            Ok(()) => Ok(group),
            Err(Some(error)) => Err(cannot(error)),
            Err(None) => {
                let said = group.last_words().await;
                let who = if launch.around.is_empty() { "its supervisor" } else { "its sandbox" };
                let message = format!("program `{program}` could not be started: {who} ended before{said}");
                Err(failed(ErrorCategory::StartFailed, message))
            }
        }
    }

    /// Returns the output of a sandbox that could not be made.
    async fn last_words(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(errors) = &mut self.pipes.stderr {
            let _ = read_rest(errors, Duration::from_millis(200), |bytes| said.extend_from_slice(bytes)).await;
        }
        let said = String::from_utf8_lossy(&said[said.len().saturating_sub(2000)..]).trim().to_owned();
        if said.is_empty() { said } else { format!(": {said}") }
    }

    /// Takes the engine's ends of the program's standard streams. They can be taken only once.
    pub fn pipes(&mut self) -> Pipes {
        std::mem::take(&mut self.pipes)
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

/// The program's ends of its standard streams, and the standard error of the sandbox around it.
struct Streams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    around: OwnedFd,
}

fn no_pipe(error: io::Error) -> SpawnError {
    SpawnError {
        category: ErrorCategory::StartFailed,
        message: format!("a pipe could not be created: {error}{}", hint(&error)),
    }
}

fn null() -> Result<OwnedFd, SpawnError> {
    let file = std::fs::File::options().read(true).write(true).open("/dev/null");
    file.map(OwnedFd::from).map_err(|error| SpawnError {
        category: ErrorCategory::StartFailed,
        message: format!("/dev/null could not be opened: {error}{}", hint(&error)),
    })
}

impl Streams {
    /// Returns the program's own streams.
    fn own(&self) -> [BorrowedFd<'_>; 3] {
        [self.stdin.as_fd(), self.stdout.as_fd(), self.stderr.as_fd()]
    }
}

/// Sends a request to a supervisor that waits, and returns it. `None` if there is none.
async fn begin_again(workspace: &Path, streams: &Streams, message: &[u8]) -> Option<(Idle, Result<(), io::Error>)> {
    loop {
        let mut idle = idle::take(workspace)?;
        if idle.link.begin(streams.own(), message).is_ok() {
            match started(&mut idle.link).await {
                Ok(()) => return Some((idle, Ok(()))),
                Err(Some(error)) => return Some((idle, Err(error))),
                // It was ended while it waited, or does not answer: it must not start the program later.
                Err(None) => _ = rustix::process::kill_process(idle.pid, Signal::KILL),
            }
        }
        idle.dismiss();
    }
}

/// Returns the command to start: the supervisor, in its sandbox if there is one, or the program itself. A supervisor
/// that gets a message learns from it what to start.
fn command(
    launch: &Launch,
    path: &Path,
    streams: Streams,
    message: Option<&[u8]>,
) -> io::Result<(Command, Option<Link>)> {
    let Launch { around, command: words, .. } = launch;
    let Some(supervisor) = supervisor() else {
        let mut command = Command::new(path);
        let all: Vec<&String> = around.iter().chain(words).skip(1).collect();
        command.args(all).process_group(0).kill_on_drop(true);
        command.stdin(streams.stdin).stdout(streams.stdout).stderr(streams.stderr);
        return Ok((command, None));
    };
    let (link, end) = Link::new(streams.own(), message.unwrap_or(&[supervisor::BEGIN]))?;
    let own = |command: &mut Command| {
        command.arg(supervisor::WORD);
        if let Some(files) = descriptors::original() {
            command.args([supervisor::FILES, &files.to_string()]);
        }
        command.arg(if message.is_some() { supervisor::REQUESTS } else { "--" });
    };
    let mut command = if around.is_empty() {
        let mut command = Command::new(supervisor);
        own(&mut command);
        if message.is_none() {
            command.arg(path);
        }
        command
    } else {
        let mut command = Command::new(path);
        command.args(&around[1..]).arg(supervisor).process_group(0);
        own(&mut command);
        command.args(words.first());
        command
    };
    if message.is_none() {
        command.args(&words[1..]);
    }
    command.stdin(end).stdout(Stdio::null()).stderr(streams.around);
    Ok((command, Some(link)))
}

/// Waits until a program runs. The error is the system's, or `None` if the supervisor is gone.
async fn started(link: &mut Link) -> Result<(), Option<io::Error>> {
    let heard = timeout(START, async {
        while link.started.is_none() && !link.closed {
            link.hear().await;
        }
    });
    let _ = heard.await;
    if !link.reaper {
        UNCERTAIN.store(true, Ordering::Relaxed);
    }
    match link.started {
        Some(Ok(())) => Ok(()),
        // A program that ends or stops its supervisor at once was started.
        None if link.starting => Ok(()),
        Some(Err(0)) | None => Err(None),
        Some(Err(error)) => Err(Some(io::Error::from_raw_os_error(error))),
    }
}

fn exit_of(status: ExitStatus) -> Exit {
    Exit { code: status.code(), signal: status.signal() }
}

/// Finds the file of a program: a path is relative to the folder, a bare name is searched for on `PATH`.
pub fn find(program: &str, folder: &Path, path: Option<&str>) -> Option<std::path::PathBuf> {
    let runs = |file: &Path| file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok();
    if program.contains('/') {
        let file = folder.join(program);
        return (file.exists() && !file.is_dir()).then_some(file);
    }
    std::env::split_paths(path.unwrap_or("/usr/local/bin:/usr/bin:/bin"))
        .map(|dir| dir.join(program))
        .find(|file| runs(file))
}

/// Returns the message about a program that [`find`] did not find.
pub fn not_found(program: &str, folder: &Path) -> String {
    let root = project::root();
    match Path::new(program) {
        path if program.contains('/') && (folder.join(path).is_dir() || root.join(path).is_dir()) => {
            format!("program `{program}` is a folder; write the path of the program in it")
        }
        path if path.is_absolute() => format!("program `{program}` does not exist"),
        _ if program.starts_with("~/") => format!(
            "program `{program}` does not exist, because no shell replaces the `~`; write the whole path, or a name that \
             is on PATH"
        ),
        path if program.contains('/') && folder != root && root.join(path).exists() => format!(
            "program `{program}` does not exist in {}, where it is searched; the project has such a file, so write its whole \
             path",
            folder.display()
        ),
        path if program.contains('/') => format!(
            "program `{}` does not exist; its path is relative to the project's root, {}",
            path.display(),
            root.display()
        ),
        _ if program.trim().contains(' ') => format!(
            "program `{program}` was not found on PATH; if only its first word is the program, write each word as an item \
             of the list"
        ),
        _ => format!("program `{program}` was not found on PATH"),
    }
}

/// Reads the rest of a pipe, until no byte has arrived for the time `silence`.
///
/// # Errors
/// Returns an error if reading fails.
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
