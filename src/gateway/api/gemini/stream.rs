//! Gemini: streams a whole answer as server-sent events or as a list, and joins a streamed one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::gateway::api::Streamed;
use crate::gateway::api::join::Joiner;
use crate::gateway::words::{append, listed, pieces, set};

/// The keys of an answer that each chunk repeats. Others come with the last one.
const EACH: [&str; 3] = ["modelVersion", "responseId", "createTime"];

/// Streams a whole answer. With `end_apart`, the end is in a chunk without content.
pub fn streamed(answer: &Value, as_list: bool, end_apart: bool) -> Streamed {
    let candidates = listed(&answer["candidates"]);
    let mut chunks: Vec<Value> = Vec::new();
    // The content of the last chunk, by candidate.
    let mut last: Vec<Vec<Value>> = Vec::new();
    for candidate in candidates {
        let mut groups = groups(listed(&candidate["content"]["parts"]));
        let rest = if end_apart { Vec::new() } else { groups.pop().unwrap_or_default() };
        chunks.extend(groups.into_iter().map(|parts| json!([opened(candidate, parts)])));
        last.push(rest);
    }
    if end_apart && chunks.is_empty() {
        // A list that breaks must have begun.
        chunks.push(candidates.first().map_or(json!([]), |candidate| json!([opened(candidate, Vec::new())])));
    }
    let chunk = |candidates: Value| {
        let mut chunk = json!({"candidates": candidates});
        for key in EACH {
            if let Some(value) = answer.get(key) {
                set(&mut chunk, key, value.clone());
            }
        }
        chunk
    };
    let body: Vec<Value> = chunks.into_iter().map(chunk).collect();
    let mut end = answer.clone();
    for (candidate, parts) in end.get_mut("candidates").and_then(Value::as_array_mut).into_iter().flatten().zip(last) {
        let has_parts = !listed(&candidate["content"]["parts"]).is_empty();
        if let Some(content) = candidate.get_mut("content").filter(|_| has_parts) {
            set(content, "parts", Value::Array(parts));
        }
    }
    written(&body, &end, as_list)
}

/// Returns a candidate of a chunk before the last.
fn opened(candidate: &Value, parts: Vec<Value>) -> Value {
    let mut content = candidate.get("content").cloned().unwrap_or_else(|| json!({"role": "model"}));
    set(&mut content, "parts", Value::Array(parts));
    let mut opened = json!({"content": content});
    if let Some(index) = candidate.get("index") {
        opened = json!({"index": index, "content": content});
    }
    opened
}

/// Returns the parts of each chunk: a text comes in pieces, a thought in one, since each thought has a heading; calls
/// come together.
fn groups(parts: &[Value]) -> Vec<Vec<Value>> {
    let mut groups: Vec<Vec<Value>> = Vec::new();
    for part in parts {
        let is_call = |part: &Value| part.get("functionCall").is_some();
        if is_call(part)
            && let Some(group) = groups.last_mut().filter(|group| group.iter().all(is_call))
        {
            group.push(part.clone());
            continue;
        }
        let text = part["text"].as_str().filter(|text| !text.is_empty());
        match text.filter(|_| is_plain(part) && !is_thought(part)) {
            Some(text) => {
                let mut texts = pieces(text);
                let end = texts.pop().unwrap_or("");
                groups.extend(texts.into_iter().map(|piece| vec![json!({"text": piece})]));
                // The signature closes a text.
                let mut part = part.clone();
                set(&mut part, "text", json!(end));
                groups.push(vec![part]);
            }
            None => groups.push(vec![part.clone()]),
        }
    }
    groups
}

fn written(body: &[Value], end: &Value, as_list: bool) -> Streamed {
    if !as_list {
        let event = |chunk: &Value| format!("data: {chunk}\r\n\r\n");
        return Streamed { body: body.iter().map(event).collect(), end: vec![event(end)] };
    }
    let element = |(at, chunk): (usize, &Value)| format!("{}{chunk}", if at == 0 { "[" } else { ",\r\n" });
    let end = format!("{}]", element((body.len(), end)));
    Streamed { body: body.iter().enumerate().map(element).collect(), end: vec![end] }
}

fn is_thought(part: &Value) -> bool {
    part["thought"] == true
}

/// Returns true if a part is a text without anything else.
fn is_plain(part: &Value) -> bool {
    let plain = |key: &String| matches!(key.as_str(), "text" | "thought" | "thoughtSignature");
    part["text"].is_string() && part.as_object().is_some_and(|part| part.keys().all(plain))
}

/// A joiner of a streamed answer.
#[derive(Default)]
pub struct Chunks {
    answer: Option<Map<String, Value>>,
    candidates: BTreeMap<u64, Map<String, Value>>,
}

impl Joiner for Chunks {
    fn add(&mut self, event: Value) -> Option<Value> {
        let Value::Object(chunk) = event else { return None };
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            return Some(Value::Object(chunk));
        }
        let answer = self.answer.get_or_insert_default();
        for (key, value) in chunk {
            match (key.as_str(), value) {
                ("candidates", Value::Array(candidates)) => {
                    answer.entry("candidates").or_insert_with(|| json!([]));
                    for (at, candidate) in candidates.into_iter().enumerate() {
                        let Value::Object(candidate) = candidate else { continue };
                        // The index of the first candidate is often left out.
                        let index = candidate.get("index").and_then(Value::as_u64).unwrap_or(at as u64);
                        joined(self.candidates.entry(index).or_default(), candidate);
                    }
                }
                (_, Value::Null) if answer.contains_key(&key) => {}
                (_, value) => {
                    answer.insert(key, value);
                }
            }
        }
        None
    }

    fn finish(self: Box<Self>) -> (Option<Value>, bool) {
        let Some(mut answer) = self.answer else { return (None, false) };
        let finished = |candidate: &Map<String, Value>| candidate.get("finishReason").is_some_and(Value::is_string);
        let blocked = answer.get("promptFeedback").is_some_and(|feedback| feedback["blockReason"].is_string());
        let all = !self.candidates.is_empty() && self.candidates.values().all(finished);
        if !self.candidates.is_empty() {
            let candidates = self.candidates.into_values().map(Value::Object).collect();
            answer.insert("candidates".to_owned(), Value::Array(candidates));
        }
        (Some(Value::Object(answer)), all || blocked)
    }
}

fn joined(candidate: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match (key.as_str(), candidate.get_mut(&key), value) {
            ("content", Some(content @ Value::Object(_)), Value::Object(more)) => {
                for (key, value) in more {
                    match (key.as_str(), value) {
                        ("parts", Value::Array(parts)) => add_parts(content, parts),
                        (_, value) => set(content, &key, value),
                    }
                }
            }
            ("content", _, Value::Object(mut content)) => {
                let parts = content.remove("parts");
                let mut content = Value::Object(content);
                match parts {
                    Some(Value::Array(parts)) => add_parts(&mut content, parts),
                    Some(other) => set(&mut content, "parts", other),
                    None => {}
                }
                candidate.insert(key, content);
            }
            (_, Some(_), Value::Null) => {}
            (_, _, value) => {
                candidate.insert(key, value);
            }
        }
    }
}

/// Adds parts to a content. A text is joined to the previous text if both are thoughts or neither is, and no signature
/// has closed the previous text.
fn add_parts(content: &mut Value, parts: Vec<Value>) {
    if !content["parts"].is_array() {
        set(content, "parts", json!([]));
    }
    let Some(all) = content.get_mut("parts").and_then(Value::as_array_mut) else { return };
    for part in parts {
        let continues = is_plain(&part);
        let open = all.last_mut().filter(|last| {
            continues
                && is_plain(last)
                && last.get("thoughtSignature").is_none()
                && is_thought(last) == is_thought(&part)
        });
        match (open, part) {
            (Some(last), Value::Object(part)) => {
                for (key, value) in part {
                    match (key.as_str(), value) {
                        ("text", Value::String(more)) => append(last, "text", &more),
                        (_, value) => set(last, &key, value),
                    }
                }
            }
            (_, part) => all.push(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::api::join::Joined;
    use crate::gateway::api::{Api, Join, StreamError};

    fn joined(text: &str) -> Joined {
        let mut join = Join::new(Api::Gemini, "");
        text.as_bytes().chunks(3).for_each(|bytes| join.push(bytes));
        join.finish()
    }

    const LIST: &str = r#"[{"candidates": [{"content": {"role": "model", "parts": [{"text": "**Hm**", "thought": true}]}}],
  "usageMetadata": {"promptTokenCount": 5, "thoughtsTokenCount": 1}, "modelVersion": "g", "responseId": "r"}
,
{"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}], "modelVersion": "g", "responseId": "r"}
,
{"candidates": [{"content": {"role": "model", "parts": [{"text": "lo"}]}}]}
,
{"candidates": [{"content": {"role": "model", "parts": [{"text": "", "thoughtSignature": "s"}]}, "finishReason": "STOP"}],
  "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 9}}
]"#;

    #[test]
    fn pieces_of_a_text_and_its_signature_are_one_part() {
        let wanted = json!({
            "candidates": [{"content": {"role": "model", "parts": [
                {"text": "**Hm**", "thought": true}, {"text": "Hello", "thoughtSignature": "s"}
            ]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "thoughtsTokenCount": 9},
            "modelVersion": "g", "responseId": "r"
        });
        let events = LIST.replace('\n', " ").replace("[{\"candidates\"", "data: {\"candidates\"");
        let events = events.replace(" , {\"cand", "\r\n\r\ndata: {\"cand").trim_end_matches(']').to_owned();
        for text in [LIST, &events] {
            let joined = joined(text);
            assert_eq!((joined.response.as_ref(), joined.complete), (Some(&wanted), true), "{text} {joined:?}");
        }
        assert_eq!(Api::Gemini.usage(&wanted).unwrap().output_tokens, Some(11));
    }

    #[test]
    fn a_blocked_prompt_is_a_complete_answer_and_an_error_is_not() {
        let blocked =
            r#"data: {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}"#;
        assert!(joined(blocked).complete);
        let error = json!({"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}});
        let cut = LIST
            .split_once("{\"candidates\": [{\"content\": {\"role\": \"model\", \"parts\": [{\"text\": \"\"")
            .unwrap()
            .0;
        let joined = joined(&format!("{cut}{error}]"));
        assert_eq!(joined.error, Some(StreamError::Sent(error.clone())));
        assert!(!joined.complete);
        assert_eq!(joined.response.unwrap()["candidates"][0]["content"]["parts"][1], json!({"text": "Hello"}));
        let refusal = crate::gateway::Refusal { status: 503, message: "no".to_owned(), retry_after_ms: None };
        let options = crate::gateway::api::StreamOptions { as_list: true, ..Default::default() };
        let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
        let broken = Api::Gemini.broken(&blocked, options, Some(&refusal)).concat();
        assert!(serde_json::from_str::<Value>(&broken).is_ok(), "{broken}");
        let read = Api::Gemini.error_of(&json!([error])).unwrap();
        assert_eq!((read.kind.as_str(), read.message.as_str()), ("UNAVAILABLE", "no"));
    }
}
