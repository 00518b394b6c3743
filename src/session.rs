//! A live session: one agent process, its wire log, its translation, and the limits it runs under.
//!
//! Drivers see lines and send lines. Everything that crosses the boundary is logged and translated here,
//! so that no driver can forget it.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::{sleep_until, timeout};

use crate::adapter::Translation;
use crate::case::Limits;
use crate::lines::{Line, Splitter};
use crate::process::{Group, SpawnError, Stdin};
use crate::secrets::Masker;
use crate::trace::recorder::{Finished, Recorder};
use crate::trace::{Event, Exit};
use crate::values::Time;
use crate::wire::{Dir, EngineLine, WireLine};

/// Bytes of a Trial's wire log; what comes after is not kept.
pub const MAX_WIRE: u64 = 1 << 30;

/// The time limit of a case that has none: a night's run must not stand still for one trial.
pub const DEFAULT_TIME: Time = Time(Duration::from_secs(30 * 60));

/// How long the agent's pipes may stay silent once it has exited; what it started may hold them open.
const SILENCE: Duration = Duration::from_millis(150);

/// A live session.
pub struct Session {
    begun: Instant,
    log: Log,
    translation: Translation,
    sink: Box<dyn FnMut(Event) + Send>,
    limits: Limits,
    interrupt: watch::Receiver<bool>,
    process: Option<Process>,
    queue: VecDeque<String>,
    activity: (u64, Instant),
    ended: Option<End>,
    answered: bool,
    exit: Option<Exit>,
    buffers: (Vec<u8>, Vec<u8>),
    lines_wanted: bool,
}

struct Process {
    group: Group,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Splitter,
    err: Splitter,
}

/// What a driver may find when it waits for the agent.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// A line from the agent, as it came.
    Line(String),
    /// The agent's standard output is closed, or its process is gone.
    Closed,
    /// Nothing came within the time the driver gave.
    Late,
    /// The engine ends the session.
    End(End),
}

/// Why the engine ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A limit of the Case was reached.
    Limit,
    /// The user interrupted the run.
    Interrupted,
}

/// What a session is made from.
pub struct Setup {
    /// Where the wire log goes.
    pub wire: PathBuf,
    /// Where the agent's standard error goes.
    pub stderr: PathBuf,
    /// Masks secrets before a byte reaches the disk.
    pub masker: Arc<Masker>,
    /// The limits of the Case.
    pub limits: Limits,
    /// Turns true when the user interrupts the run.
    pub interrupt: watch::Receiver<bool>,
    /// Takes each event when nothing can change it any more.
    pub sink: Box<dyn FnMut(Event) + Send>,
}

/// A session whose process is gone.
pub struct Ended {
    session: Session,
}

/// What a session leaves beside its Trace.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// The last lines of the agent's standard error.
    pub stderr_tail: String,
    /// The user interrupted it.
    pub interrupted: bool,
    /// The wire log could not be written whole: the disk is full, or gone.
    pub log_failed: bool,
}

impl Ended {
    /// What is known of the session.
    pub fn recorder(&mut self) -> &mut Recorder {
        self.session.translation.recorder()
    }

    /// Logs what the engine found out when the process was gone.
    pub fn engine(&mut self, line: &EngineLine) {
        self.session.engine(line);
    }

    /// Finishes the Trace; its last events go where the others went.
    pub fn finish(self) -> (Finished, Left) {
        let Session { translation, mut sink, mut log, ended, .. } = self.session;
        let mut finished = translation.finish();
        for event in finished.events.drain(..) {
            sink(event);
        }
        log.flush();
        log.failed |= log.wire.get_ref().sync_data().is_err();
        let interrupted = ended == Some(End::Interrupted);
        (finished, Left { stderr_tail: log.tail, interrupted, log_failed: log.failed })
    }
}

impl Session {
    /// Begins a session; the clock runs from here.
    ///
    /// # Errors
    /// The wire log could not be made.
    pub fn begin(setup: Setup, translation: Translation) -> io::Result<Self> {
        let begun = Instant::now();
        Ok(Self {
            begun,
            log: Log::create(&setup.wire, &setup.stderr, setup.masker)?,
            translation,
            sink: setup.sink,
            limits: setup.limits,
            interrupt: setup.interrupt,
            process: None,
            queue: VecDeque::new(),
            activity: (0, begun),
            ended: None,
            answered: false,
            exit: None,
            buffers: (vec![0; 64 << 10], vec![0; 16 << 10]),
            lines_wanted: true,
        })
    }

    /// Starts the agent. If it cannot be started that is logged, and the error comes back.
    ///
    /// # Errors
    /// The program was not found or could not be started.
    pub fn spawn(
        &mut self,
        command: &[String],
        folder: &Path,
        env: &BTreeMap<String, String>,
        stdin: Stdin,
    ) -> Result<(), SpawnError> {
        let mut group = Group::spawn(command, folder, env, stdin).inspect_err(|error| {
            self.engine(&EngineLine::NotStarted { category: error.category, message: error.message.clone() });
        })?;
        let child = group.child();
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        self.process =
            Some(Process { group, stdin, stdout, stderr, out: Splitter::default(), err: Splitter::default() });
        Ok(())
    }

    /// What is known of the session so far.
    pub fn recorder(&mut self) -> &mut Recorder {
        self.translation.recorder()
    }

    /// Logs what the engine did.
    pub fn engine(&mut self, line: &EngineLine) {
        let line = WireLine::engine(self.now(), line);
        self.take(line);
        self.log.flush();
    }

    /// The driver has all the answers it asked for: from here on nothing is an agent's failure to answer.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// The driver does not look into lines; it is only told that there was one.
    pub fn lines_are_not_looked_at(&mut self) {
        self.lines_wanted = false;
    }

    /// Takes a line of a recorded session as if it came now from there.
    pub fn replay(&mut self, line: WireLine) {
        self.take(line);
    }

    /// Sends a line to the agent. A pipe that is closed is no error here: the agent's end shows where it is read.
    pub async fn send(&mut self, line: &str) {
        let wire = WireLine::text(self.now(), Dir::Send, line);
        self.take(wire);
        self.log.flush();
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        // An agent that does not read must not hold the engine: what it writes is read while we wait.
        let mut sent = 0;
        while sent < bytes.len() {
            let Some(Process { stdin: Some(stdin), .. }) = &mut self.process else { break };
            match timeout(Duration::from_millis(100), stdin.write(&bytes[sent..])).await {
                Ok(Ok(n)) if n > 0 => sent += n,
                Ok(_) => break,
                Err(_) => {
                    if self.due(None).is_some() || !self.read_some(Duration::from_millis(10)).await {
                        break;
                    }
                }
            }
        }
    }

    /// Closes the agent's standard input.
    pub fn close_stdin(&mut self) {
        let open = self.process.as_mut().and_then(|process| process.stdin.take()).is_some();
        if open {
            self.engine(&EngineLine::CloseStdin);
        }
    }

    /// Waits for the next line, for the agent's end, for a limit, or at most this long.
    pub async fn next(&mut self, within: Option<Duration>) -> Incoming {
        let deadline = within.map(|within| Instant::now() + within);
        loop {
            if let Some(line) = self.queue.pop_front() {
                return Incoming::Line(line);
            }
            if let Some(incoming) = self.due(deadline) {
                return incoming;
            }
            if self.process.as_ref().is_none_or(|process| process.stdout.is_none()) {
                return Incoming::Closed;
            }
            self.read_once(deadline).await;
        }
    }

    /// Ends the session's process: waits this long for it to exit by itself, then SIGTERM, then SIGKILL.
    pub async fn close(mut self, patience: Duration) -> Ended {
        let until = Instant::now() + patience;
        // Output after the end is still evidence, and a full pipe would keep the agent from exiting.
        while self.exit.is_none() && Instant::now() < until && !*self.interrupt.borrow() {
            let left = until.saturating_duration_since(Instant::now());
            if !self.read_some(left).await {
                break;
            }
        }
        if let Some(mut process) = self.process.take() {
            let mut signals = Vec::new();
            let ended = process.group.end(|signal| signals.push(signal)).await;
            for signal in signals {
                self.engine(&EngineLine::Signal { signal: signal.to_owned() });
            }
            self.exit = self.exit.or(ended);
            self.process = Some(process);
            self.read_rest().await;
            self.process = None;
        }
        if let Some(exit) = self.exit {
            let line = serde_json::to_string(&exit).unwrap_or_default();
            self.take(WireLine::text(self.now(), Dir::Exit, line));
        }
        self.log.flush();
        Ended { session: self }
    }

    /// Waits at most this long for something to read. Answers false when nothing more can come.
    async fn read_some(&mut self, within: Duration) -> bool {
        let Some(process) = &self.process else { return false };
        if process.stdout.is_none() && process.stderr.is_none() && self.exit.is_some() {
            return false;
        }
        self.read_once(Some(Instant::now() + within)).await;
        true
    }

    /// Reads once from whichever pipe has something, or learns that the agent exited, or waits until a timer is due.
    async fn read_once(&mut self, deadline: Option<Instant>) {
        let wake = self.wake(deadline);
        let Some(process) = &mut self.process else { return };
        let Process { group, stdout, stderr, .. } = process;
        let (mut out, mut err) = (std::mem::take(&mut self.buffers.0), std::mem::take(&mut self.buffers.1));
        enum Got {
            Out(io::Result<usize>),
            Err(io::Result<usize>),
            Exit(Exit),
            Woken,
        }
        let exited = self.exit.is_some();
        let got = tokio::select! {
            biased;
            read = read_from(stdout.as_mut(), &mut out), if stdout.is_some() => Got::Out(read),
            read = read_from(stderr.as_mut(), &mut err), if stderr.is_some() => Got::Err(read),
            exit = group.wait(), if !exited => Got::Exit(exit),
            _ = self.interrupt.changed(), if self.ended.is_none() => Got::Woken,
            () = sleep_until(wake.into()) => Got::Woken,
        };
        match got {
            Got::Out(Ok(n)) if n > 0 => self.took(Dir::Recv, &out[..n]),
            Got::Err(Ok(n)) if n > 0 => self.took(Dir::Stderr, &err[..n]),
            Got::Out(_) => self.pipe_closed(Dir::Recv),
            Got::Err(_) => self.pipe_closed(Dir::Stderr),
            Got::Exit(exit) => {
                self.exit = Some(exit);
                self.read_rest().await;
            }
            Got::Woken => {}
        }
        self.buffers = (out, err);
    }

    /// The agent has exited: takes what is left in its pipes, and closes them.
    async fn read_rest(&mut self) {
        for dir in [Dir::Recv, Dir::Stderr] {
            let mut buffer = vec![0u8; 64 << 10];
            loop {
                let Some(process) = &mut self.process else { return };
                let read = match dir {
                    Dir::Recv => timeout(SILENCE, read_from(process.stdout.as_mut(), &mut buffer)).await,
                    _ => timeout(SILENCE, read_from(process.stderr.as_mut(), &mut buffer)).await,
                };
                match read {
                    Ok(Ok(n)) if n > 0 => self.took(dir, &buffer[..n]),
                    _ => break,
                }
            }
            self.pipe_closed(dir);
        }
    }

    fn took(&mut self, dir: Dir, bytes: &[u8]) {
        let Some(process) = &mut self.process else { return };
        let mut lines = Vec::new();
        let splitter = if dir == Dir::Recv { &mut process.out } else { &mut process.err };
        splitter.push(bytes, |line| lines.push(line));
        for line in lines {
            self.took_line(dir, line);
        }
        self.log.flush();
    }

    fn pipe_closed(&mut self, dir: Dir) {
        let Some(process) = &mut self.process else { return };
        let last = if dir == Dir::Recv {
            process.stdout = None;
            process.out.rest()
        } else {
            process.stderr = None;
            process.err.rest()
        };
        if let Some(line) = last {
            self.took_line(dir, line);
            self.log.flush();
        }
    }

    fn took_line(&mut self, dir: Dir, line: Line) {
        let at = self.now();
        if dir == Dir::Recv {
            // The driver sees the line as it came; only what is written is masked.
            let text =
                if self.lines_wanted { String::from_utf8_lossy(&line.bytes).into_owned() } else { String::new() };
            self.queue.push_back(text);
        }
        let masked = match self.log.masker.mask_bytes(&line.bytes) {
            std::borrow::Cow::Owned(masked) => masked,
            std::borrow::Cow::Borrowed(_) => line.bytes,
        };
        self.take(WireLine::owned(at, dir, masked, line.cut));
    }

    fn take(&mut self, mut line: WireLine) {
        if let std::borrow::Cow::Owned(masked) = self.log.masker.mask(&line.line) {
            line.line = masked;
        }
        for line in self.log.write(line) {
            self.translation.line(&line);
        }
        for event in self.translation.drain() {
            (self.sink)(event);
        }
        let activity = self.translation.recorder().activity();
        if activity != self.activity.0 {
            self.activity = (activity, Instant::now());
        }
    }

    /// Whether it is time for the engine to act: an interrupt, a limit, the driver's own deadline.
    fn due(&mut self, deadline: Option<Instant>) -> Option<Incoming> {
        let now = Instant::now();
        if self.ended.is_none() {
            if *self.interrupt.borrow() {
                self.ended = Some(End::Interrupted);
                self.engine(&EngineLine::Interrupted);
                return Some(Incoming::End(End::Interrupted));
            }
            if !self.answered
                && let Some((key, limit)) = self.exceeded(now)
            {
                self.ended = Some(End::Limit);
                self.engine(&EngineLine::Limit { key: key.to_owned(), limit });
                return Some(Incoming::End(End::Limit));
            }
        }
        deadline.is_some_and(|deadline| now >= deadline).then_some(Incoming::Late)
    }

    /// The first limit that is exceeded, with its value.
    fn exceeded(&mut self, now: Instant) -> Option<(&'static str, String)> {
        let recorder = self.translation.recorder();
        let limits = &self.limits;
        let over = |limit: Option<u64>, value: u64| limit.filter(|limit| value > *limit).map(|limit| limit.to_string());
        let usage = recorder.usage_total();
        if let Some(limit) = over(limits.steps, recorder.step_count()) {
            return Some(("steps", limit));
        }
        if let Some(limit) = over(limits.tool_calls, recorder.call_count()) {
            return Some(("tool-calls", limit));
        }
        if let Some(limit) = usage.tokens().and_then(|tokens| over(limits.tokens, tokens)) {
            return Some(("tokens", limit));
        }
        if let Some(limit) = limits
            .cost_usd
            .map(crate::case::Dollars::get)
            .filter(|limit| usage.cost_usd().is_some_and(|cost| cost > *limit))
        {
            return Some(("cost-usd", limit.to_string()));
        }
        let time = limits.time.unwrap_or(DEFAULT_TIME);
        if time.0 <= now.duration_since(self.begun) {
            return Some(("time", time.to_string()));
        }
        let idle =
            limits.idle.filter(|idle| recorder.open_calls() == 0 && idle.0 <= now.duration_since(self.activity.1));
        idle.map(|idle| ("idle", idle.to_string()))
    }

    /// The next moment at which something may be due.
    fn wake(&mut self, deadline: Option<Instant>) -> Instant {
        let mut wake = Instant::now() + Duration::from_secs(3600);
        if self.ended.is_none() && !self.answered {
            wake = wake.min(self.begun + self.limits.time.unwrap_or(DEFAULT_TIME).0);
            if let Some(idle) = self.limits.idle
                && self.translation.recorder().open_calls() == 0
            {
                wake = wake.min(self.activity.1 + idle.0);
            }
        }
        deadline.map_or(wake, |deadline| wake.min(deadline))
    }

    fn now(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }
}

async fn read_from(pipe: Option<&mut (impl tokio::io::AsyncRead + Unpin)>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => Ok(0),
    }
}

/// The wire log on disk, masked and bounded.
struct Log {
    wire: BufWriter<File>,
    stderr: Option<BufWriter<File>>,
    stderr_path: PathBuf,
    masker: Arc<Masker>,
    written: u64,
    full: bool,
    failed: bool,
    tail: String,
    scratch: Vec<u8>,
}

impl Log {
    fn create(wire: &Path, stderr: &Path, masker: Arc<Masker>) -> io::Result<Self> {
        Ok(Self {
            wire: BufWriter::with_capacity(32 << 10, File::create(wire)?),
            stderr: None,
            stderr_path: stderr.to_owned(),
            masker,
            written: 0,
            full: false,
            failed: false,
            tail: String::new(),
            scratch: Vec::new(),
        })
    }

    /// Writes a line. Answers the lines that were taken: usually this one; a notice where the log is full; then none.
    fn write(&mut self, line: WireLine) -> Vec<WireLine> {
        let needed = matches!(line.dir, Dir::Engine | Dir::Exit | Dir::Send);
        if self.full && !needed {
            return vec![line];
        }
        let mut taken = vec![line];
        if self.written > MAX_WIRE && !self.full {
            self.full = true;
            let text = format!("the wire log holds {MAX_WIRE} bytes and takes no more lines from the agent");
            taken.push(WireLine::engine(taken[0].at_ms, &EngineLine::Notice { code: "wire_full".into(), text }));
        }
        for line in &taken {
            self.scratch.clear();
            let written = line.write(&mut self.scratch).and_then(|()| self.wire.write_all(&self.scratch));
            self.failed |= written.is_err();
            self.written += self.scratch.len() as u64;
            if line.dir == Dir::Stderr {
                self.write_stderr(&line.line);
            }
        }
        taken
    }

    fn write_stderr(&mut self, line: &str) {
        const KEPT: usize = 2048;
        self.tail.push_str(line);
        self.tail.push('\n');
        if self.tail.len() > 2 * KEPT {
            let from = self.tail.ceil_char_boundary(self.tail.len() - KEPT);
            self.tail.drain(..from);
        }
        if self.stderr.is_none() {
            self.stderr = File::create(&self.stderr_path).ok().map(BufWriter::new);
        }
        if let Some(out) = &mut self.stderr {
            self.failed |= writeln!(out, "{line}").is_err();
        }
    }

    fn flush(&mut self) {
        self.failed |= self.wire.flush().is_err();
        if let Some(out) = &mut self.stderr {
            self.failed |= out.flush().is_err();
        }
    }
}
