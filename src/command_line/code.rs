//! The command lines that a program in another language runs: the texts that it passes to functions such as `os.system`.

use std::sync::LazyLock;

use regex::Regex;

use super::expanded::Argument;

/// Returns the command lines in the code that an interpreter gets on its command line or as its input.
pub(super) fn command_lines(program: &str, arguments: &[Argument], input: Option<&str>) -> Vec<String> {
    static INTERPRETERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^(python[0-9.]*|pypy3?|node|nodejs|deno|bun|perl|ruby|php|lua|[gm]?awk|osascript)$").ok()
    });
    if !INTERPRETERS.as_ref().is_some_and(|names| names.is_match(program)) {
        return Vec::new();
    }
    let texts = arguments.iter().map(|word| word.text.as_str()).chain(input);
    texts.flat_map(passed_to_shells).collect()
}

/// Returns the texts that code passes to functions that run commands. Texts in a row, as in `spawn("rm", ["-rf", "a"])`, are the
/// words of one command.
fn passed_to_shells(code: &str) -> Vec<String> {
    static CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(
            r"\b(system|popen|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec\w*|spawn\w*|shell_exec|passthru|sh|execa|Command)\b\s*\(?\s*",
        )
        .ok()
    });
    let Some(calls) = CALLS.as_ref() else { return Vec::new() };
    let lines = calls.find_iter(code).map(|call| {
        let mut words: Vec<String> = Vec::new();
        let mut rest = code.get(call.end()..).unwrap_or_default();
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '[' | ',' | '(' | 'f' | 'r'));
            let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else { break };
            let inner = rest.get(1..).unwrap_or_default();
            let Some(end) = end_of(inner, quote) else { break };
            words.push(inner.get(..end).unwrap_or_default().replace(['\\'], ""));
            rest = inner.get(end + 1..).unwrap_or_default();
        }
        words.join(" ")
    });
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns the place of the quote that ends a text.
fn end_of(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices()
        .find(|(_, c)| {
            let ends = *c == quote && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            ends
        })
        .map(|(at, _)| at)
}
