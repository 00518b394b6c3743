//! Anthropic Messages: parses requests, and writes answers as JSON and as server-sent events.

use serde_json::{Value, json};

use super::script::{Stop, Usage};
use super::stream::named_event;
use super::turns::Conversation;
use super::words::{only, pieces, text, text_of};
use super::{Asked, Refusal, Reply, Tool};

/// Parses a request.
pub fn asked(body: &Value) -> Asked {
    let mut said = Conversation::default();
    said.system(&text_of(&body["system"]));
    for message in body["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        let blocks = || content.as_array().into_iter().flatten();
        match text(message, "role") {
            "assistant" => {
                said.model(blocks().filter(|block| text(block, "type") == "tool_use").map(|block| text(block, "id")));
            }
            "user" => {
                blocks().filter(|block| text(block, "type") == "tool_result").for_each(|_| said.result());
                said.user(&text_of(content));
            }
            _ => said.system(&text_of(content)),
        }
    }
    Asked {
        model: body["model"].as_str().map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        usage_in_stream: true,
        tools: body["tools"].as_array().into_iter().flatten().filter_map(tool).collect(),
        most: body["max_tokens"].as_u64(),
        forced: forced(body),
        format: body["output_config"].get("format").or(body.get("output_format")).map(|it| it["schema"].clone()),
        ..said.asked()
    }
}

fn tool(tool: &Value) -> Option<Tool> {
    let name = tool["name"].as_str()?.to_owned();
    // Tools that the API itself defines have only a type.
    let schema = match text(tool, "type") {
        kind if kind.starts_with("text_editor_") => json!({"properties": {
            "command": {}, "path": {}, "file_text": {}, "old_str": {}, "new_str": {}}}),
        kind if kind.starts_with("bash_") => json!({"properties": {"command": {}}}),
        _ => tool["input_schema"].clone(),
    };
    Some(Tool { name, description: text(tool, "description").to_owned(), schema, ..Tool::default() })
}

fn forced(body: &Value) -> Option<String> {
    let choice = &body["tool_choice"];
    match text(choice, "type") {
        "tool" => Some(text(choice, "name").to_owned()),
        "any" => only(&body["tools"]).map(|tool| text(tool, "name").to_owned()),
        _ => None,
    }
}

/// Returns the complete answer.
pub fn whole(reply: &Reply) -> Value {
    let mut content = Vec::new();
    if let Some(thinking) = &reply.thinking {
        content.push(json!({"type": "thinking", "thinking": thinking, "signature": SIGNATURE}));
    }
    content.extend(reply.text.iter().map(|text| json!({"type": "text", "text": text})));
    for call in &reply.calls {
        content.push(json!({"type": "tool_use", "id": call.call, "name": call.tool, "input": call.input}));
    }
    message(reply, content, json!(stop(reply.stop)), usage(reply.usage))
}

/// Returns the answer as events.
pub fn events(reply: &Reply) -> Vec<String> {
    let mut begun = usage(reply.usage);
    begun["output_tokens"] = json!(u64::from(reply.usage.is_some_and(|usage| usage.output > 0)));
    begun["output_tokens_details"]["thinking_tokens"] = json!(0);
    let message = message(reply, Vec::new(), Value::Null, begun);
    let mut events = vec![event(&json!({"type": "message_start", "message": message}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push(event(&json!({"type": "content_block_start", "index": index, "content_block": start})));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))),
        );
        events.push(event(&json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if let Some(thinking) = &reply.thinking {
        let mut deltas: Vec<Value> =
            pieces(thinking).into_iter().map(|piece| json!({"type": "thinking_delta", "thinking": piece})).collect();
        deltas.push(json!({"type": "signature_delta", "signature": SIGNATURE}));
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if let Some(text) = &reply.text {
        let deltas = pieces(text).into_iter().map(|piece| json!({"type": "text_delta", "text": piece})).collect();
        block(json!({"type": "text", "text": ""}), deltas);
    }
    for call in &reply.calls {
        let input = call.input.to_string();
        let deltas = pieces(&input).into_iter().map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        block(json!({"type": "tool_use", "id": call.call, "name": call.tool, "input": {}}), deltas.collect());
    }
    let stop = json!({"stop_reason": stop(reply.stop), "stop_sequence": null});
    events.push(event(&json!({"type": "message_delta", "delta": stop, "usage": usage(reply.usage)})));
    events.push(event(&json!({"type": "message_stop"})));
    events
}

/// Returns the body of a refused request.
pub fn error(refusal: &Refusal) -> Value {
    let kind = match refusal.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": refusal.message}})
}

/// Returns an error event for the middle of a stream.
pub fn error_event(refusal: &Refusal) -> String {
    named_event("error", &error(refusal))
}

/// Returns the list of models for `GET /v1/models`.
pub fn models(names: &[String]) -> Value {
    let data: Vec<Value> = names.iter().map(|name| model(name)).collect();
    json!({"data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()})
}

/// Returns one model.
pub fn model(name: &str) -> Value {
    json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"})
}

/// The placeholder for the signature of a thought.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

fn event(data: &Value) -> String {
    named_event(text(data, "type"), data)
}

fn message(reply: &Reply, content: Vec<Value>, stop: Value, usage: Value) -> Value {
    json!({
        "id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": reply.model,
        "content": content, "stop_reason": stop, "stop_sequence": null, "usage": usage
    })
}

fn stop(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolCalls => "tool_use",
        Stop::MaxTokens => "max_tokens",
        // This API reports a content filter as a refusal.
        Stop::Refusal | Stop::ContentFilter => "refusal",
    }
}

/// Returns the usage, which this API requires.
fn usage(usage: Option<Usage>) -> Value {
    let usage = usage.unwrap_or_default();
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.thought}
    })
}
