//! Identifies the engine's session, and the updates that belong to it.

use serde_json::{Map, Value};

use super::copilot_agents::CopilotAgents;
use super::rpc;
use super::{Translator, text_at};
use crate::trace::NoticeCode;
use crate::trace::recorder::Recorder;

/// The maximum number of updates that are kept until the session's id is known.
const MAX_EARLY: usize = 10_000;
/// The maximum length in bytes of these updates as JSON. In memory they take many times as much.
const MAX_EARLY_BYTES: usize = 4 << 20;

/// The session whose updates are translated.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: Option<String>,
    /// The number of requests for a session without an answer.
    pending: usize,
    /// True if the session is being loaded; its history is sent before the answer.
    pub(super) loading: bool,
    /// True from the answer that the session is loaded until the next prompt.
    pub(super) loaded: bool,
    /// Updates that arrived before the session's id was known.
    early: Vec<(Option<String>, Value)>,
    early_bytes: usize,
    /// True if an update named no session.
    has_unnamed: bool,
}

impl Session {
    /// Notes a request for a session; a loaded session already has an id.
    pub(super) fn asked(&mut self, id: Option<String>, loading: bool) {
        self.pending += 1;
        self.loading |= loading;
        if id.is_some() {
            self.id = id;
        }
    }

    /// Notes that a request for a session was refused.
    pub(super) fn refused(&mut self) {
        self.pending = self.pending.saturating_sub(1);
        self.loading = false;
    }

    /// Notes that a request for a session was answered.
    fn answered(&mut self) {
        self.pending = self.pending.saturating_sub(1);
        self.loaded = std::mem::take(&mut self.loading);
    }

    /// Returns true if a message with this session id belongs to another session.
    pub(super) fn is_foreign(&self, id: Option<&str>) -> bool {
        match (id, &self.id) {
            (Some(id), Some(ours)) => id != ours,
            _ => false,
        }
    }

    /// Returns true if any message of a session was seen.
    pub(super) fn is_known(&self) -> bool {
        self.id.is_some()
    }

    /// Notes the session that the client's prompt names.
    pub(super) fn prompted(&mut self, id: Option<String>) {
        self.loaded = false;
        if id.is_some() {
            self.id = id;
        }
    }
}

impl Translator {
    /// Takes a `session/update`: of this session, of another one, or before the session's id is known.
    pub(super) fn session_update(&mut self, params: Value, recorder: &mut Recorder) {
        let mut params = match params {
            Value::Object(params) => params,
            other => return recorder.lost(NoticeCode::MalformedUpdate, other.to_string()),
        };
        let id = params.get("sessionId").filter(|id| !id.is_null()).map(rpc::id_text);
        let Some(update) = params.remove("update") else {
            return recorder.lost(NoticeCode::MalformedUpdate, Value::Object(params).to_string());
        };
        if self.session.id.is_none() && self.session.pending > 0 {
            self.session.early_bytes += update.to_string().len();
            self.session.early.push((id, update));
            if self.session.early.len() >= MAX_EARLY || self.session.early_bytes >= MAX_EARLY_BYTES {
                self.take_early(recorder);
            }
            return;
        }
        if self.session.id.is_none() {
            self.session.id.clone_from(&id);
        }
        self.sort(id.as_deref(), update, recorder);
    }

    fn sort(&mut self, id: Option<&str>, update: Value, recorder: &mut Recorder) {
        if self.session.is_foreign(id) {
            let word = text_at(&update, "sessionUpdate").unwrap_or_default();
            let id = id.unwrap_or_default();
            let text = format!("an update {word} for another session, {id}: {update}");
            // An action in another session is an action in this trial, too.
            return match word.as_str() {
                "tool_call" | "tool_call_update" => recorder.did_unseen(NoticeCode::ForeignSession, text),
                _ => recorder.notice(NoticeCode::ForeignSession, text),
            };
        }
        if id.is_none() && self.session.is_known() && !std::mem::replace(&mut self.session.has_unnamed, true) {
            let text = "an update names no session; it and those like it are taken as updates of the engine's session";
            recorder.notice(NoticeCode::MalformedUpdate, text);
        }
        let word = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
        if self.session.is_history(word) {
            return self.history(word, &update, recorder);
        }
        self.update(update, recorder);
    }

    /// Resets the state: the agent's process was ended after a turn, and its answers do not show how the session ends.
    pub(super) fn restarted(&mut self, recorder: &mut Recorder) {
        self.calls.flush(recorder);
        self.settle(recorder);
        recorder.end_calls();
        self.requests.forget();
        self.calls.forget();
        self.copilot_agents = CopilotAgents::default();
        self.asked.clear();
        self.turn.answer = None;
        self.turn.open = 0;
    }

    /// Takes the updates that came before the session's id: at this point, they cannot belong to another session.
    pub(super) fn take_early(&mut self, recorder: &mut Recorder) {
        let early = std::mem::take(&mut self.session.early);
        self.session.early_bytes = 0;
        if self.session.id.is_none() {
            self.session.id = early.iter().find_map(|(id, _)| id.clone());
        }
        for (id, update) in early {
            self.sort(id.as_deref(), update, recorder);
        }
    }

    /// Takes the answer to a request for a session.
    pub(super) fn session_opened(&mut self, result: &Value, recorder: &mut Recorder) {
        self.session.answered();
        if let Some(id) = result.get("sessionId").filter(|id| !id.is_null()) {
            self.session.id = Some(rpc::id_text(id));
        }
        self.config_options(result.get("configOptions"), recorder);
        self.current_model(result.get("models"), recorder);
        self.mode_of_session(result, recorder);
        self.model_named(result.get("_meta").unwrap_or(&Value::Null), recorder);
        self.take_early(recorder);
    }

    /// Takes the agent's introduction.
    pub(super) fn introduced(&mut self, result: &Value, recorder: &mut Recorder) {
        let Some(info) = result.get("agentInfo").or_else(|| result.get("info")) else { return };
        let Some(name) = text_at(info, "name") else { return };
        self.conventions.introduce(&name);
        recorder.header().agent = Some(crate::trace::Agent { name, version: text_at(info, "version") });
    }
}

/// Returns the session that a request of the engine is about.
pub(super) fn session_of(params: &Map<String, Value>) -> Option<String> {
    params.get("sessionId").filter(|id| !id.is_null()).map(rpc::id_text)
}
