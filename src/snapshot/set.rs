//! Combines several trials of a cell: the set of accepted shapes, or their common core. Pure.

use serde::{Deserialize, Serialize};

use super::diff::{FoundDifferences, Sign, differences};
use super::{Body, Item, Shape, align};
use crate::ids::{ArmOf, SnapshotCellId};
use crate::snapshot::settings::SnapshotText;

/// The accepted snapshot of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accepted {
    /// The cell, for readers of the file.
    pub id: SnapshotCellId,
    /// The form in which texts are kept.
    pub text: SnapshotText,
    /// The method of combining several trials.
    pub several: Several,
    /// The accepted shapes; a core has one.
    pub shapes: Vec<AcceptedShape>,
    /// True if the file has an old form, in which replaced values had no numbers: it cannot be compared.
    pub outdated: bool,
}

/// The cell that a snapshot must belong to, and the case's settings.
#[derive(Debug, Clone, Copy)]
pub struct Belongs<'a> {
    pub id: &'a SnapshotCellId,
    /// The form in which texts are kept.
    pub text: SnapshotText,
    /// The method of combining several trials.
    pub several: Several,
}

/// Returns true if two ids mean the same case: an id may be relative to different folders.
pub fn same_case(one: &str, other: &str) -> bool {
    let below = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'));
    one == other || below(one, other) || below(other, one)
}

/// An accepted shape, and how many trials showed it when it was accepted.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AcceptedShape {
    pub shape: Shape,
    /// The number of trials that showed it.
    pub seen: u32,
    /// The number of all trials.
    pub of: u32,
}

/// A method of combining several trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    /// The shape of each trial is accepted.
    #[default]
    Set,
    /// The common part of all trials is accepted, and a trial must show it.
    Core,
}

impl Accepted {
    /// Returns the differences of a trial from the nearest accepted shape.
    pub fn compared(&self, now: &Shape) -> FoundDifferences {
        let mut best: Option<FoundDifferences> = None;
        for known in &self.shapes {
            let mut found = differences(&known.shape, now);
            if self.several == Several::Core {
                // A core requires its items, and allows any others.
                found.differences.retain(|it| it.sign != Sign::Added);
            }
            let nearer = best
                .as_ref()
                .is_none_or(|best| (found.differences.len(), best.same) < (best.differences.len(), found.same));
            if nearer {
                best = Some(found);
            }
        }
        best.unwrap_or_default()
    }

    /// Returns a note if a core contains nothing of the agent's actions.
    pub fn empty_core(&self) -> Option<&'static str> {
        let empty = self.several == Several::Core && self.shapes.iter().all(|known| known.shape.done() == 0);
        empty.then_some(
            "the accepted core contains no call and no text of the agent, so every trial matches; to keep each trial's shape, write `snapshot: {several: set}` in the case",
        )
    }

    /// Returns the reason if the snapshot does not belong to this cell: it names another cell, or was made with other
    /// settings.
    pub fn refused(&self, of: &Belongs<'_>) -> Option<String> {
        let with = |arm: ArmOf<'_>| match (arm.variant, arm.model) {
            (Some(variant), _) => format!(" with the variant `{variant}`"),
            (None, Some(model)) => format!(" with the model `{model}`"),
            (None, None) => String::new(),
        };
        // A variant is another arm when its model changes, but its name decides what it is compared with.
        let same_arm = match &of.id.variant {
            Some(_) => self.id.variant == of.id.variant,
            None => self.id.arm() == of.id.arm(),
        };
        if !same_case(&self.id.case, &of.id.case) || self.id.harness != of.id.harness || !same_arm {
            return Some(format!(
                "it was accepted for the case `{}` and `{}`{}, but its path is that of the case `{}` and `{}`{}; accept it again if it belongs here",
                self.id.case,
                self.id.harness,
                with(self.id.arm()),
                of.id.case,
                of.id.harness,
                with(of.id.arm()),
            ));
        }
        if self.outdated {
            return Some(
                "it was accepted by an older version of evals, which replaced values without numbers; look at the run with \
                 `evals snapshot review`, or accept it again with `evals snapshot accept`"
                    .to_owned(),
            );
        }
        ((self.text, self.several) != (of.text, of.several)).then(|| {
            "the case's `text` or `several` has changed since it was accepted; accept it again with `evals snapshot accept`"
                .to_owned()
        })
    }

    /// Adds these trials: beside the accepted ones if `beside`, else instead of them.
    #[must_use]
    pub fn with(mut self, shapes: &[Shape], beside: bool) -> Self {
        let of = u32::try_from(shapes.len()).unwrap_or(u32::MAX);
        let mut known = if beside { std::mem::take(&mut self.shapes) } else { Vec::new() };
        match self.several {
            Several::Set => {
                let before = known.iter().map(|it| it.of).max().unwrap_or(0);
                shapes.iter().for_each(|shape| take_in(&mut known, shape));
                known.iter_mut().for_each(|it| it.of = before.saturating_add(of).max(it.seen));
            }
            Several::Core => {
                let before = known.iter().map(|it| it.shape.clone());
                let core = before
                    .chain(shapes.iter().cloned())
                    .reduce(|core, shape| Shape { items: in_both(&core.items, &shape.items), ..Shape::default() });
                let seen = known.first().map_or(0, |it| it.of).saturating_add(of);
                known = core
                    .map(|shape| AcceptedShape {
                        shape: Shape { items: shape.items, ..Shape::default() },
                        seen,
                        of: seen,
                    })
                    .into_iter()
                    .collect();
            }
        }
        self.shapes = known;
        self
    }
}

/// Adds a shape: a known one is counted once more, and its usage range is extended. The number of all trials stays.
fn take_in(known: &mut Vec<AcceptedShape>, shape: &Shape) {
    match known.iter_mut().find(|it| it.shape.items == shape.items) {
        Some(same) => {
            let both = |a: Option<super::Range>, b: Option<super::Range>| match (a, b) {
                (Some(a), Some(b)) => Some(a.with(b)),
                (a, b) => a.or(b),
            };
            same.shape.tokens = both(same.shape.tokens, shape.tokens);
            same.shape.output_tokens = both(same.shape.output_tokens, shape.output_tokens);
            same.seen = same.seen.saturating_add(1);
        }
        None => known.push(AcceptedShape { shape: shape.clone(), seen: 1, of: 1 }),
    }
}

/// Returns the common items of two lists, in order: equal items, and for steps the calls in both.
fn in_both(one: &[Item], other: &[Item]) -> Vec<Item> {
    let mut items = Vec::new();
    for (n, m) in align::items(one, other) {
        let (Some(one), Some(other)) = (n.and_then(|n| one.get(n)), m.and_then(|m| other.get(m))) else { continue };
        let body = match (&one.body, &other.body) {
            (Body::Step(a), Body::Step(b)) => {
                let pairs = align::calls(a, b).into_iter();
                let both = pairs.filter_map(|(n, m)| {
                    let call = a.get(n?)?;
                    (call == b.get(m?)?).then(|| call.clone())
                });
                Body::Step(both.collect())
            }
            (a, b) if a == b => a.clone(),
            _ => continue,
        };
        if !matches!(&body, Body::Step(calls) if calls.is_empty()) {
            items.push(Item { body, events: Vec::new() });
        }
    }
    items
}
