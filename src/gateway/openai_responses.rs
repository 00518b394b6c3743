//! OpenAI Responses: parses requests, and writes answers as JSON and as server-sent events.

use serde_json::{Value, json};

use super::openai_chat::{argument, refusal_text};
use super::script::{Stop, Usage};
use super::stream::named_event;
use super::turns::{Conversation, turn_of};
use super::words::{only, pieces, text, text_of};
use super::{Asked, Call, Refusal, Reply, Tool};

/// Parses a request.
pub fn asked(body: &Value) -> Asked {
    let mut said = Conversation::default();
    said.system(text(body, "instructions"));
    if let Some(turn) = body["previous_response_id"].as_str().and_then(turn_of) {
        said.model([]);
        said.model_turns = turn + 1;
    }
    if let Some(input) = body["input"].as_str() {
        said.user(input);
    }
    for item in body["input"].as_array().into_iter().flatten() {
        match (text(item, "type"), text(item, "role")) {
            ("message" | "", "assistant") | ("reasoning", _) => said.model([]),
            ("message" | "", "user") => said.user(&text_of(&item["content"])),
            ("message" | "", _) => said.system(&text_of(&item["content"])),
            (kind, _) if kind.ends_with("_output") => said.result(),
            (kind, _) if kind.ends_with("_call") => said.model([text(item, "call_id")]),
            _ => {}
        }
    }
    let format = &body["text"]["format"];
    Asked {
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
        ..said.asked()
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

/// Returns the answer as events.
pub fn events(reply: &Reply) -> Vec<String> {
    let mut events = Events::default();
    let begun = response(&Reply { usage: None, stop: Stop::EndTurn, ..reply.clone() }, "in_progress", Vec::new());
    events.add("response.created", json!({"response": begun}));
    events.add("response.in_progress", json!({"response": begun}));
    for (index, item) in items(reply).iter().enumerate() {
        let at = |more: Value| -> Value {
            let mut body = json!({"item_id": item["id"], "output_index": index});
            if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
                body.extend(more);
            }
            body
        };
        events.add("response.output_item.added", json!({"output_index": index, "item": begun_item(item)}));
        match text(item, "type") {
            "reasoning" => {
                let said = text(&item["summary"][0], "text");
                let part = |text: &str| json!({"summary_index": 0, "part": {"type": "summary_text", "text": text}});
                events.add("response.reasoning_summary_part.added", at(part("")));
                for delta in pieces(said) {
                    events
                        .add("response.reasoning_summary_text.delta", at(json!({"summary_index": 0, "delta": delta})));
                }
                events.add("response.reasoning_summary_text.done", at(json!({"summary_index": 0, "text": said})));
                events.add("response.reasoning_summary_part.done", at(part(said)));
            }
            "message" => {
                let content = &item["content"][0];
                let (word, key) = match text(content, "type") {
                    "refusal" => ("refusal", "refusal"),
                    _ => ("output_text", "text"),
                };
                let said = text(content, key);
                let mut empty = content.clone();
                empty[key] = json!("");
                events.add("response.content_part.added", at(json!({"content_index": 0, "part": empty})));
                for delta in pieces(said) {
                    events.add(&format!("response.{word}.delta"), at(json!({"content_index": 0, "delta": delta})));
                }
                let mut done = json!({"content_index": 0});
                done[key] = json!(said);
                events.add(&format!("response.{word}.done"), at(done));
                events.add("response.content_part.done", at(json!({"content_index": 0, "part": content})));
            }
            "function_call" => {
                let said = text(item, "arguments");
                for delta in pieces(said) {
                    events.add("response.function_call_arguments.delta", at(json!({"delta": delta})));
                }
                events.add("response.function_call_arguments.done", at(json!({"arguments": said})));
            }
            "custom_tool_call" => {
                let said = text(item, "input");
                for delta in pieces(said) {
                    events.add("response.custom_tool_call_input.delta", at(json!({"delta": delta})));
                }
                events.add("response.custom_tool_call_input.done", at(json!({"input": said})));
            }
            _ => {}
        }
        events.add("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    events.add(&format!("response.{}", state(reply.stop)), json!({"response": whole(reply)}));
    events.texts
}

#[derive(Default)]
struct Events {
    texts: Vec<String>,
}

impl Events {
    fn add(&mut self, name: &str, body: Value) {
        let mut data = json!({"type": name, "sequence_number": self.texts.len()});
        if let (Value::Object(data), Value::Object(body)) = (&mut data, body) {
            data.extend(body);
        }
        self.texts.push(named_event(name, &data));
    }
}

/// Returns an error event for the middle of a stream.
pub fn error_event(refusal: &Refusal) -> String {
    let code = if refusal.status == 503 { "server_is_overloaded" } else { "server_error" };
    let error = json!({"code": code, "message": refusal.message});
    let response = json!({"object": "response", "id": "resp_failed", "status": "failed", "error": error, "output": []});
    named_event("response.failed", &json!({"type": "response.failed", "response": response}))
}

/// Returns an item in the form that it has in the stream before its content.
fn begun_item(item: &Value) -> Value {
    let mut begun = item.clone();
    if text(item, "type") != "reasoning" {
        begun["status"] = json!("in_progress");
    }
    for (key, empty) in [("summary", json!([])), ("content", json!([])), ("arguments", json!("")), ("input", json!(""))]
    {
        if begun.get(key).is_some() {
            begun[key] = empty;
        }
    }
    begun
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
        "parallel_tool_calls": true, "usage": reply.usage.map(usage)
    })
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.sent(), "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": usage.thought},
        "total_tokens": usage.sent().saturating_add(usage.output)
    })
}
