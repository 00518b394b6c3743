//! `trajectory`: every mode, against expected values computed elsewhere, and what a user is told.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Expect::{Enough, Fail, Pass, Ungraded};
use super::{Trial, check, read};

/// A session of steps; each call is a tool's name, its input and how it ended. A name that ends in `*` is a sub-agent's.
pub fn session(steps: &[Vec<(&str, Value, &str)>]) -> Trial {
    let mut events: Vec<Value> = Vec::new();
    let mut number = 0;
    for (step, calls) in steps.iter().enumerate() {
        let first = number;
        for (name, input, _) in calls {
            let mut call = json!({"type": "tool_call", "call": format!("c{number}"), "step": step, "kind": kind(name),
                                  "name": name.trim_end_matches('*'), "input": input});
            if name.ends_with('*') {
                call["parent"] = json!("c0");
            }
            events.push(call);
            number += 1;
        }
        for (n, (_, _, status)) in calls.iter().enumerate() {
            events.push(json!({"type": "tool_result", "call": format!("c{}", first + n), "status": status}));
        }
    }
    let mut text = String::new();
    for (seq, event) in events.iter_mut().enumerate() {
        event["seq"] = json!(seq);
        event["at_ms"] = json!(seq * 1000);
        text += &format!("{event}\n");
    }
    Trial::of(&text)
}

fn kind(name: &str) -> &str {
    match name.trim_end_matches('*') {
        name @ ("read" | "edit" | "delete" | "search" | "fetch") => name,
        "write" => "edit",
        "test" | "run" => "execute",
        _ => "other",
    }
}

/// One call for each step, all of them ok.
fn calls(list: &Value) -> Trial {
    let steps: Vec<Vec<(&str, Value, &str)>> =
        list.as_array().unwrap().iter().map(|call| vec![(call[0].as_str().unwrap(), call[1].clone(), "ok")]).collect();
    session(&steps)
}

fn expected(list: &Value) -> Value {
    list.as_array().unwrap().iter().map(|call| json!({"name": call[0], "args": call[1]})).collect()
}

pub fn golden(function: &str) -> Vec<Value> {
    let file: Value = serde_json::from_str(include_str!("../../reports/statistics/golden.json")).unwrap();
    let all = file["golden"].as_array().unwrap().clone();
    all.into_iter().filter(|entry| entry["fn"] == function).collect()
}

fn graded(trial: &Trial, mode: &str, match_args: &str, expected: &Value) -> (bool, f64) {
    let grader = json!({"trajectory": {"mode": mode, "match-args": match_args, "expected": expected}});
    let grade = trial.judge(&grader.to_string());
    (grade.passed.unwrap(), grade.value.unwrap().get())
}

#[test]
fn the_values_are_those_computed_elsewhere() {
    let mut seen = 0;
    for entry in golden("trajectory") {
        let reference = &entry["input"]["reference"];
        let told = &entry["expect"];
        if reference.as_array().unwrap().is_empty() {
            // What expects nothing is refused, so no value is wrong for it.
            let grader = r#"[{"trajectory": {"mode": "exact", "expected": []}}]"#;
            let error =
                serde_yaml::from_str::<Vec<evals::internal::grader::GraderEntry>>(grader).unwrap_err().to_string();
            assert!(error.contains("tool-calls: {none: true}"), "{error}");
            continue;
        }
        let trial = calls(&entry["input"]["predicted"]);
        let wanted = expected(reference);
        for (mode, key) in [
            ("exact", "exact"),
            ("strict", "exact"),
            ("in-order", "in_order"),
            ("any-order", "any_order(superset)"),
            ("superset", "any_order(superset)"),
            ("unordered", "unordered(multiset_equal)"),
            ("subset", "subset"),
        ] {
            let (passed, value) = graded(&trial, mode, "exact", &wanted);
            assert_eq!(json!(passed), told[key], "{} {mode}", entry["id"]);
            assert_eq!(value, f64::from(u8::from(passed)), "{} {mode}", entry["id"]);
        }
        let number = |key: &str| told[key].as_f64().unwrap();
        let (precision, recall) = (number("precision_multiset"), number("recall_multiset"));
        let made = entry["input"]["predicted"].as_array().unwrap().len() as f64;
        let (length, of) = (number("lcs_len"), reference.as_array().unwrap().len() as f64);
        for (mode, value) in [
            ("precision", precision),
            ("recall", recall),
            ("f1", 2.0 * precision * recall / (precision + recall)),
            ("ordered-f1", 2.0 * (length / made) * (length / of) / (length / made + length / of)),
        ] {
            assert!((graded(&trial, mode, "exact", &wanted).1 - value).abs() < 1e-12, "{} {mode}", entry["id"]);
        }
        seen += 1;
    }
    assert_eq!(seen, 5);
}

#[test]
fn the_matching_is_a_maximum_one_and_arguments_are_compared_one_way() {
    let trap = golden("trajectory_arg_superset_match").remove(0);
    let (predicted, reference) = (&trap["input"]["predicted"], &trap["input"]["reference"]);
    assert!(graded(&calls(predicted), "any-order", "superset", &expected(reference)).0);
    assert!(graded(&calls(predicted), "unordered", "superset", &expected(reference)).0);
    let trap = golden("agentevals_modes").remove(0);
    let (predicted, reference) = (&trap["input"]["predicted"], &trap["input"]["reference"]);
    for mode in ["superset", "unordered"] {
        assert!(graded(&calls(predicted), mode, "superset", &expected(reference)).0, "{mode}");
    }
}

#[test]
fn parallel_calls_are_one_step_without_order() {
    let trial = session(&[
        vec![("read", json!({"path": "b"}), "ok"), ("read", json!({"path": "a"}), "ok")],
        vec![("write", json!({}), "ok")],
    ]);
    check(
        &trial,
        &[
            ("trajectory: {mode: exact, expected: [{path: a}, {path: b}, write]}", Pass(&[0, 1, 4])),
            (
                "trajectory: {mode: exact, expected: [{path: a}, write, {path: b}]}",
                Fail(0.0, &[], "was not called after"),
            ),
            ("trajectory: {mode: in-order, expected: [{path: a}, {path: b}]}", Pass(&[0, 1])),
            ("trajectory: {expected: [{path: a}, {path: b}], mode: ordered-f1, min: 0.8}", Enough(0.8, &[0, 1])),
            ("trajectory: {mode: strict, expected: [[{path: a}, {path: b}], write]}", Pass(&[0, 1, 4])),
            (
                "trajectory: {mode: strict, expected: [{path: a}, {path: b}, write]}",
                Fail(0.0, &[], "the steps hold 2, 1 calls, 1, 1, 1 expected"),
            ),
            (
                "trajectory: {mode: exact, expected: [{path: a}, [{path: b}, write]]}",
                Fail(0.0, &[], "`b` was not called after the 1 expected"),
            ),
        ],
    );
}

#[test]
fn whose_calls_are_compared_and_which_of_them_count() {
    let trial = session(&[
        vec![("delete", json!({"path": "x"}), "denied")],
        vec![("task", json!({}), "ok")],
        vec![("read*", json!({"path": "a"}), "ok")],
        vec![("test", json!({"command": "cargo test"}), "error")],
        vec![("fetch", json!({}), "cancelled")],
    ]);
    check(
        &trial,
        &[
            ("trajectory: {mode: exact, expected: [task, {kind: execute, command: 'cargo'}]}", Pass(&[2, 6])),
            ("trajectory: {mode: exact, agent: any, expected: [task, read, test]}", Pass(&[2, 4, 6])),
            ("trajectory: {mode: exact, agent: sub, expected: [read]}", Pass(&[4])),
            ("trajectory: {mode: unordered, expected: [test, {kind: delete, status: denied}, task]}", Pass(&[0, 2, 6])),
            (
                "trajectory: {mode: any-order, expected: [delete]}",
                Fail(
                    0.0,
                    &[2, 6],
                    "`name delete` has no call of its own; the calls were: other (task) (event 2), execute `cargo test` (event 6)",
                ),
            ),
            ("trajectory: {mode: subset, expected: [test]}", Fail(0.0, &[2], "not expected: other (task) (event 2)")),
            (
                "trajectory: {mode: precision, expected: [test], min: 0.6}",
                Fail(
                    0.5,
                    &[2],
                    "precision is 0.5, below 0.6 (1 of 1 call expected, 2 made); not expected: other (task) (event 2)",
                ),
            ),
            ("trajectory: {mode: precision, expected: [test], min: 0.5}", Enough(0.5, &[6])),
        ],
    );
    check(&trial.tracing(false), &[("trajectory: {expected: [test]}", Ungraded("shows no tool calls"))]);
    let silent = session(&[]);
    for mode in ["precision", "recall", "f1", "ordered-f1", "exact", "in-order", "any-order", "unordered"] {
        let grade = silent.judge(&format!("trajectory: {{mode: {mode}, expected: [test]}}"));
        assert_eq!((grade.passed, grade.value.unwrap().get()), (Some(false), 0.0), "{mode}");
    }
    assert_eq!(silent.judge("trajectory: {mode: subset, expected: [test]}").passed, Some(true));
}

#[test]
fn arguments_are_compared_as_the_case_says() {
    let trial = session(&[
        vec![("edit", json!({"path": "/w/src/a.rs", "id": "x1", "n": 2}), "ok")],
        vec![("run", json!({"command": "bash -lc 'make  all'"}), "ok")],
    ]);
    check(
        &trial,
        &[
            (
                "trajectory: {mode: exact, match-args: {id: regex, n: {number: 1}}, expected: [{name: edit, args: {path: src/a.rs, id: '^x\\d$', n: 3}}, run]}",
                Pass(&[0, 2]),
            ),
            (
                "trajectory: {match-args: {tools: {run: {command: command}}}, expected: [{name: run, args: {command: make all}}]}",
                Pass(&[2]),
            ),
            (
                "trajectory: {match-args: exact, expected: [{name: edit, args: {n: 2}}]}",
                Fail(0.0, &[0, 2], "has no call of its own"),
            ),
            (
                "trajectory: {match-args: exact, expected: [{name: edit, args: {n: 2}, match-args: partial}]}",
                Pass(&[0]),
            ),
            ("trajectory: {match-args: ignore, expected: [{name: edit, args: {n: 9}}]}", Pass(&[0])),
            ("tool-calls: {require: [{args: {path: '**/*.rs'}, match-args: {path: glob}}]}", Pass(&[0])),
        ],
    );
}

#[test]
fn promptfoos_names_are_read() {
    let trial = session(&[
        vec![("search", json!({"q": "a", "request_id": 7}), "ok")],
        vec![("read*", json!({"path": "a"}), "ok")],
        vec![("write", json!({"path": "a"}), "ok")],
    ]);
    check(
        &trial,
        &[
            ("trajectory:tool-used: search", Pass(&[0])),
            ("trajectory:tool-used: [search, read, search]", Pass(&[0, 2])),
            ("trajectory:tool-used: [search, submit]", Fail(0.5, &[], "`name submit` was never called")),
            ("trajectory:tool-used: {pattern: '*r*', min: 2, max: 3}", Pass(&[0, 2])),
            ("trajectory:tool-used: {name: 's*', max: 1}", Fail(0.0, &[], "was never called")),
            ("trajectory:tool-args-match: {name: search, args: {q: a}}", Pass(&[0])),
            (
                "trajectory:tool-args-match: {name: search, mode: exact, arguments: {q: a}}",
                Fail(0.0, &[], "never called"),
            ),
            ("trajectory:tool-args-match: {name: search, mode: exact, args: {q: a}, ignore: request_id}", Pass(&[0])),
            ("trajectory:tool-sequence: [search, {name: write}]", Pass(&[0, 4])),
            (
                "trajectory:tool-sequence: {mode: exact, steps: [search, write]}",
                Fail(0.0, &[2], "not expected: read a (event 2)"),
            ),
            ("trajectory:tool-sequence: {mode: exact, steps: [search, read, {pattern: 'w*'}]}", Pass(&[0, 2, 4])),
            ("trajectory:step-count: {type: tool, max: 3}", Pass(&[])),
            ("trajectory:step-count: {type: tool, name: read, min: 2}", Fail(0.0, &[], "1 of 2 times")),
        ],
    );
    let grade = trial.judge("trajectory:tool-used: {name: search, gate: true}");
    assert_eq!((grade.name.as_str(), grade.grader.as_str(), grade.gate), ("trajectory:tool-used", "tool-calls", true));
    for (text, why) in [
        ("trajectory:tool-used: []", "checks nothing"),
        ("trajectory:tool-used: {min: 1}", "names no tool"),
        ("trajectory:tool-used: {name: a, args: {}}", "takes no `args`"),
        ("trajectory:tool-args-match: search", "takes a map"),
        ("trajectory:tool-args-match: {name: a}", "has no arguments"),
        ("trajectory:tool-args-match: {name: a, args: {}, mode: fuzzy}", "neither partial nor exact"),
        ("trajectory:tool-sequence: []", "`expected` is empty"),
        ("trajectory:step-count: {max: 3}", "write `type: tool`"),
        ("trajectory:step-count: {type: command, max: 3}", "which is not supported"),
        ("trajectory:goal-success: done", "unknown grader"),
    ] {
        let error =
            serde_yaml::from_str::<Vec<evals::internal::grader::GraderEntry>>(&format!("- {text}")).unwrap_err();
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}

const TOOLS: [&str; 3] = ["read", "write", "test"];

/// Whether it begins a step, its tool, and its path.
type RandomCall = (bool, u8, u8);

/// A session of random calls in random steps, and what is expected of it.
fn sessions() -> impl Strategy<Value = (Vec<RandomCall>, Vec<(u8, u8)>)> {
    let call = (any::<bool>(), 0_u8..3, 0_u8..3);
    (proptest::collection::vec(call, 0..6), proptest::collection::vec((0_u8..3, 0_u8..4), 1..4))
}

fn random(list: &[RandomCall]) -> Trial {
    let mut steps: Vec<Vec<(&str, Value, &str)>> = Vec::new();
    for (starts, tool, path) in list {
        let call = (TOOLS[usize::from(*tool)], json!({"path": format!("f{path}")}), "ok");
        match steps.last_mut() {
            Some(step) if !starts => step.push(call),
            _ => steps.push(vec![call]),
        }
    }
    session(&steps)
}

proptest! {
    #![proptest_config(crate::properties::tries(64))]

    #[test]
    fn the_modes_hold_together((made, wanted) in sessions(), seed in any::<u64>()) {
        let trial = random(&made);
        let wanted: Value = wanted.iter().map(|(tool, path)| match path {
            3 => json!({"name": TOOLS[usize::from(*tool)]}),
            path => json!({"name": TOOLS[usize::from(*tool)], "args": {"path": format!("f{path}")}}),
        }).collect();
        let of = |trial: &Trial, mode: &str| graded(trial, mode, "partial", &wanted);
        let holds = |mode: &str| of(&trial, mode).0;
        prop_assert_eq!(holds("unordered"), holds("any-order") && holds("subset"));
        prop_assert_eq!(holds("superset"), holds("any-order"));
        prop_assert!(!holds("strict") || holds("exact"));
        prop_assert!(!holds("exact") || (holds("in-order") && holds("unordered")));
        prop_assert!(!holds("in-order") || holds("any-order"));
        prop_assert_eq!(holds("recall"), holds("any-order"));
        let (p, r, f) = (of(&trial, "precision").1, of(&trial, "recall").1, of(&trial, "f1").1);
        prop_assert!(p + r == 0.0 || (f - 2.0 * p * r / (p + r)).abs() < 1e-12);
        prop_assert!(of(&trial, "ordered-f1").1 <= f + 1e-12);
        // What stands within a step can stand there in any order.
        let mut turned = made.clone();
        let mut start = 0;
        for n in 1..=made.len() {
            if n == made.len() || made[n].0 {
                let by = (seed % (n - start) as u64) as usize;
                let (first, starts): (usize, Vec<bool>) = (start, made[start..n].iter().map(|call| call.0).collect());
                turned[start..n].rotate_left(by);
                for (call, starts) in turned[first..n].iter_mut().zip(starts) {
                    call.0 = starts;
                }
                start = n;
            }
        }
        let turned = random(&turned);
        for mode in ["exact", "strict", "in-order", "any-order", "subset", "unordered", "precision", "recall", "f1", "ordered-f1"] {
            prop_assert_eq!(of(&trial, mode), of(&turned, mode), "{}", mode);
        }
    }
}

#[test]
fn what_expects_nothing_is_refused() {
    for (text, place, why) in [
        ("- trajectory: {expected: []}", (1, 26), "nothing is expected here"),
        ("- trajectory: {mode: exact}", (1, 15), "missing field `expected`"),
        ("- trajectory: {expected: [[]]}", (1, 27), "this step is empty"),
        ("- trajectory: {expected: [{}]}", (1, 3), "entry 1 of `expected` has no key"),
        ("- trajectory: {expected: [{args: {}}]}", (1, 3), "entry 1 of `expected` has no key"),
        ("- trajectory: {expected: [{kind: edit, match-args: exact}]}", (1, 3), "has `match-args` but no `args`"),
        ("- trajectory: {mode: fuzzy, expected: [a]}", (1, 22), "unknown variant `fuzzy`"),
        ("- trajectory: {match-args: {a: regex}, expected: [{args: {a: '('}}]}", (1, 3), "not a regular expression"),
        ("- trajectory: {min: 0, mode: f1, expected: [a]}", (1, 3), "always passes"),
        ("- trajectory: {min: 0.5, expected: [a]}", (1, 3), "only the modes precision"),
        ("- trajectory: {mode: exact, expected: [a], match-arg: exact}", (1, 44), "unknown field `match-arg`"),
    ] {
        let error = serde_yaml::from_str::<Vec<evals::internal::grader::GraderEntry>>(text).expect_err(text);
        let at = error.location().map(|at| (at.line(), at.column()));
        assert!(error.to_string().contains(why), "{text}: {error}");
        assert_eq!(at, Some(place), "{text}: {error}");
    }
    // A call without arguments may be expected.
    assert_eq!(read("[trajectory: {match-args: exact, expected: [{name: test, args: {}}]}]").len(), 1);
}

#[test]
fn tool_calls_in_order_take_parallel_calls_in_any_order_too() {
    let one = || json!({});
    let session = session(&[
        vec![("edit", one(), "ok"), ("read", one(), "ok"), ("test", one(), "denied")],
        vec![("read", one(), "ok"), ("run", one(), "error")],
    ]);
    check(
        &session,
        &[
            // The calls of a step were announced as edit, then read.
            ("tool-calls: {order: [{kind: read}, {kind: edit}]}", Pass(&[0, 1])),
            ("tool-calls: {order: [{kind: edit}, {kind: read}]}", Pass(&[0, 1])),
            ("tool-calls: {order: [{kind: edit}, {kind: execute}, {kind: read}]}", Pass(&[0, 6, 7])),
            ("tool-calls: {order: [{kind: execute}, {kind: edit}]}", Fail(0.0, &[7], "after event 7, where `execute`")),
            ("tool-calls: {order: [{kind: edit}, {kind: edit}]}", Fail(0.0, &[0], "`edit` was not called")),
        ],
    );
}
