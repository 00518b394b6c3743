//! Masks secret values in everything that is written or shown: each is replaced by `[redacted:NAME]`.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::Value;

use crate::proxy::is_proxy;

mod escapes;
mod fields;
pub mod known_forms;
mod marked;
mod numbers;
mod ordinary;
mod percent;
pub mod servers;
pub mod split;
pub mod terminal;
mod tokens;
mod url_password;
pub mod urls;
mod view;
mod wrapped;

use numbers::NumbersIn;

/// The length in bytes below which values are not masked: short values occur by chance.
pub const MIN_SECRET_BYTES: usize = 8;

/// The depth to which JSON inside JSON strings is searched.
const DEPTH: u32 = 4;

/// The handling of a number that contains a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Numbers {
    /// The number is replaced by the mark.
    Redacted,
    /// The number stays: it is a figure of the engine.
    Kept,
}

/// The search for the forms of secrets.
#[derive(Debug, Clone, Default)]
enum Finder {
    /// There is nothing to find.
    #[default]
    Nothing,
    Forms(AhoCorasick),
    /// The search could not be built, so the places of secrets are unknown.
    Unknown,
}

/// The mark of a text in which the places of secrets are unknown.
const WHOLE: &str = "[redacted]";

/// Returns the first mark of a masked secret in a text. What the secret was cannot be known from the text.
pub fn mark_in(text: &str) -> Option<&str> {
    marks_in(text).next()
}

/// Returns the first mark of a text that was masked because of its form, in an import. Such a text may be no secret.
pub fn mark_of_form_in(text: &str) -> Option<&str> {
    let is_of_form = |mark: &&str| {
        let name = mark.strip_prefix("[redacted:");
        name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
    };
    marks_in(text).find(is_of_form)
}

/// Returns the marks of masked secrets in a text.
fn marks_in(text: &str) -> impl Iterator<Item = &str> {
    let begins = text.match_indices("[redacted").map(|(at, _)| &text[at..]);
    begins.filter(|rest| rest.starts_with(WHOLE) || rest.starts_with("[redacted:")).filter_map(|rest| {
        let end = rest.find([']', '\n'])?;
        rest.get(..=end)
    })
}

/// Finds secret values in text: raw, JSON-escaped, percent-encoded, and as base64, in one line or across several, also with
/// terminal colours between their characters.
#[derive(Debug, Clone, Default)]
pub struct Masker {
    finder: Finder,
    marks: Vec<String>,
    /// The values in lower case, with their marks.
    values: Vec<(String, String)>,
    too_short: Vec<String>,
    /// The length in bytes of the longest form.
    longest: usize,
    /// True if a form contains blanks.
    blanks: bool,
}

impl Masker {
    /// Makes a masker for values by name.
    pub fn new(secrets: &BTreeMap<String, String>) -> Self {
        Self::of(secrets.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }

    /// Makes a masker for values by name. Several values may have the same name.
    pub fn of<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut masker = Self::default();
        let mut patterns: Vec<String> = Vec::new();
        for (name, value) in secrets {
            if value.len() < MIN_SECRET_BYTES {
                if !value.is_empty() {
                    masker.too_short.push(name.to_owned());
                }
                continue;
            }
            masker.values.push((value.to_lowercase(), format!("[redacted:{name}]")));
            let mut forms = vec![value.to_owned(), escaped(value), escaped(&escaped(value))];
            // Programs strip a line end from a value that was read from a file.
            let line = value.trim_end_matches(['\r', '\n']);
            if line.len() >= MIN_SECRET_BYTES && line != value {
                forms.push(line.to_owned());
                forms.extend(base64_forms(line));
            }
            // HTML forms encode a space as a plus sign.
            forms.push(value.replace(' ', "+"));
            forms.extend(base64_forms(value));
            // A value of several lines is also masked line by line, because its lines appear separately in a patch, an
            // output or a log.
            let lines =
                value.lines().map(str::trim).filter(|line| line.len() >= 2 * MIN_SECRET_BYTES && *line != value);
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
        masker.longest = patterns.iter().map(String::len).max().unwrap_or(0);
        masker.blanks = patterns.iter().any(|form| form.contains([' ', '\t']));
        if !patterns.is_empty() {
            let finder = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns);
            masker.finder = finder.map_or(Finder::Unknown, Finder::Forms);
        }
        masker
    }

    /// Makes a masker for the secrets of an environment: variables with the name of a secret, the variables in `named`, and
    /// the credentials in URLs, whatever the name of the variable.
    pub fn of_env<'a>(env: impl IntoIterator<Item = (&'a str, &'a str)>, named: &[String]) -> Self {
        Self::of_trial(std::iter::empty(), env, named)
    }

    /// Makes a masker for the secrets of a trial. `env` is the user's environment: a variable is masked by its name. `given`
    /// is what the agent gets: credentials in URLs are masked, too. The password of a service that the agent does not get is
    /// often a word of the workspace (`postgres://app:development@localhost`).
    pub fn of_trial<'a>(
        env: impl IntoIterator<Item = (&'a str, &'a str)>,
        given: impl IntoIterator<Item = (&'a str, &'a str)>,
        named: &[String],
    ) -> Self {
        let is_secret =
            |name: &str, value: &str| is_name_of_secret(name) && !(is_folder_name(name) && value.starts_with('/'));
        let env: Vec<(&str, &str)> = env.into_iter().collect();
        let given: Vec<(&str, &str)> = given.into_iter().collect();
        let mut in_urls: Vec<(&str, String)> = Vec::new();
        for (name, value) in &given {
            in_urls.extend(url_credentials(name, value).into_iter().map(|secret| (*name, secret)));
        }
        let is_whole = |name: &str, value: &str| is_secret(name, value) || named.iter().any(|n| n == name);
        let whole = env.iter().chain(&given).copied().filter(|(name, value)| is_whole(name, value));
        Self::of(whole.chain(in_urls.iter().map(|(name, secret)| (*name, secret.as_str()))))
    }

    /// Returns true if there is nothing to mask.
    pub fn is_empty(&self) -> bool {
        matches!(self.finder, Finder::Nothing)
    }

    /// Returns the names of secrets whose values are too short to mask.
    pub fn too_short(&self) -> &[String] {
        &self.too_short
    }

    /// Returns the text with every secret masked.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.mask_bytes(text.as_bytes()) {
            Cow::Owned(masked) => Cow::Owned(
                String::from_utf8(masked)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
            Cow::Borrowed(_) => Cow::Borrowed(text),
        }
    }

    /// Returns the bytes with every secret masked.
    pub fn mask_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let places = self.places(bytes);
        if places.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let mut masked = Vec::with_capacity(bytes.len());
        let mut copied = 0;
        let mut numbers = NumbersIn::new(bytes);
        for (place, mark) in places {
            // A number may contain several secrets, and is replaced once. The last of them may go on after the number.
            if place.end <= copied {
                continue;
            }
            let place = place.start.max(copied)..place.end;
            // The digits before a secret may belong to another secret, which is masked already.
            let number = numbers.around(&place).filter(|(whole, _)| whole.start >= copied);
            let quote = number.as_ref().map_or("", |(_, quote)| quote.text());
            let place = number.map_or(place, |(whole, _)| whole);
            masked.extend_from_slice(&bytes[copied..place.start]);
            for part in [quote, mark, quote] {
                masked.extend_from_slice(part.as_bytes());
            }
            copied = place.end;
        }
        masked.extend_from_slice(&bytes[copied..]);
        Cow::Owned(masked)
    }

    /// Returns the places of secrets, in order and without overlap, with the mark for each. If they are unknown, the whole
    /// text is one place.
    fn places(&self, bytes: &[u8]) -> Vec<(Range<usize>, &str)> {
        match &self.finder {
            Finder::Nothing => Vec::new(),
            Finder::Forms(finder) => self.places_in(finder, bytes, DEPTH),
            Finder::Unknown if bytes.is_empty() => Vec::new(),
            Finder::Unknown => vec![(0..bytes.len(), WHOLE)],
        }
    }

    fn places_in(&self, finder: &AhoCorasick, bytes: &[u8], depth: u32) -> Vec<(Range<usize>, &str)> {
        let mark = |found: aho_corasick::Match| self.marks.get(found.pattern().as_usize()).map_or("", String::as_str);
        let mut places: Vec<_> = finder.find_iter(bytes).map(|found| (found.range(), mark(found))).collect();
        if depth == 0 {
            return places;
        }
        // The escapes of `serde_json` are among the forms of a secret. Other writers may escape any character.
        let decoded = [
            escapes::odd(bytes).then(|| escapes::undone(bytes)),
            percent::occurs(bytes).then(|| percent::undone(bytes)),
        ];
        let found = places.len();
        for view in decoded.iter().flatten() {
            let below = self.places_in(finder, &view.text, depth - 1);
            places.extend(below.into_iter().map(|(at, mark)| (view.original(at), mark)));
        }
        if terminal::occurs(bytes)
            && let Some(view) = terminal::undone(bytes)
        {
            for (at, mut mark) in self.places_in(finder, &view.text, depth - 1) {
                // The colours stay. Only the first piece of a secret has a mark.
                places.extend(view.pieces(at).into_iter().map(|piece| (piece, std::mem::take(&mut mark))));
            }
        }
        // A single further level is enough for text that is wrapped and then escaped.
        let search = |text: &[u8]| self.places_in(finder, text, (depth - 1).min(1));
        wrapped::places(bytes, self.overlap(), self.blanks, search, &mut places);
        if places.len() == found {
            return places;
        }
        places.sort_by_key(|(at, _)| (at.start, Reverse(at.end)));
        let mut apart: Vec<(Range<usize>, &str)> = Vec::new();
        for (at, mark) in places {
            match apart.last_mut() {
                Some((last, kept)) if at.start < last.end => {
                    last.end = last.end.max(at.end);
                    // Only the first line of a secret has a mark.
                    *kept = if kept.is_empty() { mark } else { kept };
                }
                _ => apart.push((at, mark)),
            }
        }
        apart
    }

    /// Returns the length in bytes that any form of a secret fits in, with any escapes.
    fn overlap(&self) -> usize {
        6 * self.longest
    }

    /// Redacts the texts of a value. Keys stay.
    pub fn mask_value(&self, value: &mut Value, numbers: Numbers) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(masked) = self.mask(text) {
                    *text = masked;
                }
            }
            Value::Number(number) if numbers == Numbers::Redacted => {
                if let Some(mark) = self.mark_in(&number.to_string()) {
                    *value = Value::String(mark.to_owned());
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item, numbers)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask_value(field, numbers)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the mark of the first secret in the text, in upper or lower case: a pattern may ignore the case.
    pub fn mark_in_any_case(&self, text: &str) -> Option<&str> {
        let lower = text.to_lowercase();
        let in_lower = || self.values.iter().find(|(value, _)| lower.contains(value)).map(|(_, mark)| mark.as_str());
        self.mark_in(text).or_else(in_lower)
    }

    /// Returns the mark of the first secret in the text, `[redacted:NAME]`.
    pub fn mark_in(&self, text: &str) -> Option<&str> {
        self.places(text.as_bytes()).first().map(|(_, mark)| *mark)
    }

    /// Returns true if a secret occurs in the text.
    pub fn finds(&self, text: &str) -> bool {
        !self.places(text.as_bytes()).is_empty()
    }
}

/// Returns the answer of [`looks_secret`] about the name of a variable, which is remembered: every trial asks about all variables
/// of the same environment.
fn is_name_of_secret(name: &str) -> bool {
    const MAX_KNOWN: usize = 1000;
    static KNOWN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = known.get(name) {
        return *answer;
    }
    let answer = looks_secret(name);
    if known.len() < MAX_KNOWN {
        known.insert(name.to_owned(), answer);
    }
    answer
}

/// Returns true if the name alone suggests that a variable or a header contains a secret. A number at the end, as in
/// `API_KEY2`, makes no difference.
pub fn looks_secret(name: &str) -> bool {
    const WHOLE: [&str; 5] = ["AUTH", "AUTHORIZATION", "COOKIE", "PASS", "PAT"];
    // `JWT` is a token, but the `JWT_ISSUER` is none.
    const LAST: [&str; 4] = ["BEARER", "CRED", "CREDS", "JWT"];
    const PARTS: [&str; 6] = ["CREDENTIAL", "CREDENTIALS", "KEY", "KEYS", "PASSPHRASE", "PASSWD"];
    // Words that may be joined to others, as in `NPM_AUTHTOKEN`.
    const ENDS: [&str; 4] = ["APIKEY", "PASSWORD", "SECRET", "TOKEN"];
    // Further such words, and plurals. `SECRETS_PATH` and `SSHPRIVATEKEY_FILE` hold no secret. `TOKENS` is not among them,
    // because it is mostly a count.
    const JOINED: [&str; 10] = [
        "ACCESSKEY",
        "APIKEYS",
        "CREDENTIAL",
        "CREDENTIALS",
        "PASSPHRASE",
        "PASSWD",
        "PASSWORDS",
        "PRIVATEKEY",
        "SECRETKEY",
        "SECRETS",
    ];
    const DIGITS: std::ops::RangeInclusive<char> = '0'..='9';
    let name = name.to_ascii_uppercase();
    if is_folder_name(&name) || name.ends_with("_PW") || ["SSHPASS", "PGPASS"].contains(&name.as_str()) {
        return true;
    }
    // `PAT2` is another `PAT`, but the `AUTH0` of `AUTH0_DOMAIN` is a name.
    let name = name.trim_end_matches(|c| c == '_' || DIGITS.contains(&c));
    if name.rsplit(['_', '-', '.']).next().is_some_and(|last| LAST.contains(&last)) {
        return true;
    }
    let is_about = names_something_else(name);
    name.split(['_', '-', '.']).any(|part| {
        if WHOLE.contains(&part) {
            return true;
        }
        let part = part.trim_end_matches(|c| DIGITS.contains(&c));
        PARTS.contains(&part)
            || ENDS.iter().any(|end| part.ends_with(end))
            || (!is_about && JOINED.iter().any(|end| part.ends_with(end)))
    })
}

/// Returns true if the last word of a name says that the value is not the secret itself: `APP_SECRETS_FILE`.
fn names_something_else(name: &str) -> bool {
    const OTHERS: [&str; 8] = ["BACKEND", "DIRECTORY", "FILES", "FOLDER", "ID", "MANAGER", "PATHS", "STORE"];
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name);
    OTHERS.contains(&last) || fields::is_about(last)
}

/// Returns the credentials in the URLs of a variable, a header or a setting. The address of a proxy may have no scheme.
pub fn url_credentials(name: &str, value: &str) -> Vec<String> {
    if is_proxy(name) && !value.contains("://") {
        return urls::credentials_in(&format!("http://{value}"));
    }
    urls::credentials_in(value)
}

/// Returns true if a variable's name ends in `PWD`, which means a password or a working folder.
fn is_folder_name(name: &str) -> bool {
    name.to_ascii_uppercase().ends_with("_PWD")
}

fn escaped(value: &str) -> String {
    let quoted = serde_json::Value::String(value.to_owned()).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns the forms of the value inside base64 text, one for each of its three possible alignments.
fn base64_forms(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for engine in [&STANDARD, &URL_SAFE] {
        for lead in 0..3usize {
            let mut bytes = vec![0u8; lead];
            bytes.extend_from_slice(value.as_bytes());
            let text = engine.encode(&bytes);
            // Characters that also contain bits of the bytes before or after the value vary, and are left out.
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
    fn a_text_is_masked_whole_if_the_places_of_secrets_are_unknown() {
        let masker = Masker { finder: Finder::Unknown, ..Masker::default() };
        assert_eq!(masker.mask("a secret"), "[redacted]");
        assert_eq!(masker.mask(""), "");
        assert!(!masker.is_empty());
    }

    #[test]
    fn a_line_end_of_a_value_and_a_working_folder_are_no_part_of_the_secret() {
        assert_eq!(
            masker("my-value-123456\n").mask("bXktdmFsdWUtMTIzNDU2 my-value-123456"),
            "[redacted:MY_KEY] [redacted:MY_KEY]"
        );
        let masker = Masker::of_env([("APP_PWD", "/srv/project"), ("DB_PWD", "my-value-123456")], &[]);
        assert_eq!(masker.mask("/srv/project my-value-123456"), "/srv/project [redacted:DB_PWD]");
    }

    #[test]
    fn names_tell_what_is_secret() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "DB_PASSWORD",
            "aws_secret_access_key",
            "NPM_AUTHTOKEN",
            "API_KEY1",
            "MY_TOKEN2",
            "TOKEN_2",
            "DB_PASSWORD_01",
            "API_KEY_",
            "API_KEY2_PROD",
            "NPM_AUTHTOKEN3",
            "GITHUB_PAT2",
            "DB_PASS1",
            "Authorization",
            "Proxy-Authorization",
            "X-Api-Key",
            "Cookie",
            "MYSQL_PWD",
            "LDAP_BIND_PW",
            "SSHPASS",
            "SESSION_JWT",
            "BEARER",
            "DB_CREDS2",
            "APP_SECRETS",
            "APP_SECRETS_JSON",
            "DBPASSWD",
            "MYSECRETKEY",
            "SSHPRIVATEKEY",
            "secretKey",
            "SERVICE_APIKEYS",
            "USER_PASSWORDS",
            "VAULT_SECRET_ID",
            "SECRETS_2",
        ] {
            assert!(looks_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "KEYBOARD",
            "MONKEY",
            "MONKEY2",
            "AUTHOR",
            "SECRETARY",
            "MAX_TOKENS",
            "max_output_tokens",
            "LANG",
            "HOME",
            "TOKENIZERS_PARALLELISM",
            "AUTH0_DOMAIN",
            "JWT_ISSUER",
            "PRIVATE_REGISTRY",
            "SECRETS_PATH",
            "APP_SECRETS_FILE",
            "secrets.dir",
            "SECRETS_BACKEND",
            "USER_PASSWORDS_COUNT",
            "SERVICE_APIKEYS_URL",
            "SSHPRIVATEKEY_FILE",
            "SECRETS_MANAGER_ARN",
            "SECRETS_FILE_2",
            "PATH_2",
            "PWD",
            "OLDPWD",
            "SHA256",
            "_",
            "12",
            "",
        ] {
            assert!(!looks_secret(name), "{name}");
        }
    }

    #[test]
    fn the_password_in_the_url_of_any_variable_is_masked_and_its_host_stays() {
        let masker = Masker::of_env(
            [
                ("HTTPS_PROXY", "http://bob:hunter2-one@127.0.0.1:1"),
                ("all_proxy", "bob:hunter2-two@127.0.0.1:1"),
                ("DATABASE_URL", "postgres://bob:p%40ss@db/x"),
                ("NO_PROXY", "localhost,127.0.0.1"),
                ("LOCAL_URL", "postgres://postgres:postgres@localhost/x"),
            ],
            &[],
        );
        for (text, masked) in [
            ("http://bob:hunter2-one@127.0.0.1:1", "http://bob:[redacted:HTTPS_PROXY]@127.0.0.1:1"),
            ("Ym9iOmh1bnRlcjItdHdv bob:hunter2-two@", "Ym9iOm[redacted:all_proxy] bob:[redacted:all_proxy]@"),
            ("postgres://bob:p%40ss@db/x", "postgres://[redacted:DATABASE_URL]@db/x"),
            ("a postgres on localhost,127.0.0.1", "a postgres on localhost,127.0.0.1"),
        ] {
            assert_eq!(masker.mask(text), masked);
        }
        assert_eq!(masker.too_short(), ["DATABASE_URL", "DATABASE_URL"]);
    }

    #[test]
    fn the_password_in_a_url_that_the_agent_does_not_get_is_not_masked() {
        let url = "postgres://bob:dev-password-1@db";
        let masker = Masker::of_trial([("DATABASE_URL", url), ("MY_TOKEN", "my-value-123456")], [], &[]);
        assert_eq!(masker.mask("dev-password-1 my-value-123456"), "dev-password-1 [redacted:MY_TOKEN]");
        let masker = Masker::of_trial([], [("DATABASE_URL", url)], &[]);
        assert_eq!(masker.mask("dev-password-1"), "[redacted:DATABASE_URL]");
        // A password that is an ordinary word is masked only beside its user name.
        let masker = Masker::of_trial([], [("DATABASE_URL", "postgres://app:password@localhost")], &[]);
        assert_eq!(masker.mask("password app:password@"), "password [redacted:DATABASE_URL]@");
    }

    #[test]
    fn a_value_of_several_lines_is_masked_line_by_line() {
        let masker =
            masker("-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nEFAASCBKcwggSjAgEAAoIBAQDB\n-----END KEY-----");
        assert_eq!(masker.mask("+MIIEvQIBADANBgkqhkiG9w0BAQ\n"), "+[redacted:MY_KEY]\n");
        assert_eq!(masker.mask("-----BEGIN KEY-----"), "-----BEGIN KEY-----");
    }

    #[test]
    fn a_secret_with_terminal_colours_is_masked_and_the_colours_stay() {
        let masker = masker("hunter2-my-secret");
        let line = |escape: &str, one: &str, two: &str| {
            format!(r#"{{"a":"{escape}[31mKEY={one}{escape}[m{escape}[K{two} \\u00e4","b":1.50}}"#)
        };
        for escape in ["\x1b", r"\u001b", r"\\u001b", r"\\\\u001B"] {
            let masked = line(escape, "[redacted:MY_KEY]", "");
            assert_eq!(masker.mask(&line(escape, "hunter2", "-my-secret")), masked);
            assert_eq!(masker.mask(&line(escape, "", "hunter2-my-secret")), line(escape, "", "[redacted:MY_KEY]"));
        }
        // As a program writes them in its source.
        for escape in [r"\033", r"\33", r"\x1b", r"\e", r"\u{1b}"] {
            let source = |one: &str, two: &str| format!("printf 'a{one}{escape}[0m{two}'");
            assert_eq!(masker.mask(&source("hunter2", "-my-secret")), source("[redacted:MY_KEY]", ""));
        }
        // Base64, and a link.
        let encoded = STANDARD.encode("hunter2-my-secret");
        let coloured = format!("\x1b[32m{}\x1b[0m{}", &encoded[..9], &encoded[9..]);
        assert!(masker.finds(&coloured), "{coloured}");
        assert_eq!(masker.mask("hunter2\x1b]8;;http://h\x07-my-secret"), "[redacted:MY_KEY]\x1b]8;;http://h\x07");
        assert!(matches!(masker.mask("\x1b[31mhunter2\x1b[m\x1b[K my-secret"), Cow::Borrowed(_)));
    }

    #[test]
    fn short_values_are_left_and_named() {
        let masker = masker("short");
        assert_eq!(masker.mask("a short text"), "a short text");
        assert_eq!(masker.too_short(), ["MY_KEY"]);
    }

    #[test]
    fn however_json_spells_a_secret_it_is_masked_and_the_rest_stays() {
        let masker = masker("hunter2&<p\u{e4}ss/\"w\u{1f600}>");
        let mark = "[redacted:MY_KEY]";
        for spelled in [
            r#"hunter2\u0026\u003cp\u00e4ss/\"w\ud83d\ude00\u003E"#,
            r#"hunter2&<p\u00E4ss\/\"w\uD83D\uDE00>"#,
            r#"\u0068unter2&<p\u00e4ss\/\u0022w\ud83d\ude00>"#,
        ] {
            let line = |text: &str| format!(r#"{{"a": "\u0026 \/ {text}\u0026", "b" :"\u00e4{text}", "c": 1.50}}"#);
            assert_eq!(masker.mask(&line(spelled)), line(mark));
            // JSON inside a JSON string, written with the same escapes or with others.
            let within = escaped(&line(spelled));
            assert_eq!(masker.mask(&within), escaped(&line(mark)));
            let within = within.replace('/', "\\/").replace('&', "\\u0026");
            assert_eq!(masker.mask(&within).matches(mark).count(), 2);
            assert!(masker.finds(&within));
        }
        let clean = r#"{"a": "\u0026 \/ C:\\users \ud800"}"#;
        assert!(matches!(masker.mask(clean), Cow::Borrowed(_)));
    }

    proptest! {
        /// A secret is masked in raw, escaped and encoded form, with any text around it.
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
            let percent = |keep: fn(u8) -> bool| -> String {
                text.bytes().map(|b| if keep(b) { char::from(b).to_string() } else { format!("%{b:02x}") }).collect()
            };
            for encoded in [percent(|_| false), percent(|b| b.is_ascii_alphanumeric()), percent(|b| b != b'%' && b != b' ')] {
                let masked = masker.mask(&encoded);
                prop_assert!(masked.contains("[redacted:MY_KEY]"), "{encoded} {masked}");
            }
        }

        /// Base64 that is broken into lines, at any width.
        #[test]
        fn a_secret_is_masked_in_wrapped_base64(secret in "[ -~]{20,90}", before in "[ -~]{0,99}", width in 1..80usize) {
            let masker = masker(&secret);
            let encoded = STANDARD.encode(format!("{before}{secret} and more after it"));
            for end in ["\n", "\r\n", "\\n", "\n+", "\n    "] {
                let lines: Vec<&str> = encoded.as_bytes().chunks(width).map(|c| std::str::from_utf8(c).unwrap()).collect();
                let masked = masker.mask(&lines.join(end)).into_owned();
                prop_assert!(masked.contains("[redacted:MY_KEY]"), "{}", lines.join(end));
            }
        }
    }
}
