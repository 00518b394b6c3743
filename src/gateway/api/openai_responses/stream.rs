//! OpenAI Responses: streams a whole response, and joins a streamed one.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::gateway::api::Streamed;
use crate::gateway::api::join::Joiner;
use crate::gateway::stream::named_event;
use crate::gateway::words::{append, listed, pieces, reset, set, text};

/// Streams a whole response.
pub fn streamed(response: &Value) -> Streamed {
    let mut begun = response.clone();
    if response["output"].is_array() {
        reset(&mut begun, "output", json!([]));
    }
    reset(&mut begun, "status", json!("in_progress"));
    for key in ["error", "incomplete_details", "usage", "completed_at"] {
        reset(&mut begun, key, Value::Null);
    }
    let mut events = Writer::default();
    events.add("response.created", json!({"response": begun}));
    events.add("response.in_progress", json!({"response": begun}));
    for (index, item) in listed(&response["output"]).iter().enumerate() {
        events.add("response.output_item.added", json!({"output_index": index, "item": opened(item)}));
        events.content(&OutputItem { item, index });
        events.add("response.output_item.done", json!({"output_index": index, "item": item}));
    }
    let body = std::mem::take(&mut events.texts);
    let state = match text(response, "status") {
        state @ ("incomplete" | "failed" | "cancelled" | "in_progress" | "queued") => state,
        _ => "completed",
    };
    events.add(&format!("response.{state}"), json!({"response": response}));
    Streamed { body, end: events.texts }
}

/// Returns an item in the form that it has in the stream before its content.
fn opened(item: &Value) -> Value {
    let mut begun = item.clone();
    if item["status"].is_string() {
        set(&mut begun, "status", json!("in_progress"));
    }
    for key in ["summary", "content"].into_iter().filter(|key| item[key].is_array()) {
        set(&mut begun, key, json!([]));
    }
    if let Some((_, key)) = input_of(item) {
        set(&mut begun, key, json!(""));
    }
    begun
}

/// Returns the events and the key of an input that is streamed in pieces.
fn input_of(item: &Value) -> Option<(&'static str, &'static str)> {
    let (events, key) = match text(item, "type") {
        "function_call" => ("response.function_call_arguments", "arguments"),
        "custom_tool_call" => ("response.custom_tool_call_input", "input"),
        _ => return None,
    };
    item[key].is_string().then_some((events, key))
}

struct OutputItem<'a> {
    item: &'a Value,
    index: usize,
}

impl OutputItem<'_> {
    fn at(&self, more: Value) -> Value {
        let mut body = json!({"output_index": self.index});
        if let Some(id) = self.item.get("id") {
            body = json!({"item_id": id, "output_index": self.index});
        }
        merge(&mut body, more);
        body
    }
}

fn merge(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

#[derive(Default)]
struct Writer {
    sequence: usize,
    texts: Vec<String>,
}

impl Writer {
    fn add(&mut self, name: &str, body: Value) {
        let mut data = json!({"type": name, "sequence_number": self.sequence});
        merge(&mut data, body);
        self.sequence += 1;
        self.texts.push(named_event(name, &data));
    }

    /// Adds the content of an item. Items of other kinds have none that is streamed.
    fn content(&mut self, place: &OutputItem<'_>) {
        let item = place.item;
        for (at, part) in listed(&item["summary"]).iter().enumerate() {
            let events = ("response.reasoning_summary_part", "response.reasoning_summary_text");
            self.part(place, part, "text", events, json!({"summary_index": at}));
        }
        for (at, part) in listed(&item["content"]).iter().enumerate() {
            let (texts, key) = match text(part, "type") {
                "output_text" => ("response.output_text", "text"),
                "reasoning_text" => ("response.reasoning_text", "text"),
                "refusal" => ("response.refusal", "refusal"),
                _ => ("", ""),
            };
            self.part(place, part, key, ("response.content_part", texts), json!({"content_index": at}));
        }
        if let Some((events, key)) = input_of(item) {
            let whole = text(item, key);
            for delta in pieces(whole) {
                self.add(&format!("{events}.delta"), place.at(json!({"delta": delta})));
            }
            let mut done = json!({});
            set(&mut done, key, json!(whole));
            self.add(&format!("{events}.done"), place.at(done));
        }
    }

    /// Adds one part of an item's content: the events of its text, if any, then its annotations.
    fn part(&mut self, place: &OutputItem<'_>, part: &Value, key: &str, names: (&str, &str), at: Value) {
        let (parts, texts) = names;
        let with = |more: Value| {
            let mut body = place.at(at.clone());
            merge(&mut body, more);
            body
        };
        let mut empty = part.clone();
        let whole = part[key].as_str();
        let annotations = listed(&part["annotations"]);
        let logprobs = &part["logprobs"];
        if whole.is_some() {
            set(&mut empty, key, json!(""));
        }
        for key in ["annotations", "logprobs"].into_iter().filter(|key| part[key].is_array()) {
            set(&mut empty, key, json!([]));
        }
        self.add(&format!("{parts}.added"), with(json!({"part": empty})));
        if let Some(whole) = whole {
            // Only these events have probabilities, and always.
            let has_logprobs = texts == "response.output_text";
            for delta in pieces(whole) {
                let mut body = with(json!({"delta": delta}));
                if has_logprobs {
                    set(&mut body, "logprobs", json!([]));
                }
                self.add(&format!("{texts}.delta"), body);
            }
            for (at, annotation) in annotations.iter().enumerate() {
                let body = with(json!({"annotation_index": at, "annotation": annotation}));
                self.add(&format!("{texts}.annotation.added"), body);
            }
            let mut body = with(json!({}));
            set(&mut body, key, json!(whole));
            if has_logprobs {
                set(&mut body, "logprobs", if logprobs.is_array() { logprobs.clone() } else { json!([]) });
            }
            self.add(&format!("{texts}.done"), body);
        }
        self.add(&format!("{parts}.done"), with(json!({"part": part})));
    }
}

/// A joiner of a streamed response.
#[derive(Default)]
pub struct Events {
    response: Option<Value>,
    items: BTreeMap<u64, Value>,
    ended: bool,
}

/// A text that is streamed in pieces: its events, the list and the index of its part if it is in one, and its key.
struct Text {
    events: &'static str,
    part: Option<(&'static str, &'static str)>,
    key: &'static str,
}

const TEXTS: [Text; 8] = [
    Text { events: "response.output_text.", part: Some(("content", "content_index")), key: "text" },
    Text { events: "response.refusal.", part: Some(("content", "content_index")), key: "refusal" },
    Text { events: "response.reasoning_text.", part: Some(("content", "content_index")), key: "text" },
    Text { events: "response.reasoning_summary_text.", part: Some(("summary", "summary_index")), key: "text" },
    Text { events: "response.function_call_arguments.", part: None, key: "arguments" },
    Text { events: "response.mcp_call_arguments.", part: None, key: "arguments" },
    Text { events: "response.custom_tool_call_input.", part: None, key: "input" },
    Text { events: "response.code_interpreter_call_code.", part: None, key: "code" },
];

impl Joiner for Events {
    fn add(&mut self, mut event: Value) -> Option<Value> {
        let kind = text(&event, "type").to_owned();
        if kind == "error" || (kind.is_empty() && event.get("error").is_some_and(|error| !error.is_null())) {
            return Some(event);
        }
        if let Some(response) = event.get_mut("response").filter(|it| it.is_object()).map(Value::take) {
            self.ended |= matches!(
                kind.as_str(),
                "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled"
            );
            self.response = Some(response);
            return None;
        }
        let index = event["output_index"].as_u64()?;
        if matches!(kind.as_str(), "response.output_item.added" | "response.output_item.done") {
            self.items.insert(index, event.get_mut("item")?.take());
            return None;
        }
        let item = self.items.get_mut(&index)?;
        let list = match kind.as_str() {
            "response.content_part.added" | "response.content_part.done" => Some(("content", "content_index")),
            "response.reasoning_summary_part.added" | "response.reasoning_summary_part.done" => {
                Some(("summary", "summary_index"))
            }
            _ => None,
        };
        if let Some((list, at)) = list {
            let at = event[at].as_u64();
            put(item, list, at, event.get_mut("part")?.take());
            return None;
        }
        let about = TEXTS.iter().find(|text| kind.starts_with(text.events))?;
        let owner = match about.part {
            Some((list, at)) => part_of(item, list, event[at].as_u64())?,
            None => item,
        };
        match kind.strip_prefix(about.events)? {
            "delta" => append(owner, about.key, text(&event, "delta")),
            "done" => set(owner, about.key, event.get_mut(about.key)?.take()),
            "annotation.added" => match owner.get_mut("annotations") {
                Some(Value::Array(annotations)) => annotations.push(event["annotation"].take()),
                _ => set(owner, "annotations", json!([event["annotation"]])),
            },
            _ => {}
        }
        None
    }

    fn finish(self: Box<Self>) -> (Option<Value>, bool) {
        let items: Vec<Value> = self.items.into_values().collect();
        let begun = self.response.or_else(|| (!items.is_empty()).then(|| json!({"object": "response"})));
        let Some(mut response) = begun else { return (None, false) };
        // Some services leave the output out of the last event.
        if !items.is_empty() && listed(&response["output"]).is_empty() {
            set(&mut response, "output", Value::Array(items));
        }
        (Some(response), self.ended)
    }
}

/// Replaces the part at position `at` of a list of an item. If there is no such position, appends the part.
fn put(item: &mut Value, list: &str, at: Option<u64>, part: Value) {
    if let Some(place) = part_of(item, list, at) {
        *place = part;
    } else if let Some(Value::Array(parts)) = item.get_mut(list) {
        parts.push(part);
    } else {
        set(item, list, json!([part]));
    }
}

fn part_of<'a>(item: &'a mut Value, list: &str, at: Option<u64>) -> Option<&'a mut Value> {
    let at = usize::try_from(at?).ok()?;
    item.get_mut(list)?.as_array_mut()?.get_mut(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::api::join::Joined;
    use crate::gateway::api::{Api, Join, StreamError, StreamOptions};

    fn joined<'a>(events: impl IntoIterator<Item = &'a str>) -> Joined {
        let mut join = Join::new(Api::OpenaiResponses, "text/event-stream");
        events.into_iter().for_each(|event| join.push(event.as_bytes()));
        join.finish()
    }

    fn whole() -> Value {
        json!({"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "One."},
                {"type": "summary_text", "text": "Two."}], "encrypted_content": "x"},
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [
                {"type": "output_text", "text": "Said.", "annotations": [{"type": "url_citation", "url": "u"}]}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}",
                "status": "completed"}
        ], "usage": {"input_tokens": 3, "output_tokens": 2}})
    }

    fn events() -> Vec<String> {
        Api::OpenaiResponses.events(&whole(), StreamOptions::default())
    }

    #[test]
    fn output_that_the_last_event_leaves_out_is_taken_from_the_items() {
        let mut all = events();
        for output in [json!([]), Value::Null] {
            all.pop();
            let mut last = whole();
            set(&mut last, "output", output);
            let data = json!({"type": "response.completed", "response": last});
            all.push(named_event("response.completed", &data));
            let joined = joined(all.iter().map(String::as_str));
            assert_eq!((joined.response, joined.complete), (Some(whole()), true));
        }
    }

    #[test]
    fn what_came_before_a_cut_is_kept() {
        let all = events();
        let up_to = |mark: &str| {
            let end = all.iter().position(|event| event.contains(mark)).unwrap();
            let joined = joined(all.iter().take(end + 1).map(String::as_str));
            assert!(!joined.complete && joined.error.is_none());
            joined.response.unwrap()
        };
        let cut = up_to("reasoning_summary_text.delta");
        assert_eq!((&cut["status"], &cut["output"][0]["summary"][0]["text"]), (&json!("in_progress"), &json!("One.")));
        let cut = up_to("annotation.added");
        assert_eq!(cut["output"][1]["content"][0], whole()["output"][1]["content"][0]);
        let cut = up_to("function_call_arguments.delta");
        assert_eq!(cut["output"][2]["arguments"], "{\"a\":1}");
        assert_eq!(cut["output"][0], whole()["output"][0]);
    }

    #[test]
    fn a_response_that_failed_is_complete_and_an_error_event_is_not() {
        let failed = json!({"id": "r", "status": "failed", "error": {"code": "rate_limit_exceeded", "message": "no"}, "output": []});
        let all = Api::OpenaiResponses.events(&failed, StreamOptions::default());
        let end = joined(all.iter().map(String::as_str));
        assert_eq!((end.response.as_ref(), end.complete, end.error), (Some(&failed), true, None));
        let read = Api::OpenaiResponses.error_of(&failed).unwrap();
        assert_eq!((read.kind.as_str(), read.message.as_str()), ("rate_limit_exceeded", "no"));
        let error = json!({"type": "error", "code": "server_error", "message": "no", "param": null});
        let joined = joined([&*all[0], &*named_event("error", &error)]);
        assert_eq!((joined.complete, joined.error), (false, Some(StreamError::Sent(error.clone()))));
        assert_eq!(Api::OpenaiResponses.error_of(&error).unwrap().kind, "server_error");
    }

    #[test]
    fn a_place_beyond_the_last_part_takes_no_memory() {
        let far = json!({"type": "response.content_part.added", "output_index": 0, "content_index": u64::MAX,
            "part": {"type": "output_text", "text": "x"}});
        let item = json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}});
        let joined = joined([&*named_event("", &item), &*named_event("", &far)]);
        assert_eq!(joined.response.unwrap()["output"][0]["content"], json!([{"type": "output_text", "text": "x"}]));
    }
}
