//! OpenAI Responses: parses requests, and writes and reads whole answers and errors.

use serde_json::{Map, Value, json};

use super::openai_chat::{argument, refusal_text};
use super::usage::{TokenUsage, count};
use super::{IdKind, ids};
use crate::gateway::script::{Stop, Usage};
use crate::gateway::stream::named_event;
use crate::gateway::turns::{Conversation, turn_of};
use crate::gateway::words::{elements, only, text, text_of};
use crate::gateway::{Call, ModelRequest, Refusal, Reply, Tool};
use crate::trace::usage::uncached;

pub(super) use self::stream::{Events, streamed};

mod stream;

/// Parses a request.
pub fn asked(body: &Value) -> ModelRequest {
    let mut conversation = Conversation::default();
    conversation.system(text(body, "instructions"));
    if let Some(turn) = body["previous_response_id"].as_str().and_then(turn_of) {
        conversation.model([]);
        conversation.model_turns = turn + 1;
    }
    if let Some(input) = body["input"].as_str() {
        conversation.user(input);
    }
    for item in body["input"].as_array().into_iter().flatten() {
        match (text(item, "type"), text(item, "role")) {
            ("message" | "", "assistant") | ("reasoning", _) => conversation.model([]),
            ("message" | "", "user") => conversation.user(&text_of(&item["content"])),
            ("message" | "", _) => conversation.system(&text_of(&item["content"])),
            (kind, _) if kind.ends_with("_output") => {
                conversation.result(item["call_id"].as_str(), text_of(&item["output"]), None);
            }
            (kind, _) if kind.ends_with("_call") => conversation.model([text(item, "call_id")]),
            _ => {}
        }
    }
    let format = &body["text"]["format"];
    ModelRequest {
        model: body["model"].as_str().map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        usage_in_stream: true,
        tools: body["tools"].as_array().into_iter().flatten().flat_map(|tool| tools(tool, None)).collect(),
        most: body["max_output_tokens"].as_u64(),
        forced: forced(body),
        beside: matches!(
            body["client_metadata"]["x-openai-subagent"].as_str(),
            Some("guardian" | "review" | "compact")
        ),
        format: format.get("schema").cloned(),
        ..conversation.asked()
    }
}

/// Returns a tool, or the tools of a group. Tools that the service itself runs, such as a web search, are left
/// out.
fn tools(tool: &Value, group: Option<&str>) -> Vec<Tool> {
    let kind = text(tool, "type");
    if kind == "namespace" {
        let inner = tool["tools"].as_array().into_iter().flatten();
        return inner.flat_map(|inner| tools(inner, tool["name"].as_str())).collect();
    }
    let (name, schema) = match (kind, tool["name"].as_str()) {
        ("function" | "custom", Some(name)) => (name, tool["parameters"].clone()),
        ("local_shell" | "shell", None) => {
            ("local_shell", json!({"properties": {"command": {"type": "array"}}, "required": ["command"]}))
        }
        _ => return Vec::new(),
    };
    let description = text(tool, "description").to_owned();
    let group = group.map(str::to_owned);
    vec![Tool { name: name.to_owned(), group, description, schema, freeform: kind == "custom" }]
}

fn forced(body: &Value) -> Option<String> {
    match &body["tool_choice"] {
        Value::String(word) if word == "required" => only(&body["tools"]).map(|tool| text(tool, "name").to_owned()),
        choice => choice["name"].as_str().map(str::to_owned),
    }
}

/// Returns the complete answer.
pub fn whole(reply: &Reply) -> Value {
    response(reply, state(reply.stop), items(reply))
}

/// Returns an error event for the middle of a stream.
pub fn error_event(refusal: &Refusal) -> String {
    let code = if refusal.status == 503 { "server_is_overloaded" } else { "server_error" };
    let error = json!({"code": code, "message": refusal.message});
    let response = json!({"object": "response", "id": "resp_failed", "status": "failed", "error": error, "output": []});
    named_event("response.failed", &json!({"type": "response.failed", "response": response}))
}

/// Reads the usage of a whole answer.
pub fn usage(response: &Value) -> TokenUsage {
    let usage = &response["usage"];
    let cache_read = count(usage, "/input_tokens_details/cached_tokens");
    let cache_write = count(usage, "/input_tokens_details/cache_write_tokens");
    TokenUsage {
        input_tokens: uncached(count(usage, "/input_tokens"), [cache_read, cache_write]),
        output_tokens: count(usage, "/output_tokens"),
        cache_read_tokens: cache_read,
        cache_write_tokens: cache_write,
        thought_tokens: count(usage, "/output_tokens_details/reasoning_tokens"),
        ..TokenUsage::default()
    }
    .with_total(count(usage, "/total_tokens"))
}

/// The places of ids.
pub(super) const IDS: ids::Rules = ids::Rules {
    kind: id_kind,
    opaque: &["arguments", "tools", "action", "metadata", "client_metadata", "usage", "text", "prompt", "annotations"],
};

fn id_kind(_: &str, object: &Map<String, Value>, key: &str) -> Option<IdKind> {
    let kind = object.get("type").and_then(Value::as_str);
    match (key, kind) {
        ("call_id", _) => Some(IdKind::Call),
        ("previous_response_id", _) => Some(IdKind::Response),
        ("id", None) if object.get("object").and_then(Value::as_str) == Some("response") => Some(IdKind::Response),
        ("id", None | Some("message")) if object.contains_key("role") => Some(IdKind::Message),
        ("id", Some("reasoning")) => Some(IdKind::Reasoning),
        ("id", Some("function_call")) => Some(IdKind::FunctionItem),
        ("id", Some("custom_tool_call")) => Some(IdKind::CustomItem),
        ("id" | "approval_request_id", Some(_)) => Some(IdKind::Item),
        _ => None,
    }
}

/// Returns the prefix of ids of this kind.
pub(super) fn id_prefix(kind: IdKind) -> &'static str {
    match kind {
        IdKind::Call => "call_",
        IdKind::Response => "resp_",
        IdKind::Message => "msg_",
        IdKind::Reasoning => "rs_",
        IdKind::FunctionItem => "fc_",
        IdKind::CustomItem => "ctc_",
        IdKind::ServerCall | IdKind::Item => "item_",
    }
}

/// Visits the contents of tool results.
pub(super) fn results(request: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for item in elements(request, "input").filter(|item| text(item, "type").ends_with("_output")) {
        item.get_mut("output").into_iter().for_each(&mut *visit);
    }
}

fn items(reply: &Reply) -> Vec<Value> {
    let id = &reply.id;
    let mut items = Vec::new();
    if let Some(thinking) = &reply.thinking {
        let summary = json!([{"type": "summary_text", "text": thinking}]);
        let id = format!("rs_{id}");
        items.push(json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": "c2NyaXB0ZWQ="}));
    }
    let content = match (&reply.text, reply.stop) {
        (_, Stop::Refusal) => Some(json!({"type": "refusal", "refusal": refusal_text(reply)})),
        (Some(text), _) => Some(json!({"type": "output_text", "text": text, "annotations": []})),
        (None, _) => None,
    };
    if let Some(content) = content {
        let status = state(reply.stop);
        let id = format!("msg_{id}");
        items.push(json!({"type": "message", "id": id, "role": "assistant", "status": status, "content": [content]}));
    }
    items.extend(reply.calls.iter().enumerate().map(|(at, call)| call_item(id, at, call)));
    items
}

fn call_item(id: &str, at: usize, call: &Call) -> Value {
    let (kind, prefix, key) =
        if call.freeform { ("custom_tool_call", "ctc", "input") } else { ("function_call", "fc", "arguments") };
    let mut item = json!({
        "type": kind, "id": format!("{prefix}_{id}_{at}"), "call_id": call.call, "name": call.tool, "status": "completed"
    });
    item[key] = json!(argument(call));
    if let Some(group) = &call.group {
        item["namespace"] = json!(group);
    }
    item
}

fn state(stop: Stop) -> &'static str {
    if matches!(stop, Stop::MaxTokens | Stop::ContentFilter) { "incomplete" } else { "completed" }
}

fn response(reply: &Reply, status: &str, output: Vec<Value>) -> Value {
    let incomplete = match reply.stop {
        Stop::MaxTokens => json!({"reason": "max_output_tokens"}),
        Stop::ContentFilter => json!({"reason": "content_filter"}),
        Stop::EndTurn | Stop::ToolCalls | Stop::Refusal => Value::Null,
    };
    json!({
        "id": format!("resp_{}", reply.id), "object": "response", "created_at": reply.created, "status": status,
        "model": reply.model, "output": output, "error": null, "incomplete_details": incomplete,
        "parallel_tool_calls": true, "usage": reply.usage.map(written)
    })
}

/// Returns the usage of a script.
fn written(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.sent(), "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.thought},
        "total_tokens": usage.sent().saturating_add(usage.output)
    })
}
