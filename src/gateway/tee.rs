//! The body of an answer: its bytes go on to the agent as they come, and are kept for the log.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use serde_json::Value;

use super::pending::{Content, End, Pending};

/// The maximum number of bytes of an answer that are kept for the log. All of them go on to the agent.
const MOST: usize = 256 << 20;

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
    bytes: Vec<u8>,
    ended: bool,
}

impl Tee {
    /// Makes the body of an answer. `kind` is its content type.
    pub(super) fn body(source: Source, pending: Pending, known: Option<Value>, kind: &str) -> Body {
        let tee = Self { source, pending, known, kind: kind.to_owned(), bytes: Vec::new(), ended: false };
        Body::from_stream(tee)
    }

    fn end(&mut self, end: End) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let content = match self.known.take() {
            Some(value) => Content::Known(value),
            None => Content::Sent { kind: std::mem::take(&mut self.kind), bytes: std::mem::take(&mut self.bytes) },
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
                if self.known.is_none() && self.bytes.len() + bytes.len() <= MOST {
                    self.bytes.extend_from_slice(&bytes);
                }
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
