//! `evals case from-session`: writes the draft of a case from a session.
//!
//! [`Observed`] holds what the session shows, [`commands`] decides which of its commands can grade another session,
//! [`write`] writes the draft, and [`redact`] masks what must not be in it. Pure; git and the files are the caller's.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::trace::calls::{Call, Joiner};
use crate::trace::facts::{Reading, ReportedDetails};
use crate::trace::usage::UsageTotal;
use crate::trace::view;
use crate::trace::{Body, CallStatus, Event, Header, Lost, Message, NoticeCode, Role, StopReason, ToolKind};

mod check_runs;
pub mod commands;
mod conditions;
mod edits;
pub mod intervening;
mod no_result;
pub mod redact;
pub mod write;

use check_runs::{CallHistory, CheckRun};
use commands::{Check, Unfit, read_only, set_ups};
use intervening::{Intervening, Kind};

/// The facts that a session shows about its work.
#[derive(Debug, Default)]
pub struct Observed {
    /// The prompts of the user, in order.
    pub prompts: Vec<String>,
    /// The number of prompts with attachments, which a case cannot hold.
    pub attachments: usize,
    /// The commands that checked something, each at the place of its last run.
    pub checks: Vec<Checked>,
    /// Commands that checked something and cannot be graders, with the reason.
    pub unfit: Vec<(String, Unfit)>,
    /// Commands that checked something and are not known to have passed.
    pub not_passed: Vec<(String, NotPassed)>,
    /// The files in the workspace that calls changed, relative to it.
    pub touched: BTreeSet<String>,
    /// The files elsewhere that calls changed.
    pub touched_elsewhere: BTreeSet<String>,
    /// Folders in the workspace that are working trees of their own, relative to it.
    separate_trees: Vec<String>,
    /// True if a call changed files and did not show which.
    pub hides_paths: bool,
    /// True if commands ran that may have changed files.
    pub ran_commands: bool,
    /// The commands that installed packages or started services and did not fail, in order.
    pub set_ups: Vec<String>,
    /// The tool calls, if the session shows them.
    pub tool_calls: Option<u64>,
    /// The steps, if the session shows calls.
    pub steps: Option<u64>,
    /// All tokens, if they are exactly known.
    pub tokens: Option<u64>,
    /// The cost in US dollars, if it is exactly known.
    pub cost_usd: Option<f64>,
    /// The time in which the agent worked, in milliseconds: without the user's time between prompts.
    pub worked_ms: Option<u64>,
    /// The reason why the session ended.
    pub stop: Option<StopReason>,
    /// True if a line of the session was lost.
    pub has_lost: bool,
    /// The number of calls that were refused.
    pub denied: usize,
    /// True if the agent worked on a command of its program, so that the text is not a prompt.
    pub works_at_command: bool,
    /// True if a summary of an earlier conversation comes before the first prompt.
    pub begins_with_summary: bool,
    /// Commands of the user, what others changed, and parts of the session that could not be read.
    outside_events: Vec<Intervening>,
    /// The `seq` of each change of the agent's sandbox, in order.
    sandbox_changes: Vec<u64>,
    /// The `seq` of each prompt and each command of the program that the user typed, in order.
    user_inputs: Vec<u64>,
}

/// A check that passed when it ran last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    pub check: Check,
    /// The `seq` of the call that ran the check last.
    pub seq: u64,
    /// True if the same check failed before anything was changed, and in between, the session shows changes of files and no
    /// other cause. The check can then distinguish the state before from the state after.
    pub failed_before: bool,
    /// The event because of which an earlier failure of the check does not count.
    pub intervening: Option<Intervening>,
    /// If the check failed before: the first event after the failure in which the user wrote something, before the check passed.
    pub typed_between: Option<u64>,
    /// True if the check failed before, and the output of the failure shows neither a test that failed nor a place in a file.
    pub hides_failure: bool,
    /// If the check failed before: the module that the failing run did not find, if no changed file may provide it.
    pub missing_module: Option<String>,
    /// True if files were changed after the last run of the check.
    pub changed_after: bool,
    /// The files that the session changed and that decide what the check does.
    pub settings: Vec<String>,
    /// True if the output of the last run shows whether a test ran.
    pub shows_tests: bool,
}

/// The reason why a check is not known to have passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotPassed {
    /// The last run of the check failed.
    #[error("its last run failed")]
    Failed,
    /// The result does not show the exit code.
    #[error("the session does not show its exit code")]
    NotShown,
    /// The text of the result contradicts its status.
    #[error("the status of its result says that it passed, and its output says that it failed")]
    Contradicted,
    /// No test ran.
    #[error("its last run ran no test")]
    NoTest,
}

impl Observed {
    /// Takes the events of a session.
    pub fn of(header: &Header, events: &[Event]) -> Self {
        let mut observed = Self::default();
        let mut joiner = Joiner::default();
        let mut calls = Vec::new();
        let mut usage = UsageTotal::default();
        let mut work_time = WorkTime::default();
        let mut at_command = false;
        // The last step with calls, and its first call.
        let mut last_step: Option<(u64, u64)> = None;
        for event in events {
            let is_prompt = matches!(&event.body, Body::Message(message) if message.role == Role::User);
            let is_work = matches!(event.body, Body::Message(_) | Body::ToolCall(_)) && !is_prompt;
            observed.works_at_command |= at_command && is_work && event.parent.is_none();
            calls.extend(joiner.event(event));
            usage.event(event);
            match &event.body {
                Body::Message(message) if message.role == Role::User && event.parent.is_none() => {
                    work_time.begin_turn(event.at_ms);
                    at_command = false;
                    observed.read_prompt(event.seq, message);
                }
                Body::Stop(stop) => observed.stop = Some(stop.reason),
                Body::ToolCall(call) if last_step.is_none_or(|(step, _)| step != call.step) => {
                    last_step = Some((call.step, event.seq));
                }
                Body::Notice {
                    lost: Some(lost @ (Lost::Line | Lost::Call | Lost::Outcome | Lost::Caller)), ..
                } => {
                    observed.has_lost = true;
                    if matches!(lost, Lost::Line | Lost::Call) {
                        observed.outside_events.push(Intervening::new(event.seq, Kind::Lost));
                    }
                }
                Body::Notice { code, text, .. } => {
                    at_command |= *code == NoticeCode::SlashCommand;
                    let step_began = last_step.map(|(_, first)| first);
                    observed.read_notice(event.seq, code, text, step_began);
                }
                _ => {}
            }
            work_time.event(event.at_ms);
        }
        calls.extend(joiner.rest());
        observed.worked_ms = work_time.worked_ms().filter(|_| header.is_timed());
        observed.tokens = usage.tokens().and_then(|amount| amount.exact());
        observed.cost_usd = usage.cost_usd().and_then(|amount| amount.exact()).filter(|cost| *cost > 0.0);
        if header.capabilities.tracing {
            let steps: BTreeSet<u64> = calls.iter().map(|call| call.call.step).collect();
            observed.tool_calls = Some(calls.len() as u64);
            observed.steps = Some(steps.len() as u64);
        }
        let session = SessionContext::of(header, std::mem::take(&mut observed.sandbox_changes));
        observed.find_changes_by_others(&session.reading, &calls);
        let history = observed.read_calls(&session, &calls);
        observed.read_checks(&history);
        observed
    }

    fn read_prompt(&mut self, seq: u64, message: &Message) {
        self.user_inputs.push(seq);
        self.attachments += usize::from(!message.attachments.is_empty());
        if !message.text.trim().is_empty() {
            self.prompts.push(message.text.clone());
        }
    }

    /// Reads a notice after which nothing is missing. `step_began` is the `seq` of the first call of the last step.
    fn read_notice(&mut self, seq: u64, code: &NoticeCode, text: &str, step_began: Option<u64>) {
        match code {
            NoticeCode::SlashCommand => self.user_inputs.push(seq),
            NoticeCode::UserCommand => self.outside_events.push(Intervening::new(seq, Kind::CommandOfUser)),
            NoticeCode::SandboxChanged => self.sandbox_changes.push(seq),
            NoticeCode::ChangedOnDisk => {
                // The agent looks for such changes after a step, so the calls of the step may have come later.
                let since = step_began.map_or(seq, |first| first.saturating_sub(1));
                let kind = Kind::ChangedByOthers(text.to_owned());
                self.outside_events.push(Intervening { since, ..Intervening::new(seq, kind) });
            }
            NoticeCode::BranchChanged => {
                self.outside_events.push(Intervening::new(seq, Kind::BranchChanged(text.to_owned())));
            }
            NoticeCode::CompactSummary if self.prompts.is_empty() => self.begins_with_summary = true,
            _ => {}
        }
    }

    /// Reads the calls in their order: what they changed, and the checks that they ran.
    fn read_calls(&mut self, session: &SessionContext, calls: &[Call]) -> CallHistory {
        let mut history = CallHistory { intervening: self.outside_events.clone(), ..CallHistory::default() };
        for call in calls {
            self.denied += usize::from(call.status == CallStatus::Denied);
            history.is_changed |= self.outside_events.iter().any(|it| it.since < call.seq);
            if !call.status.carried_out() {
                continue;
            }
            let changes_files = call.call.kind.changes_files();
            if (changes_files && call.status != CallStatus::Error) || !call.diffs.is_empty() {
                self.read_edits(call, session, &mut history);
            }
            if intervening::only_reads(&call.call) {
                continue;
            }
            if call.call.kind == ToolKind::Execute {
                self.read_command(call, session, &mut history);
            } else if !changes_files {
                history.is_changed = true;
                let name = call.call.name.clone().or_else(|| call.call.title.clone()).unwrap_or_default();
                history.intervening.push(Intervening::new(call.seq, Kind::Tool(name)));
            }
        }
        history
    }

    /// Reads a call that changed files: the files, and the changes of those in the workspace, as far as the call shows them.
    fn read_edits(&mut self, call: &Call, session: &SessionContext, history: &mut CallHistory) {
        history.is_changed = true;
        let (workspace, agent_folder) = (session.workspace(), call.call.cwd.as_deref());
        let reading = match agent_folder {
            Some(folder) => Reading { workspace: Some(folder.to_owned()), ..session.reading.clone() },
            None => session.reading.clone(),
        };
        let paths = ReportedDetails::of_joined(call).paths(&reading);
        let is_read = |paths: &&Vec<String>| paths.iter().all(|path| path != view::UNREAD_PATH);
        let Some(paths) = paths.seen().filter(is_read).filter(|paths| !paths.is_empty()) else {
            self.hides_paths = true;
            history.intervening.push(Intervening::new(call.seq, Kind::HiddenEdit));
            return;
        };
        let relative = |path: &str| view::relative(&absolute(path, agent_folder), workspace);
        let mut paths: Vec<String> = paths.iter().map(|path| relative(path)).collect();
        if workspace.is_none() {
            let shorter: Vec<String> = paths.iter().map(|path| format!("/{path}")).collect();
            // An absolute path may be the one of a file that the call also names in the workspace.
            let has_shorter_form = |path: &String| shorter.iter().any(|end| end != path && path.ends_with(end));
            paths.retain(|path| !path.starts_with('/') || !has_shorter_form(path));
        }
        // A change elsewhere explains nothing about the workspace.
        for path in paths.iter().filter(|path| self.is_inside(path)) {
            history.edits.extend(edits::of_call(call, path, relative));
        }
        let elsewhere = paths.iter().find(|path| !self.is_inside(path)).cloned();
        history.intervening.extend(elsewhere.map(|path| Intervening::new(call.seq, Kind::EditElsewhere(path))));
        paths.iter().for_each(|path| self.touch(path));
    }

    /// Reads a call that ran a command: what it set up, the check that it is, and what else it may have done.
    fn read_command(&mut self, call: &Call, session: &SessionContext, history: &mut CallHistory) {
        self.ran_commands = true;
        let command = ReportedDetails::of_joined(call).command(&session.reading);
        let Some(own_line) = command.seen() else {
            history.is_changed = true;
            history.intervening.push(Intervening::new(call.seq, Kind::HiddenCommand));
            return;
        };
        let workspace = session.workspace();
        let line = match folder_of_command(call).filter(|folder| Some(folder.as_str()) != workspace) {
            Some(folder) => commands::within(&folder, own_line),
            None => own_line.to_owned(),
        };
        if call.status != CallStatus::Error {
            let set_ups = set_ups::set_ups(&line, workspace);
            let more: Vec<String> = set_ups.into_iter().filter(|it| !self.set_ups.contains(it)).collect();
            self.set_ups.extend(more);
        }
        self.separate_trees.extend(commands::working_trees(&line, workspace));
        let leaves_workspace = commands::leaves_workspace(own_line, workspace);
        let is_folder_unknown = history.has_left_workspace && leaves_workspace.is_none() && call.call.cwd.is_none();
        let check = self.fit_check(&line, workspace, is_folder_unknown);
        let check_line = check.as_ref().map(|check| check.line.clone());
        if let Some(check) = check {
            let run = CheckRun::of(call, check, session, history);
            history.runs.push(run);
        }
        if let Some(command) = read_only::other_command(&line) {
            history.is_changed = true;
            let kind = Kind::Command(command);
            history.intervening.push(Intervening { check: check_line, ..Intervening::new(call.seq, kind) });
        } else if let Some((command, program)) = read_only::build(&line) {
            let kind = Kind::Build { command, program };
            history.intervening.push(Intervening { check: check_line, ..Intervening::new(call.seq, kind) });
        }
        history.has_left_workspace = session.keeps_shell() && leaves_workspace.unwrap_or(history.has_left_workspace);
    }

    /// Returns the check that a command line is, if it can be a grader; if it cannot, records the reason.
    fn fit_check(&mut self, line: &str, workspace: Option<&str>, is_folder_unknown: bool) -> Option<Check> {
        let why = match commands::check(line, workspace)? {
            Ok(_) if is_folder_unknown => Unfit::UnknownFolder,
            Ok(check) if !check.folders.iter().all(|folder| self.is_inside(folder)) => Unfit::RunsElsewhere,
            Ok(check) => return Some(check),
            Err(why) => why,
        };
        if !self.unfit.iter().any(|(known, _)| known == line) {
            self.unfit.push((line.to_owned(), why));
        }
        None
    }

    /// Reads how each check ended when it ran last.
    fn read_checks(&mut self, history: &CallHistory) {
        for last in history.last_runs() {
            match last.run.outcome {
                Ok(()) => {
                    let checked = last.checked(&self.touched, &self.user_inputs);
                    self.checks.push(checked);
                }
                Err(why) => self.not_passed.push((last.run.check.line.clone(), why)),
            }
        }
    }

    /// Finds the edits that were refused because another program had changed the file, and the earliest time of each change. A
    /// refused edit shows only that the file changed after the previous call that read or changed it. If a command of the agent
    /// ran in between, it may have made the change itself: the refusal is left out, and the command is an event of its own.
    fn find_changes_by_others(&mut self, reading: &Reading, calls: &[Call]) {
        let workspace = reading.workspace.as_deref();
        // The `seq` of each call that read or changed a file, and of its result.
        let mut known: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
        let mut refused: Vec<(u64, String)> = Vec::new();
        let mut of_agent: Vec<u64> = Vec::new();
        for call in calls {
            of_agent.extend(may_change_files(call, reading).then_some(call.seq));
            let changes = call.call.kind.changes_files();
            let failed = call.status == CallStatus::Error;
            let is_stale = || call.output.as_deref().is_some_and(intervening::is_stale);
            if !call.status.carried_out() || !(changes || call.call.kind == ToolKind::Read) {
                continue;
            }
            if failed && !(changes && is_stale()) {
                continue;
            }
            let paths = ReportedDetails::of_joined(call).paths(reading);
            for path in paths.seen().into_iter().flatten() {
                match failed {
                    true => refused.push((call.seq, path.clone())),
                    false => known.entry(path.clone()).or_default().push((call.seq, call.result_seq)),
                }
            }
        }
        // The call before, unless the agent itself may have changed the file since.
        let before = |path: &str, seq: u64| {
            let earlier = known.get(path).into_iter().flatten().filter(|(at, _)| *at < seq);
            let since = earlier.map(|(_, ended)| *ended).max().unwrap_or(0);
            (!of_agent.iter().any(|at| (since..seq).contains(at))).then_some(since)
        };
        for it in &mut self.outside_events {
            let Kind::ChangedByOthers(path) = &it.kind else { continue };
            let path = view::relative(path, workspace);
            let latest = calls.iter().filter(|call| call.result_seq < it.seq).max_by_key(|call| call.result_seq);
            let is_of_file =
                |call: &&Call| known.get(&path).is_some_and(|all| all.iter().any(|(at, _)| *at == call.seq));
            if let Some(since) = latest.filter(is_of_file).and_then(|call| before(&path, call.seq)) {
                it.since = it.since.min(since);
            }
        }
        for (seq, path) in refused {
            let Some(since) = before(&path, seq) else { continue };
            self.outside_events.push(Intervening { since, ..Intervening::new(seq, Kind::ChangedByOthers(path)) });
        }
    }

    fn touch(&mut self, path: &str) {
        if self.is_inside(path) {
            self.touched.insert(path.to_owned())
        } else {
            self.touched_elsewhere.insert(path.to_owned())
        };
    }

    /// Returns true if a path of a call is in the workspace, and in no other working tree within it.
    fn is_inside(&self, path: &str) -> bool {
        let begins =
            |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let leaves = path.starts_with(['/', '~']) || begins("..") || path.contains(":\\");
        let is_in_separate_tree = self.separate_trees.iter().any(|folder| begins(folder));
        !leaves && !APART.iter().any(|folder| begins(folder)) && !is_in_separate_tree
    }
}

/// The properties of a session that decide how its calls are read.
#[derive(Debug)]
struct SessionContext {
    reading: Reading,
    /// True if the agent shows every failure of a command.
    shows_failures: bool,
    is_claude: bool,
    /// The `seq` of each change of the agent's sandbox, in order.
    sandbox_changes: Vec<u64>,
}

impl SessionContext {
    fn of(header: &Header, sandbox_changes: Vec<u64>) -> Self {
        let reading = Reading {
            workspace: header.cwd.clone(),
            command_title: header.command_title.as_deref().and_then(|title| Regex::new(title).ok()),
            ..Reading::default()
        };
        Self {
            reading,
            shows_failures: header.session.as_ref().is_some_and(|session| session.shows_failures),
            is_claude: header.adapter.starts_with("claude-code"),
            sandbox_changes,
        }
    }

    /// Returns the folder of the session.
    fn workspace(&self) -> Option<&str> {
        self.reading.workspace.as_deref()
    }

    /// Returns true if a `cd` holds for the next call: Claude Code keeps its shell open.
    fn keeps_shell(&self) -> bool {
        self.is_claude
    }

    /// Returns the number of the state of the agent's sandbox at an event, from 0. Claude Code has two states, in the sandbox and
    /// outside it. Another agent may have more, so each change is a new one.
    fn sandbox_at(&self, seq: u64) -> usize {
        let changes = self.sandbox_changes.iter().filter(|at| **at < seq).count();
        if self.is_claude { changes % 2 } else { changes }
    }
}

/// The time in which the agent worked: from each prompt to the last event before the next one.
#[derive(Debug, Default)]
struct WorkTime {
    turn_began: Option<u64>,
    latest: u64,
    worked_ms: u64,
    goes_back: bool,
}

impl WorkTime {
    fn begin_turn(&mut self, at_ms: u64) {
        self.end_turn();
        self.turn_began = Some(at_ms);
    }

    fn end_turn(&mut self) {
        let turn = self.turn_began.map_or(0, |began| self.latest.saturating_sub(began));
        self.worked_ms = self.worked_ms.saturating_add(turn);
    }

    fn event(&mut self, at_ms: u64) {
        self.goes_back |= at_ms < self.latest;
        self.latest = at_ms;
    }

    /// Returns the time in milliseconds, if it is known. Between times that go back, the time that passed is unknown.
    fn worked_ms(mut self) -> Option<u64> {
        self.end_turn();
        (self.turn_began.is_some() && !self.goes_back).then_some(self.worked_ms)
    }
}

/// Folders of a repository that are not part of its working tree.
const APART: [&str; 3] = [".git", ".claude/worktrees", ".worktrees"];

/// Returns a path of a call as an absolute one, if the folder is known.
fn absolute(path: &str, folder: Option<&str>) -> String {
    match folder {
        Some(folder) if !path.starts_with(['/', '~']) && !path.contains(":\\") => format!("{folder}/{path}"),
        _ => path.to_owned(),
    }
}

/// Returns true if a call may change files and does not show which: a command or a tool that is not known to only read.
fn may_change_files(call: &Call, reading: &Reading) -> bool {
    if !call.status.carried_out() || intervening::only_reads(&call.call) {
        return false;
    }
    if call.call.kind != ToolKind::Execute {
        return !call.call.kind.changes_files();
    }
    let command = ReportedDetails::of_joined(call).command(reading);
    command.seen().is_none_or(|line| read_only::other_command(line).is_some() || read_only::build(line).is_some())
}

/// Returns the folder in which a call ran its command: the one that the call names, or else the one of the agent.
fn folder_of_command(call: &Call) -> Option<String> {
    let agent_folder = call.call.cwd.as_deref();
    let named = call.call.input.as_ref().and_then(|input| {
        let folder = ["workdir", "cwd", "dir_path", "directory"].iter().find_map(|key| input.get(*key)?.as_str());
        folder.filter(|folder| !folder.is_empty())
    });
    named.map_or(agent_folder.map(str::to_owned), |folder| Some(absolute(folder, agent_folder)))
}
