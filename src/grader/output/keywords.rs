//! The keywords of a JSON Schema: a misspelt one, or a schema that has none of them, checks nothing.

use serde_json::Value;

use crate::yaml::words::nearest;

/// Returns what is wrong with the keywords of a schema, or of one within it.
pub fn wrong(schema: &Value) -> Option<String> {
    let checks = |key: &str| CHECKS.contains(&key) || OF_SCHEMAS.contains(&key) || OF_NAMES.contains(&key);
    let keys: Vec<&String> = schema.as_object().into_iter().flat_map(|map| map.keys()).collect();
    if let Some(wrong) = misspelt(schema) {
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
    unknown.find_map(near).or_else(|| schemas(schema).into_iter().find_map(misspelt))
}

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

    #[test]
    fn a_misspelt_keyword_and_a_schema_without_any_are_wrong() {
        for (schema, part) in [
            (json!({"typ": "string"}), "did you mean `type`"),
            (json!({"type": "object", "requird": ["b"]}), "did you mean `required`"),
            (json!({"properties": {"a": {"minLenght": 2}}}), "did you mean `minLength`"),
            (json!({"anyOf": [{"type": "string"}, {"patern": "x"}]}), "did you mean `pattern`"),
            (json!({"title": "t", "description": "d"}), "none of its keys checks anything: `title`, `description`"),
            (json!({"foo": 1}), "none of its keys"),
        ] {
            let told = wrong(&schema).unwrap_or_default();
            assert!(told.contains(part), "{schema}: {told}");
        }
        for schema in [
            json!({"type": "object", "properties": {"typ": {"type": "string"}, "any": {}, "noted": {"description": "d"}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 1}}}),
            json!({"type": "string", "x-note": 1, "$comment": "c", "examples": ["a"], "markdownText": "m"}),
            json!({"enum": [{"typ": 1}]}),
            json!(true),
        ] {
            assert_eq!(wrong(&schema), None, "{schema}");
        }
    }
}
