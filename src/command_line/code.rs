//! The command lines that a program in another language runs: the texts that it passes to functions such as `os.system`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::expanded::Argument;
use super::python;

/// The maximum number of variables whose values are searched in code.
const MOST_NAMES: usize = 32;
/// The maximum size in bytes of the command lines that are taken from calls and variables.
const LONGEST_LINES: usize = 256 << 10;

/// The command lines in the code of a program.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub lines: Vec<String>,
    /// The command lines of calls that are known as such, with parts that are not shown as unknown ones.
    pub calls: Vec<String>,
    /// True if the code runs a command that is the value of a variable, and does not show this value, or if a part of the code
    /// was not read.
    pub has_unknown: bool,
}

/// Returns the command lines in the code that an interpreter gets on its command line, in a file that the line writes, or as its
/// input.
pub(super) fn command_lines(program: &str, arguments: &[Argument], input: Option<&str>) -> Code {
    if !is_interpreter(program) {
        return Code::default();
    }
    let texts: Vec<&str> = arguments
        .iter()
        .flat_map(|word| word.content.as_deref().into_iter().chain([word.text.as_str()]))
        .chain(input)
        .collect();
    let mut found = Lines { lines: Vec::new(), left: LONGEST_LINES };
    let mut has_unknown = texts.iter().any(|text| !passed_to_shells(text, &mut found));
    if matches!(program, "perl" | "ruby" | "php") {
        found.lines.extend(texts.iter().flat_map(|text| text.split('`').skip(1).step_by(2)).map(str::to_owned));
        found.lines.extend(texts.iter().flat_map(|text| in_quotes_of_perl(text)));
    }
    if program.ends_with("awk") {
        found.lines.extend(texts.iter().flat_map(|text| at_pipes(text)));
    }
    if python::is_python(program) {
        let calls: Vec<String> = texts.iter().flat_map(|text| python::calls(text)).collect();
        let shown: BTreeSet<String> = calls.iter().map(|call| call.replace('\'', "")).collect();
        let mut lines = found.lines;
        lines.retain(|line| !shown.contains(line));
        return Code { lines, calls, has_unknown };
    }
    for text in texts {
        let names = variables_of_calls(text);
        has_unknown |= names.len() > MOST_NAMES;
        for name in names.into_iter().take(MOST_NAMES) {
            let before = found.lines.len();
            has_unknown |= !values_of(text, name, &mut found) || found.lines.len() == before;
        }
    }
    Code { lines: found.lines, calls: Vec::new(), has_unknown }
}

/// The command lines that were found, and the size in bytes of those that may follow.
struct Lines {
    lines: Vec<String>,
    left: usize,
}

impl Lines {
    /// Adds a command line of words. Returns false if the command lines are too long.
    fn add(&mut self, words: &[String]) -> bool {
        let line = words.join(" ");
        let left = self.left.checked_sub(line.len());
        self.left = left.unwrap_or_default();
        if left.is_some() && !line.is_empty() {
            self.lines.push(line);
        }
        left.is_some()
    }
}

/// Returns the texts of `qx(…)`, `exec q(…)` and `%x(…)` in Perl and Ruby.
fn in_quotes_of_perl(code: &str) -> Vec<String> {
    static QUOTES: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let begin = r"(?:\bqx\s*|%x|\b(?:system|exec)\s*\(?\s*q{1,2}\s*)";
        Regex::new(&format!(
            r"{begin}(?:\(([^)]*)\)|\{{([^}}]*)\}}|\[([^\]]*)\]|<([^>]*)>|/([^/]*)/|\|([^|]*)\||!([^!]*)!|'([^']*)')"
        ))
        .ok()
    });
    let Some(quotes) = QUOTES.as_ref() else { return Vec::new() };
    let texts = quotes.captures_iter(code).filter_map(|found| found.iter().skip(1).flatten().next());
    texts.map(|text| text.as_str().to_owned()).collect()
}

/// Returns the names of the variables that code passes to functions that run commands: `execSync(cmd)`.
fn variables_of_calls(code: &str) -> BTreeSet<&str> {
    static CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let functions = r"execSync|execFileSync|spawnSync";
        Regex::new(&format!(r"\b(?:{functions})\s*\(\s*([A-Za-z_]\w*)\s*[,)]")).ok()
    });
    let Some(calls) = CALLS.as_ref() else { return BTreeSet::new() };
    calls.captures_iter(code).filter_map(|call| Some(call.get(1)?.as_str())).collect()
}

/// Adds the texts that code assigns to a variable. Returns false if they are too long.
fn values_of(code: &str, name: &str, lines: &mut Lines) -> bool {
    let Ok(assignments) = Regex::new(&format!(r"\b{name}\s*=\s*")) else { return false };
    let mut ends = assignments.find_iter(code).map(|found| found.end());
    ends.all(|end| lines.add(&words_from(code.get(end..).unwrap_or_default())))
}

/// Returns true if a program is an interpreter of another language.
pub(super) fn is_interpreter(program: &str) -> bool {
    static INTERPRETERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r"^(python[0-9.]*|pypy3?|node|nodejs|deno|bun|perl|ruby|php|lua|[gm]?awk|osascript)$").ok()
    });
    INTERPRETERS.as_ref().is_some_and(|names| names.is_match(program))
}

/// Adds the texts that code passes to functions that run commands. Texts in a row, as in `spawn("rm", ["-rf", "a"])`, are the
/// words of one command. Returns false if they are too long.
fn passed_to_shells(code: &str, lines: &mut Lines) -> bool {
    static CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let names = r"system|popen|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec\w*|spawn\w*|shell_exec|passthru|sh|execa|Command|create_subprocess_shell|create_subprocess_exec";
        // Behind the name: `)`, `']`, the bracket of the call, and the code before the first text.
        Regex::new(&format!(
            r"\b({names})\b['\x22\])]*\s*\(?\s*((args|cmd|command)\s*=\s*|[\w.]+\s*\(\s*|os\.P_\w+\s*,\s*)?"
        ))
        .ok()
    });
    let Some(calls) = CALLS.as_ref() else { return false };
    let mut calls = calls.captures_iter(code).filter_map(|call| Some((call.get(0)?.end(), call.get(1)?.as_str())));
    calls.all(|(end, name)| {
        let words = words_from(code.get(end..).unwrap_or_default());
        // The functions of Python get the program twice: its file and its name.
        let is_twice = name.starts_with("spawn") && words.len() > 1 && words.first() == words.get(1);
        lines.add(words.get(usize::from(is_twice)..).unwrap_or_default())
    })
}

/// Returns the texts in a row that begin here, as those of a list.
fn words_from(code: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = code;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '[' | ',' | '(' | 'f' | 'r'));
        if let Some(behind) = rest.strip_prefix("sys.executable") {
            words.push("python3".to_owned());
            rest = behind;
            continue;
        }
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else { break };
        let inner = rest.get(1..).unwrap_or_default();
        let Some(end) = end_of(inner, quote) else { break };
        words.push(inner.get(..end).unwrap_or_default().replace("\\n", "\n").replace('\\', ""));
        rest = inner.get(end + 1..).unwrap_or_default();
    }
    words
}

/// Returns the texts beside the pipes of a program in awk: `"rm a" | getline`, `print | "sh"`.
fn at_pipes(code: &str) -> Vec<String> {
    static PIPES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#""([^"]*)"\s*\|\s*getline|\|&?\s*"([^"]*)""#).ok());
    let Some(pipes) = PIPES.as_ref() else { return Vec::new() };
    let found =
        pipes.captures_iter(code).filter_map(|found| Some(found.get(1).or_else(|| found.get(2))?.as_str().to_owned()));
    found.collect()
}

/// Returns the place of the quote that ends a text.
fn end_of(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    let mut ends = text.char_indices().filter_map(|(at, c)| {
        let is_end = c == quote && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end.then_some(at)
    });
    ends.next()
}
