//! A request that is being answered. It is logged when its answer has ended, or when it is dropped before.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use super::api::{Api, Join, StreamError};
use super::encoding::{self, MAX_DECODED_BYTES, Obstacle, is_text};
use super::exchange::{Exchange, Failure, FailureKind};
use super::log::Log;

/// A request that is being answered.
pub(super) struct Pending {
    log: Arc<Log>,
    begun: Instant,
    /// Absent once it is logged.
    exchange: Option<Exchange>,
    /// The reason why the request could not be read, although it goes on to the service.
    unread: Option<String>,
}

/// The end of an answer.
pub(super) enum End {
    /// All bytes were sent.
    Whole,
    /// The answer broke off.
    Cut(Option<String>),
    /// The agent closed the connection.
    Closed,
}

/// The content of an answer.
pub(super) enum Content {
    /// The answer is known as JSON, whatever was sent.
    Known(Value),
    /// The bytes that were sent, with their content type.
    Sent {
        /// The content type.
        kind: String,
        /// The content encoding. Empty if there is none.
        encoding: String,
        bytes: Vec<u8>,
    },
}

/// The state of an answer after its response was read.
struct ReadAnswer {
    /// True if the response is complete.
    complete: bool,
    /// The reason why the content encoding was not undone to the end.
    failed: Option<Failure>,
}

impl Pending {
    /// Begins an exchange.
    pub(super) fn new(log: Arc<Log>, exchange: Exchange) -> Self {
        Self { log, begun: Instant::now(), exchange: Some(exchange), unread: None }
    }

    /// Returns the exchange, to add to it.
    pub(super) fn exchange(&mut self) -> Option<&mut Exchange> {
        self.exchange.as_mut()
    }

    /// Records that the request goes on to the service although its content encoding could not be undone.
    pub(super) fn passes_unread(&mut self, why: String) {
        self.unread = Some(why);
    }

    /// Records that the request went on without these headers or parts of its query, because they are keys of another service.
    pub(super) fn leaves_out(&self, names: &[String]) {
        if !names.is_empty() {
            self.log.leave_out(names);
        }
    }

    /// Records that a part of the answer was sent.
    pub(super) fn part(&mut self, bytes: usize) {
        let passed = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let Some(exchange) = &mut self.exchange {
            exchange.stream.push((exchange.at_ms.saturating_add(passed), bytes as u64));
        }
    }

    /// Records an answer that was received as a whole, in case the agent does not read it.
    pub(super) fn received(&mut self, kind: &str, encoding: &str, bytes: &[u8]) {
        if let Some(exchange) = &mut self.exchange {
            let (kind, encoding) = (kind.to_owned(), encoding.to_owned());
            let read = set_response(exchange, Content::Sent { kind, encoding, bytes: bytes.to_vec() });
            if let Some(failed) = read.failed.filter(|_| !succeeded(exchange)) {
                exchange.error.get_or_insert(Failure { kind: FailureKind::Service, ..failed });
            }
            if let Some(api) = exchange.api {
                read_answer(exchange, api);
            }
        }
    }

    /// Ends the exchange and logs it.
    pub(super) fn finish(&mut self, end: End, content: Content) {
        let Some(mut exchange) = self.exchange.take() else { return };
        let known = matches!(content, Content::Known(_));
        let ReadAnswer { complete, failed: undecoded } = set_response(&mut exchange, content);
        let failed = match end {
            End::Whole if exchange.error.is_some() || !succeeded(&exchange) => None,
            End::Whole if complete || undecoded.is_some() => undecoded,
            End::Whole => Some(Failure { kind: FailureKind::Cut, message: None, event: None }),
            End::Cut(message) => Some(Failure { kind: FailureKind::Cut, message, event: None }),
            // An agent may stop reading after the last event.
            End::Closed if complete && !known => None,
            End::Closed => Some(Failure { kind: FailureKind::Closed, message: None, event: None }),
        };
        exchange.error = exchange.error.take().or(failed);
        if let Some(api) = exchange.api {
            read_answer(&mut exchange, api);
        }
        let unread = self.unread.take().filter(|_| exchange.error.is_none());
        exchange.error = exchange.error.take().or(unread.map(|why| Failure::of(FailureKind::Encoding, why)));
        self.log.end(&exchange);
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let response = self.exchange.as_mut().map(|exchange| exchange.response.take()).unwrap_or_default();
        self.finish(End::Closed, Content::Known(response));
    }
}

fn succeeded(exchange: &Exchange) -> bool {
    exchange.status.is_some_and(|status| status < 400)
}

/// Sets the response of an exchange from the bytes that were received, with its content encoding undone.
fn set_response(exchange: &mut Exchange, content: Content) -> ReadAnswer {
    let (kind, encoding, bytes) = match content {
        Content::Known(value) => {
            let complete = !value.is_null();
            exchange.response = value;
            return ReadAnswer { complete, failed: None };
        }
        Content::Sent { kind, encoding, bytes } => (kind, encoding, bytes),
    };
    if encoding.is_empty() || bytes.is_empty() {
        return ReadAnswer { complete: set_body(exchange, &kind, &bytes), failed: None };
    }
    // Some services name what is no compression, such as `utf-8`, or compress nothing after all.
    if is_text(&bytes) {
        let complete = set_body(exchange, &kind, &bytes);
        // The encoding may be the reason why a text is no JSON.
        let is_unread = !complete && exchange.response.is_string();
        let obstacle = is_unread.then(|| Obstacle::Damaged("it is text, but not JSON".to_owned()));
        return ReadAnswer { complete, failed: obstacle.map(|it| encoding_failure(&encoding, it)) };
    }
    let (plain, obstacle) = encoding::undone(&encoding, &bytes, MAX_DECODED_BYTES);
    if plain.is_empty() && obstacle.is_some() {
        // Compressed bytes are no text, and would hide secrets.
        exchange.response = Value::from(format!("({} bytes)", bytes.len()));
        return ReadAnswer { complete: false, failed: obstacle.map(|it| encoding_failure(&encoding, it)) };
    }
    let complete = set_body(exchange, &kind, &plain);
    // Some services end the connection before the trailer of the encoding. A text does not show that it is whole.
    let is_whole = complete && !exchange.response.is_string();
    let obstacle = obstacle.filter(|it| !(is_whole && *it == Obstacle::EndsEarly));
    ReadAnswer { complete, failed: obstacle.map(|it| encoding_failure(&encoding, it)) }
}

/// Returns the failure of an answer whose content encoding was not undone to the end.
fn encoding_failure(encoding: &str, obstacle: Obstacle) -> Failure {
    match obstacle {
        Obstacle::Unknown => Failure::of(
            FailureKind::Encoding,
            format!("the content encoding `{encoding}` of the answer is unknown; known are `gzip` and `deflate`"),
        ),
        Obstacle::Damaged(why) => Failure::of(
            FailureKind::Encoding,
            format!("the answer does not have its content encoding `{encoding}`: {why}"),
        ),
        Obstacle::EndsEarly => {
            Failure::of(FailureKind::Cut, format!("the content encoding `{encoding}` of the answer ends too early"))
        }
        Obstacle::TooLarge => Failure::of(
            FailureKind::Malformed,
            format!("the answer is larger than {MAX_DECODED_BYTES} bytes when its content encoding is undone"),
        ),
    }
}

/// Sets the response from the bytes of a body without content encoding. Returns true if it is complete.
fn set_body(exchange: &mut Exchange, kind: &str, bytes: &[u8]) -> bool {
    let streamed = kind.to_ascii_lowercase().contains("event-stream") || streams_a_list(exchange);
    if let (Some(api), true, true) = (exchange.api, streamed, succeeded(exchange)) {
        let mut join = Join::new(api, kind);
        join.push(bytes);
        let joined = join.finish();
        exchange.response = joined.response.unwrap_or_default();
        exchange.error = exchange.error.take().or(joined.error.map(|error| stream_failure(api, &error)));
        return joined.complete;
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => {
            exchange.response = value;
            true
        }
        // An answer without a body is complete, and so is a text of a service that does not answer in JSON.
        Err(_) => {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let is_json = kind.contains("json");
            exchange.response = if text.is_empty() { Value::Null } else { Value::String(text) };
            bytes.is_empty() || !is_json
        }
    }
}

fn streams_a_list(exchange: &Exchange) -> bool {
    exchange.api == Some(Api::Gemini) && exchange.path.contains(":streamGenerateContent")
}

fn stream_failure(api: Api, error: &StreamError) -> Failure {
    match error {
        StreamError::Sent(body) => {
            let message = api.error_of(body).map_or_else(|| body.to_string(), |error| error.message);
            Failure { event: Some(body.clone()), ..Failure::of(FailureKind::Service, message) }
        }
        StreamError::TooLarge(most) => {
            Failure::of(FailureKind::Malformed, format!("the stream is larger than {most} bytes"))
        }
        StreamError::Unreadable(why) => {
            Failure::of(FailureKind::Malformed, format!("an event of the stream is not JSON: {why}"))
        }
    }
}

/// Reads model, usage and error of an answer.
fn read_answer(exchange: &mut Exchange, api: Api) {
    if succeeded(exchange) {
        exchange.model.answered = exchange.model.answered.take().or_else(|| api.model_answered(&exchange.response));
        exchange.usage = exchange.usage.take().or_else(|| api.usage(&exchange.response));
        return;
    }
    if exchange.status.is_some() && exchange.error.is_none() {
        let message = match (&exchange.response, api.error_of(&exchange.response)) {
            (_, Some(error)) => Some(error.message),
            (Value::String(text), None) => Some(crate::text::first_chars(text, 500).to_owned()),
            _ => None,
        };
        exchange.error = Some(Failure { kind: FailureKind::Service, message, event: None });
    }
}
