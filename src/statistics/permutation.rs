//! Tests and intervals by rearranging the observed values: sign flips, ranks, resampling.

use serde::Serialize;

use super::Interval;
use super::distributions::binomial_at_most;
use super::figures::quantile_of_sorted;
use super::means::mean;
use super::random::Generator;

/// The number of non-zero differences up to which every sign flip is tried.
pub const EXACT_UP_TO: usize = 20;

/// The number of random sign flips that are drawn if there are too many differences to try all flips.
pub const DRAWS: u32 = 9_999;

/// The p-values of a sign-flip test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SignFlip {
    /// The p-value of the test that the mean is not 0.
    pub two_sided: f64,
    /// The p-value of a mean above 0.
    pub greater: f64,
    /// The p-value of a mean below 0.
    pub less: f64,
    /// True if every flip was counted; otherwise flips were drawn.
    pub exact: bool,
}

/// Returns the p-values of paired differences under random flips of their signs. Exact with up to [`EXACT_UP_TO`]
/// non-zero differences, and with any number of equal size, where it is McNemar's exact test; otherwise [`DRAWS`] flips
/// are drawn. Fisher 1935; scipy's `permutation_test` with `samples`.
pub fn sign_flip(differences: &[f64], generator: &mut Generator) -> SignFlip {
    let sizes: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    let observed: f64 = sizes.iter().sum();
    let Some(first) = sizes.first().map(|size| size.abs()) else {
        return SignFlip { two_sided: 1.0, greater: 1.0, less: 1.0, exact: true };
    };
    if sizes.iter().all(|size| (size.abs() - first).abs() <= 1e-12 * first) {
        return of_equal_sizes(&sizes);
    }
    // Sums that differ only by rounding are equal.
    let slack = 1e-9 * sizes.iter().map(|size| size.abs()).sum::<f64>();
    let mut counts = Counts::default();
    if sizes.len() <= EXACT_UP_TO {
        let mut signed = sizes.clone();
        let mut sum = observed;
        counts.add(sum, observed, slack);
        // In Gray code, one sign changes from each flip to the next.
        for step in 1u32..1 << sizes.len() {
            let place = step.trailing_zeros() as usize;
            if let Some(size) = signed.get_mut(place) {
                sum -= 2.0 * *size;
                *size = -*size;
            }
            counts.add(sum, observed, slack);
        }
        return counts.share(0, true);
    }
    for _ in 0..DRAWS {
        let sum = sizes.iter().map(|size| if generator.bits() >> 63 == 0 { *size } else { -*size }).sum();
        counts.add(sum, observed, slack);
    }
    counts.share(1, false)
}

#[derive(Default)]
struct Counts {
    all: u32,
    two_sided: u32,
    greater: u32,
    less: u32,
}

impl Counts {
    fn add(&mut self, sum: f64, observed: f64, slack: f64) {
        self.all += 1;
        self.two_sided += u32::from(sum.abs() >= observed.abs() - slack);
        self.greater += u32::from(sum >= observed - slack);
        self.less += u32::from(sum <= observed + slack);
    }

    /// Returns the p-values. With drawn flips, the observed values count as one more.
    fn share(&self, seen: u32, exact: bool) -> SignFlip {
        let share = |count: u32| f64::from(count + seen) / f64::from(self.all + seen);
        SignFlip { two_sided: share(self.two_sided), greater: share(self.greater), less: share(self.less), exact }
    }
}

fn of_equal_sizes(sizes: &[f64]) -> SignFlip {
    let up = sizes.iter().filter(|size| **size > 0.0).count() as u64;
    let n = sizes.len() as u64;
    let (greater, less) = (binomial_at_most(n - up, n, 0.5), binomial_at_most(up, n, 0.5));
    SignFlip { two_sided: (2.0 * greater.min(less)).min(1.0), greater, less, exact: true }
}

/// Returns the p-value if `exceed` draws reach the observed value: `(b + 1) / (m + 1)`, never 0. Phipson & Smyth 2010.
pub fn p_of_draws(exceed: u64, draws: u64) -> f64 {
    (exceed + 1) as f64 / (draws + 1) as f64
}

/// Returns Wilcoxon's signed-rank statistic (the smaller sum of ranks) and its exact two-sided p-value. Zeros are left
/// out, and equal sizes share their rank. `None` without a difference. Wilcoxon 1945.
pub fn signed_rank(differences: &[f64]) -> Option<(f64, f64)> {
    let mut sizes: Vec<f64> = differences.iter().copied().filter(|difference| *difference != 0.0).collect();
    if sizes.is_empty() {
        return None;
    }
    sizes.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Ranks are doubled, so that shared ranks are whole numbers.
    let mut ranks: Vec<usize> = Vec::with_capacity(sizes.len());
    for equal in sizes.chunk_by(|a, b| a.abs() == b.abs()) {
        let before = ranks.len();
        ranks.extend(std::iter::repeat_n(2 * before + equal.len() + 1, equal.len()));
    }
    let all: usize = ranks.iter().sum();
    let up: usize = sizes.iter().zip(&ranks).filter(|(size, _)| **size > 0.0).map(|(_, rank)| *rank).sum();
    let smaller = up.min(all - up);
    // The probability of each sum of ranks if each sign is a coin toss.
    let mut chances = vec![0.0; all + 1];
    if let Some(none) = chances.first_mut() {
        *none = 1.0;
    }
    for rank in ranks {
        for sum in (0..=all).rev() {
            let with = if sum >= rank { chances[sum - rank] } else { 0.0 };
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    let at_most: f64 = chances.iter().take(smaller + 1).sum();
    Some((smaller as f64 / 2.0, (2.0 * at_most).min(1.0)))
}

/// The result of resampling a mean.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bootstrap {
    /// The interval of the resampled means.
    pub interval: Interval,
    /// Standard deviation of the resampled means.
    pub se: f64,
    /// The share of resampled means at or below 0.
    pub at_most_zero: f64,
    /// The number of resamples.
    pub resamples: usize,
}

/// Resamples a mean in all `n^n` ways; for very few values. Efron 1979, percentiles of type 7.
pub fn bootstrap_exhaustive(values: &[f64], level: f64) -> Option<Bootstrap> {
    let n = values.len();
    let count = n.checked_pow(n as u32).filter(|count| n > 0 && *count <= 1_000_000)?;
    let resample = |mut code: usize| {
        let mut sum = 0.0;
        for _ in 0..n {
            sum += values.get(code % n).copied().unwrap_or_default();
            code /= n;
        }
        sum / n as f64
    };
    of_resamples((0..count).map(resample).collect(), level)
}

/// Resamples a mean by clusters: each cluster's values stay together. A check of the t interval.
pub fn bootstrap_clusters(
    clusters: &[Vec<f64>],
    resamples: u32,
    level: f64,
    generator: &mut Generator,
) -> Option<Bootstrap> {
    let clusters: Vec<(f64, usize)> =
        clusters.iter().filter(|it| !it.is_empty()).map(|it| (it.iter().sum(), it.len())).collect();
    if clusters.is_empty() {
        return None;
    }
    let mut resample = || {
        let drawn = (0..clusters.len()).filter_map(|_| clusters.get(generator.below(clusters.len())));
        let (sum, count) = drawn.fold((0.0, 0), |(sum, count), (more, n)| (sum + more, count + n));
        sum / count as f64
    };
    of_resamples((0..resamples).map(|_| resample()).collect(), level)
}

fn of_resamples(mut means: Vec<f64>, level: f64) -> Option<Bootstrap> {
    means.sort_by(f64::total_cmp);
    let middle = mean(&means)?;
    let outside = (1.0 - level) / 2.0;
    let squares: f64 = means.iter().map(|it| (it - middle).powi(2)).sum();
    Some(Bootstrap {
        interval: Interval {
            low: quantile_of_sorted(&means, outside)?,
            high: quantile_of_sorted(&means, 1.0 - outside)?,
        },
        se: (squares / means.len() as f64).sqrt(),
        at_most_zero: means.iter().filter(|it| **it <= 1e-12).count() as f64 / means.len() as f64,
        resamples: means.len(),
    })
}
