//! Comparisons of two arms on the same cases: the mean difference, its interval, and ratios of costs, tokens or
//! durations.

use serde::Serialize;

use super::Interval;
use super::distributions::{normal_two_sided, t_quantile, t_two_sided, z_of_level};
use super::means::{self, mean, variance};

/// A mean difference over pairs, first minus second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PairedDifference {
    /// The mean of the differences.
    pub difference: f64,
    /// `sd(d) / sqrt(n)`.
    pub se: f64,
    /// The standard error if the arms had different cases.
    pub se_unpaired: f64,
    /// The correlation between the arms over cases; absent if one of them does not vary.
    pub correlation: Option<f64>,
    /// The difference in standard errors; absent without variance.
    pub t: Option<f64>,
    /// Degrees of freedom.
    pub df: usize,
    /// The two-sided p-value by Student's t.
    pub p: Option<f64>,
    /// The two-sided p-value by the normal distribution; too small for few cases.
    pub p_normal: Option<f64>,
    /// The interval by Student's t.
    pub interval: Interval,
    /// The number of pairs.
    pub n: usize,
}

/// Returns the paired difference `a - b`; `None` below two pairs. Miller 2024, equations 7 and 8.
pub fn difference(a: &[f64], b: &[f64], level: f64) -> Option<PairedDifference> {
    if a.len() != b.len() {
        return None;
    }
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let (middle, n) = (mean(&differences)?, differences.len());
    let (of_a, of_b) = (variance(a)?, variance(b)?);
    let se = (variance(&differences)? / n as f64).sqrt();
    let df = n - 1;
    let t = (se > 0.0).then(|| middle / se);
    Some(PairedDifference {
        difference: middle,
        se,
        se_unpaired: ((of_a + of_b) / n as f64).sqrt(),
        correlation: correlation(a, b),
        t,
        df,
        p: t.map(|t| t_two_sided(t, df as f64)),
        p_normal: t.map(normal_two_sided),
        interval: Interval::around(middle, t_quantile(0.5 + level / 2.0, df as f64) * se),
        n,
    })
}

/// Returns Pearson's correlation; `None` below two pairs or if one side does not vary.
pub fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mean_a, mean_b) = (mean(a)?, mean(b)?);
    let spread = (variance(a)? * variance(b)?).sqrt();
    let together: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    (spread > 0.0).then(|| (together / (a.len() - 1) as f64 / spread).clamp(-1.0, 1.0))
}

/// Returns the difference of two paired shares, each case one 0/1 trial: of `n` cases, `b` passed only in the first
/// arm and `c` only in the second. The interval is Bonett and Price's, `d ± z sqrt((p12 + p21 - d²) / (n + 2))` with
/// `p = (count + 1) / (n + 2)`; its width is not 0 if no pair disagrees. Bonett & Price 2012.
pub fn bonett_price(b: u64, c: u64, n: u64, level: f64) -> Option<(f64, Interval)> {
    if n == 0 || b + c > n {
        return None;
    }
    let (middle, se) = bonett_price_parts(b, c, n);
    let difference = (b as f64 - c as f64) / n as f64;
    Some((difference, Interval::around(middle, z_of_level(level) * se).within(-1.0, 1.0)))
}

/// Returns middle and standard error of [`bonett_price`].
pub fn bonett_price_parts(b: u64, c: u64, n: u64) -> (f64, f64) {
    let total = n as f64 + 2.0;
    let (first, second) = ((b as f64 + 1.0) / total, (c as f64 + 1.0) / total);
    let middle = first - second;
    (middle, ((first + second - middle * middle) / total).sqrt())
}

/// The ratio of two arms' consumption.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The geometric mean of `b / a` over the pairs.
    pub ratio: f64,
    /// The interval of `ratio`, by Student's t on the logarithms; absent below two pairs.
    pub interval: Option<Interval>,
    /// The two-sided p-value of no change; absent below two pairs or without variance.
    pub p: Option<f64>,
    /// The ratio of the sums over all pairs.
    pub of_totals: f64,
    /// The number of pairs of which both values are known and above 0.
    pub n: usize,
}

/// Returns costs, tokens or times of pairs as a ratio `b / a`, by the t interval on the logarithms. Pairs with a 0 have no
/// ratio, so they count in the ratio of the sums only. `None` without a pair that has a ratio.
pub fn log_ratio(a: &[f64], b: &[f64], level: f64) -> Option<Ratio> {
    let pairs: Vec<(f64, f64)> =
        a.iter().copied().zip(b.iter().copied()).filter(|(a, b)| *a > 0.0 && *b > 0.0).collect();
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let middle = mean(&logs)?;
    let over = means::of_cases(&logs, level);
    let t = over.filter(|it| it.se > 0.0).map(|it| (it.mean / it.se, it.n - 1));
    Some(Ratio {
        ratio: middle.exp(),
        interval: over.map(|it| Interval { low: it.t.low.exp(), high: it.t.high.exp() }),
        p: t.map(|(t, df)| t_two_sided(t, df as f64)),
        of_totals: b.iter().zip(a).map(|(b, _)| b).sum::<f64>() / a.iter().zip(b).map(|(a, _)| a).sum::<f64>(),
        n: pairs.len(),
    })
}
