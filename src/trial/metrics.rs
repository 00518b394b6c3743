//! Computes the metrics of a trial from its events.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use super::idle_time::Quiet;
use crate::harness::{Adapter, reading};
use crate::interaction::DEFAULT_RULE;
use crate::result::{Metrics, PermissionCounts, Warning};
use crate::trace::amount::Amount;
use crate::trace::calls::Cuts;
use crate::trace::recorder::Finished;
use crate::trace::usage::{GATEWAY, Measure, UsageTotal};
use crate::trace::{
    AnnouncedCall, Body, CallStatus, Event, Header, Lost, NoticeCode, PermissionOutcome, PermissionResponse,
    RequestSubject, Role, Stop, StopReason, ToolKind, subject_in_trace,
};

/// Counts events.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The number of calls.
    pub calls: u64,
    /// The number of steps, those of sub-agents included.
    steps: u64,
    /// The last step of each agent, by the call that started it.
    in_step: BTreeMap<Option<String>, u64>,
    /// The number of calls by kind.
    pub by_kind: BTreeMap<ToolKind, u64>,
    /// The number of calls that failed.
    pub failed: u64,
    /// Calls whose end is unknown: the agent did not report it, the engine ended the call before the agent did, or status and
    /// exit code contradict each other.
    unfinished: u64,
    /// The kinds and the announcements of the open calls.
    open: BTreeMap<String, (ToolKind, AnnouncedCall)>,
    /// The kinds of calls that were reported as successes without an exit code.
    kinds_without_code: BTreeSet<ToolKind>,
    /// True if a call of the session may be missing in its trace.
    pub lacks_calls: bool,
    cuts: Cuts,
    /// `kind:name` of the calls of each step.
    pub shape: Vec<Vec<String>>,
    /// Permission requests, without questions and approvals of plans.
    pub permissions: PermissionCounts,
    /// Questions and approvals of plans without an answer yet.
    other_requests: HashSet<String>,
    /// The questions and approvals of plans about each open call.
    others: BTreeMap<String, PermissionCounts>,
    /// The calls with such requests that may be for permissions.
    in_doubt: BTreeSet<String>,
    /// True if a notice says that a call first had another kind.
    had_changed_kind: bool,
    /// True if such notices are missing, so that each question and each plan may be about such a call.
    lacks_changed_kinds: bool,
    /// True if the agent asked a question or presented a plan.
    has_others: bool,
    /// The number of prompts that the trace shows, those without a message of their own included.
    pub prompts: usize,
    /// The stop event.
    pub stop: Option<Stop>,
    /// True if the engine ended the session.
    pub stopped_by_engine: bool,
    /// True if the session is a stored one: time limits were not enforced while it ran.
    pub is_stored: bool,
    /// True if the session is a stored one whose agent wrote to standard error, at times that the trace does not have.
    pub wrote_to_stderr: bool,
    /// The permission requests that the policy `llm` answered without a model.
    unadvised: Option<Unadvised>,
    /// The agent's report that it repeats a request to its model, if nothing of an answer followed.
    repeated_request: Option<String>,
    /// The usage that the agent reported, without what the engine added.
    of_agent: UsageTotal,
    /// The tokens that the agent reported and those that the gateway saw, if the agent reported more.
    beside_gateway: Option<(u64, u64)>,
    quiet: Quiet,
    first_prompt_ms: Option<u64>,
    last_ms: u64,
    /// The time of the main agent's last event before the engine ended work in the background, if it did: the prompts were
    /// answered within the time limits.
    cut_ms: Option<u64>,
    /// The time of the main agent's last event.
    main_ms: u64,
    /// Requests without an answer yet, with their times and their events (`seq`).
    asked: BTreeMap<String, (u64, u64)>,
    /// The time that the agent waited for a person or a model, and the time up to which it is counted.
    waited: (u64, u64),
}

/// Permission requests that the policy `llm` answered without a model.
#[derive(Debug, Clone)]
struct Unadvised {
    /// The reason for the first request that no model answered, else for the first one that was too long to be shown.
    why: String,
    requests: u64,
    /// The event (`seq`) of the first request that no model answered, or of its answer. Absent if each request was too long to be
    /// shown, which is the policy's own decision.
    event: Option<u64>,
}

/// Policies whose answers take time to decide, which does not count as the agent's time.
const THINK: [&str; 2] = ["llm", "manual"];

impl Observed {
    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        self.last_ms = event.at_ms;
        match &event.body {
            Body::Notice { code: NoticeCode::BackgroundCut, .. } => {
                self.cut_ms.get_or_insert(self.main_ms);
            }
            Body::Notice { .. } => {}
            _ if event.parent.is_none() => self.main_ms = event.at_ms,
            _ => {}
        }
        if self.cut_ms.is_none() {
            self.quiet.event(event);
        }
        let is_cut = self.cuts.event(event);
        self.unfinished += u64::from(is_cut || is_unfinished(event));
        match &event.body {
            Body::Notice { code: NoticeCode::ApiRetry, text, .. } => self.repeated_request = Some(text.clone()),
            Body::Message(_) | Body::Thought { .. } | Body::ToolCall(_) => self.repeated_request = None,
            _ => {}
        }
        match &event.body {
            Body::Notice { code: NoticeCode::NoticesCut, .. } => self.lacks_changed_kinds |= self.had_changed_kind,
            Body::Notice { lost: Some(Lost::Line | Lost::Call), code, .. } => {
                self.lacks_calls = true;
                if *code == NoticeCode::ChangedKind {
                    self.changed_kind();
                }
            }
            Body::Notice { code: NoticeCode::SilentTurn, .. } => self.prompts += 1,
            Body::Message(message) if message.role == Role::User && event.parent.is_none() => {
                self.prompts += 1;
                self.first_prompt_ms.get_or_insert(event.at_ms);
            }
            Body::ToolCall(call) => {
                self.calls += 1;
                self.open.insert(call.call.clone(), (call.kind, AnnouncedCall::of(call)));
                // The steps of one agent never decrease, so a new number is a new step.
                if self.in_step.insert(event.parent.clone(), call.step) != Some(call.step) {
                    self.steps += 1;
                }
                *self.by_kind.entry(call.kind).or_default() += 1;
                let step = call.step as usize;
                // Steps are numbered without gaps in the order of their first calls.
                if self.shape.len() <= step && step < MAX_SHAPE {
                    self.shape.resize(step + 1, Vec::new());
                }
                if let Some(calls) = self.shape.get_mut(step).filter(|calls| calls.len() < MAX_SHAPE) {
                    calls.push(match &call.name {
                        Some(name) => format!("{}:{name}", call.kind),
                        None => call.kind.to_string(),
                    });
                }
            }
            Body::ToolResult(result) => {
                self.failed += u64::from(result.status == CallStatus::Error);
                let kind = self.open.remove(&result.call).map(|(kind, _)| kind);
                if result.status == CallStatus::Ok && result.exit_code.is_none() {
                    self.kinds_without_code.extend(kind);
                }
                // Changes that only the request showed are in the result of its call.
                let others = self.others.remove(&result.call).filter(|_| !result.diffs.is_empty()).unwrap_or_default();
                self.permissions.requested += others.requested;
                self.permissions.rejected += others.rejected;
                if others.requested > 0 {
                    self.in_doubt.remove(&result.call);
                }
            }
            Body::PermissionRequest(request) => {
                let open = self.open.get_mut(&request.call);
                let subject = subject_in_trace(request, open.as_deref().map(|(_, call)| call));
                if subject == RequestSubject::Action {
                    self.permissions.requested += 1;
                } else {
                    self.other_requests.insert(request.request.clone());
                    self.others.entry(request.call.clone()).or_default().requested += 1;
                    self.has_others = true;
                    if subject == RequestSubject::Doubtful {
                        self.in_doubt.insert(request.call.clone());
                    }
                }
                if let (Some((kind, _)), Some(asked)) = (open, &request.asked) {
                    *kind = asked.kind.unwrap_or(*kind);
                }
                if self.asked.len() < MAX_ASKED {
                    self.asked.insert(request.request.clone(), (event.at_ms, event.seq));
                }
            }
            Body::PermissionResponse(response) => self.answered(response, event.at_ms, event.seq),
            Body::Usage(usage) if usage.source.is_none() => self.of_agent.add(usage),
            Body::Usage(usage) if usage.source.as_deref() == Some(GATEWAY) => {
                let mut of_service = UsageTotal::default();
                of_service.add(usage);
                let tokens = (self.of_agent.tokens(), of_service.tokens());
                self.beside_gateway = match tokens {
                    (Some(agent), Some(Amount::Exact(seen))) if agent.value() > seen => Some((agent.value(), seen)),
                    _ => None,
                };
            }
            Body::Stop(stop) => {
                self.stop = Some(stop.clone());
                self.stopped_by_engine = event.host;
            }
            _ => {}
        }
    }

    /// Handles a notice that a call first had another kind, which does not say which of the open calls it is about.
    fn changed_kind(&mut self) {
        self.had_changed_kind = true;
        for (id, (_, call)) in &mut self.open {
            call.may_have_had_other_kind = true;
            if self.others.contains_key(id) {
                self.in_doubt.insert(id.clone());
            }
        }
    }

    /// Returns the counts of the requests for permissions; unknown if a question or a plan may be one.
    fn known_permissions(&self) -> Option<PermissionCounts> {
        let is_in_doubt = !self.in_doubt.is_empty() || (self.lacks_changed_kinds && self.has_others);
        (!is_in_doubt).then_some(self.permissions)
    }

    fn answered(&mut self, response: &PermissionResponse, at_ms: u64, seq: u64) {
        let is_rejected = u64::from(response.decision() == PermissionOutcome::Rejected);
        match (self.other_requests.remove(&response.request), self.others.get_mut(&response.call)) {
            (false, _) => self.permissions.rejected += is_rejected,
            (true, Some(others)) => others.rejected += is_rejected,
            (true, None) => {}
        }
        let (since, request) = self.asked.remove(&response.request).unzip();
        let policy = response.policy.as_deref().unwrap_or_default();
        if let Some(since) = since.filter(|_| THINK.contains(&policy)) {
            // Requests that wait at the same time count as one wait.
            self.waited.0 += at_ms.saturating_sub(since.max(self.waited.1));
            self.waited.1 = at_ms;
        }
        // A rule of the policy `llm` decides only if no model did.
        if let (true, Some(rule)) = (policy == "llm", response.rule.as_deref()) {
            let why = || response.reason.clone().unwrap_or_default();
            let unadvised = self.unadvised.get_or_insert_with(|| Unadvised { why: why(), requests: 0, event: None });
            unadvised.requests += 1;
            if rule == DEFAULT_RULE && unadvised.event.is_none() {
                (unadvised.why, unadvised.event) = (why(), Some(request.unwrap_or(seq)));
            }
        }
    }

    /// Returns the time from the start of the agent's process to its first prompt, in milliseconds. An agent
    /// that gets its prompt when it is started has started when it reports so; without such a report, the
    /// start-up cannot be measured separately.
    pub fn start_ms(&self, header: &Header) -> Option<u64> {
        let has_conversation = header.adapter.parse::<Adapter>().is_ok_and(Adapter::has_conversation);
        let start = if has_conversation { self.first_prompt_ms } else { header.start_ms };
        start.filter(|_| header.is_timed())
    }

    /// Returns the time from the first prompt to the end, in milliseconds, without the time that the agent
    /// waited for the decision of a person or a model; unknown if the trace has no times. A start-up that
    /// cannot be measured separately is included.
    pub fn duration_ms(&self, header: &Header) -> Option<u64> {
        let begun = self.first_prompt_ms.max(self.start_ms(header)).unwrap_or(0);
        let all = self.last_ms - begun.min(self.last_ms);
        header.is_timed().then(|| all.saturating_sub(self.waited.0))
    }

    /// Returns the time from the beginning to the last event.
    pub fn lasted(&self) -> Duration {
        Duration::from_millis(self.last_ms)
    }

    /// Returns the time from the beginning to the end, in milliseconds, without the time that the agent waited
    /// for the decision of a person or a model. The limit `time` applies to it.
    pub fn took_ms(&self) -> u64 {
        self.cut_ms.unwrap_or(self.last_ms).saturating_sub(self.waited.0)
    }

    /// Returns the longest time in which the agent was idle, in milliseconds; a lower bound if more than the
    /// limit is in doubt.
    pub fn idle_ms(&self, limit_ms: u128) -> Amount<u64> {
        let longest = self.quiet.longest(limit_ms);
        // Output on standard error ends an idle time.
        let is_unknown = self.wrote_to_stderr && u128::from(longest.value()) > limit_ms;
        if is_unknown { Amount::AtLeast(0) } else { longest }
    }

    /// Returns true if a call that was reported as a success may have failed, because the agent reports failed calls of its kind
    /// as successes, too.
    fn may_hide_failures(&self, header: &Header) -> bool {
        let kinds = &self.kinds_without_code;
        !kinds.is_empty() && reading(header).unshown_outcomes.iter().any(|kind| kinds.contains(kind))
    }

    /// Returns true if a permission request got the default answer of the policy `llm`, because no model answered.
    pub fn lacks_an_answer_of_a_model(&self) -> bool {
        self.unadvised.as_ref().is_some_and(|unadvised| unadvised.event.is_some())
    }

    /// Returns warnings about requests that no model answered, about tokens that the gateway did not see, and about a request
    /// that the agent repeated until a limit of time.
    pub fn warnings(&self) -> Vec<Warning> {
        let unadvised = self.unadvised.clone();
        let unadvised = unadvised.map(|Unadvised { why, requests, event }| Warning::NoModel { requests, why, event });
        let beside = self.beside_gateway.map(|(agent, gateway)| Warning::BesideGateway { agent, gateway });
        let is_out_of_time = |stop: &Stop| matches!(stop.reason, StopReason::TimedOut | StopReason::Idle);
        let out_of_time = self.stopped_by_engine && self.stop.as_ref().is_some_and(is_out_of_time);
        let repeated = self.repeated_request.clone().filter(|_| out_of_time);
        let repeated = repeated.map(|why| Warning::RepeatedRequest { why });
        unadvised.into_iter().chain(beside).chain(repeated).collect()
    }
}

/// The maximum number of open requests whose times are kept.
const MAX_ASKED: usize = 10_000;

/// The maximum number of steps, and of calls of a step, in a shape: it shows where typical traces diverge,
/// which is early.
const MAX_SHAPE: usize = 10_000;

/// Returns true if an event is the end of a call whose outcome the agent did not report, or reported as a success with the
/// exit code of a failure.
fn is_unfinished(event: &Event) -> bool {
    let Body::ToolResult(result) = &event.body else { return false };
    match result.status {
        CallStatus::Unfinished => true,
        CallStatus::Ok => result.exit_code.is_some_and(|code| code != 0),
        _ => false,
    }
}

/// Returns the metrics of a finished trial.
pub fn of(finished: &Finished, observed: &Observed) -> Metrics {
    let seen = finished.header.capabilities;
    let usage = &finished.total;
    let (tokens, cost) = (usage.tokens(), usage.cost_usd());
    let figures = [
        (Measure::InputTokens, usage.input_tokens()),
        (Measure::OutputTokens, usage.output_tokens()),
        (Measure::CacheReadTokens, usage.cache_read_tokens()),
        (Measure::CacheWriteTokens, usage.cache_write_tokens()),
        (Measure::TotalTokens, tokens),
    ];
    let of_tokens = figures.iter().map(|(measure, amount)| (*measure, amount.is_none_or(Amount::is_exact)));
    let all = of_tokens.chain([(Measure::CostUsd, cost.is_none_or(Amount::is_exact))]);
    let value = |amount: Option<Amount<u64>>| amount.map(Amount::value);
    let is_each_end_known = observed.unfinished == 0 && !observed.may_hide_failures(&finished.header);
    Metrics {
        measured_ms: observed.duration_ms(&finished.header),
        start_ms: observed.start_ms(&finished.header),
        tool_calls: seen.tracing.then_some(observed.calls),
        tool_calls_by_kind: seen.tracing.then(|| observed.by_kind.clone()),
        failed_calls: (seen.tracing && is_each_end_known).then_some(observed.failed),
        // Added by the caller, who knows the workspace.
        changed_files: None,
        steps: seen.tracing.then_some(observed.steps),
        input_tokens: value(usage.input_tokens()),
        output_tokens: value(usage.output_tokens()),
        cache_read_tokens: value(usage.cache_read_tokens()),
        cache_write_tokens: value(usage.cache_write_tokens()),
        total_tokens: value(tokens),
        cost_usd: cost.map(Amount::value),
        cost_source: usage.cost_source().map(str::to_owned),
        permissions: observed.known_permissions().filter(|_| seen.interaction),
        lower_bounds: all.filter(|(_, is_exact)| !is_exact).map(|(measure, _)| measure).collect(),
    }
}
