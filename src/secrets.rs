//! Masks secret values in everything that is written or shown: `[redacted:NAME]` stands in their place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

pub mod split;

/// Values shorter than this are not masked: they occur by chance.
pub const SHORTEST: usize = 8;

/// Finds secret values in text, in raw, JSON-escaped and base64 form.
#[derive(Debug, Clone, Default)]
pub struct Masker {
    finder: Option<AhoCorasick>,
    marks: Vec<String>,
    too_short: Vec<String>,
    /// Name and value of each secret, for those that several lines make up.
    values: Vec<(String, String)>,
}

impl Masker {
    /// A masker for these values by name.
    pub fn new(secrets: &BTreeMap<String, String>) -> Self {
        let mut masker = Self::default();
        let mut patterns: Vec<String> = Vec::new();
        for (name, value) in secrets {
            if value.len() < SHORTEST {
                if !value.is_empty() {
                    masker.too_short.push(name.clone());
                }
                continue;
            }
            masker.values.push((name.clone(), value.clone()));
            let mut forms = vec![value.clone(), escaped(value), escaped(&escaped(value))];
            forms.extend(base64_forms(value));
            // A value of several lines is met line by line: in a patch, in an output, in a log.
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= 2 * SHORTEST && *line != value);
            forms.extend(lines.filter(|line| !line.starts_with("-----")).map(str::to_owned));
            forms.sort();
            forms.dedup();
            for form in forms {
                if !patterns.contains(&form) {
                    patterns.push(form);
                    masker.marks.push(format!("[redacted:{name}]"));
                }
            }
        }
        if !patterns.is_empty() {
            masker.finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok();
        }
        masker
    }

    /// The secrets of a trial: what in an environment looks secret by name, and what is named as secret.
    pub fn of_env<'a>(env: impl IntoIterator<Item = (&'a str, &'a str)>, named: &[String]) -> Self {
        let secret = env.into_iter().filter(|(name, _)| looks_secret(name) || named.iter().any(|n| n == name));
        Self::new(&secret.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Whether there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        self.finder.is_none()
    }

    /// Names of secrets whose values are too short to mask.
    pub fn too_short(&self) -> &[String] {
        &self.too_short
    }

    /// The text with every secret masked.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.finder {
            Some(finder) if finder.is_match(text) => Cow::Owned(finder.replace_all(text, &self.marks)),
            _ => Cow::Borrowed(text),
        }
    }

    /// The bytes with every secret masked.
    pub fn mask_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match &self.finder {
            Some(finder) if finder.is_match(bytes) => Cow::Owned(finder.replace_all_bytes(bytes, &self.marks)),
            _ => Cow::Borrowed(bytes),
        }
    }

    /// Whether there is nothing to mask.
    pub fn is_idle(&self) -> bool {
        self.finder.is_none()
    }

    /// Whether a secret occurs in the text.
    pub fn finds(&self, text: &str) -> bool {
        self.finder.as_ref().is_some_and(|finder| finder.is_match(text))
    }
}

/// Whether a variable of this name holds a secret, by its name alone.
pub fn looks_secret(name: &str) -> bool {
    const WHOLE: [&str; 4] = ["AUTH", "COOKIE", "PASS", "PAT"];
    const PARTS: [&str; 10] =
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY", "KEYS"];
    let name = name.to_ascii_uppercase();
    name.split(['_', '-', '.']).any(|part| {
        PARTS.contains(&part)
            || WHOLE.contains(&part)
            || ["TOKEN", "SECRET", "PASSWORD", "APIKEY"].iter().any(|end| part.ends_with(end))
    })
}

fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::String(value.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// How the value looks inside base64 text, at each of the three ways it may lie on its boundaries.
fn base64_forms(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for engine in [&STANDARD, &URL_SAFE] {
        for lead in 0..3usize {
            let mut bytes = vec![0u8; lead];
            bytes.extend_from_slice(value.as_bytes());
            let text = engine.encode(&bytes);
            // Characters that also hold bits of what stands before or after differ from case to case.
            let from = (lead * 8).div_ceil(6);
            let to = (bytes.len() * 8) / 6;
            forms.push(text[from..to].to_owned());
            if lead == 0 {
                forms.push(text);
            }
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn masker(value: &str) -> Masker {
        Masker::new(&[("MY_KEY".to_owned(), value.to_owned())].into())
    }

    #[test]
    fn names_tell_what_is_secret() {
        for name in ["ANTHROPIC_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "aws_secret_access_key", "NPM_AUTHTOKEN"] {
            assert!(looks_secret(name), "{name}");
        }
        for name in ["PATH", "KEYBOARD", "MONKEY", "LANG", "HOME", "TOKENIZERS_PARALLELISM"] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn a_value_of_several_lines_is_masked_line_by_line() {
        let masker =
            masker("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQDB\n-----END KEY-----");
        assert_eq!(masker.mask("+MIIEvQIBADANBgkqhkiG9w0BAQ\n"), "+[redacted:MY_KEY]\n");
        assert_eq!(masker.mask("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
    }

    #[test]
    fn short_values_are_left_and_named() {
        let masker = masker("short");
        assert_eq!(masker.mask("a short text"), "a short text");
        assert_eq!(masker.too_short(), ["MY_KEY"]);
    }

    proptest! {
        /// Raw, escaped or encoded, with whatever around it, a secret never comes through.
        #[test]
        fn a_secret_is_masked_in_every_form(secret in "[ -~]{8,40}", before in "[ -~]{0,9}", after in "[ -~]{0,9}") {
            let masker = masker(&secret);
            let text = format!("{before}{secret}{after}");
            prop_assert!(!masker.mask(&text).contains(&secret));
            let json = serde_json::Value::String(text.clone()).to_string();
            let masked = masker.mask(&json);
            let back: Result<String, _> = serde_json::from_str(&masked);
            prop_assert!(back.is_ok_and(|back| !back.contains(&secret)), "{masked}");
            let encoded = STANDARD.encode(&text);
            let masked = masker.mask(&encoded);
            prop_assert!(masked.contains("[redacted:MY_KEY]"), "{encoded}");
        }
    }
}
