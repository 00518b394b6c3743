//! The report for CI servers: JUnit XML with a suite for each harness and model, and a test case for each cell.
//!
//! A cell is one test case, whatever the number of its trials, so that names are stable from run to run and the
//! file shows a failure if the exit code is 1 or 3 (adr/0026). Trials that did not pass in a cell that passed
//! are its flaky runs.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use quick_junit::{FlakyOrRerun, NonSuccessKind, TestCase, TestCaseStatus, TestRerun, TestSuite};

use super::cells::{Cell, Column};
use super::decisions::{self, About, Decision};
use super::escape::{LOOK, xml};
use super::text::{one_line, plural};
use super::{Report, figures, mixed, problems, stored};
use crate::result::{TrialResult, Warning};
use crate::rounding;
use crate::statistics::gates::GateVerdict;
use crate::verdict::Verdict;

/// The maximum number of characters of a name or a message.
const MAX_LINE_CHARS: usize = 300;
/// The maximum number of characters of a description.
const MAX_DESCRIPTION_CHARS: usize = 4_000;
/// The maximum number of characters of an answer, and of standard error.
const OUTPUT: usize = 2_000;
/// The maximum number of trials of a cell that are written.
const TRIALS: usize = 50;

/// Writes the report.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut document = quick_junit::Report::new("evals");
    let places = report.places_by_cell();
    let beside_cells = report.decisions.iter().filter(|it| it.about != About::Cell && it.verdict != GateVerdict::Pass);
    let beside_cells: Vec<&Decision> = beside_cells.collect();
    for column in &report.columns {
        let mut suite = TestSuite::new(line(&column.id.to_string()));
        suite.extra.insert("timestamp".into(), line(&report.run.started).into());
        describe(&mut suite, report, column);
        let here = |cell: &Cell| cell.id.harness == column.id.harness && cell.id.arm == column.id.arm;
        for (cell, places) in report.cells.iter().zip(&places).filter(|(cell, _)| here(cell)) {
            let trials = report.results.at(places)?;
            let trials: Vec<&TrialResult> = trials.iter().map(Cow::as_ref).collect();
            suite.add_test_case(test_case(report, column, cell, &trials));
        }
        let here = beside_cells.iter().filter(|it| it.column.as_ref().is_none_or(|id| *id == column.id));
        suite.add_test_cases(here.map(|decision| beside(column, decision)));
        suite.time = sum(suite.test_cases.iter().map(|case| case.time));
        document.add_test_suite(suite);
    }
    document.time = sum(document.test_suites.iter().map(|suite| suite.time));
    let mut out = ToTheSchema { out, head: Some(Vec::new()), failed: None };
    let done = document.serialize(&mut out);
    match out.failed.take() {
        Some(error) => Err(error),
        None => done.map_err(io::Error::other),
    }
}

/// Returns the sum of the known times, or `None` if none is known.
fn sum(times: impl Iterator<Item = Option<Duration>>) -> Option<Duration> {
    times.flatten().reduce(Duration::saturating_add)
}

fn line(text: &str) -> String {
    xml(&one_line(text, MAX_LINE_CHARS, &LOOK), MAX_LINE_CHARS)
}

/// Adds the properties of a column to its suite.
fn describe(suite: &mut TestSuite, report: &Report, column: &Column) {
    let run = &report.run;
    let mut add = |name: &str, value: String| {
        suite.add_property((name.to_owned(), line(&value)));
    };
    add("run", run.run.clone());
    add("evals", run.evals.clone());
    if let Some(label) = &run.label {
        add("label", label.clone());
    }
    if report.going_on {
        add("state", report.state_so_far());
    }
    add("harness", column.id.harness.clone());
    add(if report.run.experiment.is_some() { "arm" } else { "model" }, column.id.arm.clone());
    if let Some(names) = mixed::changed_parts(run) {
        add("changed-during-run", names);
    }
    let [_, cost, tokens] = figures::taken(&column.figures, &LOOK);
    let score = |score: Option<f64>| score.map(|_| figures::score(score, &LOOK));
    let known = [
        ("score", score(column.score)),
        ("score.interval", column.interval.map(|it| figures::interval(Some(it), &LOOK))),
        ("score.errors-as-failures", score(column.score_with_errors)),
        ("completed", column.completion.map(|_| figures::completion(column, &LOOK))),
        ("cost", column.figures.cost().map(|_| cost)),
        ("tokens", column.figures.tokens().map(|_| tokens)),
    ];
    for (name, value) in known {
        value.into_iter().for_each(|value| add(name, value));
    }
}

fn test_case(report: &Report, column: &Column, cell: &Cell, trials: &[&TrialResult]) -> TestCase {
    let (mut status, shown) = status(report, cell, trials);
    let open: Vec<&TrialResult> =
        trials.iter().copied().filter(|it| !matches!(it.verdict, Verdict::Pass | Verdict::Skipped)).collect();
    // For a flaky cell, all trials are described, because its failure alone does not show that it is flaky.
    let is_shown = |result: &TrialResult| !cell.flaky() && shown.is_some_and(|shown| std::ptr::eq(shown, result));
    let others = open.iter().filter(|result| !is_shown(result));
    status.add_reruns(others.take(TRIALS).map(|result| rerun(report, result)));
    for result in trials {
        status.add_reruns(before(report, result));
    }
    if cell.flaky() {
        status.set_rerun_kind(FlakyOrRerun::Flaky);
    }
    let mut case = TestCase::new(line(&cell.id.case), status);
    case.set_classname(line(&column.id.to_string()));
    case.time = sum(trials.iter().map(|result| result.duration_ms().map(Duration::from_millis)));
    let mut out = String::new();
    for result in trials.iter().take(TRIALS) {
        write_outcome(&mut out, report, result);
    }
    if let Some(more) = trials.len().checked_sub(TRIALS).filter(|more| *more > 0) {
        out.push_str(&format!("and {}\n", plural(more, "more trial")));
    }
    if !out.is_empty() {
        case.set_system_out(out);
    }
    let tail = open.iter().find_map(|result| result.stop.as_ref()?.stderr_tail.as_deref());
    if let Some(tail) = tail.filter(|tail| !tail.trim().is_empty()) {
        case.set_system_err(xml(tail, OUTPUT));
    }
    case
}

/// Returns the test case for something that decides beside the cells of a column: a gate, a snapshot, trials
/// that were not run.
fn beside(column: &Column, decision: &Decision) -> TestCase {
    let kind = if decision.verdict == GateVerdict::Fail { NonSuccessKind::Failure } else { NonSuccessKind::Error };
    let what = decision.about.word();
    let mut status = match &decision.quarantine {
        Some(quarantine) => {
            let mut status = TestCaseStatus::skipped();
            status.set_type("quarantine").set_message(line(&format!("{quarantine}; {}", decision.line)));
            status
        }
        None => {
            let mut status = TestCaseStatus::non_success(kind);
            status.set_type(what.replace(' ', "_")).set_message(line(&decision.line));
            status
        }
    };
    if decision.quarantine.is_none() && !decision.line.ends_with(&decision.detail) {
        status.set_description(xml(&decision.detail, MAX_DESCRIPTION_CHARS));
    }
    let mut case = TestCase::new(line(&format!("{} ({what})", decision.name)), status);
    case.set_classname(line(&column.id.to_string()));
    if let Some(file) = &decision.file {
        case.set_system_out(xml(file, MAX_DESCRIPTION_CHARS));
    }
    case
}

/// Returns the status of a cell, and the trial that describes it. An unknown result is not a pass: a cell without a pass or
/// a fail is an error, with a type that states this.
fn status<'a>(report: &Report, cell: &Cell, trials: &[&'a TrialResult]) -> (TestCaseStatus, Option<&'a TrialResult>) {
    if let Some(quarantine) = cell.quarantine.as_ref().filter(|_| cell.verdict != Some(Verdict::Skipped)) {
        let word = cell.verdict.map_or("not run", Verdict::word);
        let mut status = TestCaseStatus::skipped();
        let message = format!("{}; {word}", decisions::quarantine_sentence(quarantine));
        status.set_type("quarantine").set_message(line(&message));
        return (status, None);
    }
    let first = |verdict: Verdict| trials.iter().copied().find(|result| result.verdict == verdict);
    let kind = match decisions::verdict_of(report, cell) {
        Some(GateVerdict::Pass) => return (TestCaseStatus::success(), None),
        None => {
            let reason = trials.iter().find_map(|result| result.skipped.as_deref());
            let mut status = TestCaseStatus::skipped();
            let message = line(reason.unwrap_or("what its case requires is missing"));
            status.set_type("skipped").set_message(message);
            return (status, None);
        }
        Some(GateVerdict::Fail) => NonSuccessKind::Failure,
        Some(GateVerdict::Inconclusive) => NonSuccessKind::Error,
    };
    let shown = cell.verdict.and_then(first).or_else(|| first(Verdict::Errored)).or_else(|| first(Verdict::Ungraded));
    (not_passed(kind, cell, shown), shown)
}

fn not_passed(kind: NonSuccessKind, cell: &Cell, shown: Option<&TrialResult>) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    let reasons = shown.map(problems::reasons).unwrap_or_default();
    let counts = if cell.tally.trials > 1 || shown.is_none() { problems::counts(cell) } else { String::new() };
    let parts = [counts.as_str(), reasons.first().map_or("", String::as_str)];
    let message = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
    status.set_message(line(&message));
    // The trials that ran have no problem, but a trial that was not run does not count as passed.
    let fallback = cell.verdict.map_or("not_run", Verdict::word);
    status.set_type(shown.map_or_else(|| fallback.to_owned(), type_of));
    if !reasons.is_empty() {
        status.set_description(xml(&reasons.join("\n"), MAX_DESCRIPTION_CHARS));
    }
    status
}

/// Returns the type of a trial's problem: the grader that failed, the category of the error, or the verdict's
/// word.
fn type_of(result: &TrialResult) -> String {
    let failed =
        problems::open_grades(result).into_iter().find(|grade| grade.passed == Some(false) && !grade.diagnostic);
    match (&result.error, failed, result.verdict) {
        (Some(error), ..) => error.category.word().to_owned(),
        (None, Some(grade), Verdict::Fail) => line(&grade.grader),
        (None, _, verdict) => verdict.word().to_owned(),
    }
}

/// Returns a rerun for a trial that did not pass beside other trials of its cell.
fn rerun(report: &Report, result: &TrialResult) -> TestRerun {
    let kind = if result.verdict == Verdict::Fail { NonSuccessKind::Failure } else { NonSuccessKind::Error };
    let reasons = problems::reasons(result);
    let mut rerun = TestRerun::new(kind);
    let why = reasons.first().map_or_else(|| result.verdict.word(), String::as_str);
    rerun.set_type(type_of(result)).set_message(line(&format!("trial {}: {why}", result.trial)));
    rerun.set_stack_trace(xml(&reasons.join("\n"), MAX_DESCRIPTION_CHARS));
    if let Some(folder) = report.trial_folder(&result.id()) {
        rerun.set_system_out(attachment(&folder.join("trace.jsonl")));
    }
    rerun
}

/// Returns the attempts before a trial's last attempt, without those whose results were discarded. For a trial that was rerun
/// because it failed in the original run, the failure is included.
fn before(report: &Report, result: &TrialResult) -> Vec<TestRerun> {
    let mut reruns = Vec::new();
    if result.attempt > 1
        && let Some(folder) = report.trial_folder(&result.id())
    {
        let discarded = result.discarded_attempts().map_or(0, |discarded| discarded.last);
        let earlier = stored::earlier_attempts(&folder, result);
        for earlier in earlier.iter().filter(|earlier| earlier.attempt > discarded).take(TRIALS) {
            let mut attempt = rerun(report, earlier);
            let reasons = problems::reasons(earlier);
            let why = reasons.first().map_or_else(|| earlier.verdict.word(), String::as_str);
            attempt.set_message(line(&format!("trial {}, attempt {}: {why}", earlier.trial, earlier.attempt)));
            let place = folder.join("attempts").join(earlier.attempt.to_string());
            attempt.set_system_out(attachment(&place.join("trace.jsonl")));
            reruns.push(attempt);
        }
    }
    if result.flaky && result.verdict == Verdict::Pass {
        let mut failed = TestRerun::new(NonSuccessKind::Failure);
        let why = result.warnings.iter().find(|warning| matches!(warning, Warning::Flaky { .. }));
        let why = why.map_or_else(|| "it failed before and passed now".to_owned(), Warning::to_string);
        failed.set_type("flaky").set_message(line(&why));
        reruns.push(failed);
    }
    reruns
}

/// Writes the outcome of a trial, its agent's final answer, and the path of its trace. A trial that passed has no reasons of its
/// own, so the warnings that its pass may mean something else follow its outcome.
fn write_outcome(out: &mut String, report: &Report, result: &TrialResult) {
    let score = result.score.map(|score| format!(", score {}", rounding::share(score.get()))).unwrap_or_default();
    out.push_str(&format!("trial {}: {}{score}\n", result.trial, result.verdict.word()));
    let is_of_pass = |it: &&Warning| matches!(it, Warning::CaseInWorkspace { .. } | Warning::OtherInputs);
    for warning in result.warnings.iter().filter(is_of_pass).filter(|_| result.verdict == Verdict::Pass) {
        out.push_str(&format!("{}\n", line(&format!("warning: {warning}"))));
    }
    let Some(folder) = report.trial_folder(&result.id()) else { return };
    if let Some(answer) = stored::answer(&folder) {
        out.push_str(&format!("{}\n", xml(&answer, OUTPUT).trim_end()));
    }
    out.push_str(&attachment(&folder.join("trace.jsonl")));
}

/// Returns the line by which CI servers find a file, or an empty text if the file does not exist.
fn attachment(path: &Path) -> String {
    if path.is_file() {
        format!("[[ATTACHMENT|{}]]\n", xml(&path.to_string_lossy(), usize::MAX))
    } else {
        String::new()
    }
}

/// A writer that removes the one attribute that the crate writes and the common schema does not have: `skipped`
/// of `testsuites`, whose suites each have their own.
struct ToTheSchema<'a> {
    out: &'a mut dyn Write,
    /// The beginning of the document, until the start tag of `testsuites` is complete.
    head: Option<Vec<u8>>,
    /// The write error, because the crate does not return it unchanged.
    failed: Option<io::Error>,
}

impl ToTheSchema<'_> {
    fn pass_on(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(mut head) = self.head.take() else { return self.out.write_all(bytes) };
        head.extend_from_slice(bytes);
        let text = String::from_utf8_lossy(&head);
        let whole = text.find("<testsuites").and_then(|start| Some((start, start + text.get(start..)?.find('>')?)));
        let Some((start, end)) = whole else {
            self.head = Some(head);
            return Ok(());
        };
        let element = text.get(start..end).unwrap_or_default();
        let without = element.find(" skipped=\"").and_then(|at| {
            let rest = element.get(at + " skipped=\"".len()..)?;
            Some(format!("{}{}", element.get(..at)?, rest.get(rest.find('"')? + 1..)?))
        });
        let rest = text.get(end..).unwrap_or_default();
        let front = text.get(..start).unwrap_or_default();
        write!(self.out, "{front}{}{rest}", without.as_deref().unwrap_or(element))
    }
}

impl Write for ToTheSchema<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Err(error) = self.pass_on(bytes) {
            let kind = error.kind();
            self.failed = Some(error);
            return Err(kind.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
