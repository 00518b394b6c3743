//! Lines that mean harm: huge, deep, endless, of any shape. Each ends soon, lawfully, with what happened told.

use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{AGENTS, built_in, events, laws, manifest, recordings, trace};

fn lawful(rules: &str, input: &str) -> String {
    let begun = Instant::now();
    let trace = trace(&manifest(rules), input);
    laws::assert_lawful(&trace);
    assert!(begun.elapsed().as_secs() < 60, "it took {:?}", begun.elapsed());
    trace
}

#[test]
fn huge_and_deep_lines_come_to_an_end() {
    let rules = r#"
stream:
  - {when: "line.type == 'list' && line.list.exists(a, line.list.exists(b, a + b < 0))", ignore: true}
  - {when: line.type == 'text', emit: {message: {text: line.text + line.text}}}
  - {when: line.text.matches('^(a+)+$'), ignore: true}
  - {when: line.type == 'keep', keep: {all: kept.?all.orValue('') + line.text}}
"#;
    let list = json!({"type": "list", "list": vec![1; 300_000]}).to_string();
    assert!(lawful(rules, &list).contains("the expression reads too many values"));
    let text = json!({"type": "text", "text": "x".repeat(8 << 20)}).to_string();
    assert!(lawful(rules, &text).len() > 8 << 20);
    lawful(rules, &json!({"type": "z", "text": "a".repeat(1 << 20) + "b"}).to_string());
    let deep = format!("{{\"type\":\"z\",\"x\":{}{}}}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    assert!(lawful(rules, &deep).contains("\"code\":\"malformed_line\""));
    let keep = json!({"type": "keep", "text": "x".repeat(400_000)}).to_string();
    assert!(lawful(rules, &[keep.as_str(); 5].join("\n")).contains("the kept values would exceed"));
    let odd =
        "{\"type\":\"z\",\"type\":\"text\",\"text\":\"\\ud800 \\u0000\"}\n\u{feff}{}\n{\"type\":1e999}\n{}\nnull\n\"\"";
    lawful(rules, odd);
}

/// Any JSON, of keys and words that the manifests ask for.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-z{}\\[\\]\" ]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let key = proptest::sample::select(vec!["id", "text", "type", "content", "x"]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::vec((key, inner), 0..4).prop_map(|entries| {
                Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

/// Puts a value in the place of one within the line.
fn put(value: &mut Value, left: &mut usize, with: &Value) {
    if *left == 0 {
        *value = with.clone();
    }
    *left = left.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|value| put(value, left, with)),
        Value::Object(map) => map.values_mut().for_each(|value| put(value, left, with)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(crate::properties::tries(40))]

    #[test]
    fn damaged_recordings_keep_the_laws(
        agent in 0..AGENTS.len(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), 0..40_usize, any_json()), 1..6),
    ) {
        let (agent, harness) = AGENTS[agent];
        let (_, text) = recordings(agent).swap_remove(0);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (at, mut place, with) in changes {
            let at = at.index(lines.len());
            if let Ok(mut line) = serde_json::from_str::<Value>(&lines[at]) {
                put(&mut line, &mut place, &with);
                lines[at] = line.to_string();
            }
        }
        let input = lines.join("\n");
        let one = trace(built_in(harness), &input);
        if let Err(broken) = laws::check(&one) {
            return Err(TestCaseError::fail(format!("{broken}\n{input}\n{one}")));
        }
        prop_assert_eq!(&one, &trace(built_in(harness), &input));
        prop_assert!(!events(&one).is_empty());
    }
}
