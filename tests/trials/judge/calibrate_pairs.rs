//! `evals calibrate` of a comparison: a judge with known errors and a known bias for the order.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::at;
use super::server::{Does, Got, Service};
use crate::project::{Project, lines};

const BETTER: &str = "\
description: Whether it explains the fault better
pairwise:
  judge: anthropic:m
  ask: Which answer is better?
  reference: {file: reference.md}
  require-calibration: true
";

/// The labelled answers: how many, how good, the judge's behaviour for them, the label by people, and the answer that
/// they are compared with instead of the grader's own.
const ANSWERS: [(usize, u32, &str, &str, Option<&str>); 8] = [
    (8, 9, "plain", "better", None),
    (6, 1, "plain", "worse", None),
    (3, 5, "plain", "tie", None),
    (2, 9, "order", "better", None),
    (1, 1, "flips", "worse", None),
    (1, 9, "flips", "better", None),
    (1, 9, "shy", "better", None),
    (1, 2, "plain", "better", Some("low.md")),
];

fn quality(text: &str) -> u32 {
    let number = text.split_once("quality ").and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
    number.unwrap_or(0)
}

/// Prefers the better answer; for some it prefers the worse one, for some the first one, and for some it gives no
/// verdict.
fn judge(got: &Got) -> Does {
    let (a, b) = (got.between("A"), got.between("B"));
    let says = |winner: &str| {
        let quote = match winner {
            "A" => a.trim(),
            "B" => b.trim(),
            _ => "",
        };
        Does::Says(json!({"reason": "so it seems", "quote": quote, "winner": winner}).to_string())
    };
    let meets = |flaw: &str| a.contains(flaw) || b.contains(flaw);
    let (better, worse) = if quality(&a) > quality(&b) { ("A", "B") } else { ("B", "A") };
    says(match () {
        () if meets("shy") => "unknown",
        () if meets("order") => "A",
        () if quality(&a) == quality(&b) => "tie",
        () if meets("flips") => worse,
        () => better,
    })
}

fn trace(answer: &str, model: &str) -> String {
    let header = json!({
        "type": "trace", "version": 1, "harness": "demo", "adapter": "acp",
        "capabilities": {"tracing": true, "interaction": true}, "model": {"effective": model}
    });
    let prompt = json!({"seq": 0, "at_ms": 0, "type": "message", "role": "user", "text": "Explain the fault."});
    let stop = json!({"seq": 1, "at_ms": 1, "type": "stop", "reason": "end_turn", "output": answer});
    format!("{header}\n{prompt}\n{stop}\n")
}

fn labelled(service: &Service) -> Project {
    let project = at(service);
    project.write("graders/better.yaml", BETTER);
    project.write("graders/reference.md", "It is of quality 5 or so.\n");
    project.write("labelled/low.md", "It is of quality 1 at most.\n");
    let (mut labels, mut number) = (String::new(), 0);
    for (count, quality, flaw, label, reference) in ANSWERS {
        for _ in 0..count {
            number += 1;
            let model = ["m1", "m2"][number % 2];
            project.write(
                &format!("labelled/{number}.jsonl"),
                &trace(&format!("quality {quality} and {flaw}, number {number}"), model),
            );
            let mut line = json!({"trace": format!("{number}.jsonl"), "label": label});
            if let Some(reference) = reference {
                line["reference"] = json!(reference);
            }
            labels.push_str(&format!("{line}\n"));
        }
    }
    project.write("labelled/labels.jsonl", &labels);
    project
}

const CALIBRATE: [&str; 4] = ["calibrate", "--pairwise", "better", "labelled/labels.jsonl"];

#[test]
fn the_errors_and_the_bias_of_a_judge_are_found_where_they_were_put() {
    let service = Service::start(|got, _| judge(got));
    let project = labelled(&service);
    let shown = project.evals(&CALIBRATE).exits(0).says("written to").out;
    insta::assert_snapshot!(shown);
    let requests = service.got().len();
    assert_eq!(
        requests,
        23 * 2 + 2 * 3 * 2,
        "each pair in both orders, and the canaries beside each of two references"
    );
    let measured = project.evals(&[&CALIBRATE[..], &["--format", "json"]].concat()).exits(0).json();
    assert_eq!(service.got().len(), requests, "the rest is known");
    let pairs = &measured["pairs"];
    let of = |word: &str| ["better", "worse", "tie", "unknown"].map(|said| pairs[word][said].as_u64().unwrap());
    assert_eq!(of("better"), [9, 1, 0, 3]);
    assert_eq!(of("worse"), [1, 6, 0, 0]);
    assert_eq!(of("tie"), [0, 0, 3, 0]);
    assert_eq!(pairs["agreement"]["value"], 0.9);
    let orders = ["asked", "same", "first", "second"].map(|key| pairs["orders"][key].as_u64().unwrap());
    assert_eq!(orders, [22, 20, 2, 0]);
    // A tie passes here, so it counts as a pass by people.
    let near = |value: &Value, wanted: f64| (value["value"].as_f64().unwrap() - wanted).abs() < 1e-9;
    assert!(near(&measured["all"]["tpr"], 12.0 / 13.0) && near(&measured["all"]["tnr"], 6.0 / 7.0), "{measured}");
    assert_eq!(measured["models"].as_object().unwrap().len(), 2);
    assert_eq!(measured["labels"], 23);
}

#[test]
fn a_comparison_that_requires_it_is_ungraded_until_its_calibration_reaches_the_floor() {
    let service = Service::start(|got, _| judge(got));
    let project = labelled(&service);
    let steps = "steps: [{say: It is of quality 7 at least.}]";
    project.case("a", "graders: [{use: better}]", steps);
    let run = || project.evals(&["run"]);
    run().exits(3).says("the comparison requires a calibration: graders/better.calibration.yaml does not exist");
    assert!(service.got().is_empty(), "nothing is paid for what would not count");
    project.evals(&CALIBRATE).exits(0);
    project.evals(&["check"]).exits(0);
    project.evals(&["run", "--reporter", "json=out.json"]).exits(0);
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    let grade = &report["results"][0]["grades"][0];
    assert_eq!((&grade["passed"], &grade["judge"]["calibrated"]), (&json!(true), &json!(true)), "{grade}");
    assert_eq!(grade["judge"]["judges"][0]["orders"], json!(["better", "better"]));
    assert!(!grade["reason"].as_str().unwrap().contains("uncalibrated"), "{grade}");
    // The calibration belongs to the question, whatever is compared. Another question, judge or floor needs another
    // calibration.
    project.write("graders/reference.md", "It is of quality 3 now.\n");
    run().exits(0);
    project
        .evals(&["run", "--judge", "openai:other"])
        .exits(3)
        .says("belongs to the judge anthropic:m, but the judge is openai:other");
    project.write("graders/better.yaml", &BETTER.replace("is better", "is nicer"));
    run().exits(3).says("belongs to another version of the grader");
    project.write("graders/better.yaml", &format!("{BETTER}  tie: fail\n"));
    run().exits(3).says("belongs to another version of the grader");
    project.write("graders/better.yaml", &format!("{BETTER}  floor: {{labels: 21}}\n"));
    run().exits(3).says("`pair` has 20 labels with a verdict of the judge; the floor is 21");
    project.evals(&CALIBRATE).exits(1).says("below the floor of the grader: `pair` has 20 labels");
    // Without the requirement the grade counts, and is marked.
    project.write("graders/better.yaml", &BETTER.replace("  require-calibration: true\n", "  floor: {labels: 21}\n"));
    run().exits(0);
    project.case("a", "graders: [{pairwise: {judge: 'anthropic:m', ask: x, reference: {text: quality 1}}}]", steps);
    project.evals(&["run", "--reporter", "json=out.json"]).exits(0);
    let report: Value = serde_json::from_str(&project.read("out.json")).unwrap();
    let grade = &report["results"][0]["grades"][0];
    assert_eq!(grade["judge"]["calibrated"], false);
    assert!(grade["reason"].as_str().unwrap().ends_with("(uncalibrated)"), "{grade}");
}

#[test]
fn a_person_is_asked_which_is_better() {
    let service = Service::start(|got, _| judge(got));
    let project = labelled(&service);
    std::fs::remove_file(project.path("labelled/labels.jsonl")).unwrap();
    let args = ["--label-only", "--ask", "labelled/1.jsonl", "--ask", "labelled/9.jsonl", "--ask", "labelled/15.jsonl"];
    let ask = |input: &str| {
        let mut command = project.command(&[&CALIBRATE[..], &args].concat());
        let mut running = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let done = running.wait_with_output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let (code, said) = ask("pass\nb\n");
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("[b]etter, [w]orse, [t]ie, [s]kip, [q]uit?") && said.contains("one of the letters"),
        "{said}"
    );
    assert!(said.contains("quality 9 and plain, number 1") && said.contains("It is of quality 5 or so."), "{said}");
    ask("worse\nt\n");
    let labels = lines(&project.read("labelled/labels.jsonl"));
    let wanted = [("1.jsonl", "better"), ("9.jsonl", "worse"), ("15.jsonl", "tie")];
    assert_eq!(labels, wanted.map(|(trace, label)| json!({"trace": trace, "label": label})));
    assert!(service.got().is_empty());
}

#[test]
fn labels_that_say_nothing_of_a_pair_are_told() {
    let service = Service::start(|got, _| judge(got));
    let project = labelled(&service);
    for (line, says) in [
        (
            "{\"trace\": \"1.jsonl\", \"label\": \"pass\"}",
            "labels.jsonl:1: the label `pass` is not accepted here; use one of `better`",
        ),
        ("{\"trace\": \"1.jsonl\", \"criterion\": \"charm\", \"label\": \"tie\"}", "it has `pair`"),
        (
            "{\"trace\": \"1.jsonl\", \"reference\": \"gone.md\", \"label\": \"tie\"}",
            "there is no reference labelled/gone.md",
        ),
        ("{\"trace\": \"low.md\", \"label\": \"tie\"}", "low.md` could not be read"),
        (
            "{\"trace\": \"1.jsonl\", \"label\": \"tie\"}\n{\"trace\": \"1.jsonl\", \"label\": \"worse\"}",
            "labels.jsonl:2: this trace already has a label for `pair`",
        ),
    ] {
        project.write("labelled/labels.jsonl", &format!("{line}\n"));
        project.evals(&CALIBRATE).exits(2).says(says);
    }
    project.write("graders/one.yaml", "rubric: {criteria: [{id: a, ask: x}]}\n");
    let line = "{\"trace\": \"1.jsonl\", \"reference\": \"low.md\", \"label\": \"pass\"}";
    project.write("labelled/labels.jsonl", line);
    project
        .evals(&["calibrate", "--rubric", "one", "labelled/labels.jsonl"])
        .exits(2)
        .says("a rubric takes no `reference`");
    assert!(service.got().is_empty());
}
