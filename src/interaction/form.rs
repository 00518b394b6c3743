//! Fills in the forms of an agent with the case's answers. Pure.

use regex::Regex;
use serde_json::{Map, Number, Value};

use super::policy::by_answer;
use super::{Answer, Decision, Policy};

/// A question of the agent with fields to fill in (an elicitation of MCP or ACP).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Form {
    /// The agent's message.
    pub message: String,
    /// The fields, in the agent's order.
    pub fields: Vec<Field>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub name: String,
    pub required: bool,
    /// The JSON Schema of its value.
    pub schema: Value,
}

impl Form {
    /// Reads a request of ACP, `{message, requestedSchema}`, or of MCP, which has the same form.
    pub fn read(request: &Value) -> Self {
        let schema = request.get("requestedSchema").unwrap_or(&Value::Null);
        let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let field = |(name, schema): (&String, &Value)| Field {
            name: name.clone(),
            required: required.iter().any(|required| required == name),
            schema: schema.clone(),
        };
        let message = request.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { message, fields: fields.map(field).collect() }
    }
}

impl Field {
    /// Returns the texts that describe the field: its title, its description and its name.
    fn texts(&self) -> impl Iterator<Item = &str> {
        let text = |key: &str| self.schema.get(key).and_then(Value::as_str);
        [text("title"), text("description"), Some(self.name.as_str())].into_iter().flatten()
    }
}

impl Policy {
    /// Fills in a form with the case's answers, or returns why it is declined. An answer that matches a field's
    /// own texts is preferred to one that matches the message, which applies to required fields, or else to a
    /// single field. Required fields must be answered; others may be left out.
    pub fn answer_form(&self, form: &Form) -> (Option<Map<String, Value>>, Decision) {
        let mut filled = Map::new();
        let mut first = None;
        let of_message = self.answer_to(&form.message);
        if form.fields.is_empty() {
            return self.confirm(of_message);
        }
        let none_required = !form.fields.iter().any(|field| field.required);
        for field in &form.fields {
            let of_message = of_message.filter(|_| field.required || (none_required && filled.is_empty()));
            let own = field.texts().find_map(|text| self.answer_to(text));
            let Some((number, found)) = own.or(of_message) else {
                match field.schema.get("default") {
                    Some(default) if field.required => {
                        filled.insert(field.name.clone(), default.clone());
                    }
                    _ if field.required => {
                        let what = format!("the field `{}` of a question", field.name);
                        return (None, self.declines(&what));
                    }
                    _ => {}
                }
                continue;
            };
            match value(&field.schema, &found.answer) {
                Ok(value) => {
                    filled.insert(field.name.clone(), value);
                    first.get_or_insert(number);
                }
                // An answer for another field does not apply to an optional one.
                Err(_) if own.is_none() && !field.required => {}
                Err(why) => {
                    let reason = format!("answers[{number}] does not fit the field `{}`: {why}", field.name);
                    return (None, by_answer(Answer::RejectOnce, number, reason));
                }
            }
        }
        match first {
            Some(number) => (Some(filled), by_answer(Answer::AllowOnce, number, "the case answers the question")),
            None => (None, self.declines("a question")),
        }
    }

    /// Answers a form without fields, which is a question of yes or no.
    fn confirm(&self, found: Option<(usize, &super::QuestionAnswer)>) -> (Option<Map<String, Value>>, Decision) {
        let Some((number, found)) = found else { return (None, self.declines("a question")) };
        if super::policy::is_yes(&found.answer) {
            (Some(Map::new()), by_answer(Answer::AllowOnce, number, found.answer.clone()))
        } else {
            (None, by_answer(Answer::RejectOnce, number, found.answer.clone()))
        }
    }
}

/// Converts an answer to the value of a field.
fn value(schema: &Value, answer: &str) -> Result<Value, String> {
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or("string");
    let text = answer.trim();
    let shown = || format!("`{text}`");
    match kind {
        "array" => {
            let items = schema.get("items").unwrap_or(&Value::Null);
            let parts = text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty());
            let values = parts.map(|part| string(items, part)).collect::<Result<Vec<_>, _>>()?;
            within(values.len() as f64, schema, "minItems", "maxItems", "choices")?;
            Ok(Value::Array(values))
        }
        "boolean" => match text.to_lowercase().as_str() {
            word if super::policy::is_word_for_yes(word) => Ok(Value::Bool(true)),
            "false" | "no" | "n" | "off" | "0" => Ok(Value::Bool(false)),
            _ => Err(format!("{} is neither yes nor no", shown())),
        },
        "integer" => {
            let number: i64 = text.parse().map_err(|_| format!("{} is not a whole number", shown()))?;
            within(number as f64, schema, "minimum", "maximum", "")?;
            Ok(Value::from(number))
        }
        "number" => {
            let number = text.parse().ok().and_then(Number::from_f64);
            let number = number.ok_or_else(|| format!("{} is not a number", shown()))?;
            within(number.as_f64().unwrap_or_default(), schema, "minimum", "maximum", "")?;
            Ok(Value::Number(number))
        }
        _ => string(schema, answer),
    }
}

/// Converts an answer to a text, or to one of the allowed values, by the value or its title.
fn string(schema: &Value, answer: &str) -> Result<Value, String> {
    let text = answer.trim();
    let choices = choices(schema);
    if !choices.is_empty() {
        let same = |one: &str| one == text;
        let alike = |one: &str| one.to_lowercase() == text.to_lowercase();
        let by = |value: &dyn Fn(&str) -> bool| {
            let title = |(_, title): &&(String, Option<String>)| title.as_deref().is_some_and(value);
            choices.iter().find(|(one, _)| value(one)).or_else(|| choices.iter().find(title))
        };
        let found = by(&same).or_else(|| by(&alike));
        return found.map(|(value, _)| Value::String(value.clone())).ok_or_else(|| {
            let offered: Vec<&str> = choices.iter().map(|(value, _)| value.as_str()).collect();
            format!("`{text}` is not one of {}", offered.join(", "))
        });
    }
    within(answer.chars().count() as f64, schema, "minLength", "maxLength", "characters")?;
    let pattern = schema.get("pattern").and_then(Value::as_str);
    // A pattern that this program cannot read is left for the agent to check.
    if pattern.and_then(|pattern| Regex::new(pattern).ok()).is_some_and(|regex| !regex.is_match(answer)) {
        return Err(format!("`{text}` does not match `{}`", pattern.unwrap_or_default()));
    }
    Ok(Value::String(answer.to_owned()))
}

/// Returns the allowed values, with their titles.
fn choices(schema: &Value) -> Vec<(String, Option<String>)> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let list = |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let names = list("enumNames");
    let plain = list("enum").iter().enumerate();
    let plain = plain.filter_map(|(n, value)| Some((text(value)?, names.get(n).and_then(text))));
    let titled = list("oneOf").iter().chain(list("anyOf"));
    let titled = titled.filter_map(|one| Some((text(one.get("const")?)?, one.get("title").and_then(text))));
    plain.chain(titled).collect()
}

fn within(number: f64, schema: &Value, least: &str, most: &str, of: &str) -> Result<(), String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound(least).filter(|least| number < *least) {
        return Err(format!("expected at least {least} {of}, found {number}").replace(" ,", ","));
    }
    match bound(most).filter(|most| number > *most) {
        Some(most) => Err(format!("expected at most {most} {of}, found {number}").replace(" ,", ",")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::QuestionAnswer;
    use super::*;

    fn fill(request: Value, answers: &[(&str, &str)]) -> (Option<Value>, Option<String>, String) {
        let answer = |(question, answer): &(&str, &str)| QuestionAnswer {
            question: question.parse().unwrap(),
            answer: (*answer).to_owned(),
        };
        let policy = Policy::new("auto-approve".parse().unwrap(), answers.iter().map(answer).collect());
        let (filled, decision) = policy.answer_form(&Form::read(&request));
        (filled.map(Value::Object), decision.by.rule, decision.by.reason.unwrap_or_default())
    }

    fn one(schema: Value, answer: &str) -> Result<Value, String> {
        value(&schema, answer)
    }

    #[test]
    fn an_answer_becomes_what_its_field_takes() {
        for (schema, answer, expected) in [
            (json!({"type": "string"}), " as it is", json!(" as it is")),
            (json!({"type": "string", "enum": ["red", "blue"]}), "Blue", json!("blue")),
            (json!({"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]}), "red", json!("#f00")),
            (json!({"type": "string", "oneOf": [{"const": "a", "title": "b"}, {"const": "b"}]}), "b", json!("b")),
            (json!({"enum": ["x"], "enumNames": ["Ex"]}), "Ex", json!("x")),
            (json!({"type": "integer", "minimum": 1}), " 3 ", json!(3)),
            (json!({"type": "number"}), "2.5", json!(2.5)),
            (json!({"type": "boolean"}), "Yes", json!(true)),
            (json!({"type": "boolean"}), "approved", json!(true)),
            (json!({"type": "boolean"}), "off", json!(false)),
            (json!({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}), "b, A", json!(["b", "a"])),
            (json!({"type": "array", "items": {"anyOf": [{"const": "1", "title": "One"}]}}), "one", json!(["1"])),
        ] {
            assert_eq!(one(schema.clone(), answer), Ok(expected), "{schema}");
        }
        for (schema, answer, why) in [
            (json!({"type": "string", "enum": ["red", "blue"]}), "green", "not one of red, blue"),
            (json!({"type": "string", "maxLength": 2}), "abc", "expected at most 2 characters, found 3"),
            (json!({"type": "string", "pattern": "^x"}), "abc", "does not match"),
            (json!({"type": "integer"}), "2.5", "not a whole number"),
            (json!({"type": "integer", "maximum": 2}), "3", "expected at most 2, found 3"),
            (json!({"type": "number"}), "NaN", "is not a number"),
            (json!({"type": "boolean"}), "perhaps", "neither"),
            (
                json!({"type": "array", "items": {"enum": ["a"]}, "minItems": 2}),
                "a",
                "expected at least 2 choices, found 1",
            ),
        ] {
            let error = one(schema.clone(), answer).unwrap_err();
            assert!(error.contains(why), "{schema}: {error}");
        }
    }

    #[test]
    fn a_form_is_filled_in_field_by_field_or_not_at_all() {
        let request = json!({"message": "Set it up", "requestedSchema": {"type": "object", "required": ["size"], "properties": {
            "color": {"type": "string", "title": "Which color?"},
            "size": {"type": "integer", "description": "How big"},
        }}});
        let both = fill(request.clone(), &[("big", "3"), ("(?i)COLOR", "red")]);
        assert_eq!(both.0, Some(json!({"color": "red", "size": 3})));
        assert_eq!(both.1.as_deref(), Some("answers[1]"), "the first field's");
        assert_eq!(fill(request.clone(), &[("^size$", "3")]).0, Some(json!({"size": 3})));
        let (none, rule, why) = fill(request.clone(), &[("color", "red")]);
        assert_eq!((none, rule), (None, None));
        assert!(why.contains("the field `size` of a question is not a permission request"), "{why}");
        let (none, rule, why) = fill(request.clone(), &[("size", "big")]);
        assert_eq!((none, rule.as_deref()), (None, Some("answers[0]")));
        assert!(why.contains("does not fit the field `size`: `big` is not a whole number"), "{why}");
        // An answer that only matches the message applies to the required fields.
        assert_eq!(fill(request.clone(), &[("Set", "4")]).0, Some(json!({"size": 4})));
        assert_eq!(fill(request, &[]).0, None);
    }

    #[test]
    fn without_anything_required_the_message_is_answered_once() {
        let request = json!({"message": "Which?", "requestedSchema": {"properties": {
            "n": {"type": "integer"}, "choice": {"enum": ["a", "b"]}, "other": {"type": "string"}}}});
        assert_eq!(fill(request.clone(), &[("Which", "b")]).0, Some(json!({"choice": "b"})));
        assert_eq!(fill(request, &[("Which", "c"), ("other", "d")]).0, Some(json!({"other": "d"})));
    }

    #[test]
    fn what_is_required_and_has_a_default_needs_no_answer_but_one_is_needed() {
        let request = json!({"message": "m", "requestedSchema": {"required": ["a", "b"], "properties": {
            "a": {"type": "string", "default": "usual"}, "b": {"type": "string"}, "c": {"type": "boolean"}}}});
        assert_eq!(fill(request.clone(), &[("^b$", "x")]).0, Some(json!({"a": "usual", "b": "x"})));
        let only = json!({"message": "m", "requestedSchema": {"required": ["a"], "properties": {"a": {"default": 1}}}});
        assert_eq!(fill(only, &[("other", "x")]).0, None, "nobody answered");
    }

    #[test]
    fn a_form_without_fields_is_accepted_by_a_yes() {
        let request = json!({"message": "Go on?"});
        assert_eq!(fill(request.clone(), &[("Go", "yes, please")]).0, Some(json!({})));
        assert_eq!(
            fill(request.clone(), &[("Go", "better not")]),
            (None, Some("answers[0]".into()), "better not".into())
        );
        assert_eq!(fill(request, &[]).0, None);
    }
}
