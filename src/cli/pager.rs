//! Shows long output through the user's pager.

use std::io::{self, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::output::{self, Content, Door};
use super::stop;
use crate::{own_environment, process};

/// The pager if the user names none.
const USUAL: &str = "less";
/// Options for `less`: to end at once if the text fits the screen, to pass colours, and to leave the text there.
const LESS: &str = "FRX";

/// Standard output, or a pager in its place. The pager is waited for when this value is dropped.
pub enum Output {
    /// Standard output itself.
    Direct(Door<StdoutLock<'static>>),
    /// A pager that runs, until its input is closed and the user leaves it.
    Paged(Option<Door<ChildStdin>>, Child),
}

/// The choice between a pager and standard output itself.
#[derive(Debug, clap::Args)]
pub struct PagerArgs {
    /// Do not start a pager on a terminal
    #[arg(long)]
    no_pager: bool,
}

impl PagerArgs {
    /// Returns standard output: text goes through a pager if one is wanted, a person reads and writes on a terminal, and
    /// the program is there.
    pub fn stdout(&self, content: Content) -> Output {
        let on_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        if !self.no_pager
            && content == Content::Text
            && on_terminal
            && let Some(command) = command()
            && let Some((input, pager)) = start(&command)
        {
            return Output::Paged(Some(output::in_place_of_stdout(input)), pager);
        }
        Output::Direct(output::stdout(content))
    }
}

/// Returns the command of the pager: `EVALS_PAGER`, else `PAGER`, else the usual one. `None` if the user wants none
/// (`cat`), the program is not installed, or the terminal cannot show one (`TERM`).
fn command() -> Option<String> {
    let var = |name: &str| own_environment::var(name).and_then(|value| value.into_string().ok());
    let command = var("EVALS_PAGER").or_else(|| var("PAGER")).unwrap_or_else(|| USUAL.to_owned());
    let program = command.split_whitespace().next().filter(|program| *program != "cat")?;
    let dumb = var("TERM").is_none_or(|term| term == "dumb");
    let is_there = process::find(program, Path::new("."), var("PATH").as_deref()).is_some();
    (!dumb && is_there).then_some(command)
}

fn start(command: &str) -> Option<(ChildStdin, Child)> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::piped());
    if own_environment::var("LESS").is_none() {
        shell.env("LESS", LESS);
    }
    let mut pager = shell.spawn().ok()?;
    stop::leave_interrupts_to_others();
    let input = pager.stdin.take()?;
    Some((input, pager))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Direct(door) => door.write(bytes),
            Self::Paged(Some(door), _) => door.write(bytes),
            Self::Paged(None, _) => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Direct(door) => door.flush(),
            Self::Paged(Some(door), _) => door.flush(),
            Self::Paged(None, _) => Ok(()),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Self::Paged(door, pager) = self {
            drop(door.take());
            // What the pager returns says nothing about the trial.
            let _ = pager.wait();
        }
    }
}
