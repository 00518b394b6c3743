//! Reads the output of a session's process: split into lines, redacted, logged, translated, and queued for the
//! driver.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::sleep;

use super::log::{Weight, Written};
use super::queue::ReceivedLine;
use super::{LimitElsewhere, Process, Session};
use crate::engine_clock;
use crate::lines::Line;
use crate::process::Stream;
use crate::trace::{Exit, NoticeCode};
use crate::wire::{Dir, EngineLine, WireLine};

impl Session {
    /// Waits at most this long for something to read. Returns false if nothing more can come.
    pub(super) async fn read_some(&mut self, within: Duration) -> bool {
        let Some(Process { output, .. }) = &self.process else { return false };
        if !output.is_open(Stream::Stdout) && !output.is_open(Stream::Stderr) && self.exit.is_some() {
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
        let Process { group, output, splitters, .. } = process;
        enum Ready {
            Lines(Stream, bool, Vec<Line>),
            Exit(Exit),
            Terminal(String),
            Woken,
        }
        let exited = self.exit.is_some();
        let terminals = &mut self.terminals;
        let has_terminals = !terminals.is_empty();
        // The branches are polled in random order: a pipe that is never empty must not hide the agent's exit.
        let event = tokio::select! {
            (stream, bytes) = output.next() => Ready::Lines(stream, bytes.is_some(), splitters.lines(stream, bytes)),
            exit = group.wait(), if !exited => Ready::Exit(exit),
            id = terminals.next_end(), if has_terminals => Ready::Terminal(id),
            Ok(()) = self.interrupt.changed(), if self.ended.is_none() => Ready::Woken,
            Ok(()) = changed(&mut self.limit), if self.ended.is_none() => Ready::Woken,
            () = sleep(wake) => Ready::Woken,
        };
        match event {
            Ready::Lines(stream, has_bytes, lines) => {
                // What standard error shows becomes no event, and progress that is redrawn is no line until its end.
                if stream == Stream::Stderr && has_bytes {
                    self.turn_is_active();
                }
                self.took_lines(stream, lines);
            }
            Ready::Exit(exit) => {
                self.exit = Some(exit);
                self.read_rest().await;
            }
            Ready::Terminal(id) => {
                self.tell_terminal(&id);
                self.terminals.reported.push_back(id);
            }
            Ready::Woken => {}
        }
    }

    /// Takes the remaining data from the pipes of an agent that has exited, and closes them.
    pub(super) async fn read_rest(&mut self) {
        let Some(process) = &mut self.process else { return };
        let mut output = std::mem::take(&mut process.output);
        for stream in [Stream::Stdout, Stream::Stderr] {
            output.rest(stream, |bytes| self.receive(stream, Some(bytes))).await;
            self.receive(stream, None);
        }
    }

    /// Takes the bytes of a stream, or its end.
    pub(super) fn receive(&mut self, stream: Stream, bytes: Option<&[u8]>) {
        let Some(process) = &mut self.process else { return };
        let lines = process.splitters.lines(stream, bytes);
        self.took_lines(stream, lines);
    }

    /// Takes lines of a stream.
    pub(super) fn took_lines(&mut self, stream: Stream, lines: Vec<Line>) {
        let dir = match stream {
            Stream::Stdout => Dir::Recv,
            Stream::Stderr => Dir::Stderr,
        };
        for line in lines {
            self.took_line(dir, line);
        }
        self.log.flush();
    }

    fn took_line(&mut self, dir: Dir, line: Line) {
        let at = self.now();
        let raw = (dir == Dir::Recv && !self.closing).then(|| {
            // The driver sees the line as received; only the written line is redacted.
            if self.lines_wanted { String::from_utf8_lossy(&line.bytes).into_owned() } else { String::new() }
        });
        let (masked, is_searched) = match self.log.masker.mask_bytes(&line.bytes) {
            Cow::Owned(masked) => (masked, false),
            Cow::Borrowed(_) => (line.bytes, true),
        };
        let wire = WireLine::owned(at, dir, masked, line.cut);
        let ends = dir == Dir::Recv && self.log.is_full() && self.translation.ends(&wire);
        let weight = if ends { Weight::Ending } else { Weight::Agent };
        // A text without a secret is searched once. What was not UTF-8 has become another text.
        match is_searched && wire.bytes_b64.is_none() {
            true => self.take_masked(wire, weight),
            false => self.take(wire, weight),
        }
        if let Some(line) = raw {
            self.queue.push(ReceivedLine { number: self.lines, text: line });
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
        self.take_masked(line, weight);
    }

    fn take_masked(&mut self, line: WireLine, weight: Weight) {
        self.lines += 1;
        match self.log.write(&line, weight) {
            Written::Kept => self.translate(&line),
            Written::Last => {
                self.translate(&line);
                let most = self.log.most();
                let text =
                    format!("the wire log has reached {most} bytes; from here on it only records how the session ends");
                self.notice(NoticeCode::WireFull, text);
            }
            // The line becomes no event, but it shows that the agent is active.
            Written::Cut => self.turn_is_active(),
        }
    }

    /// Logs a notice for the user that can occur only once, and is therefore always kept.
    pub(super) fn notice(&mut self, code: NoticeCode, text: String) {
        let line = EngineLine::Notice { code, text };
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

/// Waits for a limit that was exceeded elsewhere; for ever if there is no such limit.
async fn changed(limit: &mut Option<LimitElsewhere>) -> Result<(), watch::error::RecvError> {
    match limit {
        Some(limit) => limit.changed().await,
        None => std::future::pending().await,
    }
}
