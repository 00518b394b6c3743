//! Recognises values that are ordinary text of code and commands: paths, lists of words, numbers, and calls of functions.

use std::sync::LazyLock;

use regex::Regex;

use super::looks_secret;
use super::tokens::is_words;

/// The characters between the words of paths, globs and lists. A colon is none: it separates a user and a password.
const SEPARATORS: [char; 7] = ['/', '.', '_', '-', ',', '+', '*'];

/// The first names of paths in code and in Terraform that lead to a value.
const ROOTS: [&str; 16] = [
    "args", "body", "config", "ctx", "data", "each", "env", "local", "module", "params", "props", "request", "self",
    "settings", "this", "var",
];

/// A word of a path or a list: letters as in names, with a number behind them.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static WORD: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("^(?:(?:[A-Z]?[a-z]*(?:[A-Z][a-z]{2,})*|[A-Z]+)[0-9]{0,4}|[0-9]+)$").unwrap());
/// A word in lower case with a number. Longer ones may be random.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static NUMBERED: LazyLock<Regex> = LazyLock::new(|| Regex::new("^[a-z]{1,10}[0-9]{1,2}$").unwrap());
/// The path of a file whose name has an extension.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static FILE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[A-Za-z0-9_.*@+-]*(?:/[A-Za-z0-9_.*@+-]*)+\.[a-z]{1,5}[0-9]?$").unwrap());
/// A number in code: hexadecimal, or with a type.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static NUMBER: LazyLock<Regex> = LazyLock::new(|| {
    let kind = "(?:[iu](?:8|16|32|64|128|size)|f(?:32|64))";
    Regex::new(&format!("^(?:0x[0-9A-Fa-f_]{{1,20}}(?:{kind}|[uU]?[lL]{{0,2}}|n)|[0-9][0-9_]*{kind})$")).unwrap()
});
/// The name of a function. Each of its parts has at most one group of digits, and its letters are words.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static FUNCTION: LazyLock<Regex> = LazyLock::new(|| {
    let words = "(?:[A-Z]*[a-z]*(?:[A-Z]+[a-z]{2,})*|[a-z]{2,}(?:[A-Z]+[a-z]{2,})*[A-Z])";
    let part = format!("{words}(?:[0-9]{{0,3}}|25519){words}");
    Regex::new(&format!(r"^_*{part}(?:(?:_|\.|::){part})*!?$")).unwrap()
});
/// The name of a function that may give a password: words, whose digits belong to the name of an algorithm.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static FUNCTION_OF_PASSWORD: LazyLock<Regex> = LazyLock::new(|| {
    let sums = "sha(?:[123]|224|256|384|512)|md[245]|blake[23]|argon2|pbkdf2";
    let algorithm = format!("(?i:{sums}|(?:base|b)(?:16|32|58|64)|utf(?:8|16|32))");
    let part = format!("(?:{algorithm}|[A-Z]?[a-z]{{2,}})");
    Regex::new(&format!(r"^_*(?:{algorithm}|[a-z]{{2,}}){part}*(?:(?:_|\.|::){part}+)*!?$")).unwrap()
});

/// Words in lower case that are joined by dots, as in the scopes of a grammar: `string.quoted.double.ts2`. Longer words may be
/// random.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static SCOPE: LazyLock<Regex> = LazyLock::new(|| {
    let word = "[a-z]{1,14}[0-9]{0,2}";
    Regex::new(&format!(r"^{word}(?:-{word})*(?:\.{word}(?:-{word})*)+$")).unwrap()
});
/// A bracket in code: in a pattern, a template or an index.
#[expect(clippy::unwrap_used, reason = "the pattern is a constant, and tests compile it")]
static IN_BRACKETS: LazyLock<Regex> = LazyLock::new(|| {
    let class = r"\[\^|\[[A-Za-z0-9]-[A-Za-z0-9]|\(\?";
    let index = r"\[(?:[A-Za-z_.]*|[0-9]*)\]";
    let template = r"\{(?:[A-Za-z_.:]*|[0-9]*,?[0-9]*)\}|\{\{";
    Regex::new(&format!("{class}|{index}|{template}")).unwrap()
});

/// Returns true if a name is the name of a password. A password may look like ordinary text.
pub(super) fn is_of_password(name: &str) -> bool {
    let name = name.to_lowercase();
    name.contains("pass") || name.ends_with("_pw") || name.ends_with("_pwd")
}

/// Returns true if a value consists of words: a path, a glob, a list (`a1,b2,c3`), or a word with a number (`htpasswd2`).
/// A password may consist of words, and is ordinary text only if it is the path of a file.
pub(super) fn is_of_words(name: &str, value: &str) -> bool {
    let is_password = is_of_password(name);
    if !value.contains(SEPARATORS) {
        return !is_password && NUMBERED.is_match(value);
    }
    let is_path = value.contains('/') && value.contains('.');
    (is_path || !is_password) && value.split(SEPARATORS).all(|part| WORD.is_match(part))
}

/// Returns true if a value is the path of a file, also if parts of the path are random. A password may look like one.
pub(super) fn is_file(name: &str, value: &str) -> bool {
    !is_of_password(name) && FILE.is_match(value)
}

/// Returns true if a value consists of names in code that are joined by dots: `base64.b64decode`, `config?.auth`.
pub(super) fn is_path_of_names(value: &str) -> bool {
    let names = with_dots(value);
    let begins_as_name = |part: &str| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    names.contains('.') && names.split('.').all(begins_as_name) && FUNCTION.is_match(&names)
}

/// Returns a path of names in code with a dot between the names: `a?.b`, `a!.b` and `a::b` become `a.b`.
fn with_dots(value: &str) -> String {
    value.replace("?.", ".").replace("!!.", ".").replace("!.", ".").replace("::", ".")
}

/// Returns true if a value without quotes is a path of names in code that leads to a secret: `var.db1`,
/// `form.value!.password1`. Other names with a dot may be a password.
pub(super) fn is_reference(value: &str) -> bool {
    let names = with_dots(value);
    let is_root = names.split('.').next().is_some_and(|root| ROOTS.contains(&root));
    is_path_of_names(value) && (is_root || looks_secret(&names))
}

/// Returns true if a value without quotes is the rest of a path in code (`Token::Ident2`, where the value begins at the second
/// colon), a symbol, or a parameter (`:token1`).
pub(super) fn is_symbol(value: &str) -> bool {
    value.strip_prefix(':').is_some_and(|name| FUNCTION.is_match(name))
}

/// Returns true if a value without quotes is a variable in code: an index follows (`parts2[0]`), or the end of a statement
/// (`result1;`). A password may look like one.
pub(super) fn is_variable(name: &str, value: &str, rest: &str) -> bool {
    let value = value.trim_end_matches(['?', '!', '.']);
    let is_indexed = rest.starts_with('[') && FUNCTION.is_match(value);
    !is_of_password(name) && (is_indexed || (rest.starts_with(';') && NUMBERED.is_match(value)))
}

/// Returns true if a value is a scope of a grammar. A password may look like one.
pub(super) fn is_scope(name: &str, value: &str) -> bool {
    !is_of_password(name) && SCOPE.is_match(value)
}

/// Returns the part of a value in quotes before its first bracket if the value is a pattern, a template or a call, and
/// the whole value otherwise.
pub(super) fn without_code<'t>(name: &str, value: &'t str) -> &'t str {
    let before = before_bracket(value);
    let is_call = value.ends_with(')') && is_call(name, before, &value[before.len()..]);
    if is_call || IN_BRACKETS.is_match(value) { before } else { value }
}

/// Returns the part of a value before its first bracket.
pub(super) fn before_bracket(value: &str) -> &str {
    &value[..value.find(['(', ')', '[', ']', '{', '}']).unwrap_or(value.len())]
}

/// Returns true if a value without quotes is a number in code: `0xC0000149_u32`, `16384i32`.
pub(super) fn is_number(value: &str) -> bool {
    NUMBER.is_match(value)
}

/// Returns true if a variable is set to its own value with a number added: `PASS=PASS+1`.
pub(super) fn is_counted(name: &str, value: &str) -> bool {
    let added = value.strip_prefix(name).and_then(|rest| rest.strip_prefix(['+', '-']));
    added.is_some_and(|number| number.chars().all(|c| c.is_ascii_digit()))
}

/// Returns true if a value repeats the name of its constant: `TIME_TO_FIRST_TOKEN = "time_to_first_token"`.
pub(super) fn repeats_name(name: &str, value: &str) -> bool {
    let joined = |text: &str| text.to_lowercase().replace(['_', '-', '.'], "");
    !is_of_password(name) && is_words(value) && joined(name).ends_with(&joined(value))
}

/// Returns true if a value without quotes is the name of a function, and a call of the function follows. A password may
/// contain a parenthesis: `Summer2024(x)`.
pub(super) fn is_call(name: &str, value: &str, rest: &str) -> bool {
    let Some(arguments) = rest.strip_prefix('(') else {
        return false;
    };
    if !is_of_password(name) {
        return FUNCTION.is_match(value) && !value.starts_with(|c: char| c.is_ascii_digit());
    }
    let is_word = value.chars().all(|c| c.is_ascii_lowercase());
    let begins_as_arguments = arguments.trim_start_matches('\\').starts_with(['"', '\'', ')']);
    FUNCTION_OF_PASSWORD.is_match(value) && (!is_word || begins_as_arguments)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RANDOM: &str = "q7Xm2LpR9vKd4TzW8bNc";

    #[test]
    fn paths_and_lists_consist_of_words_and_random_text_does_not() {
        for value in [
            "src/lib/obj1.txt",
            "uploads/2024/01/01/abc.png",
            "src/**/x1.ts",
            "s/a1/b2/",
            "a1,b2,c3",
            "Ctrl+Shift+F5",
            "app.kubernetes.io/name1",
            "src/components/MainButton2.tsx",
            "htpasswd2",
        ] {
            assert!(is_of_words("OBJECT_KEY", value), "{value}");
        }
        for value in [
            RANDOM,
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
            "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
            "ada:hunter-2",
            "deadbeef1234",
            "lcvnyhedwiaoiqn5",
            "XeMsPix4-PeOkemu",
            "Hunter2",
        ] {
            assert!(!is_of_words("OBJECT_KEY", value), "{value}");
        }
        assert!(is_of_words("DB_PASS", "src/lib/obj1.txt"));
        for password in ["hunter2", "winter/2024", "Summer+2024", "hunter2,x"] {
            for name in ["DB_PASS", "MYSQL_PWD", "BIND_PW"] {
                assert!(!is_of_words(name, password), "{password}");
            }
        }
    }

    #[test]
    fn files_numbers_and_repeated_names_are_no_secrets() {
        assert!(is_file("KEY", "uploads/3f2a9c/Abc1.png") && is_file("KEY", "a/9f8d7e6a.mp4"));
        assert!(!is_file("KEY", "ada/9f8d7e6a") && !is_file("KEY", "a/b:c1.png") && !is_file("PASS", "a/b1.png"));
        for number in ["0xC0000149_u32", "16384i32", "0xFFUL", "1_000u64"] {
            assert!(is_number(number), "{number}");
        }
        for other in ["123456L", "0x5FbDB2315678afecb367f032d93F642f64180aa3", "12ab34"] {
            assert!(!is_number(other), "{other}");
        }
        assert!(is_counted("PASS", "PASS+1") && !is_counted("PASS", "PASS+a1") && !is_counted("PASS", "pw+1"));
        assert!(repeats_name("TIME_TO_FIRST_TOKEN", "time_to.first_token"));
        assert!(!repeats_name("API_TOKEN", "correct_horse_battery_token"));
    }

    #[test]
    fn names_with_dots_are_code_and_random_parts_are_not() {
        for name in ["base64.b64decode", "hash2.Digest::new_v2", "Token.Name.SchemeFunction", "a.__init__"] {
            assert!(is_path_of_names(name), "{name}");
        }
        for other in ["fvfrVg5u.fbOPjgV0", "PBpToFW6Hv.WDzwvZ9vRiFF", "sha256", "abc1.", "a.1b", "1.20"] {
            assert!(!is_path_of_names(other), "{other}");
        }
    }

    #[test]
    fn references_symbols_variables_and_scopes_are_code() {
        for path in ["req.headers.authorization?.split", "config?.auth?.jwtSecret2", "user!!.token1", "params?.token2"]
        {
            assert!(is_path_of_names(path), "{path}");
        }
        for path in [
            "random_password.db1.result",
            "aws_secretsmanager_secret_version.x1.secret_string",
            "var.db1",
            "form.value!.password1",
            "Password::V2Hash",
        ] {
            assert!(is_reference(path), "{path}");
        }
        for password in ["Summer.Rain1", "hunter2", "fvfrVg5u.fbOPjgV0", "var.Zq8RtY2wPm5", "password1"] {
            assert!(!is_reference(password), "{password}");
        }
        assert!(is_symbol(":Ident2") && is_symbol(":Kind::Ident2") && !is_symbol(":Zq8RtY2") && !is_symbol("Ident2"));
        assert!(is_variable("token", "authTokens2", "[0]") && is_variable("token", "parts2?.", "[0]"));
        assert!(is_variable("token", "result1", "; x") && !is_variable("token", "result1", ""));
        assert!(!is_variable("token", "Zq8RtY2", "[0]") && !is_variable("password", "hunter2", ";"));
        assert!(is_scope("token", "string.quoted.double.ts2") && is_scope("token", "keyword.control.at-rule"));
        assert!(
            !is_scope("password", "correct.horse")
                && !is_scope("token", "a1b2c3d4e5.f6")
                && !is_scope("token", "abc12")
        );
    }

    #[test]
    fn a_bracket_in_quotes_belongs_to_a_password_and_begins_code() {
        for password in ["Zq8(RtY2wPm5)", "Zq8{RtY2wPm5}", "Zq[8RtY2wPm5", "Summer2024(x)", "Zq8RtY2"] {
            assert_eq!(without_code("DB_PASSWORD", password), password);
        }
        for (name, value, before) in [
            ("TOKEN_RE", "tok[a-z0-9]+", "tok"),
            ("TOKEN", "key{name}1", "key"),
            ("TOKEN", "items[0].id1", "items"),
            ("TOKEN", "getToken2(x)", "getToken2"),
            ("DB_PASSWORD", "getPassword()", "getPassword"),
        ] {
            assert_eq!(without_code(name, value), before);
        }
    }

    #[test]
    fn a_password_with_a_parenthesis_is_no_call() {
        for function in ["sha256", "createHeader2", "base64.b64decode", "hash2.Digest::new_v2", "OAuth2Client", "toB64"]
        {
            assert!(is_call("token", function, "(x)"), "{function}");
        }
        for value in ["G7h2Kp9Lm", "aB3xKq", "Summer2024", "123abc", RANDOM] {
            assert!(!is_call("token", value, "(Q4)"), "{value}");
        }
        for function in ["sha256", "getpass.getpass", "os.getenv", "getPassword", "base64.b64decode"] {
            assert!(is_call("DB_PASSWORD", function, "(x)"), "{function}");
        }
        for value in ["G7h2Kp", "a1B2c3D4", "aB3xKq", "Summer2024", "hunter2", "Summer", "horses", "qXmLpRvKd"] {
            assert!(!is_call("DB_PASSWORD", value, "(x)"), "{value}");
        }
        assert!(is_call("DB_PASSWORD", "config", r#"(\"DB\")"#) && !is_call("token", "sha256", " (x)"));
    }
}
