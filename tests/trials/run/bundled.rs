//! The cases that the program ships, with each form of the demo agent, and the files that every run writes.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::laws::assert_lawful;
use crate::project::{Project, lines};

/// Checks the contract of every trial's files, and that the reports agree with each other.
fn hold_to_the_contract(project: &Project, harness: &str) -> Vec<Value> {
    let folder = project.run_folder();
    let run: Value = serde_json::from_str(&project.read(&format!("{folder}/run.json"))).unwrap();
    for key in ["version", "run", "argv", "cases", "harnesses", "trials", "options"] {
        assert!(!run[key].is_null(), "run.json has no {key}");
    }
    assert!(run["cases"].as_array().unwrap().iter().all(|case| case["digest"].is_string()));
    let results = lines(&project.read(&format!("{folder}/results.jsonl")));
    assert_eq!(results.len(), run["trials"].as_array().unwrap().len());
    for result in &results {
        for key in
            ["case", "harness", "model", "trial", "verdict", "grades", "metrics", "attempt", "arm", "shape", "warnings"]
        {
            assert!(!result[key].is_null(), "result.json has no {key}: {result}");
        }
        let case = result["case"].as_str().unwrap();
        if result["verdict"] == "skipped" {
            assert!(!project.path(&format!("{folder}/trials/{case}/{harness}")).exists(), "{case} was not run");
            continue;
        }
        for grade in result["grades"].as_array().unwrap() {
            for key in ["name", "grader", "outcome", "weight", "gate", "diagnostic", "reason"] {
                assert!(!grade[key].is_null(), "a grade has no {key}: {grade}");
            }
        }
        let trial = format!("{case}/{harness}/default/1");
        assert_eq!(*result, project.result(&trial), "results.jsonl and result.json agree");
        let trace = project.of_trial(&trial, "trace.jsonl");
        assert_lawful(&trace);
        let header = &lines(&trace)[0];
        assert_eq!((&header["case"], &header["harness"]), (&result["case"], &result["harness"]));
        let wire = format!("{folder}/trials/{trial}/wire.jsonl");
        for line in lines(&project.read(&wire)) {
            assert!(line["at_ms"].is_u64() && line["line"].is_string(), "{line}");
            let dir = line["dir"].as_str().unwrap();
            assert!(["send", "recv", "stderr", "engine", "exit"].contains(&dir), "{line}");
        }
        let imported = project.evals(&["import", "--harness", harness, &wire]).exits(0);
        assert!(imported.out == trace, "{trial}: the wire log gives another trace:\n{}\n{trace}", imported.out);
    }
    hold_the_journal(project, &results);
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(json["results"], Value::Array(results.clone()));
    assert_eq!(json["run"], run["run"]);
    assert!(json["version"].is_u64());
    for word in ["pass", "fail", "ungraded", "errored", "skipped"] {
        let count = results.iter().filter(|result| result["verdict"] == word).count();
        assert_eq!(json["summary"][word], count, "{word}");
    }
    assert_eq!(json["summary"]["not_run"], 0);
    assert_eq!(lines(&project.evals(&["report", "--format", "jsonl"]).exits(0).out), results);
    results
}

fn hold_the_journal(project: &Project, results: &[Value]) {
    let mut open = BTreeSet::new();
    let mut finished = 0;
    for line in project.journal() {
        for key in ["at", "case", "harness", "model", "trial", "attempt"] {
            assert!(!line[key].is_null(), "a journal line has no {key}: {line}");
        }
        let trial = line["case"].as_str().unwrap().to_owned();
        match line["event"].as_str().unwrap() {
            "started" => assert!(open.insert(trial), "started twice: {line}"),
            "finished" => {
                assert!(open.remove(&trial), "finished without a start: {line}");
                let result = results.iter().find(|result| result["case"] == line["case"]).unwrap();
                assert_eq!(result["verdict"], line["verdict"]);
                finished += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(finished, results.iter().filter(|result| result["verdict"] != "skipped").count());
}

fn verdicts<'a>(results: &'a [Value], verdict: &str) -> Vec<&'a str> {
    results
        .iter()
        .filter(|result| result["verdict"] == verdict)
        .map(|result| result["case"].as_str().unwrap())
        .collect()
}

#[test]
fn every_bundled_case_passes_with_the_demo() {
    let project = Project::bundled();
    let before = project.files("");
    let args =
        ["run", "cases/", "--reporter", "json=out.json", "--reporter", "jsonl=out.jsonl", "--keep-workspace", "never"];
    let ran = project.evals(&args).exits(0).says("25/25 passed");
    assert!(!ran.out.contains('\u{1b}') && !ran.err.contains('\u{1b}'), "no colour but on a terminal");
    let written: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    assert_eq!(written, project.evals(&["report", "--format", "json"]).json());
    assert_eq!(project.read("out.jsonl"), project.evals(&["report", "--format", "jsonl"]).out);
    for path in ["out.json", "out.jsonl"] {
        std::fs::remove_file(project.path(path)).unwrap();
    }
    let results = hold_to_the_contract(&project, "demo");
    assert_eq!(verdicts(&results, "pass").len(), 25);
    // The demo agent's tasks involve no skills; tests/trials/run/skills.rs has runs of the grader.
    for kind in evals::internal::grader::Kind::WORDS.iter().filter(|kind| **kind != "skills") {
        let uses = |result: &&Value| result["grades"].as_array().unwrap().iter().any(|grade| grade["grader"] == *kind);
        assert!(results.iter().filter(uses).count() >= 2, "`{kind}` occurs in fewer than two cases");
    }
    // The session of each case is accepted as its snapshot.
    let snapshots = written["snapshots"].as_array().unwrap();
    assert_eq!(snapshots.len(), 25);
    assert!(snapshots.iter().all(|snapshot| snapshot["state"] == "same"), "{snapshots:#?}");

    // Files were written only to `.evals/`, which is kept out of version control; fixtures are unchanged.
    let mut after = project.files("");
    after.retain(|path, _| !path.starts_with(".evals/"));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(before == after, "a file of the user's was changed");
    assert!(project.read(".evals/.gitignore").lines().any(|line| line == "*"));
    assert_eq!(project.left_over(), Vec::<std::path::PathBuf>::new());
    assert!(std::fs::read_dir(project.home()).unwrap().next().is_none(), "the user's home was written to");

    // Missing results are rebuilt from the trials.
    let stored = format!("{}/results.jsonl", project.run_folder());
    std::fs::remove_file(project.path(&stored)).unwrap();
    let again = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(again, written);
}

#[test]
#[ignore = "slow: runs each bundled case"]
fn every_bundled_case_fails_when_it_is_done_wrong() {
    let project = Project::bundled();
    let command = r#"command: ["{self}", demo-agent, --script, "{script:wrong}", --speak, acp]"#;
    project
        .harness("wrong", &format!("adapter: acp\n{command}\nmodel: {{via: config-option}}\nagent-info: evals-demo"));
    project.evals(&["run", "--harness", "wrong"]).exits(1);
    let results = hold_to_the_contract(&project, "wrong");
    assert_eq!(verdicts(&results, "fail").len(), results.len(), "passed: {:?}", verdicts(&results, "pass"));
    for result in &results {
        let said =
            |grade: &Value| grade["passed"] == false && grade["reason"].as_str().is_some_and(|text| !text.is_empty());
        assert!(result["grades"].as_array().unwrap().iter().any(said), "nobody says why {} failed", result["case"]);
    }
}

#[test]
#[ignore = "slow: runs many trials"]
fn the_stream_runs_what_needs_no_questions_and_one_turn() {
    let project = Project::bundled();
    project.evals(&["run", "--harness", "demo-stream"]).exits(0);
    let results = hold_to_the_contract(&project, "demo-stream");
    skipped_with_reason(&results, "demo-stream");
}

#[test]
#[ignore = "slow: runs many trials"]
fn plain_text_runs_what_needs_no_trace() {
    let project = Project::bundled();
    let ran = project.evals(&["run", "--harness", "demo-text"]);
    let results = hold_to_the_contract(&project, "demo-text");
    assert_eq!(verdicts(&results, "fail"), Vec::<&str>::new(), "{ran:?}");
    assert_eq!(verdicts(&results, "errored"), Vec::<&str>::new());
    // A case that needs a trace is not judged, and its grades state that.
    let ungraded = verdicts(&results, "ungraded");
    ran.exits(if ungraded.is_empty() { 0 } else { 3 });
    for result in results.iter().filter(|result| result["verdict"] == "ungraded") {
        let why = |grade: &Value| grade["outcome"] == "ungraded" && grade["reason"].is_string();
        assert!(result["grades"].as_array().unwrap().iter().any(why), "{result}");
    }
    skipped_with_reason(&results, "demo-text");
}

fn skipped_with_reason(results: &[Value], harness: &str) {
    let skipped: Vec<&Value> = results.iter().filter(|result| result["verdict"] == "skipped").collect();
    assert!(!skipped.is_empty() && skipped.len() < results.len());
    for result in skipped {
        assert!(result["skipped"].as_str().unwrap().contains(&format!("`{harness}`")), "{result}");
        assert!(result["score"].is_null());
    }
    assert!(!verdicts(results, "pass").is_empty());
}
