//! Finds the requests for an answer of a model that got none. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value};

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
const MAX_MESSAGE_CHARS: usize = 300;

/// The HTTP statuses of a request that the service refuses for its content, such as a context that is too long. After
/// other requests were answered, such a refusal is a failure of the agent. Services refuse keys and accounts with them, too.
const OF_REQUEST: [u16; 3] = [400, 413, 422];

/// The texts by which requests of a case's conversation, and their refusals, are recognised.
#[derive(Debug, Clone, Default)]
pub struct CaseTexts {
    pub prompts: Vec<String>,
    /// Patterns of requests outside the conversation.
    pub aside: Vec<Pattern>,
    /// Returns true if a service's text is about the user's key, quota or bill, and not about the request. Absent: no text is.
    pub is_of_account: Option<fn(&str) -> bool>,
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
    /// The text of an answer that broke off, as far as it came. Absent if there is none.
    pub broken_text: Option<String>,
    /// True if the request is outside the conversation.
    pub aside: bool,
    /// True if the service refused the request for its content.
    pub of_content: bool,
    /// The digest of the form that the answer must have: a call of one tool, or a JSON Schema. Absent if it may have any.
    pub form: Option<u64>,
    /// True if the request hands the results of calls to the model.
    pub hands_results: bool,
    /// True if the request hands the case's prompt to the model.
    pub hands_prompt: bool,
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
        Some(answer) => {
            let is_whole = matches!(error_kind(exchange), None | Some(FailureKind::Encoding));
            Ok(Answered { answer, is_whole })
        }
        None => Err(refused(exchange, api, masker)?),
    };
    let broke_off = !matches!(error_kind(exchange), None | Some(FailureKind::Encoding));
    let broken = if broke_off { api.model_answer(&exchange.response) } else { None };
    let broken_text = broken.map(|answer| answer.text).filter(|text| !text.trim().is_empty());
    let asked = api.asked(&exchange.path, &exchange.request);
    let aside = asked.beside || side_requests::is_side_request(&asked, &case.prompts, &case.aside);
    let of_content = exchange.status.is_some_and(|status| OF_REQUEST.contains(&status))
        && !case.is_of_account.is_some_and(|is_of_account| is_of_account(&refusal_words(exchange, api)));
    let users = asked.users.iter().map(|(_, text)| text.as_str());
    let texts: Vec<&str> = std::iter::once(asked.preamble.as_str()).chain(users).collect();
    let texts = texts.join("\n");
    Some(Outcome {
        answer,
        broken_text,
        aside,
        of_content,
        form: form_of(&asked),
        hands_results: hands_results(&asked),
        hands_prompt: side_requests::hands_prompt(&asked, &case.prompts),
        holds_prompt: side_requests::holds_prompt(&texts, &case.prompts),
        place: RequestPlace::of(&asked, &exchange.request),
        texts,
    })
}

fn error_kind(exchange: &Exchange) -> Option<FailureKind> {
    exchange.error.as_ref().map(|error| error.kind)
}

/// Returns the failure of an exchange without an answer. Returns `None` if the gateway itself refused the request.
fn refused(exchange: &Exchange, api: Api, masker: &Masker) -> Option<Refused> {
    let kind = error_kind(exchange);
    let by_gateway = [
        FailureKind::Miss,
        FailureKind::Aside,
        FailureKind::Model,
        FailureKind::Limit,
        FailureKind::Malformed,
        FailureKind::Encoding,
    ];
    if kind.is_some_and(|kind| by_gateway.contains(&kind)) {
        return None;
    }
    let error_message = exchange.error.as_ref().and_then(|error| error.message.clone());
    let message = error_message.or_else(|| api.error_of(&exchange.response).map(|error| error.message));
    let message = message.map(|message| masker.mask(&message).into_owned());
    Some(Refused { kind, status: exchange.status, message })
}

/// Returns the words by which a service says why it refused a request: its codes, and the beginning of its message.
fn refusal_words(exchange: &Exchange, api: Api) -> String {
    let response = &exchange.response;
    let (kind, code, message) = match api.error_of(response) {
        Some(error) => (error.kind, error.code, error.message),
        None => {
            // Other keys may quote the request.
            let text = ["message", "detail"].iter().find_map(|key| response.get(*key)?.as_str());
            let text = text.or_else(|| response.as_str()).unwrap_or_default();
            (String::new(), String::new(), text.to_owned())
        }
    };
    format!("{kind} {code} {}", first_chars(&message, MAX_MESSAGE_CHARS))
}

/// Returns the digest of the form that the answer to a request must have.
fn form_of(asked: &ModelRequest) -> Option<u64> {
    if asked.forced.is_none() && asked.format.is_none() {
        return None;
    }
    let mut digest = DefaultHasher::new();
    (&asked.forced, asked.format.as_ref().map(Value::to_string), asked.tools.is_empty()).hash(&mut digest);
    Some(digest.finish())
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
    match error_kind(exchange) {
        // The agent may have had enough of an answer that it closed.
        None | Some(FailureKind::Closed) => found,
        // The agent may have read what the gateway could not.
        Some(FailureKind::Malformed) => Some(found.unwrap_or_default()),
        Some(FailureKind::Encoding) if response.is_string() => Some(found.unwrap_or_default()),
        // The connection broke after the end of the answer.
        Some(FailureKind::Cut) => found.filter(|answer| answer.finished),
        Some(FailureKind::Encoding) => found,
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
        let message = self.message.as_deref().map(|message| first_chars(message.trim(), MAX_MESSAGE_CHARS));
        let message = message.filter(|message| !message.is_empty());
        let otherwise = |text: &str| message.unwrap_or(text).to_owned();
        match (self.kind, self.status) {
            (Some(FailureKind::Closed), _) => "no answer came before the agent closed the connection".to_owned(),
            (Some(FailureKind::Cut), _) => {
                message.map_or("the answer broke off".to_owned(), |message| format!("the answer broke off: {message}"))
            }
            (Some(FailureKind::Key | FailureKind::Unreachable), _) | (_, None) => otherwise("there was no answer"),
            (_, Some(200..300)) => otherwise("the response holds no answer of a model"),
            (_, Some(status)) => {
                message.map_or(format!("status {status}"), |message| format!("status {status}: {message}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: u16, error: Option<&str>, request: &Value, response: &Value) -> Option<Outcome> {
        let mut line = json!({"n": 1, "at_ms": 0, "api": "openai-chat", "method": "POST", "path": "/v1/chat/completions",
            "status": status, "request": request, "response": response, "source": "upstream"});
        if let Some(kind) = error {
            line["error"] = json!({"kind": kind});
        }
        let is_of_account: fn(&str) -> bool = |text| text.contains("billing_hard_limit_reached");
        let prompts = vec!["Do it.".to_owned()];
        let case = CaseTexts { prompts, is_of_account: Some(is_of_account), ..CaseTexts::default() };
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
        for (request, aside, has_form, hands_results, hands_prompt) in [
            (json!({"messages": up_to(1)}), false, false, false, true),
            (json!({"messages": up_to(3)}), false, false, true, false),
            (json!({"messages": up_to(5)}), false, false, false, false),
            (json!({"messages": in_system}), false, false, false, true),
            (json!({"messages": title}), true, false, false, true),
            (in_json, false, true, true, false),
        ] {
            let outcome = of(429, Some("service"), &request, &json!({})).unwrap();
            assert!(outcome.answer.is_err() && !outcome.of_content);
            let found = (outcome.aside, outcome.form.is_some(), outcome.hands_results, outcome.hands_prompt);
            assert_eq!(found, (aside, has_form, hands_results, hands_prompt), "{request}");
        }
    }

    #[test]
    fn a_refusal_of_the_account_is_none_of_the_content() {
        let request = json!({"messages": [user("Do it.")]});
        let error = |code: &str| json!({"error": {"message": "no", "type": "invalid_request_error", "code": code}});
        for (status, response, of_content) in [
            (400, error("context_length_exceeded"), true),
            (413, json!({}), true),
            (422, json!({"detail": [{"input": "billing_hard_limit_reached"}]}), true),
            (400, error("billing_hard_limit_reached"), false),
            (400, json!({"detail": "billing_hard_limit_reached"}), false),
            (429, json!({}), false),
        ] {
            let outcome = of(status, Some("service"), &request, &response).unwrap();
            assert_eq!(outcome.of_content, of_content, "{status} {response}");
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
