//! OpenAI Chat Completions: parses requests, and writes and reads whole answers and errors.

use serde_json::{Map, Value, json};

use super::usage::{Pricing, TokenUsage, count};
use super::{IdKind, ids};
use crate::gateway::script::{Stop, Usage};
use crate::gateway::stream::event;
use crate::gateway::turns::Conversation;
use crate::gateway::words::{elements, only, text, text_of};
use crate::gateway::{Call, ModelRequest, Refusal, Reply, Tool};
use crate::trace::usage::uncached;

pub(super) use self::stream::{Chunks, streamed};

mod stream;

/// Parses a request.
pub fn asked(body: &Value) -> ModelRequest {
    let mut conversation = Conversation::default();
    for message in body["messages"].as_array().into_iter().flatten() {
        match text(message, "role") {
            "assistant" => {
                conversation.model(message["tool_calls"].as_array().into_iter().flatten().map(|call| text(call, "id")));
            }
            "tool" | "function" => {
                conversation.result(message["tool_call_id"].as_str(), text_of(&message["content"]), None);
            }
            "user" => conversation.user(&text_of(&message["content"])),
            _ => conversation.system(&text_of(&message["content"])),
        }
    }
    let format = &body["response_format"];
    ModelRequest {
        model: body["model"].as_str().map(str::to_owned),
        stream: body["stream"].as_bool().unwrap_or(false),
        usage_in_stream: body["stream_options"]["include_usage"].as_bool().unwrap_or(false),
        tools: body["tools"].as_array().into_iter().flatten().filter_map(tool).collect(),
        functions: body["functions"].as_array().is_some_and(|functions| !functions.is_empty()),
        most: body["max_completion_tokens"].as_u64().or(body["max_tokens"].as_u64()),
        forced: forced(body),
        format: match text(format, "type") {
            "json_schema" => Some(format["json_schema"]["schema"].clone()),
            "json_object" => Some(json!({"type": "object"})),
            _ => None,
        },
        ..conversation.asked()
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
    let mut whole = json!({
        "id": format!("chatcmpl-{}", reply.id), "object": "chat.completion", "created": reply.created,
        "model": reply.model, "choices": [choice]
    });
    if let Some(used) = reply.usage {
        whole["usage"] = written(used);
    }
    whole
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

/// Reads the usage of a whole answer.
pub fn usage(response: &Value) -> TokenUsage {
    let usage = &response["usage"];
    let sent = count(usage, "/prompt_tokens");
    let cache_read =
        count(usage, "/prompt_tokens_details/cached_tokens").or_else(|| count(usage, "/prompt_cache_hit_tokens"));
    let cache_write = count(usage, "/prompt_tokens_details/cache_write_tokens");
    let thought = count(usage, "/completion_tokens_details/reasoning_tokens");
    let completion = count(usage, "/completion_tokens");
    let total = count(usage, "/total_tokens");
    // Some services count thoughts apart from the completion, which the total shows.
    let with_thoughts = completion.zip(thought).map(|(completion, thought)| completion.saturating_add(thought));
    let apart =
        thought != Some(0) && total.is_some() && sent.zip(with_thoughts).map(|(a, b)| a.saturating_add(b)) == total;
    TokenUsage {
        input_tokens: uncached(sent, [cache_read, cache_write]),
        output_tokens: if apart { with_thoughts } else { completion },
        cache_read_tokens: cache_read,
        cache_write_tokens: cache_write,
        thought_tokens: thought,
        ..TokenUsage::default()
    }
    .with_total(total)
}

/// The items of a response by which the service did something that costs more than its tokens.
const PAID: [&str; 4] = ["code_interpreter_call", "file_search_call", "image_generation_call", "web_search_call"];

/// Returns what an answer of one of OpenAI's APIs costs, by the tier that it names and the tools of the service that it used.
pub fn pricing(response: &Value) -> Pricing {
    let items = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
    match text(response, "service_tier") {
        "batch" | "flex" | "scale" => Pricing::Less,
        "priority" => Pricing::More,
        _ if items.iter().any(|item| PAID.contains(&text(item, "type"))) => Pricing::More,
        _ => Pricing::Listed,
    }
}

/// The places of ids.
pub(super) const IDS: ids::Rules =
    ids::Rules { kind: id_kind, opaque: &["arguments", "tools", "functions", "metadata", "usage", "logprobs"] };

fn id_kind(parent: &str, object: &Map<String, Value>, key: &str) -> Option<IdKind> {
    match key {
        "tool_call_id" => Some(IdKind::Call),
        "id" if parent == "tool_calls" => Some(IdKind::Call),
        "id" if parent == "reasoning_details" => Some(IdKind::Reasoning),
        "id" if parent.is_empty() && object.contains_key("choices") => Some(IdKind::Response),
        _ => None,
    }
}

/// Returns the prefix of ids of this kind.
pub(super) fn id_prefix(kind: IdKind) -> &'static str {
    match kind {
        IdKind::Call | IdKind::ServerCall | IdKind::FunctionItem | IdKind::CustomItem => "call_",
        IdKind::Response | IdKind::Item => "chatcmpl-",
        IdKind::Message => "msg_",
        IdKind::Reasoning => "rs_",
    }
}

/// Visits the contents of tool results.
pub(super) fn results(request: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for message in elements(request, "messages").filter(|it| matches!(text(it, "role"), "tool" | "function")) {
        message.get_mut("content").into_iter().for_each(&mut *visit);
    }
}

/// Returns the list of models for `GET /v1/models`.
pub fn models(names: &[String]) -> Value {
    json!({"object": "list", "data": names.iter().map(|name| model(name)).collect::<Vec<_>>()})
}

/// Returns the description of a model, as the API lists it.
pub fn model(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 1_767_225_600, "owned_by": "evals"})
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

/// Returns the usage of a script.
fn written(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.sent(), "completion_tokens": usage.output,
        "total_tokens": usage.sent().saturating_add(usage.output),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.thought}
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tier_and_the_tools_of_the_service_decide_what_tokens_cost() {
        for (response, wanted) in [
            (json!({}), Pricing::Listed),
            (json!({"service_tier": "default", "output": [{"type": "message"}]}), Pricing::Listed),
            (json!({"service_tier": "priority"}), Pricing::More),
            (json!({"service_tier": null, "output": [{"type": "web_search_call"}]}), Pricing::More),
            (json!({"service_tier": "flex", "output": [{"type": "web_search_call"}]}), Pricing::Less),
        ] {
            assert_eq!(pricing(&response), wanted, "{response}");
        }
    }
}
