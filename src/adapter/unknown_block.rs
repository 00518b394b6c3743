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

/// Keys by which agents name a tool, a call, its arguments or its command. Lists of the tools and commands that there are
/// have other keys.
const OF_CALLS: [&str; 21] = [
    "tool",
    "tool_name",
    "toolName",
    "tool_call",
    "toolCall",
    "tool_calls",
    "toolCalls",
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
    "call_id",
    "callId",
    "function_call",
    "functionCall",
    "rawInput",
    "command",
    "cmd",
    "shell_command",
    "shellCommand",
    "command_line",
    "commandLine",
];

/// Returns true if a line that no rule of a manifest takes may be about a tool call: it, or an object in it, names a tool,
/// a call or a command.
pub(crate) fn may_be_of_call(line: &Value) -> bool {
    match line {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_named = match value {
                Value::String(text) => !text.trim().is_empty(),
                Value::Array(items) => !items.is_empty(),
                Value::Object(map) => !map.is_empty(),
                Value::Null | Value::Bool(_) | Value::Number(_) => false,
            };
            (is_named && OF_CALLS.contains(&key.as_str())) || may_be_of_call(value)
        }),
        Value::Array(items) => items.iter().any(may_be_of_call),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
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

    #[test]
    fn a_line_that_names_a_tool_or_a_command_may_be_about_a_call() {
        for (line, may) in [
            (r#"{"type":"tool_executed","item":{"command":"rm -rf x"}}"#, true),
            (r#"{"type":"zz","event":{"toolCallId":"a"}}"#, true),
            (r#"{"parts":[{"functionCall":{"name":"sh"}}]}"#, true),
            (r#"{"type":"heartbeat","n":1,"text":"tool"}"#, false),
            (r#"{"type":"status","tool":null,"model":"m"}"#, false),
            (r#"{"type":"init","tools":["Bash"],"commands":["/help"],"stats":{"tool_calls":3}}"#, false),
        ] {
            assert_eq!(may_be_of_call(&serde_json::from_str(line).unwrap()), may, "{line}");
        }
    }
}
