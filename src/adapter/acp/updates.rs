//! Updates of the session: messages, thoughts, plans, usage, and changes to the header.

use serde_json::{Map, Value};

use super::bridge_reports::CODEX;
use super::broken_servers::startup_report;
use super::content::{self, Piece};
use super::usage::{Figures, tell_invalid};
use super::{Translator, take_text, text_at};
use crate::adapter::surrogates::Cut;
use crate::text::first_bytes;
use crate::trace::recorder::{Continuation, Recorder, Voice};
use crate::trace::{NoticeCode, PlanEntry, Role, Usage, UsageScope};

/// A message or a thought of the agent to which a chunk belongs.
struct Speech {
    voice: Voice,
    /// The call that started the sub-agent that speaks.
    parent: Option<String>,
    part: Continuation,
    /// True if the chunk is marked as a text of the agent's program, and not of its model.
    is_by_program: bool,
}

/// A chunk of a text that ended with half of a character.
pub(super) struct CutChunk {
    voice: Voice,
    parent: Option<String>,
    part: Continuation,
    cut: Cut,
}

impl Translator {
    /// Takes an update of the session.
    pub(super) fn update(&mut self, update: Value, recorder: &mut Recorder) {
        let mut update = match update {
            Value::Object(update) => update,
            other => return recorder.lost(NoticeCode::MalformedUpdate, other.to_string()),
        };
        let Some(word) = take_text(&mut update, "sessionUpdate") else {
            return recorder.lost(NoticeCode::MalformedUpdate, Value::Object(update).to_string());
        };
        let mut meta = update.remove("_meta").unwrap_or(Value::Null);
        self.thread_status(&meta);
        self.task_ended(&meta, recorder);
        let is_in_doubt = self.name_copilot_agent(&word, &update, &mut meta, recorder);
        if let Some(report) = startup_report(&word, &update, &meta).filter(|_| self.may_be_bridge(&CODEX, recorder)) {
            return recorder.notice(NoticeCode::ProgramMessage, report);
        }
        if self.took_review(&word, &update, &meta, recorder) {
            return;
        }
        if let Some(error) = repeated_for(&meta) {
            self.keep_broken_answer(recorder);
            self.request_repeated(may_have_begun(error), recorder);
        }
        let message = update.get("messageId").and_then(Value::as_str).filter(|_| parent_of(&meta).is_none());
        self.message_updated(&word, message, recorder);
        if parent_of(&meta).is_none() {
            self.model_named(&meta, recorder);
            self.model_named(meta.get("usage").unwrap_or(&Value::Null), recorder);
        }
        if self.is_over() && gives_events(&word) {
            self.once(NoticeCode::LateUpdate, &word, || format!("{word} after the prompt was answered"), recorder);
        }
        if word.starts_with("tool_call") {
            // The model answered: the request that failed before was repeated.
            self.turn.printed.clear();
            self.turn.is_answering = false;
        }
        if word == "tool_call" && parent_of(&meta).is_none() {
            self.worked_between_turns();
        }
        match word.as_str() {
            "user_message_chunk" => self.speak(None, update, &meta, recorder),
            "agent_message_chunk" if self.may_be_error(&update, &meta) => self.hold(update, meta, recorder),
            "agent_message_chunk" => self.speak(Some(Voice::Agent), update, &meta, recorder),
            "agent_thought_chunk" => self.speak(Some(Voice::Thought), update, &meta, recorder),
            "plan" => self.plan(&word, Value::Object(update), &meta, recorder),
            "plan_update" => {
                let plan = update.remove("plan").unwrap_or(Value::Object(update));
                self.plan(&word, plan, &meta, recorder);
            }
            "tool_call" => self.call(true, update, &meta, recorder),
            "tool_call_update" => self.call(false, update, &meta, recorder),
            "tool_call_content_chunk" => self.call_chunk(update, recorder),
            "usage_update" => self.usage_update(&Value::Object(update), &meta, recorder),
            "config_option_update" => {
                self.config_options(update.get("configOptions"), recorder);
                self.mode_of_options(&Value::Object(update), recorder);
            }
            "current_mode_update" => {
                if let Some(mode) = update.get("currentModeId").and_then(Value::as_str) {
                    self.mode_is(mode, recorder);
                }
            }
            "current_model_update" => self.current_model(Some(&Value::Object(update)), recorder),
            "available_commands_update" | "session_info_update" => {}
            "notice" => {
                let parts = ["severity", "title", "description"].map(|key| take_text(&mut update, key));
                recorder.notice(NoticeCode::AgentNotice, parts.into_iter().flatten().collect::<Vec<_>>().join(": "));
            }
            "compaction_update" | "compaction_summary_chunk" => compacted(&Value::Object(update), recorder),
            _ => self.unknown_update(&word, update, recorder),
        }
        if is_in_doubt {
            let text = "several agents may be at work, and the agent does not show whose text this is";
            recorder.doubt_speaker(NoticeCode::UnknownSpeaker, text);
        }
    }

    /// Takes an update of a kind that is not read.
    fn unknown_update(&mut self, word: &str, update: Map<String, Value>, recorder: &mut Recorder) {
        if matches!(word, "subagent_update" | "session_message" | "session_message_chunk") {
            self.sub_agent_session(recorder);
        }
        // The calls are looked for without the kind of the update. The notice shows the update as the agent sent it.
        let mut unread = Value::Object(update);
        let shown = unread.clone();
        unread["sessionUpdate"] = Value::String(word.to_owned());
        self.take_unread(NoticeCode::UnknownUpdate, None, &shown, || format!("{word}: {unread}"), recorder);
    }

    /// Records, once, that a sub-agent has a session of its own. The engine does not advertise that it reads such sessions,
    /// so neither the calls of the sub-agent nor its usage are known.
    fn sub_agent_session(&mut self, recorder: &mut Recorder) {
        if std::mem::replace(&mut self.has_sub_agent_session, true) {
            return;
        }
        recorder.did_unseen(
            NoticeCode::HiddenSubAgent,
            "a sub-agent has a session of its own, which the agent does not show",
        );
        recorder.notice(
            NoticeCode::UsageIncomplete,
            "the usage of the sub-agent may be missing, so the totals are lower bounds",
        );
    }

    /// Notes an error status of an agent's own, such as codex' `threadStatus`.
    fn thread_status(&mut self, meta: &Value) {
        let Value::Object(meta) = meta else { return };
        for part in meta.values() {
            let status = part.get("threadStatus").and_then(|status| status.get("type")).and_then(Value::as_str);
            match status {
                Some("systemError") => self.turn.system_error = true,
                Some("active") => self.turn.system_error = false,
                _ => {}
            }
        }
    }

    /// Takes a chunk of a message; without a voice it is the user's.
    pub(super) fn speak(
        &mut self,
        voice: Option<Voice>,
        mut update: Map<String, Value>,
        meta: &Value,
        recorder: &mut Recorder,
    ) {
        if let Some(usage) = meta.get("usage") {
            tell_invalid(usage, recorder);
        }
        if let Some(figures) = meta.get("usage").and_then(Figures::read) {
            let mut usage = figures.as_usage(UsageScope::Call, &self.conventions.usage);
            usage.model = meta.get("usage").and_then(|usage| text_at(usage, "model"));
            recorder.usage(usage, false);
        }
        let parent = parent_of(meta).map(|parent| recorder.call_id(parent));
        if let Some(parent) = parent.as_ref().filter(|_| voice.is_some()) {
            self.sub_agents.spoke(parent);
        }
        let part = match take_text(&mut update, "messageId") {
            Some(id) => Continuation::Of(id),
            None if is_discrete(meta) => Continuation::Block,
            None => Continuation::Chunk,
        };
        let Some(content) = update.remove("content") else {
            return recorder
                .notice(NoticeCode::MalformedUpdate, format!("a chunk without content: {}", Value::Object(update)));
        };
        let marked = self.marked_content().map(content::pieces).unwrap_or_default();
        let Some(voice) = voice else {
            for piece in content::pieces(content) {
                self.take_user_piece(piece, parent.clone(), part.clone(), recorder);
            }
            return;
        };
        let speech = Speech { voice, parent, part, is_by_program: is_by_program(meta) };
        for (n, piece) in content::pieces(content).into_iter().enumerate() {
            let marked = match marked.get(n) {
                Some(Piece::Text(marked)) => Some(marked.as_str()),
                _ => None,
            };
            self.take_agent_piece(piece, marked, &speech, recorder);
        }
    }

    /// Takes a piece of a message or a thought of the agent. `marked` is its text in the line with marks for broken characters.
    fn take_agent_piece(&mut self, piece: Piece, marked: Option<&str>, speech: &Speech, recorder: &mut Recorder) {
        let Speech { voice, parent, part, is_by_program } = speech;
        let voice = *voice;
        match piece {
            Piece::Text(text) if voice == Voice::Agent && (*is_by_program || self.is_program_text(&text, part)) => {
                recorder.notice(NoticeCode::ProgramMessage, text.trim());
                self.turn.program_message = Some(text.trim().to_owned());
                if says_retry(&text) {
                    self.discard_answer(recorder);
                    self.request_repeated(text.contains("Response was interrupted"), recorder);
                }
            }
            Piece::Text(text)
                if voice == Voice::Thought && *part == Continuation::Chunk && self.took_reroute(&text, recorder) => {}
            Piece::Text(text) => {
                if voice == Voice::Agent && !text.trim().is_empty() {
                    self.turn.program_message = None;
                }
                if parent.is_none() && !text.trim().is_empty() {
                    self.turn.is_answering = true;
                    self.worked_between_turns();
                }
                self.say(CutChunk::new(voice, parent, part), &text, marked, recorder);
            }
            Piece::Attachment(attachment) => recorder.attach(Role::Agent, parent.clone(), attachment),
            Piece::Embedded(attachment, text) => {
                recorder.attach(Role::Agent, parent.clone(), attachment);
                if voice == Voice::Agent {
                    let text = first_bytes(&text, 200);
                    let text = format!("the text of an embedded resource: {text}");
                    recorder.lost_text(NoticeCode::EmbeddedText, text);
                }
            }
            Piece::Unknown(attachment, text) => {
                recorder.attach(Role::Agent, parent.clone(), attachment);
                unknown_content(text, recorder);
            }
            Piece::Malformed(text) => unknown_content(text, recorder),
        }
    }

    /// Takes the agent's report that it requests the last answer of its model again. The text that it showed of the answer does
    /// not count.
    fn discard_answer(&mut self, recorder: &mut Recorder) {
        if !recorder.answer().trim().is_empty() && !recorder.is_answer_withdrawn() {
            self.messages.discarded();
            recorder.end_other_text(NoticeCode::DiscardedMessage, "the answer before is discarded and requested again");
        }
    }

    /// Takes the report of the bridge to Codex that it repeats a request to its model. Codex removes a message that broke off from
    /// its conversation, and keeps a complete one, which the repeated request contains. The bridge does not show which of them
    /// the message was, so it stays. The final answer begins after it.
    fn keep_broken_answer(&mut self, recorder: &mut Recorder) {
        if !recorder.answer().trim().is_empty() && !recorder.is_answer_complete() {
            self.messages.discarded();
            recorder.complete_answer();
            let text = "the request is repeated: the agent may have discarded the message before";
            recorder.notice(NoticeCode::DiscardedMessage, text);
        }
    }

    /// Takes the agent's report that it repeats a request to its model. If the model may have begun to answer, its tokens are in
    /// no report of the agent.
    pub(super) fn request_repeated(&mut self, may_have_begun: bool, recorder: &mut Recorder) {
        if std::mem::take(&mut self.turn.is_answering) || may_have_begun {
            let text = "a request to the model broke off and is repeated: its usage may be missing, so the totals are \
                        lower bounds";
            self.once(NoticeCode::UsageIncomplete, "repeated request", || text.to_owned(), recorder);
        }
    }

    /// Returns the content of the current update as [`surrogates::marked`](crate::adapter::surrogates::marked) reads it, if the
    /// line has unpaired surrogates.
    pub(super) fn marked_content(&mut self) -> Option<Value> {
        self.marked.take()?.pointer_mut("/params/update/content").map(Value::take)
    }

    /// Records a chunk of a text. If a character was cut between the last chunk and this one, it becomes whole.
    fn say(&mut self, mut chunk: CutChunk, text: &str, marked: Option<&str>, recorder: &mut Recorder) {
        if let Some(last) = self.cut.take_if(|last| last.is_same_text(&chunk)) {
            chunk.cut = last.cut;
        }
        let (whole, rest) = chunk.cut.take(text, marked);
        if let Some(whole) = whole {
            recorder.complete(chunk.voice, chunk.parent.clone(), whole, chunk.part.clone());
        }
        recorder.say(chunk.voice, chunk.parent.clone(), rest, chunk.part.clone());
        if chunk.cut.is_open() {
            self.cut = Some(chunk);
        }
    }

    /// Returns true if the agent's program wrote this text, and not its model. After an error status, only the program speaks;
    /// otherwise a chunk that names a message of the model is the model's, whatever its text.
    fn is_program_text(&self, text: &str, part: &Continuation) -> bool {
        let may_be_program = match part {
            Continuation::Chunk => true,
            Continuation::Of(id) => self.conventions.is_other_id(id),
            Continuation::Block => false,
        };
        self.turn.system_error || (may_be_program && self.conventions.is_program_text(text))
    }

    fn plan(&mut self, word: &str, plan: Value, meta: &Value, recorder: &mut Recorder) {
        let Some(entries) = plan.get("entries").and_then(Value::as_array) else {
            return recorder.notice(NoticeCode::UnknownUpdate, format!("{word}: {plan}"));
        };
        let mut kept = Vec::with_capacity(entries.len());
        for entry in entries {
            let text = match entry {
                Value::String(text) => Some(text.clone()),
                _ => entry.get("content").and_then(content_text),
            };
            match text {
                Some(text) => kept.push(PlanEntry {
                    text,
                    status: text_at(entry, "status"),
                    priority: text_at(entry, "priority"),
                }),
                None => recorder.notice(NoticeCode::MalformedUpdate, format!("a plan entry without a text: {entry}")),
            }
        }
        recorder.plan(parent_of(meta).map(|parent| recorder.call_id(parent)), kept);
    }

    fn usage_update(&mut self, update: &Value, meta: &Value, recorder: &mut Recorder) {
        self.usage_reports += 1;
        // Vibe counts the session here. If the answers to prompts report usage, they are more exact.
        tell_invalid(meta, recorder);
        if is_of_own_cycle(meta) {
            self.by_model.leave_out_cycle();
        }
        let mut usage = match Figures::read(meta).filter(|_| !self.turn.has_usage) {
            Some(figures) => figures.as_usage(UsageScope::Session, &self.conventions.usage),
            None => Usage::of(UsageScope::Session),
        };
        let mut context = |key: &str| {
            let figure = update.get(key).filter(|figure| !figure.is_null())?;
            if figure.as_u64().is_none() {
                recorder.notice(NoticeCode::UsageInvalid, format!("`{key}` is no count: {figure}"));
            }
            figure.as_u64()
        };
        (usage.context_used, usage.context_size) = (context("used"), context("size"));
        self.message_counted(usage.context_used, recorder);
        usage.model = text_at(meta, "_claude/model");
        if let Some(cost) = update.get("cost").filter(|cost| !cost.is_null()) {
            let amount = cost.get("amount").and_then(Value::as_f64).filter(|amount| *amount >= 0.0);
            let currency = cost.get("currency").and_then(Value::as_str).unwrap_or_default();
            match amount {
                Some(amount) if currency.eq_ignore_ascii_case("USD") => usage.cost_usd = Some(amount),
                _ => {
                    // A session costs at least what it cost before.
                    usage.lacks_cost();
                    self.once(
                        NoticeCode::UnknownCost,
                        currency,
                        || format!("a cost that is no amount in US dollars: {cost}"),
                        recorder,
                    );
                }
            }
        }
        recorder.usage(usage, false);
    }
}

impl CutChunk {
    fn new(voice: Voice, parent: &Option<String>, part: &Continuation) -> Self {
        Self { voice, parent: parent.clone(), part: part.clone(), cut: Cut::default() }
    }

    fn is_same_text(&self, other: &Self) -> bool {
        (self.voice, &self.parent, &self.part) == (other.voice, &other.parent, &other.part)
    }
}

/// Records a content block of an unknown form. The block is lost if it may hold text of the message.
fn unknown_content(block: String, recorder: &mut Recorder) {
    match content::may_hold_text(&block) {
        true => recorder.lost(NoticeCode::UnknownContent, block),
        false => recorder.notice(NoticeCode::UnknownContent, block),
    }
}

/// Records a report about a compaction of the conversation.
fn compacted(update: &Value, recorder: &mut Recorder) {
    let text = ["content", "summary"].iter().find_map(|key| content_text(update.get(*key)?));
    let parts = [text_at(update, "status"), text, text_at(update, "error")];
    recorder.notice(NoticeCode::Compaction, parts.into_iter().flatten().collect::<Vec<_>>().join(": "));
}

/// Returns true if a chunk is marked as the agent's: a notification by an extension of Pi, a notice of the bridge to Claude
/// Code, or a whole message of Qwen Code that is not its model's.
fn is_by_program(meta: &Value) -> bool {
    let is_by_model = || {
        let source = meta.get("source").and_then(Value::as_str);
        matches!(source, Some("background_notification_response" | "realtime_voice"))
    };
    let notifies = meta.get("piAcp").is_some_and(|bridge| bridge.get("notify").is_some());
    let claude = meta.get("claudeCode").and_then(|claude| claude.get("kind")).and_then(Value::as_str);
    let informs = matches!(claude, Some("mcpServerStatus" | "informational"));
    notifies || informs || (is_discrete(meta) && !is_by_model())
}

/// Returns the error for which the bridge to Codex repeats a request to the model.
fn repeated_for(meta: &Value) -> Option<&Value> {
    let error = meta.get("codex")?.get("error")?;
    (error.get("willRetry")?.as_bool() == Some(true)).then_some(error)
}

/// Returns true if the model may have begun to answer the request that failed with this error of Codex. It did not if the service
/// refused the request or was not reached. `harnesses/codex.yaml` has the same texts.
fn may_have_begun(error: &Value) -> bool {
    const NO_ANSWER: [&str; 8] = [
        "unexpected status ",
        "last status: ",
        "model is at capacity",
        "experiencing high demand",
        "Rate limit reached",
        "error sending request",
        "onnection failed",
        "failed to connect",
    ];
    let info = error.get("codexErrorInfo").and_then(Value::as_object);
    let status = info.and_then(|info| info.values().find_map(|kind| kind.get("httpStatusCode")?.as_u64()));
    let details = error.get("additionalDetails").and_then(Value::as_str).unwrap_or_default();
    status.is_none_or(|status| status < 400) && !NO_ANSWER.iter().any(|sign| details.contains(sign))
}

/// Returns true if the bridge to Claude Code reports the usage of a cycle of the model that Claude Code started by itself. The
/// user's own turn has no origin or one of these.
fn is_of_own_cycle(meta: &Value) -> bool {
    let kind = meta.get("_claude/origin").and_then(|origin| origin.get("kind")).and_then(Value::as_str);
    kind.is_some_and(|kind| !matches!(kind, "human" | "channel" | "auto-continuation" | "unclassified"))
}

/// Returns true if a text of the agent's program says that it repeats a request to its model: Copilot CLI and the bridge to Pi.
fn says_retry(text: &str) -> bool {
    let Some(text) = text.trim().strip_suffix("...") else { return false };
    text.ends_with("Retrying") || (text.starts_with("Retrying (attempt ") && text.ends_with(')'))
}

/// Returns true if Qwen Code marks a chunk as a whole message.
fn is_discrete(meta: &Value) -> bool {
    meta.get("qwenDiscreteMessage").and_then(Value::as_bool) == Some(true)
}

/// Returns the sub-agent's call that an update belongs to, by the agent's id.
pub(super) fn parent_of(meta: &Value) -> Option<&str> {
    let of_claude = meta.get("claudeCode").and_then(|claude| claude.get("parentToolUseId"));
    of_claude.or_else(|| meta.get("parentToolCallId"))?.as_str().filter(|id| !id.is_empty())
}

/// Returns true if updates of this kind report events of the session.
pub(super) fn gives_events(word: &str) -> bool {
    matches!(
        word,
        "user_message_chunk"
            | "agent_message_chunk"
            | "agent_thought_chunk"
            | "plan"
            | "plan_update"
            | "tool_call"
            | "tool_call_update"
            | "tool_call_content_chunk"
            | "usage_update"
    )
}

/// Returns the text of a content block, of a list of blocks, or of a bare text.
fn content_text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(blocks) => {
            let texts: Vec<String> = blocks.iter().filter_map(content_text).collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        block => text_at(block, "text"),
    }
}
