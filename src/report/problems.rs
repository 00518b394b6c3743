//! What a reader of a Report has to look at: trials and cells that did not pass, grouped, with the reasons. Pure.

use std::collections::HashMap;

use super::Report;
use super::cells::Cell;
use crate::grade::GradeRecord;
use crate::result::TrialResult;
use crate::trace::StopReason;
use crate::verdict::Verdict;

/// A trial that did not pass, and those that ended with the very same error.
#[derive(Debug)]
pub struct TrialGroup<'a> {
    /// The trial.
    pub result: &'a TrialResult,
    /// Others of its harness and model whose error is the same.
    pub same: Vec<&'a TrialResult>,
}

/// The trials that failed, then those that were errored, then those that could not be judged.
pub fn trials(report: &Report) -> Vec<TrialGroup<'_>> {
    let mut groups: Vec<TrialGroup<'_>> = Vec::new();
    // One missing program or one refused key is one thing to read, however many trials met it.
    let mut known: HashMap<(&str, &str, &str, &str), usize> = HashMap::new();
    for verdict in [Verdict::Fail, Verdict::Errored, Verdict::Ungraded] {
        for result in report.results.iter().filter(|result| result.verdict == verdict) {
            if let Some(error) = &result.error {
                let key = (&*result.harness, &*result.arm, error.category.word(), &*error.message);
                if let Some(group) = known.get(&key).and_then(|at| groups.get_mut(*at)) {
                    group.same.push(result);
                    continue;
                }
                known.insert(key, groups.len());
            }
            groups.push(TrialGroup { result, same: Vec::new() });
        }
    }
    groups
}

/// A cell with trials that did not pass.
#[derive(Debug)]
pub struct CellProblem<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// What is wrong with it.
    pub kind: ProblemKind,
    /// Its trials that were run and did not pass, in order.
    pub trials: Vec<&'a TrialResult>,
    /// Other cells of its harness and model with the very same error.
    pub same: Vec<&'a Cell>,
}

/// What is wrong with a cell, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// It failed.
    Failed,
    /// Its agent, or what that needs, was broken.
    Errored,
    /// It could not be judged.
    Ungraded,
    /// Trials that were not run leave it open.
    NotRun,
    /// It passed, though not with every trial.
    Flaky,
}

impl ProblemKind {
    /// All of them, the gravest first.
    pub const ALL: [ProblemKind; 5] = [Self::Failed, Self::Errored, Self::Ungraded, Self::NotRun, Self::Flaky];

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Errored => "errored",
            Self::Ungraded => "ungraded",
            Self::NotRun => "not run",
            Self::Flaky => "passed, though not every trial",
        }
    }
}

/// The cells in which something is to be looked at, the gravest first, else in the order of the plan.
pub fn cells(report: &Report) -> Vec<CellProblem<'_>> {
    let trials = report.trials_by_cell();
    let mut problems: Vec<CellProblem<'_>> = Vec::new();
    let mut known: HashMap<(&str, &str, &str, &str), usize> = HashMap::new();
    for kind in ProblemKind::ALL {
        for cell in report.cells.iter().filter(|cell| kind_of(cell) == Some(kind)) {
            let of_cell = trials.get(&cell.key()).map(Vec::as_slice).unwrap_or_default();
            let open: Vec<&TrialResult> =
                of_cell.iter().copied().filter(|it| !matches!(it.verdict, Verdict::Pass | Verdict::Skipped)).collect();
            if let Some(error) = open.first().and_then(|first| first.error.as_ref()).filter(|_| all_alike(&open)) {
                let key = (&*cell.harness, &*cell.arm, error.category.word(), &*error.message);
                if let Some(problem) = known.get(&key).and_then(|at| problems.get_mut(*at)).filter(|it| it.kind == kind)
                {
                    problem.same.push(cell);
                    continue;
                }
                known.insert(key, problems.len());
            }
            problems.push(CellProblem { cell, kind, trials: open, same: Vec::new() });
        }
    }
    problems
}

fn kind_of(cell: &Cell) -> Option<ProblemKind> {
    match cell.verdict {
        Some(Verdict::Fail) => Some(ProblemKind::Failed),
        Some(Verdict::Errored) => Some(ProblemKind::Errored),
        Some(Verdict::Ungraded) => Some(ProblemKind::Ungraded),
        None => Some(ProblemKind::NotRun),
        Some(Verdict::Pass) => (cell.tally.passed < cell.tally.trials).then_some(ProblemKind::Flaky),
        Some(Verdict::Skipped) => None,
    }
}

fn all_alike(results: &[&TrialResult]) -> bool {
    results.windows(2).all(|pair| matches!(pair, [a, b] if a.error == b.error))
}

/// How many of a cell's trials came to what, as far as they did not pass: `2 of 3 trials failed`.
pub fn counts(cell: &Cell) -> String {
    let tally = &cell.tally;
    let parts = [
        (tally.failed, "failed"),
        (tally.errored, "errored"),
        (tally.ungraded, "could not be judged"),
        (tally.not_run, "not run"),
    ];
    let mut text = String::new();
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        if text.is_empty() {
            let trials = if tally.trials == 1 { "trial" } else { "trials" };
            text = format!("{count} of {} {trials} {what}", tally.trials);
        } else {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    text
}

/// Why a trial did not pass, a line for each reason, the one that decided it first.
pub fn reasons(result: &TrialResult) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(error) = &result.error {
        lines.push(format!("{}: {}", error.category.word(), error.message));
    }
    lines.extend(result.skipped.clone());
    for grade in open_grades(result) {
        let kind = if grade.name == grade.grader { String::new() } else { format!(" ({})", grade.grader) };
        let gate = if grade.gate { " [gate]" } else { "" };
        let gate = if grade.diagnostic { " [diagnostic, not counted]" } else { gate };
        let word = if grade.passed.is_some() { "failed" } else { "ungraded" };
        lines.push(format!("{word} {}{kind}{gate}: {}", grade.name, grade.reason));
    }
    if let Some(stop) = result.stop.as_ref().filter(|it| it.reason != StopReason::EndTurn && result.error.is_none()) {
        let detail = stop.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        lines.push(format!("the session ended with {}{detail}", stop.reason.word()));
    }
    lines.extend(result.warnings.iter().map(|warning| format!("warning: {warning}")));
    lines
}

/// The grades that did not pass: those that decided the verdict, then the other ones, then diagnostics.
pub fn open_grades(result: &TrialResult) -> Vec<&GradeRecord> {
    let mut open: Vec<&GradeRecord> = result.grades.iter().filter(|grade| grade.passed != Some(true)).collect();
    let failed = result.verdict == Verdict::Fail;
    open.sort_by_key(|grade| (grade.diagnostic, !grade.gate, grade.passed.is_none() == failed));
    open
}
