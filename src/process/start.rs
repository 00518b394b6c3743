//! Starts a program in a process group of its own, under a supervisor if there is one.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rustix::process::{Pid, Signal};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{ChildStdin, Command};
use tokio::time::timeout;

use super::escaped::{self, Leader, Origin};
use super::idle::{self, Idle};
use super::link::Link;
use super::program::{find, missing_interpreter, not_found};
use super::running::alive;
use super::{Group, Output, Pipes, Stream, Tail, UNCERTAIN, descriptors, supervisor};
use crate::resources::hint;
use crate::supervisor::{self, Request};
use crate::trace::ErrorCategory;

/// The maximum time in which a supervisor starts its program.
const START: Duration = Duration::from_secs(60);

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

/// The standard input of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// No standard input.
    Null,
    /// A pipe that the engine writes to.
    Piped,
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
        let own = |end: io::PipeReader| Receiver::from_owned_fd(end.into()).map_err(no_pipe);
        let pipes = Pipes {
            stdin: own_input.map(ChildStdin::from_std).transpose().map_err(no_pipe)?,
            output: Output::new(own(own_output)?, Some(own(own_errors)?)),
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
        let output = Output::new(Receiver::from_owned_fd(own_output.into()).map_err(no_pipe)?, None);
        Self::start(launch, workspace, folder, env, streams, Pipes { stdin: None, output }, ends).await
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
            let file = || find(program, folder, env.get("PATH").map(String::as_str));
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            let script = is_missing.then(file).flatten().and_then(|file| missing_interpreter(&file, folder));
            let (hint, way_out) = (hint(&error), script.unwrap_or_else(|| way_out(&error).to_owned()));
            failed(
                ErrorCategory::StartFailed,
                format!("program `{program}` could not be started: {error}{hint}{way_out}"),
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
        let mut said = Tail::of(2000);
        self.pipes.output.rest(Stream::Stderr, |bytes| _ = said.push(bytes)).await;
        let said = String::from_utf8_lossy(&said.to_vec()).trim().to_owned();
        if said.is_empty() { said } else { format!(": {said}") }
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

/// Returns advice for the user if a file may not be executed, which is usually a script without the permission bit, or if the
/// limit of processes is reached. Returns an empty text for other errors.
fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; make the file executable with `chmod +x`, or name the program that runs it first, as in `command: [python3, …]`"
        }
        // The system starts no process beyond the limit of this user or container.
        io::ErrorKind::WouldBlock => "; raise the limit of processes (ulimit -u, or that of the container)",
        _ => "",
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
