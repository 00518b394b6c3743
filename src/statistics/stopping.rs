//! Sequential tests: bounds that keep the error rate for any number of looks, or for a planned number of looks.

use super::distributions::{ln_beta, normal_below, normal_quantile, normal_two_sided};

/// The decision of a sequential test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The test accepts the first hypothesis, `p0`.
    AcceptH0,
    /// The test accepts the second hypothesis, `p1`.
    AcceptH1,
    /// No decision yet.
    Continue,
}

/// The state of Wald's test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprt {
    /// `ln((1 - beta) / alpha)`: at or above this bound, the decision is `p1`.
    pub upper: f64,
    /// `ln(beta / (1 - alpha))`: at or below this bound, the decision is `p0`.
    pub lower: f64,
    /// The number of outcomes after which the test stopped; absent until then.
    pub stopped_at: Option<usize>,
    pub decision: Decision,
    /// The log likelihood ratio at the stop, or of all outcomes.
    pub ratio: f64,
}

/// Runs Wald's sequential probability ratio test of a success probability of `p0` against `p1`. Wald 1945.
pub fn sprt(outcomes: &[bool], p0: f64, p1: f64, alpha: f64, beta: f64) -> Sprt {
    let (upper, lower) = (((1.0 - beta) / alpha).ln(), (beta / (1.0 - alpha)).ln());
    let mut ratio = 0.0;
    for (place, passed) in outcomes.iter().enumerate() {
        ratio += if *passed { (p1 / p0).ln() } else { ((1.0 - p1) / (1.0 - p0)).ln() };
        let decision = if ratio >= upper {
            Decision::AcceptH1
        } else if ratio <= lower {
            Decision::AcceptH0
        } else {
            continue;
        };
        return Sprt { upper, lower, stopped_at: Some(place + 1), decision, ratio };
    }
    Sprt { upper, lower, stopped_at: None, decision: Decision::Continue, ratio }
}

/// Returns the e-value of `b` against `c` discordant pairs, `2^(b+c) B(b+1, c+1)`, and its p-value, which is valid at
/// any time: by Ville's inequality, `E >= 1 / alpha` may be checked any number of times.
pub fn e_value(b: u64, c: u64) -> (f64, f64) {
    let e = ((b + c) as f64 * std::f64::consts::LN_2 + ln_beta(b as f64 + 1.0, c as f64 + 1.0)).exp();
    (e, (1.0 / e).min(1.0))
}

/// Returns half the width of Hoeffding's interval for values in 0..=1: at a fixed `n`, and at any time by the union
/// bound `alpha / (n (n + 1))`. Hoeffding 1963.
pub fn hoeffding(n: u64, alpha: f64) -> (f64, f64) {
    let half = |alpha: f64| ((2.0 / alpha).ln() / (2.0 * n as f64)).sqrt();
    let total = n as f64;
    (half(alpha), half(alpha / (total * (total + 1.0))))
}

/// Returns the probability of a false alarm in `looks` equally spaced looks, each at `|z| >= bound`. The density of the
/// sum is carried from look to look on a grid. Armitage, McPherson & Rowe 1969.
pub fn false_alarm(looks: u32, bound: f64) -> f64 {
    const HALF: usize = 400;
    let points = 2 * HALF + 1;
    let edge = |look: u32| bound * f64::from(look).sqrt();
    let grid = |look: u32, place: usize| edge(look) * (place as f64 - HALF as f64) / HALF as f64;
    let density = |x: f64| (-0.5 * x * x).exp() / (2.0 * std::f64::consts::PI).sqrt();
    // Simpson's weights.
    let weight = |look: u32, place: usize| {
        let factor = if place == 0 || place == points - 1 { 1.0 } else { 2.0 + 2.0 * (place % 2) as f64 };
        factor * edge(look) / HALF as f64 / 3.0
    };
    let mut alarm = 0.0;
    let mut held: Vec<f64> = Vec::new();
    for look in 1..=looks {
        if look == 1 {
            alarm += normal_two_sided(bound);
            held = (0..points).map(|place| density(grid(1, place)) * weight(1, place)).collect();
            continue;
        }
        let before = |place: usize| grid(look - 1, place);
        let leaves = |from: f64| normal_below(-edge(look) - from) + normal_below(from - edge(look));
        alarm += held.iter().enumerate().map(|(place, held)| held * leaves(before(place))).sum::<f64>();
        if look < looks {
            let at =
                |x: f64| held.iter().enumerate().map(|(place, held)| held * density(x - before(place))).sum::<f64>();
            held = (0..points).map(|place| at(grid(look, place)) * weight(look, place)).collect();
        }
    }
    alarm
}

/// Returns the bound for each of `looks` equally spaced looks at which all together raise a false alarm with
/// probability `alpha`. Pocock 1977.
pub fn pocock(looks: u32, alpha: f64) -> f64 {
    let once = normal_quantile(1.0 - alpha / 2.0);
    // Bonferroni's bound is always enough.
    let (mut low, mut high) = (once, normal_quantile(1.0 - alpha / 2.0 / f64::from(looks.max(1))));
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if false_alarm(looks, middle) > alpha { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}
