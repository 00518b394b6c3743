//! Finds the ids in requests and answers that a service or an agent generated, and that therefore differ between runs.

use serde_json::{Map, Value};

/// The kind of thing that an id identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdKind {
    /// A tool call, in the call and in its result.
    Call,
    /// A call of a tool that the service runs itself.
    ServerCall,
    /// A whole answer.
    Response,
    /// A message item.
    Message,
    /// A reasoning item.
    Reasoning,
    /// The item of a function call, beside the id of the call.
    FunctionItem,
    /// The item of a call with a text as its input, beside the id of the call.
    CustomItem,
    /// An item of another kind.
    Item,
}

/// The places of ids in an API.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    /// Returns the kind of id of a key, given the key of the object, or of the list that the object is in.
    pub kind: fn(parent: &str, object: &Map<String, Value>, key: &str) -> Option<IdKind>,
    /// The keys whose values contain no ids of the API: inputs of calls, and descriptions of tools.
    pub opaque: &'static [&'static str],
}

pub(super) fn visit(rules: Rules, parent: &str, value: &Value, each: &mut dyn FnMut(IdKind, &str)) {
    match value {
        Value::Array(elements) => elements.iter().for_each(|element| visit(rules, parent, element, each)),
        Value::Object(map) => {
            for (key, value) in map {
                match ((rules.kind)(parent, map, key), value) {
                    (Some(kind), Value::String(id)) if !id.is_empty() => each(kind, id),
                    _ if rules.opaque.contains(&key.as_str()) => {}
                    _ => visit(rules, key, value, each),
                }
            }
        }
        _ => {}
    }
}

pub(super) fn visit_mut(rules: Rules, parent: &str, value: &mut Value, each: &mut dyn FnMut(IdKind, &mut String)) {
    match value {
        Value::Array(elements) => elements.iter_mut().for_each(|element| visit_mut(rules, parent, element, each)),
        Value::Object(map) => {
            let kinds: Vec<Option<IdKind>> = map.keys().map(|key| (rules.kind)(parent, map, key)).collect();
            for ((key, value), kind) in map.iter_mut().zip(kinds) {
                match (kind, value) {
                    (Some(kind), Value::String(id)) if !id.is_empty() => each(kind, id),
                    _ if rules.opaque.contains(&key.as_str()) => {}
                    (_, value) => visit_mut(rules, key, value, each),
                }
            }
        }
        _ => {}
    }
}
