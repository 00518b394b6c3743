//! Damages an input: its bytes, its lines, or the JSON in a line. The same seed damages it the same way.

use serde_json::{Map, Value, json};

use crate::rng::Rng;

/// What an input is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// JSON, one value a line.
    Json,
    /// YAML.
    Yaml,
}

/// Longer inputs only cost time.
const MOST: usize = 256 << 10;

/// A seed with up to five things done to it. One in twelve is left as it is.
pub fn mutate(rng: &mut Rng, seeds: &[Vec<u8>], form: Form) -> Vec<u8> {
    let mut input = rng.pick(seeds).clone();
    if rng.one_in(12) {
        return input;
    }
    if form == Form::Json && rng.one_in(2) {
        input = window(rng, &input);
    }
    for _ in 0..=rng.below(5) {
        input.truncate(MOST);
        match rng.below(10) {
            0..=2 => bytes(rng, &mut input, seeds),
            3..=5 => lines(rng, &mut input, seeds),
            _ if form == Form::Json => in_a_line(rng, &mut input),
            _ => yaml(rng, &mut input),
        }
    }
    input.truncate(MOST);
    input
}

/// The input without some of its lines, from the start, the end or the middle.
pub fn without(input: &[u8], from: usize, count: usize) -> Vec<u8> {
    let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
    let to = (from + count).min(lines.len());
    [&lines[..from.min(to)], &lines[to..]].concat().concat()
}

pub fn count_lines(input: &[u8]) -> usize {
    input.split_inclusive(|byte| *byte == b'\n').count()
}

/// The first line, and some lines in a row.
fn window(rng: &mut Rng, input: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = input.split_inclusive(|byte| *byte == b'\n').collect();
    if lines.len() < 3 {
        return input.to_vec();
    }
    let from = 1 + rng.below(lines.len() - 1);
    let to = from + rng.below(lines.len() - from) + 1;
    [&lines[..1], &lines[from..to]].concat().concat()
}

fn bytes(rng: &mut Rng, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let at = rng.below(input.len() + 1);
    let end = at + rng.below((input.len() - at).min(200) + 1);
    match rng.below(9) {
        0 if at < input.len() => input[at] ^= 1 << rng.below(8),
        1 => drop(input.drain(at..end)),
        2 => {
            let any: Vec<u8> = (0..rng.below(8)).map(|_| rng.next() as u8).collect();
            input.splice(at..at, any).for_each(drop);
        }
        3 => input.truncate(at),
        4 => {
            let part = input[at..end].to_vec();
            for _ in 0..=rng.below(4) {
                input.splice(at..at, part.iter().copied()).for_each(drop);
            }
        }
        5 => {
            let other = rng.pick(seeds);
            let from = rng.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        6 => {
            let odd: [&[u8]; 8] = [
                b"\xff",
                b"\xc3",
                b"\xed\xa0\x80",
                b"\xf0\x9f\x92",
                b"\0",
                b"\xef\xbb\xbf",
                b"\r",
                "\u{2028}\u{202e}\u{1f468}\u{200d}\u{1f469}".as_bytes(),
            ];
            input.splice(at..at, rng.pick(&odd).iter().copied()).for_each(drop);
        }
        7 => {
            let odd: [&[u8]; 8] = [b"\"", b"{", b"}", b"[", b",", b":", b"\\u0000", b"\\ud800"];
            input.splice(at..at, rng.pick(&odd).iter().copied()).for_each(drop);
        }
        _ => {
            let with = rng.next() as u8;
            input[at..end].fill(with);
        }
    }
}

fn lines(rng: &mut Rng, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let mut lines: Vec<Vec<u8>> = input.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return;
    }
    let (a, b) = (rng.below(lines.len()), rng.below(lines.len()));
    match rng.below(7) {
        0 => drop(lines.remove(a)),
        1 => {
            // Now and then so often that work which grows faster than its input is noticed.
            let times = if rng.one_in(20) { 400 } else { rng.below(3) };
            let more = vec![lines[a].clone(); times + 1];
            lines.splice(b..b, more).for_each(drop);
        }
        2 => lines.swap(a, b),
        3 => lines[a.min(b)..=a.max(b)].reverse(),
        4 => {
            let other = rng.pick(seeds);
            let others: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            if !others.is_empty() {
                let from = rng.below(others.len());
                let to = (from + 1 + rng.below(8)).min(others.len());
                lines.splice(a..a, others[from..to].iter().map(|line| line.to_vec())).for_each(drop);
            }
        }
        5 => drop(lines.drain(a.min(b)..a.max(b))),
        _ => {
            let line = lines.remove(a);
            lines.insert(b.min(lines.len()), line);
        }
    }
    *input = lines.concat();
}

/// Changes the JSON of one line, or of the whole input where that is one value.
fn in_a_line(rng: &mut Rng, input: &mut Vec<u8>) {
    if let Ok(mut value) = serde_json::from_slice::<Value>(input) {
        json_value(rng, &mut value);
        *input = text(rng, &value).into_bytes();
        return;
    }
    let mut lines: Vec<Vec<u8>> = input.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = rng.below(lines.len());
    let Ok(mut value) = serde_json::from_slice::<Value>(&lines[at]) else { return };
    // The lines of a wire log hold the agent's own, which is the more interesting one.
    let inner = value.get("line").and_then(Value::as_str).and_then(|line| serde_json::from_str::<Value>(line).ok());
    match inner {
        Some(mut inner) if !rng.one_in(5) => {
            json_value(rng, &mut inner);
            value["line"] = Value::String(text(rng, &inner));
        }
        _ => json_value(rng, &mut value),
    }
    lines[at] = text(rng, &value).into_bytes();
    *input = lines.join(&b'\n');
}

/// The value as text, now and then with a key that stands twice.
fn text(rng: &mut Rng, value: &Value) -> String {
    let mut text = value.to_string();
    if rng.one_in(8) {
        let opened: Vec<usize> = text.match_indices("{\"").map(|(at, _)| at).collect();
        if !opened.is_empty() {
            let at = *rng.pick(&opened);
            if let Some(end) = text[at + 2..].find("\":") {
                let key = text[at + 1..at + 2 + end + 1].to_owned();
                text.insert_str(at + 1, &format!("{key}:{},", odd(rng)));
            }
        }
    }
    text
}

fn json_value(rng: &mut Rng, value: &mut Value) {
    match rng.below(8) {
        // Two ids, or other texts, change places.
        0 => {
            let (from, to) = (some_text(rng, value), some_text(rng, value));
            if let (Some(from), Some(to)) = (from, to) {
                rename(value, &from, &to);
            }
        }
        1 => {
            let at = rng.below(count(value));
            change(value, &mut { at }, &mut |node| {
                if let Value::Object(map) = node
                    && !map.is_empty()
                {
                    let keys: Vec<String> = map.keys().cloned().collect();
                    let key = rng.pick(&keys).clone();
                    let taken = map.remove(&key).unwrap_or_default();
                    match rng.below(3) {
                        0 => {}
                        1 => drop(map.insert(rng.pick(&keys).clone(), taken)),
                        _ => drop(map.insert(format!("{key}x"), taken)),
                    }
                }
            });
        }
        2 => {
            let at = rng.below(count(value));
            change(value, &mut { at }, &mut |node| {
                if let Value::Array(list) = node
                    && !list.is_empty()
                {
                    let item = rng.pick(list).clone();
                    match rng.below(3) {
                        0 => list.clear(),
                        1 => list.push(item),
                        _ => list.reverse(),
                    }
                }
            });
        }
        _ => {
            let at = rng.below(count(value));
            let with = odd(rng);
            change(value, &mut { at }, &mut |node| *node = with.clone());
        }
    }
}

/// A value that nobody expects.
fn odd(rng: &mut Rng) -> Value {
    match rng.below(16) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!([]),
        3 => json!(""),
        4 => json!(u64::MAX),
        5 => json!(i64::MIN),
        6 => json!(-1),
        7 => json!(1e308),
        8 => json!(0.1),
        9 => json!(rng.one_in(2)),
        10 => json!("\u{0}\u{1b}[31m\u{202e}"),
        11 => json!([[{"a": [null]}], "b"]),
        12 => {
            let depth = if rng.one_in(4) { 200 } else { rng.below(30) };
            (0..depth).fold(json!(1), |inner, _| json!([inner]))
        }
        13 => {
            let depth = if rng.one_in(4) { 200 } else { rng.below(30) };
            (0..depth).fold(json!("x"), |inner, _| json!({"content": inner}))
        }
        14 => json!("x".repeat(rng.below(3000))),
        _ => {
            let words = [
                "completed",
                "failed",
                "pending",
                "end_turn",
                "cancelled",
                "text",
                "tool_use",
                "tool_result",
                "assistant",
                "user",
                "recv",
                "send",
                "engine",
                "exit",
                "stop",
                "usage",
                "message",
            ];
            json!(rng.pick(&words))
        }
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Does something to the node of that number.
fn change(value: &mut Value, left: &mut usize, with: &mut dyn FnMut(&mut Value)) {
    if *left == 0 {
        *left = usize::MAX;
        return with(value);
    }
    *left = left.wrapping_sub(1);
    match value {
        Value::Array(list) => list.iter_mut().for_each(|it| change(it, left, with)),
        Value::Object(map) => map.values_mut().for_each(|it| change(it, left, with)),
        _ => {}
    }
}

fn some_text(rng: &mut Rng, value: &Value) -> Option<String> {
    let mut found = Vec::new();
    texts(value, &mut found);
    if found.is_empty() { None } else { Some(rng.pick(&found).clone()) }
}

fn texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|it| texts(it, found)),
        Value::Object(map) => map.values().for_each(|it| texts(it, found)),
        _ => {}
    }
}

fn rename(value: &mut Value, from: &str, to: &str) {
    match value {
        Value::String(text) if text == from => to.clone_into(text),
        Value::String(text) if text == to => from.clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(|it| rename(it, from, to)),
        Value::Object(map) => {
            let old = std::mem::take(map);
            let renamed = old.into_iter().map(|(key, mut it)| {
                rename(&mut it, from, to);
                (key, it)
            });
            *map = renamed.collect::<Map<_, _>>();
        }
        _ => {}
    }
}

/// Changes what stands on a line of YAML: its value, its key, how far it is set in.
fn yaml(rng: &mut Rng, input: &mut Vec<u8>) {
    const VALUES: [&str; 34] = [
        "",
        "~",
        "null",
        "true",
        "0",
        "-1",
        "1e999",
        ".nan",
        "0x7f",
        "18446744073709551616",
        "''",
        "\"\\x00\"",
        "[]",
        "{}",
        "[[]]",
        "{a: b}",
        "&a x",
        "*a",
        "&a [*a]",
        "!!binary x",
        "!tag {}",
        "|",
        ">-",
        "? x",
        "- x",
        "'",
        "\"",
        "@",
        "%TAG ! x",
        "---",
        "...",
        "<<: *a",
        "\tx",
        "(((",
    ];
    let text = String::from_utf8_lossy(input).into_owned();
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if lines.is_empty() {
        return;
    }
    let at = rng.below(lines.len());
    let line = lines[at].trim_end_matches('\n').to_owned();
    let key = line.find(':');
    lines[at] = match rng.below(8) {
        0 => format!(" {line}\n"),
        1 => format!("{}\n", line.strip_prefix("  ").unwrap_or(&line)),
        2 => match key {
            Some(end) => format!("{}: {}\n", &line[..end], odd(rng)),
            None => format!("{line}{}\n", rng.pick(&VALUES)),
        },
        3 => match key {
            Some(end) => format!("{}x{}\n", &line[..end], &line[end..]),
            None => format!("{line}: {line}\n"),
        },
        4 => {
            let depth = if rng.one_in(4) { 300 } else { 3 };
            format!("{}: {}\n", &line[..key.unwrap_or(line.len())], "[".repeat(depth))
        }
        5 => {
            let word: Vec<&str> = line.split(' ').collect();
            let word = (*rng.pick(&word)).to_owned();
            let with = VALUES[rng.below(VALUES.len())];
            format!("{}\n", line.replacen(&word, with, 1))
        }
        _ => match key {
            Some(end) => format!("{}: {}\n", &line[..end], rng.pick(&VALUES)),
            None => format!("{}\n", rng.pick(&VALUES)),
        },
    };
    *input = lines.concat().into_bytes();
}
