//! Translates the assertions about skills and tool calls.

use serde_json::{Map, Value, json};

use super::super::super::refused::Refused;
use super::super::super::restrictions::restricting_if;
use super::values::value;
use super::{Context, TranslatedAssertion};
use crate::values::escaped_glob;

/// Translates `skill-used`.
pub fn skill_used(
    keys: &Map<String, Value>,
    context: &Context<'_>,
    is_not: bool,
) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let (list, names) = match named(&value(keys, context)?, &["name"])? {
        Named::Each(names) if is_not => ("not-used", names),
        Named::Each(names) => ("used", names),
        Named::Counted { name, min, max } => match (min, max, is_not) {
            (None, None | Some(0), true) | (None | Some(0), Some(0), false) => ("not-used", vec![name]),
            (None | Some(1), None, false) => ("used", vec![name]),
            _ => return Err(("value", "a number of uses has no equivalent".to_owned())),
        },
    };
    let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
    Ok(TranslatedAssertion::Grader("skills", restricting_if(list == "not-used", json!({list: names}))))
}

/// Translates `trajectory:tool-used`.
pub fn tool_used(
    keys: &Map<String, Value>,
    context: &Context<'_>,
    is_not: bool,
) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let (list, calls) = match named(&value(keys, context)?, &["pattern", "name"])? {
        Named::Each(names) => {
            let calls = names.iter().map(|name| glob(name).map(|name| json!({"name": name})));
            let calls: Vec<Value> = calls.collect::<Result<_, _>>()?;
            if !is_not {
                // One call may satisfy several names, and the entries of one grader need different calls.
                let bodies = calls.iter().map(|call| json!({"require": [call]})).collect();
                return Ok(TranslatedAssertion::Graders("tool-calls", bodies));
            }
            ("forbid", calls)
        }
        Named::Counted { name, min, max } => {
            let name = glob(&name)?;
            let min = min.unwrap_or(1);
            if max.is_some_and(|max| max < min) {
                return Err(("value", format!("no number of calls is accepted: the minimum is {min}")));
            }
            match (min, max, is_not) {
                (0, None, _) => return Err(("value", "any number is accepted".to_owned())),
                (0, Some(0), false) | (1, None, true) => ("forbid", vec![json!({"name": name})]),
                (1, None, false) | (0, Some(0), true) => ("require", vec![json!({"name": name})]),
                (min, Some(max), false) => ("require", vec![json!({"name": name, "count": {"min": min, "max": max}})]),
                (min, None, false) => ("require", vec![json!({"name": name, "count": {"min": min}})]),
                _ => return Err(("value", "a number of calls has no opposite".to_owned())),
            }
        }
    };
    let may_be_missing = calls.iter().all(|call| call.pointer("/count/min").and_then(Value::as_u64) == Some(0));
    let only_restricts = list == "forbid" || may_be_missing;
    Ok(TranslatedAssertion::Grader("tool-calls", restricting_if(only_restricts, json!({list: calls}))))
}

/// Translates `trajectory:tool-sequence`.
pub fn tool_sequence(
    keys: &Map<String, Value>,
    context: &Context<'_>,
) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let (steps, mode) = match value(keys, context)? {
        Value::Array(steps) => (steps, "in-order"),
        Value::Object(map) => {
            let mode = match map.get("mode") {
                None | Some(Value::Null) => "in-order",
                Some(Value::String(mode)) if mode == "in_order" => "in-order",
                Some(Value::String(mode)) if mode == "exact" => "exact",
                Some(Value::String(other)) => {
                    return Err(("value", format!("the mode `{other}` has no equivalent")));
                }
                Some(other) => return Err(("value", format!("the mode `{other}` has no equivalent"))),
            };
            (map.get("steps").and_then(Value::as_array).cloned().unwrap_or_default(), mode)
        }
        _ => return Err(("value", "a list of steps is missing".to_owned())),
    };
    if steps.is_empty() {
        return Err(("value", "a list of steps is missing".to_owned()));
    }
    let steps: Vec<Value> = steps.iter().map(step).collect::<Result<_, _>>()?;
    Ok(TranslatedAssertion::Grader("trajectory", json!({"mode": mode, "expected": steps, "agent": "any"})))
}

/// Returns the call of a step.
fn step(step: &Value) -> Result<Value, Refused<&'static str>> {
    let name = match step {
        Value::Object(map) if map.len() > 1 => return Err(("value", "a step has more than one key".to_owned())),
        Value::Object(map) => map.get("pattern").or_else(|| map.get("name")).and_then(Value::as_str),
        other => other.as_str(),
    };
    let name = name.ok_or_else(|| ("value", "a step names no tool".to_owned()))?;
    Ok(json!({"name": glob(name)?}))
}

/// Names, and how often each is wanted.
enum Named {
    /// Each of the names, at least once.
    Each(Vec<String>),
    /// One name, as often as the bounds say.
    Counted { name: String, min: Option<u64>, max: Option<u64> },
}

/// Returns the names of a value: a text, a list of texts, or a map with a name under one of these keys. The first key that is
/// there counts.
fn named(value: &Value, keys: &[&str]) -> Result<Named, Refused<&'static str>> {
    let wrong = |why: &str| ("value", why.to_owned());
    let map = match value {
        Value::Object(map) => map,
        Value::Array(list) => {
            let names: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
            let names = names.filter(|names| !names.is_empty() && names.iter().all(|name| !name.trim().is_empty()));
            let names = names.ok_or_else(|| wrong("the list is empty, or has an entry that is not a name"))?;
            return Ok(Named::Each(names.into_iter().map(str::to_owned).collect()));
        }
        other => {
            let name = other.as_str().filter(|name| !name.trim().is_empty());
            return Ok(Named::Each(vec![name.ok_or_else(|| wrong("it is neither a name nor a map"))?.to_owned()]));
        }
    };
    if let Some(unknown) =
        map.keys().find(|key| !keys.contains(&key.as_str()) && !["min", "max"].contains(&key.as_str()))
    {
        return Err(("value", format!("its key `{unknown}` has no equivalent")));
    }
    let name = keys.iter().find_map(|key| map.get(*key)).and_then(Value::as_str);
    let name = name.filter(|name| !name.trim().is_empty()).ok_or_else(|| wrong("it has no `name`"))?;
    if name.contains("{{") {
        return Err(wrong(VARIABLE));
    }
    let count = |key: &str| match map.get(key) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or(("value", format!("`{key}` is not a whole number"))),
    };
    Ok(Named::Counted { name: name.to_owned(), min: count("min")?, max: count("max")? })
}

/// The reason why a text of a map with a variable is refused.
const VARIABLE: &str = "the source does not fill variables in a map";

/// Returns the glob here for a glob of the source, in which `*` and `?` are the only signs, and upper and lower case are alike.
fn glob(written: &str) -> Result<String, Refused<&'static str>> {
    if written.is_empty() {
        return Err(("value", "the name of a tool is empty".to_owned()));
    }
    if written.contains("{{") {
        return Err(("value", VARIABLE.to_owned()));
    }
    let mut glob = String::new();
    for c in written.chars() {
        match c {
            '*' if glob.ends_with('*') => {}
            '*' | '?' => glob.push(c),
            _ if c.is_ascii_alphabetic() => glob.extend(['[', c.to_ascii_lowercase(), c.to_ascii_uppercase(), ']']),
            _ if c.is_alphabetic() => return Err(("value", format!("the letter `{c}` in any case has no equivalent"))),
            _ => glob.push_str(&escaped_glob(c.encode_utf8(&mut [0; 4]))),
        }
    }
    Ok(glob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::NameGlob;

    #[test]
    fn globs_match_names_in_any_case() {
        for (written, name, is_match) in [
            ("bash", "Bash", true),
            ("bash", "Bash2", false),
            ("web*", "WebFetch", true),
            ("*", "a/b", true),
            ("a**b", "A/x/B", true),
            ("r?ad", "Read", true),
            ("r?ad", "Rad", false),
            ("mcp__*", "mcp__db__drop", true),
            ("a[b]{c,d}!\\e", "A[B]{C,D}!\\E", true),
            ("a[b]", "ab", false),
            ("a.b", "axb", false),
        ] {
            let glob: NameGlob = glob(written).unwrap().parse().unwrap();
            assert_eq!(glob.is_match(name), is_match, "{written}: {name}");
        }
        for written in ["", "{{tool}}", "écrire"] {
            assert!(glob(written).is_err(), "{written}");
        }
    }
}
