//! The trace: the events of a trial, in the one portable form that every adapter produces. Pure data, no I/O.
//!
//! A trace is a [`Header`] and a list of [`Event`]s. Only [`recorder::Recorder`] makes one, so its laws hold
//! for every agent: ids are unique, each call has exactly one result, `stop` is last.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::word::word;

pub mod amount;
pub mod calls;
pub mod facts;
pub mod file_globs;
pub mod hashes;
pub mod jsonl;
mod notice_code;
mod permission;
pub mod recorder;
mod request_subject;
mod stop;
pub mod usage;
pub mod view;

pub use notice_code::NoticeCode;
pub use permission::{AskedCall, PermissionOption, PermissionOutcome, PermissionRequest, PermissionResponse};
pub use request_subject::RequestSubject;
pub(crate) use request_subject::{AnnouncedCall, Content, SubjectFacts, subject_in_trace};
pub use stop::{AnswerGap, ErrorCategory, Exit, Stop, StopReason};

/// The version of the trace format that this program writes. Traces of a higher version are refused.
pub const VERSION: u32 = 1;

/// The first line of a trace: the trial it belongs to, and the kinds of events that the session can show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Header {
    /// Always `trace`.
    #[serde(rename = "type", default = "trace_word")]
    #[cfg_attr(test, schemars(extend("const" = "trace")))]
    pub kind: String,
    /// Version of the format.
    pub version: u32,
    /// The case, for a trial of a case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The harness, if one was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The wire protocol of the session.
    pub adapter: String,
    /// Number of the trial, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// The working directory of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The kinds of events that the session can show.
    pub capabilities: Seen,
    /// The requested model and the model that answered.
    #[serde(default)]
    pub model: Model,
    /// The agent, as it identified itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The mode of the session, if it is one in which the agent does not ask for every permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended_mode: Option<String>,
    /// For an agent that gets its prompt when it is started: milliseconds until it reported that it had
    /// started. Absent if it does not report this, and for an agent that gets its prompt over its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// The time for which the engine itself was stopped during the session, in milliseconds. The times of the events include
    /// it, and it is unknown how much of it the agent worked. Absent if the engine was not stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_ms: Option<u64>,
    /// The time at which the trial's session began, after setup, in RFC 3339 and UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// `false` if the recording has no times; every `at_ms` is 0 then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<bool>,
    /// The manifest's `command-title`: the form of titles that are command lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_title: Option<String>,
    /// The manifest's `unshown-tools`: the tools whose calls the agent's protocol never shows, with their kinds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unshown_tools: BTreeMap<String, ToolKind>,
    /// The manifest's `unshown-outcomes`: the kinds of calls that the agent reports as successes even if they failed. The
    /// status `ok` of such a call shows a success only with the exit code 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unshown_outcomes: Vec<ToolKind>,
    /// The origin of a trace that was made from a session that an agent kept on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<KeptSession>,
}

fn trace_word() -> String {
    "trace".to_owned()
}

impl Header {
    /// Makes a header with nothing but its adapter and its capabilities.
    pub fn new(adapter: &str, capabilities: Seen) -> Self {
        Self {
            kind: trace_word(),
            version: VERSION,
            case: None,
            harness: None,
            adapter: adapter.to_owned(),
            trial: None,
            cwd: None,
            capabilities,
            model: Model::default(),
            agent: None,
            unattended_mode: None,
            start_ms: None,
            stopped_ms: None,
            started: None,
            timed: None,
            command_title: None,
            unshown_tools: BTreeMap::new(),
            unshown_outcomes: Vec::new(),
            session: None,
        }
    }

    /// Returns true if the trace has times.
    pub fn is_timed(&self) -> bool {
        self.timed != Some(false)
    }
}

/// A session that an agent kept on disk, as far as its file describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KeptSession {
    /// The agent's id of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The time of the first line, in RFC 3339 and UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// The branch of the repository in which the session began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The commit at which the session began. Files that were not committed are unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// True if the agent reports every command that exits with another code than 0 as an error: a result without an
    /// error then means success, even without an exit code.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_failures: bool,
}

/// The kinds of events that a trace can show. Without `tracing`, no tool call is visible; without `interaction`, no
/// permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Seen {
    /// True if tool calls, thoughts and results are shown.
    pub tracing: bool,
    /// True if the agent asks for permission and accepts an answer.
    pub interaction: bool,
}

/// The model of a session. Either part is absent if unknown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Model {
    /// The model that the user requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// The model that answered, as the agent reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
}

/// The program of a harness, as it identified itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Agent {
    /// The program's name.
    pub name: String,
    /// The program's version, if reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// An event. Fields that all events share are here, the others are in [`Body`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Event {
    /// Position in the trace, from 0 without gaps.
    pub seq: u64,
    /// Milliseconds since the session began, without setup; never decreases.
    pub at_ms: u64,
    /// The kind of event and its fields.
    #[serde(flatten)]
    pub body: Body,
    /// The call that started the sub-agent of this event. Absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// True if the engine made this event on behalf of the agent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host: bool,
}

/// The kind of an event, with its fields.
#[derive(Debug, Clone, PartialEq, Serialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Body {
    /// A message of the user or of the agent.
    Message(Message),
    /// Reasoning that the agent showed.
    Thought {
        /// The text of the thought.
        text: String,
    },
    /// The agent's plan, which replaces the previous one.
    Plan {
        /// The entries of the plan.
        entries: Vec<PlanEntry>,
    },
    /// A tool call, at the position of its first announcement, with its final input.
    ToolCall(ToolCall),
    /// A permission request of the agent.
    PermissionRequest(PermissionRequest),
    /// The answer of the interaction policy.
    PermissionResponse(PermissionResponse),
    /// The end of a tool call. Each call has exactly one.
    ToolResult(ToolResult),
    /// Tokens and cost, as the agent reported them.
    Usage(Usage),
    /// A fact that the engine observed and could not translate into an event.
    Notice {
        /// A code for the kind of notice.
        #[cfg_attr(test, schemars(with = "String"))]
        code: NoticeCode,
        /// The observation, as text.
        text: String,
        /// Line number in the wire log, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u64>,
        /// The part of the session that is therefore missing in the trace. Absent if nothing is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost: Option<Lost>,
        /// The action of the engine for the agent, if no call shows it and nothing else is missing.
        #[serde(skip_serializing_if = "Option::is_none")]
        action: Option<UnseenAction>,
        /// The other name of a file that a call names.
        #[serde(skip_serializing_if = "Option::is_none")]
        link: Option<FollowedLink>,
    },
    /// The end of the session. Each trace has exactly one, as its last event.
    Stop(Stop),
}

word!(&Body);

/// A part of a session that is missing in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// A line, or a part of one, that may have been any event.
    Line,
    /// A text, or the end of one.
    Text,
    /// The speaker of a text: a message of the agent may hold a text that is not the agent's, or that the agent withdrew.
    Speaker,
    /// A call: the agent did something, or asked for permission to, and no call of the trace shows it.
    Call,
    /// The outcome of a call: the agent reported another one than the event shows.
    Outcome,
    /// The speaker of a call: a call that is shown as the main agent's is one of a sub-agent.
    Caller,
}

/// A file that the engine read or wrote for the agent, and that no call shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnseenAction {
    /// The kind of call that would show it.
    pub kind: ToolKind,
    /// The file, relative to the workspace if it lies in it.
    pub path: String,
}

/// A path of a call that leads to another file, because a part of it is a link, or because the call may have moved the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FollowedLink {
    /// The kind of the call.
    pub kind: ToolKind,
    /// The path that the call names, relative to the workspace if it lies in it.
    pub path: String,
    /// The file to which it leads, relative to the workspace if it lies in it.
    pub to: String,
    /// True if no link leads there: the call may have moved the file, and the agent does not show to which path.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
}

impl FollowedLink {
    /// Returns why the name of the file is in doubt, as a sentence.
    pub fn doubt(&self) -> &'static str {
        if self.moved {
            "a call may have moved a file, and the agent does not show to which path"
        } else {
            "a call names a file by a link, which leads to another one"
        }
    }
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The user, or the engine in place of the user.
    User,
    /// The agent.
    Agent,
}

/// A message of the user or the agent, with all of its pieces.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Message {
    /// The sender.
    pub role: Role,
    /// The text; chunks are joined.
    pub text: String,
    /// Content that is not text: images, audio, resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// Content of a message that is not text. Its bytes are only in the wire log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Attachment {
    /// `image`, `audio`, `resource`, `resource_link` or the agent's own word.
    pub kind: String,
    /// The media type, such as `image/png`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The URI, for links and resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Length of the data on the wire, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// An entry of the agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanEntry {
    /// The task.
    pub text: String,
    /// `pending`, `in_progress`, `completed` or the agent's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `high`, `medium`, `low` or the agent's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}

/// The kind of a tool, in ACP's words, independent of the agent's own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes or creates files.
    Edit,
    /// Deletes files or data.
    Delete,
    /// Moves or renames files.
    Move,
    /// Searches for information.
    Search,
    /// Runs a command or code.
    Execute,
    /// Reasons, plans or delegates.
    Think,
    /// The tool retrieves data from outside.
    Fetch,
    /// Changes the session's mode.
    SwitchMode,
    /// Anything else.
    Other,
}

word!(ToolKind);

impl ToolKind {
    /// Returns true if calls of this kind change the files that they name.
    pub fn changes_files(self) -> bool {
        matches!(self, ToolKind::Edit | ToolKind::Delete | ToolKind::Move)
    }

    /// Every kind, in the order of the documentation.
    pub const ALL: &'static [ToolKind] = ToolKind::VARIANTS;

    /// Returns the kind with this word, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        word.parse().ok()
    }
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The agent's own id, made unique if necessary.
    pub call: String,
    /// The step (round of calls) that the call belongs to, from 0 in the order of each step's first call.
    pub step: u64,
    /// The kind of the tool.
    pub kind: ToolKind,
    /// True if the kind is unknown: the agent gave a word or a value that is no kind, or nothing that the kind follows
    /// from. `kind` is `other` then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unknown_kind: bool,
    /// The agent's name of the tool. Absent if not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The agent's title of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The final, merged arguments. Absent if the agent never showed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// True if the agent showed that the call has no arguments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_input: bool,
    /// Files that the agent reports for the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
    /// The folder in which the call ran, if the session shows the folder of each call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
}

impl ToolCall {
    /// Returns the arguments that the agent showed: an empty object if it showed that there are none.
    pub fn shown_input(&self) -> Option<&Value> {
        static NONE: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Value::Object(serde_json::Map::new()));
        self.input.as_ref().or_else(|| self.without_input.then(|| &*NONE))
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Location {
    /// The path, as the agent wrote it.
    pub path: String,
    /// The number of the line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CallStatus {
    /// The call was executed and succeeded.
    Ok,
    /// The call was executed and failed, or exited with a code other than 0.
    Error,
    /// The call was refused.
    Denied,
    /// The call's turn or its permission request was cancelled, or the agent withdrew the call before a result.
    Cancelled,
    /// The agent did not report the end of the call.
    Unfinished,
}

word!(CallStatus);

impl CallStatus {
    /// Returns true if the call was executed, as far as known.
    pub fn carried_out(self) -> bool {
        matches!(self, CallStatus::Ok | CallStatus::Error | CallStatus::Unfinished)
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The call that ended.
    pub call: String,
    /// The outcome of the call.
    pub status: CallStatus,
    /// The output as text. Absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Changes to files that the agent reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
    /// Exit code of a command, if the agent reported it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// True if the output was truncated: the agent reports it, or it was longer than a text of the trace can be.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// True if the agent reports that the call completed, although it was rejected or cancelled: whether it was carried out is
    /// unknown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub contested: bool,
}

impl ToolResult {
    /// Makes the result of a call whose end was never reported.
    pub fn unfinished(call: &str) -> Self {
        Self {
            call: call.to_owned(),
            status: CallStatus::Unfinished,
            output: None,
            diffs: Vec::new(),
            exit_code: None,
            truncated: false,
            contested: false,
        }
    }
}

/// A change to one file, as the agent reported it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FileDiff {
    /// The path, as the agent wrote it.
    pub path: String,
    /// The text before the change. Absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The text after the change. Absent if the file was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// The scope of a usage report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// The usage of a single model call.
    Call,
    /// The usage of a single prompt.
    Turn,
    /// The session so far.
    Session,
}

/// Tokens and cost. Figures that the agent did not report are absent, never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    /// The scope of the report.
    pub scope: UsageScope,
    /// Input tokens, without cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, including thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Tokens of thoughts; part of `output_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    /// Cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens that are currently in the model's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// Size of the model's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// All tokens, as summed by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The model that used the tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The source of the figures if it is not the agent: `priced` for a price table, `gateway` for the model's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The figures above that are lower bounds, because a part of them is known to be missing. `cost_usd` without a cost
    /// means that the report had a cost that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<usage::Measure>,
}

impl Usage {
    /// Makes an empty report.
    pub fn of(scope: UsageScope) -> Self {
        Self {
            scope,
            input_tokens: None,
            output_tokens: None,
            cache_read_tokens: None,
            cache_write_tokens: None,
            thought_tokens: None,
            cost_usd: None,
            context_used: None,
            context_size: None,
            total_tokens: None,
            model: None,
            source: None,
            lower_bounds: Vec::new(),
        }
    }

    /// Marks these figures as lower bounds, if the report contains them.
    pub fn at_least(&mut self, measures: impl IntoIterator<Item = usage::Measure>) {
        for measure in measures {
            if usage::holds(self, measure) && !self.lower_bounds.contains(&measure) {
                self.lower_bounds.push(measure);
            }
        }
        self.lower_bounds.sort_unstable();
    }

    /// Marks that the report had a cost that could not be read: the total is a lower bound.
    pub fn lacks_cost(&mut self) {
        if !self.lower_bounds.contains(&usage::Measure::CostUsd) {
            self.lower_bounds.push(usage::Measure::CostUsd);
        }
    }

    /// Returns true if every figure is absent or zero. Such a report is ignored.
    pub fn says_nothing(&self) -> bool {
        let zero = |n: Option<u64>| n.unwrap_or(0) == 0;
        let has_unread_cost = self.cost_usd.is_none() && self.lower_bounds.contains(&usage::Measure::CostUsd);
        !has_unread_cost
            && zero(self.input_tokens)
            && zero(self.output_tokens)
            && zero(self.cache_read_tokens)
            && zero(self.cache_write_tokens)
            && zero(self.thought_tokens)
            && zero(self.total_tokens)
            && zero(self.context_used)
            && self.cost_usd.unwrap_or(0.0) == 0.0
    }
}
