//! `snapshot`: whether the trial did what is accepted for its cell.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Body, Evidence, Judge, words};
use crate::case::SnapshotSettings;
use crate::grade::{Grade, Score};
use crate::snapshot::differ::Found;
use crate::snapshot::normalise::Watching;
use crate::snapshot::store;
use crate::trace::Event;
use crate::values::Fraction;

/// Differences that are told in full, at most.
const TOLD: usize = 5;
/// Characters of one of them, at most.
const LENGTH: usize = 400;
/// Events that the grade points at, at most.
const EVIDENCE: usize = 100;

/// The trial did what is accepted for its case, harness and model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Snapshot {
    /// Passes when at least this share of calls and other items is as accepted; all of them where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
    /// The folder of the case's snapshots, and what the case says of them; known once the case is read.
    #[serde(skip)]
    #[schemars(skip)]
    place: Option<(PathBuf, SnapshotSettings)>,
}

impl Snapshot {
    /// Tells where the snapshots of its case lie.
    pub fn lies_in(&mut self, folder: PathBuf, settings: SnapshotSettings) {
        self.place = Some((folder, settings));
    }
}

impl Body for Snapshot {
    fn refusal(&self) -> Option<String> {
        let zero = self.min == Some(Fraction::ZERO);
        zero.then(|| "checks nothing: with `min: 0` it always passes; write a share above 0".to_owned())
    }

    fn judge(&self) -> Option<Box<dyn Judge>> {
        Some(Box::new(SnapshotJudge { wanted: self.clone(), watching: Watching::default() }))
    }
}

struct SnapshotJudge {
    wanted: Snapshot,
    watching: Watching,
}

impl Judge for SnapshotJudge {
    fn event(&mut self, event: &Event) {
        self.watching.event(event);
    }

    fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Grade {
        if let Some(ungraded) = evidence.without_tracing() {
            return ungraded;
        }
        let header = evidence.header;
        let Some((folder, settings)) = &self.wanted.place else {
            return Grade::ungraded("could not be judged, because it belongs to no case that could have snapshots");
        };
        let file = match store::file(folder, evidence.harness, evidence.model) {
            Ok(file) => file,
            Err(error) => return Grade::ungraded(error.to_string()),
        };
        let accepted = match store::read(&file) {
            Ok(Some(accepted)) => accepted,
            Ok(None) => {
                return Grade::ungraded(
                    "no snapshot is accepted for this case, harness and model; look at the run with \
                     `evals snapshot review`, or accept it with `evals snapshot accept`",
                );
            }
            Err(error) => return Grade::ungraded(error.to_string()),
        };
        if (accepted.text, accepted.several) != (settings.text, settings.several) {
            return Grade::ungraded(
                "the snapshot was accepted when the case kept `text` or `several` otherwise; accept it again with \
                 `evals snapshot accept`",
            );
        }
        let found = accepted.compared(&self.watching.shape(header, settings));
        self.wanted.grade(&found)
    }
}

impl Snapshot {
    fn grade(&self, found: &Found) -> Grade {
        let different = found.differences.len();
        if different == 0 {
            return Grade::pass(format!("it did what is accepted: {}", words::count(found.same as u64, "item")));
        }
        let share = found.same as f64 / (found.same + different) as f64;
        let told: Vec<String> =
            found.differences.iter().take(TOLD).map(|it| words::short(&it.sentence(), LENGTH)).collect();
        let more = different.saturating_sub(TOLD);
        let more =
            if more > 0 { format!("; and {}", words::count(more as u64, "more difference")) } else { String::new() };
        let events = found.differences.iter().flat_map(|it| it.events.iter().copied()).take(EVIDENCE);
        let score = Score {
            value: Fraction::new(share).unwrap_or(Fraction::ZERO),
            // Sums of shares are not exact.
            passed: self.min.is_some_and(|min| share >= min.get() - 1e-9),
            reason: format!("{}{more}", told.join("; ")),
            evidence: Vec::new(),
            broken: Vec::new(),
        };
        Grade::Scored(score).pointing_at(events)
    }
}
