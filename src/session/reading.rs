//! Reads the output of a session's process: split into lines, redacted, logged, translated, and queued for the
//! driver.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::sleep;

use super::log::{Weight, Written};
use super::read_buffer::ReadBuffer;
use super::{LimitElsewhere, Process, ReceivedLine, Session};
use crate::engine_clock::{self, timeout};
use crate::lines::Line;
use crate::process::REST;
use crate::trace::Exit;
use crate::wire::{Dir, EngineLine, WireLine};

/// The time for which a pipe may be silent after the agent has exited. Processes that the agent started may keep it
/// open.
const SILENCE: Duration = Duration::from_millis(150);

impl Session {
    /// Waits at most this long for something to read. Returns false if nothing more can come.
    pub(super) async fn read_some(&mut self, within: Duration) -> bool {
        let Some(process) = &self.process else { return false };
        if process.stdout.is_none() && process.stderr.is_none() && self.exit.is_some() {
            return false;
        }
        self.read_once(Some(engine_clock::now() + within)).await;
        true
    }

    /// Reads once from the pipe that has data, or takes the exit of the agent or of a terminal's command, or waits
    /// until a timer is due.
    pub(super) async fn read_once(&mut self, deadline: Option<Instant>) {
        let wake = self.wake(deadline).saturating_duration_since(engine_clock::now());
        let Some(process) = &mut self.process else { return };
        let Process { group, stdout, stderr, .. } = process;
        let (mut out, mut err) = (std::mem::take(&mut self.buffers.0), std::mem::take(&mut self.buffers.1));
        enum Got {
            Out(io::Result<usize>),
            Err(io::Result<usize>),
            Exit(Exit),
            Terminal(String),
            Woken,
        }
        let exited = self.exit.is_some();
        let terminals = &mut self.terminals;
        let has_terminals = !terminals.is_empty();
        // The branches are polled in random order: a pipe that is never empty must not hide the other pipe or the
        // agent's exit.
        let got = tokio::select! {
            read = read_from(stdout.as_mut(), out.space()), if stdout.is_some() => Got::Out(read),
            read = read_from(stderr.as_mut(), err.space()), if stderr.is_some() => Got::Err(read),
            exit = group.wait(), if !exited => Got::Exit(exit),
            id = terminals.next_end(), if has_terminals => Got::Terminal(id),
            Ok(()) = self.interrupt.changed(), if self.ended.is_none() => Got::Woken,
            Ok(()) = changed(&mut self.limit), if self.ended.is_none() => Got::Woken,
            () = sleep(wake) => Got::Woken,
        };
        match got {
            Got::Out(Ok(n)) if n > 0 => {
                self.took(Dir::Recv, out.read(n));
                out.grow_after(n);
            }
            Got::Err(Ok(n)) if n > 0 => {
                self.took(Dir::Stderr, err.read(n));
                err.grow_after(n);
            }
            Got::Out(_) => self.pipe_closed(Dir::Recv),
            Got::Err(_) => self.pipe_closed(Dir::Stderr),
            Got::Exit(exit) => {
                self.exit = Some(exit);
                self.read_rest().await;
            }
            Got::Terminal(id) => {
                self.tell_terminal(&id);
                self.terminals_ended.push_back(id);
            }
            Got::Woken => {}
        }
        self.buffers = (out, err);
    }

    /// Takes the remaining data from the pipes of an agent that has exited, and closes them.
    pub(super) async fn read_rest(&mut self) {
        let until = engine_clock::now() + REST;
        for dir in [Dir::Recv, Dir::Stderr] {
            let mut buffer = ReadBuffer::default();
            while engine_clock::now() < until {
                let Some(process) = &mut self.process else { return };
                let read = match dir {
                    Dir::Recv => timeout(SILENCE, read_from(process.stdout.as_mut(), buffer.space())).await,
                    _ => timeout(SILENCE, read_from(process.stderr.as_mut(), buffer.space())).await,
                };
                match read {
                    Some(Ok(n)) if n > 0 => {
                        self.took(dir, buffer.read(n));
                        buffer.grow_after(n);
                    }
                    _ => break,
                }
            }
            self.pipe_closed(dir);
        }
    }

    pub(super) fn took(&mut self, dir: Dir, bytes: &[u8]) {
        let Some(process) = &mut self.process else { return };
        let mut lines = Vec::new();
        let splitter = if dir == Dir::Recv { &mut process.out } else { &mut process.err };
        splitter.push(bytes, |line| lines.push(line));
        for line in lines {
            self.took_line(dir, line);
        }
        self.log.flush();
    }

    fn pipe_closed(&mut self, dir: Dir) {
        let Some(process) = &mut self.process else { return };
        let last = if dir == Dir::Recv {
            process.stdout = None;
            process.out.rest()
        } else {
            process.stderr = None;
            process.err.rest()
        };
        if let Some(line) = last {
            self.took_line(dir, line);
            self.log.flush();
        }
    }

    fn took_line(&mut self, dir: Dir, line: Line) {
        let at = self.now();
        let raw = (dir == Dir::Recv && !self.closing).then(|| {
            // The driver sees the line as received; only the written line is redacted.
            if self.lines_wanted { String::from_utf8_lossy(&line.bytes).into_owned() } else { String::new() }
        });
        let masked = match self.log.masker.mask_bytes(&line.bytes) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => line.bytes,
        };
        let wire = WireLine::owned(at, dir, masked, line.cut);
        let ends = dir == Dir::Recv && self.log.is_full() && self.translation.ends(&wire);
        self.take(wire, if ends { Weight::Ending } else { Weight::Agent });
        if let Some(line) = raw {
            self.queued += line.len();
            self.queue.push_back(ReceivedLine { number: self.lines, text: line });
        }
        // Checked after each line, so that the result does not depend on how the output was split into reads.
        if dir == Dir::Recv
            && self.ended.is_none()
            && self.is_limited()
            && let Some((key, limit)) = self.figure_exceeded()
        {
            self.reached(key, limit);
        }
    }

    /// Logs a line and translates it. A line that the log drops is not translated, because the trace follows from the
    /// log alone.
    pub(super) fn take(&mut self, mut line: WireLine, weight: Weight) {
        if let Cow::Owned(masked) = self.log.masker.mask(&line.line) {
            line.line = masked;
        }
        self.lines += 1;
        match self.log.write(&line, weight) {
            Written::Kept => self.translate(&line),
            Written::Last => {
                self.translate(&line);
                let most = self.log.most();
                let text =
                    format!("the wire log has reached {most} bytes; from here on it only records how the session ends");
                self.notice("wire_full", text);
            }
            // The line becomes no event, but it shows that the agent is active.
            Written::Cut => self.turn_is_active(),
        }
    }

    /// Logs a notice for the user that can occur only once, and is therefore always kept.
    pub(super) fn notice(&mut self, code: &str, text: String) {
        let line = EngineLine::Notice { code: code.to_owned(), text };
        let line = WireLine::engine(self.now(), &line);
        self.take(line, Weight::Engine);
    }

    pub(super) fn translate(&mut self, line: &WireLine) {
        if self.translation.line(line) {
            self.turn_answered();
        }
        for event in self.translation.drain() {
            (self.sink)(event);
        }
        let activity = self.translation.recorder().activity();
        if activity != self.activity {
            self.activity = activity;
            self.turn_is_active();
        }
    }
}

async fn read_from(pipe: Option<&mut (impl tokio::io::AsyncRead + Unpin)>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(pipe) => pipe.read(buffer).await,
        None => Ok(0),
    }
}

/// Waits for a limit that was exceeded elsewhere; for ever if there is no such limit.
async fn changed(limit: &mut Option<LimitElsewhere>) -> Result<(), watch::error::RecvError> {
    match limit {
        Some(limit) => limit.changed().await,
        None => std::future::pending().await,
    }
}
