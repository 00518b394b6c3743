//! A live session: one agent process, its wire log, its translation, and the limits it runs under.
//!
//! Drivers see lines and send lines. Everything that crosses the boundary is logged and translated here,
//! so that no driver can forget it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
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

mod limits;
mod log;
pub mod terminals;
#[cfg(test)]
mod tests;

use log::{Log, Weight, Written};
use terminals::Terminals;

/// Bytes of a Trial's wire log; what comes after is not kept.
pub const MAX_WIRE: u64 = 1 << 30;

/// The time limit of a case that has none: a night's run must not stand still for one trial.
pub const DEFAULT_TIME: Time = Time(Duration::from_secs(30 * 60));

/// How long the agent's pipes may stay silent once it has exited; what it started may hold them open.
const SILENCE: Duration = Duration::from_millis(150);

/// How long an agent's pipes are read once it has exited, where what it started goes on writing into them.
const REST: Duration = Duration::from_millis(400);

/// How long the engine waits, once the session is over, for an agent that does not read.
const UNREAD: Duration = Duration::from_secs(1);

/// How long one of two is waited for before it is looked at the other.
const GLANCE: Duration = Duration::from_millis(50);

/// Lines that are looked at at once for one that withdraws what is being decided.
const AHEAD: usize = 100;

/// Bytes of lines that wait for the driver; an agent that talks and does not listen is not heard beyond that.
const MAX_QUEUE: usize = 64 << 20;

/// A live session.
pub struct Session {
    begun: Instant,
    log: Log,
    translation: Translation,
    sink: Box<dyn FnMut(Event) + Send>,
    limits: Limits,
    interrupt: watch::Receiver<bool>,
    process: Option<Process>,
    /// Lines that wait for the driver.
    queue: VecDeque<Heard>,
    queued: usize,
    /// Nobody waits for lines any more.
    closing: bool,
    /// Lines of the wire log so far; the numbers of the last that the driver sent and took.
    lines: u64,
    said: u64,
    heard: u64,
    activity: (u64, Instant),
    /// How long others than the agent were waited for, and since when somebody is.
    waited: (Duration, Option<Instant>),
    /// Turns that will have ended when the prompt that was sent last is answered, and those whose end the driver has heard.
    turns: u64,
    turns_heard: u64,
    ended: Option<End>,
    /// The driver knows that the session is ended.
    told: bool,
    answered: bool,
    exit: Option<Exit>,
    /// The agent was alive when the engine ended it.
    held_on: bool,
    buffers: (Vec<u8>, Vec<u8>),
    lines_wanted: bool,
    terminals: Terminals,
    /// Terminals that were released and whose commands are still being ended.
    terminals_left: Vec<tokio::task::JoinHandle<()>>,
    /// Terminals whose commands have ended and of which the driver was not told yet.
    terminals_ended: VecDeque<String>,
}

/// A line that waits for the driver.
struct Heard {
    /// Its number in the wire log.
    number: u64,
    text: String,
    /// Turns that had ended with it.
    turns: u64,
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
    /// The command in this terminal has ended; what it showed is in the wire log.
    Terminal(String),
}

/// What came of waiting for something that is not the agent's.
#[derive(Debug)]
pub enum Meanwhile<T> {
    /// It is there.
    Done(T),
    /// The agent needs it no more.
    Withdrawn,
    /// The session ended first, or the turn.
    Over,
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
    /// Bytes of the wire log; of what the agent says beyond, only what ends the session is kept: [`MAX_WIRE`].
    pub max_wire: u64,
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
    /// The agent did not exit by itself; the engine ended it.
    pub held_on: bool,
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
        let Session { translation, mut sink, mut log, ended, held_on, .. } = self.session;
        let mut finished = translation.finish();
        for event in finished.events.drain(..) {
            sink(event);
        }
        log.flush();
        let interrupted = ended == Some(End::Interrupted);
        (finished, Left { stderr_tail: log.tail, interrupted, log_failed: log.failed, held_on })
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
            log: Log::create(&setup.wire, &setup.stderr, setup.masker, setup.max_wire)?,
            translation,
            sink: setup.sink,
            limits: setup.limits,
            interrupt: setup.interrupt,
            process: None,
            queue: VecDeque::new(),
            queued: 0,
            closing: false,
            lines: 0,
            said: 0,
            heard: 0,
            activity: (0, begun),
            waited: (Duration::ZERO, None),
            turns: 0,
            turns_heard: 0,
            ended: None,
            told: false,
            answered: false,
            exit: None,
            held_on: false,
            buffers: (vec![0; 64 << 10], vec![0; 16 << 10]),
            lines_wanted: true,
            terminals: Terminals::default(),
            terminals_left: Vec::new(),
            terminals_ended: VecDeque::new(),
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

    /// The same without its secrets, as the Trace would show it; nothing where it is no JSON without them.
    pub fn masked(&self, value: &Value) -> Value {
        let text = value.to_string();
        match self.log.masker.mask(&text) {
            Cow::Owned(masked) => serde_json::from_str(&masked).unwrap_or_default(),
            Cow::Borrowed(_) => value.clone(),
        }
    }

    /// Logs what the engine did.
    pub fn engine(&mut self, line: &EngineLine) {
        // What an agent can cause as often as it likes is not kept for ever.
        let weight = match line {
            EngineLine::Permission { .. } | EngineLine::Notice { .. } | EngineLine::Terminal { .. } => Weight::Agent,
            _ => Weight::Engine,
        };
        let line = WireLine::engine(self.now(), line);
        self.take(line, weight);
        self.log.flush();
    }

    /// A prompt is about to be sent: until it is answered, the limits hold.
    pub fn turn_begins(&mut self) {
        self.turns = self.translation.recorder().turns_ended() + 1;
        self.activity.1 = Instant::now();
    }

    /// Whether the prompt that was sent last is answered by what [`Session::next`] gave so far.
    pub fn is_turn_heard(&self) -> bool {
        self.turns_heard >= self.turns
    }

    /// The driver has all the answers it asked for: from here on nothing is an agent's failure to answer.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// The driver does not look into lines; it is only told that there was one.
    pub fn lines_are_not_looked_at(&mut self) {
        self.lines_wanted = false;
    }

    /// Number in the wire log of the last line that was sent.
    pub fn said_at(&self) -> u64 {
        self.said
    }

    /// Number in the wire log of the line that [`Session::next`] gave last.
    pub fn heard_at(&self) -> u64 {
        self.heard
    }

    /// Takes a line of a recorded session as if it came now from there.
    pub fn replay(&mut self, line: WireLine) {
        self.take(line, Weight::Engine);
    }

    /// Sends a line to the agent. A pipe that is closed is no error here: the agent's end shows where it is read.
    pub async fn send(&mut self, line: &str) {
        self.say(line, Weight::Ending).await;
    }

    /// Sends an answer to something that the agent asked.
    pub async fn reply(&mut self, line: &str) {
        self.say(line, Weight::Agent).await;
    }

    async fn say(&mut self, line: &str, weight: Weight) {
        let wire = WireLine::text(self.now(), Dir::Send, line);
        self.take(wire, weight);
        self.said = self.lines;
        self.log.flush();
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let Some(mut stdin) = self.process.as_mut().and_then(|process| process.stdin.take()) else { return };
        let begun = Instant::now();
        let mut sent = 0;
        while sent < bytes.len() {
            match timeout(Duration::from_millis(100), stdin.write(&bytes[sent..])).await {
                Ok(Ok(n)) if n > 0 => sent += n,
                // The other end is closed, and so is this one now.
                Ok(_) => return,
                Err(_) => {
                    // An agent that does not read must not hold the engine: what it writes is read while we wait.
                    self.check();
                    let over = self.ended.is_some() || !self.is_limited();
                    let over = over && begun.elapsed() > UNREAD;
                    let heard = self.queued > MAX_QUEUE || self.read_some(Duration::from_millis(10)).await;
                    if over || !heard || self.exit.is_some() {
                        let text = format!("the agent took {sent} of the {} bytes of a line and no more", bytes.len());
                        self.engine(&EngineLine::Notice { code: "not_delivered".to_owned(), text });
                        // What would follow half a line would not be read as a line.
                        return;
                    }
                }
            }
        }
        if let Some(process) = &mut self.process {
            process.stdin = Some(stdin);
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
            self.check();
            if let Some(end) = self.ended.filter(|_| !self.told) {
                self.told = true;
                return Incoming::End(end);
            }
            if let Some(id) = self.terminals_ended.pop_front() {
                return Incoming::Terminal(id);
            }
            if let Some(Heard { number, text, turns }) = self.queue.pop_front() {
                self.queued -= text.len();
                (self.heard, self.turns_heard) = (number, turns);
                return Incoming::Line(text);
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Incoming::Late;
            }
            if self.process.as_ref().is_none_or(|process| process.stdout.is_none()) {
                return Incoming::Closed;
            }
            self.read_once(deadline).await;
        }
    }

    /// Waits for something that is not the agent's, such as a person's answer or a model's: the agent is read meanwhile. The
    /// limits of figures hold, and those of time stand still, since the agent is not the one who takes it. A line of the
    /// agent's that the driver has not taken yet may withdraw it.
    pub async fn meanwhile<T>(
        &mut self,
        other: impl Future<Output = T>,
        withdraws: impl Fn(&str) -> bool,
    ) -> Meanwhile<T> {
        self.wait_begins();
        let came = self.wait_for(other, withdraws).await;
        self.wait_ends();
        came
    }

    async fn wait_for<T>(&mut self, other: impl Future<Output = T>, withdraws: impl Fn(&str) -> bool) -> Meanwhile<T> {
        let mut other = pin!(other);
        let mut looked_at = 0;
        loop {
            let new = self.queue.iter().filter(|line| line.number > looked_at).take(AHEAD);
            if new.clone().any(|line| withdraws(&line.text)) {
                return Meanwhile::Withdrawn;
            }
            looked_at = new.map(|line| line.number).last().unwrap_or(looked_at);
            if let Ok(done) = timeout(GLANCE, &mut other).await {
                return Meanwhile::Done(done);
            }
            self.check();
            let is_gone = self.process.as_ref().is_none_or(|process| process.stdout.is_none());
            if self.ended.is_some() || is_gone || self.is_turn_answered() {
                return Meanwhile::Over;
            }
            if self.queued <= MAX_QUEUE {
                self.read_some(GLANCE).await;
            }
        }
    }

    /// Ends the session's process: waits this long for it to exit by itself, then SIGTERM, then SIGKILL.
    pub async fn close(mut self, patience: Duration) -> Ended {
        self.end_process(patience).await;
        let (lines, bytes) = self.log.cut;
        if lines > 0 {
            let text = format!("{lines} lines of {bytes} bytes are neither in the wire log nor in the trace");
            self.notice("wire_cut", text);
        }
        if let Some(exit) = self.exit {
            self.took_exit(exit);
        }
        self.log.flush();
        Ended { session: self }
    }

    /// Ends the process between two turns, so that another one can go on with the agent's session.
    pub async fn end_for_another(&mut self, patience: Duration) {
        self.end_process(patience).await;
        if let Some(exit) = self.exit.take() {
            self.took_exit(exit);
        }
        self.engine(&EngineLine::Restart);
        (self.closing, self.held_on) = (false, false);
    }

    async fn end_process(&mut self, patience: Duration) {
        let until = Instant::now() + patience;
        self.closing = true;
        self.queue.clear();
        self.queued = 0;
        // Output after the end is still evidence, and a full pipe would keep the agent from exiting.
        while self.exit.is_none() && Instant::now() < until && !*self.interrupt.borrow() {
            let left = until.saturating_duration_since(Instant::now());
            if !self.read_some(left).await {
                break;
            }
        }
        let Some(mut process) = self.process.take() else { return };
        let mut signals = Vec::new();
        self.held_on = self.exit.is_none();
        if !self.held_on {
            process.group.settle().await;
        }
        // What its terminals run ends with it, also where it takes its time.
        let (ended, ()) = tokio::join!(process.group.end(|signal| signals.push(signal)), self.end_terminals());
        for signal in signals {
            self.engine(&EngineLine::Signal { signal: signal.to_owned(), after_exit: !self.held_on });
        }
        self.exit = self.exit.or(ended);
        let escaped = process.group.end_escaped().await;
        if escaped > 0 {
            self.engine(&EngineLine::Escaped { processes: escaped as u64 });
        }
        self.process = Some(process);
        self.read_rest().await;
        self.process = None;
    }

    fn took_exit(&mut self, exit: Exit) {
        let line = serde_json::to_string(&exit).unwrap_or_default();
        self.take(WireLine::text(self.now(), Dir::Exit, line), Weight::Engine);
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
            Terminal(String),
            Woken,
        }
        let exited = self.exit.is_some();
        let terminals = &mut self.terminals;
        let has_terminals = !terminals.is_empty();
        // Not in this order: a pipe that is never empty must not hide the others, nor that the agent is gone.
        let got = tokio::select! {
            read = read_from(stdout.as_mut(), &mut out), if stdout.is_some() => Got::Out(read),
            read = read_from(stderr.as_mut(), &mut err), if stderr.is_some() => Got::Err(read),
            exit = group.wait(), if !exited => Got::Exit(exit),
            id = terminals.next_end(), if has_terminals => Got::Terminal(id),
            Ok(()) = self.interrupt.changed(), if self.ended.is_none() => Got::Woken,
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
            Got::Terminal(id) => {
                self.tell_terminal(&id);
                self.terminals_ended.push_back(id);
            }
            Got::Woken => {}
        }
        self.buffers = (out, err);
    }

    /// The agent has exited: takes what is left in its pipes, and closes them.
    async fn read_rest(&mut self) {
        let until = Instant::now() + REST;
        for dir in [Dir::Recv, Dir::Stderr] {
            let mut buffer = vec![0u8; 64 << 10];
            while Instant::now() < until {
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
        let raw = (dir == Dir::Recv && !self.closing).then(|| {
            // The driver sees the line as it came; only what is written is masked.
            if self.lines_wanted { String::from_utf8_lossy(&line.bytes).into_owned() } else { String::new() }
        });
        let masked = match self.log.masker.mask_bytes(&line.bytes) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => line.bytes,
        };
        let wire = WireLine::owned(at, dir, masked, line.cut);
        let ends = dir == Dir::Recv && self.log.is_full() && self.translation.ends(&wire);
        self.take(wire, if ends { Weight::Ending } else { Weight::Agent });
        if let Some(line) = raw {
            self.queued += line.len();
            let turns = self.translation.recorder().turns_ended();
            self.queue.push_back(Heard { number: self.lines, text: line, turns });
        }
        // Judged line by line, so that it does not matter in which pieces they came.
        if dir == Dir::Recv
            && self.ended.is_none()
            && self.is_limited()
            && let Some((key, limit)) = self.figure_exceeded()
        {
            self.reached(key, limit);
        }
    }

    /// Logs a line and translates it. What is not in the log is not in the Trace, which follows from it alone.
    fn take(&mut self, mut line: WireLine, weight: Weight) {
        if let Cow::Owned(masked) = self.log.masker.mask(&line.line) {
            line.line = masked;
        }
        self.lines += 1;
        match self.log.write(&line, weight) {
            Written::Kept => self.translate(&line),
            Written::Last => {
                self.translate(&line);
                let most = self.log.most();
                let text =
                    format!("the wire log holds {most} bytes; from here on it takes what ends the session alone");
                self.notice("wire_full", text);
            }
            // It is no event, but the agent does something.
            Written::Cut => self.activity.1 = Instant::now(),
        }
    }

    /// Logs something that the user should know, of which there is only one.
    fn notice(&mut self, code: &str, text: String) {
        let line = EngineLine::Notice { code: code.to_owned(), text };
        let line = WireLine::engine(self.now(), &line);
        self.take(line, Weight::Engine);
    }

    fn translate(&mut self, line: &WireLine) {
        self.translation.line(line);
        for event in self.translation.drain() {
            (self.sink)(event);
        }
        let activity = self.translation.recorder().activity();
        if activity != self.activity.0 {
            self.activity = (activity, Instant::now());
        }
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
