//! Makes and finds run folders: `.evals/runs/<run>/`, with one subfolder per trial.

use std::cell::LazyCell;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

use super::integrity::{self, Changed};
use super::journal::{self, Journal, JournalLine, Plan, States, TrialState};
use super::merge::{self, MergedFrom};
use super::stored_results::{Lines, StoredLine, StoredResults};
use super::{RunError, RunRecord, VERSION, names, parsed};
use crate::ids::TrialId;
use crate::ids::TrialRecord;
use crate::paths;
use crate::regular;
use crate::result::{TrialResult, Warning};
use crate::text::some_of;
use crate::verdict::Verdict;
use crate::whole_file::{case_folder, folder_name, sync_folder, write_whole};

/// The timeout for the lock of a run.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// The maximum number of changed `results.jsonl` that are kept.
const MOST_ASIDE: u32 = 100;
/// A trial's result in a reason why it does not count.
const RESULT: &str = "its result.json";

/// The maximum number of runs that may begin at the same time.
const MOST_AT_ONCE: u32 = 1000;

/// A run folder.
#[derive(Debug)]
pub struct RunFolder {
    pub path: PathBuf,
    lock: Option<File>,
    /// The text of `run.json` as this process read or wrote it. Agents without a sandbox can change the file,
    /// but not this copy.
    record: Mutex<Option<Vec<u8>>>,
}

impl RunFolder {
    /// Makes the folder of a new run and locks it. `.evals/.gitignore` is written on first use. If a run has the ID
    /// already, because it began at the same time, the record gets the next one.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn create(runs: &Path, record: &mut RunRecord) -> Result<Self, RunError> {
        fs::create_dir_all(runs).map_err(RunError::io("make the folder", runs))?;
        write_gitignore(runs)?;
        let mut path = runs.join(&record.run);
        let mut tries = 0;
        while let Err(error) = fs::create_dir(&path) {
            if error.kind() != ErrorKind::AlreadyExists || tries == MOST_AT_ONCE {
                return Err(RunError::io("make the folder", &path)(error));
            }
            tries += 1;
            record.run = names::next_run_id(&record.run);
            path = runs.join(&record.run);
        }
        let mut folder = Self { path, lock: None, record: Mutex::default() };
        folder.lock()?;
        folder.put_record(&pretty(record))?;
        sync_folder(runs)?;
        Ok(folder)
    }

    /// Opens the folder of a run to read it.
    pub fn open(path: &Path) -> Self {
        Self { path: path.to_owned(), lock: None, record: Mutex::default() }
    }

    /// Locks the run for this engine.
    ///
    /// # Errors
    /// Returns an error if another engine is using the run.
    pub fn lock(&mut self) -> Result<(), RunError> {
        let path = self.path.join(".lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(RunError::io("open", &path))?;
        let begun = Instant::now();
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            // A program that an engine was just starting when it was killed holds the lock until it has begun.
            if begun.elapsed() > LOCK_PATIENCE {
                return Err(RunError::Busy(self.path.clone()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.lock = Some(file);
        Ok(())
    }

    /// Returns true if an engine is using the run: it is going on, or is being graded.
    pub fn is_in_use(&self) -> bool {
        let Ok(file) = regular::open(self.path.join(".lock")) else { return false };
        // Shared, so that two readers do not take each other for an engine. It ends with this function, and an engine
        // that begins in this moment waits longer.
        let locked = flock(&file, FlockOperation::NonBlockingLockShared);
        matches!(locked, Err(rustix::io::Errno::WOULDBLOCK))
    }

    /// Replaces `run.json`. The new record names the old one, so that a journal whose lines refer to the old
    /// one is still trusted if this process is killed before the journal has a line about the new one.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn write_record(&self, record: &mut RunRecord) -> Result<(), RunError> {
        record.replaces = self.known().map(|text| integrity::digest(&text));
        self.put_record(&pretty(record))?;
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

    fn record_with_text(&self) -> Result<(RunRecord, Vec<u8>), RunError> {
        #[derive(serde::Deserialize)]
        struct Head {
            version: u32,
        }
        let path = self.record_file();
        let text = regular::read_own(&path).map_err(RunError::io("read", &path))?;
        let head: Head = parsed(&path, &text)?;
        if head.version > VERSION {
            return Err(RunError::Newer { path, version: head.version });
        }
        let mut record: RunRecord = parsed(&path, &text)?;
        if let Some(shard) = record.shard {
            record = record.played_by(shard);
        }
        Ok((record, text))
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

    /// Returns the path of the journal.
    pub fn journal(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// Returns the state of each trial in the journal.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn states(&self) -> Result<HashMap<TrialId, TrialState>, RunError> {
        Ok(self.held_states()?.trials)
    }

    /// Returns true if a trial of the run was played to its end, as far as the run can be read. A skipped trial was not.
    pub fn has_played_trial(&self) -> bool {
        let was_played = |verdict: Verdict| verdict != Verdict::Skipped;
        // `results.jsonl` is written when a run ends. Without it, the journal is read.
        self.verdicts_in_results().into_iter().flatten().any(was_played)
            || self.states().is_ok_and(|states| states.values().filter_map(|state| state.finished).any(was_played))
    }

    /// Returns the verdicts in `results.jsonl`, one line at a time, up to the first line that cannot be read.
    fn verdicts_in_results(&self) -> io::Result<impl Iterator<Item = Verdict> + use<>> {
        #[derive(serde::Deserialize)]
        struct Line {
            verdict: Verdict,
        }
        let lines = BufReader::new(regular::open(self.path.join("results.jsonl"))?).lines();
        Ok(lines.map_while(|line| serde_json::from_str::<Line>(&line.ok()?).ok()).map(|line| line.verdict))
    }

    /// Returns the lines of the journal about trials, if nothing was changed since the engine wrote them.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read, or if it or `run.json` was changed.
    pub fn trusted_lines(&self) -> Result<Vec<JournalLine>, RunError> {
        let States { trials, distrust, broken } = self.held_states()?;
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
        Ok(self.held_states()?.broken.map(|line| Warning::ResultsChanged {
            file: file(),
            line: u64::try_from(line).unwrap_or(u64::MAX),
            why: journal::line_changed(line),
        }))
    }

    fn held_states(&self) -> Result<States, RunError> {
        let plan = || regular::read_own(self.record_file()).map(|text| Plan::of(&text)).unwrap_or_default();
        journal::read_under(&self.journal(), plan)
    }

    /// Returns the results of the finished trials, in the order of the plan: from `results.jsonl` if it
    /// contains exactly those, else from the trials.
    ///
    /// # Errors
    /// Returns an error if the run cannot be read.
    pub fn results(&self, record: &RunRecord) -> Result<Vec<TrialResult>, RunError> {
        self.fold_results(record, Vec::new, |all, result| all.push(result))
    }

    /// Processes the results as [`RunFolder::fold_results`] does, if `results.jsonl` contains exactly those, so that they
    /// can be read again. Returns `None` otherwise.
    pub fn fold_to_read_again<T>(
        &self,
        record: &RunRecord,
        begin: impl Fn() -> T,
        mut see: impl FnMut(&mut T, TrialResult),
    ) -> Option<(T, StoredResults)> {
        match self.fold_stored(record, &begin, &mut see) {
            Ok(Stored::Whole(folded, stored)) => Some((folded, stored)),
            _ => None,
        }
    }

    /// Processes the results in order, one at a time, so that large runs need little memory.
    ///
    /// # Errors
    /// Returns an error if the run cannot be read.
    pub fn fold_results<T>(
        &self,
        record: &RunRecord,
        begin: impl Fn() -> T,
        mut see: impl FnMut(&mut T, TrialResult),
    ) -> Result<T, RunError> {
        let stored = self.fold_stored(record, &begin, &mut see);
        let (damaged, changed) = match stored {
            Ok(Stored::Whole(folded, _)) => return Ok(folded),
            // An engine that was killed may have left the results of earlier attempts.
            Ok(Stored::Old) => ("it does not contain the results of the finished trials".to_owned(), None),
            Ok(Stored::Changed { line, why }) => (format!("line {line}: {why}"), Some((line, why))),
            // A file that is missing or cannot be read is not damage: it is written again from the trials.
            Err(_) => (String::new(), None),
        };
        let path = self.path.join("results.jsonl");
        let broken = self.held_states()?.broken;
        let mut results = self.results_of_trials(record).map_err(|error| match error {
            RunError::Io { source, .. } if source.kind() == ErrorKind::NotFound && !damaged.is_empty() => {
                RunError::Lost { path: path.clone(), damaged, run: record.run.clone() }
            }
            other => other,
        })?;
        let is_as_judged = !results.iter().any(TrialResult::is_not_as_judged);
        if results.is_empty() {
            // Without a result there is no place for a warning.
            let removed =
                changed.as_ref().map(|(line, why)| format!("line {line} of results.jsonl has a result, but {why}"));
            if let Some(why) = broken.map(journal::line_changed).or(removed) {
                let message = format!(
                    "{why}; restore a copy of the run's folder, or remove results.jsonl to play the trials again"
                );
                return Err(RunError::Malformed { path: self.journal(), message });
            }
        }
        if changed.is_some() {
            self.put_aside(&path);
        }
        if is_as_judged && broken.is_none() {
            // Rebuilt for the next reader; without write access, it is skipped.
            let _ = self.write_results(&results);
        }
        let of_results = changed.map(|(line, why)| {
            let line = u64::try_from(line).unwrap_or(u64::MAX);
            Warning::ResultsChanged { file: path.display().to_string(), line, why }
        });
        let of_journal = self.changed_journal()?.filter(|_| is_as_judged);
        for warning in of_results.into_iter().chain(of_journal) {
            let Warning::ResultsChanged { line, .. } = &warning else { continue };
            // The warning is added to the trial of that line, or to the last one if there is no such trial.
            let place = usize::try_from(*line).unwrap_or(usize::MAX).saturating_sub(1);
            let place = place.min(results.len().saturating_sub(1));
            if let Some(result) = results.get_mut(place) {
                result.warnings.push(warning);
            }
        }
        let mut folded = begin();
        results.into_iter().for_each(|result| see(&mut folded, result));
        Ok(folded)
    }

    /// Keeps a changed `results.jsonl` beside the rebuilt one. Without write access, it is skipped.
    fn put_aside(&self, path: &Path) {
        let aside = |number: u32| self.path.join(format!("results.changed-{number}.jsonl"));
        if let Some(aside) = (1..=MOST_ASIDE).map(aside).find(|path| path.symlink_metadata().is_err()) {
            let _ = fs::rename(path, aside);
        }
    }

    /// Takes the states of the finished trials out of all states, in the order of the plan. A skipped trial has none. The
    /// table of all states takes much more memory if there are many trials.
    fn finished<'a>(
        record: &'a RunRecord,
        states: &mut HashMap<TrialId, TrialState>,
    ) -> Vec<(&'a TrialRecord, Option<TrialState>)> {
        let mut expected = Vec::with_capacity(record.trials.len());
        for trial in &record.trials {
            let id = trial.id();
            if states.get(&id).is_some_and(|state| state.finished.is_some()) {
                expected.push((trial, states.remove(&id)));
            } else if trial.skip.is_some() {
                expected.push((trial, None));
            }
        }
        states.shrink_to_fit();
        expected
    }

    /// Processes the content of `results.jsonl`, if it is exactly the expected content.
    fn fold_stored<T>(
        &self,
        record: &RunRecord,
        begin: &impl Fn() -> T,
        see: &mut impl FnMut(&mut T, TrialResult),
    ) -> Result<Stored<T>, RunError> {
        let path = self.path.join("results.jsonl");
        let file = regular::open_own(&path).map_err(RunError::io("read", &path))?;
        let States { trials: mut states, distrust, broken } = self.held_states()?;
        let is_told_by_a_trial = || states.values().any(|state| state.distrust.is_some());
        if distrust.is_some() || (broken.is_some() && !is_told_by_a_trial()) {
            return Ok(Stored::Old);
        }
        let finished = Self::finished(record, &mut states);
        let written = file.metadata().map_err(RunError::io("read", &path))?;
        let is_other = |(trial, state): &(&TrialRecord, Option<TrialState>)| {
            state.as_ref().is_some_and(|state| self.differs_since(&written, trial, state))
        };
        if finished.iter().any(is_other) {
            return Ok(Stored::Old);
        }
        let count = finished.len();
        let mut folded = begin();
        let mut expected =
            finished.iter().map(|(trial, state)| (*trial, state.as_ref().unwrap_or(&journal::UNSTARTED)));
        // Needed only if a line is not the expected one.
        let by_id = LazyCell::new(|| {
            let taken = finished.iter().filter_map(|(trial, state)| Some((trial.id(), state.as_ref()?)));
            taken.chain(states.iter().map(|(id, state)| (id.clone(), state))).collect::<HashMap<_, _>>()
        });
        let mut old: Option<(usize, String)> = None;
        let mut lines = 0;
        let mut read = Lines::of(&file);
        let mut stored = Vec::with_capacity(count);
        // Each result is a single line, so the line number of the parser is meaningless.
        let no_result = |error: String| error.replacen(" at line 1 column ", " in column ", 1);
        for number in 1.. {
            let line = match read.next() {
                Ok(None) => break,
                Ok(Some(line)) => line,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    return Ok(Stored::Changed { line: number, why: error.to_string() });
                }
                Err(error) => return Err(RunError::io("read", &path)(error)),
            };
            lines = number;
            let StoredLine { text: line, place } = line;
            stored.push(place);
            let result: TrialResult = match serde_json::from_str(line) {
                Ok(result) => result,
                Err(error) => return Ok(Stored::Changed { line: number, why: no_result(error.to_string()) }),
            };
            let why = match expected.next() {
                Some(_) if old.is_some() => None,
                Some((_, TrialState { distrust: Some(_), .. })) => None,
                Some((trial, state)) => match integrity::changed(trial, state, line.as_bytes(), &result) {
                    None => {
                        see(&mut folded, result);
                        continue;
                    }
                    Some(changed) => Some(changed.reason("it")),
                },
                // Results are never removed from a run, so the engine did not write this line.
                None => {
                    let why = format!("only {count} trials finished or were skipped");
                    return Ok(Stored::Changed { line: number, why });
                }
            };
            if !was_judged(record, &by_id, line, &result) {
                let why = why.unwrap_or_else(|| "the journal has no digest of such a result".to_owned());
                return Ok(Stored::Changed { line: number, why });
            }
            if old.is_none() {
                old = Some((number, why.unwrap_or_default()));
            }
        }
        drop(read);
        if old.is_none() && lines == count {
            return Ok(Stored::Whole(folded, StoredResults::new(path, file, stored)));
        }
        // A killed engine would have written the journal after this file.
        if self.is_newer_than_the_journal(&path) {
            let missing = || (lines + 1, format!("the file ends too early: {count} trials finished or were skipped"));
            let (line, why) = old.filter(|(_, why)| !why.is_empty()).unwrap_or_else(missing);
            return Ok(Stored::Changed { line, why });
        }
        Ok(Stored::Old)
    }

    /// Returns true if the result in a trial's own folder is not the judged one. A file that was not changed after
    /// `results.jsonl` was written is not read. Without the file, the judged result in `results.jsonl` is all there is.
    fn differs_since(&self, written: &Metadata, trial: &TrialRecord, state: &TrialState) -> bool {
        let changed = |file: &Metadata| (file.ctime(), file.ctime_nsec());
        let own = self.trial_of(trial).and_then(|folder| {
            let path = folder.join("result.json");
            fs::symlink_metadata(&path).map_err(RunError::io("read", &path))
        });
        match own {
            Ok(own) if own.is_file() && changed(&own) <= changed(written) => false,
            Err(RunError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => false,
            _ => self.result_of(trial, state).map_or(true, |result| result.is_not_as_judged()),
        }
    }

    fn is_newer_than_the_journal(&self, path: &Path) -> bool {
        let modified = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified());
        modified(path).ok().zip(modified(&self.journal()).ok()).is_some_and(|(this, journal)| this > journal)
    }

    /// Returns the results from the trials' own folders.
    ///
    /// # Errors
    /// Returns an error if a result exists but cannot be read.
    pub fn results_of_trials(&self, record: &RunRecord) -> Result<Vec<TrialResult>, RunError> {
        let States { trials: states, distrust, .. } = self.held_states()?;
        let mut results = Vec::new();
        let (mut read, mut lost) = (0_usize, None);
        for trial in &record.trials {
            // A result counts only with a finished line: a file without one belongs to an interrupted attempt.
            match (states.get(&trial.id()).filter(|state| state.finished.is_some()), &trial.skip) {
                (Some(state), _) => match self.result_of(trial, state) {
                    // The other trials keep their verdicts.
                    Err(error) if error.is_lost() => {
                        results.push(integrity::not_as_judged(trial, state, &Changed::Lost.reason(RESULT)));
                        lost.get_or_insert(error);
                    }
                    result => {
                        results.push(result?);
                        read += 1;
                    }
                },
                (None, Some(reason)) => results.push(match &distrust {
                    // A result that claims to be skipped is not trusted.
                    Some(why) => integrity::not_as_judged(trial, &TrialState::default(), why),
                    None => TrialResult::skipped(trial, reason),
                }),
                (None, None) => {}
            }
        }
        if let Some(error) = lost.filter(|_| read == 0) {
            return Err(error);
        }
        let was_judged = || states.values().any(|state| state.finished.is_some());
        if let Some(why) = distrust.filter(|_| results.is_empty() && was_judged()) {
            let message = format!("{why}, and it contains no judged trial; restore a copy of the file");
            return Err(RunError::Malformed { path: self.record_file(), message });
        }
        Ok(results)
    }

    /// Returns the result of a finished trial: the judged result, or a replacement that states that the result no
    /// longer exists.
    ///
    /// # Errors
    /// Returns an error if the result does not exist, or cannot be read.
    pub fn result_of(&self, trial: &TrialRecord, state: &TrialState) -> Result<TrialResult, RunError> {
        if let Some(why) = &state.distrust {
            return Ok(integrity::not_as_judged(trial, state, why));
        }
        if trial.skip.is_some() {
            return Ok(integrity::not_as_judged(trial, state, &Changed::Skipped.reason(RESULT)));
        }
        let path = self.counting_attempt(trial, state)?.join("result.json");
        let json = regular::read_own(&path).map_err(RunError::io("read", &path))?;
        let checked = integrity::checked(trial, state, &json);
        let checked = checked.map_err(|error| RunError::Malformed { path, message: error.to_string() })?;
        Ok(checked.unwrap_or_else(|changed| integrity::not_as_judged(trial, state, &changed.reason(RESULT))))
    }

    /// Returns the folder of the attempt that counts of a finished trial.
    ///
    /// # Errors
    /// Returns the errors of [`RunFolder::stored_trial`].
    pub fn counting_attempt(&self, trial: &TrialRecord, state: &TrialState) -> Result<PathBuf, RunError> {
        let folder = self.stored_trial(&trial.id())?;
        let earlier = self.without_links(folder.join("attempts").join(state.attempt.to_string()))?;
        // A later attempt that did not finish, or did not even start, has moved the attempt that counts. Other files
        // in its place were not judged.
        let is_it = match (&state.digest, regular::read_own(earlier.join("result.json"))) {
            (Some(told), Ok(json)) => **told == *integrity::digest(&json),
            (None, Ok(_)) => true,
            (_, Err(_)) => false,
        };
        Ok(if is_it { earlier } else { folder })
    }

    /// Writes `results.jsonl`.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn write_results(&self, results: &[TrialResult]) -> Result<(), RunError> {
        write_whole(&self.path.join("results.jsonl"), |out| {
            for result in results {
                serde_json::to_writer(&mut *out, result)?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

/// Returns a record as written to `run.json`.
fn pretty(record: &RunRecord) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(&record.clone().whole()).unwrap_or_default();
    text.push(b'\n');
    text
}

/// The state of a `results.jsonl`.
enum Stored<T> {
    /// The file contains exactly the results that count.
    Whole(T, StoredResults),
    /// The file contains judged results, but other ones than those that count now.
    Old,
    /// The file was changed after the run.
    Changed {
        /// The first changed line, from 1.
        line: usize,
        /// The evidence.
        why: String,
    },
}

/// Returns true if a line of `results.jsonl` is a result that was judged at some time, for any trial and attempt of
/// the run.
fn was_judged(record: &RunRecord, states: &HashMap<TrialId, &TrialState>, line: &str, result: &TrialResult) -> bool {
    let key = result.id();
    let digest = integrity::digest(line.as_bytes());
    let skipped = |trial: &TrialRecord| {
        trial.id() == key && trial.skip.as_ref().is_some_and(|why| *result == TrialResult::skipped(trial, why))
    };
    match states.get(&key) {
        Some(state) if state.judged.is_empty() => result.attempt <= state.attempt,
        Some(state) => state.judged.iter().any(|judged| **judged == *digest),
        None => record.trials.iter().any(skipped),
    }
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

/// Returns the runs in a folder, newest first, with their records; unreadable ones are left out. A merged run begins with
/// the last of its shards and comes before it.
pub fn all(runs: &Path) -> Vec<(PathBuf, RunRecord)> {
    let mut found: Vec<_> = look(runs).into_iter().filter_map(|(path, record)| Some((path, record.ok()?))).collect();
    found.sort_by_cached_key(|(path, record)| {
        Reverse((record.started.clone(), path.join(merge::FILE).exists(), record.run.clone()))
    });
    found
}

/// Returns the ids of the runs that a merged run among these replaces: its shards, and older merges of any of them. The
/// newest run comes first.
pub fn merged_shards(runs: &[(PathBuf, RunRecord)]) -> HashSet<String> {
    let known: HashMap<&str, &RunRecord> = runs.iter().map(|(_, record)| (&*record.run, record)).collect();
    let mut replaced = HashSet::new();
    for (path, record) in runs {
        let merged = MergedFrom::of(path).ok().flatten();
        let Some(merged) = merged.filter(|merged| merged.is_true_of(record, &known)) else { continue };
        if merged.shards.iter().any(|part| replaced.contains(&part.run)) {
            replaced.insert(record.run.clone());
        }
        replaced.extend(merged.shards.into_iter().map(|part| part.run));
    }
    replaced
}

/// Returns the folders of runs in a folder, newest first by their names, which begin with the time. Links are left out:
/// their runs lie elsewhere.
pub fn paths(runs: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(runs).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
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

/// Returns the run with this name: a path, an ID or a unique ID prefix, a label, or `latest`. The latest run is the
/// newest one with a trial that was played to its end, or the newest of all if none has one.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn find(runs: &Path, name: &str) -> Result<RunFolder, RunError> {
    find_where(runs, name, &|folder| folder.has_played_trial())
}

/// Returns the run with this name, to go on with it. The latest run is the newest one, even if none of its trials has
/// finished.
///
/// # Errors
/// Returns an error if no run matches, or several do.
pub fn find_to_resume(runs: &Path, name: &str) -> Result<RunFolder, RunError> {
    find_where(runs, name, &|_| true)
}

fn find_where(runs: &Path, name: &str, is_latest: &dyn Fn(&RunFolder) -> bool) -> Result<RunFolder, RunError> {
    let path = Path::new(name);
    if path.join("run.json").is_file() {
        return Ok(RunFolder::open(path));
    }
    let known = all(runs);
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
        let merged = merged_shards(&known);
        let ran = |record: &RunRecord| record.derived_from.is_none() && !record.graded && !merged.contains(&record.run);
        let mut of_trials = known.iter().filter(|(_, record)| ran(record));
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
