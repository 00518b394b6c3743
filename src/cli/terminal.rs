//! Properties of the terminal: its width, and whether the output is a terminal.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use crate::project;
use crate::report::progress::Size;
use crate::report::text::Look;
use crate::result::{TrialResult, Warning};
use crate::run::RunRecord;
use crate::run::project_of_run::other_project;

/// Returns the look of standard output.
pub fn stdout_look() -> Look {
    let stdout = io::stdout();
    Look::of(&stdout, width(&stdout))
}

/// Returns the look of standard error.
pub fn stderr_look() -> Look {
    let stderr = io::stderr();
    Look::of(&stderr, width(&stderr))
}

/// Returns the width of a terminal, else that in the variable `COLUMNS`.
fn width(stream: impl AsFd) -> Option<usize> {
    let of_terminal = rustix::termios::tcgetwinsize(stream).ok().map(|size| usize::from(size.ws_col));
    let of_variable = || crate::own_environment::var("COLUMNS")?.to_str()?.parse().ok();
    of_terminal.filter(|width| *width > 0).or_else(of_variable).filter(|width| *width > 0)
}

/// Returns the size of the terminal of standard error now. `None` if it is unknown.
pub fn stderr_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    let size = Size { columns: usize::from(size.ws_col), rows: usize::from(size.ws_row) };
    (size.columns > 0 && size.rows > 0).then_some(size)
}

/// Names the project, if it is above the working directory.
pub fn name_project_above() {
    if project::is_above() {
        note(format_args!("note: the project is {}", project::root().display()));
    }
}

/// Prints a line to standard error, broken between words on a terminal. A failure must not end the current work, nor change
/// its result.
pub fn note(line: impl Display) {
    let line = line.to_string();
    let line = match stderr_size() {
        Some(size) => super::errors::broken(&line, size.columns),
        None => line,
    };
    let mut out = super::output::stderr();
    let _ = writeln!(out, "{line}");
}

/// Prints a note about the project whose files are read for a run, if it is not the project of the run and of this command.
pub fn tell_project(record: &RunRecord) {
    let run = &record.run;
    if let (Some(from), Some(now)) = (&record.moved_from, &record.project) {
        let (from, now) = (from.display(), now.display());
        note(format_args!("note: run {run} was made in {from}; its cases are now read in {now}"));
    } else if let Some(now) = other_project(record) {
        let now = now.display();
        note(format_args!(
            "note: cases, graders, manifests and programs of run {run} are those of {now}, the project in which it was made"
        ));
    }
}

/// Prints a warning if a stored result differs from the recorded result, or if `results.jsonl` was changed.
pub fn tell_if_not_as_judged(result: &TrialResult) {
    for warning in result.warnings.iter().filter(|warning| matches!(warning, Warning::ResultsChanged { .. })) {
        note(format_args!("warning: {warning}"));
    }
    for warning in result.warnings.iter().filter(|_| result.is_not_as_judged()) {
        note(format_args!("warning: trial {} does not count: {warning}", result.id()));
    }
}

/// Returns true if standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}
