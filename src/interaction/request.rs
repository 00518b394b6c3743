//! A permission request: the known facts about the call that an agent asks about, and the answers it offers.

use serde_json::{Map, Value};

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

/// Input keys of plans and of questions, in lower case and without punctuation: those of the tools of Claude Code, Codex, Gemini
/// CLI, Qwen Code, Kimi, Copilot, OpenCode, Vibe, Cursor, Cline and Goose, and those of a question over ACP.
const PLAN_AND_QUESTION_KEYS: [&str; 71] = [
    "actions",
    "allowedprompts",
    "allowfreeform",
    "annotations",
    "answer",
    "answers",
    "autoresolutionms",
    "background",
    "choices",
    "contentpreview",
    "custom",
    "default",
    "description",
    "elicitationid",
    "explanation",
    "followup",
    "header",
    "id",
    "isother",
    "isproject",
    "issecret",
    "label",
    "launchswarm",
    "message",
    "metadata",
    "mode",
    "modeid",
    "modeslug",
    "multiple",
    "multiselect",
    "name",
    "needsmoreexploration",
    "option",
    "options",
    "originalplan",
    "overview",
    "phases",
    "placeholder",
    "plan",
    "plancontent",
    "planfilename",
    "planfilepath",
    "planid",
    "planpath",
    "plansummary",
    "plantitle",
    "preview",
    "pushtoremote",
    "question",
    "questions",
    "reason",
    "recommendedaction",
    "remotesessionid",
    "remotesessiontitle",
    "remotesessionurl",
    "requestedschema",
    "required",
    "response",
    "selected",
    "steps",
    "subtitle",
    "summary",
    "targetmodeid",
    "teammatecount",
    "text",
    "thought",
    "timeout",
    "title",
    "todos",
    "toolcallid",
    "type",
];

/// Those of these keys whose values have keys of their own: the names of fields, the texts of questions.
const FREE_KEYS: [&str; 4] = ["annotations", "answers", "metadata", "requestedschema"];

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
        let name = name.map(letters).unwrap_or_default();
        match kind {
            Some(ToolKind::SwitchMode) => Self::Plan,
            _ if QUESTION_TOOLS.contains(&name.as_str()) => Self::Question,
            _ => Self::Call,
        }
    }
}

/// Returns a name in lower case and without punctuation.
fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// Returns true if a call does something by these details: it has the kind of an action, or shows files, changes, or an input that
/// is not one of a plan or a question. Some of the tools that ask a question have the kind `think`.
fn shows_action(details: &ReportedDetails<'_>) -> bool {
    use ToolKind::{Delete, Edit, Execute, Fetch, Move, Read, Search};
    matches!(details.kind, Some(Read | Edit | Delete | Move | Search | Execute | Fetch))
        || details.input.is_some_and(holds_action)
        || !details.written_paths().is_empty()
}

/// Returns true if an input holds anything but what the known tools that present a plan or ask a question show.
fn holds_action(input: &Value) -> bool {
    match input {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => map.iter().any(|(key, value)| !value.is_null() && !is_of_talk(map, key, value)),
    }
}

/// Returns true if a key and its value in an input are those of a plan or a question.
fn is_of_talk(input: &Map<String, Value>, key: &str, value: &Value) -> bool {
    let letters = letters(key);
    // A question over ACP may ask to open a page.
    let opens_page = || input.contains_key("elicitationId") && input.get("mode").is_some_and(|mode| mode == "url");
    (key == "url" && opens_page())
        || (PLAN_AND_QUESTION_KEYS.contains(&letters.as_str())
            && (FREE_KEYS.contains(&letters.as_str()) || !nests_action(value)))
}

/// Returns true if a list or an object holds a command, arguments or the texts of an edit at any depth.
fn nests_action(value: &Value) -> bool {
    let is_of_action = |key: &str| view::is_command_key(key) || view::is_argument_key(key) || EDIT_KEYS.contains(&key);
    match value {
        Value::Array(items) => items.iter().any(nests_action),
        Value::Object(map) => {
            map.iter().any(|(key, value)| (is_of_action(key) && !value.is_null()) || nests_action(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The facts of an announced call in a trace that decide the subject of the requests about it.
#[derive(Debug, Clone)]
pub struct AnnouncedCall {
    kind: ToolKind,
    name: Option<String>,
    shows_action: bool,
    /// True if a notice says that an open call first had another kind, and this call was open: perhaps it is this one.
    pub may_have_had_other_kind: bool,
}

impl AnnouncedCall {
    pub fn of(call: &ToolCall) -> Self {
        let shows_action = shows_action(&ReportedDetails::of(call, &[]));
        Self { kind: call.kind, name: call.name.clone(), shows_action, may_have_had_other_kind: false }
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
            json!({"questions": [{"id": "a", "question": "Which?", "multiple": true, "options": []}]}),
            json!({"message": "Open it?", "mode": "url", "elicitationId": "e", "url": "https://example.com"}),
            json!({"plan_filename": "plan.md", "answers": {"Which command?": "ls"}}),
            json!({}),
            json!(null),
            json!(" "),
            json!([]),
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
            json!({"bash_command": "rm -rf src"}),
            json!({"Command": "rm -rf src"}),
            json!({"plan": "x", "call": {"command": "rm -rf src"}}),
            json!({"actions": [{"run": {"command": "rm -rf src"}}]}),
            json!({"url": "https://example.com", "mode": "url"}),
            json!({"query": "DROP TABLE x"}),
            json!("rm -rf src"),
            json!(r#"{"command": "rm -rf src"}"#),
            json!([{"command": "rm -rf src"}]),
        ] {
            let details = ReportedDetails { input: Some(&input), ..ReportedDetails::default() };
            assert!(shows_action(&details), "{input}");
        }
    }
}
