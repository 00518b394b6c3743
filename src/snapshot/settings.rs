//! A case's settings for its snapshots.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::set::Several;
use crate::values::Pattern;

/// What a snapshot keeps of a trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SnapshotSettings {
    /// How texts are kept.
    pub text: SnapshotText,
    /// Replacements made before a trace is stored or compared.
    pub normalise: Vec<Normalise>,
    /// How several trials are combined.
    pub several: Several,
}

/// How a snapshot keeps texts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotText {
    /// Texts are not kept.
    #[default]
    None,
    /// Texts are kept unchanged.
    Full,
    /// A digest of each text is kept.
    Digest,
}

/// A replacement in what a snapshot keeps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Normalise {
    /// The regular expression to replace.
    pub regex: Pattern,
    /// The replacement. `$1`, `$name` and `${name}` are groups of the regular expression, `$$` is a dollar
    /// sign. A word in braces, such as `{n}`, is numbered by the order of use.
    pub with: String,
}
