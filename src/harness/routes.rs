//! The routes by which a case's system prompt and its MCP servers reach an agent, in the agent's own form.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Manifest;
use super::skills::Listing;
use crate::harness::Adapter;
use crate::values::NameGlob;
use crate::word::word;

/// The route by which a system prompt reaches the agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SystemPromptRoute {
    /// The method.
    pub via: SystemPromptVia,
    /// The flag that takes the system prompt, for `flag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
}

/// A method of passing a system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SystemPromptVia {
    /// Before the first prompt, with a warning: the agent takes the text for the user's words.
    #[default]
    Prompt,
    /// A flag on the command line.
    Flag,
    /// ACP: `_meta.systemPrompt.append` of `session/new`, as Claude's bridge takes it.
    SessionMeta,
}

/// The route by which the MCP servers of a case reach the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServersRoute {
    /// The method by which the agent gets the MCP servers.
    pub via: ServersVia,
    /// The flag that takes the path of a file `{"mcpServers": {…}}`, for `flag`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// The transports of the MCP servers that the agent takes. Empty: all of them, or over ACP those that it announces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transports: Vec<Transport>,
    /// The line in which the agent lists its MCP servers. Claude Code's own protocols need none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<Listing>,
    /// The names of the agent's built-in MCP servers. Globs are allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub built_in: Vec<NameGlob>,
}

/// A method of passing MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ServersVia {
    /// ACP: `session/new`.
    Session,
    /// A flag on the command line with the path of a file.
    Flag,
    /// The agent takes no MCP servers; cases that offer some are skipped.
    None,
}

/// The transport of an MCP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Transport {
    /// Standard input and output of a program that the agent starts.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP with server-sent events.
    Sse,
}

word!(Transport);

impl Transport {
    /// Returns the transport of a server of a case. Without `type`, a server with a `command` is started by the agent, and one
    /// with an `httpUrl` is reached over HTTP. Returns `None` if the transport is unknown.
    fn of(server: &Value) -> Option<Self> {
        match server.get("type").and_then(Value::as_str) {
            Some("stdio") => Some(Transport::Stdio),
            Some("http") => Some(Transport::Http),
            Some("sse") => Some(Transport::Sse),
            Some(_) => None,
            None => {
                let ways = [("command", Transport::Stdio), ("httpUrl", Transport::Http)];
                ways.into_iter().find(|(key, _)| server.get(*key).is_some()).map(|(_, transport)| transport)
            }
        }
    }
}

impl SystemPromptRoute {
    /// Returns true if nothing differs from the default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Manifest {
    /// Returns how MCP servers reach the agent: as the manifest states, else over the protocol if it supports
    /// them.
    pub fn servers_via(&self) -> ServersVia {
        let by_protocol = match self.adapter {
            Adapter::Acp | Adapter::Replay => ServersVia::Session,
            _ => ServersVia::None,
        };
        self.mcp_servers.as_ref().map_or(by_protocol, |route| route.via)
    }

    /// Returns the name and the transport of the first of these MCP servers whose transport the manifest excludes.
    pub fn server_not_taken<'a>(&self, servers: &'a [Value]) -> Option<(&'a str, &'static str)> {
        let transports = &self.mcp_servers.as_ref().filter(|route| !route.transports.is_empty())?.transports;
        servers.iter().find_map(|server| {
            let by = Transport::of(server).filter(|by| !transports.contains(by))?;
            Some((server.get("name").and_then(Value::as_str).unwrap_or_default(), by.word()))
        })
    }

    /// Returns the errors in the manifest's routes: the key, the error, and how to fix it.
    pub(super) fn lost_routes(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut lost = Vec::new();
        let adapter = self.adapter.word();
        match self.system_prompt.via {
            SystemPromptVia::Flag if self.system_prompt.flag.is_none() => lost.push((
                "system-prompt",
                "the system prompt does not reach the agent: `flag` is missing".to_owned(),
                "write `system-prompt: {via: flag, flag: --append-system-prompt}`",
            )),
            SystemPromptVia::SessionMeta if self.adapter != Adapter::Acp => lost.push((
                "system-prompt",
                format!(
                    "the system prompt does not reach the agent: the adapter `{adapter}` does not use `session/new`"
                ),
                "write `via: flag` or `via: prompt`",
            )),
            _ => {}
        }
        match self.mcp_servers.as_ref().map(|route| (route.via, &route.flag)) {
            Some((ServersVia::Flag, None)) => lost.push((
                "mcp-servers",
                "the MCP servers do not reach the agent: `flag` is missing".to_owned(),
                "write `mcp-servers: {via: flag, flag: --mcp-config}`",
            )),
            Some((ServersVia::Session, _)) if !matches!(self.adapter, Adapter::Acp | Adapter::Replay) => lost.push((
                "mcp-servers",
                format!("the MCP servers do not reach the agent: the adapter `{adapter}` does not use `session/new`"),
                "write `via: flag` or `via: none`",
            )),
            _ => {}
        }
        lost
    }
}
