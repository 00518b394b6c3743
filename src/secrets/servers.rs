//! Secrets of a case for its MCP servers: variables, headers and arguments with the names of secrets, and URLs.

use serde_json::Value;

/// Returns every name with its value in a case's settings of MCP servers, at any depth: a key of a map, or the `name`
/// and `value` of a list entry, and the arguments in a list of words.
pub fn named_values(servers: &[Value]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    servers.iter().for_each(|server| collect(server, &mut found));
    found
}

fn collect(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Array(items) => {
            items.iter().for_each(|item| collect(item, found));
            add_arguments(items, found);
        }
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

/// Adds the arguments that have a name: `--token VALUE`, `--token=VALUE`, `TOKEN=VALUE` and `--header 'Token: VALUE'`. A
/// word with a URL gets the name `url`.
fn add_arguments(words: &[Value], found: &mut Vec<(String, String)>) {
    for (number, word) in words.iter().enumerate() {
        let Some(word) = word.as_str() else { continue };
        if word.contains("://") {
            found.push(("url".to_owned(), word.to_owned()));
        }
        for (before, value) in [word.split_once('='), word.split_once(':')].into_iter().flatten() {
            // `--header=Token: VALUE` is named by the header.
            let name = before.rsplit(['=', ' ']).next().unwrap_or(before).trim_start_matches('-');
            add(name, &Value::from(value.trim()), found);
        }
        let next = words.get(number + 1).filter(|next| next.as_str().is_none_or(|next| !next.starts_with('-')));
        if let (Some(option), Some(next)) = (word.strip_prefix('-').filter(|option| !option.contains('=')), next) {
            add(option.trim_start_matches('-'), next, found);
        }
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

    #[test]
    fn arguments_have_the_names_of_their_options() {
        let args =
            json!(["-y", "--api-key", "one", "--token=two", "-e", "GH_TOKEN=three", "-H", "Private-Token: four"]);
        let more =
            json!(["-H=Authorization: Bearer five", "--pin-key", 12345678, "http://a:six@b", "--key", "--quiet"]);
        let found = named_values(&[json!({"args": args}), json!({"command": more})]);
        for (name, value) in [
            ("api-key", "one"),
            ("token", "two"),
            ("GH_TOKEN", "three"),
            ("Private-Token", "four"),
            ("Authorization", "five"),
            ("pin-key", "12345678"),
            ("url", "http://a:six@b"),
        ] {
            assert!(found.contains(&(name.to_owned(), value.to_owned())), "{name}: {found:?}");
        }
        assert!(!found.iter().any(|(_, value)| value == "--quiet"), "{found:?}");
    }
}
