//! The words of a command after the substitutions whose values the command line shows.

use super::runners::NOT_SHOWN;
use super::tokens::{Operator, Piece, Redirection, Token, Way, Word};
use super::variables::{Value, Variables};

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Argument {
    /// The text. Substitutions whose values are unknown stay as they are written.
    pub text: String,
    /// The end of the last part of the text whose value is unknown.
    pub unknown_to: Option<usize>,
    /// True if the last unknown part is the output of a command.
    pub is_output: bool,
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

    /// Returns true if a part of the word may be an argument that a function or a script was called with.
    pub fn has_argument_of_function(&self) -> bool {
        let is_argument = |part: &str| {
            let name = part.trim_start_matches(['{', '#', '!']);
            name.starts_with(['@', '*']) || name.starts_with(|c: char| c.is_ascii_digit())
        };
        !self.is_known() && self.text.split('$').skip(1).any(is_argument)
    }

    /// Returns the text with [`NOT_SHOWN`] in the place of its unknown parts.
    pub fn shown(&self) -> String {
        let Some(end) = self.unknown_to else { return self.text.clone() };
        let (unknown, known) = self.text.split_at_checked(end).unwrap_or((&self.text, ""));
        let before = unknown.split(['$', '`', '<', '>', '\u{fdd0}']).next().unwrap_or_default();
        format!("{before}{NOT_SHOWN}{known}")
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
    let words = expand_assignment(word, variables);
    if let [only] = words.as_slice()
        && !only.is_quoted
        && only.is_known()
        && let Some(all) = alternatives(&only.text)
    {
        return all.into_iter().map(|text| Argument { text, is_glob: only.is_glob, ..Argument::default() }).collect();
    }
    words
}

/// Returns the words of an assignment after the substitutions. Braces stay.
pub(super) fn expand_assignment(word: &Word, variables: &Variables) -> Vec<Argument> {
    let mut expansion = Expansion { variables, words: Vec::new(), current: None };
    expansion.add(&word.pieces);
    expansion.finish()
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
                    None => self.unknown_output(&format!("$({})", text.trim()), *is_quoted),
                },
                Piece::Group { sign, tokens, text } => {
                    let shown = match sign {
                        '=' | '?' => format!("({text})"),
                        sign => format!("{sign}({})", text.trim()),
                    };
                    self.unknown(&shown, false);
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
            // An unknown element before it may be several.
            (_, _, Some(index)) => self.variables.list(name).and_then(|list| {
                let is_certain = list.iter().take(index).all(|text| !text.contains(NOT_SHOWN));
                list.get(index..=index).filter(|_| is_certain)
            }),
            _ => None,
        };
        if let Some(list) = list {
            // `"$*"` is one word.
            if is_quoted && (name == "*" && behind.is_empty() || behind == "[*]") {
                let text = list.join(" ");
                return self.known(&text, true);
            }
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
                    self.unknown(&format!("${{{name}…}}"), is_quoted);
                }
                _ => self.unknown(&format!("${name}"), is_quoted),
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

    /// Adds an unknown value.
    fn unknown(&mut self, shown: &str, is_quoted: bool) {
        let word = self.current.get_or_insert_default();
        word.text.push_str(shown);
        (word.unknown_to, word.is_output) = (Some(word.text.len()), false);
        word.is_quoted |= is_quoted;
    }

    /// Adds the unknown output of a command.
    fn unknown_output(&mut self, shown: &str, is_quoted: bool) {
        self.unknown(shown, is_quoted);
        if let Some(word) = self.current.as_mut() {
            word.is_output = true;
        }
    }

    /// Adds a value, which the shell splits at blanks unless it is in quotes.
    fn known(&mut self, value: &str, is_quoted: bool) {
        if !self.variables.take(value.len()) || !is_quoted && self.variables.may_split(value) {
            return self.unknown("$…", is_quoted);
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

pub(super) fn first_text(pieces: &[Piece]) -> Option<&str> {
    match pieces.first()? {
        Piece::Text { text, .. } => Some(text),
        _ => None,
    }
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
            Token::Redirection(Redirection { way: Way::From, target, .. }) if target.plain() != Some("/dev/null") => {
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
        // A path, which does not call a function of the line.
        ["which", name] | ["command", "-v", name] | ["type", "-p" | "-P", name] if !name.contains('/') => {
            Some(format!("/usr/bin/{name}"))
        }
        ["which", path] | ["command", "-v", path] | ["type", "-p" | "-P", path] => Some((*path).to_owned()),
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

/// Returns the text of a word as arithmetic reads it: with the names of variables, and without the output of commands.
pub(super) fn text_for_arithmetic(pieces: &[Piece]) -> String {
    let texts = pieces.iter().map(|piece| match piece {
        Piece::Text { text, .. } => text.clone(),
        Piece::Variable { name, inner, .. } => format!(" {name}{} ", text_for_arithmetic(inner)),
        Piece::Output { .. } | Piece::Group { .. } => "0".to_owned(),
    });
    texts.collect()
}
