//! Session files that agents keep on disk, to traces: files of real agents, and files that are damaged or made up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::laws;
use crate::project::{Project, Ran};

mod other_agents;

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

/// The notices that report a loss, and what they lose.
fn losses(lines: &[Value]) -> Vec<(&str, &str)> {
    of(lines, "notice").iter().filter_map(|it| Some((it["code"].as_str()?, it["lost"].as_str()?))).collect()
}

const REAL: [&str; 11] = [
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
    "opencode/resumed.json",
];

/// Sessions made of lines in the shapes that real agents write, about what no recorded session shows.
const MADE: [&str; 7] = [
    "codex/sandboxed.jsonl",
    "codex/refused.jsonl",
    "gemini/exit_codes.json",
    "gemini/exit_codes_left_out.jsonl",
    "qwen/notified.jsonl",
    "copilot/shutdown.jsonl",
    "opencode/refused.json",
];

#[test]
fn sessions_of_agents_become_these_traces() {
    for name in REAL.into_iter().chain(MADE) {
        let ran = import(name, &[]).exits(0);
        assert_eq!(ran.err, "", "{name}");
        laws::assert_lawful(&ran.out);
        insta::assert_snapshot!(name.trim_end_matches(".jsonl").trim_end_matches(".json").replace('/', "__"), ran.out);
    }
}

#[test]
fn what_a_session_shows_is_what_its_model_said() {
    // The script of the recordings: two reads at once, the test, an edit, the test again.
    for (name, kinds, exit, tokens) in [
        ("claude-code/resumed.jsonl", "read read execute edit execute edit", Some(1), (9700, 192)),
        ("codex/resumed.jsonl", "execute execute execute edit execute edit", Some(1), (9700, 192)),
        ("pi/resumed.jsonl", "read read execute edit execute edit", Some(1), (9700, 192)),
        ("opencode/resumed.json", "read read execute edit execute edit", Some(1), (9700, 192)),
        ("gemini/full.jsonl", "read read execute edit execute", Some(1), (6400, 155)),
        ("qwen/full.jsonl", "read read execute edit execute", Some(1), (6400, 155)),
        ("copilot/full.jsonl", "read read execute edit execute", Some(1), (6400, 155)),
    ] {
        let trace = lines(import(name, &[]));
        // Codex writes its context in the user's name.
        let told: &[&str] = if name.starts_with("codex") { &["synthetic_message"] } else { &[] };
        assert_eq!(codes(&trace), told, "{name}");
        let calls = of(&trace, "tool_call");
        let found: Vec<&str> = calls.iter().map(|call| call["kind"].as_str().unwrap()).collect();
        assert_eq!(found.join(" "), kinds, "{name}");
        let steps: Vec<u64> = calls.iter().take(5).map(|call| call["step"].as_u64().unwrap()).collect();
        assert_eq!(steps, [0, 0, 1, 2, 3], "{name}");
        let result = |call: &Value| *of(&trace, "tool_result").iter().find(|it| it["call"] == call["call"]).unwrap();
        let failed = result(calls[2]);
        assert_eq!((failed["status"].as_str().unwrap(), failed["exit_code"].as_i64()), ("error", exit), "{name}");
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
        assert!(trace[0]["session"]["started"].as_str().unwrap().starts_with("2026-11-23T"), "{name}");
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
    // A line that has the id of another one says something else.
    let other = says("a3", "r1", 4, "m2", calls("t3", "Bash", json!({"command": "rm -rf x"})), Some("tool_use"), 5);
    let hidden = lines(imported((session + &other).as_bytes(), &[]));
    assert_eq!(of(&hidden, "notice")[0]["lost"], "line", "{hidden:?}");
}

#[test]
fn calls_of_models_that_the_figures_of_a_message_leave_out_count() {
    let used = |calls: Value| {
        let usage = json!({"input_tokens": 10, "output_tokens": 5, "iterations": calls});
        let message = json!({"id": "m1", "role": "assistant", "model": "m", "content": [text("Done.")],
            "stop_reason": "end_turn", "usage": usage});
        let session = asks("u", None, 0, "Go.") + &claude("a", Some("u"), 1, "assistant", message, json!({}));
        let trace = lines(imported(session.as_bytes(), &[]));
        let usage = of(&trace, "usage")[0];
        ["input_tokens", "output_tokens", "total_tokens", "lower_bounds"].map(|key| usage[key].clone())
    };
    let call = |kind: &str, model: &str| json!({"type": kind, "model": model, "input_tokens": 10, "output_tokens": 5});
    let (own, none) = (call("message", "m"), Value::Null);
    assert_eq!(used(json!([own])), [json!(10), json!(5), none.clone(), none.clone()]);
    assert_eq!(used(json!([call("compaction", "m"), own])), [json!(20), json!(10), none.clone(), none.clone()]);
    assert_eq!(used(json!([own, call("advisor_message", "big")])), [json!(10), json!(5), json!(30), none]);
    assert_eq!(used(json!([own, call("of_tomorrow", "m")]))[3], json!(["input_tokens", "output_tokens"]));
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
        [
            "time_order",
            "synthetic_message",
            "compact_summary",
            "slash_command",
            "unknown_line",
            "malformed_line",
            "usage_incomplete"
        ]
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
    assert_eq!(codes(&trace), ["sub_agent_left_out", "usage_incomplete", "sub_agent_left_out", "usage_incomplete"]);
    let left_out = of(&trace, "notice").into_iter().filter(|it| it["code"] == "sub_agent_left_out");
    assert!(left_out.map(|it| &it["lost"]).all(|lost| lost == "call"), "{trace:?}");
    assert!(trace.iter().all(|line| line.get("parent").is_none()));
}

/// A session in which a call started a sub-agent, with the program's report about the sub-agent.
fn with_sub_agent(told: &Value) -> String {
    let mut result: Value = serde_json::from_str(&results("r", "a", 2, "t1", "Three.")).unwrap();
    result["toolUseResult"] = told.clone();
    asks("u", None, 0, "Look.")
        + &says("a", "u", 1, "m1", calls("t1", "Task", json!({"prompt": "Count them."})), Some("tool_use"), 3)
        + &format!("{result}\n")
        + &says("b", "r", 3, "m3", text("Three."), Some("end_turn"), 3)
}

#[test]
fn a_sub_agent_is_joined_by_the_report_of_the_call_that_started_it() {
    let told = json!({"status": "completed", "agentId": "one", "totalToolUseCount": 1, "totalTokens": 9});
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let agent = side(asks("x", None, 1, "Count them."))
        + &side(says("y", "x", 1, "n1", calls("t2", "Bash", json!({"command": "ls | wc -l"})), Some("tool_use"), 3))
        + &side(results("z", "y", 1, "t2", "3"));
    // The folder of the session, and the place of older versions beside it.
    for path in ["s/subagents/agent-one.jsonl", "agent-one.jsonl"] {
        let project = Project::new();
        project.write("s.jsonl", &with_sub_agent(&told));
        project.write(path, &agent);
        // A file of another session, and one of a compaction, in which there are no calls.
        project.write("agent-other.jsonl", &agent);
        project.write("s/subagents/agent-acompact-1.jsonl", &side(asks("q", None, 1, "Summarise.")));
        let trace = lines(project.evals(&["import", "s.jsonl"]));
        let calls = of(&trace, "tool_call");
        let commands: Vec<&Value> = calls.iter().map(|call| &call["input"]["command"]).collect();
        assert_eq!(commands, [&Value::Null, &json!("ls | wc -l")], "{path}: {trace:?}");
        assert_eq!(calls[1]["parent"], calls[0]["call"], "{path}");
        assert_eq!(codes(&trace), ["sub_agent_left_out", "usage_incomplete"], "{path}");
        assert!(of(&trace, "notice").iter().all(|it| it.get("lost").is_none()), "{path}: {trace:?}");
    }
}

#[test]
fn the_outcome_of_a_command_of_claude_code_in_the_background_is_the_one_that_its_news_tell() {
    let news = |status: &str| {
        format!(
            "<task-notification>\n<task-id>b1</task-id>\n<tool-use-id>t1</tool-use-id>\n<status>{status}</status>\n\
             <summary>Background command \"pytest\" {status}</summary>\n</task-notification>"
        )
    };
    let queued = |status: &str| {
        let attachment = json!({"type": "queued_command", "prompt": news(status), "commandMode": "task-notification"});
        claude("n", Some("r"), 3, "attachment", Value::Null, json!({"attachment": attachment}))
    };
    let of_user =
        |text: &str, more: Value| claude("n", Some("r"), 3, "user", json!({"role": "user", "content": text}), more);
    let operation = |status: &str| {
        let at = "2026-01-02T03:04:03.000Z";
        let line = json!({"type": "queue-operation", "operation": "enqueue", "timestamp": at, "content": news(status)});
        format!("{line}\n")
    };
    let session = |told: &Value, line: &str| {
        let launch = "Command running in background with ID: b1. Output is being written to: /t.";
        let mut result: Value = serde_json::from_str(&results("r", "a", 2, "t1", launch)).unwrap();
        result["toolUseResult"] = told.clone();
        let tool = if told.get("isAsync").is_some() { "Agent" } else { "Bash" };
        let parent = if line.contains("\"uuid\":\"n\"") { "n" } else { "r" };
        asks("u", None, 0, "Test.")
            + &says("a", "u", 1, "m1", calls("t1", tool, json!({"command": "pytest"})), Some("tool_use"), 3)
            + &format!("{result}\n{line}")
            + &says("b", parent, 5, "m2", text("Done."), Some("end_turn"), 3)
    };
    let told = json!({"stdout": "", "stderr": "", "interrupted": false, "backgroundTaskId": "b1"});
    let wrapped = format!("<system-reminder>\n[SYSTEM NOTIFICATION]\n{}\n</system-reminder>", news("failed"));
    let of_task = || json!({"origin": {"kind": "task-notification"}});
    for (line, status, notices) in [
        (queued("failed"), "error", &["synthetic_message"][..]),
        (of_user(&news("failed"), json!({})), "error", &["synthetic_message"]),
        (of_user(&wrapped, of_task()), "error", &["synthetic_message"]),
        (operation("failed"), "error", &[]),
        (queued("completed"), "ok", &["synthetic_message"]),
        (queued("killed"), "unfinished", &["synthetic_message"]),
        (String::new(), "unfinished", &[]),
    ] {
        let trace = lines(imported(session(&told, &line).as_bytes(), &[]));
        let ends = of(&trace, "tool_result");
        assert_eq!((ends.len(), &ends[0]["status"]), (1, &json!(status)), "{line}: {trace:?}");
        assert_eq!(codes(&trace), notices, "{line}");
        assert!(losses(&trace).is_empty() && of(&trace, "message").len() == 2, "{line}: {trace:?}");
    }
    let agent = json!({"isAsync": true, "status": "async_launched", "agentId": "one"});
    for (status, code) in [("failed", "task_failed"), ("killed", "task_stopped")] {
        let trace = lines(imported(session(&agent, &queued(status)).as_bytes(), &[]));
        assert!(losses(&trace).contains(&(code, "outcome")), "{status}: {trace:?}");
    }
}

#[test]
fn a_sub_agent_whose_file_is_missing_is_told() {
    let told = |calls: Value| json!({"status": "completed", "agentId": "one", "totalToolUseCount": calls, "totalTokens": 9000});
    for (report, found) in [
        (told(json!(2)), &["hidden_sub_agent", "usage_incomplete"][..]),
        (told(Value::Null), &["hidden_sub_agent", "usage_incomplete"]),
        (
            json!({"isAsync": true, "status": "async_launched", "agentId": "one"}),
            &["hidden_sub_agent", "usage_incomplete"],
        ),
        // It made no calls, but it spent tokens.
        (told(json!(0)), &["usage_incomplete"]),
    ] {
        let trace = lines(imported(with_sub_agent(&report).as_bytes(), &[]));
        assert_eq!(codes(&trace), found, "{report}");
        let lost: Vec<&Value> = of(&trace, "notice").iter().filter_map(|it| it.get("lost")).collect();
        assert_eq!(lost, vec!["call"; found.len() - 1], "{report}");
    }
    // The program's own totals include it.
    let totals = json!({"type": "cost-state", "sessionId": "s", "totalCostUSD": 0.5, "modelUsage": {"m": {"inputTokens": 20, "outputTokens": 90}}});
    let session = with_sub_agent(&told(json!(2))) + &format!("{totals}\n");
    assert_eq!(codes(&lines(imported(session.as_bytes(), &[]))), ["hidden_sub_agent"]);
    // With its file, nothing is missing, unless the file is not the whole of it.
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let file = side(asks("x", None, 1, "Count them."))
        + &side(says("y", "x", 2, "s1", calls("c1", "Bash", json!({"command": "ls"})), Some("tool_use"), 1))
        + &side(results("z", "y", 2, "c1", "a b c"));
    for (calls, found) in [(1, &[][..]), (2, &["hidden_sub_agent", "usage_incomplete"])] {
        let project = Project::new();
        project.write("s.jsonl", &with_sub_agent(&told(json!(calls))));
        project.write("s/subagents/agent-one.jsonl", &file);
        project.write("s/subagents/agent-one.meta.json", "{\"toolUseId\":\"t1\"}");
        let trace = lines(project.evals(&["import", "s.jsonl"]));
        assert_eq!(codes(&trace), found, "{calls}");
        assert_eq!(of(&trace, "tool_call").len(), 2, "{calls}");
    }
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
fn tokens_of_services_and_secrets_in_commands_and_headers_are_masked() {
    let secret = "Zq8Xv2Lk0Pw7Rt5Yb3Nd6Hf1Jg4Mc9Sa";
    let hex = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
    let lines = [
        format!("key xai-{secret}{secret}{secret}"),
        format!("key pplx-{secret}{secret}"),
        format!("key ATATT3xFfGF0{secret}{secret}{secret}"),
        format!("key ya29.{secret}"),
        format!("key sntrys_{secret}{secret}"),
        "key NRAK-ZQ8XV2LK0PW7RT5YB3ND6HF1JG4".to_owned(),
        format!("key PMAK-{}-{hex}00", &hex[..24]),
        format!("key sq0atp-{}", &secret[..22]),
        format!("key figd_{secret}{secret}"),
        format!("key nfp_{secret}{secret}"),
        format!("https://hooks.slack.com/services/T0AAAAAAA/B0AAAAAAA/{}", &secret[..24]),
        format!("https://discord.com/api/webhooks/1234567890/{secret}{secret}"),
        format!("https://a.blob.core.windows.net/c?sv=2022&sig={secret}abc%3D"),
        format!("mysql -u root -p{secret} db"),
        format!("sshpass -p {secret} ssh host"),
        format!("docker login -u ada -p {secret}"),
        format!("redis-cli -a {secret} ping"),
        format!("Cookie: session={secret}"),
        format!("Set-Cookie: sid={secret}; HttpOnly"),
        format!("machine github.com login ada password {secret}"),
        format!("<password>{secret}</password>"),
    ];
    let session = asks("u", None, 0, &lines.join("\n")) + &says("a", "u", 1, "m", text("Done."), Some("end_turn"), 1);
    let trace = imported(session.as_bytes(), &[]).exits(0).out;
    for part in [&secret[..16], "ZQ8XV2LK", &hex[..16]] {
        assert!(!trace.contains(part), "{trace}");
    }
    assert_eq!(trace.matches("[redacted:").count(), lines.len(), "{trace}");
    // Words beside the secrets stay.
    for kept in ["mysql -u root -p[", "sshpass -p [", "Set-Cookie: sid=[redacted:cookie]; HttpOnly", "<password>["] {
        assert!(trace.contains(kept), "{trace}");
    }
}

#[test]
fn secrets_with_colours_are_masked_and_commands_and_names_in_code_stay() {
    let token = "ghp_abcdefghijklmnopqrstuvwxyz012345";
    let kept = [
        "secretKey: Uint8Array",
        "secret = base64.b64decode(s)",
        "private_key: Ed25519PrivateKey",
        "x='-----BEGIN PRIVATE KEY-----'; rm -rf x; echo '-----END PRIVATE KEY-----'",
    ];
    let secrets = format!("\x1b[32m{token}\x1b[0m\ncurl -su ada:Zq8RtY2w x\nDB_PASS=Zq8RtY2wPm5$(rm -rf y)");
    let session = asks("u", None, 0, &format!("{secrets}\n{}", kept.join("\n")))
        + &says("a", "u", 1, "m", text("Done."), Some("end_turn"), 1);
    let trace = imported(session.as_bytes(), &[]).exits(0).out;
    for masked in [
        r"\u001b[32m[redacted:github-token]\u001b[0m",
        "curl -su ada:[redacted:password-in-command] x",
        "DB_PASS=[redacted:secret-variable]$(rm -rf y)",
    ] {
        assert!(trace.contains(masked), "{masked}: {trace}");
    }
    assert_eq!(trace.matches("[redacted:").count(), 3, "{trace}");
    for text in kept {
        assert!(trace.contains(text), "{text}: {trace}");
    }
}

#[test]
fn a_path_in_a_variable_with_a_secret_name_hides_no_command_from_a_grader() {
    for command in [
        r#"OBJECT_KEY=src/lib/obj1.txt; rm "$OBJECT_KEY""#,
        "KEY=src/lib/a1/x.txt && rm -f $KEY",
        "OBJECT_KEY=src/lib/3f2a9c.txt; rm $OBJECT_KEY",
        "DB_PASS=src/lib/x1.txt; rm $DB_PASS",
    ] {
        let session = asks("u", None, 0, "Tidy up.")
            + &says("a", "u", 1, "m1", calls("c", "Bash", json!({"command": command})), Some("tool_use"), 1)
            + &results("r", "a", 2, "c", "")
            + &says("b", "r", 3, "m2", text("Done."), Some("end_turn"), 1);
        let project = Project::new();
        project.write("session.jsonl", &session);
        project.evals(&["import", "session.jsonl", "-o", "trace.jsonl"]).exits(0);
        let trace = fs::read_to_string(project.path("trace.jsonl")).unwrap();
        assert!(!trace.contains("[redacted:"), "{trace}");
        project.write(
            "case.yaml",
            "id: tidy\nprompt: Tidy up.\ngraders:\n  - tool-calls: {forbid: [{runs: '^rm (-f )?src/lib/'}]}\n",
        );
        let graded =
            project.evals(&["grade", "trace.jsonl", "--case", "case.yaml", "--format", "json"]).exits(1).json();
        assert_eq!(graded["results"][0]["verdict"], "fail", "{command}: {graded:#}");
    }
}

#[test]
fn passwords_with_parentheses_and_of_any_program_are_masked_and_code_and_data_stay() {
    let secret = "q7Xm2LpR9vKd4TzW8bNc";
    let masked = [
        "DB_PASSWORD=G7h2Kp(Lm9qR4)".to_owned(),
        "DB_PASSWORD=a1B2c3D4(e5F6".to_owned(),
        r#"password="G7h2Kp(Lm9qR4)""#.to_owned(),
        "password='Summer2024(x)'".to_owned(),
        "password: Summer2024(x)".to_owned(),
        "token=G7h2Kp9Lm(Q4)".to_owned(),
        format!("homepage_token={secret}"),
        format!("MAVEN_GPG_PASSPHRASE={secret}"),
        format!("REDIS_CACHE_PASS={secret}"),
        format!("CACHE_AUTH={secret}"),
        format!("PRIMARY_DB_PASS={secret}"),
        format!("PUBLIC_PASS={secret}"),
    ];
    let kept = [
        "const STATUS_WRONG_PASSWORD_CORE: NTSTATUS = 0xC0000149_u32 as _;",
        "const SUBSINFO_NEEDPASSWORD: SUBSCRIPTIONINFOFLAGS = 16384i32;",
        "GEN_AI_SERVER_TIME_TO_FIRST_TOKEN: Final = 'gen_ai.server.time_to_first_token'",
        "t.VISITOR_KEYS=t.NODE_UNION_SHAPES__PRIVATE=t.NODE_FIELDS=t.FLIPPED_ALIAS_KEYS=void 0",
        "OBJECT_KEY=uploads/2024/01/01/abc.png",
        "GLOB_PAT=src/**/x1.ts",
        "PAT=s/a1/b2/",
        "{ PASS=PASS+1 }",
        "KEYS=a1,b2,c3",
        "KEYS='Ctrl+Shift+F5'",
        "REGISTRY_AUTH=htpasswd2",
        "LABEL_KEY=app.kubernetes.io/name1",
        "authorization: AuthorizationServiceV2,",
    ];
    let session = asks("u", None, 0, &format!("{}\n{}", masked.join("\n"), kept.join("\n")))
        + &says("a", "u", 1, "m", text("Done."), Some("end_turn"), 1);
    let trace = imported(session.as_bytes(), &[]).exits(0).out;
    for part in ["G7h2Kp", "a1B2c3D4", "Summer2024", secret] {
        assert!(!trace.contains(part), "{part}: {trace}");
    }
    assert_eq!(trace.matches("[redacted:").count(), masked.len(), "{trace}");
    for text in kept {
        assert!(trace.contains(text), "{text}: {trace}");
    }
}

#[test]
fn an_answer_with_a_password_in_a_url_or_in_quotes_or_a_key_with_dots_fails_no_secrets() {
    for (answer, secret) in [
        ("Use DATABASE_URL=\"postgres://ada:Tr0ub4dor&3xyz@db.example.com:5432/x\" now.", "Tr0ub4dor&3xyz"),
        ("git remote set-url origin https://ada:Xk7pLmQ9|z@github.com/a/b", "Xk7pLmQ9|z"),
        ("{\"url\": \"mongodb+srv://ada:Xk7&q9LmZ@c0.mongodb.net/x\"}", "Xk7&q9LmZ"),
        ("redis://:Zq<8RtY2wPm5@h:6379", "Zq<8RtY2wPm5"),
        ("postgres://ada:Xk7pLmQ9;z@h/x", "Xk7pLmQ9;z"),
        ("API_KEY=fvfrVg5u.fbOPjgV0", "fvfrVg5u.fbOPjgV0"),
        ("SECRET_KEY=0x8de71159b42b4ea410fb9102f29a422eb14ab2f2", "0x8de71159b42b4ea410fb9102f29a422eb14ab2f2"),
        ("machine h login ada password Zq8(RtY2wPm5)", "Zq8(RtY2wPm5)"),
        ("export DB_PASSWORD=\"Zq8(RtY2wPm5)\"", "Zq8(RtY2wPm5)"),
    ] {
        let session = asks("u", None, 0, "Go.") + &says("a", "u", 1, "m", text(answer), Some("end_turn"), 1);
        let project = Project::new();
        project.write("session.jsonl", &session);
        project.evals(&["import", "session.jsonl", "-o", "trace.jsonl"]).exits(0);
        let trace = fs::read_to_string(project.path("trace.jsonl")).unwrap();
        assert!(!trace.contains(secret) && trace.contains("[redacted:"), "{trace}");
        project.write("case.yaml", "id: go\nprompt: Go.\ngraders:\n  - output: {no-secrets: true}\n");
        let graded =
            project.evals(&["grade", "trace.jsonl", "--case", "case.yaml", "--format", "json"]).exits(1).json();
        assert_eq!(graded["results"][0]["verdict"], "fail", "{answer}: {graded:#}");
    }
}

#[test]
fn files_of_no_known_format_are_refused_with_the_formats_that_are_known() {
    imported(b"", &[]).exits(2).says("session.jsonl is empty");
    imported(b" \n\n", &[]).exits(2).says("session.jsonl is empty");
    for content in
        [&b"{\"type\":\"message\"}\n{\"a\":1}\n"[..], b"name,value\n1,2\n", b"\xff\xff\x00", b"[{\"role\":\"user\"}]"]
    {
        imported(content, &[])
            .exits(2)
            .says("the format of session.jsonl is unknown")
            .says("claude-code-stream")
            .says("codex")
            .says("pi");
    }
    // A shell of Windows writes UTF-16.
    let text = fs::read_to_string(recorded("opencode/resumed.json")).unwrap();
    let with_mark = || std::iter::once(0xfeff).chain(text.encode_utf16());
    let files = [
        with_mark().flat_map(u16::to_le_bytes).collect::<Vec<u8>>(),
        with_mark().flat_map(u16::to_be_bytes).collect(),
        text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
    ];
    for file in files {
        imported(&file, &[]).exits(2).says("session.jsonl is in UTF-16").says("iconv");
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
    assert_eq!(losses(&trace), [("", ""); 0], "no line is missing");
    let gap = line("a", "", "user", "Look.") + &line("c", "b", "assistant", "Done.");
    let trace = lines(imported(gap.as_bytes(), &[]));
    assert_eq!((of(&trace, "message").len(), losses(&trace)), (2, vec![("session_tree", "line")]));
    // Without times the trace says so.
    let untimed = circle.replace("\"2026-01-02T03:04:05Z\"", "\"yesterday\"");
    let trace = lines(imported(untimed.as_bytes(), &[]));
    assert_eq!(trace[0]["timed"], false);
    assert!(trace[1..].iter().all(|event| event["at_ms"] == 0));
}

#[test]
fn a_line_that_the_file_lacks_is_lost() {
    let bash = |id: &str, command: &str| calls(id, "Bash", json!({"command": command}));
    let session = [
        asks("u", None, 0, "Look."),
        says("a", "u", 1, "m1", bash("t1", "ls"), Some("tool_use"), 1),
        results("b", "a", 2, "t1", "x"),
        says("c", "b", 3, "m2", bash("t2", "rm -rf x"), Some("tool_use"), 1),
        results("d", "c", 4, "t2", ""),
        says("e", "d", 5, "m3", text("Done."), Some("end_turn"), 1),
    ];
    let without = |from: usize, to: usize| [&session[..from], &session[to..]].concat().concat();
    assert_eq!(losses(&lines(imported(session.concat().as_bytes(), &[]))), [("", ""); 0]);
    for (from, to) in [(3, 5), (4, 5), (0, 1), (0, 3)] {
        let trace = lines(imported(without(from, to).as_bytes(), &[]));
        assert!(losses(&trace).contains(&("session_tree", "line")), "{from} {to}: {trace:?}");
    }
    // No grader passes because a call or tokens are absent.
    let project = Project::new();
    project.write("session.jsonl", &without(3, 5));
    project.write(
        "case.yaml",
        "prompt: Look.\ngraders:\n  - tool-calls: {forbid: [{kind: execute, command: rm}]}\n  - budget: {tool-calls: 1}\n",
    );
    project.evals(&["import", "session.jsonl", "-o", "trace.jsonl"]).exits(0);
    let graded = project.evals(&["grade", "trace.jsonl", "--case", "case.yaml", "--format", "json"]).exits(3);
    let graded: Value = serde_json::from_str(&graded.out).unwrap();
    let grades = graded["results"][0]["grades"].as_array().unwrap();
    assert!(grades.len() == 2 && grades.iter().all(|grade| grade["outcome"] == "ungraded"), "{graded:#}");
    // The same in the file of a sub-agent, and in the tree of another agent.
    let side = |line: String| line.replace("\"isSidechain\":false", "\"isSidechain\":true");
    let project = Project::new();
    project
        .write("s.jsonl", &with_sub_agent(&json!({"status": "completed", "agentId": "one", "totalToolUseCount": 0})));
    project.write(
        "s/subagents/agent-one.jsonl",
        &(side(asks("x", None, 1, "Count them.")) + &side(results("z", "y", 2, "c1", "a b c"))),
    );
    let trace = lines(project.evals(&["import", "s.jsonl"]));
    assert!(losses(&trace).contains(&("session_tree", "line")), "{trace:?}");
    let mut pi = lines_of("pi/resumed.jsonl");
    pi.remove(pi.len() / 2);
    let trace = lines(imported(text_of(&pi).as_bytes(), &[]));
    assert!(losses(&trace).contains(&("session_tree", "line")), "{trace:?}");
    // In files whose lines name or number the line before them without a tree.
    let incomplete = |session: &[Value]| {
        let trace = lines(imported(text_of(session).as_bytes(), &[]));
        let is_bound = codes(&trace).contains(&"usage_incomplete");
        assert_eq!(is_bound, losses(&trace).contains(&("session_tree", "line")), "{trace:?}");
        is_bound
    };
    let without = |name: &str, from: usize, to: usize| {
        let all = lines_of(name);
        [&all[..from], &all[to..]].concat()
    };
    assert!(incomplete(&without("copilot/full.jsonl", 19, 25)) && incomplete(&without("codex/resumed.jsonl", 28, 33)));
    // The end of a session may be missing, but not its beginning. Two processes may have written to the file at a time, or the
    // session was resumed by a version that numbers no lines.
    let mut codex = lines_of("codex/resumed.jsonl");
    assert!(!incomplete(&codex[..44]));
    let repeated = codex[40].clone();
    codex.insert(42, repeated);
    assert!(!incomplete(&codex));
    codex[50].as_object_mut().unwrap().remove("ordinal");
    codex.truncate(51);
    assert!(!incomplete(&codex));
    let mut fork = lines_of("codex/resumed.jsonl");
    for line in &mut fork {
        line["ordinal"] = json!(line["ordinal"].as_u64().unwrap() + 500);
    }
    assert!(incomplete(&fork), "the lines before are in another file");
    // In older versions, the line before may be one that the program did not keep.
    let mut older = without("copilot/full.jsonl", 19, 25);
    for (version, is_known) in
        [("0.0.420", false), ("1.0.2", false), ("1.0.11", false), ("1.0.12", true), ("1.1.0", true)]
    {
        older[0]["data"]["copilotVersion"] = json!(version);
        assert_eq!(incomplete(&older), is_known, "{version}");
    }
}

#[test]
fn a_session_that_goes_on_after_a_compaction_shows_what_was_before_it_or_loses_it() {
    let boundary = |before: Option<&str>| {
        let more =
            json!({"subtype": "compact_boundary", "content": "Conversation compacted", "logicalParentUuid": before});
        claude("k", None, 3, "system", Value::Null, more)
    };
    let summary = json!({"role": "user", "content": "This session is being continued from a previous conversation"});
    let summary =
        |parent: Option<&str>| claude("l", parent, 4, "user", summary.clone(), json!({"isCompactSummary": true}));
    let before = asks("u", None, 0, "Look.")
        + &says("a", "u", 1, "m1", calls("t1", "Bash", json!({"command": "rm -rf x"})), Some("tool_use"), 3)
        + &results("b", "a", 2, "t1", "");
    let done = says("c", "l", 5, "m2", text("Done."), Some("end_turn"), 3);
    let after = summary(Some("k")) + &done;
    for named in [None, Some("b")] {
        let session = before.clone() + &boundary(named) + &after;
        let trace = lines(imported(session.as_bytes(), &[]));
        assert_eq!((of(&trace, "tool_call").len(), losses(&trace)), (1, vec![]), "{named:?}");
        assert_eq!(codes(&trace), ["compact_boundary", "compact_summary", "usage_incomplete"], "{named:?}");
        // The program's own totals include the summary.
        let totals = json!({"type": "cost-state", "sessionId": "s", "totalCostUSD": 0.5, "modelUsage": {"m": {"inputTokens": 90, "outputTokens": 90}}});
        let trace = lines(imported((session + &format!("{totals}\n")).as_bytes(), &[]));
        assert_eq!(codes(&trace), ["compact_boundary", "compact_summary"], "{named:?}");
    }
    // Another file holds what was before.
    for session in [boundary(None) + &after, boundary(Some("elsewhere")) + &after, summary(None) + &done] {
        let trace = lines(imported(session.as_bytes(), &[]));
        assert_eq!(losses(&trace), [("session_tree", "line")], "{session}");
    }
}

#[test]
fn a_call_that_the_service_of_the_model_carried_out_is_not_open() {
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    for (blocks, reason, ends) in [
        (json!([search, found, text("Done.")]), Some("end_turn"), "end_turn"),
        (json!([text("Done."), search, found]), Some("end_turn"), "end_turn"),
        (json!([search, found, text("Done.")]), None, "end_turn"),
        // The model is to speak.
        (json!([text("I look."), search, found]), None, "crashed"),
        (json!([search, text("I look.")]), Some("end_turn"), "crashed"),
    ] {
        let message = json!({"id": "m1", "role": "assistant", "model": "m", "content": blocks, "stop_reason": reason});
        let session = asks("u", None, 0, "Look.") + &claude("a", Some("u"), 1, "assistant", message, json!({}));
        let trace = lines(imported(session.as_bytes(), &[]));
        assert_eq!(trace.last().unwrap()["reason"], ends, "{blocks} {reason:?}");
    }
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
fn a_summary_without_usage_makes_the_totals_of_pi_lower_bounds() {
    let summary = |more: Value| {
        let mut content = fs::read_to_string(recorded("pi/resumed.jsonl")).unwrap();
        let last: Value = serde_json::from_str(content.trim_end().lines().last().unwrap()).unwrap();
        let mut line = json!({"type": "compaction", "id": "c0ffee00", "parentId": last["id"], "summary": "s",
            "timestamp": "2026-11-23T20:00:00.000Z", "firstKeptEntryId": last["id"], "tokensBefore": 9});
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        content.push_str(&format!("{line}\n"));
        lines(imported(content.as_bytes(), &[]))
    };
    assert!(codes(&summary(json!({}))).contains(&"usage_incomplete"));
    let usage =
        json!({"input": 900, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 901, "cost": {"total": 0}});
    let reported = summary(json!({"usage": usage}));
    assert!(!codes(&reported).contains(&"usage_incomplete"));
    assert_eq!(of(&reported, "usage").last().unwrap()["total_tokens"], 901);
    assert!(!codes(&summary(json!({"fromHook": true}))).contains(&"usage_incomplete"));
}

#[test]
fn calls_of_scripts_and_all_usage_of_pi_are_shown() {
    let resumed = fs::read_to_string(recorded("pi/resumed.jsonl")).unwrap();
    let last: Value = serde_json::from_str(resumed.trim_end().lines().last().unwrap()).unwrap();
    let usage = |total: u64| {
        json!({"input": total, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": total,
            "cost": {"total": 0.5}})
    };
    let call = json!({"type": "toolCall", "id": "c", "name": "codemode", "arguments": {"script": "s"}});
    // What a session with this result of a script, and this line after it, shows in addition.
    let with = |more: &Value, line: &Value| {
        let mut result = json!({"role": "toolResult", "toolCallId": "c", "toolName": "codemode",
            "content": [{"type": "text", "text": "done"}], "isError": false});
        result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let asks =
            json!({"role": "assistant", "content": [call], "model": "m", "usage": usage(10), "stopReason": "toolUse"});
        let system = json!({"role": "system", "content": "", "toolsAdded": [{"name": "read"}]});
        let mut entries = [
            json!({"type": "message", "message": system}),
            json!({"type": "message", "message": asks}),
            json!({"type": "message", "message": result}),
            line.clone(),
        ];
        let mut before = last["id"].clone();
        for (number, entry) in entries.iter_mut().enumerate() {
            entry["id"] = json!(format!("added{number}"));
            entry["timestamp"] = json!("2026-11-23T20:00:00.000Z");
            entry["parentId"] = std::mem::replace(&mut before, entry["id"].clone());
        }
        lines(imported((resumed.clone() + &text_of(&entries)).as_bytes(), &[]))
    };
    let none = json!({"type": "session_info", "name": "n"});
    let inner = json!([
        {"id": "c/1", "name": "bash", "arguments": {"command": "rm -rf build"}, "status": "ok"},
        {"id": "c/2", "name": "bash", "argumentsBytes": 9000, "status": "error", "error": "no"},
    ]);
    let complete = json!({"nestedCalls": {"calls": inner, "complete": true}, "usage": usage(400)});
    let trace = with(&complete, &json!({"type": "usage", "kind": "cache_warm", "model": "m", "usage": usage(5000)}));
    assert!(losses(&trace).is_empty(), "{trace:?}");
    let calls: Vec<Value> = of(&trace, "tool_call")
        .iter()
        .filter(|call| call["parent"] == "c")
        .map(|call| json!([call["call"], call["kind"], call["input"]]))
        .collect();
    assert_eq!(calls, [json!(["c/1", "execute", {"command": "rm -rf build"}]), json!(["c/2", "execute", null])]);
    let statuses: Vec<&Value> =
        of(&trace, "tool_result").into_iter().filter(|it| it["parent"] == "c").map(|it| &it["status"]).collect();
    assert_eq!(statuses, ["ok", "error"]);
    let used: Vec<u64> = of(&trace, "usage").iter().map(|it| it["total_tokens"].as_u64().unwrap()).collect();
    assert!(used.ends_with(&[10, 400, 5000]), "{used:?}");
    // A list that is not complete, a script without a list, and lines of unknown types.
    let part = json!({"nestedCalls": {"calls": inner, "complete": false}});
    assert_eq!(losses(&with(&part, &none)), [("unshown_action", "call")]);
    assert_eq!(losses(&with(&json!({}), &none)), [("hidden_sub_agent", "call")]);
    let trace = with(&complete, &json!({"type": "usage", "kind": "cache_warm"}));
    assert!(codes(&trace).contains(&"usage_incomplete"));
    let unknown = json!({"type": "context_answer", "content": "I deleted src"});
    assert_eq!(losses(&with(&complete, &unknown)), [("unknown_line", "line")]);
    let edit = json!({"type": "context_edit", "targetId": "x", "replacement": null});
    assert!(losses(&with(&complete, &edit)).is_empty());
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
        ("  known-by: line.a == 1\n  chain: {key: line.id, after: lin.id}\n  rules: [{ignore: true}]", "lin"),
        ("  known-by: line.a == 1\n  rules: [{when: true}]", "the rule has no effect"),
        ("  rules: [{ignore: true}]", "known-by"),
    ] {
        let ran = manifest(keys).exits(2);
        assert!(ran.err.contains("mine.yaml") && ran.err.contains(says), "{}", ran.err);
    }
}

/// The lines of a recorded session.
fn lines_of(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(recorded(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text_of(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_folder_of_each_call_is_the_one_before_the_call() {
    let at = |folder: &str, line: String| line.replace("\"cwd\":\"/w\"", &format!("\"cwd\":\"{folder}\""));
    let bash = |id: &str, command: &str| calls(id, "Bash", json!({"command": command}));
    // Two calls of one message: the first changes the folder in which the second runs.
    let session = asks("u", None, 0, "Look.")
        + &says("a1", "u", 1, "m1", bash("t1", "cd /x"), None, 1)
        + &says("a2", "a1", 1, "m1", bash("t2", "pytest"), Some("tool_use"), 3)
        + &at("/x", results("r1", "a1", 2, "t1", ""))
        + &at("/x", results("r2", "a2", 3, "t2", "OK"))
        + &at("/x", says("a3", "r2", 4, "m2", bash("t3", "cd /w"), Some("tool_use"), 5))
        + &results("r3", "a3", 5, "t3", "")
        + &says("a4", "r3", 6, "m3", text("Done."), Some("end_turn"), 5);
    let trace = lines(imported(session.as_bytes(), &[]));
    let folders: Vec<&str> = of(&trace, "tool_call").iter().map(|call| call["cwd"].as_str().unwrap()).collect();
    assert_eq!(folders, ["/w", "/x", "/x"]);
    assert_eq!(trace[0]["cwd"], "/w");
    // A resumed session of Codex goes on in another folder.
    let mut codex = lines_of("codex/resumed.jsonl");
    let last = codex.iter().rposition(|line| line["type"] == "turn_context").unwrap();
    codex[last]["payload"]["cwd"] = json!("/work/other");
    let trace = lines(imported(text_of(&codex).as_bytes(), &[]));
    let folders: Vec<&Value> = of(&trace, "tool_call").iter().map(|call| &call["cwd"]).collect();
    assert_eq!(
        (&trace[0]["cwd"], folders[0], folders[5]),
        (&json!("/work/calc"), &json!("/work/calc"), &json!("/work/other"))
    );
}

#[test]
fn a_result_of_codex_that_another_line_contradicts_is_no_success() {
    let passing = |codex: &mut Vec<Value>| {
        codex
            .iter()
            .position(|line| {
                line["payload"]["call_id"] == "call_scripted_3_0" && line["payload"].get("output").is_some()
            })
            .unwrap()
    };
    let ended = |status: &str, code: Value| json!({"timestamp": "2026-11-23T19:17:13.300Z", "type": "event_msg", "payload": {"type": "exec_command_end", "call_id": "call_scripted_3_0", "exit_code": code, "status": status}});
    let result = |codex: &[Value]| {
        let trace = lines(imported(text_of(codex).as_bytes(), &[]));
        let found = (*of(&trace, "tool_result").iter().find(|it| it["call"] == "call_scripted_3_0").unwrap()).clone();
        let told: Vec<&str> = codes(&trace).into_iter().filter(|code| *code != "synthetic_message").collect();
        (found["status"].as_str().unwrap().to_owned(), found["exit_code"].as_i64(), told.join(" "))
    };
    let told = ("error".to_owned(), None, "result_contradicts".to_owned());
    // Before the result, and after it; by its code, and by its status.
    for (after, event) in [
        (0, ended("completed", json!(1))),
        (1, ended("completed", json!(1))),
        (1, ended("failed", Value::Null)),
        (0, ended("failed", json!(0))),
    ] {
        let mut codex = lines_of("codex/resumed.jsonl");
        let at = passing(&mut codex);
        codex.insert(at + after, event.clone());
        assert_eq!(result(&codex), told, "{event}");
    }
    // The text says that it failed, and the program's own view that it did not.
    let mut codex = lines_of("codex/resumed.jsonl");
    let at = passing(&mut codex);
    let output = codex[at]["payload"]["output"].as_str().unwrap().replace("exited with code 0", "exited with code 1");
    codex[at]["payload"]["output"] = json!(output);
    assert_eq!(result(&codex), told);
    // One that is still running, or agrees, is no contradiction.
    for event in [ended("in_progress", Value::Null), ended("completed", json!(0))] {
        let mut codex = lines_of("codex/resumed.jsonl");
        let at = passing(&mut codex);
        codex.insert(at, event);
        assert_eq!(result(&codex), ("ok".to_owned(), Some(0), String::new()));
    }
}

#[test]
fn a_command_of_codex_that_goes_on_has_the_outcome_that_a_later_call_shows() {
    let line =
        |kind: &str, payload: Value| json!({"timestamp": "2026-11-23T19:17:13.400Z", "type": kind, "payload": payload});
    let call = |id: &str, name: &str, arguments: Value| {
        let arguments = arguments.to_string();
        line("response_item", json!({"type": "function_call", "name": name, "arguments": arguments, "call_id": id}))
    };
    let output = |id: &str, end: &str| {
        let output = format!("Chunk ID: x\nWall time: 9.0 seconds\n{end}\nOutput:\nof {id}");
        line("response_item", json!({"type": "function_call_output", "call_id": id, "output": output}))
    };
    let begin = vec![
        line("session_meta", json!({"id": "s", "cwd": "/w", "cli_version": "0.169.0"})),
        call("c1", "exec_command", json!({"cmd": "cargo test"})),
        output("c1", "Process running with session ID 5"),
    ];
    let poll = |id: &str, session: u32, end: &str| {
        vec![call(id, "write_stdin", json!({"session_id": session, "chars": ""})), output(id, end)]
    };
    let ended = |status: &str, code: u32| {
        let payload = json!({"type": "exec_command_end", "call_id": "c1", "exit_code": code, "status": status});
        vec![line("event_msg", payload)]
    };
    let running = "Process running with session ID 5";
    for (more, status, code) in [
        (poll("c2", 5, "Process exited with code 101"), "error", Some(101)),
        (poll("c2", 5, "Process exited with code 0"), "ok", Some(0)),
        ([poll("c2", 5, running), poll("c3", 5, "Process exited with code 101")].concat(), "error", Some(101)),
        (ended("failed", 101), "error", Some(101)),
        (ended("completed", 0), "ok", Some(0)),
        // Earlier versions write no status.
        (
            vec![line("event_msg", json!({"type": "exec_command_end", "call_id": "c1", "exit_code": 1}))],
            "error",
            Some(1),
        ),
        // The end of another command, and none.
        (poll("c2", 6, "Process exited with code 0"), "unfinished", None),
        (poll("c2", 5, running), "unfinished", None),
        (vec![], "unfinished", None),
    ] {
        let trace = lines(imported(text_of(&[begin.clone(), more.clone()].concat()).as_bytes(), &[]));
        let result = *of(&trace, "tool_result").iter().find(|it| it["call"] == "c1").unwrap();
        assert_eq!((result["status"].as_str(), result["exit_code"].as_i64()), (Some(status), code), "{more:?}");
        assert!(result["output"].as_str().unwrap().contains("of c1"), "{result}");
        // The call that asked has not failed.
        let failed = of(&trace, "tool_result").iter().filter(|it| it["status"] == "error").count();
        assert_eq!(failed, usize::from(status == "error"), "{more:?}");
        assert_eq!(codes(&trace), [""; 0], "{more:?}");
    }
}

#[test]
fn a_fork_of_codex_began_where_its_original_did() {
    let mut codex = lines_of("codex/resumed.jsonl");
    let mut fork = codex[0].clone();
    fork["payload"]["id"] = json!("fork");
    fork["payload"]["git"] = json!({"branch": "later", "commit_hash": "f".repeat(40)});
    codex.insert(0, fork.clone());
    // A resumed session may repeat its origin, after the user committed the work.
    codex.push(fork);
    let trace = lines(imported(text_of(&codex).as_bytes(), &[]));
    let session = &trace[0]["session"];
    assert_eq!(session["id"], "fork");
    assert!(session["commit"].as_str().unwrap().starts_with("e601f7ba") && session["branch"] == "main", "{session}");
}

#[test]
fn an_outcome_that_is_not_shown_is_unknown() {
    let mut pi = lines_of("pi/resumed.jsonl");
    for line in &mut pi {
        if line["message"]["role"] == "toolResult" {
            line["message"].as_object_mut().unwrap().remove("isError");
        }
    }
    let trace = lines(imported(text_of(&pi).as_bytes(), &[]));
    assert!(of(&trace, "tool_result").iter().all(|it| it["status"] == "unfinished"));
    assert!(codes(&trace).contains(&"mapping_failed"));
    let mut qwen = lines_of("qwen/full.jsonl");
    for line in &mut qwen {
        line.as_object_mut().unwrap().remove("toolCallResult");
    }
    let trace = lines(imported(text_of(&qwen).as_bytes(), &[]));
    assert!(of(&trace, "tool_result").iter().all(|it| it["status"] == "unfinished"));
}

#[test]
fn an_older_qwen_code_shows_by_the_text_for_its_model_alone_how_a_command_ended() {
    // As 0.15.10 records each command: as a success, with the output as the text that it displays.
    let imported_with = |end: &str| {
        let mut all = lines_of("qwen/full.jsonl");
        for line in &mut all {
            line["version"] = json!("0.15.10");
            let response = line.pointer_mut("/message/parts/0/functionResponse");
            let Some(response) = response.filter(|it| it["name"] == "run_shell_command") else { continue };
            let text = format!("Command: make\nDirectory: (root)\nOutput: 42\nError: (none)\n{end}");
            response["response"] = json!({"output": text});
            line["toolCallResult"] = json!({"status": "success", "resultDisplay": "42"});
        }
        lines(imported(text_of(&all).as_bytes(), &[]))
    };
    let outcomes = |trace: &[Value]| -> Vec<(String, Option<i64>)> {
        let commands = of(trace, "tool_call").into_iter().filter(|call| call["kind"] == "execute");
        let result = |call: &Value| *of(trace, "tool_result").iter().find(|it| it["call"] == call["call"]).unwrap();
        let outcome = |it: &Value| (it["status"].as_str().unwrap().to_owned(), it["exit_code"].as_i64());
        commands.map(|call| outcome(result(call))).collect()
    };
    for (end, status, code) in [
        ("Exit Code: 0\nSignal: 0\nProcess Group PGID: 9", "ok", Some(0)),
        ("Exit Code: 0\nSignal: (none)\n\nNote: this foreground command ran for 75s.", "ok", Some(0)),
        ("Exit Code: 1\nSignal: 0\nProcess Group PGID: 9", "error", Some(1)),
        ("Exit Code: 0\nSignal: 9\nProcess Group PGID: 9", "unfinished", None),
        ("[truncated]", "unfinished", None),
    ] {
        let trace = imported_with(end);
        assert!(outcomes(&trace).iter().all(|it| *it == (status.to_owned(), code)), "{end}: {:?}", outcomes(&trace));
    }
    let trace = imported_with("[truncated]");
    let told = of(&trace, "notice").iter().any(|it| {
        it["code"] == "mapping_failed" && it["text"].as_str().unwrap().contains("does not show whether the call failed")
    });
    assert!(told);
}

#[test]
fn a_repeated_record_counts_once() {
    for name in ["gemini/full.jsonl", "copilot/full.jsonl"] {
        let all = lines_of(name);
        let once = lines(import(name, &[]));
        for repeated in
            [[all.clone(), all.clone()].concat(), all.iter().flat_map(|line| [line.clone(), line.clone()]).collect()]
        {
            let twice = lines(imported(text_of(&repeated).as_bytes(), &[]));
            for kind in ["message", "tool_call", "tool_result", "usage", "thought"] {
                assert_eq!(of(&twice, kind).len(), of(&once, kind).len(), "{name}: {kind}");
            }
        }
    }
    // A message whose tokens come when it is written again.
    let mut gemini = lines_of("gemini/full.jsonl");
    let first = gemini.iter().position(|line| line["type"] == "gemini").unwrap();
    gemini[first].as_object_mut().unwrap().remove("tokens");
    let trace = lines(imported(text_of(&gemini).as_bytes(), &[]));
    assert_eq!(of(&trace, "usage").len(), 6 - 1);
}

#[test]
fn what_the_user_of_gemini_took_back_is_left_out() {
    let mut gemini = lines_of("gemini/full.jsonl");
    let prompt = gemini.iter().find(|line| line["type"] == "user" && line["content"][0]["text"].is_string()).unwrap();
    let prompt = prompt.clone();
    gemini.push(json!({"$rewindTo": prompt["id"]}));
    let mut other = prompt;
    other["id"] = json!("other");
    other["content"] = json!([{"text": "Something else."}]);
    gemini.push(other);
    let trace = lines(imported(text_of(&gemini).as_bytes(), &[]));
    assert_eq!(codes(&trace), ["rewound"]);
    assert_eq!((of(&trace, "message").len(), of(&trace, "tool_call").len()), (1, 0));
    assert_eq!(of(&trace, "message")[0]["text"], "Something else.");
}

#[test]
fn news_of_the_program_after_the_last_text_of_gemini_ends_the_session() {
    let all = lines_of("gemini/full.jsonl");
    let news = |kind: &str, content: &str| json!({"id": "e", "timestamp": "2026-11-23T23:00:00.000Z", "type": kind, "content": content});
    let stop = |all: &[Value]| lines(imported(text_of(all).as_bytes(), &[])).pop().unwrap();
    let with = |more: &[Value]| [&all[..], more].concat();
    let failed = stop(&with(&[news("error", "[API Error: 500 internal]")]));
    assert_eq!((&failed["reason"], &failed["category"]), (&json!("error"), &json!("provider")), "{failed}");
    let cancelled = stop(&with(&[news("info", "Request cancelled.")]));
    assert_eq!(cancelled["reason"], "cancelled");
    assert_eq!(stop(&with(&[news("info", "Update available.")]))["reason"], "end_turn");
    for limit in [
        "A potential loop was detected. This can happen due to repetitive tool calls or other model behavior.",
        "The session has reached the maximum number of turns: 3. Please update this limit in your setting.json file.",
    ] {
        let limited = stop(&with(&[news("info", limit)]));
        assert_eq!((&limited["reason"], &limited["detail"]), (&json!("max_turns"), &json!(limit)));
    }
    // The model was asked again and answered.
    let mut answer = all.iter().rfind(|line| line["type"] == "gemini").unwrap().clone();
    answer["id"] = json!("again");
    assert_eq!(stop(&with(&[news("error", "[API Error: 500 internal]"), answer]))["reason"], "end_turn");
    // A prompt without any answer.
    let prompt = all.iter().position(|line| line["type"] == "gemini").unwrap();
    let limited = stop(&[&all[..prompt], &[news("error", "[API Error: 429 quota exceeded]")]].concat());
    assert_eq!((&limited["reason"], &limited["category"]), (&json!("error"), &json!("rate_limit")), "{limited}");
    assert_eq!(limited["detail"], "[API Error: 429 quota exceeded]");
}

#[test]
fn a_call_that_only_a_replaced_conversation_shows_is_lost() {
    let with = |name: &str, line: Value| {
        let mut all = lines_of(name);
        all.push(line);
        lines(imported(text_of(&all).as_bytes(), &[]))
    };
    let all = lines_of("gemini/full.jsonl");
    let known = all.iter().rfind(|line| line["toolCalls"].is_array()).unwrap();
    let mut unknown = known.clone();
    unknown["toolCalls"][0]["id"] = json!("other");
    for (message, lost) in [(known, &[][..]), (&unknown, &[("unmapped_line", "call")])] {
        let trace =
            with("gemini/full.jsonl", json!({"$set": {"messages": [{"type": "user", "content": "Go on."}, message]}}));
        assert_eq!(losses(&trace), lost);
        assert!(
            codes(&trace).contains(&"session_replaced") && codes(&trace).contains(&"usage_incomplete"),
            "{trace:?}"
        );
    }
    for (id, lost) in [("call_scripted_0_0", &[][..]), ("other", &[("unmapped_line", "call")])] {
        let call =
            json!({"type": "function_call", "name": "exec_command", "arguments": "{\"cmd\":\"rm x\"}", "call_id": id});
        let payload = json!({"message": "summary", "replacement_history": [call]});
        let line = json!({"timestamp": "2026-11-23T23:00:00.000Z", "type": "compacted", "payload": payload});
        assert_eq!(losses(&with("codex/resumed.jsonl", line)), lost, "{id}");
    }
}

#[test]
fn the_summary_of_a_compaction_of_opencode_counts_with_its_usage_alone() {
    let text = fs::read_to_string(recorded("opencode/resumed.json")).unwrap();
    let whole = lines(import("opencode/resumed.json", &[]));
    let with = |is_counted: bool| {
        let mut document: Value = serde_json::from_str(&text).unwrap();
        let messages = document["messages"].as_array_mut().unwrap();
        let mut summary = messages.last().unwrap().clone();
        summary["info"]["id"] = json!("summary");
        summary["info"]["summary"] = json!(true);
        summary["parts"].as_array_mut().unwrap().retain(|part| is_counted || part["type"] != "step-finish");
        messages.push(summary);
        lines(imported(document.to_string().as_bytes(), &[]))
    };
    let counted = with(true);
    assert_eq!(of(&counted, "usage").len(), of(&whole, "usage").len() + 1);
    assert_eq!(of(&counted, "message").len(), of(&whole, "message").len());
    assert_eq!((codes(&counted), &counted.last().unwrap()["reason"]), (vec!["compact_summary"], &json!("end_turn")));
    assert_eq!(codes(&with(false)), ["compact_summary", "usage_incomplete"]);
}

#[test]
fn the_single_document_of_older_versions_of_gemini_is_read() {
    let all = lines_of("gemini/full.jsonl");
    let mut document = all[0].clone();
    let mut messages: Vec<Value> = Vec::new();
    for line in all.into_iter().filter(|line| line["type"].is_string()) {
        messages.retain(|known| known["id"] != line["id"]);
        messages.push(line);
    }
    document["messages"] = json!(messages);
    let expected = lines(import("gemini/full.jsonl", &[]));
    for text in [document.to_string(), format!("{document:#}\n")] {
        let trace = lines(imported(text.as_bytes(), &[]));
        assert_eq!(trace[1..].len(), expected[1..].len());
        assert_eq!(trace[0]["session"], expected[0]["session"]);
        let said = |trace: &[Value]| of(trace, "message").iter().map(|it| it["text"].clone()).collect::<Vec<_>>();
        assert_eq!(said(&trace), said(&expected));
    }
    // Some programs begin a file with a byte order mark.
    let marked = imported(format!("\u{feff}{document}").as_bytes(), &[]);
    assert_eq!(lines(marked)[1..], lines(imported(document.to_string().as_bytes(), &[]))[1..]);
    // A document that is cut is a lost line, and nothing else is made of it.
    let text = document.to_string();
    let ran = imported(&text.as_bytes()[..text.len() - 3], &[]);
    ran.exits(2).says("is unknown");
}

#[test]
fn the_database_of_opencode_is_refused_with_the_command_that_exports_it() {
    imported(b"SQLite format 3\0and so on", &[]).exits(2).says("opencode export");
    let ran = imported(b"SQLite format 3\0and so on", &["--harness", "opencode-stream"]);
    ran.exits(2).says("opencode export");
}

#[test]
fn what_the_user_of_opencode_took_back_is_left_out() {
    let text = fs::read_to_string(recorded("opencode/resumed.json")).unwrap();
    let mut document: Value = serde_json::from_str(&text).unwrap();
    let second =
        document["messages"].as_array().unwrap().iter().filter(|it| it["info"]["role"] == "user").nth(1).unwrap();
    document["info"]["revert"] = json!({"messageID": second["info"]["id"]});
    let trace = lines(imported(document.to_string().as_bytes(), &[]));
    assert_eq!(of(&trace, "message").iter().filter(|it| it["role"] == "user").count(), 1);
    assert_eq!((codes(&trace), trace.last().unwrap()["reason"].as_str()), (vec!["rewound"], Some("end_turn")));
    // Texts that the program adds are not the user's.
    document["messages"][0]["parts"][0]["synthetic"] = json!(true);
    let trace = lines(imported(document.to_string().as_bytes(), &[]));
    assert_eq!(of(&trace, "message").iter().filter(|it| it["role"] == "user").count(), 0);
}

#[test]
fn figures_of_usage_that_are_no_counts_are_absent_with_a_notice() {
    for (name, pointer, code) in [
        ("pi/resumed.jsonl", "/message/usage/input", "mapping_failed"),
        ("pi/resumed.jsonl", "/message/usage/cost/total", "mapping_failed"),
        ("codex/resumed.jsonl", "/payload/info/total_token_usage/output_tokens", "mapping_failed"),
        ("gemini/full.jsonl", "/tokens/input", "mapping_failed"),
        ("qwen/full.jsonl", "/usageMetadata/promptTokenCount", "mapping_failed"),
        ("copilot/full.jsonl", "/data/usage/inputTokens", "mapping_failed"),
        ("claude-code/resumed.jsonl", "/message/usage/output_tokens", "usage_invalid"),
        ("claude-code/resumed.jsonl", "/totalCostUSD", "usage_invalid"),
    ] {
        for figure in [json!(-5), json!("many"), json!([1])] {
            let mut all = lines_of(name);
            let mut changed = 0;
            for line in &mut all {
                if let Some(place) = line.pointer_mut(pointer) {
                    *place = figure.clone();
                    changed += 1;
                }
            }
            assert!(changed > 0, "{name}{pointer}");
            let trace = lines(imported(text_of(&all).as_bytes(), &[]));
            // A negative cost of Pi is a cost that it does not know.
            let is_unknown_cost = pointer.ends_with("cost/total") && figure.is_number();
            assert_eq!(
                codes(&trace).contains(&code),
                !is_unknown_cost,
                "{name}{pointer} {figure}: {:?}",
                codes(&trace)
            );
        }
    }
}

#[test]
fn a_line_that_may_hold_a_text_or_a_call_is_lost_by_no_manifest() {
    let lost = |trace: &[Value]| of(trace, "notice").iter().any(|notice| notice["lost"] == "line");
    let with = |name: &str, line: Value| {
        let mut all = lines_of(name);
        all.insert(all.len() - 1, line);
        lines(imported(text_of(&all).as_bytes(), &[]))
    };
    let payload =
        |payload: Value| json!({"timestamp": "2026-11-23T19:17:13.400Z", "type": "response_item", "payload": payload});
    let text = json!([{"type": "output_text", "text": "I deleted src"}]);
    for item in [
        json!({"type": "mcp_call", "name": "rm", "arguments": "{}"}),
        json!({"type": "message", "role": "model", "content": text}),
        json!({"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I deleted src"}]}),
    ] {
        assert!(lost(&with("codex/resumed.jsonl", payload(item.clone()))), "{item}");
    }
    let developer = payload(json!({"type": "message", "role": "developer", "content": text}));
    assert!(!lost(&with("codex/resumed.jsonl", developer)));
    let last = |name: &str| lines_of(name).pop().unwrap();
    let mut pi = last("pi/resumed.jsonl");
    pi["parentId"] = pi["id"].clone();
    pi["id"] = json!("added");
    pi["type"] = json!("message");
    pi["message"] = json!({"role": "model", "content": "I deleted src"});
    let text = text_of(&lines_of("pi/resumed.jsonl")) + &text_of(&[pi]);
    assert!(lost(&lines(imported(text.as_bytes(), &[]))));
    let mut qwen = last("qwen/full.jsonl");
    for (subtype, is_lost) in [("said", true), ("ui_telemetry", false)] {
        qwen["parentUuid"] = last("qwen/full.jsonl")["uuid"].clone();
        qwen["uuid"] = json!("added");
        qwen["type"] = json!("system");
        qwen["subtype"] = json!(subtype);
        let text = text_of(&lines_of("qwen/full.jsonl")) + &text_of(std::slice::from_ref(&qwen));
        assert_eq!(lost(&lines(imported(text.as_bytes(), &[]))), is_lost, "{subtype}");
    }
    for (kind, is_lost) in [("subagent.message", true), ("session.said", true), ("session.idle", false)] {
        let mut line = last("copilot/full.jsonl");
        line["type"] = json!(kind);
        line["id"] = json!("added");
        line["data"] = json!({"content": "I deleted src"});
        assert_eq!(lost(&with("copilot/full.jsonl", line)), is_lost, "{kind}");
    }
}

#[test]
fn an_output_that_quotes_a_rejection_is_none() {
    let statuses = |trace: &[Value]| -> Vec<String> {
        of(trace, "tool_result").iter().map(|result| result["status"].as_str().unwrap().to_owned()).collect()
    };
    let codex = |output: &str| {
        let mut all = lines_of("codex/resumed.jsonl");
        all.retain(|line| line["type"] != "event_msg");
        let at = all.iter().position(|line| line["payload"].get("output").is_some()).unwrap();
        all[at]["payload"]["output"] = json!(output);
        let trace = lines(imported(text_of(&all).as_bytes(), &[]));
        let call = &all[at]["payload"]["call_id"];
        let found = (*of(&trace, "tool_result").iter().find(|it| it["call"] == *call).unwrap()).clone();
        found["status"].as_str().unwrap().to_owned()
    };
    let head = "Chunk ID: 30e0d1\nWall time: 0.0000 seconds\nProcess exited with code 0\nOutput:\n";
    assert_eq!(codex(&format!("{head}exec command rejected by user")), "ok");
    // The output of a command that ran has a head. Another text is the program's, and no rule knows it.
    for (output, status) in [
        ("exec command rejected by user", "denied"),
        ("rejected by user", "denied"),
        ("aborted by user after 5.2s", "cancelled"),
        ("Wall time: 1.0 seconds\naborted by user", "cancelled"),
        ("execution error: No such file or directory (os error 2)", "error"),
        ("rejected by user hooks: 2", "unfinished"),
        ("aborted by user agent\nthe rest of a log", "unfinished"),
    ] {
        assert_eq!(codex(output), status, "{output}");
    }
    let opencode = |error: &str| {
        let text = fs::read_to_string(recorded("opencode/resumed.json")).unwrap();
        let mut session: Value = serde_json::from_str(&text).unwrap();
        let parts =
            session["messages"].as_array_mut().unwrap().iter_mut().flat_map(|it| it["parts"].as_array_mut().unwrap());
        let state = &mut parts.into_iter().find(|part| part["type"] == "tool").unwrap()["state"];
        state["status"] = json!("error");
        state["error"] = json!(error);
        statuses(&lines(imported(session.to_string().as_bytes(), &[]))).swap_remove(0)
    };
    let own = "The user rejected permission to use this specific tool call";
    assert_eq!(opencode(&format!("{own}.")), "denied");
    assert_eq!(opencode(&format!("no file {own}.")), "error");
}

/// A line of a session file of Codex.
fn of_codex(kind: &str, payload: Value) -> Value {
    json!({"timestamp": "2026-11-23T19:17:13.400Z", "type": kind, "payload": payload})
}

/// The trace of a session of Codex with these lines after its first.
fn codex_session(more: &[Value]) -> Vec<Value> {
    let mut all = vec![of_codex("session_meta", json!({"id": "s", "cwd": "/w", "cli_version": "0.169.0"}))];
    all.extend_from_slice(more);
    lines(imported(text_of(&all).as_bytes(), &[]))
}

/// A message of the user in a session file of Codex.
fn by_user_of_codex(content: Value) -> Value {
    of_codex("response_item", json!({"type": "message", "role": "user", "content": content}))
}

/// A prompt, an answer and the end of a turn in a session file of Codex.
fn turn_of_codex(prompt: &str, answer: &str) -> [Value; 3] {
    let answer = json!([{"type": "output_text", "text": answer}]);
    [
        by_user_of_codex(json!([{"type": "input_text", "text": prompt}])),
        of_codex("response_item", json!({"type": "message", "role": "assistant", "content": answer})),
        of_codex("event_msg", json!({"type": "task_complete", "turn_id": "t"})),
    ]
}

/// The texts of the user's messages.
fn prompts(trace: &[Value]) -> Vec<&str> {
    let by_user = of(trace, "message").into_iter().filter(|message| message["role"] == "user");
    by_user.map(|message| message["text"].as_str().unwrap()).collect()
}

#[test]
fn what_codex_writes_in_the_users_name_is_no_prompt() {
    let after_a_turn = |text: &str| {
        let last = by_user_of_codex(json!([{"type": "input_text", "text": text}]));
        codex_session(&[turn_of_codex("Fix it.", "Fixed.").as_slice(), &[last]].concat())
    };
    let goal = "<codex_internal_context source=\"goal\">\nGo on.\n</codex_internal_context>";
    let hook = "<hook_prompt hook_run_id=\"stop:0\">Run the linter.</hook_prompt>";
    for text in [
        goal,
        hook,
        "<goal_context>\nGo on.\n</goal_context>",
        "<extension_context>\na\n</extension_context>",
        "<recommended_plugins>\na\n</recommended_plugins>",
        "<external_context source=\"ide\" kind=\"untrusted\">\na\n</external_context>",
        "<external_ide>a\nb</external_ide>",
        "<user_action>\n  <context>User initiated a review task, but was interrupted.</context>\n</user_action>\n",
        "Warning: The maximum number of unified exec processes you can keep open is 60 and you have 61.",
        "Warning: Your account was flagged for potentially high-risk cyber activity.",
        "Warning: apply_patch was requested via shell. Use the apply_patch tool instead of exec_command.",
    ] {
        let trace = after_a_turn(text);
        assert_eq!(
            (prompts(&trace), &trace.last().unwrap()["reason"]),
            (vec!["Fix it."], &json!("end_turn")),
            "{text}"
        );
    }
    for text in ["<external_id> is wrong", "<hook_prompts> fail", "Warning: apply_patch was requested via x. Why?"] {
        assert_eq!(prompts(&after_a_turn(text)), ["Fix it.", text]);
    }
    // Newer versions name the kind of each part.
    for (kind, expected) in [("hooks.additional_context", vec![]), ("user.text", vec!["a"]), ("unknown", vec!["a"])] {
        let mut message = by_user_of_codex(json!([{"type": "input_text", "text": "a"}]));
        message["payload"]["internal_chat_message_metadata_passthrough"] = json!({"content_item_kinds": [kind]});
        assert_eq!(prompts(&codex_session(&[message])), expected, "{kind}");
    }
    // The program began the second turn, whose answer is the last one.
    let turns = [turn_of_codex("Fix it.", "Fixed."), turn_of_codex(goal, "Reached.")].concat();
    assert_eq!(codex_session(&turns).last().unwrap()["output"], "Reached.");
    // The turn went on after the hook, and has no answer.
    let [prompt, answer, _] = turn_of_codex("Fix it.", "Fixed.");
    let [asked, ..] = turn_of_codex(hook, "");
    assert_eq!(codex_session(&[prompt, answer, asked]).last().unwrap()["reason"], "crashed");
}

#[test]
fn a_turn_of_codex_that_failed_did_not_complete() {
    let failed = |message: &str, info: Value| {
        let [prompt, _, mut end] = turn_of_codex("Fix it.", "");
        end["payload"]["error"] = json!({"message": message, "codex_error_info": info});
        [prompt, end]
    };
    for (message, info, category) in [
        ("{\"error\": {\"message\": \"The model's quota is used up.\"}}", json!("other"), "provider"),
        ("No.", json!("usage_limit_exceeded"), "rate_limit"),
        ("No.", json!("unauthorized"), "auth"),
        ("No.", json!({"response_too_many_failed_attempts": {"http_status_code": 503}}), "provider"),
        ("No.", json!({"http_connection_failed": {"http_status_code": null}}), "protocol"),
        ("No.", Value::Null, "protocol"),
    ] {
        let trace = codex_session(&failed(message, info.clone()));
        let stop = trace.last().unwrap();
        let told = json!([stop["reason"], stop["category"], stop["detail"]]);
        assert_eq!((told, codes(&trace)), (json!(["error", category, message]), vec!["agent_error"]), "{info}");
    }
    let turns = [failed("No.", Value::Null).as_slice(), &turn_of_codex("Try again.", "Fixed.")].concat();
    assert_eq!(codex_session(&turns).last().unwrap()["reason"], "end_turn");
}

#[test]
fn a_review_of_codex_hides_calls_and_usage() {
    let event = |kind: &str| of_codex("event_msg", json!({"type": kind}));
    let item = |item: Value| of_codex("event_msg", json!({"type": "item_completed", "item": item}));
    let usage = json!({"input_tokens": 100, "cached_input_tokens": 10, "cache_write_input_tokens": 0, "output_tokens": 20,
        "reasoning_output_tokens": 5});
    let usage = of_codex("event_msg", json!({"type": "token_count", "info": {"total_token_usage": usage}}));
    let [result, answer, end] = turn_of_codex(
        "<user_action>\n  <context>User initiated a review task. Here's the full review output.</context>\n</user_action>\n",
        "Looks good",
    );
    let command = item(json!({"type": "CommandExecution", "id": "r1", "command": ["/bin/bash", "-lc", "git diff"],
        "cwd": "file:///w", "status": "completed", "aggregated_output": "", "exit_code": 0}));
    for (begin, finish) in [
        (event("entered_review_mode"), event("exited_review_mode")),
        (item(json!({"type": "EnteredReviewMode", "id": "1"})), item(json!({"type": "ExitedReviewMode", "id": "2"}))),
    ] {
        let review = [begin, command.clone(), result.clone(), finish.clone(), answer.clone(), end.clone()];
        let turns = [&review[..], std::slice::from_ref(&usage), &turn_of_codex("Now fix it.", "Done.")].concat();
        let trace = codex_session(&turns);
        assert_eq!(prompts(&trace), ["Now fix it."]);
        assert_eq!(codes(&trace), ["usage_incomplete", "hidden_sub_agent", "slash_command"]);
        assert_eq!(losses(&trace), [("hidden_sub_agent", "call")]);
        assert_eq!(of(&trace, "tool_call")[0]["input"], json!({"cmd": "git diff"}));
        // No grader passes because a call or tokens of the reviewer are absent.
        let project = Project::new();
        let all = [&[of_codex("session_meta", json!({"id": "s", "cwd": "/w"}))][..], &turns].concat();
        project.write("session.jsonl", &text_of(&all));
        project.write(
            "case.yaml",
            "prompt: Now fix it.\ngraders:\n  - tool-calls: {forbid: [{kind: execute, command: rm}]}\n  - budget: {tokens: 200}\n",
        );
        project.evals(&["import", "session.jsonl", "-o", "trace.jsonl"]).exits(0);
        let graded = project.evals(&["grade", "trace.jsonl", "--case", "case.yaml", "--format", "json"]).exits(3);
        let graded: Value = serde_json::from_str(&graded.out).unwrap();
        let grades = graded["results"][0]["grades"].as_array().unwrap();
        assert!(grades.len() == 2 && grades.iter().all(|grade| grade["outcome"] == "ungraded"), "{graded:#}");
        // The file may begin within the review.
        assert_eq!(losses(&codex_session(&[finish])), [("hidden_sub_agent", "call")]);
    }
}

#[test]
fn images_of_the_user_in_codex_are_attachments() {
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let image = |url: &str| json!({"type": "input_image", "image_url": url, "detail": "original"});
    let told = |content: Value| {
        let trace = codex_session(&[by_user_of_codex(content)]);
        assert_eq!(losses(&trace), [("", ""); 0]);
        let message = of(&trace, "message")[0].clone();
        (message["text"].as_str().unwrap().to_owned(), message["attachments"].clone())
    };
    let png = json!({"kind": "image", "media_type": "image/png", "bytes": 4});
    let data = image("data:image/png;base64,AAAA");
    let tag = text("<image name=[Image #1] path=\"/w/a.png\">");
    assert_eq!(
        told(json!([tag, data, text("</image>"), text("Make it like this.")])),
        ("Make it like this.".to_owned(), json!([png]))
    );
    assert_eq!(
        told(json!([text("And this?"), image("https://example.org/b.png")])),
        ("And this?".to_owned(), json!([{"kind": "image", "uri": "https://example.org/b.png"}]))
    );
    assert_eq!(told(json!([data])), (String::new(), json!([png])));
    assert_eq!(
        told(json!([text("What is <image>?"), text("</image>")])),
        ("What is <image>?\n\n</image>".to_owned(), Value::Null)
    );
    let unknown = json!([text("Look."), {"type": "input_hologram", "url": "x"}]);
    assert_eq!(losses(&codex_session(&[by_user_of_codex(unknown)])), [("unknown_block", "text")]);
    // The draft of a case says so.
    let project = Project::new();
    let session = of_codex("session_meta", json!({"id": "s", "cwd": "/w", "cli_version": "0.169.0"}));
    let [_, answer, end] = turn_of_codex("", "A cat.");
    let prompt = by_user_of_codex(json!([tag, data, text("</image>"), text("What is this?")]));
    project.write("session.jsonl", &text_of(&[session, prompt, answer, end]));
    let drafted = project.evals(&["case", "from-session", "session.jsonl", "-o", "cases"]).exits(0);
    drafted.says("1 prompt had attachments, which the session does not hold.");
}

#[test]
fn the_summary_of_a_compaction_of_codex_is_no_answer() {
    let text = |role: &str, text: &str| {
        let content = json!([{"type": "output_text", "text": text}]);
        of_codex("response_item", json!({"type": "message", "role": role, "content": content}))
    };
    let call = json!({"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "Wall time: 1.0 seconds\nOutput:\n"});
    let mut summary = text("assistant", "I did a.");
    summary["metadata"] = json!({"compaction_output": true});
    let compacted = of_codex("compacted", json!({"message": "Here is the summary: I did a."}));
    let mut all = vec![text("user", "Do it."), of_codex("response_item", call), of_codex("response_item", output)];
    all.extend([summary, compacted]);
    let said = |trace: &[Value]| -> Vec<String> {
        let by_agent = of(trace, "message").into_iter().filter(|message| message["role"] == "agent");
        by_agent.map(|message| message["text"].as_str().unwrap().to_owned()).collect()
    };
    let cut = codex_session(&all);
    assert_eq!((said(&cut), &cut.last().unwrap()["reason"]), (vec![], &json!("crashed")));
    assert_eq!(codes(&cut), ["compact_summary", "compact_summary"]);
    all.push(text("assistant", "42"));
    let whole = codex_session(&all);
    assert_eq!((said(&whole), &whole.last().unwrap()["output"]), (vec!["42".to_owned()], &json!("42")));
}

#[test]
fn a_script_of_codex_shows_how_it_ended_and_what_it_called() {
    let script = |text: &str, output: &[&str], items: &[Value]| {
        let call = json!({"type": "custom_tool_call", "name": "exec", "call_id": "c", "input": text});
        let blocks: Vec<Value> = output.iter().map(|text| json!({"type": "input_text", "text": text})).collect();
        let output = json!({"type": "custom_tool_call_output", "call_id": "c", "output": blocks});
        let ended = |item: &Value| of_codex("event_msg", json!({"type": "item_completed", "item": item}));
        let mut all = vec![of_codex("response_item", call)];
        all.extend(items.iter().map(ended));
        all.push(of_codex("response_item", output));
        codex_session(&all)
    };
    let told = |trace: &[Value]| -> Vec<Value> {
        let calls = of(trace, "tool_call");
        let of_result = |result: &Value| {
            let call = calls.iter().find(|call| call["call"] == result["call"]).unwrap();
            json!([call["name"], call["kind"], call["parent"], result["status"], result["exit_code"]])
        };
        of(trace, "tool_result").into_iter().map(of_result).collect()
    };
    let done = "Script completed\nWall time 0.3 seconds\nOutput:\n";
    let failed = "Script failed\nWall time 0.3 seconds\nOutput:\n";
    let command = json!({"type": "CommandExecution", "id": "exec-1", "command": ["/bin/bash", "-lc", "pytest -q"],
        "cwd": "file:///w", "status": "failed", "aggregated_output": "no", "exit_code": 1});
    let change = json!({"type": "FileChange", "id": "exec-2", "status": "completed", "stdout": "M secret/z",
        "changes": {"/w/a": {"type": "update", "unified_diff": "", "move_path": "/w/secret/z"}}});
    let ran = script("await tools.exec_command({cmd: \"pytest -q\"})", &[failed, "Script error:\nboom"], &[command]);
    let inner = json!(["exec_command", "execute", "c", "error", 1]);
    assert_eq!(told(&ran), [inner, json!(["exec", "other", null, "error", null])]);
    assert_eq!(of(&ran, "tool_call")[1]["input"], json!({"cmd": "pytest -q"}));
    assert!(losses(&ran).is_empty(), "{ran:?}");
    let moved = script("await tools.apply_patch(\"x\")", &[done, "ok"], &[change]);
    let inner = json!(["apply_patch", "edit", "c", "ok", null]);
    assert_eq!(told(&moved), [inner, json!(["exec", "other", null, "ok", null])]);
    assert_eq!(of(&moved, "tool_call")[1]["locations"], json!([{"path": "/w/a"}, {"path": "/w/secret/z"}]));
    // A command that the program refused is shown by the error alone.
    let refused = r#"exec_command failed: CreateProcess { message: "Rejected(\"`/bin/bash -lc 'rm -rf keep'` rejected: not permitted\")" }"#;
    let refused = script("await tools.exec_command(x)", &[failed, &format!("Script error:\n{refused}")], &[]);
    let inner = json!(["exec_command", "execute", "c", "denied", null]);
    assert_eq!(told(&refused), [inner, json!(["exec", "other", null, "error", null])]);
    assert_eq!(of(&refused, "tool_call")[1]["input"], json!({"cmd": "/bin/bash -lc 'rm -rf keep'"}));
    // Calls of other tools are in no line, and another sentence is no success.
    assert_eq!(losses(&script("await tools.view_image({path: \"a\"})", &[done], &[])), [("unshown_action", "call")]);
    let spawned = script("await tools.spawn_agent({message: \"x\"})", &[done], &[]);
    assert_eq!(codes(&spawned), ["unshown_action", "usage_incomplete"]);
    let other = json!({"type": "WebSearch", "id": "exec-3", "query": "q"});
    assert_eq!(losses(&script("text(1)", &[done], &[other])), [("unshown_action", "call")]);
    let unknown = script("text(1)", &["Script vanished\n"], &[]);
    assert_eq!(told(&unknown), [json!(["exec", "other", null, "unfinished", null])]);
    // A list of tools is no action.
    let tools = json!({"type": "additional_tools", "role": "developer", "tools": [{"type": "custom", "name": "exec"}]});
    assert_eq!(codes(&codex_session(&[of_codex("response_item", tools)])), [""; 0]);
}

#[test]
fn a_sentence_of_codex_in_place_of_a_result_is_no_success() {
    let status = |name: &str, output: Value| {
        let call = json!({"type": "function_call", "name": name, "arguments": "{}", "call_id": "c"});
        let output = json!({"type": "function_call_output", "call_id": "c", "output": output});
        let trace = codex_session(&[of_codex("response_item", call), of_codex("response_item", output)]);
        of(&trace, "tool_result")[0]["status"].as_str().unwrap().to_owned()
    };
    for (name, output, expected) in [
        ("view_image", json!("unable to locate image at `/w/a.png`: No such file or directory (os error 2)"), "error"),
        ("view_image", json!("a sentence of a later version"), "unfinished"),
        ("view_image", json!([{"type": "input_image", "image_url": "data:image/png;base64,AA"}]), "ok"),
        ("view_image", json!("attached local image path"), "ok"),
        ("spawn_agent", json!("collab spawn failed: agent thread limit reached"), "error"),
        ("spawn_agent", json!("{\"task_name\":\"/root/kid\"}"), "ok"),
        ("close_agent", json!("agent with id 7 not found"), "error"),
        ("send_message", json!(""), "ok"),
        ("update_plan", json!("Plan updated"), "ok"),
        ("mcp__a__b", json!("unable to locate image at `x`"), "ok"),
    ] {
        assert_eq!(status(name, output.clone()), expected, "{name} {output}");
    }
}

#[test]
fn a_sub_agent_of_copilot_neither_prompts_nor_answers_for_the_main_agent() {
    let line = |n: u32, kind: &str, agent: Value, data: Value| {
        let time = format!("2026-11-29T10:00:{n:02}.000Z");
        json!({"type": kind, "id": format!("l{n}"), "timestamp": time, "agentId": agent, "data": data})
    };
    let said =
        |text: &str, calls: Value| json!({"messageId": text, "content": text, "model": "big", "toolRequests": calls});
    let task = json!([{"toolCallId": "t", "name": "task", "arguments": {"prompt": "look"}}]);
    let result = json!({"toolCallId": "t", "success": true, "result": {"content": "I looked."}});
    let all = [
        line(0, "session.start", Value::Null, json!({"sessionId": "s", "selectedModel": "big"})),
        line(1, "user.message", Value::Null, json!({"content": "Do it."})),
        line(2, "assistant.message", Value::Null, said("", task)),
        line(3, "subagent.started", json!("k"), json!({"toolCallId": "t", "agentName": "kid"})),
        line(4, "session.model_change", json!("k"), json!({"newModel": "small"})),
        line(5, "user.message", json!("k"), json!({"content": "look"})),
        line(6, "assistant.message", json!("k"), said("I looked.", json!([]))),
        line(7, "tool.execution_complete", Value::Null, result),
        line(8, "assistant.message", Value::Null, said("Done.", json!([]))),
    ];
    let content = |lines: &[Value]| lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
    let whole = lines(imported(content(&all).as_bytes(), &[]));
    assert_eq!(whole[0]["model"]["effective"], "big");
    let prompts: Vec<Value> = of(&whole, "message")
        .iter()
        .filter(|it| it["role"] == "user")
        .map(|it| json!([it["text"], it["parent"]]))
        .collect();
    assert_eq!(prompts, [json!(["Do it.", null]), json!(["look", "t"])]);
    assert_eq!(
        (&whole.last().unwrap()["reason"], &whole.last().unwrap()["output"]),
        (&json!("end_turn"), &json!("Done."))
    );
    let cut = lines(imported(content(&all[..7]).as_bytes(), &[]));
    assert_eq!(cut.last().unwrap()["reason"], "crashed");
    // The result of the call says only that the sub-agent has begun.
    let failed = line(8, "subagent.failed", json!("k"), json!({"toolCallId": "t", "error": "400 bad"}));
    let done = line(9, "assistant.message", Value::Null, said("Done.", json!([])));
    let failed = lines(imported(content(&[&all[..8], &[failed, done]].concat()).as_bytes(), &[]));
    let lost = of(&failed, "notice").into_iter().find(|notice| notice["lost"] == "outcome");
    assert_eq!(lost.map(|notice| notice["code"].clone()), Some(json!("task_failed")));
}
