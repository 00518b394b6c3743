//! Writes the folder of a run completely or not at all: in a folder that is not a run, from which it is moved when it is
//! complete.

use std::fs;
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
    for part in fs::read_dir(runs).into_iter().flatten().flatten() {
        if !part.file_name().to_string_lossy().starts_with(UNFINISHED) {
            continue;
        }
        let changed = part.metadata().and_then(|meta| meta.modified()).ok();
        let is_old = changed.and_then(|at| at.elapsed().ok()).is_some_and(|age| age > WITHOUT_LOCK);
        let runs = fs::read_dir(part.path()).into_iter().flatten().flatten();
        let locked = runs.map(|run| RunFolder::open(&run.path())).filter(|run| run.path.join(".lock").exists());
        let mut locked = locked.peekable();
        if (is_old && locked.peek().is_none()) || locked.any(|mut run| run.lock().is_ok()) {
            let _ = crate::workspace::remove::remove(&part.path());
        }
    }
}

#[cfg(test)]
mod tests {
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
}
