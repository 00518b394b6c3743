//! Compares two requests: how alike they are, and where they first differ.

use serde_json::Value;

use crate::text::{first_chars, marked};

/// The number of characters of a text that are shown on each side of a difference.
const SHOWN: usize = 60;

/// Returns the place of the first difference and both values, as a sentence part; `None` if the values are equal.
/// Keys of objects are compared in the order of `recorded`.
pub fn first(recorded: &Value, now: &Value) -> Option<String> {
    at("", recorded, now)
}

fn at(path: &str, recorded: &Value, now: &Value) -> Option<String> {
    match (recorded, now) {
        (Value::Object(old), Value::Object(new)) => {
            let inner = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
            for (key, value) in old {
                match new.get(key) {
                    Some(now) => {
                        if let Some(found) = at(&inner(key), value, now) {
                            return Some(found);
                        }
                    }
                    None => return Some(format!("`{}` was {}, and is absent now", inner(key), shown(value))),
                }
            }
            let added = new.iter().find(|(key, _)| !old.contains_key(*key));
            added.map(|(key, value)| format!("`{}` was absent, and is {} now", inner(key), shown(value)))
        }
        (Value::Array(old), Value::Array(new)) => {
            for (index, (one, other)) in old.iter().zip(new).enumerate() {
                if let Some(found) = at(&format!("{path}[{index}]"), one, other) {
                    return Some(found);
                }
            }
            let path = if path.is_empty() { "the list" } else { path };
            match (old.get(new.len()), new.get(old.len())) {
                (Some(more), _) => Some(format!("`{path}[{}]` was {}, and is absent now", new.len(), shown(more))),
                (None, Some(more)) => Some(format!("`{path}[{}]` was absent, and is {} now", old.len(), shown(more))),
                (None, None) => None,
            }
        }
        (Value::String(old), Value::String(new)) if old != new => {
            let same = old.chars().zip(new.chars()).take_while(|(one, other)| one == other).count();
            // A few equal characters before the difference show where it is.
            let from = same.saturating_sub(SHOWN / 3);
            let part = |text: &str| {
                let rest: String = text.chars().skip(from).collect();
                let part = Value::from(marked(first_chars(&rest, SHOWN), &rest)).to_string();
                if from > 0 { format!("…{part}") } else { part }
            };
            Some(format!("`{path}` was {}, and is {} now", part(old), part(new)))
        }
        (old, new) if old != new => Some(format!("`{path}` was {}, and is {} now", shown(old), shown(new))),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    marked(first_chars(&text, SHOWN), &text)
}

/// Returns how alike two values are, from 0 to 1: the share of the larger one that is equal in both, by the size of
/// texts.
pub fn likeness(one: &Value, other: &Value) -> f64 {
    let larger = size(one).max(size(other));
    if larger == 0 { 1.0 } else { common(one, other) as f64 / larger as f64 }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(fields) => 1 + fields.iter().map(|(key, value)| key.len() + size(value)).sum::<usize>(),
        _ => 1,
    }
}

fn common(one: &Value, other: &Value) -> usize {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            1 + one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
        }
        (Value::Array(one), Value::Array(other)) => {
            1 + one.iter().zip(other).map(|(one, other)| common(one, other)).sum::<usize>()
        }
        (Value::Object(one), Value::Object(other)) => {
            let both = one.iter().filter_map(|(key, value)| Some((key, value, other.get(key)?)));
            1 + both.map(|(key, one, other)| key.len() + common(one, other)).sum::<usize>()
        }
        (one, other) => usize::from(one == other),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_has_its_place_and_both_values() {
        let old = json!({"model": "m", "messages": [{"content": "read a.txt"}, {"content": "done"}]});
        for (new, wanted) in [
            (json!({"model": "n", "messages": []}), "`model` was \"m\", and is \"n\" now"),
            (
                json!({"model": "m", "messages": [{"content": "read b.txt"}, {"content": "done"}]}),
                "`messages[0].content` was \"read a.txt\", and is \"read b.txt\" now",
            ),
            (
                json!({"model": "m", "messages": [{"content": "read a.txt"}]}),
                "`messages[1]` was {\"content\":\"done\"}, and is absent now",
            ),
            (
                json!({"model": "m", "messages": [{"content": "read a.txt"}, {"content": "done"}], "x": 1}),
                "`x` was absent, and is 1 now",
            ),
        ] {
            assert_eq!(first(&old, &new).as_deref(), Some(wanted));
        }
        assert_eq!(first(&old, &old), None);
    }

    #[test]
    fn a_difference_late_in_a_long_text_is_shown() {
        let old = json!("a".repeat(500) + "x");
        let new = json!("a".repeat(500) + "y");
        let text = first(&old, &new).unwrap();
        assert!(text.contains("ax\"") && text.contains("ay\"") && text.len() < 200, "{text}");
    }

    #[test]
    fn what_is_more_alike_is_nearer() {
        let now = json!({"messages": ["read a.txt", "then b.txt"]});
        let near = json!({"messages": ["read a.txt", "then c.txt"]});
        let far = json!({"messages": ["another task"]});
        assert!(likeness(&now, &near) > likeness(&now, &far));
        assert!((likeness(&now, &now) - 1.0).abs() < f64::EPSILON);
    }
}
