//! What a user sees of a Run: [`Report`] is the one model that every format is written from.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::gate::{self, Gate};
use crate::ids::TrialRecord;
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::run::folder::RunFolder;
use crate::snapshot::compare::Compared;
use crate::verdict::Verdict;

pub mod asked;
pub mod audit;
pub mod benchmark;
pub mod calibration;
pub mod cells;
pub mod changed;
pub mod commands;
pub mod compare;
pub mod conformance;
pub mod escape;
pub mod event_line;
pub mod explain;
pub mod failures;
pub mod figures;
pub mod format;
pub mod gates;
pub mod github;
pub mod grid;
pub mod json;
pub mod junit;
pub mod list;
pub mod markdown;
pub mod notes;
pub mod parity;
pub mod problems;
pub mod progress;
pub mod show;
pub mod snapshots;
pub mod standing;
pub mod stored;
pub mod table;
pub mod text;

use asked::AskedModels;
use cells::{Cell, Column, Key};
use standing::Standing;

/// A Run and what came of it.
#[derive(Debug, Clone)]
pub struct Report {
    /// The plan and what it was made from.
    pub run: RunRecord,
    /// The run folder.
    pub folder: PathBuf,
    /// The results, in the order of the plan.
    pub results: Vec<TrialResult>,
    /// How many trials came to what.
    pub summary: Summary,
    /// Case × Harness × arm, in the order of the plan.
    pub cells: Vec<Cell>,
    /// Harness × arm, in the order of the plan.
    pub columns: Vec<Column>,
    /// What the run says of its cases themselves, in the order of the plan.
    pub cases: Vec<Standing>,
    /// What the models used that the engine itself asked.
    pub asked: AskedModels,
    /// What a reader of the figures has to know.
    pub notes: Vec<String>,
    /// The folder from which services count the paths of cases, where it is known: that of the repository.
    pub root: Option<PathBuf>,
    /// The cells that were compared with what is accepted for them.
    pub snapshots: Vec<Compared>,
    /// The gates that were asked for: they decide the exit code in the place of the cells.
    pub gates: Vec<Gate>,
}

/// How many trials came to what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Passed.
    pub pass: usize,
    /// Failed.
    pub fail: usize,
    /// Could not be judged.
    pub ungraded: usize,
    /// The agent, or what it needs, was broken.
    pub errored: usize,
    /// Not run, for what their cases demand.
    pub skipped: usize,
    /// Never started, because the run ended before.
    pub not_run: usize,
}

impl Summary {
    /// Counts results.
    pub fn of(results: &[TrialResult], not_run: usize) -> Self {
        let mut summary = Summary { not_run, ..Summary::default() };
        for result in results {
            match result.verdict {
                Verdict::Pass => summary.pass += 1,
                Verdict::Fail => summary.fail += 1,
                Verdict::Ungraded => summary.ungraded += 1,
                Verdict::Errored => summary.errored += 1,
                Verdict::Skipped => summary.skipped += 1,
            }
        }
        summary
    }

    /// All trials, those that were not run too.
    pub fn trials(&self) -> usize {
        self.pass + self.fail + self.ungraded + self.errored + self.skipped + self.not_run
    }
}

impl Report {
    /// The report of a run: its plan, the results of what finished, how many trials were never started, and its folder.
    pub fn new(run: &RunRecord, results: Vec<TrialResult>, not_run: usize, folder: &Path) -> Self {
        let cells = cells::cells(run, &results);
        let columns = cells::columns(run, &results, &cells);
        let summary = Summary::of(&results, not_run);
        let cases = standing::of_cases(run, &results, &cells);
        let gates = gates::of_run(run, &cells, &columns);
        let asked = AskedModels::of(&results);
        let (run, folder) = (run.clone(), folder.to_owned());
        let mut report = Self {
            run,
            folder,
            results,
            summary,
            cells,
            columns,
            cases,
            asked,
            notes: Vec::new(),
            root: None,
            snapshots: Vec::new(),
            gates,
        };
        report.notes = notes::of(&report);
        report
    }

    /// Whether the policy of any trial is `manual`: comparisons leave such a run out.
    pub fn is_manual(&self) -> bool {
        self.run.manual || self.results.iter().any(|result| result.manual)
    }

    /// Whether every cell was skipped, so that nothing was judged.
    pub fn all_skipped(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.verdict == Some(Verdict::Skipped))
    }

    /// The results of each cell, in the order of the plan.
    pub fn trials_by_cell(&self) -> HashMap<Key<'_>, Vec<&TrialResult>> {
        let mut cells: HashMap<Key<'_>, Vec<&TrialResult>> = HashMap::new();
        for result in &self.results {
            cells.entry((&result.case, &result.harness, &result.arm)).or_default().push(result);
        }
        cells
    }

    /// The cells of each case, in the order of the plan.
    pub fn cells_by_case(&self) -> Vec<(&str, Vec<&Cell>)> {
        let mut cases: Vec<(&str, Vec<&Cell>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for cell in &self.cells {
            let place = *places.entry(&cell.case).or_insert_with(|| {
                cases.push((&cell.case, Vec::new()));
                cases.len() - 1
            });
            if let Some((_, cells)) = cases.get_mut(place) {
                cells.push(cell);
            }
        }
        cases
    }

    /// The folder of a trial.
    pub fn trial_folder(&self, result: &TrialResult) -> Option<PathBuf> {
        RunFolder::open(&self.folder).trial(&result.case, &result.harness, &result.arm, result.trial).ok()
    }
}

/// The exit code that follows from a report: 1 where a snapshot differs; that of its gates where there are any; else, by its
/// cells, 1 where one failed, 3 where one could not be judged or compared, was not run whole, or nothing ran at all, and 0.
pub fn exit_code(report: &Report) -> u8 {
    let any = |wanted: &[Option<Verdict>]| report.cells.iter().any(|cell| wanted.contains(&cell.verdict));
    if report.snapshots.iter().any(|it| it.differs) {
        1
    } else if !report.gates.is_empty() {
        gate::exit_code(gate::of_all(&report.gates))
    } else if any(&[Some(Verdict::Fail)]) {
        1
    } else if report.summary.not_run > 0
        || report.snapshots.iter().any(|it| it.shows_nothing && it.trials == 0)
        || any(&[None, Some(Verdict::Ungraded), Some(Verdict::Errored)])
        || !any(&[Some(Verdict::Pass)])
    {
        3
    } else {
        0
    }
}

/// The name of a trial for `evals show`: its place in the run folder, written as its own words.
pub fn trial_name(case: &str, harness: &str, arm: &str, trial: u32) -> String {
    format!("{case}/{harness}/{arm}/{trial}")
}

/// The planned trials that a name means: a whole one, or the start of one up to a `/`, such as the id of a case.
pub fn trials_named<'a>(run: &'a RunRecord, name: &str) -> Vec<&'a TrialRecord> {
    let name = name.trim_end_matches('/');
    let meant = |trial: &&TrialRecord| {
        let whole = trial_name(&trial.case, &trial.harness, &trial.arm, trial.trial);
        whole.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // A case may be named as the folder of others; its own trials are meant then.
    let of_case: Vec<_> = run.trials.iter().filter(|trial| trial.case == name).collect();
    if of_case.is_empty() { run.trials.iter().filter(meant).collect() } else { of_case }
}

pub(crate) fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown} and {} more", names.len() - 5) } else { shown }
}
