//! Writes the folder of a merged run: the trials of all shards with their evidence, under one journal. The folder
//! appears complete or not at all.

use std::fs;
use std::io;
use std::path::Path;

use super::{FILE, MergedFrom, MergedShard};
use crate::result::TrialResult;
use crate::run::folder::RunFolder;
use crate::run::folder::unfinished::UnfinishedRun;
use crate::run::integrity::Changed;
use crate::run::journal::{JournalLine, TrialState};
use crate::run::{RunError, RunRecord};
use crate::text::{plural, shell_word};
use crate::whole_file::{link_or_copy, sync_folder, write_whole};
use crate::workspace::{WorkspaceError, copy_with_special_files};

/// Writes the merged run into a folder of runs. `shards` are the runs in the order of their numbers. If a run has the ID
/// already, the record gets the next one.
///
/// # Errors
/// Returns an error if a shard was changed after it ran, if evidence of a finished trial is missing, or if the file
/// system refuses. Nothing is left then.
pub fn write(runs: &Path, record: &mut RunRecord, shards: &[(RunFolder, RunRecord)]) -> Result<RunFolder, RunError> {
    let unfinished = UnfinishedRun::begin(runs, record)?;
    let folder = unfinished.folder();
    let mut journals = Vec::new();
    for (shard, planned) in shards {
        // The lines are checked before their digests are replaced by those of the new journal.
        journals.push(shard.trusted_lines()?);
        for trial in &planned.trials {
            shard.stored_trial(&trial.id())?;
        }
        // Missing evidence is an error about the shard. Results that the journal lacks were finished, too.
        let lines = count_result_lines(shard)?;
        let found = shard.results_of_trials(planned)?;
        if let Some(result) = found.iter().find(|result| result.is_not_as_judged() || result.is_from_copy()) {
            // A copy of a result is written again by any resume.
            let (why, option) = match result.not_as_judged() {
                Some(why) => (why.to_owned(), " --rerun errored"),
                None => (Changed::Lost.reason("its result.json"), ""),
            };
            let message = format!(
                "trial {}: {why}; repair the shard with: evals run --resume {}{option}",
                result.id(),
                shell_word(&shard.path.display().to_string())
            );
            return Err(RunError::Malformed { path: shard.path.clone(), message });
        }
        let results = found.len();
        if lines > results {
            let message = format!(
                "results.jsonl has {}, but the journal records {}",
                plural(lines, "result"),
                plural(results, "finished trial")
            );
            return Err(RunError::Malformed { path: shard.path.clone(), message });
        }
        for trial in &planned.trials {
            let from = shard.stored_trial(&trial.id())?;
            if from.exists() {
                copy_trial(&from, &folder.trial_of(trial)?)?;
            }
        }
    }
    sync_folder(&folder.path)?;
    folder.open_journal()?.write_all(&by_time(journals))?;
    folder.write_results(&folder.results_of_trials(record)?)?;
    let of_shard = |record: &RunRecord| Some(MergedShard { run: record.run.clone(), shard: record.shard? });
    let from = MergedFrom { shards: shards.iter().filter_map(|(_, record)| of_shard(record)).collect() };
    write_whole(&folder.path.join(FILE), |out| {
        serde_json::to_writer_pretty(&mut *out, &from)?;
        out.write_all(b"\n")
    })?;
    crate::run::folder::write_gitignore(runs)?;
    unfinished.publish()
}

/// Returns the number of results in a shard's `results.jsonl`, which is written when the run ends, without those of trials
/// whose results were discarded. It is 0 if the file is missing.
fn count_result_lines(shard: &RunFolder) -> Result<usize, RunError> {
    let path = shard.path.join("results.jsonl");
    let states = shard.states()?;
    let is_discarded = |line: &[u8]| {
        let result = serde_json::from_slice::<TrialResult>(line);
        result.is_ok_and(|result| states.get(&result.id()).is_some_and(TrialState::is_discarded))
    };
    let counts = |line: &&[u8]| !line.is_empty() && !is_discarded(line);
    match crate::regular::read(&path) {
        Ok(text) => Ok(text.split(|byte| *byte == b'\n').filter(counts).count()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(RunError::io("read", &path)(error)),
    }
}

/// Merges lines by their time. The lines of each journal stay in their order.
fn by_time(journals: Vec<Vec<JournalLine>>) -> Vec<JournalLine> {
    let mut journals: Vec<_> = journals.into_iter().map(|lines| lines.into_iter().peekable()).collect();
    let mut merged = Vec::new();
    loop {
        let heads = journals.iter_mut().enumerate().filter_map(|(n, lines)| Some((lines.peek()?.at.clone(), n)));
        let Some((_, next)) = heads.min() else { return merged };
        let line = journals.get_mut(next).and_then(Iterator::next);
        // The digest of the shard's run.json is replaced by that of the merged one.
        merged.extend(line.map(|line| JournalLine { plan: None, ..line }));
    }
}

/// Copies the folder of a trial: evidence is shared with the shard, because it is never written again; kept workspaces
/// are copied, because a reader may work in them.
fn copy_trial(from: &Path, to: &Path) -> Result<(), RunError> {
    fs::create_dir_all(to).map_err(RunError::io("make the folder", to))?;
    for entry in fs::read_dir(from).map_err(RunError::io("read the folder", from))? {
        let entry = entry.map_err(RunError::io("read the folder", from))?;
        let (path, name) = (entry.path(), entry.file_name());
        let kind = entry.file_type().map_err(RunError::io("read", &path))?;
        let new = to.join(&name);
        if kind.is_file() {
            link_or_copy(&path, &new).map_err(RunError::io("copy", &path))?;
        } else if kind.is_dir() && name == "workspace" {
            copy_with_special_files(&path, &new).map_err(|error| not_copied(&path, error))?;
        } else if kind.is_dir() {
            copy_trial(&path, &new)?;
        } else {
            return Err(RunError::NoEvidence(path));
        }
    }
    // The journal names the trial only after its files are durable.
    Ok(sync_folder(to)?)
}

fn not_copied(path: &Path, error: WorkspaceError) -> RunError {
    RunError::io("copy", path)(io::Error::other(error))
}
