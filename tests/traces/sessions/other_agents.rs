//! Sessions of Qwen Code, Gemini CLI, OpenCode, Copilot CLI and Pi: what the program wrote in the user's name, refused
//! calls, commands that go on, and attachments.

use std::fs;

use serde_json::{Value, json};

use super::{codes, imported, lines, losses, of, text_of};
use crate::project::Project;

/// A session file of Qwen Code with these lines: their type, and their own keys.
fn of_qwen(lines: &[(&str, Value)]) -> String {
    let mut all = Vec::new();
    for (number, (kind, more)) in lines.iter().enumerate() {
        let parent = number.checked_sub(1).map(|before| format!("u{before}"));
        let mut line = json!({"uuid": format!("u{number}"), "parentUuid": parent, "sessionId": "s", "type": kind,
            "timestamp": format!("2026-11-23T10:00:{number:02}.000Z"), "cwd": "/w", "version": "0.24.4"});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all.push(line);
    }
    text_of(&all)
}

/// A line of Qwen Code: a message in the user's name.
fn asks_qwen(parts: Value) -> (&'static str, Value) {
    ("user", json!({"message": {"role": "user", "parts": parts}}))
}

/// Lines of Qwen Code: a call of the shell with this result, and the program's report about the result.
fn ran_qwen(call: &str, response: Value, report: Value) -> [(&'static str, Value); 2] {
    let called = json!({"functionCall": {"id": call, "name": "run_shell_command", "args": {"command": "run_tests"}}});
    let result = json!({"functionResponse": {"id": call, "name": "run_shell_command", "response": response}});
    [
        ("assistant", json!({"message": {"role": "model", "parts": [called]}})),
        ("tool_result", json!({"message": {"role": "user", "parts": [result]}, "toolCallResult": report})),
    ]
}

/// A session file of Gemini CLI with these messages.
fn of_gemini(messages: &[Value]) -> String {
    let mut all = vec![json!({"sessionId": "s", "projectHash": "p", "startTime": "2026-11-23T10:00:00.000Z"})];
    for (number, message) in messages.iter().enumerate() {
        let mut line = json!({"id": format!("m{number}"), "timestamp": format!("2026-11-23T10:00:{number:02}.000Z")});
        line.as_object_mut().unwrap().extend(message.as_object().unwrap().clone());
        all.push(line);
    }
    text_of(&all)
}

/// A document of OpenCode with these messages: the role, the message above, and the parts.
fn of_opencode(messages: &[(&str, &str, Value)]) -> String {
    let message = |(number, (role, parent, parts)): (usize, &(&str, &str, Value))| {
        let finish = if parts[0]["type"] == "text" { "stop" } else { "tool-calls" };
        json!({"info": {"id": format!("m{number}"), "role": role, "parentID": parent, "finish": finish,
            "time": {"created": 1_795_969_000_000_u64}}, "parts": parts})
    };
    let messages: Vec<Value> = messages.iter().enumerate().map(message).collect();
    json!({"info": {"id": "s", "projectID": "p", "directory": "/w", "version": "1.18.33",
        "time": {"created": 1_795_969_000_000_u64}}, "messages": messages})
    .to_string()
}

/// A session file of Copilot CLI with these lines: their type, and their data.
fn of_copilot(lines: &[(&str, Value)]) -> String {
    let mut all = vec![json!({"type": "session.start", "id": "e", "timestamp": "2026-11-23T10:00:00.000Z",
        "data": {"sessionId": "s", "selectedModel": "m"}})];
    for (number, (kind, data)) in lines.iter().enumerate() {
        all.push(json!({"type": kind, "id": format!("e{number}"), "data": data,
            "timestamp": format!("2026-11-23T10:00:{number:02}.000Z")}));
    }
    text_of(&all)
}

/// The texts of the user.
fn by_user(trace: &[Value]) -> Vec<&str> {
    let messages = of(trace, "message").into_iter().filter(|it| it["role"] == "user");
    messages.map(|it| it["text"].as_str().unwrap()).collect()
}

/// The statuses of the calls, with their exit codes.
fn outcomes(trace: &[Value]) -> Vec<String> {
    let outcome = |result: &&Value| {
        let code = result["exit_code"].as_i64().map(|code| format!(" {code}")).unwrap_or_default();
        format!("{}{code}", result["status"].as_str().unwrap())
    };
    of(trace, "tool_result").iter().map(outcome).collect()
}

#[test]
fn a_command_of_qwen_in_the_background_ends_with_its_notification() {
    let started = "Background shell started.\nid: bg_1\npid: 7\noutput file: /tmp/o\nTo inspect: /tasks";
    let promoted = "Foreground command \"run_tests\" promoted to background as bg_1.\nStatus: running. PID: 7.";
    let news = |head: &str, status: &str, rest: &str| {
        let text = format!("<task-notification>\n{head}\n<status>{status}</status>\n{rest}\n</task-notification>");
        let mut line = asks_qwen(json!([{"text": text}])).1;
        line["subtype"] = json!("notification");
        ("user", line)
    };
    let shell = "<task-id>bg_1</task-id>\n<kind>shell</kind>";
    let failed = "<command>run_tests</command>\n<result>exited with code 1</result>\n<output-tail truncated=\"false\">1 &lt; 2</output-tail>";
    let passed = "<command>run_tests</command>\n<exit-code>0</exit-code>";
    for (output, news, expected) in [
        (started, vec![], "unfinished"),
        (started, vec![news(shell, "failed", failed)], "error 1"),
        (promoted, vec![news(shell, "failed", "<result>terminated by signal 9</result>")], "error"),
        (promoted, vec![news(shell, "completed", passed)], "ok 0"),
        (started, vec![news(shell, "cancelled", "<command>run_tests</command>")], "cancelled"),
        (started, vec![news("<task-id>bg_12</task-id>\n<kind>shell</kind>", "completed", passed)], "unfinished"),
        // A monitor names its call, too.
        (
            "Monitor started.\nid: mon_1\ncommand: run_tests",
            vec![
                news("<task-id>mon_1</task-id>\n<tool-use-id>c</tool-use-id>\n<kind>monitor</kind>", "running", "x"),
                news(
                    "<task-id>mon_1</task-id>\n<tool-use-id>c</tool-use-id>\n<kind>monitor</kind>",
                    "failed",
                    "<result>Exit code 2</result>",
                ),
            ],
            "error 2",
        ),
        ("Refusing to run `git commit` in background mode: run it in the foreground.", vec![], "error"),
    ] {
        let mut all = vec![asks_qwen(json!([{"text": "Test it."}]))];
        all.extend(ran_qwen("c", json!({"output": output}), json!({"status": "success"})));
        all.extend(news.iter().cloned());
        all.push(("assistant", json!({"message": {"role": "model", "parts": [{"text": "All tests pass."}]}})));
        let trace = lines(imported(of_qwen(&all).as_bytes(), &[]));
        assert_eq!(outcomes(&trace), [expected], "{news:?}");
        assert_eq!(codes(&trace), vec!["synthetic_message"; news.len()], "{news:?}");
        assert_eq!(by_user(&trace), ["Test it."]);
    }
}

#[test]
fn calls_that_other_agents_refused_are_denied() {
    let qwen = |report: Value, text: &str| {
        let mut all = vec![asks_qwen(json!([{"text": "Test it."}]))];
        all.extend(ran_qwen("c", json!({"error": text}), report));
        outcomes(&lines(imported(of_qwen(&all).as_bytes(), &[]))).swap_remove(0)
    };
    let refused =
        |executed: &str| json!({"status": "error", "errorType": "execution_denied", "executionStatus": executed});
    let rule = "Qwen Code requires permission to use \"run_shell_command\", but that permission was declined.";
    assert_eq!(qwen(refused("not_started"), rule), "denied");
    // A hook stopped the program after the call.
    assert_eq!(qwen(refused("success"), "Execution stopped by hook"), "error");
    // Earlier versions do not say whether the call was carried out.
    let earlier = json!({"status": "error", "errorType": "execution_denied"});
    assert_eq!(qwen(earlier.clone(), rule), "denied");
    assert_eq!(qwen(earlier, "Execution stopped by hook"), "error");
    assert_eq!(qwen(json!({"status": "error", "errorType": "execution_failed"}), rule), "error");
    let cancelled = json!({"status": "cancelled"});
    let by_user = "[Operation Cancelled] Reason: User did not allow tool call";
    assert_eq!(qwen(cancelled.clone(), by_user), "denied");
    assert_eq!(
        qwen(cancelled, "[Operation Cancelled] Reason: User intentionally cancelled this tool call."),
        "cancelled"
    );
    let gemini = |status: &str, text: &str| {
        let response = json!([{"functionResponse": {"id": "c", "response": {"error": text}}}]);
        let call = json!({"id": "c", "name": "run_shell_command", "args": {"command": "git push"}, "status": status, "result": response});
        let said = json!({"type": "gemini", "content": "", "toolCalls": [call], "tokens": {"input": 1}});
        let all = of_gemini(&[json!({"type": "user", "content": [{"text": "Push."}]}), said]);
        outcomes(&lines(imported(all.as_bytes(), &[]))).swap_remove(0)
    };
    for (status, text, expected) in [
        ("error", "Tool execution denied by policy.", "denied"),
        ("error", "Tool execution denied by policy. Ask first.", "denied"),
        ("error", "Tool execution blocked: not on Friday", "denied"),
        ("error", "Tool execution for \"Shell\" denied by policy.", "denied"),
        ("error", "git: Tool execution denied by policy.", "error"),
        ("cancelled", "[Operation Cancelled] Reason: User denied execution.", "denied"),
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", "denied"),
        ("cancelled", "[Operation Cancelled] Reason: User cancelled operation", "cancelled"),
    ] {
        assert_eq!(gemini(status, text), expected, "{text}");
    }
    let opencode = |tool: &str, state: Value| {
        let mut part =
            json!({"type": "tool", "tool": tool, "callID": "c", "state": {"input": {"command": "git push"}}});
        part["state"].as_object_mut().unwrap().extend(state.as_object().unwrap().clone());
        let prompt = json!([{"type": "text", "text": "Push."}]);
        let all = of_opencode(&[("user", "", prompt), ("assistant", "m0", json!([{"type": "step-start"}, part]))]);
        outcomes(&lines(imported(all.as_bytes(), &[]))).swap_remove(0)
    };
    let failed = |error: &str| json!({"status": "error", "error": error, "metadata": {}});
    let rule = "The user has specified a rule which prevents you from using this specific tool call.";
    assert_eq!(opencode("bash", failed(&format!("{rule} Here are some of the relevant rules []"))), "denied");
    assert_eq!(opencode("bash", failed(&format!("no file {rule}"))), "error");
    assert_eq!(opencode("bash", failed("Tool execution aborted")), "cancelled");
    assert_eq!(opencode("task", failed("Cancelled")), "cancelled");
    assert_eq!(opencode("bash", failed("Cancelled")), "error");
    let cut = "a\n\n<shell_metadata>\nUser aborted the command\n</shell_metadata>";
    assert_eq!(
        opencode("bash", json!({"status": "completed", "output": cut, "metadata": {"exit": null}})),
        "cancelled"
    );
}

#[test]
fn a_command_that_the_user_of_opencode_ran_is_no_call_of_the_agent() {
    let marker = json!([{"type": "text", "synthetic": true, "text": "The following tool was executed by the user"}]);
    let bash = json!({"type": "tool", "tool": "bash", "callID": "c",
        "state": {"status": "completed", "input": {"command": "rm -rf build"}, "output": "", "metadata": {}}});
    let session = |parts: Value| {
        let all = of_opencode(&[
            ("user", "", marker.clone()),
            ("assistant", "m0", parts),
            ("user", "", json!([{"type": "text", "text": "Fix it."}])),
            ("assistant", "m2", json!([{"type": "text", "text": "Fixed."}])),
        ]);
        lines(imported(all.as_bytes(), &[]))
    };
    let trace = session(json!([bash]));
    assert_eq!((of(&trace, "tool_call").len(), codes(&trace)), (0, vec!["user_command"]));
    assert!(of(&trace, "notice")[0]["text"].as_str().unwrap().starts_with("rm -rf build"), "{trace:?}");
    assert_eq!((losses(&trace), by_user(&trace)), (vec![], vec!["Fix it."]));
    // The agent's own call after such a message.
    let trace = session(json!([{"type": "step-start"}, bash]));
    assert_eq!((of(&trace, "tool_call").len(), codes(&trace)), (1, vec![]));
}

#[test]
fn a_prompt_is_what_the_user_typed() {
    let file = |after: &str| {
        json!([{"text": "Explain @a.py"}, {"text": "\n--- Content from referenced files ---"},
            {"text": "\nContent from @a.py:\n"}, {"text": "PRIVATE = 1\n"}, {"text": "\n--- End of content ---"},
            {"text": after}])
    };
    let answer = json!({"type": "gemini", "content": "Done.", "tokens": {"input": 1}});
    let typed = json!([{"text": "Explain @a.py"}]);
    let feedback = json!([{"text": "System: Potential loop detected. Details: Repetitive patterns identified. Please take a step back."}]);
    let old = "Explain @a.py\n--- Content from referenced files ---\nContent from @a.py:\nPRIVATE = 1\n--- End of content ---";
    let context = "<hook_context>PRIVATE</hook_context>";
    for (content, shown, told) in [
        (file(context), json!(typed), vec!["synthetic_message"]),
        // Earlier versions do not keep what the user typed.
        (file(context), Value::Null, vec!["synthetic_message"]),
        (json!(old), Value::Null, vec![]),
        (json!([{"text": format!("{context}\n\nExplain @a.py")}]), Value::Null, vec!["synthetic_message"]),
    ] {
        let prompt = json!({"type": "user", "content": content, "displayContent": shown});
        let again = json!({"type": "user", "content": feedback, "displayContent": shown});
        let trace = lines(imported(of_gemini(&[prompt.clone(), again, answer.clone()]).as_bytes(), &[]));
        assert_eq!(by_user(&trace), ["Explain @a.py"], "{prompt}");
        assert_eq!(codes(&trace), [told, vec!["synthetic_message"]].concat(), "{prompt}");
        assert_eq!(losses(&trace), [("", ""); 0], "{prompt}");
        // The user may repeat a prompt.
        let trace = lines(imported(
            of_gemini(&[prompt.clone(), answer.clone(), prompt.clone(), answer.clone()]).as_bytes(),
            &[],
        ));
        assert_eq!(by_user(&trace), ["Explain @a.py"; 2], "{prompt}");
    }
    let prompt = json!({"type": "user", "content": file(""), "displayContent": typed});
    // A hook that lets the model go on writes its own text, beside the prompt.
    let hook = json!({"type": "user", "content": [{"text": "Run the linter."}], "displayContent": typed});
    let trace = lines(imported(of_gemini(&[prompt.clone(), answer.clone(), hook, answer.clone()]).as_bytes(), &[]));
    assert_eq!((by_user(&trace), codes(&trace)), (vec!["Explain @a.py"], vec!["synthetic_message"]));
    let project = Project::new();
    project.write("session.jsonl", &of_gemini(&[prompt, answer]));
    project.evals(&["case", "from-session", "session.jsonl", "-o", "drafts"]).exits(0);
    let drafts: Vec<String> = fs::read_dir(project.path("drafts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "yaml"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(drafts.len() == 1 && drafts[0].contains("prompt: Explain @a.py\n"), "{drafts:?}");
    assert!(!drafts[0].contains("PRIVATE"), "{drafts:?}");
    // Qwen Code keeps what the user typed in a line above, and changes the names of files in its own text.
    let said = ("assistant", json!({"message": {"role": "model", "parts": [{"text": "Done."}]}}));
    let mut named = file("<qwen:user-prompt-submit-context>\nPRIVATE\n</qwen:user-prompt-submit-context>");
    named[0] = json!({"text": "Explain @/w/a.py"});
    let at = (
        "system",
        json!({"subtype": "at_command", "systemPayload": {"userText": "Explain @a.py", "status": "success"}}),
    );
    let plain = asks_qwen(json!([{"text": "Go on."}]));
    for (before, expected) in [(Some(at), "Explain @a.py"), (None, "Explain @/w/a.py")] {
        let mut all: Vec<(&str, Value)> = before.into_iter().collect();
        all.extend([asks_qwen(named.clone()), said.clone(), plain.clone(), said.clone()]);
        let trace = lines(imported(of_qwen(&all).as_bytes(), &[]));
        assert_eq!(by_user(&trace), [expected, "Go on."]);
        assert_eq!((codes(&trace), losses(&trace)), (vec!["synthetic_message"], vec![]));
    }
}

#[test]
fn a_sub_agent_of_qwen_in_the_background_that_failed_leaves_the_outcome_of_its_call_in_doubt() {
    for (head, status, code) in [
        ("<task-id>a1</task-id>\n<tool-use-id>c</tool-use-id>", "failed", "task_failed"),
        ("<task-id>a1</task-id>", "cancelled", "task_stopped"),
        ("<kind>workflow</kind>\n<task-id>w1</task-id>", "failed", "task_failed"),
        ("<task-id>a1</task-id>", "completed", "synthetic_message"),
    ] {
        let text = format!(
            "<task-notification>\n{head}\n<status>{status}</status>\n<summary>It ended.</summary>\n</task-notification>"
        );
        let mut news = asks_qwen(json!([{"text": text}]));
        news.1["subtype"] = json!("notification");
        let said = ("assistant", json!({"message": {"role": "model", "parts": [{"text": "All is well."}]}}));
        let trace = lines(imported(of_qwen(&[asks_qwen(json!([{"text": "Look."}])), news, said]).as_bytes(), &[]));
        let notice = of(&trace, "notice")[0];
        let lost = if status == "completed" { Value::Null } else { json!("outcome") };
        assert_eq!((&notice["code"], &notice["lost"]), (&json!(code), &lost), "{head} {status}");
    }
}

#[test]
fn what_copilot_writes_in_the_users_name_is_no_prompt() {
    let said = |text: &str| ("assistant.message", json!({"messageId": text, "content": text, "toolRequests": []}));
    let trace = |more: Value| {
        let mut message = json!({"content": "Keep working."});
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let first = ("user.message", json!({"content": "Fix it."}));
        let all = of_copilot(&[first, said("Half."), ("user.message", message), said("Done.")]);
        lines(imported(all.as_bytes(), &[]))
    };
    for more in [
        json!({"source": "skill-pdf"}),
        json!({"source": "autopilot", "isAutopilotContinuation": true}),
        json!({"isAutopilotContinuation": true}),
        json!({"source": "schedule-1"}),
        json!({"source": "agent-1"}),
    ] {
        let trace = trace(more.clone());
        assert_eq!((by_user(&trace), codes(&trace)), (vec!["Fix it."], vec!["synthetic_message"]), "{more}");
    }
    for more in [json!({}), json!({"source": "user", "isAutopilotContinuation": false})] {
        assert_eq!(by_user(&trace(more.clone())), ["Fix it.", "Keep working."], "{more}");
    }
}

#[test]
fn images_of_the_user_are_attachments() {
    let inline = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    let shown = json!([{"text": "What is @a.png"}]);
    let gemini = of_gemini(&[
        json!({"type": "user", "content": [shown[0], inline], "displayContent": shown}),
        json!({"type": "gemini", "content": "A cat.", "tokens": {"input": 1}}),
    ]);
    let qwen = of_qwen(&[
        asks_qwen(json!([{"text": "What is @a.png"}, inline])),
        ("assistant", json!({"message": {"role": "model", "parts": [{"text": "A cat."}]}})),
    ]);
    let attached = json!([{"type": "blob", "mimeType": "image/png", "data": "AAAA"},
        {"type": "file", "path": "/w/a.py", "displayName": "a.py"}]);
    let copilot = of_copilot(&[
        ("user.message", json!({"content": "What is @a.png", "attachments": attached})),
        ("assistant.message", json!({"messageId": "a", "content": "A cat.", "toolRequests": []})),
    ]);
    let picture =
        json!({"type": "file", "mime": "image/png", "filename": "a.png", "url": "data:image/png;base64,AAAA"});
    let named = json!({"type": "file", "mime": "text/plain", "url": "file:///w/a.py"});
    let opencode = of_opencode(&[
        ("user", "", json!([{"type": "text", "text": "What is @a.png"}, picture, named])),
        ("assistant", "m0", json!([{"type": "text", "text": "A cat."}])),
    ]);
    let of_pi = |id: &str, parent: Value, message: Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-11-23T10:00:00.000Z", "message": message});
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    let asked = json!({"role": "user", "content": [{"type": "text", "text": "What is @a.png"}, image]});
    let said = json!({"role": "assistant", "content": [{"type": "text", "text": "A cat."}], "stopReason": "stop"});
    let pi = text_of(&[of_pi("a", Value::Null, asked), of_pi("b", json!("a"), said)]);
    let picture = json!({"kind": "image", "media_type": "image/png", "bytes": 4});
    for (name, session, expected) in [
        ("gemini", gemini, json!([picture])),
        ("qwen", qwen, json!([picture])),
        ("copilot", copilot, json!([picture, {"kind": "file", "uri": "/w/a.py"}])),
        ("opencode", opencode, json!([picture])),
        ("pi", pi, json!([picture])),
    ] {
        let trace = lines(imported(session.as_bytes(), &[]));
        let asked = of(&trace, "message")[0];
        assert_eq!((&asked["text"], &asked["attachments"]), (&json!("What is @a.png"), &expected), "{name}");
        assert_eq!((by_user(&trace).len(), losses(&trace)), (1, vec![]), "{name}");
        let project = Project::new();
        project.write("session.jsonl", &session);
        let ran = project.evals(&["case", "from-session", "session.jsonl"]).exits(0);
        assert!(format!("{}{}", ran.out, ran.err).contains("1 prompt had attachments"), "{name}: {}", ran.err);
    }
}

#[test]
fn a_call_of_a_tool_that_qwen_does_not_declare_has_the_name_of_the_tool() {
    let named = |name: &str| {
        let args = json!({"name": name, "arguments": {"command": "rm -f a"}});
        let call = json!({"functionCall": {"id": "c", "name": "tool_call", "args": args}});
        let session = of_qwen(&[
            asks_qwen(json!([{"text": "Do it."}])),
            ("assistant", json!({"message": {"role": "model", "parts": [call]}})),
        ]);
        let trace = lines(imported(session.as_bytes(), &[]));
        let call = of(&trace, "tool_call")[0];
        assert_eq!(call["input"], json!({"command": "rm -f a"}), "{name}");
        (call["kind"].clone(), call["name"].clone())
    };
    assert_eq!(named("monitor"), (json!("execute"), json!("monitor")));
    // It calls the tool `monitor`, too.
    assert_eq!(named("Monitor"), (json!("other"), Value::Null));
}
