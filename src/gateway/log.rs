//! The log of the server: a line of JSON for each request.

use serde::Serialize;

use super::play::What;
use super::{Api, Call};
use crate::text::{first_chars, marked};

/// A request and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LogLine {
    /// Milliseconds since the server began.
    pub at_ms: u64,
    /// The request's number, from 0.
    pub request: u64,
    /// The HTTP method.
    pub method: String,
    /// The path, including the query.
    pub path: String,
    /// The API of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The requested model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// True if a streamed answer is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// The names of the offered tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The number of the model's earlier turns in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_turns: Option<usize>,
    /// The number of call results in the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<usize>,
    /// The kind of answer.
    pub played: What,
    /// The number of the turn, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// The number of the turn's sub-agent, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<usize>,
    /// The tool calls in the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// The fault of the script: `http-error`, `cut`, `error-event`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
    /// The HTTP status of the answer.
    pub status: u16,
    /// True if the request contains none of the case's prompts, and was therefore answered aside.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_prompt: bool,
    /// The part of the script that could not be played as written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The maximum number of characters of each text of a request.
const LONGEST: usize = 1000;
/// The maximum number of tool names.
const MOST_TOOLS: usize = 500;

impl LogLine {
    /// Cuts the texts from the request to the maximum.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let cut = |text: &mut String| {
            *text = marked(first_chars(text, LONGEST), text);
        };
        cut(&mut self.method);
        cut(&mut self.path);
        self.model.iter_mut().for_each(cut);
        self.problem.iter_mut().for_each(cut);
        self.tools.truncate(MOST_TOOLS);
        self.tools.iter_mut().for_each(cut);
        self
    }

    /// Returns the line as JSON, without a line end.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"problem\":\"not written: {error}\"}}"))
    }
}
