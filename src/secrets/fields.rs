//! Masks the values of fields whose names say that they are secret, in JSON, YAML, headers, queries and code:
//! `"api_key": "…"`, `password: …`, `x-api-key: …`. A value must look like a secret, because prose and code name such
//! fields, too.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The name of a field, up to the value. In a text within JSON the quotes are escaped.
const NAME: &str = r"[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|password|passwd|credential|private[_-]?key|access[_-]?key)[A-Za-z0-9_-]*";
/// The texts of which each name of such a field contains at least one, in upper or lower case.
pub(super) const WORDS: [&str; 14] = [
    "access-key",
    "access_key",
    "accesskey",
    "api-key",
    "api_key",
    "apikey",
    "credential",
    "passwd",
    "password",
    "private-key",
    "private_key",
    "privatekey",
    "secret",
    "token",
];
/// Ends of names whose values are not the secret itself.
const ABOUT: [&str; 15] = [
    "count", "type", "name", "url", "uri", "endpoint", "file", "path", "limit", "budget", "usage", "env", "var",
    "length", "hash",
];
/// Beginnings of values that name the place of a secret, and stand-ins.
const ELSEWHERE: [&str; 18] = [
    "$",
    "<",
    "{",
    "[",
    "%",
    "*",
    "./",
    "../",
    "...",
    "…",
    "~/",
    "process.env",
    "os.environ",
    "env.",
    "http:",
    "https:",
    "your",
    "xxx",
];

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static QUOTED: LazyLock<Regex> = LazyLock::new(|| {
    let form = format!(r#"(?i)(\\*["']({NAME})\\*["']\s*(?::|=>?|,)\s*\\*["'])([^"'\\\s]+)"#);
    Regex::new(&form).unwrap()
});
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    let form = format!(r#"(?i)(({NAME})\s*(?::\s*|=\s*)(\\*["'])?)([^\s"'\\,;&|(){{}}\[\]<>`]+)"#);
    Regex::new(&form).unwrap()
});

/// Returns the text with the values of secret fields masked.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    let one = |found: &Captures<'_>, value: usize, is_quoted: bool| {
        let part = |number: usize| found.get(number).map(|it| it.as_str()).unwrap_or_default();
        let is_secret = is_name(part(2)) && is_secret(part(2), part(value), is_quoted);
        if is_secret { format!("{}[redacted:secret-field]", part(1)) } else { found[0].to_owned() }
    };
    if QUOTED.is_match(&masked) {
        masked = Cow::Owned(QUOTED.replace_all(&masked, |found: &Captures<'_>| one(found, 3, true)).into_owned());
    }
    if BARE.is_match(&masked) {
        let replaced = BARE.replace_all(&masked, |found: &Captures<'_>| one(found, 4, found.get(3).is_some()));
        masked = Cow::Owned(replaced.into_owned());
    }
    masked
}

/// Returns true if a field with this name holds a secret: `token`, but neither `max_tokens` nor `token_type`.
fn is_name(name: &str) -> bool {
    let name = name.to_lowercase();
    let is_figure = name.contains("tokens") || name.contains("tokeniz");
    !is_figure && !ABOUT.iter().any(|end| name.ends_with(end))
}

/// Returns true if a value names the place of a secret, or is a stand-in.
pub(super) fn is_elsewhere(value: &str) -> bool {
    let lower = value.to_lowercase();
    ELSEWHERE.iter().any(|start| lower.starts_with(start))
}

/// Returns true if a value looks like a secret: not like a word, a number, a name in code, or a path.
pub(super) fn is_secret(name: &str, value: &str, is_quoted: bool) -> bool {
    if value.chars().count() < 6 || is_elsewhere(value) {
        return false;
    }
    let lower = value.to_lowercase();
    let is = |test: fn(&char) -> bool| value.chars().any(|c| test(&c));
    let (digit, letter) = (is(char::is_ascii_digit), is(char::is_ascii_alphabetic));
    let (upper, lower_case) = (is(char::is_ascii_uppercase), is(char::is_ascii_lowercase));
    let is_path = value.starts_with('/') && !upper && !value.contains(['+', '=']);
    let size = lower.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let is_type = ["int", "uint", "float"].iter().any(|kind| lower.strip_prefix(kind) == Some(size));
    if is_path || (is_type && size.len() <= 3) {
        return false;
    }
    let is_password = name.to_lowercase().contains("passw");
    let has_symbol = value.chars().any(|c| "!@#$%^&*+=?~".contains(c));
    match is_quoted {
        true => {
            (digit && (letter || is_password))
                || (letter && has_symbol)
                || (upper && lower_case && value.chars().count() >= 12)
                || value.chars().count() >= 24
        }
        false => (digit && letter) || (letter && has_symbol && is_password) || (letter && value.chars().count() >= 32),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secret_fields_are_masked() {
        for (text, masked) in [
            (r#"{"api_key": "zzTopSecretValue12345"}"#, r#"{"api_key": "[redacted:secret-field]"}"#),
            (r#"{\"apiKey\":\"abc123def\",\"x\":1}"#, r#"{\"apiKey\":\"[redacted:secret-field]\",\"x\":1}"#),
            ("'client_secret' => 'a1b2c3d4'", "'client_secret' => '[redacted:secret-field]'"),
            ("password: Corr3ctH0rse\nuser: ada", "password: [redacted:secret-field]\nuser: ada"),
            (r#"a\npassword: hunter2\nb"#, r#"a\npassword: [redacted:secret-field]\nb"#),
            ("-H 'x-api-key: 0123456789abcdefSECRET'", "-H 'x-api-key: [redacted:secret-field]'"),
            ("https://h/?access_token=abc123def&x=1", "https://h/?access_token=[redacted:secret-field]&x=1"),
            (
                "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
                "aws_secret_access_key = [redacted:secret-field]",
            ),
            (r#"private_key="MIIEvQIBADANBgkq""#, r#"private_key="[redacted:secret-field]""#),
            (r#""db-credential": "p@ssword""#, r#""db-credential": "[redacted:secret-field]""#),
            (r#"{"password": "12345678"}"#, r#"{"password": "[redacted:secret-field]"}"#),
        ] {
            assert_eq!(mask(text), masked);
        }
    }

    #[test]
    fn prose_code_and_figures_stay() {
        for text in [
            "the token: is invalid, and the password: unknown",
            "Passwords: between 8 and 20 characters",
            r#"{"input_tokens": 123456, "max_tokens": "4096000", "tokenizer": "o200k_base"}"#,
            r#"{"token_type": "Bearer2", "password": "string", "secret": "$SECRET_1"}"#,
            "const token = getToken(user1); token: TokenKind, password: userPassword",
            "token: uint64, secret: [u8; 32], password: Option<String>",
            "api_key: ${API_KEY1}, apiKey: process.env.API_KEY1, token: <your-token-1>",
            "password_file: /run/secrets/db1, secret: /run/secrets/db1",
            "fetch(url, {credentials: 'same-origin'})",
            r#"{"api_key": "...abc1234", "secret": "…abc1234"}"#,
            "Authorization: Bearer [redacted:authorization]",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
