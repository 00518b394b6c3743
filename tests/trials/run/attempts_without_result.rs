//! Attempts without a result: what they cost counts wherever costs are shown, and their runs are not finished.

use serde_json::{Value, json};

use crate::project::Project;

/// Makes a run `old` of two trials that cost a dollar each, and a run `new` whose second trial was interrupted after it had
/// reported its cost.
fn interrupted() -> Project {
    let project = Project::new();
    for case in ["a", "b"] {
        project.case(case, "", "steps: [{usage: {cost-usd: 1}}, {say: done}]");
    }
    project.evals(&["run", "--label", "old"]).exits(0);
    project.evals(&["run", "--jobs", "1", "--max-cost", "1", "--label", "new"]).exits(3);
    let trials = format!("{}/trials", project.run_named("new"));
    let log = project.read(&format!("{trials}/a/demo/default/1/wire.jsonl"));
    project.write(&format!("{trials}/b/demo/default/1/wire.jsonl"), &log);
    project
}

/// Returns the cost of the only column of a run, and the number of trials whose cost is not known.
fn cost(project: &Project, run: &str) -> (Value, Value) {
    let report = project.evals(&["report", run, "--format", "json"]).exits(0).json();
    (report["columns"][0]["cost_usd"].clone(), report["columns"][0]["cost_unknown"].clone())
}

#[test]
fn gates_see_the_cost_of_attempts_without_a_result() {
    let project = interrupted();
    let compare = |most: &str, format: &str| {
        let gates = ["--gate", "completed=0,cases=0", "--max-cost", most, "--format", format];
        project.evals(&[&["compare", "old", "new"][..], &gates].concat())
    };
    compare("1.5", "table").exits(1).says("costs $2");
    compare("5", "table").exits(3).says("the cost of 1 trial is unknown");
    let arm = compare("5", "json").exits(3).json()["arms"][1].clone();
    assert_eq!((&arm["cost_usd"], &arm["cost_unknown"]), (&json!(2.0), &json!(1)), "{arm}");
    assert_eq!((&arm["trials"], &arm["cost_per_trial"]), (&json!(1), &json!(1.0)), "an attempt is no trial: {arm}");
    assert_eq!(arm["cost_per_success"], 1.0, "{arm}");
    let page = compare("5", "table").exits(3);
    let page = page.says("1 of 2 trials has an attempt without a result, whose cost counts for --max-cost only");
    page.says("$1.00 instead of $1.00");
}

#[test]
fn a_history_has_the_cost_of_attempts_without_a_result() {
    let project = interrupted();
    let history = project.evals(&["history", "b", "--format", "json"]).exits(0).json();
    let point = &history["cells"][0]["points"][1];
    assert_eq!((&point["cost_usd"], &point["cost_unknown"]), (&json!(1.0), &json!(1)), "{point}");
}

#[test]
fn a_regraded_run_has_the_cost_of_attempts_without_a_result() {
    let project = interrupted();
    for (from, label) in [("new", "once"), ("once", "twice")] {
        project.evals(&["grade", from, "--label", label]).exits(3);
        assert_eq!(cost(&project, label), (json!(2.0), json!(1)), "{label}");
    }
}

#[test]
fn a_run_whose_rerun_was_interrupted_is_not_finished() {
    let project = Project::new();
    let steps = "steps: [{usage: {cost-usd: 1}}, {say: done}]";
    project.case("a", "", steps);
    project.case("b", "graders: [{budget: {tokens: 5}}]", steps);
    project.evals(&["run", "--label", "old"]).exits(3);
    project.evals(&["run", "--label", "new"]).exits(3);
    assert_eq!(cost(&project, "new"), (json!(2.0), json!(0)));
    // As an engine leaves it that was killed in the second attempt.
    let run = project.run_named("new");
    project.without_digests(&run);
    let trial = project.path(&format!("{run}/trials/b/demo/default/1"));
    std::fs::create_dir_all(trial.join("attempts/1")).unwrap();
    for name in ["result.json", "trace.jsonl"] {
        std::fs::rename(trial.join(name), trial.join("attempts/1").join(name)).unwrap();
    }
    let journal = format!("{run}/journal.jsonl");
    let is_start_of_b = |line: &&str| line.contains("\"started\"") && line.contains("\"case\":\"b\"");
    let text = project.read(&journal);
    let again = text.lines().find(is_start_of_b).unwrap().replace("\"attempt\":1", "\"attempt\":2");
    project.write(&journal, &format!("{text}{again}\n"));
    let left = "is not finished, so it cannot be a baseline: 1 trial of 2 not run again; resume it with";
    project.evals(&["baseline", "set", "new"]).exits(2).says(left);
    project.evals(&["compare", "new", "new"]).exits(2).says("so it cannot be compared: 1 trial of 2 not run again");
    // The cost of the second attempt counts, also after the trial was graded again.
    assert_eq!(cost(&project, "new"), (json!(3.0), json!(1)));
    project.evals(&["grade", "new", "--label", "again"]).exits(3);
    assert_eq!(cost(&project, "again"), (json!(3.0), json!(1)));
    let gates = ["--gate", "completed=0,cases=0", "--max-cost", "2.5"];
    project.evals(&[&["compare", "old", "again"][..], &gates].concat()).exits(1).says("costs $3");
}
