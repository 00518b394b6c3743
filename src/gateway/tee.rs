//! The body of an answer: its bytes go on to the agent as they come, and are kept for the log.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use serde_json::Value;

use super::exchange::{Failure, FailureKind};
use super::pending::{Content, End, Pending};

/// The maximum number of bytes of an answer that are kept for the log. All of them go on to the agent.
const MAX_LOGGED_BYTES: usize = 256 << 20;

/// The bytes of an answer.
pub(super) type Source = Pin<Box<dyn Stream<Item = Result<Bytes, BoxError>> + Send>>;

/// An error of a body.
pub(super) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body that logs its exchange when it ends.
pub(super) struct Tee {
    source: Source,
    pending: Pending,
    /// The answer as JSON, if it is known before it is sent.
    known: Option<Value>,
    kind: String,
    /// The content encoding. Empty if there is none.
    encoding: String,
    bytes: Vec<u8>,
    /// The maximum number of bytes that are kept.
    most: usize,
    /// True if a part did not fit: `bytes` are the beginning of the answer.
    is_full: bool,
    ended: bool,
}

impl Tee {
    /// Makes the body of an answer. `kind` is its content type.
    pub(super) fn body(source: Source, pending: Pending, known: Option<Value>, kind: &str) -> Body {
        let mut tee = Self::new(MAX_LOGGED_BYTES, source, pending, kind);
        tee.known = known;
        Body::from_stream(tee)
    }

    /// Makes the body of an answer of a service, which may have a content encoding. Its bytes go on as they came; the log
    /// has the answer without its encoding.
    pub(super) fn encoded(source: Source, pending: Pending, kind: &str, encoding: String) -> Body {
        let mut tee = Self::new(MAX_LOGGED_BYTES, source, pending, kind);
        tee.encoding = encoding;
        Body::from_stream(tee)
    }

    fn new(most: usize, source: Source, pending: Pending, kind: &str) -> Self {
        Self {
            source,
            pending,
            known: None,
            kind: kind.to_owned(),
            encoding: String::new(),
            bytes: Vec::new(),
            most,
            is_full: false,
            ended: false,
        }
    }

    /// Keeps a part of the answer for the log. Nothing is kept after a part that does not fit, because a text with a gap
    /// may look whole.
    fn keep(&mut self, part: &[u8]) {
        if self.known.is_some() || self.is_full {
            return;
        }
        if self.bytes.len() + part.len() > self.most {
            self.is_full = true;
            let message = format!("the answer is larger than {} bytes", self.most);
            if let Some(exchange) = self.pending.exchange() {
                exchange.error = Some(Failure::of(FailureKind::Malformed, message));
            }
            return;
        }
        self.bytes.extend_from_slice(part);
    }

    fn end(&mut self, end: End) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let content = match self.known.take() {
            Some(value) => Content::Known(value),
            None => Content::Sent {
                kind: std::mem::take(&mut self.kind),
                encoding: std::mem::take(&mut self.encoding),
                bytes: std::mem::take(&mut self.bytes),
            },
        };
        self.pending.finish(end, content);
    }
}

impl Stream for Tee {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.source.as_mut().poll_next(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(bytes))) => {
                self.pending.part(bytes.len());
                self.keep(&bytes);
                Poll::Ready(Some(Ok(bytes)))
            }
            Poll::Ready(Some(Err(error))) => {
                let text = super::upstream::causes(error.as_ref());
                self.end(End::Cut(Some(text)));
                Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::ConnectionReset, error))))
            }
            Poll::Ready(None) => {
                self.end(End::Whole);
                Poll::Ready(None)
            }
        }
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.end(End::Closed);
    }
}

/// The bytes of a service's answer.
pub(super) struct Received<S>(pub(super) S);

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> Stream for Received<S> {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut self.0).poll_next(context).map(|next| next.map(|bytes| bytes.map_err(Into::into)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Arc;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use serde_json::json;

    use super::*;
    use crate::gateway::log::Log;
    use crate::gateway::log::tests::{SharedBuffer, exchange};
    use crate::gateway::pieces::Pieces;
    use crate::secrets::Masker;

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_kept_up_to_the_first_gap() {
        let kept = SharedBuffer::default();
        let log = Arc::new(Log::new(Some(Box::new(kept.clone())), Masker::default()));
        let pending = Pending::new(log.clone(), exchange(log.begin()));
        let pieces = Pieces { all: ["[1", ",2222222222", "]"].map(str::to_owned).to_vec(), ..Pieces::default() };
        let body = Body::from_stream(Tee::new(4, pieces.source(), pending, "application/json"));
        let sent = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        assert_eq!(sent, "[1,2222222222]");
        let line = &kept.lines()[0];
        assert_eq!((&line["response"], &line["error"]["kind"]), (&json!("[1"), &json!("malformed")), "{line}");
    }

    #[tokio::test]
    async fn an_encoded_answer_goes_on_as_it_came_and_is_kept_without_its_encoding() {
        let text = json!({"a": "b"}).to_string();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.flush().unwrap();
        let early = gzip.get_ref().clone();
        let whole = gzip.finish().unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(&text.as_bytes()[..8]).unwrap();
        gzip.flush().unwrap();
        let cut = gzip.get_ref().clone();
        let more = [&whole[..], &[0; 16]].concat();
        let repeated = text.repeat(9);
        for (encoding, bytes, response, error) in [
            ("gzip", &whole[..], json!({"a": "b"}), Value::Null),
            // The answer is whole without the trailer of its encoding.
            ("gzip", &early[..], json!({"a": "b"}), Value::Null),
            ("gzip", &cut[..], json!(text[..8]), json!("cut")),
            ("gzip", &more[..], json!({"a": "b"}), Value::Null),
            ("none", text.as_bytes(), json!({"a": "b"}), Value::Null),
            ("gzip", text.as_bytes(), json!({"a": "b"}), Value::Null),
            ("deflate", text.as_bytes(), json!({"a": "b"}), Value::Null),
            ("br", &whole[..], json!(format!("({} bytes)", whole.len())), json!("encoding")),
            ("gzip", repeated.as_bytes(), json!(repeated), json!("encoding")),
        ] {
            let kept = SharedBuffer::default();
            let log = Arc::new(Log::new(Some(Box::new(kept.clone())), Masker::default()));
            let pending = Pending::new(log.clone(), exchange(log.begin()));
            let source = Pieces::bytes(Bytes::copy_from_slice(bytes));
            let body = Tee::encoded(source, pending, "application/json", encoding.to_owned());
            assert_eq!(axum::body::to_bytes(body, usize::MAX).await.unwrap(), bytes);
            let line = &kept.lines()[0];
            assert_eq!((&line["response"], &line["error"]["kind"]), (&response, &error), "{line}");
        }
    }
}
