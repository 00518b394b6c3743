//! The values of assertions: texts with variables, or the content of files.

use serde_json::{Map, Value, json};

use super::super::super::refused::Refused;
use super::super::super::{source, template};
use super::super::values;
use super::Context;

/// Returns true if a value names a program or a package that makes the value.
pub fn is_program(value: &str) -> bool {
    let path = value.strip_prefix("file://").unwrap_or_default();
    let is = |end: &str| path.ends_with(end) || path.contains(&format!("{end}:"));
    value.starts_with("package:") || [".js", ".cjs", ".mjs", ".ts", ".mts", ".py", ".rb"].into_iter().any(is)
}

/// Returns a text with its variables.
pub fn filled(text: &str, context: &Context<'_>) -> Result<String, Refused<&'static str>> {
    let (text, missing) = template::fill(text, context.vars).map_err(|why| ("value", why))?;
    match missing.first() {
        Some(name) => Err(("value", format!("the variable `{name}` has no value"))),
        None => Ok(text),
    }
}

/// Returns the content of a value that may name a file.
pub fn content(value: &str, context: &Context<'_>) -> Result<Value, Refused<&'static str>> {
    let Some(path) = value.strip_prefix("file://") else { return Ok(json!(filled(value, context)?)) };
    let file = source::named(context.folder, path).map_err(|why| ("value", why))?;
    let is_data = [".json", ".yaml", ".yml"].iter().any(|end| path.ends_with(end));
    if is_data {
        let read = values::read(&file, true);
        return read.map_err(|errors| ("value", errors.first().map_or_else(String::new, ToString::to_string)));
    }
    if !path.ends_with(".txt") && !path.ends_with(".md") {
        return Err(("value", format!("the file `{path}` is of a form that is not known")));
    }
    let text = crate::yaml::read(&file).map_err(|error| ("value", error.to_string()))?;
    Ok(json!(text.trim()))
}

/// Returns the value as a text that is not empty.
pub fn text(keys: &Map<String, Value>, context: &Context<'_>) -> Result<String, Refused<&'static str>> {
    let value = match keys.get("value") {
        Some(Value::String(text)) => content(text, context)?,
        Some(other) => other.clone(),
        None => return Err(("value", "there is no value".to_owned())),
    };
    let text = values::text(&value).ok_or(("value", "the value is a list or a map".to_owned()))?;
    if text.is_empty() {
        return Err(("value", "the value is empty, so it would hold for every answer".to_owned()));
    }
    Ok(text)
}

/// Returns the value with its variables. As in the source, the texts of a map are not filled.
pub fn value(keys: &Map<String, Value>, context: &Context<'_>) -> Result<Value, Refused<&'static str>> {
    Ok(match keys.get("value") {
        Some(Value::String(text)) => content(text, context)?,
        Some(Value::Array(list)) => {
            let filled = list.iter().map(|item| match item {
                Value::String(text) => content(text, context),
                other => Ok(other.clone()),
            });
            Value::Array(filled.collect::<Result<_, _>>()?)
        }
        Some(other) => other.clone(),
        None => return Err(("value", "there is no value".to_owned())),
    })
}

/// Returns the value as a list of texts, none of them empty.
pub fn list(keys: &Map<String, Value>, context: &Context<'_>) -> Result<Vec<String>, Refused<&'static str>> {
    let value = value(keys, context)?;
    let list = match &value {
        Value::String(text) => separated(text),
        other => values::texts(other).ok_or(("value", "the value is not a list of texts".to_owned()))?,
    };
    if list.is_empty() || list.iter().any(String::is_empty) {
        return Err(("value", "a text is empty, so it would be found in every answer".to_owned()));
    }
    Ok(list)
}

/// Splits a text at commas outside of double quotes.
fn separated(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut is_quoted = false;
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => parts.push(String::new()),
            other => parts.last_mut().into_iter().for_each(|part| part.push(other)),
        }
    }
    parts.iter().map(|part| part.trim().to_owned()).collect()
}
