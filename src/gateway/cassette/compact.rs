//! Writes a request shorter: what an earlier request already holds is a reference, and large parts lie in files.
//!
//! `{"$same": 3}` means the value of the same key in entry 3. `{"$first": 12, "of": 3}` as the first element of a
//! list means the first 12 elements of that list in entry 3. `{"$body": "system-1a2b3c4d.txt"}` means the
//! content of a file. A key of a request that begins with `$` gets another one, so that no request can be mistaken.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The size in bytes from which a value that occurred before becomes a reference.
const WORTH: usize = 200;

/// The size in bytes from which a text lies in a file of its own.
const LARGE_TEXT: usize = 4 << 10;

/// The size in bytes from which another value of a request lies in a file of its own.
const LARGE_VALUE: usize = 16 << 10;

/// The content of the files, by name.
pub(super) type Bodies = BTreeMap<String, String>;

/// An error in the references of a cassette.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReferenceError {
    /// The entry does not exist, or comes later.
    #[error("`{key}` refers to entry {entry}, which is not an earlier entry with that key")]
    Entry {
        /// The key of the request.
        key: String,
        /// The number of the entry.
        entry: u64,
    },
    /// A reference is at a place where references are not allowed.
    #[error("{0} refers to nothing here: only a key of a request refers to an earlier entry, by its number")]
    Misplaced(String),
    /// The list of the earlier entry is too short.
    #[error("`{key}` takes the first {count} elements of entry {entry}, which has fewer")]
    Count {
        /// The key of the request.
        key: String,
        /// The number of the entry.
        entry: u64,
        /// The number of elements that the reference takes from the beginning of the list.
        count: u64,
    },
    /// The file does not exist, or cannot be read.
    #[error("the file {name} cannot be read: {why}")]
    Body {
        /// The name of the file, as `$body` gives it.
        name: String,
        /// The reason.
        why: String,
    },
}

/// Returns the short form of a request. `before` holds the earlier requests by their numbers, the newest last.
pub(super) fn compact(request: &Value, before: &[(u64, &Value)], bodies: &mut Bodies) -> Value {
    let Value::Object(fields) = request else { return apart("request", &escaped(request), bodies) };
    let mut short = Map::new();
    for (key, value) in fields {
        short.insert(escaped_key(key), field(key, value, before, bodies));
    }
    Value::Object(short)
}

fn field(key: &str, value: &Value, before: &[(u64, &Value)], bodies: &mut Bodies) -> Value {
    let worth = |value: &Value| value.to_string().len() >= WORTH;
    if !worth(value) {
        return escaped(value);
    }
    let earlier = || before.iter().filter_map(|(n, request)| Some((*n, request.get(key)?)));
    // The first entry with the value, so that an entry in between can be removed.
    if let Some((n, _)) = earlier().find(|(_, old)| *old == value) {
        return json!({ "$same": n });
    }
    if let Value::Array(items) = value {
        let common = |old: &Value| match old {
            Value::Array(old) => old.iter().zip(items).take_while(|(one, other)| one == other).count(),
            _ => 0,
        };
        let longest = earlier().map(|(n, old)| (common(old), n)).max().filter(|(count, _)| *count > 0);
        if let Some((count, n)) = longest.filter(|(count, _)| worth(&Value::from(items[..*count].to_vec()))) {
            let first = std::iter::once(json!({"$first": count, "of": n}));
            let rest = items[count..].iter().map(|item| apart(key, &escaped(item), bodies));
            return Value::Array(first.chain(rest).collect());
        }
    }
    let short = apart(key, &escaped(value), bodies);
    let text = short.to_string();
    if text.len() < LARGE_VALUE {
        return short;
    }
    let pretty = serde_json::to_string_pretty(&short).unwrap_or(text);
    keep(key, "json", pretty, bodies)
}

/// Moves large texts of a value into files.
fn apart(name: &str, value: &Value, bodies: &mut Bodies) -> Value {
    match value {
        Value::String(text) if text.len() >= LARGE_TEXT => keep(name, "txt", text.clone(), bodies),
        Value::Array(items) => Value::Array(items.iter().map(|item| apart(name, item, bodies)).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (key.clone(), apart(key, value, bodies))).collect())
        }
        other => other.clone(),
    }
}

fn keep(name: &str, extension: &str, text: String, bodies: &mut Bodies) -> Value {
    let same = |file: &&String| file.ends_with(extension) && bodies.get(*file) == Some(&text);
    if let Some(file) = bodies.keys().find(same) {
        return json!({ "$body": file });
    }
    let digest = blake3::hash(text.as_bytes()).to_hex();
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(40).collect();
    let file = format!("{plain}-{}.{extension}", &digest.as_str()[..12]);
    bodies.insert(file.clone(), text);
    json!({ "$body": file })
}

/// Returns the answer of an entry with its large texts in files.
pub(super) fn compact_answer(response: &Value, bodies: &mut Bodies) -> Value {
    apart("response", &escaped(response), bodies)
}

/// Returns the complete request. `before` returns an earlier request, `read` the content of a file.
pub(super) fn whole<'a>(
    short: &Value,
    before: &dyn Fn(u64) -> Option<&'a Value>,
    read: &dyn Fn(&str) -> Result<String, ReferenceError>,
) -> Result<Value, ReferenceError> {
    let Value::Object(fields) = short else { return filled(short, read) };
    if body_of(short).is_some() {
        return filled(short, read);
    }
    let mut request = Map::new();
    for (key, value) in fields {
        let key = unescaped_key(key);
        let value = whole_field(&key, value, before, read)?;
        request.insert(key, value);
    }
    Ok(Value::Object(request))
}

fn whole_field<'a>(
    key: &str,
    value: &Value,
    before: &dyn Fn(u64) -> Option<&'a Value>,
    read: &dyn Fn(&str) -> Result<String, ReferenceError>,
) -> Result<Value, ReferenceError> {
    let earlier = |entry: u64| before(entry).and_then(|request| request.get(key));
    let missing = |entry: u64| ReferenceError::Entry { key: key.to_owned(), entry };
    if let Some(entry) = only(value, "$same").and_then(Value::as_u64) {
        return earlier(entry).cloned().ok_or_else(|| missing(entry));
    }
    if let Value::Array(items) = value
        && let Some((count, entry)) = items.first().and_then(first_of)
    {
        let old = earlier(entry).and_then(Value::as_array).ok_or_else(|| missing(entry))?;
        let taken = usize::try_from(count).ok().and_then(|count| old.get(..count));
        let taken = taken.ok_or_else(|| ReferenceError::Count { key: key.to_owned(), entry, count })?;
        let rest = items[1..].iter().map(|item| filled(item, read));
        return taken.iter().cloned().map(Ok).chain(rest).collect::<Result<Vec<_>, _>>().map(Value::Array);
    }
    filled(value, read)
}

/// Returns a value with the contents of its files.
pub(super) fn filled(
    value: &Value,
    read: &dyn Fn(&str) -> Result<String, ReferenceError>,
) -> Result<Value, ReferenceError> {
    if let Some(name) = body_of(value) {
        let text = read(name)?;
        if std::path::Path::new(name).extension().is_none_or(|extension| extension != "json") {
            return Ok(Value::String(text));
        }
        let parsed: Value = serde_json::from_str(&text)
            .map_err(|error| ReferenceError::Body { name: name.to_owned(), why: error.to_string() })?;
        return filled(&parsed, read);
    }
    // Keys of a recorded request or answer that begin with `$` were written with another one.
    let is_reference = |fields: &Map<String, Value>| fields.contains_key("$same") || fields.contains_key("$first");
    if value.as_object().is_some_and(is_reference) {
        return Err(ReferenceError::Misplaced(value.to_string()));
    }
    Ok(match value {
        Value::Array(items) => Value::Array(items.iter().map(|item| filled(item, read)).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| Ok((unescaped_key(key), filled(value, read)?)));
            Value::Object(fields.collect::<Result<_, ReferenceError>>()?)
        }
        other => other.clone(),
    })
}

fn only<'a>(value: &'a Value, key: &str) -> Option<&'a Value> {
    value.as_object().filter(|fields| fields.len() == 1)?.get(key)
}

fn body_of(value: &Value) -> Option<&str> {
    only(value, "$body")?.as_str()
}

fn first_of(value: &Value) -> Option<(u64, u64)> {
    let fields = value.as_object().filter(|fields| fields.len() == 2)?;
    Some((fields.get("$first")?.as_u64()?, fields.get("of")?.as_u64()?))
}

fn escaped_key(key: &str) -> String {
    if key.starts_with('$') { format!("${key}") } else { key.to_owned() }
}

fn unescaped_key(key: &str) -> String {
    if key.starts_with("$$") { key[1..].to_owned() } else { key.to_owned() }
}

fn escaped(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.iter().map(escaped).collect()),
        Value::Object(fields) => {
            Value::Object(fields.iter().map(|(key, value)| (escaped_key(key), escaped(value))).collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z$]{0,12}".prop_map(Value::from),
            Just(Value::from("x".repeat(LARGE_TEXT + 1))),
            Just(json!({"$same": 1})),
            Just(json!({"$body": "a.txt"})),
            Just(json!({"$first": 1, "of": 1})),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map("[$a-c]{1,3}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_request_is_what_its_short_form_stands_for(requests in prop::collection::vec(any_json(), 1..5)) {
            let mut bodies = Bodies::new();
            for (at, request) in requests.iter().enumerate() {
                let before: Vec<(u64, &Value)> =
                    requests[..at].iter().enumerate().map(|(n, it)| (n as u64 + 1, it)).collect();
                let short = compact(request, &before, &mut bodies);
                let read = |name: &str| {
                    bodies.get(name).cloned().ok_or_else(|| {
                        ReferenceError::Body { name: name.to_owned(), why: "it is missing".to_owned() }
                    })
                };
                let earlier = |n: u64| requests.get(n as usize - 1);
                prop_assert_eq!(&whole(&short, &earlier, &read).unwrap(), request);
            }
        }
    }

    #[test]
    fn a_conversation_grows_by_what_is_new() {
        let system = "be good. ".repeat(1000);
        let message = |text: &str| json!({"role": "user", "content": text.repeat(100)});
        let one = json!({"system": system, "messages": [message("a"), message("b")]});
        let two = json!({"system": system, "messages": [message("a"), message("b"), message("c")]});
        let mut bodies = Bodies::new();
        compact(&one, &[], &mut bodies);
        let short = compact(&two, &[(1, &one)], &mut bodies);
        assert_eq!(short["system"], json!({"$same": 1}));
        assert_eq!(short["messages"][0], json!({"$first": 2, "of": 1}));
        assert_eq!(short["messages"][1], message("c"));
        assert_eq!(bodies.len(), 1);
    }
}
