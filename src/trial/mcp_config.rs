//! Writes the MCP servers of a case as a file that agents read by a flag: `{"mcpServers": {NAME: {…}}}`.

use serde_json::{Map, Value, json};

/// Returns the file's text. Lists of names and values in the case become maps, and a server that is started by
/// a command needs no type.
pub(super) fn as_file(servers: &[Value]) -> String {
    let mut by_name = Map::new();
    for server in servers {
        let Value::Object(mut server) = server.clone() else { continue };
        let Some(Value::String(name)) = server.remove("name") else { continue };
        for key in ["env", "headers"] {
            if let Some(Value::Array(pairs)) = server.get(key) {
                let pairs = pairs.iter().filter_map(|pair| {
                    Some((pair.get("name")?.as_str()?.to_owned(), pair.get("value").cloned().unwrap_or_default()))
                });
                let map: Map<String, Value> = pairs.collect();
                server.insert(key.to_owned(), Value::Object(map));
            }
        }
        by_name.insert(name, Value::Object(server));
    }
    json!({"mcpServers": by_name}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names_and_values_are_maps_in_the_file() {
        let text = as_file(&[
            json!({"name": "files", "command": "serve", "args": ["-x"], "env": [{"name": "A", "value": "1"}]}),
            json!({"name": "web", "type": "http", "url": "http://x", "headers": {"K": "v"}}),
            json!({"command": "nameless"}),
        ]);
        let file: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({"mcpServers": {
            "files": {"command": "serve", "args": ["-x"], "env": {"A": "1"}},
            "web": {"type": "http", "url": "http://x", "headers": {"K": "v"}},
        }});
        assert_eq!(file, expected);
    }
}
