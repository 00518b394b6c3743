//! The commands that a command line runs, each in a form that patterns can match.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use self::expanded::Argument;
use crate::judgement::Judgement;
use crate::values::Pattern;
use crate::yaml::lists::OneOrList;

mod assignments;
mod code;
mod expanded;
mod interactive;
mod powershell;
mod python;
mod reader;
mod runners;
mod simple;
mod tokens;
mod variables;

pub use simple::{SimpleCommand, simple_commands};

/// The commands of a command line.
///
/// Each is one text: the program without its folder, its arguments, then `<FILE`, `>FILE`, `>>FILE`, `<<<TEXT` (a here-string or a
/// here-document) and `<|COMMAND` (the other end of a pipe), separated by one blank. A blank within an argument is `␣`, a line feed
/// is `␤`, and an empty argument is `''`. A command that runs another one is listed with it: `sudo rm a` is `sudo rm a` and
/// `rm a`. A redirection without a command is one of `:`. A text that is not shown, such as the input of a shell, is `$_`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The commands, in the order of their ends.
    pub commands: Vec<String>,
    /// True if the line runs a program whose name it does not show, or commands that were not read.
    pub has_unknown: bool,
    /// True if the line sets variables of its shell outside a command, or defines functions.
    pub changes_shell: bool,
    /// Commands that may run: those that only some shells run (of an alias, and those in `[[ … ]]` and `((…))` for a shell without
    /// them), and those in variables such as `GIT_PAGER`.
    possible: Vec<String>,
    /// The commands that are read in several ways, because a variable has one of several values.
    choices: Vec<Choice>,
    /// Commands and assignments whose form leaves out what decides which program runs: the program's folder, and assignments
    /// such as `PATH=.`.
    others: Vec<String>,
    /// The places of the commands that get the input of the line: no pipe, file or here-document is their input.
    typed: Vec<usize>,
    /// For the forms of commands that have any: their redirections, and words with an unknown part.
    written: BTreeMap<String, Written>,
}

/// Facts about the words of a command that its form does not show.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Written {
    /// The number of redirections, which are the last words, with the other end of a pipe.
    redirections: usize,
    /// The places of the words of which a part is not shown.
    unknown: BTreeSet<usize>,
}

/// A command that runs in one of several readings.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    /// For each reading, the places of its commands.
    readings: Vec<Range<usize>>,
}

impl CommandLine {
    /// Reads a command line of a shell.
    pub fn read(line: &str, dialect: Dialect) -> Self {
        reader::read(line, dialect)
    }

    /// Returns the commands that the line runs, and those that it may run.
    pub fn possible_commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().chain(&self.possible).map(String::as_str)
    }

    /// Returns the commands whose program has a folder of its own, with this folder, and the assignments.
    pub fn others(&self) -> &[String] {
        &self.others
    }

    /// Returns how many of the last words of a command are redirections or the other end of a pipe: the form alone does not
    /// show whether `>=3` is one.
    pub fn redirections_of(&self, command: &str) -> usize {
        self.written.get(command).map_or(0, |written| written.redirections)
    }

    /// Returns true if a part of a word of a command is a value that the line does not show. The program is the word 0. In the
    /// form, `$p` may also be a text in quotes.
    pub fn has_unknown_word(&self, command: &str, place: usize) -> bool {
        self.written.get(command).is_some_and(|written| written.unknown.contains(&place))
    }

    /// Returns whether the line runs a command that one of the patterns matches.
    pub fn runs(&self, patterns: &OneOrList<Pattern>) -> Judgement {
        let is_matched = |command: &String| patterns.iter().any(|pattern| pattern.is_match(command));
        let matched: Vec<bool> = self.commands.iter().map(is_matched).collect();
        let is_possible = self.has_unknown || matched.contains(&true) || self.possible.iter().any(is_matched);
        match self.is_certain(matched) {
            true => Judgement::True,
            false if is_possible => Judgement::Unknown,
            false => Judgement::False,
        }
    }

    /// Returns whether each command that the line runs is matched by one of the patterns. A program with a folder of its own and
    /// an assignment are matched as they are written.
    pub fn runs_only(&self, patterns: &OneOrList<Pattern>) -> Judgement {
        let is_matched = |command: &String| patterns.iter().any(|pattern| pattern.is_match(command));
        let unmatched: Vec<bool> = self.commands.iter().map(|command| !is_matched(command)).collect();
        let is_possible = self.has_unknown || unmatched.contains(&true) || !self.possible.iter().all(is_matched);
        match self.is_certain(unmatched) || !self.others.iter().all(is_matched) {
            true => Judgement::False,
            false if is_possible => Judgement::Unknown,
            false => (!self.commands.is_empty()).into(),
        }
    }

    /// Returns true if a marked command certainly runs: if commands can be read in several ways, in each of them.
    fn is_certain(&self, mut marked: Vec<bool>) -> bool {
        // A choice within another one comes before it.
        for Choice { readings } in &self.choices {
            let is_in = |reading: &Range<usize>| marked.get(reading.clone()).is_some_and(|marks| marks.contains(&true));
            let is_in_all = readings.iter().all(is_in);
            let whole = readings.first().map_or(0, |first| first.start)..readings.last().map_or(0, |last| last.end);
            if let Some(marks) = marked.get_mut(whole) {
                marks.fill(false);
                marks.iter_mut().take(1).for_each(|first| *first = is_in_all);
            }
        }
        marked.contains(&true)
    }
}

/// The language of a command line, as far as the name of the tool shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The language of Bash and similar shells.
    Posix,
    /// The language of PowerShell.
    PowerShell,
    /// The name does not show the language. The line shows it only if it runs a command of PowerShell.
    #[default]
    Unknown,
}

impl Dialect {
    /// Returns the language of the lines that a tool with this name runs.
    pub fn of_tool(name: Option<&str>) -> Self {
        match name.unwrap_or_default().to_ascii_lowercase().as_str() {
            "pwsh" | "powershell" => Self::PowerShell,
            name if is_shell(name) => Self::Posix,
            _ => Self::Unknown,
        }
    }
}

/// Returns true if a program is a shell, also with its folder: `/bin/bash`.
pub fn is_shell(program: &str) -> bool {
    const SHELLS: [&str; 11] = ["sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "csh", "tcsh", "fish", "rbash"];
    SHELLS.contains(&program.rsplit('/').next().unwrap_or_default())
}

/// Returns true if a word is the option of a shell before a text with commands: `-c`, or letters with `c` among them.
pub fn is_option_of_text(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains('c'))
}

/// Returns the text with commands that a shell runs, if these words start a shell with a text: of `bash -e -c 'make test'`,
/// `make test`.
pub fn text_of_shell<'a>(words: &[&'a str]) -> Option<&'a str> {
    let (_, arguments) = words.split_first().filter(|(program, _)| takes_text(program))?;
    let read: Vec<Argument> = arguments.iter().map(|word| Argument::of(word)).collect();
    let behind = runners::behind_options_of_shell(&read).len();
    let (options, behind) = arguments.split_at_checked(arguments.len().saturating_sub(behind))?;
    // `fish --command='make test'`
    if let Some(text) = options.iter().find_map(|word| word.strip_prefix("--command=")) {
        return Some(text);
    }
    let has_text = options.iter().any(|word| is_option_of_text(word) || LONG_OPTIONS.contains(word));
    behind.first().copied().filter(|_| has_text)
}

/// Returns true if a program is a shell, also one whose language is not read.
fn takes_text(program: &str) -> bool {
    is_shell(program) || program.rsplit('/').next() == Some("nu")
}

/// The long options of shells before a text with commands.
const LONG_OPTIONS: [&str; 2] = ["--command", "--commands"];

/// Returns the text with commands that a shell runs, if these words start it by themselves or by programs that run others:
/// `env bash -c 'make test'`.
pub fn text_of_started_shell<'a>(words: &[&'a str]) -> Option<&'a str> {
    let own = text_of_shell(words);
    if own.is_some() {
        return own;
    }
    // The words are quoted, so that each is one of the line.
    let at = words.iter().skip(1).position(|word| takes_text(word))? + 1;
    let (before, of_shell) = words.split_at_checked(at)?;
    let quoted = |word: &&str| format!("'{}'", word.replace('\'', r"'\''"));
    let line: Vec<String> = before.iter().map(quoted).chain(["program".to_owned()]).collect();
    let started = CommandLine::read(&line.join(" "), Dialect::Posix);
    let is_run = !started.has_unknown && started.commands.last().is_some_and(|command| command == "program");
    text_of_shell(of_shell).filter(|_| is_run)
}

#[cfg(test)]
mod tests;
