//! The form of server-sent events.

use serde_json::Value;

/// Returns a server-sent event with a name.
pub(super) fn named_event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Returns a server-sent event without a name.
pub(super) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
