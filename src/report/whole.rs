//! A report with all results in memory, as pages for a browser, exports and comparisons need it.

use std::io;
use std::ops::Deref;

use super::Report;
use super::results::Results;
use crate::result::TrialResult;

/// A report whose results are all in memory. Code that shows or counts every result requires this type, so that no report
/// with stored results is taken for one without results.
#[derive(Debug, Clone, Copy)]
pub struct WholeReport<'a> {
    report: &'a Report,
    in_memory: &'a [TrialResult],
}

impl<'a> WholeReport<'a> {
    /// Returns all results, in the order of the plan.
    pub fn all_results(&self) -> &'a [TrialResult] {
        self.in_memory
    }
}

impl Deref for WholeReport<'_> {
    type Target = Report;

    fn deref(&self) -> &Report {
        self.report
    }
}

impl Report {
    /// Returns the report with all of its results.
    ///
    /// # Errors
    /// Returns an error if the results are not in memory: the report was made by [`Report::of_folder`].
    pub fn whole(&self) -> io::Result<WholeReport<'_>> {
        match &self.results {
            Results::Whole(in_memory) => Ok(WholeReport { report: self, in_memory }),
            Results::Stored(_) => Err(io::Error::other("the results of the report are not in memory")),
        }
    }
}
