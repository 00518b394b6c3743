//! Finds copies of a run in a folder of runs: several folders whose `run.json` has the same ID.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::evidence;
use crate::ids::TrialId;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::run::merge::replaced::{States, hold_all};

/// A folder of a run that has copies.
struct Copied<'a> {
    path: &'a Path,
    states: States,
    /// The finished trials whose stored results are missing, or differ from the recorded ones.
    damaged: HashSet<TrialId>,
}

/// Returns the folders whose results are all in another folder of the same run, each with that folder. A result that was
/// lost or changed in a folder counts as not in it if the other one has it whole. Of folders with the same results, the
/// one that is named by the ID holds those of the others. Only the journals and results of runs with copies are read; a
/// folder whose journal cannot be read neither holds nor is held.
pub fn holders<'a>(runs: &[&'a (PathBuf, RunRecord)]) -> HashMap<&'a Path, &'a Path> {
    let mut by_run: BTreeMap<&'a str, Vec<(&'a Path, &'a RunRecord)>> = BTreeMap::new();
    for &run in runs {
        let (path, record) = run;
        by_run.entry(&record.run).or_default().push((path.as_path(), record));
    }
    let mut holders: HashMap<&'a Path, &'a Path> = HashMap::new();
    for (run, mut copies) in by_run.into_iter().filter(|(_, copies)| copies.len() > 1) {
        copies.sort_by_key(|(path, _)| !path.ends_with(run));
        let folders: Vec<Copied<'a>> =
            copies.into_iter().filter_map(|(path, record)| Copied::read(path, record)).collect();
        for (place, folder) in folders.iter().enumerate() {
            let holder = folders.iter().enumerate().find(|(of_other, other)| {
                *of_other != place && other.holds(folder) && (*of_other < place || !folder.holds(other))
            });
            holders.extend(holder.map(|(_, other)| (folder.path, other.path)));
        }
    }
    holders
}

impl<'a> Copied<'a> {
    fn read(path: &'a Path, record: &RunRecord) -> Option<Self> {
        let folder = RunFolder::open(path);
        let states = folder.states().ok()?;
        let damaged = evidence::damaged(&folder, record, &states);
        Some(Self { path, states, damaged })
    }

    /// Returns true if every result of another folder is in this one. Results without a digest, as in runs of older versions,
    /// are if both folders have the same journal.
    fn holds(&self, other: &Copied<'_>) -> bool {
        let has_whole = |id: &TrialId| {
            other.states.get(id).is_some_and(|state| state.finished.is_some()) && !other.damaged.contains(id)
        };
        let holds_all = self.states == other.states || hold_all(&[&self.states], &other.states);
        holds_all && !self.damaged.iter().any(has_whole)
    }
}
