//! Holds the files in `docs/schemas/` to the types; what several of them share is written in one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::schema;
use crate::schema::KINDS;

/// The files that refer to others for what they share with them.
const REFERS: [(&str, &[&str]); 6] = [
    ("suite", &["case"]),
    ("grader", &["case"]),
    ("result", &["trace"]),
    ("explain", &["trace"]),
    ("run", &["result", "trace"]),
    ("record", &["harness"]),
];

/// Compares the files with the types. Writes them first if `EVALS_DOCS=write` is in the environment.
#[test]
fn the_schemas_in_the_docs_describe_the_types() {
    let write = std::env::var("EVALS_DOCS").is_ok_and(|value| value == "write");
    let made = KINDS.map(|kind| (kind, published(kind, &schema(kind).unwrap())));
    for (kind, published) in made.iter().filter(|_| write) {
        fs::write(path(kind), serde_json::to_string_pretty(published).unwrap() + "\n").unwrap();
    }
    for (kind, published) in made {
        let help = "run this test with EVALS_DOCS=write";
        assert!(stored(kind) == published, "docs/schemas/{kind}.json does not describe the types; {help}");
    }
}

#[test]
fn a_printed_schema_refers_to_no_other_file() {
    for kind in KINDS {
        assert!(crate::schema::schema(kind) == schema(kind), "{kind}: renew docs/schemas/ and build the program again");
    }
    assert_eq!(crate::schema::schema("nothing"), None);
}

fn path(kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("docs/schemas/{kind}.json"))
}

fn stored(kind: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path(kind)).unwrap()).unwrap()
}

/// Replaces each part that another file has, too, by a reference to that file.
fn published(kind: &str, printed: &Value) -> Value {
    let mut published = printed.clone();
    let others = REFERS.iter().find(|(name, _)| *name == kind).map_or(&[][..], |(_, others)| others);
    for other in others {
        let theirs = schema(other).unwrap();
        let same = same_definitions(printed, &theirs);
        let mut places = BTreeMap::new();
        for (key, part) in parts(&mut theirs.clone()) {
            places.entry(part.to_string()).or_insert_with(|| format!("{other}.json#{key}"));
        }
        share(&mut published, &same, &places);
    }
    published
}

/// Returns the names of the definitions that mean the same in both schemas, with all that they refer to.
fn same_definitions(one: &Value, other: &Value) -> BTreeSet<String> {
    let definitions = one["$defs"].as_object().unwrap();
    let equal = definitions.iter().filter(|(name, value)| other["$defs"].get(name.as_str()) == Some(value));
    let mut same: BTreeSet<String> = equal.map(|(name, _)| name.clone()).collect();
    while let Some(name) = same.iter().find(|name| !names(&definitions[name.as_str()]).is_subset(&same)).cloned() {
        same.remove(&name);
    }
    same
}

/// Returns the names of the definitions that a schema refers to.
fn names(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Object(map) => {
            let own = map.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix("#/$defs/"));
            map.values().flat_map(names).chain(own.map(str::to_owned)).collect()
        }
        Value::Array(list) => list.iter().flat_map(names).collect(),
        _ => BTreeSet::new(),
    }
}

fn share(schema: &mut Value, same: &BTreeSet<String>, places: &BTreeMap<String, String>) {
    /// The length in bytes up to which a part is repeated: a reference would be hardly shorter.
    const WORTH_IT: usize = 160;
    for (_, part) in parts_below(schema) {
        let text = part.to_string();
        match places.get(&text) {
            Some(place) if text.len() > WORTH_IT && names(part).is_subset(same) => *part = json!({"$ref": place}),
            _ => share(part, same, places),
        }
    }
}

/// Returns the schemas directly below a schema, with their pointers.
fn parts_below(schema: &mut Value) -> Vec<(String, &mut Value)> {
    let mut parts = Vec::new();
    for (key, value) in schema.as_object_mut().into_iter().flatten() {
        match (key.as_str(), value) {
            ("properties" | "$defs", Value::Object(map)) => {
                parts.extend(map.iter_mut().map(|(name, part)| (format!("/{key}/{name}"), part)));
            }
            ("oneOf" | "anyOf" | "allOf" | "prefixItems", Value::Array(list)) => {
                parts.extend(list.iter_mut().enumerate().map(|(at, part)| (format!("/{key}/{at}"), part)));
            }
            ("items" | "additionalProperties" | "propertyNames" | "not" | "if" | "then" | "else", part) => {
                parts.push((format!("/{key}"), part));
            }
            _ => {}
        }
    }
    parts
}

/// Returns the schemas within a schema, with their pointers.
fn parts(schema: &mut Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (pointer, part) in parts_below(schema) {
        all.push((pointer.clone(), part.clone()));
        all.extend(parts(part).into_iter().map(|(inner, part)| (format!("{pointer}{inner}"), part)));
    }
    all
}
