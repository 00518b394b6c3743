//! The protocols that this program speaks, and the capabilities of sessions over each.

use serde::{Deserialize, Serialize};

/// A protocol that this program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Adapter {
    /// The Agent Client Protocol over stdio.
    Acp,
    /// Claude Code's `--output-format stream-json`, in one direction.
    ClaudeCodeStream,
    /// Claude Code in both directions: its stream, and its control protocol on standard input.
    ClaudeCodeControl,
    /// A stream of JSON lines, whose meaning the manifest defines.
    JsonStream,
    /// Any command: its standard output is the final message.
    OutputOnly,
    /// A stored wire log or trace instead of an agent.
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

    /// Returns the adapter's name, as used in manifests and traces.
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

    /// Returns the capabilities of sessions over this adapter, unless the manifest overrides them.
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

/// The capabilities of an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdapterCan {
    /// Whether it shows tool calls.
    pub tracing: bool,
    /// Whether it passes permission requests on.
    pub interaction: bool,
    /// Whether it takes several prompts in one session.
    pub multi_turn: bool,
}
