//! The progress display of a run: live lines on a terminal, otherwise one line for each finished trial.

use std::io::Write;
use std::time::{Duration, Instant};

use super::text::{DIM, Look, YELLOW, duration, harmless, money, one_line, plural, verdict_style};
use crate::ids::TrialId;
use crate::ids::column_name;
use crate::own_environment;
use crate::result::{TrialResult, Warning};
use crate::run::events::{RunEvent, StageDecision};
use crate::text::some_of;
use crate::verdict::Verdict;

use clock::Clocked;
pub use live::{Live, Size};

mod clock;
mod live;

/// A display of the events of a run.
pub trait Watch: Send {
    /// Handles an event of the run.
    fn see(&mut self, event: &RunEvent);

    /// Ends the display: the run has ended or was interrupted.
    fn end(&mut self) {}
}

/// The facts that decide whether live progress may be shown.
#[derive(Debug, Clone, Copy)]
pub struct LiveConditions {
    /// Standard error is a terminal.
    pub is_terminal: bool,
    /// `evals` runs in CI.
    pub in_ci: bool,
    /// The user has disabled live progress, or the display would overwrite questions to the user.
    pub is_disabled: bool,
}

impl LiveConditions {
    /// Returns true if live progress may be shown: only on a terminal that can move its cursor, and not in CI or if it
    /// is disabled.
    pub fn may_move(self) -> bool {
        let is_dumb = || own_environment::var("TERM").is_some_and(|name| name == "dumb");
        self.is_terminal && !self.in_ci && !self.is_disabled && !is_dumb()
    }
}

/// A display with one line for each finished trial, and one a minute about those that take longer.
pub struct Plain<W>(Clocked<State<W>>);

struct State<W> {
    out: W,
    look: Look,
    running: Vec<(TrialId, Instant)>,
    /// The time of the last line about trials that take long.
    last_line: Option<Instant>,
    done: usize,
    planned: usize,
}

/// The time between two lines that name the running trials.
const INTERVAL: Duration = Duration::from_secs(60);
/// The maximum number of trials in that line.
const MAX_NAMED_TRIALS: usize = 4;

impl<W: Write + Send + 'static> Plain<W> {
    /// Makes a display that writes to this output.
    pub fn new(out: W, look: Look) -> Self {
        Self::telling_every(INTERVAL, out, look)
    }

    fn telling_every(interval: Duration, out: W, look: Look) -> Self {
        let state = State { out, look, running: Vec::new(), last_line: None, done: 0, planned: 0 };
        Self(Clocked::new(state, interval / 12, move |state| state.tell_if_due(interval)))
    }
}

impl<W: Write> State<W> {
    fn line(&mut self, line: &str) {
        // A display that can no longer be written must not end the run.
        let _ = self.out.write_all(format!("{line}\n").as_bytes()).and_then(|()| self.out.flush());
    }

    /// Writes a line about trials that have run for this long, unless one was written since.
    fn tell_if_due(&mut self, interval: Duration) {
        let is_due = self.last_line.is_none_or(|last_line| last_line.elapsed() >= interval);
        if is_due && self.tell(interval) {
            self.last_line = Some(Instant::now());
        }
    }

    /// Writes which trials have run for at least this time. Returns true if there are any.
    fn tell(&mut self, time: Duration) -> bool {
        let long = self.running.iter().filter(|(_, begun)| begun.elapsed() >= time);
        let names: Vec<String> = long
            .map(|(trial, begun)| {
                let seconds = begun.elapsed().as_secs();
                let TrialId { case, harness, arm, trial } = trial;
                let number = if *trial > 1 { format!(" #{trial}") } else { String::new() };
                let column = column_name(harness, arm);
                format!("{}{number} ({}) for {}", harmless(case), harmless(&column), duration(seconds * 1000))
            })
            .collect();
        if names.is_empty() {
            return false;
        }
        let text = format!("{} of {} done: {}", self.done, self.planned, some_of(names, MAX_NAMED_TRIALS));
        let line = one_line(&text, self.look.columns().saturating_sub(10) * 2, &self.look);
        self.line(&format!("{}  {line}", self.look.paint(DIM, "RUNNING ")));
        true
    }
}

impl<W: Write + Send + 'static> Watch for Plain<W> {
    fn see(&mut self, event: &RunEvent) {
        self.0.with(|state| state.see(event));
    }

    fn end(&mut self) {
        self.0.end();
    }
}

impl<W: Write> State<W> {
    fn see(&mut self, event: &RunEvent) {
        let look = self.look;
        match event {
            RunEvent::Planned { trials, skipped } => {
                self.planned = self.done + trials;
                self.line(&planned(*trials, *skipped));
            }
            RunEvent::Started { trial, .. } => {
                self.running.retain(|(running, _)| running != trial);
                self.running.push((trial.clone(), Instant::now()));
            }
            RunEvent::Retry { .. } | RunEvent::NotRun { .. } | RunEvent::NotRerun { .. } => {
                self.line(&oddity(event, &look))
            }
            RunEvent::StageEnded { trials, decision } => self.line(&after_stage(*trials, decision)),
            RunEvent::Finished { result } => {
                let id = result.id();
                self.running.retain(|(running, _)| *running != id);
                self.done += usize::from(result.verdict != Verdict::Skipped);
                self.line(&finished(result, &look));
            }
        }
    }
}

/// Returns the line about a stage of `--trials auto`.
fn after_stage(trials: u32, decision: &StageDecision) -> String {
    let trials = plural(trials as usize, "trial");
    let text = match decision {
        StageDecision::Clear => format!("clear after {trials} of each case"),
        StageDecision::StillNotClear => format!("still not clear after {trials} of each case, the maximum"),
        StageDecision::NothingToCompare => format!(
            "ends after {trials} of each case, as no case can be compared, or agents could read files of their own case; if \
             trials were errored, `evals run --resume RUN --rerun errored` runs them again and goes on"
        ),
        StageDecision::GoesOn(next) => format!("not clear after {trials} of each case; going on to {next}"),
    };
    format!("--trials auto: {text}")
}

fn planned(trials: usize, skipped: usize) -> String {
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    format!("{} to run{skipped}", plural(trials, "trial"))
}

/// Returns the line about a finished trial: verdict, case, column, time, cost, and the main reason if it did not pass.
fn finished(result: &TrialResult, look: &Look) -> String {
    let word = format!("{:<8}", result.verdict.word().to_uppercase());
    let mut parts = vec![place(&result.id())];
    parts.extend(result.duration_ms().map(duration));
    parts.extend(result.metrics.cost().filter(|_| result.was_paid()).map(|cost| look.amount(cost, money)));
    let line = format!("{}  {}", look.paint(verdict_style(result.verdict), &word), parts.join("  "));
    match why(result) {
        // The rest, such as the output of a command, is in the report.
        Some(why) => {
            let why = one_line(first_line(&why), look.columns().saturating_sub(10), look);
            format!("{line}\n          {}", look.paint(DIM, &why))
        }
        None => line,
    }
}

/// Returns the first line of a text that has one.
fn first_line(text: &str) -> &str {
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()
}

/// Returns a short reason why a trial did not pass.
fn why(result: &TrialResult) -> Option<String> {
    if let Some(reason) = &result.skipped {
        return Some(reason.clone());
    }
    if let Some(error) = &result.error {
        return Some(format!("{}: {}", error.category.word(), error.message));
    }
    let wanted = match result.verdict {
        Verdict::Fail => Some(false),
        Verdict::Ungraded => None,
        Verdict::Pass | Verdict::Errored | Verdict::Skipped => return None,
    };
    let is_ungraded = result.verdict == Verdict::Ungraded;
    let decides = |warning: &&Warning| warning.fails_the_trial() || (is_ungraded && warning.withholds_the_verdict());
    if let Some(warning) = result.warnings.iter().find(decides) {
        return Some(warning.to_string());
    }
    let counted = || result.grades.iter().filter(|grade| !grade.diagnostic && grade.passed == wanted);
    let grade = counted().find(|grade| grade.gate).or_else(|| counted().next());
    match grade {
        Some(grade) => Some(format!("{}: {}", grade.name, grade.reason)),
        None => result.stop.as_ref().map(|stop| {
            let detail = stop.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
            format!("{}{detail}", stop.reason.word())
        }),
    }
}

fn place(TrialId { case, harness, arm, trial }: &TrialId) -> String {
    let number = if *trial > 1 { format!(" #{trial}") } else { String::new() };
    harmless(&format!("{case}{number}  {}", column_name(harness, arm))).replace('\n', " ")
}

/// Returns the line about an event that is not a result.
fn oddity(event: &RunEvent, look: &Look) -> String {
    let (word, text) = match event {
        RunEvent::Retry { trial, attempt, why } => {
            ("RETRY   ", format!("{}  attempt {attempt} was errored, trying again: {why}", place(trial)))
        }
        RunEvent::NotRun { count, why } => ("NOT RUN ", format!("{}: {why}", plural(*count, "trial"))),
        RunEvent::NotRerun { count, why } => ("KEPT    ", format!("{} not run again: {why}", plural(*count, "trial"))),
        RunEvent::Planned { trials, skipped } => ("PLAN    ", planned(*trials, *skipped)),
        RunEvent::Started { trial, .. } => ("START   ", place(trial)),
        RunEvent::StageEnded { trials, decision } => return after_stage(*trials, decision),
        RunEvent::Finished { result } => return finished(result, look),
    };
    let text = one_line(&text, look.columns().saturating_sub(10), look);
    format!("{}  {text}", look.paint(YELLOW, word))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// An output that a test can read while a display writes to it.
    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_trial_that_takes_long_is_told_again_and_again() {
        let out = Written::default();
        let mut display = Plain::telling_every(Duration::from_millis(60), out.clone(), Look::PLAIN);
        let trial = TrialId { case: "slow".into(), harness: "mine".into(), arm: "default".into(), trial: 1 };
        display.see(&RunEvent::Planned { trials: 2, skipped: 0 });
        display.see(&RunEvent::Started { trial, attempt: 1 });
        let count = || String::from_utf8(out.0.lock().unwrap().clone()).unwrap().matches("RUNNING").count();
        let begun = Instant::now();
        while count() < 2 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        display.end();
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("RUNNING   0 of 2 done: slow (mine) for "), "{text}");
        assert!(count() >= 2, "{text}");
    }
}
