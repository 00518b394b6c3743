//! Masks secrets by their form: keys and tokens of known services, private keys, and values of fields with secret names.
//! For text from another machine, whose secrets are not in this program's environment.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::fields;

/// The beginning of a form: the beginning of a word, or an escape of JSON, whose last character looks like one of the word.
const BEGIN: &str = r"(?<escape>\b|\\[bfnrt]|\\u[0-9A-Fa-f]{4})";

/// The forms of secrets, with the names that take their place. A leading `\b` is [`BEGIN`], and the group `kept` stays.
const FORMS: [(&str, &str); 23] = [
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}"),
    ("github-token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("slack-token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("aws-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("google-key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("hf-token", r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("stripe-key", r"\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,})"),
    ("pypi-token", r"\bpypi-AgE[A-Za-z0-9_-]{16,}"),
    ("sendgrid-key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("azure-key", r"\b(?<kept>(?i:(?:Account|SharedAccess)Key=))[A-Za-z0-9+/]{16,}={0,2}"),
    ("telegram-token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("age-key", r"\bAGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    ("doppler-token", r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,}"),
    (
        "service-token",
        r"\b(?:xapp-[A-Za-z0-9-]{20,}|dop_v1_[a-f0-9]{40,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|hvs\.[A-Za-z0-9_-]{24,}|dapi[a-f0-9]{32}|glsa_[A-Za-z0-9_]{32,}|gsk_[A-Za-z0-9]{40,}|r8_[A-Za-z0-9]{32,}|lin_api_[A-Za-z0-9]{32,})",
    ),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    ("private-key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-\x22]{16,}-----END [A-Z ]*PRIVATE KEY-----"),
    ("password-in-url", r"\b(?<kept>[a-z][a-z0-9+.-]*://[^\s/:@\x22\x27,;{}\\]{0,64}):[^\s/\[\x22\x27,;{}\\]+@"),
    (
        "authorization",
        r"\b(?<kept>(?i:authorization\\?[\x22\x27]?\s*[:=,]\s*\\?[\x22\x27]?(?:basic|bearer|token|digest)\s+))[A-Za-z0-9+/=._~-]{4,}",
    ),
    (
        "password-in-command",
        r"([\s\x22\x27]|\\[nt])(-u|--user|--proxy-user)(=|\s*)(?:(\\?\x22)([^\s\x22\x27:\\$]+):[^\x22\\]+|(\x27)([^\s\x22\x27:\\$]+):[^\x27\x22\\]+|([^\s\x22\x27:\\$]+):[^\s\x22\x27\\]+)",
    ),
    (
        "secret-variable",
        r"\b(?<kept>[A-Z][A-Z0-9_]*(?:PASSWORD|PASSWD|SECRET|TOKEN|API_KEY|ACCESS_KEY)[A-Z0-9_]*=\\?[\x22\x27]?)[^\s\x22\x27\\$;&|()\[\]{}<>]{6,}",
    ),
];

#[expect(clippy::unwrap_used, reason = "the patterns are constants, and tests compile each of them")]
static COMPILED: LazyLock<Vec<(&'static str, Regex)>> =
    LazyLock::new(|| FORMS.iter().map(|(name, form)| (*name, Regex::new(&begun(form)).unwrap())).collect());

/// Returns a form with [`BEGIN`] in the place of its leading `\b`.
fn begun(form: &str) -> String {
    form.strip_prefix(r"\b").map_or_else(|| form.to_owned(), |rest| format!("{BEGIN}{rest}"))
}

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
                if is_key { format!("{}[redacted:openai-key]", &found["escape"]) } else { found[0].to_owned() }
            });
            masked = Cow::Owned(replaced.into_owned());
            continue;
        }
        if *name == "password-in-command" {
            let is_curl = masked.contains("curl");
            let replaced = form.replace_all(&masked, |found: &Captures<'_>| in_command(found, is_curl));
            masked = Cow::Owned(replaced.into_owned());
            continue;
        }
        if *name == "secret-variable" {
            let replaced = form.replace_all(&masked, |found: &Captures<'_>| {
                let kept = format!("{}{}", &found["escape"], &found["kept"]);
                let value = found[0].get(kept.len()..).unwrap_or_default();
                let is_number = value.chars().all(|c| c.is_ascii_digit());
                if is_number { found[0].to_owned() } else { format!("{kept}[redacted:secret-variable]") }
            });
            masked = Cow::Owned(replaced.into_owned());
            continue;
        }
        let mark = match *name {
            "password-in-url" => format!("${{escape}}${{kept}}:[redacted:{name}]@"),
            "authorization" | "azure-key" => format!("${{escape}}${{kept}}[redacted:{name}]"),
            _ => format!("${{escape}}[redacted:{name}]"),
        };
        masked = Cow::Owned(form.replace_all(&masked, mark.as_str()).into_owned());
    }
    match fields::mask(&masked) {
        Cow::Owned(text) => Cow::Owned(text),
        Cow::Borrowed(_) => masked,
    }
}

/// Masks the password of an option that names a user and a password. `-u` has this meaning for curl only, and numbers
/// are ids of a user and a group.
fn in_command(found: &Captures<'_>, is_curl: bool) -> String {
    let part = |number: usize| found.get(number).map(|it| it.as_str()).unwrap_or_default();
    let (option, between) = (part(2), part(3));
    let (quote, user) = [(4, 5), (6, 7), (9, 8)]
        .into_iter()
        .find_map(|(quote, user)| Some((part(quote), found.get(user)?.as_str())))
        .unwrap_or_default();
    let begin = part(1).len() + option.len() + between.len() + quote.len() + user.len() + 1;
    let password = found[0].get(begin..).unwrap_or_default();
    let is_id = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let is_joined = between.is_empty() && option != "-u";
    if (option == "-u" && !is_curl) || is_joined || (is_id(user) && is_id(password)) || password.starts_with(['$', '['])
    {
        return found[0].to_owned();
    }
    format!("{}{option}{between}{quote}{user}:[redacted:password-in-command]", part(1))
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
            ("use sk_live_4eC39HqLyjWDarjtT1zdp7dc", "use [redacted:stripe-key]"),
            ("rk_live_4eC39HqLyjWDarjtT1zdp7dc", "[redacted:stripe-key]"),
            ("pypi-AgEIcHlwaS5vcmcCJabcdefghij", "[redacted:pypi-token]"),
            ("SG.abcdefghijklmnopqrstuv.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG", "[redacted:sendgrid-key]"),
            (
                "AccountName=a;AccountKey=abcdefghijklmnopqrstuvwxyz0123456789==;",
                "AccountName=a;AccountKey=[redacted:azure-key];",
            ),
            ("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "[redacted:telegram-token]"),
            ("AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQQ", "[redacted:age-key]"),
            ("dp.pt.abcdefghijklmnopqrstuvwxyz0123456789ABCDEF", "[redacted:doppler-token]"),
            (r#"{"api_key": "zzTopSecretValue12345"}"#, r#"{"api_key": "[redacted:secret-field]"}"#),
            ("MY_TOKEN=sk-ant-api03-abcdefghijklmnop_1", "MY_TOKEN=[redacted:anthropic-key]"),
            (
                r"-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0B\n-----END RSA PRIVATE KEY-----",
                "[redacted:private-key]",
            ),
            ("postgres://ada:hunter22@db/x", "postgres://ada:[redacted:password-in-url]@db/x"),
            ("https://ada:p@ss:w@host/x", "https://ada:[redacted:password-in-url]@host/x"),
            ("redis://:pw@host", "redis://:[redacted:password-in-url]@host"),
            ("curl -u ada:pw http://x", "curl -u ada:[redacted:password-in-command] http://x"),
            ("curl -uada:pw http://x", "curl -uada:[redacted:password-in-command] http://x"),
            ("curl --user 'ada:p w' x", "curl --user 'ada:[redacted:password-in-command]' x"),
            (r#"{"c":"curl --user \"ada:p w\" x"}"#, r#"{"c":"curl --user \"ada:[redacted:password-in-command]\" x"}"#),
            ("http --user=ada:pw x", "http --user=ada:[redacted:password-in-command] x"),
            ("docker run --user 1000:1000 x", "docker run --user 1000:1000 x"),
            ("git push -u origin main:main", "git push -u origin main:main"),
            ("curl -u $USER:$PASS x", "curl -u $USER:$PASS x"),
            ("-H 'Authorization: Basic YWRhOnB3'", "-H 'Authorization: Basic [redacted:authorization]'"),
            (
                r#"{\"Authorization\": \"Bearer abcdef\"}"#,
                r#"{\"Authorization\": \"Bearer [redacted:authorization]\"}"#,
            ),
            ("Authorization: Bearer $TOKEN", "Authorization: Bearer $TOKEN"),
            ("MY_API_KEY=abcdef1 run", "MY_API_KEY=[redacted:secret-variable] run"),
            ("MAX_TOKENS=4096000 run", "MAX_TOKENS=4096000 run"),
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

    #[test]
    fn a_secret_behind_an_escape_of_json_is_masked() {
        for (secret, name) in [
            ("ghp_abcdefghijklmnopqrstuvwxyz012345", "github-token"),
            ("AKIAABCDEFGHIJKLMNOP", "aws-key"),
            ("sk-ant-api03-abcdefghijklmnop_1", "anthropic-key"),
            ("sk-proj-abcdefghijklmnopqrst1", "openai-key"),
            ("123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw", "telegram-token"),
        ] {
            for escape in [r"\n", r"\t", r"\r", r"\\n", r"\u000a", "\n", r"\u0022"] {
                let text = format!(r#"{{"text":"the token is{escape}{secret}"}}"#);
                let masked = format!(r#"{{"text":"the token is{escape}[redacted:{name}]"}}"#);
                assert_eq!(mask(&text), masked);
            }
        }
        let variable = |value: &str| format!(r#"{{"t":"a\nMY_API_KEY={value} run"}}"#);
        assert_eq!(mask(&variable("abcdef1")), variable("[redacted:secret-variable]"));
        let url = |password: &str| format!(r#"{{"t":"a\npostgres://ada:{password}@db"}}"#);
        assert_eq!(mask(&url("hunter22")), url("[redacted:password-in-url]"));
        let header = |token: &str| format!(r#"{{"t":"a\nAuthorization: Bearer {token}"}}"#);
        assert_eq!(mask(&header("abcdef")), header("[redacted:authorization]"));
    }
}
