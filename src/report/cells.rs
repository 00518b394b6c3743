//! Cells and columns of a report: verdicts, scores, time, cost and tokens, from the results of their trials.
//! Pure.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use serde::Serialize;

use super::gathered::TrialInBrief;
use super::mixed;
use super::unfinished::{self, OpenTrial};
use crate::case::quarantine::Quarantine;
use crate::fold::{CaseTrials, Scores, Tally};
use crate::ids::{CellId, ColumnId, TrialRecord};
use crate::result::{EarlierAttempts, TrialResult};
use crate::run::RunRecord;
use crate::statistics::LEVEL;
use crate::statistics::figures::quantile;
use crate::statistics::means::IntervalMethod;
use crate::trace::amount::Amount;
use crate::verdict::{PassTrials, Verdict};

/// A cell (case × harness × arm) with the outcomes of its trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cell {
    /// Case, harness and arm.
    #[serde(flatten)]
    pub id: CellId,
    /// The verdict. Absent if trials that were not run leave it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The quarantine in which the case was when the run began: the cell does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<Quarantine>,
    /// True if the case, the harness or the arm changed between the trials of the run (`--changed`), so that the trials may
    /// be of different versions. Absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// The number of its trials by verdict.
    #[serde(flatten)]
    pub tally: Tally,
    /// The mean score of the trials that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The mean score with errored trials as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_with_errors: Option<f64>,
    /// Trials whose agent could read files of its own case.
    #[serde(skip)]
    pub case_in_workspace: u64,
    /// Time, cost and tokens of the trials.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Cell {
    /// Returns true if the trials both passed and failed, and were trials of the same thing.
    pub fn flaky(&self) -> bool {
        self.tally.is_flaky() && !self.mixed
    }
}

/// A column (harness × arm) with the outcomes of its cells. Cells in quarantine count for time, cost and tokens alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Column {
    /// Harness and arm.
    #[serde(flatten)]
    pub id: ColumnId,
    /// Cells that passed.
    pub cases_passed: usize,
    /// Cells that were not skipped.
    pub cases: usize,
    /// The number of its trials by verdict.
    #[serde(flatten)]
    pub tally: Tally,
    /// The mean over cases of the mean score of their trials.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The confidence interval of the score.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<ScoreInterval>,
    /// The score with errored trials as 0. Absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_with_errors: Option<f64>,
    /// The share of the planned trials that have a score: errored, ungraded and missing trials have none. Absent if all
    /// were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<f64>,
    /// Time, cost and tokens of the trials.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The confidence interval of a score over cases like these: the case is the unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ScoreInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The confidence level.
    pub level: f64,
    /// The method by which the interval was computed.
    pub method: IntervalMethod,
}

/// Time, cost and tokens of trials. Each sum is over the trials that reported the figure; the number of the other
/// trials is stored beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Figures {
    /// The median duration of the trials that were not errored, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_duration_ms: Option<u64>,
    /// Trials that were not errored and have no duration, which the median leaves out.
    #[serde(skip)]
    pub duration_unknown: usize,
    /// Cost in US dollars, including earlier attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// Trials whose cost, or that of an earlier attempt, is unknown or a lower bound.
    pub(super) cost_unknown: usize,
    /// Trials with a result whose cost is unknown or a lower bound.
    #[serde(skip)]
    pub cost_unknown_in_results: usize,
    /// The cost per trial in US dollars, without attempts that have no result. Absent if it is unknown or a lower bound.
    #[serde(skip)]
    pub cost_per_trial: Option<f64>,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// Trials whose tokens are unknown or a lower bound.
    tokens_unknown: usize,
}

impl Figures {
    fn of(trials: &CaseTrials) -> Self {
        Self {
            median_duration_ms: quantile(&trials.durations, 0.5).map(|ms| ms.round() as u64),
            duration_unknown: trials.duration.unknown_trials() as usize,
            cost_usd: trials.cost.reported().map(Amount::value),
            cost_unknown: trials.cost.unknown_trials() as usize,
            cost_unknown_in_results: trials.cost.unknown_results() as usize,
            cost_per_trial: trials.cost.mean().and_then(Amount::exact),
            tokens: trials.tokens.reported().map(|tokens| tokens.value() as u64),
            tokens_unknown: trials.tokens.unknown_trials() as usize,
        }
    }

    /// Returns the cost in US dollars, including earlier attempts. Returns `None` if no trial reported any of it.
    pub fn cost(&self) -> Option<Amount<f64>> {
        self.cost_usd.map(|cost| Amount::new(cost, self.cost_unknown == 0))
    }

    /// Returns the cost as a bound: at least 0 if no trial reported any of it.
    pub fn cost_bound(&self) -> Amount<f64> {
        Amount::new(self.cost_usd.unwrap_or_default(), self.cost_unknown == 0)
    }

    /// Returns the tokens. Returns `None` if no trial reported any of them.
    pub fn tokens(&self) -> Option<Amount<u64>> {
        self.tokens.map(|tokens| Amount::new(tokens, self.tokens_unknown == 0))
    }
}

/// Folded trials by identity, in the order in which they were first seen.
#[derive(Debug)]
struct Folds<Id> {
    all: Vec<(Id, CaseTrials)>,
    places: HashMap<Id, usize>,
    /// The place that was used last. The trials of a cell follow each other, so it is most often the next one too.
    last: usize,
}

impl<Id: Hash + Eq + Clone> Folds<Id> {
    /// Returns the trials of an identity, which is made only if it is not the last one.
    fn of(&mut self, is: impl Fn(&Id) -> bool, id: impl FnOnce() -> Id) -> &mut CaseTrials {
        if !self.all.get(self.last).is_some_and(|(last, _)| is(last)) {
            let id = id();
            self.last = *self.places.entry(id.clone()).or_insert(self.all.len());
            if self.last == self.all.len() {
                self.all.push((id, CaseTrials::default()));
            }
        }
        &mut self.all[self.last].1
    }
}

impl Folds<CellId> {
    fn of_cell(&mut self, case: &str, harness: &str, arm: &str) -> &mut CaseTrials {
        self.of(|it| it.case == case && it.arm == arm && it.harness == harness, || CellId::new(case, harness, arm))
    }
}

impl Folds<ColumnId> {
    fn of_column(&mut self, harness: &str, arm: &str) -> &mut CaseTrials {
        let id = || ColumnId { harness: harness.to_owned(), arm: arm.to_owned() };
        self.of(|it| it.arm == arm && it.harness == harness, id)
    }
}

impl<Id> Default for Folds<Id> {
    fn default() -> Self {
        Self { all: Vec::new(), places: HashMap::new(), last: 0 }
    }
}

/// The results so far, folded into cells and columns.
#[derive(Debug)]
pub struct CellFolds {
    cells: Folds<CellId>,
    columns: Folds<ColumnId>,
    /// The columns without the cells in quarantine.
    counted: Folds<ColumnId>,
    /// The cases in quarantine.
    quarantined: HashSet<String>,
}

impl CellFolds {
    /// Creates the cells and columns of a run, and counts the planned trials of each.
    pub(super) fn new(run: &RunRecord) -> Self {
        let quarantined = run.in_quarantine().map(|(case, _)| case.id.clone()).collect();
        let mut folds =
            Self { cells: Folds::default(), columns: Folds::default(), counted: Folds::default(), quarantined };
        for TrialRecord { case, harness, arm, .. } in &run.trials {
            folds.columns.of_column(harness, arm).plan();
            if !folds.quarantined.contains(case) {
                folds.counted.of_column(harness, arm).plan();
            }
            folds.cells.of_cell(case, harness, arm).plan();
        }
        folds
    }

    pub(super) fn is_quarantined(&self, case: &str) -> bool {
        self.quarantined.contains(case)
    }

    /// Adds a result, and returns the places of its cell and of its column.
    pub(super) fn add(&mut self, result: &TrialResult) -> (usize, usize) {
        let TrialResult { case, harness, arm, .. } = result;
        self.columns.of_column(harness, arm).add(result);
        if !self.quarantined.contains(case) {
            self.counted.of_column(harness, arm).add(result);
        }
        self.cells.of_cell(case, harness, arm).add(result);
        (self.cells.last, self.columns.last)
    }

    /// Returns the trials of the plan that may have attempts without a result.
    pub(super) fn open<'a>(&self, run: &'a RunRecord, results: &[TrialInBrief]) -> Vec<OpenTrial<'a>> {
        let is_open = |result: &TrialInBrief| unfinished::may_have_later_attempts(run, result.verdict);
        if results.len() >= run.trials.len() && !results.iter().any(is_open) {
            return Vec::new();
        }
        let known: HashMap<(usize, u32), &TrialInBrief> =
            results.iter().map(|result| ((result.cell, result.trial), result)).collect();
        let trials = run.trials.iter().filter_map(|trial| {
            let cell = self.cells.places.get(&CellId::new(&trial.case, &trial.harness, &trial.arm));
            match cell.and_then(|cell| known.get(&(*cell, trial.trial))) {
                None => Some(OpenTrial { trial, counting: 0 }),
                Some(result) => is_open(result).then_some(OpenTrial { trial, counting: result.attempt }),
            }
        });
        trials.collect()
    }

    /// Adds the cost of attempts of a trial that no result includes.
    pub(super) fn add_unfinished(&mut self, trial: &TrialRecord, attempts: &EarlierAttempts) {
        let TrialRecord { case, harness, arm, .. } = trial;
        self.columns.of_column(harness, arm).add_unfinished(attempts);
        if !self.quarantined.contains(case) {
            self.counted.of_column(harness, arm).add_unfinished(attempts);
        }
        self.cells.of_cell(case, harness, arm).add_unfinished(attempts);
    }

    /// Returns the cells and the columns, in the order of the plan.
    pub(super) fn all(mut self, run: &RunRecord) -> (Vec<Cell>, Vec<Column>) {
        let rules: HashMap<&str, PassTrials> = run.cases.iter().map(|case| (&*case.id, case.pass)).collect();
        let quarantined = &self.quarantined;
        let quarantine = |case: &str| if quarantined.contains(case) { run.quarantine(case).cloned() } else { None };
        let rows = self.cells.all.iter().map(|(id, trials)| {
            let rule = rules.get(&*id.case).copied().unwrap_or_default();
            Cell { quarantine: quarantine(&id.case), mixed: mixed::is_mixed(run, id), ..cell(id, trials, rule) }
        });
        let rows: Vec<Cell> = rows.collect();
        let columns = self.columns.all.iter().map(|(id, all)| {
            let here =
                |cell: &CellId| cell.harness == id.harness && cell.arm == id.arm && !quarantined.contains(&cell.case);
            let of_cases: Vec<&CaseTrials> = self.cells.all.iter().filter(|it| here(&it.0)).map(|it| &it.1).collect();
            let rows = rows.iter().filter(|cell| here(&cell.id));
            column(id, (all, self.counted.of_column(&id.harness, &id.arm)), &Scores::of(&of_cases), rows)
        });
        let columns = columns.collect();
        (rows, columns)
    }
}

fn cell(id: &CellId, trials: &CaseTrials, rule: PassTrials) -> Cell {
    let verdict = trials.verdict(rule);
    let open = !matches!(verdict, Verdict::Pass | Verdict::Fail);
    Cell {
        id: id.clone(),
        verdict: (trials.not_run == 0 || !open).then_some(verdict),
        quarantine: None,
        mixed: false,
        tally: Tally::of(trials),
        score: trials.score(),
        score_with_errors: trials.score_with_errors(),
        case_in_workspace: trials.case_in_workspace,
        figures: Figures::of(trials),
    }
}

fn column<'a>(
    id: &ColumnId,
    (all, counted): (&CaseTrials, &CaseTrials),
    scores: &Scores,
    cells: impl Iterator<Item = &'a Cell>,
) -> Column {
    let verdicts: Vec<Option<Verdict>> = cells.map(|cell| cell.verdict).collect();
    Column {
        id: id.clone(),
        cases_passed: verdicts.iter().filter(|verdict| **verdict == Some(Verdict::Pass)).count(),
        cases: verdicts.iter().filter(|verdict| **verdict != Some(Verdict::Skipped)).count(),
        score: scores.mean,
        interval: scores.interval.map(|(it, method)| ScoreInterval {
            low: it.low,
            high: it.high,
            level: LEVEL,
            method,
        }),
        score_with_errors: scores.with_errors,
        completion: scores.completion,
        tally: Tally::of(counted),
        figures: Figures::of(all),
    }
}
