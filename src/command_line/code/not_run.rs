//! Calls that have the name of a function that runs commands, and run none.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Match, Regex};

/// The maximum number of functions of a program that are read.
const MAX_FUNCTIONS: usize = 16;
/// The beginnings of code behind a name that checks the calls of a function.
const CHECKS: [&str; 6] = [".assert", ".toHave", ".toBe", ".calledWith", ".mock", ".return_value"];
/// Modules of Python whose functions run nothing.
const HARMLESS: [&str; 14] = [
    "ast",
    "collections",
    "dataclasses",
    "functools",
    "itertools",
    "json",
    "math",
    "pathlib",
    "re",
    "string",
    "sys",
    "textwrap",
    "time",
    "typing",
];

/// Returns true if a name belongs to a query of a database, a regular expression, or a check of the calls of a mock.
pub(super) fn runs_nothing(code: &str, name: Match<'_>) -> bool {
    let before = code.get(..name.start()).unwrap_or_default().trim_end();
    let behind = code.get(name.end()..).unwrap_or_default().trim_start_matches([')', ']', '\'', '"']);
    match name.as_str() {
        // `os.execute` of Lua runs a command.
        "execute" => receiver(before) != "os",
        "executemany" | "executescript" => true,
        "exec" if is_regular_expression(code, before) || is_query(before, behind) => true,
        "call" if code.contains("mock") && !before.ends_with("subprocess.") => true,
        _ => CHECKS.iter().any(|check| behind.starts_with(check)),
    }
}

/// Returns the name before the point, the arrow or the bracket at the end of code: `db` of `db.`, `os` of `os["`.
fn receiver(before: &str) -> &str {
    let owner = before.trim_end_matches(['.', '-', '>', '?', '[', '(', ')', '\'', '"', ' ']);
    let is_method = owner.len() < before.len();
    owner.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().filter(|_| is_method).unwrap_or_default()
}

/// Returns true if a call of a method gets a query of a database: `db.exec('CREATE TABLE …')`.
fn is_query(before: &str, behind: &str) -> bool {
    const WORDS: [&str; 11] =
        ["select", "insert", "update", "delete", "create", "drop", "alter", "pragma", "begin", "commit", "with"];
    let owner = receiver(before).to_ascii_lowercase();
    let is_shell = owner == "cp" || owner == "sh" || owner.contains("process") || owner.contains("shell");
    let text = behind.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '(' | '\'' | '"' | '`'));
    let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | '\'' | '"' | '`');
    let word = text.split(is_end).next().unwrap_or_default().to_ascii_lowercase();
    before.ends_with(['.', '>']) && !is_shell && WORDS.contains(&word.as_str())
}

/// Returns true if `before` ends with a regular expression of JavaScript and a dot.
fn is_regular_expression(code: &str, before: &str) -> bool {
    let Some(owner) = before.strip_suffix('.') else { return false };
    if owner.trim_end_matches(['d', 'g', 'i', 'm', 's', 'u', 'v', 'y']).ends_with('/') {
        return true;
    }
    let end = owner.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let name = owner.get(end..).unwrap_or_default();
    let is_assigned = Regex::new(&format!(r"\b{name}\s*=\s*(?:/[^/*]|(?:new\s+)?RegExp\b)"));
    !name.is_empty() && is_assigned.is_ok_and(|assigned| assigned.is_match(code))
}

/// Returns true if all names are those of functions that the code defines, and no other code runs in them: the code imports
/// only modules that run nothing.
pub(super) fn are_own_functions<'a>(code: &str, names: impl Iterator<Item = Match<'a>>) -> bool {
    static IMPORTS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(?m)\b(?:import|require|__import__)\b|^\s*from\s").ok());
    static HARMLESS_IMPORTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let names = HARMLESS.join("|");
        Regex::new(&format!(r"(?m)\bimport\s+(?:{names})\b(?:\s*,\s*(?:{names})\b)*\s*(?:[;\n]|$)")).ok()
    });
    let (Some(imports), Some(harmless)) = (IMPORTS.as_ref(), HARMLESS_IMPORTS.as_ref()) else { return false };
    let mut distinct: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        let is_method = code.get(..name.start()).is_some_and(|before| before.trim_end().ends_with('.'));
        distinct.insert(name.as_str());
        if is_method || distinct.len() > MAX_FUNCTIONS {
            return false;
        }
    }
    let is_any = !distinct.is_empty() && distinct.iter().all(|name| is_defined(code, name));
    is_any && !imports.is_match(&harmless.replace_all(code, " "))
}

fn is_defined(code: &str, name: &str) -> bool {
    let variable = format!(r"\b(?:const|let|var)\s+{name}\s*=\s*(?:async\s*)?(?:\(|\w+\s*=>|function\b)");
    Regex::new(&format!(r"\b(?:def|function)\s+{name}\s*\(|{variable}")).is_ok_and(|defined| defined.is_match(code))
}
