//! The history that an agent repeats when it loads a session: no event of the trace, but compared with the events.

use serde_json::Value;

use super::calls::call_report;
use super::sessions::Session;
use super::updates::gives_events;
use super::{MAX_REPORTED, Translator, rpc, text_at};
use crate::trace::recorder::{CallReport, Recorder, ReportedStatus};
use crate::trace::{NoticeCode, ToolKind};

impl Session {
    /// Returns true if an update of this kind repeats the earlier session. Some agents go on after they have answered that
    /// the session is loaded; then a report of usage is about the session as it is now.
    pub(super) fn is_history(&self, word: &str) -> bool {
        gives_events(word) && (self.loading || (self.loaded && word != "usage_update"))
    }
}

impl Translator {
    /// Takes an update that repeats the earlier session. If the trace has this session from its beginning, each call of
    /// the history must be in the trace, and have the same input, kind and outcome.
    pub(super) fn history(&mut self, word: &str, update: &Value, recorder: &mut Recorder) {
        let text = || "updates of a session that is loaded repeat the earlier session and are skipped".to_owned();
        self.once(NoticeCode::History, "", text, recorder);
        if self.turn.number == 0 || !matches!(word, "tool_call" | "tool_call_update") {
            return;
        }
        let meta = update.get("_meta").unwrap_or(&Value::Null);
        if update.as_object().is_some_and(|update| self.is_compaction(update, meta, recorder)) {
            return;
        }
        let Some(id) = update.get("toolCallId").filter(|id| !id.is_null()).map(rpc::id_text) else { return };
        if !recorder.was_announced(&id) {
            if self.is_first(NoticeCode::HistoryCall, &id) {
                recorder.did_unseen(
                    NoticeCode::HistoryCall,
                    format!("the history has the call {id}, which no line showed"),
                );
            }
            return;
        }
        // Of an ID that several calls had, the history does not show which call it means.
        if recorder.call_id(&id) != id {
            return;
        }
        if self.is_another_call(&id, update, recorder) && self.is_first(NoticeCode::HistoryCall, &id) {
            recorder
                .did_unseen(NoticeCode::HistoryCall, format!("the history has another input or kind of the call {id}"));
        }
        let status = update.get("status").and_then(Value::as_str).and_then(reported);
        // OpenCode reports a call that its model made wrongly as completed.
        let is_invalid = matches!(update.get("title").and_then(Value::as_str), Some("invalid" | "Invalid Tool"));
        let is_other = |status| !is_invalid && recorder.ended_otherwise(&id, status);
        if status.is_some_and(is_other) && self.is_first(NoticeCode::HistoryOutcome, &id) {
            recorder
                .contradicted(NoticeCode::HistoryOutcome, format!("the history has another outcome of the call {id}"));
        }
    }

    /// Returns true if an update of the history shows another input or another kind than the call that ended. What only one of
    /// the two shows does not differ, and a kind may be less specific.
    fn is_another_call(&self, id: &str, update: &Value, recorder: &Recorder) -> bool {
        if recorder.ended_as(id).is_none() {
            return false;
        }
        let title = text_at(update, "title");
        let name = title.as_deref().and_then(|title| self.conventions.name_in_title(title));
        let CallReport { kind, input, .. } = call_report(update, name, &self.conventions);
        let is_kind = |kind| recorder.ended_knowing(id, &CallReport { kind: Some(kind), ..CallReport::default() });
        let other_kind = kind.is_some_and(|kind| match kind {
            ToolKind::Other => false,
            ToolKind::Edit => ![ToolKind::Edit, ToolKind::Delete, ToolKind::Move].into_iter().any(is_kind),
            kind => !is_kind(kind),
        });
        let shows_both = input.is_some() && recorder.ended_with_input(id);
        other_kind || (shows_both && !recorder.ended_knowing(id, &CallReport { input, ..CallReport::default() }))
    }

    /// Returns true if this is the first report of its kind about a call, or if too many were reported to know.
    fn is_first(&mut self, code: NoticeCode, id: &str) -> bool {
        self.reported.len() >= MAX_REPORTED || self.reported.insert(format!("{code} {id}"))
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
