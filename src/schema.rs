//! JSON Schemas of the files that people write and programs read, for editors and for checks.

use include_dir::{Dir, include_dir};
use serde_json::Value;

/// The schemas, made from the types by `schema_source`. What several of them share is in one of them, and the others refer to
/// it by its file.
static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/docs/schemas");

/// The kinds of file that have a schema.
pub const KINDS: [&str; 25] = [
    "case",
    "suite",
    "harness",
    "grader",
    "trace",
    "run",
    "result",
    "check",
    "parity",
    "experiment",
    "script",
    "compare",
    "baseline",
    "record",
    "merged",
    "journal",
    "calibration",
    "audit",
    "list",
    "explain",
    "snapshots",
    "wire",
    "exchange",
    "cassette",
    "mine",
];

/// Returns the schema of a kind of file, draft 2020-12; `None` for a kind that is not one of [`KINDS`]. It refers to no other
/// schema.
pub fn schema(kind: &str) -> Option<Value> {
    resolved(file(kind)?)
}

/// Returns the file of a kind, with its references to other files.
fn file(kind: &str) -> Option<Value> {
    serde_json::from_slice(FILES.get_file(format!("{kind}.json"))?.contents()).ok()
}

/// Replaces each reference to another file by what it refers to; `None` if one refers to nothing.
fn resolved(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) => match map.get("$ref").and_then(Value::as_str).and_then(|to| to.split_once(".json#")) {
            Some((kind, pointer)) => resolved(file(kind)?.pointer(pointer)?.clone()),
            None => map.into_iter().map(|(key, value)| Some((key, resolved(value)?))).collect(),
        },
        Value::Array(list) => list.into_iter().map(resolved).collect(),
        other => Some(other),
    }
}
