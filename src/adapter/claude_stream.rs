//! Translates Claude Code's `--output-format stream-json` into events.
//!
//! The agent writes one line per content block, repeats it with partial messages, writes its own lines in the
//! name of the model and the user, and reports usage only in `result` lines. The control protocol is read in
//! `control.rs`.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{EndReport, Translate, hash};
use crate::adapter::sub_agents::SubAgents;
use crate::adapter::surrogates;
use crate::harness::{Manifest, is_unattended};
use crate::trace::hashes::Hashes;
use crate::trace::recorder::{
    CallReport, Continuation, DecidedBy, Recorder, ReportedStatus, SentText, Voice, is_empty,
};
use crate::trace::{Agent, CallStatus, ErrorCategory, Exit, NoticeCode, Role, ToolKind};
use crate::values::{NameGlob, Pattern};
use crate::wire::{EngineLine, WireLine, trimmed};

pub(crate) mod background;
pub(crate) mod control;
mod ending;
mod lenient;
mod lines;
pub(crate) mod listed;
pub(crate) mod on_disk;
pub(crate) mod outcome;
mod partial;
mod patch;
mod pieces;
mod repeated;
mod served;
pub(crate) mod tools;
mod unknown;
mod withdrawn;

use background::{Background, Tasks};
use control::Requests;
use lenient::Stated;
pub(crate) use lines::Line;
use lines::{Block, Message};
use partial::{Streamed, Whole};
use repeated::Repeated;
use tools::{BUILT_IN, Kinds};
use unknown::{foreign, has_calls, lost_text, malformed, unknown_block, unknown_line};
use withdrawn::SentLines;

/// Types of lines that are known and contain no event.
const SILENT_TYPES: [&str; 8] = [
    "control_response",
    "keep_alive",
    "rate_limit_event",
    "tool_progress",
    "tool_use_summary",
    "prompt_suggestion",
    "auth_status",
    "streamlined_text",
];
/// Subtypes of `system` lines that contain no event. Subtypes that begin with `task_` or `hook_` contain none either.
const SILENT_SUBTYPES: [&str; 12] = [
    "thinking_tokens",
    "status",
    "background_tasks_changed",
    "informational",
    "files_persisted",
    "session_state_changed",
    "post_turn_summary",
    "local_command_output",
    "elicitation_complete",
    "notification",
    "turn_duration",
    "bridge_state",
];
/// Subtypes of `system` lines that are reported to the trace's readers in a notice.
const NOTICE_SUBTYPES: [&str; 5] =
    ["api_error", "compact_boundary", "microcompact_boundary", "model_refusal_no_fallback", "model_refusal_fallback"];
/// The beginnings of texts that the agent writes in the user's name.
const PROGRAM_WRITES: [&str; 9] = [
    INTERRUPTED,
    "<local-command-",
    "<command-name>",
    "<command-message>",
    background::TAG,
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
    "<user-memory-input>",
];
const INTERRUPTED: &str = "[Request interrupted by user";

/// A translator of Claude Code's lines.
pub struct Translator {
    kinds: Kinds,
    error_text: Vec<Pattern>,
    unattended_modes: Vec<NameGlob>,
    /// The message that each speaker is streaming.
    streamed: HashMap<Option<String>, Streamed>,
    /// The number of the last block of text, which separates the blocks.
    blocks: u64,
    /// Hashes of the announced calls, with their messages.
    announced: Hashes,
    /// The open calls, in case another call has the id of one.
    repeated: Repeated,
    /// The content of the last lines of the model, in case the agent's program withdraws them.
    sent_lines: SentLines,
    /// The streamed texts of this turn whose messages were never completed, until another message shows it.
    cut: Vec<SentText>,
    /// True if a complete message of the model was shown.
    has_whole: bool,
    /// The hashes of the IDs that were reported as refused in this turn before a call with this ID was announced.
    denied: HashSet<u64>,
    /// The number of calls of this turn whose results showed that they were denied, by the hashes of their IDs.
    refused: HashMap<u64, usize>,
    /// Hashes of the user's known prompts, so that an echo does not count as another prompt.
    prompts: HashSet<u64>,
    model_answered: bool,
    tasks: Tasks,
    background: Background,
    /// The call for which the agent could not ask for permission, because its input was closed.
    could_not_ask: Option<String>,
    /// True if a call that searches or fetches was shown.
    has_searched: bool,
    turn: TurnSoFar,
    answer: EndReport,
    /// The end of a turn that the agent began itself while a prompt had no answer. It is the answer only if the agent begins
    /// no turn for the prompt.
    own_turn: Option<EndReport>,
    /// The ids of the session, as the `init` lines state them: a session that goes on may get another id.
    sessions: HashSet<String>,
    /// The sub-agents that calls started.
    sub_agents: SubAgents,
    /// The requests to the user, if the session goes both ways.
    control: Option<Requests>,
    /// The current line as [`surrogates::marked`] reads it, if it has unpaired surrogates.
    marked: Option<Value>,
}

/// The state of the current turn.
#[derive(Default)]
struct TurnSoFar {
    interrupted: bool,
    /// True if the main agent, or the agent's program in its place, has spoken.
    spoken: bool,
    /// True if the agent's program has spoken in the agent's place.
    synthetic: bool,
    /// The agent's last message, if its program and not its model wrote it.
    by_program: Option<String>,
    /// True if the model wrote the agent's last message, false if the agent's program did.
    by_model: Option<bool>,
    api_error: Option<String>,
    /// The agent's word for the kind of that error.
    error_word: Option<String>,
    /// The stop reason of the model's last message, if the message states it.
    stop_reason: Option<String>,
}

impl Translator {
    /// Returns a translator for sessions of this harness.
    pub fn new(manifest: &Manifest) -> Self {
        let error_text = if manifest.error_text.is_empty() { &BUILT_IN.error_text } else { &manifest.error_text };
        Self {
            kinds: Kinds::new(manifest),
            error_text: error_text.clone(),
            unattended_modes: manifest.unattended_modes.clone(),
            streamed: HashMap::new(),
            blocks: 0,
            announced: Hashes::default(),
            repeated: Repeated::default(),
            sent_lines: SentLines::default(),
            cut: Vec::new(),
            has_whole: false,
            denied: HashSet::new(),
            refused: HashMap::new(),
            prompts: HashSet::new(),
            model_answered: false,
            tasks: Tasks::default(),
            background: Background::default(),
            could_not_ask: None,
            has_searched: false,
            turn: TurnSoFar::default(),
            answer: EndReport::None,
            own_turn: None,
            sessions: HashSet::new(),
            sub_agents: SubAgents::default(),
            control: None,
            marked: None,
        }
    }

    /// Returns a translator for sessions that go both ways.
    pub fn both_ways(manifest: &Manifest) -> Self {
        let mut translator = Self { control: Some(Requests::default()), ..Self::new(manifest) };
        if *manifest == Manifest::bare(manifest.adapter) {
            translator.unattended_modes.clone_from(&tools::BOTH_WAYS.unattended_modes);
        }
        translator
    }

    /// Returns true if no turn is running, because the last one was answered.
    fn is_over(&self) -> bool {
        self.answer != EndReport::None
    }

    fn line(&mut self, line: &mut Line<'_>, text: &str, recorder: &mut Recorder) {
        line.names_last_call(recorder);
        self.background.line(line);
        match line.kind.or_empty() {
            "assistant" | "user" | "stream_event" if self.is_foreign(line) => foreign(line, text, recorder),
            "assistant" => self.assistant(line, text, recorder),
            "user" => self.user(line, text, recorder),
            "stream_event" => self.stream_event(line, text, recorder),
            "system" => self.system(line, text, recorder),
            "result" => self.result(line, recorder),
            "control_request" | "control_cancel_request" => self.control_line(text, recorder),
            kind if SILENT_TYPES.contains(&kind) => {}
            _ if has_calls(line) => recorder.lost(NoticeCode::UnknownLine, text),
            _ => unknown_line(text, recorder),
        }
    }

    /// Returns true if a line belongs to another session. The lines of sub-agents have the session's own id.
    fn is_foreign(&self, line: &Line<'_>) -> bool {
        let is_other = |id: &str| !id.is_empty() && !self.sessions.contains(id);
        !self.sessions.is_empty() && line.session_id.get().is_some_and(is_other)
    }

    /// Takes a line of the model. Afterwards, the calls of its message have no input: the recorder has them.
    fn assistant(&mut self, line: &mut Line<'_>, text: &str, recorder: &mut Recorder) {
        let Some(mut message) = line.message.0.take() else { return recorder.lost(NoticeCode::UnknownLine, text) };
        let calls_before = recorder.call_count();
        self.message(line, &mut message, text, recorder);
        line.message.0 = Some(message);
        self.sent_lines.end(line);
        if let Some(task) = line.agent_task.get().filter(|_| line.parent().is_none()) {
            self.sub_agents.showed_task(task, recorder.call_count().saturating_sub(calls_before));
        }
        // A text can be taken out of its message if the next text is in the message, too.
        self.withdraw(line, recorder);
    }

    fn message(&mut self, line: &Line<'_>, message: &mut Message<'_>, text: &str, recorder: &mut Recorder) {
        let parent = line.parent();
        let error_word = line.error.get().filter(|word| !word.is_empty());
        let is_error = line.is_api_error() || error_word.is_some();
        let synthetic = message.model.get() == Some("<synthetic>") || is_error;
        if parent.is_none() {
            self.turn.spoken = true;
            self.turn.synthetic |= synthetic;
            self.turn.by_model = Some(!synthetic);
            self.turn.by_program = synthetic.then(|| texts(message));
            self.turn.api_error = is_error.then(|| texts(message));
            self.turn.error_word = error_word.map(str::to_owned);
        }
        if synthetic && message.has_calls() {
            return recorder.lost(NoticeCode::SyntheticMessage, text);
        }
        if synthetic {
            return recorder.notice(NoticeCode::SyntheticMessage, texts(message));
        }
        if line.agent_task.get().is_none() || parent.is_some() {
            self.replaces_cut_texts(&parent, message, recorder);
        }
        match &parent {
            None => {
                self.turn.stop_reason = message.stop_reason.owned();
                self.model(message, recorder);
            }
            Some(parent) => self.sub_agents.spoke(parent),
        }
        let mut blocks = std::mem::take(&mut message.content.0);
        for block in &mut blocks {
            self.whole_block(&parent, message, block.kind.or_empty());
            match block.kind.or_empty() {
                "text" if block.text.0.is_none() => lost_text(text, recorder),
                "thinking" if block.thinking.0.is_none() => lost_text(text, recorder),
                "text" => self.whole_text(Voice::Agent, &parent, message, block.text.or_empty(), recorder),
                "thinking" => self.whole_text(Voice::Thought, &parent, message, block.thinking.or_empty(), recorder),
                "redacted_thinking" => {}
                "tool_use" | "server_tool_use" | "mcp_tool_use" => self.whole_call(&parent, message, block, recorder),
                kind if kind.ends_with("tool_result") => self.tool_result(line, block, false, recorder),
                "image" | "document" => recorder.attach(Role::Agent, parent.clone(), tools::attachment(block)),
                _ => unknown_block(block, text, recorder),
            }
        }
        message.content.0 = blocks;
    }

    /// Records the model that answers the main agent.
    fn model(&mut self, message: &Message<'_>, recorder: &mut Recorder) {
        let Some(model) = message.model.get() else { return };
        let effective = &mut recorder.header().model.effective;
        if effective.as_deref() == Some(model) {
            self.model_answered = true;
            return;
        }
        let before = effective.replace(model.to_owned());
        if self.model_answered
            && let Some(before) = before
        {
            recorder.notice(NoticeCode::ModelChanged, format!("the model changed from {before} to {model}"));
        }
        self.model_answered = true;
    }

    fn whole_text(
        &mut self,
        voice: Voice,
        parent: &Option<String>,
        message: &Message<'_>,
        text: &str,
        recorder: &mut Recorder,
    ) {
        if text.is_empty() {
            return;
        }
        let streamed = self.streamed.get_mut(parent).filter(|it| Some(it.message.as_str()) == message.id.get());
        let whole = streamed.map_or(Whole::New, |it| it.whole(voice, text));
        let (from, part) = match whole {
            Whole::Rest { from, part } => (from, part),
            Whole::New => (0, self.fresh_part()),
            Whole::Differs => {
                recorder.notice(
                    NoticeCode::StreamDiffers,
                    "a complete block differs from the pieces that were streamed before it",
                );
                (0, self.fresh_part())
            }
        };
        recorder.say(voice, parent.clone(), text.get(from..).unwrap_or_default(), Continuation::Of(part.clone()));
        if voice == Voice::Agent {
            self.sent_lines.text(parent, part, text, recorder);
        }
    }

    fn whole_call(
        &mut self,
        parent: &Option<String>,
        message: &Message<'_>,
        block: &mut Block<'_>,
        recorder: &mut Recorder,
    ) {
        let mut input = block.input.take();
        let (Some(id), Some(name)) = (block.id.get(), block.name.get()) else {
            return recorder.lost(NoticeCode::UnknownBlock, "a tool call without an id or a name");
        };
        if let Some(call) = self.streamed.get_mut(parent).and_then(|it| it.call_of(id)) {
            call.recorded = call.recorded.max(input.as_ref().map_or(0, tools::fullness));
            if let Some(fuller) = call.fuller() {
                call.recorded = tools::fullness(&fuller);
                input = Some(fuller);
            }
        }
        self.call(parent, message.id.get(), id, name, input, recorder);
        self.sent_lines.call(id);
    }

    fn call(
        &mut self,
        parent: &Option<String>,
        message: Option<&str>,
        id: &str,
        name: &str,
        input: Option<Value>,
        recorder: &mut Recorder,
    ) {
        let repeated = message.is_some_and(|message| !self.announced.insert(hash(&(message, id))));
        let plan = input.as_ref().and_then(|input| tools::plan(name, input));
        let kind = self.kinds.of(name);
        let report = CallReport {
            parent: parent.clone(),
            group: message.map(str::to_owned),
            kind,
            unknown_kind: kind.is_none(),
            name: Some(name.to_owned()),
            locations: input.as_ref().map(tools::locations).unwrap_or_default(),
            input,
            ..CallReport::default()
        };
        if repeated && !recorder.is_open(id) {
            // The kind follows from the name, so it says nothing more.
            let repetition =
                CallReport { input: report.input.filter(|input| !is_empty(input)), unknown_kind: false, ..report };
            return match recorder.ended_knowing(id, &repetition) {
                true => {
                    recorder.notice(NoticeCode::RepeatedCall, format!("the call {id} was repeated after its result"))
                }
                false => {
                    recorder.lost(NoticeCode::RepeatedCall, format!("another call {id} was shown after its result"))
                }
            };
        }
        self.meet(id, &report, recorder);
        if recorder.call(id, report) {
            self.sub_agents.announced(&recorder.call_id(id), name);
            self.has_searched |= matches!(kind, Some(ToolKind::Fetch | ToolKind::Search));
            if let Some(parent) = parent {
                self.sub_agents.called(parent);
            }
            if self.denied.remove(&hash(id)) {
                self.refuse(id, recorder);
            }
        }
        if let Some(entries) = plan {
            recorder.plan(parent.clone(), entries);
        }
    }

    /// Records that a call was refused. A call that ended otherwise may have started a sub-agent.
    fn refuse(&mut self, id: &str, recorder: &mut Recorder) {
        recorder.deny(id);
        if recorder.is_open(id) || recorder.ended_as(id) == Some(CallStatus::Denied) {
            self.sub_agents.refused(&recorder.call_id(id));
        }
    }

    fn user(&mut self, line: &Line<'_>, text: &str, recorder: &mut Recorder) {
        let Some(message) = &line.message.0 else { return recorder.notice(NoticeCode::UnknownLine, text) };
        let parent = line.parent();
        let is_result = |block: &&Block<'_>| block.kind.or_empty().ends_with("tool_result");
        let alone = message.content.0.iter().filter(is_result).count() == 1;
        for block in &message.content.0 {
            match block.kind.or_empty() {
                kind if kind.ends_with("tool_result") => self.tool_result(line, block, alone, recorder),
                "text" => self.user_text(line, &parent, block.text.or_empty(), recorder),
                "image" | "document" => recorder.attach(Role::User, parent.clone(), tools::attachment(block)),
                _ => unknown_block(block, text, recorder),
            }
        }
    }

    /// Takes a text in the user's name on the agent's output: a sub-agent's prompt, an echo, or a text of the agent's program.
    fn user_text(&mut self, line: &Line<'_>, parent: &Option<String>, text: &str, recorder: &mut Recorder) {
        if parent.is_none() && text.starts_with(INTERRUPTED) {
            self.turn.interrupted = true;
        }
        let is_news = background::is_news(line, text);
        if is_news {
            self.tasks.text(text, recorder);
        }
        let marked = is_news || line.is_synthetic.is_true() || line.is_meta.is_true();
        if marked || PROGRAM_WRITES.iter().any(|start| text.starts_with(start)) {
            return recorder.notice(NoticeCode::SyntheticMessage, text);
        }
        if parent.is_none() {
            if self.prompts.contains(&hash(text)) {
                return;
            }
            // In a one-way session, the user cannot speak in the middle of a turn; only the agent can.
            if self.turn.spoken && !line.is_replay.is_true() {
                return recorder.notice(NoticeCode::SyntheticMessage, text);
            }
            self.prompts.insert(hash(text));
        }
        recorder.say(Voice::User, parent.clone(), text, Continuation::Block);
    }

    fn tool_result(&mut self, line: &Line<'_>, block: &Block<'_>, alone: bool, recorder: &mut Recorder) {
        let Some(id) = block.tool_use_id.get() else {
            return recorder.lost(NoticeCode::UnknownBlock, "a result that names no call");
        };
        self.settle_call(id, recorder);
        let lacks_text = |part: &Block<'_>| part.kind.or_empty() == "text" && part.text.0.is_none();
        if block.content.0.iter().any(|part| lacks_text(part) || served::lacks_output(part)) {
            recorder.lost(NoticeCode::UnknownBlock, format!("a text in the result of the call {id} is no string"));
        }
        let result = tools::result(id, block, line, alone);
        if block.is_error == Stated::Odd && matches!(result.outcome, ReportedStatus::Ok | ReportedStatus::Failed) {
            // The outcome of the call is unknown: the call stays open, and ends as unfinished.
            return recorder.lost(NoticeCode::UnknownStatus, format!("`is_error` of the call {id} is not a boolean"));
        }
        if served::has_unreadable_code(&block.content.0) && result.outcome == ReportedStatus::Ok {
            return recorder
                .lost(NoticeCode::UnknownStatus, format!("`return_code` of the call {id} is no whole number"));
        }
        // The line contains one such object, so with several results it is unknown which one it belongs to.
        let details = line.tool_use_result.0.as_deref().filter(|_| alone);
        if let Some(details) = details.filter(|_| result.outcome == ReportedStatus::Ok) {
            self.tasks.output(id, details, recorder);
        }
        let output = result.output.as_deref().unwrap_or_default();
        if self.control.is_some() && result.outcome == ReportedStatus::Failed && tools::could_not_ask(output) {
            self.could_not_ask = Some(id.to_owned());
        }
        let was_not_run = result.outcome == ReportedStatus::Failed && tools::was_not_run(id, line);
        let goes_on = result.outcome == ReportedStatus::Ok && background::goes_on(id, details, output, recorder);
        // Details in the form of an object are those of a call that was carried out.
        let may_be_denied = result.outcome == ReportedStatus::Failed && details.is_none();
        let call = self.ending(id, &line.parent(), recorder);
        let in_trace = recorder.open_call_id(&call);
        if let Some(details) =
            details.filter(|details| details.agent_id.get().is_some() || details.tool_uses.0.is_some())
        {
            self.sub_agents.reported(&in_trace, details.tool_uses.0);
        }
        if goes_on && call == id && self.tasks.goes_on(id, details, result.output.clone(), recorder) {
            return;
        }
        let was_open = recorder.is_open(&call);
        recorder.end_or_repeat(&call, id, result);
        if may_be_denied {
            recorder.doubt_failure(&call);
        }
        self.tasks.returned(id, details, recorder);
        let is_denied = recorder.ended_as(&call) == Some(CallStatus::Denied);
        if is_denied && was_open {
            *self.refused.entry(hash(id)).or_default() += 1;
        }
        if was_not_run || is_denied {
            self.sub_agents.refused(&in_trace);
        }
    }

    fn system(&mut self, line: &Line<'_>, text: &str, recorder: &mut Recorder) {
        match line.subtype.or_empty() {
            "init" => {
                // The agent begins a turn of its own, even if the `result` line of the turn before is still to come.
                if self.turn.spoken {
                    recorder.complete_answer();
                }
                if self.is_foreign(line) {
                    recorder.notice(
                        NoticeCode::UsageIncomplete,
                        "another session begins, and its figures leave out the session before",
                    );
                }
                self.sessions.extend(line.session_id.owned());
                let header = recorder.header();
                header.agent =
                    Some(Agent { name: "Claude Code".to_owned(), version: line.claude_code_version.owned() });
                // In a live session the engine knows the workspace; what the agent says of it is a claim.
                header.cwd = header.cwd.take().or_else(|| line.cwd.owned());
                if !self.model_answered
                    && let Some(model) = line.model.owned()
                {
                    header.model.effective = Some(model);
                }
                self.look_at_mode(line.permission_mode.get(), false, recorder);
                if self.control.is_none() {
                    recorder.started();
                }
            }
            // Either the user or the agent changed the mode.
            "status" if line.permission_mode.get().is_some() => {
                self.look_at_mode(line.permission_mode.get(), true, recorder);
            }
            "permission_denied" => {
                if let Some(id) = line.tool_use_id.get() {
                    if recorder.was_announced(id) {
                        self.refuse(id, recorder);
                    } else {
                        // A call that is announced later is denied then.
                        self.denied.insert(hash(id));
                    }
                }
            }
            "api_retry" => {
                let count = |count: Option<u64>| count.map_or("?".to_owned(), |n| n.to_string());
                let status = line.error_status.0.map(|status| format!(", status {status}")).unwrap_or_default();
                let (attempt, most) = (count(line.attempt.0), count(line.max_retries.0));
                recorder.notice(
                    NoticeCode::ApiRetry,
                    format!("attempt {attempt} of {most}: {}{status}", line.error.or_empty()),
                );
            }
            code if NOTICE_SUBTYPES.contains(&code) => {
                recorder.notice(code.into(), text);
                self.withdraw(line, recorder);
            }
            "task_started" | "task_progress" | "task_notification" | "task_updated" => self.task(line, recorder),
            code if SILENT_SUBTYPES.contains(&code) || code.starts_with("task_") || code.starts_with("hook_") => {}
            _ => recorder.notice(NoticeCode::UnknownLine, text),
        }
    }

    /// Takes news of a task in the background, which may be a sub-agent.
    fn task(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        self.tasks.news(line, recorder);
        let calls = line.usage.0.as_ref().and_then(|usage| usage.tool_uses.0);
        let task = line.task_id.get();
        let is_sub_agent = background::is_sub_agent(line);
        match (line.tool_use_id.get().or_else(|| self.tasks.call(task)), task) {
            (Some(id), task) => {
                // Lines before this one may have named the task alone.
                let call = recorder.call_id(id);
                let was_known = task.is_some_and(|task| self.sub_agents.joins(task, &call));
                if is_sub_agent || was_known || self.sub_agents.is_started(&call) {
                    self.sub_agents.reported_by_task(&call, calls);
                }
            }
            (None, Some(task)) if is_sub_agent || self.sub_agents.is_task(task) => {
                self.sub_agents.reported_task(task, calls);
            }
            (None, _) => {}
        }
    }

    /// Checks the mode. If the agent does not ask for permission in it, permission requests are not evidence.
    fn look_at_mode(&self, mode: Option<&str>, changed: bool, recorder: &mut Recorder) {
        let Some(mode) = mode else { return };
        recorder.mode_is(mode);
        if is_unattended(&self.unattended_modes, mode) {
            recorder.is_unattended(mode, changed);
        }
    }

    /// Begins a turn with a prompt of the user.
    fn prompted(&mut self, recorder: &mut Recorder) {
        self.end_own_turn(recorder);
        self.background.prompted();
        self.answer = EndReport::None;
    }

    /// Takes the end of the agent's own turn as the answer to the prompt, because the engine went on and the agent had begun no
    /// turn for the prompt.
    fn end_own_turn(&mut self, recorder: &mut Recorder) {
        if let Some(answer) = self.own_turn.take().filter(|_| self.background.may_have_answered()) {
            let text = "the agent began no turn for the prompt: its answer is that of a turn that it had begun itself";
            recorder.notice(NoticeCode::UnfinishedTurn, text);
            self.background.answered_in_own_turn();
            self.answer = answer;
        }
    }

    fn fresh_part(&mut self) -> String {
        self.blocks += 1;
        self.blocks.to_string()
    }
}

impl Translate for Translator {
    fn ends(&self, line: &WireLine) -> bool {
        let text = trimmed(&line.line);
        match serde_json::from_str::<Line<'_>>(text) {
            Ok(line) => line.kind.get() == Some("result"),
            Err(_) => surrogates::parse(text).is_ok_and(|line| line["type"] == "result"),
        }
    }

    fn recv(&mut self, line: &WireLine, recorder: &mut Recorder) {
        let text = trimmed(&line.line);
        if text.is_empty() {
            return;
        }
        let parsed = if text.starts_with('{') { serde_json::from_str::<Line<'_>>(text) } else { Ok(Line::default()) };
        match parsed {
            Ok(mut parsed) if text.starts_with('{') => self.line(&mut parsed, text, recorder),
            // A line with a repeated key is still read: the last value counts, as usual in JSON.
            _ => match surrogates::parse(text) {
                Ok(value @ Value::Object(_)) => {
                    self.marked = surrogates::marked(text);
                    let text = value.to_string();
                    match serde_json::from_str::<Line<'_>>(&text) {
                        Ok(mut parsed) => self.line(&mut parsed, &text, recorder),
                        Err(_) => recorder.lost(NoticeCode::UnknownLine, text),
                    }
                    self.marked = None;
                }
                read => malformed(read.ok().as_ref(), text, recorder),
            },
        }
    }

    fn send(&mut self, line: &WireLine, recorder: &mut Recorder) {
        // A line that is not JSON is a plain prompt, which the engine records.
        let text = line.line.trim();
        if !text.starts_with('{') {
            return;
        }
        let Ok(line) = serde_json::from_str::<Line<'_>>(text) else { return };
        match line.kind.or_empty() {
            "user" => {
                let Some(message) = &line.message.0 else { return };
                self.prompted(recorder);
                for block in &message.content.0 {
                    match block.kind.or_empty() {
                        "text" => {
                            self.prompts.insert(hash(block.text.or_empty()));
                            recorder.say(Voice::User, None, block.text.or_empty(), Continuation::Block);
                        }
                        _ => recorder.attach(Role::User, None, tools::attachment(block)),
                    }
                }
            }
            "control_request" if line.request.0.is_some_and(|it| it.subtype.get() == Some("interrupt")) => {
                self.turn.interrupted = true;
                recorder.cancel_open();
            }
            "control_response" => {
                let answer = line.response.0.and_then(|response| response.response.0);
                if answer.is_some_and(|it| it.behavior.get() == Some("deny") && it.interrupt.is_true()) {
                    self.turn.interrupted = true;
                }
                self.control_answer(text, recorder);
            }
            _ => {}
        }
    }

    fn engine(&mut self, line: &EngineLine, recorder: &mut Recorder) {
        match line {
            EngineLine::Cancel => self.turn.interrupted = true,
            EngineLine::Prompt { text } => {
                self.prompted(recorder);
                self.prompts.insert(hash(text));
            }
            EngineLine::CloseStdin => {
                self.end_own_turn(recorder);
                self.background.is_ended_by_engine();
            }
            EngineLine::Signal { after_exit: false, .. } => self.background.is_ended_by_engine(),
            EngineLine::Notice { code: NoticeCode::BackgroundCut, .. } => self.end_own_turn(recorder),
            EngineLine::Permission { id, policy, rule, reason, rejects } => {
                let (policy, rule, reason) = (Some(policy.clone()), rule.clone(), reason.clone());
                let by = DecidedBy { policy, rule, reason, rejects: *rejects };
                if let (Some(control), Some(id)) = (&mut self.control, id.as_str()) {
                    control.decided(id, by);
                }
            }
            EngineLine::Start { .. }
            | EngineLine::AgentVersion { .. }
            | EngineLine::NotStarted { .. }
            | EngineLine::Handshake { .. }
            | EngineLine::Unattended { .. }
            | EngineLine::Limit { .. }
            | EngineLine::Interrupted
            | EngineLine::Signal { .. }
            | EngineLine::Stopped { .. }
            | EngineLine::Escaped { .. }
            | EngineLine::Restart
            | EngineLine::Terminal { .. }
            | EngineLine::Priced { .. }
            | EngineLine::Gateway { .. }
            | EngineLine::Refused { .. }
            | EngineLine::Answered { .. }
            | EngineLine::OutputLimit
            | EngineLine::Filtered
            | EngineLine::Followed { .. }
            | EngineLine::Notice { .. }
            | EngineLine::Unknown => {}
        }
    }

    fn turn_end(&self) -> &EndReport {
        self.own_turn.as_ref().unwrap_or(&self.answer)
    }

    fn awaits_answer(&self) -> bool {
        self.own_turn.is_some()
    }

    fn finish(&mut self, recorder: &mut Recorder, _exit: Option<Exit>) -> EndReport {
        self.settle_all(recorder);
        // A session that goes one way ends by itself.
        if self.control.is_none() {
            self.end_own_turn(recorder);
        }
        self.settle_repeated(recorder);
        self.sub_agents.settle(true, recorder);
        let has_spoken = self.turn.spoken && !self.turn.synthetic;
        if self.is_over() && (has_spoken || self.background.is_in_turn()) {
            let what = if has_spoken { "the agent spoke" } else { "a turn began" };
            let text = format!("{what} after the end of the agent's last turn, and no end of another turn followed");
            recorder.lost_text(NoticeCode::UnfinishedTurn, text);
        }
        let answer = std::mem::replace(&mut self.answer, EndReport::None);
        match self.could_not_ask.take() {
            // The agent worked on without the answer of the policy.
            Some(call) if answer.is_answer() => EndReport::Failed {
                category: ErrorCategory::Protocol,
                detail: format!("the agent could not ask for permission for the call {call}: its input was closed"),
            },
            _ => answer,
        }
    }
}

fn texts(message: &Message<'_>) -> String {
    let texts: Vec<&str> = message.content.0.iter().filter_map(|block| block.text.get()).collect();
    texts.join("\n\n")
}
