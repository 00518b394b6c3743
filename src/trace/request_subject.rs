//! The subject of a permission request: an action, a plan or a question. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::facts::ReportedDetails;
use super::{AskedCall, PermissionRequest, ToolCall, ToolKind, view};

/// The subject of a permission request, by what the request and its call showed when the agent asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestSubject {
    /// An action. Only a request about an action is for a permission.
    Action,
    /// A question, or perhaps an action: the input has keys that no known question has.
    Doubtful,
    /// The approval of a plan.
    Plan,
    /// A question to the user.
    Question,
}

impl RequestSubject {
    /// Returns true if a request about this subject is more certainly for a permission than one about another subject.
    fn exceeds(self, other: Self) -> bool {
        let weight = |subject: Self| match subject {
            Self::Action => 2,
            Self::Doubtful => 1,
            Self::Plan | Self::Question => 0,
        };
        weight(self) > weight(other)
    }
}

/// The content of a call, by the action that it shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// No action: nothing, or the input of a plan or of a question.
    #[default]
    Talk,
    /// A list of questions, with keys that no known question has.
    UnusualQuestion,
    /// An action.
    Action,
}

/// The facts that decide the subject of a request: those of its call, and its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubjectFacts {
    kind: Option<ToolKind>,
    /// True if each given name is that of a tool that asks questions. Absent without a name.
    is_question_tool: Option<bool>,
    content: Content,
}

impl SubjectFacts {
    /// Returns the facts that these details show.
    pub fn of(details: &ReportedDetails<'_>) -> Self {
        let is_question_tool = details.name.map(|name| QUESTION_TOOLS.contains(&letters(name).as_str()));
        Self { kind: details.kind, is_question_tool, content: content(details) }
    }

    /// Returns the facts of an announced call in a trace.
    pub fn of_call(call: &ToolCall) -> Self {
        Self::of(&ReportedDetails::of(call, &[]))
    }

    /// Adds what a request states differently from its call.
    #[must_use]
    pub fn with_asked(self, asked: &AskedCall) -> Self {
        self.with_request(Self::of(&ReportedDetails {
            kind: asked.kind,
            name: asked.name.as_deref(),
            input: asked.input.as_ref(),
            locations: asked.locations.as_deref().unwrap_or_default(),
            ..ReportedDetails::default()
        }))
    }

    /// Adds the facts of a request to those of its call. The kind of the request takes precedence. An action that one of the two
    /// shows counts, and so does a name of one of the two that is not of a tool that asks questions.
    #[must_use]
    pub fn with_request(self, request: Self) -> Self {
        Self {
            kind: request.kind.or(self.kind),
            is_question_tool: match (self.is_question_tool, request.is_question_tool) {
                (Some(of_call), Some(of_request)) => Some(of_call && of_request),
                (of_call, of_request) => of_request.or(of_call),
            },
            content: self.content.max(request.content),
        }
    }

    /// Adds content that the call showed before it was described otherwise.
    #[must_use]
    pub fn with_content(self, earlier: Content) -> Self {
        Self { content: self.content.max(earlier), ..self }
    }

    /// Removes the kind: the request names one that is unknown.
    #[must_use]
    pub fn without_kind(self) -> Self {
        Self { kind: None, ..self }
    }

    /// Returns whether the details show an action, or no more than talk.
    pub fn content(self) -> Content {
        self.content
    }

    /// Returns the subject. The agent chooses the kind and the name, so a request that shows an action is about an action, whatever
    /// it calls itself.
    pub fn subject(self) -> RequestSubject {
        let is_question = self.is_question_tool == Some(true);
        match self.content {
            Content::Talk if self.kind == Some(ToolKind::SwitchMode) => RequestSubject::Plan,
            Content::Talk if is_question => RequestSubject::Question,
            Content::UnusualQuestion if is_question => RequestSubject::Doubtful,
            Content::Talk | Content::UnusualQuestion | Content::Action => RequestSubject::Action,
        }
    }
}

/// An announced call in a trace, for the subject of the requests about it.
#[derive(Debug, Clone)]
pub struct AnnouncedCall {
    facts: SubjectFacts,
    /// True if a notice says that an open call first had another kind, and this call was open: perhaps it is this one.
    pub may_have_had_other_kind: bool,
}

impl AnnouncedCall {
    /// Returns a call as its event shows it.
    pub fn of(call: &ToolCall) -> Self {
        Self { facts: SubjectFacts::of_call(call), may_have_had_other_kind: false }
    }
}

/// Returns the subject of a request in a trace. `call` is its announced call, if it is known.
pub fn subject_in_trace(request: &PermissionRequest, call: Option<&AnnouncedCall>) -> RequestSubject {
    let subject = shown_subject(request, call.map(|call| call.facts).unwrap_or_default());
    let may_be_other = call.is_some_and(|call| call.may_have_had_other_kind);
    if may_be_other && RequestSubject::Doubtful.exceeds(subject) { RequestSubject::Doubtful } else { subject }
}

/// Returns the subject of a request in a trace by the facts of its call: the noted one, unless they show more of an action.
fn shown_subject(request: &PermissionRequest, call: SubjectFacts) -> RequestSubject {
    let asked = request.asked.as_ref();
    let shown = asked.map_or(call, |asked| call.with_asked(asked)).subject();
    asked.and_then(|asked| asked.subject).filter(|noted| noted.exceeds(shown)).unwrap_or(shown)
}

/// Notes the subject of a request, if the request and its call, as the trace has them, show less of an action.
pub fn note_subject(request: &mut PermissionRequest, call: &ToolCall, subject: RequestSubject) {
    if subject.exceeds(shown_subject(request, SubjectFacts::of_call(call))) {
        request.asked.get_or_insert_default().subject = Some(subject);
    }
}

/// The names of tools that ask the user a question, in lower case and without punctuation: of Cline before 3 and Roo Code, of
/// Cline and Cursor, of Copilot, Droid and Gemini CLI, of Claude Code, Kimi, Qwen Code and Vibe, of OpenCode, and of Codex; and the
/// name that the trace gives to a question over ACP.
const QUESTION_TOOLS: [&str; 7] =
    ["askfollowupquestion", "askquestion", "askuser", "askuserquestion", "question", "requestuserinput", FORM_TOOL];
const FORM_TOOL: &str = "elicitationcreate";

/// Input keys of plans and of questions, at every depth, in lower case and without punctuation: those of the tools of Claude Code,
/// Codex, Gemini CLI, Qwen Code, Kimi, Copilot, OpenCode, Vibe, Cursor, Cline, Droid and Goose, and those of a question over ACP.
const PLAN_AND_QUESTION_KEYS: [&str; 75] = [
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
    "footernote",
    "header",
    "hideother",
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
    "notes",
    "option",
    "optionnames",
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
    "questionnaire",
    "questions",
    "reason",
    "recommendedaction",
    "remotesessionid",
    "remotesessiontitle",
    "remotesessionurl",
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

/// Further input keys that plans and questions have below one of these keys only.
const KEYS_BELOW: [(&str, &[&str]); 7] = [
    ("allowedprompts", &["prompt", "tool"]),
    ("metadata", &["source"]),
    ("phases", STEP_KEYS),
    ("plan", STEP_KEYS),
    ("questions", &["allowmultiple", "prompt"]),
    ("steps", STEP_KEYS),
    ("todos", STEP_KEYS),
];
const STEP_KEYS: &[&str] = &["activeform", "content", "priority", "status", "step"];

/// The keys whose objects have the questions as their keys.
const KEYED_BY_QUESTION: [&str; 2] = ["annotations", "answers"];

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

/// Returns a name in lower case and without punctuation.
fn letters(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
}

/// Returns the content of a call by its details. It is an action if they have the kind of an action, or show files, changes, or an
/// input that is not one of a plan or a question. Some of the tools that ask a question have the kind `think`.
fn content(details: &ReportedDetails<'_>) -> Content {
    use ToolKind::{Delete, Edit, Execute, Fetch, Move, Read, Search};
    let has_kind_of_action = matches!(details.kind, Some(Read | Edit | Delete | Move | Search | Execute | Fetch));
    if has_kind_of_action || !details.written_paths().is_empty() {
        return Content::Action;
    }
    let is_shown = match details.input {
        None | Some(Value::Null) => false,
        Some(Value::Bool(_) | Value::Number(_)) => true,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(map)) => {
            return Input { map, is_form: details.name.is_some_and(|name| letters(name) == FORM_TOOL) }.content();
        }
    };
    if is_shown { Content::Action } else { Content::Talk }
}

/// The input of a call, as an object.
struct Input<'a> {
    map: &'a Map<String, Value>,
    /// True if the call is a question over ACP, which is a form to fill in.
    is_form: bool,
}

impl Input<'_> {
    fn content(&self) -> Content {
        if self.map.iter().all(|(key, value)| self.is_of_talk(None, key, value)) {
            return Content::Talk;
        }
        let shows_action = self.map.iter().any(|(key, value)| is_of_action(key) && !value.is_null());
        if !shows_action && self.has_questions() { Content::UnusualQuestion } else { Content::Action }
    }

    /// Returns true if a key and its value are those of a plan or a question. `above` is the key of the object that has them, in
    /// letters, unless it is the input itself.
    fn is_of_talk(&self, above: Option<&str>, key: &str, value: &Value) -> bool {
        let letters = letters(key);
        let is_below = |(known, keys): &(&str, &[&str])| above == Some(*known) && keys.contains(&letters.as_str());
        match above {
            _ if value.is_null() => true,
            // A question over ACP may ask to open a page, and names the fields of its form itself.
            None if key == "url" => self.opens_page(),
            None if letters == "requestedschema" => self.is_form && !holds_text_of_action(value),
            Some(above) if KEYED_BY_QUESTION.contains(&above) && self.asks(key) => self.are_of_talk(&letters, value),
            _ => {
                let is_known = PLAN_AND_QUESTION_KEYS.contains(&letters.as_str()) || KEYS_BELOW.iter().any(is_below);
                is_known && self.are_of_talk(&letters, value)
            }
        }
    }

    /// Returns true if the keys of all objects in a value are those of a plan or a question.
    fn are_of_talk(&self, above: &str, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().all(|item| self.are_of_talk(above, item)),
            Value::Object(map) => map.iter().all(|(key, value)| self.is_of_talk(Some(above), key, value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }

    fn opens_page(&self) -> bool {
        self.map.contains_key("elicitationId") && self.map.get("mode").is_some_and(|mode| mode == "url")
    }

    fn questions(&self) -> &[Value] {
        self.map.get("questions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns true if the input has a list of questions, each with its text.
    fn has_questions(&self) -> bool {
        let is_question = |question: &Value| {
            let text = question.get("question").or_else(|| question.get("prompt")).and_then(Value::as_str);
            text.is_some_and(|text| !text.trim().is_empty())
        };
        !self.questions().is_empty() && self.questions().iter().all(is_question)
    }

    /// Returns true if a key names one of the questions: by its text, its name or its number.
    fn asks(&self, key: &str) -> bool {
        let is_named = |question: &Value| {
            let names = ["question", "prompt", "header", "id"].into_iter();
            names.filter_map(|name| question.get(name)?.as_str()).any(|name| name == key)
        };
        let is_number = !key.is_empty() && key.bytes().all(|c| c.is_ascii_digit());
        is_number
            || self.map.get("question").and_then(Value::as_str) == Some(key)
            || self.questions().iter().any(is_named)
    }
}

/// Returns true if agents put a command, its arguments, a path or the texts of an edit under this input key.
fn is_of_action(key: &str) -> bool {
    view::is_command_key(key) || view::is_argument_key(key) || view::is_path_key(key) || EDIT_KEYS.contains(&key)
}

/// Returns true if a value has a text under a key of an action at any depth. Schemas describe such a field by an object.
fn holds_text_of_action(value: &Value) -> bool {
    let is_text = |value: &Value| match value {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(Value::is_string),
        _ => false,
    };
    match value {
        Value::Array(items) => items.iter().any(holds_text_of_action),
        Value::Object(map) => {
            map.iter().any(|(key, value)| (is_of_action(key) && is_text(value)) || holds_text_of_action(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the subject of a request of this tool with this input, without a kind.
    fn subject(name: &str, input: &Value) -> RequestSubject {
        let details = ReportedDetails { name: Some(name), input: Some(input), ..ReportedDetails::default() };
        SubjectFacts::of(&details).subject()
    }

    #[test]
    fn the_inputs_of_questions_and_plans_show_no_action() {
        let options = json!([{"label": "rm", "description": "x", "preview": "p"}]);
        let schema = json!({"properties": {"path": {"type": "string"}}, "required": ["command"]});
        let answered = json!({
            "questions": [{"question": "A?"}, {"question": "B?", "id": "b"}],
            "answers": {"A?": "x", "1": ["y"], "b": {"answers": ["z"]}},
            "annotations": {"A?": {"notes": "n"}},
        });
        for (name, input) in [
            ("AskUserQuestion", json!({"questions": [{"question": "Which?"}], "metadata": {"source": "x"}})),
            ("AskUserQuestion", json!({"questions": [{"question": "Which?", "header": "h", "options": options}]})),
            ("ask_user", json!({"question": "Which?", "choices": ["a"], "allow_freeform": true})),
            ("elicitation/create", json!({"message": "Which?", "mode": "form", "requestedSchema": schema})),
            ("elicitation/create", json!({"message": "x", "mode": "url", "elicitationId": "e", "url": "https://x"})),
            ("question", json!({"questions": [{"id": "a", "question": "Which?", "multiple": true, "custom": true}]})),
            ("ask_followup_question", json!({"question": "Which?", "follow_up": [{"text": "a", "mode": "code"}]})),
            ("ask_question", json!({"questions": [{"prompt": "Which?", "allow_multiple": true}]})),
            ("ask_user_question", json!({"questions": [{"question": "x", "hide_other": true}], "footer_note": null})),
            ("AskUser", json!({"questionnaire": "1. [question] Which?"})),
            ("AskUserQuestion", answered),
            ("ask_user", json!({})),
            ("ask_user", json!(null)),
            ("ask_user", json!(" ")),
            ("ask_user", json!([])),
        ] {
            assert_eq!(subject(name, &input), RequestSubject::Question, "{name} {input}");
        }
        for input in [
            json!({"plan": "rm -rf src", "planFilePath": "/p", "allowedPrompts": [{"tool": "Bash", "prompt": "x"}]}),
            json!({"plan_path": "plan.md"}),
            json!({"summary": "x", "actions": ["a"], "recommendedAction": "a"}),
            json!({"plan": "x", "command": null, "args": null}),
            json!({"plan": "x", "title": "t", "optionNames": ["a"]}),
            json!({"plan": [{"step": "x", "status": "pending"}]}),
            json!({"name": "n", "phases": [{"name": "p", "todos": [{"id": "1", "content": "c", "status": "s"}]}]}),
        ] {
            let kind = Some(ToolKind::SwitchMode);
            let details = ReportedDetails { kind, input: Some(&input), ..ReportedDetails::default() };
            assert_eq!(SubjectFacts::of(&details).subject(), RequestSubject::Plan, "{input}");
        }
    }

    #[test]
    fn any_other_input_shows_an_action() {
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
            json!({"plan": {"bash_command": "rm -rf src"}}),
            json!({"steps": [{"run": "rm -rf src"}]}),
            json!({"options": [{"path": "src/a", "content": "evil"}]}),
            json!({"plan": "x", "metadata": {"command": "rm -rf src"}}),
            json!({"plan": "x", "tool": "Bash", "prompt": "rm -rf src"}),
            json!({"question": "x", "answers": {"command": "rm -rf src", "path": "src/a"}}),
            json!({"message": "x", "requestedSchema": {"bash": "rm -rf src"}}),
            json!({"questions": [{"question": "x"}], "command": "rm -rf src"}),
            json!({"questions": [{"question": " "}], "run": "rm -rf src"}),
            json!({"url": "https://example.com", "mode": "url"}),
            json!({"query": "DROP TABLE x"}),
            json!("rm -rf src"),
            json!(r#"{"command": "rm -rf src"}"#),
            json!([{"command": "rm -rf src"}]),
        ] {
            for kind in [None, Some(ToolKind::SwitchMode)] {
                let name = Some("ask_user");
                let details = ReportedDetails { kind, name, input: Some(&input), ..ReportedDetails::default() };
                assert_eq!(SubjectFacts::of(&details).subject(), RequestSubject::Action, "{kind:?} {input}");
            }
        }
        let form = json!({"message": "x", "requestedSchema": {"properties": {"a": {"command": "rm -rf src"}}}});
        assert_eq!(subject("elicitation/create", &form), RequestSubject::Action);
    }

    #[test]
    fn a_question_with_an_unknown_key_is_doubtful() {
        let options = json!([{"label": "npm", "description": "b", "command": "npm i"}]);
        for input in [
            json!({"questions": [{"question": "Which?", "options": options}]}),
            json!({"questions": [{"question": "Which?"}], "urgency": 2}),
            json!({"questions": [{"question": "Which?"}], "answers": {"command": "x"}}),
        ] {
            assert_eq!(subject("AskUserQuestion", &input), RequestSubject::Doubtful, "{input}");
            assert_eq!(subject("make_table", &input), RequestSubject::Action, "{input}");
        }
    }

    #[test]
    fn neither_a_name_nor_a_kind_of_a_request_hides_its_call() {
        let of = |kind: Option<ToolKind>, name: Option<&str>| {
            SubjectFacts::of(&ReportedDetails { kind, name, ..ReportedDetails::default() })
        };
        let (question, plan) = (of(None, Some("ask_user")), of(Some(ToolKind::SwitchMode), None));
        assert_eq!(of(Some(ToolKind::Other), None).with_request(question).subject(), RequestSubject::Question);
        assert_eq!(of(None, Some("AskUserQuestion")).with_request(question).subject(), RequestSubject::Question);
        assert_eq!(of(None, Some("wipe_table")).with_request(question).subject(), RequestSubject::Action);
        assert_eq!(of(Some(ToolKind::Execute), None).with_request(question).subject(), RequestSubject::Action);
        assert_eq!(of(Some(ToolKind::Execute), None).with_request(plan).subject(), RequestSubject::Action);
        assert_eq!(plan.without_kind().subject(), RequestSubject::Action);
        assert_eq!(plan.with_content(Content::Action).subject(), RequestSubject::Action);
    }
}
