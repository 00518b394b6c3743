//! The body of an answer while it is written: pieces of limited size, so that no document is held in memory.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The size of a piece, in bytes.
const PIECE: usize = 64 << 10;
/// The number of pieces that wait for the reader.
const WAITING: usize = 4;
/// The maximum time to wait for a reader that reads nothing.
const STALLED: Duration = Duration::from_secs(60);

/// The end that is written to, by a thread that may wait.
pub struct Pipe {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
    runtime: Handle,
}

/// Returns both ends. Called within a runtime.
pub fn new() -> (Pipe, Body) {
    let (pieces, received) = mpsc::channel(WAITING);
    (Pipe { pieces, piece: Vec::new(), runtime: Handle::current() }, Body::from_stream(Received(received)))
}

impl Pipe {
    /// Ends the document. If it is not complete, the connection is broken, so that the reader does not take it for one
    /// that is.
    pub fn end(mut self, written: io::Result<()>) {
        if let Err(error) = written.and_then(|()| self.flush()) {
            // A reader that is gone needs no answer.
            let _ = self.send(Err(error));
        }
    }

    fn send(&self, piece: io::Result<Bytes>) -> io::Result<()> {
        let gone = |why: &str| io::Error::new(io::ErrorKind::BrokenPipe, why);
        match self.runtime.block_on(timeout(STALLED, self.pieces.send(piece))) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(gone("the reader is gone")),
            Err(_) => Err(gone("the reader takes nothing")),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::take(&mut self.piece);
        self.send(Ok(piece.into()))
    }
}

/// The receiving end, as a stream of pieces.
struct Received(mpsc::Receiver<io::Result<Bytes>>);

impl Stream for Received {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}
