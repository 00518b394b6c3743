//! The score of a suite: the mean over cases, its standard error and interval, and its components of variance.

use serde::Serialize;

use super::Interval;
use super::distributions::{t_quantile, z_of_level};

/// Returns the mean; `None` without a value.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the unbiased variance, `sum (x - mean)^2 / (n - 1)`; `None` with fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let middle = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    // Rounding leaves a remainder between equal values, which is not a spread.
    let noise = (1e-14 * middle.abs().max(1.0)).powi(2) * values.len() as f64;
    Some(if squares <= noise { 0.0 } else { squares / (values.len() - 1) as f64 })
}

/// A mean over cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Mean {
    pub mean: f64,
    /// `sqrt(variance / n)`. Scores may be fractions, so the shorter formula for 0/1 scores is not used.
    pub se: f64,
    /// The interval by the normal distribution; too narrow for few cases.
    pub z: Interval,
    /// The interval by Student's t with `n - 1` degrees of freedom.
    pub t: Interval,
    /// The number of cases.
    pub n: usize,
}

/// Returns mean, standard error and intervals over cases; `None` below two. Miller 2024, equation 1 (arXiv 2411.00640).
pub fn of_cases(scores: &[f64], level: f64) -> Option<Mean> {
    let (middle, n) = (mean(scores)?, scores.len());
    let se = (variance(scores)? / n as f64).sqrt();
    let t = t_quantile(0.5 + level / 2.0, (n - 1) as f64);
    Some(Mean {
        mean: middle,
        se,
        z: Interval::around(middle, z_of_level(level) * se),
        t: Interval::around(middle, t * se),
        n,
    })
}

/// Returns the standard error of a share of 0/1 scores, `sqrt(p (1 - p) / n)`. Miller 2024, equation 2.
pub fn bernoulli_se(p: f64, n: u64) -> f64 {
    (p * (1.0 - p) / n as f64).sqrt()
}

/// A mean over cases in clusters: the cases of a cluster share a fixture, a repository or a template.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClusteredMean {
    /// The mean over cases.
    pub mean: f64,
    /// The number of cases.
    pub n: usize,
    /// The number of clusters.
    pub clusters: usize,
    /// The standard error if cases were independent.
    pub se_naive: f64,
    /// `sqrt(sum over clusters of (sum of (s - mean))^2) / n`.
    pub se_uncorrected: f64,
    /// `se_uncorrected` times `sqrt(C / (C - 1))`; with one case per cluster, the plain standard error. Absent with one
    /// cluster, which shows no spread.
    pub se: Option<f64>,
    /// The interval by Student's t with `C - 1` degrees of freedom; absent with one cluster.
    pub t: Option<Interval>,
    /// The variance, divided by that of independent cases.
    pub design_effect: Option<f64>,
}

/// Returns mean and cluster-robust interval; `None` with fewer than two cases.
/// Miller 2024, appendix A, with the correction of statsmodels and of Inspect AI.
pub fn of_clusters(clusters: &[Vec<f64>], level: f64) -> Option<ClusteredMean> {
    let clusters: Vec<&Vec<f64>> = clusters.iter().filter(|cluster| !cluster.is_empty()).collect();
    let all: Vec<f64> = clusters.iter().flat_map(|cluster| cluster.iter().copied()).collect();
    let (middle, count) = (mean(&all)?, clusters.len());
    let n = all.len() as f64;
    let spread = variance(&all)?;
    let sums = clusters.iter().map(|cluster| cluster.iter().map(|score| score - middle).sum::<f64>().powi(2));
    let uncorrected = sums.sum::<f64>().sqrt() / n;
    let df = (count - 1) as f64;
    let se = (count > 1).then(|| uncorrected * (count as f64 / df).sqrt());
    let independent = spread * (n - 1.0) / n / n;
    Some(ClusteredMean {
        mean: middle,
        n: all.len(),
        clusters: count,
        se_naive: (spread / n).sqrt(),
        se_uncorrected: uncorrected,
        se,
        t: se.map(|se| Interval::around(middle, t_quantile(0.5 + level / 2.0, df) * se)),
        design_effect: (independent > 0.0).then(|| uncorrected.powi(2) / independent),
    })
}

/// A comparison of two means of different cases.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Unpaired {
    /// The first mean minus the second.
    pub difference: f64,
    /// `sqrt(se_a^2 + se_b^2)`.
    pub se: f64,
    /// The difference in standard errors.
    pub z: f64,
    /// The two-sided p-value by the normal distribution.
    pub p: f64,
    /// The interval by the normal distribution.
    pub interval: Interval,
}

/// Returns the difference of two independent means; ignores the pairing if the cases are the same. Miller 2024,
/// equation 5.
pub fn unpaired(mean_a: f64, se_a: f64, mean_b: f64, se_b: f64, level: f64) -> Unpaired {
    let (difference, se) = (mean_a - mean_b, se_a.hypot(se_b));
    let z = if se > 0.0 { difference / se } else { f64::NAN };
    let interval = Interval::around(difference, z_of_level(level) * se);
    Unpaired { difference, se, z, p: super::distributions::normal_two_sided(z), interval }
}

/// A comparison of two samples whose variances may differ.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Welch {
    /// The mean of the first sample minus that of the second.
    pub difference: f64,
    /// `sqrt(var_a / n_a + var_b / n_b)`.
    pub se: f64,
    /// Degrees of freedom, by Satterthwaite.
    pub df: f64,
    /// The two-sided p-value.
    pub p: f64,
    /// The interval by Student's t.
    pub interval: Interval,
}

/// Returns the difference of the means of two samples. Welch 1947; scipy's `ttest_ind` with `equal_var=False`. `None`
/// if a sample has fewer than two values or both have no variance.
pub fn welch(a: &[f64], b: &[f64], level: f64) -> Option<Welch> {
    let of = |sample: &[f64]| Some((mean(sample)?, variance(sample)? / sample.len() as f64, sample.len() as f64 - 1.0));
    let ((mean_a, of_a, df_a), (mean_b, of_b, df_b)) = (of(a)?, of(b)?);
    let (difference, both) = (mean_a - mean_b, of_a + of_b);
    if both <= 0.0 {
        return None;
    }
    let (se, df) = (both.sqrt(), both.powi(2) / (of_a.powi(2) / df_a + of_b.powi(2) / df_b));
    let interval = Interval::around(difference, t_quantile(0.5 + level / 2.0, df) * se);
    let p = super::distributions::t_two_sided(difference / se, df);
    Some(Welch { difference, se, df, p, interval })
}

/// The components of variance of a suite's score.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Components {
    /// The suite's score: the mean of the case means.
    pub mean: f64,
    /// The variance of the case means.
    pub of_means: f64,
    /// The mean variance of a case's trials. More trials reduce its effect.
    pub within: f64,
    /// Between cases: `of_means - within / K`; a negative value is due to chance and shown as 0. Only more cases reduce
    /// its effect.
    pub between: f64,
    /// `sqrt(of_means / n)`.
    pub se: f64,
    /// The similarity of the trials of a case, `(MSB - within) / (MSB + (K - 1) within)`.
    pub icc: Option<f64>,
    /// `1 + (K - 1) icc`.
    pub design_effect: Option<f64>,
    /// The number of independent trials that contain the same amount of information.
    pub effective_trials: Option<f64>,
    /// The standard error if all trials were pooled, which is wrong.
    pub se_pooled: Option<f64>,
    /// Trials per case; the harmonic mean if cases have different numbers.
    pub trials: f64,
    /// The number of cases.
    pub cases: usize,
}

/// Returns the variance within and between cases; `None` with fewer than two cases, or if no case has two trials.
/// Miller 2024, section 3; ICC(1) by one-way analysis of variance. If the numbers of trials differ, K is their harmonic
/// mean, which makes the estimate of the variance of the case means unbiased.
pub fn components(trials: &[Vec<f64>]) -> Option<Components> {
    let trials: Vec<&[f64]> = trials.iter().map(Vec::as_slice).filter(|case| !case.is_empty()).collect();
    let means: Vec<f64> = trials.iter().filter_map(|case| mean(case)).collect();
    let inner: Vec<f64> = trials.iter().filter_map(|case| variance(case)).collect();
    let (of_means, within, middle) = (variance(&means)?, mean(&inner)?, mean(&means)?);
    let n = means.len() as f64;
    let k = n / trials.iter().map(|case| 1.0 / case.len() as f64).sum::<f64>();
    let msb = k * of_means;
    let below = msb + (k - 1.0) * within;
    let icc = (below > 0.0).then(|| (msb - within) / below);
    let design_effect = icc.map(|icc| 1.0 + (k - 1.0) * icc);
    let pooled: Vec<f64> = trials.iter().flat_map(|case| case.iter().copied()).collect();
    Some(Components {
        mean: middle,
        of_means,
        within,
        between: of_means - within / k,
        se: (of_means / n).sqrt(),
        icc,
        design_effect,
        effective_trials: design_effect.filter(|effect| *effect > 0.0).map(|effect| pooled.len() as f64 / effect),
        se_pooled: variance(&pooled).map(|spread| (spread / pooled.len() as f64).sqrt()),
        trials: k,
        cases: means.len(),
    })
}

/// Returns the variance of a suite's score with `k` trials, as a share of that with one. Miller 2024, section 3.
pub fn variance_left(between: f64, within: f64, k: u32) -> f64 {
    (between + within / f64::from(k)) / (between + within)
}

/// Returns the mean over cases of their mean (the score), and the mean over all trials, which is never a score.
pub fn macro_and_micro(trials: &[Vec<f64>]) -> Option<(f64, f64)> {
    let means: Vec<f64> = trials.iter().filter_map(|case| mean(case)).collect();
    let pooled: Vec<f64> = trials.iter().flatten().copied().collect();
    Some((mean(&means)?, mean(&pooled)?))
}

/// The method of an interval of a suite's score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// Wilson's score interval on the number of cases.
    Wilson,
    /// Student's t over the case means.
    T,
}

/// Computes the interval of a suite's score from the means of its cases, by the rule that gave the stated coverage in
/// simulation (adr/0024): Wilson on the number of cases if each case scores 0 or 1 (with any number of trials), or if
/// no case differs, or if there are fewer than 50 cases and the score is outside 0.1 to 0.9; otherwise Student's t,
/// limited to 0 and 1. Trials are never pooled. `None` without a case.
pub fn score_interval(case_means: &[f64], level: f64) -> Option<(Interval, IntervalMethod)> {
    let (middle, n) = (mean(case_means)?, case_means.len());
    let wilson = || (super::rates::wilson_of_share(middle, n as f64, level), IntervalMethod::Wilson);
    let shares = case_means.iter().all(|score| *score == 0.0 || *score == 1.0);
    let Some(over_cases) = of_cases(case_means, level).filter(|it| it.se > 0.0) else { return Some(wilson()) };
    let at_the_edge = n < 50 && !(0.1..=0.9).contains(&middle);
    if shares || at_the_edge {
        return Some(wilson());
    }
    Some((over_cases.t.within(0.0, 1.0), IntervalMethod::T))
}
