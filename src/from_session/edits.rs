//! Decides whether changes of files remain, or were taken back by later ones. Pure.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::trace::calls::Call;

/// The keys of a tool's input with the text before an edit, and with the text after it.
const BEFORE: [&str; 4] = ["old_string", "oldText", "oldString", "old_str"];
const AFTER: [&str; 4] = ["new_string", "newText", "newString", "new_str"];

/// A change of a file. Without both texts, what changed is unknown; with the new one alone, the file is new.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Edit {
    /// The `seq` of the call.
    pub seq: u64,
    pub result_seq: u64,
    /// The path of the file, relative to the workspace.
    pub path: String,
    /// The text before the change: of the file, or of a part of it.
    pub old: Option<String>,
    /// The text after the change.
    pub new: Option<String>,
}

/// Returns the changes that a call made to a file, as its result or its input shows them. A text that was replaced by itself is
/// no change. `relative` makes paths of the call relative to the workspace.
pub(super) fn of_call(call: &Call, path: &str, relative: impl Fn(&str) -> String) -> Vec<Edit> {
    let is_file = |name: &str| relative(name) == path;
    let shown = call.diffs.iter().filter(|diff| is_file(&diff.path));
    let mut texts: Vec<_> = shown.map(|diff| (diff.old.clone(), diff.new.clone())).collect();
    if texts.is_empty() {
        texts = call.call.input.as_ref().map(|input| of_input(input, &is_file)).unwrap_or_default();
    }
    if texts.is_empty() {
        texts.push((None, None));
    }
    let changes = texts.into_iter().filter(|(old, new)| old.is_none() || old != new);
    let (seq, result_seq) = (call.seq, call.result_seq);
    changes.map(|(old, new)| Edit { seq, result_seq, path: path.to_owned(), old, new }).collect()
}

/// The text before a change and after it.
type Texts = (Option<String>, Option<String>);

fn of_input(input: &Value, is_file: &impl Fn(&str) -> bool) -> Vec<Texts> {
    let mut found = Vec::new();
    let edits = input.get("edits").and_then(Value::as_array).into_iter().flatten();
    for edit in [input].into_iter().chain(edits) {
        let text = |keys: [&str; 4]| keys.iter().find_map(|key| edit.get(*key)?.as_str()).map(str::to_owned);
        if let (Some(old), Some(new)) = (text(BEFORE), text(AFTER)) {
            found.push((Some(old), Some(new)));
        }
    }
    let values = input.as_object().into_iter().flat_map(|map| map.values()).chain([input]);
    for text in values.filter_map(Value::as_str).filter(|text| text.contains("*** Begin Patch")) {
        found.extend(of_patch(text, is_file));
    }
    found
}

/// Returns the hunks of a file in a patch of Codex's form.
fn of_patch(text: &str, is_file: &impl Fn(&str) -> bool) -> Vec<Texts> {
    const SECTIONS: [&str; 4] = ["Update File: ", "Add File: ", "Delete File: ", "End Patch"];
    let mut found = Vec::new();
    let (mut old, mut new) = (String::new(), String::new());
    let mut is_open = false;
    for line in text.lines() {
        let section = line.strip_prefix("*** ").filter(|rest| SECTIONS.iter().any(|start| rest.starts_with(start)));
        if (section.is_some() || line.starts_with("@@")) && !(old.is_empty() && new.is_empty()) {
            found.push((Some(std::mem::take(&mut old)), Some(std::mem::take(&mut new))));
        }
        if let Some(section) = section {
            is_open = section.strip_prefix("Update File: ").is_some_and(|name| is_file(name.trim()));
        } else if is_open && !line.starts_with("@@") {
            let (kind, rest) = line.split_at_checked(1).unwrap_or_default();
            for text in [(kind != "+").then_some(&mut old), (kind != "-").then_some(&mut new)].into_iter().flatten() {
                text.push_str(rest);
                text.push('\n');
            }
        }
    }
    found
}

/// Returns true if a file differs after changes, as far as they show it: a change that later ones took back does not count,
/// and neither does a file after a change that may have restored it.
pub(super) fn remain<'a>(edits: impl Iterator<Item = &'a Edit>) -> bool {
    let mut files: BTreeMap<&str, File<'a>> = BTreeMap::new();
    for edit in edits {
        files.entry(&edit.path).or_default().take(edit);
    }
    files.values().any(File::is_changed)
}

/// The changes of one file.
#[derive(Debug, Default)]
struct File<'a> {
    /// The text before and after each change that was not taken back.
    changes: Vec<(&'a str, &'a str)>,
    /// True if the file did not exist before.
    is_new: bool,
    /// True if the first change does not show its texts.
    is_unseen: bool,
    /// True if a change may have taken back earlier ones.
    is_unknown: bool,
}

impl<'a> File<'a> {
    fn take(&mut self, edit: &'a Edit) {
        let is_first = self.changes.is_empty() && !self.is_new && !self.is_unseen;
        match (edit.old.as_deref(), edit.new.as_deref()) {
            // No edit takes back that the file exists.
            (Some(_), Some(_)) if self.is_new => {}
            (Some(old), Some(new)) if !self.is_unseen => self.change(old, new),
            (None, Some(_)) if is_first => self.is_new = true,
            _ if is_first => self.is_unseen = true,
            _ => self.is_unknown = true,
        }
    }

    fn change(&mut self, old: &'a str, new: &'a str) {
        if let Some(at) = self.changes.iter().rposition(|change| takes_back((old, new), *change)) {
            self.changes.remove(at);
            return;
        }
        // One change may take back several.
        let mut text = old.to_owned();
        let mut back = None;
        for (at, (before, after)) in self.changes.iter().enumerate().rev() {
            if after.is_empty() || !text.contains(after) {
                break;
            }
            text = text.replacen(after, before, 1);
            if text == new {
                back = Some(at);
            }
        }
        match back {
            Some(at) => self.changes.truncate(at),
            None => self.changes.push((old, new)),
        }
    }

    fn is_changed(&self) -> bool {
        !self.is_unknown && (self.is_new || self.is_unseen || !self.changes.is_empty())
    }
}

/// Returns true if a change is the reverse of an earlier one. One of them may show more of the text around.
fn takes_back((old, new): (&str, &str), (before, after): (&str, &str)) -> bool {
    (old == after && new == before)
        || (!old.is_empty() && after.contains(old) && after.replacen(old, new, 1) == before)
        || (!after.is_empty() && old.contains(after) && old.replacen(after, before, 1) == new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_that_were_taken_back_do_not_remain() {
        for (edits, expected) in [
            (&[("a", Some("x"), Some("y"))][..], true),
            (&[("a", Some("x"), Some("y")), ("a", Some("y"), Some("x"))], false),
            (&[("a", Some("x"), Some("y")), ("b", Some("y"), Some("x"))], true),
            (&[("a", Some("x"), Some("y")), ("a", Some("1 y 2"), Some("1 x 2"))], false),
            (&[("a", Some("1 x 2"), Some("1 y 2")), ("a", Some("y"), Some("x"))], false),
            (&[("a", Some("x"), Some("y")), ("a", Some("y"), Some("z")), ("a", Some("z"), Some("x"))], false),
            (&[("a", Some("x"), Some("y")), ("a", Some("1"), Some("2")), ("a", Some("2y"), Some("1x"))], false),
            (&[("a", Some("x"), Some("y")), ("a", Some("1"), Some("2")), ("a", Some("y"), Some("x"))], true),
            // A new file, and changes of which the session does not show the texts.
            (&[("a", None, Some("x")), ("a", Some("x"), Some("y"))], true),
            (&[("a", None, Some("x")), ("a", None, None)], false),
            (&[("a", None, None)], true),
            (&[("a", None, None), ("a", Some("x"), Some("y"))], false),
            (&[("a", Some("x"), Some("y")), ("a", None, None), ("b", None, None)], true),
        ] {
            let texts = |text: &Option<&str>| text.map(str::to_owned);
            let of = |(path, old, new): &(&str, Option<&str>, Option<&str>)| Edit {
                path: (*path).to_owned(),
                old: texts(old),
                new: texts(new),
                ..Edit::default()
            };
            let made: Vec<Edit> = edits.iter().map(of).collect();
            assert_eq!(remain(made.iter()), expected, "{edits:?}");
        }
    }

    #[test]
    fn the_texts_of_an_input_are_found() {
        let is_file = |name: &str| name == "a.py";
        let both = |old: &str, new: &str| vec![(Some(old.to_owned()), Some(new.to_owned()))];
        for input in [
            json!({"old_string": "x", "new_string": "y"}),
            json!({"path": "a.py", "edits": [{"oldText": "x", "newText": "y"}]}),
        ] {
            assert_eq!(of_input(&input, &is_file), both("x", "y"), "{input}");
        }
        let patch = "*** Begin Patch\n*** Update File: b.py\n@@\n-1\n+2\n*** Update File: a.py\n@@ def f\n 0\n-x\n+y\n*** End Patch";
        assert_eq!(of_input(&json!({"input": patch}), &is_file), both("0\nx\n", "0\ny\n"));
        assert!(of_input(&json!({"content": "x"}), &is_file).is_empty());
    }
}
