//! Drives an agent through a session: the input of every driver, and the driver for programs that run to their
//! end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::attachment::Attached;
use crate::case::SessionSettings;
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::interaction::Policy;
use crate::process::{Launch, Stdin};
use crate::session::{End, Incoming, Session, Turn};
use crate::shell::Shell;
use crate::wire::EngineLine;

pub mod acp;
pub mod claude_control;
pub mod real_paths;
pub mod replay;
mod requested;

/// The task of an agent, and everything that is needed to start the agent.
pub struct Task {
    /// The prompts, in order.
    pub turns: Vec<String>,
    /// The system prompt. Used only if the protocol supports one.
    pub system_prompt: Option<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// Program and arguments, ready to run.
    pub command: Launch,
    /// The workspace.
    pub folder: PathBuf,
    /// The agent's complete environment.
    pub env: BTreeMap<String, String>,
    /// The manifest of the harness.
    pub manifest: Arc<Manifest>,
    /// The policy that answers the agent's permission requests.
    pub policy: Policy,
    /// MCP servers of the case, in ACP's form.
    pub mcp_servers: Vec<Value>,
    /// The settings of the session. Its mode is the mode of the case, else the mode of the manifest.
    pub session: SessionSettings,
    /// True if the session's mode comes from the manifest.
    pub mode_of_manifest: bool,
    /// True if the policy has decisions to make, so that the agent must ask for permission. False for `auto-approve`.
    pub must_ask: bool,
    /// Files sent along with the first prompt.
    pub attachments: Vec<Attached>,
    /// The working directory and the environment of the agent's terminals.
    pub terminals: Shell,
    /// The recording to play. Only for the adapter `replay`.
    pub recording: Option<PathBuf>,
}

/// Drives the session to its end. Returns how long to wait for the process to exit by itself.
pub async fn drive(session: &mut Session, task: &mut Task) -> Duration {
    match task.manifest.adapter {
        Adapter::Acp => acp::drive(session, task).await,
        Adapter::ClaudeCodeControl => claude_control::drive(session, task).await,
        Adapter::ClaudeCodeStream | Adapter::JsonStream | Adapter::OutputOnly => to_exit(session, task).await,
        Adapter::Replay => replay::play(session, task),
    }
}

/// Checks that the agent's program supports these attachments of a prompt.
///
/// # Errors
/// Returns the reason if the agent does not support a file, or not all files together.
pub fn takes(adapter: Adapter, attached: &[Attached]) -> Result<(), String> {
    match adapter {
        Adapter::ClaudeCodeControl => claude_control::takes(attached),
        // An agent of ACP lists the kinds that it supports when it has started.
        Adapter::Acp => Ok(()),
        // The plan skips their cases with attachments, and a recording takes any.
        Adapter::ClaudeCodeStream | Adapter::JsonStream | Adapter::OutputOnly | Adapter::Replay => Ok(()),
    }
}

/// The maximum time for which late lines are taken after the last answer, and the silence of the agent that ends it.
pub const DRAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(60));

/// The reason why a conversation with an agent did not come to its end.
pub enum Broken {
    /// A step of the handshake was refused or not answered.
    Handshake(String),
    /// A request was answered with an error. The translation has seen it.
    Refused,
    /// The agent's output is closed.
    Gone,
    /// The agent is in this mode, which does not ask for every permission, although the policy has decisions to make.
    Unattended(String),
    /// The engine ends the session because of a limit or an interrupt.
    Ended,
}

impl Broken {
    /// Lets the agent exit by itself and returns how long it may take. Returns `None` if the engine must end the
    /// agent's turn first.
    pub fn leave(self, session: &mut Session) -> Option<Duration> {
        match self {
            Broken::Ended | Broken::Unattended(_) => return None,
            Broken::Handshake(message) => {
                session.engine(&EngineLine::Handshake { message });
                session.close_stdin();
            }
            Broken::Refused => session.close_stdin(),
            Broken::Gone => {}
        }
        Some(Duration::from_millis(500))
    }
}

/// Logs that the agent does not ask for permissions that the policy has to decide. Returns true if that is why the
/// conversation ended.
pub fn end_unattended(session: &mut Session, task: &Task, broken: &Broken) -> bool {
    let Broken::Unattended(mode) = broken else { return false };
    session.engine(&EngineLine::Unattended { mode: mode.clone(), policy: task.policy.word().to_owned() });
    true
}

/// Runs a program that takes one prompt and works until it exits.
async fn to_exit(session: &mut Session, task: &Task) -> Duration {
    let prompt = task.turns.first().cloned().unwrap_or_default();
    session.begin_turn(Turn::new(1, prompt.clone()));
    session.engine(&EngineLine::Prompt { text: prompt.clone() });
    let by_stdin = task.manifest.gives_on_stdin(&prompt);
    let stdin = if by_stdin { Stdin::Piped } else { Stdin::Null };
    if session.spawn(&task.command, &task.folder, &task.env, stdin).await.is_err() {
        return Duration::ZERO;
    }
    if by_stdin {
        session.send(&prompt).await;
        session.close_stdin();
    }
    session.lines_are_not_looked_at();
    let grace = task.manifest.timeouts.grace.0;
    loop {
        // After its answer, the agent is only waited for: tasks in its background may still produce another answer.
        let answered = session.is_turn_answered();
        if answered {
            session.answered();
        }
        match session.next(answered.then_some(grace)).await {
            Incoming::Line(_) | Incoming::Terminal(_) => {}
            Incoming::Closed => return grace,
            Incoming::Late | Incoming::End(End::Limit | End::Interrupted) => return Duration::ZERO,
        }
    }
}
