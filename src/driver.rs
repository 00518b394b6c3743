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
use crate::harness::{Manifest, PromptVia};
use crate::interaction::Policy;
use crate::process::{Launch, Stdin};
use crate::session::{End, Incoming, Session, Turn};
use crate::shell::Shell;
use crate::wire::EngineLine;

pub mod acp;
pub mod claude_control;
pub mod replay;
mod requested;

/// What an agent is to do, and how it is started.
pub struct Task {
    /// The prompts, in order.
    pub turns: Vec<String>,
    /// The system prompt, where the protocol has a place for it.
    pub system_prompt: Option<String>,
    /// The model to ask for.
    pub model: Option<String>,
    /// Program and arguments, ready to run.
    pub command: Launch,
    /// The workspace.
    pub folder: PathBuf,
    /// Its whole environment.
    pub env: BTreeMap<String, String>,
    /// What it is.
    pub manifest: Arc<Manifest>,
    /// What answers its permission requests.
    pub policy: Policy,
    /// MCP servers of the case, in ACP's form.
    pub mcp_servers: Vec<Value>,
    /// What is special about the session. Its mode is the case's, or else the manifest's.
    pub session: SessionSettings,
    /// The mode of the session is the manifest's.
    pub mode_of_manifest: bool,
    /// The policy has something to decide: it is not `auto-approve`.
    pub must_ask: bool,
    /// Files sent along with the first prompt.
    pub attachments: Vec<Attached>,
    /// Where and with what environment its terminals run.
    pub terminals: Shell,
    /// The recording to play, for `replay`.
    pub recording: Option<PathBuf>,
}

/// Drives the session to its end. Answers how long to wait for the process to exit by itself.
pub async fn drive(session: &mut Session, task: &mut Task) -> Duration {
    match task.manifest.adapter {
        Adapter::Acp => acp::drive(session, task).await,
        Adapter::ClaudeCodeControl => claude_control::drive(session, task).await,
        Adapter::ClaudeCodeStream | Adapter::JsonStream | Adapter::OutputOnly => to_exit(session, task).await,
        Adapter::Replay => replay::play(session, task),
    }
}

/// How long late lines may follow the last answer, and how long the agent may be silent before that is over.
pub const DRAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_millis(60));

/// Why a conversation with an agent did not come to its end.
pub enum Broken {
    /// A step of the handshake was refused or not answered.
    Handshake(String),
    /// A request was answered with an error, which the translation has seen.
    Refused,
    /// The agent is gone.
    Gone,
    /// The agent is in this mode, in which it does not ask for every permission, and the policy has something to decide.
    Unattended(String),
    /// The engine ends the session: a limit, or an interrupt.
    Ended,
}

impl Broken {
    /// Leaves the agent to exit, and says how long it may take; nothing where the engine has to end its turn first.
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

/// Ends a session in which the agent does not ask for what the policy has to decide: says so, and whether it is so.
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
    let by_stdin = task.manifest.prompt_via == PromptVia::Stdin;
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
        // Once it has answered it is only waited for: what runs in its background may still answer again.
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
