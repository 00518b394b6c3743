//! The trait of graders that `evals calibrate` measures: the labels that people give, a session as judges see it, and the
//! judges' verdicts.

use std::path::Path;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::spec::GraderSpec;
use crate::grade::judge_record::{CriterionVerdict, PairOutcome};
use crate::judge::Judges;
use crate::judge::calibration::CalibrationRequirements;
use crate::model_client::ModelName;
use crate::trace::Model;

/// A grader that calls a judge model, for `evals calibrate`.
pub trait Calibrate: GraderSpec + Send + Sync {
    /// Returns the agreement that a calibration must show so that the judges' answers count.
    fn wanted(&self) -> CalibrationRequirements<'_>;

    /// Returns the questions about each trace: the criterion and its text.
    fn questions(&self) -> Vec<(&str, &str)>;

    /// Returns the possible labels.
    fn labels(&self) -> &'static [LabelValue];

    /// Returns true if a label by a person is a pass.
    fn label_passes(&self, label: LabelValue) -> bool;

    /// Returns true if traces are compared with a reference, which a label may replace by its own.
    fn takes_reference(&self) -> bool;

    /// Returns the reference that a trace is compared with, for people: a heading and a text for each part.
    ///
    /// # Errors
    /// Returns the reason as text if a file cannot be read.
    fn compared(&self, trace: &Path) -> Result<Vec<(&'static str, String)>, String>;

    /// Returns a stored trace as judges see it, and the model of its agent. `patch` is the change of the workspace, and
    /// `reference` the label's own reference.
    ///
    /// # Errors
    /// Returns the reason as text if a file cannot be read.
    fn session(
        &self,
        trace: &Path,
        patch: Option<&str>,
        reference: Option<&Path>,
    ) -> Result<(Box<dyn JudgedSession>, Model), String>;
}

/// A session in the form that judges get.
#[async_trait]
pub trait JudgedSession: Send {
    /// Returns the verdicts of judges on the session.
    async fn judge(self: Box<Self>, judges: &Judges, names: &[ModelName]) -> Verdicts;
}

#[derive(Debug, Default)]
pub struct Verdicts {
    pub of_criteria: Vec<(String, CriterionVerdict)>,
    /// The outcome of a comparison.
    pub outcome: Option<PairOutcome>,
    /// Each judge's outcome in each order.
    pub orders: Vec<[PairOutcome; 2]>,
    /// The errors of judges that gave no verdict.
    pub failed: Vec<String>,
}

/// A person's label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelValue {
    /// The criterion holds.
    Pass,
    /// The criterion does not hold.
    Fail,
    /// The trace is better than the reference.
    Better,
    /// The trace is worse than the reference.
    Worse,
    /// The trace and the reference are equally good.
    Tie,
}

impl LabelValue {
    /// Returns the label as a word.
    pub fn text(self) -> &'static str {
        match self {
            LabelValue::Pass => "pass",
            LabelValue::Fail => "fail",
            LabelValue::Better => "better",
            LabelValue::Worse => "worse",
            LabelValue::Tie => "tie",
        }
    }

    /// Returns the label's outcome of a comparison.
    pub fn outcome(self) -> Option<PairOutcome> {
        match self {
            LabelValue::Better => Some(PairOutcome::Better),
            LabelValue::Worse => Some(PairOutcome::Worse),
            LabelValue::Tie => Some(PairOutcome::Tie),
            LabelValue::Pass | LabelValue::Fail => None,
        }
    }
}
