//! Fills variables into templates: the part of Nunjucks and Jinja that only names variables.

use serde_json::{Map, Value};

use super::promptfoo::values::{text, unclear};

/// The maximum depth of variables within variables.
const DEPTH: usize = 8;

/// Returns a text with the values of its variables, and the names that have no value.
///
/// # Errors
/// Returns the reason if the template does more than name variables: statements, filters, calls.
pub fn fill(text: &str, vars: &Map<String, Value>) -> Result<(String, Vec<String>), String> {
    let mut missing = Vec::new();
    let filled = filled(text, vars, 0, &mut missing)?;
    Ok((filled, missing))
}

/// Returns true if a text has variables or statements.
fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

fn filled(text: &str, vars: &Map<String, Value>, depth: usize, missing: &mut Vec<String>) -> Result<String, String> {
    if let Some(statement) = ["{%", "{#"].into_iter().find(|statement| text.contains(statement)) {
        return Err(format!("the template has `{statement}`"));
    }
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, behind) = after.split_once("}}").ok_or("a `{{` is not closed")?;
        done.push_str(before);
        done.push_str(&value(name.trim(), vars, depth, missing)?);
        rest = behind;
    }
    done.push_str(rest);
    Ok(done)
}

fn value(name: &str, vars: &Map<String, Value>, depth: usize, missing: &mut Vec<String>) -> Result<String, String> {
    let is_name = |part: &str| {
        let starts = part.starts_with(|c: char| c.is_alphabetic() || c == '_');
        starts && part.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    if !is_name(first) || !name.split('.').all(is_name) {
        return Err(format!("the template has `{{{{{name}}}}}`, which is not the name of a variable"));
    }
    if first == "env" && !vars.contains_key("env") {
        return Err(format!("the template has `{{{{{name}}}}}`, a variable of the environment"));
    }
    let mut found = vars.get(first);
    for part in parts {
        found = found.and_then(|value| value.get(part));
    }
    match found {
        None | Some(Value::Null) => {
            missing.push(name.to_owned());
            Ok(String::new())
        }
        Some(Value::String(text)) if depth < DEPTH && is_template(text) => filled(text, vars, depth + 1, missing),
        Some(Value::String(text)) if is_template(text) => {
            Err(format!("the variables in `{name}` are nested more than {DEPTH} deep"))
        }
        Some(value) => text(value)
            .ok_or_else(|| unclear(value).unwrap_or_else(|| format!("the value of `{name}` is a list or a map"))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_variables_are_filled_in() {
        let vars = json!({"a": "x", "b": {"c": 2}, "d": "{{ a }}!", "loop": "{{loop}}", "list": [1], "t": true});
        let vars = vars.as_object().unwrap();
        let text = |template: &str| fill(template, vars).unwrap();
        assert_eq!(text("{{a}} {{ b.c }} {{d}} {{t}} } {"), ("x 2 x! true } {".to_owned(), vec![]));
        assert_eq!(text("-{{none}}-"), ("--".to_owned(), vec!["none".to_owned()]));
        for template in
            ["{{a|upper}}", "{% if a %}", "{{a", "{{ a() }}", "{{loop}}", "{{list}}", "{{env.HOME}}", "{#a#}"]
        {
            assert!(fill(template, vars).is_err(), "{template}");
        }
    }
}
