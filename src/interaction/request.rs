//! A permission request: the known facts about the call that an agent asks about, and the answers it offers.

use serde_json::Value;

use crate::trace::facts::{Command, Fact, Reading, ReportedDetails};
use crate::trace::{FileDiff, PermissionOption, PermissionRequest, ToolKind, view};

/// A permission request of an agent. Details that the agent did not show are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    pub kind: Option<ToolKind>,
    /// The agent's name of the tool.
    pub name: Option<String>,
    /// The agent's title of the call.
    pub title: Option<String>,
    /// The paths that the call touches, relative to the workspace, and those that they lead to through symbolic links.
    pub paths: Fact<Vec<String>>,
    /// The arguments of the call.
    pub input: Option<Value>,
    /// The command that the call runs.
    pub command: Command,
    /// The changes that the call would make, if the agent shows them.
    pub diffs: Vec<FileDiff>,
    /// The possible answers.
    pub options: Vec<PermissionOption>,
    /// The path of the workspace.
    pub workspace: Option<String>,
}

/// The subject of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A call: the only subject that is a permission.
    Call,
    /// A plan that the agent made.
    Plan,
    /// A question to the user.
    Question,
}

/// The names of tools that ask the user a question, in lower case and without punctuation: those of Claude Code and Qwen
/// Code, of Gemini CLI and Copilot, and of Codex; and the name that the trace gives to a question over ACP.
const QUESTION_TOOLS: [&str; 4] = ["askuserquestion", "askuser", "requestuserinput", "elicitationcreate"];

impl Subject {
    /// Returns the subject of a request that asks about a call of this kind and name.
    pub fn of(kind: Option<ToolKind>, name: Option<&str>) -> Self {
        let letters = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
        let name = name.map(letters).unwrap_or_default();
        match kind {
            Some(ToolKind::SwitchMode) => Self::Plan,
            _ if QUESTION_TOOLS.contains(&name.as_str()) => Self::Question,
            _ => Self::Call,
        }
    }
}

/// Returns true if a request in a trace is for a permission. `call` is the announced kind and name of its call, if it is known;
/// what the request itself says takes precedence.
pub fn is_for_permission(request: &PermissionRequest, call: Option<(ToolKind, Option<&str>)>) -> bool {
    let asked = request.asked.as_ref();
    let kind = asked.and_then(|asked| asked.kind).or(call.map(|(kind, _)| kind));
    let name = asked.and_then(|asked| asked.name.as_deref()).or(call.and_then(|(_, name)| name));
    Subject::of(kind, name) == Subject::Call
}

impl Request {
    pub fn subject(&self) -> Subject {
        Subject::of(self.kind, self.name.as_deref())
    }

    /// Makes the facts about a call, with paths and command from its input, locations, diffs and title.
    pub fn new(name: Option<String>, told: &ReportedDetails<'_>, reading: &Reading) -> Self {
        Self {
            kind: told.kind,
            name,
            title: told.title.map(str::to_owned),
            paths: told.paths(reading),
            input: told.input.cloned(),
            command: told.command(reading),
            diffs: told.diffs.to_vec(),
            options: Vec::new(),
            workspace: reading.workspace.clone(),
        }
    }

    /// Returns true if a text of the request contains a text.
    pub fn shows(&self, text: &str) -> bool {
        let within = |shown: &str| shown.contains(text);
        self.name.as_deref().is_some_and(within)
            || self.title.as_deref().is_some_and(within)
            || self.paths.seen().is_some_and(|paths| paths.iter().any(|path| within(path)))
            || self.command.seen().is_some_and(within)
            || self.input.as_ref().is_some_and(|input| within(&input.to_string()))
    }

    /// Merges the details in a request with the details of the announced call: the request takes precedence, and
    /// missing details come from the announcement. If the request has another input than the announced one, its paths and its
    /// command are those of this input, or were not shown.
    #[must_use]
    pub fn with_request(self, name: Option<String>, told: &ReportedDetails<'_>, reading: &Reading) -> Self {
        let kind = told.kind.or(self.kind);
        let title = told.title.map(str::to_owned).or(self.title);
        let asked = ReportedDetails { kind, ..*told };
        let canonical = |input: &Value| view::canonical(input);
        let has_other_input =
            told.input.map(canonical).is_some_and(|asked| self.input.as_ref().map(canonical) != Some(asked));
        let shows_paths = matches!(asked.paths(reading), Fact::Seen(paths) if !paths.is_empty());
        let command = match asked.command(reading) {
            command @ Command::Seen(_) => command,
            command if has_other_input => command,
            _ => self.command,
        };
        Self {
            kind,
            name: name.or(self.name),
            title,
            paths: if shows_paths || has_other_input { asked.paths(reading) } else { self.paths },
            input: told.input.cloned().or(self.input),
            command,
            diffs: if told.diffs.is_empty() { self.diffs } else { told.diffs.to_vec() },
            options: self.options,
            workspace: self.workspace,
        }
    }
}
