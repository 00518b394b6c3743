//! Compares a permission request with the announced call that it is about.

use serde_json::Value;

use crate::trace::calls::{has_more, is_folder_key, is_same_command, own_texts};
use crate::trace::recorder::{CallReport, is_empty};
use crate::trace::{AskedCall, FileDiff, Location, NoticeCode, ToolCall, ToolKind, view};

/// The differences between a permission request and its call.
#[derive(Debug, Default, PartialEq)]
pub struct Differs {
    /// The values of the request that differ from the announcement, even if only in their wording.
    pub asked: AskedCall,
    /// The requested input, if it asks for another action than the announced input.
    pub updated_input: Option<Value>,
    /// The requested command, if the call was announced with another.
    other_command: Option<String>,
    /// The requested title and the announced one, of a command without an input: a title may be the command.
    pub other_title: Option<(String, String)>,
}

impl Differs {
    /// Compares a request with the announced call.
    ///
    /// Agents repeat a call's arguments under other key names. A different value under the same key, and a command, a path or
    /// another value that was not announced, count as a different request.
    pub fn between(call: &ToolCall, diffs: &[FileDiff], report: &CallReport, workspace: Option<&str>) -> Self {
        let mut found = Self::default();
        found.asked.kind = report.kind.filter(|kind| *kind != call.kind && call.kind != ToolKind::Other);
        let is_other_name = |name: &&String| call.name.as_ref().is_some_and(|known| known != *name);
        found.asked.name = report.name.as_ref().filter(is_other_name).cloned();

        let announced = view::paths(call.input.as_ref(), &call.locations, diffs, workspace);
        let asked = view::paths(report.input.as_ref(), &report.locations, &report.diffs, workspace);
        let is_elsewhere = !announced.is_empty() && asked.iter().any(|path| !announced.contains(path));
        if is_elsewhere {
            let of_diffs = report.diffs.iter().map(|diff| Location { path: diff.path.clone(), line: None });
            found.asked.locations = Some(report.locations.iter().cloned().chain(of_diffs).collect());
        }
        if let (Some(old), Some(new), None, None) = (&call.title, &report.title, &call.input, &report.input)
            && old != new
            && report.kind.unwrap_or(call.kind) == ToolKind::Execute
        {
            found.other_title = Some((new.clone(), old.clone()));
        }
        let new = report.input.as_ref().filter(|input| !is_empty(input));
        match (&call.input, new) {
            (Some(old), Some(new)) if view::canonical(old) != view::canonical(new) => {
                found.asked.input = Some(new.clone());
                let (old_command, new_command) = (view::command(Some(old)), view::command(Some(new)));
                found.other_command = new_command.filter(|new_command| {
                    old_command.as_ref().is_some_and(|old_command| !is_same_command(old_command, new_command))
                });
                if is_elsewhere || is_another(old, new, &announced, workspace) || has_more(new, old, &own_texts(call)) {
                    found.updated_input = Some(new.clone());
                }
            }
            // The call was announced by its files alone, and the request names others.
            (None, Some(new)) if is_elsewhere => {
                (found.asked.input, found.updated_input) = (Some(new.clone()), Some(new.clone()));
            }
            _ => {}
        }
        found
    }

    /// Returns true if the request asks for another command, other files or another input.
    pub fn is_of_another(&self) -> bool {
        self.other_command.is_some() || self.updated_input.is_some() || self.asked.locations.is_some()
    }

    /// Returns the code and text of the notice, if the request differs by more than its wording.
    pub fn notice(&self, request: &str) -> Option<(NoticeCode, String)> {
        if let Some(command) = &self.other_command {
            let text = format!(
                "the request {request} asks for the command `{command}`, but its call was announced with another command"
            );
            return Some((NoticeCode::OtherCommand, text));
        }
        let parts = [
            self.asked.kind.map(|kind| format!("the kind {kind}")),
            self.asked.name.as_ref().map(|name| format!("the tool {name}")),
            self.asked.locations.as_ref().map(|_| "paths".to_owned()),
            self.updated_input.as_ref().map(|_| "an input".to_owned()),
            self.other_title.as_ref().map(|(new, old)| format!("the title `{new}` (announced: `{old}`)")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let text =
            || format!("the request {request} asks for {}, but its call was announced differently", parts.join(", "));
        (!parts.is_empty()).then(|| (NoticeCode::OtherRequest, text()))
    }
}

/// Returns true if the input `new` asks for something else than `old`.
fn is_another(old: &Value, new: &Value, announced: &[String], workspace: Option<&str>) -> bool {
    let (Value::Object(old_keys), Value::Object(new_keys)) = (old, new) else { return true };
    let changed = new_keys.iter().any(|(key, new)| match (old_keys.get(key), new) {
        (None, _) => false,
        (Some(Value::String(old)), Value::String(new)) if view::is_path_key(key) => {
            view::relative(old, workspace) != view::relative(new, workspace)
        }
        (Some(Value::String(old)), Value::String(new)) if view::is_command_key(key) => !is_same_command(old, new),
        (Some(old), new) => view::canonical(old) != view::canonical(new),
    });
    let (old_commands, new_commands) = (view::commands(old), view::commands(new));
    let is_known = |command: &String| old_commands.iter().any(|it| is_same_command(it, command));
    let command = !new_commands.iter().all(is_known)
        || (new_commands.is_empty() && !old_commands.is_empty())
        || view::has_unread_command(new);
    let arguments = view::named_arguments(new).iter().any(|text| !view::named_arguments(old).contains(text));
    let paths = view::paths(Some(new), &[], &[], workspace);
    let elsewhere = paths.iter().any(|path| !announced.contains(path));
    // An input that names no file, where the announced one names some, may name others under keys of its own.
    let nowhere = paths.is_empty() && !view::paths(Some(old), &[], &[], workspace).is_empty();
    // Agents name the workspace as the folder of a command that was announced without one.
    let is_announced =
        |folder: &str| old_commands.iter().any(|it| it.contains(folder)) || view::relative(folder, workspace) == ".";
    let folder = new_keys
        .iter()
        .filter(|(key, _)| is_folder_key(key) && !old_keys.contains_key(*key))
        .filter_map(|(_, new)| new.as_str())
        .any(|folder| !folder.trim().is_empty() && !is_announced(folder));
    changed || command || arguments || elsewhere || nowhere || folder
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(input: Value, locations: &[&str]) -> ToolCall {
        ToolCall {
            call: "c".into(),
            step: 0,
            kind: ToolKind::Edit,
            name: None,
            title: None,
            input: Some(input),
            without_input: false,
            unknown_kind: false,
            locations: places(locations),
            cwd: None,
        }
    }

    fn places(paths: &[&str]) -> Vec<Location> {
        paths.iter().map(|path| Location { path: (*path).to_owned(), line: None }).collect()
    }

    #[test]
    fn other_words_are_no_other_request() {
        for (announced, asked) in [
            (json!({"command": "ls", "description": "x"}), json!({"command": "ls", "commands": ["ls"]})),
            (json!({"command": "/bin/bash -lc 'ls -l'"}), json!({"command": "ls -l"})),
            (json!({"path": "/w/a", "file_text": "x"}), json!({"fileName": "a", "diff": "+x"})),
            (json!({"filePath": "/w/a", "content": "x"}), json!({"filepath": "/w/a", "diff": "+x"})),
            (json!({"command": "ls", "cwd": "/w"}), json!({"command": "ls"})),
            (json!({"command": "ls"}), json!({"command": "ls", "cwd": "/w", "description": "lists", "limit": null})),
            (json!({"query": "x"}), json!({"q": "x"})),
            (json!({"path": "a", "old": "x"}), json!({"path": "a", "old": "x", "replace_all": false, "reason": "y"})),
            (json!({"patchText": "*** Begin Patch\n+x\n*** End Patch"}), json!({"diff": "@@\n+x"})),
            (
                json!({"path": "a", "old_str": "first", "new_str": "second"}),
                json!({"fileName": "a", "diff": "@@\n-first = 1\n+second = 1"}),
            ),
            (json!({"command": "ls"}), json!({"command": "ls", "toolCallId": "c", "type": "edit", "timeoutMs": 5})),
            (json!({"a": 1}), json!({"server": "s", "tool": "t", "arguments": {"a": 1}})),
        ] {
            let report = CallReport { input: Some(asked.clone()), ..CallReport::default() };
            let differs = Differs::between(&call(announced, &[]), &[], &report, Some("/w"));
            assert_eq!((&differs.updated_input, differs.notice("1")), (&None, None), "{asked}");
            assert_eq!(differs.asked.input.as_ref(), Some(&asked), "what differs stands in the Trace");
        }
    }

    #[test]
    fn another_request_is_told() {
        for (announced, asked, code) in [
            (json!({"path": "src/a.rs"}), json!({"path": "/etc/passwd"}), "other_request"),
            (json!({"path": "src/a.rs"}), json!({"file_path": "/etc/passwd"}), "other_request"),
            (json!({"path": "a", "content": "x"}), json!({"path": "a", "content": "y"}), "other_request"),
            (json!({"command": "ls"}), json!({"command": "rm -rf /"}), "other_command"),
            (json!({"cwd": "/w"}), json!({"command": "rm -rf /"}), "other_request"),
            (json!("text"), json!({"path": "a"}), "other_request"),
            (json!({"path": "a"}), json!({"target": "secret"}), "other_request"),
            (json!({"path": "a"}), json!({"paths": ["a", ["secret"]]}), "other_request"),
            (json!({"command": "ls"}), json!({"code": "rm -rf x"}), "other_request"),
            (json!({"command": "ls"}), json!({"command": "ls", "script": "rm -rf x"}), "other_request"),
            (json!({"command": "ls"}), json!({"command": "ls", "args": {"x": "; rm"}}), "other_request"),
            (json!({"command": "ls"}), json!({"command": ["ls", ["rm"]]}), "other_request"),
            (json!({"command": "ls"}), json!({"command": "ls", "cwd": "/etc"}), "other_request"),
            (json!({"path": "a"}), json!({"path": "a", "content": "x"}), "other_request"),
            (json!({"path": "a"}), json!({"path": "a", "diff": "+x"}), "other_request"),
            (json!({"path": "a", "text": "x"}), json!({"path": "a", "diff": "+x\n+y"}), "other_request"),
            (json!({"path": "a"}), json!({"path": "a", "edits": [{"new": "x"}]}), "other_request"),
            (
                json!({"path": "a", "old_str": "x", "new_str": "y"}),
                json!({"path": "a", "diff": "@@\n-x = 1\n+try { rm }"}),
                "other_request",
            ),
            (json!({"path": "a", "text": "x"}), json!({"path": "a", "diff": "+x\n+x"}), "other_request"),
            (json!({"command": "ls"}), json!({"command": "ls", "type": "force"}), "other_request"),
            (json!({"a": 1}), json!({"server": "s", "tool": "t", "arguments": {"a": 1, "b": 2}}), "other_request"),
            (json!({"a": 1}), json!({"server": "s", "arguments": {"a": 1}, "force": true}), "other_request"),
            (json!({"prompt": "x"}), json!({"prompt": "x", "url": "http://y"}), "other_request"),
            (json!({"prompt": "x"}), json!({"url": "http://y"}), "other_request"),
            (json!({"name": "x"}), json!({"name": "x", "force": true}), "other_request"),
        ] {
            let report = CallReport { input: Some(asked.clone()), ..CallReport::default() };
            let differs = Differs::between(&call(announced, &[]), &[], &report, Some("/w"));
            assert_eq!(differs.updated_input, Some(asked.clone()), "{asked}");
            assert_eq!(differs.notice("1").map(|(code, _)| code), Some(code.into()), "{asked}");
        }
        let report =
            CallReport { kind: Some(ToolKind::Delete), locations: places(&["/etc/b"]), ..CallReport::default() };
        let differs = Differs::between(&call(json!({"path": "a"}), &["/w/a"]), &[], &report, Some("/w"));
        let unseen = ToolCall { input: None, ..call(json!({}), &["/w/a"]) };
        let elsewhere = CallReport { input: Some(json!({"path": "/etc/b"})), ..CallReport::default() };
        let found = Differs::between(&unseen, &[], &elsewhere, Some("/w"));
        assert_eq!(found.updated_input, Some(json!({"path": "/etc/b"})), "announced by its files alone");
        assert_eq!(differs.asked.kind, Some(ToolKind::Delete));
        assert_eq!(differs.asked.locations, Some(places(&["/etc/b"])));
        assert_eq!((differs.updated_input.is_some(), differs.notice("1").is_some()), (false, true));
        // The title of a command without an input may be the command.
        let bare = ToolCall { kind: ToolKind::Execute, input: None, title: Some("ls".into()), ..call(json!({}), &[]) };
        let report = |title: &str| CallReport { title: Some(title.into()), ..CallReport::default() };
        let differs = Differs::between(&bare, &[], &report("rm -rf /"), None);
        assert!(differs.notice("1").unwrap().1.contains("`rm -rf /` (announced: `ls`)"));
        assert_eq!(Differs::between(&bare, &[], &report("ls"), None).notice("1"), None);
    }
}
