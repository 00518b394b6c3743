//! Adjustments of the p-values of several tests, to limit false positives.

/// Adjusts by Holm: `max over j <= i of min(1, (m - j + 1) p_(j))`. For a small family that gates. Holm 1979.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let m = p.len();
    step_down(p, |rank, p| (m - rank) as f64 * p)
}

/// Adjusts by Bonferroni: `min(1, m p)`.
pub fn bonferroni(p: &[f64]) -> Vec<f64> {
    p.iter().map(|value| (value * p.len() as f64).min(1.0)).collect()
}

/// Adjusts by Benjamini and Hochberg, which limits the share of false discoveries: `min over j >= i of min(1, m p_(j) /
/// j)`. For the list of cases that may have regressed. Benjamini & Hochberg 1995.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    step_up(p, 1.0)
}

/// Adjusts by Benjamini and Yekutieli: as Hochberg, times `sum 1/i`, under any dependence. Benjamini & Yekutieli 2001.
pub fn benjamini_yekutieli(p: &[f64]) -> Vec<f64> {
    step_up(p, (1..=p.len()).map(|i| 1.0 / i as f64).sum())
}

/// Returns the indices of the values, smallest value first; equal values keep their order.
fn order(p: &[f64]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..p.len()).collect();
    places.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    places
}

fn step_down(p: &[f64], adjust: impl Fn(usize, f64) -> f64) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut largest: f64 = 0.0;
    for (rank, place) in order(p).into_iter().enumerate() {
        largest = largest.max(adjust(rank, p[place]).min(1.0));
        adjusted[place] = largest;
    }
    adjusted
}

fn step_up(p: &[f64], factor: f64) -> Vec<f64> {
    let mut adjusted = vec![0.0; p.len()];
    let mut smallest: f64 = 1.0;
    for (rank, place) in order(p).into_iter().enumerate().rev() {
        smallest = smallest.min(factor * p.len() as f64 * p[place] / (rank + 1) as f64);
        adjusted[place] = smallest;
    }
    adjusted
}
