//! Claude Code's recorded sessions as Traces: what came out of them was reviewed line by line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use evals::internal::wire::{Dir, EngineLine, WireLine};
use evals::trace::amount::Amount;
use evals::trace::jsonl::Reader;
use evals::trace::usage::UsageTotal;
use evals::trace::{Body, CallStatus, ErrorCategory, Event, Stop, StopReason, ToolKind};
use serde_json::json;

use crate::claude::{RECORDINGS, imported, recording};
use crate::laws;

/// Input, output, cache read, cache write, cost.
type Spent = (Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<f64>);

struct Seen {
    trace: String,
    events: Vec<Event>,
}

fn seen(name: &str) -> Seen {
    let trace = imported(&recording(name));
    laws::assert_lawful(&trace);
    let events = Reader::new(trace.as_bytes()).unwrap().map(Result::unwrap).collect();
    Seen { trace, events }
}

impl Seen {
    /// Kind, name, step, and status of each call.
    fn calls(&self) -> Vec<(ToolKind, &str, u64, CallStatus)> {
        let result = |id: &str| {
            self.events.iter().find_map(|event| match &event.body {
                Body::ToolResult(result) if result.call == id => Some(result.status),
                _ => None,
            })
        };
        let calls = self.events.iter().filter_map(|event| match &event.body {
            Body::ToolCall(call) => Some(call),
            _ => None,
        });
        calls.map(|call| (call.kind, call.name.as_deref().unwrap(), call.step, result(&call.call).unwrap())).collect()
    }

    fn stop(&self) -> &Stop {
        match &self.events.last().unwrap().body {
            Body::Stop(stop) => stop,
            other => panic!("the last event is {other:?}"),
        }
    }

    fn ending(&self) -> (StopReason, Option<&str>) {
        (self.stop().reason, self.stop().output.as_deref())
    }

    /// Input, output, cache read, cache write and money.
    fn spent(&self) -> Spent {
        let mut total = UsageTotal::default();
        for event in &self.events {
            if let Body::Usage(usage) = &event.body {
                total.add(usage);
            }
        }
        (
            total.input_tokens().and_then(Amount::exact),
            total.output_tokens().and_then(Amount::exact),
            total.cache_read_tokens().and_then(Amount::exact),
            total.cache_write_tokens().and_then(Amount::exact),
            total.cost_usd().and_then(Amount::exact),
        )
    }

    fn notices(&self) -> Vec<&str> {
        self.events
            .iter()
            .filter_map(|event| match &event.body {
                Body::Notice { code, .. } => Some(code.as_str()),
                _ => None,
            })
            .collect()
    }

    fn texts(&self, of: impl Fn(&Event) -> Option<&str>) -> Vec<&str> {
        self.events.iter().filter_map(of).collect()
    }
}

fn thought(event: &Event) -> Option<&str> {
    match &event.body {
        Body::Thought { text } => Some(text),
        _ => None,
    }
}

fn message(event: &Event) -> Option<&str> {
    match &event.body {
        Body::Message(message) => Some(&message.text),
        _ => None,
    }
}

/// What the model was scripted to take, so many times.
fn model_calls(n: u64, output: u64, cost: f64) -> Spent {
    (Some(1200 * n), Some(output), Some(5000 * n), Some(300 * n), Some(cost))
}

#[test]
fn every_recording_has_its_trace() {
    for name in RECORDINGS {
        let trace = seen(name).trace;
        insta::assert_snapshot!(name.trim_end_matches(".jsonl").replace('.', "_"), trace);
    }
}

#[test]
fn the_header_says_who_answered() {
    let trace = seen("text.jsonl").trace;
    let header: serde_json::Value = serde_json::from_str(trace.lines().next().unwrap()).unwrap();
    assert_eq!(header["agent"], serde_json::json!({"name": "Claude Code", "version": "2.1.330"}));
    assert_eq!(header["model"], serde_json::json!({"effective": "claude-opus-4-8"}));
    assert_eq!(header["cwd"], "/workspace/cc-text");
    assert_eq!(header["timed"], false);
    assert_eq!(header["capabilities"], serde_json::json!({"tracing": true, "interaction": false}));
}

#[test]
fn a_text_is_an_answer() {
    let seen = seen("text.jsonl");
    let text = "The answer is 42. This is a plain text reply from the mock model.";
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some(text)));
    assert_eq!(seen.calls(), []);
    assert_eq!(seen.spent(), model_calls(1, 77, 0.0123));
}

#[test]
fn a_thought_comes_before_its_answer() {
    let seen = seen("thinking.jsonl");
    assert_eq!(seen.texts(thought), ["Let me think about this. The user wants a number; 6 times 7 is 42."]);
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("After some thought: 42.")));
}

#[test]
fn a_command_that_exits_3_is_an_error_with_its_code() {
    let seen = seen("bash_fail.jsonl");
    assert_eq!(seen.calls(), [(ToolKind::Execute, "Bash", 0, CallStatus::Error)]);
    let result = seen.events.iter().find_map(|event| match &event.body {
        Body::ToolResult(result) => Some(result),
        _ => None,
    });
    let result = result.unwrap();
    assert_eq!((result.exit_code, result.output.as_deref()), (Some(3), Some("Exit code 3\npartial\noops")));
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("The command failed with exit code 3.")));
    assert_eq!(seen.spent(), model_calls(2, 154, 0.0246));
}

#[test]
fn a_write_shows_its_change() {
    let seen = seen("write.jsonl");
    assert_eq!(seen.calls(), [(ToolKind::Edit, "Write", 0, CallStatus::Ok)]);
    for event in &seen.events {
        if let Body::ToolCall(call) = &event.body {
            assert_eq!(call.locations[0].path, "/workspace/cc-write/hello.txt");
        }
        if let Body::ToolResult(result) = &event.body {
            assert_eq!(result.diffs.len(), 1);
            assert_eq!(result.diffs[0].old, None);
            assert_eq!(result.diffs[0].new.as_deref(), Some("hello from mock\nline two\n"));
        }
    }
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("Done: wrote hello.txt.")));
}

#[test]
fn parallel_calls_share_a_step() {
    let seen = seen("parallel.jsonl");
    let ok = CallStatus::Ok;
    assert_eq!(
        seen.calls(),
        [(ToolKind::Execute, "Bash", 0, ok), (ToolKind::Execute, "Bash", 0, ok), (ToolKind::Read, "Read", 0, ok)]
    );
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("All three finished.")));
    assert_eq!(seen.spent(), model_calls(2, 154, 0.0246));
}

#[test]
fn partial_messages_say_nothing_twice() {
    let seen = seen("partial.jsonl");
    let ok = CallStatus::Ok;
    assert_eq!(seen.calls(), [(ToolKind::Edit, "Write", 0, ok), (ToolKind::Execute, "Bash", 1, ok)]);
    assert_eq!(seen.texts(message), ["First I write the file.", "Finished. \n\nanswer.txt holds 42."]);
    assert_eq!(seen.texts(thought), ["Plan: write a file, check it with bash, then report.", "Now verify."]);
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("Finished. \n\nanswer.txt holds 42.")));
    assert_eq!(seen.spent(), model_calls(3, 231, 0.0369));
    assert_eq!(seen.notices(), [""; 0]);
    for event in &seen.events {
        if let Body::ToolCall(call) = &event.body
            && call.name.as_deref() == Some("Write")
        {
            let input = call.input.as_ref().unwrap();
            assert_eq!(input["file_path"], "/workspace/cc-partial/answer.txt");
            assert_eq!(input["content"], "42\n");
        }
    }
}

#[test]
fn a_stream_that_is_cut_keeps_what_its_pieces_said() {
    let all = recording("partial.jsonl");
    let first = |n: usize| all.lines().take(n).collect::<Vec<_>>().join("\n");
    // After the second piece of the thought.
    let trace = imported(&first(8));
    laws::assert_lawful(&trace);
    assert!(trace.contains(r#""type":"thought","text":"Plan: write a file, check it with bash, then rep""#), "{trace}");
    assert!(trace.contains(r#""reason":"crashed","category":"crashed""#), "{trace}");
    // After the last piece of the call's input, before the whole message tells it.
    let trace = imported(&first(21));
    laws::assert_lawful(&trace);
    assert!(trace.contains(r#""input":{"file_path":"#) && trace.contains(r#""content":"42\n""#), "{trace}");
    assert!(trace.contains(r#""status":"unfinished""#), "{trace}");
    // In the middle of the input: what there is of it is no JSON.
    let trace = imported(&first(19));
    assert!(!trace.contains(r#""input":"#) && trace.contains(r#""code":"input_cut""#), "{trace}");
}

#[test]
fn a_whole_message_without_its_input_does_not_empty_it() {
    let all = recording("partial.jsonl");
    let lines: Vec<String> = all
        .lines()
        .map(|line| {
            let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
            if line["type"] == "assistant" && line["message"]["content"][0]["type"] == "tool_use" {
                line["message"]["content"][0]["input"] = serde_json::json!({});
            }
            line.to_string()
        })
        .collect();
    let trace = imported(&lines.join("\n"));
    laws::assert_lawful(&trace);
    assert!(trace.contains(r#""content":"42\n""#) && trace.contains(r#""command":"cat answer.txt; ls | wc -l""#));
}

#[test]
fn what_the_agent_says_was_refused_is_denied() {
    let seen = seen("permission_denied.jsonl");
    let (denied, ok) = (CallStatus::Denied, CallStatus::Ok);
    assert_eq!(seen.calls(), [(ToolKind::Edit, "Write", 0, denied), (ToolKind::Execute, "Bash", 1, ok)]);
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("Finished. \n\nanswer.txt holds 42.")));
}

#[test]
fn a_denial_without_a_result_is_denied() {
    let all = recording("permission_denied.jsonl");
    let trace = imported(&all.lines().take(8).collect::<Vec<_>>().join("\n"));
    laws::assert_lawful(&trace);
    assert!(trace.contains(r#""status":"denied","host":true"#), "{trace}");
}

#[test]
fn a_sub_agents_events_have_their_parent() {
    let seen = seen("subagent.jsonl");
    let ok = CallStatus::Ok;
    assert_eq!(seen.calls(), [(ToolKind::Think, "Agent", 0, ok), (ToolKind::Execute, "Bash", 1, ok)]);
    let child: Vec<&str> =
        seen.events.iter().filter(|event| event.parent.is_some()).map(|event| event.body.word()).collect();
    assert_eq!(child, ["thought", "tool_call", "tool_result", "message"]);
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("The subagent found 7 items.")));
    assert_eq!(seen.spent(), model_calls(5, 385, 0.0615), "two result lines, counted once");
}

#[test]
fn a_sub_agents_prompt_is_a_message_to_it() {
    let seen = seen("subagent_fg.jsonl");
    let prompt = seen.events.iter().find(|event| event.parent.is_some()).unwrap();
    assert_eq!(message(prompt), Some("[[script:sub_child cwd=/workspace/cc-subagent_fg]] Count the items and report."));
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("The subagent found 7 items.")));
    assert_eq!(seen.spent(), model_calls(4, 308, 0.0492));
}

#[test]
fn a_todo_list_is_a_plan_too() {
    let seen = seen("todo.jsonl");
    assert_eq!(seen.calls(), [(ToolKind::Think, "TodoWrite", 0, CallStatus::Error)]);
    let plans: Vec<_> = seen
        .events
        .iter()
        .filter_map(|event| match &event.body {
            Body::Plan { entries } => Some(entries),
            _ => None,
        })
        .collect();
    assert_eq!(plans.len(), 1);
    assert_eq!((plans[0][0].text.as_str(), plans[0][0].status.as_deref()), ("step one", Some("in_progress")));
    assert_eq!((plans[0][1].text.as_str(), plans[0][1].status.as_deref()), ("step two", Some("pending")));
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("Planned.")));
}

#[test]
fn a_refused_request_is_the_providers_error() {
    let seen = seen("err400.jsonl");
    let stop = seen.stop();
    assert_eq!((stop.reason, stop.category), (StopReason::Error, Some(ErrorCategory::Provider)));
    assert_eq!(stop.detail.as_deref(), Some("API Error: 400 mock: prompt is malformed"));
    assert_eq!(stop.output, None);
    assert_eq!(seen.notices(), ["synthetic_message"]);
    assert_eq!(seen.spent(), (None, None, None, None, None), "zeros are no figures");
}

#[test]
fn its_own_limit_is_an_answer() {
    let seen = seen("max_turns.jsonl");
    assert_eq!(seen.ending(), (StopReason::MaxTurns, None));
    assert_eq!(seen.stop().category, None);
    assert_eq!(seen.calls(), [(ToolKind::Execute, "Bash", 0, CallStatus::Ok)]);
    assert_eq!(seen.spent(), model_calls(1, 77, 0.0123));
}

#[test]
fn a_retried_request_is_a_notice() {
    let seen = seen("cut.jsonl");
    assert_eq!(seen.notices(), ["api_retry"]);
    assert_eq!(seen.stop().reason, StopReason::EndTurn);
    assert_eq!(seen.spent(), model_calls(3, 109, 0.03385), "modelUsage is the one that agrees with the cost");
}

#[test]
fn other_alphabets_survive() {
    assert_eq!(seen("unicode.jsonl").ending(), (StopReason::EndTurn, Some("Naïve café ☕ — done 😀")));
}

#[test]
fn the_control_protocol_is_no_noise() {
    let seen = seen("control_allow.wire.jsonl");
    let ok = CallStatus::Ok;
    assert_eq!(seen.calls(), [(ToolKind::Edit, "Write", 0, ok), (ToolKind::Execute, "Bash", 1, ok)]);
    assert_eq!(seen.notices(), [""; 0]);
    assert_eq!(message(&seen.events[0]), Some("[[script:full cwd=/workspace/ctl-allow]] Please do the task."));
    assert_eq!(seen.spent(), model_calls(3, 231, 0.0369));
}

#[test]
fn a_denied_call_is_denied() {
    let seen = seen("control_deny.wire.jsonl");
    let (denied, ok) = (CallStatus::Denied, CallStatus::Ok);
    assert_eq!(seen.calls(), [(ToolKind::Edit, "Write", 0, denied), (ToolKind::Execute, "Bash", 1, ok)]);
    assert_eq!(seen.stop().reason, StopReason::EndTurn);
}

#[test]
fn an_interrupted_turn_is_cancelled() {
    let seen = seen("control_interrupt.wire.jsonl");
    let said: String = (0..18).map(|n| format!("word{n} ")).collect();
    assert_eq!(seen.ending(), (StopReason::Cancelled, Some(format!("{said}word").as_str())));
    assert_eq!(seen.stop().category, None);
    assert_eq!(seen.notices(), ["synthetic_message"]);
    assert_eq!(seen.stop().exit.unwrap().code, Some(1));
}

#[test]
fn two_turns_are_counted_once() {
    let seen = seen("control_two_turns.wire.jsonl");
    assert_eq!(seen.ending(), (StopReason::EndTurn, Some("After some thought: 42.")));
    assert_eq!(seen.spent(), model_calls(2, 154, 0.0246));
    let prompts = seen
        .events
        .iter()
        .filter(|event| matches!(&event.body, Body::Message(message) if message.role == evals::trace::Role::User));
    assert_eq!(prompts.count(), 2);
}

#[test]
fn a_turn_that_was_asked_for_and_not_answered_is_a_crash() {
    let all = recording("control_two_turns.wire.jsonl");
    let trace = imported(&all.lines().take(8).collect::<Vec<_>>().join("\n"));
    laws::assert_lawful(&trace);
    assert!(trace.contains(r#""reason":"crashed""#), "{trace}");
}

#[test]
fn lines_of_any_shape_are_survived() {
    let trace = imported(
        &[
            "",
            "not json",
            "[1,2]",
            "null",
            r#"{"subtype":"init","type":"system","cwd":5,"model":["x"],"claude_code_version":{}}"#,
            r#"{"type":"assistant"}"#,
            r#"{"type":"assistant","message":[1],"parent_tool_use_id":7}"#,
            r#"{"type":"assistant","message":{"id":1,"content":{"type":"text","text":"alone"},"content":"twice"}}"#,
            r#"{"type":"assistant","message":{"content":[5,null,"bare",{"type":"tool_use","id":"a","name":"Bash"},{"type":"new"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a","content":{"x":1}}]},"tool_use_result":[1]}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"b"}]}}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":-1,"delta":{"type":"text_delta","text":"x"}}}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":" piece"}}}"#,
            r#"{"type":"brand_new"}"#,
            r#"{"type":"system","subtype":"brand_new"}"#,
            r#"{"type":"result","total_cost_usd":"free","usage":[],"modelUsage":{"m":5},"errors":"x","permission_denials":{"a":1}}"#,
        ]
        .join("\n"),
    );
    laws::assert_lawful(&trace);
    insta::assert_snapshot!("odd_shapes", trace);
}

#[test]
fn what_the_program_writes_is_a_notice() {
    let trace = imported(
        &[
            r#"{"type":"user","message":{"role":"user","content":"the prompt"}}"#,
            r#"{"type":"assistant","message":{"id":"m","model":"opus","content":[{"type":"text","text":"half"}]}}"#,
            r#"{"type":"user","isSynthetic":true,"message":{"role":"user","content":"Resume directly."}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"Go on."}]}}"#,
            r#"{"type":"assistant","message":{"id":"n","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"half","usage":{"input_tokens":1,"output_tokens":2},"total_cost_usd":0.1}"#,
        ]
        .join("\n"),
    );
    laws::assert_lawful(&trace);
    insta::assert_snapshot!("program_writes", trace);
}

/// A live session's Trace: the engine tells of the prompt, which is no line of the protocol.
fn live(lines: &[WireLine]) -> String {
    let log: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    let trace = imported(&log.join("\n"));
    laws::assert_lawful(&trace);
    trace
}

#[test]
fn a_prompt_given_as_an_argument_is_a_message_and_its_echo_is_none() {
    let prompt = EngineLine::Prompt { text: "do it".into() };
    let recv = |line: &str| WireLine::text(5, Dir::Recv, line);
    let answer =
        r#"{"type":"assistant","message":{"id":"m","model":"opus","content":[{"type":"text","text":"done"}]}}"#;
    let echo = r#"{"type":"user","isReplay":true,"message":{"role":"user","content":"do it"}}"#;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    let trace = live(&[WireLine::engine(1, &prompt), recv(echo), recv(answer), recv(result)]);
    assert_eq!(trace.lines().count(), 4, "{trace}");
    assert!(trace.contains(r#"{"seq":0,"at_ms":1,"type":"message","role":"user","text":"do it"}"#), "{trace}");
    assert!(trace.contains(r#""type":"stop","reason":"end_turn","output":"done""#), "{trace}");
    // A further prompt that nobody answered.
    let trace = live(&[WireLine::engine(1, &prompt), recv(answer), recv(result), WireLine::engine(9, &prompt)]);
    assert!(trace.contains(r#""type":"stop","reason":"crashed""#), "{trace}");
    // The message was lost, and the result says what its last block was.
    let trace = live(&[WireLine::engine(1, &prompt), recv(result)]);
    assert!(trace.contains(r#""type":"stop","reason":"end_turn","output":"done""#), "{trace}");
}

#[test]
fn the_answer_is_that_of_the_last_turn() {
    let said = |text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{text}","model":"x","content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let end = |text: &str| format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{text}"}}"#);
    let init = || r#"{"type":"system","subtype":"init"}"#.to_owned();
    let unfinished = ("unfinished_turn".to_owned(), "text".to_owned());
    for (lines, output, expected) in [
        (vec![said("FINE"), end("FINE"), init(), said("BROKEN"), end("BROKEN")], "BROKEN", vec![]),
        (vec![said("FINE"), end("FINE"), said("not"), said("so"), end("so")], "not\n\nso", vec![]),
        // Both `result` lines come at the end.
        (vec![said("FINE"), init(), said("BROKEN"), end("FINE"), end("BROKEN")], "BROKEN", vec![]),
        // The message of the second turn was lost.
        (vec![said("FINE"), end("FINE"), end("BROKEN")], "BROKEN", vec![]),
        (vec![said("FINE"), end("FINE"), end("FINE")], "FINE", vec![]),
        // The second turn has no end.
        (vec![said("FINE"), end("FINE"), init(), said("BROKEN")], "BROKEN", vec![unfinished.clone()]),
        (vec![said("FINE"), end("FINE"), init()], "FINE", vec![unfinished]),
    ] {
        let trace = imported(&lines.join("\n"));
        laws::assert_lawful(&trace);
        assert_eq!(events_of(&trace, "stop")[0]["output"], output, "{trace}");
        assert_eq!(lost(&trace), expected, "{trace}");
    }
}

#[test]
fn a_turn_is_none_if_the_engine_ends_the_program_before_a_line_of_it() {
    let recv = |line: &str| WireLine::text(5, Dir::Recv, line);
    let said = r#"{"type":"assistant","message":{"id":"m","model":"x","content":[{"type":"text","text":"FINE"}]}}"#;
    let answered = [recv(said), recv(r#"{"type":"result","subtype":"success","is_error":false,"result":"FINE"}"#)];
    let init = recv(r#"{"type":"system","subtype":"init"}"#);
    let thinks = recv(r#"{"type":"system","subtype":"thinking_tokens"}"#);
    let closes = WireLine::engine(9, &EngineLine::CloseStdin);
    let cut = WireLine::engine(9, &EngineLine::Notice { code: "background_cut".into(), text: "ended".into() });
    let unfinished = ("unfinished_turn".to_owned(), "text".to_owned());
    for (lines, expected) in [
        (vec![init.clone(), closes.clone()], vec![]),
        (vec![init, thinks, closes], vec![unfinished]),
        (vec![cut], vec![("background_cut".to_owned(), "call".to_owned())]),
    ] {
        assert_eq!(lost(&live(&[&answered[..], &lines].concat())), expected);
    }
}

#[test]
fn a_turn_that_the_program_began_itself_is_the_answer_only_if_no_turn_for_the_prompt_follows() {
    let recv = |line: serde_json::Value| WireLine::text(5, Dir::Recv, line.to_string());
    let prompt = |text: &str| {
        let line = json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}});
        WireLine::text(5, Dir::Send, line.to_string())
    };
    let says = |text: &str| {
        let block = json!({"type": "text", "text": text});
        recv(json!({"type": "assistant", "message": {"id": text, "model": "x", "content": [block]}}))
    };
    let ends = |text: &str, origin: serde_json::Value| {
        let end = json!({"type": "result", "subtype": "success", "is_error": false, "result": text, "origin": origin});
        recv(end)
    };
    let begins = || recv(json!({"type": "system", "subtype": "init"}));
    let closes = || WireLine::engine(9, &EngineLine::CloseStdin);
    let exits = || WireLine::text(9, Dir::Exit, r#"{"code":0,"signal":null}"#);
    let none = serde_json::Value::Null;
    let own = [
        prompt("one"),
        says("FIRST"),
        ends("FIRST", none.clone()),
        prompt("two"),
        begins(),
        says("OWN"),
        ends("OWN", json!({"kind": "task-notification"})),
    ];
    let answered = [begins(), says("SECOND"), ends("SECOND", none.clone())];
    let late = [begins(), ends("SECOND", none.clone())];
    let third = [prompt("three"), says("THIRD"), ends("THIRD", none)];
    let told = vec!["unfinished_turn"];
    for (lines, reason, output, codes) in [
        ([&answered[..], &[closes(), exits()]].concat(), "end_turn", "SECOND", vec![]),
        // The message of the turn was lost.
        ([&late[..], &[closes(), exits()]].concat(), "end_turn", "SECOND", vec![]),
        // The engine went on, because no turn for the prompt had begun.
        (vec![closes(), exits()], "end_turn", "OWN", told.clone()),
        ([&third[..], &[closes(), exits()]].concat(), "end_turn", "THIRD", told),
        (vec![exits()], "crashed", "OWN", vec![]),
        (vec![begins(), closes(), exits()], "crashed", "OWN", vec![]),
        (vec![begins(), says("SEC"), exits()], "crashed", "SEC", vec![]),
    ] {
        let log: Vec<String> = own.iter().chain(&lines).map(|line| serde_json::to_string(line).unwrap()).collect();
        let trace = crate::claude::imported_both_ways(&log.join("\n"));
        laws::assert_lawful(&trace);
        let stop = events_of(&trace, "stop").remove(0);
        assert_eq!((&stop["reason"], &stop["output"]), (&reason.into(), &output.into()), "{trace}");
        let notices = events_of(&trace, "notice");
        assert_eq!(notices.iter().map(|it| it["code"].as_str().unwrap()).collect::<Vec<_>>(), codes, "{trace}");
        assert!(lost(&trace).is_empty(), "{trace}");
    }
}

#[test]
fn a_turn_that_the_engine_cancelled_ends_cancelled_with_its_calls() {
    let recv = |line: &str| WireLine::text(5, Dir::Recv, line);
    let trace = live(&[
        recv(
            r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"sleep 9"}}]}}"#,
        ),
        WireLine::engine(6, &EngineLine::Cancel),
        recv(r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["stopped"]}"#),
    ]);
    assert!(trace.contains(r#""call":"t","status":"cancelled","host":true"#), "{trace}");
    assert!(trace.contains(r#""type":"stop","reason":"cancelled""#), "{trace}");
}

#[test]
fn a_prompt_that_begins_with_a_picture_begins_a_turn() {
    let send = |line: &str| WireLine::text(1, Dir::Send, line);
    let recv = |line: &str| WireLine::text(5, Dir::Recv, line);
    let trace = live(&[
        send(r#"{"type":"user","message":{"role":"user","content":"first"}}"#),
        recv(r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"one"}]}}"#),
        recv(r#"{"type":"result","subtype":"success","is_error":false,"result":"one"}"#),
        send(
            r#"{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"media_type":"image/png","data":"AAAA"}},{"type":"text","text":"second"}]}}"#,
        ),
    ]);
    assert!(
        trace.contains(r#""text":"second","attachments":[{"kind":"image","media_type":"image/png","bytes":4}]"#),
        "{trace}"
    );
    assert!(trace.lines().last().unwrap().ends_with(r#""reason":"crashed","category":"crashed"}"#), "{trace}");
}

/// Returns the parsed lines of a trace of this type.
fn events_of(trace: &str, kind: &str) -> Vec<serde_json::Value> {
    let lines = trace.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines.filter(|event| event["type"] == kind).collect()
}

fn is_any_lost(trace: &str) -> bool {
    events_of(trace, "notice").iter().any(|notice| notice["lost"] == "line")
}

#[test]
fn an_outcome_that_is_not_a_boolean_is_read_if_it_is_plain_and_else_unknown() {
    for (is_error, status) in [
        ("false", "ok"),
        ("null", "ok"),
        ("true", "error"),
        ("\"true\"", "error"),
        ("1", "error"),
        ("0", "ok"),
        ("\"exploded\"", "unfinished"),
        ("[true]", "unfinished"),
        ("7", "unfinished"),
    ] {
        let result = format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"a","content":"x","is_error":{is_error}}}]}}}}"#
        );
        let trace = imported(
            &[
                r#"{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use","id":"a","name":"Bash","input":{"command":"make"}}]}}"#,
                &result,
                r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#,
            ]
            .join("\n"),
        );
        laws::assert_lawful(&trace);
        assert_eq!(events_of(&trace, "tool_result")[0]["status"], status, "{trace}");
        assert_eq!(is_any_lost(&trace), status == "unfinished", "{trace}");
    }
}

#[test]
fn a_block_that_may_be_a_call_is_lost() {
    let call = r#""id":"s","name":"Bash","input":{"command":"rm -rf x"}"#;
    let assistant = |content: &str| format!(r#"{{"type":"assistant","message":{{"content":{content}}}}}"#);
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    for (line, is_lost) in [
        (assistant(&format!(r#"[{{"type":"super_tool_use",{call}}}]"#)), true),
        (assistant(&format!(r#"[{{"type":"action",{call}}}]"#)), true),
        (assistant(&format!(r#"[{{"type":null,{call}}}]"#)), true),
        (assistant("[null]"), true),
        (assistant("5"), true),
        (assistant(r#"[{"type":"citation","text":"x"}]"#), true),
        (assistant(r#"[{"type":"citation","title":"x"}]"#), false),
        (r#"{"type":"assistant","message":"rm -rf x"}"#.to_owned(), true),
        (r#"{"type":"user","message":{"content":[null]}}"#.to_owned(), true),
        (format!(r#"{{"type":"model","message":{{"content":[{{"type":"tool_use",{call}}}]}}}}"#), true),
        (r#"{"type":"model","message":{"content":[{"type":"text","text":"x"}]}}"#.to_owned(), false),
        (
            format!(
                r#"{{"type":"assistant","message":{{"model":"<synthetic>","content":[{{"type":"tool_use",{call}}}]}}}}"#
            ),
            true,
        ),
        (r#"{"type":"result","subtype":"success","permission_denials":[{"tool_use_id":"zz"}]}"#.to_owned(), true),
    ] {
        let trace = imported(&format!("{line}\n{result}"));
        laws::assert_lawful(&trace);
        assert!(!events_of(&trace, "notice").is_empty(), "{trace}");
        assert_eq!(is_any_lost(&trace), is_lost, "{trace}");
    }
}

#[test]
fn a_model_without_usage_is_a_notice() {
    let trace = imported(
        r#"{"type":"result","subtype":"success","result":"x","modelUsage":{"m":{"inputTokens":1,"outputTokens":3},"n":null}}"#,
    );
    assert_eq!(events_of(&trace, "notice")[0]["code"], "usage_invalid", "{trace}");
}

#[test]
fn a_request_without_a_call_id_is_about_the_call_it_describes() {
    let recv = |line: &str| WireLine::text(5, Dir::Recv, line);
    let ask = |id: &str, tool: &str| {
        recv(&format!(
            r#"{{"type":"control_request","request_id":"{id}","request":{{"subtype":"can_use_tool","tool_name":{tool},"input":{{"command":"make"}}}}}}"#
        ))
    };
    let deny = |id: &str| {
        let line = format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{id}","response":{{"behavior":"deny"}}}}}}"#
        );
        WireLine::text(5, Dir::Send, &line)
    };
    let call = |id: &str| {
        recv(&format!(
            r#"{{"type":"assistant","message":{{"id":"m{id}","content":[{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"make"}}}}]}}}}"#
        ))
    };
    let end = || recv(r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#);
    let both_ways = |lines: &[WireLine]| {
        let log: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
        let trace = crate::claude::imported_both_ways(&log.join("\n"));
        laws::assert_lawful(&trace);
        trace
    };
    let statuses = |trace: &str| {
        let results = events_of(trace, "tool_result").into_iter();
        let mut all: Vec<String> = results.map(|event| format!("{} {}", event["call"], event["status"])).collect();
        all.sort();
        all
    };

    // The announced call.
    let trace = both_ways(&[call("a"), ask("r", "\"Bash\""), deny("r"), end()]);
    assert_eq!(statuses(&trace), [r#""a" "denied""#], "{trace}");
    // Each of two equal calls.
    let trace = both_ways(&[call("a"), call("b"), ask("r", "\"Bash\""), ask("s", "\"Bash\""), deny("s"), end()]);
    assert_eq!(statuses(&trace), [r#""a" "unfinished""#, r#""b" "denied""#], "{trace}");
    // A call that was never announced.
    let trace = both_ways(&[ask("r", "\"Bash\""), deny("r"), end()]);
    assert_eq!(statuses(&trace), [r#""request:r" "denied""#], "{trace}");
    assert_eq!(events_of(&trace, "tool_call")[0]["input"]["command"], "make", "{trace}");
    // A request that does not describe its call.
    let trace = both_ways(&[ask("r", "null"), end()]);
    assert!(statuses(&trace).is_empty() && is_any_lost(&trace), "{trace}");
}

#[test]
fn each_of_two_requests_with_one_id_has_its_own_answer() {
    let recv = |line: serde_json::Value| WireLine::text(5, Dir::Recv, line.to_string());
    let call = |id: &str, command: &str| {
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}});
        recv(json!({"type": "assistant", "message": {"id": format!("m{id}"), "content": [block]}}))
    };
    let ask = |call: &str, command: &str| {
        let asked =
            json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": command}, "tool_use_id": call});
        recv(json!({"type": "control_request", "request_id": "r", "request": asked}))
    };
    let answer = |answer: serde_json::Value| {
        let response = json!({"subtype": "success", "request_id": "r", "response": answer});
        WireLine::text(5, Dir::Send, json!({"type": "control_response", "response": response}).to_string())
    };
    let decided = |policy: &str| {
        let (id, policy) = (json!("r"), policy.to_owned());
        WireLine::engine(5, &EngineLine::Permission { id, policy, rule: None, reason: None, rejects: false })
    };
    let lines = [
        call("a", "ls"),
        call("b", "rm -rf /"),
        ask("a", "ls"),
        ask("b", "rm -rf /"),
        decided("one"),
        answer(json!({"behavior": "allow", "updatedInput": {"command": "ls"}})),
        decided("two"),
        answer(json!({"behavior": "deny"})),
        recv(json!({"type": "result", "subtype": "success", "is_error": false, "result": "done"})),
    ];
    let log: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    let trace = crate::claude::imported_both_ways(&log.join("\n"));
    laws::assert_lawful(&trace);
    let answers: Vec<String> = events_of(&trace, "permission_response")
        .iter()
        .map(|it| format!("{} {} {} {}", it["call"], it["outcome"], it["policy"], it["updated_input"]))
        .collect();
    let expected = [r#""a" "allowed" "one" null"#, r#""b" "rejected" "two" null"#];
    assert_eq!(answers, expected, "{trace}");
    assert_eq!(lost(&trace), [("duplicate_request".to_owned(), "call".to_owned())]);
}

/// The notices of a session with these calls of Bash, each with its result, and these denials, and the statuses of the calls.
fn denied(calls: &[(&str, &str, serde_json::Value)], denials: &serde_json::Value) -> (Vec<String>, Vec<String>) {
    let mut lines = Vec::new();
    for (id, command, is_error) in calls {
        let input = json!({"command": command, "description": "d"});
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": input});
        lines.push(json!({"type": "assistant", "message": {"id": format!("m{id}"), "content": [block]}}));
        if !is_error.is_null() {
            let block = json!({"type": "tool_result", "tool_use_id": id, "content": id, "is_error": is_error});
            lines.push(json!({"type": "user", "message": {"role": "user", "content": [block]}}));
        }
    }
    lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "result": "A", "permission_denials": denials}));
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let trace = imported(&lines.join("\n"));
    laws::assert_lawful(&trace);
    let mut statuses: Vec<String> = events_of(&trace, "tool_result")
        .iter()
        .map(|it| format!("{} {}", it["call"].as_str().unwrap(), it["status"].as_str().unwrap()))
        .collect();
    statuses.sort();
    (statuses, lost(&trace).into_iter().map(|(code, lost)| format!("{code} {lost}")).collect())
}

#[test]
fn a_denial_without_an_id_is_about_the_calls_that_it_describes_or_their_outcomes_are_unknown() {
    let denial = |command: &str| json!({"tool_name": "Bash", "tool_input": {"description": "d", "command": command}});
    let (ok, failed, open) = (json!(false), json!(true), serde_json::Value::Null);
    let unknown = "late_denial outcome";
    for (calls, denials, statuses, losses) in [
        (vec![("a", "rm x", &failed)], json!([denial("rm x")]), vec!["a denied"], vec![]),
        (vec![("a", "rm x", &open)], json!([denial("rm x")]), vec!["a denied"], vec![]),
        (
            vec![("a", "rm x", &failed), ("b", "ls", &failed)],
            json!([denial("rm x")]),
            vec!["a denied", "b error"],
            vec![],
        ),
        (vec![("a", "rm x", &failed)], json!([{"toolUseId": "a", "tool_name": "Bash"}]), vec!["a denied"], vec![]),
        (
            vec![("a", "rm x", &failed), ("b", "rm x", &failed)],
            json!([denial("rm x"), denial("rm x")]),
            vec!["a denied", "b denied"],
            vec![],
        ),
        (
            vec![("a", "rm x", &failed), ("b", "rm x", &failed)],
            json!([denial("rm x")]),
            vec!["a error", "b error"],
            vec![unknown],
        ),
        (vec![("a", "rm x", &ok)], json!([denial("rm x")]), vec!["a ok"], vec![unknown]),
        (vec![("a", "rm x", &failed)], json!([denial("rm y")]), vec!["a error"], vec!["unknown_call line", unknown]),
        (vec![("a", "rm x", &failed)], json!([{}]), vec!["a error"], vec!["unknown_call line", unknown]),
    ] {
        let calls: Vec<_> = calls.into_iter().map(|(id, command, status)| (id, command, status.clone())).collect();
        let (found, lost) = denied(&calls, &denials);
        assert_eq!((found, lost), (texts_of(&statuses), texts_of(&losses)), "{denials}");
    }
}

#[test]
fn a_call_with_the_id_of_a_denied_call_is_another_call() {
    let call = |message: &str, command: &str| {
        let block = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": command}});
        json!({"type": "assistant", "message": {"id": message, "model": "x", "content": [block]}})
    };
    let told = |output: &str, is_error: bool| {
        let block = json!({"type": "tool_result", "tool_use_id": "t", "content": output, "is_error": is_error});
        json!({"type": "user", "message": {"role": "user", "content": [block]}})
    };
    let end = |denied: &[&str]| {
        let denial =
            |command: &&str| json!({"tool_name": "Bash", "tool_use_id": "t", "tool_input": {"command": command}});
        let denials: Vec<_> = denied.iter().map(denial).collect();
        json!({"type": "result", "subtype": "success", "is_error": false, "result": "A", "permission_denials": denials})
    };
    let reported = json!({"type": "system", "subtype": "permission_denied", "tool_use_id": "t"});
    let denied = [call("m1", "rm a"), told("you haven't granted it yet.", true)];
    let ran = [call("m2", "rm b"), told("removed", false)];
    let both: &[&str] = &["t denied", "t#2 ok"];
    let unknown = ("late_denial".to_owned(), "outcome".to_owned());
    for (lines, statuses, expected) in [
        ([&denied[..], &[end(&["rm a"])], &ran, &[end(&[])]].concat(), both, vec![]),
        ([&denied[..], &ran, &[end(&["rm a"])]].concat(), both, vec![]),
        ([&[reported.clone()][..], &denied, &ran, &[end(&["rm a"])]].concat(), both, vec![]),
        ([&denied[..1], std::slice::from_ref(&reported), &denied[1..], &ran, &[end(&["rm a"])]].concat(), both, vec![]),
        // The second denial is about the call that ran.
        ([&denied[..], &ran, &[end(&["rm a", "rm b"])]].concat(), both, vec![unknown]),
        // The call that was denied was never shown.
        ([&[reported, end(&[])][..], &ran, &[end(&[])]].concat(), &["t ok"][..], vec![]),
    ] {
        let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
        let trace = imported(&lines.join("\n"));
        laws::assert_lawful(&trace);
        let results = events_of(&trace, "tool_result");
        let status =
            |it: &serde_json::Value| format!("{} {}", it["call"].as_str().unwrap(), it["status"].as_str().unwrap());
        assert_eq!(results.iter().map(status).collect::<Vec<_>>(), statuses, "{trace}");
        assert_eq!(lost(&trace), expected, "{trace}");
    }
}

#[test]
fn a_sub_agent_whose_call_has_a_used_id_does_not_hide_behind_the_first_one() {
    let line = |kind: &str, parent: Option<&str>, message: &str, block: serde_json::Value| {
        let message = json!({"id": message, "model": "x", "content": [block]});
        json!({"type": kind, "parent_tool_use_id": parent, "message": message}).to_string()
    };
    let starts = |message: &str| {
        line(
            "assistant",
            None,
            message,
            json!({"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": message}}),
        )
    };
    let works = |id: &str| {
        [
            line(
                "assistant",
                Some("t"),
                id,
                json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": id}}),
            ),
            line("user", Some("t"), id, json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})),
        ]
        .join("\n")
    };
    let ends = line("user", None, "", json!({"type": "tool_result", "tool_use_id": "t", "content": "done"}));
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"A"}"#.to_owned();
    let first = [starts("m1"), works("a"), ends.clone(), starts("m2")];
    let trace = imported(&[&first[..], &[ends.clone(), end.clone()]].concat().join("\n"));
    laws::assert_lawful(&trace);
    assert_eq!(lost(&trace), [("hidden_sub_agent".to_owned(), "call".to_owned())], "{trace}");
    assert!(trace.contains("the sub-agent of the call t#2 did"), "{trace}");
    let trace = imported(&[&first[..], &[works("b"), ends, end]].concat().join("\n"));
    laws::assert_lawful(&trace);
    assert!(lost(&trace).is_empty(), "{trace}");
    let parents: Vec<_> = events_of(&trace, "tool_call").iter().map(|call| call["parent"].clone()).collect();
    assert_eq!(parents, [json!(null), json!("t"), json!(null), json!("t#2")], "{trace}");
}

fn texts_of(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn an_answer_that_begins_like_an_error_is_an_answer() {
    let session = |model: &str, more: &str, result: &str| {
        let said = format!(
            r#"{{"type":"assistant",{more}"message":{{"id":"m","model":"{model}","content":[{{"type":"text","text":"API Error: 429 was the cause."}}]}}}}"#
        );
        let end =
            format!(r#"{{"type":"result","subtype":"success",{result}"result":"API Error: 429 was the cause."}}"#);
        imported(&format!("{said}\n{end}\n"))
    };
    let reason = |trace: &str| events_of(trace, "stop")[0]["reason"].as_str().unwrap().to_owned();
    for (model, more, result, ends) in [
        ("claude-x", "", r#""is_error":false,"#, "end_turn"),
        ("<synthetic>", "", r#""is_error":false,"#, "error"),
        ("claude-x", r#""isApiErrorMessage":true,"#, r#""is_error":false,"#, "error"),
        ("claude-x", "", r#""is_error":false,"api_error_status":429,"#, "error"),
        ("claude-x", "", r#""is_error":true,"#, "error"),
        ("claude-x", "", "", "error"),
    ] {
        assert_eq!(reason(&session(model, more, result)), ends, "{model} {more} {result}");
    }
}

/// A session with one call of a tool, its result, and lines after it.
fn session_with(tool: &str, result: &str, more: &str) -> String {
    let call = format!(r#"{{"type":"tool_use","id":"t1","name":"{tool}","input":{{"command":"pytest"}}}}"#);
    let said = format!(r#"{{"type":"assistant","message":{{"id":"m1","model":"x","content":[{call}]}}}}"#);
    let told = r#"{"type":"tool_result","tool_use_id":"t1","content":"ok"}"#;
    let told =
        format!(r#"{{"type":"user","message":{{"role":"user","content":[{told}]}},"tool_use_result":{result}}}"#);
    let answer = r#"{"type":"assistant","message":{"id":"m2","model":"x","content":[{"type":"text","text":"A"}]}}"#;
    format!("{said}\n{told}\n{answer}\n{more}\n")
}

/// The codes of the notices that lose something, and what they lose.
fn lost(trace: &str) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let notices = events_of(trace, "notice");
    notices.iter().filter(|it| it.get("lost").is_some()).map(|it| (text(&it["code"]), text(&it["lost"]))).collect()
}

#[test]
fn a_task_that_fails_after_its_call_was_forgotten_is_not_passed_over() {
    let mut lines = Vec::new();
    for n in 0..300 {
        let call = json!({"type": "tool_use", "id": format!("c{n}"), "name": "Read"});
        let result = json!({"type": "tool_result", "tool_use_id": format!("c{n}"), "content": "x"});
        lines.push(json!({"type": "assistant", "message": {"id": format!("c{n}"), "model": "x", "content": [call]}}));
        lines.push(json!({"type": "user", "message": {"role": "user", "content": [result]}}));
    }
    let (code, status) = ("task_notification", "failed");
    lines.push(json!({"type": "system", "subtype": code, "task_id": "b", "tool_use_id": "t1", "status": status}));
    lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "result": "A"}));
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let trace = imported(&session_with("Agent", r#"{"isAsync":true,"agentId":"b"}"#, &lines.join("\n")));
    assert!(lost(&trace).contains(&("task_failed".to_owned(), "outcome".to_owned())), "{trace}");
}

#[test]
fn a_failure_in_the_background_that_the_trace_shows_is_no_other_outcome_when_it_is_told_again() {
    let news = json!({"type": "system", "subtype": "task_notification", "task_id": "b", "tool_use_id": "t1", "status": "failed"});
    let mut lines = vec![news.to_string()];
    for n in 0..300 {
        let call = json!({"type": "tool_use", "id": format!("c{n}"), "name": "Read"});
        let result = json!({"type": "tool_result", "tool_use_id": format!("c{n}"), "content": "x"});
        let said = json!({"type": "assistant", "message": {"id": format!("c{n}"), "model": "x", "content": [call]}});
        let told = json!({"type": "user", "message": {"role": "user", "content": [result]}});
        lines.extend([said.to_string(), told.to_string()]);
    }
    lines.push(news.to_string());
    lines.push(json!({"type": "result", "subtype": "success", "is_error": false, "result": "A"}).to_string());
    let trace = imported(&session_with("Bash", r#"{"backgroundTaskId":"b"}"#, &lines.join("\n")));
    assert_eq!(events_of(&trace, "tool_result")[0]["status"], "error", "{trace}");
    assert!(lost(&trace).iter().all(|(code, _)| code != "task_failed"), "{trace}");
}

#[test]
fn what_a_command_in_the_background_came_to_is_not_passed_over() {
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"A"}"#;
    let task =
        |subtype: &str, fields: &str| format!(r#"{{"type":"system","subtype":"{subtype}","task_id":"b",{fields}}}"#);
    let notified =
        |status: &str| task("task_notification", &format!(r#""tool_use_id":"t1","status":"{status}","summary":"x""#));
    let (launched, async_launched) = (r#"{"backgroundTaskId":"b"}"#, r#"{"isAsync":true,"agentId":"b"}"#);
    let started = task("task_started", r#""tool_use_id":"t1","task_type":"local_bash""#);
    let text = "<task-notification>\\n<task-id>b</task-id>\\n<status>failed</status>\\n<summary>x</summary>";
    let text = format!(r#"{{"type":"user","message":{{"role":"user","content":"{text}"}}}}"#);
    let none: &[(&str, &str)] = &[];
    let failed: &[(&str, &str)] = &[("task_failed", "outcome")];
    let hidden = ("hidden_sub_agent", "call");
    for (tool, result, news, status, expected) in [
        ("Bash", launched, notified("failed"), "error", none),
        ("Bash", launched, notified("completed"), "ok", none),
        ("Bash", launched, notified("stopped"), "unfinished", none),
        ("Bash", launched, String::new(), "unfinished", none),
        ("Bash", launched, format!("{}\n{}", notified("completed"), notified("failed")), "ok", failed),
        ("Bash", launched, format!("{started}\n{}", task("task_notification", r#""status":"failed""#)), "error", none),
        (
            "Bash",
            launched,
            format!("{started}\n{}", task("task_updated", r#""patch":{"status":"failed"}"#)),
            "error",
            none,
        ),
        (
            "Bash",
            launched,
            format!("{started}\n{}", task("task_updated", r#""patch":{"status":"running"}"#)),
            "unfinished",
            none,
        ),
        ("Bash", launched, text, "error", none),
        ("Agent", async_launched, notified("failed"), "ok", &[failed[0], hidden]),
        ("Agent", async_launched, notified("stopped"), "ok", &[("task_stopped", "outcome"), hidden]),
        ("BashOutput", r#"{"shellId":"b","status":"failed","exitCode":1}"#, String::new(), "ok", failed),
        (
            "TaskOutput",
            r#"{"retrieval_status":"success","task":{"task_id":"b","status":"failed"}}"#,
            String::new(),
            "ok",
            failed,
        ),
        (
            "TaskOutput",
            r#"{"retrieval_status":"success","task":{"task_id":"b","status":"running"}}"#,
            String::new(),
            "ok",
            none,
        ),
        // The status is the tool's own.
        ("mcp__ci__job", r#"{"status":"failed","job":3}"#, String::new(), "ok", none),
    ] {
        let trace = imported(&session_with(tool, result, &format!("{news}\n{end}")));
        laws::assert_lawful(&trace);
        let seen = lost(&trace);
        let seen: Vec<(&str, &str)> = seen.iter().map(|(code, what)| (code.as_str(), what.as_str())).collect();
        assert_eq!(seen, expected, "{tool} {result} {news}");
        let results = events_of(&trace, "tool_result");
        assert_eq!((results.len(), &results[0]["status"]), (1, &status.into()), "{tool} {result} {news}: {trace}");
    }
    // The news may come before the result, and a later call may ask.
    let before_result = |news: &str, session: String| session.replacen("\n", &format!("\n{news}\n"), 1);
    let trace = imported(&before_result(&notified("failed"), session_with("Bash", launched, end)));
    assert_eq!(events_of(&trace, "tool_result")[0]["status"], "error", "{trace}");
    let asks = session_with("TaskOutput", r#"{"task":{"task_id":"b","status":"failed"}}"#, end).replace("t1", "t2");
    let trace = imported(&(session_with("Bash", launched, "") + &asks));
    let results = events_of(&trace, "tool_result");
    assert_eq!((&results[0]["call"], &results[0]["status"]), (&"t1".into(), &"error".into()), "{trace}");
    // The end of a turn does not end it.
    let cancelled = r#"{"type":"result","subtype":"cancelled","is_error":false,"result":"A"}"#;
    let trace = imported(&session_with("Bash", launched, cancelled));
    assert_eq!(events_of(&trace, "tool_result")[0]["status"], "unfinished", "{trace}");
}

#[test]
fn a_command_that_only_its_text_shows_in_the_background_has_no_outcome() {
    let texts = [
        "Command running in background with ID: b",
        "early\nCommand running in background with ID: b. Output is being written to: /t.",
        "Command was manually backgrounded by user with ID: b. Output is being written to: /t.",
        "Command was moved to the background (ID: b) so that a message that arrived while it was running can reach you.",
        "Command was moved to the background (ID: b) after running for 120s. Output is being written to: /t.",
        "Command did not complete within its 120s timeout and was moved to the background (ID: b). Output is there.",
    ];
    let status = |tool: &str, told: &str, text: &str| {
        let content = format!(r#""content":{}"#, serde_json::Value::from(text));
        let trace = imported(&session_with(tool, told, "").replace(r#""content":"ok""#, &content));
        let result = events_of(&trace, "tool_result")[0].clone();
        assert_eq!(result["output"], text, "{trace}");
        result["status"].as_str().unwrap().to_owned()
    };
    for text in texts {
        assert_eq!(status("Bash", "null", text), "unfinished", "{text}");
        // The data of the result, and another tool's text, say something else.
        assert_eq!(status("Bash", r#"{"stdout":"x"}"#, text), "ok", "{text}");
        assert_eq!(status("Read", "null", text), "ok", "{text}");
    }
    assert_eq!(status("Bash", "null", "the command did not complete"), "ok");
}

#[test]
fn a_report_of_more_calls_of_a_sub_agent_than_are_shown_counts_in_every_form() {
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"A"}"#;
    let progress = r#"{"type":"system","subtype":"task_progress","tool_use_id":"t1","usage":{"tool_uses":7}}"#;
    let spoke = r#"{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m3","model":"x","content":[{"type":"text","text":"B"}]}}"#;
    for (result, more, is_hidden) in [
        (r#"{"content":[],"totalToolUseCount":5}"#, end.to_owned(), true),
        (r#"{"content":[],"totalToolUseCount":0}"#, end.to_owned(), false),
        (r#"{"content":[]}"#, format!("{progress}\n{end}"), true),
    ] {
        let trace = imported(&session_with("Task", result, &format!("{spoke}\n{more}")));
        let hidden = lost(&trace).iter().any(|(code, _)| code == "hidden_sub_agent");
        assert_eq!(hidden, is_hidden, "{result} {more}\n{trace}");
    }
}

#[test]
fn a_sub_agent_whose_task_names_no_call_is_not_passed_over() {
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"A"}"#;
    let started = |kind: &str| {
        format!(r#"{{"type":"system","subtype":"task_started","task_id":"b","task_type":"{kind}","description":"x"}}"#)
    };
    let ended = |more: &str| {
        format!(r#"{{"type":"system","subtype":"task_notification","task_id":"b","status":"completed"{more}}}"#)
    };
    let calls = |more: &str| {
        let call = r#"{"type":"tool_use","id":"t5","name":"Bash","input":{"command":"ls"}}"#;
        format!(r#"{{"type":"assistant",{more},"message":{{"id":"m5","model":"x","content":[{call}]}}}}"#)
    };
    let (agent, shell, of_call) = ("local_agent", "local_bash", r#""parent_tool_use_id":"t1""#);
    let named_task = started(agent).replace(r#""task_id":"b""#, r#""task_id":"c","tool_use_id":"t1""#);
    let hidden = [("hidden_sub_agent".to_owned(), "call".to_owned())];
    for (tool, lines, expected) in [
        ("Bash", vec![started(agent), ended(r#","usage":{"tool_uses":3}"#)], &hidden[..]),
        ("Bash", vec![started(agent), ended("")], &hidden),
        ("Bash", vec![started(agent)], &hidden),
        ("Bash", vec![started(agent), ended(r#","usage":{"tool_uses":0}"#)], &[]),
        ("Bash", vec![started(shell), ended(r#","usage":{"tool_uses":3}"#)], &[]),
        ("Bash", vec![started(agent), calls(r#""agent_id":"b""#), ended(r#","usage":{"tool_uses":1}"#)], &[]),
        ("Bash", vec![started(agent), calls(r#""agent_id":"b""#), ended(r#","usage":{"tool_uses":2}"#)], &hidden),
        // The call is named later.
        (
            "Agent",
            vec![
                started(agent),
                calls(r#""parent_tool_use_id":"t1""#),
                ended(r#","tool_use_id":"t1","usage":{"tool_uses":1}"#),
            ],
            &[],
        ),
        // The call is never named, and the only call that can have started the task shows as much.
        ("Agent", vec![started(agent), calls(of_call), ended(r#","usage":{"tool_uses":1}"#)], &[]),
        ("Agent", vec![started(agent), calls(of_call), ended("")], &[]),
        ("Agent", vec![started(agent), calls(of_call), ended(r#","usage":{"tool_uses":2}"#)], &hidden),
        // Another task names that call.
        ("Agent", vec![named_task, calls(of_call), started(agent), ended(r#","usage":{"tool_uses":1}"#)], &hidden),
    ] {
        let trace = imported(&session_with(tool, "{}", &format!("{}\n{end}", lines.join("\n"))));
        laws::assert_lawful(&trace);
        assert_eq!(lost(&trace), expected, "{tool} {lines:?}\n{trace}");
    }
}

#[test]
fn what_only_the_result_line_shows_is_not_passed_over() {
    let unseen = ("unseen_search".to_owned(), "call".to_owned());
    for (tool, fields, expected) in [
        ("Bash", r#""result":"A","usage":{"server_tool_use":{"web_search_requests":3}}"#, vec![unseen.clone()]),
        (
            "Bash",
            r#""result":"A","modelUsage":{"m":{"inputTokens":1,"outputTokens":1,"webSearchRequests":3}}"#,
            vec![unseen],
        ),
        ("WebSearch", r#""result":"A","usage":{"server_tool_use":{"web_search_requests":3}}"#, vec![]),
        ("Bash", r#""result":"A","usage":{"server_tool_use":{"web_search_requests":0}}"#, vec![]),
        ("Bash", r#""result":" A\n""#, vec![]),
    ] {
        let end = format!(r#"{{"type":"result","subtype":"success","is_error":false,{fields}}}"#);
        assert_eq!(lost(&imported(&session_with(tool, "{}", &end))), expected, "{tool} {fields}");
    }
    // The messages are the answer; another text at the end of the turn is told.
    for (result, is_told) in [("sorry, B", true), ("A and B", true), (" A ", false), ("A…", false)] {
        let end = format!(r#"{{"type":"result","subtype":"success","is_error":false,"result":"{result}"}}"#);
        let trace = imported(&session_with("Bash", "{}", &end));
        let codes: Vec<_> = events_of(&trace, "notice").iter().map(|notice| notice["code"].clone()).collect();
        assert_eq!(codes.contains(&"answer_differs".into()), is_told, "{result}");
        assert_eq!(events_of(&trace, "stop")[0]["output"], "A", "{result}");
    }
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"","structured_output":{"answer":42}}"#;
    assert_eq!(events_of(&imported(end), "stop")[0]["output"], r#"{"answer":42}"#);
}

#[test]
fn an_error_of_the_program_in_the_models_place_is_no_answer() {
    let said = |model: &str, error: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","message":{{"id":"m","model":"{model}","content":[{{"type":"text","text":"{text}"}}]}}{error}}}"#
        )
    };
    for (line, category) in [
        (said("<synthetic>", r#","error":"rate_limit""#, "Come back later"), "rate_limit"),
        (said("x", r#","error":"rate_limit""#, "Come back later"), "rate_limit"),
        (said("<synthetic>", "", "You've hit your limit"), "rate_limit"),
        (said("<synthetic>", "", "Claude AI usage limit reached|1760000000"), "rate_limit"),
        (said("<synthetic>", "", "Prompt is too long"), "provider"),
        (said("<synthetic>", "", "OAuth token revoked"), "auth"),
    ] {
        for is_error in [true, false] {
            let end = format!(r#"{{"type":"result","subtype":"success","is_error":{is_error},"result":"x"}}"#);
            let stop = events_of(&imported(&format!("{line}\n{end}")), "stop").remove(0);
            let expected = if is_error && !line.contains("\"error\"") { "protocol" } else { category };
            assert_eq!((&stop["reason"], &stop["category"]), (&"error".into(), &expected.into()), "{line} {end}");
        }
    }
    // The model went on after the error.
    let line = said("<synthetic>", r#","error":"rate_limit""#, "Come back later");
    let end = r#"{"type":"result","subtype":"success","is_error":false,"result":"done"}"#;
    let trace = imported(&format!("{line}\n{}\n{end}", said("x", "", "done")));
    assert_eq!(events_of(&trace, "stop")[0]["reason"], "end_turn", "{trace}");
}
