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

/// An agent that answers what it is told to, for the sake of how its model is set.
fn agent(opened: &str, set: &str) -> String {
    format!(
        r#"#!/usr/bin/env python3
import sys, json
for line in sys.stdin:
    asked = json.loads(line)
    method, answer = asked.get("method"), {{}}
    if method == "initialize":
        answer = {{"protocolVersion": 1, "agentCapabilities": {{}}}}
    elif method == "session/new":
        answer = {{"sessionId": "s", **json.loads('''{opened}''')}}
    elif method in ("session/set_model", "session/set_config_option"):
        answer = json.loads('''{set}''')
    elif method == "session/prompt":
        answer = {{"stopReason": "end_turn"}}
    if "id" in asked:
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": answer}}), flush=True)
"#
    )
}

#[test]
fn a_model_is_set_by_the_call_that_the_manifest_or_else_the_agent_has() {
    let option = r#"{"id": "model", "category": "model", "type": "select", "currentValue": "m", "options": []}"#;
    let with_option = format!(r#"{{"configOptions": [{option}]}}"#);
    let answered = |value: &str| format!(r#"{{"configOptions": [{}]}}"#, option.replace("\"m\"", value));
    for (name, via, opened, set, method) in [
        ("called", "set-model", "{}", "{}", "session/set_model"),
        ("optioned", "config-option", &*with_option, &*answered("\"asked-for\""), "session/set_config_option"),
        // Without an option for it there is the call.
        ("fallen-back", "config-option", "{}", "{}", "session/set_model"),
        ("mistaken", "config-option", &*with_option, &*answered("\"another\""), "session/set_config_option"),
    ] {
        let project = Project::new();
        project.case("a", "", "");
        project.write("agent.py", &agent(opened, set));
        let at = project.path("agent.py").display().to_string();
        project.harness(name, &format!("adapter: acp\ncommand: [python3, {at}]\nmodel: {{via: {via}}}"));
        project.evals(&["run", "--harness", name, "--model", "asked-for"]).exits(0);
        let wire = project.of_trial(&format!("a/{name}/asked-for/1"), "wire.jsonl");
        let sent: Vec<&str> = wire.lines().filter(|line| line.contains("\"dir\":\"send\"")).collect();
        let setting: Vec<&&str> = sent.iter().filter(|line| line.contains("session/set_")).collect();
        assert_eq!(setting.len(), 1, "{name}: {setting:?}");
        assert!(setting[0].contains(method) && setting[0].contains("asked-for"), "{name}: {setting:?}");
        let trace = project.trace(&format!("a/{name}/asked-for/1"));
        let told = of_type(&trace, "notice").iter().any(|notice| notice["code"] == "model_mismatch");
        assert_eq!(told, name == "mistaken", "{name}: {trace:?}");
    }
}

#[test]
fn a_case_that_requires_a_choice_of_model_is_skipped_where_there_is_none() {
    let project = Project::new();
    project.case("a", "requires: {model-selection: true}", "");
    project.harness("fixed", "adapter: output-only\ncommand: [echo, done]");
    project.evals(&["run", "--harness", "fixed"]).exits(3).says("the case requires model selection");
}
