//! `evals report`: the report of a run, in a format.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{CliError, RunsFolder};
use crate::report::Report;
use crate::report::format::{self, Format, ReporterArg};
use crate::report::text::Look;
use crate::run::folder;
use crate::run::write_whole;

#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// A run's id, a start of it, a label, a path, or latest
    #[arg(default_value = "latest")]
    run: String,
    /// The format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Where it goes
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &ReportArgs) -> Result<u8, CliError> {
    let folder = folder::find(&args.folder.runs, &args.run)?;
    let record = folder.record()?;
    let results = folder.results(&record)?;
    let not_run = record.trials.len() - results.len();
    let mut report = Report::new(&record, results, not_run, &folder.path);
    report.snapshots = super::snapshot::kept(&folder)?;
    write(&report, &ReporterArg { format: args.format, path: args.output.clone() })?;
    Ok(0)
}

/// Makes the folder that a report is wanted in.
pub fn make_place(path: &Path) -> Result<(), CliError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    std::fs::create_dir_all(folder)
        .map_err(|error| CliError::unreadable(format!("no report can be written to {}: {error}", path.display())))
}

/// Writes a report to where it is wanted.
pub fn write(report: &Report, reporter: &ReporterArg) -> Result<(), CliError> {
    match &reporter.path {
        Some(path) => {
            make_place(path)?;
            write_whole(path, |out| format::write(reporter.format, report, &Look::PLAIN, out))?;
        }
        None => {
            let look = super::terminal::stdout_look();
            let mut out = std::io::stdout().lock();
            let written = format::write(reporter.format, report, &look, &mut out).and_then(|()| out.flush());
            super::import::ignore_closed_pipe(written)?;
        }
    }
    Ok(())
}
