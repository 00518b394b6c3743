//! `match-args` as written in a case: reading, writing and schema.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{HOWS, How, MODES, MatchArgs, Mode, REST, TOOLS};
use crate::values::NameGlob;

impl<'de> Deserialize<'de> for How {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrNumber;
        impl<'de> Visitor<'de> for WordOrNumber {
            type Value = How;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one of exact, ignore, regex, glob, number, path and command, or `{number: ROOM}`")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<How, E> {
                How::from_word(word)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<How, A::Error> {
                let mut room: Option<f64> = None;
                while let Some(key) = map.next_key::<String>()? {
                    if key != "number" || room.is_some() {
                        return Err(A::Error::unknown_field(&key, &["number"]));
                    }
                    room = Some(map.next_value()?);
                }
                match room {
                    Some(room) if room.is_finite() && room >= 0.0 => Ok(How::Number(room)),
                    Some(room) => Err(A::Error::custom(format_args!("`{room}` is no room: write a number from 0 up"))),
                    None => Err(A::Error::missing_field("number")),
                }
            }
        }
        deserializer.deserialize_any(WordOrNumber)
    }
}

/// The value of `tools`: rules by the names of tools, or how an argument named `tools` is compared.
enum ToolsOrHow {
    Tools(Vec<(NameGlob, MatchArgs)>),
    How(How),
}

impl<'de> Deserialize<'de> for ToolsOrHow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = ToolsOrHow;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map from the names of tools to what is compared of them")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<ToolsOrHow, E> {
                How::from_word(word).map(ToolsOrHow::How)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ToolsOrHow, A::Error> {
                let mut tools = Vec::new();
                while let Some(name) = map.next_key::<NameGlob>()? {
                    tools.push((name, map.next_value()?));
                }
                if tools.is_empty() {
                    Err(A::Error::custom("this map names no tool"))
                } else {
                    Ok(ToolsOrHow::Tools(tools))
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for MatchArgs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrMap;
        impl<'de> Visitor<'de> for WordOrMap {
            type Value = MatchArgs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one of exact, ignore, subset, superset and partial, or a map by key path")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<MatchArgs, E> {
                Ok(MatchArgs { rest: Mode::from_word(word)?, ..MatchArgs::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MatchArgs, A::Error> {
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
                            ToolsOrHow::How(how) => how,
                        },
                        _ => map.next_value()?,
                    };
                    if read.by_path.insert(key.clone(), how).is_some() || key == REST {
                        return Err(A::Error::custom(format_args!("`{key}` stands here twice")));
                    }
                }
                if read.by_path.is_empty() && read.tools.is_empty() && !has_rest {
                    return Err(A::Error::custom("this map is empty: it says nothing of any argument"));
                }
                Ok(read)
            }
        }
        deserializer.deserialize_any(WordOrMap)
    }
}

struct Word(Mode);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one of exact, ignore, subset, superset and partial")
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Word, E> {
                Mode::from_word(word).map(Word)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for MatchArgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.by_path.is_empty() && self.tools.is_empty() {
            return serializer.serialize_str(self.rest.word());
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(REST, self.rest.word())?;
        for (path, how) in &self.by_path {
            match how {
                How::Number(room) if *room > 0.0 => map.serialize_entry(path, &BTreeMap::from([("number", room)]))?,
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

impl JsonSchema for MatchArgs {
    fn schema_name() -> Cow<'static, str> {
        "MatchArgs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let own = generator.subschema_for::<MatchArgs>();
        let how = serde_json::json!({"anyOf": [
            {"enum": HOWS},
            {"type": "object", "properties": {"number": {"type": "number", "minimum": 0}},
             "required": ["number"], "additionalProperties": false}
        ]});
        json_schema!({
            "description": "how arguments are compared: in one way, or by key path (`a.b`, `*` for all others) and by tool (`tools`)",
            "anyOf": [
                {"enum": MODES},
                {
                    "type": "object",
                    "minProperties": 1,
                    "properties": {
                        "*": {"enum": MODES, "default": "partial", "description": "everything that no other key names"},
                        "tools": {"anyOf": [how, {"type": "object", "minProperties": 1, "additionalProperties": own}],
                                  "description": "what holds in its place for tools of a name; `*` is anything"}
                    },
                    "additionalProperties": how
                }
            ]
        })
    }
}
