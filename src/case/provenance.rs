//! The origin of a case that was made from a commit or a session.

use serde::{Deserialize, Serialize};

/// The origin of a case. It changes nothing about a trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Provenance {
    /// The commit with the solution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The commit before it, at which the workspace is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The agent's id of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The program that made the case, with its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The day of the commit or session, in UTC. A model whose training data is newer may know the solution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The source of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Words and lines of the solution that the prompt contains.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaks: Vec<String>,
    /// The parts of the solution that the tests check. Absent if this was not tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Hunks>,
}

/// The hunks of a solution that its tests check: each hunk was reverted in turn, and the tests were run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hunks {
    /// The number of hunks of the solution.
    pub all: usize,
    /// The number of hunks without which a test of the case does not pass.
    pub noticed: usize,
    /// The hunks without which all tests of the case pass, each as a path and a line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnoticed: Vec<String>,
}

impl Hunks {
    /// Returns the number of hunks that were left out in turn. The others are unknown.
    pub fn tried(&self) -> usize {
        self.noticed + self.unnoticed.len()
    }
}
