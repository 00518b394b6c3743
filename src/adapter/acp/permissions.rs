//! Permission requests of the agent, and the answers. The ids of the agent's requests are separate from the engine's.

use serde_json::{Map, Value};

use super::actions::AskedTerminal;
use super::questions::{Question, question_answered};
use super::rpc::{self, RpcError};
use super::{Translator, text_at};
use crate::adapter::requested::Differs;
use crate::adapter::requests;
use crate::trace::recorder::{Answered, Asking, DecidedBy, Recorder};
use crate::trace::{NoticeCode, PermissionOption, PermissionOutcome};

/// The agent's requests without an answer.
#[derive(Debug, Default)]
pub(super) struct Requests(requests::Requests<Pending>);

#[derive(Debug)]
pub(super) enum Pending {
    /// A permission request, by its id in the trace, with its options and their kinds.
    Permission(String, Vec<(String, String)>),
    /// A question to the user.
    Question(Question),
    /// A question about a terminal of the engine.
    Terminal(String),
    /// A request for a new terminal.
    NewTerminal(AskedTerminal),
    /// A request that leaves no event.
    Other,
}

impl Requests {
    /// Notes the agent's request for a terminal's output or end.
    pub(super) fn terminal(&mut self, id: &Value, params: &Value, recorder: &mut Recorder) {
        let pending = text_at(params, "terminalId").map_or(Pending::Other, Pending::Terminal);
        self.push(id, pending, recorder);
    }

    /// Notes a request of the agent that leaves no event.
    pub(super) fn other(&mut self, id: &Value, recorder: &mut Recorder) {
        self.push(id, Pending::Other, recorder);
    }

    /// Returns true if another request can be stored.
    pub(super) fn has_room(&self) -> bool {
        self.0.has_room()
    }

    /// Takes the requests for new terminals that have no answer.
    pub(super) fn new_terminals(&mut self) -> Vec<AskedTerminal> {
        let mut found = Vec::new();
        for pending in self.0.all() {
            match std::mem::replace(pending, Pending::Other) {
                Pending::NewTerminal(asked) => found.push(asked),
                other => *pending = other,
            }
        }
        found
    }

    /// Clears the open requests: the agent's process has ended, and a new one restarts its ids.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Stores a decision of the policy until its answer is sent.
    pub(super) fn decided(&mut self, id: &Value, by: DecidedBy) {
        self.0.decide(&rpc::key(id), by);
    }

    pub(super) fn push(&mut self, id: &Value, pending: Pending, recorder: &mut Recorder) {
        self.0.push(&rpc::key(id), pending, recorder);
    }

    /// Notes a request for a decision: a permission request about a call, or a question.
    pub(super) fn ask(&mut self, id: &Value, call: Option<&str>, pending: Pending, recorder: &mut Recorder) {
        self.0.ask(&rpc::key(id), call, pending, recorder);
    }
}

impl Translator {
    /// Takes the agent's request for permission.
    ///
    /// A request about a call that the trace does not show, or of another session, is answered `cancelled`, so the agent
    /// did not do what it asked for. But graders also forbid attempts that were denied, and the trace does not show this
    /// one.
    pub(super) fn ask(&mut self, id: &Value, params: Value, recorder: &mut Recorder) {
        let mut params = match params {
            Value::Object(params) => params,
            _ => Map::new(),
        };
        let request = rpc::id_text(id);
        let session = params.get("sessionId").filter(|id| !id.is_null()).map(rpc::id_text);
        let mut call = match params.remove("toolCall") {
            Some(Value::Object(call)) => call,
            _ => Map::new(),
        };
        let call_id = call.remove("toolCallId").filter(|id| !id.is_null()).map(|id| rpc::id_text(&id));
        let options = options(params.get("options"));
        if self.is_over() {
            recorder
                .notice(NoticeCode::LateRequest, format!("the request {request} came after the prompt was answered"));
        } else if self.has_engine_lines && self.turn.number == 0 {
            recorder.notice(NoticeCode::LateRequest, format!("the request {request} came before the first prompt"));
        }
        let mut asking = Asking { options: options.clone(), awaits_answer: true, ..Asking::default() };
        // An empty id is treated as absent: it does not refer to a call whose id is empty.
        let call_id = call_id.filter(|id| !id.is_empty());
        // The engine takes what names no session as its own.
        if session.is_none() && call_id.is_some() && self.session.is_known() {
            recorder.notice(NoticeCode::ForeignSession, format!("the request {request} names no session"));
        }
        let about = if self.session.is_foreign(session.as_deref()) {
            let session = session.unwrap_or_default();
            recorder.did_unseen(
                NoticeCode::ForeignSession,
                format!("the request {request} is for another session, {session}"),
            );
            // A call of the engine's session may have the same id; the request is not about that call.
            asking.unknown = Some(format!("{session}/{}", call_id.unwrap_or_default()));
            None
        } else if let Some(call_id) = call_id {
            let (describes, report) = self.described(&call_id, &mut call, recorder);
            let workspace = recorder.header().cwd.clone();
            if let Some((open, diffs)) = recorder.open_call(&call_id) {
                let differs = Differs::between(open, diffs, &report, workspace.as_deref());
                if let Some((code, text)) = differs.notice(&request) {
                    // The announced title, which the trace does not keep, may be the command.
                    match differs.other_title.is_some() && recorder.header().command_title.is_some() {
                        true => recorder.did_unseen(code, text),
                        false => recorder.notice(code, text),
                    }
                }
                (asking.asked, asking.updated_input) = (Some(differs.asked), differs.updated_input);
                asking.unknown_kind = report.unknown_kind;
                recorder.update(&call_id, report, true);
                let title = differs.other_title.map(|(title, _)| title);
                recorder.retitle(&call_id, title);
            } else if describes {
                self.announce(&call_id, report, recorder);
            } else {
                let text = |what: &str| format!("the request {request} is about the {what}");
                match recorder.was_announced(&call_id) {
                    true => {
                        let text = text(&format!("call {call_id}, which has ended"));
                        recorder.notice(NoticeCode::UnknownCall, text);
                    }
                    false => recorder.did_unseen(NoticeCode::UnknownCall, text(&format!("unknown call {call_id}"))),
                }
            }
            Some(call_id)
        } else {
            recorder.did_unseen(NoticeCode::UnknownCall, format!("the request {request} names no call"));
            None
        };
        let kinds = options.iter().map(|option| (option.option.clone(), option.kind.clone())).collect();
        let unique = recorder.ask(&request, about.as_deref(), asking);
        self.requests.ask(id, about.as_deref(), Pending::Permission(unique, kinds), recorder);
    }

    /// Takes the engine's answer to the agent.
    pub(super) fn answer_agent(&mut self, id: &Value, outcome: Result<Value, RpcError>, recorder: &mut Recorder) {
        let Some((pending, by)) = self.requests.0.pop(&rpc::key(id)) else { return };
        match (pending, outcome) {
            (Pending::Permission(request, options), outcome) => {
                let (outcome, option) = decided(&request, outcome, &options, recorder);
                recorder.respond(&request, Answered { outcome, option, by, updated_input: None });
            }
            (Pending::Question(question), outcome) => question_answered(question, outcome, by, recorder),
            (Pending::Terminal(terminal), Ok(mut result)) => {
                self.calls.terminals.answered(terminal, &mut result);
            }
            (Pending::NewTerminal(asked), outcome) => {
                let terminal = outcome.ok().and_then(|result| text_at(&result, "terminalId"));
                self.calls.actions.started(asked, terminal, recorder);
            }
            (Pending::Terminal(_), Err(_)) | (Pending::Other, _) => {}
        }
    }
}

/// Reads the answers that a request offers.
pub(crate) fn options(options: Option<&Value>) -> Vec<PermissionOption> {
    let options = options.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let option = |option: &Value| {
        Some(PermissionOption {
            option: option.get("optionId").filter(|id| !id.is_null()).map(rpc::id_text)?,
            kind: text_at(option, "kind").unwrap_or_default(),
            label: text_at(option, "name").unwrap_or_default(),
        })
    };
    options.iter().filter_map(option).collect()
}

/// Returns the meaning of an answer: by the kind of the chosen option, never by its name.
fn decided(
    request: &str,
    outcome: Result<Value, RpcError>,
    options: &[(String, String)],
    recorder: &mut Recorder,
) -> (PermissionOutcome, Option<String>) {
    let Ok(result) = outcome else { return (PermissionOutcome::Cancelled, None) };
    let outcome = result.get("outcome").unwrap_or(&Value::Null);
    let word = text_at(outcome, "outcome");
    match word.as_deref() {
        Some("cancelled") => return (PermissionOutcome::Cancelled, None),
        Some("selected") => {}
        _ => {
            recorder.notice(
                NoticeCode::UnknownOutcome,
                format!("the answer to the request {request} has no known outcome: {result}"),
            );
            return (PermissionOutcome::Cancelled, None);
        }
    }
    let chosen = outcome.get("optionId").filter(|id| !id.is_null()).map(rpc::id_text);
    let kind = options.iter().find(|(option, _)| Some(option) == chosen.as_ref()).map(|(_, kind)| kind.as_str());
    let outcome = match kind {
        Some(kind) if kind.starts_with("allow") => PermissionOutcome::Allowed,
        Some(kind) if kind.starts_with("reject") => PermissionOutcome::Rejected,
        _ => {
            let option = chosen.as_deref().unwrap_or("nothing");
            let text = format!("the request {request} was answered with the option {option}, whose kind is unknown");
            recorder.notice(NoticeCode::UnknownOption, text);
            PermissionOutcome::Cancelled
        }
    };
    (outcome, chosen)
}
