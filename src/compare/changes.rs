//! The differences in behaviour between two arms, figure by figure: means over the cases, the difference with its
//! interval, and p-values adjusted for the number of figures.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::join::Paired;
use super::per_trial::{known_in_both, without_errors};
use super::side::ArmDetails;
use crate::fold::CaseTrials;
use crate::result::TrialResult;
use crate::statistics::distributions::t_two_sided;
use crate::statistics::{Interval, LEVEL, means, several};
use crate::trace::ToolKind;
use crate::trace::usage::Measure;

/// A figure of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// Tool calls.
    Calls,
    CallsOf(ToolKind),
    /// Tool calls that failed.
    FailedCalls,
    /// Steps: rounds of tool calls.
    Steps,
    /// Files that the agent changed.
    ChangedFiles,
    /// Permission requests.
    Requests,
    /// Permission requests that were rejected.
    Rejected,
    /// All tokens. Cases with errored trials are left out.
    Tokens,
    /// The duration in seconds.
    Seconds,
    /// The cost in US dollars, including earlier attempts. Cases with errored trials are left out.
    Dollars,
}

impl Figure {
    fn name(self) -> String {
        match self {
            Self::Calls => "tool calls".to_owned(),
            Self::CallsOf(kind) => format!("{kind} calls"),
            Self::FailedCalls => "failed calls".to_owned(),
            Self::Steps => "steps".to_owned(),
            Self::ChangedFiles => "changed files".to_owned(),
            Self::Requests => "permission requests".to_owned(),
            Self::Rejected => "rejected requests".to_owned(),
            Self::Tokens => "tokens".to_owned(),
            Self::Seconds => "seconds".to_owned(),
            Self::Dollars => "cost in US dollars".to_owned(),
        }
    }
}

/// The sum of a figure over trials, and the number of trials that reported it.
pub type Sum = (f64, u64);

/// Returns the figures of a trial that are known exactly, without cost and tokens, which [`CaseTrials`] has.
pub fn figures(result: &TrialResult) -> Vec<(Figure, f64)> {
    let metrics = &result.metrics;
    let count = |figure, count: Option<u64>| count.map(|count| (figure, count as f64));
    let permissions = metrics.permissions.as_ref();
    let mut known: Vec<(Figure, f64)> = [
        count(Figure::Calls, metrics.tool_calls),
        count(Figure::FailedCalls, metrics.failed_calls),
        count(Figure::Steps, metrics.steps),
        count(Figure::ChangedFiles, metrics.changed_files.filter(|_| metrics.is_whole(Measure::ChangedFiles))),
        count(Figure::Requests, permissions.map(|it| it.requested)),
        count(Figure::Rejected, permissions.map(|it| it.rejected)),
        result.duration_ms().map(|ms| (Figure::Seconds, ms as f64 / 1000.0)),
    ]
    .into_iter()
    .flatten()
    .collect();
    let kinds = metrics.tool_calls_by_kind.iter().flatten();
    known.extend(kinds.map(|(kind, count)| (Figure::CallsOf(*kind), *count as f64)));
    known
}

/// A figure that differs between two arms.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Change {
    /// The figure, per trial.
    pub figure: String,
    /// True if the comparison shows the figure as a ratio too.
    #[serde(skip)]
    pub is_ratio: bool,
    /// The mean over cases in the old arm.
    pub old: f64,
    /// The mean over cases in the new arm.
    pub new: f64,
    /// New minus old.
    pub delta: f64,
    /// The 95 % interval of `delta`. Absent with one case, or if all cases differ by the same amount.
    pub interval: Option<Interval>,
    /// The p-value of the t-test over cases.
    pub p: Option<f64>,
    /// The p-value adjusted by Holm for all figures of this list.
    pub p_holm: Option<f64>,
    /// The number of cases for which every trial of both arms reported the figure.
    pub cases: usize,
}

/// Returns the figures that differ between two arms over these cases, the most certain difference first. Times that do not
/// begin at the same moment are not compared.
pub fn changes(cases: &[Paired<'_>], old: &ArmDetails, new: &ArmDetails) -> Vec<Change> {
    let mut figures: BTreeSet<Figure> =
        old.figures.values().chain(new.figures.values()).flat_map(BTreeMap::keys).copied().collect();
    figures.extend([Figure::Tokens, Figure::Dollars]);
    if old.is_timed_otherwise(new) {
        figures.remove(&Figure::Seconds);
    }
    let mut found: Vec<Change> = figures.into_iter().filter_map(|figure| change(cases, old, new, figure)).collect();
    let known: Vec<f64> = found.iter().filter_map(|change| change.p).collect();
    let mut adjusted = several::holm(&known).into_iter();
    found.iter_mut().filter(|change| change.p.is_some()).for_each(|change| change.p_holm = adjusted.next());
    found.retain(|change| change.delta != 0.0 || change.p.is_some());
    found.sort_by(|one, other| one.p.unwrap_or(1.0).total_cmp(&other.p.unwrap_or(1.0)));
    found
}

/// Returns the difference of each case. Differences that differ only by the rounding of the figures are equal: without this,
/// their spread would be tiny, and each of them would seem certain.
fn deltas(before: &[f64], now: &[f64]) -> Vec<f64> {
    let noise = 1e-12 * before.iter().chain(now).fold(0.0_f64, |most, figure| most.max(figure.abs()));
    let mut deltas: Vec<f64> = before.iter().zip(now).map(|(old, new)| new - old).collect();
    for delta in deltas.iter_mut().filter(|delta| delta.abs() <= noise) {
        *delta = 0.0;
    }
    let (least, most) =
        deltas.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), it| (least.min(*it), most.max(*it)));
    if most - least <= noise {
        deltas.fill(least);
    }
    deltas
}

fn change(cases: &[Paired<'_>], old: &ArmDetails, new: &ArmDetails, figure: Figure) -> Option<Change> {
    // A kind of call that a trial shows none of is not listed, but its calls are known to be none.
    let mean = |details: &ArmDetails, case: &Paired<'_>| {
        let of_case = details.figures.get(case.id)?;
        let (sum, count) = match (of_case.get(&figure), figure) {
            (Some(sum), Figure::CallsOf(_)) => (sum.0, of_case.get(&Figure::Calls)?.1),
            (None, Figure::CallsOf(_)) => (0.0, of_case.get(&Figure::Calls)?.1),
            (sum, _) => *sum?,
        };
        // A mean over the trials that reported a figure is not that of all.
        let trials = details.trials.get(case.id).copied().unwrap_or_default();
        (count > 0 && count == trials).then(|| sum / count as f64)
    };
    let (before, now): (Vec<f64>, Vec<f64>) = match figure {
        Figure::Tokens => known_in_both(&without_errors(cases), |it: &CaseTrials| it.tokens),
        Figure::Dollars => known_in_both(&without_errors(cases), |it: &CaseTrials| it.cost),
        _ => cases.iter().filter_map(|case| Some((mean(old, case)?, mean(new, case)?))).unzip(),
    };
    let deltas = deltas(&before, &now);
    // Sums that no number holds say nothing.
    let delta = means::mean(&deltas).filter(|delta| delta.is_finite())?;
    let spread = means::of_cases(&deltas, LEVEL).filter(|mean| mean.se > 0.0);
    Some(Change {
        figure: figure.name(),
        is_ratio: matches!(figure, Figure::Tokens | Figure::Seconds | Figure::Dollars),
        old: means::mean(&before)?,
        new: means::mean(&now)?,
        delta,
        interval: spread.as_ref().map(|mean| mean.t),
        p: spread.as_ref().map(|mean| t_two_sided(delta / mean.se, (deltas.len() - 1) as f64)),
        p_holm: None,
        cases: deltas.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rounding_of_large_figures_is_no_spread() {
        let before: Vec<f64> = (0..12).map(|case| 1000.0 + 7.0 * f64::from(case)).collect();
        let now: Vec<f64> = before.iter().map(|figure| (3.0 * figure + 1.0) / 3.0).collect();
        let equal = deltas(&before, &now);
        assert!(equal.iter().all(|delta| *delta == equal[0]) && (equal[0] - 1.0 / 3.0).abs() < 1e-9, "{equal:?}");
        assert_eq!(deltas(&[0.1 + 0.2, 4e6], &[0.3, 4e6 + 1e-7]), [0.0, 0.0]);
        assert_eq!(deltas(&[1.0, 2.0], &[1.5, 2.0]), [0.5, 0.0]);
        assert_eq!(deltas(&[], &[]), [0.0; 0]);
    }
}
