//! Agreement between two judges, and between a judge and people.

use serde::Serialize;

use super::Interval;
use super::distributions::{binomial_exactly, z_of_level};
use super::means::mean;

/// Agreement of two judges beyond chance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Kappa {
    /// The share of items on which the judges agree.
    pub observed: f64,
    /// The share of items on which the judges would agree by chance.
    pub expected: f64,
    /// `(po - pe) / (1 - pe)`; absent if chance explains all agreement.
    pub kappa: Option<f64>,
    /// The standard error of kappa, by Fleiss, Cohen & Everitt 1969.
    pub se: Option<f64>,
    /// The interval of kappa, by the normal distribution. Absent if the standard error is 0: agreement without any exception
    /// shows no spread.
    pub interval: Option<Interval>,
}

/// Computes Cohen's kappa of a square table with one judge in rows and the other in columns; `None` if the
/// table is empty or not square. Cohen 1960.
pub fn cohen(table: &[Vec<u64>], level: f64) -> Option<Kappa> {
    let shares = shares(table)?;
    let (rows, columns) = margins(&shares);
    let observed: f64 = shares.iter().enumerate().filter_map(|(i, row)| row.get(i)).sum();
    let expected: f64 = rows.iter().zip(&columns).map(|(row, column)| row * column).sum();
    let kappa = (expected < 1.0).then(|| (observed - expected) / (1.0 - expected));
    let total: u64 = table.iter().flatten().sum();
    let se = kappa.map(|kappa| {
        let mut sum = 0.0;
        for (i, row) in shares.iter().enumerate() {
            for (j, share) in row.iter().enumerate() {
                sum += if i == j {
                    share * (1.0 - (rows[i] + columns[i]) * (1.0 - kappa)).powi(2)
                } else {
                    share * (1.0 - kappa).powi(2) * (columns[i] + rows[j]).powi(2)
                };
            }
        }
        let less = (kappa - expected * (1.0 - kappa)).powi(2);
        ((sum - less).max(0.0) / total as f64).sqrt() / (1.0 - expected)
    });
    // A standard error of 0 has rounding errors.
    let spread = se.filter(|se| *se > 1e-7);
    let interval = kappa.zip(spread).map(|(kappa, se)| Interval::around(kappa, z_of_level(level) * se));
    Some(Kappa { observed, expected, kappa, se, interval })
}

/// Computes kappa with weighted disagreements: `1 - sum w o / sum w e`, `w` by distance of categories. Cohen 1968.
pub fn weighted(table: &[Vec<u64>], weight: impl Fn(f64) -> f64) -> Option<f64> {
    let shares = shares(table)?;
    let (rows, columns) = margins(&shares);
    let (mut seen, mut chance) = (0.0, 0.0);
    for (i, row) in shares.iter().enumerate() {
        for (j, share) in row.iter().enumerate() {
            let weight = weight(i.abs_diff(j) as f64);
            seen += weight * share;
            chance += weight * rows[i] * columns[j];
        }
    }
    (chance > 0.0).then(|| 1.0 - seen / chance)
}

/// Computes Gwet's AC1, which stays meaningful if one answer is rare: chance is `sum q (1 - q) / (k - 1)`. Gwet
/// 2008.
pub fn gwet(table: &[Vec<u64>]) -> Option<f64> {
    let shares = shares(table)?;
    let (rows, columns) = margins(&shares);
    let observed: f64 = shares.iter().enumerate().filter_map(|(i, row)| row.get(i)).sum();
    let each = rows.iter().zip(&columns).map(|(row, column)| (row + column) / 2.0);
    let expected = each.map(|q| q * (1.0 - q)).sum::<f64>() / (table.len() as f64 - 1.0);
    (table.len() > 1 && expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
}

/// Computes the agreement of several judges: a row for each item, a column for each answer with the number of
/// judges who gave it. Fleiss 1971.
pub fn fleiss(counts: &[Vec<u64>]) -> Option<f64> {
    let judges = counts.first()?.iter().sum::<u64>();
    if judges < 2 || counts.iter().any(|row| row.iter().sum::<u64>() != judges) {
        return None;
    }
    let (n, items) = (judges as f64, counts.len() as f64);
    let alike = |row: &Vec<u64>| (row.iter().map(|c| (c * c) as f64).sum::<f64>() - n) / (n * (n - 1.0));
    let observed = mean(&counts.iter().map(alike).collect::<Vec<_>>())?;
    let answers = counts.iter().map(Vec::len).max()?;
    let share = |answer: usize| counts.iter().filter_map(|row| row.get(answer)).sum::<u64>() as f64 / (n * items);
    let expected: f64 = (0..answers).map(|answer| share(answer).powi(2)).sum();
    (expected < 1.0).then(|| (observed - expected) / (1.0 - expected))
}

fn shares(table: &[Vec<u64>]) -> Option<Vec<Vec<f64>>> {
    let total: u64 = table.iter().flatten().sum();
    let square = table.iter().all(|row| row.len() == table.len());
    (total > 0 && square)
        .then(|| table.iter().map(|row| row.iter().map(|count| *count as f64 / total as f64).collect()).collect())
}

fn margins(shares: &[Vec<f64>]) -> (Vec<f64>, Vec<f64>) {
    let rows = shares.iter().map(|row| row.iter().sum()).collect();
    let columns = (0..shares.len()).map(|j| shares.iter().filter_map(|row| row.get(j)).sum()).collect();
    (rows, columns)
}

/// A judge's verdicts compared with labels by people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// Passed by both.
    pub true_pass: u64,
    /// Passed by the judge alone.
    pub false_pass: u64,
    /// Failed by both.
    pub true_fail: u64,
    /// Failed by the judge alone.
    pub false_fail: u64,
}

/// Rates computed from a confusion table. A share without a denominator is absent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Calibration {
    /// Of the samples that people passed, the share that the judge passed.
    pub true_pass_rate: Option<f64>,
    /// Of the samples that people failed, the share that the judge failed.
    pub true_fail_rate: Option<f64>,
    /// Of the samples that the judge passed, the share that people passed.
    pub precision: Option<f64>,
    /// Of the samples that the judge failed, the share that people failed.
    pub negative_precision: Option<f64>,
    /// The share on which both agree; alone it hides a judge that passes everything.
    pub accuracy: Option<f64>,
    /// The mean of `true_pass_rate` and `true_fail_rate`.
    pub balanced_accuracy: Option<f64>,
    /// Matthews' correlation.
    pub correlation: Option<f64>,
}

impl Confusion {
    /// Computes the rates of the table.
    pub fn calibration(&self) -> Calibration {
        let share = |part: u64, rest: u64| (part + rest > 0).then(|| part as f64 / (part + rest) as f64);
        let true_pass_rate = share(self.true_pass, self.false_fail);
        let true_fail_rate = share(self.true_fail, self.false_pass);
        let [tp, fp, tn, fnn] = [self.true_pass, self.false_pass, self.true_fail, self.false_fail].map(|it| it as f64);
        let below = ((tp + fp) * (tp + fnn) * (tn + fp) * (tn + fnn)).sqrt();
        Calibration {
            true_pass_rate,
            true_fail_rate,
            precision: share(self.true_pass, self.false_pass),
            negative_precision: share(self.true_fail, self.false_fail),
            accuracy: share(self.true_pass + self.true_fail, self.false_pass + self.false_fail),
            balanced_accuracy: true_pass_rate.zip(true_fail_rate).map(|(pass, fail)| (pass + fail) / 2.0),
            correlation: (below > 0.0).then(|| (tp * tn - fp * fnn) / below),
        }
    }

    /// Returns the table with the judge in rows and people in columns, pass first.
    pub fn table(&self) -> Vec<Vec<u64>> {
        vec![vec![self.true_pass, self.false_pass], vec![self.false_fail, self.true_fail]]
    }
}

/// A pass rate reported by a judge with known errors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JudgedRate {
    /// The share that the judge passed.
    pub rate: f64,
    /// The number of verdicts.
    pub n: f64,
    /// The judge's true fail rate (specificity), and the number of labels it was measured with.
    pub specificity: (f64, f64),
    /// The judge's true pass rate (sensitivity), and the number of labels it was measured with.
    pub sensitivity: (f64, f64),
}

/// Returns the corrected pass rate, `(p + TNR - 1) / (TPR + TNR - 1)`, not limited to 0 and 1, and its
/// interval, which is limited. `None` if the judge is hardly better than chance (`TPR + TNR - 1 <= 0.1`). Rogan
/// & Gladen 1978; interval by Lee et al. 2025 (arXiv 2511.21140).
pub fn corrected_rate(judged: JudgedRate, level: f64) -> Option<(f64, Interval)> {
    let ((q0, m0), (q1, m1)) = (judged.specificity, judged.sensitivity);
    let better = q0 + q1 - 1.0;
    if better <= 0.1 {
        return None;
    }
    let theta = (judged.rate + q0 - 1.0) / better;
    let z = z_of_level(level);
    let n = judged.n + z * z;
    let p = (judged.n * judged.rate + z * z / 2.0) / n;
    let (s0, s1) = ((m0 * q0 + 1.0) / (m0 + 2.0), (m1 * q1 + 1.0) / (m1 + 2.0));
    let (m0, m1) = (m0 + 2.0, m1 + 2.0);
    let below = s0 + s1 - 1.0;
    // With few labels of one kind, the smoothed judge may be no better than chance, and the ends of an interval
    // would be swapped.
    if below <= 0.0 {
        return None;
    }
    let middle = (p + s0 - 1.0) / below;
    let (v0, v1) = (s0 * (1.0 - s0) / m0, s1 * (1.0 - s1) / m1);
    let shift = 2.0 * z * z * (-(1.0 - middle) * v0 + middle * v1);
    let variance = p * (1.0 - p) / n + (1.0 - middle).powi(2) * v0 + middle.powi(2) * v1;
    Some((theta, Interval::around(middle + shift, z * variance.sqrt() / below).within(0.0, 1.0)))
}

/// Returns the probability that a majority of independent judges is right if each is right with probability
/// `p`; ties are wrong. Condorcet.
pub fn majority(p: f64, judges: u64) -> f64 {
    (judges / 2 + 1..=judges).map(|right| binomial_exactly(right, judges, p)).sum()
}
