//! The input of the recorder: an adapter's descriptions of texts, calls, results and permissions.

use serde_json::Value;

use crate::trace::{AskedCall, FileDiff, Location, PermissionOption, PermissionOutcome, ToolKind};

/// Whose text it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// A message of the user.
    User,
    /// A message of the agent.
    Agent,
    /// A thought of the agent.
    Thought,
}

/// Where a piece of text stands with regard to the piece before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A chunk that goes on where the last one ended.
    Chunk,
    /// A chunk of the message or block with this id.
    Of(String),
    /// A block of its own.
    Block,
}

/// What an agent says of a call; every part that it did not say is `None` or empty.
#[derive(Debug, Clone, Default)]
pub struct CallSaid {
    /// The sub-agent that makes the call.
    pub parent: Option<String>,
    /// The message that the call is part of, where the protocol shows messages.
    pub group: Option<String>,
    /// What it does.
    pub kind: Option<ToolKind>,
    /// The tool's name.
    pub name: Option<String>,
    /// A line for people.
    pub title: Option<String>,
    /// Its arguments; `{}` if the agent shows that there are none.
    pub input: Option<Value>,
    /// Files it touches.
    pub locations: Vec<Location>,
    /// Changes it shows before it is done.
    pub diffs: Vec<FileDiff>,
    /// Output so far; the result's own output replaces it.
    pub output: Option<String>,
    /// Exit code, if it came before the result.
    pub exit_code: Option<i64>,
}

/// What an agent says of how a call ended.
#[derive(Debug, Clone, Default)]
pub struct ResultSaid {
    /// Its own word for it.
    pub outcome: Said,
    /// What the call said.
    pub output: Option<String>,
    /// Changes to files; empty means those shown before.
    pub diffs: Vec<FileDiff>,
    /// Exit code of a command.
    pub exit_code: Option<i64>,
    /// The output was cut.
    pub truncated: bool,
}

/// The agent's own word for how a call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Said {
    /// It succeeded.
    #[default]
    Ok,
    /// It failed.
    Failed,
    /// It was refused.
    Denied,
    /// It was cancelled.
    Cancelled,
}

/// What an agent asks for.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// What may be answered.
    pub options: Vec<PermissionOption>,
    /// What the request says of its call in other words, or otherwise, than the call was announced.
    pub asked: Option<AskedCall>,
    /// The input that is asked for, where the announced one is another: the answer records it.
    pub updated_input: Option<Value>,
    /// The id under which the request is recorded if it is about a call that was never announced.
    pub unknown: Option<String>,
}

/// What is known of a permission's answer.
#[derive(Debug, Clone)]
pub struct Answered {
    /// What was decided.
    pub outcome: PermissionOutcome,
    /// The option chosen.
    pub option: Option<String>,
    /// The policy that decided.
    pub policy: Option<String>,
    /// The rule of it that matched.
    pub rule: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Input put in the place of the agent's.
    pub updated_input: Option<Value>,
}
