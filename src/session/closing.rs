//! Ends a session's process, and collects what remains of it.

use std::time::{Duration, Instant};

use super::log::Weight;
use super::{End, Session};
use crate::trace::Exit;
use crate::trace::recorder::{Finished, Recorder};
use crate::wire::{Dir, EngineLine, WireLine};

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
    /// Why the wire log could not be written whole, if it could not.
    pub log_failed: Option<std::io::ErrorKind>,
    /// The agent did not exit by itself; the engine ended it.
    pub held_on: bool,
    /// A secret is whole only over several lines of the wire log.
    pub split_secret: bool,
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

    /// Whether a secret is whole only over several lines of plain output or standard error.
    pub fn holds_split_secret(&mut self) -> bool {
        self.session.log.holds_split_secret()
    }

    /// Finishes the Trace; its last events go where the others went.
    pub fn finish(self) -> (Finished, Left) {
        let Session { translation, mut sink, mut log, ended, held_on, .. } = self.session;
        let finished = translation.finish_into(&mut sink);
        log.flush();
        let interrupted = ended == Some(End::Interrupted);
        let split_secret = log.holds_split_secret();
        (finished, Left { stderr_tail: log.tail, interrupted, log_failed: log.failed, held_on, split_secret })
    }
}

impl Session {
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

    pub(super) async fn end_process(&mut self, patience: Duration) {
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
        let (ended, of_terminals) =
            tokio::join!(process.group.end(|signal| signals.push(signal)), self.end_terminals());
        for signal in signals {
            self.engine(&EngineLine::Signal { signal: signal.to_owned(), after_exit: !self.held_on });
        }
        self.exit = self.exit.or(ended);
        let escaped = process.group.end_escaped().await + of_terminals;
        // That the supervisor is gone may be heard only now.
        if process.group.lost_its_supervisor() {
            let text = "the agent's supervisor was ended from outside, so how the agent ended is unknown".to_owned();
            self.notice("supervisor_lost", text);
        }
        if escaped > 0 {
            self.engine(&EngineLine::Escaped { processes: escaped as u64 });
        }
        self.process = Some(process);
        self.read_rest().await;
        self.process = None;
    }

    pub(super) fn took_exit(&mut self, exit: Exit) {
        let line = serde_json::to_string(&exit).unwrap_or_default();
        self.take(WireLine::text(self.now(), Dir::Exit, line), Weight::Engine);
    }
}
