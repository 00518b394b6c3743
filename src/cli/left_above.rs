//! Settings that agents of a run may have left in the folders above the workspaces, for commands that grade or run its trials
//! later.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use crate::grade::GradeRecord;
use crate::grader::Kind;
use crate::ids::{TrialId, TrialRecord};
use crate::result::{TrialResult, Warning};
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::run::journal::{JournalEvent, JournalLine, TrialState};
use crate::trial::settings_above::SettingsAbove;

/// A span of time, in seconds since 1970. It has no end if an agent may still run.
type Span = (i64, Option<i64>);

/// The settings above the workspaces that the results of a run name, and the times in which agents ran whose results do not state
/// what they left there.
#[derive(Debug, Default)]
pub(super) struct LeftAbove {
    paths: Vec<String>,
    /// The attempts after which the engine looked at the folders above.
    looked: HashSet<(TrialId, u32)>,
    times: Vec<Span>,
}

impl LeftAbove {
    /// Adds the settings that all results of a run name, and its journal. A result that cannot be read names none.
    pub(super) fn see_run(&mut self, run: &RunFolder, record: &RunRecord, states: &HashMap<TrialId, TrialState>) {
        for trial in record.trials.iter().filter(|trial| trial.skip.is_none()) {
            let result = states.get(&trial.id()).filter(|state| state.finished.is_some());
            if let Some(Ok(result)) = result.map(|state| run.result_of(trial, state)) {
                self.see(&result);
            }
        }
        self.see_journal(run, record);
    }

    /// Adds the settings that a result names.
    pub(super) fn see(&mut self, result: &TrialResult) {
        self.paths.extend(result.warnings.iter().flat_map(Warning::settings_above).cloned());
        let by_command = |grade: &GradeRecord| Kind::needs_of(&grade.grader).commands;
        // In a trial whose graders run no commands, the engine does not look there.
        if result.error.is_none() && result.grades.iter().any(by_command) {
            self.looked.insert((result.id(), result.attempt));
        }
    }

    /// Adds the time in which agents of a run may have left settings that none of its results names. The caller has added the
    /// results.
    pub(super) fn see_journal(&mut self, run: &RunFolder, record: &RunRecord) {
        let lines = run.trusted_lines().unwrap_or_default();
        let has_trials = record.trials.iter().any(|trial: &TrialRecord| trial.skip.is_none());
        let span = match lines.is_empty() && has_trials {
            // Nothing is known about any attempt.
            true => Some((seconds(&record.started).saturating_sub(1), None)),
            false => unseen(&lines, &self.looked),
        };
        self.times.extend(span);
    }

    /// Counts the settings as changed.
    pub(super) fn count_in(&self, settings: SettingsAbove) -> SettingsAbove {
        let settings = settings.changed_earlier(&self.paths);
        self.times.iter().fold(settings, |settings, (since, until)| settings.changed_within(*since, *until))
    }
}

/// Returns a time in seconds since 1970. A text that is not a time counts as the earliest one.
fn seconds(text: &str) -> i64 {
    text.parse::<Timestamp>().map_or(0, Timestamp::as_second)
}

/// An attempt in a journal, with its times in milliseconds.
struct Times {
    started: i64,
    /// Absent if the attempt has not finished and no later attempt of its trial has begun.
    ended: Option<i64>,
    /// True if the engine looked at the folders above after it.
    looked: bool,
}

/// Returns the time in which attempts ran whose results do not state what they left: a killed or interrupted engine wrote none, an
/// errored trial is not graded, and graders without commands need no look. Everything that lay there when a later attempt began is
/// known if the engine looked after that one, because it began with the same stamps or with what this function found.
fn unseen(lines: &[JournalLine], looked: &HashSet<(TrialId, u32)>) -> Option<Span> {
    let mut attempts: Vec<Times> = Vec::new();
    let mut last: HashMap<TrialId, usize> = HashMap::new();
    for line in lines {
        let (case, harness) = (line.case.clone(), line.harness.clone());
        let id = TrialId { case, harness, arm: line.arm().to_owned(), trial: line.trial };
        let at = line.at.parse::<Timestamp>().map_or(0, Timestamp::as_millisecond);
        let open = last.get(&id).and_then(|place| attempts.get_mut(*place)).filter(|it| it.ended.is_none());
        if let Some(open) = open {
            open.ended = Some(at);
            open.looked = line.event == JournalEvent::Finished && looked.contains(&(id.clone(), line.attempt));
        }
        if line.event == JournalEvent::Started {
            last.insert(id, attempts.len());
            attempts.push(Times { started: at, ended: None, looked: false });
        }
    }
    let known = attempts.iter().filter(|it| it.looked).map(|it| it.started).max();
    let is_unseen = |it: &&Times| !it.looked && it.ended.is_none_or(|ended| known.is_none_or(|known| ended > known));
    let unseen: Vec<&Times> = attempts.iter().filter(is_unseen).collect();
    // File systems count time in steps, and an agent writes soon after its attempt has begun.
    let since = unseen.iter().map(|it| it.started).min()?.div_euclid(1000) - 1;
    let ends: Option<Vec<i64>> = unseen.iter().map(|it| it.ended).collect();
    Some((since, ends.and_then(|ends| ends.into_iter().max()).map(|end| end.div_euclid(1000) + 1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the span of a journal whose lines are given by second, event, trial and attempt, with the attempts after which the
    /// engine looked, both times from the beginning.
    fn span(lines: &[(u32, JournalEvent, u32, u32)], looked: &[(u32, u32)]) -> Option<(i64, Option<i64>)> {
        let id = |trial| TrialId { case: "a".to_owned(), harness: "h".to_owned(), arm: "default".to_owned(), trial };
        let line = |(second, event, trial, attempt): &(u32, JournalEvent, u32, u32)| JournalLine {
            at: format!("2026-01-01T00:00:{second:02}.000Z"),
            event: *event,
            case: "a".to_owned(),
            harness: "h".to_owned(),
            model: "default".to_owned(),
            arm: None,
            trial: *trial,
            attempt: *attempt,
            verdict: None,
            retry: false,
            digest: None,
            plan: None,
        };
        let lines: Vec<JournalLine> = lines.iter().map(line).collect();
        let looked = looked.iter().map(|(trial, attempt)| (id(*trial), *attempt)).collect();
        let zero = seconds("2026-01-01T00:00:00Z");
        unseen(&lines, &looked).map(|(since, until)| (since - zero, until.map(|until| until - zero)))
    }

    #[test]
    fn the_time_of_agents_of_which_no_result_tells_what_they_left_is_found() {
        use JournalEvent::{Finished, Started};
        let done = [(10, Started, 1, 1), (20, Finished, 1, 1)];
        assert_eq!(span(&done, &[(1, 1)]), None);
        // Without a grader that runs commands.
        assert_eq!(span(&done, &[]), Some((9, Some(21))));
        // Killed.
        let killed = [done[0], done[1], (30, Started, 2, 1)];
        assert_eq!(span(&killed, &[(1, 1)]), Some((29, None)));
        // What was found when the run went on is in the results of the trials that followed.
        let resumed = [(10, Started, 1, 1), (30, Started, 1, 2), (40, Finished, 1, 2)];
        assert_eq!(span(&resumed, &[(1, 2)]), None);
        // The other trial ran on after the last look.
        let at_once = [(10, Started, 1, 1), (12, Started, 2, 1), (20, Finished, 2, 1)];
        assert_eq!(span(&at_once, &[(2, 1)]), Some((9, None)));
        let errored = [(10, Started, 1, 1), (12, Started, 2, 1), (20, Finished, 2, 1), (25, Finished, 1, 1)];
        assert_eq!(span(&errored, &[(2, 1)]), Some((9, Some(26))));
    }
}
