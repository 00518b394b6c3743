//! Finds agents whose model did not answer: every request of the trial failed, or the one that the agent needed to go
//! on. Pure.

use serde_json::Value;

use super::ModelRequest;
use super::api::Api;
use super::exchange::{Exchange, FailureKind};
use super::purpose::Purpose;
use super::side_requests;
use crate::secrets::Masker;
use crate::text::{first_chars, plural};
use crate::values::Pattern;

/// The maximum number of characters of a service's message.
const LONGEST: usize = 300;

/// The HTTP statuses of a request that the service refuses for its content, such as a context that is too long. After other
/// requests were answered, such a refusal is a failure of the agent.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The model answered.
    Answered {
        /// True if the request is outside the conversation.
        aside: bool,
    },
    /// The agent got no answer of a model.
    Refused {
        refused: Refused,
        /// True if the agent cannot go on without the answer.
        needed: bool,
    },
}

/// The requests of a trial that got no answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals {
    answered: u64,
    refused: u64,
    /// The last refused request.
    last: Option<Refused>,
    /// The last refused request that the agent needed, if none of its conversation was answered afterwards.
    needed_at_the_end: Option<Refused>,
}

/// Returns the outcome of an exchange. Returns `None` for a request that does not ask for an answer of a model, and for
/// one that the gateway itself refused, which has its own effect on the trial.
pub fn outcome(exchange: &Exchange, case: &CaseTexts, masker: &Masker) -> Option<Outcome> {
    let api = exchange.api?;
    let asks = match Purpose::of_logged(&exchange.method, &exchange.path) {
        Purpose::Answer(_) => true,
        // An endpoint that no API describes may have a model, too.
        Purpose::Unknown => exchange.usage.is_some_and(|usage| usage.output_tokens.is_some_and(|tokens| tokens > 0)),
        Purpose::Count(_) | Purpose::Models(..) | Purpose::Probe => false,
    };
    if !asks {
        return None;
    }
    let asked = api.asked(&exchange.path, &exchange.request);
    let aside = asked.beside || side_requests::is_said(&asked, &case.prompts, &case.aside);
    if is_whole(exchange, api) {
        return Some(Outcome::Answered { aside });
    }
    let kind = exchange.error.as_ref().map(|error| error.kind);
    let by_gateway =
        [FailureKind::Miss, FailureKind::Aside, FailureKind::Model, FailureKind::Limit, FailureKind::Malformed];
    if kind.is_some_and(|kind| by_gateway.contains(&kind)) {
        return None;
    }
    let told = exchange.error.as_ref().and_then(|error| error.message.clone());
    let message = told.or_else(|| api.error_of(&exchange.response).map(|error| error.message));
    let message = message.map(|message| masker.mask(&message).into_owned());
    let is_about_service =
        kind != Some(FailureKind::Closed) && !exchange.status.is_some_and(|it| OF_REQUEST.contains(&it));
    let needed = !aside && is_about_service && is_needed(&asked, &case.prompts);
    Some(Outcome::Refused { refused: Refused { kind, status: exchange.status, message }, needed })
}

/// Returns true if a request got a whole answer of a model, as far as the gateway can tell.
fn is_whole(exchange: &Exchange, api: Api) -> bool {
    let holds_answer = || {
        let is_json = matches!(exchange.response, Value::Object(_) | Value::Array(_));
        is_json && api.error_of(&exchange.response).is_none()
    };
    exchange.is_answered()
        && match exchange.error.as_ref().map(|error| error.kind) {
            None => holds_answer(),
            // The agent may have had enough of the answer, or may have read what the gateway could not.
            Some(FailureKind::Closed | FailureKind::Malformed) => true,
            Some(_) => false,
        }
}

/// Returns true if a request hands the case's prompt or the results of calls to the model. Agents offer tools in such
/// requests; in those for titles and summaries they mostly do not, or hand over neither.
fn is_needed(asked: &ModelRequest, prompts: &[String]) -> bool {
    let last_turn = asked.model_turns.checked_sub(1);
    let hands_results = last_turn.is_some() && asked.results.iter().any(|result| result.turn == last_turn);
    let is_plain = asked.forced.is_none() && asked.format.is_none();
    !asked.tools.is_empty() && is_plain && (hands_results || side_requests::hands_prompt(asked, prompts))
}

impl Refused {
    /// Returns the reason in words.
    fn why(&self) -> String {
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

impl Refusals {
    /// Adds a request that has ended.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Answered { aside } => {
                self.answered += 1;
                if !aside {
                    self.needed_at_the_end = None;
                }
            }
            Outcome::Refused { refused, needed } => {
                self.refused += 1;
                if needed {
                    self.needed_at_the_end = Some(refused.clone());
                }
                // A refusal explains more than a connection that the agent closed.
                if self.last.is_none() || refused.kind != Some(FailureKind::Closed) {
                    self.last = Some(refused);
                }
            }
        }
    }

    /// Returns the request without which the agent could not do its task, and what happened in words. Returns `None` if
    /// the agent's model answered.
    pub fn decisive(&self) -> Option<(&Refused, String)> {
        match (&self.last, &self.needed_at_the_end) {
            (Some(last), _) if self.answered == 0 => {
                let requests = plural(self.refused, "request");
                let text = "the gateway: the agent's model answered no request";
                Some((last, format!("{text} ({requests} failed); the last one: {}", last.why())))
            }
            (_, Some(last)) => {
                let text = "the gateway: the agent's model did not answer the last request of the conversation";
                Some((last, format!("{text}: {}", last.why())))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(status: u16, error: Option<&str>, request: &Value) -> Option<Outcome> {
        let mut line = json!({"n": 1, "at_ms": 0, "api": "openai-chat", "method": "POST", "path": "/v1/chat/completions",
            "status": status, "request": request, "response": {}, "source": "upstream"});
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
    fn only_a_request_that_hands_over_the_prompt_or_results_is_needed() {
        let tools = json!([{"type": "function", "function": {"name": "sh", "parameters": {}}}]);
        let call = json!({"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "sh", "arguments": "{}"}}]});
        let result = json!({"role": "tool", "tool_call_id": "c1", "content": "ok"});
        let answer = json!({"role": "assistant", "content": "Done."});
        let messages = json!([user("Do it."), call, result, answer, user("Suggest what the user asks next.")]);
        let up_to = |n: usize| json!(messages.as_array().unwrap()[..n].to_vec());
        let title = json!([user("Write a short title for this conversation:\nDo it.")]);
        let too_long = of(400, Some("service"), &json!({"tools": tools, "messages": up_to(3)}));
        assert!(matches!(too_long, Some(Outcome::Refused { needed: false, .. })), "{too_long:?}");
        for (request, needed) in [
            (json!({"tools": tools, "messages": up_to(1)}), true),
            (json!({"tools": tools, "messages": up_to(3)}), true),
            (json!({"tools": tools, "messages": up_to(5)}), false),
            (json!({"tools": tools, "messages": title}), false),
            (json!({"messages": up_to(1)}), false),
            (json!({"tools": tools, "messages": up_to(3), "response_format": {"type": "json_object"}}), false),
        ] {
            let Some(Outcome::Refused { needed: found, .. }) = of(429, Some("service"), &request) else {
                panic!("{request} is not refused")
            };
            assert_eq!(found, needed, "{request}");
        }
    }

    #[test]
    fn requests_that_the_gateway_refused_and_answers_that_the_agent_left_are_no_refusals() {
        let request = json!({"messages": [user("Do it.")]});
        for kind in ["miss", "aside", "model", "limit", "malformed"] {
            assert_eq!(of(400, Some(kind), &request), None, "{kind}");
        }
        let answered = Some(Outcome::Answered { aside: false });
        for error in [None, Some("closed"), Some("malformed")] {
            assert_eq!(of(200, error, &request), answered, "{error:?}");
        }
        for (status, error) in [(200, "cut"), (200, "service"), (502, "unreachable"), (401, "key"), (500, "service")] {
            assert!(matches!(of(status, Some(error), &request), Some(Outcome::Refused { .. })), "{status} {error}");
        }
    }

    #[test]
    fn an_answer_after_the_refusal_that_the_agent_needed_counts_and_one_beside_it_does_not() {
        let refused = Refused { kind: Some(FailureKind::Service), status: Some(429), message: None };
        let needed = Outcome::Refused { refused, needed: true };
        let answered = |aside| Outcome::Answered { aside };
        for (outcomes, is_decisive) in [
            (vec![answered(false), needed.clone()], true),
            (vec![needed.clone(), answered(true)], true),
            (vec![needed.clone(), answered(false)], false),
            (vec![needed], true),
            (vec![answered(true)], false),
            (vec![], false),
        ] {
            let mut refusals = Refusals::default();
            outcomes.iter().cloned().for_each(|outcome| refusals.add(outcome));
            assert_eq!(refusals.decisive().is_some(), is_decisive, "{outcomes:?}");
        }
    }
}
