//! The input of the recorder: an adapter's descriptions of texts, calls, results and permissions.

use serde_json::Value;

use crate::trace::{AskedCall, FileDiff, Location, PermissionOption, PermissionOutcome, ToolKind};

/// Returns true if an input is empty: null, `{}`, `[]` or an empty text.
pub fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The speaker of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// A message of the user.
    User,
    /// A message of the agent.
    Agent,
    /// A thought of the agent.
    Thought,
}

/// The relation of a piece of text to the piece before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Continuation {
    /// A chunk that continues the last piece.
    Chunk,
    /// A chunk of the message or block with this id.
    Of(String),
    /// A separate block.
    Block,
}

/// A call as the agent reports it. Absent parts are `None` or empty.
#[derive(Debug, Clone, Default)]
pub struct CallReport {
    /// The sub-agent that makes the call.
    pub parent: Option<String>,
    /// The message that the call is part of, if the protocol shows messages.
    pub group: Option<String>,
    /// The kind of the tool.
    pub kind: Option<ToolKind>,
    /// True if the agent gave a value that is no kind, or nothing that a kind follows from.
    pub unknown_kind: bool,
    /// The tool's name.
    pub name: Option<String>,
    /// A title for people.
    pub title: Option<String>,
    /// The arguments; `{}` if the agent shows that there are none.
    pub input: Option<Value>,
    /// The files that the call touches.
    pub locations: Vec<Location>,
    /// The folder in which the call runs.
    pub cwd: Option<String>,
    /// The changes that the call shows before its result.
    pub diffs: Vec<FileDiff>,
    /// The output until now. The output of the result replaces it.
    pub output: Option<String>,
    /// The exit code, if it came before the result.
    pub exit_code: Option<i64>,
}

/// The end of a call as the agent reports it.
#[derive(Debug, Clone, Default)]
pub struct ResultReport {
    /// The agent's own word for the end.
    pub outcome: ReportedStatus,
    /// The call's output.
    pub output: Option<String>,
    /// The changes to files. If empty, earlier shown changes stay.
    pub diffs: Vec<FileDiff>,
    /// The exit code of a command.
    pub exit_code: Option<i64>,
    /// True if the agent reports that `output` is only a part of the output.
    pub truncated: bool,
}

/// The agent's own word for how a call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReportedStatus {
    /// The call succeeded.
    #[default]
    Ok,
    /// The call failed.
    Failed,
    /// The call was refused.
    Denied,
    /// The call was cancelled.
    Cancelled,
}

/// A permission request of an agent.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// The answers that the agent offers. Empty if it offers none.
    pub options: Vec<PermissionOption>,
    /// The values of the request that differ from the announcement of its call, even if only in their wording.
    pub asked: Option<AskedCall>,
    /// True if the request names a kind that is unknown.
    pub unknown_kind: bool,
    /// The requested input, if it differs from the announced one: the answer records it.
    pub updated_input: Option<Value>,
    /// The id under which a request about a call that was never announced is recorded.
    pub unknown: Option<String>,
    /// True if the session shows the answer, so that a result of the call before the answer waits for it.
    pub awaits_answer: bool,
}

/// The policy and the rule that decided about a permission request, and the reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DecidedBy {
    /// The policy that decided, or [`DecidedBy::ENGINE`].
    pub policy: Option<String>,
    /// The policy's rule that matched.
    pub rule: Option<String>,
    /// The policy's reason for its answer.
    pub reason: Option<String>,
    /// True if the policy rejected the request, and the agent offered no option for that answer; or if the engine cancelled a
    /// request that the policy would have rejected.
    pub rejects: bool,
}

impl DecidedBy {
    /// The name in place of a policy if the engine itself cancelled a request.
    pub const ENGINE: &str = "engine";

    /// Returns true if no policy decided, but the engine.
    pub fn is_engine(&self) -> bool {
        self.policy.as_deref() == Some(Self::ENGINE)
    }
}

/// The answer to a permission request.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The decision.
    pub outcome: PermissionOutcome,
    /// The agent's id of the chosen option. Absent if the answer chose none.
    pub option: Option<String>,
    /// The policy and the rule that decided, and the reason.
    pub by: DecidedBy,
    /// The input that replaces the agent's.
    pub updated_input: Option<Value>,
}
