//! `--trials auto`: interim looks at fixed numbers of trials, with a level for each look that bounds the error
//! rate of all looks together.

use super::effect::{Verdict, effect};
use super::join::join;
use super::side::Side;
use crate::statistics::LEVEL;

/// Trials of each cell at each look.
pub const LOOKS: [u32; 4] = [2, 4, 8, 16];

/// Returns the confidence level of each look's interval. The error rate is shared evenly (Bonferroni), which
/// holds for any dependence between the looks.
pub fn level(looks: u32) -> f64 {
    1.0 - (1.0 - LEVEL) / f64::from(looks.max(1))
}

/// Returns the confidence level of a comparison. It is higher if the scores of a run were evaluated several times.
pub fn level_of(old: &Side, new: &Side) -> f64 {
    level(old.looks.max(new.looks))
}

/// Returns true if every arm has a clear verdict against the first: improved, regressed or equivalent.
pub fn is_clear(side: &Side, margin: f64) -> bool {
    let Some((first, rest)) = side.arms.split_first() else { return true };
    rest.iter().all(|arm| {
        let joined = join((side, first), (side, arm));
        let level = level(LOOKS.len() as u32);
        effect(&joined.cases, level).is_some_and(|it| it.verdict(level, margin) != Verdict::Inconclusive)
    })
}
