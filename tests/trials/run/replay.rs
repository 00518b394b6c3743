//! A recording instead of an agent: a wire log or a trace.

use crate::laws::assert_lawful;
use crate::project::Project;

#[test]
fn a_wire_log_and_a_trace_are_judged_like_the_agent_they_were_made_with() {
    let project = Project::new();
    let keys = "graders: [{tool-calls: {require: [{kind: execute, command: echo}], max: 1}}, {output: {equals: done}}, {budget: {tokens: 100}}, {permissions: {asked: [{kind: execute}]}}]";
    project.case(
        "a",
        keys,
        "steps: [{run: {command: echo hi, ask: true}}, {say: done}, {usage: {input-tokens: 90, output-tokens: 10}}]",
    );
    project.evals(&["run"]).exits(0);
    for file in ["wire.jsonl", "trace.jsonl"] {
        project.write(&format!("recorded/{file}"), &project.of_trial("a/demo/default/1", file));
    }
    let before = project.trace("a/demo/default/1");
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    for (name, file) in [("from-wire", "wire.jsonl"), ("from-trace", "trace.jsonl")] {
        project.harness(name, &format!("adapter: replay\nrecording: ../recorded/{file}"));
    }
    project.evals(&["run", "--harness", "from-wire", "--harness", "from-trace"]).exits(0);
    for name in ["from-wire", "from-trace"] {
        let trial = format!("a/{name}/default/1");
        let trace = project.trace(&trial);
        assert_lawful(&project.of_trial(&trial, "trace.jsonl"));
        assert_eq!(trace[1..], before[1..], "{name}");
        assert_eq!(trace[0]["harness"], name);
        assert_eq!(trace[0]["model"]["effective"], before[0]["model"]["effective"]);
        assert_eq!(project.result(&trial)["metrics"]["total_tokens"], 100);
    }
}

#[test]
fn recordings_of_real_agents_play() {
    let project = Project::new();
    project.case("a", "graders: [{tool-calls: {min: 1}}]", "");
    let recordings = std::path::absolute("tests/recordings").unwrap();
    for (name, file) in [("claude", "claude-code/write.jsonl"), ("gemini", "gemini-acp/full.wire.jsonl")] {
        let path = recordings.join(file);
        if !path.exists() {
            panic!("{} is not there", path.display());
        }
        project.harness(&format!("replay-{name}"), &format!("adapter: replay\nrecording: {}", path.display()));
    }
    project.evals(&["run", "--harness", "replay-claude", "--harness", "replay-gemini"]).exits(0);
    // A session in both directions also shows the permission requests.
    let denied = recordings.join("claude-code/control_deny.wire.jsonl");
    project.harness("replay-denied", &format!("adapter: replay\nrecording: {}", denied.display()));
    project.case("b", "graders: [{permissions: {asked: [{kind: edit}], rejected: [{kind: edit}]}}]", "");
    project.evals(&["run", "--harness", "replay-denied", "--case", "b"]).exits(0);
}

#[test]
fn a_recording_without_times_has_no_duration() {
    let project = Project::new();
    project.case("a", "graders: [{tool-calls: {min: 1}}, {budget: {time: 5m}}]", "");
    let recording = std::path::absolute("tests/recordings/claude-code/parallel.jsonl").unwrap();
    project.harness("played", &format!("adapter: replay\nrecording: {}", recording.display()));
    project.evals(&["run", "--harness", "played"]).exits(3);
    let trial = "a/played/default/1";
    let (trace, result) = (project.trace(trial), project.result(trial));
    assert_eq!(trace[0]["timed"], false);
    assert!(trace[1..].iter().all(|event| event["at_ms"] == 0), "{trace:?}");
    assert_eq!(result["metrics"].get("duration_ms"), None, "{result}");
    let outcomes: Vec<_> = result["grades"].as_array().unwrap().iter().map(|grade| &grade["outcome"]).collect();
    assert_eq!(outcomes, ["scored", "ungraded"], "{result}");
    // The wire log of the trial gives the same trace, and is a recording without times, too.
    let wire = project.path(&format!("{}/trials/{trial}/wire.jsonl", project.run_folder()));
    let text = project.of_trial(trial, "trace.jsonl");
    assert_eq!(project.evals(&["import", "--harness", "played", &wire.display().to_string()]).exits(0).out, text);
    project.write("played.jsonl", &std::fs::read_to_string(wire).unwrap());
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.harness("again", "adapter: replay\nrecording: ../played.jsonl");
    project.evals(&["run", "--harness", "again"]).exits(3);
    assert_eq!(project.trace("a/again/default/1")[0]["timed"], false);
}

#[test]
fn a_wire_log_shows_what_the_protocol_shows_by_which_it_is_read() {
    let project = Project::new();
    project.case(
        "a",
        "graders: [{tool-calls: {forbid: [{kind: execute}]}}]",
        "steps: [{run: {command: echo x}}, {say: done}]",
    );
    project.harness("text", "adapter: output-only\ncommand: [cat]");
    project.evals(&["run"]).exits(1);
    let wire = project.path(&format!("{}/trials/a/demo/default/1/wire.jsonl", project.run_folder()));
    let wire = wire.display().to_string();
    for (by, adapter, seen, code) in [
        (["--harness", "demo"], "acp", [true, true], 1),
        (["--harness", "text"], "output-only", [false, false], 3),
        (["--adapter", "output-only"], "output-only", [false, false], 3),
        (["--adapter", "json-stream"], "json-stream", [false, false], 3),
    ] {
        let trace = project.evals(&["import", by[0], by[1], &wire]).exits(0).out;
        let header: serde_json::Value = serde_json::from_str(trace.lines().next().unwrap()).unwrap();
        assert_eq!(header["adapter"], adapter);
        let capabilities = serde_json::json!({"tracing": seen[0], "interaction": seen[1]});
        assert_eq!(header["capabilities"], capabilities, "{by:?}");
        project.write("lone.jsonl", &trace);
        project.evals(&["grade", "lone.jsonl", "--case", "cases/a.yaml"]).exits(code);
    }
}

#[test]
fn a_recording_that_answers_fewer_prompts_than_the_case_has_is_told() {
    let project = Project::new();
    let recording = std::path::absolute("tests/recordings/claude-code/parallel.jsonl").unwrap();
    project.harness("played", &format!("adapter: replay\nrecording: {}", recording.display()));
    project.write("cases/one.yaml", "turns: [a]\ngraders: [{tool-calls: {min: 1}}]\n");
    project.write("cases/two.yaml", "turns: [a, b]\ngraders: [{tool-calls: {min: 1}}]\n");
    project.evals(&["run", "--harness", "played"]);
    let warnings = |case: &str| project.result(&format!("{case}/played/default/1"))["warnings"].clone();
    assert_eq!(warnings("one"), serde_json::json!([]));
    let told = &warnings("two")[0];
    assert_eq!((&told["code"], &told["sent"], &told["planned"]), (&"prompts_not_sent".into(), &1.into(), &2.into()));
}

#[test]
fn a_replay_without_a_recording_is_refused() {
    let project = Project::new();
    project.case("a", "", "");
    project.harness("nothing", "adapter: replay");
    for args in [&["check"][..], &["run", "--harness", "nothing"]] {
        let ran = project.evals(args).exits(2).says("the adapter `replay` has no recording to play");
        ran.says("write `recording: FILE`").says("nothing.yaml");
    }
}

#[test]
fn a_recording_that_is_not_there_errs() {
    let project = Project::new();
    project.case("a", "", "");
    project.harness("lost", "adapter: replay\nrecording: lost.jsonl");
    let ran = project.evals(&["run", "--harness", "lost"]);
    assert!([2, 3].contains(&ran.code), "{ran:?}");
    ran.says("lost.jsonl");
}

#[test]
fn a_recording_is_judged_by_what_it_shows_and_not_by_the_workspace_of_its_replay() {
    let project = Project::new();
    let steps = "steps: [{run: {command: touch x}}, {say: done}]";
    let graders = "graders: [{tool-calls: {none: true, diagnostic: true}}, {permissions: {max: 0, diagnostic: true}}, {diff: {none: true, diagnostic: true}}, {files: {absent: [x], diagnostic: true}}, {command: {run: 'test ! -e x', diagnostic: true}}, {output: {equals: done}}]";
    project.case("a", graders, steps);
    for harness in ["demo", "demo-stream", "demo-text"] {
        project.evals(&["run", "--harness", harness]);
        let live = project.trace(&format!("a/{harness}/default/1"));
        project.write(&format!("{harness}.jsonl"), &project.of_trial(&format!("a/{harness}/default/1"), "wire.jsonl"));
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
        let name = format!("replay-{harness}");
        project.harness(
            &name,
            &format!("adapter: replay\nrecording: {}", project.path(&format!("{harness}.jsonl")).display()),
        );
        project.evals(&["run", "--harness", &name]).exits(0);
        let trial = format!("a/{name}/default/1");
        let (trace, result) = (project.trace(&trial), project.result(&trial));
        assert_eq!(trace[0]["capabilities"], live[0]["capabilities"], "{harness}");
        let grade = |kind: &str| {
            result["grades"].as_array().unwrap().iter().find(|grade| grade["grader"] == kind).cloned().unwrap()
        };
        for kind in ["diff", "files", "command"] {
            assert_eq!(grade(kind)["outcome"], "ungraded", "{harness}: {kind}");
        }
        assert_eq!(grade("tool-calls")["outcome"] == "ungraded", harness == "demo-text", "{harness}: {result}");
        assert_eq!(grade("permissions")["outcome"] == "ungraded", harness != "demo", "{harness}: {result}");
        // The replay's own wire log gives its trace, with the manifest and without.
        let wire = format!("{}/trials/{trial}/wire.jsonl", project.run_folder());
        let text = project.of_trial(&trial, "trace.jsonl");
        assert_eq!(project.evals(&["import", "--harness", &name, &wire]).exits(0).out, text, "{harness}");
        let stored = format!("{}/trials/{trial}/trace.jsonl", project.run_folder());
        assert_eq!(project.evals(&["import", "--adapter", "replay", &stored]).exits(0).out, text, "{harness}");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
    }
}

#[test]
fn a_recording_of_any_kind_is_imported_without_its_protocol_being_named() {
    let project = Project::new();
    let recordings = std::path::absolute("tests/recordings").unwrap();
    for (adapter, file) in [("claude-code-stream", "claude-code/write.jsonl"), ("acp", "gemini-acp/full.wire.jsonl")] {
        let path = recordings.join(file).display().to_string();
        let by = |adapter: &str| project.evals(&["import", "--adapter", adapter, &path]).exits(0).out;
        assert_eq!(by("replay"), by(adapter));
    }
}
