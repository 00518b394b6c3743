//! The effect of each axis of a matrix: one value against the first, averaged over the pairs of arms that differ only in it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::NotCompared;
use super::doubts::Doubt;
use super::effect::{Method, effect};
use super::join::join;
use super::result_doubts::ResultDoubts;
use super::sequential::{is_comparable, level_of};
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
    /// The mean over cases of the new score minus the old score. If several pairs of arms differ in this axis alone, the
    /// difference of each case is averaged over them.
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
    /// The number of cases that can be compared in every pair that is counted. A pair without a comparable case is not
    /// counted, for example if one arm skipped all cases.
    pub cases: usize,
    /// The number of pairs of arms.
    #[serde(skip)]
    pub pairs: usize,
    /// Caveats about the scores of these cases: agents that could read files of their own case. Absent if there are none.
    pub doubts: Option<Vec<Doubt>>,
}

/// A value of an axis whose effect is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AxisNotCompared {
    /// The key that differs.
    pub axis: String,
    /// The label of the first value, which the other would be compared with.
    pub old: String,
    /// The label of the other value.
    pub new: String,
    /// The reason, as text.
    pub text: String,
}

/// An effect, whatever its axis.
struct Found {
    delta: f64,
    interval: Option<Interval>,
    method: Option<Method>,
    p: Option<f64>,
    cases: usize,
}

/// Returns the effects of the axes of a run's experiment, and the values without an effect. For each axis, the arms that differ
/// only in this axis are paired, case by case.
pub fn of(side: &Side, record: &RunRecord) -> (Vec<AxisEffect>, Vec<AxisNotCompared>) {
    let (mut effects, mut not_compared) = (Vec::new(), Vec::new());
    let doubted = ResultDoubts::of_arms(&side.arms);
    for axis in record.experiment.iter().flat_map(|experiment| &experiment.axes) {
        let Some((first, others)) = axis.labels.split_first() else { continue };
        for label in others {
            let all = pairs(side, &record.arms, &axis.key, (first, label));
            // An arm that skipped all cases leaves out no case of the other pairs.
            let joins = |(old, new): &(&Arm, &Arm)| is_comparable(&join((side, *old), (side, *new)));
            let comparable: Vec<(&Arm, &Arm)> = all.iter().copied().filter(joins).collect();
            let found = match comparable.as_slice() {
                [pair] => of_pair(side, *pair),
                several => effect_of_pairs(side, several),
            };
            let (axis, old, new) = (axis.key.clone(), first.clone(), label.clone());
            let Some(Found { delta, interval, method, p, cases }) = found else {
                not_compared.push(AxisNotCompared { axis, old, new, text: why_not(side, &all, &comparable) });
                continue;
            };
            let (pairs, doubts) = (comparable.len(), caveats(side, &comparable, &doubted));
            let p_holm = None;
            effects.push(AxisEffect { axis, old, new, delta, interval, method, p, p_holm, cases, pairs, doubts });
        }
    }
    let known: Vec<f64> = effects.iter().filter_map(|effect| effect.p).collect();
    if effects.len() > 1 {
        let mut adjusted = several::holm(&known).into_iter();
        effects.iter_mut().filter(|effect| effect.p.is_some()).for_each(|effect| effect.p_holm = adjusted.next());
    }
    (effects, not_compared)
}

/// Returns the reason why a value of an axis has no effect. `all` are the pairs of arms that differ only in this axis.
fn why_not(side: &Side, all: &[(&Arm, &Arm)], comparable: &[(&Arm, &Arm)]) -> String {
    if comparable.len() > 1 {
        return format!("no case can be compared in all {} pairs of arms that differ only in it", comparable.len());
    }
    let first = comparable.first().or(all.first());
    let Some((old, new)) = first else { return "no two arms differ only in it".to_owned() };
    let reason = NotCompared::of(old, new, &join((side, *old), (side, *new))).text;
    format!("no case can be compared: {reason}")
}

/// Returns the caveats about the scores that an effect rests on: those of both arms of each pair, in the cases that count.
fn caveats(side: &Side, pairs: &[(&Arm, &Arm)], doubted: &ResultDoubts) -> Option<Vec<Doubt>> {
    let of_pair = |(old, new): &(&Arm, &Arm)| -> BTreeSet<String> {
        join((side, *old), (side, *new)).cases.iter().map(|case| case.id.to_owned()).collect()
    };
    let counted = pairs.iter().map(of_pair).reduce(|all, one| &all & &one).unwrap_or_default();
    let mut arms: Vec<&str> = Vec::new();
    for (old, new) in pairs {
        let names = [&*old.name, &*new.name].into_iter();
        arms.extend(names.filter(|name| !arms.contains(name)).collect::<Vec<_>>());
    }
    let of_arm = |arm: &&str| doubted.caveat_of_scores(arm, |case| counted.contains(case));
    let doubts: Vec<Doubt> = arms.iter().filter_map(of_arm).collect();
    (!doubts.is_empty()).then_some(doubts)
}

/// Returns the effect of a single pair of arms: the one that the comparison of this pair shows.
fn of_pair(side: &Side, (old, new): (&Arm, &Arm)) -> Option<Found> {
    let effect = effect(&join((side, old), (side, new)).cases, level_of(side, side))?;
    Some(Found { delta: effect.delta, interval: effect.interval, method: effect.method, p: effect.p, cases: effect.n })
}

/// Returns the effect over several pairs of arms. The difference of a case is a mean over the pairs, so t over cases is used,
/// as for a pair of arms with several trials of each case.
fn effect_of_pairs(side: &Side, pairs: &[(&Arm, &Arm)]) -> Option<Found> {
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
