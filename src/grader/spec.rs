//! The trait of every kind of grader: its needs, its named files, its validation, and its observer.

use std::path::Path;
use std::sync::Arc;

use super::{Calibrate, Needs, Observer};
use crate::expression::Wrong;
use crate::model_client::ModelName;
use crate::snapshot::settings::SnapshotSettings;
use crate::trace::{FollowedLink, Lost, StopReason, ToolKind, UnseenAction};
use crate::workspace::beyond_patch::MayDiffer;
use crate::yaml::wrong_part::WrongPart;

/// The specification of a grader of one kind, as written in a case.
pub trait GraderSpec {
    /// Returns the needs of graders of this kind.
    fn needs() -> Needs
    where
        Self: Sized;

    /// Returns true if a loss in the trace can change a grade of this kind.
    fn depends_on_loss(&self, lost: Lost) -> bool;

    /// Returns the skills that the grader requires, or forbids, by their names.
    fn asked_skills(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if the grader requires this end of the session, or one of several that include it.
    fn requires_end(&self, _reason: StopReason) -> bool {
        false
    }

    /// Returns true if a pass is final, whatever events follow: the grader passes by a find alone.
    fn only_finds(&self) -> bool {
        false
    }

    /// Returns true if what the grader finds in a text is also found in any longer text that holds it: its expressions have no
    /// assertions, such as `^`, or those hold whatever is added. `answer` is the final answer, if text can be missing only before
    /// and after it.
    fn finds_in_longer_texts(&self, _answer: Option<&str>) -> bool {
        true
    }

    /// Returns true if the grader passes by texts that a part of the final answer holds, whatever comes before that part.
    fn passes_by_part(&self, _part: &str) -> bool {
        false
    }

    /// Returns true if the grade depends on the final answer, so that a text of another speaker in it can change the grade.
    fn reads_answer(&self) -> bool {
        false
    }

    /// Returns true if the grade depends on no other text of the agent than the final answer.
    fn reads_answer_alone(&self) -> bool {
        false
    }

    /// Returns true if another outcome of a call than the trace shows could turn a fail, which events show, into another
    /// grade. A grader that counts attempted calls fails whatever their outcomes are.
    fn fails_by_outcome(&self) -> bool {
        true
    }

    /// Returns true if an action of the engine for the agent, which no call shows, can change a grade of this kind.
    fn depends_on_action(&self, _action: &UnseenAction, _workspace: Option<&str>) -> bool {
        false
    }

    /// Returns true if a call of this tool, or of its kind, can change a grade of this kind. The agent never shows calls of the
    /// tool.
    fn depends_on_tool(&self, _tool: &str, _kind: ToolKind) -> bool {
        false
    }

    /// Returns true if a grade of this kind depends on the name by which a call names a file that has two, because a link leads
    /// from one to the other.
    fn depends_on_path_name(&self, _link: &FollowedLink, _workspace: Option<&str>) -> bool {
        false
    }

    /// Makes an observer of one trial.
    fn watch(&self) -> Box<dyn Observer>;

    /// Returns why the grader cannot be applied: it checks nothing, or contradicts itself. The text continues
    /// after the grader's name.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// Returns why a part of the grader may be a mistake, which `check` reports. The text continues after the grader's name.
    fn warning(&self) -> Option<String> {
        None
    }

    /// Returns an invalid expression in the grader. It is reported at its own line and column.
    fn wrong_expression(&self) -> Option<WrongExpression<'_>> {
        None
    }

    /// Returns an invalid part of the grader. It is reported at its own place, so [`GraderSpec::refusal`] does
    /// not repeat it.
    fn wrong_part(&self) -> Option<WrongPart> {
        None
    }

    /// Returns the files that the grader reads or runs, as written.
    fn named_files(&self) -> Vec<&Path> {
        Vec::new()
    }

    /// Returns true if the named files are programs, which may load further files from their folder.
    fn runs_named_files(&self) -> bool {
        false
    }

    /// Makes relative paths relative to a folder.
    fn count_from(&mut self, _folder: &Path) {}

    /// Returns a required file that cannot be used; paths are relative to this folder. The case is refused.
    fn unusable_file(&self, _folder: &Path) -> Option<WrongPart> {
        None
    }

    /// Returns a named file that does not exist; paths are relative to this folder. `check` refuses the case;
    /// in a run the grader is ungraded.
    fn missing_file(&self, _folder: &Path) -> Option<WrongPart> {
        None
    }

    /// Returns true if the grader can pass because a file that its own settings name is absent from the workspace. This is
    /// unknown of the files that a command reads: `Needs::commands` states that the kind runs commands.
    fn passes_on_absence(&self) -> bool;

    /// Returns true if the grader can pass by what lies in these places of a rebuilt workspace.
    fn passes_by(&self, _workspace: &Path, _places: &MayDiffer) -> bool {
        false
    }

    /// Returns true if the grade depends on nothing that lies in these places of the workspace.
    fn lies_outside(&self, _workspace: &Path, _places: &[String]) -> bool {
        false
    }

    /// Returns true if the grader only checks that what works before the agent's work still works after it.
    fn only_guards(&self) -> bool {
        false
    }

    /// Returns the judge models that the grader names.
    fn judges(&self) -> &[ModelName] {
        &[]
    }

    /// Returns the file of the calibration, if the grader calls a judge model.
    fn calibration(&self) -> Option<&Path> {
        None
    }

    /// Returns the grader for `evals calibrate`, if it calls a judge model.
    fn calibrated(&self) -> Option<Arc<dyn Calibrate>> {
        None
    }

    /// Sets the name and folder of a named grader in `graders/`.
    fn is_named(&mut self, _folder: &Path, _name: &str) {}

    /// Sets the case that the grader belongs to.
    fn belongs_to(&mut self, _case: &CaseOf<'_>) {}

    /// Marks the grader as updating: the run accepts new snapshots.
    fn mark_as_updating(&mut self) {}
}

/// The facts about its case that a grader may use.
#[derive(Debug, Clone, Copy)]
pub struct CaseOf<'a> {
    pub id: &'a str,
    /// The folder of its snapshots.
    pub snapshots: &'a Path,
    pub settings: &'a SnapshotSettings,
}

/// An invalid expression.
#[derive(Debug, Clone, Copy)]
pub struct WrongExpression<'a> {
    /// The key of the grader that contains the expression.
    pub key: &'static str,
    pub text: &'a str,
    /// The error.
    pub wrong: &'a Wrong,
}
