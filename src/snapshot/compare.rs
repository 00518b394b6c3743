//! The results of comparing the cells of a run with their accepted snapshots, for reports and programs.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::Shape;
use super::diff::Difference;
use super::set::{Accepted, Belongs, Several};
use crate::ids::SnapshotCellId;
use crate::snapshot::settings::SnapshotText;
use crate::word::word;

/// The state of a cell compared with its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum State {
    /// Every trial matches the snapshot.
    Same,
    /// The cell has no snapshot yet.
    New,
    /// A trial differs from the snapshot.
    Changed,
    /// There is a snapshot, and no trial could be compared with it.
    Missing,
}

word!(State);

/// The comparison of a cell with its snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compared {
    /// Case, harness and arm.
    #[serde(flatten)]
    pub id: SnapshotCellId,
    /// The outcome of the comparison.
    pub state: State,
    /// The snapshot file.
    pub file: String,
    /// Trials that could be compared.
    pub trials: u32,
    /// Trials that could not be compared; the note says why. Absent if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub passed_over: u32,
    /// Trials that match the snapshot.
    pub matching: u32,
    /// The differences of the other trials; equal trials are grouped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<Differing>,
    /// The reason why trials could not be compared, and other remarks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// True if the cell counts as different.
    pub differs: bool,
    /// True if the run itself accepted the cell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
    /// True if the run accepted the cell earlier, and its snapshot file was removed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub file_removed: bool,
    /// True if no difference of the agent could ever be visible: its harness shows no calls and texts are left
    /// out, or the core of the snapshot is empty.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_nothing: bool,
    /// True if a person has rejected the difference.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Trials with the same difference from the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Differing {
    /// The names of the trials in the run.
    pub trials: Vec<String>,
    /// The differences from the nearest accepted shape.
    pub differences: Vec<Difference>,
}

/// A cell with the shapes of its trials.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    pub id: SnapshotCellId,
    /// The form in which texts are kept in snapshots.
    pub text: SnapshotText,
    /// The method of combining several trials.
    pub several: Several,
    /// The trials that can be compared, by their names in the run.
    pub shapes: Vec<(String, Shape)>,
    /// The trials that cannot be compared, with the reasons.
    pub passed_over: Vec<PassedOver>,
}

/// A trial that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// The trial's name in the run.
    pub name: String,
    /// The reason; the text continues after the name.
    pub why: String,
    /// True if the reason is that nothing of the trial is visible.
    pub shows_nothing: bool,
    /// True if the reason is that files of the trial were changed after it was graded.
    pub changed: bool,
}

impl Cell {
    /// Compares the cell with its snapshot. A new cell counts as different only if that was requested.
    pub fn compared(&self, accepted: Option<&Accepted>, file: String, asked: bool) -> Compared {
        let mut compared = Compared {
            id: self.id.clone(),
            state: State::Same,
            file,
            trials: u32::try_from(self.shapes.len()).unwrap_or(u32::MAX),
            passed_over: u32::try_from(self.passed_over.len()).unwrap_or(u32::MAX),
            matching: 0,
            differing: Vec::new(),
            note: None,
            differs: false,
            accepted: false,
            file_removed: false,
            shows_nothing: self.shapes.is_empty() && self.passed_over.iter().any(|it| it.shows_nothing),
            rejected: false,
        };
        let passed_over = self.passed_over();
        let Some(accepted) = accepted else {
            (compared.state, compared.note) = (State::New, passed_over);
            compared.differs = asked && compared.trials > 0;
            return compared;
        };
        compared.note = passed_over;
        if self.shapes.is_empty() {
            compared.state = State::Missing;
            return compared;
        }
        if let Some(why) = accepted.refused(&self.belongs()) {
            compared.note = Some(why);
            (compared.state, compared.differs) = (State::Changed, true);
            return compared;
        }
        compared.holds(accepted);
        for (trial, shape) in &self.shapes {
            let found = accepted.compared(shape);
            if found.differences.is_empty() {
                compared.matching += 1;
                continue;
            }
            let same = compared.differing.iter_mut().find(|it| same_differences(&it.differences, &found.differences));
            match same {
                Some(same) => same.trials.push(trial.clone()),
                None => {
                    compared.differing.push(Differing { trials: vec![trial.clone()], differences: found.differences })
                }
            }
        }
        if !compared.differing.is_empty() {
            (compared.state, compared.differs) = (State::Changed, true);
        }
        compared
    }

    /// Returns the identity that a snapshot of the cell must have.
    fn belongs(&self) -> Belongs<'_> {
        Belongs { id: &self.id, text: self.text, several: self.several }
    }

    /// Returns why trials cannot be compared, grouped by reason.
    fn passed_over(&self) -> Option<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for one in &self.passed_over {
            match reasons.iter_mut().find(|it| it.0 == one.why) {
                Some(known) => known.1.push(&one.name),
                None => reasons.push((&one.why, vec![&one.name])),
            }
        }
        let parts: Vec<String> = reasons.iter().map(|(why, names)| format!("{} {why}", names.join(", "))).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Returns a text about the parts that an accepted core omits, because the trials do not share them.
    pub fn left_out(&self, accepted: &Accepted) -> Option<String> {
        let core = accepted.shapes.first().filter(|_| accepted.several == Several::Core)?.shape.done();
        let most = self.shapes.iter().map(|(_, shape)| shape.done()).max().unwrap_or(0);
        (core < most).then(|| {
            format!("the core contains {core} of up to {most} calls and texts of a trial; the rest is not compared")
        })
    }

    /// Returns the new accepted snapshot.
    pub fn accepted(&self, before: Option<Accepted>, beside: bool) -> Accepted {
        let shapes: Vec<Shape> = self.shapes.iter().map(|(_, shape)| shape.clone()).collect();
        let same_kind = before.filter(|it| !it.outdated && (it.text, it.several) == (self.text, self.several));
        let blank = Accepted { text: self.text, several: self.several, ..Accepted::default() };
        let base = same_kind.filter(|_| beside).unwrap_or(blank);
        Accepted { id: self.id.clone(), ..base }.with(&shapes, beside)
    }
}

impl Compared {
    /// Returns true if the run accepted the cell, or the cell was the same as the accepted snapshot.
    pub fn is_as_accepted(&self) -> bool {
        !self.differs && (self.accepted || self.state == State::Same)
    }

    /// Adopts the notes of an accepted snapshot.
    pub fn holds(&mut self, accepted: &Accepted) {
        if let Some(why) = accepted.empty_core() {
            self.shows_nothing = true;
            self.tell(why.to_owned());
        }
    }

    /// Adds a note.
    pub fn tell(&mut self, what: String) {
        self.note = Some(match self.note.take() {
            Some(note) => format!("{note}; {what}"),
            None => what,
        });
    }
}

/// Returns true if the differences are equal; the positions of their events may differ.
fn same_differences(one: &[Difference], other: &[Difference]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(a, b)| (a.sign, &a.place, &a.what, &a.lines) == (b.sign, &b.place, &b.what, &b.lines))
}
