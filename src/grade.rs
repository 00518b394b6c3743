//! Grades, and their form in `result.json`.

pub mod judge_record;

use serde::{Deserialize, Serialize};

use crate::grade::judge_record::JudgeRecord;
use crate::values::Fraction;

/// A grade: a score, or the reason why there is none. Unknown is never zero.
#[derive(Debug, Clone, PartialEq)]
pub enum Grade {
    /// The grader gave a score.
    Scored(Score),
    /// The grader gave no score, because evidence is missing.
    Ungraded {
        /// The missing evidence.
        reason: String,
    },
}

/// The score that a grader gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// The share that passed.
    pub value: Fraction,
    /// True if the share is enough to pass.
    pub passed: bool,
    /// The reason, as a text that is understandable without context.
    pub reason: String,
    /// `seq` of the events that decided the grade.
    pub evidence: Vec<u64>,
    /// The broken rules, in the grader's words, if the grader has rules.
    pub broken: Vec<String>,
    /// True if the grade fails only because something did not occur, so that a part of the session which the trace lacks
    /// could change it.
    pub lacks: bool,
    /// The values that a failed grade may have, if some of its checks are unknown. `None` if the value is exact.
    pub bounds: Option<Bounds>,
    /// True if the workspace itself shows what failed, so that nothing that the trace lacks could change it.
    pub is_certain: bool,
}

/// The smallest and the largest value that a failed grade may have, because some of its checks are unknown.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bounds {
    /// The value if no unknown check holds.
    pub low: Fraction,
    /// The value if all unknown checks hold.
    pub high: Fraction,
}

impl Score {
    /// Makes an exact score without evidence.
    pub fn new(value: Fraction, passed: bool, reason: impl Into<String>) -> Self {
        Self {
            value,
            passed,
            reason: reason.into(),
            evidence: Vec::new(),
            broken: Vec::new(),
            lacks: false,
            bounds: None,
            is_certain: false,
        }
    }
}

impl Grade {
    /// Makes a passed grade.
    pub fn pass(reason: impl Into<String>) -> Self {
        Grade::Scored(Score::new(Fraction::ONE, true, reason))
    }

    /// Makes a failed grade with the score 0.
    pub fn fail(reason: impl Into<String>) -> Self {
        Grade::Scored(Score::new(Fraction::ZERO, false, reason))
    }

    /// Makes a grade without a score, for the reason why it is unknown.
    pub fn ungraded(reason: impl Into<String>) -> Self {
        Grade::Ungraded { reason: reason.into() }
    }

    /// Adds these events as evidence.
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

/// A grade in `result.json`, with the properties of its grader that the verdict needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GradeRecord {
    /// The grader's name in the case.
    pub name: String,
    /// The kind of grader.
    pub grader: String,
    /// The outcome: whether the grader gave a score.
    pub outcome: Outcome,
    /// The share that passed. Absent if ungraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Fraction>,
    /// The values that a failed grade may have, because some of its checks are unknown: the verdict holds for all of them.
    /// Absent if the value is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// True if the share is enough to pass. Absent if ungraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The grader's weight in the mean.
    pub weight: f64,
    /// True if a failure of the grader fails the trial.
    pub gate: bool,
    /// True if the grade is only reported and never counted.
    pub diagnostic: bool,
    /// The reason for the outcome, understandable without context.
    pub reason: String,
    /// `seq` of the events that decided the grade.
    #[serde(default)]
    pub evidence: Vec<u64>,
    /// The broken rules, if the grader has rules. Absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken: Vec<String>,
    /// The skills that the grader names, each with its use. Absent for other graders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<SkillUse>,
    /// The judge models, if any were called. Such a grade never overturns a failure that is found without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<JudgeRecord>,
    /// The snapshot that the trial was compared with. Absent for other graders, and if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<ComparedWith>,
    /// The tests that the grader ran, if it runs tests. Not stored; an audit uses it.
    #[serde(skip)]
    pub tests: Option<TestsSeen>,
}

impl GradeRecord {
    /// Makes the grade ungraded for this reason.
    pub fn withdraw(&mut self, reason: String) {
        (self.outcome, self.value, self.bounds, self.passed) = (Outcome::Ungraded, None, None, None);
        (self.evidence, self.broken, self.reason) = (Vec::new(), Vec::new(), reason);
    }
}

/// The snapshot that a `snapshot` grader compared a trial with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ComparedWith {
    /// The digest of the file of the accepted snapshot.
    Accepted(String),
    /// The run itself accepts what its trials do, so the grader cannot fail.
    OwnRun,
}

/// The tests that a grader ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestsSeen {
    /// True if at least one test ran. False, for example, if the build failed.
    pub any_ran: bool,
    /// The tests of the list `fail-to-pass` that passed.
    pub fail_to_pass_passed: Vec<String>,
}

/// A skill that a `skills` grader names, and whether the trial used it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkillUse {
    /// The name of the skill.
    pub skill: String,
    /// True if the skill should be used (`used`), and false if it should not (`not-used`).
    pub expected: bool,
    /// True if the skill was used. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<bool>,
}

/// The outcome of a grader: whether it gave a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The grader gave a score.
    Scored,
    /// The grader gave no score, because evidence is missing.
    Ungraded,
}
