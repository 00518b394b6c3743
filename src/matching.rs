//! Matches patterns with facts of a tool call that the agent may not have shown.

use serde_json::Value;

use crate::command_line::CommandLine;
use crate::judgement::Judgement;
use crate::trace::facts::Command;
use crate::values::{NameGlob, Pattern};
use crate::yaml::lists::OneOrList;

/// Returns whether a tool's name matches; unknown for a name that was not shown, unless the glob is `*`.
pub fn name_fits(glob: &NameGlob, name: Option<&str>) -> Judgement {
    match name {
        Some(name) => glob.is_match(name).into(),
        None if glob.to_string().chars().all(|c| c == '*') => Judgement::True,
        None => Judgement::Unknown,
    }
}

/// Returns whether a command matches. If the command is one of several texts, a match of one of them is only
/// possible.
pub fn command_fits(pattern: &Pattern, command: &Command) -> Judgement {
    match command {
        Command::Seen(command) => pattern.is_match(command).into(),
        Command::None => Judgement::False,
        Command::Among(texts) if texts.iter().any(|text| pattern.is_match(text)) => Judgement::Unknown,
        Command::Among(_) => Judgement::False,
        Command::With { command, arguments } => {
            // What matches with and without the arguments is in the command itself.
            let fits = pattern.is_match(command) && pattern.is_match(&format!("{command} {arguments}"));
            if fits { Judgement::True } else { Judgement::Unknown }
        }
        Command::NotShown => Judgement::Unknown,
    }
}

/// Returns whether a command line runs a command that one of the patterns matches. If the command line is one of several
/// texts, a match of one of them is only possible.
pub fn runs_fit(patterns: &OneOrList<Pattern>, command: &Command) -> Judgement {
    lines_fit(command, |line| CommandLine::read(line).runs(patterns))
}

/// Returns whether each command of a command line is matched by one of the patterns.
pub fn runs_only(patterns: &OneOrList<Pattern>, command: &Command) -> Judgement {
    lines_fit(command, |line| CommandLine::read(line).runs_only(patterns))
}

fn lines_fit(command: &Command, fits: impl Fn(&str) -> Judgement) -> Judgement {
    match command {
        Command::Seen(line) => fits(line),
        Command::None => Judgement::False,
        Command::Among(texts) if texts.iter().any(|text| fits(text).may_be_true()) => Judgement::Unknown,
        Command::Among(_) => Judgement::False,
        Command::With { command, arguments } => {
            let both = fits(command).is_true() && fits(&format!("{command} {arguments}")).is_true();
            if both { Judgement::True } else { Judgement::Unknown }
        }
        Command::NotShown => Judgement::Unknown,
    }
}

/// Returns whether an input that was not shown matches, given the command that it must contain: a pattern that
/// matches the command in any input matches.
pub fn within_command(pattern: &Pattern, command: Option<&str>) -> Judgement {
    let Some(command) = command else { return Judgement::Unknown };
    let inputs = |command: &str| {
        let text = Value::from(command).to_string();
        [format!("{{\"command\":{text}}}"), format!("{{\"a\":1,\"cmd\":{text},\"z\":\"\"}}")]
    };
    let fits = |command: &str| inputs(command).map(|input| pattern.is_match(&input));
    if fits(command) == [true; 2] && fits("") == [false; 2] { Judgement::True } else { Judgement::Unknown }
}
