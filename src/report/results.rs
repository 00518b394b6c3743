//! The results of a report: in memory, or read again from `results.jsonl` whenever a part of the report shows them.

use std::borrow::Cow;
use std::io;

use crate::result::TrialResult;
use crate::run::stored_results::StoredResults;

/// The results of a report, in the order of the plan.
#[derive(Debug, Clone)]
pub enum Results {
    /// All results, in memory.
    Whole(Vec<TrialResult>),
    /// The results in a file. A report of many trials then needs little memory.
    Stored(StoredResults),
}

impl Results {
    /// Returns the result at a place, from 0.
    ///
    /// # Errors
    /// Returns an error if there is no such place, or if the file is no longer what it was.
    pub fn get(&self, place: usize) -> io::Result<Cow<'_, TrialResult>> {
        match self {
            Self::Whole(results) => {
                results.get(place).map(Cow::Borrowed).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            }
            Self::Stored(stored) => stored.get(place).map(Cow::Owned),
        }
    }

    /// Returns the results at these positions, from 0.
    ///
    /// # Errors
    /// Returns the errors of [`Results::get`].
    pub fn at(&self, places: &[usize]) -> io::Result<Vec<Cow<'_, TrialResult>>> {
        places.iter().map(|place| self.get(*place)).collect()
    }

    /// Processes all results, one at a time.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is no longer what it was, or if `see` does.
    pub fn each(&self, see: impl FnMut(&TrialResult) -> io::Result<()>) -> io::Result<()> {
        match self {
            Self::Whole(results) => results.iter().try_for_each(see),
            Self::Stored(stored) => stored.each(see),
        }
    }
}
