//! The APIs of model services: one method for each thing that differs between them.
//!
//! Each API has a file here for its requests and whole answers, and a file `stream` below it that streams a whole
//! answer and joins a streamed one. Code outside this module does not distinguish APIs.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::join::Joiner;
use super::{ModelRequest, Refusal, Reply};

pub use self::answer::ModelAnswer;
pub use self::anthropic::message_tokens;
pub use self::ids::IdKind;
pub use self::join::{Join, StreamError};
pub use self::usage::{Pricing, TokenUsage};

mod answer;
mod anthropic;
mod gemini;
mod ids;
mod join;
mod openai_chat;
mod openai_responses;
mod sse;
#[cfg(test)]
mod read_tests;
#[cfg(test)]
mod tests;
mod usage;
mod volatile;

/// An API that agents use for models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[derive(strum::EnumCount, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Api {
    /// Anthropic Messages.
    #[serde(alias = "anthropic-messages")]
    Anthropic,
    /// OpenAI Responses.
    OpenaiResponses,
    /// OpenAI Chat Completions.
    OpenaiChat,
    /// Gemini generateContent and streamGenerateContent.
    Gemini,
}

/// The form of a stream that a request asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamOptions {
    /// True if a Chat stream ends with the usage. The other APIs always stream it.
    pub usage: bool,
    /// True if a Gemini stream is a JSON list instead of server-sent events.
    pub as_list: bool,
}

/// The events of a streamed answer.
#[derive(Debug, Default)]
struct Streamed {
    /// The events with the content.
    body: Vec<String>,
    /// The events after which the answer is complete.
    end: Vec<String>,
}

/// An error that a service reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceError {
    /// The service's word for the kind of error, or empty if it reports none.
    pub kind: String,
    /// The service's code of the error as a text, or empty if it reports none. It may equal `kind`.
    pub code: String,
    pub message: String,
}

crate::word::word!(Api);

impl Api {
    /// All APIs.
    pub const ALL: [Api; <Api as strum::EnumCount>::COUNT] =
        [Api::Anthropic, Api::OpenaiResponses, Api::OpenaiChat, Api::Gemini];

    /// Parses a request. `path` may contain a query.
    pub fn asked(self, path: &str, body: &Value) -> ModelRequest {
        match self {
            Api::Anthropic => anthropic::asked(body),
            Api::OpenaiResponses => openai_responses::asked(body),
            Api::OpenaiChat => openai_chat::asked(body),
            Api::Gemini => gemini::asked(path, body),
        }
    }

    /// Returns the model that a request names. `path` may contain a query.
    pub fn model_asked(self, path: &str, body: &Value) -> Option<String> {
        match self {
            Api::Anthropic | Api::OpenaiResponses | Api::OpenaiChat => body["model"].as_str().map(str::to_owned),
            Api::Gemini => gemini::model_of(path).map(str::to_owned),
        }
    }

    /// Replaces the model that a request names, in the body or in the returned path.
    pub fn with_model(self, path: &str, body: &mut Value, model: &str) -> String {
        match self {
            Api::Anthropic | Api::OpenaiResponses | Api::OpenaiChat => {
                if let Some(body) = body.as_object_mut() {
                    body.insert("model".to_owned(), Value::from(model));
                }
                path.to_owned()
            }
            Api::Gemini => gemini::path_with_model(path, model),
        }
    }

    /// Returns the model that a whole answer names.
    pub fn model_answered(self, response: &Value) -> Option<String> {
        let key = match self {
            Api::Anthropic | Api::OpenaiResponses | Api::OpenaiChat => "model",
            Api::Gemini => "modelVersion",
        };
        response.get(key)?.as_str().map(str::to_owned)
    }

    /// Returns a reply in the form of a whole answer.
    pub fn whole(self, reply: &Reply) -> Value {
        match self {
            Api::Anthropic => anthropic::whole(reply),
            Api::OpenaiResponses => openai_responses::whole(reply),
            Api::OpenaiChat => openai_chat::whole(reply),
            Api::Gemini => gemini::whole(reply),
        }
    }

    /// Returns the form of stream that a request asks for.
    pub fn stream_options(self, query: &str, asked: &ModelRequest) -> StreamOptions {
        let as_events = self != Api::Gemini || query.split('&').any(|part| part == "alt=sse");
        StreamOptions { usage: asked.usage_in_stream, as_list: !as_events }
    }

    /// Streams a whole answer. Each element is one event, or one element of a list.
    pub fn events(self, answer: &Value, options: StreamOptions) -> Vec<String> {
        let Streamed { mut body, end } = self.streamed(answer, options, false);
        body.extend(end);
        body
    }

    /// Streams the content of an answer without the events that complete it, as if the connection broke.
    pub fn unfinished(self, answer: &Value, options: StreamOptions) -> Vec<String> {
        self.streamed(answer, options, true).body
    }

    /// Streams the first half of an answer's content, then the error if there is one.
    pub fn broken(self, answer: &Value, options: StreamOptions, error: Option<&Refusal>) -> Vec<String> {
        let mut events = self.unfinished(answer, options);
        events.truncate((events.len() / 2).max(1));
        events.extend(error.map(|refusal| self.error_event(refusal, options)));
        events
    }

    /// Streams an answer. With `end_apart`, no event contains both content and the end.
    fn streamed(self, answer: &Value, options: StreamOptions, end_apart: bool) -> Streamed {
        match self {
            Api::Anthropic => anthropic::streamed(answer),
            Api::OpenaiResponses => openai_responses::streamed(answer),
            Api::OpenaiChat => openai_chat::streamed(answer, options.usage),
            Api::Gemini => gemini::streamed(answer, options.as_list, end_apart),
        }
    }

    /// Returns the joiner of this API's events.
    fn joiner(self) -> Box<dyn Joiner> {
        match self {
            Api::Anthropic => Box::<anthropic::Events>::default(),
            Api::OpenaiResponses => Box::<openai_responses::Events>::default(),
            Api::OpenaiChat => Box::<openai_chat::Chunks>::default(),
            Api::Gemini => Box::<gemini::Chunks>::default(),
        }
    }

    /// Returns the token usage that a whole answer reports, or `None` if it reports none or only zeros.
    pub fn usage(self, response: &Value) -> Option<TokenUsage> {
        let usage = match self {
            Api::Anthropic => anthropic::usage(response),
            Api::OpenaiResponses => openai_responses::usage(response),
            Api::OpenaiChat => openai_chat::usage(response),
            Api::Gemini => gemini::usage(response),
        };
        TokenUsage { cost_lower_bound: self.pricing(response) == Pricing::More, ..usage }.some()
    }

    /// Returns what a whole answer costs, compared with its tokens at the prices of a price table.
    pub fn pricing(self, response: &Value) -> Pricing {
        match self {
            Api::Anthropic if anthropic::costs_more(&response["usage"]) => Pricing::More,
            Api::OpenaiResponses | Api::OpenaiChat => openai_chat::pricing(response),
            Api::Anthropic | Api::Gemini => Pricing::Listed,
        }
    }

    /// Returns the message of a service whose rate limit a request exceeds.
    pub fn rate_limit_message(self, model: &str, retry_after_ms: Option<u64>) -> String {
        let seconds = retry_after_ms.map(|ms| ms as f64 / 1000.0);
        let (message, again) = match self {
            Api::Anthropic => {
                return "This request would exceed your organization's rate limit. Please try again later.".to_owned();
            }
            Api::OpenaiResponses | Api::OpenaiChat => {
                (format!("Rate limit reached for {model} on requests per min (RPM)."), "Please try again in")
            }
            Api::Gemini => ("You exceeded your current quota.".to_owned(), "Please retry in"),
        };
        seconds.map_or(message.clone(), |seconds| format!("{message} {again} {seconds}s."))
    }

    /// Returns the body of a refused request.
    pub fn error(self, refusal: &Refusal) -> Value {
        match self {
            Api::Anthropic => anthropic::error(refusal),
            Api::OpenaiResponses | Api::OpenaiChat => openai_chat::error(refusal),
            Api::Gemini => gemini::error(refusal),
        }
    }

    /// Returns an event as the service sent it.
    pub fn event(self, event: &Value, options: StreamOptions, is_first: bool) -> String {
        let name = event.get("type").and_then(Value::as_str);
        match (self, name) {
            (Api::Anthropic | Api::OpenaiResponses, Some(name)) => format!("event: {name}\ndata: {event}\n\n"),
            (Api::Gemini, _) if options.as_list => {
                let before = if is_first { "[" } else { ",\r\n" };
                format!("{before}{event}]")
            }
            (Api::Gemini, _) => format!("data: {event}\r\n\r\n"),
            _ => format!("data: {event}\n\n"),
        }
    }

    /// Returns an error event for the middle of a stream.
    pub fn error_event(self, refusal: &Refusal, options: StreamOptions) -> String {
        match self {
            Api::Anthropic => anthropic::error_event(refusal),
            Api::OpenaiResponses => openai_responses::error_event(refusal),
            Api::OpenaiChat => openai_chat::error_event(refusal),
            Api::Gemini => gemini::error_event(refusal, options.as_list),
        }
    }

    /// Returns the error that a response or an error event reports.
    pub fn error_of(self, response: &Value) -> Option<ServiceError> {
        // Services that imitate another one use their own forms, so all are read.
        match response {
            Value::Array(elements) => elements.iter().find_map(|element| self.error_of(element)),
            Value::Object(_) => service_error(response),
            _ => None,
        }
    }

    /// Returns the list of models.
    pub fn models(self, names: &[String]) -> Value {
        match self {
            Api::Anthropic => anthropic::models(names),
            Api::OpenaiResponses | Api::OpenaiChat => openai_chat::models(names),
            Api::Gemini => gemini::models(names),
        }
    }

    /// Returns one model of the list.
    pub fn model(self, name: &str) -> Value {
        match self {
            Api::Anthropic => anthropic::model(name),
            Api::OpenaiResponses | Api::OpenaiChat => openai_chat::model(name),
            Api::Gemini => gemini::model(name),
        }
    }

    /// Returns the answer to a request for a count of tokens.
    pub fn count(self, tokens: u64) -> Value {
        match self {
            Api::Anthropic | Api::OpenaiChat => json!({"input_tokens": tokens}),
            Api::OpenaiResponses => json!({"object": "response.input_tokens", "input_tokens": tokens}),
            Api::Gemini => json!({"totalTokens": tokens}),
        }
    }

    /// Returns the parts of requests that differ between runs and do not belong to the conversation. Each is a path of
    /// keys: `*` matches any one key or element, `**` any number of them.
    pub fn volatile(self) -> &'static [&'static str] {
        match self {
            // Only where the API defines it: an argument of a tool may have the same name.
            Api::Anthropic => &[
                "/metadata/user_id",
                "/cache_control",
                "/system/*/cache_control",
                "/tools/*/cache_control",
                "/messages/*/content/*/cache_control",
                "/messages/*/content/*/content/*/cache_control",
            ],
            Api::OpenaiResponses => &["/prompt_cache_key", "/client_metadata", "/safety_identifier", "/user"],
            Api::OpenaiChat => &[
                "/user",
                "/prompt_cache_key",
                "/safety_identifier",
                "/messages/*/cache_control",
                "/messages/*/content/*/cache_control",
                "/tools/*/cache_control",
            ],
            Api::Gemini => &["/labels"],
        }
    }

    /// Removes the [volatile](Api::volatile) parts of a request.
    pub fn without_volatile(self, request: &mut Value) {
        self.volatile().iter().for_each(|path| volatile::remove(request, path));
    }

    /// Calls a function with each id in a request or in a whole answer that a service or an agent made.
    pub fn ids(self, value: &Value, visit: &mut dyn FnMut(IdKind, &str)) {
        ids::visit(self.id_rules(), "", value, visit);
    }

    /// Calls a function with each id in a request or in a whole answer, to replace it.
    pub fn ids_mut(self, value: &mut Value, visit: &mut dyn FnMut(IdKind, &mut String)) {
        ids::visit_mut(self.id_rules(), "", value, visit);
    }

    fn id_rules(self) -> ids::Rules {
        match self {
            Api::Anthropic => anthropic::IDS,
            Api::OpenaiResponses => openai_responses::IDS,
            Api::OpenaiChat => openai_chat::IDS,
            Api::Gemini => gemini::IDS,
        }
    }

    /// Returns an id in the form of this API.
    pub fn new_id(self, kind: IdKind, number: u64) -> String {
        let prefix = match self {
            Api::Anthropic => anthropic::id_prefix(kind),
            Api::OpenaiResponses => openai_responses::id_prefix(kind),
            Api::OpenaiChat => openai_chat::id_prefix(kind),
            Api::Gemini => gemini::id_prefix(kind),
        };
        format!("{prefix}evals{number:08}")
    }

    /// Calls a function with the content of each tool result in a request, to replace it.
    pub fn results(self, request: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
        match self {
            Api::Anthropic => anthropic::results(request, visit),
            Api::OpenaiResponses => openai_responses::results(request, visit),
            Api::OpenaiChat => openai_chat::results(request, visit),
            Api::Gemini => gemini::results(request, visit),
        }
    }
}

/// Reads the error forms of all services: `{"error": {…}}`, `{"error": "…"}`, `{"response": {"error": {…}}}` of an
/// event, and an object that is itself the error.
fn service_error(body: &Value) -> Option<ServiceError> {
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let known = |key: &&Value| !key.is_null();
    let nested = body.get("error").filter(known).or_else(|| body.get("response")?.get("error").filter(known));
    let is_error = body["type"] == "error" || body["object"] == "error";
    let error = nested.or_else(|| is_error.then_some(body))?;
    if let Some(message) = error.as_str() {
        return Some(ServiceError { kind: String::new(), code: String::new(), message: message.to_owned() });
    }
    let code = text(error, "code").unwrap_or_default();
    let kind = ["type", "status", "code"]
        .into_iter()
        .find_map(|key| text(error, key).filter(|kind| !kind.is_empty() && kind != "error"))
        .or_else(|| error.get("code")?.as_u64().map(|code| code.to_string()));
    let message = text(error, "message").unwrap_or_else(|| error.to_string());
    Some(ServiceError { kind: kind.unwrap_or_default(), code, message })
}
