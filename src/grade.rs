//! What a Grader says: a Grade, and the form in which it stands in `result.json`.

pub mod judge_record;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::grade::judge_record::JudgeRecord;
use crate::values::Fraction;

/// A judgement: a score, or why there is none. Unknown is never zero.
#[derive(Debug, Clone, PartialEq)]
pub enum Grade {
    /// It could be judged.
    Scored(Score),
    /// It could not: why.
    Ungraded {
        /// What was missing.
        reason: String,
    },
}

/// A judgement that could be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The share that held.
    pub value: Fraction,
    /// Whether that is enough.
    pub passed: bool,
    /// Why, for someone who reads only this line.
    pub reason: String,
    /// `seq` of the events that decided it.
    pub evidence: Vec<u64>,
    /// Rules that were broken, where the grader has rules, in its own words.
    pub broken: Vec<String>,
}

impl Grade {
    /// Everything held.
    pub fn pass(reason: impl Into<String>) -> Self {
        Grade::Scored(Score {
            value: Fraction::ONE,
            passed: true,
            reason: reason.into(),
            evidence: Vec::new(),
            broken: Vec::new(),
        })
    }

    /// It did not hold.
    pub fn fail(reason: impl Into<String>) -> Self {
        Grade::Scored(Score {
            value: Fraction::ZERO,
            passed: false,
            reason: reason.into(),
            evidence: Vec::new(),
            broken: Vec::new(),
        })
    }

    /// It could not be judged.
    pub fn ungraded(reason: impl Into<String>) -> Self {
        Grade::Ungraded { reason: reason.into() }
    }

    /// The same, pointing at these events.
    #[must_use]
    pub fn pointing_at(mut self, events: impl IntoIterator<Item = u64>) -> Self {
        if let Grade::Scored(score) = &mut self {
            score.evidence.extend(events);
            score.evidence.sort_unstable();
            score.evidence.dedup();
        }
        self
    }
}

/// A Grade as it stands in `result.json`, with what the verdict needs to know of its Grader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GradeRecord {
    /// Its name in the case.
    pub name: String,
    /// The kind of grader.
    pub grader: String,
    /// Whether it could be judged.
    pub outcome: Outcome,
    /// The share that held; absent where ungraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Fraction>,
    /// Whether that is enough; absent where ungraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// Its weight in the mean.
    pub weight: f64,
    /// A failed gate fails the trial.
    pub gate: bool,
    /// Reported, never counted.
    pub diagnostic: bool,
    /// Why.
    pub reason: String,
    /// `seq` of the events that decided it.
    #[serde(default)]
    pub evidence: Vec<u64>,
    /// Rules that were broken, where the grader has rules; absent where none was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// Who judged, where models were asked: such a grade overturns no failure that is found without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
}

/// Whether a Grade is a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was judged.
    Scored,
    /// It could not be.
    Ungraded,
}
