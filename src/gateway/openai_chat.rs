//! OpenAI Chat Completions: parses requests, and writes answers as JSON and as server-sent events.

use serde_json::{Value, json};

use super::script::{Stop, Usage};
use super::stream::event;
use super::turns::Conversation;
use super::words::{only, pieces, text, text_of};
use super::{Asked, Call, Refusal, Reply, Tool};

/// Parses a request.
pub fn asked(body: &Value) -> Asked {
    let mut said = Conversation::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        match text(message, "role") {
            "assistant" => {
                said.model(message["tool_calls"].as_array().into_iter().flatten().map(|call| text(call, "id")));
            }
            "tool" | "function" => said.result(),
            "user" => said.user(&text_of(&message["content"])),
            _ => said.system(&text_of(&message["content"])),
        }
    }
    let format = &body["response_format"];
    Asked {
        model: body["model"].as_str().map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        usage_in_stream: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        tools: body["tools"].as_array().into_iter().flatten().filter_map(tool).collect(),
        most: body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64()),
        forced: forced(body),
        format: match text(format, "type") {
            "json_schema" => Some(format["json_schema"]["schema"].clone()),
            "json_object" => Some(json!({"type": "object"})),
            _ => None,
        },
        ..said.asked()
    }
}

fn tool(tool: &Value) -> Option<Tool> {
    let freeform = text(tool, "type") == "custom";
    let body = if freeform { &tool["custom"] } else { &tool["function"] };
    let name = body["name"].as_str()?.to_owned();
    let description = text(body, "description").to_owned();
    Some(Tool { name, description, schema: body["parameters"].clone(), freeform, group: None })
}

fn forced(body: &Value) -> Option<String> {
    match &body["tool_choice"] {
        Value::String(word) if word == "required" => {
            only(&body["tools"]).map(|tool| text(&tool["function"], "name").to_owned())
        }
        choice => choice["function"]["name"].as_str().map(str::to_owned),
    }
}

/// Returns the complete answer.
pub fn whole(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if let Some(thinking) = &reply.thinking {
        message["reasoning_content"] = json!(thinking);
    }
    if reply.stop == Stop::Refusal {
        message["refusal"] = json!(refusal_text(reply));
    }
    if !reply.calls.is_empty() {
        message["tool_calls"] = reply.calls.iter().map(|call| called(call, &argument(call))).collect();
    }
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": stop(reply.stop)});
    let mut whole = chunk(reply, "chat.completion", json!([choice]));
    if let Some(used) = reply.usage {
        whole["usage"] = usage(used);
    }
    whole
}

/// Returns the answer as events.
pub fn events(reply: &Reply, with_usage: bool) -> Vec<String> {
    let piece = |delta: Value, finish: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        event(&chunk(reply, "chat.completion.chunk", json!([choice])))
    };
    let mut events = vec![piece(json!({"role": "assistant", "content": ""}), None)];
    for thought in reply.thinking.iter().flat_map(|text| pieces(text)) {
        events.push(piece(json!({"reasoning_content": thought}), None));
    }
    for said in reply.text.iter().flat_map(|text| pieces(text)) {
        events.push(piece(json!({"content": said}), None));
    }
    if reply.stop == Stop::Refusal {
        events.push(piece(json!({"refusal": refusal_text(reply)}), None));
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let mut start = called(call, "");
        start["index"] = json!(index);
        events.push(piece(json!({"tool_calls": [start]}), None));
        let (body, key) = if call.freeform { ("custom", "input") } else { ("function", "arguments") };
        for part in pieces(&argument(call)) {
            let mut more = json!({"index": index});
            more[body] = json!({key: part});
            events.push(piece(json!({"tool_calls": [more]}), None));
        }
    }
    events.push(piece(json!({}), Some(stop(reply.stop))));
    if let Some(used) = reply.usage.filter(|_| with_usage) {
        let mut last = chunk(reply, "chat.completion.chunk", json!([]));
        last["usage"] = usage(used);
        events.push(event(&last));
    }
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// Returns the body of a refused request, for all of OpenAI's APIs.
pub fn error(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("invalid_request_error", Some("permission_denied")),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("rate_limit_error", Some("rate_limit_exceeded")),
        503 => ("server_error", Some("server_is_overloaded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {"message": refusal.message, "type": kind, "param": null, "code": code}})
}

/// Returns an error event for the middle of a stream.
pub fn error_event(refusal: &Refusal) -> String {
    event(&error(refusal))
}

/// Returns the list of models for `GET /v1/models`.
pub fn models(names: &[String]) -> Value {
    json!({"object": "list", "data": names.iter().map(|name| model(name)).collect::<Vec<_>>()})
}

/// Returns one model.
pub fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "evals"})
}

fn chunk(reply: &Reply, object: &str, choices: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{}", reply.id), "object": object, "created": reply.created,
        "model": reply.model, "choices": choices
    })
}

fn called(call: &Call, argument: &str) -> Value {
    if call.freeform {
        json!({"id": call.call, "type": "custom", "custom": {"name": call.tool, "input": argument}})
    } else {
        json!({"id": call.call, "type": "function", "function": {"name": call.tool, "arguments": argument}})
    }
}

/// Returns the input of a call as text, as in OpenAI's APIs.
pub(super) fn argument(call: &Call) -> String {
    match &call.input {
        Value::String(text) if call.freeform => text.clone(),
        input => input.to_string(),
    }
}

/// Returns the text of a refusal.
pub(super) fn refusal_text(reply: &Reply) -> &str {
    reply.text.as_deref().unwrap_or("I can't help with that.")
}

fn stop(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "stop",
        Stop::ToolCalls => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal | Stop::ContentFilter => "content_filter",
    }
}

fn usage(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.sent(), "completion_tokens": usage.output,
        "total_tokens": usage.sent().saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.thought}
    })
}
