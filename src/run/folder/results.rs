//! The results of a run: from `results.jsonl`, or from the trials' own folders if it does not contain them.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};
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
use crate::text::{in_one_line, plural};
use crate::verdict::Verdict;
use crate::whole_file::{sync_folder, write_whole};

/// The maximum number of changed files of a name that are kept.
const MAX_CHANGED_COPIES: u32 = 100;
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
        let as_read = self.journal_stamp();
        let stored = self.fold_stored(record, &begin, &mut see);
        let (damaged, changed) = match stored {
            Ok(Stored::Whole(folded, _)) => return Ok(folded),
            // An engine that was killed may have left the results of earlier attempts.
            Ok(Stored::Old) => (String::new(), None),
            Ok(Stored::Changed { line, why }) => (format!("line {line}: {why}"), Some((line, why))),
            // A file that is missing or cannot be read is not damage: it is written again from the trials.
            Err(_) => (String::new(), None),
        };
        let path = self.path.join("results.jsonl");
        let broken = self.all_states()?.broken;
        let mut results = self.results_of_trials(record)?;
        // A trial whose result is from another place than its own folder has one of these warnings.
        let lost = Changed::Lost.reason(RESULT);
        let is_gone = |it: &TrialResult| it.is_from_copy() || it.not_as_judged() == Some(&*lost);
        let mut of_trials = results.iter().filter(|it| it.verdict != Verdict::Skipped).peekable();
        if changed.is_some() && of_trials.peek().is_some() && of_trials.all(is_gone) {
            return Err(RunError::Lost { path, damaged, run: record.run.clone() });
        }
        let is_as_judged = !results.iter().any(TrialResult::is_not_as_judged);
        // The engine that plays the run writes the file itself, and what a reader has seen of the run may be old.
        let engines_away = if self.lock.is_some() { Ok(None) } else { self.keep_engines_away() };
        let may_write = engines_away.is_ok() && self.journal_stamp() == as_read;
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
            // Without write access, the file stays where it is.
            let _ = put_aside(&path, |number| self.path.join(format!("results.changed-{number}.jsonl")));
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
        let States { trials: mut states, distrust, broken, .. } = self.all_states()?;
        let is_of_a_trial = || states.values().any(|state| state.distrust.is_some());
        if distrust.is_some() || (broken.is_some() && !is_of_a_trial()) {
            return Ok(Stored::Old);
        }
        let finished = Self::finished(record, &mut states);
        let written = file.metadata().map_err(RunError::io("read", &path))?;
        let mut from_copy = BTreeSet::new();
        for (place, (trial, state)) in finished.iter().enumerate() {
            match state.as_ref().map_or(OwnFile::Same, |state| self.own_file_since(&written, trial, state)) {
                OwnFile::Same => {}
                OwnFile::Missing => _ = from_copy.insert(place),
                OwnFile::Differs => return Ok(Stored::Old),
            }
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
        let skipped = LazyCell::new(|| {
            let skipped = record.trials.iter().filter(|trial| trial.skip.is_some());
            skipped.map(|trial| (trial.id(), trial)).collect::<HashMap<_, _>>()
        });
        let mut old: Option<(usize, String)> = None;
        let mut has_replacement = false;
        let mut lines = 0;
        let mut read = Lines::of(&file);
        let mut stored = Vec::with_capacity(count);
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
                Err(error) => return Ok(Stored::Changed { line: number, why: in_one_line(&error.to_string()) }),
            };
            let next = expected.next();
            // The engine wrote this line in place of a result that no longer existed. The trials decide what counts, so it
            // decides nothing if another program wrote it.
            if result.is_not_as_judged() && next.is_some_and(|(trial, _)| trial.id() == result.id()) {
                has_replacement = true;
                continue;
            }
            let why = match next {
                Some(_) if old.is_some() => None,
                Some((_, TrialState { distrust: Some(_), .. })) => None,
                Some((trial, state)) => match integrity::changed(trial, state, line.as_bytes(), &result) {
                    None => {
                        let is_copy = from_copy.contains(&(number - 1));
                        see(&mut folded, if is_copy { result.marked_as_copy() } else { result });
                        continue;
                    }
                    Some(changed) => Some(changed.reason("it")),
                },
                None => {
                    let why = format!("only {} finished or skipped", plural(count, "trial"));
                    if !has_discarded {
                        // The number of results never decreases otherwise, so the engine did not write this line.
                        return Ok(Stored::Changed { line: number, why });
                    }
                    Some(why)
                }
            };
            if !was_judged(&skipped, &by_id, line, &result) {
                let why = why.unwrap_or_else(|| "the journal has no digest of such a result".to_owned());
                return Ok(Stored::Changed { line: number, why });
            }
            if old.is_none() {
                old = Some((number, why.unwrap_or_default()));
            }
        }
        drop(read);
        if has_replacement {
            return Ok(Stored::Old);
        }
        if old.is_none() && lines == count {
            return Ok(Stored::Whole(folded, StoredResults::new(path, file, stored).with_copies(from_copy)));
        }
        // A killed engine would have written the journal after this file.
        if self.is_newer_than_the_journal(&written) {
            let trials = plural(count, "trial");
            let missing = || (lines + 1, format!("the file ends too early: {trials} finished or skipped"));
            let (line, why) = old.filter(|(_, why)| !why.is_empty()).unwrap_or_else(missing);
            return Ok(Stored::Changed { line, why });
        }
        Ok(Stored::Old)
    }

    /// Compares the result in a trial's own folder with the recorded one. A file that was not changed after `results.jsonl` was
    /// written is not read. If the trial's own file is missing, only the result in `results.jsonl` is left; without a digest,
    /// it is unknown whether the engine ever wrote the file.
    fn own_file_since(&self, written: &Metadata, trial: &TrialRecord, state: &TrialState) -> OwnFile {
        let changed = |file: &Metadata| (file.ctime(), file.ctime_nsec());
        let own = self.trial_of(trial).and_then(|folder| {
            let path = folder.join("result.json");
            fs::symlink_metadata(&path).map_err(RunError::io("read", &path))
        });
        match own {
            Ok(own) if own.is_file() && changed(&own) <= changed(written) => OwnFile::Same,
            Err(RunError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                if state.digest.is_some() {
                    OwnFile::Missing
                } else {
                    OwnFile::Same
                }
            }
            _ => match self.result_of(trial, state) {
                Ok(result) if result.is_from_copy() => OwnFile::Missing,
                Ok(result) if !result.is_not_as_judged() => OwnFile::Same,
                _ => OwnFile::Differs,
            },
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
        let States { trials: states, distrust, .. } = self.all_states()?;
        let mut results = Vec::new();
        for trial in &record.trials {
            // A result counts only with a finished line: a file without one belongs to an interrupted attempt.
            match (states.get(&trial.id()).filter(|state| state.finished.is_some()), &trial.skip) {
                (Some(state), _) => results.push(self.result_of(trial, state)?),
                (None, Some(reason)) => results.push(match &distrust {
                    // A result that claims to be skipped is not trusted.
                    Some(why) => integrity::not_as_judged(trial, &TrialState::default(), why),
                    None => TrialResult::skipped(trial, reason),
                }),
                (None, None) => {}
            }
        }
        let was_judged = || states.values().any(|state| state.finished.is_some());
        if let Some(why) = distrust.filter(|_| results.is_empty() && was_judged()) {
            let message = format!("{why}, and it contains no graded trial; restore a copy of the file");
            return Err(RunError::Malformed { path: self.record_file(), message });
        }
        Ok(results)
    }

    /// Returns the result of a finished trial: the recorded result; if its file is missing or was changed, a copy that the
    /// journal confirms; or a replacement that states that the result no longer exists.
    ///
    /// # Errors
    /// Returns an error if the result exists but cannot be read.
    pub fn result_of(&self, trial: &TrialRecord, state: &TrialState) -> Result<TrialResult, RunError> {
        if let Some(why) = &state.distrust {
            return Ok(integrity::not_as_judged(trial, state, why));
        }
        if trial.skip.is_some() {
            return Ok(integrity::not_as_judged(trial, state, &Changed::Skipped.reason(RESULT)));
        }
        let copy = || self.copies.find(&self.path, trial, state).map(|(result, _)| result.marked_as_copy());
        let (changed, copy) = match self.own_result(trial, state) {
            Ok(Ok(result)) => return Ok(result),
            // Without a digest, it is unknown which of the two texts is the recorded one.
            Ok(Err(changed)) => (changed, state.digest.as_ref().and_then(|_| copy())),
            Err(error) if error.is_lost() => (Changed::Lost, copy()),
            // The user may only have no right to read the file.
            Err(error) if error.is_refused() => return copy().ok_or(error),
            Err(error) => return Err(error),
        };
        // The other trials keep their verdicts.
        Ok(copy.unwrap_or_else(|| integrity::not_as_judged(trial, state, &changed.reason(RESULT))))
    }

    /// Returns the result in the folder of a trial, or the reason why it differs from the recorded one.
    fn own_result(&self, trial: &TrialRecord, state: &TrialState) -> Result<Result<TrialResult, Changed>, RunError> {
        let path = self.counting_attempt(trial, state)?.join("result.json");
        let json = regular::read_own(&path).map_err(RunError::io("read", &path))?;
        let checked = integrity::checked(trial, state, &json);
        checked.map_err(|error| RunError::Malformed { path, message: error.to_string() })
    }

    /// Keeps a copy of a result that this process finished, for the case that an agent removes or changes its file.
    pub fn keep_copy(&self, result: &TrialResult) {
        self.copies.keep(&self.path, result);
    }

    /// Writes the files of those of these results again whose files are missing or were changed.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn restore_results(&self, record: &RunRecord, results: &[TrialResult]) -> Result<Restored, RunError> {
        let lost: HashSet<TrialId> = results.iter().filter(|it| it.is_from_copy()).map(TrialResult::id).collect();
        let mut restored = Restored::default();
        if lost.is_empty() {
            return Ok(restored);
        }
        let states = self.states()?;
        for trial in record.trials.iter().filter(|trial| lost.contains(&trial.id())) {
            let Some(state) = states.get(&trial.id()) else { continue };
            let Some((_, json)) = self.copies.find(&self.path, trial, state) else { continue };
            match self.restore_result(trial, state, &json) {
                Ok(aside) => restored.aside.extend(aside),
                Err(_) => restored.left += 1,
            }
        }
        Ok(restored)
    }

    /// Writes the file of a result again. Returns the path of the changed file, if there was one.
    fn restore_result(
        &self,
        trial: &TrialRecord,
        state: &TrialState,
        json: &[u8],
    ) -> Result<Option<PathBuf>, RunError> {
        let folder = self.stored_trial(&trial.id())?;
        // The files in the folder of the trial are those of a later attempt, if one has begun.
        let has_later = state.attempts > state.attempt;
        let at = if has_later { folder.join("attempts").join(state.attempt.to_string()) } else { folder };
        let at = self.without_links(at)?;
        fs::create_dir_all(&at).map_err(RunError::io("make the folder", &at))?;
        let path = at.join("result.json");
        let is_kept = |meta: Metadata| meta.is_file() || meta.is_dir();
        let aside = match path.symlink_metadata().is_ok_and(is_kept) {
            true => put_aside(&path, |number| at.join(format!("result.changed-{number}.json")))?,
            false => None,
        };
        write_whole(&path, |out| {
            out.write_all(json)?;
            out.write_all(b"\n")
        })?;
        sync_folder(&at)?;
        Ok(aside)
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
            (Some(stored), Ok(json)) => **stored == *integrity::digest(&json),
            (None, Ok(_)) => true,
            (_, Err(_)) => false,
        };
        Ok(if is_it { earlier } else { folder })
    }

    /// Returns the number of trials without a result that counts whose folders have the result of an attempt that the journal
    /// does not know: lines of the journal were removed.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn unknown_results(&self, record: &RunRecord) -> Result<usize, RunError> {
        #[derive(serde::Deserialize)]
        struct Written {
            attempt: u32,
        }
        let states = self.states()?;
        let attempt_in = |id: &TrialId| {
            let json = regular::read_own(self.stored_trial(id).ok()?.join("result.json")).ok()?;
            serde_json::from_slice::<Written>(&json).ok().map(|it| it.attempt)
        };
        let unknown_to = |states: &HashMap<TrialId, TrialState>, id: &TrialId, attempt: u32| {
            let state = states.get(id);
            let is_finished = state.is_some_and(|state| state.finished.is_some());
            !is_finished && attempt > state.map_or(0, |state| state.attempts)
        };
        let planned = record.trials.iter().filter(|trial| trial.skip.is_none()).map(TrialRecord::id);
        let open = planned.filter(|id| unknown_to(&states, id, u32::MAX));
        let written = open.filter_map(|id| attempt_in(&id).map(|attempt| (id, attempt)));
        let unknown: Vec<_> = written.filter(|(id, attempt)| unknown_to(&states, id, *attempt)).collect();
        if unknown.is_empty() {
            return Ok(0);
        }
        // An engine that plays the run may have written lines since. It writes the line of an attempt before its result.
        let states = self.states()?;
        Ok(unknown.iter().filter(|(id, attempt)| unknown_to(&states, id, *attempt)).count())
    }

    /// Returns the names of the files of a trial that its result has digests of and that do not exist.
    pub fn missing_evidence(&self, result: &TrialResult) -> Vec<String> {
        if result.files.is_empty() {
            return Vec::new();
        }
        let Ok(folder) = self.trial(&result.id()) else { return Vec::new() };
        let earlier = folder.join("attempts").join(result.attempt.to_string());
        let is_missing = |name: &str| [&folder, &earlier].iter().all(|at| is_absent(&at.join(name)));
        let names = result.files.keys().filter(|name| !integrity::IS_NO_FILE.contains(&name.as_str()));
        names.filter(|name| is_missing(name)).cloned().collect()
    }

    /// Writes `results.jsonl`.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn write_results(&self, results: &[TrialResult]) -> Result<(), RunError> {
        write_whole(&self.path.join("results.jsonl"), |out| {
            for result in results {
                match result.is_from_copy() {
                    true => serde_json::to_writer(&mut *out, &result.clone().without_copy_mark())?,
                    false => serde_json::to_writer(&mut *out, result)?,
                }
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

/// The outcome of writing `result.json` again for trials whose results come from copies.
#[derive(Debug, Default)]
pub struct Restored {
    /// The number of files that could not be written: a link or another file may be in place of a folder.
    pub left: usize,
    /// The changed files, under the names under which they are kept.
    pub aside: Vec<PathBuf>,
}

fn is_absent(path: &Path) -> bool {
    path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Renames a changed file to the first name for a number that is not taken, and returns that name.
///
/// # Errors
/// Returns an error if the file cannot be renamed.
fn put_aside(path: &Path, name: impl Fn(u32) -> PathBuf) -> Result<Option<PathBuf>, RunError> {
    let Some(aside) = (1..=MAX_CHANGED_COPIES).map(name).find(|path| path.symlink_metadata().is_err()) else {
        return Ok(None);
    };
    fs::rename(path, &aside).map_err(RunError::io("rename", path))?;
    Ok(Some(aside))
}

/// A trial's own `result.json`, compared with the recorded result.
enum OwnFile {
    Same,
    /// It was removed, changed or replaced, and a copy counts.
    Missing,
    Differs,
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
fn was_judged(
    skipped: &HashMap<TrialId, &TrialRecord>,
    states: &HashMap<TrialId, &TrialState>,
    line: &str,
    result: &TrialResult,
) -> bool {
    let key = result.id();
    let digest = integrity::digest(line.as_bytes());
    let is_skipped =
        |trial: &&TrialRecord| trial.skip.as_ref().is_some_and(|why| *result == TrialResult::skipped(trial, why));
    match states.get(&key) {
        Some(state) if state.judged.is_empty() => result.attempt <= state.attempt,
        Some(state) => state.judged.iter().any(|judged| **judged == *digest),
        None => skipped.get(&key).is_some_and(is_skipped),
    }
}
