//! Models: each is a column, asked of the agent as its manifest says, and the one that answered is told.

use crate::project::{Project, of_type};

const PASS: &str = "steps: [{say: done}]";

#[test]
fn each_model_is_a_column_and_the_same_one_twice_a_further_arm() {
    let project = Project::new();
    project.case("a", "", PASS);
    let args = ["run", "--model", "one", "--model", "two", "--model", "one", "--trials", "2"];
    project.evals(&args).exits(0).says("one").says("one#2");
    for (arm, folder, model) in [("one", "one", "one"), ("two", "two", "two"), ("one#2", "one%232", "one")] {
        for trial in [1, 2] {
            let result = project.result(&format!("a/demo/{folder}/{trial}"));
            assert_eq!((&result["arm"], &result["trial"]), (&arm.into(), &trial.into()));
            assert_eq!(result["model"]["requested"], model);
            assert_eq!(result["model"]["effective"], model);
            let header = &project.trace(&format!("a/demo/{folder}/{trial}"))[0];
            assert_eq!((&header["model"]["requested"], &header["model"]["effective"]), (&model.into(), &model.into()));
        }
    }
    let report = project.evals(&["report", "--format", "json"]).json();
    assert_eq!(report["results"].as_array().unwrap().len(), 6);
}

#[test]
fn a_model_reaches_every_form_of_the_demo() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", PASS);
    let args = ["run", "--harness", "demo-stream", "--harness", "demo-text", "--harness", "demo", "--model", "m/1"];
    project.evals(&args).exits(0);
    assert_eq!(project.result("a/demo-stream/m%2F1/1")["model"]["effective"], "m/1");
    // A plain command tells no model.
    let text = project.result("a/demo-text/m%2F1/1");
    assert_eq!((&text["model"]["requested"], text["model"].get("effective")), (&"m/1".into(), None));
}

#[test]
fn a_model_meant_for_one_harness_is_asked_of_that_one_alone() {
    let project = Project::new();
    project.case("a", "graders: [{output: {contains: done}}]", PASS);
    project.evals(&["run", "--harness", "demo", "--harness", "demo-text", "--model", "demo=m"]).exits(0);
    assert_eq!(project.result("a/demo/m/1")["model"]["requested"], "m");
    assert!(project.result("a/demo-text/default/1")["model"].get("requested").is_none());
}

#[test]
fn a_model_that_the_agent_refuses_is_a_handshake_error() {
    let project = Project::new();
    project.case("a", "", "models: [demo-1, demo-2]\nsteps: [{say: done}]");
    project.evals(&["run", "--model", "demo-2", "--model", "demo-9"]).exits(3);
    assert_eq!(project.result("a/demo/demo-2/1")["model"]["effective"], "demo-2");
    let refused = project.result("a/demo/demo-9/1");
    assert_eq!((&refused["verdict"], &refused["error"]["category"]), (&"errored".into(), &"handshake".into()));
    assert_eq!(refused["stop"]["reason"], "error");
    assert!(refused["error"]["message"].as_str().unwrap().contains("demo-9"), "{refused}");
    assert!(of_type(&project.trace("a/demo/demo-9/1"), "message").is_empty(), "nothing was asked of it");
}

#[test]
fn an_agent_by_variable_or_by_placeholder() {
    let project = Project::new();
    project.case("a", "graders: [{output: {equals: big}}]", "");
    project.harness("by-env", "adapter: output-only\ncommand: [sh, -c, 'echo $WHICH']\nmodel: {via: env, env: WHICH}");
    project.harness("by-flag", "adapter: output-only\ncommand: [echo, '{model}']\nmodel: {via: flag, default: big}");
    project.evals(&["run", "--harness", "by-env", "--model", "big"]).exits(0);
    project.evals(&["run", "--harness", "by-flag"]).exits(0);
}
