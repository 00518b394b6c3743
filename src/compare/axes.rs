//! The effect of each axis of a matrix: one value against the first, averaged over the other axes.

use std::collections::BTreeMap;

use serde::Serialize;

use super::effect::{Method, effect};
use super::join::join;
use super::sequential::level_of;
use super::side::{Arm, Side};
use crate::run::{ArmRecord, RunRecord};
use crate::statistics::distributions::t_two_sided;
use crate::statistics::means;
use crate::statistics::{Interval, several};

/// The effect of a value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AxisEffect {
    /// The key that differs.
    pub axis: String,
    /// The label of the first value, which the other is compared with.
    pub old: String,
    /// The label of the other value.
    pub new: String,
    /// The mean over cases of the new score minus the old score, each averaged over the other axes.
    pub delta: f64,
    /// The confidence interval of `delta`, at the level of the pairs. If only one pair of arms differs in this axis alone, it
    /// is the interval of that pair. Otherwise it is a t interval over cases, and absent with one case, or if all cases differ by
    /// the same amount.
    pub interval: Option<Interval>,
    /// The method of the interval and of the p-value. Absent without an interval.
    #[serde(skip)]
    pub method: Option<Method>,
    /// The p-value of the test that belongs to the interval: that of the pair, or the t-test over cases.
    pub p: Option<f64>,
    /// The p-value adjusted by Holm for all effects of this comparison. Absent with one effect.
    pub p_holm: Option<f64>,
    /// The cases that can be compared in every pair of arms.
    pub cases: usize,
}

/// An effect, whatever its axis.
struct Found {
    delta: f64,
    interval: Option<Interval>,
    method: Option<Method>,
    p: Option<f64>,
    cases: usize,
}

/// Returns the effects of the axes of a run's experiment. For each axis, the arms that differ only in this axis are
/// paired, case by case.
pub fn of(side: &Side, record: &RunRecord) -> Vec<AxisEffect> {
    let mut effects = Vec::new();
    for axis in record.experiment.iter().flat_map(|experiment| &experiment.axes) {
        let Some((first, others)) = axis.labels.split_first() else { continue };
        for label in others {
            let pairs = pairs(side, &record.arms, &axis.key, (first, label));
            let found = match pairs.as_slice() {
                [pair] => of_pair(side, *pair),
                several => over_pairs(side, several),
            };
            let Some(Found { delta, interval, method, p, cases }) = found else { continue };
            let (axis, old, new) = (axis.key.clone(), first.clone(), label.clone());
            effects.push(AxisEffect { axis, old, new, delta, interval, method, p, p_holm: None, cases });
        }
    }
    let known: Vec<f64> = effects.iter().filter_map(|effect| effect.p).collect();
    if effects.len() > 1 {
        let mut adjusted = several::holm(&known).into_iter();
        effects.iter_mut().filter(|effect| effect.p.is_some()).for_each(|effect| effect.p_holm = adjusted.next());
    }
    effects
}

/// Returns the effect of a single pair of arms: the one that the comparison of this pair shows.
fn of_pair(side: &Side, (old, new): (&Arm, &Arm)) -> Option<Found> {
    let effect = effect(&join((side, old), (side, new)).cases, level_of(side, side))?;
    Some(Found { delta: effect.delta, interval: effect.interval, method: effect.method, p: effect.p, cases: effect.n })
}

/// Returns the effect over several pairs of arms. The difference of a case is a mean over the pairs, so t over cases is used,
/// as for a pair of arms with several trials of each case.
fn over_pairs(side: &Side, pairs: &[(&Arm, &Arm)]) -> Option<Found> {
    let deltas = deltas(side, pairs);
    let delta = means::mean(&deltas)?;
    let mean = means::of_cases(&deltas, level_of(side, side)).filter(|mean| mean.se > 0.0);
    Some(Found {
        delta,
        interval: mean.as_ref().map(|mean| mean.t.within(-1.0, 1.0)),
        method: mean.as_ref().map(|_| Method::PairedT),
        p: mean.as_ref().map(|mean| t_two_sided(delta / mean.se, (deltas.len() - 1) as f64)),
        cases: deltas.len(),
    })
}

/// Returns the difference of each case, averaged over the pairs of arms. A case counts if it can be compared in each pair:
/// if a combination were missing, the others would weigh more.
fn deltas(side: &Side, pairs: &[(&Arm, &Arm)]) -> Vec<f64> {
    let mut by_case: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for (old, new) in pairs {
        for case in join((side, *old), (side, *new)).cases {
            by_case.entry(case.id.to_owned()).or_default().push(case.delta());
        }
    }
    by_case.values().filter(|deltas| deltas.len() == pairs.len()).filter_map(|deltas| means::mean(deltas)).collect()
}

/// Returns pairs of arms that have the two values of an axis, the same values of every other axis, and the same
/// harness.
fn pairs<'a>(side: &'a Side, arms: &[ArmRecord], key: &str, (old, new): (&str, &str)) -> Vec<(&'a Arm, &'a Arm)> {
    let labels = |arm: &Arm| arms.iter().find(|known| known.name == arm.column).map(|known| known.labels.clone());
    let partner = |arm: &'a Arm| {
        let mut wanted = labels(arm).filter(|labels| labels.get(key).is_some_and(|label| label == old))?;
        wanted.insert(key.to_owned(), new.to_owned());
        let same_harness = |other: &Arm| other.harness == arm.harness || key == "harness";
        let is_it = |other: &&Arm| same_harness(other) && labels(other).as_ref() == Some(&wanted);
        side.arms.iter().find(is_it).map(|other| (arm, other))
    };
    side.arms.iter().filter_map(partner).collect()
}
