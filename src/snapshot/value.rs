//! Values and keys in the text form of snapshots: words as they are if that is unambiguous, else JSON.

use std::borrow::Cow;

use serde_json::Value;

use crate::trace::view;
use crate::values::{is_hidden, is_variation};

/// Returns a text in its stored form: unchanged, with its lines, if it cannot be taken for JSON and has no invisible
/// characters; else as JSON.
pub fn of_text(text: &str) -> String {
    if text.contains('\n') {
        return text.split('\n').map(of_line).collect::<Vec<_>>().join("\n");
    }
    let plain = !hides(text) && !text.is_empty() && text.trim() == text && serde_json::from_str::<Value>(text).is_err();
    if plain && !text.contains('\t') { text.to_owned() } else { quoted(text) }
}

/// Returns one of several lines: as JSON if it has hidden characters, or if it could be taken for JSON.
fn of_line(line: &str) -> Cow<'_, str> {
    let looks_quoted = line.starts_with('"') && serde_json::from_str::<String>(line).is_ok();
    if hides(line) || looks_quoted { Cow::Owned(quoted(line)) } else { Cow::Borrowed(line) }
}

/// Returns true if a part of the text would be invisible, or would change how the rest is shown.
fn hides(text: &str) -> bool {
    text.chars().any(is_odd)
}

fn is_odd(c: char) -> bool {
    c.is_control() && c != '\t' || is_hidden(c) || is_variation(c)
}

/// Returns the text as JSON in which everything is visible.
fn quoted(text: &str) -> String {
    let json = Value::String(text.to_owned()).to_string();
    if !hides(&json) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if is_odd(c) {
            c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Returns the stored form of a text on one line.
pub fn on_one_line(text: &str) -> String {
    if text.contains('\n') { quoted(text) } else { of_text(text) }
}

/// Returns the text that [`on_one_line`] wrote.
pub fn from_one_line(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::String(text)) => text,
        _ => text.to_owned(),
    }
}

/// Returns a key as a part of a path: unchanged, unless it contains characters with a meaning in paths.
pub fn of_key(key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '/' | '{' | '}');
    if !key.is_empty() && key.chars().all(plain) && key.trim() == key {
        key.to_owned()
    } else {
        quoted(key).replace(':', "\\u003a")
    }
}

/// Returns a path of a file after a word with `@`.
pub fn of_path(path: &str) -> String {
    let odd = |c: char| c == ':' || c == '"' || c == '\t' || is_odd(c);
    if path.is_empty() || path.trim() != path || path.contains(odd) {
        quoted(path).replace(':', "\\u003a")
    } else {
        path.to_owned()
    }
}

/// A function that replaces a text under a key.
type Replaced<'a> = &'a dyn Fn(&str, &str) -> String;

/// Returns the leaves of a value with their paths, keys in order. `replaced` takes each leaf's key and text.
pub fn leaves(value: &Value, replaced: Replaced<'_>) -> Vec<(String, String)> {
    let mut found = Vec::with_capacity(1);
    flatten(value, String::new(), "", replaced, 0, &mut found);
    found
}

/// Returns the leaves of an object that is not empty, as [`leaves`] does.
pub fn leaves_of(pairs: &[(Box<str>, Value)], replaced: Replaced<'_>) -> Vec<(String, String)> {
    let mut found = Vec::with_capacity(pairs.len());
    let pairs = pairs.iter().map(|(key, value)| (&**key, value));
    flatten_object(pairs, "", replaced, 0, &mut found);
    found
}

/// The maximum depth of a path; a deeper value is written on one line.
const MAX_PATH_DEPTH: usize = 32;

fn flatten(
    value: &Value,
    path: String,
    key: &str,
    replaced: Replaced<'_>,
    depth: usize,
    found: &mut Vec<(String, String)>,
) {
    match value {
        Value::Object(map) if !map.is_empty() && depth < MAX_PATH_DEPTH => {
            flatten_object(map.iter().map(|(key, value)| (key.as_str(), value)), &path, replaced, depth, found);
        }
        Value::Array(list) if !list.is_empty() && depth < MAX_PATH_DEPTH => {
            for (n, value) in list.iter().enumerate() {
                flatten(value, format!("{path}[{n}]"), key, replaced, depth + 1, found);
            }
        }
        Value::String(text) => found.push((named(path), of_text(&replaced(key, text)))),
        other => {
            let text = view::canonical(other);
            let now = replaced(key, &text);
            // A number that a rule has replaced is a text from then on.
            found.push((named(path), if now == text { text } else { of_text(&now) }));
        }
    }
}

fn flatten_object<'v>(
    pairs: impl Iterator<Item = (&'v str, &'v Value)>,
    path: &str,
    replaced: Replaced<'_>,
    depth: usize,
    found: &mut Vec<(String, String)>,
) {
    let mut keys: Vec<(String, &Value)> = pairs.map(|(key, value)| (replaced("", key), value)).collect();
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    for (key, value) in keys {
        let dot = if path.is_empty() { "" } else { "." };
        flatten(value, format!("{path}{dot}{}", of_key(&key)), &key, replaced, depth + 1, found);
    }
}

/// Returns the path of a leaf. An input that is not an object has no key.
fn named(path: String) -> String {
    if path.is_empty() { "@input".to_owned() } else { path }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_told_from_every_other_value() {
        assert_eq!(of_text("-le \"$n\""), "-le \"$n\"");
        assert_eq!(of_text("5"), "\"5\"");
        assert_eq!(of_text("true"), "\"true\"");
        assert_eq!(of_text(" a"), "\" a\"");
        assert_eq!(of_text(""), "\"\"");
        assert_eq!(of_text("a\nb\n"), "a\nb\n");
        assert_eq!(of_text("a\r\nb\n\"c\"\n \"d\""), "\"a\\r\"\nb\n\"\\\"c\\\"\"\n \"d\"");
        // Characters that reorder or hide text are escaped, also beyond the first plane.
        assert_eq!(of_text("a\u{202e}b"), "\"a\\u202eb\"");
        assert_eq!(of_text("a\n\u{200b}\u{e0041}b"), "a\n\"\\u200b\\udb40\\udc41b\"");
        assert_eq!(of_key("a\u{feff}"), "\"a\\ufeff\"");
        assert_eq!(of_path("a\u{2066}"), "\"a\\u2066\"");
        assert_eq!(from_one_line(&on_one_line("\u{1b}[1m\u{e0041}\u{7f}")), "\u{1b}[1m\u{e0041}\u{7f}");
        assert_eq!(on_one_line("a\nb"), "\"a\\nb\"");
        assert_eq!(from_one_line(&on_one_line("a\nb")), "a\nb");
    }

    #[test]
    fn values_become_leaves_with_their_paths() {
        let value = json!({"b": [1, {"c d": "x"}], "a": {}, "@x": null, "k: v": 1.0});
        let same = |_: &str, text: &str| text.to_owned();
        let found = leaves(&value, &same);
        let lines: Vec<String> = found.iter().map(|(path, value)| format!("{path} = {value}")).collect();
        assert_eq!(lines, ["\"@x\" = null", "a = {}", "b[0] = 1", "b[1].\"c d\" = x", "\"k\\u003a v\" = 1"]);
        assert_eq!(leaves(&json!("a"), &same), [("@input".to_owned(), "a".to_owned())]);
    }
}
