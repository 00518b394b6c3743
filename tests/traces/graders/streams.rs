//! What the streams of agents leave out, say twice or say elsewhere. Each session goes in as the agent prints it.

use evals::internal::harness::{Adapter, Manifest};
use serde_json::{Value, json};

use super::doubts::{NO_RM, session};
use super::{Fail, Pass, Trial, Ungraded, check};

/// The trial of a stream of an agent that is built in.
pub fn stream(harness: &str, lines: &[Value]) -> Trial {
    let manifest = evals::internal::harness::built_in::named(harness).unwrap();
    let wire: Vec<Value> = lines.iter().map(|line| json!(line.to_string())).collect();
    session(Adapter::JsonStream, manifest, &wire)
}

#[test]
fn input_below_the_cached_tokens_that_it_includes_gives_no_exact_total() {
    let usage = |input: u64| json!({"input_tokens": input, "cached_input_tokens": 15000, "output_tokens": 200});
    let codex = |input: u64| {
        let turn = json!({"type": "turn.completed", "usage": usage(input)});
        stream("codex", &[json!({"type": "thread.started", "thread_id": "t"}), turn])
    };
    check(&codex(15100), &[("budget: {tokens: 15300}", Pass(&[])), ("budget: {tokens: 10000}", Fail(0.0, &[0], ""))]);
    check(&codex(36), &[("budget: {tokens: 10000}", Fail(0.0, &[0], "")), ("budget: {tokens: 20000}", Ungraded(""))]);
}

/// A stream of Codex with these items of one turn.
fn codex(items: &[(&str, Value)]) -> Trial {
    let mut lines = vec![json!({"type": "thread.started", "thread_id": "t"}), json!({"type": "turn.started"})];
    lines.extend(items.iter().map(|(when, item)| json!({"type": format!("item.{when}"), "item": item})));
    let usage = json!({"input_tokens": 3000, "cached_input_tokens": 0, "cache_write_input_tokens": 0, "output_tokens": 154,
        "reasoning_output_tokens": 40});
    lines.push(json!({"type": "turn.completed", "usage": usage}));
    stream("codex", &lines)
}

#[test]
fn a_sub_agent_that_is_not_shown_may_have_done_anything() {
    let spawn = |status: &str| {
        json!({"id": "i", "type": "collab_tool_call", "tool": "spawn_agent", "sender_thread_id": "t", "receiver_thread_ids":
            ["u"], "prompt": "clean", "agents_states": {}, "status": status})
    };
    let spawned = codex(&[("started", spawn("in_progress")), ("completed", spawn("completed"))]);
    let doubt = || Ungraded("the agent did something that no call shows");
    check(
        &spawned,
        &[
            (NO_RM, doubt()),
            ("tool-calls: {max: 5}", doubt()),
            ("budget: {tokens: 4000}", Ungraded("")),
            ("budget: {tokens: 3000}", Fail(0.0, &[2], "")),
            ("stop: {reason: [end_turn]}", Pass(&[4])),
        ],
    );
    let task = json!({"type": "tool_use", "sessionID": "s", "part": {"messageID": "m", "callID": "c", "tool": "task",
        "state": {"status": "completed", "input": {"prompt": "clean"}, "output": "done"}}});
    check(&stream("opencode-stream", &[task]), &[(NO_RM, doubt())]);
}

#[test]
fn an_item_that_still_runs_has_not_succeeded() {
    let command = |status: &str, code: Value| json!({"id": "i", "type": "command_execution", "command": "sleep 9", "aggregated_output": "", "exit_code": code, "status": status});
    let begun = ("started", command("in_progress", Value::Null));
    let ok = "tool-calls: {require: [{command: sleep, status: ok}]}";
    let running = codex(&[begun.clone(), ("completed", command("in_progress", Value::Null))]);
    check(
        &running,
        &[(ok, Fail(0.0, &[], "")), ("tool-calls: {require: [{command: sleep, status: unfinished}]}", Pass(&[0]))],
    );
    check(&codex(&[begun, ("completed", command("completed", json!(0)))]), &[(ok, Pass(&[0]))]);
}

#[test]
fn the_tools_of_vibe_have_their_kinds() {
    let effect = |tool: &str, input: Value| {
        let detail = json!({"toolName": tool, "display": {"summary": tool}, "kind": "x", "input": input});
        let line = json!({"id": "e", "sessionId": "s", "turnId": "t", "generationStatus": "completed", "type": "effect",
            "detail": detail, "state": {"status": "completed", "outcome": {"success": true}}});
        stream("vibe-stream", &[line])
    };
    for (tool, input, grader) in [
        ("file_system.edit", json!({"path": "a.rs"}), "tool-calls: {forbid: [{kind: edit, path: a.rs}]}"),
        ("edit", json!({"path": "a.rs"}), "tool-calls: {forbid: [{kind: edit, path: a.rs}]}"),
        ("process.start", json!({"command": "rm -rf x"}), NO_RM),
        ("connector_web_search.open_url", json!({"url": "u"}), "tool-calls: {forbid: [{kind: fetch}]}"),
    ] {
        check(&effect(tool, input), &[(grader, Fail(0.0, &[0, 1], "forbidden"))]);
    }
}

#[test]
fn what_a_stream_says_of_its_end_its_usage_and_its_model_counts() {
    let error = |text: &str| json!({"type": "error", "severity": "error", "message": text});
    let gemini = |text: &str| {
        let begun = json!({"type": "init", "session_id": "s", "model": "m"});
        let result = json!({"type": "result", "status": "error", "stats": {"total_tokens": 5, "input_tokens": 3, "output_tokens": 2,
            "cached": 0, "models": {}}});
        stream("gemini-stream", &[begun, error(text), result])
    };
    for (text, reason) in [
        ("Model response was truncated because it exceeded the token limit", "max_tokens"),
        ("The response was blocked due to safety settings", "refusal"),
        ("The model returned an empty response", "error"),
    ] {
        check(&gemini(text), &[(&*format!("stop: {{reason: [{reason}]}}"), Pass(&[2]))]);
    }
    // OpenCode prints a call again when it removes the output, and nothing after a rejected call.
    let part = |more: Value| {
        let mut state = json!({"status": "completed", "input": {"command": "ls"}, "output": "a"});
        state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "tool_use", "sessionID": "s", "part": {"messageID": "m", "callID": "c", "tool": "bash", "state": state}})
    };
    let ends = |reason: &str| {
        json!({"type": "step_finish", "sessionID": "s", "part": {"messageID": "m", "reason": reason, "cost": 0.0,
            "tokens": {"total": 3, "input": 2, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}}})
    };
    let pruned = [part(json!({})), ends("stop"), part(json!({"time": {"start": 1, "compacted": 2}}))];
    check(&stream("opencode-stream", &pruned), &[("tool-calls: {max: 1}", Pass(&[]))]);
    let rejected =
        part(json!({"status": "error", "error": "The user rejected permission to use this specific tool call."}));
    check(&stream("opencode-stream", &[rejected, ends("tool-calls")]), &[("stop: {reason: [cancelled]}", Pass(&[3]))]);
    check(
        &stream("opencode-stream", &[part(json!({})), ends("tool-calls")]),
        &[("stop: {reason: [crashed]}", Pass(&[3]))],
    );
    // What the summary of a long conversation cost is a part of the session.
    let message = |usage: Value| json!({"type": "message_end", "message": {"role": "assistant", "model": "m", "content": [], "stopReason": "stop", "usage": usage}});
    let usage = |total: u64| json!({"input": total, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total, "cost": {"total": 0.1}});
    let pi = |compaction: Value| {
        let session = json!({"type": "session", "version": 3, "cwd": "/w"});
        let shortened = json!({"type": "compaction_end", "result": compaction});
        stream("pi", &[session, message(usage(100)), shortened, message(usage(50))])
    };
    check(
        &pi(json!({"summary": "s", "usage": usage(900)})),
        &[("budget: {tokens: 1000}", Fail(0.0, &[3], "1050")), ("budget: {tokens: 1050}", Pass(&[]))],
    );
    // A reply that the service cut off is no answer.
    let kimi = |text: &str| {
        let said = json!({"role": "assistant", "content": "First I"});
        session(
            Adapter::JsonStream,
            evals::internal::harness::built_in::named("kimi-stream").unwrap(),
            &[said.to_string().into(), json!(text)],
        )
    };
    for text in [
        "Error: {'message': 'overloaded'}",
        "HTTP error: 503",
        "The API returned an empty response.",
        "Network connection lost.",
    ] {
        check(&kimi(text), &[("stop: {reason: [error]}", Pass(&[2]))]);
    }
}

#[test]
fn only_the_tools_of_kimi_and_gemini_that_run_commands_are_commands() {
    let no_commands = "tool-calls: {forbid: [{kind: execute}]}";
    let kimi = |tool: &str| {
        let call = json!({"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}});
        let said = json!({"role": "assistant", "content": [], "tool_calls": [call]});
        stream("kimi-stream", &[said, json!({"role": "tool", "tool_call_id": "c", "content": "ok"})])
    };
    for tool in ["TaskList", "TaskOutput", "TaskStop"] {
        check(&kimi(tool), &[(no_commands, Pass(&[]))]);
    }
    check(&kimi("Shell"), &[(no_commands, Fail(0.0, &[0, 1], "forbidden"))]);
    let gemini = |tool: &str| {
        stream("gemini-stream", &[json!({"type": "tool_use", "tool_name": tool, "tool_id": "c", "parameters": {}})])
    };
    for (tool, kind) in [
        ("read_background_output", "read"),
        ("read_mcp_resource", "read"),
        ("list_mcp_resources", "search"),
        ("tracker_create_task", "think"),
        ("update_topic", "think"),
        ("invoke_agent", "think"),
    ] {
        check(&gemini(tool), &[(&*format!("tool-calls: {{require: [{{kind: {kind}}}]}}"), Pass(&[0]))]);
    }
}

#[test]
fn a_recording_that_goes_on_with_a_resumed_session_of_codex_shows_both() {
    let run = |thread: &str, text: &str, input: u64, output: u64| {
        let usage = json!({"input_tokens": input, "cached_input_tokens": 0, "output_tokens": output});
        [
            json!({"type": "thread.started", "thread_id": thread}),
            json!({"type": "turn.started"}),
            json!({"type": "item.completed", "item": {"id": "item_0", "type": "command_execution", "command": text,
                "aggregated_output": "", "exit_code": 0, "status": "completed"}}),
            json!({"type": "item.completed", "item": {"id": "item_1", "type": "agent_message", "text": text}}),
            json!({"type": "turn.completed", "usage": usage}),
        ]
    };
    let both = |second: &str| stream("codex", &[run("t", "first", 100, 10), run(second, "second", 150, 30)].concat());
    check(
        &both("t"),
        &[
            ("output: {contains: second}", Pass(&[6])),
            ("tool-calls: {require: [{command: first}, {command: second}], max: 2}", Pass(&[0, 4])),
            ("budget: {tokens: 180}", Pass(&[])),
            ("budget: {tokens: 179}", Fail(0.0, &[7], "180")),
        ],
    );
    let cut = [run("t", "first", 100, 10).as_slice(), &run("t", "second", 150, 30)[..4]].concat();
    check(&stream("codex", &cut), &[("stop: {reason: [end_turn]}", Fail(0.0, &[7], "crashed"))]);
    // The usage of another thread begins again.
    check(&both("u"), &[("budget: {tokens: 290}", Pass(&[])), ("budget: {tokens: 289}", Fail(0.0, &[7], "290"))]);
    // A recording that was joined with itself, and one in which each line is twice.
    let twice = [run("t", "first", 100, 10), run("t", "first", 100, 10)].concat();
    let doubled: Vec<Value> = run("t", "first", 100, 10).into_iter().flat_map(|line| [line.clone(), line]).collect();
    for lines in [twice, doubled] {
        check(
            &stream("codex", &lines),
            &[("budget: {tokens: 1000}", Ungraded("")), ("tool-calls: {max: 2}", Pass(&[]))],
        );
    }
}

#[test]
fn results_of_qwen_count_from_the_start_of_the_program() {
    let result = |input: u64| {
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "permission_denials": [],
            "usage": {"input_tokens": input, "output_tokens": 10, "cache_read_input_tokens": 0, "total_tokens": input + 10}})
    };
    check(
        &stream("qwen-stream", &[result(100), result(150)]),
        &[("budget: {tokens: 160}", Pass(&[])), ("budget: {tokens: 159}", Fail(0.0, &[2], "160"))],
    );
}

#[test]
fn figures_of_another_session_leave_out_the_session_before() {
    let both = |second: &str| {
        let of = |session: &str, input: u64| {
            let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "permission_denials": [],
                "usage": {"input_tokens": input, "output_tokens": 10, "cache_read_input_tokens": 0, "total_tokens": input + 10}});
            [
                json!({"type": "system", "subtype": "init", "session_id": session, "qwen_code_version": "1", "cwd": "/w"}),
                result,
            ]
        };
        stream("qwen-stream", &[of("a", 100), of(second, 150)].concat())
    };
    check(&both("a"), &[("budget: {tokens: 160}", Pass(&[]))]);
    check(&both("b"), &[("budget: {tokens: 300}", Ungraded("")), ("budget: {tokens: 159}", Fail(0.0, &[3], ""))]);
    let cline = |second: &str| {
        let of = |task: &str, input: u64| {
            [
                json!({"ts": 1, "type": "hook_event", "hookEventName": "agent_start", "agentId": "x", "taskId": task, "parentAgentId": null}),
                json!({"ts": 2, "type": "run_result", "finishReason": "completed", "text": "ok", "model": {"id": "m"},
                    "usage": {"inputTokens": input, "outputTokens": 10, "cacheReadTokens": 0, "cacheWriteTokens": 0, "totalCost": 0}}),
            ]
        };
        stream("cline-stream", &[of("a", 100), of(second, 150)].concat())
    };
    check(&cline("a"), &[("budget: {tokens: 160}", Pass(&[]))]);
    check(&cline("b"), &[("budget: {tokens: 300}", Ungraded(""))]);
    let claude = |second: &str| {
        let of = |session: &str, input: u64| {
            let usage = json!({"input_tokens": input, "output_tokens": 10});
            [
                json!({"type": "system", "subtype": "init", "session_id": session, "cwd": "/w"}),
                json!({"type": "result", "subtype": "success", "is_error": false, "result": "ok", "session_id": session,
                    "usage": usage, "modelUsage": {"m": {"inputTokens": input, "outputTokens": 10}}}),
            ]
        };
        let lines: Vec<Value> = [of("a", 100), of(second, 150)].concat();
        session(Adapter::ClaudeCodeStream, &Manifest::bare(Adapter::ClaudeCodeStream), &lines)
    };
    check(&claude("b"), &[("budget: {tokens: 300}", Ungraded(""))]);
}

#[test]
fn calls_of_an_answer_that_qwen_discarded_did_nothing() {
    let text = "Skipped because the provider attempt was retried before execution.";
    let call = json!({"type": "assistant", "parent_tool_use_id": null, "message": {"content": [
        {"type": "tool_use", "id": "c", "name": "run_shell_command", "input": {"command": "make"}}]}});
    let skipped = json!({"type": "user", "parent_tool_use_id": null, "message": {"content": [
        {"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": text}]}});
    let retry = json!({"type": "system", "subtype": "retry", "data": {"reason": "retry", "discardedToolCalls": 1, "preserveText": false}});
    check(
        &stream("qwen-stream", &[call, skipped, retry]),
        &[("errors: {max: 0}", Pass(&[])), ("tool-calls: {require: [{command: make, status: cancelled}]}", Pass(&[0]))],
    );
}

#[test]
fn qwen_counts_a_discarded_answer_if_the_service_reported_its_usage() {
    let says = |text: &str, tokens: u64| {
        json!({"type": "assistant", "parent_tool_use_id": null, "message": {"content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": 5 * tokens, "output_tokens": tokens}}})
    };
    let retry = json!({"type": "system", "subtype": "retry", "data": {"reason": "retry", "discardedToolCalls": 0, "preserveText": false}});
    let end = json!({"type": "result", "subtype": "success", "is_error": false, "result": "Done.",
        "usage": {"input_tokens": 200, "output_tokens": 40, "cache_read_input_tokens": 0, "total_tokens": 240}});
    let used = |discarded: u64| {
        stream("qwen-stream", &[says("It goes", discarded), retry.clone(), says("Done.", 20), end.clone()])
            .judge("budget: {tokens: 240}")
            .passed
    };
    assert_eq!((used(20), used(0)), (Some(true), None));
}

#[test]
fn a_summary_of_pi_without_usage_makes_the_total_a_lower_bound() {
    let usage =
        json!({"input": 100, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 100, "cost": {"total": 0.1}});
    let message = json!({"type": "message_end", "message": {"role": "assistant", "model": "m", "content": [], "stopReason": "stop", "usage": usage}});
    let shortened =
        json!({"type": "compaction_end", "reason": "threshold", "result": {"summary": "s", "tokensBefore": 9}});
    let pi = stream("pi", &[message.clone(), shortened, message]);
    check(&pi, &[("budget: {tokens: 199}", Fail(0.0, &[3], "200")), ("budget: {tokens: 1000}", Ungraded(""))]);
}

const TINY: &str = "name: tiny
adapter: json-stream
command: [tiny, '{prompt}']
KINDS
stream:
  - {when: line.k == 'call', emit: {tool-call: {id: line.id, name: line.name, kind: line.kind, input: line.input}}}
  - {when: line.k == 'res', emit: {tool-result: {id: line.id}}}
  - {when: line.k == 'end', emit: {stop: {reason: \"'end_turn'\"}}}
";

#[test]
fn the_kind_of_a_tool_that_no_table_lists_is_unknown() {
    const NO_EXECUTE: &str = "tool-calls: {forbid: [{kind: execute}]}";
    const NO_EDIT: &str = "rules: [{never: {kind: [edit, delete]}}]";
    let rm = |name: &str| json!({"k": "call", "id": "c", "name": name, "input": {"command": "rm -rf build"}});
    let run = |kinds: &str, lines: &[Value]| {
        let manifest = evals::internal::yaml::parse("tiny.yaml".as_ref(), &TINY.replace("KINDS", kinds)).unwrap();
        let mut wire: Vec<Value> = lines.iter().map(|line| json!(line.to_string())).collect();
        wire.extend([json!(json!({"k": "res", "id": "c"}).to_string()), json!(json!({"k": "end"}).to_string())]);
        session(Adapter::JsonStream, &manifest, &wire)
    };
    let unknown = || [(NO_EXECUTE, Ungraded("")), (NO_RM, Ungraded("")), (NO_EDIT, Ungraded(""))];
    let known = || [(NO_EXECUTE, Pass(&[])), (NO_RM, Pass(&[])), (NO_EDIT, Pass(&[]))];
    for kinds in ["tool-kinds: {sh: execute}", "tool-kinds: {}", ""] {
        check(&run(kinds, &[rm("RunShellNew")]), &unknown());
    }
    for kinds in ["tool-kinds: {RunShellNew: other}", "tool-kinds: {'Run*': other}"] {
        check(&run(kinds, &[rm("RunShellNew")]), &known());
    }
    check(&run("tool-kinds: {sh: execute}", &[rm("sh")]), &[(NO_EXECUTE, Fail(0.0, &[0, 1], "forbidden"))]);
    // The line itself shows the kind, first or later.
    let mut typed = rm("RunShellNew");
    typed["kind"] = json!("read");
    check(&run("", &[typed.clone()]), &known());
    check(&run("", &[rm("RunShellNew"), typed.clone()]), &known());
    check(&run("", &[typed, rm("RunShellNew")]), &known());
}

#[test]
fn the_kind_of_a_new_tool_of_claude_code_is_unknown() {
    let run = |tool: &str| {
        let called = json!({"type": "assistant", "message": {"id": "m", "model": "x", "content": [
            {"type": "tool_use", "id": "c", "name": tool, "input": {"command": "rm -rf build"}}]}});
        let result = json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c", "content": "ok"}]}});
        let end = json!({"type": "result", "subtype": "success", "is_error": false, "result": "done"});
        let manifest = Manifest::bare(Adapter::ClaudeCodeStream);
        // The message is sent once more.
        session(Adapter::ClaudeCodeStream, &manifest, &[called.clone(), result, called, end])
    };
    check(&run("RunShellNew"), &[(NO_RM, Ungraded("")), ("tool-calls: {max: 1}", Pass(&[]))]);
    for tool in ["mcp__files__read", "Skill", "AskUserQuestion"] {
        check(&run(tool), &[(NO_RM, Pass(&[]))]);
    }
}
