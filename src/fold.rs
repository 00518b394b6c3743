//! The fold: the results of trials, condensed to counts, scores and sums. Reports, comparisons and baselines are
//! made from it. Pure.

use serde::{Deserialize, Serialize};

use crate::result::{EarlierAttempts, TrialResult, Warning};
use crate::statistics::means::{self, IntervalMethod, mean};
use crate::statistics::{Interval, LEVEL};
use crate::trace::ErrorCategory;
use crate::trace::amount::Amount;
use crate::values::Fraction;
use crate::verdict::{PassTrials, Verdict, of_trials};

mod case_flag;

pub use case_flag::CaseFlag;

/// A sum over trials, some of which may not have reported the figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct KnownSum {
    /// The sum of the reported figures.
    sum: f64,
    /// Trials that reported the whole figure.
    #[serde(rename = "told")]
    known_trials: u64,
    /// Trials that did not report the figure, or only a part of it.
    #[serde(rename = "untold", default, skip_serializing_if = "is_zero")]
    unknown_results: u64,
    /// The sum of all reported values, infinite if it overflows. A baseline does not keep it.
    #[serde(skip)]
    reported: Option<f64>,
    /// The sum of the figures of attempts that are no part of their trials: without a result, or discarded. A baseline does not
    /// keep it.
    #[serde(skip)]
    other_attempts: f64,
    /// Trials whose attempts of this kind did not report the figure, or only a part of it. A baseline does not keep it.
    #[serde(skip)]
    unknown_in_other_attempts: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl KnownSum {
    /// Adds a figure of one trial; `is_all` is false if the trial reported only a part of the figure.
    fn add(&mut self, figure: Option<f64>, is_all: bool) {
        self.reported = sum_of(self.reported, figure);
        let is_whole = add_to(&mut self.sum, figure) && is_all;
        let count = if is_whole { &mut self.known_trials } else { &mut self.unknown_results };
        *count += 1;
    }

    /// Adds a figure of attempts without a result, or whose results were discarded. Their trial is not counted: it was not run,
    /// or has another result. The figure is in the totals, and in no mean.
    fn add_other_attempts(&mut self, figure: Option<f64>, is_all: bool) {
        self.reported = sum_of(self.reported, figure);
        self.unknown_in_other_attempts += u64::from(!(add_to(&mut self.other_attempts, figure) && is_all));
    }

    /// Returns the sum as a bound: at least 0 if no trial reported the figure, and exactly 0 if there is no trial.
    pub fn bound(&self) -> Amount<f64> {
        let all = self.sum + self.other_attempts;
        let is_whole = all.is_finite() && self.unknown_trials() == 0;
        Amount::new(if all.is_finite() { all } else { self.sum.max(self.other_attempts) }, is_whole)
    }

    /// Returns the sum, which is a lower bound if some trials did not report the figure. Returns `None` if no trial
    /// reported it.
    pub fn total(&self) -> Option<Amount<f64>> {
        let is_known = self.known_trials > 0 || self.sum > 0.0 || self.other_attempts > 0.0;
        is_known.then(|| self.bound())
    }

    /// Returns the sum over the trials with a result, without attempts that have none. It is a lower bound if some trials
    /// did not report the figure. Returns `None` if no trial reported it.
    pub fn of_results(&self) -> Option<Amount<f64>> {
        let is_known = self.known_trials > 0 || self.sum > 0.0;
        is_known.then(|| Amount::new(self.sum, self.unknown_results == 0))
    }

    /// Returns the mean per trial with a result, which is a lower bound if some trials did not report the figure. Returns
    /// `None` if no trial reported it.
    pub fn mean(&self) -> Option<Amount<f64>> {
        let trials = self.known_trials + self.unknown_results;
        self.of_results().filter(|_| trials > 0).map(|sum| sum.map(|sum| sum / trials as f64))
    }

    /// Returns the sum of a run's trials, which is a lower bound if some did not report the figure. Returns `None` if no
    /// trial reported any of it, or if no number holds the sum. Unlike [`KnownSum::total`], this sum is also known if
    /// trials reported only parts of their figures, whose sum is 0.
    pub fn reported(&self) -> Option<Amount<f64>> {
        self.reported.filter(|sum| sum.is_finite()).map(|sum| Amount::new(sum, self.unknown_trials() == 0))
    }

    /// Returns the number of trials that reported the whole figure.
    pub fn known_trials(&self) -> u64 {
        self.known_trials
    }

    /// Returns the number of trials that did not report the figure, or only a part of it, also in attempts without a result.
    pub fn unknown_trials(&self) -> u64 {
        self.unknown_results + self.unknown_in_other_attempts
    }

    /// Returns the number of trials with a result that did not report the figure, or only a part of it.
    pub fn unknown_results(&self) -> u64 {
        self.unknown_results
    }

    /// Returns the sum of both figures.
    fn and(self, other: Self) -> Self {
        let both = Self {
            sum: self.sum + other.sum,
            known_trials: self.known_trials + other.known_trials,
            unknown_results: self.unknown_results + other.unknown_results,
            reported: sum_of(self.reported, other.reported),
            other_attempts: self.other_attempts + other.other_attempts,
            unknown_in_other_attempts: self.unknown_in_other_attempts + other.unknown_in_other_attempts,
        };
        if both.sum.is_finite() {
            return both;
        }
        let unknown_results = both.known_trials + both.unknown_results;
        Self { sum: self.sum.max(other.sum), known_trials: 0, unknown_results, ..both }
    }
}

impl std::iter::Sum for KnownSum {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::and)
    }
}

/// Adds a figure to a sum. Returns false if the sum overflows, so that it is unknown.
fn add_to(sum: &mut f64, figure: Option<f64>) -> bool {
    let all = Some(*sum + figure.unwrap_or_default()).filter(|all| all.is_finite());
    *sum = all.unwrap_or(*sum);
    all.is_some()
}

fn sum_of(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(|one, other| one + other)
}

/// The largest plausible number of trials of a case.
const MAX_TRIALS: u64 = 1_000_000;

/// The results of an arm's trials of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseTrials {
    /// The scores of the trials that have one.
    pub scores: Vec<f64>,
    /// Trials that passed.
    pub passed: u64,
    /// Trials that failed.
    pub failed: u64,
    /// Trials that were ungraded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ungraded: u64,
    /// Trials that were errored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errored: u64,
    /// Errored trials in which the agent crashed or broke the protocol.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broke: u64,
    /// Trials that were planned but did not run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Errored trials that count as failures, as requested for the comparison.
    #[serde(skip)]
    pub counted_errors: u64,
    /// The numbers and scores of the trials that have a score, and of those in `broke`, which get one if they count as
    /// failures. A run starts trials in the order of their numbers, but `--rerun` and `--resume` run some of them later. A
    /// baseline does not keep them.
    #[serde(skip)]
    pub numbered: Vec<(u32, Option<f64>)>,
    /// Cost in US dollars, including earlier attempts.
    pub cost: KnownSum,
    /// Trials with an attempt that has no result, whose cost is in the total only. A run with a baseline has none.
    #[serde(skip)]
    pub unfinished: u64,
    /// Trials that were retried after an attempt that counts in no score.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tried_again: u64,
    /// Trials that ran again because their inputs had changed (`--changed rerun`). The cost of the discarded attempts is in the
    /// total only. A baseline does not keep them.
    #[serde(skip)]
    pub discarded: u64,
    /// Trials that had finished and ran again in a resumed run, later than the others. A baseline does not keep them.
    #[serde(skip)]
    pub ran_later: u64,
    /// Trials whose cost comes from a price table instead of the agent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priced: u64,
    /// Trials whose agent could read files of its own case (warning `case_in_workspace`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub case_in_workspace: u64,
    /// Tokens of the trials in which the agent ran.
    pub tokens: KnownSum,
    /// Durations of the trials that were not errored, in milliseconds.
    pub duration: KnownSum,
    /// The duration of each trial that was not errored, in milliseconds; a baseline does not keep them.
    #[serde(skip)]
    pub durations: Vec<f64>,
}

impl CaseTrials {
    /// Counts a planned trial, which has not run until its result is added.
    pub fn plan(&mut self) {
        self.not_run += 1;
    }

    /// Adds the result of a trial. A skipped trial counts in nothing.
    pub fn add(&mut self, result: &TrialResult) {
        self.not_run = self.not_run.saturating_sub(1);
        let category = result.error.as_ref().map(|error| error.category);
        let broke = result.verdict == Verdict::Errored
            && matches!(category, Some(ErrorCategory::Crashed | ErrorCategory::Protocol));
        match result.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::Ungraded => self.ungraded += 1,
            Verdict::Skipped => return,
            Verdict::Errored => {
                self.errored += 1;
                self.broke += u64::from(broke);
            }
        }
        let score = result.score.map(Fraction::get);
        self.scores.extend(score);
        if score.is_some() || broke {
            self.numbered.push((result.trial, score));
        }
        // If no agent ran, nothing can have been spent; but earlier attempts of the trial were paid for.
        let retried = result.retried_attempts();
        if result.was_paid() || retried.is_some() {
            self.cost.add(result.costs_usd().reduce(|one, other| one + other), result.cost_is_known());
        }
        if let Some(discarded) = result.discarded_attempts() {
            self.cost.add_other_attempts(discarded.cost_usd, discarded.cost_unknown == 0);
            self.discarded += 1;
        }
        self.tried_again += u64::from(retried.is_some());
        self.ran_later += u64::from(result.earlier_attempts.is_some_and(|earlier| earlier.ran_later));
        self.priced += u64::from(result.metrics.cost_source.is_some() && result.was_paid());
        let can_read_case = |warning: &Warning| matches!(warning, Warning::CaseInWorkspace { .. });
        self.case_in_workspace += u64::from(result.warnings.iter().any(can_read_case));
        if result.agent_ran() {
            let tokens = result.metrics.tokens();
            self.tokens.add(tokens.map(|it| it.value() as f64), tokens.is_some_and(Amount::is_exact));
        }
        if result.verdict != Verdict::Errored {
            let duration = result.duration_ms().map(|ms| ms as f64);
            self.duration.add(duration, duration.is_some());
            self.durations.extend(duration);
        }
    }

    /// Adds the cost of attempts of a trial that no result includes.
    pub fn add_unfinished(&mut self, attempts: &EarlierAttempts) {
        self.cost.add_other_attempts(attempts.cost_usd, attempts.cost_unknown == 0);
        self.unfinished += 1;
    }

    /// Returns the mean score of the trials. Returns `None` if no trial has a score.
    pub fn score(&self) -> Option<f64> {
        mean(&self.scores)
    }

    /// Returns the mean score with every errored trial as 0.
    pub fn score_with_errors(&self) -> Option<f64> {
        let all = self.scores.len() as f64 + self.errored as f64;
        // The sum of no scores is -0.
        (all > 0.0).then(|| self.scores.iter().sum::<f64>() / all + 0.0)
    }

    /// Returns the verdict on the cell, from the number of trials that must pass. Trials that were errored,
    /// ungraded or not run leave it open.
    pub fn verdict(&self, pass: PassTrials) -> Verdict {
        let counts = [
            (Verdict::Pass, self.passed),
            (Verdict::Fail, self.failed),
            (Verdict::Ungraded, self.ungraded + self.not_run),
            (Verdict::Errored, self.errored),
        ];
        let trials = counts.into_iter().flat_map(|(verdict, count)| std::iter::repeat_n(verdict, count as usize));
        of_trials(&trials.collect::<Vec<_>>(), pass)
    }

    /// Returns the verdict on the cell from the passed and failed trials alone.
    pub fn verdict_of_judged(&self, pass: PassTrials) -> Verdict {
        let judged = Self { passed: self.passed, failed: self.failed, ..Self::default() };
        judged.verdict(pass)
    }

    /// Returns the number of trials that were planned and not skipped.
    pub fn planned(&self) -> u64 {
        self.trials() + self.not_run
    }

    /// Returns the number of trials that ran and have a score from their own result. A crashed trial is not
    /// completed, even if it counts as a failure.
    pub fn completed(&self) -> u64 {
        (self.passed + self.failed).saturating_sub(self.counted_errors)
    }

    /// Returns the number of trials whose outcome is unknown: they may have passed or failed.
    pub fn unknown(&self) -> u64 {
        self.ungraded + self.errored + self.not_run
    }

    /// Returns the number of trials that ran.
    pub fn trials(&self) -> u64 {
        self.passed + self.failed + self.ungraded + self.errored
    }

    /// Returns the reason why no trials can have produced these numbers, if the numbers are impossible.
    pub fn is_impossible(&self) -> Option<String> {
        if let Some(score) = self.scores.iter().find(|score| !(0.0..=1.0).contains(*score)) {
            return Some(format!("{score} is not a score; scores are between 0 and 1"));
        }
        let judged = self.passed.checked_add(self.failed);
        if judged != Some(self.scores.len() as u64) {
            let scores = self.scores.len();
            return Some(format!("{} passed and {} failed, but there are {scores} scores", self.passed, self.failed));
        }
        if self.broke > self.errored || self.open().is_none_or(|open| open > MAX_TRIALS) {
            return Some(format!("{} errored trials, of which {} broke, are impossible", self.errored, self.broke));
        }
        if let Some(count) = [self.tried_again, self.priced].into_iter().find(|count| *count > MAX_TRIALS) {
            return Some(format!("{count} retried or priced trials are impossible"));
        }
        if self.case_in_workspace > MAX_TRIALS {
            return Some(format!("{} trials with files of their own case are impossible", self.case_in_workspace));
        }
        let sums = [("cost", self.cost), ("tokens", self.tokens), ("duration", self.duration)];
        sums.into_iter().find_map(|(what, total)| {
            let KnownSum { sum, known_trials, unknown_results, .. } = total;
            let is_sum = sum.is_finite() && sum >= 0.0;
            let trials = known_trials.checked_add(unknown_results);
            let is_counted = trials.is_some_and(|trials| trials <= MAX_TRIALS);
            if !is_sum {
                Some(format!("{sum} is not a possible sum of its {what}"))
            } else if !is_counted {
                Some(format!("{known_trials} trials with its {what} and {unknown_results} without it are impossible"))
            } else {
                None
            }
        })
    }

    fn open(&self) -> Option<u64> {
        self.errored.checked_add(self.ungraded)?.checked_add(self.not_run)
    }

    /// Counts trials that crashed or broke the protocol as failed.
    pub fn count_errors(&mut self) {
        self.scores.extend(std::iter::repeat_n(0.0, self.broke as usize));
        for (_, score) in &mut self.numbered {
            *score = score.or(Some(0.0));
        }
        self.failed += self.broke;
        self.errored -= self.broke;
        self.counted_errors += self.broke;
        self.broke = 0;
    }
}

/// The number of trials by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tally {
    /// Trials that were planned and not skipped.
    pub trials: usize,
    /// Trials that passed.
    pub passed: usize,
    /// Trials that failed.
    pub failed: usize,
    /// Trials that could not be graded.
    pub ungraded: usize,
    /// Trials that were errored.
    pub errored: usize,
    /// Trials that were not run.
    pub not_run: usize,
}

impl Tally {
    /// Counts the trials of a case.
    pub fn of(trials: &CaseTrials) -> Self {
        Self {
            trials: trials.planned() as usize,
            passed: trials.passed as usize,
            failed: trials.failed as usize,
            ungraded: trials.ungraded as usize,
            errored: trials.errored as usize,
            not_run: trials.not_run as usize,
        }
    }

    /// Returns the number of trials that have a score.
    pub fn completed(&self) -> usize {
        self.passed + self.failed
    }

    /// Returns true if some trials passed and some failed.
    pub fn is_flaky(&self) -> bool {
        self.passed > 0 && self.failed > 0
    }
}

/// The scores of a harness with a model, over its cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scores {
    /// The number of cases with a score.
    pub cases: usize,
    /// The mean over cases of the mean score of their trials.
    pub mean: Option<f64>,
    /// The confidence interval of the mean over cases like these, with its method.
    pub interval: Option<(Interval, IntervalMethod)>,
    /// The mean with errored trials as 0. Absent if there were none.
    pub with_errors: Option<f64>,
    /// The share of the planned trials that have a score of their own: errored, ungraded and missing trials have none.
    /// Absent if none was planned.
    pub completion: Option<f64>,
}

impl Scores {
    /// Computes the scores over cases.
    pub fn of(cases: &[&CaseTrials]) -> Self {
        let scores: Vec<f64> = cases.iter().filter_map(|case| case.score()).collect();
        let with_errors: Vec<f64> = cases.iter().filter_map(|case| case.score_with_errors()).collect();
        let sum = |of: fn(&CaseTrials) -> u64| cases.iter().map(|case| of(case)).sum::<u64>();
        // Trials that count as failures were errored nevertheless.
        let errored = sum(|it| it.errored + it.counted_errors);
        let (completed, planned) = (sum(CaseTrials::completed), sum(CaseTrials::planned));
        Self {
            cases: scores.len(),
            mean: mean(&scores),
            interval: means::score_interval(&scores, LEVEL),
            with_errors: (errored > 0).then(|| mean(&with_errors)).flatten(),
            completion: (planned > 0).then(|| completed as f64 / planned as f64),
        }
    }
}
