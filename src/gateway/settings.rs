//! The settings of a run for its gateways.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::cassette::{self, Cassette};
use super::guard::Enforce;
use super::server::Timing;
use super::upstream::{Upstream, UpstreamError};
use crate::whole_file::FileError;

/// The settings of a run for its gateways.
#[derive(Default)]
pub struct Settings {
    /// The pace of recorded answers.
    pub timing: Timing,
    /// The treatment of requests for another model than the one that the run requests.
    pub enforce: Option<Enforce>,
    /// Made once, because each client has connections of its own.
    upstream: OnceLock<Upstream>,
    /// The cassettes that were recorded, with the number of the trial.
    recorded: Mutex<BTreeMap<PathBuf, u32>>,
}

impl Settings {
    pub fn new(timing: Timing, enforce: Option<Enforce>) -> Self {
        Self { timing, enforce, ..Self::default() }
    }

    /// Returns the services.
    ///
    /// # Errors
    /// Returns an error if a variable of the environment is not valid.
    pub fn upstream(&self, env: &BTreeMap<String, String>) -> Result<&Upstream, UpstreamError> {
        if let Some(upstream) = self.upstream.get() {
            return Ok(upstream);
        }
        let new = Upstream::of_env(env)?;
        Ok(self.upstream.get_or_init(|| new))
    }

    /// Writes the cassette that a trial recorded, unless a trial with a lower number has written one: of several trials
    /// the first is kept, regardless of which ends first.
    ///
    /// # Errors
    /// Returns an error if the cassette cannot be written. An existing cassette is then left unchanged.
    pub fn keep(&self, trial: u32, file: &Path, cassette: &Cassette) -> Result<(), FileError> {
        // Held while the file is written, so that two trials do not write it at once.
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        if recorded.get(file).is_some_and(|earlier| *earlier < trial) {
            return Ok(());
        }
        cassette::save(file, cassette)?;
        recorded.insert(file.to_owned(), trial);
        Ok(())
    }

    /// Records that a trial of an earlier part of the run recorded a cassette.
    pub fn note_recorded(&self, trial: u32, file: PathBuf) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        let number = recorded.entry(file).or_insert(trial);
        *number = trial.min(*number);
    }
}
