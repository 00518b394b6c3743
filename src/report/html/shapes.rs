//! Writes the shape of a trace for the script, which aligns two trials: every text as a digest, as only equality counts.

use std::fs::File;
use std::io::BufReader;

use serde_json::{Value, json};

use crate::snapshot::normalise::Watching;
use crate::snapshot::settings::{SnapshotSettings, SnapshotText};
use crate::snapshot::{Body, Call, Item, Shape};
use crate::trace::jsonl::Reader;

/// The maximum size of a trace that is aligned, in bytes.
pub const MAX_TRACE_BYTES: u64 = 8 << 20;

/// Returns the shape of a trace as JSON.
///
/// # Errors
/// Returns the reason if the trace cannot be read.
pub fn of_trace(file: File) -> Result<String, String> {
    let mut reader = Reader::new(BufReader::with_capacity(256 << 10, file)).map_err(|error| error.to_string())?;
    let mut watching = Watching::default();
    while let Some(event) = reader.next_event().map_err(|error| error.to_string())? {
        watching.event(&event);
    }
    let settings = SnapshotSettings { text: SnapshotText::Digest, ..SnapshotSettings::default() };
    let header = reader.header().clone();
    Ok(of_shape(&watching.shape(&header, &settings)).to_string())
}

/// Returns the items of a shape, as the script reads them.
pub fn of_shape(shape: &Shape) -> Value {
    Value::Array(shape.items.iter().map(item).collect())
}

/// Returns an item as `{kind, text, events}`, or with `calls` instead of `text`.
fn item(item: &Item) -> Value {
    let (kind, text) = match &item.body {
        Body::User(text) => ("user", digest(&format!("{text:?}"))),
        Body::Says(text) => ("says", digest(text)),
        Body::Thinks(text) => ("thinks", digest(text)),
        Body::Plan(entries) => ("plan", digest(&format!("{entries:?}"))),
        Body::Stop(reason, text) => ("stop", digest(&format!("{reason:?} {text:?}"))),
        Body::Step(calls) => {
            let calls: Vec<Value> = calls.iter().map(call).collect();
            return json!({"kind": "step", "calls": calls, "events": item.events});
        }
    };
    json!({"kind": kind, "text": text, "events": item.events})
}

/// Returns a call: `tool` and `details` as digests, `inner` with the items of its sub-agent.
fn call(call: &Call) -> Value {
    let details: Vec<String> = call.details.iter().map(|detail| digest(&format!("{detail:?}"))).collect();
    let inner: Vec<Value> = call.inner.iter().map(item).collect();
    // Whether the inner items are equal is decided by one text. Their events do not count.
    let same = digest(&format!("{:?}", call.inner.iter().map(plain).collect::<Vec<_>>()));
    json!({
        "tool": digest(&format!("{:?} {:?}", call.kind, call.name)),
        "details": details,
        "same": same,
        "inner": inner,
        "events": call.events,
    })
}

/// Returns a text that is equal for equal items.
fn plain(item: &Item) -> String {
    match &item.body {
        Body::Step(calls) => {
            let calls = calls.iter().map(|call| {
                let inner: Vec<String> = call.inner.iter().map(plain).collect();
                format!("{:?} {:?} {:?} {inner:?}", call.kind, call.name, call.details)
            });
            format!("{:?}", calls.collect::<Vec<_>>())
        }
        body => format!("{body:?}"),
    }
}

/// Returns the beginning of the digest of a text: two different texts of a run share it with a chance of about 1 in
/// 2^48.
fn digest(text: &str) -> String {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    hash.get(..12).unwrap_or_default().to_owned()
}
