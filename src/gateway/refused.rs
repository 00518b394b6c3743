//! Finds the requests for an answer of a model that got none. Pure.

use serde_json::Map;

use super::ModelRequest;
use super::api::{Api, ModelAnswer};
use super::exchange::{Exchange, FailureKind};
use super::purpose::Purpose;
use super::request_place::RequestPlace;
use super::side_requests;
use crate::secrets::Masker;
use crate::text::first_chars;
use crate::values::Pattern;

/// The maximum number of characters of a service's message.
const LONGEST: usize = 300;

/// The HTTP statuses of a request that the service refuses for its content, such as a context that is too long. After
/// other requests were answered, such a refusal is a failure of the agent.
const OF_REQUEST: [u16; 3] = [400, 413, 422];

/// The texts by which requests of a case's conversation are recognised.
#[derive(Debug, Clone, Default)]
pub struct CaseTexts {
    /// The prompts of the case.
    pub prompts: Vec<String>,
    /// Patterns of requests outside the conversation.
    pub aside: Vec<Pattern>,
}

/// A request for an answer of a model that got none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The kind of failure. Absent if the service answered with something else than an answer of a model.
    pub kind: Option<FailureKind>,
    /// The HTTP status. Absent if there was no answer at all.
    pub status: Option<u16>,
    /// The message of the service or the gateway, with its secrets redacted.
    pub message: Option<String>,
}

/// The outcome of a request for an answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The model's answer, or the failure.
    pub answer: Result<Answered, Refused>,
    /// True if the request is outside the conversation.
    pub aside: bool,
    /// True if a failure can be decisive: the request has no special form, and was not refused for its content.
    pub is_plain: bool,
    /// True if the request hands the case's prompt or the results of calls to the model.
    pub hands: bool,
    /// True if the messages of the user or the instructions contain the case's prompt.
    pub holds_prompt: bool,
    /// The messages of the user and the instructions.
    pub texts: String,
    pub place: RequestPlace,
}

/// An answer of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub answer: ModelAnswer,
    /// True if the agent received the whole answer.
    pub is_whole: bool,
}

/// Returns the outcome of an exchange. Returns `None` for a request that does not ask for an answer of a model, and for
/// one that the gateway itself refused, which has its own effect on the trial.
pub fn outcome(exchange: &Exchange, case: &CaseTexts, masker: &Masker) -> Option<Outcome> {
    let api = exchange.api?;
    let is_known = match Purpose::of_logged(&exchange.method, &exchange.path) {
        Purpose::Answer(_) => true,
        // An endpoint that no API describes may have a model, too.
        Purpose::Unknown if exchange.usage.is_some_and(|usage| usage.output_tokens.is_some_and(|it| it > 0)) => false,
        Purpose::Unknown | Purpose::Count(_) | Purpose::Models(..) | Purpose::Probe => return None,
    };
    let answer = match answer_in(exchange, api, is_known) {
        Some(answer) => Ok(Answered { answer, is_whole: exchange.error.is_none() }),
        None => Err(refused(exchange, api, masker)?),
    };
    let asked = api.asked(&exchange.path, &exchange.request);
    let aside = asked.beside || side_requests::is_said(&asked, &case.prompts, &case.aside);
    let of_request = exchange.status.is_some_and(|status| OF_REQUEST.contains(&status));
    let users = asked.users.iter().map(|(_, text)| text.as_str());
    let texts: Vec<&str> = std::iter::once(asked.told.as_str()).chain(users).collect();
    let texts = texts.join("\n");
    Some(Outcome {
        answer,
        aside,
        is_plain: !aside && !of_request && asked.forced.is_none() && asked.format.is_none(),
        hands: hands_results(&asked) || side_requests::hands_prompt(&asked, &case.prompts),
        holds_prompt: side_requests::holds_prompt(&texts, &case.prompts),
        place: RequestPlace::of(&asked, &exchange.request),
        texts,
    })
}

/// Returns the failure of an exchange without an answer. Returns `None` if the gateway itself refused the request.
fn refused(exchange: &Exchange, api: Api, masker: &Masker) -> Option<Refused> {
    let kind = exchange.error.as_ref().map(|error| error.kind);
    let by_gateway =
        [FailureKind::Miss, FailureKind::Aside, FailureKind::Model, FailureKind::Limit, FailureKind::Malformed];
    if kind.is_some_and(|kind| by_gateway.contains(&kind)) {
        return None;
    }
    let told = exchange.error.as_ref().and_then(|error| error.message.clone());
    let message = told.or_else(|| api.error_of(&exchange.response).map(|error| error.message));
    let message = message.map(|message| masker.mask(&message).into_owned());
    Some(Refused { kind, status: exchange.status, message })
}

/// Returns the answer of a model that a request got, as far as the gateway can tell. Endpoints that no API describes
/// may answer in any form.
fn answer_in(exchange: &Exchange, api: Api, is_known: bool) -> Option<ModelAnswer> {
    if !exchange.is_answered() {
        return None;
    }
    let response = &exchange.response;
    let found = match api.model_answer(response) {
        _ if api.error_of(response).is_some() => None,
        None if !is_known && (response.is_object() || response.is_array()) => Some(ModelAnswer::default()),
        // The service counts tokens, or says nothing: then nothing shows a refusal.
        None if exchange.usage.is_some() || response.as_object().is_some_and(Map::is_empty) => {
            Some(ModelAnswer::default())
        }
        found => found,
    };
    match exchange.error.as_ref().map(|error| error.kind) {
        // The agent may have had enough of an answer that it closed.
        None | Some(FailureKind::Closed) => found,
        // The agent may have read what the gateway could not.
        Some(FailureKind::Malformed) => Some(found.unwrap_or_default()),
        // The connection broke after the end of the answer.
        Some(FailureKind::Cut) => found.filter(|answer| answer.finished),
        Some(_) => None,
    }
}

/// Returns true if a request hands the results of the model's last calls to the model. If the service keeps the
/// conversation, the request contains the results without the turn that made the calls.
fn hands_results(asked: &ModelRequest) -> bool {
    let last_turn = asked.model_turns.checked_sub(1);
    asked.results.iter().any(|result| result.turn == last_turn)
}

impl Refused {
    /// Returns true if the agent closed the connection before an answer came.
    pub fn is_closed(&self) -> bool {
        self.kind == Some(FailureKind::Closed)
    }

    /// Returns the reason in words.
    pub(super) fn why(&self) -> String {
        let said = self.message.as_deref().map(|said| first_chars(said.trim(), LONGEST));
        let said = said.filter(|said| !said.is_empty());
        let otherwise = |text: &str| said.unwrap_or(text).to_owned();
        match (self.kind, self.status) {
            (Some(FailureKind::Closed), _) => "no answer came before the agent closed the connection".to_owned(),
            (Some(FailureKind::Cut), _) => {
                said.map_or("the answer broke off".to_owned(), |said| format!("the answer broke off: {said}"))
            }
            (Some(FailureKind::Key | FailureKind::Unreachable), _) | (_, None) => otherwise("there was no answer"),
            (_, Some(200..300)) => otherwise("the response holds no answer of a model"),
            (_, Some(status)) => said.map_or(format!("status {status}"), |said| format!("status {status}: {said}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(status: u16, error: Option<&str>, request: &Value, response: &Value) -> Option<Outcome> {
        let mut line = json!({"n": 1, "at_ms": 0, "api": "openai-chat", "method": "POST", "path": "/v1/chat/completions",
            "status": status, "request": request, "response": response, "source": "upstream"});
        if let Some(kind) = error {
            line["error"] = json!({"kind": kind});
        }
        let case = CaseTexts { prompts: vec!["Do it.".to_owned()], aside: Vec::new() };
        outcome(&serde_json::from_value(line).unwrap(), &case, &Masker::default())
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    #[test]
    fn a_request_that_hands_over_the_prompt_or_results_is_known() {
        let call = json!({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "sh", "arguments": "{}"}}]});
        let result = json!({"role": "tool", "tool_call_id": "c1", "content": "ok"});
        let answer = json!({"role": "assistant", "content": "Done."});
        let messages = json!([user("Do it."), call, result, answer, user("Suggest what the user asks next.")]);
        let up_to = |n: usize| json!(messages.as_array().unwrap()[..n].to_vec());
        let in_system = json!([{"role": "system", "content": "Your task: Do it."}, user("Begin.")]);
        let title = json!([user("Write a short title for this conversation:\nDo it.")]);
        let in_json = json!({"messages": up_to(3), "response_format": {"type": "json_object"}});
        for (status, request, is_plain, hands) in [
            (429, json!({"messages": up_to(1)}), true, true),
            (429, json!({"messages": up_to(3)}), true, true),
            (429, json!({"messages": up_to(5)}), true, false),
            (429, json!({"messages": in_system}), true, true),
            (429, json!({"messages": title}), false, true),
            (429, in_json, false, true),
            (400, json!({"messages": up_to(3)}), false, true),
        ] {
            let outcome = of(status, Some("service"), &request, &json!({})).unwrap();
            assert!(outcome.answer.is_err());
            assert_eq!((outcome.is_plain, outcome.hands), (is_plain, hands), "{status} {request}");
        }
    }

    #[test]
    fn requests_that_the_gateway_refused_and_answers_that_the_agent_left_are_no_refusals() {
        let request = json!({"messages": [user("Do it.")]});
        let answer = |reason: Value| json!({"choices": [{"message": {"content": "x"}, "finish_reason": reason}]});
        for kind in ["miss", "aside", "model", "limit", "malformed"] {
            assert_eq!(of(400, Some(kind), &request, &json!({})), None, "{kind}");
        }
        let is_answered = |status, error, response: &Value| {
            of(status, error, &request, response).is_some_and(|outcome| outcome.answer.is_ok())
        };
        for error in [None, Some("closed"), Some("malformed")] {
            assert!(is_answered(200, error, &answer(Value::Null)), "{error:?}");
        }
        assert!(is_answered(200, Some("cut"), &answer(json!("stop"))));
        for (status, error) in [
            (200, Some("cut")),
            (200, Some("service")),
            (502, Some("unreachable")),
            (401, Some("key")),
            (500, Some("service")),
        ] {
            assert!(!is_answered(status, error, &answer(Value::Null)), "{status} {error:?}");
        }
        // Nothing of an answer came.
        for error in [None, Some("closed")] {
            assert!(!is_answered(200, error, &json!({"detail": "Unauthorized"})), "{error:?}");
            assert!(!is_answered(200, error, &Value::Null), "{error:?}");
        }
        assert!(is_answered(200, None, &json!({})));
    }
}
