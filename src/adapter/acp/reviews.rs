//! Reviews of calls by the program: the bridge to Codex reports in the form of a call that a second model approved or denied one.

use serde_json::{Map, Value};

use super::{Translator, content, text_at};
use crate::trace::NoticeCode;
use crate::trace::recorder::Recorder;

/// The name by which the bridge to Codex introduces itself.
const CODEX: &str = "@agentclientprotocol/codex-acp";

/// The beginning of the ID of a review.
const REVIEW: &str = "guardian_assessment:";

/// The maximum number of denied calls that are remembered until they are announced.
const MAX_DENIED: usize = 10_000;

impl Translator {
    /// Takes an update about a review of a call. A denied call was not carried out; if it is not shown, the agent attempted what
    /// no call shows. Returns false if the update is not about a review.
    pub(super) fn took_review(&mut self, word: &str, update: &Map<String, Value>, recorder: &mut Recorder) -> bool {
        let id = update.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
        if !word.starts_with("tool_call") || !id.starts_with(REVIEW) || !self.conventions.is_agent(CODEX) {
            return false;
        }
        let verdict = content::shown(update.get("content").cloned().unwrap_or(Value::Null)).text;
        let told = ["a review of a call", verdict.as_deref().unwrap_or_default()];
        recorder.notice(NoticeCode::AgentNotice, told.join(": ").trim_end());
        let report = ["rawOutput", "rawInput"].into_iter().find_map(|key| update.get(key).filter(|it| it.is_object()));
        let is_denied =
            |report: &&Value| report.get("review").and_then(|it| text_at(it, "status")).as_deref() == Some("denied");
        if let Some(report) = report.filter(is_denied) {
            match text_at(report, "targetItemId") {
                Some(call) if recorder.is_open(&call) || recorder.was_announced(&call) => recorder.deny(&call),
                Some(call) if self.denied.len() < MAX_DENIED => {
                    self.denied.insert(call);
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

fn denied_unseen(recorder: &mut Recorder) {
    recorder.did_unseen(NoticeCode::UnshownAction, "a review denied a call that the agent does not show");
}
