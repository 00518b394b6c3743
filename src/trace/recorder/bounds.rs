//! Small rules of the recorder: which values count as empty, how much text is kept, and how ids are identified.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use serde_json::Value;

use super::MAX_TEXT;

/// Whether an input says nothing: null, `{}`, `[]` or an empty text.
pub fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Appends what fits within [`MAX_TEXT`] and answers how many bytes did not.
pub(super) fn push_bounded(kept: &mut String, text: &str) -> u64 {
    let room = MAX_TEXT.saturating_sub(kept.len());
    if text.len() <= room {
        kept.push_str(text);
        return 0;
    }
    let end = text.floor_char_boundary(room);
    kept.push_str(&text[..end]);
    (text.len() - end) as u64
}

/// A notice quotes what it is about, not all of it.
pub(super) fn shorten(text: &str) -> String {
    const LONGEST: usize = 500;
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(LONGEST);
    format!("{}… ({} bytes)", &text[..end], text.len())
}

pub(super) fn hash(text: &str) -> u64 {
    // The default hasher made this way has fixed keys: the same ids give the same Trace.
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
