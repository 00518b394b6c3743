//! An experiment file, as written.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::variant::{VariantLayer, with_variant_keys};
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};

with_variant_keys! {
    /// An experiment, as written. Every variant has the keys of a variant that are written here, unless it says
    /// otherwise.
    pub struct ExperimentFile {
        /// A description in one line.
        pub description: Option<String>,
        /// The paths of the cases, relative to this file. Default: the paths of the command line.
        pub cases: Option<Vec<PathBuf>>,
        /// The number of trials of each cell.
        pub trials: Option<NonZeroU32>,
        /// The keys that may differ between the variants. Any other difference is refused. With `matrix`: the axes.
        pub vary: Option<Vec<String>>,
        /// The variant that the others are compared with. Default: the first one; with `matrix` the first value of
        /// each axis.
        pub baseline: Option<String>,
        /// The variants by name, with the keys that each overrides.
        pub variants: Option<Ordered<VariantLayer>>,
        /// The axes, each a key of a variant with its values: a list of words, or a map from labels to values. Every
        /// combination of values is a variant.
        pub matrix: Option<Matrix>,
    }
}

impl ExperimentFile {
    /// Takes the keys that every variant has.
    pub(super) fn take_common(&mut self) -> VariantLayer {
        VariantLayer {
            harness: self.harness.take(),
            model: self.model.take(),
            skills: self.skills.take(),
            instructions: self.instructions.take(),
            mcp_servers: self.mcp_servers.take(),
            system_prompt: self.system_prompt.take(),
            prompt: self.prompt.take(),
            env: self.env.take(),
            session_mode: self.session_mode.take(),
            interaction: self.interaction.take(),
            files: self.files.take(),
            args: self.args.take(),
            command: self.command.take(),
            limits: self.limits.take(),
        }
    }
}

/// A map in the order in which it is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Ordered<T>(pub Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Forms<'de> for Ordered<T> {
    const EXPECTED: &'static str = "a map from names to variants";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            entries.push((key, map.next_value()?));
        }
        Ok(Ordered(entries))
    }
}

deserialize_forms!([T: Deserialize<'de>] Ordered<T>, deserialize_map);

#[cfg(test)]
impl<T: JsonSchema> JsonSchema for Ordered<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("MapOf{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<T>()})
    }
}

/// The axes of a matrix, in the order in which they are written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix(pub Vec<Axis>);

/// One axis: a key of a variant, and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub key: String,
    /// True if the values are a list, which has no labels.
    pub is_list: bool,
    /// Each label with a variant that holds the axis' key alone.
    pub values: Vec<(String, VariantLayer)>,
}

impl<'de> Forms<'de> for Matrix {
    const EXPECTED: &'static str = "a map from keys of a variant to their values";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut axes = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            axes.push(map.next_value_seed(ValuesOf(key))?);
        }
        Ok(Matrix(axes))
    }
}

deserialize_forms!(Matrix, deserialize_map);

/// Reads the values of an axis.
struct ValuesOf(String);

impl<'de> DeserializeSeed<'de> for ValuesOf {
    type Value = Axis;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Axis, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValuesOf {
    type Value = Axis;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of words, or a map from labels to values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Axis, A::Error> {
        let mut values = Vec::new();
        while let Some(LabelledWord(label)) = list.next_element()? {
            let one = Value::Object([(self.0.clone(), Value::String(label.clone()))].into_iter().collect());
            let value = VariantLayer::deserialize(one).map_err(A::Error::custom)?;
            values.push((label, value));
        }
        Ok(Axis { key: self.0, is_list: true, values })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Axis, A::Error> {
        let mut values = Vec::new();
        while let Some(label) = map.next_key::<String>()? {
            let value = map.next_value_seed(ValueOf(&self.0))?;
            values.push((label, value));
        }
        Ok(Axis { key: self.0, is_list: false, values })
    }
}

/// A word of a list of values, which is its own label.
struct LabelledWord(String);

impl Forms<'_> for LabelledWord {
    const EXPECTED: &'static str = "a word; values that are lists or maps need labels: `LABEL: VALUE`";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        Ok(LabelledWord(text.to_owned()))
    }

    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        match number {
            ParsedNumber::Float(_) => Err(number.refused(Self::EXPECTED)),
            whole => Ok(LabelledWord(whole.to_string())),
        }
    }
}

deserialize_forms!(LabelledWord, deserialize_any);

/// Reads a value of an axis as a variant with the axis' key alone.
struct ValueOf<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for ValueOf<'_> {
    type Value = VariantLayer;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<VariantLayer, D::Error> {
        VariantLayer::deserialize(OneKey { key: self.0, value: Some(deserializer) }.into_map())
    }
}

/// A map with one key, whose value is read from another deserializer.
struct OneKey<'a, D> {
    key: &'a str,
    value: Option<D>,
}

impl<D> OneKey<'_, D> {
    fn into_map<'de>(self) -> serde::de::value::MapAccessDeserializer<Self>
    where
        D: Deserializer<'de>,
    {
        serde::de::value::MapAccessDeserializer::new(self)
    }
}

impl<'de, D: Deserializer<'de>> MapAccess<'de> for OneKey<'_, D> {
    type Error = D::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, D::Error> {
        if self.value.is_none() {
            return Ok(None);
        }
        let key: StrDeserializer<'_, D::Error> = self.key.into_deserializer();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, D::Error> {
        match self.value.take() {
            Some(value) => seed.deserialize(value),
            None => Err(D::Error::custom("a value was read twice")),
        }
    }
}

#[cfg(test)]
impl JsonSchema for Matrix {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Matrix".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let variant = VariantLayer::json_schema(generator).to_value();
        let keys = variant.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let axes = keys.into_iter().map(|(key, value)| {
            let words = serde_json::json!({"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1});
            let labels = serde_json::json!({"type": "object", "additionalProperties": value, "minProperties": 1});
            (key, serde_json::json!({"anyOf": [words, labels]}))
        });
        let axes: serde_json::Map<String, Value> = axes.collect();
        json_schema!({"type": "object", "properties": axes, "additionalProperties": false, "minProperties": 1})
    }
}
