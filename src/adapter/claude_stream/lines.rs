//! The types of Claude Code's lines, as far as they are used: texts are borrowed, other fields are ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, value::MapAccessDeserializer};
use serde_json::Value;

use super::background::NOTIFICATION;
use super::lenient::{Count, ExitCode, Flag, Lenient, List, Number, Object, Present, Stated, Text, Word, any_shape};
use crate::trace::recorder::Recorder;

/// A line of any type, in either direction. What few lines have is boxed, because a line is moved when it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Line<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) subtype: Text<'a>,
    #[serde(borrow)]
    pub(crate) parent_tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(crate) session_id: Text<'a>,
    // Fields of `assistant` and `user` lines.
    #[serde(borrow)]
    pub(crate) message: Object<Message<'a>>,
    /// The result of a tool, with further details. In session files the key is in camel case.
    #[serde(borrow, alias = "toolUseResult")]
    pub(crate) tool_use_result: Object<Box<ToolUseResult<'a>>>,
    #[serde(borrow)]
    pub(crate) tool_result_meta: List<Object<ResultMeta<'a>>>,
    pub(crate) is_api_error_message: Flag,
    #[serde(rename = "isApiErrorMessage")]
    pub(crate) is_api_error_message_camel: Flag,
    #[serde(rename = "isSynthetic")]
    pub(crate) is_synthetic: Flag,
    #[serde(rename = "isMeta")]
    pub(crate) is_meta: Flag,
    #[serde(rename = "isReplay")]
    pub(crate) is_replay: Flag,
    // Further fields of lines in session files.
    #[serde(rename = "toolDenialKind", borrow)]
    pub(crate) denial_kind: Text<'a>,
    #[serde(rename = "permissionDecision", borrow)]
    pub(crate) permission_decision: Object<Decision<'a>>,
    #[serde(rename = "isSidechain")]
    pub(crate) is_sidechain: Flag,
    #[serde(rename = "isCompactSummary")]
    pub(crate) is_compact_summary: Flag,
    #[serde(borrow)]
    pub(crate) uuid: Text<'a>,
    /// The UUIDs of earlier messages that the line withdraws.
    #[serde(borrow, alias = "retracted_message_uuids", alias = "retractedMessageUuids")]
    pub(crate) supersedes: List<Text<'a>>,
    /// The task of the sub-agent that wrote the message.
    #[serde(rename = "agent_id", borrow)]
    pub(crate) agent_task: Text<'a>,
    #[serde(rename = "parentUuid", borrow)]
    pub(crate) parent_uuid: Text<'a>,
    #[serde(rename = "agentId", borrow)]
    pub(crate) agent_id: Text<'a>,
    #[serde(rename = "sessionId", borrow)]
    pub(crate) kept_session: Text<'a>,
    #[serde(rename = "gitBranch", borrow)]
    pub(crate) git_branch: Text<'a>,
    /// True if the command of the result ran in the agent's sandbox.
    pub(crate) sandboxed: Flag,
    #[serde(borrow)]
    pub(crate) version: Text<'a>,
    #[serde(borrow)]
    pub(crate) attachment: Object<Box<KeptAttachment<'a>>>,
    /// The text that the agent's program queued for the model.
    #[serde(borrow)]
    pub(crate) content: Text<'a>,
    #[serde(rename = "hasUnknownModelCost")]
    pub(crate) has_unknown_cost: Flag,
    // Fields of `stream_event` lines.
    #[serde(borrow)]
    pub(crate) event: Object<Box<StreamEvent<'a>>>,
    #[serde(borrow)]
    pub(crate) api_message_id: Text<'a>,
    // Fields of `system` lines.
    #[serde(borrow)]
    pub(crate) cwd: Text<'a>,
    #[serde(borrow)]
    pub(crate) model: Text<'a>,
    #[serde(borrow)]
    pub(crate) claude_code_version: Text<'a>,
    #[serde(borrow)]
    pub(crate) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(crate) status: Text<'a>,
    #[serde(borrow)]
    pub(crate) task_id: Text<'a>,
    /// The changes of a task.
    #[serde(borrow)]
    pub(crate) patch: Object<Task<'a>>,
    /// The tasks that run in the background.
    #[serde(borrow)]
    pub(crate) tasks: List<Object<Task<'a>>>,
    #[serde(borrow)]
    pub(crate) task_type: Text<'a>,
    #[serde(borrow)]
    pub(crate) subagent_type: Text<'a>,
    pub(crate) attempt: Count,
    pub(crate) max_retries: Count,
    pub(crate) error_status: Count,
    #[serde(borrow)]
    pub(crate) error: Text<'a>,
    /// The cause of a turn or of a text, if it is not a prompt.
    #[serde(borrow)]
    pub(crate) origin: Object<Origin<'a>>,
    // Fields of `result` lines.
    pub(crate) is_error: Stated,
    pub(crate) api_error_status: Count,
    #[serde(borrow)]
    pub(crate) terminal_reason: Text<'a>,
    #[serde(borrow)]
    pub(crate) stop_reason: Word<'a>,
    #[serde(borrow)]
    pub(crate) result: Text<'a>,
    /// The answer in the form that the user asked for.
    pub(crate) structured_output: Option<Value>,
    #[serde(borrow)]
    pub(crate) errors: List<Text<'a>>,
    #[serde(alias = "totalCostUSD")]
    pub(crate) total_cost_usd: Number,
    pub(crate) usage: Object<Box<TokenUsage>>,
    #[serde(rename = "modelUsage")]
    pub(crate) model_usage: Present<BTreeMap<String, Object<ModelUsage>>>,
    #[serde(borrow)]
    pub(crate) permission_denials: Denials<'a>,
    #[serde(borrow, rename = "permissionMode")]
    pub(crate) permission_mode: Text<'a>,
    // Fields of the control protocol.
    #[serde(borrow)]
    pub(crate) request: Object<ControlRequest<'a>>,
    #[serde(borrow)]
    pub(crate) response: Object<ControlResponse<'a>>,
}

/// A message of the model, or one to it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) id: Text<'a>,
    #[serde(borrow)]
    pub(crate) model: Text<'a>,
    #[serde(borrow)]
    pub(crate) content: Content<'a>,
    #[serde(borrow)]
    pub(crate) stop_reason: Text<'a>,
}

/// Text that the agent attached to the conversation, as a session file keeps it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct KeptAttachment<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) prompt: Content<'a>,
    #[serde(rename = "commandMode", borrow)]
    pub(crate) mode: Text<'a>,
    /// The path of a file that changed.
    #[serde(borrow)]
    pub(crate) filename: Text<'a>,
}

/// The content of a message or a result: a text alone is one block of text.
#[derive(Debug, Default)]
pub(crate) struct Content<'a>(pub(crate) Vec<Block<'a>>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) text: Text<'a>,
    #[serde(borrow)]
    pub(crate) thinking: Text<'a>,
    #[serde(borrow)]
    pub(crate) id: Text<'a>,
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) input: Option<Value>,
    #[serde(borrow)]
    pub(crate) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(crate) content: Content<'a>,
    pub(crate) is_error: Stated,
    #[serde(borrow)]
    pub(crate) source: Object<Box<Source<'a>>>,
    // Fields of the results of tools that the model's service runs.
    #[serde(borrow)]
    pub(crate) stdout: Text<'a>,
    #[serde(borrow)]
    pub(crate) stderr: Text<'a>,
    pub(crate) return_code: ExitCode,
    #[serde(borrow)]
    pub(crate) error_code: Text<'a>,
    #[serde(borrow)]
    pub(crate) error_message: Text<'a>,
}

/// The source of the bytes of an image or a document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Source<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) media_type: Text<'a>,
    #[serde(borrow)]
    pub(crate) data: Text<'a>,
    #[serde(borrow)]
    pub(crate) url: Text<'a>,
}

/// An event of the model's API, passed on with `--include-partial-messages`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamEvent<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    pub(crate) index: Count,
    #[serde(borrow)]
    pub(crate) message: Object<Message<'a>>,
    #[serde(borrow)]
    pub(crate) content_block: Object<Block<'a>>,
    #[serde(borrow)]
    pub(crate) delta: Object<Delta<'a>>,
}

/// A piece of a content block.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) text: Text<'a>,
    #[serde(borrow)]
    pub(crate) thinking: Text<'a>,
    #[serde(borrow)]
    pub(crate) partial_json: Text<'a>,
    #[serde(borrow)]
    pub(crate) stop_reason: Text<'a>,
}

/// A task in the background.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Task<'a> {
    #[serde(borrow)]
    pub(crate) task_id: Text<'a>,
    #[serde(borrow)]
    pub(crate) status: Text<'a>,
    #[serde(borrow)]
    pub(crate) task_type: Text<'a>,
}

/// The cause of a turn or of a text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Origin<'a> {
    #[serde(borrow)]
    pub(crate) kind: Text<'a>,
}

/// The tool's own result. A failed tool gives a text, which is read as nothing.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ToolUseResult<'a> {
    #[serde(rename = "filePath", borrow)]
    pub(crate) file_path: Text<'a>,
    #[serde(borrow)]
    pub(crate) content: Text<'a>,
    #[serde(rename = "originalFile", borrow)]
    pub(crate) original: Text<'a>,
    #[serde(rename = "oldString", borrow)]
    pub(crate) old_string: Text<'a>,
    #[serde(rename = "newString", borrow)]
    pub(crate) new_string: Text<'a>,
    #[serde(borrow)]
    pub(crate) edits: List<Object<Edit<'a>>>,
    /// The change of the file, in parts.
    #[serde(rename = "structuredPatch", borrow)]
    pub(crate) patch: List<Object<Hunk<'a>>>,
    /// True if the user changed the edit before it was made.
    #[serde(rename = "userModified")]
    pub(crate) user_modified: Flag,
    #[serde(borrow)]
    pub(crate) file: Object<Box<ReadFile<'a>>>,
    #[serde(borrow)]
    pub(crate) notebook_path: Text<'a>,
    #[serde(borrow)]
    pub(crate) original_file: Text<'a>,
    #[serde(borrow)]
    pub(crate) updated_file: Text<'a>,
    pub(crate) interrupted: Flag,
    /// The sub-agent that the call started.
    #[serde(rename = "agentId", borrow)]
    pub(crate) agent_id: Text<'a>,
    /// The state of a command in the background, if the call asked for its output.
    #[serde(borrow)]
    pub(crate) status: Text<'a>,
    #[serde(rename = "shellId", borrow)]
    pub(crate) shell_id: Text<'a>,
    /// The task in the background as which the command of the call goes on.
    #[serde(rename = "backgroundTaskId", borrow)]
    pub(crate) background_task: Text<'a>,
    /// True if the call started a sub-agent in the background.
    #[serde(rename = "isAsync")]
    pub(crate) is_async: Flag,
    /// The task in the background whose output the call asked for.
    #[serde(borrow)]
    pub(crate) task: Object<Box<Task<'a>>>,
    /// The number of calls that the sub-agent made.
    #[serde(rename = "totalToolUseCount")]
    pub(crate) tool_uses: Count,
}

/// A change to a file, of several in one call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Edit<'a> {
    #[serde(borrow)]
    pub(crate) old_string: Text<'a>,
    #[serde(borrow)]
    pub(crate) new_string: Text<'a>,
}

/// A part of the change of a file.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Hunk<'a> {
    /// The first line in the content before, from 1.
    #[serde(rename = "oldStart")]
    pub(crate) old_start: Count,
    /// The lines, each behind a sign: a blank, `-` or `+`.
    #[serde(borrow)]
    pub(crate) lines: List<Text<'a>>,
}

/// A file that was read, or a part of one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ReadFile<'a> {
    #[serde(borrow)]
    pub(crate) file_path: Text<'a>,
    #[serde(borrow)]
    pub(crate) content: Text<'a>,
    pub(crate) start_line: Count,
    pub(crate) num_lines: Count,
    pub(crate) total_lines: Count,
}

/// The agent's details of a result beside its text.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ResultMeta<'a> {
    #[serde(borrow)]
    pub(crate) id: Text<'a>,
    #[serde(borrow)]
    pub(crate) non_execution_kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) permission_decision: Object<Decision<'a>>,
}

/// A decision about a call.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Decision<'a> {
    #[serde(borrow)]
    pub(crate) decision: Text<'a>,
}

/// The list of refused calls in the result line.
#[derive(Debug, Default)]
pub(crate) struct Denials<'a> {
    pub(crate) list: Vec<Object<Denial<'a>>>,
    /// True if the value is no list.
    pub(crate) is_odd: bool,
}

/// A refused call in the list of the result line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Denial<'a> {
    #[serde(borrow)]
    pub(crate) tool_use_id: Text<'a>,
    #[serde(borrow)]
    pub(crate) tool_name: Text<'a>,
    pub(crate) tool_input: Option<Value>,
}

/// Token counts in the words of the model's API.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenUsage {
    pub(crate) input_tokens: Count,
    pub(crate) output_tokens: Count,
    pub(crate) cache_read_input_tokens: Count,
    pub(crate) cache_creation_input_tokens: Count,
    pub(crate) output_tokens_details: Object<OutputDetails>,
    /// In news of a task: the number of calls that a sub-agent made.
    pub(crate) tool_uses: Count,
    pub(crate) server_tool_use: Object<ServerToolUse>,
    /// The calls of models that the service made for an answer.
    pub(crate) iterations: List<Value>,
}

/// The number of actions that the model's service carried out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ServerToolUse {
    pub(crate) web_search_requests: Count,
    pub(crate) web_fetch_requests: Count,
}

/// The parts of the output tokens.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct OutputDetails {
    pub(crate) thinking_tokens: Count,
}

/// Tokens and cost of one model.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct ModelUsage {
    pub(crate) input_tokens: Count,
    pub(crate) output_tokens: Count,
    pub(crate) cache_read_input_tokens: Count,
    pub(crate) cache_creation_input_tokens: Count,
    pub(crate) thinking_tokens: Count,
    #[serde(rename = "costUSD")]
    pub(crate) cost_usd: Number,
    /// The price table of the cost: `list`, `managed` or `unknown`.
    pub(crate) cost_basis: Value,
    pub(crate) web_search_requests: Count,
}

impl ModelUsage {
    /// Returns the cost, if the agent's program knows the price of the model.
    pub(crate) fn cost(&self) -> Option<f64> {
        self.cost_usd.0.filter(|_| !self.has_guessed_cost())
    }

    /// Returns true if the agent does not know the price of the model: it then reports a cost at the price of another one.
    pub(crate) fn has_guessed_cost(&self) -> bool {
        self.cost_basis == "unknown"
    }
}

/// A request of the control protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ControlRequest<'a> {
    #[serde(borrow)]
    pub(crate) subtype: Text<'a>,
}

/// A response of the control protocol.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ControlResponse<'a> {
    #[serde(borrow)]
    pub(crate) response: Object<PermissionAnswer<'a>>,
}

/// The answer to `can_use_tool`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct PermissionAnswer<'a> {
    #[serde(borrow)]
    pub(crate) behavior: Text<'a>,
    pub(crate) interrupt: Flag,
}

impl<'a> Line<'a> {
    /// Returns the sub-agent's call that the line is about.
    pub(crate) fn parent(&self) -> Option<String> {
        self.parent_tool_use_id.owned()
    }

    /// Replaces the sub-agent's call that the line is about by the call's id in the trace. If the agent used the id of a call
    /// again, the line is about the last call with this id.
    pub(crate) fn names_last_call(&mut self, recorder: &Recorder) {
        let Some(parent) = self.parent_tool_use_id.get() else { return };
        let call = recorder.call_id(parent);
        if call != parent {
            self.parent_tool_use_id.0 = Some(call.into());
        }
    }

    /// Returns true if a task that ended is the cause of the turn or the text.
    pub(crate) fn is_of_task(&self) -> bool {
        self.origin.0.as_ref().is_some_and(|origin| origin.kind.get() == Some(NOTIFICATION))
    }

    /// Returns true if a line of the type `result` is one of Claude Code's.
    pub(crate) fn is_outcome(&self) -> bool {
        self.says_how_it_ended() || self.result.0.is_some()
    }

    /// Returns true if a `result` line says how the turn ended, and not only with which text.
    pub(crate) fn says_how_it_ended(&self) -> bool {
        self.subtype.get().is_some() || self.is_error != Stated::Absent
    }

    /// Returns true if the agent's program wrote the message of the line in the name of the model.
    pub(crate) fn is_of_program(&self) -> bool {
        let model = self.message.0.as_ref().and_then(|message| message.model.get());
        self.is_api_error() || model == Some("<synthetic>")
    }

    /// Returns true if the agent's program marks the line as an error of the model's API.
    pub(crate) fn is_api_error(&self) -> bool {
        self.is_api_error_message.is_true() || self.is_api_error_message_camel.is_true()
    }
}

impl Message<'_> {
    /// Returns true if a block, of whatever type, may be a call or a result.
    pub(crate) fn has_calls(&self) -> bool {
        self.content.0.iter().any(Block::may_be_of_a_call)
    }
}

impl<'a> Block<'a> {
    /// Returns true if a block of an unknown type may be a call or a result.
    pub(crate) fn may_be_of_a_call(&self) -> bool {
        let kind = self.kind.or_empty();
        kind.is_empty()
            || kind.contains("tool_use")
            || kind.contains("tool_result")
            || self.tool_use_id.get().is_some()
            || (self.name.get().is_some() && (self.id.get().is_some() || self.input.is_some()))
    }

    fn of_text(text: Cow<'a, str>) -> Self {
        Self { kind: Text(Some(Cow::Borrowed("text"))), text: Text(Some(text)), ..Self::default() }
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Content<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(vec![Block::of_text(text)])
    }

    // Not a block. A reader of the blocks takes one without a type as lost.
    fn flag(_flag: bool) -> Self {
        Self(vec![Block::default()])
    }

    fn count(_count: u64) -> Self {
        Self(vec![Block::default()])
    }

    fn number(_number: f64) -> Self {
        Self(vec![Block::default()])
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        // Most lists hold one or two blocks.
        let mut blocks = Vec::with_capacity(2);
        while let Some(Element(block)) = list.next_element()? {
            blocks.push(block);
        }
        Ok(Self(blocks))
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Ok(Self(vec![Block::deserialize(MapAccessDeserializer::new(map))?]))
    }
}

/// An element of a list of blocks. A value that is not a block, such as null, is a block without a type.
#[derive(Default)]
struct Element<'a>(Block<'a>);

impl<'de: 'a, 'a> Lenient<'de> for Element<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Block::of_text(text))
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Block::deserialize(MapAccessDeserializer::new(map)).map(Self)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Denials<'a> {
    fn text(_text: Cow<'de, str>) -> Self {
        Self { is_odd: true, ..Self::default() }
    }

    fn flag(_flag: bool) -> Self {
        Self { is_odd: true, ..Self::default() }
    }

    fn count(_count: u64) -> Self {
        Self { is_odd: true, ..Self::default() }
    }

    fn number(_number: f64) -> Self {
        Self { is_odd: true, ..Self::default() }
    }

    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut denials = Vec::new();
        while let Some(denial) = list.next_element()? {
            denials.push(denial);
        }
        Ok(Self { list: denials, is_odd: false })
    }

    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self { is_odd: true, ..Self::default() })
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Denials<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_shape(deserializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_shape(deserializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Element<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_shape(deserializer)
    }
}
