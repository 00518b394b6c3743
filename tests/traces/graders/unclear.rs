//! Words, forms and ids of an agent that are unknown here are neither a success nor absent. Each session goes in
//! as the agent sends or prints it.

use evals::internal::harness::{Adapter, Manifest};
use serde_json::{Value, json};

use super::doubts::{NO_ERRORS, NO_RM, acp, call, change, ls, session, update};
use super::streams::stream;
use super::{Expect, Fail, Outcome, Pass, Trial, Ungraded};

const OK: &str = "tool-calls: {require: [{status: ok}]}";

fn unclear() -> Expect {
    Ungraded("an outcome of a call")
}

/// Judges a trial: whether each grader passes, fails or cannot judge, and a part of the reason.
#[track_caller]
pub fn check(trial: &Trial, table: &[(&str, Expect)]) {
    check_of("", trial, table);
}

#[track_caller]
fn check_of(what: &str, trial: &Trial, table: &[(&str, Expect)]) {
    for (grader, expected) in table {
        let grade = trial.judge(grader);
        let told = format!("{what}: {grader}: {grade:?}\n{}", text(trial));
        let (passed, reason) = match expected {
            Fail(_, _, reason) => (Some(false), *reason),
            Ungraded(reason) => (None, *reason),
            _ => (Some(true), ""),
        };
        assert_eq!((grade.passed, grade.outcome == Outcome::Scored), (passed, passed.is_some()), "{told}");
        assert!(grade.reason.contains(reason), "{told}");
    }
}

/// The events of a trial as text.
fn text(trial: &Trial) -> String {
    trial.events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect()
}

/// The lines of a stream in which one call ends, with the key of its outcome and the values that mean success.
struct Agent {
    harness: &'static str,
    call: Value,
    end: Value,
    at: &'static str,
    ok: Value,
    /// Values that plainly report a failure.
    failed: Vec<Value>,
    /// Values that the agent never sends.
    odd: Vec<Value>,
}

fn words() -> Vec<Value> {
    vec![json!("aborted"), json!("error "), json!("Failed"), json!("ok"), json!("timed_out"), json!(7), json!([true])]
}

fn agents() -> Vec<Agent> {
    let item = |item: Value| json!({"type": "item.completed", "item": item});
    let codex = |more: Value, failed: Vec<Value>| Agent {
        harness: "codex",
        call: json!({"type": "thread.started", "thread_id": "t"}),
        end: item(more),
        at: "/item/status",
        ok: json!("completed"),
        failed,
        odd: words(),
    };
    let flags = || vec![json!("perhaps"), json!(7), json!([false])];
    let truths = || vec![json!(true), json!("true"), json!(1)];
    let part = |status: &str| {
        json!({"type": "tool_use", "sessionID": "s", "part": {"messageID": "m", "callID": "c",
        "tool": "bash", "state": {"status": status, "input": {"command": "ls"}, "output": "a", "error": "b"}}})
    };
    let other = |harness, call: Value, end: Value, at, ok: Value, failed, odd| Agent {
        harness,
        call,
        end,
        at,
        ok,
        failed,
        odd,
    };
    vec![
        codex(
            json!({"id": "i", "type": "command_execution", "command": "ls", "aggregated_output": "", "exit_code": null}),
            vec![json!("failed")],
        ),
        codex(
            json!({"id": "i", "type": "file_change", "changes": [{"path": "/w/a", "kind": "add"}]}),
            vec![json!("failed")],
        ),
        codex(
            json!({"id": "i", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}, "error": null,
                "result": {"content": []}}),
            vec![json!("failed")],
        ),
        codex(
            json!({"id": "i", "type": "collab_tool_call", "tool": "list_agents", "prompt": "p"}),
            vec![json!("failed")],
        ),
        other(
            "droid-stream",
            json!({"type": "tool_call", "id": "c", "messageId": "m", "toolName": "Execute", "parameters": {"command": "ls"}}),
            json!({"type": "tool_result", "id": "c", "toolId": "Execute", "value": "x"}),
            "/isError",
            json!(false),
            truths(),
            flags(),
        ),
        other(
            "pi",
            json!({"type": "tool_execution_start", "toolCallId": "c", "toolName": "bash", "args": {"command": "ls"}}),
            json!({"type": "tool_execution_end", "toolCallId": "c", "toolName": "bash", "result": {"content": []}}),
            "/isError",
            json!(false),
            truths(),
            flags(),
        ),
        other(
            "gemini-stream",
            json!({"type": "tool_use", "tool_id": "c", "tool_name": "read_file", "parameters": {"file_path": "a"}}),
            json!({"type": "tool_result", "tool_id": "c", "output": "x"}),
            "/status",
            json!("success"),
            vec![json!("error")],
            words(),
        ),
        other(
            "copilot-stream",
            json!({"type": "tool.execution_start", "data": {"toolCallId": "c", "toolName": "bash", "arguments": {"command": "ls"}}}),
            json!({"type": "tool.execution_complete", "data": {"toolCallId": "c", "result": {"content": "x"}}}),
            "/data/success",
            json!(true),
            vec![json!(false)],
            flags(),
        ),
        other(
            "opencode-stream",
            json!({"type": "step_start", "sessionID": "s", "part": {"messageID": "m"}}),
            part(""),
            "/part/state/status",
            json!("completed"),
            vec![json!("error")],
            words(),
        ),
        other(
            "vibe-stream",
            json!({"type": "checkpoint"}),
            json!({"type": "effect", "id": "c", "detail": {"toolName": "bash", "display": {"summary": "bash"},
                "input": {"command": "ls"}}, "state": {"outputText": "x", "display": {"success": true}}}),
            "/state/status",
            json!("completed"),
            vec![json!("failed")],
            words(),
        ),
    ]
}

#[test]
fn no_stream_turns_an_outcome_that_it_does_not_know_into_a_success() {
    for Agent { harness, call, end, at, ok, failed, odd } in agents() {
        let (parent, key) = at.rsplit_once('/').unwrap();
        let trial = |value: Option<&Value>| {
            let mut end = end.clone();
            let map = end.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            match value {
                Some(value) => drop(map.insert(key.to_owned(), value.clone())),
                None => drop(map.remove(key)),
            }
            stream(harness, &[call.clone(), end])
        };
        let grade = |value: Option<&Value>, expected: &dyn Fn() -> Expect| {
            let what = format!("{harness} {value:?}");
            check_of(&what, &trial(value), &[(NO_ERRORS, expected())]);
        };
        grade(Some(&ok), &|| Pass(&[]));
        for value in &failed {
            let trial = trial(Some(value));
            check(&trial, &[("tool-calls: {forbid: [{status: error}]}", Fail(0.0, &[], ""))]);
        }
        for value in odd.iter().chain([&Value::Null]) {
            grade(Some(value), &unclear);
            check(&trial(Some(value)), &[(OK, unclear())]);
        }
        grade(None, &unclear);
    }
}

#[test]
fn an_outcome_over_acp_in_an_unknown_word_is_unknown() {
    let ended = |status: Value| {
        acp(&[
            call(&json!({"kind": "execute", "status": "in_progress", "rawInput": {"command": "ls"}})),
            change(&json!({"status": status})),
        ])
    };
    for status in [json!("error"), json!("FAILED"), json!("denied"), json!(7), json!(true), json!("")] {
        check(
            &ended(status),
            &[(NO_ERRORS, unclear()), ("tool-calls: {require: [{kind: execute}]}", unclear()), (NO_RM, Pass(&[]))],
        );
    }
    // A known word that comes later counts, and so does a status of a call that has ended.
    let later = acp(&[
        call(&json!({"kind": "execute", "status": "running", "rawInput": {"command": "ls"}})),
        change(&json!({"status": "completed"})),
    ]);
    check(&later, &[(NO_ERRORS, Pass(&[])), (OK, Pass(&[]))]);
    check(&acp(&[call(&ls()), change(&json!({"status": 7}))]), &[(NO_ERRORS, unclear())]);
    // Another call with its id does not make it known.
    let another = acp(&[
        call(&json!({"kind": "execute", "title": "a", "status": "broken", "rawInput": {"command": "ls"}})),
        call(&json!({"kind": "execute", "title": "b", "status": "completed", "rawInput": {"command": "pwd"}})),
    ]);
    check(&another, &[(NO_ERRORS, unclear())]);
}

#[test]
fn an_exit_code_over_acp_counts_however_it_is_written() {
    let with = |raw: Value| {
        let mut ls = ls();
        ls["rawOutput"] = raw;
        acp(&[call(&ls)])
    };
    for raw in [json!({"exitCode": 2.0}), json!({"exitCode": "2"}), json!({"exit_code": 2, "stdout": "x"})] {
        check(
            &with(raw),
            &[(NO_ERRORS, Fail(0.0, &[], "")), ("tool-calls: {forbid: [{status: error}]}", Fail(0.0, &[], ""))],
        );
    }
    check(&with(json!({"exitCode": "0"})), &[(NO_ERRORS, Pass(&[]))]);
    // What is no exit code is kept as output.
    let shown = text(&with(json!({"exitCode": "none"})));
    assert!(shown.contains(r#""output":"{\"exitCode\":\"none\"}""#), "{shown}");
}

#[test]
fn a_kind_over_acp_that_was_never_said_is_unknown() {
    let kinds = |trial: &Trial| {
        check(
            trial,
            &[
                ("tool-calls: {forbid: [{kind: execute}]}", Ungraded("unknown")),
                ("tool-calls: {forbid: [{kind: other}]}", Ungraded("unknown")),
            ],
        );
    };
    kinds(&acp(&[change(&json!({"status": "completed"}))]));
    let asks = |call: Value| {
        let options = json!([{"optionId": "y", "kind": "allow_once", "name": "Yes"}]);
        let params = json!({"sessionId": "s", "toolCall": call, "options": options});
        json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission", "params": params})
    };
    let allowed = || {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
        json!(format!(">{}", json!({"jsonrpc": "2.0", "id": 9, "result": outcome})))
    };
    let asked = || asks(json!({"toolCallId": "c", "title": "Run something"}));
    kinds(&acp(&[asked(), allowed(), change(&json!({"status": "completed"}))]));
    // A kind that is said later, and the default of an announcement, are known.
    for then in [change(&json!({"kind": "read", "status": "completed"})), call(&json!({"status": "completed"}))] {
        check(&acp(&[asked(), allowed(), then]), &[("tool-calls: {forbid: [{kind: execute}]}", Pass(&[]))]);
    }
    check(
        &acp(&[call(&json!({"status": "completed"}))]),
        &[
            ("tool-calls: {require: [{kind: other}]}", Pass(&[])),
            ("tool-calls: {forbid: [{kind: execute}]}", Pass(&[])),
        ],
    );
}

#[test]
fn text_in_an_unknown_block_of_a_message_is_lost() {
    let says = |content: Value| {
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": chunk}})
    };
    let trial = |block: Value| acp(&[says(block), says(json!({"type": "text", "text": "d"}))]);
    let output = "output: {not-contains: SECRET}";
    for block in [
        json!({"type": "markdown", "text": "SECRET PLAN"}),
        json!({"type": "list", "items": [{"value": "SECRET PLAN"}]}),
        json!({"text": "SECRET PLAN"}),
    ] {
        check(&trial(block), &[(output, Ungraded("a line of the session was lost"))]);
    }
    check(&trial(json!({"type": "hologram", "data": "QUJD", "mimeType": "x/y"})), &[(output, Pass(&[]))]);
}

#[test]
fn a_whole_number_of_more_than_64_bits_keeps_its_digits() {
    let tool = |id: &str, number: &str| {
        let used = format!(
            r#"{{"type":"assistant","message":{{"id":"m{id}","content":[{{"type":"tool_use","id":"{id}","name":"Pay","input":{{"account":{number}}}}}]}}}}"#
        );
        json!(used)
    };
    let numbers = ["12345678901234567890123", "12345678901234567890124", "-9223372036854775809", "7"];
    let lines: Vec<Value> = numbers.iter().enumerate().map(|(n, number)| tool(&format!("c{n}"), number)).collect();
    let manifest = evals::internal::harness::built_in::named("claude-code-stream").unwrap();
    check(
        &session(manifest.adapter, manifest, &lines),
        &[
            ("tool-calls: {forbid: [{input: '12345678901234567890123'}]}", Fail(0.75, &[0, 1], "")),
            ("tool-calls: {require: [{args: {account: '12345678901234567890124'}}]}", Pass(&[1])),
            ("tool-calls: {require: [{args: {account: 7}}]}", Pass(&[3])),
            ("loops: {max: 1}", Pass(&[])),
        ],
    );
}

#[test]
fn figures_over_acp_that_are_no_counts_are_noticed() {
    let of = |usage: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": 2, "result": {"stopReason": "end_turn", "usage": usage}});
        text(&acp(&[answer]))
    };
    for usage in [
        json!({"inputTokens": 1.5}),
        json!({"outputTokens": "10"}),
        json!({"totalTokens": 1e30}),
        json!({"inputTokens": -5}),
    ] {
        let shown = of(usage.clone());
        assert!(shown.contains(r#""code":"usage_invalid""#), "{usage}: {shown}");
    }
    assert!(!of(json!({"inputTokens": 5, "outputTokens": 1.0, "totalTokens": null})).contains("usage_invalid"));
    let context = update("s", "usage_update", &json!({"used": -1, "size": 10}));
    assert!(text(&acp(&[context])).contains("`used` is no count: -1"));
}

/// A session of Claude Code's stream.
fn claude(lines: &[Value]) -> Trial {
    let mut all = vec![json!({"type": "system", "subtype": "init", "cwd": "/w", "session_id": "s"})];
    all.extend_from_slice(lines);
    session(Adapter::ClaudeCodeStream, &Manifest::bare(Adapter::ClaudeCodeStream), &all)
}

fn uses(message: &str, parent: Value, calls: &[(&str, &str, Value)]) -> Value {
    let block =
        |(id, name, input): &(&str, &str, Value)| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let content: Vec<Value> = calls.iter().map(block).collect();
    json!({"type": "assistant", "parent_tool_use_id": parent, "message": {"id": message, "role": "assistant", "content": content}})
}

fn results(parent: Value, id: &str, is_error: bool) -> Value {
    json!({"type": "user", "parent_tool_use_id": parent, "message": {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": "x", "is_error": is_error}]}})
}

fn done(text: &str) -> Value {
    json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "permission_denials": []})
}

#[test]
fn a_call_of_claude_with_the_id_of_another_speakers_open_call_is_a_call() {
    let make = || json!({"command": "make"});
    let agent = ("t", "Agent", json!({"prompt": "go"}));
    let main = uses("m1", Value::Null, &[agent, ("a", "Bash", make())]);
    let sub = uses("m2", json!("t"), &[("a", "Bash", make())]);
    let trial = |first: (Value, bool), second: (Value, bool)| {
        let ends = [results(first.0, "a", first.1), results(second.0, "a", second.1)];
        claude(&[
            main.clone(),
            sub.clone(),
            ends[0].clone(),
            ends[1].clone(),
            results(Value::Null, "t", false),
            done(""),
        ])
    };
    for (first, second) in [((Value::Null, true), (json!("t"), false)), ((json!("t"), false), (Value::Null, true))] {
        check(
            &trial(first, second),
            &[
                ("tool-calls: {forbid: [{command: make, agent: sub}]}", Fail(0.0, &[], "forbidden")),
                ("tool-calls: {max: 2}", Fail(0.0, &[], "3")),
                (
                    "tool-calls: {require: [{command: make, agent: sub, status: ok}, {command: make, agent: main, status: error}]}",
                    Pass(&[]),
                ),
            ],
        );
    }
}

#[test]
fn a_call_of_claude_that_another_message_repeats_is_one_call_or_two_by_its_results() {
    let bash = |message: &str, command: &str| uses(message, Value::Null, &[("a", "Bash", json!({"command": command}))]);
    let ends = |is_error| results(Value::Null, "a", is_error);
    // The message itself once more.
    let same = claude(&[bash("m", "make"), bash("m", "make"), ends(false), done("")]);
    check(&same, &[("tool-calls: {max: 1}", Pass(&[])), (NO_RM, Pass(&[]))]);
    // Another message, and two results.
    let two = claude(&[bash("m", "make"), bash("n", "make"), ends(true), ends(true), done("")]);
    check(&two, &[("tool-calls: {max: 1}", Fail(0.0, &[], "2")), ("errors: {max: 1}", Fail(0.0, &[], "2"))]);
    // Another message, and one result: one call, or a second one without a result.
    let one = claude(&[bash("m", "make"), bash("n", "make"), ends(false), done("")]);
    check(&one, &[("tool-calls: {max: 1}", Ungraded("the agent did something that no call shows"))]);
    // Another input: each has its own result.
    let other = |results: &[Value]| {
        let mut lines = vec![bash("m", "make"), bash("n", "ls")];
        lines.extend_from_slice(results);
        lines.push(done(""));
        claude(&lines)
    };
    check(
        &other(&[ends(true), ends(true)]),
        &[("errors: {max: 1}", Fail(0.0, &[], "2")), ("tool-calls: {forbid: [{status: unfinished}]}", Pass(&[]))],
    );
    check(&other(&[ends(true)]), &[("errors: {max: 1}", unclear())]);
}

/// A stream of Codex with these completed items.
fn codex(items: &[Value]) -> Trial {
    let mut lines = vec![json!({"type": "thread.started", "thread_id": "t"}), json!({"type": "turn.started"})];
    lines.extend(items.iter().map(|item| json!({"type": "item.completed", "item": item})));
    lines.push(json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}));
    stream("codex", &lines)
}

#[test]
fn a_change_of_codex_that_deletes_and_adds_does_not_hide_the_deletion() {
    let change = |kinds: &[&str]| {
        let changes: Vec<Value> =
            kinds.iter().map(|kind| json!({"path": format!("/w/{kind}"), "kind": kind})).collect();
        codex(&[json!({"id": "i", "type": "file_change", "changes": changes, "status": "completed"})])
    };
    let (deletes, edits) = ("tool-calls: {forbid: [{kind: delete}]}", "tool-calls: {forbid: [{kind: edit}]}");
    let found = || Fail(0.0, &[], "forbidden");
    check(&change(&["delete", "add"]), &[(deletes, Ungraded("unknown")), (edits, Ungraded("unknown"))]);
    check(&change(&["add", "update"]), &[(deletes, Pass(&[])), (edits, found())]);
    check(&change(&["delete"]), &[(deletes, found()), (edits, Pass(&[]))]);
    check(&change(&["rename"]), &[(deletes, Ungraded("unknown"))]);
}

#[test]
fn an_item_of_codex_of_an_unknown_type_may_be_an_action() {
    let item = |kind: &str| codex(&[json!({"id": "x", "type": kind, "status": "completed", "text": "t", "items": []})]);
    let none = "tool-calls: {none: true}";
    check(&item("image_generation"), &[(none, Ungraded("a line of the session was lost"))]);
    for kind in ["agent_message", "reasoning", "todo_list"] {
        check(&item(kind), &[(none, Pass(&[]))]);
    }
}

#[test]
fn the_exit_code_of_cline_is_in_its_own_sentence() {
    let ended = |output: Value| {
        let event = |kind: &str, more: Value| {
            let mut event = json!({"type": kind, "contentType": "tool", "toolCallId": "a", "toolName": "run_commands"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"type": "agent_event", "event": event})
        };
        let begins = event("content_start", json!({"input": {"commands": ["make"]}}));
        stream("cline-stream", &[begins, event("content_end", json!({"output": output}))])
    };
    let quoted = "old log: Command exited with code 7\n";
    for good in [
        json!([{"query": "make", "result": quoted, "success": true}]),
        json!([{"query": "make", "result": "Command exited with code 7\n", "success": true}]),
        json!(quoted),
    ] {
        let trial = ended(good);
        check(&trial, &[(NO_ERRORS, Pass(&[])), (OK, Pass(&[]))]);
        assert!(!text(&trial).contains("exit_code"), "{}", text(&trial));
    }
    for bad in [
        json!([{"query": "make", "result": "[Command exited with code 3]\nold log: Command exited with code 7", "error": "Command exited with code 3", "success": false}]),
        json!([{"query": "ls", "result": quoted, "success": true}, {"query": "make", "result": quoted, "error": "Command exited with code 3", "success": false}]),
    ] {
        let trial = ended(bad);
        check(&trial, &[(NO_ERRORS, Fail(0.0, &[], ""))]);
        assert!(text(&trial).contains(r#""exit_code":3"#), "{}", text(&trial));
    }
}
