//! Recorded ACP sessions give the Traces that a reader of the recording would expect, and no line breaks the laws.

#![expect(clippy::unwrap_used, reason = "helpers of a test, where a panic is the finding")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use evals::internal::adapter::import;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::internal::wire::{Dir, WireLine};
use evals::trace::amount::Amount;
use evals::trace::calls::{Call, Joiner};
use evals::trace::{
    Body, CallStatus, ErrorCategory, Event, Header, PermissionOutcome, Role, Stop, StopReason, ToolKind,
};
use serde_json::json;

mod changes;

struct Session {
    header: Header,
    events: Vec<Event>,
}

impl Session {
    fn calls(&self) -> Vec<Call> {
        let mut joiner = Joiner::default();
        let mut calls: Vec<Call> = self.events.iter().flat_map(|event| joiner.event(event)).collect();
        calls.extend(joiner.rest());
        calls
    }

    fn stop(&self) -> &Stop {
        match self.events.last().map(|event| &event.body) {
            Some(Body::Stop(stop)) => stop,
            other => panic!("the last event is {other:?}"),
        }
    }

    fn output(&self) -> Option<&str> {
        self.stop().output.as_deref()
    }

    fn messages(&self, role: Role) -> Vec<&str> {
        collect(&self.events, |event| match &event.body {
            Body::Message(message) if message.role == role => Some(message.text.as_str()),
            _ => None,
        })
    }

    fn answers(&self) -> Vec<(PermissionOutcome, &str)> {
        collect(&self.events, |event| match &event.body {
            Body::PermissionResponse(response) => Some((response.outcome, response.option.as_deref().unwrap_or(""))),
            _ => None,
        })
    }

    fn notices(&self) -> Vec<&str> {
        collect(&self.events, |event| match &event.body {
            Body::Notice { code, .. } => Some(code.as_str()),
            _ => None,
        })
    }

    fn total(&self) -> evals::trace::usage::UsageTotal {
        let mut total = evals::trace::usage::UsageTotal::default();
        for event in &self.events {
            if let Body::Usage(usage) = &event.body {
                total.add(usage);
            }
        }
        total
    }

    fn text(&self) -> String {
        let mut text = serde_json::to_string(&self.header).unwrap();
        for event in &self.events {
            text.push('\n');
            text.push_str(&serde_json::to_string(event).unwrap());
        }
        text
    }
}

fn collect<'a, T>(events: &'a [Event], of: impl Fn(&'a Event) -> Option<T>) -> Vec<T> {
    events.iter().filter_map(of).collect()
}

fn recordings() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let folders = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = folders
        .filter(|folder| folder.to_string_lossy().ends_with("-acp"))
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()))
        .filter(|file| file.to_string_lossy().ends_with(".wire.jsonl"))
        .collect();
    files.sort();
    files
}

fn session(name: &str) -> Session {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name).with_extension("wire.jsonl");
    of_bytes(&fs::read(file).unwrap())
}

fn of_bytes(bytes: &[u8]) -> Session {
    let mut events = Vec::new();
    let header = import(Adapter::Acp, &Manifest::bare(Adapter::Acp), false, bytes, |event| {
        events.push(event);
        Ok(())
    });
    let session = Session { header: header.unwrap(), events };
    lawful(&session.events);
    session
}

/// The laws of a Trace.
fn lawful(events: &[Event]) {
    let mut calls: HashMap<&str, bool> = HashMap::new();
    let mut requests = HashSet::new();
    let mut steps: HashMap<Option<&str>, u64> = HashMap::new();
    let mut last_ms = 0;
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event.seq, n as u64, "seq has a gap");
        assert!(event.at_ms >= last_ms, "the clock went back at {n}");
        last_ms = event.at_ms;
        assert_eq!(matches!(event.body, Body::Stop(_)), n + 1 == events.len(), "stop is not the last, or not there");
        match &event.body {
            Body::ToolCall(call) => {
                assert!(calls.insert(&call.call, false).is_none(), "the call {} twice", call.call);
                let step = steps.entry(event.parent.as_deref()).or_insert(call.step);
                assert!(call.step >= *step, "the steps of {:?} go back", event.parent);
                *step = call.step;
            }
            Body::ToolResult(result) => {
                let done = calls.get_mut(result.call.as_str());
                assert_eq!(
                    done.as_deref(),
                    Some(&false),
                    "the result of {} is not the one after its call",
                    result.call
                );
                *done.unwrap() = true;
            }
            Body::PermissionRequest(request) => {
                assert!(requests.insert(&request.request), "the request {} twice", request.request);
            }
            Body::PermissionResponse(response) => {
                assert!(requests.contains(&response.request), "an answer to nothing: {}", response.request);
            }
            _ => {}
        }
    }
    assert!(calls.values().all(|done| *done), "a call without a result");
    assert!(!events.is_empty(), "no stop");
}

#[test]
fn every_recording_gives_the_trace_that_was_reviewed() {
    let files = recordings();
    assert!(files.len() >= 33, "only {} recordings", files.len());
    for file in files {
        let folder = file.parent().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let name = file.file_name().unwrap().to_string_lossy().replace(".wire.jsonl", "");
        let session = of_bytes(&fs::read(&file).unwrap());
        insta::assert_snapshot!(format!("{folder}__{name}"), session.text());
    }
}

/// Kind, name, status and exit code of each call.
type Told<'a> = (ToolKind, Option<&'a str>, CallStatus, Option<i64>);

fn told(calls: &[Call]) -> Vec<Told<'_>> {
    calls.iter().map(|call| (call.call.kind, call.call.name.as_deref(), call.status, call.exit_code)).collect()
}

use CallStatus::{Denied, Error, Ok as Done, Unfinished};
use ToolKind::{Edit, Execute, Think};

const ANSWER: &str = "Finished. answer.txt holds 42.";
const FAILED: &str = "The command failed with exit code 3.";

#[test]
fn calls_are_what_the_agents_made() {
    let full = |edit, execute| vec![(Edit, edit, Done, None), (Execute, execute, Done, Some(0))];
    for (name, expected) in [
        ("claude-agent-acp/full", vec![(Edit, Some("Write"), Done, None), (Execute, Some("Bash"), Done, None)]),
        ("claude-agent-acp/reject", vec![(Edit, Some("Write"), Denied, None), (Execute, Some("Bash"), Done, None)]),
        ("claude-agent-acp/bash_fail", vec![(Execute, Some("Bash"), Error, Some(3))]),
        ("claude-agent-acp/subagent", vec![(Think, Some("Agent"), Done, None), (Execute, Some("Bash"), Done, None)]),
        ("claude-agent-acp/cancel", vec![]),
        ("claude-agent-acp/err400", vec![]),
        ("codex-acp/full", full(None, Some("exec_command"))),
        ("codex-acp/ask_allow", full(None, Some("exec_command"))),
        ("codex-acp/ask_reject", vec![(Edit, None, Denied, None)]),
        ("codex-acp/bash_fail", vec![(Execute, Some("exec_command"), Error, Some(3))]),
        ("codex-acp/cancel", vec![]),
        ("codex-acp/err400", vec![]),
        ("copilot-acp/full", full(None, None)),
        ("copilot-acp/reject", vec![(Edit, None, Denied, None)]),
        ("copilot-acp/bash_fail", vec![(Execute, None, Error, Some(3))]),
        (
            "fast-agent-acp/full",
            vec![(Edit, Some("edit_file"), Error, None), (Execute, Some("bash"), Unfinished, None)],
        ),
        ("gemini-acp/full", vec![(Edit, None, Done, None), (Execute, None, Done, None)]),
        ("gemini-acp/reject", vec![(Edit, None, Denied, None), (Execute, None, Denied, None)]),
        ("gemini-acp/bash_fail", vec![(Execute, None, Done, None)]),
        ("opencode-acp/full", full(Some("write"), Some("bash"))),
        ("opencode-acp/reject", vec![(Edit, Some("write"), Denied, None)]),
        ("opencode-acp/bash_fail", vec![(Execute, Some("bash"), Error, Some(3))]),
        ("opencode-acp/subagent", vec![(Think, Some("task"), Error, None)]),
        ("qwen-acp/full", full(Some("write_file"), Some("run_shell_command"))),
        ("qwen-acp/reject", full(Some("write_file"), Some("run_shell_command"))),
        ("qwen-acp/bash_fail", vec![(Execute, Some("run_shell_command"), Error, Some(3))]),
        ("vibe-acp/full", vec![(Edit, Some("write_file"), Done, None), (Execute, Some("bash"), Done, None)]),
        ("vibe-acp/ask", vec![(Edit, Some("write_file"), Done, None), (Execute, Some("bash"), Done, None)]),
    ] {
        assert_eq!(told(&session(name).calls()), expected, "{name}");
    }
}

#[test]
fn inputs_are_the_final_ones() {
    let file = |key: &str, name: &str| json!({key: format!("/workspace/{name}/answer.txt"), "content": "42\n"});
    let command = "echo partial; echo oops >&2; exit 3";
    for (name, input) in [
        ("claude-agent-acp/full", Some(file("file_path", "caa-full"))),
        ("claude-agent-acp/bash_fail", Some(json!({"command": command, "description": "failing command"}))),
        ("codex-acp/full", None),
        ("codex-acp/bash_fail", Some(json!({"command": command, "cwd": "/workspace/codex-acp-bash_fail"}))),
        ("copilot-acp/full", Some(json!({"path": "/workspace/copilot-acp-full/answer.txt", "file_text": "42\n"}))),
        ("copilot-acp/bash_fail", Some(json!({"command": command, "description": "failing command"}))),
        ("gemini-acp/full", None),
        ("opencode-acp/full", Some(file("filePath", "opencode-acp-full"))),
        ("opencode-acp/bash_fail", Some(json!({"command": command, "cwd": "/workspace/opencode-acp-bash_fail"}))),
        // The input stood in the permission request only.
        ("qwen-acp/bash_fail", Some(json!({"command": command, "description": "failing command"}))),
        ("vibe-acp/full", Some(file("filePath", "vibe-acp-full"))),
    ] {
        let calls = session(name).calls();
        assert_eq!(calls[0].call.input, input, "{name}");
    }
}

#[test]
fn outputs_are_what_the_tools_said() {
    for (name, number, output) in [
        ("claude-agent-acp/full", 1, Some("42\n2")),
        ("claude-agent-acp/bash_fail", 0, Some("Exit code 3\npartial\noops")),
        ("claude-agent-acp/reject", 0, Some("User refused permission to run tool")),
        ("claude-agent-acp/subagent", 1, Some("child-work")),
        ("codex-acp/full", 0, None),
        ("codex-acp/full", 1, Some("42\n2\n")),
        ("codex-acp/bash_fail", 0, Some("partial\noops\n")),
        ("copilot-acp/full", 1, Some("42\n2\n<shellId: 0 completed with exit code 0>")),
        ("gemini-acp/full", 1, None),
        ("opencode-acp/full", 0, Some("Wrote file successfully.")),
        ("opencode-acp/bash_fail", 0, Some("partial\noops\n")),
        ("vibe-acp/full", 0, Some("Created answer.txt")),
        ("vibe-acp/full", 1, Some("42\n2\n")),
    ] {
        assert_eq!(session(name).calls()[number].output.as_deref(), output, "{name} {number}");
    }
    let write = &session("copilot-acp/full").calls()[0];
    assert_eq!(write.output.as_deref(), Some("Created file /workspace/copilot-acp-full/answer.txt with 3 characters"));
    for name in [
        "claude-agent-acp/full",
        "codex-acp/full",
        "copilot-acp/full",
        "gemini-acp/full",
        "opencode-acp/full",
        "qwen-acp/full",
        "vibe-acp/full",
    ] {
        let diffs = session(name).calls()[0].diffs.clone();
        assert_eq!(diffs.len(), 1, "{name}");
        assert!(diffs[0].path.ends_with("answer.txt") && diffs[0].new.as_deref() == Some("42\n"), "{name}");
    }
}

#[test]
fn permissions_are_answered_by_the_kind_of_the_option() {
    use PermissionOutcome::{Allowed, Rejected};
    for (name, expected) in [
        ("claude-agent-acp/full", vec![(Allowed, "allow-once")]),
        ("claude-agent-acp/reject", vec![(Rejected, "reject")]),
        ("codex-acp/ask_allow", vec![(Allowed, "allow_once")]),
        ("codex-acp/ask_reject", vec![(Rejected, "cancel")]),
        ("copilot-acp/full", vec![(Allowed, "allow_once"), (Allowed, "allow_once")]),
        ("copilot-acp/reject", vec![(Rejected, "reject_once")]),
        ("gemini-acp/full", vec![(Allowed, "proceed_once"), (Allowed, "proceed_once")]),
        ("gemini-acp/reject", vec![(Rejected, "cancel"), (Rejected, "cancel")]),
        ("opencode-acp/full", vec![(Allowed, "once"), (Allowed, "once")]),
        ("opencode-acp/reject", vec![(Rejected, "reject")]),
        ("qwen-acp/bash_fail", vec![(Allowed, "proceed_once")]),
        ("vibe-acp/ask", vec![]),
    ] {
        assert_eq!(session(name).answers(), expected, "{name}");
    }
}

#[test]
fn sessions_end_as_the_agents_ended_them() {
    for (name, reason, output) in [
        ("claude-agent-acp/full", StopReason::EndTurn, Some(ANSWER)),
        ("claude-agent-acp/bash_fail", StopReason::EndTurn, Some(FAILED)),
        ("claude-agent-acp/subagent", StopReason::EndTurn, Some("The subagent found 7 items.")),
        // Two message ids are two messages.
        ("codex-acp/full", StopReason::EndTurn, Some("Finished. \n\nanswer.txt holds 42.")),
        ("codex-acp/ask_reject", StopReason::Cancelled, None),
        ("copilot-acp/full", StopReason::EndTurn, Some(ANSWER)),
        // Its program writes that the operation was cancelled; its model says nothing.
        ("copilot-acp/reject", StopReason::EndTurn, None),
        ("gemini-acp/full", StopReason::EndTurn, Some(ANSWER)),
        ("opencode-acp/full", StopReason::EndTurn, Some(ANSWER)),
        ("opencode-acp/reject", StopReason::EndTurn, None),
        ("qwen-acp/full", StopReason::EndTurn, Some(ANSWER)),
        ("vibe-acp/full", StopReason::EndTurn, Some(ANSWER)),
        ("fast-agent-acp/full", StopReason::EndTurn, Some(ANSWER)),
    ] {
        let session = session(name);
        assert_eq!((session.stop().reason, session.output()), (reason, output), "{name}");
    }
    for agent in ["claude-agent", "codex", "copilot", "gemini", "opencode"] {
        let session = session(&format!("{agent}-acp/cancel"));
        assert_eq!(session.stop().reason, StopReason::Cancelled, "{agent}");
        assert!(session.output().unwrap().starts_with("word0 word1 word2 word3 word4 "), "{agent}");
    }
    for (agent, detail) in [
        ("claude-agent", "Internal error: API Error: 400 mock: prompt is malformed"),
        (
            "codex",
            r#"{"error": {"message": "mock: prompt is malformed", "type": "invalid_request_error", "code": "invalid_request_error"}}"#,
        ),
        ("gemini", r#"{"error":{"code":400,"message":"mock: prompt is malformed","status":"invalid_request_error"}}"#),
        ("opencode", "Internal error: mock: prompt is malformed"),
    ] {
        let session = session(&format!("{agent}-acp/err400"));
        let stop = session.stop();
        assert_eq!((stop.reason, stop.category), (StopReason::Error, Some(ErrorCategory::Provider)), "{agent}");
        assert_eq!(stop.detail.as_deref(), Some(detail), "{agent}");
    }
}

#[test]
fn usage_is_told_apart_the_same_way_for_every_agent() {
    type Figures = (Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<u64>, Option<f64>);
    let expected: [(&str, Figures); 14] = [
        // Input, output, cache read, cache write, thoughts, dollars.
        ("claude-agent-acp/full", (Some(4800), Some(308), Some(20000), Some(1200), None, Some(0.03536))),
        ("claude-agent-acp/cancel", (Some(1200), Some(77), Some(5000), Some(300), None, Some(0.00884))),
        ("codex-acp/full", (Some(1500), Some(231), Some(3000), Some(0), Some(60), None)),
        ("codex-acp/cancel", (None, None, None, None, None, None)),
        ("copilot-acp/full", (Some(1500), Some(231), Some(3000), Some(0), Some(60), None)),
        ("copilot-acp/bash_fail", (Some(1000), Some(154), Some(2000), Some(0), Some(40), None)),
        ("copilot-acp/cancel", (None, None, None, None, None, None)),
        ("gemini-acp/full", (None, None, None, None, None, None)),
        ("opencode-acp/full", (Some(500), Some(77), Some(1000), None, Some(20), Some(0.002955))),
        ("opencode-acp/err400", (None, None, None, None, None, None)),
        ("qwen-acp/full", (Some(1500), Some(231), Some(3000), None, Some(60), None)),
        ("vibe-acp/full", (Some(1500), Some(231), Some(3000), None, None, Some(0.005655))),
        ("vibe-acp/ask", (Some(1500), Some(231), Some(3000), None, None, Some(0.005655))),
        ("fast-agent-acp/full", (None, None, None, None, None, None)),
    ];
    for (name, figures) in expected {
        let total = session(name).total();
        let seen = (
            total.input_tokens().map(Amount::value),
            total.output_tokens().map(Amount::value),
            total.cache_read_tokens().map(Amount::value),
            total.cache_write_tokens().map(Amount::value),
            total.thought_tokens().map(Amount::value),
            total.cost_usd().map(Amount::value),
        );
        assert_eq!(seen, figures, "{name}");
    }
    for (name, tokens) in [
        // By model, with a call of the bridge itself.
        ("claude-agent-acp/full", Some(Amount::Exact(26308))),
        // The sub-agent may have gone on after the turn.
        ("claude-agent-acp/subagent", Some(Amount::AtLeast(26308))),
        ("codex-acp/full", Some(Amount::Exact(4731))),
        ("copilot-acp/full", Some(Amount::Exact(4731))),
        // It reports no tokens of thought.
        ("gemini-acp/full", Some(Amount::AtLeast(4671))),
        // It reports the last step only.
        ("opencode-acp/full", Some(Amount::AtLeast(1577))),
        ("opencode-acp/subagent", Some(Amount::AtLeast(1577))),
        ("opencode-acp/reject", Some(Amount::Exact(1577))),
        ("qwen-acp/full", Some(Amount::Exact(4731))),
        ("vibe-acp/full", Some(Amount::Exact(4731))),
        ("codex-acp/cancel", None),
    ] {
        assert_eq!(session(name).total().tokens(), tokens, "{name}");
    }
}

#[test]
fn the_header_holds_what_the_recording_tells() {
    for (name, agent, version, model) in [
        ("claude-agent-acp/full", "@agentclientprotocol/claude-agent-acp", "0.100.0", Some("claude-opus-5-5")),
        ("codex-acp/full", "@agentclientprotocol/codex-acp", "2.6.0", Some("gpt-5.5")),
        ("copilot-acp/full", "Copilot", "1.0.102", None),
        ("gemini-acp/full", "gemini-cli", "0.61.0", Some("gemini-2.5-pro")),
        ("opencode-acp/full", "OpenCode", "1.18.33", Some("mock/mock-model")),
        ("qwen-acp/full", "qwen-code", "0.24.4", Some("$runtime|openai|mock-model(openai)")),
        ("vibe-acp/full", "@mistralai/mistral-vibe", "3.0.2", Some("mock")),
        ("fast-agent-acp/full", "fast-agent-acp", "0.10.46", None),
    ] {
        let header = session(name).header;
        let said = header.agent.clone().unwrap();
        assert_eq!((said.name.as_str(), said.version.as_deref()), (agent, Some(version)), "{name}");
        assert_eq!(header.model.effective.as_deref(), model, "{name}");
        assert!(header.cwd.as_deref().unwrap().starts_with("/workspace/"), "{name}");
        assert_eq!(
            (&header.harness, &header.case, &header.started, header.timed),
            (&None, &None, &None, None),
            "{name}"
        );
    }
}

#[test]
fn the_prompt_is_one_message_and_an_echo_is_none() {
    for file in recordings() {
        let session = of_bytes(&fs::read(&file).unwrap());
        let user = session.messages(Role::User);
        assert_eq!(user.len(), 1, "{file:?}");
        assert!(user[0].ends_with("Please do the task."), "{file:?}");
    }
}

#[test]
fn sub_agents_have_their_call_for_a_parent() {
    let session = session("claude-agent-acp/subagent");
    let calls = session.calls();
    assert_eq!((calls[0].parent.as_deref(), calls[1].parent.as_deref()), (None, Some(calls[0].call.call.as_str())));
}

#[test]
fn what_no_event_holds_is_a_notice() {
    assert_eq!(session("qwen-acp/full").notices(), ["unknown_method", "unknown_method"]);
    assert_eq!(session("claude-agent-acp/full").notices(), ["unknown_method"]);
    assert_eq!(session("copilot-acp/full").notices(), ["program_message"]);
    assert!(session("gemini-acp/full").notices().is_empty());
    assert!(session("opencode-acp/full").notices().is_empty());
    assert!(session("vibe-acp/full").notices().is_empty());
}

#[test]
fn the_agents_bare_output_tells_the_same_calls_and_end() {
    for name in ["codex-acp/full", "gemini-acp/full", "qwen-acp/full", "opencode-acp/full", "claude-agent-acp/reject"] {
        let file =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name).with_extension("wire.jsonl");
        let mut bare = String::new();
        for line in fs::read_to_string(file).unwrap().lines() {
            let line: WireLine = serde_json::from_str(line).unwrap();
            if line.dir == Dir::Recv {
                bare.push_str(&line.line);
                bare.push('\n');
            }
        }
        let (bare, whole) = (of_bytes(bare.as_bytes()), session(name));
        assert_eq!(bare.header.timed, Some(false));
        assert_eq!(bare.stop().reason, whole.stop().reason, "{name}");
        assert_eq!(bare.output(), whole.output(), "{name}");
        assert_eq!(bare.calls().len(), whole.calls().len(), "{name}");
        assert_eq!(bare.total(), whole.total(), "{name}");
        assert_eq!(bare.header.agent, whole.header.agent);
    }
}

/// The most memory that a program took, in MB, and what it printed.
fn peak_of(command: &mut std::process::Command) -> (u64, std::process::ExitStatus) {
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let mut peak = 0;
    loop {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kb: u64 = line.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok()).unwrap_or(0);
        peak = peak.max(kb / 1024);
        if let Some(status) = child.try_wait().unwrap() {
            return (peak, status);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
#[ignore = "slow: 90,000 calls"]
fn calls_that_never_close_take_no_memory_each() {
    let folder = tempfile::tempdir().unwrap();
    let call = |n: usize| {
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
            "sessionUpdate": "tool_call", "toolCallId": format!("call_{n}"), "title": format!("Read the file {n}"),
            "kind": "read", "status": "in_progress", "rawInput": {"path": format!("src/{n}.rs")}}}})
    };
    let late = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {
        "sessionUpdate": "tool_call_update", "toolCallId": "call_0", "status": "failed"}}});
    let mut peaks = Vec::new();
    for calls in [11_000, 80_000] {
        let (from, to) = (folder.path().join("session.jsonl"), folder.path().join("trace.jsonl"));
        let mut lines: Vec<String> = (0..calls).map(|n| call(n).to_string()).collect();
        lines.push(late.to_string());
        fs::write(&from, lines.join("\n")).unwrap();
        drop(lines);
        let mut import = std::process::Command::new(env!("CARGO_BIN_EXE_evals"));
        let (peak, status) = peak_of(import.args(["import", "--adapter", "acp"]).arg(&from).arg("-o").arg(&to));
        assert!(status.success());
        peaks.push(peak);
        let text = fs::read_to_string(&to).unwrap();
        // The graders' joiner gives each call with its result.
        let reader = evals::trace::jsonl::Reader::new(std::io::Cursor::new(&text)).unwrap();
        let (mut joiner, mut joined, mut codes) = (Joiner::default(), 0, Vec::new());
        for event in reader {
            let event = event.unwrap();
            if let Body::Notice { code, .. } = &event.body {
                codes.push(code.to_string());
            }
            for call in joiner.event(&event) {
                assert_eq!((call.status, call.is_cut), (CallStatus::Unfinished, true));
                joined += 1;
            }
        }
        assert_eq!((joined, joiner.rest().len()), (calls, 0));
        codes.sort();
        assert_eq!(codes, ["late_update", "too_many_open_calls"]);
    }
    assert!(peaks[1] < peaks[0] + 20, "from {} MB to {} MB", peaks[0], peaks[1]);
}

#[test]
fn a_title_of_one_word_is_not_the_name_of_the_tool() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/gemini-acp/bash_fail.wire.jsonl");
    let recorded = fs::read_to_string(file).unwrap();
    let title = r#"\"title\":\"echo partial; echo oops >&2; exit 3\""#;
    assert!(recorded.contains(title));
    for word in ["make", "rm", "README", "Terminal", "read"] {
        let session = of_bytes(recorded.replace(title, &format!(r#"\"title\":\"{word}\""#)).as_bytes());
        let calls = session.calls();
        assert_eq!((calls[0].call.title.as_deref(), calls[0].call.name.as_deref()), (Some(word), None));
    }
}
