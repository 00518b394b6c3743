//! A turn: one prompt, and what is known of it until it is over.

use std::time::{Duration, Instant};

use super::Session;
use crate::wire::EngineLine;

/// A prompt of the user, and what came of it so far.
#[derive(Debug, Clone)]
pub struct Turn {
    /// Its number, from 1.
    pub number: usize,
    /// What the agent is told.
    pub prompt: String,
    /// The driver waits for its answer.
    running: bool,
    /// The last line of the wire log before it: what came until then belongs to what came before.
    after: u64,
    /// The line of the wire log by which the agent answered.
    answered: Option<u64>,
    /// When the agent last did something, or was given the prompt.
    active: Instant,
}

impl Turn {
    /// A turn that has not begun.
    pub fn new(number: usize, prompt: String) -> Self {
        Self { number, prompt, running: false, after: 0, answered: None, active: Instant::now() }
    }

    /// The turns with these prompts.
    pub fn all(prompts: &[String]) -> Vec<Self> {
        prompts.iter().cloned().zip(1..).map(|(prompt, number)| Self::new(number, prompt)).collect()
    }

    /// Whether a line that the driver took is a part of it.
    fn holds(&self, line: u64) -> bool {
        self.running && line > self.after
    }

    /// How long the agent may still do nothing.
    pub(super) fn idle_at(&self, idle: Duration) -> Instant {
        self.active + idle
    }
}

impl Session {
    /// The prompt of this turn is about to be sent: until it is answered, the limits hold.
    pub fn begin_turn(&mut self, turn: Turn) {
        self.turn = Some(Turn { running: true, after: self.lines, active: Instant::now(), ..turn });
    }

    /// The driver has the answer to the prompt.
    pub fn end_turn(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.running = false;
        }
    }

    /// Logs that the engine cancels what is running; returns false if no prompt is. The driver tells the agent.
    pub fn cancel_turn(&mut self) -> bool {
        // What was printed until then is the output of calls that are cancelled now.
        self.tell_terminals();
        self.engine(&EngineLine::Cancel);
        self.cancelled = true;
        self.turn.as_mut().is_some_and(|turn| std::mem::take(&mut turn.running))
    }

    /// Whether a prompt is running.
    pub fn is_prompting(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.running)
    }

    /// Whether the turn was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// Whether no turn follows: the last was answered or cancelled.
    pub fn is_over(&self) -> bool {
        self.cancelled || self.answered
    }

    /// Whether the line that [`Session::next`] gave last came while the prompt is running: one that waited while the prompt
    /// was sent belongs to what came before.
    pub fn is_of_turn(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.holds(self.heard))
    }

    /// Whether that line came when its turn was over.
    pub fn is_late(&self) -> bool {
        let is_late = |turn: &Turn| !turn.holds(self.heard) && (turn.number > 1 || !turn.running);
        self.is_over() || self.turn.as_ref().is_some_and(is_late)
    }

    /// Whether the prompt is answered by what [`Session::next`] gave so far.
    pub fn is_turn_heard(&self) -> bool {
        self.turn.as_ref().and_then(|turn| turn.answered).is_some_and(|line| line <= self.heard)
    }

    /// Whether the agent has answered the prompt, be its answer taken by the driver or not.
    pub fn is_turn_answered(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.answered.is_some())
    }

    /// The last line of the wire log ends the turn.
    pub(super) fn turn_answered(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.answered.get_or_insert(self.lines);
        }
    }

    /// The agent does something.
    pub(super) fn turn_is_active(&mut self) {
        if let Some(turn) = &mut self.turn {
            turn.active = Instant::now();
        }
    }

    /// Others than the agent were waited for. What it did meanwhile is later than the wait's beginning, and no clock runs
    /// ahead.
    pub(super) fn turn_waited(&mut self, waited: Duration) {
        if let Some(turn) = &mut self.turn {
            turn.active = (turn.active + waited).min(Instant::now());
        }
    }
}
