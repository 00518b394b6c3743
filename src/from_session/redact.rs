//! Masks text that identifies a person in the text of a case: home folders and e-mail addresses. Secrets are always
//! masked.

use std::sync::LazyLock;

use regex::Regex;

use crate::secrets::{Masker, known_forms};

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static HOME: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:[A-Za-z]:\\+Users\\+|\\*/(?:home|Users)\\*/|\\+(?:home|Users)\\+)[^/\s\\:'\x22<>|]+|\\*/root\b")
        .unwrap()
});
/// The encoded form of a home folder. Agents name the folder of a session with `-` for `/` and other characters, so the
/// end of the user's name cannot be determined, and the rest of the name is masked as well.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static ENCODED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(^|[^A-Za-z0-9-])(?:-(?:home|Users|root)-[A-Za-z0-9-]*[A-Za-z0-9]|--(?:home|Users|root)-[A-Za-z0-9._-]+--|[A-Za-z]--Users-[A-Za-z0-9-]+|%2F(?:home|Users)%2F[^%/\s\x22']+)").unwrap()
});
/// The home folder of a user by name. `~/` names no user.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static TILDE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(^|[\s\x22'`=:(\[,])~[A-Za-z_][A-Za-z0-9_.-]*(/|\\)").unwrap());
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static MAIL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b[\p{L}\p{N}._%+-]+(?:[@\u{FF20}]|%40)[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,}\b").unwrap()
});

/// Masks secrets and, if requested, text that identifies a person.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    masker: Masker,
    /// The home folder of this machine's user, and true if persons are masked.
    persons: Option<Option<String>>,
}

impl Redactor {
    /// Returns a redactor of the secrets that `masker` knows, and of secrets with a known form.
    pub fn new(masker: Masker) -> Self {
        Self { masker, persons: None }
    }

    /// Makes the redactor also mask home folders, `home` among them, and e-mail addresses.
    #[must_use]
    pub fn with_persons(self, home: Option<String>) -> Self {
        Self { persons: Some(home.filter(|home| home.len() > 1)), ..self }
    }

    /// Returns the text with secrets and personal data masked.
    pub fn text(&self, text: &str) -> String {
        let text = self.masker.mask(text);
        let mut text = known_forms::mask(&text).into_owned();
        if let Some(home) = &self.persons {
            if let Some(home) = home {
                text = text.replace(home.as_str(), "~");
                let encoded: String = home.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
                text = with_rest(&text, &encoded);
            }
            text = ENCODED.replace_all(&text, "${1}[redacted:folder]").into_owned();
            text = HOME.replace_all(&text, "~").into_owned();
            text = TILDE.replace_all(&text, "${1}~${2}").into_owned();
            text = MAIL.replace_all(&text, "[redacted:email]").into_owned();
        }
        text
    }
}

/// Masks each place of an encoded home folder, with the rest of the encoded path.
fn with_rest(text: &str, encoded: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(encoded) {
        let after = &rest[at + encoded.len()..];
        let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(after.len());
        out.push_str(&rest[..at]);
        out.push_str("[redacted:folder]");
        rest = &after[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persons_are_masked_only_when_asked_for() {
        let text = "/home/ada/calc/a.py, /Users/ada b, /root/x, ada@example.org, git@github.com:a/b, sk-ant-api03-abcdefghijklmnop";
        let plain = Redactor::default();
        assert_eq!(plain.text(text), text.replace("sk-ant-api03-abcdefghijklmnop", "[redacted:anthropic-key]"));
        let all = plain.with_persons(Some("/srv/ada".to_owned()));
        assert_eq!(
            all.text(&format!("{text}; /srv/ada/x")),
            "~/calc/a.py, ~ b, ~/x, [redacted:email], [redacted:email]:a/b, [redacted:anthropic-key]; ~/x"
        );
        for (text, masked) in [
            (".claude/projects/-home-ada-projects-x/1.jsonl", ".claude/projects/[redacted:folder]/1.jsonl"),
            ("projects/-Users-ada-love-lace-x", "projects/[redacted:folder]"),
            ("sessions/--home-ada-calc--/1", "sessions/[redacted:folder]/1"),
            ("projects/-srv-ada-calc/1", "projects/[redacted:folder]/1"),
            ("C--Users-ada-x", "[redacted:folder]"),
            ("file:%2Fhome%2Fada%2Fx", "file:[redacted:folder]%2Fx"),
            ("cat ~ada/x ~/y \"~ada-b/z\" a~b/c ~5/6", "cat ~/x ~/y \"~/z\" a~b/c ~5/6"),
            (r"open \/home\/ada\/x and \/root\/y", r"open ~\/x and ~\/y"),
            (r"\\wsl$\Ubuntu\home\ada\x", r"\\wsl$\Ubuntu~\x"),
            (r"C:\Users\ada\x C:\\Users\\ada\\x", r"~\x ~\\x"),
            ("mail=ada%40example.org&x", "mail=[redacted:email]&x"),
            ("ада@пример.рф, ada\u{ff20}example.org", "[redacted:email], [redacted:email]"),
            ("take-home-exam and --home-dir x", "take-home-exam and --home-dir x"),
        ] {
            assert_eq!(all.text(text), masked);
        }
    }
}
