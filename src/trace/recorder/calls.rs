//! Tool calls and their permission requests: announced, updated, requested, answered and ended, each once.

use std::collections::hash_map::Entry;

use super::bounds::{cut_to_bound, hash_in, hash_of};
use serde_json::Value;

use super::{
    Answered, Asking, CallSaid, MAX_BEHIND, MAX_ENDED, MAX_OPEN, Recorder, ReportedStatus, ResultSaid, is_empty,
};
use crate::text::first_bytes;
use crate::trace::calls::{DENIED_CALL_COMPLETED, TOO_MANY_OPEN_CALLS};
use crate::trace::view;
use crate::trace::{
    Body, CallStatus, FileDiff, PermissionOption, PermissionOutcome, PermissionRequest, PermissionResponse, ToolCall,
    ToolKind, ToolResult,
};

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
    /// True if the turn was cancelled while the call was open.
    turn_cancelled: bool,
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
    /// The paths that the call, while it was one that changes or reads files, showed before it replaced its input, its
    /// locations or its changes.
    earlier_paths: Vec<String>,
    /// True if the call first had another kind, which the present one does not include.
    had_other_kind: bool,
    /// True if the call showed changes after it had been rejected or cancelled.
    changed_after_all: bool,
    /// The slots of the requests for permission.
    requests: Vec<u64>,
    /// The last request, by its id in the trace.
    last_request: String,
    /// The number of requests whose answers are awaited.
    awaited: usize,
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

/// A call that ended, as far as it is remembered.
pub(super) struct EndedCall {
    /// The hash of the agent's id.
    id: u64,
    status: CallStatus,
    /// The agent's own word for the end. Absent if the engine ended the call.
    reported: Option<ReportedStatus>,
    /// The hash of the changes to files that the call showed.
    diffs: u64,
    /// The kind; `None` if it is unknown.
    kind: Option<ToolKind>,
    /// The hash of the input. Absent if none was shown.
    input: Option<u64>,
    /// The hashes of the name, the title and the output.
    name: Option<u64>,
    title: Option<u64>,
    output: Option<u64>,
    /// The hashes of the paths that the call named.
    paths: Vec<u64>,
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

/// Returns a text of an input that a later input of the same call neither repeats nor continues.
fn replaced_text(old: &Value, new: &Value) -> Option<String> {
    let texts = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().filter_map(|(_, text)| text.as_str().map(str::to_owned)).collect()
    };
    let now = texts(new);
    // An ellipsis at the end marks a preview of a longer text.
    let begins = |old: &str| old.trim_end().trim_end_matches('…').trim_end_matches("...").to_owned();
    texts(old).into_iter().find(|old| !now.iter().any(|new| new.starts_with(begins(old).as_str())))
}

/// Returns true if a path that a call showed first is the one that it shows at its end: written out, or relative in one of
/// them.
fn is_still_shown(earlier: &str, path: &str) -> bool {
    let is_end_of = |end: &str, whole: &str| {
        let end = end.strip_prefix("./").unwrap_or(end);
        whole.strip_suffix(end).is_some_and(|before| before.ends_with('/'))
    };
    path.starts_with(earlier) || is_end_of(earlier, path) || is_end_of(path, earlier)
}

/// Returns true if one title of a command continues the other, or is the other cut.
fn is_same_title(old: &str, new: &str) -> bool {
    let bare = |title: &str| title.trim().trim_end_matches('…').trim_end_matches("...").trim().to_owned();
    let (old, new) = (bare(old), bare(new));
    old.starts_with(&new) || new.starts_with(&old)
}

struct ResultOf {
    status: CallStatus,
    output: Option<String>,
    diffs: Vec<FileDiff>,
    exit_code: Option<i64>,
    truncated: bool,
    /// The agent's own word for the end. Absent if the engine ended the call.
    reported: Option<ReportedStatus>,
    /// True if the agent reports that a refused call completed.
    contested: bool,
}

impl Recorder {
    /// Announces a call, or adds to an open one. Returns true if the call was new.
    pub fn call(&mut self, id: &str, mut said: CallSaid) -> bool {
        if self.is_another(id, &said) {
            self.put_aside(id);
        }
        if self.is_open(id) {
            self.update(id, said, false);
            return false;
        }
        // A call that was never announced cannot have started anything.
        if let Some(parent) = said.parent.take_if(|parent| !self.was_recorded(parent)) {
            self.notice(
                "unknown_parent",
                format!("the call {id} names {parent} as its parent, but no such call was made"),
            );
        }
        let call = self.unique("call", id);
        if call != id {
            self.renamed.insert(id.to_owned(), call.clone());
        }
        let step = self.step(&said);
        if said.parent.is_none() {
            self.close_text();
            self.answer.clear();
        }
        let parent = said.parent.clone();
        let body = Body::ToolCall(ToolCall {
            call: call.clone(),
            step,
            kind: said.kind.unwrap_or(ToolKind::Other),
            unknown_kind: said.unknown_kind && said.kind.is_none(),
            name: said.name,
            title: said.title,
            without_input: said.input.as_ref().is_some_and(is_none_shown),
            input: said.input.filter(|input| !is_empty(input)),
            locations: said.locations,
            cwd: said.cwd,
        });
        let slot = self.push_open(body, parent.clone());
        self.calls += 1;
        let more =
            More { parent, diffs: said.diffs, output: said.output, exit_code: said.exit_code, ..More::default() };
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
            turn_cancelled: false,
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

    /// Returns true if a call of this id is open and this announces another one: of another tool, or of another message
    /// with another input.
    pub fn is_another(&mut self, id: &str, said: &CallSaid) -> bool {
        let Some((slot, step)) = self.open.get(id).map(|open| (open.slot, open.step)) else { return false };
        let parent = self.open.get(id).and_then(|open| open.parent().cloned());
        let group = self.steps.get(&parent).filter(|it| it.number == step).and_then(|it| it.group.clone());
        let Some(Body::ToolCall(call)) = self.body(slot) else { return false };
        let differs = |one: Option<&String>, other: Option<&String>| one.zip(other).is_some_and(|(a, b)| a != b);
        let other_input = call.input.as_ref().zip(said.input.as_ref()).is_some_and(|(a, b)| !is_empty(b) && a != b);
        differs(call.name.as_ref(), said.name.as_ref()) || (other_input && differs(group.as_ref(), said.group.as_ref()))
    }

    /// Makes room for another call with the same id: the open call gets a name that no agent can use, stays open, and
    /// ends as unfinished, unless the caller ends it by that name.
    pub fn put_aside(&mut self, id: &str) -> Option<String> {
        self.notice("repeated_id", format!("a second call has the id {id} of an open call"));
        let mut open = self.open.remove(id)?;
        open.call.get_or_insert_with(|| id.into());
        let aside = (1_u64..).map(|n| format!("{id}\u{0}{n}")).find(|name| !self.open.contains_key(name.as_str()))?;
        self.open.insert(aside.as_str().into(), open);
        Some(aside)
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
            self.notice(TOO_MANY_OPEN_CALLS, text);
        }
        self.end_open(which);
    }

    /// Adds to an open call. If `only_missing` is set, as for a permission request, only absent parts are filled.
    pub fn update(&mut self, id: &str, said: CallSaid, only_missing: bool) {
        self.activity += 1;
        self.changes_meaning(id, &said, only_missing);
        if !only_missing && (said.input.is_some() || !said.locations.is_empty() || !said.diffs.is_empty()) {
            self.keep_paths(id);
        }
        let line = self.line;
        let Some(open) = self.open.get_mut(id) else { return };
        if !said.diffs.is_empty() && (!only_missing || open.diffs().is_empty()) {
            open.more().changed_after_all |= !only_missing && (open.rejected || open.is_cancelled());
            open.more().diffs = said.diffs;
            open.more().diffs_at = line;
        }
        if said.output.is_some() && !only_missing {
            open.more().output = said.output;
        }
        if said.exit_code.is_some() {
            open.more().exit_code = said.exit_code;
        }
        let slot = open.slot;
        let told = said.input.clone().filter(|input| !is_empty(input) && !only_missing);
        self.tells_another_input(id, slot, told);
        let starts_hidden = self.starts_hidden(slot);
        let is_asked =
            self.open.get(id).is_some_and(|open| open.more.as_ref().is_some_and(|more| !more.requests.is_empty()));
        let Some(Body::ToolCall(call)) = self.body(slot) else { return };
        let asked = (is_asked && !only_missing).then(|| call.clone());
        call.without_input |= call.input.is_none() && said.input.as_ref().is_some_and(is_none_shown);
        if let Some(input) = said.input.filter(|input| !is_empty(input))
            && !(only_missing && call.input.is_some())
        {
            call.input = Some(input);
            call.without_input = false;
        }
        if let Some(kind) = said.kind
            && (call.kind == ToolKind::Other || !only_missing)
        {
            call.kind = kind;
            call.unknown_kind = false;
        } else if said.unknown_kind && !only_missing {
            call.kind = ToolKind::Other;
            call.unknown_kind = true;
        }
        if said.name.is_some() && call.name.is_none() {
            call.name = said.name;
        }
        // The title that shows what the call is stays, whatever the call reports later about its progress.
        let keeps_title = (only_missing && call.title.is_some()) || (starts_hidden && call.name.is_none());
        if said.title.is_some() && !keeps_title {
            call.title = said.title;
        }
        if !said.locations.is_empty() && (!only_missing || call.locations.is_empty()) {
            call.locations = said.locations;
        }
        if said.cwd.is_some() && !(only_missing && call.cwd.is_some()) {
            call.cwd = said.cwd;
        }
        if let Some(asked) = asked {
            let now = call.clone();
            self.keep_asked(id, &asked, &now);
        }
    }

    /// Keeps in the requests for a call what they asked for, because the call now shows another action.
    fn keep_asked(&mut self, id: &str, asked: &ToolCall, now: &ToolCall) {
        let is_other_kind = !asked.unknown_kind && is_other_kind(asked.kind, now.kind);
        let paths = |call: &ToolCall| view::written_paths(call.shown_input(), &call.locations, &[]);
        let shown = paths(now);
        let command = |call: &ToolCall| view::command(call.shown_input());
        let is_other_command = command(asked)
            .is_some_and(|asked| !command(now).is_some_and(|now| now.trim_start().starts_with(asked.trim())));
        let is_other_text =
            asked.shown_input().zip(now.shown_input()).is_some_and(|(asked, now)| replaced_text(asked, now).is_some());
        let is_other_path = !paths(asked).iter().all(|path| shown.iter().any(|shown| is_still_shown(path, shown)));
        let is_other_text = is_other_text && matches!(asked.kind, ToolKind::Fetch | ToolKind::Other);
        if !(is_other_kind || is_other_command || is_other_path || is_other_text) {
            return;
        }
        let slots = self.open.get(id).and_then(|open| open.more.as_ref()).map(|more| more.requests.clone());
        for slot in slots.unwrap_or_default() {
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
    }

    /// Notes that the agent reports a call as refused: an open call ends as denied, regardless of its result. If the
    /// call has ended otherwise, or was never shown, its outcome is unknown: graders may not rely on what the trace
    /// shows.
    pub fn deny(&mut self, id: &str) {
        if let Some(open) = self.open.get_mut(id) {
            (open.rejected, open.denied) = (true, true);
        } else if self.was_announced(id) && self.ended_as(id) != Some(CallStatus::Denied) {
            self.contradicted("late_denial", format!("the agent reports the call {id} as denied after its result"));
        } else if !self.was_announced(id) {
            self.lost("unknown_call", format!("the agent reports the call {id} as denied, which it never showed"));
        }
    }

    /// Returns how a call ended, if it is one of the last calls that ended.
    pub fn ended_as(&self, id: &str) -> Option<CallStatus> {
        self.ended(id).map(|ended| ended.status)
    }

    /// Returns true if a call is known to have ended with exactly these changes to files.
    pub fn ended_with(&self, id: &str, diffs: &[FileDiff]) -> bool {
        self.ended(id).is_some_and(|ended| ended.diffs == hash_of(diffs))
    }

    /// Returns true if a call is known to have ended with this output.
    pub fn ended_printing(&self, id: &str, output: &str) -> bool {
        self.ended(id).is_some_and(|ended| ended.output == Some(hash_of(output)))
    }

    /// Returns true if a call is known to have ended with what is now said of it again. A title says nothing unless titles
    /// are commands.
    pub fn ended_knowing(&self, id: &str, said: &CallSaid) -> bool {
        let title = said.title.as_ref().filter(|_| self.header.command_title.is_some());
        self.ended(id).is_some_and(|ended| {
            !said.unknown_kind
                && said.name.as_ref().is_none_or(|name| ended.name == Some(hash_of(name)))
                && title.is_none_or(|title| ended.title == Some(hash_of(title)))
                && said.kind.is_none_or(|kind| ended.kind == Some(kind))
                && said.input.as_ref().is_none_or(|input| ended.input == Some(hash_of(input)))
                && said.locations.iter().all(|location| ended.paths.contains(&hash_of(&location.path)))
        })
    }

    fn ended(&self, id: &str) -> Option<&EndedCall> {
        let id = hash_in("ended", id);
        self.ended.iter().rev().find(|ended| ended.id == id)
    }

    /// Returns true if a call ended with another outcome than the agent reports now. An exit code that makes a reported
    /// success a failure is no contradiction, unless the call ended as ok.
    pub fn contradicts(&self, id: &str, now: &ResultSaid) -> bool {
        use ReportedStatus::{Failed, Ok};
        let Some(ended) = self.ended(id) else { return false };
        let failed_now = now.outcome == Ok && now.exit_code.is_some_and(|code| code != 0);
        matches!((ended.reported, now.outcome), (Some(Ok), Failed) | (Some(Failed), Ok))
            || (failed_now && ended.status == CallStatus::Ok)
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
        self.did_unseen("changed_command", text);
    }

    /// Ends an open call. A rejected call is denied and a cancelled one cancelled, even if the agent reports
    /// otherwise; a notice says if it reports that a rejected call completed. Returns false, and records nothing, if the
    /// call was not open.
    ///
    /// The answer to a request that is still open says what the result means, so the event may change until then.
    pub fn result(&mut self, id: &str, said: ResultSaid) -> bool {
        if !said.diffs.is_empty() && self.open.get(id).is_some_and(|open| !open.diffs().is_empty()) {
            self.keep_paths(id);
        }
        let Some(mut open) = self.open.remove(id) else { return false };
        let more = open.more.take().map(|more| *more).unwrap_or_default();
        let exit_code = said.exit_code.or(more.exit_code);
        let status = match said.outcome {
            _ if open.rejected => CallStatus::Denied,
            _ if open.is_cancelled() => CallStatus::Cancelled,
            ReportedStatus::Denied => CallStatus::Denied,
            ReportedStatus::Cancelled => CallStatus::Cancelled,
            ReportedStatus::Failed => CallStatus::Error,
            ReportedStatus::Ok if exit_code.is_some_and(|code| code != 0) => CallStatus::Error,
            ReportedStatus::Ok => CallStatus::Ok,
        };
        let output = said.output.or(more.output);
        let prints = || output.as_deref().is_some_and(|output| !output.trim().is_empty() && !says_denied(output));
        let changes = !said.diffs.is_empty() || more.changed_after_all;
        let shows = || changes || prints() || said.exit_code.is_some();
        // What the agent itself reports as denied often gets an ordinary result, which says so in words of its own.
        let is_refused = (open.rejected && !open.denied) || (!open.rejected && open.is_cancelled());
        let is_contested = if is_refused { shows() } else { open.denied && changes };
        let contested = is_contested && said.outcome == ReportedStatus::Ok;
        if contested {
            let how = if open.rejected { "rejected" } else { "cancelled" };
            let text = format!("the call {id} was {how}, but the agent reports that it completed");
            self.notice(DENIED_CALL_COMPLETED, text);
        }
        // The line of the result may show the changes, too.
        let shows = shows() || (more.diffs_at.is_some() && more.diffs_at == self.line);
        let is_ok = said.outcome == ReportedStatus::Ok;
        let diffs = if said.diffs.is_empty() { more.diffs } else { said.diffs };
        let early = (more.awaited > 0).then(|| More { awaited: more.awaited, diffs: diffs.clone(), ..More::default() });
        let reported = Some(said.outcome);
        let truncated = said.truncated;
        let result = ResultOf { status, output, diffs, exit_code, truncated, reported, contested };
        self.end_call(id, &open, more.parent, &more.earlier_paths, result, false);
        if let Some(more) = early {
            open.more = Some(Box::new(more));
            let result = self.first + self.slots.len() as u64 - 1;
            for slot in [open.slot, result] {
                self.hold(slot, true);
            }
            let ended = EndedEarly { open, result, is_contested: shows && is_ok };
            // The agent may use the ID again before the answer comes.
            if let Some(EndedEarly { open, result, .. }) = self.early.insert(id.to_owned(), ended) {
                self.hold(open.slot, false);
                self.hold(result, false);
            }
        }
        true
    }

    /// Holds an event, or releases it.
    fn hold(&mut self, slot: u64, is_open: bool) {
        if let Some(slot) = self.slot(slot) {
            slot.open = is_open;
        }
    }

    /// Takes the answer to a request about a call that had ended before it: the call was refused nevertheless.
    fn answer_early(&mut self, id: &str, outcome: PermissionOutcome) {
        let Some(ended) = self.early.get_mut(id) else { return };
        ended.open.rejected = outcome == PermissionOutcome::Rejected;
        ended.open.cancelled = outcome == PermissionOutcome::Cancelled;
        let more = ended.open.more();
        more.awaited = more.awaited.saturating_sub(1);
        if more.awaited > 0 {
            return;
        }
        let Some(EndedEarly { open, result, is_contested }) = self.early.remove(id) else { return };
        let (status, how) = match outcome {
            PermissionOutcome::Allowed => (None, ""),
            PermissionOutcome::Rejected => (Some(CallStatus::Denied), "rejected"),
            PermissionOutcome::Cancelled => (Some(CallStatus::Cancelled), "cancelled"),
        };
        if let Some(status) = status {
            let hash = hash_in("ended", id);
            if let Some(ended) = self.ended.iter_mut().rev().find(|ended| ended.id == hash) {
                ended.status = status;
            }
            if let Some(Body::ToolResult(result)) = self.body(result) {
                result.status = status;
                result.contested = is_contested && !open.denied;
            }
            if is_contested && !open.denied {
                let text = format!("the call {id} was {how}, but the agent reports that it completed");
                self.notice(DENIED_CALL_COMPLETED, text);
            }
        }
        for slot in [open.slot, result] {
            self.hold(slot, false);
        }
    }

    /// Releases the calls that ended before the answer to a request about them, which did not come.
    pub(super) fn release_early(&mut self) {
        for (_, EndedEarly { open, result, .. }) in std::mem::take(&mut self.early) {
            for slot in [open.slot, result] {
                self.hold(slot, false);
            }
        }
    }

    /// Returns a call that is open, or that has ended before the answer to a request about it, by the agent's id.
    pub fn asked_call(&self, id: &str) -> Option<(&ToolCall, &[FileDiff])> {
        self.open_call(id).or_else(|| {
            let ended = self.early.get(id)?;
            let index = ended.open.slot.checked_sub(self.first)?;
            match &self.slots.get(index as usize)?.event.body {
                Body::ToolCall(call) => Some((call, ended.open.diffs())),
                _ => None,
            }
        })
    }

    /// Adds a notice if an open call now shows another command, or a kind that changes nothing after one that changes
    /// something: the earlier form is not in any event. A command that continues the earlier one is still being written.
    fn changes_meaning(&mut self, id: &str, said: &CallSaid, only_missing: bool) {
        use ToolKind::{Execute, Fetch, Other};
        let titles_are_commands = self.header.command_title.is_some();
        let Some((call, _)) = self.open_call(id).filter(|_| !only_missing) else { return };
        let old = call.kind;
        let first_title = call.title.clone().filter(|_| titles_are_commands && old == Execute);
        if said.kind.is_some_and(|new| is_other_kind(old, new)) {
            let old: &str = old.into();
            if let Some(open) = self.open.get_mut(id) {
                open.more().had_other_kind = true;
            }
            return self.did_unseen("changed_kind", format!("the call {id} first had another kind: {old}"));
        }
        let no_command = said.input.is_none() && view::command(call.shown_input()).is_none();
        if let Some(old) = first_title.filter(|_| no_command)
            && said.title.as_ref().is_some_and(|new| !is_same_title(&old, new))
        {
            return self.changed_command(id, &old);
        }
        let Some(input) = said.input.as_ref().filter(|input| !is_empty(input)) else { return };
        if matches!(old, Fetch | Other)
            && let Some(old) = call.shown_input().and_then(|old| replaced_text(old, input))
        {
            let text = format!("the call {id} first showed another input: {}", first_bytes(&old, 200));
            return self.did_unseen("changed_input", text);
        }
        let Some(old) = view::command(call.shown_input()) else { return };
        let goes_on = |new: String| new.trim_start().starts_with(old.trim());
        if !view::command(Some(input)).is_some_and(goes_on) {
            self.changed_command(id, &old);
        }
    }

    /// Remembers the paths that an open call shows, if it is one that changes or reads files.
    fn keep_paths(&mut self, id: &str) {
        let uses_files = |call: &ToolCall| call.kind.changes_files() || call.kind == ToolKind::Read;
        let Some((call, diffs)) = self.open_call(id).filter(|(call, _)| uses_files(call)) else { return };
        let mut paths = view::written_paths(call.shown_input(), &call.locations, diffs);
        if let Some(open) = self.open.get_mut(id).filter(|_| !paths.is_empty()) {
            let earlier = &mut open.more().earlier_paths;
            paths.retain(|path| path != view::UNREAD_PATH && !earlier.contains(path));
            earlier.append(&mut paths);
        }
    }

    /// Takes another input for a call that was already requested: the agent's last input counts.
    fn tells_another_input(&mut self, id: &str, slot: u64, told: Option<Value>) {
        let Some(told) = told else { return };
        let announced = match self.body(slot) {
            Some(Body::ToolCall(call)) => call.input.clone(),
            _ => None,
        };
        let asked = self.open.get_mut(id).and_then(|open| {
            let differs = |asked: &mut AskedInput| announced.as_ref() != Some(&told) && asked.input != told;
            open.more.as_mut()?.asked.take_if(differs)
        });
        let answer = asked.and_then(|asked| asked.slot);
        if let Some(Body::PermissionResponse(response)) = answer.and_then(|slot| self.body(slot)) {
            response.updated_input = None;
        }
    }

    /// Records a permission request. Returns the request's id in the trace, which is unique.
    pub fn request(&mut self, request: &str, call_id: &str, options: Vec<PermissionOption>) -> String {
        self.ask(request, Some(call_id), Asking { options, ..Asking::default() })
    }

    /// Records a request with its details of the call. A request of another session does not concern a call of this
    /// trace, even if the ids are the same.
    pub fn ask(&mut self, request: &str, call_id: Option<&str>, asking: Asking) -> String {
        let unique = self.unique("request", request);
        let next = self.first + self.slots.len() as u64;
        let asked_input = asking.updated_input.clone();
        let open = call_id.and_then(|id| self.open.get_mut(id));
        let is_known = open.is_some();
        let (call, parent) = match open {
            Some(open) => {
                let asked = asked_input.map(|input| AskedInput { request: unique.clone(), input, slot: None });
                let more = open.more();
                more.asked = asked;
                more.last_request.clone_from(&unique);
                more.awaited += usize::from(asking.awaits_answer);
                if more.requests.len() < MAX_REQUESTS {
                    more.requests.push(next);
                }
                (open.call(call_id.unwrap_or_default()), open.parent().cloned())
            }
            None => (asking.unknown.or(call_id.map(str::to_owned)).unwrap_or_default(), None),
        };
        let asked = asking.asked.filter(|asked| is_known && !asked.is_empty());
        let options = asking.options;
        self.push(
            Body::PermissionRequest(PermissionRequest { call: call.clone(), request: unique.clone(), options, asked }),
            parent.clone(),
            false,
        );
        let unknown = (!is_known).then(|| request.to_owned());
        if let Some(request) = &unknown {
            *self.of_unknown_calls.entry(request.clone()).or_default() += 1;
        }
        let agent_call = call_id.map(str::to_owned);
        let asked_as = request.to_owned();
        let is_awaited = asking.awaits_answer && is_known;
        self.requests.insert(
            unique.clone(),
            OpenRequest { call, agent_call, parent, asked_as, unknown, is_awaited, input: asking.updated_input },
        );
        unique
    }

    /// Returns the agent's id of the open call that a request without an answer is about, by the agent's id of the
    /// request. If several requests have this id, the last one counts.
    pub fn call_of_request(&self, request: &str) -> Option<&str> {
        let asked = self.requests.iter().filter(|(_, open)| open.asked_as == request);
        asked
            .max_by_key(|(unique, _)| (unique.len(), *unique))
            .and_then(|(_, open)| open.agent_call.as_deref().filter(|_| open.unknown.is_none()))
    }

    /// Returns the agent's id of the first open call of this tool with this input for which `is_free` is true.
    pub fn open_call_with(&self, name: &str, input: &Value, is_free: impl Fn(&str) -> bool) -> Option<String> {
        let fits = |id: &str| {
            self.open_call(id).is_some_and(|(call, _)| {
                call.name.as_deref() == Some(name)
                    && call.input.as_ref().is_some_and(|it| view::canonical(it) == view::canonical(input))
            })
        };
        let all = self.open.iter().filter(|(id, _)| fits(id) && is_free(id));
        all.min_by_key(|(_, open)| open.slot).map(|(id, _)| id.to_string())
    }

    /// Returns true if an open request, by the agent's id, came before its call was announced. Later reports of the
    /// call do not change such a request.
    pub fn asked_of_an_unknown_call(&self, request: &str) -> bool {
        self.of_unknown_calls.contains_key(request)
    }

    /// Records the answer to a request, and its effect on the call.
    pub fn respond(&mut self, request: &str, answered: Answered) {
        let Some(open) = self.requests.remove(request) else { return };
        if let Some(Entry::Occupied(mut count)) = open.unknown.map(|request| self.of_unknown_calls.entry(request)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        let mut updated_input = answered.updated_input;
        let next = self.first + self.slots.len() as u64;
        let (outcome, mut early) = (answered.outcome, None);
        // The agent may announce a call after it has asked for it.
        if let Some(id) = open.agent_call.as_deref().filter(|id| !self.was_announced(id))
            && self.answered_early.len() < MAX_EARLY
        {
            self.answered_early.insert(id.to_owned(), answered.outcome);
        }
        if let Some(id) = open.agent_call.as_deref()
            && let Some(call) = self.open.get_mut(id)
            && call.call(id) == open.call
        {
            let is_last = call.more.as_ref().is_none_or(|more| more.last_request == request);
            let asked =
                call.more.as_mut().and_then(|more| more.asked.as_mut()).filter(|asked| asked.request == request);
            if let Some(asked) = asked {
                asked.slot = Some(next);
                updated_input.get_or_insert_with(|| asked.input.clone());
            } else if !is_last {
                // A further request came before this answer.
                updated_input = updated_input.or(open.input);
            }
            call.rejected = answered.outcome == PermissionOutcome::Rejected;
            // If an agent asks again, the last answer counts.
            call.cancelled = answered.outcome == PermissionOutcome::Cancelled;
            if let Some(more) = call.more.as_mut().filter(|_| open.is_awaited) {
                more.awaited = more.awaited.saturating_sub(1);
            }
        } else if open.is_awaited {
            updated_input = updated_input.or(open.input);
            early =
                open.agent_call.clone().filter(|id| self.early.get(id).is_some_and(|it| it.open.call(id) == open.call));
        }
        self.push(
            Body::PermissionResponse(PermissionResponse {
                call: open.call,
                request: request.to_owned(),
                outcome: answered.outcome,
                option: answered.option,
                policy: answered.by.policy,
                rule: answered.by.rule,
                reason: answered.by.reason,
                updated_input,
            }),
            open.parent,
            false,
        );
        if let Some(id) = early {
            self.answer_early(&id, outcome);
        }
    }

    /// Marks everything open as cancelled, because the turn is being cancelled.
    pub fn cancel_open(&mut self) {
        for call in self.open.values_mut() {
            call.turn_cancelled = true;
        }
    }

    /// Ends the open calls, because the agent's process has ended and another one continues.
    pub fn end_calls(&mut self) {
        self.end_open(|_| true);
    }

    /// Ends open calls in the order in which they were announced.
    pub(super) fn end_open(&mut self, which: impl Fn(&OpenCall) -> bool) {
        for (id, open) in self.take_open(which) {
            self.end_unanswered(&id, open);
        }
    }

    /// Takes open calls, in the order in which they were announced.
    pub(super) fn take_open(&mut self, which: impl Fn(&OpenCall) -> bool) -> Vec<(Box<str>, OpenCall)> {
        let mut taken: Vec<(Box<str>, OpenCall)> = self.open.extract_if(|_, open| which(open)).collect();
        if self.open.is_empty() {
            self.open.shrink_to_fit();
        }
        taken.sort_unstable_by_key(|(_, open)| open.slot);
        taken
    }

    /// Ends a call that the agent did not end.
    pub(super) fn end_unanswered(&mut self, id: &str, mut open: OpenCall) {
        let more = open.more.take().map(|more| *more).unwrap_or_default();
        let status = if open.rejected {
            CallStatus::Denied
        } else if open.is_cancelled() {
            CallStatus::Cancelled
        } else if more.exit_code.is_some_and(|code| code != 0) {
            CallStatus::Error
        } else {
            CallStatus::Unfinished
        };
        let More { parent, diffs, output, exit_code, earlier_paths, .. } = more;
        self.end_call(
            id,
            &open,
            parent,
            &earlier_paths,
            ResultOf { status, output, diffs, exit_code, truncated: false, reported: None, contested: false },
            true,
        );
    }

    /// Returns true if the call starts a sub-agent whose calls the agent does not show: by its name, or else its title.
    fn starts_hidden(&mut self, slot: u64) -> bool {
        if self.hidden_sub_agents.is_empty() {
            return false;
        }
        let Some(Body::ToolCall(call)) = self.body(slot) else { return false };
        let tool = call.name.clone().or_else(|| call.title.clone());
        tool.is_some_and(|tool| self.hidden_sub_agents.iter().any(|glob| glob.is_match(&tool)))
    }

    fn end_call(
        &mut self,
        id: &str,
        open: &OpenCall,
        parent: Option<String>,
        earlier_paths: &[String],
        result: ResultOf,
        host: bool,
    ) {
        if let Some(step) = self.steps.get_mut(&parent)
            && step.number == open.step
        {
            step.has_result = true;
        }
        if let Some(slot) = self.slot(open.slot) {
            slot.open = false;
        }
        if self.ended.len() == MAX_ENDED {
            self.ended.pop_front();
        }
        let mut ended = EndedCall {
            id: hash_in("ended", id),
            status: result.status,
            reported: result.reported,
            diffs: hash_of(&result.diffs),
            kind: None,
            input: None,
            name: None,
            title: None,
            output: result.output.as_ref().map(hash_of),
            paths: Vec::new(),
        };
        let starts_hidden = self.starts_hidden(open.slot);
        let mut tool = None;
        let mut replaced = None;
        if let Some(Body::ToolCall(call)) = self.body(open.slot) {
            tool = call.name.as_ref().or(call.title.as_ref()).filter(|_| starts_hidden).cloned();
            ended.kind = (!call.unknown_kind).then_some(call.kind);
            ended.input = call.input.as_ref().map(hash_of);
            ended.name = call.name.as_ref().map(hash_of);
            ended.title = call.title.as_ref().map(hash_of);
            let paths = view::written_paths(call.shown_input(), &call.locations, &result.diffs);
            ended.paths = paths.iter().map(hash_of).collect();
            replaced = earlier_paths.iter().find(|earlier| !paths.iter().any(|path| is_still_shown(earlier, path)));
        }
        self.ended.push_back(ended);
        if let Some(path) = replaced {
            self.did_unseen(
                "changed_path",
                format!("the call {id} first showed another file: {}", first_bytes(path, 200)),
            );
        }
        // Some agents show the calls of a sub-agent only in some modes.
        let shows = || self.steps.contains_key(&Some(open.call(id)));
        if let Some(tool) = tool.filter(|_| result.status != CallStatus::Denied && !shows()) {
            let text = format!("the agent does not show what the sub-agent of the call {id} ({tool}) did");
            self.did_unseen("hidden_sub_agent", text);
        }
        let output = result.output.map(|mut text| {
            self.cut_bytes += cut_to_bound(&mut text);
            text
        });
        self.push(
            Body::ToolResult(ToolResult {
                call: open.call(id),
                status: result.status,
                output: output.filter(|text| !text.is_empty()),
                diffs: result.diffs,
                exit_code: result.exit_code,
                truncated: result.truncated,
                contested: result.contested,
            }),
            parent,
            host,
        );
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

    fn step(&mut self, said: &CallSaid) -> u64 {
        if let Some(step) = self.steps.get_mut(&said.parent) {
            let same = match (&said.group, &step.group) {
                (Some(group), Some(last)) => group == last,
                _ => !step.has_result,
            };
            if same {
                return step.number;
            }
        }
        let number = self.next_step;
        self.next_step += 1;
        self.steps.insert(said.parent.clone(), Step { number, group: said.group.clone(), has_result: false });
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

/// The maximum number of requests for one call that keep what they asked for.
const MAX_REQUESTS: usize = 100;

/// The maximum number of answers that are kept for calls which are not announced yet.
const MAX_EARLY: usize = 10_000;

/// Returns true if the output of a rejected call is a short text that says so. Such a call did not run, even if the agent
/// reports that it completed.
fn says_denied(output: &str) -> bool {
    const LONGEST: usize = 200;
    let says = |output: &str| {
        [
            "reject",
            "denied",
            "declin",
            "refus",
            "cancel",
            "skipped",
            "not allowed",
            "not executed",
            "did not run",
            "not run",
            "blocked",
        ]
        .iter()
        .any(|word| output.contains(word))
    };
    output.len() <= LONGEST && says(&output.to_ascii_lowercase())
}
