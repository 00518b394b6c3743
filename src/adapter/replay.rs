//! Recorded sessions: the protocol of a recording, and stored Traces under a new header.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::json_stream::Knowing;
use super::seen;
use crate::harness::Adapter;
use crate::regular;
use crate::trace::recorder::Finished;
use crate::trace::usage::UsageTotal;
use crate::trace::{Event, Header, Seen, jsonl};
use crate::wire::{Dir, EngineLine, Reader};

/// Whether a recording is a Trace, and not a session's lines. One of a newer version is a Trace, too.
pub fn is_trace(path: &Path) -> bool {
    let reader = regular::open(path).map(|file| jsonl::Reader::new(BufReader::new(file)));
    matches!(reader, Ok(Ok(_) | Err(jsonl::ReadError::Newer(_))))
}

/// Hands on the events of a stored Trace under this trial's own header.
///
/// # Errors
/// The Trace cannot be read.
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

/// What a recorded session tells of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The protocol it speaks.
    pub adapter: Adapter,
    /// What it can show.
    pub capabilities: Seen,
    /// The harness whose manifest says what its lines are, for `json-stream`.
    pub harness: Option<String>,
}

impl Recorded {
    fn of(adapter: Adapter) -> Self {
        Self { adapter, capabilities: seen(adapter), harness: None }
    }
}

/// What a recorded session tells of itself: by its own header where it has one, else by its first lines, which the
/// agents of the protocol `json-stream` know each by its own.
///
/// # Errors
/// The file could not be read.
pub fn recorded(input: impl BufRead, knowing: &Knowing) -> std::io::Result<Recorded> {
    let mut reader = Reader::new(input);
    let mut lines = 0;
    while let Some(line) = reader.next_line()? {
        lines += 1;
        if line.dir == Dir::Engine
            && let Ok(EngineLine::Start { header }) = serde_json::from_str(&line.line)
            && let Some(adapter) = Adapter::ALL.into_iter().find(|adapter| adapter.word() == header.adapter)
            && adapter != Adapter::Replay
        {
            return Ok(Recorded { adapter, capabilities: header.capabilities, harness: header.harness });
        }
        if matches!(line.dir, Dir::Send | Dir::Recv)
            && let Some(recorded) = protocol_of(&line.line, knowing)
        {
            return Ok(recorded);
        }
        if lines > 100 {
            break;
        }
    }
    Ok(Recorded::of(Adapter::OutputOnly))
}

/// The same of a file.
///
/// # Errors
/// The file could not be read.
pub fn recorded_in(path: &Path) -> std::io::Result<Recorded> {
    recorded(BufReader::new(regular::open(path)?), Knowing::built_in())
}

/// Lines by which Claude Code and its user control a session.
const CONTROL_LINES: [&str; 3] = ["control_request", "control_response", "control_cancel_request"];

/// The protocol that a line belongs to, where it shows.
fn protocol_of(line: &str, knowing: &Knowing) -> Option<Recorded> {
    let Ok(value @ Value::Object(_)) = serde_json::from_str::<Value>(line) else { return None };
    let has = |key: &str| value.get(key).is_some();
    if has("jsonrpc") {
        return Some(Recorded::of(Adapter::Acp));
    }
    // The control protocol shows no sooner in lines of the session, which the one-way stream has too.
    if value.get("type").and_then(Value::as_str).is_some_and(|kind| CONTROL_LINES.contains(&kind)) {
        return Some(Recorded::of(Adapter::ClaudeCodeControl));
    }
    if let Some(harness) = knowing.of_line(&value) {
        return Some(Recorded { harness: Some(harness.to_owned()), ..Recorded::of(Adapter::JsonStream) });
    }
    let claude = ["session_id", "subtype", "parent_tool_use_id"].into_iter().any(has);
    (claude && has("type")).then(|| Recorded::of(Adapter::ClaudeCodeStream))
}
