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
