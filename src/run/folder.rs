//! Makes run folders and opens them: `.evals/runs/<run>/`, with one subfolder per trial.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use self::further_copies::FurtherCopies;
use super::integrity;
use super::journal::{self, Journal, JournalEvent, JournalLine, Plan, States, TrialState};
use super::{RunError, RunHead, RunRecord, VERSION, names, parsed, project_of_run};
use crate::ids::TrialId;
use crate::ids::TrialRecord;
use crate::regular;
use crate::result::Warning;
use crate::values::now_text;
use crate::whole_file::{case_folder, folder_name, remove_left_parts, sync_folder, write_whole};

pub mod end;
mod further_copies;
mod results;
pub mod unfinished;

pub use results::Restored;

/// The timeout for the lock of a run.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The maximum number of runs that may begin at the same time.
const MAX_SIMULTANEOUS_RUNS: u32 = 1000;

#[derive(Debug, Default)]
pub struct RunFolder {
    pub path: PathBuf,
    lock: Option<File>,
    /// The text of `run.json` as this process read or wrote it. Agents without a sandbox can change the file,
    /// but not this copy.
    record: Mutex<Option<Vec<u8>>>,
    /// Copies of results whose files in the folders of the trials may be removed.
    copies: FurtherCopies,
    /// The journal as this process read it last, and the digest of its last line about a trial.
    last_read: Mutex<Option<(JournalStamp, String)>>,
}

/// The size of a journal and the time of its last change, by which a reader notices that it has more lines.
type JournalStamp = (u64, i64, i64);

impl RunFolder {
    /// Makes the folder of a new run and locks it. `.evals/.gitignore` is written on first use. If a run has the ID
    /// already, because it began at the same time, the record gets the next one.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn create(runs: &Path, record: &mut RunRecord) -> Result<Self, RunError> {
        Self::create_in(runs, runs, record)
    }

    /// Makes the folder of a new run in another folder, from which it will be moved to the folder of runs.
    ///
    /// # Errors
    /// Returns the errors of [`RunFolder::create`].
    pub(super) fn create_in(part: &Path, runs: &Path, record: &mut RunRecord) -> Result<Self, RunError> {
        // A record that cannot be written makes no folder.
        pretty(record, &part.join(&record.run).join("run.json"))?;
        fs::create_dir_all(part).map_err(RunError::io("make the folder", part))?;
        write_gitignore(part)?;
        let path = make_folder(part, record)?;
        project_of_run::keep_if_around(runs, record);
        let mut folder = Self { path, ..Self::default() };
        folder.lock()?;
        folder.put_record(&pretty(record, &folder.record_file())?)?;
        sync_folder(part)?;
        Ok(folder)
    }

    /// Opens the folder of a run to read it.
    pub fn open(path: &Path) -> Self {
        Self { path: path.to_owned(), ..Self::default() }
    }

    /// Locks the run for this engine, and removes the temporary files that killed engines left in its folder.
    ///
    /// # Errors
    /// Returns an error if another engine is using the run, or the file system refuses.
    pub fn lock(&mut self) -> Result<(), RunError> {
        let path = self.path.join(".lock");
        let file = regular::create_own(&path, OpenOptions::new().write(true)).map_err(RunError::io("open", &path))?;
        let begun = Instant::now();
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if !matches!(error, Errno::WOULDBLOCK | Errno::INTR) {
                return Err(RunError::io("lock", &path)(error.into()));
            }
            // A program that an engine was just starting when it was killed holds the lock until it has begun.
            if begun.elapsed() > LOCK_PATIENCE {
                return Err(RunError::Busy(self.path.clone()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // `is_of_last_engine` compares the time of a wire log with this one.
        let _ = file.set_modified(SystemTime::now());
        self.lock = Some(file);
        remove_left_parts(&self.path);
        Ok(())
    }

    /// Returns true if the attempt in the folder of a trial is one of the engine that locked the run last: its wire log was
    /// written later. An older attempt was interrupted.
    pub fn is_of_last_engine(&self, trial: &Path) -> bool {
        let changed = |path: PathBuf| fs::symlink_metadata(path).and_then(|meta| meta.modified()).ok();
        let (log, lock) = (changed(trial.join("wire.jsonl")), changed(self.path.join(".lock")));
        log.zip(lock).is_some_and(|(log, lock)| log >= lock)
    }

    /// Returns true if an engine is using the run: it is going on, or is being graded.
    pub fn is_in_use(&self) -> bool {
        self.keep_engines_away().is_err()
    }

    /// Keeps engines from using the run while the returned file is open. An engine that needs the run in this time waits.
    /// Returns `None` if the run has no lock, as in a copy without hidden files.
    ///
    /// # Errors
    /// Returns an error if an engine is using the run.
    fn keep_engines_away(&self) -> Result<Option<File>, RunError> {
        let Ok(file) = regular::open(self.path.join(".lock")) else { return Ok(None) };
        // Shared, so that two readers do not take each other for an engine.
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => Err(RunError::Busy(self.path.clone())),
            _ => Ok(Some(file)),
        }
    }

    /// Replaces `run.json`. The new record names the old one, so that a journal whose lines refer to the old
    /// one is still trusted if this process is killed before the journal has a line about the new one.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn write_record(&self, record: &mut RunRecord) -> Result<(), RunError> {
        // A process that was killed after it had replaced the record left the journal without a line about it.
        if self.journal().exists() {
            self.open_journal()?;
        }
        record.replaces = self.known().map(|text| integrity::digest(&text));
        self.put_record(&pretty(record, &self.record_file())?)?;
        if self.journal().exists() {
            self.open_journal()?;
        }
        Ok(())
    }

    /// Compares `run.json` with the content that this process read or wrote, and restores it if they differ. Returns
    /// true if they did.
    ///
    /// # Errors
    /// Returns an error of the file system.
    pub fn settle_record(&self) -> Result<bool, RunError> {
        let Some(text) = self.known() else { return Ok(false) };
        if regular::read(self.record_file()).is_ok_and(|found| found == text) {
            return Ok(false);
        }
        self.put_record(&text)?;
        Ok(true)
    }

    /// Opens the journal for appending, under the `run.json` that this process read or wrote.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn open_journal(&self) -> Result<Journal, RunError> {
        let plan = self.known().map(|text| Plan::of(&text)).unwrap_or_default();
        Journal::open_under(&self.journal(), plan)
    }

    /// Discards the results of finished trials, each given with its attempt that counts: the trials count as not run
    /// until they finish again. The files of these attempts stay.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn discard_results(&self, finished: &[(&TrialRecord, u32)]) -> Result<(), RunError> {
        if finished.is_empty() {
            return Ok(());
        }
        let at = now_text();
        let line = |(trial, attempt): &(&TrialRecord, u32)| {
            JournalLine::new(at.clone(), JournalEvent::Discarded, trial, *attempt)
        };
        self.open_journal()?.write_all(&finished.iter().map(line).collect::<Vec<_>>())
    }

    /// Reads `run.json`, and keeps its text, so that this process can restore it.
    ///
    /// # Errors
    /// Returns an error if the file does not exist, is damaged, or has a newer version.
    pub fn record(&self) -> Result<RunRecord, RunError> {
        let (record, text) = self.record_with_text()?;
        self.record.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        Ok(record)
    }

    /// Reads `run.json` for a process that only reads the run. Its text, which is long if there are many trials, is not
    /// kept.
    ///
    /// # Errors
    /// Returns the errors of [`RunFolder::record`].
    pub fn record_to_read(&self) -> Result<RunRecord, RunError> {
        self.record_with_text().map(|(record, _)| record)
    }

    /// Reads what `run.json` says about the run itself. Its plan, which is long if there are many trials, is passed over.
    ///
    /// # Errors
    /// Returns the errors of [`RunFolder::record`], except those about the plan.
    pub fn head(&self) -> Result<RunHead, RunError> {
        let head: RunHead = parsed(&self.record_file(), &self.record_text()?)?;
        if head.version > VERSION {
            return Err(RunError::Newer { path: self.record_file(), version: head.version });
        }
        Ok(head)
    }

    fn record_with_text(&self) -> Result<(RunRecord, Vec<u8>), RunError> {
        #[derive(serde::Deserialize)]
        struct Head {
            version: u32,
        }
        let path = self.record_file();
        let text = self.record_text()?;
        let head: Head = parsed(&path, &text)?;
        if head.version > VERSION {
            return Err(RunError::Newer { path, version: head.version });
        }
        let mut record: RunRecord = parsed(&path, &text)?;
        project_of_run::place(&self.path, &mut record);
        if let Some(shard) = record.shard {
            record = record.played_by(shard);
        }
        Ok((record, text))
    }

    fn record_text(&self) -> Result<Vec<u8>, RunError> {
        let path = self.record_file();
        regular::read_own(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound if has_remains(&self.path) => {
                let message = "it does not exist, and the folder has other files of a run; restore a copy of run.json, or \
                               remove the folder if the run is not needed";
                RunError::Malformed { path: path.clone(), message: message.to_owned() }
            }
            _ => RunError::io("read", &path)(error),
        })
    }

    fn record_file(&self) -> PathBuf {
        self.path.join("run.json")
    }

    fn known(&self) -> Option<Vec<u8>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn put_record(&self, text: &[u8]) -> Result<(), RunError> {
        write_whole(&self.record_file(), |out| out.write_all(text))?;
        *self.record.lock().unwrap_or_else(PoisonError::into_inner) = Some(text.to_owned());
        Ok(())
    }

    /// Returns the folder of a trial.
    ///
    /// # Errors
    /// Returns an error if a part of the trial's name cannot be the name of a folder.
    pub fn trial(&self, trial: &TrialId) -> Result<PathBuf, RunError> {
        let TrialId { case, harness, arm, trial } = trial;
        let cell =
            self.path.join("trials").join(case_folder(case)?).join(folder_name(harness)?).join(folder_name(arm)?);
        Ok(cell.join(trial.to_string()))
    }

    /// Returns the folder of a planned trial.
    ///
    /// # Errors
    /// Returns an error if a part of the trial's name cannot be the name of a folder.
    pub fn trial_of(&self, trial: &TrialRecord) -> Result<PathBuf, RunError> {
        self.trial(&trial.id())
    }

    /// Returns the folder of a trial, to read the engine's files in it.
    ///
    /// # Errors
    /// Returns an error if a part of the trial's name cannot be the name of a folder, or if a part of the path is a
    /// link: an agent may have put it there, and it might lead to any folder of the user.
    pub fn stored_trial(&self, trial: &TrialId) -> Result<PathBuf, RunError> {
        self.without_links(self.trial(trial)?)
    }

    fn without_links(&self, path: PathBuf) -> Result<PathBuf, RunError> {
        let inside = path.ancestors().take_while(|part| *part != self.path);
        match inside.filter(|part| part.is_symlink()).last() {
            Some(link) => Err(RunError::Link(link.to_owned())),
            None => Ok(path),
        }
    }

    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Returns the state of each trial in the journal.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn states(&self) -> Result<HashMap<TrialId, TrialState>, RunError> {
        Ok(self.all_states()?.trials)
    }

    /// Returns the lines of the journal about trials, if nothing was changed since the engine wrote them.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read, or if it or `run.json` was changed.
    pub fn trusted_lines(&self) -> Result<Vec<JournalLine>, RunError> {
        let States { trials, distrust, broken, .. } = self.all_states()?;
        let of_trial = trials.values().find_map(|state| state.distrust.clone());
        match distrust.or(of_trial).or(broken.map(journal::line_changed)) {
            Some(message) => Err(RunError::Malformed { path: self.path.clone(), message }),
            None => journal::lines(&self.journal()),
        }
    }

    /// Returns a warning about the first line of the journal that was changed, or whose line before was removed.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn changed_journal(&self) -> Result<Option<Warning>, RunError> {
        let file = || self.journal().display().to_string();
        Ok(self.all_states()?.broken.map(|line| Warning::ResultsChanged {
            file: file(),
            line: u64::try_from(line).unwrap_or(u64::MAX),
            why: journal::line_changed(line),
        }))
    }

    fn all_states(&self) -> Result<States, RunError> {
        let plan = || regular::read_own(self.record_file()).map(|text| Plan::of(&text)).unwrap_or_default();
        let stamp = self.journal_stamp();
        let states = journal::read_under(&self.journal(), plan)?;
        *self.last_read.lock().unwrap_or_else(PoisonError::into_inner) =
            stamp.map(|stamp| (stamp, states.last.clone()));
        Ok(states)
    }

    /// Returns the size of the journal and the time of its last change, or `None` if there is no journal.
    fn journal_stamp(&self) -> Option<JournalStamp> {
        fs::metadata(self.journal()).map(|it| (it.len(), it.mtime(), it.mtime_nsec())).ok()
    }
}

/// Returns true if a folder has the journal of a run, or its trials with their results: it is the folder of a run also if its
/// `run.json` was removed.
pub(super) fn has_remains(folder: &Path) -> bool {
    folder.join("journal.jsonl").is_file() || (folder.join("results.jsonl").is_file() && folder.join("trials").is_dir())
}

/// Makes the folder of a run. If a run has the ID already, the record gets the next one.
fn make_folder(runs: &Path, record: &mut RunRecord) -> Result<PathBuf, RunError> {
    let mut path = runs.join(&record.run);
    let mut tries = 0;
    while let Err(error) = fs::create_dir(&path) {
        if error.kind() != ErrorKind::AlreadyExists || tries == MAX_SIMULTANEOUS_RUNS {
            return Err(RunError::io("make the folder", &path)(error));
        }
        tries += 1;
        record.run = names::next_run_id(&record.run);
        path = runs.join(&record.run);
    }
    Ok(path)
}

/// Returns a record as written to `run.json`.
///
/// # Errors
/// Returns an error about the file with this path if a path in the record is not UTF-8, which JSON cannot hold.
fn pretty(record: &RunRecord, path: &Path) -> Result<Vec<u8>, RunError> {
    let text = serde_json::to_vec_pretty(&record.clone().whole());
    let mut text = text.map_err(|error| {
        let message = format!("{error}; move the project and the cases to folders whose names are UTF-8");
        RunError::io("write", path)(io::Error::new(ErrorKind::InvalidInput, message))
    })?;
    text.push(b'\n');
    Ok(text)
}

/// Excludes the runs from the user's version control.
///
/// # Errors
/// Returns an error if the file system refuses.
pub fn write_gitignore(runs: &Path) -> Result<(), RunError> {
    // Only the engine's own folder is marked: `--out` may point anywhere.
    let evals = runs.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == ".evals"));
    let Some(evals) = evals else { return Ok(()) };
    let file = evals.join(".gitignore");
    if file.exists() {
        return Ok(());
    }
    // Several first runs may start at the same time, so each uses a separate temporary file.
    let text = b"# Runs stay on this machine; snapshots and baselines live beside the cases.\n*\n";
    let everyones = fs::Permissions::from_mode(0o644);
    let written = tempfile::Builder::new().prefix(".gitignore.").permissions(everyones).tempfile_in(evals).and_then(
        |mut part| {
            part.write_all(text)?;
            part.as_file().sync_data()?;
            part.persist(&file).map_err(|error| error.error)
        },
    );
    written.map(drop).map_err(RunError::io("write", &file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_of_an_engine_have_logs_that_are_written_after_its_lock() {
        let root = tempfile::tempdir().unwrap();
        let ago = |seconds: u64| SystemTime::now() - Duration::from_secs(seconds);
        let file = |name: &str, at: SystemTime| File::create(root.path().join(name)).unwrap().set_modified(at).unwrap();
        // A killed engine locked the run and wrote the log.
        file(".lock", ago(120));
        file("wire.jsonl", ago(60));
        let mut folder = RunFolder::open(root.path());
        assert!(folder.is_of_last_engine(root.path()));
        folder.lock().unwrap();
        assert!(!folder.is_of_last_engine(root.path()));
        file("wire.jsonl", SystemTime::now() + Duration::from_secs(60));
        assert!(folder.is_of_last_engine(root.path()));
    }
}
