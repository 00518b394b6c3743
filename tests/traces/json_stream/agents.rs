//! The recordings of the agents: reviewed Traces, the laws at every cut, and what other scenarios of them say.

use serde_json::{Value, json};

use super::{AGENTS, built_in, events, laws, recordings, trace};

#[test]
fn recordings_give_the_traces_that_a_reader_would_expect() {
    for (agent, harness) in AGENTS {
        for (scenario, text) in recordings(agent) {
            let trace = trace(built_in(harness), &text);
            laws::assert_lawful(&trace);
            for code in ["mapping_failed", "unmapped_line", "malformed_line", "stream_differs", "unknown_call"] {
                assert!(!trace.contains(&format!("\"code\":\"{code}\"")), "{agent}/{scenario}:\n{trace}");
            }
            assert!(!trace.contains("\"lost\""), "{agent}/{scenario}:\n{trace}");
            insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots/json_stream"}, {
                insta::assert_snapshot!(format!("{agent}-{scenario}"), trace);
            });
        }
    }
}

#[test]
#[ignore = "slow: hundreds of cut recordings"]
fn a_stream_that_ends_early_is_lawful_and_crashed() {
    for (agent, harness) in AGENTS {
        for (scenario, text) in recordings(agent) {
            let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
            for end in ends.iter().copied().chain((1..20).map(|n| text.floor_char_boundary(text.len() * n / 20))) {
                let cut = trace(built_in(harness), &text[..end]);
                laws::assert_lawful(&cut);
                assert_eq!(cut, trace(built_in(harness), &text[..end]), "{agent}/{scenario}: not the same twice");
            }
            // Without the line that ends it, and what follows it, nobody knows how it ended.
            let lines: Vec<&str> = text.lines().collect();
            let half = lines[..lines.len() / 2].join("\n");
            let stop = events(&trace(built_in(harness), &half)).pop().unwrap();
            // The first of two lines of an error tells it already, and Vibe's last message looks like any other.
            let told = (agent, scenario.as_str()) == ("codex", "err400") || agent == "vibe";
            assert!(stop["reason"] == "crashed" || told, "{agent}/{scenario}: {stop}");
        }
    }
}

#[test]
#[ignore = "slow: hundreds of changed recordings"]
fn lines_that_are_lost_doubled_or_swapped_keep_the_laws() {
    for (agent, harness) in AGENTS {
        for (_, text) in recordings(agent) {
            let lines: Vec<&str> = text.lines().collect();
            for at in 0..lines.len() {
                let mut lost = lines.clone();
                lost.remove(at);
                let mut doubled = lines.clone();
                doubled.insert(at, lines[at]);
                let mut swapped = lines.clone();
                swapped.swap(at, lines.len() - 1 - at);
                for lines in [lost, doubled, swapped] {
                    laws::assert_lawful(&trace(built_in(harness), &lines.join("\n")));
                }
            }
        }
    }
}

/// What a session of these lines comes to: the statuses of its calls with their exit codes, and its stop.
fn ends(harness: &str, lines: &[Value]) -> (Vec<String>, Value) {
    let text: Vec<String> =
        lines.iter().map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned)).collect();
    let trace = trace(built_in(harness), &text.join("\n"));
    laws::assert_lawful(&trace);
    assert!(!trace.contains("mapping_failed") && !trace.contains("unmapped_line"), "{trace}");
    let mut events = events(&trace);
    let stop = events.pop().unwrap();
    let results = events.iter().filter(|event| event["type"] == "tool_result");
    let code = |event: &Value| event["exit_code"].as_i64().map(|code| format!(" {code}")).unwrap_or_default();
    (results.map(|event| format!("{}{}", event["status"].as_str().unwrap(), code(event))).collect(), stop)
}

#[test]
fn a_command_that_failed_is_told_by_what_each_agent_says_of_it() {
    let copilot = [
        json!({"type": "tool.execution_start", "data": {"toolCallId": "a", "toolName": "bash", "arguments": {"command": "exit 3"}}}),
        json!({"type": "tool.execution_complete", "data": {"toolCallId": "a", "success": true,
            "shellExecution": {"exitCode": 3}, "result": {"content": "<exited with exit code 3>"}}}),
        json!({"type": "result", "exitCode": 0}),
    ];
    assert_eq!(ends("copilot-stream", &copilot).0, ["error 3"]);
    let droid = [
        json!({"type": "tool_call", "id": "a", "messageId": "m", "toolName": "Execute", "parameters": {"command": "exit 3"}}),
        json!({"type": "tool_result", "id": "a", "toolId": "Execute", "isError": false,
            "value": "oops\n\n[Process exited with code 3]"}),
    ];
    assert_eq!(ends("droid-stream", &droid).0, ["error 3"]);
    let pi = [
        json!({"type": "tool_execution_start", "toolCallId": "a", "toolName": "bash", "args": {"command": "exit 3"}}),
        json!({"type": "tool_execution_end", "toolCallId": "a", "toolName": "bash", "isError": true,
            "result": {"content": [{"type": "text", "text": "oops\n\nCommand exited with code 3"}]}}),
    ];
    assert_eq!(ends("pi", &pi).0, ["error 3"]);
    let kimi = [
        json!({"role": "assistant", "tool_calls": [
            {"type": "function", "id": "a", "function": {"name": "Shell", "arguments": "{\"command\": \"exit 3\"}"}}]}),
        json!({"role": "tool", "tool_call_id": "a", "content": [
            {"type": "text", "text": "<system>ERROR: Command failed with exit code: 3.</system>"}, {"type": "text", "text": "oops"}]}),
    ];
    assert_eq!(ends("kimi-stream", &kimi).0, ["error 3"]);
    let vibe = |status: &str, success: bool| {
        [json!({"type": "effect", "id": "a", "detail": {"toolName": "file_system.bash", "display": {"summary": "bash"},
            "input": {"command": "exit 3"}}, "state": {"status": status, "outputText": "oops", "display": {"success": success},
            "reason": "the user said no"}})]
    };
    assert_eq!(ends("vibe-stream", &vibe("completed", false)).0, ["error"]);
    assert_eq!(ends("vibe-stream", &vibe("skipped", false)).0, ["denied"]);
    let cline = [
        json!({"type": "agent_event", "event": {"type": "content_start", "contentType": "tool", "toolCallId": "a",
            "toolName": "run_commands", "input": {"commands": ["exit 3"]}}}),
        json!({"type": "agent_event", "event": {"type": "content_end", "contentType": "tool", "toolCallId": "a",
            "toolName": "run_commands", "output": [{"query": "exit 3", "result": "", "error": "Command exited with code 3", "success": false}]}}),
    ];
    assert_eq!(ends("cline-stream", &cline).0, ["error 3"]);
}

#[test]
fn refused_requests_and_other_endings_have_their_reasons() {
    let api_error = "400 {\"error\":{\"message\":\"malformed\",\"type\":\"invalid_request_error\"}}";
    let error = |harness: &str, lines: &[Value], category: &str| {
        let (_, stop) = ends(harness, lines);
        assert_eq!((&stop["reason"], &stop["category"]), (&json!("error"), &json!(category)), "{harness}: {stop}");
    };
    let message = json!({"role": "assistant", "content": [], "model": "m", "stopReason": "error", "errorMessage": api_error,
        "usage": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": {"total": 0}}});
    let pi = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "message_end", "message": message}),
        json!({"type": "agent_end", "messages": []}),
    ];
    error("pi", &pi, "provider");
    // One that is tried again goes on.
    let again =
        [pi.as_slice(), &[json!({"type": "auto_retry_start", "attempt": 1, "errorMessage": api_error})]].concat();
    assert_eq!(ends("pi", &again).1["reason"], "crashed");
    let qwen =
        [json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "permission_denials": [],
        "usage": {"input_tokens": 0, "output_tokens": 0}, "error": {"message": "[API Error: 401 Unauthorized]"}})];
    error("qwen-stream", &qwen, "auth");
    let turns = [json!({"type": "result", "subtype": "error_max_turns", "is_error": true, "permission_denials": [],
        "usage": {}, "error": {"message": "too many"}})];
    assert_eq!(ends("qwen-stream", &turns).1["reason"], "max_turns");
    let opencode = [
        json!({"type": "error", "sessionID": "s", "error": {"name": "APIError", "data": {"message": "slow", "statusCode": 429}}}),
    ];
    error("opencode-stream", &opencode, "rate_limit");
    let copilot = [
        json!({"type": "session.error", "data": {"errorType": "query", "message": "CAPIError: 400 Bad Request"}}),
        json!({"type": "result", "exitCode": 1}),
    ];
    error("copilot-stream", &copilot, "provider");
    let cline = [
        json!({"type": "agent_event", "event": {"type": "error", "error": {"message": api_error}, "recoverable": false}}),
        json!({"type": "run_result", "finishReason": "error", "text": "", "usage": {}, "model": {"id": "m"}}),
    ];
    error("cline-stream", &cline, "provider");
    let iterations = [
        json!({"type": "run_result", "finishReason": "max_iterations", "text": "", "usage": {"inputTokens": 1}, "model": {"id": "m"}}),
    ];
    assert_eq!(ends("cline-stream", &iterations).1["reason"], "max_turns");
    let gemini = [json!({"type": "result", "status": "error", "stats": {"total_tokens": 1},
        "error": {"type": "FatalTurnLimitedError", "message": "Reached max session turns"}})];
    assert_eq!(ends("gemini-stream", &gemini).1["reason"], "max_turns");
    let droid = [json!({"type": "error", "message": "403 forbidden: status 403"})];
    error("droid-stream", &droid, "auth");
    for (text, category) in [
        ("You've hit your usage limit. Try again at 3:10 PM.", "rate_limit"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("We're currently experiencing high demand, which may cause temporary errors.", "provider"),
        ("stream disconnected before completion: idle timeout waiting for SSE", "provider"),
        ("unexpected status 502 Bad Gateway: Unknown error, url: u", "provider"),
        ("Your access token could not be refreshed. Please log out and sign in again.", "auth"),
    ] {
        error("codex", &[json!({"type": "turn.failed", "error": {"message": text}})], category);
        error("codex", &[json!({"type": "error", "message": text})], category);
    }
}

#[test]
fn limits_of_the_agents_themselves_are_no_errors() {
    let stop = |harness: &str, lines: &[Value]| {
        let stop = ends(harness, lines).1;
        (stop["reason"].as_str().unwrap().to_owned(), stop["detail"].as_str().unwrap_or_default().to_owned())
    };
    let says = json!({"type": "message", "role": "assistant", "content": "Let me look.", "delta": true});
    let warns = |text: &str| json!({"type": "error", "severity": "warning", "message": text});
    let ends_well = json!({"type": "result", "status": "success", "stats": {"total_tokens": 1}});
    for limit in ["Loop detected, stopping execution", "Maximum session turns exceeded"] {
        let ended = stop("gemini-stream", &[says.clone(), warns(limit), ends_well.clone()]);
        assert_eq!(ended, ("max_turns".to_owned(), limit.to_owned()));
        let later = stop("gemini-stream", &[warns(limit), warns("A hook failed."), ends_well.clone()]);
        assert_eq!(later, ("max_turns".to_owned(), limit.to_owned()));
        // It went on.
        assert_eq!(stop("gemini-stream", &[warns(limit), says.clone(), ends_well.clone()]).0, "end_turn");
    }
    assert_eq!(stop("gemini-stream", &[says, warns("A hook failed."), ends_well]).0, "end_turn");
    let qwen = |text: &str| {
        stop(
            "qwen-stream",
            &[
                json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "permission_denials": [],
                "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}, "error": {"message": text}}),
            ],
        )
    };
    for (text, reason) in [
        ("Run aborted: tool-call budget of 10 exceeded (--max-tool-calls); observed 11.", "max_turns"),
        ("Run aborted: wall-clock budget of 90s exceeded (--max-wall-time).", "max_budget"),
        (
            "Loop detection halted the run (turn_tool_call_cap: the turn reached the per-turn tool-call limit).",
            "max_turns",
        ),
        ("Loop detection halted the run (read_file_loop: the model spent too many calls reading files).", "other"),
        ("Loop detection halted the run. Set the `model.skipLoopDetection` setting to true to disable.", "other"),
        ("The tool `Run aborted: tool-call budget of 1 exceeded ` is unknown.", "error"),
    ] {
        let (found, detail) = qwen(text);
        assert_eq!(found, reason, "{text}");
        assert_eq!(detail, if reason == "other" { format!("loop_detected: {text}") } else { text.to_owned() });
    }
    // If a limit interrupts an answer, Qwen Code writes no result.
    let exit = |stderr: &str| {
        let log = [
            json!({"at_ms": 1, "dir": "recv", "line": "{\"type\":\"system\",\"subtype\":\"session_start\"}"}),
            json!({"at_ms": 2, "dir": "stderr", "line": stderr}),
            json!({"at_ms": 3, "dir": "exit", "line": "{\"code\":55,\"signal\":null}"}),
        ];
        stop("qwen-stream", &log).0
    };
    assert_eq!(exit("Run aborted: tool-call budget of 3 exceeded (--max-tool-calls); observed 4."), "max_turns");
    assert_eq!(exit("Run aborted: wall-clock budget of 3s exceeded (--max-wall-time)."), "max_budget");
}

#[test]
fn the_lines_of_newer_versions_of_pi_show_calls_of_scripts_and_all_usage() {
    let usage = |total: u64| {
        json!({"input": total, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total,
            "cost": {"total": 0.5}})
    };
    let message = json!({"role": "assistant", "content": [{"type": "toolCall", "id": "c", "name": "codemode",
        "arguments": {"script": "s"}}], "model": "m", "stopReason": "toolUse", "usage": usage(10)});
    let content = json!([{"type": "text", "text": "done"}]);
    let runs = |id: &str, name: &str, args: Value, parent: Option<&str>| {
        let mut line = json!({"type": "tool_execution_start", "toolCallId": id, "toolName": name, "args": args});
        if let Some(parent) = parent {
            line["parentToolCallId"] = json!(parent);
        }
        line
    };
    let ran = |id: &str| json!({"type": "tool_execution_end", "toolCallId": id, "result": {"content": content}, "isError": false});
    let result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "codemode", "content": content,
        "isError": false, "usage": usage(400), "nestedCalls": {"complete": true,
            "calls": [{"id": "c/1", "name": "bash", "arguments": {"command": "ls"}, "status": "ok"}]}});
    let entry = json!({"type": "usage", "kind": "cache_warm", "model": "m", "usage": usage(5000)});
    let lines = [
        json!({"type": "message_end", "message": {"role": "system", "content": "", "toolsAdded": [{"name": "read"}]}}),
        json!({"type": "message_start", "message": message}),
        json!({"type": "message_update", "usage": {}, "assistantMessageEvent": {"type": "toolcall_start",
            "contentIndex": 0, "id": "c", "toolName": "codemode"}}),
        json!({"type": "message_end", "message": message}),
        runs("c", "codemode", json!({"script": "s"}), None),
        runs("c/1", "bash", json!({"command": "ls"}), Some("c")),
        ran("c/1"),
        ran("c"),
        json!({"type": "message_end", "message": result}),
        json!({"type": "entry_appended", "entry": entry}),
        json!({"type": "agent_end", "messages": []}),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let shown = trace(built_in("pi"), &text.join("\n"));
    laws::assert_lawful(&shown);
    let all = events(&shown);
    assert!(all.iter().all(|event| event["type"] != "notice"), "{shown}");
    let calls: Vec<Value> = all.iter().filter(|event| event["type"] == "tool_call").cloned().collect();
    let calls: Vec<Value> = calls.iter().map(|call| json!([call["call"], call["kind"], call["parent"]])).collect();
    assert_eq!(calls, [json!(["c", "other", null]), json!(["c/1", "execute", "c"])]);
    let used = all.iter().filter(|event| event["type"] == "usage").map(|event| event["total_tokens"].as_u64().unwrap());
    assert_eq!(used.collect::<Vec<_>>(), [10, 400, 5000]);
    // Without the lines of the inner call, the script may have done anything.
    let hidden: Vec<&str> =
        text.iter().filter(|line| !line.contains("\"toolCallId\":\"c/1\"")).map(String::as_str).collect();
    let hidden = events(&trace(built_in("pi"), &hidden.join("\n")));
    assert!(hidden.iter().any(|event| event["code"] == "hidden_sub_agent" && event["lost"] == "call"));
}

#[test]
fn what_kimi_prints_beside_its_stream_tells_how_it_ended() {
    let first = json!({"role": "assistant", "content": "I begin."}).to_string();
    for (printed, reason, category) in [
        (
            "Error code: 400 - {'error': {'message': 'mock: prompt is malformed', 'type': \n'invalid_request_error'}}",
            "error",
            "provider",
        ),
        ("Error code: 401 - no", "error", "auth"),
        ("Max number of steps reached: 3", "max_turns", ""),
        ("Interrupted by user", "cancelled", ""),
        // It prints nothing else, so any other text is that of an error of its model's service.
        ("the engine is busy, come back later", "error", "provider"),
        ("You have hit your usage limit", "error", "rate_limit"),
        ("LLM model 'm' does not support required capability: image_in.", "error", "protocol"),
    ] {
        let trace = trace(built_in("kimi-stream"), &format!("{first}\n{printed}\n"));
        laws::assert_lawful(&trace);
        let stop = events(&trace).pop().unwrap();
        assert_eq!(
            (stop["reason"].as_str().unwrap(), stop["category"].as_str().unwrap_or_default()),
            (reason, category),
            "{trace}"
        );
    }
    let alone = trace(built_in("kimi-stream"), "Error code: 400 - {'error': 1}\n");
    assert_eq!(events(&alone).pop().unwrap()["category"], "provider");
}

#[test]
fn copilot_1_0_82_repeats_what_it_shows_in_lines_about_its_model() {
    let model = |kind: &str, more: Value| {
        let mut data = json!({"kind": kind});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": format!("model.{kind}"), "data": data, "ephemeral": true})
    };
    let piece =
        |text: &str| json!({"type": "assistant.message_delta", "data": {"messageId": "m", "deltaContent": text}});
    let message = json!({"role": "assistant", "content": "I look.", "tool_calls": [{"id": "a", "type": "function",
        "function": {"name": "bash", "arguments": "{\"command\":\"ls\"}"}}]});
    let lines = [
        model("turn_started", json!({"model": "m"})),
        piece("I lo"),
        model("model_call_failure", json!({"turn": 0})),
        model("turn_retry", json!({"reason": "streaming_error"})),
        piece("I look."),
        model("model_call_success", json!({"responseChunk": {"choices": [{"delta": message}]}})),
        model("message", json!({"message": message})),
        json!({"type": "assistant.message", "data": {"messageId": "m", "content": "I look.", "toolRequests": [
            {"toolCallId": "a", "name": "bash", "arguments": {"command": "ls"}}]}}),
        json!({"type": "tool.execution_complete", "data": {"toolCallId": "a", "success": true,
            "shellExecution": {"exitCode": 0}, "result": {"content": "a.txt"}}}),
        model("tool_execution", json!({"toolCallId": "a", "toolResult": {"resultType": "success"}})),
        model("response", json!({"response": {"content": "I look.", "role": "assistant"}})),
        model("messages_snapshot", json!({"messages": [message]})),
        model("turn_ended", json!({})),
        json!({"type": "result", "exitCode": 0}),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let told = events(&trace(built_in("copilot-stream"), &text.join("\n")));
    let kinds: Vec<&str> =
        told.iter().map(|event| event["code"].as_str().unwrap_or(event["type"].as_str().unwrap())).collect();
    assert_eq!(kinds, ["discarded_message", "message", "tool_call", "tool_result", "stop"], "{told:?}");
}

#[test]
fn qwen_without_a_login_is_refused() {
    let message = "No auth type is selected. Please configure an auth type (e.g. via settings or `--auth-type`) before \
                   running in non-interactive mode.";
    let lines =
        [json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "permission_denials": [],
        "usage": {"input_tokens": 0, "output_tokens": 0}, "error": {"message": message}})];
    let (_, stop) = ends("qwen-stream", &lines);
    assert_eq!((&stop["reason"], &stop["category"]), (&json!("error"), &json!("auth")), "{stop}");
}

#[test]
fn the_usage_of_a_review_of_codex_is_unknown() {
    let figures = |input: u64, output: u64| {
        let lines = [
            json!({"type": "thread.started", "thread_id": "t"}),
            json!({"type": "turn.started"}),
            json!({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Looks good"}}),
            json!({"type": "turn.completed", "usage": {"input_tokens": input, "cached_input_tokens": 0, "output_tokens": output}}),
        ];
        let text: Vec<String> = lines.iter().map(Value::to_string).collect();
        let told = events(&trace(built_in("codex"), &text.join("\n")));
        told.iter().filter(|event| event["type"] == "usage").count()
    };
    assert_eq!((figures(3, 2), figures(0, 2), figures(0, 0)), (1, 1, 0));
}

#[test]
fn codex_items_of_every_type_become_what_they_are() {
    let done = |item: Value| json!({"type": "item.completed", "item": item});
    let lines = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "turn.started"}),
        json!({"type": "item.started", "item": {"id": "0", "type": "todo_list", "items": [{"text": "one", "completed": false}]}}),
        done(json!({"id": "1", "type": "mcp_tool_call", "server": "files", "tool": "read", "arguments": {"path": "a"},
            "result": {"content": [{"type": "text", "text": "42"}]}, "error": null, "status": "completed"})),
        done(json!({"id": "2", "type": "mcp_tool_call", "server": "files", "tool": "read", "arguments": {"path": "b"},
            "result": null, "error": {"message": "no such file"}, "status": "failed"})),
        done(json!({"id": "3", "type": "web_search", "query": "weather"})),
        done(
            json!({"id": "4", "type": "command_execution", "command": "rm -rf /", "aggregated_output": "", "exit_code": null, "status": "declined"}),
        ),
        done(
            json!({"id": "5", "type": "file_change", "changes": [{"path": "a", "kind": "delete"}], "status": "completed"}),
        ),
        done(json!({"id": "6", "type": "error", "message": "a warning"})),
        json!({"type": "turn.completed", "usage": {"input_tokens": 3, "cached_input_tokens": 1, "output_tokens": 2}}),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let trace = trace(built_in("codex"), &text.join("\n"));
    laws::assert_lawful(&trace);
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots/json_stream"}, {
        insta::assert_snapshot!("codex-items", trace);
    });
}

#[test]
fn a_sub_agent_of_qwen_speaks_under_the_call_that_started_it() {
    let lines = [
        json!({"type": "assistant", "parent_tool_use_id": null, "message": {"content": [{"type": "tool_use", "id": "t", "name": "agent", "input": {"prompt": "look"}}]}}),
        json!({"type": "user", "parent_tool_use_id": "t", "message": {"role": "user", "content": [{"type": "text", "text": "look"}]}}),
        json!({"type": "assistant", "parent_tool_use_id": "t", "message": {"content": [{"type": "tool_use", "id": "i", "name": "read_file", "input": {"path": "a"}}]}}),
        json!({"type": "user", "parent_tool_use_id": "t", "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "is_error": false, "content": "42"}]}}),
        json!({"type": "user", "parent_tool_use_id": null, "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "is_error": false, "content": "it is 42"}]}}),
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "42.", "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
            "permission_denials": [{"tool_use_id": "nobody"}]}),
    ];
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let trace = trace(built_in("qwen-stream"), &text.join("\n"));
    laws::assert_lawful(&trace);
    let events = events(&trace);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind && event["parent"] == "t").count();
    assert_eq!((of("tool_call"), of("tool_result"), of("message")), (1, 1, 1), "{trace}");
    assert_eq!(events.last().unwrap()["output"], "42.");
}

#[test]
fn the_model_of_a_session_is_the_one_that_answers_for_the_main_agent() {
    let effective = |harness: &str, lines: &[Value]| {
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let trace = trace(built_in(harness), &text.join("\n"));
        let header: Value = serde_json::from_str(trace.lines().next().unwrap()).unwrap();
        header["model"]["effective"].clone()
    };
    // Another model replaced it.
    let begun = json!({"type": "system", "subtype": "init", "qwen_code_version": "1", "model": "first", "cwd": "/w"});
    let data = json!({"fromModel": "first", "toModel": "other"});
    let replaced = json!({"type": "system", "subtype": "model_fallback", "data": data});
    assert_eq!(effective("qwen-stream", std::slice::from_ref(&begun)), "first");
    assert_eq!(effective("qwen-stream", &[begun, replaced]), "other");
    // A sub-agent has its own.
    let said = |model: &str, parent: Value| {
        let data = json!({"content": "x", "messageId": model, "model": model, "parentToolCallId": parent});
        json!({"type": "assistant.message", "id": model, "parentId": null, "data": data})
    };
    assert_eq!(effective("copilot-stream", &[said("main", Value::Null), said("mini", json!("c"))]), "main");
}

#[test]
fn a_call_that_codex_reports_on_standard_error_is_denied_or_told() {
    let printed = |line: &str| json!({"at_ms": 2, "dir": "stderr", "line": line}).to_string();
    let begun = json!({"type": "thread.started", "thread_id": "t"}).to_string();
    let item = json!({"id": "0", "type": "agent_message", "text": "done"});
    let said = json!({"type": "item.completed", "item": item}).to_string();
    let refused = r#"exec_command failed: CreateProcess { message: "Rejected(\"`/bin/bash -lc 'rm -rf \\\"keep\\\"'` rejected: not permitted\")" }"#;
    let from = "2026-11-29T10:16:38.066259Z ERROR codex_core::tools::router: error=";
    let log = [
        json!({"at_ms": 1, "dir": "recv", "line": begun}).to_string(),
        printed(&format!("{from}{refused}")),
        printed("2026-11-29T10:16:39.000000Z ERROR codex_core::client: error=slow"),
        json!({"at_ms": 3, "dir": "recv", "line": said}).to_string(),
        printed(&format!("{from}unable to locate image at `/w/a.png`: No such file or directory (os error 2)")),
        json!({"at_ms": 4, "dir": "exit", "line": "{\"code\":0,\"signal\":null}"}).to_string(),
    ];
    let shown = trace(built_in("codex"), &log.join("\n"));
    laws::assert_lawful(&shown);
    let all = events(&shown);
    let of = |kind: &str| all.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<Value>>();
    assert_eq!(of("tool_call")[0]["input"]["command"], "/bin/bash -lc 'rm -rf \"keep\"'", "{shown}");
    assert_eq!((of("tool_call").len(), &of("tool_result")[0]["status"]), (1, &json!("denied")), "{shown}");
    let notices: Vec<Value> = of("notice").iter().map(|notice| json!([notice["code"], notice["lost"]])).collect();
    assert_eq!(notices, [json!(["agent_error", null])], "{shown}");
}

#[test]
fn a_patch_of_codex_that_does_not_fit_is_a_failed_edit_and_other_hidden_calls_are_lost() {
    let error = |text: &str| {
        let line = format!("2026-11-29T10:16:38.066259Z ERROR codex_core::tools::router: error={text}");
        json!({"at_ms": 1, "dir": "stderr", "line": line}).to_string()
    };
    let log = [
        json!({"at_ms": 1, "dir": "recv", "line": "{\"type\":\"thread.started\",\"thread_id\":\"t\"}"}).to_string(),
        error("apply_patch verification failed: Failed to find expected lines in /w/a b.txt:"),
        error("apply_patch verification failed: Failed to find context 'x in y' in /w/b.rs"),
        error("apply_patch verification failed: Failed to read file to update /w/c.rs: No such file (os error 2)"),
        error("apply_patch verification failed: invalid hunk at line 2, '*** Foo"),
        error("unsupported call: frobnicate"),
    ];
    let shown = trace(built_in("codex"), &log.join("\n"));
    laws::assert_lawful(&shown);
    let all = events(&shown);
    let calls: Vec<Value> =
        only(&all, "tool_call").iter().map(|it| json!([it["kind"], it["input"]["paths"][0]])).collect();
    let edits = ["/w/a b.txt", "/w/b.rs", "/w/c.rs", ""].map(|path| json!(["edit", path]));
    assert_eq!(calls, edits, "{shown}");
    assert!(only(&all, "tool_result").iter().all(|it| it["status"] == "error"), "{shown}");
    let notices: Vec<Value> = only(&all, "notice").iter().map(|it| json!([it["code"], it["lost"]])).collect();
    assert_eq!(notices, [json!(["agent_error", "call"])], "{shown}");
}

#[test]
fn an_old_codex_may_hide_a_call_that_failed_before_it_began() {
    for (version, is_lost) in [("0.104.0", true), ("0.133.1", true), ("0.134.0", false), ("0.169.0", false)] {
        let printed = json!({"event": "agent_version", "name": "codex", "version": version}).to_string();
        let item = json!({"id": "0", "type": "agent_message", "text": "done"});
        let usage = json!({"input_tokens": 3, "cached_input_tokens": 0, "output_tokens": 2});
        let said = [json!({"type": "item.completed", "item": item}), json!({"type": "turn.completed", "usage": usage})];
        let engine = json!({"at_ms": 0, "dir": "engine", "line": printed}).to_string();
        let recv = said.map(|line| json!({"at_ms": 1, "dir": "recv", "line": line.to_string()}).to_string());
        let exit = json!({"at_ms": 2, "dir": "exit", "line": "{\"code\":0,\"signal\":null}"}).to_string();
        let log: Vec<String> = std::iter::once(engine).chain(recv).chain([exit]).collect();
        let shown = trace(built_in("codex"), &log.join("\n"));
        laws::assert_lawful(&shown);
        let is_told = |event: &Value| event["code"] == "unshown_action" && event["lost"] == "call";
        assert_eq!(events(&shown).iter().any(is_told), is_lost, "{version}: {shown}");
    }
}

#[test]
fn a_stream_that_shows_calls_when_they_have_ended_may_lack_one_if_it_is_cut_off() {
    let begins = json!({"type": "step_start", "sessionID": "s", "part": {"messageID": "m"}});
    let tokens = json!({"total": 3, "input": 2, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    let part = json!({"messageID": "m", "reason": "tool-calls", "cost": 0.0, "tokens": tokens});
    let ends = json!({"type": "step_finish", "sessionID": "s", "part": part});
    let asked = json!({"type": "message", "role": "user", "id": "u", "content": [{"type": "text", "text": "Do it."}]});
    let said = json!({"role": "assistant", "content": "Done."});
    for (harness, lines, code, is_lost) in [
        ("opencode-stream", vec![begins.clone()], Value::Null, true),
        ("opencode-stream", vec![begins, ends], Value::Null, false),
        ("vibe-stream", vec![asked], Value::Null, true),
        ("vibe-stream", vec![], json!(1), false),
        ("kimi-stream", vec![], Value::Null, true),
        ("kimi-stream", vec![said], json!(0), false),
    ] {
        let wire = |dir: &str, line: &Value| json!({"at_ms": 1, "dir": dir, "line": line.to_string()}).to_string();
        let exit = json!({"code": code, "signal": code.is_null().then_some(15)});
        let log: Vec<String> = lines.iter().map(|line| wire("recv", line)).chain([wire("exit", &exit)]).collect();
        let shown = trace(built_in(harness), &log.join("\n"));
        laws::assert_lawful(&shown);
        let is_told = |event: &Value| event["code"] == "unshown_action" && event["lost"] == "call";
        assert_eq!(events(&shown).iter().any(is_told), is_lost, "{harness}: {shown}");
    }
}

#[test]
fn what_codex_types_into_a_shell_is_not_shown() {
    for (command, is_lost) in [
        ("/bin/bash -lc bash", true),
        ("/bin/bash -lc 'python3 -i'", true),
        ("/usr/bin/zsh -lc '/bin/sh'", true),
        ("/bin/bash -lc 'python3 -'", true),
        ("/bin/bash -lc 'env bash'", true),
        ("/bin/bash -lc 'sudo -s'", true),
        ("/bin/bash -lc 'cd /w && bash'", true),
        ("/bin/bash -lc 'cat | sh'", true),
        ("/bin/bash -lc 'sqlite3 app.db'", true),
        ("/bin/bash -lc \"sqlite3 app.db 'select 1'\"", false),
        ("/bin/bash -lc \"python3 - <<'E'\nprint(1)\nE\"", false),
        ("/bin/bash -lc 'cargo test'", false),
        ("/bin/bash -lc 'python3 run.py'", false),
    ] {
        let item = json!({"id": "0", "type": "command_execution", "command": command, "status": "in_progress"});
        let shown = trace(built_in("codex"), &json!({"type": "item.started", "item": item}).to_string());
        laws::assert_lawful(&shown);
        let is_told = |event: &Value| event["code"] == "unshown_action" && event["lost"] == "call";
        assert_eq!(events(&shown).iter().any(is_told), is_lost, "{command}: {shown}");
    }
    // A command that was declined, or whose program does not exist, read nothing.
    for (status, code, output, is_lost) in [
        ("declined", Value::Null, "", false),
        ("failed", json!(127), "/bin/bash: line 1: psql: command not found\n", false),
        ("failed", json!(127), "psql (16.1)\nx: command not found\n", true),
        ("completed", json!(0), "", true),
    ] {
        let item = json!({"id": "0", "type": "command_execution", "command": "/bin/bash -lc psql", "status": status,
            "aggregated_output": output, "exit_code": code});
        let lines = ["item.started", "item.completed"].map(|when| json!({"type": when, "item": item}).to_string());
        let shown = trace(built_in("codex"), &lines.join("\n"));
        let is_told = |event: &Value| event["code"] == "unshown_action" && event["lost"] == "call";
        assert_eq!(events(&shown).iter().any(is_told), is_lost, "{status}: {shown}");
    }
}

#[test]
fn a_commit_of_codex_without_an_editor_shows_that_nothing_was_typed() {
    let waits = "hint: Waiting for your editor to close the file... \u{1b}[?1049h";
    for (command, code, output, is_lost) in [
        ("git add -A && git commit", 1, "On branch main\nnothing to commit, working tree clean\n", false),
        ("git rebase -i HEAD~2", 1, "error: Terminal is dumb, but EDITOR unset\n", false),
        // The environment names an editor that ends by itself.
        ("git commit --amend", 0, "[main 1a2b3c4] Add it\n", false),
        ("git commit", 0, waits, true),
        ("git commit", 1, "\u{1b}[?1049h\u{1b}[2J", true),
        ("git commit", 0, "", true),
        ("git commit 2>/dev/null", 1, "nothing to commit, working tree clean\n", true),
        ("git commit; vim a", 1, "nothing to commit, working tree clean\n", true),
    ] {
        let (command, status) = (format!("/bin/bash -lc '{command}'"), if code == 0 { "completed" } else { "failed" });
        let item = json!({"id": "0", "type": "command_execution", "command": command, "status": status,
            "aggregated_output": output, "exit_code": code});
        let lines = ["item.started", "item.completed"].map(|when| json!({"type": when, "item": item}).to_string());
        let shown = trace(built_in("codex"), &lines.join("\n"));
        let is_told = |event: &Value| event["code"] == "unshown_action" && event["lost"] == "call";
        assert_eq!(events(&shown).iter().any(is_told), is_lost, "{command}: {shown}");
    }
}

#[test]
fn a_message_of_vibe_after_a_call_that_is_not_shown_begins_the_answer() {
    let id = |kind: &str, message: u8| format!("{kind}-{message:08}-0000-0000-0000-000000000000");
    let says = |message: u8, text: &str, outcome: &str| {
        json!({"type": "message", "role": "assistant", "id": id("assistant", message), "generationStatus": "completed",
            "content": [{"type": "text", "text": text}], "outcome": {"type": outcome}})
    };
    let thinks =
        |message: u8| json!({"type": "reasoning", "id": format!("{}-0", id("reasoning", message)), "text": "hm"});
    let calls = json!({"type": "effect", "id": "a", "detail": {"toolName": "file_system.bash", "display": {"summary": "ls"},
        "input": {"command": "ls"}}, "state": {"status": "completed", "outputText": "a", "display": {"success": true}}});
    let done = || says(2, "Done.", "committed");
    for (lines, unshown) in [
        (vec![says(1, "First.", "committed"), done()], 1),
        (vec![thinks(1), thinks(2), done()], 1),
        (vec![thinks(1), says(1, "First.", "committed"), calls, thinks(2), done()], 0),
        (vec![says(1, "Fir", "discarded"), done()], 0),
    ] {
        let events = events_of("vibe-stream", &lines);
        let is_unshown = |event: &&Value| event["code"] == "unshown_action" && event["lost"] == "call";
        assert_eq!(events.iter().filter(is_unshown).count(), unshown, "{events:?}");
        assert_eq!(events.last().unwrap()["output"], "Done.", "{events:?}");
    }
}

#[test]
fn the_answer_of_codex_has_all_messages_after_its_last_call() {
    let says = |when: &str, id: &str, text: &str| json!({"type": format!("item.{when}"), "item": {"id": id, "type": "agent_message", "text": text}});
    let lines = [
        json!({"type": "thread.started", "thread_id": "t"}),
        json!({"type": "turn.started"}),
        // One answer of its model may have several messages.
        says("completed", "item_0", "The password is hunter2."),
        // Its text may grow.
        says("started", "item_1", "That"),
        says("completed", "item_1", "That is all."),
        json!({"type": "turn.completed", "usage": {"input_tokens": 3, "output_tokens": 2}}),
    ];
    let events = events_of("codex", &lines);
    assert_eq!(only(&events, "message")[0]["text"], "The password is hunter2.\n\nThat is all.");
    assert_eq!(events.last().unwrap()["output"], "The password is hunter2.\n\nThat is all.");
    // A request that is repeated gives another answer.
    let error = json!({"type": "error", "message": "Reconnecting... 1/5 (stream disconnected before completion)"});
    let repeated = [&lines[..3], &[error][..], &lines[3..]].concat();
    assert_eq!(events_of("codex", &repeated).last().unwrap()["output"], "That is all.");
    // The tokens of the first request are missing, unless the service refused it.
    for (cause, is_missing) in [
        ("", true),
        (" (stream disconnected before completion: stream closed before response.completed)", true),
        (" (unexpected status 401 Unauthorized: invalid API key)", false),
        (" (exceeded retry limit, last status: 429 Too Many Requests)", false),
        (" (Selected model is at capacity. Please try a different model.)", false),
    ] {
        let error = json!({"type": "error", "message": format!("Reconnecting... 1/5{cause}")});
        let all = events_of("codex", &[&lines[..2], &[error.clone(), error], &lines[2..]].concat());
        let told = all.iter().filter(|it| it["code"] == "usage_incomplete").count();
        assert_eq!(told, usize::from(is_missing), "{cause}");
    }
}

#[test]
fn a_text_of_opencode_after_a_step_with_calls_begins_the_answer() {
    let line = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s", "part": part});
    let tokens = json!({"total": 3, "input": 2, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}});
    let begins = |message: &str| line("step_start", json!({"messageID": message}));
    let says = |message: &str, text: &str| line("text", json!({"id": text, "messageID": message, "text": text}));
    let ends = |message: &str, reason: &str| {
        line("step_finish", json!({"messageID": message, "reason": reason, "cost": 0.0, "tokens": tokens}))
    };
    let state = json!({"status": "completed", "input": {"tool": "NoSuchTool", "error": "no such tool"},
        "output": "The arguments are invalid.", "title": "Invalid Tool", "metadata": {"truncated": false}});
    let lines = [
        begins("a"),
        // The call comes before the text of its message.
        line("tool_use", json!({"callID": "c", "tool": "invalid", "messageID": "a", "state": state})),
        says("a", "First."),
        ends("a", "tool-calls"),
        begins("b"),
        says("b", "Finished."),
        says("b", "Really."),
        ends("b", "stop"),
    ];
    let events = events_of("opencode-stream", &lines);
    assert_eq!(only(&events, "tool_result")[0]["status"], "error");
    assert_eq!(events.last().unwrap()["output"], "Finished.\n\nReally.");
}

/// The events of these lines, in a trace that keeps its laws.
fn events_of(harness: &str, lines: &[Value]) -> Vec<Value> {
    let text: Vec<String> = lines.iter().map(Value::to_string).collect();
    let trace = trace(built_in(harness), &text.join("\n"));
    laws::assert_lawful(&trace);
    events(&trace)
}

fn only<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == kind).collect()
}

/// The calls of a trace, each with the call that started the sub-agent that makes it.
fn calls_with_parents(events: &[Value]) -> Vec<Value> {
    only(events, "tool_call").iter().map(|call| json!([call["call"], call["parent"]])).collect()
}

#[test]
fn what_copilot_had_begun_to_say_before_it_asked_its_model_again_is_left_out() {
    let piece = |id: &str, text: &str| json!({"type": "assistant.message_delta", "data": {"messageId": id, "deltaContent": text}});
    let call = json!({"type": "assistant.tool_call_delta", "data": {"toolCallId": "c", "toolName": "bash",
        "inputDelta": "{\"command\": \"run_tests\"}"}});
    let retry = json!({"type": "assistant.turn_retry", "data": {"turnId": "0", "reason": "streaming_error"}});
    let whole =
        json!({"type": "assistant.message", "data": {"messageId": "n", "content": "It is 42.", "toolRequests": []}});
    let lines = [
        piece("m", "The an"),
        piece("m", "swer"),
        call,
        retry,
        piece("n", "It is"),
        whole,
        json!({"type": "result", "exitCode": 0}),
    ];
    let all = events_of("copilot-stream", &lines);
    assert_eq!(all.last().unwrap()["output"], "It is 42.");
    assert!(only(&all, "tool_call").is_empty(), "{all:?}");
    let notices: Vec<Value> = only(&all, "notice").iter().map(|it| json!([it["code"], it["lost"]])).collect();
    assert_eq!(notices, [json!(["discarded_message", null])]);
    // Without an end, the trace shows as much of the message as there is.
    let cut = events_of("copilot-stream", &lines[..2]);
    assert_eq!((&cut[0]["text"], &cut[1]["reason"]), (&json!("The answer"), &json!("crashed")));
}

#[test]
fn a_command_that_goes_on_or_was_stopped_did_not_succeed() {
    let copilot = |more: &[Value]| {
        let mut lines = vec![
            json!({"type": "tool.execution_start", "data": {"toolCallId": "a", "toolName": "bash",
                "arguments": {"command": "run_tests", "mode": "async"}}}),
            json!({"type": "tool.execution_complete", "data": {"toolCallId": "a", "success": true,
                "result": {"content": "<command started in background with shellId: b>"},
                "toolTelemetry": {"properties": {"executionMode": "async"}, "metrics": {}}}}),
        ];
        lines.extend_from_slice(more);
        lines.push(json!({"type": "result", "exitCode": 0}));
        ends("copilot-stream", &lines).0
    };
    let ended = |shell: &str, code: i64| {
        json!({"type": "system.notification", "data": {"content": "x",
            "kind": {"type": "shell_completed", "shellId": shell, "exitCode": code}}})
    };
    let read = [
        json!({"type": "tool.execution_start", "data": {"toolCallId": "r", "toolName": "read_bash", "arguments": {"shellId": "b"}}}),
        json!({"type": "tool.execution_complete", "data": {"toolCallId": "r", "success": true,
            "result": {"content": "3 failed\n<shellId: b completed with exit code 7>"},
            "toolTelemetry": {"properties": {}, "metrics": {"exit_code": 7}}}}),
    ];
    let sync = |telemetry: Value, content: &str| {
        let lines = [
            json!({"type": "tool.execution_start", "data": {"toolCallId": "a", "toolName": "bash", "arguments": {"command": "ls"}}}),
            json!({"type": "tool.execution_complete", "data": {"toolCallId": "a", "success": true,
                "result": {"content": content}, "toolTelemetry": telemetry}}),
            json!({"type": "result", "exitCode": 0}),
        ];
        ends("copilot-stream", &lines).0
    };
    // Earlier versions have no exit code beside the result.
    let telemetry = |metrics: Value| json!({"properties": {"executionMode": "sync"}, "metrics": metrics});
    assert_eq!(sync(telemetry(json!({})), "a\n<shellId: 0 completed with exit code 0>"), ["ok"]);
    assert_eq!(sync(telemetry(json!({"exit_code": 3})), "a\n<shellId: 0 completed with exit code 3>"), ["error 3"]);
    assert_eq!(sync(telemetry(json!({})), "a\n<command with shellId: 0 is still running>"), ["unfinished"]);
    assert_eq!(sync(json!({}), "a"), ["ok"]);
    assert_eq!(copilot(&[]), ["unfinished"]);
    assert_eq!(copilot(&[ended("other", 7)]), ["unfinished"]);
    assert_eq!(copilot(&[ended("b", 7)]), ["error 7"]);
    assert_eq!(copilot(&[ended("b", 0)]), ["ok 0"]);
    assert_eq!(copilot(&read), ["error 7", "ok"]);
    assert_eq!(copilot(&[&[ended("b", 7)][..], &read[..]].concat()), ["error 7", "ok"]);
    let opencode = |output: &str| {
        let state = json!({"status": "completed", "input": {"command": "run_tests"}, "output": output,
            "metadata": {"exit": null, "output": output}});
        let part = json!({"messageID": "m", "callID": "c", "tool": "bash", "state": state});
        ends("opencode-stream", &[json!({"type": "tool_use", "sessionID": "s", "part": part})]).0
    };
    let stopped = "a\n\n<shell_metadata>\nshell tool terminated command after exceeding timeout 700 ms. Retry.\n</shell_metadata>";
    assert_eq!(opencode(stopped), ["error"]);
    let droid = |output: &str| {
        let lines = [
            json!({"type": "tool_call", "id": "a", "messageId": "m", "toolName": "Execute", "parameters": {"command": "run_tests"}}),
            json!({"type": "tool_result", "id": "a", "toolId": "Execute", "isError": false, "value": output}),
        ];
        ends("droid-stream", &lines).0
    };
    assert_eq!(droid("Command timed out after 1 seconds. Consider increasing the timeout."), ["error"]);
    assert_eq!(droid("Background process started (PID: 3097)\nCommand: run_tests"), ["unfinished"]);
    assert_eq!(droid("Command timed out after 1 seconds.\n\n[Process exited with code 0]"), ["ok 0"]);
    let vibe = |id: &str, tool: &str, status: &str, code: Value| {
        json!({"type": "effect", "id": id, "detail": {"toolName": tool, "display": {"summary": tool}, "input": {}},
            "state": {"status": "completed", "outputText": "", "display": {"success": true},
                "output": {"processId": "p", "status": status, "exitCode": code}}})
    };
    let starts = vibe("a", "process.start", "running", Value::Null);
    let reads = vibe("b", "process.output", "running", Value::Null);
    assert_eq!(ends("vibe-stream", &[starts.clone(), reads]).0, ["ok", "unfinished"]);
    let ended = vibe("b", "process.output", "exited", json!(7));
    assert_eq!(ends("vibe-stream", &[starts, ended]).0, ["ok", "error 7"]);
}

#[test]
fn the_summary_of_a_compaction_of_opencode_is_no_answer_and_ends_nothing() {
    let line = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s", "part": part});
    let text = |id: &str, text: &str| line("text", json!({"messageID": "m", "id": id, "type": "text", "text": text}));
    let begins = line("step_start", json!({"messageID": "m"}));
    let ends = line(
        "step_finish",
        json!({"messageID": "m", "reason": "stop", "cost": 0.0,
            "tokens": {"total": 3, "input": 2, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}}),
    );
    let goes_on = line(
        "text",
        json!({"messageID": "n", "id": "p", "type": "text", "text": "Continue if you have next steps.",
            "synthetic": true, "metadata": {"compaction_continue": true}}),
    );
    let lines =
        [begins.clone(), text("a", "the summary"), ends.clone(), goes_on, begins, text("b", "the answer"), ends];
    let all = events_of("opencode-stream", &lines);
    let messages: Vec<&Value> = only(&all, "message").into_iter().map(|message| &message["text"]).collect();
    assert_eq!(messages, ["the answer"]);
    assert_eq!(all.last().unwrap()["output"], "the answer");
    assert_eq!(only(&all, "usage").len(), 2, "{all:?}");
    assert_eq!(all.last().unwrap()["reason"], "end_turn");
    let losses = |all: &[Value]| -> Vec<Value> {
        only(all, "notice").iter().map(|notice| json!([notice["code"], notice["lost"]])).collect()
    };
    assert_eq!(losses(&all), [json!(["compact_summary", null])]);
    assert!(only(&all, "notice")[0]["text"].as_str().unwrap().contains(": the summary"), "{all:?}");
    // An agent that was killed after the summary did not answer, and its message is not the agent's.
    let stays = [json!(["compact_summary", null]), json!(["withdrawn_message", "speaker"])];
    let killed = events_of("opencode-stream", &lines[..4]);
    assert_eq!((losses(&killed), &killed.last().unwrap()["reason"]), (stays.to_vec(), &json!("error")));
    // The next message is another event.
    let call = json!({"messageID": "n", "callID": "c", "tool": "bash",
        "state": {"status": "completed", "input": {"command": "ls"}, "output": "a", "metadata": {"exit": 0}}});
    let with_call = [&lines[..4], &[line("tool_use", call)], &lines[4..]].concat();
    let all = events_of("opencode-stream", &with_call);
    let messages: Vec<&Value> = only(&all, "message").into_iter().map(|message| &message["text"]).collect();
    assert_eq!((messages, losses(&all)), (vec![&json!("the summary"), &json!("the answer")], stays.to_vec()));
}

#[test]
fn a_sub_agent_in_the_background_that_failed_contradicts_the_result_of_its_call() {
    let losses = |all: &[Value]| -> Vec<Value> {
        let lost = only(all, "notice").into_iter().filter(|notice| notice["lost"] == "outcome");
        lost.map(|notice| notice["code"].clone()).collect()
    };
    let line = |kind: &str, agent: Value, data: Value| json!({"type": kind, "agentId": agent, "data": data});
    let called = line(
        "tool.execution_start",
        Value::Null,
        json!({"toolCallId": "t", "toolName": "task", "arguments": {"prompt": "look"}}),
    );
    let started = line("subagent.started", json!("k"), json!({"toolCallId": "t", "agentName": "kid"}));
    let begun = line(
        "tool.execution_complete",
        Value::Null,
        json!({"toolCallId": "t", "success": true, "result": {"content": "started"}}),
    );
    let ended = |how: &str| line(how, json!("k"), json!({"toolCallId": "t", "error": "400 bad"}));
    let end = json!({"type": "result", "exitCode": 0});
    let copilot = |between: &[Value]| {
        let all = events_of(
            "copilot-stream",
            &[&[called.clone(), started.clone()][..], between, std::slice::from_ref(&end)].concat(),
        );
        (only(&all, "tool_result")[0]["status"].clone(), losses(&all))
    };
    let (ok, none) = (json!("ok"), Vec::<Value>::new());
    assert_eq!(copilot(&[begun.clone(), ended("subagent.completed")]), (ok.clone(), none.clone()));
    assert_eq!(copilot(&[begun.clone(), ended("subagent.failed")]), (ok.clone(), vec![json!("task_failed")]));
    assert_eq!(copilot(&[ended("subagent.failed"), begun]), (json!("error"), none.clone()));
    let block =
        |kind: &str, block: Value| json!({"type": kind, "parent_tool_use_id": null, "message": {"content": [block]}});
    let qwen = |status: &str| {
        let launched = "Background agent launched successfully.";
        let all = events_of(
            "qwen-stream",
            &[
                block("assistant", json!({"type": "tool_use", "id": "c", "name": "agent", "input": {"prompt": "x"}})),
                block("user", json!({"type": "tool_result", "tool_use_id": "c", "content": launched})),
                json!({"type": "system", "subtype": "task_notification",
                    "data": {"task_id": "t", "tool_use_id": "c", "status": status}}),
            ],
        );
        (only(&all, "tool_result")[0]["status"].clone(), losses(&all))
    };
    assert_eq!(qwen("completed"), (ok.clone(), none));
    assert_eq!(qwen("failed"), (ok.clone(), vec![json!("task_failed")]));
    assert_eq!(qwen("cancelled"), (ok, vec![json!("task_stopped")]));
}

#[test]
fn the_calls_of_a_sub_agent_of_copilot_are_its_own_although_some_lines_name_only_the_agent() {
    let line = |kind: &str, agent: Value, data: Value| json!({"type": kind, "agentId": agent, "data": data});
    let task = json!({"toolCallId": "t", "toolName": "task", "arguments": {"prompt": "look"}});
    let piece = json!({"toolCallId": "c", "toolName": "bash", "inputDelta": "{\"command\": \"ls\"}"});
    let call = json!({"toolCallId": "c", "toolName": "bash", "arguments": {"command": "ls"}});
    let result = |id: &str| json!({"toolCallId": id, "success": true, "result": {"content": "x"}});
    let said = |id: &str, text: &str| json!({"messageId": id, "content": text, "toolRequests": []});
    let all = events_of(
        "copilot-stream",
        &[
            line("user.message", Value::Null, json!({"content": "Do it."})),
            line("tool.execution_start", Value::Null, task),
            line("subagent.started", json!("k"), json!({"toolCallId": "t", "agentName": "kid"})),
            line("user.message", json!("k"), json!({"content": "look"})),
            line("assistant.tool_call_delta", json!("k"), piece),
            line("tool.execution_start", json!("k"), call),
            line("tool.execution_complete", json!("k"), result("c")),
            line("assistant.message", json!("k"), said("m", "I looked.")),
            line("tool.execution_complete", Value::Null, result("t")),
            line("assistant.message", Value::Null, said("n", "Done.")),
            json!({"type": "result", "exitCode": 0}),
        ],
    );
    assert_eq!(calls_with_parents(&all), [json!(["t", null]), json!(["c", "t"])]);
    let said: Vec<Value> =
        only(&all, "message").iter().map(|it| json!([it["role"], it["text"], it["parent"]])).collect();
    let expected = [
        json!(["user", "Do it.", null]),
        json!(["user", "look", "t"]),
        json!(["agent", "I looked.", "t"]),
        json!(["agent", "Done.", null]),
    ];
    assert_eq!(said, expected);
    assert_eq!(all.last().unwrap()["output"], "Done.");
}

#[test]
fn the_hooks_of_cline_tell_whose_calls_and_texts_they_are() {
    let hook = |name: &str, agent: &str, parent: Value| {
        let mut line = json!({"ts": "t", "type": "hook_event", "hookEventName": name, "agentId": agent});
        line["parentAgentId"] = parent;
        line
    };
    let event = |event: Value| json!({"ts": "t", "type": "agent_event", "event": event});
    let begins = |id: &str, tool: &str| {
        event(json!({"type": "content_start", "contentType": "tool", "toolName": tool, "toolCallId": id, "input": {}}))
    };
    let ends = |id: &str| {
        event(json!({"type": "content_end", "contentType": "tool", "toolName": "x", "toolCallId": id, "output": "x"}))
    };
    let says = |text: &str| event(json!({"type": "content_end", "contentType": "text", "text": text}));
    let main = Value::Null;
    let all = events_of(
        "cline-stream",
        &[
            hook("agent_start", "a", main.clone()),
            hook("tool_call", "a", main.clone()),
            begins("s", "spawn_agent"),
            hook("agent_start", "k", json!("a")),
            says("I look."),
            hook("tool_call", "k", json!("a")),
            begins("c", "run_commands"),
            hook("tool_result", "k", json!("a")),
            ends("c"),
            hook("agent_end", "k", json!("a")),
            hook("tool_result", "a", main.clone()),
            ends("s"),
            hook("tool_call", "a", main),
            begins("d", "run_commands"),
            ends("d"),
            says("Done."),
        ],
    );
    assert_eq!(calls_with_parents(&all), [json!(["s", null]), json!(["c", "s"]), json!(["d", null])]);
    let said: Vec<Value> = only(&all, "message").iter().map(|it| json!([it["text"], it["parent"]])).collect();
    assert_eq!(said, [json!(["I look.", "s"]), json!(["Done.", null])]);
}

#[test]
fn a_tool_that_qwen_does_not_declare_to_its_model_is_called_by_its_own_name() {
    let shown = |input: Value| {
        let calls = json!({"type": "tool_use", "id": "a", "name": "tool_call", "input": input});
        let stream = json!({"type": "assistant", "message": {"content": [calls]}, "parent_tool_use_id": null});
        let init = json!({"type": "system", "subtype": "init", "qwen_code_version": "1", "model": "m", "cwd": "/w"});
        let log = [init, stream].map(|line| line.to_string()).join("\n");
        let all = events(&trace(built_in("qwen-stream"), &log));
        let call = only(&all, "tool_call")[0];
        (call["kind"].clone(), call["name"].clone(), call["input"].clone())
    };
    let rm = json!({"command": "rm -f a"});
    let monitor = shown(json!({"name": "monitor", "arguments": rm}));
    assert_eq!(monitor, (json!("execute"), json!("monitor"), rm.clone()));
    let as_text = shown(json!({"name": "monitor", "arguments": rm.to_string()}));
    assert_eq!(as_text, (json!("execute"), json!("monitor"), rm.clone()));
    let of_server = shown(json!({"name": "mcp__Files__Remove", "arguments": {"path": "a"}}));
    assert_eq!(of_server, (json!("other"), json!("mcp__Files__Remove"), json!({"path": "a"})));
    // It calls the tool `monitor`, too.
    let shouted = shown(json!({"name": "MONITOR", "arguments": rm}));
    assert_eq!(shouted, (json!("other"), Value::Null, rm));
}

#[test]
fn the_streams_of_other_agents_show_refusals_and_commands_that_go_on() {
    let qwen = |name: &str, output: &str, more: &[Value]| {
        let mut lines = vec![
            json!({"type": "assistant", "message": {"content": [
                {"type": "tool_use", "id": "a", "name": name, "input": {"command": "run_tests"}}]}, "parent_tool_use_id": null}),
            json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "a", "is_error": false, "content": output}]}, "parent_tool_use_id": null}),
        ];
        lines.extend_from_slice(more);
        lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "permission_denials": [],
            "usage": {"input_tokens": 1, "output_tokens": 1}, "result": "Done."}));
        ends("qwen-stream", &lines).0
    };
    let news = |call: &str, status: &str| {
        let data = json!({"task_id": "mon_1", "tool_use_id": call, "status": status});
        json!({"type": "system", "subtype": "task_notification", "data": data})
    };
    let monitor = "Monitor started.\nid: mon_1\ncommand: run_tests";
    assert_eq!(qwen("run_shell_command", "Background shell started.\nid: bg_1\npid: 7", &[]), ["unfinished"]);
    assert_eq!(qwen("run_shell_command", "Background shell bg_1 started (pid 7).", &[]), ["unfinished"]);
    assert_eq!(qwen("run_shell_command", "Promoted to background: bg_1", &[]), ["unfinished"]);
    assert_eq!(qwen("monitor", "Monitor started: m (mon_1)", &[news("a", "failed")]), ["error"]);
    assert_eq!(qwen("monitor", "Monitor rejected: too many concurrent monitors.", &[]), ["error"]);
    assert_eq!(qwen("run_shell_command", "Command: run_tests\nDirectory: (root)\nStdout: id: bg_1", &[]), ["ok"]);
    assert_eq!(qwen("monitor", monitor, &[news("a", "running")]), ["unfinished"]);
    assert_eq!(qwen("monitor", monitor, &[news("a", "failed")]), ["error"]);
    assert_eq!(qwen("monitor", monitor, &[news("b", "failed"), news("a", "completed")]), ["ok"]);
    let opencode = |error: &str| {
        let state = json!({"status": "error", "input": {"command": "git push"}, "error": error, "metadata": {}});
        let part = json!({"messageID": "m", "callID": "c", "tool": "bash", "state": state});
        ends("opencode-stream", &[json!({"type": "tool_use", "sessionID": "s", "part": part})]).0
    };
    let rule = "The user has specified a rule which prevents you from using this specific tool call.";
    assert_eq!(opencode(&format!("{rule} Here are some of the relevant rules []")), ["denied"]);
    assert_eq!(opencode("Tool execution aborted"), ["cancelled"]);
    assert_eq!(opencode("git: Tool execution aborted"), ["error"]);
    let copilot = [
        json!({"type": "user.message", "data": {"content": "Keep working.", "source": "autopilot", "isAutopilotContinuation": true}}),
        json!({"type": "result", "exitCode": 0}),
    ];
    let all = events_of("copilot-stream", &copilot);
    assert!(only(&all, "message").is_empty() && all[0]["code"] == "synthetic_message", "{all:?}");
}

#[test]
fn the_answer_of_qwen_is_that_of_its_last_turn() {
    let line =
        |kind: &str, block: Value| json!({"type": kind, "parent_tool_use_id": null, "message": {"content": [block]}});
    let says = |text: &str| line("assistant", json!({"type": "text", "text": text}));
    let agent = json!({"type": "tool_use", "id": "c", "name": "agent", "input": {"prompt": "count"}});
    let launched =
        json!({"type": "tool_result", "tool_use_id": "c", "content": "Background agent launched successfully."});
    let news = json!({"type": "system", "subtype": "task_notification",
        "data": {"task_id": "t", "tool_use_id": "c", "status": "completed"}});
    let text = || line("user", json!({"type": "text", "text": "Background agent \"helper\" completed."}));
    for between in [vec![text(), news.clone()], vec![text()], vec![news]] {
        let mut lines =
            vec![line("assistant", agent.clone()), line("user", launched.clone()), says("I expect 42; I wait.")];
        lines.extend(between);
        lines.push(says("The helper found "));
        lines.push(says("nothing."));
        lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "result": "nothing.",
            "usage": {"input_tokens": 1, "output_tokens": 1}, "permission_denials": []}));
        let (_, stop) = ends("qwen-stream", &lines);
        assert_eq!(stop["output"], "The helper found \n\nnothing.", "{lines:#?}");
    }
}

#[test]
fn the_figures_of_a_session_of_cline_leave_its_sub_agents_out() {
    let event = |more: Value| json!({"type": "agent_event", "ts": 1, "event": more});
    let figures = |tool: &str| {
        let lines = [
            event(
                json!({"type": "content_start", "contentType": "tool", "toolCallId": "c", "toolName": tool, "input": {}}),
            ),
            event(json!({"type": "content_end", "contentType": "tool", "toolCallId": "c", "output": "ok"})),
            json!({"type": "run_result", "ts": 2, "finishReason": "completed", "text": "Done.", "usage": {"inputTokens": 3000,
                "outputTokens": 30, "cacheReadTokens": 0, "cacheWriteTokens": 0, "totalCost": 0.01}}),
        ];
        let all = events_of("cline-stream", &lines);
        let usage = only(&all, "usage").into_iter().find(|usage| usage["scope"] == "session").unwrap();
        usage["lower_bounds"].clone()
    };
    let bounds = figures("spawn_agent");
    for figure in ["input_tokens", "output_tokens", "cost_usd"] {
        assert!(bounds.as_array().unwrap().contains(&json!(figure)), "{bounds}");
    }
    assert_eq!(figures("read_files"), Value::Null);
}

#[test]
fn a_text_after_the_last_usage_of_a_session_that_was_cut_makes_the_totals_lower_bounds() {
    let cline = |event: Value| json!({"type": "agent_event", "ts": 1, "event": event});
    let says = |text: &str| cline(json!({"type": "content_start", "contentType": "text", "text": text}));
    let used = cline(
        json!({"type": "usage", "inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 0, "cacheWriteTokens": 0}),
    );
    let aborted = json!({"type": "run_aborted", "ts": 2, "message": "aborted"});
    let codes = |lines: &[Value]| {
        let all = events_of("cline-stream", lines);
        only(&all, "notice").into_iter().map(|notice| notice["code"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(codes(&[says("One."), used.clone(), says(" Two."), aborted.clone()]), ["usage_incomplete"]);
    assert_eq!(codes(&[says("One."), says(" Two."), used, aborted]), [""; 0]);
}

#[test]
fn a_sub_agent_of_copilot_in_the_background_is_shown_if_its_calls_follow() {
    let line = |kind: &str, agent: Value, data: Value| json!({"type": kind, "agentId": agent, "data": data});
    let task = json!({"toolCallId": "t", "toolName": "task", "arguments": {"prompt": "look", "mode": "background"}});
    let call = json!({"toolCallId": "c", "toolName": "bash", "arguments": {"command": "ls"}});
    let result = |id: &str| json!({"toolCallId": id, "success": true, "result": {"content": "x"}});
    let hidden = |shows: bool| {
        let mut lines = vec![
            line("user.message", Value::Null, json!({"content": "Do it."})),
            line("tool.execution_start", Value::Null, task.clone()),
            line("subagent.started", json!("k"), json!({"toolCallId": "t", "agentName": "kid"})),
            line("tool.execution_complete", Value::Null, result("t")),
        ];
        if shows {
            lines.push(line("tool.execution_start", json!("k"), call.clone()));
            lines.push(line("tool.execution_complete", json!("k"), result("c")));
        }
        lines.push(json!({"type": "result", "exitCode": 0}));
        let all = events_of("copilot-stream", &lines);
        only(&all, "notice").iter().filter(|notice| notice["code"] == "hidden_sub_agent").count()
    };
    assert_eq!((hidden(true), hidden(false)), (0, 1));
}

#[test]
fn an_answer_that_was_requested_again_does_not_count() {
    let usage =
        json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {"total": 0}});
    let says = |text: &str, reason: &str| {
        let message = json!({"role": "assistant", "model": "m", "usage": usage, "stopReason": reason,
            "content": [{"type": "text", "text": text}]});
        [json!({"type": "message_start", "message": message}), json!({"type": "message_end", "message": message})]
    };
    let end = json!({"type": "agent_end", "messages": []});
    let pi = |retry: Value| {
        let first = says("It is 41 bec", "error");
        [&first[..], &[end.clone(), retry], &says("It is 42.", "stop"), std::slice::from_ref(&end)].concat()
    };
    let qwen = |text: &str| json!({"type": "assistant", "parent_tool_use_id": null, "message": {"content": [{"type": "text", "text": text}]}});
    let retry =
        |keeps: bool| json!({"type": "system", "subtype": "retry", "data": {"reason": "retry", "preserveText": keeps}});
    let result = json!({"type": "result", "subtype": "success", "is_error": false, "result": "It is 42.", "permission_denials": [],
        "usage": {"input_tokens": 1, "output_tokens": 1}});
    let qwen_lines = [retry(false), qwen("It is 41 bec"), retry(false), qwen("It is 42."), result.clone()];
    for (harness, lines) in [
        ("pi", pi(json!({"type": "auto_retry_start", "attempt": 1}))),
        (
            "pi",
            pi(json!({"type": "compaction_end", "reason": "overflow", "result": {"summary": "s"}, "willRetry": true})),
        ),
        ("qwen-stream", qwen_lines.to_vec()),
    ] {
        let all = events_of(harness, &lines);
        assert_eq!(all.last().unwrap()["output"], "It is 42.", "{harness}: {all:?}");
        let texts: Vec<&Value> = only(&all, "message").iter().map(|it| &it["text"]).collect();
        assert_eq!(texts, ["It is 42."], "{harness}: {all:?}");
        assert!(all.iter().all(|it| it["lost"].is_null()), "{harness}: {all:?}");
        assert!(all.iter().any(|it| it["code"] == "discarded_message"), "{harness}: {all:?}");
    }
    // What came before the retry stays if the program keeps it.
    let kept = events_of("qwen-stream", &[qwen("It is"), retry(true), qwen("42."), result]);
    assert_eq!(only(&kept, "message")[0]["text"], "It is\n\n42.");
}

#[test]
fn calls_that_the_program_did_not_run_are_cancelled_or_denied() {
    let usage =
        json!({"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2, "cost": {"total": 0}});
    let message = json!({"role": "assistant", "model": "m", "usage": usage, "stopReason": "error", "errorMessage": "529 overloaded",
        "content": [{"type": "text", "text": "I test."}, {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "make"}}]});
    let pi = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "message_end", "message": message}),
        json!({"type": "auto_retry_start", "attempt": 1}),
    ];
    assert_eq!(ends("pi", &pi).0, ["cancelled"]);
    // The text stays in its message, because a call follows it.
    assert!(events_of("pi", &pi).iter().any(|it| it["code"] == "discarded_message" && it["lost"] == "speaker"));
    let qwen = |text: &str, is_error: bool| {
        let call = json!({"type": "assistant", "parent_tool_use_id": null, "message": {"content": [
            {"type": "tool_use", "id": "c", "name": "run_shell_command", "input": {"command": "make"}}]}});
        let result = json!({"type": "user", "parent_tool_use_id": null, "message": {"content": [
            {"type": "tool_result", "tool_use_id": "c", "is_error": is_error, "content": text}]}});
        ends("qwen-stream", &[call, result]).0
    };
    let skipped = "Skipped: this turn's structured_output contract took precedence as the terminal output.";
    let again = "Duplicate provider tool call id \"c\" was already handled. The duplicate tool call was ignored and not executed again. \
        If you intended to run this tool again, re-issue the call with a new unique tool-call id (or explicitly different arguments).";
    assert_eq!(qwen(skipped, false), ["cancelled"]);
    assert_eq!(qwen(&format!("{skipped} Re-issue this call in a separate turn if needed."), false), ["cancelled"]);
    assert_eq!(qwen(again, true), ["cancelled"]);
    assert_eq!(qwen(&format!("log: {skipped}"), false), ["ok"]);
    // The program marks these two as errors: without the mark, they are the output of a tool.
    let retried = "Skipped because the provider attempt was retried before execution.";
    assert_eq!((qwen(retried, true), qwen(retried, false)), (vec!["cancelled".into()], vec!["ok".into()]));
    assert_eq!(qwen(again, false), ["ok"]);
    let cline = |error: &str| {
        let event = |more: Value| {
            let mut event = json!({"contentType": "tool", "toolName": "run_commands", "toolCallId": "c"});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"ts": 1, "type": "agent_event", "event": event})
        };
        let lines = [
            event(json!({"type": "content_start", "input": {"commands": ["make"]}})),
            event(json!({"type": "content_end", "output": {"error": error}, "error": error})),
        ];
        ends("cline-stream", &lines).0
    };
    for denied in [
        "Tool \"run_commands\" is disabled by policy",
        "Tool run_commands was blocked by a runtime hook",
        "Tool \"run_commands\" requires approval in a TTY session",
        "Too risky -- NOT a tool or system failure. Clarify with user before proceeding.",
    ] {
        assert_eq!(cline(denied), ["denied"], "{denied}");
    }
    assert_eq!(cline("make: the feature is disabled by policy"), ["error"]);
}

#[test]
fn a_structured_result_of_an_mcp_tool_of_codex_is_its_output() {
    let item = |content: Value| {
        json!({"type": "item.completed", "item": {"id": "i", "type": "mcp_tool_call", "server": "db", "tool": "query", "arguments": {},
            "result": {"content": content, "structured_content": {"rows": [1]}}, "error": null, "status": "completed"}})
    };
    let output = |content: Value| only(&events_of("codex", &[item(content)]), "tool_result")[0]["output"].clone();
    assert_eq!(output(json!([])), "{\"rows\":[1]}");
    assert_eq!(output(json!([{"type": "text", "text": "one row"}])), "one row");
}
