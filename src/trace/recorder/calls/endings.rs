//! The ends of calls: their results, what is remembered of them, and the calls that the agent did not end.

use serde_json::Value;

use super::{EndedCall, EndedEarly, FailedResult, More, OpenCall, Shown, UnshownSubAgent, folder_of, is_still_shown};
use crate::text::first_bytes;
use crate::trace::recorder::hashes::{hash_in, hash_of};
use crate::trace::recorder::limits::cut_to_bound;
use crate::trace::recorder::{CallReport, MAX_ENDED, Recorder, ReportedStatus, ResultReport, is_empty};
use crate::trace::view;
use crate::trace::{Body, CallStatus, FileDiff, NoticeCode, ToolResult};

/// The maximum number of sub-agents without a shown call that are remembered.
const MAX_UNSHOWN: usize = 1000;

impl Recorder {
    /// Ends an open call. A rejected call is denied and a cancelled one cancelled, even if the agent reports
    /// otherwise; a notice says if it reports that a rejected call completed. Returns false, and records nothing, if the
    /// call was not open.
    ///
    /// The answer to a request that is still open says what the result means, so the event may change until then.
    pub fn result(&mut self, id: &str, report: ResultReport) -> bool {
        if !report.diffs.is_empty() && self.open.get(id).is_some_and(|open| !open.diffs().is_empty()) {
            self.keep_paths(id);
        }
        let Some(mut open) = self.open.remove(id) else { return false };
        let overwritten = report.exit_code.and_then(|code| open.take_exit_code(code));
        self.tell_overwritten(id, overwritten);
        let more = open.more.take().map(|more| *more).unwrap_or_default();
        let exit_code = report.exit_code.or(more.exit_code);
        let status = match report.outcome {
            _ if open.rejected => CallStatus::Denied,
            _ if open.is_cancelled() => CallStatus::Cancelled,
            ReportedStatus::Denied => CallStatus::Denied,
            ReportedStatus::Cancelled => CallStatus::Cancelled,
            ReportedStatus::Failed => CallStatus::Error,
            ReportedStatus::Ok if exit_code.is_some_and(|code| code != 0) => CallStatus::Error,
            ReportedStatus::Ok => CallStatus::Ok,
        };
        let output = report.output.or(more.output);
        let prints = || output.as_deref().is_some_and(|output| !output.trim().is_empty() && !says_denied(output));
        let changes = !report.diffs.is_empty() || more.changed_after_all;
        let shows = || changes || prints() || report.exit_code.is_some();
        // What the agent itself reports as denied often gets an ordinary result, which says so in words of its own.
        let is_refused = (open.rejected && !open.denied) || (!open.rejected && open.is_cancelled());
        // What an agent does after an answer that the policy did not decide is not known.
        let may_run = !open.rejected && open.cancelled_by_engine;
        let is_contested = if is_refused { shows() || may_run } else { open.denied && changes };
        let contested = is_contested && report.outcome == ReportedStatus::Ok;
        if contested {
            let how = if open.rejected { "rejected" } else { "cancelled" };
            let text = format!("the call {id} was {how}, but the agent reports that it completed");
            self.notice(NoticeCode::DeniedCallCompleted, text);
        }
        // The line of the result may show the changes, too.
        let shows = shows() || (more.diffs_at.is_some() && more.diffs_at == self.line);
        let is_ok = report.outcome == ReportedStatus::Ok;
        let diffs = if report.diffs.is_empty() { more.diffs } else { report.diffs };
        let early = (more.awaited > 0).then(|| More {
            awaited: more.awaited,
            diffs: diffs.clone(),
            had_other_kind: more.had_other_kind,
            earlier_content: more.earlier_content,
            ..More::default()
        });
        let reported = Some(report.outcome);
        let truncated = report.truncated;
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

    /// Notes that an open call goes on in the background after its result, which has this output. The call ends when the
    /// agent reports how, else at the end of the trace as unfinished. Returns false, and records nothing, if the call is not
    /// open, or was rejected or cancelled.
    pub fn goes_on(&mut self, id: &str, output: Option<String>) -> bool {
        let open = self.open.get_mut(id).filter(|open| !open.rejected && !open.is_cancelled());
        let Some(open) = open else { return false };
        self.activity += 1;
        open.in_background = true;
        open.more().output = output;
        let (parent, step) = (open.parent().cloned(), open.step);
        self.step_has_result(&parent, step);
        true
    }

    /// Returns true if an open call was rejected or cancelled.
    pub fn is_refused(&self, id: &str) -> bool {
        self.open.get(id).is_some_and(|open| open.rejected || open.is_cancelled())
    }

    /// Returns true if an open call goes on in the background after its result.
    pub fn is_in_background(&self, id: &str) -> bool {
        self.open.get(id).is_some_and(|open| open.in_background)
    }

    /// Notes that a call of a step has a result.
    fn step_has_result(&mut self, parent: &Option<String>, number: u64) {
        if let Some(step) = self.steps.get_mut(parent)
            && step.number == number
        {
            step.has_result = true;
        }
    }

    /// Holds an event, or releases it.
    pub(super) fn hold(&mut self, slot: u64, is_open: bool) {
        if let Some(slot) = self.slot(slot) {
            slot.open = is_open;
        }
    }

    /// Holds the result of a call that has just failed, until [`Recorder::settle_failures`]: the agent may report at the end of
    /// its turn that the call was denied.
    pub fn doubt_failure(&mut self, id: &str) {
        let is_of_call = self.ended.back().is_some_and(|ended| ended.id == hash_in("ended", id));
        let is_held = self.early.contains_key(id);
        let slot = self.first + self.slots.len().saturating_sub(1) as u64;
        // An exit code or a change shows that the call was carried out.
        let may_be_denied =
            |it: &ToolResult| it.status == CallStatus::Error && it.exit_code.is_none() && it.diffs.is_empty();
        let may_be_denied = matches!(self.body(slot), Some(Body::ToolResult(result)) if may_be_denied(result));
        let Some(ended) = self.ended.back().filter(|_| is_of_call && may_be_denied && !is_held) else { return };
        let failed = FailedResult { id: id.into(), slot, name: ended.shown.name, input: ended.shown.input };
        self.hold(slot, true);
        self.doubted.push_back(failed);
    }

    /// Lets go of the failed results behind which at least `most` events wait.
    pub fn settle_failures(&mut self, most: usize) {
        let end = self.first + self.slots.len() as u64;
        while let Some(slot) =
            self.doubted.front().map(|it| it.slot).filter(|slot| end.saturating_sub(*slot) > most as u64)
        {
            self.doubted.pop_front();
            self.hold(slot, false);
        }
    }

    /// Makes a failed result that is still held one of a denied call, if the agent reports this call as denied, by its ID, the
    /// name of its tool and its input, if it states the input. Returns the call's id in the trace, or `None` if there is none.
    pub fn deny_failure(&mut self, id: &str, name: &str, input: Option<&Value>) -> Option<String> {
        let (name, input) = (Some(hash_of(name)), input.map(hash_of));
        let is_it = |it: &FailedResult| *it.id == *id && it.name == name && (input.is_none() || it.input == input);
        let at = self.doubted.iter().rposition(is_it)?;
        let FailedResult { slot, name, input, .. } = self.doubted.remove(at)?;
        let Some(Body::ToolResult(result)) = self.body(slot) else { return None };
        result.status = CallStatus::Denied;
        let call = result.call.clone();
        self.hold(slot, false);
        let id = hash_in("ended", id);
        let is_it = |it: &&mut EndedCall| it.id == id && it.shown.name == name && it.shown.input == input;
        if let Some(ended) = self.ended.iter_mut().rev().find(is_it) {
            ended.status = CallStatus::Denied;
        }
        Some(call)
    }

    /// Notes that the agent reports a call as refused: an open call ends as denied, regardless of its result. If the call has
    /// ended otherwise, or was never shown, its outcome is unknown: graders may not rely on what the trace shows.
    pub fn deny(&mut self, id: &str) {
        if let Some(open) = self.open.get_mut(id).filter(|open| !open.in_background) {
            (open.rejected, open.denied) = (true, true);
        } else if self.was_announced(id) && self.ended_as(id) != Some(CallStatus::Denied) {
            self.contradicted(
                NoticeCode::LateDenial,
                format!("the agent reports the call {id} as denied after its result"),
            );
        } else if !self.was_announced(id) {
            self.lost(
                NoticeCode::UnknownCall,
                format!("the agent reports the call {id} as denied, which it never showed"),
            );
        }
    }

    /// Notes that the agent reports so many calls of a tool with this input, if it states the input, as denied, without the IDs
    /// of the calls. If the trace has exactly as many such calls, and each of them may have been denied, they are the denied
    /// ones; otherwise their outcomes are unknown. Returns the IDs in the trace of the calls that are denied by this report.
    pub fn deny_without_id(&mut self, name: &str, input: Option<&Value>, count: usize) -> Vec<String> {
        let input = input.filter(|input| !is_empty(input));
        let (tool, with) = (Some(hash_of(name)), input.map(hash_of));
        let is_one = |name: Option<u64>, input: Option<u64>| name == tool && (with.is_none() || input == with);
        let is_open = |id: &str| {
            let call = self.open_call(id).map(|(call, _)| call);
            call.is_some_and(|it| is_one(it.name.as_ref().map(hash_of), it.input.as_ref().map(hash_of)))
        };
        let mut open: Vec<String> = self.open.keys().filter(|id| is_open(id)).map(ToString::to_string).collect();
        open.sort_unstable();
        let failed = self.doubted.iter().filter(|it| is_one(it.name, it.input));
        let failed: Vec<String> = failed.map(|it| it.id.to_string()).collect();
        let ended: Vec<&EndedCall> = self.ended.iter().filter(|it| is_one(it.shown.name, it.shown.input)).collect();
        let denied = ended.iter().filter(|it| it.status == CallStatus::Denied).count();
        let is_shown = !open.is_empty() || !ended.is_empty();
        let are_all_denied = open.len() + ended.len() == count && failed.len() + denied == ended.len();
        // Of the calls that ended before, any may be such a call.
        if !are_all_denied || self.ended.len() == MAX_ENDED {
            if !is_shown {
                let text = format!("the agent reports a call of {name} as denied, which it never showed");
                self.lost(NoticeCode::UnknownCall, text);
            }
            let text = format!("the agent reports calls of {name} as denied and does not show which ones");
            self.contradicted(NoticeCode::LateDenial, text);
            return Vec::new();
        }
        let mut denied: Vec<String> = failed.iter().filter_map(|id| self.deny_failure(id, name, input)).collect();
        for id in &open {
            self.deny(id);
            denied.push(self.open_call_id(id));
        }
        denied
    }

    /// Returns true if a call ended with another outcome than the agent reports now. An exit code that makes a reported
    /// success a failure is no contradiction, unless the call ended as ok, or the agent now reports the exit code 0. If the
    /// engine ended the call as unfinished, any end that the agent reports is another one.
    pub fn contradicts(&self, id: &str, now: &ResultReport) -> bool {
        use ReportedStatus::{Failed, Ok};
        let Some(ended) = self.ended(id) else { return false };
        let failed_now = now.outcome == Ok && now.exit_code.is_some_and(|code| code != 0);
        let succeeded_now = now.outcome == Ok && now.exit_code == Some(0);
        let is_new = ended.reported.is_none() && ended.status == CallStatus::Unfinished;
        (is_new && matches!(now.outcome, Ok | Failed))
            || matches!((ended.reported, now.outcome), (Some(Ok), Failed) | (Some(Failed), Ok))
            || (failed_now && ended.status == CallStatus::Ok)
            || (succeeded_now && ended.status == CallStatus::Error)
    }

    /// Returns true if a call ended with another outcome than the agent reports when it loads the session. If the engine
    /// ended the call, the agent's report is new.
    pub fn ended_otherwise(&self, id: &str, now: ReportedStatus) -> bool {
        use ReportedStatus::{Cancelled, Failed, Ok};
        let Some(ended) = self.ended(id) else { return false };
        matches!(
            (ended.reported, ended.status, now),
            (None, CallStatus::Unfinished, Ok | Failed)
                | (None, CallStatus::Cancelled | CallStatus::Denied, Ok)
                | (Some(Ok), _, Failed | Cancelled)
                | (Some(Failed), _, Ok)
        )
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

    /// Returns true if a call is known to have ended with the facts that a report repeats. A title says nothing unless
    /// titles are commands.
    pub fn ended_knowing(&self, id: &str, report: &CallReport) -> bool {
        let titles_are_commands = self.header.command_title.is_some();
        self.ended(id).is_some_and(|ended| !report.unknown_kind && ended.shown.knows(report, titles_are_commands))
    }

    /// Returns true if a report about a call has no fact that a call could lack. A title says nothing unless titles are
    /// commands.
    pub fn says_nothing(&self, report: &CallReport) -> bool {
        let titles_are_commands = self.header.command_title.is_some();
        !report.unknown_kind && Shown::default().knows(report, titles_are_commands)
    }

    /// Returns true if a call has ended and showed its input.
    pub fn ended_with_input(&self, id: &str) -> bool {
        self.ended(id).is_some_and(|ended| ended.shown.input.is_some())
    }

    fn ended(&self, id: &str) -> Option<&EndedCall> {
        let id = hash_in("ended", id);
        self.ended.iter().rev().find(|ended| ended.id == id)
    }

    /// Marks everything open as cancelled, because the turn is being cancelled. Calls in the background go on.
    pub fn cancel_open(&mut self) {
        for call in self.open.values_mut().filter(|call| !call.in_background) {
            call.turn_cancelled = true;
        }
    }

    /// Notes that the agent withdrew the message of a call. Without a result until the end of the turn, the call ends as
    /// cancelled. Returns false if the call has a result or is unknown.
    pub fn withdraw(&mut self, id: &str) -> bool {
        let Some(open) = self.open.get_mut(id).filter(|open| !open.in_background) else { return false };
        open.withdrawn = true;
        true
    }

    /// Ends the open calls, because the agent's process has ended and another one continues.
    pub fn end_calls(&mut self) {
        self.end_open(|_| true);
    }

    /// Ends open calls in the order in which they were announced.
    pub(in crate::trace::recorder) fn end_open(&mut self, which: impl Fn(&OpenCall) -> bool) {
        for (id, open) in self.take_open(which) {
            self.end_unanswered(&id, open);
        }
    }

    /// Takes open calls, in the order in which they were announced.
    pub(in crate::trace::recorder) fn take_open(
        &mut self,
        which: impl Fn(&OpenCall) -> bool,
    ) -> Vec<(Box<str>, OpenCall)> {
        let mut taken: Vec<(Box<str>, OpenCall)> = self.open.extract_if(|_, open| which(open)).collect();
        if self.open.is_empty() {
            self.open.shrink_to_fit();
        }
        taken.sort_unstable_by_key(|(_, open)| open.slot);
        taken
    }

    /// Ends a call that the agent did not end.
    pub(in crate::trace::recorder) fn end_unanswered(&mut self, id: &str, mut open: OpenCall) {
        let more = open.more.take().map(|more| *more).unwrap_or_default();
        let status = if open.rejected {
            CallStatus::Denied
        } else if open.is_cancelled() || open.withdrawn {
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

    fn end_call(
        &mut self,
        id: &str,
        open: &OpenCall,
        parent: Option<String>,
        earlier_paths: &[String],
        result: ResultOf,
        host: bool,
    ) {
        self.step_has_result(&parent, open.step);
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
            output: result.output.as_ref().map(hash_of),
            shown: Shown::default(),
        };
        let starts_hidden = self.starts_hidden(open.slot);
        let mut tool = None;
        let mut replaced = None;
        let workspace = self.header.cwd.clone().filter(|_| !earlier_paths.is_empty());
        if let Some(Body::ToolCall(call)) = self.body(open.slot) {
            tool = call.name.as_ref().or(call.title.as_ref()).filter(|_| starts_hidden).cloned();
            let paths = view::written_paths(call.shown_input(), &call.locations, &result.diffs);
            ended.shown = Shown::of(call, &paths);
            let (cwd, workspace) = (folder_of(call), workspace.as_deref());
            let is_shown = |earlier: &str| paths.iter().any(|path| is_still_shown(earlier, path, cwd, workspace));
            replaced = earlier_paths.iter().find(|earlier| !is_shown(earlier));
        }
        self.ended.push_back(ended);
        if let Some(path) = replaced {
            self.did_unseen(
                NoticeCode::ChangedPath,
                format!("the call {id} first showed another file: {}", first_bytes(path, 200)),
            );
        }
        if let Some(tool) = tool.filter(|_| result.status != CallStatus::Denied) {
            let text = format!("the agent does not show what the sub-agent of the call {id} ({tool}) did");
            let unshown = UnshownSubAgent { call: open.call(id), text, line: self.this_line() };
            if !self.shows_calls_of(&unshown.call) {
                self.may_show_later(unshown);
            }
        }
        let mut truncated = result.truncated;
        let output = result.output.map(|mut text| {
            let cut = cut_to_bound(&mut text);
            truncated |= cut > 0;
            self.cut_bytes += cut;
            text
        });
        self.push(
            Body::ToolResult(ToolResult {
                call: open.call(id),
                status: result.status,
                output: output.filter(|text| !text.is_empty()),
                diffs: result.diffs,
                exit_code: result.exit_code,
                truncated,
                contested: result.contested,
            }),
            parent,
            host,
        );
    }

    /// Returns true if the trace has a call of the sub-agent that this call started. Some agents show the calls of a sub-agent
    /// only in some modes.
    fn shows_calls_of(&self, call: &str) -> bool {
        self.steps.contains_key(&Some(call.to_owned()))
    }

    /// Keeps a sub-agent of which no call is shown until the end of the trace.
    fn may_show_later(&mut self, unshown: UnshownSubAgent) {
        if self.unshown.len() < MAX_UNSHOWN {
            self.unshown.push(unshown);
        } else {
            self.did_unseen(NoticeCode::HiddenSubAgent, unshown.text);
        }
    }

    /// Reports, at the end of the trace, the sub-agents of which no call is shown.
    pub(in crate::trace::recorder) fn tell_unshown(&mut self) {
        for UnshownSubAgent { call, text, line } in std::mem::take(&mut self.unshown) {
            if !self.shows_calls_of(&call) {
                self.about(line, |recorder| recorder.did_unseen(NoticeCode::HiddenSubAgent, text));
            }
        }
    }

    /// Returns true if the call starts a sub-agent whose calls the agent does not show: by its name, or else its title.
    pub(super) fn starts_hidden(&mut self, slot: u64) -> bool {
        if self.hidden_sub_agents.is_empty() {
            return false;
        }
        let Some(Body::ToolCall(call)) = self.body(slot) else { return false };
        let tool = call.name.clone().or_else(|| call.title.clone());
        tool.is_some_and(|tool| self.hidden_sub_agents.iter().any(|glob| glob.is_match(&tool)))
    }
}

/// The end of a call.
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

/// Returns true if the output of a rejected call is a short text that says so. Such a call did not run, even if the agent
/// reports that it completed.
fn says_denied(output: &str) -> bool {
    const MAX_TEXT_BYTES: usize = 200;
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
    output.len() <= MAX_TEXT_BYTES && says(&output.to_ascii_lowercase())
}
