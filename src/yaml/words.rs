//! Rewrites the deserializer's messages for readers: the error, the likely intention, and the known names.

use crate::text::{first_chars, marked};

/// A message, and how to fix the error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Explained {
    pub(super) message: String,
    pub(super) help: Option<String>,
}

/// Messages of serde that are rephrased. The text before such a message is the path to the value.
const KNOWN: [&str; 8] = [
    "unknown grader `",
    "unknown field `",
    "unknown variant `",
    "missing field `",
    "duplicate field `",
    "invalid type: ",
    "invalid value: ",
    "invalid length ",
];

pub(super) fn explain(raw: &str) -> Explained {
    let start = KNOWN.iter().filter_map(|known| raw.find(known)).min().unwrap_or(0);
    let (path, message) = raw.split_at(start);
    let path = path.trim_end_matches(": ");
    let place = if path.is_empty() { String::new() } else { format!(" in `{path}`") };
    if let Some((word, candidates)) = unknown(message, "unknown field `") {
        return Explained {
            message: format!("unknown key `{}`{place}", short(&word)),
            help: Some(known_words(&word, &candidates, "keys")),
        };
    }
    if let Some((word, candidates)) = unknown(message, "unknown variant `") {
        return Explained {
            message: format!("`{}` is not known{place}", short(&word)),
            help: Some(known_words(&word, &candidates, "words")),
        };
    }
    if let Some((word, candidates)) = unknown(message, "unknown grader `") {
        return Explained {
            message: format!("unknown grader `{}`{place}", short(&word)),
            help: Some(known_words(&word, &candidates, "graders")),
        };
    }
    if let Some(rest) = message.strip_prefix("missing field `") {
        let key = rest.trim_end_matches('`');
        return Explained {
            message: format!("the key `{key}` is missing{place}"),
            help: Some(format!("write `{key}: …`")),
        };
    }
    for prefix in ["invalid type: ", "invalid value: ", "invalid length "] {
        if let Some((found, wanted)) = message.strip_prefix(prefix).and_then(|rest| rest.rsplit_once(", expected ")) {
            let value = if path.is_empty() { String::new() } else { format!("`{path}` ") };
            let wants = if value.is_empty() { "expected" } else { "must be" };
            return Explained {
                message: format!("{value}{wants} {}, found {}", expected(wanted), was(found)),
                help: way_out(found, wanted),
            };
        }
    }
    Explained { message: raw.to_owned(), help: None }
}

/// Returns the unknown word and the known words, from a message of serde.
fn unknown(message: &str, prefix: &str) -> Option<(String, Vec<String>)> {
    let rest = message.strip_prefix(prefix)?;
    let (word, known) = rest.rsplit_once("`, expected ").or_else(|| rest.rsplit_once("`, there are "))?;
    // Every second piece between backticks is a name.
    let candidates = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    Some((word.to_owned(), candidates))
}

/// Returns help for an unknown word: the nearest known word, and all known words if they are few.
pub fn known_words<S: AsRef<str>>(word: &str, known: &[S], what: &str) -> String {
    let all = || known.iter().map(|k| format!("`{}`", k.as_ref())).collect::<Vec<_>>().join(", ");
    match nearest(word, known) {
        _ if known.is_empty() => format!("there are no {what} here"),
        Some(near) if known.len() > 12 => format!("did you mean `{near}`?"),
        Some(near) => format!("did you mean `{near}`? Known {what}: {}", all()),
        None => format!("known {what}: {}", all()),
    }
}

/// Returns help in a form that another sentence can follow.
pub fn sentence(help: &str) -> String {
    if help.ends_with('?') { help.to_owned() } else { format!("{help};") }
}

/// Returns the known word that was most likely intended.
pub fn nearest<'a, S: AsRef<str>>(word: &str, known: &'a [S]) -> Option<&'a str> {
    let plain = |text: &str| text.to_lowercase().replace(['_', ' '], "-");
    let word = plain(word);
    if word.chars().count() > 64 {
        return None;
    }
    let closeness = |candidate: &str| {
        let candidate = plain(candidate);
        let longest = word.chars().count().max(candidate.chars().count());
        let edits = strsim::osa_distance(&word, &candidate);
        // A prefix of a word, or its plural, is as near as a typing error.
        let part =
            word.len() >= 3 && candidate.len() >= 3 && (candidate.starts_with(&word) || word.starts_with(&candidate));
        (part || edits * 3 <= longest).then_some(edits)
    };
    let near = known.iter().filter_map(|k| Some((closeness(k.as_ref())?, k.as_ref())));
    near.min_by_key(|(edits, _)| *edits).map(|(_, candidate)| candidate)
}

fn expected(wanted: &str) -> String {
    match wanted {
        "a string" => "a text".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a sequence" => "a list".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0".to_owned(),
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a nonzero u32" => "a whole number from 1".to_owned(),
        "path string" => "a path".to_owned(),
        "map with a single key" => "a map with one key".to_owned(),
        "unit variant" => "a word without settings".to_owned(),
        "newtype variant" | "struct variant" | "tuple variant" => "a word with settings".to_owned(),
        _ if wanted.starts_with("struct ") || wanted == "a map" => "a map of keys".to_owned(),
        _ if wanted.starts_with("enum ") => "a word, or a map with one key".to_owned(),
        other => other.to_owned(),
    }
}

fn was(found: &str) -> String {
    if let Some(text) = found.strip_prefix("string ") {
        return format!("the text {}", short(text));
    }
    for number in ["integer ", "floating point "] {
        if let Some(value) = found.strip_prefix(number) {
            return format!("the number {value}");
        }
    }
    match found {
        "map" => "a map".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit value" | "null" | "Option value" => "nothing".to_owned(),
        "unit variant" => "a word without settings".to_owned(),
        "newtype variant" | "struct variant" | "tuple variant" => "a word with settings".to_owned(),
        other => other.strip_prefix("boolean ").unwrap_or(other).to_owned(),
    }
}

fn way_out(found: &str, wanted: &str) -> Option<String> {
    let help = match (found, wanted) {
        ("map", "map with a single key") => "indent its settings below the one key, and begin the next entry with `- `",
        ("unit value", _) => "write a value after the `:`, indent what belongs to it below, or remove the key",
        ("map", "a string") => "put a text that contains `: ` in quotes",
        ("unit variant", _) => "write a `:` after the word, and its settings below it; the reference has its keys",
        ("sequence", "a string") => "put a text that begins with `[` in quotes",
        (_, "a sequence" | "a list") => match found.strip_prefix("string ").map(|text| text.trim_matches('"')) {
            Some(text) if is_plain(text) => return Some(format!("write a list: `[{text}]`, or a line `- …` for each")),
            _ => "write a list: `[one, two]`, or a line `- …` for each",
        },
        (_, "a map") => "write a map: `{name: value}`, or a line `name: value` for each",
        _ => return None,
    };
    Some(help.to_owned())
}

/// Returns true if a text is short, and needs no quotes within a list.
fn is_plain(text: &str) -> bool {
    let is_allowed = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    !text.is_empty() && text.len() <= 40 && text.chars().all(is_allowed)
}

/// Returns a text, shortened for a message if it is too long.
pub fn short(text: &str) -> String {
    marked(first_chars(text, 80), text)
}
