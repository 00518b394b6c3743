//! The command lines of the calls in a Python program. Parts that the program does not show are [`NOT_SHOWN`].

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::runners::NOT_SHOWN;

/// The maximum number of imports of a program that are read.
const MOST: usize = 256;
/// The maximum number of values of a program that are read. Others are unknown.
const MOST_VALUES: usize = 512;
/// The maximum number of variables and calls within the argument of a call.
const DEEPEST: usize = 4;

/// The functions of `os` and `subprocess` that run commands.
const OF_OS: &str = "system|popen";
const OF_SUBPROCESS: &str = "run|call|check_call|check_output|Popen|getoutput|getstatusoutput";

/// The calls that make the words of a command of a text, or a text of the words.
const JOINS: [&str; 4] = ["shlex.split(", "shlex.join(", "\" \".join(", "' '.join("];

/// A value of a program.
enum Value {
    /// A text for a shell.
    Text(String),
    /// The words of a command, each quoted for a shell.
    Words(Vec<String>),
}

/// Returns true if a program runs Python.
pub(super) fn is_python(program: &str) -> bool {
    program.starts_with("python") || program.starts_with("pypy")
}

/// Returns the command lines that a program passes to `os.system` and to functions of `subprocess`.
pub(super) fn calls(code: &str) -> Vec<String> {
    if !["subprocess", "system", "popen"].iter().any(|name| code.contains(name)) {
        return Vec::new();
    }
    let masked = without_texts(code);
    let Some(functions) = functions(&masked) else { return vec![NOT_SHOWN.to_owned()] };
    let program = Program { code, masked: &masked, left: Cell::new(MOST_VALUES) };
    let is_definition = |from: usize| masked.get(..from).is_some_and(|before| before.trim_end().ends_with("def"));
    let calls = functions.find_iter(&masked).filter(|call| !is_definition(call.start()));
    let values = calls.flat_map(|call| program.values(program.argument(call.end()), DEEPEST));
    let mut lines: Vec<String> = Vec::new();
    for value in values.take(MOST_VALUES + 1) {
        let line = match value {
            Value::Text(text) => text,
            Value::Words(words) => words.join(" "),
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Returns the expression of a call of a function that runs commands, up to its bracket, also under names that imports give it.
fn functions(masked: &str) -> Option<Regex> {
    static MODULES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b(os|subprocess)\s+as\s+(\w+)").ok());
    static NAMES: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"\bfrom\s+(os|subprocess)\s+import\s+(\([^)]*\)|[^\n;]+)").ok());
    let mut calls: BTreeSet<String> =
        BTreeSet::from([format!(r"os\s*\.\s*(?:{OF_OS})"), format!(r"subprocess\s*\.\s*(?:{OF_SUBPROCESS})")]);
    let of = |module: &str| if module == "os" { OF_OS } else { OF_SUBPROCESS };
    for found in MODULES.as_ref()?.captures_iter(masked).take(MOST) {
        let (_, [module, name]) = found.extract();
        calls.insert(format!(r"{name}\s*\.\s*(?:{})", of(module)));
    }
    for found in NAMES.as_ref()?.captures_iter(masked).take(MOST) {
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

/// Returns code in which the signs of texts and comments are blanks. The places of what remains are the same. Texts that the
/// program may evaluate stay: those with values in braces, and those of `exec` and `eval`.
fn without_texts(code: &str) -> String {
    let mut masked = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(next) = rest.chars().next() {
        let size = match next {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' | '\'' => end_of_text(rest),
            _ => {
                masked.push(next);
                rest = rest.get(next.len_utf8()..).unwrap_or_default();
                continue;
            }
        };
        let (text, behind) = rest.split_at_checked(size).unwrap_or((rest, ""));
        let before = masked.trim_end_matches(['r', 'R', 'b', 'B']);
        let is_evaluated = before.ends_with(['f', 'F']) || before.ends_with("exec(") || before.ends_with("eval(");
        if is_evaluated && next != '#' {
            masked.push_str(text);
        } else {
            masked.extend(text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        }
        rest = behind;
    }
    masked
}

/// Returns the size of a text in quotes, with its quotes. A text without its last quote ends at the end of the code.
fn end_of_text(code: &str) -> usize {
    let quote = code.get(..1).unwrap_or_default();
    let triple = quote.repeat(3);
    let quote = if code.starts_with(&triple) { triple.as_str() } else { quote };
    let mut at = quote.len();
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(quote) {
            return at + quote.len();
        }
        let mut signs = rest.chars();
        let first = signs.next().map_or(1, char::len_utf8);
        let escaped = signs.next().filter(|_| rest.starts_with('\\')).map_or(0, char::len_utf8);
        at += first + escaped;
    }
    code.len()
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
}

impl<'a> Program<'a> {
    /// Returns the first argument of a call, from behind its bracket.
    fn argument(&self, from: usize) -> &'a str {
        let argument = self.expression(from, &[',']);
        // `args=["rm"]`
        match argument.split_once('=') {
            Some((name, value)) if matches!(name.trim(), "args" | "cmd" | "command") => value,
            _ => argument,
        }
    }

    /// Returns the expression at a place, up to one of the signs outside of brackets, or up to the bracket that closes what was
    /// opened before.
    fn expression(&self, from: usize, ends: &[char]) -> &'a str {
        let rest = self.code.get(from..).unwrap_or_default();
        rest.get(..end_of_expression(rest, ends)).unwrap_or_default().trim()
    }

    /// Returns the values that an expression may have. A value that the program does not show is [`NOT_SHOWN`].
    fn values(&self, expression: &str, depth: usize) -> Vec<Value> {
        let expression = expression.trim();
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        let Some(depth) = depth.checked_sub(1).filter(|_| left.is_some()) else {
            return vec![Value::Text(NOT_SHOWN.to_owned())];
        };
        if is_name(expression) {
            return self.values_of(expression, depth);
        }
        let within = |name: &str| expression.strip_prefix(name).and_then(|rest| rest.strip_suffix(')'));
        if let Some(inner) = JOINS.iter().find_map(|name| within(name)) {
            return self.values(inner, depth);
        }
        if let Some(name) = expression.strip_suffix(".split()").filter(|name| is_name(name)) {
            return self.values_of(name, depth);
        }
        let is_group = expression.starts_with(['[', '(']);
        let elements = expression.get(1..expression.len().saturating_sub(1)).filter(|_| is_group);
        if let Some(elements) = elements.filter(|elements| end_of_expression(elements, &[]) == elements.len()) {
            let words = split(elements, ',');
            if words.len() == 1 && expression.starts_with('(') {
                return self.values(elements, depth);
            }
            let words = words.into_iter().filter(|element| !element.trim().is_empty());
            return vec![Value::Words(words.map(|element| quoted(&self.text(element, depth))).collect())];
        }
        let parts = split(expression, '+');
        if parts.first().is_some_and(|part| part.trim().starts_with('[')) && parts.len() > 1 {
            let words = parts.into_iter().flat_map(|part| match self.values(part, depth).pop() {
                Some(Value::Words(words)) => words,
                _ => vec![quoted(NOT_SHOWN)],
            });
            return vec![Value::Words(words.collect())];
        }
        vec![Value::Text(self.text(expression, depth))]
    }

    /// Returns the text of an expression, in which unknown parts are [`NOT_SHOWN`].
    fn text(&self, expression: &str, depth: usize) -> String {
        split(expression, '+').into_iter().map(|part| self.text_of_part(part.trim(), depth)).collect()
    }

    fn text_of_part(&self, part: &str, depth: usize) -> String {
        if part == "sys.executable" {
            return "python3".to_owned();
        }
        if is_name(part) {
            // Only the value of a variable that is set once is certain.
            return match self.values(part, depth).as_slice() {
                [Value::Text(text)] => text.clone(),
                _ => NOT_SHOWN.to_owned(),
            };
        }
        let mut text = String::new();
        let mut rest = part;
        while let Some((literal, behind)) = literal(rest) {
            text.push_str(&literal);
            rest = behind.trim_start();
        }
        match rest {
            "" => text,
            _ if text.is_empty() => NOT_SHOWN.to_owned(),
            _ if rest.starts_with('%') => with_signs(&text),
            _ if rest.starts_with(".format(") => with_braces(&text),
            _ => NOT_SHOWN.to_owned(),
        }
    }

    /// Returns the values that the program assigns to a variable.
    fn values_of(&self, name: &str, depth: usize) -> Vec<Value> {
        let (mut values, mut is_extended) = (Vec::new(), false);
        for (at, _) in self.masked.match_indices(name) {
            let before = self.masked.get(..at).and_then(|before| before.chars().next_back());
            let behind = self.masked.get(at + name.len()..).unwrap_or_default();
            if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) {
                continue;
            }
            let sign = behind.trim_start();
            is_extended |= [".append(", ".extend(", ".insert(", "+="].iter().any(|begin| sign.starts_with(begin));
            if sign.starts_with('=') && !sign.starts_with("==") {
                let from = at + name.len() + (behind.len() - sign.len()) + 1;
                values.extend(self.values(self.expression(from, &[',', ';', '\n']), depth));
            }
        }
        for value in values.iter_mut().filter(|_| is_extended) {
            match value {
                Value::Text(text) => text.push_str(NOT_SHOWN),
                Value::Words(words) => words.push(quoted(NOT_SHOWN)),
            }
        }
        if values.is_empty() { vec![Value::Text(NOT_SHOWN.to_owned())] } else { values }
    }
}

/// Returns true if a text is the name of a variable.
fn is_name(text: &str) -> bool {
    super::tokens::is_name(text) && !matches!(text, "None" | "True" | "False")
}

/// Returns the end of an expression: one of the signs outside of brackets and texts, or a bracket that closes what was opened
/// before.
fn end_of_expression(code: &str, ends: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(next) = code.get(at..).and_then(|rest| rest.chars().next()) {
        match next {
            '"' | '\'' => {
                at += end_of_text(code.get(at..).unwrap_or_default());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => return at,
            ')' | ']' | '}' => depth -= 1,
            end if depth == 0 && ends.contains(&end) => return at,
            _ => {}
        }
        at += next.len_utf8();
    }
    code.len()
}

/// Splits an expression at a sign outside of brackets and texts.
fn split(code: &str, sign: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = code;
    loop {
        let end = end_of_expression(rest, &[sign]);
        let (part, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
        parts.push(part);
        let Some(behind) = behind.strip_prefix(sign) else { return parts };
        rest = behind;
    }
}

/// Returns the text in quotes at the beginning of code, and what follows it.
fn literal(code: &str) -> Option<(String, &str)> {
    let start = code.find(['"', '\''])?;
    let prefix = code.get(..start)?.to_ascii_lowercase();
    if !matches!(prefix.as_str(), "" | "f" | "r" | "b" | "u" | "rf" | "fr" | "rb" | "br") {
        return None;
    }
    let (text, behind) = code.get(start..)?.split_at_checked(end_of_text(code.get(start..)?))?;
    let size = if text.len() >= 6 && (text.starts_with("\"\"\"") || text.starts_with("'''")) { 3 } else { 1 };
    let inner = text.get(size..text.len().checked_sub(size)?)?;
    let inner = if prefix.contains('f') { with_braces(inner) } else { inner.to_owned() };
    Some((inner.replace("\\n", "\n").replace('\\', ""), behind))
}

/// Returns a text with [`NOT_SHOWN`] in the place of each `{…}`.
fn with_braces(text: &str) -> String {
    let mut parts = text.split('{');
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(NOT_SHOWN);
        shown.push_str(part.split_once('}').map_or("", |(_, behind)| behind));
    }
    shown
}

/// Returns a text with [`NOT_SHOWN`] in the place of each sign such as `%s`.
fn with_signs(text: &str) -> String {
    static SIGNS: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"%(?:\(\w+\))?[-+# 0-9.]*[sdrixfFeEgGcaXo]").ok());
    match SIGNS.as_ref() {
        Some(signs) => signs.replace_all(text, regex::NoExpand(NOT_SHOWN)).into_owned(),
        None => NOT_SHOWN.to_owned(),
    }
}
