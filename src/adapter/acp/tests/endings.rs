//! The endings of unusual sessions.

use super::*;

#[test]
fn the_last_prompts_answer_ends_the_session() {
    for (answer, reason, category, detail) in [
        (json!({"result": {"stopReason": "end_turn"}}), StopReason::EndTurn, None, None),
        (json!({"result": {"stopReason": "max_tokens"}}), StopReason::MaxTokens, None, None),
        (json!({"result": {"stopReason": "max_turn_requests"}}), StopReason::MaxTurns, None, None),
        (json!({"result": {"stopReason": "refusal"}}), StopReason::Refusal, None, None),
        (json!({"result": {"stopReason": "cancelled"}}), StopReason::Cancelled, None, None),
        (json!({"result": {"stopReason": "bored"}}), StopReason::Other, None, Some("bored")),
        (json!({"result": null}), StopReason::Error, Some(ErrorCategory::Protocol), None),
        (json!({"result": {}}), StopReason::Error, Some(ErrorCategory::Protocol), None),
        (json!({"result": {"stopReason": 5}}), StopReason::Error, Some(ErrorCategory::Protocol), None),
        (json!({"error": {"code": -32000, "message": "hm"}}), StopReason::Error, Some(ErrorCategory::Auth), Some("hm")),
        (
            json!({"error": {"code": -32000, "message": "Rate limit exceeded (429)"}}),
            StopReason::Error,
            Some(ErrorCategory::RateLimit),
            None,
        ),
        (
            json!({"error": {"code": -32000, "message": "m", "data": {"status": 529}}}),
            StopReason::Error,
            Some(ErrorCategory::RateLimit),
            None,
        ),
        (
            json!({"error": {"code": -32000, "message": "HTTP 503"}}),
            StopReason::Error,
            Some(ErrorCategory::Provider),
            None,
        ),
        (json!({"error": {"code": 429, "message": "slow"}}), StopReason::Error, Some(ErrorCategory::RateLimit), None),
        (json!({"error": {"code": 503}}), StopReason::Error, Some(ErrorCategory::Provider), None),
        (
            json!({"error": {"code": -32603, "message": "m", "data": {"errorName": "APIError"}}}),
            StopReason::Error,
            Some(ErrorCategory::Provider),
            Some("m"),
        ),
        (
            json!({"error": {"code": -32603, "data": "it broke"}}),
            StopReason::Error,
            Some(ErrorCategory::Protocol),
            Some("it broke"),
        ),
        (json!({"error": {"code": -32800, "message": "cancelled"}}), StopReason::Cancelled, None, None),
    ] {
        let mut script = Script::prompted();
        let mut line = answer.clone();
        line["id"] = json!(3);
        script.recv(line);
        let trace = script.end();
        assert_eq!(trace.ended(), (reason, category), "{answer}");
        if detail.is_some() {
            assert_eq!(trace.stop().detail.as_deref(), detail, "{answer}");
        }
    }
    for word in ["", " "] {
        let mut script = Script::prompted();
        script.recv(json!({"id": 3, "result": {"stopReason": word}}));
        let trace = script.end();
        assert_eq!((trace.ended(), trace.stop().detail.as_deref()), ((StopReason::Other, None), None));
    }
}

#[test]
fn a_session_that_never_was_is_a_handshake_or_a_login() {
    let refused = |method: &str, error: Value| {
        let mut script = Script::new();
        script.send(json!({"id": 1, "method": method, "params": {}}));
        script.recv(json!({"id": 1, "error": error}));
        script.end().ended()
    };
    let broken = json!({"code": -32603, "message": "boom"});
    let login = json!({"code": -32000, "message": "Authentication required"});
    let handshake = (StopReason::Error, Some(ErrorCategory::Handshake));
    let auth = (StopReason::Error, Some(ErrorCategory::Auth));
    for method in ["initialize", "session/new", "session/load", "session/set_model"] {
        assert_eq!(refused(method, broken.clone()), handshake, "{method}");
        assert_eq!(refused(method, login.clone()), auth, "{method}");
        assert_eq!(refused(method, json!({"message": "Please run /login"})), auth, "{method}");
        let limited = json!({"code": -32000, "message": "HTTP 529 overloaded_error"});
        assert_eq!(refused(method, limited), (StopReason::Error, Some(ErrorCategory::RateLimit)), "{method}");
    }
    // A failure of an MCP server is not one of the model's service.
    let server = "MCP Server: 'srv': Failed to initialize - see details.\n\nMCPError: Connection closed";
    let details = json!({"code": -32603, "message": "Internal error", "data": {"details": server}});
    assert_eq!(refused("session/new", details), handshake);
    let service = json!({"code": -32603, "message": "Connection closed"});
    assert_eq!(refused("session/new", service), (StopReason::Error, Some(ErrorCategory::Provider)));
    assert_eq!(refused("authenticate", broken.clone()), auth);
    // A mode that cannot be set does not end the session; here, nothing followed.
    assert_eq!(refused("session/set_mode", broken).0, StopReason::Crashed);

    for version in [json!(2), json!("1"), json!(0)] {
        let mut script = Script::new();
        script.send(json!({"id": 1, "method": "initialize", "params": {}}));
        script.recv(json!({"id": 1, "result": {"protocolVersion": version}}));
        assert_eq!(script.end().ended(), handshake, "{version}");
    }
}

#[test]
fn a_refusal_that_was_mended_is_only_told() {
    let mut script = Script::new();
    script.send(json!({"id": 1, "method": "session/new", "params": {}}));
    script.recv(json!({"id": 1, "error": {"code": -32000, "message": "Authentication required"}}));
    script.send(json!({"id": 2, "method": "authenticate", "params": {"methodId": "k"}}));
    script.recv(json!({"id": 2, "result": {}}));
    script.send(json!({"id": 4, "method": "session/new", "params": {}}));
    script.recv(json!({"id": 4, "result": {"sessionId": "s", "models": {"currentModelId": "m1"}}}));
    script
        .send(json!({"id": 5, "method": "session/set_config_option", "params": {"configId": "model", "value": "m2"}}));
    script.recv(json!({"id": 5, "error": {"code": -32601, "message": "Method not found"}}));
    script.send(json!({"id": 6, "method": "session/set_model", "params": {"modelId": "m2"}}));
    script.recv(json!({"id": 6, "result": {}}));
    script.prompt(3, "do it");
    let trace = script.done();
    assert_eq!(trace.ended(), (StopReason::EndTurn, None));
    assert_eq!(trace.notices(), ["refused", "refused"]);
    assert_eq!(trace.header.model.effective.as_deref(), Some("m2"));
    assert_eq!(trace.header.model.requested.as_deref(), Some("m2"));
}

#[test]
fn second_answers_and_answers_to_nobody_are_told() {
    let mut script = Script::prompted();
    script.recv(json!({"id": 3, "result": {"stopReason": "cancelled"}}));
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    script.recv(json!({"id": "who", "result": {}}));
    script.recv(json!({"id": null, "error": {"code": -32700, "message": "Parse error"}}));
    let trace = script.end();
    assert_eq!(trace.notices(), ["duplicate_answer", "unknown_answer", "unknown_answer"]);
    assert_eq!(trace.stop().reason, StopReason::Cancelled);
}

#[test]
fn several_prompts_are_several_turns() {
    let mut script = Script::prompted();
    script.say("one");
    script.recv(json!({"id": 3, "error": {"code": 500, "message": "x"}}));
    script.prompt(4, "again");
    script.say("two");
    script.recv(json!({"id": 4, "result": {"stopReason": "end_turn", "usage": {"inputTokens": 5, "outputTokens": 2}}}));
    let trace = script.end();
    assert_eq!(
        trace.messages(),
        [(Role::User, "do it"), (Role::Agent, "one"), (Role::User, "again"), (Role::Agent, "two")]
    );
    assert_eq!((trace.ended(), trace.stop().output.as_deref()), ((StopReason::EndTurn, None), Some("two")));
    let mut script = Script::prompted();
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    script.prompt(4, "again");
    assert_eq!(script.end().ended().0, StopReason::Crashed);
}

#[test]
fn what_the_program_writes_is_a_notice_and_a_message_by_its_id_is_the_models() {
    let manifest: Manifest =
        serde_yaml::from_str(r"{name: m, adapter: acp, program-text: ['^\*\*Warning:\*\* ']}").unwrap();
    let text = "**Warning:** the selected model does not support Auto mode.";
    for (id, notices) in [(None, 1), (Some("msg_1"), 0)] {
        let mut script = Script::of(&manifest);
        script.open();
        script.prompt(3, "do it");
        let mut update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        if let Some(id) = id {
            update["messageId"] = json!(id);
        }
        script.update(update);
        script.say("Done.");
        let done = script.done();
        assert_eq!(done.notices().iter().filter(|code| **code == "program_message").count(), notices);
        assert_eq!(done.ended(), (StopReason::EndTurn, None));
    }
}

#[test]
fn a_notification_of_an_extension_of_pi_is_a_notice() {
    let mut script = Script::prompted();
    let content = json!({"type": "text", "text": "No MCP server."});
    let meta = json!({"piAcp": {"notify": {"level": "warning"}}});
    script.update(json!({"sessionUpdate": "agent_message_chunk", "content": content, "_meta": meta}));
    script.say("42");
    let done = script.done();
    assert_eq!((done.notices(), done.stop().output.as_deref()), (vec!["program_message"], Some("42")));
}

#[test]
fn a_notice_of_the_bridge_to_claude_code_is_no_answer() {
    let failed = "**MCP server \"srv\" failed to start:** Its tools are unavailable in this session.";
    let kind = |kind: &str| json!({"claudeCode": {"kind": kind}});
    for (text, meta, is_notice) in [
        (failed, kind("mcpServerStatus"), true),
        (failed, Value::Null, true),
        ("A hook said so.", kind("informational"), true),
        ("A hook said so.", Value::Null, false),
    ] {
        let mut script = Script::of(crate::harness::built_in::named("claude-agent-acp").unwrap());
        script.open();
        script.prompt(3, "do it");
        let content = json!({"type": "text", "text": text});
        script.update(json!({"sessionUpdate": "agent_message_chunk", "content": content, "_meta": meta}));
        script.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": {"type": "text", "text": "zebra"}}));
        let done = script.done();
        assert_eq!(done.notices().contains(&"program_message"), is_notice, "{text}");
        assert_eq!(done.stop().output.as_deref() == Some("zebra"), is_notice, "{text}");
    }
}

#[test]
fn a_text_that_the_error_of_the_prompt_repeats_is_the_programs() {
    let text = "API Error: Claude's response exceeded the 128000 output token maximum.";
    let chunk = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
    let end_with = |answer: Value| {
        let mut script = Script::prompted();
        script.update(chunk("a", "partial"));
        script.update(chunk("b", text));
        script.update(json!({"sessionUpdate": "usage_update", "used": 10, "size": 100}));
        script.recv(answer);
        script.end()
    };
    let failed = end_with(json!({"id": 3, "error": {"code": -32603, "message": format!("Internal error: {text}")}}));
    assert_eq!((failed.ended().0, failed.stop().output.as_deref()), (StopReason::MaxTokens, Some("partial")));
    assert!(failed.notices().contains(&"program_message"));
    let answered = end_with(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    assert_eq!(answered.stop().output, Some(format!("partial\n\n{text}")));
    assert!(!answered.notices().contains(&"program_message"));
}

#[test]
fn an_error_shown_as_an_answer_is_an_error() {
    let mut script = Script::prompted();
    script.update(json!({"sessionUpdate": "session_info_update",
        "_meta": {"codex": {"threadStatus": {"type": "systemError"}}}}));
    script.say("unexpected status 401 Unauthorized");
    assert_eq!(script.done().ended(), (StopReason::Error, Some(ErrorCategory::Auth)));

    let manifest: Manifest = serde_yaml::from_str("{name: m, adapter: acp, error-text: ['^API Error']}").unwrap();
    for (text, ended) in [
        ("API Error: 529 overloaded", (StopReason::Error, Some(ErrorCategory::RateLimit))),
        ("No API Error here", (StopReason::EndTurn, None)),
    ] {
        let mut script = Script::of(&manifest);
        script.open();
        script.prompt(3, "do it");
        script.say(text);
        assert_eq!(script.done().ended(), ended, "{text}");
    }
}

#[test]
fn a_refusal_after_a_failed_request_is_an_error() {
    let manifest: Manifest = serde_yaml::from_str("{name: m, adapter: acp, refusal-error: ['^Failed: (.*)']}").unwrap();
    let provider = (StopReason::Error, Some(ErrorCategory::Provider));
    for (printed, called, ended) in [
        ("Failed: Connection error....", false, provider),
        ("Failed: out of luck", false, provider),
        ("Failed: 429 Too Many Requests", false, (StopReason::Error, Some(ErrorCategory::RateLimit))),
        ("All is well", false, (StopReason::Refusal, None)),
        // The model answered with a call afterwards, so the later refusal is the model's own.
        ("Failed: Connection error....", true, (StopReason::Refusal, None)),
    ] {
        let mut script = Script::of(&manifest);
        script.open();
        script.line(Dir::Stderr, "Failed: before the prompt");
        script.prompt(3, "do it");
        script.line(Dir::Stderr, printed);
        if called {
            script.update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Read", "kind": "read"}));
        }
        script.recv(json!({"id": 3, "result": {"stopReason": "refusal"}}));
        assert_eq!(script.end().ended(), ended, "{printed}, {called}");
    }
    // An agent that continued after the error has answered.
    let mut script = Script::of(&manifest);
    script.open();
    script.prompt(3, "do it");
    script.line(Dir::Stderr, "Failed: Connection error....");
    script.say("Done.");
    assert_eq!(script.done().ended(), (StopReason::EndTurn, None));
}

#[test]
fn a_message_that_goes_on_after_a_plan_or_a_thought_is_one_answer() {
    let chunk = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
    let plan = json!({"sessionUpdate": "plan", "entries": [{"content": "x", "priority": "high", "status": "pending"}]});
    let thought = json!({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "hm"}});
    for (between, second, answer) in [
        (&plan, "m", "sorry"),
        (&thought, "m", "sorry"),
        // Another message is another answer.
        (&plan, "n", "ry"),
    ] {
        let mut script = Script::prompted();
        script.update(chunk("m", "sor"));
        script.update(between.clone());
        script.update(chunk(second, "r"));
        script.update(between.clone());
        script.update(chunk(second, "y"));
        assert_eq!(script.done().stop().output.as_deref(), Some(answer), "{between} {second}");
    }
    let mut script = Script::prompted();
    script.update(chunk("m", "sor"));
    script.call("c", json!({"title": "x", "kind": "read", "status": "completed"}));
    script.update(chunk("m", "ry"));
    assert_eq!(script.done().stop().output.as_deref(), Some("ry"));
}

#[test]
fn the_text_of_an_embedded_resource_is_lost_text() {
    let resource = |inner: Value| json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "resource", "resource": inner}});
    for (inner, is_lost) in [
        (json!({"uri": "file:///a", "text": "the answer is 42"}), true),
        (json!({"uri": "file:///a", "text": " "}), false),
        (json!({"uri": "file:///a", "blob": "QUJD"}), false),
    ] {
        let mut script = Script::prompted();
        script.update(resource(inner.clone()));
        let trace = script.done();
        let lost = collect(&trace.events, |event| match &event.body {
            Body::Notice { code: NoticeCode::EmbeddedText, lost, .. } => *lost,
            _ => None,
        });
        assert_eq!(lost, if is_lost { vec![Lost::Text] } else { vec![] }, "{inner}");
    }
}

#[test]
fn a_command_that_a_signal_ended_failed() {
    let command = |raw: Value| json!({"title": "x", "kind": "execute", "status": "completed", "rawOutput": raw});
    for (raw, status) in [
        (json!({"exitCode": null, "signal": "SIGKILL"}), CallStatus::Error),
        (json!({"exitCode": 0, "signal": 11}), CallStatus::Error),
        (json!({"exitCode": 0, "signal": null}), CallStatus::Ok),
        (json!({"message": "killed", "signal": "SIGTERM"}), CallStatus::Ok),
        (json!({"output": "fine"}), CallStatus::Ok),
    ] {
        let mut script = Script::prompted();
        script.call("c", command(raw.clone()));
        assert_eq!(script.done().call().status, status, "{raw}");
    }
    let mut script = Script::prompted();
    script.call("c", json!({"title": "x", "kind": "execute", "content": [{"type": "terminal", "terminalId": "t"}]}));
    let exit = json!({"code": null, "signal": 11});
    let engine = json!({"event": "terminal", "terminal": "t", "output": "", "exit": exit});
    script.line(Dir::Engine, &engine.to_string());
    script.change("c", json!({"status": "completed"}));
    assert_eq!(script.done().call().status, CallStatus::Error);
}

#[test]
fn an_answer_that_looks_like_an_error_is_none_if_the_gateway_saw_that_the_model_gave_it() {
    let copilot = crate::harness::built_in::named("copilot").unwrap();
    let error = "Error: 404 Not Found is what it answers.";
    for (answered, reason) in
        [(Some(error), StopReason::EndTurn), (Some("It is 42."), StopReason::Error), (None, StopReason::Error)]
    {
        let mut script = Script::of(copilot);
        script.open();
        script.prompt(3, "do it");
        script.say(error);
        script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
        if let Some(text) = answered {
            script.line(Dir::Engine, &json!({"event": "answered", "text": text}).to_string());
        }
        assert_eq!(script.end().stop().reason, reason, "{answered:?}");
    }
}

#[test]
fn an_answer_that_the_gateway_saw_cut_at_the_output_limit_is_not_complete() {
    for (word, reason) in [("end_turn", StopReason::MaxTokens), ("refusal", StopReason::Refusal)] {
        let mut script = Script::prompted();
        script.say("partial");
        script.recv(json!({"id": 3, "result": {"stopReason": word}}));
        script.line(Dir::Engine, r#"{"event":"output_limit"}"#);
        assert_eq!(script.end().ended(), (reason, None), "{word}");
    }
}
