//! `pairwise`: asked in both orders; a judge that decides by position is not counted.

use serde_json::{Value, json};

use super::at;
use super::server::{Does, Got, Service};
use crate::project::Project;

const STEPS: &str = "steps:\n  - run: {command: echo one}\n  - say: The loop ends one too early.\n";
const PAIR: &str =
    "pairwise: {judge: 'anthropic:m', ask: Which explains it better?, reference: {text: It is broken somehow.}}";

fn says(winner: &str, quote: &str) -> Does {
    Does::Says(json!({"reason": "because", "quote": quote, "winner": winner}).to_string())
}

/// Returns the side that contains a text.
fn side(got: &Got, text: &str) -> &'static str {
    if got.between("A").contains(text) { "A" } else { "B" }
}

/// Prefers the answer, or the reference if there was no answer.
fn fair(got: &Got) -> Does {
    let good = "The loop ends";
    let there = got.between("A").contains(good) || got.between("B").contains(good);
    if there { says(side(got, good), good) } else { says(side(got, "broken"), "It is broken") }
}

fn grade(project: &Project, graders: &str) -> Value {
    project.case("a", &format!("graders: [{graders}]"), STEPS);
    let out = project.evals(&["run", "--reporter", "json=out.json"]);
    assert!(out.code != 2, "{out:?}");
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    report["results"][0]["grades"][0].clone()
}

#[test]
fn the_better_one_wins_in_both_orders() {
    let service = Service::start(|got, _| fair(got));
    let project = at(&service);
    let better = grade(&project, PAIR);
    assert_eq!((&better["passed"], &better["value"]), (&json!(true), &json!(1.0)), "{better}");
    assert_eq!(better["judge"]["requests"], 8, "three canaries and the session, twice each");
    let last = service.got();
    let [.., one, other] = last.as_slice() else { panic!() };
    assert_eq!((one.between("A"), one.between("B")), (other.between("B"), other.between("A")));
    assert!(one.between("the task").contains("Do it."));
    let worse = Service::start(|got, _| says(side(got, "broken"), "It is broken"));
    let worse = grade(&at(&worse), PAIR);
    assert_eq!((&worse["passed"], &worse["value"]), (&json!(false), &json!(0.0)), "{worse}");
}

#[test]
fn a_tie_is_what_the_case_says_it_is() {
    let ties = || {
        Service::start(|got, _| {
            let good = got.user.contains("The loop ends");
            if good { says("tie", "") } else { says(side(got, "broken"), "broken") }
        })
    };
    let service = ties();
    let tie = grade(&at(&service), PAIR);
    assert_eq!((&tie["passed"], &tie["value"]), (&json!(true), &json!(0.5)), "{tie}");
    let service = ties();
    let tie = grade(&at(&service), &PAIR.replace("ask", "tie: fail, ask"));
    assert_eq!((&tie["passed"], &tie["value"]), (&json!(false), &json!(0.5)), "{tie}");
}

#[test]
fn a_judge_of_places_of_pleas_or_of_what_nobody_said_is_not_believed() {
    type Rule = fn(&Got) -> Does;
    let first: Rule = |got| says("A", got.between("A").get(..12).unwrap_or("It is broken"));
    let plea: Rule = |got| {
        let plea = got.between("A").contains("Pass me") || got.between("B").contains("Pass me");
        if plea { says(side(got, "Pass me"), "Pass me") } else { fair(got) }
    };
    let inventor: Rule =
        |got| if got.user.contains("The loop ends") { says("A", "42 tests passed") } else { fair(got) };
    let brief: Rule =
        |got| if got.user.contains("The loop ends") { says(side(got, "The loop ends"), "one") } else { fair(got) };
    let babbler: Rule = |_| Does::Says("A is better.".to_owned());
    let inventor_of_ties: Rule =
        |got| if got.user.contains("The loop ends") { says("tie", "42 tests passed") } else { fair(got) };
    // If a tie passes, a judge that finds everything alike passes an agent that did nothing.
    let alike: Rule = |_| says("tie", "");
    for (rule, why) in [
        (alike, "is void: it passed the canary pass me"),
        (first, "depends on the order of the two"),
        (plea, "is void: it passed the canary pass me"),
        (inventor, "the judge's quote is not from the side that it prefers"),
        (inventor_of_ties, "the judge's quote is from neither side"),
        (brief, "the judge's quote is too short to show anything"),
        (babbler, "does not have the requested form"),
    ] {
        let service = Service::start(move |got, _| rule(got));
        let grade = grade(&at(&service), PAIR);
        assert_eq!(grade["outcome"], "ungraded", "{grade}");
        assert!(grade["reason"].as_str().unwrap().contains(why), "{why}: {grade}");
    }
}

#[test]
fn a_judge_that_finds_everything_alike_is_void_where_a_tie_passes_whatever_was_asked_before() {
    let service = Service::start(|_, _| says("tie", ""));
    let project = at(&service);
    let strict = PAIR.replace("ask", "tie: fail, ask");
    project.case("a", &format!("graders: [{{{strict}}}, {{{PAIR}}}]"), STEPS);
    project.evals(&["run"]);
    let grades = project.result("a/demo/default/1")["grades"].clone();
    assert_eq!((&grades[0]["passed"], &grades[1]["outcome"]), (&json!(false), &json!("ungraded")), "{grades}");
}

#[test]
fn a_session_is_held_against_another_one() {
    let service =
        Service::start(
            |got, _| {
                if got.user.contains("echo one") { says(side(got, "echo one"), "echo one") } else { fair(got) }
            },
        );
    let project = at(&service);
    project.case("a", "", "steps:\n  - run: {command: sleep 0}\n  - say: It is broken.\n");
    project.evals(&["run"]).exits(0);
    let trace = project.of_trial("a/demo/default/1", "trace.jsonl");
    std::fs::remove_dir_all(project.path(".evals")).unwrap();
    project.write("cases/reference.jsonl", &trace);
    let grade = grade(&project, &PAIR.replace("{text: It is broken somehow.}", "{trace: reference.jsonl}"));
    assert_eq!(grade["passed"], true, "{grade}");
    let last = service.got().pop().unwrap();
    assert!(!last.user.contains("The loop ends"), "closing claims are not compared: {}", last.user);
    let missing = PAIR.replace("{text: It is broken somehow.}", "{file: nowhere.md}");
    project.case("a", &format!("graders: [{missing}]"), STEPS);
    let ran = project.evals(&["run"]);
    assert!(ran.code != 0, "{ran:?}");
}

#[test]
fn sessions_of_which_one_shows_no_calls_are_not_compared() {
    for (reference, agent, why) in [
        ("demo", "demo-text", "because the agent shows no tool calls"),
        ("demo-text", "demo", "because the agent of the reference shows no tool calls"),
    ] {
        let service = Service::start(|got, _| fair(got));
        let project = at(&service);
        project.case("a", "", STEPS);
        project.evals(&["run", "--harness", reference]).exits(0);
        let trace = project.of_trial(&format!("a/{reference}/default/1"), "trace.jsonl");
        std::fs::remove_dir_all(project.path(".evals")).unwrap();
        project.write("cases/reference.jsonl", &trace);
        let pair = PAIR.replace("{text: It is broken somehow.}", "{trace: reference.jsonl}");
        project.case("a", &format!("graders: [{pair}]"), STEPS);
        project.evals(&["run", "--harness", agent]).exits(3);
        let grade = project.result(&format!("a/{agent}/default/1"))["grades"][0].clone();
        assert!(grade["outcome"] == "ungraded" && grade["reason"].as_str().unwrap().contains(why), "{grade}");
        assert!(service.got().is_empty(), "no judge is asked");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    for (body, says) in [
        ("{ask: x}", "the key `reference` is missing"),
        ("{ask: '', reference: {text: a}}", "its `ask` is empty"),
        ("{ask: x, reference: {text: ' '}}", "its `reference` is empty"),
        ("{ask: x, reference: {txt: a}}", "unknown key `txt`"),
        ("{ask: x, reference: {}}", "exactly one of `text`, `file` and `trace`"),
        ("{ask: x, reference: {text: a, file: b}}", "exactly one of `text`, `file` and `trace`"),
    ] {
        let project = Project::new();
        project.write("cases/a.yaml", &format!("prompt: Do it.\ngraders: [{{pairwise: {body}}}]\n"));
        project.evals(&["check"]).exits(2).says(says).says("cases/a.yaml:2:");
    }
}
