//! What an earlier form of a call showed and a later one does not: the texts of its input, its files and its tool. Pure.

use serde_json::{Map, Value};

use super::{is_still_shown, without_ellipsis};
use crate::trace::calls::{has_more, is_folder_key, is_remark_key, own_texts, working_directory};
use crate::trace::{ToolCall, ToolKind, view};

/// The meaning of the earlier form of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Earlier {
    /// The call may still have been written: a longer text continues a text.
    Growing,
    /// The agent asked for permission for this form, which is the whole action.
    Asked,
}

/// The later form of a call, with which an earlier one is compared.
struct Later<'a> {
    call: &'a ToolCall,
    earlier: Earlier,
    workspace: Option<&'a str>,
    /// All texts of the later input.
    texts: Vec<&'a str>,
}

/// Returns a text of the earlier input of a call that its later input neither shows nor continues. `call` has the kind, the title
/// and the folder of the call. Commands are compared elsewhere, and so are paths, unless the call is a command. A text may be under
/// another key later, and a change to a file may be shown as its new content instead of a patch.
pub(super) fn gone_text(
    call: &ToolCall,
    (old, new): (&Value, &Value),
    earlier: Earlier,
    workspace: Option<&str>,
) -> Option<String> {
    let later = Later { call, earlier, workspace, texts: texts_of(new) };
    later.gone(old, Some(new), true).map(str::to_owned)
}

impl Later<'_> {
    fn gone<'a>(&self, old: &'a Value, new: Option<&Value>, is_top: bool) -> Option<&'a str> {
        match (old, new) {
            // Arguments that arrive in pieces may be shown as the text of JSON until they are whole.
            (Value::String(old), Some(Value::Object(_) | Value::Array(_)))
                if old.trim_start().starts_with(['{', '[']) =>
            {
                None
            }
            (Value::String(text), _) => Some(text.as_str()).filter(|text| !self.shows(text)),
            (Value::Object(old), Some(Value::Object(new))) => {
                let compared = old.iter().filter(|(key, value)| !self.is_compared_elsewhere(key, value, old, is_top));
                compared.into_iter().find_map(|(key, value)| match new.get(key) {
                    None => texts_of(value).into_iter().find(|text| !self.shows(text) && self.is_lost(key, text, new)),
                    now => self.gone(value, now, false),
                })
            }
            (Value::Array(old), new) => {
                let item = |at: usize| new.and_then(|new| new.get(at));
                old.iter().enumerate().find_map(|(at, old)| self.gone(old, item(at), false))
            }
            (Value::Object(_), _) => texts_of(old).into_iter().find(|text| !self.shows(text)),
            (Value::Null | Value::Bool(_) | Value::Number(_), _) => None,
        }
    }

    /// Returns true if any text of a call of this kind may be its action.
    fn may_do_anything(&self) -> bool {
        matches!(self.call.kind, ToolKind::Fetch | ToolKind::Other)
    }

    /// Returns true if an entry of the earlier input is a command, a path or a remark. `map` is the object that has it.
    fn is_compared_elsewhere(&self, key: &str, value: &Value, map: &Map<String, Value>, is_top: bool) -> bool {
        let is_list = value.as_array().is_some_and(|list| list.iter().all(|item| !item.is_object()));
        let is_plain = value.is_string() || is_list;
        let has_command = map.keys().any(|key| view::is_command_key(key));
        let is_of_command = view::is_command_key(key) || (has_command && view::is_argument_key(key));
        let is_text_alone = value.is_string() && self.may_do_anything() && self.earlier == Earlier::Growing;
        (is_remark_key(key) && !self.may_do_anything())
            || (!is_top && matches!(key, "type" | "status"))
            || (is_plain && is_of_command && !is_text_alone)
            || (is_plain && view::is_path_key(key) && self.call.kind != ToolKind::Execute)
    }

    fn shows(&self, text: &str) -> bool {
        let folder = folder_of(self.call);
        let text = text.trim();
        self.texts.iter().any(|now| match self.earlier {
            Earlier::Growing => {
                now.trim_start().starts_with(without_ellipsis(text))
                    || is_still_shown(text, now, folder, self.workspace)
            }
            Earlier::Asked => now.trim() == text || is_same_file(text, now, folder, self.workspace),
        })
    }

    /// Returns true if the later input lacks the key of a text, and does not show in another form what the text changes.
    fn is_lost(&self, key: &str, text: &str, new: &Map<String, Value>) -> bool {
        let alone = Map::from_iter([(key.to_owned(), Value::String(text.to_owned()))]);
        is_folder_key(key)
            || view::is_path_key(key)
            || self.may_do_anything()
            || has_more(&Value::Object(alone), &Value::Object(new.clone()), &own_texts(self.call))
    }
}

/// Returns the texts of a value at every depth, without those that are blank.
fn texts_of(value: &Value) -> Vec<&str> {
    fn add<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::String(text) if !text.trim().is_empty() => found.push(text),
            Value::Array(list) => list.iter().for_each(|item| add(item, found)),
            Value::Object(map) => map.values().for_each(|item| add(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    add(value, &mut found);
    found
}

/// Returns the folder in which a call was made, if the call shows it.
pub(crate) fn folder_of(call: &ToolCall) -> Option<&str> {
    call.cwd.as_deref().or_else(|| working_directory(call).filter(|folder| !folder.trim().is_empty()))
}

/// The folders that systems write before `/tmp`, `/var` or `/home` once its link is resolved.
const RESOLVED: [&str; 3] = ["/private", "/System/Volumes/Data", "/usr"];

/// Returns true if two paths of a call name the same file: equal, or relative in one of them. If the workspace is known, both have
/// to lead to the same place, or one of them is written with the links resolved that lead to the workspace.
pub(super) fn is_same_file(one: &str, other: &str, cwd: Option<&str>, workspace: Option<&str>) -> bool {
    let is_end_of = |end: &str, whole: &str| {
        let end = end.strip_prefix("./").unwrap_or(end);
        whole.strip_suffix(end).is_some_and(|before| before.ends_with('/'))
    };
    let place = |path: &str| view::located(path, cwd, workspace);
    // `/private/tmp/w/a` and `a` in the workspace `/tmp/w`.
    let is_resolved = |path: &str, whole: &str| {
        let root = workspace.unwrap_or_default().trim_end_matches('/');
        let behind = |before: &str| whole.strip_prefix(before)?.strip_prefix(root)?.strip_prefix('/');
        !root.is_empty() && RESOLVED.iter().any(|before| behind(before) == Some(&*place(path)))
    };
    let is_same_place =
        || workspace.is_none() || place(one) == place(other) || is_resolved(one, other) || is_resolved(other, one);
    one == other || ((is_end_of(one, other) || is_end_of(other, one)) && is_same_place())
}

/// Puts back the values of an earlier input that became null in a later one, but for the command and the paths: the agent may
/// show others under another key.
pub(super) fn keep_nulled(old: &Value, new: &mut Value) {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return };
    for (key, value) in new.iter_mut() {
        match old.get(key) {
            Some(old) if value.is_null() && !view::is_command_key(key) && !view::is_path_key(key) => {
                value.clone_from(old)
            }
            Some(old) => keep_nulled(old, value),
            None => {}
        }
    }
}

/// Returns true if two names are those of different tools. A name that is a sentence may be a title, and the same name may have
/// the server of the tool before it.
pub(crate) fn is_other_tool(old: &str, new: &str) -> bool {
    let is_title = |name: &str| name.trim().contains(char::is_whitespace);
    let bare = |name: &str| {
        let name = name.rsplit_once("__").map_or(name, |(_, tool)| tool);
        name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase()
    };
    !is_title(old) && !is_title(new) && bare(old) != bare(new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(kind: ToolKind) -> ToolCall {
        ToolCall {
            call: "c".into(),
            step: 0,
            kind,
            name: None,
            title: None,
            input: None,
            without_input: false,
            unknown_kind: false,
            locations: Vec::new(),
            cwd: None,
        }
    }

    #[test]
    fn a_text_that_no_later_text_continues_is_gone() {
        use ToolKind::{Edit, Execute, Other};
        for (kind, old, new, gone) in [
            (Execute, json!({"code": "rm x"}), json!({"code": "ls"}), Some("rm x")),
            (Execute, json!({"code": "rm x"}), json!({"lang": "sh"}), Some("rm x")),
            (Execute, json!({"command": "sh", "args": {"x": "rm"}}), json!({"command": "sh"}), Some("rm")),
            (
                Execute,
                json!({"command": "cat", "path": "/w/s"}),
                json!({"command": "cat", "path": "/w/a"}),
                Some("/w/s"),
            ),
            (Execute, json!({"command": "ls", "cwd": "/etc"}), json!({"command": "ls"}), Some("/etc")),
            (Execute, json!({"command": "ls", "reason": "x"}), json!({"command": "ls", "process": null}), None),
            (Execute, json!({"code": "l"}), json!({"code": "ls"}), None),
            (Edit, json!({"path": "/w/a", "content": "s"}), json!({"path": "/w/a", "content": "x"}), Some("s")),
            (
                Edit,
                json!({"path": "a", "edits": [{"new": "s"}]}),
                json!({"path": "a", "edits": [{"new": "x"}]}),
                Some("s"),
            ),
            (Edit, json!({"filepath": "a", "diff": "@@\n+x"}), json!({"filePath": "a", "content": "x\n"}), None),
            (Other, json!({"arguments": {"x": "s"}}), json!({"arguments": {"x": "y"}}), Some("s")),
            (Other, json!({"x": "s"}), json!({"server": "m", "arguments": {"x": "s"}}), None),
            (Other, json!("{\"x\": \"s"), json!({"x": "s"}), None),
        ] {
            let found = gone_text(&call(kind), (&old, &new), Earlier::Growing, Some("/w"));
            assert_eq!(found.as_deref(), gone, "{old} {new}");
        }
        let longer = (&json!({"code": "ls"}), &json!({"code": "ls; rm x"}));
        assert_eq!(gone_text(&call(Execute), longer, Earlier::Asked, None).as_deref(), Some("ls"));
        assert_eq!(gone_text(&call(Execute), longer, Earlier::Growing, None), None);
    }

    #[test]
    fn a_file_is_the_same_at_the_same_place() {
        for (one, other, cwd, is_same) in [
            ("src/a", "/w/src/a", None, true),
            ("src/a", "/w/p/src/a", Some("/w/p"), true),
            ("src/a", "/w/p/src/a", None, false),
            ("src/a", "/private/w/src/a", None, true),
            ("src/a", "/etc/src/a", None, false),
            ("src/a", "/etc/w/src/a", None, false),
            ("/w/a", "/w/ab", None, false),
        ] {
            assert_eq!(is_same_file(one, other, cwd, Some("/w")), is_same, "{one} {other}");
        }
    }

    #[test]
    fn a_tool_has_one_name_with_and_without_its_server() {
        for (old, new, is_other) in [
            ("Read", "read", false),
            ("mcp__s__get_file", "getFile", false),
            ("Read a file", "read_file", false),
            ("Read", "Bash", true),
        ] {
            assert_eq!(is_other_tool(old, new), is_other, "{old} {new}");
        }
    }
}
