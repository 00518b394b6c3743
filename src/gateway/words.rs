//! Small tools for JSON and texts: the working directory in requests, streamed pieces of texts, keys of objects.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// The forms in which agents state their working directory: `Working directory: /x`, `<cwd>/x</cwd>`, a list of
/// workspace directories.
static FOLDER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let forms = [
        r"(?:[Ww]orking [Dd]irectory|[Ww]orking in the directory)(?: is)?\**:?\s+`?(/[^\n`]*[^\s`.])",
        r"<cwd>(/[^<]+)</cwd>",
        r"Workspace Directories:\**\s*-\s*(/[^\n]+)",
    ];
    Regex::new(&forms.join("|")).ok()
});

/// Returns the agent's working directory, as stated.
pub(super) fn folder(text: &str) -> Option<String> {
    let found = FOLDER.as_ref()?.captures(text)?;
    found.iter().skip(1).flatten().next().map(|folder| folder.as_str().trim().to_owned())
}

/// Splits a text into pieces of at most 24 bytes.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    const LENGTH: usize = 24;
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(LENGTH.max(4)));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// Returns the text of a message's content: a text, or a list of blocks of which some contain text.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.as_str().or_else(|| block.get("text")?.as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Returns the only element of a list.
pub(super) fn only(list: &Value) -> Option<&Value> {
    list.as_array().filter(|list| list.len() == 1)?.first()
}

/// Returns the text of a key of a JSON object, or an empty text if the key has no text.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or("")
}

/// Returns the elements of a list in a JSON object, or an empty list if the key has no list.
pub(super) fn elements<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns the elements of a list; none if the value is not a list.
pub(super) fn listed(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Sets a key of a JSON object; does nothing if the value is not an object.
pub(super) fn set(value: &mut Value, key: &str, new: Value) {
    if let Some(map) = value.as_object_mut() {
        map.insert(key.to_owned(), new);
    }
}

/// Replaces the value of a key of a JSON object, if the key exists.
pub(super) fn reset(value: &mut Value, key: &str, new: Value) {
    if let Some(old) = value.get_mut(key) {
        *old = new;
    }
}

/// Appends to a text of a JSON object, and begins the text if there is none.
pub(super) fn append(value: &mut Value, key: &str, more: &str) {
    match value.get_mut(key) {
        Some(Value::String(text)) => text.push_str(more),
        _ => set(value, key, Value::from(more)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_tell_their_folder_in_several_ways() {
        for text in [
            "# Environment\n - Primary working directory: /w/x y\n - Is a git repository: false",
            "<environment_context>\n  <cwd>/w/x y</cwd>\n",
            "* Current working directory: /w/x y\n* Git",
            "I'm currently working in the directory: /w/x y\nHere",
            "<env>\n  Working directory: /w/x y\n  Workspace",
            "- **Workspace Directories:**\n  - /w/x y\n- **Dir",
            "The current working directory is `/w/x y`.",
        ] {
            assert_eq!(folder(text).as_deref(), Some("/w/x y"), "{text}");
        }
        assert_eq!(folder("nothing of the kind"), None);
    }

    #[test]
    fn pieces_are_the_text() {
        let text = "Grüße an alle, die das hier lesen, und noch etwas mehr 🎉🎉🎉🎉🎉🎉🎉🎉🎉.";
        assert!(pieces(text).len() > 3);
        assert_eq!(pieces(text).concat(), text);
        assert!(pieces("").is_empty());
    }
}
