//! The conventions of an agent's usage reports.

use serde::{Deserialize, Serialize};

/// The conventions of an agent's usage reports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UsageConvention {
    /// The scope of the usage in the answer to a prompt: `turn`, `session`, or `call` for the last model call
    /// alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<UsageOf>,
    /// If `true`, the input tokens include the cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_includes_cache: Option<bool>,
    /// If `true`, the output tokens do not include the tokens of thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_excludes_thoughts: Option<bool>,
    /// If `true`, the agent sends a `usage_update` after each message of the model and the results of its
    /// calls, so that the calls between two updates share a step (`acp` only). Default: `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_each_message: Option<bool>,
    /// Usage that the reports leave out. A total of such reports is a lower bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leaves_out: Vec<LeftOut>,
    /// Names of the tools that start a sub-agent. For `leaves-out: [sub-agents]`, if the agent does not
    /// otherwise show its sub-agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_agent_tools: Vec<String>,
}

/// Usage that an agent's reports leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    /// All calls of the model except the last one before the report.
    Steps,
    /// Tokens of thoughts: they are neither in the output count nor counted separately.
    Thoughts,
    /// The usage of sub-agents.
    SubAgents,
}

/// The scope of the usage in an answer to a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UsageOf {
    /// The usage of that prompt.
    Turn,
    /// The usage of the session up to this report.
    Session,
    /// The usage of the last model call.
    Call,
}
