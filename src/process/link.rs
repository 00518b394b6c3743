//! The engine's end of the socket to a supervisor: sends the program's streams and commands, and receives
//! reports.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::net::UnixStream;

use crate::supervisor::{Order, Report};
use crate::trace::Exit;

/// The flag that suppresses SIGPIPE: a supervisor that is gone must not end the engine. On systems without the flag, the
/// runtime of Rust already ignores the signal.
#[cfg(target_os = "linux")]
const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const NO_SIGNAL: SendFlags = SendFlags::empty();

/// The link to a supervisor, with everything that the supervisor has reported.
pub(super) struct Link {
    stream: UnixStream,
    heard: Vec<u8>,
    /// True if the program may have been started.
    pub starting: bool,
    /// The result of the program's start: an error is the system's error number.
    pub started: Option<Result<(), i32>>,
    /// True if the supervisor adopts the program's orphans.
    pub reaper: bool,
    /// The exit of the program.
    pub exit: Option<Exit>,
    /// True if nothing is left of the program's group.
    pub empty: bool,
    /// The number of processes that the supervisor ended, once nothing is left at all.
    pub done: Option<usize>,
    /// True if nothing is left of the program and the supervisor can start another one.
    pub free: bool,
    /// True if the supervisor is gone.
    pub closed: bool,
}

impl Link {
    /// Makes a link, and the end of it that becomes the supervisor's standard input. The program's streams are sent with
    /// the message.
    pub fn new(streams: [BorrowedFd<'_>; 3], message: &[u8]) -> io::Result<(Self, OwnedFd)> {
        let (own, other) = StdStream::pair()?;
        own.set_nonblocking(true)?;
        let link = Self::over(UnixStream::from_std(own)?);
        link.begin(streams, message)?;
        Ok((link, other.into()))
    }

    fn over(stream: UnixStream) -> Self {
        Self {
            stream,
            heard: Vec::new(),
            starting: false,
            started: None,
            reaper: true,
            exit: None,
            empty: false,
            done: None,
            free: false,
            closed: false,
        }
    }

    /// Returns the link to the same supervisor for another program.
    pub fn again(self) -> Self {
        Self { closed: self.closed, reaper: self.reaper, ..Self::over(self.stream) }
    }

    /// Sends the program's streams with a message.
    pub fn begin(&self, streams: [BorrowedFd<'_>; 3], message: &[u8]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&streams));
        let sent = sendmsg(&self.stream, &[IoSlice::new(message)], &mut control, NO_SIGNAL)?;
        if sent < message.len() {
            return Err(io::Error::new(
                io::ErrorKind::WouldBlock,
                "only a part of a message could be written to the socket of a supervisor",
            ));
        }
        Ok(())
    }

    /// Returns true if a process of the program's group may be alive.
    pub fn group_is_alive(&self) -> bool {
        !(self.empty || self.done.is_some() || self.closed)
    }

    /// Sends an order. Returns true if the supervisor is still connected.
    pub fn order(&self, order: Order) -> bool {
        !self.closed && rustix::net::send(&self.stream, &[order.byte()], NO_SIGNAL).is_ok()
    }

    /// Waits for the next reports, or for the end of the supervisor. May be dropped before it is done.
    pub async fn hear(&mut self) {
        if self.closed {
            return;
        }
        if self.stream.readable().await.is_err() {
            self.closed = true;
            return;
        }
        let mut bytes = [0; 256];
        match self.stream.try_read(&mut bytes) {
            Ok(0) => self.closed = true,
            Ok(n) => self.take(&bytes[..n]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.closed = true,
        }
    }

    /// Reads the reports that have arrived.
    pub fn catch_up(&mut self) {
        self.hear_until(Instant::now(), |_| false);
    }

    /// Waits for reports without a runtime, for code that must not be interrupted before they arrive.
    pub fn hear_until(&mut self, deadline: Instant, enough: impl Fn(&Self) -> bool) {
        while !self.closed && !enough(self) {
            let mut bytes = [0; 256];
            match rustix::io::read(&self.stream, &mut bytes) {
                Ok(0) => self.closed = true,
                Ok(n) => self.take(&bytes[..n]),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return;
                    }
                    let limit = Timespec::try_from(left.min(Duration::from_secs(60))).ok();
                    let _ = poll(&mut [PollFd::new(&self.stream.as_fd(), PollFlags::IN)], limit.as_ref());
                }
                Err(_) => self.closed = true,
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        self.heard.extend_from_slice(bytes);
        while let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.heard.drain(..=end).collect();
            match Report::of(String::from_utf8_lossy(&line).trim_end()) {
                Some(Report::Starting) => self.starting = true,
                Some(Report::Started { reaper }) => (self.started, self.reaper) = (Some(Ok(())), reaper),
                Some(Report::Failed(error)) => self.started = Some(Err(error)),
                Some(Report::Exited(exit)) => self.exit = Some(exit),
                Some(Report::Empty) => self.empty = true,
                Some(Report::Done(ended)) => self.done = Some(ended),
                Some(Report::Free) => self.free = true,
                None => {}
            }
        }
    }
}
