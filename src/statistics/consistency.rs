//! The similarity of repeated trials: of their outcomes, and of the tool calls of successful ones.

use std::collections::BTreeMap;

use super::means::mean;

/// Returns the consistency of outcomes, `(2p - 1)²`: 1 if all agree, 0 at half and half. HAL 2025 (arXiv
/// 2510.11977).
pub fn of_outcomes(passed: u64, trials: u64) -> Option<f64> {
    (trials > 0 && passed <= trials).then(|| (2.0 * passed as f64 / trials as f64 - 1.0).powi(2))
}

/// Returns `1 -` the mean Jensen-Shannon divergence (base 2) of call shares over pairs of trials; `None` below two.
pub fn of_shares<T: Ord>(trials: &[Vec<T>]) -> Option<f64> {
    let shares: Vec<BTreeMap<&T, f64>> = trials
        .iter()
        .map(|calls| {
            let mut shares = BTreeMap::new();
            calls.iter().for_each(|call| *shares.entry(call).or_insert(0.0) += 1.0 / calls.len() as f64);
            shares
        })
        .collect();
    over_pairs(&shares, |a, b| 1.0 - divergence(a, b))
}

/// Returns the mean over pairs of trials of `1 -` edit distance / length of the longer trial; `None` below two trials.
pub fn of_sequences<T: PartialEq>(trials: &[Vec<T>]) -> Option<f64> {
    over_pairs(trials, |a, b| match a.len().max(b.len()) {
        0 => 1.0,
        longest => 1.0 - edit_distance(a, b) as f64 / longest as f64,
    })
}

fn over_pairs<T>(all: &[T], alike: impl Fn(&T, &T) -> f64) -> Option<f64> {
    let later = |place: usize| all.get(place + 1..).unwrap_or_default();
    let pairs = all.iter().enumerate().flat_map(|(place, a)| later(place).iter().map(move |b| (a, b)));
    mean(&pairs.map(|(a, b)| alike(a, b)).collect::<Vec<_>>())
}

/// Returns the Jensen-Shannon divergence in bits.
fn divergence<T: Ord>(a: &BTreeMap<&T, f64>, b: &BTreeMap<&T, f64>) -> f64 {
    let half = |from: &BTreeMap<&T, f64>, other: &BTreeMap<&T, f64>| -> f64 {
        let term = |(key, p): (&&T, &f64)| p * (p / ((p + other.get(*key).unwrap_or(&0.0)) / 2.0)).log2();
        from.iter().map(term).sum::<f64>() / 2.0
    };
    half(a, b) + half(b, a)
}

/// Returns the number of insertions, deletions and replacements that turn one sequence into the other.
pub fn edit_distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut last = i + 1;
        if let Some(first) = row.first_mut() {
            *first = last;
        }
        for (right, cell) in b.iter().zip(row.iter_mut().skip(1)) {
            let here = (*cell + 1).min(last + 1).min(diagonal + usize::from(left != right));
            diagonal = *cell;
            *cell = here;
            last = here;
        }
    }
    row.last().copied().unwrap_or_default()
}
