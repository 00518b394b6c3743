//! JSON in an answer: values at a path, and validation by a schema.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use jsonschema::Validator;
#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, IgnoredAny, MapAccess};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use serde_json_path::JsonPath;

use super::{fences, keywords};
use crate::grader::checks::Checks;
use crate::grader::files::shown_file;
use crate::matcher::arguments::same;
use crate::reason_text;
use crate::regular;
use crate::repeated_key::repeated_key;
use crate::text::plural;
use crate::trace::view;
use crate::values::Pattern;
use crate::yaml::forms::{Forms, deserialize_forms, filled_list};
use crate::yaml::lists::not_null;

/// The maximum number of schema errors in a reason.
const SHOWN: usize = 4;
/// The maximum number of bytes read of a schema beside the case.
const MAX_SCHEMA_BYTES: u64 = 16 << 20;

/// A check of the values at a path of the JSON in an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct At {
    /// The path in JSONPath: `$.items[0].name`, `$..id`.
    pub path: Query,
    /// The expected value; if several values are found, the list of them.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub equals: Option<Value>,
    /// A value that one of the found values must equal.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub contains: Option<Value>,
    /// A regular expression that must match one of the texts found.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub regex: Option<Pattern>,
    /// The expected number of values.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// `true` if the path must find a value, `false` if it must find none.
    #[serde(default, deserialize_with = "not_null", skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
}

/// A JSONPath expression.
#[derive(Debug, Clone)]
pub struct Query {
    text: String,
    path: JsonPath,
}

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Forms<'_> for Query {
    const EXPECTED: &'static str = "a JSONPath such as `$.items[0].name`";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        let path = JsonPath::parse(text).map_err(|error| {
            let at = error.position() + 1;
            E::custom(format_args!("`{text}` is not a JSONPath, at character {at}: {}", error.message()))
        })?;
        Ok(Query { text: text.to_owned(), path })
    }
}

deserialize_forms!(Query, deserialize_str);

impl Serialize for Query {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[cfg(test)]
impl JsonSchema for Query {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonPath".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^\\$", "description": "a JSONPath (RFC 9535)"})
    }
}

/// The checks of paths: a single check, or a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Paths(pub Vec<At>);

impl<'de> Forms<'de> for Paths {
    const EXPECTED: &'static str = "a map such as `{path: $.name, equals: x}`, or a list of them";

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        At::deserialize(MapAccessDeserializer::new(map)).map(|at| Paths(vec![at]))
    }

    fn from_list<A: serde::de::SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        filled_list(seq).map(Paths)
    }
}

deserialize_forms!(Paths, deserialize_any);

#[cfg(test)]
impl JsonSchema for Paths {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonPaths".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        crate::yaml::forms::one_or_list::<At>(generator)
    }
}

/// A JSON Schema, written in place or in a file beside the case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Keeps {
    /// A schema written in place.
    Schema(Map<String, Value>),
    /// The path of a file beside the case.
    File(PathBuf),
}

impl<'de> Forms<'de> for Keeps {
    const EXPECTED: &'static str = "a JSON Schema, or the path of a file that holds one";

    fn from_text<E: Error>(file: &str) -> Result<Self, E> {
        if file.trim().is_empty() { Err(E::custom("this path is empty")) } else { Ok(Keeps::File(file.into())) }
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        Map::deserialize(MapAccessDeserializer::new(map)).map(Keeps::Schema)
    }
}

deserialize_forms!(Keeps, deserialize_any);

#[cfg(test)]
impl JsonSchema for Keeps {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonSchemaOrFile".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "a JSON Schema, or the path of a file beside the case that holds one",
            "anyOf": [{"type": "object", "minProperties": 1}, {"type": "string", "minLength": 1}]
        })
    }
}

#[derive(Debug)]
pub struct Answer {
    pub value: Value,
    /// A key that an object has twice. What the answer says at such a key is unknown.
    pub repeated: Option<String>,
}

/// The reason why an answer gives no JSON value.
#[derive(Debug)]
pub struct NoValue {
    /// The reason, as text.
    pub why: String,
    /// True if the answer is valid JSON that cannot be held in memory as a value: a number is too large, or it is nested too deeply.
    pub is_json: bool,
}

impl NoValue {
    fn of(what: &str, wrong: &str, text: &str, error: &serde_json::Error) -> Self {
        match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => Self { why: format!("{what} is JSON that cannot be read ({error})"), is_json: true },
            Err(_) => Self { why: format!("{what} {wrong} ({error})"), is_json: false },
        }
    }
}

/// Returns the JSON that an answer is, or that its last fenced block of JSON contains. A block that says `json` is one even if
/// it cannot be read; a block that says nothing is one if it can be read.
pub fn in_answer(output: &str) -> Result<Answer, NoValue> {
    let read = |text: &str| {
        let value = serde_json::from_str(text)?;
        Ok(Answer { value, repeated: repeated_key(text).map(Cow::into_owned) })
    };
    let error: serde_json::Error = match read(output.trim()) {
        Ok(answer) => return Ok(answer),
        Err(error) => error,
    };
    let whole = NoValue::of("the output", "is not JSON", output.trim(), &error);
    if whole.is_json {
        return Err(whole);
    }
    let blocks = fences::blocks(output);
    let has_json_block = blocks.iter().any(fences::Block::is_json);
    // Beside a block that says `json`, a number alone in a block that says nothing is the output of something.
    let counts = |answer: &Answer| !has_json_block || answer.value.is_object() || answer.value.is_array();
    let last = blocks.iter().rev().find_map(|block| {
        let text = block.text.trim();
        let no_value = |error| NoValue::of("the last block of JSON", "is broken", text, &error);
        let answer = read(text).map_err(no_value);
        match (block.is_json(), answer) {
            (true, answer) => Some(answer),
            (false, Err(none)) if block.word().is_empty() && none.is_json => Some(Err(none)),
            (false, answer) if block.word().is_empty() => answer.ok().filter(counts).map(Ok),
            (false, _) => None,
        }
    });
    last.unwrap_or(Err(whole))
}

impl At {
    /// Returns why the check is meaningless.
    pub fn refusal(&self) -> Option<String> {
        let path = &self.path.text;
        let nothing_else =
            self.equals.is_none() && self.contains.is_none() && self.regex.is_none() && self.count.is_none();
        if self.exists == Some(false) && !nothing_else {
            return Some(format!("contradicts itself: `{path}` must not exist, and its value is checked"));
        }
        let regex = self.regex.as_ref().filter(|regex| regex.is_in_any_text())?;
        Some(match regex.0.as_str() {
            "" => format!("checks nothing: the `regex` at `{path}` is empty"),
            regex => format!("checks nothing: the `regex` at `{path}` is /{regex}/, which matches any text"),
        })
    }

    /// Checks the values at the path.
    pub fn check(&self, checks: &mut Checks, json: &Value, answer_at: Option<u64>) {
        let found: Vec<&Value> = self.path.path.query(json).all();
        let path = &self.path.text;
        let show = |value: &Value| format!("`{}`", reason_text::short(&view::canonical(value), 200));
        let shown = match found.as_slice() {
            [] => "nothing".to_owned(),
            many => reason_text::first_few(many.iter().map(|value| show(value)), 5),
        };
        if let Some(count) = self.count {
            let is = found.len() as u64;
            checks.found(
                is == count,
                format!("{} found at `{path}`, {count} expected", plural(is, "value")),
                answer_at,
            );
        }
        let mut either = |holds: bool, what: String| {
            let not = if holds { String::new() } else { format!("{shown}, not ") };
            let reason = format!("the value at `{path}` is {not}{what}");
            checks.found(holds, reason, answer_at);
        };
        if let Some(wanted) = &self.equals {
            let all = Value::Array(found.iter().map(|value| (*value).clone()).collect());
            let holds = match found.as_slice() {
                [one] => same(one, wanted) || same(&all, wanted),
                _ => same(&all, wanted),
            };
            either(holds, show(wanted));
        }
        if let Some(wanted) = &self.contains {
            either(found.iter().any(|value| same(value, wanted)), format!("{} among others", show(wanted)));
        }
        if let Some(pattern) = &self.regex {
            let holds = found.iter().any(|value| match value {
                Value::String(text) => pattern.is_match(text),
                other => pattern.is_match(&view::canonical(other)),
            });
            either(holds, format!("a match of /{pattern}/"));
        }
        let only_there =
            self.equals.is_none() && self.contains.is_none() && self.regex.is_none() && self.count.is_none();
        match self.exists {
            Some(false) => either(found.is_empty(), "nothing".to_owned()),
            Some(true) => either(!found.is_empty(), "something".to_owned()),
            None if only_there => either(!found.is_empty(), "something".to_owned()),
            None => {}
        }
    }
}

fn compile(schema: &Value) -> Result<Validator, String> {
    if let Some(wrong) = keywords::wrong(schema) {
        return Err(wrong);
    }
    // A user who writes `format: email` expects it to be checked.
    jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|error| format!("it is not a JSON Schema: {}", reason_text::short(&error.to_string(), 300)))
}

impl Keeps {
    /// Returns why the schema is meaningless.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Keeps::Schema(schema) if schema.is_empty() => Some("checks nothing: `json-schema` is empty".to_owned()),
            Keeps::Schema(schema) => {
                let wrong = compile(&Value::Object(schema.clone())).err()?;
                Some(format!("has a `json-schema` that cannot be used: {wrong}"))
            }
            Keeps::File(_) => None,
        }
    }

    /// Returns the schema file beside the case.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Keeps::File(file) => Some(file),
            Keeps::Schema(_) => None,
        }
    }

    /// Makes the path of the file relative to a folder.
    pub fn count_from(&mut self, folder: &Path) {
        if let Keeps::File(file) = self {
            *file = folder.join(&*file);
        }
    }

    /// Validates the JSON of an answer.
    pub fn check(&self, checks: &mut Checks, json: &Value, folder: &Path, answer_at: Option<u64>) {
        let (name, schema) = match self {
            Keeps::Schema(schema) => ("the schema".to_owned(), Ok(Value::Object(schema.clone()))),
            Keeps::File(file) => (format!("`{}`", shown_file(file, folder)), read(&folder.join(file))),
        };
        let validator = match schema.and_then(|schema| compile(&schema)) {
            Ok(validator) => validator,
            Err(why) => return checks.unknown(format!("{name} of the case could not be used: {why}")),
        };
        let errors: Vec<String> = validator
            .iter_errors(json)
            .take(100)
            .map(|error| {
                let at = error.instance_path().to_string();
                let at = if at.is_empty() { "at the top".to_owned() } else { format!("at `{at}`") };
                format!("{at}: {}", reason_text::short(&error.to_string(), 200))
            })
            .collect();
        if errors.is_empty() {
            checks.held(format!("the JSON matches {name}"), answer_at);
        } else {
            let list = reason_text::first_few_long(&errors, SHOWN);
            checks.lacking(format!("the JSON does not match {name}: {list}"), answer_at);
        }
    }
}

fn read(file: &Path) -> Result<Value, String> {
    use std::io::Read;
    let mut text = String::new();
    let opened = regular::open(file).map_err(|error| format!("it could not be read: {error}"))?;
    opened
        .take(MAX_SCHEMA_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| format!("it could not be read: {error}"))?;
    serde_json::from_str(&regular::without_bom(text)).map_err(|error| format!("it is not JSON: {error}"))
}
