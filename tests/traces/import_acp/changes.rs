//! Recordings changed at random: whatever an agent sends, the laws of a Trace hold.

use std::fs;

use evals::internal::adapter::Translation;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::internal::wire::{Dir, WireLine};
use evals::trace::Header;
use evals::trace::recorder::Finished;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{lawful, recordings};

/// A change to a recording. Numbers are taken modulo what there is.
#[derive(Debug, Clone)]
enum Change {
    Drop(usize),
    Repeat(usize, usize),
    Swap(usize, usize),
    Turn(usize),
    Cut(usize, usize),
    Noise(usize, String),
    Value(usize, usize, Value),
    Id(usize, Value),
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z_ ]{0,12}".prop_map(Value::from),
        Just(json!("completed")),
        Just(json!("failed")),
        Just(json!("tool_call")),
        Just(json!("cancelled")),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[a-zA-Z_]{1,9}", inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

fn change() -> impl Strategy<Value = Change> {
    let n = any::<usize>();
    prop_oneof![
        n.prop_map(Change::Drop),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Repeat(a, b)),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Swap(a, b)),
        any::<usize>().prop_map(Change::Turn),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Cut(a, b)),
        (any::<usize>(), "\\PC{0,40}").prop_map(|(a, text)| Change::Noise(a, text)),
        (any::<usize>(), any::<usize>(), value()).prop_map(|(a, b, value)| Change::Value(a, b, value)),
        (any::<usize>(), value()).prop_map(|(a, id)| Change::Id(a, id)),
    ]
}

/// Puts a value in the place of the nth node below this one.
fn replace(node: &mut Value, nth: &mut usize, value: &Value) -> bool {
    if *nth == 0 {
        *node = value.clone();
        return true;
    }
    *nth -= 1;
    match node {
        Value::Array(items) => items.iter_mut().any(|item| replace(item, nth, value)),
        Value::Object(map) => map.values_mut().any(|item| replace(item, nth, value)),
        _ => false,
    }
}

fn changed(lines: &mut Vec<WireLine>, change: Change) {
    if lines.is_empty() {
        return;
    }
    let count = lines.len();
    match change {
        Change::Drop(n) => drop(lines.remove(n % count)),
        Change::Repeat(from, to) => {
            let line = lines[from % count].clone();
            lines.insert(to % (count + 1), line);
        }
        Change::Swap(a, b) => lines.swap(a % count, b % count),
        Change::Turn(n) => {
            let line = &mut lines[n % count];
            line.dir = match line.dir {
                Dir::Send => Dir::Recv,
                Dir::Recv => Dir::Send,
                Dir::Stderr => Dir::Engine,
                Dir::Engine => Dir::Exit,
                Dir::Exit => Dir::Recv,
            };
        }
        Change::Cut(n, at) => {
            let text = &mut lines[n % count].line;
            let at = text.floor_char_boundary(at % (text.len() + 1));
            text.truncate(at);
        }
        Change::Noise(n, text) => lines.insert(n % (count + 1), WireLine::text(0, Dir::Recv, text)),
        Change::Value(n, nth, value) => {
            let line = &mut lines[n % count].line;
            if let Ok(mut whole) = serde_json::from_str::<Value>(line) {
                replace(&mut whole, &mut (nth % 40), &value);
                *line = whole.to_string();
            }
        }
        Change::Id(n, id) => {
            let line = &mut lines[n % count].line;
            if let Ok(Value::Object(mut whole)) = serde_json::from_str::<Value>(line) {
                whole.insert("id".to_owned(), id);
                *line = Value::Object(whole).to_string();
            }
        }
    }
}

fn translate(lines: &[WireLine]) -> Finished {
    let manifest = Manifest::bare(Adapter::Acp);
    let mut translation = Translation::new(Adapter::Acp, &manifest, Header::new("acp", manifest.seen()));
    for line in lines {
        translation.line(line);
    }
    translation.finish()
}

proptest! {
    #![proptest_config(crate::properties::tries(192))]

    #[test]
    fn no_line_breaks_the_laws(which in any::<usize>(), changes in prop::collection::vec(change(), 1..30)) {
        let files = recordings();
        let text = fs::read_to_string(&files[which % files.len()]).unwrap();
        let mut lines: Vec<WireLine> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for change in changes {
            changed(&mut lines, change);
        }
        let first = translate(&lines);
        lawful(&first.events);
        let second = translate(&lines);
        prop_assert_eq!(&first.events, &second.events);
        prop_assert_eq!(first.header, second.header);
    }

    #[test]
    fn shuffled_sessions_keep_the_laws(which in any::<usize>(), order in prop::collection::vec(any::<u64>(), 60)) {
        let files = recordings();
        let text = fs::read_to_string(&files[which % files.len()]).unwrap();
        let mut lines: Vec<(u64, WireLine)> = text
            .lines()
            .enumerate()
            .map(|(n, line)| (order[n % order.len()], serde_json::from_str(line).unwrap()))
            .collect();
        lines.sort_by_key(|(key, _)| *key);
        let lines: Vec<WireLine> = lines.into_iter().map(|(_, line)| line).collect();
        lawful(&translate(&lines).events);
    }
}
