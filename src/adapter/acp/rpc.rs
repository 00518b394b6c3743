//! Parses JSON-RPC lines tolerantly; ids are kept as JSON values.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::adapter::surrogates;
use crate::adapter::torn::{self, may_hold_message, may_hold_message_within};
use crate::text::first_bytes;
use crate::wire::trimmed;

/// A message of a line.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// A request, which expects an answer with the same id.
    Request {
        /// The request's id: text, a number of any kind, or null.
        id: Value,
        method: String,
        /// The parameters; null if absent.
        params: Value,
    },
    /// A notification, which expects no answer.
    Notification {
        method: String,
        /// The parameters; null if absent.
        params: Value,
    },
    /// The answer to a request of the other side.
    Response {
        /// The id of the request.
        id: Value,
        /// The result, or the error in its place.
        outcome: Result<Value, RpcError>,
    },
    /// A value that is not a JSON-RPC message.
    NotRpc {
        /// The reason.
        why: &'static str,
        /// The beginning of the value.
        text: String,
        /// True if the value may hold a message that cannot be read, so that it may have been any message.
        is_broken: bool,
    },
}

const KEYS: torn::Keys = torn::Keys {
    of_message: &["jsonrpc", "method", "params", "sessionUpdate"],
    of_piece: &[
        "sessionId",
        "update",
        "toolCallId",
        "toolCall",
        "rawInput",
        "rawOutput",
        "kind",
        "status",
        "locations",
        "content",
        "options",
        "optionId",
        "stopReason",
    ],
};

impl Message {
    /// Sets whether a value that is no message may have been any message.
    fn broken(mut self, broken: bool) -> Self {
        if let Message::NotRpc { is_broken, .. } = &mut self {
            *is_broken = broken;
        }
        self
    }
}

/// An error response. Every part may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RpcError {
    pub code: Option<i64>,
    pub message: Option<String>,
    pub data: Option<Value>,
}

impl RpcError {
    /// Returns all texts of the error, for patterns to match.
    pub fn text(&self) -> String {
        let mut text = self.message.clone().unwrap_or_default();
        match &self.data {
            None | Some(Value::Null) => {}
            Some(Value::String(data)) => push_line(&mut text, data),
            Some(data) => {
                push_line(&mut text, &data.to_string());
                self.message_in_data().into_iter().for_each(|more| push_line(&mut text, more));
            }
        }
        text
    }

    /// Returns the message in the data, because the error's own may be no more than "Internal error".
    fn message_in_data(&self) -> Option<&str> {
        match self.data.as_ref()? {
            Value::String(more) => Some(more),
            data => ["details", "message"].iter().find_map(|key| data.get(key)?.as_str()),
        }
    }

    /// Returns the error as a text for people.
    pub fn detail(&self) -> String {
        match (&self.message, self.code) {
            (Some(message), _) if !message.trim().is_empty() => match self.message_in_data() {
                Some(more) if !message.contains(more) => format!("{message}: {more}"),
                _ => message.clone(),
            },
            _ => match (self.text(), self.code) {
                (text, _) if !text.is_empty() => text,
                (_, Some(code)) => format!("error {code} without a message"),
                (_, None) => "an error without a message".to_owned(),
            },
        }
    }
}

fn push_line(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// Returns the messages of a line: none for a blank line, each element of a batch, else one.
pub fn parse(line: &str) -> impl Iterator<Item = Message> {
    let line = trimmed(line);
    let mut one = None;
    let mut batch = Vec::new();
    if !line.is_empty() {
        match surrogates::parse(line) {
            Ok(Value::Array(items)) if items.is_empty() => one = Some(not_rpc("an empty batch", line)),
            Ok(Value::Array(items)) => batch = items,
            Ok(value) => one = Some(message(value)),
            Err(_) => one = Some(not_rpc("not JSON", line).broken(may_hold_message(line, &KEYS))),
        }
    }
    one.into_iter().chain(batch.into_iter().map(message))
}

fn message(value: Value) -> Message {
    match value {
        Value::Object(map) => object(map),
        other => not_rpc("not an object", &other.to_string()).broken(may_hold_message_within(&other, &KEYS)),
    }
}

fn object(mut map: Map<String, Value>) -> Message {
    match map.get("method") {
        Some(Value::String(_)) => {
            let Some(Value::String(method)) = map.remove("method") else {
                return not_rpc("a message whose method is not a string", "");
            };
            let params = map.remove("params").unwrap_or(Value::Null);
            match map.remove("id") {
                Some(id) => Message::Request { id, method, params },
                None => Message::Notification { method, params },
            }
        }
        Some(Value::Null) | None => answer(map),
        Some(_) => not_rpc("a message whose method is not a string", &Value::Object(map).to_string()).broken(true),
    }
}

fn answer(mut map: Map<String, Value>) -> Message {
    // A log line may have an id, too: without a result or an error, only `jsonrpc` makes the line an answer.
    let error = map.get("error").is_some_and(|error| !error.is_null());
    let is_answer = error || map.contains_key("result") || map.contains_key("jsonrpc");
    if !is_answer || !map.contains_key("id") {
        let is_broken = holds_update(&map);
        return not_rpc("neither a request nor an answer", &Value::Object(map).to_string()).broken(is_broken);
    }
    let id = map.remove("id").unwrap_or(Value::Null);
    let outcome = match map.remove("error") {
        None | Some(Value::Null) => Ok(map.remove("result").unwrap_or(Value::Null)),
        Some(error) => Err(rpc_error(error)),
    };
    Message::Response { id, outcome }
}

/// Returns true if an object without a method holds an update of a session.
fn holds_update(map: &Map<String, Value>) -> bool {
    let is_update = |value: &Value| value.get("sessionUpdate").is_some();
    let params = map.get("params").unwrap_or(&Value::Null);
    map.contains_key("sessionUpdate")
        || [map.get("update"), params.get("update"), Some(params)].into_iter().flatten().any(is_update)
}

fn rpc_error(error: Value) -> RpcError {
    match error {
        Value::Object(mut map) => {
            let code = map.get("code").and_then(|code| match code {
                Value::Number(code) => integer(code),
                Value::String(code) => code.trim().parse().ok(),
                _ => None,
            });
            let message = match map.remove("message") {
                Some(Value::String(message)) => Some(message),
                None | Some(Value::Null) => None,
                Some(other) => Some(other.to_string()),
            };
            let data = map.remove("data").filter(|data| !data.is_null());
            RpcError { code, message, data }
        }
        Value::String(message) => RpcError { message: Some(message), ..RpcError::default() },
        other => RpcError { data: Some(other), ..RpcError::default() },
    }
}

/// Returns a whole number, even if it is written like `3.0`.
fn integer(number: &serde_json::Number) -> Option<i64> {
    number.as_i64().or_else(|| {
        let float = number.as_f64()?;
        let whole = float as i64;
        (whole as f64 == float && float.abs() < 9e15).then_some(whole)
    })
}

fn not_rpc(why: &'static str, text: &str) -> Message {
    const KEPT: usize = 600;
    Message::NotRpc { why, text: first_bytes(text, KEPT).to_owned(), is_broken: false }
}

/// Returns the key of an id: `1` and `1.0` are one id, `1` and `"1"` are two.
pub fn key(id: &Value) -> String {
    match id {
        Value::Number(number) => integer(number).map_or_else(|| id.to_string(), |whole| whole.to_string()),
        _ => id.to_string(),
    }
}

/// Returns an id as text: a text without quotes, anything else as JSON.
pub fn id_text(id: &Value) -> String {
    match id {
        Value::String(text) => text.clone(),
        _ => key(id),
    }
}

/// Returns the line of a request, without its line end.
pub fn request(id: &Value, method: &str, params: &impl Serialize) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// Returns the line of a notification, without its line end.
pub fn notification(method: &str, params: &impl Serialize) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// Returns the line of an answer with a result, without its line end.
pub fn result(id: &Value, result: &impl Serialize) -> String {
    json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string()
}

/// Returns the line of an answer with an error, without its line end.
pub fn error(id: &Value, code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str) -> Vec<Message> {
        parse(line).collect()
    }

    #[test]
    fn ids_of_every_type_come_through_as_they_are() {
        for id in [json!(0), json!(-7), json!(1.5), json!("4f-a"), json!(""), json!(null)] {
            assert_eq!(
                all(&request(&id, "m", &json!({"a": 1}))),
                [Message::Request { id: id.clone(), method: "m".into(), params: json!({"a": 1}) }]
            );
            assert_eq!(all(&result(&id, &json!({}))), [Message::Response { id: id.clone(), outcome: Ok(json!({})) }]);
        }
    }

    #[test]
    fn ids_are_found_by_their_value() {
        assert_eq!(key(&json!(3)), key(&json!(3.0)));
        assert_ne!(key(&json!(3)), key(&json!("3")));
        assert_ne!(key(&json!(3)), key(&json!(3.5)));
        assert_eq!(id_text(&json!("a b")), "a b");
        assert_eq!(id_text(&json!(-2)), "-2");
    }

    #[test]
    fn what_is_no_message_is_told_and_blank_is_nothing() {
        assert!(all("").is_empty());
        assert!(all(" \t ").is_empty());
        for line in ["npm warn x", "42", "null", "\"text\"", "[]", "{}", "{\"id\":7,\"msg\":\"log\"}", "{\"method\":5}"]
        {
            let messages = all(line);
            assert!(matches!(messages.as_slice(), [Message::NotRpc { .. }]), "{line}: {messages:?}");
        }
    }

    #[test]
    fn each_element_of_a_batch_is_a_message() {
        let messages = all(r#"[{"method":"a"},5,{"id":1,"result":{}},[]]"#);
        assert_eq!(messages.len(), 4);
        assert!(matches!(messages[0], Message::Notification { .. }));
        assert!(matches!(messages[1], Message::NotRpc { .. }));
        assert!(matches!(messages[2], Message::Response { .. }));
        assert!(matches!(messages[3], Message::NotRpc { .. }));
    }

    #[test]
    fn answers_may_lack_what_they_should_have() {
        assert_eq!(all(r#"{"jsonrpc":"2.0","id":3}"#), [Message::Response { id: json!(3), outcome: Ok(Value::Null) }]);
        let Message::Response { outcome: Err(error), .. } = &all(r#"{"id":3,"error":{"code":-32603}}"#)[0] else {
            panic!("no error")
        };
        assert_eq!((error.code, error.detail()), (Some(-32603), "error -32603 without a message".to_owned()));
        let Message::Response { outcome: Err(error), .. } = &all(r#"{"id":3,"error":"broken","result":null}"#)[0]
        else {
            panic!("no error")
        };
        assert_eq!(error.detail(), "broken");
        assert!(matches!(&all(r#"{"id":3,"error":null,"result":{}}"#)[0], Message::Response { outcome: Ok(_), .. }));
    }
}
