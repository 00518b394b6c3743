//! Events of a session that may decide how a check ends, besides edits of the workspace. Pure.

use super::commands::{Check, builds_itself};
use crate::text::{first_chars, one_line};
use crate::trace::{ToolCall, ToolKind};

/// The maximum number of characters of a command, a tool or a path that are shown.
const SHOWN: usize = 80;
/// Tools that plan, ask the user, or show the output of a command, whatever their kind is. Their names are in lower case.
const TOOLS: [&str; 17] = [
    "askuserquestion",
    "bashoutput",
    "create_goal",
    "get_goal",
    "sequentialthinking",
    "taskcreate",
    "taskget",
    "tasklist",
    "taskoutput",
    "taskupdate",
    "think",
    "todo_write",
    "todoread",
    "todowrite",
    "update_goal",
    "update_plan",
    "write_todos",
];

/// An event that may be why a check failed, or why it passed afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intervening {
    /// The `seq` of the event.
    pub seq: u64,
    /// The `seq` after which it may have happened.
    pub since: u64,
    /// The kind of the event.
    pub kind: Kind,
    /// The check that a command is, as the line of the grader. Other runs of the same check are not affected by it.
    pub check: Option<String>,
}

/// The kind of an event that may decide how a check ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A command that is not known to only read or check.
    Command(String),
    /// A build. The program is the one whose own tests do not need it.
    Build {
        command: String,
        program: &'static str,
    },
    /// A command that the session does not show.
    HiddenCommand,
    CommandOfUser,
    /// A call of a tool that is not known to only read. The text is the name of the tool.
    Tool(String),
    /// A change of a file outside the workspace. The text is the path of the file.
    EditElsewhere(String),
    /// A change of a file by the user or another program. The text is the path of the file.
    ChangedByOthers(String),
    /// A change of files that the session does not show.
    HiddenEdit,
    /// A change of a file in the workspace while the check ran that failed. The text is the path of the file.
    InParallel(String),
    /// A change of the branch on which the repository is. The text is the new branch.
    BranchChanged(String),
    /// The check ran in another sandbox of the agent when it passed than when it failed.
    SandboxChanged,
    /// The call of the check that passed ran the check under other conditions than the failing one. The text is the key of the
    /// call's input.
    OtherConditions(String),
    /// A failure of the call, of which the check itself shows no result. The text is the part of the output that says so.
    NoResult(String),
    /// The changes of files that the session shows were none, or may have been taken back.
    NoChange,
    /// A part of the session that could not be read.
    Lost,
}

impl Intervening {
    pub(super) fn new(seq: u64, kind: Kind) -> Self {
        Self { seq, since: seq, kind, check: None }
    }

    /// Returns true if the event may decide how a check ends. Runs of the check itself are no other cause, and neither is a build
    /// by a program that builds what it tests.
    pub(super) fn may_decide(&self, check: &Check) -> bool {
        let is_own_build = match &self.kind {
            Kind::Build { program, .. } => builds_itself(&check.line, program),
            _ => false,
        };
        !is_own_build && self.check.as_ref() != Some(&check.line)
    }

    /// Returns the sentence about the event for the person who reads the draft. `mask` redacts a text: it is redacted before it is
    /// cut, because a part of a secret is not recognised.
    pub fn text(&self, mask: impl Fn(&str) -> String) -> String {
        let shown = |text: &str| {
            let whole = mask(&one_line(text));
            let begin = first_chars(&whole, SHOWN);
            if begin.len() < whole.len() { format!("`{begin}…`") } else { format!("`{begin}`") }
        };
        match &self.kind {
            Kind::Command(command) => format!("{} ran, which is not known to only read or check", shown(command)),
            Kind::Build { command, .. } => format!("{} ran, which may make what the check needs", shown(command)),
            Kind::HiddenCommand => "a command ran that the session does not show".to_owned(),
            Kind::CommandOfUser => "the user ran a command".to_owned(),
            Kind::Tool(name) if name.is_empty() => "a tool without a name was called".to_owned(),
            Kind::Tool(name) => format!("the tool {} was called, which is not known to only read", shown(name)),
            Kind::EditElsewhere(path) => format!("{} was changed, which is outside the workspace", shown(path)),
            Kind::ChangedByOthers(path) if path.is_empty() => {
                "a file was changed by the user or another program".to_owned()
            }
            Kind::ChangedByOthers(path) => format!("{} was changed by the user or another program", shown(path)),
            Kind::HiddenEdit => "files were changed that the session does not show".to_owned(),
            Kind::InParallel(path) => format!("{} was changed while the failing run went on", shown(path)),
            Kind::BranchChanged(branch) => format!("the repository was switched to the branch {}", shown(branch)),
            Kind::SandboxChanged => "it came to run in another sandbox of the agent, or outside it".to_owned(),
            Kind::OtherConditions(key) => format!("it was run with another {}", shown(key)),
            Kind::NoResult(evidence) => {
                format!("a run failed without a result of the check, as {} shows", shown(&evidence.replace('`', "'")))
            }
            Kind::NoChange => "no change of a file is known to have remained".to_owned(),
            Kind::Lost => "there is a part of the session that could not be read".to_owned(),
        }
    }
}

/// Parts of the texts by which tools for edits refuse to change a file that changed since the agent read it.
const STALE: [&str; 5] = [
    "modified since read",
    "modified since it was last read",
    "modified since you last read",
    "changed since you last read",
    "unexpectedly modified",
];

/// Returns true if the output of a failed edit says that the file changed since the agent read it.
pub(super) fn is_stale(output: &str) -> bool {
    STALE.iter().any(|part| output.contains(part))
}

/// Returns true if a call is known to change nothing, whatever its input is.
pub(super) fn only_reads(call: &ToolCall) -> bool {
    let is_known = |name: &String| TOOLS.contains(&name.to_ascii_lowercase().as_str());
    let reads = matches!(call.kind, ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::SwitchMode);
    (reads && !call.unknown_kind) || call.name.as_ref().is_some_and(is_known)
}
