//! Formats an event of a trace as one line, for lists of evidence; and summarises tool calls in a few words.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufReader;
use std::path::Path;

use serde_json::Value;

use super::text::{Look, one_line};
use crate::regular;
use crate::trace::jsonl::{ReadError, Reader};
use crate::trace::usage::Measure;
use crate::trace::view;
use crate::trace::{Body, Event, Role, Stop, ToolCall, Usage};

/// The reason why the events of a trial could not be read.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// The file could not be opened.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The file is not a trace.
    #[error("{0}")]
    Read(#[from] ReadError),
}

/// Reads the lines of these events from a trace. Missing events are left out.
///
/// # Errors
/// Returns an error if the trace cannot be read.
pub fn lines_of(
    trace: &Path,
    wanted: &BTreeSet<u64>,
    width: usize,
    look: &Look,
) -> Result<BTreeMap<u64, String>, EventsError> {
    let mut lines = BTreeMap::new();
    let Some(last) = wanted.last() else { return Ok(lines) };
    let mut reader = Reader::new(BufReader::new(regular::open_own(trace)?))?;
    let cwd = reader.header().cwd.clone();
    let mut names = Names::new(cwd);
    while let Some(event) = reader.next_event()? {
        if event.seq > *last {
            break;
        }
        names.before(&event);
        if wanted.contains(&event.seq) {
            lines.insert(event.seq, line(&event, &names, width, look));
        }
        names.after(&event);
    }
    Ok(lines)
}

/// The maximum width of the subject of a call in the line of another event.
const SUBJECT: usize = 60;

/// The name by which later events refer to a call.
#[derive(Debug)]
struct OpenCall {
    title: String,
    /// The command or the paths of the call.
    subject: String,
}

/// The open calls, so that later events can name them.
#[derive(Debug, Default)]
pub struct Names {
    cwd: Option<String>,
    open: HashMap<String, OpenCall>,
}

impl Names {
    /// Starts without any call. Paths are shown relative to the folder.
    pub fn new(cwd: Option<String>) -> Self {
        Self { cwd, open: HashMap::new() }
    }

    /// Updates the open calls from an event, before the event is shown.
    pub fn before(&mut self, event: &Event) {
        if let Body::ToolCall(call) = &event.body {
            let open = OpenCall { title: self.title(call), subject: self.subject(call) };
            self.open.insert(call.call.clone(), open);
        }
    }

    /// Removes calls that no later event refers to.
    pub fn after(&mut self, event: &Event) {
        if let Body::ToolResult(result) = &event.body {
            self.open.remove(&result.call);
        }
    }

    /// Returns the kind and name of an open call.
    pub fn of<'a>(&'a self, call: &'a str) -> &'a str {
        self.open.get(call).map_or(call, |open| &open.title)
    }

    /// Returns the kind, the name and the beginning of the subject of an open call.
    pub fn with_subject(&self, call: &str, look: &Look) -> String {
        match self.open.get(call) {
            Some(OpenCall { title, subject }) if subject.is_empty() => title.clone(),
            Some(OpenCall { title, subject }) => format!("{title} {}", one_line(subject, SUBJECT, look)),
            None => call.to_owned(),
        }
    }

    /// Returns a path as graders see it.
    pub fn relative(&self, path: &str) -> String {
        view::relative(path, self.cwd.as_deref())
    }

    /// Returns the kind and name of a call.
    pub fn title(&self, call: &ToolCall) -> String {
        let name = call.name.as_deref().or(call.title.as_deref()).unwrap_or_default();
        let kind = call.kind.to_string();
        // Many agents call their tool for reading `Read`.
        if name.is_empty() || name.eq_ignore_ascii_case(&kind) { kind } else { format!("{kind} {name}") }
    }

    /// Returns the command or the paths of a call.
    fn subject(&self, call: &ToolCall) -> String {
        let paths = || view::paths(call.input.as_ref(), &call.locations, &[], self.cwd.as_deref()).join(", ");
        view::command(call.input.as_ref()).unwrap_or_else(paths)
    }

    /// Returns what a call is about: its command, its paths, or its input.
    pub fn about(&self, call: &ToolCall) -> String {
        let subject = self.subject(call);
        if !subject.is_empty() {
            return subject;
        }
        match &call.input {
            Some(Value::Object(map)) if map.is_empty() => String::new(),
            Some(input) => view::canonical(input),
            None => call.title.clone().unwrap_or_default(),
        }
    }
}

/// Returns an event as one line of limited width.
pub fn line(event: &Event, names: &Names, width: usize, look: &Look) -> String {
    let (what, text) = match &event.body {
        Body::Message(message) => {
            let who = match message.role {
                Role::User => "user",
                Role::Agent => "agent",
            };
            (who.to_owned(), message.text.clone())
        }
        Body::Thought { text } => (String::new(), text.clone()),
        Body::Plan { entries } => {
            (String::new(), entries.iter().map(|entry| &*entry.text).collect::<Vec<_>>().join("; "))
        }
        Body::ToolCall(call) => (names.title(call), names.about(call)),
        Body::ToolResult(result) => {
            let exit = result.exit_code.map(|code| format!(" (exit {code})")).unwrap_or_default();
            let what = format!("{} {}{exit}", names.with_subject(&result.call, look), result.status.word());
            (what, result.output.clone().unwrap_or_default())
        }
        Body::PermissionRequest(request) => (names.of(&request.call).to_owned(), String::new()),
        Body::PermissionResponse(response) => {
            let what = format!("{} {}", names.of(&response.call), response.outcome.word());
            (what, response.reason.clone().or_else(|| response.policy.clone()).unwrap_or_default())
        }
        Body::Usage(usage) => (String::new(), usage_text(usage)),
        Body::Notice { code, text, .. } => (code.to_string(), text.clone()),
        Body::Stop(stop) => (stop.reason.word().to_owned(), stop_text(stop)),
    };
    let dash = if text.trim().is_empty() { "" } else { look.sign(" — ", " - ") };
    let space = if what.is_empty() { "" } else { " " };
    one_line(&format!("#{} {}{space}{what}{dash}{text}", event.seq, event.body.word()), width, look)
}

/// Returns the known figures of a usage report.
pub fn usage_text(usage: &Usage) -> String {
    let figures = [
        ("input", Measure::InputTokens, usage.input_tokens),
        ("output", Measure::OutputTokens, usage.output_tokens),
        ("cache read", Measure::CacheReadTokens, usage.cache_read_tokens),
        ("cache write", Measure::CacheWriteTokens, usage.cache_write_tokens),
        ("thought", Measure::ThoughtTokens, usage.thought_tokens),
        ("total", Measure::TotalTokens, usage.total_tokens),
    ];
    let least = |measure: Measure| if usage.lower_bounds.contains(&measure) { ">= " } else { "" };
    let mut parts: Vec<String> = figures
        .iter()
        .filter_map(|(name, measure, figure)| {
            Some(format!("{name} {}{}", least(*measure), super::text::count((*figure)?)))
        })
        .collect();
    if let Some(used) = usage.context_used {
        let size = usage.context_size.map(|size| format!(" of {}", super::text::count(size))).unwrap_or_default();
        parts.push(format!("context {}{size}", super::text::count(used)));
    }
    if let Some(cost) = usage.cost_usd {
        let source = usage.source.as_ref().map(|source| format!(" ({source})")).unwrap_or_default();
        parts.push(format!("{}{}{source}", least(Measure::CostUsd), super::text::money(cost)));
    }
    if let Some(model) = &usage.model {
        parts.push(model.clone());
    }
    parts.join(", ")
}

/// Returns the details of a stop besides its reason.
pub fn stop_text(stop: &Stop) -> String {
    let mut parts = Vec::new();
    parts.extend(stop.category.map(|category| category.word().to_owned()));
    parts.extend(stop.detail.clone());
    if let Some(exit) = stop.exit.filter(|exit| exit.code != Some(0)) {
        parts.extend(exit.code.map(|code| format!("exit {code}")));
        parts.extend(exit.signal.map(|signal| format!("signal {signal}")));
    }
    parts.join(", ")
}
