//! A live session: one agent process, its wire log, its translation, and the limits it runs under.
//!
//! Drivers receive and send lines. Everything that crosses the process boundary is logged and translated here,
//! so that no driver can forget it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::process::ChildStdin;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::adapter::Translation;
use crate::engine_clock;
use crate::interaction::Decision;
use crate::limits::{LimitKey, Limits};
use crate::lines::{Line, Splitter};
use crate::process::{Group, Launch, Output, Pipes, SpawnError, Stdin, Stream};
use crate::secrets::Masker;
use crate::trace::recorder::{DecidedBy, Recorder};
use crate::trace::{Event, Exit, NoticeCode};
use crate::values::Time;
use crate::wire::{Dir, EngineLine, WireLine};

mod closing;
mod limits;
mod log;
mod queue;
mod reading;
pub mod terminals;
#[cfg(test)]
mod tests;
mod turn;

pub use closing::{Ended, ProcessEnd, SessionRemains};
use log::{Log, Weight};
use queue::{Queue, ReceivedLine};
use terminals::Terminals;
pub use turn::Turn;

/// The maximum size of a trial's wire log in bytes. Beyond it, only lines that say how the session ends are kept.
pub const MAX_WIRE: u64 = 1 << 30;

/// The default time limit of a trial: without one, a single trial could hold up a run overnight.
pub const DEFAULT_TIME: Time = Time(Duration::from_secs(30 * 60));

/// The maximum time for sending a line to an agent that does not read, once the session is over.
const UNREAD: Duration = Duration::from_secs(1);

/// The time for which one of two events is awaited before the other one is awaited again.
const GLANCE: Duration = Duration::from_millis(50);

/// The maximum number of queued lines that are checked at once for the withdrawal of a request that is being decided.
const AHEAD: usize = 100;

/// A live session.
pub struct Session {
    /// The beginning, by the engine's clock, as all times of limits.
    begun: Instant,
    /// The beginning, by the system's clock, as the times of lines and events.
    started: Instant,
    /// The time for which the engine was stopped, as far as the wire log reports it.
    stopped: Duration,
    log: Log,
    translation: Translation,
    sink: Box<dyn FnMut(Event) + Send>,
    limits: Limits,
    interrupt: watch::Receiver<bool>,
    /// Gets a limit that was exceeded elsewhere.
    limit: Option<LimitElsewhere>,
    process: Option<Process>,
    queue: Queue,
    /// True if the process is being ended, so that lines are no longer queued for the driver.
    closing: bool,
    /// The number of lines in the wire log so far. `last_sent` and `last_received` are the numbers of the last line that
    /// was sent, and of the last line that [`Session::next`] returned.
    lines: u64,
    last_sent: u64,
    last_received: u64,
    /// The agent's activity so far, as the recorder counts it.
    activity: u64,
    /// The total time of waits for something other than the agent, and the start of such a wait if one is in
    /// progress.
    waited: (Duration, Option<Instant>),
    /// The last turn that began.
    turn: Option<Turn>,
    cancelled: bool,
    ended: Option<End>,
    /// True if the driver knows that the engine ends the session.
    is_end_reported: bool,
    answered: bool,
    /// True if the agent reports that a sub-agent works beside its turns, so that requests outlive the turn.
    has_sub_agents: bool,
    /// True if the driver waits for work that goes on after the last answer.
    goes_on: bool,
    exit: Option<Exit>,
    process_end: ProcessEnd,
    /// The exit of an earlier process of the session, if it is not a normal exit.
    bad_exit: Option<Exit>,
    /// True if it is unknown how an earlier process of the session ended.
    lost_earlier: bool,
    lines_wanted: bool,
    terminals: Terminals,
}

struct Process {
    group: Group,
    stdin: Option<ChildStdin>,
    output: Output,
    splitters: Splitters,
}

/// The output of a process as far as it is no whole line yet.
#[derive(Default)]
struct Splitters {
    stdout: Splitter,
    stderr: Splitter,
}

impl Splitters {
    /// Returns the lines that end in these bytes, or the last line of a stream that has ended.
    fn lines(&mut self, stream: Stream, bytes: Option<&[u8]>) -> Vec<Line> {
        let splitter = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let mut lines = Vec::new();
        match bytes {
            Some(bytes) => splitter.push(bytes, |line| lines.push(line)),
            None => lines.extend(splitter.rest()),
        }
        lines
    }
}

/// The result of waiting for the agent.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    /// A line from the agent, as received: secrets are not redacted.
    Line(String),
    /// The agent's standard output is closed, or its process is gone.
    Closed,
    /// Nothing came within the time that the driver gave.
    Late,
    /// The engine ends the session.
    End(End),
    /// The command in this terminal has ended, and its output is in the wire log.
    Terminal(String),
}

/// The result of waiting for something other than the agent.
#[derive(Debug)]
pub enum Meanwhile<T> {
    /// The awaited result.
    Done(T),
    /// The agent withdrew its request, so the result is no longer needed.
    Withdrawn,
    /// The session or the turn ended before the result was there.
    Over,
}

/// The reason why the engine ends a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A limit of the case was reached.
    Limit,
    /// The user interrupted the run.
    Interrupted,
}

/// The name and the value of a limit that was exceeded elsewhere.
pub type LimitElsewhere = watch::Receiver<Option<(LimitKey, String)>>;

/// The settings of a new session.
pub struct Setup {
    /// The path of the wire log.
    pub wire: PathBuf,
    /// The path of the file for the agent's standard error.
    pub stderr: PathBuf,
    /// Redacts secrets before anything is written to disk.
    pub masker: Arc<Masker>,
    /// The limits of the case.
    pub limits: Limits,
    /// Becomes true when the user interrupts the run.
    pub interrupt: watch::Receiver<bool>,
    /// Gets a limit that was exceeded elsewhere, such as in the gateway.
    pub limit: Option<LimitElsewhere>,
    /// Takes each event once it can no longer change.
    pub sink: Box<dyn FnMut(Event) + Send>,
    /// The maximum size of the wire log in bytes, normally [`MAX_WIRE`]. Beyond it, only lines that say how the
    /// session ends are kept.
    pub max_wire: u64,
}

impl Session {
    /// Begins a session and starts its clock.
    ///
    /// # Errors
    /// Returns an error if the wire log could not be created.
    pub fn begin(setup: Setup, translation: Translation) -> io::Result<Self> {
        Ok(Self {
            begun: engine_clock::now(),
            started: Instant::now(),
            stopped: engine_clock::stopped(),
            log: Log::create(&setup.wire, &setup.stderr, setup.masker, setup.max_wire)?,
            translation,
            sink: setup.sink,
            limits: setup.limits,
            interrupt: setup.interrupt,
            limit: setup.limit,
            process: None,
            queue: Queue::default(),
            closing: false,
            lines: 0,
            last_sent: 0,
            last_received: 0,
            activity: 0,
            waited: (Duration::ZERO, None),
            turn: None,
            cancelled: false,
            ended: None,
            is_end_reported: false,
            answered: false,
            has_sub_agents: false,
            goes_on: false,
            exit: None,
            process_end: ProcessEnd::ByItself,
            bad_exit: None,
            lost_earlier: false,
            lines_wanted: true,
            terminals: Terminals::default(),
        })
    }

    /// Starts the agent's process. A failure is logged and returned.
    ///
    /// # Errors
    /// Returns an error if the program was not found or could not be started.
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
        let Pipes { stdin, output } = group.pipes();
        self.process = Some(Process { group, stdin, output, splitters: Splitters::default() });
        Ok(())
    }

    /// Returns the recorder, which holds what is known of the session so far.
    pub fn recorder(&mut self) -> &mut Recorder {
        self.translation.recorder()
    }

    /// Returns a value with its secrets redacted, as the trace shows it, or null if the redacted text is not valid
    /// JSON.
    pub fn masked(&self, value: &Value) -> Value {
        let text = value.to_string();
        match self.log.masker.mask(&text) {
            Cow::Owned(masked) => serde_json::from_str(&masked).unwrap_or_default(),
            Cow::Borrowed(_) => value.clone(),
        }
    }

    /// Logs an action of the engine.
    pub fn engine(&mut self, line: &EngineLine) {
        // Lines that the agent can cause without limit are dropped when the log is full.
        let weight = match line {
            EngineLine::Permission { .. }
            | EngineLine::Followed { .. }
            | EngineLine::Notice { .. }
            | EngineLine::Terminal { .. } => Weight::Agent,
            _ => Weight::Engine,
        };
        let line = WireLine::engine(self.now(), line);
        self.take(line, weight);
        self.log.flush();
    }

    /// Logs who decided about a request of the agent, and why. The answer is sent afterwards.
    pub fn decided(&mut self, id: &Value, decision: &Decision) {
        let DecidedBy { policy, rule, reason, rejects } = decision.by.clone();
        let (id, policy) = (id.clone(), policy.unwrap_or_default());
        self.engine(&EngineLine::Permission { id, policy, rule, reason, rejects });
        if let Some(text) = decision.notice.clone() {
            let code = if self.cancelled { NoticeCode::LateRequest } else { NoticeCode::Permission };
            self.engine(&EngineLine::Notice { code, text });
        }
    }

    /// Records that the driver has all the answers it asked for. From here on, a missing answer is not the agent's
    /// failure.
    pub fn answered(&mut self) {
        self.answered = true;
    }

    /// Records whether a sub-agent works beside the agent's turns. If so, the end of a turn does not end the wait for the
    /// answer to a request.
    pub fn set_has_sub_agents(&mut self, has_sub_agents: bool) {
        self.has_sub_agents = has_sub_agents;
    }

    /// Records whether the driver waits for work that goes on after the last answer. If so, the time limits apply.
    pub fn set_goes_on(&mut self, goes_on: bool) {
        self.goes_on = goes_on;
    }

    /// Returns true if a limit was reached or the user interrupted the run.
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Declares that the driver does not read the text of lines. [`Session::next`] then returns empty lines.
    pub fn lines_are_not_looked_at(&mut self) {
        self.lines_wanted = false;
    }

    /// Returns the number in the wire log of the last line that was sent.
    pub fn last_sent(&self) -> u64 {
        self.last_sent
    }

    /// Returns the number in the wire log of the last line that [`Session::next`] returned.
    pub fn last_received(&self) -> u64 {
        self.last_received
    }

    /// Logs and translates a line of a recorded session.
    pub fn replay(&mut self, line: WireLine) {
        self.take(line, Weight::Engine);
    }

    /// Sends a line to the agent. A closed pipe is no error here: the agent's end is noticed when its output is read.
    pub async fn send(&mut self, line: &str) {
        self.say(line, Weight::Ending).await;
    }

    /// Sends the answer to a request of the agent.
    pub async fn reply(&mut self, line: &str) {
        self.say(line, Weight::Agent).await;
    }

    async fn say(&mut self, line: &str, weight: Weight) {
        let wire = WireLine::text(self.now(), Dir::Send, line);
        self.take(wire, weight);
        self.last_sent = self.lines;
        self.log.flush();
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let Some(mut stdin) = self.process.as_mut().and_then(|process| process.stdin.take()) else { return };
        let begun = engine_clock::now();
        let mut sent = 0;
        while sent < bytes.len() {
            match timeout(Duration::from_millis(100), stdin.write(&bytes[sent..])).await {
                Ok(Ok(n)) if n > 0 => sent += n,
                // The agent has closed its end of the pipe. Returning closes this end.
                Ok(_) => return,
                Err(_) => {
                    // An agent that does not read its input must not block the engine: its output is read meanwhile.
                    self.check();
                    let gives_up = self.ended.is_some() || !self.is_limited();
                    let gives_up = gives_up && engine_clock::now().saturating_duration_since(begun) > UNREAD;
                    let reads = self.queue.is_full() || self.read_some(Duration::from_millis(10)).await;
                    if gives_up || !reads || self.exit.is_some() {
                        let text = format!("the agent read only {sent} of the {} bytes of a line", bytes.len());
                        self.engine(&EngineLine::Notice { code: NoticeCode::NotDelivered, text });
                        // Anything sent after half a line could not be read as a line, so standard input is closed.
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

    /// Waits for the next line, for the end of the agent or of a terminal's command, or for a limit, but no longer
    /// than `within`.
    pub async fn next(&mut self, within: Option<Duration>) -> Incoming {
        let deadline = within.map(|within| engine_clock::now() + within);
        loop {
            self.check();
            if let Some(end) = self.ended.filter(|_| !self.is_end_reported) {
                self.is_end_reported = true;
                return Incoming::End(end);
            }
            if let Some(id) = self.terminals.reported.pop_front() {
                return Incoming::Terminal(id);
            }
            if let Some(ReceivedLine { number, text }) = self.queue.pop() {
                self.last_received = number;
                return Incoming::Line(text);
            }
            if deadline.is_some_and(|deadline| engine_clock::now() >= deadline) {
                return Incoming::Late;
            }
            if !self.has_output() {
                return Incoming::Closed;
            }
            self.read_once(deadline).await;
        }
    }

    /// Waits for something other than the agent, such as the answer of a person or of a model, and reads the agent's
    /// output meanwhile. Time limits are suspended, because the agent does not cause the delay; the other limits
    /// apply. The wait ends if `withdraws` returns true for a line that the driver has not taken yet.
    pub async fn meanwhile<T>(
        &mut self,
        other: impl Future<Output = T>,
        withdraws: impl Fn(&str) -> bool,
    ) -> Meanwhile<T> {
        self.wait_begins();
        let outcome = self.wait_for(other, withdraws).await;
        self.wait_ends();
        outcome
    }

    async fn wait_for<T>(&mut self, other: impl Future<Output = T>, withdraws: impl Fn(&str) -> bool) -> Meanwhile<T> {
        let mut other = pin!(other);
        let mut last_checked = 0;
        loop {
            let new = self.queue.after(last_checked).take(AHEAD);
            if new.clone().any(|line| withdraws(&line.text)) {
                return Meanwhile::Withdrawn;
            }
            last_checked = new.map(|line| line.number).last().unwrap_or(last_checked);
            if let Ok(done) = timeout(GLANCE, &mut other).await {
                return Meanwhile::Done(done);
            }
            self.check();
            let is_answered = self.is_turn_answered() && !self.has_sub_agents && !self.goes_on;
            if self.ended.is_some() || !self.has_output() || is_answered {
                return Meanwhile::Over;
            }
            if !self.queue.is_full() {
                self.read_some(GLANCE).await;
            }
        }
    }

    /// Returns true if the agent's standard output is open.
    fn has_output(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.output.is_open(Stream::Stdout))
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}
