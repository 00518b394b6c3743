//! Recorded sessions: the protocol of a recording, and stored Traces under a new header.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::json_stream::Knowing;
use super::{seen, surrogates};
use crate::harness::Adapter;
use crate::regular;
use crate::trace::recorder::Finished;
use crate::trace::usage::UsageTotal;
use crate::trace::{Event, Header, Seen, jsonl};
use crate::wire::{Dir, EngineLine, Reader, WireLine};

/// Returns true if a recording is a trace and not a session's lines. A trace of a newer version counts.
pub fn is_trace(path: &Path) -> bool {
    let reader = regular::open(path).map(|file| jsonl::Reader::new(BufReader::new(file)));
    matches!(reader, Ok(Ok(_) | Err(jsonl::ReadError::Newer(_))))
}

/// Passes on the events of a stored trace under this trial's own header.
///
/// # Errors
/// Returns an error if the trace cannot be read.
pub fn trace(path: &Path, mut header: Header, mut sink: impl FnMut(Event)) -> std::io::Result<Finished> {
    let mut reader = jsonl::Reader::new(BufReader::new(regular::open(path)?)).map_err(std::io::Error::other)?;
    let stored = reader.header().clone();
    header.capabilities = stored.capabilities;
    header.model.effective = stored.model.effective;
    header.cwd = stored.cwd;
    header.agent = stored.agent;
    header.timed = stored.timed;
    let mut total = UsageTotal::default();
    while let Some(event) = reader.next_event().map_err(std::io::Error::other)? {
        total.event(&event);
        sink(event);
    }
    Ok(Finished { header, events: Vec::new(), total })
}

/// The protocol and abilities of a recorded session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The session's protocol.
    pub adapter: Adapter,
    /// The kinds of events that the session can show.
    pub capabilities: Seen,
    /// The harness whose manifest describes the lines, for `json-stream`.
    pub harness: Option<String>,
    /// True if the lines have times.
    pub is_timed: bool,
}

impl Recorded {
    fn of(adapter: Adapter) -> Self {
        Self { adapter, capabilities: seen(adapter), harness: None, is_timed: false }
    }
}

/// Detects the protocol of a recorded session by its header, else by its first lines. Each agent of the protocol
/// `json-stream` is recognised by lines that only this agent writes.
///
/// # Errors
/// Returns an error if the input cannot be read.
pub fn recorded(input: impl BufRead, knowing: &Knowing) -> std::io::Result<Recorded> {
    let mut reader = Reader::new(input);
    let mut lines = 0;
    while let Some(line) = reader.next_line()? {
        lines += 1;
        if let Some((adapter, header)) = start_of(&line) {
            // The wire log of a played recording has a time on each line, even if the recording had none.
            let is_timed = header.is_timed() && reader.is_timed();
            return Ok(Recorded { adapter, capabilities: header.capabilities, harness: header.harness, is_timed });
        }
        if matches!(line.dir, Dir::Send | Dir::Recv)
            && let Some(recorded) = protocol_of(&line.line, knowing)
        {
            return Ok(Recorded { is_timed: reader.is_timed(), ..recorded });
        }
        if lines > OPENING {
            break;
        }
    }
    Ok(Recorded { is_timed: reader.is_timed(), ..Recorded::of(Adapter::OutputOnly) })
}

/// Returns the protocol and the harness that the header of a wire log names.
///
/// # Errors
/// Returns an error if the input cannot be read.
pub fn named(input: impl BufRead) -> std::io::Result<Option<(Adapter, String)>> {
    let mut reader = Reader::new(input);
    for _ in 0..OPENING {
        let Some(line) = reader.next_line()? else { break };
        if let Some((adapter, header)) = start_of(&line) {
            return Ok(header.harness.map(|harness| (adapter, harness)));
        }
    }
    Ok(None)
}

/// Returns the header of a wire log with its protocol, if the line holds one. The header of a played recording names only
/// the player.
fn start_of(line: &WireLine) -> Option<(Adapter, Box<Header>)> {
    if line.dir != Dir::Engine {
        return None;
    }
    let Ok(EngineLine::Start { header }) = serde_json::from_str(&line.line) else { return None };
    let adapter = header.adapter.parse().ok().filter(|adapter| *adapter != Adapter::Replay)?;
    Some((adapter, header))
}

/// Returns true if each line of a recorded session has a time.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn has_times(path: &Path) -> std::io::Result<bool> {
    let mut reader = Reader::new(BufReader::with_capacity(256 << 10, regular::open(path)?));
    let mut line = WireLine::text(0, Dir::Recv, "");
    while reader.read_line(&mut line)? {
        if !reader.is_timed() {
            return Ok(false);
        }
    }
    Ok(reader.is_timed())
}

/// Detects the protocol of a recorded session in a file.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn recorded_in(path: &Path) -> std::io::Result<Recorded> {
    recorded(BufReader::new(regular::open(path)?), Knowing::built_in())
}

/// The number of lines by which a recording is recognised.
const OPENING: usize = 100;

/// Types of the lines by which Claude Code and its user control a session.
const CONTROL_LINES: [&str; 3] = ["control_request", "control_response", "control_cancel_request"];

/// Returns the protocol that a line belongs to, if the line shows it.
fn protocol_of(line: &str, knowing: &Knowing) -> Option<Recorded> {
    let Ok(value @ Value::Object(_)) = surrogates::parse(line) else { return None };
    let has = |key: &str| value.get(key).is_some();
    if has("jsonrpc") {
        return Some(Recorded::of(Adapter::Acp));
    }
    // Only control lines show the control protocol; the session's other lines occur in the one-way stream, too.
    if value.get("type").and_then(Value::as_str).is_some_and(|kind| CONTROL_LINES.contains(&kind)) {
        return Some(Recorded::of(Adapter::ClaudeCodeControl));
    }
    if let Some(harness) = knowing.of_line(&value) {
        return Some(Recorded { harness: Some(harness.to_owned()), ..Recorded::of(Adapter::JsonStream) });
    }
    let claude = ["session_id", "subtype", "parent_tool_use_id"].into_iter().any(has);
    (claude && has("type")).then(|| Recorded::of(Adapter::ClaudeCodeStream))
}
