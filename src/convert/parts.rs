//! Parts of converted graders that several formats need.

use serde_json::{Map, Value, json};

/// Returns true if a weight is the default weight of graders.
pub fn is_one(weight: f64) -> bool {
    (weight - 1.0).abs() < f64::EPSILON
}

/// Returns a number without a needless fraction.
pub fn number(value: f64) -> Value {
    if value.fract() == 0.0 && (0.0..1e9).contains(&value) { json!(value as u64) } else { json!(value) }
}

/// Returns the keys that every grader takes.
pub fn common(name: &str, weight: f64, is_diagnostic: bool) -> Map<String, Value> {
    let mut keys = Map::new();
    keys.insert("name".to_owned(), json!(name));
    if !is_one(weight) {
        keys.insert("weight".to_owned(), number(weight));
    }
    if is_diagnostic {
        keys.insert("diagnostic".to_owned(), json!(true));
    }
    keys
}

/// Returns the body of a grader below the keys that every grader takes.
pub fn with(mut keys: Map<String, Value>, body: Value) -> Value {
    if let Value::Object(body) = body {
        keys.extend(body);
    }
    Value::Object(keys)
}

/// Returns texts without repetitions, in their order.
pub fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut known: Vec<String> = Vec::new();
    for text in texts {
        if !known.contains(&text) {
            known.push(text);
        }
    }
    known
}

/// Returns the value at a path of keys, unless it is null.
pub fn at<'a>(keys: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let found = rest.iter().try_fold(keys.get(*first)?, |value, key| value.get(*key));
    found.filter(|value| !value.is_null())
}

/// Returns a scalar as a text, or `None` for a list or a map.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a command, a text or a list of words, as one text.
pub fn words(value: &Value) -> String {
    match value {
        Value::Array(list) => list.iter().map(words).collect::<Vec<String>>().join(" "),
        other => scalar(other).unwrap_or_else(|| other.to_string()),
    }
}

/// Returns the texts of a value that is one text or a list of scalars.
pub fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(list) => list.iter().map(scalar).collect(),
        other => Some(vec![scalar(other)?]),
    }
}
