//! Questions of the agent, ACP's `elicitation/create`: a separate call in the trace, with its answer.

use serde_json::{Map, Value};

use super::permissions::Pending;
use super::rpc::{self, RpcError};
use super::{Translator, text_at};
use crate::trace::recorder::{Answered, CallReport, DecidedBy, Recorder, ReportedStatus, ResultReport};
use crate::trace::{NoticeCode, PermissionOption, PermissionOutcome, ToolKind};

/// The method of a question, which is also the name of the call.
pub(crate) const METHOD: &str = "elicitation/create";

/// A question without an answer.
#[derive(Debug)]
pub(super) struct Question {
    /// The request's id in the trace.
    request: String,
    /// The id of the call that represents the question in the trace.
    call: String,
    /// The fields of the question.
    input: Map<String, Value>,
}

impl Translator {
    /// Takes a question of the agent to the user. The agent announces no call for a question, so the translator makes
    /// one.
    pub(super) fn question(&mut self, id: &Value, params: Value, recorder: &mut Recorder) {
        let request = rpc::id_text(id);
        let session = params.get("sessionId").filter(|id| !id.is_null()).map(rpc::id_text);
        if self.session.is_foreign(session.as_deref()) {
            let session = session.unwrap_or_default();
            recorder.notice(
                NoticeCode::ForeignSession,
                format!("the question {request} is for another session, {session}"),
            );
            return self.requests.other(id, recorder);
        }
        if self.is_over() {
            recorder
                .notice(NoticeCode::LateRequest, format!("the question {request} came after the prompt was answered"));
        }
        let title = text_at(&params, "message");
        let mut input = match params {
            Value::Object(params) => params,
            other => Map::from_iter([("params".to_owned(), other)]),
        };
        // The ids that identify the session are not part of the question.
        ["sessionId", "requestId", "toolCallId", "_meta"].iter().for_each(|key| drop(input.remove(*key)));
        let call = format!("elicitation-{request}");
        let report = CallReport {
            kind: Some(ToolKind::Other),
            name: Some(METHOD.to_owned()),
            title,
            input: Some(Value::Object(input.clone())),
            ..CallReport::default()
        };
        self.announce(&call, report, recorder);
        let request = recorder.request(&request, &call, options());
        self.requests.ask(id, None, Pending::Question(Question { request, call, input }), recorder);
    }
}

/// Takes the engine's answer to the agent's question, and the decision about it.
pub(super) fn question_answered(
    question: Question,
    outcome: Result<Value, RpcError>,
    by: DecidedBy,
    recorder: &mut Recorder,
) {
    let Question { request, call, mut input } = question;
    let mut answer = outcome.unwrap_or_default();
    let content = answer.get_mut("content").map(Value::take).filter(|content| !content.is_null());
    let (outcome, option) = match answer.get("action").and_then(Value::as_str) {
        Some("accept") => (PermissionOutcome::Allowed, Some("accept")),
        Some("decline") => (PermissionOutcome::Rejected, Some("decline")),
        _ => (PermissionOutcome::Cancelled, None),
    };
    let output = content.as_ref().map(Value::to_string);
    let updated_input = content.filter(|_| outcome == PermissionOutcome::Allowed).map(|content| {
        input.insert("content".to_owned(), content);
        Value::Object(input)
    });
    let option = option.map(str::to_owned);
    recorder.respond(&request, Answered { outcome, option, by, updated_input });
    recorder.result(&call, ResultReport { outcome: ReportedStatus::Ok, output, ..ResultReport::default() });
}

fn options() -> Vec<PermissionOption> {
    let option = |option: &str, kind: &str| PermissionOption {
        option: option.to_owned(),
        kind: kind.to_owned(),
        label: String::new(),
    };
    vec![option("accept", "allow_once"), option("decline", "reject_once")]
}
