//! The Trace: what happened in a Trial, in the one portable form every Adapter produces. Pure data, no I/O.
//!
//! A Trace is a [`Header`] and a list of [`Event`]s. Only [`recorder::Recorder`] makes one, so its
//! laws hold for every agent: ids are unique, each call has exactly one result, `stop` is last.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub mod amount;
pub mod calls;
pub mod facts;
pub mod jsonl;
pub mod recorder;
pub mod usage;
pub mod view;

/// The version of the Trace format that this program writes; it refuses to read a higher one.
pub const VERSION: u32 = 1;

/// The first line of a Trace: whose it is and what could be seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Always `trace`.
    #[serde(rename = "type", default = "trace_word")]
    #[schemars(extend("const" = "trace"))]
    pub kind: String,
    /// Version of the format.
    pub version: u32,
    /// The Case, where a Trial of one was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case: Option<String>,
    /// The Harness, where it was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<String>,
    /// The wire protocol the session spoke.
    pub adapter: String,
    /// Number of the Trial, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<u32>,
    /// The folder the agent worked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What the session can show.
    pub capabilities: Seen,
    /// The model asked for, and the one that answered.
    #[serde(default)]
    pub model: Model,
    /// What the agent says it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// The mode of the session, if it is one in which the agent does not ask for every permission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattended_mode: Option<String>,
    /// For an agent that gets its prompt when it is started: milliseconds until it said that it had started. Absent if it
    /// says nothing of the kind, and for an agent that gets its prompt over its protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ms: Option<u64>,
    /// When the Trial began, RFC 3339 in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// `false` where the recording has no times; then every `at_ms` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed: Option<bool>,
    /// The manifest's `command-title`: the form of the titles that are command lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_title: Option<String>,
}

fn trace_word() -> String {
    "trace".to_owned()
}

impl Header {
    /// A header that knows nothing but its adapter.
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
            started: None,
            timed: None,
            command_title: None,
        }
    }

    /// Whether seconds can be told from this Trace.
    pub fn is_timed(&self) -> bool {
        self.timed != Some(false)
    }
}

/// What a Trace can be asked about: without `tracing` no call is visible, without `interaction` no permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// Tool calls, thoughts and results are shown.
    pub tracing: bool,
    /// The agent asks for permission and takes an answer.
    pub interaction: bool,
}

/// The model of a session. Either part is absent where nobody said it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Model {
    /// What the user asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested: Option<String>,
    /// What the agent says answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective: Option<String>,
}

/// The program behind a Harness, in its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its version, where it said one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// One thing that happened. The fields all events share stand here, the rest in [`Body`].
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Event {
    /// Position in the Trace, from 0 without gaps.
    pub seq: u64,
    /// Milliseconds since the Trial began; never decreases.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub body: Body,
    /// The call that started the sub-agent which did this; absent for the main agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The engine made this event in the agent's stead.
    #[serde(skip_serializing_if = "is_false")]
    pub host: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The kinds of event.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Body {
    /// Something said, by the user or by the agent.
    Message(Message),
    /// Reasoning that the agent showed.
    Thought {
        /// What it thought.
        text: String,
    },
    /// The agent's list of what it means to do; each one replaces the last.
    Plan {
        /// Its lines.
        entries: Vec<PlanEntry>,
    },
    /// A tool call, where it was first announced, with its final input.
    ToolCall(ToolCall),
    /// The agent asks whether it may.
    PermissionRequest(PermissionRequest),
    /// What the Interaction Policy answered.
    PermissionResponse(PermissionResponse),
    /// How a call ended. Each call has exactly one.
    ToolResult(ToolResult),
    /// Tokens and money, as the agent reported them.
    Usage(Usage),
    /// What the engine saw and could not take as an event.
    Notice {
        /// A word for the kind of oddity.
        code: String,
        /// What was seen.
        text: String,
        /// Line number in the wire log, from 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        line: Option<u64>,
        /// What of the session is missing in the Trace for it; absent if nothing is.
        #[serde(skip_serializing_if = "Option::is_none")]
        lost: Option<Lost>,
    },
    /// How the session ended. Exactly one, last.
    Stop(Stop),
}

impl Body {
    /// The `type` of the event, as it stands in the file.
    pub fn word(&self) -> &'static str {
        match self {
            Body::Message(_) => "message",
            Body::Thought { .. } => "thought",
            Body::Plan { .. } => "plan",
            Body::ToolCall(_) => "tool_call",
            Body::PermissionRequest(_) => "permission_request",
            Body::PermissionResponse(_) => "permission_response",
            Body::ToolResult(_) => "tool_result",
            Body::Usage(_) => "usage",
            Body::Notice { .. } => "notice",
            Body::Stop(_) => "stop",
        }
    }
}

/// What of a session is missing in its Trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lost {
    /// A line, or a part of one, that may have been any event.
    Line,
    /// The end of a text.
    Text,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The person, or the engine in the person's place.
    User,
    /// The agent.
    Agent,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Message {
    /// Who spoke.
    pub role: Role,
    /// What was said; chunks are joined.
    pub text: String,
    /// What is not text: images, audio, resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
}

/// Something in a message that is not text. Its bytes stay in the wire log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// `image`, `audio`, `resource`, `resource_link` or the agent's own word.
    pub kind: String,
    /// Its media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Where it is, for links and resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Length of its data on the wire, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// A line of the agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// `pending`, `in_progress`, `completed` or the agent's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// `high`, `medium`, `low` or the agent's own word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}

/// What a tool does, in ACP's words, whatever the agent calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
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
    /// Retrieves something from outside.
    Fetch,
    /// Changes the session's mode.
    SwitchMode,
    /// Anything else.
    Other,
}

impl ToolKind {
    /// Every kind, in the contract's order.
    pub const ALL: [ToolKind; 10] = [
        ToolKind::Read,
        ToolKind::Edit,
        ToolKind::Delete,
        ToolKind::Move,
        ToolKind::Search,
        ToolKind::Execute,
        ToolKind::Think,
        ToolKind::Fetch,
        ToolKind::SwitchMode,
        ToolKind::Other,
    ];

    /// The kind's word, as it stands in traces and cases.
    pub fn word(self) -> &'static str {
        match self {
            ToolKind::Read => "read",
            ToolKind::Edit => "edit",
            ToolKind::Delete => "delete",
            ToolKind::Move => "move",
            ToolKind::Search => "search",
            ToolKind::Execute => "execute",
            ToolKind::Think => "think",
            ToolKind::Fetch => "fetch",
            ToolKind::SwitchMode => "switch_mode",
            ToolKind::Other => "other",
        }
    }

    /// The kind that a word names, if it names one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolCall {
    /// The agent's own id, made unique where it was not.
    pub call: String,
    /// The round of calls it belongs to, from 0 in the order of each round's first call.
    pub step: u64,
    /// What it does.
    pub kind: ToolKind,
    /// What the agent calls the tool; absent where it never said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The agent's line for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its arguments, the final merged ones; absent where the agent never showed them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The agent showed that the call has no arguments.
    #[serde(default, skip_serializing_if = "is_false")]
    pub without_input: bool,
    /// Files it says it touches.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<Location>,
}

impl ToolCall {
    /// The arguments that the agent showed: an empty object if it showed that there are none.
    pub fn shown_input(&self) -> Option<&Value> {
        static NONE: std::sync::LazyLock<Value> = std::sync::LazyLock::new(|| Value::Object(serde_json::Map::new()));
        self.input.as_ref().or_else(|| self.without_input.then(|| &*NONE))
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location {
    /// The file, as the agent wrote it.
    pub path: String,
    /// Line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// The agent asks for permission.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PermissionRequest {
    /// The call it is about.
    pub call: String,
    /// Id of the request, unique in the Trace.
    pub request: String,
    /// What may be answered.
    pub options: Vec<PermissionOption>,
    /// What the request says of the call, where that differs from the announced call. An input that differs stands
    /// in the answer's `updated_input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked: Option<AskedCall>,
}

/// What a permission request says of its call, as far as the announced call differs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AskedCall {
    /// What the call does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    /// The tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The call's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// The files that the request names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<Location>>,
}

impl AskedCall {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PermissionOption {
    /// The agent's id for it.
    pub option: String,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or the agent's own word.
    pub kind: String,
    /// What a person would read.
    #[serde(default)]
    pub label: String,
}

/// How a permission request was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PermissionOutcome {
    /// The call may go on.
    Allowed,
    /// It may not.
    Rejected,
    /// Nobody decided: the turn or the session ended, or no option fitted.
    Cancelled,
}

/// The answer to a permission request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PermissionResponse {
    /// The call it is about.
    pub call: String,
    /// The request it answers.
    pub request: String,
    /// What was decided.
    pub outcome: PermissionOutcome,
    /// The option chosen, by the agent's id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The Interaction Policy that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The rule of it that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The input that was asked for or allowed, where that is not the announced one: the request asked for another
    /// input, or the policy put one in its place. Matchers see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Value>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// It was carried out and succeeded.
    Ok,
    /// It was carried out and failed, or exited other than 0.
    Error,
    /// It was refused.
    Denied,
    /// Its turn or its permission request was cancelled.
    Cancelled,
    /// The agent never said.
    Unfinished,
}

impl CallStatus {
    /// The status' word, as it stands in traces.
    pub fn word(self) -> &'static str {
        match self {
            CallStatus::Ok => "ok",
            CallStatus::Error => "error",
            CallStatus::Denied => "denied",
            CallStatus::Cancelled => "cancelled",
            CallStatus::Unfinished => "unfinished",
        }
    }

    /// Whether the call was carried out, as far as anyone can tell.
    pub fn carried_out(self) -> bool {
        matches!(self, CallStatus::Ok | CallStatus::Error | CallStatus::Unfinished)
    }
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolResult {
    /// The call it ends.
    pub call: String,
    /// How it ended.
    pub status: CallStatus,
    /// What it said, as text; absent where it said nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Changes to files that the agent showed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diffs: Vec<FileDiff>,
    /// Exit code of a command, where the agent told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The agent says that the output was cut.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
}

impl ToolResult {
    /// The result of a call that nobody ever told the end of.
    pub fn unfinished(call: &str) -> Self {
        Self {
            call: call.to_owned(),
            status: CallStatus::Unfinished,
            output: None,
            diffs: Vec::new(),
            exit_code: None,
            truncated: false,
        }
    }
}

/// A change to one file, as the agent showed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileDiff {
    /// The file, as the agent wrote it.
    pub path: String,
    /// Its text before; absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// Its text after; absent where it was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
}

/// What a usage report covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UsageScope {
    /// One call of the model.
    Call,
    /// One prompt.
    Turn,
    /// All so far.
    Session,
}

/// Tokens and money. What the agent did not report is absent, never zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// What it covers.
    pub scope: UsageScope,
    /// Tokens sent, without cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens received, thoughts included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Tokens read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Tokens written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Tokens of thought; part of `output_tokens`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
    /// Money, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Tokens now in the model's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// Size of that context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// All tokens, as the agent added them up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// The model they were spent on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who says so, where it is not the agent: `priced` from a price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The figures above that are known to leave a part out, so that each of them is a lower bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower_bounds: Vec<usage::Measure>,
}

impl Usage {
    /// A report that says nothing yet.
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

    /// Marks these figures as lower bounds, as far as the report holds them.
    pub fn at_least(&mut self, measures: impl IntoIterator<Item = usage::Measure>) {
        for measure in measures {
            if usage::holds(self, measure) && !self.lower_bounds.contains(&measure) {
                self.lower_bounds.push(measure);
            }
        }
        self.lower_bounds.sort_unstable();
    }

    /// Whether every figure is absent or zero: such a report is none.
    pub fn says_nothing(&self) -> bool {
        let zero = |n: Option<u64>| n.unwrap_or(0) == 0;
        zero(self.input_tokens)
            && zero(self.output_tokens)
            && zero(self.cache_read_tokens)
            && zero(self.cache_write_tokens)
            && zero(self.thought_tokens)
            && zero(self.total_tokens)
            && zero(self.context_used)
            && self.cost_usd.unwrap_or(0.0) == 0.0
    }
}

/// Why a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The agent was done.
    EndTurn,
    /// The model ran out of output tokens.
    MaxTokens,
    /// Too many rounds.
    MaxTurns,
    /// Too many tokens or too much money.
    MaxBudget,
    /// The model refused.
    Refusal,
    /// The session was cancelled.
    Cancelled,
    /// The time limit.
    TimedOut,
    /// The idle limit.
    Idle,
    /// The agent answered with an error.
    Error,
    /// The agent was gone before it answered.
    Crashed,
    /// A reason with a word of its own, kept in `detail`.
    Other,
}

impl StopReason {
    /// The reason's word, as it stands in traces.
    pub fn word(self) -> &'static str {
        match self {
            StopReason::EndTurn => "end_turn",
            StopReason::MaxTokens => "max_tokens",
            StopReason::MaxTurns => "max_turns",
            StopReason::MaxBudget => "max_budget",
            StopReason::Refusal => "refusal",
            StopReason::Cancelled => "cancelled",
            StopReason::TimedOut => "timed_out",
            StopReason::Idle => "idle",
            StopReason::Error => "error",
            StopReason::Crashed => "crashed",
            StopReason::Other => "other",
        }
    }
}

/// What kind of error made a Trial `errored`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCategory {
    /// The agent's program was not found.
    NotInstalled,
    /// It was found and could not be started.
    StartFailed,
    /// It never got as far as a session.
    Handshake,
    /// A login or a key was refused.
    Auth,
    /// The model's service wants fewer requests.
    RateLimit,
    /// The model's service failed.
    Provider,
    /// The agent broke its protocol.
    Protocol,
    /// The agent was gone before it answered.
    Crashed,
    /// The workspace could not be made.
    Setup,
    /// A grader could not run.
    Grader,
    /// The engine itself failed.
    Internal,
}

impl ErrorCategory {
    /// The category's word, as it stands in results.
    pub fn word(self) -> &'static str {
        match self {
            ErrorCategory::NotInstalled => "not_installed",
            ErrorCategory::StartFailed => "start_failed",
            ErrorCategory::Handshake => "handshake",
            ErrorCategory::Auth => "auth",
            ErrorCategory::RateLimit => "rate_limit",
            ErrorCategory::Provider => "provider",
            ErrorCategory::Protocol => "protocol",
            ErrorCategory::Crashed => "crashed",
            ErrorCategory::Setup => "setup",
            ErrorCategory::Grader => "grader",
            ErrorCategory::Internal => "internal",
        }
    }
}

/// The end of a session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Stop {
    /// Why.
    pub reason: StopReason,
    /// What kind of error, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<ErrorCategory>,
    /// The limit's key, the agent's own word, or the error's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The final answer: what the main agent said after its last call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// How the process ended; absent where nobody saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit: Option<Exit>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exit {
    /// Exit code, where it exited.
    pub code: Option<i32>,
    /// Signal number, where one ended it.
    pub signal: Option<i32>,
}
