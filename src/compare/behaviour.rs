//! Differences in behaviour between two arms: tool calls by kind, the step at which typical traces diverge, and
//! rules that only one arm breaks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::changes::{Change, changes};
use super::join::Paired;
use super::side::{Arm, ArmDetails, Broken, Interner};
use crate::statistics::consistency::edit_distance;
use crate::statistics::means;
use crate::trace::ToolKind;

/// The maximum number of different traces of a case among which the most typical one is searched.
const MAX_TRACES: usize = 24;

/// Differences in behaviour between two arms. A figure is absent if one of the arms did not show it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Behaviour {
    /// Tool calls per trial, by kind, over the cases in which both arms showed their calls.
    pub calls: Vec<CallsOfKind>,
    /// The figures that differ, the most certain difference first.
    pub changes: Vec<Change>,
    /// Cases whose typical traces diverge; the most frequent kind of divergence comes first.
    pub partings: Vec<Parting>,
    /// Graders that failed in trials of one arm and in no trial of the opposite arm.
    pub broken_by_one: Vec<BrokenByOne>,
}

/// Tool calls of one kind per trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallsOfKind {
    /// The kind of the called tools.
    pub kind: ToolKind,
    /// The mean over cases in the old arm.
    pub old: f64,
    /// The mean over cases in the new arm.
    pub new: f64,
}

/// The first step in which the typical traces of a case differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Parting {
    /// Id of the case.
    pub case: String,
    /// The step, from 0, as in the trace.
    pub step: usize,
    /// The old arm's typical action in this step. Absent if its trace has ended.
    pub old: Option<String>,
    /// The new arm's typical action in this step. Absent if its trace has ended.
    pub new: Option<String>,
    /// The new mean score minus the old one.
    pub delta: f64,
}

/// A grader that one arm fails and the opposite arm never fails, or a rule that only one arm breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BrokenByOne {
    /// The grader's name.
    pub name: String,
    /// The kind of the grader.
    pub grader: String,
    /// The broken rule, if the grader has rules.
    pub rule: Option<String>,
    /// Trials of the old arm that failed the grader.
    pub old: u64,
    /// Trials of the new arm that failed the grader.
    pub new: u64,
}

/// Returns the differences in behaviour between two arms. Returns `None` if one of them is a baseline, which
/// keeps no traces.
pub fn behaviour(cases: &[Paired<'_>], old: &Arm, new: &Arm, words: &Interner) -> Option<Behaviour> {
    let (before, now) = (old.details.as_ref()?, new.details.as_ref()?);
    let mut partings: Vec<Parting> = cases
        .iter()
        .filter_map(|case| {
            let old = typical(before.shapes.get(case.id)?)?;
            let new = typical(now.shapes.get(case.id)?)?;
            let longest = old.len().max(new.len());
            let step = (0..longest).find(|step| old.get(*step) != new.get(*step))?;
            let word = |shape: &[u32]| shape.get(step).map(|number| words.word(*number).to_owned());
            Some(Parting { case: case.id.to_owned(), step, old: word(old), new: word(new), delta: case.delta() })
        })
        .collect();
    partings.sort_by(|a, b| b.delta.abs().total_cmp(&a.delta.abs()).then_with(|| a.case.cmp(&b.case)));
    let (broken_old, broken_new) = (broken_in(before, cases), broken_in(now, cases));
    let graders: BTreeSet<&Broken> = broken_old.keys().chain(broken_new.keys()).copied().collect();
    let broken = graders.into_iter().filter_map(|key| {
        let count = |broken: &BTreeMap<&Broken, u64>| broken.get(key).copied().unwrap_or_default();
        let (old, new) = (count(&broken_old), count(&broken_new));
        let Broken { name, grader, rule } = key.clone();
        ((old == 0) != (new == 0)).then_some(BrokenByOne { name, grader, rule, old, new })
    });
    let changes = changes(cases, before, now);
    Some(Behaviour { calls: calls(cases, before, now), changes, partings, broken_by_one: broken.collect() })
}

/// Returns the tool calls per trial by kind. Each case in which both arms showed their calls counts once.
fn calls(cases: &[Paired<'_>], old: &ArmDetails, new: &ArmDetails) -> Vec<CallsOfKind> {
    type Calls = BTreeMap<ToolKind, f64>;
    let in_both = |case: &Paired<'_>| Some((old.calls_by_kind(case.id)?, new.calls_by_kind(case.id)?));
    let (old, new): (Vec<Calls>, Vec<Calls>) = cases.iter().filter_map(in_both).unzip();
    let kinds: BTreeSet<ToolKind> = old.iter().chain(&new).flat_map(BTreeMap::keys).copied().collect();
    let mean = |calls: &[Calls], kind: ToolKind| {
        let of_kind: Vec<f64> = calls.iter().map(|calls| calls.get(&kind).copied().unwrap_or_default()).collect();
        means::mean(&of_kind).unwrap_or_default()
    };
    kinds.into_iter().map(|kind| CallsOfKind { kind, old: mean(&old, kind), new: mean(&new, kind) }).collect()
}

/// Returns how often each grader failed, or each rule was broken, over these cases.
fn broken_in<'a>(details: &'a ArmDetails, cases: &[Paired<'_>]) -> BTreeMap<&'a Broken, u64> {
    let mut broken = BTreeMap::new();
    for (grader, count) in cases.iter().filter_map(|case| details.broken.get(case.id)).flatten() {
        *broken.entry(grader).or_default() += count;
    }
    broken
}

/// Returns the most frequent trace. Among equally frequent traces, the one closest to all others is returned, and
/// then the first.
fn typical(shapes: &[Vec<u32>]) -> Option<&[u32]> {
    let mut counts: Vec<(&Vec<u32>, usize)> = Vec::new();
    for shape in shapes {
        match counts.iter().position(|(known, _)| *known == shape) {
            Some(place) => counts[place].1 += 1,
            None if counts.len() < MAX_TRACES => counts.push((shape, 1)),
            None => {}
        }
    }
    let most = counts.iter().map(|(_, count)| *count).max()?;
    let distance =
        |shape: &Vec<u32>| -> usize { counts.iter().map(|(other, count)| edit_distance(shape, other) * count).sum() };
    let mut best = counts.iter().filter(|(_, count)| *count == most).map(|(shape, _)| *shape);
    let only = best.clone().nth(1).is_none();
    let best = if only { best.next()? } else { best.min_by_key(|shape| distance(shape))? };
    Some(best)
}
