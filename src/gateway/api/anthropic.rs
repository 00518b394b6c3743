//! Anthropic Messages: parses requests, and writes and reads whole answers and errors.

use serde_json::{Map, Value, json};

use super::usage::{TokenUsage, count};
use super::{IdKind, ids};
use crate::gateway::script::{Stop, Usage};
use crate::gateway::stream::named_event;
use crate::gateway::turns::Conversation;
use crate::gateway::words::{elements, only, text, text_of};
use crate::gateway::{ModelRequest, Refusal, Reply, Tool};

use self::iterations::MessageTokens;
pub use self::iterations::{costs_more, message_tokens};
pub(super) use self::stream::{Events, streamed};

mod iterations;
mod stream;

/// Parses a request.
pub fn asked(body: &Value) -> ModelRequest {
    let mut conversation = Conversation::default();
    conversation.system(&text_of(&body["system"]));
    for message in body["messages"].as_array().into_iter().flatten() {
        let content = &message["content"];
        let blocks = || content.as_array().into_iter().flatten();
        match text(message, "role") {
            "assistant" => {
                conversation
                    .model(blocks().filter(|block| text(block, "type") == "tool_use").map(|block| text(block, "id")));
            }
            "user" => {
                for result in blocks().filter(|block| text(block, "type") == "tool_result") {
                    let failed = result["is_error"].as_bool().unwrap_or(false);
                    conversation.result(result["tool_use_id"].as_str(), text_of(&result["content"]), Some(failed));
                }
                conversation.user(&text_of(content));
            }
            _ => conversation.system(&text_of(content)),
        }
    }
    ModelRequest {
        model: body["model"].as_str().map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        usage_in_stream: true,
        tools: body["tools"].as_array().into_iter().flatten().filter_map(tool).collect(),
        most: body["max_tokens"].as_u64(),
        forced: forced(body),
        format: body["output_config"].get("format").or(body.get("output_format")).map(|it| it["schema"].clone()),
        ..conversation.asked()
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
    message(reply, content, json!(stop(reply.stop)), written(reply.usage))
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

/// Reads the usage of a whole answer.
pub fn usage(response: &Value) -> TokenUsage {
    let usage = &response["usage"];
    let MessageTokens { counts, of_others, is_partial } = message_tokens(usage, response["model"].as_str());
    let [input_tokens, output_tokens, cache_read_tokens, cache_write_tokens] = counts;
    TokenUsage {
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens,
        thought_tokens: count(usage, "/output_tokens_details/thinking_tokens"),
        lower_bound: is_partial,
        ..TokenUsage::default()
    }
    .with_others(of_others)
}

/// The places of ids.
pub(super) const IDS: ids::Rules =
    ids::Rules { kind: id_kind, opaque: &["input", "tools", "input_schema", "metadata", "usage", "citations"] };

fn id_kind(_: &str, object: &Map<String, Value>, key: &str) -> Option<IdKind> {
    let kind = object.get("type").and_then(Value::as_str).unwrap_or("");
    match (key, kind) {
        ("id", "tool_use") => Some(IdKind::Call),
        ("tool_use_id", "tool_result") => Some(IdKind::Call),
        ("id", kind) if kind.ends_with("_tool_use") => Some(IdKind::ServerCall),
        ("tool_use_id", kind) if kind.ends_with("_tool_result") => Some(IdKind::ServerCall),
        ("id", "message") => Some(IdKind::Response),
        _ => None,
    }
}

/// Returns the prefix of ids of this kind.
pub(super) fn id_prefix(kind: IdKind) -> &'static str {
    match kind {
        IdKind::Call | IdKind::FunctionItem | IdKind::CustomItem => "toolu_",
        IdKind::ServerCall => "srvtoolu_",
        IdKind::Response | IdKind::Message | IdKind::Reasoning | IdKind::Item => "msg_",
    }
}

/// Visits the contents of tool results.
pub(super) fn results(request: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for message in elements(request, "messages") {
        for block in elements(message, "content").filter(|block| text(block, "type") == "tool_result") {
            block.get_mut("content").into_iter().for_each(&mut *visit);
        }
    }
}

/// Returns the list of models for `GET /v1/models`.
pub fn models(names: &[String]) -> Value {
    let data: Vec<Value> = names.iter().map(|name| model(name)).collect();
    json!({"data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()})
}

/// Returns the description of a model, as the API lists it.
pub fn model(name: &str) -> Value {
    json!({"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"})
}

/// The placeholder for the signature of a thought.
const SIGNATURE: &str = "c2NyaXB0ZWQ=";

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

/// Returns the usage of a script, which this API requires.
fn written(usage: Option<Usage>) -> Value {
    let usage = usage.unwrap_or_default();
    json!({
        "input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.thought}
    })
}
