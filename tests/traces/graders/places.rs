//! The places that calls name: relative to the workspace, above it, in a folder of the call's own, or in a workspace that the
//! trace does not name. Each trace is written by hand.

use serde_json::{Value, json};

use super::{Fail, Pass, Trial, Ungraded, check};

/// A trace of calls that succeeded, in the workspace `/w/ws` unless `cwd` says otherwise.
fn trace(cwd: Option<&str>, calls: &[Value]) -> Trial {
    let mut lines = Vec::new();
    for (n, call) in calls.iter().enumerate() {
        let mut call = call.clone();
        let fields = json!({"type": "tool_call", "seq": 2 * n, "at_ms": 0, "call": format!("c{n}"), "step": n});
        call.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        lines.push(call);
        lines.push(
            json!({"type": "tool_result", "seq": 2 * n + 1, "at_ms": 0, "call": format!("c{n}"), "status": "ok"}),
        );
    }
    lines.push(json!({"type": "stop", "seq": 2 * calls.len(), "at_ms": 0, "reason": "end_turn"}));
    let mut trial = Trial::of(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    trial.header.cwd = cwd.map(str::to_owned);
    trial
}

fn one(kind: &str, path: &str) -> Trial {
    trace(Some("/w/ws"), &[json!({"kind": kind, "input": {"path": path}})])
}

fn forbids(path: &str) -> String {
    format!("tool-calls: {{forbid: [{{path: '{path}'}}]}}")
}

fn found() -> super::Expect {
    Fail(0.0, &[0, 1], "")
}

#[test]
fn a_path_that_leads_out_of_the_workspace_is_compared_where_it_leads() {
    for (path, glob) in [
        ("../ws/src/key", "src/**"),
        ("../../etc/passwd", "/etc/**"),
        ("../../etc/passwd", "/**"),
        ("../../etc/passwd", "../**"),
        ("a/../../ws/src/key", "src/key"),
        ("/w/ws/../ws/src/key", "src/*"),
        ("src/key", "/w/ws/src/**"),
        ("/etc/passwd", "/etc/**"),
    ] {
        check(&one("read", path), &[(&forbids(glob), found())]);
    }
    check(&one("read", "src/key"), &[(&forbids("../**"), Pass(&[])), (&forbids("/etc/**"), Pass(&[]))]);
    check(&one("read", "../other/a"), &[(&forbids("other/**"), Pass(&[])), (&forbids("/w/other/a"), found())]);
}

#[test]
fn a_call_with_a_folder_of_its_own_counts_from_there() {
    for (cwd, glob) in [("/w/ws/sub", "sub/a"), ("sub", "sub/a"), ("/elsewhere", "/elsewhere/a")] {
        let trial = trace(Some("/w/ws"), &[json!({"kind": "edit", "input": {"path": "a"}, "cwd": cwd})]);
        check(&trial, &[(&forbids(glob), found()), (&forbids("a"), Pass(&[]))]);
    }
}

#[test]
fn without_a_workspace_an_absolute_path_may_be_in_it() {
    let trial = trace(None, &[json!({"kind": "edit", "input": {"path": "/x/y/answer.txt"}})]);
    check(
        &trial,
        &[
            (&forbids("answer.txt"), Ungraded("")),
            (&forbids("y/*"), Ungraded("")),
            ("tool-calls: {require: [{path: answer.txt}]}", Ungraded("")),
            (&forbids("other.txt"), Pass(&[])),
            (&forbids("**/answer.txt"), found()),
            (&forbids("/x/**"), found()),
        ],
    );
    check(
        &trial.changed(&[], &[], &[]),
        &[
            ("scope: {only: ['y/**']}", Ungraded("")),
            ("scope: {never: ['../**']}", Ungraded("")),
            ("scope: {never: ['/x/**']}", Fail(0.0, &[0, 1], "")),
            (&forbids("../**"), Ungraded("")),
            ("tool-calls: {require: [{path: '../**'}]}", Ungraded("")),
        ],
    );
    let own_folder = trace(None, &[json!({"kind": "read", "input": {"path": "key"}, "cwd": "/w/ws/src"})]);
    check(&own_folder, &[(&forbids("src/**"), Ungraded("")), ("scope: {reads: ['src/**']}", Ungraded(""))]);
    let relative = trace(None, &[json!({"kind": "edit", "input": {"path": "answer.txt"}})]);
    check(&relative, &[(&forbids("/w/ws/**"), Ungraded(""))]);
    check(&relative, &[(&forbids("answer.txt"), found()), (&forbids("y/*"), Pass(&[]))]);
}

#[test]
fn a_folder_that_is_deleted_stands_for_its_files() {
    for folder in [".", "/w/ws", "/w", "..", "/"] {
        check(
            &one("delete", folder),
            &[
                (&forbids("src/**"), found()),
                (&forbids("**/*.py"), Ungraded("")),
                (&forbids("/etc/**"), if folder == "/" { found() } else { Pass(&[]) }),
            ],
        );
    }
    check(&one("delete", "/"), &[(&forbids("../**"), found())]);
    check(
        &one("delete", "src"),
        &[
            (&forbids("src/a.py"), found()),
            (&forbids("**/*.py"), Ungraded("")),
            (&forbids("*/a.py"), Ungraded("")),
            (&forbids("lib/*"), Pass(&[])),
        ],
    );
    check(&one("delete", "a.txt"), &[(&forbids("**/*.py"), Pass(&[]))]);
    check(&one("edit", "src"), &[(&forbids("src/**"), Pass(&[]))]);
}

#[test]
fn the_input_of_a_servers_tool_has_commands_and_paths() {
    for input in [
        json!({"server": "s", "tool": "run", "arguments": {"command": "rm -rf build"}}),
        json!({"params": {"cmd": "rm -rf build"}}),
        json!({"shell_command": "rm -rf build"}),
        json!({"arguments": {"args": {"command": "rm -rf build"}}}),
        json!({"params": [{"command": "rm -rf build"}]}),
        json!({"command": "rm", "params": ["-rf", "build"]}),
    ] {
        let trial = trace(Some("/w/ws"), &[json!({"kind": "other", "input": input})]);
        check(&trial, &[("tool-calls: {forbid: [{command: 'rm -rf'}]}", found())]);
    }
    let trial =
        trace(Some("/w/ws"), &[json!({"kind": "other", "input": {"tool": "write", "arguments": {"path": "/w/ws/a"}}})]);
    check(&trial, &[(&forbids("a"), found())]);
}

#[test]
fn unknown_checks_bound_the_value_of_a_failed_grade() {
    let calls = [json!({"kind": "execute", "name": "N"}), json!({"kind": "edit", "input": {"path": "x"}})];
    let rules = "rules: [{never: {command: rm}}, {never: {kind: edit}}, {eventually: {kind: edit}}]";
    check(&trace(Some("/w/ws"), &calls), &[(rules, Fail(0.5, &[2], ""))]);
    // The call without an input may be the expected command.
    let recall = "trajectory: {mode: recall, min: 0.9, expected: [{kind: edit}, {command: rm}, {kind: read}]}";
    let graded = trace(Some("/w/ws"), &calls).judge(recall);
    let bounds = graded.bounds.unwrap();
    assert_eq!((graded.passed, bounds.low.get(), bounds.high.get()), (Some(false), 1.0 / 3.0, 2.0 / 3.0));
}
