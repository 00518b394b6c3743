//! Turns exchanges into a text for people: the new parts of each request, and the answer.

use serde_json::Value;

use super::Api;
use crate::text::{first_chars, marked};

/// The maximum number of characters of a text.
const MAX_TEXT_CHARS: usize = 2000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationPart {
    /// The speaker: `system`, `user`, `model`, `call`, `result`, or a role that the service defines.
    pub who: String,
    pub text: String,
}

/// The keys of instructions of the system in a request.
const OF_SYSTEM: [&str; 3] = ["system", "instructions", "systemInstruction"];
/// The keys of the messages in a request.
const OF_MESSAGES: [&str; 3] = ["messages", "input", "contents"];

/// Returns the earlier request that this one continues: the one with which it shares the most messages at the start, then the
/// instructions of the system; of several, the newest.
pub fn continued<'a>(request: &Value, before: &[&'a Value]) -> Option<&'a Value> {
    let mut best: Option<((usize, bool), &Value)> = None;
    for old in before.iter().rev().copied() {
        // A request that cannot share more is not compared: a long session has many, and each repeats the ones before.
        let most = (messages(old).len(), true);
        if best.is_some_and(|(shares, _)| shares >= most) {
            continue;
        }
        let same = messages(old).iter().zip(messages(request)).take_while(|(one, other)| one == other).count();
        let shares = (same, OF_SYSTEM.iter().all(|key| old.get(*key) == request.get(*key)));
        if best.is_none_or(|(most, _)| shares > most) {
            best = Some((shares, old));
        }
    }
    best.map(|(_, old)| old)
}

fn messages(request: &Value) -> &[Value] {
    OF_MESSAGES.iter().find_map(|key| request.get(*key)?.as_array()).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the parts of a request that the earlier request `before` does not contain.
pub fn new_in(request: &Value, before: Option<&Value>) -> Vec<ConversationPart> {
    let mut conversation = Vec::new();
    for key in OF_SYSTEM {
        let Some(now) = request.get(key) else { continue };
        if before.and_then(|before| before.get(key)) != Some(now) {
            conversation.push(ConversationPart { who: "system".to_owned(), text: shortened(&texts(now)) });
        }
    }
    for key in OF_MESSAGES {
        let Some(now) = request.get(key) else { continue };
        let Value::Array(items) = now else {
            conversation.push(ConversationPart { who: "user".to_owned(), text: shortened(&texts(now)) });
            continue;
        };
        let old = before.and_then(|before| before.get(key)).and_then(Value::as_array);
        let same = old.map_or(0, |old| old.iter().zip(items).take_while(|(one, other)| one == other).count());
        // What the model said since then was shown as an answer.
        let of_model = |item: &&Value| {
            matches!(item["role"].as_str(), Some("assistant" | "model"))
                || item["type"].as_str().is_some_and(|kind| kind == "reasoning" || kind.ends_with("_call"))
        };
        items[same..]
            .iter()
            .filter(|item| same == 0 || !of_model(item))
            .for_each(|item| add_item(item, &mut conversation));
    }
    conversation
}

pub fn answer(api: Api, response: &Value) -> Vec<ConversationPart> {
    let mut conversation = Vec::new();
    match api {
        Api::Anthropic => blocks(response.get("content"), "model", &mut conversation),
        Api::OpenaiResponses => {
            response["output"].as_array().into_iter().flatten().for_each(|item| add_item(item, &mut conversation));
        }
        Api::OpenaiChat => {
            let choices = response["choices"].as_array().into_iter().flatten();
            choices.for_each(|choice| add_item(&choice["message"], &mut conversation));
        }
        Api::Gemini => {
            let candidates = response["candidates"].as_array().into_iter().flatten();
            candidates.for_each(|candidate| blocks(candidate["content"].get("parts"), "model", &mut conversation));
        }
    }
    if let Some(error) = conversation.is_empty().then(|| api.error_of(response)).flatten() {
        conversation.push(ConversationPart { who: "error".to_owned(), text: error.message });
    }
    conversation
}

fn add_item(item: &Value, conversation: &mut Vec<ConversationPart>) {
    let role = match item["role"].as_str() {
        Some("assistant" | "model") => "model",
        Some("tool" | "function") => "result",
        Some(role) => role,
        None => "model",
    };
    let kind = item["type"].as_str().unwrap_or("");
    if kind.ends_with("_call") {
        conversation.push(call(item));
    } else if kind.ends_with("_output") {
        conversation.push(ConversationPart { who: "result".to_owned(), text: shortened(&texts(&item["output"])) });
    } else if kind == "reasoning" {
        conversation.push(ConversationPart { who: "thought".to_owned(), text: shortened(&texts(&item["summary"])) });
    } else {
        if let Some(thought) = item["reasoning_content"].as_str().filter(|it| !it.is_empty()) {
            conversation.push(ConversationPart { who: "thought".to_owned(), text: shortened(thought) });
        }
        blocks(item.get("content").or(item.get("parts")), role, conversation);
        item["tool_calls"].as_array().into_iter().flatten().for_each(|it| conversation.push(call(it)));
    }
}

fn blocks(content: Option<&Value>, role: &str, conversation: &mut Vec<ConversationPart>) {
    let push = |who: &str, text: String, conversation: &mut Vec<ConversationPart>| {
        if !text.is_empty() {
            conversation.push(ConversationPart { who: who.to_owned(), text: shortened(&text) });
        }
    };
    match content {
        Some(Value::String(text)) => push(role, text.clone(), conversation),
        Some(Value::Array(parts)) => {
            for part in parts {
                let kind = part["type"].as_str().unwrap_or("");
                if kind == "tool_use" || kind == "server_tool_use" || part.get("functionCall").is_some() {
                    conversation.push(call(part.get("functionCall").unwrap_or(part)));
                } else if let Some(result) = part.get("functionResponse") {
                    push("result", texts(&result["response"]), conversation);
                } else if kind == "tool_result" {
                    push("result", texts(&part["content"]), conversation);
                } else if kind == "thinking" || part["thought"] == true {
                    push("thought", texts(part.get("thinking").unwrap_or(&part["text"])), conversation);
                } else {
                    push(role, texts(part), conversation);
                }
            }
        }
        _ => {}
    }
}

fn call(call: &Value) -> ConversationPart {
    let function = call.get("function").or(call.get("custom")).unwrap_or(call);
    let name = function["name"].as_str().or(call["type"].as_str()).unwrap_or("call");
    let input = ["input", "arguments", "args", "action"].iter().find_map(|key| function.get(*key));
    let input = input.map(|input| input.as_str().map_or_else(|| input.to_string(), str::to_owned));
    ConversationPart { who: "call".to_owned(), text: shortened(&format!("{name} {}", input.unwrap_or_default())) }
}

/// Returns the texts of a value, one below the other; JSON if it has none.
fn texts(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => {
            let text = ["text", "content", "output", "parts", "refusal"].iter().find_map(|key| fields.get(*key));
            text.map_or_else(|| value.to_string(), texts)
        }
        other => other.to_string(),
    }
}

fn shortened(text: &str) -> String {
    marked(first_chars(text.trim_end(), MAX_TEXT_CHARS), text.trim_end())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_continues_the_one_with_which_it_shares_the_most() {
        let of = |system: &str, messages: &[&str]| json!({"system": system, "messages": messages});
        let [short, long, other] = [of("a", &["1", "2"]), of("a", &["1", "2", "3"]), of("b", &["x", "y", "z"])];
        let before = [&short, &long, &other];
        let chosen = |request: Value| continued(&request, &before);
        assert_eq!(chosen(of("a", &["1", "2", "3", "4"])), Some(&long));
        // Both share two messages, so the newer one is continued.
        assert_eq!(chosen(of("a", &["1", "2", "4"])), Some(&long));
        assert_eq!(chosen(of("b", &["x", "q"])), Some(&other));
        // None shares a message, but two share the instructions.
        assert_eq!(chosen(of("a", &["q"])), Some(&long));
        assert_eq!(chosen(of("c", &["q"])), Some(&other));
        assert_eq!(continued(&short, &[]), None);
    }
}
