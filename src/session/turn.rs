//! A turn: one prompt, and the state of the session until the prompt is answered.

use std::time::{Duration, Instant};

use super::Session;
use crate::adapter::EndReport;
use crate::engine_clock;
use crate::wire::EngineLine;

/// A prompt of the user, and the state of its turn.
#[derive(Debug, Clone)]
pub struct Turn {
    /// The number of the turn, from 1.
    pub number: usize,
    /// The text of the prompt.
    pub prompt: String,
    /// True while the driver waits for the answer to the prompt.
    running: bool,
    /// The number of the last line in the wire log before the turn. Lines up to this one do not belong to the turn.
    after: u64,
    /// The number of the line in the wire log by which the agent answered the prompt.
    answered: Option<u64>,
    /// The time of the agent's last activity, or of the start of the turn.
    active: Instant,
}

impl Turn {
    /// Makes a turn that has not begun.
    pub fn new(number: usize, prompt: String) -> Self {
        Self { number, prompt, running: false, after: 0, answered: None, active: engine_clock::now() }
    }

    /// Makes the turns with these prompts.
    pub fn all(prompts: &[String]) -> Vec<Self> {
        prompts.iter().cloned().zip(1..).map(|(prompt, number)| Self::new(number, prompt)).collect()
    }

    /// Returns true if the turn is running and the line with this number belongs to it.
    fn holds(&self, line: u64) -> bool {
        self.running && line > self.after
    }

    /// Returns the time at which the agent will have been idle for `idle`.
    pub(super) fn idle_at(&self, idle: Duration) -> Instant {
        self.active + idle
    }
}

impl Session {
    /// Begins a turn, just before its prompt is sent. The limits apply until the agent has answered the prompt.
    pub fn begin_turn(&mut self, turn: Turn) {
        self.turn = Some(Turn { running: true, after: self.lines, active: engine_clock::now(), ..turn });
    }

    /// Ends the turn, because the driver has the answer to the prompt.
    pub fn end_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.running = false;
        }
    }

    /// Logs that the engine cancels the running turn. Returns false if no prompt is running. The driver sends the
    /// cancellation to the agent.
    pub fn cancel_turn(&mut self) -> bool {
        // Output up to now belongs to the calls that are cancelled.
        self.tell_terminals();
        self.engine(&EngineLine::Cancel);
        self.cancelled = true;
        self.turn.as_mut().is_some_and(|turn| std::mem::take(&mut turn.running))
    }

    /// Returns true if a prompt is running.
    pub fn is_prompting(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.running)
    }

    /// Returns true if the turn was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Returns true if no further turn follows, because the last one was answered or a turn was cancelled.
    pub fn is_over(&self) -> bool {
        self.cancelled || self.answered
    }

    /// Returns true if the line that [`Session::next`] last returned came while the prompt was running. A line that
    /// was already queued when the turn began came before the prompt.
    pub fn is_of_turn(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.holds(self.last_received))
    }

    /// Returns true if the line that [`Session::next`] last returned came after its turn was over.
    pub fn is_late(&self) -> bool {
        let is_late = |turn: &Turn| !turn.holds(self.last_received) && (turn.number > 1 || !turn.running);
        self.is_over() || self.turn.as_ref().is_some_and(is_late)
    }

    /// Returns how the agent ended its last turn, if the protocol reports the end of each turn.
    pub fn turn_end(&self) -> &EndReport {
        self.translation.turn_end()
    }

    /// Returns true if the answer to the prompt is among the lines that [`Session::next`] has returned.
    pub fn has_received_answer(&self) -> bool {
        self.turn.as_ref().and_then(|turn| turn.answered).is_some_and(|line| line <= self.last_received)
    }

    /// Returns true if the agent has answered the prompt, even if the driver has not taken the answer yet.
    pub fn is_turn_answered(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.answered.is_some())
    }

    /// Records that the last line of the wire log answers the prompt.
    pub fn turn_answered(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.answered.get_or_insert(self.lines);
        }
    }

    /// Records that the agent is active.
    pub(super) fn turn_is_active(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.active = engine_clock::now();
        }
    }

    /// Adds the time of a wait for something other than the agent to the time of the agent's last activity. If the
    /// agent was active during the wait, the sum would lie in the future; then it is the current time.
    pub(super) fn turn_waited(&mut self, waited: Duration) {
        if let Some(turn) = &mut self.turn {
            turn.active = (turn.active + waited).min(engine_clock::now());
        }
    }
}
