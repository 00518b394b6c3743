//! `journal.jsonl`: one line for each trial started and finished, synced before the next step. Each line has a digest
//! that covers the line before it, so that a changed or removed line is noticed.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use super::{RunError, integrity};
use crate::ids::{TrialId, TrialRecord};
use crate::regular;
use crate::result::TrialResult;
use crate::values::now_text;
use crate::verdict::Verdict;
use crate::whole_file::write_whole;

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JournalLine {
    /// The time, in RFC 3339 and UTC.
    pub at: String,
    /// The step of the attempt that the line records.
    pub event: JournalEvent,
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The requested model, or `default`. In runs of older versions, the name of the arm.
    pub model: String,
    /// Name of the arm. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// Number of the trial.
    pub trial: u32,
    /// Number of the attempt.
    pub attempt: u32,
    /// The verdict, for a finished attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// True if the trial will be retried, for a finished attempt with a temporary error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
    /// The digest of `result.json`, for a finished attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The digest of `run.json` when the line was written. Absent in runs of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

impl JournalLine {
    /// Makes a line about an attempt.
    pub fn new(at: String, event: JournalEvent, trial: &TrialRecord, attempt: u32) -> Self {
        let (model, arm) = (trial.arm_of().model.unwrap_or("default").to_owned(), Some(trial.arm.clone()));
        let TrialRecord { case, harness, trial, .. } = trial.clone();
        let (verdict, digest, plan) = (None, None, None);
        Self { at, event, case, harness, model, arm, trial, attempt, verdict, retry: false, digest, plan }
    }

    /// Returns the name of the arm.
    pub fn arm(&self) -> &str {
        self.arm.as_deref().unwrap_or(&self.model)
    }

    /// Adds the result of a finished attempt.
    #[must_use]
    pub fn with_result(self, result: &TrialResult) -> Self {
        Self { verdict: Some(result.verdict), digest: Some(integrity::digest_of(result)), ..self }
    }
}

/// A line of the journal about `run.json`: the engine itself replaced it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanLine {
    /// The time, in RFC 3339 and UTC.
    pub at: String,
    /// The step that the line records: `planned`.
    pub event: PlanEvent,
    /// The digest of the new `run.json`.
    pub plan: String,
    /// The digest of the previous `run.json`.
    pub replaces: String,
}

/// An event about `run.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PlanEvent {
    /// The engine replaced `run.json`.
    Planned,
}

/// The parts of `run.json` that the journal is compared with.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub(super) struct Plan {
    /// The digest of the file's text. Absent if the text is unknown.
    #[serde(skip)]
    pub digest: Option<String>,
    /// The digest of the previous `run.json`, which this one replaced.
    #[serde(default)]
    pub replaces: Option<String>,
    /// True if every line of the journal has a digest.
    #[serde(default)]
    pub digests: bool,
}

impl Plan {
    /// Parses the text of a `run.json`.
    pub fn of(text: &[u8]) -> Self {
        let plan: Plan = serde_json::from_slice(text).unwrap_or_default();
        Self { digest: Some(integrity::digest(text)), ..plan }
    }

    /// Returns true if a line with this digest of `run.json` was written under this one, or under the previous one,
    /// which an engine had replaced when it was killed.
    fn is(&self, digest: &str) -> bool {
        self.digest.is_none() || [&self.digest, &self.replaces].iter().any(|it| it.as_deref() == Some(digest))
    }
}

/// An event of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JournalEvent {
    /// An attempt started.
    Started,
    /// An attempt is done, and all of its files are on disk.
    Finished,
    /// The result of a finished attempt no longer counts, because its case, harness, variant or prices have changed
    /// (`--changed rerun`). The trial counts as not run until another attempt finishes.
    Discarded,
}

/// Writes the journal.
pub struct Journal {
    path: PathBuf,
    /// The digest of `run.json`, which each line gets.
    plan: Option<String>,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    /// The expected content of the file. Agents without a sandbox can change the file, but not this copy.
    text: Vec<u8>,
    chain: Chain,
}

impl Journal {
    /// Opens a journal for appending. An incomplete last line is terminated.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        Self::open_under(path, Plan::default())
    }

    /// Opens the journal of a run with this `run.json`. A rewrite of `run.json` that the journal does not have yet is
    /// written first.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub(super) fn open_under(path: &Path, plan: Plan) -> Result<Self, RunError> {
        let file = regular::create_own(path, OpenOptions::new().append(true));
        let mut file = file.map_err(RunError::io("open the journal", path))?;
        let mut text = regular::read(path).map_err(RunError::io("read the journal", path))?;
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(RunError::io("write the journal", path))?;
            text.push(b'\n');
        }
        let read = Reader::of(&text, &Plan::default());
        let inner = Mutex::new(Inner { file, text, chain: read.chain });
        let journal = Self { path: path.to_owned(), plan: plan.digest, inner };
        if let (Some(known), Some(now)) = (read.plan, &journal.plan)
            && known != *now
            && plan.replaces.as_ref() == Some(&known)
        {
            let at = now_text();
            let line = PlanLine { at, event: PlanEvent::Planned, plan: now.clone(), replaces: known };
            let mut inner = journal.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let line = inner.chain.beside(serde_json::to_vec(&line).unwrap_or_default());
            inner.append(&journal.path, line)?;
            drop(inner);
        }
        Ok(journal)
    }

    /// Writes a line and syncs it.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn write(&self, line: &JournalLine) -> Result<(), RunError> {
        self.write_all(std::slice::from_ref(line))
    }

    /// Writes lines of trials whose files are all durable, and syncs once.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn write_all(&self, lines: &[JournalLine]) -> Result<(), RunError> {
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (before, length) = (inner.chain.clone(), inner.text.len());
        let mut text = Vec::new();
        for line in lines {
            let line = JournalLine { plan: line.plan.clone().or_else(|| self.plan.clone()), ..line.clone() };
            text.append(&mut inner.chain.add(serde_json::to_vec(&line).unwrap_or_default()));
            text.push(b'\n');
        }
        // The last line end is added with the text.
        text.pop();
        let written = inner.append(&self.path, text);
        // Lines that were written and not synced are in the file.
        if written.is_err() && inner.text.len() == length {
            // The next line follows the last one in the file.
            inner.chain = before;
        }
        written
    }

    /// Compares the file with the lines that this process wrote. If they differ, the file is moved away and written
    /// again.
    ///
    /// # Errors
    /// Returns an error of the file system.
    pub fn settle(&self) -> Result<Option<JournalChange>, RunError> {
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if regular::read(&self.path).is_ok_and(|found| found == inner.text) {
            return Ok(None);
        }
        let aside = |number: u32| self.path.with_file_name(format!("journal.changed-{number}.jsonl"));
        let aside = (1..).map(aside).find(|path| path.symlink_metadata().is_err());
        let aside = aside.ok_or_else(|| {
            RunError::io("move the changed journal aside", &self.path)(ErrorKind::AlreadyExists.into())
        })?;
        let change = match fs::rename(&self.path, &aside) {
            Ok(()) => JournalChange::Changed(aside),
            Err(error) if error.kind() == ErrorKind::NotFound => JournalChange::Removed,
            Err(error) => return Err(RunError::io("move the changed journal aside", &self.path)(error)),
        };
        write_whole(&self.path, |out| out.write_all(&inner.text))?;
        Ok(Some(change))
    }
}

/// A change of the journal by another program while this process wrote it. The journal was written again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalChange {
    /// The file was removed.
    Removed,
    /// The file was changed. The changed file has this path now.
    Changed(PathBuf),
}

impl Inner {
    /// Writes lines, and syncs them.
    fn append(&mut self, path: &Path, mut lines: Vec<u8>) -> Result<(), RunError> {
        if lines.is_empty() {
            return Ok(());
        }
        lines.push(b'\n');
        self.file.write_all(&lines).map_err(RunError::io("write the journal", path))?;
        self.text.extend_from_slice(&lines);
        self.file.sync_data().map_err(RunError::io("write the journal", path))
    }
}

/// Digests of the lines of a journal, each including the digest of the line before.
#[derive(Debug, Clone, Default)]
struct Chain {
    last: String,
    begun: bool,
}

/// The key of the digest at the end of a line.
const CHAIN: &[u8] = b",\"chain\":\"";
/// The number of hexadecimal digits.
const DIGITS: usize = 32;

impl Chain {
    /// Adds the digest to a line.
    fn add(&mut self, body: Vec<u8>) -> Vec<u8> {
        self.last = self.next(&body);
        self.begun = true;
        with_digest(body, &self.last)
    }

    /// Adds the digest to a line that no later line depends on, because older versions ignore such lines.
    fn beside(&self, body: Vec<u8>) -> Vec<u8> {
        let digest = self.next(&body);
        with_digest(body, &digest)
    }

    /// Checks the digest of a line that was read. Returns false if it was changed, or if the line before it was
    /// removed.
    fn holds(&mut self, line: &[u8]) -> bool {
        // Lines before the first digest were written by an older version.
        let Some((body, digits)) = without_digest(line) else { return !self.begun };
        let holds = self.next(&[body, b"}"].concat()) == digits;
        digits.clone_into(&mut self.last);
        self.begun = true;
        holds
    }

    /// Checks a line that no later line depends on. Returns false if it was changed, or if the line before it
    /// was removed.
    fn holds_beside(&self, line: &[u8]) -> bool {
        without_digest(line).is_some_and(|(body, digits)| self.next(&[body, b"}"].concat()) == digits)
    }

    fn next(&self, body: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.last.as_bytes()).update(body);
        hasher.finalize().to_hex().chars().take(DIGITS).collect()
    }
}

fn with_digest(mut line: Vec<u8>, digest: &str) -> Vec<u8> {
    line.pop();
    line.extend_from_slice(CHAIN);
    line.extend_from_slice(digest.as_bytes());
    line.extend_from_slice(b"\"}");
    line
}

/// Returns a line without its digest and without the brace that ends it, and the digest.
fn without_digest(line: &[u8]) -> Option<(&[u8], &str)> {
    let line = line.strip_suffix(b"\"}")?;
    let (rest, digits) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
    Some((rest.strip_suffix(CHAIN)?, std::str::from_utf8(digits).ok()?))
}

/// The state of a trial in the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialState {
    /// The number of attempts started.
    pub attempts: u32,
    /// The verdict of the last attempt that finished.
    pub finished: Option<Verdict>,
    /// The attempt that finished last, from 1, also if its result was discarded.
    pub attempt: u32,
    /// True if a retry was to follow.
    pub retry: bool,
    /// The number of attempts that were errored since the trial started, or started again after it was done.
    pub errored: u32,
    /// The digest of the result of the attempt that finished last; absent in runs of older versions, and if the result
    /// was discarded.
    pub digest: Option<Arc<str>>,
    /// The digests of the results of all attempts that finished.
    pub judged: Vec<Arc<str>>,
    /// The reason why the verdict is not trusted, if so. It is `errored` then.
    pub distrust: Option<String>,
    /// The last attempt whose result was discarded, or 0 if none was.
    pub discarded: u32,
    /// The number of results in `judged` when that result was discarded.
    pub judged_before: usize,
    /// True if the trial started again after it was done (`--rerun`).
    pub ran_again: bool,
    /// True if an attempt started and has not finished.
    open: bool,
}

/// The state of a trial that the journal has no line about.
pub(super) static UNSTARTED: TrialState = TrialState {
    attempts: 0,
    finished: None,
    attempt: 0,
    retry: false,
    errored: 0,
    digest: None,
    judged: Vec::new(),
    distrust: None,
    discarded: 0,
    judged_before: 0,
    ran_again: false,
    open: false,
};

impl TrialState {
    /// Marks all earlier lines as not trusted.
    fn doubt(&mut self, why: &str) {
        if self.finished.is_some() {
            self.finished = Some(Verdict::Errored);
            self.distrust.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Returns true if an attempt started and has not finished. Its engine may have been killed.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Returns true if the result of the attempt that finished last was discarded.
    pub fn is_discarded(&self) -> bool {
        self.finished.is_none() && self.attempt > 0
    }

    /// Discards the result of the attempt that finished last. The next attempt may be retried as if it were the first.
    fn discard(&mut self) {
        (self.finished, self.digest, self.distrust) = (None, None, None);
        (self.retry, self.errored) = (false, 0);
        (self.discarded, self.judged_before) = (self.attempt, self.judged.len());
    }

    /// Returns true if nothing remains to do: the last attempt has finished, and no retry was to follow.
    pub fn is_done(&self) -> bool {
        self.finished.is_some() && self.attempt >= self.attempts && !self.retry
    }
}

/// The reason why no verdict of a run counts.
const PLAN_CHANGED: &str = "run.json was changed after the trial was graded";
/// The reason why no verdict counts if digests are missing.
const DIGESTS_REMOVED: &str = "digests were removed from journal.jsonl or from run.json";

/// Returns the reason why a line of the journal is not trusted: it was changed, or the line before it was removed.
pub(super) fn line_changed(number: usize) -> String {
    format!("line {number} of journal.jsonl was changed, or the line before it was removed")
}

/// The states in a journal, checked against `run.json`.
#[derive(Debug, Default)]
pub(super) struct States {
    pub trials: HashMap<TrialId, TrialState>,
    /// The reason why nothing of the run is trusted, if so.
    pub distrust: Option<String>,
    /// The number of the first line that was changed, or that follows a removed line. `None` if the journal is intact.
    pub broken: Option<usize>,
    /// The digest of the last line about a trial, which covers the lines before it. Empty if no line has one.
    pub last: String,
}

/// Reads a journal of any version. An incomplete line is ignored, and so is a line that finishes a trial
/// without a verdict.
///
/// # Errors
/// Returns an error if the file cannot be read; a missing journal is empty.
pub fn read(path: &Path) -> Result<HashMap<TrialId, TrialState>, RunError> {
    Ok(read_under(path, Plan::default)?.trials)
}

/// Returns the lines about trials in a journal.
///
/// # Errors
/// Returns an error if the file cannot be read; a missing journal is empty.
pub(super) fn lines(path: &Path) -> Result<Vec<JournalLine>, RunError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = regular::read_own(path).map_err(RunError::io("read the journal", path))?;
    Ok(text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Reads the journal of a run. `run.json` is read after it, because a running engine replaces `run.json` before
/// it writes the line about it.
///
/// # Errors
/// Returns an error if the file cannot be read; a missing journal is empty.
pub(super) fn read_under(path: &Path, plan: impl FnOnce() -> Plan) -> Result<States, RunError> {
    if !path.exists() {
        return Ok(States::default());
    }
    let failed = |error| RunError::io("read the journal", path)(error);
    let file = regular::open_own(path).map_err(failed)?;
    // What is added from now on may be about a later `run.json`.
    let length = file.metadata().map_err(failed)?.len();
    let mut reader = Reader::under(plan());
    let mut lines = BufReader::new(file.take(length));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        reader.text(line.strip_suffix(b"\n").unwrap_or(&line));
        line.clear();
    }
    Ok(reader.end().states)
}

/// Reads a journal line by line.
struct Reader {
    states: States,
    chain: Chain,
    /// The digest of `run.json` in the last line.
    plan: Option<String>,
    /// The parts of `run.json` that the journal is compared with.
    under: Plan,
    /// The number of lines so far.
    number: usize,
    /// True if no line about a trial was read yet.
    first: bool,
    /// The trials that finished since the earlier lines were last doubted. `None` if they never were: then all that finished.
    undoubted: Option<Vec<TrialId>>,
}

impl Reader {
    fn under(plan: Plan) -> Self {
        let chain = Chain { begun: plan.digests, ..Chain::default() };
        Self { states: States::default(), chain, plan: None, under: plan, number: 0, first: true, undoubted: None }
    }

    /// Reads a whole text.
    fn of(text: &[u8], plan: &Plan) -> Self {
        let mut reader = Self::under(plan.clone());
        text.split(|byte| *byte == b'\n').for_each(|line| reader.text(line));
        reader.end()
    }

    /// Reads the next line.
    fn text(&mut self, text: &[u8]) {
        self.number += 1;
        if let Ok(line) = serde_json::from_slice::<JournalLine>(text) {
            let plan = &self.under;
            // Only a version that writes `digests: true`, too, begins a run with such a line.
            if self.first
                && !plan.digests
                && plan.digest.is_some()
                && line.plan.is_none()
                && without_digest(text).is_some()
            {
                self.states.distrust = Some(DIGESTS_REMOVED.to_owned());
            }
            self.first = false;
            self.line(self.number, text, line, self.under.digests);
        } else if let Ok(line) = serde_json::from_slice::<PlanLine>(text) {
            self.planned(text, line);
        }
    }

    /// Compares the end of the journal with `run.json`.
    fn end(mut self) -> Self {
        if self.plan.as_ref().is_some_and(|plan| !self.under.is(plan)) {
            self.states.distrust = Some(PLAN_CHANGED.to_owned());
        }
        if let Some(why) = &self.states.distrust {
            self.states.trials.values_mut().for_each(|state| state.doubt(why));
        }
        self.states.last.clone_from(&self.chain.last);
        self
    }

    /// Handles a line about `run.json`. A line that does not continue the known state changes nothing, so that
    /// the next line shows the difference.
    fn planned(&mut self, text: &[u8], line: PlanLine) {
        if self.chain.holds_beside(text) && self.plan.as_ref().is_none_or(|known| *known == line.replaces) {
            self.plan = Some(line.plan);
        }
    }

    /// Marks all earlier lines as not trusted. A result is doubted once, so that a journal in which no line holds is not read
    /// in the square of its length.
    fn doubt(&mut self, why: &str) {
        match self.undoubted.replace(Vec::new()) {
            None => self.states.trials.values_mut().for_each(|state| state.doubt(why)),
            Some(finished) => {
                for id in finished {
                    if let Some(state) = self.states.trials.get_mut(&id) {
                        state.doubt(why);
                    }
                }
            }
        }
    }

    fn line(&mut self, number: usize, text: &[u8], line: JournalLine, digests: bool) {
        let was_begun = self.chain.begun;
        let holds = self.chain.holds(text);
        if !holds && !was_begun {
            // The first line with a digest depends on a missing one: the lines before it had digests, too.
            self.doubt(DIGESTS_REMOVED);
        }
        if let Some(plan) = line.plan.as_ref().filter(|_| holds) {
            if self.plan.as_ref().is_some_and(|known| known != plan) {
                // An engine records a new plan by a line about `run.json`, so another program wrote this plan: the earlier
                // verdicts are in doubt.
                self.doubt(PLAN_CHANGED);
            }
            self.plan = Some(plan.clone());
        }
        if !holds {
            self.states.broken.get_or_insert(number);
            if line.event != JournalEvent::Finished && was_begun {
                // The missing line may have finished any of these trials anew.
                self.doubt(&line_changed(number));
            }
        }
        let arm = line.arm().to_owned();
        let id = TrialId { case: line.case, harness: line.harness, arm, trial: line.trial };
        if let Some(undoubted) = self.undoubted.as_mut().filter(|_| line.event == JournalEvent::Finished) {
            undoubted.push(id.clone());
        }
        let state = self.states.trials.entry(id).or_default();
        if line.event == JournalEvent::Discarded {
            state.discard();
            return;
        }
        if line.event == JournalEvent::Started && state.is_done() {
            state.errored = 0;
            state.ran_again = true;
        }
        state.attempts = state.attempts.max(line.attempt);
        if line.event == JournalEvent::Started {
            state.open = true;
            return;
        }
        let was_open = std::mem::take(&mut state.open);
        let distrust = if !holds {
            Some(line_changed(number))
        } else if digests && !was_open {
            Some(format!("line {number} of journal.jsonl finishes an attempt that was not begun"))
        } else if digests && line.digest.is_none() {
            Some(format!("line {number} of journal.jsonl has no digest of the result"))
        } else {
            None
        };
        let verdict = match (line.verdict, &distrust) {
            (Some(_), Some(_)) => Verdict::Errored,
            (Some(verdict), None) => verdict,
            // Removing a verdict from its line must not restore an earlier one.
            (None, Some(_)) if line.attempt > state.attempt => Verdict::Errored,
            (None, _) => return,
        };
        state.finished = Some(verdict);
        state.attempt = line.attempt;
        state.retry = line.retry;
        state.errored += u32::from(verdict == Verdict::Errored);
        let digest: Option<Arc<str>> = line.digest.map(Arc::from);
        if let Some(digest) = digest.as_ref().filter(|_| distrust.is_none()) {
            // Most trials have one attempt, and a run may have many trials.
            state.judged.reserve_exact(1);
            state.judged.push(Arc::clone(digest));
        }
        (state.digest, state.distrust) = (digest, distrust);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discarded_attempts_and_reruns_are_known_of_a_trial() {
        let line = |event, attempt, verdict| JournalLine { event, attempt, verdict, digest: None, ..started() };
        let (start, finish) = (JournalEvent::Started, JournalEvent::Finished);
        let text = |lines: &[JournalLine]| {
            let lines = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n");
            lines.collect::<String>().into_bytes()
        };
        let state = |lines: &[JournalLine]| {
            let read = Reader::of(&text(lines), &Plan::default());
            let state = read.states.trials.into_values().next().unwrap();
            (state.discarded, state.ran_again, state.is_discarded())
        };
        let mut lines = vec![line(start, 1, None), line(finish, 1, Some(Verdict::Pass))];
        assert_eq!(state(&lines), (0, false, false));
        lines.push(line(JournalEvent::Discarded, 1, None));
        lines.push(line(start, 2, None));
        assert_eq!(state(&lines), (1, false, true));
        lines.push(line(finish, 2, Some(Verdict::Errored)));
        lines.push(line(start, 3, None));
        assert_eq!(state(&lines), (1, true, false));
    }

    #[test]
    fn a_line_that_could_not_be_written_is_not_expected_in_the_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("journal.jsonl");
        fs::write(&path, "").unwrap();
        // A file that is open for reading cannot be written.
        let inner = Inner { file: File::open(&path).unwrap(), text: Vec::new(), chain: Chain::default() };
        let journal = Journal { path, plan: None, inner: Mutex::new(inner) };
        assert!(journal.write(&started()).is_err());
        assert!(journal.settle().unwrap().is_none(), "the file is as it was");
        assert!(!journal.inner.lock().unwrap().chain.begun, "the next line is the first");
    }

    #[test]
    fn a_line_that_was_written_and_not_synced_is_in_the_chain() {
        // Everything can be written to this file, and nothing can be synced.
        let path = PathBuf::from("/dev/null");
        let file = File::options().write(true).open(&path).unwrap();
        let inner = Inner { file, text: Vec::new(), chain: Chain::default() };
        let journal = Journal { path, plan: None, inner: Mutex::new(inner) };
        assert!(journal.write(&started()).is_err());
        assert!(journal.write(&started()).is_err());
        let text = journal.inner.lock().unwrap().text.clone();
        let read = Reader::of(&text, &Plan::default());
        assert_eq!((read.number, read.states.broken), (3, None));
    }

    /// Returns the lines of trials that start and finish in turn, with digests.
    fn played(trials: u32) -> Vec<Vec<u8>> {
        let mut chain = Chain::default();
        let mut lines = Vec::new();
        for trial in 1..=trials {
            for (event, verdict) in [(JournalEvent::Started, None), (JournalEvent::Finished, Some(Verdict::Pass))] {
                let digest = verdict.map(|_| "0".to_owned());
                let line = JournalLine { trial, event, verdict, digest, ..started() };
                lines.push(chain.add(serde_json::to_vec(&line).unwrap()));
            }
        }
        lines
    }

    #[test]
    fn a_result_is_doubted_for_the_first_line_after_it_that_does_not_hold() {
        let mut lines = played(4);
        // The starts of trials 2 and 4, so that the lines after them still hold.
        for at in [2, 6] {
            let text = String::from_utf8(lines[at].clone()).unwrap().replace("2026-", "2025-");
            lines[at] = text.into_bytes();
        }
        let read = Reader::of(&lines.join(&b'\n'), &Plan { digests: true, ..Plan::default() });
        let states = read.states.trials.iter();
        let mut doubts: Vec<_> = states.map(|(id, state)| (id.trial, state.distrust.clone())).collect();
        doubts.sort();
        let doubted = |line| Some(line_changed(line));
        assert_eq!(doubts, [(1, doubted(3)), (2, doubted(7)), (3, doubted(7)), (4, None)]);
        assert_eq!(read.states.broken, Some(3));
    }

    #[test]
    fn each_result_is_doubted_once_though_no_line_holds() {
        let mut reader = Reader::under(Plan { digests: true, ..Plan::default() });
        // As with the line ends of another system.
        for line in played(20) {
            reader.text(&[&line[..], b"\r"].concat());
            // A line that does not hold leaves nothing to doubt again, and a trial adds itself once.
            assert!(reader.undoubted.as_ref().is_none_or(|left| left.len() <= 1), "{:?}", reader.undoubted);
        }
        let read = reader.end();
        assert_eq!((read.states.broken, read.states.trials.len()), (Some(1), 20));
        assert!(read.states.trials.values().all(|state| state.distrust.is_some()));
    }

    fn started() -> JournalLine {
        let line = serde_json::json!({
            "at": "2026-01-01T00:00:00Z", "event": "started", "case": "a", "harness": "demo", "model": "default",
            "trial": 1, "attempt": 1
        });
        serde_json::from_value(line).unwrap()
    }
}
