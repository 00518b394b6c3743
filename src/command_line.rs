//! The commands that a command line runs, each in a form that patterns can match.

use crate::judgement::Judgement;
use crate::values::Pattern;
use crate::yaml::lists::OneOrList;

mod code;
mod expanded;
mod powershell;
mod python;
mod reader;
mod runners;
mod tokens;

/// The commands of a command line.
///
/// Each is one text: the program without its folder, its arguments, then `<FILE`, `>FILE`, `>>FILE`, `<<<TEXT` (a here-string or a
/// here-document) and `<|COMMAND` (the other end of a pipe), separated by one blank. A blank within an argument is `␣`, a line feed
/// is `␤`, and an empty argument is `''`. A command that runs another one is listed with it: `sudo rm a` is `sudo rm a` and
/// `rm a`. A redirection without a command is one of `:`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// The commands, in the order of their ends.
    pub commands: Vec<String>,
    /// True if the line runs a program whose name it does not show, or commands that were not read.
    pub has_unknown: bool,
    /// Commands that only some shells run: those of an alias, and those in `[[ … ]]` and `((…))` for a shell without them.
    possible: Vec<String>,
    /// Commands and assignments whose form leaves out what decides which program runs: the program's folder, and assignments
    /// such as `PATH=.`.
    others: Vec<String>,
}

impl CommandLine {
    /// Reads a command line of a shell.
    pub fn read(line: &str) -> Self {
        reader::read(line)
    }

    /// Returns whether the line runs a command that one of the patterns matches.
    pub fn runs(&self, patterns: &OneOrList<Pattern>) -> Judgement {
        let is_matched = |command: &String| patterns.iter().any(|pattern| pattern.is_match(command));
        match self.commands.iter().any(is_matched) {
            true => Judgement::True,
            false if self.has_unknown || self.possible.iter().any(is_matched) => Judgement::Unknown,
            false => Judgement::False,
        }
    }

    /// Returns whether each command that the line runs is matched by one of the patterns. A program with a folder of its own and
    /// an assignment are matched as they are written.
    pub fn runs_only(&self, patterns: &OneOrList<Pattern>) -> Judgement {
        let is_matched = |command: &String| patterns.iter().any(|pattern| pattern.is_match(command));
        match self.commands.iter().chain(&self.others).all(is_matched) {
            true if self.has_unknown || !self.possible.iter().all(is_matched) => Judgement::Unknown,
            is_all => (is_all && !self.commands.is_empty()).into(),
        }
    }
}

#[cfg(test)]
mod tests;
