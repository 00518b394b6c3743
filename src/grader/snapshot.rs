//! `snapshot`: compares the trial with the accepted snapshot of its cell.

use std::collections::BTreeSet;
use std::path::PathBuf;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{CaseOf, Evidence, Finding, Findings, GraderSpec, Needs, Observer};
use crate::grade::{ComparedWith, Grade, Score};
use crate::ids::{ArmOf, SnapshotCellId};
use crate::judgement::tolerance;
use crate::reason_text;
use crate::snapshot::diff::{Difference, FoundDifferences, Sign};
use crate::snapshot::normalise::{Watching, shows_nothing};
use crate::snapshot::set::{Accepted, Belongs};
use crate::snapshot::settings::SnapshotSettings;
use crate::snapshot::store;
use crate::text::plural;
use crate::trace::{Body, Event, Lost, UnseenAction};
use crate::values::Fraction;

/// The maximum number of differences that are given in full.
const MAX_SENTENCES: usize = 5;
/// The maximum number of characters of a difference.
const LENGTH: usize = 400;
/// The maximum number of events in the evidence of the grade.
const EVIDENCE: usize = 100;

/// A comparison of the trial with the accepted snapshot of its case, harness and model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{min: 1}`")]
pub struct Snapshot {
    /// The share of calls and other items that must match the snapshot. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
    /// The folder of the case's snapshots, and the case's settings. Set when the case is read.
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
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
    fn depends_on_loss(&self, lost: Lost) -> bool {
        let usual = || SnapshotSettings::default().depends_on_loss(lost);
        self.place.as_ref().map_or_else(usual, |place| place.settings.depends_on_loss(lost))
    }

    fn needs() -> Needs {
        Needs { snapshots: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn depends_on_action(&self, _: &UnseenAction, _: Option<&str>) -> bool {
        true
    }

    fn refusal(&self) -> Option<String> {
        let zero = self.min == Some(Fraction::ZERO);
        zero.then(|| "checks nothing: with `min: 0` it always passes; write a share above 0".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(SnapshotObserver {
            wanted: self.clone(),
            watching: Watching::default(),
            not_shown: NotShown::default(),
        })
    }

    fn belongs_to(&mut self, case: &CaseOf<'_>) {
        self.place = Some(Place {
            folder: case.snapshots.to_owned(),
            settings: case.settings.clone(),
            case: case.id.to_owned(),
            accepts: false,
        });
    }

    fn mark_as_updating(&mut self) {
        if let Some(place) = &mut self.place {
            place.accepts = true;
        }
    }
}

struct SnapshotObserver {
    wanted: Snapshot,
    watching: Watching,
    not_shown: NotShown,
}

/// The calls that the agent did not show completely.
#[derive(Default)]
struct NotShown {
    /// The calls whose input the agent did not show.
    inputs: BTreeSet<u64>,
    /// The calls whose kind is unknown.
    kinds: BTreeSet<u64>,
}

#[async_trait]
impl Observer for SnapshotObserver {
    fn event(&mut self, event: &Event) {
        self.watching.event(event);
        if let Body::ToolCall(call) = &event.body {
            self.not_shown.inputs.extend(call.shown_input().is_none().then_some(event.seq));
            self.not_shown.kinds.extend(call.unknown_kind.then_some(event.seq));
        }
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        let (grade, snapshot) = self.grade(evidence);
        Findings(vec![Finding { snapshot, ..grade.into() }])
    }
}

impl SnapshotObserver {
    /// Returns the grade, and the snapshot if the trial was compared with one.
    fn grade(self, evidence: &Evidence<'_>) -> (Grade, Option<ComparedWith>) {
        let header = evidence.header;
        let Some(place) = &self.wanted.place else {
            let why = "could not be graded, because it belongs to no case with snapshots";
            return (Grade::ungraded(why), None);
        };
        if let Some(why) = shows_nothing(header, &place.settings) {
            return (Grade::ungraded(why), None);
        }
        // The shape comes first: the events are freed before the accepted snapshot is read, which bounds the memory.
        let now = self.watching.shape(header, &place.settings);
        match place.accepted(evidence) {
            Ok((accepted, digest)) => {
                let found = accepted.compared(&now);
                let grade = match self.not_shown.unknown_differences(&found) {
                    unknown if unknown > 0 && self.wanted.hangs_on(&found, unknown) => Grade::ungraded(
                        "whether the trial matches the accepted snapshot is unknown: the agent did not show the input or the \
                         kind of calls that differ",
                    ),
                    _ => self.wanted.grade(&found),
                };
                match place.accepts {
                    true => (taken(grade), Some(ComparedWith::OwnRun)),
                    false => (warned(grade, &accepted), Some(ComparedWith::Accepted(digest))),
                }
            }
            Err(why) if place.accepts => (taken(Grade::ungraded(why)), Some(ComparedWith::OwnRun)),
            Err(why) => (Grade::ungraded(why), None),
        }
    }
}

impl NotShown {
    /// Returns how many differences may be none: a call differs only in an input or a kind that the agent did not show.
    fn unknown_differences(&self, found: &FoundDifferences) -> usize {
        let is_of = |difference: &Difference, calls: &BTreeSet<u64>| {
            difference.events.first().is_some_and(|seq| calls.contains(seq))
        };
        let has_less = |difference: &&Difference| {
            difference.sign == Sign::Changed
                && is_of(difference, &self.inputs)
                && difference.lines.iter().all(|line| line.mark != '+')
        };
        let less = found.differences.iter().filter(has_less).count();
        // A call of an unknown kind is one more call, and the accepted one of its name and details is missing.
        let name = |difference: &Difference| difference.what.split_once(' ').map(|(_, name)| name.to_owned());
        let mut missing: Vec<&Difference> =
            found.differences.iter().filter(|difference| difference.sign == Sign::Removed).collect();
        let mut others = 0;
        for added in found.differences.iter().filter(|it| it.sign == Sign::Added && is_of(it, &self.kinds)) {
            let has = |removed: &Difference, text: &str| removed.lines.iter().any(|line| line.text == text);
            let is_less = |removed: &Difference| is_of(added, &self.inputs) || removed.lines.len() == added.lines.len();
            let same = missing.iter().position(|removed| {
                name(removed) == name(added)
                    && is_less(removed)
                    && added.lines.iter().all(|line| has(removed, &line.text))
            });
            if let Some(at) = same {
                missing.remove(at);
                others += 2;
            }
        }
        less + others
    }
}

impl Place {
    /// Returns the accepted snapshot for the cell of a trial and its digest, or the reason why there is none to compare with.
    fn accepted(&self, evidence: &Evidence<'_>) -> Result<(Accepted, String), String> {
        let arm = ArmOf::new(evidence.arm, evidence.model);
        let file = store::file(&self.folder, evidence.harness, arm).map_err(|error| error.to_string())?;
        let (accepted, digest) = store::read_with_digest(&file).map_err(|error| error.to_string())?.ok_or(
            "no snapshot is accepted for this case, harness and model; look at the run with `evals snapshot review`, or \
             accept it with `evals snapshot accept`",
        )?;
        let SnapshotSettings { text, several, .. } = self.settings;
        let id = SnapshotCellId::new(&self.case, evidence.harness, arm);
        match accepted.refused(&Belongs { id: &id, text, several }) {
            Some(why) => Err(format!("the snapshot cannot be compared: {why}")),
            None => Ok((accepted, digest)),
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
    /// Returns true if the grade depends on differences that may be none.
    fn hangs_on(&self, found: &FoundDifferences, unknown: usize) -> bool {
        let min = self.min.unwrap_or(Fraction::ONE).get();
        let all = found.same + found.differences.len();
        let reaches = |same: usize| tolerance::reaches(same as f64 / all.max(1) as f64, min);
        !reaches(found.same) && reaches(found.same + unknown)
    }

    fn grade(&self, found: &FoundDifferences) -> Grade {
        let different = found.differences.len();
        if different == 0 {
            return Grade::pass(format!(
                "the trial matches the accepted snapshot: {}",
                plural(found.same as u64, "item")
            ));
        }
        let share = found.same as f64 / (found.same + different) as f64;
        let sentences: Vec<String> =
            found.differences.iter().take(MAX_SENTENCES).map(|it| reason_text::short(&it.sentence(), LENGTH)).collect();
        let more = different.saturating_sub(MAX_SENTENCES);
        let more = if more > 0 { format!("; and {}", plural(more as u64, "more difference")) } else { String::new() };
        let events = found.differences.iter().flat_map(|it| it.events.iter().copied()).take(EVIDENCE);
        let passed = self.min.is_some_and(|min| tolerance::reaches(share, min.get()));
        let score = Score {
            // With what the trace lacks, other items may be the same.
            lacks: !passed,
            ..Score::new(
                Fraction::new(share).unwrap_or(Fraction::ZERO),
                passed,
                format!("{}{more}", sentences.join("; ")),
            )
        };
        Grade::Scored(score).pointing_at(events)
    }
}

#[cfg(test)]
mod tests {
    use crate::snapshot::diff::DifferentLine;

    use super::*;

    fn difference(sign: Sign, what: &str, lines: &[(char, &str)], events: &[u64]) -> Difference {
        let lines = lines.iter().map(|(mark, text)| DifferentLine { mark: *mark, text: (*text).to_owned() });
        Difference {
            sign,
            place: "step 1".to_owned(),
            what: what.to_owned(),
            lines: lines.collect(),
            events: events.to_vec(),
        }
    }

    #[test]
    fn differences_in_what_was_not_shown_are_unknown_and_others_are_not() {
        let not_shown = NotShown { inputs: BTreeSet::from([1]), kinds: BTreeSet::from([3]) };
        let less = || difference(Sign::Changed, "read Read", &[('-', "file_path: a")], &[1, 2]);
        let missing = || difference(Sign::Removed, "execute Bash", &[('-', "command: ls")], &[]);
        let added = || difference(Sign::Added, "other Bash", &[('+', "command: ls")], &[3, 4]);
        let snapshot = |min: Option<f64>| Snapshot { min: min.and_then(Fraction::new), place: None };
        for (differences, unknown, hangs) in [
            (vec![less()], 1, true),
            (vec![less(), missing(), added()], 3, true),
            // Another outcome, another tool, other details, and a call that was shown are known differences.
            (vec![difference(Sign::Changed, "read Read", &[('+', "@status: error")], &[1, 2])], 0, false),
            (vec![difference(Sign::Changed, "read Read", &[('-', "file_path: a")], &[5, 6])], 0, false),
            (vec![missing(), difference(Sign::Added, "other Run", &[('+', "command: ls")], &[3, 4])], 0, false),
            (vec![missing(), difference(Sign::Added, "other Bash", &[('+', "command: rm")], &[3, 4])], 0, false),
            (vec![less(), missing()], 1, false),
        ] {
            let found = FoundDifferences { differences, same: 2 };
            assert_eq!(not_shown.unknown_differences(&found), unknown, "{found:?}");
            assert_eq!(snapshot(None).hangs_on(&found, unknown), hangs, "{found:?}");
        }
        let found = FoundDifferences { differences: vec![less(), missing()], same: 2 };
        assert!(snapshot(Some(0.75)).hangs_on(&found, 1) && !snapshot(Some(0.5)).hangs_on(&found, 1));
    }
}
