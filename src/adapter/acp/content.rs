//! Content of messages and calls: text, attachments, diffs, and raw outputs.

use serde_json::{Map, Value};

use crate::adapter::unknown_block::may_hold;
use crate::trace::{Attachment, FileDiff, Location};

/// A content block in the form that a message takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    Text(String),
    /// Content that is not text.
    Attachment(Attachment),
    /// A resource with its text.
    Embedded(Attachment, String),
    /// A block of a kind that the protocol does not define: kept by its kind, and reported.
    Unknown(Attachment, String),
    /// A value that is not a block.
    Malformed(String),
}

/// Returns the pieces of a message's `content`: one block, or a list of blocks.
pub fn pieces(content: Value) -> Vec<Piece> {
    match content {
        Value::Array(blocks) => blocks.into_iter().map(piece).collect(),
        block => vec![piece(block)],
    }
}

/// Reads a content block.
pub fn piece(block: Value) -> Piece {
    let mut map = match block {
        Value::String(text) => return Piece::Text(text),
        Value::Object(map) => map,
        other => return Piece::Malformed(other.to_string()),
    };
    let Some(Value::String(kind)) = map.get("type") else { return Piece::Malformed(Value::Object(map).to_string()) };
    match kind.as_str() {
        "text" => match map.get_mut("text").map(Value::take) {
            Some(Value::String(text)) => Piece::Text(text),
            // A text of another shape may still hold the message.
            other => {
                map.insert("text".to_owned(), other.unwrap_or(Value::Null));
                Piece::Malformed(Value::Object(map).to_string())
            }
        },
        "resource" => {
            let inner = map.get("resource").and_then(Value::as_object).unwrap_or(&map);
            let attachment = attachment("resource", inner);
            match inner.get("text").and_then(Value::as_str).filter(|text| !text.trim().is_empty()) {
                Some(text) => Piece::Embedded(attachment, text.to_owned()),
                None => Piece::Attachment(attachment),
            }
        }
        "image" | "audio" | "resource_link" => {
            let kind = kind.clone();
            Piece::Attachment(attachment(&kind, &map))
        }
        _ => {
            let kind = kind.clone();
            let attachment = attachment(&kind, &map);
            Piece::Unknown(attachment, Value::Object(map).to_string())
        }
    }
}

/// Returns true if a content block of an unknown form, as JSON, may hold text of the message.
pub fn may_hold_text(block: &str) -> bool {
    serde_json::from_str(block).is_ok_and(|block| may_hold(&block))
}

fn attachment(kind: &str, map: &Map<String, Value>) -> Attachment {
    let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
    let data = ["data", "blob", "text"].iter().find_map(|key| map.get(*key).and_then(Value::as_str));
    Attachment {
        kind: kind.to_owned(),
        media_type: text("mimeType"),
        uri: text("uri"),
        bytes: data.map(|data| data.len() as u64),
    }
}

/// The contents of a call's `content`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallContents {
    /// The text, or `None` if no item holds text.
    pub text: Option<String>,
    /// Changes to files.
    pub diffs: Vec<FileDiff>,
    /// The ids of the terminals that the call shows.
    pub terminals: Vec<String>,
    /// Items that have no place in a result, in the agent's words.
    pub other: Vec<String>,
}

/// Reads the `content` of a call.
pub fn shown(content: Value) -> CallContents {
    let mut shown = CallContents::default();
    let items = match content {
        Value::Null => return shown,
        Value::Array(items) => items,
        item => vec![item],
    };
    for item in items {
        shown.item(item);
    }
    shown
}

impl CallContents {
    fn item(&mut self, item: Value) {
        let mut map = match item {
            Value::Object(map) => map,
            Value::String(text) => return self.say(&text),
            other => return self.other.push(other.to_string()),
        };
        match map.get("type").and_then(Value::as_str) {
            Some("content") => {
                let inner = map.remove("content").unwrap_or(Value::Null);
                match inner {
                    Value::Array(blocks) => blocks.into_iter().for_each(|block| self.block(block)),
                    block => self.block(block),
                }
            }
            Some("diff") => match map.remove("path") {
                Some(Value::String(path)) => {
                    let mut text = |key: &str| match map.remove(key) {
                        Some(Value::String(text)) => Some(text),
                        _ => None,
                    };
                    let (old, new) = (text("oldText"), text("newText"));
                    self.diffs.push(FileDiff { path, old, new });
                }
                _ => self.other.push(Value::Object(map).to_string()),
            },
            Some("terminal") => match map.get("terminalId") {
                Some(Value::String(id)) => self.terminals.push(id.clone()),
                _ => self.other.push(Value::Object(map).to_string()),
            },
            _ => self.block(Value::Object(map)),
        }
    }

    fn block(&mut self, block: Value) {
        let embedded = block.get("resource").and_then(|resource| resource.get("text")).and_then(Value::as_str);
        if let Some(text) = embedded {
            return self.say(text);
        }
        match piece(block) {
            Piece::Text(text) => self.say(&text),
            Piece::Attachment(attachment) | Piece::Embedded(attachment, _) => {
                let words = [Some(attachment.kind), attachment.media_type, attachment.uri];
                self.other.push(words.into_iter().flatten().collect::<Vec<_>>().join(" "));
            }
            Piece::Unknown(_, text) | Piece::Malformed(text) => self.other.push(text),
        }
    }

    fn say(&mut self, text: &str) {
        let shown = self.text.get_or_insert_default();
        if !shown.is_empty() && !shown.ends_with('\n') && !text.is_empty() {
            shown.push('\n');
        }
        shown.push_str(text);
    }
}

/// Returns the files that a call reports to touch.
pub fn locations(value: Option<&Value>) -> Vec<Location> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let location = |item: &Value| match item {
        Value::String(path) => Some(Location { path: path.clone(), line: None }),
        _ => {
            let path = item.get("path")?.as_str()?.to_owned();
            Some(Location { path, line: item.get("line").and_then(Value::as_u64) })
        }
    };
    items.iter().filter_map(location).collect()
}

/// Returns true if a call reports files, and at least one of them cannot be read.
pub fn has_unreadable_location(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Array(items)) => locations(value).len() < items.len(),
        Some(_) => true,
    }
}

/// The keys of a raw output under which agents put a tool's output.
const OUTPUT_KEYS: [&str; 6] = ["output", "stdout", "text", "content", "formatted_output", "aggregated_output"];
/// The keys of a raw output under which agents put the reason of a failure.
const FAILED: [&str; 3] = ["error", "message", "stderr"];

/// Returns the text of a raw output, or `None` if it holds none.
pub fn raw_text(raw: &Value) -> Option<String> {
    match raw {
        Value::Null => None,
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(raw.to_string()),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => Some(blocks_text(items).unwrap_or_else(|| raw.to_string())),
        // An object that holds only exit codes is not output.
        Value::Object(map) if map.iter().all(|(key, value)| is_exit_code(key, value)) => None,
        Value::Object(map) => object_text(map).unwrap_or_else(|| Some(raw.to_string())),
    }
}

/// Returns `None` if no key is known, and `Some(None)` if the known keys are empty.
fn object_text(map: &Map<String, Value>) -> Option<Option<String>> {
    let mut has_known_key = false;
    for key in OUTPUT_KEYS.into_iter().chain(FAILED) {
        let text = match map.get(key) {
            Some(Value::String(text)) => {
                has_known_key = true;
                text.clone()
            }
            Some(Value::Array(items)) => match blocks_text(items) {
                Some(text) => text,
                None => continue,
            },
            Some(Value::Object(inner)) => match inner.get("message").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => continue,
            },
            _ => continue,
        };
        if text.is_empty() {
            continue;
        }
        let errors = map.get("stderr").and_then(Value::as_str).unwrap_or_default();
        if key == "stdout" && !errors.is_empty() {
            let gap = if text.ends_with('\n') { "" } else { "\n" };
            return Some(Some(format!("{text}{gap}{errors}")));
        }
        return Some(Some(text));
    }
    has_known_key.then_some(None)
}

/// Returns the text of a list of text blocks, or `None` if the list holds anything else.
fn blocks_text(items: &[Value]) -> Option<String> {
    let mut texts = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Value::String(text) => texts.push(text.as_str()),
            _ => texts.push(item.get("text")?.as_str()?),
        }
    }
    Some(texts.join("\n"))
}

/// Returns true if `shown` is `raw` in a Markdown fence, or `raw` itself.
pub fn is_fenced(shown: &str, raw: &str) -> bool {
    let shown = shown.trim();
    let inner = shown
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map(|(_, inner)| inner);
    shown == raw.trim() || inner.is_some_and(|inner| inner.trim() == raw.trim())
}

/// The keys under which agents put an exit code.
const EXIT_KEYS: [&str; 5] = ["exitCode", "exit_code", "exit", "returncode", "return_code"];

/// Returns true if a key of a raw output holds an exit code, or states that there is none.
fn is_exit_code(key: &str, value: &Value) -> bool {
    EXIT_KEYS.contains(&key) && (value.is_null() || code(value).is_some())
}

/// Reads an exit code: a whole number, also with a decimal point or as text.
fn code(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => text.trim().parse().ok(),
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15)?;
            Some(float as i64)
        }),
        _ => None,
    }
}

/// Returns the exit code of a command from any of the places where agents put it.
pub fn exit_code(meta: &Value, raw: &Value) -> Option<i64> {
    let of = |value: &Value| EXIT_KEYS.iter().find_map(|key| value.get(*key).and_then(code));
    let terminal = meta.get("terminal_exit").and_then(&of);
    let status = |value: &Value| value.get("exitStatus").or_else(|| value.get("exit_status")).and_then(&of);
    terminal
        .or_else(|| of(raw))
        .or_else(|| status(raw))
        .or_else(|| raw.get("metadata").and_then(|metadata| of(metadata).or_else(|| status(metadata))))
        .or_else(|| raw.get("contents").and_then(Value::as_array).and_then(|items| items.iter().rev().find_map(&of)))
}

/// Returns true if a signal ended the command, in any of the places where agents put an exit code. A signal alone, without a
/// key for an exit code, may be anything: the data of a tool, or a signal that the command sent.
pub fn has_signal(meta: &Value, raw: &Value) -> bool {
    let is_signal = |value: &Value| match value.get("signal") {
        Some(Value::String(name)) => name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("sig")),
        Some(Value::Number(number)) => number.as_i64().is_some_and(|number| (1..=64).contains(&number)),
        _ => false,
    };
    let ended = |value: &Value| is_signal(value) && EXIT_KEYS.iter().any(|key| value.get(*key).is_some());
    let status = |value: &Value| value.get("exitStatus").or_else(|| value.get("exit_status")).is_some_and(ended);
    let places = [Some(raw), raw.get("metadata"), meta.get("terminal_exit")];
    places.into_iter().flatten().any(|place| ended(place) || status(place))
}

/// Returns true if a key for an exit code holds something else, so that it is unknown how the command ended.
pub fn has_unreadable_exit_code(meta: &Value, raw: &Value) -> bool {
    let is_odd = |value: &Value| !value.is_null() && !value.is_object() && code(value).is_none();
    let of = |value: &Value| EXIT_KEYS.iter().filter_map(|key| value.get(*key)).any(is_odd);
    let status = |value: &Value| value.get("exitStatus").or_else(|| value.get("exit_status")).is_some_and(of);
    let places = [Some(raw), raw.get("metadata"), meta.get("terminal_exit")];
    places.into_iter().flatten().any(|place| of(place) || status(place))
}

/// Returns true if the agent reports that it truncated the output.
pub fn truncated(raw: &Value) -> bool {
    let says = |value: &Value| value.get("truncated").and_then(Value::as_bool) == Some(true);
    says(raw) || raw.get("metadata").is_some_and(says)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_become_text_or_attachments() {
        assert_eq!(piece(json!({"type": "text", "text": "hi"})), Piece::Text("hi".into()));
        let image = piece(json!({"type": "image", "data": "QUJD", "mimeType": "image/png"}));
        let Piece::Attachment(image) = image else { panic!("{image:?}") };
        assert_eq!((image.kind.as_str(), image.bytes), ("image", Some(4)));
        let resource = piece(json!({"type": "resource", "resource": {"uri": "file:///a", "text": "abc"}}));
        let Piece::Embedded(resource, text) = resource else { panic!("{resource:?}") };
        assert_eq!(text, "abc");
        assert_eq!((resource.uri.as_deref(), resource.bytes), (Some("file:///a"), Some(3)));
        assert!(
            matches!(piece(json!({"type": "hologram", "data": "x"})), Piece::Unknown(a, _) if a.kind == "hologram")
        );
        assert!(matches!(piece(json!({"text": "no type"})), Piece::Malformed(_)));
        assert!(matches!(piece(json!(5)), Piece::Malformed(_)));
    }

    #[test]
    fn items_of_a_call_are_sorted() {
        let shown = shown(json!([
            {"type": "content", "content": {"type": "text", "text": "one"}},
            {"type": "text", "text": "two"},
            {"type": "diff", "path": "a", "oldText": null, "newText": "x"},
            {"type": "terminal", "terminalId": "t1"},
            {"type": "content", "content": {"type": "image", "data": "QQ==", "mimeType": "image/png"}},
            {"type": "diff"}, 7
        ]));
        assert_eq!(shown.text.as_deref(), Some("one\ntwo"));
        assert_eq!(shown.diffs, [FileDiff { path: "a".into(), old: None, new: Some("x".into()) }]);
        assert_eq!(shown.terminals, ["t1"]);
        assert_eq!(shown.other.len(), 3);
    }

    #[test]
    fn a_raw_output_is_read_where_agents_write() {
        for (raw, text) in [
            (json!("plain"), Some("plain")),
            (json!({"output": "a", "metadata": {}}), Some("a")),
            (json!({"stdout": "42\n", "stderr": "", "output": ""}), Some("42\n")),
            (json!({"stdout": "a", "stderr": "b"}), Some("a\nb")),
            (json!({"content": [{"type": "text", "text": "x"}], "isError": true}), Some("x")),
            (json!([{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]), Some("x\ny")),
            (json!({"error": {"message": "bad"}}), Some("bad")),
            (json!({"stdout": "", "stderr": ""}), None),
            (json!({}), None),
            (json!({"exit_code": 0}), None),
            (json!({"exit_code": 0, "n": 1}), Some("{\"exit_code\":0,\"n\":1}")),
            (json!(null), None),
            (json!({"n": 1}), Some("{\"n\":1}")),
        ] {
            assert_eq!(raw_text(&raw).as_deref(), text, "{raw}");
        }
    }

    #[test]
    fn exit_codes_are_found_in_every_place() {
        for raw in [
            json!({"exitCode": 3}),
            json!({"exit_code": 3}),
            json!({"metadata": {"exit": 3}}),
            json!({"contents": [{"type": "shell_exit", "exitCode": 3}]}),
            json!({"exitStatus": {"exitCode": 3}}),
        ] {
            assert_eq!(exit_code(&Value::Null, &raw), Some(3), "{raw}");
        }
        assert_eq!(exit_code(&json!({"terminal_exit": {"exit_code": 3}}), &Value::Null), Some(3));
        assert_eq!(exit_code(&Value::Null, &json!("Exit code 3")), None);
        for raw in [
            json!({"exitCode": null, "signal": "SIGKILL"}),
            json!({"exit_code": null, "signal": 9}),
            json!({"exitCode": 0, "signal": 11}),
            json!({"exitStatus": {"exitCode": null, "signal": "SIGSEGV"}}),
            json!({"metadata": {"exit": null, "signal": "SIGTERM"}}),
        ] {
            assert!(has_signal(&Value::Null, &raw), "{raw}");
        }
        assert!(has_signal(&json!({"terminal_exit": {"exit_code": null, "signal": "SIGKILL"}}), &Value::Null));
        for raw in [
            json!({"exitCode": 0, "signal": null}),
            json!({"exitCode": 0, "signal": 0}),
            json!({"exitCode": null, "signal": ""}),
            json!({"exitCode": null, "signal": "none"}),
            json!({"ssid": "x", "signal": -61}),
            json!({"message": "killed", "signal": "SIGTERM"}),
            json!("SIGKILL"),
        ] {
            assert!(!has_signal(&Value::Null, &raw), "{raw}");
        }
    }

    #[test]
    fn a_fence_is_seen_through() {
        assert!(is_fenced("```console\n42\n2\n```", "42\n2"));
        assert!(is_fenced("same", "same\n"));
        assert!(!is_fenced("```\nother\n```", "42"));
        assert!(!is_fenced("```", "42"));
    }
}
