//! What a case says about its snapshots.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::set::Several;
use crate::values::Pattern;

/// What of a Trace a snapshot keeps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotSettings {
    /// How texts are kept.
    pub text: SnapshotText,
    /// Replacements made before it is kept or compared.
    pub normalise: Vec<Normalise>,
    /// What several trials come to.
    pub several: Several,
}

/// How a snapshot keeps texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotText {
    /// Not at all.
    #[default]
    None,
    /// As they are.
    Full,
    /// As a digest.
    Digest,
}

/// A replacement in what a snapshot keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Normalise {
    /// What is replaced.
    pub regex: Pattern,
    /// What stands in its place. `$1`, `$name` and `${name}` are groups of the regex, `$$` is a dollar. A word in braces, such
    /// as `{n}`, is numbered by the order of use.
    pub with: String,
}
