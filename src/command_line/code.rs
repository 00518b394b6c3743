//! The command lines that a program in another language runs: the texts that it passes to functions such as `os.system`.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use self::perl_and_ruby::PerlOrRuby;
use super::expanded::Argument;
use super::runners::NOT_SHOWN;
use super::{is_shell, python};

mod comments;
mod constants;
mod input;
mod javascript;
mod modules;
mod not_run;
mod perl_and_ruby;

pub(super) use input::is_program;
pub(super) use modules::files;

/// The maximum number of variables whose values are searched in code.
const MAX_VARIABLES: usize = 32;
/// The maximum size in bytes of the command lines that are taken from calls and variables.
const MAX_LINES_BYTES: usize = 256 << 10;

/// The command lines in the code of a program.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub lines: Vec<String>,
    /// The recognised calls that run commands. Parts of them that the code does not show are marked as unknown.
    pub calls: Vec<Call>,
    /// True if the code runs a command that is the value of a variable, and does not show this value, or if a part of the code
    /// was not read.
    pub has_unknown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The command line, or the input of the interpreter.
    Line,
    /// A program file that the line writes.
    File,
    /// A file that the line writes, and that the code on the command line imports.
    Module,
}

/// A call that runs command lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub lines: Vec<String>,
    /// True if only one of the lines runs.
    pub is_choice: bool,
    /// True if the code does not show that it makes the call, as in a function that it does not call or in a module. What is
    /// unknown about such a call counts for nothing.
    pub is_unused: bool,
}

impl Call {
    /// Makes the call of one command line.
    pub fn of(line: String) -> Self {
        Self { lines: vec![line], is_choice: false, is_unused: false }
    }
}

/// Returns the command lines in the code that an interpreter gets on its command line, in a file that the line writes, or as its
/// input.
pub(super) fn command_lines(program: &str, arguments: &[Argument], input: Option<&str>) -> Code {
    if !is_interpreter(program) || is_check(program, arguments) {
        return Code::default();
    }
    let of_files = arguments.iter().enumerate().filter_map(|(at, word)| {
        let behind = arguments.get(at + 1..).unwrap_or_default();
        let is_module = modules::is_importing(program, arguments, at);
        let origin = if is_module { Origin::Module } else { Origin::File };
        Some((with_arguments(word.content.as_deref()?, behind), origin))
    });
    let of_words = arguments.iter().map(|word| word.text.clone());
    let of_input = input.filter(|_| is_program(program, arguments)).map(str::to_owned);
    let texts = of_files.chain(of_words.chain(of_input).map(|text| (text, Origin::Line)));
    let texts: Vec<(String, Origin)> = texts.map(|(text, origin)| (readable(program, &text), origin)).collect();
    let origins: Vec<Origin> = texts.iter().map(|(_, origin)| *origin).collect();
    let texts: Vec<&str> = texts.iter().map(|(text, _)| text.as_str()).collect();
    let mut found = Lines { lines: Vec::new(), left: MAX_LINES_BYTES };
    let file = arguments.iter().find(|word| !word.text.starts_with('-'));
    let mut has_unknown = file.is_some_and(|file| file.content.as_deref() == Some(NOT_SHOWN));
    has_unknown |= texts.iter().any(|text| !passed_to_shells(program, text, &mut found));
    for code in texts.iter().filter_map(|text| PerlOrRuby::of(program, text)) {
        found.lines.extend(code.other_lines());
        has_unknown |= code.is_cut();
    }
    if program == "php" {
        found.lines.extend(texts.iter().flat_map(|text| text.split('`').skip(1).step_by(2)).map(str::to_owned));
    }
    if program.ends_with("awk") {
        found.lines.extend(texts.iter().flat_map(|text| at_pipes(text)));
    }
    if python::is_python(program) {
        let programs = texts.iter().zip(origins);
        let calls: Vec<Call> = programs.flat_map(|(text, origin)| python::calls(text, origin)).collect();
        let shown = calls.iter().flat_map(|call| &call.lines).map(|line| line.replace('\'', ""));
        let shown: BTreeSet<String> = shown.collect();
        let mut lines = found.lines;
        lines.retain(|line| !shown.contains(line));
        return Code { lines, calls, has_unknown };
    }
    let (mut calls, rest) = constants::calls(program, &texts.join("\n"));
    if matches!(program, "perl" | "ruby") {
        let partly = found.lines.extract_if(.., |line| line.contains(NOT_SHOWN));
        calls.extend(partly.map(Call::of));
    }
    has_unknown |= runs_value(program, &rest);
    for (text, origin) in texts.into_iter().zip(origins).filter(|_| is_javascript(program)) {
        let is_unused = origin == Origin::Module;
        let call_of = |line: String| Call { is_unused, ..Call::of(line) };
        let shown = javascript::calls_with_values(text);
        has_unknown |= !shown.iter().all(|call| passed_to_shells(program, call, &mut found));
        calls.extend(javascript::templates(program, text).into_iter().map(call_of));
        let arguments = arguments_of_calls(text);
        has_unknown |= arguments.len() > MAX_VARIABLES;
        for argument in arguments.into_iter().take(MAX_VARIABLES) {
            match argument {
                First::Name(name) => match shown_arguments(text, name) {
                    Some(lines) => calls.extend(lines.into_iter().map(call_of)),
                    None => {
                        let before = found.lines.len();
                        let is_all = values_of(text, name, &mut found) && found.lines.len() > before;
                        has_unknown |= !is_unused && (!is_all || is_set_otherwise(text, name));
                    }
                },
                First::Text(line) => calls.push(call_of(line)),
            }
        }
    }
    Code { lines: found.lines, calls, has_unknown }
}

/// Returns code without its comments, and with the own names of the functions that it imports under others.
fn readable(program: &str, code: &str) -> String {
    let code = comments::without_comments(program, code);
    if is_javascript(program) { javascript::with_own_names(&code) } else { code }
}

/// Returns the texts that a parameter or the variable of a loop has in JavaScript, or `None` if the code does not show all of
/// them.
fn shown_arguments(code: &str, name: &str) -> Option<Vec<String>> {
    let of_loop = || {
        let (texts, rest) = javascript::texts_of_loop(code, name)?;
        let is_assigned = Regex::new(&format!(r"\b{name}\s*=[^=>]")).ok()?.is_match(&rest);
        (!is_assigned && !is_set_otherwise(&rest, name)).then_some(texts)
    };
    constants::arguments_of_function(code, name).or_else(of_loop)
}

/// Returns the code of a file with the arguments that it gets in the places of `sys.argv[1:]` and `sys.argv[1]` of Python.
fn with_arguments(code: &str, arguments: &[Argument]) -> String {
    if !code.contains("sys.argv[") {
        return code.to_owned();
    }
    let texts = arguments.iter().map(|word| format!("'{}'", word.shown().replace(['\'', '\\', '\n'], "")));
    let texts: Vec<String> = texts.collect();
    let whole = code.replace("sys.argv[1:]", &format!("[{}]", texts.join(", ")));
    let numbered = texts.iter().enumerate().take(MAX_VARIABLES);
    numbered.fold(whole, |code, (index, text)| code.replace(&format!("sys.argv[{}]", index + 1), text))
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

/// The first argument of a call that runs a command.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum First<'a> {
    /// A variable.
    Name(&'a str),
    /// A text, with [`NOT_SHOWN`] in the place of values.
    Text(String),
}

/// Returns the first arguments of calls such as `execSync(…)` in JavaScript, without those that are one text.
fn arguments_of_calls(code: &str) -> BTreeSet<First<'_>> {
    static CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let of_module = r"\b(?:child_process|cp)['\x22]?\)?\s*\.\s*(?:exec|execFile|spawn)";
        Regex::new(&format!(r"(?:\b(?:execSync|execFileSync|spawnSync)|{of_module})\s*\(")).ok()
    });
    let Some(calls) = CALLS.as_ref() else { return BTreeSet::new() };
    calls.find_iter(code).filter_map(|call| first_argument(code, call.end())).collect()
}

/// Returns the argument that begins at a place of a program in JavaScript, unless it is one text.
fn first_argument(code: &str, from: usize) -> Option<First<'_>> {
    let mut rest = code.get(from..).unwrap_or_default().trim_start();
    let size = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, behind) = rest.split_at_checked(size).unwrap_or_default();
    if !name.is_empty() && behind.trim_start().starts_with([',', ')']) {
        return Some(First::Name(name));
    }
    let (mut line, mut is_joined) = (String::new(), false);
    loop {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
        let inner = rest.get(1..).unwrap_or_default();
        match quote.and_then(|quote| Some((quote, end_of(inner, quote)?))) {
            Some((quote, end)) => {
                let text = inner.get(..end).unwrap_or_default();
                line.push_str(&unescaped(&if quote == '`' { without_values(text) } else { text.to_owned() }));
                rest = inner.get(end + 1..).unwrap_or_default().trim_start();
            }
            None => {
                line.push_str(if rest.starts_with("process.execPath") { "node" } else { NOT_SHOWN });
                rest = rest.find(['+', ',', ')']).and_then(|end| rest.get(end..)).unwrap_or_default();
            }
        }
        match rest.strip_prefix('+') {
            Some(behind) => (rest, is_joined) = (behind.trim_start(), true),
            None => break,
        }
    }
    // A shell reads the text that the code gives it.
    let options: String = rest.chars().take(200).collect();
    if is_shell(&line) && options.contains("input") {
        line.push_str(&format!(" <<<{NOT_SHOWN}"));
    }
    (is_joined || line.contains(NOT_SHOWN)).then_some(First::Text(line))
}

/// Returns a template of JavaScript with [`NOT_SHOWN`] in the place of each `${…}`.
fn without_values(text: &str) -> String {
    let mut parts = text.split("${");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(NOT_SHOWN);
        shown.push_str(part.split_once('}').map_or("", |(_, behind)| behind));
    }
    shown
}

/// Returns true if a variable of JavaScript gets a value in another way than `NAME = …`: as a parameter, by a loop, by `+=` and the
/// like, or as a part of a value (`[NAME] = …`).
fn is_set_otherwise(code: &str, name: &str) -> bool {
    let is_parameter = format!(r"\bfunction\s*\w*\s*\([^)]*\b{name}\b|\([^()]*\b{name}\b[^()]*\)\s*=>|\b{name}\s*=>");
    let is_loop = format!(r"\b{name}\s+(?:of|in)\b");
    let is_changed = format!(r"\b{name}\s*(?:\+|\|\||&&|\?\?)=|[\[{{,]\s*{name}\s*(?:,[^=;]*)?[\]}}]\s*=[^=>]");
    match Regex::new(&format!("{is_parameter}|{is_loop}|{is_changed}")) {
        Ok(places) => places.is_match(code),
        Err(_) => true,
    }
}

/// Returns true if code in awk, Perl, Ruby or PHP runs a value, which may be any command: `system(c)`.
fn runs_value(program: &str, code: &str) -> bool {
    static OF_AWK: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let print = r#"\bprintf?\b[^;}\n"/|]*(?:"[^"]*"[^;}\n"/|]*)*\|&?\s*(?:[A-Za-z_]|"(?:\S*/)?(?:ba|da|z|k)?sh\b)"#;
        Regex::new(&format!(r#"\bsystem\s*\(\s*[^"\s)]|[\w$)\]]\s*\|\s*getline|{print}"#)).ok()
    });
    static OF_PHP: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\b(?:system|exec|shell_exec|passthru|popen|proc_open)\s*\(\s*\$").ok());
    if let Some(code) = PerlOrRuby::of(program, code) {
        return code.runs_value();
    }
    let calls = match program {
        "php" => &OF_PHP,
        name if name.ends_with("awk") => &OF_AWK,
        _ => return false,
    };
    (**calls).as_ref().is_none_or(|calls| calls.is_match(code))
}

/// Adds the texts that code assigns to a variable. Returns false if they are too long.
fn values_of(code: &str, name: &str, lines: &mut Lines) -> bool {
    let Ok(assignments) = Regex::new(&format!(r"\b{name}\s*=\s*")) else { return false };
    let mut ends = assignments.find_iter(code).map(|found| found.end());
    ends.all(|end| lines.add(&words_from(code.get(end..).unwrap_or_default())))
}

/// Returns true if an interpreter only checks a program: `node --check FILE`, `python3 -m py_compile FILE`.
pub(super) fn is_check(program: &str, arguments: &[Argument]) -> bool {
    let word = |index: usize| arguments.get(index).map_or("", |word| word.text.as_str());
    let has_files = arguments.len() > 1 && arguments.iter().skip(1).all(|word| !word.text.starts_with('-'));
    match program {
        "node" | "nodejs" => matches!(word(0), "--check" | "-c") && has_files,
        "deno" => matches!(word(0), "check" | "lint" | "fmt"),
        // Perl runs some blocks when it reads them.
        "perl" => {
            let runs = |text: &str| ["BEGIN", "CHECK", NOT_SHOWN].iter().any(|name| text.contains(name));
            let has_code = arguments.iter().filter_map(|word| word.content.as_deref()).any(runs);
            matches!(word(0), "-c" | "-wc" | "-cw") && has_files && !has_code
        }
        "ruby" => matches!(word(0), "-c" | "-wc" | "-cw") && has_files,
        "php" => word(0) == "-l" && has_files,
        program if python::is_python(program) => match word(0).strip_prefix("-m") {
            Some("") => is_checker(word(1)),
            Some(module) => is_checker(module),
            None => false,
        },
        _ => false,
    }
}

/// Returns true if a module of Python reads programs and does not run them.
fn is_checker(module: &str) -> bool {
    const CHECKERS: [&str; 12] = [
        "ast",
        "black",
        "compileall",
        "flake8",
        "isort",
        "mypy",
        "py_compile",
        "pyflakes",
        "pylint",
        "ruff",
        "tabnanny",
        "tokenize",
    ];
    CHECKERS.contains(&module)
}

/// Returns true if a program is an interpreter of another language.
pub(super) fn is_interpreter(program: &str) -> bool {
    static INTERPRETERS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^(python[0-9.]*|pypy3?|perl|ruby|php|lua|[gm]?awk|osascript)$").ok());
    is_javascript(program) || INTERPRETERS.as_ref().is_some_and(|names| names.is_match(program))
}

/// Returns true if a program runs JavaScript or TypeScript.
pub(super) fn is_javascript(program: &str) -> bool {
    const NAMES: [&str; 10] = ["node", "nodejs", "deno", "bun", "tsx", "ts-node", "vite-node", "jiti", "zx", "esno"];
    NAMES.contains(&program)
}

/// Adds the texts that code passes to functions that run commands. Texts in a row, as in `spawn("rm", ["-rf", "a"])`, are the
/// words of one command. Returns false if they are too long.
fn passed_to_shells<'a>(program: &str, code: &'a str, lines: &mut Lines) -> bool {
    static CALLS: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let names = r"system|popen|Popen|run|call|check_call|check_output|getoutput|getstatusoutput|exec\w*|spawn\w*|shell_exec|passthru|sh|execa|Command|create_subprocess_shell|create_subprocess_exec|proc_open|pcntl_exec";
        // Behind the name: `)`, `']`, the bracket of the call, and the code before the first text.
        Regex::new(&format!(
            r"\b({names})\b['\x22\])]*\s*\(?\s*((args|cmd|command)\s*=\s*|[\w.]+\s*\(\s*|os\.P_\w+\s*,\s*)?"
        ))
        .ok()
    });
    let with_quotes = PerlOrRuby::of(program, code);
    let calls = if with_quotes.is_some() { perl_and_ruby::calls() } else { CALLS.as_ref() };
    let Some(calls) = calls else { return false };
    // The first group that matches is the name.
    let of = |call: Captures<'a>| Some((call.get(0)?.end(), call.iter().skip(1).flatten().next()?));
    let found = || calls.captures_iter(code).filter_map(of);
    // A function of Ruby may run the one whose name it takes.
    let has_super = with_quotes.is_some() && code.contains("super");
    if !has_super && not_run::are_own_functions(code, found().map(|(_, name)| name)) {
        return true;
    }
    let mut calls = found().filter(|(_, name)| !not_run::runs_nothing(code, *name));
    calls.all(|(end, name)| {
        let name = name.as_str();
        if let Some(code) = &with_quotes {
            return lines.add(&[code.line(name, end)]) && !code.is_cut();
        }
        let words = words_from(code.get(end..).unwrap_or_default());
        // The functions of Python get the program twice: its file and its name.
        let is_twice = ["spawnl", "spawnv", "execl", "execv"].iter().any(|begin| name.starts_with(begin));
        match words.as_slice() {
            [file, _, behind @ ..] if is_twice => lines.add(&[std::slice::from_ref(file), behind].concat()),
            words => lines.add(words),
        }
    })
}

/// Returns the consecutive string literals at the beginning of the code, such as those of a list.
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
        // `Command("rm", {args: ["a"]})` of Deno
        let options = rest.strip_prefix('{').and_then(|rest| rest.trim_start().strip_prefix("args"));
        if let Some(behind) = options.and_then(|rest| rest.trim_start().strip_prefix(':')).filter(|_| words.len() == 1)
        {
            rest = behind;
            continue;
        }
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) else { break };
        let inner = rest.get(1..).unwrap_or_default();
        let Some(end) = end_of(inner, quote) else { break };
        words.push(unescaped(inner.get(..end).unwrap_or_default()));
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

/// Returns the value of a text in quotes. A line feed behind a backslash does not belong to it.
pub(super) fn unescaped(text: &str) -> String {
    text.replace("\\\n", "").replace("\\n", "\n").replace('\\', "")
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
