//! Texts that the shell evaluates besides commands: tests, arithmetic, indices and declarations.

use std::mem;

use super::{MAX_COMMANDS, MAX_SHIFTED_ARGUMENTS, Reader};
use crate::command_line::expanded::{Argument, Program, expand, joined, text_for_arithmetic};
use crate::command_line::tokens::{Operator, Piece, Token, is_name};

impl Reader {
    /// Reads `[[ … ]]` from behind its begin.
    pub(super) fn condition<'a>(&mut self, tokens: &mut impl Iterator<Item = &'a Token>) {
        let mut texts: Vec<String> = Vec::new();
        // The words behind `||`, which a shell without `[[` runs as a command.
        let mut alternative: Option<Vec<Argument>> = None;
        for token in tokens {
            match token {
                Token::Word(word) if word.plain() == Some("]]") => break,
                Token::Word(word) => {
                    self.outputs(&word.pieces);
                    texts.push(text_for_arithmetic(&word.pieces));
                    if let Some(words) = alternative.as_mut().filter(|_| word.plain() != Some("!")) {
                        words.extend(expand(word, &self.variables));
                    }
                }
                Token::Redirection(redirection) => self.outputs(&redirection.target.pieces),
                Token::Arithmetic(pieces) => self.arithmetic(pieces),
                Token::Operator(operator) => {
                    let is_next = *operator == Operator::Or || *operator == Operator::Open && alternative.is_some();
                    let before = mem::replace(&mut alternative, is_next.then(Vec::new));
                    self.possible(&before.unwrap_or_default());
                }
                Token::Stream { .. } => {}
            }
        }
        self.possible(&alternative.unwrap_or_default());
        self.test(&texts);
    }

    /// Reads the words of a test that the shell evaluates: numbers that it compares, and names of variables (`-v`).
    pub(super) fn test(&mut self, words: &[String]) {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let is_comparison = |at: usize| matches!(word(at), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
        let is_evaluated = |at: usize| {
            let before = at.checked_sub(1);
            let is_behind = before.is_some_and(|at| is_comparison(at) || matches!(word(at), "-v" | "-R"));
            is_behind || is_comparison(at + 1)
        };
        if (0..words.len()).any(|at| is_evaluated(at) && self.variables.runs_code(word(at))) {
            self.cut();
        }
    }

    /// Adds a command that a shell without `[[` runs. No program has a name that begins with `-`, as in `-f a`.
    pub(super) fn possible(&mut self, words: &[Argument]) {
        let Some((first, rest)) = words.split_first().filter(|(first, _)| !first.text.starts_with('-')) else { return };
        if self.found.possible.len() >= MAX_COMMANDS {
            return self.cut();
        }
        let name = match first.program() {
            Program::Named(name) => joined(name),
            Program::Output | Program::Unknown => first.form(),
        };
        let forms: Vec<String> = [name].into_iter().chain(rest.iter().map(Argument::form)).collect();
        let form = forms.join(" ");
        self.note_words(&form, rest, 0);
        self.found.possible.push(form);
    }

    /// Reads the substitutions in an arithmetic expression.
    pub(super) fn arithmetic(&mut self, pieces: &[Piece]) {
        if self.variables.runs_code(&text_for_arithmetic(pieces)) {
            self.cut();
        }
        self.outputs(pieces);
    }

    /// Adds the commands that a shell without `((…))` runs for it.
    pub(super) fn possible_in_arithmetic(&mut self, pieces: &[Piece]) {
        let texts = pieces.iter().map(|piece| match piece {
            Piece::Text { text, .. } => text.as_str(),
            _ => "$",
        });
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        for part in texts.collect::<String>().split([';', '\n', '|', '&', '(', ')']) {
            let words: Vec<Argument> = part.split_whitespace().map(Argument::of).collect();
            let name = words.first().map_or("", |first| first.text.as_str());
            let is_number = name.starts_with(|c: char| c.is_ascii_digit());
            // Names of one letter are those of variables.
            if name.len() > 1 && !is_number && name.chars().all(is_in_name) {
                self.possible(&words);
            }
        }
    }

    /// Reads the name in an assignment, or one that a builtin gets. Bash evaluates its index.
    pub(super) fn target(&mut self, text: &str) {
        let name = text.split_once("]=").map_or(text, |(name, _)| name);
        let index = name.split_once('[').filter(|(name, _)| is_name(name));
        if index.is_some_and(|(_, index)| self.variables.runs_code(&in_index(index))) {
            self.cut();
        }
    }

    /// Forgets the variables that a command names: with a word, or joined to an option (`printf -vX`, `read -aX`, `wait -pX`).
    pub(super) fn forget(&mut self, arguments: &[Argument]) {
        for word in arguments {
            let name = match word.text.strip_prefix('-') {
                Some(option) => option.split_once(['a', 'p', 'v']).map_or("", |(_, name)| name),
                None => word.text.as_str(),
            };
            self.variables.forget(name.split(['=', '[']).next().unwrap_or_default());
        }
    }

    /// Reads words that a builtin evaluates as arithmetic.
    pub(super) fn evaluated(&mut self, arguments: &[Argument]) {
        if arguments.iter().any(|word| self.variables.runs_code(&word.text)) {
            self.cut();
        }
    }

    /// Records what a command does to the variables.
    pub(super) fn remember(&mut self, program: &str, arguments: &[Argument]) {
        let is_number = arguments.iter().any(|word| hides_value(&word.text));
        match program {
            "test" | "[" => {
                let texts =
                    arguments.iter().map(|word| if word.text.starts_with("$(") { "0" } else { word.text.as_str() });
                self.test(&texts.map(str::to_owned).collect::<Vec<_>>());
            }
            "read" | "mapfile" | "readarray" | "unset" | "getopts" | "wait" => {
                arguments.iter().for_each(|word| self.target(&word.text));
            }
            "printf" if arguments.first().is_some_and(|word| word.text.starts_with("-v")) => {
                arguments.iter().take(2).for_each(|word| self.target(word.text.trim_start_matches("-v")));
            }
            "let" => self.evaluated(arguments),
            program if is_declaration(program) && is_number => self.evaluated(arguments),
            program if is_declaration(program) => arguments.iter().for_each(|word| self.target(&word.text)),
            _ => {}
        }
        match program {
            "read" | "mapfile" | "readarray" | "getopts" | "let" | "wait" => self.forget(arguments),
            "printf" if arguments.first().is_some_and(|word| word.text.starts_with("-v")) => {
                self.forget(arguments.get(..2).unwrap_or(arguments));
            }
            "set" if arguments.first().is_some_and(|word| word.text == "--") => {
                self.variables.set_arguments(arguments.get(1..).unwrap_or_default(), true);
            }
            "source" | "." => self.variables.forget_all(),
            "unset" => {
                let is_function = |word: &&Argument| self.bodies.iter().any(|(name, _)| *name == word.text);
                let removed: Vec<_> =
                    arguments.iter().filter(is_function).map(|word| (word.text.clone(), None)).collect();
                self.bodies.extend(removed);
                self.forget(arguments);
            }
            "cd" | "pushd" => {
                let mut texts = arguments.iter().map(|word| word.text.as_str());
                match texts.find(|text| !text.starts_with('-') || *text == "-") {
                    Some("-") => self.variables.leave_folder(),
                    folder => self.variables.enter(folder.unwrap_or("~")),
                }
            }
            "popd" => self.variables.leave_folder(),
            "shift" => {
                let count = arguments.first().map_or(Some(1), |word| word.text.parse::<usize>().ok());
                if self.variables.list("@").is_some() {
                    return self.variables.shift(count.unwrap_or(usize::MAX));
                }
                if self.variables.is_set("@") {
                    self.variables.forget_arguments();
                }
                self.shifted = self.shifted.saturating_add(count.unwrap_or(MAX_SHIFTED_ARGUMENTS));
            }
            _ => {}
        }
    }
}

/// Returns a text as the index of a variable.
pub(super) fn in_index(text: &str) -> String {
    format!("_[{text}")
}

/// Returns true if the shell evaluates what follows the name in `${NAME…}` as arithmetic (an index, or the place of a part), or
/// the value as the name of a variable (`${!NAME}`).
pub(super) fn is_evaluated(inner: &[Piece]) -> bool {
    match inner.first() {
        None => true,
        Some(Piece::Text { text, .. }) => match text.strip_prefix(':') {
            Some(part) => !part.starts_with(['-', '=', '?', '+']),
            None => text.starts_with('[') && !text.starts_with("[@]") && !text.starts_with("[*]"),
        },
        Some(_) => false,
    }
}

/// Returns true if an option of a declaration makes the variable another name of a variable (`-n`), or changes what is assigned
/// to it (`-i`, `-l`, `-u`, `-c`).
pub(super) fn hides_value(option: &str) -> bool {
    option.strip_prefix('-').is_some_and(|letters| letters.contains(['n', 'i', 'l', 'u', 'c']))
}

pub(super) fn is_declaration(word: &str) -> bool {
    matches!(word, "export" | "local" | "declare" | "typeset" | "readonly")
}
