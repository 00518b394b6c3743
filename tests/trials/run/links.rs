//! Links and missing files in a run folder, where an agent may have put or removed them: nothing is read through a link,
//! and the other trials keep their verdicts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::project::{Project, copy};

/// A run of `a`, which passes, and `b`, which fails.
fn run_of_two() -> Project {
    let project = Project::new();
    project.case("a", "", "steps: [{say: done}]");
    project.case("b", "", "steps: [{stop: refusal}]");
    project.evals(&["run"]).exits(1);
    project
}

fn report(project: &Project) -> Value {
    project.evals(&["report", "latest", "--format", "json"]).exits(0).json()
}

/// A change below the folder of the trials.
type Change = fn(&Path);

#[test]
fn a_trial_whose_result_is_gone_is_errored_and_the_others_keep_their_verdicts() {
    let changes: [Change; 4] = [
        |trials| fs::remove_dir_all(trials.join("a")).unwrap(),
        |trials| fs::remove_file(trials.join("a/demo/default/1/result.json")).unwrap(),
        |trials| {
            let (result, elsewhere) = (trials.join("a/demo/default/1/result.json"), trials.join("moved.json"));
            fs::rename(&result, &elsewhere).unwrap();
            symlink(&elsewhere, &result).unwrap();
        },
        |trials| {
            fs::rename(trials.join("a"), trials.join("moved")).unwrap();
            symlink(trials.join("moved"), trials.join("a")).unwrap();
        },
    ];
    for change in changes {
        let project = run_of_two();
        let run = project.run_folder();
        fs::remove_file(project.path(&format!("{run}/results.jsonl"))).unwrap();
        change(&project.path(&format!("{run}/trials")));
        let report = report(&project);
        let summary = &report["summary"];
        assert_eq!((&summary["pass"], &summary["fail"], &summary["errored"]), (&json!(0), &json!(1), &json!(1)));
        assert_eq!(report["exit_code"], 1);
        let error = &report["results"][0]["error"]["message"];
        assert!(error.as_str().unwrap().starts_with("its result.json was removed or replaced"), "{error}");
    }
}

#[test]
fn a_trace_that_is_a_link_is_neither_shown_nor_judged() {
    let project = run_of_two();
    let trace = project.path(&format!("{}/trials/a/demo/default/1/trace.jsonl", project.run_folder()));
    let elsewhere = project.path("elsewhere.jsonl");
    fs::rename(&trace, &elsewhere).unwrap();
    symlink(&elsewhere, &trace).unwrap();
    project.evals(&["show", "latest", "a"]).exits(2).says("this is a link, which evals did not make");
    let graded = project.evals(&["grade", "latest", "--reporter", "json"]);
    let json: Value = serde_json::from_str(&graded.out).unwrap();
    assert_eq!(json["summary"]["pass"], 0, "{json}");
}

#[test]
fn a_run_that_lies_elsewhere_is_no_run_of_the_folder() {
    let project = run_of_two();
    let run = project.runs().remove(0);
    copy(&project.path(".evals/runs").join(&run), &project.path("elsewhere"));
    let link = project.path(".evals/runs/99991231-000000-0000");
    symlink(project.path("elsewhere"), &link).unwrap();
    let listed = project.evals(&["list", "runs", "--format", "json"]).exits(0).json();
    assert_eq!(listed["runs"].as_array().unwrap_or_else(|| listed.as_array().unwrap()).len(), 1, "{listed}");
    // A path that the user names is followed.
    project.evals(&["report", link.to_str().unwrap()]).exits(0);
}

#[test]
fn a_label_that_could_not_be_named_is_refused() {
    let project = run_of_two();
    for label in ["latest", "", " ", " x"] {
        project.evals(&["run", "--label", label]).exits(2).says("--label");
    }
    assert_eq!(project.runs().len(), 1);
}
