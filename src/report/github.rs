//! The report for GitHub Actions: annotations on the lines of cases. The summary of a step is the Markdown
//! report.

use std::io::{self, Write};
use std::path::Path;

use super::compare::page::gate_word;
use super::escape::{LOOK, bounded, command_data, command_property};
use super::problems::{self, CellProblem, ProblemKind};
use super::text::{harmless, one_line, plural};
use super::{Report, commands, snapshots};
use crate::compare::gate::Gate;
use crate::ids::column_name;
use crate::result::TrialResult;
use crate::run::CaseRecord;
use crate::statistics::gates::GateVerdict;

/// The maximum number of errors, and of warnings, that GitHub shows of a step.
pub const SHOWN: usize = 10;
/// The maximum size of a step's summary, in bytes.
pub const SUMMARY: usize = 1 << 20;
/// The maximum number of characters of a message.
const MESSAGE: usize = 2_000;

/// The number of annotations reserved for gates that do not pass, because these set the exit code.
const FOR_GATES: usize = 3;

/// Writes an annotation for each gate and each cell that did not pass: errors for failed ones, warnings for the
/// others. If there are more than GitHub shows, the last annotation states how many.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let problems = problems::cells(report);
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.iter().partition(|it| it.kind == ProblemKind::Failed);
    let differing: Vec<_> = snapshots::differing(report).collect();
    let not_passed = report.gates.iter().filter(|gate| gate.verdict != GateVerdict::Pass);
    let (lost, open): (Vec<_>, Vec<_>) = not_passed.partition(|gate| gate.verdict == GateVerdict::Fail);
    // All kinds share the limit; each kind states at least how many there are.
    let for_gates = |gates: usize, others: usize| gates.min(SHOWN.saturating_sub(others).max(FOR_GATES));
    let for_errors = SHOWN - gates("error", &lost, for_gates(lost.len(), errors.len() + differing.len()), report, out)?;
    let for_snapshots = differing.len().min(for_errors.saturating_sub(errors.len()).max(for_errors / 2));
    let mut for_warnings = SHOWN - gates("warning", &open, for_gates(open.len(), warnings.len()), report, out)?;
    if report.all_skipped() {
        nothing_judged(report, out)?;
        for_warnings -= 1;
    }
    let rooms = [("error", errors, for_errors - for_snapshots), ("warning", warnings, for_warnings)];
    for (level, problems, room) in rooms {
        let most = if problems.len() > room { room - 1 } else { room };
        for problem in problems.iter().take(most) {
            annotation(report, level, problem, out)?;
        }
        if let Some(rest) = problems.get(most..).filter(|rest| !rest.is_empty()) {
            let run = commands::run_word(&report.run, &report.folder);
            let count: usize = rest.iter().map(|problem| 1 + problem.same.len()).sum();
            let message = format!("and {}; `evals report {run}` tells of all", plural(count, "more case"));
            writeln!(out, "::{level} title=evals::{}", command_data(&message))?;
        }
    }
    let most = if differing.len() > for_snapshots { for_snapshots - 1 } else { for_snapshots };
    for compared in differing.iter().take(most) {
        let lines = bounded(&snapshots::lines(compared).join("\n"), MESSAGE).into_owned();
        let case = report.run.cases.iter().find(|case| case.id == compared.case);
        let place = case.and_then(|case| in_repository(case, &case.path, report.root.as_deref()));
        let place = place.map(|file| format!("file={},line=1,", command_property(&file))).unwrap_or_default();
        let title = one_line(&snapshots::title(compared), 200, &LOOK);
        let run = commands::run_word(&report.run, &report.folder);
        let message = harmless(&format!("{lines}\nevals snapshot review {run}"));
        writeln!(out, "::error {place}title={}::{}", command_property(&title), command_data(&message))?;
    }
    if let Some(rest) = differing.len().checked_sub(most).filter(|rest| *rest > 0) {
        let run = commands::run_word(&report.run, &report.folder);
        let more = plural(rest, "more snapshot");
        let message = format!("and {more}, not as accepted; `evals snapshot check {run}` tells of all");
        writeln!(out, "::error title=evals::{}", command_data(&message))?;
    }
    Ok(())
}

/// Writes gates that do not pass, up to the limit, and returns the remaining number of annotations.
fn gates(level: &str, gates: &[&Gate], room: usize, report: &Report, out: &mut dyn Write) -> io::Result<usize> {
    let most = if gates.len() > room { room - 1 } else { room };
    for gate in gates.iter().take(most) {
        let title = one_line(&format!("gate {}: {}", gate_word(gate.verdict), gate.arm), 200, &LOOK);
        let message = harmless(&bounded(&format!("{} {}", gate.arm, gate.text), MESSAGE));
        writeln!(out, "::{level} title={}::{}", command_property(&title), command_data(&message))?;
    }
    if gates.len() > room {
        let run = commands::run_word(&report.run, &report.folder);
        let more = plural(gates.len() - most, "more gate");
        let message = format!("and {more}; `evals report {run} --format markdown` tells of all");
        writeln!(out, "::{level} title=evals::{}", command_data(&message))?;
    }
    Ok(room)
}

/// Writes a warning if all cells were skipped: no cell has an annotation then, and the exit code is that of an
/// open run.
fn nothing_judged(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let why = report.results.iter().find_map(|result| result.skipped.as_deref()).unwrap_or_default();
    let trials = plural(report.summary.skipped, "trial");
    let message = harmless(&bounded(&format!("nothing was judged: {trials} skipped, the first since {why}"), MESSAGE));
    writeln!(out, "::warning title=everything was skipped::{}", command_data(&message))
}

fn annotation(report: &Report, level: &str, problem: &CellProblem<'_>, out: &mut dyn Write) -> io::Result<()> {
    let cell = problem.cell;
    let of = column_name(&cell.harness, &cell.arm);
    let title = one_line(&format!("{}: {} ({of})", problem.kind.word(), cell.case), 200, &LOOK);
    let mut lines = vec![problems::counts(cell)];
    if let Some(result) = problem.trials.first() {
        lines.extend(problems::reasons(result));
    }
    if !problem.same.is_empty() {
        let names: Vec<&str> = problem.same.iter().take(5).map(|cell| &*cell.case).collect();
        let more = problem.same.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("the same error: {}{more}", names.join(", ")));
    }
    let mut message = harmless(&bounded(&lines.join("\n"), MESSAGE));
    if let Some(result) = problem.trials.first() {
        message.push_str(&format!("\n{}", harmless(&commands::show(&report.run, &report.folder, result))));
    }
    let case = report.run.cases.iter().find(|case| case.id == cell.case);
    let place = case.and_then(|case| place(case, problem.trials.first().copied(), report.root.as_deref()));
    let place = place.map(|(file, line)| format!("file={},line={line},", command_property(&file))).unwrap_or_default();
    writeln!(out, "::{level} {place}title={}::{}", command_property(&title), command_data(&message))
}

/// Returns file and line of the grader that decided the result, else of the beginning of the case. Returns
/// `None` if the case lies outside the repository.
fn place(case: &CaseRecord, result: Option<&TrialResult>, root: Option<&Path>) -> Option<(String, usize)> {
    let decided = result.and_then(|result| {
        let failed = problems::open_grades(result).into_iter().find(|grade| !grade.diagnostic)?;
        case.graders.iter().find(|place| place.name == failed.name)
    });
    let at_grader = decided.and_then(|place| Some((in_repository(case, &place.file, root)?, place.line)));
    at_grader.or_else(|| Some((in_repository(case, &case.path, root)?, 1)))
}

/// Returns the path of a case's file relative to the repository.
fn in_repository(case: &CaseRecord, file: &Path, root: Option<&Path>) -> Option<String> {
    let root = match root {
        Some(root) => root,
        None => case.path.ancestors().skip(1).find(|folder| folder.join(".git").exists())?,
    };
    Some(file.strip_prefix(root).ok()?.to_string_lossy().into_owned())
}
