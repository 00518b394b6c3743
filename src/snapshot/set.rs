//! Several trials of a cell: the set of Shapes that are accepted, or the core that they have in common. Pure.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::{Found, Sign, differences};
use super::{Body, Item, Shape, align};
use crate::snapshot::settings::SnapshotText;

/// What is accepted for a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Accepted {
    /// Id of the case, for who reads the file.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The model asked for.
    pub model: Option<String>,
    /// How texts are kept.
    pub text: SnapshotText,
    /// What several trials come to.
    pub several: Several,
    /// The Shapes; of a core there is one.
    pub shapes: Vec<Known>,
    /// An older form of the file, in which replaced values had no numbers: it cannot be compared with.
    pub outdated: bool,
}

/// The cell that something accepted has to belong to, and how its case keeps it.
#[derive(Debug, Clone, Copy)]
pub struct Belongs<'a> {
    /// Id of the case; `None` if it is unknown.
    pub case: &'a str,
    /// Name of the harness.
    pub harness: &'a str,
    /// The model asked for.
    pub model: Option<&'a str>,
    /// How texts are kept.
    pub text: SnapshotText,
    /// What several trials come to.
    pub several: Several,
}

/// Whether two ids mean the same case: the folder that ids count from may be another for one file than for its folder.
pub fn same_case(one: &str, other: &str) -> bool {
    let below = |long: &str, short: &str| long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'));
    one == other || below(one, other) || below(other, one)
}

/// A Shape that is accepted, and how many trials showed it when it was.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// The Shape.
    pub shape: Shape,
    /// Trials that showed it.
    pub seen: u32,
    /// Of so many.
    pub of: u32,
}

/// What several trials come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Several {
    /// Each Shape that a trial has is accepted.
    #[default]
    Set,
    /// What all of them have in common is, and a trial has to show it.
    Core,
}

impl Accepted {
    /// What differs between a trial and the accepted Shape that is nearest to it.
    pub fn compared(&self, now: &Shape) -> Found {
        let mut best: Option<Found> = None;
        for known in &self.shapes {
            let mut found = differences(&known.shape, now);
            if self.several == Several::Core {
                // A core says what has to be there, and nothing of what else is.
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

    /// What has to be known of a core that holds nothing of what the agent did.
    pub fn empty_core(&self) -> Option<&'static str> {
        let empty = self.several == Several::Core && self.shapes.iter().all(|known| known.shape.done() == 0);
        empty.then_some(
            "the accepted core holds no call and no word of the agent, so any trial has it; with `snapshot: {several: set}` \
             in the case each trial's shape is kept",
        )
    }

    /// Why it is not what was accepted for this cell: it says of itself that it belongs to another, or was made otherwise.
    pub fn refused(&self, of: &Belongs<'_>) -> Option<String> {
        let model = |model: Option<&str>| model.map_or(String::new(), |model| format!(" with the model `{model}`"));
        if !same_case(&self.case, of.case) || self.harness != of.harness || self.model.as_deref() != of.model {
            return Some(format!(
                "it says that it was accepted for the case `{}` and `{}`{}, and lies where that of `{}` and `{}`{} is; \
                 accept it again if it belongs here",
                self.case,
                self.harness,
                model(self.model.as_deref()),
                of.case,
                of.harness,
                model(of.model),
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
            "the case keeps `text` or `several` otherwise than when it was accepted; accept it again with \
             `evals snapshot accept`"
                .to_owned()
        })
    }

    /// Takes these trials in, beside what is accepted already if `beside`, else in its place.
    #[must_use]
    pub fn with(mut self, shapes: &[Shape], beside: bool) -> Self {
        let of = u32::try_from(shapes.len()).unwrap_or(u32::MAX);
        let mut known = if beside { std::mem::take(&mut self.shapes) } else { Vec::new() };
        match self.several {
            Several::Set => shapes.iter().for_each(|shape| take_in(&mut known, shape, of)),
            Several::Core => {
                let before = known.iter().map(|it| it.shape.clone());
                let core = before
                    .chain(shapes.iter().cloned())
                    .reduce(|core, shape| Shape { items: in_both(&core.items, &shape.items), ..Shape::default() });
                let seen = known.first().map_or(0, |it| it.of).saturating_add(of);
                known = core
                    .map(|shape| Known { shape: Shape { items: shape.items, ..Shape::default() }, seen, of: seen })
                    .into_iter()
                    .collect();
            }
        }
        self.shapes = known;
        self
    }
}

/// A Shape that is known counts once more, and its usage may be what this one's is.
fn take_in(known: &mut Vec<Known>, shape: &Shape, of: u32) {
    match known.iter_mut().find(|it| it.shape.items == shape.items) {
        Some(same) => {
            let both = |a: Option<super::Range>, b: Option<super::Range>| match (a, b) {
                (Some(a), Some(b)) => Some(a.with(b)),
                (a, b) => a.or(b),
            };
            same.shape.tokens = both(same.shape.tokens, shape.tokens);
            same.shape.output_tokens = both(same.shape.output_tokens, shape.output_tokens);
            same.seen = same.seen.saturating_add(1);
            same.of = same.of.max(of).max(same.seen);
        }
        None => known.push(Known { shape: shape.clone(), seen: 1, of }),
    }
}

/// What two lists have in common, in order: equal items, and of steps the calls that both have.
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
