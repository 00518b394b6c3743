//! What a kind of grader needs besides the events of a trial, and the grade where that is missing.

use super::Evidence;
use crate::grade::Grade;

/// What graders of one kind need besides the events of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// The harness shows tool calls. Without it every grader of the kind is ungraded.
    pub trace: bool,
    /// The agent can ask for permission, at least in a part of the session. Without it every grader of the kind is
    /// ungraded.
    pub interaction: bool,
    /// Each call is handed to the observer together with its result.
    pub calls: bool,
    /// What it needs of the workspace.
    pub workspace: Workspace,
    /// It runs commands.
    pub commands: bool,
    /// It asks a model.
    pub model: bool,
    /// It compares with the accepted snapshots of its case.
    pub snapshots: bool,
}

/// What a kind of grader needs of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    /// Nothing.
    Nothing,
    /// The change that the trial made. Without it the grader is ungraded.
    Change,
    /// Its files. Without them the grader is ungraded.
    Files,
    /// Its files, if they still exist.
    FilesIfThere,
}

impl Needs {
    /// The events are enough.
    pub const NONE: Self = Self {
        trace: false,
        interaction: false,
        calls: false,
        workspace: Workspace::Nothing,
        commands: false,
        model: false,
        snapshots: false,
    };

    /// Returns true if it reads files of the workspace.
    pub fn reads_files(&self) -> bool {
        matches!(self.workspace, Workspace::Files | Workspace::FilesIfThere)
    }

    /// Returns true if it judges what the trial left in the workspace, not what was said or called.
    pub fn judges_workspace(&self) -> bool {
        self.workspace != Workspace::Nothing
    }

    /// The grade if something that it needs is missing from the evidence.
    pub(super) fn missing(&self, evidence: &Evidence<'_>) -> Option<Grade> {
        let capabilities = evidence.header.capabilities;
        let ungraded = |why: &str| Some(Grade::ungraded(format!("could not be judged, because {why}")));
        if self.trace && !capabilities.tracing {
            return ungraded("the harness shows no tool calls");
        }
        // What the agent asked for before it changed into a mode in which it does not ask is evidence.
        if self.interaction && !capabilities.interaction && evidence.header.unattended_mode.is_none() {
            return ungraded("the harness has no way to ask for permission");
        }
        match self.workspace {
            Workspace::Files => evidence.files().err(),
            Workspace::Change => evidence.known_change().err(),
            Workspace::Nothing | Workspace::FilesIfThere => None,
        }
    }
}
