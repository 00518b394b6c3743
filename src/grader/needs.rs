//! What a kind of grader needs besides the events of a trial, and the grade if that is missing.

use super::Evidence;
use crate::grade::Grade;

/// The needs of graders of one kind besides the events of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Whether the harness must show tool calls. Otherwise every grader of the kind is ungraded.
    pub trace: bool,
    /// Whether the agent must be able to ask for permission, at least in a part of the session. Otherwise every
    /// grader of the kind is ungraded.
    pub interaction: bool,
    /// Whether each call is passed to the observer together with its result.
    pub calls: bool,
    /// The part of the workspace that the kind needs.
    pub workspace: Workspace,
    /// Whether the kind runs commands.
    pub commands: bool,
    /// Whether the kind calls a judge model.
    pub model: bool,
    /// Whether the kind compares with the accepted snapshots of the case.
    pub snapshots: bool,
}

/// The part of the workspace that a kind of grader needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workspace {
    /// Nothing.
    Nothing,
    /// The change that the trial made. Without it, the grader is ungraded.
    Change,
    /// The files. Without them, the grader is ungraded.
    Files,
    /// The files, if they still exist.
    FilesIfThere,
}

impl Needs {
    /// Nothing besides the events.
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

    /// Returns true if the kind judges what the trial left in the workspace, instead of messages or calls.
    pub fn judges_workspace(&self) -> bool {
        self.workspace != Workspace::Nothing
    }

    /// Returns the grade if something that the kind needs is missing from the evidence.
    pub(super) fn missing(&self, evidence: &Evidence<'_>) -> Option<Grade> {
        let capabilities = evidence.header.capabilities;
        let ungraded = |why: &str| Some(Grade::ungraded(format!("could not be judged, because {why}")));
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
