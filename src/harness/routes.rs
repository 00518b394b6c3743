//! How a case's system prompt and its MCP servers reach an agent, each in the agent's own form.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Manifest;
use crate::harness::Adapter;

/// How a system prompt reaches the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SystemPromptRoute {
    /// The way.
    pub via: SystemPromptVia,
    /// The flag that takes it, for `flag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

/// A way for a system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SystemPromptVia {
    /// Before the first prompt, with a warning: the agent takes it for the user's words.
    #[default]
    Prompt,
    /// A flag on the command line.
    Flag,
    /// ACP: `_meta.systemPrompt.append` of `session/new`, as Claude's bridge takes it.
    SessionMeta,
}

/// How the MCP servers of a case reach the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServersRoute {
    /// The way.
    pub via: ServersVia,
    /// The flag that takes the path of a file `{"mcpServers": {…}}`, for `flag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

/// A way for MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServersVia {
    /// ACP: `session/new`.
    Session,
    /// A flag on the command line, and a file that it names.
    Flag,
    /// It takes none; cases that offer some are skipped.
    None,
}

impl SystemPromptRoute {
    /// Whether nothing else was said.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Manifest {
    /// How MCP servers reach the agent: as it says, else over its protocol where that has a place for them.
    pub fn servers_via(&self) -> ServersVia {
        let by_protocol = match self.adapter {
            Adapter::Acp | Adapter::Replay => ServersVia::Session,
            _ => ServersVia::None,
        };
        self.mcp_servers.as_ref().map_or(by_protocol, |route| route.via)
    }

    /// What is wrong with a route of the manifest: its key, what is wrong, and the way out.
    pub(super) fn lost_routes(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut lost = Vec::new();
        let adapter = self.adapter.word();
        match self.system_prompt.via {
            SystemPromptVia::Flag if self.system_prompt.flag.is_none() => lost.push((
                "system-prompt",
                "the system prompt goes nowhere: no `flag` is named".to_owned(),
                "write `system-prompt: {via: flag, flag: --append-system-prompt}`",
            )),
            SystemPromptVia::SessionMeta if self.adapter != Adapter::Acp => lost.push((
                "system-prompt",
                format!("the system prompt goes nowhere: `{adapter}` opens no session with `session/new`"),
                "write `via: flag` or `via: prompt`",
            )),
            _ => {}
        }
        match self.mcp_servers.as_ref().map(|route| (route.via, &route.flag)) {
            Some((ServersVia::Flag, None)) => lost.push((
                "mcp-servers",
                "the MCP servers go nowhere: no `flag` is named".to_owned(),
                "write `mcp-servers: {via: flag, flag: --mcp-config}`",
            )),
            Some((ServersVia::Session, _)) if !matches!(self.adapter, Adapter::Acp | Adapter::Replay) => lost.push((
                "mcp-servers",
                format!("the MCP servers go nowhere: `{adapter}` opens no session with `session/new`"),
                "write `via: flag` or `via: none`",
            )),
            _ => {}
        }
        lost
    }
}
