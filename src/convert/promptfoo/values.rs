//! Reads the values of a configuration as promptfoo's reader of YAML does: a text without quotes may be a number or
//! a date there.

use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value, json};

use super::super::{numbers, source};
use crate::yaml::{self, OwnedStep, Step, StepPart, YamlError};

/// The key of a map that takes the place of a value whose text is not known.
const UNCLEAR: &str = "\u{1}unclear";
/// The maximum number of values whose place is searched: each search parses the file again.
const MAX_SEARCHED_VALUES: usize = 2_000;

/// Texts that are numbers or dates in the source if they have no quotes.
static NUMBER_OR_DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let number = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?)";
    let date = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?";
    Regex::new(&format!(r"\A(?:{number}|0o[0-7]+|0x[0-9a-fA-F]+|{date}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\z"))
        .ok()
});
/// Forms that other YAML readers take for numbers and promptfoo for texts: `0b1`, `+0x1F`, `-0o7`.
static TEXT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"0b[01]|[-+]0[xo][0-9a-fA-F]").ok());

/// Returns the value of a YAML or JSON file. If `is_text` is true, assertions read every value as text; otherwise only
/// variables and assertions.
///
/// # Errors
/// Returns an error with its line if the file cannot be read.
pub fn read(path: &Path, is_text: bool) -> Result<Value, Vec<YamlError>> {
    let mut value = source::value(path)?;
    if path.extension().is_none_or(|extension| extension != "json") {
        let text = yaml::read(path).map_err(|error| vec![error])?;
        mark(&mut value, &text, is_text);
    }
    Ok(numbers::as_in_javascript(value))
}

/// Puts marks in the place of values that the source may read as other ones.
fn mark(value: &mut Value, text: &str, is_text: bool) {
    let has_other_numbers = TEXT.as_ref().is_some_and(|form| form.is_match(text));
    let mut search = Search { has_other_numbers, steps: Vec::new(), found: Vec::new() };
    search.value(value, String::new(), is_text);
    let mut searches = 0;
    for (pointer, steps) in search.found {
        let Some(place) = value.pointer_mut(&pointer) else { continue };
        if place.as_str().is_some_and(|value| is_quoted_everywhere(text, value)) {
            continue;
        }
        let borrowed: Vec<Step<'_>> = steps.iter().map(borrowed).collect();
        let written = (searches < MAX_SEARCHED_VALUES).then(|| yaml::find(text, &borrowed, StepPart::Value)).flatten();
        let written = written.and_then(|range| text.get(range)).unwrap_or_default();
        searches += 1;
        let is_other = match place {
            Value::String(_) => !written.starts_with(['"', '\'', '|', '>']),
            // A number whose text was not searched may be written in any form.
            _ => written.is_empty() || TEXT.as_ref().is_some_and(|form| form.is_match(written)),
        };
        if is_other {
            let shown = match &*place {
                Value::String(text) => text.clone(),
                number if written.is_empty() => number.to_string(),
                _ => written.to_owned(),
            };
            *place = json!({UNCLEAR: shown});
        }
    }
}

/// Returns true if a value is in a text, and has quotes around it wherever it is.
fn is_quoted_everywhere(text: &str, value: &str) -> bool {
    let mut places = text.match_indices(value).map(|(at, _)| at).peekable();
    let is_quoted = |at: usize| {
        let before = text.get(..at).and_then(|before| before.chars().next_back());
        let after = text.get(at + value.len()..).and_then(|after| after.chars().next());
        before == after && matches!(before, Some('"' | '\''))
    };
    // A text with a space may be written on two lines, where it is not found.
    !value.contains(char::is_whitespace) && places.peek().is_some() && places.all(is_quoted)
}

fn borrowed(step: &OwnedStep) -> Step<'_> {
    match step {
        OwnedStep::Key(key) => Step::Key(key),
        OwnedStep::Item(number) => Step::Item(*number),
    }
}

/// A search for values that the source may read as other ones.
struct Search {
    /// True if the text has numbers of other readers.
    has_other_numbers: bool,
    /// The steps to the value that is read.
    steps: Vec<OwnedStep>,
    /// The values that were found, each by its JSON pointer and its steps.
    found: Vec<(String, Vec<OwnedStep>)>,
}

impl Search {
    /// Searches a value at a JSON pointer. `is_text` is true if assertions read every value in it as text.
    fn value(&mut self, value: &Value, pointer: String, is_text: bool) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let is_text = is_text || ["vars", "assert", "assertionTemplates"].contains(&key.as_str());
                    let pointer = format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"));
                    self.steps.push(OwnedStep::Key(key.clone()));
                    self.value(value, pointer, is_text);
                    self.steps.pop();
                }
            }
            Value::Array(list) => {
                for (at, value) in list.iter().enumerate() {
                    self.steps.push(OwnedStep::Item(at));
                    self.value(value, format!("{pointer}/{at}"), is_text);
                    self.steps.pop();
                }
            }
            Value::String(text) if is_text && NUMBER_OR_DATE.as_ref().is_none_or(|form| form.is_match(text)) => {
                self.found.push((pointer, self.steps.clone()));
            }
            Value::Number(_) if is_text && self.has_other_numbers => self.found.push((pointer, self.steps.clone())),
            _ => {}
        }
    }
}

/// Returns the reason why a value, or a part of it, has no known text.
pub fn unclear(value: &Value) -> Option<String> {
    match value {
        Value::Object(map) => match map.get(UNCLEAR) {
            Some(text) => Some(format!(
                "`{}` is ambiguous without quotes: the source reads it as a date, a text or a number in another form; put the \
                 intended text in quotes",
                text.as_str().unwrap_or_default()
            )),
            None => map.values().find_map(unclear),
        },
        Value::Array(list) => list.iter().find_map(unclear),
        _ => None,
    }
}

/// Returns a scalar as the text that the source compares, or `None` for a list or a map.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(numbers::javascript(number)),
        other => super::super::parts::scalar(other),
    }
}

/// Returns the texts of a value that is one text or a list of scalars.
pub fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Array(list) => list.iter().map(text).collect(),
        other => Some(vec![text(other)?]),
    }
}

/// Checks that the value of each variable is known.
///
/// # Errors
/// Returns the reason if a variable has no known value.
pub fn known(vars: &Map<String, Value>) -> Result<(), String> {
    let found = vars.iter().find_map(|(name, value)| Some((name, unclear(value)?)));
    found.map_or(Ok(()), |(name, why)| Err(format!("the value of `{name}`: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_quotes_that_the_source_reads_otherwise_have_no_known_text() {
        assert!(NUMBER_OR_DATE.is_some() && TEXT.is_some());
        let of = |written: &str| {
            let text = format!("vars:\n  v: {written}\n");
            let mut value = yaml::parse::<Value>(Path::new("t.yaml"), &text).unwrap();
            mark(&mut value, &text, false);
            match unclear(&value) {
                Some(_) => None,
                None => Some(super::text(&value["vars"]["v"]).unwrap()),
            }
        };
        for (written, text) in [
            ("1.0", Some("1")),
            ("1.50", Some("1.5")),
            ("1e3", Some("1000")),
            ("0x1F", Some("31")),
            ("+1", Some("1")),
            ("12345678901234567890", Some("12345678901234567000")),
            ("010", None),
            ("-0b11", None),
            ("0b11", None),
            ("2024-01-01", None),
            ("'010'", Some("010")),
            ("\"2024-01-01\"", Some("2024-01-01")),
            ("|-\n    010", Some("010")),
            ("1_000", Some("1_000")),
            ("1:30", Some("1:30")),
            ("true", Some("true")),
            ("v1.0", Some("v1.0")),
        ] {
            assert_eq!(of(written).as_deref(), text, "{written}");
        }
        let text = "assert:\n- {type: contains-any, value: ['1.0', 2024-02-03]}\ndescription: 2024-01-01\n";
        let mut value = yaml::parse::<Value>(Path::new("t.yaml"), text).unwrap();
        mark(&mut value, text, false);
        assert!(unclear(&value["assert"]).unwrap().contains("`2024-02-03`") && value["description"] == "2024-01-01");
    }

    #[test]
    fn texts_with_quotes_are_known_in_any_number() {
        let text = format!("assert:\n{}", "- {type: contains, value: '010'}\n".repeat(MAX_SEARCHED_VALUES + 1));
        let mut value = yaml::parse::<Value>(Path::new("t.yaml"), &text).unwrap();
        mark(&mut value, &text, false);
        assert_eq!(unclear(&value), None);
        assert!(is_quoted_everywhere("a: '1'\nb: \"1\"\n", "1"));
        for text in ["a: '1'\nb: 1\n", "a: '1\"\n", "a: 2\n", "a: |-\n  1\n"] {
            assert!(!is_quoted_everywhere(text, "1"), "{text}");
        }
    }
}
