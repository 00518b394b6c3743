//! Finds copies of a run in a folder of runs: several folders whose `run.json` has the same ID.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::run::merge::replaced::{States, hold_all};

/// Returns the folders whose results are all in another folder of the same run, each with that folder. Of folders with the same
/// results, the one that is named by the ID holds those of the others. Only the journals of runs with copies are read; a
/// folder whose journal cannot be read neither holds nor is held.
pub fn held<'a>(runs: &[&'a (PathBuf, RunRecord)]) -> HashMap<&'a Path, &'a Path> {
    let mut by_run: BTreeMap<&'a str, Vec<&'a Path>> = BTreeMap::new();
    for &run in runs {
        let (path, record) = run;
        by_run.entry(&record.run).or_default().push(path);
    }
    let mut held: HashMap<&'a Path, &'a Path> = HashMap::new();
    for (run, mut paths) in by_run.into_iter().filter(|(_, paths)| paths.len() > 1) {
        paths.sort_by_key(|path| !path.ends_with(run));
        let read = |path: &'a Path| Some((path, RunFolder::open(path).states().ok()?));
        let folders: Vec<(&'a Path, States)> = paths.into_iter().filter_map(read).collect();
        for (place, (path, states)) in folders.iter().enumerate() {
            let holder = folders.iter().enumerate().find(|(of_other, (_, other))| {
                *of_other != place && holds(other, states) && (*of_other < place || !holds(states, other))
            });
            held.extend(holder.map(|(_, (other, _))| (*path, *other)));
        }
    }
    held
}

/// Returns true if every result of a run is in the holder. Results without a digest, as in runs of older versions, are if
/// both folders have the same journal.
fn holds(holder: &States, run: &States) -> bool {
    holder == run || hold_all(&[holder], run)
}
