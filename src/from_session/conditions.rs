//! The conditions under which a call runs its command, as the call's input states them: the sandbox, the shell, variables. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::trace::calls::{Call, is_folder_key};
use crate::trace::view;

/// Keys of an input that describe the call, limit its time and its output, or name it. They do not decide what the command does.
const WITHOUT_EFFECT: [&str; 29] = [
    "call_id",
    "callId",
    "delay_ms",
    "description",
    "explanation",
    "id",
    "initial_wait",
    "justification",
    "max_output_length",
    "max_output_tokens",
    "parsed_cmd",
    "prefix_rule",
    "process_id",
    "reason",
    "risk_level",
    "riskLevel",
    "session_id",
    "sessionId",
    "shellId",
    "summary",
    "timeout",
    "timeout_ms",
    "timeout_seconds",
    "timeoutMs",
    "title",
    "turn_id",
    "turnId",
    "wait_for_previous",
    "yield_time_ms",
];

/// Keys under which some agents put the folder of a command, beside the common ones. The folder is a part of the check.
const FOLDERS: [&str; 2] = ["dir_path", "directory"];

/// The key for the agent's sandbox, which no input states.
pub(super) const SANDBOX: &str = "sandbox of the agent";

/// Returns the conditions of a call: the values of its input beside the command, its folder, and what has no effect. A value that
/// is the default is left out. `sandbox` is the number of the state of the agent's sandbox, from 0.
pub(super) fn of_call(call: &Call, sandbox: usize) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    if sandbox > 0 {
        found.insert(SANDBOX.to_owned(), Value::from(sandbox));
    }
    if let Some(Value::Object(input)) = &call.call.input {
        add(input, &mut found);
    }
    found
}

fn add(input: &Map<String, Value>, found: &mut BTreeMap<String, Value>) {
    for (key, value) in input {
        let names_folder = is_folder_key(key) || FOLDERS.contains(&key.as_str());
        let is_command = view::is_command_key(key) || view::is_argument_key(key);
        match value {
            _ if is_command || names_folder || WITHOUT_EFFECT.contains(&key.as_str()) || is_default(key, value) => {}
            // `{action: {command: […], env: {…}}}`
            Value::Object(inner) if inner.keys().any(|key| view::is_command_key(key)) => add(inner, found),
            _ => _ = found.insert(key.clone(), value.clone()),
        }
    }
}

/// Returns true if a call with this value means the same as one without it.
fn is_default(key: &str, value: &Value) -> bool {
    match (key, value) {
        // The shell of Codex is a login shell unless the call says otherwise.
        ("login", Value::Bool(is_login)) => *is_login,
        ("sandbox_permissions", Value::String(text)) => text == "use_default",
        ("mode", Value::String(text)) => text == "sync",
        ("environment_id", Value::String(text)) => text.is_empty() || text == "local",
        (_, Value::Null | Value::Bool(false)) => true,
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Array(list)) => list.is_empty(),
        (_, Value::Object(map)) => map.is_empty(),
        (_, Value::Bool(true) | Value::Number(_)) => false,
    }
}

/// Returns the first key under which the conditions of two calls differ.
pub(super) fn difference(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) -> Option<String> {
    one.keys().chain(other.keys()).find(|key| one.get(*key) != other.get(*key)).cloned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_may_decide_how_a_command_ends_is_compared() {
        let of = |input: Value| {
            let mut found = BTreeMap::new();
            add(input.as_object().unwrap(), &mut found);
            found
        };
        for (one, other, expected) in [
            (json!({"command": "a", "description": "x", "timeout": 1}), json!({"command": "b"}), None),
            (json!({"cmd": "a", "login": true, "tty": false}), json!({"cmd": "a", "yield_time_ms": 5}), None),
            (json!({"cmd": "a", "sandbox_permissions": "use_default"}), json!({"cmd": "a"}), None),
            (json!({"command": "a"}), json!({"command": "a", "dangerouslyDisableSandbox": false}), None),
            (
                json!({"command": "a"}),
                json!({"command": "a", "dangerouslyDisableSandbox": true}),
                Some("dangerouslyDisableSandbox"),
            ),
            (json!({"cmd": "a", "sandbox_permissions": "require_escalated"}), json!({}), Some("sandbox_permissions")),
            (json!({"cmd": "a", "environment_id": "local"}), json!({"cmd": "a"}), None),
            (json!({"cmd": "a", "environment_id": "cloud"}), json!({"cmd": "a"}), Some("environment_id")),
            (json!({"command": "a", "wait_for_previous": true}), json!({"command": "a"}), None),
            (json!({"cmd": "a", "login": false}), json!({"cmd": "a"}), Some("login")),
            (json!({"cmd": "a"}), json!({"cmd": "a", "shell": "/bin/zsh"}), Some("shell")),
            (
                json!({"action": {"command": ["a"], "env": {"A": "1"}}}),
                json!({"action": {"command": ["a"]}}),
                Some("env"),
            ),
        ] {
            assert_eq!(difference(&of(one.clone()), &of(other.clone())).as_deref(), expected, "{one} {other}");
        }
    }
}
