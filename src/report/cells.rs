//! Cells and columns of a report: verdicts, scores, time, cost and tokens, from the results of their trials.
//! Pure.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::ids::column_name;
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::statistics::LEVEL;
use crate::statistics::means::{self, IntervalMethod};
use crate::trace::amount::Amount;
use crate::values::Fraction;
use crate::verdict::{PassTrials, Verdict, of_trials};

/// A cell (case × harness × arm) with the outcomes of its trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cell {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// Name of the column.
    pub arm: String,
    /// The verdict. Absent if trials that were not run leave it open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The number of its trials by verdict.
    #[serde(flatten)]
    pub tally: Tally,
    /// The mean score of the trials that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// The mean score with errored trials as 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score_with_errors: Option<f64>,
    /// Time, cost and tokens of the trials.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Cell {
    /// Returns true if the trials both passed and failed.
    pub fn flaky(&self) -> bool {
        self.tally.passed > 0 && self.tally.failed > 0
    }

    /// Returns case, harness and arm.
    pub fn key(&self) -> Key<'_> {
        (&self.case, &self.harness, &self.arm)
    }

    /// Returns the display name.
    pub fn name(&self) -> String {
        format!("{} ({})", self.case, column_name(&self.harness, &self.arm))
    }
}

/// A column (harness × arm) with the outcomes of its cells.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Column {
    /// Name of the harness.
    pub harness: String,
    /// Name of the arm.
    pub arm: String,
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
    /// The share of the trials that ran and were not errored. Absent if all were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion: Option<f64>,
    /// Time, cost and tokens of the trials.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Column {
    /// Returns the display name.
    pub fn name(&self) -> String {
        column_name(&self.harness, &self.arm)
    }
}

/// The confidence interval of a score over cases like these: the case is the unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ScoreInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The confidence level.
    pub level: f64,
    /// The method of the interval.
    pub method: IntervalMethod,
}

impl ScoreInterval {
    fn of(cells: &[&Cell]) -> Option<Self> {
        let scores: Vec<f64> = cells.iter().filter_map(|cell| cell.score).collect();
        let (interval, method) = means::score_interval(&scores, LEVEL)?;
        Some(Self { low: interval.low, high: interval.high, level: LEVEL, method })
    }
}

/// The number of trials by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tally {
    /// Trials that were planned and not skipped.
    pub trials: usize,
    /// Trials that passed.
    pub passed: usize,
    /// Trials that failed.
    pub failed: usize,
    /// Trials that could not be judged.
    pub ungraded: usize,
    /// Trials that were errored.
    pub errored: usize,
    /// Trials that were not run.
    pub not_run: usize,
}

impl Tally {
    fn of(results: &[&TrialResult], not_run: usize) -> Self {
        let count = |verdict| results.iter().filter(|result| result.verdict == verdict).count();
        let (passed, failed) = (count(Verdict::Pass), count(Verdict::Fail));
        let (ungraded, errored) = (count(Verdict::Ungraded), count(Verdict::Errored));
        let trials = passed + failed + ungraded + errored + not_run;
        Self { trials, passed, failed, ungraded, errored, not_run }
    }

    /// Returns the number of trials that ran and were not errored.
    pub fn completed(&self) -> usize {
        self.trials - self.errored - self.not_run
    }
}

/// Time, cost and tokens of trials. Sums are over the trials that reported the figure; the number of trials
/// that did not is beside each sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// The median duration of the trials that were not errored, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_duration_ms: Option<u64>,
    /// Cost in US dollars, including earlier attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Trials whose cost, or that of an earlier attempt, is unknown or a lower bound.
    pub cost_unknown: usize,
    /// Tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Trials whose tokens are unknown or a lower bound.
    pub tokens_unknown: usize,
}

impl Figures {
    fn of(results: &[&TrialResult]) -> Self {
        let ran: Vec<&TrialResult> = results.iter().copied().filter(|result| result.agent_ran()).collect();
        let judged = ran.iter().filter(|result| result.verdict != Verdict::Errored);
        let mut durations: Vec<u64> = judged.filter_map(|result| result.metrics.duration_ms).collect();
        let costs: Vec<f64> = results.iter().flat_map(|result| result.costs_usd()).collect();
        let tokens: Vec<Amount<u64>> = ran.iter().filter_map(|result| result.metrics.tokens()).collect();
        Self {
            median_duration_ms: median(&mut durations),
            // If the sum overflows, it is absent.
            cost_usd: (!costs.is_empty()).then(|| costs.iter().sum()).filter(|sum: &f64| sum.is_finite()),
            cost_unknown: results.iter().filter(|result| !result.cost_is_known()).count(),
            tokens: (!tokens.is_empty()).then(|| tokens.iter().map(|it| it.value()).fold(0, u64::saturating_add)),
            tokens_unknown: ran.len() - tokens.iter().filter(|it| it.is_exact()).count(),
        }
    }
}

fn median(values: &mut [u64]) -> Option<u64> {
    values.sort_unstable();
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *values.get((values.len() / 2).checked_sub(1)?)?;
    Some(lower + (upper - lower) / 2)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Case, harness and arm.
pub type Key<'a> = (&'a str, &'a str, &'a str);

/// The trials of a cell.
#[derive(Default)]
struct Trials<'a> {
    planned: usize,
    results: Vec<&'a TrialResult>,
}

/// Returns the cells of a run, in the order of its plan.
pub fn cells(run: &RunRecord, results: &[TrialResult]) -> Vec<Cell> {
    let mut order: Vec<Key<'_>> = Vec::new();
    let mut trials: HashMap<Key<'_>, Trials<'_>> = HashMap::new();
    let planned = run.trials.iter().map(|trial| ((&*trial.case, &*trial.harness, &*trial.arm), None));
    let done = results.iter().map(|result| ((&*result.case, &*result.harness, &*result.arm), Some(result)));
    for (key, result) in planned.chain(done) {
        let trials = trials.entry(key).or_insert_with(|| {
            order.push(key);
            Trials::default()
        });
        match result {
            None => trials.planned += 1,
            Some(result) => trials.results.push(result),
        }
    }
    let rules: HashMap<&str, PassTrials> = run.cases.iter().map(|case| (&*case.id, case.pass)).collect();
    let cell = |key: Key<'_>| {
        let trials = trials.get(&key)?;
        Some(cell(key, trials, rules.get(key.0).copied().unwrap_or_default()))
    };
    order.iter().filter_map(|key| cell(*key)).collect()
}

fn cell((case, harness, arm): Key<'_>, trials: &Trials<'_>, rule: PassTrials) -> Cell {
    let not_run = trials.planned.saturating_sub(trials.results.len());
    let mut verdicts: Vec<Verdict> = trials.results.iter().map(|result| result.verdict).collect();
    // A trial that was not run could have had any outcome, as an ungraded one could.
    verdicts.extend(std::iter::repeat_n(Verdict::Ungraded, not_run));
    let verdict = of_trials(&verdicts, rule);
    let open = !matches!(verdict, Verdict::Pass | Verdict::Fail);
    let scores: Vec<f64> = scores(&trials.results);
    let errored = trials.results.iter().filter(|result| result.verdict == Verdict::Errored).count();
    let mut with_errors = scores.clone();
    with_errors.extend(std::iter::repeat_n(0.0, errored));
    Cell {
        case: case.to_owned(),
        harness: harness.to_owned(),
        arm: arm.to_owned(),
        verdict: (not_run == 0 || !open).then_some(verdict),
        tally: Tally::of(&trials.results, not_run),
        score: mean(&scores),
        score_with_errors: mean(&with_errors),
        figures: Figures::of(&trials.results),
    }
}

fn scores(results: &[&TrialResult]) -> Vec<f64> {
    results.iter().filter_map(|result| result.score.map(Fraction::get)).collect()
}

/// Returns the columns of a run, in the order of its plan.
pub fn columns(run: &RunRecord, results: &[TrialResult], cells: &[Cell]) -> Vec<Column> {
    let mut order: Vec<(&str, &str)> = Vec::new();
    let named = run.trials.iter().map(|trial| (&*trial.harness, &*trial.arm));
    let done = results.iter().map(|result| (&*result.harness, &*result.arm));
    for key in named.chain(done) {
        if !order.contains(&key) {
            order.push(key);
        }
    }
    order.into_iter().map(|(harness, arm)| column(harness, arm, results, cells)).collect()
}

fn column(harness: &str, arm: &str, results: &[TrialResult], cells: &[Cell]) -> Column {
    let results: Vec<&TrialResult> =
        results.iter().filter(|result| result.harness == harness && result.arm == arm).collect();
    let cells: Vec<&Cell> = cells.iter().filter(|cell| cell.harness == harness && cell.arm == arm).collect();
    let tally = Tally::of(&results, cells.iter().map(|cell| cell.tally.not_run).sum());
    let over = |figure: fn(&Cell) -> Option<f64>| mean(&cells.iter().filter_map(|c| figure(c)).collect::<Vec<_>>());
    Column {
        harness: harness.to_owned(),
        arm: arm.to_owned(),
        cases_passed: cells.iter().filter(|cell| cell.verdict == Some(Verdict::Pass)).count(),
        cases: cells.iter().filter(|cell| cell.verdict != Some(Verdict::Skipped)).count(),
        score: over(|cell| cell.score),
        interval: ScoreInterval::of(&cells),
        score_with_errors: (tally.errored > 0).then(|| over(|cell| cell.score_with_errors)).flatten(),
        completion: (tally.trials > 0).then(|| tally.completed() as f64 / tally.trials as f64),
        tally,
        figures: Figures::of(&results),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Metrics;

    #[test]
    fn the_middle_of_an_even_number_lies_between() {
        assert_eq!(median(&mut []), None);
        assert_eq!(median(&mut [5]), Some(5));
        assert_eq!(median(&mut [9, 1]), Some(5));
        assert_eq!(median(&mut [9, 1, 2]), Some(2));
    }

    #[test]
    fn tokens_need_both_ends() {
        let half = Metrics { input_tokens: Some(5), ..Metrics::default() };
        assert_eq!(half.tokens(), None);
        let whole = Metrics { output_tokens: Some(2), cache_read_tokens: Some(10), ..half };
        assert_eq!(whole.tokens(), Some(Amount::Exact(17)));
    }
}
