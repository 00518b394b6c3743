//! The scripted model's script: its YAML form, and a parser that reports the place of each error.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::values::{Pattern, Time};
use crate::word::word;
use crate::yaml::{self, Step, YamlError};

pub use self::when::When;

mod check;
mod when;

/// The answers of a scripted model, turn by turn.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Script {
    /// The model name in responses. Default: the requested model.
    #[serde(default)]
    pub model: Option<String>,
    /// The models that the server lists. Default: `model`, or `scripted`.
    #[serde(default)]
    pub models: Option<Vec<String>>,
    /// The treatment of requests that offer no tools.
    #[serde(default)]
    pub without_tools: WithoutTools,
    /// Patterns of further requests that are answered aside: a request matches if a pattern is found in its
    /// instructions or in the last user message.
    #[serde(default)]
    pub aside: Vec<Pattern>,
    /// The answers, in the order of a conversation.
    pub turns: Vec<Turn>,
    /// The scripts of sub-agents' conversations.
    #[serde(default)]
    pub sub_agents: Vec<SubAgent>,
}

/// The treatment of requests that offer no tools. Agents make such requests for titles and summaries, for example.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WithoutTools {
    /// Requests without tools are answered aside: with a few words, and without using a turn.
    #[default]
    Aside,
    /// Requests without tools use a turn like others: for agents that have no tools at all.
    Play,
}

/// The turns of a sub-agent.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SubAgent {
    /// The pattern that selects the conversation: it must be found in the first user message.
    pub when: Pattern,
    /// The answers, in the order of that conversation.
    pub turns: Vec<Turn>,
}

/// An answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Turn {
    /// The condition on the results of earlier calls. If no alternative of a turn fits, the turn cannot be played.
    pub when: Option<When>,
    /// Alternatives for this turn: the first one whose `when` fits is played. One without `when` always fits.
    pub either: Option<Vec<Turn>>,
    /// The thinking of the model, before anything else.
    pub thinking: Option<String>,
    /// The text of the answer, before its calls.
    pub text: Option<String>,
    /// The tool calls. Several calls are made in parallel.
    pub calls: Vec<ScriptedCall>,
    /// The token usage of the answer.
    pub usage: Option<Usage>,
    /// The stop reason. Default: `tool-calls` if the answer has calls, else `end-turn`.
    pub stop: Option<Stop>,
    /// The delay before the answer begins.
    pub delay: Option<Time>,
    /// The time from the beginning of the answer to its end, over which a stream is spread.
    pub take: Option<Time>,
    /// The model name in the response, instead of the script's `model`.
    pub model: Option<String>,
    /// A fault that is simulated.
    pub fault: Option<Fault>,
    /// The number of times the fault occurs before the turn is played without it. Default: always; once for
    /// `overloaded` and `rate-limit`.
    pub fault_times: Option<u32>,
}

/// A call by its kind, or by the name of the agent's own tool. Exactly one of the kinds and `tool` is required.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ScriptedCall {
    /// Writes a file.
    pub write: Option<Write>,
    /// Reads a file.
    pub read: Option<Read>,
    /// Replaces a text in a file.
    pub edit: Option<Edit>,
    /// Runs a command.
    pub execute: Option<Execute>,
    /// Searches files for a text.
    pub search: Option<Search>,
    /// Asks the user.
    pub ask: Option<Ask>,
    /// The agent's own name of a tool.
    pub tool: Option<String>,
    /// The input of `tool`, passed on unchanged except that `{workspace}` in its texts is replaced.
    pub input: Option<Value>,
}

/// Writes a file, and replaces an existing one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file, relative to the workspace.
    pub path: String,
    /// The complete text of the file.
    pub text: String,
}

/// Reads a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The file, relative to the workspace.
    pub path: String,
}

/// Replaces a text in a file.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, relative to the workspace.
    pub path: String,
    /// The text to replace.
    pub old: String,
    /// The replacement.
    pub new: String,
}

/// Runs a command.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// The command line, run by a shell.
    pub command: String,
}

/// Searches files for a text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The regular expression to search for.
    pub pattern: String,
    /// The file or folder to search, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    pub path: Option<String>,
}

/// Asks the user a question.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// The question that the agent is to ask the user.
    pub question: String,
    /// The answers to choose from.
    #[serde(default)]
    pub options: Vec<String>,
}

/// A call of a script, by its kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScriptCall<'a> {
    /// Writes a file.
    Write(&'a Write),
    /// Reads a file.
    Read(&'a Read),
    /// Replaces a text in a file.
    Edit(&'a Edit),
    /// Runs a command.
    Execute(&'a Execute),
    /// Searches files for a text.
    Search(&'a Search),
    /// Asks the user.
    Ask(&'a Ask),
    /// Calls a tool by its name.
    Tool(&'a str, Option<&'a Value>),
}

impl ScriptedCall {
    /// Returns the call, or `None` if it names no kind.
    pub fn wanted(&self) -> Option<ScriptCall<'_>> {
        self.named().next()
    }

    /// Returns the calls that are named. A valid call names one.
    fn named(&self) -> impl Iterator<Item = ScriptCall<'_>> {
        let calls = [
            self.write.as_ref().map(ScriptCall::Write),
            self.read.as_ref().map(ScriptCall::Read),
            self.edit.as_ref().map(ScriptCall::Edit),
            self.execute.as_ref().map(ScriptCall::Execute),
            self.search.as_ref().map(ScriptCall::Search),
            self.ask.as_ref().map(ScriptCall::Ask),
            self.tool.as_deref().map(|name| ScriptCall::Tool(name, self.input.as_ref())),
        ];
        calls.into_iter().flatten()
    }
}

/// The token usage of an answer, counted as in the trace: no token is counted twice, except thoughts, which are
/// part of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Usage {
    /// Input tokens, without cached ones.
    pub input: u64,
    /// Output tokens, including thoughts.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache; APIs without such a count report them as input tokens.
    pub cache_write: u64,
    /// Tokens of thoughts.
    pub thought: u64,
}

impl Usage {
    /// Returns all input tokens, cached or not.
    pub fn sent(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }
}

/// The stop reason of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The answer is complete.
    #[default]
    EndTurn,
    /// The answer waits for the results of its calls.
    ToolCalls,
    /// The answer reached the maximum number of tokens.
    MaxTokens,
    /// The model refuses.
    Refusal,
    /// A content filter of the service stopped the answer.
    ContentFilter,
}

/// A simulated fault of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize, strum::IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Fault {
    /// The request is refused with an HTTP status.
    HttpError(HttpError),
    /// The request is refused with 429, as the service refuses requests beyond its rate limit. Then the turn is played.
    RateLimit(RateLimit),
    /// The service is overloaded once: 529 from Anthropic, 503 from others. Then the turn is played.
    Overloaded,
    /// The stream is cut off in the middle. Without a stream, half of the answer is sent.
    Cut,
    /// An error is sent in the middle of the stream. Without a stream, the error is the answer.
    ErrorEvent(ErrorEvent),
    /// The answer is empty.
    Empty,
    /// The model refuses; equivalent to `stop: refusal`.
    Refusal,
    /// A content filter of the service stopped the answer; equivalent to `stop: content-filter`.
    ContentFilter,
    /// The answer reached the maximum number of tokens; equivalent to `stop: max-tokens`.
    MaxTokens,
}

word!(&Fault);

/// A refused request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HttpError {
    /// The HTTP status, 400 or above.
    #[cfg_attr(test, schemars(range(min = 400, max = 599)))]
    pub status: u16,
    /// The error message. Default: the usual one for the status.
    #[serde(default)]
    pub message: Option<String>,
    /// The time in the `retry-after` header. Default: no such header.
    #[serde(default)]
    pub retry_after: Option<Time>,
}

/// A rate limit that a request exceeds.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RateLimit {
    /// The time after which the service asks to retry. Default: the service does not state one.
    pub retry_after: Option<Time>,
    /// The number of requests that are refused. Default: 1.
    pub times: Option<u32>,
    /// The error message. Default: the service's own.
    pub message: Option<String>,
}

/// An error in the middle of a stream.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ErrorEvent {
    /// The error message. Default: `Overloaded`.
    pub message: Option<String>,
}

impl Turn {
    /// Returns the fault of this answer if the fault has already occurred this many times.
    pub fn fault_after(&self, times: u32) -> Option<&Fault> {
        let fault = self.fault.as_ref()?;
        let of_fault = match fault {
            Fault::Overloaded => Some(1),
            Fault::RateLimit(limit) => Some(limit.times.unwrap_or(1)),
            Fault::HttpError(_)
            | Fault::Cut
            | Fault::ErrorEvent(_)
            | Fault::Empty
            | Fault::Refusal
            | Fault::ContentFilter
            | Fault::MaxTokens => None,
        };
        let most = self.fault_times.or(of_fault);
        most.is_none_or(|most| times < most).then_some(fault)
    }

    /// Returns the stop reason.
    pub fn stop(&self) -> Stop {
        match (&self.fault, self.stop) {
            (Some(Fault::Refusal), None) => Stop::Refusal,
            (Some(Fault::ContentFilter), None) => Stop::ContentFilter,
            (Some(Fault::MaxTokens), None) => Stop::MaxTokens,
            (_, Some(stop)) => stop,
            _ if self.calls.is_empty() => Stop::EndTurn,
            _ => Stop::ToolCalls,
        }
    }

    /// Returns the alternatives of the turn, or the turn itself if it has no alternatives.
    pub fn alternatives(&self) -> &[Turn] {
        self.either.as_deref().unwrap_or(std::slice::from_ref(self))
    }

    /// Returns the largest number of calls that the turn makes.
    fn most_calls(&self) -> usize {
        self.alternatives().iter().map(|turn| turn.calls.len()).max().unwrap_or(0)
    }

    /// Returns true if the turn contains a text, thinking or a call to play.
    fn has_content(&self) -> bool {
        self.thinking.is_some() || self.text.is_some() || !self.calls.is_empty()
    }
}

impl Script {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a valid script. All errors are returned.
    pub fn load(path: &Path) -> Result<Self, Vec<YamlError>> {
        Self::parse(path, &yaml::read(path).map_err(|error| vec![error])?)
    }

    /// Parses a script; the path is used in messages.
    ///
    /// # Errors
    /// Returns an error if the text is not a valid script. All errors are returned.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<YamlError>> {
        yaml::parse_all::<Self>(path, text).checked(|script| {
            let mut wrong = Vec::new();
            check::turns(path, text, &[], &script.turns, &mut wrong);
            for (number, sub) in script.sub_agents.iter().enumerate() {
                let steps = [Step::Key("sub-agents"), Step::Item(number)];
                check::turns(path, text, &steps, &sub.turns, &mut wrong);
            }
            wrong
        })
    }

    /// Returns the turns of the conversation with this first user message, and the number of its sub-agent.
    pub fn turns_for(&self, opening: &str) -> (Option<usize>, &[Turn]) {
        let sub = self.sub_agents.iter().enumerate().find(|(_, sub)| sub.when.is_match(opening));
        sub.map_or((None, &self.turns), |(number, sub)| (Some(number), &sub.turns))
    }

    /// Returns the models that the server lists.
    pub fn listed(&self) -> Vec<String> {
        let own = || vec![self.model.clone().unwrap_or_else(|| "scripted".to_owned())];
        self.models.clone().unwrap_or_else(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> String {
        Script::parse(Path::new("x.model.yaml"), text).unwrap_err().first().unwrap().to_string()
    }

    #[test]
    fn everything_a_turn_may_hold_is_read() {
        let text = include_str!("../../tests/trials/gateway/every-key.model.yaml");
        let script = Script::parse(Path::new("x.model.yaml"), text).unwrap();
        assert_eq!(script.turns.len(), 11);
        assert_eq!(script.turns[0].stop(), Stop::ToolCalls);
        assert_eq!(script.turns[0].calls.len(), 7);
        assert!(script.turns[0].calls.iter().all(|call| call.wanted().is_some()));
        let (sub_agent, turns) = script.turns_for("please count the files");
        assert_eq!((sub_agent, turns.len()), (Some(0), 1));
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_place() {
        for (text, place, what) in [
            ("turn: []\n", ":1:1:", "unknown key `turn`"),
            ("turns: []\n", ":1:8:", "there are no turns"),
            ("turns:\n  - txt: hi\n", ":2:5:", "unknown key `txt`"),
            ("turns:\n  - calls: [{wirte: {path: a, text: b}}]\n", ":2:", "unknown key `wirte`"),
            ("turns:\n  - calls: [{write: {path: a}}]\n", ":2:", "the key `text` is missing"),
            ("turns:\n  - calls: [{}]\n", ":2:13:", "the call has no kind"),
            ("turns:\n  - calls: [{read: {path: a}, execute: {command: b}}]\n", ":2:13:", "several kinds"),
            ("turns:\n  - calls: [{read: {path: a}, input: {}}]\n", ":2:13:", "`input` is only for calls with `tool`"),
            ("turns:\n  - {}\n", ":2:5:", "neither a text nor calls"),
            ("turns:\n  - text: a\n    fault: {http-error: {status: 400}}\n", ":3:12:", "never played"),
            (
                "turns:\n  - text: a\n    fault: cut\n    fault-times: 0\n",
                ":4:18:",
                "a fault with `fault-times: 0` never occurs",
            ),
            ("turns:\n  - text: a\n    fault-times: 1\n", ":3:18:", "has no effect without `fault`"),
            ("turns:\n  - fault: {http-error: {status: 200}}\n", ":2:12:", "200 is not an error status"),
            ("turns:\n  - text: a\n    fault: cutt\n", ":3:", "`cutt` is not known"),
            ("turns:\n  - text: a\n    usage: {output: 1, thought: 2}\n", ":3:", "`thought` is greater"),
            ("turns:\n  - text: a\n    delay: soon\n", ":3:", "`soon` is not a length of time"),
            (
                "turns:\n  - text: a\n    when: {result: x}\n",
                ":3:11:",
                "never holds, because there are no results before the first turn",
            ),
            ("turns:\n  - text: a\n  - text: b\n    when: {result: x}\n", ":4:11:", "because turn 0 makes no call"),
            (
                "turns:\n  - text: a\n  - text: b\n    when: {result: x, of: any}\n",
                ":4:11:",
                "because no earlier turn makes a call",
            ),
            (
                "turns:\n  - calls: [{read: {path: a}}]\n  - text: b\n    when: {result: x, of: 1}\n",
                ":4:27:",
                "turn 1 does not come before turn 1",
            ),
            (
                "turns:\n  - calls: [{read: {path: a}}]\n  - text: b\n    when: {result: x, call: 1}\n",
                ":4:29:",
                "because turn 0 makes no call 1; calls are numbered from 0",
            ),
            (
                "turns:\n  - calls: [{read: {path: a}}]\n  - text: b\n    when: {of: any}\n",
                ":4:11:",
                "the condition has neither `result` nor `status`",
            ),
            (
                "turns:\n  - calls: [{read: {path: a}}]\n  - text: b\n    when: {result: x, of: first}\n",
                ":4:",
                "`first` is neither `last` nor `any` nor the number of a turn",
            ),
            (
                "turns:\n  - calls: [{read: {path: a}}]\n  - text: b\n    when: {result: '('}\n",
                ":4:",
                "`(` is not a regular expression",
            ),
            ("turns:\n  - {text: a, either: [{text: b}]}\n", ":2:5:", "a turn with `either` has no other keys"),
            ("turns:\n  - either: []\n", ":2:13:", "there are no alternatives"),
            ("turns:\n  - either: [{either: [{text: a}]}]\n", ":2:23:", "an alternative has no alternatives"),
            (
                "turns:\n  - either:\n      - text: a\n      - text: b\n",
                ":4:9:",
                "never played, because one before it has no `when`",
            ),
            (
                "turns:\n  - calls: [{read: {path: a}}]\n  - either:\n      - {when: {result: x}, text: a}\n      \
                 - {when: {result: x}, text: b}\n",
                ":5:9:",
                "never played, because one before it has the same `when`",
            ),
            ("turns:\n  - either:\n      - {}\n", ":3:9:", "neither a text nor calls"),
            (
                "turns:\n  - text: a\n    fault: {rate-limit: {times: 2}}\n    fault-times: 1\n",
                ":4:18:",
                "both `times` and `fault-times`",
            ),
            ("turns:\n  - text: a\n    fault: {rate-limit: {times: 0}}\n", ":3:12:", "`times: 0` never occurs"),
            ("turns:\n  - calls: [{ask: {options: [a, b]}}]\n", ":2:", "the key `question` is missing"),
            ("turns:\n  - text: a\nsub-agents:\n  - {when: a, turns: []}\n", ":4:", "there are no turns"),
        ] {
            let message = first(text);
            assert!(
                message.starts_with(&format!("x.model.yaml{place}")) && message.contains(what),
                "{text}: {message}"
            );
        }
    }
}
