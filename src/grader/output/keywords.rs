//! The keywords of a JSON Schema: a misspelt one, or a schema that has none of them, checks nothing.

use serde_json::Value;

use crate::yaml::words::nearest;

/// Returns what is wrong with the keywords of a schema, or of one within it.
pub fn wrong(schema: &Value) -> Option<String> {
    let checks = |key: &str| match key {
        "format" => schema.get(key).and_then(Value::as_str).is_none_or(|format| FORMATS.contains(&format)),
        key => CHECKS.contains(&key) || OF_SCHEMAS.contains(&key) || OF_NAMES.contains(&key),
    };
    let keys: Vec<&String> = schema.as_object().into_iter().flat_map(|map| map.keys()).collect();
    if let Some(wrong) = misspelt(schema).or_else(|| not_in_draft(schema, Draft::Of2020)) {
        return Some(wrong);
    }
    if keys.is_empty() || keys.iter().any(|key| checks(key)) {
        return None;
    }
    let keys: Vec<String> = keys.into_iter().take(4).map(|key| format!("`{key}`")).collect();
    Some(format!("none of its keys checks anything: {}", keys.join(", ")))
}

/// Returns a keyword with a typing error. Any other unknown keyword is a comment.
fn misspelt(schema: &Value) -> Option<String> {
    let near = |key: &String| {
        let near = nearest(key, &known()).filter(|near| key.len().abs_diff(near.len()) <= 2)?.to_owned();
        Some(format!("JSON Schema has no keyword `{key}`, so it checks nothing; did you mean `{near}`?"))
    };
    let mut unknown = schema.as_object().into_iter().flat_map(|map| map.keys()).filter(|key| !is_known(key));
    let of_format = || misspelt_format(schema.get("format")?.as_str()?);
    unknown.find_map(near).or_else(of_format).or_else(|| schemas(schema).into_iter().find_map(misspelt))
}

/// Returns what is wrong with a format that is written like a known one. Any other unknown format is a comment, such as the
/// `int32` of OpenAPI.
fn misspelt_format(format: &str) -> Option<String> {
    if FORMATS.contains(&format) {
        return None;
    }
    let near = nearest(format, &FORMATS).filter(|near| format.len().abs_diff(near.len()) <= 2)?;
    Some(format!("JSON Schema has no format `{format}`, so it checks nothing; did you mean `{near}`?"))
}

/// Returns the draft that the `$schema` of a schema names, if it is one that lacks a known keyword.
fn draft(schema: &Value) -> Option<Draft> {
    let uri = schema.get("$schema")?.as_str()?;
    let drafts = [("draft-04", Draft::Four), ("draft-06", Draft::Six), ("draft-07", Draft::Seven)];
    let drafts = drafts.into_iter().chain([("2019-09", Draft::Of2019)]);
    drafts.into_iter().find(|(part, _)| uri.contains(part)).map(|(_, draft)| draft)
}

/// The drafts of JSON Schema, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Draft {
    Four,
    Six,
    Seven,
    Of2019,
    Of2020,
}

/// Returns the error about the first keyword or format that the schema's draft of JSON Schema does not have. `around` is the
/// draft of the enclosing schema, which applies if this one names none.
fn not_in_draft(schema: &Value, around: Draft) -> Option<String> {
    let draft = draft(schema).unwrap_or(around);
    let map = schema.as_object()?;
    let is_newer = |key: &str| SINCE.iter().any(|(since, words)| *since > draft && words.contains(&key));
    let is_gone = |key: &str| match key {
        "$recursiveRef" => draft != Draft::Of2019,
        // Beside a list of schemas in `items` it has a meaning in every draft.
        "additionalItems" => draft == Draft::Of2020 && !map.get("items").is_some_and(Value::is_array),
        _ => false,
    };
    if let Some(key) = map.keys().find(|key| is_newer(key) || is_gone(key)) {
        return Some(format!("the draft of the schema has no keyword `{key}`, so it checks nothing; see `$schema`"));
    }
    let format = map.get("format").and_then(Value::as_str);
    if let Some(format) = format.filter(|format| draft < Draft::Of2019 && ["duration", "uuid"].contains(format)) {
        return Some(format!("the draft of the schema has no format `{format}`, so it checks nothing; see `$schema`"));
    }
    schemas(schema).into_iter().find_map(|within| not_in_draft(within, draft))
}

/// The keywords that a draft added.
const SINCE: [(Draft, &[&str]); 4] = [
    (Draft::Six, &["const", "contains", "propertyNames"]),
    (Draft::Seven, &["if", "then", "else"]),
    (
        Draft::Of2019,
        &[
            "dependentRequired",
            "dependentSchemas",
            "unevaluatedItems",
            "unevaluatedProperties",
            "minContains",
            "maxContains",
        ],
    ),
    (Draft::Of2020, &["prefixItems", "$dynamicRef"]),
];

/// Returns the schemas directly within a schema.
fn schemas(schema: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    for (key, value) in schema.as_object().into_iter().flatten() {
        match value {
            Value::Array(list) if OF_SCHEMAS.contains(&key.as_str()) => found.extend(list),
            Value::Object(map) if OF_NAMES.contains(&key.as_str()) => found.extend(map.values()),
            Value::Object(_) if OF_SCHEMAS.contains(&key.as_str()) => found.push(value),
            _ => {}
        }
    }
    found
}

fn is_known(key: &str) -> bool {
    key.starts_with('$') || key.starts_with("x-") || known().contains(&key)
}

fn known() -> Vec<&'static str> {
    [CHECKS.as_slice(), &OF_SCHEMAS, &OF_NAMES, &NOTES].concat()
}

/// Keywords that compare a value.
const CHECKS: [&str; 25] = [
    "type",
    "enum",
    "const",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
    "dependencies",
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
];

/// The formats that are checked.
const FORMATS: [&str; 19] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Keywords with a schema, or with a list of schemas.
const OF_SCHEMAS: [&str; 16] = [
    "items",
    "prefixItems",
    "additionalItems",
    "unevaluatedItems",
    "contains",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "contentSchema",
];

/// Keywords with a schema for each name.
const OF_NAMES: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Keywords that check nothing.
const NOTES: [&str; 12] = [
    "title",
    "description",
    "default",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
    "nullable",
    "id",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SEVEN: &str = "http://json-schema.org/draft-07/schema#";

    #[test]
    fn a_misspelt_keyword_and_a_schema_without_any_are_wrong() {
        for (schema, part) in [
            (json!({"typ": "string"}), "did you mean `type`"),
            (json!({"type": "object", "requird": ["b"]}), "did you mean `required`"),
            (json!({"properties": {"a": {"minLenght": 2}}}), "did you mean `minLength`"),
            (json!({"anyOf": [{"type": "string"}, {"patern": "x"}]}), "did you mean `pattern`"),
            (json!({"title": "t", "description": "d"}), "none of its keys checks anything: `title`, `description`"),
            (json!({"foo": 1}), "none of its keys"),
            (json!({"format": "something"}), "none of its keys"),
            (json!({"properties": {"at": {"format": "datetime"}}}), "did you mean `date-time`"),
            (json!({"$schema": SEVEN, "dependentRequired": {"a": ["b"]}}), "no keyword `dependentRequired`"),
            (json!({"$schema": SEVEN, "properties": {"l": {"prefixItems": [true]}}}), "no keyword `prefixItems`"),
            (json!({"$schema": SEVEN, "format": "uuid"}), "no format `uuid`"),
            (json!({"properties": {"a": {"$schema": SEVEN, "minContains": 1}}}), "no keyword `minContains`"),
            (json!({"prefixItems": [true], "additionalItems": false}), "no keyword `additionalItems`"),
        ] {
            let error = wrong(&schema).unwrap_or_default();
            assert!(error.contains(part), "{schema}: {error}");
        }
        for schema in [
            json!({"type": "object", "properties": {"typ": {"type": "string"}, "any": {}, "noted": {"description": "d"}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}),
            json!({"type": "string", "x-note": 1, "$comment": "c", "examples": ["a"], "markdownText": "m"}),
            json!({"enum": [{"typ": 1}]}),
            json!({"type": "integer", "format": "int32"}),
            json!({"format": "uuid"}),
            json!({"$schema": SEVEN, "if": {"const": 1}, "then": {"minimum": 1}}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "prefixItems": [{"const": 1}]}),
            json!(true),
        ] {
            assert_eq!(wrong(&schema), None, "{schema}");
        }
    }
}
