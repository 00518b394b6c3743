//! The model gateway: a loopback server between an agent and its model. It passes requests on, records them, plays
//! recordings, and plays scripts.
//!
//! ```text
//! request → server → guard → script | cassette | service → answer, as it comes → llm.jsonl
//! ```
//!
//! [`api`] has a file for each API; everything else is independent of the API. [`server`] takes every request the same
//! way in all modes, and asks one source for the answer: [`player`] (a script), [`tape`] (a recording) or [`upstream`]
//! (the service). [`canonical`] decides which two requests are the same, and [`cassette`] reads and writes recordings.
//! Only [`server`], [`upstream`] and [`relay`] use sockets; [`crate::loopback`] opens the ports.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::api::Api;
use self::script::{Stop, Usage};

// A trial's gateway and its server.
pub mod route;
pub mod settings;
pub mod server;
pub(crate) mod encoding;
pub mod purpose;
pub mod guard;
pub mod relay;

// The answers.
pub mod api;
pub mod upstream;
pub mod player;
pub mod script;
pub mod play;
mod choice;
pub mod tools;
mod side_requests;
mod turns;
mod words;
mod stream;
pub mod cassette;
pub mod canonical;
pub mod tape;
mod difference;
pub mod reading;
mod pieces;

// What is kept of them.
mod tee;
mod pending;
pub mod exchange;
pub mod script_line;
pub mod log;
mod request_place;
pub mod refused;
pub mod refusals;
pub mod totals;

/// A request to a model, independent of the API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelRequest {
    pub model: Option<String>,
    /// True if the answer is streamed.
    pub stream: bool,
    /// True if a stream ends with the usage.
    pub usage_in_stream: bool,
    /// The offered tools.
    pub tools: Vec<Tool>,
    /// True if the request offers tools under the deprecated key `functions`, by which scripts call no tools.
    pub functions: bool,
    /// The number of the model's earlier turns in this conversation.
    pub model_turns: usize,
    /// The results of tool calls in the conversation.
    pub results: Vec<ToolResult>,
    /// The user's messages before the model's first turn.
    pub opening: String,
    /// The user's messages before the model's first turn, and the agent's instructions.
    pub preamble: String,
    /// The user's messages since the model's last turn.
    pub last: String,
    /// Each message of the user, with the number of the model's turns before it.
    pub users: Vec<(usize, String)>,
    /// True if the number of turns was read from the id of a scripted call.
    pub numbered: bool,
    /// The maximum number of tokens in the answer.
    pub most: Option<u64>,
    /// True if the agent marks the request as outside its conversation.
    pub beside: bool,
    /// The agent's working directory, as stated in the request.
    pub folder: Option<String>,
    /// The tool that must be called.
    pub forced: Option<String>,
    /// The JSON Schema of the answer.
    pub format: Option<Value>,
}

/// The result of a tool call, as the agent reports it to its model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult {
    /// The number of the model's turn that made the call, from 0. Absent if no turn of the model precedes the result.
    pub turn: Option<usize>,
    /// True if the turn was read from the id of a scripted call, so that it is the number of a turn of the script.
    pub numbered: bool,
    /// The number of the call in its turn, from 0.
    pub call: usize,
    pub text: String,
    /// True if the call failed. Absent if the API does not state it.
    pub failed: Option<bool>,
}

/// A tool that an agent offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    pub name: String,
    /// The group of the name, if there are groups.
    pub group: Option<String>,
    pub description: String,
    /// The JSON Schema of the input, or null if the tool has no input schema.
    pub schema: Value,
    /// True if the input is a text instead of an object.
    pub freeform: bool,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Call {
    /// The id of the call.
    pub call: String,
    /// The kind of call in the script, or `tool`.
    pub kind: Cow<'static, str>,
    /// The tool's name.
    pub tool: String,
    /// The group (namespace) that the tool belongs to. Absent if the tool is in no group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The input: an object, or a text if the tool takes one.
    pub input: Value,
    /// The kind of tool that was used, if it differs from the kind in the script.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Cow<'static, str>>,
    /// True if the tool takes a text.
    #[serde(skip)]
    pub freeform: bool,
}

/// An answer of the model, independent of the API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The model name in the answer.
    pub model: String,
    /// The id, unique among the answers of the server.
    pub id: String,
    /// Seconds since 1970.
    pub created: i64,
    pub thinking: Option<String>,
    pub text: Option<String>,
    pub calls: Vec<Call>,
    /// The usage. Absent if the script does not set it.
    pub usage: Option<Usage>,
    /// The stop reason.
    pub stop: Stop,
}

/// An error response of a model's API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The error message.
    pub message: String,
    /// The pause before a retry, in milliseconds.
    pub retry_after_ms: Option<u64>,
}
