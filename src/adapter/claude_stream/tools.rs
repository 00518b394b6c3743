//! Claude's tools, and the meaning of their calls and results: kinds, files, plans, outputs, changes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::adapter::exit_text::exit_code_in;
use crate::harness::{Manifest, ToolKinds};
use crate::trace::recorder::{ReportedStatus, ResultReport};
use crate::trace::{Attachment, FileDiff, Location, PlanEntry, ToolKind};

use super::lenient::Text;
use super::lines::{Block, Line, ResultMeta, ToolUseResult};
use super::served;

/// The built-in manifest of Claude Code. It holds the only table of Claude's tools.
#[expect(clippy::unwrap_used, reason = "the file is part of the program, and a test reads it")]
pub(crate) static BUILT_IN: LazyLock<&Manifest> =
    LazyLock::new(|| crate::harness::built_in::named("claude-code-stream").unwrap());

/// The manifest of Claude Code for sessions in which it asks for permission.
#[expect(clippy::unwrap_used, reason = "the file is part of the program, and a test reads it")]
pub(crate) static BOTH_WAYS: LazyLock<&Manifest> =
    LazyLock::new(|| crate::harness::built_in::named("claude-code-control").unwrap());

/// Kinds of tools by name: the manifest's own, then the built-in ones.
pub(crate) struct Kinds {
    own: ToolKinds,
    by_name: HashMap<String, Option<ToolKind>>,
}

impl Kinds {
    /// Returns the kinds for sessions of this harness.
    pub(crate) fn new(manifest: &Manifest) -> Self {
        Self { own: manifest.tool_kinds.clone(), by_name: HashMap::new() }
    }

    /// Returns the kind of a tool, or `None` if no table lists the tool.
    pub(crate) fn of(&mut self, name: &str) -> Option<ToolKind> {
        if let Some(kind) = self.by_name.get(name) {
            return *kind;
        }
        let kind = self.own.of(name).or_else(|| BUILT_IN.tool_kinds.of(name));
        self.by_name.insert(name.to_owned(), kind);
        kind
    }
}

/// Returns a measure of how much an input contains: its number of keys, or 1 if it is not an object.
pub(crate) fn fullness(input: &Value) -> usize {
    match input {
        Value::Object(map) => map.len(),
        value => usize::from(!crate::trace::recorder::is_empty(value)),
    }
}

/// Returns the file that a call is about.
pub(crate) fn locations(input: &Value) -> Vec<Location> {
    let path = ["file_path", "notebook_path"].iter().find_map(|key| input.get(key)?.as_str());
    match path {
        Some(path) if !path.is_empty() => {
            vec![Location { path: path.to_owned(), line: input.get("offset").and_then(Value::as_u64) }]
        }
        _ => Vec::new(),
    }
}

/// Returns the plan that a call of `TodoWrite` writes.
pub(crate) fn plan(name: &str, input: &Value) -> Option<Vec<PlanEntry>> {
    if name != "TodoWrite" {
        return None;
    }
    let text = |todo: &Value, key: &str| todo.get(key).and_then(Value::as_str).map(str::to_owned);
    let todos = input.get("todos")?.as_array()?;
    Some(
        todos
            .iter()
            .filter_map(|todo| {
                let content = text(todo, "content").or_else(|| todo.as_str().map(str::to_owned))?;
                Some(PlanEntry { text: content, status: text(todo, "status"), priority: text(todo, "priority") })
            })
            .collect(),
    )
}

/// Reads a `tool_result` block, with the details in its line.
pub(crate) fn result(id: &str, block: &Block<'_>, line: &Line<'_>, alone: bool) -> ResultReport {
    let parts = &block.content.0;
    let output = output_of(parts);
    let failed = block.is_error.is_true();
    let exit_code = served::exit_code(parts);
    let failed_inside = served::is_error(parts) || exit_code.is_some_and(|code| code != 0);
    let meta = meta_of(id, line);
    let denied_on_disk = alone
        && (!line.denial_kind.or_empty().is_empty()
            || line.permission_decision.0.as_ref().is_some_and(|it| it.decision.get() == Some("reject")));
    let was_interrupted = alone && line.tool_use_result.0.as_ref().is_some_and(|details| details.interrupted.is_true());
    let outcome = match outcome(failed, meta, &output) {
        _ if denied_on_disk => ReportedStatus::Denied,
        ReportedStatus::Ok if was_interrupted => ReportedStatus::Cancelled,
        ReportedStatus::Ok if failed_inside => ReportedStatus::Failed,
        outcome => outcome,
    };
    // The line contains one such object, so with several results it is unknown which one it belongs to.
    let diffs = match &line.tool_use_result.0 {
        Some(details) if alone && outcome == ReportedStatus::Ok => diffs(details),
        _ => Vec::new(),
    };
    ResultReport {
        outcome,
        diffs,
        exit_code: exit_code.or_else(|| exit_code_in(&output).filter(|_| failed)),
        truncated: output.trim_start().starts_with("<persisted-output>") || served::is_encrypted(parts),
        output: Some(output),
    }
}

/// Returns true if the agent states that it did not carry out a call.
pub(crate) fn was_not_run(id: &str, line: &Line<'_>) -> bool {
    meta_of(id, line).is_some_and(|meta| !meta.non_execution_kind.or_empty().is_empty())
}

/// Returns the agent's details of the result of a call.
fn meta_of<'a, 'l>(id: &str, line: &'a Line<'l>) -> Option<&'a ResultMeta<'l>> {
    line.tool_result_meta.0.iter().filter_map(|meta| meta.0.as_ref()).find(|meta| meta.id.get() == Some(id))
}

fn outcome(failed: bool, meta: Option<&ResultMeta<'_>>, output: &str) -> ReportedStatus {
    let decision = meta.and_then(|meta| meta.permission_decision.0.as_ref()).map(|it| it.decision.or_empty());
    let kind = meta.map(|meta| meta.non_execution_kind.or_empty()).unwrap_or_default();
    match (kind, decision) {
        (_, Some("reject" | "deny")) => ReportedStatus::Denied,
        ("user-rejected" | "permission-rule" | "permission-denied", _) => ReportedStatus::Denied,
        ("interrupted" | "cancelled" | "aborted", _) => ReportedStatus::Cancelled,
        _ if failed && meta.is_none() && is_denial(output) => ReportedStatus::Denied,
        _ if failed => ReportedStatus::Failed,
        _ => ReportedStatus::Ok,
    }
}

/// The texts by which Claude Code reports a call that it did not carry out for want of permission: how each begins, and what
/// it contains. A command that was carried out and failed begins with its exit code instead.
const DENIALS: [(&str, &str); 9] = [
    ("The user doesn't want to proceed with this tool use", ""),
    ("The user doesn't want to take this action right now", ""),
    ("Claude requested permissions to ", "haven't granted it yet"),
    ("Permission to use ", "denied"),
    ("This command requires approval", ""),
    ("This Bash command contains multiple operations.", "require"),
    ("Commands that change directories and write via output redirection require explicit approval", ""),
    ("Contains shell syntax", "cannot be statically analyzed"),
    ("Newline followed by # inside a quoted argument", ""),
];

/// Returns true if the output is the text of a refused call, as versions of Claude Code report it that do not say so in data.
fn is_denial(output: &str) -> bool {
    DENIALS.iter().any(|(begins, contains)| output.starts_with(begins) && output.contains(contains))
        || (!output.starts_with("Exit code") && output.contains(" was blocked. For security, Claude Code may only "))
}

/// Returns true if the output is the text of a call that was not carried out because its permission request could not be
/// sent.
pub(crate) fn could_not_ask(output: &str) -> bool {
    output.starts_with("Tool permission request failed") && output.contains("Stream closed")
}

/// Returns the output as text. A block that holds no text is named in its place.
fn output_of(blocks: &[Block<'_>]) -> String {
    let mut output = String::new();
    for (n, block) in blocks.iter().enumerate() {
        if n > 0 {
            output.push('\n');
        }
        if let Some(text) = text_in(block) {
            output.push_str(&text);
            continue;
        }
        let attachment = attachment(block);
        let bytes = attachment.bytes.map(|n| format!(", {n} bytes")).unwrap_or_default();
        let name = attachment.media_type.or(attachment.uri).map(|name| format!(" {name}")).unwrap_or_default();
        output.push_str(&format!("[{}{name}{bytes}]", attachment.kind));
    }
    output
}

/// Returns the text that a block of a result holds: its own, the output of a command, the text of an error, the text of the
/// blocks in it, or that of a document.
fn text_in<'a>(block: &'a Block<'_>) -> Option<Cow<'a, str>> {
    // A block of an unknown type that holds a text is output.
    if block.kind.or_empty() == "text" || block.text.get().is_some() {
        return Some(Cow::Borrowed(block.text.or_empty()));
    }
    if let Some(text) = served::output(block) {
        return Some(Cow::Owned(text));
    }
    if !block.content.0.is_empty() {
        return Some(Cow::Owned(output_of(&block.content.0)));
    }
    let source = block.source.0.as_ref().filter(|source| source.kind.get() == Some("text"))?;
    source.data.get().map(Cow::Borrowed)
}

/// Converts a block that is not text.
pub(crate) fn attachment(block: &Block<'_>) -> Attachment {
    let kind = block.kind.owned().unwrap_or_else(|| "unknown".to_owned());
    let source = block.source.0.as_ref();
    Attachment {
        kind,
        media_type: source.and_then(|source| source.media_type.owned()),
        uri: source.and_then(|source| source.url.owned()),
        bytes: source.and_then(|source| source.data.get()).map(|data| data.len() as u64),
    }
}

/// Returns the changes that Write, Edit, MultiEdit and NotebookEdit report.
fn diffs(details: &ToolUseResult<'_>) -> Vec<FileDiff> {
    let Some(path) = details.file_path.get().or(details.notebook_path.get()) else { return Vec::new() };
    let diff = |old: Option<String>, new: &Text<'_>| FileDiff {
        path: path.to_owned(),
        old,
        new: Some(new.or_empty().to_owned()),
    };
    let whole = |text: &Text<'_>| text.0.as_deref().map(str::to_owned);
    // An edit that replaces nothing makes a new file.
    let replaced = |text: &Text<'_>| if details.original.get().is_none() { text.owned() } else { whole(text) };
    if details.updated_file.0.is_some() {
        vec![diff(whole(&details.original_file), &details.updated_file)]
    } else if !details.edits.0.is_empty() {
        let edits = details.edits.0.iter().filter_map(|edit| edit.0.as_ref());
        edits.map(|edit| diff(replaced(&edit.old_string), &edit.new_string)).collect()
    } else if details.old_string.0.is_some() || details.new_string.0.is_some() {
        vec![diff(replaced(&details.old_string), &details.new_string)]
    } else if details.content.0.is_some() {
        vec![diff(whole(&details.original), &details.content)]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result_of(json: &str) -> ResultReport {
        let line: Line<'_> = serde_json::from_str(json).unwrap();
        let message = line.message.0.as_ref().unwrap();
        result("t", &message.content.0[0], &line, message.content.0.len() == 1)
    }

    #[test]
    fn the_built_in_table_knows_claudes_tools() {
        let mut kinds = Kinds::new(&Manifest::bare(crate::harness::Adapter::ClaudeCodeStream));
        for (name, kind) in [
            ("Read", ToolKind::Read),
            ("NotebookRead", ToolKind::Read),
            ("MultiEdit", ToolKind::Edit),
            ("NotebookEdit", ToolKind::Edit),
            ("Bash", ToolKind::Execute),
            ("KillShell", ToolKind::Execute),
            ("Monitor", ToolKind::Execute),
            ("Grep", ToolKind::Search),
            ("ToolSearch", ToolKind::Search),
            ("WebSearch", ToolKind::Fetch),
            ("Agent", ToolKind::Think),
            ("TaskUpdate", ToolKind::Think),
            ("ExitPlanMode", ToolKind::SwitchMode),
            ("Skill", ToolKind::Other),
            ("AskUserQuestion", ToolKind::Other),
            ("StructuredOutput", ToolKind::Other),
            ("mcp__files__Read", ToolKind::Other),
        ] {
            assert_eq!(kinds.of(name), Some(kind), "{name}");
            assert_eq!(kinds.of(name), Some(kind), "{name}, the second time");
        }
        assert_eq!(kinds.of("SomethingNew"), None);
    }

    #[test]
    fn the_manifests_own_kinds_come_first() {
        let mut manifest = Manifest::bare(crate::harness::Adapter::ClaudeCodeStream);
        manifest.tool_kinds = ToolKinds(vec![("mcp__files__*".parse().unwrap(), ToolKind::Read)]);
        let mut kinds = Kinds::new(&manifest);
        assert_eq!(kinds.of("mcp__files__Read"), Some(ToolKind::Read));
        assert_eq!(kinds.of("Bash"), Some(ToolKind::Execute));
    }

    #[test]
    fn the_manifests_agree() {
        assert_eq!(BUILT_IN.name, "claude-code-stream");
        assert_eq!(BUILT_IN.adapter, crate::harness::Adapter::ClaudeCodeStream);
        let other = crate::harness::built_in::named("claude-code").unwrap();
        assert_eq!(other.adapter, crate::harness::Adapter::OutputOnly);
        assert_eq!((&other.env, &other.home, &other.error_text), (&BUILT_IN.env, &BUILT_IN.home, &BUILT_IN.error_text));
    }

    #[test]
    fn a_denial_is_known_by_its_field_or_by_its_words() {
        for json in [
            r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]},
                "tool_result_meta":[{"id":"t","non_execution_kind":"user-rejected"}]}"#,
            r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]},
                "tool_result_meta":[{"id":"t","permission_decision":{"decision":"reject"}}]}"#,
            r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,
                "content":"Claude requested permissions to use Bash, but you haven't granted it yet."}]}}"#,
        ] {
            assert_eq!(result_of(json).outcome, ReportedStatus::Denied, "{json}");
        }
        let failed = |output: &str| {
            let block =
                serde_json::json!({"type": "tool_result", "tool_use_id": "t", "is_error": true, "content": output});
            result_of(&serde_json::json!({"message": {"content": [block]}}).to_string()).outcome
        };
        for output in [
            "This command requires approval",
            "The user doesn't want to take this action right now. STOP what you are doing and wait.",
            "This Bash command contains multiple operations. The following part requires approval: sed -i x",
            "Contains shell syntax (string) that cannot be statically analyzed",
            "sed in '/etc/x' was blocked. For security, Claude Code may only edit files in the allowed working directories",
        ] {
            assert_eq!(failed(output), ReportedStatus::Denied, "{output}");
        }
        for output in ["Exit code 1\nx was blocked. For security, Claude Code may only be read", "no such file", ""] {
            assert_eq!(failed(output), ReportedStatus::Failed, "{output}");
        }
        let other = r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]},
            "tool_result_meta":[{"id":"u","non_execution_kind":"user-rejected"}]}"#;
        assert_eq!(result_of(other).outcome, ReportedStatus::Failed);
    }

    #[test]
    fn outputs_are_text_and_name_what_is_not() {
        let result = result_of(
            r#"{"message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[
                {"type":"text","text":"one"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}},
                "two"]}]}}"#,
        );
        assert_eq!(result.output.as_deref(), Some("one\n[image image/png, 4 bytes]\ntwo"));
        assert_eq!(result.outcome, ReportedStatus::Ok);
        let result = result_of(
            r#"{"message":{"content":[{"type":"tool_result","content":"<persisted-output>\nbig","tool_use_id":"t"}]}}"#,
        );
        assert!(result.truncated);
    }

    #[test]
    fn an_exit_code_is_read_from_failures_only() {
        let failed =
            r#"{"message":{"content":[{"type":"tool_result","content":"Exit code 127\nno","is_error":true}]}}"#;
        assert_eq!(result_of(failed).exit_code, Some(127));
        let fine = r#"{"message":{"content":[{"type":"tool_result","content":"Exit code 3 means lost"}]}}"#;
        assert_eq!(result_of(fine).exit_code, None);
    }

    #[test]
    fn changes_come_from_what_the_tool_gave_back() {
        let of = |details: &str| {
            let line = format!(
                r#"{{"message":{{"content":[{{"type":"tool_result","content":"ok"}}]}},"tool_use_result":{details}}}"#
            );
            result_of(&line).diffs.into_iter().map(|diff| (diff.path, diff.old, diff.new)).collect::<Vec<_>>()
        };
        let diff = |old: Option<&str>, new: &str| ("/f".to_owned(), old.map(str::to_owned), Some(new.to_owned()));
        for (details, expected) in [
            (r#"{"type":"create","filePath":"/f","content":"new","originalFile":null}"#, vec![diff(None, "new")]),
            (r#"{"type":"update","filePath":"/f","content":"new","originalFile":"x"}"#, vec![diff(Some("x"), "new")]),
            (r#"{"type":"update","filePath":"/f","content":"","originalFile":"x"}"#, vec![diff(Some("x"), "")]),
            (r#"{"filePath":"/f","oldString":"a","newString":"b","originalFile":"a c"}"#, vec![diff(Some("a"), "b")]),
            (r#"{"filePath":"/f","oldString":"","newString":"b","originalFile":null}"#, vec![diff(None, "b")]),
            (
                r#"{"filePath":"/f","originalFile":"a b","edits":[
                    {"old_string":"a","new_string":"x"},{"old_string":"b","new_string":""}]}"#,
                vec![diff(Some("a"), "x"), diff(Some("b"), "")],
            ),
            (r#"{"notebook_path":"/f","original_file":"1","updated_file":"2"}"#, vec![diff(Some("1"), "2")]),
            (r#"{"type":"text","file":{"filePath":"/f","content":"seed"}}"#, vec![]),
            (r#""Error: no""#, vec![]),
        ] {
            assert_eq!(of(details), expected, "{details}");
        }
    }

    #[test]
    fn todos_are_a_plan() {
        let input = serde_json::json!({"todos": [{"content": "one", "status": "pending"}, {"status": "odd"}, 5]});
        let plan = plan("TodoWrite", &input).unwrap();
        assert_eq!(plan.len(), 1);
        assert_eq!((plan[0].text.as_str(), plan[0].status.as_deref()), ("one", Some("pending")));
        assert_eq!(super::plan("Bash", &input), None);
    }
}
