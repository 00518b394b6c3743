//! Small rules of the recorder: which values count as empty, how much text is kept, and how ids are identified.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::MAX_TEXT;
use crate::text::first_bytes;

/// Returns true if an input is empty: null, `{}`, `[]` or an empty text.
pub fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Appends the part that fits within [`MAX_TEXT`], and returns the number of bytes that did not fit.
pub(super) fn push_bounded(kept: &mut String, text: &str) -> u64 {
    let room = MAX_TEXT.saturating_sub(kept.len());
    let fits = first_bytes(text, room);
    kept.push_str(fits);
    (text.len() - fits.len()) as u64
}

/// Cuts a text to the part that fits within [`MAX_TEXT`], and returns the number of bytes that did not fit.
pub(super) fn cut_to_bound(text: &mut String) -> u64 {
    let fits = first_bytes(text, MAX_TEXT).len();
    let cut = text.len() - fits;
    text.truncate(fits);
    cut as u64
}

/// Shortens a text to the part that a notice quotes.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 500;
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    format!("{}… ({} bytes)", first_bytes(text, LONGEST), text.len())
}

/// Returns the hash of changes to files.
pub(super) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Returns the hash of an id among those of its kind, such as `call`.
pub(super) fn hash_in(kind: &str, id: &str) -> u64 {
    // This default hasher has fixed keys: the same ids give the same trace.
    let mut hasher = DefaultHasher::new();
    kind.hash(&mut hasher);
    id.hash(&mut hasher);
    hasher.finish()
}
