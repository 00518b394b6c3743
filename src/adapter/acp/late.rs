//! Updates of calls that have ended: a repetition adds nothing, and anything else leaves the call in doubt.

use serde_json::{Map, Value};

use super::calls::{goes_on, name_in, shows_other_changes};
use super::terminals::CommandEnd;
use super::{Translator, content};
use crate::trace::recorder::{self, CallReport, Recorder, ReportedStatus, ResultReport};
use crate::trace::{CallStatus, NoticeCode, ToolKind};

impl Translator {
    /// Takes an update of a call that has ended. The recorded outcome is not the last one that the agent reports.
    pub(super) fn late_update(
        &mut self,
        id: &str,
        status: &Value,
        mut update: Map<String, Value>,
        meta: &Value,
        recorder: &mut Recorder,
    ) {
        let word = status.as_str().unwrap_or("no");
        let text = format!("an update with {word} status for the call {id}, which has ended");
        let kind_value = update.get("kind").filter(|kind| !recorder::is_empty(kind));
        let kind = kind_value.and_then(Value::as_str).and_then(ToolKind::from_word);
        let again = CallReport {
            kind,
            unknown_kind: kind_value.is_some() && kind.is_none(),
            name: name_in(&update, meta),
            title: update.get("title").and_then(Value::as_str).filter(|title| !title.is_empty()).map(str::to_owned),
            input: update.get("rawInput").filter(|input| !recorder::is_empty(input)).cloned(),
            locations: content::locations(update.get("locations")),
            ..CallReport::default()
        };
        // The end of a call is remembered for some time. Afterwards, only what is said now can be news.
        let is_forgotten = recorder.ended_as(id).is_none();
        let is_known = recorder.ended_knowing(id, &again) || (is_forgotten && recorder.says_nothing(&again));
        let raw = update.remove("rawOutput").unwrap_or(Value::Null);
        let content = content::shown(update.remove("content").unwrap_or(Value::Null));
        let in_terminals = self.calls.terminals.show(&content.terminals);
        let was_ok = recorder.ended_as(id) == Some(CallStatus::Ok);
        let end = CommandEnd::of(content::exit_code(meta, &raw), content::has_signal(meta, &raw));
        // The engine ended the call, and an exit code says how it really ended.
        let was_unfinished = recorder.ended_as(id) == Some(CallStatus::Unfinished);
        let fails = (was_ok && end.or(in_terminals.end).is_some_and(CommandEnd::is_failure))
            || (was_unfinished && end.is_some());
        let ended = |outcome| ResultReport { outcome, ..ResultReport::default() };
        let contradicts = match status.as_str() {
            Some("failed") => recorder.contradicts(id, &ended(ReportedStatus::Failed)),
            Some("completed") => recorder.contradicts(id, &ended(ReportedStatus::Ok)),
            Some("cancelled" | "canceled") => was_ok,
            // The call continues: it has to end once more.
            Some("pending" | "in_progress") => false,
            None if status.is_null() => false,
            _ => true,
        };
        match status.as_str() {
            Some("pending" | "in_progress") => self.calls.reopen(id, recorder),
            Some("completed" | "failed") => self.calls.close_again(id),
            _ => {}
        }
        // The call ended as ok before the agent reported that it only started a sub-agent.
        let is_start = was_ok && goes_on(meta);
        if contradicts || fails || is_start || prints_more(id, content.text.as_deref(), &raw, meta, recorder) {
            recorder.contradicted(NoticeCode::LateUpdate, text);
        } else if !is_known || shows_other_changes(id, &content, recorder) {
            recorder.lost(NoticeCode::LateUpdate, text);
        } else if is_forgotten && matches!(status.as_str(), Some("completed" | "failed" | "cancelled" | "canceled")) {
            // The call may have ended otherwise.
            recorder.contradicted(NoticeCode::LateUpdate, text);
        } else {
            recorder.notice(NoticeCode::LateUpdate, text);
        }
    }
}

/// Returns true if an update shows output that the result of its call does not hold.
fn prints_more(id: &str, shown: Option<&str>, raw: &Value, meta: &Value, recorder: &Recorder) -> bool {
    let streamed = ["terminal_output_delta", "terminal_output"]
        .into_iter()
        .filter_map(|key| meta.get(key)?.get("data")?.as_str())
        .any(|data| !data.is_empty() && !recorder.ended_printing(id, data));
    let texts: Vec<String> =
        shown.map(str::to_owned).into_iter().chain(content::raw_text(raw)).filter(|it| !it.is_empty()).collect();
    let printed = !texts.is_empty() && !texts.iter().any(|text| recorder.ended_printing(id, text));
    streamed || printed
}
