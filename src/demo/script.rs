//! The demo agent's script: its YAML form and its reading, with the place of whatever is wrong in it.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::yaml::{self, YamlError};
use serde::de::{Deserializer, Error as _};

use crate::values::Time;

/// The model a script plays where it names none.
pub const DEFAULT_MODEL: &str = "demo-1";

/// What the demo agent does, prompt by prompt.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Script {
    /// The model the demo says it is; `demo-1` where nothing is said.
    #[serde(default)]
    pub model: Option<String>,
    /// The models it accepts; any where the list is absent.
    #[serde(default)]
    pub models: Option<Vec<String>>,
    /// One entry for each prompt, in order.
    #[serde(default)]
    pub turns: Option<Vec<Turn>>,
    /// The steps of a single turn, in the place of `turns`.
    #[serde(default)]
    pub steps: Option<Vec<Step>>,
}

/// What is done for one prompt.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Turn {
    /// Its steps, in order.
    pub steps: Vec<Step>,
}

/// One thing the demo agent does.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Shows a thought.
    Thought(String),
    /// Says something.
    Say(String),
    /// Shows its plan.
    Plan(Vec<PlanLine>),
    /// Reads a file.
    Read(Read),
    /// Looks for a plain text in files.
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
    /// Says that it fetched something.
    Fetch(Fetch),
    /// Asks the user something, where the protocol can.
    Question(Question),
    /// Makes several calls at once.
    Parallel(#[serde(deserialize_with = "only_calls")] Vec<Step>),
    /// Adds to the figures of the turn.
    Usage(UsageStep),
    /// Does nothing for a while.
    Sleep(Time),
    /// Ends the turn, with this stop reason.
    Stop(String),
}

/// A question to the user.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Question {
    /// What is asked.
    pub message: String,
    /// What may be answered; any text where the list is empty.
    #[serde(default)]
    pub options: Vec<String>,
    /// What is played for an answer. Without any the answer is said.
    #[serde(default)]
    pub when: BTreeMap<String, Vec<Step>>,
    /// What is played for any other answer, and where there is none.
    #[serde(default)]
    pub otherwise: Vec<Step>,
}

/// A line of the plan.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PlanLine {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    #[serde(default)]
    pub status: PlanStatus,
    /// How much it matters.
    #[serde(default)]
    pub priority: PlanPriority,
}

/// How far a line of the plan is, in ACP's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Begun.
    InProgress,
    /// Done.
    Completed,
}

impl PlanStatus {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "in_progress",
            PlanStatus::Completed => "completed",
        }
    }
}

/// How much a line of the plan matters, in ACP's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlanPriority {
    /// Much.
    High,
    /// Some.
    #[default]
    Medium,
    /// Little.
    Low,
}

impl PlanPriority {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            PlanPriority::High => "high",
            PlanPriority::Medium => "medium",
            PlanPriority::Low => "low",
        }
    }
}

/// How a call is made, whatever its tool.
#[derive(Debug, Clone, Copy)]
pub struct Manner<'a> {
    /// Asks for permission first, where the protocol can.
    pub ask: bool,
    /// What the tool is called, where not by its usual name.
    pub name: Option<&'a str>,
    /// The line for people, where not the usual one.
    pub title: Option<&'a str>,
    /// The text with which the call fails; nothing is done then.
    pub fails: Option<&'a str>,
    /// What is played where permission was refused.
    pub otherwise: &'a [Step],
}

/// A tool step: its own keys, and those that every call takes. Written out for each, so that an unknown key is
/// refused where it stands.
macro_rules! tool_steps {
    ($($(#[$doc:meta])* $name:ident { $($(#[$note:meta])* $key:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $name {
            $($(#[$note])* pub $key: $type,)*
            /// Asks for permission first, where the protocol can.
            #[serde(default)]
            pub ask: bool,
            /// What the tool is called, where not by its usual name.
            #[serde(default)]
            pub name: Option<String>,
            /// The line for people, where not the usual one.
            #[serde(default)]
            pub title: Option<String>,
            /// The call fails with this text, and nothing is done.
            #[serde(default)]
            pub fails: Option<String>,
            /// What is played where permission was refused.
            #[serde(default)]
            pub otherwise: Vec<Step>,
        }

        impl $name {
            /// How the call is made.
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
    /// Reads a file; its content is the result.
    Read {
        /// The file, relative to the workspace.
        path: String,
        /// The first line of it that is read, from 1.
        #[serde(default)]
        line: Option<u64>,
        /// How many lines are read.
        #[serde(default)]
        limit: Option<u64>,
        /// The client does it, where the protocol has that and the client offers it.
        #[serde(default)]
        client: bool,
    }

    /// Looks for a plain text in files; the result lists `path:line:text`.
    Search {
        /// The text to look for.
        pattern: String,
        /// Where to look: a file or a folder.
        #[serde(default = "here")]
        path: String,
    }

    /// Writes a file, new or in the place of what it held.
    Write {
        /// The file.
        path: String,
        /// All of its text.
        text: String,
        /// The client does it, where the protocol has that and the client offers it.
        #[serde(default)]
        client: bool,
    }

    /// Replaces a text that occurs exactly once in a file; otherwise the call fails.
    Edit {
        /// The file.
        path: String,
        /// The text that is there.
        old: String,
        /// The text in its place.
        new: String,
    }

    /// Deletes a file or a folder.
    Delete {
        /// Which.
        path: String,
    }

    /// Moves a file or a folder.
    Move {
        /// From where.
        from: String,
        /// To where.
        to: String,
    }

    /// Runs a command with `sh -c` in the workspace; its output and exit code are the result.
    Run {
        /// The command.
        command: String,
        /// The client does it, where the protocol has that and the client offers it.
        #[serde(default)]
        client: bool,
    }

    /// Says that it fetched something. Nothing is fetched.
    Fetch {
        /// The address it names.
        url: String,
        /// What it says came back.
        #[serde(default)]
        output: String,
    }
}

fn here() -> String {
    ".".to_owned()
}

/// What a model call would have used. All usage steps of a turn are summed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UsageStep {
    /// Tokens sent, without cached ones.
    #[serde(default)]
    pub input_tokens: Option<u64>,
    /// Tokens received.
    #[serde(default)]
    pub output_tokens: Option<u64>,
    /// Tokens read from the cache.
    #[serde(default)]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to the cache.
    #[serde(default)]
    pub cache_write_tokens: Option<u64>,
    /// Money in US dollars.
    #[serde(default)]
    pub cost_usd: Option<f64>,
}

impl Script {
    /// Reads a script from its file.
    ///
    /// # Errors
    /// The file cannot be read, or is no demo script: everything that is wrong in it.
    pub fn load(path: &Path) -> Result<Self, Vec<YamlError>> {
        Self::parse(path, &yaml::read(path).map_err(|error| vec![error])?)
    }

    /// Reads a script from its text; the path is for messages.
    ///
    /// # Errors
    /// The text is no demo script: everything that is wrong in it.
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

    /// The steps for a prompt, counted from 0; `None` beyond the last turn.
    pub fn turn(&self, number: usize) -> Option<&[Step]> {
        match (&self.turns, &self.steps) {
            (Some(turns), _) => turns.get(number).map(|turn| turn.steps.as_slice()),
            (None, Some(steps)) if number == 0 => Some(steps),
            _ => None,
        }
    }

    /// The model it plays where none is asked for.
    pub fn own_model(&self) -> &str {
        let first = self.models.as_ref().and_then(|models| models.first());
        self.model.as_ref().or(first).map_or(DEFAULT_MODEL, String::as_str)
    }

    /// Whether it can play a model.
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
    /// Looks for a text.
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
    /// Says that it fetched something.
    Fetch(&'a Fetch),
}

impl Step {
    /// The tool of a step that is a call.
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
            _ => return None,
        })
    }
}

impl<'a> Tool<'a> {
    /// Whether the client is to do it.
    pub fn by_client(self) -> bool {
        match self {
            Tool::Read(step) => step.client,
            Tool::Write(step) => step.client,
            Tool::Run(step) => step.client,
            _ => false,
        }
    }

    /// How the call is made.
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
