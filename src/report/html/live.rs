//! The state of a run that may be going on, as a server sends it to a page.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

use super::places::place;
use crate::report::Summary;
use crate::report::text::plural;
use crate::run::folder::RunFolder;
use crate::run::{RunError, RunRecord};
use crate::verdict::Verdict;

/// The state of a run at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Live {
    /// True if an engine is using the run.
    pub going_on: bool,
    /// The number of planned trials, without skipped ones.
    pub trials: usize,
    /// The number of trials that have a verdict.
    pub finished: usize,
    /// The number of attempts that have finished. It also grows if a trial is run again.
    pub attempts: usize,
    /// The places of the running trials, each with the size of its wire log in bytes.
    pub running: BTreeMap<String, u64>,
    /// The state in words.
    pub text: String,
}

impl Live {
    /// Reads the state of a run from its journal.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read.
    pub fn of(folder: &RunFolder, record: &RunRecord) -> Result<Self, RunError> {
        // Asked first: a run that ends in this moment is asked for again.
        let going_on = folder.is_in_use();
        let states = folder.states()?;
        let mut live = Self { going_on, ..Self::default() };
        let mut summary = Summary::default();
        for trial in record.trials.iter().filter(|trial| trial.skip.is_none()) {
            live.trials += 1;
            let Some(state) = states.get(&trial.id()) else { continue };
            // Older versions wrote no digests.
            live.attempts += state.judged.len().max(usize::from(state.finished.is_some()));
            if going_on && state.is_open() {
                let log = folder.stored_trial(&trial.id()).map(|folder| folder.join("wire.jsonl"));
                let size = log.ok().and_then(|log| fs::metadata(log).ok()).map_or(0, |meta| meta.len());
                live.running.insert(place(&trial.id()), size);
            } else if let Some(verdict) = state.finished {
                live.finished += 1;
                match verdict {
                    Verdict::Pass => summary.pass += 1,
                    Verdict::Fail => summary.fail += 1,
                    Verdict::Ungraded => summary.ungraded += 1,
                    Verdict::Errored => summary.errored += 1,
                    Verdict::Skipped => summary.skipped += 1,
                }
            }
        }
        let counts: Vec<String> = summary.parts().into_iter().map(|(_, part)| part).collect();
        let counts = if live.finished == 0 { String::new() } else { format!(" ({})", counts.join(", ")) };
        let all = plural(live.trials, "trial");
        live.text = format!("{} of {all} finished{counts}, {} running", live.finished, live.running.len());
        Ok(live)
    }
}
