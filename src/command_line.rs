//! The commands that a command line runs, each in a form that patterns can match.

use std::ops::Range;

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
mod tokens;
mod variables;

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
    /// Commands that only some shells run: those of an alias, and those in `[[ … ]]` and `((…))` for a shell without them.
    possible: Vec<String>,
    /// The commands that are read in several ways, because a variable has one of several values.
    choices: Vec<Choice>,
    /// Commands and assignments whose form leaves out what decides which program runs: the program's folder, and assignments
    /// such as `PATH=.`.
    others: Vec<String>,
    /// The places of the commands that get the input of the line: no pipe, file or here-document is their input.
    typed: Vec<usize>,
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

    /// Returns true if one of the marked commands runs, whichever of its readings a command has.
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

    /// Returns the line with its commands without their redirections and the other ends of their pipes.
    #[must_use]
    pub fn without_redirections(&self) -> Self {
        let plain = |command: &String| {
            let words = command.split(' ').filter(|word| !word.starts_with(['<', '>']));
            words.collect::<Vec<_>>().join(" ")
        };
        Self {
            commands: self.commands.iter().map(plain).collect(),
            has_unknown: self.has_unknown,
            possible: self.possible.iter().map(plain).collect(),
            choices: self.choices.clone(),
            others: self.others.clone(),
            typed: self.typed.clone(),
        }
    }

    /// Returns true if the line may run these commands, one directly after the other.
    pub fn may_run(&self, commands: &[String]) -> bool {
        !commands.is_empty()
            && (self.has_unknown
                || self.commands.windows(commands.len()).any(|part| part == commands)
                || self.possible.iter().any(|command| commands == [command.as_str()]))
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

#[cfg(test)]
mod tests;
