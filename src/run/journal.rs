//! `journal.jsonl`: one line for each trial started and finished, synced before the next step.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::RunError;
use crate::verdict::Verdict;

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLine {
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// What happened.
    pub event: JournalEvent,
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// Name of the arm: the model, or `default`.
    pub model: String,
    /// Number of the trial.
    pub trial: u32,
    /// Number of the attempt.
    pub attempt: u32,
    /// The verdict, when finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// Another attempt follows, when finished with an error that may be gone then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retry: bool,
}

/// What happened to a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournalEvent {
    /// An attempt began.
    Started,
    /// An attempt is done, and everything of it is on disk.
    Finished,
}

/// Writes the journal.
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
}

impl Journal {
    /// Opens the journal of a run, to go on with it. A torn last line is closed off.
    ///
    /// # Errors
    /// The file system refused.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(path).map_err(RunError::io("open the journal", path))?;
        let torn = fs::read(path).is_ok_and(|bytes| bytes.last().is_some_and(|byte| *byte != b'\n'));
        if torn {
            file.write_all(b"\n").map_err(RunError::io("write the journal", path))?;
        }
        Ok(Self { path: path.to_owned(), file: Mutex::new(file) })
    }

    /// Writes a line and syncs it.
    ///
    /// # Errors
    /// The file system refused.
    pub fn write(&self, line: &JournalLine) -> Result<(), RunError> {
        self.write_all(std::slice::from_ref(line))
    }

    /// Writes lines of trials that are all durable, and syncs once.
    ///
    /// # Errors
    /// The file system refused.
    pub fn write_all(&self, lines: &[JournalLine]) -> Result<(), RunError> {
        let mut text = Vec::new();
        for line in lines {
            text.append(&mut serde_json::to_vec(line).unwrap_or_default());
            text.push(b'\n');
        }
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let written = file.write_all(&text).and_then(|()| file.sync_data());
        written.map_err(RunError::io("write the journal", &self.path))
    }
}

/// A trial's place in a journal: case, harness, arm, number.
pub type TrialKey = (String, String, String, u32);

/// What a journal says of a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialState {
    /// Attempts begun.
    pub attempts: u32,
    /// The verdict of the last attempt that finished.
    pub finished: Option<Verdict>,
    /// The attempt that finished last.
    pub attempt: u32,
    /// After it another was to follow.
    pub retry: bool,
    /// Attempts that were errored since the trial was begun, or was begun again after all of it was done.
    pub errored: u32,
}

impl TrialState {
    /// Whether nothing is left to do: the last attempt that was begun has finished, and none was to follow.
    pub fn is_done(&self) -> bool {
        self.finished.is_some() && self.attempt >= self.attempts && !self.retry
    }
}

/// Reads a journal. A torn line says nothing, and so does one that finishes a trial without a verdict.
///
/// # Errors
/// The file could not be read; a journal that is not there is empty.
pub fn read(path: &Path) -> Result<HashMap<TrialKey, TrialState>, RunError> {
    let mut states: HashMap<TrialKey, TrialState> = HashMap::new();
    if !path.exists() {
        return Ok(states);
    }
    let bytes = fs::read(path).map_err(RunError::io("read the journal", path))?;
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<JournalLine>(line) else { continue };
        let state = states.entry((line.case, line.harness, line.model, line.trial)).or_default();
        if line.event == JournalEvent::Started && state.is_done() {
            state.errored = 0;
        }
        state.attempts = state.attempts.max(line.attempt);
        if line.event == JournalEvent::Finished
            && let Some(verdict) = line.verdict
        {
            state.finished = Some(verdict);
            state.attempt = line.attempt;
            state.retry = line.retry;
            state.errored += u32::from(verdict == Verdict::Errored);
        }
    }
    Ok(states)
}
