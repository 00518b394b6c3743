//! `loops`, `errors` and `scope`: how an agent goes about its work.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::Expect::{Fail, Pass, Ungraded};
use super::trajectory::session;
use super::{Trial, check};

fn call<'a>(name: &'a str, path: &str) -> (&'a str, Value, &'a str) {
    (name, json!({"path": path}), "ok")
}

/// One call for each step, named by a letter.
fn letters(text: &str) -> Trial {
    let names: Vec<String> = text.chars().map(String::from).collect();
    session(&names.iter().map(|name| vec![(name.as_str(), json!({}), "ok")]).collect::<Vec<_>>())
}

#[test]
fn loops_are_blocks_that_follow_themselves() {
    for (calls, most) in [
        ("a", 1),
        ("abc", 1),
        ("aab", 2),
        ("abab", 2),
        ("xababay", 2),
        ("abcabcabc", 3),
        ("abcdabcd", 2),
        ("abcdeabcde", 1),
        ("aaaa", 4),
        ("abba", 2),
        ("ababcabab", 2),
        ("aaabbbb", 4),
    ] {
        let trial = letters(calls);
        assert_eq!(trial.judge(&format!("loops: {{max: {most}}}")).passed, Some(true), "{calls}");
        if most > 1 {
            assert_eq!(trial.judge(&format!("loops: {{max: {}}}", most - 1)).passed, Some(false), "{calls}");
        }
    }
    check(&letters(""), &[("loops: {max: 1}", Pass(&[]))]);
    let why = "no call was repeated immediately; up to 3 in a row are allowed";
    assert_eq!(letters("ab").judge("loops: {max: 3}").reason, why);
    check(
        &letters("xababab"),
        &[(
            "loops: {max: 2}",
            Fail(
                0.0,
                &[2, 4, 6, 8, 10, 12],
                "a block of 2 calls was made 3 times in a row, at most 2 allowed: other (a), then other (b) (from event 2)",
            ),
        )],
    );
    check(&letters("aa").tracing(false), &[("loops: {max: 1}", Ungraded("shows no tool calls"))]);
}

#[test]
fn calls_that_the_engine_ended_early_are_unknown() {
    let trial = Trial::of(
        r#"
{"seq":0,"at_ms":0,"type":"tool_call","call":"a","step":0,"kind":"execute","name":"Bash","input":{"command":"make test"}}
{"seq":1,"at_ms":0,"type":"tool_call","call":"b","step":0,"kind":"execute","name":"Bash","input":{"command":"make"}}
{"seq":2,"at_ms":0,"type":"notice","code":"too_many_open_calls","text":"x","line":3}
{"seq":3,"at_ms":0,"type":"tool_result","call":"a","status":"unfinished","host":true}
{"seq":4,"at_ms":0,"type":"notice","code":"late_update","text":"the call failed","line":4}
{"seq":5,"at_ms":0,"type":"tool_result","call":"b","status":"error"}
{"seq":6,"at_ms":0,"type":"tool_call","call":"c","step":1,"kind":"read","name":"Read","input":{"path":"x"}}
{"seq":7,"at_ms":0,"type":"tool_result","call":"c","status":"ok"}
{"seq":8,"at_ms":0,"type":"stop","reason":"end_turn"}
"#,
    );
    check(
        &trial,
        &[
            ("errors: {max: 1}", Ungraded("how 1 call ended is unknown")),
            ("errors: {max: 2}", Pass(&[])),
            ("errors: {max: 0}", Fail(0.0, &[1, 5], "1 call failed")),
            ("errors: {recovered: true}", Fail(0.0, &[1, 5], "no later call")),
            ("tool-calls: {forbid: [{command: make test, status: error}]}", Ungraded("did not show enough")),
            ("tool-calls: {forbid: [{command: make test}]}", Fail(0.0, &[0, 3], "")),
            ("tool-calls: {require: [{command: make test}]}", Ungraded("did not show enough")),
            ("tool-calls: {require: [{command: make test, status: ok}]}", Ungraded("did not show enough")),
            ("tool-calls: {require: [{command: make test, status: any}]}", Pass(&[0])),
            ("tool-calls: {min: 2}", Pass(&[])),
            ("tool-calls: {min: 3}", Ungraded("whether 1 call more were is unknown")),
            ("tool-calls: {min: 4}", Fail(0.0, &[], "at least 4 required")),
            ("rules: [eventually: {command: make test}]", Ungraded("did not show")),
            ("rules: [never: {command: make test}]", Fail(0.0, &[0], "")),
            ("trajectory: {mode: in-order, expected: [{command: make test}]}", Ungraded("")),
            (
                r#"expr: {cel: "calls.all(call, call.status != 'error' || call.input.command == 'make')"}"#,
                Ungraded("could not be graded, because the engine ended 1 call before the agent said how"),
            ),
            ("expr: {cel: 'size(calls) > 9'}", Ungraded("the engine ended 1 call")),
            // What does not look at calls is known.
            ("expr: {cel: 'size(messages) == 0'}", Pass(&[])),
            ("expr: {cel: \"stop.reason == 'end_turn'\"}", Pass(&[])),
            (
                r#"script: {run: ["sh", "-c", "echo '{\"passed\": true}'"]}"#,
                Ungraded("could not be graded, because the engine ended 1 call before the agent said how"),
            ),
        ],
    );
}

#[test]
fn what_is_the_same_has_kind_name_and_input() {
    let same = |one: Value, other: Value| {
        let trial = session(&[vec![("read", one, "ok")], vec![("read", other, "denied")]]);
        trial.judge("loops: {max: 1}").passed == Some(false)
    };
    assert!(same(json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1.0})), "keys have no order, 1.0 is 1");
    assert!(!same(json!({"a": 1}), json!({"a": 2})));
    assert!(!same(json!({}), json!(null)));
    // Each speaker goes round its own way.
    let both =
        session(&[vec![call("task", "")], vec![call("read*", "a")], vec![call("task", "")], vec![call("read*", "a")]]);
    assert_eq!(both.judge("loops: {max: 1}").passed, Some(false));
    assert_eq!(both.judge("loops: {max: 2}").passed, Some(true));
    // Calls of one step have no order, so these are two blocks of two.
    let parallel = session(&[vec![call("a", ""), call("b", "")], vec![call("b", ""), call("a", "")]]);
    assert_eq!(parallel.judge("loops: {max: 1}").passed, Some(false));
    let turned = session(&[vec![call("b", ""), call("a", "")], vec![call("b", ""), call("a", "")]]);
    assert_eq!(turned.judge("loops: {max: 1}").value, parallel.judge("loops: {max: 1}").value);
}

/// Steps of parallel calls, each named by a letter.
fn steps(steps: &[String]) -> Trial {
    let calls = steps.iter().map(|step| step.chars().map(String::from).collect::<Vec<_>>()).collect::<Vec<_>>();
    session(
        &calls
            .iter()
            .map(|step| step.iter().map(|name| (name.as_str(), json!({}), "ok")).collect::<Vec<_>>())
            .collect::<Vec<_>>(),
    )
}

#[test]
fn parallel_calls_repeat_each_other_only_if_they_do_in_every_order() {
    for (calls, most) in [
        ("aba", 1),
        ("aa", 2),
        ("aab", 1),
        ("aaab", 2),
        ("a ba", 1),
        ("ab bc", 1),
        ("ab ba", 2),
        ("ab ba ab ab ba", 5),
        ("c ab c ba c ab", 3),
        ("abcde abcde abcde", 1),
        ("aaaaa", 5),
        ("aabbcc", 1),
        ("a a aab", 2),
    ] {
        let split: Vec<String> = calls.split(' ').map(str::to_owned).collect();
        let trial = steps(&split);
        assert_eq!(trial.judge(&format!("loops: {{max: {most}}}")).passed, Some(true), "{calls}");
        if most > 1 {
            assert_eq!(trial.judge(&format!("loops: {{max: {}}}", most - 1)).passed, Some(false), "{calls}");
        }
    }
    check(
        &steps(&["ab".to_owned(), "ba".to_owned(), "ab".to_owned()]),
        &[("loops: {max: 2}", Fail(0.0, &[0, 1, 4, 5, 8, 9], "a block of 2 calls was made 3 times in a row"))],
    );
}

#[test]
fn a_grade_of_many_parallel_calls_takes_little_time() {
    let begun = std::time::Instant::now();
    // Many different calls, again and again: an order without repetitions is soon found.
    let different: String = ('a'..='z').collect();
    let trial = steps(&vec![different; 40]);
    assert_eq!(trial.judge("loops: {max: 1}").passed, Some(true));
    // What occurs in every order is known beside them.
    let mut mixed = vec!["abcdefgh".to_owned(); 40];
    mixed.extend(["x", "x", "x"].map(str::to_owned));
    let trial = steps(&mixed);
    assert_eq!(trial.judge("loops: {max: 2}").passed, Some(false));
    assert_eq!(trial.judge("loops: {max: 3}").passed, Some(true));
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

/// The fewest repetitions of all orders within the steps; repeated steps count in any order.
fn fewest(steps: &[Vec<u8>]) -> usize {
    fn orders(calls: &[u8]) -> Vec<Vec<u8>> {
        if calls.is_empty() {
            return vec![Vec::new()];
        }
        let each = (0..calls.len()).flat_map(|n| {
            let mut rest = calls.to_vec();
            let first = rest.remove(n);
            orders(&rest).into_iter().map(move |rest| [vec![first], rest].concat())
        });
        each.collect()
    }
    let mut all: Vec<Vec<u8>> = vec![Vec::new()];
    for step in steps {
        let orders = orders(step);
        all = all.iter().flat_map(|before| orders.iter().map(|step| [&before[..], step].concat())).collect();
        all.sort();
        all.dedup();
    }
    let in_order = all.iter().map(|calls| most(calls)).min().unwrap_or(0);
    let sorted: Vec<Vec<u8>> = steps
        .iter()
        .map(|step| {
            let mut step = step.clone();
            step.sort_unstable();
            step
        })
        .collect();
    let mut by_steps = 0;
    for start in 0..sorted.len() {
        for block in 1..=4.min(sorted.len() - start) {
            let first = &sorted[start..start + block];
            if first.iter().map(Vec::len).sum::<usize>() <= 4 {
                let times = sorted[start..].chunks_exact(block).take_while(|next| *next == first).count();
                by_steps = by_steps.max(times);
            }
        }
    }
    in_order.max(by_steps)
}

/// The most often that a block of 1 to 4 follows itself at once, itself counted, by trying everything.
fn most(calls: &[u8]) -> usize {
    let mut most = usize::from(!calls.is_empty());
    for start in 0..calls.len() {
        for block in 1..=4.min(calls.len() - start) {
            let first = &calls[start..start + block];
            let times = calls[start..].chunks_exact(block).take_while(|next| *next == first).count();
            most = most.max(times);
        }
    }
    most
}

proptest! {
    #[test]
    fn loops_count_as_the_definition_says(calls in proptest::collection::vec(0_u8..3, 0..14)) {
        let text: String = calls.iter().map(|n| char::from(b'a' + n)).collect();
        let trial = letters(&text);
        let most = most(&calls);
        for max in 1..5 {
            prop_assert_eq!(trial.judge(&format!("loops: {{max: {max}}}")).passed, Some(most <= max), "{} {}", text, most);
        }
    }

    #[test]
    fn loops_count_the_fewest_repetitions_of_all_orders(
        calls in proptest::collection::vec(proptest::collection::vec(0_u8..3, 1..4), 0..5),
    ) {
        let text: Vec<String> =
            calls.iter().map(|step| step.iter().map(|n| char::from(b'a' + n)).collect()).collect();
        let trial = steps(&text);
        let most = fewest(&calls);
        for max in 1..5 {
            let passed = trial.judge(&format!("loops: {{max: {max}}}")).passed;
            prop_assert_eq!(passed, Some(most <= max), "{:?} {}", &text, most);
        }
    }
}

#[test]
fn errors() {
    let trial = session(&[
        vec![("read", json!({"path": "x"}), "error")],
        vec![("read", json!({"path": "y"}), "ok"), ("test", json!({"command": "make"}), "error")],
        vec![("delete", json!({}), "denied"), ("fetch", json!({}), "cancelled")],
        vec![("edit", json!({"path": "z"}), "ok")],
    ]);
    check(
        &trial,
        &[
            ("errors: {max: 2}", Pass(&[])),
            (
                "errors: {max: 1}",
                Fail(0.0, &[3, 5], "2 calls failed, at most 1 allowed: read x (event 1); execute `make` (event 5)"),
            ),
            (
                "errors: {recovered: true}",
                Fail(0.0, &[3, 5], "no later call of the same kind succeeded after execute `make` (event 5)"),
            ),
            ("errors: {max: 2, recovered: true}", Fail(0.5, &[3, 5], "1 of 2 checks held")),
        ],
    );
    let beside = session(&[vec![("test", json!({}), "error"), ("test", json!({"again": 1}), "ok")]]);
    check(&beside, &[("errors: {recovered: true}", Fail(0.0, &[0, 2], "no later call"))]);
    let after = session(&[vec![("test", json!({}), "error")], vec![("run", json!({"again": 1}), "ok")]]);
    check(
        &after,
        &[("errors: {recovered: true}", Pass(&[])), ("errors: {max: 0}", Fail(0.0, &[0, 1], "1 call failed"))],
    );
    check(&session(&[]), &[("errors: {max: 0, recovered: true}", Pass(&[]))]);
    check(&session(&[]).tracing(false), &[("errors: {max: 0}", Ungraded("shows no tool calls"))]);
    // Of many failures none is forgotten that matters.
    let mut many: Vec<Vec<_>> = (0..100).map(|_| vec![("test", json!({}), "error")]).collect();
    many.push(vec![("test", json!({}), "ok")]);
    check(&session(&many), &[("errors: {recovered: true}", Pass(&[]))]);
    many.push(vec![("test", json!({}), "error")]);
    assert_eq!(session(&many).judge("errors: {recovered: true}").passed, Some(false));
}

#[test]
fn scope() {
    let trial = || {
        session(&[
            vec![call("read", "src/a.rs"), call("read", "/etc/hosts")],
            vec![call("edit", "/w/src/a.rs"), ("edit", json!({"path": "docs/x.md"}), "denied")],
            vec![("delete", json!({"path": "tests/t.rs"}), "error")],
        ])
    };
    let within = trial().changed(&[], &["src/a.rs"], &[]);
    check(
        &within,
        &[
            ("scope: {only: ['src/**']}", Pass(&[])),
            ("scope: {never: ['tests/**', 'docs/**']}", Pass(&[])),
            (
                "scope: {never: ['src/**']}",
                Fail(0.0, &[4, 6], "never: `src/**` must not change, but these did: `src/a.rs` by edit (event 4)"),
            ),
            (
                "scope: {reads: ['src/**']}",
                Fail(0.0, &[1, 3], "only `src/**` may be read, but these were: `/etc/hosts` (event 1)"),
            ),
            ("scope: {reads: ['src/**', /etc/hosts]}", Pass(&[])),
        ],
    );
    // A command may have changed what no tool shows.
    let beyond = trial().changed(&["tmp/log"], &["src/a.rs"], &[]);
    check(
        &beyond,
        &[
            (
                "scope: {only: ['src/**']}",
                Fail(0.0, &[], "only: `src/**` may change, but these did: `tmp/log` was created"),
            ),
            ("scope: {only: ['src/**'], never: ['docs/**']}", Fail(0.5, &[], "1 of 2 checks held")),
        ],
    );
    // Without the change of the workspace only a breach is known.
    check(
        &trial(),
        &[
            ("scope: {only: ['src/**']}", Ungraded("the change of the workspace is not known")),
            ("scope: {only: ['lib/**']}", Fail(0.0, &[4, 6], "`src/a.rs` by edit (event 4)")),
            ("scope: {never: ['docs/**']}", Ungraded("not known")),
            ("scope: {reads: ['src/**', '/etc/**']}", Pass(&[])),
        ],
    );
    check(
        &trial().changed(&["x"], &[], &[]).tracing(false),
        &[
            ("scope: {only: ['src/**']}", Fail(0.0, &[], "`x` was created")),
            ("scope: {only: ['x', 'src/**']}", Ungraded("shows no tool calls")),
            ("scope: {reads: ['src/**']}", Ungraded("shows no tool calls")),
        ],
    );
}

#[test]
fn a_name_that_must_not_change_is_also_a_folder() {
    check(
        &session(&[vec![call("edit", "/w/src/a.rs")]]).changed(&[], &["src/a.rs", "vendor/v.c"], &[]),
        &[
            ("scope: {never: [vendor]}", Fail(0.0, &[], "`vendor/v.c` was changed")),
            ("scope: {never: ['**/vendor']}", Fail(0.0, &[], "never: `**/vendor` must not change")),
            ("scope: {never: ['vendor/**/']}", Fail(0.0, &[], "never: `vendor/` must not change")),
            ("scope: {never: ['v*']}", Pass(&[])),
            ("scope: {never: [vend]}", Pass(&[])),
        ],
    );
}

#[test]
fn what_says_nothing_is_refused() {
    for (text, why) in [
        ("loops: {}", "missing field `max`"),
        ("loops: {max: 0}", "counts itself"),
        ("errors: {}", "checks nothing"),
        ("errors: {recovered: false}", "checks nothing"),
        ("errors: {recoverd: true}", "unknown field `recoverd`"),
        ("scope: {}", "checks nothing"),
        ("scope: {only: []}", "this list is empty"),
        ("scope: {reads: ['']}", "empty glob"),
        ("scope: {only: [src/**, '**']}", "`only` holds `**`"),
        ("scope: {reads: [a, '**/*']}", "`reads` holds `**/*`"),
        ("scope: {never: ['**.lock']}", "`**/*.lock`"),
        ("scope: {never: ['src\\a.lock']}", "write `/` between folders"),
    ] {
        let error =
            serde_yaml::from_str::<Vec<evals::internal::grader::GraderEntry>>(&format!("- {text}")).expect_err(text);
        assert!(error.to_string().contains(why), "{text}: {error}");
    }
}
