//! Masks text that identifies a person in the text of a case: home folders, e-mail addresses, and the names of known users.
//! Secrets are always masked.

use std::sync::LazyLock;

use regex::{Regex, escape};

use crate::secrets::terminal::COLOUR;
use crate::secrets::{Masker, known_forms};

/// A separator of a path, which may be escaped.
const SEPARATOR: &str = r"(?:\\*/|\\+u00(?:2[fF]|5[cC])|\\+)";
/// A part of a path without blanks, except for escaped ones.
const PART: &str = r"[^/\s\\:'\x22<>|,;()]+(?:\\+ [^/\s\\:'\x22<>|,;()]+)*";
/// A name with blanks: each further word begins with a capital letter, so that the words of a sentence are no part of it.
const NAME: &str =
    r"[^/\s\\:'\x22<>|,;()]+(?: (?:(?:al|bin|da|de|del|der|di|la|van|von) )*\p{Lu}[^/\s\\:'\x22<>|,;()]*)+";

#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static HOME: LazyLock<Regex> = LazyLock::new(|| {
    // The last letter of a word before a colon is no drive (`PATH=/usr/bin:/Users/ada/bin`).
    let drive = r"(?:(?P<before>\\[bfnrt])|\b)[A-Za-z]:";
    let folders = format!(r"(?:{drive}{SEPARATOR}(?i:users)|{SEPARATOR}(?:home|Users)){SEPARATOR}");
    Regex::new(&format!(r"{folders}(?:{NAME}(?P<end>[/\\'\x22])|{PART})|\\*/root\b")).unwrap()
});
/// A home folder in a path that does not begin with a separator, as archives list it.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static RELATIVE: LazyLock<Regex> = LazyLock::new(|| {
    let before = format!(r"(?P<before>^|[\s\x22'`=(\[,;:|]|{COLOUR})");
    Regex::new(&format!(r"{before}(?:home|Users){SEPARATOR}(?:{NAME}|{PART})(?P<end>[/\\])")).unwrap()
});
/// The encoded form of a home folder. Agents name the folder of a session with `-` for `/` and other characters, so the
/// end of the user's name cannot be determined, and the rest of the name is masked as well.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static ENCODED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(^|[^A-Za-z0-9-])(?:-(?:home|Users|root)-[A-Za-z0-9-]*[A-Za-z0-9]|--(?:home|Users|root)-[A-Za-z0-9._-]+--|[A-Za-z]--Users-[A-Za-z0-9-]+|%2[fF](?:home|Users)%2[fF](?:[^%/\s\x22']|%20)+)").unwrap()
});
/// The home folder of a user by name. `~/` names no user.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static TILDE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(^|[\s\x22'`=:(\[,]|{COLOUR})~[A-Za-z_][A-Za-z0-9_.-]*(/|\\)")).unwrap());
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static MAIL: LazyLock<Regex> = LazyLock::new(|| {
    let at = r"(?:[@\u{FF20}]|%40|\\+u0040|&#(?:64|[xX]40);|&commat;)";
    let begin = format!(r"(?:(?P<before>{COLOUR})|\b)");
    Regex::new(&format!(
        r"{begin}[\p{{L}}\p{{N}}._%+-]+{at}[\p{{L}}\p{{N}}-]+(?:\.[\p{{L}}\p{{N}}-]+)*\.\p{{L}}{{2,}}\b"
    ))
    .unwrap()
});

/// Names of users that identify no person.
const COMMON: [&str; 26] = [
    "admin",
    "administrator",
    "agent",
    "app",
    "build",
    "claude",
    "codespace",
    "codex",
    "copilot",
    "debian",
    "default",
    "developer",
    "gemini",
    "git",
    "guest",
    "home",
    "node",
    "public",
    "qwen",
    "root",
    "runner",
    "shared",
    "test",
    "ubuntu",
    "user",
    "vscode",
];
/// The minimum number of characters of a user's name that is masked outside of paths: shorter ones are parts of ordinary text.
const MIN_NAME_CHARS: usize = 3;

/// Masks secrets and, if requested, text that identifies a person.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    masker: Masker,
    /// The known persons, if persons are masked.
    persons: Option<Persons>,
}

/// The home folders and names of known users.
#[derive(Debug, Clone, Default)]
struct Persons {
    homes: Vec<Home>,
    names: Vec<Regex>,
}

/// A known home folder.
#[derive(Debug, Clone)]
struct Home {
    folder: Regex,
    /// The name that agents make of the folder, if [`ENCODED`] does not find it.
    encoded: Option<String>,
}

impl Redactor {
    /// Returns a redactor of the secrets that `masker` knows, and of secrets with a known form.
    pub fn new(masker: Masker) -> Self {
        Self { masker, persons: None }
    }

    /// Makes the redactor also mask home folders, `homes` among them, e-mail addresses and the names of users.
    #[must_use]
    pub fn with_persons(self, homes: &[&str], names: &[&str]) -> Self {
        let mut persons = Persons::default();
        for home in homes {
            persons.add_home(&parts(home));
            persons.learn(home);
        }
        names.iter().for_each(|name| persons.add_name(name));
        Self { persons: Some(persons), ..self }
    }

    /// Makes the redactor also mask the home folder in which a folder is, and the name of its user, if persons are masked.
    pub fn learn(&mut self, folder: &str) {
        if let Some(persons) = &mut self.persons {
            persons.learn(folder);
        }
    }

    /// Returns the text with secrets and personal data masked.
    pub fn text(&self, text: &str) -> String {
        let text = self.masker.mask(text);
        let mut text = known_forms::mask(&text).into_owned();
        if let Some(persons) = &self.persons {
            for home in &persons.homes {
                text = home.folder.replace_all(&text, "${before}~").into_owned();
                if let Some(encoded) = &home.encoded {
                    text = with_rest(&text, encoded);
                }
            }
            text = ENCODED.replace_all(&text, "${1}[redacted:folder]").into_owned();
            text = HOME.replace_all(&text, "${before}~${end}").into_owned();
            text = RELATIVE.replace_all(&text, "${before}~${end}").into_owned();
            text = TILDE.replace_all(&text, "${1}~${2}").into_owned();
            text = MAIL.replace_all(&text, "${before}[redacted:email]").into_owned();
            for name in &persons.names {
                text = name.replace_all(&text, "${before}[redacted:user]").into_owned();
            }
        }
        text
    }
}

impl Persons {
    /// Adds the home folder that a folder lies in, and the name of its user, if the folder's path shows them.
    fn learn(&mut self, folder: &str) {
        let parts = parts(folder);
        if let Some(at) = place_of_homes(&parts) {
            self.add_home(&parts[at..at + 2]);
            self.add_name(parts[at + 1]);
        }
    }

    /// Adds a home folder by the parts of its path.
    fn add_home(&mut self, parts: &[&str]) {
        let Some(last) = parts.last() else { return };
        // A letter before `/home` names a host or a volume, as in `x:/home/ada`.
        let has_drive = !parts.first().is_some_and(|part| part.eq_ignore_ascii_case("home"));
        let drive = if has_drive { r"(?:\b[A-Za-z]:)?" } else { "" };
        // One part alone is a word.
        let before = match parts.len() {
            1 => SEPARATOR.to_owned(),
            _ => format!(r"(?:{drive}{SEPARATOR}|(?P<before>^|[^\w/\\.~-]|{COLOUR}))"),
        };
        let path: Vec<String> = parts.iter().map(|part| spaced(part)).collect();
        let Ok(folder) = Regex::new(&format!("{before}{}{}", path.join(SEPARATOR), end_of_word(last))) else { return };
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let encoded = || parts.iter().map(|part| format!("-{}", part.chars().map(plain).collect::<String>())).collect();
        let is_found = parts.len() < 2 || place_of_homes(parts).is_some();
        self.homes.push(Home { folder, encoded: (!is_found).then(encoded) });
    }

    /// Adds the name of a user, unless it identifies no person.
    fn add_name(&mut self, name: &str) {
        if name.chars().count() < MIN_NAME_CHARS || COMMON.contains(&name.to_lowercase().as_str()) {
            return;
        }
        let word = if name.starts_with(char::is_alphanumeric) { r"\b" } else { "" };
        // The last character of an escape looks like one of the word.
        let begin = format!("(?:(?P<before>{COLOUR}|%[0-9A-Fa-f]{{2}})|{word})");
        self.names.extend(Regex::new(&format!("{begin}{}{}", spaced(name), end_of_word(name))));
    }
}

/// Returns the parts of a path without its drive.
fn parts(path: &str) -> Vec<&str> {
    path.split(['/', '\\']).filter(|part| !part.is_empty() && !part.ends_with(':')).collect()
}

/// Returns the place of the folder of all home folders in a path, if the path leads into one of them.
fn place_of_homes(parts: &[&str]) -> Option<usize> {
    let at = parts.iter().position(|part| ["home", "users"].contains(&part.to_lowercase().as_str()))?;
    let is_above = |part: &&str| part.len() == 1 || ["cygdrive", "export", "mnt", "usr", "var"].contains(part);
    (at + 1 < parts.len() && parts[..at].iter().all(is_above)).then_some(at)
}

/// Returns the pattern of a text whose blanks may be escaped.
fn spaced(text: &str) -> String {
    text.split(' ').map(escape).collect::<Vec<String>>().join(r"(?:\\* |%20|\+)")
}

/// Returns the pattern of the end of a word, if the text ends with one.
fn end_of_word(text: &str) -> &'static str {
    if text.ends_with(char::is_alphanumeric) { r"\b" } else { "" }
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
        let all = plain.with_persons(&["/srv/ada"], &[]);
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
            ("open /Users/Ada Lovelace/proj/a.txt", "open ~/proj/a.txt"),
            (r"/mnt/c/Users/Ada Lovelace/b, C:\Users\Ada de Lovelace\c", r"/mnt/c~/b, ~\c"),
            (r"cd '/Users/Ada Lovelace' && ls /Users/Ada\ Lovelace/x", "cd '~' && ls ~/x"),
            ("see /home/ada, README/x or /home/ada and /etc/x", "see ~, README/x or ~ and /etc/x"),
            (r"c:\users\ada\x and C:/Users/ada/x", r"~\x and ~/x"),
            (r"\u002fhome\u002fada\u002fx", r"~\u002fx"),
            ("%2fUsers%2fAda%20Lovelace%2fx", "[redacted:folder]%2fx"),
            ("tar lists home/ada/t and src/home/view/x", "tar lists ~/t and src~/x"),
            (
                r#""mail": "ada\u0040example.org", ada&#64;example.org"#,
                r#""mail": "[redacted:email]", [redacted:email]"#,
            ),
            ("srv/ada/x, /srv/adamant/x", "~/x, /srv/adamant/x"),
            // The last letter of a word is no drive.
            ("PATH=/usr/bin:/home/ada/bin:/Users/ada/bin", "PATH=/usr/bin:~/bin:~/bin"),
            ("-v ./src:/srv/ada/app -v x:/home/ada/app", "-v ./src:~/app -v x:~/app"),
            ("scp host:/Users/ada/x .", "scp host:~/x ."),
            (r"\nc:\users\ada\x", r"\n~\x"),
            (
                "\x1b[32mada@example.org\x1b[0m \x1b[1m~ada/x \x1b[mhome/ada/t",
                "\x1b[32m[redacted:email]\x1b[0m \x1b[1m~/x \x1b[m~/t",
            ),
        ] {
            assert_eq!(all.text(text), masked);
        }
    }

    #[test]
    fn known_users_are_masked_wherever_they_are_named() {
        let mut known = Redactor::default().with_persons(&["/root", "/home/grace"], &["hopper", "root", "al"]);
        known.learn("/Users/Ada Lovelace/proj");
        for (text, masked) in [
            ("run as root in /root/x", "run as root in ~/x"),
            ("grace@host: hopper, gracefully, al", "[redacted:user]@host: [redacted:user], gracefully, al"),
            ("/Users/Ada Lovelace and /users/Ada Lovelace", "~ and /users/[redacted:user]"),
            (r"in Users/Ada\ Lovelace or Ada%20Lovelace", "in ~ or [redacted:user]"),
            ("by Ada Lovelace", "by [redacted:user]"),
            ("\x1b[32mgrace\x1b[0m, %20hopper", "\x1b[32m[redacted:user]\x1b[0m, %20[redacted:user]"),
            ("PATH=/usr/bin:/home/grace/bin; scp x:/home/grace/y .", "PATH=/usr/bin:~/bin; scp x:~/y ."),
        ] {
            assert_eq!(known.text(text), masked);
        }
        let mut nobody = Redactor::default();
        nobody.learn("/home/grace/x");
        assert_eq!(nobody.text("/home/grace/x"), "/home/grace/x");
        for (path, at) in [
            ("/home/ada/x", Some(0)),
            (r"C:\Users\Ada\x", Some(0)),
            ("/mnt/c/Users/Ada", Some(2)),
            ("/work/home/templates", None),
            ("/home", None),
        ] {
            assert_eq!(place_of_homes(&parts(path)), at, "{path}");
        }
    }
}
