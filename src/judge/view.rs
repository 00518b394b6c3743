//! The view of a session that is shown to a judge: events as lines of JSON, cut by rules, without text that could
//! influence the judge. Pure.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::quotes::{self, NoEvidence};
use crate::text::plural;
use crate::trace::{Body, Event, Role};

mod line;

pub use line::{Line, Source};

/// A part of a session that is shown only if a rubric requests it, because the agent describes its own work there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Show {
    /// The agent's thoughts.
    Thoughts,
    /// The agent's message after its last call of a turn, which usually claims success.
    Closing,
}

/// The rules for the view of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The parts shown besides calls, results and the messages between them.
    pub show: Vec<Show>,
    /// The maximum number of characters of all lines.
    pub characters: usize,
}

/// The maximum number of user prompts that are always shown.
const PROMPTS: usize = 20;
/// The note on a change of the workspace that is known, and empty.
const UNCHANGED: &str = "no recorded file of the workspace changed";
/// The note on a change of the workspace that is unknown.
const CHANGE_UNKNOWN: &str = "left out: the change of the workspace, which is unknown";
/// The note on an agent that shows no tool calls.
const CALLS_UNKNOWN: &str =
    "left out: the agent's tool calls and their results, which it does not show; it is unknown which calls it made";
/// The beginning of a patch's line about a file whose content the patch does not hold.
const NOT_IN_PATCH: &str = "# left out: ";

/// A session as shown to a judge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ShownSession {
    /// The lines, in order.
    pub lines: Vec<Line>,
    /// Notes on the parts that were left out, with the reasons.
    pub notes: Vec<String>,
    /// The parts that were left out although they could change the verdict on any criterion, mostly because they are
    /// too long.
    pub too_long: Option<String>,
    /// The number of the workspace's change, after the last event.
    pub change: Option<u64>,
    /// True if the change of the workspace is known, and empty.
    pub unchanged: bool,
    /// True if the agent shows no tool calls, so that the absence of a call shows nothing.
    pub hides_calls: bool,
}

impl ShownSession {
    /// Returns the lines as shown.
    pub fn text(&self) -> String {
        let mut text: String = self.lines.iter().map(|line| format!("{}\n", line.json)).collect();
        let unchanged = self.unchanged.then_some(UNCHANGED);
        let notes = unchanged.into_iter().chain(self.notes.iter().map(String::as_str));
        text.extend(notes.map(|note| format!("{}\n", json!({ "note": note }))));
        text
    }

    /// Returns the events whose texts address the judges.
    pub fn speaks_to_a_judge(&self) -> Vec<u64> {
        self.lines.iter().filter(|line| line.speaks_to_a_judge()).map(|line| line.seq).collect()
    }

    /// Returns true if a quote is in an event. White space is ignored; a very short quote proves nothing.
    pub fn quotes(&self, seq: u64, quote: &str) -> bool {
        self.lines.iter().any(|line| line.seq == seq && quotes::stands_in(line, quote))
    }

    /// Returns the reason why a quote is not evidence for a pass, or `None` if one of these events supports it.
    pub fn why_no_evidence(&self, seqs: &[u64], quote: &str) -> Option<NoEvidence> {
        quotes::why_no_evidence(self.lines.iter().filter(|line| seqs.contains(&line.seq)), quote)
    }

    /// Returns the reason why a quote is not evidence in any of the events, or `None` if one supports it.
    pub fn why_no_evidence_anywhere(&self, quote: &str) -> Option<NoEvidence> {
        quotes::why_no_evidence(self.lines.iter(), quote)
    }
}

/// Collects the view of a session for a judge. Its memory does not grow with the session.
#[derive(Debug)]
pub struct View {
    rules: Rules,
    prompts: Vec<Line>,
    head: Vec<Line>,
    head_size: usize,
    tail: VecDeque<Line>,
    tail_size: usize,
    /// Every line with complete texts, as long as all of them together may be shown.
    whole: Option<Vec<Line>>,
    whole_size: usize,
    /// The messages since the agent's last call: closing words, unless another call follows.
    trailing: Vec<Both>,
    closing: usize,
    thoughts: usize,
    /// The number of messages above the maximum between two calls.
    unsaid: usize,
    /// The number of results whose output is already truncated in the trace.
    truncated: usize,
    /// The first and the last event that is left out, and their number.
    dropped: Option<(u64, u64, usize)>,
    last: Option<u64>,
}

/// A line with long texts cut, and the complete line, which is absent once a session is too long.
#[derive(Debug)]
struct Both {
    short: Line,
    whole: Option<Line>,
}

impl View {
    /// Makes an empty view.
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            prompts: Vec::new(),
            head: Vec::new(),
            head_size: 0,
            tail: VecDeque::new(),
            tail_size: 0,
            whole: Some(Vec::new()),
            whole_size: 0,
            trailing: Vec::new(),
            closing: 0,
            thoughts: 0,
            unsaid: 0,
            truncated: 0,
            dropped: None,
            last: None,
        }
    }

    fn shows(&self, what: Show) -> bool {
        self.rules.show.contains(&what)
    }

    /// Handles the next event.
    pub fn event(&mut self, event: &Event) {
        self.last = Some(event.seq);
        match &event.body {
            Body::Message(message) if message.role == Role::User => {
                self.end_turn();
                let both = self.both(event, Source::User, json!({"role": "user", "text": message.text}));
                if self.prompts.len() < PROMPTS {
                    self.keep_whole(both.whole);
                    self.prompts.push(both.short);
                } else {
                    self.keep(both);
                }
            }
            Body::Message(message) => {
                let size: usize = self.trailing.iter().map(|both| both.short.size()).sum();
                if size < self.rules.characters {
                    let both = self.both(event, Source::Agent, json!({"role": "agent", "text": message.text}));
                    self.trailing.push(both);
                } else {
                    self.unsaid += 1;
                }
            }
            Body::Thought { text } => {
                if self.shows(Show::Thoughts) {
                    self.take(event, Source::Other, json!({ "text": text }));
                } else {
                    self.thoughts += 1;
                }
            }
            Body::Plan { entries } => self.take(event, Source::Other, json!({ "entries": entries })),
            Body::ToolCall(call) => {
                for both in std::mem::take(&mut self.trailing) {
                    self.keep(both);
                }
                let mut shown = json!({"call": call.call, "kind": call.kind, "name": call.name, "input": call.input});
                // Some agents describe a call only there.
                if call.input.as_ref().is_none_or(crate::trace::recorder::is_empty) {
                    shown["title"] = json!(call.title);
                    shown["locations"] = json!(call.locations);
                }
                self.take(event, Source::Call, shown);
            }
            Body::PermissionResponse(answer) => {
                self.take(event, Source::Other, json!({"call": answer.call, "outcome": answer.decision()}));
            }
            Body::ToolResult(result) => {
                self.truncated += usize::from(result.truncated);
                let shown = json!({
                    "call": result.call, "status": result.status, "output": result.output, "diffs": result.diffs,
                    "exit_code": result.exit_code
                });
                self.take(event, Source::Result, shown);
            }
            Body::Stop(stop) => {
                self.end_turn();
                self.take(event, Source::Other, json!({ "reason": stop.reason }));
            }
            Body::PermissionRequest(_) | Body::Usage(_) | Body::Notice { .. } => {}
        }
    }

    /// Returns the user's prompts.
    pub fn prompts(&self) -> Vec<String> {
        self.prompts.iter().flat_map(|line| line.texts.iter()).cloned().collect()
    }

    /// Returns the view, with the change of the workspace if known. `tracing` is true if the agent shows tool calls.
    pub fn finish(mut self, tracing: bool, patch: Option<&str>) -> ShownSession {
        self.end_turn();
        let mut shown = ShownSession { hides_calls: !tracing, ..ShownSession::default() };
        let is_change_known = patch.is_some();
        let patch = patch.filter(|patch| !patch.trim().is_empty());
        shown.unchanged = is_change_known && patch.is_none();
        let seq = self.last.map_or(0, |last| last + 1);
        shown.change = patch.map(|_| seq);
        let whole_change = patch.map(|patch| Line::change(seq, patch, true));
        let room = self.rules.characters.saturating_sub(self.whole_size);
        let fits = whole_change.as_ref().is_none_or(|line| line.size() <= room);
        let mut too_long = Vec::new();
        if let Some(whole) = self.whole.filter(|_| fits && self.unsaid == 0) {
            shown.lines = whole;
            shown.lines.extend(whole_change);
        } else {
            shown.lines.append(&mut self.prompts);
            shown.lines.append(&mut self.head);
            shown.lines.extend(self.tail);
            shown.lines.extend(patch.map(|patch| Line::change(seq, patch, false)));
            if let Some((first, last, count)) = self.dropped {
                let text = format!(
                    "left out: {} between {first} and {last}, since the trace is too long",
                    plural(count, "event")
                );
                too_long.push(text);
            }
            let missing: usize = shown.lines.iter().map(|line| line.cut).sum();
            if missing > 0 {
                too_long.push(format!("left out: {} of long texts", plural(missing, "character")));
            }
        }
        shown.lines.sort_by_key(|line| line.seq);
        if self.unsaid > 0 {
            too_long.push(format!("left out for length: {} of the agent", plural(self.unsaid, "message")));
        }
        if self.truncated > 0 {
            too_long.push(format!(
                "left out: the rest of {} that the trace does not hold whole",
                plural(self.truncated, "output")
            ));
        }
        let not_in_patch = patch.map_or(0, |patch| patch.lines().filter(|line| line.starts_with(NOT_IN_PATCH)).count());
        if not_in_patch > 0 {
            too_long
                .push(format!("left out: the content of {} in the workspace's change", plural(not_in_patch, "file")));
        }
        for (count, what) in [(self.closing, "closing message"), (self.thoughts, "thought")] {
            if count > 0 {
                shown.notes.push(format!("left out: {} of the agent", plural(count, what)));
            }
        }
        shown.notes.extend((!tracing).then(|| CALLS_UNKNOWN.to_owned()));
        shown.notes.extend((!is_change_known).then(|| CHANGE_UNKNOWN.to_owned()));
        shown.notes.extend(too_long.iter().cloned());
        shown.too_long = (!too_long.is_empty()).then(|| too_long.join("; "));
        shown
    }

    fn end_turn(&mut self) {
        let trailing = std::mem::take(&mut self.trailing);
        if self.shows(Show::Closing) {
            trailing.into_iter().for_each(|both| self.keep(both));
        } else {
            self.closing += trailing.len();
        }
    }

    /// Adds an event: with long texts cut, and complete as long as there is room.
    fn both(&mut self, event: &Event, source: Source, shown: Value) -> Both {
        let room = self.rules.characters.saturating_sub(self.whole_size);
        let waiting: usize = self.trailing.iter().filter_map(|both| both.whole.as_ref()).map(Line::size).sum();
        let whole = self.whole.is_some().then(|| Line::of(event, source, shown.clone(), true));
        let whole = whole.filter(|line| line.size() + waiting <= room);
        Both { short: Line::of(event, source, shown, false), whole }
    }

    fn take(&mut self, event: &Event, source: Source, shown: Value) {
        let both = self.both(event, source, shown);
        self.keep(both);
    }

    /// Keeps a complete line, or drops all complete lines if they exceed the limit.
    fn keep_whole(&mut self, line: Option<Line>) {
        let Some(line) = line else { return self.whole = None };
        self.whole_size += line.size();
        if self.whole_size > self.rules.characters {
            self.whole = None;
        } else if let Some(whole) = &mut self.whole {
            whole.push(line);
        }
    }

    /// Keeps the beginning and the end of the lines: a quarter and three quarters of the permitted characters.
    fn keep(&mut self, both: Both) {
        self.keep_whole(both.whole);
        let line = both.short;
        let quarter = self.rules.characters / 4;
        let size = line.size();
        if self.tail.is_empty() && self.head_size + size <= quarter {
            self.head_size += size;
            self.head.push(line);
            return;
        }
        self.tail_size += size;
        self.tail.push_back(line);
        while self.tail_size > self.rules.characters - quarter && self.tail.len() > 1 {
            let Some(gone) = self.tail.pop_front() else { break };
            self.tail_size -= gone.size();
            let (first, last, count) = self.dropped.unwrap_or((gone.seq, gone.seq, 0));
            self.dropped = Some((first.min(gone.seq), last.max(gone.seq), count + 1));
        }
    }
}

/// Returns a text with single blanks for white space.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
