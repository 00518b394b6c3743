//! Identifies our session, and the updates that belong to it.

use serde_json::{Map, Value};

use super::rpc;
use super::updates::gives_events;
use super::{Translator, text_at};
use crate::trace::recorder::Recorder;

/// Updates kept until the session's id is known.
const MAX_EARLY: usize = 10_000;

/// The session whose updates are ours.
#[derive(Debug, Default)]
pub(super) struct Session {
    id: Option<String>,
    /// Requests for a session that are not answered yet.
    pending: usize,
    /// The session that is being loaded; its history is sent before the answer.
    loading: bool,
    /// Updates that came before the id was known.
    early: Vec<(Option<String>, Value)>,
}

impl Session {
    /// A session was asked for; one that is loaded has an id already.
    pub(super) fn asked(&mut self, id: Option<String>, loading: bool) {
        self.pending += 1;
        self.loading |= loading;
        if id.is_some() {
            self.id = id;
        }
    }

    /// A request for a session was refused.
    pub(super) fn refused(&mut self) {
        self.pending = self.pending.saturating_sub(1);
        self.loading = false;
    }

    /// Whether something for this session is for another one than ours.
    pub(super) fn is_foreign(&self, id: Option<&str>) -> bool {
        match (id, &self.id) {
            (Some(id), Some(ours)) => id != ours,
            _ => false,
        }
    }

    /// Whether anything of a session was seen.
    pub(super) fn is_known(&self) -> bool {
        self.id.is_some()
    }

    /// The client speaks of this session.
    pub(super) fn prompted(&mut self, id: Option<String>) {
        if id.is_some() {
            self.id = id;
        }
    }
}

impl Translator {
    /// A `session/update`: of ours, of another's, or too early to tell.
    pub(super) fn session_update(&mut self, params: Value, recorder: &mut Recorder) {
        let mut params = match params {
            Value::Object(params) => params,
            other => return recorder.lost("malformed_update", other.to_string()),
        };
        let id = params.get("sessionId").filter(|id| !id.is_null()).map(rpc::id_text);
        let Some(update) = params.remove("update") else {
            return recorder.lost("malformed_update", Value::Object(params).to_string());
        };
        if self.session.id.is_none() && self.session.pending > 0 {
            self.session.early.push((id, update));
            if self.session.early.len() >= MAX_EARLY {
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
            return recorder.notice("foreign_session", format!("an update {word} for the session {id}: {update}"));
        }
        let word = update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default();
        if self.session.loading && gives_events(word) {
            let text = || "updates before the session was loaded are the history of an earlier one".to_owned();
            return self.once("history", "", text, recorder);
        }
        self.update(update, recorder);
    }

    /// The agent's process was ended after a turn. What was answered before says nothing of how the session ends.
    pub(super) fn restarted(&mut self, recorder: &mut Recorder) {
        self.calls.flush(recorder);
        recorder.end_calls();
        self.requests.forget();
        self.calls.forget();
        self.asked.clear();
        self.turn.answer = None;
        self.turn.open = 0;
    }

    /// Takes the updates that came before an id: nothing says any more that they are not ours.
    pub(super) fn take_early(&mut self, recorder: &mut Recorder) {
        let early = std::mem::take(&mut self.session.early);
        if self.session.id.is_none() {
            self.session.id = early.iter().find_map(|(id, _)| id.clone());
        }
        for (id, update) in early {
            self.sort(id.as_deref(), update, recorder);
        }
    }

    /// A request for a session was answered.
    pub(super) fn session_opened(&mut self, result: &Value, recorder: &mut Recorder) {
        self.session.pending = self.session.pending.saturating_sub(1);
        self.session.loading = false;
        if let Some(id) = result.get("sessionId").filter(|id| !id.is_null()) {
            self.session.id = Some(rpc::id_text(id));
        }
        self.config_options(result.get("configOptions"), recorder);
        self.current_model(result.get("models"), recorder);
        self.mode_of_session(result, recorder);
        self.model_named(result.get("_meta").unwrap_or(&Value::Null), recorder);
        self.take_early(recorder);
    }

    /// The agent introduces itself.
    pub(super) fn introduced(&mut self, result: &Value, recorder: &mut Recorder) {
        let Some(info) = result.get("agentInfo").or_else(|| result.get("info")) else { return };
        let Some(name) = text_at(info, "name") else { return };
        self.conventions.introduce(&name);
        recorder.header().agent = Some(crate::trace::Agent { name, version: text_at(info, "version") });
    }
}

/// The session that a request of ours is about.
pub(super) fn session_of(params: &Map<String, Value>) -> Option<String> {
    params.get("sessionId").filter(|id| !id.is_null()).map(rpc::id_text)
}
