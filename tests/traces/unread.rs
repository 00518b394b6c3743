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
    let mut events = Vec::new();
    let header = import(adapter, manifest, true, text.join("\n").as_bytes(), |event| write_event(&mut events, &event));
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
        (vec![result(json!({"permission_denials": [{"tool_name": "Write", "tool_input": {}}]}))], vec!["line"]),
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
    events(Adapter::Acp, manifest, &lines)
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
