//! Ends a session's process, and collects what remains of it.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;

use super::log::Weight;
use super::queue::Queue;
use super::{End, Process, Session};
use crate::engine_clock;
use crate::text::plural;
use crate::trace::recorder::{Finished, Recorder};
use crate::trace::{Exit, NoticeCode};
use crate::wire::{Dir, EngineLine, WireLine};

/// The exit of an agent of which it is unknown how it ended.
const UNKNOWN: Exit = Exit { code: None, signal: None };

/// The maximum number of bytes that are read while the agent is ended.
const MAX_BYTES_AT_END: usize = 32 << 20;

/// A session whose process has ended.
pub struct Ended {
    session: Session,
}

/// The cause of the end of an agent's process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProcessEnd {
    /// The agent exited by itself.
    #[default]
    ByItself,
    /// The engine ended it, because the agent did not exit by itself.
    ByEngine,
    /// The cause is unknown, because the supervisor of the process was lost.
    Unknown,
}

/// The results of a session, besides its trace.
#[derive(Debug, Clone, Default)]
pub struct SessionRemains {
    /// The last lines of the agent's standard error.
    pub stderr_tail: String,
    /// True if the user interrupted the session.
    pub interrupted: bool,
    /// The kind of error that kept the wire log from being written completely, if one occurred.
    pub log_failed: Option<std::io::ErrorKind>,
    /// The cause of the end of the agent's process.
    pub process_end: ProcessEnd,
    /// The exit of a process after whose answer the session went on in another one, if it is not a normal exit.
    pub bad_exit: Option<Exit>,
    /// True if another program changed the wire log during the session.
    pub wire_changed: bool,
    /// True if another program changed the file of the agent's standard error during the session.
    pub stderr_changed: bool,
    /// True if the wire log holds a secret that is complete only over several lines.
    pub split_secret: bool,
    /// The number of prompts that were sent.
    pub prompts: usize,
    /// The time from the session's beginning to its end.
    pub lasted: Duration,
}

impl Ended {
    /// Returns the recorder, which holds what is known of the session.
    pub fn recorder(&mut self) -> &mut Recorder {
        self.session.translation.recorder()
    }

    /// Logs a fact that the engine found after the process ended.
    pub fn engine(&mut self, line: &EngineLine) {
        self.session.engine(line);
    }

    /// Returns true if plain output or standard error holds a secret that is complete only over several lines.
    pub fn holds_split_secret(&mut self) -> bool {
        self.session.log.holds_split_secret()
    }

    /// Finishes the trace. Its last events go to the same sink as the others.
    pub fn finish(self) -> (Finished, SessionRemains) {
        let process_end = if self.session.lost_earlier { ProcessEnd::Unknown } else { self.session.process_end };
        let Session { started, mut translation, mut sink, mut log, ended, bad_exit, turn, .. } = self.session;
        // A replay begins no turns; its recording shows how many were answered.
        let answered = translation.recorder().turns() as usize;
        let prompts = turn.map_or(answered, |turn| turn.number);
        let finished = translation.finish_into(&mut sink);
        log.flush();
        let interrupted = ended == Some(End::Interrupted);
        let split_secret = log.holds_split_secret();
        // A log that could not be written is an error of its own.
        let is_whole = log.failed.is_none();
        let (wire_changed, stderr_changed) = (is_whole && log.is_wire_changed(), is_whole && log.is_stderr_changed());
        let (stderr_tail, log_failed) = (log.tail, log.failed);
        let lasted = started.elapsed();
        (
            finished,
            SessionRemains {
                stderr_tail,
                interrupted,
                log_failed,
                process_end,
                bad_exit,
                wire_changed,
                stderr_changed,
                split_secret,
                prompts,
                lasted,
            },
        )
    }
}

impl Session {
    /// Ends the session's process: waits this long for the process to exit by itself, then sends SIGTERM, then
    /// SIGKILL.
    pub async fn close(mut self, patience: Duration) -> Ended {
        self.report_stop();
        self.end_process(patience).await;
        let (lines, bytes) = self.log.cut;
        if lines > 0 {
            let text =
                format!("the wire log and the trace leave out {} of {}", plural(lines, "line"), plural(bytes, "byte"));
            self.notice(if self.log.lost { NoticeCode::WireCut } else { NoticeCode::StderrCut }, text);
        }
        if let Some(exit) = self.exit {
            self.took_exit(exit);
        }
        self.log.flush();
        Ended { session: self }
    }

    /// Ends the process between two turns, so that another process can continue the agent's session.
    pub async fn end_for_another(&mut self, patience: Duration) {
        self.end_process(patience).await;
        if let Some(exit) = self.exit.take() {
            self.took_exit(exit);
            let is_bad = exit.code != Some(0) && exit != UNKNOWN && self.process_end == ProcessEnd::ByItself;
            self.bad_exit = self.bad_exit.or(is_bad.then_some(exit));
        }
        self.engine(&EngineLine::Restart);
        self.lost_earlier |= self.process_end == ProcessEnd::Unknown;
        (self.closing, self.process_end) = (false, ProcessEnd::ByItself);
    }

    async fn end_process(&mut self, patience: Duration) {
        let until = engine_clock::now() + patience;
        self.closing = true;
        self.queue = Queue::default();
        // Output after the end is still evidence, and a full pipe would keep the agent from exiting.
        while self.exit.is_none() && engine_clock::now() < until && !*self.interrupt.borrow() {
            let remaining = until.saturating_duration_since(engine_clock::now());
            if !self.read_some(remaining).await {
                break;
            }
        }
        let Some(mut process) = self.process.take() else { return };
        let has_exited = self.exit.is_some();
        self.process_end = if has_exited { ProcessEnd::ByItself } else { ProcessEnd::ByEngine };
        if has_exited {
            process.group.settle().await;
        }
        let of_terminals = self.end_group(&mut process, has_exited).await;
        let escaped = process.group.end_escaped().await + of_terminals;
        // The engine may notice only now that the supervisor is gone.
        if process.group.lost_its_supervisor() {
            let text = "the agent's supervisor was ended or stopped from outside, so how the agent ended is unknown";
            self.notice(NoticeCode::SupervisorLost, text.to_owned());
            if *self.exit.get_or_insert(UNKNOWN) == UNKNOWN {
                self.process_end = ProcessEnd::Unknown;
            }
        }
        if escaped > 0 {
            self.engine(&EngineLine::Escaped { processes: escaped as u64 });
        }
        self.process = Some(process);
        self.read_rest().await;
        self.process = None;
    }

    /// Ends the process's group and the commands in the agent's terminals, and logs each line as it comes: the log shows what the
    /// agent wrote before and after each signal. Returns the number of processes that had left the groups of the terminals.
    async fn end_group(&mut self, process: &mut Process, has_exited: bool) -> usize {
        let Process { group, output, splitters, .. } = process;
        let (sent, mut signals) = unbounded_channel();
        let signal_line =
            |signal: &'static str| EngineLine::Signal { signal: signal.to_owned(), after_exit: has_exited };
        let mut ending = pin!(group.end(move |signal| _ = sent.send(signal)));
        // The commands in the agent's terminals are ended at the same time, so that a slow agent does not delay them.
        let (open, released) = self.finish_terminals();
        let (mut open, mut released) = (pin!(open), pin!(released));
        let (mut ended, mut of_open, mut of_released, mut read) = (None, None, None, 0);
        while ended.is_none() || of_open.is_none() || of_released.is_none() {
            tokio::select! {
                biased;
                Some(signal) = signals.recv() => self.engine(&signal_line(signal)),
                exit = &mut ending, if ended.is_none() => ended = Some(exit),
                (terminals, escaped) = &mut open, if of_open.is_none() => {
                    self.terminals_ended(terminals);
                    of_open = Some(escaped);
                }
                escaped = &mut released, if of_released.is_none() => of_released = Some(escaped),
                // A full pipe would keep the agent from ending by itself.
                (stream, bytes) = output.next(), if read < MAX_BYTES_AT_END => {
                    read += bytes.map_or(0, <[u8]>::len);
                    let lines = splitters.lines(stream, bytes);
                    self.took_lines(stream, lines);
                }
            }
        }
        while let Ok(signal) = signals.try_recv() {
            self.engine(&signal_line(signal));
        }
        self.exit = self.exit.or(ended.flatten());
        of_open.unwrap_or_default() + of_released.unwrap_or_default()
    }

    fn took_exit(&mut self, exit: Exit) {
        let line = serde_json::to_string(&exit).unwrap_or_default();
        self.take(WireLine::text(self.now(), Dir::Exit, line), Weight::Engine);
    }
}
