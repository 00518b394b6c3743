//! The scripted model's script: its YAML form, and a parser that reports the place of each error.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::values::{Pattern, Time};
use crate::yaml::{self, Part, Step, YamlError};

/// The answers of a scripted model, turn by turn.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
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
    /// Conversations of sub-agents, which have turns of their own.
    #[serde(default)]
    pub sub_agents: Vec<SubAgent>,
}

/// The treatment of requests that offer no tools. Agents make such requests for titles, summaries and the like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutTools {
    /// Requests without tools are answered aside: with a few words, and without using a turn.
    #[default]
    Aside,
    /// Requests without tools use a turn like others: for agents that have no tools at all.
    Play,
}

/// The turns of a sub-agent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SubAgent {
    /// The pattern that selects the conversation: it must be found in the first user message.
    pub when: Pattern,
    /// The answers, in the order of that conversation.
    pub turns: Vec<Turn>,
}

/// An answer of the model.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Turn {
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
    /// The model name in the response, instead of the script's `model`.
    pub model: Option<String>,
    /// A fault that is simulated.
    pub fault: Option<Fault>,
    /// The number of times the fault occurs before the turn is played without it. Default: always; once for
    /// `overloaded`.
    pub fault_times: Option<u32>,
}

/// A call by its kind, or by the name of the agent's own tool. Exactly one of the kinds and `tool` is required.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
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
    /// The agent's own name of a tool.
    pub tool: Option<String>,
    /// The input of `tool`, passed on unchanged except that `{workspace}` in its texts is replaced.
    pub input: Option<Value>,
}

/// Writes a file, and replaces an existing one.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The file, relative to the workspace.
    pub path: String,
    /// The complete text of the file.
    pub text: String,
}

/// Reads a file.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The file, relative to the workspace.
    pub path: String,
}

/// Replaces a text in a file.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// The command line, run by a shell.
    pub command: String,
}

/// Searches files for a text.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The regular expression to search for.
    pub pattern: String,
    /// The file or folder to search, relative to the workspace. Default: the whole workspace.
    #[serde(default)]
    pub path: Option<String>,
}

/// A call of a script, by its kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted<'a> {
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
    /// Calls a tool by its name.
    Tool(&'a str, Option<&'a Value>),
}

impl ScriptedCall {
    /// Returns the call, or `None` if it names no kind.
    pub fn wanted(&self) -> Option<Wanted<'_>> {
        None.or(self.write.as_ref().map(Wanted::Write))
            .or(self.read.as_ref().map(Wanted::Read))
            .or(self.edit.as_ref().map(Wanted::Edit))
            .or(self.execute.as_ref().map(Wanted::Execute))
            .or(self.search.as_ref().map(Wanted::Search))
            .or(self.tool.as_deref().map(|name| Wanted::Tool(name, self.input.as_ref())))
    }

    fn kinds(&self) -> usize {
        let named = [
            self.write.is_some(),
            self.read.is_some(),
            self.edit.is_some(),
            self.execute.is_some(),
            self.search.is_some(),
            self.tool.is_some(),
        ];
        named.into_iter().filter(|named| *named).count()
    }
}

/// The token usage of an answer, counted as in the trace: no token is counted twice, except thoughts, which are
/// part of the output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The request is refused with an HTTP status.
    HttpError(HttpError),
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

/// A refused request.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HttpError {
    /// The HTTP status, 400 or above.
    #[schemars(range(min = 400, max = 599))]
    pub status: u16,
    /// The error message.
    #[serde(default)]
    pub message: Option<String>,
    /// The `retry-after` time.
    #[serde(default)]
    pub retry_after: Option<Time>,
}

/// An error in the middle of a stream.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ErrorEvent {
    /// The error message.
    pub message: Option<String>,
}

impl Turn {
    /// Returns the fault of this answer if the fault has already occurred this many times.
    pub fn fault_after(&self, times: u32) -> Option<&Fault> {
        let fault = self.fault.as_ref()?;
        let most = self.fault_times.or((*fault == Fault::Overloaded).then_some(1));
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

    /// Returns true if the turn has something to play.
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
            check_turns(path, text, &[], &script.turns, &mut wrong);
            for (number, sub) in script.sub_agents.iter().enumerate() {
                let steps = [Step::Key("sub-agents"), Step::Item(number)];
                check_turns(path, text, &steps, &sub.turns, &mut wrong);
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

fn check_turns(path: &Path, text: &str, steps: &[Step<'_>], turns: &[Turn], wrong: &mut Vec<YamlError>) {
    let under =
        |more: &[Step<'static>]| -> Vec<Step<'_>> { steps.iter().copied().chain(more.iter().copied()).collect() };
    let mut add = |more: &[Step<'static>], message: String, help: &str| {
        wrong.push(YamlError::at_steps(path, text, &under(more), Part::Value, message).with_help(help));
    };
    if turns.is_empty() {
        add(&[Step::Key("turns")], "there are no turns".to_owned(), "write at least one, such as `- text: Hello.`");
    }
    for (number, turn) in turns.iter().enumerate() {
        let at = [Step::Key("turns"), Step::Item(number)];
        let key = |key: &'static str| [at[0], at[1], Step::Key(key)];
        let replaced = matches!(turn.fault, Some(Fault::Empty | Fault::HttpError(_))) && turn.fault_times.is_none();
        match (turn.has_content(), replaced) {
            (false, false) if !matches!(turn.fault, Some(Fault::Refusal | Fault::ContentFilter)) => add(
                &at,
                "the turn has neither a text nor calls".to_owned(),
                "write `text`, `thinking` or `calls`, or `fault: empty` for an empty answer",
            ),
            (true, true) => add(
                &key("fault"),
                "the turn's content is never played, because this fault always replaces it".to_owned(),
                "remove the rest of the turn, or limit the fault with `fault-times`",
            ),
            _ => {}
        }
        for (call_number, call) in turn.calls.iter().enumerate() {
            let call_at = [at[0], at[1], Step::Key("calls"), Step::Item(call_number)];
            if call.kinds() != 1 {
                let what = if call.kinds() == 0 { "no kind" } else { "several kinds" };
                let message = format!("the call has {what}");
                let help = "write one of `write`, `read`, `edit`, `execute`, `search` and `tool` for each call";
                add(&call_at, message, help);
            } else if call.input.is_some() && call.tool.is_none() {
                let message = "`input` is only for calls with `tool`".to_owned();
                add(&call_at, message, "write the settings of other calls below their kind");
            }
        }
        if turn.usage.is_some_and(|usage| usage.thought > usage.output) {
            let message = "`thought` is greater than `output`, which includes it".to_owned();
            add(&key("usage"), message, "write an `output` that includes the thought tokens");
        }
        if let Some(Fault::HttpError(HttpError { status, .. })) = &turn.fault
            && !(400..600).contains(status)
        {
            let message = format!("{status} is not an error status");
            add(&key("fault"), message, "write a status from 400 to 599");
        }
        match (turn.fault_times, &turn.fault) {
            (Some(_), None) => {
                add(&key("fault-times"), "`fault-times` has no effect without `fault`".to_owned(), "write a `fault`")
            }
            (Some(0), Some(_)) => {
                add(&key("fault-times"), "a fault with `fault-times: 0` never occurs".to_owned(), "remove the fault");
            }
            _ => {}
        }
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
        assert_eq!(script.turns.len(), 9);
        assert_eq!(script.turns[0].stop(), Stop::ToolCalls);
        assert_eq!(script.turns[0].calls.len(), 6);
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
