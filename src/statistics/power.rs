//! Power calculations: the smallest detectable effect, and the number of cases or trials needed to detect a
//! given effect.

use super::distributions::{beta_quantile, binomial_at_most, normal_quantile, t_quantile};

/// The usual error rate of a test, two-sided for a difference and one-sided for the bound of a gate.
pub const ALPHA: f64 = 0.05;
/// The usual power of a test: the probability of detecting a difference that exists.
pub const POWER: f64 = 0.8;

/// The components of the variance of a paired difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// The variance of the difference of the arms' true scores over cases.
    pub between: f64,
    /// The variance within the cases of the first arm.
    pub within_a: f64,
    /// The variance within the cases of the second arm.
    pub within_b: f64,
}

impl Spread {
    /// Returns the variance of one case's difference with these numbers of trials in the two arms.
    pub fn of_case(&self, trials_a: f64, trials_b: f64) -> f64 {
        self.between + self.within_a / trials_a + self.within_b / trials_b
    }
}

/// Returns the effect, in standard errors, that a two-sided test detects with this power.
pub fn errors_apart(alpha: f64, power: f64) -> f64 {
    normal_quantile(1.0 - alpha / 2.0) + normal_quantile(power)
}

/// Returns [`errors_apart`] for a t test with `df` degrees of freedom; infinite below one degree.
pub fn errors_apart_by_t(alpha: f64, power: f64, df: f64) -> f64 {
    if df < 1.0 { f64::INFINITY } else { t_quantile(1.0 - alpha / 2.0, df) + t_quantile(power, df) }
}

/// Returns [`errors_apart`] for a one-sided test.
pub fn errors_apart_one_sided(alpha: f64, power: f64) -> f64 {
    normal_quantile(1.0 - alpha) + normal_quantile(power)
}

/// Returns the cases that detect `delta`: `(z + z)² (w² + s²A/KA + s²B/KB) / delta²`, unrounded. Miller 2024,
/// equation 9.
pub fn cases_needed(delta: f64, spread: Spread, trials: (f64, f64), alpha: f64, power: f64) -> f64 {
    errors_apart(alpha, power).powi(2) * spread.of_case(trials.0, trials.1) / (delta * delta)
}

/// Returns the smallest effect that `cases` cases detect with this power. Miller 2024, equation 10.
pub fn smallest_effect(cases: f64, spread: Spread, trials: (f64, f64), alpha: f64, power: f64) -> f64 {
    errors_apart(alpha, power) * (spread.of_case(trials.0, trials.1) / cases).sqrt()
}

/// Returns the trials per case in each arm that reduce the standard error to `target`: `(wA + wB) / (n target² - w²)`.
/// `None` if no number of trials suffices and only more cases help.
pub fn trials_needed(target: f64, cases: f64, spread: Spread) -> Option<f64> {
    let room = cases * target * target - spread.between.max(0.0);
    (room > 0.0).then(|| ((spread.within_a + spread.within_b) / room).max(1.0))
}

/// Returns the smallest effect from the standard deviation of the differences alone: two-sided and one-sided.
pub fn smallest_effect_of_deviation(deviation: f64, n: f64, alpha: f64, power: f64) -> (f64, f64) {
    let se = deviation / n.sqrt();
    (errors_apart(alpha, power) * se, errors_apart_one_sided(alpha, power) * se)
}

/// Returns the cases needed to detect `delta` from the standard deviation of the differences alone: two- and one-sided.
pub fn cases_of_deviation(deviation: f64, delta: f64, alpha: f64, power: f64) -> (f64, f64) {
    let cases = |errors: f64| (errors * deviation / delta).powi(2);
    (cases(errors_apart(alpha, power)), cases(errors_apart_one_sided(alpha, power)))
}

/// Returns the pairs that McNemar's test needs if only one arm passes with probability `p10`, and only the other with
/// `p01`. `None` if the two are equal. Connor 1987.
pub fn mcnemar_pairs(p10: f64, p01: f64, alpha: f64, power: f64) -> Option<f64> {
    let (psi, d) = (p10 + p01, p10 - p01);
    let root = normal_quantile(1.0 - alpha / 2.0) * psi.sqrt() + normal_quantile(power) * (psi - d * d).max(0.0).sqrt();
    (d != 0.0).then(|| (root / d).powi(2))
}

/// Returns the smallest probability of an event with which at least `x` of `n` cases show it with this power; `None` if
/// `x` is 0 or above `n`.
pub fn share_with_events(x: u64, n: u64, power: f64) -> Option<f64> {
    (x > 0 && x <= n).then(|| beta_quantile(power, x as f64, (n - x) as f64 + 1.0))
}

/// Returns the smallest number of cases of which at least `x` show an event of probability `p` with this power; `None` if
/// the event never occurs, or if the number is beyond 2⁴⁰.
pub fn cases_with_events(x: u64, p: f64, power: f64) -> Option<u64> {
    let suffice = |n: u64| x == 0 || (n >= x && binomial_at_most(x - 1, n, p) <= 1.0 - power);
    let mut high = x.max(1);
    while !suffice(high) {
        high = high.checked_mul(2).filter(|high| p > 0.0 && *high <= 1 << 40)?;
    }
    let mut low = x;
    while low < high {
        let middle = u64::midpoint(low, high);
        if suffice(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

/// Returns the trials without a failure that exclude a failure rate of `p`: `(1 - p)^n <= 1 - confidence`, and by the
/// rule of three.
pub fn trials_without_failure(p: f64, confidence: f64) -> (f64, f64) {
    (((1.0 - confidence).ln() / (1.0 - p).ln() - 1e-9).ceil(), 3.0 / p)
}

/// Returns the power of a two-sided test at `alpha` for an effect with this standard error.
pub fn power(effect: f64, se: f64, alpha: f64) -> f64 {
    let edge = normal_quantile(1.0 - alpha / 2.0);
    let shift = effect.abs() / se;
    super::distributions::normal_above(edge - shift) + super::distributions::normal_below(-edge - shift)
}
