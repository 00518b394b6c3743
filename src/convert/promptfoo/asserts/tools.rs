//! Translates the assertions about skills and tool calls.

use serde_json::{Map, Value, json};

use super::super::super::parts::escaped_glob;
use super::super::super::refused::Refused;
use super::TranslatedAssertion;

/// Translates `skill-used`.
pub fn skill_used(keys: &Map<String, Value>, is_not: bool) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let value = keys.get("value").ok_or(("value", "there is no value".to_owned()))?;
    let list = match value {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    let (mut used, mut unused) = (Vec::new(), Vec::new());
    for item in &list {
        match wanted(item, "name")? {
            (name, 1, None) => used.push(name),
            (name, 0, Some(0)) => unused.push(name),
            _ => return Err(("value", "a number of uses has no equivalent".to_owned())),
        }
    }
    if is_not && list.len() > 1 {
        return Err(("value", "with several names, one of them may be used".to_owned()));
    }
    if is_not {
        std::mem::swap(&mut used, &mut unused);
    }
    let lists = [("used", used), ("not-used", unused)].into_iter().filter(|(_, names)| !names.is_empty());
    Ok(TranslatedAssertion::Grader(
        "skills",
        Value::Object(lists.map(|(key, names)| (key.to_owned(), json!(names))).collect()),
    ))
}

/// Translates `trajectory:tool-used`.
pub fn tool_used(keys: &Map<String, Value>, is_not: bool) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let value = keys.get("value").ok_or(("value", "there is no value".to_owned()))?;
    let list = match value {
        Value::Array(list) => list.clone(),
        one => vec![one.clone()],
    };
    if is_not && list.len() > 1 {
        return Err(("value", "with several names, one of them may be used".to_owned()));
    }
    let (mut require, mut forbid) = (Vec::new(), Vec::new());
    for item in &list {
        let (name, min, max) = wanted(item, "name")?;
        let name = escaped_glob(&name);
        match (min, max, is_not) {
            (0, Some(0), false) | (1, None, true) => forbid.push(json!({"name": name})),
            (1, None, false) | (0, Some(0), true) => require.push(json!({"name": name})),
            (min, Some(max), false) => require.push(json!({"name": name, "count": {"min": min, "max": max}})),
            (min, None, false) => require.push(json!({"name": name, "count": {"min": min}})),
            _ => return Err(("value", "a number of calls has no opposite".to_owned())),
        }
    }
    let lists = [("require", require), ("forbid", forbid)].into_iter().filter(|(_, list)| !list.is_empty());
    Ok(TranslatedAssertion::Grader(
        "tool-calls",
        Value::Object(lists.map(|(key, list)| (key.to_owned(), json!(list))).collect()),
    ))
}

/// Translates `trajectory:tool-sequence`.
pub fn tool_sequence(keys: &Map<String, Value>) -> Result<TranslatedAssertion, Refused<&'static str>> {
    let (steps, mode) = match keys.get("value") {
        Some(Value::Array(steps)) => (steps.clone(), "in-order"),
        Some(Value::Object(map)) => {
            let mode = match map.get("mode").and_then(Value::as_str).unwrap_or("in_order") {
                "in_order" => "in-order",
                "exact" => "exact",
                other => return Err(("value", format!("the mode `{other}` has no equivalent"))),
            };
            (map.get("steps").and_then(Value::as_array).cloned().unwrap_or_default(), mode)
        }
        _ => return Err(("value", "a list of steps is missing".to_owned())),
    };
    let names: Option<Vec<Value>> = steps
        .iter()
        .map(|step| Some(json!({"name": escaped_glob(step.as_str().or_else(|| step.get("name")?.as_str())?)})))
        .collect();
    let names = names.filter(|names| !names.is_empty()).ok_or(("value", "a step names no tool".to_owned()))?;
    if steps.iter().any(|step| step.as_object().is_some_and(|map| map.len() > 1)) {
        return Err(("value", "a step has more than a name".to_owned()));
    }
    Ok(TranslatedAssertion::Grader("trajectory", json!({"mode": mode, "expected": names, "agent": "any"})))
}

/// Returns a name, and the number of times that it is wanted.
fn wanted(value: &Value, name: &str) -> Result<(String, u64, Option<u64>), Refused<&'static str>> {
    if let Some(text) = value.as_str() {
        return Ok((text.to_owned(), 1, None));
    }
    let map = value.as_object().ok_or(("value", "it is neither a name nor a map".to_owned()))?;
    if let Some(unknown) = map.keys().find(|key| ![name, "min", "max"].contains(&key.as_str())) {
        return Err(("value", format!("its key `{unknown}` has no equivalent")));
    }
    let text = map.get(name).and_then(Value::as_str).ok_or(("value", format!("it has no `{name}`")))?;
    let count = |key: &str| match map.get(key) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or(("value", format!("`{key}` is not a whole number"))),
    };
    let max = count("max")?;
    let min = count("min")?.unwrap_or(u64::from(max != Some(0)));
    if max.is_some_and(|max| max < min) {
        return Err(("value", "no number is accepted".to_owned()));
    }
    if min == 0 && max.is_none() {
        return Err(("value", "any number is accepted".to_owned()));
    }
    Ok((text.to_owned(), min, max))
}
