//! Identifiers of trials and columns: the planned trial, and display names.

use serde::{Deserialize, Serialize};

use crate::sandbox;

/// A planned trial in `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialRecord {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name of the column: the model, `default` without a model, or `a#2` for a second arm with the same
    /// model.
    pub arm: String,
    /// Number of the trial, from 1.
    pub trial: u32,
    /// The reason why the trial is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// The run in which the trial failed, if this is a rerun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<String>,
    /// The sandbox.
    #[serde(default)]
    pub sandbox: sandbox::Kind,
}

impl TrialRecord {
    /// Returns the trial's identity in its run.
    pub fn id(&self) -> TrialId {
        let Self { case, harness, arm, trial, .. } = self.clone();
        TrialId { case, harness, arm, trial }
    }
}

/// The identity of a trial in its run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TrialId {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// Name of the column.
    pub arm: String,
    /// Number of the trial, from 1.
    pub trial: u32,
}

/// Returns a column's display name: the harness, and the model if one was requested.
pub fn column_name(harness: &str, arm: &str) -> String {
    if arm == "default" { harness.to_owned() } else { format!("{harness} / {arm}") }
}
