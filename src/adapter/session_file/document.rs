//! Session files that are a single JSON document: makes lines of its list of messages.

use std::io::{self, Read};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::Formats;
use crate::adapter::surrogates;

/// Returns true if an input is one JSON value.
///
/// # Errors
/// Returns the error of reading the input.
pub fn is_one_value(input: impl Read) -> io::Result<bool> {
    let mut values = serde_json::Deserializer::from_reader(input).into_iter::<IgnoredAny>();
    for expected in [true, false] {
        match values.next() {
            Some(Ok(_)) if expected => {}
            Some(Err(error)) if error.is_io() => return Err(error.into()),
            Some(_) => return Ok(false),
            None => return Ok(!expected),
        }
    }
    Ok(false)
}

/// Returns the lines of a document, if it is a session file of a known format: the document without its list, and each
/// element of the list.
pub fn lines(formats: &Formats, text: &str) -> Option<String> {
    let Ok(Value::Object(map)) = surrogates::parse(text.trim()) else { return None };
    let mut found = formats.0.iter().filter_map(|format| {
        let key = format.document.as_ref()?;
        let mut first = map.clone();
        let Some(Value::Array(list)) = first.remove(key) else { return None };
        let first = Value::Object(first);
        format.knows(&first).then_some((first, list))
    });
    let (first, list) = found.next()?;
    if found.next().is_some() {
        return None;
    }
    Some(std::iter::once(first).chain(list).map(|line| format!("{line}\n")).collect())
}
