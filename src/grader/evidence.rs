//! The evidence for graders at the end of a trial, besides its events.

use std::path::Path;

use crate::grade::Grade;
use crate::judge::Judges;
use crate::result::Metrics;
use crate::shell::Shell;
use crate::trace::usage::UsageTotal;
use crate::trace::{Header, Seen, Stop};
use crate::workspace::change::Change;

/// The evidence for graders at the end of a trial, besides its events.
#[derive(Clone, Copy)]
pub struct Evidence<'a> {
    /// The complete header.
    pub header: &'a Header,
    /// Name of the harness in the plan.
    pub harness: &'a str,
    /// The model that the plan requests. Absent if only the manifest sets one.
    pub model: Option<&'a str>,
    /// The name of the arm in the plan.
    pub arm: &'a str,
    /// `seq` of the first answer to a permission request that holds for later calls, too. Absent if there was none.
    pub lasting_answer: Option<u64>,
    /// The end of the session.
    pub stop: &'a Stop,
    /// The usage of the session.
    pub usage: &'a UsageTotal,
    /// The final answer; empty if there was none.
    pub output: &'a str,
    /// The metrics, as in the result.
    pub metrics: &'a Metrics,
    /// Time from the first prompt to the answer, in milliseconds. Absent if not measured.
    pub duration_ms: Option<u64>,
    /// The workspace to grade. Absent if it no longer exists.
    pub workspace: Option<&'a Path>,
    /// The change of the workspace. Absent if not measured.
    pub change: Option<&'a Change>,
    /// The folder of the hidden files that were copied over the workspace. Absent if the case has none.
    pub hidden: Option<&'a Path>,
    /// The folder of the case file; paths in the case are relative to it.
    pub case_folder: &'a Path,
    /// The absolute path of the trace file. Absent if the trace is not in a file.
    pub trace: Option<&'a Path>,
    /// The file with the change of the workspace. Absent if not measured.
    pub patch: Option<&'a Path>,
    /// Runs grading commands in the workspace, or in an empty folder if there was none. Without a folder,
    /// nothing can be run: the workspace is lost.
    pub shell: &'a Shell,
    /// Calls judge models.
    pub judges: &'a Judges,
    /// A variable whose value is a secret that is too short to be masked. Absent if every secret is masked.
    pub unmasked: Option<&'a str>,
}

impl<'a> Evidence<'a> {
    /// Returns the workspace, or the grade of a grader that needs it.
    pub(super) fn files(&self) -> Result<&'a Path, Grade> {
        self.workspace.ok_or_else(|| Grade::ungraded("could not be graded, because the workspace is missing"))
    }

    /// Returns the change of the workspace, or the grade of a grader that needs it.
    pub(super) fn known_change(&self) -> Result<&'a Change, Grade> {
        let why = "could not be graded, because the change of the workspace is not known";
        self.change.ok_or_else(|| Grade::ungraded(why))
    }

    /// Returns the kinds of events that the trace shows completely.
    pub(super) fn seen(&self) -> Seen {
        let seen = self.header.capabilities;
        Seen { interaction: seen.interaction && self.lasting_answer.is_none(), ..seen }
    }

    /// Returns the reason why the agent did not ask for every permission, in the whole session or in a part of it.
    /// A request that was made is known; the absence of a request shows nothing.
    pub(super) fn why_unasked(&self) -> Option<String> {
        if !self.header.capabilities.interaction {
            let mode = self.header.unattended_mode.as_deref()?;
            return Some(format!("in mode `{mode}` the agent does not ask for every permission"));
        }
        let seq = self.lasting_answer?;
        Some(format!(
            "the answer in event {seq} holds for later calls, too, so the agent does not ask for every permission"
        ))
    }
}
