//! The comparison of a single case over its trials. The result holds for this case only.

use super::effect::{Effect, Method};
use super::join::Paired;
use super::non_inferiority::NotWorse;
use crate::statistics::distributions::{binomial_at_most, binomial_exactly, t_above, z_of_level};
use crate::statistics::gates::{GateVerdict, not_worse};
use crate::statistics::means::{Welch, welch};
use crate::statistics::power::POWER;
use crate::statistics::{Interval, tables};

/// Computes the difference between the trials of one case: Newcombe's interval with Fisher's test if each trial
/// passed or failed, Welch's t if there are fractional scores.
pub(super) fn effect(cases: &[Paired<'_>], method: Method, level: f64, base: Effect) -> Effect {
    let Some(case) = cases.first() else { return base };
    if method != Method::Newcombe {
        let base = Effect { could_be_significant: true, ..base };
        let Some(Welch { se, p, interval, .. }) = welch(&case.new.scores, &case.old.scores, level) else { return base };
        let interval = Some(interval.within(-1.0, 1.0));
        return Effect { se: Some(se), interval, p: Some(p), method: Some(method), ..base };
    }
    let Shares { new: (x_new, n_new), old: (x_old, n_old) } = Shares::of(case);
    let interval = tables::newcombe(x_new, n_new, x_old, n_old, level);
    let best = tables::fisher(n_new, n_new, 0, n_old);
    Effect {
        se: interval.map(|it| (it.high - it.low) / 2.0 / z_of_level(level)),
        interval,
        p: tables::fisher(x_new, n_new, x_old, n_old).map(|it| it.two_sided),
        method: Some(method),
        could_be_significant: best.is_some_and(|it| it.two_sided < 1.0 - level),
        ..base
    }
}

/// The largest number of trials of an arm for which [`smallest_effect`] is computed.
pub const MAX_TRIALS: u64 = 100;

/// Returns the smallest difference from this share of passing trials in the old arm, in the better direction, that both
/// Newcombe's interval and Fisher's test show with 80 % power. Returns `None` if these numbers of trials show none.
pub fn smallest_effect(share: f64, old: u64, new: u64, level: f64) -> Option<f64> {
    // Both are the same if passed and failed trials are exchanged, so a gain of the one is a loss of the other.
    let both = [share, 1.0 - share].map(|share| smallest_loss(share, old, new, level));
    both.into_iter().flatten().reduce(f64::min)
}

/// Returns [`smallest_effect`] for a loss.
fn smallest_loss(share: f64, old: u64, new: u64, level: f64) -> Option<f64> {
    let is_shown = |passed_new: u64, passed_old: u64| {
        tables::newcombe(passed_new, new, passed_old, old, level).is_some_and(|it| it.high < 0.0)
            && tables::fisher(passed_new, new, passed_old, old).is_some_and(|it| it.two_sided < 1.0 - level)
    };
    // The probability of each number of passed trials of the old arm, with the largest number of the new arm that differs.
    let chances = (0..=old).map(|passed| (binomial_exactly(passed, old, share), passed));
    let likely = chances.filter(|(chance, _)| *chance > 1e-9);
    let rows = likely.filter_map(|(chance, passed)| {
        let most = (0..=new).take_while(|passed_new| is_shown(*passed_new, passed)).last()?;
        Some((chance, most))
    });
    let rows: Vec<(f64, u64)> = rows.collect();
    let power = |loss: f64| {
        let left = (share - loss).max(0.0);
        rows.iter().map(|(chance, most)| chance * binomial_at_most(*most, new, left)).sum::<f64>()
    };
    if power(share) < POWER {
        return None;
    }
    let (mut missed, mut found) = (0.0, share);
    for _ in 0..50 {
        let middle = f64::midpoint(missed, found);
        if power(middle) < POWER { missed = middle } else { found = middle }
    }
    Some(found)
}

/// Returns the minimum detectable effect of a case whose trials passed or failed, if the old arm's share of passed trials is
/// the observed one. With many trials it is computed from the standard error.
pub(super) fn minimum_detectable(cases: &[Paired<'_>], level: f64, by_error: f64) -> Option<f64> {
    let Shares { new: (_, n_new), old: (x_old, n_old) } = Shares::of(cases.first()?);
    if n_old.max(n_new) > MAX_TRIALS {
        return Some(by_error);
    }
    smallest_effect(x_old as f64 / n_old as f64, n_old, n_new, level)
}

/// Tests whether the new arm is not worse by more than the margin, for one case whose trials passed or failed.
/// A difference counts as shown only if Fisher's test agrees.
pub(super) fn shares_not_worse(cases: &[Paired<'_>], margin: f64, alpha: f64) -> Option<NotWorse> {
    let Shares { new: (x_new, n_new), old: (x_old, n_old) } = Shares::of(cases.first()?);
    let at = |level: f64| tables::newcombe(x_new, n_new, x_old, n_old, level);
    let it = at(1.0 - 2.0 * alpha)?;
    let verdict = match not_worse(it.low, it.high, margin) {
        GateVerdict::Fail if tables::fisher(x_new, n_new, x_old, n_old)?.less >= alpha => GateVerdict::Inconclusive,
        verdict => verdict,
    };
    Some(NotWorse { verdict, lower: Some(it.low), p: Some(p_of(&at, margin)) })
}

/// Tests whether the new arm is not worse by more than the margin, for one case with fractional scores.
pub(super) fn scores_not_worse(cases: &[Paired<'_>], margin: f64, alpha: f64) -> Option<NotWorse> {
    let case = cases.first()?;
    let it = welch(&case.new.scores, &case.old.scores, 1.0 - 2.0 * alpha)?;
    let p = Some(t_above((it.difference + margin) / it.se, it.df));
    let verdict = not_worse(it.interval.low, it.interval.high, margin);
    Some(NotWorse { verdict, lower: Some(it.interval.low.max(-1.0)), p })
}

/// Returns the one-sided p-value that belongs to these intervals: the error probability of the level at which the lower
/// end of the interval (or the upper end, if the observed loss exceeds the margin) meets the margin.
fn p_of(at: &impl Fn(f64) -> Option<Interval>, margin: f64) -> f64 {
    // A level of 0 is the difference itself.
    let lost_more = at(0.0).is_some_and(|it| it.low < -margin);
    let meets = |level: f64| at(level).is_some_and(|it| if lost_more { it.high >= -margin } else { it.low <= -margin });
    let (mut apart, mut meeting) = (0.0, 1.0 - 1e-12);
    for _ in 0..60 {
        let middle = (apart + meeting) / 2.0;
        if meets(middle) { meeting = middle } else { apart = middle }
    }
    let left_out = (1.0 - meeting) / 2.0;
    if lost_more { 1.0 - left_out } else { left_out }
}

/// Passed trials and all trials, in both arms.
struct Shares {
    new: (u64, u64),
    old: (u64, u64),
}

impl Shares {
    fn of(case: &Paired<'_>) -> Self {
        let count = |scores: &[f64]| (scores.iter().filter(|score| **score == 1.0).count() as u64, scores.len() as u64);
        Self { new: count(&case.new.scores), old: count(&case.old.scores) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_few_trials_show_a_difference_only_if_fishers_test_does() {
        let smallest = |share: f64, trials: u64| smallest_effect(share, trials, trials, 0.95);
        // Three against three passed trials have p = 0.1, whatever they are.
        assert_eq!(smallest(1.0, 3), None);
        // Of five, at most one may still pass: P(X <= 1) = 0.8 with a share of 0.168.
        assert!((smallest(1.0, 5).unwrap() - 0.832).abs() < 0.002, "{:?}", smallest(1.0, 5));
        assert!((smallest(0.0, 5).unwrap() - smallest(1.0, 5).unwrap()).abs() < 1e-9);
        // If 70 % pass, five trials are all lost, and the difference is still seen too seldom.
        assert_eq!(smallest(0.7, 5), None);
    }
}
