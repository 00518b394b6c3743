//! The Agent Client Protocol: a pure translator of its lines into events.
//!
//! Every line is read as JSON, field by field: unknown content is kept or reported in a notice, and never
//! causes an error.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::sub_agents::SubAgents;
use super::typed_input::TypedInput;
use super::{EndReport, Translate, surrogates};
use crate::harness::Manifest;
use crate::trace::recorder::{DecidedBy, Recorder};
use crate::trace::{Exit, NoticeCode};
use crate::wire::{EngineLine, WireLine, trimmed};

pub(crate) mod answers;
pub(crate) mod background;
pub(crate) mod blocks;
pub(crate) mod broken_servers;
mod bridge_reports;
mod call_titles;
pub(crate) mod calls;
pub mod content;
pub mod exchanges;
pub mod conventions;
pub(crate) mod models;
pub(crate) mod modes;
pub(crate) mod permissions;
mod actions;
mod copilot_agents;
mod history;
mod late;
mod pending_chunk;
mod prompts;
pub(crate) mod questions;
mod reviews;
pub mod rpc;
mod sessions;
mod terminals;
mod unread;
mod unshown;
mod updates;
pub mod usage;

use actions::Action;
use answers::SentRequest;
use background::{END_TURN, START_TURN};
use calls::Calls;
use conventions::Conventions;
use copilot_agents::CopilotAgents;
use models::ModelSeen;
use modes::ModeSeen;
use pending_chunk::PendingChunk;
use permissions::{Pending, Requests};
use prompts::{Echo, Turn};
use rpc::Message;
use sessions::Session;
use terminals::CommandEnd;
use unread::Unread;
use unshown::Messages;
use updates::CutChunk;
use usage::SessionByModel;

/// The maximum number of anomalies that are reported once each; further ones are not reported.
const MAX_REPORTED: usize = 1000;

/// A translator of one session.
pub struct Translator {
    conventions: Conventions,
    /// The engine's requests without an answer, by their ids. The agent's requests have ids of their own.
    asked: HashMap<String, SentRequest>,
    answered: HashSet<String>,
    /// True if a line of the engine was seen. An agent's bare output holds none.
    has_engine_lines: bool,
    session: Session,
    model: ModelSeen,
    mode: ModeSeen,
    turn: Turn,
    echo: Echo,
    calls: Calls,
    /// The sub-agents that calls of Claude Code started.
    sub_agents: SubAgents,
    copilot_agents: CopilotAgents,
    /// True if the agent reported a sub-agent that has a session of its own.
    has_sub_agent_session: bool,
    requests: Requests,
    /// The error of a failed setup, if no later setup succeeded.
    setup: Option<EndReport>,
    /// The error of an agent that speaks another version of the protocol, from which no session recovers.
    version: Option<EndReport>,
    reported: HashSet<String>,
    /// The current line as [`surrogates::marked`] reads it, if it has unpaired surrogates.
    marked: Option<Value>,
    /// The last chunk that ended with half of a character.
    cut: Option<CutChunk>,
    /// The last chunk, if the next line decides whether the model or the agent's program wrote it.
    pending_chunk: Option<PendingChunk>,
    by_model: SessionByModel,
    /// The number of usage reports so far. Some agents send one after each message of the model.
    usage_reports: u64,
    messages: Messages,
    /// The commands that wait for input which the agent does not show.
    typed_input: TypedInput,
    /// The calls that the agent's review denied before they were announced in this turn, by their ids.
    denied: BTreeSet<String>,
    /// The unannounced calls that unreadable messages of this turn name.
    unread: Vec<Unread>,
}

impl Translator {
    /// Returns a translator for sessions of this harness.
    pub fn new(manifest: &Manifest) -> Self {
        Self {
            conventions: Conventions::of(manifest),
            asked: HashMap::new(),
            answered: HashSet::new(),
            has_engine_lines: false,
            session: Session::default(),
            model: ModelSeen::default(),
            mode: ModeSeen::default(),
            turn: Turn::default(),
            echo: Echo::default(),
            calls: Calls::default(),
            sub_agents: SubAgents::default(),
            copilot_agents: CopilotAgents::default(),
            has_sub_agent_session: false,
            requests: Requests::default(),
            setup: None,
            version: None,
            reported: HashSet::new(),
            marked: None,
            cut: None,
            pending_chunk: None,
            by_model: SessionByModel::default(),
            usage_reports: 0,
            messages: Messages::default(),
            typed_input: TypedInput::default(),
            denied: BTreeSet::new(),
            unread: Vec::new(),
        }
    }

    /// Reports an anomaly, once for each key.
    fn once(&mut self, code: NoticeCode, key: &str, text: impl FnOnce() -> String, recorder: &mut Recorder) {
        if self.reported.len() < MAX_REPORTED && self.reported.insert(format!("{code} {key}")) {
            recorder.notice(code, text());
        }
    }

    fn hear(&mut self, message: Message, recorder: &mut Recorder) {
        self.release_before(&message, recorder);
        match message {
            Message::Request { id, method, params } => self.request(&method, params, Some(&id), recorder),
            Message::Notification { method, params } => self.request(&method, params, None, recorder),
            Message::Response { id, outcome } => self.answer(&id, outcome, recorder),
            Message::NotRpc { why, text, is_broken: true } => {
                recorder.lost(NoticeCode::MalformedLine, format!("{why}: {text}"))
            }
            Message::NotRpc { why, text, .. } => recorder.notice(NoticeCode::MalformedLine, format!("{why}: {text}")),
        }
    }

    /// Notes what the agent asks the engine to do.
    fn client_action(&mut self, id: &Value, action: Action, recorder: &mut Recorder) {
        match self.calls.actions.asked(action, recorder) {
            Some(terminal) if self.requests.has_room() => {
                self.requests.push(id, Pending::NewTerminal(terminal), recorder);
            }
            terminal => {
                self.requests.other(id, recorder);
                terminal.into_iter().for_each(|terminal| terminal.tell(recorder));
            }
        }
    }

    /// Takes a request or notification of the agent. Many agents send an id with notifications, or none with
    /// requests.
    fn request(&mut self, method: &str, params: Value, id: Option<&Value>, recorder: &mut Recorder) {
        if id.is_some() && method != "session/update" {
            self.messages.acted();
        }
        match (method, id) {
            ("session/update", _) => self.session_update(params, recorder),
            ("session/request_permission", Some(id)) => self.ask(id, params, recorder),
            ("session/request_permission", None) => {
                recorder.lost(NoticeCode::MalformedRequest, format!("a permission request without an id: {params}"));
            }
            ("terminal/output" | "terminal/wait_for_exit", Some(id)) => self.requests.terminal(id, &params, recorder),
            (questions::METHOD, Some(id)) => self.question(id, params, recorder),
            ("terminal/kill" | "terminal/release", Some(id)) => self.requests.other(id, recorder),
            ("$/cancel_request" | "elicitation/complete" | END_TURN, None) => {}
            (START_TURN, id) => {
                // The last turn has the answer.
                recorder.complete_answer();
                if let Some(id) = id {
                    self.requests.other(id, recorder);
                }
            }
            _ => {
                if let Some(id) = id {
                    match Action::of(method, &params) {
                        Some(action) => return self.client_action(id, action, recorder),
                        None => self.requests.other(id, recorder),
                    }
                }
                let text = || format!("{method}: {params}");
                self.take_unread(NoticeCode::UnknownMethod, Some(method), &params, text, recorder);
            }
        }
    }
}

impl Translate for Translator {
    fn recv(&mut self, line: &WireLine, recorder: &mut Recorder) {
        self.marked = surrogates::marked(trimmed(&line.line));
        for message in rpc::parse(&line.line) {
            self.hear(message, recorder);
        }
    }

    fn send(&mut self, line: &WireLine, recorder: &mut Recorder) {
        self.has_engine_lines = true;
        self.release(recorder);
        for message in rpc::parse(&line.line) {
            match message {
                Message::Request { id, method, params } => self.ask_agent(&id, &method, params, recorder),
                Message::Notification { method, .. } if method == "session/cancel" => recorder.cancel_open(),
                Message::Notification { .. } => {}
                Message::Response { id, outcome } => self.answer_agent(&id, outcome, recorder),
                Message::NotRpc { why, text, .. } => {
                    recorder.notice(NoticeCode::MalformedLine, format!("a line sent to the agent is {why}: {text}"));
                }
            }
        }
    }

    fn stderr(&mut self, line: &str) {
        if self.conventions.heeds_stderr() && self.turn.open > 0 {
            self.turn.printed(line);
        }
    }

    fn ends(&self, line: &WireLine) -> bool {
        rpc::parse(&line.line)
            .any(|message| matches!(&message, Message::Response { id, .. } if self.asked.contains_key(&rpc::key(id))))
    }

    fn engine(&mut self, line: &EngineLine, recorder: &mut Recorder) {
        match line {
            EngineLine::Permission { id, policy, rule, reason, rejects } => {
                let (policy, rule, reason) = (Some(policy.clone()), rule.clone(), reason.clone());
                let by = DecidedBy { policy, rule, reason, rejects: *rejects };
                self.requests.decided(id, by);
            }
            EngineLine::Terminal { terminal, output, truncated, exit } => {
                let end = exit.and_then(|exit| CommandEnd::of(exit.code.map(i64::from), exit.signal.is_some()));
                self.calls.terminals.update(terminal.clone(), Some(output.clone()), Some(*truncated), end);
            }
            EngineLine::Restart => self.restarted(recorder),
            EngineLine::Answered { text } => self.turn.answer_of_model = Some(text.clone()),
            EngineLine::Start { .. }
            | EngineLine::AgentVersion { .. }
            | EngineLine::Prompt { .. }
            | EngineLine::NotStarted { .. }
            | EngineLine::Handshake { .. }
            | EngineLine::Unattended { .. }
            | EngineLine::Limit { .. }
            | EngineLine::Interrupted
            | EngineLine::Cancel
            | EngineLine::CloseStdin
            | EngineLine::Signal { .. }
            | EngineLine::Stopped { .. }
            | EngineLine::Escaped { .. }
            | EngineLine::Priced { .. }
            | EngineLine::Gateway { .. }
            | EngineLine::Refused { .. }
            | EngineLine::OutputLimit
            | EngineLine::Filtered
            | EngineLine::Followed { .. }
            | EngineLine::Notice { .. }
            | EngineLine::Unknown => {}
        }
    }

    fn finish(&mut self, recorder: &mut Recorder, _exit: Option<Exit>) -> EndReport {
        self.take_early(recorder);
        self.release(recorder);
        if self.turn.open > 0 {
            self.messages_ended(recorder);
        }
        self.reviews_ended(recorder);
        self.unread_ended(recorder);
        self.end_of_usage(recorder);
        self.calls.flush(recorder);
        self.settle(recorder);
        self.typed_input.finish(recorder);
        self.sub_agents.settle(true, recorder);
        if !self.has_engine_lines {
            // Without the engine's lines, the time of the prompt is unknown.
            self.look_at_mode(false, recorder);
        }
        self.ending(recorder)
    }
}

/// Returns the text under a key.
fn text_at(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

/// Takes the text under a key; any other value stays.
fn take_text(map: &mut Map<String, Value>, key: &str) -> Option<String> {
    match map.get_mut(key) {
        Some(Value::String(text)) => Some(std::mem::take(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
