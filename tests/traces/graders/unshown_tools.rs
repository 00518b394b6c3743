//! Tools whose calls an agent never shows: a rule that asks for them, or for their kind, is decided by shown calls or not at
//! all.

use serde_json::{Value, json};

use super::streams::stream;
use super::{Fail, Pass, Trial, Ungraded, check, doubts};

/// A stream of Codex with one command and its answer.
fn codex(harness: &str) -> Trial {
    let command = |when: &str, more: Value| {
        let mut item = json!({"id": "i", "type": "command_execution", "command": "ls", "status": "in_progress"});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": format!("item.{when}"), "item": item})
    };
    let lines = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "turn.started"}),
        command("started", json!({})),
        command("completed", json!({"status": "completed", "exit_code": 0, "aggregated_output": "a"})),
        json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}),
    ];
    stream(harness, &lines)
}

#[test]
fn vibe_does_not_show_the_program_that_calls_its_tools() {
    let text = json!([{"type": "text", "text": "done"}]);
    let answer =
        json!({"type": "message", "role": "assistant", "id": "m", "generationStatus": "completed", "content": text});
    let acp = doubts::acp_of(evals::internal::harness::built_in::named("vibe").unwrap(), &[]);
    let unshown = || Ungraded("the agent does not show calls of its tool `run_typescript`");
    for trial in [stream("vibe-stream", &[answer]), acp] {
        check(
            &trial,
            &[
                ("tool-calls: {forbid: [{name: run_typescript}]}", unshown()),
                ("tool-calls: {forbid: [{kind: execute}]}", unshown()),
                // The calls of tools by the program are shown.
                ("tool-calls: {forbid: [{command: rm}]}", Pass(&[])),
                ("tool-calls: {forbid: [{kind: edit}]}", Pass(&[])),
            ],
        );
    }
}

#[test]
fn a_rule_about_a_tool_that_is_never_shown_or_about_its_kind_is_ungraded() {
    let unshown = || Ungraded("the agent does not show calls of its tool `view_image`");
    check(
        &codex("codex"),
        &[
            ("tool-calls: {forbid: [{kind: read}]}", unshown()),
            ("tool-calls: {forbid: [{kind: read, path: 'secret/**'}]}", unshown()),
            ("tool-calls: {forbid: [{name: 'view_*'}]}", unshown()),
            ("tool-calls: {require: [{kind: read}]}", unshown()),
            ("tool-calls: {max-by-kind: {read: 0}}", unshown()),
            ("rules: [{never: {kind: read}}]", unshown()),
            ("rules: [{before: {first: {kind: read}, then: {kind: execute}}}]", unshown()),
            ("trajectory: {expected: [{kind: read}]}", unshown()),
            ("expr: {cel: 'calls.all(c, c.kind != \"read\")'}", unshown()),
            ("expr: {cel: '!(\"read\" in metrics.tool_calls_by_kind)'}", unshown()),
            // What is shown decides these, whatever else there was.
            ("tool-calls: {forbid: [{kind: execute}]}", Fail(0.0, &[0, 1], "")),
            ("tool-calls: {forbid: [{kind: read}, {kind: execute}]}", Fail(0.5, &[0, 1], "")),
            ("tool-calls: {require: [{kind: [read, execute]}]}", Pass(&[0])),
            ("rules: [{eventually: {kind: execute}}]", Pass(&[0])),
            ("expr: {cel: 'calls.exists(c, c.kind == \"execute\")'}", Pass(&[])),
            // These ask for other calls.
            ("tool-calls: {forbid: [{kind: read, command: cat}]}", Pass(&[])),
            ("tool-calls: {forbid: [{kind: edit}]}", Pass(&[])),
            ("tool-calls: {forbid: [{command: rm}]}", Pass(&[])),
            ("tool-calls: {forbid: [{path: 'secret/**'}]}", Pass(&[])),
            ("expr: {cel: 'calls.all(c, c.kind != \"edit\")'}", Pass(&[])),
        ],
    );
}
