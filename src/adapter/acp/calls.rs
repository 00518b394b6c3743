//! Tool calls: merges the many updates about a call by its id.

use std::collections::{BTreeSet, HashMap};

use serde_json::{Map, Value};

use super::actions::Actions;
use super::bridge_reports::{CLAUDE, CODEX, may_be_report};
use super::call_titles::may_be_of_another;
use super::content::{self, CallContents};
use super::conventions::Conventions;
use super::terminals::{CommandEnd, InTerminals, Terminals};
use super::{Translator, rpc, take_text, text_at};
use crate::adapter::acp::updates::parent_of;
use crate::adapter::exit_text::exit_code_in;
use crate::adapter::requested::Differs;
use crate::adapter::surrogates::Cut;
use crate::text::first_bytes;
use crate::trace::recorder::{
    self, CallReport, MAX_TEXT, Recorder, ReportedStatus, ResultReport, continues_input, folder_of, is_other_tool,
};
use crate::trace::{CallStatus, NoticeCode, ToolCall, ToolKind, view};

/// The maximum number of terminals of a call.
const MAX_TERMINALS: usize = 1000;

/// The tool by which the model of Qwen Code calls tools that are not declared to it. A later update names the called tool.
const CALLS_OTHER_TOOLS: &str = "tool_call";

/// The title and the name by which the bridges to Claude Code and Codex report a compaction of the conversation.
const COMPACTION: (&str, &str) = ("Compact conversation", "compact");

/// The maximum number of compactions that are remembered.
const MAX_COMPACTIONS: usize = 10_000;

/// The name by which Gemini CLI introduces itself.
const GEMINI: &str = "gemini-cli";

/// The state of the open calls.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<String, OpenCall>,
    /// The output of the engine's terminals.
    pub(super) terminals: Terminals,
    /// The actions of the engine at the agent's request.
    pub(super) actions: Actions,
    /// The ids of calls that had ended and that a later update continued. A call is removed when it ends again.
    reopened: BTreeSet<String>,
    /// True if calls of the last answer were discarded, and no call was announced since.
    is_discarded: bool,
    /// The ids by which the agent reports compactions of the conversation, as if they were calls.
    compactions: BTreeSet<String>,
    /// True if a call started a sub-agent of Claude Code that worked on after the call's result.
    pub(super) has_gone_on: bool,
}

/// The state of a call between two updates.
#[derive(Debug, Default)]
struct OpenCall {
    name: Option<String>,
    kind: Option<ToolKind>,
    /// True if the agent gave the call a kind, known or not.
    has_kind: bool,
    /// True if the last status is a word that the protocol does not have: the call may have ended.
    is_unclear: bool,
    /// True if the name is from a title: an exact name may follow.
    is_named_by_title: bool,
    /// True if a title was seen, so that no later one can be the first.
    titled: bool,
    /// True if the content of the call's updates showed text, which is the output until now.
    shown: bool,
    /// The last raw output.
    raw: Option<String>,
    /// Output that arrived in pieces.
    streamed: String,
    /// The half of a character with which that output ends.
    cut: Cut,
    /// The engine's terminals in which the call runs.
    terminals: Vec<String>,
    /// The agent's reason why the call was not carried out.
    not_run: Option<String>,
    /// True if OpenCode shows that its model called a tool that does not exist, or a tool with wrong arguments.
    is_invalid: bool,
    /// True if the call started a sub-agent of Claude Code that works on after the call's result.
    goes_on: bool,
    /// True if a permission request was the first to describe the call, and the agent has not announced it since.
    is_only_asked: bool,
    truncated: bool,
}

/// The part of an update that reports the progress of a call.
struct Outcome {
    /// Text of the content that is output.
    shown: Option<String>,
    raw: Value,
    end: Option<CommandEnd>,
    /// True if the agent reports an exit code in a form that cannot be read.
    unreadable_exit: bool,
}

impl Calls {
    /// Records the output that calls sent in pieces or showed in terminals, before they end without a result.
    pub(super) fn flush(&mut self, recorder: &mut Recorder) {
        self.flush_those(|_| true, recorder);
    }

    fn flush_those(&mut self, which: impl Fn(&str) -> bool, recorder: &mut Recorder) {
        for (id, call) in self.open.iter().filter(|(id, call)| which(id) && !call.shown && call.raw.is_none()) {
            if !call.streamed.is_empty() {
                let output = Some(call.streamed.clone());
                recorder.update(id, CallReport { output, ..CallReport::default() }, false);
            } else if !call.terminals.is_empty() {
                let InTerminals { output, end, .. } = self.terminals.show(&call.terminals);
                let exit_code = end.and_then(CommandEnd::code);
                recorder.update(id, CallReport { output, exit_code, ..CallReport::default() }, false);
            }
        }
    }

    /// Takes the end of a turn, of a process or of the recording: no update is expected any more.
    fn settle(&mut self, recorder: &mut Recorder) {
        self.actions.turn_ended(recorder);
        self.tell_unclear(|_| true, recorder);
        for id in std::mem::take(&mut self.reopened) {
            recorder.contradicted(
                NoticeCode::LateUpdate,
                format!("the call {id} continued after its end, and did not end again"),
            );
        }
    }

    /// Reports the calls whose last status is an unknown word: their outcomes are unknown.
    fn tell_unclear(&mut self, which: impl Fn(&str) -> bool, recorder: &mut Recorder) {
        let mut ids: Vec<String> = Vec::new();
        for (id, call) in self.open.iter_mut().filter(|(id, call)| call.is_unclear && which(id)) {
            call.is_unclear = false;
            ids.push(id.clone());
        }
        ids.sort();
        for id in ids {
            recorder.unclear_outcome(&id);
        }
    }

    /// Drops the state of calls that the recorder has ended.
    fn drop_ended(&mut self, recorder: &mut Recorder) {
        let ended: BTreeSet<String> = self.open.keys().filter(|id| !recorder.is_open(id)).cloned().collect();
        self.tell_unclear(|id| ended.contains(id), recorder);
        self.open.retain(|id, _| !ended.contains(id));
    }

    /// Makes room for another call with the id of an open one, whose output so far is recorded.
    fn put_aside(&mut self, id: &str, recorder: &mut Recorder) {
        let claimed = self.actions.ended(id, recorder);
        self.tell_unclear(|unclear| unclear == id, recorder);
        let call = self.open.entry(id.to_owned()).or_default();
        if call.terminals.is_empty() {
            call.terminals = claimed;
        }
        self.flush_those(|open| open == id, recorder);
        self.open.remove(id);
        recorder.put_aside(id);
    }

    /// Notes that a call continues after its end.
    pub(super) fn reopen(&mut self, id: &str, recorder: &mut Recorder) {
        if self.reopened.len() < MAX_TERMINALS {
            self.reopened.insert(id.to_owned());
        } else if !self.reopened.contains(id) {
            recorder.contradicted(NoticeCode::LateUpdate, format!("the call {id} continued after its end"));
        }
    }

    /// Notes that a call that continued has ended again.
    pub(super) fn close_again(&mut self, id: &str) {
        self.reopened.remove(id);
    }

    /// Clears the open calls: the agent's process has ended and sends no more updates.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Ends the turn, and with it the calls that were cancelled or refused.
    pub(super) fn end_turn(&mut self, cancelled: bool, recorder: &mut Recorder) {
        self.flush(recorder);
        self.settle(recorder);
        recorder.end_turn(cancelled);
        self.drop_ended(recorder);
    }
}

impl Translator {
    /// Takes the end of a process or of the recording, and with it the requests for terminals that have no answer.
    pub(super) fn settle(&mut self, recorder: &mut Recorder) {
        self.calls.settle(recorder);
        for terminal in self.requests.new_terminals() {
            terminal.tell(recorder);
        }
    }

    /// Takes a `tool_call` or a `tool_call_update`.
    pub(super) fn call(
        &mut self,
        announces: bool,
        mut update: Map<String, Value>,
        meta: &Value,
        recorder: &mut Recorder,
    ) {
        let Some(id) = update.remove("toolCallId").filter(|id| !id.is_null()).map(|id| rpc::id_text(&id)) else {
            return recorder
                .lost(NoticeCode::MalformedUpdate, format!("a tool call without an id: {}", Value::Object(update)));
        };
        if self.took_compaction(announces, &id, &update, meta, recorder) {
            return;
        }
        let status = update.remove("status").unwrap_or(Value::Null);
        let was_discarded = std::mem::replace(&mut self.calls.is_discarded, !announces && is_discarded(meta));
        if self.calls.is_discarded && !was_discarded {
            recorder.notice(NoticeCode::DiscardedMessage, "the answer before is discarded and requested again");
            self.request_repeated(true, recorder);
        }
        let call = self.calls.open.get_mut(&id).filter(|_| announces);
        let is_first = call.is_some_and(|call| std::mem::take(&mut call.is_only_asked));
        let workspace = recorder.header().cwd.clone().filter(|_| announces);
        let known_name = self.calls.open.get(&id).filter(|call| !call.is_named_by_title);
        let known_name = known_name.and_then(|call| call.name.as_deref());
        let name = name_in(&update, meta);
        let is_of_other_tool = known_name.zip(name.as_deref()).is_some_and(|(old, new)| is_other_tool(old, new));
        let is_another = || is_of_other_tool || is_another(&id, &update, is_first, workspace.as_deref(), recorder);
        if announces && recorder.is_open(&id) && is_another() {
            self.calls.put_aside(&id, recorder);
        } else if announces && !is_first {
            tell_other_title(&id, &update, workspace.as_deref(), recorder);
        }
        let is_open = recorder.is_open(&id);
        if !is_open {
            self.calls.open.remove(&id);
            if !announces && recorder.was_announced(&id) {
                self.look_for_sub_agent(&id, false, meta, recorder);
                return self.late_update(&id, &status, update, meta, recorder);
            }
            if !announces {
                recorder
                    .notice(NoticeCode::UnannouncedCall, format!("the call {id} was updated before it was announced"));
            }
        }
        // While a call is pending, an empty input is still being written.
        let is_settled = matches!(status.as_str(), Some("in_progress" | "completed" | "failed"));
        let has_none = is_settled && update.get("rawInput").is_some_and(|input| *input == Value::Object(Map::new()));
        let had_kind = self.calls.open.get(&id).is_some_and(|call| call.has_kind);
        let has_kind = had_kind || update.get("kind").is_some_and(|kind| !kind.is_null());
        let (mut report, mut last) = self.read(&id, &mut update, meta, true, recorder);
        if !has_kind && report.kind.is_none() {
            // By the protocol, a call that is announced without a kind is of the kind `other`. An update without a kind
            // says nothing about it.
            let is_unknown = recorder.open_call(&id).is_some_and(|(call, _)| call.unknown_kind);
            match announces {
                true if is_unknown => report.kind = Some(ToolKind::Other),
                true => {}
                false => report.unknown_kind = !is_open,
            }
        }
        if has_none {
            report.input = Some(Value::Object(Map::new()));
        }
        let ended = self.ended_as(&id, &status, recorder);
        if ended.is_none() {
            report.output = self.so_far(&id, last.shown.take(), &last.raw);
        }
        let is_command = self.conventions.hides_typed_input && matches!(report.kind, None | Some(ToolKind::Execute));
        let command = report.input.clone().filter(|_| is_command);
        if is_open {
            recorder.update(&id, report, false);
        } else {
            self.announce(&id, report, recorder);
        }
        if let Some(command) = command {
            self.typed_input.look_at(&id, &command, recorder);
        }
        if self.denied.remove(&id) {
            recorder.deny(&id);
        }
        self.look_for_sub_agent(&id, !is_open, meta, recorder);
        if let Some(call) = self.calls.open.get(&id) {
            self.calls.actions.record_shown_call(&id, &call.terminals, recorder);
        }
        if let Some(ended) = ended {
            self.end(&id, ended, meta, last, recorder);
        }
    }

    /// Announces a call. If this makes the recorder end other calls, their output so far is recorded first, and their
    /// state is dropped.
    pub(super) fn announce(&mut self, id: &str, report: CallReport, recorder: &mut Recorder) {
        let may_end_calls = recorder.may_end_calls();
        if may_end_calls {
            self.calls.flush(recorder);
        }
        let parent = report.parent.clone();
        if recorder.call(id, report)
            && let Some(parent) = parent
        {
            self.sub_agents.called(&parent);
        }
        if may_end_calls {
            self.calls.drop_ended(recorder);
        }
    }

    /// Takes an update about a compaction of the conversation, which bridges report in the form of a call although no model
    /// called anything. Returns false if the update is not about a compaction, or shows more than one: it is of a call then.
    fn took_compaction(
        &mut self,
        announces: bool,
        id: &str,
        update: &Map<String, Value>,
        meta: &Value,
        recorder: &mut Recorder,
    ) -> bool {
        if recorder.was_announced(id) {
            return false;
        }
        let goes_on = self.calls.compactions.contains(id) && may_be_of_compaction(update, meta);
        let begins = announces && self.is_compaction(update, meta, recorder);
        if !begins && !goes_on {
            return false;
        }
        if self.calls.compactions.len() < MAX_COMPACTIONS {
            self.calls.compactions.insert(id.to_owned());
        }
        let status = update.get("status").and_then(Value::as_str).map(str::to_owned);
        let text = content::shown(update.get("content").cloned().unwrap_or(Value::Null)).text;
        let facts = update.get("rawOutput").filter(|facts| !facts.is_null()).map(Value::to_string);
        let details = [status, text, facts].into_iter().flatten().collect::<Vec<_>>();
        if !details.is_empty() {
            recorder.notice(NoticeCode::Compaction, details.join(": "));
        }
        true
    }

    /// Returns true if an announcement is a bridge's report about a compaction of the conversation, and not about a call.
    pub(super) fn is_compaction(&self, update: &Map<String, Value>, meta: &Value, recorder: &mut Recorder) -> bool {
        let has = |key: &str| update.get(key).is_some_and(Value::is_string);
        has("title")
            && has("kind")
            && may_be_of_compaction(update, meta)
            && (self.may_be_bridge(&CLAUDE, recorder) || self.may_be_bridge(&CODEX, recorder))
    }

    /// Notes the sub-agent that a call of Claude Code starts. `is_new` is true if the update announced the call.
    fn look_for_sub_agent(&mut self, id: &str, is_new: bool, meta: &Value, recorder: &Recorder) {
        let Some(claude) = meta.get("claudeCode") else { return };
        let call = recorder.call_id(id);
        if let Some(tool) = text_at(claude, "toolName").filter(|_| is_new) {
            self.sub_agents.announced(&call, &tool);
        }
        if let Some(response) = claude.get("toolResponse").filter(|response| text_at(response, "agentId").is_some()) {
            self.sub_agents.reported(&call, response.get("totalToolUseCount").and_then(Value::as_u64));
        }
    }

    /// Takes a piece of a call's content.
    pub(super) fn call_chunk(&mut self, mut update: Map<String, Value>, recorder: &mut Recorder) {
        let id = update.get("toolCallId").filter(|id| !id.is_null()).map(rpc::id_text).unwrap_or_default();
        if !recorder.is_open(&id) {
            let text = format!("content for the call {id}, which is not open");
            let content = content::shown(update.remove("content").unwrap_or(Value::Null));
            return match recorder.was_announced(&id) {
                true if shows_other_changes(&id, &content, recorder) => recorder.lost(NoticeCode::LateUpdate, text),
                true => recorder.notice(NoticeCode::LateUpdate, text),
                false => recorder.lost(NoticeCode::UnknownCall, text),
            };
        }
        let CallContents { text, diffs, .. } = content::shown(update.remove("content").unwrap_or(Value::Null));
        if let Some(text) = text {
            let marked = self.marked_content().and_then(|content| content::shown(content).text);
            self.calls.open.entry(id.clone()).or_default().stream(&text, marked.as_deref());
        }
        recorder.update(&id, CallReport { diffs, ..CallReport::default() }, false);
    }

    /// Returns the call as a permission request reports it, and true if the request describes the call at all.
    pub(super) fn described(
        &mut self,
        id: &str,
        call: &mut Map<String, Value>,
        recorder: &mut Recorder,
    ) -> (bool, CallReport) {
        let meta = call.remove("_meta").unwrap_or(Value::Null);
        let filled = |key: &str| call.get(key).is_some_and(|value| !recorder::is_empty(value));
        let describes = ["title", "kind", "name", "rawInput", "content", "locations"].into_iter().any(filled);
        if !describes {
            return (false, CallReport::default());
        }
        let is_open = recorder.is_open(id);
        if !is_open {
            self.calls.open.remove(id);
        }
        let (mut report, _) = self.read(id, call, &meta, false, recorder);
        if let Some(call) = self.calls.open.get_mut(id).filter(|_| !is_open) {
            call.is_only_asked = true;
        }
        // A request without a kind says nothing about it.
        report.unknown_kind |= report.kind.is_none() && !is_open;
        (true, report)
    }

    /// Reads the details of a call in an update. A permission request describes a plan and not an action: its content
    /// is not output, and its title is not a name.
    fn read(
        &mut self,
        id: &str,
        update: &mut Map<String, Value>,
        meta: &Value,
        happens: bool,
        recorder: &mut Recorder,
    ) -> (CallReport, Outcome) {
        let mut call = self.calls.open.remove(id).unwrap_or_default();
        let title = take_text(update, "title").filter(|title| !title.is_empty());
        let input = update.remove("rawInput").filter(|input| !recorder::is_empty(input));
        let locations = content::locations(update.get("locations"));
        let raw = update.remove("rawOutput").unwrap_or(Value::Null);
        let content = update.remove("content").unwrap_or(Value::Null);
        let is_emptied = !raw.is_null() && content.as_array().is_some_and(Vec::is_empty);
        let mut shown = content::shown(content);

        let mut name = name_in(update, meta);
        if let Some(title) = &title {
            if name.is_none() && call.name.is_none() && happens && !call.titled {
                name = self.conventions.name_in_title(title).filter(|name| !name.is_empty()).map(str::to_owned);
                call.is_named_by_title = name.is_some();
            }
            call.titled |= happens;
        }
        if call.name.is_none() {
            call.name.clone_from(&name);
        } else if call.is_named_by_title {
            // The name in the title stays, even if the exact one is written otherwise.
            name = None;
        }

        let kind_value = update.get("kind").filter(|kind| !kind.is_null());
        if let Some(value) = kind_value {
            self.read_kind(id, value, &mut call, recorder);
        }
        let kind = self.conventions.kind_of(call.name.as_deref()).or(call.kind.filter(|_| kind_value.is_some()));
        let unknown_kind = kind_value.is_some() && kind.is_none();

        // Some agents first show the input or a line of it, such as the command's description, as if it were output.
        let is_input = |text: &String| repeats_input(text, input.as_ref());
        let text = shown.text.take().filter(|text| happens && !text.is_empty());
        let is_replaced = text.as_ref().is_some_and(is_input) || !shown.terminals.is_empty() || is_emptied;
        let output = text.filter(|text| !is_input(text));
        // The content of an update replaces the content before it, which was no output: the arguments in pieces.
        if happens && is_replaced && output.is_none() && std::mem::take(&mut call.shown) {
            recorder.drop_output(id);
        }
        tell_unreadable(id, &mut shown, update.get("locations"), recorder);
        for terminal in shown.terminals.drain(..) {
            if !call.terminals.contains(&terminal) && call.terminals.len() < MAX_TERMINALS {
                call.terminals.push(terminal);
            }
        }
        self.stream_of_terminals(meta, &mut call);
        call.read_meta(meta);
        self.calls.has_gone_on |= call.goes_on;
        call.is_invalid |= happens && is_invalid(title.as_deref(), input.as_ref());
        call.truncated |= content::truncated(&raw);
        self.calls.open.insert(id.to_owned(), call);

        let parent = parent_of(meta).filter(|parent| *parent != id).map(|parent| recorder.call_id(parent));
        let exit_code = content::exit_code(meta, &raw);
        let unreadable_exit = exit_code.is_none() && content::has_unreadable_exit_code(meta, &raw);
        // A service may count no tokens. Then no usage report arrives, and nothing separates the messages.
        let marks_messages = self.conventions.usage.after_each_message == Some(true) && self.usage_reports > 0;
        let message = || format!("{} {}", self.turn.number, self.usage_reports);
        let group = (marks_messages && parent.is_none()).then(message);
        let diffs = std::mem::take(&mut shown.diffs);
        let report = CallReport {
            parent,
            group,
            kind,
            unknown_kind,
            name,
            title,
            input,
            locations,
            cwd: None,
            diffs,
            output: None,
            exit_code,
        };
        let is_command = matches!(kind, None | Some(ToolKind::Execute | ToolKind::Other));
        let end = CommandEnd::of(exit_code, is_command && content::has_signal(meta, &raw));
        (report, Outcome { shown: output, raw, end, unreadable_exit })
    }

    /// Reads the kind of a call. A value that is no kind makes the kind unknown.
    fn read_kind(&mut self, id: &str, value: &Value, call: &mut OpenCall, recorder: &mut Recorder) {
        call.has_kind = true;
        call.kind = value.as_str().and_then(ToolKind::from_word);
        if call.kind.is_none() {
            let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = || format!("the call {id} has the unknown kind `{word}`");
            self.once(NoticeCode::UnknownKind, &word, text, recorder);
        }
    }

    /// Adds what an update shows of the output of the agent's terminals.
    fn stream_of_terminals(&self, meta: &Value, call: &mut OpenCall) {
        for key in ["terminal_output_delta", "terminal_output"] {
            if let Some(data) = meta.get(key).and_then(|piece| piece.get("data")).and_then(Value::as_str) {
                let marked = self
                    .marked
                    .as_ref()
                    .and_then(|line| line.pointer(&format!("/params/update/_meta/{key}/data")).and_then(Value::as_str));
                call.stream(data, marked);
            }
        }
    }

    /// Returns how a call ended, by its status, or `None` while the call continues.
    fn ended_as(&mut self, id: &str, status: &Value, recorder: &mut Recorder) -> Option<ReportedStatus> {
        let (ended, is_unclear) = match status.as_str() {
            Some("completed") => (Some(ReportedStatus::Ok), false),
            Some("failed") => (Some(ReportedStatus::Failed), false),
            Some("cancelled" | "canceled") => (Some(ReportedStatus::Cancelled), false),
            Some("pending" | "in_progress") => (None, false),
            None if status.is_null() => return None,
            _ => {
                recorder.notice(NoticeCode::UnknownStatus, format!("the call {id} has the unknown status {status}"));
                (None, true)
            }
        };
        if let Some(call) = self.calls.open.get_mut(id) {
            call.is_unclear = is_unclear;
        }
        ended
    }

    /// Returns the output so far of a call that continues.
    fn so_far(&mut self, id: &str, shown: Option<String>, raw: &Value) -> Option<String> {
        let call = self.calls.open.get_mut(id)?;
        if shown.is_some() {
            call.shown = true;
            return shown;
        }
        let raw = content::raw_text(raw)?;
        call.raw = Some(raw.clone());
        (!call.shown).then_some(raw)
    }

    /// Ends a call.
    fn end(&mut self, id: &str, status: ReportedStatus, meta: &Value, last: Outcome, recorder: &mut Recorder) {
        let call = self.calls.open.remove(id).unwrap_or_default();
        let claimed = self.calls.actions.ended(id, recorder);
        // A terminal is the call's if the call embeds it, or if the call embeds none and shows the terminal's command.
        let terminals = if call.terminals.is_empty() { &claimed } else { &call.terminals };
        let in_terminals = self.calls.terminals.show(terminals);
        let mut outcome = match call.not_run.as_deref() {
            Some(why) if is_denial(why) => ReportedStatus::Denied,
            Some(why) if is_cancellation(why) => ReportedStatus::Cancelled,
            _ => status,
        };
        if call.is_invalid && outcome == ReportedStatus::Ok {
            outcome = ReportedStatus::Failed;
        }
        if status == ReportedStatus::Failed && last.raw.get("code").and_then(Value::as_str).is_some_and(is_denial) {
            outcome = ReportedStatus::Denied;
        }
        let claude = meta.get("claudeCode").is_some();
        let exact = match (&last.raw, &last.shown) {
            (Value::String(raw), Some(shown)) => claude || content::is_fenced(shown, raw),
            (Value::String(_), None) => claude,
            _ => false,
        };
        // The recorder already has the text that an earlier update showed.
        let output = match last.shown {
            _ if exact => content::raw_text(&last.raw),
            Some(shown) => Some(shown),
            None if call.shown => None,
            None => content::raw_text(&last.raw)
                .or(call.raw)
                .or_else(|| Some(call.streamed).filter(|text| !text.is_empty()))
                .or(in_terminals.output),
        };
        if status == ReportedStatus::Failed
            && self.conventions.is_agent(GEMINI)
            && output.as_deref().is_some_and(says_denied)
        {
            outcome = ReportedStatus::Denied;
        }
        let end = last.end.or(in_terminals.end);
        let mut exit_code = end.and_then(CommandEnd::code);
        if status == ReportedStatus::Failed && exit_code.is_none() {
            exit_code = output.as_deref().and_then(exit_code_in);
        }
        // Text from a file or a search does not state how a command ended.
        if exit_code.is_none() && call.kind == Some(ToolKind::Execute) {
            exit_code = output.as_deref().and_then(|output| self.conventions.exit_code_in(output));
        }
        // A command that a signal ended has no exit code.
        if outcome == ReportedStatus::Ok && end == Some(CommandEnd::Signal) && exit_code.is_none() {
            outcome = ReportedStatus::Failed;
        }
        let version = recorder.header().agent.as_ref().and_then(|agent| agent.version.as_deref());
        let hides_end = call.kind == Some(ToolKind::Execute) && self.conventions.hides_failures(version);
        if outcome == ReportedStatus::Ok && exit_code.is_none() && (last.unreadable_exit || hides_end) {
            // The call stays open, and ends as unfinished with its output.
            recorder.update(id, CallReport { output, ..CallReport::default() }, false);
            return recorder.unclear_outcome(id);
        }
        let truncated = call.truncated || in_terminals.truncated;
        let result = ResultReport { outcome, output, diffs: Vec::new(), exit_code, truncated };
        self.typed_input.result(id, &result);
        recorder.result(id, result);
        self.typed_input.ended(id, recorder);
        match recorder.ended_as(id) {
            Some(CallStatus::Denied) => self.sub_agents.refused(&recorder.call_id(id)),
            Some(CallStatus::Ok) if call.goes_on => {
                let text =
                    format!("the call {id} started a sub-agent in the background, whose end the agent does not show");
                recorder.contradicted(NoticeCode::UnclearOutcome, text);
            }
            _ => {}
        }
    }
}

/// Returns the tool's name from any of the places where agents put it. [`CALLS_OTHER_TOOLS`] counts as no name, because
/// it does not state which tool is called.
pub(super) fn name_in(update: &Map<String, Value>, meta: &Value) -> Option<String> {
    let named = [
        meta.get("claudeCode").and_then(|claude| text_at(claude, "toolName")),
        update.get("name").and_then(Value::as_str).map(str::to_owned),
        text_at(meta, "tool_name"),
        text_at(meta, "toolName"),
    ];
    named.into_iter().flatten().find(|name| !name.is_empty() && name != CALLS_OTHER_TOOLS)
}

/// Returns the call as the `toolCall` of a permission request reports it.
pub(crate) fn call_report(call: &Value, known_name: Option<&str>, conventions: &Conventions) -> CallReport {
    let Value::Object(map) = call else { return CallReport::default() };
    let name = name_in(map, call.get("_meta").unwrap_or(&Value::Null));
    let word = map.get("kind").and_then(Value::as_str);
    let kind = conventions.kind_of(name.as_deref().or(known_name)).or_else(|| ToolKind::from_word(word?));
    let has_kind = map.get("kind").is_some_and(|kind| !kind.is_null());
    CallReport {
        kind,
        unknown_kind: has_kind && kind.is_none(),
        title: text_at(call, "title").filter(|title| !title.is_empty()),
        input: map.get("rawInput").filter(|input| !recorder::is_empty(input)).cloned(),
        locations: content::locations(map.get("locations")),
        diffs: content::shown(map.get("content").cloned().unwrap_or(Value::Null)).diffs,
        name,
        ..CallReport::default()
    }
}

impl OpenCall {
    /// Reads whether the call ran, and whether it goes on.
    fn read_meta(&mut self, meta: &Value) {
        if let Some(why) = meta.get("claudeCode").and_then(|claude| text_at(claude, "nonExecutionKind")) {
            self.not_run = Some(why);
        }
        if is_discarded(meta) {
            self.not_run = Some("cancelled".to_owned());
        }
        self.goes_on |= goes_on(meta);
    }

    fn stream(&mut self, piece: &str, marked: Option<&str>) {
        let kept = first_bytes(piece, MAX_TEXT.saturating_sub(self.streamed.len()));
        self.truncated |= kept.len() < piece.len();
        self.cut.push(&mut self.streamed, kept, marked);
    }
}

/// Returns true if an update may be about a compaction of the conversation: it shows neither an input nor anything else of a
/// call.
fn may_be_of_compaction(update: &Map<String, Value>, meta: &Value) -> bool {
    let (title, name) = COMPACTION;
    let is_titled = update.get("title").is_none_or(|it| it.is_null() || it.as_str() == Some(title));
    let is_named = name_in(update, meta).is_none_or(|known| known == name);
    let has_input = update.get("rawInput").is_some_and(|input| !input.is_null());
    is_titled && is_named && !has_input && may_be_report(update, meta, "think")
}

/// Returns true if Claude Code reports that a call started a sub-agent in the background.
pub(super) fn goes_on(meta: &Value) -> bool {
    let response = meta.get("claudeCode").and_then(|claude| claude.get("toolResponse"));
    response.and_then(|response| response.get("isAsync")).and_then(Value::as_bool) == Some(true)
}

/// Returns true if the output of a failed call of Gemini CLI is the agent's sentence that a rule or a hook denied the call.
fn says_denied(output: &str) -> bool {
    let output = output.trim_end();
    let of_tool = || output.strip_prefix("Tool execution for \"")?.strip_suffix("\" denied by policy.");
    let by_policy = || output.strip_prefix("Tool execution denied by policy.");
    by_policy().is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
        || of_tool().is_some_and(|tool| !tool.contains('"'))
        || output.starts_with("Tool execution blocked: ")
}

/// Returns true if a text is the input of a call, or a value of the input.
fn repeats_input(text: &str, input: Option<&Value>) -> bool {
    let Some(map) = input.and_then(Value::as_object) else { return false };
    map.values().any(|value| value.as_str() == Some(text))
        || (text.starts_with('{') && serde_json::from_str::<Map<String, Value>>(text).is_ok_and(|it| it == *map))
}

/// Records what an update shows of a call in a form that cannot be read: content of an unknown type, and names of files.
fn tell_unreadable(id: &str, shown: &mut CallContents, locations: Option<&Value>, recorder: &mut Recorder) {
    for item in shown.other.drain(..) {
        let text = format!("the call {id} has content of an unknown type: {item}");
        match content::may_hold_text(&item) {
            true => recorder.lost(NoticeCode::ToolContent, text),
            false => recorder.notice(NoticeCode::ToolContent, text),
        }
    }
    if content::has_unreadable_location(locations) {
        recorder.lost(NoticeCode::MalformedUpdate, format!("the call {id} names a file that cannot be read"));
    }
}

/// Returns true if Qwen Code marks a call as one of an answer that it discarded and requested again.
fn is_discarded(meta: &Value) -> bool {
    meta.get("preparationDiscarded").and_then(Value::as_bool) == Some(true)
}

/// Returns true if OpenCode shows a call that its model made wrongly. The call becomes one of the tool `invalid`, which always
/// succeeds.
fn is_invalid(title: Option<&str>, input: Option<&Value>) -> bool {
    let has = |key: &str| input.and_then(|input| input.get(key)).is_some_and(Value::is_string);
    title == Some("invalid") && has("tool") && has("error")
}

/// Returns true if a call of this id is open and the update announces another call: in a later turn, with an input that does
/// not continue the one that the call shows or asked for, or with another action than the one that was rejected or cancelled. An
/// agent may announce a call again when its input is complete. The first announcement of a call that a permission request
/// described before (`is_first`) is of this call, unless the call was refused: the recorder compares the two.
fn is_another(
    id: &str,
    update: &Map<String, Value>,
    is_first: bool,
    workspace: Option<&str>,
    recorder: &Recorder,
) -> bool {
    if recorder.is_of_earlier_turn(id) {
        return true;
    }
    let Some((call, diffs)) = recorder.open_call(id) else { return false };
    let asked = recorder.call_in_progress(id);
    let asked = asked.as_ref().map_or(call, |open| open.call.as_ref());
    let is_failed = update.get("status").and_then(Value::as_str) == Some("failed");
    if recorder.is_refused(id)
        && !is_failed
        && Differs::between(asked, diffs, &shown_in(update), workspace).is_of_another()
        && !continues_refused(call, asked, update)
    {
        return true;
    }
    let Some(new) = update.get("rawInput").filter(|input| !recorder::is_empty(input) && !is_first) else {
        return false;
    };
    let known = [call.input.as_ref(), asked.input.as_ref()];
    let continues = |old| continues_input(old, new, folder_of(call), workspace);
    call.input.as_ref().is_some_and(|old| new != old) && !known.into_iter().flatten().any(continues)
}

/// Returns true if an update shows all values of the input of a refused call, and no other command: the agent only adds to it.
fn continues_refused(call: &ToolCall, asked: &ToolCall, update: &Map<String, Value>) -> bool {
    let Some(new) = update.get("rawInput").filter(|input| !recorder::is_empty(input)) else { return false };
    let has_all = |old: &Value| {
        let values = old.as_object().zip(new.as_object());
        values.is_some_and(|(old, new)| old.iter().all(|(key, value)| new.get(key) == Some(value)))
    };
    let command = |input: &Value| view::command(Some(input));
    [&asked.input, &call.input].into_iter().flatten().any(|old| has_all(old) && command(old) == command(new))
}

/// Returns the input and the files that an update shows.
fn shown_in(update: &Map<String, Value>) -> CallReport {
    CallReport {
        input: update.get("rawInput").filter(|input| !recorder::is_empty(input)).cloned(),
        locations: content::locations(update.get("locations")),
        diffs: content::shown(update.get("content").cloned().unwrap_or(Value::Null)).diffs,
        ..CallReport::default()
    }
}

/// Adds a notice if an open call is announced again without an input, and under a title that may be about another action.
fn tell_other_title(id: &str, update: &Map<String, Value>, workspace: Option<&str>, recorder: &mut Recorder) {
    let has_input = update.get("rawInput").is_some_and(|input| !recorder::is_empty(input));
    let title = update.get("title").and_then(Value::as_str).filter(|title| !title.is_empty() && !has_input);
    let Some((title, (call, diffs))) = title.zip(recorder.open_call(id)) else { return };
    let asked = recorder.call_in_progress(id);
    let asked = asked.as_ref().and_then(|open| open.call.input.as_ref());
    if may_be_of_another(title, call, asked, diffs, workspace) {
        let text = format!("the call {id} is announced again, perhaps as another one: {}", first_bytes(title, 200));
        recorder.did_unseen(NoticeCode::ChangedInput, text);
    }
}

/// Returns true if content that came after the end of a call shows changes to files that its result does not show.
pub(super) fn shows_other_changes(id: &str, content: &CallContents, recorder: &Recorder) -> bool {
    !content.diffs.is_empty() && !recorder.ended_with(id, &content.diffs)
}

fn is_denial(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    ["permission", "reject", "denied", "deny", "refus", "block"].iter().any(|word| why.contains(word))
}

fn is_cancellation(why: &str) -> bool {
    let why = why.to_ascii_lowercase();
    ["cancel", "interrupt", "abort"].iter().any(|word| why.contains(word))
}
