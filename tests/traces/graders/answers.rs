//! `output` beyond plain texts, and `budget` as a ramp.

use std::fs;

use super::Expect::{Enough, Fail, Pass, Ungraded};
use super::speakers::trial;
use super::{Trial, check};

fn said(text: &str) -> Trial {
    let stop = serde_json::json!({"seq": 0, "type": "stop", "reason": "end_turn", "output": text});
    Trial::of(&stop.to_string())
}

#[test]
fn numbers() {
    check(
        &said("First 10, in the end about 41.97 euro"),
        &[
            ("output: {number: 41.97}", Pass(&[0])),
            ("output: {number: {equals: 42, tolerance: 0.05}}", Pass(&[0])),
            (
                "output: {number: {equals: 42, tolerance: 0.01}}",
                Fail(0.0, &[0], "the last number in the output is 41.97, not 42 ± 0.01"),
            ),
            ("output: {number: {equals: 42, relative: 0.01}}", Pass(&[0])),
            ("output: {number: {min: 40, max: 41}}", Fail(0.0, &[0], "at least 40 and at most 41")),
            ("output: {number: {equals: 10, which: first}}", Pass(&[0])),
            ("output: {number: {equals: 10, which: any}}", Pass(&[0])),
            ("output: {number: {equals: 10, which: only}}", Fail(0.0, &[0], "the output is not a number")),
        ],
    );
    // Whole numbers are compared exactly, and floats as they are written.
    check(
        &said("1234567890124"),
        &[
            ("output: {number: 1234567890123}", Fail(0.0, &[0], "is 1234567890124, not 1234567890123")),
            ("output: {number: 1234567890124}", Pass(&[0])),
            ("output: {number: {max: 1234567890123}}", Fail(0.0, &[0], "at most 1234567890123")),
            ("output: {number: {equals: 1234567890123, tolerance: 1}}", Pass(&[0])),
        ],
    );
    let large = "12345678901234567890123456789";
    check(
        &said(large),
        &[
            (
                "output: {number: '12345678901234567890123456788'}",
                Fail(0.0, &[0], ", not 12345678901234567890123456788"),
            ),
            ("output: {number: '12345678901234567890123456789'}", Pass(&[0])),
            ("output: {number: {min: '12345678901234567890123456790'}}", Fail(0.0, &[0], "at least")),
        ],
    );
    check(&said("0.30000000000000004"), &[("output: {number: 0.3}", Fail(0.0, &[0], "0.30000000000000004"))]);
    check(&said("It is 0.40"), &[("output: {number: {equals: 0.3, tolerance: 0.1}}", Pass(&[0]))]);
    check(
        &said("\u{2212}5"),
        &[("output: {number: -5}", Pass(&[0])), ("output: {number: 5}", Fail(0.0, &[0], "is -5, not 5"))],
    );
    for text in ["10^6", "0,123", "1.2.3", "2026-11-06", "2\u{2076}"] {
        for wanted in ["6", "123", "3", "0", "2", "10"] {
            let grade = said(text).judge(&format!("output: {{number: {{equals: {wanted}, which: any}}}}"));
            assert_eq!(grade.passed, Some(false), "{text} {wanted}: {grade:?}");
        }
    }
    check(&said("1,234.5"), &[("output: {number: {equals: 1234.5, which: only}}", Pass(&[0]))]);
    check(&said("none"), &[("output: {number: 0}", Fail(0.0, &[0], "contains no number, expected 0; it is `none`"))]);
}

#[test]
fn json_with_a_key_that_occurs_twice_is_not_judged() {
    for answer in [r#"{"result": 2, "result": 1}"#, "```json\n{\"a\": {\"result\": 1, \"result\": 1}}\n```"] {
        let twice = "has the key `result` twice, so what it says is unknown";
        check(
            &said(answer),
            &[
                ("output: {json-path: {path: $.result, equals: 1}}", Ungraded(twice)),
                ("output: {json-schema: {type: object}}", Ungraded(twice)),
            ],
        );
    }
}

#[test]
fn json() {
    let answer =
        "Here it is:\n```json\n{\"items\": [{\"id\": 1, \"name\": \"a\"}, {\"id\": 2.0}], \"ok\": true}\n```\nDone.";
    check(
        &said(answer),
        &[
            ("output: {json-path: {path: $.ok, equals: true}}", Pass(&[0])),
            ("output: {json-path: {path: '$.items[*].id', equals: [1, 2]}}", Pass(&[0])),
            ("output: {json-path: {path: '$.items[1].id', equals: 2}}", Pass(&[0])),
            ("output: {json-path: {path: '$.items[?@.id == 1].name', regex: '^a'}}", Pass(&[0])),
            ("output: {json-path: {path: $..id, contains: 2, count: 2}}", Pass(&[0])),
            (
                "output: {json-path: {path: $.missing}}",
                Fail(0.0, &[0], "the value at `$.missing` is nothing, not something"),
            ),
            ("output: {json-path: {path: $.missing, exists: false}}", Pass(&[0])),
            (
                "output: {json-path: [{path: $.ok}, {path: $.ok, equals: false}]}",
                Fail(0.5, &[0], "the value at `$.ok` is `true`, not `false`"),
            ),
            ("output: {json-schema: {type: object, required: [items, ok]}}", Pass(&[0])),
            (
                "output: {json-schema: {properties: {ok: {type: string}}, required: [other]}}",
                Fail(0.0, &[0], "does not match the schema: at "),
            ),
        ],
    );
    check(
        &said("{oops"),
        &[
            ("output: {json-path: {path: $.a}}", Fail(0.0, &[0], "the output is not JSON")),
            (
                "output: {json-path: {path: $.a}, json-schema: {type: object}, contains: oops}",
                Fail(1.0 / 3.0, &[0], "not JSON"),
            ),
        ],
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.json"), r#"{"type": "array", "items": {"type": "integer"}}"#).unwrap();
    check(
        &said("[1, 2]").within(folder.path()),
        &[
            ("output: {json-schema: schema.json}", Pass(&[0])),
            ("output: {json-schema: gone.json}", Ungraded("`gone.json` of the case could not be used")),
        ],
    );
    check(
        &said("[1, 2.5]").within(folder.path()),
        &[("output: {json-schema: schema.json}", Fail(0.0, &[0], "at `/1`"))],
    );
}

#[test]
fn similarity() {
    check(
        &said("The cat sat on the mat."),
        &[
            ("output: {similarity: {to: The cat sat on the mat}}", Pass(&[0])),
            ("output: {similarity: {to: [a dog, the cat sat on a mat], min: 0.75}}", Pass(&[0])),
            (
                "output: {similarity: {to: a dog ran}}",
                Fail(0.0, &[0], "similarity of the output to `a dog ran` by edits is"),
            ),
            ("output: {similarity: {to: 'on the mat the cat sat', by: words, min: 1}}", Pass(&[0])),
            ("output: {similarity: {to: THE CAT SAT ON THE MAT.}, ignore-case: true}", Pass(&[0])),
        ],
    );
    let long = said(&"x".repeat(30_000));
    check(&long, &[("output: {similarity: {to: y}}", Ungraded("by: words"))]);
}

#[test]
fn a_budget_may_be_a_ramp() {
    let session = Trial::session();
    check(
        &session,
        &[
            ("budget: {tool-calls: {full: 5, none: 10}}", Pass(&[])),
            ("budget: {tool-calls: {full: 3, none: 8}}", Fail(0.6, &[11], "tool-calls 5, above 3 (score 0 from 8)")),
            ("budget: {tool-calls: {full: 3, none: 8}, min: 0.5}", Enough(0.6, &[11])),
            ("budget: {tool-calls: {full: 1, none: 4}}", Fail(0.0, &[3], "above 1")),
            ("budget: {cost-usd: {full: 0.1, none: 0.5}, min: 0.5}", Enough(0.5, &[15])),
            ("budget: {cost-usd: {full: 0.1, none: 0.5}, tool-calls: 5}", Fail(0.75, &[15], "1 of 2 checks held")),
            ("budget: {time: {full: 50ms, none: 100ms}, min: 0.7}", Enough(0.76, &[17])),
        ],
    );
    // What is not known can still reach the share, or cannot.
    check(
        &session.without_event(15),
        &[
            ("budget: {cost-usd: 1, tool-calls: {full: 3, none: 8}, min: 0.3}", Enough(0.6, &[11])),
            ("budget: {cost-usd: 1, tool-calls: {full: 3, none: 8}, min: 0.5}", Ungraded("`cost-usd`")),
            ("budget: {cost-usd: 1, tool-calls: {full: 3, none: 8}, min: 0.9}", Fail(0.6, &[11], "tool-calls")),
        ],
    );
}

#[test]
fn the_last_block_of_json_is_the_answer_even_if_it_is_broken() {
    let answer = |text: &str| {
        Trial::of(&serde_json::json!({"seq": 0, "type": "stop", "reason": "end_turn", "output": text}).to_string())
    };
    let is_1 = "output: {json-path: {path: $.a, equals: 1}}";
    let first = "```json\n{\"a\":1}\n```\n";
    check(&answer(&format!("{first}No:\n```json\n{{\"a\":2,}}\n```\nOr not.")), &[(is_1, Fail(0.0, &[0], "broken"))]);
    check(&answer(&format!("{first}No:\n```json\n{{\"a\":2")), &[(is_1, Fail(0.0, &[0], "broken"))]);
    check(&answer(&format!("{first}Corrected:\n```\n{{\"a\":2}}\n```")), &[(is_1, Fail(0.0, &[0], "not `1`"))]);
    // A block of something else is no block of JSON.
    for more in ["```\nplain text\n```", "```\n0\n```", "```sh\nls\n```", "That is all."] {
        check(&answer(&format!("{first}{more}")), &[(is_1, Pass(&[0]))]);
    }
    for block in
        ["~~~json\n{\"a\":1}\n~~~\n", "````json\n{\"a\":1,\"md\":\n\"```\"}\n````", "```json x=\"y\"\n{\"a\":1}\n```"]
    {
        check(&answer(&format!("Here:\n\n{block}")), &[(is_1, Pass(&[0]))]);
    }
}

#[test]
fn what_says_nothing_is_refused() {
    for (text, place, why) in [
        ("- output: {number: many}", (1, 20), "a number, or a map"),
        ("- output: {number: {}}", (1, 3), "none of `equals`, `min` and `max`"),
        ("- output: {number: {tolerance: 1, min: 2}}", (1, 3), "in `number`, but no `equals`"),
        ("- output: {number: {equals: 1, tolerance: -1}}", (1, 3), "below 0"),
        ("- output: {number: {min: 2, max: 1}}", (1, 3), "`min` is above `max`"),
        ("- output: {number: {equal: 2}}", (1, 21), "unknown field `equal`"),
        ("- output: {json-path: {path: 'a.b'}}", (1, 30), "`a.b` is not a JSONPath"),
        ("- output: {json-path: []}", (1, 23), "this list is empty"),
        ("- output: {json-path: {path: $.a, exists: false, equals: 1}}", (1, 3), "contradicts itself"),
        ("- output: {json-schema: {}}", (1, 3), "`json-schema` is empty"),
        ("- output: {json-schema: {type: objekt}}", (1, 3), "it is not a JSON Schema"),
        ("- output: {json-schema: {$ref: 'https://example.com/x'}}", (1, 3), "cannot be used"),
        ("- output: {similarity: {to: ''}}", (1, 3), "an empty text"),
        ("- output: {similarity: {to: a, min: 0}}", (1, 3), "similar enough"),
        ("- budget: {tokens: {full: 3}}", (1, 20), "missing field `none`"),
        ("- budget: {tokens: {full: 3, none: 3}}", (1, 3), "`none` must be above `full`"),
        ("- budget: {tokens: many}", (1, 20), "many"),
        ("- budget: {cost-usd: {full: -1, none: 3}}", (1, 3), "not an amount of money"),
        ("- budget: {tokens: 3, min: 0}", (1, 3), "always passes"),
        ("- budget: {min: 0.5}", (1, 3), "checks nothing"),
    ] {
        let error = serde_yaml::from_str::<Vec<evals::internal::grader::GraderEntry>>(text).expect_err(text);
        let at = error.location().map(|at| (at.line(), at.column()));
        assert!(error.to_string().contains(why), "{text}: {error}");
        assert_eq!(at, Some(place), "{text}: {error}");
    }
    let text = "[output: {number: {equals: 1, which: any}, json-path: [{path: $.a, count: 2}], json-schema: {type: object}, \
                similarity: {to: [a, b], by: words}}, budget: {cost-usd: {full: 1.0, none: 2.0}, tokens: 5, min: 0.5}, \
                tests: {run: [a], fail-to-pass: [b], report: x.xml}, loops: {max: 3}, errors: {max: 1, recovered: true}, \
                scope: {only: ['src/**']}, expr: {cel: 'true'}, script: {run: [a, b], timeout: 2s}]";
    let entries: Vec<evals::internal::grader::GraderEntry> = serde_yaml::from_str(text).unwrap();
    let again: Vec<evals::internal::grader::GraderEntry> =
        serde_yaml::from_str(&serde_json::to_string(&entries).unwrap()).unwrap();
    assert_eq!(entries, again);
}

#[test]
fn an_answer_that_may_hold_a_text_of_another_speaker_is_not_judged() {
    let said = |text: &str| serde_json::json!({"type": "message", "role": "agent", "text": text});
    let notice = || serde_json::json!({"type": "notice", "code": "compact_summary", "text": "x", "lost": "speaker"});
    let stop = |text: &str| serde_json::json!({"type": "stop", "reason": "end_turn", "output": text});
    let in_doubt = || Ungraded("the final answer may hold a text that is not the agent's (event 1)");
    for (messages, answer) in [
        (vec![said("all tests pass"), notice()], "all tests pass"),
        // The answer begins before the notice.
        (vec![said("all tests pass"), notice(), said("Done.")], "all tests pass\n\nDone."),
    ] {
        let trial = trial(&[messages, vec![stop(answer)]].concat());
        check(
            &trial,
            &[
                ("output: {contains: all tests pass}", in_doubt()),
                ("output: {regex: tests}", in_doubt()),
                ("output: {not-contains: all tests pass}", in_doubt()),
                (
                    "rules: [eventually: {role: agent, text: all tests pass}]",
                    Ungraded("a message of the agent may hold a text"),
                ),
            ],
        );
    }
    check(
        &trial(&[said("all tests pass"), notice(), said("Done."), stop("Done.")]),
        &[("output: {equals: Done.}", Pass(&[2])), ("output: {not-contains: all tests pass}", Pass(&[2]))],
    );
}

#[test]
fn json_with_a_number_that_is_too_large_is_not_wrong() {
    let is_1 = "output: {json-path: {path: $.a, equals: 1}}";
    for text in [r#"{"a": 1, "b": 1e400}"#, "So:\n```json\n{\"a\": 1, \"b\": 1e400}\n```"] {
        check(
            &said(text),
            &[(is_1, Ungraded("JSON that cannot be read")), ("output: {json-schema: {type: object}}", Ungraded(""))],
        );
    }
    check(&said(r#"{"a": 1, "b": 1e}"#), &[(is_1, Fail(0.0, &[0], "the output is not JSON"))]);
}
