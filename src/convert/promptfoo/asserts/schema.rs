//! JSON schemas of promptfoo, whose validator (Ajv) has rules of its own, as schemas of draft 7.

use serde_json::{Map, Value, json};

mod formats;

/// The draft that the source reads, in which `items` may be a list.
const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

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
/// Keywords that note something, and check nothing.
const NOTES: [&str; 12] = [
    "$comment",
    "$id",
    "$schema",
    "$vocabulary",
    "contentSchema",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];
/// Keywords of draft 6 and 7 that the source does not check, and a grader does.
const UNCHECKED: [&str; 2] = ["contentEncoding", "contentMediaType"];
/// Further keywords.
const OTHERS: [&str; 21] = [
    "$async",
    "$ref",
    "const",
    "enum",
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
    "required",
    "type",
    "uniqueItems",
];
/// Keywords of the source that compare texts by their format.
const LIMITS: [&str; 4] = ["formatExclusiveMaximum", "formatExclusiveMinimum", "formatMaximum", "formatMinimum"];

/// Returns the schema of draft 7 that accepts what the source accepts.
///
/// # Errors
/// Returns the reason if the source refuses the schema, or no keyword of draft 7 checks the same.
pub fn translated(schema: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    if let Some(named) = schema.get("$schema") {
        let named = named.as_str().unwrap_or_default();
        let known = ["http://json-schema.org/draft-07/schema", "http://json-schema.org/schema"];
        if !known.contains(&named.trim_end_matches('#')) {
            return Err(format!("the source refuses the schema, because it knows draft 7 only, not `{named}`"));
        }
    }
    let mut made = in_draft_7(schema)?;
    made.insert("$schema".to_owned(), json!(DRAFT_7));
    Ok(made)
}

/// Returns true if a schema accepts every value.
pub fn accepts_everything(schema: &Map<String, Value>) -> bool {
    schema.keys().all(|key| NOTES.contains(&key.as_str()) || ["$defs", "definitions"].contains(&key.as_str()))
}

/// Makes a schema accept objects only, as the source looks for nothing else in a text.
pub fn accept_objects_only(schema: &mut Map<String, Value>) {
    if schema.get("type") != Some(&json!("object")) {
        add(schema, Map::from_iter([("type".to_owned(), json!("object"))]));
    }
}

/// Returns the schema of an object, or of a list with one. promptfoo finds no other JSON in a text.
pub fn any_object() -> Map<String, Value> {
    let (object, list) = (json!({"type": "object"}), json!({"type": "array", "contains": {"type": "object"}}));
    Map::from_iter([("anyOf".to_owned(), json!([object, list])), ("$schema".to_owned(), json!(DRAFT_7))])
}

/// Returns the equivalent of a schema, or of one within it.
fn in_draft_7(schema: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    if let Some(why) = refusal(schema) {
        return Err(why);
    }
    let is_nullable = schema.get("nullable") == Some(&json!(true));
    let mut made = Map::new();
    for (key, value) in schema {
        let value = match key.as_str() {
            "$schema" | "format" | "nullable" => continue,
            key if UNCHECKED.contains(&key) => continue,
            "type" if is_nullable => with_null(value),
            key => within(key, value)?,
        };
        made.insert(key.clone(), value);
    }
    if let Some(format) = schema.get("format") {
        let name = format.as_str().unwrap_or_default();
        let unknown = || format!("the source refuses the schema, because its format `{name}` is not known");
        add(&mut made, formats::keywords(name).ok_or_else(unknown)?);
    }
    // Draft 7 ignores the keywords beside a reference, and the source does not.
    if made.len() > 1
        && let Some(reference) = made.get("$ref").cloned()
    {
        made.retain(|key, _| key != "$ref");
        add_to_all_of(&mut made, json!({"$ref": reference}));
    }
    Ok(made)
}

/// Returns the value of a keyword with the equivalents of the schemas in it.
fn within(key: &str, value: &Value) -> Result<Value, String> {
    let one = |value: &Value| match value {
        Value::Object(schema) => in_draft_7(schema).map(Value::Object),
        other => Ok(other.clone()),
    };
    match value {
        Value::Object(map) if MAPS.contains(&key) => {
            let schemas = map.iter().map(|(name, value)| one(value).map(|made| (name.clone(), made)));
            schemas.collect::<Result<Map<String, Value>, String>>().map(Value::Object)
        }
        Value::Object(_) if ONE.contains(&key) => one(value),
        Value::Array(list) if LISTS.contains(&key) => {
            list.iter().map(one).collect::<Result<Vec<Value>, String>>().map(Value::Array)
        }
        other => Ok(other.clone()),
    }
}

/// Returns the reason why the source refuses a schema, or why it has no equivalent.
fn refusal(schema: &Map<String, Value>) -> Option<String> {
    let refused = |why: String| Some(format!("the source refuses the schema, because {why}"));
    let has = |key: &str| schema.contains_key(key);
    if let Some(key) = LIMITS.iter().find(|key| schema.contains_key(**key)) {
        return Some(format!("no grader checks the keyword `{key}` of its schema"));
    }
    let lists: [&[&str]; 6] = [&ONE, &LISTS, &MAPS, &NOTES, &UNCHECKED, &OTHERS];
    if let Some(key) = schema.keys().find(|key| !lists.iter().any(|keys| keys.contains(&key.as_str()))) {
        return refused(format!("its keyword `{key}` is not known"));
    }
    if has("nullable") && !has("type") {
        return refused("its keyword `nullable` needs `type` beside it".to_owned());
    }
    if has("if") != (has("then") || has("else")) {
        return refused("its keyword `if` needs `then` or `else` beside it".to_owned());
    }
    if has("additionalItems") && !schema.get("items").is_some_and(Value::is_array) {
        return refused("its keyword `additionalItems` needs a list of `items` beside it".to_owned());
    }
    None
}

/// Returns types with `null` among them.
fn with_null(types: &Value) -> Value {
    let none = json!("null");
    match types {
        Value::String(_) if *types != none => json!([types, none]),
        Value::Array(list) if !list.contains(&none) => Value::Array(list.iter().cloned().chain([none]).collect()),
        other => other.clone(),
    }
}

/// Adds keywords to a schema: beside its own, or in `allOf` if the schema has one of them already.
fn add(schema: &mut Map<String, Value>, keywords: Map<String, Value>) {
    if keywords.keys().any(|key| schema.contains_key(key)) {
        add_to_all_of(schema, Value::Object(keywords));
    } else {
        schema.extend(keywords);
    }
}

/// Adds a schema at the end of `allOf`, so that references to the others stay right.
fn add_to_all_of(schema: &mut Map<String, Value>, part: Value) {
    let all = schema.entry("allOf").or_insert_with(|| json!([]));
    if let Some(list) = all.as_array_mut() {
        list.push(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(schema: Value) -> Result<Value, String> {
        translated(schema.as_object().unwrap()).map(|mut made| {
            assert_eq!(made.remove("$schema"), Some(json!(DRAFT_7)));
            Value::Object(made)
        })
    }

    #[test]
    fn keywords_that_draft_7_reads_differently_are_written_for_it() {
        for (schema, expected) in [
            (
                json!({"$ref": "#/definitions/s", "minLength": 5, "allOf": [true]}),
                json!({"minLength": 5, "allOf": [true, {"$ref": "#/definitions/s"}]}),
            ),
            (json!({"$ref": "#/definitions/s"}), json!({"$ref": "#/definitions/s"})),
            (
                json!({"type": "string", "format": "int64", "multipleOf": 5}),
                json!({"type": "string", "multipleOf": 5, "allOf": [{"multipleOf": 1}]}),
            ),
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (json!({"type": ["null", "number"], "nullable": true}), json!({"type": ["null", "number"]})),
            (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
            (
                json!({"properties": {"format": {"anyOf": [{"format": "float", "contentEncoding": "base64"}]}}}),
                json!({"properties": {"format": {"anyOf": [{}]}}}),
            ),
            // Values are no schemas.
            (
                json!({"const": {"format": "x"}, "enum": [{"nullable": 1}]}),
                json!({"const": {"format": "x"}, "enum": [{"nullable": 1}]}),
            ),
            (json!({"$schema": "http://json-schema.org/schema#", "format": "date"}), json!({"format": "date"})),
        ] {
            assert_eq!(made(schema.clone()), Ok(expected), "{schema}");
        }
    }

    #[test]
    fn what_the_source_refuses_is_refused() {
        for (schema, part) in [
            (json!({"properties": {"a": {"format": "iri"}}}), "its format `iri` is not known"),
            (json!({"items": [{"nullable": true}]}), "`nullable` needs `type`"),
            (json!({"$schema": "https://json-schema.org/draft/2020-12/schema"}), "it knows draft 7 only"),
            (json!({"$dynamicRef": "#a"}), "its keyword `$dynamicRef` is not known"),
            (json!({"discriminator": {"propertyName": "a"}}), "its keyword `discriminator` is not known"),
            (json!({"format": "date", "formatMinimum": "2024-01-01"}), "no grader checks the keyword `formatMinimum`"),
            (json!({"not": {"if": {"type": "string"}}}), "`if` needs `then` or `else`"),
            (json!({"items": {}, "additionalItems": false}), "`additionalItems` needs a list"),
        ] {
            let why = made(schema.clone()).unwrap_err();
            assert!(why.contains(part), "{schema}: {why}");
        }
    }
}
