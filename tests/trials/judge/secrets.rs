//! Secrets are not sent to a judge, and a secret in an answer is not stored.

use serde_json::{Value, json};

use super::server::{Does, Got, Service, answer_of, finding, honest};
use super::{TESTED, at};
use crate::project::Project;

const SECRET: &str = "hunter2-hunter2";

/// The steps of an agent that prints a secret.
const LEAKS: &str =
    "steps:\n  - run: {command: 'echo token hunter2-hunter2'}\n  - say: 'The token is hunter2-hunter2.'\n";

fn project(service: &Service) -> Project {
    let mut project = at(service);
    project.env("DEPLOY_TOKEN", SECRET);
    project.demo("leaky", "env: {pass: [DEPLOY_TOKEN]}");
    project
}

/// Runs the case, and searches for the secret in the requests and in all stored files, including the cache.
fn run(project: &Project, service: &Service, graders: &str) -> Value {
    project.case("a", &format!("graders: [{graders}]"), LEAKS);
    let ran = project.evals(&["run", "--harness", "leaky"]);
    assert!(!ran.out.contains(SECRET) && !ran.err.contains(SECRET), "{ran:?}");
    for got in service.got() {
        assert!(!got.text.contains(SECRET), "{}", got.text);
    }
    let last = service.got().pop().unwrap();
    assert!(last.text.contains("[redacted:DEPLOY_TOKEN]"), "{}", last.text);
    let files = project.files(".evals");
    assert!(files.keys().any(|path| path.starts_with("cache/judge/")), "{:?}", files.keys());
    for (path, bytes) in files {
        assert!(!String::from_utf8_lossy(&bytes).contains(SECRET), "{path}");
    }
    project.result("a/leaky/default/1")["grades"][0].clone()
}

#[test]
fn a_rubric_s_judge_is_not_sent_them_and_what_it_says_of_them_is_not_kept() {
    let service = Service::start(|got: &Got, _| {
        honest(got).unwrap_or_else(|| {
            let mut says = finding("tested", "fail", &[2], "token [redacted:DEPLOY_TOKEN]");
            says["reason"] = json!(format!("it printed {SECRET}"));
            answer_of(&[says])
        })
    });
    let project = project(&service);
    let grade = run(&project, &service, &TESTED.replace("criteria", "show: [closing], criteria"));
    assert_eq!(grade["passed"], false, "what is masked can be quoted: {grade}");
    assert_eq!(grade["judge"]["criteria"][0]["reason"], "it printed [redacted:DEPLOY_TOKEN]");
}

#[test]
fn nor_is_one_that_compares() {
    let service = Service::start(|got: &Got, _| {
        // Masked text can be quoted as it was shown.
        let (ours, theirs) = ("The token is [redacted:DEPLOY_TOKEN].", "Nobody says [redacted:DEPLOY_TOKEN].");
        let side = |text: &str| if got.between("A").contains(text) { "A" } else { "B" };
        let is_there = got.between("A").contains(ours) || got.between("B").contains(ours);
        let quote = if is_there { ours } else { theirs };
        let winner = side(quote);
        let reason = format!("the token is {SECRET}");
        Does::Says(json!({"reason": reason, "quote": quote, "winner": winner}).to_string())
    });
    let project = project(&service);
    project.write("cases/reference.md", &format!("Nobody says {SECRET}.\n"));
    let pair = "pairwise: {judge: 'anthropic:m', ask: Which tells the token?, reference: {file: reference.md}}";
    let grade = run(&project, &service, pair);
    assert_eq!(
        (&grade["passed"], &grade["reason"]),
        (&json!(true), &json!("better than the reference: the token is [redacted:DEPLOY_TOKEN] (uncalibrated)")),
        "{grade}"
    );
}
