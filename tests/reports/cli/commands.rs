//! The commands beside `run`: what they print, where, and that programs can read it.

use std::io::Write;

use serde_json::Value;

use crate::project::{MACHINE, Project, copy, lines, not_run};

const PASS: &str = "steps: [{say: done}]";

#[test]
fn a_first_suite_runs_at_once() {
    let project = Project::new();
    project.evals(&["init"]).exits(0);
    project.evals(&["check"]).exits(0);
    project.evals(&["run"]).exits(0).says("1/1 passed");
    // It overwrites nothing.
    let before = project.files("cases");
    project.evals(&["init"]).exits(2).says("overwrites nothing");
    assert!(before == project.files("cases"));
    project.evals(&["init", "other"]).exits(0);
    project.evals(&["run", "other/cases"]).exits(0);
}

#[test]
fn lists_are_tables_for_people_and_json_for_programs() {
    let project = Project::new();
    project.case("one", "description: the first\ntags: [easy]\ntrials: 3", PASS);
    project.case("folder/two", "", PASS);
    project.harness("mine", "adapter: output-only\ncommand: [no-such-agent-anywhere]\ndescription: my own");
    project.write("graders/tidy.yaml", "description: leaves nothing\ndiff: {none: true}\n");
    let cases = project.evals(&["list", "cases", "--format", "json"]).exits(0).json();
    assert_eq!((&cases[0]["id"], &cases[1]["id"]), (&"folder/two".into(), &"one".into()));
    assert_eq!((&cases[1]["description"], &cases[1]["trials"]), (&"the first".into(), &3.into()));
    project.evals(&["list", "cases"]).exits(0).says("folder/two").says("the first");
    let harnesses = project.evals(&["list", "harnesses", "--format", "json"]).exits(0).json();
    let names: Vec<&str> = harnesses.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    for shipped in
        ["demo", "claude-code", "claude-code-stream", "claude-agent-acp", "codex-acp", "gemini", "opencode", "command"]
    {
        assert!(names.contains(&shipped), "{shipped} is not shipped: {names:?}");
    }
    let find = |name: &str| harnesses.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap().clone();
    assert_eq!(find("demo")["origin"], "built in");
    assert_eq!(find("demo")["installed"], true);
    assert!(find("mine")["origin"].as_str().unwrap().contains("harnesses/mine.yaml"));
    assert_eq!(find("mine")["installed"], false);
    assert_eq!(project.evals(&["harness", "list", "--format", "json"]).exits(0).json(), harnesses);
    let graders = project.evals(&["list", "graders", "--format", "json"]).exits(0).json();
    assert!(
        graders.as_array().unwrap().iter().any(|row| row["name"] == "tidy" && row["description"] == "leaves nothing")
    );
    assert_eq!(project.evals(&["list", "runs", "--format", "json"]).exits(0).json(), serde_json::json!([]));
    project.evals(&["run", "--label", "a label"]).exits(0);
    let runs = project.evals(&["list", "runs", "--format", "json"]).exits(0).json();
    assert_eq!((&runs[0]["label"], &runs[0]["summary"]["pass"]), (&"a label".into(), &4.into()));
    assert!(!project.evals(&["list", "runs"]).exits(0).out.contains('\u{1b}'));
}

#[test]
fn a_harness_is_shown_with_its_origin_and_its_manifest_can_be_used_again() {
    let project = Project::new();
    project.case("a", "", PASS);
    let shown = project.evals(&["harness", "show", "demo"]).exits(0).says("built in").says("tracing: yes");
    project.write("again.yaml", &shown.out.replace("name: demo", "name: again"));
    project.evals(&["run", "--harness", "./again.yaml"]).exits(0);
    let json = project.evals(&["harness", "show", "demo", "--format", "json"]).exits(0).json();
    assert_eq!(json["capabilities"]["multi_turn"], true);
    project.evals(&["harness", "show", "dmeo"]).exits(2).says("did you mean `demo`");
    // One in `harnesses/` wins over the built-in one, and one by path over both.
    project.demo("demo", "description: from the folder");
    project.evals(&["harness", "show", "demo"]).exits(0).says("from the folder").says("harnesses/demo.yaml");
    project.write("x/demo.yaml", &project.read("harnesses/demo.yaml").replace("the folder", "elsewhere"));
    project.evals(&["harness", "show", "x/demo.yaml"]).exits(0).says("from elsewhere").says("x/demo.yaml");
}

#[test]
fn the_latest_run_is_one_that_played_a_trial() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "played"]).exits(0);
    project.case("a", "requires: {tracing: true}", "steps: [{say: done}]");
    project.evals(&["run", "--harness", "demo-text", "--label", "skipped"]).exits(3).says("skipped");
    let played = |name: &str| project.evals(&["report", name, "--format", "json"]).exits(0).json()["label"].clone();
    assert_eq!(played("latest"), "played");
    assert_eq!(played("skipped"), "skipped");
    // If no run played a trial, the newest is meant.
    let other = Project::new();
    other.case("a", "requires: {tracing: true}", "steps: [{say: done}]");
    other.evals(&["run", "--harness", "demo-text", "--label", "skipped"]).exits(3);
    assert_eq!(other.evals(&["report", "--format", "json"]).exits(0).json()["label"], "skipped");
}

#[test]
fn every_schema_is_json() {
    let project = Project::new();
    for what in ["case", "suite", "harness", "grader", "trace", "run"] {
        let schema = project.evals(&["schema", what]).exits(0).json();
        assert!(schema["$schema"].is_string(), "{what}");
    }
}

#[test]
fn completions_and_help_are_printed() {
    let project = Project::new();
    for shell in ["bash", "zsh", "fish"] {
        assert!(project.evals(&["completions", shell]).exits(0).out.contains("evals"), "{shell}");
    }
    project.evals(&["--help"]).exits(0).says("Usage");
    project.evals(&["--version"]).exits(0).says(env!("CARGO_PKG_VERSION"));
    project.evals(&[]).exits(2);
    project.evals(&["frobnicate"]).exits(2);
}

#[test]
fn check_counts_what_can_be_read() {
    let project = Project::bundled();
    project.evals(&["check"]).exits(0).says("25 cases");
    project.write("cases/fixing/off-by-one.demo.yaml", "steps: [{sya: x}]");
    project.evals(&["check"]).exits(2).says("did you mean `say`");
}

#[test]
fn a_trace_is_shown_without_anything_that_a_terminal_obeys() {
    let project = Project::new();
    let script = "\
steps:
  - say: \"look \\e]0;owned\\a\\e[31mred\\e[0m \\e[2J \\u009b31m and \\u202e back\"
  - run: {command: \"printf 'out \\\\033[31mred\\\\007'\", title: \"ti\\e[1mtle\", name: \"na\\e[1mme\"}
  - write: {path: \"a\\e[5m.txt\", text: \"x\\e[5my\"}
  - say: done
";
    project.case("a", "graders: [{output: {equals: \"no \\e[31m\"}}]", script);
    let ran = project.evals(&["run"]).exits(1);
    let shown = project.evals(&["show"]).exits(0).says("look").says("done");
    let report = project.evals(&["report"]).exits(0);
    for text in [&ran.out, &ran.err, &shown.out, &shown.err, &report.out] {
        let bad = text.chars().find(|c| (c.is_control() && *c != '\n' && *c != '\t') || *c == '\u{202e}');
        assert_eq!(bad, None, "{text:?}");
    }
}

#[test]
fn trials_are_shown_by_name_and_a_trace_by_its_file() {
    let project = Project::new();
    project.case("a", "trials: 2", PASS);
    project.case("b", "", "steps: [{say: refused}, {stop: refusal}]");
    project.evals(&["run"]).exits(1);
    project.evals(&["show"]).exits(0).says("refused");
    project.evals(&["show", "latest", "a/demo/default/2"]).exits(0).says("done");
    project.evals(&["show", "latest", "a"]).exits(0).says("2 trials; this is a/demo/default/1");
    project.evals(&["show", "latest", "zz"]).exits(2).says("no trial called `zz`").says("a/demo/default/1");
    let trace = format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_folder());
    project.evals(&["show", &trace]).exits(0).says("done");
}

#[test]
fn reports_go_where_they_are_asked_to() {
    let project = Project::new();
    project.case("a", "", PASS);
    let ran = project.evals(&["run", "--reporter", "jsonl"]).exits(0);
    assert_eq!(lines(&ran.out).len(), 1, "nothing else is on standard output");
    assert!(ran.err.contains("PASS"), "progress is on standard error");
    project.evals(&["report", "--format", "table", "-o", "out.txt"]).exits(0);
    assert!(project.read("out.txt").contains("1/1 passed"));
    project.evals(&["report", "--format", "nothing"]).exits(2);
    // A failed case gives its reason, where to look and how to run it again.
    project.case("b", "", "steps: [{stop: refusal}]");
    let ran = project.evals(&["run"]).exits(1).says("refusal").says("trace.jsonl");
    let again = ran.out.lines().find(|line| line.contains("evals run ")).unwrap().trim();
    let again = &again[again.find("evals run").unwrap() + 6..];
    let done = project.command(&[]).arg("run").args(again.split_whitespace().skip(1)).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{again}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn old_runs_are_removed_and_the_newest_kept() {
    let project = Project::new();
    project.case("a", "", PASS);
    for label in ["one", "two", "three"] {
        project.evals(&["run", "--label", label]).exits(0);
    }
    let planned = project.evals(&["prune", "--keep", "1", "--dry-run"]).exits(0);
    assert!(planned.out.contains("1 of 3 runs would remain"), "{}", planned.out);
    // A run that another process uses remains, and counts so.
    let first = project.evals(&["list", "runs", "--format", "json"]).json();
    let first = first.as_array().unwrap().iter().find(|run| run["label"] == "one").unwrap()["run"].clone();
    let lock = project.path(".evals/runs").join(first.as_str().unwrap()).join(".lock");
    let used = std::fs::File::create(lock).unwrap();
    used.lock().unwrap();
    let pruned = project.evals(&["prune", "--keep", "1"]).exits(0);
    assert!(pruned.out.contains("kept ") && pruned.out.contains("2 of 3 runs remain"), "{}", pruned.out);
    drop(used);
    project.write(".evals/runs/damaged/run.json", "{");
    let pruned = project.evals(&["prune", "--keep", "1"]).exits(0);
    assert!(pruned.out.contains("2 of 3 runs remain"), "{}", pruned.out);
    pruned.says("note: kept a run that cannot be read").says(".evals/runs/damaged");
    project.evals(&["prune", "--keep", "0", "--dry-run"]).exits(0).says("1 of 2 runs would remain");
    std::fs::remove_dir_all(project.path(".evals/runs/damaged")).unwrap();
    assert_eq!(project.runs().len(), 1);
    project.evals(&["report", "three"]).exits(0);
    project.evals(&["prune"]).exits(2);
}

#[test]
fn a_list_of_runs_of_which_none_can_be_read_does_not_say_that_there_are_none() {
    let project = Project::new();
    project.write(".evals/runs/damaged/run.json", "{");
    let listed = project.evals(&["list", "runs"]).exits(0).says("no run in").says("can be read");
    assert!(!listed.err.contains("there are no runs"), "{}", listed.err);
    project.evals(&["prune", "--keep", "0"]).exits(0).says("1 of 1 runs remain");
}

#[test]
fn a_list_refuses_what_does_not_apply_to_it() {
    let project = Project::new();
    project.case("a", "", PASS);
    for (args, says) in [
        (["runs", "nofolder"].as_slice(), "paths are for `evals list cases`; name the folder of the runs with --out"),
        (&["graders", "x"], "paths are for `evals list cases`"),
        (&["runs", "--all"], "--all is for `evals list harnesses`"),
        (&["graders", "--all"], "--all is for `evals list harnesses`"),
        (&["cases", "--out", "x"], "--out is for `evals list runs`"),
    ] {
        project.evals(&[&["list"], args].concat()).exits(2).says(says);
    }
    project.evals(&["list", "cases", "cases"]).exits(0);
    project.evals(&["list", "harnesses", "--all", "--format", "json"]).exits(0);
    project.evals(&["list", "runs", "--out", "x"]).exits(0);
}

#[test]
fn a_run_is_removed_although_the_rest_of_a_run_with_its_name_stays() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.evals(&["run"]).exits(0);
    let run = project.runs()[0].clone();
    let rest = format!(".removed-{run}");
    let folder = project.path(".evals/runs").join(&rest);
    copy(&project.path(&project.run_folder()), &folder);
    // Another process is removing the rest, so this one leaves it alone.
    let used = std::fs::File::create(folder.join(".lock")).unwrap();
    used.lock().unwrap();
    project.evals(&["prune", "--keep", "0"]).exits(0).says("0 of 1 runs remain");
    assert_eq!(project.runs(), [rest]);
}

#[test]
fn prune_says_why_a_run_cannot_be_locked() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let lock = project.path(&project.run_folder()).join(".lock");
    std::fs::remove_file(&lock).unwrap();
    // A folder cannot be opened as a file, not even by root.
    std::fs::create_dir(&lock).unwrap();
    let pruned = project.evals(&["prune", "--keep", "0"]).exits(0);
    assert!(pruned.out.contains("could not open") && pruned.out.contains("Is a directory"), "{}", pruned.out);
    assert!(!pruned.out.contains("another evals process"), "{}", pruned.out);
    assert_eq!(project.runs().len(), 1);
}

#[test]
fn sessions_are_imported_from_a_file_and_from_standard_input() {
    let project = Project::new();
    let recording = std::fs::read("tests/recordings/claude-code/write.jsonl").unwrap();
    std::fs::write(project.path("session.jsonl"), &recording).unwrap();
    let from_file = project.evals(&["import", "--adapter", "claude-code-stream", "session.jsonl"]).exits(0).out;
    assert!(!lines(&from_file)[0]["version"].is_null());
    // The folder of the output is made; a file cannot be one.
    project.evals(&["import", "--adapter", "claude-code-stream", "session.jsonl", "-o", "new/in/of.jsonl"]).exits(0);
    assert_eq!(project.read("new/in/of.jsonl"), from_file);
    let below_file = ["import", "--adapter", "claude-code-stream", "session.jsonl", "-o", "session.jsonl/of.jsonl"];
    project.evals(&below_file).exits(2).says("could not make the folder session.jsonl");
    project.evals(&["import", "--adapter", "claude-code-stream", "session.jsonl", "-o", "out.jsonl"]).exits(0);
    assert_eq!(project.read("out.jsonl"), from_file);
    let mut child = project
        .command(&["import", "--adapter", "claude-code-stream", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&recording).unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), from_file);
    // What nobody understands is no error of the import.
    project.write("garbage.txt", "hello\n{}\n[1,2]\n\u{0}\n");
    for adapter in ["acp", "claude-code-stream", "output-only"] {
        let trace = project.evals(&["import", "--adapter", adapter, "garbage.txt"]).exits(0).out;
        assert_eq!(lines(&trace).last().unwrap()["type"], "stop", "{adapter}");
    }
}

#[test]
fn a_trace_of_a_newer_program_is_read_as_far_as_it_is_known() {
    let project = Project::new();
    let header = r#"{"type":"trace","version":1,"adapter":"acp","capabilities":{"tracing":true,"interaction":true},"model":{},"future":1}"#;
    let said = r#"{"seq":0,"at_ms":0,"type":"message","role":"agent","text":"hello","future":{"a":1}}"#;
    let stop = r#"{"seq":2,"at_ms":2,"type":"stop","reason":"end_turn"}"#;
    let text = format!("{header}\n{said}\n{{\"seq\":1,\"at_ms\":1,\"type\":\"hologram\"}}\n{stop}\n");
    project.write("newer.jsonl", &text);
    let shown = project.evals(&["show", "newer.jsonl"]).exits(0).says("hello").says("end_turn");
    // What it does not know is shown, and not left out.
    shown.says("unknown_event").says("`hologram`");
    let odd = text.replace("\"hologram\"", "\"hologram\",\"status\":{\"new\":1}");
    project.write("odd.jsonl", &odd);
    project.evals(&["show", "odd.jsonl"]).exits(0).says("unknown_event");
    project.write("wrong.jsonl", &text.replace("\"hologram\"", "\"tool_result\""));
    project.evals(&["show", "wrong.jsonl"]).exits(2).says("line 3");
}

#[test]
fn a_trace_that_cannot_be_written_says_where_it_should_have_gone() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.write("session.txt", "done\n");
    let import = &["import", "--adapter", "output-only", "session.txt"];
    for command in [&import[..], &["list", "harnesses"], &["check"], &["--help"], &["run", "--help"], &["--version"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
        let Ok(full) = full else { return not_run(MACHINE, "there is no /dev/full") };
        let ran = project.command(command).stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        // A full disk is no wrong input.
        assert_eq!(ran.status.code(), Some(4), "{command:?}: {said}");
        assert!(said.contains("standard output"), "{command:?}: {said}");
    }
}

#[test]
fn a_run_whose_report_cannot_be_written_names_the_run() {
    let project = Project::new();
    project.case("a", "", PASS);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
    let Ok(full) = full else { return not_run(MACHINE, "there is no /dev/full") };
    let ran = project.command(&["run"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert_eq!(ran.status.code(), Some(4), "{said}");
    assert!(said.contains(&format!("evals report {}", project.runs()[0])), "{said}");
}

#[test]
fn a_run_dated_in_the_future_is_not_the_latest_and_takes_no_place_of_another_one() {
    const AHEAD: &str = "29990101-000000-0000";
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run", "--label", "nightly"]).exits(0);
    let folder = project.run_folder();
    project.without_digests(&folder);
    let mut record: Value = serde_json::from_str(&project.read(&format!("{folder}/run.json"))).unwrap();
    (record["run"], record["started"]) = (AHEAD.into(), "2999-01-01T00:00:00.000Z".into());
    project.write(&format!("{folder}/run.json"), &record.to_string());
    std::fs::rename(project.path(&folder), project.path(&format!(".evals/runs/{AHEAD}"))).unwrap();
    project.case("a", "graders: [{output: {contains: other}}]", "");
    project.evals(&["run", "--label", "nightly"]).exits(1);
    for name in ["latest", "nightly"] {
        let report = project.evals(&["report", name, "--format", "json"]).exits(0);
        assert_eq!(report.json()["summary"]["fail"], 1, "{name}: {}", report.out);
        assert_eq!(report.err.contains("run 29990101-000000-0000 is dated"), name == "latest", "{}", report.err);
    }
    let pruned = project.evals(&["prune", "--keep", "1"]).exits(0);
    assert!(
        pruned.out.contains(&format!("kept {AHEAD}: it is dated")) && pruned.out.contains("2 of 2 runs remain"),
        "{}",
        pruned.out
    );
}

#[test]
fn what_an_interrupted_prune_left_is_no_run_and_is_removed_by_the_next_one() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.evals(&["run"]).exits(0);
    let left = project.path(".evals/runs/.removed-x");
    copy(&project.path(&project.run_folder()), &left);
    let listed = project.evals(&["list", "runs", "--format", "json"]).exits(0).json();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    project.evals(&["prune", "--keep", "1", "--dry-run"]).exits(0).says("would remove the rest of x");
    let pruned = project.evals(&["prune", "--keep", "1"]).exits(0).says("removed the rest of x");
    pruned.says("1 of 1 runs remain");
    assert!(!left.exists());
}
