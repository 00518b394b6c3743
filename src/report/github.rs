//! The report for GitHub Actions: annotations on the lines of cases. The summary of a step is the Markdown
//! report.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use super::decisions::{self, About, Decision};
use super::escape::{LOOK, bounded, command_data, command_property};
use super::problems::{self, CellProblem, ProblemKind};
use super::text::{harmless, one_line, plural};
use super::{Report, commands, notes};
use crate::result::TrialResult;
use crate::run::CaseRecord;
use crate::statistics::gates::GateVerdict;

/// The maximum number of errors, and of warnings, that GitHub shows of a step.
pub const SHOWN: usize = 10;
/// The maximum size of a step's summary, in bytes.
pub const SUMMARY: usize = 1 << 20;
/// The maximum number of characters of a message.
const MESSAGE: usize = 2_000;

enum AnnotationSubject<'a> {
    /// A cell. Other cells may have the same error.
    Cell(&'a CellProblem<'a>),
    /// An exit decision outside the cells.
    Decision(&'a Decision),
}

/// Writes an annotation for each cell that did not pass, and for every other exit decision that does not pass: errors for
/// failures, warnings for the others. Further warnings name files of their own cases that agents could read, and tell of
/// agents that had other inputs than their cases name now. GitHub shows a limited number of annotations, which the kinds
/// share; the last annotation of a kind states how many are left out.
///
/// # Errors
/// Returns an error if the output could not be written.
pub fn write(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut groups: BTreeMap<(About, &str), Vec<AnnotationSubject<'_>>> = BTreeMap::new();
    let problems = problems::cells(report);
    for problem in &problems {
        // In a comparison of an arm with itself a failed cell decides nothing.
        let is_error = decisions::verdict_of(report, problem.cell) == Some(GateVerdict::Fail);
        let level = if is_error && problem.kind == ProblemKind::Failed { "error" } else { "warning" };
        groups.entry((About::Cell, level)).or_default().push(AnnotationSubject::Cell(problem));
    }
    for decision in report.decisions.iter().filter(|it| it.verdict != GateVerdict::Pass && !it.about.is_in_cell()) {
        let is_error = decision.verdict == GateVerdict::Fail && decision.quarantine.is_none();
        let level = if is_error { "error" } else { "warning" };
        groups.entry((decision.about, level)).or_default().push(AnnotationSubject::Decision(decision));
    }
    let on_passes = [notes::case_in_workspace(report), notes::other_inputs(report)];
    let on_passes: Vec<String> = on_passes.into_iter().flatten().collect();
    let mut rooms = BTreeMap::from([("error", SHOWN), ("warning", SHOWN - on_passes.len())]);
    for (&(about, level), subjects) in &groups {
        let others = groups.iter().filter(|((other, of), _)| *of == level && *other > about);
        let others: Vec<usize> = others.map(|(_, subjects)| subjects.len()).collect();
        let Some(left) = rooms.get_mut(level) else { continue };
        let room = subjects.len().min(left.saturating_sub(others.iter().sum()).max(*left / (others.len() + 1)));
        *left -= room;
        group(report, (about, level), subjects, room, out)?;
    }
    // Cells that passed have no annotation of their own.
    on_passes.iter().try_for_each(|note| writeln!(out, "::warning title=evals::{}", command_data(&harmless(note))))
}

fn group(
    report: &Report,
    (about, level): (About, &str),
    all: &[AnnotationSubject<'_>],
    room: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (shown, rest) = all.split_at(if all.len() > room { room.saturating_sub(1) } else { room });
    for subject in shown {
        match subject {
            AnnotationSubject::Cell(problem) => annotation(report, level, problem, out)?,
            AnnotationSubject::Decision(decision) => decided(report, level, decision, out)?,
        }
    }
    if rest.is_empty() {
        return Ok(());
    }
    let count: usize = rest
        .iter()
        .map(|subject| if let AnnotationSubject::Cell(problem) = subject { 1 + problem.same.len() } else { 1 })
        .sum();
    let more = plural(count, &format!("more {}", about.word()));
    let run = commands::run_word(&report.run, &report.folder);
    let message = format!("and {more}; see all with `evals report {run}`");
    writeln!(out, "::{level} title=evals::{}", command_data(&message))
}

fn decided(report: &Report, level: &str, decision: &Decision, out: &mut dyn Write) -> io::Result<()> {
    let case = decision.case.as_ref().and_then(|id| report.run.case(id));
    let place = case.and_then(|case| in_repository(case, &case.path, report.root.as_deref()));
    let place = place.map(|file| format!("file={},line=1,", command_property(&file))).unwrap_or_default();
    let title = one_line(&decision.title, 200, &LOOK);
    let command = decision.command.as_ref().map(|command| format!("\n{command}")).unwrap_or_default();
    let quarantined = decision.quarantine.as_ref().map(|quarantine| format!("{quarantine}\n")).unwrap_or_default();
    let detail = if decision.detail.is_empty() { &decision.line } else { &decision.detail };
    let message = harmless(&format!("{quarantined}{}{command}", bounded(detail, MESSAGE)));
    writeln!(out, "::{level} {place}title={}::{}", command_property(&title), command_data(&message))
}

fn annotation(report: &Report, level: &str, problem: &CellProblem<'_>, out: &mut dyn Write) -> io::Result<()> {
    let cell = problem.cell;
    let of = cell.id.column().to_string();
    let title = one_line(&format!("{}: {} ({of})", problem.kind.word(), cell.id.case), 200, &LOOK);
    let mut lines = vec![problems::counts(cell)];
    let first = problem.places.first().map(|place| report.results.get(*place)).transpose()?;
    if let Some(result) = &first {
        lines.extend(problems::reasons(result));
    }
    lines.extend(problem.same_error());
    let mut message = harmless(&bounded(&lines.join("\n"), MESSAGE));
    if let Some(result) = &first {
        message.push_str(&format!("\n{}", harmless(&commands::show(&report.run, &report.folder, result))));
    }
    let case = report.run.case(&cell.id.case);
    let place = case.and_then(|case| place(case, first.as_deref(), report.root.as_deref()));
    let place = place.map(|(file, line)| format!("file={},line={line},", command_property(&file))).unwrap_or_default();
    writeln!(out, "::{level} {place}title={}::{}", command_property(&title), command_data(&message))
}

/// Returns the file and the line of the grader that decided the result, else of the beginning of the case. Returns
/// `None` if the case is outside the repository.
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
