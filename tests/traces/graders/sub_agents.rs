//! Sub-agents that an agent does not show may have done anything, so no grader passes because a call is absent.

use evals::internal::harness::{Adapter, Manifest, built_in};
use serde_json::{Value, json};

use super::doubts::{NO_RM, session};
use super::streams::stream;
use super::{Fail, Pass, Trial, Ungraded, check};

const UNSEEN: &str = "the agent did something that no call shows";

/// A call and its result in a stream of Gemini CLI.
fn gemini(tool: &str, input: &Value) -> Trial {
    let called = json!({"type": "tool_use", "tool_name": tool, "tool_id": "c", "parameters": input});
    stream(
        "gemini-stream",
        &[called, json!({"type": "tool_result", "tool_id": "c", "status": "success", "output": "done"})],
    )
}

/// An entry of a stream of Mistral Vibe for a call that has completed.
fn vibe(tool: &str) -> Trial {
    let detail =
        json!({"toolName": tool, "display": {"summary": tool}, "kind": "subagent", "input": {"task": "clean"}});
    let line = json!({"id": "e", "sessionId": "s", "turnId": "t", "generationStatus": "completed", "type": "effect",
        "detail": detail, "state": {"status": "completed", "display": {"success": true}}});
    stream("vibe-stream", &[line])
}

/// A call in a stream of Qwen Code, these lines, and its result.
fn qwen(tool: &str, between: &[Value]) -> Trial {
    let block = |kind: &str, parent: Value, block: Value| json!({"type": kind, "parent_tool_use_id": parent, "message": {"content": [block]}});
    let mut lines = vec![block(
        "assistant",
        Value::Null,
        json!({"type": "tool_use", "id": "c", "name": tool, "input": {"prompt": "clean"}}),
    )];
    lines.extend(between.iter().map(|part| {
        let kind = if part["type"] == "tool_use" { "assistant" } else { "user" };
        block(kind, json!("c"), part.clone())
    }));
    lines.push(block("user", Value::Null, json!({"type": "tool_result", "tool_use_id": "c", "content": "done"})));
    stream("qwen-stream", &lines)
}

/// A call and its result in a stream of Cline, and these lines after them.
fn cline(tool: &str, after: &[Value]) -> Trial {
    let event = |more: Value| json!({"type": "agent_event", "ts": 1, "event": more});
    let mut lines = vec![
        event(
            json!({"type": "content_start", "contentType": "tool", "toolCallId": "c", "toolName": tool, "input": {}}),
        ),
        event(json!({"type": "content_end", "contentType": "tool", "toolCallId": "c", "output": "started"})),
    ];
    lines.extend_from_slice(after);
    stream("cline-stream", &lines)
}

#[test]
fn calls_of_a_sub_agent_that_is_not_shown_are_in_doubt() {
    for tool in ["invoke_agent", "codebase_investigator", "delegate_to_agent"] {
        check(
            &gemini(tool, &json!({"prompt": "clean"})),
            &[(NO_RM, Ungraded(UNSEEN)), ("tool-calls: {max: 5}", Ungraded(UNSEEN))],
        );
    }
    check(&gemini("read_file", &json!({"file_path": "a"})), &[(NO_RM, Pass(&[]))]);
    for tool in ["task", "subagent.spawn", "agents.spawn"] {
        check(&vibe(tool), &[(NO_RM, Ungraded(UNSEEN))]);
    }
    for tool in ["agent", "workflow", "exec"] {
        check(&qwen(tool, &[]), &[(NO_RM, Ungraded(UNSEEN))]);
    }
    let task = [
        json!({"type": "tool_call", "id": "c", "toolName": "Task", "parameters": {"prompt": "clean"}}),
        json!({"type": "tool_result", "id": "c", "toolId": "Task", "isError": false, "value": "done"}),
    ];
    check(&stream("droid-stream", &task), &[(NO_RM, Ungraded(UNSEEN))]);
}

#[test]
fn calls_of_a_sub_agent_that_are_shown_are_not_in_doubt() {
    let command = |command: &str| json!({"type": "tool_use", "id": "d", "name": "run_shell_command", "input": {"command": command}});
    let result = json!({"type": "tool_result", "tool_use_id": "d", "content": "ok"});
    check(&qwen("agent", &[command("ls"), result.clone()]), &[(NO_RM, Pass(&[])), ("tool-calls: {max: 2}", Pass(&[]))]);
    check(&qwen("agent", &[command("rm -rf x"), result]), &[(NO_RM, Fail(0.0, &[1, 2], "forbidden"))]);
}

#[test]
fn a_team_that_works_on_after_its_call_is_in_doubt_and_its_calls_count() {
    check(&cline("team_run_task", &[]), &[(NO_RM, Ungraded(UNSEEN))]);
    let event = json!({"type": "content_start", "contentType": "tool", "toolCallId": "d", "toolName": "run_commands",
        "input": {"commands": ["rm -rf x"]}});
    let called =
        json!({"type": "team_event", "ts": 2, "event": {"type": "agent_event", "agentId": "a", "event": event}});
    let news = json!({"type": "team_event", "ts": 2, "event": {"type": "run_started", "run": {}}});
    check(
        &cline("team_run_task", &[news, called]),
        &[("tool-calls: {forbid: [{name: run_commands}]}", Fail(0.0, &[2, 3], "forbidden"))],
    );
}

/// A session over ACP that is prompted, has these updates, and answers.
fn acp(harness: &str, updates: &[Value]) -> Trial {
    let sent = |id: u64, method: &str, params: Value| {
        json!(format!(">{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))
    };
    let answer = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    let mut lines = vec![
        sent(0, "initialize", json!({"protocolVersion": 1})),
        answer(0, json!({})),
        sent(1, "session/new", json!({"cwd": "/w"})),
        answer(1, json!({"sessionId": "s"})),
        sent(2, "session/prompt", json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]})),
    ];
    lines.extend(updates.iter().map(
        |update| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}}),
    ));
    lines.push(answer(2, json!({"stopReason": "end_turn"})));
    session(Adapter::Acp, built_in::named(harness).unwrap(), &lines)
}

#[test]
fn a_sub_agent_without_a_name_is_recognised_by_the_title_of_its_call() {
    let delegated = |harness: &str, title: &str| {
        let begun = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "think", "title": title, "status": "in_progress"});
        acp(harness, &[begun, json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"})])
    };
    check(&delegated("gemini", "Delegating to agent 'generalist'"), &[(NO_RM, Ungraded(UNSEEN))]);
    check(&delegated("gemini", "Update topic"), &[(NO_RM, Pass(&[]))]);
    check(&delegated("goose", "summon: delegate"), &[(NO_RM, Ungraded(UNSEEN))]);
    // A title may report progress later.
    let launched = [
        json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "other", "title": "Launching coder agent: clean", "status": "in_progress"}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "3 steps"}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"}),
    ];
    check(&acp("kimi", &launched), &[(NO_RM, Ungraded(UNSEEN))]);
}

#[test]
fn the_calls_of_a_sub_agent_of_qwen_over_acp_are_those_of_its_call() {
    let call = |id: &str, tool: &str, meta: Value| {
        let mut known = json!({"toolName": tool});
        known.as_object_mut().unwrap().extend(meta.as_object().unwrap().clone());
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": "other", "title": tool, "status": "in_progress", "_meta": known})
    };
    let end = |id: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"});
    let agent = call("c", "agent", json!({}));
    check(&acp("qwen", &[agent.clone(), end("c")]), &[("tool-calls: {max: 2}", Ungraded(UNSEEN))]);
    let inner = call("d", "read_file", json!({"parentToolCallId": "c"}));
    check(&acp("qwen", &[agent, inner, end("d"), end("c")]), &[("tool-calls: {max: 2}", Pass(&[]))]);
}

#[test]
fn a_resumed_session_may_continue_a_sub_agent() {
    let call = |name: &str| {
        let item =
            json!({"id": "i", "type": "collab_tool_call", "tool": name, "prompt": "clean", "status": "completed"});
        stream(
            "codex",
            &[json!({"type": "thread.started", "thread_id": "t"}), json!({"type": "item.completed", "item": item})],
        )
    };
    check(&call("send_input"), &[(NO_RM, Ungraded(UNSEEN))]);
    check(&call("wait"), &[(NO_RM, Ungraded(UNSEEN))]);
    check(&call("close_agent"), &[(NO_RM, Pass(&[]))]);
}

/// A session of Claude Code with one call, these lines after it, and an end with these figures.
fn claude(tool: &str, after: &[Value], end: &Value) -> Trial {
    let mut lines = vec![
        json!({"type": "system", "subtype": "init", "cwd": "/w", "session_id": "s"}),
        json!({"type": "assistant", "message": {"id": "m", "model": "x", "content": [
            {"type": "tool_use", "id": "c", "name": tool, "input": {"prompt": "clean"}}]}}),
    ];
    lines.extend_from_slice(after);
    let mut result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done"});
    result.as_object_mut().unwrap().extend(end.as_object().unwrap().clone());
    lines.push(result);
    session(Adapter::ClaudeCodeStream, &Manifest::bare(Adapter::ClaudeCodeStream), &lines)
}

/// The result of that call, with the program's report about it.
fn returned(told: &Value) -> Value {
    json!({"type": "user", "tool_use_result": told, "message": {"content": [{"type": "tool_result", "tool_use_id": "c", "content": "done"}]}})
}

/// A call of the sub-agent, and its result.
fn inner(id: &str, command: &str) -> [Value; 2] {
    [
        json!({"type": "assistant", "parent_tool_use_id": "c", "message": {"id": format!("m{id}"), "model": "x", "content": [
            {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}]}}),
        json!({"type": "user", "parent_tool_use_id": "c", "message": {"content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]}}),
    ]
}

#[test]
fn a_sub_agent_of_claude_code_that_is_not_shown_is_in_doubt() {
    let told =
        |calls: u64| json!({"status": "completed", "agentId": "a", "totalToolUseCount": calls, "totalTokens": 9000});
    let launched = json!({"isAsync": true, "status": "async_launched", "agentId": "a"});
    let ended = |calls: u64| {
        json!({"type": "system", "subtype": "task_notification", "task_id": "a", "tool_use_id": "c", "status": "completed",
        "usage": {"total_tokens": 9000, "tool_uses": calls}})
    };
    let end = json!({"total_cost_usd": 0.1, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let [called, result] = inner("d", "ls");
    let doubt = || Ungraded(UNSEEN);
    let hidden = [
        vec![returned(&told(7))],
        vec![returned(&launched)],
        vec![returned(&launched), ended(1)],
        vec![returned(&json!("done"))],
        vec![],
        // One of two calls is shown.
        vec![called.clone(), result.clone(), returned(&told(2))],
        vec![returned(&launched), called.clone(), result.clone(), ended(2)],
    ];
    for tool in ["Task", "Agent"] {
        for after in &hidden {
            check(
                &claude(tool, after, &end),
                &[
                    (NO_RM, doubt()),
                    ("rules: [{never: {kind: edit}}]", doubt()),
                    ("budget: {tool-calls: 5}", Ungraded("")),
                    ("budget: {tokens: 100}", Ungraded("")),
                ],
            );
        }
    }
    check(&claude("Task", &hidden[0], &end), &[("budget: {tokens: 1}", Fail(0.0, &[4], "tokens >= 2"))]);
    // Any tool may start one.
    check(&claude("Skill", &[returned(&told(1))], &end), &[(NO_RM, doubt())]);
    check(&claude("Workflow", &[returned(&json!({}))], &end), &[(NO_RM, doubt())]);
    for shown in [
        vec![called.clone(), result.clone(), returned(&told(1))],
        vec![returned(&launched), called.clone(), result.clone(), ended(1)],
        vec![returned(&launched), called, result],
        vec![returned(&told(0))],
    ] {
        check(&claude("Task", &shown, &end), &[(NO_RM, Pass(&[])), ("budget: {tokens: 100}", Ungraded(""))]);
    }
    // A call that was refused starts nothing, and other calls neither.
    let refused = json!({"type": "user", "tool_result_meta": [{"id": "c", "non_execution_kind": "user-rejected"}],
        "message": {"content": [{"type": "tool_result", "tool_use_id": "c", "content": "no", "is_error": true}]}});
    check(&claude("Task", &[refused], &end), &[(NO_RM, Pass(&[])), ("budget: {tokens: 100}", Pass(&[]))]);
    check(
        &claude("Skill", &[returned(&json!({"success": true}))], &end),
        &[(NO_RM, Pass(&[])), ("budget: {tokens: 100}", Pass(&[]))],
    );
}

#[test]
fn a_call_whose_parent_is_unknown_is_not_taken_for_the_main_agents() {
    let [called, told] = inner("d", "rm -rf build");
    let begins = json!({"type": "system", "subtype": "init", "cwd": "/w", "session_id": "s"});
    let end = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done"});
    let of_claude =
        session(Adapter::ClaudeCodeStream, &Manifest::bare(Adapter::ClaudeCodeStream), &[begins, called, told, end]);
    let line = |kind: &str, data: Value| json!({"type": kind, "agentId": "a", "data": data});
    let of_copilot = stream(
        "copilot-stream",
        &[
            line(
                "tool.execution_start",
                json!({"toolCallId": "d", "toolName": "bash", "arguments": {"command": "rm -rf build"}}),
            ),
            line(
                "tool.execution_complete",
                json!({"toolCallId": "d", "success": true, "result": {"content": "ok"}, "shellExecution": {"exitCode": 0}}),
            ),
            json!({"type": "result", "exitCode": 0}),
        ],
    );
    let doubt = || Ungraded("is one of a sub-agent");
    for trial in [of_claude, of_copilot] {
        check(
            &trial,
            &[
                ("tool-calls: {forbid: [{agent: sub, command: 'rm -rf'}]}", doubt()),
                ("tool-calls: {forbid: [{agent: main, command: 'rm -rf'}]}", doubt()),
                ("budget: {steps: 5}", doubt()),
                // Who made the call does not matter.
                ("tool-calls: {forbid: [{command: curl}]}", Pass(&[])),
                ("tool-calls: {max: 1}", Pass(&[])),
                ("errors: {max: 0}", Pass(&[])),
            ],
        );
    }
}

#[test]
fn a_sub_agent_of_claude_code_over_acp_does_not_hide_behind_another_one_with_its_id() {
    let call = |id: &str, tool: &str, parent: Value| {
        let meta = json!({"claudeCode": {"toolName": tool, "parentToolUseId": parent}});
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": "think", "title": tool, "status": "pending", "_meta": meta})
    };
    let end = |id: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"});
    let starts = || call("c", "Task", Value::Null);
    let first = [starts(), call("d", "Read", json!("c")), end("d"), end("c"), starts()];
    let hidden = [&first[..], &[end("c")]].concat();
    check(&acp("claude-agent-acp", &hidden), &[(NO_RM, Ungraded(UNSEEN))]);
    let shown = [&first[..], &[call("e", "Read", json!("c")), end("e"), end("c")]].concat();
    check(&acp("claude-agent-acp", &shown), &[(NO_RM, Pass(&[]))]);
}

#[test]
fn the_usage_of_a_hidden_sub_agent_counts_if_the_program_includes_it() {
    let told = json!({"status": "completed", "agentId": "a", "totalToolUseCount": 7});
    let by_model = json!({"total_cost_usd": 0.1, "modelUsage": {"x": {"inputTokens": 5, "outputTokens": 5}}});
    let within = ("budget: {tokens: 10, cost-usd: 0.1}", Pass(&[3]));
    check(&claude("Task", &[returned(&told)], &by_model), &[within]);
    // A sub-agent in the background, of which nothing more is known, may still work.
    let launched = json!({"isAsync": true, "status": "async_launched", "agentId": "a"});
    let cases = [("budget: {tokens: 10}", Ungraded("")), ("budget: {cost-usd: 0.1}", Ungraded(""))];
    check(&claude("Task", &[returned(&launched)], &by_model), &cases);
}

#[test]
fn a_sub_agent_of_claude_code_behind_its_bridge_is_in_doubt_if_it_is_not_shown() {
    let call = |id: &str, tool: &str, parent: Value| {
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": "think", "title": tool, "status": "pending", "name": tool,
            "_meta": {"claudeCode": {"toolName": tool, "parentToolUseId": parent}}})
    };
    let told = |calls: Value| {
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": {"claudeCode": {"toolName": "Agent",
            "toolResponse": {"agentId": "a", "totalToolUseCount": calls}}}})
    };
    let end = |id: &str| json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed"});
    let (agent, inner) = (call("c", "Agent", Value::Null), call("d", "Read", json!("c")));
    let run = |updates: &[Value]| acp("claude-agent-acp", updates);
    check(&run(&[agent.clone(), told(json!(1)), end("c")]), &[("tool-calls: {max: 2}", Ungraded(UNSEEN))]);
    check(&run(&[agent.clone(), end("c")]), &[("tool-calls: {max: 2}", Ungraded(UNSEEN))]);
    check(&run(&[agent.clone(), told(json!(0)), end("c")]), &[("tool-calls: {max: 2}", Pass(&[]))]);
    check(&run(&[agent, inner, end("d"), told(json!(1)), end("c")]), &[("tool-calls: {max: 2}", Pass(&[]))]);
}

#[test]
fn how_a_sub_agent_in_the_background_of_claude_code_ended_is_unknown_behind_its_bridge() {
    let meta = |more: Value| {
        let mut claude = json!({"toolName": "Agent"});
        claude.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"claudeCode": claude})
    };
    let agent = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "think", "title": "helper", "status": "pending",
        "_meta": meta(json!({}))});
    let told = |response: Value| json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "_meta": meta(json!({"toolResponse": response}))});
    let inner = json!({"sessionUpdate": "tool_call", "toolCallId": "d", "kind": "read", "title": "a", "status": "completed",
        "_meta": {"claudeCode": {"toolName": "Read", "parentToolUseId": "c"}}});
    let end = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed"});
    let launched = || told(json!({"isAsync": true, "status": "async_launched", "agentId": "a"}));
    let in_doubt = "the agent reported an outcome of a call that its event does not show";
    let run = |updates: &[Value]| acp("claude-agent-acp", updates);
    // The data of the result may come after it.
    for updates in [
        [agent.clone(), launched(), end.clone(), inner.clone()],
        [agent.clone(), end.clone(), launched(), inner.clone()],
    ] {
        let table = [
            ("errors: {max: 0}", Ungraded(in_doubt)),
            ("tool-calls: {require: [{name: Agent, status: ok}]}", Ungraded(in_doubt)),
            ("tool-calls: {max: 2}", Pass(&[])),
        ];
        check(&run(&updates), &table);
    }
    let ended = told(json!({"status": "completed", "agentId": "a", "totalToolUseCount": 1}));
    check(&run(&[agent, inner, ended, end]), &[("errors: {max: 0}", Pass(&[]))]);
}

/// A call of Copilot CLI that starts a sub-agent, over ACP.
fn copilot_task(mode: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": "t", "kind": "other", "title": "helper job", "status": "pending",
        "rawInput": {"description": "helper job", "prompt": "fix", "agent_type": "general-purpose", "mode": mode}})
}

/// An edit by the sub-agent `k` of Copilot CLI, over ACP, and its result.
fn copilot_edit() -> [Value; 2] {
    let meta = json!({"github.com/copilot": {"agentId": "k"}});
    [
        json!({"sessionUpdate": "tool_call", "toolCallId": "e", "kind": "edit", "title": "Creating a", "status": "pending",
            "rawInput": {"path": "/w/a", "file_text": "s"}, "locations": [{"path": "/w/a"}], "_meta": meta}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "e", "status": "completed", "_meta": meta}),
    ]
}

fn says(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

/// The result of a call of Copilot CLI, over ACP.
fn copilot_result(id: &str, output: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed", "rawOutput": {"content": output}})
}

#[test]
fn the_calls_and_texts_of_a_sub_agent_of_copilot_over_acp_are_not_the_main_agents() {
    let [edit, edited] = copilot_edit();
    let updates = [copilot_task("sync"), edit.clone(), edited.clone(), says("done it"), copilot_result("t", "done it")];
    check(
        &acp("copilot", &[&updates[..], &[says("Fixed.")]].concat()),
        &[
            ("tool-calls: {forbid: [{kind: edit, agent: main}]}", Pass(&[])),
            ("tool-calls: {forbid: [{kind: edit, agent: sub}]}", Fail(0.0, &[3, 4], "forbidden")),
            ("output: {equals: Fixed.}", Pass(&[7])),
        ],
    );
    // A text of the sub-agent is no answer.
    check(&acp("copilot", &updates), &[("output: {contains: done it}", Fail(0.0, &[7], "does not contain"))]);
    // No call is known to have started the sub-agent.
    check(&acp("copilot", &[edit, edited]), &OF_UNKNOWN_CALLER);
}

const CALLER: &str = "a call that is shown as the main agent's is one of a sub-agent";

/// The grades of an edit by a sub-agent that is shown as the main agent's.
const OF_UNKNOWN_CALLER: [(&str, super::Expect); 6] = [
    ("tool-calls: {require: [{kind: edit, agent: main}]}", Ungraded(CALLER)),
    ("tool-calls: {forbid: [{kind: edit, agent: sub}]}", Ungraded(CALLER)),
    ("rules: [never: {kind: edit, agent: sub}]", Ungraded(CALLER)),
    ("trajectory: {mode: any-order, expected: [{kind: edit}]}", Ungraded(CALLER)),
    ("tool-calls: {forbid: [{kind: delete}]}", Pass(&[])),
    ("errors: {max: 0}", Pass(&[])),
];

#[test]
fn which_of_several_sub_agents_of_copilot_over_acp_is_at_work_is_not_guessed() {
    let [edit, edited] = copilot_edit();
    let task = |id: &str| {
        let mut task = copilot_task("sync");
        task["toolCallId"] = json!(id);
        task
    };
    let both = [task("t"), task("u"), edit, edited, says("it is done"), copilot_result("u", "it is done")];
    let trial = acp("copilot", &[&both[..], &[copilot_result("t", "ok"), says("Fixed.")]].concat());
    check(&trial, &OF_UNKNOWN_CALLER);
    check(
        &trial,
        &[("output: {equals: Fixed.}", Pass(&[11])), ("rules: [never: {text: done}]", Ungraded("may hold a text"))],
    );
    // When one of the two calls has ended, the other one started the next sub-agent.
    let mut next = copilot_edit();
    next.iter_mut().for_each(|update| {
        update["toolCallId"] = json!("f");
        update["_meta"] = json!({"github.com/copilot": {"agentId": "l"}});
    });
    let [first, second] = next;
    let started = [task("t"), task("u"), copilot_result("u", "ok"), first, second, copilot_result("t", "ok")];
    check(
        &acp("copilot", &started),
        &[
            ("tool-calls: {require: [{kind: edit, agent: sub}]}", Pass(&[5])),
            ("tool-calls: {forbid: [{kind: edit, agent: main}]}", Pass(&[])),
        ],
    );
}

#[test]
fn a_sub_agent_of_qwen_over_acp_that_failed_leaves_the_outcome_of_its_call_in_doubt() {
    const OK: &str = "tool-calls: {require: [{name: agent, status: ok}]}";
    let launched = json!([{"type": "content",
        "content": {"type": "text", "text": "Background agent launched successfully."}}]);
    let trial = |status: &str| {
        let task = json!({"status": status, "kind": "agent", "toolUseId": "c"});
        let meta = json!({"source": "background_task_completed", "qwenDiscreteMessage": true, "backgroundTask": task});
        let news = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "It ended."}, "_meta": meta});
        let called = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Agent", "kind": "other",
            "status": "pending", "rawInput": {"prompt": "x"}, "_meta": {"toolName": "agent"}});
        let result = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
            "content": launched, "_meta": {"toolName": "agent"}});
        acp("qwen", &[called, result, news.clone(), news])
    };
    check(&trial("completed"), &[(OK, Pass(&[2]))]);
    for status in ["failed", "cancelled"] {
        let doubt = "the agent reported an outcome of a call that its event does not show";
        check(&trial(status), &[(OK, Ungraded(doubt)), ("errors: {max: 0}", Ungraded(doubt))]);
    }
}

#[test]
fn two_messages_of_opencode_over_acp_without_a_call_between_them_are_in_doubt() {
    let says = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
    let summary = [says("msg_1", "SUMMARY: all tests"), says("msg_1", " pass"), says("msg_2", "Done.")];
    check(
        &acp("opencode", &summary),
        &[
            ("rules: [eventually: {role: agent, text: all tests pass}]", Ungraded("may hold a text")),
            ("output: {contains: Done.}", Ungraded("may hold a text")),
            ("tool-calls: {none: true}", Pass(&[])),
        ],
    );
    check(&acp("opencode", &summary[..2]), &[("output: {contains: all tests pass}", Pass(&[2]))]);
}

#[test]
fn a_text_of_copilot_over_acp_is_in_doubt_while_a_sub_agent_works_in_the_background() {
    let [edit, edited] = copilot_edit();
    let started =
        copilot_result("t", "Agent started in background with agent_id: k. You'll be notified when it completes.");
    let works = [copilot_task("background"), started, says("I wait."), edit, edited, says("nothing found")];
    check(
        &acp("copilot", &works),
        &[
            ("tool-calls: {forbid: [{kind: edit, agent: main}]}", Pass(&[])),
            ("output: {contains: nothing}", Ungraded("may hold a text that is not the agent's")),
        ],
    );
    let reads = |id: &str| {
        json!({"sessionUpdate": "tool_call", "toolCallId": id, "kind": "read", "title": "read_agent",
        "status": "pending", "rawInput": {"agent_id": "k"}})
    };
    let report =
        |status: &str| format!("The agent. agent_id: k, agent_type: general-purpose, status: {status}, elapsed: 1s\n");
    let at_rest = [reads("r"), copilot_result("r", &report("idle")), says("There are none.")];
    check(&acp("copilot", &[&works[..], &at_rest].concat()), &[("output: {equals: There are none.}", Pass(&[12]))]);
    let at_work = [reads("r"), copilot_result("r", &report("running")), says("There are none.")];
    check(
        &acp("copilot", &[&works[..], &at_work].concat()),
        &[("output: {equals: There are none.}", Ungraded("may hold a text that is not the agent's"))],
    );
}
