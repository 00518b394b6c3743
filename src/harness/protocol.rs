//! The protocols that this program speaks, and the capabilities of sessions over each.

use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr};

use crate::attachment::Kind;
use crate::word::word;

/// A protocol that this program speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, EnumString)]
#[strum(serialize_all = "kebab-case")]
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

word!(Adapter);

impl Adapter {
    /// Returns true if a prompt over this adapter takes a file of this kind along.
    pub fn takes(self, kind: Kind) -> bool {
        match self {
            Adapter::Acp | Adapter::Replay => true,
            Adapter::ClaudeCodeControl => matches!(kind, Kind::Image | Kind::Pdf | Kind::Text),
            Adapter::ClaudeCodeStream | Adapter::JsonStream | Adapter::OutputOnly => false,
        }
    }

    /// Returns true if the engine has a conversation with the agent, instead of starting a program that runs to its end.
    pub fn has_conversation(self) -> bool {
        match self {
            Adapter::Acp | Adapter::ClaudeCodeControl => true,
            Adapter::ClaudeCodeStream | Adapter::JsonStream | Adapter::OutputOnly | Adapter::Replay => false,
        }
    }

    /// Returns true if a trial over this adapter starts the program of an agent.
    pub fn starts_a_process(self) -> bool {
        match self {
            Adapter::Acp
            | Adapter::ClaudeCodeStream
            | Adapter::ClaudeCodeControl
            | Adapter::JsonStream
            | Adapter::OutputOnly => true,
            Adapter::Replay => false,
        }
    }

    /// Returns true if sessions over this adapter have modes, and can be continued in another process.
    pub fn has_sessions(self) -> bool {
        match self {
            Adapter::Acp | Adapter::Replay => true,
            Adapter::ClaudeCodeStream | Adapter::ClaudeCodeControl | Adapter::JsonStream | Adapter::OutputOnly => false,
        }
    }

    /// Returns true if an agent with this adapter may also keep session files.
    pub fn may_have_session_files(self) -> bool {
        match self {
            Adapter::Acp | Adapter::ClaudeCodeStream | Adapter::ClaudeCodeControl | Adapter::JsonStream => true,
            Adapter::OutputOnly | Adapter::Replay => false,
        }
    }

    /// Returns true if a recording over this adapter may be a session file, because both are JSON lines of the agent alone.
    pub fn resembles_session_files(self) -> bool {
        match self {
            Adapter::ClaudeCodeStream | Adapter::JsonStream => true,
            Adapter::Acp | Adapter::ClaudeCodeControl | Adapter::OutputOnly | Adapter::Replay => false,
        }
    }

    /// Returns the capabilities of sessions over this adapter. A manifest may deny them. Of those that are missing, it may
    /// claim only the permission requests of a JSON stream.
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
    /// True if the adapter shows tool calls.
    pub tracing: bool,
    /// True if the adapter passes permission requests on.
    pub interaction: bool,
    /// True if the adapter takes several prompts in one session.
    pub multi_turn: bool,
}
