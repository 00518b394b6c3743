//! Masks secrets by their form: keys and tokens of known services, and private keys. For text from another machine,
//! whose secrets are not in this program's environment.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The forms of secrets, with the names that take their place.
const FORMS: [(&str, &str); 12] = [
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("aws-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("google-key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("hf-token", r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("private-key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-\x22]{16,}-----END [A-Z ]*PRIVATE KEY-----"),
    ("password-in-url", r"\b([a-z][a-z0-9+.-]*://[^\s/:@\x22\x27,;{}\\]{1,64}):[^\s/:@\[\x22\x27,;{}\\]{3,}@"),
];

static COMPILED: LazyLock<Vec<(&'static str, Regex)>> = LazyLock::new(|| {
    // The patterns are constants, and a test compiles each of them.
    FORMS.iter().filter_map(|(name, form)| Some((*name, Regex::new(form).ok()?))).collect()
});

/// Returns the text with every secret of a known form masked.
pub fn mask(text: &str) -> Cow<'_, str> {
    let mut masked = Cow::Borrowed(text);
    for (name, form) in COMPILED.iter() {
        if !form.is_match(&masked) {
            continue;
        }
        // Words may be joined in the same way as a key, but hold no digit.
        if *name == "openai-key" {
            let replaced = form.replace_all(&masked, |found: &Captures<'_>| {
                let is_key = found[0].chars().any(|c| c.is_ascii_digit());
                if is_key { "[redacted:openai-key]".to_owned() } else { found[0].to_owned() }
            });
            masked = Cow::Owned(replaced.into_owned());
            continue;
        }
        let mark = if *name == "password-in-url" {
            format!("${{1}}:[redacted:{name}]@")
        } else {
            format!("[redacted:{name}]")
        };
        masked = Cow::Owned(form.replace_all(&masked, mark.as_str()).into_owned());
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_compiles() {
        assert_eq!(COMPILED.len(), FORMS.len());
    }

    #[test]
    fn secrets_are_masked_and_other_text_stays() {
        for (text, masked) in [
            ("key sk-ant-api03-abcdefghijklmnop_1 end", "key [redacted:anthropic-key] end"),
            ("OPENAI=sk-proj-abcdefghijklmnopqrst1", "OPENAI=[redacted:openai-key]"),
            ("ghp_abcdefghijklmnopqrstuvwxyz012345", "[redacted:github-token]"),
            ("AKIAABCDEFGHIJKLMNOP", "[redacted:aws-key]"),
            (
                r"-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0B\n-----END RSA PRIVATE KEY-----",
                "[redacted:private-key]",
            ),
            ("postgres://ada:hunter22@db/x", "postgres://ada:[redacted:password-in-url]@db/x"),
            (
                "git@github.com:a/b sk-short task-list-of-things-to-do-now-and-then",
                "git@github.com:a/b sk-short task-list-of-things-to-do-now-and-then",
            ),
            ("https://host:8080/a@b", "https://host:8080/a@b"),
            (r#"["http://host:8080","a@b"]"#, r#"["http://host:8080","a@b"]"#),
            ("sk-loading-spinner-container-wide", "sk-loading-spinner-container-wide"),
        ] {
            assert_eq!(mask(text), masked);
        }
        assert!(matches!(mask("plain"), Cow::Borrowed(_)));
    }
}
