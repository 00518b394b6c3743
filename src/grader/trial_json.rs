//! A Trial as JSON, for graders that a case brings itself: expressions and scripts. It holds the whole trace.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Evidence, Subject};
use crate::trace::amount::Amount;
use crate::trace::usage::{Measure, UsageTotal};
use crate::trace::{Body as EventBody, Event, Stop};

/// The key that names the figures of `usage` and `metrics` that are lower bounds.
pub const LOWER_BOUNDS: &str = "lower_bounds";

/// What was seen of a Trial so far.
#[derive(Default)]
pub struct Account {
    /// Its calls, in the order in which they were announced.
    pub calls: Vec<Value>,
    /// What was said.
    pub messages: Vec<Value>,
    /// What was asked, and what was answered.
    pub permissions: Vec<Value>,
    /// By the call they are about, the requests whose call's kind is not yet known.
    asked: HashMap<String, Vec<usize>>,
    requests: HashMap<String, usize>,
    /// About how many bytes it holds.
    held: usize,
    /// Calls that the engine ended, and not the agent.
    cut: u64,
}

/// An account that would hold more bytes than this holds nothing: a session without end must not fill the memory.
const MOST_HELD: usize = 256 << 20;

impl Account {
    /// Why it cannot be judged by, if it cannot: it would have been too large.
    pub fn too_large(&self) -> Option<String> {
        (self.held > MOST_HELD).then(|| format!("the trace holds more of it than {} MiB", MOST_HELD >> 20))
    }

    /// Returns why its calls cannot be judged by, if so: how the agent ended some of them is unknown, and the account says
    /// `unfinished` of each.
    pub fn unknown_ends(&self) -> Option<String> {
        let calls = if self.cut == 1 { "call" } else { "calls" };
        let cut = self.cut;
        (cut > 0).then(|| format!("because the engine ended {cut} {calls} before the agent said how they ended"))
    }

    /// Counts what it holds now. Once there is too much it lets go of everything.
    fn holds(&mut self, weight: usize) {
        self.held = self.held.saturating_add(weight);
        if self.held > MOST_HELD {
            *self = Self { held: self.held, ..Self::default() };
        }
    }

    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        if self.held > MOST_HELD {
            return;
        }
        match &event.body {
            EventBody::Message(message) => {
                let mut said = json!({"role": message.role, "text": message.text, "seq": event.seq});
                put(&mut said, "parent", event.parent.clone());
                let weight = weight(&said);
                self.messages.push(said);
                self.holds(weight);
            }
            EventBody::PermissionRequest(request) => {
                let number = self.permissions.len();
                let asked = json!({"call": request.call, "request": request.request, "seq": event.seq});
                // With room for its answer, and for the two ids by which it is found again.
                let weight = 3 * weight(&asked);
                self.permissions.push(asked);
                self.asked.entry(request.call.clone()).or_default().push(number);
                self.requests.insert(request.request.clone(), number);
                self.holds(weight);
            }
            EventBody::PermissionResponse(response) => {
                let known = self.requests.get(&response.request).and_then(|number| self.permissions.get_mut(*number));
                if let Some(asked) = known {
                    put(asked, "outcome", serde_json::to_value(response.outcome).ok());
                    put(asked, "option", response.option.clone());
                    put(asked, "rule", response.rule.clone());
                    put(asked, "reason", response.reason.clone());
                }
            }
            _ => {}
        }
    }

    /// Takes the next call with its result.
    pub fn call(&mut self, call: &Subject<'_>) {
        if self.held > MOST_HELD {
            return;
        }
        self.cut += u64::from(call.is_cut);
        let kind = call.call.kind.word();
        let mut told = json!({
            "call": call.call.call, "seq": call.seq, "step": call.call.step, "kind": kind,
            "status": call.status.word(),
        });
        // What was not shown is absent, and not an empty list.
        put(&mut told, "paths", call.paths().seen().cloned());
        put(&mut told, "name", call.call.name.clone());
        put(&mut told, "title", call.call.title.clone());
        put(&mut told, "input", call.call.shown_input().cloned());
        put(&mut told, "output", call.output);
        put(&mut told, "exit_code", call.exit_code);
        put(&mut told, "parent", call.parent);
        let weight = weight(&told);
        self.calls.push(told);
        self.asked_for(call);
        self.holds(weight);
    }

    /// Takes the kind of a call that was asked for.
    pub fn asked_for(&mut self, call: &Subject<'_>) {
        let kind = call.call.kind.word();
        for number in self.asked.remove(&call.call.call).unwrap_or_default() {
            if let Some(asked) = self.permissions.get_mut(number) {
                put(asked, "kind", Some(kind));
            }
        }
    }
}

/// About how many bytes of memory a value takes.
fn weight(value: &Value) -> usize {
    /// What a value takes beside its text, and an entry of a map beside key and value.
    const VALUE: usize = 32;
    const ENTRY: usize = 96;
    VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(list) => list.iter().map(weight).sum(),
            Value::Object(map) => map.iter().map(|(key, value)| ENTRY + key.len() + weight(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

/// Puts a value under a key, where there is one.
fn put(map: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let (Value::Object(map), Some(value)) = (map, value) {
        map.insert(key.to_owned(), value.into());
    }
}

/// How the session ended.
pub fn stop(stop: &Stop) -> Value {
    serde_json::to_value(stop).unwrap_or_default()
}

/// What was spent. A figure that was not reported is absent; one that is a lower bound is named in `lower_bounds`.
pub fn usage(usage: &UsageTotal) -> Value {
    let mut told = json!({});
    let tokens = [
        (Measure::InputTokens, usage.input_tokens()),
        (Measure::OutputTokens, usage.output_tokens()),
        (Measure::CacheReadTokens, usage.cache_read_tokens()),
        (Measure::CacheWriteTokens, usage.cache_write_tokens()),
        (Measure::ThoughtTokens, usage.thought_tokens()),
        (Measure::TotalTokens, usage.tokens()),
    ];
    let mut bounds: Vec<&str> = Vec::new();
    for (measure, amount) in tokens {
        put(&mut told, measure.word(), amount.map(Amount::value));
        bounds.extend(amount.filter(|amount| !amount.is_exact()).map(|_| measure.word()));
    }
    let cost = usage.cost_usd();
    put(&mut told, Measure::CostUsd.word(), cost.map(Amount::value));
    bounds.extend(cost.filter(|cost| !cost.is_exact()).map(|_| Measure::CostUsd.word()));
    put(&mut told, LOWER_BOUNDS, (!bounds.is_empty()).then_some(bounds));
    told
}

/// What became of the workspace; nothing where nobody measured it.
pub fn files(evidence: &Evidence<'_>) -> Value {
    match evidence.change {
        Some(change) => json!({"created": change.created, "changed": change.changed, "deleted": change.deleted}),
        None => Value::Object(Map::new()),
    }
}

/// What it took.
pub fn metrics(evidence: &Evidence<'_>) -> Value {
    serde_json::to_value(evidence.metrics).unwrap_or_default()
}
