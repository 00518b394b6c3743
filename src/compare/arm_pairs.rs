//! The pairs of arms in a comparison of one run: each arm with the baseline of its experiment, or with the first arm.

use super::side::{Arm, Side};
use super::{ArmPair, Unmatched};

/// Pairs the arms of a run as its comparison does if no baseline is named. Also returns the names of the arms without a
/// partner. `baseline` is the baseline of the run's experiment.
pub fn of_run<'a>(side: &'a Side, baseline: Option<&str>) -> (Vec<ArmPair<'a>>, Unmatched) {
    match (baseline, first(side)) {
        (Some(baseline), _) => of_experiment(side, baseline),
        (None, Some(first)) => (with(side, first), Unmatched::default()),
        (None, None) => (Vec::new(), Unmatched::default()),
    }
}

/// Returns the first arm that has a case. Without such an arm, returns the first of all.
pub fn first(side: &Side) -> Option<&Arm> {
    side.arms.iter().find(|arm| !arm.cases.is_empty()).or_else(|| side.arms.first())
}

/// Pairs an arm of a run with each other arm of the run.
pub fn with<'a>(side: &'a Side, old: &'a Arm) -> Vec<ArmPair<'a>> {
    side.arms.iter().filter(|arm| arm.name != old.name).map(|new| ((side, old), (side, new))).collect()
}

/// Pairs the arms of an experiment: each arm with the baseline on the same harness, or with the only arm of the
/// baseline if it ran on one harness. Also returns the names of the arms without a partner.
pub fn of_experiment<'a>(side: &'a Side, baseline: &str) -> (Vec<ArmPair<'a>>, Unmatched) {
    let (olds, news): (Vec<&Arm>, Vec<&Arm>) = side.arms.iter().partition(|arm| arm.column == baseline);
    let old_of = |new: &Arm| {
        let only = olds.first().filter(|_| olds.len() == 1);
        olds.iter().find(|old| old.harness == new.harness).or(only).copied()
    };
    let alone = news.iter().filter(|new| old_of(new).is_none()).map(|new| new.name.clone()).collect();
    let pairs = news.into_iter().filter_map(|new| Some(((side, old_of(new)?), (side, new)))).collect();
    (pairs, Unmatched { old: Vec::new(), new: alone })
}
