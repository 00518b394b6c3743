//! The variables of a command line, with the values that branches may give to them, and the files that its commands write.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::assignments::Assignment;
use super::expanded::{Argument, first_text};
use super::runners::NOT_SHOWN;
use super::tokens::{Piece, Word};

/// The name of the variable for the current folder, which is no name in a shell. The folder in which the line begins is an empty
/// text.
const FOLDER: &str = "./";
/// The folder after a `cd` whose target the command line does not show.
const FOLDER_NOT_SHOWN: &str = "$…";
/// The variables that shells set themselves.
const SET_BY_SHELLS: [&str; 4] = ["_", "REPLY", "OPTARG", "MAPFILE"];
/// The maximum size in bytes of a variable's value that is kept.
const MAX_VALUE_BYTES: usize = 4096;
/// The maximum size in bytes of all elements of a list that are kept.
const MAX_LIST_BYTES: usize = 64 << 10;
/// The maximum number of arguments that have a number.
const MAX_ARGUMENTS: usize = 9;
/// The maximum number of values of a loop.
const MAX_LOOP_VALUES: usize = 1024;
/// The maximum number of values of which a variable may have one.
const MAX_POSSIBLE_VALUES: usize = 8;
/// The maximum number of branches whose values are joined.
const MAX_BRANCHES: usize = 64;
/// The maximum number of variables whose values arithmetic may read.
const MAX_VARIABLES: usize = 64;
/// The maximum number of written files that are compared with a path in another folder.
const MAX_WRITTEN_FILES: usize = 256;
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
    /// Returns the text, if it is the only one. Its unknown parts stay as they are written.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::One(text) | Self::Partly { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Makes the value of a variable that has one of several values. It is unknown if there are too many.
    pub fn one_of(values: &[&Self]) -> Self {
        let mut distinct: Vec<&Self> = Vec::new();
        for &value in values {
            let parts = if let Self::Maybe(parts) = value { parts.as_slice() } else { std::slice::from_ref(value) };
            for part in parts {
                if !distinct.contains(&part) {
                    distinct.push(part);
                }
                if distinct.len() > MAX_POSSIBLE_VALUES {
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
    pub fn size(&self) -> usize {
        match self {
            Self::Unknown => 0,
            Self::One(text) | Self::Partly { text, .. } => text.len(),
            Self::Among(texts) | Self::List(texts) => texts.iter().map(String::len).sum(),
            Self::Maybe(values) => values.iter().map(Self::size).sum(),
        }
    }

    /// Returns the number of elements of its lists.
    pub fn elements(&self) -> usize {
        match self {
            Self::List(texts) => texts.len(),
            Self::Maybe(values) => values.iter().map(Self::elements).sum(),
            _ => 0,
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

/// Makes the list of words. Unknown parts of words are [`NOT_SHOWN`]. A list with arguments of a function is not known.
pub(super) fn list_of(words: &[Argument]) -> Value {
    if words.iter().any(Argument::has_argument_of_function) {
        return Value::Unknown;
    }
    Value::List(words.iter().map(Argument::shown).collect())
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
    pub values: HashMap<String, Value>,
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
        let most = if matches!(value, Value::One(_) | Value::Partly { .. }) { MAX_VALUE_BYTES } else { MAX_LIST_BYTES };
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
                branches.ended.iter().take(MAX_BRANCHES).map(|changed| changed.get(name).unwrap_or(&before)).collect();
            let has_room = branches.ended.len() <= MAX_BRANCHES
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
        let has_room = has_room && name != FOLDER;
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
    pub fn value(&self, name: &str) -> Value {
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
            if has_code(text) || seen.len() > MAX_VARIABLES {
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

    /// Forgets all values, because other code may have changed them. The folder stays.
    pub fn forget_all(&mut self) {
        let known = self.values.iter().filter(|(name, value)| **value != Value::Unknown && *name != FOLDER);
        for name in known.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.forget(&name);
        }
    }

    /// Sets the elements of an array, or the arguments `@`.
    fn set_list(&mut self, name: &str, words: &[Argument]) {
        self.set(name, list_of(words));
    }

    /// Sets the arguments of a function or a script. If `is_whole` is false, there may be others behind them.
    pub fn set_arguments(&mut self, words: &[Argument], is_whole: bool) {
        self.set_list("@", words);
        for number in 1..=MAX_ARGUMENTS {
            // An unknown word without quotes may be several, or none.
            let before = words.get(..number - 1).unwrap_or(words);
            let is_certain = before.iter().all(|word| word.is_known() || word.is_quoted);
            let value = match words.get(number - 1) {
                Some(word) if is_certain && !word.has_argument_of_function() => Value::One(word.shown()),
                None if is_certain && is_whole => Value::One(String::new()),
                _ => Value::Unknown,
            };
            self.set(&number.to_string(), value);
        }
    }

    /// Forgets the arguments of a function or a script.
    pub fn forget_arguments(&mut self) {
        self.forget("@");
        (1..=MAX_ARGUMENTS).for_each(|number| self.forget(&number.to_string()));
    }

    /// Drops the first arguments, as `shift` does.
    pub fn shift(&mut self, count: usize) {
        let rest = self.list("@").and_then(|texts| {
            let (dropped, rest) = texts.split_at_checked(count)?;
            let is_certain = dropped.iter().all(|text| !text.contains(NOT_SHOWN));
            is_certain.then(|| rest.iter().map(|text| Argument::of(text)).collect::<Vec<_>>())
        });
        match rest {
            Some(rest) => self.set_arguments(&rest, false),
            None => self.forget_arguments(),
        }
    }

    /// Sets the variable of a loop to one of these values. Returns false if there are too many.
    pub fn set_among(&mut self, name: &str, words: &[Argument]) -> bool {
        let is_known = !words.is_empty() && words.iter().all(Argument::is_known);
        let size: usize = words.iter().map(|word| word.text.len()).sum();
        let has_room = words.len() <= MAX_LOOP_VALUES && size <= MAX_LIST_BYTES;
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

    pub fn one(&self, name: &str) -> Option<&str> {
        match self.values.get(name)? {
            Value::One(text) => Some(text),
            _ => None,
        }
    }

    pub fn list(&self, name: &str) -> Option<&[String]> {
        match self.values.get(name)? {
            Value::List(texts) => Some(texts),
            _ => None,
        }
    }

    /// Returns true if it is not known where the shell splits a value without quotes, because the line sets `IFS`.
    pub fn may_split(&self, value: &str) -> bool {
        match self.values.get("IFS") {
            None => false,
            Some(Value::One(signs)) => value.contains(|c: char| c.is_whitespace() || signs.contains(c)),
            Some(_) => true,
        }
    }

    /// Changes the current folder, as `cd` does.
    pub fn enter(&mut self, folder: &str) {
        let within = |current: &Value| match current {
            Value::One(current) => Value::One(from_start(current, folder)),
            _ => Value::One(from_start(FOLDER_NOT_SHOWN, folder)),
        };
        let entered = match self.value(FOLDER) {
            Value::Maybe(values) => {
                let entered: Vec<Value> = values.iter().map(within).collect();
                Value::one_of(&entered.iter().collect::<Vec<_>>())
            }
            current => within(&current),
        };
        self.set(FOLDER, entered);
    }

    /// Changes the current folder to one that is not shown.
    pub fn leave_folder(&mut self) {
        self.forget(FOLDER);
    }

    /// Returns the current folder.
    pub fn folder(&self) -> Value {
        self.value(FOLDER)
    }

    /// Returns the path of a file from the folder in which the line begins.
    fn path_of(&self, path: &str) -> String {
        from_start(self.one_folder(), path)
    }

    fn one_folder(&self) -> &str {
        match self.values.get(FOLDER) {
            None => "",
            Some(Value::One(folder)) => folder,
            Some(_) => FOLDER_NOT_SHOWN,
        }
    }

    /// Returns the text of a file that the line writes, or [`NOT_SHOWN`] if the path may be that of such a file.
    pub fn file(&self, path: &str) -> Option<Cow<'_, str>> {
        if self.files.is_empty() {
            return None;
        }
        if path == "{}" {
            // `find -exec sh {}` may run each script.
            let is_script = |name: &String| name.ends_with(".sh") || !name.contains('.');
            return self.files.keys().take(MAX_WRITTEN_FILES).any(is_script).then_some(Cow::Borrowed(NOT_SHOWN));
        }
        let whole = self.path_of(path);
        if let Some(text) = self.files.get(&whole) {
            return Some(Cow::Borrowed(text.as_str()));
        }
        if whole.rsplit('/').next().is_some_and(is_glob) {
            return self.files_of_glob(&whole);
        }
        // The first of several folders is the one that a branch entered.
        let folders: Vec<&str> = match self.values.get(FOLDER) {
            Some(Value::Maybe(values)) => {
                values.iter().map(|value| value.texts().first().copied().unwrap_or(FOLDER_NOT_SHOWN)).collect()
            }
            _ => vec![self.one_folder()],
        };
        let paths: Vec<String> = folders.into_iter().map(|folder| from_start(folder, path)).collect();
        let mut written = paths.iter().map(|path| self.files.get(path));
        let first = written.next().flatten();
        let is_in_others = written.any(|text| text.is_some());
        if let Some(text) = first.filter(|_| !is_in_others) {
            return Some(Cow::Borrowed(text.as_str()));
        }
        let may_be = |name: &String| paths.iter().chain([&whole]).any(|path| may_be_same(name, path));
        let is_doubtful = first.is_some() || is_in_others || self.files.keys().take(MAX_WRITTEN_FILES).any(may_be);
        is_doubtful.then_some(Cow::Borrowed(NOT_SHOWN))
    }

    /// Returns the texts of the files whose names fit wildcards.
    fn files_of_glob(&self, path: &str) -> Option<Cow<'_, str>> {
        let (folder, last) = path.rsplit_once('/').unwrap_or(("", path));
        let (begin, end) = (last.split(['*', '?', '[']).next(), last.rsplit(['*', '?', ']']).next());
        let whole = |folder: &str| if folder.is_empty() { last.to_owned() } else { format!("{folder}/{last}") };
        let (mut texts, mut is_doubtful) = (String::new(), false);
        for (name, text) in self.files.iter().take(MAX_WRITTEN_FILES) {
            let (own, name) = name.rsplit_once('/').unwrap_or(("", name.as_str()));
            if !begin.is_some_and(|begin| name.starts_with(begin)) || !end.is_some_and(|end| name.ends_with(end)) {
                continue;
            }
            if own == folder && texts.len().saturating_add(text.len()) <= BUDGET {
                texts.push_str(text);
            } else {
                is_doubtful |= own == folder || is_glob(folder);
                is_doubtful |= may_be_same(&whole(own), &whole(folder));
            }
        }
        match texts.is_empty() {
            false if !is_doubtful => Some(Cow::Owned(texts)),
            _ => (is_doubtful || !texts.is_empty()).then_some(Cow::Borrowed(NOT_SHOWN)),
        }
    }

    /// Writes a line to a file. If `is_added` is true, the text of the file may stay.
    pub fn write(&mut self, path: &str, text: &str, is_added: bool) {
        let name = self.path_of(path);
        let content = self.files.entry(name).or_default();
        if !is_added {
            content.clear();
        }
        content.push_str(text);
        content.push('\n');
    }

    /// Records that the text of a file may have changed.
    pub fn change(&mut self, path: &str) {
        let name = self.path_of(path);
        self.changed.insert(name);
    }

    /// Writes what a group of commands prints to a file.
    pub fn write_printed(&mut self, path: &str, printed: &str, is_added: bool) {
        if printed.is_empty() { self.change(path) } else { self.write(path, printed, is_added) }
    }

    /// Returns what `cat` prints for these files, without the line feeds at its end, if the line shows all of it.
    pub fn text_of_files(&self, paths: &[Argument]) -> Option<String> {
        let is_same = |path: &Argument| !self.changed.contains(&self.path_of(&path.text));
        let texts = paths.iter().filter(|path| is_same(path)).map(|path| self.file(&path.text));
        let texts: Vec<Cow<'_, str>> = texts.collect::<Option<_>>()?;
        let size: usize = texts.iter().map(|text| text.len()).sum();
        let is_whole = texts.len() == paths.len() && !texts.is_empty() && size <= self.left.get();
        let text = is_whole.then(|| texts.concat().trim_end_matches('\n').to_owned());
        text.filter(|text| !text.contains(NOT_SHOWN))
    }

    /// Takes room for a value, or returns false if the values are too long.
    pub fn take(&self, size: usize) -> bool {
        let left = self.left.get().checked_sub(size);
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }
}

/// Returns the name of a file without the current folder.
fn file_name(path: &str) -> &str {
    ["./", "$PWD/", "$(pwd)/"].iter().find_map(|folder| path.strip_prefix(folder)).unwrap_or(path)
}

/// Returns the path of a file in a folder, from the folder in which the line begins. Parts that are not shown stay as they are
/// written.
fn from_start(folder: &str, path: &str) -> String {
    let path = file_name(path);
    let is_whole = folder.is_empty() || path.starts_with(['/', '$', '`', '~']);
    let whole = if is_whole { path.to_owned() } else { format!("{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !is_root(last)) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Returns true if a part of a path is not shown, or is not below the folder before it.
fn is_root(part: &str) -> bool {
    part.is_empty() || part == ".." || part.contains(['$', '`', '~']) || part.contains(NOT_SHOWN)
}

/// Returns true if two different paths may be those of one file, because a part of one of them is not shown, or because they begin
/// in different folders.
fn may_be_same(one: &str, other: &str) -> bool {
    let is_not_shown = |part: &str| !part.is_empty() && is_root(part);
    let (mut one, mut other) = (one.rsplit('/'), other.rsplit('/'));
    if one.next() != other.next() {
        return false;
    }
    loop {
        match (one.next(), other.next()) {
            (None, None) => return false,
            (Some(part), None) => return is_root(part) || one.any(is_root),
            (None, Some(part)) => return is_root(part) || other.any(is_root),
            // An absolute path begins here.
            (Some(""), Some(part)) => return is_not_shown(part) || other.any(is_not_shown),
            (Some(part), Some("")) => return is_not_shown(part) || one.any(is_not_shown),
            (Some(part), Some(same)) if is_root(part) || is_root(same) => return true,
            (Some(part), Some(same)) if part != same => return false,
            _ => {}
        }
    }
}

/// Returns true if a name has wildcards.
fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '['])
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
