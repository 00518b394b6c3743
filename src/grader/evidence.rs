//! What is known of a trial when it is over, besides its events.

use std::path::Path;

use crate::grade::Grade;
use crate::judge::Judges;
use crate::result::Metrics;
use crate::shell::Shell;
use crate::trace::usage::UsageTotal;
use crate::trace::{Header, Stop};
use crate::workspace::change::Change;

/// What is known of a Trial when it is over, beside its events.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The header, complete.
    pub header: &'a Header,
    /// Name of the Harness, as the plan has it.
    pub harness: &'a str,
    /// The model that the plan asks for; what a manifest adds by itself is none.
    pub model: Option<&'a str>,
    /// How the session ended.
    pub stop: &'a Stop,
    /// What it spent.
    pub usage: &'a UsageTotal,
    /// The final answer; empty where there was none.
    pub output: &'a str,
    /// What it took, as it stands in the result.
    pub metrics: &'a Metrics,
    /// From the first prompt to the answer; absent where nobody measured it.
    pub duration_ms: Option<u64>,
    /// The workspace as it is graded; absent where it is gone.
    pub workspace: Option<&'a Path>,
    /// What became of the workspace; absent where nobody measured it.
    pub change: Option<&'a Change>,
    /// The folder of the case file, from which the paths in it count.
    pub case_folder: &'a Path,
    /// The file of the trace, by its whole path; absent where it is in none.
    pub trace: Option<&'a Path>,
    /// The file that says how the workspace changed; absent where nobody measured it.
    pub patch: Option<&'a Path>,
    /// Runs grading commands in the workspace, or in an empty folder where there was none. Without a folder nothing can be
    /// run: the workspace is lost.
    pub shell: &'a Shell,
    /// Asks models.
    pub judges: &'a Judges,
}

impl<'a> Evidence<'a> {
    /// The workspace, or the grade of a grader that needs it.
    pub(super) fn files(&self) -> Result<&'a Path, Grade> {
        self.workspace.ok_or_else(|| Grade::ungraded("could not be judged, because the workspace is not there"))
    }

    /// The change of the workspace, or the grade of a grader that needs it.
    pub(super) fn known_change(&self) -> Result<&'a Change, Grade> {
        let why = "could not be judged, because the change of the workspace is not known";
        self.change.ok_or_else(|| Grade::ungraded(why))
    }

    /// The mode in which the agent worked without asking for every permission, in the whole session or in a part of it.
    /// A request that was made is known; that none was made says nothing.
    pub(super) fn unasked_mode(&self) -> Option<&str> {
        self.header.unattended_mode.as_deref().filter(|_| !self.header.capabilities.interaction)
    }
}
