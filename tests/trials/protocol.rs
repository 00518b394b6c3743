//! Checks messages against the schema of the Agent Client Protocol, which knows nothing of this program.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// The definitions of the protocol. Those that no other one extends allow no key that they do not name, except `_meta`, because
/// a key with a wrong name would be read as one that is missing.
static DEFINITIONS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(include_str!("protocol.json")).unwrap();
    let mut definitions = schema["$defs"].as_object().unwrap().clone();
    let mut extended = Vec::new();
    definitions.values_mut().for_each(|definition| close_variants(definition, &mut extended));
    for (name, definition) in &mut definitions {
        if definition["properties"].is_object() && !extended.contains(name) {
            definition["unevaluatedProperties"] = json!(false);
        }
    }
    definitions
});

/// Allows no other keys in the variants of a definition that has no keys of its own. Adds the names of the definitions that
/// others extend.
fn close_variants(schema: &mut Value, extended: &mut Vec<String>) {
    let has_keys = schema["properties"].is_object();
    let name_of = |part: &Value| part["$ref"].as_str()?.strip_prefix("#/$defs/").map(str::to_owned);
    extended.extend(name_of(schema).filter(|_| has_keys));
    for key in ["allOf", "anyOf", "oneOf"] {
        for variant in schema.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            extended.extend(name_of(variant).filter(|_| has_keys));
            close_variants(variant, extended);
            if !has_keys && variant["properties"].is_object() {
                variant["unevaluatedProperties"] = json!(false);
            }
        }
    }
}

/// Returns what is wrong with a message of this type.
pub fn wrong(name: &str, message: &Value) -> Vec<String> {
    assert!(DEFINITIONS.contains_key(name), "{name} is not in the protocol");
    let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": *DEFINITIONS});
    let validator = jsonschema::validator_for(&schema).unwrap();
    validator.iter_errors(message).map(|error| format!("{name} at `{}`: {error}", error.instance_path())).collect()
}

#[test]
fn wrong_messages_are_found() {
    let new = |key: &str, value: Value| json!({"cwd": "/", "mcpServers": [], key: value});
    assert_eq!(wrong("NewSessionRequest", &new("_meta", json!({"a": 1}))), [""; 0]);
    for (key, value) in [("cwd", json!(1)), ("mcpServer", json!([])), ("mcpServers", json!([{"name": "x"}]))] {
        assert_ne!(wrong("NewSessionRequest", &new(key, value.clone())), [""; 0], "{key}: {value}");
    }
    let update = |key: &str, value: Value| {
        let content = json!({"type": "text", "text": "hi"});
        json!({"sessionId": "s", "update": {"sessionUpdate": "agent_message_chunk", "content": content, key: value}})
    };
    assert_eq!(wrong("SessionNotification", &update("_meta", json!({}))), [""; 0]);
    for (key, value) in [("text", json!("hi")), ("content", json!({"type": "txt"})), ("sessionUpdate", json!("said"))] {
        assert_ne!(wrong("SessionNotification", &update(key, value.clone())), [""; 0], "{key}: {value}");
    }
}
