//! The programs that `gdb` starts, and the commands of the shell in its own commands.

use super::Inner;
use crate::command_line::expanded::Argument;

/// The options before a command of `gdb`.
const COMMANDS: [&str; 4] = ["ex", "eval-command", "iex", "init-eval-command"];

/// Returns the program behind `--args`, or the one that a command such as `run` starts, and the texts of `shell` and `!`.
pub(super) fn in_gdb(arguments: &[Argument]) -> Vec<Inner<'_>> {
    // The options with an operand, with one hyphen or two.
    const WITH_OPERAND: [&str; 25] = [
        "b",
        "c",
        "cd",
        "command",
        "core",
        "d",
        "data-directory",
        "directory",
        "e",
        "eval-command",
        "ex",
        "exec",
        "iex",
        "init-command",
        "init-eval-command",
        "interpreter",
        "ix",
        "l",
        "p",
        "pid",
        "s",
        "se",
        "symbols",
        "tty",
        "x",
    ];
    let (mut commands, mut is_whole): (Vec<&str>, bool) = (Vec::new(), false);
    let (mut program, mut rest): (&[Argument], &[Argument]) = (&[], arguments);
    while let [first, more @ ..] = rest {
        let Some(option) = first.text.strip_prefix('-') else {
            if program.is_empty() {
                program = rest;
            }
            // The rest are the arguments of the program.
            if is_whole {
                break;
            }
            rest = more;
            continue;
        };
        let option = option.strip_prefix('-').unwrap_or(option);
        let (name, joined) = option.split_once('=').map_or((option, None), |(name, text)| (name, Some(text)));
        is_whole |= name == "args";
        if COMMANDS.contains(&name) {
            commands.extend(joined.or_else(|| more.first().map(|word| word.text.as_str())).map(str::trim));
        }
        let takes_next = joined.is_none() && WITH_OPERAND.contains(&name);
        rest = more.get(usize::from(takes_next)..).unwrap_or_default();
    }
    let of_shell = |command: &&str| {
        let text = command.strip_prefix("shell ").or_else(|| command.strip_prefix('!'))?;
        Some(Inner::text(text.trim().to_owned()))
    };
    let mut found: Vec<Inner<'_>> = commands.iter().filter_map(of_shell).collect();
    let run = commands.iter().find_map(|command| arguments_of_run(command));
    match (program, run) {
        ([_, ..], _) if is_whole => found.push(Inner::Words(program)),
        ([first, ..], Some(run)) => {
            let words = [first.clone()].into_iter().chain(run.split_whitespace().map(Argument::of));
            found.push(Inner::Split(words.collect()));
        }
        _ => {}
    }
    found
}

/// Returns the arguments that a command of `gdb` starts the program with: of `run -x`, `-x`.
fn arguments_of_run(command: &str) -> Option<&str> {
    let (name, rest) = command.split_once(' ').unwrap_or((command, ""));
    matches!(name, "r" | "run" | "start" | "starti").then_some(rest)
}
