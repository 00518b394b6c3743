//! Adds the checks of one grader up to its Grade: the share that held, and the reason of what did not.

use super::words;
use crate::grade::{Grade, Score};
use crate::values::Fraction;

/// Events that a Grade points at, at most.
const EVIDENCE: usize = 100;
/// Reasons that are told in full, at most.
const REASONS: usize = 5;
/// Characters of one reason, at most.
const LENGTH: usize = 1200;

/// The checks of one grader.
#[derive(Debug, Default)]
pub struct Checks {
    held: Vec<Check>,
    violated: Vec<Check>,
    unknown: Vec<String>,
}

#[derive(Debug)]
struct Check {
    reason: String,
    evidence: Vec<u64>,
}

impl Checks {
    /// A check that held.
    pub fn held(&mut self, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        self.held.push(Check { reason: reason.into(), evidence: evidence.into_iter().take(EVIDENCE).collect() });
    }

    /// A check that did not hold.
    pub fn violated(&mut self, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        self.violated.push(Check { reason: reason.into(), evidence: evidence.into_iter().take(EVIDENCE).collect() });
    }

    /// A check that could not be made: what is missing.
    pub fn unknown(&mut self, reason: impl Into<String>) {
        self.unknown.push(reason.into());
    }

    /// A check that held or did not, with the reason for either.
    pub fn either(&mut self, holds: bool, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        if holds { self.held(reason, evidence) } else { self.violated(reason, evidence) }
    }

    /// The grade: a known violation fails it, and only without one does a missing figure leave it ungraded.
    /// The value is the share of the checks that could be made.
    pub fn grade(self) -> Grade {
        if self.violated.is_empty() && !self.unknown.is_empty() {
            return Grade::ungraded(told(self.unknown.iter().map(String::as_str)));
        }
        let made = self.held.len() + self.violated.len();
        let passed = self.violated.is_empty();
        let deciding = if passed { &self.held } else { &self.violated };
        let mut reason = told(deciding.iter().map(|check| check.reason.as_str()));
        if !passed && made > 1 {
            reason.push_str(&format!(" ({} of {made} checks held)", self.held.len()));
        }
        let evidence = deciding.iter().flat_map(|check| check.evidence.iter().copied()).take(EVIDENCE);
        let value = Fraction::of(self.held.len(), made);
        Grade::Scored(Score { value, passed, reason, evidence: Vec::new() }).pointing_at(evidence)
    }
}

fn told<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
    let mut reasons = reasons;
    let told: Vec<String> = reasons.by_ref().take(REASONS).map(|reason| words::short(reason, LENGTH)).collect();
    match reasons.count() {
        0 => told.join("; "),
        more => format!("{}; and {}", told.join("; "), words::count(more as u64, "more check")),
    }
}
