//! `evals export`: writes a run in the format of another tool.

use std::path::PathBuf;

use super::compare::{Use, tell_not_accepted};
use super::grade::stored_traces;
use super::snapshot::acceptance::Acceptance;
use super::{CliError, RunsFolder, complete, named_run, terminal};
use crate::export::Target;
use crate::report::Report;
use crate::run::folder::RunFolder;
use crate::text::plural;
use crate::whole_file::write_whole;

#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Run: ID, ID prefix, label, path, or `latest`
    #[arg(add = complete::runs())]
    run: String,
    /// Format
    #[arg(long = "to", value_enum, value_name = "FORMAT")]
    target: Target,
    /// Folder of the export
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &ExportArgs) -> Result<u8, CliError> {
    let run = named(args)?;
    let record = run.record()?;
    let results = run.results(&record)?;
    results.iter().for_each(terminal::tell_if_not_as_judged);
    let (results, not_accepted) = Acceptance::of(&run, &record).all_counted(results);
    if !not_accepted.is_empty() {
        tell_not_accepted(&record, &run, not_accepted, Use::Compared)?;
    }
    let not_run = record.trials.len().saturating_sub(results.len());
    let report = Report::new(&record, results, not_run, &run.path);
    let exported = args.target.export(report.whole()?).map_err(CliError::unreadable)?;
    let existing = exported.files.iter().map(|(path, _)| args.output.join(path)).find(|path| path.exists());
    if let Some(path) = existing.filter(|_| !args.force) {
        let path = path.display();
        return Err(CliError::unreadable(format!(
            "{path} exists; choose another folder with -o, or replace it with --force"
        )));
    }
    for (path, value) in &exported.files {
        let path = args.output.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        write_whole(&path, |out| {
            serde_json::to_writer_pretty(&mut *out, value)?;
            out.write_all(b"\n")
        })?;
    }
    for note in &exported.notes {
        terminal::note(format_args!("note: {note}"));
    }
    terminal::note(format_args!("{} written to {}", plural(exported.files.len(), "file"), args.output.display()));
    Ok(0)
}

/// Opens the named run. The error says so if the path names a trace instead.
fn named(args: &ExportArgs) -> Result<RunFolder, CliError> {
    named_run::by_name(&args.folder.runs, &args.run).map_err(|error| {
        let trace = stored_traces::of_folder(&args.run);
        match trace.is_some_and(|path| stored_traces::header(&path).is_ok()) {
            true => CliError::unreadable(format!("`{}` is a trace, and {}", args.run, args.target.needs_run())),
            false => error.into(),
        }
    })
}
