//! Joins the events of a streamed response to the response that the service would have sent without streaming.

use serde_json::Value;

use super::Api;
use super::sse::{Elements, Events};

/// The maximum size of a stream in bytes. The joined response is never larger than the stream.
const LIMIT: usize = 256 << 20;

/// A joiner of a streamed response, which takes its bytes as they come.
pub struct Join {
    form: Form,
    found: Content,
    received: usize,
    limit: usize,
}

/// A joined response.
#[derive(Debug, Clone, PartialEq)]
pub struct Joined {
    /// The response in the form without streaming, as far as it was received.
    pub response: Option<Value>,
    /// True if the stream reached its end by the rules of the API. The rules of Chat let a stream end without `[DONE]`,
    /// so a connection that broke after the last content and before the usage is not noticed here.
    pub complete: bool,
    /// The error in the stream. A Responses stream that ends with `response.failed` has no error here: the error is in
    /// the response.
    pub error: Option<StreamError>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum StreamError {
    /// The service sent an error, in its JSON form.
    Sent(Value),
    /// The stream is larger than the maximum in bytes. The rest was ignored.
    TooLarge(usize),
    /// An event is not JSON. It was ignored.
    Unreadable(String),
}

/// A joiner of one API's events.
pub(super) trait Joiner: Send {
    /// Adds an event. Returns the event if it is an error.
    fn add(&mut self, event: Value) -> Option<Value>;

    /// Adds the mark `[DONE]`.
    fn done(&mut self) {}

    /// Returns the response, and true if it is complete.
    fn finish(self: Box<Self>) -> (Option<Value>, bool);
}

enum Form {
    /// Not known before the first character.
    Unknown,
    Events(Events),
    Json(Elements),
}

struct Content {
    events: Box<dyn Joiner>,
    whole: Option<Value>,
    error: Option<StreamError>,
}

impl Join {
    /// Creates a joiner for a response with this content type.
    pub fn new(api: Api, content_type: &str) -> Self {
        Self::with_limit(api, content_type, LIMIT)
    }

    /// Creates a joiner with a maximum size of the stream, in bytes.
    fn with_limit(api: Api, content_type: &str, limit: usize) -> Self {
        let is_events = content_type.to_ascii_lowercase().contains("event-stream");
        let form = if is_events { Form::Events(Events::default()) } else { Form::Unknown };
        Self { form, found: Content { events: api.joiner(), whole: None, error: None }, received: 0, limit }
    }

    /// Adds the next bytes of the answer. They may end anywhere, also within a character.
    pub fn push(&mut self, bytes: &[u8]) {
        self.received = self.received.saturating_add(bytes.len());
        if self.received > self.limit {
            self.found.error = Some(StreamError::TooLarge(self.limit));
            return;
        }
        if matches!(self.form, Form::Unknown) {
            match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'{' | b'[') => self.form = Form::Json(Elements::default()),
                Some(_) => self.form = Form::Events(Events::default()),
                None => return,
            }
        }
        let found = &mut self.found;
        match &mut self.form {
            Form::Unknown => {}
            Form::Events(events) => events.push(bytes, &mut |data| found.data(data)),
            Form::Json(elements) => {
                let mut all = Vec::new();
                elements.push(bytes, &mut |element| all.push(element.to_owned()));
                all.iter().for_each(|element| found.element(element, elements.is_list));
            }
        }
    }

    /// Ends the stream and returns the joined response.
    pub fn finish(mut self) -> Joined {
        let is_full = matches!(self.found.error, Some(StreamError::TooLarge(_)));
        if let Form::Events(events) = self.form
            && !is_full
        {
            // The last event may be cut, and is then no JSON.
            let found = &mut self.found;
            events.finish(&mut |data| found.last(data));
        }
        let Content { events, whole, error } = self.found;
        let (joined, ended) = events.finish();
        let failed = matches!(error, Some(StreamError::Sent(_) | StreamError::TooLarge(_)));
        let complete = (whole.is_some() || ended) && !failed;
        Joined { response: whole.or(joined), complete, error }
    }
}

impl Content {
    fn data(&mut self, data: &str) {
        if self.read(data) {
            return;
        }
        // Some servers leave out the empty line between events.
        let unread = data.lines().filter(|line| !line.trim().is_empty()).filter(|line| !self.read(line)).count();
        if unread > 0 && self.error.is_none() {
            self.error = Some(StreamError::Unreadable(crate::text::first_chars(data, 200).to_owned()));
        }
    }

    fn last(&mut self, data: &str) {
        if !self.read(data) {
            data.lines().for_each(|line| {
                self.read(line);
            });
        }
    }

    /// Reads the data of one event. Returns false if the data is neither JSON nor `[DONE]`.
    fn read(&mut self, data: &str) -> bool {
        if data.trim() == "[DONE]" {
            self.events.done();
            return true;
        }
        let Ok(event) = serde_json::from_str(data) else { return false };
        self.add(event);
        true
    }

    fn add(&mut self, event: Value) {
        if let Some(error) = self.events.add(event)
            && !matches!(self.error, Some(StreamError::Sent(_)))
        {
            self.error = Some(StreamError::Sent(error));
        }
    }

    fn element(&mut self, element: &str, in_list: bool) {
        match serde_json::from_str::<Value>(element) {
            Ok(element) if in_list => self.add(element),
            Ok(whole) if is_only_error(&whole) => self.error = Some(StreamError::Sent(whole)),
            Ok(whole) => self.whole = Some(whole),
            Err(_) => self.error = Some(StreamError::Unreadable(crate::text::first_chars(element, 200).to_owned())),
        }
    }
}

/// Returns true if a body is an error and not an answer that mentions one.
fn is_only_error(body: &Value) -> bool {
    let has_answer = ["content", "choices", "output", "candidates"].iter().any(|key| body.get(key).is_some());
    !has_answer && body.get("error").is_some_and(|error| !error.is_null())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn joined(content_type: &str, limit: usize, text: &str) -> Joined {
        let mut join = Join::with_limit(Api::OpenaiChat, content_type, limit);
        text.as_bytes().chunks(5).for_each(|bytes| join.push(bytes));
        join.finish()
    }

    const CHUNK: &str = "data: {\"id\": \"c\", \"choices\": []}\n\n";

    #[test]
    fn a_stream_beyond_the_limit_is_not_kept() {
        let text = CHUNK.repeat(3) + "data: [DONE]\n\n";
        assert!(joined("text/event-stream", text.len(), &text).complete);
        let cut = joined("text/event-stream", CHUNK.len() + 1, &text);
        assert_eq!(cut.error, Some(StreamError::TooLarge(CHUNK.len() + 1)));
        assert_eq!((cut.response, cut.complete), (Some(json!({"id": "c", "choices": []})), false));
    }

    #[test]
    fn an_event_that_cannot_be_read_is_reported_and_the_others_are_kept() {
        let joined = joined("text/event-stream", LIMIT, &format!("data: nonsense\n\n{CHUNK}data: [DONE]"));
        assert_eq!(joined.error, Some(StreamError::Unreadable("nonsense".to_owned())));
        assert_eq!((joined.response, joined.complete), (Some(json!({"id": "c", "choices": []})), true));
    }

    #[test]
    fn an_answer_that_is_not_streamed_is_itself() {
        let whole = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0}]});
        for content_type in ["application/json", ""] {
            let joined = joined(content_type, LIMIT, &whole.to_string());
            assert_eq!((joined.response.as_ref(), joined.complete), (Some(&whole), true));
        }
        let error = json!({"error": {"message": "no"}});
        let joined = joined("application/json", LIMIT, &error.to_string());
        assert_eq!((joined.response, joined.complete), (None, false));
        assert_eq!(joined.error, Some(StreamError::Sent(error)));
    }

    #[test]
    fn events_without_an_empty_line_between_them_are_read() {
        let text = format!("{}data: [DONE]\n", CHUNK.trim_end().to_owned() + "\n");
        assert!(joined("text/event-stream", LIMIT, &text).complete);
    }
}
