//! Decides whether a content block of an unknown form may hold text or a call.

use serde_json::Value;

/// Keys whose value, whatever it is, is neither text of a message nor a part of a call.
const ASIDE: [&str; 3] = ["annotations", "_meta", "cache_control"];

/// Keys whose value, if it is a text, is neither text of a message nor a part of a call.
const LABELS: [&str; 15] = [
    "type",
    "id",
    "uuid",
    "index",
    "uri",
    "url",
    "name",
    "title",
    "mimeType",
    "media_type",
    "data",
    "blob",
    "signature",
    "timestamp",
    "status",
];

/// Returns true if a content block of an unknown form may hold text of a message, or a call.
pub(crate) fn may_hold(block: &Value) -> bool {
    match block {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(may_hold),
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_label = value.is_string() && LABELS.contains(&key.as_str());
            !is_label && !ASIDE.contains(&key.as_str()) && may_hold(value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_hold_nothing_and_other_texts_may() {
        for (block, holds) in [
            (r#"{"type":"image","id":"1","mimeType":"image/png","data":"cG5n"}"#, false),
            (r#"{"type":"redacted","signature":"c2ln","cache_control":{"type":"ephemeral"}}"#, false),
            (r#"{"type":"pause","seconds":3,"text":" "}"#, false),
            (r#"{"type":"refusal","refusal":"no"}"#, true),
            (r#"{"type":"function_call","name":"sh","arguments":"{\"command\":\"rm\"}"}"#, true),
            (r#"{"type":"server_event","data":{"command":"rm"}}"#, true),
            (r#"{"type":"shell","action":["rm"]}"#, true),
        ] {
            assert_eq!(may_hold(&serde_json::from_str(block).unwrap()), holds, "{block}");
        }
    }
}
