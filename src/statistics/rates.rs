//! Confidence intervals for a share.

use super::Interval;
use super::distributions::{beta_above, beta_quantile, normal_quantile, z_of_level};

/// Returns Wilson's score interval: `(p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n)`. Wilson 1927.
pub fn wilson(x: u64, n: u64, level: f64) -> Option<Interval> {
    (n > 0 && x <= n).then(|| {
        let mut interval = wilson_of_share(x as f64 / n as f64, n as f64, level);
        // If none or all passed, one end is exactly 0 or 1, which rounding must not change.
        if x == 0 {
            interval.low = 0.0;
        }
        if x == n {
            interval.high = 1.0;
        }
        interval
    })
}

/// Returns Wilson's interval if `p n` or `n` is not whole: for a mean of scores, or an effective number of cases.
pub fn wilson_of_share(p: f64, n: f64, level: f64) -> Interval {
    let (middle, half) = wilson_parts(p, n, z_of_level(level));
    Interval::around(middle, half).within(0.0, 1.0)
}

fn wilson_parts(p: f64, n: f64, z: f64) -> (f64, f64) {
    let below = 1.0 + z * z / n;
    let half = z / below * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).max(0.0).sqrt();
    ((p + z * z / (2.0 * n)) / below, half)
}

/// Returns Wilson's interval with the correction for continuity. Newcombe 1998, method 4.
pub fn wilson_corrected(x: u64, n: u64, level: f64) -> Option<Interval> {
    (n > 0 && x <= n).then(|| {
        let (p, total, z) = (x as f64 / n as f64, n as f64, z_of_level(level));
        let end = |sign: f64| {
            let root = z * z - 1.0 / total + 4.0 * total * p * (1.0 - p) + sign * (2.0 - 4.0 * p);
            (2.0 * total * p + z * z + sign * (z * root.max(0.0).sqrt() + 1.0)) / (2.0 * (total + z * z))
        };
        Interval { low: if x == 0 { 0.0 } else { end(-1.0) }, high: if x == n { 1.0 } else { end(1.0) } }
            .within(0.0, 1.0)
    })
}

/// Returns Clopper and Pearson's exact interval, for gates that need guaranteed coverage. Clopper & Pearson 1934.
pub fn clopper_pearson(x: u64, n: u64, level: f64) -> Option<Interval> {
    let outside = (1.0 - level) / 2.0;
    Some(Interval { low: clopper_pearson_lower(x, n, outside)?, high: clopper_pearson_upper(x, n, outside)? })
}

/// Returns the lower end of a one-sided Clopper-Pearson interval, with an error of `alpha`.
pub fn clopper_pearson_lower(x: u64, n: u64, alpha: f64) -> Option<f64> {
    let quantile = || beta_quantile(alpha, x as f64, (n - x) as f64 + 1.0);
    (n > 0 && x <= n).then(|| if x == 0 { 0.0 } else { quantile() })
}

/// Returns the upper end of a one-sided Clopper-Pearson interval, with an error of `alpha`.
pub fn clopper_pearson_upper(x: u64, n: u64, alpha: f64) -> Option<f64> {
    let quantile = || beta_quantile(1.0 - alpha, x as f64 + 1.0, (n - x) as f64);
    (n > 0 && x <= n).then(|| if x == n { 1.0 } else { quantile() })
}

/// Returns the lower end of a one-sided Wilson interval, with an error of `alpha`: for "at least so many pass".
pub fn wilson_lower(x: u64, n: u64, alpha: f64) -> Option<f64> {
    (n > 0 && x <= n).then(|| {
        let (middle, half) = wilson_parts(x as f64 / n as f64, n as f64, normal_quantile(1.0 - alpha));
        if x == 0 { 0.0 } else { (middle - half).clamp(0.0, 1.0) }
    })
}

/// Returns Wald's interval, limited to 0 and 1. It is too narrow for few cases and kept for comparison.
pub fn wald(x: u64, n: u64, level: f64) -> Option<Interval> {
    (n > 0 && x <= n).then(|| {
        let p = x as f64 / n as f64;
        Interval::around(p, z_of_level(level) * super::means::bernoulli_se(p, n)).within(0.0, 1.0)
    })
}

/// Returns Agresti and Coull's interval: Wald's on `n + z²` with `z²/2` more successes, limited to 0 and 1. Agresti &
/// Coull 1998.
pub fn agresti_coull(x: u64, n: u64, level: f64) -> Option<Interval> {
    (n > 0 && x <= n).then(|| {
        let z = z_of_level(level);
        let total = n as f64 + z * z;
        let p = (x as f64 + z * z / 2.0) / total;
        Interval::around(p, z * (p * (1.0 - p) / total).sqrt()).within(0.0, 1.0)
    })
}

/// Returns the central interval of a share's posterior under a Beta prior: `(1, 1)` is flat (Bowyer et al. 2025),
/// `(½, ½)` Jeffreys'.
pub fn beta_posterior(x: u64, n: u64, prior: (f64, f64), level: f64) -> Option<Interval> {
    let (a, b) = posterior(x, n, prior)?;
    let outside = (1.0 - level) / 2.0;
    Some(Interval { low: beta_quantile(outside, a, b), high: beta_quantile(1.0 - outside, a, b) })
}

/// Returns the mean of [`beta_posterior`].
pub fn beta_posterior_mean(x: u64, n: u64, prior: (f64, f64)) -> Option<f64> {
    let (a, b) = posterior(x, n, prior)?;
    Some(a / (a + b))
}

/// Returns the posterior probability that the share is above a threshold, under a Beta prior.
pub fn beta_posterior_above(x: u64, n: u64, prior: (f64, f64), threshold: f64) -> Option<f64> {
    let (a, b) = posterior(x, n, prior)?;
    Some(beta_above(threshold, a, b))
}

fn posterior(x: u64, n: u64, (a, b): (f64, f64)) -> Option<(f64, f64)> {
    (x <= n && a > 0.0 && b > 0.0).then(|| (a + x as f64, b + (n - x) as f64))
}
