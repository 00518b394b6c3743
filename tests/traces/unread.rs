//! What an agent shows in a form that cannot be read is lost, and the trace says so, for each protocol: graders would
//! otherwise take it for something that did not happen.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use evals::internal::adapter::import;
use evals::internal::harness::{Adapter, Manifest};
use evals::trace::jsonl::{write_event, write_header};
use serde_json::{Value, json};

use crate::laws;
use crate::project;

/// Imports lines of an agent, and returns the events.
fn events(adapter: Adapter, manifest: &Manifest, lines: &[Value]) -> Vec<Value> {
    let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
    events_of_text(adapter, manifest, &text.join("\n"))
}

/// Imports the text of an agent's lines, and returns the events.
fn events_of_text(adapter: Adapter, manifest: &Manifest, text: &str) -> Vec<Value> {
    let mut events = Vec::new();
    let header = import(adapter, manifest, true, text.as_bytes(), |event| write_event(&mut events, &event));
    let mut trace = Vec::new();
    write_header(&mut trace, &header.unwrap()).unwrap();
    trace.extend(events);
    let trace = String::from_utf8(trace).unwrap();
    laws::assert_lawful(&trace);
    project::lines(&trace).split_off(1)
}

/// Returns what the notices say is lost.
fn lost(events: &[Value]) -> BTreeSet<&str> {
    events.iter().filter_map(|event| event["lost"].as_str()).collect()
}

fn named(name: &str) -> Manifest {
    evals::internal::harness::built_in::named(name).unwrap().clone()
}

fn assistant(message: &str, content: Value) -> Value {
    json!({"type": "assistant", "message": {"id": message, "content": content}})
}

fn piece(event: Value) -> Value {
    json!({"type": "stream_event", "event": event})
}

fn result(more: Value) -> Value {
    let mut line = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done"});
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line
}

fn claude(lines: &[Value]) -> Vec<Value> {
    let manifest = named("claude-code-stream");
    events(Adapter::ClaudeCodeStream, &manifest, lines)
}

fn bash(id: &str, command: &str) -> Value {
    json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}])
}

fn answered(id: &str, output: Value) -> Value {
    json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": output}]}})
}

#[test]
fn claude_code() {
    let begun = |block: Value| {
        [
            piece(json!({"type": "message_start", "message": {"id": "m"}})),
            piece(json!({"type": "content_block_start", "index": 0, "content_block": block})),
        ]
    };
    let ran = [assistant("m", bash("a", "ls")), answered("a", json!("ok"))];
    let with = |before: &[Value], more: &[Value]| [before, more, &[result(json!({}))]].concat();
    let unknown = begun(json!({"type": "computer_use", "id": "a", "name": "Bash"}));
    let unnamed = begun(json!({"type": "tool_use", "name": "Bash"}));
    let orphan = piece(json!({"type": "content_block_delta", "index": 7,
                              "delta": {"type": "input_json_delta", "partial_json": "{\"command\":\"rm\"}"}}));
    let odd = piece(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "odd", "text": "rm"}}));
    for (lines, expected) in [
        (with(&ran, &[assistant("m", bash("a", "ls"))]), vec![]),
        (with(&ran, &[assistant("m", bash("a", "rm -rf src"))]), vec!["line"]),
        (with(&ran, &[answered("a", json!("ok"))]), vec![]),
        (with(&ran, &[answered("a", json!("FAILED"))]), vec!["outcome"]),
        (
            with(&[assistant("m", bash("a", "ls"))], &[answered("a", json!([{"type": "text", "text": ["FAILED"]}]))]),
            vec!["line"],
        ),
        (with(&[assistant("m", json!([{"type": "text", "text": ["deleted"]}]))], &[]), vec!["line"]),
        (with(&[assistant("m", json!([{"type": "thinking", "thinking": 7}]))], &[]), vec!["line"]),
        (with(&[assistant("m", json!([{"type": "refusal", "refusal": "no"}]))], &[]), vec!["line"]),
        (with(&[assistant("m", json!([{"type": "code_execution", "code": "rm"}]))], &[]), vec!["line"]),
        (with(&[assistant("m", json!([{"type": "pause", "seconds": 3}]))], &[]), vec![]),
        (with(&unknown, &[]), vec!["line"]),
        (with(&unknown, std::slice::from_ref(&odd)), vec!["line"]),
        (with(&unnamed, &[]), vec!["line"]),
        // The complete block shows what its pieces did not.
        (with(&unnamed, &[assistant("m", bash("a", "ls")), answered("a", json!("ok"))]), vec![]),
        (with(&begun(json!({"type": "text", "text": "done"})), &[orphan]), vec!["line"]),
        (
            vec![result(json!({"permission_denials": [{"tool_name": "Write", "tool_input": {}}]}))],
            vec!["line", "outcome"],
        ),
        (vec![result(json!({"permission_denials": ["Bash"]}))], vec!["line"]),
        (vec![result(json!({"permission_denials": {"tool_name": "Bash"}}))], vec!["line"]),
        (vec![result(json!({"permission_denials": []}))], vec![]),
    ] {
        let events = claude(&lines);
        assert_eq!(lost(&events).into_iter().collect::<Vec<_>>(), expected, "{lines:#?}\n{events:#?}");
    }
}

#[test]
fn a_text_of_an_unknown_type_in_a_result_of_claude_code_is_output() {
    let blocks = json!([{"type": "text", "text": "ran"}, {"type": "ansi_text", "text": "2 FAILED"}]);
    let events = claude(&[assistant("m", bash("a", "pytest")), answered("a", blocks), result(json!({}))]);
    let ended = events.iter().find(|event| event["type"] == "tool_result").unwrap();
    assert_eq!(ended["output"], "ran\n2 FAILED");
}

/// Returns the first event of a type.
fn first<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    events.iter().find(|event| event["type"] == kind).unwrap()
}

#[test]
fn a_result_of_a_tool_of_the_service_has_the_outcome_and_the_output_inside_it() {
    let ran = |tool: &str, inner: Value| {
        let call = json!({"type": "server_tool_use", "id": "s", "name": tool, "input": {"command": "pytest -q"}});
        let told = json!({"type": format!("{tool}_tool_result"), "tool_use_id": "s", "content": inner});
        claude(&[assistant("m", json!([call, told])), result(json!({}))])
    };
    let exits = |kind: &str, code: Value| {
        let (stdout, stderr) = ("1 failed", "Traceback");
        json!({"type": kind, "stdout": stdout, "stderr": stderr, "return_code": code, "content": []})
    };
    let error = |kind: &str, code: &str| json!({"type": kind, "error_code": code});
    let page = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "page"}});
    let both = "1 failed\nTraceback";
    for (tool, inner, status, output, exit_code) in [
        ("bash_code_execution", exits("bash_code_execution_result", json!(1)), "error", both, json!(1)),
        ("bash_code_execution", exits("bash_code_execution_result", json!(0)), "ok", both, json!(0)),
        ("code_execution", exits("code_execution_result", json!(2)), "error", both, json!(2)),
        ("code_execution", exits("of_a_later_version", json!(2)), "error", both, json!(2)),
        (
            "code_execution",
            json!({"type": "encrypted_code_execution_result", "encrypted_stdout": "x", "stderr": "bad", "return_code": 1}),
            "error",
            "bad",
            json!(1),
        ),
        (
            "bash_code_execution",
            error("bash_code_execution_tool_result_error", "unavailable"),
            "error",
            "unavailable",
            Value::Null,
        ),
        ("web_fetch", error("web_fetch_tool_error", "url_not_accessible"), "error", "url_not_accessible", Value::Null),
        (
            "web_search",
            error("web_search_tool_result_error", "max_uses_exceeded"),
            "error",
            "max_uses_exceeded",
            Value::Null,
        ),
        (
            "text_editor_code_execution",
            json!({"type": "text_editor_code_execution_tool_result_error", "error_code": "file_not_found",
                   "error_message": "no a.txt"}),
            "error",
            "file_not_found: no a.txt",
            Value::Null,
        ),
        (
            "text_editor_code_execution",
            json!({"type": "text_editor_code_execution_view_result", "file_type": "text", "content": "a line"}),
            "ok",
            "a line",
            Value::Null,
        ),
        ("web_fetch", json!({"type": "web_fetch_result", "url": "u", "content": page}), "ok", "page", Value::Null),
        (
            "advisor",
            json!({"type": "advisor_result", "text": "go on", "stop_reason": null}),
            "ok",
            "go on",
            Value::Null,
        ),
        (
            "text_editor_code_execution",
            json!({"type": "text_editor_code_execution_create_result", "is_file_update": false}),
            "ok",
            "[text_editor_code_execution_create_result]",
            Value::Null,
        ),
    ] {
        let events = ran(tool, inner);
        let ended = first(&events, "tool_result");
        let told = (&ended["status"], &ended["output"], &ended["exit_code"]);
        assert_eq!(told, (&json!(status), &json!(output), &exit_code), "{events:#?}");
        assert!(lost(&events).is_empty(), "{events:#?}");
    }
    // What cannot be read is no success.
    for (inner, status) in [
        (exits("bash_code_execution_result", json!("none")), "unfinished"),
        (exits("bash_code_execution_result", json!(1.5)), "unfinished"),
        (exits("bash_code_execution_result", Value::Null), "unfinished"),
        (json!({"type": "code_execution_result", "stdout": "1 failed", "stderr": ""}), "unfinished"),
        (json!({"type": "encrypted_code_execution_result", "encrypted_stdout": "x", "stderr": ""}), "unfinished"),
        (json!({"type": "bash_code_execution_result", "stdout": ["1 failed"], "return_code": 0}), "ok"),
    ] {
        let events = ran("bash_code_execution", inner);
        assert_eq!(first(&events, "tool_result")["status"], status, "{events:#?}");
        assert_eq!(lost(&events).into_iter().collect::<Vec<_>>(), ["line"], "{events:#?}");
    }
}

#[test]
fn what_claude_code_withdraws_is_taken_out_or_told() {
    let said = |uuid: &str, message: &str, blocks: Value, more: Value| {
        let mut line = assistant(message, blocks);
        line["uuid"] = json!(uuid);
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let thinks = said("u4", "m2", json!([{"type": "thinking", "thinking": "Hm."}]), json!({}));
    let first_text = said("u1", "m1", text("The answer is 42."), json!({}));
    let call = said("u2", "m1", bash("a", "make"), json!({}));
    let ran = answered("a", json!("ok"));
    let retracted =
        |uuids: Value| json!({"type": "system", "subtype": "model_refusal_fallback", "retracted_message_uuids": uuids});
    let by_message = |uuids: Value| vec![said("u3", "m2", text("I do not know."), json!({"supersedes": uuids}))];
    let by_notice = |uuids: Value| vec![said("u3", "m2", text("I do not know."), json!({})), retracted(uuids)];
    let all = || json!(["u1", "u2", "unknown"]);
    let (one, two) = ("I do not know.", "The answer is 42.\n\nI do not know.");
    for (before, after, texts, status, expected) in [
        (vec![first_text.clone()], by_message(json!(["u1"])), vec![one], None, vec![]),
        (vec![first_text.clone()], by_notice(json!(["u1"])), vec![one], None, vec![]),
        // Named twice.
        (
            vec![first_text.clone()],
            [by_message(json!(["u1"])), vec![retracted(json!(["u1"]))]].concat(),
            vec![one],
            None,
            vec![],
        ),
        (vec![first_text.clone()], by_message(json!(["other"])), vec![two], None, vec![]),
        // The notice comes before the new answer.
        (vec![first_text.clone(), retracted(json!(["u1"]))], by_message(json!([])), vec![one], None, vec![]),
        // The text is in an earlier message than the answer.
        (
            vec![first_text.clone(), call.clone()],
            by_message(all()),
            vec!["The answer is 42.", one],
            Some("cancelled"),
            vec![],
        ),
        (
            vec![first_text.clone(), call.clone()],
            by_notice(all()),
            vec!["The answer is 42.", one],
            Some("cancelled"),
            vec![],
        ),
        (
            vec![first_text.clone(), thinks.clone()],
            by_message(json!(["u1"])),
            vec!["The answer is 42.", one],
            None,
            vec![],
        ),
        (
            vec![first_text.clone(), retracted(json!(["u1"])), thinks.clone()],
            by_message(json!([])),
            vec!["The answer is 42.", one],
            None,
            vec![],
        ),
        // The text is the answer.
        (vec![first_text.clone()], vec![retracted(json!(["u1"]))], vec!["The answer is 42."], None, vec!["speaker"]),
        (
            vec![first_text.clone(), thinks],
            vec![retracted(json!(["u1"]))],
            vec!["The answer is 42."],
            None,
            vec!["speaker"],
        ),
        // A call with a result was carried out.
        (vec![call.clone(), ran.clone()], by_message(all()), vec![one], Some("ok"), vec![]),
        (vec![call.clone()], by_message(json!([])), vec![one], Some("unfinished"), vec![]),
        (vec![call.clone()], [by_message(all()), vec![ran.clone()]].concat(), vec![one], Some("ok"), vec![]),
    ] {
        let lines = [before, after, vec![result(json!({"result": one}))]].concat();
        let events = claude(&lines);
        let messages = events.iter().filter(|event| event["type"] == "message").map(|event| event["text"].clone());
        assert_eq!(messages.collect::<Vec<_>>(), texts, "{lines:#?}\n{events:#?}");
        let ended = events.iter().find(|event| event["type"] == "tool_result").map(|event| event["status"].clone());
        assert_eq!(ended, status.map(|status| json!(status)), "{lines:#?}\n{events:#?}");
        assert_eq!(lost(&events).into_iter().collect::<Vec<_>>(), expected, "{lines:#?}\n{events:#?}");
        assert_eq!(events.last().unwrap()["output"], *texts.last().unwrap(), "{events:#?}");
    }
    // A text that stays is quoted.
    let lines = [first_text, call, ran, retracted(json!(["u1"])), said("u3", "m2", text(one), json!({}))];
    let told = |event: &Value| event["code"] == "withdrawn_message" && event["text"].to_string().contains("is 42");
    assert!(claude(&lines).iter().any(told), "{:#?}", claude(&lines));
}

#[test]
fn a_text_that_was_streamed_and_never_completed_is_no_answer() {
    let begin = |message: &str| piece(json!({"type": "message_start", "message": {"id": message}}));
    let streamed = |text: &str| {
        [
            piece(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})),
            piece(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})),
        ]
    };
    let stop = || piece(json!({"type": "content_block_stop", "index": 0}));
    let whole = |message: &str, text: &str| assistant(message, json!([{"type": "text", "text": text}]));
    let (one, lost_one) = ("The answer is 42.", "The answer is 41, because");
    // Claude Code ends the stream of such a message itself.
    let cut = [&[begin("m1")][..], &streamed(lost_one), &[stop()]].concat();
    let again = [&[begin("m2")][..], &streamed(one), &[whole("m2", one), stop()]].concat();
    let end = [result(json!({"result": one}))];
    let interrupted = [
        json!({"type": "user", "message": {"content": [{"type": "text", "text": "[Request interrupted by user]"}]}}),
        result(json!({"subtype": "error_during_execution", "is_error": true})),
    ];
    let calls = [assistant("m2", bash("a", "ls")), answered("a", json!("ok")), whole("m3", one)];
    for (lines, texts, is_withdrawn) in [
        ([&cut[..], &[whole("m2", one)], &end].concat(), vec![one], true),
        ([&cut[..], &again, &end].concat(), vec![one], true),
        // The message itself did not arrive.
        ([&cut[..], &end].concat(), vec![one], true),
        // The text is in an earlier message than the answer.
        ([&cut[..], &calls, &end].concat(), vec![lost_one, one], true),
        ([&cut[..], &interrupted].concat(), vec![lost_one], false),
        (cut.clone(), vec![lost_one], false),
        ([&again[..], &end].concat(), vec![one], false),
        // An agent that shows no complete messages.
        ([&[begin("m2")][..], &streamed(one), &[stop()], &end].concat(), vec![one], false),
    ] {
        let events = claude(&lines);
        let messages = events.iter().filter(|event| event["type"] == "message").map(|event| event["text"].clone());
        assert_eq!(messages.collect::<Vec<_>>(), texts, "{lines:#?}\n{events:#?}");
        assert_eq!(events.last().unwrap()["output"], *texts.last().unwrap(), "{events:#?}");
        let told = events.iter().any(|event| event["code"] == "withdrawn_message");
        assert_eq!((told, lost(&events).len()), (is_withdrawn, 0), "{lines:#?}\n{events:#?}");
    }
}

#[test]
fn a_character_that_is_cut_between_two_pieces_is_whole() {
    // The halves are in the lines as JavaScript writes them.
    let cut = |pieces: &[Value]| -> String {
        let lines: Vec<String> = pieces.iter().map(Value::to_string).collect();
        lines.join("\n").replace("<HIGH>", "\\ud83d").replace("<LOW>", "\\ude00")
    };
    let delta =
        |index: u64, delta: Value| piece(json!({"type": "content_block_delta", "index": index, "delta": delta}));
    let text = |text: &str| delta(0, json!({"type": "text_delta", "text": text}));
    let input = |json: &str| delta(1, json!({"type": "input_json_delta", "partial_json": json}));
    let begin = |index: u64, block: Value| {
        piece(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let lines = [
        piece(json!({"type": "message_start", "message": {"id": "m"}})),
        begin(0, json!({"type": "text", "text": ""})),
        text("a <HIGH>"),
        text("<LOW> b"),
        assistant("m", json!([{"type": "text", "text": "a 😀 b"}])),
        begin(1, json!({"type": "tool_use", "id": "a", "name": "Bash", "input": {}})),
        input("{\"command\": \"echo <HIGH>"),
        input("<LOW>\"}"),
        piece(json!({"type": "content_block_stop", "index": 1})),
        answered("a", json!("ok")),
        result(json!({"result": "a 😀 b"})),
    ];
    let manifest = named("claude-code-stream");
    let events = events_of_text(Adapter::ClaudeCodeStream, &manifest, &cut(&lines));
    assert_eq!(first(&events, "message")["text"], "a 😀 b", "{events:#?}");
    assert_eq!(first(&events, "tool_call")["input"]["command"], "echo 😀", "{events:#?}");
    assert!(!events.iter().any(|event| event["code"] == "stream_differs"), "{events:#?}");
    assert!(lost(&events).is_empty(), "{events:#?}");

    let says = |word: &str, text: &str| json!({"sessionUpdate": word, "content": {"type": "text", "text": text}});
    let chunks = |pieces: &[Value]| {
        // The line is a text in the line of the wire log.
        let log = acp_log(pieces).iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let log = log.replace("<HIGH>", "\\\\ud83d").replace("<LOW>", "\\\\ude00");
        events_of_text(Adapter::Acp, &Manifest::bare(Adapter::Acp), &log)
    };
    let agent = "agent_message_chunk";
    let answer = |events: &[Value]| events.last().unwrap()["output"].clone();
    let events = chunks(&[says(agent, "a <HIGH>"), says(agent, "<LOW> b")]);
    assert_eq!((answer(&events), lost(&events).len()), (json!("a 😀 b"), 0), "{events:#?}");
    let events = chunks(&[says(agent, "a <HIGH>"), says(agent, " <LOW> b")]);
    assert_eq!((answer(&events), lost(&events).len()), (json!("a \u{fffd} \u{fffd} b"), 0), "{events:#?}");
    // Another event came in between.
    let events = chunks(&[says(agent, "a <HIGH>"), says("agent_thought_chunk", "Hm."), says(agent, "<LOW> b")]);
    assert_eq!(lost(&events).into_iter().collect::<Vec<_>>(), ["text"], "{events:#?}");
    assert_eq!(answer(&events), "😀 b", "{events:#?}");
}

#[test]
fn a_turn_that_used_more_than_the_session_makes_the_figures_of_claude_code_lower_bounds() {
    let models = json!({"m": {"inputTokens": 10, "outputTokens": 5}});
    let events = claude(&[result(json!({
        "total_cost_usd": "5.0", "usage": {"input_tokens": 500, "output_tokens": 5}, "modelUsage": models,
    }))]);
    let usage = events.iter().find(|event| event["type"] == "usage").unwrap();
    assert_eq!((&usage["cost_usd"], &usage["input_tokens"]), (&json!(5.0), &json!(500)), "{usage}");
    assert_eq!(usage["lower_bounds"], json!(["input_tokens"]), "{usage}");
}

fn acp(manifest: &Manifest, updates: &[Value]) -> Vec<Value> {
    events(Adapter::Acp, manifest, &acp_log(updates))
}

/// Returns the lines of the wire log of a session over ACP with these updates.
fn acp_log(updates: &[Value]) -> Vec<Value> {
    let update = |fields: &Value| {
        let params = json!({"sessionId": "s", "update": fields});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    };
    let log = |dir: &str, line: Value| json!({"at_ms": 1, "dir": dir, "line": line.to_string()});
    let sent = |id: u64, method: &str, params: Value| {
        log("send", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    let answer = |id: u64, result: Value| log("recv", json!({"jsonrpc": "2.0", "id": id, "result": result}));
    let prompt = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
    let mut lines = vec![
        sent(0, "initialize", json!({"protocolVersion": 1})),
        answer(0, json!({"protocolVersion": 1})),
        sent(1, "session/new", json!({"cwd": "/w"})),
        answer(1, json!({"sessionId": "s"})),
        sent(2, "session/prompt", prompt),
    ];
    lines.extend(updates.iter().map(|fields| log("recv", update(fields))));
    lines.push(answer(2, json!({"stopReason": "end_turn"})));
    lines
}

#[test]
fn acp_clients() {
    let call = |kind: &str, title: &str, more: Value| {
        let mut fields =
            json!({"sessionUpdate": "tool_call", "toolCallId": "a", "kind": kind, "title": title, "status": "pending"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let then = |more: Value| {
        let mut fields = json!({"sessionUpdate": "tool_call_update", "toolCallId": "a"});
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        fields
    };
    let done = then(json!({"status": "completed"}));
    let says = |content: Value| json!({"sessionUpdate": "agent_message_chunk", "content": content});
    let runs = |more: Value| vec![call("execute", "make", json!({"rawInput": {"command": "make"}})), then(more)];
    let exits = |code: Value| runs(json!({"status": "completed", "rawOutput": {"exit_code": code}}));
    let becomes = |kind: &str, more: Value| vec![call(kind, "x", json!({})), then(more), done.clone()];
    let plain = Manifest::bare(Adapter::Acp);
    let titled = named("gemini");
    for (manifest, updates, expected) in [
        (&plain, vec![says(json!({"type": "text", "text": ["deleted"]}))], vec!["line"]),
        (&plain, exits(json!(2)), vec![]),
        (&plain, exits(json!(null)), vec![]),
        (&plain, exits(json!("SIGKILL")), vec!["outcome"]),
        (&plain, exits(json!("2.0")), vec!["outcome"]),
        (&plain, exits(json!(2.5)), vec!["outcome"]),
        (&plain, exits(json!(true)), vec!["outcome"]),
        (&plain, runs(json!({"status": "completed", "content": [{"type": "ansi", "text": "FAILED"}]})), vec!["line"]),
        (&plain, becomes("edit", json!({"locations": [{"path": "/w/a"}, {"path": "/w/b"}]})), vec![]),
        (&plain, becomes("edit", json!({"locations": [{"path": "/w/a"}, {"uri": "file:///w/b"}]})), vec!["line"]),
        (&plain, becomes("edit", json!({"content": [{"type": "diff", "newText": "x"}]})), vec!["line"]),
        (&plain, becomes("fetch", json!({"kind": "read"})), vec!["call"]),
        (&plain, becomes("delete", json!({"kind": "edit"})), vec!["call"]),
        (&plain, becomes("other", json!({"kind": "edit"})), vec![]),
        (&plain, becomes("edit", json!({"kind": "delete"})), vec![]),
        (
            &plain,
            vec![
                call("other", "x", json!({"rawInput": {"to": "prod"}})),
                then(json!({"rawInput": {"to": "dev"}})),
                done.clone(),
            ],
            vec!["call"],
        ),
        (
            &plain,
            vec![
                call("other", "x", json!({"rawInput": {"text": "hello wor…"}})),
                then(json!({"rawInput": {"text": "hello world"}})),
                done.clone(),
            ],
            vec![],
        ),
        (
            &titled,
            vec![call("execute", "rm -rf src", json!({})), then(json!({"title": "ls"})), done.clone()],
            vec!["call"],
        ),
        (&titled, vec![call("execute", "ls", json!({})), then(json!({"title": "ls -l"})), done.clone()], vec![]),
        (
            &titled,
            vec![call("execute", "npm te...", json!({})), then(json!({"title": "npm test"})), done.clone()],
            vec![],
        ),
        (
            &titled,
            vec![call("execute", "npm test [in /w]", json!({})), then(json!({"title": "npm test"})), done.clone()],
            vec![],
        ),
        (&plain, vec![call("execute", "List", json!({})), then(json!({"title": "Listed"})), done.clone()], vec![]),
    ] {
        let events = acp(manifest, &updates);
        assert_eq!(lost(&events).into_iter().collect::<Vec<_>>(), expected, "{updates:#?}\n{events:#?}");
    }
}

#[test]
fn a_call_whose_exit_code_cannot_be_read_keeps_its_output_and_is_unfinished() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "a", "kind": "execute", "title": "make"});
    let ended = json!({"sessionUpdate": "tool_call_update", "toolCallId": "a", "status": "completed",
                       "rawOutput": {"exit_code": "SIGKILL", "stdout": "half"}});
    let events = acp(&Manifest::bare(Adapter::Acp), &[call, ended]);
    let ended = events.iter().find(|event| event["type"] == "tool_result").unwrap();
    assert_eq!((&ended["status"], ended["output"].as_str()), (&json!("unfinished"), Some("half")), "{ended}");
}

const RULES: &str = "name: mine
adapter: json-stream
command: [mine, '{prompt}']
tool-kinds: {sh: execute, put: edit}
stream:
  - {when: line.k == 'msg', emit: {message: {text: line.text}}}
  - {when: line.k == 'call', emit: {tool-call: {id: line.id, name: line.name, input: line.input, locations: line.locs}}}
  - {when: line.k == 'piece', emit: {tool-call: {id: line.id, name: line.name, input-delta: line.text}}}
  - {when: line.k == 'res', emit: {tool-result: {id: line.id, output: line.out, exit-code: line.code, diffs: line.diffs}}}
  - {when: line.k == 'ask', emit: {permission-request: {request: line.r, id: line.id, options: line.options}}}
  - {when: line.k == 'answer', emit: {permission-response: {request: line.r, outcome: line.outcome}}}
  - {when: line.k == 'each', for-each: line.items, rules: [{when: it.t == 'a', emit: {message: {text: it.text}}}]}
  - {when: line.k == 'end', emit: {stop: {reason: \"'end_turn'\"}}}
";

#[test]
fn streams_of_a_manifest() {
    let manifest: Manifest = evals::internal::yaml::parse("mine.yaml".as_ref(), RULES).unwrap();
    let call = |id: &str, command: &str| json!({"k": "call", "id": id, "name": "sh", "input": {"command": command}});
    let put = json!({"k": "call", "id": "a", "name": "put", "input": {"path": "/w/a"}});
    let ends = |more: Value| {
        let mut line = json!({"k": "res", "id": "a"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    let ask = json!({"k": "ask", "r": "1", "id": "a", "options": []});
    let answer = |outcome: &str| json!({"k": "answer", "r": "1", "outcome": outcome});
    for (lines, expected) in [
        (vec![json!({"k": "msg", "text": ["deleted"]})], vec!["line"]),
        (vec![json!({"k": "msg", "content": "deleted"})], vec!["line"]),
        (vec![json!({"k": "msg", "text": ""})], vec![]),
        (vec![json!({"k": "each", "items": {"t": "a"}})], vec!["line"]),
        (vec![json!({"k": "each", "items": [{"t": "call", "name": "sh", "input": {"command": "rm"}}]})], vec!["line"]),
        (vec![json!({"k": "each", "items": [{"t": "pause"}]})], vec!["line"]),
        (vec![json!({"k": "each", "items": [{"type": "pause", "seconds": 3}]})], vec![]),
        (vec![call("a", "ls"), ends(json!({"code": 0}))], vec![]),
        (vec![call("a", "ls"), ends(json!({"code": "SIGKILL"}))], vec!["outcome"]),
        (vec![call("a", "ls"), ends(json!({"code": 2.5}))], vec!["outcome"]),
        (vec![call("a", "ls"), ends(json!({"out": ["FAILED"]}))], vec!["line"]),
        (vec![call("a", "ls"), ends(json!({"code": 0})), ends(json!({"code": 0}))], vec![]),
        (vec![call("a", "ls"), ends(json!({"code": 0})), ends(json!({"code": 1}))], vec!["outcome"]),
        (vec![call("a", "ls"), ends(json!({"out": "x"})), ends(json!({"out": "FAILED"}))], vec!["outcome"]),
        (vec![put.clone(), ends(json!({})), ends(json!({"diffs": [{"path": "/w/b", "new": "x"}]}))], vec!["line"]),
        (vec![put, ends(json!({"diffs": [{"path": "/w/a", "new": "x"}, {"file": "/w/b", "new": "x"}]}))], vec!["line"]),
        (
            vec![json!({"k": "call", "id": "a", "name": "put", "locs": ["/w/a", {"uri": "/w/b"}]}), ends(json!({}))],
            vec!["line"],
        ),
        (vec![ask.clone()], vec!["call"]),
        (vec![ask.clone(), call("a", "ls"), ends(json!({}))], vec![]),
        (vec![call("a", "ls"), ask.clone(), answer("denied"), ends(json!({}))], vec!["line"]),
        (vec![call("a", "ls"), ask.clone(), answer("allowed"), answer("allowed"), ends(json!({}))], vec![]),
        (vec![call("a", "ls"), ask, answer("allowed"), answer("rejected"), ends(json!({}))], vec!["line"]),
        (
            vec![
                json!({"k": "piece", "id": "a", "name": "sh", "text": "{\"command\":\"rm -rf src\"}"}),
                call("a", "ls"),
                ends(json!({})),
            ],
            vec!["call"],
        ),
        (
            vec![
                json!({"k": "piece", "id": "a", "name": "sh", "text": "{\"command\":\"ls\"}"}),
                call("a", "ls"),
                ends(json!({})),
            ],
            vec![],
        ),
    ] {
        let all = [&lines[..], &[json!({"k": "end"})]].concat();
        let events = events(Adapter::JsonStream, &manifest, &all);
        assert_eq!(lost(&events).into_iter().collect::<Vec<_>>(), expected, "{lines:#?}\n{events:#?}");
    }
}
