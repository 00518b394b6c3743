//! `journal.jsonl`: one line for each trial started and finished, synced before the next step. Each line has a digest
//! over the line before it, so that a line that was changed or removed is noticed.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::{Deserialize, Serialize};

use super::RunError;
use crate::ids::TrialId;
use crate::regular;
use crate::verdict::Verdict;
use crate::whole_file::write_whole;

/// A line of the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// The digest of `result.json`, when finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// What happened to a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    /// All that the file has to hold. Agents without a sandbox can write to the file, and not to this.
    text: Vec<u8>,
    chain: Chain,
}

impl Journal {
    /// Opens the journal of a run, to go on with it. A torn last line is closed off.
    ///
    /// # Errors
    /// The file system refused.
    pub fn open(path: &Path) -> Result<Self, RunError> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(path).map_err(RunError::io("open the journal", path))?;
        let mut text = regular::read(path).map_err(RunError::io("read the journal", path))?;
        if text.last().is_some_and(|byte| *byte != b'\n') {
            file.write_all(b"\n").map_err(RunError::io("write the journal", path))?;
            text.push(b'\n');
        }
        let mut chain = Chain::default();
        for line in text.split(|byte| *byte == b'\n') {
            if serde_json::from_slice::<JournalLine>(line).is_ok() {
                chain.holds(line);
            }
        }
        Ok(Self { path: path.to_owned(), inner: Mutex::new(Inner { file, text, chain }) })
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
        let mut inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut text = Vec::new();
        for line in lines {
            text.append(&mut inner.chain.add(serde_json::to_vec(line).unwrap_or_default()));
            text.push(b'\n');
        }
        inner.text.extend_from_slice(&text);
        let written = inner.file.write_all(&text).and_then(|()| inner.file.sync_data());
        written.map_err(RunError::io("write the journal", &self.path))
    }

    /// Compares the file with what was written. If they differ, the file is moved aside and what was written is put in its
    /// place. Returns where the other one is now.
    ///
    /// # Errors
    /// The file system refused.
    pub fn settle(&self) -> Result<Option<PathBuf>, RunError> {
        let inner = self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if regular::read(&self.path).is_ok_and(|found| found == inner.text) {
            return Ok(None);
        }
        let aside = |number: u32| self.path.with_file_name(format!("journal.changed-{number}.jsonl"));
        let aside = (1..).map(aside).find(|path| path.symlink_metadata().is_err()).unwrap_or_default();
        match fs::rename(&self.path, &aside) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(RunError::io("move the changed journal aside", &self.path)(error));
            }
            _ => {}
        }
        write_whole(&self.path, |out| out.write_all(&inner.text))?;
        Ok(Some(aside))
    }
}

/// Digests over the lines of a journal, each with that of the line before.
#[derive(Debug, Default)]
struct Chain {
    last: String,
    begun: bool,
}

/// How the digest stands at the end of a line.
const CHAIN: &[u8] = b",\"chain\":\"";
/// So many hexadecimal digits it has.
const DIGITS: usize = 32;

impl Chain {
    /// Adds its digest to a line.
    fn add(&mut self, body: Vec<u8>) -> Vec<u8> {
        self.last = self.next(&body);
        self.begun = true;
        let mut line = body;
        line.pop();
        line.extend_from_slice(CHAIN);
        line.extend_from_slice(self.last.as_bytes());
        line.extend_from_slice(b"\"}");
        line
    }

    /// Goes on with a line that was read. Returns false if it was changed, or if the line before it was removed.
    fn holds(&mut self, line: &[u8]) -> bool {
        let told = line.strip_suffix(b"\"}").and_then(|line| {
            let (rest, digits) = line.split_at_checked(line.len().checked_sub(DIGITS)?)?;
            Some((rest.strip_suffix(CHAIN)?, std::str::from_utf8(digits).ok()?))
        });
        // Before the first digest a journal is that of an older version.
        let Some((body, digits)) = told else { return !self.begun };
        let holds = self.next(&[body, b"}"].concat()) == digits;
        digits.clone_into(&mut self.last);
        self.begun = true;
        holds
    }

    fn next(&self, body: &[u8]) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.last.as_bytes()).update(body);
        hasher.finalize().to_hex().chars().take(DIGITS).collect()
    }
}

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
    /// The digest of the result of the attempt that finished last; absent in runs of older versions.
    pub digest: Option<String>,
    /// The digests of the results of all attempts that finished.
    pub judged: Vec<String>,
    /// Why the verdict is not believed, if so. It is `errored` then.
    pub distrust: Option<String>,
    /// An attempt was begun and has not finished.
    open: bool,
}

impl TrialState {
    /// Whether nothing is left to do: the last attempt that was begun has finished, and none was to follow.
    pub fn is_done(&self) -> bool {
        self.finished.is_some() && self.attempt >= self.attempts && !self.retry
    }
}

/// Reads a journal of any version. A torn line says nothing, and so does one that finishes a trial without a verdict.
///
/// # Errors
/// The file could not be read; a journal that is not there is empty.
pub fn read(path: &Path) -> Result<HashMap<TrialId, TrialState>, RunError> {
    read_as(path, false)
}

/// The same of a run whose every line is known to have digests.
///
/// # Errors
/// The file could not be read; a journal that is not there is empty.
pub(super) fn read_as(path: &Path, digests: bool) -> Result<HashMap<TrialId, TrialState>, RunError> {
    let mut states: HashMap<TrialId, TrialState> = HashMap::new();
    let mut chain = Chain { begun: digests, ..Chain::default() };
    if !path.exists() {
        return Ok(states);
    }
    let bytes = regular::read(path).map_err(RunError::io("read the journal", path))?;
    for (number, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
        let Ok(line) = serde_json::from_slice::<JournalLine>(text) else { continue };
        let holds = chain.holds(text);
        let state = states
            .entry(TrialId { case: line.case, harness: line.harness, arm: line.model, trial: line.trial })
            .or_default();
        if line.event == JournalEvent::Started && state.is_done() {
            state.errored = 0;
        }
        state.attempts = state.attempts.max(line.attempt);
        if line.event == JournalEvent::Started {
            state.open = true;
            continue;
        }
        let was_open = std::mem::take(&mut state.open);
        let distrust = if !holds {
            Some(format!("line {number} of journal.jsonl was changed, or the line before it was removed"))
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
            // A verdict that was taken out of its line must not bring back an earlier one.
            (None, Some(_)) if line.attempt > state.attempt => Verdict::Errored,
            (None, _) => continue,
        };
        state.finished = Some(verdict);
        state.attempt = line.attempt;
        state.retry = line.retry;
        state.errored += u32::from(verdict == Verdict::Errored);
        if distrust.is_none() {
            state.judged.extend(line.digest.clone());
        }
        (state.digest, state.distrust) = (line.digest, distrust);
    }
    Ok(states)
}
