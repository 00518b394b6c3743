//! The problems in a report: trials and cells that did not pass, grouped, with the reasons. Pure.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;

use strum::EnumCount;

use super::Report;
use super::cells::Cell;
use super::gathered::{ErrorDigest, TrialInBrief};
use super::page::{Detail, Meaning};
use super::text::natural;
use crate::grade::GradeRecord;
use crate::result::{TrialResult, Warning};
use crate::text::some_of;
use crate::trace::StopReason;
use crate::values::Fraction;
use crate::verdict::Verdict;

/// A cell with trials that did not pass.
#[derive(Debug)]
pub struct CellProblem<'a> {
    pub cell: &'a Cell,
    pub kind: ProblemKind,
    /// The places of the results of the cell's trials that ran and did not pass: those with the cell's verdict first.
    pub places: Vec<usize>,
    /// Other cells of the same harness and model with the same error.
    pub same: Vec<&'a Cell>,
}

impl CellProblem<'_> {
    /// Returns the results of the cell's trials that ran and did not pass, in order.
    ///
    /// # Errors
    /// Returns an error if the results cannot be read again.
    pub fn trials<'r>(&self, report: &'r Report) -> io::Result<Vec<Cow<'r, TrialResult>>> {
        report.results.at(&self.places)
    }

    /// Returns the line about the other cells with the same error.
    pub fn same_error(&self) -> Option<String> {
        let names = self.same.iter().map(|cell| &cell.id.case);
        (!self.same.is_empty()).then(|| format!("the same error: {}", some_of(names, 5)))
    }
}

/// The kind of a cell's problem, the most serious first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumCount)]
pub enum ProblemKind {
    /// The cell failed.
    Failed,
    /// The agent or a dependency of it failed.
    Errored,
    /// The cell could not be graded.
    Ungraded,
    /// Trials that were not run leave the cell open.
    NotRun,
    /// The cell passed, but not every trial did.
    Flaky,
    /// The cell did not pass, and its case is in quarantine.
    Quarantined,
}

impl ProblemKind {
    /// All kinds, the most serious first.
    pub const ALL: [ProblemKind; ProblemKind::COUNT] =
        [Self::Failed, Self::Errored, Self::Ungraded, Self::NotRun, Self::Flaky, Self::Quarantined];

    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Errored => "errored",
            Self::Ungraded => "ungraded",
            Self::NotRun => "not run",
            Self::Flaky => "passed, though not every trial",
            Self::Quarantined => "in quarantine",
        }
    }

    /// Returns the kind as a short word for a list.
    pub fn short(self) -> &'static str {
        match self {
            Self::Failed => "fail",
            Self::Flaky => "flaky",
            Self::Quarantined => "quarantined",
            Self::Errored | Self::Ungraded | Self::NotRun => self.word(),
        }
    }

    /// Returns the text after the number of cells.
    pub fn described(self) -> &'static str {
        if self == Self::Flaky { "passed, though not with every trial" } else { self.word() }
    }
}

/// Returns the cells with problems: the most serious kind first, and within a kind in the natural order of the case
/// IDs. Cells of the same harness and arm whose trials all have the same error are one entry.
pub fn cells(report: &Report) -> Vec<CellProblem<'_>> {
    let places = report.places_by_cell();
    let mut problems: Vec<CellProblem<'_>> = Vec::new();
    let mut known: HashMap<(&str, &str, ErrorDigest), usize> = HashMap::new();
    for kind in ProblemKind::ALL {
        let mut of_kind: Vec<(&Cell, &Vec<usize>)> =
            report.cells.iter().zip(&places).filter(|(cell, _)| kind_of(cell) == Some(kind)).collect();
        of_kind.sort_by_cached_key(|(cell, _)| natural(&cell.id.case));
        for (cell, places) in of_kind {
            let trial = |place: &usize| report.trials.get(*place);
            let is_open = |it: &TrialInBrief| !matches!(it.verdict, Verdict::Pass | Verdict::Skipped);
            let mut places: Vec<usize> =
                places.iter().copied().filter(|place| trial(place).is_some_and(is_open)).collect();
            // The trials that decide the verdict come first: theirs is the reason that a short report gives.
            places.sort_by_key(|place| trial(place).map(|it| it.verdict) != cell.verdict);
            let errors: Vec<Option<ErrorDigest>> = places.iter().filter_map(trial).map(|it| it.error).collect();
            if let Some(error) = errors.first().copied().flatten().filter(|_| all_alike(&errors)) {
                let key = (&*cell.id.harness, &*cell.id.arm, error);
                if let Some(problem) = known.get(&key).and_then(|at| problems.get_mut(*at)).filter(|it| it.kind == kind)
                {
                    problem.same.push(cell);
                    continue;
                }
                known.insert(key, problems.len());
            }
            problems.push(CellProblem { cell, kind, places, same: Vec::new() });
        }
    }
    problems
}

fn kind_of(cell: &Cell) -> Option<ProblemKind> {
    match cell.verdict {
        Some(Verdict::Fail | Verdict::Errored | Verdict::Ungraded) | None if cell.quarantine.is_some() => {
            Some(ProblemKind::Quarantined)
        }
        Some(Verdict::Fail) => Some(ProblemKind::Failed),
        Some(Verdict::Errored) => Some(ProblemKind::Errored),
        Some(Verdict::Ungraded) => Some(ProblemKind::Ungraded),
        None => Some(ProblemKind::NotRun),
        Some(Verdict::Pass) => (cell.tally.passed < cell.tally.trials).then_some(ProblemKind::Flaky),
        Some(Verdict::Skipped) => None,
    }
}

fn all_alike(errors: &[Option<ErrorDigest>]) -> bool {
    errors.windows(2).all(|pair| matches!(pair, [a, b] if a == b))
}

/// Returns the numbers of a cell's trials that did not pass, by outcome: `2 of 3 trials failed`.
pub fn counts(cell: &Cell) -> String {
    let tally = &cell.tally;
    let parts = [
        (tally.failed, "failed"),
        (tally.errored, "errored"),
        (tally.ungraded, "could not be graded"),
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

/// Returns the reasons why a trial did not pass, one line each, the deciding one first.
pub fn reasons(result: &TrialResult) -> Vec<String> {
    details(result, &[]).iter().map(Detail::line).collect()
}

/// Returns the reasons why a trial did not pass, the deciding one first, without warnings that are shown elsewhere.
pub fn details(result: &TrialResult, shown: &[Warning]) -> Vec<Detail> {
    let plain = |text: String| Detail { text, ..Detail::default() };
    let mut details = Vec::new();
    if let Some(error) = &result.error {
        details.push(plain(format!("{}: {}", error.category.word(), error.message)));
    }
    details.extend(result.skipped.clone().map(plain));
    details.extend(result.warnings.iter().filter(|it| it.fails_the_trial()).map(of_failing_warning));
    details.extend(open_grades(result).into_iter().map(of_grade));
    if let Some(stop) = result.stop.as_ref().filter(|it| it.reason != StopReason::EndTurn && result.error.is_none()) {
        let detail = stop.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
        details.push(plain(format!("the session ended with {}{detail}", stop.reason.word())));
    }
    let warnings = result.warnings.iter().filter(|it| !shown.contains(it) && !it.fails_the_trial());
    details.extend(warnings.map(|warning| plain(format!("warning: {warning}"))));
    details
}

/// Returns a warning that fails a trial as a reason.
pub fn of_failing_warning(warning: &Warning) -> Detail {
    let head = Some((Meaning::Verdict(Verdict::Fail), "failed", "protect-strict".to_owned()));
    Detail { head, text: warning.to_string(), lines: Vec::new() }
}

/// Returns a grade as a reason.
pub fn of_grade(grade: &GradeRecord) -> Detail {
    let (verdict, word) = match grade.passed {
        Some(true) => (Verdict::Pass, "passed"),
        Some(false) => (Verdict::Fail, "failed"),
        None => (Verdict::Ungraded, "ungraded"),
    };
    let kind = if grade.name == grade.grader { String::new() } else { format!(" ({})", grade.grader) };
    let value = grade.value.map(Fraction::get).filter(|value| *value > 0.0 && *value < 1.0);
    let marks = [
        grade.gate.then(|| "gate".to_owned()),
        grade.diagnostic.then(|| "diagnostic, not counted".to_owned()),
        value.map(|value| format!("value {}", crate::rounding::share(value))),
    ];
    let marks = marks.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let marks = if marks.is_empty() { marks } else { format!(" [{marks}]") };
    let head = Some((Meaning::Verdict(verdict), word, format!("{}{kind}{marks}", grade.name)));
    Detail { head, text: grade.reason.clone(), lines: Vec::new() }
}

/// Returns the grades that did not pass: those that decided the verdict, then others, then diagnostics.
pub fn open_grades(result: &TrialResult) -> Vec<&GradeRecord> {
    let mut open: Vec<&GradeRecord> = result.grades.iter().filter(|grade| grade.passed != Some(true)).collect();
    let failed = result.verdict == Verdict::Fail;
    open.sort_by_key(|grade| (grade.diagnostic, !grade.gate, grade.passed.is_none() == failed));
    open
}
