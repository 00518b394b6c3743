//! What a trial cost in both arms, over the same cases: money, tokens and time. Pure.

use serde::Serialize;

use super::join::{Paired, SAME};
use crate::fold::{CaseTrials, KnownSum};
use crate::statistics::means::mean;
use crate::trace::amount::Amount;

/// The cost, the tokens and the duration of a trial of both arms, over the compared cases alone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PerTrial {
    /// The mean cost in US dollars, including retried attempts. Cases with errored trials are left out.
    pub cost_usd: TrialFigure,
    /// The mean number of tokens. Cases with errored trials are left out.
    pub tokens: TrialFigure,
    /// The median duration in milliseconds. Errored trials are left out.
    pub duration_ms: TrialFigure,
}

/// A figure per trial in both arms, over the same cases. Each case counts once.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrialFigure {
    /// The old arm's figure. Absent if unknown.
    pub old: Option<f64>,
    /// The new arm's figure. Absent if unknown.
    pub new: Option<f64>,
    /// The number of the old arm's trials that did not report the whole figure. If it is not 0, `old` is a lower bound.
    pub old_unknown: u64,
    /// The number of the new arm's trials that did not report the whole figure. If it is not 0, `new` is a lower bound.
    pub new_unknown: u64,
    /// The number of cases that the figures are based on.
    pub cases: usize,
}

impl PerTrial {
    /// Computes the figures over these cases.
    pub fn of(cases: &[Paired<'_>]) -> Self {
        let without = without_errors(cases);
        Self {
            cost_usd: figure(&without, |it| it.cost),
            tokens: figure(&without, |it| it.tokens),
            duration_ms: median_duration(cases),
        }
    }
}

/// Returns the cases without an errored trial. The cost and the tokens of a trial that ended early do not compare with those
/// of a trial that did the task.
pub(super) fn without_errors<'a>(cases: &[Paired<'a>]) -> Vec<Paired<'a>> {
    cases.iter().filter(|case| has_no_errors(case.old) && has_no_errors(case.new)).cloned().collect()
}

/// Returns true if no trial of a case was errored. A trial that counts as a failure (`--errors fail`) was errored nevertheless.
pub(super) fn has_no_errors(trials: &CaseTrials) -> bool {
    trials.errored + trials.counted_errors == 0
}

/// Returns the means per trial of the old and of the new arm, for each case in which every trial of both reported the figure.
pub(super) fn known_in_both(cases: &[Paired<'_>], of: fn(&CaseTrials) -> KnownSum) -> (Vec<f64>, Vec<f64>) {
    let whole = |known: KnownSum| known.mean().and_then(Amount::exact);
    cases.iter().filter_map(|case| Some((whole(of(case.old))?, whole(of(case.new))?))).unzip()
}

/// Returns a figure over the cases in which both arms reported it. If there is no such case, each arm's figure is over all
/// cases, and a lower bound if a trial did not report it.
fn figure(cases: &[Paired<'_>], of: fn(&CaseTrials) -> KnownSum) -> TrialFigure {
    let (old, new) = known_in_both(cases, of);
    if !old.is_empty() {
        return TrialFigure { old: mean(&old), new: mean(&new), old_unknown: 0, new_unknown: 0, cases: old.len() };
    }
    let old: KnownSum = cases.iter().map(|case| of(case.old)).sum();
    let new: KnownSum = cases.iter().map(|case| of(case.new)).sum();
    TrialFigure {
        old: old.mean().map(Amount::value),
        new: new.mean().map(Amount::value),
        old_unknown: old.unknown_results(),
        new_unknown: new.unknown_results(),
        cases: cases.len(),
    }
}

/// Returns the median durations over the cases in which every trial of both arms has its time. If there is no such case, as
/// with a baseline, which keeps no durations, each arm's median is over all cases.
fn median_duration(cases: &[Paired<'_>]) -> TrialFigure {
    let is_known = |trials: &CaseTrials| !trials.durations.is_empty() && trials.duration.unknown_trials() == 0;
    let is_in_both = |case: &&Paired<'_>| is_known(case.old) && is_known(case.new);
    let both: Vec<&Paired<'_>> = cases.iter().filter(is_in_both).collect();
    let cases = if both.is_empty() { cases.iter().collect() } else { both };
    TrialFigure {
        old: median_by_case(cases.iter().map(|case| case.old.durations.as_slice())),
        new: median_by_case(cases.iter().map(|case| case.new.durations.as_slice())),
        old_unknown: 0,
        new_unknown: 0,
        cases: cases.len(),
    }
}

/// Returns the median of the values of all cases, in which each case has the same weight, whatever its number of values is.
fn median_by_case<'a>(cases: impl Iterator<Item = &'a [f64]>) -> Option<f64> {
    let weighted = |values: &'a [f64]| values.iter().map(move |value| (*value, 1.0 / values.len() as f64));
    let mut values: Vec<(f64, f64)> = cases.flat_map(weighted).collect();
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut weight_so_far = 0.0_f64;
    for (place, (value, weight)) in values.iter().enumerate() {
        weight_so_far += weight;
        if weight_so_far > half + SAME {
            return Some(*value);
        }
        // Half of the weight is below, the other half above: the middle between both neighbours.
        if weight_so_far >= half - SAME {
            return Some(values.get(place + 1).map_or(*value, |(next, _)| f64::midpoint(*value, *next)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_median_each_case_has_the_same_weight() {
        let median = |cases: &[&[f64]]| median_by_case(cases.iter().copied());
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[&[3.0], &[1.0], &[2.0]]), Some(2.0));
        assert_eq!(median(&[&[1.0, 2.0], &[3.0, 4.0]]), Some(2.5));
        assert_eq!(median(&[&[10.0, 10.0, 10.0, 10.0], &[60.0]]), Some(35.0), "as with four trials of each");
        assert_eq!(median(&[&[10.0; 7], &[20.0; 3], &[60.0]]), Some(20.0));
    }
}
