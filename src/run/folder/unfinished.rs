//! Writes the folder of a run completely or not at all: in a folder that is not a run, from which it is moved when it is
//! complete.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::{RunFolder, make_folder};
use crate::run::find::UNFINISHED;
use crate::run::{RunError, RunRecord};
use crate::whole_file::sync_folder;

/// The time after which an unfinished folder that has no lock was left by a killed engine.
const WITHOUT_LOCK: Duration = Duration::from_secs(60);

/// A run whose folder is not complete. If it is dropped, nothing is left.
#[derive(Debug)]
pub struct UnfinishedRun {
    folder: RunFolder,
    part: TempDir,
    place: Place,
}

impl UnfinishedRun {
    /// Begins a run in a folder of runs, and locks it. If a run has the ID already, the record gets the next one. The remains
    /// of killed engines are removed.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn begin(runs: &Path, record: &mut RunRecord) -> Result<Self, RunError> {
        fs::create_dir_all(runs).map_err(RunError::io("make the folder", runs))?;
        remove_left(runs);
        let part = tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(runs);
        let part = part.map_err(RunError::io("make a folder in", runs))?;
        let place = Place(make_folder(runs, record)?);
        let folder = RunFolder::create_in(part.path(), runs, record)?;
        Ok(Self { folder, part, place })
    }

    /// Returns the folder, which has a temporary place.
    pub fn folder(&self) -> &RunFolder {
        &self.folder
    }

    /// Moves the complete folder to its place. The lock stays.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn publish(self) -> Result<RunFolder, RunError> {
        let Self { folder, part, place } = self;
        let path = place.0.clone();
        sync_folder(&folder.path)?;
        fs::rename(&folder.path, &path).map_err(RunError::io("move the complete run to", &path))?;
        sync_folder(path.parent().unwrap_or(Path::new(".")))?;
        drop(part);
        Ok(RunFolder { path, ..folder })
    }
}

/// The empty folder that keeps the ID of the run for it. It is removed unless the run took its place.
#[derive(Debug)]
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        // Fails for the complete run, which is not empty.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Removes what killed engines left. An engine that writes a run holds its lock, which it makes at once.
fn remove_left(runs: &Path) {
    let mut in_use: HashSet<OsString> = HashSet::new();
    for part in entries(runs).filter(|part| part.file_name().to_string_lossy().starts_with(UNFINISHED)) {
        let (ids, locked): (Vec<OsString>, Vec<RunFolder>) = entries(&part.path())
            .map(|run| (run.file_name(), RunFolder::open(&run.path())))
            .filter(|(_, run)| run.path.join(".lock").exists())
            .unzip();
        if (is_old(&part) && locked.is_empty()) || locked.into_iter().any(|mut run| run.lock().is_ok()) {
            let _ = crate::workspace::remove::remove(&part.path());
            // Only an empty folder is removed.
            ids.iter().for_each(|id| drop(fs::remove_dir(runs.join(id))));
        } else {
            in_use.extend(ids);
        }
    }
    // An engine may have been killed before its part had the ID.
    let is_left = |place: &DirEntry| has_form_of_id(&place.file_name().to_string_lossy()) && is_old(place);
    for place in entries(runs).filter(|place| is_left(place) && !in_use.contains(&place.file_name())) {
        let _ = fs::remove_dir(place.path());
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn is_old(entry: &DirEntry) -> bool {
    let changed = entry.metadata().and_then(|meta| meta.modified()).ok();
    changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > WITHOUT_LOCK)
}

/// Returns true for a name in the form of the ID of a run, such as `20260101-000000-0a1f`.
fn has_form_of_id(name: &str) -> bool {
    name.split('-').map(str::len).eq([8, 6, 4]) && name.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::fs::{File, FileTimes};
    use std::time::SystemTime;

    use super::*;
    use crate::run::find;

    fn record() -> RunRecord {
        RunRecord { run: "20260101-000000-0000".to_owned(), ..RunRecord::blank() }
    }

    #[test]
    fn a_run_is_found_only_when_it_is_complete() {
        let root = tempfile::tempdir().unwrap();
        let runs = root.path().join("runs");
        let (mut first, mut second) = (record(), record());
        let one = UnfinishedRun::begin(&runs, &mut first).unwrap();
        let other = UnfinishedRun::begin(&runs, &mut second).unwrap();
        assert_eq!(second.run, "20260101-000000-0001", "the first one has the ID");
        assert_eq!(find::paths(&runs), Vec::<PathBuf>::new());
        drop(other);
        let published = one.publish().unwrap();
        assert_eq!(find::paths(&runs), [runs.join(&first.run)]);
        assert_eq!(fs::read_dir(&runs).unwrap().count(), 1, "nothing is left of either");
        assert_eq!(published.record().unwrap().run, first.run);
        // The lock moved with the folder.
        assert!(RunFolder::open(&published.path).is_in_use());
    }

    #[test]
    fn the_remains_of_killed_engines_are_removed_and_other_folders_stay() {
        let root = tempfile::tempdir().unwrap();
        let runs = root.path().join("runs");
        let mut first = record();
        let going_on = UnfinishedRun::begin(&runs, &mut first).unwrap();
        let [with_part, alone, young] = ["20260101-000001-0000", "20260101-000002-0000", "20260101-000003-0000"];
        // One engine was killed while it wrote, and one before its part had the ID.
        let part = runs.join(format!("{UNFINISHED}killed"));
        fs::create_dir_all(part.join(with_part)).unwrap();
        fs::write(part.join(with_part).join(".lock"), "").unwrap();
        for name in [with_part, alone, young, "notes"] {
            fs::create_dir(runs.join(name)).unwrap();
        }
        let long_ago = FileTimes::new().set_modified(SystemTime::now() - WITHOUT_LOCK * 2);
        for name in [first.run.as_str(), alone, "notes"] {
            File::open(runs.join(name)).unwrap().set_times(long_ago).unwrap();
        }
        remove_left(&runs);
        let mut left: Vec<String> = entries(&runs).map(|it| it.file_name().to_string_lossy().into_owned()).collect();
        left.retain(|name| !name.starts_with(UNFINISHED));
        left.sort();
        assert_eq!(left, [first.run.as_str(), young, "notes"]);
        assert!(!part.exists());
        going_on.publish().unwrap();
    }
}
