//! Checks whether the verdict `equivalent` rests on the spread of a few cases that differ.

use super::doubts::{About, Doubt};
use super::effect::{Effect, EffectVerdict, Method};
use super::join::Paired;
use super::non_inferiority::not_worse_than;
use crate::statistics::gates::GateVerdict;
use crate::text::plural;

/// Returns a caveat if the interval lies within the margin, but one of the two one-sided tests of a gate, which count one
/// case more that differs, does not show that.
pub(super) fn few_differ(cases: &[Paired<'_>], effect: &Effect, level: f64, margin: f64) -> Option<Doubt> {
    if effect.method != Some(Method::PairedT) || effect.verdict(level, margin) != EffectVerdict::Equivalent {
        return None;
    }
    let swapped: Vec<Paired<'_>> =
        cases.iter().map(|case| Paired { old: case.new, new: case.old, ..case.clone() }).collect();
    let back = super::effect::effect(&swapped, level)?;
    let shown = |cases: &[Paired<'_>], effect: &Effect| {
        not_worse_than(cases, effect, margin, (1.0 - level) / 2.0).verdict == GateVerdict::Pass
    };
    if shown(cases, effect) && shown(&swapped, &back) {
        return None;
    }
    let differ = effect.counts.discordant();
    let text = format!(
        "`equivalent` rests on the small spread of {} in which {differ} {}: one case more that differs as much could make \
         it inconclusive",
        plural(cases.len(), "case"),
        if differ == 1 { "differs" } else { "differ" },
    );
    Some(Doubt { about: About::FewDiffer, text })
}
