//! The output of a program: what it writes while it runs, while it is ended, and what is left in its pipes after its exit.

use std::collections::VecDeque;
use std::future::pending;
use std::pin::pin;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use super::read_buffer::ReadBuffer;
use crate::engine_clock;

/// The time for which a pipe may be silent after its program has exited. Processes that the program started may keep the
/// pipe open.
const SILENCE: Duration = Duration::from_millis(150);
/// The maximum time for reading what is left in a pipe. Processes that outlive their program may go on writing.
const REST: Duration = Duration::from_millis(400);

/// The engine's ends of the pipes to which a program writes. An error of reading counts as the end of the stream.
#[derive(Debug, Default)]
pub struct Output {
    stdout: Pipe,
    stderr: Pipe,
}

/// An output stream of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: VecDeque<u8>,
    /// The maximum number of bytes.
    pub most: usize,
}

/// The engine's end of a pipe, until the stream ends.
#[derive(Debug, Default)]
struct Pipe {
    end: Option<Receiver>,
    buffer: ReadBuffer,
}

impl Output {
    pub(super) fn new(stdout: Receiver, stderr: Option<Receiver>) -> Self {
        let pipe = |end| Pipe { end, buffer: ReadBuffer::default() };
        Self { stdout: pipe(Some(stdout)), stderr: pipe(stderr) }
    }

    /// Returns true if the stream has not ended.
    pub fn is_open(&self, stream: Stream) -> bool {
        match stream {
            Stream::Stdout => self.stdout.end.is_some(),
            Stream::Stderr => self.stderr.end.is_some(),
        }
    }

    /// Waits for the next bytes of a stream, or for its end, which is `None` and comes once. Waits for ever if both streams
    /// have ended. Nothing is lost if the wait is given up.
    pub async fn next(&mut self) -> (Stream, Option<&[u8]>) {
        // The pipes are polled in random order: one that is never empty must not hide the other.
        let (stream, length) = tokio::select! {
            length = self.stdout.read() => (Stream::Stdout, length),
            length = self.stderr.read() => (Stream::Stderr, length),
        };
        let buffer = &mut self.pipe(stream).buffer;
        (stream, length.map(|length| buffer.read(length)))
    }

    /// Reads both streams until something else is done, and returns its result: a full pipe would keep the program from
    /// ending.
    pub async fn during<T>(&mut self, other: impl Future<Output = T>, mut each: impl FnMut(Stream, &[u8])) -> T {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                done = &mut other => return done,
                (stream, bytes) = self.next() => if let Some(bytes) = bytes {
                    each(stream, bytes);
                },
            }
        }
    }

    /// Reads what is left in a pipe after the exit of its program, until the stream ends, is silent for [`SILENCE`], or the
    /// time [`REST`] is over.
    pub async fn rest(&mut self, stream: Stream, mut each: impl FnMut(&[u8])) {
        let pipe = self.pipe(stream);
        let until = engine_clock::now() + REST;
        while pipe.end.is_some() && engine_clock::now() < until {
            match engine_clock::timeout(SILENCE, pipe.read()).await {
                Some(Some(length)) => each(pipe.buffer.read(length)),
                Some(None) | None => return,
            }
        }
    }

    fn pipe(&mut self, stream: Stream) -> &mut Pipe {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

impl Pipe {
    /// Reads once into the buffer and returns the number of bytes, or `None` if the stream has just ended. Waits for ever
    /// if it ended before.
    async fn read(&mut self) -> Option<usize> {
        let Some(end) = &mut self.end else { return pending().await };
        let length = end.read(self.buffer.space()).await.ok().filter(|length| *length > 0);
        if length.is_none() {
            self.end = None;
        }
        length
    }
}

impl Tail {
    /// Makes a tail of at most this many bytes.
    pub fn of(most: usize) -> Self {
        Self { bytes: VecDeque::new(), most }
    }

    /// Adds bytes, and returns true if earlier ones were dropped for them.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(self.most);
        self.bytes.drain(..over);
        over > 0
    }

    /// Returns the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes.iter().copied().collect()
    }
}
