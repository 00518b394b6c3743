//! Session files that agents keep on disk, to traces: files of real agents, and files that are damaged or made up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::laws;
use crate::project::{Project, Ran};

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/sessions").join(name)
}

fn import(name: &str, args: &[&str]) -> Ran {
    let file = recorded(name);
    let mut all = vec!["import", file.to_str().unwrap()];
    all.extend(args);
    Project::new().evals(&all)
}

/// Imports a file with this content.
fn imported(content: &[u8], args: &[&str]) -> Ran {
    let project = Project::new();
    fs::write(project.path("session.jsonl"), content).unwrap();
    let mut all = vec!["import", "session.jsonl"];
    all.extend(args);
    project.evals(&all)
}

/// The lines of a trace that keeps its laws.
#[track_caller]
fn lines(ran: Ran) -> Vec<Value> {
    let ran = ran.exits(0);
    laws::assert_lawful(&ran.out);
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

fn codes(lines: &[Value]) -> Vec<&str> {
    of(lines, "notice").iter().map(|notice| notice["code"].as_str().unwrap()).collect()
}

const REAL: [&str; 10] = [
    "claude-code/resumed.jsonl",
    "claude-code/subagent.jsonl",
    "claude-code/forked.jsonl",
    "claude-code/denied.jsonl",
    "codex/resumed.jsonl",
    "pi/resumed.jsonl",
    "pi/branched.jsonl",
    "gemini/full.jsonl",
    "qwen/full.jsonl",
    "copilot/full.jsonl",
];

#[test]
fn sessions_of_real_agents_become_these_traces() {
    for name in REAL {
        let ran = import(name, &[]).exits(0);
        assert_eq!(ran.err, "", "{name}");
        laws::assert_lawful(&ran.out);
        insta::assert_snapshot!(name.trim_end_matches(".jsonl").replace('/', "__"), ran.out);
    }
}

#[test]
fn what_a_session_shows_is_what_its_model_said() {
    // The script of the recordings: two reads at once, the test, an edit, the test again.
    for (name, kinds, exit, tokens) in [
        ("claude-code/resumed.jsonl", "read read execute edit execute edit", Some(1), (9700, 192)),
        ("codex/resumed.jsonl", "execute execute execute edit execute edit", Some(1), (9700, 192)),
        ("pi/resumed.jsonl", "read read execute edit execute edit", Some(1), (9700, 192)),
        ("gemini/full.jsonl", "read read execute edit execute", None, (6400, 155)),
        ("qwen/full.jsonl", "read read execute edit execute", Some(1), (6400, 155)),
        ("copilot/full.jsonl", "read read execute edit execute", Some(1), (6400, 155)),
    ] {
        let trace = lines(import(name, &[]));
        assert_eq!(codes(&trace), [""; 0], "{name}");
        let calls = of(&trace, "tool_call");
        let found: Vec<&str> = calls.iter().map(|call| call["kind"].as_str().unwrap()).collect();
        assert_eq!(found.join(" "), kinds, "{name}");
        let steps: Vec<u64> = calls.iter().take(5).map(|call| call["step"].as_u64().unwrap()).collect();
        assert_eq!(steps, [0, 0, 1, 2, 3], "{name}");
        let result = |call: &Value| *of(&trace, "tool_result").iter().find(|it| it["call"] == call["call"]).unwrap();
        let failed = result(calls[2]);
        // Gemini calls it a success.
        let status = if name.starts_with("gemini") { "ok" } else { "error" };
        assert_eq!((failed["status"].as_str().unwrap(), failed["exit_code"].as_i64()), (status, exit), "{name}");
        assert_eq!(result(calls[4])["status"], "ok", "{name}");
        let thoughts = of(&trace, "thought");
        assert_eq!(thoughts[0]["text"], "The test first, then the function.", "{name}");
        let (input, output) = tokens;
        let usage = of(&trace, "usage");
        let total = |key: &str| {
            let figures = |scope: &str| {
                usage.iter().filter(|it| it["scope"] == scope).filter_map(|it| it[key].as_u64()).collect::<Vec<_>>()
            };
            figures("session").last().copied().unwrap_or_else(|| figures("call").iter().sum())
        };
        assert_eq!(
            (total("input_tokens"), total("output_tokens"), total("cache_read_tokens")),
            (input, output, 40),
            "{name}"
        );
        assert_eq!(trace.last().unwrap()["reason"], "end_turn", "{name}");
        assert!(trace[0]["session"]["started"].as_str().unwrap().starts_with("2026-11-23T19:17:"), "{name}");
        assert_eq!((&trace[0]["timed"], &trace[0]["started"]), (&Value::Null, &Value::Null), "{name}");
    }
}

#[test]
fn the_agent_is_recognised_by_the_content_in_any_way_to_give_the_file() {
    let text = fs::read(recorded("codex/resumed.jsonl")).unwrap();
    let detected = lines(imported(&text, &[]));
    assert_eq!(detected[0].get("harness"), None);
    for args in [&["--harness", "codex"][..], &["--adapter", "json-stream"], &["--harness", "codex-acp"]] {
        let ran = imported(&text, args);
        let said = ran.err.clone();
        let mut named = lines(ran);
        assert_eq!(said.contains("a session that `codex` kept"), args[1] == "codex-acp", "{said}");
        assert_eq!(named[0]["harness"].as_str(), (args[0] == "--harness").then_some(args[1]));
        named[0].as_object_mut().unwrap().remove("harness");
        assert!(named == detected);
    }
    let project = Project::new();
    let mut command = project.command(&["import", "-"]);
    let output = command.stdin(fs::File::open(recorded("codex/resumed.jsonl")).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), import("codex/resumed.jsonl", &[]).out);
    // Its own standard output is still read as such.
    let stream = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    for (file, adapter) in [
        ("codex/full.jsonl", "json-stream"),
        ("pi/full.jsonl", "json-stream"),
        ("copilot/full.jsonl", "json-stream"),
        ("qwen/full.jsonl", "json-stream"),
        ("gemini/full.jsonl", "json-stream"),
        ("claude-code/text.jsonl", "claude-code-stream"),
        ("codex-acp/full.wire.jsonl", "acp"),
    ] {
        let trace = lines(project.evals(&["import", stream.join(file).to_str().unwrap()]));
        assert_eq!((trace[0]["adapter"].as_str(), &trace[0]["session"]), (Some(adapter), &Value::Null), "{file}");
    }
}

#[test]
fn a_sub_agent_in_a_file_of_its_own_is_part_of_the_session() {
    let trace = lines(import("claude-code/subagent.jsonl", &[]));
    let of_agent: Vec<&Value> = trace.iter().filter(|line| line["parent"] == "toolu_scripted_0_0").collect();
    assert_eq!(of_agent.iter().filter(|line| line["type"] == "message").count(), 2);
    assert_eq!(of_agent.iter().filter(|line| line["type"] == "tool_call").count(), 1);
    // Standard input has no folder beside it.
    let project = Project::new();
    let mut command = project.command(&["import", "-"]);
    let output = command.stdin(fs::File::open(recorded("claude-code/subagent.jsonl")).unwrap()).output().unwrap();
    assert!(!String::from_utf8(output.stdout).unwrap().contains("\"parent\""));
    // The file of a sub-agent alone is a session, too.
    let alone = lines(import("claude-code/subagent/subagents/agent-ab540b324dc2644af.jsonl", &[]));
    assert_eq!(
        (alone[1]["role"].as_str(), alone.last().unwrap()["output"].as_str()),
        (Some("user"), Some("It expects 6."))
    );
}

#[test]
fn a_branch_is_chosen_by_a_line_of_it() {
    let said = |trace: &[Value]| trace.last().unwrap()["output"].as_str().unwrap().to_owned();
    let last = lines(import("pi/branched.jsonl", &[]));
    let notice = of(&last, "notice");
    assert_eq!(notice[0]["code"], "other_branches");
    assert!(notice[0]["text"].as_str().unwrap().contains("6aaa7bbf"), "{notice:?}");
    let prompts = |trace: &[Value]| {
        of(trace, "message")
            .iter()
            .filter(|it| it["role"] == "user")
            .map(|it| it["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(prompts(&last)[1], "Describe it in CHANGES.md instead.");
    let other = lines(import("pi/branched.jsonl", &["--branch", "6aaa7bbf"]));
    assert_eq!(prompts(&other)[1], "Describe the change in NOTES.md.");
    let first = lines(import("pi/branched.jsonl", &["--branch", "e0669"]));
    assert_eq!(
        (prompts(&first).len(), said(&first)),
        (1, "total now counts every item, and the test passes.".to_owned())
    );
    import("pi/branched.jsonl", &["--branch", "nothing"])
        .exits(2)
        .says("no line of the session has an id that begins with `nothing`")
        .says("6aaa7bbf");
    import("codex/resumed.jsonl", &["--branch", "x"]).exits(2).says("has no branches");
    let stream = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/pi/full.jsonl");
    Project::new()
        .evals(&["import", stream.to_str().unwrap(), "--branch", "x"])
        .exits(2)
        .says("--branch x is for session files");
}

/// A line of a session of Claude Code.
fn claude(uuid: &str, parent: Option<&str>, second: u32, kind: &str, message: Value, more: Value) -> String {
    let mut line = json!({
        "type": kind, "uuid": uuid, "parentUuid": parent, "isSidechain": false, "sessionId": "s", "cwd": "/w",
        "version": "2.0.1", "gitBranch": "main", "timestamp": format!("2026-01-02T03:04:{second:02}.000Z"), "message": message,
    });
    for (key, value) in more.as_object().unwrap() {
        line[key] = value.clone();
    }
    format!("{line}\n")
}

fn asks(uuid: &str, parent: Option<&str>, second: u32, text: &str) -> String {
    claude(uuid, parent, second, "user", json!({"role": "user", "content": text}), json!({}))
}

fn says(uuid: &str, parent: &str, second: u32, id: &str, block: Value, reason: Option<&str>, output: u64) -> String {
    let usage = json!({"input_tokens": 10, "output_tokens": output});
    let message =
        json!({"id": id, "role": "assistant", "model": "m", "content": [block], "stop_reason": reason, "usage": usage});
    claude(uuid, Some(parent), second, "assistant", message, json!({}))
}

fn calls(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

fn results(uuid: &str, parent: &str, second: u32, call: &str, output: &str) -> String {
    let content = json!([{"type": "tool_result", "tool_use_id": call, "content": output}]);
    claude(
        uuid,
        Some(parent),
        second,
        "user",
        json!({"role": "user", "content": content}),
        json!({"sourceToolAssistantUUID": parent}),
    )
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn one_message_in_several_lines_is_counted_once_and_parallel_results_stay() {
    // The second call ends first, so that the conversation goes on from the result of the first.
    let session = asks("u", None, 0, "Look.")
        + &says("a1", "u", 1, "m1", calls("t1", "Read", json!({"file_path": "/w/a"})), None, 1)
        + &says("a2", "a1", 1, "m1", calls("t2", "Read", json!({"file_path": "/w/b"})), Some("tool_use"), 30)
        + &results("r2", "a2", 2, "t2", "b")
        + &results("r1", "a1", 3, "t1", "a")
        + &says("a3", "r1", 4, "m2", text("Both."), Some("end_turn"), 5);
    let trace = lines(imported(session.as_bytes(), &[]));
    assert_eq!(of(&trace, "tool_call").len(), 2);
    assert!(of(&trace, "tool_result").iter().all(|result| result["status"] == "ok"));
    let usage: Vec<(u64, u64)> = of(&trace, "usage")
        .iter()
        .map(|it| (it["input_tokens"].as_u64().unwrap(), it["output_tokens"].as_u64().unwrap()))
        .collect();
    assert_eq!(usage, [(10, 30), (10, 5)]);
    assert_eq!(codes(&trace), [""; 0]);
    // Every line again, as a copied or forked session has them.
    let twice = lines(imported((session.clone() + &session).as_bytes(), &[]));
    assert_eq!(codes(&twice), ["repeated_line"]);
    assert_eq!(twice.len(), trace.len() + 1);
}

#[test]
fn a_session_that_was_left_in_the_middle_has_an_end() {
    let start = asks("u", None, 0, "Look.")
        + &says("a", "u", 1, "m1", calls("t1", "Bash", json!({"command": "sleep 9"})), Some("tool_use"), 3);
    let open = lines(imported(start.as_bytes(), &[]));
    assert_eq!(
        (of(&open, "tool_result")[0]["status"].as_str(), open.last().unwrap()["reason"].as_str()),
        (Some("unfinished"), Some("crashed"))
    );
    // Cut within a line, and within a character.
    let cut = [start.as_bytes(), "{\"type\":\"assistant\",\"uuid\":\"ä".as_bytes().split_last().unwrap().1].concat();
    let cut = lines(imported(&cut, &[]));
    assert!(codes(&cut).contains(&"malformed_line") && codes(&cut).contains(&"not_utf8"), "{:?}", codes(&cut));
    assert_eq!(of(&cut, "notice").iter().find(|it| it["code"] == "malformed_line").unwrap()["lost"], "line");
    // A second prompt without an answer does not end as the first one did.
    let answered = asks("u", None, 0, "Look.") + &says("a", "u", 1, "m1", text("Done."), Some("end_turn"), 3);
    assert_eq!(lines(imported(answered.as_bytes(), &[])).last().unwrap()["reason"], "end_turn");
    let again = answered + &asks("v", Some("a"), 2, "Look.");
    let trace = lines(imported(again.as_bytes(), &[]));
    assert_eq!(trace.last().unwrap()["reason"], "crashed");
    assert_eq!(of(&trace, "message").iter().filter(|it| it["text"] == "Look.").count(), 2, "a prompt may be repeated");
    let interrupted = again + &asks("w", Some("v"), 3, "[Request interrupted by user]");
    assert_eq!(lines(imported(interrupted.as_bytes(), &[])).last().unwrap()["reason"], "cancelled");
}

#[test]
fn what_the_program_writes_is_no_message_and_times_never_go_back() {
    let meta =
        |line: &str, key: &str| line.replace("\"isSidechain\":false", &format!("\"isSidechain\":false,\"{key}\":true"));
    let session = asks("u", None, 30, "Look.")
        + &meta(&asks("v", Some("u"), 31, "Caveat: not the user's"), "isMeta")
        + &meta(&asks("w", Some("v"), 31, "This session is being continued"), "isCompactSummary")
        + &asks("x", Some("w"), 32, "<command-name>/model</command-name>")
        + &says("a", "x", 10, "m1", json!({"type": "thinking", "thinking": "", "signature": "c2Vjcm V0"}), None, 3)
        + &says("b", "a", 40, "m1", text("Done."), None, 3)
        + "{\"type\":\"something-new\"}\n[1]\n";
    let trace = lines(imported(session.as_bytes(), &[]));
    assert_eq!(of(&trace, "message").len(), 2);
    assert_eq!(of(&trace, "thought").len(), 0);
    assert_eq!(
        codes(&trace),
        ["time_order", "synthetic_message", "compact_summary", "synthetic_message", "unknown_line", "malformed_line"]
    );
    let times: Vec<u64> = trace[1..].iter().map(|event| event["at_ms"].as_u64().unwrap()).collect();
    assert!(times.is_sorted() && *times.last().unwrap() == 10_000, "{times:?}");
}

#[test]
fn sub_agents_in_the_main_file_are_joined_by_their_prompt() {
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let session = asks("u", None, 0, "Look.")
        + &says("a", "u", 1, "m1", calls("t1", "Task", json!({"prompt": "Count them."})), Some("tool_use"), 3)
        + &side(asks("s1", None, 2, "Count them."))
        + &side(says("s2", "s1", 3, "m2", text("Three."), Some("end_turn"), 4))
        + &side(asks("s3", None, 3, "Of another session."))
        + &results("r", "a", 4, "t1", "Three.")
        + &says("b", "r", 5, "m3", text("Three."), Some("end_turn"), 3);
    let trace = lines(imported(session.as_bytes(), &[]));
    let inner = of(&trace, "message").iter().filter(|it| it["parent"] == "t1").count();
    assert_eq!((inner, codes(&trace)), (2, vec!["unknown_sub_agent"]));
    assert_eq!(of(&trace, "usage").len(), 3);
}

#[test]
fn totals_of_the_program_count_only_if_they_are_those_of_the_trace() {
    let totals = |output: u64| {
        let usage = json!({"m": {"inputTokens": 20, "outputTokens": output, "cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "costUSD": 0.5}});
        format!("{}\n", json!({"type": "cost-state", "sessionId": "s", "totalCostUSD": 0.5, "modelUsage": usage}))
    };
    let session = asks("u", None, 0, "Look.") + &says("a", "u", 1, "m1", text("Done."), Some("end_turn"), 30);
    let scopes = |trace: &[Value]| {
        of(trace, "usage").iter().map(|it| it["scope"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let whole = lines(imported((session.clone() + &totals(30)).as_bytes(), &[]));
    assert_eq!(
        (scopes(&whole), &of(&whole, "usage")[1]["cost_usd"]),
        (vec!["call".to_owned(), "session".to_owned()], &json!(0.5))
    );
    // They leave out a message, as after a crash.
    let smaller = lines(imported((session.clone() + &totals(3)).as_bytes(), &[]));
    assert_eq!((scopes(&smaller), codes(&smaller)), (vec!["call".to_owned()], vec!["usage_differs"]));
    // They count a branch that is not in the trace.
    let branched = session
        + &asks("v", Some("u"), 2, "Look again.")
        + &says("b", "v", 3, "m2", text("Again."), Some("end_turn"), 7)
        + &totals(37);
    let branched = lines(imported(branched.as_bytes(), &[]));
    assert_eq!((scopes(&branched), codes(&branched)), (vec!["call".to_owned()], vec!["other_branches"]));
    assert_eq!(of(&branched, "usage")[0]["output_tokens"], 7);
}

#[test]
fn the_file_of_a_sub_agent_that_cannot_be_joined_is_told() {
    let project = Project::new();
    project.write(
        "s.jsonl",
        &(asks("u", None, 0, "Look.") + &says("a", "u", 1, "m1", text("Done."), Some("end_turn"), 3)),
    );
    let side = asks("x", None, 0, "Count.").replace("\"isSidechain\":false", "\"isSidechain\":true");
    project.write("s/subagents/agent-one.jsonl", &side);
    project.write("s/subagents/agent-two.jsonl", &side);
    project.write("s/subagents/agent-two.meta.json", "{\"toolUseId\":\"elsewhere\"}");
    project.write("s/subagents/notes.txt", "not a session");
    let trace = lines(project.evals(&["import", "s.jsonl"]));
    assert_eq!(codes(&trace), ["sub_agent_left_out", "sub_agent_left_out"]);
    assert!(trace.iter().all(|line| line.get("parent").is_none()));
}

#[test]
fn secrets_are_masked_before_they_are_written() {
    let session = asks("u", None, 0, "Use sk-ant-api03-abcdefghijklmnop and hunter2-hunter2.")
        + &says("a", "u", 1, "m", text("ghp_abcdefghijklmnopqrstuvwxyz012345"), Some("end_turn"), 1);
    let mut project = Project::new();
    project.env("MY_PASSWORD", "hunter2-hunter2");
    project.write("session.jsonl", &session);
    for args in [
        &["import", "session.jsonl"][..],
        &["import", "session.jsonl", "--explain"],
        &["import", "session.jsonl", "--explain", "--format", "json"],
    ] {
        let out = project.evals(args).exits(0).out;
        assert!(out.contains("[redacted:anthropic-key]") && out.contains("[redacted:MY_PASSWORD]"), "{out}");
        for secret in ["abcdefghijklmnop", "hunter2"] {
            assert!(!out.contains(secret), "{out}");
        }
    }
}

#[test]
fn files_of_no_known_format_are_refused_with_the_formats_that_are_known() {
    imported(b"", &[]).exits(2).says("session.jsonl is empty");
    imported(b" \n\n", &[]).exits(2).says("session.jsonl is empty");
    for content in
        [&b"{\"type\":\"message\"}\n{\"a\":1}\n"[..], b"name,value\n1,2\n", b"\xff\xfe\x00", b"[{\"role\":\"user\"}]"]
    {
        imported(content, &[])
            .exits(2)
            .says("the format of session.jsonl is unknown")
            .says("claude-code-stream")
            .says("codex")
            .says("pi");
    }
    // A protocol that was named is not doubted.
    lines(imported(b"plain text\n", &["--adapter", "output-only"]));
    Project::new().evals(&["import", "."]).exits(2).says("is a folder");
    Project::new().evals(&["import", "missing.jsonl"]).exits(2).says("could not read missing.jsonl");
}

#[test]
fn a_tree_that_is_broken_loses_no_line() {
    let line = |id: &str, parent: &str, role: &str, said: &str| {
        let message = json!({"role": role, "content": [{"type": "text", "text": said}], "stopReason": "stop"});
        format!(
            "{}\n",
            json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:05Z", "message": message})
        )
    };
    let circle = line("a", "b", "user", "Look.") + &line("b", "a", "assistant", "Done.");
    let trace = lines(imported(circle.as_bytes(), &[]));
    assert_eq!((of(&trace, "message").len(), codes(&trace)), (2, vec!["session_tree"]));
    let gap = line("a", "", "user", "Look.") + &line("c", "b", "assistant", "Done.");
    let trace = lines(imported(gap.as_bytes(), &[]));
    assert_eq!((of(&trace, "message").len(), codes(&trace)), (2, vec!["session_tree"]));
    // Without times the trace says so.
    let untimed = circle.replace("\"2026-01-02T03:04:05Z\"", "\"yesterday\"");
    let trace = lines(imported(untimed.as_bytes(), &[]));
    assert_eq!(trace[0]["timed"], false);
    assert!(trace[1..].iter().all(|event| event["at_ms"] == 0));
}

#[test]
fn a_very_long_line_is_read() {
    let session =
        asks("u", None, 0, "Look.") + &says("a", "u", 1, "m", text(&"x".repeat(20 << 20)), Some("end_turn"), 1);
    let trace = lines(imported(session.as_bytes(), &[]));
    // The recorder keeps 16 MiB of a text.
    assert_eq!(trace[2]["text"].as_str().unwrap().len(), 16 << 20);
    assert!(codes(&trace).contains(&"text_cut"));
}

#[test]
fn any_cut_of_a_session_is_a_trace() {
    for name in ["claude-code/subagent.jsonl", "codex/resumed.jsonl", "pi/branched.jsonl"] {
        let whole = fs::read(recorded(name)).unwrap();
        let lines = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
        // At the end of every twentieth line, and within it.
        for at in lines.step_by(20).skip(1).flat_map(|at| [at + 1, at - 7]) {
            let ran = imported(&whole[..at], &[]).exits(0);
            laws::assert_lawful(&ran.out);
        }
    }
}

#[test]
fn errors_in_the_rules_of_session_files_have_their_place() {
    let manifest = |keys: &str| {
        let project = Project::new();
        project.harness(
            "mine",
            &format!(
                "adapter: json-stream\ncommand: [mine, '{{prompt}}']\nstream: [{{ignore: true}}]\nsession-file:\n{keys}"
            ),
        );
        project.evals(&["check", "--harness", "mine", "cases"])
    };
    for (keys, says) in [
        ("  known-by: line.a ==\n  rules: [{ignore: true}]", "known-by"),
        ("  known-by: line.a == 1\n  rules: [{when: lin.b == 2, ignore: true}]", "lin"),
        ("  known-by: line.a == 1\n  time: text\n  rules: [{ignore: true}]", "text"),
        ("  known-by: line.a == 1\n  rules: [{when: true}]", "the rule has no effect"),
        ("  rules: [{ignore: true}]", "known-by"),
    ] {
        let ran = manifest(keys).exits(2);
        assert!(ran.err.contains("mine.yaml") && ran.err.contains(says), "{}", ran.err);
    }
}
