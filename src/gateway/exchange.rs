//! An exchange between an agent and its model: a line of `llm.jsonl`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::IntoStaticStr;

use super::Api;
use super::api::TokenUsage;
use super::script_line::ScriptLine;
use crate::word::word;

/// A request of an agent, and its answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exchange {
    /// The number of the exchange, from 1, in the order of the requests.
    pub n: u64,
    /// Milliseconds from the start of the gateway to the request.
    pub at_ms: u64,
    /// The API. Absent for a request of no known API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<Api>,
    /// The HTTP method, such as `POST`.
    pub method: String,
    /// The path, including the query. A key in the query is redacted.
    pub path: String,
    /// The model that was asked for, and the one that answered.
    #[serde(default)]
    pub model: Models,
    /// The HTTP status of the answer. Absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of the request, without its content encoding: JSON, or its text if it is not JSON. Null if it is empty.
    pub request: Value,
    /// The body of the answer: JSON, or its text if it is not JSON. A stream is stored as the response that the service
    /// would have sent without streaming. Null if it is empty.
    pub response: Value,
    /// The parts of the answer in the order received: milliseconds from the start of the gateway, and bytes.
    #[serde(default)]
    pub stream: Vec<(u64, u64)>,
    /// The tokens that the service reported. Absent if it reported none, and for an answer with an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The reason why the exchange failed, or why its request or answer could not be read. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// The source of the answer.
    pub source: Source,
    /// The number of the cassette's entry that was played.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<u64>,
    /// Headers of the answer that influence how an agent continues, such as `retry-after`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The turn that the script played, if the model is scripted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<ScriptLine>,
}

/// The headers of an answer that influence how an agent continues.
pub const KEPT_HEADERS: [&str; 3] = ["retry-after", "retry-after-ms", "x-should-retry"];

/// The model that a request asked for, and the one that answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Models {
    /// The model that the agent asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    /// The model that answered, as the service reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered: Option<String>,
}

/// The source of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Source {
    /// The model's service, to which requests are sent on.
    Upstream,
    /// A cassette: the answers of an earlier recording.
    Cassette,
    /// A scripted model: the answers that a file describes.
    Script,
}

word!(Source);

/// A failure of an exchange.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failure {
    /// The kind of failure.
    pub kind: FailureKind,
    /// The text of the error: that of the service, or the gateway's reason. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The event with which the service ended a stream before the answer was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<Value>,
}

/// The kinds of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum FailureKind {
    /// The answer ended before it was complete.
    Cut,
    /// The agent closed the connection before the answer was complete.
    Closed,
    /// The service answered with an error.
    Service,
    /// The service could not be reached.
    Unreachable,
    /// The user has no key for the service.
    Key,
    /// The cassette has no entry for the request.
    Miss,
    /// The cassette has no entry for the request, which the harness names as outside the conversation.
    Aside,
    /// The request named another model than the run requests.
    Model,
    /// A limit of the case was exceeded before the request.
    Limit,
    /// The request or the answer could not be read, or was too large.
    Malformed,
    /// The content encoding of the request or of the answer could not be undone.
    Encoding,
}

word!(FailureKind);

impl Failure {
    pub fn of(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: Some(message.into()), event: None }
    }
}

impl Exchange {
    /// Returns true if the request is of a known API and was answered with a status from 200 to 299.
    pub fn is_answered(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status)) && self.api.is_some()
    }

    /// Returns the time from the request to the first and to the last part of the answer, in milliseconds.
    pub fn times(&self) -> Option<(u64, u64)> {
        let since = |part: &(u64, u64)| part.0.saturating_sub(self.at_ms);
        Some((self.stream.first().map(since)?, self.stream.last().map(since)?))
    }
}

/// Returns the path with the secret values of its query redacted.
pub fn without_key(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let parts = query.split('&').map(|part| match part.split_once('=') {
        Some((name, _)) if crate::secrets::looks_secret(name) => format!("{name}=[redacted]"),
        _ => part.to_owned(),
    });
    format!("{path}?{}", parts.collect::<Vec<_>>().join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_query_is_redacted() {
        assert_eq!(without_key("/v1beta/models?key=AIza-secret&alt=sse"), "/v1beta/models?key=[redacted]&alt=sse");
        assert_eq!(without_key("/v1/messages?beta=true"), "/v1/messages?beta=true");
    }
}
