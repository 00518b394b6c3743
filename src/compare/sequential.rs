//! `--trials auto`: looks at fixed numbers of trials, and a level for each that keeps the error rate of all together.

use super::effect::{Verdict, effect};
use super::join::join;
use super::side::Side;
use crate::statistics::LEVEL;

/// Trials of each cell at each look.
pub const LOOKS: [u32; 4] = [2, 4, 8, 16];

/// The level of each look's interval: the error is shared evenly (Bonferroni), which holds however the looks depend on
/// each other.
pub fn level(looks: u32) -> f64 {
    1.0 - (1.0 - LEVEL) / f64::from(looks.max(1))
}

/// The level of a comparison: of a run that was looked at several times, that of its looks.
pub fn level_of(old: &Side, new: &Side) -> f64 {
    level(old.looks.max(new.looks))
}

/// The next number of trials after this one, where there is one.
pub fn next(trials: u32) -> Option<u32> {
    LOOKS.into_iter().find(|look| *look > trials)
}

/// Whether every arm stands clearly against the first: improved, regressed or equivalent.
pub fn is_clear(side: &Side, margin: f64) -> bool {
    let Some((first, rest)) = side.arms.split_first() else { return true };
    rest.iter().all(|arm| {
        let joined = join((side, first), (side, arm));
        let level = level(LOOKS.len() as u32);
        effect(&joined.cases, level).is_some_and(|it| it.verdict(level, margin) != Verdict::Inconclusive)
    })
}
