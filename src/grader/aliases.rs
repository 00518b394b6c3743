//! The `trajectory:*` assertions of promptfoo that have an equivalent grader here: they are read as that
//! grader.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::Kind;
use super::entry::Common;
use super::shared_keys::{SharedKeys, Split};
use super::tool_calls::{Count, RequiredCall, ToolCalls};
use super::trajectory::{Item, Mode, Trajectory};
use crate::matcher::arguments::MatchArgs;
use crate::matcher::{Matcher, Speaker};
use crate::values::NameGlob;
use crate::yaml::forms::{self, Forms, deserialize_forms};
use crate::yaml::lists::OneOrList;
use crate::yaml::lists::not_null;

/// The names of the supported assertions.
pub const WORDS: [&str; 4] =
    ["trajectory:tool-used", "trajectory:tool-args-match", "trajectory:tool-sequence", "trajectory:step-count"];

/// Reads the body of an assertion. `name` is the tool's name in an assertion, so only the other common keys of
/// graders are available.
pub fn read<'de, D: Deserializer<'de>>(word: &str, body: D, common: &mut Common) -> Result<Kind, D::Error> {
    let mut weights = Weights(Common::default());
    let written: Written<Fields> = Written::deserialize(Split { inner: body, beside: &mut weights })?;
    *common = weights.0;
    let kind = match word {
        "trajectory:tool-used" => tool_used(written),
        "trajectory:tool-args-match" => args_match(written),
        "trajectory:tool-sequence" => sequence(written),
        _ => step_count(written),
    };
    kind.map_err(|why| D::Error::custom(format_args!("`{word}` {why}")))
}

/// Returns the schema of the body of an assertion.
#[cfg(test)]
pub fn schema(word: &str) -> Value {
    let text = serde_json::json!({"type": "string", "minLength": 1});
    let count = serde_json::json!({"type": "integer", "minimum": 0});
    let tool = serde_json::json!({"name": text, "pattern": text});
    let map = |more: Value, required: &[&str]| {
        let mut properties = serde_json::json!({"weight": {"type": "number", "minimum": 0}, "gate": {"type": "boolean"}, "diagnostic": {"type": "boolean"}});
        if let (Value::Object(all), Value::Object(tool), Value::Object(more)) = (&mut properties, &tool, more) {
            all.extend(tool.clone());
            all.extend(more);
        }
        serde_json::json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
    };
    let body = match word {
        "trajectory:tool-used" => {
            let list = serde_json::json!({"type": "array", "minItems": 1, "items": text});
            serde_json::json!({"anyOf": [text, list, map(serde_json::json!({"min": count, "max": count}), &[])]})
        }
        "trajectory:tool-args-match" => {
            let ignore = serde_json::json!({"anyOf": [text, {"type": "array", "items": text}]});
            let object = serde_json::json!({"type": "object"});
            map(
                serde_json::json!({"args": object, "arguments": object, "mode": {"enum": ["partial", "exact"]}, "ignore": ignore}),
                &[],
            )
        }
        "trajectory:tool-sequence" => {
            let step = serde_json::json!({"anyOf": [text, map(serde_json::json!({"type": {"const": "tool"}}), &[])]});
            let steps = serde_json::json!({"type": "array", "minItems": 1, "items": step});
            serde_json::json!({"anyOf": [steps, map(serde_json::json!({"mode": {"enum": ["in_order", "exact"]}, "steps": steps}), &["steps"])]})
        }
        _ => map(serde_json::json!({"type": {"const": "tool"}, "min": count, "max": count}), &["type"]),
    };
    serde_json::json!({"description": "as in promptfoo", "allOf": [body]})
}

/// The common keys beside the assertion's own.
struct Weights(Common);

impl SharedKeys for Weights {
    const KEYS: &'static [&'static str] = &["weight", "gate", "diagnostic"];

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &'static str, map: &mut A) -> Result<(), A::Error> {
        self.0.read(key, map)
    }
}

/// A name, several names, or a map.
enum Written<T> {
    List(Vec<Step>),
    Map(T),
}

impl<'de, T: Deserialize<'de>> Forms<'de> for Written<T> {
    const EXPECTED: &'static str = "the name of a tool, a list of names, or a map";

    fn from_text<E: Error>(name: &str) -> Result<Self, E> {
        Ok(Written::List(vec![Step { name: Some(name.to_owned()), ..Step::default() }]))
    }

    fn from_list<A: SeqAccess<'de>>(seq: A) -> Result<Self, A::Error> {
        let steps: Vec<NameOrStep> = forms::list(seq)?;
        Ok(Written::List(steps.into_iter().map(|step| step.0).collect()))
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Written::Map)
    }
}

deserialize_forms!([T: Deserialize<'de>] Written<T>, deserialize_any);

/// A tool, by its type, its name or a pattern.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Step {
    #[serde(rename = "type", deserialize_with = "not_null")]
    kind: Option<String>,
    #[serde(deserialize_with = "not_null")]
    name: Option<String>,
    #[serde(deserialize_with = "not_null")]
    pattern: Option<String>,
}

struct NameOrStep(Step);

impl<'de> Deserialize<'de> for NameOrStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Written::<Step>::deserialize(deserializer)? {
            Written::Map(step) => Ok(NameOrStep(step)),
            Written::List(mut list) if list.len() == 1 => Ok(NameOrStep(list.remove(0))),
            Written::List(_) => Err(D::Error::custom("a step is the name of a tool, or a map")),
        }
    }
}

/// The keys of all four assertions; each assertion accepts only its own.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Fields {
    #[serde(rename = "type", deserialize_with = "not_null")]
    kind: Option<String>,
    #[serde(deserialize_with = "not_null")]
    name: Option<String>,
    #[serde(deserialize_with = "not_null")]
    pattern: Option<String>,
    #[serde(deserialize_with = "not_null")]
    min: Option<u64>,
    #[serde(deserialize_with = "not_null")]
    max: Option<u64>,
    #[serde(deserialize_with = "not_null")]
    args: Option<Map<String, Value>>,
    #[serde(deserialize_with = "not_null")]
    arguments: Option<Map<String, Value>>,
    #[serde(deserialize_with = "not_null")]
    mode: Option<String>,
    #[serde(deserialize_with = "not_null")]
    ignore: Option<OneOrList<String>>,
    #[serde(deserialize_with = "not_null")]
    steps: Option<Vec<NameOrStep>>,
}

impl Fields {
    /// Refuses keys that this assertion does not take.
    fn only(&self, taken: &[&str]) -> Result<(), String> {
        let Self { kind, name, pattern, min, max, args, arguments, mode, ignore, steps } = self;
        let keys = [
            ("type", kind.is_some()),
            ("name", name.is_some()),
            ("pattern", pattern.is_some()),
            ("min", min.is_some()),
            ("max", max.is_some()),
            ("args", args.is_some()),
            ("arguments", arguments.is_some()),
            ("mode", mode.is_some()),
            ("ignore", ignore.is_some()),
            ("steps", steps.is_some()),
        ];
        match keys.iter().find(|(key, is_present)| *is_present && !taken.contains(key)) {
            Some((key, _)) => Err(format!("takes no `{key}`; it takes {}", taken.join(", "))),
            None => Ok(()),
        }
    }

    fn tool(&self) -> Result<Matcher, String> {
        tool(self.kind.as_deref(), self.name.as_deref(), self.pattern.as_deref())
    }
}

/// Returns a matcher for a tool by its exact name, or by a pattern.
fn tool(kind: Option<&str>, name: Option<&str>, pattern: Option<&str>) -> Result<Matcher, String> {
    if let Some(kind) = kind.filter(|kind| *kind != "tool") {
        return Err(other_type(kind));
    }
    let name = match (name, pattern) {
        (_, Some(pattern)) => pattern.to_owned(),
        (Some(name), None) => globset::escape(name),
        (None, None) => return Err("names no tool; write `name` or `pattern`".to_owned()),
    };
    if name.is_empty() {
        return Err("has an empty tool name".to_owned());
    }
    Ok(Matcher { name: Some(name.parse::<NameGlob>()?), ..Matcher::default() })
}

fn other_type(kind: &str) -> String {
    format!("has `type: {kind}`, which is not supported; only `type: tool` is")
}

fn tool_used(written: Written<Fields>) -> Result<Kind, String> {
    let require = match written {
        // Every tool must be used. One call may count for two patterns, as in promptfoo.
        Written::List(steps) => {
            let mut require: Vec<RequiredCall> = Vec::new();
            for step in steps {
                let matcher = tool(step.kind.as_deref(), step.name.as_deref(), step.pattern.as_deref())?;
                if !require.iter().any(|wanted| wanted.matcher == matcher) {
                    require.push(RequiredCall { matcher, count: None });
                }
            }
            require
        }
        Written::Map(fields) => {
            fields.only(&["name", "pattern", "min", "max"])?;
            let count = Count { min: fields.min.unwrap_or(1), max: fields.max };
            vec![RequiredCall { matcher: fields.tool()?, count: Some(count) }]
        }
    };
    Ok(Kind::ToolCalls(ToolCalls { require, ..ToolCalls::default() }))
}

fn args_match(written: Written<Fields>) -> Result<Kind, String> {
    let Written::Map(fields) = written else { return Err("takes a map: `{name: …, args: {…}}`".to_owned()) };
    fields.only(&["name", "pattern", "args", "arguments", "mode", "ignore"])?;
    let mut matcher = fields.tool()?;
    let mode = match fields.mode.as_deref() {
        None | Some("partial") => "partial",
        Some("exact") => "exact",
        Some(other) => return Err(format!("has the mode `{other}`, which is neither partial nor exact")),
    };
    let args = fields.args.or(fields.arguments).ok_or("has no arguments; write `args`")?;
    let ignored = fields.ignore.iter().flat_map(OneOrList::iter);
    matcher.match_args = Some(MatchArgs::ignoring(mode, ignored));
    matcher.args = Some(args);
    let require = vec![RequiredCall { matcher, count: None }];
    Ok(Kind::ToolCalls(ToolCalls { require, ..ToolCalls::default() }))
}

fn sequence(written: Written<Fields>) -> Result<Kind, String> {
    let (mode, steps) = match written {
        Written::List(steps) => (Mode::InOrder, steps),
        Written::Map(fields) => {
            fields.only(&["mode", "steps"])?;
            let mode = match fields.mode.as_deref() {
                None | Some("in_order") => Mode::InOrder,
                Some("exact") => Mode::Exact,
                Some(other) => return Err(format!("has the mode `{other}`, which is neither in_order nor exact")),
            };
            (mode, fields.steps.unwrap_or_default().into_iter().map(|step| step.0).collect())
        }
    };
    let expected: Result<Vec<Item>, String> = steps
        .iter()
        .map(|step| {
            let matcher = tool(step.kind.as_deref(), step.name.as_deref(), step.pattern.as_deref())?;
            Ok(Item::Call(Box::new(matcher)))
        })
        .collect();
    // promptfoo does not distinguish sub-agents: every call of the trace is in the sequence.
    Ok(Kind::Trajectory(Trajectory { mode, expected: expected?, match_args: None, min: None, agent: Speaker::Any }))
}

fn step_count(written: Written<Fields>) -> Result<Kind, String> {
    let Written::Map(fields) = written else { return Err("takes a map: `{type: tool, max: 8}`".to_owned()) };
    fields.only(&["type", "name", "pattern", "min", "max"])?;
    match fields.kind.as_deref() {
        Some("tool") => {}
        Some(kind) => return Err(other_type(kind)),
        None => return Err("has no `type`; write `type: tool`".to_owned()),
    }
    if fields.min.is_none() && fields.max.is_none() {
        return Err("counts nothing: write `min` or `max`".to_owned());
    }
    if fields.name.is_none() && fields.pattern.is_none() {
        return Ok(Kind::ToolCalls(ToolCalls { min: fields.min, max: fields.max, ..ToolCalls::default() }));
    }
    let count = Count { min: fields.min.unwrap_or(0), max: fields.max };
    let require = vec![RequiredCall { matcher: fields.tool()?, count: Some(count) }];
    Ok(Kind::ToolCalls(ToolCalls { require, ..ToolCalls::default() }))
}
