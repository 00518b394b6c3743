//! Shows a trace in a terminal: each event with its number and time, diffs as hunks, and all text sanitised.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use anstyle::Style;
use similar::udiff::UnifiedHunkHeader;
use similar::{DiffTag, group_diff_ops};

use super::event_line::{Names, stop_text, usage_text};
use super::page::{Meaning, terminal};
use super::text::{
    BOLD, CYAN, DIM, GREEN, Look, MAGENTA, RED, YELLOW, cut, duration, harmless, one_line, plural, wrap,
};
use super::{problems, run_page};
use crate::difference;
use crate::result::{TrialResult, Warning};
use crate::run::RunRecord;
use crate::trace::jsonl::{ReadError, Reader};
use crate::trace::{
    Body, CallStatus, Event, FileDiff, Header, Message, PermissionOutcome, PermissionRequest, PermissionResponse,
    PlanEntry, Role, Stop, StopReason, ToolCall, ToolResult,
};
use crate::values::Fraction;

/// The reason why a trace could not be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// The trace could not be read; the events before the error are shown.
    #[error("the trace could not be read: {0}")]
    Read(#[from] ReadError),
    /// The output could not be written.
    #[error("could not write the output: {0}")]
    Write(#[from] io::Error),
}

/// The maximum number of lines of a message or a thought.
const TEXT_LINES: usize = 60;
/// The maximum number of lines of a tool's output.
const OUTPUT_LINES: usize = 12;
/// The maximum number of lines of a diff.
const DIFF_LINES: usize = 60;
/// The width of the columns before an event's text: its number and its time.
const GUTTER: usize = 16;
/// The maximum depth of sub-agents that is indented.
const MAX_INDENTED_DEPTH: usize = 4;

/// Shows a trace, event by event; with `full`, nothing is cut.
///
/// # Errors
/// Returns an error if the trace cannot be read, or the output cannot be written.
pub fn trace<R: BufRead>(
    reader: &mut Reader<R>,
    full: bool,
    look: &Look,
    out: &mut dyn Write,
) -> Result<(), ShowError> {
    let header = reader.header();
    let (timed, cwd) = (header.is_timed(), header.cwd.clone());
    self::header(header, look, out)?;
    let mut page =
        Page { look: *look, full, timed, out, names: Names::new(cwd), depths: HashMap::new(), margin: String::new() };
    let mut stopped = false;
    while let Some(event) = reader.next_event()? {
        stopped = matches!(event.body, Body::Stop(_));
        page.event(&event)?;
    }
    if !stopped {
        let text = look.paint(YELLOW, "the trace ends here, without a stop");
        writeln!(page.out, "{text}")?;
    }
    Ok(())
}

/// Shows the verdict on a trial and each grade.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn result(
    run: &RunRecord,
    folder: &Path,
    result: &TrialResult,
    look: &Look,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut entry = run_page::about(result);
    entry.copies = run_page::places(run, result, Some(folder));
    let score = result.score.map(Fraction::get).map(|score| format!("score {}", crate::rounding::share(score)));
    let error = result.error.as_ref().map(|error| format!("{}: {}", error.category.word(), error.message));
    let (failing, warnings): (Vec<&Warning>, Vec<&Warning>) =
        result.warnings.iter().partition(|it| it.fails_the_trial());
    let warnings = warnings.into_iter().map(|warning| format!("warning: {warning}"));
    score.into_iter().chain(error).chain(result.skipped.clone()).chain(warnings).for_each(|text| entry.text(text));
    entry.details.extend(failing.into_iter().map(problems::of_failing_warning));
    for grade in &result.grades {
        let mut detail = problems::of_grade(grade);
        if !grade.evidence.is_empty() {
            let seqs: Vec<String> = grade.evidence.iter().map(|seq| format!("#{seq}")).collect();
            detail.lines.push((Meaning::Quiet, format!("events {}", seqs.join(" "))));
        }
        entry.details.push(detail);
    }
    writeln!(out)?;
    terminal::entry(&entry, look, out)
}

fn header(header: &Header, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let mut facts: Vec<(&str, String)> = Vec::new();
    let trial = header.trial.map(|trial| format!(", trial {trial}")).unwrap_or_default();
    facts.extend(header.case.as_ref().map(|case| ("case", format!("{case}{trial}"))));
    let harness = header.harness.as_deref().filter(|harness| *harness != header.adapter);
    let harness = harness.map(|harness| format!("{harness}, ")).unwrap_or_default();
    facts.push(("harness", format!("{harness}adapter {}", header.adapter)));
    facts.extend(header.agent.as_ref().map(|agent| {
        let version = agent.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
        ("agent", format!("{}{version}", agent.name))
    }));
    let model = match (&header.model.requested, &header.model.effective) {
        (Some(asked), Some(answered)) if asked != answered => Some(format!("{answered} (asked for {asked})")),
        (_, Some(answered)) => Some(answered.clone()),
        (Some(asked), None) => Some(format!("asked for {asked}; which one answered is not known")),
        (None, None) => None,
    };
    facts.extend(model.map(|model| ("model", model)));
    let seen = |name: &str, seen: bool| format!("{}{name}", if seen { "" } else { "no " });
    let capabilities = header.capabilities;
    facts.push((
        "shows",
        format!("{}, {}", seen("tracing", capabilities.tracing), seen("interaction", capabilities.interaction)),
    ));
    facts.extend(header.started.as_ref().map(|started| ("started", started.clone())));
    facts.extend(header.cwd.as_ref().map(|cwd| ("folder", cwd.clone())));
    for (name, fact) in facts {
        for (n, line) in wrap(&fact, look.columns() - 9).iter().enumerate() {
            let name = if n == 0 { name } else { "" };
            writeln!(out, "{} {line}", look.paint(DIM, &format!("{name:<8}")))?;
        }
    }
    writeln!(out)
}

struct Page<'a> {
    look: Look,
    full: bool,
    timed: bool,
    out: &'a mut dyn Write,
    names: Names,
    /// The depth of the sub-agent of each open call.
    depths: HashMap<String, usize>,
    margin: String,
}

impl Page<'_> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let depth = event.parent.as_ref().map_or(0, |parent| self.depths.get(parent).map_or(1, |depth| depth + 1));
        if let Body::ToolCall(call) = &event.body {
            self.depths.insert(call.call.clone(), depth);
        }
        self.names.before(event);
        self.margin = self.look.sign("┆ ", "| ").repeat(depth.min(MAX_INDENTED_DEPTH));
        self.gutter(event)?;
        self.body(event)?;
        if let Body::ToolResult(result) = &event.body {
            self.depths.remove(&result.call);
        }
        self.names.after(event);
        Ok(())
    }

    fn gutter(&mut self, event: &Event) -> io::Result<()> {
        let time = if self.timed { duration(event.at_ms) } else { String::new() };
        let text = format!("{:>6} {time:>7}  ", format!("#{}", event.seq));
        write!(self.out, "{}{}", self.look.paint(DIM, &text), self.look.paint(DIM, &self.margin))
    }

    fn body(&mut self, event: &Event) -> io::Result<()> {
        match &event.body {
            Body::Message(message) => self.message(message),
            Body::Thought { text } => {
                self.head(DIM, "thought", "")?;
                self.text(text, TEXT_LINES, DIM)
            }
            Body::Plan { entries } => self.plan(entries),
            Body::ToolCall(call) => self.call(call),
            Body::PermissionRequest(request) => self.request(request),
            Body::PermissionResponse(response) => self.response(response),
            Body::ToolResult(result) => self.result(result, event.host),
            Body::Usage(usage) => {
                let scope = match usage.scope {
                    crate::trace::UsageScope::Call => "of a model call",
                    crate::trace::UsageScope::Turn => "of the turn",
                    crate::trace::UsageScope::Session => "of the session so far",
                };
                self.head(DIM, "usage", &format!("{scope}: {}", usage_text(usage)))
            }
            Body::Notice { code, text, line, .. } => {
                let at = line.map(|line| format!(" (wire log line {line})")).unwrap_or_default();
                self.head(YELLOW, "notice", &format!("{code}{at}"))?;
                self.text(text, OUTPUT_LINES, DIM)
            }
            Body::Stop(stop) => self.stop(stop, event.host),
        }
    }

    fn message(&mut self, message: &Message) -> io::Result<()> {
        let (who, style) = match message.role {
            Role::User => ("user", CYAN),
            Role::Agent => ("agent", BOLD),
        };
        self.head(style, who, "")?;
        self.text(&message.text, TEXT_LINES, Style::new())?;
        for attachment in &message.attachments {
            let parts = [attachment.media_type.clone(), attachment.uri.clone()];
            let bytes = attachment.bytes.map(|bytes| format!("{bytes} bytes"));
            let parts: Vec<String> = parts.into_iter().flatten().chain(bytes).collect();
            self.text(&format!("[{} {}]", attachment.kind, parts.join(", ")), OUTPUT_LINES, DIM)?;
        }
        Ok(())
    }

    fn plan(&mut self, entries: &[PlanEntry]) -> io::Result<()> {
        self.head(CYAN, "plan", "")?;
        for entry in entries {
            let mark = match entry.status.as_deref() {
                Some("completed") => "[x]",
                Some("in_progress") => "[>]",
                _ => "[ ]",
            };
            self.text(&format!("{mark} {}", entry.text), OUTPUT_LINES, Style::new())?;
        }
        Ok(())
    }

    fn call(&mut self, call: &ToolCall) -> io::Result<()> {
        let what = format!("{} {}", self.look.sign("▸", ">"), self.names.title(call));
        let about = self.names.about(call);
        self.head(CYAN, &what, &about)?;
        match &call.input {
            Some(input) if self.full => {
                let text = serde_json::to_string_pretty(input).unwrap_or_default();
                self.text(&text, OUTPUT_LINES, DIM)
            }
            _ => Ok(()),
        }
    }

    fn request(&mut self, request: &PermissionRequest) -> io::Result<()> {
        let options: Vec<&str> = request.options.iter().map(|option| &*option.kind).collect();
        let text = format!("asked for {} ({})", self.names.of(&request.call), options.join(", "));
        self.head(MAGENTA, "permission", &text)
    }

    fn response(&mut self, response: &PermissionResponse) -> io::Result<()> {
        let style = match response.outcome {
            PermissionOutcome::Allowed => GREEN,
            PermissionOutcome::Rejected => RED,
            PermissionOutcome::Cancelled => YELLOW,
        };
        let policy = response.policy.as_ref().map(|policy| format!("by {policy}"));
        let rule = response.rule.as_ref().map(|rule| format!("rule {rule}"));
        let option = response.option.as_ref().map(|option| format!("option {option}"));
        let parts: Vec<String> = [policy, rule, option, response.reason.clone()].into_iter().flatten().collect();
        let text = format!("for {} {}", self.names.of(&response.call), parts.join(", "));
        self.head(style, &format!("permission {}", response.outcome.word()), &text)?;
        match &response.updated_input {
            Some(input) => self.text(&format!("with the input {input}"), OUTPUT_LINES, DIM),
            None => Ok(()),
        }
    }

    fn result(&mut self, result: &ToolResult, host: bool) -> io::Result<()> {
        let style = match result.status {
            CallStatus::Ok => GREEN,
            CallStatus::Error => RED,
            CallStatus::Denied => MAGENTA,
            CallStatus::Cancelled | CallStatus::Unfinished => YELLOW,
        };
        let exit = result.exit_code.map(|code| format!(" (exit {code})")).unwrap_or_default();
        let origin = if host { ", as the engine concludes" } else { "" };
        let cut = if result.truncated { ", cut by the agent" } else { "" };
        let text = format!("{}{exit}{origin}{cut}", self.names.with_subject(&result.call, &self.look));
        self.head(style, result.status.word(), &text)?;
        if let Some(output) = &result.output {
            self.text(output, OUTPUT_LINES, DIM)?;
        }
        result.diffs.iter().try_for_each(|diff| self.diff(diff))
    }

    fn stop(&mut self, stop: &Stop, host: bool) -> io::Result<()> {
        let style = match stop.reason {
            StopReason::EndTurn => GREEN,
            StopReason::Error | StopReason::Crashed => MAGENTA,
            _ => YELLOW,
        };
        let who = host.then(|| "by the engine".to_owned());
        let parts: Vec<String> = who.into_iter().chain(Some(stop_text(stop)).filter(|text| !text.is_empty())).collect();
        self.head(style, &format!("stop {}", stop.reason.word()), &parts.join(": "))
    }

    /// Writes the first line of an event after its number and time: the kind and a short text.
    fn head(&mut self, style: Style, what: &str, text: &str) -> io::Result<()> {
        let room = self.room();
        let what = one_line(what, room, &self.look);
        let lines = if self.full {
            wrap(&format!("{what} {text}"), room)
        } else {
            vec![one_line(&format!("{what} {text}"), room, &self.look)]
        };
        for (n, line) in lines.iter().enumerate() {
            match line.strip_prefix(&*what) {
                Some(rest) if n == 0 => writeln!(self.out, "{}{rest}", self.look.paint(style, &what))?,
                None if n == 0 => writeln!(self.out, "{}", self.look.paint(style, line))?,
                _ => self.line(line, Style::new())?,
            }
        }
        Ok(())
    }

    fn room(&self) -> usize {
        self.look.columns().saturating_sub(GUTTER + self.margin.chars().count())
    }

    /// Writes a line below the first one.
    fn line(&mut self, line: &str, style: Style) -> io::Result<()> {
        let margin = self.look.paint(DIM, &self.margin);
        writeln!(self.out, "{:GUTTER$}{margin}{}", "", self.look.paint(style, line))
    }

    fn text(&mut self, text: &str, most: usize, style: Style) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let (text, gone) = if self.full { (text, 0) } else { bounded(text, most) };
        let lines = wrap(text, self.room());
        let shown = if self.full { lines.len() } else { lines.len().min(most) };
        for line in lines.iter().take(shown) {
            self.line(line, style)?;
        }
        let more = gone + lines.len() - shown;
        if more > 0 { self.more(more) } else { Ok(()) }
    }

    fn more(&mut self, more: usize) -> io::Result<()> {
        let text = format!("{} {} (--full shows all)", self.look.ellipsis(), plural(more, "more line"));
        self.line(&text, DIM)
    }

    fn diff(&mut self, diff: &FileDiff) -> io::Result<()> {
        let what = match (&diff.old, &diff.new) {
            (None, Some(_)) => "new ",
            (Some(_), None) => "deleted ",
            _ => "",
        };
        let path = one_line(&format!("{what}{}", self.names.relative(&diff.path)), self.room(), &self.look);
        self.line(&path, BOLD)?;
        let (old, new) = (diff.old.as_deref().unwrap_or_default(), diff.new.as_deref().unwrap_or_default());
        // A diff that takes long to compute is shown in a coarser form instead.
        let (old, new): (Vec<&str>, Vec<&str>) =
            (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
        let deadline = Instant::now() + Duration::from_millis(300);
        let changes = difference::between(&old, &new, Some(deadline));
        let most = if self.full { usize::MAX } else { DIFF_LINES };
        let mut written = 0;
        for hunk in group_diff_ops(changes, 3) {
            let head = std::iter::once((CYAN, UnifiedHunkHeader::new(&hunk).to_string()));
            let lines = hunk.iter().flat_map(|op| {
                let is_kept = op.tag() == DiffTag::Equal;
                let (removed, added) = if is_kept { (0..0, 0..0) } else { (op.old_range(), op.new_range()) };
                let kept = if is_kept { op.old_range() } else { 0..0 };
                let line = |style, mark| move |line: &&str| (style, format!("{mark}{line}"));
                let kept = old[kept].iter().map(line(Style::new(), ' '));
                kept.chain(old[removed].iter().map(line(RED, '-'))).chain(new[added].iter().map(line(GREEN, '+')))
            });
            for (style, line) in head.chain(lines) {
                written += 1;
                if written > most {
                    continue;
                }
                let room = self.room();
                if self.full {
                    for line in wrap(&line, room) {
                        self.line(&line, style)?;
                    }
                } else {
                    let line = harmless(line.trim_end_matches(['\n', '\r'])).replace('\n', " ");
                    self.line(&cut(&line, room, &self.look), style)?;
                }
            }
        }
        if written > most { self.more(written - most) } else { Ok(()) }
    }
}

/// Writes the change of a single file.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn diff(diff: &FileDiff, look: &Look, out: &mut dyn Write) -> io::Result<()> {
    let (names, depths) = (Names::new(None), HashMap::new());
    Page { look: *look, full: false, timed: false, out, names, depths, margin: String::new() }.diff(diff)
}

/// Returns the first lines of a text that may be shown, and the number of lines after them.
fn bounded(text: &str, most: usize) -> (&str, usize) {
    match text.match_indices('\n').nth(most) {
        Some((end, _)) => (&text[..end], text[end + 1..].trim_end().split('\n').count()),
        None => (text, 0),
    }
}
