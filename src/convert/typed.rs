//! Values of a source by their type. A value of another type is refused: a default in its place would make another case.

use serde_json::Value;

use super::parts::{self, scalar};
use super::refused::{Refused, refused};

/// The longest timeout that a case can have, in seconds.
const MAX_TIMEOUT_SECONDS: f64 = 365.0 * 86_400.0;

/// Returns a value that is not null.
fn there(value: Option<&Value>) -> Option<&Value> {
    value.filter(|value| !value.is_null())
}

/// Reads a value, if there is one, or refuses it with the expected type.
fn read<'a, T>(
    value: Option<&'a Value>,
    key: &str,
    read: impl FnOnce(&'a Value) -> Option<T>,
    wanted: &str,
) -> Result<Option<T>, Refused> {
    let Some(value) = there(value) else { return Ok(None) };
    read(value).map(Some).ok_or_else(|| refused(key, format!("this is not {wanted}")))
}

/// Returns a text.
///
/// # Errors
/// Returns the key of a value that is no text.
pub fn text<'a>(value: Option<&'a Value>, key: &str) -> Result<Option<&'a str>, Refused> {
    read(value, key, Value::as_str, "a text")
}

/// Returns a scalar as a text.
///
/// # Errors
/// Returns the key of a value that is a list or a map.
pub fn word(value: Option<&Value>, key: &str) -> Result<Option<String>, Refused> {
    read(value, key, scalar, "a text or a number")
}

/// Returns true or false.
///
/// # Errors
/// Returns the key of another value, such as the text `"true"`.
pub fn flag(value: Option<&Value>, key: &str) -> Result<Option<bool>, Refused> {
    read(value, key, Value::as_bool, "true or false")
}

/// Returns a whole number.
///
/// # Errors
/// Returns the key of another value.
pub fn integer(value: Option<&Value>, key: &str) -> Result<Option<i64>, Refused> {
    read(value, key, Value::as_i64, "a whole number")
}

/// Returns a whole number from 0.
///
/// # Errors
/// Returns the key of another value.
pub fn whole(value: Option<&Value>, key: &str) -> Result<Option<u64>, Refused> {
    read(value, key, Value::as_u64, "a whole number from 0")
}

/// Returns a number from 0.
///
/// # Errors
/// Returns the key of another value.
pub fn amount(value: Option<&Value>, key: &str) -> Result<Option<f64>, Refused> {
    let from_zero = |value: &Value| value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    read(value, key, from_zero, "a number from 0")
}

/// Returns a timeout in seconds.
///
/// # Errors
/// Returns the key of a value that is no number above 0, or is more than 365 days.
pub fn seconds(value: Option<&Value>, key: &str) -> Result<Option<f64>, Refused> {
    let limited = |value: &Value| value.as_f64().filter(|seconds| *seconds > 0.0 && *seconds <= MAX_TIMEOUT_SECONDS);
    read(value, key, limited, "a number of seconds above 0 and within 365 days")
}

/// Returns the entries of a list; none if there is no list.
///
/// # Errors
/// Returns the key of a value that is no list.
pub fn list<'a>(value: Option<&'a Value>, key: &str) -> Result<&'a [Value], Refused> {
    Ok(read(value, key, Value::as_array, "a list")?.map_or(&[], Vec::as_slice))
}

/// Returns the texts of a value that is one text or a list of them; none if there is no value.
///
/// # Errors
/// Returns the key of another value.
pub fn texts(value: Option<&Value>, key: &str) -> Result<Vec<String>, Refused> {
    Ok(read(value, key, parts::texts, "a list of texts")?.unwrap_or_default())
}
