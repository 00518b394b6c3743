//! Comparisons of two arms on the same cases: the mean difference, its interval, and ratios of costs, tokens or
//! durations.

use serde::Serialize;

use super::Interval;
use super::distributions::{normal_two_sided, t_quantile, t_two_sided, z_of_level};
use super::means::{self, mean, variance};

/// A mean difference over pairs, the first less the second.
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
    /// The difference in standard errors; absent where there is no spread.
    pub t: Option<f64>,
    /// Degrees of freedom.
    pub df: usize,
    /// Two-sided by Student's t.
    pub p: Option<f64>,
    /// Two-sided by the normal distribution; too small for few cases.
    pub p_normal: Option<f64>,
    /// By Student's t.
    pub interval: Interval,
    /// Pairs.
    pub n: usize,
}

/// The paired difference `a - b`; absent below two pairs. Miller 2024, equations 7 and 8.
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

/// Pearson's correlation; absent below two pairs and where one side does not vary.
pub fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let (mean_a, mean_b) = (mean(a)?, mean(b)?);
    let spread = (variance(a)? * variance(b)?).sqrt();
    let together: f64 = a.iter().zip(b).map(|(a, b)| (a - mean_a) * (b - mean_b)).sum();
    (spread > 0.0).then(|| (together / (a.len() - 1) as f64 / spread).clamp(-1.0, 1.0))
}

/// The same difference where cases come in clusters: cluster-t on the differences. Absent below two cases.
pub fn clustered_difference(differences: &[Vec<f64>], level: f64) -> Option<means::ClusteredMean> {
    means::of_clusters(differences, level)
}

/// The difference of two paired shares, each case one 0/1 trial: `b` cases passed in the first alone, `c` in the
/// second alone, of `n`. The interval is Bonett and Price's, `d ± z sqrt((p12 + p21 - d²) / (n + 2))` with
/// `p = (count + 1) / (n + 2)`; it does not collapse where no pair disagrees. Bonett & Price 2012.
pub fn bonett_price(b: u64, c: u64, n: u64, level: f64) -> Option<(f64, Interval)> {
    if n == 0 || b + c > n {
        return None;
    }
    let (middle, se) = bonett_price_parts(b, c, n);
    let difference = (b as f64 - c as f64) / n as f64;
    Some((difference, Interval::around(middle, z_of_level(level) * se).within(-1.0, 1.0)))
}

/// Its middle and its standard error.
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
    /// Its interval, by Student's t on the logarithms; absent below two pairs.
    pub interval: Option<Interval>,
    /// Two-sided p that nothing changed; absent below two pairs and without spread.
    pub p: Option<f64>,
    /// The ratio of the sums.
    pub of_totals: f64,
    /// The number of pairs of which both values are known and above 0.
    pub n: usize,
}

/// Costs, tokens or times of pairs as a ratio `b / a`, by the t interval on the logarithms. Pairs with a 0 are left
/// out: there is no ratio to nothing. Absent without a pair.
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
        of_totals: pairs.iter().map(|(_, b)| b).sum::<f64>() / pairs.iter().map(|(a, _)| a).sum::<f64>(),
        n: pairs.len(),
    })
}
