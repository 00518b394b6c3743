//! Reports of a run: [`Report`] is the model from which every format is written.

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

/// A run and its results.
#[derive(Debug, Clone)]
pub struct Report {
    /// The plan, and the files and settings it was made from.
    pub run: RunRecord,
    /// The run folder.
    pub folder: PathBuf,
    /// The results, in the order of the plan.
    pub results: Vec<TrialResult>,
    /// The number of trials by verdict.
    pub summary: Summary,
    /// The cells (case × harness × arm), in the order of the plan.
    pub cells: Vec<Cell>,
    /// The columns (harness × arm), in the order of the plan.
    pub columns: Vec<Column>,
    /// The flags of the cases, in the order of the plan.
    pub cases: Vec<Standing>,
    /// The usage of the models that the engine itself called.
    pub asked: AskedModels,
    /// Notes that a reader of the figures needs to know.
    pub notes: Vec<String>,
    /// The root of the repository, if known; services show paths of cases relative to it.
    pub root: Option<PathBuf>,
    /// The cells that were compared with their accepted snapshots.
    pub snapshots: Vec<Compared>,
    /// The requested gates. If there are any, they set the exit code instead of the cells.
    pub gates: Vec<Gate>,
}

/// The number of trials by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Trials that passed.
    pub pass: usize,
    /// Trials that failed.
    pub fail: usize,
    /// Trials that could not be judged.
    pub ungraded: usize,
    /// Trials in which the agent, or something it needs, failed.
    pub errored: usize,
    /// Trials that were skipped because of requirements of their cases.
    pub skipped: usize,
    /// Trials that never started because the run ended before.
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

    /// Returns the number of all trials, including those that were not run.
    pub fn trials(&self) -> usize {
        self.pass + self.fail + self.ungraded + self.errored + self.skipped + self.not_run
    }
}

impl Report {
    /// Makes the report of a run from its plan, the results of the finished trials, the number of trials that
    /// never started, and its folder.
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

    /// Returns true if the policy of any trial is `manual`. Comparisons leave such a run out.
    pub fn is_manual(&self) -> bool {
        self.run.manual || self.results.iter().any(|result| result.manual)
    }

    /// Returns true if every cell was skipped, so that nothing was judged.
    pub fn all_skipped(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| cell.verdict == Some(Verdict::Skipped))
    }

    /// Returns the results of each cell, in the order of the plan.
    pub fn trials_by_cell(&self) -> HashMap<Key<'_>, Vec<&TrialResult>> {
        let mut cells: HashMap<Key<'_>, Vec<&TrialResult>> = HashMap::new();
        for result in &self.results {
            cells.entry((&result.case, &result.harness, &result.arm)).or_default().push(result);
        }
        cells
    }

    /// Returns the cells of each case, in the order of the plan.
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

    /// Returns the folder of a trial.
    pub fn trial_folder(&self, result: &TrialResult) -> Option<PathBuf> {
        RunFolder::open(&self.folder).trial(&result.case, &result.harness, &result.arm, result.trial).ok()
    }
}

/// Returns the exit code of a report. 1 if a snapshot differs. Otherwise, the exit code of the gates, if there
/// are any. Otherwise, by the cells: 1 if one failed; 3 if one could not be judged or compared, was not run
/// completely, or nothing ran at all; else 0.
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

/// Returns the name of a trial for `evals show`: its place in the run folder, with unescaped names.
pub fn trial_name(case: &str, harness: &str, arm: &str, trial: u32) -> String {
    format!("{case}/{harness}/{arm}/{trial}")
}

/// Returns the planned trials that a name selects: a full name, or its beginning up to a `/`, such as the id of
/// a case.
pub fn trials_named<'a>(run: &'a RunRecord, name: &str) -> Vec<&'a TrialRecord> {
    let name = name.trim_end_matches('/');
    let meant = |trial: &&TrialRecord| {
        let whole = trial_name(&trial.case, &trial.harness, &trial.arm, trial.trial);
        whole.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // If the name is a case and also the folder of other cases, it selects the trials of the case itself.
    let of_case: Vec<_> = run.trials.iter().filter(|trial| trial.case == name).collect();
    if of_case.is_empty() { run.trials.iter().filter(meant).collect() } else { of_case }
}

pub(crate) fn some_of(names: &[String]) -> String {
    let shown = names.iter().take(5).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown} and {} more", names.len() - 5) } else { shown }
}
