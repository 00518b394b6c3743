//! The command lines of the calls in a Python program. Parts that the program does not show are [`NOT_SHOWN`].

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::code::{Call, Origin, unescaped};
use super::runners::NOT_SHOWN;

/// The maximum number of imports of a program that are read.
const MOST: usize = 256;
/// The maximum number of values of a program that are read. Others are unknown.
const MOST_VALUES: usize = 1024;
/// The maximum number of places of a name that are read. Values at others are unknown.
const MOST_PLACES: usize = 128;
/// The maximum number of lines between a call and the beginning of its function.
const MOST_LINES: usize = 1024;
/// The maximum number of variables and calls within the argument of a call.
const DEEPEST: usize = 6;
/// The maximum number of texts that an expression may have.
const MOST_TEXTS: usize = 16;
/// The maximum size in bytes of the input of a command.
const LONGEST_INPUT: usize = 4096;

/// The functions of `os` and `subprocess` that run commands.
const OF_OS: &str = "system|popen|execl|execle|execlp|execlpe|execv|execve|execvp|execvpe";
const OF_SUBPROCESS: &str = "run|call|check_call|check_output|Popen|getoutput|getstatusoutput";

/// The code that may call a function that it does not name.
const CALLERS: [&str; 9] = ["@", "Fire(", "__dict__", "eval(", "exec(", "getattr", "globals(", "locals(", "vars("];

/// The calls that make a text of the words of a command.
const JOINS: [&str; 3] = ["shlex.join(", "\" \".join(", "' '.join("];

/// The places of values in a text before `%`.
static SIGNS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"%(?:\(\w+\))?[-+# 0-9.]*[sdrixfFeEgGcaXo]").ok());
/// The places of values in a text before `.format(`.
static BRACES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\{[^{}]*\}").ok());

/// The calls that make a path of their arguments.
const PATHS: [&str; 5] = ["os.path.join(", "pathlib.Path(", "Path(", "os.fspath(", "str("];

/// A value of a program.
#[derive(Clone)]
enum Value {
    /// A text for a shell.
    Text(String),
    /// The words of a command.
    Words(Vec<String>),
}

impl Value {
    fn not_shown() -> Self {
        Self::Text(NOT_SHOWN.to_owned())
    }

    fn words(self) -> Option<Vec<String>> {
        match self {
            Self::Text(_) => None,
            Self::Words(words) => Some(words),
        }
    }
}

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
        left: Cell::new(MOST_VALUES),
        place: Cell::new(0),
        has_choice: Cell::new(false),
        may_call_any: CALLERS.iter().any(|caller| masked.contains(caller)),
        origin,
    };
    let is_definition = |from: usize| masked.get(..from).is_some_and(|before| before.trim_end().ends_with("def"));
    let places = functions.find_iter(&masked).filter(|call| !is_definition(call.start()));
    let mut calls: Vec<Call> = Vec::new();
    for place in places.take(MOST_VALUES + 1) {
        let call = program.call(place.end(), place.as_str().contains("exec"));
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    calls
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
pub(super) fn end_of_text(code: &str) -> usize {
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

/// Returns the words of a command as a text for a shell.
pub(super) fn in_quotes(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
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

    /// Returns true if a file does not show that it comes to a place: in a function that it does not name elsewhere, or, in a
    /// module, in any function. A base class or the name of a function may be a reason why other code calls the function.
    fn is_unused(&self, at: usize) -> bool {
        const CALLED_BY_OTHERS: [&str; 5] = ["__", "test", "pytest_", "setup", "teardown"];
        let (mut indent, mut function, mut has_base, mut is_guarded) = (usize::MAX, None, false, false);
        for line in self.masked.get(..at).unwrap_or_default().rsplit('\n').take(MOST_LINES) {
            let text = line.trim_start();
            let own = line.len() - text.len();
            if text.is_empty() || own >= indent {
                continue;
            }
            is_guarded |= text.starts_with("if __name__") || indent == usize::MAX && text.contains("lambda");
            has_base |= text.starts_with("class ") && text.contains('(');
            function = function.or_else(|| text.strip_prefix("async ").unwrap_or(text).strip_prefix("def "));
            indent = own;
        }
        match self.origin {
            Origin::Line => return false,
            Origin::Module if function.is_some() || is_guarded => return true,
            Origin::Module | Origin::File => {}
        }
        let name = function.and_then(|function| function.split('(').next()).unwrap_or_default().trim();
        let may_be_called = self.may_call_any || has_base || CALLED_BY_OTHERS.iter().any(|it| name.starts_with(it));
        indent == 0 && !name.is_empty() && !may_be_called && !self.is_named(name)
    }

    /// Returns true if the program names a function at another place than its definition.
    fn is_named(&self, name: &str) -> bool {
        let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
        self.masked.match_indices(name).any(|(at, _)| {
            let before = self.masked.get(..at).unwrap_or_default();
            let behind = self.masked.get(at + name.len()..).unwrap_or_default();
            let is_other = before.ends_with(is_in_name) || behind.starts_with(is_in_name);
            !is_other && !before.ends_with("subprocess.") && !before.trim_end().ends_with("def")
        })
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
        let program = self.one_text(file, DEEPEST);
        let lists = match others {
            [list] | [list, _] if literal(list.trim()).is_none() => {
                let values = self.values(list, DEEPEST).into_iter();
                values.map(|value| value.words().unwrap_or_default()).collect()
            }
            words => self.lists(words, DEEPEST),
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
        let input =
            keyword(&["input"]).map(|value| self.one_text(value, DEEPEST)).or(stream.map(|_| NOT_SHOWN.to_owned()));
        let input = input.map(|text| if text.len() > LONGEST_INPUT { NOT_SHOWN.to_owned() } else { text });
        let input = input.map(|text| format!(" <<<{}", quoted(&text))).unwrap_or_default();
        let values = self.values(command, DEEPEST).into_iter();
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

    /// Returns the values that an expression may have. A value that the program does not show is [`NOT_SHOWN`].
    fn values(&self, expression: &str, depth: usize) -> Vec<Value> {
        let expression = expression.trim();
        let left = self.left.get().checked_sub(1);
        self.left.set(left.unwrap_or_default());
        let Some(depth) = depth.checked_sub(1).filter(|_| left.is_some()) else { return vec![Value::not_shown()] };
        if is_name(expression) {
            return self.values_of(expression, depth);
        }
        if let Some((first, second)) = alternatives(expression) {
            self.has_choice.set(true);
            return [first, second].into_iter().flat_map(|value| self.values(value, depth)).collect();
        }
        let is_one = |inner: &&str| end_of_expression(inner, &[]) == inner.len();
        let within = |name: &str| expression.strip_prefix(name)?.strip_suffix(')').filter(is_one);
        if let Some(inner) = ["shlex.split(", "list(", "tuple("].iter().find_map(|name| within(name)) {
            return self.values(inner, depth);
        }
        if let Some(inner) = JOINS.iter().find_map(|name| within(name)) {
            let text_of = |value: Value| match value {
                Value::Words(words) if expression.starts_with("shlex") => Value::Text(in_quotes(&words)),
                Value::Words(words) => Value::Text(words.join(" ")),
                Value::Text(_) => Value::not_shown(),
            };
            return self.values(inner, depth).into_iter().map(text_of).collect();
        }
        if let Some(name) = expression.strip_suffix(".split()").filter(|name| is_name(name)) {
            return self.values_of(name, depth);
        }
        // `commands[name]`
        let indexed = expression.strip_suffix(']').and_then(|rest| rest.split_once('['));
        if let Some((name, index)) = indexed.filter(|(name, index)| is_name(name) && is_one(index)) {
            return self.element(name, index.trim(), depth);
        }
        if let Some(elements) = elements_of(expression) {
            let words = split(elements, ',');
            if words.len() == 1 && expression.starts_with('(') {
                return self.values(elements, depth);
            }
            return self.lists(&words, depth).into_iter().map(Value::Words).collect();
        }
        let parts = split(expression, '+');
        if let [first, others @ ..] = parts.as_slice()
            && !others.is_empty()
        {
            let lists = self.values(first, depth).into_iter().filter_map(Value::words).collect::<Vec<_>>();
            if !lists.is_empty() {
                let added = others.iter().map(|part| {
                    let values = self.values(part, depth).into_iter();
                    values
                        .map(|value| value.words().unwrap_or_else(|| vec![NOT_SHOWN.to_owned()]))
                        .collect::<Vec<Vec<String>>>()
                });
                return added.fold(lists, joined).into_iter().map(Value::Words).collect();
            }
        }
        self.texts(expression, depth).into_iter().map(Value::Text).collect()
    }

    /// Returns the texts that an expression may have, in which unknown parts are [`NOT_SHOWN`].
    fn texts(&self, expression: &str, depth: usize) -> Vec<String> {
        self.product(split(expression, '+').into_iter(), depth).into_iter().map(|parts| parts.concat()).collect()
    }

    /// Returns the text of an expression, if it has only one.
    fn one_text(&self, expression: &str, depth: usize) -> String {
        match self.texts(expression, depth).as_slice() {
            [text] => text.clone(),
            _ => NOT_SHOWN.to_owned(),
        }
    }

    /// Returns the lists of texts that expressions in a row may have.
    fn product<'b>(&self, parts: impl Iterator<Item = &'b str>, depth: usize) -> Vec<Vec<String>> {
        parts.fold(vec![Vec::new()], |lists, part| {
            let texts = self.texts_of_part(part.trim(), depth);
            joined(lists, texts.into_iter().map(|text| vec![text]).collect())
        })
    }

    /// Returns the lists that the elements of a list may make. `*NAME` adds the elements of another one.
    fn lists(&self, elements: &[&str], depth: usize) -> Vec<Vec<String>> {
        let elements = elements.iter().map(|element| element.trim()).filter(|element| !element.is_empty());
        elements.fold(vec![Vec::new()], |lists, element| {
            let added = match element.strip_prefix('*') {
                Some(other) => {
                    let values = self.values(other, depth).into_iter();
                    values.map(|value| value.words().unwrap_or_else(|| vec![NOT_SHOWN.to_owned()])).collect()
                }
                None => self.texts_of_part(element, depth).into_iter().map(|text| vec![text]).collect(),
            };
            joined(lists, added)
        })
    }

    fn texts_of_part(&self, part: &str, depth: usize) -> Vec<String> {
        let not_shown = || vec![NOT_SHOWN.to_owned()];
        if part == "sys.executable" {
            return vec!["python3".to_owned()];
        }
        let Some(inner_depth) = depth.checked_sub(1) else { return not_shown() };
        let is_element = part.ends_with(']') && part.split_once('[').is_some_and(|(name, _)| is_name(name));
        if is_name(part) || is_element {
            let values = self.values(part, depth).into_iter();
            return values
                .map(|value| if let Value::Text(text) = value { text } else { NOT_SHOWN.to_owned() })
                .collect();
        }
        // `Path("build") / "app"`
        let folders = split(part, '/');
        let path = match PATHS.iter().find_map(|name| part.strip_prefix(*name)?.strip_suffix(')')) {
            Some(inner) if end_of_expression(inner, &[]) == inner.len() => split(inner, ','),
            _ if folders.len() > 1 => folders,
            _ => Vec::new(),
        };
        if !path.is_empty() {
            let texts = self.product(path.into_iter(), inner_depth).into_iter();
            return texts.map(|parts| parts.join("/")).collect();
        }
        let mut texts = vec![String::new()];
        let mut rest = part;
        while let Some((literal, is_formatted, behind)) = literal(rest) {
            let added = if is_formatted { self.with_values(&literal, inner_depth) } else { vec![literal] };
            texts = concatenated(texts, &added);
            rest = behind.trim_start();
        }
        match rest {
            "" => texts,
            _ if rest.len() == part.len() => not_shown(),
            _ if rest.starts_with('%') => {
                let values = rest.trim_start_matches('%').trim();
                let values = split(elements_of(values).unwrap_or(values), ',');
                self.in_places(&texts.concat(), SIGNS.as_ref(), &values, inner_depth)
            }
            _ if rest.starts_with(".format(") => {
                let values = rest.strip_prefix(".format(").and_then(|rest| rest.strip_suffix(')')).unwrap_or_default();
                self.in_places(&texts.concat(), BRACES.as_ref(), &split(values, ','), inner_depth)
            }
            _ => not_shown(),
        }
    }

    /// Returns the texts with values in the places of signs such as `%s` or `{}`. If there are not as many values as signs, they
    /// are not shown.
    fn in_places(&self, text: &str, signs: Option<&Regex>, values: &[&str], depth: usize) -> Vec<String> {
        let Some(signs) = signs else { return vec![NOT_SHOWN.to_owned()] };
        let values: Vec<&str> = values.iter().map(|value| value.trim()).filter(|value| !value.is_empty()).collect();
        let places: Vec<regex::Match<'_>> = signs.find_iter(text).collect();
        let is_each = places.len() == values.len() && places.iter().all(|place| matches!(place.as_str(), "%s" | "{}"));
        let (mut texts, mut at) = (vec![String::new()], 0);
        for (index, place) in places.iter().enumerate() {
            let before = text.get(at..place.start()).unwrap_or_default().to_owned();
            let value = values.get(index).filter(|_| is_each);
            let shown = value.map_or_else(|| vec![NOT_SHOWN.to_owned()], |value| self.texts(value, depth));
            texts = concatenated(concatenated(texts, &[before]), &shown);
            at = place.end();
        }
        concatenated(texts, &[text.get(at..).unwrap_or_default().to_owned()])
    }

    /// Returns the texts of an f-string, with the values of its expressions.
    fn with_values(&self, text: &str, depth: usize) -> Vec<String> {
        let mut shown = vec![String::new()];
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once('{') {
            shown = concatenated(shown, &[before.replace("}}", "}")]);
            if let Some(behind) = behind.strip_prefix('{') {
                shown = concatenated(shown, &["{".to_owned()]);
                rest = behind;
                continue;
            }
            let end = end_of_expression(behind, &[':', '!']);
            let (expression, behind) = behind.split_at_checked(end).unwrap_or((behind, ""));
            shown = concatenated(shown, &self.texts(expression, depth));
            rest = behind.split_once('}').map_or("", |(_, behind)| behind);
        }
        concatenated(shown, &[rest.replace("}}", "}")])
    }

    /// Returns the values that the program gives to a variable.
    fn values_of(&self, name: &str, depth: usize) -> Vec<Value> {
        let mut values = self.values_of_parameter(name, depth);
        let mut extended: Vec<usize> = Vec::new();
        let is_parameter = !values.is_empty();
        let places = self.places(name);
        let mut assigned: Vec<(usize, &str)> = Vec::new();
        for &at in &places {
            extended.extend(is_extended(self.around(at, name).1).then_some(at));
            if let Some(expression) = self.assigned(at, name) {
                assigned.push((at, expression));
            } else if let Some((expression, part)) = self.iterated(at, name) {
                values.extend(self.at(at, || self.elements(expression, (None, part), depth)));
                self.has_choice.set(self.has_choice.get() || self.may_skip(at, name));
            } else if self.is_set_otherwise(at, name) {
                values.push(Value::not_shown());
            }
        }
        let is_default = |at: usize| is_parameter && self.around(at, name).0.contains("def ");
        let is_choice = assigned.iter().any(|(at, _)| is_default(*at));
        let assigned = self.last_of(&assigned);
        self.has_choice.set(self.has_choice.get() || is_choice || assigned.len() > 1);
        for &(at, expression) in assigned {
            values.extend(self.at(at, || self.values(expression, depth)));
        }
        if places.len() > MOST_PLACES {
            values.push(Value::not_shown());
        }
        let first = assigned.first().map(|(at, _)| *at);
        for at in extended {
            values = self.longer(values, (at, name), first, depth);
        }
        if values.is_empty() { vec![Value::not_shown()] } else { values }
    }

    /// Returns values with what the program adds to them at a place. If the addition may come later or not at all, also without it.
    fn longer(&self, values: Vec<Value>, (at, name): (usize, &str), first: Option<usize>, depth: usize) -> Vec<Value> {
        let is_before = at < self.place.get();
        let may_repeat = || ["def ", "lambda", "for ", "while "].iter().any(|word| self.masked.contains(word));
        if !is_before && !may_repeat() {
            return values;
        }
        let is_in_branch = first.is_some_and(|first| self.indent(at) > self.indent(first))
            || self.around(at, name).0.trim_end().ends_with(':');
        let is_optional = is_in_branch || !is_before;
        let added = self.added(at, name, depth).filter(|_| first.is_some_and(|first| first < at));
        let added = added.filter(|_| !is_optional || values.len() * 2 <= MOST_TEXTS);
        let is_optional = is_optional && added.is_some();
        self.has_choice.set(self.has_choice.get() || is_optional);
        let mut longer: Vec<Value> = Vec::new();
        for value in values {
            longer.extend(is_optional.then(|| value.clone()));
            longer.push(match (value, &added) {
                (Value::Words(words), Some(Value::Words(added))) => Value::Words([words, added.clone()].concat()),
                (Value::Text(text), Some(Value::Text(added))) => Value::Text(text + added),
                (Value::Words(words), _) => Value::Words([words, vec![NOT_SHOWN.to_owned()]].concat()),
                (Value::Text(text), _) => Value::Text(text + NOT_SHOWN),
            });
        }
        longer
    }

    /// Returns what the program adds to a value at this place, if it is one text or list: `NAME.append(…)`, `NAME += …`.
    fn added(&self, at: usize, name: &str, depth: usize) -> Option<Value> {
        let sign = self.around(at, name).1;
        let behind = |begin: &str| sign.strip_prefix(begin).map(|rest| self.masked.len() - rest.len());
        let mut values = self.at(at, || {
            if let Some(from) = behind(".append(") {
                let element = self.expression(from, &[]);
                self.lists(&[element], depth).into_iter().map(Value::Words).collect::<Vec<_>>()
            } else if let Some(from) = behind(".extend(") {
                self.values(self.expression(from, &[]), depth)
            } else {
                let from = behind("+=").unwrap_or(self.masked.len());
                self.values(self.expression(from, &[';', '\n']), depth)
            }
        });
        values.pop().filter(|_| values.is_empty())
    }

    /// Returns the number of blanks before the line of a place.
    fn indent(&self, at: usize) -> usize {
        let before = self.masked.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default();
        before.len() - before.trim_start().len()
    }

    /// Returns the assignments that may give a variable its value at the current place: only the last one before the place if
    /// all of them run one after the other.
    fn last_of<'b, 'c>(&self, assigned: &'b [(usize, &'c str)]) -> &'b [(usize, &'c str)] {
        let is_line =
            |at: usize| self.masked.get(..at).is_some_and(|before| before.is_empty() || before.ends_with('\n'));
        let has_functions = ["def ", "lambda", "exec(", "eval("].iter().any(|word| self.masked.contains(word));
        let before = assigned.iter().take_while(|(at, _)| *at < self.place.get()).count();
        let last = before.checked_sub(1).and_then(|last| assigned.get(last..before));
        match last {
            Some(last @ [(at, _)])
                if !has_functions && assigned.iter().all(|(at, _)| is_line(*at)) && !self.is_within_brackets(*at) =>
            {
                last
            }
            _ => assigned,
        }
    }

    /// Returns true if the loop with a variable at this place may leave out some of its values: it ends early, or compares the
    /// variable.
    fn may_skip(&self, at: usize, name: &str) -> bool {
        static ENDS: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"\b(?:continue|break|return|exit|raise|if)\b[^\n]*").ok());
        let before = self.masked.get(..at).unwrap_or_default();
        let line = before.get(before.rfind('\n').map_or(0, |end| end + 1)..).unwrap_or_default();
        let indent = line.len() - line.trim_start().len();
        let mut lines = self.masked.get(at..).unwrap_or_default().split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        let is_inner = |line: &&str| {
            let text = line.trim_start();
            text.is_empty() || text.starts_with([']', ')', '}']) || line.len() - text.len() > indent
        };
        let body: String = std::iter::once(first).chain(lines.take_while(is_inner)).collect();
        let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
        let has_name = |found: &str| found.split(|c: char| !is_in_name(c)).any(|word| word == name);
        let ends_or_compares = |found: &str| !found.starts_with("if") || has_name(found);
        ENDS.as_ref().is_none_or(|ends| ends.find_iter(&body).any(|found| ends_or_compares(found.as_str())))
    }

    /// Returns the places of a name in the code.
    fn places(&self, name: &str) -> Vec<usize> {
        let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
        let places = self.masked.match_indices(name).map(|(at, _)| at).filter(|at| {
            let before = self.masked.get(..*at).and_then(|before| before.chars().next_back());
            let behind = self.masked.get(at + name.len()..).and_then(|behind| behind.chars().next());
            let is_other = before.is_some_and(|c| is_in_name(c) || c == '.') || behind.is_some_and(is_in_name);
            !is_other
        });
        places.take(MOST_PLACES + 1).collect()
    }

    /// Returns the part of a line before a name, and the code behind the name.
    fn around(&self, at: usize, name: &str) -> (&'a str, &'a str) {
        let before = self.masked.get(..at).and_then(|before| before.rsplit(['\n', ';']).next()).unwrap_or_default();
        (before, self.masked.get(at + name.len()..).unwrap_or_default().trim_start())
    }

    /// Returns the expression that the program assigns to a variable at this place: `NAME = …`, `NAME: str = …`, `NAME := …`.
    fn assigned(&self, at: usize, name: &str) -> Option<&'a str> {
        let (before, sign) = self.around(at, name);
        let mut from = self.masked.len() - sign.len();
        if sign.starts_with(":=") {
            from += 1;
        } else if sign.starts_with(':') && before.trim().is_empty() {
            from += sign.find(['=', '\n']).filter(|end| sign.get(*end..).is_some_and(|it| it.starts_with('=')))?;
        }
        let rest = self.masked.get(from..)?.strip_prefix('=').filter(|rest| !rest.starts_with('='))?;
        // `a, NAME = …` is none.
        (!before.contains(',') || before.contains('(')).then_some(())?;
        Some(self.expression(self.masked.len() - rest.len(), &[',', ';', '\n']))
    }

    /// Returns the expression over which a loop runs at this place: `for NAME in …`, `for n, NAME in ….items()`. For
    /// `for n, NAME in …`, also which part of each element the variable gets.
    fn iterated(&self, at: usize, name: &str) -> Option<(&'a str, Option<usize>)> {
        let (before, sign) = self.around(at, name);
        let (_, targets) = before.rsplit_once("for ").filter(|(_, targets)| is_target(targets))?;
        let (others, rest) = sign.strip_prefix("in ").map(|rest| ("", rest)).or_else(|| sign.split_once(" in "))?;
        let expression = self.expression(self.masked.len() - rest.len(), &[':', '\n']);
        if others.is_empty() && (targets.is_empty() || expression.ends_with(".items()")) {
            return Some((expression, None));
        }
        let is_plain = |text: &str| is_target(text) && !text.contains(['(', '[', '*']);
        let are_plain = is_plain(targets) && is_plain(others) && (others.is_empty() || others.starts_with(','));
        let is_of_elements = are_plain && !expression.ends_with(".items()");
        is_of_elements.then(|| (expression, Some(targets.matches(',').count())))
    }

    /// Returns true if a variable gets a value at this place in another way than those, or if its first element may change.
    fn is_set_otherwise(&self, at: usize, name: &str) -> bool {
        let (before, sign) = self.around(at, name);
        let line = sign.split(['\n', ';']).next().unwrap_or_default();
        let targets = line.split_once('=').filter(|(_, value)| !value.starts_with('=')).map(|(targets, _)| targets);
        let behind_first = before.trim_start().trim_start_matches(['(', '[']);
        let is_call = || behind_first.contains(['(', '[']) || self.is_within_brackets(at - before.len());
        let is_one_of_several = targets.is_some_and(|targets| {
            let has_sign = before.contains([',', '(', '[']) || targets.contains(',');
            has_sign && is_target(before) && is_target(targets) && !is_call()
        });
        let is_element = sign.starts_with('[') && targets.is_some_and(|targets| targets.trim_end().ends_with(']'));
        let is_loop = before.rsplit_once("for ").is_some_and(|(_, names)| is_target(names))
            && (line.starts_with("in ") || line.contains(" in "));
        let is_as_or_removed = [" as", "del"].iter().any(|word| before.trim_end().ends_with(word));
        is_as_or_removed || is_one_of_several || is_element || is_loop || is_changed(sign)
    }

    /// Returns true if a bracket is open at a place.
    fn is_within_brackets(&self, at: usize) -> bool {
        let mut open = 0_i64;
        for byte in self.masked.get(..at).unwrap_or_default().bytes() {
            open += i64::from(matches!(byte, b'(' | b'[' | b'{')) - i64::from(matches!(byte, b')' | b']' | b'}'));
        }
        open > 0
    }

    /// Returns the values that `NAME[INDEX]` may have.
    fn element(&self, name: &str, index: &str, depth: usize) -> Vec<Value> {
        // `words[1:]`
        if let Some((first, last)) = index.split_once(':') {
            let Some(first) = first.trim().parse::<usize>().ok().filter(|_| last.trim().is_empty()) else {
                return vec![Value::not_shown()];
            };
            let behind = |value: Value| match value {
                Value::Words(words) => Value::Words(words.into_iter().skip(first).collect()),
                Value::Text(_) => Value::not_shown(),
            };
            return self.values_of(name, depth).into_iter().map(behind).collect();
        }
        let is_shown = index.parse::<usize>().is_ok() || index.starts_with(['"', '\'']);
        let values = self.elements(name, (Some(index).filter(|_| is_shown), None), depth);
        self.has_choice.set(self.has_choice.get() || values.len() > 1);
        values
    }

    /// Returns the values of the elements of a list, or of the values of a dictionary. With a key or an index, those of its
    /// element, or of all elements if it is not found. With a part, only this part of each element: the second one of `('a', 'b')`.
    fn elements(&self, expression: &str, (key, part): (Option<&str>, Option<usize>), depth: usize) -> Vec<Value> {
        let Some(depth) = depth.checked_sub(1) else { return vec![Value::not_shown()] };
        let expression = expression.trim();
        let expression =
            [".items()", ".values()"].iter().find_map(|end| expression.strip_suffix(end)).unwrap_or(expression);
        let mut values: Vec<Value> = Vec::new();
        let mut lists: Vec<(usize, &str)> = Vec::new();
        if is_name(expression) {
            for at in self.places(expression) {
                let sign = self.around(at, expression).1;
                match self.assigned(at, expression) {
                    Some(list) => lists.push((at, list)),
                    None if is_extended(sign) || self.is_set_otherwise(at, expression) => {
                        values.push(Value::not_shown())
                    }
                    None => {}
                }
            }
        } else {
            lists.push((self.place.get(), expression));
        }
        let lists = self.last_of(&lists);
        self.has_choice.set(self.has_choice.get() || lists.len() > 1);
        for &(at, list) in lists {
            let Some(elements) = elements_of(list).or_else(|| list.strip_prefix('{')?.strip_suffix('}')) else {
                values.push(Value::not_shown());
                continue;
            };
            let is_dictionary = list.starts_with('{');
            let elements = split(elements, ',').into_iter().filter(|element| !element.trim().is_empty());
            let keys_and_values: Vec<(String, &str)> = elements
                .enumerate()
                .map(|(index, element)| match split(element, ':').as_slice() {
                    [key, value, ..] if is_dictionary => (key.trim().replace('"', "'"), *value),
                    _ => (index.to_string(), element),
                })
                .collect();
            // The elements of `[*others, c]` and `{**others, k: c}` are not all shown.
            let is_whole = keys_and_values.iter().all(|(_, value)| !value.trim_start().starts_with('*'));
            let key = key.filter(|_| is_whole).map(|key| key.replace('"', "'"));
            // Of two elements with the same key, the last one counts.
            let of_key =
                keys_and_values.iter().rev().find(|(own, _)| Some(own) == key.as_ref()).map(|(_, value)| *value);
            let all = keys_and_values.iter().map(|(_, value)| *value).filter(|_| of_key.is_none());
            let shown = |value: &str| match part {
                None => self.values(value, depth),
                Some(index) => match part_of(value.trim(), index).filter(|_| !is_dictionary) {
                    Some(part) => self.values(part, depth),
                    None => vec![Value::not_shown()],
                },
            };
            values.extend(of_key.into_iter().chain(all).flat_map(|value| self.at(at, || shown(value))));
        }
        if values.is_empty() { vec![Value::not_shown()] } else { values }
    }

    /// Returns the values that calls give to parameters with this name.
    fn values_of_parameter(&self, name: &str, depth: usize) -> Vec<Value> {
        static FUNCTIONS: LazyLock<Option<Regex>> =
            LazyLock::new(|| Regex::new(r"\bdef\s+(\w+)\s*\(([^:)]*(?::[^,)\n]*,[^:)]*)*)|\blambda\b([^:\n]*)").ok());
        let mut values: Vec<Value> = Vec::new();
        let Some(functions) = FUNCTIONS.as_ref() else { return vec![Value::not_shown()] };
        for found in functions.captures_iter(self.masked).take(MOST) {
            let parameters = found.get(2).or(found.get(3)).map_or("", |parameters| parameters.as_str());
            let names: Vec<&str> =
                parameters.split(',').map(|part| part.split([':', '=']).next().unwrap_or_default().trim()).collect();
            let Some(index) = names.iter().position(|parameter| parameter.trim_start_matches('*') == name) else {
                continue;
            };
            let is_method = matches!(names.first(), Some(&("self" | "cls")));
            let own = names.get(index).copied().unwrap_or_default();
            match found.get(1).filter(|_| !own.starts_with("**")) {
                Some(function) => {
                    let index = index.saturating_sub(usize::from(is_method));
                    values.extend(self.values_in_calls(function.as_str(), (own, index), depth));
                }
                None => values.push(Value::not_shown()),
            }
        }
        values
    }

    /// Returns the values that a parameter has in the calls of a function. Its default value is read as an assignment.
    fn values_in_calls(&self, function: &str, (name, index): (&str, usize), depth: usize) -> Vec<Value> {
        let mut values: Vec<Value> = Vec::new();
        let mut is_called = false;
        for at in self.places_of_function(function) {
            let (before, sign) = self.around(at, function);
            if before.trim_end().ends_with("def") {
                continue;
            }
            // A function that is a value may be called with any argument.
            let Some(rest) = sign.strip_prefix('(') else {
                values.push(Value::not_shown());
                continue;
            };
            is_called = true;
            let arguments = split(self.expression(self.masked.len() - rest.len(), &[]), ',');
            let is_keyword = |argument: &&&str| argument.split_once('=').is_some_and(|(key, _)| is_name(key.trim()));
            if name.starts_with('*') {
                let rest: Vec<&str> = arguments.iter().skip(index).filter(|it| !is_keyword(it)).copied().collect();
                values.extend(self.lists(&rest, depth).into_iter().map(Value::Words));
                continue;
            }
            let keyword = arguments.iter().find_map(|argument| {
                argument.split_once('=').filter(|(key, _)| key.trim() == name).map(|(_, value)| value)
            });
            let argument = keyword.or(arguments.get(index).copied()).filter(|argument| !argument.trim().is_empty());
            values.extend(argument.into_iter().flat_map(|argument| self.values(argument, depth)));
        }
        if !is_called {
            values.push(Value::not_shown());
        }
        values
    }

    /// Returns the places of a function or a method of the program, without those of the modules that run commands.
    fn places_of_function(&self, name: &str) -> Vec<usize> {
        let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
        let places = self.masked.match_indices(name).map(|(at, _)| at).filter(|at| {
            let before = self.masked.get(..*at).unwrap_or_default();
            let behind = self.masked.get(at + name.len()..).unwrap_or_default();
            let is_other = ["subprocess.", "sp.", "os."].iter().any(|module| before.ends_with(module));
            !is_other && !before.ends_with(is_in_name) && !behind.starts_with(is_in_name)
        });
        places.take(MOST_PLACES).collect()
    }
}

/// Returns each text with each of the others behind it, or with one that is not shown if there are too many.
fn concatenated(mut texts: Vec<String>, added: &[String]) -> Vec<String> {
    match added {
        [only] => {
            texts.iter_mut().for_each(|text| text.push_str(only));
            texts
        }
        added if !added.is_empty() && added.len() * texts.len() <= MOST_TEXTS => {
            texts.iter().flat_map(|text| added.iter().map(move |behind| format!("{text}{behind}"))).collect()
        }
        _ => concatenated(texts, &[NOT_SHOWN.to_owned()]),
    }
}

/// Returns each list with each of the others behind it, or with a text that is not shown if there are too many.
fn joined(mut lists: Vec<Vec<String>>, added: Vec<Vec<String>>) -> Vec<Vec<String>> {
    let is_shown = added.len() == 1 || !added.is_empty() && added.len() * lists.len() <= MOST_TEXTS;
    let added = if is_shown { added } else { vec![vec![NOT_SHOWN.to_owned()]] };
    if let [only] = added.as_slice() {
        lists.iter_mut().for_each(|list| list.extend_from_slice(only));
        return lists;
    }
    let pairs = lists.iter().flat_map(|list| added.iter().map(move |behind| (list, behind)));
    pairs.map(|(list, behind)| [list.as_slice(), behind.as_slice()].concat()).collect()
}

/// Returns true if code behind a name makes its value longer.
fn is_extended(sign: &str) -> bool {
    [".append(", ".extend(", "+="].iter().any(|begin| sign.starts_with(begin))
}

/// Returns true if code behind a name changes the elements of its value.
fn is_changed(sign: &str) -> bool {
    [".insert(", ".pop(", ".remove(", ".reverse(", ".setdefault(", ".sort(", ".update("]
        .iter()
        .any(|begin| sign.starts_with(begin))
}

/// Returns true if a text can be a part of the targets of an assignment or a loop.
fn is_target(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | ',' | ' ' | '\t' | '(' | ')' | '[' | ']' | '*'))
}

/// Returns the elements of a list or a tuple that is the whole expression.
fn elements_of(expression: &str) -> Option<&str> {
    let elements = expression.strip_prefix(['[', '('])?;
    let elements = elements.get(..elements.len().checked_sub(1)?)?;
    (end_of_expression(elements, &[]) == elements.len()).then_some(elements)
}

/// Returns a part of a list or a tuple.
fn part_of(expression: &str, index: usize) -> Option<&str> {
    let parts = split(elements_of(expression)?, ',');
    let is_whole = parts.iter().all(|part| !part.trim_start().starts_with('*'));
    parts.get(index).copied().filter(|_| is_whole)
}

/// Returns the two values of `A if C else B`.
fn alternatives(expression: &str) -> Option<(&str, &str)> {
    let (mut at, mut first) = (0, None);
    for part in split(expression, ' ') {
        match (part, first) {
            ("if", None) => first = expression.get(..at),
            ("else", Some(first)) => return Some((first, expression.get(at + part.len()..)?)),
            _ => {}
        }
        at += part.len() + 1;
    }
    None
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

/// Returns the text in quotes at the beginning of code, whether it is an f-string, and what follows it.
fn literal(code: &str) -> Option<(String, bool, &str)> {
    let start = code.find(['"', '\''])?;
    let prefix = code.get(..start)?.to_ascii_lowercase();
    if !matches!(prefix.as_str(), "" | "f" | "r" | "b" | "u" | "rf" | "fr" | "rb" | "br") {
        return None;
    }
    let (text, behind) = code.get(start..)?.split_at_checked(end_of_text(code.get(start..)?))?;
    let size = if text.len() >= 6 && (text.starts_with("\"\"\"") || text.starts_with("'''")) { 3 } else { 1 };
    let inner = text.get(size..text.len().checked_sub(size)?)?;
    Some((unescaped(inner), prefix.contains('f'), behind))
}
