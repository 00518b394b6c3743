//! Streamed answers: the form of an event, and a body that may be cut in the middle.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use futures_core::Stream;
use serde_json::Value;
use tokio::sync::mpsc;

/// Returns a server-sent event with a name.
pub(super) fn named_event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Returns a server-sent event without a name.
pub(super) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Returns a body of these pieces, each sent separately. With `cut`, the connection breaks after the last.
pub(super) fn body(pieces: Vec<String>, cut: bool) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for piece in pieces {
            if sender.send(Ok(Bytes::from(piece))).await.is_err() {
                return;
            }
        }
        if cut {
            // The pieces must be sent before the connection ends.
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let broken = io::Error::new(io::ErrorKind::ConnectionReset, "cut by the script");
            // An error means that the receiver has already disconnected.
            let _ = sender.send(Err(broken)).await;
        }
    });
    Body::from_stream(Pieces(receiver))
}

struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
