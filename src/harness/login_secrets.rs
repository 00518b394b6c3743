//! Secrets in the login files that are copied to an agent's private home: they are redacted like the values of
//! variables.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::login::if_there;
use super::{Home, Manifest};
use crate::secrets::looks_secret;

/// The minimum length of a secret in bytes: a shorter value in a file may be a setting.
const SHORTEST: usize = 16;
/// The maximum number of files and folders that are searched, and their maximum depth.
const MOST: (usize, u32) = (2000, 16);
/// The maximum size of a file in bytes.
const LARGEST: u64 = 64 << 20;
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
    let mut left = MOST.0;
    for name in &private.copy {
        look(&home.join(name), MOST.1, &mut left, &mut found);
    }
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
        let why = format!("more than {} files and folders are copied; copy fewer with `home: {{copy: …}}`", MOST.0);
        return Err(io::Error::other(why));
    }
    *left -= 1;
    if meta.is_dir() {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(io::Error::other(format!("it is nested more than {} folders deep", MOST.1)));
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
    if meta.len() > LARGEST {
        return Err(io::Error::other(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    let Some(bytes) = if_there(std::fs::read(path))? else { return Ok(()) };
    let text = String::from_utf8_lossy(&bytes);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => in_json(&value, &mut found.secrets),
        Err(_) => in_lines(&text, &mut found.secrets),
    }
    Ok(())
}

fn in_json(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(text) => {
                        add(key, text, found);
                        // Dirac keeps the tokens of an account as JSON in a string.
                        if let Some(inner) = text.starts_with('{').then(|| serde_json::from_str(text).ok()).flatten() {
                            in_json(&inner, found);
                        }
                    }
                    value => in_json(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| in_json(value, found)),
        _ => {}
    }
}

/// Finds secrets in lines such as `key = "value"`, `KEY=value` and `key: value`.
fn in_lines(text: &str, found: &mut Vec<(String, String)>) {
    for line in LINE.captures_iter(text) {
        if let (Some(key), Some(value)) = (line.get(1), line.get(2)) {
            add(key.as_str(), value.as_str(), found);
        }
    }
}

fn add(key: &str, value: &str, found: &mut Vec<(String, String)>) {
    // `looks_secret` does not detect the words within `runtimeKey`.
    let is_secret = looks_secret(key) || key.ends_with("Key") || KEYS.iter().any(|it| key.eq_ignore_ascii_case(it));
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
        for number in 300..MOST.0 {
            std::fs::write(deep.join(number.to_string()), "").unwrap();
        }
        let unread = in_login_files(&manifest, Some(home.path())).unread.unwrap().to_string();
        assert!(unread.contains("more than 2000 files and folders are copied"), "{unread}");
    }
}
