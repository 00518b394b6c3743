//! Compares what an agent asks the engine to do with its open calls: an action may belong to one of them. Pure.

use serde_json::Value;

use super::text_at;
use crate::trace::{ToolCall, ToolKind, UnseenAction, view};

/// Returns true if an action of the engine, a request of the agent by its method and parameters, may belong to a call: by
/// its kind, and by the command or the files that the call shows. `workspace` is the folder that paths are relative to.
pub(super) fn may_belong_to(call: &ToolCall, method: &str, params: &Value, workspace: Option<&str>) -> bool {
    use ToolKind::{Delete, Edit, Execute, Move, Other, Read, Search};
    let path = || text_at(params, "path").unwrap_or_default();
    match (method, call.kind) {
        ("terminal/create", _) => may_run(call, params),
        // A command or an unknown tool may use any file.
        (_, Execute | Other) => true,
        ("fs/write_text_file", Edit | Delete | Move) | ("fs/read_text_file", Edit | Delete | Move | Read) => {
            touches(call, &path(), workspace)
        }
        ("fs/read_text_file", Search) => true,
        _ => false,
    }
}

/// Returns true if a terminal that the agent asked for may belong to a call.
pub(super) fn may_run(call: &ToolCall, params: &Value) -> bool {
    matches!(call.kind, ToolKind::Execute | ToolKind::Other) && runs(call, params)
}

/// Returns the use of a file that an action of the engine is, if that is all that the trace lacks: a file is read, or
/// another file is written while a call is open that changes files. A program reads files of its own accord, too.
pub(super) fn use_of_file<'a>(
    mut open: impl Iterator<Item = &'a ToolCall>,
    method: &str,
    params: &Value,
    workspace: Option<&str>,
) -> Option<UnseenAction> {
    use ToolKind::{Delete, Edit, Move, Read};
    let kind = match method {
        "fs/read_text_file" => Read,
        "fs/write_text_file" if open.any(|call| matches!(call.kind, Edit | Delete | Move)) => Edit,
        _ => return None,
    };
    let path = view::relative(&text_at(params, "path")?, workspace);
    (!path.is_empty()).then_some(UnseenAction { kind, path })
}

/// Returns true if a call shows no input, or a command that the terminal's command may be: shells are put around commands.
fn runs(call: &ToolCall, params: &Value) -> bool {
    // Without an input, the command of the call is not known to be another one.
    let Some(input) = call.shown_input() else { return true };
    let shown = view::command(Some(input)).unwrap_or_else(|| view::canonical(input));
    let program = text_at(params, "command").unwrap_or_default();
    let args = params.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let line = std::iter::once(program.as_str()).chain(args).collect::<Vec<_>>().join(" ");
    // A call may name the program without its folder.
    let program = program.rsplit('/').next().unwrap_or_default();
    (!program.is_empty() && shown.contains(program)) || line.contains(shown.trim())
}

/// Returns true if a call shows no files, or the file or a folder above it.
fn touches(call: &ToolCall, path: &str, workspace: Option<&str>) -> bool {
    let shown = view::paths(call.shown_input(), &call.locations, &[], workspace);
    let path = view::relative(path, workspace);
    let holds = |shown: &String| {
        shown == "." || path.strip_prefix(shown.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    shown.is_empty() || shown.iter().any(holds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_action_belongs_to_a_call_that_may_be_it() {
        let call = |kind: &str, input: Value| -> ToolCall {
            let text = json!({"seq": 0, "type": "tool_call", "call": "c", "step": 0, "kind": kind, "input": input});
            let event = crate::trace::jsonl::read_event(text.to_string().as_bytes()).unwrap();
            let crate::trace::Body::ToolCall(call) = event.body else { panic!("no call") };
            call
        };
        let rm = json!({"command": "rm", "args": ["-rf", "x"]});
        let shell = json!({"command": "bash", "args": ["-lc", "ls -l"]});
        let file = |path: &str| json!({"path": path});
        for (kind, input, method, params, belongs) in [
            ("execute", json!({"command": "ls -l"}), "terminal/create", &shell, true),
            ("execute", json!({"command": "rm -rf x"}), "terminal/create", &rm, true),
            ("execute", json!({"command": "ls"}), "terminal/create", &rm, false),
            ("execute", json!({"description": "clean"}), "terminal/create", &rm, false),
            ("execute", json!({"line": ["rm", "-rf", "x"]}), "terminal/create", &rm, true),
            ("execute", json!(null), "terminal/create", &rm, true),
            ("other", json!({"x": 1}), "terminal/create", &rm, false),
            ("read", json!({"path": "a"}), "terminal/create", &rm, false),
            ("read", json!({"path": "/w/a"}), "fs/read_text_file", &file("/w/a"), true),
            ("read", json!({"path": "src"}), "fs/read_text_file", &file("/w/src/b"), true),
            ("read", json!({"path": "a"}), "fs/read_text_file", &file("/etc/passwd"), false),
            ("read", json!({"path": "a"}), "fs/write_text_file", &file("/w/a"), false),
            ("edit", json!({"path": "a"}), "fs/write_text_file", &file("/w/a"), true),
            ("edit", json!({"path": "a"}), "fs/write_text_file", &file("/w/b"), false),
            ("other", json!({"x": 1}), "fs/write_text_file", &file("/w/b"), true),
            ("search", json!({"pattern": "x"}), "fs/read_text_file", &file("/w/b"), true),
        ] {
            assert_eq!(
                may_belong_to(&call(kind, input.clone()), method, params, Some("/w")),
                belongs,
                "{kind} {input} {method}"
            );
        }
    }
}
