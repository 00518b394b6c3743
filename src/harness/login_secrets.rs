//! Secrets in the login files that are copied to an agent's private home: they are redacted like the values of
//! variables.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::login::if_there;
use super::{Home, Manifest};
use crate::secrets::looks_secret;
use crate::secrets::servers::{add_text, each_named};
use crate::yaml;

/// The minimum length of a secret in bytes: a shorter value in a file may be a setting.
const MIN_SECRET_BYTES: usize = 16;
/// The maximum number of files and folders that are searched, and their maximum depth.
const MAX_FILES_AND_DEPTH: (usize, u32) = (2000, 16);
/// The maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// Folders of packages, in which no agent keeps a login.
const PACKAGES: [&str; 2] = [".git", "node_modules"];
/// Keys whose values are tokens although their names do not show it.
const KEYS: [&str; 5] = ["access", "refresh", "bearer", "jwt", "session"];

/// A login file that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the login file {path} cannot be read, so its secrets could not be redacted: {source}")]
pub struct Unread {
    path: PathBuf,
    source: io::Error,
}

/// The findings in the files that are copied from a home.
#[derive(Debug, Default)]
pub struct CopiedSecrets {
    /// The secrets: the key in the file, and the value.
    pub secrets: Vec<(String, String)>,
    /// The first file that exists and could not be read.
    pub unread: Option<Unread>,
}

/// Returns the secrets in the files that are copied from this home.
pub fn in_login_files(manifest: &Manifest, user_home: Option<&Path>) -> CopiedSecrets {
    let mut found = CopiedSecrets::default();
    let (Home::Private(private), Some(home)) = (&manifest.home, user_home) else { return found };
    let mut left = MAX_FILES_AND_DEPTH.0;
    for name in &private.copy {
        look(&home.join(name), MAX_FILES_AND_DEPTH.1, &mut left, &mut found);
    }
    let mut seen = HashSet::new();
    found.secrets.retain(|secret| seen.insert(secret.clone()));
    found
}

fn look(path: &Path, depth: u32, left: &mut usize, found: &mut CopiedSecrets) {
    if let Err(source) = read(path, depth, left, found) {
        found.unread.get_or_insert(Unread { path: path.to_owned(), source });
    }
}

fn read(path: &Path, depth: u32, left: &mut usize, found: &mut CopiedSecrets) -> io::Result<()> {
    let Some(meta) = if_there(path.metadata())? else { return Ok(()) };
    if *left == 0 {
        let why = format!(
            "more than {} files and folders are copied; copy fewer with `home: {{copy: …}}`",
            MAX_FILES_AND_DEPTH.0
        );
        return Err(io::Error::other(why));
    }
    *left -= 1;
    if meta.is_dir() {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(io::Error::other(format!("it is nested more than {} folders deep", MAX_FILES_AND_DEPTH.1)));
        };
        for entry in if_there(std::fs::read_dir(path))?.into_iter().flatten() {
            let entry = entry?;
            let inner = entry.path();
            // A link that leads out of the folder is not copied, and a folder in it is searched in its own place.
            let is_linked = entry.file_type()?.is_symlink() && inner.is_dir();
            if !is_linked && !PACKAGES.iter().any(|name| entry.file_name() == *name) {
                look(&inner, depth, left, found);
            }
        }
        return Ok(());
    }
    // Sockets and pipes are not copied.
    if !meta.is_file() {
        return Ok(());
    }
    if meta.len() > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
    }
    let Some(bytes) = if_there(std::fs::read(path))? else { return Ok(()) };
    in_text(path, &String::from_utf8_lossy(&bytes), &mut found.secrets);
    Ok(())
}

fn in_text(path: &Path, text: &str, found: &mut Vec<(String, String)>) {
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return in_value(&value, found);
    }
    let parsed: Option<Value> = match path.extension().and_then(OsStr::to_str) {
        Some("toml") => toml::from_str(text).ok(),
        Some("yaml" | "yml") => yaml::parse_all(path, text).value,
        _ => None,
    };
    if let Some(value) = parsed {
        in_value(&value, found);
    }
    // Also of a file that was parsed: comments may hold secrets.
    in_lines(text, found);
}

fn in_value(value: &Value, found: &mut Vec<(String, String)>) {
    each_named(value, &is_secret, &mut |key, text| add(key, text, found));
}

/// Finds secrets in lines such as `key = "value"`, `KEY=value` and `key: value`, and, in quotes, anywhere in a line.
fn in_lines(text: &str, found: &mut Vec<(String, String)>) {
    for line in LINE.captures_iter(text) {
        if let (Some(key), Some(value)) = (line.get(1), line.get(2)) {
            add(key.as_str(), value.as_str(), found);
        }
    }
    for pair in PAIR.captures_iter(text) {
        if let (Some(key), Some(value)) = (pair.get(1), pair.get(2).or(pair.get(3))) {
            add_text(key.as_str(), value.as_str(), &mut |key, value| add(key, value, found));
        }
    }
    for list in LIST.captures_iter(text) {
        let (Some(key), Some(items)) = (list.get(1), list.get(2)) else { continue };
        for item in QUOTED.captures_iter(items.as_str()).filter_map(|item| item.get(1).or(item.get(2))) {
            add_text(key.as_str(), item.as_str(), &mut |key, value| add(key, value, found));
        }
    }
}

fn is_secret(key: &str) -> bool {
    // `looks_secret` does not detect the words within `runtimeKey`.
    looks_secret(key) || key.ends_with("Key") || KEYS.iter().any(|it| key.eq_ignore_ascii_case(it))
}

fn add(key: &str, value: &str, found: &mut Vec<(String, String)>) {
    // Dirac keeps the tokens of an account as JSON in a string.
    if value.starts_with('{')
        && let Ok(inner) = serde_json::from_str::<Value>(value)
    {
        in_value(&inner, found);
    }
    // A text with blanks is a description, unless its form or its key says that it is a secret.
    let is_text = value.contains(char::is_whitespace) && !value.starts_with("-----BEGIN ") && !is_password(key);
    if is_secret(key) && value.len() >= MIN_SECRET_BYTES && !is_text {
        found.push((key.to_owned(), value.to_owned()));
    }
}

fn is_password(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["password", "passphrase", "passwd"].iter().any(|end| key.ends_with(end))
}

/// A key at the start of a line, with the first word of its value, or the word after a scheme such as `Bearer`.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static LINE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?xm)
        ^[\ \t]*(?:export[\ \t]+)?["']?([A-Za-z0-9_.-]+)["']?[\ \t]*[=:][\ \t]*
        ["']?(?:(?i:bearer|basic|token|bot)[\ \t]+)?([^"'\s\#,]+)
        "#,
    )
    .unwrap()
});

/// A key anywhere, with a value in quotes.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static PAIR: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"([A-Za-z0-9_.-]+)["']?[ \t]*[=:][ \t]*(?:"((?:[^"\\\n]|\\.)+)"|'([^'\n]+)')"#).unwrap()
});

/// A key anywhere, with a list.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static LIST: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"([A-Za-z0-9_.-]+)["']?[ \t]*[=:]\s*\[([^\]]*)\]"#).unwrap());

/// A text in quotes.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and a test compiles it")]
static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#""([^"\n]+)"|'([^'\n]+)'"#).unwrap());

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        write(
            "d.json",
            r#"{"prod": {"runtimeKey": "camel-0123456789"}, "account": "{\"access_token\": \"nested-0123456789\"}"}"#,
        );
        write("c.toml", "api_key = \"toml-0123456789ab\"\nmodel = \"a-long-name-of-a-model\"\n");
        write(".env", "export MISTRAL_API_KEY=mistral-0123456789\nNAME=0123456789abcdefg\n");
        write("y.yaml", "openai:\n  api_key: yaml-0123456789ab # mine\n");
        write("not-copied.json", r#"{"token": "other-0123456789"}"#);
        let mut manifest = Manifest::bare(Adapter::Acp);
        let copy = ["a", "c.toml", "d.json", ".env", "y.yaml", "gone"].map(Into::into).to_vec();
        manifest.home = Home::Private(PrivateHome { copy });
        let all = in_login_files(&manifest, Some(home.path()));
        assert!(all.unread.is_none(), "{:?}", all.unread);
        let mut found: Vec<String> = all.secrets.into_iter().map(|(_, value)| value).collect();
        found.sort();
        let wanted = [
            "camel-0123456789",
            "mistral-0123456789",
            "nested-0123456789",
            "refresh-0123456789",
            "token-0123456789",
            "toml-0123456789ab",
            "yaml-0123456789ab",
        ];
        assert_eq!(found, wanted);
        assert!(in_login_files(&manifest, None).secrets.is_empty());
        // A link to itself exists, but no user can read it.
        std::os::unix::fs::symlink("loop.json", home.path().join("a/deep/loop.json")).unwrap();
        let unread = in_login_files(&manifest, Some(home.path())).unread.unwrap().to_string();
        assert!(unread.contains("a/deep/loop.json cannot be read"), "{unread}");
    }

    #[test]
    fn secrets_in_headers_lists_arguments_and_inline_tables_are_found() {
        let found = |name: &str, text: &str| {
            let mut found = Vec::new();
            in_text(Path::new(name), text, &mut found);
            let mut found: Vec<String> = found.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
            found.sort();
            found.dedup();
            found
        };
        let settings = r#"{"mcp": {"headers": {"Authorization": "Bearer header-0123456789"}, "apiKeys": ["item-0123456789ab"],
            "args": ["--token", "option-0123456789"], "note": ["a-long-word-in-a-list"], "key": "how to get one of them"}}"#;
        let wanted = ["Authorization=header-0123456789", "apiKeys=item-0123456789ab", "token=option-0123456789"];
        assert_eq!(found("settings.json", settings), wanted);
        // As text: it has a comment, and it is in one line.
        let comment = settings.replace("\"how to", "/* mine */ \"how to").replace('\n', "");
        assert_eq!(found("settings.jsonc", &comment), wanted[..2]);
        let config = "[mcp.gh]\nenv = { GH_TOKEN = \"inline-0123456789\" }\nheaders = { \"Authorization\" = 'Bearer \
            header-0123456789' }\nkeys = [\n  \"item-0123456789ab\",\n]\n";
        let wanted = ["Authorization=header-0123456789", "GH_TOKEN=inline-0123456789", "keys=item-0123456789ab"];
        assert_eq!(found("config.toml", config), wanted);
        assert_eq!(found("config", config), wanted);
        let list = "api_keys:\n  - item-0123456789ab\nauthorization: Bearer header-0123456789\n";
        assert_eq!(found("config.yaml", list), ["api_keys=item-0123456789ab", "authorization=header-0123456789"]);
        let key = json!({"private_key": "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----\n"});
        assert_eq!(found("account.json", &key.to_string()).len(), 1);
    }

    #[test]
    fn a_folder_is_searched_as_a_whole_or_is_unread() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b/c/d/e");
        std::fs::create_dir_all(&deep).unwrap();
        let mut manifest = Manifest::bare(Adapter::Acp);
        manifest.home = Home::Private(PrivateHome { copy: vec!["a".into()] });
        for number in 0..300 {
            std::fs::write(deep.join(number.to_string()), format!("api_key = token-{number:010}\n")).unwrap();
        }
        let long = format!("{}\napi_key = token-of-a-long-file\n", "x".repeat(2 << 20));
        std::fs::write(home.path().join("a/long"), long).unwrap();
        std::os::unix::fs::symlink(".", home.path().join("a/same")).unwrap();
        let all = in_login_files(&manifest, Some(home.path()));
        assert!(all.unread.is_none(), "{:?}", all.unread);
        assert_eq!(all.secrets.len(), 301);
        for number in 300..MAX_FILES_AND_DEPTH.0 {
            std::fs::write(deep.join(number.to_string()), "").unwrap();
        }
        let unread = in_login_files(&manifest, Some(home.path())).unread.unwrap().to_string();
        assert!(unread.contains("more than 2000 files and folders are copied"), "{unread}");
    }
}
