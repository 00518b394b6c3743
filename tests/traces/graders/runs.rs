//! Matchers with `runs`: the commands that a command line runs.

use serde_json::{Value, json};

use super::speakers::trial;

fn outcome(input: &Value, forbid: &str) -> Option<bool> {
    let events: [Value; 3] = [
        json!({"type": "tool_call", "call": "c", "step": 0, "kind": "execute", "name": "Bash", "input": input}),
        json!({"type": "tool_result", "call": "c", "status": "ok"}),
        json!({"type": "stop", "reason": "end_turn"}),
    ];
    trial(&events).judge(&format!("tool-calls: {{forbid: [{{{forbid}}}]}}")).passed
}

#[test]
fn a_command_is_found_wherever_a_line_runs_it() {
    let rm = "runs: '^rm( |$)'";
    for (command, passed) in [
        ("ls; sudo rm a", Some(false)),
        ("git commit -m 'rm a'", Some(true)),
        ("$TOOL a", None),
        ("$TOOL a; rm b", Some(false)),
        ("sh build.sh", Some(true)),
    ] {
        assert_eq!(outcome(&json!({"command": command}), rm), passed, "{command}");
    }
    // One of several patterns is enough, and every key must hold.
    let list = "runs: ['^mv ', '^rm ']";
    assert_eq!(outcome(&json!({"command": "rm a"}), list), Some(false));
    assert_eq!(outcome(&json!({"command": "rm a"}), "runs: '^rm ', name: Shell"), Some(true));
    // What was not shown is unknown.
    assert_eq!(outcome(&json!({"command": ["rm", "a"]}), rm), Some(false));
    assert_eq!(outcome(&json!({"command": "ls", "cmd": "rm a"}), rm), None);
    assert_eq!(outcome(&json!({"command": "rm", "args": {"path": "a"}}), rm), Some(false));
    assert_eq!(outcome(&json!({"command": "ls", "args": {"path": "a"}}), rm), None);
}
