//! The command lines of the calls in Python code. Parts that the code does not show are [`NOT_SHOWN`].

mod additions;
mod expressions;
mod lists;
mod parameters;
mod quotes;
mod texts;
mod unused;
mod values;
mod variables;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use self::expressions::{end_of_expression, split};
use self::quotes::{literal, without_texts};
use self::values::Value;
use super::code::{Call, Origin};
use super::runners::NOT_SHOWN;

pub(super) use self::quotes::end_of_text;

/// The maximum number of imports of a program that are read.
const MAX_IMPORTS: usize = 256;
/// The maximum number of values of a program that are read. Others are unknown.
const MAX_VALUES: usize = 1024;
/// The maximum number of places of a name that are read. Values at others are unknown.
const MAX_PLACES: usize = 128;
/// The maximum number of variables and calls within the argument of a call.
const MAX_VALUE_DEPTH: usize = 6;
/// The maximum number of texts that an expression may have.
const MAX_TEXTS: usize = 16;
/// The maximum size in bytes of the input of a command.
const MAX_INPUT_BYTES: usize = 4096;

/// The functions of `os` and `subprocess` that run commands.
const OF_OS: &str = "system|popen|execl|execle|execlp|execlpe|execv|execve|execvp|execvpe";
const OF_SUBPROCESS: &str = "run|call|check_call|check_output|Popen|getoutput|getstatusoutput";

/// The code that may call a function that it does not name.
const CALLERS: [&str; 9] = ["@", "Fire(", "__dict__", "eval(", "exec(", "getattr", "globals(", "locals(", "vars("];

/// Returns true if a program runs Python.
pub(super) fn is_python(program: &str) -> bool {
    program.starts_with("python") || program.starts_with("pypy")
}

/// Returns the calls by which a program passes command lines to `os.system` and to functions of `subprocess`.
pub(super) fn calls(code: &str, origin: Origin) -> Vec<Call> {
    if !["subprocess", "system", "popen", "os"].iter().any(|name| code.contains(name)) {
        return Vec::new();
    }
    let masked = without_texts(code);
    let Some(functions) = functions(&masked) else { return vec![Call::of(NOT_SHOWN.to_owned())] };
    let program = Program {
        code,
        masked: &masked,
        left: Cell::new(MAX_VALUES),
        place: Cell::new(0),
        has_choice: Cell::new(false),
        may_call_any: CALLERS.iter().any(|caller| masked.contains(caller)),
        origin,
    };
    let is_definition = |from: usize| masked.get(..from).is_some_and(|before| before.trim_end().ends_with("def"));
    let places = functions.find_iter(&masked).filter(|call| !is_definition(call.start()));
    let mut calls: Vec<Call> = Vec::new();
    for place in places.take(MAX_VALUES + 1) {
        let call = program.call(place.end(), place.as_str().contains("exec"));
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    calls
}

/// Returns the words of a command as a text for a shell.
pub(super) fn in_quotes(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Returns the expression of a call of a function that runs commands, up to its bracket, also under names that imports give it.
fn functions(masked: &str) -> Option<Regex> {
    static MODULES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b(os|subprocess)\s+as\s+(\w+)").ok());
    static NAMES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\bfrom\s+(os|subprocess)\s+import\s+(\([^)]*\)|[^\n;]+)").ok());
    let mut calls: BTreeSet<String> =
        BTreeSet::from([format!(r"os\s*\.\s*(?:{OF_OS})"), format!(r"subprocess\s*\.\s*(?:{OF_SUBPROCESS})")]);
    let of = |module: &str| if module == "os" { OF_OS } else { OF_SUBPROCESS };
    for found in MODULES.as_ref()?.captures_iter(masked).take(MAX_IMPORTS) {
        let (_, [module, name]) = found.extract();
        calls.insert(format!(r"{name}\s*\.\s*(?:{})", of(module)));
    }
    for found in NAMES.as_ref()?.captures_iter(masked).take(MAX_IMPORTS) {
        let (_, [module, names]) = found.extract();
        let lines = names.split([',', '(', ')']).map(|part| part.split_whitespace().collect::<Vec<_>>());
        for part in lines {
            match part.as_slice() {
                ["*"] => {
                    calls.insert(of(module).to_owned());
                }
                [name, "as", own] if of(module).split('|').any(|function| function == *name) => {
                    calls.insert(regex::escape(own));
                }
                [name] if of(module).split('|').any(|function| function == *name) => {
                    calls.insert((*name).to_owned());
                }
                _ => {}
            }
        }
    }
    let calls: Vec<String> = calls.into_iter().collect();
    Regex::new(&format!(r"(?:^|[^\w.])(?:{})\s*\(", calls.join("|"))).ok()
}

/// Returns a word in quotes for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A program whose calls are read.
struct Program<'a> {
    code: &'a str,
    /// The code without its texts.
    masked: &'a str,
    /// The number of values that are still read.
    left: Cell<usize>,
    /// The place of the code that is read.
    place: Cell<usize>,
    /// True if a value of the call that is read has alternatives.
    has_choice: Cell<bool>,
    /// True if the code may call functions that it does not name.
    may_call_any: bool,
    origin: Origin,
}

impl<'a> Program<'a> {
    /// Returns a call with its command lines, from behind its bracket. `is_exec` is true for `os.execvp` and the like.
    fn call(&self, from: usize, is_exec: bool) -> Call {
        self.has_choice.set(false);
        let mut lines: Vec<String> = Vec::new();
        for line in self.at(from, || if is_exec { self.lines_of_exec(from) } else { self.lines(from) }) {
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        Call { lines, is_choice: self.has_choice.get(), is_unused: self.is_unused(from) }
    }

    /// Reads the code at another place.
    fn at<T>(&self, place: usize, read: impl FnOnce() -> T) -> T {
        let before = self.place.replace(place);
        let found = read();
        self.place.set(before);
        found
    }

    /// Returns the command lines of `os.execvp(FILE, [NAME, …])` or `os.execlp(FILE, NAME, …)`. The name is not an argument.
    fn lines_of_exec(&self, from: usize) -> Vec<String> {
        let arguments = split(self.expression(from, &[]), ',');
        let Some((file, others)) = arguments.split_first() else { return Vec::new() };
        let program = self.one_text(file, MAX_VALUE_DEPTH);
        let lists = match others {
            [list] | [list, _] if literal(list.trim()).is_none() => {
                let values = self.values(list, MAX_VALUE_DEPTH).into_iter();
                values.map(|value| value.words().unwrap_or_default()).collect()
            }
            words => self.lists(words, MAX_VALUE_DEPTH),
        };
        let behind_name = |words: &Vec<String>| words.get(1..).unwrap_or_default().to_vec();
        lists.iter().map(|words| in_quotes(&[vec![program.clone()], behind_name(words)].concat())).collect()
    }

    /// Returns the command lines of a call, from behind its bracket.
    fn lines(&self, from: usize) -> Vec<String> {
        let arguments = split(self.expression(from, &[]), ',');
        let keyword = |names: &[&str]| {
            arguments.iter().find_map(|argument| {
                let (name, value) = argument.split_once('=')?;
                names.contains(&name.trim()).then_some(value.trim())
            })
        };
        let command = keyword(&["args", "cmd", "command"]).or(arguments.first().copied()).unwrap_or_default();
        let is_shell = keyword(&["shell"]).is_some_and(|value| value != "False");
        let stream = keyword(&["stdin"]).filter(|value| !value.ends_with("DEVNULL") && *value != "None");
        let input = keyword(&["input"])
            .map(|value| self.one_text(value, MAX_VALUE_DEPTH))
            .or(stream.map(|_| NOT_SHOWN.to_owned()));
        let input = input.map(|text| if text.len() > MAX_INPUT_BYTES { NOT_SHOWN.to_owned() } else { text });
        let input = input.map(|text| format!(" <<<{}", quoted(&text))).unwrap_or_default();
        let values = self.values(command, MAX_VALUE_DEPTH).into_iter();
        let lines = values.map(|value| match value {
            Value::Text(text) => text,
            // The other words are the arguments of the shell.
            Value::Words(words) if is_shell => words.into_iter().next().unwrap_or_default(),
            Value::Words(words) => in_quotes(&words),
        });
        lines.map(|line| format!("{}{input}", line.trim_end())).collect()
    }

    /// Returns the expression at a place, up to one of the signs outside of brackets, or up to the bracket that closes what was
    /// opened before.
    fn expression(&self, from: usize, ends: &[char]) -> &'a str {
        let rest = self.code.get(from..).unwrap_or_default();
        rest.get(..end_of_expression(rest, ends)).unwrap_or_default().trim()
    }
}
