//! The model gateway: a loopback server instead of a model. At present it plays scripts.
//!
//! [`api`] parses the requests of each API to [`Asked`], and writes its answers from [`Reply`]. The code in between
//! is independent of the API: [`play`] decides which turn of the script a request gets, and [`tools`] turns its calls
//! into calls of the tools that the agent offers. Only [`server`] and [`relay`] open sockets.

use serde::Serialize;
use serde_json::Value;

pub use self::api::Api;
use self::script::{Stop, Usage};

pub mod api;
mod beside;
mod connections;
pub mod log;
pub mod play;
pub mod relay;
pub mod script;
pub mod server;
mod stream;
pub mod tools;
mod turns;
pub mod wants;
mod words;

/// A request to a model, independent of the API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The model.
    pub model: Option<String>,
    /// True if the answer is streamed.
    pub stream: bool,
    /// True if a stream ends with the usage.
    pub usage_in_stream: bool,
    /// The offered tools.
    pub tools: Vec<Tool>,
    /// The number of the model's earlier turns in this conversation.
    pub model_turns: usize,
    /// The number of call results in the conversation.
    pub tool_results: usize,
    /// The user's messages before the model's first turn.
    pub opening: String,
    /// The user's messages before the model's first turn, and the agent's instructions.
    pub told: String,
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

/// A tool that an agent offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// The group of the name, if there are groups.
    pub group: Option<String>,
    /// The description.
    pub description: String,
    /// The JSON Schema of the input, or null if it has none.
    pub schema: Value,
    /// True if the input is a text instead of an object.
    pub freeform: bool,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Call {
    /// The id of the call.
    pub call: String,
    /// The kind of call in the script, or `tool`.
    pub kind: &'static str,
    /// The tool's name.
    pub tool: String,
    /// The group of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The input: an object, or a text if the tool takes one.
    pub input: Value,
    /// The kind of tool that was used, if it differs from the kind in the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<&'static str>,
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
    /// The thinking.
    pub thinking: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// The calls.
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
