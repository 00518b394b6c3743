//! Combines the checks of one grader into its grade: the share that passed, and the reasons for the others.

use crate::grade::{Bounds, Grade, Score};
use crate::judgement::share::{Part, Share};
use crate::reason_text;
use crate::text::plural;
use crate::values::Fraction;

/// The maximum number of events in the evidence of a grade.
const EVIDENCE: usize = 100;
/// The maximum number of reasons that are given in full.
const REASONS: usize = 5;
/// The maximum number of characters of a reason.
const LENGTH: usize = 1200;

/// The checks of one grader.
#[derive(Debug, Default)]
pub struct Checks {
    held: Vec<Check>,
    violated: Vec<Check>,
    unknown: Vec<String>,
    when_failed: String,
    /// True if the workspace itself shows a failed check.
    is_certain: bool,
}

#[derive(Debug)]
struct Check {
    /// The share that is known to have passed, from 0 to 1.
    value: f64,
    /// The share that may have passed: greater than `value` only if a figure is a lower bound.
    at_most: f64,
    /// The share that the grade states.
    shown: f64,
    reason: String,
    evidence: Vec<u64>,
    /// True if the check failed because something did not occur.
    lacks: bool,
}

impl Check {
    /// Returns true if the check failed and no event shows what broke it.
    fn lacks(&self) -> bool {
        self.lacks || (self.at_most < 1.0 && self.evidence.is_empty())
    }
}

impl Checks {
    /// Adds a check that passed.
    pub fn held(&mut self, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        self.partly(Fraction::ONE, reason, evidence);
    }

    /// Adds a check that failed.
    pub fn violated(&mut self, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        self.partly(Fraction::ZERO, reason, evidence);
    }

    /// Adds a check that failed, as the workspace itself shows.
    pub fn violated_in_workspace(&mut self, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        self.violated(reason, evidence);
        self.is_certain = true;
    }

    /// Adds a check of which a share passed.
    pub fn partly(&mut self, value: Fraction, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        let evidence = evidence.into_iter().take(EVIDENCE).collect();
        let share = value.get();
        let check = Check { value: share, at_most: share, shown: share, reason: reason.into(), evidence, lacks: false };
        if value == Fraction::ONE { self.held.push(check) } else { self.violated.push(check) }
    }

    /// Adds a check that failed, of which at most this share may have passed.
    pub fn at_most(&mut self, share: Fraction, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        let evidence = evidence.into_iter().take(EVIDENCE).collect();
        let (at_most, reason) = (share.get(), reason.into());
        self.violated.push(Check { value: 0.0, at_most, shown: 0.0, reason, evidence, lacks: false });
    }

    /// Adds a check that failed, of which a share from `low` to `high` passed. `shown` is the share that the grade states.
    pub fn between(&mut self, low: Fraction, high: Fraction, shown: Fraction, reason: impl Into<String>) {
        let [value, at_most, shown] = [low, high, shown].map(Fraction::get);
        let (reason, evidence) = (reason.into(), Vec::new());
        self.violated.push(Check { value, at_most, shown, reason, evidence, lacks: false });
    }

    /// Adds a check that failed because something did not occur. The evidence shows what occurred.
    pub fn lacking(&mut self, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        let evidence = evidence.into_iter().take(EVIDENCE).collect();
        let reason = reason.into();
        self.violated.push(Check { value: 0.0, at_most: 0.0, shown: 0.0, reason, evidence, lacks: true });
    }

    /// Adds a check whose result is unknown, with the reason.
    pub fn unknown(&mut self, reason: impl Into<String>) {
        self.unknown.push(reason.into());
    }

    /// Adds text to the end of the reason if a check fails.
    pub fn when_failed(&mut self, text: String) {
        self.when_failed = text;
    }

    /// Adds a check that passed or failed, with the reason.
    pub fn either(&mut self, holds: bool, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        if holds { self.held(reason, evidence) } else { self.violated(reason, evidence) }
    }

    /// Adds a check that passed, or failed because something did not occur.
    pub fn found(&mut self, is_found: bool, reason: impl Into<String>, evidence: impl IntoIterator<Item = u64>) {
        if is_found { self.held(reason, evidence) } else { self.lacking(reason, evidence) }
    }

    /// Returns the grade: any known violation fails it; otherwise, a missing figure leaves it ungraded. The value is
    /// the share of passed checks among those that could be made.
    pub fn grade(self) -> Grade {
        self.grade_at_least(None)
    }

    /// Returns the grade if a share is enough: pass if the share is reached even if all unknown checks failed, and
    /// fail if it cannot be reached even if all of them passed.
    pub fn grade_at_least(self, min: Option<Fraction>) -> Grade {
        let made = self.held.len() + self.violated.len();
        let checks = || self.held.iter().chain(&self.violated);
        let known = checks().map(|check| Part { weight: 1.0, value: Some((check.value, check.at_most)) });
        let share = Share::of(known.chain(self.unknown.iter().map(|_| Part::new(1.0, None))));
        let passed = match min.filter(|min| *min != Fraction::ONE) {
            None if !self.violated.is_empty() => Some(false),
            None => self.unknown.is_empty().then_some(true),
            // A share of nothing is not reached.
            Some(_) if made + self.unknown.len() == 0 => Some(false),
            Some(min) => share.reaches(min).known(),
        };
        let Some(passed) = passed else {
            let violated = self.violated.iter().filter(|check| check.at_most > check.value);
            return Grade::ungraded(joined(
                self.unknown.iter().chain(violated.map(|check| &check.reason)).map(String::as_str),
            ));
        };
        let deciding = if self.violated.is_empty() { &self.held } else { &self.violated };
        let mut reason = joined(deciding.iter().map(|check| check.reason.as_str()));
        if !self.violated.is_empty() && made > 1 {
            reason.push_str(&format!(" ({} of {made} checks held)", self.held.len()));
        }
        if let Some(min) = min.filter(|_| passed && !self.violated.is_empty()) {
            reason = format!("enough checks held, the minimum is {min}; not held: {reason}");
        }
        if !passed {
            reason.push_str(&self.when_failed);
        }
        let evidence = deciding.iter().flat_map(|check| check.evidence.iter().copied()).take(EVIDENCE);
        let shown = Share::of(checks().map(|check| Part::new(1.0, Some(check.shown))));
        let value = shown.known_mean().unwrap_or(Fraction::ONE);
        let lacks = !passed && self.lacks(min);
        let bounds = share.bounds().filter(|_| !passed).map(|(low, high)| Bounds { low, high });
        let score = Score {
            lacks,
            bounds,
            is_certain: !passed && self.is_certain && min.is_none_or(|min| min == Fraction::ONE),
            ..Score::new(value, passed, reason)
        };
        Grade::Scored(score).pointing_at(evidence)
    }

    /// Returns true if the checks might pass if what did not occur had occurred.
    fn lacks(&self, min: Option<Fraction>) -> bool {
        let Some(min) = min.filter(|min| *min != Fraction::ONE) else {
            return self.violated.iter().all(Check::lacks);
        };
        let of = |check: &Check| match check.lacks() {
            true => Part::new(1.0, None),
            false => Part { weight: 1.0, value: Some((check.value, check.at_most)) },
        };
        let parts = self.held.iter().chain(&self.violated).map(of);
        let share = Share::of(parts.chain(self.unknown.iter().map(|_| Part::new(1.0, None))));
        share.reaches(min).may_be_true()
    }
}

fn joined<'a>(reasons: impl Iterator<Item = &'a str>) -> String {
    let mut reasons = reasons;
    let shown: Vec<String> = reasons.by_ref().take(REASONS).map(|reason| reason_text::short(reason, LENGTH)).collect();
    match reasons.count() {
        0 => shown.join("; "),
        more => format!("{}; and {}", shown.join("; "), plural(more as u64, "more check")),
    }
}
