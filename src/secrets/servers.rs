//! Secrets in settings, such as those of MCP servers: variables, headers and arguments with the names of secrets, and URLs.

use serde_json::Value;

use super::looks_secret;

/// Returns every name with its value in a case's settings of MCP servers, as [`each_named`] finds them.
pub fn named_values(servers: &[Value]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut keep = |name: &str, value: &str| found.push((name.to_owned(), value.to_owned()));
    servers.iter().for_each(|server| each_named(server, &looks_secret, &mut keep));
    found
}

/// Calls a function with every name and its value, at any depth: a key of a map, or the `name` and `value` of a list entry,
/// and the arguments in a list of words. The texts of a list have the name of the list if `is_secret` is true for it.
pub fn each_named(value: &Value, is_secret: &dyn Fn(&str) -> bool, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Array(items) => {
            items.iter().for_each(|item| each_named(item, is_secret, visit));
            add_arguments(items, visit);
        }
        Value::Object(map) => {
            if let (Some(Value::String(name)), Some(value)) = (map.get("name"), map.get("value")) {
                add(name, value, visit);
            }
            for (name, value) in map {
                match value {
                    Value::Array(items) if is_secret(name) => items.iter().for_each(|item| add(name, item, visit)),
                    value => add(name, value, visit),
                }
                each_named(value, is_secret, visit);
            }
        }
        _ => {}
    }
}

/// Adds the arguments that have a name: `--token VALUE`, `--token=VALUE`, `TOKEN=VALUE` and `--header 'Token: VALUE'`. A
/// word with a URL gets the name `url`.
fn add_arguments(words: &[Value], visit: &mut dyn FnMut(&str, &str)) {
    for (number, word) in words.iter().enumerate() {
        let Some(word) = word.as_str() else { continue };
        if word.contains("://") {
            visit("url", word);
        }
        for (before, value) in [word.split_once('='), word.split_once(':')].into_iter().flatten() {
            // `--header=Token: VALUE` is named by the header.
            let name = before.rsplit(['=', ' ']).next().unwrap_or(before).trim_start_matches('-');
            add_text(name, value.trim(), visit);
        }
        let next = words.get(number + 1).filter(|next| next.as_str().is_none_or(|next| !next.starts_with('-')));
        if let (Some(option), Some(next)) = (word.strip_prefix('-').filter(|option| !option.contains('=')), next) {
            add(option.trim_start_matches('-'), next, visit);
        }
    }
}

fn add(name: &str, value: &Value, visit: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => add_text(name, text, visit),
        Value::Number(number) => add_text(name, &number.to_string(), visit),
        _ => {}
    }
}

/// Adds a text and, of `Bearer TOKEN`, the token: a server receives the whole value, and may print the token alone.
pub fn add_text(name: &str, text: &str, visit: &mut dyn FnMut(&str, &str)) {
    if let Some((_, token)) = text.split_once(' ') {
        visit(name, token.trim());
    }
    visit(name, text);
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
        assert_eq!(named_values(&[json!({"api_keys": ["four"]})]), [("api_keys".to_owned(), "four".to_owned())]);
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
