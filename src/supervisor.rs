//! The supervisor of one program: a small process between the engine and the program, which ends everything that the
//! program started.
//!
//! The supervisor is a child subreaper, so every orphan below it becomes its own child, however often it forks and
//! whatever it hides. The system proves that nothing is left: waiting fails with ECHILD. If the program runs inside
//! bubblewrap, so does the supervisor, so that exits and signals are the program's own and no other process holds the
//! program's pipes.
//!
//! The engine talks to the supervisor over a socket, which is its standard input. First come the program's
//! three standard streams, then one byte for each command. The supervisor answers with lines, see [`Report`].
//! When the socket is closed, the engine is gone, and everything is ended.
//!
//! Outside a sandbox, the streams come with a [`Request`], and a supervisor whose program did only a little, and of which
//! nothing is left, waits for the next request: starting this program again costs more than most of a short trial.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{IoSliceMut, PipeReader, PipeWriter, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, kill_process, kill_process_group, setrlimit,
    test_kill_process_group, wait,
};

use crate::trace::Exit;

/// The hidden subcommand of this program that supervises another program.
pub const WORD: &str = "supervise";
/// The option of the subcommand for the program's soft limit of open files.
pub const FILES: &str = "--files";
/// The option of the subcommand for programs that are named in requests.
pub const REQUESTS: &str = "--requests";

/// The first byte of a message with the program's streams. No order has it.
pub const BEGIN: u8 = b'S';
/// The maximum length of a request in bytes. The socket takes so much at once; a longer command line is passed as arguments.
const MAX_REQUEST_BYTES: usize = 32 << 10;
/// The bytes before the words of a request: [`BEGIN`] and the length of the words.
const HEAD: usize = 5;

/// The maximum time for ending processes that do not end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The time in which a program is expected to end if it only does a little. Until then, one thread watches it.
const BRIEF: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// An order of the engine to the supervisor. Each is one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// SIGTERM to the program's process group.
    Term,
    /// SIGKILL to the program's process group.
    Kill,
    /// SIGKILL to everything that the program started, until nothing is left.
    End,
}

impl Order {
    /// Returns the byte by which the order is sent to the supervisor.
    pub fn byte(self) -> u8 {
        match self {
            Order::Term => b'T',
            Order::Kill => b'K',
            Order::End => b'E',
        }
    }

    fn of(byte: u8) -> Option<Self> {
        [Order::Term, Order::Kill, Order::End].into_iter().find(|order| order.byte() == byte)
    }
}

/// A report of the supervisor to the engine. Each is one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The program is about to be started. Without a further report, it is unknown whether it ran.
    Starting,
    /// The program runs. `reaper` is false if the system does not give its orphans to the supervisor.
    Started {
        /// True if orphans become the supervisor's children.
        reaper: bool,
    },
    /// The program could not be started: the system's error number, 0 if unknown.
    Failed(i32),
    /// The program has exited.
    Exited(Exit),
    /// The program has exited, and nothing is left of its process group.
    Empty,
    /// No process is left. Contains the number of processes that the supervisor ended after [`Order::End`].
    Done(usize),
    /// The supervisor waits for the next request.
    Free,
}

impl Report {
    /// Returns the line of the report, including its line end.
    pub fn line(self) -> String {
        let number = |value: Option<i32>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
        match self {
            Report::Starting => "starting\n".to_owned(),
            Report::Started { reaper } => format!("started {}\n", i32::from(reaper)),
            Report::Failed(error) => format!("failed {error}\n"),
            Report::Exited(Exit { code, signal }) => format!("exited {} {}\n", number(code), number(signal)),
            Report::Empty => "empty\n".to_owned(),
            Report::Done(ended) => format!("done {ended}\n"),
            Report::Free => "free\n".to_owned(),
        }
    }

    /// Reads a line; `None` if it is not a report.
    pub fn of(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let word = words.next()?;
        let mut number = || words.next().map(|word| word.parse::<i32>().ok());
        Some(match word {
            "starting" => Report::Starting,
            "started" => Report::Started { reaper: number()?? == 1 },
            "failed" => Report::Failed(number()??),
            "exited" => Report::Exited(Exit { code: number()?, signal: number()? }),
            "empty" => Report::Empty,
            "done" => Report::Done(usize::try_from(number()??).ok()?),
            "free" => Report::Free,
            _ => return None,
        })
    }
}

/// The state that both threads of the supervisor share.
struct Supervised {
    engine: UnixStream,
    program: Pid,
    exited: AtomicBool,
    empty: AtomicBool,
    ended: AtomicUsize,
    /// Wakes the thread that listens to the engine, which waits at the other end.
    wake: PipeWriter,
    woken: PipeReader,
}

/// A program that a supervisor is to start.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The folder in which the program works.
    pub folder: &'a Path,
    /// The program's file.
    pub program: &'a Path,
    /// The program's arguments.
    pub arguments: &'a [String],
    /// The program's whole environment.
    pub env: &'a BTreeMap<String, String>,
}

impl Request<'_> {
    /// Returns the message to the supervisor, or `None` if it would be too long, or if the system accepts no such words.
    pub fn message(&self) -> Option<Vec<u8>> {
        let mut message = vec![BEGIN, 0, 0, 0, 0];
        let count = self.arguments.len().to_string();
        let place = [self.folder.as_os_str().as_bytes(), self.program.as_os_str().as_bytes(), count.as_bytes()];
        let arguments = self.arguments.iter().map(String::as_bytes);
        let variables = self.env.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
        for word in place.into_iter().chain(arguments).chain(variables) {
            if word.contains(&0) || message.len() + word.len() >= MAX_REQUEST_BYTES {
                return None;
            }
            message.extend_from_slice(word);
            message.push(0);
        }
        let length = u32::try_from(message.len() - HEAD).ok()?;
        message[1..HEAD].copy_from_slice(&length.to_le_bytes());
        Some(message)
    }
}

/// Returns the command of a request's words.
fn command_of(words: &[u8]) -> Option<Command> {
    let mut words = words.strip_suffix(&[0])?.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let (folder, program) = (words.next()?, words.next()?);
    let count: usize = words.next()?.to_str()?.parse().ok()?;
    let mut command = Command::new(program);
    command.current_dir(folder).args(words.by_ref().take(count)).env_clear();
    while let Some(name) = words.next() {
        command.env(name, words.next()?);
    }
    Some(command)
}

/// Runs the program named after `--`, or those of requests, and exits when nothing is left of it.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let (mut files, mut requests) = (None, false);
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        if word == "--" {
            break;
        }
        requests |= word == REQUESTS;
        if word == FILES {
            files = arguments.next().and_then(|number| number.to_str()?.parse::<u64>().ok());
        }
    }
    let Ok(engine) = std::io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return ExitCode::FAILURE;
    };
    if requests {
        return serve(engine, files);
    }
    let words: Vec<OsString> = arguments.collect();
    let (Some((program, words)), Some((streams, _))) = (words.split_first(), receive(&engine, |_| Some(1))) else {
        return ExitCode::FAILURE;
    };
    let reaper = alone(files);
    let mut command = Command::new(program);
    command.args(words);
    match supervise(engine, command, streams, reaper, false) {
        Ended::Exit(code) => code,
        Ended::Free(_) => ExitCode::SUCCESS,
    }
}

/// Runs the programs of requests, one after another, until the engine closes the socket, or until a program runs longer
/// than [`BRIEF`] or leaves children.
fn serve(mut engine: UnixStream, files: Option<u64>) -> ExitCode {
    let reaper = alone(files);
    let mut first = true;
    loop {
        let Some((streams, words)) = receive(&engine, length_of_request) else { return ExitCode::SUCCESS };
        let Some(command) = words.get(HEAD..).and_then(command_of) else { return ExitCode::FAILURE };
        if !std::mem::take(&mut first) {
            no_keys();
        }
        match supervise(engine, command, streams, reaper, true) {
            Ended::Free(again) => engine = again,
            Ended::Exit(code) => return code,
        }
    }
}

/// The end of the supervision of a program.
enum Ended {
    /// Nothing is left of the program, and the socket can be used for another one.
    Free(UnixStream),
    /// The supervisor ends.
    Exit(ExitCode),
}

/// Runs a program until nothing is left of it. If `again` is true, the engine gets a message when the supervisor can be used
/// for another one.
fn supervise(engine: UnixStream, mut command: Command, streams: [OwnedFd; 3], reaper: bool, again: bool) -> Ended {
    let [stdin, stdout, stderr] = streams;
    command.process_group(0);
    command.stdin(Stdio::from(stdin)).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    // The program can end its supervisor before its start is reported.
    let _ = (&engine).write_all(Report::Starting.line().as_bytes());
    let spawned = command.spawn();
    // Closes the supervisor's own copies of the program's streams, so that the engine sees when the streams end.
    drop(command);
    let program = spawned.as_ref().ok().and_then(|child| i32::try_from(child.id()).ok()).and_then(Pid::from_raw);
    let report = match &spawned {
        Ok(_) => Report::Started { reaper },
        Err(error) => Report::Failed(error.raw_os_error().unwrap_or(0)),
    };
    if (&engine).write_all(report.line().as_bytes()).is_err() && program.is_none() {
        return Ended::Exit(ExitCode::FAILURE);
    }
    let Some(program) = program else { return Ended::Exit(ExitCode::FAILURE) };
    let exit = match briefly(&engine, program) {
        Brief::Over(exit) if reaper && !group_lives(program) => {
            // One message, so that the engine wakes only once.
            let reports = [Report::Exited(exit), Report::Empty, Report::Done(0), Report::Free];
            let reports = if again { &reports[..] } else { &reports[..3] };
            let reports: String = reports.iter().map(|report| report.line()).collect();
            let _ = (&engine).write_all(reports.as_bytes());
            return Ended::Free(engine);
        }
        Brief::Over(exit) | Brief::Exited(exit) => Some(exit),
        Brief::Running => None,
    };
    let Ok((woken, wake)) = std::io::pipe() else { return Ended::Exit(ExitCode::FAILURE) };
    let supervised = Arc::new(Supervised {
        engine,
        program,
        exited: AtomicBool::new(exit.is_some()),
        empty: AtomicBool::new(false),
        ended: AtomicUsize::new(0),
        wake,
        woken,
    });
    if let Some(exit) = exit {
        supervised.report(Report::Exited(exit));
        supervised.look_at_group();
    }
    let listening = supervised.clone();
    // The thread ends with the process.
    let listener = std::thread::Builder::new().name("orders".to_owned()).spawn(move || listening.listen());
    if listener.is_err() {
        supervised.end();
    }
    supervised.wait();
    supervised.report(Report::Done(supervised.ended.load(Ordering::SeqCst)));
    Ended::Exit(ExitCode::SUCCESS)
}

/// The state of a program after [`BRIEF`], or earlier if it exits or the engine sends an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brief {
    /// The program runs.
    Running,
    /// The program has exited, and children are left.
    Exited(Exit),
    /// The program has exited, and no child is left.
    Over(Exit),
}

/// Waits for the end of a program that only does a little, without a second thread. An order of the engine is left
/// unread.
#[cfg(target_os = "linux")]
fn briefly(engine: &UnixStream, program: Pid) -> Brief {
    use rustix::process::{PidfdFlags, pidfd_open};
    let Ok(exits) = pidfd_open(program, PidfdFlags::empty()) else { return Brief::Running };
    let mut fds = [PollFd::new(engine, PollFlags::IN), PollFd::new(&exits, PollFlags::IN)];
    let _ = poll(&mut fds, Some(&BRIEF));
    if fds[1].revents().is_empty() {
        return Brief::Running;
    }
    let mut exit = None;
    loop {
        match (wait(WaitOptions::NOHANG), exit) {
            (Ok(Some((pid, status))), _) if pid == program => exit = Some(exit_of(status)),
            (Ok(Some(_)) | Err(rustix::io::Errno::INTR), _) => {}
            // Orphans become children of this process before their parent's exit can be collected, so nothing is left.
            (Err(rustix::io::Errno::CHILD), Some(exit)) => return Brief::Over(exit),
            (_, Some(exit)) => return Brief::Exited(exit),
            (_, None) => return Brief::Running,
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn briefly(_engine: &UnixStream, _program: Pid) -> Brief {
    Brief::Running
}

fn exit_of(status: WaitStatus) -> Exit {
    Exit { code: status.exit_status(), signal: status.terminating_signal() }
}

fn group_lives(program: Pid) -> bool {
    test_kill_process_group(program).is_ok()
}

/// Isolates the process from the user's session: it adopts orphans, and it has no terminal, no keys and no memory that
/// the program could read. Sets the soft limit of open files. Returns true if orphans become its children.
fn alone(files: Option<u64>) -> bool {
    let reaper = reaper();
    // With a controlling terminal, the program could open `/dev/tty` and read the user's input.
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    no_keys();
    // The program's standard error is one of the three streams. The current one belongs to the sandbox around the
    // supervisor.
    if let Ok(null) = fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(&null);
        let _ = rustix::stdio::dup2_stderr(&null);
    }
    if let Some(files) = files {
        let limit = getrlimit(Resource::Nofile);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(files), maximum: limit.maximum });
    }
    reaper
}

/// Joins an empty session keyring, so that a program has neither the user's keys nor those of the program before.
fn no_keys() {
    // If no further keyring is permitted, the program has the engine's keyring, which is not the user's either.
    #[cfg(target_os = "linux")]
    let _ = keyutils::Keyring::join_anonymous_session();
}

#[cfg(target_os = "linux")]
fn reaper() -> bool {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn reaper() -> bool {
    false
}

/// The streams are given to the program alone. Where the flag does not exist, they are marked after their arrival.
#[cfg(target_os = "linux")]
const CLOSED_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const CLOSED_ON_EXEC: RecvFlags = RecvFlags::empty();

/// Returns the length of a whole request, once its head has arrived.
fn length_of_request(heard: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(heard.get(1..HEAD)?.try_into().ok()?);
    Some(HEAD + usize::try_from(length).ok()?.min(MAX_REQUEST_BYTES))
}

/// Receives the program's standard streams and the message with them, whose length `length` receives as soon as it
/// is known. Orders before it are about the program before, of which nothing is left. `None` if the engine is gone.
fn receive(engine: &UnixStream, length: impl Fn(&[u8]) -> Option<usize>) -> Option<([OwnedFd; 3], Vec<u8>)> {
    let mut heard: Vec<u8> = Vec::new();
    let mut rights: Vec<OwnedFd> = Vec::new();
    let mut bytes = [0; 4 << 10];
    loop {
        if let Some(whole) = length(&heard).filter(|_| !heard.is_empty())
            && heard.len() >= whole
        {
            heard.truncate(whole);
            break;
        }
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let got = rustix::io::retry_on_intr(|| {
            recvmsg(engine, &mut [IoSliceMut::new(&mut bytes)], &mut control, CLOSED_ON_EXEC)
        });
        let got = got.ok()?.bytes;
        if got == 0 {
            return None;
        }
        heard.extend_from_slice(&bytes[..got]);
        if let Some(orders) = heard.iter().position(|byte| *byte == BEGIN) {
            heard.drain(..orders);
        } else {
            heard.clear();
        }
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                rights.extend(fds);
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    for stream in &rights {
        rustix::io::fcntl_setfd(stream, rustix::io::FdFlags::CLOEXEC).ok()?;
    }
    Some((rights.try_into().ok()?, heard))
}

impl Supervised {
    fn report(&self, report: Report) {
        // If the engine has ended, reports are not needed.
        let _ = (&self.engine).write_all(report.line().as_bytes());
    }

    /// Waits for every child, including the program's orphans, until there is none.
    fn wait(&self) {
        loop {
            match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) if pid == self.program && !self.exited.load(Ordering::SeqCst) => {
                    self.exited.store(true, Ordering::SeqCst);
                    self.report(Report::Exited(exit_of(status)));
                    self.look_at_group();
                    let _ = (&self.wake).write(&[1]);
                }
                Ok(_) => self.look_at_group(),
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => break,
            }
        }
        self.look_at_group();
    }

    /// Reports, once, that no process of the program's group is left.
    fn look_at_group(&self) {
        if self.exited.load(Ordering::SeqCst) && !group_lives(self.program) && !self.empty.swap(true, Ordering::SeqCst)
        {
            self.report(Report::Empty);
        }
    }

    /// Carries out the engine's orders until the engine ends.
    fn listen(&self) {
        let mut pause = Duration::from_millis(1);
        let mut woken = false;
        loop {
            let watching = self.exited.load(Ordering::SeqCst) && !self.empty.load(Ordering::SeqCst);
            let limit = watching.then(|| Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) });
            let mut fds = [
                PollFd::new(&self.engine, PollFlags::IN),
                PollFd::new(&self.woken, if woken { PollFlags::empty() } else { PollFlags::IN }),
            ];
            let _ = poll(&mut fds, limit.as_ref());
            woken |= !fds[1].revents().is_empty();
            if watching {
                self.look_at_group();
                pause = (pause * 2).min(Duration::from_millis(20));
            }
            if fds[0].revents().is_empty() {
                continue;
            }
            let mut byte = [0];
            match (&self.engine).read(&mut byte) {
                Ok(1) => match Order::of(byte[0]) {
                    Some(Order::Term) => self.signal(Signal::TERM),
                    Some(Order::Kill) => self.signal(Signal::KILL),
                    Some(Order::End) => return self.end(),
                    None => {}
                },
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // The engine has ended, and no process of the program may outlive it.
                Ok(_) | Err(_) => return self.end(),
            }
        }
    }

    fn signal(&self, signal: Signal) {
        if !self.empty.load(Ordering::SeqCst) {
            let _ = kill_process_group(self.program, signal);
        }
    }

    /// Ends everything below this process. The other thread exits when nothing is left.
    fn end(&self) {
        let begun = Instant::now();
        let mut ended = HashSet::new();
        let mut pause = Duration::from_millis(1);
        while begun.elapsed() < PATIENCE {
            let mut any = false;
            for pid in below(std::process::id().cast_signed()) {
                any |= ended.insert(pid);
                // Counted before the process dies: the other thread reports the number as soon as nothing is left.
                self.ended.store(ended.len(), Ordering::SeqCst);
                if let Some(pid) = Pid::from_raw(pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            // Processes that fork again are ended without a pause. Otherwise, the processes get the time to die.
            if !any {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        }
        // Processes that cannot be ended, such as those of another user, are left to the engine's own search.
        std::process::exit(1);
    }
}

/// Returns all living processes below a process.
pub fn below(root: i32) -> Vec<i32> {
    let mut found = Vec::new();
    let mut left = vec![root];
    while let Some(pid) = left.pop() {
        let Some(children) = children(pid) else { continue };
        for child in children {
            // A chain of processes has an end; a number that is reused is not followed twice.
            if found.contains(&child) {
                continue;
            }
            if is_alive(child) {
                found.push(child);
            }
            left.push(child);
        }
    }
    found
}

/// Returns the children of all threads of a process.
fn children(pid: i32) -> Option<Vec<i32>> {
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(list) => all.extend(list.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok())),
            // Not every kernel lists the children.
            Err(_) if thread.path().exists() => return Some(children_by_parent(pid)),
            Err(_) => {}
        }
    }
    Some(all)
}

fn children_by_parent(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    numbers.filter(|pid| state_and_parent(*pid).is_some_and(|(_, its)| its == parent)).collect()
}

fn is_alive(pid: i32) -> bool {
    state_and_parent(pid).is_some_and(|(state, _)| !matches!(state, 'Z' | 'X'))
}

fn state_and_parent(pid: i32) -> Option<(char, i32)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // The program's name is in parentheses and may contain anything.
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_and_orders_are_read_as_they_are_written() {
        for report in [
            Report::Started { reaper: true },
            Report::Failed(2),
            Report::Exited(Exit { code: Some(3), signal: None }),
            Report::Exited(Exit { code: None, signal: Some(9) }),
            Report::Empty,
            Report::Done(7),
            Report::Free,
        ] {
            assert_eq!(Report::of(report.line().trim_end()), Some(report));
        }
        for line in ["", "exited", "exited 3", "done", "done -1", "started x", "other 1"] {
            assert_eq!(Report::of(line), None, "{line}");
        }
        for order in [Order::Term, Order::Kill, Order::End] {
            assert_eq!(Order::of(order.byte()), Some(order));
        }
        assert_eq!(Order::of(BEGIN), None);
    }

    #[test]
    fn a_request_is_read_as_it_is_written_in_parts_and_after_old_orders() {
        let env = BTreeMap::from([("HOME".to_owned(), "/h".to_owned()), ("EMPTY".to_owned(), String::new())]);
        let arguments = ["-c".to_owned(), "x".repeat(9000), String::new()];
        let (folder, program) = (Path::new("/w"), Path::new("/bin/sh"));
        let request = Request { folder, program, arguments: &arguments, env: &env };
        let message = request.message().unwrap();
        let (own, other) = UnixStream::pair().unwrap();
        let null = fs::File::open("/dev/null").unwrap();
        (&own).write_all(&[Order::Term.byte(), Order::End.byte()]).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = rustix::net::SendAncillaryBuffer::new(&mut space);
        let three = [null.as_fd(); 3];
        control.push(rustix::net::SendAncillaryMessage::ScmRights(&three));
        let first = [std::io::IoSlice::new(&message[..3])];
        rustix::net::sendmsg(&own, &first, &mut control, rustix::net::SendFlags::empty()).unwrap();
        (&own).write_all(&message[3..]).unwrap();
        let (_, words) = receive(&other, length_of_request).unwrap();
        assert_eq!(words, message);
        let command = command_of(&words[HEAD..]).unwrap();
        assert_eq!((command.get_program(), command.get_current_dir()), (program.as_os_str(), Some(folder)));
        assert!(command.get_args().eq(arguments.iter().map(OsStr::new)));
        let variables: Vec<_> = command.get_envs().collect();
        assert_eq!(variables, [("EMPTY", ""), ("HOME", "/h")].map(|(k, v)| (OsStr::new(k), Some(OsStr::new(v)))));
        drop(own);
        assert!(receive(&other, length_of_request).is_none());
    }

    #[test]
    fn words_that_are_too_long_or_that_the_system_rejects_are_no_request() {
        let env = BTreeMap::new();
        for argument in ["a\0b".to_owned(), "x".repeat(MAX_REQUEST_BYTES)] {
            let arguments = [argument];
            let request =
                Request { folder: Path::new("/"), program: Path::new("/x"), arguments: &arguments, env: &env };
            assert!(request.message().is_none());
        }
    }
}
