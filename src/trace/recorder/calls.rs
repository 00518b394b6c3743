//! Tool calls: announced and updated. Their permission requests and their ends are in the modules below.

use std::collections::VecDeque;

use serde_json::Value;

use super::hashes::{hash_in, hash_of};
use super::{CallReport, MAX_BEHIND, MAX_OPEN, QuotedLine, Recorder, ReportedStatus, Slot, is_empty};
use crate::text::first_bytes;
use crate::trace::calls::is_same_command;
use crate::trace::facts::ReportedDetails;
use crate::trace::request_subject::note_subject;
use crate::trace::view;
use crate::trace::{
    Body, CallStatus, Content, FileDiff, NoticeCode, PermissionOutcome, RequestSubject, SubjectFacts, ToolCall,
    ToolKind,
};

mod endings;
mod replaced;
mod requests;

use replaced::{Earlier, gone_text, is_same_file, keep_nulled};
pub(crate) use replaced::{folder_of, is_other_tool};

/// An open call. An agent may open very many and close none, so fields that most calls lack take no room.
pub(super) struct OpenCall {
    /// The id in the trace, if it differs from the agent's.
    call: Option<Box<str>>,
    pub(super) slot: u64,
    step: u64,
    /// The number of calls announced up to this one.
    pub(super) number: u64,
    pub(super) rejected: bool,
    /// True if the agent itself reported the call as denied. A result then only ends the call.
    denied: bool,
    /// True if the last request was cancelled.
    cancelled: bool,
    /// True if the engine cancelled it without asking the policy.
    cancelled_by_engine: bool,
    /// True if the turn was cancelled while the call was open.
    turn_cancelled: bool,
    /// True if the agent withdrew the message that announced the call.
    pub(super) withdrawn: bool,
    /// True if the call goes on in the background after its result.
    pub(super) in_background: bool,
    more: Option<Box<More>>,
}

/// The fields that few open calls have.
#[derive(Default)]
struct More {
    parent: Option<String>,
    diffs: Vec<FileDiff>,
    /// The line that showed the changes.
    diffs_at: Option<u64>,
    output: Option<String>,
    exit_code: Option<i64>,
    /// The input that the last request asked for instead of the announced one.
    asked: Option<AskedInput>,
    /// The paths that the call showed before it replaced its input, its locations or its changes.
    earlier_paths: Vec<String>,
    /// True if the call first had another kind, which the present one does not include.
    had_other_kind: bool,
    /// The content that the call showed before it was described otherwise, if it showed more of an action.
    earlier_content: Content,
    /// True if the call showed changes after it had been rejected or cancelled.
    changed_after_all: bool,
    /// The slots of the requests for permission, with their subjects.
    requests: Vec<(u64, RequestSubject)>,
    /// The last request, by its id in the trace.
    last_request: String,
    /// The number of requests whose answers are awaited.
    awaited: usize,
    /// The content of the call's event, if the event has left the recorder, or leaves it at the end of the line.
    written: Option<Shown>,
}

/// A call that ended before the answer to a request about it. Its events may change until the answer comes.
pub(super) struct EndedEarly {
    open: OpenCall,
    /// The slot of the result.
    result: u64,
    /// True if the agent reports a success, and shows what the call did.
    is_contested: bool,
}

/// An input that a request asked for.
pub(super) struct AskedInput {
    /// The request, by its id in the trace.
    request: String,
    input: Value,
    /// The slot of the request's answer.
    slot: Option<u64>,
}

/// A call that ended and started a sub-agent, no call of which was shown by then. A sub-agent in the background works on.
pub(super) struct UnshownSubAgent {
    /// The call, by its id in the trace.
    call: String,
    /// The text of the notice, if no call of the sub-agent follows.
    text: String,
    /// The line of the call's result.
    line: QuotedLine,
}

/// A failed result that is held, because the agent may still report its call as denied.
pub(super) struct FailedResult {
    id: Box<str>,
    slot: u64,
    /// The hashes of the name of the tool and of its input.
    name: Option<u64>,
    input: Option<u64>,
}

/// A call that ended, as far as it is remembered.
pub(super) struct EndedCall {
    /// The hash of the agent's id.
    id: u64,
    status: CallStatus,
    /// The agent's own word for the end. Absent if the engine ended the call.
    reported: Option<ReportedStatus>,
    /// The hash of the changes to files that the call showed.
    diffs: u64,
    /// The hash of the output.
    output: Option<u64>,
    shown: Shown,
}

/// The content of a call's event, as hashes.
#[derive(Default)]
pub(super) struct Shown {
    /// The kind; `None` if it is unknown.
    kind: Option<ToolKind>,
    /// The hash of the input. Absent if none was shown.
    input: Option<u64>,
    /// The hashes of the name, the title and the folder.
    name: Option<u64>,
    title: Option<u64>,
    cwd: Option<u64>,
    /// The hashes of the paths that the call named.
    paths: Vec<u64>,
}

impl Shown {
    /// Returns the content of a call's event, with the paths that the call named.
    fn of(call: &ToolCall, paths: &[String]) -> Self {
        Self {
            kind: (!call.unknown_kind).then_some(call.kind),
            input: call.input.as_ref().map(hash_of),
            name: call.name.as_ref().map(hash_of),
            title: call.title.as_ref().map(hash_of),
            cwd: call.cwd.as_ref().map(hash_of),
            paths: paths.iter().map(hash_of).collect(),
        }
    }

    /// Returns true if the event shows what is now said of the call. The title counts only if titles are commands.
    fn knows(&self, report: &CallReport, titles_are_commands: bool) -> bool {
        let title = report.title.as_ref().filter(|_| titles_are_commands);
        report.name.as_ref().is_none_or(|name| self.name == Some(hash_of(name)))
            && title.is_none_or(|title| self.title == Some(hash_of(title)))
            && report.kind.is_none_or(|kind| self.kind == Some(kind))
            && report.input.as_ref().is_none_or(|input| self.input == Some(hash_of(input)))
            && report.locations.iter().all(|location| self.paths.contains(&hash_of(&location.path)))
    }
}

impl OpenCall {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled || self.turn_cancelled
    }

    /// Returns the input that the last request asked for instead of the announced one.
    pub(super) fn asked_input(&self) -> Option<&Value> {
        Some(&self.more.as_ref()?.asked.as_ref()?.input)
    }

    /// Returns true if the call first had another kind, which the present one does not include.
    pub(super) fn had_other_kind(&self) -> bool {
        self.more.as_ref().is_some_and(|more| more.had_other_kind)
    }

    /// Returns the content that the call showed before it was described otherwise.
    pub(super) fn earlier_content(&self) -> Content {
        self.more.as_ref().map(|more| more.earlier_content).unwrap_or_default()
    }

    /// Returns the changes that the call has shown.
    pub(super) fn diffs(&self) -> &[FileDiff] {
        self.more.as_ref().map_or(&[], |more| &more.diffs)
    }

    fn call(&self, id: &str) -> String {
        self.call.as_deref().unwrap_or(id).to_owned()
    }

    fn parent(&self) -> Option<&String> {
        self.more.as_ref()?.parent.as_ref()
    }

    fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Takes an exit code. Returns the one before, if it showed a failure and was another one.
    fn take_exit_code(&mut self, code: i64) -> Option<i64> {
        self.more().exit_code.replace(code).filter(|before| *before != 0 && *before != code)
    }

    /// Returns the content of the call's event, if the event has left the recorder or leaves it at the end of the line.
    fn written(&self) -> Option<&Shown> {
        self.more.as_ref()?.written.as_ref()
    }

    /// Keeps the content of the call's event, if the event is in one of these slots.
    fn keep_written(&mut self, slots: &VecDeque<Slot>, first: u64) {
        let slot = self.slot.checked_sub(first).and_then(|n| slots.get(n as usize));
        let Some(Body::ToolCall(call)) = slot.map(|slot| &slot.event.body) else { return };
        let paths = view::written_paths(call.shown_input(), &call.locations, self.diffs());
        self.more().written = Some(Shown::of(call, &paths));
    }
}

pub(super) struct Step {
    pub(super) number: u64,
    pub(super) group: Option<String>,
    pub(super) has_result: bool,
}

pub(super) struct OpenRequest {
    pub(super) call: String,
    /// The agent's id of the call; absent if the call had not been announced.
    pub(super) agent_call: Option<String>,
    pub(super) parent: Option<String>,
    /// The agent's id of the request.
    pub(super) asked_as: String,
    /// The agent's id of the request, if its call had not been announced when the request came.
    pub(super) unknown: Option<String>,
    /// True if the call awaits the answer.
    pub(super) is_awaited: bool,
    /// The input that the request asks for instead of the announced one.
    pub(super) input: Option<Value>,
}

/// Returns true if an input shows that there are no arguments.
fn is_none_shown(input: &Value) -> bool {
    input.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Returns a text without the ellipsis at its end, which marks a preview of a longer text.
fn without_ellipsis(text: &str) -> &str {
    text.trim_end().trim_end_matches('…').trim_end_matches("...")
}

/// Returns true if an input contains everything that an earlier input shows, with texts and lists that are longer or the same:
/// the earlier input was still being written. A path may be relative in one of the two, to the folder of the call or to the
/// workspace. A value may become null, unless it is a command or a path.
pub(crate) fn continues_input(old: &Value, new: &Value, cwd: Option<&str>, workspace: Option<&str>) -> bool {
    let continues = |old: &Value, new: &Value| continues_input(old, new, cwd, workspace);
    match (old, new) {
        (old, _) if is_empty(old) => true,
        (Value::Object(old), Value::Object(new)) => {
            let is_action = |key: &str| view::is_command_key(key) || view::is_path_key(key);
            old.iter().all(|(key, old)| match new.get(key) {
                Some(Value::Null) if !is_action(key) => true,
                new => continues(old, new.unwrap_or(&Value::Null)),
            })
        }
        (Value::Array(old), Value::Array(new)) => {
            old.len() <= new.len() && old.iter().zip(new).all(|(old, new)| continues(old, new))
        }
        (Value::String(old), Value::String(new)) => {
            new.starts_with(without_ellipsis(old)) || is_still_shown(old, new, cwd, workspace)
        }
        // Arguments that arrive in pieces may be shown as the text of JSON until they are whole.
        (Value::String(old), Value::Object(_) | Value::Array(_)) => {
            let bare = |text: &str| text.split_whitespace().collect::<String>();
            bare(&new.to_string()).starts_with(&bare(old))
        }
        (old, new) => old == new,
    }
}

/// Returns true if a path that a call showed first is the one that it shows at its end: written out, or relative in one of
/// them. If the workspace is known, both have to lead to the same place.
fn is_still_shown(earlier: &str, path: &str, cwd: Option<&str>, workspace: Option<&str>) -> bool {
    path.starts_with(earlier) || is_same_file(earlier, path, cwd, workspace)
}

/// Returns true if one title of a command continues the other, or is the other cut.
fn is_same_title(old: &str, new: &str) -> bool {
    let bare = |title: &str| title.trim().trim_end_matches('…').trim_end_matches("...").trim().to_owned();
    let (old, new) = (bare(old), bare(new));
    old.starts_with(&new) || new.starts_with(&old)
}

impl Recorder {
    /// Announces a call, or adds to an open one. Returns true if the call was new.
    pub fn call(&mut self, id: &str, mut report: CallReport) -> bool {
        if self.is_another(id, &report) {
            self.put_aside(id);
        }
        if self.is_open(id) {
            self.update(id, report, false);
            return false;
        }
        // A call that was never announced cannot have started anything, so the trace shows this one as the main agent's.
        if let Some(parent) = report.parent.take_if(|parent| !self.was_recorded(parent)) {
            self.lost_caller(
                NoticeCode::UnknownParent,
                format!("the call {id} names {parent} as its parent, but no such call was made"),
            );
        }
        let call = self.unique("call", id);
        if call != id {
            self.renamed.insert(id.to_owned(), call.clone());
        }
        let step = self.step(&report);
        if report.parent.is_none() {
            self.close_text();
            self.answer.clear();
            self.answer_gaps.clear();
        }
        let parent = report.parent.clone();
        let body = Body::ToolCall(ToolCall {
            call: call.clone(),
            step,
            kind: report.kind.unwrap_or(ToolKind::Other),
            unknown_kind: report.unknown_kind && report.kind.is_none(),
            name: report.name,
            title: report.title,
            without_input: report.input.as_ref().is_some_and(is_none_shown),
            input: report.input.filter(|input| !is_empty(input)),
            locations: report.locations,
            cwd: report.cwd,
        });
        let slot = self.push_open(body, parent.clone());
        self.calls += 1;
        let more =
            More { parent, diffs: report.diffs, output: report.output, exit_code: report.exit_code, ..More::default() };
        let is_empty =
            more.parent.is_none() && more.diffs.is_empty() && more.output.is_none() && more.exit_code.is_none();
        let answer = self.answered_early.remove(id);
        let open = OpenCall {
            call: (call != id).then(|| call.into_boxed_str()),
            slot,
            step,
            number: self.calls,
            rejected: answer == Some(PermissionOutcome::Rejected),
            denied: false,
            cancelled: answer == Some(PermissionOutcome::Cancelled),
            cancelled_by_engine: false,
            turn_cancelled: false,
            withdrawn: false,
            in_background: false,
            more: (!is_empty).then(|| Box::new(more)),
        };
        self.open.insert(id.into(), open);
        if self.open.len() > MAX_OPEN.0 {
            let mut slots: Vec<u64> = self.open.values().map(|open| open.slot).collect();
            let (_, last, _) = slots.select_nth_unstable(MAX_OPEN.1);
            let last = *last;
            self.cut(|open| open.slot < last);
        } else if self.calls.is_multiple_of(MAX_BEHIND.1) {
            let last = self.calls.saturating_sub(MAX_BEHIND.0);
            if self.open.values().any(|open| open.number < last) {
                self.cut(|open| open.number < last);
            }
        }
        true
    }

    /// Returns true if a call of this id is open and this announces another one: of another tool, or of another message or a
    /// later turn with another input.
    pub fn is_another(&mut self, id: &str, report: &CallReport) -> bool {
        let is_of_earlier_turn = self.is_of_earlier_turn(id);
        let Some((slot, step)) = self.open.get(id).map(|open| (open.slot, open.step)) else { return false };
        let parent = self.open.get(id).and_then(|open| open.parent().cloned());
        let group = self.steps.get(&parent).filter(|it| it.number == step).and_then(|it| it.group.clone());
        let workspace = self.header.cwd.clone();
        let Some(Body::ToolCall(call)) = self.body(slot) else { return false };
        let differs = |one: Option<&String>, other: Option<&String>| one.zip(other).is_some_and(|(a, b)| a != b);
        let inputs = call.input.as_ref().zip(report.input.as_ref()).filter(|(a, b)| !is_empty(b) && a != b);
        let continues = |old, new| continues_input(old, new, folder_of(call), workspace.as_deref());
        let is_of_later_turn = is_of_earlier_turn && inputs.is_some_and(|(old, new)| !continues(old, new));
        differs(call.name.as_ref(), report.name.as_ref())
            || is_of_later_turn
            || (inputs.is_some() && differs(group.as_ref(), report.group.as_ref()))
    }

    /// Returns true if an open call was announced before the prompt of the current turn.
    pub fn is_of_earlier_turn(&self, id: &str) -> bool {
        self.open.get(id).is_some_and(|open| open.number <= self.calls_at_prompt)
    }

    /// Makes room for another call with the same id: the open call gets a name that no agent can use, stays open, and
    /// ends as unfinished, unless the caller ends it by that name.
    pub fn put_aside(&mut self, id: &str) -> Option<String> {
        self.notice(NoticeCode::RepeatedId, format!("a second call has the id {id} of an open call"));
        let mut open = self.open.remove(id)?;
        let call = open.call.get_or_insert_with(|| id.into()).to_string();
        let next = self.repeats.entry(hash_in("aside", id)).or_insert(1);
        let mut names = (*next..).map(|n| (n, format!("{id}\u{0}{n}")));
        let (n, aside) = names.find(|(_, name)| !self.open.contains_key(name.as_str()))?;
        *next = n + 1;
        // The answers to the requests about the open call are about it under its new name.
        if open.more.as_ref().is_some_and(|more| !more.requests.is_empty()) {
            for request in self.requests_of.get(&call).into_iter().flatten() {
                let request = self.requests.get_mut(request).filter(|it| it.agent_call.as_deref() == Some(id));
                if let Some(request) = request {
                    request.agent_call = Some(aside.clone());
                }
            }
        }
        self.open.insert(aside.as_str().into(), open);
        Some(aside)
    }

    /// Returns the id in the trace of an open call, by its name in the recorder, or else of the last call with this id of the
    /// agent.
    pub fn open_call_id(&self, name: &str) -> String {
        self.open.get(name).map_or_else(|| self.call_id(name), |open| open.call(name))
    }

    /// Returns true if the next announced call may end others, because too many are open.
    pub fn may_end_calls(&self) -> bool {
        self.open.len() >= MAX_OPEN.0 || (self.calls + 1).is_multiple_of(MAX_BEHIND.1)
    }

    /// Ends calls that the agent might still end: the memory for open calls is bounded.
    fn cut(&mut self, which: impl Fn(&OpenCall) -> bool) {
        // The notice comes first, so that readers can distinguish the engine's results from the agent's.
        if !std::mem::replace(&mut self.is_cut, true) {
            let text = format!(
                "more than {} calls were open at once, or {} were announced while one was open: from here on the oldest \
                 calls end as unfinished, and how the agent ended them is in the wire log only",
                MAX_OPEN.0, MAX_BEHIND.0
            );
            self.notice(NoticeCode::TooManyOpenCalls, text);
        }
        self.end_open(which);
    }

    /// Adds to an open call. If `only_missing` is set, as for a permission request, only absent parts are filled.
    pub fn update(&mut self, id: &str, mut report: CallReport, only_missing: bool) {
        self.activity += 1;
        // What the call showed stays, if its value is null now.
        let shown = self.open_call(id).and_then(|(call, _)| call.shown_input()).filter(|_| !only_missing);
        if let Some((old, new)) = shown.zip(report.input.as_mut()) {
            keep_nulled(old, new);
        }
        self.comes_too_late(id, &report);
        let is_told = self.changes_meaning(id, &report, only_missing);
        let content = self.content_before(id, &report);
        if !only_missing && (report.input.is_some() || !report.locations.is_empty() || !report.diffs.is_empty()) {
            self.keep_paths(id);
        }
        let line = self.line;
        let Some(open) = self.open.get_mut(id) else { return };
        if !report.diffs.is_empty() && (!only_missing || open.diffs().is_empty()) {
            open.more().changed_after_all |= !only_missing && (open.rejected || open.is_cancelled());
            open.more().diffs = report.diffs;
            open.more().diffs_at = line;
        }
        if report.output.is_some() && !only_missing {
            open.more().output = report.output;
        }
        let overwritten = report.exit_code.and_then(|code| open.take_exit_code(code));
        let slot = open.slot;
        self.tell_overwritten(id, overwritten);
        let another_input = report.input.clone().filter(|input| !is_empty(input) && !only_missing);
        self.take_another_input(id, slot, another_input);
        let starts_hidden = self.starts_hidden(slot);
        let is_asked =
            self.open.get(id).is_some_and(|open| open.more.as_ref().is_some_and(|more| !more.requests.is_empty()));
        let Some(Body::ToolCall(call)) = self.body(slot) else { return };
        let asked = (is_asked && !only_missing).then(|| call.clone());
        call.without_input |= call.input.is_none() && report.input.as_ref().is_some_and(is_none_shown);
        if let Some(input) = report.input.filter(|input| !is_empty(input))
            && !(only_missing && call.input.is_some())
        {
            call.input = Some(input);
            call.without_input = false;
        }
        if let Some(kind) = report.kind
            && (call.kind == ToolKind::Other || !only_missing)
        {
            call.kind = kind;
            call.unknown_kind = false;
        } else if report.unknown_kind && !only_missing {
            call.kind = ToolKind::Other;
            call.unknown_kind = true;
        }
        if report.name.is_some() && call.name.is_none() {
            call.name = report.name;
        }
        // The title that shows what the call is stays, whatever the call reports later about its progress.
        let keeps_title = (only_missing && call.title.is_some()) || (starts_hidden && call.name.is_none());
        if report.title.is_some() && !keeps_title {
            call.title = report.title;
        }
        if !report.locations.is_empty() && (!only_missing || call.locations.is_empty()) {
            call.locations = report.locations;
        }
        if report.cwd.is_some() && !(only_missing && call.cwd.is_some()) {
            call.cwd = report.cwd;
        }
        if let Some(asked) = asked {
            let now = call.clone();
            self.keep_asked(id, &asked, &now, is_told);
        }
        self.keep_content(id, content);
        self.renew_written(id);
    }

    /// Adds a notice if an open call whose event has left the recorder is described otherwise than the event shows.
    fn comes_too_late(&mut self, id: &str, report: &CallReport) {
        // Until the end of the line, the event takes what the line says.
        let written = self.open.get(id).filter(|open| open.slot < self.first).and_then(OpenCall::written);
        let Some(written) = written else { return };
        let input = report.input.clone().filter(|input| !is_empty(input));
        let is_other_kind = report.unknown_kind && written.kind.is_some();
        let is_other_folder = report.cwd.as_ref().is_some_and(|cwd| written.cwd != Some(hash_of(cwd)));
        let report = CallReport { input, ..report.clone() };
        if is_other_kind || is_other_folder || !written.knows(&report, self.header.command_title.is_some()) {
            self.did_unseen(
                NoticeCode::LetGo,
                format!("the call {id} was described differently after its event was written"),
            );
        }
    }

    /// Keeps the content of the events of open calls that leave the recorder: those before this slot.
    pub(super) fn keep_written(&mut self, end: u64) {
        for open in self.open.values_mut().filter(|open| open.slot < end) {
            open.keep_written(&self.slots, self.first);
        }
    }

    /// Keeps the content of a call's event again, if the event leaves the recorder at the end of the current line.
    fn renew_written(&mut self, id: &str) {
        if let Some(open) = self.open.get_mut(id).filter(|open| open.written().is_some()) {
            open.keep_written(&self.slots, self.first);
        }
    }

    /// Drops the output that an open call has shown so far: the agent replaced it.
    pub fn drop_output(&mut self, id: &str) {
        self.activity += 1;
        if let Some(more) = self.open.get_mut(id).and_then(|open| open.more.as_mut()) {
            more.output = None;
        }
    }

    /// Adds a notice if an exit code of a call that showed a failure was replaced.
    fn tell_overwritten(&mut self, id: &str, overwritten: Option<i64>) {
        if let Some(code) = overwritten {
            let text = format!("the call {id} first had the exit code {code}");
            self.contradicted(NoticeCode::ResultContradicts, text);
        }
    }

    /// Keeps in the requests for a call what they asked for, because the call now shows another action, and adds a notice unless
    /// `is_told` says that the change has one. A request shows a whole action, so nothing continues it, unless the request
    /// differs from the call: the call may then show what was asked.
    fn keep_asked(&mut self, id: &str, asked: &ToolCall, now: &ToolCall, is_told: bool) {
        let differs = self.open.get(id).is_some_and(|open| open.asked_input().is_some());
        let earlier = if differs { Earlier::Growing } else { Earlier::Asked };
        let is_other_kind = !asked.unknown_kind && is_other_kind(asked.kind, now.kind);
        let paths = |call: &ToolCall| view::written_paths(call.shown_input(), &call.locations, &[]);
        let shown = paths(now);
        let command = |call: &ToolCall| view::command(call.shown_input());
        let is_command_of = |asked: &str, now: &str| match earlier {
            Earlier::Growing => now.starts_with(asked),
            Earlier::Asked => is_same_command(asked, now),
        };
        let is_other_command = command(asked)
            .is_some_and(|asked| !command(now).is_some_and(|now| is_command_of(asked.trim(), now.trim())));
        let (cwd, workspace) = (folder_of(now), self.header.cwd.as_deref());
        let inputs = asked.shown_input().zip(now.shown_input());
        let other_text = inputs.and_then(|inputs| gone_text(asked, inputs, earlier, workspace));
        let is_in = |folder: &str, path: &str| {
            !asked.kind.changes_files()
                && path.strip_prefix(folder.trim_end_matches('/')).is_some_and(|it| it.starts_with('/'))
        };
        let is_shown = |path: &String| match earlier {
            Earlier::Growing => shown.iter().any(|shown| is_still_shown(path, shown, cwd, workspace)),
            Earlier::Asked => shown.iter().any(|it| is_same_file(path, it, cwd, workspace) || is_in(path, it)),
        };
        let other_path = paths(asked).into_iter().find(|path| !is_shown(path));
        if !(is_other_kind || is_other_command || other_path.is_some() || other_text.is_some()) {
            return;
        }
        // Another path that does not begin with the asked one has a notice when the call ends.
        let is_longer = |path: &String| shown.iter().any(|it| is_still_shown(path, it, cwd, workspace));
        let longer_path = other_path.filter(is_longer);
        if !is_told && earlier == Earlier::Asked {
            let first = |what: &str, text: &str| {
                format!("the call {id} first showed another {what}: {}", first_bytes(text, 200))
            };
            if let Some(command) = command(asked).filter(|_| is_other_command) {
                self.changed_command(id, &command);
            } else if let Some(text) = other_text {
                self.did_unseen(NoticeCode::ChangedInput, first("input", &text));
            } else if let Some(path) = longer_path {
                self.did_unseen(NoticeCode::ChangedPath, first("file", &path));
            }
        }
        let slots = self.open.get(id).and_then(|open| open.more.as_ref()).map(|more| more.requests.clone());
        for (slot, _) in slots.unwrap_or_default() {
            let Some(Body::PermissionRequest(request)) = self.body(slot) else { continue };
            let kept = request.asked.get_or_insert_default();
            kept.kind = kept.kind.or(is_other_kind.then_some(asked.kind));
            if asked.input != now.input && kept.input.is_none() {
                kept.input.clone_from(&asked.input);
            }
            if asked.locations != now.locations && kept.locations.is_none() {
                kept.locations = Some(asked.locations.clone());
            }
            if kept.is_empty() {
                request.asked = None;
            }
        }
    }

    /// Returns the content of an open call before it is described by a report.
    fn content_before(&self, id: &str, report: &CallReport) -> Content {
        let Some((call, diffs)) = self.open_call(id) else { return Content::default() };
        let details = ReportedDetails::of(call, diffs);
        // Arguments that arrive in pieces may be shown as the text of JSON until they are whole.
        let is_piece = |old: &Value| {
            let new = report.input.as_ref().filter(|new| old.is_string() && (new.is_object() || new.is_array()));
            new.is_some_and(|new| continues_input(old, new, None, None))
        };
        let input = details.input.filter(|old| !is_piece(old));
        SubjectFacts::of(&ReportedDetails { input, ..details }).content()
    }

    /// Keeps the content that an open call showed before a report, and the subjects of the requests about the call, if the call
    /// now shows less of an action.
    fn keep_content(&mut self, id: &str, before: Content) {
        let Some((call, diffs)) = self.open_call(id) else { return };
        let shows_less = SubjectFacts::of(&ReportedDetails::of(call, diffs)).content() < before;
        let requests = self.open.get(id).and_then(|open| open.more.as_ref()).map(|more| more.requests.clone());
        let requests = requests.filter(|requests| !requests.is_empty()).map(|requests| (requests, call.clone()));
        if let Some(open) = self.open.get_mut(id).filter(|_| shows_less) {
            let more = open.more();
            more.earlier_content = more.earlier_content.max(before);
        }
        let Some((requests, call)) = requests else { return };
        for (slot, subject) in requests {
            if let Some(Body::PermissionRequest(request)) = self.body(slot) {
                note_subject(request, &call, subject);
            }
        }
    }

    /// Gives an open call the title that a permission request asks for. What the request shows is compared with the call by
    /// the caller.
    pub fn retitle(&mut self, id: &str, title: Option<String>) {
        self.activity += 1;
        let Some(slot) = self.open.get(id).map(|open| open.slot) else { return };
        let starts_hidden = self.starts_hidden(slot);
        let Some(Body::ToolCall(call)) = self.body(slot) else { return };
        if title.is_some() && !(starts_hidden && call.name.is_none()) {
            call.title = title;
        }
        self.renew_written(id);
    }

    /// Notes the input that an open call showed before the one that it has now, such as one in pieces.
    pub fn showed_first(&mut self, id: &str, input: &Value) {
        let Some(old) = view::command(Some(input)) else { return };
        let now = self.open_call(id).and_then(|(call, _)| view::command(call.shown_input()));
        if now.is_some_and(|now| !now.trim_start().starts_with(old.trim())) {
            self.changed_command(id, &old);
        }
    }

    fn changed_command(&mut self, id: &str, old: &str) {
        let text = format!("the call {id} first showed another command: {}", first_bytes(old, 200));
        self.did_unseen(NoticeCode::ChangedCommand, text);
    }

    /// Adds a notice if an open call now shows another tool, another command or other texts, or a kind that changes nothing after
    /// one that changes something: the earlier form is not in any event. What continues the earlier form is still being written.
    /// Returns true if a notice was added.
    fn changes_meaning(&mut self, id: &str, report: &CallReport, only_missing: bool) -> bool {
        use ToolKind::Execute;
        let titles_are_commands = self.header.command_title.is_some();
        let Some((call, _)) = self.open_call(id).filter(|_| !only_missing) else { return false };
        let old = call.kind;
        let first_title = call.title.clone().filter(|_| titles_are_commands && old == Execute);
        let names = call.name.as_ref().zip(report.name.as_ref());
        if let Some((old, _)) = names.filter(|(old, new)| is_other_tool(old, new)) {
            let text = format!("the call {id} first showed another tool: {}", first_bytes(old, 200));
            self.did_unseen(NoticeCode::ChangedInput, text);
            return true;
        }
        if report.kind.is_some_and(|new| is_other_kind(old, new)) {
            let old: &str = old.into();
            if let Some(open) = self.open.get_mut(id) {
                open.more().had_other_kind = true;
            }
            self.did_unseen(NoticeCode::ChangedKind, format!("the call {id} first had another kind: {old}"));
            return true;
        }
        let no_command = report.input.is_none() && view::command(call.shown_input()).is_none();
        if let Some(old) = first_title.filter(|_| no_command)
            && report.title.as_ref().is_some_and(|new| !is_same_title(&old, new))
        {
            self.changed_command(id, &old);
            return true;
        }
        let Some(input) = report.input.as_ref().filter(|input| !is_empty(input)) else { return false };
        let inputs = call.shown_input().map(|old| (old, input));
        let workspace = self.header.cwd.as_deref();
        let gone = inputs.and_then(|inputs| gone_text(call, inputs, Earlier::Growing, workspace));
        let goes_on =
            |old: &String| view::command(Some(input)).is_some_and(|new| new.trim_start().starts_with(old.trim()));
        let other_command = view::command(call.shown_input()).filter(|old| !goes_on(old));
        match (gone, other_command) {
            (Some(text), None) => {
                let text = format!("the call {id} first showed another input: {}", first_bytes(&text, 200));
                self.did_unseen(NoticeCode::ChangedInput, text);
            }
            (_, Some(command)) => self.changed_command(id, &command),
            (None, None) => return false,
        }
        true
    }

    /// Remembers the paths that an open call shows. The paths in the input of a command may be its folder, and are compared with
    /// its texts.
    fn keep_paths(&mut self, id: &str) {
        let Some((call, diffs)) = self.open_call(id) else { return };
        let input = call.shown_input().filter(|_| call.kind != ToolKind::Execute);
        let mut paths = view::written_paths(input, &call.locations, diffs);
        if let Some(open) = self.open.get_mut(id).filter(|_| !paths.is_empty()) {
            let earlier = &mut open.more().earlier_paths;
            paths.retain(|path| path != view::UNREAD_PATH && !earlier.contains(path));
            earlier.append(&mut paths);
        }
    }

    /// Takes another input for a call that was already requested: the agent's last input counts.
    fn take_another_input(&mut self, id: &str, slot: u64, input: Option<Value>) {
        let Some(input) = input else { return };
        let announced = match self.body(slot) {
            Some(Body::ToolCall(call)) => call.input.clone(),
            _ => None,
        };
        let asked = self.open.get_mut(id).and_then(|open| {
            let differs = |asked: &mut AskedInput| announced.as_ref() != Some(&input) && asked.input != input;
            open.more.as_mut()?.asked.take_if(differs)
        });
        let answer = asked.and_then(|asked| asked.slot);
        if let Some(Body::PermissionResponse(response)) = answer.and_then(|slot| self.body(slot)) {
            response.updated_input = None;
        }
    }

    /// Returns a name that no other call, or no other request, has.
    pub(super) fn unique(&mut self, what: &str, id: &str) -> String {
        let mut name = id.to_owned();
        while !self.seen.insert(hash_in(what, &name)) {
            let n = self.repeats.entry(hash_in(what, id)).or_insert(1);
            *n += 1;
            name = format!("{id}#{n}");
        }
        name
    }

    fn step(&mut self, report: &CallReport) -> u64 {
        if let Some(step) = self.steps.get_mut(&report.parent) {
            let same = match (&report.group, &step.group) {
                (Some(group), Some(last)) => group == last,
                _ => !step.has_result,
            };
            if same {
                return step.number;
            }
        }
        let number = self.next_step;
        self.next_step += 1;
        self.steps.insert(report.parent.clone(), Step { number, group: report.group.clone(), has_result: false });
        number
    }
}

/// Returns true if a call of one kind becomes a call of another one, which does not include it.
fn is_other_kind(old: ToolKind, new: ToolKind) -> bool {
    use ToolKind::{Delete, Edit, Move, Other};
    match old {
        Other => false,
        // A change of files may turn out to be a removal.
        Edit => !matches!(new, Edit | Delete | Move),
        old => new != old,
    }
}
