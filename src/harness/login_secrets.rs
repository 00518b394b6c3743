//! Secrets in the login files that an agent's private home gets a copy of: they are masked like those of variables.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::login::text_of;
use super::{Home, Manifest};
use crate::secrets::looks_secret;

/// A shorter value in a file may be a setting.
const SHORTEST: usize = 16;
/// Files of a folder that are looked at, and how deep they may lie.
const MOST: (usize, u32) = (200, 3);
/// Keys whose values are tokens though their names do not say so.
const KEYS: [&str; 5] = ["access", "refresh", "bearer", "jwt", "session"];

/// The secrets in the files that are copied from this home: the key in the file, and the value.
pub fn in_login_files(manifest: &Manifest, user_home: Option<&Path>) -> Vec<(String, String)> {
    let (Home::Private(private), Some(home)) = (&manifest.home, user_home) else { return Vec::new() };
    let mut found = Vec::new();
    let mut left = MOST.0;
    for name in &private.copy {
        look(&home.join(name), MOST.1, &mut left, &mut found);
    }
    found
}

fn look(path: &Path, depth: u32, left: &mut usize, found: &mut Vec<(String, String)>) {
    if path.is_dir() && depth > 0 {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        for entry in entries {
            look(&entry.path(), depth - 1, left, found);
        }
        return;
    }
    if *left == 0 {
        return;
    }
    *left -= 1;
    let Some(text) = text_of(path) else { return };
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => in_json(&value, found),
        Err(_) => in_lines(&text, found),
    }
}

fn in_json(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) => add(key, text, found),
                    value => in_json(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| in_json(value, found)),
        _ => {}
    }
}

/// Lines such as `key = "value"`, `KEY=value` and `key: value`.
fn in_lines(text: &str, found: &mut Vec<(String, String)>) {
    for line in LINE.captures_iter(text) {
        if let (Some(key), Some(value)) = (line.get(1), line.get(2)) {
            add(key.as_str(), value.as_str(), found);
        }
    }
}

fn add(key: &str, value: &str, found: &mut Vec<(String, String)>) {
    let is_secret = looks_secret(key) || KEYS.iter().any(|it| key.eq_ignore_ascii_case(it));
    if is_secret && value.len() >= SHORTEST && !value.contains(char::is_whitespace) {
        found.push((key.to_owned(), value.to_owned()));
    }
}

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?m)^[ \t]*(?:export[ \t]+)?["']?([A-Za-z0-9_.-]+)["']?[ \t]*[=:][ \t]*["']?([^"'\s#,]+)"#).unwrap()
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Adapter;
    use crate::harness::PrivateHome;

    #[test]
    fn tokens_of_login_files_are_found_and_settings_are_not() {
        let home = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = home.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "a/auth.json",
            r#"{"OPENAI_API_KEY": null, "tokens": [{"access_token": "token-0123456789", "id": "0123456789abcdef"}]}"#,
        );
        write("a/deep/x.json", r#"{"p": {"refresh": "refresh-0123456789", "key": "short"}}"#);
        write("c.toml", "api_key = \"toml-0123456789ab\"\nmodel = \"a-long-name-of-a-model\"\n");
        write(".env", "export MISTRAL_API_KEY=mistral-0123456789\nNAME=0123456789abcdefg\n");
        write("y.yaml", "openai:\n  api_key: yaml-0123456789ab # mine\n");
        write("not-copied.json", r#"{"token": "other-0123456789"}"#);
        let mut manifest = Manifest::bare(Adapter::Acp);
        let copy = ["a", "c.toml", ".env", "y.yaml", "gone"].map(Into::into).to_vec();
        manifest.home = Home::Private(PrivateHome { copy });
        let mut found: Vec<String> =
            in_login_files(&manifest, Some(home.path())).into_iter().map(|(_, value)| value).collect();
        found.sort();
        let wanted =
            ["mistral-0123456789", "refresh-0123456789", "token-0123456789", "toml-0123456789ab", "yaml-0123456789ab"];
        assert_eq!(found, wanted);
        assert!(in_login_files(&manifest, None).is_empty());
    }
}
