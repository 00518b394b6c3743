//! Tests on tables of counts: McNemar, Fisher, Newcombe, Cochran-Mantel-Haenszel.

use serde::Serialize;

use super::Interval;
use super::distributions::{
    beta_above, binomial_at_most, binomial_exactly, chi_squared_above, hypergeometric_exactly, ln_beta,
};
use super::rates::wilson;

/// McNemar's tests on pairs of 0/1 results.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct McNemar {
    /// The two-sided exact p-value, `min(1, 2 P(X <= min(b, c)))` with X binomial of `b + c` and ½.
    pub exact: f64,
    /// `exact` minus the probability of the observed table; 1 if `b = c`. Fagerland, Lydersen & Laake 2013.
    pub mid_p: f64,
    /// `(b - c)² / (b + c)`.
    pub chi_squared: f64,
    /// p-value of `chi_squared`.
    pub p_chi_squared: f64,
    /// `(|b - c| - 1)² / (b + c)`.
    pub chi_squared_corrected: f64,
    /// p-value of `chi_squared_corrected`.
    pub p_chi_squared_corrected: f64,
    /// The probability that the first arm passes more often, by a flat prior on the four cells.
    pub first_is_better: f64,
}

/// Computes McNemar's tests: in `b` pairs only the first arm passed, in `c` pairs only the second.
pub fn mcnemar(b: u64, c: u64) -> McNemar {
    let (n, fewer) = (b + c, b.min(c));
    let (exact, mid_p) = if b == c {
        (1.0, 1.0)
    } else {
        let exact = (2.0 * binomial_at_most(fewer, n, 0.5)).min(1.0);
        (exact, (exact - binomial_exactly(fewer, n, 0.5)).clamp(0.0, 1.0))
    };
    let apart = b.abs_diff(c) as f64;
    let squared = |distance: f64| if n == 0 { 0.0 } else { distance * distance / n as f64 };
    let chi_squared = squared(apart);
    let chi_squared_corrected = if n == 0 { 0.0 } else { squared(apart - 1.0) };
    McNemar {
        exact,
        mid_p,
        chi_squared,
        p_chi_squared: chi_squared_above(chi_squared, 1.0),
        chi_squared_corrected,
        p_chi_squared_corrected: chi_squared_above(chi_squared_corrected, 1.0),
        first_is_better: beta_above(0.5, b as f64 + 1.0, c as f64 + 1.0),
    }
}

/// Returns the smallest exact p-value that `discordant` pairs can have: all of them in one direction.
pub fn mcnemar_floor(discordant: u64) -> f64 {
    mcnemar(discordant, 0).exact
}

/// Returns the number of discordant pairs from which the exact test can be significant.
pub fn mcnemar_needed(alpha: f64) -> u64 {
    (1..1024).find(|discordant| mcnemar_floor(*discordant) < alpha).unwrap_or(1024)
}

/// Fisher's exact test of two shares.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fisher {
    /// The sum over all tables that are at most as likely as the observed one.
    pub two_sided: f64,
    /// The p-value that the first share is smaller.
    pub less: f64,
    /// The p-value that the first share is larger.
    pub greater: f64,
}

/// Computes Fisher's exact test of `x_a` of `n_a` against `x_b` of `n_b`: one case, several trials each. Fisher 1935,
/// two-sided by the rule of scipy and R. `None` if a count exceeds its total.
pub fn fisher(x_a: u64, n_a: u64, x_b: u64, n_b: u64) -> Option<Fisher> {
    if x_a > n_a || x_b > n_b {
        return None;
    }
    let (all, passed) = (n_a + n_b, x_a + x_b);
    let lowest = passed.saturating_sub(n_b);
    let highest = passed.min(n_a);
    let chance = |x: u64| hypergeometric_exactly(x, all, passed, n_a);
    let seen = chance(x_a);
    let (mut two_sided, mut less, mut greater) = (0.0, 0.0, 0.0);
    for x in lowest..=highest {
        let p = chance(x);
        // Rounding may make equally likely tables differ.
        if p <= seen * (1.0 + 1e-7) {
            two_sided += p;
        }
        if x <= x_a {
            less += p;
        }
        if x >= x_a {
            greater += p;
        }
    }
    let kept = |p: f64| p.min(1.0);
    Some(Fisher { two_sided: kept(two_sided), less: kept(less), greater: kept(greater) })
}

/// Returns the interval of a difference of two independent shares from their Wilson intervals. Newcombe 1998, method
/// 10.
pub fn newcombe(x_a: u64, n_a: u64, x_b: u64, n_b: u64, level: f64) -> Option<Interval> {
    let (a, b) = (wilson(x_a, n_a, level)?, wilson(x_b, n_b, level)?);
    let (p_a, p_b) = (x_a as f64 / n_a as f64, x_b as f64 / n_b as f64);
    let difference = p_a - p_b;
    Some(Interval {
        low: difference - (p_a - a.low).hypot(b.high - p_b),
        high: difference + (a.high - p_a).hypot(p_b - b.low),
    })
}

/// Returns the probability that the first share is larger, by flat priors: the finite sum over Beta functions. `None`
/// if a count exceeds its total. Cook 2005.
pub fn first_is_larger(x_a: u64, n_a: u64, x_b: u64, n_b: u64) -> Option<f64> {
    if x_a > n_a || x_b > n_b {
        return None;
    }
    let b1 = (n_a - x_a) as f64 + 1.0;
    let (a2, b2) = (x_b as f64 + 1.0, (n_b - x_b) as f64 + 1.0);
    let term = |i: u64| {
        let i = i as f64;
        (ln_beta(a2 + i, b1 + b2) - (b1 + i).ln() - ln_beta(1.0 + i, b1) - ln_beta(a2, b2)).exp()
    };
    Some((0..=x_a).map(term).sum::<f64>().min(1.0))
}

/// The passed and failed trials of both arms in one case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Trials of the first arm.
    pub a: (u64, u64),
    /// Trials of the second arm.
    pub b: (u64, u64),
}

/// The result of the Cochran-Mantel-Haenszel test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stratified {
    /// `(sum (a - E a))² / sum Var a`.
    pub chi_squared: f64,
    /// p-value of `chi_squared`.
    pub p: f64,
    /// `chi_squared` with the correction for continuity.
    pub chi_squared_corrected: f64,
    /// p-value of `chi_squared_corrected`.
    pub p_corrected: f64,
    /// Mantel and Haenszel's odds ratio; absent if its denominator is 0.
    pub odds_ratio: Option<f64>,
}

/// Tests whether one arm passes more often in exactly these cases, stratified by case, with only the trials as
/// random. Returns `None` if no case has both passes and failures. Cochran 1954, Mantel & Haenszel 1959.
pub fn cochran_mantel_haenszel(cases: &[Table]) -> Option<Stratified> {
    let (mut apart, mut variance, mut above, mut below) = (0.0, 0.0, 0.0, 0.0);
    for table in cases {
        let (a, b) = (table.a.0 as f64, table.a.1 as f64);
        let (c, d) = (table.b.0 as f64, table.b.1 as f64);
        let n = a + b + c + d;
        if a + b == 0.0 || c + d == 0.0 {
            continue;
        }
        apart += a - (a + b) * (a + c) / n;
        variance += (a + b) * (c + d) * (a + c) * (b + d) / (n * n * (n - 1.0));
        above += a * d / n;
        below += b * c / n;
    }
    let squared = |distance: f64| distance * distance / variance;
    (variance > 0.0).then(|| {
        let (chi_squared, corrected) = (squared(apart), squared((apart.abs() - 0.5).max(0.0)));
        Stratified {
            chi_squared,
            p: chi_squared_above(chi_squared, 1.0),
            chi_squared_corrected: corrected,
            p_corrected: chi_squared_above(corrected, 1.0),
            odds_ratio: (below > 0.0).then(|| above / below),
        }
    })
}
