//! `snapshot`: compares the trial with the accepted snapshot of its cell.

use std::path::PathBuf;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseOf, Evidence, Findings, GraderSpec, Needs, Observer, text};
use crate::grade::{Grade, Score};
use crate::ids::ArmOf;
use crate::judgement::tolerance;
use crate::snapshot::diff::FoundDifferences;
use crate::snapshot::normalise::{Watching, shows_nothing};
use crate::snapshot::set::{Accepted, Belongs};
use crate::snapshot::settings::SnapshotSettings;
use crate::snapshot::store;
use crate::text::plural;
use crate::trace::{Event, UnseenAction};
use crate::values::Fraction;

/// The maximum number of differences that are given in full.
const TOLD: usize = 5;
/// The maximum number of characters of a difference.
const LENGTH: usize = 400;
/// The maximum number of events in the evidence of the grade.
const EVIDENCE: usize = 100;

/// A comparison of the trial with the accepted snapshot of its case, harness and model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Snapshot {
    /// The share of calls and other items that must match the snapshot. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
    /// The folder of the case's snapshots, and the case's settings. Set when the case is read.
    #[serde(skip)]
    #[schemars(skip)]
    place: Option<Place>,
}

/// The case's snapshot settings.
#[derive(Debug, Clone, PartialEq)]
struct Place {
    /// The folder of the snapshots.
    folder: PathBuf,
    /// The settings for the content of snapshots.
    settings: SnapshotSettings,
    /// Id of the case.
    case: String,
    /// True if the run accepts new snapshots.
    accepts: bool,
}

impl GraderSpec for Snapshot {
    fn needs() -> Needs {
        Needs { snapshots: true, ..Needs::NONE }
    }

    fn misses_action(&self, _: &UnseenAction, _: Option<&str>) -> bool {
        true
    }

    fn refusal(&self) -> Option<String> {
        let zero = self.min == Some(Fraction::ZERO);
        zero.then(|| "checks nothing: with `min: 0` it always passes; write a share above 0".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(SnapshotJudge { wanted: self.clone(), watching: Watching::default() })
    }

    fn belongs_to(&mut self, case: &CaseOf<'_>) {
        self.place = Some(Place {
            folder: case.snapshots.to_owned(),
            settings: case.settings.clone(),
            case: case.id.to_owned(),
            accepts: false,
        });
    }

    fn run_accepts(&mut self) {
        if let Some(place) = &mut self.place {
            place.accepts = true;
        }
    }
}

struct SnapshotJudge {
    wanted: Snapshot,
    watching: Watching,
}

#[async_trait]
impl Observer for SnapshotJudge {
    fn event(&mut self, event: &Event) {
        self.watching.event(event);
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl SnapshotJudge {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let header = evidence.header;
        let Some(place) = &self.wanted.place else {
            return Grade::ungraded("could not be judged, because it belongs to no case with snapshots");
        };
        if let Some(why) = shows_nothing(header, &place.settings) {
            return Grade::ungraded(why);
        }
        // The shape comes first: what it is made of is freed before the accepted snapshot is read.
        let now = self.watching.shape(header, &place.settings);
        match place.accepted(evidence) {
            Ok(accepted) => {
                let grade = self.wanted.grade(&accepted.compared(&now));
                if place.accepts { taken(grade) } else { warned(grade, &accepted) }
            }
            Err(why) if place.accepts => taken(Grade::ungraded(why)),
            Err(why) => Grade::ungraded(why),
        }
    }
}

impl Place {
    /// Returns the accepted snapshot for the cell of a trial, or the reason why there is none to compare with.
    fn accepted(&self, evidence: &Evidence<'_>) -> Result<Accepted, String> {
        let arm = ArmOf::new(evidence.arm, evidence.model);
        let file = store::file(&self.folder, evidence.harness, arm).map_err(|error| error.to_string())?;
        let accepted = store::read(&file).map_err(|error| error.to_string())?.ok_or(
            "no snapshot is accepted for this case, harness and model; look at the run with `evals snapshot review`, or \
             accept it with `evals snapshot accept`",
        )?;
        let SnapshotSettings { text, several, .. } = self.settings;
        let (case, harness) = (&self.case, evidence.harness);
        match accepted.refused(&Belongs { case, harness, arm, text, several }) {
            Some(why) => Err(format!("the snapshot cannot be compared: {why}")),
            None => Ok(accepted),
        }
    }
}

/// Returns the grade of a trial that its own run accepts: it matches from now on.
fn taken(grade: Grade) -> Grade {
    let (reason, evidence) = match grade {
        Grade::Scored(score) if score.passed && score.evidence.is_empty() => return Grade::Scored(score),
        Grade::Scored(Score { reason, evidence, .. }) => (reason, evidence),
        Grade::Ungraded { reason } => (reason, Vec::new()),
    };
    Grade::pass(format!("the run accepts the new snapshot (`--snapshot update`); before: {reason}"))
        .pointing_at(evidence)
}

/// Adds warnings about the accepted snapshot to the reason.
fn warned(grade: Grade, accepted: &Accepted) -> Grade {
    match (grade, accepted.empty_core()) {
        (Grade::Scored(score), Some(why)) => {
            Grade::Scored(Score { reason: format!("{}; but {why}", score.reason), ..score })
        }
        (grade, _) => grade,
    }
}

impl Snapshot {
    fn grade(&self, found: &FoundDifferences) -> Grade {
        let different = found.differences.len();
        if different == 0 {
            return Grade::pass(format!(
                "the trial matches the accepted snapshot: {}",
                plural(found.same as u64, "item")
            ));
        }
        let share = found.same as f64 / (found.same + different) as f64;
        let told: Vec<String> =
            found.differences.iter().take(TOLD).map(|it| text::short(&it.sentence(), LENGTH)).collect();
        let more = different.saturating_sub(TOLD);
        let more = if more > 0 { format!("; and {}", plural(more as u64, "more difference")) } else { String::new() };
        let events = found.differences.iter().flat_map(|it| it.events.iter().copied()).take(EVIDENCE);
        let passed = self.min.is_some_and(|min| tolerance::reaches(share, min.get()));
        let score = Score {
            // With what the trace lacks, other items may be the same.
            lacks: !passed,
            ..Score::new(Fraction::new(share).unwrap_or(Fraction::ZERO), passed, format!("{}{more}", told.join("; ")))
        };
        Grade::Scored(score).pointing_at(events)
    }
}
