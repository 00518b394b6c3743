//! Estimates from c successes of n trials: the success of k attempts, and the reliability of a case.

use serde::Serialize;

use super::means;

/// Returns the probability that at least one of `k` attempts succeeds: `1 - C(n-c, k) / C(n, k)`, unbiased, as
/// a stable product. `None` if fewer than `k` trials have a score. Chen et al. 2021 (human-eval).
pub fn pass_at_k(n: u64, c: u64, k: u64) -> Option<f64> {
    if k == 0 || n < k || c > n {
        return None;
    }
    if n - c < k {
        return Some(1.0);
    }
    Some(1.0 - (n - c + 1..=n).map(|i| 1.0 - k as f64 / i as f64).product::<f64>())
}

/// Returns the probability that all of `k` attempts succeed: `C(c, k) / C(n, k)`, unbiased. `None` if fewer
/// than `k` trials have a score. Yao et al. 2024 (tau-bench).
pub fn pass_hat_k(n: u64, c: u64, k: u64) -> Option<f64> {
    if k == 0 || n < k || c > n {
        return None;
    }
    if c < k {
        return Some(0.0);
    }
    Some((0..k).map(|j| (c - j) as f64 / (n - j) as f64).product())
}

/// Returns `(c/n)^k`, a biased estimate of pass^k that is too high; kept for comparison.
pub fn pass_hat_k_biased(n: u64, c: u64, k: u32) -> Option<f64> {
    (n > 0 && c <= n).then(|| (c as f64 / n as f64).powf(f64::from(k)))
}

/// Returns the probabilities that at least one, and that all, of `k` independent attempts succeed if each
/// succeeds with probability `p`.
pub fn of_independent(p: f64, k: u32) -> (f64, f64) {
    (1.0 - (1.0 - p).powf(f64::from(k)), p.powf(f64::from(k)))
}

/// A figure of k attempts over a suite.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OverCases {
    /// The mean over the cases that have the figure.
    pub mean: f64,
    /// The standard error over cases; absent with fewer than two cases.
    pub se: Option<f64>,
    /// The number of cases that have the figure.
    pub cases: usize,
}

/// Returns the mean over cases of `figure` of each case's `(n, c)`; `None` if no case has it.
pub fn over_cases(cases: &[(u64, u64)], figure: impl Fn(u64, u64) -> Option<f64>) -> Option<OverCases> {
    let known: Vec<f64> = cases.iter().filter_map(|(n, c)| figure(*n, *c)).collect();
    let se = means::variance(&known).map(|variance| (variance / known.len() as f64).sqrt());
    Some(OverCases { mean: means::mean(&known)?, se, cases: known.len() })
}

/// The reliability of a case.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Flakiness {
    /// The share of trials that passed.
    pub share: f64,
    /// The unbiased variance of the trials; absent with one trial.
    pub variance: Option<f64>,
    /// The probability that two trials disagree, `2c(n-c) / (n(n-1))`; absent with one trial.
    pub disagreement: Option<f64>,
    /// The entropy of the outcome, in bits.
    pub entropy: f64,
    /// True if the case both passed and failed.
    pub flaky: bool,
}

/// Computes the reliability of a case from `c` successes of `n` trials; `None` without a trial.
pub fn flakiness(n: u64, c: u64) -> Option<Flakiness> {
    if n == 0 || c > n {
        return None;
    }
    let (total, passed) = (n as f64, c as f64);
    let share = passed / total;
    let disagreement = (n > 1).then(|| 2.0 * passed * (total - passed) / (total * (total - 1.0)));
    let bits = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    Some(Flakiness {
        share,
        variance: disagreement.map(|it| it / 2.0),
        disagreement,
        entropy: bits(share) + bits(1.0 - share),
        flaky: c > 0 && c < n,
    })
}
