//! `match-args` as written in a case: reading, writing and schema.

use std::collections::BTreeMap;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
#[cfg(test)]
use strum::VariantNames;

use super::{MatchArgs, Mode, REST, TOOLS, ValueRule, from_word};
use crate::values::NameGlob;
use crate::yaml::forms::{Forms, deserialize_forms};

impl<'de> Forms<'de> for ValueRule {
    const EXPECTED: &'static str = "one of exact, ignore, regex, glob, number, path and command, or `{number: \
        TOLERANCE}`";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        from_word(word)
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut room: Option<f64> = None;
        while let Some(key) = map.next_key::<String>()? {
            if key != "number" || room.is_some() {
                return Err(A::Error::unknown_field(&key, &["number"]));
            }
            room = Some(map.next_value()?);
        }
        match room {
            Some(room) if room.is_finite() && room >= 0.0 => Ok(ValueRule::Number(room)),
            Some(room) => Err(A::Error::custom(format_args!("`{room}` is not a tolerance; write a number from 0"))),
            None => Err(A::Error::missing_field("number")),
        }
    }
}

deserialize_forms!(ValueRule, deserialize_any);

/// The value of `tools`: rules by the names of tools, or how an argument named `tools` is compared.
enum ToolsOrHow {
    Tools(Vec<(NameGlob, MatchArgs)>),
    ValueRule(ValueRule),
}

impl<'de> Forms<'de> for ToolsOrHow {
    const EXPECTED: &'static str = "a map from tool names to the comparison of their arguments";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        from_word(word).map(ToolsOrHow::ValueRule)
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut tools = Vec::new();
        while let Some(name) = map.next_key::<NameGlob>()? {
            let args: MatchArgs = map.next_value()?;
            if !args.tools.is_empty() {
                return Err(A::Error::custom("the comparison for a tool cannot name further tools"));
            }
            tools.push((name, args));
        }
        if tools.is_empty() {
            Err(A::Error::custom("this map is empty: it names no tool"))
        } else {
            Ok(ToolsOrHow::Tools(tools))
        }
    }
}

deserialize_forms!(ToolsOrHow, deserialize_any);

impl<'de> Forms<'de> for MatchArgs {
    const EXPECTED: &'static str = "one of exact, ignore, subset, superset and partial, or a map by key path";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        Ok(MatchArgs { rest: from_word(word)?, ..MatchArgs::default() })
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut read = MatchArgs::default();
        let mut has_rest = false;
        while let Some(key) = map.next_key::<String>()? {
            let how = match key.as_str() {
                REST if !has_rest => {
                    read.rest = map.next_value::<Word>()?.0;
                    has_rest = true;
                    continue;
                }
                TOOLS => match map.next_value()? {
                    ToolsOrHow::Tools(tools) => {
                        read.tools = tools;
                        continue;
                    }
                    ToolsOrHow::ValueRule(how) => how,
                },
                _ => map.next_value()?,
            };
            if read.by_path.insert(key.clone(), how).is_some() || key == REST {
                return Err(A::Error::custom(format_args!("`{key}` occurs here twice")));
            }
        }
        if read.by_path.is_empty() && read.tools.is_empty() && !has_rest {
            return Err(A::Error::custom("this map is empty: it names no argument"));
        }
        Ok(read)
    }
}

deserialize_forms!(MatchArgs, deserialize_any);

struct Word(Mode);

impl Forms<'_> for Word {
    const EXPECTED: &'static str = "one of exact, ignore, subset, superset and partial";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        from_word(word).map(Word)
    }
}

deserialize_forms!(Word, deserialize_str);

impl Serialize for MatchArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.by_path.is_empty() && self.tools.is_empty() {
            return serializer.serialize_str(self.rest.word());
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(REST, self.rest.word())?;
        for (path, how) in &self.by_path {
            match how {
                ValueRule::Number(room) if *room > 0.0 => {
                    map.serialize_entry(path, &BTreeMap::from([("number", room)]))?
                }
                how => map.serialize_entry(path, how.word())?,
            }
        }
        if !self.tools.is_empty() {
            let tools: serde_json::Result<Map<String, Value>> =
                self.tools.iter().map(|(name, args)| Ok((name.to_string(), serde_json::to_value(args)?))).collect();
            map.serialize_entry(TOOLS, &tools.map_err(serde::ser::Error::custom)?)?;
        }
        map.end()
    }
}

#[cfg(test)]
impl JsonSchema for MatchArgs {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MatchArgs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<MatchArgs>();
        let how = serde_json::json!({"anyOf": [
            {"enum": ValueRule::VARIANTS},
            {"type": "object", "properties": {"number": {"type": "number", "minimum": 0}},
             "required": ["number"], "additionalProperties": false}
        ]});
        json_schema!({
            "description": "how arguments are compared: in one way, or by key path (`a.b`, `*` for all others) and by tool (`tools`)",
            "anyOf": [
                {"enum": Mode::VARIANTS},
                {
                    "type": "object",
                    "minProperties": 1,
                    "properties": {
                        "*": {"enum": Mode::VARIANTS, "default": "partial", "description": "all arguments that no \
                            other key names"},
                        "tools": {"anyOf": [how, {"type": "object", "minProperties": 1, "additionalProperties": own}],
                                  "description": "the comparison for tools of a name instead; `*` matches anything"}
                    },
                    "additionalProperties": how
                }
            ]
        })
    }
}
