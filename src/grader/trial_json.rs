//! The JSON form of a trial for graders that a case defines: expressions and scripts. It includes the whole trace.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Evidence, Subject};
use crate::trace::amount::Amount;
use crate::trace::usage::{Measure, UsageTotal};
use crate::trace::{Body as EventBody, Event, Stop};

/// The key that lists the figures of `usage` and `metrics` that are lower bounds, and the lists of `files` that may lack files.
pub const LOWER_BOUNDS: &str = "lower_bounds";

/// The key of the number of calls of each kind in `metrics`.
pub const CALLS_BY_KIND: &str = "tool_calls_by_kind";

/// The keys of the lists of changed files in `files`.
pub const FILE_LISTS: [&str; 3] = ["created", "changed", "deleted"];

/// The key in `files` of the places that changed and are in none of these lists.
pub const UNMEASURED: &str = "unmeasured";

/// The key of a call whose output was truncated.
const TRUNCATED: &str = "truncated";

/// Removes the outputs that were truncated: an expression would take the part that is left for the whole.
pub fn without_truncated_outputs(calls: &mut [Value]) {
    for call in calls.iter_mut().filter_map(Value::as_object_mut) {
        if call.remove(TRUNCATED).is_some() {
            call.remove("output");
        }
    }
}

/// The events of a trial so far.
#[derive(Default)]
pub struct Account {
    /// The tool calls, in the order of their announcement.
    pub calls: Vec<Value>,
    pub messages: Vec<Value>,
    /// The permission requests and their answers.
    pub permissions: Vec<Value>,
    /// The requests whose call's kind is not yet known, by call.
    asked: HashMap<String, Vec<usize>>,
    requests: HashMap<String, usize>,
    /// The approximate size of the kept events, in bytes.
    size: usize,
    /// The number of calls that the engine ended instead of the agent.
    cut: u64,
}

/// The maximum size of the account, in bytes. A larger account is emptied, because an endless session must not
/// exhaust the memory.
const MAX_ACCOUNT_BYTES: usize = 256 << 20;

impl Account {
    /// Returns the reason why the account cannot be used, if it became too large.
    pub fn too_large(&self) -> Option<String> {
        (self.size > MAX_ACCOUNT_BYTES)
            .then(|| format!("the trace holds more of it than {} MiB", MAX_ACCOUNT_BYTES >> 20))
    }

    /// Returns true if the kind of a call is unknown.
    pub fn has_unknown_kinds(&self) -> bool {
        self.calls.iter().any(|call| call.get("kind").is_none())
    }

    /// Returns why the calls cannot be graded, if the outcome of some is unknown: the engine ended them, and the account
    /// lists each as `unfinished`.
    pub fn unknown_ends(&self) -> Option<String> {
        let calls = if self.cut == 1 { "call" } else { "calls" };
        let cut = self.cut;
        (cut > 0).then(|| format!("because the engine ended {cut} {calls} before the agent said how they ended"))
    }

    /// Adds to the size. If the size exceeds the maximum, the account is emptied.
    fn add_size(&mut self, weight: usize) {
        self.size = self.size.saturating_add(weight);
        if self.size > MAX_ACCOUNT_BYTES {
            *self = Self { size: self.size, ..Self::default() };
        }
    }

    /// Adds an event.
    pub fn event(&mut self, event: &Event) {
        if self.size > MAX_ACCOUNT_BYTES {
            return;
        }
        match &event.body {
            EventBody::Message(message) => {
                let mut entry = json!({"role": message.role, "text": message.text, "seq": event.seq});
                put(&mut entry, "parent", event.parent.clone());
                let weight = weight(&entry);
                self.messages.push(entry);
                self.add_size(weight);
            }
            EventBody::PermissionRequest(request) => {
                let number = self.permissions.len();
                let asked = json!({"call": request.call, "request": request.request, "seq": event.seq});
                // Includes the space for the answer, and for the two ids by which the request is found later.
                let weight = 3 * weight(&asked);
                self.permissions.push(asked);
                self.asked.entry(request.call.clone()).or_default().push(number);
                self.requests.insert(request.request.clone(), number);
                self.add_size(weight);
            }
            EventBody::PermissionResponse(response) => {
                let known = self.requests.get(&response.request).and_then(|number| self.permissions.get_mut(*number));
                if let Some(asked) = known {
                    put(asked, "outcome", serde_json::to_value(response.decision()).ok());
                    put(asked, "option", response.option.clone());
                    put(asked, "rule", response.rule.clone());
                    put(asked, "reason", response.reason.clone());
                }
            }
            _ => {}
        }
    }

    /// Adds a call with its result.
    pub fn call(&mut self, call: &Subject<'_>) {
        if self.size > MAX_ACCOUNT_BYTES {
            return;
        }
        self.cut += u64::from(call.is_cut);
        let mut entry = json!({
            "call": call.call.call, "seq": call.seq, "step": call.call.step,
        });
        // A success that may have been a failure is unknown.
        put(&mut entry, "status", Some(call.status.word()).filter(|_| !call.may_have_failed()));
        // An unknown kind is absent, as every fact that was not shown.
        put(&mut entry, "kind", known_kind(call));
        // Paths that were not shown are absent instead of an empty list, and so are paths of which one cannot be read.
        put(&mut entry, "paths", call.paths().seen().filter(|_| !call.has_unread_path()).cloned());
        put(&mut entry, "name", call.call.name.clone());
        put(&mut entry, "title", call.call.title.clone());
        put(&mut entry, "input", call.call.shown_input().cloned());
        put(&mut entry, "output", call.output);
        if call.truncated {
            put(&mut entry, TRUNCATED, Some(true));
        }
        put(&mut entry, "exit_code", call.exit_code);
        put(&mut entry, "parent", call.parent);
        let weight = weight(&entry);
        self.calls.push(entry);
        self.asked_for(call);
        self.add_size(weight);
    }

    /// Adds to each request for a call the kind that it asked for.
    pub fn asked_for(&mut self, call: &Subject<'_>) {
        for number in self.asked.remove(&call.call.call).unwrap_or_default() {
            if let Some(asked) = self.permissions.get_mut(number) {
                let form = call.asked_as(asked["request"].as_str().unwrap_or_default());
                put(asked, "kind", known_kind(&form));
            }
        }
    }
}

/// Returns the kind of a call, if it is known.
fn known_kind(call: &Subject<'_>) -> Option<&'static str> {
    (!call.call.unknown_kind).then(|| call.call.kind.word())
}

/// Returns the approximate size of a value in memory, in bytes.
fn weight(value: &Value) -> usize {
    /// The size of a value besides its text, and of a map entry besides key and value.
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

/// Inserts a value under a key, if there is a value.
fn put(map: &mut Value, key: &str, value: Option<impl Into<Value>>) {
    if let (Value::Object(map), Some(value)) = (map, value) {
        map.insert(key.to_owned(), value.into());
    }
}

/// Returns how the session ended.
pub fn stop(stop: &Stop) -> Value {
    serde_json::to_value(stop).unwrap_or_default()
}

/// Returns the usage. A figure that was not reported is absent; one that is a lower bound is listed in
/// `lower_bounds`.
pub fn usage(usage: &UsageTotal) -> Value {
    let mut entry = json!({});
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
        put(&mut entry, measure.word(), amount.map(Amount::value));
        bounds.extend(amount.filter(|amount| !amount.is_exact()).map(|_| measure.word()));
    }
    let cost = usage.cost_usd();
    put(&mut entry, Measure::CostUsd.word(), cost.map(Amount::value));
    bounds.extend(cost.filter(|cost| !cost.is_exact()).map(|_| Measure::CostUsd.word()));
    put(&mut entry, LOWER_BOUNDS, (!bounds.is_empty()).then_some(bounds));
    entry
}

/// Returns the changes of the workspace, or an empty map if they were not measured. Lists that may lack files are listed in
/// `lower_bounds`.
pub fn files(evidence: &Evidence<'_>) -> Value {
    let Some(change) = evidence.change else { return Value::Object(Map::new()) };
    let mut entry = json!({"created": change.created, "changed": change.changed, "deleted": change.deleted});
    let unmeasured = || change.in_plain_sight().cloned().collect::<Vec<String>>();
    // If only the patch is known, these places are unknown.
    let unmeasured = (!change.is_patch_alone).then(unmeasured).filter(|places| !places.is_empty());
    put(&mut entry, UNMEASURED, unmeasured);
    put(&mut entry, LOWER_BOUNDS, change.may_lack_files().then(|| FILE_LISTS.to_vec()));
    entry
}

/// Returns the metrics of the trial. What is unknown is absent: the number of calls of each kind if the kind of a call is
/// unknown, and the duration if the engine was stopped meanwhile.
pub fn metrics(evidence: &Evidence<'_>, has_unknown_kinds: bool) -> Value {
    let mut metrics = serde_json::to_value(evidence.metrics).unwrap_or_default();
    if let Value::Object(metrics) = &mut metrics {
        if has_unknown_kinds {
            metrics.remove(CALLS_BY_KIND);
        }
        if evidence.header.stopped_ms.is_some() {
            metrics.remove("duration_ms");
        }
        // An agent that does not ask for every permission makes fewer requests.
        if !evidence.seen().interaction {
            metrics.remove("permissions");
        }
    }
    metrics
}
