//! Sessions of real agents that were recorded: what is kept of them, and what differs between two.

use std::io::Write;
use std::process::Stdio;

use crate::project::{Project, Ran};

/// Sessions of five agents, each by another door: ACP and the agents' own streams.
const RECORDED: [(&str, &str); 7] = [
    ("claude-agent-acp", "claude-agent-acp/full.wire.jsonl"),
    ("codex-acp", "codex-acp/full.wire.jsonl"),
    ("gemini", "gemini-acp/reject.wire.jsonl"),
    ("opencode", "opencode-acp/full.wire.jsonl"),
    ("claude-code-stream", "claude-code/parallel.jsonl"),
    ("codex", "codex/full.jsonl"),
    ("kimi-stream", "kimi/full.jsonl"),
];

fn trace(project: &Project, harness: &str, recording: &str) -> String {
    let from = std::path::absolute(format!("tests/recordings/{recording}")).unwrap();
    project.evals(&["import", "--harness", harness, from.to_str().unwrap()]).exits(0).out
}

fn project(text: &str) -> Project {
    let project = Project::new();
    project.case("a", &format!("snapshot: {{text: {text}}}"), "");
    project
}

/// Runs a command with text on its standard input.
fn piped(project: &Project, args: &[&str], text: &str) -> Ran {
    let mut command = project.command(args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { out: text(done.stdout), err: text(done.stderr), code: done.status.code().unwrap_or(-1) }
}

#[test]
fn recorded_sessions_of_real_agents_are_kept_and_compared() {
    let project = project("full");
    for (harness, recording) in RECORDED {
        let trace = trace(&project, harness, recording);
        let case = ["-", "--case", "cases/a.yaml"];
        piped(&project, &[&["snapshot", "check"][..], &case].concat(), &trace).exits(1).says("new a");
        piped(&project, &[&["snapshot", "accept"][..], &case].concat(), &trace).exits(0).says("accepted a/");
        piped(&project, &[&["snapshot", "check"][..], &case].concat(), &trace).exits(0).says("1 same");
        insta::assert_snapshot!(harness, project.read(&format!("cases/a.snapshots/{harness}.snap")));
    }
}

#[test]
fn what_differs_between_two_recordings_is_told() {
    let project = project("none");
    let write = |name: &str, recording: &str| {
        project.write(name, &trace(&project, "claude-agent-acp", &format!("claude-agent-acp/{recording}.wire.jsonl")));
    };
    write("full.jsonl", "full");
    write("reject.jsonl", "reject");
    project.evals(&["snapshot", "accept", "full.jsonl", "--case", "cases/a.yaml"]).exits(0);
    let ran = project.evals(&["snapshot", "check", "reject.jsonl", "--case", "cases/a.yaml"]).exits(1);
    insta::assert_snapshot!("full_and_reject", ran.out);
    // Both at once are trials of one cell.
    let both = ["full.jsonl", "reject.jsonl", "--case", "cases/a.yaml"];
    let ran = project.evals(&[&["snapshot", "check"][..], &both].concat()).exits(1);
    ran.says("1 of 2 trials as accepted").says("trial reject.jsonl:");
    project.evals(&[&["snapshot", "accept"][..], &both].concat()).exits(0);
    assert_eq!(project.read("cases/a.snapshots/claude-agent-acp.snap").matches("shape: 1 of 2 trials").count(), 2);
}

#[test]
fn a_trace_is_named_by_its_header_or_the_command_line() {
    let mut project = project("full");
    let trace = trace(&project, "claude-agent-acp", "claude-agent-acp/full.wire.jsonl");
    project.write("named.jsonl", &trace);
    project.write("bare.jsonl", &trace.replacen("\"harness\":\"claude-agent-acp\",", "", 1));
    let case = ["--case", "cases/a.yaml"];
    project
        .evals(&[&["snapshot", "accept", "bare.jsonl", "--harness", "mine"][..], &case].concat())
        .exits(0)
        .says("a/mine");
    project.evals(&["snapshot", "check", "named.jsonl"]).exits(2).says("give its case with --case FILE");
    project.evals(&["snapshot", "check", "gone.jsonl", "named.jsonl", "--case", "cases/a.yaml"]).exits(2);
    project
        .evals(&[&["snapshot", "reject", "named.jsonl"][..], &case].concat())
        .exits(2)
        .says("rejections are recorded in runs");
    project.write("none.jsonl", "{\"type\":\"other\"}\n");
    project.evals(&[&["snapshot", "check", "none.jsonl"][..], &case].concat()).exits(2).says("evals import --harness");
    // One that was cut short breaks a law of traces.
    let cut: String = trace.lines().take(4).map(|line| format!("{line}\n")).collect();
    project.write("cut.jsonl", &cut);
    project.evals(&[&["snapshot", "accept", "cut.jsonl"][..], &case].concat()).exits(2).says("ends without a `stop`");
    assert!(!project.path("cases/a.snapshots/claude-agent-acp.snap").exists());
    project.evals(&[&["snapshot", "check", "cut.jsonl"][..], &case].concat()).exits(2);
    // What is secret here is in no file that is kept.
    project.env("MY_API_KEY", "answer.txt holds");
    project.evals(&[&["snapshot", "accept", "named.jsonl"][..], &case].concat()).exits(0);
    let text = project.read("cases/a.snapshots/claude-agent-acp.snap");
    assert!(text.contains("[redacted:MY_API_KEY]") && !text.contains("answer.txt holds"), "{text}");
}

#[test]
fn calls_between_two_usage_reports_share_a_step_where_the_manifest_says_so() {
    let project = project("none");
    project.harness("marks", "adapter: acp\ncommand: [x]\nusage: {after-each-message: true}");
    project.harness("plain", "adapter: acp\ncommand: [x]");
    let update = |update: &str| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"update\":{update}}}}}\n"
        )
    };
    let begins = |name: &str| {
        update(&format!(
            "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"{name}\",\"title\":\"run\",\"kind\":\"execute\",\"status\":\"pending\",\"rawInput\":{{\"command\":\"{name}\"}}}}"
        ))
    };
    let ends = |name: &str| {
        update(&format!(
            "{{\"sessionUpdate\":\"tool_call_update\",\"toolCallId\":\"{name}\",\"status\":\"completed\"}}"
        ))
    };
    let usage = update("{\"sessionUpdate\":\"usage_update\",\"used\":10,\"size\":100}");
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"stopReason\":\"end_turn\"}}\n";
    let message = |order: &[(&str, bool)]| -> String {
        order.iter().map(|(name, begin)| if *begin { begins(name) } else { ends(name) }).collect()
    };
    // Three sessions of one agent: a and b are made in one message, c in the next.
    let side_by_side = message(&[("a", true), ("b", true), ("b", false), ("a", false)]);
    let one_by_one = message(&[("b", true), ("b", false), ("a", true), ("a", false)]);
    let other = message(&[("a", true), ("a", false), ("b", true), ("b", false)]);
    let then = message(&[("c", true), ("c", false)]);
    let prompt = "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\",\"prompt\":[{\"type\":\"text\",\"text\":\"Do it.\"}]}}";
    let wire = |lines: &str| -> String {
        let line = |dir: &str, line: &str| format!("{}\n", serde_json::json!({"at_ms": 1, "dir": dir, "line": line}));
        let received = |lines: &str| -> String { lines.lines().map(|text| line("recv", text)).collect() };
        // A report before the prompt is one of the session so far.
        let (before, after) = match lines.strip_prefix(usage.as_str()) {
            Some(after) => (received(&usage), after),
            None => (String::new(), lines),
        };
        format!("{before}{}{}", line("send", prompt), received(after))
    };
    let mut shown = Vec::new();
    for (n, first) in [side_by_side, one_by_one, other].iter().enumerate() {
        project.write("session.wire.jsonl", &wire(&format!("{usage}{first}{usage}{then}{usage}{answer}")));
        let marked = project.evals(&["import", "--harness", "marks", "session.wire.jsonl"]).exits(0).out;
        let verb = if n == 0 { "accept" } else { "check" };
        piped(&project, &["snapshot", verb, "-", "--case", "cases/a.yaml"], &marked).exits(0);
        let plain = project.evals(&["import", "--harness", "plain", "session.wire.jsonl"]).exits(0).out;
        let steps = |trace: &str| trace.matches("\"step\":0").count();
        shown.push((steps(&marked), steps(&plain)));
    }
    assert_eq!(shown, [(2, 2), (2, 1), (2, 1)]);
    let check = |session: &str| {
        project.write("session.wire.jsonl", &wire(session));
        let marked = project.evals(&["import", "--harness", "marks", "session.wire.jsonl"]).exits(0).out;
        piped(&project, &["snapshot", "check", "-", "--case", "cases/a.yaml"], &marked)
    };
    let both = message(&[("a", true), ("b", true), ("a", false), ("b", false)]);
    // Without a report between them c shares the step: that is a difference.
    check(&format!("{usage}{both}{then}{usage}{answer}")).exits(1);
    // In a session without any report before the calls, nothing marks a message: their results decide.
    check(&format!("{both}{then}{answer}")).exits(0);
    check(&format!("{both}{usage}{then}{usage}{answer}")).exits(0);
}
