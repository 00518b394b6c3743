//! Translates the session files of Claude Code into events: the lines of its stream, with the prompts, the sub-agents
//! and the usage that such a file holds in another form.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::background::{self, NOTIFICATION, TAG};
use super::lenient::Text;
use super::lines::{Block, Line, Message, ToolUseResult};
use super::patch::patched;
use super::{INTERRUPTED, NOTICE_SUBTYPES, PROGRAM_WRITES, hash, malformed, outcome, texts, tools, unknown_block};
use crate::adapter::session_file::facts::Tokens;
use crate::adapter::{EndReport, Translate, errors, surrogates};
use crate::harness::Manifest;
use crate::trace::recorder::{CallReport, Continuation, Recorder, Voice};
use crate::trace::usage::Measure;
use crate::trace::{Agent, Exit, NoticeCode, Role, StopReason, Usage, UsageScope};
use crate::wire::WireLine;

/// Types of lines that hold no event: settings, requests to the model's service, and the state of the agent's program.
const BOOKKEEPING: [&str; 25] = [
    "agent-color",
    "agent-name",
    "agent-setting",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "attribution-snapshot",
    "content-replacement",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "progress",
    "speculation-accept",
    "started",
    "summary",
    "tag",
    "task-summary",
    "tools-used",
    "worktree-state",
];

/// The kinds of attachments about files that changed since the agent read them, but not by one of its tools for edits.
const CHANGED: [&str; 2] = ["edited_text_file", "edited_image_file"];
/// Texts that the agent writes behind the path of such a file.
const HAS_CHANGED: [&str; 2] = [" was modified, either by the user or by a linter", " changed on disk since you last"];

/// Facts about a whole session that its lines are translated with.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    /// The call that started each sub-agent, by the sub-agent's id.
    pub(crate) sub_agents: HashMap<String, String>,
    /// The number of lines of each message of the model, and the message's usage.
    pub(crate) messages: HashMap<String, (u32, Tokens)>,
    /// True if no branch of the session is left out, so that the agent's own totals are those of the trace.
    pub(crate) is_complete: bool,
    /// True if the file belongs to a sub-agent, which is then the main agent of the trace.
    pub(crate) is_sub_agent: bool,
}

/// A translator of the lines of session files.
pub(crate) struct Translator {
    inner: super::Translator,
    whole: Whole,
    last: Last,
    /// The prompts of the calls that start sub-agents, by hash, with the calls.
    tasks: HashMap<u64, String>,
    /// For sub-agents whose lines are in the main file: the call that started each, by a line of the sub-agent.
    sidechains: HashMap<String, String>,
    /// The output tokens of all messages so far.
    output: u64,
    /// True if the agent's own totals, which include sub-agents, follow the last message.
    has_totals: bool,
    /// True if the agent's program summarised the conversation, by a call of the model that no line shows.
    was_compacted: bool,
    /// The folder of the shell of each speaker: the main agent's, and those of sub-agents by their calls.
    folders: HashMap<Option<String>, String>,
    /// The branch of the repository in each folder of the main agent, as its last line shows it. A folder may be in a repository
    /// of its own.
    branches: HashMap<String, String>,
    /// The commands that have no result yet, by their calls.
    commands: HashSet<String>,
    /// True if the last command ran in the agent's sandbox.
    sandboxed: Option<bool>,
    /// The hash of the content of each file in the folder of the session, as the last read or edit left it.
    contents: HashMap<String, u64>,
}

/// The last thing that the main agent's conversation shows.
#[derive(Debug, Default, PartialEq)]
enum Last {
    #[default]
    Nothing,
    /// The agent is to speak.
    Open,
    /// The agent spoke its last word of a turn.
    Answer(StopReason, Option<String>),
    Failed(String),
    Interrupted,
}

impl Translator {
    pub(crate) fn new(manifest: &Manifest, whole: Whole) -> Self {
        Self {
            inner: super::Translator::new(manifest),
            whole,
            last: Last::default(),
            tasks: HashMap::new(),
            sidechains: HashMap::new(),
            output: 0,
            has_totals: false,
            was_compacted: false,
            folders: HashMap::new(),
            branches: HashMap::new(),
            commands: HashSet::new(),
            sandboxed: None,
            contents: HashMap::new(),
        }
    }

    fn line(&mut self, line: &mut Line<'_>, text: &str, recorder: &mut Recorder) {
        match line.kind.or_empty() {
            "assistant" | "user" => {
                self.origin(line, recorder);
                self.note_branch(line, recorder);
                match self.speaker(line) {
                    Ok(parent) => {
                        line.parent_tool_use_id.0 = parent.map(Into::into);
                        line.names_last_call(recorder);
                    }
                    Err(()) => {
                        return recorder.lost(NoticeCode::UnknownSubAgent, "a sub-agent whose call is not in the file");
                    }
                }
                if line.kind.or_empty() == "assistant" {
                    self.assistant(line, text, recorder);
                } else {
                    self.user(line, text, recorder);
                }
                // A call that changes the folder runs in the one before, so this comes last.
                if let Some(folder) = line.cwd.owned() {
                    self.folders.insert(line.parent(), folder);
                }
            }
            "system" => match line.subtype.or_empty() {
                code if NOTICE_SUBTYPES.contains(&code) => {
                    self.was_compacted |= code == "compact_boundary";
                    recorder.notice(code.into(), text);
                    self.inner.withdraw(line, recorder);
                }
                "" => recorder.notice(NoticeCode::UnknownLine, text),
                _ => {}
            },
            "attachment" => self.attachment(line, recorder),
            "cost-state" => self.totals(line, text, recorder),
            // The session may end before the model gets the text.
            "queue-operation" if line.content.or_empty().starts_with(TAG) => {
                self.inner.tasks.text(line.content.or_empty(), recorder);
            }
            "queue-operation" => {}
            kind if BOOKKEEPING.contains(&kind) => {}
            _ if super::has_calls(line) => recorder.did_unseen(NoticeCode::UnknownLine, text),
            _ => super::unknown_line(text, recorder),
        }
    }

    /// Reads the facts about the session that every line of the conversation repeats.
    fn origin(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        let header = recorder.header();
        if header.agent.is_none() {
            header.agent = Some(Agent { name: "Claude Code".to_owned(), version: line.version.owned() });
        }
        if header.cwd.is_none() {
            header.cwd = line.cwd.owned();
        }
        let kept = header.session.get_or_insert_default();
        kept.id = kept.id.take().or(line.kept_session.owned());
        // Outside a repository, and without a branch, this key is `HEAD` or empty.
        kept.branch = kept.branch.take().or(line.git_branch.owned().filter(|branch| branch != "HEAD"));
    }

    /// Notes the branch of a line. A sub-agent may have a working tree of its own.
    fn note_branch(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        let is_main = !line.is_sidechain.is_true() || self.whole.is_sub_agent;
        let Some(branch) = line.git_branch.get().filter(|_| is_main) else { return };
        let folder = line.cwd.owned().unwrap_or_default();
        if self.branches.insert(folder, branch.to_owned()).is_some_and(|before| before != branch) {
            recorder.notice_alone(NoticeCode::BranchChanged, branch);
        }
    }

    /// Returns the call that started the sub-agent of a line, or `None` for the main agent.
    ///
    /// # Errors
    /// Returns an error if a sub-agent wrote the line and the call is unknown.
    fn speaker(&mut self, line: &Line<'_>) -> Result<Option<String>, ()> {
        if !line.is_sidechain.is_true() || self.whole.is_sub_agent {
            return Ok(None);
        }
        let by_agent = line.agent_id.get().and_then(|agent| self.whole.sub_agents.get(agent).cloned());
        let call = by_agent
            .or_else(|| self.sidechains.get(line.parent_uuid.get()?).cloned())
            .or_else(|| self.tasks.get(&hash(texts(line.message.0.as_ref()?).trim())).cloned())
            .ok_or(())?;
        if let Some(uuid) = line.uuid.owned() {
            self.sidechains.insert(uuid, call.clone());
        }
        Ok(Some(call))
    }

    fn assistant(&mut self, line: &mut Line<'_>, text: &str, recorder: &mut Recorder) {
        if let Some(message) = &line.message.0 {
            self.note_inputs(message);
        }
        self.inner.assistant(line, text, recorder);
        self.has_totals = false;
        let Some(message) = &line.message.0 else { return };
        for id in message.content.0.iter().filter_map(|block| block.id.get()) {
            recorder.update(id, CallReport { cwd: line.cwd.owned(), ..CallReport::default() }, false);
        }
        let synthetic = message.model.get() == Some("<synthetic>") || line.is_api_error();
        if line.parent().is_none() {
            self.last = if line.is_api_error() {
                Last::Failed(texts(message))
            } else if synthetic {
                Last::Open
            } else {
                last_word(message)
            };
        }
        if !synthetic {
            self.count(message, recorder);
        }
    }

    /// Notes the prompts of sub-agents, and the calls of commands.
    fn note_inputs(&mut self, message: &Message<'_>) {
        for block in &message.content.0 {
            let Some(id) = block.id.get() else { continue };
            let value = |key: &str| block.input.as_ref().and_then(|input| input.get(key));
            if let Some(prompt) = value("prompt").and_then(Value::as_str) {
                self.tasks.insert(hash(prompt.trim()), id.to_owned());
            }
            if value("command").is_some() {
                self.commands.insert(id.to_owned());
            }
        }
    }

    /// Records the usage of a message at its last line: each of its lines repeats the usage.
    fn count(&mut self, message: &Message<'_>, recorder: &mut Recorder) {
        let Some(id) = message.id.get() else { return };
        let Some((lines, tokens)) = self.whole.messages.get_mut(id) else { return };
        *lines = lines.saturating_sub(1);
        if *lines > 0 {
            return;
        }
        let mut usage = Usage::of(UsageScope::Call);
        usage.input_tokens = tokens.input;
        usage.output_tokens = tokens.output;
        usage.cache_read_tokens = tokens.cache_read;
        usage.cache_write_tokens = tokens.cache_write;
        usage.thought_tokens = tokens.thought;
        usage.model = message.model.owned();
        if tokens.of_others > 0 {
            let own = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
            usage.total_tokens = Some(own.into_iter().flatten().fold(tokens.of_others, u64::saturating_add));
        }
        if tokens.is_partial {
            usage.at_least(Measure::TOKENS);
        }
        if tokens.is_invalid {
            recorder.notice(
                NoticeCode::UsageInvalid,
                "a count of the message's usage is not a number from 0 and is left out",
            );
        }
        self.output = self.output.saturating_add(tokens.output.unwrap_or(0));
        recorder.usage(usage, false);
    }

    fn user(&mut self, line: &Line<'_>, text: &str, recorder: &mut Recorder) {
        let Some(message) = &line.message.0 else { return recorder.notice(NoticeCode::UnknownLine, text) };
        let parent = line.parent();
        if line.is_compact_summary.is_true() {
            self.was_compacted = true;
            return recorder.notice(NoticeCode::CompactSummary, texts(message));
        }
        let is_result = |kind: &str| kind.ends_with("tool_result");
        let alone = message.content.0.iter().filter(|block| is_result(block.kind.or_empty())).count() == 1;
        for block in &message.content.0 {
            match block.kind.or_empty() {
                kind if is_result(kind) => {
                    // A call before this one, of the same message, may have changed the folder.
                    if let (Some(id), Some(folder)) = (block.tool_use_id.get(), self.folders.get(&parent)) {
                        recorder.update(id, CallReport { cwd: Some(folder.clone()), ..CallReport::default() }, false);
                    }
                    if alone {
                        self.note_sandbox(line, block, recorder);
                    }
                    self.inner.tool_result(line, block, alone, recorder);
                    if alone {
                        self.note_content(line, recorder);
                    }
                    if parent.is_none() {
                        self.last = Last::Open;
                    }
                }
                "text" => self.user_text(line, &parent, block.text.or_empty(), recorder),
                "image" | "document" => recorder.attach(Role::User, parent.clone(), tools::attachment(block)),
                _ => unknown_block(block, text, recorder),
            }
        }
    }

    /// Notes whether the command of a result ran in the agent's sandbox. The notice comes before the result: it is about this
    /// command and those after it.
    fn note_sandbox(&mut self, line: &Line<'_>, block: &Block<'_>, recorder: &mut Recorder) {
        let is_command = block.tool_use_id.get().is_some_and(|id| self.commands.remove(id));
        let Some(now) = line.sandboxed.0.filter(|_| is_command) else { return };
        if self.sandboxed.replace(now).is_some_and(|before| before != now) {
            let text = if now {
                "a command ran in the sandbox, and the one before it outside"
            } else {
                "a command ran outside the sandbox, and the one before it in it"
            };
            recorder.notice_alone(NoticeCode::SandboxChanged, text);
        }
    }

    /// Compares the content of a file before a read or an edit with what the read or edit before it left.
    fn note_content(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        let Some(details) = &line.tool_use_result.0 else { return };
        let Some((path, before, after)) = contents_of(details) else { return };
        // Files elsewhere, such as logs, are not the work's.
        let folder = recorder.header().cwd.clone().unwrap_or_default();
        let is_inside = path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with(['/', '\\']));
        if folder.is_empty() || !is_inside {
            return;
        }
        // The lines of a sub-agent may come later in the file than they happened.
        if line.parent().is_some() {
            self.contents.remove(path);
            return;
        }
        let known = self.contents.get(path).copied();
        let differs = before.zip(known).is_some_and(|(before, known)| hash(&plain_lines(before)) != known);
        if differs || details.user_modified.is_true() {
            recorder.notice_alone(NoticeCode::ChangedOnDisk, path);
        }
        match after {
            Some(after) => self.contents.insert(path.to_owned(), hash(&plain_lines(&after))),
            None => self.contents.remove(path),
        };
    }

    fn user_text(&mut self, line: &Line<'_>, parent: &Option<String>, text: &str, recorder: &mut Recorder) {
        if parent.is_none() && text.starts_with(INTERRUPTED) {
            self.last = Last::Interrupted;
        }
        let is_news = background::is_news(line, text);
        if is_news {
            self.inner.tasks.text(text, recorder);
        }
        let marked = is_news || line.is_synthetic.is_true() || line.is_meta.is_true();
        if let Some(path) = changed_file(text).filter(|_| marked) {
            return recorder.notice_alone(NoticeCode::ChangedOnDisk, path);
        }
        if marked || PROGRAM_WRITES.iter().any(|start| text.starts_with(start)) {
            // These are the user's own, in the agent's words.
            let code = match text {
                _ if marked => NoticeCode::SyntheticMessage,
                _ if text.starts_with("<bash-input>") => NoticeCode::UserCommand,
                _ if text.starts_with("<command-name>") || text.starts_with("<command-message>") => {
                    NoticeCode::SlashCommand
                }
                _ => NoticeCode::SyntheticMessage,
            };
            return recorder.notice(code, text);
        }
        self.prompt(parent.clone(), text, recorder);
    }

    /// Records a prompt of the user, or the task of a sub-agent.
    fn prompt(&mut self, parent: Option<String>, text: &str, recorder: &mut Recorder) {
        if parent.is_none() {
            self.end_turn(recorder);
            self.last = Last::Open;
        }
        recorder.say(Voice::User, parent, text, Continuation::Block);
    }

    /// Takes a prompt that the user typed while the agent worked, the agent's news of a task, or a file that changed.
    fn attachment(&mut self, line: &Line<'_>, recorder: &mut Recorder) {
        let Some(attachment) = &line.attachment.0 else { return };
        match attachment.kind.or_empty() {
            "queued_command" => {}
            kind if CHANGED.contains(&kind) => {
                return recorder.notice_alone(NoticeCode::ChangedOnDisk, attachment.filename.or_empty());
            }
            _ => return,
        }
        let blocks = &attachment.prompt.0;
        let is_news = blocks.first().is_some_and(|block| block.text.or_empty().starts_with(TAG));
        if is_news || attachment.mode.get() == Some(NOTIFICATION) {
            for text in blocks.iter().filter_map(|block| block.text.get()) {
                self.inner.tasks.text(text, recorder);
                recorder.notice(NoticeCode::SyntheticMessage, text);
            }
            return;
        }
        if attachment.mode.get().is_some_and(|mode| mode != "prompt") || line.is_sidechain.is_true() {
            return;
        }
        for block in blocks {
            recorder.say(Voice::User, None, block.text.or_empty(), Continuation::Block);
        }
    }

    /// Records the agent's own totals, unless they leave out a message or count another branch.
    fn totals(&mut self, line: &Line<'_>, text: &str, recorder: &mut Recorder) {
        if !self.whole.is_complete {
            return;
        }
        if !are_figures(text) {
            return recorder.notice(
                NoticeCode::UsageInvalid,
                "a figure of the session's totals is not a number from 0: they are left out",
            );
        }
        for mut usage in outcome::usages(line).into_iter().filter(|usage| usage.scope == UsageScope::Session) {
            if usage.output_tokens.is_some_and(|tokens| tokens < self.output) {
                recorder
                    .notice(NoticeCode::UsageDiffers, "the session's totals are smaller than the sum of its messages");
                continue;
            }
            if line.has_unknown_cost.is_true() {
                usage.at_least([Measure::CostUsd]);
            }
            self.has_totals = true;
            recorder.usage(usage, false);
        }
    }

    fn end_turn(&mut self, recorder: &mut Recorder) -> EndReport {
        let report = match std::mem::take(&mut self.last) {
            Last::Nothing | Last::Open => EndReport::None,
            Last::Answer(reason, detail) => EndReport::Ended { reason, detail },
            Last::Failed(detail) => EndReport::Failed { category: errors::by_text(&detail), detail },
            Last::Interrupted => EndReport::Ended { reason: StopReason::Cancelled, detail: None },
        };
        if report != EndReport::None {
            recorder.end_turn(matches!(report, EndReport::Ended { reason: StopReason::Cancelled, .. }));
        }
        report
    }
}

/// Returns the path of the file of which a text of the agent says that it changed.
fn changed_file(text: &str) -> Option<&str> {
    let begin = HAS_CHANGED.iter().find_map(|words| Some(text.split_once(*words)?.0))?;
    begin.rsplit_once("Note: ").map(|(_, path)| path)
}

/// A path, and the whole content of its file before a call and after it.
type Contents<'a> = (&'a str, Option<&'a str>, Option<Cow<'a, str>>);

/// Returns the path of a file that a call read or changed, with its whole content before the call and after it, if the result shows
/// them. A read of a part of a file shows nothing.
fn contents_of<'a>(details: &'a ToolUseResult<'_>) -> Option<Contents<'a>> {
    if let Some(read) = &details.file.0 {
        let is_to_the_end = read.num_lines.0.is_some() && read.num_lines.0 == read.total_lines.0;
        let is_whole = is_to_the_end && read.start_line.0 == Some(1);
        let text = read.content.0.as_deref().filter(|_| is_whole)?;
        return Some((read.file_path.get()?, Some(text), Some(Cow::Borrowed(text))));
    }
    let path = details.file_path.get()?;
    let before = details.original.0.as_deref();
    let edits = details.edits.0.iter().filter_map(|edit| edit.0.as_ref());
    let new: Vec<&str> =
        edits.map(|edit| &edit.new_string).chain([&details.new_string]).filter_map(Text::get).collect();
    if details.old_string.0.is_none() && new.is_empty() {
        return Some((path, before, details.content.0.as_deref().map(Cow::Borrowed)));
    }
    // What an edit asks for is not always what it does: it keeps the quotes of the file, and removes a line as a whole.
    let after = before.and_then(|before| patched(before, &details.patch, new));
    Some((path, before, after.map(|lines| Cow::Owned(lines.join("\n")))))
}

/// Returns the lines of a file without blank lines and the blanks at the ends of lines, which the agent itself adds and removes.
fn plain_lines(text: &str) -> Vec<&str> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim_end);
    lines.filter(|line| !line.is_empty()).collect()
}

/// Returns true if the figures of the agent's totals are numbers from 0.
fn are_figures(text: &str) -> bool {
    let line: Value = serde_json::from_str(text).unwrap_or_default();
    let is_figure = |value: &Value| value.is_null() || value.as_f64().is_some_and(|figure| figure >= 0.0);
    let of_models = line.get("modelUsage").and_then(Value::as_object).into_iter().flat_map(|models| models.values());
    let figures = of_models.filter_map(Value::as_object).flat_map(|model| {
        model.iter().filter(|(key, _)| key.ends_with("Tokens") || *key == "costUSD").map(|(_, value)| value)
    });
    figures.chain(line.get("totalCostUSD")).all(is_figure)
}

/// Returns the state of the conversation after a line of the main agent.
fn last_word(message: &Message<'_>) -> Last {
    let blocks = &message.content.0;
    let is_result = |block: &Block<'_>| block.kind.or_empty().ends_with("tool_result");
    // The model's service carries out some calls itself: their results are in the same message.
    let has_result = |call: &Block<'_>| {
        call.id.get().is_some_and(|id| blocks.iter().any(|it| is_result(it) && it.tool_use_id.get() == Some(id)))
    };
    let calls = blocks.iter().any(|block| block.kind.or_empty().ends_with("tool_use") && !has_result(block));
    let after_results = blocks.iter().rposition(is_result).map_or(0, |at| at + 1);
    let has_text = blocks.iter().skip(after_results).any(|block| block.kind.get() == Some("text"));
    match message.stop_reason.get() {
        _ if calls => Last::Open,
        Some("end_turn" | "stop_sequence") => Last::Answer(StopReason::EndTurn, None),
        Some("max_tokens") => Last::Answer(StopReason::MaxTokens, None),
        Some("refusal") => Last::Answer(StopReason::Refusal, None),
        Some("tool_use" | "pause_turn") => Last::Open,
        Some(other) => Last::Answer(StopReason::Other, Some(other.to_owned())),
        // Older versions keep no reason; a text without calls is an answer.
        None if has_text => Last::Answer(StopReason::EndTurn, None),
        None => Last::Open,
    }
}

impl Translate for Translator {
    fn recv(&mut self, wire: &WireLine, recorder: &mut Recorder) {
        let text = wire.line.trim();
        if text.is_empty() {
            return;
        }
        match surrogates::parse(text) {
            Ok(value @ Value::Object(_)) => {
                let text = value.to_string();
                match serde_json::from_str::<Line<'_>>(&text) {
                    Ok(mut line) => self.line(&mut line, &text, recorder),
                    Err(_) => recorder.lost(NoticeCode::UnknownLine, text.as_str()),
                }
            }
            read => malformed(read.ok().as_ref(), text, recorder),
        }
    }

    fn send(&mut self, _line: &WireLine, _recorder: &mut Recorder) {}

    fn finish(&mut self, recorder: &mut Recorder, _exit: Option<Exit>) -> EndReport {
        self.inner.settle_all(recorder);
        self.inner.sub_agents.settle(self.has_totals, recorder);
        if self.was_compacted && !self.has_totals {
            let text = "the usage of the summary of a compaction is not reported, so the totals are lower bounds";
            recorder.without_line();
            recorder.notice(NoticeCode::UsageIncomplete, text);
        }
        self.end_turn(recorder)
    }
}
