//! The comparison of a single case over its trials. The result holds for this case only.

use super::effect::{Effect, Method};
use super::join::Paired;
use super::non_inferiority::NotWorse;
use crate::statistics::distributions::t_above;
use crate::statistics::gates::{GateVerdict, not_worse};
use crate::statistics::means::{Welch, welch};
use crate::statistics::{Interval, tables};

/// Computes the difference between the trials of one case: Newcombe's interval with Fisher's test if each trial
/// passed or failed, Welch's t if there are fractional scores.
pub(super) fn effect(cases: &[Paired<'_>], method: Method, level: f64, base: Effect) -> Effect {
    let Some(case) = cases.first() else { return base };
    if method != Method::Newcombe {
        let Some(Welch { se, p, interval, .. }) = welch(&case.new.scores, &case.old.scores, level) else { return base };
        let interval = Some(interval.within(-1.0, 1.0));
        return Effect { se, interval, p: Some(p), method: Some(method), could_be_significant: true, ..base };
    }
    let Shares { new: (x_new, n_new), old: (x_old, n_old) } = Shares::of(case);
    let interval = tables::newcombe(x_new, n_new, x_old, n_old, level);
    let best = tables::fisher(n_new, n_new, 0, n_old);
    let z = crate::statistics::distributions::z_of_level(level);
    Effect {
        se: interval.map_or(0.0, |it| (it.high - it.low) / 2.0 / z),
        interval,
        p: tables::fisher(x_new, n_new, x_old, n_old).map(|it| it.two_sided),
        method: Some(method),
        could_be_significant: best.is_some_and(|it| it.two_sided < 1.0 - level),
        ..base
    }
}

/// Tests whether the new arm is not worse by more than the margin, for one case whose trials passed or failed.
/// A difference counts as shown only if Fisher's test agrees.
pub(super) fn shares_not_worse(cases: &[Paired<'_>], margin: f64, alpha: f64) -> Option<NotWorse> {
    let Shares { new: (x_new, n_new), old: (x_old, n_old) } = Shares::of(cases.first()?);
    let at = |level: f64| tables::newcombe(x_new, n_new, x_old, n_old, level);
    let it = at(1.0 - 2.0 * alpha)?;
    let verdict = match not_worse(it.low, it.high, margin) {
        GateVerdict::Fail if tables::fisher(x_new, n_new, x_old, n_old)?.less >= alpha => GateVerdict::Inconclusive,
        said => said,
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
