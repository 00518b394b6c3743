//! The results of a run: from `results.jsonl`, or from the trials' own folders if it does not contain them.

use std::cell::LazyCell;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::RunFolder;
use crate::ids::TrialId;
use crate::ids::TrialRecord;
use crate::regular;
use crate::result::{TrialResult, Warning};
use crate::run::integrity::{self, Changed};
use crate::run::journal::{self, States, TrialState};
use crate::run::stored_results::{Lines, StoredLine, StoredResults};
use crate::run::{RunError, RunRecord};
use crate::verdict::Verdict;
use crate::whole_file::write_whole;

/// The maximum number of changed `results.jsonl` that are kept.
const MOST_ASIDE: u32 = 100;
/// A trial's result in a reason why it does not count.
const RESULT: &str = "its result.json";

impl RunFolder {
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
        let journal_stamp = || fs::metadata(self.journal()).map(|it| (it.len(), it.mtime(), it.mtime_nsec())).ok();
        let as_read = journal_stamp();
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
        // The engine that plays the run writes the file itself, and what a reader has seen of the run may be old.
        let engines_away = if self.lock.is_some() { Ok(None) } else { self.keep_engines_away() };
        let may_write = engines_away.is_ok() && journal_stamp() == as_read;
        let changed = changed.filter(|_| may_write);
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
        if is_as_judged && broken.is_none() && may_write {
            // Rebuilt for the next reader; without write access, it is skipped.
            let _ = self.write_results(&results);
        }
        drop(engines_away);
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

    /// Renames a changed `results.jsonl` to `results.changed-N.jsonl`. Does nothing if the file cannot be renamed, as
    /// without write access.
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
        let has_discarded = states.values().any(TrialState::is_discarded);
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
                None => {
                    let why = format!("only {count} trials finished or were skipped");
                    if !has_discarded {
                        // The number of results never decreases otherwise, so the engine did not write this line.
                        return Ok(Stored::Changed { line: number, why });
                    }
                    Some(why)
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
        if self.is_newer_than_the_journal(&written) {
            let missing = || (lines + 1, format!("the file ends too early: {count} trials finished or were skipped"));
            let (line, why) = old.filter(|(_, why)| !why.is_empty()).unwrap_or_else(missing);
            return Ok(Stored::Changed { line, why });
        }
        Ok(Stored::Old)
    }

    /// Returns true if the result in a trial's own folder differs from the recorded one. A file that was not changed after
    /// `results.jsonl` was written is not read. If the trial's own file is missing, only the result in `results.jsonl` is
    /// left.
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

    /// Returns true if `results.jsonl`, which has this metadata, was written after the journal.
    fn is_newer_than_the_journal(&self, written: &Metadata) -> bool {
        let journal = fs::metadata(self.journal()).and_then(|meta| meta.modified());
        written.modified().ok().zip(journal.ok()).is_some_and(|(this, journal)| this > journal)
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

    /// Returns the result of a finished trial: the recorded result, or a replacement that states that the result no longer
    /// exists.
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
        // A later attempt that did not finish, or did not even start, has moved the attempt that counts. Other files in its
        // place are not recorded.
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

    /// Returns true if a trial of the run was played to its end, as far as the run can be read, also if its result was
    /// discarded. A skipped trial was not.
    pub fn has_played_trial(&self) -> bool {
        let was_played = |verdict: Verdict| verdict != Verdict::Skipped;
        let has_finished = |state: &TrialState| state.is_discarded() || state.finished.is_some_and(was_played);
        // `results.jsonl` is written when a run ends. Without it, the journal is read.
        self.verdicts_in_results().into_iter().flatten().any(was_played)
            || self.states().is_ok_and(|states| states.values().any(has_finished))
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
}

/// The state of a `results.jsonl`.
enum Stored<T> {
    /// The file contains exactly the results that count.
    Whole(T, StoredResults),
    /// The file contains results that the engine recorded, but other ones than those that count now.
    Old,
    /// The file was changed after the run.
    Changed {
        /// The first changed line, from 1.
        line: usize,
        /// The evidence.
        why: String,
    },
}

/// Returns true if a line of `results.jsonl` is a result that the journal recorded at some time, for any trial and attempt
/// of the run.
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
