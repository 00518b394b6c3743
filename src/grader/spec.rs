//! The trait of every kind of grader: what a case says of it, which files it names, and who observes a trial for it.

use std::path::Path;

use super::{Needs, Observer, Pairwise};
use crate::expression::Wrong;
use crate::judge::rubric::Rubric;
use crate::model_client::ModelName;
use crate::snapshot::settings::SnapshotSettings;
use crate::trace::Lost;
use crate::yaml::wrong_part::WrongPart;

/// A grader of one kind, as a case specifies it.
pub(super) trait GraderSpec {
    /// What every grader of this kind needs.
    fn needs() -> Needs
    where
        Self: Sized;

    /// Returns true if what is missing in a Trace can change a grade of this kind.
    fn misses(&self, lost: Lost) -> bool {
        lost == Lost::Line
    }

    /// Returns true if no further event can turn a pass into another grade: it passes by what it found alone.
    fn only_finds(&self) -> bool {
        false
    }

    /// Begins to observe one trial.
    fn watch(&self) -> Box<dyn Observer>;

    /// Why it cannot be applied: it checks nothing, or contradicts itself. The text continues after the grader's name.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// An expression in it that cannot be used. It is reported at its own line and column.
    fn wrong_expression(&self) -> Option<WrongExpression<'_>> {
        None
    }

    /// A part of it that cannot be used. It is reported at its own place, so [`GraderSpec::refusal`] does not repeat it.
    fn wrong_part(&self) -> Option<WrongPart> {
        None
    }

    /// The files that it reads or runs, as they are written.
    fn named_files(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Makes its relative paths count from a folder.
    fn count_from(&mut self, _folder: &Path) {}

    /// The file that it cannot do without and that cannot be used, if its paths count from this folder. The case is refused.
    fn unusable_file(&self, _folder: &Path) -> Option<WrongPart> {
        None
    }

    /// The file that it names and that does not exist, if its paths count from this folder. `check` refuses the case; in a
    /// run the grader is ungraded.
    fn missing_file(&self, _folder: &Path) -> Option<WrongPart> {
        None
    }

    /// Returns true if it passes because of something that it does not find in the workspace.
    fn passes_on_absence(&self) -> bool {
        false
    }

    /// The models that it names as judges.
    fn judges(&self) -> &[ModelName] {
        &[]
    }

    /// The file of its calibration, if it asks a model.
    fn calibration(&self) -> Option<&Path> {
        None
    }

    /// The grader as `evals calibrate` takes it, if it asks a model.
    fn calibrated(&self) -> Option<Calibrated> {
        None
    }

    /// Its name and folder in `graders/`, if it is a named grader.
    fn is_named(&mut self, _folder: &Path, _name: &str) {}

    /// The case that it judges.
    fn belongs_to(&mut self, _case: &CaseOf<'_>) {}

    /// The run accepts what its trials do as their snapshots.
    fn run_accepts(&mut self) {}
}

/// What a grader can know of its case.
#[derive(Debug, Clone, Copy)]
pub struct CaseOf<'a> {
    /// The case's id.
    pub id: &'a str,
    /// The folder of its snapshots.
    pub snapshots: &'a Path,
    /// What the case says about its snapshots.
    pub settings: &'a SnapshotSettings,
}

/// A grader that asks a model, as `evals calibrate` takes it.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "there is one of them")]
pub enum Calibrated {
    /// It judges by criteria.
    Rubric(Rubric),
    /// It compares with a reference.
    Pairwise(Pairwise),
}

/// An expression that cannot be used.
#[derive(Debug, Clone, Copy)]
pub struct WrongExpression<'a> {
    /// The key of the grader under which it stands.
    pub key: &'static str,
    /// The expression.
    pub text: &'a str,
    /// What is wrong with it.
    pub wrong: &'a Wrong,
}
