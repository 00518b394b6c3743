//! The demo agent's script: its YAML form, and a parser that reports the place of each error.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use strum::IntoStaticStr;

use crate::word::word;
use crate::yaml::{self, YamlError};
use serde::de::{Deserializer, Error as _};

use crate::values::Time;

const DEFAULT_MODEL: &str = "demo-1";

/// The actions of the demo agent, prompt by prompt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Script {
    /// The model that the demo agent reports. Default: the first of `models`, or `demo-1`.
    #[serde(default)]
    pub model: Option<String>,
    /// The models that the demo agent accepts. Default: any.
    #[serde(default)]
    pub models: Option<Vec<String>>,
    /// The turns, one per prompt, in order.
    #[serde(default)]
    pub turns: Option<Vec<Turn>>,
    /// The steps of a single turn, instead of `turns`.
    #[serde(default)]
    pub steps: Option<Vec<Step>>,
}

/// The demo agent's response to one prompt.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Turn {
    /// The steps of the turn, in order.
    pub steps: Vec<Step>,
}

/// An action of the demo agent.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Sends a thought.
    Thought(String),
    /// Sends a message.
    Say(String),
    /// Sends a plan.
    Plan(Vec<PlanLine>),
    /// Reads a file.
    Read(Read),
    /// Searches files for a plain text.
    Search(Search),
    /// Writes a file.
    Write(Write),
    /// Replaces a text that occurs once in a file.
    Edit(Edit),
    /// Deletes a file or a folder.
    Delete(Delete),
    /// Moves a file.
    Move(Move),
    /// Runs a command.
    Run(Run),
    /// Reports that it fetched a URL. Nothing is fetched.
    Fetch(Fetch),
    /// Asks the user a question, if the protocol supports it.
    Question(Question),
    /// Makes several calls at once.
    Parallel(#[serde(deserialize_with = "only_calls")] Vec<Step>),
    /// Adds token counts and cost to the usage of the turn.
    Usage(UsageStep),
    /// Sleeps for this time.
    Sleep(Time),
    /// Ends the turn with this stop reason.
    Stop(String),
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Question {
    /// The text of the question.
    pub message: String,
    /// The possible answers. An empty list allows any text.
    #[serde(default)]
    pub options: Vec<String>,
    /// The steps to play for each answer. If empty, the answer is sent as a message.
    #[serde(default)]
    pub when: BTreeMap<String, Vec<Step>>,
    /// The steps to play for any other answer, or if there is no answer.
    #[serde(default)]
    pub otherwise: Vec<Step>,
}

/// An entry of the plan.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlanLine {
    /// The task.
    pub text: String,
    /// The status of the task.
    #[serde(default)]
    pub status: PlanStatus,
    /// The priority of the task.
    #[serde(default)]
    pub priority: PlanPriority,
}

/// The status of a plan entry, in ACP's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PlanStatus {
    /// Not started.
    #[default]
    Pending,
    /// The agent works on this item.
    InProgress,
    /// Completed.
    Completed,
}

word!(PlanStatus);

/// The priority of a plan entry, in ACP's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PlanPriority {
    /// High priority.
    High,
    /// Medium priority.
    #[default]
    Medium,
    /// Low priority.
    Low,
}

word!(PlanPriority);

/// The options that every tool call takes.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    /// True if the agent asks for permission first, if the protocol supports it.
    pub ask: bool,
    /// The name of the tool, if not its default name.
    pub name: Option<&'a str>,
    /// The title of the call, if not the default title.
    pub title: Option<&'a str>,
    /// The text with which the call fails. A failing call has no other effect.
    pub fails: Option<&'a str>,
    /// The steps to play if permission is refused.
    pub otherwise: &'a [Step],
}

/// Declares a tool step: its own keys, and those that every call takes. The common keys are repeated in each
/// struct so that an unknown key is reported at its place.
macro_rules! tool_steps {
    ($($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $key:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($(#[$note])* pub $key: $type,)*
            /// If `true`, asks for permission first, if the protocol supports it.
            #[serde(default)]
            pub ask: bool,
            /// The name of the tool, instead of its default name.
            #[serde(default)]
            pub name: Option<String>,
            /// The title of the call, instead of the default title.
            #[serde(default)]
            pub title: Option<String>,
            /// The text with which the call fails. A failing call has no other effect.
            #[serde(default)]
            pub fails: Option<String>,
            /// The steps to play if permission is refused.
            #[serde(default)]
            pub otherwise: Vec<Step>,
        }

        impl $name {
            /// Returns the options of the call.
            pub fn manner(&self) -> Manner<'_> {
                Manner {
                    ask: self.ask,
                    name: self.name.as_deref(),
                    title: self.title.as_deref(),
                    fails: self.fails.as_deref(),
                    otherwise: &self.otherwise,
                }
            }
        }
    )*};
}

tool_steps! {
    /// Reads a file. The result is its content.
    Read {
        /// The file, relative to the workspace.
        path: String,
        /// The first line to read, from 1.
        #[serde(default)]
        line: Option<u64>,
        /// The number of lines to read.
        #[serde(default)]
        limit: Option<u64>,
        /// If `true`, the client reads the file, if the protocol supports it and the client offers it.
        #[serde(default)]
        client: bool,
    }

    /// Searches files for a plain text. The result lists `path:line:text`.
    Search {
        /// The text to look for.
        pattern: String,
        /// The file or folder to search.
        #[serde(default = "here")]
        path: String,
    }

    /// Writes a file, and replaces an existing one.
    Write {
        /// The file.
        path: String,
        /// The complete text of the file.
        text: String,
        /// If `true`, the client writes the file, if the protocol supports it and the client offers it.
        #[serde(default)]
        client: bool,
    }

    /// Replaces a text that occurs exactly once in a file. Otherwise the call fails.
    Edit {
        /// The file.
        path: String,
        /// The text to replace.
        old: String,
        /// The replacement.
        new: String,
    }

    /// Deletes a file or a folder.
    Delete {
        /// The file or folder to delete.
        path: String,
    }

    /// Moves a file or a folder.
    Move {
        /// The current path.
        from: String,
        /// The new path.
        to: String,
    }

    /// Runs a command with `sh -c` in the workspace. The result is its output and exit code.
    Run {
        command: String,
        /// If `true`, the client runs the command, if the protocol supports it and the client offers it.
        #[serde(default)]
        client: bool,
    }

    /// Reports that it fetched a URL. Nothing is fetched.
    Fetch {
        url: String,
        /// The text that the fetch returns.
        #[serde(default)]
        output: String,
    }
}

fn here() -> String {
    ".".to_owned()
}

/// The usage of a model call. All usage steps of a turn are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UsageStep {
    /// Input tokens, without cached ones.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// Output tokens.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// Tokens read from the cache.
    #[serde(default)]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to the cache.
    #[serde(default)]
    pub cache_write_tokens: Option<u64>,
    /// Cost in US dollars.
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

impl Script {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a valid demo script. All errors are returned.
    pub fn load(path: &Path) -> Result<Self, Vec<YamlError>> {
        Self::parse(path, &yaml::read(path).map_err(|error| vec![error])?)
    }

    /// Parses a script; the path is used in messages.
    ///
    /// # Errors
    /// Returns an error if the text is not a valid demo script. All errors are returned.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Vec<YamlError>> {
        yaml::parse_all::<Self>(path, text).checked(|script| {
            let wrong = |message: &str| vec![YamlError::at(path, text, Some(0..text.len().min(1)), message)];
            match (&script.turns, &script.steps) {
                (Some(_), Some(_)) => wrong("a script has `turns` or `steps`, not both"),
                (None, None) => wrong("a script needs `turns`, or `steps` for a single turn"),
                _ => Vec::new(),
            }
        })
    }

    /// Returns the steps for a prompt, counted from 0; `None` after the last turn.
    pub fn turn(&self, number: usize) -> Option<&[Step]> {
        match (&self.turns, &self.steps) {
            (Some(turns), _) => turns.get(number).map(|turn| turn.steps.as_slice()),
            (None, Some(steps)) if number == 0 => Some(steps),
            _ => None,
        }
    }

    /// Returns the model that the script plays if none is asked for.
    pub fn own_model(&self) -> &str {
        let first = self.models.as_ref().and_then(|models| models.first());
        self.model.as_ref().or(first).map_or(DEFAULT_MODEL, String::as_str)
    }

    pub fn accepts(&self, model: &str) -> bool {
        self.models.as_ref().is_none_or(|models| models.iter().any(|known| known == model))
    }
}

fn only_calls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Step>, D::Error> {
    let steps = Vec::<Step>::deserialize(deserializer)?;
    if steps.iter().all(|step| step.tool().is_some()) {
        Ok(steps)
    } else {
        Err(D::Error::custom("`parallel` holds tool calls only"))
    }
}

/// A tool step, by its tool.
#[derive(Debug, Clone, Copy)]
pub enum Tool<'a> {
    /// Reads a file.
    Read(&'a Read),
    /// Searches for a text.
    Search(&'a Search),
    /// Writes a file.
    Write(&'a Write),
    /// Changes a file.
    Edit(&'a Edit),
    /// Deletes a file.
    Delete(&'a Delete),
    /// Moves a file.
    Move(&'a Move),
    /// Runs a command.
    Run(&'a Run),
    /// Reports that it fetched a URL.
    Fetch(&'a Fetch),
}

impl Step {
    /// Returns the tool of a step that is a call.
    pub fn tool(&self) -> Option<Tool<'_>> {
        Some(match self {
            Step::Read(step) => Tool::Read(step),
            Step::Search(step) => Tool::Search(step),
            Step::Write(step) => Tool::Write(step),
            Step::Edit(step) => Tool::Edit(step),
            Step::Delete(step) => Tool::Delete(step),
            Step::Move(step) => Tool::Move(step),
            Step::Run(step) => Tool::Run(step),
            Step::Fetch(step) => Tool::Fetch(step),
            Step::Thought(_)
            | Step::Say(_)
            | Step::Plan(_)
            | Step::Question(_)
            | Step::Parallel(_)
            | Step::Usage(_)
            | Step::Sleep(_)
            | Step::Stop(_) => return None,
        })
    }
}

impl<'a> Tool<'a> {
    /// Returns true if the client is to perform the call.
    pub fn by_client(self) -> bool {
        match self {
            Tool::Read(step) => step.client,
            Tool::Write(step) => step.client,
            Tool::Run(step) => step.client,
            Tool::Search(_) | Tool::Edit(_) | Tool::Delete(_) | Tool::Move(_) | Tool::Fetch(_) => false,
        }
    }

    /// Returns the options of the call.
    pub fn manner(self) -> Manner<'a> {
        match self {
            Tool::Read(step) => step.manner(),
            Tool::Search(step) => step.manner(),
            Tool::Write(step) => step.manner(),
            Tool::Edit(step) => step.manner(),
            Tool::Delete(step) => step.manner(),
            Tool::Move(step) => step.manner(),
            Tool::Run(step) => step.manner(),
            Tool::Fetch(step) => step.manner(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Script, YamlError> {
        Script::parse(Path::new("x.demo.yaml"), text).map_err(|errors| errors.into_iter().next().unwrap())
    }

    #[test]
    fn every_kind_of_step_is_read() {
        let script = parse(include_str!("../../tests/demo/every-step.demo.yaml")).unwrap();
        let words: Vec<&Step> = script.turn(0).unwrap().iter().collect();
        assert_eq!(words.len(), 19);
        assert!(script.turn(1).is_none());
        assert_eq!(script.own_model(), "demo-1");
        assert!(script.accepts("demo-2") && !script.accepts("demo-3"));
    }

    #[test]
    fn a_script_without_models_takes_any() {
        let script = parse("steps: []").unwrap();
        assert!(script.accepts("whatever"));
        assert_eq!(script.own_model(), "demo-1");
        assert_eq!(script.turn(0), Some(&[][..]));
    }

    #[test]
    fn editors_get_a_schema() {
        let schema = serde_json::to_value(schemars::schema_for!(Script)).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        let definitions = &schema["$defs"];
        assert!(definitions["UsageStep"]["properties"]["cache-read-tokens"].is_object(), "{definitions}");
        assert!(definitions["Write"]["properties"]["otherwise"].is_object(), "{definitions}");
    }

    #[test]
    fn what_is_wrong_is_shown_with_its_place() {
        for (text, place, what) in [
            ("steps:\n  - say: hi\n  - shout: hi\n", ":3:", "`shout` is not known"),
            ("steps:\n  - write: {path: a, txt: b}\n", ":2:", "unknown key `txt`"),
            ("steps:\n  - read: {}\n", ":2:", "the key `path` is missing"),
            ("steps:\n  - sleep: soon\n", ":2:", "`soon` is not a length of time"),
            ("steps:\n  - parallel:\n      - say: hi\n", ":2:", "tool calls only"),
            ("steps:\n  - usage: {input-tokens: many}\n", ":2:", "must be a whole number"),
            ("model: [\n", ":2:1:", "this is not YAML"),
            ("turns: [{steps: [}]\n", ":1:18:", "this is not YAML"),
            ("model: demo-1\n", ":1:1:", "needs `turns`"),
            ("turns: []\nsteps: []\n", ":1:1:", "not both"),
            ("", ":1:1:", "the file is empty"),
        ] {
            let message = parse(text).unwrap_err().to_string();
            let start = format!("x.demo.yaml{place}");
            assert!(message.starts_with(&start) && message.contains(what), "{text:?} gave {message}");
        }
    }
}
