//! Finds runs in a folder of runs: by their names, or all of them.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::folder::RunFolder;
use super::merge::replaced::Merges;
use super::merge::{self, MergedFrom};
use super::{RunError, RunRecord};
use crate::paths;
use crate::text::some_of;

pub mod copies;
pub mod evidence;

/// The prefix of the folder of a run that is being removed. The run does not exist any more.
pub const REMOVED: &str = ".removed-";

/// The prefix of the folder in which a run is written before it is complete. The run does not exist yet.
pub const UNFINISHED: &str = ".unfinished-";

/// Returns the run with this name: a path, an ID or a unique ID prefix, a label, or `latest`. The latest run is the
/// newest one with a trial that was played to its end, or the newest of all if none has one.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn by_name(runs: &Path, name: &str) -> Result<RunFolder, RunError> {
    by_name_where(runs, name, &|folder| folder.has_played_trial())
}

/// Returns the run with this name, in order to resume it. `latest` is the newest run, even if none of its trials has
/// finished.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn to_resume(runs: &Path, name: &str) -> Result<RunFolder, RunError> {
    by_name_where(runs, name, &|_| true)
}

fn by_name_where(runs: &Path, name: &str, is_latest: &dyn Fn(&RunFolder) -> bool) -> Result<RunFolder, RunError> {
    let path = Path::new(name);
    if path.join("run.json").is_file() {
        return Ok(RunFolder::open(path));
    }
    // Runs dated in the future come last: they would otherwise be the newest until that time.
    let (ahead, known): (Vec<_>, Vec<_>) = all(runs).into_iter().partition(|(_, record)| is_ahead(record));
    let known: Vec<_> = known.into_iter().chain(ahead).collect();
    // A run that cannot be read still matches; opening it reports the error.
    let broken: Vec<PathBuf> =
        look(runs).into_iter().filter(|(_, record)| record.is_err()).map(|(path, _)| path).collect();
    let id_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A name with these signs is that of a file or a folder, as a rule.
    let is_path = name.contains('/') || name.ends_with(".jsonl");
    let unknown = |hint: String| match is_path && !path.exists() {
        true => RunError::NoFile { path: path.to_owned() },
        false => RunError::Unknown { name: name.to_owned(), folder: paths::absolute(Path::new(""), runs), hint },
    };
    if known.is_empty() && broken.is_empty() {
        return Err(unknown("; there are no runs yet, `evals run` makes one".to_owned()));
    }
    if name == "latest" {
        let merges = Merges::of(&known);
        let ran = |record: &RunRecord| record.derived_from.is_none() && !record.graded;
        let mut of_trials = known.iter().filter(|(path, record)| ran(record) && !merges.replaces(path));
        let newest = of_trials.clone().find(|(path, _)| is_latest(&RunFolder::open(path))).or_else(|| of_trials.next());
        // Ids begin with the time.
        let newer = |path: &&PathBuf| newest.is_none_or(|(_, record)| id_of(path) > record.run);
        if let Some(path) = broken.iter().filter(newer).max() {
            return Ok(RunFolder::open(path));
        }
        return newest.map(|(path, _)| RunFolder::open(path)).ok_or_else(|| unknown(String::new()));
    }
    if let Some((path, _)) = known.iter().find(|(_, record)| record.run == name) {
        return Ok(RunFolder::open(path));
    }
    if let Some((path, _)) = known.iter().find(|(_, record)| record.label.as_deref() == Some(name)) {
        return Ok(RunFolder::open(path));
    }
    let ids = known.iter().map(|(path, record)| (path, record.run.clone()));
    let ids = ids.chain(broken.iter().map(|path| (path, id_of(path))));
    let matches: Vec<_> = ids.filter(|(_, id)| id.starts_with(name)).collect();
    match matches.as_slice() {
        [(path, _)] => Ok(RunFolder::open(path)),
        [] => {
            let some: Vec<_> = known.iter().take(3).map(|(_, record)| record.run.as_str()).collect();
            let newest = if some.is_empty() { String::new() } else { format!("; the newest are {}", some.join(", ")) };
            let unread = broken.iter().map(|path| path.join("run.json").display().to_string());
            let unread = if broken.is_empty() {
                String::new()
            } else {
                format!("; the labels of these runs are unknown, because they cannot be read: {}", some_of(unread, 3))
            };
            Err(unknown(format!("{newest}{unread}")))
        }
        several => {
            let names: Vec<_> = several.iter().map(|(_, id)| id.as_str()).collect();
            Err(RunError::Ambiguous { name: name.to_owned(), matches: names.join(", ") })
        }
    }
}

/// Returns true if a run is dated in the future, because the clock of its machine or of this one is wrong. Clocks may differ by
/// a few minutes.
pub fn is_ahead(record: &RunRecord) -> bool {
    const TOLERATED: i64 = 5 * 60;
    let started = record.started.parse::<jiff::Timestamp>();
    started.is_ok_and(|started| started.as_second() > jiff::Timestamp::now().as_second() + TOLERATED)
}

/// Returns the runs in a folder, newest first, with their records; unreadable ones are left out. A merged run begins with
/// the last of its shards and comes before it. Of copies of a run, the one that holds the results of the others comes first.
pub fn all(runs: &Path) -> Vec<(PathBuf, RunRecord)> {
    let mut found: Vec<_> = look(runs).into_iter().filter_map(|(path, record)| Some((path, record.ok()?))).collect();
    let held = copies::held(&found.iter().collect::<Vec<_>>());
    let held: HashSet<PathBuf> = held.into_keys().map(Path::to_owned).collect();
    found.sort_by_cached_key(|(path, record)| {
        let age = Reverse((record.started.clone(), path.join(merge::FILE).exists(), record.run.clone()));
        (age, held.contains(path), !path.ends_with(&record.run))
    });
    found
}

/// Returns the runs whose results count beside each other, in the same order. Left out are runs whose results are all in a merged
/// run or in another copy of the run, and merged runs whose shards have got further results since. The newest run comes first.
pub fn without_repeated(all: &[(PathBuf, RunRecord)]) -> Vec<&(PathBuf, RunRecord)> {
    let merges = Merges::of(all);
    let left: Vec<_> = all.iter().filter(|(path, _)| !merges.replaces(path) && !merges.is_outdated(path)).collect();
    let held = copies::held(&left);
    left.into_iter().filter(|(path, _)| !held.contains_key(path.as_path())).collect()
}

/// Returns the folders of runs in a folder, newest first by their names, which begin with the time. Links are left out:
/// their runs lie elsewhere.
pub fn paths(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let is_removed = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(REMOVED);
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let folders = entries.filter(|entry| is_folder(entry) && !is_removed(entry));
    let mut found: Vec<PathBuf> =
        folders.map(|entry| entry.path()).filter(|path| path.join("run.json").is_file()).collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

/// Returns the errors of unreadable runs in a folder, and of lists of shards that cannot be read: the shards of such a run
/// count beside it.
pub fn unreadable(runs: &Path) -> Vec<RunError> {
    let error = |(path, record): (PathBuf, Result<RunRecord, RunError>)| match record {
        Ok(_) => MergedFrom::of(&path).err(),
        Err(error) => Some(error),
    };
    look(runs).into_iter().filter_map(error).collect()
}

/// Returns the folders with a `run.json`, and its content.
fn look(runs: &Path) -> Vec<(PathBuf, Result<RunRecord, RunError>)> {
    paths(runs).into_iter().map(|path| (path.clone(), RunFolder::open(&path).record())).collect()
}
