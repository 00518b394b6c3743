//! The needs of a kind of grader besides the events of a trial, and the grade if they are not met.

use super::Evidence;
use crate::grade::Grade;

/// The needs of graders of one kind besides the events of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// True if the harness must show tool calls. Otherwise every grader of the kind is ungraded.
    pub trace: bool,
    /// True if the agent must be able to ask for permission, at least in a part of the session. Otherwise every
    /// grader of the kind is ungraded.
    pub interaction: bool,
    /// True if each call is passed to the observer together with its result.
    pub calls: bool,
    /// The part of the workspace that the kind needs.
    pub workspace: Workspace,
    /// True if the kind runs commands.
    pub commands: bool,
    /// True if the kind calls a judge model.
    pub model: bool,
    /// True if the kind compares with the accepted snapshots of the case.
    pub snapshots: bool,
}

/// The part of the workspace that a kind of grader needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    /// The kind does not need the workspace.
    Nothing,
    /// The change that the trial made. Without it, the grader is ungraded.
    Change,
    /// The files. Without them, the grader is ungraded.
    Files,
    /// The files, if they still exist.
    FilesIfThere,
}

impl Needs {
    /// Returns true if the kind compares its text with the trace, and not with the files of the workspace or with what its
    /// own command finds.
    pub fn reads_the_trace(&self) -> bool {
        !self.commands && self.workspace != Workspace::Files
    }

    /// The needs of a kind that needs nothing besides the events.
    pub const NONE: Self = Self {
        trace: false,
        interaction: false,
        calls: false,
        workspace: Workspace::Nothing,
        commands: false,
        model: false,
        snapshots: false,
    };

    /// Returns true if the kind reads files of the workspace.
    pub fn reads_files(&self) -> bool {
        matches!(self.workspace, Workspace::Files | Workspace::FilesIfThere)
    }

    /// Returns true if the kind grades the state of the workspace after the trial, instead of messages or calls.
    pub fn grades_workspace(&self) -> bool {
        self.workspace != Workspace::Nothing
    }

    /// Returns an ungraded grade if evidence that the kind needs is missing.
    pub(super) fn missing(&self, evidence: &Evidence<'_>) -> Option<Grade> {
        let capabilities = evidence.header.capabilities;
        let ungraded = |why: &str| Some(Grade::ungraded(format!("could not be graded, because {why}")));
        if self.trace && !capabilities.tracing {
            return ungraded("the harness shows no tool calls");
        }
        // Requests made before the agent switched to a mode in which it does not ask are evidence.
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
