//! Decides whether a line that cannot be read as a message may contain one, whose content is then lost.

use serde_json::{Deserializer, Value};

/// The keys of a protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keys {
    /// The keys of which every message has one. Without keys, any object may be a message.
    pub(crate) of_message: &'static [&'static str],
    /// The keys that a piece of a message may show. Without keys, any piece of JSON may be one of a message.
    pub(crate) of_piece: &'static [&'static str],
}

impl Keys {
    /// The keys of streams whose form only their manifest knows.
    pub(crate) const ANY: Keys = Keys { of_message: &[], of_piece: &[] };

    fn is_message(&self, value: &Value) -> bool {
        self.of_message.is_empty() || self.of_message.iter().any(|key| value.get(key).is_some())
    }

    fn names_piece(&self, text: &str) -> bool {
        let is_in = |key: &&str| text.contains(&format!("\"{key}\""));
        self.of_piece.is_empty() || self.of_message.iter().chain(self.of_piece).any(is_in)
    }
}

/// Returns true if a line that could not be read may hold a message, or a part of one: behind something that another
/// program printed, behind control characters, or as the rest of a torn line.
pub(crate) fn may_hold_message(line: &str, keys: &Keys) -> bool {
    // The text of another encoding, such as UTF-16, has zero bytes between its characters.
    let without_zeros = line.replace('\0', "");
    let line = without_zeros.trim();
    if line.starts_with("[{") || line.strip_prefix('{').is_some_and(begins_object) {
        return true;
    }
    let Some(at) = line.find("{\"") else { return may_be_piece(line, keys) };
    let embedded = &line[at..];
    let mut values = Deserializer::from_str(embedded).into_iter::<Value>();
    match values.next() {
        // What closes more than was opened is the rest of a torn line.
        Some(Ok(_)) if embedded[values.byte_offset()..].trim_start().starts_with(['}', ']', ',']) => {
            may_be_piece(line, keys)
        }
        Some(Ok(value)) => keys.is_message(&value),
        _ => keys.names_piece(line),
    }
}

/// Returns true if an object of JSON may go on like this: with a key in double quotes, its end, or torn. What programs print
/// of their own values, as in `{ model: 'x' }`, does not. The quotes may be escaped.
fn begins_object(rest: &str) -> bool {
    let rest = rest.trim_start();
    rest.is_empty() || rest.starts_with(['"', '}']) || rest.starts_with("\\\"")
}

/// Returns true if a line of JSON that is no message may hold one: in a list, or as a text.
pub(crate) fn may_hold_message_within(value: &Value, keys: &Keys) -> bool {
    match value {
        Value::Object(_) => keys.is_message(value),
        Value::Array(items) => items.iter().any(|item| may_hold_message_within(item, keys)),
        Value::String(text) => text.contains("{\"") && may_hold_message(text, keys),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if a line that begins within JSON may be a piece of a message: it shows one of the keys, or it closes
/// several levels that it did not open, as the end of a message does.
fn may_be_piece(line: &str, keys: &Keys) -> bool {
    let is_json = line.ends_with('}') || line.contains(",\"");
    let shows_key = is_json && line.contains("\":") && keys.names_piece(line);
    let closers = line.bytes().rev().take_while(|byte| matches!(byte, b'}' | b']')).count();
    let is_end = line.ends_with('}') && closers >= 2 && line.contains('"');
    let count = |byte: u8| line.bytes().filter(|it| *it == byte).count();
    shows_key || (is_end && count(b'}') > count(b'{'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: Keys = Keys { of_message: &["type"], of_piece: &["tool_use_id", "input", "content"] };

    #[test]
    fn a_message_is_seen_behind_other_text_and_a_log_line_is_none() {
        for (line, is_lost) in [
            (r#"{"type":"assis"#, true),
            (r#"DEBUG: {"type":"assistant","message":{}}"#, true),
            ("\u{1b}[0m{\"type\":\"user\"}", true),
            (" 50% \r{\"type\":\"user\"}", true),
            (r#"DEBUG: {"type":"assistant","mess"#, true),
            (r#"t","type":"tool_use","input":{"command":"rm"}}]}}"#, true),
            (r#"ype":"user","message":{"content":[]},"type":"user"}"#, true),
            (r#""type":"user","message":{"content":[]}}"#, true),
            (r#"use","name":"Bash","input":{"command":"rm"}}]}}"#, true),
            (r#"lt","tool_use_id":"t","content":"x"}]}}"#, true),
            (r#"lt","tool_use_id":"t","cont"#, true),
            (r#"h","input":{"command":"rm"#, true),
            (r#"-rf x"}}]}}"#, true),
            (r#"settings: {"colour":"red"}"#, false),
            (r#"settings: {"colour":"re"#, false),
            (r#"Settings { colour: "red", more: [Size { x: 1 }] }"#, false),
            (r#"  "colour": "red""#, false),
            ("{ model: 'x', size: 3 }", false),
            ("{'event': 'x'}", false),
            (r#"{ model: "x", line: {"type":"assistant"} }"#, true),
            (r#"{ "type":"assist"#, true),
            (r#"{"ty"#, true),
            ("{", true),
            ("{}", true),
            (r#"{\"type\":\"assistant\"}"#, true),
            (r#"sent {\"type\":\"assistant\"}"#, false),
            ("{\0\"\0t\0y\0p\0e\0\"\0:\u{0}1\0}\0", true),
            ("\0", false),
            ("}}", false),
            ("plain text", false),
            ("a set {a, b}", false),
        ] {
            assert_eq!(may_hold_message(line, &KEYS), is_lost, "{line}");
        }
        assert!(may_hold_message(r#"x {"a":1}"#, &Keys::ANY) && !may_hold_message("x {a}", &Keys::ANY));
    }

    #[test]
    fn a_message_is_seen_within_other_json() {
        for (line, is_lost) in [
            (r#"[{"type":"assistant"}]"#, true),
            (r#"[1, [{"a":1}, {"type":"assistant"}]]"#, true),
            (r#""{\"type\":\"assistant\"}""#, true),
            (r#"[{"colour":"red"}]"#, false),
            (r#""text""#, false),
            ("[1, null, true]", false),
        ] {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(may_hold_message_within(&value, &KEYS), is_lost, "{line}");
        }
        let of = |text: &str| may_hold_message_within(&serde_json::from_str(text).unwrap(), &Keys::ANY);
        assert!(of(r#"[{"a":1}]"#) && !of("[1]") && !of(r#""a {b}""#));
    }
}
