//! `evals case from-session`: writes the draft of a case from a session.
//!
//! [`Observed`] holds what the session shows, [`commands`] decides which of its commands can grade another session,
//! [`write`] writes the draft, and [`redact`] masks what must not be in it. Pure; git and the files are the caller's.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

use crate::adapter::claude_stream::background::says_goes_on;
use crate::grader::test_run::{any_test_ran, without_colour};
use crate::trace::calls::{Call, Joiner};
use crate::trace::facts::{Reading, ReportedDetails};
use crate::trace::usage::UsageTotal;
use crate::trace::view;
use crate::trace::{Body, CallStatus, Event, Header, Lost, NoticeCode, Role, StopReason, ToolKind};

pub mod commands;
mod conditions;
mod edits;
pub mod intervening;
mod no_result;
pub mod redact;
pub mod write;

use commands::{Check, Unfit, read_only, set_ups};
use edits::Edit;
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
    apart: Vec<String>,
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
    unseen: Vec<Intervening>,
    /// The `seq` of each change of the agent's sandbox, in order.
    sandbox_changes: Vec<u64>,
    /// The `seq` of each prompt and each command of the program that the user typed, in order.
    typed: Vec<u64>,
}

/// A check that passed when it ran last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The check.
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
        let mut total = UsageTotal::default();
        let (mut turn_began, mut latest, mut worked) = (None, 0u64, 0u64);
        let mut goes_back = false;
        let mut at_command = false;
        // The last step with calls, and its first call.
        let mut last_step: Option<(u64, u64)> = None;
        for event in events {
            let is_prompt = matches!(&event.body, Body::Message(message) if message.role == Role::User);
            let is_work = matches!(event.body, Body::Message(_) | Body::ToolCall(_)) && !is_prompt;
            observed.works_at_command |= at_command && is_work && event.parent.is_none();
            calls.extend(joiner.event(event));
            total.event(event);
            match &event.body {
                Body::Message(message) if message.role == Role::User && event.parent.is_none() => {
                    worked = worked.saturating_add(turn_began.map_or(0, |began| latest.saturating_sub(began)));
                    turn_began = Some(event.at_ms);
                    at_command = false;
                    observed.typed.push(event.seq);
                    observed.attachments += usize::from(!message.attachments.is_empty());
                    if !message.text.trim().is_empty() {
                        observed.prompts.push(message.text.clone());
                    }
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
                        observed.unseen.push(Intervening::new(event.seq, Kind::Lost));
                    }
                }
                Body::Notice { code, text, .. } => match code {
                    NoticeCode::SlashCommand => {
                        at_command = true;
                        observed.typed.push(event.seq);
                    }
                    NoticeCode::UserCommand => {
                        observed.unseen.push(Intervening::new(event.seq, Kind::CommandOfUser));
                    }
                    NoticeCode::SandboxChanged => observed.sandbox_changes.push(event.seq),
                    NoticeCode::ChangedOnDisk => {
                        // The agent looks for such changes after a step, so the calls of the step may have come later.
                        let since = last_step.map_or(event.seq, |(_, first)| first.saturating_sub(1));
                        let kind = Kind::ChangedByOthers(text.clone());
                        observed.unseen.push(Intervening { since, ..Intervening::new(event.seq, kind) });
                    }
                    NoticeCode::BranchChanged => {
                        observed.unseen.push(Intervening::new(event.seq, Kind::BranchChanged(text.clone())));
                    }
                    NoticeCode::CompactSummary if observed.prompts.is_empty() => observed.begins_with_summary = true,
                    _ => {}
                },
                _ => {}
            }
            goes_back |= event.at_ms < latest;
            latest = event.at_ms;
        }
        calls.extend(joiner.rest());
        worked = worked.saturating_add(turn_began.map_or(0, |began| latest.saturating_sub(began)));
        // Between times that go back, the time that passed is unknown.
        let is_known = header.is_timed() && turn_began.is_some() && !goes_back;
        observed.worked_ms = Some(worked).filter(|_| is_known);
        observed.tokens = total.tokens().and_then(|amount| amount.exact());
        observed.cost_usd = total.cost_usd().and_then(|amount| amount.exact()).filter(|cost| *cost > 0.0);
        if header.capabilities.tracing {
            let steps: BTreeSet<u64> = calls.iter().map(|call| call.call.step).collect();
            observed.tool_calls = Some(calls.len() as u64);
            observed.steps = Some(steps.len() as u64);
        }
        let reading = Reading {
            workspace: header.cwd.clone(),
            command_title: header.command_title.as_deref().and_then(|title| Regex::new(title).ok()),
            ..Reading::default()
        };
        observed.look_at(header, &reading, &calls);
        observed
    }

    fn look_at(&mut self, header: &Header, reading: &Reading, calls: &[Call]) {
        let shows_failures = header.session.as_ref().is_some_and(|session| session.shows_failures);
        // Claude Code keeps its shell open, so that a `cd` holds for the next call.
        let is_claude = header.adapter.starts_with("claude-code");
        let keeps_shell = is_claude;
        // Claude Code has two states, in the sandbox and outside it. Another agent may have more, so each change is a new one.
        let sandbox_changes = std::mem::take(&mut self.sandbox_changes);
        let sandbox_at = |seq: u64| {
            let changes = sandbox_changes.iter().filter(|at| **at < seq).count();
            if is_claude { changes % 2 } else { changes }
        };
        let workspace = header.cwd.as_deref();
        self.find_changes_by_others(reading, calls);
        let mut runs: Vec<Run> = Vec::new();
        let mut edits: Vec<Edit> = Vec::new();
        // Everything that may have decided how a check ended, besides the edits.
        let mut others = self.unseen.clone();
        let mut was_touched = false;
        let mut has_left = false;
        for call in calls {
            let details = ReportedDetails::of_joined(call);
            self.denied += usize::from(call.status == CallStatus::Denied);
            was_touched |= self.unseen.iter().any(|it| it.since < call.seq);
            if !call.status.carried_out() {
                continue;
            }
            // The folder of the agent, if the session shows it, and the one in which the call ran.
            let agent_in = call.call.cwd.as_deref();
            let ran_in = folder_of(call).map_or(agent_in.map(str::to_owned), |folder| Some(absolute(folder, agent_in)));
            let changes = call.call.kind.changes_files();
            if (changes && call.status != CallStatus::Error) || !call.diffs.is_empty() {
                was_touched = true;
                let there = match agent_in {
                    Some(folder) => Reading { workspace: Some(folder.to_owned()), ..reading.clone() },
                    None => reading.clone(),
                };
                let paths = details.paths(&there);
                let is_read = |paths: &&Vec<String>| paths.iter().all(|path| path != view::UNREAD_PATH);
                match paths.seen().filter(is_read) {
                    Some(paths) if !paths.is_empty() => {
                        let relative = |path: &str| view::relative(&absolute(path, agent_in), workspace);
                        let mut paths: Vec<String> = paths.iter().map(|path| relative(path)).collect();
                        if workspace.is_none() {
                            let shorter: Vec<String> = paths.iter().map(|path| format!("/{path}")).collect();
                            // An absolute path may be the one of a file that the call also names in the workspace.
                            paths.retain(|path| {
                                !path.starts_with('/') || !shorter.iter().any(|end| end != path && path.ends_with(end))
                            });
                        }
                        // A change elsewhere explains nothing about the workspace.
                        for path in paths.iter().filter(|path| self.is_inside(path)) {
                            edits.extend(edits::of_call(call, path, relative));
                        }
                        let elsewhere = paths.iter().find(|path| !self.is_inside(path)).cloned();
                        others.extend(elsewhere.map(|path| Intervening::new(call.seq, Kind::EditElsewhere(path))));
                        paths.iter().for_each(|path| self.touch(path));
                    }
                    _ => {
                        self.hides_paths = true;
                        others.push(Intervening::new(call.seq, Kind::HiddenEdit));
                    }
                }
            }
            if intervening::only_reads(&call.call) {
                continue;
            }
            if call.call.kind != ToolKind::Execute {
                if !changes {
                    was_touched = true;
                    let name = call.call.name.clone().or_else(|| call.call.title.clone()).unwrap_or_default();
                    others.push(Intervening::new(call.seq, Kind::Tool(name)));
                }
                continue;
            }
            self.ran_commands = true;
            let command = details.command(reading);
            let Some(own) = command.seen() else {
                was_touched = true;
                others.push(Intervening::new(call.seq, Kind::HiddenCommand));
                continue;
            };
            let moved = commands::leaves_workspace(own, workspace);
            let folder = ran_in.filter(|folder| Some(folder.as_str()) != workspace);
            let line = match &folder {
                Some(folder) => commands::within(folder, own),
                None => own.to_owned(),
            };
            let set_ups = set_ups::set_ups(&line, workspace);
            if call.status != CallStatus::Error {
                let more: Vec<String> = set_ups.into_iter().filter(|it| !self.set_ups.contains(it)).collect();
                self.set_ups.extend(more);
            }
            self.apart.extend(commands::working_trees(&line, workspace));
            let mut of_check = None;
            let is_unknown = has_left && moved.is_none() && agent_in.is_none();
            match commands::check(&line, workspace) {
                None => {}
                Some(Ok(_)) if is_unknown => self.is_unfit(&line, Unfit::UnknownFolder),
                Some(Ok(check)) if !check.folders.iter().all(|folder| self.is_inside(folder)) => {
                    self.is_unfit(&line, Unfit::RunsElsewhere)
                }
                Some(Err(unfit)) => self.is_unfit(&line, unfit),
                Some(Ok(check)) => {
                    of_check = Some(check.line.clone());
                    let outcome = passed(call, shows_failures);
                    let failed = outcome == Err(NotPassed::Failed);
                    let output = without_colour(call.output.as_deref().unwrap_or_default());
                    let shown_by = || no_result::shown_by(&check, call.exit_code, &output, workspace);
                    let no_result = failed.then(shown_by).flatten();
                    let shows_failure = failed && no_result::shows_failure(&output);
                    let missing_module = failed.then(|| no_result::missing_module(&output)).flatten();
                    let is_verdict = failed && !check.leaves_out && no_result.is_none() && is_verdict(call);
                    let is_build = |it: &&Intervening| matches!(it.kind, Kind::Build { .. });
                    let is_built = others.iter().filter(is_build).any(|it| it.may_decide(&check));
                    let of_before = is_verdict && !was_touched && !is_built;
                    let shows_tests = outcome.is_ok() && any_test_ran(&output).is_some();
                    let (seq, result_seq) = (call.seq, call.result_seq);
                    let conditions = conditions::of_call(call, sandbox_at(call.result_seq));
                    runs.push(Run {
                        check,
                        seq,
                        result_seq,
                        conditions,
                        outcome,
                        no_result,
                        is_verdict,
                        shows_failure,
                        missing_module,
                        of_before,
                        shows_tests,
                    });
                }
            }
            if let Some(command) = read_only::other_command(&line) {
                was_touched = true;
                others.push(Intervening { check: of_check, ..Intervening::new(call.seq, Kind::Command(command)) });
            } else if let Some((command, program)) = read_only::build(&line) {
                let build = Kind::Build { command, program };
                others.push(Intervening { check: of_check, ..Intervening::new(call.seq, build) });
            }
            has_left = if keeps_shell { moved.unwrap_or(has_left) } else { false };
        }
        // The runs of each check, and the check of each last run.
        let mut of_line: BTreeMap<&str, Vec<&Run>> = BTreeMap::new();
        for run in &runs {
            of_line.entry(&run.check.line).or_default().push(run);
        }
        let is_last = |run: &Run| {
            let last = of_line.get(run.check.line.as_str()).and_then(|all| all.last());
            last.is_some_and(|last| last.seq == run.seq)
        };
        let first_change = edits.iter().map(|edit| edit.seq).min();
        for run in runs.iter().filter(|run| is_last(run)) {
            let same = || of_line.get(run.check.line.as_str()).into_iter().flatten().filter(|it| it.seq < run.seq);
            let is_other = |it: &&Intervening| it.since < run.seq && it.may_decide(&run.check);
            let cause_before = || others.iter().filter(is_other).min_by_key(|it| it.seq).cloned();
            // A check that also passed before the first change does not always tell the states apart.
            let may_pass_before = first_change.is_some_and(|at| {
                same().any(|it| it.seq < at && !it.is_verdict && it.outcome != Err(NotPassed::Failed))
            });
            match run.outcome {
                Ok(()) => {
                    let files = self.touched.iter().filter(|path| commands::decides(path, &run.check));
                    let settings: Vec<String> = files.cloned().collect();
                    // Another shell may find other programs, and a sandbox may be what failed.
                    let in_same_shell = |it: &&&Run| it.check.shells == run.check.shells;
                    let is_alike = |it: &&&Run| in_same_shell(it) && it.conditions == run.conditions;
                    let failures = || same().filter(is_alike).filter(|it| it.is_verdict);
                    let may_tell_apart = !may_pass_before && settings.is_empty();
                    // The last failure before any change: if nothing but edits follows it, the edits are the cause, unless they
                    // were taken back. Packages may have been what was missing.
                    let last_failure = failures().filter(|it| it.of_before).max_by_key(|it| it.seq);
                    // Calls of the same message have no order.
                    let in_parallel = last_failure.and_then(|failure| {
                        edits.iter().find(|edit| edit.seq > failure.seq && edit.seq < failure.result_seq)
                    });
                    let failure = last_failure.filter(|_| may_tell_apart && in_parallel.is_none()).filter(|failure| {
                        let ended = edits.iter().filter(|edit| edit.result_seq < run.result_seq);
                        let since = ended.filter(|edit| edit.seq > failure.seq && edit.seq < run.seq);
                        !others.iter().filter(is_other).any(|it| it.seq > failure.seq) && edits::remain(since)
                    });
                    let cause = || {
                        let known = failures().next().and_then(|_| cause_before());
                        let of_edit = |edit: &Edit| Intervening::new(edit.seq, Kind::InParallel(edit.path.clone()));
                        known
                            .or_else(|| in_parallel.map(of_edit))
                            .or_else(|| same().filter(in_same_shell).find_map(|it| it.no_cause_for(run)))
                            .or_else(|| last_failure.map(|_| Intervening::new(run.seq, Kind::NoChange)))
                    };
                    self.checks.push(Checked {
                        check: run.check.clone(),
                        seq: run.seq,
                        failed_before: failure.is_some(),
                        intervening: (may_tell_apart && failure.is_none()).then(cause).flatten(),
                        typed_between: failure.and_then(|failure| {
                            self.typed.iter().copied().find(|seq| *seq > failure.seq && *seq < run.seq)
                        }),
                        hides_failure: failure.is_some_and(|failure| !failure.shows_failure),
                        missing_module: failure
                            .and_then(|failure| failure.missing_module.clone())
                            .filter(|module| !self.touched.iter().any(|path| no_result::may_provide(path, module))),
                        changed_after: edits.iter().any(|edit| edit.seq > run.seq),
                        settings,
                        shows_tests: run.shows_tests,
                    });
                }
                Err(why) => self.not_passed.push((run.check.line.clone(), why)),
            }
        }
    }

    /// Finds the edits that were refused because the file had changed, and since when others may have changed files: a call that
    /// finds a file changed shows only that the file changed since the call before it that read or changed the file. If a command
    /// of the agent ran in between, the command may have changed the file, and counts where it ran.
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
        for it in &mut self.unseen {
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
            self.unseen.push(Intervening { since, ..Intervening::new(seq, Kind::ChangedByOthers(path)) });
        }
    }

    fn is_unfit(&mut self, line: &str, why: Unfit) {
        if !self.unfit.iter().any(|(known, _)| known == line) {
            self.unfit.push((line.to_owned(), why));
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
        !leaves && !APART.iter().any(|folder| begins(folder)) && !self.apart.iter().any(|folder| begins(folder))
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

/// A run of a check.
#[derive(Debug)]
struct Run {
    check: Check,
    seq: u64,
    result_seq: u64,
    /// The conditions that the call states, such as the sandbox.
    conditions: BTreeMap<String, Value>,
    outcome: Result<(), NotPassed>,
    /// The line or exit code that shows a failure without a result of the check.
    no_result: Option<String>,
    /// True if it failed and the failure is what the check found.
    is_verdict: bool,
    /// True if the output of a failure shows a test that failed, or a place in a file.
    shows_failure: bool,
    /// The module that the output of a failure says is missing.
    missing_module: Option<String>,
    /// True if it failed in the state before the session, as far as the session shows: no call had changed anything.
    of_before: bool,
    /// True if its output shows whether a test ran.
    shows_tests: bool,
}

impl Run {
    /// Returns why the failure of this run says nothing about a later run that passed, if the runs themselves show it.
    fn no_cause_for(&self, passed: &Run) -> Option<Intervening> {
        if let Some(told) = &self.no_result {
            return Some(Intervening::new(self.seq, Kind::NoResult(told.clone())));
        }
        let key = conditions::difference(&self.conditions, &passed.conditions).filter(|_| self.is_verdict)?;
        let kind = if key == conditions::SANDBOX { Kind::SandboxChanged } else { Kind::OtherConditions(key) };
        Some(Intervening::new(passed.seq, kind))
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

/// Returns the folder that a call names for its command.
fn folder_of(call: &Call) -> Option<&str> {
    let input = call.call.input.as_ref()?;
    let folder = ["workdir", "cwd", "dir_path", "directory"].iter().find_map(|key| input.get(*key)?.as_str());
    folder.filter(|folder| !folder.is_empty())
}

/// Returns whether a command is known to have passed: it shows the exit code 0, or the agent shows every failure.
fn passed(call: &Call, shows_failures: bool) -> Result<(), NotPassed> {
    let asks_background = call.call.input.as_ref().is_some_and(|input| {
        ["run_in_background", "is_background", "background", "detached"]
            .iter()
            .any(|key| input.get(*key) == Some(&Value::Bool(true)))
    });
    let output = call.output.as_deref().unwrap_or_default();
    // A command that outlives its call shows neither its exit code nor its output, whatever the status says.
    let goes_on = asks_background || says_goes_on(output) || output.contains("\nProcess running with session ID");
    match (call.status, call.exit_code) {
        // Without an exit code it may be the agent that failed, or its reports contradict each other.
        (CallStatus::Error, None) if !shows_failures => Err(NotPassed::NotShown),
        (CallStatus::Error, _) => Err(NotPassed::Failed),
        (CallStatus::Ok, _) if goes_on => Err(NotPassed::NotShown),
        (CallStatus::Ok, _) if contradicts(output) => Err(NotPassed::Contradicted),
        (CallStatus::Ok, _) if any_test_ran(output) == Some(false) => Err(NotPassed::NoTest),
        (CallStatus::Ok, Some(0)) => Ok(()),
        (CallStatus::Ok, None) if shows_failures => Ok(()),
        _ => Err(NotPassed::NotShown),
    }
}

/// Returns true if a failed command came to a result of its own: its program ran, and nothing ended it.
fn is_verdict(call: &Call) -> bool {
    // A shell that does not find a program, and signals.
    if call.exit_code.is_some_and(|code| matches!(code, 124 | 126..=165)) {
        return false;
    }
    let output = call.output.as_deref().unwrap_or_default();
    // The output of a command that went on in the background is not shown.
    if says_goes_on(output) {
        return false;
    }
    let output = without_colour(output);
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let ends: Vec<&str> = [lines.next(), lines.next_back()].into_iter().flatten().collect();
    let is_cut = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        let text = lower.strip_prefix("error: ").unwrap_or(&lower).trim_start_matches(['[', '(']);
        ENDED.iter().any(|start| text.starts_with(start))
    };
    // `sh: pytest: not found`, `/usr/bin/python: No module named pytest`
    let is_missing = |line: &str| {
        line.ends_with(": command not found")
            || (line.ends_with(": not found") && line.contains("sh: "))
            || line
                .split_once(": No module named ")
                .is_some_and(|(program, _)| program.rsplit('/').next().is_some_and(|name| name.starts_with("python")))
    };
    !ends.iter().any(is_cut) && !output.lines().map(str::trim).any(is_missing)
}

/// The starts of lines about commands that did not come to their end.
const ENDED: [&str; 6] = [
    "command aborted",
    "command timed out",
    "command was interrupted",
    "request interrupted",
    "request was aborted",
    "timeout: ",
];

/// Returns true if the first or the last line of an output is what agents write about a failure.
fn contradicts(output: &str) -> bool {
    let mut lines = output.lines().map(str::trim).filter(|line| !line.is_empty());
    let ends = [lines.next(), lines.next_back()];
    ends.into_iter().flatten().any(|line| {
        let lower = line.to_ascii_lowercase();
        let text = lower.strip_prefix("error: ").unwrap_or(&lower).trim_start_matches(['[', '(']);
        let code = ["exit code: ", "exit code ", "command exited with code ", "process exited with code "]
            .iter()
            .find_map(|start| text.strip_prefix(start));
        let is_failure = code.is_some_and(|code| {
            let digits: String = code.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().is_ok_and(|code| code != 0)
        });
        is_failure || ENDED.iter().any(|start| text.starts_with(start))
    })
}
