//! Matches patterns with facts of a tool call that the agent may not have shown.

use std::cell::OnceCell;

use serde_json::Value;

use crate::command_line::{CommandLine, Dialect};
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
        Command::List { command, other } => {
            // What the program with its arguments is holds of its name, too, if the list is several commands.
            let fits = pattern.is_match(command);
            let is_either = is_argument_list(command, other) && fits;
            Judgement::agreed([fits.into(), (is_either || pattern.is_match(other)).into()])
        }
        Command::With { command, arguments } => {
            // What matches with and without the arguments is in the command itself.
            let fits = pattern.is_match(command) && pattern.is_match(&format!("{command} {arguments}"));
            if fits { Judgement::True } else { Judgement::Unknown }
        }
        Command::NotShown => Judgement::Unknown,
    }
}

/// Returns true if a list is rather a program with its arguments, and its other reading several commands.
fn is_argument_list(command: &str, other: &str) -> bool {
    other.lines().count() > command.lines().count()
}

/// The command lines that a command may be. They are read once, on first use.
#[derive(Debug, Default)]
pub struct Lines(OnceCell<Vec<CommandLine>>);

impl Lines {
    /// Returns whether a command line runs a command that one of the patterns matches. If the command line is one of several
    /// texts, a match of one of them is only possible. `tool` is the name of the tool that runs the command.
    pub fn run(&self, patterns: &OneOrList<Pattern>, command: &Command, tool: Option<&str>) -> Judgement {
        self.fit(command, tool, |line| line.runs(patterns))
    }

    /// Returns the command lines that the command may be, or that it is with and without its arguments.
    pub fn read(&self, command: &Command, tool: Option<&str>) -> &[CommandLine] {
        self.0.get_or_init(|| {
            let read = |line: &str| CommandLine::read(line, Dialect::of_tool(tool));
            match command {
                Command::Seen(line) => vec![read(line)],
                Command::Among(texts) => texts.iter().map(|text| read(text)).collect(),
                Command::List { command, other } if is_argument_list(command, other) => {
                    vec![read(command), read(&format!("{command}\n{other}"))]
                }
                Command::List { command, other } => vec![read(command), read(other)],
                Command::With { command, arguments } => vec![read(command), read(&format!("{command} {arguments}"))],
                Command::None | Command::NotShown => Vec::new(),
            }
        })
    }

    fn fit(&self, command: &Command, tool: Option<&str>, fits: impl Fn(&CommandLine) -> Judgement) -> Judgement {
        let lines = self.read(command, tool);
        match command {
            Command::Seen(_) => Judgement::all(lines.iter().map(fits)),
            Command::None => Judgement::False,
            Command::Among(_) if lines.iter().any(|line| fits(line).may_be_true()) => Judgement::Unknown,
            Command::Among(_) => Judgement::False,
            Command::List { .. } => Judgement::agreed(lines.iter().map(fits)),
            Command::With { .. } if lines.iter().all(|line| fits(line).is_true()) => Judgement::True,
            Command::With { .. } | Command::NotShown => Judgement::Unknown,
        }
    }
}

/// Returns whether a command line runs a command that one of the patterns matches. `tool` is the name of the tool that runs the
/// command.
pub fn runs_fit(patterns: &OneOrList<Pattern>, command: &Command, tool: Option<&str>) -> Judgement {
    Lines::default().run(patterns, command, tool)
}

/// Returns whether each command of a command line is matched by one of the patterns. `tool` is the name of the tool that runs
/// the command.
pub fn runs_only(patterns: &OneOrList<Pattern>, command: &Command, tool: Option<&str>) -> Judgement {
    Lines::default().fit(command, tool, |line| line.runs_only(patterns))
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
