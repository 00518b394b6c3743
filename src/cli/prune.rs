//! `evals prune`: removes old runs and keeps the newest.

use std::collections::BTreeSet;
use std::io::Write;

use super::output::{self, Content};
use super::{CliError, RunsFolder, terminal};
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::run::{RunError, RunRecord};
use crate::workspace::remove::remove;

#[derive(Debug, clap::Args)]
pub struct PruneArgs {
    /// Number of the newest runs to keep, without copies and those that were made from another run; these are kept if they
    /// are newer than the oldest run that is kept
    #[arg(long, value_name = "N")]
    keep: usize,
    /// Print the runs to remove, without removing them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &PruneArgs) -> Result<u8, CliError> {
    let runs = find::all(&args.folder.runs);
    let mut out = output::stdout(Content::Text);
    let of_trials = |record: &RunRecord| record.derived_from.is_none() && !record.graded;
    let mut left = args.keep;
    let mut counted = BTreeSet::new();
    // A run that was made from another one is worth little without it. A copy of a run counts as the run.
    let kept = runs.iter().take_while(|(_, record)| {
        let goes_on = left > 0 || counted.contains(&record.run);
        left -= usize::from(goes_on && of_trials(record) && counted.insert(&record.run));
        goes_on
    });
    let kept = kept.count();
    for error in find::unreadable(&args.folder.runs) {
        terminal::note(format_args!("note: kept a run that cannot be read: {error}"));
    }
    let mut removed = 0;
    for (path, record) in runs.iter().skip(kept) {
        let folder = path.file_name().unwrap_or_default().to_string_lossy();
        // A copy of a run has its ID.
        let run = if folder == record.run { record.run.clone() } else { format!("{} in {folder}", record.run) };
        if args.dry_run {
            writeln!(out, "would remove {run}")?;
            removed += 1;
            continue;
        }
        // A run that an engine is using is kept.
        let why = match RunFolder::open(path).lock() {
            Ok(()) => None,
            Err(RunError::Busy(_)) => Some("another evals process is using it".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            writeln!(out, "kept {run}: {why}")?;
            continue;
        }
        remove(path).map_err(|error| CliError::unreadable(format!("could not remove {}: {error}", path.display())))?;
        writeln!(out, "removed {run}")?;
        removed += 1;
    }
    let remain = if args.dry_run { "would remain" } else { "remain" };
    writeln!(out, "{} of {} runs {remain}", runs.len() - removed, runs.len())?;
    Ok(0)
}
