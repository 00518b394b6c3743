//! A live session: one agent process, its wire log, its translation, and the limits it runs under.
//!
//! Drivers receive and send lines. Everything that crosses the process boundary is logged and translated here,
//! so that no driver can forget it.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::adapter::Translation;
use crate::interaction::Decision;
use crate::limits::Limits;
use crate::lines::Splitter;
use crate::process::{Group, Launch, Pipes, SpawnError, Stdin};
use crate::secrets::Masker;
use crate::trace::recorder::{DecidedBy, Recorder};
use crate::trace::{Event, Exit};
use crate::values::Time;
use crate::wire::{Dir, EngineLine, WireLine};

mod closing;
mod limits;
mod log;
mod reading;
pub mod terminals;
#[cfg(test)]
mod tests;
mod turn;

pub use closing::Left;
use log::{Log, Weight};
use terminals::Terminals;
pub use turn::Turn;

/// Bytes of a Trial's wire log; what comes after is not kept.
pub const MAX_WIRE: u64 = 1 << 30;

/// The time limit of a case that has none: a night's run must not stand still for one trial.
pub const DEFAULT_TIME: Time = Time(Duration::from_secs(30 * 60));

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
    /// Whether no driver waits for lines any more.
    closing: bool,
    /// Lines of the wire log so far; the numbers of the last that the driver sent and took.
    lines: u64,
    said: u64,
    heard: u64,
    /// What the agent did so far, as the recorder counts it.
    activity: u64,
    /// How long others than the agent were waited for, and since when somebody is.
    waited: (Duration, Option<Instant>),
    /// The turn that began last.
    turn: Option<Turn>,
    cancelled: bool,
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
    terminals_left: Vec<terminals::Released>,
    /// Terminals whose commands have ended and of which the driver was not told yet.
    terminals_ended: VecDeque<String>,
}

/// A line that waits for the driver.
struct Heard {
    /// Its number in the wire log.
    number: u64,
    text: String,
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

/// The result of waiting for something other than the agent.
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
            activity: 0,
            waited: (Duration::ZERO, None),
            turn: None,
            cancelled: false,
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
    pub async fn spawn(
        &mut self,
        launch: &Launch,
        folder: &Path,
        env: &BTreeMap<String, String>,
        stdin: Stdin,
    ) -> Result<(), SpawnError> {
        let mut group = Group::spawn(launch, folder, env, stdin).await.inspect_err(|error| {
            self.engine(&EngineLine::NotStarted { category: error.category, message: error.message.clone() });
        })?;
        let Pipes { stdin, stdout, stderr } = group.pipes();
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

    /// Logs who decided about a request of the agent, and why; the answer follows.
    pub fn decided(&mut self, id: &Value, decision: &Decision) {
        let DecidedBy { policy, rule, reason } = decision.by.clone();
        self.engine(&EngineLine::Permission { id: id.clone(), policy: policy.unwrap_or_default(), rule, reason });
        if let Some(text) = decision.notice.clone() {
            let code = if self.cancelled { "late_request" } else { "permission" };
            self.engine(&EngineLine::Notice { code: code.to_owned(), text });
        }
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
                        let text = format!("the agent read only {sent} of the {} bytes of a line", bytes.len());
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
            if let Some(Heard { number, text }) = self.queue.pop_front() {
                self.queued -= text.len();
                self.heard = number;
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

    fn now(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }
}
