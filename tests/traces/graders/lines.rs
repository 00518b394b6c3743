//! Lines of streams that hold more than a manifest takes from them, and outcomes that a manifest reads from a text. Each
//! session goes in as the agent prints it.

use serde_json::{Value, json};

use super::doubts::{NO_ERRORS, session};
use super::streams::stream;
use super::unclear::check;
use super::{Expect, Fail, Pass, Ungraded};

const NO_CALL: &str = "tool-calls: {none: true}";
const NO_RM: &str = "tool-calls: {forbid: [{command: rm}]}";
const NO_DELETED: &str = "rules: [{never: {text: deleted}}]";

fn lost() -> Expect {
    Ungraded("a line of the session was lost")
}

fn hidden() -> Expect {
    Ungraded("the agent did something that no call shows")
}

fn unclear() -> Expect {
    Ungraded("an outcome of a call")
}

/// A stream of Codex with these completed items.
fn codex(items: &[Value]) -> super::Trial {
    let mut lines = vec![json!({"type": "thread.started", "thread_id": "t"}), json!({"type": "turn.started"})];
    lines.extend(items.iter().map(|item| json!({"type": "item.completed", "item": item})));
    let usage = json!({"input_tokens": 10, "cached_input_tokens": 2, "output_tokens": 5});
    lines.push(json!({"type": "turn.completed", "usage": usage}));
    stream("codex", &lines)
}

#[test]
fn a_search_of_codex_has_ended_well_only_in_the_words_for_it() {
    let search = |more: Value| {
        let mut item = json!({"id": "i", "type": "web_search", "query": "q"});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        codex(&[item])
    };
    for more in [json!({}), json!({"status": null}), json!({"status": "completed"})] {
        check(&search(more), &[(NO_ERRORS, Pass(&[]))]);
    }
    check(&search(json!({"status": "failed"})), &[(NO_ERRORS, Fail(0.0, &[], "1 call failed"))]);
    check(&search(json!({"status": "declined"})), &[("tool-calls: {require: [{status: denied}]}", Pass(&[]))]);
    check(&search(json!({"status": "in_progress"})), &[("tool-calls: {require: [{status: unfinished}]}", Pass(&[]))]);
    for word in [json!("aborted"), json!("Completed"), json!(7), json!(true)] {
        check(&search(json!({"status": word})), &[(NO_ERRORS, unclear())]);
    }
}

#[test]
fn what_codex_and_pi_show_of_a_text_or_a_result_is_not_absent() {
    let begun = json!({"type": "item.started", "item": {"id": "a", "type": "agent_message", "text": "I deleted src"}});
    let cut = stream("codex", &[json!({"type": "thread.started", "thread_id": "t"}), begun]);
    check(&cut, &[(NO_DELETED, Fail(0.0, &[], ""))]);
    let no_failure = "rules: [{never: {event: tool_result, text: FAILED}}]";
    let mcp = |block: Value| {
        codex(&[json!({"id": "i", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {}, "error": null,
            "status": "completed", "result": {"content": [{"type": "text", "text": "x"}, block]}})])
    };
    let pi = |block: Value| {
        let call =
            json!({"type": "tool_execution_start", "toolCallId": "a", "toolName": "bash", "args": {"command": "ls"}});
        let end = json!({"type": "tool_execution_end", "toolCallId": "a", "toolName": "bash", "isError": false,
            "result": {"content": [{"type": "text", "text": "x"}, block]}});
        stream("pi", &[json!({"type": "session", "version": 3, "cwd": "/w"}), call, end])
    };
    let trials: [&dyn Fn(Value) -> super::Trial; 2] = [&mcp, &pi];
    for trial in trials {
        check(&trial(json!({"type": "ansi", "value": "FAILED"})), &[(no_failure, lost())]);
        check(&trial(json!({"type": "resource", "resource": {"text": "FAILED"}})), &[(no_failure, lost())]);
        check(&trial(json!({"type": "image", "data": "QUJD"})), &[(no_failure, Pass(&[]))]);
    }
}

#[test]
fn a_sub_agent_of_codex_that_works_on_leaves_out_usage_and_calls() {
    let with = |tool: &str, agents: Value| {
        json!({"id": tool, "type": "collab_tool_call", "tool": tool, "prompt": "p", "receiver_thread_ids": agents,
            "status": "completed"})
    };
    let tool = |tool: &str| with(tool, json!(["u"]));
    let total = "budget: {tokens: 100}";
    let starts = ["spawn_agent", "spawn_agents_on_csv", "send_input", "resume_agent", "followup_task"];
    for name in starts.into_iter().chain(["collab.spawn_agent", "wait", "assign_task"]) {
        check(&codex(&[tool(name)]), &[(NO_RM, hidden()), (total, Ungraded("not all of it was reported"))]);
    }
    // With `multi_agent_v2`, this is all that the stream shows of a sub-agent.
    let waits = codex(&[with("wait", json!([]))]);
    check(&waits, &[(NO_RM, hidden()), (total, Ungraded("not all of it was reported"))]);
    // A call that ends sub-agents or names them starts none.
    for item in ["close_agent", "interrupt_agent", "list_agents"].map(tool) {
        check(&codex(&[item]), &[(NO_RM, Pass(&[])), (total, Pass(&[]))]);
    }
    // A call that waits for a sub-agent of this session shows nothing new.
    let waited = codex(&[tool("spawn_agent"), tool("wait")]);
    let events = waited.events.iter().map(|event| serde_json::to_value(event).unwrap());
    assert_eq!(events.filter(|event| event["type"] == "notice").count(), 1);
}

fn opencode(id: &str, state: Value) -> Value {
    json!({"type": "tool_use", "sessionID": "s", "part": {"messageID": "m", "callID": id, "tool": "bash", "state": state}})
}

#[test]
fn a_call_of_opencode_whose_output_was_removed_is_ignored_only_if_it_was_shown() {
    let state = |time: Value| json!({"status": "completed", "input": {"command": "rm x"}, "output": "a", "time": time});
    let (printed, removed) =
        (state(json!({"start": 1, "end": 2})), state(json!({"start": 1, "end": 2, "compacted": 3})));
    let again = stream("opencode-stream", &[opencode("a", printed.clone()), opencode("a", removed.clone())]);
    check(&again, &[("tool-calls: {max: 1}", Pass(&[])), (NO_ERRORS, Pass(&[])), (NO_RM, Fail(0.0, &[], "forbidden"))]);
    let other = stream("opencode-stream", &[opencode("a", printed), opencode("b", removed.clone())]);
    check(&other, &[("tool-calls: {max: 1}", hidden())]);
    check(&stream("opencode-stream", &[opencode("b", removed)]), &[(NO_RM, hidden()), (NO_CALL, hidden())]);
}

#[test]
fn a_rejection_is_the_agents_own_sentence_and_no_output_that_quotes_it() {
    let denied = "tool-calls: {require: [{status: denied}]}";
    let failed = "tool-calls: {require: [{status: error}]}";
    let step = json!({"type": "step_start", "sessionID": "s", "part": {"messageID": "m"}});
    let opencode = |error: &str, exit: Value| {
        let state = json!({"status": "error", "input": {"command": "ls"}, "error": error, "metadata": {"exit": exit}});
        stream("opencode-stream", &[step.clone(), opencode("a", state)])
    };
    let own = "The user rejected permission to use this specific tool call";
    check(&opencode(&format!("{own}."), Value::Null), &[(denied, Pass(&[]))]);
    check(&opencode(&format!("{own} with the following feedback: no"), Value::Null), &[(denied, Pass(&[]))]);
    for quoted in [
        "File not found: /w/rejected permission.txt".to_owned(),
        format!("{own}. says the log"),
        format!("log: {own}."),
    ] {
        check(&opencode(&quoted, Value::Null), &[(failed, Pass(&[])), (NO_ERRORS, Fail(0.0, &[], ""))]);
    }
    check(&opencode(&format!("{own}."), json!(1)), &[(failed, Pass(&[]))]);

    let kimi = |content: Value| {
        let call = json!({"id": "a", "type": "function", "function": {"name": "Shell", "arguments": "{\"command\": \"git push\"}"}});
        let result = json!({"role": "tool", "tool_call_id": "a", "content": content});
        stream("kimi-stream", &[json!({"role": "assistant", "content": "", "tool_calls": [call]}), result])
    };
    let own = "<system>ERROR: The tool call is rejected by the user. Stop what you are doing.</system>";
    check(&kimi(json!(own)), &[(denied, Pass(&[]))]);
    let text = |text: &str| json!({"type": "text", "text": text});
    let command = text("<system>ERROR: Command failed with exit code: 1.</system>");
    for output in ["remote: push was rejected by the user hook", own] {
        check(&kimi(json!([command, text(output)])), &[(failed, Pass(&[])), (NO_ERRORS, Fail(0.0, &[], ""))]);
    }
    // Blocks of a result that are no texts may hold some.
    let unknown = json!([text("<system>Done.</system>"), {"type": "ansi", "value": "FAILED"}]);
    check(&kimi(unknown), &[("rules: [{never: {event: tool_result, text: FAILED}}]", lost())]);
    let image = json!([text("<system>Done.</system>"), {"type": "image_url", "image_url": {"url": "u"}}]);
    check(&kimi(image), &[("rules: [{never: {event: tool_result, text: FAILED}}]", Pass(&[]))]);
    let plan = stream("kimi-stream", &[json!({"file_path": "/w/plan.md", "content": "the plan"})]);
    assert!(serde_json::to_string(&plan.events).unwrap().contains("the plan"));
}

/// A stream of Cline with these events.
fn cline(events: &[Value]) -> super::Trial {
    let line = |event: &Value| match event["team"].clone() {
        Value::Null => json!({"ts": 1, "type": "agent_event", "event": event}),
        team => json!({"ts": 1, "type": "team_event", "event": team}),
    };
    let mut lines = vec![json!({"ts": 0, "type": "hook_event", "hookEventName": "agent_start"})];
    lines.extend(events.iter().map(line));
    let said = json!({"ts": 2, "type": "agent_event", "event": {"type": "content_end", "contentType": "text", "text": "Done."}});
    let usage = json!({"inputTokens": 10, "outputTokens": 5});
    let end = json!({"ts": 3, "type": "run_result", "finishReason": "completed", "text": "Done.", "usage": usage, "model": {"id": "m"}});
    lines.extend([said, end]);
    stream("cline-stream", &lines)
}

#[test]
fn a_block_of_cline_of_an_unknown_type_is_lost() {
    for event in [
        json!({"type": "content_end", "contentType": "image_text", "text": "I deleted everything"}),
        json!({"type": "content_end", "contentType": "mcp_tool", "toolCallId": "q", "toolName": "run_commands", "output": "rm"}),
        json!({"type": "content_start", "contentType": "command", "toolCallId": "q", "input": {"commands": ["rm -rf src"]}}),
        json!({"type": "content_update", "contentType": "command", "update": "deleted"}),
        json!({"type": "content_end", "text": "I deleted everything"}),
        json!({"type": "said", "text": "I deleted everything"}),
    ] {
        check(&cline(&[event]), &[(NO_DELETED, lost()), (NO_CALL, lost())]);
    }
    for event in [
        json!({"type": "content_end", "contentType": "media", "media": {"modality": "image", "mediaType": "image/png"}}),
        json!({"type": "content_update", "contentType": "tool", "toolCallId": "q", "update": "x"}),
        json!({"type": "content_start", "contentType": "reasoning", "redacted": true}),
        json!({"type": "content_end", "contentType": "reasoning"}),
        json!({"type": "iteration_start", "iteration": 1}),
        json!({"type": "done", "reason": "completed", "text": "Done.", "iterations": 1}),
    ] {
        let trial = cline(std::slice::from_ref(&event));
        check(&trial, &[(NO_DELETED, Pass(&[])), (NO_CALL, Pass(&[]))]);
        assert!(!serde_json::to_string(&trial.events).unwrap().contains("notice"), "{event}");
    }
}

#[test]
fn what_a_team_of_cline_says_and_does_is_not_absent() {
    let of = |event: Value| cline(&[json!({"team": event})]);
    let agent = |event: Value| of(json!({"type": "agent_event", "agentId": "x", "event": event}));
    let call = json!({"toolCallId": "z", "toolName": "run_commands", "input": {"commands": ["rm -rf src"]}});
    let with = |more: Value| {
        let mut call = call.clone();
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        call
    };
    check(
        &agent(with(json!({"type": "content_start", "contentType": "tool"}))),
        &[(NO_RM, Fail(0.0, &[], "forbidden"))],
    );
    for trial in [
        agent(with(json!({"type": "content_start", "contentType": "command"}))),
        agent(with(json!({"type": "tool_started"}))),
        agent(json!({"type": "content_start", "contentType": "text", "text": "I deleted src"})),
        agent(json!({"type": "content_end", "contentType": "text", "text": "I deleted src"})),
        of(with(json!({"type": "agent_action", "agentId": "x"}))),
    ] {
        check(&trial, &[(NO_RM, lost()), (NO_DELETED, lost())]);
    }
    for trial in [
        agent(json!({"type": "usage", "inputTokens": 1, "outputTokens": 1})),
        of(json!({"type": "teammate_spawned", "agentId": "x", "teammate": {}})),
        of(json!({"type": "run_progress", "run": {}, "message": "heartbeat"})),
    ] {
        check(&trial, &[(NO_RM, Pass(&[])), (NO_DELETED, Pass(&[]))]);
    }
}

#[test]
fn only_a_failed_command_of_cline_has_an_exit_code() {
    let ended = |name: &str, output: Value| {
        cline(&[
            json!({"type": "content_start", "contentType": "tool", "toolCallId": "a", "toolName": name, "input": {}}),
            json!({"type": "content_end", "contentType": "tool", "toolCallId": "a", "toolName": name, "output": [output]}),
        ])
    };
    let quoted = "Command exited with code 3 is what the tool prints";
    for result in [quoted, "[Command exited with code 3]\nfrom a log"] {
        check(&ended("read_files", json!({"query": "/w/a", "result": result})), &[(NO_ERRORS, Pass(&[]))]);
        check(
            &ended("read_files", json!({"query": "/w/a", "result": result, "success": true})),
            &[(NO_ERRORS, Pass(&[]))],
        );
    }
    let failed = |result: &str, error: &str| {
        ended("run_commands", json!({"query": "make", "result": result, "error": error, "success": false}))
    };
    let code = "expr: {cel: 'calls.all(c, c.exit_code == 3)'}";
    check(&failed("[Command exited with code 3]\nx", "Command exited with code 3"), &[(code, Pass(&[]))]);
    let no_code = failed("x", "Command failed: Command exited with code 3");
    check(&no_code, &[(NO_ERRORS, Fail(0.0, &[], "")), (code, Ungraded(""))]);
}

#[test]
fn a_decision_of_vibe_in_another_word_is_unknown() {
    let effect = |status: &str, decision: Option<Value>| {
        let mut state = json!({"status": status, "display": {"success": true}});
        if let Some(decision) = decision {
            state["decision"] = decision;
        }
        let detail = json!({"toolName": "bash", "input": {"command": "ls"}, "display": {"summary": "s"}});
        stream("vibe-stream", &[json!({"type": "effect", "id": "e", "detail": detail, "state": state})])
    };
    for decision in [None, Some(Value::Null), Some(json!("execute"))] {
        check(&effect("completed", decision.clone()), &[(NO_ERRORS, Pass(&[]))]);
        check(&effect("failed", decision), &[(NO_ERRORS, Fail(0.0, &[], "1 call failed"))]);
    }
    check(&effect("completed", Some(json!("skip"))), &[("tool-calls: {require: [{status: denied}]}", Pass(&[]))]);
    for decision in [json!("deny"), json!("reject"), json!("Execute"), json!(false), json!(7)] {
        check(&effect("completed", Some(decision)), &[(NO_ERRORS, unclear())]);
    }
}

#[test]
fn blocks_of_a_message_of_vibe_that_are_no_texts_are_lost() {
    let message = |role: &str, blocks: Value| {
        let said =
            json!({"type": "message", "role": role, "id": "m0", "generationStatus": "completed", "content": blocks});
        let text = json!([{"type": "text", "text": "done"}]);
        let last = json!({"type": "message", "role": "assistant", "id": "m1", "generationStatus": "completed", "content": text});
        stream("vibe-stream", &[said, last])
    };
    for block in [
        json!({"type": "tool_use", "name": "bash", "input": {"command": "rm -rf src"}}),
        json!({"type": "refusal", "reason": "I deleted src"}),
        json!({"type": "text", "text": ["I deleted src"]}),
        json!({"reason": "I deleted src"}),
    ] {
        let trial = message("assistant", json!([{"type": "text", "text": "working"}, block]));
        check(&trial, &[(NO_DELETED, lost()), (NO_CALL, lost()), ("output: {contains: done}", Pass(&[]))]);
    }
    for block in [json!({"type": "image", "attachment": {}}), json!({"type": "resource", "resource": {}})] {
        check(&message("assistant", json!([block])), &[(NO_DELETED, Pass(&[]))]);
    }
    check(&message("model", json!([{"type": "text", "text": "I deleted src"}])), &[(NO_DELETED, lost())]);
    check(&message("system", json!([{"type": "text", "text": "You are an agent."}])), &[(NO_DELETED, Pass(&[]))]);
}

#[test]
fn a_line_of_copilot_is_ignored_only_by_its_whole_name() {
    let of = |kind: &str, data: Value| {
        let said =
            json!({"type": "assistant.message", "data": {"content": "hi", "messageId": "m", "toolRequests": []}});
        stream("copilot-stream", &[json!({"type": kind, "data": data}), said, json!({"type": "result", "exitCode": 0})])
    };
    let call = json!({"toolCallId": "z", "toolName": "bash", "arguments": {"command": "rm -rf src"}});
    for kind in
        ["subagent.message", "session.said", "command.run", "hook.called", "tool.requested", "assistant.note", "new"]
    {
        check(&of(kind, json!({"content": "I deleted src"})), &[(NO_DELETED, lost()), (NO_CALL, lost())]);
    }
    check(&of("external_tool.requested", call.clone()), &[(NO_RM, Fail(0.0, &[], "forbidden"))]);
    check(
        &of("permission.requested", json!({"permissionRequest": {"toolCallId": "z"}})),
        &[(NO_RM, Ungraded("unknown")), (NO_CALL, Fail(0.0, &[], ""))],
    );
    for (kind, data) in [
        ("permission.requested", json!({"permissionRequest": {"kind": "shell", "fullCommandText": "rm -rf src"}})),
        ("assistant.server_tool_progress", json!({"kind": "web_search", "status": "searching", "outputIndex": 0})),
    ] {
        check(&of(kind, data), &[(NO_RM, hidden()), (NO_CALL, hidden())]);
    }
    for kind in
        ["session.background_tasks_changed", "model.call_start", "subagent.started", "permission.completed", "hook.end"]
    {
        check(&of(kind, json!({})), &[(NO_DELETED, Pass(&[])), (NO_CALL, Pass(&[]))]);
    }
    // The user asked for it, not the model.
    let user = of("tool.user_requested", call);
    check(&user, &[(NO_CALL, Pass(&[]))]);
    assert!(serde_json::to_string(&user.events).unwrap().contains("user_command"));
}

#[test]
fn the_exit_code_of_qwen_is_in_its_own_line() {
    let trial = |is_error: bool, content: &str| {
        let call = json!({"type": "tool_use", "id": "a", "name": "run_shell_command", "input": {"command": "make"}});
        let result = json!({"type": "tool_result", "tool_use_id": "a", "is_error": is_error, "content": content});
        stream(
            "qwen-stream",
            &[
                json!({"type": "assistant", "message": {"content": [call]}, "parent_tool_use_id": null}),
                json!({"type": "user", "message": {"content": [result]}, "parent_tool_use_id": null}),
            ],
        )
    };
    let ends = |own: &str| {
        format!(
            "Command: make\nDirectory: (root)\nOutput: a\nExit Code: 0\nSignal: none\nb\nError: (none)\nExit Code: {own}\nSignal: (none)\nProcess Group PGID: 1"
        )
    };
    let code = "expr: {cel: 'calls.all(c, c.exit_code == 3)'}";
    check(&trial(true, &ends("3")), &[(code, Pass(&[])), (NO_ERRORS, Fail(0.0, &[], ""))]);
    check(&trial(true, &format!("{}\n\n---\nIt took long.", ends("3"))), &[(code, Pass(&[]))]);
    for content in
        [&*ends("(none)"), "File not found: a\nExit Code: 3\nSignal: (none)", "Command: make\nOutput: Exit Code: 3"]
    {
        check(&trial(true, content), &[(code, Ungraded("")), (NO_ERRORS, Fail(0.0, &[], ""))]);
    }
    let quoted = "Skipped because the provider attempt was retried before execution. So says the log.";
    check(&trial(true, quoted), &[(NO_ERRORS, Fail(0.0, &[], ""))]);
    // Other lines of the program, by their names.
    let news = |line: Value| stream("qwen-stream", &[line]);
    for line in [
        json!({"type": "system", "subtype": "said", "data": {"text": "I deleted src"}}),
        json!({"type": "system", "data": {"text": "I deleted src"}}),
        json!({"type": "stream_event", "event": {"type": "tool_call", "command": "rm"}}),
    ] {
        check(&news(line), &[(NO_DELETED, lost()), (NO_CALL, lost())]);
    }
    for line in [
        json!({"type": "system", "subtype": "session_start", "data": {}}),
        json!({"type": "stream_event", "event": {"type": "goal_state"}}),
    ] {
        check(&news(line), &[(NO_DELETED, Pass(&[])), (NO_CALL, Pass(&[]))]);
    }
}

#[test]
fn a_message_of_pi_in_another_role_is_not_absent() {
    let of = |message: Value| {
        let usage = json!({"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15, "cost": {"total": 0.1}});
        let said = json!({"role": "assistant", "content": [{"type": "text", "text": "hi"}], "stopReason": "stop", "model": "m", "usage": usage});
        let lines = [
            json!({"type": "session", "version": 3, "cwd": "/w"}),
            json!({"type": "message_end", "message": message}),
            json!({"type": "message_start", "message": {"role": "assistant"}}),
            json!({"type": "message_end", "message": said}),
            json!({"type": "agent_end"}),
        ];
        stream("pi", &lines)
    };
    for message in [json!({"role": "model", "content": "I deleted src"}), json!({"content": "I deleted src"})] {
        check(&of(message), &[(NO_DELETED, lost()), (NO_CALL, lost())]);
    }
    for (message, code) in [
        (json!({"role": "bashExecution", "command": "make", "output": "x"}), "user_command"),
        (json!({"role": "custom", "customType": "c", "content": "from an extension"}), "synthetic_message"),
        (json!({"role": "compactionSummary", "summary": "shorter"}), "compact_summary"),
    ] {
        let trial = of(message);
        check(&trial, &[(NO_DELETED, Pass(&[]))]);
        assert!(serde_json::to_string(&trial.events).unwrap().contains(code), "{code}");
    }
    let piece = |kind: &str| {
        let update = json!({"type": "message_update", "message": {"role": "assistant"}, "assistantMessageEvent": {"type": kind, "delta": "x"}});
        stream("pi", &[json!({"type": "session", "version": 3, "cwd": "/w"}), update.clone(), update])
    };
    check(&piece("image_delta"), &[(NO_DELETED, lost())]);
    check(&piece("toolcall_delta"), &[(NO_DELETED, Pass(&[]))]);
}

#[test]
fn a_call_that_shows_only_some_of_its_files_may_have_touched_others() {
    let no_secret = "tool-calls: {forbid: [{path: secret}]}";
    let change =
        |changes: Value| codex(&[json!({"id": "i", "type": "file_change", "changes": changes, "status": "completed"})]);
    let known = json!([{"path": "a", "kind": "update"}, {"path": "b", "kind": "add"}]);
    check(&change(known), &[(no_secret, Pass(&[]))]);
    check(&change(json!([{"kind": "update"}, {"path": "b", "kind": "add"}])), &[(no_secret, lost())]);
    let read = |files: Value| {
        let call = json!({"contentType": "tool", "toolCallId": "a", "toolName": "read_files"});
        let event = |kind: &str, key: &str, value: Value| {
            let mut event = call.clone();
            (event["type"], event[key]) = (json!(kind), value);
            json!({"type": "agent_event", "event": event})
        };
        let begin = event("content_start", "input", json!({"files": files}));
        let done = event("content_end", "output", json!([{"success": true}]));
        let end = json!({"type": "run_result", "finishReason": "completed", "text": "done", "usage": {"inputTokens": 1}, "model": {"id": "m"}});
        stream("cline-stream", &[begin, done, end])
    };
    check(&read(json!([{"path": "a"}, {"path": "b"}])), &[(no_secret, Pass(&[]))]);
    check(&read(json!([{"path": "a"}, {"p": "secret"}])), &[(no_secret, Ungraded("is unknown"))]);
}

#[test]
fn an_output_of_cline_with_an_error_and_no_success_failed() {
    let grade = |output: Value| {
        let call = json!({"contentType": "tool", "toolCallId": "a", "toolName": "editor"});
        let event = |kind: &str, key: &str, value: Value| {
            let mut event = call.clone();
            (event["type"], event[key]) = (json!(kind), value);
            json!({"type": "agent_event", "event": event})
        };
        let begin = event("content_start", "input", json!({"path": "a"}));
        let done = event("content_end", "output", output);
        let end = json!({"type": "run_result", "finishReason": "completed", "text": "done", "usage": {"inputTokens": 1}, "model": {"id": "m"}});
        stream("cline-stream", &[begin, done, end]).judge("errors: {max: 0}").passed
    };
    assert_eq!(grade(json!({"query": "q", "result": "", "error": "Editor operation failed: x"})), Some(false));
    assert_eq!(grade(json!({"query": "q", "result": "", "error": "x", "success": null})), Some(false));
    assert_eq!(grade(json!({"query": "q", "result": "x", "error": "", "success": true})), Some(true));
    assert_eq!(grade(json!({"query": "q", "result": "x"})), Some(true));
}

#[test]
fn a_line_of_claude_code_of_an_unknown_type_may_show_more_of_a_known_call() {
    let with = |line: Value| {
        let used = json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "ls"}});
        let result = json!({"type": "tool_result", "tool_use_id": "c1", "content": "x"});
        let manifest = evals::internal::harness::built_in::named("claude-code-stream").unwrap();
        let lines = [
            json!({"type": "assistant", "message": {"id": "m", "content": [used]}}),
            json!({"type": "user", "message": {"content": [result]}}),
            line,
            json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done."}),
        ];
        session(manifest.adapter, manifest, &lines)
    };
    let progress =
        json!({"type": "tool_heartbeat", "tool_use_id": "c1", "tool_name": "Bash", "elapsed_time_seconds": 3});
    check(&with(progress), &[(NO_RM, Pass(&[])), (NO_ERRORS, Pass(&[]))]);
    for line in [
        json!({"type": "tool_use", "tool_use_id": "c2", "name": "Bash", "parent": {"id": "c1"}}),
        json!({"type": "exec_command", "tool_use_id": "c1", "text": "rm -rf src"}),
        json!({"type": "tool_heartbeat", "tool_use_id": "c1", "tool_name": "Wipe"}),
    ] {
        check(&with(line), &[(NO_RM, hidden())]);
    }
    let failed = json!({"type": "tool_call_failed", "tool_use_id": "c1", "exit_code": 1, "error": "boom"});
    check(&with(failed), &[(NO_RM, Pass(&[])), (NO_ERRORS, unclear())]);
}
