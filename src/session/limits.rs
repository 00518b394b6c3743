//! Ends a session at a limit of the case, or when the user interrupts it.

use std::time::{Duration, Instant};

use super::{DEFAULT_TIME, End, Session};
use crate::engine_clock;
use crate::judgement::tolerance;
use crate::limits::{Dollars, LimitKey};
use crate::wire::EngineLine;

impl Session {
    /// Ends the session if the user interrupted the run or a time limit is exceeded.
    pub(super) fn check(&mut self) {
        self.report_stop();
        if self.ended.is_some() {
            return;
        }
        if *self.interrupt.borrow() {
            self.ended = Some(End::Interrupted);
            self.engine(&EngineLine::Interrupted);
        } else if let Some((key, limit)) = self.exceeded() {
            self.reached(key, limit);
        }
    }

    /// Logs that the engine itself was stopped. The clock of the limits stood still meanwhile.
    pub(super) fn report_stop(&mut self) {
        let stopped = engine_clock::stopped();
        let ms = stopped.saturating_sub(self.stopped).as_millis() as u64;
        self.stopped = stopped;
        if ms > 0 {
            self.engine(&EngineLine::Stopped { ms });
        }
    }

    /// Returns the exceeded limit that ends the session. Time limits end it only until the last answer. If work goes on
    /// after that answer, the driver ends this work at the time limit, because the prompts were answered in time.
    fn exceeded(&mut self) -> Option<(LimitKey, String)> {
        let elsewhere = if self.is_timed() { self.exceeded_elsewhere() } else { None };
        elsewhere.or_else(|| if self.is_limited() { self.time_exceeded(engine_clock::now()) } else { None })
    }

    /// Ends the session if its turns so far exceed a limit: figures in the answer to a prompt count before the next prompt is
    /// sent. Returns true if the session has ended. The driver then closes the agent's input, because there is no prompt to
    /// cancel.
    pub fn ends_before_turn(&mut self) -> bool {
        if self.ended.is_none() {
            let exceeded = self.figure_exceeded().or_else(|| self.exceeded_elsewhere());
            if let Some((key, limit)) = exceeded.or_else(|| self.time_exceeded(engine_clock::now())) {
                self.reached(key, limit);
                self.is_end_reported = true;
            }
        }
        self.ended.is_some()
    }

    fn exceeded_elsewhere(&self) -> Option<(LimitKey, String)> {
        self.limit.as_ref()?.borrow().clone()
    }

    pub(super) fn reached(&mut self, key: LimitKey, limit: String) {
        self.ended = Some(End::Limit);
        self.engine(&EngineLine::Limit { key: key.word().to_owned(), limit });
    }

    /// Returns true if the limits apply: until the agent has answered. Figures in the answer itself are checked later.
    pub(super) fn is_limited(&self) -> bool {
        !self.answered && !self.closing && !self.is_turn_answered()
    }

    /// Returns true if limits that the gateway enforces apply: until the agent has answered, and while work goes on after the
    /// last answer.
    pub(super) fn is_timed(&self) -> bool {
        self.is_limited() || (self.goes_on && !self.closing)
    }

    /// Returns the first exceeded limit of steps, tool calls, tokens or cost, with its value.
    pub(super) fn figure_exceeded(&mut self) -> Option<(LimitKey, String)> {
        let recorder = self.translation.recorder();
        let limits = &self.limits;
        let exceeded =
            |limit: Option<u64>, value: u64| limit.filter(|limit| value > *limit).map(|limit| limit.to_string());
        if let Some(limit) = exceeded(limits.steps, recorder.step_count()) {
            return Some((LimitKey::Steps, limit));
        }
        if let Some(limit) = exceeded(limits.tool_calls, recorder.call_count()) {
            return Some((LimitKey::ToolCalls, limit));
        }
        let usage = recorder.usage_total();
        if let Some(limit) = usage.tokens().and_then(|tokens| exceeded(limits.tokens, tokens.value())) {
            return Some((LimitKey::Tokens, limit));
        }
        let most = limits.cost_usd.map(Dollars::get);
        let limit =
            most.filter(|limit| usage.cost_usd().is_some_and(|cost| tolerance::exceeds(cost.value(), *limit)))?;
        Some((LimitKey::CostUsd, limit.to_string()))
    }

    /// Stops the agent's clocks at the start of a wait for something other than the agent.
    pub(super) fn wait_begins(&mut self) {
        self.waited.1 = Some(engine_clock::now());
    }

    /// Starts the agent's clocks again.
    pub(super) fn wait_ends(&mut self) {
        if let Some(since) = self.waited.1.take() {
            let waited = engine_clock::now().saturating_duration_since(since);
            self.waited.0 += waited;
            self.turn_waited(waited);
        }
    }

    /// Returns the first exceeded time limit with its value. During a wait for something other than the agent, no
    /// time limit is exceeded.
    fn time_exceeded(&mut self, now: Instant) -> Option<(LimitKey, String)> {
        if self.waited.1.is_some() {
            return None;
        }
        if self.time_is_up() <= now {
            return Some((LimitKey::Time, self.limits.time.unwrap_or(DEFAULT_TIME).to_string()));
        }
        let idle = self.idle_at().filter(|at| *at <= now).and(self.limits.idle);
        idle.map(|idle| (LimitKey::Idle, idle.to_string()))
    }

    /// Returns the time until a time limit ends the work that goes on after the last answer.
    pub fn remaining_time(&mut self) -> Duration {
        let until = self.time_is_up();
        let until = self.idle_at().map_or(until, |idle| idle.min(until));
        until.saturating_duration_since(engine_clock::now())
    }

    /// Returns the time at which the session reaches its time limit.
    fn time_is_up(&self) -> Instant {
        self.begun + self.limits.time.unwrap_or(DEFAULT_TIME).0 + self.waited.0
    }

    /// Returns the time at which the agent will have been idle for too long. Returns `None` before the first prompt,
    /// when the agent has nothing to do, and while a call is open, because the agent is working on it.
    fn idle_at(&mut self) -> Option<Instant> {
        let due = self.turn.as_ref()?.idle_at(self.limits.idle?.0);
        (self.translation.recorder().open_calls() == 0).then_some(due)
    }

    /// Returns the next time at which a limit or the deadline may be reached.
    pub(super) fn wake(&mut self, deadline: Option<Instant>) -> Instant {
        let mut wake = engine_clock::now() + Duration::from_secs(3600);
        if self.ended.is_none() && self.waited.1.is_none() && self.is_limited() {
            wake = wake.min(self.time_is_up());
            if let Some(idle) = self.idle_at() {
                wake = wake.min(idle);
            }
        }
        deadline.map_or(wake, |deadline| wake.min(deadline))
    }
}
