//! Failed calls that an agent reports as successes: no verdict takes such a success, or the absence of a failure, as certain.

use std::path::Path;

use evals::internal::harness::{Manifest, built_in};
use evals::trace::{KeptSession, ToolKind};
use serde_json::{Value, json};

use super::doubts::{NO_ERRORS, acp_of, call, change};
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
