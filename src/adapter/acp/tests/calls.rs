//! Odd calls and permission requests.

use super::*;

#[test]
fn a_call_id_used_again_is_a_new_call() {
    let mut script = Script::prompted();
    script.call("c", json!({"title": "read", "kind": "read", "status": "completed", "rawOutput": "one"}));
    script.call("c", json!({"title": "read", "kind": "read"}));
    script.change("c", json!({"status": "completed", "rawOutput": "two"}));
    script.call("sub", json!({"_meta": {"claudeCode": {"parentToolUseId": "c"}}, "status": "completed"}));
    let calls = script.done().calls();
    let shown: Vec<_> =
        calls.iter().map(|call| (call.call.call.as_str(), call.output.as_deref(), call.parent.as_deref())).collect();
    assert_eq!(shown, [("c", Some("one"), None), ("c#2", Some("two"), None), ("sub", None, Some("c#2"))]);
}

#[test]
fn a_call_with_the_id_of_an_open_call_is_another_call() {
    let answer = |id: u64| json!({"id": id, "result": {"stopReason": "end_turn"}});
    for (kind, first, second, in_one_turn, in_two_turns) in [
        ("edit", json!({"path": "a", "text": "SECRET"}), json!({"path": "a", "text": "todo"}), 2, 2),
        ("search", json!({"pattern": "SECRET"}), json!({"pattern": "todo"}), 2, 2),
        ("think", json!({"lines": [1, 2]}), json!({"lines": [1, 3]}), 2, 2),
        // The same input: a repetition, unless a prompt comes between.
        ("execute", json!({"command": "ls"}), json!({"command": "ls"}), 1, 2),
        // The input was still being written.
        ("execute", json!({"description": "Lis"}), json!({"description": "List", "command": "ls"}), 1, 2),
        ("execute", json!("{\"command\": \"l"), json!({"command": "ls"}), 1, 2),
        ("read", json!({"path": "src/a", "limit": null}), json!({"path": "/w/src/a"}), 1, 2),
        ("execute", json!({}), json!({"command": "ls"}), 1, 2),
    ] {
        for (turns, count) in [(1, in_one_turn), (2, in_two_turns)] {
            let mut script = Script::prompted();
            script.call("c", json!({"kind": kind, "title": "x", "status": "pending", "rawInput": first}));
            if turns == 2 {
                script.recv(answer(3));
                script.prompt(4, "go on");
            }
            script.call("c", json!({"kind": kind, "title": "x", "status": "in_progress", "rawInput": second}));
            script.change("c", json!({"status": "completed"}));
            script.recv(answer(turns + 2));
            let calls = script.end().calls();
            let inputs: Vec<_> = calls.iter().map(|call| call.call.input.clone()).collect();
            assert_eq!(calls.len(), count, "{turns}: {inputs:?}");
            assert_eq!(inputs.last(), Some(&Some(second.clone())), "{turns}");
            assert_eq!(calls.last().map(|call| call.status), Some(CallStatus::Ok), "{turns}: {inputs:?}");
        }
    }
}

#[test]
fn a_call_that_is_announced_again_as_it_was_asked_is_the_same_call() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "execute", "title": "x", "rawInput": {"command": "ls"}}));
    script.ask(json!(9), "s", json!({"toolCallId": "c", "rawInput": {"command": "rm x"}}));
    script.choose(json!(9), "a");
    script.call("c", json!({"kind": "execute", "title": "x", "rawInput": {"command": "rm x"}, "status": "completed"}));
    assert_eq!(script.done().calls().len(), 1);
}

#[test]
fn a_path_that_a_call_shows_again_is_the_same_only_at_the_same_place() {
    let read = |path: &str| json!({"kind": "read", "title": "Read", "rawInput": {"path": path}});
    for (first, then, is_same) in [
        ("/w/src/a", "src/a", true),
        ("./a", "/w/a", true),
        ("/w/src/a", "a", false),
        ("a", "/w/src/a", false),
        ("src/a", "a", false),
    ] {
        for announces in [true, false] {
            let mut script = Script::prompted();
            script.call("c", read(first));
            match announces {
                true => script.call("c", read(then)),
                false => script.change("c", read(then)),
            }
            script.change("c", json!({"status": "completed"}));
            let trace = script.done();
            let calls = if announces && !is_same { 2 } else { 1 };
            assert_eq!(trace.calls().len(), calls, "{first} {then} {announces}");
            let is_told = trace.notices().contains(&"changed_path");
            assert_eq!(is_told, !announces && !is_same, "{first} {then} {announces}");
        }
    }
}

#[test]
fn a_second_announcement_without_an_input_is_doubtful_if_its_title_may_be_about_something_else() {
    let command = || json!({"command": "ls", "description": "lists the files"});
    let file = || json!({"path": "/w/src/a"});
    for (input, first, then, is_told) in [
        (command(), "ls", "rm -rf src", true),
        (command(), "ls", "ls; rm -rf src", true),
        (command(), "ls", "ls (then rm -rf src)", true),
        (command(), "ls", "ls -R /etc", true),
        (command(), "ls", "rm tools", true),
        (command(), "Run", "Run rm -rf src", true),
        (command(), "ls", "ls (lists the files)", false),
        (command(), "Terminal", "lists the files", false),
        (command(), "Terminal", "run `ls`", false),
        (file(), "Read", "Read src/a", false),
        (file(), "Read", "Read a (1-50)", false),
        (file(), "Reading", "Read /w/src/a", false),
        (json!({"path": "a"}), "Reading", "Read /w/a", false),
        (file(), "Reading", "Read /w/src/b", true),
        (Value::Null, "Terminal", "ls", false),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "other", "title": first, "status": "pending", "rawInput": input}));
        script.call("c", json!({"kind": "other", "title": then, "status": "in_progress"}));
        script.change("c", json!({"status": "completed"}));
        let trace = script.done();
        assert_eq!(trace.calls().len(), 1, "{first}: {then}");
        assert_eq!(trace.notices() == ["changed_input"], is_told, "{first}: {then}");
    }
}

#[test]
fn nothing_continues_what_a_request_asked_for() {
    for (kind, asked, then, code) in [
        ("execute", json!({"command": "ls"}), json!({"command": "ls; rm -rf secret"}), "changed_command"),
        ("execute", json!({"code": "ls"}), json!({"code": "ls; rm -rf secret"}), "changed_input"),
        ("edit", json!({"path": "/w/a", "content": "x"}), json!({"path": "/w/a", "content": "xy"}), "changed_input"),
        ("edit", json!({"path": "/w/a"}), json!({"path": "/w/ab"}), "changed_path"),
        ("other", json!({"arguments": {"x": "a"}}), json!({"arguments": {"x": "ab"}}), "changed_input"),
    ] {
        for option in ["a", "r"] {
            let mut script = Script::prompted();
            let call = json!({"toolCallId": "c", "kind": kind, "title": "x", "rawInput": asked});
            script.ask(json!(9), "s", call);
            script.choose(json!(9), option);
            script.call("c", json!({"kind": kind, "title": "x", "rawInput": then}));
            script.change("c", json!({"status": "completed"}));
            let trace = script.done();
            let mut calls: Vec<_> = trace.calls().into_iter().map(|call| (call.status, call.call.input)).collect();
            calls.sort_by_key(|(status, _)| *status == CallStatus::Ok);
            match option {
                "a" => {
                    assert_eq!(calls, [(CallStatus::Ok, Some(then.clone()))]);
                    assert_eq!(trace.notices(), [code], "{asked} {then}");
                }
                // What was rejected is one call, and what follows is another one.
                _ => {
                    assert_eq!(calls, [(CallStatus::Denied, Some(asked.clone())), (CallStatus::Ok, Some(then.clone()))])
                }
            }
        }
    }
}

#[test]
fn what_a_call_showed_first_is_not_lost() {
    for (kind, first, then, shown, notices) in [
        ("execute", json!({"code": "rm"}), json!({"code": null, "x": 1}), json!({"code": "rm", "x": 1}), vec![]),
        ("execute", json!({"code": "rm"}), json!({"code": "ls"}), json!({"code": "ls"}), vec!["changed_input"]),
        ("search", json!({"path": "/w/s"}), json!({"path": "/w/a"}), json!({"path": "/w/a"}), vec!["changed_path"]),
        (
            "edit",
            json!({"path": "src/a", "cwd": "/w/pkg"}),
            json!({"path": "/w/pkg/src/a", "cwd": "/w/pkg"}),
            json!({"path": "/w/pkg/src/a", "cwd": "/w/pkg"}),
            vec![],
        ),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": kind, "title": "x", "rawInput": first}));
        script.change("c", json!({"status": "completed", "rawInput": then}));
        let trace = script.done();
        assert_eq!((trace.call().call.input, trace.notices()), (Some(shown), notices), "{first} {then}");
    }
    for kind in ["execute", "other"] {
        let diff = |path: &str| json!([{"type": "diff", "path": path, "oldText": "a", "newText": "b"}]);
        let mut script = Script::prompted();
        script.call("c", json!({"kind": kind, "title": "x", "content": diff("/w/s")}));
        script.change("c", json!({"status": "completed", "content": diff("/w/a")}));
        assert_eq!(script.done().notices(), ["changed_path"], "{kind}");
    }
}

#[test]
fn a_call_with_the_name_of_another_tool_is_another_call() {
    let named = |name: &str| json!({"kind": "other", "title": "x", "_meta": {"toolName": name}});
    for (first, then, is_other) in [("Read", "Bash", true), ("mcp__s__get", "get", false), ("Read", "read", false)] {
        let mut script = Script::prompted();
        script.call("c", named(first));
        script.call("c", named(then));
        assert_eq!(script.done().calls().len(), if is_other { 2 } else { 1 }, "{first} {then}");
        let mut script = Script::prompted();
        script.call("c", named(first));
        script.change("c", named(then));
        assert_eq!(script.done().notices().contains(&"changed_input"), is_other, "{first} {then}");
    }
}

#[test]
fn an_exit_code_that_replaces_a_failure_leaves_the_outcome_in_doubt() {
    for (first, then, lost) in [(1, 0, true), (1, 1, false), (0, 1, false), (1, 2, true)] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "execute", "title": "x", "rawInput": {"command": "npm test"}}));
        script.change("c", json!({"rawOutput": {"exitCode": first, "output": "x"}}));
        script.change("c", json!({"status": "completed", "rawOutput": {"exitCode": then, "output": "x"}}));
        let trace = script.done();
        let losses = collect(&trace.events, |event| match &event.body {
            Body::Notice { code: NoticeCode::ResultContradicts, lost, .. } => Some(*lost),
            _ => None,
        });
        assert_eq!(losses == [Some(Lost::Outcome)], lost, "{first} {then}");
    }
}

#[test]
fn a_call_that_is_announced_after_its_request_is_one_call() {
    let asked = json!({"turn": "1", "command": "ls", "reason": "x"});
    let begun = |command: &str| json!({"turn": "1", "command": command, "process": null});
    for (command, notices) in [("ls", vec![]), ("rm x", vec!["changed_command"])] {
        let mut script = Script::prompted();
        script.ask(
            json!(9),
            "s",
            json!({"toolCallId": "c", "kind": "execute", "title": "ls", "status": "pending", "rawInput": asked}),
        );
        script.choose(json!(9), "a");
        script.call("c", json!({"kind": "execute", "title": command, "rawInput": begun(command)}));
        script.change("c", json!({"status": "completed"}));
        let trace = script.done();
        let call = trace.call();
        assert_eq!((call.call.input, call.status), (Some(begun(command)), CallStatus::Ok));
        assert_eq!(trace.notices(), notices);
    }
    // A further announcement may be of another call.
    let mut script = Script::prompted();
    script.ask(json!(9), "s", json!({"toolCallId": "c", "kind": "execute", "title": "ls", "rawInput": asked}));
    script.choose(json!(9), "a");
    for command in ["ls", "rm x"] {
        script.call("c", json!({"kind": "execute", "title": "run", "rawInput": begun(command)}));
    }
    assert_eq!(script.done().calls().len(), 2);
}

#[test]
fn a_call_that_is_put_aside_keeps_its_output() {
    let run = |command: &str| json!({"kind": "execute", "title": "run", "rawInput": {"command": command}});
    let mut script = Script::prompted();
    script.call("c", run("make"));
    script.change("c", json!({"_meta": {"terminal_output_delta": {"data": "HELLO"}}}));
    script.call("c", run("rm x"));
    script.change("c", json!({"status": "completed"}));
    let calls = script.done().calls();
    let mut outputs: Vec<_> =
        calls.iter().map(|call| (call.call.call.as_str(), call.status, call.output.as_deref())).collect();
    outputs.sort_by_key(|(id, ..)| *id);
    assert_eq!(outputs, [("c", CallStatus::Unfinished, Some("HELLO")), ("c#2", CallStatus::Ok, None)]);
}

#[test]
fn an_input_that_continues_is_of_the_same_call_under_any_title() {
    for (first, then, count) in [
        (json!({"path": "/w/a"}), json!({"path": "/w/a", "old": "x"}), 1),
        (json!({"path": "/w/a", "cwd": null, "id": "5"}), json!({"path": "/w/a", "cwd": "/w", "id": null}), 1),
        (json!({"path": "/w/a", "old": "x"}), json!({"path": null, "old": "x"}), 2),
        (json!({"path": "/w/a", "old": "x"}), json!({"path": "/w/a"}), 2),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "edit", "title": "Edit", "status": "pending", "rawInput": first}));
        script.call("c", json!({"kind": "edit", "title": "Change a", "status": "in_progress", "rawInput": then}));
        script.change("c", json!({"status": "completed"}));
        assert_eq!(script.done().calls().len(), count, "{first} {then}");
    }
}

#[test]
fn a_word_for_a_call_that_ended_is_a_notice() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "read", "status": "completed"}));
    script.change("c", json!({"status": "failed"}));
    script.change("c", json!({"title": "more"}));
    let trace = script.done();
    assert_eq!(trace.call().status, CallStatus::Ok);
    assert_eq!(trace.notices(), ["late_update", "late_update"]);
}

#[test]
fn a_late_repeat_of_a_forgotten_call_leaves_only_its_outcome_in_doubt() {
    for (between, late, lost) in [
        (3, json!({"status": "completed"}), None),
        (300, json!({"status": "completed"}), Some(Lost::Outcome)),
        (300, json!({"title": "more"}), None),
        (300, json!({"status": "completed", "rawInput": {"command": "rm x"}}), Some(Lost::Line)),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "read", "status": "completed"}));
        for n in 0..between {
            script.call(&format!("d{n}"), json!({"kind": "read", "status": "completed"}));
        }
        script.change("c", late.clone());
        let trace = script.done();
        let losses = collect(&trace.events, |event| match &event.body {
            Body::Notice { code: NoticeCode::LateUpdate, lost, .. } => Some(*lost),
            _ => None,
        });
        assert_eq!(losses, [lost], "{between} {late}");
    }
}

#[test]
fn an_update_may_be_the_first_word_of_a_call() {
    let mut script = Script::prompted();
    script.change(
        "c",
        json!({"title": "Reading it", "kind": "read", "status": "completed", "rawOutput": {"output": "x"}}),
    );
    let trace = script.done();
    let call = trace.call();
    assert_eq!((call.call.kind, call.output.as_deref()), (ToolKind::Read, Some("x")));
    assert_eq!(trace.notices(), ["unannounced_call"]);
}

#[test]
fn unknown_words_keep_a_call_open_and_are_told() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "teleport", "status": "pondering"}));
    script.call("d", json!({"kind": 7, "status": 7}));
    script.call("e", json!({"kind": "read", "status": "cancelled"}));
    let trace = script.done();
    let statuses: Vec<_> = trace.calls().iter().map(|call| (call.call.kind, call.status)).collect();
    assert_eq!(
        statuses,
        [
            (ToolKind::Other, CallStatus::Unfinished),
            (ToolKind::Other, CallStatus::Unfinished),
            (ToolKind::Read, CallStatus::Cancelled)
        ]
    );
    assert_eq!(
        trace.notices(),
        ["unknown_kind", "unknown_status", "unknown_kind", "unknown_status", "unclear_outcome", "unclear_outcome"]
    );
}

#[test]
fn the_manifest_knows_a_tool_better_than_its_agent() {
    let manifest: Manifest =
        serde_yaml::from_str("{name: m, adapter: acp, tool-kinds: {run_it: execute, 'mcp__*': fetch}}").unwrap();
    let mut script = Script::of(&manifest);
    script.open();
    script.prompt(3, "do it");
    script.call("a", json!({"title": "run_it", "kind": "other"}));
    script.call("b", json!({"title": "A page", "name": "mcp__web"}));
    script.call("c", json!({"title": "Two words", "kind": "search"}));
    let calls = script.done().calls();
    let kinds: Vec<_> = calls.iter().map(|call| (call.call.kind, call.call.name.as_deref())).collect();
    assert_eq!(
        kinds,
        [(ToolKind::Execute, Some("run_it")), (ToolKind::Fetch, Some("mcp__web")), (ToolKind::Search, None)]
    );
}

#[test]
fn a_name_is_taken_from_where_agents_put_it() {
    let mut script = Script::prompted();
    script.call("a", json!({"name": "n", "title": "t", "_meta": {"claudeCode": {"toolName": "C"}, "tool_name": "m"}}));
    script.call("b", json!({"title": "t", "_meta": {"toolName": "m"}}));
    script.call("c", json!({"title": "first", "_meta": {}}));
    script.change("c", json!({"title": "second"}));
    script.call("d", json!({"title": "Not a name"}));
    script.change("d", json!({"title": "name"}));
    script.call("e", json!({"title": "notes.txt", "locations": [{"path": "/w/notes.txt", "line": 4}]}));
    script.call("f", json!({"title": "/w/notes.txt"}));
    let calls = script.done().calls();
    let names: Vec<_> = calls.iter().map(|call| call.call.name.as_deref()).collect();
    assert_eq!(names, [Some("C"), Some("m"), None, None, None, None]);
    assert_eq!(calls[2].call.title.as_deref(), Some("second"));
    assert_eq!(calls[4].call.locations[0].line, Some(4));
}

#[test]
fn a_tool_that_calls_another_tool_gives_the_call_no_name() {
    // Qwen Code announces the tool by which its model calls other tools, and then names the called tool.
    let mut script = Script::prompted();
    for id in ["a", "b"] {
        let meta = json!({"toolName": "tool_call", "phase": "preparing"});
        script.call(
            id,
            json!({"title": "ToolCall", "kind": "other", "rawInput": {}, "status": "pending", "_meta": meta}),
        );
    }
    let input = json!({"command": "rm -f a"});
    let named = json!({"title": "Monitor: m", "kind": "execute", "rawInput": input, "status": "in_progress", "_meta": {"toolName": "monitor"}});
    script.change("a", named);
    script.change("b", json!({"status": "failed", "_meta": {"toolName": "tool_call"}}));
    let calls = script.done().calls();
    let kinds: Vec<_> = calls.iter().map(|call| (call.call.kind, call.call.name.as_deref())).collect();
    assert_eq!(kinds, [(ToolKind::Execute, Some("monitor")), (ToolKind::Other, None)]);
    assert_eq!(calls[0].call.input, Some(input));
}

#[test]
fn a_title_is_a_name_only_if_the_manifest_says_so() {
    let manifest: Manifest = serde_yaml::from_str(
        "{name: m, adapter: acp, name-title: '^tool (\\w+)$', tool-kinds: {make: execute, 'r*': read}}",
    )
    .unwrap();
    let names = |manifest: &Manifest| {
        let mut script = Script::of(manifest);
        script.open();
        script.prompt(3, "do it");
        for (id, title) in [("a", "tool grep"), ("b", "make"), ("c", "rm"), ("d", "r*"), ("e", "a tool grep")] {
            script.call(id, json!({"title": title, "kind": "execute"}));
            script.change(id, json!({"title": "make"}));
        }
        script.done().calls().iter().map(|call| call.call.name.clone()).collect::<Vec<_>>()
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(names(&manifest), [name("grep"), name("make"), None, None, None]);
    let plain = Manifest { name_title: None, tool_kinds: crate::harness::ToolKinds::default(), ..manifest };
    assert_eq!(names(&plain), [None, None, None, None, None]);
}

#[test]
fn an_empty_input_never_takes_the_place_of_a_fuller_one() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "execute", "rawInput": {}}));
    script.change("c", json!({"rawInput": {"command": "ls"}}));
    script.change("c", json!({"rawInput": {}}));
    script.change("c", json!({"rawInput": null}));
    script.ask(json!(0), "s", json!({"toolCallId": "c", "title": "asked", "rawInput": {"command": "other"}}));
    script.choose(json!(0), "a");
    script.call("d", json!({"kind": "execute", "rawInput": {}}));
    script.ask(json!(1), "s", json!({"toolCallId": "d", "rawInput": {"command": "pwd"}}));
    script.choose(json!(1), "a");
    let done = script.done();
    let announced: Vec<_> = done
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolCall(call) => Some(call.input.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(announced, [Some(json!({"command": "ls"})), Some(json!({"command": "pwd"}))]);
    // A different command is not a rewording of the announced one: the request asks for the different command.
    let seen: Vec<_> = done.calls().into_iter().map(|call| call.call.input).collect();
    assert_eq!(seen, [Some(json!({"command": "other"})), Some(json!({"command": "pwd"}))]);
}

#[test]
fn ids_of_every_type_are_answered() {
    let mut script = Script::prompted();
    let ids = [json!("3f-a"), json!(-4), json!(1.5), json!(3)];
    for (n, id) in ids.iter().enumerate() {
        script.ask(id.clone(), "s", json!({"toolCallId": format!("c{n}"), "title": "Doing it"}));
    }
    for (n, id) in ids.iter().enumerate() {
        let line = EngineLine::Permission {
            id: id.clone(),
            policy: "scripted".into(),
            rule: Some(format!("rule {n}")),
            reason: None,
            rejects: false,
        };
        script.line(Dir::Engine, &serde_json::to_string(&line).unwrap());
        script.choose(id.clone(), "r");
    }
    let trace = script.done();
    let answers: Vec<_> = trace
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::PermissionResponse(r) => Some((r.request.as_str(), r.policy.as_deref(), r.rule.as_deref())),
            _ => None,
        })
        .collect();
    assert_eq!(
        answers,
        [
            ("3f-a", Some("scripted"), Some("rule 0")),
            ("-4", Some("scripted"), Some("rule 1")),
            ("1.5", Some("scripted"), Some("rule 2")),
            ("3", Some("scripted"), Some("rule 3")),
        ]
    );
    assert!(trace.calls().iter().all(|call| call.status == CallStatus::Denied));
    assert_eq!(trace.stop().reason, StopReason::EndTurn);
}

#[test]
fn an_answer_means_what_the_kind_of_its_option_means() {
    use PermissionOutcome::{Allowed, Cancelled, Rejected};
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "edit"}));
    for n in 0..7 {
        script.ask(json!(n), "s", json!({"toolCallId": "c"}));
    }
    script.choose(json!(0), "a");
    script.choose(json!(1), "r");
    script.choose(json!(2), "x");
    script.choose(json!(3), "nothing of the kind");
    script.send(json!({"id": 4, "result": {"outcome": {"outcome": "cancelled"}}}));
    script.send(json!({"id": 5, "error": {"code": -32603, "message": "no"}}));
    script.send(json!({"id": 6, "result": null}));
    let trace = script.done();
    assert_eq!(trace.answers(), [Allowed, Rejected, Cancelled, Cancelled, Cancelled, Cancelled, Cancelled]);
    assert_eq!(trace.notices(), ["unknown_option", "unknown_option", "unknown_outcome"]);
    assert_eq!(trace.call().status, CallStatus::Cancelled);
}

#[test]
fn a_request_id_used_twice_is_two_requests() {
    let mut script = Script::prompted();
    script.ask(json!(0), "s", json!({"toolCallId": "a", "title": "First one"}));
    script.ask(json!(0), "s", json!({"toolCallId": "b", "title": "Second one"}));
    script.choose(json!(0), "r");
    script.choose(json!(0), "a");
    let trace = script.done();
    assert_eq!(trace.notices(), ["duplicate_request"]);
    assert_eq!(trace.answers(), [PermissionOutcome::Rejected, PermissionOutcome::Allowed]);
    let statuses: Vec<_> = trace.calls().iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Denied, CallStatus::Unfinished]);
}

#[test]
fn odd_requests_are_recorded_and_told() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "edit"}));
    script.ask(json!(0), "elsewhere", json!({"toolCallId": "c", "title": "Theirs"}));
    script.send(json!({"id": 0, "result": {"outcome": {"outcome": "cancelled"}}}));
    script.ask(json!(1), "s", json!({"toolCallId": "nobody"}));
    script.ask(json!(2), "s", json!({}));
    script.recv(json!({"id": 9, "method": "session/request_permission"}));
    script.recv(json!({"method": "session/request_permission", "params": {}}));
    script.change("c", json!({"status": "completed"}));
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    script.ask(json!(4), "s", json!({"toolCallId": "c2", "title": "Too late"}));
    let trace = script.end();
    assert_eq!(
        trace.notices(),
        ["foreign_session", "unknown_call", "unknown_call", "unknown_call", "malformed_request", "late_request"]
    );
    let asked = trace.events.iter().filter(|event| matches!(event.body, Body::PermissionRequest(_))).count();
    assert_eq!(asked, 5);
    // The answer to the other session's request did not affect the call.
    assert_eq!(trace.calls()[0].status, CallStatus::Ok);
}

#[test]
fn a_request_before_the_first_prompt_or_about_an_ended_call_is_told() {
    let mut script = Script::new();
    script.open();
    script.ask(json!(0), "s", json!({"toolCallId": "a", "title": "ls", "kind": "execute"}));
    script.send(json!({"id": 0, "result": {"outcome": {"outcome": "cancelled"}}}));
    script.prompt(3, "do it");
    script.call("b", json!({"kind": "edit", "status": "completed"}));
    script.ask(json!(1), "s", json!({"toolCallId": "b"}));
    let trace = script.done();
    assert_eq!(trace.notices(), ["late_request", "unknown_call"]);
    let texts = collect(&trace.events, |event| match &event.body {
        Body::Notice { text, .. } => Some(text.as_str()),
        _ => None,
    });
    assert!(texts[0].starts_with("the request 0 came before the first prompt; "), "{texts:?}");
    assert!(texts[1].starts_with("the request 1 is about the call b, which has ended; "), "{texts:?}");
}

#[test]
fn updates_without_a_session_are_taken_with_one_notice() {
    let mut script = Script::prompted();
    for text in ["fi", "ne"] {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        script.recv(json!({"method": "session/update", "params": {"update": update}}));
    }
    let trace = script.done();
    assert_eq!((trace.notices(), trace.stop().output.as_deref()), (vec!["malformed_update"], Some("fine")));
}

#[test]
fn an_update_of_an_unknown_kind_about_a_call_that_was_not_announced_is_a_lost_call() {
    let mut script = Script::prompted();
    script.call("known", json!({"status": "completed"}));
    for update in [json!({"toolCallId": "known"}), json!({"toolCallId": "new", "kind": "execute"}), json!({"x": 1})] {
        let mut update = update;
        update["sessionUpdate"] = json!("tool_call_v2");
        script.update(update);
    }
    let trace = script.done();
    let lost = collect(&trace.events, |event| match &event.body {
        Body::Notice { code: NoticeCode::UnknownUpdate, lost, .. } => Some(*lost),
        _ => None,
    });
    // An update may announce the call until the turn ends.
    assert_eq!(lost, [None, None, Some(Lost::Call)]);
}

#[test]
fn a_call_under_an_unknown_method_is_a_lost_call_in_each_line() {
    let mut script = Script::prompted();
    script.call("known", json!({"status": "completed"}));
    let update = |update: Value| json!({"sessionId": "s", "update": update});
    for params in [
        update(json!({"sessionUpdate": "tool_call", "toolCallId": "new", "kind": "execute"})),
        update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "new"})),
        update(json!({"sessionUpdate": "tool_call", "title": "ls"})),
        update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "known", "rawInput": {"toolCallId": "x"}})),
        update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Done."}})),
        json!({"sessionId": "s", "toolCall": {"toolCallId": "other"}}),
        json!({"sessionId": "s", "toolCall": {"title": "ls"}}),
        json!({"sessionId": "s", "calls": [{"toolCallId": "known"}, {"toolCallId": "third"}]}),
        json!([{"toolCallId": "fourth"}]),
        json!({"sessionId": "s", "toolCall": "known"}),
    ] {
        script.recv(json!({"method": "session/update2", "params": params}));
    }
    script.recv(json!({"id": 9, "method": "session/ask", "params": {"toolCall": {"toolCallId": "fifth"}}}));
    let trace = script.done();
    let lost = collect(&trace.events, |event| match &event.body {
        Body::Notice { code: NoticeCode::UnknownMethod, lost, .. } => Some(*lost),
        _ => None,
    });
    let call = Some(Lost::Call);
    // A notice without a loss is given once for each method.
    // A call with an ID may be announced until the turn ends.
    assert_eq!(lost, [call, None, call, call, call, call, call, call, call]);
}

#[test]
fn a_call_that_an_update_announces_after_an_unknown_message_is_not_lost() {
    let mut script = Script::prompted();
    let chunk = json!({"sessionUpdate": "tool_call_chunk", "toolCallId": "c", "kind": "execute"});
    script.recv(json!({"method": "_vendor/session/update", "params": {"sessionId": "s", "update": chunk}}));
    script.update(chunk);
    script.call("c", json!({"kind": "execute", "status": "completed"}));
    let trace = script.done();
    let lost = collect(&trace.events, |event| match &event.body {
        Body::Notice { code, lost, .. } => Some((code.to_string(), *lost)),
        _ => None,
    });
    assert_eq!(lost, [("unknown_method".to_owned(), None), ("unknown_update".to_owned(), None)]);
}

#[test]
fn a_described_request_announces_its_call() {
    let mut script = Script::prompted();
    script.ask(
        json!(0),
        "s",
        json!({"toolCallId": "w", "title": "ls", "kind": "edit",
        "content": [{"type": "content", "content": {"type": "text", "text": "not output"}},
            {"type": "diff", "path": "a", "newText": "x"}]}),
    );
    script.choose(json!(0), "a");
    script.change("w", json!({"status": "completed", "content": []}));
    let trace = script.done();
    let call = trace.call();
    assert_eq!((call.call.kind, call.call.name, call.output), (ToolKind::Edit, None, None));
    assert_eq!(call.diffs.len(), 1);
    assert!(trace.notices().is_empty());
}

#[test]
fn denials_that_the_agent_reports_are_denials() {
    for (more, status) in [
        (json!({"_meta": {"claudeCode": {"nonExecutionKind": "permission-rule"}}}), CallStatus::Denied),
        (json!({"_meta": {"claudeCode": {"nonExecutionKind": "user-rejected"}}}), CallStatus::Denied),
        (json!({"_meta": {"claudeCode": {"nonExecutionKind": "interrupted"}}}), CallStatus::Cancelled),
        (json!({"rawOutput": {"message": "no", "code": "denied"}}), CallStatus::Denied),
        (json!({"rawOutput": {"message": "no", "code": "ENOENT"}}), CallStatus::Error),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "execute"}));
        let mut last = more.clone();
        last["status"] = json!("failed");
        script.change("c", last);
        assert_eq!(script.done().call().status, status, "{more}");
    }
}

#[test]
fn output_comes_from_content_then_raw_output_then_the_terminal() {
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    for (updates, output) in [
        (vec![json!({"content": text("shown"), "rawOutput": {"output": "raw"}})], Some("shown")),
        (vec![json!({"content": text("so far")}), json!({"content": text("all")})], Some("all")),
        (vec![json!({"content": text("shown")}), json!({"rawOutput": "raw"})], Some("shown")),
        (vec![json!({"rawOutput": "raw"}), json!({})], Some("raw")),
        (vec![json!({"content": text("```\nraw\n```"), "rawOutput": "raw"})], Some("raw")),
        (vec![json!({"content": text("other"), "rawOutput": "raw", "_meta": {"claudeCode": {}}})], Some("raw")),
        (vec![json!({"rawInput": {"command": "x", "description": "why"}, "content": text("why")}), json!({})], None),
        (
            vec![
                json!({"_meta": {"terminal_output_delta": {"data": "a"}}}),
                json!({"_meta": {"terminal_output_delta": {"data": "b"}}}),
            ],
            Some("ab"),
        ),
        (vec![json!({"content": [{"type": "terminal", "terminalId": "never made"}]})], None),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "execute"}));
        let count = updates.len();
        for (n, mut update) in updates.clone().into_iter().enumerate() {
            if n + 1 == count {
                update["status"] = json!("completed");
            }
            script.change("c", update);
        }
        assert_eq!(script.done().call().output.as_deref(), output, "{updates:?}");
    }
}

#[test]
fn output_so_far_is_kept_where_a_call_never_ends() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "execute", "_meta": {"terminal_output_delta": {"data": "half"}}}));
    script.update(json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c",
        "content": {"type": "content", "content": {"type": "text", "text": " of it"}}}));
    script.send(json!({"method": "session/cancel", "params": {"sessionId": "s"}}));
    script.recv(json!({"id": 3, "result": {"stopReason": "cancelled"}}));
    let trace = script.end();
    let call = trace.call();
    assert_eq!((call.status, call.output.as_deref()), (CallStatus::Cancelled, Some("half of it")));
    assert_eq!(trace.stop().reason, StopReason::Cancelled);
}

#[test]
fn what_a_terminal_of_ours_said_belongs_to_the_call_in_it() {
    let mut script = Script::prompted();
    script.recv(json!({"id": 3, "method": "terminal/create", "params": {"sessionId": "s", "command": "ls"}}));
    script.send(json!({"id": 3, "result": {"terminalId": "t"}}));
    script.call("c", json!({"kind": "execute", "content": [{"type": "terminal", "terminalId": "t"}]}));
    script.recv(json!({"id": 4, "method": "terminal/wait_for_exit", "params": {"terminalId": "t"}}));
    script.send(json!({"id": 4, "result": {"exitCode": 3, "signal": null}}));
    script.recv(json!({"id": 5, "method": "terminal/output", "params": {"terminalId": "t"}}));
    script.send(json!({"id": 5, "result": {"output": "oops", "truncated": false}}));
    script.change("c", json!({"status": "completed"}));
    let trace = script.done();
    let call = trace.call();
    assert_eq!((call.status, call.exit_code, call.output.as_deref()), (CallStatus::Error, Some(3), Some("oops")));
    assert!(trace.notices().is_empty());
}

#[test]
fn arguments_that_the_content_of_a_later_update_replaces_are_no_output() {
    // Kimi Code streams the arguments as content, and then shows the terminal instead.
    let text = |text: &str| json!([{"type": "content", "content": {"type": "text", "text": text}}]);
    let (args, input) = (r#"{"command":"echo none > x"}"#, json!({"command": "echo none > x"}));
    let shows = |terminal: &str| json!([{"type": "terminal", "terminalId": terminal}]);
    let started = json!({"rawInput": input, "status": "in_progress", "content": text(args)});
    for (last, output) in [
        (json!({"content": shows("t"), "status": "failed"}), Some("printed")),
        (json!({"content": shows("unknown"), "status": "failed"}), None),
        (json!({"content": [], "rawOutput": "", "status": "completed"}), Some("printed")),
        (json!({"content": [], "rawOutput": "raw", "status": "completed"}), Some("raw")),
        (json!({"content": text("all"), "rawOutput": "all", "status": "completed"}), Some("all")),
        // The agent never ends the call.
        (json!({"content": shows("t")}), Some("printed")),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "execute", "title": "Bash", "status": "pending", "content": text("")}));
        script.change("c", json!({"status": "in_progress", "content": text(r#"{"command":"echo none"#)}));
        script.change("c", started.clone());
        let params = json!({"sessionId": "s", "command": "/bin/bash", "args": ["-c", "cd '/w/sub' && echo none > x"], "cwd": "/w"});
        script.recv(json!({"id": 9, "method": "terminal/create", "params": params}));
        script.send(json!({"id": 9, "result": {"terminalId": "t"}}));
        let exit = json!({"code": 1, "signal": null});
        let engine = json!({"event": "terminal", "terminal": "t", "output": "printed", "exit": exit});
        script.line(Dir::Engine, &engine.to_string());
        script.change("c", last.clone());
        let trace = script.done();
        let call = trace.call();
        assert_eq!(call.output.as_deref(), output, "{last}");
        // The folder belongs to the command of the call.
        assert_eq!(call.call.cwd.as_deref(), Some("/w/sub"), "{last}");
        assert!(!trace.notices().contains(&"unannounced_action"), "{last}");
    }
    for (last, output) in [
        (json!({"content": [], "rawOutput": "", "status": "completed"}), None),
        (json!({"content": [], "status": "completed"}), Some("so far")),
    ] {
        let mut script = Script::prompted();
        script.call("c", json!({"kind": "read", "status": "in_progress", "content": text("so far")}));
        script.change("c", last.clone());
        assert_eq!(script.done().call().output.as_deref(), output, "{last}");
    }
}

#[test]
fn a_result_before_the_answer_to_a_request_means_what_the_answer_says() {
    let diff = json!({"status": "completed", "content": [{"type": "diff", "path": "/w/a", "newText": "x"}]});
    for (option, status) in [("r", CallStatus::Denied), ("a", CallStatus::Ok)] {
        let record = |early: bool| {
            let mut script = Script::prompted();
            script.call("c", json!({"kind": "edit", "title": "w", "locations": [{"path": "/w/a"}]}));
            script.ask(json!(9), "s", json!({"toolCallId": "c"}));
            if early {
                script.change("c", diff.clone());
            }
            script.choose(json!(9), option);
            if !early {
                script.change("c", diff.clone());
            }
            script.done()
        };
        let (early, late) = (record(true), record(false));
        assert_eq!(early.call().status, status, "{option}");
        assert_eq!(early.call().contested, status == CallStatus::Denied, "{option}");
        assert_eq!(early.notices(), late.notices(), "{option}");
    }
    // Without an answer, the result counts as it is.
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "edit", "title": "w", "locations": [{"path": "/w/a"}]}));
    script.ask(json!(9), "s", json!({"toolCallId": "c"}));
    script.change("c", diff.clone());
    assert_eq!(script.done().call().status, CallStatus::Ok);

    // The result stays at its place: what follows is another step, and another outcome is noticed.
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "edit", "title": "w", "locations": [{"path": "/w/a"}]}));
    script.ask(json!(9), "s", json!({"toolCallId": "c"}));
    script.change("c", diff);
    script.call("d", json!({"kind": "read", "title": "w"}));
    script.change("c", json!({"status": "failed"}));
    script.choose(json!(9), "a");
    let record = script.done();
    assert_eq!(record.calls().iter().map(|call| call.call.step).collect::<Vec<u64>>(), [0, 1]);
    assert_eq!(record.notices(), ["late_update"]);
}

#[test]
fn an_early_result_of_another_action_than_the_announced_one_is_of_that_action() {
    let mut script = Script::prompted();
    for id in [9, 10] {
        script.call("c", json!({"kind": "execute", "title": "w", "rawInput": {"command": "ls"}}));
        script.ask(json!(id), "s", json!({"toolCallId": "c", "rawInput": {"command": "rm x"}}));
        script.change("c", json!({"status": "completed"}));
    }
    script.choose(json!(9), "a");
    script.choose(json!(10), "a");
    let trace = script.done();
    let calls = trace.calls();
    let inputs: Vec<_> = calls.iter().map(|call| call.call.input.clone().unwrap()).collect();
    assert_eq!(inputs, [json!({"command": "rm x"}), json!({"command": "rm x"})]);
    // The announced action may have been carried out instead.
    let announced = json!({"command": "ls"});
    let is_kept = |call: &Call| matches!(&call.asked[..], [form] if form.request.is_none() && form.call.input.as_ref() == Some(&announced));
    assert!(calls.iter().all(|call| call.status == CallStatus::Ok && is_kept(call)), "{calls:#?}");
}

#[test]
fn each_of_two_open_requests_has_its_own_answer() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "execute", "title": "w", "rawInput": {"command": "ls"}}));
    script.ask(json!(7), "s", json!({"toolCallId": "c", "rawInput": {"command": "rm x"}}));
    script.ask(json!(8), "s", json!({"toolCallId": "c", "rawInput": {"command": "cat y"}}));
    script.choose(json!(7), "r");
    script.choose(json!(8), "a");
    script.change("c", json!({"status": "completed"}));
    let trace = script.done();
    let inputs = collect(&trace.events, |event| match &event.body {
        Body::PermissionResponse(response) => response.updated_input.clone(),
        _ => None,
    });
    assert_eq!(inputs, [json!({"command": "rm x"}), json!({"command": "cat y"})]);
    let call = trace.call();
    assert_eq!((call.call.input, call.status), (Some(json!({"command": "cat y"})), CallStatus::Ok));
    let asked: Vec<_> = call.asked.iter().map(|form| (form.call.input.clone(), form.is_refused())).collect();
    assert_eq!(asked, [(Some(json!({"command": "rm x"})), true), (Some(json!({"command": "ls"})), false)]);
}

#[test]
fn a_request_keeps_what_it_asked_for_if_its_call_becomes_another_one() {
    let of = |first: Value, then: Value| {
        let mut script = Script::prompted();
        script.call("c", first);
        script.ask(json!(9), "s", json!({"toolCallId": "c"}));
        script.choose(json!(9), "a");
        script.change("c", then);
        script.change("c", json!({"status": "completed"}));
        let trace = script.done();
        let asked = collect(&trace.events, |event| match &event.body {
            Body::PermissionRequest(request) => Some(request.asked.clone()),
            _ => None,
        });
        serde_json::to_value(asked).unwrap()[0].clone()
    };
    let command = |command: &str| json!({"kind": "execute", "title": "w", "rawInput": {"command": command}});
    let edit = |path: &str| json!({"kind": "edit", "title": "w", "rawInput": {"path": path}});
    assert_eq!(of(command("rm -rf /"), command("ls")), json!({"input": {"command": "rm -rf /"}}));
    // A request shows the whole command: a longer one is another.
    assert_eq!(of(command("ls"), command("ls -l")), json!({"input": {"command": "ls"}}));
    assert_eq!(of(edit("/w/a"), edit("/w/b")), json!({"input": {"path": "/w/a"}}));
    assert_eq!(of(json!({"kind": "delete", "title": "w"}), json!({"kind": "read"})), json!({"kind": "delete"}));
    let search = |pattern: &str| json!({"kind": "search", "title": "w", "rawInput": {"pattern": pattern}});
    assert_eq!(of(search("SECRET"), search("x")), json!({"input": {"pattern": "SECRET"}}));
    // What only becomes more exact is the same action.
    for (first, then) in [
        (edit("/w/a"), json!({"kind": "edit", "rawInput": {"path": "/w/a", "text": "x"}})),
        (json!({"kind": "other", "title": "w"}), edit("/w/a")),
        (json!({"kind": "edit", "title": "w", "locations": [{"path": "/w/a"}]}), json!({"kind": "delete"})),
    ] {
        assert_eq!(of(first.clone(), then.clone()), Value::Null, "{first} {then}");
    }
}

#[test]
fn calls_of_two_prompts_are_of_two_steps_and_a_silent_turn_is_noticed() {
    let mut script = Script::prompted();
    script.call("c", json!({"kind": "edit", "title": "w"}));
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    script.prompt(4, "go on");
    script.call("d", json!({"kind": "delete", "title": "w"}));
    script.recv(json!({"id": 4, "result": {"stopReason": "end_turn"}}));
    let trace = script.end();
    assert_eq!(trace.calls().iter().map(|call| call.call.step).collect::<Vec<u64>>(), [0, 1]);
    assert_eq!(trace.notices(), [""; 0]);

    let mut script = Script::prompted();
    script.recv(json!({"id": 3, "result": {"stopReason": "end_turn"}}));
    script.prompt(4, "go on");
    script.recv(json!({"id": 4, "result": {"stopReason": "end_turn"}}));
    let trace = script.end();
    assert_eq!(trace.messages(), [(Role::User, "do it\n\ngo on")]);
    assert_eq!(trace.notices(), ["silent_turn"]);
}

#[test]
fn a_message_without_a_call_before_another_message_has_a_call_that_is_not_shown() {
    let codex = crate::harness::built_in::named("codex-acp").unwrap();
    let says = |id: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": id}});
    let calls = |status: &str| json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "execute", "title": "ls", "status": status});
    let counts = |used: u64| json!({"sessionUpdate": "usage_update", "used": used, "size": 9000});
    let done = || calls("completed");
    for (updates, unshown) in [
        (vec![says("a"), counts(10), says("b"), counts(20)], 1),
        (vec![counts(10), done(), counts(20), counts(30)], 1),
        (vec![says("a"), done(), counts(10), says("b"), counts(20)], 0),
        (vec![says("a"), says("b"), counts(10)], 0),
        // Two answers may have used equally many tokens.
        (vec![says("a"), counts(10), says("b"), counts(10)], 1),
        (vec![done(), counts(10), says("a"), counts(10), says("b"), counts(20)], 1),
        // A report may come twice, also within a message.
        (vec![done(), counts(10), counts(10), says("b"), counts(20)], 0),
        (vec![done(), counts(10), says("b"), counts(10), says("b"), counts(20)], 0),
        // The summary of a conversation that was compressed is a message, too.
        (vec![done(), counts(90), counts(95), counts(10), says("b"), counts(20)], 0),
        // A command that is still running is asked for its output.
        (vec![calls("in_progress"), counts(10), counts(20), counts(30)], 0),
        // The service counts no tokens.
        (vec![says("a"), says("a"), says("b")], 1),
        (vec![says("a"), done(), says("b")], 0),
    ] {
        let mut script = Script::of(codex);
        script.open();
        script.prompt(3, "do it");
        updates.iter().for_each(|update| script.update(update.clone()));
        let trace = script.done();
        let is_unshown = |event: &&Event| match &event.body {
            Body::Notice { code, lost, .. } => *code == NoticeCode::UnshownAction && *lost == Some(Lost::Call),
            _ => false,
        };
        assert_eq!(trace.events.iter().filter(is_unshown).count(), unshown, "{updates:?}");
    }
}

#[test]
fn an_action_without_a_call_within_the_answer_is_a_gap_in_it() {
    let acts = |script: &mut Script, method: &str| {
        script.recv(json!({"id": 9, "method": method, "params": {"sessionId": "s", "path": "/w/x", "content": "x"}}));
        script.send(json!({"id": 9, "result": {}}));
    };
    for method in ["fs/read_text_file", "fs/write_text_file"] {
        for (before, after, is_within) in
            [("I expect 42.", "It is 41.", true), ("It is 41.", "", false), ("", "41", false)]
        {
            let mut script = Script::prompted();
            script.say(before);
            acts(&mut script, method);
            script.say(after);
            let trace = script.done();
            let stop = trace.stop();
            assert_eq!(stop.output, Some(format!("{before}{after}")), "{method}");
            assert_eq!(stop.gap.is_some(), is_within, "{method} {before}");
        }
    }
}

#[test]
fn a_text_after_a_call_that_is_not_shown_begins_the_answer() {
    let named = |agent: &str| crate::harness::built_in::named(agent).unwrap();
    let says = |id: &str, text: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": text}});
    let thinks = |id: &str| json!({"sessionUpdate": "agent_thought_chunk", "messageId": id, "content": {"type": "text", "text": "hm"}});
    let counts = |used: u64| json!({"sessionUpdate": "usage_update", "used": used, "size": 9000});
    let calls = || json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "read", "title": "x", "status": "completed"});
    let vibe = |kind: &str, message: u8| format!("{kind}-{message:08}-0000-0000-0000-000000000000");
    let speech = |message: u8, text: &str| says(&vibe("assistant", message), text);
    let thought = |message: u8| thinks(&format!("{}-0", vibe("reasoning", message)));
    for (agent, updates, unshown, answer) in [
        ("vibe", vec![speech(1, "Fir"), speech(1, "st."), counts(0), speech(2, "Done.")], 1, "Done."),
        ("vibe", vec![thought(1), counts(0), thought(2), speech(2, "Done.")], 1, "Done."),
        // One notice for each turn.
        ("vibe", vec![speech(1, "a"), speech(2, "b"), speech(3, "Done.")], 1, "Done."),
        ("vibe", vec![thought(1), speech(1, "First."), calls(), thought(2), speech(2, "Done.")], 0, "Done."),
        // The summary of a conversation that was compressed is a message, too, and no call is hidden.
        ("opencode", vec![says("msg_1", "The summary."), says("msg_2", "Do"), says("msg_2", "ne.")], 0, "Done."),
        ("opencode", vec![thinks("prt_1"), says("msg_1", "Do"), thinks("prt_2"), says("msg_1", "ne.")], 0, "Done."),
        ("codex-acp", vec![says("a", "Look."), counts(10), says("b", "red"), counts(20)], 1, "red"),
        // Without counts, the texts may be of one message.
        ("codex-acp", vec![says("a", "Look."), says("b", "red")], 1, "Look.\n\nred"),
        // Two texts of one message.
        ("codex-acp", vec![says("a", "One."), says("b", "Two."), counts(10)], 0, "One.\n\nTwo."),
        ("codex-acp", vec![calls(), counts(10), says("a", "One."), says("b", "Two."), counts(20)], 0, "One.\n\nTwo."),
    ] {
        let mut script = Script::of(named(agent));
        script.open();
        script.prompt(3, "do it");
        updates.iter().for_each(|update| script.update(update.clone()));
        let trace = script.done();
        assert_eq!(trace.notices().iter().filter(|code| **code == "unshown_action").count(), unshown, "{updates:?}");
        assert_eq!(trace.stop().output.as_deref(), Some(answer), "{updates:?}");
    }
}

#[test]
fn a_turn_that_never_ends_tells_of_its_call_that_is_not_shown() {
    let mut script = Script::of(crate::harness::built_in::named("codex-acp").unwrap());
    script.open();
    script.prompt(3, "do it");
    for id in ["a", "b"] {
        script.update(
            json!({"sessionUpdate": "agent_message_chunk", "messageId": id, "content": {"type": "text", "text": id}}),
        );
    }
    assert!(script.end().notices().contains(&"unshown_action"));
}

#[test]
fn a_call_that_opencode_refused_has_failed() {
    let mut script = Script::of(crate::harness::built_in::named("opencode").unwrap());
    script.open();
    script.prompt(3, "do it");
    script.call("c", json!({"title": "NoSuchTool", "kind": "other", "status": "pending", "rawInput": {}}));
    let input = json!({"tool": "NoSuchTool", "error": "Model tried to call unavailable tool 'NoSuchTool'."});
    script.change("c", json!({"title": "invalid", "kind": "other", "status": "in_progress", "rawInput": input}));
    script.change(
        "c",
        json!({"title": "Invalid Tool", "status": "completed", "rawOutput": {"output": "The arguments are invalid."}}),
    );
    let call = script.done().call();
    assert_eq!((call.call.name.as_deref(), call.status), (Some("NoSuchTool"), CallStatus::Error));

    // A call of another tool with this input has not failed.
    let input = json!({"tool": "ls", "error": "it printed nothing"});
    let mut script = Script::prompted();
    script.call("c", json!({"title": "report", "kind": "other", "status": "completed", "rawInput": input}));
    assert_eq!(script.done().call().status, CallStatus::Ok);
}

#[test]
fn calls_of_an_answer_that_qwen_discarded_are_cancelled() {
    let preparing = |more: Value| {
        let mut update = json!({"_meta": {"toolName": "run_shell_command", "phase": "preparing"}});
        update.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        update
    };
    let begins = || preparing(json!({"title": "Shell", "kind": "execute", "status": "pending", "rawInput": {}}));
    let meta = json!({"toolName": "run_shell_command", "phase": "preparing", "preparationDiscarded": true});
    let mut script = Script::of(crate::harness::built_in::named("qwen").unwrap());
    script.open();
    script.prompt(3, "do it");
    script.call("a", begins());
    script.call("b", begins());
    for id in ["a", "b"] {
        script.change(id, json!({"status": "failed", "content": [], "_meta": meta}));
    }
    script.call("a", begins());
    script.change("a", json!({"status": "completed", "rawOutput": {"output": "hi", "exitCode": 0}}));
    let trace = script.done();
    let statuses: Vec<CallStatus> = trace.calls().iter().map(|call| call.status).collect();
    assert_eq!(statuses, [CallStatus::Cancelled, CallStatus::Cancelled, CallStatus::Ok]);
    assert_eq!(trace.notices(), ["discarded_message", "usage_incomplete"]);
}

#[test]
fn a_server_that_did_not_start_is_no_call() {
    let text = "[codex-acp forwarded startup error] MCP server `srv` failed to start: connection closed";
    let report = json!({"title": "mcp__srv__startup", "kind": "other", "status": "failed",
        "content": [{"type": "content", "content": {"type": "text", "text": text}}]});
    let command = json!({"kind": "execute", "rawInput": {"command": "rm -rf src"}});
    for (harness, id, more, calls) in [
        ("codex-acp", "mcp_startup.srv.1", json!({}), 0),
        ("codex-acp", "call_1", json!({}), 1),
        ("codex-acp", "mcp_startup.srv.1", command, 1),
        ("codex-acp", "mcp_startup.srv.1", json!({"rawInput": {"path": "src"}}), 1),
        ("codex-acp", "mcp_startup.srv.1", json!({"locations": [{"path": "/w/src"}]}), 1),
        ("opencode", "mcp_startup.srv.1", json!({}), 1),
    ] {
        let mut script = prompted_of(harness);
        script.call(id, with(&report, &more));
        script.say("Done.");
        let trace = script.done();
        assert_eq!(trace.calls().len(), calls, "{harness} {id} {more}");
        assert_eq!(trace.notices().contains(&"program_message"), calls == 0, "{harness} {id} {more}");
    }
}

fn prompted_of(harness: &str) -> Script {
    let mut script = Script::of(crate::harness::built_in::named(harness).unwrap());
    script.open();
    script.prompt(3, "do it");
    script
}

fn with(object: &Value, more: &Value) -> Value {
    let mut object = object.clone();
    object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    object
}

#[test]
fn a_compaction_in_the_form_of_a_call_is_a_notice() {
    let compacts = json!({"title": "Compact conversation", "kind": "think", "status": "in_progress"});
    for (harness, meta) in
        [("claude-agent-acp", json!({"claudeCode": {"toolName": "compact"}})), ("codex-acp", Value::Null)]
    {
        let mut script = prompted_of(harness);
        script.call("x", with(&compacts, &json!({"_meta": meta})));
        script.change("x", json!({"status": "completed", "_meta": meta}));
        script.change("x", json!({"rawOutput": {"trigger": "automatic"}, "_meta": meta}));
        let trace = script.done();
        assert!(trace.calls().is_empty(), "{:#?}", trace.calls());
        assert_eq!(trace.notices().iter().filter(|code| **code == "compaction").count(), 3);
    }
    // A bridge is also known by its introduction, whatever the harness is called. One that names itself nowhere may be one.
    let manifest: Manifest = serde_yaml::from_str("{name: m, adapter: acp}").unwrap();
    let named = |name: &str| json!({"name": name, "version": "1"});
    for (introduced, calls) in [
        (named("@agentclientprotocol/claude-agent-acp"), 0),
        (named("@zed-industries/claude-code-acp"), 0),
        (named("@zed-industries/codex-acp"), 0),
        (Value::Null, 0),
        (named("other"), 1),
    ] {
        let mut script = Script::of(&manifest);
        script.send(json!({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}));
        script.recv(json!({"id": 1, "result": {"protocolVersion": 1, "agentInfo": introduced}}));
        script.send(json!({"id": 2, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}));
        script.recv(json!({"id": 2, "result": {"sessionId": "s"}}));
        script.prompt(3, "do it");
        script.call("x", compacts.clone());
        assert_eq!(script.done().calls().len(), calls, "{introduced}");
    }
    // A call of a model has an input, a tool of a server has another name, and other agents may have such a tool.
    let diff = json!([{"type": "diff", "path": "/w/a", "oldText": "a", "newText": "b"}]);
    for (harness, more) in [
        ("claude-agent-acp", json!({"rawInput": {"keep": 5}})),
        ("claude-agent-acp", json!({"_meta": {"claudeCode": {"toolName": "mcp__notes__compact"}}})),
        ("claude-agent-acp", json!({"content": diff})),
        ("codex-acp", json!({"locations": [{"path": "/w/a"}]})),
        ("codex-acp", json!({"content": [{"type": "terminal", "terminalId": "t"}]})),
        ("opencode", json!({})),
    ] {
        let mut script = prompted_of(harness);
        script.call("x", with(&compacts, &more));
        assert_eq!(script.done().calls().len(), 1, "{harness} {more}");
    }
}

#[test]
fn a_compaction_that_shows_an_action_later_is_a_call() {
    let command = json!({"kind": "execute", "title": "rm", "rawInput": {"command": "rm -rf src"}});
    for word in ["tool_call", "tool_call_update"] {
        let mut script = prompted_of("claude-agent-acp");
        script.call("x", json!({"title": "Compact conversation", "kind": "think", "status": "in_progress"}));
        script.call_as(word, "x", command.clone());
        script.change("x", json!({"status": "completed"}));
        let call = script.done().call();
        assert_eq!((call.call.kind, call.status), (ToolKind::Execute, CallStatus::Ok), "{word}");
        assert_eq!(call.call.input, Some(json!({"command": "rm -rf src"})), "{word}");
    }
    // A request that describes the call announces it.
    let mut script = prompted_of("claude-agent-acp");
    script.call("x", json!({"title": "Compact conversation", "kind": "think", "status": "in_progress"}));
    script.ask(json!(9), "s", with(&command, &json!({"toolCallId": "x"})));
    script.choose(json!(9), "a");
    script.change("x", json!({"status": "completed"}));
    let call = script.done().call();
    assert_eq!((call.call.kind, call.status), (ToolKind::Execute, CallStatus::Ok));
}

#[test]
fn a_call_that_gemini_denied_by_a_rule_was_not_carried_out() {
    let named = |name: &str| crate::harness::built_in::named(name).unwrap();
    for (harness, text, status) in [
        ("gemini", "Tool execution for \"Generalist Agent\" denied by policy.", CallStatus::Denied),
        ("gemini", "Tool execution denied by policy. No shell.", CallStatus::Denied),
        ("gemini", "Tool execution blocked: no", CallStatus::Denied),
        ("gemini", "It printed: Tool execution blocked: no", CallStatus::Error),
        ("gemini", "Tool execution for \"a\" and \"b\" denied by policy.", CallStatus::Error),
        // A command of another agent may print the sentence.
        ("copilot", "Tool execution for \"Generalist Agent\" denied by policy.", CallStatus::Error),
    ] {
        let mut script = Script::of(named(harness));
        script.open();
        script.prompt(3, "do it");
        script.call("c", json!({"title": "x", "kind": "execute", "status": "pending"}));
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        script.change("c", json!({"status": "failed", "content": content}));
        assert_eq!(script.done().call().status, status, "{harness}: {text}");
    }
}
