//! Claude Code's recordings, and their import.

use evals::internal::adapter::import;
use evals::internal::harness::Adapter;
use evals::internal::harness::Manifest;
use evals::trace::jsonl::{write_event, write_header};

/// The names of the recordings.
pub const RECORDINGS: [&str; 18] = [
    "bash_fail.jsonl",
    "control_allow.wire.jsonl",
    "control_deny.wire.jsonl",
    "control_interrupt.wire.jsonl",
    "control_two_turns.wire.jsonl",
    "cut.jsonl",
    "err400.jsonl",
    "max_turns.jsonl",
    "parallel.jsonl",
    "partial.jsonl",
    "permission_denied.jsonl",
    "subagent.jsonl",
    "subagent_fg.jsonl",
    "text.jsonl",
    "thinking.jsonl",
    "todo.jsonl",
    "unicode.jsonl",
    "write.jsonl",
];

/// Returns the text of a recording.
pub fn recording(name: &str) -> String {
    std::fs::read_to_string(format!("tests/recordings/claude-code/{name}")).unwrap()
}

/// Returns the trace of a recorded session as text.
pub fn imported(input: &str) -> String {
    imported_by(Adapter::ClaudeCodeStream, input)
}

/// Returns the trace of a recorded session over the control protocol.
pub fn imported_both_ways(input: &str) -> String {
    imported_by(Adapter::ClaudeCodeControl, input)
}

fn imported_by(adapter: Adapter, input: &str) -> String {
    let mut events = Vec::new();
    let manifest = Manifest::bare(adapter);
    let header = import(adapter, &manifest, false, input.as_bytes(), |event| write_event(&mut events, &event));
    let mut trace = Vec::new();
    write_header(&mut trace, &header.unwrap()).unwrap();
    trace.extend(events);
    String::from_utf8(trace).unwrap()
}
