//! OpenAI Chat Completions: streams a whole completion, and joins a streamed one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::gateway::api::Streamed;
use crate::gateway::api::join::Joiner;
use crate::gateway::stream::event;
use crate::gateway::words::{append, listed, pieces, set, text};

/// The keys of a completion that each chunk repeats. Others come with the last one.
const EACH: [&str; 7] = ["id", "object", "created", "model", "system_fingerprint", "service_tier", "provider"];

/// The keys of a message whose texts are streamed in pieces, in this order.
const TEXTS: [&str; 4] = ["reasoning_content", "reasoning", "content", "refusal"];

/// Streams a whole completion.
pub fn streamed(completion: &Value, with_usage: bool) -> Streamed {
    let mut base = json!({});
    for key in EACH {
        match (key, completion.get(key)) {
            ("object", _) => set(&mut base, key, json!("chat.completion.chunk")),
            (_, Some(value)) => set(&mut base, key, value.clone()),
            (_, None) => {}
        }
    }
    let chunk = |choices: Value| {
        let mut chunk = base.clone();
        set(&mut chunk, "choices", choices);
        chunk
    };
    let choices = listed(&completion["choices"]);
    let mut body = Vec::new();
    // All choices begin before one ends, so that their number is known.
    for (at, choice) in choices.iter().enumerate() {
        body.push(event(&chunk(json!([opened(choice, at, first(&choice["message"]))]))));
    }
    for (at, choice) in choices.iter().enumerate() {
        let deltas = deltas(&choice["message"]).into_iter();
        body.extend(deltas.map(|delta| event(&chunk(json!([opened(choice, at, delta)])))));
    }
    let mut end: Vec<Value> =
        choices.iter().enumerate().map(|(at, choice)| chunk(json!([closed(choice, at)]))).collect();
    if end.is_empty() {
        end.push(chunk(json!([])));
    }
    if let Some(last) = end.last_mut() {
        for (key, value) in completion.as_object().into_iter().flatten() {
            let is_usage = key == "usage" && !value.is_null();
            if !EACH.contains(&key.as_str()) && key != "choices" && !is_usage {
                set(last, key, value.clone());
            }
        }
    }
    if with_usage && completion["usage"].is_object() {
        let mut last = chunk(json!([]));
        set(&mut last, "usage", completion["usage"].clone());
        end.push(last);
    }
    let mut end: Vec<String> = end.iter().map(event).collect();
    end.push("data: [DONE]\n\n".to_owned());
    Streamed { body, end }
}

fn index(choice: &Value, at: usize) -> Value {
    choice.get("index").cloned().unwrap_or_else(|| json!(at))
}

/// Returns a choice of a chunk before the last.
fn opened(choice: &Value, at: usize, delta: Value) -> Value {
    let mut opened = json!({"index": index(choice, at), "delta": delta});
    if choice.get("logprobs").is_some() {
        set(&mut opened, "logprobs", Value::Null);
    }
    set(&mut opened, "finish_reason", Value::Null);
    opened
}

/// Returns a choice of its last chunk, with everything but the message.
fn closed(choice: &Value, at: usize) -> Value {
    let mut closed = json!({"index": index(choice, at), "delta": {}});
    for (key, value) in choice.as_object().into_iter().flatten() {
        if key != "message" && key != "index" {
            set(&mut closed, key, value.clone());
        }
    }
    closed
}

/// Returns the first delta of a message: the role, and the keys without a value.
fn first(message: &Value) -> Value {
    let mut first = json!({});
    for (key, value) in message.as_object().into_iter().flatten() {
        let begun = match (key.as_str(), value) {
            ("content", Value::String(_)) => json!(""),
            ("role", value) | (_, value @ Value::Null) => value.clone(),
            _ => continue,
        };
        set(&mut first, key, begun);
    }
    first
}

/// Returns the further deltas of a message.
fn deltas(message: &Value) -> Vec<Value> {
    let one = |key: &str, value: Value| {
        let mut delta = json!({});
        set(&mut delta, key, value);
        delta
    };
    let mut deltas = Vec::new();
    // The details of thoughts come before the texts, as the thoughts do.
    deltas.extend(
        message.get("reasoning_details").filter(|it| !it.is_null()).map(|it| one("reasoning_details", it.clone())),
    );
    for key in TEXTS {
        let Some(value) = message.get(key).filter(|value| !value.is_null()) else { continue };
        match value.as_str() {
            Some("") if key == "content" => {}
            Some("") | None => deltas.push(one(key, value.clone())),
            Some(text) => deltas.extend(pieces(text).into_iter().map(|piece| one(key, json!(piece)))),
        }
    }
    for (key, value) in message.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("role" | "reasoning_details", _) | (_, Value::Null) => {}
            ("tool_calls", Value::Array(calls)) if calls.is_empty() => deltas.push(one(key, value.clone())),
            ("tool_calls", Value::Array(calls)) => {
                for (index, call) in calls.iter().enumerate() {
                    deltas.extend(call_deltas(index, call).into_iter().map(|call| one(key, json!([call]))));
                }
            }
            (key, _) if TEXTS.contains(&key) => {}
            (key, value) => deltas.push(one(key, value.clone())),
        }
    }
    deltas
}

/// Returns a call as it begins, then its input in pieces.
fn call_deltas(index: usize, call: &Value) -> Vec<Value> {
    let mut start = json!({"index": index});
    let mut more = Vec::new();
    for (key, value) in call.as_object().into_iter().flatten() {
        let mut value = value.clone();
        let input = match key.as_str() {
            "function" => Some("arguments"),
            "custom" => Some("input"),
            _ => None,
        };
        let arguments = input.and_then(|input| Some((input, value.get_mut(input)?)));
        if let Some((input, arguments)) = arguments.filter(|(_, arguments)| arguments.is_string()) {
            let arguments = std::mem::replace(arguments, json!(""));
            more.extend(pieces(arguments.as_str().unwrap_or("")).into_iter().map(|piece| {
                let mut delta = json!({"index": index});
                let mut body = json!({});
                set(&mut body, input, json!(piece));
                set(&mut delta, key, body);
                delta
            }));
        }
        if key != "index" {
            set(&mut start, key, value);
        }
    }
    std::iter::once(start).chain(more).collect()
}

/// A joiner of a streamed completion.
#[derive(Default)]
pub struct Chunks {
    completion: Option<Map<String, Value>>,
    choices: BTreeMap<u64, Choice>,
    done: bool,
}

#[derive(Default)]
struct Choice {
    keys: Map<String, Value>,
    message: Value,
    calls: Vec<Call>,
}

struct Call {
    index: Option<u64>,
    value: Value,
}

impl Joiner for Chunks {
    fn add(&mut self, event: Value) -> Option<Value> {
        let Value::Object(mut chunk) = event else { return None };
        let is_error = chunk.get("error").is_some_and(|error| !error.is_null());
        if is_error && !chunk.contains_key("choices") {
            return Some(Value::Object(chunk));
        }
        let error = is_error.then(|| Value::Object(chunk.clone()));
        if let Some(Value::Array(choices)) = chunk.remove("choices") {
            for (at, choice) in choices.into_iter().enumerate() {
                let Value::Object(choice) = choice else { continue };
                let index = choice.get("index").and_then(Value::as_u64).unwrap_or(at as u64);
                self.choices.entry(index).or_default().add(choice);
            }
        }
        let completion = self.completion.get_or_insert_default();
        for (key, value) in chunk {
            match key.as_str() {
                // Random characters of a length that hides the length of the text.
                "obfuscation" => {}
                "object" => {
                    completion.insert(key, json!("chat.completion"));
                }
                _ => overlay(completion, key, value),
            }
        }
        error
    }

    fn done(&mut self) {
        self.done = true;
    }

    fn finish(self: Box<Self>) -> (Option<Value>, bool) {
        let Some(mut completion) = self.completion else { return (None, false) };
        let finished = |choice: &Choice| choice.keys.get("finish_reason").is_some_and(|reason| !reason.is_null());
        let all = !self.choices.is_empty() && self.choices.values().all(finished);
        let choices = self.choices.into_values().map(Choice::finish).collect();
        completion.insert("choices".to_owned(), Value::Array(choices));
        (Some(Value::Object(completion)), self.done || all)
    }
}

/// Sets a key to a later value. Null and an empty text do not replace an earlier value.
fn overlay(object: &mut Map<String, Value>, key: String, value: Value) {
    let is_empty = value.is_null() || value.as_str() == Some("");
    if !is_empty || !object.contains_key(&key) {
        object.insert(key, value);
    }
}

impl Choice {
    fn add(&mut self, chunk: Map<String, Value>) {
        for (key, value) in chunk {
            match (key.as_str(), value) {
                ("delta" | "message", Value::Object(delta)) => self.delta(delta),
                ("delta" | "message", _) => {}
                ("logprobs", Value::Object(more)) if self.keys.get(&key).is_some_and(Value::is_object) => {
                    let logprobs = self.keys.entry(key).or_insert(Value::Null);
                    for (key, value) in more {
                        match (logprobs.get_mut(&key), value) {
                            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
                            (Some(_), Value::Null) => {}
                            (_, value) => set(logprobs, &key, value),
                        }
                    }
                }
                (_, value) => overlay(&mut self.keys, key, value),
            }
        }
    }

    fn delta(&mut self, delta: Map<String, Value>) {
        if !self.message.is_object() {
            self.message = json!({});
        }
        for (key, value) in delta {
            match (key.as_str(), value) {
                ("tool_calls", Value::Array(calls)) => {
                    if self.message.get("tool_calls").is_none_or(Value::is_null) {
                        set(&mut self.message, "tool_calls", json!([]));
                    }
                    calls.into_iter().for_each(|call| self.call(call));
                }
                ("reasoning_details", Value::Array(details)) => self.details(details),
                (_, Value::Null) if self.message.get(&key).is_some() => {}
                ("role" | "name", value) => set(&mut self.message, &key, value),
                (_, Value::String(more)) => append(&mut self.message, &key, &more),
                (_, Value::Array(more)) => match self.message.get_mut(&key) {
                    Some(Value::Array(all)) => all.extend(more),
                    _ => set(&mut self.message, &key, Value::Array(more)),
                },
                (_, Value::Object(more)) => match self.message.get_mut(&key) {
                    Some(Value::Object(all)) => extend(all, more),
                    _ => set(&mut self.message, &key, Value::Object(more)),
                },
                (_, value) => set(&mut self.message, &key, value),
            }
        }
    }

    fn call(&mut self, call: Value) {
        let Value::Object(mut call) = call else { return };
        let index = call.remove("index").and_then(|index| index.as_u64());
        let call = Value::Object(call);
        let id = text(&call, "id");
        let named = ["function", "custom"].iter().any(|key| !text(&call[*key], "name").is_empty());
        let mut place = match index {
            Some(_) => self.calls.iter().rposition(|it| it.index == index),
            None if named => None,
            None => self.calls.len().checked_sub(1),
        };
        // Some services give every call the same index, and a new id.
        let is_other = |at: usize| {
            let old = text(&self.calls[at].value, "id");
            named && !id.is_empty() && !old.is_empty() && id != old
        };
        if place.is_some_and(is_other) {
            place = None;
        }
        let Some(old) = place.and_then(|at| self.calls.get_mut(at)) else {
            self.calls.push(Call { index, value: call });
            return;
        };
        let (Value::Object(old), Value::Object(call)) = (&mut old.value, call) else { return };
        for (key, value) in call {
            match (old.get_mut(&key), value) {
                (Some(Value::Object(all)), Value::Object(more)) => extend(all, more),
                (_, value) => overlay(old, key, value),
            }
        }
    }

    /// Adds details of thoughts. The details of one thought arrive in several pieces.
    fn details(&mut self, details: Vec<Value>) {
        let Some(Value::Array(all)) = self.message.get_mut("reasoning_details") else {
            set(&mut self.message, "reasoning_details", Value::Array(details));
            return;
        };
        for detail in details {
            let same = all.last_mut().filter(|last| {
                last["type"] == detail["type"]
                    && last["index"] == detail["index"]
                    && detail["type"] != "reasoning.encrypted"
            });
            match (same, detail) {
                (Some(Value::Object(last)), Value::Object(detail)) => {
                    for (key, value) in detail {
                        match (last.get_mut(&key), value) {
                            (Some(Value::String(text)), Value::String(more)) if matches!(&*key, "text" | "summary") => {
                                text.push_str(&more);
                            }
                            (_, value) => overlay(last, key, value),
                        }
                    }
                }
                (_, detail) => all.push(detail),
            }
        }
    }

    fn finish(self) -> Value {
        let Choice { keys, mut message, calls } = self;
        if !calls.is_empty() {
            set(&mut message, "tool_calls", calls.into_iter().map(|call| call.value).collect());
        }
        let mut choice = keys;
        choice.insert("message".to_owned(), message);
        Value::Object(choice)
    }
}

/// Adds the keys of a further piece of an object: inputs and sounds come in pieces, other texts whole.
fn extend(object: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (object.get_mut(&key), value) {
            (Some(Value::String(text)), Value::String(more))
                if matches!(key.as_str(), "arguments" | "input" | "data" | "transcript") =>
            {
                text.push_str(&more);
            }
            (_, value) => overlay(object, key, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::api::join::Joined;
    use crate::gateway::api::{Api, Join, StreamError, StreamOptions};

    fn joined(chunks: &[Value]) -> Joined {
        let mut join = Join::new(Api::OpenaiChat, "text/event-stream");
        chunks.iter().for_each(|chunk| join.push(event(chunk).as_bytes()));
        join.finish()
    }

    fn chunk(delta: Value, finish: Value) -> Value {
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    }

    fn message(deltas: &[Value]) -> Value {
        let chunks: Vec<Value> = deltas.iter().map(|delta| chunk(delta.clone(), Value::Null)).collect();
        joined(&chunks).response.unwrap()["choices"][0]["message"].take()
    }

    #[test]
    fn a_stream_without_its_mark_ends_with_the_reason_of_every_choice() {
        let azure =
            json!({"id": "", "object": "", "created": 0, "model": "", "choices": [], "prompt_filter_results": []});
        let chunks = [
            azure,
            chunk(json!({"role": "assistant", "content": "", "refusal": null}), Value::Null),
            chunk(json!({"content": "Hi"}), Value::Null),
            chunk(json!({}), json!("stop")),
            json!({"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}, "obfuscation": "xyz"}),
        ];
        let all = joined(&chunks);
        assert!(all.complete);
        assert_eq!(
            all.response.unwrap(),
            json!({"id": "c", "object": "chat.completion", "created": 1, "model": "m", "prompt_filter_results": [],
                "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi", "refusal": null},
                "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})
        );
        assert!(!joined(&chunks[..3]).complete);
        let mut other = chunk(json!({"content": "Ho"}), Value::Null);
        other["choices"][0]["index"] = json!(1);
        assert!(!joined(&[chunks[2].clone(), other, chunks[3].clone()]).complete);
    }

    #[test]
    fn calls_are_told_apart_as_servers_write_them() {
        let call = |index: Value, id: &str, name: &str, arguments: &str| {
            let mut call = json!({"id": id, "function": {"name": name, "arguments": arguments}});
            if !index.is_null() {
                set(&mut call, "index", index);
            }
            json!({"tool_calls": [call]})
        };
        let wanted = json!([
            {"id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}},
            {"id": "b", "function": {"name": "g", "arguments": "{}"}}
        ]);
        for deltas in [
            [call(json!(0), "a", "f", "{\"x\""), call(json!(0), "", "", ":1}"), call(json!(1), "b", "g", "{}")],
            // Equal indexes, and none.
            [call(json!(0), "a", "f", "{\"x\""), call(json!(0), "a", "f", ":1}"), call(json!(0), "b", "g", "{}")],
            [
                call(Value::Null, "a", "f", "{\"x\""),
                call(Value::Null, "", "", ":1}"),
                call(Value::Null, "b", "g", "{}"),
            ],
        ] {
            assert_eq!(message(&deltas)["tool_calls"], wanted, "{deltas:?}");
        }
    }

    #[test]
    fn pieces_of_a_thought_are_one_detail() {
        let detail = |detail: Value| json!({"reasoning_details": [detail]});
        let message = message(&[
            detail(json!({"type": "reasoning.text", "text": "Hm", "index": 0, "format": "f"})),
            detail(json!({"type": "reasoning.text", "text": "m.", "index": 0, "signature": "s"})),
            detail(json!({"type": "reasoning.encrypted", "data": "x", "index": 0})),
        ]);
        assert_eq!(
            message["reasoning_details"],
            json!([{"type": "reasoning.text", "text": "Hmm.", "index": 0, "format": "f", "signature": "s"},
                {"type": "reasoning.encrypted", "data": "x", "index": 0}])
        );
    }

    #[test]
    fn an_error_in_the_stream_is_reported_with_what_came_before() {
        let error = json!({"error": {"message": "no", "type": "server_error", "code": null}});
        let joined = joined(&[chunk(json!({"content": "Hi"}), Value::Null), error.clone()]);
        assert_eq!((joined.error, joined.complete), (Some(StreamError::Sent(error)), false));
        assert_eq!(joined.response.unwrap()["choices"][0]["message"]["content"], "Hi");
    }

    #[test]
    fn usage_is_streamed_where_it_is_asked_for() {
        let whole = json!({"id": "c", "object": "chat.completion", "choices": [], "usage": {"prompt_tokens": 3}});
        for usage in [true, false] {
            let events = Api::OpenaiChat.events(&whole, StreamOptions { usage, as_list: false }).concat();
            assert_eq!(events.contains("prompt_tokens"), usage, "{events}");
        }
    }
}
