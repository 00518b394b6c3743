//! A run that an older build of the program wrote is still read, shown, compared and graded.

use std::path::Path;

use serde_json::Value;

use crate::project::Project;

/// The run's ID. Its files were written on 2026-11-28 and are never written again: a change of the formats must read them.
const RUN: &str = "20261128-052057-a7d9";

/// Returns a project with the stored run and its cases, in another place than that in which they were.
fn project() -> Project {
    let project = Project::new();
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored-run");
    copy(&stored.join("cases"), &project.path("cases"));
    copy(&stored.join("run"), &project.path(&format!(".evals/runs/{RUN}")));
    project
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if entry.is_dir() {
            copy(&entry, &to.join(name));
        } else {
            std::fs::copy(&entry, to.join(name)).unwrap();
        }
    }
}

#[test]
fn a_stored_run_is_read_by_every_command_that_reads_runs() {
    let project = project();
    let report = project.evals(&["report", "older", "--format", "json"]).exits(0);
    assert_eq!(report.err, "", "no file counts as changed");
    let report = report.json();
    assert_eq!((&report["summary"]["pass"], &report["summary"]["fail"]), (&2.into(), &2.into()), "{report}");
    assert_eq!(report["results"][0]["grades"][0]["reason"], "the output contains `hello`");
    project.evals(&["show", "older", "hello/demo/default/1"]).exits(0).says("echo hi > a.txt").says("evals-demo 0.1.0");
    project.evals(&["list", "runs"]).exits(0).says(RUN).says("2 passed, 2 failed");
    project.evals(&["history", "hello"]).exits(0).says("2/2");
    let trace = format!(".evals/runs/{RUN}/trials/hello/demo/default/1");
    let imported = project.evals(&["import", &format!("{trace}/wire.jsonl")]).exits(0).out;
    assert_eq!(imported, project.read(&format!("{trace}/trace.jsonl")), "the trace follows from the wire log");
}

#[test]
fn a_stored_run_is_graded_and_compared_with_a_new_one() {
    let project = project();
    let cases = ["--case", "cases/hello.yaml", "--case", "cases/wrong.yaml"];
    let graded = project.evals(&[&["grade", "older"], &cases[..]].concat()).exits(1);
    graded.says("2 passed, 2 failed");
    project.evals(&["run", "--trials", "2", "--label", "newer"]).exits(1);
    let compared = project.evals(&["compare", "older", "newer", "--format", "json"]).json();
    assert_eq!(compared["pairs"][0]["cases"].as_array().map(Vec::len), Some(2), "{compared}");
    project.evals(&["compare", "older", "newer", "--gate"]).exits(0);
}

#[test]
fn a_stored_baseline_is_compared_with_a_new_run() {
    let project = project();
    project.evals(&["run", "--trials", "2", "--label", "newer"]).exits(1);
    let compared = project.evals(&["compare", "newer", "--baseline", "cases/baseline.json", "--format", "json"]).json();
    assert_eq!(compared["pairs"][0]["cases"].as_array().map(Vec::len), Some(2), "{compared}");
    assert_eq!(compared["pairs"][0]["old"], "baseline demo");
    project.evals(&["baseline", "show"]).exits(0).says(RUN);
}

#[test]
fn a_run_whose_digests_do_not_cover_what_links_lead_to_is_resumed_only_if_the_user_decides() {
    let project = Project::new();
    project.write("fixture/a.txt", "1");
    std::os::unix::fs::symlink("fixture", project.path("link")).unwrap();
    project.case("a", "workspace: {copy: ../link}", "steps: [{say: done}]");
    project.evals(&["run", "--max-time", "0"]).exits(3);
    let folder = project.run_folder();
    project.without_digests(&folder);
    let plan = format!("{folder}/run.json");
    let record = || serde_json::from_str::<Value>(&project.read(&plan)).unwrap();
    let mut older = record();
    for key in ["digest", "workspace", "played"] {
        // Older versions wrote only the first part.
        let digest = older["cases"][0][key].as_str().unwrap().to_owned();
        older["cases"][0][key] = digest.split_once('+').unwrap().0.into();
    }
    project.write(&plan, &older.to_string());
    let resume = ["run", "--resume", "latest", "--max-time", "100"];
    let refused = project.evals(&resume).exits(2).says("it is unknown whether `a` changed since run");
    refused.says("--changed keep").says("--changed rerun");
    project.evals(&[&resume[..], &["--changed", "keep"]].concat()).exits(0);
    // The run goes on with the current files, and its digest covers them.
    assert!(record()["cases"][0]["digest"].as_str().unwrap().contains('+'));
    project.evals(&resume).exits(0);
}
