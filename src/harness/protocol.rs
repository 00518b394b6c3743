//! The protocols that this program speaks, and what sessions over each can show.

use serde::{Deserialize, Serialize};

/// The protocols this program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Adapter {
    /// The Agent Client Protocol over stdio.
    Acp,
    /// Claude Code's `--output-format stream-json`, one way.
    ClaudeCodeStream,
    /// Claude Code both ways: its stream, and its control protocol on standard input.
    ClaudeCodeControl,
    /// A stream of JSON lines, whose meaning the manifest tells.
    JsonStream,
    /// Any command: its standard output is the final message.
    OutputOnly,
    /// A stored wire log or Trace in the place of an agent.
    Replay,
}

impl Adapter {
    /// Every adapter.
    pub const ALL: [Adapter; 6] = [
        Adapter::Acp,
        Adapter::ClaudeCodeStream,
        Adapter::ClaudeCodeControl,
        Adapter::JsonStream,
        Adapter::OutputOnly,
        Adapter::Replay,
    ];

    /// The adapter's name, as it stands in manifests and traces.
    pub fn word(self) -> &'static str {
        match self {
            Adapter::Acp => "acp",
            Adapter::ClaudeCodeStream => "claude-code-stream",
            Adapter::ClaudeCodeControl => "claude-code-control",
            Adapter::JsonStream => "json-stream",
            Adapter::OutputOnly => "output-only",
            Adapter::Replay => "replay",
        }
    }

    /// What sessions over this adapter can show, where the manifest does not say otherwise.
    pub fn can(self) -> AdapterCan {
        match self {
            Adapter::Acp => AdapterCan { tracing: true, interaction: true, multi_turn: true },
            Adapter::ClaudeCodeStream => AdapterCan { tracing: true, interaction: false, multi_turn: false },
            Adapter::ClaudeCodeControl => AdapterCan { tracing: true, interaction: true, multi_turn: true },
            Adapter::JsonStream => AdapterCan { tracing: true, interaction: false, multi_turn: false },
            Adapter::OutputOnly => AdapterCan { tracing: false, interaction: false, multi_turn: false },
            Adapter::Replay => AdapterCan { tracing: true, interaction: true, multi_turn: true },
        }
    }
}

/// What an adapter can do by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdapterCan {
    /// It shows calls.
    pub tracing: bool,
    /// It passes permission requests on.
    pub interaction: bool,
    /// It takes several prompts in one session.
    pub multi_turn: bool,
}
