//! Finds the values of fields whose names say that they are secret, in JSON, YAML, headers, queries and code:
//! `"api_key": "…"`, `password: …`, `x-api-key: …`. A value must look like a secret, because prose and code name such
//! fields, too.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::marked::Secret;
use super::ordinary::{
    is_call, is_file, is_number, is_of_password, is_path_of_names, is_reference, is_scope, is_symbol, is_variable,
    repeats_name, without_code,
};
use super::tokens::is_words;

/// The name of a field, up to the value. In a text within JSON the quotes are escaped.
const NAME: &str = r"[A-Za-z0-9_.-]*(?:api[_-]?key|secret|token|password|passwd|passphrase|credential|(?:private|access|shared)[_-]?key)[A-Za-z0-9_-]*";
/// The texts of which each name of such a field contains at least one, in upper or lower case.
pub(super) const WORDS: [&str; 18] = [
    "access-key",
    "access_key",
    "accesskey",
    "api-key",
    "api_key",
    "apikey",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "private-key",
    "private_key",
    "privatekey",
    "secret",
    "shared-key",
    "shared_key",
    "sharedkey",
    "token",
];
/// Ends of names whose values are not the secret itself.
const ABOUT: [&str; 39] = [
    "address",
    "algorithm",
    "arn",
    "audience",
    "bucket",
    "budget",
    "count",
    "dir",
    "domain",
    "endpoint",
    "env",
    "expires",
    "expiry",
    "file",
    "hash",
    "host",
    "issuer",
    "length",
    "limit",
    "method",
    "mode",
    "name",
    "namespace",
    "path",
    "pattern",
    "policy",
    "prefix",
    "provider",
    "regex",
    "region",
    "role",
    "scope",
    "table",
    "ttl",
    "type",
    "uri",
    "url",
    "usage",
    "var",
];
/// Words that contain a word for a secret and mean something else.
const OTHER_WORDS: [&str; 4] = ["secretary", "secretaries", "secretariat", "passwordless"];
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
    // A `$` before a parenthesis, and a backtick, begin a command.
    let value = r#"(?:[^"'\\\s`$]|\$+[^"'\\\s`$(])+"#;
    let form = format!(r#"(?i)\\*["'](?<name>{NAME})\\*["']\s*(?<separator>:|=>?|,)\s*\\*["'](?<value>{value})"#);
    Regex::new(&form).unwrap()
});
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    let first = r#"(?:[^\s"'\\,;&|(){}\[\]<>`$]|\$+[^\s"'\\,;&|(){}\[\]<>`$])"#;
    // A value that ends with its quote may contain brackets.
    let closed = format!(r#"{first}(?:[^\s"'\\,;&|<>`$]|\$+[^\s"'\\,;&|<>`$(])*"#);
    // `key: string = "…"` has the type between the name and the value.
    let before = r":\s*&?(?:'static )?[a-z]+(?:<[a-z]+>|\[[a-z]*\])?[ \t]+=[ \t]+|:=\s*|:\s*|=\s*";
    let value = format!(r#"\\*["'](?<closed>{closed})\\*["']|(?<quote>\\*["'])?(?<value>{first}+)"#);
    let form = format!(r"(?i)(?<name>{NAME})\s*(?:{before})(?:{value})");
    Regex::new(&form).unwrap()
});
/// A name whose value is a place in a list: `page_token`, `nextPageToken`, but not `homepage_token`.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    let separate = "(?:^|[^A-Za-z])(?i:(?:next)?page|next|continuation)[_-]?(?i:token)";
    Regex::new(&format!("{separate}|[a-z](?:Page|Next|Continuation)[_-]?Token")).unwrap()
});
/// A name in code: words with a capital letter after a digit (`Uint8Array`, `OAuth2Credentials`), words joined to each other
/// (`KeyOfUser`, `UserServiceV2`), or a name that itself says what it is (`token2`).
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static IN_CODE: LazyLock<Regex> = LazyLock::new(|| {
    let kind = "[A-Za-z]+[0-9]{1,5}(?:[A-Z][a-z]{2,})+";
    let words = "[A-Z]?[a-z]{2,}(?:(?:[_-][A-Z]?|[A-Z])[a-z]{2,})+(?:[Vv]?[0-9]{1,2})?";
    let own = "[A-Za-z_]*(?:[Kk]ey|[Tt]oken|[Ss]ecret|[Cc]redentials?)_?v?[0-9]{1,2}";
    Regex::new(&format!("^(?:{kind}|{words}|{own})$")).unwrap()
});
/// A figure or an identifier that is public: a version, a date, a duration, a colour, the address of a host, the name of a
/// header (`x-api-key`), a part of a word in the vocabulary of a model (`##ing1`).
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static PUBLIC: LazyLock<Regex> = LazyLock::new(|| {
    let version = r"[v^~>=]*[0-9]{1,4}\.[0-9]{1,6}(?:\.[0-9]{1,6})?(?:[-+.][a-z]{1,6}\.?[0-9]{0,4})?";
    let date = "[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:.]+(?:Z|[+-][0-9:]{4,6})?)?";
    let quantity = "[0-9]+(?:px|kb|mb|gb|bytes|bits?)";
    let duration = "(?:[0-9]{1,9}(?:ms|s|secs?|seconds|m|mins?|minutes|h|hours?|d|days?)){1,4}";
    let host = r"(?:[a-z0-9-]{1,63}\.)+(?:com|net|org|io|dev|app|cloud|local|internal|test)";
    let others = r"#[0-9A-Fa-f]{3,8}|[xX](?:-[A-Za-z]{2,14})+|(?:##|[Ġ▁])\w{1,20}";
    Regex::new(&format!("^(?:{version}|{date}|{quantity}|{duration}|{host}|{others})$")).unwrap()
});

/// Returns the values of secret fields whose name is quoted. In a list of quoted names, the next name is no value.
pub(super) fn quoted(text: &str) -> Vec<Secret> {
    secrets(text, &QUOTED, |found| found.name("separator").is_none_or(|separator| separator.as_str() != ","))
}

/// Returns the values of secret fields whose name is not quoted.
pub(super) fn bare(text: &str) -> Vec<Secret> {
    secrets(text, &BARE, |found| found.name("quote").is_some() || found.name("closed").is_some())
}

fn secrets(text: &str, form: &Regex, is_quoted: fn(&Captures<'_>) -> bool) -> Vec<Secret> {
    let one = |found: Captures<'_>| {
        let name = found.name("name")?;
        let closed = found.name("closed").map(|it| (it.start(), without_code(name.as_str(), it.as_str())));
        let (start, value) = closed.or_else(|| found.name("value").map(|it| (it.start(), it.as_str())))?;
        let end = start + value.len();
        // The first letter may be that of an escape in JSON, and no part of the name.
        let is_escaped = text[..name.start()].ends_with('\\');
        let name = name.as_str();
        let own_name = name.strip_prefix(['n', 'r', 't']).filter(|_| is_escaped).unwrap_or(name);
        // A quoted name has a quoted value.
        let is_bare = ["quote", "closed", "separator"].iter().all(|group| found.name(group).is_none());
        let is_secret = is_name(name)
            && is_name(own_name)
            && is_secret(name, value, is_quoted(&found))
            && !(is_bare && (is_call(name, value, &text[end..]) || is_variable(name, value, &text[end..])));
        is_secret.then_some((start..end, "secret-field"))
    };
    form.captures_iter(text).filter_map(one).collect()
}

/// Returns true if a field with this name holds a secret: `token`, but neither `max_tokens` nor `token_type`.
pub(super) fn is_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    let is_figure = lower.contains("tokens") || lower.contains("tokeniz");
    !is_figure && !PLACE.is_match(name) && !is_about(&lower) && !is_other_word(&lower)
}

/// Returns true if a word for something else is all that makes a name look like that of a secret: `secretary`, but not
/// `secretary_password`.
fn is_other_word(lower: &str) -> bool {
    let rest = OTHER_WORDS.iter().fold(lower.to_owned(), |name, word| name.replace(word, ""));
    rest != lower && !WORDS.iter().any(|word| rest.contains(word))
}

/// Returns true if the value of a field with this name is not the secret itself.
pub(super) fn is_about(name: &str) -> bool {
    let name = name.to_lowercase();
    ABOUT.iter().any(|end| name.ends_with(end))
}

/// Returns true if a value without quotes is a name in code, or words that are joined. A password may look like one, and is
/// in code only if it is a path of names that leads to a secret.
pub(super) fn is_in_code(name: &str, value: &str) -> bool {
    if is_of_password(name) {
        return is_reference(value);
    }
    IN_CODE.is_match(value) || is_words(value) || is_path_of_names(value)
}

/// Returns true if a value is a figure or an identifier that is public. A password may look like one.
pub(super) fn is_public(name: &str, value: &str) -> bool {
    !is_of_password(name) && (PUBLIC.is_match(value) || is_address(name, value))
}

/// Returns true if a value is an address of a blockchain. A key may have the same form.
fn is_address(name: &str, value: &str) -> bool {
    let name = name.to_lowercase();
    let is_of_key = ["key", "secret", "credential"].iter().any(|part| name.contains(part));
    let digits = value.strip_prefix("0x").unwrap_or_default();
    !is_of_key && digits.len() == 40 && digits.chars().all(|c| c.is_ascii_hexdigit())
}

/// Returns true if a value names the place of a secret, or is a stand-in.
pub(super) fn is_elsewhere(value: &str) -> bool {
    let lower = value.to_lowercase();
    ELSEWHERE.iter().any(|start| lower.starts_with(start))
}

/// Returns true if a value looks like a path. Base64 may also begin with a slash.
pub(super) fn is_path(value: &str) -> bool {
    value.starts_with('/') && !value.contains(|c: char| c.is_ascii_uppercase() || "+=".contains(c))
}

/// Returns true if a value looks like a secret: not like a word, a number, a name in code, or a path.
pub(super) fn is_secret(name: &str, value: &str, is_quoted: bool) -> bool {
    if value.chars().count() < 6 || is_elsewhere(value) || is_public(name, value) || repeats_name(name, value) {
        return false;
    }
    if is_scope(name, value) {
        return false;
    }
    if !is_quoted && (is_in_code(name, value) || is_symbol(value) || is_number(value) || is_file(name, value)) {
        return false;
    }
    let lower = value.to_lowercase();
    let is = |test: fn(&char) -> bool| value.chars().any(|c| test(&c));
    let (digit, letter) = (is(char::is_ascii_digit), is(char::is_ascii_alphabetic));
    let (upper, lower_case) = (is(char::is_ascii_uppercase), is(char::is_ascii_lowercase));
    let size = lower.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let is_type = ["int", "uint", "float"].iter().any(|kind| lower.strip_prefix(kind) == Some(size));
    if is_path(value) || (is_type && size.len() <= 3) {
        return false;
    }
    let name = name.to_lowercase();
    let is_password = name.contains("passw") || name.contains("passphrase");
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
    use crate::secrets::marked::Marked;

    fn mask(text: &str) -> String {
        let mut marked = Marked::new(text);
        for find in [quoted, bare] {
            let found = find(marked.text());
            marked.add(found);
        }
        marked.text().to_owned()
    }

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
            (r#"apiKey := "Zq8RtY2wPm5LxK""#, r#"apiKey := "[redacted:secret-field]""#),
            (r#"apiKey: string = "Zq8RtY2wPm5LxK";"#, r#"apiKey: string = "[redacted:secret-field]";"#),
            (r#"api_key: Optional[str] = 'Zq8RtY2w'"#, r#"api_key: Optional[str] = '[redacted:secret-field]'"#),
            ("password: Summer2024Sunshine", "password: [redacted:secret-field]"),
            (r#""token_secret": "a1b2c3d4""#, r#""token_secret": "[redacted:secret-field]""#),
            // Commands in a shell are no part of a value.
            (r#"TOKEN="Zq8RtY2wPm5$(rm -rf x)" ./deploy"#, r#"TOKEN="[redacted:secret-field]$(rm -rf x)" ./deploy"#),
            ("token=Zq8RtY2wPm5$(reboot)", "token=[redacted:secret-field]$(reboot)"),
            (r#""{'token':'abc1$(reboot)'}""#, r#""{'token':'abc1$(reboot)'}""#),
            (r#""{'token':'abc123$$(reboot)'}""#, r#""{'token':'[redacted:secret-field]$$(reboot)'}""#),
            (r#"{"password": "pa$$w0rd`x"}"#, r#"{"password": "[redacted:secret-field]`x"}"#),
            // A parenthesis in a password or a token begins no arguments.
            (r#"password="G7h2Kp(Lm9qR4)""#, r#"password="[redacted:secret-field]""#),
            ("password='Summer2024(x)'", "password='[redacted:secret-field]'"),
            (r#"password: "Zq8(RtY2wPm5)", b"#, r#"password: "[redacted:secret-field]", b"#),
            (r#"password = "Zq8{RtY2wPm5}""#, r#"password = "[redacted:secret-field]""#),
            (r#"{\"c\":\"password='Zq[8RtY2wPm5'\"}"#, r#"{\"c\":\"password='[redacted:secret-field]'\"}"#),
            (r#"token="getToken2(x)""#, r#"token="[redacted:secret-field](x)""#),
            (r#"password="Zq8(R$(rm -rf x)""#, r#"password="Zq8(R$(rm -rf x)""#),
            ("token: PBpToFW6Hv.WDzwvZ9vRiFF.IZUeTN6c", "token: [redacted:secret-field]"),
            (
                r#"private_key: "0x8de71159b42b4ea410fb9102f29a422eb14ab2f2""#,
                r#"private_key: "[redacted:secret-field]""#,
            ),
            ("password: Summer2024(x)", "password: [redacted:secret-field](x)"),
            ("token=G7h2Kp9Lm(Q4)", "token=[redacted:secret-field](Q4)"),
            ("homepage_token=q7Xm2LpR9vKd4TzW8bNc", "homepage_token=[redacted:secret-field]"),
            ("secretary_password: hunter2", "secretary_password: [redacted:secret-field]"),
            ("password: correct/h0rse.png", "password: [redacted:secret-field]"),
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
            "secretKey: Uint8Array, private_key: Ed25519PrivateKey, token: ERC721Token",
            "def f(credentials: OAuth2Credentials) -> None:",
            "secret = base64.b64decode(s); token = sha256(x); secret = hash2.Digest::new_v2(a1)",
            "token = request2.headers.token1; secret: secret_v2, apiKey: apiKey2",
            "secretProvider: KubernetesSecretsManagerCredentialProvider",
            "tokenAddress: 0x5FbDB2315678afecb367f032d93F642f64180aa3",
            r#"{"token": "0x5FbDB2315678afecb367f032d93F642f64180aa3", "csrf-token-lib": "1.2.3-rc1"}"#,
            r#"nextPageToken: "CAoQAA1x", "next_token": "a1b2c3d4e5f6", r.NEXTPAGETOKEN=a1b2c3d4, pageToken=a1b2c3d4"#,
            r#"{"t":"a\npage_token=a1b2c3d4\nnext_token: a1b2c3d4"}"#,
            "pub const STATUS_WRONG_PASSWORD_CORE: NTSTATUS = 0xC0000149_u32 as _;",
            "pub const SUBSINFO_NEEDPASSWORD: SUBSCRIPTIONINFOFLAGS = 16384i32;",
            r#"GEN_AI_SERVER_TIME_TO_FIRST_TOKEN: Final = "gen_ai.server.time_to_first_token""#,
            "password = sha256(x), db_password: base64.b64decode(x)",
            "secret: secrets/3f2a9c/db1.json, tokenService: TokenServiceV2",
            r#"["thinking-token-count-2026-05-13","advanced-tool-use-2025-11-20"]"#,
            r#"__all__ = ["InvalidTokenError", "MissingRequiredClaimError", "Token", "QuotedString"]"#,
            r##"token = Token.Name.Builtin.SchemeFunction; Token: "#d8dee9"; private_key: ed25519.Ed25519PrivateKey"##,
            r#"token_re = "tok[a-z0-9]+", token="min(a1)", password="{{ db.pw1 }}", token = "t1{name}""#,
            r#"{"secretary": "Mary-Ann2", "passwordless": "magic-link2"}, secretary: jane_smith1, passwordlessMode=link_v2x"#,
            "secret_rotation: 2024-01-01T00:00:00Z, token_ttl = 86400s, token-lib: ^1.20.3",
        ] {
            assert_eq!(mask(text), text);
        }
    }
}
