//! Masks secrets by their form: keys and tokens of known services, private keys, passwords in commands, and values of fields
//! with secret names. For text from another machine, whose secrets are not in this program's environment.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::{Captures, Regex, escape};

use super::marked::{Marked, Secret};
use super::terminal::{self, COLOUR};
use super::tokens::{self, TOKENS, is_words};
use super::{fields, looks_secret, ordinary, url_password};

/// The place where a secret may begin: the start of a word, or the end of an escape of JSON, of a URL or of a terminal, whose
/// last character looks like a part of the word. Words consist of ASCII characters, because a token may follow a word of
/// another script without a blank.
const BEGIN: &str = r"(?<escape>(?-u:\b)|\\[bfnrt]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|@COLOUR)";

/// Named parts of the patterns: a pattern contains the name in the place of the part. In a text within JSON, quotes and line
/// ends are escaped. A secret ends before the beginning of a command in a shell (`$(…)`, a backtick).
const PARTS: [(&str, &str); 13] = [
    ("@COLOUR", COLOUR),
    // A value in a command. A quote that ends a string of JSON begins none.
    (
        "@VALUE",
        r"(?:\\*\x22(?<double>(?:[^\x22\\\s,:\]}`$]|\$+[^\x22\\\s`$(])@IN_DOUBLE*)|\\*\x27(?<single>(?:[^\x27\\\s,:\]}`$]|\$+[^\x27\\\s`$(])@IN_SINGLE*)|(?<value>@WORD+))",
    ),
    ("@IN_DOUBLE", r"(?:[^\x22\\`$]|\$+[^\x22\\`$(])"),
    ("@IN_SINGLE", r"(?:[^\x27\\`$]|\$+[^\x27\\`$(])"),
    // A word with parentheses, which in a shell would be an error, and begin no command.
    ("@WITH_PARENTHESES", r"(?:@WORD|\(@WORD*\)?)+"),
    ("@WORD", r"(?:[^\s\x22\x27\\;&|()<>`$]|\$+[^\s\x22\x27\\;&|()<>`$])"),
    // The text between two parts of a key: line ends, signs of a patch, the numbers of lines. No end of a command.
    (
        "@GAP",
        r"(?:(?:[^A-Za-z0-9\x22\\;&|()<>`$]|\\+[nrt]?)+(?:[0-9]{1,6}(?:[^A-Za-z0-9\x22\\;&|()<>`$]|\\+[nrt]?)+)?)",
    ),
    ("@AUTHORIZATION", r"(?i:authorization\\*[\x22\x27]?\s*[:=,]\s*\\*[\x22\x27]?)"),
    ("@PAIR", r"[A-Za-z0-9!#%&*+.^_|~-]+=[^\s\x22\x27\\;,<>{}$`()\[]*"),
    ("@SLASH", r"\\*/"),
    ("@SPACE", r"(?:\s|\\+[nrt])+"),
    // A blank, a line that continues, or the end of an argument in a list of arguments.
    ("@BLANK", r"(?:(?:\s|\\\n|\\{3}n|\\{6}n)+|\\*[\x22\x27]\s*,?\s*\\*[\x22\x27])"),
    // The arguments before an option: no end of a command, and no name of a field.
    ("@ARGUMENTS", r"(?:[^;&|\n\\:]|:[^\s\x22\x27\\;&|]|\\+[\x22\x27]|\\\n|\\{3}n|\\{6}n)*?"),
];
/// The programs that take a user and a group with `--user`. Others take a user and a password.
const OF_GROUPS: [&str; 14] = [
    "docker",
    "podman",
    "nerdctl",
    "docker-compose",
    "buildah",
    "kubectl",
    "install",
    "chown",
    "runuser",
    "setpriv",
    "sudo",
    "rsync",
    "systemd-run",
    "gosu",
];
/// The bytes before an option in which its command is searched for.
const MAX_COMMAND: usize = 4096;
/// The names in a `Set-Cookie` header that are not names of cookies.
const COOKIE_ATTRIBUTES: [&str; 9] =
    ["path", "domain", "expires", "max-age", "samesite", "secure", "httponly", "partitioned", "priority"];
/// The groups of a pattern that are the secret.
const VALUES: [&str; 5] = ["value", "double", "single", "quoted", "closed"];
/// The schemes of an `Authorization` header after which every value is a secret.
const SCHEMES: [&str; 3] = ["basic", "bearer", "token"];
/// The parts of names of variables whose values are masked also if they may be words.
const VARIABLES: [&str; 6] = ["PASSWORD", "PASSWD", "SECRET", "TOKEN", "API_KEY", "ACCESS_KEY"];
/// The words in names of variables that name a key which is no secret.
const OTHER_KEYS: [&str; 7] = ["CACHE", "FOREIGN", "GPG", "PARTITION", "PRIMARY", "PUBLIC", "SORT"];

/// A cookie in a map in code.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static COOKIE_IN_MAP: LazyLock<Regex> = LazyLock::new(|| {
    let name = r"(?<name>[A-Za-z0-9_.-]+)\\*[\x22\x27]?";
    let value = r"\\*[\x22\x27](?<value>[^\s\x22\x27\\`$]+)";
    Regex::new(&format!(r"{name}\s*:\s*{value}")).unwrap()
});

/// A form of secrets.
struct Form {
    /// The name in the mark that takes the place of the secret.
    name: &'static str,
    /// The texts of which a secret of this form, with the text around it, contains at least one, in upper or lower case.
    words: &'static [&'static str],
    /// The pattern. A leading `\b` is [`BEGIN`]. The secret is one of the groups [`VALUES`], or else everything after the
    /// beginning. The groups `cookies` and `cookie_map` hold several secrets, and the group `after_user` begins with a
    /// password.
    pattern: &'static str,
    /// Returns true if a match is a secret.
    is_secret: fn(&Found<'_>) -> bool,
}

/// A match of a form.
struct Found<'t> {
    captures: &'t Captures<'t>,
    /// The text before the match.
    ahead: &'t str,
    /// The part of the match before the secret.
    before: &'t str,
    value: &'t str,
    /// The text after the secret.
    rest: &'t str,
}

impl Found<'_> {
    /// Returns the text of a group, or an empty text if the group is absent.
    fn group(&self, name: &str) -> &str {
        self.captures.name(name).map_or("", |it| it.as_str())
    }
}

const FORMS: &[Form] = &[
    Form { is_secret: is_no_name, ..form("anthropic-key", &["sk-ant-"], r"\bsk-ant-[A-Za-z0-9_-]{16,}") },
    // Words may be joined in the same way as a key, also with numbers.
    Form {
        is_secret: |found| found.value.contains(|c: char| c.is_ascii_digit()) && !tokens::is_short_words(found.value),
        ..form("openai-key", &["sk-"], r"\bsk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_-]{20,}")
    },
    form(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"\b(?:gh[pousr]_(?:[A-Za-z0-9]+_eyJ[A-Za-z0-9_.-]{20,}|[A-Za-z0-9]{20,})|github_pat_[A-Za-z0-9_]{20,})",
    ),
    form(
        "gitlab-token",
        &[
            "glagent-",
            "glcbt-",
            "gldt-",
            "glffct-",
            "glft-",
            "glimt-",
            "gloas-",
            "glpat-",
            "glptt-",
            "glrt-",
            "glrtr-",
            "glsoat-",
            "glwt-",
            "GR1348941",
        ],
        r"\b(?:gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|rtr|soat|wt)-|GR1348941)[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7,9})?",
    ),
    Form { is_secret: is_no_name, ..form("slack-token", &["xox"], r"\bxox[a-z]-[A-Za-z0-9%-]{10,}") },
    form("aws-key", &["AKIA", "ASIA", "ABIA", "ACCA"], r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b"),
    form("google-key", &["AIza"], r"\bAIza[A-Za-z0-9_-]{35}"),
    form("npm-token", &["npm_"], r"\bnpm_[A-Za-z0-9]{36}\b"),
    form("hf-token", &["hf_"], r"\bhf_[A-Za-z0-9]{30,}\b"),
    form(
        "stripe-key",
        &["k_live_", "k_test_", "whsec_"],
        r"\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{16,})",
    ),
    form("pypi-token", &["pypi-AgE"], r"\bpypi-AgE[A-Za-z0-9_-]{16,}"),
    form("sendgrid-key", &["SG."], r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    form(
        "azure-key",
        &["AccountKey=", "SharedAccessKey="],
        r"\b(?i:(?:Account|SharedAccess)Key=)(?<value>[A-Za-z0-9+/]{16,}={0,2})",
    ),
    form("azure-key", &["Q~"], r"\b[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}"),
    form(
        "azure-key",
        &["JQQJ9", "AZDO"],
        r"\b(?:[A-Za-z0-9]{52}JQQJ9[9D][A-Za-z0-9]{20,}={0,2}|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})",
    ),
    form("telegram-token", &[":AA"], r"\b(?:bot)?(?<value>[0-9]{8,10}:AA[A-Za-z0-9_-]{32,})"),
    Form {
        is_secret: is_random,
        ..form("service-token", &["re_"], r"\bre_(?<token>[A-Za-z0-9]{8}_[A-Za-z0-9]{24,})\b")
    },
    form("age-key", &["AGE-SECRET-KEY-1"], r"\bAGE-SECRET-KEY-1[A-Z0-9]{40,}"),
    form(
        "doppler-token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."],
        r"\bdp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,}",
    ),
    form("service-token", &[".atlasv1."], r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    form("service-token", &["NRAL"], r"\b[a-f0-9]{32,36}(?:FFFF)?NRAL\b"),
    form("jwt", &["eyJ"], r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    // The end may be cut off. Then the key is the base64 text after the beginning.
    form(
        "private-key",
        &["PRIVATE KEY"],
        r"-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:@GAP?[A-Z][A-Za-z-]+: [^\n\\\x22\x27;&|`$]{0,80}|@GAP?[A-Za-z0-9+/=]{16,})+(?:@GAP[A-Za-z0-9+/=]{1,63}){0,2}@GAP?-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----|(?:\s|\\+[nr])*[A-Za-z0-9+/=]{32,}(?:(?:\s|\\+[nr])+[A-Za-z0-9+/=]{16,})*)",
    ),
    // Base64 of a private key, as in a `kubeconfig`, also in several lines. The last one ends with hyphens in base64.
    Form {
        is_secret: |found| is_encoded_key(found.value),
        ..form(
            "private-key",
            &["LS0tLS1CRUdJTi"],
            r"\bLS0tLS1CRUdJTi[A-Za-z0-9+/]{32,}={0,2}(?:@SPACE[A-Za-z0-9+/=]{60,})*(?:@SPACE[A-Za-z0-9+/]*(?:LS0t|LS0K|LS0=|LQo=|LQ==|Cg==))?",
        )
    },
    form(
        "webhook-url",
        &["hooks.slack"],
        r"hooks\.slack(?:-gov)?\.com@SLASH(?:services|workflows|triggers)@SLASH(?<value>(?:[A-Za-z0-9_-]+@SLASH){1,4}[A-Za-z0-9_-]{16,})",
    ),
    form(
        "webhook-url",
        &["discord.com", "discordapp.com"],
        r"discord(?:app)?\.com@SLASHapi@SLASH(?:v[0-9]+@SLASH)?webhooks@SLASH[0-9]+@SLASH(?<value>[A-Za-z0-9_-]{30,})",
    ),
    form(
        "webhook-url",
        &["webhook.office.com"],
        r"webhook\.office\.com@SLASHwebhookb2@SLASH(?<value>[A-Za-z0-9@_-]{30,}(?:@SLASH[A-Za-z0-9_-]+){2,4})",
    ),
    form(
        "signature-in-url",
        &["sig=", "sig%3D", "signature=", "signature%3D"],
        r"(?:[?&]|\\u0026|amp;|%26)(?i:sig|signature|x-amz-signature|x-goog-signature)(?:=|%3[dD])(?<value>[A-Za-z0-9%+/_~-]{32,}={0,2})",
    ),
    Form {
        is_secret: |found| has_digit_and_letter(found.value) && !found.value.contains("%40") && !is_words(found.value),
        ..form("token-in-url", &["://"], r"\bhttps?://(?<value>[A-Za-z0-9_.~%+-]{20,})(?::(?:x-oauth-basic)?)?@")
    },
    // A colon before a slash is that of the next URL.
    form(
        "password-in-url",
        &["://"],
        r"://[^\s/:@\[\x22\x27,;{}\\]{0,64}:(?<after_user>(?::*(?:[^\s/:\[\x22{}\\`$]|\$+:*[^\s/:\[\x22{}\\`$(]))+)",
    ),
    Form {
        is_secret: is_of_header,
        ..form(
            "authorization",
            &["authorization"],
            r"\b@AUTHORIZATION(?:(?<scheme>[A-Za-z][A-Za-z0-9-]{1,20})[ \t]+)?(?<value>[A-Za-z0-9+/=._~-]{4,})",
        )
    },
    // The parameter of a scheme that is its proof: Digest, Hawk, AWS.
    Form {
        is_secret: |found| fields::is_secret("signature", found.value, false),
        ..form(
            "authorization",
            &["authorization"],
            r"\b@AUTHORIZATION[A-Za-z][A-Za-z0-9-]{1,20}[ \t]+(?:[^\n\\\x27`]|\\+[\x22/])*?\b(?i:response|signature|mac)=\\*\x22?(?<value>[A-Za-z0-9+/=_%-]{16,})",
        )
    },
    // The user and the password of a registry, in the files of Docker and npm.
    Form {
        is_secret: |found| is_encoded_pair(found.value),
        ..form("registry-auth", &["\"auth"], r"\x22auth\\*\x22\s*:\s*\\*\x22(?<value>[A-Za-z0-9+/]{8,}={0,2})")
    },
    Form {
        is_secret: |found| is_encoded_pair(found.value),
        ..form("registry-auth", &["_auth"], r"\b_auth\s*=\s*\\*\x22?(?<value>[A-Za-z0-9+/]{8,}={0,2})")
    },
    form(
        "cookie",
        &["cookie"],
        r"\b(?<set>(?i:set-))?(?i:cookie)(?:\\*[\x22\x27]?\s*[:=]\s*\\*[\x22\x27]?|\\*[\x22\x27]\s*,\s*(?:\[\s*)?\\*[\x22\x27]|\s+\\*[\x22\x27])(?<cookies>@PAIR(?:;\s*@PAIR)*)",
    ),
    Form {
        is_secret: |found| last_command(found.ahead).contains("curl"),
        ..form(
            "cookie",
            &["curl"],
            r"(?:[\s\x22\x27]|\\[nt])(?:-b@BLANK?|--cookie(?:=|@BLANK))\\*[\x22\x27]?(?<cookies>@PAIR(?:;\s*@PAIR)*)",
        )
    },
    form("cookie", &["cookies"], r"\b(?i:cookies)\\*[\x22\x27]?\s*[:=]\s*\{(?<cookie_map>[^{}]*)"),
    // These options name a user and a password for HTTP clients only, and `-u` for curl only.
    Form {
        is_secret: is_of_user,
        ..form(
            "password-in-command",
            &["-u", "curl"],
            r"(?:[\s\x22\x27]|\\[nt])(?<option>-[aBfgGiIjJkLlnNOpqRsSvZ#0-9]{0,8}u|--user|--proxy-user)(?<between>=|(?:\s|\\\n|\\{3}n|\\{6}n)*|\\*[\x22\x27]\s*,\s*\\*[\x22\x27])(?:\\*\x22(?<user_double>[^\s\x22\x27:\\$]+):(?<double>@IN_DOUBLE+)|\x27(?<user_single>[^\s\x22\x27:\\$]+):(?<single>(?:[^\x27\x22\\`$]|\$+[^\x27\x22\\`$(])+)|(?<user>[^\s\x22\x27:\\$;&|<>()`]+):(?:\\*[\x22\x27](?<quoted>[^\x22\x27\\`$\s,:\]}][^\x22\x27\\`$]*)|(?<value>@WORD+)))",
        )
    },
    in_command(&["sshpass"], r"\bsshpass@BLANK(?:-[vV]@BLANK|-P@BLANK?\S+@BLANK)?-p@BLANK?@VALUE"),
    in_command(
        &["login"],
        r"\b(?:argocd|az|buildah|cf|crane|docker|helm|nerdctl|oc|oras|podman|skopeo)@BLANK(?:[a-z]+@BLANK)?login@ARGUMENTS@BLANK(?:-p(?:=|@BLANK)?|--password(?:=|@BLANK))@VALUE",
    ),
    in_command(
        &["redis-cli", "valkey-cli", "keydb-cli"],
        r"\b(?:redis|valkey|keydb)-cli@ARGUMENTS@BLANK(?:-a|--pass)(?:=|@BLANK)@VALUE",
    ),
    in_command(
        &["mongo"],
        r"\bmongo[a-z]*@ARGUMENTS@BLANK(?:-u|--username)\b@ARGUMENTS@BLANK(?:-p|--password)(?:=|@BLANK)@VALUE",
    ),
    in_command(&["sqlcmd"], r"\bsqlcmd@ARGUMENTS@BLANK-P@BLANK?@VALUE"),
    Form {
        is_secret: is_of_mysql,
        ..in_command(&["mysql", "mariadb"], r"\b(?:mysql|mariadb)(?:-?[a-z]+)?\b@ARGUMENTS@BLANK-p@VALUE")
    },
    // A package is published with `-p` and a password.
    in_command(
        &["twine", "publish"],
        r"\b(?:twine@BLANKupload|(?:poetry|uv)@BLANKpublish)@ARGUMENTS@BLANK-p(?:=|@BLANK)?@VALUE",
    ),
    Form {
        is_secret: |found| is_of_command(found) && !is_lower_case(found.value),
        ..in_command(&["pass:"], r"[\s\x22\x27]-{1,2}pass(?:in|out|word)?@BLANK\\*[\x22\x27]?pass:@VALUE")
    },
    // A password in the input of a command.
    in_command(
        &["-stdin", "sudo", "-with-token", "-passphrase-fd"],
        r"\b(?:echo|printf)@BLANK(?:-[neE]+@BLANK)?(?:\\*[\x22\x27]?%s(?:\\+n)?\\*[\x22\x27]?@BLANK)?@VALUE\\*[\x22\x27]?\s*\|\s*(?:sudo(?:@BLANK-{1,2}[A-Za-z-]+(?:@BLANK[^\s;&|-][^\s;&|]*)?)*?@BLANK(?:-[A-Za-z]*S|--stdin)|[A-Za-z/]@ARGUMENTS@BLANK--(?:(?:password|token|secret)-stdin|with-token|passphrase-fd))",
    ),
    Form {
        is_secret: |found| is_of_command(found) && fields::is_secret("password", found.value, true),
        ..form(
            "password-in-sql",
            &["password", "identified"],
            r"\b(?i:(?:create|alter)\s+(?:user|role|login)\s[^;]{0,200}?\s(?:password|identified\s+(?:with\s+[a-z0-9_]+\s+)?by)(?:\s*=\s*|\s+)|grant\s[^;]{0,200}?\sidentified\s+by\s+|set\s+password(?:\s+for\s+[^\s;=]+)?\s*=\s*(?:password\()?)[NE]?(?:\\*\x27(?<single>@IN_SINGLE+)|\\*\x22(?<double>@IN_DOUBLE+))",
        )
    },
    // A password in a connection string, after another setting.
    Form {
        is_secret: |found| fields::is_secret("password", found.value, false),
        ..form("password-in-connection", &["pwd"], r"=[^;=\n\x22\x27\\$]*;\s*(?i:pwd)\s*=\s*(?<value>@WORD+)")
    },
    // `aws configure set NAME VALUE`, `npm config set NAME VALUE`
    Form {
        is_secret: |found| fields::is_name(found.group("name")) && is_of_field(found),
        ..form(
            "secret-setting",
            &["config"],
            r"\b(?:config|configure)@BLANK(?:-{1,2}[A-Za-z-]+@BLANK)*(?:set@BLANK)?(?:-{1,2}[A-Za-z-]+@BLANK)*\\*[\x22\x27]?(?<name>(?:[A-Za-z0-9/@_][A-Za-z0-9/:@_.-]*)?(?i:token|secret|passw(?:or)?d|passphrase|(?:api|access|auth|private|secret)[_-]?key)[A-Za-z0-9_.-]*)@BLANK@VALUE",
        )
    },
    // `--token VALUE`; fields also has the form with an equals sign.
    Form {
        is_secret: is_of_field,
        ..form(
            "secret-option",
            &["-pass", "-token", "-secret", "-api", "-bearer"],
            r"(?:^|[\s\x22\x27])--(?<name>(?:[A-Za-z0-9]+-)*(?:password|passwd|passphrase|pass|token|secret|api-?key|bearer))[ \t]+@VALUE",
        )
    },
    Form {
        is_secret: |found| fields::is_secret("password", found.value, true),
        ..form(
            "password-in-netrc",
            &["machine", "default"],
            r"\b(?:machine@SPACE[^\s\x22\x27\\]+@SPACE(?:login@SPACE[^\s\x22\x27\\]+@SPACE)?|default@SPACElogin@SPACE[^\s\x22\x27\\]+@SPACE)password@SPACE\\*\x22?(?<value>@WITH_PARENTHESES)",
        )
    },
    // A line of `.pgpass`.
    Form {
        is_secret: |found| fields::is_secret("password", found.value, true),
        ..form(
            "password-in-pgpass",
            &[":543", ":6432:", ":*:"],
            r"(?:^|[\s\x22\x27]|\\[nrt])[A-Za-z0-9.*_-]+:(?:543[0-9]|6432|\*):(?:[A-Za-z_][A-Za-z0-9_-]*|\*):(?:[A-Za-z_][A-Za-z0-9_-]*|\*):(?<value>@WITH_PARENTHESES)",
        )
    },
    Form {
        is_secret: |found| fields::is_secret(found.group("name"), found.value, true),
        ..form(
            "secret-element",
            &["password>", "passwd>", "passphrase>", "secret>", "token>", "key>"],
            r"<(?<name>[A-Za-z0-9_.:-]*(?i:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key))>\s*(?<value>(?:[^\s<>\x22\x27\\`$]|\$+[^\s<>\x22\x27\\`$(])+)\s*</",
        )
    },
    Form {
        is_secret: |found| {
            let (name, value) = (found.group("name"), found.value);
            fields::is_name(name) && !is_words(value) && fields::is_secret(name, value, true)
        },
        ..form(
            "secret-attribute",
            &["value="],
            r"\b(?:key|name)=\\*[\x22\x27](?<name>[A-Za-z0-9_.:-]*(?i:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key))\\*[\x22\x27]\s+value=\\*[\x22\x27](?<value>(?:[^\s<>\x22\x27\\`$]|\$+[^\s<>\x22\x27\\`$(])+)",
        )
    },
    Form {
        is_secret: is_of_variable,
        ..form(
            "secret-variable",
            &[
                "AUTH", "BEARER", "COOKIE", "CRED", "JWT", "KEY", "PASS", "_PAT", "PAT=", "_PW=", "PWD", "SECRET",
                "TOKEN",
            ],
            r"\b(?<name>[A-Z][A-Z0-9_]*)=(?:\\*[\x22\x27](?<closed>[^\s\x22\x27\\$;&|()\[\]{}<>`][^\s\x22\x27\\$;&|<>`]{5,})\\*[\x22\x27]|\\*[\x22\x27]?(?<value>[^\s\x22\x27\\$;&|()\[\]{}<>`]{6,}))",
        )
    },
    // `ENV NAME VALUE` of a Dockerfile, and the commands of fish, csh and Windows.
    Form {
        is_secret: |found| is_of_variable(found) && fields::is_secret(found.group("name"), found.value, true),
        ..form(
            "secret-variable",
            &["ENV ", "set -", "setenv", "setx"],
            r"\b(?:ENV|setenv|setx(?:[ \t]+/[mM])?|set(?:[ \t]+-{1,2}[A-Za-z]+)+)[ \t]+(?<name>[A-Z][A-Z0-9_]*)[ \t]+@VALUE",
        )
    },
];

/// Returns a form whose matches are all secrets.
const fn form(name: &'static str, words: &'static [&'static str], pattern: &'static str) -> Form {
    Form { name, words, pattern, is_secret: is_any }
}

/// Returns the form of a password in the arguments of a command.
const fn in_command(words: &'static [&'static str], pattern: &'static str) -> Form {
    Form { name: "password-in-command", words, pattern, is_secret: is_of_command }
}

fn is_any(_: &Found<'_>) -> bool {
    true
}

/// Returns true if a token has a digit or a capital letter. Names that begin like a token have neither, or consist of words.
fn is_no_name(found: &Found<'_>) -> bool {
    found.value.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase()) && !tokens::is_short_words(found.value)
}

/// Returns true if the value looks like a password: neither an option, a stand-in, the name of the field after the command,
/// nor a word of prose after a blank.
fn is_of_command(found: &Found<'_>) -> bool {
    let after = found.rest.trim_start_matches('\\').strip_prefix('"').map(str::trim_start);
    let is_name = after.is_some_and(|after| after.starts_with(':'));
    let option = found.before.trim_end_matches(['\\', '"', '\'']);
    let is_separate = option.ends_with(|c: char| c.is_whitespace() || c == ',');
    let is_word = is_separate && is_lower_case(found.value);
    !is_name && !is_word && !found.value.starts_with('-') && !is_stand_in(found.value)
}

/// Returns true for a word of letters in lower case, also at the end of a sentence.
fn is_lower_case(value: &str) -> bool {
    let word = value.trim_end_matches(['.', ',', ':']);
    word.chars().all(|c| c.is_alphabetic() && !c.is_uppercase())
}

/// Returns true for a stand-in of a password: a variable, `<password>`, `PASSWORD`, `xxx`, `***`, `...`.
fn is_stand_in(password: &str) -> bool {
    let word = password.trim_end_matches(['.', ',', ':']);
    fields::is_elsewhere(password) || word.chars().all(|c| c.is_ascii_uppercase() || c == '_')
}

/// Returns true for a value of `-p` in a command of MySQL. Without a user and a host, letters may be an option of another
/// program (`find mysql -print`); numbers are ports.
fn is_of_mysql(found: &Found<'_>) -> bool {
    let is_port = found.value.chars().all(|c| c.is_ascii_digit() || ".:".contains(c));
    let is_letters = found.value.chars().all(|c| c.is_ascii_lowercase());
    let is_option = found.value.starts_with("rint") || (is_letters && !is_connection(found.before));
    is_of_command(found) && !is_port && !is_option
}

fn is_connection(arguments: &str) -> bool {
    ["-u", "-h", "--user", "--host"].iter().any(|option| arguments.contains(option))
}

/// Returns true if the password of an option that names a user and a password is a secret. A pair of numbers is the ID of a
/// user and that of a group.
fn is_of_user(found: &Found<'_>) -> bool {
    let (option, password) = (found.group("option"), found.value);
    let user = ["user", "user_double", "user_single"].map(|group| found.group(group)).concat();
    let is_id = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let is_short = !option.starts_with("--");
    let is_joined = found.group("between").is_empty() && !is_short;
    let is_no_secret = is_joined || is_stand_in(password) || (is_id(&user) && is_id(password));
    let command = last_command(found.ahead);
    let has_groups = |word: &str| word.rsplit('/').next().is_some_and(|name| OF_GROUPS.contains(&name));
    let is_of_group = || command.split(|c: char| c.is_whitespace() || "\"'`,[($\\".contains(c)).any(has_groups);
    !is_no_secret && (command.contains("curl") || (!is_short && !is_of_group()))
}

/// Returns the part of a text after the last end of a command. In a text within JSON, line ends are escaped.
fn last_command(text: &str) -> &str {
    let text = &text[text.floor_char_boundary(text.len().saturating_sub(MAX_COMMAND))..];
    let mut starts = text.char_indices().rev().filter_map(|(at, c)| {
        let before = &text[..at];
        let line = match c {
            ';' | '|' | '&' => return Some(at + 1),
            '\n' => before,
            'n' if before.ends_with('\\') => {
                let line = before.trim_end_matches('\\');
                // More backslashes are those of a line that continues.
                if before.len() - line.len() > 2 {
                    return None;
                }
                line
            }
            _ => return None,
        };
        (!line.trim_end().ends_with(['\\', ',', '[', '('])).then_some(at + 1)
    });
    // A separator within quotes, as in the header of a request, ends no command.
    let is_outside = |at: &usize| ['"', '\''].iter().all(|quote| text[*at..].matches(*quote).count().is_multiple_of(2));
    &text[starts.find(is_outside).unwrap_or(0)..]
}

/// Returns places in a part of a text as places in the text.
fn moved(places: Vec<Range<usize>>, by: usize) -> Vec<Range<usize>> {
    places.into_iter().map(|at| at.start + by..at.end + by).collect()
}

/// Returns the places of the secrets in a list of cookies. A `Set-Cookie` header has one cookie, before its attributes.
fn secret_cookies(cookies: &str, is_set: bool) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut end = 0;
    for (number, pair) in cookies.split(';').enumerate() {
        end += pair.len();
        if let Some((name, value)) = pair.split_once('=')
            && (number == 0 || !is_set)
            && is_cookie(name.trim_start(), value)
        {
            found.push(end - value.len()..end);
        }
        end += 1;
    }
    found
}

/// Returns the places of the secrets in a map of cookies, as in `cookies={'session': '…'}`.
fn secret_cookies_of_map(map: &str) -> Vec<Range<usize>> {
    let one = |found: Captures<'_>| {
        let (name, value) = (found.name("name")?.as_str(), found.name("value")?);
        let is_secret = is_cookie(name, value.as_str())
            && fields::is_secret(name, value.as_str(), true)
            && !is_words(value.as_str());
        is_secret.then(|| value.range())
    };
    COOKIE_IN_MAP.captures_iter(map).filter_map(one).collect()
}

/// Returns true if a pair is a cookie whose value may be a secret.
fn is_cookie(name: &str, value: &str) -> bool {
    let is_attribute = COOKIE_ATTRIBUTES.iter().any(|attribute| name.eq_ignore_ascii_case(attribute));
    !is_attribute && value.chars().count() >= 16 && !fields::is_elsewhere(value)
}

/// Returns true if the text after the prefix of a token is random.
fn is_random(found: &Found<'_>) -> bool {
    tokens::is_random(found.group("token"))
}

/// Returns true if the text after the prefix of a token with letters of one case is random.
fn is_random_of_one_case(found: &Found<'_>) -> bool {
    tokens::is_random_of_one_case(found.group("token"))
}

/// Returns true if the value of an option with a secret name looks like a secret, and is not the next option.
fn is_of_field(found: &Found<'_>) -> bool {
    !found.value.starts_with('-')
        && fields::is_secret(found.group("name"), found.value, found.group("value").is_empty())
}

/// Returns true if the value of a variable may be a secret. If only the last word of its name says so (`OPENAI_KEY`), it
/// must also look like a secret.
fn is_of_variable(found: &Found<'_>) -> bool {
    let (name, value) = (found.group("name"), found.value);
    let is_quoted = found.before.ends_with(['"', '\'']);
    let is_no_secret = value.chars().count() < 6
        || value.chars().all(|c| c.is_ascii_digit())
        || fields::is_about(name)
        || name.contains("TOKENIZ")
        || fields::is_elsewhere(value)
        || fields::is_path(value)
        || fields::is_public(name, value)
        || (!is_quoted && ordinary::is_call(name, value, found.rest))
        || is_names_in_code(name, value);
    let is_ordinary = || {
        is_words(value)
            || value.starts_with('/')
            || ordinary::is_of_words(name, value)
            || ordinary::is_counted(name, value)
    };
    let looks_like_one = || looks_secret(name) && fields::is_secret(name, value, false) && !is_ordinary();
    !is_no_secret && (is_usual(name) || (!is_of_other_key(name) && looks_like_one()))
}

/// Returns true if the values of a variable with this name are secrets even if they may be words. `SECRETS` and `PASSWORDS` may
/// be a path or a list.
fn is_usual(name: &str) -> bool {
    let is_singular = |part: &str, rest: &str| part.ends_with("KEY") || !rest.starts_with('S');
    let has = |part: &str| name.match_indices(part).any(|(at, _)| is_singular(part, &name[at + part.len()..]));
    looks_secret(name) && VARIABLES.iter().any(|part| has(part))
}

/// Returns the part of a value in quotes that may be a secret. A bracket may be part of a password, and in most variables
/// begins code.
fn in_quotes<'t>(name: &str, value: &'t str) -> &'t str {
    if is_usual(name) || ordinary::is_of_password(name) {
        ordinary::without_code(name, value)
    } else {
        ordinary::before_bracket(value)
    }
}

/// Returns true if a value consists of names in code with dots, also with further assignments (`KEYS=a.b=c.d`). In a shell
/// and in a `.env` file, such names may be a password.
fn is_names_in_code(name: &str, value: &str) -> bool {
    let is_name = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
    let is_code = |part: &str| is_name(part) || (!ordinary::is_of_password(name) && fields::is_in_code(name, part));
    value.contains('.') && value.split(['=', ',']).all(is_code)
}

/// Returns true if a variable is secret by its name only as a key, and the key is none: `CACHE_KEY`, but not `CACHE_PASS`.
fn is_of_other_key(name: &str) -> bool {
    let words = || name.split('_').map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
    let others: Vec<&str> = words().filter(|word| !["KEY", "KEYS"].contains(word)).collect();
    words().any(|word| OTHER_KEYS.contains(&word)) && !looks_secret(&others.join("_"))
}

/// Returns true if the value of an `Authorization` header is a secret, and not the beginning of a parameter.
fn is_of_header(found: &Found<'_>) -> bool {
    let value = found.value;
    let name = value.trim_end_matches('=');
    let is_quoted_next = found.rest.trim_start_matches('\\').starts_with('"');
    let is_named = name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && name.len() + 1 == value.len();
    let is_parameter = name.contains('=') || (is_named && is_quoted_next);
    let is_known = SCHEMES.iter().any(|scheme| found.group("scheme").eq_ignore_ascii_case(scheme));
    // Prose may have a comma behind the word.
    let is_header = !found.before.contains(',') || found.before.contains(['"', '\'']);
    let is_secret = is_known || (is_header && fields::is_secret("authorization", value, false));
    is_secret && !is_parameter && !is_stand_in(value) && !ordinary::is_call("authorization", value, found.rest)
}

/// Returns true if a text is base64 of a user and a password.
fn is_encoded_pair(value: &str) -> bool {
    STANDARD.decode(value).is_ok_and(|pair| pair.contains(&b':'))
}

/// Returns true if a text is the beginning of base64 of a private key.
fn is_encoded_key(value: &str) -> bool {
    // The first line names the key.
    let line = value.find(|c: char| !c.is_ascii_alphanumeric() && c != '+' && c != '/').unwrap_or(value.len());
    let begin = &value[..line.min(64) / 4 * 4];
    STANDARD.decode(begin).is_ok_and(|key| String::from_utf8_lossy(&key).contains("PRIVATE KEY"))
}

fn has_digit_and_letter(value: &str) -> bool {
    value.contains(|c: char| c.is_ascii_digit()) && value.contains(|c: char| c.is_ascii_alphabetic())
}

/// The search for a form.
struct Search {
    name: &'static str,
    pattern: String,
    is_secret: fn(&Found<'_>) -> bool,
    /// The compiled pattern, made for the first text that contains a word of the form.
    regex: OnceLock<Regex>,
}

impl Search {
    fn new(name: &'static str, pattern: &str, is_secret: fn(&Found<'_>) -> bool) -> Self {
        let mut pattern = match pattern.strip_prefix(r"\b") {
            Some(rest) => format!("{BEGIN}{}", rest.replace(r"\b", r"(?-u:\b)")),
            None => pattern.to_owned(),
        };
        for (part, replacement) in PARTS {
            pattern = pattern.replace(part, replacement);
        }
        Self { name, pattern, is_secret, regex: OnceLock::new() }
    }

    #[expect(clippy::unwrap_used, reason = "the patterns are constants, and tests compile each of them")]
    fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| Regex::new(&self.pattern).unwrap())
    }

    /// Returns the secrets of this form in a text.
    fn secrets(&self, text: &str) -> Vec<Secret> {
        let found = self.regex().captures_iter(text).flat_map(|captures| self.places(&captures, text));
        found.map(|at| (at, self.name)).collect()
    }

    /// Returns the places of the secrets in a match.
    fn places(&self, captures: &Captures<'_>, text: &str) -> Vec<Range<usize>> {
        let whole = captures.get(0).map_or(0..0, |it| it.range());
        if let Some(map) = captures.name("cookie_map") {
            return moved(secret_cookies_of_map(map.as_str()), map.start());
        }
        if let Some(after_user) = captures.name("after_user") {
            let password = url_password::password(&text[..whole.start], after_user.as_str());
            let place = password.map(|password| after_user.start()..after_user.start() + password.len());
            return place.into_iter().collect();
        }
        let begin = captures.name("escape").map_or(whole.start, |it| it.end());
        let cookies = captures.name("cookies");
        let value = VALUES.iter().find_map(|group| captures.name(group)).or(cookies);
        let value = value.map_or(begin..whole.end, |it| it.range());
        let value = match (captures.name("name"), captures.name("closed")) {
            (Some(name), Some(closed)) => value.start..value.start + in_quotes(name.as_str(), closed.as_str()).len(),
            _ => value,
        };
        let (ahead, before) = (&text[..whole.start], &text[whole.start..value.start]);
        let found = Found { captures, ahead, before, value: &text[value.clone()], rest: &text[value.end..] };
        match cookies {
            _ if !(self.is_secret)(&found) => Vec::new(),
            Some(it) => moved(secret_cookies(it.as_str(), captures.name("set").is_some()), it.start()),
            None => vec![value],
        }
    }
}

/// The searches for all forms.
struct Searches {
    forms: Vec<Search>,
    /// Finds the words of the forms: one pass over a text decides which of the forms are searched.
    words: AhoCorasick,
    /// The number of the form of each word. The words of [`fields`] have the number after those of the forms.
    owners: Vec<usize>,
}

static SEARCHES: LazyLock<Searches> = LazyLock::new(Searches::new);

impl Searches {
    #[expect(clippy::unwrap_used, reason = "the words are constants, and tests search for them")]
    fn new() -> Self {
        let (mut forms, mut words, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        let mut add = |of: &[&'static str], owner: usize| {
            words.extend_from_slice(of);
            owners.extend(of.iter().map(|_| owner));
        };
        for (prefix, characters, minimum) in TOKENS {
            add(&[prefix], forms.len());
            let pattern = format!(r"\b{}(?<token>{characters}{{{minimum},}})", escape(prefix));
            let is_secret = if tokens::has_both_cases(characters) { is_random } else { is_random_of_one_case };
            forms.push(Search::new("service-token", &pattern, is_secret));
        }
        for form in FORMS {
            add(form.words, forms.len());
            forms.push(Search::new(form.name, form.pattern, form.is_secret));
        }
        add(&fields::WORDS, forms.len());
        let words = AhoCorasick::builder().ascii_case_insensitive(true).kind(Some(AhoCorasickKind::DFA)).build(&words);
        Self { forms, words: words.unwrap(), owners }
    }

    /// Returns for each form, and after them for [`fields`], true if the text contains one of its words.
    fn possible(&self, text: &str) -> Vec<bool> {
        let mut possible = vec![false; self.forms.len() + 1];
        for found in self.words.find_overlapping_iter(text) {
            possible[self.owners[found.pattern().as_usize()]] = true;
        }
        possible
    }
}

/// Returns the text with every secret of a known form masked. A secret may be interrupted by terminal colours, which stay.
pub fn mask(text: &str) -> Cow<'_, str> {
    match without_colours(text) {
        Some(text) => {
            let again = marked(&text).into_text();
            Cow::Owned(again.unwrap_or(text))
        }
        None => marked(text).into_text().map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// Returns the text with the secrets masked that are found without its terminal colours, or `None` if there are none.
fn without_colours(text: &str) -> Option<String> {
    let shown = terminal::undone(text.as_bytes())?;
    let secrets = marked(str::from_utf8(&shown.text).ok()?).into_secrets();
    let mut masked = String::new();
    let mut copied = 0;
    for (at, name) in &secrets {
        let mut mark = format!("[redacted:{name}]");
        for piece in shown.pieces(at.clone()) {
            masked.push_str(text.get(copied..piece.start)?);
            // Only the first piece of a secret has a mark.
            masked.push_str(&std::mem::take(&mut mark));
            copied = piece.end;
        }
    }
    masked.push_str(text.get(copied..)?);
    (!secrets.is_empty()).then_some(masked)
}

/// Returns the text with every secret of a known form marked.
fn marked(text: &str) -> Marked<'_> {
    let possible = SEARCHES.possible(text);
    let mut marked = Marked::new(text);
    for (form, _) in SEARCHES.forms.iter().zip(&possible).filter(|(_, possible)| **possible) {
        marked.add(form.secrets(marked.text()));
    }
    if possible.last() == Some(&true) {
        marked.add(fields::quoted(marked.text()));
        marked.add(fields::bare(marked.text()));
    }
    marked
}

#[cfg(test)]
mod tests;
