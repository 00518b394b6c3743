//! Reads graders from a case: a map with one key, whose body also takes the keys that every grader takes.

use std::fmt;
use std::path::Path;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::shared_keys::{SharedKeys, Split};
use super::{Kind, aliases};
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};
use crate::yaml::wrong_part::WrongPart;

/// A grader as written in a case.
#[derive(Debug, Clone, PartialEq)]
pub struct GraderEntry {
    /// The keys that every grader takes.
    pub common: Common,
    /// The grader itself.
    pub what: GraderOrName,
}

#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "a case has a few of them")]
pub enum GraderOrName {
    /// A grader written in place.
    Kind(Kind),
    Use(Use),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Use {
    /// The name: that of the file, without extension.
    pub grader: String,
}

/// The keys that every grader takes. Keys that the case does not set are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Common {
    /// The name in reports.
    pub name: Option<String>,
    /// The weight in the mean. Default: 1.
    pub weight: Option<f64>,
    /// True if the grader's failure fails the trial.
    pub gate: Option<bool>,
    /// True if the grader is only reported.
    pub diagnostic: Option<bool>,
}

/// The key for a named grader.
const USE: &str = "use";

impl GraderEntry {
    /// Returns why the grader asserts nothing. The text continues a sentence that begins with the grader's name.
    /// Graders from a file were already checked when they were read.
    pub fn asserts_nothing(&self) -> Option<String> {
        match &self.what {
            GraderOrName::Kind(kind) => kind.spec().refusal(),
            GraderOrName::Use(named) => named.grader.is_empty().then(|| "names no grader".to_owned()),
        }
    }

    /// Returns an invalid expression in the grader, if there is one.
    pub fn wrong_expression(&self) -> Option<super::WrongExpression<'_>> {
        match &self.what {
            GraderOrName::Kind(kind) => kind.spec().wrong_expression(),
            GraderOrName::Use(_) => None,
        }
    }

    /// Returns an invalid part of the grader; paths are relative to `folder`. Without a folder, files are not
    /// checked.
    pub fn wrong_part(&self, folder: Option<&Path>) -> Option<WrongPart> {
        match &self.what {
            GraderOrName::Kind(kind) => kind.spec().wrong_part().or_else(|| kind.spec().unusable_file(folder?)),
            GraderOrName::Use(_) => None,
        }
    }

    /// Returns the part of the grader that names a missing file; paths are relative to `folder`.
    pub fn missing_file(&self, folder: &Path) -> Option<WrongPart> {
        match &self.what {
            GraderOrName::Kind(kind) => kind.spec().missing_file(folder),
            GraderOrName::Use(_) => None,
        }
    }

    /// Returns the name of the kind, or `use`.
    pub fn word(&self) -> &'static str {
        match &self.what {
            GraderOrName::Kind(kind) => kind.word(),
            GraderOrName::Use(_) => USE,
        }
    }
}

/// The error for a grader with both `gate` and `diagnostic`.
const BOTH: &str = "`gate: true` and `diagnostic: true` exclude each other: a diagnostic grader is reported and never counted; remove one of them";

impl SharedKeys for Common {
    const KEYS: &'static [&'static str] = &["name", "weight", "gate", "diagnostic"];

    fn read<'de, A: MapAccess<'de>>(&mut self, key: &'static str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "name" => self.name = Some(map.next_value::<Name>()?.0),
            "weight" => self.weight = Some(map.next_value::<Weight>()?.0),
            "gate" => self.gate = Some(map.next_value()?),
            _ => self.diagnostic = Some(map.next_value()?),
        }
        if matches!(key, "gate" | "diagnostic") && self.gate == Some(true) && self.diagnostic == Some(true) {
            return Err(A::Error::custom(BOTH));
        }
        Ok(())
    }
}

struct Name(String);

impl Forms<'_> for Name {
    const EXPECTED: &'static str = "a name";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        if text.trim().is_empty() { Err(E::custom("a name must not be empty")) } else { Ok(Name(text.to_owned())) }
    }
}

deserialize_forms!(Name, deserialize_str);

struct Weight(f64);

impl Forms<'_> for Weight {
    const EXPECTED: &'static str = "a weight: a number from 0 up";

    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        let weight = number.as_f64();
        if weight.is_finite() && weight >= 0.0 {
            Ok(Weight(weight))
        } else {
            Err(E::custom(format_args!("a weight is a finite number from 0 up, not `{weight}`")))
        }
    }
}

deserialize_forms!(Weight, deserialize_any);

impl<'de> Forms<'de> for Use {
    const EXPECTED: &'static str = "the name of a grader, or a map such as `{grader: NAME, gate: true}`";

    fn from_text<E: Error>(name: &str) -> Result<Self, E> {
        Ok(Use { grader: name.to_owned() })
    }

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut grader = None;
        while let Some(GraderKey) = map.next_key()? {
            if grader.replace(map.next_value::<Name>()?.0).is_some() {
                return Err(A::Error::duplicate_field("grader"));
            }
        }
        grader.map(|grader| Use { grader }).ok_or_else(|| A::Error::missing_field("grader"))
    }
}

deserialize_forms!(Use, deserialize_any);

/// The only key of a `use` body.
struct GraderKey;

impl Forms<'_> for GraderKey {
    const EXPECTED: &'static str = "`grader`";

    fn from_text<E: Error>(key: &str) -> Result<Self, E> {
        match key {
            "grader" => Ok(GraderKey),
            _ => Err(E::unknown_field(key, &["grader", "name", "weight", "gate", "diagnostic"])),
        }
    }
}

deserialize_forms!(GraderKey, deserialize_identifier);

impl<'de> Forms<'de> for GraderEntry {
    const EXPECTED: &'static str = "a grader: a map of one key, such as `command: {run: cargo test}`";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let Some(KindWord(word)) = map.next_key()? else {
            return Err(A::Error::custom("this grader is empty; a grader is a map of one key, its kind"));
        };
        let entry = map.next_value_seed(EntryBody(word))?;
        map.next_key_seed(NoMore(word))?;
        Ok(entry)
    }
}

deserialize_forms!(GraderEntry, deserialize_map);

/// The key of a grader: a known name.
pub(super) struct KindWord(pub &'static str);

impl KindWord {
    /// Returns the key, if the name is that of a grader.
    pub(super) fn known(word: &str) -> Option<Self> {
        Kind::WORDS.iter().copied().chain([USE]).chain(aliases::WORDS).find(|known| *known == word).map(KindWord)
    }
}

impl Forms<'_> for KindWord {
    const EXPECTED: &'static str = "the kind of a grader";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        KindWord::known(word).ok_or_else(|| {
            let known: Vec<String> = Kind::WORDS.iter().chain(&[USE]).map(|known| format!("`{known}`")).collect();
            E::custom(format_args!("unknown grader `{word}`, expected one of {}", known.join(", ")))
        })
    }
}

deserialize_forms!(KindWord, deserialize_identifier);

/// Reads the body of a grader, and refuses one that checks nothing.
pub(super) struct EntryBody(pub &'static str);

impl<'de> DeserializeSeed<'de> for EntryBody {
    type Value = GraderEntry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<GraderEntry, D::Error> {
        let word = self.0;
        let mut common = Common::default();
        let what = if aliases::WORDS.contains(&word) {
            let kind = aliases::read(word, deserializer, &mut common)?;
            common.name = Some(word.to_owned());
            GraderOrName::Kind(kind)
        } else {
            let body = Split { inner: deserializer, beside: &mut common };
            match word {
                USE => GraderOrName::Use(Use::deserialize(body)?),
                _ => GraderOrName::Kind(Kind::read(word, body)?),
            }
        };
        let entry = GraderEntry { common, what };
        match entry.asserts_nothing() {
            Some(reason) => Err(D::Error::custom(format_args!("the grader `{word}` {reason}"))),
            None => Ok(entry),
        }
    }
}

/// Refuses a second key, at the place of that key.
struct NoMore(&'static str);

impl<'de> DeserializeSeed<'de> for NoMore {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for NoMore {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the end of the grader")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        let word = self.0;
        Err(E::custom(if KindWord::known(key).is_some() {
            format!("a grader has one key, and this one has `{word}` already; begin another with `- {key}:`")
        } else {
            format!(
                "a grader has one key, and this one has `{word}` already; write `{key}` below it: `{word}: {{{key}: …}}`"
            )
        }))
    }
}

impl Serialize for GraderEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error;
        let mut body = match &self.what {
            GraderOrName::Kind(kind) => kind.body_json().map_err(S::Error::custom)?,
            GraderOrName::Use(named) => serde_json::json!({"grader": named.grader}),
        };
        if let Value::Object(map) = &mut body {
            let Common { name, weight, gate, diagnostic } = &self.common;
            let common = [
                ("name", name.clone().map(Value::from)),
                ("weight", weight.map(Value::from)),
                ("gate", gate.map(Value::from)),
                ("diagnostic", diagnostic.map(Value::from)),
            ];
            map.extend(common.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.word(), &body)?;
        map.end()
    }
}

#[cfg(test)]
impl JsonSchema for GraderEntry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Grader".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut kinds: Vec<Value> = Vec::new();
        for (word, mut body) in Kind::schemas(generator) {
            add_properties(&mut body, &common_properties());
            kinds.push(crate::yaml::forms::one_key(word, body.to_value()));
        }
        let mut named = json_schema!({
            "type": "object",
            "properties": {"grader": {"type": "string", "description": "its file in graders/, without .yaml"}},
            "required": ["grader"],
            "additionalProperties": false
        });
        add_properties(&mut named, &common_properties());
        kinds.push(crate::yaml::forms::one_key(USE, serde_json::json!({"oneOf": [{"type": "string"}, named]})));
        kinds.extend(aliases::WORDS.map(|word| crate::yaml::forms::one_key(word, aliases::schema(word))));
        json_schema!({"description": "a grader: a map of one key", "oneOf": kinds})
    }
}

#[cfg(test)]
fn common_properties() -> Value {
    serde_json::json!({
        "name": {"type": "string", "minLength": 1, "description": "its name in reports"},
        "weight": {"type": "number", "minimum": 0, "default": 1, "description": "its weight in the mean"},
        "gate": {"type": "boolean", "default": false, "description": "its failure fails the trial"},
        "diagnostic": {"type": "boolean", "default": false, "description": "reported, never counted"}
    })
}

/// Adds properties to the schema of an object.
#[cfg(test)]
pub(super) fn add_properties(schema: &mut Schema, more: &Value) {
    let object = schema.ensure_object();
    let properties = object.entry("properties").or_insert_with(|| serde_json::json!({}));
    if let (Value::Object(properties), Value::Object(more)) = (properties, more) {
        properties.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}
