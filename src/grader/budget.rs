//! `budget`: what a Trial may spend. A limit is inclusive: only what is above it exceeds it.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::checks::Checks;
use super::lists::said;
use super::{Body, Evidence, Judge, words};
use crate::grade::Grade;
use crate::trace::{Body as EventBody, Event, Role};
use crate::values::Time;

/// What a Trial may spend at most.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Budget {
    /// US dollars.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub cost_usd: Option<f64>,
    /// All tokens, cached ones included.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Tokens sent, without cached ones.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens received, thoughts included.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tool calls, attempts and those of sub-agents included.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Rounds of tool calls.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Prompts of the user.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// From the first prompt to the answer.
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
}

impl Body for Budget {
    fn refusal(&self) -> Option<String> {
        if self.cost_usd.is_some_and(|cost| !cost.is_finite() || cost < 0.0) {
            return Some("has a `cost-usd` that is no amount of money; write a number from 0 up".to_owned());
        }
        (*self == Budget::default()).then(|| "checks nothing; set a limit, for example `cost-usd: 0.50`".to_owned())
    }

    fn judge(&self) -> Option<Box<dyn Judge>> {
        Some(Box::new(BudgetJudge { limits: self.clone(), ..BudgetJudge::default() }))
    }
}

#[derive(Default)]
struct BudgetJudge {
    limits: Budget,
    calls: Counter,
    steps: Counter,
    turns: Counter,
    /// The step that each speaker is in.
    in_step: HashMap<Option<String>, u64>,
    usage_at: Option<u64>,
    stop_at: Option<u64>,
}

/// Counts events, and remembers the first one above the limit.
#[derive(Default)]
struct Counter {
    count: u64,
    over_at: Option<u64>,
}

impl Counter {
    fn add(&mut self, limit: Option<u64>, seq: u64) {
        self.count += 1;
        if limit.is_some_and(|limit| self.count > limit) {
            self.over_at.get_or_insert(seq);
        }
    }
}

impl Judge for BudgetJudge {
    fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::ToolCall(call) => {
                self.calls.add(self.limits.tool_calls, event.seq);
                // The steps of one speaker never decrease, so a new number is a new step.
                if self.in_step.insert(event.parent.clone(), call.step) != Some(call.step) {
                    self.steps.add(self.limits.steps, event.seq);
                }
            }
            EventBody::Message(message) if message.role == Role::User && event.parent.is_none() => {
                self.turns.add(self.limits.turns, event.seq);
            }
            EventBody::Usage(_) => self.usage_at = Some(event.seq),
            EventBody::Stop(_) => self.stop_at = Some(event.seq),
            _ => {}
        }
    }

    fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Grade {
        let Self { limits, calls, steps, turns, usage_at, stop_at, .. } = *self;
        let usage = evidence.usage;
        let mut checks = Checks::default();
        if let Some(limit) = limits.cost_usd {
            match usage.cost_usd() {
                None => checks.unknown("the agent did not report its cost (`cost-usd`)"),
                Some(cost) => {
                    let by = match usage.cost_source() {
                        Some(source) => format!(" ({source})"),
                        None => String::new(),
                    };
                    // Sums of prices are not exact: three times 0.10 is not above 0.30.
                    let holds = cost <= limit + limit.abs().max(1.0) * 1e-9;
                    let word = if holds { "within" } else { "above" };
                    checks.either(holds, format!("it cost {} USD{by}, {word} {limit}", words::money(cost)), usage_at);
                }
            }
        }
        let tokens = [
            ("tokens", limits.tokens, usage.tokens()),
            ("input-tokens", limits.input_tokens, usage.input_tokens()),
            ("output-tokens", limits.output_tokens, usage.output_tokens()),
        ];
        for (key, limit, figure) in tokens {
            let Some(limit) = limit else { continue };
            match figure {
                None => checks.unknown(format!("the agent did not report its {} (`{key}`)", key.replace('-', " "))),
                Some(figure) => within(&mut checks, key, figure, limit, usage_at),
            }
        }
        let traced = evidence.header.capabilities.tracing;
        for (key, limit, counter) in [("tool-calls", limits.tool_calls, &calls), ("steps", limits.steps, &steps)] {
            match limit {
                Some(_) if !traced => checks.unknown(format!("the harness shows no tool calls (`{key}`)")),
                Some(limit) => within(&mut checks, key, counter.count, limit, counter.over_at),
                None => {}
            }
        }
        match limits.turns {
            // Some recordings do not hold the prompts, and a session without one is none.
            Some(_) if turns.count == 0 => checks.unknown("the trace shows no prompt of the user (`turns`)"),
            Some(limit) => within(&mut checks, "turns", turns.count, limit, turns.over_at),
            None => {}
        }
        if let Some(limit) = limits.time {
            match evidence.duration_ms.filter(|_| evidence.header.is_timed()) {
                None => checks.unknown("nobody measured how long it took (`time`)"),
                Some(ms) => {
                    let holds = u128::from(ms) <= limit.0.as_millis();
                    let word = if holds { "within" } else { "above" };
                    let took = Time(std::time::Duration::from_millis(ms));
                    checks.either(holds, format!("it took {took}, {word} {limit}"), stop_at);
                }
            }
        }
        checks.grade()
    }
}

fn within(checks: &mut Checks, key: &str, figure: u64, limit: u64, over_at: Option<u64>) {
    if figure <= limit {
        checks.held(format!("{key} {figure}, within {limit}"), []);
    } else {
        checks.violated(format!("{key} {figure}, above {limit}"), over_at);
    }
}
