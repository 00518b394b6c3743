//! A Trial as JSON, for graders that a case brings itself: expressions and scripts. It holds the whole trace.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{Evidence, Subject};
use crate::trace::usage::UsageTotal;
use crate::trace::{Body as EventBody, Event, Stop};

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
}

impl Account {
    /// Takes the next event.
    pub fn event(&mut self, event: &Event) {
        match &event.body {
            EventBody::Message(message) => {
                let mut said = json!({"role": message.role, "text": message.text, "seq": event.seq});
                put(&mut said, "parent", event.parent.clone());
                self.messages.push(said);
            }
            EventBody::PermissionRequest(request) => {
                let number = self.permissions.len();
                self.permissions.push(json!({"call": request.call, "request": request.request, "seq": event.seq}));
                self.asked.entry(request.call.clone()).or_default().push(number);
                self.requests.insert(request.request.clone(), number);
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
        let kind = call.call.kind.word();
        let mut told = json!({
            "call": call.call.call, "seq": call.seq, "step": call.call.step, "kind": kind,
            "paths": call.paths(), "status": call.status.word(),
        });
        put(&mut told, "name", call.call.name.clone());
        put(&mut told, "title", call.call.title.clone());
        put(&mut told, "input", call.call.input.clone());
        put(&mut told, "output", call.output);
        put(&mut told, "exit_code", call.exit_code);
        put(&mut told, "parent", call.parent);
        self.calls.push(told);
        self.asked_for(call);
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

/// What was spent; what nobody reported is absent.
pub fn usage(usage: &UsageTotal) -> Value {
    let mut told = json!({});
    put(&mut told, "input_tokens", usage.input_tokens());
    put(&mut told, "output_tokens", usage.output_tokens());
    put(&mut told, "cache_read_tokens", usage.cache_read_tokens());
    put(&mut told, "cache_write_tokens", usage.cache_write_tokens());
    put(&mut told, "thought_tokens", usage.thought_tokens());
    put(&mut told, "total_tokens", usage.tokens());
    put(&mut told, "cost_usd", usage.cost_usd());
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
