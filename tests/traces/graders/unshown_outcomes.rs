//! Failed calls that an agent reports as successes: no verdict takes such a success, or the absence of a failure, as certain.

use std::path::Path;

use evals::internal::harness::{Manifest, built_in};
use evals::trace::{KeptSession, ToolKind};
use serde_json::{Value, json};

use super::doubts::{NO_ERRORS, acp_introduced, acp_of, call, change};
use super::streams::stream;
use super::unclear::check;
use super::{Fail, Pass, Trial, Ungraded};

const SUCCEEDED: &str = "tool-calls: {require: [{status: ok}]}";

/// A session over ACP with one call of this kind, which ends with this update. The agent reports failed commands as
/// successes.
fn ended(kind: &str, end: &Value) -> Trial {
    let text = "name: mine\nadapter: acp\ncommand: [mine]\nunshown-outcomes: [execute]\n";
    let manifest: Manifest = evals::internal::yaml::parse(Path::new("mine.yaml"), text).unwrap();
    let input = json!({"kind": kind, "title": "t", "status": "pending", "rawInput": {"command": "echo hello; exit 3"}});
    acp_of(&manifest, &[call(&input), change(end)])
}

#[test]
fn a_success_that_may_hide_a_failure_decides_nothing() {
    check(
        &ended("execute", &json!({"status": "completed"})),
        &[
            (NO_ERRORS, Ungraded("how 1 call ended is unknown")),
            ("errors: {recovered: true}", Ungraded("unknown")),
            (SUCCEEDED, Ungraded("unknown")),
            ("tool-calls: {require: [{command: 'exit 3', status: error}]}", Ungraded("unknown")),
            ("tool-calls: {forbid: [{kind: execute, status: error}]}", Ungraded("unknown")),
            ("rules: [{never: {kind: execute, status: error}}]", Ungraded("")),
            ("rules: [{eventually: {kind: execute, status: ok}}]", Ungraded("")),
            (r#"expr: {cel: "calls.all(c, c.status == 'ok')"}"#, Ungraded("whether 1 call succeeded is unknown")),
            // These hold, or do not, whether it failed or not.
            ("errors: {max: 1}", Pass(&[])),
            ("tool-calls: {require: [{status: [ok, error]}]}", Pass(&[])),
            ("tool-calls: {forbid: [{status: denied}]}", Pass(&[])),
            ("tool-calls: {forbid: [{kind: read, status: error}]}", Pass(&[])),
            ("tool-calls: {require: [{command: 'exit 3'}]}", Pass(&[])),
            ("tool-calls: {forbid: [{command: 'exit 3'}]}", Fail(0.0, &[], "forbidden")),
            ("rules: [{eventually: {kind: execute}}]", Pass(&[])),
            (r#"expr: {cel: "calls.exists(c, c.kind == 'execute')"}"#, Pass(&[])),
        ],
    );
}

#[test]
fn an_exit_code_a_failure_and_another_kind_are_certain() {
    let passes = || [(NO_ERRORS, Pass(&[])), (SUCCEEDED, Pass(&[]))];
    let exited = |code: i64| json!({"status": "completed", "rawOutput": {"exitCode": code}});
    check(&ended("execute", &exited(0)), &passes());
    check(&ended("read", &json!({"status": "completed"})), &passes());
    for end in [exited(3), json!({"status": "failed"})] {
        check(
            &ended("execute", &end),
            &[(NO_ERRORS, Fail(0.0, &[], "1 call failed")), (SUCCEEDED, Fail(0.0, &[], ""))],
        );
    }
}

/// A stream of Gemini CLI with a call of this tool and its output.
fn gemini(tool: &str, output: &str) -> Trial {
    let id = format!("{tool}__1");
    let lines = [
        json!({"type": "tool_use", "tool_id": id, "tool_name": tool, "parameters": {"command": "make"}}),
        json!({"type": "tool_result", "tool_id": id, "status": "success", "output": output}),
    ];
    stream("gemini-stream", &lines)
}

#[test]
fn the_stream_of_gemini_shows_only_by_an_empty_output_that_a_command_succeeded() {
    for output in ["hello", "Command exited with code: 130"] {
        check(
            &gemini("run_shell_command", output),
            &[(NO_ERRORS, Ungraded("unknown")), (SUCCEEDED, Ungraded("unknown"))],
        );
    }
    check(&gemini("run_shell_command", ""), &[(NO_ERRORS, Pass(&[])), (SUCCEEDED, Pass(&[]))]);
    check(&gemini("read_file", "hello"), &[(NO_ERRORS, Pass(&[])), (SUCCEEDED, Pass(&[]))]);
}

/// A session over ACP with this agent, whose command is completed with this text in its result.
fn completed(harness: &str, text: &str) -> Trial {
    completed_by(harness, None, text)
}

/// The same, in this version of the agent.
fn completed_by(harness: &str, version: Option<&str>, text: &str) -> Trial {
    let input = json!({"kind": "execute", "title": "t", "status": "in_progress", "rawInput": {"command": "make"}});
    let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let end = json!({"status": "completed", "content": content, "rawOutput": {"content": text}});
    let introduced = match version {
        Some(version) => json!({"agentInfo": {"name": "agent", "version": version}}),
        None => json!({}),
    };
    acp_introduced(built_in::named(harness).unwrap(), &introduced, &[call(&input), change(&end)])
}

#[test]
fn the_end_of_a_text_shows_over_acp_how_a_command_of_older_agents_ended() {
    let passes = || [(NO_ERRORS, Pass(&[])), (SUCCEEDED, Pass(&[]))];
    let fails = || [(NO_ERRORS, Fail(0.0, &[], "1 call failed")), (SUCCEEDED, Fail(0.0, &[], ""))];
    let unknown = || [(NO_ERRORS, Ungraded("")), (SUCCEEDED, Ungraded(""))];
    // Qwen Code 0.15.10.
    let qwen = |output: &str, end: &str| {
        let text = format!("Command: make\nDirectory: (root)\nOutput: {output}\nError: (none)\n{end}");
        completed("qwen", &text)
    };
    check(&qwen("42", "Exit Code: 0\nSignal: 0\nProcess Group PGID: 9204"), &passes());
    check(&qwen("42", "Exit Code: 0\nSignal: (none)"), &passes());
    check(&qwen("3 tests failed", "Exit Code: 3\nSignal: 0\nProcess Group PGID: 9204"), &fails());
    check(&qwen("Exit Code: 0\nSignal: 0", "Exit Code: 3\nSignal: 0"), &fails());
    check(&qwen("42", "Exit Code: 0\nSignal: (none)\n\nNote: this foreground command ran for 75s."), &passes());
    check(&qwen("3 tests failed", "Exit Code: 3\nSignal: 0\n\nNote: it ran for 75s.\n\nNo note."), &fails());
    check(&qwen("Exit Code: 0\nSignal: 0\n\nbroken", "Exit Code: 3\nSignal: 0"), &fails());
    check(&qwen("", "Exit Code: 0\nSignal: 9\nProcess Group PGID: 9204"), &unknown());
    for text in ["Command timed out after 120000ms before it could complete.", "Background shell started.\nid: bg_1"] {
        for version in ["0.15.10", "0.20.0"] {
            check(&completed_by("qwen", Some(version), text), &unknown());
        }
        check(&completed("qwen", text), &unknown());
    }
    // Since 0.21, it reports a failed command as failed.
    for text in ["Background shell started.\nid: bg_1\npid: 77", "Monitor started.\nid: m1"] {
        check(&completed_by("qwen", Some("0.24.4"), text), &passes());
    }
    // Copilot 1.0.82.
    check(&completed("copilot", "42\n<shellId: 1 completed with exit code 0>"), &passes());
    check(&completed("copilot", "broken\n<shellId: long-build completed with exit code 3>"), &fails());
}

/// A stream of this version of Qwen Code with a call of this tool and its result.
fn qwen(version: &str, tool: &str, output: &str) -> Trial {
    let call = json!({"type": "tool_use", "id": "c", "name": tool, "input": {"command": "make"}});
    let result = json!({"type": "tool_result", "tool_use_id": "c", "is_error": false, "content": output});
    let usage = json!({"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 0, "total_tokens": 5});
    let lines = [
        json!({"type": "system", "subtype": "init", "session_id": "s", "cwd": "/w", "model": "m", "qwen_code_version": version}),
        json!({"type": "assistant", "session_id": "s", "parent_tool_use_id": null, "message": {"content": [call]}}),
        json!({"type": "user", "session_id": "s", "parent_tool_use_id": null, "message": {"content": [result]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "", "usage": usage, "permission_denials": []}),
    ];
    stream("qwen-stream", &lines)
}

#[test]
fn the_stream_of_an_older_qwen_shows_only_of_a_silent_command_that_it_succeeded() {
    const SHELL: &str = "run_shell_command";
    let silent = "Command: make\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 0\nSignal: 0\n\
                  Process Group PGID: 9204";
    for (version, tool, output) in [
        ("0.15.10", SHELL, silent),
        ("0.15.10", "read_file", "42"),
        ("0.21.2", SHELL, "42"),
        ("0.24.4", SHELL, "42"),
        ("1.0.0", SHELL, "42"),
    ] {
        check(&qwen(version, tool, output), &[(NO_ERRORS, Pass(&[])), (SUCCEEDED, Pass(&[]))]);
    }
    for output in ["3 tests failed", "Command exited with code: 1", "Command terminated by signal: 9"] {
        for version in ["0.15.10", "0.8.2", "0.20.0"] {
            check(&qwen(version, SHELL, output), &[(NO_ERRORS, Ungraded("")), (SUCCEEDED, Ungraded(""))]);
        }
    }
}

#[test]
fn an_old_trace_is_read_by_the_manifest_that_is_built_in() {
    for harness in ["gemini", "gemini-stream", "vibe"] {
        assert_eq!(built_in::named(harness).unwrap().unshown_outcomes, [ToolKind::Execute], "{harness}");
    }
    let mut old = gemini("run_shell_command", "hello");
    old.header.unshown_outcomes.clear();
    check(&old, &[(NO_ERRORS, Pass(&[]))]);
    old.header.harness = Some("gemini-stream".into());
    old.header.adapter = "json-stream".into();
    check(&old, &[(NO_ERRORS, Ungraded("unknown"))]);
    // A session file of the same agent shows exit codes.
    old.header.session = Some(KeptSession::default());
    check(&old, &[(NO_ERRORS, Pass(&[]))]);
}
