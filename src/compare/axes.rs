//! The effect of each axis of a matrix: one value against the first, averaged over the other axes.

use std::collections::BTreeMap;

use serde::Serialize;

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
    /// The confidence interval of `delta`, at the level of the pairs. Absent with one case, or if all cases differ by
    /// the same amount.
    pub interval: Option<Interval>,
    /// The p-value of the t-test over cases.
    pub p: Option<f64>,
    /// The p-value adjusted by Holm for all effects of this comparison. Absent with one effect.
    pub p_holm: Option<f64>,
    /// The cases that can be compared in every pair of arms.
    pub cases: usize,
}

/// Returns the effects of the axes of a run's experiment. For each axis, the arms that differ only in this axis are
/// paired, case by case.
pub fn of(side: &Side, record: &RunRecord) -> Vec<AxisEffect> {
    let mut effects = Vec::new();
    for axis in record.experiment.iter().flat_map(|experiment| &experiment.axes) {
        let Some((first, others)) = axis.labels.split_first() else { continue };
        for label in others {
            let pairs = pairs(side, &record.arms, &axis.key, (first, label));
            let deltas = deltas(side, &pairs);
            let Some(delta) = means::mean(&deltas) else { continue };
            let mean = means::of_cases(&deltas, level_of(side, side)).filter(|mean| mean.se > 0.0);
            effects.push(AxisEffect {
                axis: axis.key.clone(),
                old: first.clone(),
                new: label.clone(),
                delta,
                interval: mean.as_ref().map(|mean| mean.t.within(-1.0, 1.0)),
                p: mean.as_ref().map(|mean| t_two_sided(delta / mean.se, (deltas.len() - 1) as f64)),
                p_holm: None,
                cases: deltas.len(),
            });
        }
    }
    let known: Vec<f64> = effects.iter().filter_map(|effect| effect.p).collect();
    if effects.len() > 1 {
        let mut adjusted = several::holm(&known).into_iter();
        effects.iter_mut().filter(|effect| effect.p.is_some()).for_each(|effect| effect.p_holm = adjusted.next());
    }
    effects
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
