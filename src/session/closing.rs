//! Ends a session's process, and collects what remains of it.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::log::Weight;
use super::{End, Process, Session};
use crate::engine_clock;
use crate::trace::Exit;
use crate::trace::recorder::{Finished, Recorder};
use crate::wire::{Dir, EngineLine, WireLine};

/// The exit of an agent of which it is unknown how it ended.
const UNKNOWN: Exit = Exit { code: None, signal: None };

/// The maximum number of bytes that are read of each pipe while the agent is ended.
const MOST_AT_END: usize = 16 << 20;

/// A session whose process has ended.
pub struct Ended {
    session: Session,
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
    /// True if the agent did not exit by itself and the engine ended it.
    pub held_on: bool,
    /// True if it is unknown how the agent's process ended, because its supervisor was lost.
    pub lost_exit: bool,
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
        let Session { started, mut translation, mut sink, mut log, ended, held_on, lost_exit, bad_exit, turn, .. } =
            self.session;
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
                held_on,
                lost_exit,
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
            let text = format!("{lines} lines of {bytes} bytes are neither in the wire log nor in the trace");
            self.notice("wire_cut", text);
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
            let is_bad = exit.code != Some(0) && exit != UNKNOWN && !self.held_on;
            self.bad_exit = self.bad_exit.or(is_bad.then_some(exit));
        }
        self.engine(&EngineLine::Restart);
        (self.closing, self.held_on, self.lost_exit) = (false, false, false);
    }

    pub(super) async fn end_process(&mut self, patience: Duration) {
        let until = engine_clock::now() + patience;
        self.closing = true;
        self.queue.clear();
        self.queued = 0;
        // Output after the end is still evidence, and a full pipe would keep the agent from exiting.
        while self.exit.is_none() && engine_clock::now() < until && !*self.interrupt.borrow() {
            let left = until.saturating_duration_since(engine_clock::now());
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
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let Process { group, stdout, stderr, .. } = &mut process;
        // The commands in the agent's terminals are ended at the same time, so that a slow agent does not delay them.
        let ending = async { tokio::join!(group.end(|signal| signals.push(signal)), self.end_terminals()) };
        let reading = async {
            tokio::join!(collect(stdout.as_mut(), &mut out), collect(stderr.as_mut(), &mut err));
            std::future::pending::<(Option<Exit>, usize)>().await
        };
        let (ended, of_terminals) = tokio::select! {
            ended = ending => ended,
            never = reading => never,
        };
        for signal in signals {
            self.engine(&EngineLine::Signal { signal: signal.to_owned(), after_exit: !self.held_on });
        }
        self.exit = self.exit.or(ended);
        let escaped = process.group.end_escaped().await + of_terminals;
        // The engine may notice only now that the supervisor is gone.
        if process.group.lost_its_supervisor() {
            let text = "the agent's supervisor was ended or stopped from outside, so how the agent ended is unknown";
            self.notice("supervisor_lost", text.to_owned());
            self.lost_exit = self.exit.is_none_or(|exit| exit == UNKNOWN);
            self.exit = self.exit.or(Some(UNKNOWN));
        }
        if escaped > 0 {
            self.engine(&EngineLine::Escaped { processes: escaped as u64 });
        }
        self.process = Some(process);
        self.took(Dir::Recv, &out);
        self.took(Dir::Stderr, &err);
        self.read_rest().await;
        self.process = None;
    }

    pub(super) fn took_exit(&mut self, exit: Exit) {
        let line = serde_json::to_string(&exit).unwrap_or_default();
        self.take(WireLine::text(self.now(), Dir::Exit, line), Weight::Engine);
    }
}

/// Reads a pipe to its end, at most [`MOST_AT_END`] bytes: a full pipe would keep the agent from ending by itself.
async fn collect(pipe: Option<&mut (impl AsyncRead + Unpin)>, read: &mut Vec<u8>) {
    let Some(pipe) = pipe else { return };
    let mut buffer = vec![0; 16 << 10];
    while read.len() < MOST_AT_END {
        match pipe.read(&mut buffer).await {
            Ok(n) if n > 0 => read.extend_from_slice(&buffer[..n]),
            _ => return,
        }
    }
}
