//! What the terminal is like: how wide, and whether it is one at all.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use crate::report::text::Look;
use crate::report::trial_name;
use crate::result::{TrialResult, Warning};

/// The look of standard output.
pub fn stdout_look() -> Look {
    let stdout = io::stdout();
    let width = rustix::termios::tcgetwinsize(&stdout).ok().map(|size| usize::from(size.ws_col));
    Look::of(&stdout, width.filter(|width| *width > 0))
}

/// The look of standard error.
pub fn stderr_look() -> Look {
    let stderr = io::stderr();
    let width = rustix::termios::tcgetwinsize(&stderr).ok().map(|size| usize::from(size.ws_col));
    Look::of(&stderr, width.filter(|width| *width > 0))
}

/// Says a line on standard error. One that nobody can read must not end what is at work, nor change how it ends.
pub fn note(line: impl Display) {
    let mut out = super::door::stderr();
    let _ = writeln!(out, "{line}");
}

/// Says that a stored result is not the one that was judged, if it is not, and that `results.jsonl` was changed.
pub fn tell_if_not_as_judged(result: &TrialResult) {
    for warning in result.warnings.iter().filter(|warning| matches!(warning, Warning::ResultsChanged { .. })) {
        note(format_args!("warning: {warning}"));
    }
    for warning in result.warnings.iter().filter(|_| result.is_not_as_judged()) {
        let TrialResult { case, harness, arm, trial, .. } = result;
        note(format_args!("warning: trial {} does not count: {warning}", trial_name(case, harness, arm, *trial)));
    }
}

/// Whether standard error is a terminal.
pub fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}
