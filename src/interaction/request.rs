//! A permission request: the known facts about the call that an agent asks about, and the answers it offers.

use serde_json::Value;

use crate::trace::facts::{Command, Fact, Reading, ReportedDetails};
use crate::trace::{FileDiff, PermissionOption, PermissionRequest, ToolCall, ToolKind, view};

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
    /// True if the request or its announced call shows an action, so that its subject is a call.
    pub shows_action: bool,
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

/// Input keys of the texts that an edit replaces and writes. The inputs of questions and plans have none of them.
const EDIT_KEYS: [&str; 15] = [
    "old_string",
    "new_string",
    "oldString",
    "newString",
    "old_str",
    "new_str",
    "old_text",
    "new_text",
    "oldText",
    "newText",
    "file_text",
    "patch",
    "patchText",
    "patch_text",
    "diff",
];

impl Subject {
    /// Returns the subject of a request that asks about a call of this kind and name. The agent chooses both, so a request that
    /// shows an action is about a call, whatever it calls itself.
    fn of(kind: Option<ToolKind>, name: Option<&str>, shows_action: bool) -> Self {
        if shows_action {
            return Self::Call;
        }
        let letters = |name: &str| name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
        let name = name.map(letters).unwrap_or_default();
        match kind {
            Some(ToolKind::SwitchMode) => Self::Plan,
            _ if QUESTION_TOOLS.contains(&name.as_str()) => Self::Question,
            _ => Self::Call,
        }
    }
}

/// Returns true if a call does something by these details: it has the kind of an action, or shows files, changes, a command or
/// its arguments. The known tools that ask a question or present a plan show none of these. Some of them have the kind `think`.
fn shows_action(details: &ReportedDetails<'_>) -> bool {
    use ToolKind::{Delete, Edit, Execute, Fetch, Move, Read, Search};
    matches!(details.kind, Some(Read | Edit | Delete | Move | Search | Execute | Fetch))
        || details.input.is_some_and(holds_action)
        || !details.written_paths().is_empty()
}

/// Returns true if an input holds a command, arguments of a command or of another tool, or the texts of an edit.
fn holds_action(input: &Value) -> bool {
    let is_of_action = |key: &str| view::is_argument_key(key) || EDIT_KEYS.contains(&key);
    let has_key = |(key, value): (&String, &Value)| is_of_action(key) && !value.is_null();
    input.as_object().is_some_and(|map| map.iter().any(has_key))
        || !view::commands(input).is_empty()
        || view::has_unread_command(input)
        || view::may_hold_command(input)
}

/// The facts of an announced call in a trace that decide the subject of the requests about it.
#[derive(Debug, Clone)]
pub struct AnnouncedCall {
    kind: ToolKind,
    name: Option<String>,
    shows_action: bool,
}

impl AnnouncedCall {
    pub fn of(call: &ToolCall) -> Self {
        let shows_action = shows_action(&ReportedDetails::of(call, &[]));
        Self { kind: call.kind, name: call.name.clone(), shows_action }
    }
}

/// Returns true if a request in a trace is for a permission. `call` is its announced call, if it is known. The kind and the name
/// in the request take precedence, but a request about a call that shows an action is for a permission.
pub fn is_for_permission(request: &PermissionRequest, call: Option<&AnnouncedCall>) -> bool {
    let asked = request.asked.as_ref();
    let kind = asked.and_then(|asked| asked.kind).or(call.map(|call| call.kind));
    let name = asked.and_then(|asked| asked.name.as_deref()).or(call.and_then(|call| call.name.as_deref()));
    let asks_for_action = asked.is_some_and(|asked| {
        shows_action(&ReportedDetails {
            kind: asked.kind,
            input: asked.input.as_ref(),
            locations: asked.locations.as_deref().unwrap_or_default(),
            ..ReportedDetails::default()
        })
    });
    Subject::of(kind, name, asks_for_action || call.is_some_and(|call| call.shows_action)) == Subject::Call
}

/// Returns the kind of a call by these details. The kind of a call that shows an action and calls itself a change of the mode is
/// unknown.
fn kind_of(details: &ReportedDetails<'_>, shows_action: bool) -> Option<ToolKind> {
    details.kind.filter(|kind| !shows_action || *kind != ToolKind::SwitchMode)
}

impl Request {
    pub fn subject(&self) -> Subject {
        Subject::of(self.kind, self.name.as_deref(), self.shows_action)
    }

    /// Makes the facts about a call, with paths and command from its input, locations, diffs and title.
    pub fn new(name: Option<String>, details: &ReportedDetails<'_>, reading: &Reading) -> Self {
        let shows_action = shows_action(details);
        let details = ReportedDetails { kind: kind_of(details, shows_action), ..*details };
        Self {
            kind: details.kind,
            name,
            title: details.title.map(str::to_owned),
            paths: details.paths(reading),
            input: details.input.cloned(),
            command: details.command(reading),
            diffs: details.diffs.to_vec(),
            options: Vec::new(),
            workspace: reading.workspace.clone(),
            shows_action,
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
    pub fn with_request(self, name: Option<String>, details: &ReportedDetails<'_>, reading: &Reading) -> Self {
        let shows_action = self.shows_action || shows_action(details);
        let asked = ReportedDetails { kind: details.kind.or(self.kind), ..*details };
        let kind = kind_of(&asked, shows_action);
        let title = details.title.map(str::to_owned).or(self.title);
        let asked = ReportedDetails { kind, ..*details };
        let canonical = |input: &Value| view::canonical(input);
        let has_other_input =
            details.input.map(canonical).is_some_and(|asked| self.input.as_ref().map(canonical) != Some(asked));
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
            input: details.input.cloned().or(self.input),
            command,
            diffs: if details.diffs.is_empty() { self.diffs } else { details.diffs.to_vec() },
            options: self.options,
            workspace: self.workspace,
            shows_action,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_inputs_of_questions_and_plans_show_no_action() {
        for input in [
            json!({"questions": [{"question": "Which?", "options": [{"label": "rm"}]}], "metadata": {"source": "x"}}),
            json!({"question": "Which?", "choices": ["a"], "allow_freeform": true}),
            json!({"message": "Which?", "requestedSchema": {"properties": {"path": {"type": "string"}}}}),
            json!({"plan": "rm -rf src", "planFilePath": "/p", "allowedPrompts": [{"tool": "Bash", "prompt": "x"}]}),
            json!({"plan_path": "plan.md"}),
            json!({"summary": "x", "actions": ["a"], "recommendedAction": "a"}),
            json!({"plan": "x", "command": null, "args": null}),
        ] {
            let details = ReportedDetails { input: Some(&input), ..ReportedDetails::default() };
            assert!(!shows_action(&details), "{input}");
        }
        for input in [
            json!({"plan": "x", "command": "rm -rf src"}),
            json!({"plan": "x", "command": [["rm"]]}),
            json!({"question": "Which?", "path": "src/a"}),
            json!({"question": "Which?", "old_string": "a", "new_string": "b"}),
            json!({"plan": "x", "server": "s", "tool": "t", "arguments": {"id": 5}}),
            json!({"plan": "x", "code": "rm()"}),
        ] {
            let details = ReportedDetails { input: Some(&input), ..ReportedDetails::default() };
            assert!(shows_action(&details), "{input}");
        }
    }
}
