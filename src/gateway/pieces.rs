//! The bytes of an answer that the gateway itself makes: in pieces, at the pace of a recording, and cut where the recording
//! was cut.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use futures_core::Stream;
use tokio::sync::mpsc;

use super::tee::{BoxError, Source};

/// The pieces of an answer.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The pieces, each sent on its own.
    pub(super) all: Vec<String>,
    /// True if the connection breaks after the last piece.
    pub(super) cut: bool,
    /// The pause before the first piece, and the time from the first to the last.
    pub(super) pace: (Duration, Duration),
}

impl Pieces {
    pub(super) fn bytes(bytes: Bytes) -> Source {
        Box::pin(Once(Some(Ok(bytes))))
    }

    /// Returns an answer that breaks off at once.
    pub(super) fn broken(error: BoxError) -> Source {
        Box::pin(Once(Some(Err(error))))
    }

    /// Returns the bytes as they are due.
    pub(super) fn source(self) -> Source {
        if !self.cut && self.pace == (Duration::ZERO, Duration::ZERO) {
            return Box::pin(Ready(self.all.into_iter()));
        }
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(self.send(sender));
        Box::pin(Paced(receiver))
    }

    async fn send(self, sender: mpsc::Sender<Result<Bytes, BoxError>>) {
        let Self { all, cut, pace: (first, rest) } = self;
        // An agent that has gone away is not waited for.
        let begun = Instant::now();
        let wait = async |until: Duration| {
            tokio::select! {
                () = tokio::time::sleep(until.saturating_sub(begun.elapsed())) => true,
                () = sender.closed() => false,
            }
        };
        // An answer of one piece is there when its last part came.
        if !wait(if all.len() == 1 { first.saturating_add(rest) } else { first }).await {
            return;
        }
        let gaps = u32::try_from(all.len().saturating_sub(1)).unwrap_or(u32::MAX).max(1);
        for (at, piece) in (0..=gaps).zip(all) {
            // The time of each piece is counted from the beginning, so that short pauses do not add up to a longer one.
            if at > 0
                && !rest.is_zero()
                && !wait(first.saturating_add(rest.mul_f64(f64::from(at) / f64::from(gaps)))).await
            {
                return;
            }
            if sender.send(Ok(Bytes::from(piece))).await.is_err() {
                return;
            }
        }
        if cut {
            // The pieces must be sent before the connection ends.
            tokio::time::sleep(Duration::from_millis(50)).await;
            let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the connection was cut");
            // An error means that the receiver has already disconnected.
            let _ = sender.send(Err(broken.into())).await;
        }
    }
}

struct Once(Option<Result<Bytes, BoxError>>);

impl Stream for Once {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.take())
    }
}

struct Ready(std::vec::IntoIter<String>);

impl Stream for Ready {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Bytes::from(piece))))
    }
}

struct Paced(mpsc::Receiver<Result<Bytes, BoxError>>);

impl Stream for Paced {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
