//! How agents end: each harness recorded against a scripted model that failed in one way after the other, by
//! `tests/agents/record`. One reading for all of them, and the exceptions by name.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use evals::internal::adapter::import;
use evals::trace::jsonl::{write_event, write_header};
use serde_json::Value;

use super::{built_in, events, laws};

/// The recordings: harness, scenario and wire log.
fn recordings() -> Vec<(String, String, String)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recordings/endings");
    let entries = |folder: PathBuf| {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    };
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let mut found = Vec::new();
    for folder in entries(root) {
        for file in entries(folder.clone()) {
            let scenario = name(&file).strip_suffix(".wire.jsonl").unwrap().to_owned();
            found.push((name(&folder), scenario, fs::read_to_string(&file).unwrap()));
        }
    }
    found
}

/// The Trace of a recording, lawful and the same each time.
fn trace(harness: &str, wire: &str) -> Vec<Value> {
    let manifest = built_in(harness);
    let once = || {
        let mut lines = Vec::new();
        let header = import(manifest.adapter, manifest, true, wire.as_bytes(), |event| write_event(&mut lines, &event));
        let mut text = Vec::new();
        write_header(&mut text, &header.unwrap()).unwrap();
        text.extend(lines);
        String::from_utf8(text).unwrap()
    };
    let text = once();
    laws::assert_lawful(&text);
    assert_eq!(text, once());
    events(&text)
}

fn word<'a>(event: &'a Value, key: &str) -> &'a str {
    event[key].as_str().unwrap_or("-")
}

/// What a reader wants to know of an ending, in lines.
fn told(events: &[Value]) -> String {
    let mut text = String::new();
    let short = |text: &str| {
        let line = text.trim().replace('\n', "⏎");
        let end = line.floor_char_boundary(160);
        if end < line.len() { format!("{}…", &line[..end]) } else { line }
    };
    for event in events {
        let line = match word(event, "type") {
            "message" if event["role"] == "agent" => format!("says {}", short(word(event, "text"))),
            "notice" => format!("notice {}: {}", word(event, "code"), short(word(event, "text"))),
            "tool_call" => format!("calls {} {}", word(event, "kind"), word(event, "name")),
            "tool_result" => {
                let code = event["exit_code"].as_i64().map(|code| format!(" {code}")).unwrap_or_default();
                format!("result {}{code}: {}", word(event, "status"), short(word(event, "output")))
            }
            "stop" => {
                let category = event["category"].as_str().map(|it| format!(" {it}")).unwrap_or_default();
                format!("stops {}{category}: {}", word(event, "reason"), short(word(event, "detail")))
            }
            _ => continue,
        };
        writeln!(text, "  {line}").unwrap();
    }
    text
}

#[test]
fn every_recorded_ending_was_reviewed() {
    let mut of: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for (harness, scenario, wire) in recordings() {
        let told = told(&trace(&harness, &wire));
        write!(of.entry(harness).or_default(), "{scenario}\n{told}").unwrap();
    }
    assert!(of.len() >= 18, "{:?}", of.keys());
    for (harness, text) in of {
        insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots/endings"}, {
            insta::assert_snapshot!(harness, text);
        });
    }
}

/// Agents that do not show what happened, by scenario. What they say instead is in the snapshots.
const SILENT: [(&str, &[&str]); 6] = [
    // A plain command shows no calls, and these say that the command was completed, without its exit code.
    ("failing-tool", &["claude-code", "gemini", "gemini-stream", "vibe", "vibe-stream"]),
    // Vibe shows how many lines it read.
    ("read", &["claude-code", "vibe"]),
    // It asks again, and the second answer is whole: nothing failed.
    ("cut", &["qwen", "qwen-stream"]),
    (
        "output-limit",
        &[
            "copilot",
            "copilot-stream",
            "droid-stream",
            "gemini",
            "gemini-stream",
            "kimi-stream",
            "opencode",
            "qwen",
            "qwen-stream",
        ],
    ),
    ("content-filter", &["copilot", "gemini", "gemini-stream", "qwen", "qwen-stream", "vibe", "vibe-stream"]),
    (
        "refusal",
        &[
            "cline-stream",
            "codex",
            "codex-acp",
            "copilot",
            "copilot-stream",
            "gemini",
            "gemini-stream",
            "kimi-stream",
            "qwen",
            "qwen-stream",
            "vibe",
            "vibe-stream",
        ],
    ),
];

/// What the agents' failures are, whoever tells them: contract, section 5.
#[test]
fn one_reading_holds_for_every_agent() {
    let mut wrong = Vec::new();
    for (harness, scenario, wire) in recordings() {
        let events = trace(&harness, &wire);
        let stop = events.last().unwrap();
        let got = match stop["category"].as_str() {
            Some(category) => category.to_owned(),
            None => word(stop, "reason").to_owned(),
        };
        let result = events.iter().find(|event| event["type"] == "tool_result");
        let got = match scenario.as_str() {
            "failing-tool" => result.map_or_else(String::new, |result| {
                format!("{} {}", word(result, "status"), result["exit_code"].as_i64().unwrap_or(-1))
            }),
            "read" => result.map_or_else(String::new, |result| {
                let shows = word(result, "output").contains("forty-two") || result["output"].is_null();
                format!("{}{}", word(result, "status"), if shows { "" } else { " of something else" })
            }),
            _ => got,
        };
        let wanted = match scenario.as_str() {
            "failing-tool" => "error 3",
            "read" => "ok",
            "unauthorized" | "no-key" => "auth",
            "rate-limit" => "rate_limit",
            "overloaded" | "cut" | "cut-later" | "unreachable" => "provider",
            "output-limit" => "max_tokens",
            "content-filter" | "refusal" => "refusal",
            other => panic!("the scenario {other} has no reading"),
        };
        let silent = SILENT.iter().any(|(silent, agents)| *silent == scenario && agents.contains(&harness.as_str()));
        if (got == wanted) == silent {
            wrong.push(format!("{harness}/{scenario}: {got}, and it should be {wanted}: {stop}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An agent's honest words about the user's code are no failure of its own, whatever they name.
#[test]
fn an_answer_that_speaks_of_errors_is_an_answer() {
    for (harness, scenario, wire) in recordings() {
        if scenario != "failing-tool" {
            continue;
        }
        assert!(wire.contains("It failed."), "{harness}");
        for words in [
            "The server answers 401 Unauthorized since the API key is missing.",
            "Your client hits the rate limit: 429 Too Many Requests.",
            "fetch failed with ECONNREFUSED; stream disconnected before completion.",
            "It ends with finish_reason: length and a content_filter.",
            "Info: the tests pass.",
        ] {
            let events = trace(&harness, &wire.replace("It failed.", words));
            let stop = events.last().unwrap();
            assert_eq!(stop["reason"], "end_turn", "{harness}, {words}: {stop}");
            let said = events.iter().any(|event| event["type"] == "message" && word(event, "text").contains(words));
            assert!(said, "{harness}, {words}");
        }
        // Nor is chatter on standard error, where the agent answered.
        let (first, rest) = wire.split_once('\n').unwrap();
        let chatter = r#"{"at_ms":1,"dir":"stderr","line":"401 Unauthorized: please log in"}"#;
        let events = trace(&harness, &format!("{first}\n{chatter}\n{rest}"));
        assert_eq!(events.last().unwrap()["reason"], "end_turn", "{harness}");
    }
}

/// A session of these lines, and the exit that followed.
fn ends(harness: &str, lines: &[(&str, &str)], exit: i32) -> Value {
    let line = |(dir, line): &(&str, &str)| serde_json::json!({"at_ms": 1, "dir": dir, "line": line}).to_string();
    let mut wire: Vec<String> = lines.iter().map(line).collect();
    wire.push(line(&("exit", &format!(r#"{{"code":{exit},"signal":null}}"#))));
    trace(harness, &wire.join("\n")).pop().unwrap()
}

#[test]
fn exit_codes_that_a_manifest_knows_say_how_a_silent_agent_ended() {
    let qwen = r#"{"type":"system","subtype":"init","qwen_code_version":"1","model":"m","cwd":"/w"}"#;
    for (code, reason, category) in
        [(53, "max_turns", "-"), (41, "error", "auth"), (1, "crashed", "crashed"), (0, "crashed", "crashed")]
    {
        let stop = ends("qwen-stream", &[("recv", qwen)], code);
        assert_eq!((word(&stop, "reason"), word(&stop, "category")), (reason, category), "{code}: {stop}");
    }
    // An agent that answered has said how it ended.
    let done = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","permission_denials":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}"#;
    assert_eq!(ends("qwen-stream", &[("recv", qwen), ("recv", done)], 53)["reason"], "end_turn");
}

#[test]
fn a_dying_agents_words_about_code_are_no_refused_login() {
    for (words, category) in [
        ("ImportError: unauthorized import of module os", "crashed"),
        ("Error: No authentication information found.", "auth"),
        ("HTTP 401 Unauthorized", "auth"),
        ("DEBUG http: request body not logged (too long)", "crashed"),
    ] {
        let stop = ends("qwen-stream", &[("stderr", words)], 1);
        assert_eq!(word(&stop, "category"), category, "{words}: {stop}");
        // The words count, and not the last line.
        let last = "    at main (app.js:1)";
        let stop = ends("qwen-stream", &[("stderr", words), ("stderr", last)], 1);
        let quoted = if category == "auth" { words } else { last.trim() };
        assert_eq!((word(&stop, "category"), word(&stop, "detail")), (category, quoted), "{stop}");
    }
}
