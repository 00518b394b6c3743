//! Error messages: each error with its place, a snippet and how to fix it, and all errors at once.

use std::error::Error;
use std::io::{self, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, Report, SourceCode};

use super::{BROKEN_OFF, UNREADABLE, output};
use crate::report::text::{harmless, locale_is_unicode};
use crate::resources::Exhausted;
use crate::run::RunError;
use crate::secrets::Masker;

/// The errors of a command.
#[derive(Debug)]
pub struct CliError {
    reports: Vec<Report>,
    code: u8,
}

impl CliError {
    /// Makes an error for an input that could not be read. Nothing was started.
    pub fn unreadable(message: impl std::fmt::Display) -> Self {
        Self { reports: vec![Report::msg(message.to_string())], code: UNREADABLE }
    }

    /// Makes an error from several errors.
    pub fn all<E: Diagnostic + Send + Sync + 'static>(errors: impl IntoIterator<Item = E>) -> Self {
        Self { reports: errors.into_iter().map(Report::new).collect(), code: UNREADABLE }
    }

    /// Makes an error of the engine itself.
    pub fn of_the_engine(message: impl std::fmt::Display) -> Self {
        Self { code: BROKEN_OFF, ..Self::unreadable(message) }
    }

    /// Changes the exit code to that of errors after the start of trials: the files of a run could not be read or
    /// written.
    #[must_use]
    pub fn after_the_start(self) -> Self {
        Self { code: BROKEN_OFF, ..self }
    }

    /// Merges the errors, each once.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        let known: Vec<String> = self.reports.iter().map(ToString::to_string).collect();
        self.reports.extend(other.reports.into_iter().filter(|report| !known.contains(&report.to_string())));
        self
    }

    /// Returns the messages on one line.
    pub fn text(&self) -> String {
        self.reports.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Prints the errors to standard error, with the secrets of the environment redacted: a snippet may contain one.
    pub fn print(&self) {
        let colour = wants_colour(&io::stderr());
        let env = crate::own_environment::texts();
        let masker = Masker::of_env(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &[]);
        let mut err = output::stderr();
        for report in &self.reports {
            let _ = write!(err, "{}", masker.mask(&rendered(report.as_ref(), colour)));
        }
    }
}

/// Returns true if diagnostics on a stream are coloured. The door to the stream shows colours under the same condition.
pub fn wants_colour(stream: &impl RawStream) -> bool {
    stream.is_terminal() && AutoStream::choice(stream) != ColorChoice::Never
}

/// Returns a diagnostic with its snippet, sanitised for a terminal.
pub fn rendered(report: &dyn Diagnostic, colour: bool) -> String {
    let theme = match (locale_is_unicode(), colour) {
        (true, true) => GraphicalTheme::unicode(),
        (true, false) => GraphicalTheme::unicode_nocolor(),
        (false, true) => GraphicalTheme::ascii(),
        (false, false) => GraphicalTheme::none(),
    };
    let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_width(width());
    let handler = handler
        .with_break_words(false)
        .with_word_splitter(textwrap::WordSplitter::NoHyphenation)
        .with_word_separator(textwrap::WordSeparator::Custom(words));
    let shown = SanitisedDiagnostic::of(report);
    let mut text = String::new();
    if handler.render_report(&mut text, &shown).is_err() {
        text = format!("{shown}\n");
    }
    text
}

/// The widest layout of a message, and the layout without a terminal.
const WIDEST: usize = 110;
/// The narrowest layout of a message.
const NARROWEST: usize = 40;

/// Returns the number of columns of a message: those of the terminal, if standard error is one.
fn width() -> usize {
    super::terminal::stderr_size().map_or(WIDEST, |size| size.columns.clamp(NARROWEST, WIDEST))
}

/// Breaks the lines of a note so that they fit a terminal, as those of a message.
pub fn broken(text: &str, columns: usize) -> String {
    let options = textwrap::Options::new(columns.max(NARROWEST))
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::Custom(words));
    let lines = text.split('\n').flat_map(|line| textwrap::wrap(line, options.clone()));
    lines.map(|line| line.into_owned()).collect::<Vec<_>>().join("\n")
}

/// Splits a line into words between which it may be broken: not within back-quotes, and not in a command that ends the
/// line (`…: evals init DIR`), so that a name or a command can be copied.
fn words(line: &str) -> Box<dyn Iterator<Item = textwrap::core::Word<'_>> + '_> {
    let mut words = Vec::new();
    let (mut start, mut quoted, mut after_space) = (0, false, false);
    for (at, c) in line.char_indices() {
        if after_space && c != ' ' && !quoted {
            words.push(textwrap::core::Word::from(&line[start..at]));
            start = at;
            if line[..at].ends_with(": ") && line[at..].starts_with("evals ") {
                break;
            }
        }
        quoted ^= c == '`';
        after_space = c == ' ' && !quoted;
    }
    words.push(textwrap::core::Word::from(&line[start..]));
    Box::new(words.into_iter())
}

/// A diagnostic whose texts are sanitised for a terminal: messages contain values from files of unknown
/// authors. The text of a file is sanitised when the file is read.
#[derive(Debug)]
struct SanitisedDiagnostic<'a> {
    of: &'a dyn Diagnostic,
    causes: Option<Box<Cause>>,
}

/// The cause of an error.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Cause {
    message: String,
    source: Option<Box<Cause>>,
}

impl<'a> SanitisedDiagnostic<'a> {
    fn of(of: &'a dyn Diagnostic) -> Self {
        fn cause(error: Option<&dyn Error>) -> Option<Box<Cause>> {
            let error = error?;
            Some(Box::new(Cause { message: harmless(&error.to_string()), source: cause(error.source()) }))
        }
        Self { of, causes: cause(of.source()) }
    }
}

impl std::fmt::Display for SanitisedDiagnostic<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&harmless(&self.of.to_string()))
    }
}

impl Error for SanitisedDiagnostic<'_> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.causes.as_deref().map(|cause| cause as &(dyn Error + 'static))
    }
}

impl Diagnostic for SanitisedDiagnostic<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn std::fmt::Display + 'b>> {
        self.of.code()
    }

    fn severity(&self) -> Option<miette::Severity> {
        self.of.severity()
    }

    fn help<'b>(&'b self) -> Option<Box<dyn std::fmt::Display + 'b>> {
        self.of.help().map(|help| Box::new(harmless(&help.to_string())) as Box<dyn std::fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.of.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.of.labels()?;
        Some(Box::new(labels.map(|label| {
            let text = label.label().map(harmless);
            if label.primary() {
                LabeledSpan::new_primary_with_span(text, *label.inner())
            } else {
                LabeledSpan::new_with_span(text, *label.inner())
            }
        })))
    }
}

/// Makes the error of a run that could not be made in a folder of runs. If the folder cannot be written, the message names the
/// option for another one.
pub fn of_new_run(error: RunError, option: &str) -> CliError {
    let is_refused = |source: &io::Error| {
        matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
    };
    let way_out = match &error {
        RunError::Io { doing, source, .. } if *doing != "read" && is_refused(source) => {
            Some(format!("{error}; name a folder that can be written with {option}"))
        }
        _ => None,
    };
    let whole = failed(error);
    match way_out {
        Some(message) => CliError { code: whole.code, ..CliError::unreadable(message) },
        None => whole,
    }
}

/// Makes an error of the engine if the cause means an exhausted machine, else an error of unreadable input.
fn failed(error: impl Error + 'static) -> CliError {
    match Exhausted::of(&error) {
        Some(_) => CliError::of_the_engine(error),
        None => CliError::unreadable(error),
    }
}

impl From<RunError> for CliError {
    fn from(error: RunError) -> Self {
        failed(error)
    }
}

impl From<crate::whole_file::FileError> for CliError {
    fn from(error: crate::whole_file::FileError) -> Self {
        failed(error)
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        failed(error)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_folder_of_runs_that_cannot_be_written_has_a_way_out() {
        let of = |kind: io::ErrorKind| {
            let error = RunError::io("make the folder", Path::new(".evals/runs"))(kind.into());
            let error = of_new_run(error, "--out DIR");
            (error.code(), error.text().ends_with("name a folder that can be written with --out DIR"))
        };
        assert_eq!(of(io::ErrorKind::PermissionDenied), (UNREADABLE, true));
        assert_eq!(of(io::ErrorKind::ReadOnlyFilesystem), (BROKEN_OFF, true));
        assert_eq!(of(io::ErrorKind::StorageFull), (BROKEN_OFF, false));
    }
}
