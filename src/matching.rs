//! Whether a pattern matches a fact of a tool call that the agent may not have shown.

use serde_json::Value;

use crate::judgement::Judgement;
use crate::trace::facts::Command;
use crate::values::{NameGlob, Pattern};

/// Whether a tool's name fits; one that was not shown may. `*` is any name.
pub fn name_fits(glob: &NameGlob, name: Option<&str>) -> Judgement {
    match name {
        Some(name) => glob.is_match(name).into(),
        None if glob.to_string().chars().all(|c| c == '*') => Judgement::True,
        None => Judgement::Unknown,
    }
}

/// Whether a command fits. Of one that stands among several texts it is known only that a text that fits may be it.
pub fn command_fits(pattern: &Pattern, command: &Command) -> Judgement {
    match command {
        Command::Seen(command) => pattern.is_match(command).into(),
        Command::None => Judgement::False,
        Command::Among(texts) if texts.iter().any(|text| pattern.is_match(text)) => Judgement::Unknown,
        Command::Among(_) => Judgement::False,
        Command::NotShown => Judgement::Unknown,
    }
}

/// Whether an input that was not shown fits by the command that it must hold: what fits the command in any input fits.
pub fn within_command(pattern: &Pattern, command: Option<&str>) -> Judgement {
    let Some(command) = command else { return Judgement::Unknown };
    let inputs = |command: &str| {
        let text = Value::from(command).to_string();
        [format!("{{\"command\":{text}}}"), format!("{{\"a\":1,\"cmd\":{text},\"z\":\"\"}}")]
    };
    let fits = |command: &str| inputs(command).map(|input| pattern.is_match(&input));
    if fits(command) == [true; 2] && fits("") == [false; 2] { Judgement::True } else { Judgement::Unknown }
}
