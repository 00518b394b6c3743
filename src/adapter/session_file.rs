//! Sessions that agents keep on disk: detects the agent of a file, chooses a branch of the conversation, and
//! translates its lines, with those of sub-agents in files of their own, into a trace.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead};
use std::mem::take;

use jiff::Timestamp;
use serde_json::Value;

pub mod branch;
mod chain;
pub mod document;
pub mod facts;

pub use branch::BranchError;
use facts::{EndShown, Facts, Reading, Tokens};

use super::{Translate, Translation, claude_stream, json_stream, surrogates};
use crate::expression::{Expression, Scope, Work};
use crate::harness::{Adapter, Manifest};
use crate::text::plural;
use crate::trace::{Header, KeptSession, NoticeCode};
use crate::wire::{Dir, Reader, WireLine};

/// The number of lines in which a session file must show its agent.
const OPENING: usize = 200;
/// The difference in milliseconds below which the times of lines are not compared, because agents write simultaneous
/// events in any order.
const JITTER: i64 = 1000;
/// The beginning of the name of the file of a sub-agent that summarises a session for a compaction.
const COMPACTION: &str = "agent-acompact-";
/// The maximum number of branches that a notice names.
const MAX_NAMED_BRANCHES: usize = 20;

/// The formats of session files, one for each agent.
pub struct Formats(Vec<Format>);

/// The format of an agent's session files.
#[derive(Debug, Clone)]
pub struct Format {
    /// The name of the agent's harness.
    pub harness: String,
    manifest: Manifest,
    known_by: Option<Expression>,
    reading: Reading,
    shows_failures: bool,
    /// The key of the list of lines, if the file may be a single JSON document.
    document: Option<String>,
}

impl Formats {
    /// Returns the formats that the manifests describe, and Claude Code's format.
    pub fn of<'m>(manifests: impl IntoIterator<Item = &'m Manifest>) -> Self {
        let mut formats = Vec::new();
        for manifest in manifests {
            if manifest.name == claude_stream::tools::BUILT_IN.name {
                formats.push(Format {
                    harness: manifest.name.clone(),
                    manifest: manifest.clone(),
                    known_by: None,
                    reading: Reading::Claude,
                    shows_failures: true,
                    document: None,
                });
            }
            let Some(file) = &manifest.session_file else { continue };
            let Ok(known_by) = Expression::compile(&file.known_by.0, &["line"]) else { continue };
            formats.push(Format {
                harness: manifest.name.clone(),
                manifest: file.as_stream(manifest),
                known_by: Some(known_by),
                reading: Reading::of(file),
                shows_failures: file.shows_failures,
                document: file.document.clone(),
            });
        }
        Self(formats)
    }

    /// Returns the names of the harnesses whose session files are known.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|format| format.harness.as_str())
    }

    /// Returns the format of a file, by its first lines: the only format that knows one of them. A wire log is no
    /// session file.
    ///
    /// # Errors
    /// Returns the error of reading the lines.
    pub fn detect(&self, input: impl BufRead) -> io::Result<Option<&Format>> {
        let mut reader = Reader::new(input);
        for _ in 0..OPENING {
            let Some(line) = reader.next_line()? else { break };
            if reader.is_timed() {
                return Ok(None);
            }
            let Some(value) = object(&line.line) else { continue };
            let mut known = self.0.iter().filter(|format| format.knows(&value));
            if let Some(format) = known.next().filter(|_| known.next().is_none()) {
                return Ok(Some(format));
            }
        }
        Ok(None)
    }
}

impl Format {
    fn knows(&self, line: &Value) -> bool {
        match &self.known_by {
            Some(known_by) => known_by.holds(&Scope::new(&Work::default()).with("line", line)) == Ok(true),
            None => facts::is_claude(line),
        }
    }

    /// Returns true if the agent keeps the sessions of sub-agents in files beside the session file.
    pub fn has_sub_agents_beside(&self) -> bool {
        matches!(self.reading, Reading::Claude)
    }
}

/// The lines of a session file that are read, and when.
pub struct Survey {
    lines: Vec<Planned>,
    notices: Vec<(NoticeCode, String)>,
    messages: HashMap<String, (u32, Tokens)>,
    ends: HashMap<String, EndShown>,
    /// The calls that started sub-agents, by the ids of the sub-agents.
    pub started: HashMap<String, String>,
    start: Option<i64>,
    /// The number of lines that are left out because of their id, although they say something else.
    differing: usize,
    /// The text of the notice about lines that the file lacks.
    missing: Option<String>,
    is_complete: bool,
    is_sub_agent: bool,
}

#[derive(Debug, Clone, Copy)]
struct Planned {
    kept: bool,
    at: Option<i64>,
}

/// The reason why a session file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The file could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// No branch could be chosen.
    #[error(transparent)]
    Branch(#[from] BranchError),
}

/// Reads the lines of a session file for the first time, and chooses the lines of one branch.
///
/// # Errors
/// Returns an error if the file cannot be read, or the wanted branch is not in it.
pub fn survey(format: &Format, input: impl BufRead, wanted: Option<&str>) -> Result<Survey, SessionError> {
    let mut lines = read_facts(format, input)?;
    let is_sub_agent = lines.iter().any(|line| line.is_aside) && lines.iter().all(|line| line.is_aside || !line.speaks);
    if is_sub_agent {
        lines.iter_mut().for_each(|line| line.is_aside = false);
    }
    let chosen = branch::choose(&lines, wanted)?;
    let mut messages: HashMap<String, (u32, Tokens)> = HashMap::new();
    let mut planned = Vec::with_capacity(lines.len());
    let mut ends: HashMap<String, EndShown> = HashMap::new();
    let mut started = HashMap::new();
    let (mut latest, mut early) = (None, 0usize);
    let mut start = None;
    for (line, kept) in lines.iter().zip(&chosen.kept) {
        // The agent's own lines may be older or newer than the conversation: those of a fork begin the file.
        let at = line.at.filter(|_| line.speaks);
        planned.push(Planned { kept: *kept, at });
        if !kept {
            continue;
        }
        if let (Some(id), Some(tokens)) = (&line.message, &line.tokens) {
            let (count, sum) = messages.entry(id.clone()).or_default();
            *count += 1;
            sum.grow(tokens);
        }
        if let Some((call, shown)) = &line.end {
            ends.entry(call.clone()).or_default().add(*shown);
        }
        started.extend(line.started.clone());
        if let Some(at) = at {
            start.get_or_insert(at);
            early += usize::from(latest.is_some_and(|latest| at.saturating_add(JITTER) < latest));
            latest = latest.max(Some(at));
        }
    }
    Ok(Survey {
        lines: planned,
        notices: notices_of(&chosen, early),
        messages,
        ends,
        started,
        start,
        differing: chosen.differing,
        is_complete: chosen.left_out == 0 && chosen.rewound == 0,
        missing: missing_lines(&lines, chosen.unknown_parents),
        is_sub_agent,
    })
}

/// Returns the facts of each line of a session file.
fn read_facts(format: &Format, input: impl BufRead) -> io::Result<Vec<Facts>> {
    let mut reader = Reader::new(input);
    let mut lines: Vec<Facts> = Vec::new();
    while let Some(line) = reader.next_line()? {
        // Blank lines at the start are skipped by the reader.
        lines.resize(usize::try_from(reader.line_number()).unwrap_or(usize::MAX) - 1, Facts::default());
        lines.push(object(&line.line).map(|value| format.reading.facts(&value)).unwrap_or_default());
    }
    Ok(lines)
}

/// Returns the notices about the lines that are left out, and about their order. `early` is the number of lines with a time before
/// the line above.
fn notices_of(chosen: &branch::Chosen, early: usize) -> Vec<(NoticeCode, String)> {
    let mut notices = Vec::new();
    if chosen.left_out > 0 {
        let named: Vec<&str> = chosen.others.iter().take(MAX_NAMED_BRANCHES).map(String::as_str).collect();
        let more = if chosen.others.len() > MAX_NAMED_BRANCHES { ", …" } else { "" };
        notices.push((
            NoticeCode::OtherBranches,
            format!(
                "{} of other branches left out; --branch with the id of a line chooses another branch, and the others \
                 end with: {}{more}",
                plural(chosen.left_out, "line"),
                named.join(", ")
            ),
        ));
    }
    let same = chosen.repeated - chosen.differing;
    if same > 0 {
        let text = format!("{} with an id that occurred before are left out", plural(same, "line"));
        notices.push((NoticeCode::RepeatedLine, text));
    }
    if chosen.rewound > 0 {
        let text = format!("{} left out: the user went back to an earlier message", plural(chosen.rewound, "line"));
        notices.push((NoticeCode::Rewound, text));
    }
    if chosen.is_circular {
        let text = "the lines name each other in a circle; all are read, in the order of the file";
        notices.push((NoticeCode::SessionTree, text.to_owned()));
    }
    if early > 0 {
        let text = format!("{} with a time before the line above; the later time was taken", plural(early, "line"));
        notices.push((NoticeCode::TimeOrder, text));
    }
    notices
}

/// Returns the text about lines that the file lacks, if there are any. `unknown_parents` are the numbers of the lines that continue
/// such a line.
fn missing_lines(lines: &[Facts], unknown_parents: Vec<usize>) -> Option<String> {
    let mut after_gap = unknown_parents;
    after_gap.extend(chain::lines_after_a_gap(lines));
    after_gap.first().map(|first| {
        let lines = plural(after_gap.len(), "line");
        format!(
            "{lines} before which the file lacks a line, the first in line {first}: the file is not the whole session"
        )
    })
}

/// The session of a sub-agent in a file of its own.
pub struct SubAgent<R> {
    /// The sub-agent's id.
    pub id: String,
    /// The call that started the sub-agent.
    pub call: String,
    /// The survey of its file.
    pub survey: Survey,
    /// The file, from its beginning.
    pub input: R,
}

/// The second reading of a session file.
pub struct Source<'a, R> {
    /// The format of the file.
    pub format: &'a Format,
    /// The harness that the user named.
    pub harness: Option<String>,
    /// The result of the first reading.
    pub survey: Survey,
    /// The file, from its beginning.
    pub input: R,
    /// The sub-agents with files of their own.
    pub sub_agents: Vec<SubAgent<R>>,
    /// The names of files of sub-agents whose call is unknown, so that their lines are left out.
    pub left_out: Vec<String>,
}

/// Translates a session file and calls `watch` after each line, with its number and the translation. `mask` redacts
/// the secrets of a line before anything else reads it.
///
/// # Errors
/// Returns the error of reading the lines, or of `watch`.
pub fn translated<R: BufRead>(
    source: Source<'_, R>,
    mask: &dyn Fn(&str) -> Cow<'_, str>,
    mut watch: impl FnMut(&WireLine, u64, &mut Translation) -> io::Result<()>,
) -> io::Result<Translation> {
    let Source { format, harness, mut survey, input, sub_agents, left_out } = source;
    let is_complete = survey.is_complete;
    let mut header = Header::new(adapter(format).word(), format.manifest.seen());
    // No session file shows the permission requests.
    header.capabilities.interaction = false;
    header.harness = harness;
    header.timed = survey.start.is_none().then_some(false);
    header.session = Some(KeptSession {
        started: survey.start.and_then(|ms| Timestamp::from_millisecond(ms).ok()).map(|at| at.to_string()),
        shows_failures: format.shows_failures,
        ..KeptSession::default()
    });
    let translator = translator(format, &mut survey, &sub_agents);
    let mut translation = Translation::with(translator, &format.manifest, header);
    note_losses(&mut translation, &survey, &sub_agents, &left_out);
    let start = survey.start.unwrap_or_default();
    let mut main = Lines::new(input, survey.lines);
    let mut others: Vec<(String, Lines<R>)> =
        sub_agents.into_iter().map(|agent| (agent.call, Lines::new(agent.input, agent.survey.lines))).collect();
    loop {
        let next = main.peek()?;
        // A sub-agent's line comes before the next line of the session if it is older, and never before its call.
        let mut first: Option<(usize, i64)> = None;
        for (number, (call, lines)) in others.iter_mut().enumerate() {
            if !translation.recorder().was_announced(call) {
                continue;
            }
            let Some(at) = lines.peek()? else { continue };
            if next.is_none_or(|next| at < next) && first.is_none_or(|(_, first)| at < first) {
                first = Some((number, at));
            }
        }
        let (lines, elsewhere) = match first {
            Some((number, _)) => (&mut others[number].1, true),
            None if next.is_some() => (&mut main, false),
            None => break,
        };
        let Some((mut line, at, number)) = lines.take() else { break };
        line.at_ms = u64::try_from(at.saturating_sub(start)).unwrap_or(0);
        if let Cow::Owned(masked) = mask(&line.line) {
            line.line = masked;
        }
        translation.lines = number.saturating_sub(1);
        translation.elsewhere = elsewhere;
        translation.line(&line);
        watch(&line, number, &mut translation)?;
    }
    translation.elsewhere = false;
    for (call, lines) in &mut others {
        if lines.peek()?.is_some() {
            let text =
                format!("the lines of the sub-agent of the call {call} are left out: the call is not in the trace");
            // The call may belong to another branch, which is left out, too.
            match is_complete {
                true => leave_out(&mut translation, text),
                false => translation.recorder().notice(NoticeCode::SubAgentLeftOut, text),
            }
        }
    }
    Ok(translation)
}

/// Returns the translator of a session file.
fn translator<R>(format: &Format, survey: &mut Survey, sub_agents: &[SubAgent<R>]) -> Box<dyn Translate> {
    match format.reading {
        Reading::Claude => {
            let mut messages = take(&mut survey.messages);
            for (id, (count, tokens)) in sub_agents.iter().flat_map(|agent| &agent.survey.messages) {
                let (all, sum) = messages.entry(id.clone()).or_default();
                *all += count;
                sum.grow(tokens);
            }
            let calls = sub_agents.iter().map(|agent| (agent.id.clone(), agent.call.clone()));
            Box::new(claude_stream::on_disk::Translator::new(
                &format.manifest,
                claude_stream::on_disk::Whole {
                    sub_agents: calls.collect(),
                    messages,
                    is_complete: survey.is_complete && sub_agents.iter().all(|agent| agent.survey.is_complete),
                    is_sub_agent: survey.is_sub_agent,
                },
            ))
        }
        Reading::Rules(_) => Box::new(json_stream::Translator::of_file(&format.manifest, take(&mut survey.ends))),
    }
}

/// Records what the session file and the files of its sub-agents lack, and what is left out of them.
fn note_losses<R>(translation: &mut Translation, survey: &Survey, sub_agents: &[SubAgent<R>], left_out: &[String]) {
    let differing = sub_agents.iter().map(|agent| agent.survey.differing).sum::<usize>() + survey.differing;
    if differing > 0 {
        let lines = plural(differing, "line");
        let text = format!("{lines} with an id that occurred before, but with other content, are left out");
        translation.recorder().lost(NoticeCode::RepeatedLine, text);
    }
    let of_agents = sub_agents.iter().filter_map(|agent| agent.survey.missing.as_ref());
    for text in survey.missing.iter().chain(of_agents) {
        translation.recorder().lost(NoticeCode::SessionTree, text.clone());
        note_missing_usage(translation, "the lines that the file lacks");
    }
    let of_agents = sub_agents.iter().flat_map(|agent| &agent.survey.notices);
    for (code, text) in survey.notices.iter().chain(of_agents) {
        translation.recorder().notice(code.clone(), text.clone());
    }
    for name in left_out {
        if name.starts_with(COMPACTION) {
            // It makes no calls.
            let text = format!("the file {name}, in which the agent summarises its session, is left out");
            translation.recorder().notice(NoticeCode::SubAgentLeftOut, text);
            note_missing_usage(translation, "a sub-agent");
            continue;
        }
        let text = format!("the file {name} of a sub-agent is left out: no call is known that started it");
        leave_out(translation, text);
    }
}

/// Records that the lines of a sub-agent are left out: its calls and its usage are not in the trace.
fn leave_out(translation: &mut Translation, text: String) {
    translation.recorder().did_unseen(NoticeCode::SubAgentLeftOut, text);
    note_missing_usage(translation, "a sub-agent");
}

fn note_missing_usage(translation: &mut Translation, of: &str) {
    let text = format!("the usage of {of} is left out, so the totals are lower bounds");
    translation.recorder().notice(NoticeCode::UsageIncomplete, text);
}

fn adapter(format: &Format) -> Adapter {
    match format.reading {
        Reading::Claude => Adapter::ClaudeCodeStream,
        Reading::Rules(_) => Adapter::JsonStream,
    }
}

/// The kept lines of a file, with times that never decrease.
struct Lines<R> {
    reader: Reader<R>,
    planned: Vec<Planned>,
    latest: i64,
    next: Option<(WireLine, i64, u64)>,
}

impl<R: BufRead> Lines<R> {
    fn new(input: R, planned: Vec<Planned>) -> Self {
        Self { reader: Reader::new(input), planned, latest: i64::MIN, next: None }
    }

    /// Returns the time of the next line, if there is one.
    fn peek(&mut self) -> io::Result<Option<i64>> {
        while self.next.is_none() {
            let Some(mut line) = self.reader.next_line()? else { break };
            let number = self.reader.line_number();
            let planned = usize::try_from(number).ok().and_then(|number| self.planned.get(number - 1));
            // A line that was written since the first reading belongs to no branch yet.
            let Some(planned) = planned.filter(|planned| planned.kept) else { continue };
            line.dir = Dir::Recv;
            self.latest = self.latest.max(planned.at.unwrap_or(i64::MIN));
            self.next = Some((line, self.latest, number));
        }
        Ok(self.next.as_ref().map(|(_, at, _)| *at))
    }

    fn take(&mut self) -> Option<(WireLine, i64, u64)> {
        self.next.take()
    }
}

/// Parses a line that holds a JSON object.
fn object(line: &str) -> Option<Value> {
    surrogates::parse(line.trim()).ok().filter(Value::is_object)
}
