//! Interrupted and resumed runs with judges: the same judges judge each trial once, and nothing is paid twice.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::{Does, Got, Service, answer_of, finding, honest};
use super::{STEPS, TESTED, at};
use crate::project::Project;

fn passes(got: &Got) -> Does {
    honest(got).unwrap_or_else(|| answer_of(&[finding("tested", "pass", &[4], "the tests passed")]))
}

/// Makes a service that does not answer one request, given by its number, for a minute.
fn slow_at(request: usize) -> Service {
    Service::start(
        move |got, before| if before == request { Does::Waits(Duration::from_secs(60)) } else { passes(got) },
    )
}

fn results(project: &Project) -> Vec<Value> {
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    report["results"].as_array().unwrap().clone()
}

#[test]
fn a_run_that_is_interrupted_while_judges_are_asked_goes_on_and_pays_nothing_twice() {
    for cache in [&["--no-judge-cache"][..], &[]] {
        // The second trial has another session, because its case differs.
        let service = slow_at(4);
        let project = at(&service);
        project.case("a", &format!("graders: [{TESTED}]"), STEPS);
        project.case("b", &format!("graders: [{TESTED}]"), &STEPS.replace("I look first", "First I look"));
        let args = [&["run", "--jobs", "1"], cache].concat();
        super::interrupted(&project, &args, || service.got().len() == 5);
        let first = project.result("a/demo/default/1");
        assert_eq!(project.journal().iter().filter(|line| line["event"] == "finished").count(), 1);
        let go_on = [&["run", "--resume", "latest", "--reporter", "json=out.json"], cache].concat();
        project.evals(&go_on).exits(0);
        let results = results(&project);
        assert_eq!(results.len(), 2);
        assert_eq!(results[0], first, "what was judged stays");
        // A judge that is asked again is tested again, once.
        let canaries = service.got().iter().filter(|got| got.is_canary()).count();
        let requests = service.got().len();
        assert_eq!((canaries, requests), (6, 5 + 4));
        let told = |result: &Value| {
            let judge = &result["grades"][0]["judge"];
            (judge["requests"].clone(), judge["cached"].clone(), judge["cost_usd"].as_f64().unwrap() > 0.02)
        };
        assert_eq!(results.iter().map(told).collect::<Vec<_>>(), vec![(json!(4), json!(0), true); 2]);
        // With nothing left to do, no judge is asked.
        project.evals(&go_on).exits(0);
        assert_eq!(service.got().len(), requests);
        assert!(project.left_over().is_empty(), "{:?}", project.left_over());
    }
}

#[test]
fn the_models_of_attempts_that_were_run_again_are_paid_for_too() {
    let undecided = || answer_of(&[finding("tested", "unknown", &[], "")]);
    let allows = || Does::Says(json!({"reason": "so it is", "answer": "allow"}).to_string());
    let service = Service::start(move |got, _| match got.user.contains("May the agent do this?") {
        true => allows(),
        false => honest(got).unwrap_or_else(undecided),
    });
    let project = at(&service);
    let keys = format!("interaction: {{llm: {{model: 'anthropic:claude-opus-4-8'}}}}\ngraders: [{TESTED}]");
    project.case("a", &keys, "steps: [{run: {command: 'true', ask: true}}, {say: done}]");
    project.evals(&["run", "--no-judge-cache", "--label", "first"]).exits(3);
    let again = ["run", "--resume", "first", "--rerun", "ungraded", "--no-judge-cache", "--reporter", "json=out.json"];
    project.evals(&again).exits(3).says("judges $0.0500 in 8 requests, the policy `llm` $0.0125 in 2 requests");
    assert_eq!(service.got().len(), 10);
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    let earlier = &report["results"][0]["earlier_attempts"]["judges"];
    assert_eq!((&earlier["requests"], &earlier["tokens"]), (&json!(4), &json!(4200)), "{report}");
    assert_eq!(report["asked_models"]["judges"]["cost_unknown"], 0);
    // A run that grades again has asked its own judges alone.
    let graded = project.evals(&["grade", "first", "--no-judge-cache", "--format", "json"]).exits(3).json();
    let requests = |of: &str| graded["asked_models"][of]["requests"].clone();
    assert_eq!((requests("judges"), requests("policy")), (json!(4), json!(2)));
}

#[test]
fn what_was_answered_before_the_interrupt_is_not_asked_again() {
    let service = slow_at(7);
    let project = at(&service);
    let two = TESTED.replace("'anthropic:claude-opus-4-8'", "['anthropic:m', 'openai:n']");
    project.case("a", &format!("graders: [{two}]"), STEPS);
    // Three canaries and the session for each trial; the last request waits.
    super::interrupted(&project, &["run"], || service.got().len() == 8);
    assert!(project.journal().iter().all(|line| line["event"] != "finished"));
    project.evals(&["run", "--resume", "latest"]).exits(0);
    assert_eq!(service.got().len(), 8 + 4, "three canaries and the session of the one whose answer did not come");
    let judge = project.result("a/demo/default/1")["grades"][0]["judge"].clone();
    let [one, other] = [&judge["judges"][0], &judge["judges"][1]];
    assert!(one["verdicts"] == json!(["pass"]) && other["verdicts"] == json!(["pass"]), "{judge}");
    assert_eq!(judge["agreement"], 1.0);
}

#[test]
fn the_judges_of_a_run_are_those_that_it_goes_on_with() {
    let service = slow_at(4);
    let mut project = at(&service);
    project.env("EVALS_JUDGE", "anthropic:usual");
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    project.case("b", &format!("graders: [{TESTED}]"), &STEPS.replace("I look first", "First I look"));
    super::interrupted(&project, &["run", "--jobs", "1", "--judge", "openai:mine"], || service.got().len() == 5);
    let options = |project: &Project| -> Value {
        let record: Value = serde_json::from_str(&project.read(&format!("{}/run.json", project.run_folder()))).unwrap();
        record["options"]["judges"].clone()
    };
    let named = json!({"over": ["openai:mine"], "otherwise": ["anthropic:usual"]});
    assert_eq!(options(&project), named);
    // Another judge is refused.
    let asked = service.got().len();
    project
        .evals(&["run", "--resume", "latest", "--judge", "openai:other"])
        .exits(2)
        .says("the judges of run")
        .says("are openai:mine, and --judge openai:other would mix in others")
        .says("evals grade");
    assert_eq!(service.got().len(), asked);
    project.env("EVALS_JUDGE", "anthropic:changed");
    let ran = project.evals(&["run", "--resume", "latest", "--reporter", "json=out.json"]).exits(0);
    ran.says("EVALS_JUDGE names anthropic:changed, but the run keeps its own judges, anthropic:usual");
    let judges: Vec<Value> = results(&project).iter().map(|it| it["grades"][0]["judge"]["model"].clone()).collect();
    assert_eq!(judges, ["openai:mine", "openai:mine"]);
    assert_eq!(options(&project), named);
    // The same judge may be named again, and a new run may have other judges.
    project.evals(&["run", "--resume", "latest", "--judge", "openai:mine"]).exits(0);
    let graded = project.evals(&["grade", "latest", "--judge", "openai:other", "--format", "json"]).exits(0).json();
    assert_eq!(graded["results"][0]["grades"][0]["judge"]["model"], "openai:other");
}

#[test]
fn a_run_that_nobody_judged_takes_a_judge_when_it_goes_on() {
    let service = Service::start(|got, _| passes(got));
    let project = at(&service);
    let nobody = TESTED.replace("judge: 'anthropic:claude-opus-4-8', ", "");
    project.case("a", &format!("graders: [{nobody}]"), STEPS);
    project.evals(&["run"]).exits(3).says("no judge model is set");
    let go_on = ["run", "--resume", "latest", "--rerun", "ungraded", "--judge", "openai:mine"];
    project.evals(&go_on).exits(0);
    assert_eq!(project.result("a/demo/default/1")["grades"][0]["judge"]["model"], "openai:mine");
    // From here on the run has a judge.
    project.evals(&["run", "--resume", "latest", "--judge", "openai:other"]).exits(2).says("would mix in others");
    // A run whose graders name their judges has those.
    project.case("a", &format!("graders: [{TESTED}]"), STEPS);
    project.evals(&["run"]).exits(0);
    project
        .evals(&["run", "--resume", "latest", "--judge", "openai:other"])
        .exits(2)
        .says("are the ones that its graders name");
}

#[test]
fn judges_of_the_environment_are_named_if_others_are_refused() {
    let service = Service::start(|got, _| passes(got));
    let mut project = at(&service);
    project.env("EVALS_JUDGE", "openai:usual");
    let nobody = TESTED.replace("judge: 'anthropic:claude-opus-4-8', ", "");
    project.case("a", &format!("graders: [{nobody}]"), STEPS);
    project.evals(&["run"]).exits(0);
    let ran = project.evals(&["run", "--resume", "latest", "--judge", "openai:other"]).exits(2);
    ran.says("are openai:usual, from EVALS_JUDGE, for graders that name none, and --judge openai:other would mix in");
}
