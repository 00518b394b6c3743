//! The words of a command after the substitutions whose values the command line shows.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::runners::NOT_SHOWN;
use super::tokens::{Operator, Piece, Redirection, Token, Way, Word};

/// The variables that shells set themselves.
const SET_BY_SHELLS: [&str; 4] = ["_", "REPLY", "OPTARG", "MAPFILE"];
/// The maximum size in bytes of a variable's value that is kept.
const LONGEST: usize = 4096;
/// The maximum size in bytes of all elements of a list that are kept.
const LONGEST_LIST: usize = 64 << 10;
/// The maximum number of values of a loop.
const MOST_VALUES: usize = 1024;
/// The maximum number of variables of a command that are read with each of their possible values.
pub(super) const MOST_CHOSEN: usize = 2;
/// The maximum number of values of which a variable may have one.
const MOST_POSSIBLE: usize = 8;
/// The maximum number of branches whose values are joined.
const MOST_BRANCHES: usize = 64;
/// The maximum number of variables whose values arithmetic may read.
const MOST_NAMES: usize = 64;
/// The maximum number of written files that are compared with a path in another folder.
const MOST_FILES: usize = 256;
/// The maximum size in bytes of all values that are put in the place of variables.
const BUDGET: usize = 1 << 20;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// The value is not shown.
    Unknown,
    One(String),
    /// A text that is known behind this place, as `$HOME/bin/x`.
    Partly {
        text: String,
        unknown_to: usize,
        is_output: bool,
    },
    /// One of these, as in a loop.
    Among(Vec<String>),
    /// The elements of an array.
    List(Vec<String>),
    /// One of these, because a branch may set the variable.
    Maybe(Vec<Self>),
}

impl Value {
    /// Makes the value that is one of others.
    fn one_of(values: &[&Self]) -> Self {
        let mut distinct: Vec<&Self> = Vec::new();
        for &value in values {
            let parts = if let Self::Maybe(parts) = value { parts.as_slice() } else { std::slice::from_ref(value) };
            for part in parts {
                if !distinct.contains(&part) {
                    distinct.push(part);
                }
                if distinct.len() > MOST_POSSIBLE {
                    return Self::Unknown;
                }
            }
        }
        match distinct.as_slice() {
            [only] => (*only).clone(),
            all => Self::Maybe(all.iter().map(|value| (*value).clone()).collect()),
        }
    }

    /// Returns the size of the texts in bytes.
    fn size(&self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::One(text) | Self::Partly { text, .. } => text.len(),
            Self::Among(texts) | Self::List(texts) => texts.iter().map(String::len).sum(),
            Self::Maybe(values) => values.iter().map(Self::size).sum(),
        }
    }

    fn may_be_unknown(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Maybe(values) => values.contains(&Self::Unknown),
            _ => false,
        }
    }

    /// Returns the known texts.
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Unknown => Vec::new(),
            Self::One(text) | Self::Partly { text, .. } => vec![text.as_str()],
            Self::Among(texts) | Self::List(texts) => texts.iter().map(String::as_str).collect(),
            Self::Maybe(values) => values.iter().flat_map(Self::texts).collect(),
        }
    }
}

/// A variable that has one of several values.
pub(super) struct Varying {
    pub name: String,
    pub values: Vec<Value>,
    /// True if commands run for each of the values, as in a loop. Otherwise, they run for one of them.
    pub is_loop: bool,
    whole: Value,
}

/// The branches of `if`, `case`, a loop, or a list of commands.
#[derive(Debug, Default)]
pub(super) struct Branches {
    /// The number of changes of variables before the branches.
    mark: usize,
    /// The variables that each of the earlier branches changed.
    ended: Vec<BTreeMap<String, Value>>,
    /// True if one of the branches runs in any case.
    pub is_complete: bool,
}

impl Branches {
    /// Returns true if the first of the branches has ended.
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }
}

/// The variables that a command line sets.
#[derive(Debug)]
pub(super) struct Variables {
    values: HashMap<String, Value>,
    /// The variables whose values are never known: those that refer to others, and those that change what is assigned to them.
    hidden: HashSet<String>,
    /// The changed variables, with their values before each change.
    log: Vec<(String, Option<Value>)>,
    /// The texts that the functions of the line print.
    prints: HashMap<String, String>,
    /// True if arithmetic reads a variable whose value is not shown.
    evaluates_unknown: Cell<bool>,
    /// The texts of the files that the line writes.
    files: BTreeMap<String, String>,
    /// The files that the line changes in a way that it does not show.
    changed: HashSet<String>,
    left: Cell<usize>,
}

impl Default for Variables {
    fn default() -> Self {
        Self {
            values: HashMap::new(),
            hidden: HashSet::new(),
            log: Vec::new(),
            prints: HashMap::new(),
            evaluates_unknown: Cell::new(false),
            files: BTreeMap::new(),
            changed: HashSet::new(),
            left: Cell::new(BUDGET),
        }
    }
}

impl Variables {
    fn set(&mut self, name: &str, value: Value) {
        let before = self.put(name, value);
        self.log.push((name.to_owned(), before));
    }

    /// Sets a variable for a while, and returns its value before.
    fn put(&mut self, name: &str, value: Value) -> Option<Value> {
        let most = if matches!(value, Value::One(_) | Value::Partly { .. }) { LONGEST } else { LONGEST_LIST };
        let is_kept = value.size() <= most && !self.hidden.contains(name) && !SET_BY_SHELLS.contains(&name);
        self.values.insert(name.to_owned(), if is_kept { value } else { Value::Unknown })
    }

    /// Begins branches, a subshell, or a function.
    pub fn branches(&self) -> Branches {
        Branches { mark: self.log.len(), ..Branches::default() }
    }

    /// Begins the first branch here, behind the condition.
    pub fn first_branch(&self, branches: &mut Branches) {
        if !branches.has_ended() {
            branches.mark = self.log.len();
        }
    }

    /// Ends a branch. The next one begins with the values before the branches.
    pub fn end_branch(&mut self, branches: &mut Branches) {
        let changed = self.undo(branches);
        branches.ended.push(changed);
    }

    /// Ends a branch whose changes the next one may see: `a && x=1 || x=2`. There is no third one.
    pub fn end_first_of_two(&mut self, branches: &mut Branches) {
        let changed = self.undo(branches);
        changed.iter().for_each(|(name, value)| self.may_be(name, value));
        branches.ended.push(changed);
        branches.is_complete = true;
    }

    /// Ends the last branch, and joins all of them.
    pub fn end(&mut self, mut branches: Branches) {
        self.end_branch(&mut branches);
        self.join(branches);
    }

    /// Joins branches that have ended: each variable that one of them changes has one of several values.
    pub fn join(&mut self, mut branches: Branches) {
        if !branches.is_complete {
            branches.ended.push(BTreeMap::new());
        }
        let names: BTreeSet<&String> = branches.ended.iter().flat_map(BTreeMap::keys).collect();
        for name in names {
            let before = self.value(name);
            let values: Vec<&Value> =
                branches.ended.iter().take(MOST_BRANCHES).map(|changed| changed.get(name).unwrap_or(&before)).collect();
            let has_room = branches.ended.len() <= MOST_BRANCHES
                && self.take(values.iter().map(|value| value.size()).sum::<usize>());
            self.set(name, if has_room { Value::one_of(&values) } else { Value::Unknown });
        }
    }

    /// Undoes the changes since branches began, and returns the variables that they changed.
    pub fn undo(&mut self, branches: &Branches) -> BTreeMap<String, Value> {
        let mut changed = BTreeMap::new();
        while self.log.len() > branches.mark
            && let Some((name, before)) = self.log.pop()
        {
            let now = match before {
                Some(before) => self.values.insert(name.clone(), before),
                None => self.values.remove(&name),
            };
            if let Some(now) = now {
                changed.entry(name).or_insert(now);
            }
        }
        changed
    }

    /// Adds the values that a variable may have besides its own.
    pub fn may_be(&mut self, name: &str, value: &Value) {
        let before = self.value(name);
        let has_room = self.take(value.size());
        let value = if has_room { Value::one_of(&[&before, value]) } else { Value::Unknown };
        if value != before {
            self.set(name, value);
        }
    }

    /// Adds the value that a later assignment gives to a variable.
    pub fn may_assign(&mut self, assignment: &Assignment) {
        self.may_be(&assignment.name, &assignment.value);
    }

    /// Returns the value of a variable. A variable that the line did not set yet is empty, except for the arguments `@`.
    fn value(&self, name: &str) -> Value {
        let default = || if name == "@" { Value::Unknown } else { Value::One(String::new()) };
        self.values.get(name).cloned().unwrap_or_else(default)
    }

    /// Records the text that a function prints.
    pub fn set_printed(&mut self, function: &str, text: String) {
        self.prints.insert(function.to_owned(), text);
    }

    /// Returns the text that a function of the line prints.
    pub fn printed_by(&self, function: &str) -> Option<&str> {
        self.prints.get(function).map(String::as_str)
    }

    /// Returns true if arithmetic reads a variable whose value is not shown.
    pub fn evaluates_unknown(&self) -> bool {
        self.evaluates_unknown.get()
    }

    /// Returns true if the shell runs a substitution when it reads a text as arithmetic or as the name of a variable: in the text,
    /// or in the value of a variable that the text names.
    pub fn runs_code<'a>(&'a self, text: &'a str) -> bool {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut texts = vec![text];
        while let Some(text) = texts.pop() {
            if has_code(text) || seen.len() > MOST_NAMES {
                return true;
            }
            for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                if let Some(value) = self.values.get(name).filter(|_| seen.insert(name)) {
                    if value.may_be_unknown() {
                        self.evaluates_unknown.set(true);
                    }
                    texts.extend(value.texts());
                }
            }
        }
        false
    }

    /// Sets a variable to values that are not shown, whatever is assigned to it later.
    pub fn hide(&mut self, name: &str) {
        self.hidden.insert(name.to_owned());
        self.forget(name);
    }

    /// Returns true if the line sets a variable.
    pub fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Sets a variable to a value that is not shown.
    pub fn forget(&mut self, name: &str) {
        self.set(name, Value::Unknown);
    }

    /// Forgets all values, because other code may have changed them.
    pub fn forget_all(&mut self) {
        let known = self.values.iter().filter(|(_, value)| **value != Value::Unknown);
        for name in known.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.forget(&name);
        }
    }

    /// Sets the elements of an array, or the arguments `@`.
    pub fn set_list(&mut self, name: &str, words: &[Argument]) {
        let is_known = words.iter().all(Argument::is_known);
        let texts = words.iter().map(|word| word.text.clone()).collect();
        self.set(name, if is_known { Value::List(texts) } else { Value::Unknown });
    }

    /// Sets the variable of a loop to one of these values. Returns false if there are too many.
    pub fn set_among(&mut self, name: &str, words: &[Argument]) -> bool {
        let is_known = !words.is_empty() && words.iter().all(Argument::is_known);
        let size: usize = words.iter().map(|word| word.text.len()).sum();
        let has_room = words.len() <= MOST_VALUES && size <= LONGEST_LIST;
        let texts = words.iter().map(|word| word.text.clone()).collect();
        self.set(name, if is_known && has_room { Value::Among(texts) } else { Value::Unknown });
        has_room
    }

    /// Sets a variable, as an assignment does.
    pub fn assign(&mut self, assignment: Assignment) {
        self.set(&assignment.name, assignment.value);
    }

    /// Returns the first variable of the words that has one of several values: one of a loop, or, if `with_possible` is true,
    /// one that a branch may set.
    pub fn varying(&self, words: &[&Word], with_possible: bool) -> Option<Varying> {
        let all = || words.iter().flat_map(|word| &word.pieces).filter_map(|piece| self.varying_of(piece));
        all().find(|varying| varying.is_loop).or_else(|| all().next().filter(|_| with_possible))
    }

    fn varying_of(&self, piece: &Piece) -> Option<Varying> {
        let Piece::Variable { name, is_changed, inner, .. } = piece else { return None };
        let name = if name == "*" { "@" } else { name.as_str() };
        let has_default = || first_text(inner).is_some_and(|text| text.starts_with([':', '-', '=', '[']));
        let whole = self.values.get(name)?;
        let (values, is_loop) = match whole {
            Value::Among(texts) if !is_changed => (texts.iter().cloned().map(Value::One).collect(), true),
            Value::Maybe(values) if !is_changed || has_default() => (values.clone(), false),
            _ => return None,
        };
        Some(Varying { name: name.to_owned(), values, is_loop, whole: whole.clone() })
    }

    /// Sets a variable to one of its values.
    pub fn choose(&mut self, name: &str, value: Value) {
        self.put(name, value);
    }

    /// Sets a variable back to its values.
    pub fn restore(&mut self, varying: Varying) {
        self.put(&varying.name, varying.whole);
    }

    /// Sets the variables that words such as `${NAME:=x}` set.
    pub fn set_defaults(&mut self, word: &Word) {
        for piece in &word.pieces {
            let Piece::Variable { name, inner, .. } = piece else { continue };
            let default = first_text(inner).and_then(|text| text.strip_prefix(":=").or_else(|| text.strip_prefix('=')));
            if let Some(default) = default.filter(|_| !self.values.contains_key(name)) {
                let value = if inner.len() == 1 { Value::One(default.to_owned()) } else { Value::Unknown };
                self.set(name, value);
            }
        }
    }

    fn one(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Value::One(text) => Some(text),
            _ => None,
        }
    }

    fn list(&self, name: &str) -> Option<&[String]> {
        match self.values.get(name)? {
            Value::List(texts) => Some(texts),
            _ => None,
        }
    }

    /// Returns true if it is not known where the shell splits a value without quotes, because the line sets `IFS`.
    fn may_split(&self, value: &str) -> bool {
        match self.values.get("IFS") {
            None => false,
            Some(Value::One(signs)) => value.contains(|c: char| c.is_whitespace() || signs.contains(c)),
            Some(_) => true,
        }
    }

    /// Returns the text of a file that the line writes.
    pub fn file(&self, path: &str) -> Option<&str> {
        let path = file_name(path);
        if let Some(text) = self.files.get(path) {
            return Some(text);
        }
        // After `cd`, and behind a wildcard.
        let last = path.rsplit('/').next().unwrap_or_default();
        let is_end = |long: &str, short: &str| {
            long.strip_suffix(short.trim_start_matches("../")).is_some_and(|folder| folder.ends_with('/'))
        };
        let (begin, end) = (last.split(['*', '?', '[']).next(), last.rsplit(['*', '?', ']']).next());
        let is_glob = last.contains(['*', '?', '[']);
        let is_same = |name: &str| match is_glob {
            true => {
                let name = name.rsplit('/').next().unwrap_or_default();
                begin.is_some_and(|begin| name.starts_with(begin)) && end.is_some_and(|end| name.ends_with(end))
            }
            false => is_end(path, name) || is_end(name, path),
        };
        // `find -exec sh {}` may run each script.
        let is_script = |name: &str| name.ends_with(".sh") || !name.contains('.');
        let mut files = self.files.iter().take(MOST_FILES);
        if path == "{}" {
            return files.any(|(name, _)| is_script(name)).then_some(NOT_SHOWN);
        }
        files.find(|(name, _)| is_same(name)).map(|(_, text)| text.as_str())
    }

    /// Adds a line to a file.
    pub fn write(&mut self, path: &str, text: &str) {
        self.files.entry(file_name(path).to_owned()).or_default().push_str(&format!("{text}\n"));
    }

    /// Records that the text of a file may have changed.
    pub fn change(&mut self, path: &str) {
        self.changed.insert(file_name(path).to_owned());
    }

    /// Adds what a group of commands prints to a file.
    pub fn write_printed(&mut self, path: &str, printed: &str) {
        if printed.is_empty() { self.change(path) } else { self.write(path, printed) }
    }

    /// Returns what `cat` prints for these files, without the line feeds at its end, if the line shows all of it.
    fn text_of_files(&self, paths: &[Argument]) -> Option<String> {
        let is_same = |path: &Argument| !self.changed.contains(file_name(&path.text));
        let texts = paths.iter().filter(|path| is_same(path)).map(|path| self.file(&path.text));
        let texts: Vec<&str> = texts.collect::<Option<_>>()?;
        let size: usize = texts.iter().map(|text| text.len()).sum();
        let is_whole = texts.len() == paths.len() && !texts.is_empty() && size <= self.left.get();
        let text = is_whole.then(|| texts.concat().trim_end_matches('\n').to_owned());
        text.filter(|text| !text.contains(NOT_SHOWN))
    }

    /// Takes room for a value, or returns false if the values are too long.
    fn take(&self, size: usize) -> bool {
        let left = self.left.get().checked_sub(size);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }
}

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Argument {
    /// The text. Substitutions whose values are unknown stay as they are written.
    pub text: String,
    /// The end of the last part of the text whose value is unknown.
    unknown_to: Option<usize>,
    /// True if the last unknown part is the output of a command.
    is_output: bool,
    /// True if a part in quotes belongs to the word.
    pub is_quoted: bool,
    /// True if the word has wildcards.
    is_glob: bool,
    /// The content of the file that the word names, if the word is `<(…)` and shows it.
    pub content: Option<String>,
}

/// The program of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Program<'a> {
    /// The name without its folder.
    Named(&'a str),
    /// The output of a command, which is not shown.
    Output,
    /// A value that is not shown.
    Unknown,
}

impl Argument {
    /// Makes a word of a text.
    pub fn of(text: &str) -> Self {
        let mut word = Self::default();
        word.push(text);
        word
    }

    /// Adds a text to the word.
    fn push(&mut self, text: &str) {
        if let Some(at) = text.rfind(NOT_SHOWN) {
            (self.unknown_to, self.is_output) = (Some(self.text.len() + at + NOT_SHOWN.len()), false);
        }
        self.text.push_str(text);
    }

    /// Returns true if the line shows the text.
    pub fn is_known(&self) -> bool {
        self.unknown_to.is_none()
    }

    /// Returns the program that the word names.
    pub fn program(&self) -> Program<'_> {
        let folder = self.text.rfind('/').map_or(0, |at| at + 1);
        let name = self.text.get(folder..).unwrap_or_default();
        // Of a longer name, the beginning shows which program it is.
        let is_pattern = self.is_glob
            && match name.strip_prefix('[') {
                // `[r]m`, but not `[`, and not `[Console]::Clear` of PowerShell.
                Some(rest) => rest.split_once(']').is_some_and(|(set, behind)| {
                    !set.is_empty() && !set.starts_with('[') && !behind.starts_with([':', ']'])
                }),
                None => name.find(['*', '?', '[']).is_some_and(|at| at < 3),
            };
        // Braces that were not read may make any name: `r{m..m}`.
        let inner = name.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        let has_braces = inner.is_some_and(|(inner, _)| inner.contains(',') || inner.contains(".."));
        match self.unknown_to {
            Some(end) if folder < end && self.is_output => Program::Output,
            Some(end) if folder < end => Program::Unknown,
            _ if is_pattern || has_braces => Program::Unknown,
            _ => Program::Named(if name.is_empty() { &self.text } else { name }),
        }
    }

    /// Returns true if the word is all arguments that a function or a script was called with, or one of them.
    pub fn is_argument_of_function(&self) -> bool {
        let name = self.text.strip_prefix('$').filter(|_| !self.is_known());
        name.is_some_and(|name| matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Returns the word in the normal form: blanks within it are shown by signs, so that a pattern can tell them from the
    /// blanks between words.
    pub fn form(&self) -> String {
        if self.text.is_empty() { "''".to_owned() } else { joined(&self.text) }
    }
}

/// Returns a text as one word.
pub(super) fn joined(text: &str) -> String {
    let sign = |c: char| match c {
        '\n' => '␤',
        _ if c.is_whitespace() => '␣',
        _ => c,
    };
    text.replace(NOT_SHOWN, "$_").chars().map(sign).collect()
}

/// Expands a word. A variable without quotes can become several words, or none.
pub(super) fn expand(word: &Word, variables: &Variables) -> Vec<Argument> {
    let mut expansion = Expansion { variables, words: Vec::new(), current: None };
    expansion.add(&word.pieces);
    let words = expansion.finish();
    if let [only] = words.as_slice()
        && !only.is_quoted
        && only.is_known()
        && let Some(all) = alternatives(&only.text)
    {
        return all.into_iter().map(|text| Argument { text, is_glob: only.is_glob, ..Argument::default() }).collect();
    }
    words
}

/// Returns the words of `a{b,c}d`, if a text has this form.
fn alternatives(text: &str) -> Option<Vec<String>> {
    let (start, rest) = text.split_once('{')?;
    let (inner, end) = rest.split_once('}')?;
    let is_plain = inner.contains(',') && !inner.contains('{') && !end.contains('{') && !start.ends_with('$');
    is_plain.then(|| inner.split(',').map(|part| format!("{start}{part}{end}")).filter(|it| !it.is_empty()).collect())
}

struct Expansion<'a> {
    variables: &'a Variables,
    words: Vec<Argument>,
    current: Option<Argument>,
}

impl Expansion<'_> {
    fn finish(mut self) -> Vec<Argument> {
        self.words.extend(self.current.take());
        self.words
    }

    fn add(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match piece {
                Piece::Text { text, is_quoted } => {
                    let word = self.current.get_or_insert_default();
                    word.push(text);
                    word.is_quoted |= *is_quoted;
                    word.is_glob |= !is_quoted && text.contains(['*', '?', '[']);
                }
                Piece::Variable { name, is_quoted: false, .. } if name == "IFS" => {
                    self.words.extend(self.current.take());
                }
                Piece::Variable { name, is_changed, is_quoted, inner } => {
                    self.variable(name, *is_changed, *is_quoted, inner);
                }
                Piece::Output { tokens, text, is_quoted } => match printed(tokens, self.variables) {
                    Some(value) => self.known(&value, *is_quoted),
                    None => self.unknown(&format!("$({})", text.trim()), true, *is_quoted),
                },
                Piece::Group { sign, tokens, text } => {
                    let shown = match sign {
                        '=' | '?' => format!("({text})"),
                        sign => format!("{sign}({})", text.trim()),
                    };
                    self.unknown(&shown, false, false);
                    if let Some(word) = self.current.as_mut().filter(|_| *sign == '<') {
                        word.content = printed(tokens, self.variables);
                    }
                }
            }
        }
    }

    fn variable(&mut self, name: &str, is_changed: bool, is_quoted: bool, inner: &[Piece]) {
        let behind = match inner {
            [Piece::Text { text, .. }] => text.as_str(),
            _ => "",
        };
        let index = behind.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')?.parse::<usize>().ok());
        let list = match (name, behind, index) {
            ("@" | "*", "", _) => self.variables.list("@"),
            (_, "[@]" | "[*]", _) => self.variables.list(name),
            (_, _, Some(index)) => self.variables.list(name).and_then(|list| list.get(index..=index)),
            _ => None,
        };
        if let Some(list) = list {
            for (index, text) in list.iter().enumerate() {
                if index > 0 {
                    self.words.extend(self.current.take());
                }
                self.known(text, true);
            }
            return;
        }
        // A value for the case that the variable is not set.
        let default = [":-", ":=", "-", "="].iter().find_map(|sign| first_text(inner)?.strip_prefix(*sign));
        let is_empty = self.variables.one(name) == Some("") && first_text(inner).is_some_and(|it| it.starts_with(':'));
        match self.variables.one(name) {
            Some(value) if !is_changed || default.is_some() && !is_empty => {
                let value = value.to_owned();
                self.known(&value, is_quoted);
            }
            _ => match default {
                _ if !is_changed && self.partly(name, is_quoted) => {}
                Some(first) if is_empty || !self.variables.values.contains_key(name) => {
                    let first = first.to_owned();
                    self.known(&first, is_quoted);
                    self.add(inner.get(1..).unwrap_or_default());
                }
                _ if is_changed && !name.starts_with(['(', '[']) => {
                    self.unknown(&format!("${{{name}…}}"), false, is_quoted);
                }
                _ => self.unknown(&format!("${name}"), false, is_quoted),
            },
        }
    }

    /// Adds a value that is known in part, if the variable has one.
    fn partly(&mut self, name: &str, is_quoted: bool) -> bool {
        let Some(Value::Partly { text, unknown_to, is_output }) = self.variables.values.get(name) else { return false };
        if !self.variables.take(text.len()) {
            return false;
        }
        let word = self.current.get_or_insert_default();
        (word.unknown_to, word.is_output) = (Some(word.text.len() + unknown_to), *is_output);
        word.text.push_str(text);
        word.is_quoted |= is_quoted;
        true
    }

    fn unknown(&mut self, shown: &str, is_output: bool, is_quoted: bool) {
        let word = self.current.get_or_insert_default();
        word.text.push_str(shown);
        (word.unknown_to, word.is_output) = (Some(word.text.len()), is_output);
        word.is_quoted |= is_quoted;
    }

    /// Adds a value, which the shell splits at blanks unless it is in quotes.
    fn known(&mut self, value: &str, is_quoted: bool) {
        if !self.variables.take(value.len()) || !is_quoted && self.variables.may_split(value) {
            return self.unknown("$…", false, is_quoted);
        }
        // A loop gives the names of files to its variable.
        let is_glob = value.contains(['*', '?', '[']);
        if is_quoted {
            let word = self.current.get_or_insert_default();
            word.push(value);
            (word.is_quoted, word.is_glob) = (true, word.is_glob || is_glob);
            return;
        }
        if value.starts_with(char::is_whitespace) {
            self.words.extend(self.current.take());
        }
        let mut parts = value.split_whitespace().peekable();
        while let Some(part) = parts.next() {
            let word = self.current.get_or_insert_default();
            word.push(part);
            word.is_glob |= is_glob;
            if parts.peek().is_some() || value.ends_with(char::is_whitespace) {
                self.words.extend(self.current.take());
            }
        }
    }
}

fn first_text(pieces: &[Piece]) -> Option<&str> {
    match pieces.first()? {
        Piece::Text { text, .. } => Some(text),
        _ => None,
    }
}

/// Returns the name of a file without the current folder.
fn file_name(path: &str) -> &str {
    ["./", "$PWD/", "$(pwd)/"].iter().find_map(|folder| path.strip_prefix(folder)).unwrap_or(path)
}

/// Returns what commands print, if their own words show it: `echo rm`, `which rm`, `cat <<E`.
fn printed(tokens: &[Token], variables: &Variables) -> Option<String> {
    let (mut words, mut text, mut file) = (Vec::new(), None, None);
    for token in tokens {
        match token {
            Token::Word(word) => words.extend(expand(word, variables)),
            Token::Redirection(redirection) if redirection.way == Way::Text => {
                let target = expand(&redirection.target, variables);
                text = Some(target.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" "));
            }
            Token::Redirection(Redirection { way: Way::From, target }) if target.plain() != Some("/dev/null") => {
                let target = expand(target, variables);
                file = Some(variables.text_of_files(&target)?);
            }
            // What `which` reports besides the path is not printed.
            Token::Redirection(redirection) if redirection.target.plain() == Some("/dev/null") => {}
            Token::Stream { .. } => {}
            // `which a || which b`, and the line feed behind a here-document.
            Token::Operator(Operator::End | Operator::And | Operator::Or) if is_search(&words) => break,
            Token::Operator(Operator::End | Operator::And | Operator::Or) => {}
            _ => return None,
        }
    }
    // `$(< FILE)`, `$(cat < FILE)`, `$(cat FILE)`
    match words.as_slice() {
        [] => return file,
        [only] if only.text == "cat" && file.is_some() => return file,
        _ if file.is_some() => return None,
        [first, files @ ..] if first.text == "cat" && !files.is_empty() => {
            if let Some(text) = variables.text_of_files(files) {
                return Some(text);
            }
        }
        _ => {}
    }
    if !words.iter().all(Argument::is_known) {
        return None;
    }
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    match texts.as_slice() {
        [name] if variables.printed_by(name).is_some() => {
            variables.printed_by(name).filter(|text| !text.contains(NOT_SHOWN)).map(str::to_owned)
        }
        ["which", name] | ["command", "-v", name] | ["type", "-p" | "-P", name] => Some((*name).to_owned()),
        ["printf", "%s" | "%s\\n", rest @ ..] => Some(rest.join(" ")),
        ["printf", text] if text.contains('%') => None,
        ["cat" | "echo" | "printf", ..] => {
            super::runners::printed(&words, text.as_deref()).filter(|text| !text.contains(NOT_SHOWN))
        }
        _ => None,
    }
}

/// Returns true if a command searches for a program.
fn is_search(words: &[Argument]) -> bool {
    matches!(words, [first, ..] if matches!(first.text.as_str(), "which" | "command" | "type"))
}

/// An assignment to a variable.
#[derive(Debug)]
pub(super) struct Assignment {
    /// The name of the variable.
    pub name: String,
    value: Value,
    /// The assignment in the normal form.
    pub form: String,
}

/// Reads `NAME=VALUE`, `NAME+=VALUE`, `NAME[INDEX]=VALUE` or `NAME=(…)`.
pub(super) fn assignment(word: &Word, variables: &Variables) -> Option<Assignment> {
    let Some(Piece::Text { text, is_quoted: false }) = word.pieces.first() else { return None };
    let size = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at_checked(size)?;
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut expansion = Expansion { variables, words: Vec::new(), current: None };
    expansion.add(&word.pieces);
    let words = expansion.finish();
    let whole = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    let value = match rest.chars().next()? {
        '=' => match word.pieces.get(1) {
            Some(Piece::Group { sign: '=', tokens, .. }) => {
                let elements = tokens.iter().filter_map(|token| match token {
                    Token::Word(word) => Some(expand(word, variables)),
                    _ => None,
                });
                let elements: Vec<Argument> = elements.flatten().collect();
                let texts = elements.iter().map(|word| word.text.clone()).collect();
                // `[1]=a` is the element with this index.
                let is_plain =
                    |word: &Argument| word.is_known() && !(word.text.starts_with('[') && word.text.contains("]="));
                if elements.iter().all(is_plain) { Value::List(texts) } else { Value::Unknown }
            }
            _ => match (words.as_slice(), word.pieces.as_slice()) {
                // `PY=$p` in a loop over the values of `p`.
                (_, [_, Piece::Variable { name, is_changed: false, .. }])
                    if rest == "=" && matches!(variables.values.get(name), Some(Value::Among(_))) =>
                {
                    let value = variables.value(name);
                    if variables.take(value.size()) { value } else { Value::Unknown }
                }
                (words, _) if words.iter().all(Argument::is_known) => Value::One(behind_sign(&whole)),
                ([only], _) => {
                    let text = behind_sign(&only.text);
                    let before = only.text.len() - text.len();
                    let unknown_to = only.unknown_to.unwrap_or_default().saturating_sub(before);
                    Value::Partly { text, unknown_to, is_output: only.is_output }
                }
                _ => Value::Unknown,
            },
        },
        '+' if rest.starts_with("+=") => match variables.one(name) {
            Some(old) if words.iter().all(Argument::is_known) => Value::One(format!("{old}{}", behind_sign(&whole))),
            _ => Value::Unknown,
        },
        '[' if whole.contains("]=") || whole.contains("]+=") => Value::Unknown,
        _ => return None,
    };
    Some(Assignment { name: name.to_owned(), value, form: joined(&whole) })
}

/// Reads an assignment, once for each of the values that a branch may give to a variable in it.
pub(super) fn assignment_of_all(word: &Word, variables: &mut Variables) -> Option<Assignment> {
    assignment_within(word, variables, MOST_CHOSEN)
}

fn assignment_within(word: &Word, variables: &mut Variables, depth: usize) -> Option<Assignment> {
    let mut found = assignment(word, variables)?;
    let varying = variables.varying(&[word], depth > 0).filter(|varying| !varying.is_loop);
    if let (Some(varying), Some(depth)) = (varying, depth.checked_sub(1)) {
        let mut values: Vec<Value> = Vec::new();
        for value in &varying.values {
            variables.choose(&varying.name, value.clone());
            values.extend(assignment_within(word, variables, depth).map(|assignment| assignment.value));
        }
        variables.restore(varying);
        found.value = Value::one_of(&values.iter().collect::<Vec<_>>());
    }
    Some(found)
}

/// Returns the text of a word as arithmetic reads it: with the names of variables, and without the output of commands.
pub(super) fn text_for_arithmetic(pieces: &[Piece]) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text { text, .. } => text.clone(),
        Piece::Variable { name, inner, .. } => format!(" {name}{} ", text_for_arithmetic(inner)),
        Piece::Output { .. } | Piece::Group { .. } => "0".to_owned(),
    });
    texts.collect()
}

/// Returns true if a text has a substitution within an index, which the shell runs if it reads the text as arithmetic or as
/// the name of a variable: `a[$(rm b)]`.
pub(super) fn has_code(text: &str) -> bool {
    let mut parts = text.split('[');
    let mut before = parts.next().unwrap_or_default();
    for part in parts {
        let index = part.split([']', '\n']).next().unwrap_or_default();
        let is_behind_name = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if is_behind_name && (index.contains("$(") || index.contains('`')) {
            return true;
        }
        before = part;
    }
    false
}

/// Returns the value in `NAME=VALUE`.
fn behind_sign(text: &str) -> String {
    text.split_once('=').map_or_else(String::new, |(_, value)| value.to_owned())
}
