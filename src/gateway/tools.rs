//! Turns scripted calls into calls of the tools that an agent offers, recognised by name and filled in by their
//! JSON Schemas.

use serde_json::{Map, Value, json};

use super::script::{Edit, ScriptCall, Write};
use super::{Call, Tool};
use crate::text::shell_word;

mod ask;

/// The reason why a scripted call cannot be made with the agent's tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The agent offers no tool of that kind.
    #[error("the agent offers no tool that can {kind}; it offers {}", list(.offered))]
    Kind { kind: &'static str, offered: Vec<String> },
    /// The agent offers no tool of that name.
    #[error("the agent offers no tool called `{name}`; it offers {}", list(.offered))]
    Name { name: String, offered: Vec<String> },
    /// The tool for questions requires options, and the script names none.
    #[error("`{tool}` requires options to choose from, and the script's `ask` has none")]
    Options { tool: String },
    /// The tool needs an absolute path, and the workspace is unknown.
    #[error("`{tool}` needs the absolute path of `{path}`, but the request does not contain the path of the workspace")]
    Workspace {
        tool: String,
        /// The path in the script.
        path: String,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns a call of an offered tool that carries out the scripted call. The caller sets the id.
///
/// # Errors
/// Returns an error if the agent offers no suitable tool.
pub fn call(wanted: ScriptCall<'_>, offered: &[Tool], workspace: Option<&str>) -> Result<Call, ToolError> {
    let fill = |tool: &Tool, fields: &[Field<'_>]| fill(tool, fields, workspace);
    let found = match wanted {
        ScriptCall::Write(write) => write_with(write, offered, &fill),
        ScriptCall::Edit(edit) => edit_with(edit, offered, &fill),
        ScriptCall::Read(read) => find(offered, &READ, &[PATH]).map(|tool| {
            let command = field(tool, COMMAND).map(|_| Field::Given(COMMAND, json!("view")));
            fill(tool, &[vec![Field::Path(&read.path)], command.into_iter().collect()].concat())
                .map(|it| made(tool, it))
        }),
        ScriptCall::Execute(execute) => find_shell(offered).map(|tool| shell(tool, &execute.command, &fill)),
        ScriptCall::Search(search) => find(offered, &SEARCH, &[PATTERN]).map(|tool| {
            let mut fields = vec![Field::Given(PATTERN, json!(search.pattern))];
            let path = search.path.as_deref().or_else(|| required(tool, PATH).then_some("."));
            fields.extend(path.map(Field::Path));
            fill(tool, &fields).map(|input| made(tool, input))
        }),
        ScriptCall::Ask(question) => ask::call(question, offered),
        ScriptCall::Tool(name, input) => {
            let tool = offered.iter().find(|tool| tool.name == name);
            let tool = tool.or_else(|| offered.iter().find(|tool| tool.name.eq_ignore_ascii_case(name)));
            tool.map(|tool| {
                let empty = if tool.freeform { json!("") } else { json!({}) };
                Ok(made(tool, placed(input.cloned().unwrap_or(empty), workspace)))
            })
        }
    };
    let kind = kind(wanted);
    match found.or_else(|| in_the_shell(wanted, offered, &fill)) {
        Some(call) => call.map(|call| Call { kind: kind.into(), ..call }),
        None => {
            let offered = offered.iter().map(|tool| tool.name.clone()).collect();
            Err(match wanted {
                ScriptCall::Tool(name, _) => ToolError::Name { name: name.to_owned(), offered },
                ScriptCall::Write(_)
                | ScriptCall::Read(_)
                | ScriptCall::Edit(_)
                | ScriptCall::Execute(_)
                | ScriptCall::Search(_)
                | ScriptCall::Ask(_) => ToolError::Kind { kind, offered },
            })
        }
    }
}

/// Returns the name of a kind of call.
pub fn kind(wanted: ScriptCall<'_>) -> &'static str {
    match wanted {
        ScriptCall::Write(_) => "write",
        ScriptCall::Read(_) => "read",
        ScriptCall::Edit(_) => "edit",
        ScriptCall::Execute(_) => "execute",
        ScriptCall::Search(_) => "search",
        ScriptCall::Ask(_) => "ask",
        ScriptCall::Tool(..) => "tool",
    }
}

/// Returns a shell call for reading or searching, for agents that have a shell and no tools for these. Files
/// are never written or edited with the shell, because permission requests for changes would not apply.
fn in_the_shell(
    wanted: ScriptCall<'_>,
    offered: &[Tool],
    fill: &impl Fn(&Tool, &[Field<'_>]) -> Result<Value, ToolError>,
) -> Option<Result<Call, ToolError>> {
    let command = match wanted {
        ScriptCall::Read(read) => format!("cat {}", shell_word(&read.path)),
        ScriptCall::Search(search) => {
            format!(
                "grep -rnE -e {} {}",
                shell_word(&search.pattern),
                shell_word(search.path.as_deref().unwrap_or("."))
            )
        }
        ScriptCall::Write(_)
        | ScriptCall::Edit(_)
        | ScriptCall::Execute(_)
        | ScriptCall::Ask(_)
        | ScriptCall::Tool(..) => return None,
    };
    let tool = find_shell(offered)?;
    Some(shell(tool, &command, fill).map(|call| Call { through: Some("execute".into()), ..call }))
}

/// Names of tools in lower case without punctuation, the most likely first.
const READ: [&str; 11] = [
    "read",
    "readfile",
    "view",
    "viewfile",
    "readtextfile",
    "readfiles",
    "fileread",
    "openfile",
    "cat",
    "strreplacebasededittool",
    "strreplaceeditor",
];
const WRITE: [&str; 10] = [
    "write",
    "writefile",
    "create",
    "createfile",
    "writetofile",
    "writetextfile",
    "filewrite",
    "editor",
    "strreplacebasededittool",
    "strreplaceeditor",
];
const EDIT: [&str; 13] = [
    "edit",
    "editfile",
    "replace",
    "strreplace",
    "strreplacefile",
    "searchreplace",
    "replaceinfile",
    "fileedit",
    "edittextfile",
    "editor",
    "strreplacebasededittool",
    "strreplaceeditor",
    "multiedit",
];
const EXECUTE: [&str; 14] = [
    "bash",
    "shell",
    "execcommand",
    "runshellcommand",
    "shellcommand",
    "localshell",
    "execute",
    "executecommand",
    "runcommand",
    "runcommands",
    "runterminalcommand",
    "runterminalcmd",
    "terminal",
    "exec",
];
const SEARCH: [&str; 8] =
    ["grep", "grepsearch", "searchfilecontent", "ripgrep", "search", "searchfiles", "searchtext", "searchcodebase"];

/// Names of input keys with different agents, by meaning.
const PATH: &[&str] =
    &["file_path", "filePath", "path", "absolute_path", "dir_path", "filename", "file", "directory", "paths", "files"];
const CONTENT: &[&str] = &["content", "contents", "file_text", "text", "fileText", "file_content", "new_text"];
const OLD: &[&str] = &["old_string", "oldString", "old_str", "oldStr", "oldText", "old_text", "old", "search"];
const NEW: &[&str] = &["new_string", "newString", "new_str", "newStr", "newText", "new_text", "new", "replace"];
const COMMAND: &[&str] = &["command", "cmd", "commands", "script"];
const PATTERN: &[&str] = &["pattern", "regex", "query", "queries"];
const PATCH: &[&str] = &["input", "patch", "patchText", "patch_text"];
const EDITS: &[&str] = &["edits", "edit"];
const BLOCK: &[&str] = &["diff", "content"];

/// A key of an input and its value.
#[derive(Debug, Clone)]
enum Field<'a> {
    Path(&'a str),
    Given(&'static [&'static str], Value),
}

fn plain_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Returns the key of the tool's input that is the first of the names. If none is, case and punctuation make no difference:
/// `filepath` is `file_path`.
fn field<'t>(tool: &'t Tool, names: &[&str]) -> Option<&'t str> {
    let keys = tool.schema.get("properties")?.as_object()?;
    let exact = names.iter().find_map(|name| keys.keys().find(|key| key.as_str() == *name));
    let alike = || names.iter().find_map(|name| keys.keys().find(|key| plain_name(key) == plain_name(name)));
    exact.or_else(alike).map(String::as_str)
}

fn required(tool: &Tool, names: &[&str]) -> bool {
    let required = tool.schema.get("required").and_then(Value::as_array).into_iter().flatten();
    field(tool, names).is_some_and(|name| required.filter_map(Value::as_str).any(|key| key == name))
}

fn find<'t>(offered: &'t [Tool], names: &[&str], fields: &[&[&str]]) -> Option<&'t Tool> {
    let fits = |tool: &&Tool| fields.iter().all(|names| field(tool, names).is_some());
    names.iter().find_map(|name| offered.iter().filter(fits).find(|tool| plain_name(&tool.name) == *name))
}

fn find_shell(offered: &[Tool]) -> Option<&Tool> {
    find(offered, &EXECUTE, &[COMMAND])
}

fn find_patch(offered: &[Tool]) -> Option<&Tool> {
    let patches = |tool: &&Tool| plain_name(&tool.name) == "applypatch";
    offered.iter().filter(patches).find(|tool| tool.freeform || field(tool, PATCH).is_some())
}

/// Makes a call of a tool, without an id.
pub(super) fn made(tool: &Tool, input: Value) -> Call {
    Call {
        call: String::new(),
        kind: "".into(),
        tool: tool.name.clone(),
        group: tool.group.clone(),
        input,
        through: None,
        freeform: tool.freeform,
    }
}

fn write_with(
    write: &Write,
    offered: &[Tool],
    fill: &impl Fn(&Tool, &[Field<'_>]) -> Result<Value, ToolError>,
) -> Option<Result<Call, ToolError>> {
    if let Some(tool) = find(offered, &WRITE, &[PATH, CONTENT]) {
        let mut fields = vec![Field::Path(&write.path), Field::Given(CONTENT, json!(write.text))];
        if field(tool, &["command"]).is_some() {
            fields.push(Field::Given(&["command"], json!("create")));
        }
        return Some(fill(tool, &fields).map(|input| made(tool, input)));
    }
    let added: String = write.text.lines().map(|line| format!("+{line}\n")).collect();
    find_patch(offered).map(|tool| patched(tool, &format!("*** Add File: {}\n{added}", write.path), fill))
}

fn edit_with(
    edit: &Edit,
    offered: &[Tool],
    fill: &impl Fn(&Tool, &[Field<'_>]) -> Result<Value, ToolError>,
) -> Option<Result<Call, ToolError>> {
    let Edit { path, old, new } = edit;
    let input_of = |tool: &Tool, fields: Vec<Field<'_>>| {
        let fields = [vec![Field::Path(path)], fields].concat();
        fill(tool, &fields).map(|input| made(tool, input))
    };
    if let Some(tool) = find(offered, &EDIT, &[PATH, OLD, NEW]) {
        let mut fields = vec![Field::Given(OLD, json!(old)), Field::Given(NEW, json!(new))];
        if field(tool, &["command"]).is_some() {
            fields.push(Field::Given(&["command"], json!("str_replace")));
        }
        return Some(input_of(tool, fields));
    }
    if let Some(tool) = find(offered, &EDIT, &[PATH, EDITS]) {
        return Some(input_of(tool, vec![Field::Given(EDITS, edits(tool, edit))]));
    }
    if let Some(tool) = find(offered, &["searchreplace", "replaceinfile"], &[PATH, BLOCK]) {
        // Both dialects of such blocks accept these markers.
        let block = format!("<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n");
        return Some(input_of(tool, vec![Field::Given(BLOCK, json!(block))]));
    }
    let lines = |sign: char, text: &str| text.lines().map(|line| format!("{sign}{line}\n")).collect::<String>();
    let hunk = format!("*** Update File: {path}\n@@\n{}{}", lines('-', old), lines('+', new));
    find_patch(offered).map(|tool| patched(tool, &hunk, fill))
}

/// Returns one edit in the form for tools that take several: a list of objects, or an object.
fn edits(tool: &Tool, edit: &Edit) -> Value {
    let schema = field(tool, EDITS).and_then(|key| tool.schema.get("properties")?.get(key)).unwrap_or(&Value::Null);
    let alternatives = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
    let shapes: Vec<&Value> = alternatives.map_or_else(|| vec![schema], |all| all.iter().collect());
    let listed = shapes.iter().find_map(|shape| shape.get("items"));
    let object = shapes.iter().copied().find(|shape| shape.get("properties").is_some());
    let (shape, in_list) = match (listed, object) {
        (Some(items), _) => (items, true),
        (None, Some(object)) => (object, false),
        (None, None) => (&Value::Null, true),
    };
    let key = |names: &[&'static str], or: &'static str| {
        names
            .iter()
            .copied()
            .find(|name| shape.get("properties").is_some_and(|all| all.get(name).is_some()))
            .unwrap_or(or)
    };
    let mut one = Map::new();
    one.insert(key(OLD, "old").to_owned(), json!(edit.old));
    one.insert(key(NEW, "new").to_owned(), json!(edit.new));
    if in_list { json!([one]) } else { Value::Object(one) }
}

fn patched(
    tool: &Tool,
    hunk: &str,
    fill: &impl Fn(&Tool, &[Field<'_>]) -> Result<Value, ToolError>,
) -> Result<Call, ToolError> {
    let patch = format!("*** Begin Patch\n{hunk}*** End Patch\n");
    if tool.freeform {
        return Ok(made(tool, Value::String(patch)));
    }
    fill(tool, &[Field::Given(PATCH, json!(patch))]).map(|input| made(tool, input))
}

fn shell(
    tool: &Tool,
    command: &str,
    fill: &impl Fn(&Tool, &[Field<'_>]) -> Result<Value, ToolError>,
) -> Result<Call, ToolError> {
    let key = field(tool, COMMAND);
    let takes_list = key.and_then(|key| tool.schema.get("properties")?.get(key)).is_some_and(is_list);
    let command = match (takes_list, key) {
        (true, Some("commands")) => json!([command]),
        (true, _) => json!(["bash", "-lc", command]),
        (false, _) => json!(command),
    };
    fill(tool, &[Field::Given(COMMAND, command)]).map(|input| made(tool, input))
}

/// Returns the input of a tool: the given values, and values of the right types for other required keys.
fn fill(tool: &Tool, fields: &[Field<'_>], workspace: Option<&str>) -> Result<Value, ToolError> {
    let mut input = Map::new();
    let properties = tool.schema.get("properties");
    let schema_of = |key: &str| properties.and_then(|all| all.get(key)).unwrap_or(&Value::Null);
    for given in fields {
        match given {
            Field::Path(path) => {
                let Some(key) = field(tool, PATH) else { continue };
                let in_list = schema_of(key).get("items").filter(|_| is_list(schema_of(key)));
                let in_object = in_list.and_then(|item| item.get("properties")?.get("path"));
                let about = in_object.or(in_list).unwrap_or(schema_of(key));
                let whole = wants_whole_path(key, schema_of(key)) || wants_whole_path(key, about);
                let path = match (whole, workspace) {
                    _ if path.starts_with('/') => (*path).to_owned(),
                    (true, Some(folder)) => joined(folder, path),
                    (true, None) => {
                        return Err(ToolError::Workspace { tool: tool.name.clone(), path: (*path).to_owned() });
                    }
                    (false, _) => (*path).to_owned(),
                };
                let path = if in_object.is_some() { json!({"path": path}) } else { json!(path) };
                input.insert(key.to_owned(), if is_list(schema_of(key)) { json!([path]) } else { path });
            }
            Field::Given(names, value) => {
                if let Some(key) = field(tool, names) {
                    let several = is_list(schema_of(key)) && !value.is_array();
                    input.insert(key.to_owned(), if several { json!([value]) } else { value.clone() });
                }
            }
        }
    }
    for key in tool.schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
        if !input.contains_key(key) {
            // Most agents require a description of a command; the command itself describes it best.
            let about = matches!(key, "description" | "explanation" | "reason").then(|| first_text(fields)).flatten();
            input.insert(key.to_owned(), about.unwrap_or_else(|| sample(schema_of(key))));
        }
    }
    Ok(Value::Object(input))
}

fn first_text(fields: &[Field<'_>]) -> Option<Value> {
    fields.iter().find_map(|field| match field {
        Field::Given(names, text @ Value::String(_)) if *names == COMMAND => Some(text.clone()),
        _ => None,
    })
}

fn is_list(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("array")
}

/// Returns true if a key's description asks for an absolute path.
fn wants_whole_path(key: &str, schema: &Value) -> bool {
    let words = schema.get("description").and_then(Value::as_str).unwrap_or("").to_ascii_lowercase();
    let relative =
        words.contains("relative to") || words.contains("or relative") || words.contains("relative or absolute");
    key.contains("absolute") || ((words.contains("absolute") || words.contains("full path")) && !relative)
}

fn joined(folder: &str, path: &str) -> String {
    let path = path.trim_start_matches("./");
    if path.is_empty() || path == "." { folder.to_owned() } else { format!("{}/{path}", folder.trim_end_matches('/')) }
}

/// Returns the simplest value that a JSON Schema allows.
pub fn sample(schema: &Value) -> Value {
    if let Some(value) = schema.get("default").or_else(|| schema.get("const")) {
        return value.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)) {
        return first.clone();
    }
    if let Some(first) = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.get(0)) {
        return sample(first);
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    match kind.map(str::to_ascii_lowercase).as_deref() {
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let property = |key: &str| schema.get("properties").and_then(|all| all.get(key)).unwrap_or(&Value::Null);
            let fields = required.filter_map(Value::as_str).map(|key| (key.to_owned(), sample(property(key))));
            Value::Object(fields.collect())
        }
        Some("array") => json!([]),
        Some("boolean") => json!(false),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("null") => Value::Null,
        _ => json!("scripted"),
    }
}

/// Replaces `{workspace}` in every text of a value.
fn placed(value: Value, workspace: Option<&str>) -> Value {
    let Some(folder) = workspace else { return value };
    match value {
        Value::String(text) => Value::String(text.replace("{workspace}", folder)),
        Value::Array(items) => Value::Array(items.into_iter().map(|item| placed(item, workspace)).collect()),
        Value::Object(map) => {
            Value::Object(map.into_iter().map(|(key, value)| (key, placed(value, workspace))).collect())
        }
        other => other,
    }
}
