//! How errors reach the user: each with its place, a snippet and the way out, all of them at once.

use std::io::{self, IsTerminal, Write};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, Report};

use super::UNREADABLE;
use crate::report::text::locale_is_unicode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub struct CliError {
    reports: Vec<Report>,
    code: u8,
}

impl CliError {
    /// Something that could not be read; nothing was started.
    pub fn unreadable(message: impl std::fmt::Display) -> Self {
        Self { reports: vec![Report::msg(message.to_string())], code: UNREADABLE }
    }

    /// Several such things.
    pub fn all<E: Diagnostic + Send + Sync + 'static>(errors: impl IntoIterator<Item = E>) -> Self {
        Self { reports: errors.into_iter().map(Report::new).collect(), code: UNREADABLE }
    }

    /// These and those, each once.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let known: Vec<String> = self.reports.iter().map(ToString::to_string).collect();
        self.reports.extend(other.reports.into_iter().filter(|report| !known.contains(&report.to_string())));
        self
    }

    /// The exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Prints them to standard error.
    pub fn print(&self) {
        let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let theme = match (locale_is_unicode(), colour) {
            (true, true) => GraphicalTheme::unicode(),
            (true, false) => GraphicalTheme::unicode_nocolor(),
            (false, true) => GraphicalTheme::ascii(),
            (false, false) => GraphicalTheme::none(),
        };
        let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(110);
        let mut err = io::stderr().lock();
        for report in &self.reports {
            let mut text = String::new();
            if handler.render_report(&mut text, report.as_ref()).is_err() {
                text = format!("{report}\n");
            }
            let _ = write!(err, "{text}");
        }
    }
}

impl From<crate::run::RunError> for CliError {
    fn from(error: crate::run::RunError) -> Self {
        CliError::unreadable(error)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        CliError::unreadable(error)
    }
}
