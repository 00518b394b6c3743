//! Finds the limits of a case that a trial exceeded, and the limits that cannot be checked.

use super::metrics::Observed;
use crate::judgement::tolerance;
use crate::limits::{Dollars, Limits};
use crate::result::{LimitGap, Metrics, Warning};
use crate::session::DEFAULT_TIME;
use crate::trace::amount::Amount;
use crate::trace::{Stop, StopReason};
use crate::values::Time;

/// The time by which a stored session may seem shorter than its limit.
const SLACK_MS: u128 = 1000;

/// The findings about the limits of a trial.
#[derive(Debug, Default, PartialEq)]
pub struct LimitFindings {
    /// The limit that ended the session, and the limits whose value became known only at the end.
    pub exceeded: Vec<Warning>,
    /// Limits that are not known to be kept.
    pub unknown: Vec<Warning>,
}

/// Compares a trial with the limits of its case. The engine enforces `time` and `idle` while a session runs;
/// for a stored session they are derived from the times of its events.
pub fn findings(limits: &Limits, metrics: &Metrics, observed: &Observed, is_stored: bool) -> LimitFindings {
    let ended_by = ended_by(observed);
    let mut found = LimitFindings::default();
    if let Some(key) = ended_by {
        found.exceeded.push(Warning::LimitReached { key: key.to_owned() });
    }
    let is_new = |key: &str| ended_by != Some(key);
    // If a call may be missing in the trace, the counts are lower bounds.
    let of_calls = |count: Option<u64>| count.map(|count| Amount::new(count, !observed.lacks_calls));
    let counts = [
        ("steps", limits.steps, of_calls(metrics.steps), LimitGap::NoToolCalls),
        ("tool-calls", limits.tool_calls, of_calls(metrics.tool_calls), LimitGap::NoToolCalls),
        ("tokens", limits.tokens, metrics.tokens(), LimitGap::NotReported),
    ];
    for (key, limit, figure, gap) in counts {
        if let Some(limit) = limit.filter(|_| is_new(key)) {
            let exceeds = figure.is_some_and(|figure| figure.value() > limit);
            found.hold(key, limit as f64, figure.map(|it| it.map(|count| count as f64)), exceeds, gap);
        }
    }
    if let Some(limit) = limits.cost_usd.map(Dollars::get).filter(|_| is_new("cost-usd")) {
        let cost = metrics.cost();
        let exceeds = cost.is_some_and(|cost| tolerance::exceeds(cost.value(), limit));
        found.hold("cost-usd", limit, cost, exceeds, LimitGap::NotReported);
    }
    if is_stored {
        for (key, limit) in [("time", limits.time), ("idle", limits.idle)] {
            let Some(limit) = limit.filter(|_| is_new(key)) else { continue };
            let limit_ms = limit.0.as_millis();
            let duration = if key == "time" { Amount::Exact(observed.took_ms()) } else { observed.idle_ms(limit_ms) };
            let duration = metrics.measured_ms.map(|_| duration);
            let exceeds = duration.is_some_and(|duration| u128::from(duration.value()) > limit_ms);
            let seconds = duration.map(|it| it.map(|ms| ms as f64 / 1000.0));
            found.hold(key, limit.0.as_secs_f64(), seconds, exceeds, LimitGap::NoTimes);
        }
    }
    found
}

/// Returns the limit by which the engine ended the session, if it did.
fn ended_by(observed: &Observed) -> Option<&str> {
    let by_limit = |stop: &&Stop| {
        use StopReason::{Idle, MaxBudget, MaxTurns, TimedOut};
        observed.stopped_by_engine && matches!(stop.reason, TimedOut | Idle | MaxTurns | MaxBudget)
    };
    observed.stop.as_ref().filter(by_limit).map(|stop| match (&stop.detail, stop.reason) {
        (Some(key), _) => key.as_str(),
        // Traces of other programs may omit the key. The reason still shows that a limit ended the trial.
        (None, StopReason::TimedOut) => "time",
        (None, StopReason::Idle) => "idle",
        (None, StopReason::MaxBudget) => "tokens or cost-usd",
        (None, _) => "steps or tool-calls",
    })
}

/// Returns the limit that ended a stored session, if these limits are known to have let the agent go on: they do not have this
/// limit, or the session did not reach it.
pub fn ended_by_another<'a>(limits: &Limits, metrics: &Metrics, observed: &'a Observed) -> Option<&'a str> {
    let calls_reach = |limit: Option<u64>, count: Option<u64>| {
        let may_reach = |limit: u64| observed.lacks_calls || count.is_none_or(|count| count > limit);
        limit.is_some_and(may_reach)
    };
    let time_reaches = |limit: Time, duration: Amount<u64>| {
        let reaches = u128::from(duration.value()) + SLACK_MS >= limit.0.as_millis();
        metrics.measured_ms.is_none() || !duration.is_exact() || reaches
    };
    let may_reach = |key: &str| match key {
        "time" => time_reaches(limits.time.unwrap_or(DEFAULT_TIME), Amount::Exact(observed.took_ms())),
        "idle" => limits.idle.is_some_and(|limit| time_reaches(limit, observed.idle_ms(limit.0.as_millis()))),
        "steps" => calls_reach(limits.steps, metrics.steps),
        "tool-calls" => calls_reach(limits.tool_calls, metrics.tool_calls),
        "tokens" => limits
            .tokens
            .is_some_and(|limit| metrics.tokens().is_none_or(|tokens| !tokens.is_exact() || tokens.value() >= limit)),
        "cost-usd" => limits.cost_usd.is_some_and(|limit| {
            metrics.cost().is_none_or(|cost| !cost.is_exact() || tolerance::reaches(cost.value(), limit.get()))
        }),
        _ => true,
    };
    ended_by(observed).filter(|keys| !keys.split(" or ").any(may_reach))
}

/// Returns the limit of time of which it is unknown whether a session kept it, because the engine was stopped for this time,
/// in which the agent may have worked. Returns `None` if the engine ended the session.
pub fn unknown_by_stop(limits: &Limits, observed: &Observed, stopped_ms: u64) -> Option<&'static str> {
    let idle = limits.idle.map(|idle| ("idle", idle));
    let mut all = [("time", limits.time.unwrap_or(DEFAULT_TIME))].into_iter().chain(idle);
    let is_unknown = |(key, limit): &(&str, Time)| {
        let limit_ms = limit.0.as_millis();
        let duration = if *key == "time" { Amount::Exact(observed.took_ms()) } else { observed.idle_ms(limit_ms) };
        let may_exceed = u128::from(duration.value()) > limit_ms || !duration.is_exact();
        // A live session is ended as soon as it certainly exceeds a limit.
        let is_certain = observed.is_stored && u128::from(duration.value().saturating_sub(stopped_ms)) > limit_ms;
        may_exceed && !is_certain
    };
    let found = all.find(is_unknown).map(|(key, _)| key);
    found.filter(|_| stopped_ms > 0 && !observed.stopped_by_engine)
}

impl LimitFindings {
    fn hold(&mut self, key: &str, limit: f64, figure: Option<Amount<f64>>, exceeds: bool, gap: LimitGap) {
        let key = key.to_owned();
        match figure {
            None => self.unknown.push(Warning::LimitUnknown { key, limit, at_least: None, gap }),
            Some(figure) if exceeds => {
                let (value, at_least) = (figure.value(), !figure.is_exact());
                self.exceeded.push(Warning::LimitExceeded { key, limit, value, at_least });
            }
            Some(Amount::Exact(_)) => {}
            Some(Amount::AtLeast(value)) => {
                let gap = if gap == LimitGap::NoTimes { LimitGap::TimesOfText } else { LimitGap::Partial };
                self.unknown.push(Warning::LimitUnknown { key, limit, at_least: Some(value), gap });
            }
        }
    }
}
