//! Which trial and which column is meant: the planned trial, and names for people.

use serde::{Deserialize, Serialize};

use crate::sandbox;

/// A planned trial in `run.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TrialRecord {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of the column: the model, `default` without one, `a#2` for a second arm of the same.
    pub arm: String,
    /// Number, from 1.
    pub trial: u32,
    /// Why it is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
    /// The run in which it failed, where it is run again for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_in: Option<String>,
    /// What it runs in.
    #[serde(default)]
    pub sandbox: sandbox::Kind,
}

impl TrialRecord {
    /// The trial's identity in its run.
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
    /// Number, from 1.
    pub trial: u32,
}

/// A column's name for people: the harness, and the model where one was asked for.
pub fn column_name(harness: &str, arm: &str) -> String {
    if arm == "default" { harness.to_owned() } else { format!("{harness} / {arm}") }
}
