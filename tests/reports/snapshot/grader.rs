//! The grader `snapshot`, and what becomes of it where a run accepts what its trials do.

use serde_json::{Value, json};

use super::runs::{KEYS, READS, SNAP};
use crate::project::Project;

#[test]
fn a_snapshot_is_a_grader_too() {
    let project = Project::new();
    let case = |keys: &str, steps: &str| project.case("a", &format!("{KEYS}\n{keys}"), steps);
    let grade = |project: &Project| -> Value {
        let json = project.evals(&["report", "--format", "json"]).exits(0).json();
        json["results"][0]["grades"][0].clone()
    };
    case("graders: [{snapshot: {}}]", READS);
    project.evals(&["run"]).exits(3);
    let ungraded = grade(&project);
    assert_eq!(ungraded["outcome"], "ungraded");
    assert!(ungraded["reason"].as_str().unwrap().contains("no snapshot is accepted"), "{ungraded}");
    project.evals(&["snapshot", "accept"]).exits(0);
    // What is stored can be judged again.
    project.evals(&["grade", "latest"]).exits(0).says("ungraded -> pass");
    project.evals(&["run"]).exits(0);
    let changed = READS.replace("new: two", "new: three");
    case("graders: [{snapshot: {}}]", &changed);
    project.evals(&["run"]).exits(1);
    let failed = grade(&project);
    assert_eq!((&failed["passed"], &failed["value"]), (&json!(false), &json!(0.75)));
    assert_eq!(failed["reason"], "step 2: edit changed (- new: two; + new: three)");
    let trace = project.evals(&["show", "latest"]).exits(0).out;
    assert!(trace.contains("three") && failed["evidence"].as_array().unwrap().len() == 2, "{failed}");
    // A share is enough where it says so; as a gate it decides alone; a diagnostic decides nothing.
    case("graders: [{snapshot: {min: 0.7}}]", &changed);
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    case("graders: [{snapshot: {gate: true}}, {stop: {reason: [end_turn], weight: 9}}]", &changed);
    project.evals(&["run", "--snapshot", "off"]).exits(1);
    case("graders: [{snapshot: {diagnostic: true}}, {stop: {reason: [end_turn]}}]", &changed);
    project.evals(&["run", "--snapshot", "off"]).exits(0);
    assert_eq!(grade(&project)["passed"], false);
    // Without tracing nobody can judge, and what asserts nothing is refused.
    case("graders: [{snapshot: {}}]", READS);
    project.evals(&["run", "--harness", "demo-text"]).exits(3);
    assert!(grade(&project)["reason"].as_str().unwrap().contains("shows no tool calls"));
    case("graders: [{snapshot: {min: 0}}]", READS);
    project.evals(&["check"]).exits(2).says("checks nothing");
    case("graders: [{snapshot: {mni: 1}}]", READS);
    project.evals(&["check"]).exits(2).says("did you mean `min`?");
    // A model that the manifest asks for by itself makes no other cell, for the run and for the grader.
    case("graders: [{snapshot: {}}]", READS);
    project.demo("preset", "model: {via: config-option, default: demo-1}");
    project.evals(&["run", "--harness", "preset", "--snapshot", "update"]).exits(0);
    assert!(project.path("cases/a.snapshots/preset.snap").is_file());
    project.evals(&["run", "--harness", "preset"]).exits(0);
    // A snapshot that cannot be read is no failure of the agent.
    project.write(SNAP, "evals-snapshot: 1\nharness: demo\nshape: 1 of 1 trials\n  jump\n");
    project.evals(&["run", "--snapshot", "off"]).exits(3);
    assert!(grade(&project)["reason"].as_str().unwrap().contains("line 4: `jump` has no `:`"));
}

#[test]
fn a_comparison_names_cells_whose_accepted_snapshot_is_another_one() {
    let project = Project::new();
    project.case("a", &format!("{KEYS}\ngraders: [{{snapshot: {{}}}}, {{stop: {{reason: [end_turn]}}}}]"), READS);
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    let changed = project.read(SNAP).replace("new: two", "new: three");
    project.evals(&["run", "--label", "old"]).exits(0);
    project.evals(&["run", "--label", "same"]).exits(0);
    project.write(SNAP, &changed);
    project.evals(&["run", "--label", "new", "--snapshot", "off"]).exits(1);
    let doubts = |old: &str, new: &str| {
        let found = project.evals(&["compare", old, new, "--format", "json"]).json();
        let all = found["pairs"][0]["doubts"].as_array().unwrap().clone();
        all.into_iter().filter(|doubt| doubt["about"] == "snapshots").collect::<Vec<Value>>()
    };
    assert_eq!(doubts("old", "same"), [] as [Value; 0]);
    let text = "the accepted snapshots are not the same on both sides: a (snapshot)";
    assert_eq!(doubts("old", "new"), [json!({"about": "snapshots", "text": text})]);
    // A run that accepts what it does says nothing about a change.
    project.evals(&["run", "--label", "own", "--snapshot", "update"]).exits(0);
    let own = "demo (own): the run accepted its own snapshots, so these graders could not fail: a (snapshot)";
    assert_eq!(doubts("old", "own"), [json!({"about": "snapshots", "text": own})]);
    // A baseline keeps which snapshots decided.
    project.evals(&["baseline", "set", "old", "--file", "base.json"]).exits(0);
    assert_eq!(doubts("base.json", "new")[0]["text"], text);
    assert_eq!(doubts("base.json", "same"), [] as [Value; 0]);
}

#[test]
fn an_update_accepts_what_its_graders_would_have_failed() {
    let project = Project::new();
    let keys = format!("{KEYS}\ngraders: [{{snapshot: {{gate: true}}}}, {{stop: {{reason: [end_turn]}}}}]");
    project.case("a", &keys, READS);
    let grade = || -> Value {
        let json = project.evals(&["report", "--format", "json"]).exits(0).json();
        json["results"][0]["grades"][0].clone()
    };
    project.evals(&["run", "--snapshot", "update"]).exits(0).says("1 snapshot accepted");
    let reason = grade()["reason"].as_str().unwrap().to_owned();
    assert!(
        reason.starts_with("the run accepts the new snapshot (`--snapshot update`); before: no snapshot is accepted"),
        "{reason}"
    );
    project.evals(&["run", "--snapshot", "update"]).exits(0);
    assert_eq!(grade()["reason"], "the trial matches the accepted snapshot: 4 items");
    // An agent that has changed is accepted too, with what was otherwise, and stays accepted.
    let changed = READS.replace("new: two", "new: three");
    project.case("a", &keys, &changed);
    project.evals(&["run", "--fail-fast", "--trials", "2", "--snapshot", "update"]).exits(0).says("accepted a demo");
    let told = grade();
    assert!(told["reason"].as_str().unwrap().contains("before: step 2: edit changed"), "{told}");
    assert_eq!((&told["passed"], told["evidence"].as_array().unwrap().len()), (&json!(true), 2));
    project.evals(&["run"]).exits(0);
    project.evals(&["grade", "latest"]).exits(0);
    // What other graders fail stays failed, and so does the snapshot where nothing is written.
    project.case("a", &keys.replace("end_turn", "refusal"), READS);
    project.evals(&["run", "--snapshot", "update"]).exits(1).says("1 snapshot accepted");
    let mut project = project;
    project.case("a", &keys, &changed);
    project.env("CI", "true");
    project.evals(&["run", "--snapshot", "update"]).exits(1).says("CI is set").says("edit changed");
    let json = project.evals(&["report", "--format", "json"]).exits(0).json();
    assert_eq!(json["results"][0]["grades"][0]["passed"], false);
}
