//! `rules`: what each rule means on finite sessions, against expected values, by brute force, and in a user's words.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Expect::{Enough, Fail, Pass, Ungraded};
use super::trajectory::{golden, session};
use super::{Trial, check};

/// The rule that a line of the expected values is about, such as `never_after(edit,submit)`.
fn rule_of(line: &str) -> Option<Value> {
    let (word, arguments) = line.trim_end_matches(')').split_once('(').unwrap();
    let named: Vec<Value> = arguments.split(',').map(|name| json!({"name": name})).collect();
    Some(match word {
        "eventually" | "never" => json!({word: named[0]}),
        "before" => json!({"before": {"first": named[0], "then": named[1]}}),
        "response" | "immediately" => json!({word: {"after": named[0], "then": named[1]}}),
        // No first one after the second one.
        "never_after" => json!({"never-after": {"never": named[0], "after": named[1]}}),
        "absent_between" => json!({"absent-between": {"from": named[0], "never": named[1], "to": named[2]}}),
        _ => return None,
    })
}

#[test]
fn the_values_are_those_computed_elsewhere() {
    let mut vacuous = 0;
    for entry in golden("temporal") {
        let names = entry["input"]["events"].as_array().unwrap();
        let steps: Vec<_> = names.iter().map(|name| vec![(name.as_str().unwrap(), json!({}), "ok")]).collect();
        let trial = session(&steps);
        for (line, expected) in entry["expect"].as_object().unwrap() {
            let Some(rule) = rule_of(line) else {
                let (count, of) = (expected.as_u64().unwrap(), json!({"name": "edit"}));
                let exactly = json!({"rules": [{"count": {"match": of, "min": count, "max": count}}]});
                assert_eq!(trial.judge(&exactly.to_string()).passed, Some(true), "{line}");
                let more = json!({"rules": [{"count": {"match": of, "min": count + 1}}]});
                assert_eq!(trial.judge(&more.to_string()).passed, Some(false), "{line}");
                continue;
            };
            let grade = trial.judge(&json!({"rules": [rule]}).to_string());
            if grade.passed.is_none() {
                // They call a rule whose premise never occurs a pass.
                assert_eq!(expected, &json!(true), "{}: {line}", entry["id"]);
                assert!(grade.reason.contains("vacuous"), "{}", grade.reason);
                vacuous += 1;
            } else {
                assert_eq!(json!(grade.passed), *expected, "{}: {line}: {}", entry["id"], grade.reason);
            }
        }
    }
    assert_eq!(vacuous, 10);
}

/// Reads, then two edits at once, a test, a refused deletion, and a word at the end. Events 0 to 15.
fn mixed() -> Trial {
    Trial::of(
        r#"
{"seq":0,"at_ms":0,"type":"message","role":"user","text":"delete nothing"}
{"seq":1,"at_ms":0,"type":"thought","text":"first I look"}
{"seq":2,"at_ms":1000,"type":"tool_call","call":"r","step":0,"kind":"read","name":"Read","input":{"path":"a"}}
{"seq":3,"at_ms":1500,"type":"tool_result","call":"r","status":"ok","output":"it is old"}
{"seq":4,"at_ms":2000,"type":"tool_call","call":"e","step":1,"kind":"edit","input":{"path":"a"}}
{"seq":5,"at_ms":2000,"type":"tool_call","call":"f","step":1,"kind":"edit","input":{"path":"b"}}
{"seq":6,"at_ms":2500,"type":"tool_result","call":"f","status":"ok"}
{"seq":7,"at_ms":2500,"type":"tool_result","call":"e","status":"error"}
{"seq":8,"at_ms":9000,"type":"tool_call","call":"t","step":2,"kind":"execute","input":{"command":"make test"}}
{"seq":9,"at_ms":9500,"type":"tool_result","call":"t","status":"ok","output":"3 passed","exit_code":0}
{"seq":10,"at_ms":10000,"type":"tool_call","call":"d","step":3,"kind":"delete","input":{"path":"a"}}
{"seq":11,"at_ms":10001,"type":"permission_request","call":"d","request":"q","options":[]}
{"seq":12,"at_ms":10002,"type":"permission_response","call":"d","request":"q","outcome":"rejected","reason":"not asked for"}
{"seq":13,"at_ms":10003,"type":"tool_result","call":"d","status":"denied"}
{"seq":14,"at_ms":10004,"type":"message","role":"agent","text":"Done, all tests pass"}
{"seq":15,"at_ms":10005,"type":"stop","reason":"end_turn","output":"Done, all tests pass"}
"#,
    )
}

#[test]
fn every_rule_says_what_broke_it() {
    check(
        &mixed(),
        &[
            ("rules: [eventually: {kind: edit, path: b}]", Pass(&[5])),
            (
                "rules: [eventually: {kind: delete}]",
                Fail(0.0, &[], "eventually: `delete` must happen; it never happened; delete a (event 10) was refused"),
            ),
            ("rules: [never: {kind: fetch}]", Pass(&[])),
            (
                "rules: [never: {kind: delete}]",
                Fail(0.0, &[10], "never: `delete` must not happen; it happened: delete a (event 10)"),
            ),
            ("rules: [never: {kind: delete, status: [ok, error]}]", Pass(&[])),
            ("rules: [count: {match: {kind: edit}, min: 2, max: 2}]", Pass(&[4, 5])),
            (
                "rules: [count: {match: {kind: edit}, max: 1}]",
                Fail(0.0, &[5], "at most 1 time; it happened 2 times, too many: edit b (event 5)"),
            ),
            (
                "rules: [count: {match: {kind: delete}, min: 1}]",
                Fail(0.0, &[], "it happened 0 times; delete a (event 10)"),
            ),
            ("rules: [count: {match: {kind: delete}, max: 0}]", Fail(0.0, &[10], "too many")),
            ("rules: [before: {first: {kind: read}, then: {kind: edit}}]", Pass(&[2])),
            (
                "rules: [before: {first: {path: b}, then: {path: a}}]",
                Fail(
                    0.0,
                    &[2, 4],
                    "`a` needs `b` in an earlier step; it is missing before read a (event 2); edit a (event 4)",
                ),
            ),
            // Two calls of one step have no order.
            ("rules: [before: {first: {path: a, kind: edit}, then: {path: b}}]", Fail(0.0, &[5], "edit b")),
            ("rules: [response: {after: {kind: edit}, then: {kind: execute, status: ok}}]", Pass(&[8])),
            (
                "rules: [response: {after: {kind: execute}, then: {kind: edit}}]",
                Fail(0.0, &[8], "it is missing after execute `make test` (event 8)"),
            ),
            ("rules: [response: {after: {path: a, kind: edit}, then: {path: b}}]", Fail(0.0, &[4], "later step")),
            ("rules: [never-after: {after: {kind: execute}, never: {kind: edit}}]", Pass(&[8])),
            (
                "rules: [never-after: {after: {kind: read}, never: {kind: delete}}]",
                Fail(0.0, &[10], "it happened: delete a"),
            ),
            ("rules: [never-after: {after: {path: b}, never: {kind: edit}}]", Pass(&[5])),
            ("rules: [never-after: {after: {kind: fetch}, never: {kind: edit}}]", Pass(&[])),
            ("rules: [immediately: {after: {kind: edit}, then: {kind: execute}}]", Pass(&[8])),
            ("rules: [immediately: {after: {kind: read}, then: {kind: execute}}]", Fail(0.0, &[2], "in the next step")),
            ("rules: [within: {after: {kind: read}, then: {kind: execute}, steps: 2}]", Pass(&[8])),
            (
                "rules: [within: {after: {kind: read}, then: {kind: execute}, steps: 1}]",
                Fail(0.0, &[2], "within 1 step"),
            ),
            ("rules: [within: {after: {kind: edit}, then: {kind: execute}, seconds: 7}]", Pass(&[8])),
            (
                "rules: [within: {after: {kind: edit}, then: {kind: execute}, seconds: 6.5}]",
                Fail(0.0, &[4, 5], "within 6500ms"),
            ),
            ("rules: [absent-between: {from: {kind: read}, to: {kind: execute}, never: {kind: fetch}}]", Pass(&[])),
            (
                "rules: [absent-between: {from: {kind: read}, to: {kind: execute}, never: {kind: edit}}]",
                Fail(
                    0.0,
                    &[4, 5],
                    "must not happen between `read` and `execute`; it happened: edit a (event 4); edit b",
                ),
            ),
            // Several.
            ("rules: {rules: [eventually: {kind: read}, never: {kind: delete}], min: 0.5}", Enough(0.5, &[10])),
            ("rules: [eventually: {kind: read}, never: {kind: delete}]", Fail(0.5, &[10], "1 of 2 checks held")),
        ],
    );
}

#[test]
fn rules_see_every_event() {
    check(
        &mixed(),
        &[
            ("rules: [eventually: {event: thought, text: look}]", Pass(&[1])),
            ("rules: [eventually: {text: all tests}]", Pass(&[14])),
            // The user's words are not the agent's.
            ("rules: [never: {text: delete}]", Pass(&[])),
            ("rules: [never: {role: user, text: delete}]", Fail(0.0, &[0], "message `delete nothing` (event 0)")),
            ("rules: [eventually: {event: tool_result, kind: execute, text: '\\d passed'}]", Pass(&[9])),
            ("rules: [eventually: {kind: execute, text: passed}]", Pass(&[8])),
            (
                "rules: [never: {outcome: rejected, kind: delete, path: a}]",
                Fail(0.0, &[12], "permission_response of delete a (rejected)"),
            ),
            ("rules: [eventually: {event: permission_request, kind: delete}]", Pass(&[11])),
            ("rules: [never-after: {after: {outcome: rejected}, never: {kind: edit}}]", Pass(&[12])),
            ("rules: [response: {after: {outcome: rejected}, then: {event: message, role: agent}}]", Pass(&[14])),
            ("rules: [before: {first: {kind: execute}, then: {text: tests pass}}]", Pass(&[8])),
            ("rules: [before: {first: {text: tests pass}, then: {kind: read}}]", Fail(0.0, &[2], "read a")),
            ("rules: [immediately: {after: {event: thought}, then: {kind: read}}]", Pass(&[2])),
            ("rules: [within: {after: {event: message, role: user}, then: {kind: read}, steps: 1}]", Pass(&[2])),
            ("rules: [eventually: {event: stop, text: end_turn}]", Pass(&[15])),
            ("rules: [never: {agent: sub}]", Pass(&[])),
        ],
    );
}

#[test]
fn what_is_not_known_is_not_judged() {
    check(
        &mixed(),
        &[
            (
                "rules: [before: {first: {kind: read}, then: {kind: fetch}}]",
                Ungraded("vacuous, because `fetch` never occurred"),
            ),
            ("rules: [before: {first: {kind: read}, then: {kind: fetch}, vacuous: pass}]", Pass(&[])),
            (
                "rules: [response: {after: {kind: fetch}, then: {kind: read}, vacuous: fail}]",
                Fail(0.0, &[], "`fetch` never occurred"),
            ),
            (
                "rules: [absent-between: {from: {kind: delete}, to: {kind: read}, never: {kind: edit}}]",
                Ungraded("vacuous"),
            ),
            ("rules: [within: {after: {kind: fetch}, then: {kind: read}, steps: 1}]", Ungraded("vacuous")),
            (
                "rules: [immediately: {after: {kind: fetch}, then: {kind: read}}, eventually: {kind: read}]",
                Ungraded("vacuous"),
            ),
            // A known breach goes before what is not known.
            (
                "rules: [immediately: {after: {kind: fetch}, then: {kind: read}}, never: {kind: read}]",
                Fail(0.0, &[2], "never"),
            ),
        ],
    );
    check(&mixed().tracing(false), &[("rules: [never: {kind: fetch}]", Ungraded("shows no tool calls"))]);
    check(
        &mixed().interaction(false),
        &[
            ("rules: [never: {outcome: allowed}]", Ungraded("no way to ask")),
            ("rules: [eventually: {event: permission_request}]", Ungraded("no way to ask")),
        ],
    );
    let mut untimed = mixed();
    untimed.header.timed = Some(false);
    check(
        &untimed,
        &[
            ("rules: [within: {after: {kind: edit}, then: {kind: execute}, seconds: 7}]", Ungraded("no times")),
            ("rules: [within: {after: {kind: edit}, then: {kind: fetch}, seconds: 7}]", Fail(0.0, &[4, 5], "7s")),
            ("rules: [within: {after: {kind: edit}, then: {kind: execute}, steps: 7}]", Pass(&[8])),
        ],
    );
}

#[test]
fn a_rule_that_says_nothing_is_refused() {
    for (text, place, why) in [
        ("- rules: []", (1, 10), "this list is empty"),
        ("- rules: {rules: [], gate: true}", (1, 18), "this list is empty"),
        ("- rules: {gate: true}", (1, 10), "missing field `rules`"),
        ("- rules: [{}]", (1, 11), "this rule is empty"),
        ("- rules: [{evenutally: {kind: edit}}]", (1, 12), "unknown field `evenutally`, expected one of `eventually`"),
        ("- rules: [{never: {kind: edit}, count: {}}]", (1, 11), "begin another with `- count:`"),
        ("- rules: [{never: {}}]", (1, 3), "rule 1, `never`, has no key"),
        ("- rules:\n    - never: {kidn: edit}", (2, 15), "unknown field `kidn`"),
        ("- rules: [{never: {kind: edit, status: okay}}]", (1, 40), "okay"),
        ("- rules: [{before: {first: {kind: edit}}}]", (1, 20), "missing field `then`"),
        ("- rules: [{before: {first: {}, then: {kind: edit}}}]", (1, 3), "in `first` has no key"),
        ("- rules: [{before: {first: {kind: edit}, then: {kind: edit}, vacuous: maybe}}]", (1, 71), "maybe"),
        (
            "- rules: [{never-after: {after: {kind: edit}, never: {kind: edit}, vacuous: pass}}]",
            (1, 68),
            "unknown field `vacuous`",
        ),
        ("- rules: [{count: {match: {kind: edit}}}]", (1, 3), "counts nothing"),
        ("- rules: [{count: {match: {kind: edit}, min: 3, max: 2}}]", (1, 3), "a `min` of 3 above its `max` of 2"),
        ("- rules: [{within: {after: {kind: edit}, then: {kind: read}}}]", (1, 3), "has no distance"),
        ("- rules: [{within: {after: {kind: edit}, then: {kind: read}, steps: 1, seconds: 1}}]", (1, 3), "keep one"),
        ("- rules: [{eventually: {event: usage, kind: edit}}]", (1, 3), "but its event is not one"),
        ("- rules: [{eventually: {event: message, outcome: allowed}}]", (1, 3), "only the event `permission_response`"),
        ("- rules: [{eventually: {text: ''}}]", (1, 3), "empty `text`"),
        ("- rules: {rules: [{never: {kind: edit}}], gaet: true}", (1, 43), "unknown field `gaet`"),
    ] {
        let error = serde_yaml::from_str::<Vec<evals::internal::grader::GraderEntry>>(text).expect_err(text);
        let at = error.location().map(|at| (at.line(), at.column()));
        assert!(error.to_string().contains(why), "{text}: {error}");
        assert_eq!(at, Some(place), "{text}: {error}");
    }
    let text = "[rules: {rules: [never: {event: stop, text: x}, count: {match: {outcome: [allowed, rejected], kind: edit}, max: 2}, \
                within: {after: {kind: edit}, then: {kind: read}, seconds: 2, vacuous: pass}], min: 0.5, gate: true}]";
    let entries: Vec<evals::internal::grader::GraderEntry> = serde_yaml::from_str(text).unwrap();
    let again: Vec<evals::internal::grader::GraderEntry> =
        serde_yaml::from_str(&serde_json::to_string(&entries).unwrap()).unwrap();
    assert_eq!(entries, again);
}

type Steps = Vec<Vec<usize>>;

/// Steps of calls; each call is one of four tools.
fn steps() -> impl Strategy<Value = Steps> {
    proptest::collection::vec(proptest::collection::vec(0_usize..4, 1..4), 0..6)
}

const TOOLS: [&str; 4] = ["read", "edit", "test", "other"];

fn trial(steps: &Steps) -> Trial {
    let steps: Vec<Vec<_>> =
        steps.iter().map(|step| step.iter().map(|tool| (TOOLS[*tool], json!({}), "ok")).collect()).collect();
    session(&steps)
}

/// Each rule by its definition, over steps as sets.
fn by_definition(rule: &str, steps: &Steps) -> Option<bool> {
    let has = |step: &Vec<usize>, tool: usize| step.contains(&tool);
    let at = |tool: usize| -> Vec<usize> { (0..steps.len()).filter(|n| has(&steps[*n], tool)).collect() };
    let (reads, edits, tests) = (at(0), at(1), at(2));
    let premise = |premise: &[usize], holds: &dyn Fn(usize) -> bool| {
        (!premise.is_empty()).then(|| premise.iter().all(|n| holds(*n)))
    };
    match rule {
        "eventually" => Some(!reads.is_empty()),
        "never" => Some(reads.is_empty()),
        "count" => Some((1..=2).contains(&steps.iter().flatten().filter(|tool| **tool == 0).count())),
        "before" => premise(&edits, &|n| reads.iter().any(|read| *read < n)),
        "response" => premise(&edits, &|n| tests.iter().any(|test| *test > n)),
        "never-after" => Some(edits.first().is_none_or(|first| tests.iter().all(|test| test <= first))),
        "immediately" => premise(&edits, &|n| steps.get(n + 1).is_some_and(|next| has(next, 2))),
        "within" => premise(&edits, &|n| tests.iter().any(|test| *test > n && *test <= n + 2)),
        "absent-between" => {
            let pairs: Vec<(usize, usize)> =
                tests.iter().filter_map(|end| Some((*reads.iter().rfind(|start| *start < end)?, *end))).collect();
            (!pairs.is_empty())
                .then(|| pairs.iter().all(|(start, end)| !edits.iter().any(|edit| start < edit && edit < end)))
        }
        other => panic!("{other}"),
    }
}

const RULES: [(&str, &str); 9] = [
    ("eventually", "rules: [eventually: {name: read}]"),
    ("never", "rules: [never: {name: read}]"),
    ("count", "rules: [count: {match: {name: read}, min: 1, max: 2}]"),
    ("before", "rules: [before: {first: {name: read}, then: {name: edit}}]"),
    ("response", "rules: [response: {after: {name: edit}, then: {name: test}}]"),
    ("never-after", "rules: [never-after: {after: {name: edit}, never: {name: test}}]"),
    ("immediately", "rules: [immediately: {after: {name: edit}, then: {name: test}}]"),
    ("within", "rules: [within: {after: {name: edit}, then: {name: test}, steps: 2}]"),
    ("absent-between", "rules: [absent-between: {from: {name: read}, to: {name: test}, never: {name: edit}}]"),
];

proptest! {
    #![proptest_config(crate::properties::tries(80))]

    #[test]
    fn a_rule_is_what_its_definition_says(steps in steps()) {
        for (word, rule) in RULES {
            prop_assert_eq!(trial(&steps).judge(rule).passed, by_definition(word, &steps), "{} {:?}", word, steps);
        }
    }

    #[test]
    fn the_order_within_a_step_says_nothing(steps in steps(), by in 0_usize..3) {
        let mut turned = steps.clone();
        for step in &mut turned {
            let by = by % step.len();
            step.rotate_left(by);
        }
        for (word, rule) in RULES {
            prop_assert_eq!(trial(&steps).judge(rule).passed, trial(&turned).judge(rule).passed, "{}", word);
        }
    }

    #[test]
    fn a_call_that_no_rule_names_changes_little(steps in steps(), at in 0_usize..6, beside in any::<bool>()) {
        let mut more = steps.clone();
        let at = at.min(steps.len());
        match more.get_mut(at) {
            Some(step) if beside => step.push(3),
            _ => more.insert(at, vec![3]),
        }
        // A step of its own makes the way to the next one longer, and nothing else.
        for (word, rule) in RULES.iter().filter(|(word, _)| !matches!(*word, "immediately" | "within")) {
            prop_assert_eq!(trial(&steps).judge(rule).passed, trial(&more).judge(rule).passed, "{}", word);
        }
    }
}

#[test]
fn what_is_kept_of_a_long_session_suffices() {
    let mut steps: Steps = vec![vec![1]];
    steps.extend((0..300).map(|n| vec![if n % 3 == 0 { 1 } else { 3 }]));
    steps.insert(150, vec![0]);
    steps.push(vec![2]);
    for (word, rule) in RULES {
        assert_eq!(trial(&steps).judge(rule).passed, by_definition(word, &steps), "{word}");
    }
}
