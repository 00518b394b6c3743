//! The files from which an agent reads hooks: programs that it runs around its calls.

use serde::{Deserialize, Serialize};

use crate::values::{PathGlob, Pattern};

/// A file from which an agent reads hooks. A hook may change a call, and the agent may show the call as it was before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HookFile {
    /// The path of the file, relative to the workspace or to the private home: a glob.
    pub file: PathGlob,
    /// A regular expression that matches the text of a file with hooks. Default: each such file has hooks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<Pattern>,
}

impl HookFile {
    /// Returns true if a file with this text has hooks.
    pub fn has_hooks(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}
