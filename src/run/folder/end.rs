//! `end.json`: says that a run has reached its end, and which line of the journal was the last one then.

use std::path::PathBuf;
use std::sync::PoisonError;

use serde::{Deserialize, Serialize};

use super::RunFolder;
use crate::regular;
use crate::run::journal::{self, Plan};
use crate::run::{RunError, RunRecord};
use crate::values::now_text;
use crate::whole_file::write_whole;

/// The end of a run, as `end.json` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunEnd {
    /// The time, in RFC 3339 and UTC.
    pub at: String,
    /// The `chain` of the last line of the journal. If the journal has further lines, the run has not ended any more. Empty if
    /// the journal has no line with a `chain`.
    pub chain: String,
}

impl RunFolder {
    /// Records that the run has ended: the engine did everything that follows the last trial, so that it planned no more
    /// trials, and compared or accepted the snapshots.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub fn write_end(&self) -> Result<(), RunError> {
        let chain = self.last_line()?;
        if self.end().is_some_and(|end| end.chain == chain) {
            return Ok(());
        }
        let mut text = serde_json::to_vec(&RunEnd { at: now_text(), chain }).unwrap_or_default();
        text.push(b'\n');
        Ok(write_whole(&self.end_file(), |out| out.write_all(&text))?)
    }

    /// Returns true if the engine that used the run last did not do everything that follows the last trial: it was killed
    /// or interrupted, or a snapshot could not be written. An engine that is using the run may still do it. Runs of older
    /// versions do not record their end.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn lacks_end(&self, record: &RunRecord) -> Result<bool, RunError> {
        if !record.ends {
            return Ok(false);
        }
        let Some(end) = self.end() else { return Ok(true) };
        Ok(end.chain != self.last_line()?)
    }

    fn end(&self) -> Option<RunEnd> {
        serde_json::from_slice(&regular::read_own(self.end_file()).ok()?).ok()
    }

    fn last_line(&self) -> Result<String, RunError> {
        let now = self.journal_stamp();
        let known = self.last_read.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, last)) = known.filter(|(stamp, _)| now == Some(*stamp)) {
            return Ok(last);
        }
        Ok(journal::read_under(&self.journal(), Plan::default)?.last)
    }

    fn end_file(&self) -> PathBuf {
        self.path.join("end.json")
    }
}
