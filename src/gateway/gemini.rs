//! Gemini: parses requests, and writes answers as JSON, as server-sent events and as a streamed list.

use serde_json::{Value, json};

use super::script::{Stop, Usage};
use super::turns::Conversation;
use super::words::{only, pieces, text, text_of};
use super::{Asked, Refusal, Reply, Tool};

/// Parses a request; the model is in its path.
pub fn asked(body: &Value, model: &str, stream: bool) -> Asked {
    let mut said = Conversation::default();
    let system = body.get("systemInstruction").unwrap_or(&body["system_instruction"]);
    said.system(&text_of(&system["parts"]));
    for content in body["contents"].as_array().into_iter().flatten() {
        let parts = || content["parts"].as_array().into_iter().flatten();
        if text(content, "role") == "model" {
            said.model(parts().filter_map(|part| part.get("functionCall")?.get("id")?.as_str()));
        } else {
            parts().filter(|part| part.get("functionResponse").is_some()).for_each(|_| said.result());
            said.user(&text_of(&content["parts"]));
        }
    }
    let config = &body["generationConfig"];
    let schema = config.get("responseJsonSchema").or_else(|| config.get("responseSchema")).cloned();
    let json_wanted = text(config, "responseMimeType") == "application/json";
    Asked {
        model: Some(model.to_owned()),
        stream,
        usage_in_stream: true,
        tools: body["tools"].as_array().into_iter().flatten().flat_map(tools).collect(),
        most: config["maxOutputTokens"].as_u64(),
        forced: forced(body),
        format: schema.or_else(|| json_wanted.then(|| json!({"type": "object"}))),
        ..said.asked()
    }
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

/// Returns the complete answer.
pub fn whole(reply: &Reply) -> Value {
    let parts = [thoughts(reply), texts(reply, false), calls(reply)].concat();
    answer(reply, parts, true)
}

/// Returns the answer in chunks. With `breaks`, the end is in a separate chunk that can be left out.
pub fn chunks(reply: &Reply, breaks: bool) -> Vec<Value> {
    let said = thoughts(reply).into_iter().chain(texts(reply, true)).map(|part| vec![part]);
    let mut parts: Vec<Vec<Value>> = said.collect();
    if !reply.calls.is_empty() {
        parts.push(calls(reply));
    }
    if breaks {
        parts.resize(parts.len().max(1) + 1, Vec::new());
    }
    let last = parts.pop().unwrap_or_default();
    let mut chunks: Vec<Value> = parts.into_iter().map(|parts| answer(reply, parts, false)).collect();
    chunks.push(answer(reply, last, true));
    chunks
}

/// Returns chunks as server-sent events.
pub fn as_events(chunks: &[Value]) -> Vec<String> {
    chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect()
}

/// Returns chunks as the elements of one list.
pub fn as_list(chunks: &[Value]) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for (at, chunk) in chunks.iter().enumerate() {
        let (before, after) = (if at == 0 { "[" } else { ",\r\n" }, if at + 1 == chunks.len() { "]" } else { "" });
        pieces.push(format!("{before}{chunk}{after}"));
    }
    pieces
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

/// Returns the list of models.
pub fn models(names: &[String]) -> Value {
    json!({"models": names.iter().map(|name| model(name)).collect::<Vec<_>>()})
}

/// Returns one model.
pub fn model(name: &str) -> Value {
    json!({
        "name": format!("models/{name}"), "displayName": name, "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent", "streamGenerateContent", "countTokens"]
    })
}

/// Returns a thought in one piece: in this API, each piece is a thought with a heading.
fn thoughts(reply: &Reply) -> Vec<Value> {
    reply.thinking.iter().map(|text| json!({"text": text, "thought": true})).collect()
}

fn texts(reply: &Reply, in_pieces: bool) -> Vec<Value> {
    said(reply.text.as_deref(), in_pieces).map(|text| json!({"text": text})).collect()
}

fn said(text: Option<&str>, in_pieces: bool) -> impl Iterator<Item = &str> {
    let text = text.unwrap_or("");
    let all = if in_pieces { pieces(text) } else { vec![text] };
    all.into_iter().filter(|piece| !piece.is_empty())
}

fn calls(reply: &Reply) -> Vec<Value> {
    let call = |call: &super::Call| json!({"functionCall": {"id": call.call, "name": call.tool, "args": call.input}});
    let mut calls: Vec<Value> = reply.calls.iter().map(call).collect();
    if let Some(first) = calls.first_mut() {
        // The service accepts a call only with the signature of its thought.
        first["thoughtSignature"] = json!("c2NyaXB0ZWQ=");
    }
    calls
}

fn answer(reply: &Reply, parts: Vec<Value>, last: bool) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if last {
        candidate["finishReason"] = json!(match reply.stop {
            Stop::EndTurn | Stop::ToolCalls => "STOP",
            Stop::MaxTokens => "MAX_TOKENS",
            Stop::Refusal => "SAFETY",
            Stop::ContentFilter => "PROHIBITED_CONTENT",
        });
    }
    let mut answer = json!({"candidates": [candidate], "modelVersion": reply.model, "responseId": reply.id});
    if let Some(used) = reply.usage.filter(|_| last) {
        answer["usageMetadata"] = usage(used);
    }
    answer
}

/// Returns the usage. In this API, thoughts are counted separately from candidates.
fn usage(usage: Usage) -> Value {
    json!({
        "promptTokenCount": usage.sent(), "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output.saturating_sub(usage.thought), "thoughtsTokenCount": usage.thought,
        "totalTokenCount": usage.sent().saturating_add(usage.output)
    })
}
