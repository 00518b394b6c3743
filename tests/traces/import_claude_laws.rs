//! The laws of a Trace hold whatever becomes of Claude Code's lines on their way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use proptest::prelude::*;

use crate::claude::{RECORDINGS, imported, recording};
use crate::laws;

/// A recorded line, as it was or damaged.
fn line(lines: Vec<String>) -> impl Strategy<Value = String> {
    let recorded = proptest::sample::select(lines);
    prop_oneof![
        6 => recorded.clone(),
        1 => (recorded.clone(), any::<proptest::sample::Index>()).prop_map(|(line, at)| {
            let end = line.floor_char_boundary(at.index(line.len() + 1));
            line[..end].to_owned()
        }),
        1 => (recorded, any::<proptest::sample::Index>(), json()).prop_map(|(line, at, with)| swap(&line, at, with)),
        1 => json().prop_map(|value| value.to_string()),
    ]
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        proptest::sample::select(vec!["assistant", "user", "result", "system", "stream_event", "text", "tool_use", ""])
            .prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = proptest::sample::select(vec!["type", "message", "content", "id", "event", "input", "usage"]);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::vec((key, inner), 0..4)
                .prop_map(|entries| entries
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect::<serde_json::Map<_, _>>())
                .prop_map(Into::into),
        ]
    })
}

/// Puts another value in the place of one of the line's values.
fn swap(line: &str, at: proptest::sample::Index, with: serde_json::Value) -> String {
    fn count(value: &serde_json::Value) -> usize {
        1 + match value {
            serde_json::Value::Array(list) => list.iter().map(count).sum(),
            serde_json::Value::Object(map) => map.values().map(count).sum(),
            _ => 0,
        }
    }
    fn put(value: &mut serde_json::Value, left: &mut usize, with: &serde_json::Value) {
        if *left == 0 {
            *value = with.clone();
        }
        *left = left.wrapping_sub(1);
        match value {
            serde_json::Value::Array(list) => list.iter_mut().for_each(|it| put(it, left, with)),
            serde_json::Value::Object(map) => map.values_mut().for_each(|it| put(it, left, with)),
            _ => {}
        }
    }
    let Ok(mut value) = serde_json::from_str::<serde_json::Value>(line) else { return line.to_owned() };
    let mut left = at.index(count(&value));
    put(&mut value, &mut left, &with);
    value.to_string()
}

fn all_lines() -> Vec<String> {
    // The long list of commands says nothing and would only make the test slow.
    RECORDINGS
        .iter()
        .flat_map(|name| recording(name).lines().map(str::to_owned).collect::<Vec<_>>())
        .filter(|line| line.len() < 8000)
        .collect()
}

fn hold_to_the_laws(input: &str) -> Result<(), TestCaseError> {
    let trace = imported(input);
    prop_assert_eq!(laws::check(&trace), Ok(()), "{}\n{}", input, trace);
    prop_assert_eq!(&imported(input), &trace, "the same lines give the same trace");
    Ok(())
}

proptest! {
    #![proptest_config(crate::properties::tries(300))]

    #[test]
    fn any_lines_give_a_lawful_trace(lines in proptest::collection::vec(line(all_lines()), 0..60)) {
        hold_to_the_laws(&lines.join("\n"))?;
    }

    #[test]
    fn a_damaged_recording_gives_a_lawful_trace(
        name in proptest::sample::select(RECORDINGS.to_vec()),
        moves in proptest::collection::vec((0..4u8, any::<proptest::sample::Index>(), any::<proptest::sample::Index>()), 1..8),
    ) {
        let mut lines: Vec<String> = recording(name).lines().map(str::to_owned).collect();
        for (kind, a, b) in moves {
            if lines.is_empty() {
                break;
            }
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            match kind {
                0 => drop(lines.remove(a)),
                1 => lines.insert(b, lines[a].clone()),
                2 => lines.swap(a, b),
                _ => {
                    let end = lines[a].floor_char_boundary(lines[a].len() / 2);
                    lines[a].truncate(end);
                }
            }
        }
        hold_to_the_laws(&lines.join("\n"))?;
    }
}

#[test]
fn a_broken_law_is_seen() {
    let lawful = imported(&recording("parallel.jsonl"));
    assert_eq!(laws::check(&lawful), Ok(()));
    let lines: Vec<&str> = lawful.lines().collect();
    let without = |n: usize| [&lines[..n], &lines[n + 1..]].concat().join("\n");
    for n in 0..lines.len() {
        assert!(laws::check(&without(n)).is_err(), "without line {n}");
    }
    for (from, to) in [
        (r#""step":0,"kind":"read""#, r#""step":2,"kind":"read""#),
        (r#""status":"ok""#, r#""status":"unfinished""#),
        (r#""at_ms":0,"type":"thought""#, r#""at_ms":7,"type":"thought""#),
        (r#""reason":"end_turn""#, r#""reason":"error""#),
        ("toolu_t0_3_33172bce\",\"step", "toolu_t0_2_f564604b\",\"step"),
    ] {
        assert!(lawful.contains(from), "{from}");
        assert!(laws::check(&lawful.replacen(from, to, 1)).is_err(), "{to}");
    }
}
