//! One run has one exit code, whoever asks for it and in whatever format: gates, and what was not run.

use serde_json::{Value, json};

use crate::project::Project;

const PASS: &str = "steps: [{say: done}]";

/// An agent that breaks in its first trial.
fn shaky(project: &Project) {
    let line = format!("mkdir {} 2>/dev/null && exit 1; echo fine", project.path("flag").display());
    project.harness("shaky", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
}

/// The stored run's report in a format.
fn again(project: &Project, format: &str) -> String {
    project.evals(&["report", "latest", "--format", format, "-o", "-"]).exits(0).out
}

fn stored(project: &Project) -> Value {
    serde_json::from_str(&again(project, "json")).unwrap()
}

/// Failures and errors that a JUnit file counts.
fn red(junit: &str) -> (usize, usize) {
    let xml = roxmltree::Document::parse(junit).unwrap();
    let count = |name: &str| xml.root_element().attribute(name).unwrap().parse().unwrap();
    (count("failures"), count("errors"))
}

#[test]
fn a_critical_case_whose_verdict_is_open_leaves_the_gate_open() {
    let project = Project::new();
    project.case("a", "critical: true\ntrials: 2\ngraders: [{output: {equals: fine}}]", "");
    shaky(&project);
    let args = ["run", "--harness", "shaky", "--jobs", "1", "--fail-under", "0.8"];
    let open = "is critical, and it is unknown whether it passes: 1 of 2 trials errored";
    project
        .evals(&args)
        .exits(3)
        .says("gate pass: shaky scores 100.0 %")
        .says("gate inconclusive: a (shaky)")
        .says(open);
    // So does one that was not run at all, beside a trial that passed.
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.case("a", "critical: true\ntrials: 2", "steps: [{usage: {cost-usd: 0.6}}, {say: done}]");
    let spent = ["run", "--jobs", "1", "--max-cost", "0.5", "--fail-under", "0.5"];
    project.evals(&spent).exits(3).says("gate inconclusive: a (demo) is critical, and it is unknown whether it passes");
}

#[test]
fn trials_without_a_score_leave_a_low_score_open_and_each_gate_is_a_test_case_of_its_own() {
    let project = Project::new();
    for id in ["a", "b", "c", "d"] {
        project.case(id, "graders: [{output: {equals: fine}}]", "");
    }
    // The first trial passes, the second fails, and the others crash.
    let flag = project.path("count").display().to_string();
    let line =
        format!("echo x >> {flag}; n=$(wc -l < {flag}); [ $n -gt 2 ] && exit 1; [ $n -eq 1 ] && echo fine || echo bad");
    project.harness("counts", &format!("adapter: output-only\ncommand: [sh, -c, '{line}']"));
    let open = "gate inconclusive: counts scores 50.0 %, below 60.0 %; trials without a score could raise it to 75.0 %";
    project.evals(&["run", "--harness", "counts", "--jobs", "1", "--fail-under", "0.6"]).exits(3).says(open);
    let junit = again(&project, "junit");
    let xml = roxmltree::Document::parse(&junit).unwrap();
    let cases = xml.descendants().filter(|node| node.has_tag_name("testcase"));
    let names: Vec<_> = cases.map(|case| (case.attribute("classname"), case.attribute("name"))).collect();
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "{names:?}");
    for name in ["counts (gate)", "counts: completed trials (gate)"] {
        assert!(names.contains(&(Some("counts"), Some(name))), "{names:?}");
    }
    // Not even 75 % are enough.
    let resumed = project.evals(&["run", "--resume", "latest", "--fail-under", "0.8"]).exits(1);
    resumed.says("gate fail: counts scores 50.0 %");
}

#[test]
fn a_snapshot_that_differs_is_1_beside_a_gate_that_passes() {
    let project = Project::new();
    project.case("a", "", "steps: [{say: one}]");
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    project.case("a", "", "steps: [{write: {path: x, text: y}}, {say: two}]");
    project.evals(&["run", "--fail-under", "0.5"]).exits(1).says("gate pass").says("1 snapshot differs");
    project.evals(&["run", "--help"]).exits(0).says("a snapshot that differs still gives 1");
}

#[test]
fn a_stored_run_has_the_gates_that_it_was_asked_for() {
    let project = Project::new();
    project.case("a", "", PASS);
    project.case("b", "graders: [{output: {equals: never}}]", PASS);
    let run = |least: &str, code: i32| {
        let args = ["run", "--fail-under", least, "--reporter", "json=r.json", "--reporter", "junit=r.xml"];
        project.evals(&[&args[..], &["--reporter", "github=r.txt", "--reporter", "table=t.txt"]].concat()).exits(code);
        let told: Value = serde_json::from_str(&project.read("r.json")).unwrap();
        assert_eq!(told["exit_code"], code);
        assert_eq!(stored(&project), told, "the same whoever asks");
        assert_eq!(
            (again(&project, "junit"), again(&project, "github")),
            (project.read("r.xml"), project.read("r.txt"))
        );
        assert_eq!(again(&project, "table"), project.read("t.txt"));
    };
    run("0.4", 0);
    assert!(!project.read("r.txt").contains("gate") && project.read("t.txt").contains("gate pass: demo scores 50.0 %"));
    run("0.9", 1);
    let annotation = "::error title=gate fail%3A demo::demo scores 50.0 %25, below 90.0 %25";
    assert_eq!(project.read("r.txt").lines().next(), Some(annotation));
    assert!(project.read("r.xml").contains("name=\"demo (gate)\""));
    // One that goes on keeps it, unless something else is said now; that stays as well.
    project.evals(&["run", "--resume", "latest"]).exits(1).says("gate fail");
    project.evals(&["run", "--resume", "latest", "--fail-under", "0.3"]).exits(0).says("gate pass");
    assert_eq!(stored(&project)["gates"][0]["bound"], 0.3);
    project.evals(&["grade", "latest"]).exits(0).says("gate pass");
    // What failed is run again as a run of its own, of which nothing was asked.
    project.evals(&["run", "--resume", "latest", "--rerun", "failed", "--dry-run"]).exits(0);
    project.evals(&["run", "--resume", "latest", "--rerun", "failed", "--reporter", "json=r.json"]).exits(1);
    let told: Value = serde_json::from_str(&project.read("r.json")).unwrap();
    assert_eq!((&told["exit_code"], told.get("gates")), (&json!(1), None));
    // A gate that is open is a warning.
    project.case("c", "", "");
    project.harness("absent", "adapter: acp\ncommand: [absent-agent]");
    project.evals(&["run", "--harness", "absent", "--case", "c", "--fail-under", "0.1"]).exits(3);
    assert!(
        again(&project, "github").starts_with("::warning title=gate inconclusive%3A absent::absent has no score\n")
    );
}

#[test]
fn what_was_not_run_is_red_where_the_exit_code_is() {
    let project = Project::new();
    for id in ["a", "b"] {
        project.case(id, "", "steps: [{usage: {cost-usd: 0.6}}, {say: done}]");
    }
    project.evals(&["run", "--max-cost", "0.5", "--jobs", "1"]).exits(3);
    assert_eq!(red(&again(&project, "junit")), (0, 1));
    assert!(again(&project, "junit").contains("<error message=\"1 of 1 trial not run\" type=\"not_run\"/>"));
    let github = again(&project, "github");
    assert!(github.starts_with("::warning "), "{github}");
    assert!(github.contains("title=not run%3A b (demo)::1 of 1 trial not run"), "{github}");
    // A cell that has passed whatever its other trials come to.
    let project = Project::new();
    project.case("a", "trials: 3\npass: {trials: any}", "steps: [{usage: {cost-usd: 0.6}}, {say: done}]");
    project.evals(&["run", "--max-cost", "0.5", "--jobs", "1"]).exits(3);
    let junit = again(&project, "junit");
    assert_eq!(red(&junit), (0, 1), "{junit}");
    assert!(junit.contains("name=\"a (not run)\"") && junit.contains("2 of 3 trials not run"), "{junit}");
    assert!(again(&project, "github").contains("2 of 3 trials not run"));
}

#[test]
fn a_run_in_which_everything_was_skipped_says_so() {
    let project = Project::new();
    project.case("b", "mcp-servers: [{name: x, command: 'true', args: []}]", PASS);
    project.evals(&["run", "--harness", "demo-stream"]).exits(3);
    let junit = again(&project, "junit");
    assert_eq!(red(&junit), (0, 1), "{junit}");
    assert!(junit.contains("nothing was graded"), "{junit}");
    let github = again(&project, "github");
    assert!(
        github.starts_with("::warning title=everything was skipped::nothing was graded: 1 trial skipped"),
        "{github}"
    );
    assert_eq!(github.lines().count(), 1);
}

#[test]
fn a_harness_that_skips_all_its_cases_has_no_gate_unless_there_is_no_other() {
    let project = Project::new();
    project.case("a", "requires: {tracing: true}", PASS);
    project.demo("quiet", "capabilities: {tracing: false}");
    let both = project.evals(&["run", "--harness", "demo", "--harness", "quiet", "--fail-under", "0.5"]).exits(0);
    assert!(!both.says("gate pass: demo scores 100.0 %").out.contains("inconclusive"));
    let alone = project.evals(&["run", "--harness", "quiet", "--fail-under", "0.5"]).exits(3);
    alone.says("gate inconclusive: quiet has no score");
    // Grading such a run again exits as the run does.
    project.evals(&["run", "--harness", "quiet", "--label", "skipped"]).exits(3);
    project.evals(&["grade", "skipped"]).exits(3).says("nothing was graded");
}

#[test]
fn an_arm_against_itself_is_green_where_the_exit_code_is_0() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: never}}]", PASS);
    project.evals(&["run", "--aa", "--trials", "2"]).exits(0);
    let junit = again(&project, "junit");
    assert_eq!(red(&junit), (0, 0), "{junit}");
    assert!(junit.contains("<flakyFailure "), "its trials failed nevertheless: {junit}");
    let github = again(&project, "github");
    assert!(github.contains("::warning ") && !github.contains("::error "), "{github}");
    // A verdict that is unknown is still red.
    project.case("a", "graders: [{rubric: {criteria: [{id: a, ask: Is it?}]}}]", PASS);
    project.evals(&["run", "--aa", "--trials", "2"]).exits(3);
    assert!(red(&again(&project, "junit")).1 > 0);
}
