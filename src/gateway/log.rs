//! What the server writes down of each request: a line of JSON.

use serde::Serialize;

use super::play::What;
use super::{Api, Call};

/// One request and what it got.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LogLine {
    /// Milliseconds since the server began.
    pub at_ms: u64,
    /// Its number, from 0.
    pub request: u64,
    /// The HTTP method.
    pub method: String,
    /// The path, with what follows it.
    pub path: String,
    /// The API it is written in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The model it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether it wants its answer in pieces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// The names of the tools it offers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// How many turns the model has had in its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_turns: Option<usize>,
    /// How many results of calls its conversation holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<usize>,
    /// What was played.
    pub played: What,
    /// The number of the turn, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// The number of the sub-agent whose turn it was, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<usize>,
    /// The calls that were made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// What went wrong, as the script says: `http-error`, `cut`, `error-event`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The request holds none of the case's prompts, and was answered aside for that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub without_prompt: bool,
    /// What the script could not have as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Characters that are kept of each text of a request.
const LONGEST: usize = 1000;
/// Names of tools that are kept.
const MOST_TOOLS: usize = 500;

impl LogLine {
    /// The line with what came from the request cut to a bounded length.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let cut = |text: &mut String| {
            if let Some((end, _)) = text.char_indices().nth(LONGEST) {
                text.truncate(end);
                text.push('…');
            }
        };
        cut(&mut self.method);
        cut(&mut self.path);
        self.model.iter_mut().for_each(cut);
        self.problem.iter_mut().for_each(cut);
        self.tools.truncate(MOST_TOOLS);
        self.tools.iter_mut().for_each(cut);
        self
    }

    /// The line, without its end.
    pub fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|error| format!("{{\"problem\":\"not written: {error}\"}}"))
    }
}
