//! The non-inferiority test of a gate: whether a new arm is not worse than the old one by more than a margin,
//! one-sided.

use super::effect::{Basis, Effect, Method, basis, other_share, with_others};
use super::join::{Paired, SAME};
use super::one_case;
use crate::statistics::distributions::{binomial_at_most, normal_above, normal_quantile, t_above, t_quantile};
use crate::statistics::gates::{GateVerdict, not_worse, regressed_share};
use crate::statistics::{means, paired};

/// The result of the one-sided test that the new arm is not worse by more than a margin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NotWorse {
    pub verdict: GateVerdict,
    /// The one-sided lower bound of new minus old.
    pub lower: Option<f64>,
    /// The p-value of the test that the new arm is worse by more than the margin.
    pub p: Option<f64>,
}

/// Tests whether the new arm is not worse than the old one by more than the margin, with the same method as the
/// interval. If no case differs, the share of cases that regress is tested instead: a spread of zero in the sample
/// does not prove that there is none.
pub fn not_worse_than(cases: &[Paired<'_>], effect: &Effect, margin: f64, alpha: f64) -> NotWorse {
    let differences: Vec<f64> = cases.iter().map(Paired::delta).collect();
    let bounded = |middle: f64, half: f64, p: f64| NotWorse {
        verdict: not_worse(middle - half, middle + half, margin),
        lower: Some((middle - half).max(-1.0)),
        p: Some(p),
    };
    let counts = effect.counts;
    match basis(cases, &differences) {
        Basis::T { df } => by_t(&differences, effect, df, margin, alpha),
        Basis::Counts if counts.discordant() == 0 => {
            let share = regressed_share(0, counts.all(), margin, alpha);
            NotWorse {
                verdict: share.map_or(GateVerdict::Inconclusive, |(_, verdict)| verdict),
                lower: share.map(|(upper, _)| -upper),
                p: Some(binomial_at_most(0, counts.all(), margin)),
            }
        }
        Basis::Same { difference } => {
            let bounds = with_others(difference, other_share(cases.len(), alpha));
            // The share of cases that would have to lose all for the mean to reach the margin.
            let needed = ((difference + margin) / (difference + 1.0)).max(0.0);
            NotWorse {
                verdict: not_worse(bounds.low, bounds.high, margin),
                lower: Some(bounds.low),
                p: Some((1.0 - needed).powf(cases.len() as f64)),
            }
        }
        Basis::Counts => {
            let (middle, se) = paired::bonett_price_parts(counts.wins, counts.losses, counts.all());
            bounded(middle, normal_quantile(1.0 - alpha) * se, normal_above((middle + margin) / se))
        }
        Basis::Trials(Method::Newcombe) => one_case::shares_not_worse(cases, margin, alpha).unwrap_or(nothing()),
        Basis::Trials(_) => one_case::scores_not_worse(cases, margin, alpha).unwrap_or(nothing()),
        Basis::Nothing => nothing(),
    }
}

/// The number of differing cases below which the t interval is not used: it relies on a spread that was not observed
/// yet.
const MIN_DIFFERING_CASES: u64 = 15;

/// The number of won cases below which losses could make the result seem more certain than ties do.
const FEW_WINS: u64 = 6;

/// Tests by t whether the new arm is not worse by more than the margin. In a suite that is nearly saturated, few
/// cases differ, and their spread underestimates the true one. Therefore one more loss, of the largest observed size,
/// is added to the cases. A result with hardly any win is never more certain than a result without any difference.
fn by_t(differences: &[f64], effect: &Effect, df: f64, margin: f64, alpha: f64) -> NotWorse {
    let counts = effect.counts;
    // By t, the standard error is known; without it, no loss would be shown.
    let upper = effect.delta + t_quantile(1.0 - alpha, df) * effect.se.unwrap_or(f64::INFINITY);
    let mut all = differences.to_vec();
    if counts.discordant() < MIN_DIFFERING_CASES {
        let loss = -differences.iter().fold(0.0_f64, |most, it| most.max(it.abs()));
        match all.iter_mut().find(|it| it.abs() <= SAME) {
            Some(tie) => *tie = loss,
            None => all.push(loss),
        }
    }
    let Some((delta, variance)) = means::mean(&all).zip(means::variance(&all)) else { return nothing() };
    let (n, df) = (all.len() as f64, all.len() as f64 - 1.0);
    let se = (variance / n).sqrt().max(f64::MIN_POSITIVE);
    let mut lower = delta - t_quantile(1.0 - alpha, df) * se;
    let mut p = t_above((delta + margin) / se, df);
    if counts.wins < FEW_WINS
        && let Some((share, _)) = regressed_share(0, counts.all(), margin, alpha)
    {
        lower = lower.min(-share);
        p = p.max(binomial_at_most(0, counts.all(), margin));
    }
    NotWorse { verdict: not_worse(lower, upper, margin), lower: Some(lower.max(-1.0)), p: Some(p) }
}

fn nothing() -> NotWorse {
    NotWorse { verdict: GateVerdict::Inconclusive, lower: None, p: None }
}
