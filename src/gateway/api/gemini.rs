//! Gemini: parses requests, and writes and reads whole answers and errors.

use serde_json::{Map, Value, json};

use super::usage::{TokenUsage, count};
use super::{IdKind, ids};
use crate::gateway::script::{Stop, Usage};
use crate::gateway::turns::Conversation;
use crate::gateway::words::{elements, only, text, text_of};
use crate::gateway::{ModelRequest, Refusal, Reply, Tool};
use crate::trace::usage::uncached;

pub(super) use self::stream::{Chunks, streamed};

mod stream;

/// Parses a request; the model is in its path.
pub fn asked(path: &str, body: &Value) -> ModelRequest {
    let mut conversation = Conversation::default();
    let system = body.get("systemInstruction").unwrap_or(&body["system_instruction"]);
    conversation.system(&text_of(&system["parts"]));
    for content in body["contents"].as_array().into_iter().flatten() {
        let parts = || content["parts"].as_array().into_iter().flatten();
        if text(content, "role") == "model" {
            conversation.model(parts().filter_map(|part| part.get("functionCall")?.get("id")?.as_str()));
        } else {
            for result in parts().filter_map(|part| part.get("functionResponse")) {
                let (text, failed) = result_of(&result["response"]);
                conversation.result(result["id"].as_str(), text, Some(failed));
            }
            conversation.user(&text_of(&content["parts"]));
        }
    }
    let config = &body["generationConfig"];
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema")).cloned();
    let json_wanted = text(config, "responseMimeType") == "application/json";
    ModelRequest {
        model: model_of(path).map(str::to_owned),
        stream: parts_of(path).is_some_and(|(_, _, after)| after.starts_with(":streamGenerateContent")),
        usage_in_stream: true,
        tools: body["tools"].as_array().into_iter().flatten().flat_map(tools).collect(),
        most: config["maxOutputTokens"].as_u64(),
        forced: forced(body),
        format: schema.or_else(|| json_wanted.then(|| json!({"type": "object"}))),
        ..conversation.asked()
    }
}

/// Returns the text of a result, and whether the call failed. By the API's convention a response has the key `output` or
/// `error`; any other response is the output itself.
fn result_of(response: &Value) -> (String, bool) {
    let error = response.get("error").filter(|error| !error.is_null());
    let value = error.or_else(|| response.get("output")).unwrap_or(response);
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    (text, error.is_some())
}

fn tools(group: &Value) -> Vec<Tool> {
    let all = group.get("functionDeclarations").or_else(|| group.get("function_declarations"));
    let declared = all.and_then(Value::as_array).into_iter().flatten();
    let tool = |tool: &Value| {
        let schema = tool.get("parametersJsonSchema").or_else(|| tool.get("parameters")).cloned().unwrap_or_default();
        let description = text(tool, "description").to_owned();
        Some(Tool { name: tool["name"].as_str()?.to_owned(), description, schema, ..Tool::default() })
    };
    declared.filter_map(tool).collect()
}

fn forced(body: &Value) -> Option<String> {
    let config = &body["toolConfig"]["functionCallingConfig"];
    let named = only(&config["allowedFunctionNames"]).and_then(Value::as_str);
    named.filter(|_| text(config, "mode") == "ANY").map(str::to_owned)
}

pub(super) fn model_of(path: &str) -> Option<&str> {
    parts_of(path).map(|(_, model, _)| model)
}

/// Returns the path with its model replaced.
pub(super) fn path_with_model(path: &str, model: &str) -> String {
    parts_of(path).map_or_else(|| path.to_owned(), |(before, _, after)| format!("{before}{model}{after}"))
}

/// Splits a path before and after the model: `…/models/NAME:METHOD?QUERY`.
fn parts_of(path: &str) -> Option<(&str, &str, &str)> {
    const KEY: &str = "/models/";
    let end = path.find('?').unwrap_or(path.len());
    let begin = path.get(..end)?.rfind(KEY)? + KEY.len();
    let colon = path.get(begin..end)?.rfind(':').map_or(end, |at| begin + at);
    Some((path.get(..begin)?, path.get(begin..colon)?, path.get(colon..)?))
}

/// Returns the complete answer.
pub fn whole(reply: &Reply) -> Value {
    let thoughts = reply.thinking.iter().map(|text| json!({"text": text, "thought": true}));
    let texts = reply.text.iter().filter(|text| !text.is_empty()).map(|text| json!({"text": text}));
    let parts: Vec<Value> = thoughts.chain(texts).chain(calls(reply)).collect();
    let reason = match reply.stop {
        Stop::EndTurn | Stop::ToolCalls => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::ContentFilter => "PROHIBITED_CONTENT",
    };
    let candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": reason});
    let mut answer = json!({"candidates": [candidate], "modelVersion": reply.model, "responseId": reply.id});
    if let Some(used) = reply.usage {
        answer["usageMetadata"] = written(used);
    }
    answer
}

/// Returns the body of a refused request.
pub fn error(refusal: &Refusal) -> Value {
    let status = match refusal.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        500 => "INTERNAL",
        504 => "DEADLINE_EXCEEDED",
        501.. => "UNAVAILABLE",
        _ => "INVALID_ARGUMENT",
    };
    let mut error = json!({"code": refusal.status, "message": refusal.message, "status": status});
    if let Some(ms) = refusal.retry_after_ms {
        let delay = format!("{}.{:03}s", ms / 1000, ms % 1000);
        error["details"] = json!([{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]);
    }
    json!({"error": error})
}

/// Returns an error event for the middle of a stream, as an event or as the last element of a list.
pub fn error_event(refusal: &Refusal, as_list: bool) -> String {
    let error = error(refusal);
    if as_list { format!(",\r\n{error}]") } else { format!("data: {error}\r\n\r\n") }
}

/// Reads the usage of a whole answer. In this API, thoughts are counted separately from candidates, and the results of
/// tools that the service runs separately from the prompt. A count of zero is left out by the service.
pub fn usage(response: &Value) -> TokenUsage {
    let usage = &response["usageMetadata"];
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    let cache_read = count(usage, "/cachedContentTokenCount");
    let thought = count(usage, "/thoughtsTokenCount");
    let prompt = uncached(count(usage, "/promptTokenCount"), [cache_read, None]);
    TokenUsage {
        input_tokens: sum(prompt, count(usage, "/toolUsePromptTokenCount")),
        output_tokens: sum(count(usage, "/candidatesTokenCount"), thought),
        cache_read_tokens: cache_read,
        cache_write_tokens: None,
        thought_tokens: thought,
        ..TokenUsage::default()
    }
    .with_total(count(usage, "/totalTokenCount"))
}

/// The places of ids.
pub(super) const IDS: ids::Rules = ids::Rules {
    kind: id_kind,
    opaque: &["args", "response", "tools", "labels", "usageMetadata", "groundingMetadata"],
};

fn id_kind(parent: &str, _: &Map<String, Value>, key: &str) -> Option<IdKind> {
    match (parent, key) {
        ("functionCall" | "functionResponse", "id") => Some(IdKind::Call),
        ("", "responseId") => Some(IdKind::Response),
        _ => None,
    }
}

/// Returns the prefix of ids of this kind. The ids of this API have no fixed form.
pub(super) fn id_prefix(kind: IdKind) -> &'static str {
    match kind {
        IdKind::Call | IdKind::ServerCall | IdKind::FunctionItem | IdKind::CustomItem => "call_",
        IdKind::Response | IdKind::Message | IdKind::Reasoning | IdKind::Item => "resp_",
    }
}

/// Visits the contents of tool results.
pub(super) fn results(request: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    for content in elements(request, "contents") {
        for response in elements(content, "parts").filter_map(|part| part.get_mut("functionResponse")) {
            ["response", "parts"].into_iter().for_each(|key| response.get_mut(key).into_iter().for_each(&mut *visit));
        }
    }
}

/// Returns the list of models.
pub fn models(names: &[String]) -> Value {
    json!({"models": names.iter().map(|name| model(name)).collect::<Vec<_>>()})
}

/// Returns the description of a model, as the API lists it.
pub fn model(name: &str) -> Value {
    json!({
        "name": format!("models/{name}"), "displayName": name, "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"]
    })
}

fn calls(reply: &Reply) -> Vec<Value> {
    let call =
        |call: &crate::gateway::Call| json!({"functionCall": {"id": call.call, "name": call.tool, "args": call.input}});
    let mut calls: Vec<Value> = reply.calls.iter().map(call).collect();
    if let Some(first) = calls.first_mut() {
        // The service accepts a call only with the signature of its thought.
        first["thoughtSignature"] = json!("c2NyaXB0ZWQ=");
    }
    calls
}

/// Returns the usage of a script. In this API, thoughts are counted separately from candidates.
fn written(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.sent(), "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output.saturating_sub(usage.thought), "thoughtsTokenCount": usage.thought,
        "totalTokenCount": usage.sent().saturating_add(usage.output)
    })
}
