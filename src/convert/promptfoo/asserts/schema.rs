//! Keywords of JSON schemas that promptfoo knows.

use serde_json::{Map, Value};

/// Keywords whose value is a schema.
const ONE: [&str; 10] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "contentSchema",
];
/// Keywords whose value is a list of schemas.
const LISTS: [&str; 4] = ["allOf", "anyOf", "items", "oneOf"];
/// Keywords whose value is a map of schemas.
const MAPS: [&str; 5] = ["$defs", "definitions", "dependencies", "patternProperties", "properties"];
/// Further keywords.
const OTHERS: [&str; 37] = [
    "$anchor",
    "$async",
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "deprecated",
    "description",
    "discriminator",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "readOnly",
    "required",
    "title",
];
const MORE: [&str; 3] = ["type", "uniqueItems", "writeOnly"];

/// Returns a keyword that the source does not know: it then refuses the schema.
pub fn unknown(schema: &Map<String, Value>) -> Option<&str> {
    let is_known = |key: &str| [&ONE[..], &LISTS, &MAPS, &OTHERS, &MORE].iter().any(|keys| keys.contains(&key));
    schema.iter().find_map(|(key, value)| {
        if !is_known(key) {
            return Some(key.as_str());
        }
        match value {
            Value::Object(map) if MAPS.contains(&key.as_str()) => {
                map.values().find_map(|value| unknown(value.as_object()?))
            }
            Value::Object(map) if ONE.contains(&key.as_str()) => unknown(map),
            Value::Array(list) if LISTS.contains(&key.as_str()) => {
                list.iter().find_map(|value| unknown(value.as_object()?))
            }
            _ => None,
        }
    })
}
