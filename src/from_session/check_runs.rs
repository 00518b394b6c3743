//! The runs of the checks of a session: how each ended, and whether an earlier failure shows that the work made the check pass.
//! Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::commands::{self, Check};
use super::edits::{self, Edit};
use super::intervening::{Intervening, Kind};
use super::{Checked, NotPassed, SessionContext, conditions, no_result};
use crate::adapter::claude_stream::background::says_goes_on;
use crate::grader::test_run::{any_test_ran, without_colour};
use crate::trace::CallStatus;
use crate::trace::calls::Call;

/// The effects of a session's calls, in their order.
#[derive(Debug, Default)]
pub(super) struct CallHistory {
    pub runs: Vec<CheckRun>,
    /// The changes of files in the workspace.
    pub edits: Vec<Edit>,
    /// Everything that may have decided how a check ended, besides the edits.
    pub intervening: Vec<Intervening>,
    /// True if something may have changed since the session began.
    pub is_changed: bool,
    /// True if the open shell of the agent may be in another folder than the workspace.
    pub has_left_workspace: bool,
}

impl CallHistory {
    /// Returns the last run of each check, in the order of the session.
    pub(super) fn last_runs(&self) -> Vec<LastRun<'_>> {
        let mut runs_of_line: BTreeMap<&str, Vec<&CheckRun>> = BTreeMap::new();
        for run in &self.runs {
            runs_of_line.entry(&run.check.line).or_default().push(run);
        }
        let mut last_runs = Vec::new();
        for run in &self.runs {
            let same = runs_of_line.get(run.check.line.as_str()).map(Vec::as_slice).unwrap_or_default();
            if same.last().is_some_and(|last| last.seq == run.seq) {
                let earlier = same.iter().copied().filter(|it| it.seq < run.seq).collect();
                last_runs.push(LastRun { run, earlier, history: self });
            }
        }
        last_runs
    }
}

#[derive(Debug)]
pub(super) struct CheckRun {
    pub check: Check,
    pub seq: u64,
    pub outcome: Result<(), NotPassed>,
    result_seq: u64,
    /// The conditions that the call states, such as the sandbox.
    conditions: BTreeMap<String, Value>,
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

impl CheckRun {
    /// Reads the run of a check from its call. `history` holds the calls before.
    pub(super) fn of(call: &Call, check: Check, session: &SessionContext, history: &CallHistory) -> Self {
        let outcome = passed(call, session.shows_failures);
        let failed = outcome == Err(NotPassed::Failed);
        let output = without_colour(call.output.as_deref().unwrap_or_default());
        let shown_by = || no_result::shown_by(&check, call.exit_code, &output, session.workspace());
        let no_result = failed.then(shown_by).flatten();
        let is_verdict = failed && !check.leaves_out && no_result.is_none() && is_verdict(call);
        let is_build = |it: &&Intervening| matches!(it.kind, Kind::Build { .. });
        let is_built = history.intervening.iter().filter(is_build).any(|it| it.may_decide(&check));
        Self {
            seq: call.seq,
            result_seq: call.result_seq,
            conditions: conditions::of_call(call, session.sandbox_at(call.result_seq)),
            no_result,
            is_verdict,
            shows_failure: failed && no_result::shows_failure(&output),
            missing_module: failed.then(|| no_result::missing_module(&output)).flatten(),
            of_before: is_verdict && !history.is_changed && !is_built,
            shows_tests: outcome.is_ok() && any_test_ran(&output).is_some(),
            outcome,
            check,
        }
    }

    /// Returns why the failure of this run says nothing about a later run that passed, if the runs themselves show it.
    fn no_cause_for(&self, passed: &CheckRun) -> Option<Intervening> {
        if let Some(evidence) = &self.no_result {
            return Some(Intervening::new(self.seq, Kind::NoResult(evidence.clone())));
        }
        let key = conditions::difference(&self.conditions, &passed.conditions).filter(|_| self.is_verdict)?;
        let kind = if key == conditions::SANDBOX { Kind::SandboxChanged } else { Kind::OtherConditions(key) };
        Some(Intervening::new(passed.seq, kind))
    }
}

/// The last run of a check, with the runs of the same check before it.
#[derive(Debug)]
pub(super) struct LastRun<'a> {
    pub run: &'a CheckRun,
    earlier: Vec<&'a CheckRun>,
    history: &'a CallHistory,
}

impl<'a> LastRun<'a> {
    /// Returns the check of a run that passed. `touched` are the files that the session changed, and `user_inputs` the `seq` of
    /// each event in which the user wrote something.
    pub(super) fn checked(&self, touched: &BTreeSet<String>, user_inputs: &[u64]) -> Checked {
        let run = self.run;
        let settings: Vec<String> =
            touched.iter().filter(|path| commands::decides(path, &run.check)).cloned().collect();
        let may_tell_apart = !self.may_pass_before() && settings.is_empty();
        // The last failure before any change: if nothing but edits follows it, the edits are the cause, unless they
        // were taken back. Packages may have been what was missing.
        let last_failure = self.comparable_failures().filter(|it| it.of_before).max_by_key(|it| it.seq);
        let parallel_edit = last_failure.and_then(|failure| self.edit_during(failure));
        let failure = last_failure.filter(|_| may_tell_apart && parallel_edit.is_none());
        let failure = failure.filter(|failure| self.only_edits_follow(failure));
        let other_cause = || self.other_cause(last_failure, parallel_edit);
        Checked {
            check: run.check.clone(),
            seq: run.seq,
            failed_before: failure.is_some(),
            intervening: (may_tell_apart && failure.is_none()).then(other_cause).flatten(),
            typed_between: failure
                .and_then(|failure| user_inputs.iter().copied().find(|seq| *seq > failure.seq && *seq < run.seq)),
            hides_failure: failure.is_some_and(|failure| !failure.shows_failure),
            missing_module: failure
                .and_then(|failure| failure.missing_module.clone())
                .filter(|module| !touched.iter().any(|path| no_result::may_provide(path, module))),
            changed_after: self.history.edits.iter().any(|edit| edit.seq > run.seq),
            settings,
            shows_tests: run.shows_tests,
        }
    }

    /// Returns true if the check may also have passed before the first change: it then does not always tell the states apart.
    fn may_pass_before(&self) -> bool {
        let first_change = self.history.edits.iter().map(|edit| edit.seq).min();
        let may_pass = |it: &CheckRun| !it.is_verdict && it.outcome != Err(NotPassed::Failed);
        first_change.is_some_and(|at| self.earlier.iter().any(|it| it.seq < at && may_pass(it)))
    }

    /// Returns the earlier failures under the same conditions that are what the check found.
    fn comparable_failures(&self) -> impl Iterator<Item = &'a CheckRun> {
        let is_comparable = move |it: &&CheckRun| self.is_in_same_shell(it) && it.conditions == self.run.conditions;
        self.earlier.iter().copied().filter(is_comparable).filter(|it| it.is_verdict)
    }

    /// Returns true if another run had the shells of the last one. Another shell may find other programs.
    fn is_in_same_shell(&self, other: &CheckRun) -> bool {
        other.check.shells == self.run.check.shells
    }

    /// Returns an edit that was made while a failing run went on: calls of the same message have no order.
    fn edit_during(&self, failure: &CheckRun) -> Option<&'a Edit> {
        self.history.edits.iter().find(|edit| edit.seq > failure.seq && edit.seq < failure.result_seq)
    }

    /// Returns true if edits that remain follow a failure, and no other event that may decide how the check ends.
    fn only_edits_follow(&self, failure: &CheckRun) -> bool {
        let ended = self.history.edits.iter().filter(|edit| edit.result_seq < self.run.result_seq);
        let since = ended.filter(|edit| edit.seq > failure.seq && edit.seq < self.run.seq);
        !self.other_events().any(|it| it.seq > failure.seq) && edits::remain(since)
    }

    /// Returns the events before the run, besides edits, that may decide how the check ends.
    fn other_events(&self) -> impl Iterator<Item = &'a Intervening> {
        self.history.intervening.iter().filter(move |it| it.since < self.run.seq && it.may_decide(&self.run.check))
    }

    /// Returns the event because of which the earlier failures do not count.
    fn other_cause(&self, last_failure: Option<&CheckRun>, parallel_edit: Option<&Edit>) -> Option<Intervening> {
        let first_event = || self.other_events().min_by_key(|it| it.seq).cloned();
        let of_edit = |edit: &Edit| Intervening::new(edit.seq, Kind::InParallel(edit.path.clone()));
        let in_same_shell = |it: &&&CheckRun| self.is_in_same_shell(it);
        self.comparable_failures()
            .next()
            .and_then(|_| first_event())
            .or_else(|| parallel_edit.map(of_edit))
            .or_else(|| self.earlier.iter().filter(in_same_shell).find_map(|it| it.no_cause_for(self.run)))
            .or_else(|| last_failure.map(|_| Intervening::new(self.run.seq, Kind::NoChange)))
    }
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
