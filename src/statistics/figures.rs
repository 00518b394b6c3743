//! Statistics of durations, tokens and costs: quantiles, medians, cost per success, and Pareto dominance.

use super::Interval;
use super::distributions::{binomial_at_most, binomial_exactly};

/// Returns the quantile by linear interpolation between order statistics (type 7 of Hyndman & Fan 1996, numpy's
/// default).
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_of_sorted(&sorted, share)
}

/// Returns the quantile of sorted values.
pub fn quantile_of_sorted(sorted: &[f64], share: f64) -> Option<f64> {
    let place = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let below = *sorted.get(place.floor() as usize)?;
    let above = *sorted.get(place.ceil() as usize)?;
    Some(below + (above - below) * (place - place.floor()))
}

/// The median, an order-statistic interval of it, and the coverage of the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    pub median: f64,
    /// The k-th smallest and the k-th largest value, and the share of repetitions in which this interval contains the
    /// true median. Absent if even all values are not enough: below 6 at 95 %.
    pub interval: Option<(Interval, f64)>,
}

/// Returns the median with its order-statistic interval; `None` without a value.
pub fn median(values: &[f64], level: f64) -> Option<Median> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let outside = |k: usize| 2.0 * binomial_at_most(k as u64 - 1, n as u64, 0.5);
    let k = first_outside(n, level);
    let interval = k.and_then(|k| {
        let (low, high) = (*sorted.get(k - 1)?, *sorted.get(n.checked_sub(k)?)?);
        Some((Interval { low, high }, 1.0 - outside(k)))
    });
    Some(Median { median: quantile_of_sorted(&sorted, 0.5)?, interval })
}

/// Returns the largest k for which at most `1 - level` lies outside the k-th values from both ends.
fn first_outside(n: usize, level: f64) -> Option<usize> {
    let (mut below, mut found) = (0.0, None);
    for k in 1..=n / 2 {
        below += binomial_exactly(k as u64 - 1, n as u64, 0.5);
        if 2.0 * below > 1.0 - level {
            break;
        }
        found = Some(k);
    }
    found
}

/// Returns the cost per success: the total divided by the number of successes; `None` if there was none.
pub fn cost_of_success(total: f64, successes: u64) -> Option<f64> {
    (successes > 0).then(|| total / successes as f64)
}

/// Returns, for each point, the indices of the points that dominate it: points that cost no more, score no less, and
/// are better in one of the two. Equal points do not dominate each other. Points are `(cost, score)`.
pub fn dominated_by(points: &[(f64, f64)]) -> Vec<Vec<usize>> {
    let beats = |a: (f64, f64), b: (f64, f64)| a.0 <= b.0 && a.1 >= b.1 && a != b;
    let all = |point: (f64, f64)| points.iter().enumerate().filter(move |(_, other)| beats(**other, point));
    points.iter().map(|point| all(*point).map(|(place, _)| place).collect()).collect()
}
