//! What came of comparing the cells of a run with what is accepted for them, for reports and for programs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Shape;
use super::diff::Difference;
use super::set::{Accepted, Belongs, Several};
use crate::snapshot::settings::SnapshotText;

/// How a cell stands to its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Every trial did what is accepted.
    Same,
    /// Nothing is accepted yet.
    New,
    /// A trial did something else.
    Changed,
    /// Something is accepted, and no trial could be compared with it.
    Missing,
}

impl State {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            State::Same => "same",
            State::New => "new",
            State::Changed => "changed",
            State::Missing => "missing",
        }
    }
}

/// A cell beside its snapshot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How it stands.
    pub state: State,
    /// The file of the snapshot.
    pub file: String,
    /// Trials that could be compared.
    pub trials: u32,
    /// Those that did what is accepted.
    pub matching: u32,
    /// What the others did, trials that did the same together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<Differing>,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether it counts as a difference.
    pub differs: bool,
    /// Accepted by the run itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
    /// Nothing of what the agent does could ever differ: its harness shows no calls and texts are left out, or nothing
    /// is common to what is accepted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_nothing: bool,
    /// Somebody has looked at it and said no.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
}

/// Trials that differ in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Differing {
    /// Which, as they are named in the run.
    pub trials: Vec<String>,
    /// From the accepted Shape that is nearest.
    pub differences: Vec<Difference>,
}

/// A cell: what it is called, and what its trials did.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    /// Id of the case.
    pub case: String,
    /// Name of the harness.
    pub harness: String,
    /// The model asked for.
    pub model: Option<String>,
    /// What the case says of its snapshots.
    pub text: SnapshotText,
    /// Likewise.
    pub several: Several,
    /// The trials that can be compared, by their names in the run.
    pub shapes: Vec<(String, Shape)>,
    /// Why others cannot, each by its name.
    pub passed_over: Vec<PassedOver>,
}

/// A trial that cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassedOver {
    /// Its name.
    pub name: String,
    /// Why, as it goes on from the name.
    pub why: String,
    /// Whether that is because there is nothing of it to be seen.
    pub shows_nothing: bool,
    /// Whether that is because somebody changed what was judged.
    pub changed: bool,
}

impl Cell {
    /// Its name, as it can be filtered by.
    pub fn name(&self) -> String {
        name(&self.case, &self.harness, self.model.as_deref())
    }

    /// Compares it with what is accepted for it. That a snapshot is new counts as a difference where it was asked for.
    pub fn compared(&self, accepted: Option<&Accepted>, file: String, asked: bool) -> Compared {
        let mut compared = Compared {
            case: self.case.clone(),
            harness: self.harness.clone(),
            model: self.model.clone(),
            state: State::Same,
            file,
            trials: u32::try_from(self.shapes.len()).unwrap_or(u32::MAX),
            matching: 0,
            differing: Vec::new(),
            note: None,
            differs: false,
            accepted: false,
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

    /// What a snapshot of it has to say of itself.
    fn belongs(&self) -> Belongs<'_> {
        let (text, several) = (self.text, self.several);
        Belongs { case: &self.case, harness: &self.harness, model: self.model.as_deref(), text, several }
    }

    /// Why trials cannot be compared, those with one reason together.
    fn passed_over(&self) -> Option<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for one in &self.passed_over {
            match reasons.iter_mut().find(|it| it.0 == one.why) {
                Some(known) => known.1.push(&one.name),
                None => reasons.push((&one.why, vec![&one.name])),
            }
        }
        let told: Vec<String> = reasons.iter().map(|(why, names)| format!("{} {why}", names.join(", "))).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    /// What of these trials is no part of what is accepted for them, in words: a core leaves out what they do not share.
    pub fn left_out(&self, accepted: &Accepted) -> Option<String> {
        let core = accepted.shapes.first().filter(|_| accepted.several == Several::Core)?.shape.done();
        let most = self.shapes.iter().map(|(_, shape)| shape.done()).max().unwrap_or(0);
        (core < most).then(|| {
            format!("the core holds {core} of the {most} calls and words that a trial has; the rest is not compared")
        })
    }

    /// What is accepted from now on.
    pub fn accepted(&self, before: Option<Accepted>, beside: bool) -> Accepted {
        let shapes: Vec<Shape> = self.shapes.iter().map(|(_, shape)| shape.clone()).collect();
        let same_kind = before.filter(|it| !it.outdated && (it.text, it.several) == (self.text, self.several));
        let blank = Accepted { text: self.text, several: self.several, ..Accepted::default() };
        let base = same_kind.filter(|_| beside).unwrap_or(blank);
        let (case, harness, model) = (self.case.clone(), self.harness.clone(), self.model.clone());
        Accepted { case, harness, model, ..base }.with(&shapes, beside)
    }
}

impl Compared {
    /// Takes over what has to be known of what is accepted.
    pub fn holds(&mut self, accepted: &Accepted) {
        if let Some(why) = accepted.empty_core() {
            self.shows_nothing = true;
            self.tell(why.to_owned());
        }
    }

    /// Adds to what has to be known.
    pub fn tell(&mut self, what: String) {
        self.note = Some(match self.note.take() {
            Some(note) => format!("{note}; {what}"),
            None => what,
        });
    }
}

/// A cell's name: case, harness and, where one was asked for, model.
pub fn name(case: &str, harness: &str, model: Option<&str>) -> String {
    match model {
        Some(model) => format!("{case}/{harness}/{model}"),
        None => format!("{case}/{harness}"),
    }
}

/// Where two trials differ in the same way, their events are at other places all the same.
fn same_differences(one: &[Difference], other: &[Difference]) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(a, b)| (a.sign, &a.place, &a.what, &a.lines) == (b.sign, &b.place, &b.what, &b.lines))
}
