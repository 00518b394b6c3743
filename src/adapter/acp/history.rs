//! The history that an agent repeats when it loads a session: no event of the trace, but compared with the events.

use serde_json::Value;

use super::sessions::Session;
use super::updates::gives_events;
use super::{MAX_TOLD, Translator, rpc};
use crate::trace::recorder::{Recorder, ReportedStatus};

impl Session {
    /// Returns true if an update of this kind repeats the earlier session. Some agents go on after they have answered that
    /// the session is loaded; then a report of usage is about the session as it is now.
    pub(super) fn is_history(&self, word: &str) -> bool {
        gives_events(word) && (self.loading || (self.loaded && word != "usage_update"))
    }
}

impl Translator {
    /// Takes an update that repeats the earlier session. If the trace has this session from its beginning, each call of
    /// the history must be in the trace, and have the same outcome.
    pub(super) fn history(&mut self, word: &str, update: &Value, recorder: &mut Recorder) {
        let text = || "updates of a session that is loaded repeat the earlier session and are skipped".to_owned();
        self.once("history", "", text, recorder);
        if self.turn.number == 0 || !matches!(word, "tool_call" | "tool_call_update") {
            return;
        }
        let Some(id) = update.get("toolCallId").filter(|id| !id.is_null()).map(rpc::id_text) else { return };
        let status = update.get("status").and_then(Value::as_str);
        if !recorder.was_announced(&id) {
            if self.is_first("history_call", &id) {
                recorder.did_unseen("history_call", format!("the history has the call {id}, which no line showed"));
            }
        } else if let Some(status) = status.and_then(reported)
            // Of an ID that several calls had, the history does not show which call it means.
            && recorder.call_id(&id) == id
            && recorder.ended_otherwise(&id, status)
            && self.is_first("history_outcome", &id)
        {
            recorder.contradicted("history_outcome", format!("the history has another outcome of the call {id}"));
        }
    }

    /// Returns true if this is the first report of its kind about a call, or if too many were reported to know.
    fn is_first(&mut self, code: &str, id: &str) -> bool {
        self.told.len() >= MAX_TOLD || self.told.insert(format!("{code} {id}"))
    }
}

/// Returns how a call ended by its status, or `None` if the status does not say so.
fn reported(status: &str) -> Option<ReportedStatus> {
    match status {
        "completed" => Some(ReportedStatus::Ok),
        "failed" => Some(ReportedStatus::Failed),
        "cancelled" | "canceled" => Some(ReportedStatus::Cancelled),
        _ => None,
    }
}
