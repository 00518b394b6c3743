//! The control protocol: requests of Claude Code to its user, and the answers.

use std::collections::HashSet;

use serde_json::Value;

use super::{Translator, tools};
use crate::adapter::requested::Differs;
use crate::adapter::requests;
use crate::adapter::surrogates;
use crate::trace::recorder::{Answered, Asking, CallReport, DecidedBy, Recorder, is_empty};
use crate::trace::{NoticeCode, PermissionOption, PermissionOutcome, ToolKind};

/// The maximum number of calls that are remembered as those of requests without a call id.
const MAX_FOUND: usize = 100_000;

/// An answer that allows the call. The protocol has words for the answers and no list of options.
pub(crate) const ALLOW: &str = "allow";
/// An answer that allows the call for the session: the rules that the agent suggests are sent along.
pub(crate) const ALLOW_ALWAYS: &str = "allow_always";
/// An answer that refuses the call.
pub(crate) const DENY: &str = "deny";

/// A request to use a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CanUseTool {
    /// The agent's id of the request.
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// The id of the call that the request is about.
    pub(crate) call: String,
    /// The rules that the agent would add to its own if the answer is "always". Other suggestions, such as another mode, are
    /// left out, and the rules hold for the session only, so that the agent writes no settings into the workspace.
    pub(crate) rules: Vec<Value>,
}

impl CanUseTool {
    /// Reads a request from a line, or returns `None` for any other line.
    pub(crate) fn of(line: &Value) -> Option<Self> {
        let request =
            line.get("request").filter(|it| it.get("subtype").and_then(Value::as_str) == Some("can_use_tool"))?;
        let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        Some(Self {
            id: line.get("request_id")?.as_str()?.to_owned(),
            tool: text("tool_name"),
            input: request.get("input").cloned().unwrap_or(Value::Null),
            call: text("tool_use_id"),
            rules: request
                .get("permission_suggestions")
                .and_then(Value::as_array)
                .map(|it| rules(it))
                .unwrap_or_default(),
        })
    }

    /// Returns true if the request itself describes its call, so that the call's id may be missing.
    fn is_described(&self) -> bool {
        !self.tool.is_empty() && !self.input.is_null()
    }

    /// Returns the call as the request reports it, with the kind of its tool, if the kind is known.
    pub(crate) fn call_report(&self, input: Value, kind: Option<ToolKind>) -> CallReport {
        let is_named = !self.tool.is_empty();
        CallReport {
            kind: kind.filter(|_| is_named),
            unknown_kind: is_named && kind.is_none(),
            name: is_named.then(|| self.tool.clone()),
            locations: tools::locations(&input),
            input: Some(input),
            ..CallReport::default()
        }
    }

    /// Returns the possible answers.
    pub(crate) fn options(&self) -> Vec<PermissionOption> {
        let option = |option: &str, kind: &str, label: &str| PermissionOption {
            option: option.to_owned(),
            kind: kind.to_owned(),
            label: label.to_owned(),
        };
        let mut options = vec![option(ALLOW, "allow_once", "Allow")];
        if !self.rules.is_empty() {
            options.push(option(ALLOW_ALWAYS, "allow_always", "Allow, and take the suggested rules"));
        }
        options.push(option(DENY, "reject_once", "Deny"));
        options
    }
}

/// Returns the suggestions of type `addRules`, each with the session as its destination.
fn rules(suggestions: &[Value]) -> Vec<Value> {
    let rules = suggestions.iter().filter(|it| it.get("type").and_then(Value::as_str) == Some("addRules"));
    let for_session = |rule: &Value| {
        let mut rule = rule.clone();
        rule["destination"] = "session".into();
        rule
    };
    rules.map(for_session).collect()
}

/// Requests without an answer.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    pending: requests::Requests<Pending>,
    /// The calls that requests without a call id were found to be about.
    found: HashSet<String>,
}

#[derive(Debug)]
struct Pending {
    /// The request's id in the trace.
    request: String,
    /// The call's known arguments.
    input: Value,
}

impl Requests {
    /// Stores a decision of the policy until its answer is sent.
    pub(crate) fn decided(&mut self, id: &str, by: DecidedBy) {
        self.pending.decide(id, by);
    }
}

impl Translator {
    /// Takes a line of the control protocol from the agent.
    pub(crate) fn control_line(&mut self, text: &str, recorder: &mut Recorder) {
        if self.control.is_none() {
            return;
        }
        let line = surrogates::parse(text).unwrap_or_default();
        match line.get("type").and_then(Value::as_str) {
            Some("control_cancel_request") => {
                let id = line.get("request_id").and_then(Value::as_str).unwrap_or_default();
                self.answered(id, PermissionOutcome::Cancelled, None, None, recorder);
            }
            _ => {
                if let Some(asked) = CanUseTool::of(&line) {
                    self.can_use_tool(asked, recorder);
                } else {
                    recorder.notice(NoticeCode::UnknownRequest, text);
                }
            }
        }
    }

    fn can_use_tool(&mut self, mut asked: CanUseTool, recorder: &mut Recorder) {
        let names_call = !asked.call.is_empty();
        if asked.is_described() && !names_call {
            asked.call = self.call_without_id(&asked, recorder);
        }
        // Readers of the trace see the input with which the call was announced.
        let announced = recorder.open_call(&asked.call).and_then(|(call, _)| call.input.clone());
        let announced = announced.filter(|input| !is_empty(input)).unwrap_or_else(|| asked.input.clone());
        let kind = self.kinds.of(&asked.tool);
        let report = asked.call_report(asked.input.clone(), kind);
        let workspace = recorder.header().cwd.clone();
        let mut asking = Asking { options: asked.options(), awaits_answer: true, ..Asking::default() };
        // An empty id is treated as absent: it does not refer to a call whose id is empty.
        let call = Some(asked.call.as_str()).filter(|id| !id.is_empty());
        if let Some((open, diffs)) = call.and_then(|call| recorder.open_call(call)) {
            let differs = Differs::between(open, diffs, &report, workspace.as_deref());
            if let Some((code, text)) = differs.notice(&asked.id) {
                recorder.notice(code, text);
            }
            (asking.asked, asking.updated_input) = (Some(differs.asked), differs.updated_input);
            asking.unknown_kind = report.unknown_kind;
            recorder.update(&asked.call, report, true);
        } else if call.is_none() || asked.tool.is_empty() {
            let text =
                format!("the request {} does not describe its call: it lacks a tool, an id or an input", asked.id);
            recorder.lost(NoticeCode::UnknownCall, text);
        } else {
            recorder.call(&asked.call, report);
        }
        if self.is_over() && !self.background.goes_on() {
            recorder.notice(NoticeCode::LateRequest, format!("the request {} came after the turn had ended", asked.id));
        }
        let Some(control) = &mut self.control else { return };
        let request = recorder.ask(&asked.id, call, asking);
        let named = call.filter(|_| names_call);
        control.pending.ask(&asked.id, named, Pending { request, input: announced }, recorder);
    }

    /// Returns the id of the call that a request without a call id is about: an announced call of the same tool with the
    /// same input, or else a call of the request itself.
    fn call_without_id(&mut self, asked: &CanUseTool, recorder: &mut Recorder) -> String {
        let own = || format!("request:{}", asked.id);
        let Some(control) = &mut self.control else { return own() };
        // Each of several equal calls has its own request.
        let announced = recorder.open_call_with(&asked.tool, &asked.input, |id| !control.found.contains(id));
        let call = announced.unwrap_or_else(own);
        recorder.notice(
            NoticeCode::MissingCallId,
            format!("the request {} names no call; it is taken as {call}", asked.id),
        );
        if control.found.len() < MAX_FOUND {
            control.found.insert(call.clone());
        }
        call
    }

    /// Takes the engine's answer to the agent.
    pub(crate) fn control_answer(&mut self, text: &str, recorder: &mut Recorder) {
        let line = surrogates::parse(text).unwrap_or_default();
        let response = line.get("response").unwrap_or(&Value::Null);
        let id = response.get("request_id").and_then(Value::as_str).unwrap_or_default();
        let answer = response.get("response").unwrap_or(&Value::Null);
        match answer.get("behavior").and_then(Value::as_str) {
            Some("allow") => {
                let rules = answer.get("updatedPermissions").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
                let option = if rules { ALLOW_ALWAYS } else { ALLOW };
                let updated = answer.get("updatedInput").cloned();
                self.answered(id, PermissionOutcome::Allowed, Some(option), updated, recorder);
            }
            Some("deny") => self.answered(id, PermissionOutcome::Rejected, Some(DENY), None, recorder),
            _ => self.answered(id, PermissionOutcome::Cancelled, None, None, recorder),
        }
    }

    fn answered(
        &mut self,
        id: &str,
        outcome: PermissionOutcome,
        option: Option<&str>,
        updated: Option<Value>,
        recorder: &mut Recorder,
    ) {
        let Some(control) = &mut self.control else { return };
        let Some((Pending { request, input }, by)) = control.pending.pop(id) else { return };
        let updated_input = updated.filter(|updated| *updated != input);
        let option = option.map(str::to_owned);
        recorder.respond(&request, Answered { outcome, option, by, updated_input });
    }
}
