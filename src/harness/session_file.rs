//! The `session-file` of a manifest: the form of the files in which an agent keeps its sessions, as written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::stream::{Formula, Rule};
use super::{Manifest, ToolKinds, UsageConvention};

/// The files in which an agent keeps its sessions: one JSON object per line, or one JSON document with a list of lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SessionFile {
    /// An expression that is true for one of the first lines of this agent's session files, and for no line of
    /// another agent's files or streams.
    pub known_by: Formula,
    /// The time of a line: a text in RFC 3339, or milliseconds since 1970. Without it, the trace has no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Formula>,
    /// The id of a line. A line with an id that occurred before is left out. Lines without an id are always read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Formula>,
    /// The id of the line before it in the conversation. With it, the lines are a tree, and one branch is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Formula>,
    /// The id of an earlier line to which the user went back: that line and all after it are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewind: Option<Formula>,
    /// The chain of the lines, if each line names the line before it and the lines are no tree. A line that names a line
    /// which the file lacks is a lost line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<LineChain>,
    /// If the file may be a single JSON document: the key of its list of lines. The first line is the document without
    /// the list, and each element of the list is a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<String>,
    /// The facts about a call's end that lines beside its result show. A result that contradicts them is an error
    /// without an exit code, with a notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<CallEnds>,
    /// If `true`, the agent reports every command that exits with another code than 0 as an error, so that a result
    /// without an error means success even if it shows no exit code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_failures: bool,
    /// Kinds of tools that the session files name differently. They come before the manifest's `tool-kinds`.
    #[serde(default, skip_serializing_if = "ToolKinds::is_empty")]
    pub tool_kinds: ToolKinds,
    /// The conventions of the usage in session files. Default: the manifest's `usage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageConvention>,
    /// The meaning of the lines, in the language of `stream`. The first matching rule handles a line.
    pub rules: Vec<Rule>,
}

/// The chain of the lines of a file, by which missing lines are noticed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LineChain {
    /// The key of a line: an id or a number.
    pub key: Formula,
    /// The key of the line before it; null for the first line.
    pub after: Formula,
    /// An expression that is true for a line which shows that the file has such a chain. Default: each file has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_by: Option<Formula>,
}

/// The lines that show how a call ended, beside its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CallEnds {
    /// The id of the call; null for a line that shows the end of none.
    pub id: Formula,
    /// The exit code of the call; null if the line shows none.
    pub exit_code: Formula,
    /// True if the line reports a failure, false if it reports a success, null if it shows neither.
    pub failed: Formula,
}

impl SessionFile {
    /// Returns the manifest with the rules and conventions of its session files instead of those of its stream.
    pub fn as_stream(&self, manifest: &Manifest) -> Manifest {
        let mut kinds = self.tool_kinds.clone();
        kinds.0.extend(manifest.tool_kinds.0.iter().cloned());
        Manifest {
            stream: self.rules.clone(),
            known_by: None,
            started_by: None,
            tool_kinds: kinds,
            // What the agent writes to its own file is not what it prints.
            unshown_tools: BTreeMap::new(),
            unshown_outcomes: Vec::new(),
            usage: self.usage.clone().unwrap_or_else(|| manifest.usage.clone()),
            ..manifest.clone()
        }
    }
}
