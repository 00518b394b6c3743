//! Adapters, one for each agent protocol. Each has a pure [`Translate`] from wire lines to events, shared by live
//! runs and `evals import`, and a driver, which decides what to send next.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::big_numbers;
use crate::harness::{Adapter, ExitCode, ExitMeaning, Manifest, Plugin, Server};
use crate::limits::LimitKey;
use crate::models;
use crate::repeated_key::KeyFinder;
use crate::text::{first_bytes, plural};
use crate::trace::recorder::{Continuation, Finished, Recorder, Voice};
use crate::trace::usage::{GATEWAY, Measure, PRICED};
use crate::trace::{Agent, ErrorCategory, Event, Exit, Header, NoticeCode, Seen, Stop, StopReason, Usage, UsageScope};
use crate::wire::{Dir, EngineLine, Lines, Reader, WireLine, repeated_key};

pub mod acp;
mod call_progress;
pub mod claude_stream;
pub mod errors;
mod exit_text;
pub mod explain;
pub mod json_stream;
pub mod output_only;
pub mod replay;
pub mod session_file;
mod sub_agents;
pub(crate) mod surrogates;
mod requested;
mod requests;
mod torn;
mod typed_input;
mod unknown_block;

impl Adapter {
    /// Returns a translator for sessions of this harness.
    pub fn translator(self, manifest: &Manifest) -> Box<dyn Translate> {
        match self {
            Adapter::Acp | Adapter::Replay => Box::new(acp::Translator::new(manifest)),
            Adapter::ClaudeCodeStream => Box::new(claude_stream::Translator::new(manifest)),
            Adapter::ClaudeCodeControl => Box::new(claude_stream::Translator::both_ways(manifest)),
            Adapter::JsonStream => Box::new(json_stream::Translator::new(manifest)),
            Adapter::OutputOnly => Box::new(output_only::Translator::new(manifest)),
        }
    }
}

/// Returns a hash. This default hasher has fixed keys: the same lines give the same trace.
fn hash(what: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Returns the names of the skills that a line of the agent lists as loaded, if it lists them: by the rules of the
/// protocol, or of the manifest.
pub fn skills_listed(manifest: &Manifest, line: &Value) -> Option<Vec<String>> {
    let by_manifest = || manifest.skills.as_ref()?.listed.as_ref()?.names(line);
    by_manifest().or_else(|| match manifest.adapter {
        Adapter::ClaudeCodeStream | Adapter::ClaudeCodeControl => claude_stream::listed::skills_listed(line),
        Adapter::Acp | Adapter::JsonStream | Adapter::OutputOnly | Adapter::Replay => None,
    })
}

/// Returns true if the agents of a harness list the skills that they loaded.
pub fn lists_skills(manifest: &Manifest) -> bool {
    let by_manifest = manifest.skills.as_ref().is_some_and(|skills| skills.listed.is_some());
    by_manifest || is_claude(manifest)
}

/// Returns the MCP servers that a line of the agent lists, if it lists them: by the rules of the protocol, or of the
/// manifest.
pub fn servers_listed(manifest: &Manifest, line: &Value) -> Option<Vec<Server>> {
    let by_manifest = || manifest.mcp_servers.as_ref()?.listed.as_ref()?.servers(line);
    by_manifest().or_else(|| if is_claude(manifest) { claude_stream::listed::servers_listed(line) } else { None })
}

/// Returns true if the agents of a harness list their MCP servers.
pub fn lists_servers(manifest: &Manifest) -> bool {
    manifest.mcp_servers.as_ref().is_some_and(|servers| servers.listed.is_some()) || is_claude(manifest)
}

/// Returns the MCP server that a line of the agent reports as broken, without a list of its servers.
pub fn broken_server<'a>(manifest: &Manifest, line: &'a Value) -> Option<&'a str> {
    if manifest.adapter == Adapter::Acp { acp::broken_servers::broken_server(line) } else { None }
}

/// Returns the text of a line that the program of the agent wrote, and not its model, by the manifest's patterns.
pub fn text_of_program<'a>(manifest: &Manifest, line: &'a Value) -> Option<&'a str> {
    let is_listed = |text: &&str| manifest.program_text.iter().any(|pattern| pattern.is_match(text));
    match manifest.adapter {
        Adapter::Acp => acp::broken_servers::text_of_program(line, manifest.message_id.as_ref()).filter(is_listed),
        Adapter::ClaudeCodeStream
        | Adapter::ClaudeCodeControl
        | Adapter::JsonStream
        | Adapter::OutputOnly
        | Adapter::Replay => None,
    }
}

/// Returns the plugins that a line of the agent lists, without those that are part of the agent.
pub fn plugins_listed(manifest: &Manifest, line: &Value) -> Vec<Plugin> {
    if is_claude(manifest) { claude_stream::listed::plugins_listed(line) } else { Vec::new() }
}

fn is_claude(manifest: &Manifest) -> bool {
    matches!(manifest.adapter, Adapter::ClaudeCodeStream | Adapter::ClaudeCodeControl)
}

/// A translator from the lines of one protocol to events. Pure: the same lines give the same events.
pub trait Translate: Send {
    /// Translates a line from the agent.
    fn recv(&mut self, line: &WireLine, recorder: &mut Recorder);

    /// Returns true if the lines of the agent are JSON.
    fn reads_json(&self) -> bool {
        true
    }

    /// Translates a line to the agent.
    fn send(&mut self, line: &WireLine, recorder: &mut Recorder);

    /// Takes an action of the engine that matters to the protocol.
    fn engine(&mut self, _line: &EngineLine, _recorder: &mut Recorder) {}

    /// Returns true if a line from the agent reports the end of its turn or of the session. Such lines are always
    /// kept.
    fn ends(&self, _line: &WireLine) -> bool {
        false
    }

    /// Returns the manifest's rule that took the last line, if lines are taken by rules.
    fn taken_by(&self) -> Option<&str> {
        None
    }

    /// Returns the values that the rules looked for in the last line and did not find.
    fn not_found(&self) -> &[String] {
        &[]
    }

    /// Takes a line that the agent printed on standard error.
    fn stderr(&mut self, _line: &str) {}

    /// Takes the end of the agent's standard error, before the session is over.
    fn last_words(&mut self, _stderr: &str) {}

    /// Returns how the agent ended its last turn, if the protocol reports the end of each turn.
    fn turn_end(&self) -> &EndReport {
        &EndReport::None
    }

    /// Returns true if the last prompt has no answer, although a turn has ended: the agent had begun that turn itself.
    fn awaits_answer(&self) -> bool {
        false
    }

    /// Ends the session and returns how the agent itself ended it.
    fn finish(&mut self, recorder: &mut Recorder, exit: Option<Exit>) -> EndReport;
}

/// The agent's own report of the end of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum EndReport {
    /// The agent did not report an end.
    None,
    /// The agent answered.
    Ended {
        /// The reason why the agent stopped.
        reason: StopReason,
        /// The agent's own word, if `reason` is less exact.
        detail: Option<String>,
    },
    /// The agent answered with an error.
    Failed {
        /// The kind of error.
        category: ErrorCategory,
        /// The agent's message.
        detail: String,
    },
}

impl EndReport {
    /// Returns true if the model ended its answer, so that a further prompt can follow.
    pub fn is_answer(&self) -> bool {
        matches!(self, Self::Ended { reason: StopReason::EndTurn, .. })
    }
}

/// Translates a whole session, line by line, and decides how it ended.
pub struct Translation {
    translator: Box<dyn Translate>,
    recorder: Recorder,
    ending: Ending,
    lines: u64,
    /// The number of lines of the agent, without empty ones, while none of them had a known form.
    unread: Option<u64>,
    /// True if the current line is in another file than the recording.
    elsewhere: bool,
    /// The version that the agent's program printed before it was started.
    printed: Option<Agent>,
    /// The first version of an agent with a stream of its own that shows calls which failed before they began.
    failures_shown_since: Option<String>,
    /// The last effective model that was compared with the requested model.
    model_compared: Option<String>,
    /// Finds keys that an object of a line has twice.
    keys: KeyFinder,
}

/// Returns the end of the model's answer if an error is about the model's output limit or a content filter. Such a
/// session is graded, not errored. All adapters use this function.
fn as_the_model_ended(answer: EndReport) -> EndReport {
    match answer {
        EndReport::Failed { category: ErrorCategory::Provider | ErrorCategory::Protocol, ref detail } => {
            let ended = errors::ended_in(detail).map(|reason| (reason, Some(detail.clone())));
            ended.map_or(answer, |(reason, detail)| EndReport::Ended { reason, detail })
        }
        answer => answer,
    }
}

/// The failure of the agent's model that the gateway saw.
#[derive(Debug)]
struct Refused {
    category: ErrorCategory,
    message: String,
    /// True if the agent closed the connections of its requests.
    closed: bool,
    /// True if no request was answered, and the service refused at least one or could not be reached.
    unanswered: bool,
}

/// Returns the failure of the agent's model in place of an end that the agent reports without an error: no model gave
/// the answer.
fn as_the_gateway_saw(answer: EndReport, exit: Option<ExitMeaning>, refused: Option<Refused>) -> EndReport {
    let Some(Refused { category, message, closed, .. }) = refused else { return answer };
    // An agent may report the failure of its model without the status, which the gateway saw.
    if let EndReport::Failed { category: ErrorCategory::Provider | ErrorCategory::Protocol, detail } = &answer
        && matches!(category, ErrorCategory::Auth | ErrorCategory::RateLimit)
        && errors::by_text(detail) == ErrorCategory::Protocol
    {
        return EndReport::Failed { category, detail: detail.clone() };
    }
    let explains = match (&answer, exit) {
        (EndReport::Failed { .. }, _) | (EndReport::None, Some(ExitMeaning::Error(_))) => false,
        (EndReport::Ended { .. }, _) | (EndReport::None, Some(ExitMeaning::Stop(_))) => true,
        // An agent that crashes closes its connections.
        (EndReport::None, None) => !closed,
    };
    if explains { EndReport::Failed { category, detail: message } } else { answer }
}

/// The engine's knowledge of the session's end, beside the agent's own report.
#[derive(Debug, Default)]
struct Ending {
    /// The meanings of the agent's exit codes, from its manifest.
    exits: BTreeMap<ExitCode, ExitMeaning>,
    not_started: Option<(ErrorCategory, String)>,
    handshake: Option<String>,
    unattended: Option<String>,
    limit: Option<String>,
    refused: Option<Refused>,
    /// True if the gateway saw that the model's output limit ended its last answer.
    output_limit: bool,
    /// True if the gateway saw that a content filter ended the model's last answer.
    filtered: bool,
    interrupted: bool,
    exit: Option<Exit>,
    stderr_tail: String,
    /// The last error in the output of an agent that ended without an answer, or a sentence that its lines have no known form.
    shown: Option<String>,
}

impl Translation {
    /// Starts to translate a session of this harness. The header holds the data that are known before the first line.
    pub fn new(adapter: Adapter, manifest: &Manifest, header: Header) -> Self {
        Self::with(adapter.translator(manifest), manifest, header)
    }

    fn with(translator: Box<dyn Translate>, manifest: &Manifest, header: Header) -> Self {
        let mut recorder = Recorder::new(header);
        recorder.hides_sub_agents_of(&manifest.hidden_sub_agents);
        Self {
            translator,
            recorder,
            ending: Ending { exits: manifest.exit.clone(), ..Ending::default() },
            lines: 0,
            unread: Some(0),
            elsewhere: false,
            printed: None,
            failures_shown_since: manifest
                .failures_shown_since
                .clone()
                .filter(|_| manifest.adapter == Adapter::JsonStream),
            model_compared: None,
            keys: KeyFinder::default(),
        }
    }

    /// Returns how the agent ended its last turn, if the protocol reports the end of each turn.
    pub fn turn_end(&self) -> &EndReport {
        self.translator.turn_end()
    }

    /// Takes the next line of the wire log. Returns true if it ended a turn that answers the prompt.
    pub fn line(&mut self, line: &WireLine) -> bool {
        let repeated = if self.translator.reads_json() { repeated_key(&mut self.keys, line) } else { None };
        self.checked(line, repeated)
    }

    /// Takes the next line, as [`Translation::line`] does. `repeated` is a key that an object in the line
    /// has twice.
    fn checked(&mut self, line: &WireLine, repeated: Option<String>) -> bool {
        let line = &*line.without_return();
        let turns = self.recorder.turns_ended();
        self.lines += 1;
        self.recorder.at(line.at_ms, self.lines);
        if self.elsewhere {
            self.recorder.without_line();
        }
        if !matches!(line.dir, Dir::Engine) {
            self.recorder.quote(&line.line);
        }
        self.recorder.weigh(line.line.len());
        if let Some(cut) = line.cut {
            let text = format!("a line was too long and lacks {}", plural(cut, "byte"));
            // A line of plain text is not an event, and the end of standard error does not affect the session.
            match line.dir {
                Dir::Recv => self.recorder.lost(NoticeCode::LineCut, text),
                _ => self.recorder.notice(NoticeCode::LineCut, text),
            }
        }
        let read = self.translator.reads_json() && matches!(line.dir, Dir::Recv | Dir::Send);
        let line = &*if read { with_digits(line) } else { Cow::Borrowed(line) };
        match line.dir {
            Dir::Recv => {
                if line.bytes_b64.is_some() {
                    self.recorder.notice(NoticeCode::NotUtf8, "the line holds bytes that are not UTF-8");
                }
                if self.translator.reads_json()
                    && let Some(key) = repeated
                {
                    let key = first_bytes(&key, 100);
                    let text = format!("an object of the line has the key `{key}` twice, so what it says is unknown");
                    self.recorder.lost(NoticeCode::RepeatedKey, text);
                }
                let before = self.unread.map(|lines| (lines, self.recorder.unread_lines()));
                self.translator.recv(line, &mut self.recorder);
                if let Some((lines, notices)) = before.filter(|_| !line.line.trim().is_empty()) {
                    self.unread = (self.recorder.unread_lines() > notices).then_some(lines + 1);
                }
            }
            Dir::Send => self.translator.send(line, &mut self.recorder),
            Dir::Stderr => {
                self.translator.stderr(&line.line);
                self.ending.stderr(&line.line);
            }
            Dir::Exit => match serde_json::from_str(&line.line) {
                Ok(exit) => self.ending.exit = Some(exit),
                Err(_) => self.recorder.notice(NoticeCode::MalformedExit, line.line.clone()),
            },
            Dir::Engine => match serde_json::from_str(&line.line) {
                Ok(engine) => self.engine(&engine),
                Err(_) => self.recorder.lost(NoticeCode::MalformedEngineLine, line.line.clone()),
            },
        }
        self.compare_models();
        self.recorder.turns_ended() > turns && !self.translator.awaits_answer()
    }

    /// Adds a notice if the model is not the requested one. The model before the request does not matter.
    fn compare_models(&mut self) {
        if !self.recorder.was_prompted() {
            return;
        }
        let model = &self.recorder.header().model;
        let (Some(requested), Some(effective)) = (&model.requested, &model.effective) else { return };
        if self.model_compared.as_ref() == Some(effective) {
            return;
        }
        let differs = !models::same(requested, effective);
        let text = format!("model `{requested}` was requested, but the agent reports `{effective}`");
        self.model_compared = Some(effective.clone());
        if differs {
            self.recorder.notice(NoticeCode::ModelMismatch, text);
        }
    }

    fn engine(&mut self, line: &EngineLine) {
        match line {
            EngineLine::Start { header } => {
                // A recording may be read by another protocol or manifest, which may show less.
                let in_use = self.recorder.header();
                let (adapter, can) = (std::mem::take(&mut in_use.adapter), in_use.capabilities);
                *in_use = Header { adapter, ..header.as_ref().clone() };
                in_use.capabilities.tracing &= can.tracing;
                in_use.capabilities.interaction &= can.interaction;
            }
            EngineLine::AgentVersion { name, version } => {
                self.printed = Some(Agent { name: name.clone(), version: Some(version.clone()) });
            }
            EngineLine::NotStarted { category, message } => {
                self.ending.not_started = Some((*category, message.clone()));
            }
            EngineLine::Handshake { message } => self.ending.handshake = Some(message.clone()),
            EngineLine::Unattended { mode, policy } => {
                self.ending.unattended.get_or_insert_with(|| unattended(mode, policy));
                self.recorder.mark_end();
            }
            EngineLine::Limit { key, .. } => {
                self.ending.limit.get_or_insert_with(|| key.clone());
                self.recorder.mark_end();
            }
            EngineLine::Refused { category, message, closed, unanswered } => {
                let (category, message) = (*category, message.clone());
                self.ending.refused = Some(Refused { category, message, closed: *closed, unanswered: *unanswered });
            }
            EngineLine::OutputLimit => self.ending.output_limit = true,
            EngineLine::Filtered => self.ending.filtered = true,
            EngineLine::Interrupted => self.ending.interrupted = true,
            EngineLine::Cancel => self.recorder.cancel_open(),
            EngineLine::Prompt { text } => self.recorder.say(Voice::User, None, text, Continuation::Block),
            EngineLine::Priced { cost_usd, model, .. } => {
                let mut usage = Usage::of(UsageScope::Session);
                usage.cost_usd = Some(*cost_usd);
                usage.model = Some(model.clone());
                usage.source = Some(PRICED.to_owned());
                if self.recorder.usage_total().priced_parts_are_lower_bounds() {
                    usage.at_least([Measure::CostUsd]);
                }
                self.recorder.usage(usage, true);
            }
            EngineLine::Gateway { usage, model, cost_usd, cost_is_lower_bound } => {
                if let Some(model) = model {
                    self.recorder.header().model.effective = Some(model.clone());
                }
                if cost_usd.is_some() {
                    let mut priced = Usage::of(UsageScope::Session);
                    (priced.cost_usd, priced.source) = (*cost_usd, Some(PRICED.to_owned()));
                    if *cost_is_lower_bound || usage.as_ref().is_some_and(|usage| !usage.lower_bounds.is_empty()) {
                        priced.at_least([Measure::CostUsd]);
                    }
                    self.recorder.usage(priced, true);
                }
                if let Some(usage) = usage {
                    let source = Some(GATEWAY.to_owned());
                    self.recorder.usage(Usage { source, ..usage.as_ref().clone() }, true);
                }
            }
            EngineLine::Notice { code, text } => match code {
                NoticeCode::MalformedWireLine | NoticeCode::WireCut => self.recorder.lost(code.clone(), text.clone()),
                NoticeCode::BackgroundCut | NoticeCode::UnshownAction => {
                    self.recorder.did_unseen(code.clone(), text.clone());
                }
                NoticeCode::DiscardedMessage => self.recorder.lost_speaker(code.clone(), text.clone()),
                _ => self.recorder.notice(code.clone(), text.clone()),
            },
            EngineLine::Followed { link } => self.recorder.followed(link.clone()),
            EngineLine::Stopped { ms } => {
                let stopped = &mut self.recorder.header().stopped_ms;
                *stopped = Some(stopped.unwrap_or_default().saturating_add(*ms));
                let text = format!("evals itself was stopped for {ms} ms; the agent may have worked meanwhile");
                self.recorder.notice(NoticeCode::EngineStopped, text);
            }
            EngineLine::Escaped { processes } => self.recorder.notice(NoticeCode::Escaped, {
                let processes = plural(*processes, "process");
                format!("{processes} had left the agent's process group and had to be ended")
            }),
            EngineLine::Unknown => {
                self.recorder.notice(NoticeCode::UnknownEngineLine, "an engine line of an unknown kind")
            }
            EngineLine::Permission { .. }
            | EngineLine::Answered { .. }
            | EngineLine::Restart
            | EngineLine::Terminal { .. }
            | EngineLine::CloseStdin
            | EngineLine::Signal { .. } => {}
        }
        self.translator.engine(line, &mut self.recorder);
    }

    /// Returns true if a line from the agent reports the end of its turn or of the session.
    pub fn ends(&self, line: &WireLine) -> bool {
        self.translator.ends(line)
    }

    /// Returns the manifest's rule that took the last line, if lines are taken by rules.
    pub fn taken_by(&self) -> Option<&str> {
        self.translator.taken_by()
    }

    /// Returns the values that the rules looked for in the last line and did not find.
    pub fn not_found(&self) -> &[String] {
        self.translator.not_found()
    }

    /// Returns the recorder, which holds the trace up to the current line.
    pub fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }

    /// Takes the events that can no longer change.
    pub fn drain(&mut self) -> impl Iterator<Item = Event> {
        self.recorder.drain()
    }

    /// Ends the session.
    pub fn finish(self) -> Finished {
        let mut events = Vec::new();
        let finished = self.finish_into(|event| events.push(event));
        Finished { events, ..finished }
    }

    /// Ends the session and passes on the last events one by one.
    pub fn finish_into(mut self, each: impl FnMut(Event)) -> Finished {
        self.translator.last_words(&self.ending.stderr_tail);
        let answer = as_the_model_ended(self.translator.finish(&mut self.recorder, self.ending.exit));
        let printed = self.printed.as_ref().and_then(|printed| printed.version.as_deref());
        if let (Some(version), Some(first)) = (printed, &self.failures_shown_since)
            && acp::conventions::may_precede(Some(version), first)
        {
            let text = format!(
                "version {version} of the agent does not show calls that failed before they began; {first} and later do"
            );
            self.recorder.did_unseen(NoticeCode::UnshownAction, text);
        }
        // The agent's name and version in the session take precedence over those that its program printed.
        let agent = &mut self.recorder.header().agent;
        match (agent, self.printed.take()) {
            (Some(agent), Some(printed)) if agent.version.is_none() => agent.version = printed.version,
            (agent @ None, Some(printed)) => *agent = Some(printed),
            _ => {}
        }
        // The output of a plain command is read at its end.
        self.compare_models();
        if let Some(message) = self.ending.refused_until_limit() {
            self.recorder.notice(NoticeCode::ApiRetry, message);
        }
        self.ending.shown = self.recorder.agent_error().map(str::to_owned).or_else(|| nothing_known(self.unread?));
        let (stop, host) = self.ending.decide(answer);
        self.recorder.finish_into(stop, host, each)
    }
}

/// Returns the stop reason of a session that the engine ended at a limit.
fn ended_at(limit: LimitKey) -> StopReason {
    match limit {
        LimitKey::Time => StopReason::TimedOut,
        LimitKey::Idle => StopReason::Idle,
        LimitKey::Steps | LimitKey::ToolCalls => StopReason::MaxTurns,
        LimitKey::Tokens | LimitKey::CostUsd => StopReason::MaxBudget,
    }
}

impl Ending {
    fn stderr(&mut self, line: &str) {
        const KEPT: usize = 4096;
        self.stderr_tail.push_str(line);
        self.stderr_tail.push('\n');
        if self.stderr_tail.len() > 2 * KEPT {
            let from = self.stderr_tail.ceil_char_boundary(self.stderr_tail.len() - KEPT);
            self.stderr_tail.drain(..from);
        }
    }

    /// Returns the failure of the agent's model if a time limit ended the session while the service refused a request that
    /// the agent needed, and had answered others before: the limit decides, and a reader has to know why it was exceeded.
    fn refused_until_limit(&self) -> Option<String> {
        let reason = ended_at(self.limit.as_ref()?.parse().ok()?);
        let by_time = matches!(reason, StopReason::TimedOut | StopReason::Idle);
        let refused = self.refused.as_ref().filter(|refused| by_time && !refused.closed && !refused.unanswered)?;
        Some(refused.message.clone())
    }

    /// Decides the ending by the contract's table, from the top: the engine's actions take precedence over the
    /// agent's answer.
    fn decide(self, answer: EndReport) -> (Stop, bool) {
        let exit = self.exit;
        let stop = |reason, category, detail: Option<String>| {
            // An agent may give an empty text as the reason.
            let detail = detail.filter(|detail| !detail.trim().is_empty());
            Stop { reason, category, detail, output: None, gap: None, exit }
        };
        if let Some((category, message)) = self.not_started {
            return (stop(StopReason::Crashed, Some(category), Some(message)), true);
        }
        if self.interrupted {
            return (stop(StopReason::Cancelled, None, Some("interrupted".to_owned())), true);
        }
        // The agent acted without asking, outside the case's policy: its own answer no longer counts.
        if let Some(message) = self.unattended {
            return (stop(StopReason::Error, Some(ErrorCategory::Handshake), Some(message)), true);
        }
        if let Some(message) = self.handshake {
            // The agent's refusal in words is more precise than the fact that the handshake did not finish.
            if let EndReport::Failed { category, detail } = answer {
                return (stop(StopReason::Error, Some(category), Some(detail)), false);
            }
            let category = errors::auth_in(&message)
                .or_else(|| errors::auth_in_last_words(&self.stderr_tail))
                .unwrap_or(ErrorCategory::Handshake);
            return (stop(StopReason::Error, Some(category), Some(message)), true);
        }
        if let Some(key) = self.limit {
            // A wire log of a newer version may name a limit that is not known here.
            let reason = key.parse().map_or(StopReason::MaxBudget, ended_at);
            let by_time = matches!(reason, StopReason::TimedOut | StopReason::Idle);
            // An agent that repeats its request until the limit is not slow: its service failed.
            if let Some(refused) = self.refused.filter(|refused| refused.unanswered && by_time) {
                let message = format!("{}; limit `{key}` then ended the session", refused.message);
                return (stop(StopReason::Error, Some(refused.category), Some(message)), true);
            }
            return (stop(reason, None, Some(key)), true);
        }
        let exit_means = exit.and_then(|exit| exit.code).and_then(|code| self.exits.get(&ExitCode(code)).copied());
        match (as_the_gateway_saw(answer, exit_means, self.refused), exit_means) {
            // The exit code is more precise than a message that is not understood.
            (EndReport::Failed { category: ErrorCategory::Protocol, detail }, Some(ExitMeaning::Error(category))) => {
                (stop(StopReason::Error, Some(category), Some(detail)), false)
            }
            (EndReport::Failed { category, detail }, _) => {
                (stop(StopReason::Error, Some(category), Some(detail)), false)
            }
            (EndReport::Ended { reason: StopReason::EndTurn, detail }, _) if self.output_limit => {
                (stop(StopReason::MaxTokens, None, detail), false)
            }
            (EndReport::Ended { reason: StopReason::EndTurn, detail }, _) if self.filtered => {
                (stop(StopReason::Refusal, None, detail), false)
            }
            (EndReport::Ended { reason, detail }, _) => (stop(reason, None, detail), false),
            (EndReport::None, Some(meaning)) => {
                let tail = last_line(&self.stderr_tail);
                match meaning {
                    ExitMeaning::Stop(reason) => (stop(reason, None, tail), false),
                    ExitMeaning::Error(category) => (stop(StopReason::Error, Some(category), tail), false),
                }
            }
            (EndReport::None, None) => {
                let tail = last_line(&self.stderr_tail);
                if let Some(category) = errors::refused_in(&self.stderr_tail) {
                    // The last line may be about something else, such as that of a traceback.
                    let states_it = |line: &&str| errors::refused_in(line).is_some();
                    let stated = self.stderr_tail.lines().map(str::trim).rfind(states_it).map(str::to_owned);
                    let is_last = tail.as_deref().is_some_and(|line| states_it(&line));
                    let detail = if is_last { tail } else { stated.or(tail) };
                    return (stop(StopReason::Error, Some(category), detail), false);
                }
                let shown = self.shown.filter(|_| exit.is_some_and(|exit| exit.code.is_some()));
                // What an agent that ends well prints on standard error is no error.
                let ended_well = exit.is_some_and(|exit| exit.code == Some(0));
                let cause = if ended_well { shown.or(tail) } else { tail.or(shown) };
                (stop(StopReason::Crashed, Some(ErrorCategory::Crashed), cause), false)
            }
        }
    }
}

/// Returns the reason why a trial cannot continue in a mode in which the agent does not ask.
fn unattended(mode: &str, policy: &str) -> String {
    format!(
        "the agent is in mode `{mode}`, in which it does not ask for every permission, but the policy is `{policy}`; set a mode in which it asks, with `session: {{mode: …}}` in the case or `session-mode` in the manifest"
    )
}

/// Returns why the output of an agent says nothing, if it has lines and none of them has a known form: they may be those of
/// another version.
fn nothing_known(lines: u64) -> Option<String> {
    match lines {
        0 => None,
        1 => Some("the only line of its output has no known form".to_owned()),
        _ => Some(format!("none of the {} of its output has a known form", plural(lines, "line"))),
    }
}

/// The cause reported for a program that prints its help instead of an error.
const PRINTED_HELP: &str = "it printed its help: its version may not know an option of the command";

/// Returns the last line of a text. Some programs add a hint to their message, in a line of its own in parentheses, a line that
/// names a page to read or the option for help, or their whole help.
fn last_line(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let (last, before) = lines.split_last()?;
    match before.last() {
        _ if is_help(last) => Some(stated_error(before).unwrap_or(PRINTED_HELP).to_owned()),
        Some(message) if last.starts_with('(') && last.ends_with(')') => Some(format!("{message} {last}")),
        Some(message) if names_page(last) => Some(error_with_heading(before).unwrap_or_else(|| (*message).to_owned())),
        Some(message) if names_help(last) => Some(stated_error(before).unwrap_or(message).to_owned()),
        _ => Some((*last).to_owned()),
    }
}

/// Returns true if a line is one of a list of options, with the type or the default of the option at its end.
fn is_help(line: &str) -> bool {
    let marks = ["[boolean]", "[string]", "[number]", "[array]", "[default: "];
    line.ends_with(']') && marks.iter().any(|mark| line.contains(mark))
}

/// Returns true if a line only names the option for help.
fn names_help(line: &str) -> bool {
    let begins = ["Try ", "Run ", "Use ", "See ", "For more information, try "];
    line.contains("--help") && begins.iter().any(|begin| line.starts_with(begin))
}

/// Returns the last line that states an error.
fn stated_error<'a>(lines: &[&'a str]) -> Option<&'a str> {
    let signs = ["error:", "unknown ", "unexpected argument", "unrecognized ", "required"];
    let states_it = |line: &&str| {
        let small = line.to_ascii_lowercase();
        !is_help(line) && signs.iter().any(|sign| small.contains(sign))
    };
    lines.iter().copied().rfind(states_it)
}

/// Returns true if a line only names a page to read.
fn names_page(line: &str) -> bool {
    let begins = ["Visit ", "See ", "For more ", "More information", "Learn more"];
    line.contains("://") && begins.iter().any(|begin| line.starts_with(begin))
}

/// Returns the last line that announces an error, such as `Model Configuration Error:`, with the line below it.
fn error_with_heading(lines: &[&str]) -> Option<String> {
    let heading = lines.iter().rposition(|line| line.to_ascii_lowercase().ends_with("error:"))?;
    Some(format!("{} {}", lines[heading], lines.get(heading + 1)?))
}

/// Translates a recorded session from its lines. Each event is passed on when it is final.
///
/// # Errors
/// Returns the error of reading the lines, or of `each`.
pub fn import<R: std::io::BufRead>(
    adapter: Adapter,
    manifest: &Manifest,
    named: bool,
    input: R,
    each: impl FnMut(Event) -> std::io::Result<()>,
) -> std::io::Result<Header> {
    import_finished(adapter, manifest, named, input, each).map(|finished| finished.header)
}

/// Translates the lines of a recorded session as [`import`] does.
///
/// # Errors
/// Returns the error of reading the lines, or of `each`.
pub fn import_lines(
    adapter: Adapter,
    manifest: &Manifest,
    named: bool,
    lines: impl Lines,
    mut each: impl FnMut(Event) -> std::io::Result<()>,
) -> std::io::Result<Finished> {
    let watch = |_: &WireLine, _: u64, translation: &mut Translation| translation.drain().try_for_each(&mut each);
    let translation = translated(adapter, manifest, named, lines, watch)?;
    let mut failed = None;
    let finished = translation.finish_into(|event| {
        if failed.is_none() {
            failed = each(event).err();
        }
    });
    failed.map_or(Ok(finished), Err)
}

/// Translates a recorded session as [`import`] does, and returns its usage, too.
///
/// # Errors
/// Returns the error of reading the lines, or of `each`.
pub fn import_finished<R: std::io::BufRead>(
    adapter: Adapter,
    manifest: &Manifest,
    named: bool,
    input: R,
    each: impl FnMut(Event) -> std::io::Result<()>,
) -> std::io::Result<Finished> {
    import_lines(adapter, manifest, named, Reader::new(input), each)
}

/// Translates the existing lines of a session that has not ended. Events that later lines may still change are passed
/// on in their current state.
///
/// # Errors
/// Returns the error of reading the lines, or of `each`.
pub fn import_so_far<R: std::io::BufRead>(
    adapter: Adapter,
    manifest: &Manifest,
    input: R,
    mut each: impl FnMut(&Event) -> std::io::Result<()>,
) -> std::io::Result<Header> {
    let watch =
        |_: &WireLine, _: u64, translation: &mut Translation| translation.drain().try_for_each(|event| each(&event));
    let mut translation = translated(adapter, manifest, true, Reader::new(input), watch)?;
    translation.recorder().pending().try_for_each(&mut each)?;
    Ok(translation.recorder().header().clone())
}

/// Translates a recorded session and calls `watch` after each line, with its number in the file and the translation.
///
/// # Errors
/// Returns the error of reading the lines, or of `watch`.
pub fn import_watched<R: std::io::BufRead>(
    adapter: Adapter,
    manifest: &Manifest,
    named: bool,
    input: R,
    watch: impl FnMut(&WireLine, u64, &mut Translation) -> std::io::Result<()>,
) -> std::io::Result<Finished> {
    translated(adapter, manifest, named, Reader::new(input), watch).map(Translation::finish)
}

/// Returns the translation of every line, not yet ended.
fn translated(
    adapter: Adapter,
    manifest: &Manifest,
    named: bool,
    mut reader: impl Lines,
    mut watch: impl FnMut(&WireLine, u64, &mut Translation) -> std::io::Result<()>,
) -> std::io::Result<Translation> {
    let mut header = Header::new(adapter.word(), manifest.seen());
    header.command_title = manifest.command_title.as_ref().map(ToString::to_string);
    header.unshown_tools.clone_from(&manifest.unshown_tools);
    header.unshown_outcomes.clone_from(&manifest.unshown_outcomes);
    if named {
        header.harness = Some(manifest.name.clone());
    }
    let mut translation: Option<Translation> = None;
    let mut line = WireLine::text(0, Dir::Recv, "");
    let mut was_timed = false;
    while reader.read_line(&mut line)? {
        let translation = translation.get_or_insert_with(|| {
            let mut header = header.clone();
            header.timed = (!reader.is_timed()).then_some(false);
            Translation::new(adapter, manifest, header)
        });
        // Lines that the reader skipped count, too: a notice names its line in the file.
        translation.lines = reader.line_number().saturating_sub(1);
        let repeated = reader.repeated_key(&line);
        translation.checked(&line, repeated);
        if reader.is_timed() {
            was_timed = true;
        } else {
            // The header in the log describes a session with times.
            translation.recorder.header().timed = Some(false);
            if std::mem::take(&mut was_timed) {
                let text = "a line of the wire log has no time, so no time of the session is known";
                translation.recorder.notice(NoticeCode::TimeOrder, text);
            }
        }
        watch(&line, reader.line_number(), translation)?;
    }
    let translation = translation.unwrap_or_else(|| {
        header.timed = Some(false);
        Translation::new(adapter, manifest, header)
    });
    Ok(translation)
}

/// Returns the kinds of events that a session over this adapter shows.
pub fn seen(adapter: Adapter) -> Seen {
    let can = adapter.can();
    Seen { tracing: can.tracing, interaction: can.interaction }
}

/// Returns the line with each number that 64 bits cannot hold replaced by a text with the same digits.
fn with_digits(line: &WireLine) -> Cow<'_, WireLine> {
    match big_numbers::as_texts(&line.line) {
        Cow::Borrowed(_) => Cow::Borrowed(line),
        Cow::Owned(text) => Cow::Owned(WireLine { line: text, ..line.clone() }),
    }
}
