//! The sub-agents of Qwen Code that go on in the background after the answer to a prompt, and the turns about their ends.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{MAX_REPORTED, Translator, content, rpc};
use crate::trace::recorder::Recorder;
use crate::trace::{CallStatus, NoticeCode};

/// The methods by which Qwen Code reports the beginning and the end of a turn that it begins itself.
pub(super) const START_TURN: &str = "_qwencode/start_turn";
pub(super) const END_TURN: &str = "_qwencode/end_turn";

/// The source of such a turn, and of a message, if a sub-agent or a command has ended.
const NOTIFICATION: &str = "background_notification";

/// The tool that starts a sub-agent, and the beginning of its result if the sub-agent works in the background.
const LAUNCHED: (&str, &str) = ("agent", "Background agent launched successfully.");

/// The maximum number of sub-agents that are remembered.
const MAX_KNOWN: usize = 10_000;

/// The work that goes on in the background, as the agent reports it.
#[derive(Debug, Default)]
pub(crate) struct Background {
    /// The calls whose sub-agents work.
    working: BTreeSet<String>,
    /// True if a turn about the end of a sub-agent goes on.
    is_in_turn: bool,
}

impl Background {
    /// Takes a request or a notification of the agent.
    pub(crate) fn observe(&mut self, method: &str, params: &Value) {
        let is_about_end = params.get("source").and_then(Value::as_str) == Some(NOTIFICATION);
        match method {
            "session/update" => self.updated(params.get("update").unwrap_or(&Value::Null)),
            START_TURN if is_about_end => self.is_in_turn = true,
            END_TURN if is_about_end => self.is_in_turn = false,
            _ => {}
        }
    }

    /// Returns true if a sub-agent is working, or a turn that reports the end of one is open.
    pub(crate) fn goes_on(&self) -> bool {
        self.is_in_turn || !self.working.is_empty()
    }

    fn updated(&mut self, update: &Value) {
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        let about = |key: &str| update.get("_meta")?.get(key);
        let (tool, begins) = LAUNCHED;
        if text("sessionUpdate") == Some("tool_call_update")
            && text("status") == Some("completed")
            && about("toolName").and_then(Value::as_str) == Some(tool)
            && let Some(id) = update.get("toolCallId").map(rpc::id_text)
        {
            let output = content::shown(update.get("content").cloned().unwrap_or(Value::Null)).text;
            if output.is_some_and(|output| output.starts_with(begins)) && self.working.len() < MAX_KNOWN {
                self.working.insert(id);
            }
        }
        if about("source").and_then(Value::as_str) == Some(NOTIFICATION)
            && let Some(id) = about("backgroundTask").and_then(|task| task.get("toolUseId"))
        {
            self.working.remove(&rpc::id_text(id));
        }
    }
}

impl Translator {
    /// Takes the `_meta` of an update. It may report that a task in the background did not succeed, after the result of the call
    /// that started the task.
    pub(super) fn task_ended(&mut self, meta: &Value, recorder: &mut Recorder) {
        let Some(task) = meta.get("backgroundTask") else { return };
        let text = |key: &str| task.get(key).and_then(Value::as_str);
        let (code, how) = match (text("status"), text("kind")) {
            (Some("failed"), _) => (NoticeCode::TaskFailed, "failed"),
            (Some("cancelled"), Some("agent")) => (NoticeCode::TaskStopped, "was stopped"),
            _ => return,
        };
        let Some(call) = task.get("toolUseId").filter(|id| !id.is_null()).map(rpc::id_text) else { return };
        let has_result = recorder.was_announced(&call) && !recorder.is_open(&call);
        let may_be_ok = recorder.ended_as(&call).is_none_or(|status| status == CallStatus::Ok);
        // Several updates report the same end.
        if has_result
            && may_be_ok
            && (self.reported.len() >= MAX_REPORTED || self.reported.insert(format!("{code} {call}")))
        {
            recorder.contradicted(code, format!("the call {call} went on in the background and {how} there"));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_sub_agent_in_the_background_goes_on_until_the_end_of_the_turn_about_its_end() {
        let update = |update: Value| ("session/update", json!({"sessionId": "s", "update": update}));
        let ended = |tool: &str, text: &str| {
            update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed",
                "content": [{"type": "content", "content": {"type": "text", "text": text}}], "_meta": {"toolName": tool}}))
        };
        let turn = |method: &'static str, source: &str| (method, json!({"sessionId": "s", "source": source}));
        let news = |source: &str| {
            update(json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "It completed."},
                "_meta": {"source": source, "backgroundTask": {"status": "completed", "toolUseId": "c"}}}))
        };
        let mut background = Background::default();
        for ((method, params), goes_on) in [
            (ended("agent", "done"), false),
            (ended("read_file", "Background agent launched successfully."), false),
            (ended("agent", "Background agent launched successfully.\ntask_id: c"), true),
            (news("background_task_completed"), true),
            (turn(START_TURN, "background_notification"), true),
            (news("background_notification"), true),
            (turn(END_TURN, "goal"), true),
            (turn(END_TURN, "background_notification"), false),
        ] {
            background.observe(method, &params);
            assert_eq!(background.goes_on(), goes_on, "{method} {params}");
        }
    }
}
