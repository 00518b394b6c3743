//! Permission requests of calls: asked and answered, each once, also after the call has ended.

use std::collections::hash_map::Entry;

use serde_json::Value;

use super::{AskedInput, EndedEarly, OpenCall, OpenRequest};
use crate::trace::facts::ReportedDetails;
use crate::trace::recorder::hashes::hash_in;
use crate::trace::recorder::{Answered, Asking, Recorder};
use crate::trace::request_subject::note_subject;
use crate::trace::view;
use crate::trace::{
    Body, CallStatus, Content, FileDiff, NoticeCode, PermissionOption, PermissionOutcome, PermissionRequest,
    PermissionResponse, RequestSubject, SubjectFacts, ToolCall,
};

/// The maximum number of requests for one call that keep what they asked for.
const MAX_REQUESTS: usize = 100;

/// The maximum number of answers that are kept for calls which are not announced yet.
const MAX_EARLY: usize = 10_000;

impl Recorder {
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
        let shown = call_id.and_then(|id| self.shown_subject(id, &asking));
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
                    let subject = shown.as_ref().map_or(RequestSubject::Action, |(subject, _)| *subject);
                    more.requests.push((next, subject));
                }
                (open.call(call_id.unwrap_or_default()), open.parent().cloned())
            }
            None => (asking.unknown.or(call_id.map(str::to_owned)).unwrap_or_default(), None),
        };
        let asked = asking.asked.filter(|asked| is_known && !asked.is_empty());
        let options = asking.options;
        let mut body = PermissionRequest { call: call.clone(), request: unique.clone(), options, asked };
        if let Some((subject, call)) = &shown {
            note_subject(&mut body, call, *subject);
        }
        self.push(Body::PermissionRequest(body), parent.clone(), false);
        let unknown = (!is_known).then(|| request.to_owned());
        if let Some(request) = &unknown {
            *self.of_unknown_calls.entry(request.clone()).or_default() += 1;
        }
        let agent_call = call_id.map(str::to_owned);
        let asked_as = request.to_owned();
        let is_awaited = asking.awaits_answer && is_known;
        self.requests_of.entry(call.clone()).or_default().insert(unique.clone());
        self.requests.insert(
            unique.clone(),
            OpenRequest { call, agent_call, parent, asked_as, unknown, is_awaited, input: asking.updated_input },
        );
        unique
    }

    /// Returns the subject of a request about an open call, by what both show and what the call showed before, and the call.
    fn shown_subject(&self, id: &str, asking: &Asking) -> Option<(RequestSubject, ToolCall)> {
        let (call, diffs) = self.open_call(id)?;
        let facts = SubjectFacts::of(&ReportedDetails::of(call, diffs));
        let facts = asking.asked.as_ref().map_or(facts, |asked| facts.with_asked(asked));
        let facts = if asking.unknown_kind { facts.without_kind() } else { facts };
        Some((facts.with_content(self.earlier_content(id)).subject(), call.clone()))
    }

    /// Returns the agent's id of the open call that a request without an answer is about, by the agent's id of the
    /// request. If several requests have this id, the first one counts, because the engine answers them in order.
    pub fn call_of_request(&self, request: &str) -> Option<&str> {
        let asked = self.requests.iter().filter(|(_, open)| open.asked_as == request);
        asked
            .min_by_key(|(unique, _)| (unique.len(), *unique))
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
        if let Entry::Occupied(mut of_call) = self.requests_of.entry(open.call.clone()) {
            of_call.get_mut().remove(request);
            if of_call.get().is_empty() {
                of_call.remove();
            }
        }
        if let Some(Entry::Occupied(mut count)) = open.unknown.map(|request| self.of_unknown_calls.entry(request)) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
        let mut updated_input = answered.updated_input;
        let next = self.first + self.slots.len() as u64;
        let (outcome, mut early) = (answered.outcome, None);
        // The agent may announce a call after it has asked for it. The recorder's own names have a zero byte.
        if let Some(id) = open.agent_call.as_deref().filter(|id| !id.contains('\0') && !self.was_announced(id)) {
            if self.answered_early.len() < MAX_EARLY || self.answered_early.contains_key(id) {
                self.answered_early.insert(id.to_owned(), answered.outcome);
            } else if answered.outcome != PermissionOutcome::Allowed {
                let text = format!("the answer to a request about the call {id}, which is not announced, is left out");
                self.contradicted(NoticeCode::TooManyRequests, text);
            }
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
            call.cancelled_by_engine = call.cancelled && answered.by.is_engine();
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
                decided: (answered.by.rejects && outcome == PermissionOutcome::Cancelled)
                    .then_some(PermissionOutcome::Rejected),
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
            if self.body(result).is_none() {
                self.contradicted(NoticeCode::LetGo, format!("the call {id} was {how} after its result was written"));
            }
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
                self.notice(NoticeCode::DeniedCallCompleted, text);
            }
        }
        for slot in [open.slot, result] {
            self.hold(slot, false);
        }
    }

    /// Releases the calls that ended before the answer to a request about them, which did not come.
    pub(in crate::trace::recorder) fn release_early(&mut self) {
        for (_, EndedEarly { open, result, .. }) in std::mem::take(&mut self.early) {
            for slot in [open.slot, result] {
                self.hold(slot, false);
            }
        }
    }

    /// Returns true if a call that is open, or that has ended before the answer to a request about it, first had another kind than
    /// now, and the change was not a refinement, such as from `other` to any kind, or from `edit` to `delete` or `move`.
    pub fn had_other_kind(&self, id: &str) -> bool {
        self.open_or_early(id).is_some_and(OpenCall::had_other_kind)
    }

    /// Returns the content that such a call showed before it was described otherwise, if it showed more of an action.
    pub(crate) fn earlier_content(&self, id: &str) -> Content {
        self.open_or_early(id).map(OpenCall::earlier_content).unwrap_or_default()
    }

    fn open_or_early(&self, id: &str) -> Option<&OpenCall> {
        self.open.get(id).or_else(|| self.early.get(id).map(|early| &early.open))
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
}
