//! An agent that no Rust knows, added by a manifest alone and run by the program; and what an author sees of it.

use serde_json::{Value, json};

use crate::laws;
use crate::project::{Project, of_type};

/// The manifest of `docs/json-stream.md`, and the lines that its agent prints there.
fn example() -> (String, String) {
    let page = std::fs::read_to_string("docs/json-stream.md").unwrap();
    let block = |fence: &str| {
        let start = page.find(fence).unwrap_or_else(|| panic!("no {fence}")) + fence.len();
        let end = page[start..].find("```").unwrap();
        page[start..start + end].trim_start_matches('\n').to_owned()
    };
    (block("```yaml example"), block("```jsonl example"))
}

/// A program that writes a file and says so in lines of its own.
fn agent(lines: &str) -> String {
    format!(
        "#!/bin/sh\nprintf '%s' \"$*\" > asked.txt\nprintf 'model %s' \"$TINY_MODEL\" > model.txt\nprintf 42 > answer.txt\ncat <<'END'\n{lines}END\n"
    )
}

#[test]
fn a_manifest_alone_adds_an_agent() {
    let (manifest, lines) = example();
    let project = Project::new();
    project.write("tiny", &agent(&lines));
    let path = project.path("tiny");
    std::process::Command::new("chmod").arg("+x").arg(&path).status().unwrap();
    let manifest = manifest.replace("command: [tiny,", &format!("command: ['{}',", path.display()));
    assert!(manifest.contains(&path.display().to_string()), "{manifest}");
    project.write("harnesses/tiny.yaml", &manifest);
    let graders = "
prompt: Write 42 into answer.txt.
graders:
  - stop: {reason: [end_turn]}
  - output: {contains: '42'}
  - tool-calls: {require: [{kind: edit, path: answer.txt}, {kind: execute, command: cat}], max: 2}
  - files: {equals: {}, contains: {answer.txt: '42', asked.txt: 'Write 42', model.txt: 'model small'}}
  - budget: {tokens: 200}
  - model: {effective: 'small*'}
";
    project.write("cases/a.yaml", &graders.replace("equals: {}, ", ""));
    project.evals(&["run", "--harness", "tiny", "--model", "small", "--keep-workspace", "never"]).exits(0);
    let result = project.result("a/tiny/small/1");
    assert_eq!((&result["verdict"], &result["metrics"]["output_tokens"]), (&json!("pass"), &json!(20)));
    let text = project.of_trial("a/tiny/small/1", "trace.jsonl");
    laws::assert_lawful(&text);
    let trace = project.trace("a/tiny/small/1");
    assert_eq!(trace[0]["agent"], json!({"name": "Tiny", "version": "0.3"}));
    assert_eq!(of_type(&trace, "message").iter().filter(|event| event["role"] == "user").count(), 1);
    assert_eq!(of_type(&trace, "notice").len(), 0, "{text}");
    assert_eq!(of_type(&trace, "tool_result").len(), 2);
    // The wire log gives the same Trace again, and is known by its own header.
    let log = format!("{}/trials/a/tiny/small/1/wire.jsonl", project.run_folder());
    let again = project.evals(&["import", "--harness", "tiny", &log]).exits(0);
    assert_eq!(again.out, text);
    let known = project.evals(&["import", "--adapter", "replay", &log]).exits(0);
    assert_eq!(known.out, text);
}

#[test]
fn an_agent_that_dies_in_the_middle_is_errored() {
    let (manifest, lines) = example();
    let project = Project::new();
    let half: String = lines.lines().take(4).map(|line| format!("{line}\n")).collect();
    project.write("tiny.sh", &format!("{}echo 'gone' >&2\nexit 9\n", agent(&half)));
    let manifest = manifest.replace("command: [tiny,", "command: [sh, ./tiny.sh,");
    project
        .write("harnesses/tiny.yaml", &manifest.replace("./tiny.sh", &project.path("tiny.sh").display().to_string()));
    project.case("a", "", "");
    project.evals(&["run", "--harness", "tiny"]).exits(3);
    let result = project.result("a/tiny/default/1");
    assert_eq!((&result["verdict"], &result["error"]["category"]), (&json!("errored"), &json!("crashed")));
    assert_eq!(result["error"]["message"], "the agent exited 9 before it answered: gone");
}

#[test]
fn an_agent_of_another_version_is_errored_with_what_shows_it() {
    let (manifest, _) = example();
    let oops = "stream:\n  - {when: line.kind == 'oops', emit: {notice: {code: \"'agent_error'\", text: line.text}}}\n";
    let facts = "version: [echo, tiny 0.3.1]\nverified: [{version: 0.9.0, date: \"2026-11-21\", by: tests}]\n";
    let hint = "error: unknown option '--x'\\nUsage: tiny\\nFor more information, try '--help'.\\n";
    for (script, cause) in [
        (
            "echo '{\"kind\":\"new\"}'; echo 'Hello.'".to_owned(),
            "0 before it answered: none of the 2 lines of its output has a known form",
        ),
        (
            "echo '{\"kind\":\"oops\",\"text\":\"no longer maintained\"}'".to_owned(),
            "0 before it answered: no longer maintained",
        ),
        (format!("printf \"{hint}\" >&2; exit 2"), "2 before it answered: error: unknown option '--x'"),
        (
            "printf 'Options:\\n  --demo   run it   [boolean] [default: false]\\n' >&2; exit 1".to_owned(),
            "1 before it answered: it printed its help: its version may not know an option of the command",
        ),
    ] {
        let project = Project::new();
        let started = format!("command: [sh, '{}',", project.path("tiny.sh").display());
        let manifest = manifest.replace("command: [tiny,", &started).replacen("stream:\n", oops, 1);
        project.write("harnesses/tiny.yaml", &format!("{manifest}\n{facts}"));
        project.write("tiny.sh", &script);
        project.case("a", "", "");
        project.evals(&["run", "--harness", "tiny"]).exits(3);
        let error = project.result("a/tiny/default/1")["error"].clone();
        let versions = "(the agent is version 0.3.1, its manifest was verified with 0.9.0)";
        assert_eq!(error["category"], "crashed", "{error}");
        assert_eq!(error["message"], format!("the agent exited {cause} {versions}"));
    }
}

#[test]
fn what_an_agent_says_on_standard_error_alone_can_tell_how_it_ended() {
    let (manifest, lines) = example();
    let project = Project::new();
    let half: String = lines.lines().take(4).map(|line| format!("{line}\n")).collect();
    project.write("tiny.sh", &format!("{}echo 'Stopped: length' >&2\nexit 3\n", agent(&half)));
    let started = format!("command: [sh, '{}',", project.path("tiny.sh").display());
    let rule = "stream:\n  - {name: cut off, on: end, when: \"exit.code == 3 && exit.stderr == 'Stopped: length'\", emit: {stop: {reason: max_tokens}}}\n";
    project.write("harnesses/tiny.yaml", &manifest.replace("command: [tiny,", &started).replacen("stream:\n", rule, 1));
    project.write("cases/a.yaml", "prompt: Do it.\ngraders: [{stop: {reason: [max_tokens]}}]\n");
    project.evals(&["run", "--harness", "tiny", "--keep-workspace", "never"]).exits(0);
    // Its wire log, which holds standard error too, says the same.
    let log = format!("{}/trials/a/tiny/default/1/wire.jsonl", project.run_folder());
    let again = project.evals(&["import", "--harness", "tiny", &log]).exits(0);
    assert_eq!(again.out, project.of_trial("a/tiny/default/1", "trace.jsonl"));
}

#[test]
fn an_author_sees_what_each_line_becomes() {
    let (manifest, lines) = example();
    let project = Project::with(&[("harnesses/tiny.yaml", &manifest), ("session.jsonl", &lines)]);
    project.write("session.jsonl", &format!("{lines}{{\"kind\":\"news\"}}\n"));
    let table = project.evals(&["import", "--harness", "tiny", "session.jsonl", "--explain"]).exits(0);
    assert_eq!(table.err, "");
    insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "../snapshots/json_stream"}, {
        insta::assert_snapshot!("explain", table.out);
    });
    let told = project
        .evals(&["import", "--harness", "tiny", "session.jsonl", "--explain", "--format", "json"])
        .exits(0)
        .json();
    assert_eq!(told["header"]["harness"], "tiny");
    let shown = told["lines"].as_array().unwrap();
    assert_eq!(shown.len(), lines.lines().count() + 2);
    assert_eq!((&shown[0]["line"], &shown[0]["rule"]), (&json!(1), &json!("hello")));
    let unmapped = &shown[shown.len() - 2];
    assert_eq!((&unmapped["rule"], &unmapped["events"][0]["event"]["code"]), (&json!(null), &json!("unmapped_line")));
    // Its own recordings are known without a name, and those of others are not taken for it.
    let imported = project.evals(&["import", "--adapter", "json-stream", "session.jsonl"]).exits(0);
    assert!(imported.out.contains("\"type\":\"tool_call\""), "{}", imported.out);
    project.write("other.jsonl", "{\"kind\":\"other\"}\n");
    let other = project.evals(&["import", "--adapter", "json-stream", "other.jsonl"]).exits(0).says("--harness");
    let other: Vec<Value> = other.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(&Value, &Value, &Value)> =
        other.iter().map(|line| (&line["type"], &line["code"], &line["reason"])).collect();
    assert_eq!(
        told,
        [
            (&json!("trace"), &Value::Null, &Value::Null),
            (&json!("notice"), &json!("unmapped_line"), &Value::Null),
            (&json!("stop"), &Value::Null, &json!("crashed")),
        ]
    );
    assert_eq!((&other[0]["adapter"], &other[1]["line"]), (&json!("json-stream"), &json!(1)));
    // Without a name for the protocol, the file may be anything.
    project.evals(&["import", "other.jsonl"]).exits(2).says("--harness");
}

#[test]
fn a_name_that_stands_for_two_protocols_takes_a_recording_of_either() {
    let project = Project::new();
    let recording = |path: &str| format!("{}/tests/recordings/{path}", env!("CARGO_MANIFEST_DIR"));
    let stream = recording("gemini/full.jsonl");
    let own = project.evals(&["import", "--harness", "gemini-stream", &stream]).exits(0);
    let by_agent = project.evals(&["import", "--harness", "gemini", &stream]).exits(0).says("harness `gemini-stream`");
    assert_eq!(by_agent.out, own.out);
    assert!(own.out.contains("\"type\":\"tool_call\""));
    // A session over ACP is read as one.
    let acp = project.evals(&["import", "--harness", "gemini", &recording("gemini-acp/full.wire.jsonl")]).exits(0);
    assert!(acp.err.is_empty() && acp.out.contains("\"harness\":\"gemini\""), "{}{}", acp.err, acp.out);
}

#[test]
fn a_stream_is_no_answer_of_a_program_that_has_a_stream_too() {
    let project = Project::new();
    let recording = format!("{}/tests/recordings/claude-code/bash_fail.jsonl", env!("CARGO_MANIFEST_DIR"));
    let own = project.evals(&["import", "--harness", "claude-code-stream", &recording]).exits(0);
    let by_agent = project.evals(&["import", "--harness", "claude-code", &recording]).exits(0);
    assert_eq!(by_agent.says("harness `claude-code-stream`").out, own.out);
    assert!(own.out.contains("\"type\":\"tool_call\""));
    // The answer as one JSON value is what the program prints without a stream.
    let answer = std::fs::read_to_string(&recording).unwrap().lines().last().unwrap().to_owned();
    project.write("answer.json", &answer);
    let alone = project.evals(&["import", "--harness", "claude-code", "answer.json"]).exits(0);
    assert!(alone.err.is_empty() && alone.out.contains("\"adapter\":\"output-only\""), "{}{}", alone.err, alone.out);
}

#[test]
fn a_pipe_that_gives_little_at_first_is_known_as_well() {
    use std::io::Write;
    use std::process::Stdio;

    let project = Project::new();
    let stream = format!("{}/tests/recordings/gemini/full.jsonl", env!("CARGO_MANIFEST_DIR"));
    let from_file = project.evals(&["import", "--harness", "gemini", &stream]).exits(0).out;
    let text = std::fs::read(&stream).unwrap();
    let mut command = project.command(&["import", "--harness", "gemini", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&text[..10]).unwrap();
    crate::project::wait_for("the reader of the first bytes", || rustix::io::ioctl_fionread(&input).unwrap() == 0);
    input.write_all(&text[10..]).unwrap();
    drop(input);
    let done = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&done.stderr).contains("read as one of harness `gemini-stream`"));
    assert_eq!(String::from_utf8(done.stdout).unwrap(), from_file);
}
