//! The report for GitHub Actions: annotations on the lines of the cases that something is to be said of. What else it
//! shows of a step, its summary, is the Markdown report.

use std::io::{self, Write};
use std::path::Path;

use super::cells::column_name;
use super::escape::{LOOK, bounded, command_data, command_property};
use super::problems::{self, CellProblem, ProblemKind};
use super::text::{harmless, one_line, plural};
use super::{Report, commands, snapshots};
use crate::result::TrialResult;
use crate::run::CaseRecord;

/// So many errors, and so many warnings, are shown of one step.
pub const SHOWN: usize = 10;
/// The longest summary of a step, in bytes.
pub const SUMMARY: usize = 1 << 20;
/// So many characters are kept of a message.
const MESSAGE: usize = 2_000;

/// Writes an annotation for each cell that did not pass: errors for failed ones, warnings for the others. Where there
/// are more than the service shows, the last one says how many.
///
/// # Errors
/// The output could not be written.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let problems = problems::cells(report);
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.iter().partition(|it| it.kind == ProblemKind::Failed);
    let differing: Vec<_> = snapshots::differing(report).collect();
    // Cells that fail and snapshots that differ share what the service shows; each kind says at least how many there are.
    let for_snapshots = differing.len().min(SHOWN.saturating_sub(errors.len()).max(SHOWN / 2));
    for (level, problems, room) in [("error", errors, SHOWN - for_snapshots), ("warning", warnings, SHOWN)] {
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

/// File and line of the grader that decided it, else those where the case begins; nothing where the case lies outside
/// of the repository.
fn place(case: &CaseRecord, result: Option<&TrialResult>, root: Option<&Path>) -> Option<(String, usize)> {
    let decided = result.and_then(|result| {
        let failed = problems::open_grades(result).into_iter().find(|grade| !grade.diagnostic)?;
        case.graders.iter().find(|place| place.name == failed.name)
    });
    let at_grader = decided.and_then(|place| Some((in_repository(case, &place.file, root)?, place.line)));
    at_grader.or_else(|| Some((in_repository(case, &case.path, root)?, 1)))
}

/// The path of a file of a case in the repository.
fn in_repository(case: &CaseRecord, file: &Path, root: Option<&Path>) -> Option<String> {
    let root = match root {
        Some(root) => root,
        None => case.path.ancestors().skip(1).find(|folder| folder.join(".git").exists())?,
    };
    Some(file.strip_prefix(root).ok()?.to_string_lossy().into_owned())
}
