//! `evals prune`: removes old runs and keeps the newest.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::output::{self, Content};
use super::{CliError, RunsFolder, terminal};
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::run::merge::replaced::Merges;
use crate::run::{RunError, RunRecord};
use crate::workspace::remove::remove;

#[derive(Debug, clap::Args)]
pub struct PruneArgs {
    /// Number of the newest runs to keep. A merged run and its shards count as one run, and so do shards of one plan and
    /// copies of a run. Runs that were made from another run, and shards whose results are all in a merged run, do not
    /// count; these are kept if they are newer than the oldest run that is kept
    #[arg(long, value_name = "N")]
    keep: usize,
    /// Print the runs to remove, without removing them
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &PruneArgs) -> Result<u8, CliError> {
    let mut out = output::stdout(Content::Text);
    remove_leftovers(args, &mut out)?;
    // The age of a run that is dated in the future is unknown, so the run takes no place among the newest.
    let all = find::all(&args.folder.runs);
    // Runs that cannot be read are kept, and count in both totals.
    let unreadable = find::paths(&args.folder.runs).len().saturating_sub(all.len());
    let is_ahead = |record: &RunRecord| args.keep > 0 && find::is_ahead(&record.started);
    let (ahead, runs): (Vec<_>, Vec<_>) = all.iter().partition(|(_, record)| is_ahead(record));
    for error in find::unreadable(&args.folder.runs) {
        terminal::note(format_args!("note: kept a run that cannot be read: {error}"));
    }
    for (path, record) in ahead {
        let (run, started) = (&record.run, &record.started);
        writeln!(
            out,
            "kept {run}: it is dated {started}, in the future; remove {} if it is not needed",
            path.display()
        )?;
    }
    let mut removed = 0;
    let mut merges = Merges::of(&all);
    merges.group_shards(&all);
    let replaced = find::evidence::replaced(&all, &merges);
    for (path, record) in old(&runs, &merges, &replaced, args.keep) {
        let folder = path.file_name().unwrap_or_default().to_string_lossy();
        // A copy of a run has its ID.
        let run = if folder == record.run { record.run.clone() } else { format!("{} in {folder}", record.run) };
        if args.dry_run {
            writeln!(out, "would remove {run}")?;
            removed += 1;
            continue;
        }
        // A run that an engine is using is kept.
        let mut locked = RunFolder::open(path);
        let why = match locked.lock() {
            Ok(()) => None,
            Err(RunError::Busy(_)) => Some("another evals process is using it".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = why {
            writeln!(out, "kept {run}: {why}")?;
            continue;
        }
        remove_run(path)
            .map_err(|error| CliError::unreadable(format!("could not remove {}: {error}", path.display())))?;
        writeln!(out, "removed {run}")?;
        removed += 1;
    }
    let remain = if args.dry_run { "would remain" } else { "remain" };
    let all = all.len() + unreadable;
    writeln!(out, "{} of {all} runs {remain}", all - removed)?;
    Ok(0)
}

/// Returns the runs that are older than the newest `keep` runs. `runs` begins with the newest.
fn old<'a>(
    runs: &[&'a (PathBuf, RunRecord)],
    merges: &Merges<'_>,
    replaced: &HashSet<&Path>,
    keep: usize,
) -> Vec<&'a (PathBuf, RunRecord)> {
    let mut counted = BTreeSet::new();
    let mut old = Vec::new();
    for &run in runs {
        let (path, record) = run;
        let has_room = counted.len() < keep;
        // A run that was made from another one is worth little without it, and a replaced run without the one that replaces it.
        let is_kept = if record.derived_from.is_some() || record.graded || replaced.contains(path.as_path()) {
            has_room
        } else {
            // Shards and merged runs that hold different results are parts of one run. A copy of a run has its ID.
            let group = merges.group_of(&record.run);
            counted.contains(group) || (has_room && counted.insert(group.to_owned()))
        };
        if !is_kept {
            old.push(run);
        }
    }
    old
}

/// Removes the folder of a run. The folder first gets a name by which the next `prune` finds it if this one is interrupted.
fn remove_run(path: &Path) -> io::Result<()> {
    let doomed = |number: u32| {
        let mut name = OsString::from(find::REMOVED);
        name.push(path.file_name().unwrap_or_default());
        if number > 0 {
            name.push(format!(".{number}"));
        }
        path.with_file_name(name)
    };
    // The rest of an earlier run of this name may be there, if it could not be removed.
    let doomed = (0..).map(doomed).find(|doomed| doomed.symlink_metadata().is_err());
    let doomed = doomed.ok_or(io::ErrorKind::AlreadyExists)?;
    fs::rename(path, &doomed)?;
    remove(&doomed)
}

/// Removes the rest of runs whose removal was interrupted.
fn remove_leftovers(args: &PruneArgs, out: &mut impl Write) -> Result<(), CliError> {
    for entry in fs::read_dir(&args.folder.runs).into_iter().flatten().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let Some(run) = name.strip_prefix(find::REMOVED).filter(|_| path.is_dir() && !path.is_symlink()) else {
            continue;
        };
        if args.dry_run {
            writeln!(out, "would remove the rest of {run}")?;
            continue;
        }
        // Another `prune` may be removing the run.
        let mut locked = RunFolder::open(&path);
        if matches!(locked.lock(), Err(RunError::Busy(_))) {
            continue;
        }
        match remove(&path) {
            Ok(()) => writeln!(out, "removed the rest of {run}, whose removal was interrupted")?,
            Err(error) => terminal::note(format_args!("note: could not remove {}: {error}", path.display())),
        }
    }
    Ok(())
}
