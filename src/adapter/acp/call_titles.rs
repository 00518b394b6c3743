//! Decides whether a later title of a call is about the action that the call shows. Pure.

use serde_json::Value;

use crate::trace::{FileDiff, ToolCall, view};

/// Words that name a part of a file behind its name.
const WORDS_OF_PARTS: [&str; 8] = ["line", "lines", "l", "to", "from", "of", "offset", "limit"];

/// The minimum size in bytes of a cut text in a title that is recognised as the beginning of an action.
const MIN_CUT_BYTES: usize = 4;

/// Returns true if the title of a later announcement without an input may be about another action than the open call shows.
/// `asked` is the input that a request asked for instead. A call that shows nothing but a title may get any other.
pub(super) fn may_be_of_another(
    new: &str,
    call: &ToolCall,
    asked: Option<&Value>,
    diffs: &[FileDiff],
    workspace: Option<&str>,
) -> bool {
    let inputs: Vec<&Value> = [call.input.as_ref(), asked].into_iter().flatten().collect();
    let mut actions = view::written_paths(None, &call.locations, diffs);
    actions.extend(inputs.iter().flat_map(|input| view::written_paths(Some(input), &[], &[])));
    let whole = |path: &String| workspace.map(|root| format!("{root}/{path}"));
    let base = |path: &String| path.rsplit('/').next().map(str::to_owned);
    let forms = |path: &String| [whole(path), Some(view::relative(path, workspace)), base(path)].into_iter().flatten();
    actions.extend(actions.clone().iter().flat_map(forms));
    if inputs.is_empty() && actions.is_empty() {
        return false;
    }
    let old = call.title.as_deref().unwrap_or_default();
    inputs.iter().for_each(|input| add_texts(input, &mut actions));
    let known = actions.clone();
    actions.extend(inputs.iter().flat_map(|input| view::commands(input)));
    let says_nothing = without_ellipsis(new).chars().all(is_mark);
    let continues = || {
        let rest = new.strip_prefix(without_ellipsis(old)).filter(|_| !without_ellipsis(old).chars().all(is_mark));
        rest.is_some_and(|rest| is_remark(rest, &known))
    };
    !(says_nothing || new == old || continues() || actions.iter().any(|action| shows(new, action, &known)))
}

/// Returns true if a title is an action, perhaps cut, behind a few words and before a remark.
fn shows(title: &str, action: &str, known: &[String]) -> bool {
    let action = action.trim_matches(is_mark);
    if action.is_empty() {
        return false;
    }
    let is_of_words = |before: &str| {
        before.chars().all(|c| c.is_alphabetic() || is_mark(c)) && before.chars().next_back().is_none_or(is_mark)
    };
    let is_whole = title.match_indices(action).any(|(at, _)| {
        let (before, rest) = (&title[..at], &title[at + action.len()..]);
        is_of_words(before) && rest.chars().next().is_none_or(|c| !c.is_alphanumeric()) && is_remark(rest, known)
    });
    let cut = without_ellipsis(title);
    let is_cut = || {
        let starts = cut.char_indices().map(|(at, _)| at).filter(|at| is_of_words(&cut[..*at]));
        starts.into_iter().any(|at| cut.len() - at >= MIN_CUT_BYTES && action.starts_with(&cut[at..]))
    };
    is_whole || (cut.len() < title.trim_end().len() && is_cut())
}

/// Returns true if the text behind an action in a title names no further action: a part of a file, a number of lines, or in
/// parentheses a text of the call's input.
fn is_remark(rest: &str, known: &[String]) -> bool {
    let is_bracket = |c: char| "()[]".contains(c) || is_mark(c);
    let inner = rest.trim_matches(is_bracket);
    let is_known = || known.iter().any(|text| text.trim_matches(is_bracket) == inner);
    let is_bare = |c: char| c.is_alphanumeric() || "()[]:+-–,.#…`'\"".contains(c) || c.is_whitespace();
    let mut words = inner.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty());
    let is_part =
        inner.chars().all(is_bare) && words.all(|word| WORDS_OF_PARTS.contains(&word.to_ascii_lowercase().as_str()));
    is_part || is_known()
}

fn is_mark(c: char) -> bool {
    c.is_whitespace() || "`'\":$".contains(c)
}

/// Returns a title without the ellipsis at its end.
fn without_ellipsis(title: &str) -> &str {
    title.trim_end().trim_end_matches('…').trim_end_matches("...").trim_end()
}

fn add_texts(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|item| add_texts(item, found)),
        Value::Object(map) => map.values().for_each(|item| add_texts(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::trace::ToolKind;

    #[test]
    fn a_title_is_about_the_action_that_it_shows_and_nothing_more() {
        let file = json!({"file_path": "/w/src/a.rs"});
        let command = json!({"command": "cargo test --workspace --all", "description": "Runs the tests"});
        let short = json!({"command": "ls", "description": "the files"});
        for (input, old, new, may_be) in [
            (&file, "Read", "Read a.rs", false),
            (&file, "Read", "Read src/a.rs (1-50)", false),
            (&file, "Read", "Read src/a.rs lines 1-50", false),
            (&file, "Edit", "Edited src/a.rs (+3 -1)", false),
            (&file, "Read", "Read /w/src/b.rs", true),
            (&file, "Read", "Read /w/other/a.rs", true),
            (&file, "Read", "Read src/a.rs.bak", true),
            (&command, "Run", "Runs the tests", false),
            (&command, "Run", "$ cargo test --workspace --all", false),
            (&command, "Run", "cargo test --workspace…", false),
            (&command, "Run", "Run rm -rf secret", true),
            (&short, "ls", "ls (the files)", false),
            (&short, "ls", "ls (then rm -rf secret)", true),
            (&short, "ls", "ls; rm -rf secret", true),
            (&short, "ls", "rm tools", true),
            (&short, "...", "rm -rf secret", true),
            (&short, "", "rm -rf secret", true),
            (&short, "ls", "...", false),
            (&json!({"url": "https://x.y"}), "Fetch", "Fetched https://x.y", false),
            (&json!({"pattern": "foo"}), "Search", "Searched for \"foo\"", false),
        ] {
            let call = ToolCall {
                call: "c".into(),
                step: 0,
                kind: ToolKind::Other,
                name: None,
                title: Some(old.to_owned()),
                input: Some(input.clone()),
                without_input: false,
                unknown_kind: false,
                locations: Vec::new(),
                cwd: None,
            };
            assert_eq!(may_be_of_another(new, &call, None, &[], Some("/w")), may_be, "{old}: {new}");
        }
    }
}
