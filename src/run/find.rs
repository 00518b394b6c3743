//! Finds runs in a folder of runs: by their names, or all of them.

use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::folder::{RunFolder, has_remains};
use super::journal::TrialState;
use super::merge::replaced::Merges;
use super::merge::{self, MergedFrom};
use super::{RunError, RunHead, RunRecord};
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
    Names::of(runs).by_name(name)
}

/// Returns the run with this name, in order to resume it. `latest` is the newest run, even if none of its trials has
/// finished. If `reruns` is true, it may be a rerun of failed trials that has not run all of them.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn to_resume(runs: &Path, name: &str, reruns: bool) -> Result<RunFolder, RunError> {
    Names::of(runs).by_name_where(name, if reruns { Latest::BegunOrRerun } else { Latest::Begun })
}

/// The runs that `latest` may name. The newest of them counts.
#[derive(Clone, Copy, PartialEq)]
enum Latest {
    /// Runs with a trial that was played to its end, or all that ran trials if there is none.
    Played,
    /// Runs that ran trials, or began to.
    Begun,
    /// These, and reruns of failed trials with trials that have not finished.
    BegunOrRerun,
}

/// The names of the runs in a folder. The folder is looked at once, for the first name that is not a path, and no plan of its
/// runs is kept.
pub struct Names<'a> {
    folder: &'a Path,
    listing: OnceCell<Listing>,
}

/// The runs that a look at a folder found.
struct Listing {
    /// The runs, in the order of [`all`].
    known: Vec<(PathBuf, RunHead)>,
    /// The folders of the runs that cannot be read.
    broken: Vec<PathBuf>,
}

impl<'a> Names<'a> {
    /// Returns the names of the runs in a folder.
    pub fn of(folder: &'a Path) -> Self {
        Self { folder, listing: OnceCell::new() }
    }

    /// Returns the folder of runs.
    pub fn folder(&self) -> &'a Path {
        self.folder
    }

    /// Returns the runs, in the order of [`all`].
    pub fn runs(&self) -> &[(PathBuf, RunHead)] {
        &self.listing().known
    }

    /// Returns the run with this name, as the function [`by_name`] does.
    ///
    /// # Errors
    /// Returns an error if no run matches, or several do.
    pub fn by_name(&self, name: &str) -> Result<RunFolder, RunError> {
        self.by_name_where(name, Latest::Played)
    }

    fn listing(&self) -> &Listing {
        self.listing.get_or_init(|| Listing::at(self.folder))
    }

    fn by_name_where(&self, name: &str, latest: Latest) -> Result<RunFolder, RunError> {
        let path = Path::new(name);
        let is_path = path.join("run.json").is_file() || (name.contains('/') && is_run(path));
        if is_path {
            return Ok(RunFolder::open(path));
        }
        match named(self.folder, self.listing(), name, latest) {
            // Without `run.json`, a folder is taken for a run only if the name means nothing else: other programs have journals, too.
            Err(RunError::Unknown { .. }) if is_run(path) => Ok(RunFolder::open(path)),
            found => found,
        }
    }
}

impl Listing {
    fn at(runs: &Path) -> Self {
        let (mut known, mut broken) = (Vec::new(), Vec::new());
        for path in paths(runs) {
            match RunFolder::open(&path).head() {
                Ok(head) => known.push((path, head)),
                Err(_) => broken.push(path),
            }
        }
        let with_holder = copies_with_holder(&known);
        known.sort_by_cached_key(|(path, head)| place(path, &head.run, &head.started, &with_holder));
        Self { known, broken }
    }
}

/// Returns the folders of runs whose results are all in another copy of the run. Only the plans of runs with copies are read.
fn copies_with_holder(known: &[(PathBuf, RunHead)]) -> HashSet<PathBuf> {
    let mut folders: HashMap<&str, usize> = HashMap::new();
    for (_, head) in known {
        *folders.entry(&head.run).or_default() += 1;
    }
    let has_copies = |head: &RunHead| folders.get(&*head.run).is_some_and(|count| *count > 1);
    let copied = with_plans(known.iter().filter(|(_, head)| has_copies(head)));
    let with_holder = copies::holders(&copied.iter().collect::<Vec<_>>());
    with_holder.into_keys().map(Path::to_owned).collect()
}

/// Returns the merged runs among runs and the shards of merged runs. No other run is needed to know which runs are replaced.
fn merged_and_shards(known: &[&(PathBuf, RunHead)]) -> Vec<(PathBuf, RunRecord)> {
    let merged_from = |path: &PathBuf| MergedFrom::of(path).ok().flatten();
    let merged: HashMap<&PathBuf, MergedFrom> =
        known.iter().filter_map(|(path, _)| Some((path, merged_from(path)?))).collect();
    let shards: HashSet<&str> = merged.values().flat_map(|from| &from.shards).map(|shard| &*shard.run).collect();
    let is_needed = |path: &PathBuf, head: &RunHead| merged.contains_key(path) || shards.contains(&*head.run);
    with_plans(known.iter().copied().filter(|(path, head)| is_needed(path, head)))
}

fn with_plans<'a>(runs: impl Iterator<Item = &'a (PathBuf, RunHead)>) -> Vec<(PathBuf, RunRecord)> {
    runs.filter_map(|(path, _)| Some((path.clone(), RunFolder::open(path).record_to_read().ok()?))).collect()
}

/// Returns the run with this name, which is not a path.
fn named(runs: &Path, Listing { known, broken }: &Listing, name: &str, latest: Latest) -> Result<RunFolder, RunError> {
    let path = Path::new(name);
    // Runs dated in the future come last: they would otherwise be the newest until that time.
    let (ahead, known): (Vec<_>, Vec<_>) = known.iter().partition(|(_, head)| is_ahead(&head.started));
    let known: Vec<&(PathBuf, RunHead)> = known.into_iter().chain(ahead).collect();
    // A run that cannot be read still matches; opening it reports the error.
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
        let merged = merged_and_shards(&known);
        let merges = Merges::of(&merged);
        let is_open_rerun = |path: &Path, head: &RunHead| {
            latest == Latest::BegunOrRerun && head.is_rerun() && has_open_trial(&RunFolder::open(path))
        };
        let mut of_trials =
            known.iter().filter(|(path, head)| (head.has_run() && !merges.replaces(path)) || is_open_rerun(path, head));
        let is_latest = |path: &Path| latest != Latest::Played || RunFolder::open(path).has_played_trial();
        let newest = of_trials.clone().find(|(path, _)| is_latest(path)).or_else(|| of_trials.next());
        // Ids begin with the time.
        let newer = |path: &&PathBuf| newest.is_none_or(|(_, head)| id_of(path) > head.run);
        if let Some(path) = broken.iter().filter(newer).max() {
            return Ok(RunFolder::open(path));
        }
        return newest.map(|(path, _)| RunFolder::open(path)).ok_or_else(|| unknown(String::new()));
    }
    if let Some((path, _)) = known.iter().find(|(_, head)| head.run == name) {
        return Ok(RunFolder::open(path));
    }
    if let Some((path, _)) = known.iter().find(|(_, head)| head.label.as_deref() == Some(name)) {
        return Ok(RunFolder::open(path));
    }
    let ids = known.iter().map(|(path, head)| (path, head.run.clone()));
    let ids = ids.chain(broken.iter().map(|path| (path, id_of(path))));
    let matches: Vec<_> = ids.filter(|(_, id)| id.starts_with(name)).collect();
    match matches.as_slice() {
        [(path, _)] => Ok(RunFolder::open(path)),
        [] => {
            let some: Vec<_> = known.iter().take(3).map(|(_, head)| head.run.as_str()).collect();
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

/// Returns true if a planned trial of a run has not finished. A run that cannot be read has none.
fn has_open_trial(folder: &RunFolder) -> bool {
    let (Ok(record), Ok(states)) = (folder.record_to_read(), folder.states()) else { return false };
    let mut planned = record.trials.iter().filter(|trial| trial.skip.is_none());
    planned.any(|trial| !states.get(&trial.id()).is_some_and(TrialState::is_done))
}

/// Returns true if a run is dated in the future, because the clock of its machine or of this one is wrong. Clocks may differ by
/// a few minutes.
pub fn is_ahead(started: &str) -> bool {
    const TOLERATED: i64 = 5 * 60;
    let started = started.parse::<jiff::Timestamp>();
    started.is_ok_and(|started| started.as_second() > jiff::Timestamp::now().as_second() + TOLERATED)
}

/// Returns the runs in a folder, newest first, with their records; unreadable ones are left out. A merged run begins with
/// the last of its shards and comes before it. Of copies of a run, the one that holds the results of the others comes first.
pub fn all(runs: &Path) -> Vec<(PathBuf, RunRecord)> {
    let read = |path: PathBuf| RunFolder::open(&path).record_to_read().ok().map(|record| (path, record));
    let mut found: Vec<_> = paths(runs).into_iter().filter_map(read).collect();
    let with_holder = copies::holders(&found.iter().collect::<Vec<_>>());
    let with_holder: HashSet<PathBuf> = with_holder.into_keys().map(Path::to_owned).collect();
    found.sort_by_cached_key(|(path, record)| place(path, &record.run, &record.started, &with_holder));
    found
}

/// Returns the folders of the runs that [`all`] returns, in the same order. A reader of one run after another need not hold all
/// plans at once.
pub fn in_order(runs: &Path) -> Vec<PathBuf> {
    Listing::at(runs).known.into_iter().map(|(path, _)| path).collect()
}

/// Returns the key by which [`all`] sorts a run.
fn place(path: &Path, run: &str, started: &str, with_holder: &HashSet<PathBuf>) -> impl Ord + use<> {
    let age = Reverse((started.to_owned(), path.join(merge::FILE).exists(), run.to_owned()));
    (age, with_holder.contains(path), !path.ends_with(run))
}

/// Returns the runs whose results count beside each other, in the same order. Left out are runs whose results are all in a merged
/// run or in another copy of the run, and merged runs whose shards have got further results since. The newest run comes first.
pub fn without_repeated(all: &[(PathBuf, RunRecord)]) -> Vec<&(PathBuf, RunRecord)> {
    let merges = Merges::of(all);
    let left: Vec<_> = all.iter().filter(|(path, _)| !merges.replaces(path) && !merges.is_outdated(path)).collect();
    let with_holder = copies::holders(&left);
    left.into_iter().filter(|(path, _)| !with_holder.contains_key(path.as_path())).collect()
}

/// Returns the folders of runs in a folder, newest first by their names, which begin with the time. Links are left out:
/// their runs lie elsewhere.
pub fn paths(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let is_removed = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with(REMOVED);
    let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let folders = entries.filter(|entry| is_folder(entry) && !is_removed(entry));
    let mut found: Vec<PathBuf> = folders.map(|entry| entry.path()).filter(|path| is_run(path)).collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

/// Returns the errors of unreadable runs in a folder, and of lists of shards that cannot be read: the shards of such a run
/// count beside it.
pub fn unreadable(runs: &Path) -> Vec<RunError> {
    let error = |path: PathBuf| match RunFolder::open(&path).record_to_read() {
        Ok(_) => MergedFrom::of(&path).err(),
        Err(error) => Some(error),
    };
    paths(runs).into_iter().filter_map(error).collect()
}

/// Returns true if a folder is that of a run. A run whose `run.json` was removed cannot be read, but it exists.
pub fn is_run(path: &Path) -> bool {
    path.join("run.json").is_file() || has_remains(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_named_without_its_plan_and_the_folder_is_looked_at_once() {
        let root = tempfile::tempdir().unwrap();
        let write = |run: &str, label: &str| {
            let head = serde_json::json!({"version": 1, "run": run, "started": "2026-01-01T00:00:00Z", "label": label});
            fs::create_dir(root.path().join(run)).unwrap();
            fs::write(root.path().join(run).join("run.json"), head.to_string()).unwrap();
        };
        // No plan: such a record cannot be opened, but its name is known.
        write("20260101-a", "one");
        write("20260102-b", "two");
        let names = Names::of(root.path());
        let found = |name: &str| names.by_name(name).map(|folder| folder.path);
        assert_eq!(found("one").unwrap(), root.path().join("20260101-a"));
        assert!(RunFolder::open(&found("one").unwrap()).record().is_err());
        assert_eq!(found("20260102").unwrap(), root.path().join("20260102-b"));
        assert_eq!(found("latest").unwrap(), root.path().join("20260102-b"));
        write("20260103-c", "three");
        assert!(found("three").is_err(), "the folder is not looked at again");
        assert_eq!(in_order(root.path()).len(), 3);
    }
}
