//! Compares what an agent asks the engine to do with its open calls: an action may belong to one of them. Pure.

use std::borrow::Cow;

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
        ("fs/write_text_file", Edit | Delete | Move) | ("fs/read_text_file", Edit | Delete | Move | Read) => {
            names(call, &path(), workspace).unwrap_or(true)
        }
        // A command, a search or an unknown tool may use any file, and which is known only if the call names it.
        ("fs/write_text_file", Execute | Other) | ("fs/read_text_file", Execute | Other | Search) => {
            names(call, &path(), workspace).unwrap_or(false)
        }
        _ => false,
    }
}

/// Returns true if a terminal that the agent asked for may belong to a call.
pub(super) fn may_run(call: &ToolCall, params: &Value) -> bool {
    matches!(call.kind, ToolKind::Execute | ToolKind::Other) && runs(call, params)
}

/// Returns the use of a file that an action of the engine is, if that is all that the trace lacks: a file is read, or
/// another file is written while a call is open that may change files. A program reads files of its own accord, too.
pub(super) fn use_of_file<'a>(
    mut open: impl Iterator<Item = Cow<'a, ToolCall>>,
    method: &str,
    params: &Value,
    workspace: Option<&str>,
) -> Option<UnseenAction> {
    use ToolKind::{Delete, Edit, Execute, Move, Other, Read};
    let kind = match method {
        "fs/read_text_file" => Read,
        "fs/write_text_file" if open.any(|call| matches!(call.kind, Edit | Delete | Move | Execute | Other)) => Edit,
        _ => return None,
    };
    let path = view::relative(&text_at(params, "path")?, workspace);
    (!path.is_empty()).then_some(UnseenAction { kind, path })
}

/// Returns true if a call shows no input, or the command of a terminal: alone, or as the last argument of a shell.
fn runs(call: &ToolCall, params: &Value) -> bool {
    // Without an input, the command of the call is not known to be another one.
    let Some(input) = call.shown_input() else { return true };
    let shown: Vec<Vec<String>> = view::commands(input).iter().map(|command| words(command)).collect();
    let program = text_at(params, "command").unwrap_or_default();
    let args = params.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let args: Vec<&str> = args.collect();
    let line = words(&std::iter::once(program.as_str()).chain(args.iter().copied()).collect::<Vec<_>>().join(" "));
    let is_shell = matches!(last_part(&program), "sh" | "bash" | "zsh" | "dash" | "fish" | "ksh");
    let script = args
        .split_last()
        .filter(|(_, flags)| is_shell && !flags.is_empty() && flags.iter().all(|flag| flag.starts_with('-')));
    let script = script.map(|(script, _)| words(script));
    shown.iter().any(|command| *command == line || Some(command) == script.as_ref())
}

/// Returns the words of a command, without quotes, the program without its folder.
fn words(command: &str) -> Vec<String> {
    let plain = command.replace(['\'', '"'], "");
    let mut words: Vec<String> = plain.split_whitespace().map(str::to_owned).collect();
    if let Some(program) = words.first_mut() {
        *program = last_part(program).to_owned();
    }
    words
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns whether a call names a file. `None` if it names none.
fn names(call: &ToolCall, path: &str, workspace: Option<&str>) -> Option<bool> {
    let shown = view::paths(call.shown_input(), &call.locations, &[], workspace);
    (!shown.is_empty()).then(|| shown.contains(&view::relative(path, workspace)))
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
            ("execute", json!({"command": "x"}), "terminal/create", &rm, false),
            ("execute", json!({"command": "rm -rf"}), "terminal/create", &rm, false),
            ("execute", json!({"command": "/bin/rm -rf 'x'"}), "terminal/create", &rm, true),
            ("execute", json!(null), "terminal/create", &rm, true),
            ("other", json!({"x": 1}), "terminal/create", &rm, false),
            ("read", json!({"path": "a"}), "terminal/create", &rm, false),
            ("read", json!({"path": "/w/a"}), "fs/read_text_file", &file("/w/a"), true),
            ("read", json!({"path": "src"}), "fs/read_text_file", &file("/w/src/b"), false),
            ("read", json!({"path": "a"}), "fs/read_text_file", &file("/etc/passwd"), false),
            ("read", json!({"path": "a"}), "fs/write_text_file", &file("/w/a"), false),
            ("edit", json!({"path": "a"}), "fs/write_text_file", &file("/w/a"), true),
            ("edit", json!({"path": "a"}), "fs/write_text_file", &file("/w/b"), false),
            ("other", json!({"x": 1}), "fs/write_text_file", &file("/w/b"), false),
            ("search", json!({"pattern": "x"}), "fs/read_text_file", &file("/w/b"), false),
            ("other", json!({"path": "b"}), "fs/write_text_file", &file("/w/b"), true),
            ("edit", json!(null), "fs/write_text_file", &file("/w/b"), true),
        ] {
            assert_eq!(
                may_belong_to(&call(kind, input.clone()), method, params, Some("/w")),
                belongs,
                "{kind} {input} {method}"
            );
        }
    }
}
