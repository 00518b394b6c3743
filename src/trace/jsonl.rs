//! Reads and writes traces as JSON Lines: the header first, then one event per line.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::usage::Measure;
use super::{
    AnswerGap, AskedCall, Attachment, Body, CallStatus, ErrorCategory, Event, Exit, FileDiff, Header, Location,
    Message, PermissionOption, PermissionOutcome, PermissionRequest, PermissionResponse, PlanEntry, Role, Stop,
    ToolCall, ToolKind, ToolResult, Usage, UsageScope, VERSION,
};
use super::{FollowedLink, Lost, NoticeCode, UnseenAction};
use crate::repeated_key::repeated_key;
use crate::text::{first_bytes, in_one_line, marked};

mod answer;
mod laws;

use answer::AnswerSoFar;
use laws::Laws;

/// The reason why a trace could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be read.
    #[error("line {line}: {source}")]
    Io {
        /// Line number, from 1.
        line: u64,
        /// The error of the system.
        source: io::Error,
    },
    /// A line is invalid.
    #[error("line {line}: {message}")]
    Line {
        /// Line number, from 1.
        line: u64,
        /// The reason.
        message: String,
    },
    /// The file is empty.
    #[error("the trace is empty: its first line must be a header with \"type\":\"trace\"")]
    Empty,
    /// The first line is not a header.
    #[error("line 1: not a trace header ({0}); a trace starts with {{\"type\":\"trace\",\"version\":1,…}}")]
    NotATrace(String),
    /// The trace has a newer version of the format.
    #[error("the trace has version {0}, this program reads up to {VERSION}; use a newer evals")]
    Newer(u32),
}

/// A reader of a trace, event by event.
pub struct Reader<R> {
    input: R,
    line: u64,
    buffer: Vec<u8>,
    header: Header,
    /// The result of reading the first line after the header, which is in `buffer` until it is taken.
    ahead: Option<io::Result<usize>>,
    /// True if the first event has no time, so that the times of all events count as 0.
    is_first_untimed: bool,
    answer: AnswerSoFar,
    /// The state of the checks, if the events are checked against the laws of a trace.
    laws: Option<Laws>,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header. If the first event has no time, the trace has none: `timed` of the header is `false` then.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut buffer = Vec::new();
        input.read_until(b'\n', &mut buffer).map_err(|source| ReadError::Io { line: 1, source })?;
        if buffer.starts_with(BOM) {
            buffer.drain(..BOM.len());
        }
        if buffer.iter().all(u8::is_ascii_whitespace) {
            return Err(ReadError::Empty);
        }
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "type")]
            kind: String,
            version: u32,
        }
        let head: Head = serde_json::from_slice(&buffer).map_err(|e| ReadError::NotATrace(e.to_string()))?;
        if head.kind != "trace" {
            return Err(ReadError::NotATrace(format!("its type is `{}`", head.kind)));
        }
        if head.version > VERSION {
            return Err(ReadError::Newer(head.version));
        }
        let header = serde_json::from_slice(&buffer).map_err(|e| ReadError::NotATrace(e.to_string()))?;
        let mut reader = Self {
            input,
            line: 1,
            buffer,
            header,
            ahead: None,
            is_first_untimed: false,
            answer: AnswerSoFar::default(),
            laws: None,
        };
        reader.look_for_times();
        Ok(reader)
    }

    /// Reads the first event's line ahead, and notes whether the event has a time. A header with `timed` states it itself.
    fn look_for_times(&mut self) {
        #[derive(Deserialize)]
        struct Times {
            at_ms: Option<IgnoredAny>,
        }
        if self.header.timed.is_some() {
            return;
        }
        loop {
            self.buffer.clear();
            let read = self.input.read_until(b'\n', &mut self.buffer);
            if matches!(read, Ok(1..)) && self.buffer.iter().all(u8::is_ascii_whitespace) {
                self.line += 1;
                continue;
            }
            self.is_first_untimed =
                matches!(serde_json::from_slice(&self.buffer), Ok(Times { at_ms }) if at_ms.is_none());
            if self.is_first_untimed {
                self.header.timed = Some(false);
            }
            self.ahead = Some(read);
            return;
        }
    }

    /// Reads the header of a trace that is to be graded. Every event is then checked against the laws of a trace, and a
    /// trace that breaks one is refused: otherwise a removed line would count as something that never happened.
    ///
    /// # Errors
    /// Returns the errors of [`Reader::new`].
    pub fn lawful(input: R) -> Result<Self, ReadError> {
        Ok(Self { laws: Some(Laws::default()), ..Self::new(input)? })
    }

    /// Returns the header, which is the first line of the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the next event, or returns `None` at the end. An event of an unknown type becomes a notice, and a `stop` without an
    /// answer gets the main agent's text after its last call.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, a line is not an event, or a reader of [`Reader::lawful`] finds
    /// a broken law.
    pub fn next_event(&mut self) -> Result<Option<Event>, ReadError> {
        loop {
            self.line += 1;
            let line = self.line;
            let read = match self.ahead.take() {
                Some(read) => read,
                None => {
                    self.buffer.clear();
                    self.input.read_until(b'\n', &mut self.buffer)
                }
            };
            let read = read.map_err(|source| ReadError::Io { line, source })?;
            if read == 0 {
                let ended = self.laws.as_ref().map_or(Ok(()), |laws| laws.end(line - 1));
                return ended.map(|()| None).map_err(|(line, message)| ReadError::Line { line, message });
            }
            if self.buffer.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let read = read_line(&self.buffer, self.header.is_timed()).map(|event| match self.is_first_untimed {
                true => Event { at_ms: 0, ..event },
                false => event,
            });
            let mut checked = read.and_then(|event| match &mut self.laws {
                Some(laws) => has_no_key_twice(&self.buffer).and_then(|()| laws.event(line, &event)).map(|()| event),
                None => Ok(event),
            });
            if let Ok(event) = &mut checked {
                self.answer.event(event);
            }
            return checked.map(Some).map_err(|message| ReadError::Line { line, message });
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_event().transpose()
    }
}

fn has_no_key_twice(line: &[u8]) -> Result<(), String> {
    match std::str::from_utf8(line).ok().and_then(repeated_key) {
        Some(key) => Err(format!("an object has the key `{}` twice, so its value is unknown", first_bytes(&key, 100))),
        None => Ok(()),
    }
}

/// Reads an event from its line, or returns `None` if the line is not an event. The time is 0 if the event has none.
pub fn read_event(line: &[u8]) -> Option<Event> {
    read_line(line, false).ok()
}

/// Reads an event from its line. In a trace with times, an event without a time is none: its time is unknown, and not 0.
fn read_line(line: &[u8], is_timed: bool) -> Result<Event, String> {
    // A line break at the end would count as a second line of the parser.
    let line = line.trim_ascii_end();
    let read = serde_json::from_slice::<RawEvent<'_>>(line).map_err(|error| in_one_line(&error.to_string()));
    let read = read.and_then(|event| match event.at_ms {
        None if is_timed => Err(format!(
            "an event of type {} needs `at_ms`; the header of a trace without times has `\"timed\":false`",
            event.kind
        )),
        _ => event.into_event(),
    });
    match read {
        Err(_) if is_header(line) => Err(SECOND_TRACE.to_owned()),
        read => read.or_else(|why| unknown(line, is_timed).ok_or(why)),
    }
}

/// The error of a file that holds several traces, such as the output of `cat a.jsonl b.jsonl`.
const SECOND_TRACE: &str = "a second trace begins here; put each trace into a file of its own";

/// Returns true if a line is the header of a trace, and no event.
fn is_header(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: String,
        version: IgnoredAny,
    }
    let line = line.strip_prefix(BOM).unwrap_or(line);
    matches!(serde_json::from_slice(line), Ok(Head { kind, version: IgnoredAny }) if kind == "trace")
}

/// Returns the notice that replaces an event of an unknown type, or `None` if the type is known or a time is missing.
fn unknown(line: &[u8], is_timed: bool) -> Option<Event> {
    /// The bytes of the line that the notice quotes.
    const QUOTED: usize = 200;
    #[derive(Deserialize)]
    struct Head {
        seq: u64,
        at_ms: Option<u64>,
        #[serde(rename = "type")]
        type_: String,
    }
    let Head { seq, at_ms, type_ } = serde_json::from_slice(line).ok()?;
    if TYPES.contains(&type_.as_str()) || (is_timed && at_ms.is_none()) {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let text = text.trim_end();
    let quoted = marked(first_bytes(text, QUOTED), text);
    let text = format!("an event of type `{type_}`, which this version of evals does not know: {quoted}");
    let body = Body::Notice { code: NoticeCode::UnknownEvent, text, line: None, lost: None, action: None, link: None };
    Some(Event { seq, at_ms: at_ms.unwrap_or_default(), body, parent: None, host: true })
}

/// The byte order mark, which some programs write at the start of a UTF-8 file.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The known types of events.
const TYPES: [&str; 10] = [
    "message",
    "thought",
    "plan",
    "tool_call",
    "permission_request",
    "permission_response",
    "tool_result",
    "usage",
    "notice",
    "stop",
];

/// Writes an event as a line.
pub fn write_event(out: &mut impl Write, event: &Event) -> io::Result<()> {
    serde_json::to_writer(&mut *out, event)?;
    out.write_all(b"\n")
}

/// Writes the header as a line.
pub fn write_header(out: &mut impl Write, header: &Header) -> io::Result<()> {
    serde_json::to_writer(&mut *out, header)?;
    out.write_all(b"\n")
}

/// An event in the form of a file's line: one flat object, read in one pass.
#[derive(Deserialize)]
struct RawEvent<'a> {
    seq: u64,
    at_ms: Option<u64>,
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    host: bool,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    role: Option<Role>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    attachments: Vec<Attachment>,
    #[serde(default)]
    entries: Vec<PlanEntry>,
    #[serde(default)]
    call: Option<String>,
    #[serde(default)]
    step: Option<u64>,
    #[serde(rename = "kind", default, borrow)]
    tool_kind: Option<Cow<'a, str>>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    without_input: bool,
    #[serde(default)]
    unknown_kind: bool,
    #[serde(default)]
    locations: Vec<Location>,
    #[serde(default)]
    request: Option<String>,
    #[serde(default)]
    options: Vec<PermissionOption>,
    #[serde(default)]
    asked: Option<AskedCall>,
    #[serde(default)]
    outcome: Option<PermissionOutcome>,
    decided: Option<PermissionOutcome>,
    #[serde(default)]
    option: Option<String>,
    #[serde(default)]
    policy: Option<String>,
    #[serde(default)]
    rule: Option<String>,
    #[serde(default, borrow)]
    reason: Option<Cow<'a, str>>,
    #[serde(default)]
    updated_input: Option<Value>,
    #[serde(default)]
    status: Option<CallStatus>,
    #[serde(default)]
    output: Option<String>,
    #[serde(default)]
    diffs: Vec<FileDiff>,
    #[serde(default)]
    exit_code: Option<i64>,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    contested: bool,
    #[serde(default)]
    scope: Option<UsageScope>,
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    cache_read_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
    #[serde(default)]
    thought_tokens: Option<u64>,
    #[serde(default)]
    cost_usd: Option<f64>,
    #[serde(default)]
    context_used: Option<u64>,
    #[serde(default)]
    context_size: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    lower_bounds: Vec<Measure>,
    #[serde(default)]
    code: Option<NoticeCode>,
    #[serde(default)]
    line: Option<u64>,
    #[serde(default)]
    lost: Option<Lost>,
    action: Option<UnseenAction>,
    link: Option<FollowedLink>,
    #[serde(default)]
    category: Option<ErrorCategory>,
    #[serde(default)]
    detail: Option<String>,
    gap: Option<AnswerGap>,
    #[serde(default)]
    exit: Option<Exit>,
}

impl RawEvent<'_> {
    fn into_event(self) -> Result<Event, String> {
        let word = self.kind.clone().into_owned();
        let need = |field: &str| format!("an event of type {word} needs `{field}`");
        let body = match self.kind.as_ref() {
            "message" => Body::Message(Message {
                role: self.role.ok_or_else(|| need("role"))?,
                text: self.text.unwrap_or_default(),
                attachments: self.attachments,
            }),
            "thought" => Body::Thought { text: self.text.unwrap_or_default() },
            "plan" => Body::Plan { entries: self.entries },
            "tool_call" => Body::ToolCall(ToolCall {
                call: self.call.ok_or_else(|| need("call"))?,
                step: self.step.ok_or_else(|| need("step"))?,
                kind: self.tool_kind.as_deref().and_then(ToolKind::from_word).unwrap_or(ToolKind::Other),
                name: self.name,
                title: self.title,
                input: self.input,
                without_input: self.without_input,
                // There is no kind, or one that this version does not know.
                unknown_kind: self.unknown_kind || self.tool_kind.as_deref().and_then(ToolKind::from_word).is_none(),
                locations: self.locations,
                cwd: self.cwd,
            }),
            "permission_request" => Body::PermissionRequest(PermissionRequest {
                call: self.call.ok_or_else(|| need("call"))?,
                request: self.request.ok_or_else(|| need("request"))?,
                options: self.options,
                asked: self.asked,
            }),
            "permission_response" => Body::PermissionResponse(PermissionResponse {
                call: self.call.ok_or_else(|| need("call"))?,
                request: self.request.ok_or_else(|| need("request"))?,
                outcome: self.outcome.ok_or_else(|| need("outcome"))?,
                decided: self.decided,
                option: self.option,
                policy: self.policy,
                rule: self.rule,
                reason: self.reason.map(Cow::into_owned),
                updated_input: self.updated_input,
            }),
            "tool_result" => Body::ToolResult(ToolResult {
                call: self.call.ok_or_else(|| need("call"))?,
                status: self.status.ok_or_else(|| need("status"))?,
                output: self.output,
                diffs: self.diffs,
                exit_code: self.exit_code,
                truncated: self.truncated,
                contested: self.contested,
            }),
            "usage" => Body::Usage(Usage {
                scope: self.scope.ok_or_else(|| need("scope"))?,
                input_tokens: self.input_tokens,
                output_tokens: self.output_tokens,
                cache_read_tokens: self.cache_read_tokens,
                cache_write_tokens: self.cache_write_tokens,
                thought_tokens: self.thought_tokens,
                cost_usd: self.cost_usd,
                context_used: self.context_used,
                context_size: self.context_size,
                total_tokens: self.total_tokens,
                model: self.model,
                source: self.source,
                lower_bounds: self.lower_bounds,
            }),
            "notice" => Body::Notice {
                code: self.code.ok_or_else(|| need("code"))?,
                text: self.text.unwrap_or_default(),
                line: self.line,
                lost: self.lost,
                action: self.action,
                link: self.link,
            },
            "stop" => Body::Stop(Stop {
                reason: {
                    let word = self.reason.ok_or_else(|| need("reason"))?;
                    serde_json::from_value(Value::String(word.into_owned())).map_err(|e| e.to_string())?
                },
                category: self.category,
                detail: self.detail,
                output: self.output,
                gap: self.gap,
                exit: self.exit,
            }),
            _ => return Err(format!("an event of type {word} is unknown")),
        };
        Ok(Event { seq: self.seq, at_ms: self.at_ms.unwrap_or_default(), body, parent: self.parent, host: self.host })
    }
}
