//! Tests of how arguments are compared.

use serde_json::json;

use super::*;

fn fits(rules: &str, expected: &Value, actual: &Value) -> bool {
    let rules: MatchArgs = serde_yaml::from_str(rules).unwrap();
    let written: MatchArgs = serde_yaml::from_str(&serde_json::to_string(&rules).unwrap()).unwrap();
    assert_eq!(rules, written, "what was read is written the same");
    let fits = rules.fits(Some("Bash"), expected.as_object().unwrap(), Some(actual), Some("/w"), &Compiled::default());
    assert!(!fits.is_unknown(), "everything was shown");
    fits.is_true()
}

#[test]
fn modes_say_which_keys_have_to_be_there() {
    let (less, more) = (json!({"a": 1, "o": {"x": 1}}), json!({"a": 1.0, "o": {"x": 1, "y": 2}, "b": 3}));
    for (mode, expected, actual, holds) in [
        ("exact", &less, &less, true),
        ("exact", &less, &more, false),
        ("exact", &more, &less, false),
        ("superset", &less, &more, true),
        ("superset", &more, &less, false),
        ("partial", &less, &more, true),
        ("partial", &more, &less, false),
        ("subset", &more, &less, true),
        ("subset", &less, &more, false),
        ("ignore", &less, &json!({"z": 0}), true),
    ] {
        assert_eq!(fits(mode, expected, actual), holds, "{mode} {expected} {actual}");
    }
    assert!(!fits("partial", &json!({"l": [1]}), &json!({"l": [1, 2]})), "lists are exact");
    assert!(!fits("partial", &json!({"l": [{"a": 1}]}), &json!({"l": [{"a": 1, "b": 2}]})), "and what is in them");
    assert!(fits("exact", &json!({"path": "src/a.rs"}), &json!({"path": "/w/src/./a.rs"})));
    assert!(!fits("exact", &json!({"text": "a/./b"}), &json!({"text": "a/b"})));
}

#[test]
fn a_key_path_has_its_own_way() {
    let call =
        json!({"path": "/w/src/deep/a.rs", "id": "x-81", "n": "41.5", "cmd": "bash -lc 'cargo  test'", "o": {"k": 7}});
    for (rules, expected, holds) in [
        ("{path: glob}", json!({"path": "src/**/*.rs"}), true),
        ("{path: glob}", json!({"path": "src/*.rs"}), false),
        ("{id: regex}", json!({"id": "^x-\\d+$"}), true),
        ("{id: regex}", json!({"id": "^\\d+$"}), false),
        ("{n: number}", json!({"n": 41.5}), true),
        ("{n: number}", json!({"n": 42}), false),
        ("{n: {number: 1}}", json!({"n": 42}), true),
        ("{n: {number: 0.49}}", json!({"n": 42}), false),
        ("{cmd: command}", json!({"cmd": "cargo test"}), true),
        ("{cmd: command}", json!({"cmd": ["cargo", "test"]}), true),
        ("{cmd: command}", json!({"cmd": "cargo build"}), false),
        ("{path: path}", json!({"path": "./src/deep/../deep/a.rs"}), true),
        ("{id: ignore}", json!({"id": 5, "n": "41.5"}), true),
        ("{o.k: regex}", json!({"o": {"k": "^7$"}}), true),
        ("{'o.*': ignore}", json!({"o": {"k": 8}}), true),
        ("{'*': exact, path: ignore, id: ignore, n: ignore, cmd: ignore}", json!({"o": {"k": 7}}), true),
        ("{'*': exact, path: ignore}", json!({"o": {"k": 7}}), false),
        ("{'*': ignore, id: exact}", json!({"id": "x-81", "n": 0}), true),
        ("{'*': ignore, id: exact}", json!({"id": "x-82", "n": 0}), false),
        ("{tools: {Bash: ignore}}", json!({"id": 0}), true),
        ("{tools: {'B*': {id: regex}, Read: ignore}}", json!({"id": "8"}), true),
        ("{tools: {Read: ignore}}", json!({"id": 0}), false),
        ("{tools: exact}", json!({"id": "x-81"}), true),
    ] {
        assert_eq!(fits(rules, &expected, &call), holds, "{rules} {expected}");
    }
    let call = json!({"cmd": "/bin/ash -ce 'cargo test'"});
    assert!(fits("{cmd: command}", &json!({"cmd": "cargo test"}), &call));
}

#[test]
fn arguments_that_were_not_shown_are_unknown() {
    use Judgement::{False, True, Unknown};
    let (none, some) = (json!({}), json!({"a": 1}));
    let cut = json!("{\"a\": ");
    for (rules, expected, input, fits) in [
        ("exact", &none, Some(&none), True),
        ("exact", &none, Some(&some), False),
        ("exact", &none, None, Unknown),
        ("subset", &none, None, Unknown),
        ("exact", &some, None, Unknown),
        ("partial", &some, None, Unknown),
        // Any arguments satisfy an empty expectation.
        ("partial", &none, None, True),
        ("{a: ignore}", &some, None, True),
        ("ignore", &some, None, True),
        ("partial", &some, Some(&cut), Unknown),
        ("partial", &some, Some(&json!("text")), False),
        // Each tool has its own rules, and the name of this tool was not shown.
        ("{tools: {Bash: ignore}}", &some, Some(&none), Unknown),
        ("{tools: {Bash: exact}}", &some, Some(&some), True),
    ] {
        let rules: MatchArgs = serde_yaml::from_str(rules).unwrap();
        let found = rules.fits(None, expected.as_object().unwrap(), input, None, &Compiled::default());
        assert_eq!(found, fits, "{rules:?} {expected} {input:?}");
    }
}

#[test]
fn what_is_no_expression_is_refused() {
    let refused = |rules: &str, expected: Value| {
        serde_yaml::from_str::<MatchArgs>(rules).unwrap().refusal(expected.as_object().unwrap())
    };
    assert!(refused("{a: regex}", json!({"a": "("})).unwrap().contains("not a regular expression"));
    assert!(refused("{a: regex}", json!({"a": 1})).unwrap().contains("must be a text"));
    assert!(refused("{tools: {x: {a: glob}}}", json!({"a": "["})).unwrap().contains("not a glob"));
    assert!(refused("{a: number}", json!({"a": "many"})).unwrap().contains("as a number"));
    assert_eq!(refused("{a: regex}", json!({"a": "x"})), None);
    let read = serde_yaml::from_str::<MatchArgs>;
    for rules in ["parital", "{a: fuzzy}", "{}", "{a: {number: -1}}", "{tools: {}}", "{'*': regex}"] {
        assert!(read(rules).is_err(), "{rules}");
    }
    // Below a tool, `tools` can only be an argument of this name.
    assert!(read("{tools: {Bash: {tools: exact}}}").is_ok());
    assert!(read("{tools: {Bash: {tools: {x: exact}}}}").is_err());
}
