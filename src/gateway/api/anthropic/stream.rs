//! Anthropic Messages: streams a whole message, and joins a streamed one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::gateway::api::Streamed;
use crate::gateway::api::join::Joiner;
use crate::gateway::stream::named_event;
use crate::gateway::words::{append, listed, pieces, reset, set, text};

/// The keys of a message that are known at its end, and come within the `delta` of `message_delta`.
const LATE: [&str; 4] = ["stop_reason", "stop_sequence", "stop_details", "container"];

/// The keys of a message that come beside the `delta` of `message_delta`.
const BESIDE: [&str; 1] = ["context_management"];

/// Streams a whole message.
pub fn streamed(message: &Value) -> Streamed {
    let mut start = message.clone();
    if message["content"].is_array() {
        reset(&mut start, "content", json!([]));
    }
    LATE.iter().chain(&BESIDE).for_each(|key| reset(&mut start, key, Value::Null));
    if let Some(usage) = start.get_mut("usage") {
        // The input is known at the start, and a first token of the output.
        let output = usage["output_tokens"].as_u64();
        reset(usage, "output_tokens", json!(output.map(|count| count.min(1))));
        if let Some(details) = usage.get_mut("output_tokens_details") {
            reset(details, "thinking_tokens", json!(0));
        }
    }
    let mut body = vec![event(&json!({"type": "message_start", "message": start}))];
    for (index, block) in listed(&message["content"]).iter().enumerate() {
        let (start, deltas) = opened(block);
        body.push(event(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        let delta = |delta| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        body.extend(deltas.into_iter().map(delta));
        body.push(event(&json!({"type": "content_block_stop", "index": index})));
    }
    let kept = |keys: &[&str]| -> Map<String, Value> {
        keys.iter().filter_map(|key| Some(((*key).to_owned(), message.get(*key)?.clone()))).collect()
    };
    let mut delta = json!({"type": "message_delta", "delta": kept(&LATE)});
    kept(&BESIDE).into_iter().chain(kept(&["usage"])).for_each(|(key, value)| set(&mut delta, &key, value));
    Streamed { body, end: vec![event(&delta), event(&json!({"type": "message_stop"}))] }
}

/// Returns a block as it begins, and the deltas that complete it. A block of an unknown kind begins complete.
fn opened(block: &Value) -> (Value, Vec<Value>) {
    let mut start = block.clone();
    let mut deltas = Vec::new();
    let mut in_pieces = |start: &mut Value, key: &str, kind: &str| {
        if let Some(text) = block[key].as_str() {
            set(start, key, json!(""));
            deltas.extend(pieces(text).into_iter().map(|piece| {
                let mut delta = json!({"type": kind});
                set(&mut delta, key, json!(piece));
                delta
            }));
        }
    };
    match text(block, "type") {
        "text" => {
            in_pieces(&mut start, "text", "text_delta");
            let citations = listed(&block["citations"]);
            if !citations.is_empty() {
                set(&mut start, "citations", json!([]));
            }
            deltas.extend(citations.iter().map(|citation| json!({"type": "citations_delta", "citation": citation})));
        }
        "thinking" => {
            in_pieces(&mut start, "thinking", "thinking_delta");
            if let Some(signature) = block["signature"].as_str() {
                set(&mut start, "signature", json!(""));
                if !signature.is_empty() {
                    deltas.push(json!({"type": "signature_delta", "signature": signature}));
                }
            }
        }
        kind if kind.ends_with("tool_use") && block.get("input").is_some() => {
            set(&mut start, "input", json!({}));
            let input = block["input"].to_string();
            let delta = |piece| json!({"type": "input_json_delta", "partial_json": piece});
            deltas.extend(pieces(&input).into_iter().map(delta));
        }
        _ => {}
    }
    (start, deltas)
}

fn event(data: &Value) -> String {
    named_event(text(data, "type"), data)
}

/// A joiner of a streamed message.
#[derive(Default)]
pub struct Events {
    message: Option<Value>,
    blocks: BTreeMap<u64, Block>,
    ended: bool,
}

struct Block {
    value: Value,
    /// The JSON text of the input, as received so far.
    input: String,
}

impl Joiner for Events {
    fn add(&mut self, mut event: Value) -> Option<Value> {
        let index = event["index"].as_u64();
        match text(&event, "type") {
            "message_start" => self.message = event.get_mut("message").map(Value::take),
            "content_block_start" => {
                let value = event.get_mut("content_block").map(Value::take).unwrap_or_default();
                if let (Some(message), Some(model)) = (&mut self.message, value.pointer("/to/model"))
                    && text(&value, "type") == "fallback"
                {
                    // Another model took over, and the message is now of that model.
                    set(message, "model", model.clone());
                }
                let after_last = self.blocks.last_key_value().map_or(0, |(last, _)| last.saturating_add(1));
                self.blocks.insert(index.unwrap_or(after_last), Block { value, input: String::new() });
            }
            "content_block_delta" => {
                let block = match index {
                    Some(index) => self.blocks.get_mut(&index),
                    None => self.blocks.last_entry().map(std::collections::btree_map::OccupiedEntry::into_mut),
                };
                if let Some(block) = block {
                    block.add(&event["delta"]);
                }
            }
            "message_delta" => {
                let message = self.message.as_mut()?;
                for (key, value) in event["delta"].as_object().into_iter().flatten() {
                    overlay(message, key, value);
                }
                for (key, value) in event.as_object().into_iter().flatten() {
                    match (key.as_str(), value) {
                        ("type" | "delta", _) => {}
                        ("usage", Value::Object(counts)) if message["usage"].is_object() => {
                            let usage = &mut message["usage"];
                            counts.iter().for_each(|(key, value)| overlay(usage, key, value));
                        }
                        _ => overlay(message, key, value),
                    }
                }
            }
            "message_stop" => self.ended = self.message.is_some(),
            "error" => return Some(event),
            "" if event.get("error").is_some() => return Some(event),
            _ => {}
        }
        None
    }

    fn finish(self: Box<Self>) -> (Option<Value>, bool) {
        let Some(mut message) = self.message else { return (None, false) };
        let blocks: Vec<Value> = self.blocks.into_values().map(Block::finish).collect();
        if !blocks.is_empty() {
            set(&mut message, "content", Value::Array(blocks));
        }
        (Some(message), self.ended)
    }
}

/// Sets a key to a later value. Null does not replace an earlier value.
fn overlay(object: &mut Value, key: &str, value: &Value) {
    if !value.is_null() || object.get(key).is_none() {
        set(object, key, value.clone());
    }
}

impl Block {
    fn add(&mut self, delta: &Value) {
        match text(delta, "type") {
            "text_delta" => append(&mut self.value, "text", text(delta, "text")),
            "thinking_delta" => append(&mut self.value, "thinking", text(delta, "thinking")),
            "signature_delta" => set(&mut self.value, "signature", delta["signature"].clone()),
            "input_json_delta" => self.input.push_str(text(delta, "partial_json")),
            "citations_delta" => match self.value.get_mut("citations") {
                Some(Value::Array(citations)) => citations.push(delta["citation"].clone()),
                _ => set(&mut self.value, "citations", json!([delta["citation"]])),
            },
            // Deltas of other kinds, such as that of a compaction, hold final values.
            _ => {
                for (key, value) in delta.as_object().into_iter().flatten().filter(|(key, _)| *key != "type") {
                    set(&mut self.value, key, value.clone());
                }
            }
        }
    }

    /// Returns the block. If the input is not valid JSON because the stream was cut, it is kept as text.
    fn finish(mut self) -> Value {
        if !self.input.trim().is_empty() {
            let input = serde_json::from_str(&self.input).unwrap_or(Value::String(self.input));
            set(&mut self.value, "input", input);
        }
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::api::join::Joined;
    use crate::gateway::api::{Api, Join, StreamError};

    fn joined(events: &[Value]) -> Joined {
        let mut join = Join::new(Api::Anthropic, "text/event-stream");
        events.iter().for_each(|data| join.push(event(data).as_bytes()));
        join.finish()
    }

    /// A stream as the service writes it.
    fn stream() -> Vec<Value> {
        vec![
            json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                "content": [], "stop_reason": null, "stop_sequence": null,
                "usage": {"input_tokens": 10, "cache_read_input_tokens": 7, "output_tokens": 1, "service_tier": "standard"}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "ping"}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I'll "}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {"n": 1}}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "of_tomorrow", "index": 0}),
            json!({"type": "content_block_start", "index": 1,
                "content_block": {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"a\": "}}),
            json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "\"b\"}"}}),
            json!({"type": "content_block_stop", "index": 1}),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null, "container": {"id": "c"}},
                "usage": {"input_tokens": 12, "output_tokens": 89}, "context_management": {"applied_edits": []}}),
            json!({"type": "message_stop"}),
        ]
    }

    #[test]
    fn later_figures_replace_earlier_ones() {
        let joined = joined(&stream());
        let message = joined.response.unwrap();
        assert!(joined.complete);
        assert_eq!(
            message,
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [
                {"type": "text", "text": "I'll look.", "citations": [{"n": 1}]},
                {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {"a": "b"}}
            ], "stop_reason": "tool_use", "stop_sequence": null, "container": {"id": "c"},
                "context_management": {"applied_edits": []}, "usage": {"input_tokens": 12, "cache_read_input_tokens": 7,
                "output_tokens": 89, "service_tier": "standard"}})
        );
        let usage = Api::Anthropic.usage(&message).unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(12), Some(89)));
        assert_eq!((usage.cache_read_tokens, usage.cache_write_tokens), (Some(7), None));
    }

    #[test]
    fn what_came_before_a_cut_or_an_error_is_kept() {
        let mut events = stream();
        events.truncate(11);
        let cut = joined(&events);
        assert!(!cut.complete);
        assert_eq!(cut.response.as_ref().unwrap()["content"][1]["input"], "{\"a\": ");
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        events.push(error.clone());
        let broken = joined(&events);
        assert_eq!((broken.response, broken.complete), (cut.response, false));
        assert_eq!(broken.error, Some(StreamError::Sent(error.clone())));
        assert_eq!(Api::Anthropic.error_of(&error).unwrap().kind, "overloaded_error");
        assert_eq!(joined(&[json!({"type": "message_stop"})]).response, None);
    }
}
