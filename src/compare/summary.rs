//! The summary of each arm: score with interval, pass@k, cost, tokens, duration, and the arms that dominate it.

use std::collections::BTreeSet;

use serde::Serialize;

use super::Pair;
use super::doubts::Doubt;
use super::join::join;
use super::per_trial::has_no_errors;
use super::result_doubts::ResultDoubts;
use super::side::{Arm, Side};
use crate::fold::{CaseTrials, KnownSum, Scores};
use crate::statistics::means::{IntervalMethod, mean};
use crate::statistics::{Interval, attempts, figures};
use crate::trace::amount::Amount;

/// The minimum number of trials for a meaningful 95th percentile.
const ENOUGH_FOR_P95: usize = 60;

/// An arm of a comparison, over all its own cases but those in quarantine.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArmSummary {
    /// The arm's name.
    pub name: String,
    /// The run that the arm belongs to.
    pub run: String,
    /// The name of the harness.
    pub harness: String,
    /// The arm's name in its run: the variant of an experiment, else the model asked for, or `default` without one.
    pub arm: String,
    /// The model asked for. Absent if none was, and for a variant of a baseline, which does not keep it.
    pub model: Option<String>,
    /// The number of cases with a score.
    pub cases: usize,
    /// The number of trials that ran.
    pub trials: u64,
    /// The mean over cases of the mean score of their trials.
    pub score: Option<f64>,
    /// The 95 % confidence interval of the score.
    pub interval: Option<Interval>,
    /// The method by which `interval` was computed.
    pub interval_method: Option<IntervalMethod>,
    /// The score with errored trials as 0. Absent if there were none.
    pub score_with_errors: Option<f64>,
    /// The share of the planned trials that have a score of their own: errored, ungraded and missing trials have none.
    pub completion: Option<f64>,
    /// The k of `pass_at_k` and `pass_hat_k`: the smallest number of trials with a score that any case has. Absent if no
    /// case has one.
    pub k: Option<u64>,
    /// The probability that at least one of k attempts passes.
    pub pass_at_k: Option<f64>,
    /// The probability that all of k attempts pass.
    pub pass_hat_k: Option<f64>,
    /// The cost of all trials, in US dollars, including attempts without a result. The other figures leave these out.
    cost_usd: Option<f64>,
    /// The cost per trial, in US dollars; a lower bound if some costs are unknown.
    cost_per_trial: Option<f64>,
    /// The cost of the trials divided by the number of passed trials, in US dollars; a lower bound if some costs are unknown.
    /// Absent if no trial passed.
    cost_per_success: Option<f64>,
    /// The number of trials whose cost is unknown or a lower bound.
    cost_unknown: u64,
    /// The number of trials with a result whose cost is unknown or a lower bound.
    #[serde(skip)]
    cost_unknown_in_results: u64,
    /// Tokens per trial; a lower bound if some are unknown.
    tokens_per_trial: Option<f64>,
    /// The number of trials whose tokens are unknown or a lower bound.
    tokens_unknown: u64,
    /// The median duration of a trial, in milliseconds.
    pub median_duration_ms: Option<f64>,
    /// The 95th percentile of the duration, in milliseconds. Absent below 60 trials, where it is meaningless.
    pub p95_duration_ms: Option<f64>,
    /// The number of trials that were not errored and have no duration, which the two figures leave out.
    #[serde(skip)]
    pub duration_unknown: u64,
    /// Tool calls per trial: the mean over the cases that can be compared between all compared arms that show calls, and whose
    /// calls all of these arms showed. Without such a case, or if no other compared arm shows calls, the mean over the arm's own
    /// cases.
    pub calls_per_trial: Option<f64>,
    /// The number of errored trials.
    pub errored: u64,
    /// The number of errored trials that count as failures (`--errors fail`).
    pub errored_as_failures: u64,
    /// The number of ungraded trials.
    pub ungraded: u64,
    /// The number of planned trials that did not run.
    pub not_run: u64,
    /// Names of the arms that dominate this one: over the cases of `ranking` they score no less, cost no more, and are better
    /// in score or cost. Empty if there are none. Absent if the arm is not ranked.
    pub dominated_by: Option<Vec<String>>,
}

/// The arms by score and cost, over the same cases: scores and costs of different cases do not compare.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ranking {
    /// The number of cases: those that can be compared between all ranked arms, without an errored or ungraded trial of one.
    pub cases: usize,
    /// The arms that are compared and whose costs are all known.
    pub arms: Vec<RankedArm>,
    /// Caveats about these scores: agents that could read files of their own case. Absent if there are none.
    pub doubts: Option<Vec<Doubt>>,
}

/// The score and the cost of an arm, over the cases of a ranking.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RankedArm {
    /// The arm's name.
    pub name: String,
    /// The mean over cases of the mean score of their trials.
    pub score: f64,
    /// The mean over cases of the mean cost of their trials, in US dollars.
    pub cost_per_trial: f64,
}

impl ArmSummary {
    /// Returns the cost per trial, in US dollars.
    pub fn cost_per_trial(&self) -> Option<Amount<f64>> {
        self.cost_per_trial.map(|cost| Amount::new(cost, self.cost_unknown_in_results == 0))
    }

    /// Returns the cost per passed trial, in US dollars.
    pub fn cost_per_success(&self) -> Option<Amount<f64>> {
        self.cost_per_success.map(|cost| Amount::new(cost, self.cost_unknown_in_results == 0))
    }

    /// Returns the tokens per trial, a lower bound if some trials did not report them.
    pub fn tokens_per_trial(&self) -> Option<Amount<f64>> {
        self.tokens_per_trial.map(|tokens| Amount::new(tokens, self.tokens_unknown == 0))
    }
}

/// Returns the summaries of all arms of the pairs, each given with its side.
pub fn summaries(arms: &[(&Side, &Arm)], pairs: &[Pair]) -> Vec<ArmSummary> {
    let shows_calls = |arm: &Arm| arm.details.as_ref().is_some_and(|details| !details.seen.is_empty());
    let compared: Vec<(&Side, &Arm)> =
        arms.iter().copied().filter(|(_, arm)| shows_calls(arm) && is_compared(&arm.name, pairs)).collect();
    // A single arm, such as the new one beside a baseline file, has no cases in common with another.
    let mut common = if compared.len() > 1 { common_cases(&compared) } else { BTreeSet::new() };
    common.retain(|case| compared.iter().all(|(_, arm)| calls_of(arm, case).is_some()));
    let calls = |arm: &Arm| {
        let is_common = !common.is_empty() && compared.iter().any(|(_, other)| other.name == arm.name);
        let cases: Vec<&str> =
            if is_common { common.iter().copied().collect() } else { arm.cases.keys().map(String::as_str).collect() };
        mean(&cases.into_iter().filter_map(|case| calls_of(arm, case)).collect::<Vec<_>>())
    };
    arms.iter().map(|(_, arm)| summary(arm, calls(arm))).collect()
}

/// Returns the tool calls per trial of a case, if the arm showed them.
fn calls_of(arm: &Arm, case: &str) -> Option<f64> {
    arm.details.as_ref()?.calls(case)
}

fn is_compared(name: &str, pairs: &[Pair]) -> bool {
    pairs.iter().any(|pair| pair.old == name || pair.new == name)
}

/// Returns the cases that can be compared between all arms.
fn common_cases<'a>(arms: &[(&'a Side, &'a Arm)]) -> BTreeSet<&'a str> {
    let Some(first) = arms.first().copied() else { return BTreeSet::new() };
    let with_first =
        arms.iter().map(|arm| join(first, *arm).cases.into_iter().map(|case| case.id).collect::<BTreeSet<&str>>());
    with_first.reduce(|all, of_arm| &all & &of_arm).unwrap_or_default()
}

/// Ranks the arms of the pairs, each given with its side, over the cases that can be compared between all ranked arms, and adds
/// to each of them those that dominate it. Returns `None` if fewer than two arms can be ranked, or if they completed no case in
/// common.
pub fn rank(
    rows: &mut [ArmSummary],
    arms: &[(&Side, &Arm)],
    pairs: &[Pair],
    doubted: &ResultDoubts,
) -> Option<Ranking> {
    let has_costs = |row: &ArmSummary| row.cost_per_trial().is_some_and(Amount::is_exact);
    let is_ranked = |row: &ArmSummary| row.score.is_some() && has_costs(row) && is_compared(&row.name, pairs);
    let (mut rows, arms): (Vec<&mut ArmSummary>, Vec<(&Side, &Arm)>) =
        rows.iter_mut().zip(arms.iter().copied()).filter(|(row, _)| is_ranked(row)).unzip();
    let is_complete = |case: &CaseTrials| {
        has_no_errors(case) && case.ungraded == 0 && case.score().is_some() && case.cost.mean().is_some()
    };
    // An arm that is not ranked leaves out no case.
    let common = common_cases(&arms);
    let in_all = |id: &str| arms.iter().all(|(_, arm)| arm.cases.get(id).is_some_and(is_complete));
    let cases: Vec<&str> = common.into_iter().filter(|id| in_all(id)).collect();
    if rows.len() < 2 || cases.is_empty() {
        return None;
    }
    let point = |arm: &Arm| {
        let own: Vec<&CaseTrials> = cases.iter().filter_map(|id| arm.cases.get(*id)).collect();
        let costs: Vec<f64> = own.iter().filter_map(|case| case.cost.mean()?.exact()).collect();
        let scores: Vec<f64> = own.iter().filter_map(|case| case.score()).collect();
        (mean(&costs).unwrap_or_default(), mean(&scores).unwrap_or_default())
    };
    let points: Vec<(f64, f64)> = arms.iter().map(|(_, arm)| point(arm)).collect();
    for (row, by) in rows.iter_mut().zip(figures::dominated_by(&points)) {
        row.dominated_by = Some(by.iter().filter_map(|place| Some(arms.get(*place)?.1.name.clone())).collect());
    }
    let ranked = |((_, arm), (cost_per_trial, score)): (&(&Side, &Arm), (f64, f64))| RankedArm {
        name: arm.name.clone(),
        score,
        cost_per_trial,
    };
    let of_arms = arms.iter().filter_map(|(_, arm)| doubted.caveat_of_scores(&arm.name, |case| cases.contains(&case)));
    let doubts: Vec<Doubt> = of_arms.collect();
    Some(Ranking {
        cases: cases.len(),
        arms: arms.iter().zip(points).map(ranked).collect(),
        doubts: (!doubts.is_empty()).then_some(doubts),
    })
}

fn summary(arm: &Arm, calls_per_trial: Option<f64>) -> ArmSummary {
    let scored: Vec<&CaseTrials> = arm.cases.values().filter(|case| !case.scores.is_empty()).collect();
    let scores = Scores::of(&arm.cases.values().collect::<Vec<_>>());
    let (interval, interval_method) = scores.interval.unzip();
    let total = |of: fn(&CaseTrials) -> u64| arm.cases.values().map(of).sum::<u64>();
    let known = |of: fn(&CaseTrials) -> KnownSum| arm.cases.values().map(of).sum::<KnownSum>();
    // Trials that count as failures were errored nevertheless.
    let errored = total(|it| it.errored + it.counted_errors);
    let judged: Vec<(u64, u64)> = scored.iter().map(|it| (it.passed + it.failed, it.passed)).collect();
    let k = judged.iter().map(|(n, _)| *n).min();
    let over = |figure: fn(u64, u64, u64) -> Option<f64>| {
        attempts::over_cases(&judged, |n, c| figure(n, c, k?)).map(|it| it.mean)
    };
    let (cost, tokens) = (known(|it| it.cost), known(|it| it.tokens));
    let durations: Vec<f64> = arm.cases.values().flat_map(|case| &case.durations).copied().collect();
    ArmSummary {
        name: arm.name.clone(),
        run: arm.run.clone(),
        harness: arm.harness.clone(),
        arm: arm.column.clone(),
        model: arm.model.clone(),
        cases: scores.cases,
        trials: total(CaseTrials::trials),
        score: scores.mean,
        interval,
        interval_method,
        score_with_errors: scores.with_errors,
        completion: scores.completion,
        k,
        pass_at_k: over(attempts::pass_at_k),
        pass_hat_k: over(attempts::pass_hat_k),
        cost_usd: cost.total().map(Amount::value),
        cost_per_trial: cost.mean().map(Amount::value),
        cost_per_success: cost
            .of_results()
            .and_then(|cost| figures::cost_of_success(cost.value(), total(|it| it.passed))),
        cost_unknown: cost.unknown_trials(),
        cost_unknown_in_results: cost.unknown_results(),
        tokens_per_trial: tokens.mean().map(Amount::value),
        tokens_unknown: tokens.unknown_trials(),
        median_duration_ms: figures::quantile(&durations, 0.5),
        duration_unknown: known(|it| it.duration).unknown_trials(),
        p95_duration_ms: figures::quantile(&durations, 0.95).filter(|_| durations.len() >= ENOUGH_FOR_P95),
        calls_per_trial,
        errored,
        errored_as_failures: total(|it| it.counted_errors),
        ungraded: total(|it| it.ungraded),
        not_run: total(|it| it.not_run),
        dominated_by: None,
    }
}
