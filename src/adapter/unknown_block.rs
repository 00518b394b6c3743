//! Decides whether a content block or a line of an unknown form may hold text or a call.

use serde_json::Value;

use crate::trace::recorder::Recorder;

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
const OF_CALLS: [&str; 22] = [
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
    "argv",
    "shell_command",
    "shellCommand",
    "command_line",
    "commandLine",
];

/// Keys whose value lists the calls of a message, or is its only call.
const LISTS: [&str; 7] =
    ["tool_call", "toolCall", "tool_calls", "toolCalls", "function_call", "functionCall", "tool_use"];

/// Keys of a call's arguments.
const ARGUMENTS: [&str; 6] = ["arguments", "args", "input", "params", "parameters", "tool_input"];

/// Words within the type of a line that is about an action.
const ACTIONS: [&str; 13] = [
    "call", "calls", "function", "exec", "execute", "command", "patch", "shell", "bash", "edit", "write", "delete",
    "tool",
];

/// Words within the type of a line that is about what there is, and not about what was done.
const LISTINGS: [&str; 7] = ["list", "available", "commands", "tools", "stats", "count", "progress"];

/// Returns true if a line that no rule of a manifest takes may be about a tool call: it, or an object in it, names a tool,
/// a call or a command, or has a name and arguments, or its type names an action.
pub(crate) fn may_be_of_call(line: &Value) -> bool {
    match line {
        Value::Object(map) => {
            let is_text =
                |key: &str| map.get(key).is_some_and(|value| value.as_str().is_some_and(|text| !text.is_empty()));
            let has_arguments = || ARGUMENTS.iter().any(|key| map.get(*key).is_some_and(has_content));
            (is_text("name") && has_arguments())
                || ["type", "kind", "event"].iter().any(|key| map.get(*key).is_some_and(is_action) && map.len() > 1)
                || map.iter().any(|(key, value)| {
                    (has_content(value) && OF_CALLS.contains(&key.as_str())) || may_be_of_call(value)
                })
        }
        Value::Array(items) => items.iter().any(may_be_of_call),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns true if a line, or an object in it, lists calls beside something else, as a message of Chat Completions does.
pub(crate) fn lists_calls(line: &Value) -> bool {
    match line {
        Value::Object(map) => map.iter().any(|(key, value)| {
            let is_call = |value: &Value| value.as_object().is_some_and(|map| map.values().any(has_content));
            let holds = is_call(value) || value.as_array().is_some_and(|items| items.iter().any(is_call));
            (holds && LISTS.contains(&key.as_str())) || lists_calls(value)
        }),
        Value::Array(items) => items.iter().any(lists_calls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns true if a line that no rule of a manifest takes may be a message of the agent: it states the agent's role or type,
/// and holds text.
pub(crate) fn may_be_answer(line: &Value) -> bool {
    let Value::Object(map) = line else { return false };
    let is_of_agent = |key: &str| {
        let word = map.get(key).and_then(Value::as_str).unwrap_or_default();
        matches!(word, "assistant" | "agent" | "model" | "assistant_message" | "agent_message" | "answer")
    };
    let holds_text =
        || ["text", "content", "message", "answer", "parts"].iter().any(|key| map.get(*key).is_some_and(may_hold));
    (is_of_agent("role") || is_of_agent("type")) && holds_text()
}

/// Returns true if a value names a call that was announced, as the progress of a call does.
pub(crate) fn names_a_call(value: &Value, recorder: &Recorder) -> bool {
    holds_id(value, false, recorder)
}

/// Returns true if the value, or one within it, is the id of a call that was announced and stands at a key for ids.
fn holds_id(value: &Value, at_key: bool, recorder: &Recorder) -> bool {
    match value {
        Value::String(text) => at_key && recorder.was_announced(text),
        Value::Number(number) => at_key && recorder.was_announced(&number.to_string()),
        Value::Array(items) => items.iter().any(|item| holds_id(item, at_key, recorder)),
        Value::Object(map) => map.iter().any(|(key, item)| holds_id(item, is_key_of_a_call(key), recorder)),
        Value::Null | Value::Bool(_) => false,
    }
}

/// Returns true if a key may hold the id of a call: `id`, `callId`, `tool_call`. Another text can equal a short id by chance.
fn is_key_of_a_call(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.ends_with("id") || key.contains("call") || key.contains("tool")
}

/// Returns true for a text, a list or an object that is not empty.
fn has_content(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns true if the type of a line names an action: `exec_command_begin`, `functionCall`, `write_file`.
fn is_action(kind: &Value) -> bool {
    let Some(kind) = kind.as_str() else { return false };
    let mut words = vec![String::new()];
    for letter in kind.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter.is_alphanumeric(), words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    let any = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    any(&ACTIONS) && !any(&LISTINGS)
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
            (r#"{"type":"function_call","name":"bash","arguments":"{\"command\":\"rm\"}"}"#, true),
            (r#"{"kind":"step","name":"bash","input":{"line":"rm"}}"#, true),
            (r#"{"type":"exec_command_begin","line":"rm"}"#, true),
            (r#"{"type":"writeFile","path":"a"}"#, true),
            (r#"{"type":"mcp_call","server":"fs","method":"delete"}"#, true),
            (r#"{"type":"available_commands_update","names":["edit"]}"#, false),
            (r#"{"type":"tool_list_changed","n":3}"#, false),
            (r#"{"name":"m","input":""}"#, false),
        ] {
            assert_eq!(may_be_of_call(&serde_json::from_str(line).unwrap()), may, "{line}");
        }
    }

    #[test]
    fn a_message_lists_calls_and_a_figure_does_not() {
        for (line, lists) in [
            (r#"{"role":"assistant","content":"I look","tool_calls":[{"function":{"name":"sh"}}]}"#, true),
            (r#"{"message":{"text":"I look","functionCall":{"name":"sh"}}}"#, true),
            (r#"{"type":"result","stats":{"tool_calls":3},"tool_calls":[]}"#, false),
            (r#"{"type":"say","tool_calls":{"total":3}}"#, false),
        ] {
            assert_eq!(lists_calls(&serde_json::from_str(line).unwrap()), lists, "{line}");
        }
    }

    #[test]
    fn a_text_in_the_agent_s_role_may_be_its_answer() {
        for (line, may) in [
            (r#"{"type":"assistant","text":"Done."}"#, true),
            (r#"{"role":"model","parts":[{"text":"Done."}]}"#, true),
            (r#"{"role":"user","content":"Do it."}"#, false),
            (r#"{"type":"assistant","content":[]}"#, false),
            (r#"{"type":"log","text":"Done."}"#, false),
        ] {
            assert_eq!(may_be_answer(&serde_json::from_str(line).unwrap()), may, "{line}");
        }
    }
}
