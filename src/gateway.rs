//! The model gateway: a server on loopback in a model's place. So far it plays scripts.
//!
//! A request is understood by the API that it is written in, each of which has a file here, as an [`Asked`]; what is
//! answered, a [`Reply`], is written by the same file. In between nothing knows of APIs: [`play`] decides which turn
//! of the script a request gets, and [`tools`] turns its calls into calls of what the agent offers. Only [`server`]
//! and [`relay`] open sockets.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use self::script::{Stop, Usage};

pub mod anthropic;
mod beside;
mod connections;
pub mod gemini;
pub mod log;
pub mod openai_chat;
pub mod openai_responses;
pub mod play;
pub mod relay;
pub mod script;
pub mod server;
mod stream;
pub mod tools;
mod turns;
mod words;

/// The APIs that agents speak to models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Anthropic Messages.
    AnthropicMessages,
    /// OpenAI Responses.
    OpenaiResponses,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// Gemini generateContent and streamGenerateContent.
    Gemini,
}

/// What a request asks of a model, whatever the API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Asked {
    /// The model.
    pub model: Option<String>,
    /// Whether the answer is to come in pieces.
    pub stream: bool,
    /// Whether a stream is to end with what was used.
    pub usage_in_stream: bool,
    /// The tools that may be called.
    pub tools: Vec<Tool>,
    /// How many turns the model has had in this conversation.
    pub model_turns: usize,
    /// How many results of calls the conversation holds.
    pub tool_results: usize,
    /// What the user said before the model's first turn.
    pub opening: String,
    /// That, and what the agent told of itself.
    pub told: String,
    /// What the user said since the model's last turn.
    pub last: String,
    /// Each message of the user, with the number of the model's turns before it.
    pub users: Vec<(usize, String)>,
    /// The number of the model's turns was read from the id of a call that a script made.
    pub numbered: bool,
    /// At most so many tokens may be answered.
    pub most: Option<u64>,
    /// The agent marks it as made beside its conversation.
    pub beside: bool,
    /// The folder that the agent says it works in.
    pub folder: Option<String>,
    /// The one tool that has to be called.
    pub forced: Option<String>,
    /// The JSON Schema that the answer is to follow.
    pub format: Option<Value>,
}

/// A tool that an agent offers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// The group in which its name stands, where there are groups.
    pub group: Option<String>,
    /// What it says of itself.
    pub description: String,
    /// The JSON Schema of its input; null where it has none.
    pub schema: Value,
    /// Whether its input is a text rather than an object.
    pub freeform: bool,
}

/// A call that the model makes.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Call {
    /// Its id.
    pub call: String,
    /// What the script called it: a kind, or `tool`.
    pub kind: &'static str,
    /// The tool's name.
    pub tool: String,
    /// The group in which that name stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The input: an object, or a text where the tool takes one.
    pub input: Value,
    /// The kind of tool it was made with, where that is not the one that the script names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<&'static str>,
    /// Whether the tool takes a text.
    #[serde(skip)]
    pub freeform: bool,
}

/// What the model answers, whatever the API.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The model it says it is.
    pub model: String,
    /// Tells it from other answers of the same server.
    pub id: String,
    /// Seconds since 1970.
    pub created: i64,
    /// Its thought.
    pub thinking: Option<String>,
    /// Its text.
    pub text: Option<String>,
    /// Its calls.
    pub calls: Vec<Call>,
    /// What it used; absent where the script does not say.
    pub usage: Option<Usage>,
    /// Why it ended.
    pub stop: Stop,
}

/// An error as a model's API tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// For people.
    pub message: String,
    /// After how many milliseconds it may be tried again.
    pub retry_after_ms: Option<u64>,
}
