//! Reviews of calls by the agent's program: the bridge to Codex reports, in the form of a call, that a second model approved
//! or denied a call.

use serde_json::{Map, Value};

use super::bridge_reports::{CODEX, may_be_report};
use super::{Translator, content, text_at};
use crate::trace::NoticeCode;
use crate::trace::recorder::{self, Recorder};

/// The beginning of the ID of a review.
const REVIEW: &str = "guardian_assessment:";

/// The keys of the texts and objects in a report about a review.
const REPORT: [&str; 7] = ["threadId", "turnId", "reviewId", "targetItemId", "action", "review", "decisionSource"];

/// The maximum number of denied calls that are remembered until they are announced.
const MAX_DENIED: usize = 10_000;

/// The subject of a denied review.
enum Denied {
    /// The call that the review names.
    Call,
    /// A program or a connection of the command that the review names. The other parts of the command may have run.
    Part,
    /// Text for the input of a command, which no call shows.
    Input,
    /// Something of another kind.
    Unknown,
}

impl Denied {
    /// Reads the kind of the reviewed action.
    fn of(report: &Value) -> Self {
        match report.get("action").and_then(|action| text_at(action, "type")).as_deref() {
            Some("command" | "applyPatch" | "mcpToolCall" | "requestPermissions") => Self::Call,
            Some("execve" | "networkAccess") => Self::Part,
            Some("writeStdin") => Self::Input,
            _ => Self::Unknown,
        }
    }
}

impl Translator {
    /// Takes an update about a review of a call. A denied call was not carried out, but a command of which one program was
    /// denied was. If the denied call is not shown, the agent attempted what no call shows. Returns false if the update is not
    /// about a review, or shows more than a report about one: it is of a call then.
    pub(super) fn took_review(
        &mut self,
        word: &str,
        update: &Map<String, Value>,
        meta: &Value,
        recorder: &mut Recorder,
    ) -> bool {
        let id = update.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        let has_id = word.starts_with("tool_call") && id.starts_with(REVIEW) && !recorder.was_announced(id);
        if !has_id || !has_form_of_review(update, meta) || !self.is_bridge(&CODEX, recorder) {
            return false;
        }
        let verdict = content::shown(update.get("content").cloned().unwrap_or(Value::Null)).text;
        let parts = ["a review of a call", verdict.as_deref().unwrap_or_default()];
        recorder.notice(NoticeCode::AgentNotice, parts.join(": ").trim_end());
        let report = ["rawOutput", "rawInput"].into_iter().find_map(|key| update.get(key).filter(|it| it.is_object()));
        let is_denied =
            |report: &&Value| report.get("review").and_then(|it| text_at(it, "status")).as_deref() == Some("denied");
        if let Some(report) = report.filter(is_denied) {
            let target = text_at(report, "targetItemId");
            let is_shown = |call: &String| recorder.is_open(call) || recorder.was_announced(call);
            match (Denied::of(report), target) {
                (Denied::Call, Some(call)) if is_shown(&call) => recorder.deny(&call),
                (Denied::Call, Some(call)) if self.denied.len() < MAX_DENIED => {
                    self.denied.insert(call);
                }
                (Denied::Part, Some(call)) if is_shown(&call) => {}
                (Denied::Unknown, Some(call)) if is_shown(&call) => {
                    recorder.contradicted(NoticeCode::AgentNotice, "a review denied a call, or a part of one");
                }
                _ => denied_unseen(recorder),
            }
        }
        true
    }

    /// Takes the end of a turn. The denied calls that were not announced by then are not shown.
    pub(super) fn reviews_ended(&mut self, recorder: &mut Recorder) {
        for _ in std::mem::take(&mut self.denied) {
            denied_unseen(recorder);
        }
    }
}

/// Returns true if an update shows nothing but a report about a review.
fn has_form_of_review(update: &Map<String, Value>, meta: &Value) -> bool {
    let is_plain = |value: &Value| matches!(value, Value::Null | Value::Bool(_) | Value::Number(_));
    let is_report = |report: &Value| {
        let map = report.as_object().filter(|map| map.get("action").is_some_and(Value::is_object));
        map.is_some_and(|map| map.iter().all(|(key, value)| is_plain(value) || REPORT.contains(&key.as_str())))
    };
    let holds_report = |key: &str| update.get(key).is_none_or(|value| recorder::is_empty(value) || is_report(value));
    ["rawInput", "rawOutput"].into_iter().all(holds_report) && may_be_report(update, meta, "think")
}

fn denied_unseen(recorder: &mut Recorder) {
    recorder.did_unseen(NoticeCode::UnshownAction, "a review denied a call that the agent does not show");
}
