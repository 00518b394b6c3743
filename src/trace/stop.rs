//! The end of a session: its reason, the category of an error, and how the process ended.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use crate::word::word;

/// The reason why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr, VariantArray)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StopReason {
    /// The agent finished.
    EndTurn,
    /// The model ran out of output tokens.
    MaxTokens,
    /// The agent reached its maximum number of turns.
    MaxTurns,
    /// The agent reached its token or cost budget.
    MaxBudget,
    /// The model refused.
    Refusal,
    /// The session was cancelled.
    Cancelled,
    /// A time limit was reached: `time` of the case, or one of the agent's own.
    TimedOut,
    /// Nothing happened for too long: the limit `idle` of the case, or one of the agent's own, was reached.
    Idle,
    /// The agent answered with an error.
    Error,
    /// The agent's process ended before it answered.
    Crashed,
    /// Another reason; the agent's own word is in `detail`.
    Other,
}

word!(StopReason);

/// The category of an error that makes a trial `errored`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ErrorCategory {
    /// The agent's program was not found.
    NotInstalled,
    /// The agent's program was found but could not be started.
    StartFailed,
    /// No session could be established.
    Handshake,
    /// A login or a key was refused.
    Auth,
    /// The model's service limited the rate of requests.
    RateLimit,
    /// The model's service answered with an error, or a recording had no answer to a request.
    Provider,
    /// The agent violated its protocol.
    Protocol,
    /// The agent's process ended before it answered.
    Crashed,
    /// The workspace could not be prepared.
    Setup,
    /// A grader could not run.
    Grader,
    /// The engine itself failed.
    Internal,
}

word!(ErrorCategory);

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stop {
    /// The reason why the session ended.
    pub reason: StopReason,
    /// The error category, if the session ended with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<ErrorCategory>,
    /// The limit's key, the agent's own word, or the error's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The final answer: the text of the main agent after its last call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// The places within the final answer at which calls or lines are missing: text of the answer comes both before and
    /// after each. Absent if nothing is known to be missing there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gap: Option<AnswerGap>,
    /// The exit of the process. Absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

/// The places within the final answer at which calls or lines are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AnswerGap {
    /// The number of the first notice about one.
    pub event: u64,
    /// The length of the answer before the last of these places, in bytes.
    pub at: u64,
}

/// The exit of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exit {
    /// Exit code. Null if the process did not exit by itself.
    pub code: Option<i32>,
    /// Signal number. Null if no signal ended the process.
    pub signal: Option<i32>,
}
