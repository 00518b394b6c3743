//! The turn that a script played for a request: a part of the exchange's log line, and sums over a trial.

use serde::{Deserialize, Serialize};

use super::Call;
use super::play::AnswerKind;
use crate::text::{first_chars, marked};

/// The turn that a script played for a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScriptLine {
    /// The kind of answer that was played.
    pub played: AnswerKind,
    /// The number of the turn, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<usize>,
    /// The number of the turn's alternative, from 0, if the turn has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alternative: Option<usize>,
    /// The number of the turn's sub-agent, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_agent: Option<usize>,
    /// The names of the offered tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The number of the model's earlier turns in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_turns: Option<usize>,
    /// The number of call results in the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<usize>,
    /// The tool calls in the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    /// The fault of the script that occurred, by its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// True if the request contains none of the case's prompts, and was therefore answered aside.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_prompt: bool,
    /// The part of the script that could not be played as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The maximum number of characters of each text of a request.
const MAX_TEXT_CHARS: usize = 1000;
/// The maximum number of tool names.
const MAX_TOOL_NAMES: usize = 500;
/// The maximum number of problems that are kept.
const MAX_PROBLEMS: usize = 3;

impl ScriptLine {
    pub fn of(played: AnswerKind) -> Self {
        Self {
            played,
            turn: None,
            alternative: None,
            sub_agent: None,
            tools: Vec::new(),
            model_turns: None,
            tool_results: None,
            calls: Vec::new(),
            fault: None,
            without_prompt: false,
            problem: None,
        }
    }

    /// Cuts the texts from the request to the maximum.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        let cut = |text: &mut String| {
            *text = marked(first_chars(text, MAX_TEXT_CHARS), text);
        };
        self.problem.iter_mut().for_each(cut);
        self.tools.truncate(MAX_TOOL_NAMES);
        self.tools.iter_mut().for_each(cut);
        self
    }
}

/// Sums over the turns that a script played.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The first problem of a turn that could not be played.
    pub not_played: Option<String>,
    /// The first problems of requests outside the script.
    pub problems: Vec<String>,
    /// The number of requests without the case's prompt.
    pub strangers: u64,
    /// The number of requests without tools that were answered aside.
    pub without_tools: u64,
    /// The number of turns of the main conversation that were played.
    pub turns: usize,
    /// True if a turn of a sub-agent was played.
    pub played_sub_agent: bool,
    /// True if the last of these turns has alternatives, and the one that was played ends the agent's work: the rest of
    /// the script belongs to the others.
    pub ended_by_choice: bool,
    /// The number of requests after the last turn.
    pub after_the_last: u64,
}

impl Tally {
    pub fn add(&mut self, line: &ScriptLine) {
        if let Some(problem) = &line.problem {
            if line.turn.is_some() {
                self.not_played.get_or_insert_with(|| problem.clone());
            } else if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(problem) {
                self.problems.push(problem.clone());
            }
        }
        self.strangers += u64::from(line.without_prompt);
        let is_aside = line.played == AnswerKind::Aside && !line.without_prompt;
        self.without_tools += u64::from(is_aside && line.tools.is_empty());
        self.played_sub_agent |= line.sub_agent.is_some();
        self.after_the_last += u64::from(line.played == AnswerKind::AfterTheLast);
        if let (Some(turn), None) = (line.turn, line.sub_agent)
            && turn + 1 >= self.turns
        {
            self.turns = turn + 1;
            self.ended_by_choice = line.alternative.is_some() && line.calls.is_empty();
        }
    }
}
