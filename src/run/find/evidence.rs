//! Finds stored results and evidence that were lost or changed after the run. Another folder may still have them whole.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::ids::{TrialId, TrialRecord};
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::run::journal::TrialState;
use crate::run::merge::replaced::{Merges, States};

/// The files of an attempt, and its kept workspace.
const FILES: [&str; 8] = [
    "result.json",
    "trace.jsonl",
    "wire.jsonl",
    "llm.jsonl",
    "model.jsonl",
    "stderr.log",
    "workspace.patch",
    "workspace",
];

/// The size of each file, by trial, attempt and name. A folder has the size 0.
type Evidence = HashMap<(TrialId, u32, &'static str), u64>;

/// Returns the runs that a merged run replaces and whose evidence is all in runs that stay. If a file of a trial was lost
/// or changed in the merged run, the run that has the file is not among them.
pub fn replaced<'a>(runs: &'a [(PathBuf, RunRecord)], merges: &Merges<'_>) -> HashSet<&'a Path> {
    let (replaced, stay): (Vec<_>, Vec<_>) = runs.iter().partition(|(path, _)| merges.replaces(path));
    let groups: HashSet<&str> = replaced.iter().map(|(_, record)| merges.group_of(&record.run)).collect();
    let mut by_group: HashMap<&str, Vec<Evidence>> = HashMap::new();
    for (path, record) in stay {
        let group = merges.group_of(&record.run);
        if groups.contains(group) {
            by_group.entry(group).or_default().push(evidence(path, record));
        }
    }
    let has_holder = |(path, record): &&(PathBuf, RunRecord)| {
        let holders = by_group.get(merges.group_of(&record.run)).map(Vec::as_slice).unwrap_or_default();
        let own = evidence(path, record);
        own.iter().all(|(file, size)| holders.iter().any(|holder| holder.get(file) == Some(size)))
    };
    replaced.into_iter().filter(has_holder).map(|(path, _)| path.as_path()).collect()
}

/// Returns the evidence of the finished trials of a run. An attempt whose result does not count any more is left out. The
/// evidence is empty if the journal cannot be read.
fn evidence(path: &Path, record: &RunRecord) -> Evidence {
    let folder = RunFolder::open(path);
    let mut found = Evidence::new();
    let Ok(states) = folder.states() else { return found };
    let damaged = damaged(&folder, record, &states);
    for trial in &record.trials {
        let id = trial.id();
        let Some(state) = states.get(&id).filter(|state| state.finished.is_some()) else { continue };
        let mut attempts = earlier_attempts(&folder, &id);
        attempts.remove(&state.attempt);
        if !damaged.contains(&id) {
            attempts.extend(folder.counting_attempt(trial, state).ok().map(|at| (state.attempt, at)));
        }
        for (number, at) in attempts {
            for name in FILES {
                // A link is no evidence: it may lead anywhere.
                if let Ok(meta) = at.join(name).symlink_metadata()
                    && !meta.is_symlink()
                {
                    let size = if meta.is_dir() { 0 } else { meta.len() };
                    found.insert((id.clone(), number, name), size);
                }
            }
        }
    }
    found
}

/// Returns the folders of the earlier attempts of a trial, by number.
fn earlier_attempts(folder: &RunFolder, id: &TrialId) -> HashMap<u32, PathBuf> {
    let attempts = folder.stored_trial(id).ok().map(|at| at.join("attempts")).filter(|at| !at.is_symlink());
    let entries = attempts.and_then(|at| fs::read_dir(at).ok()).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path()))).collect()
}

/// Returns the finished trials of a run whose stored results are missing, or differ from the recorded ones.
pub(super) fn damaged(folder: &RunFolder, record: &RunRecord, states: &States) -> HashSet<TrialId> {
    let counts = |trial: &TrialRecord, state: &TrialState| {
        folder.result_of(trial, state).is_ok_and(|result| !result.is_not_as_judged() && !result.is_from_copy())
    };
    let is_damaged = |trial: &&TrialRecord| {
        let state = states.get(&trial.id()).filter(|state| state.finished.is_some());
        state.is_some_and(|state| !counts(trial, state))
    };
    record.trials.iter().filter(is_damaged).map(TrialRecord::id).collect()
}
