//! Secrets of a case for its MCP servers: variables and headers with the names of secrets.

use serde_json::Value;

/// Returns every name with its value in a case's settings of MCP servers, at any depth: a key of a map, or the `name`
/// and `value` of a list entry.
pub fn named_values(servers: &[Value]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    servers.iter().for_each(|server| collect(server, &mut found));
    found
}

fn collect(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(map) => {
            if let (Some(Value::String(name)), Some(value)) = (map.get("name"), map.get("value")) {
                add(name, value, found);
            }
            for (name, value) in map {
                add(name, value, found);
                collect(value, found);
            }
        }
        _ => {}
    }
}

fn add(name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    // `Bearer TOKEN`: the server receives the whole value, and may print the token alone.
    if let Some((_, token)) = text.split_once(' ') {
        found.push((name.to_owned(), token.trim().to_owned()));
    }
    found.push((name.to_owned(), text));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_and_lists_are_looked_into() {
        let found = named_values(&[
            json!({"name": "x", "command": "/bin/x", "env": {"GH_TOKEN": "one", "PIN_KEY": 12345678}}),
            json!({"headers": [{"name": "Authorization", "value": "Bearer two"}], "args": ["three"]}),
        ]);
        let holds = |name: &str, value: &str| found.contains(&(name.to_owned(), value.to_owned()));
        assert!(holds("GH_TOKEN", "one") && holds("PIN_KEY", "12345678"), "{found:?}");
        assert!(holds("Authorization", "Bearer two") && holds("Authorization", "two"), "{found:?}");
        assert!(!found.iter().any(|(_, value)| value == "three"), "{found:?}");
    }
}
