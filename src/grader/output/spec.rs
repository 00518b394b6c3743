//! A number as written in YAML, kept exactly even if it has more digits than a float.

use std::fmt;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected};
use serde::{Serialize, Serializer};

use crate::decimal::Decimal;
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};

/// A regular expression for a number in a text.
#[cfg(test)]
pub const PATTERN: &str = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$";

/// A number, or a text with a number if it has more digits than YAML reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written(pub Decimal);

impl Default for Written {
    fn default() -> Self {
        Self(Decimal::ZERO)
    }
}

impl Written {
    /// Parses a number from its text.
    pub fn read<E: Error>(number: impl fmt::Display) -> Result<Self, E> {
        let shown = number.to_string();
        Decimal::parse(&shown).map(Self).ok_or_else(|| E::custom(format_args!("`{shown}` is not a number")))
    }
}

impl Forms<'_> for Written {
    const EXPECTED: &'static str = "a number";

    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        Written::read(number)
    }

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        let wrong = || E::invalid_type(Unexpected::Str(text), &Self::EXPECTED);
        Decimal::parse(text).map(Written).ok_or_else(wrong)
    }
}

deserialize_forms!(Written, deserialize_any);

impl Serialize for Written {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = self.0.to_string();
        if let Ok(number) = text.parse::<i64>() {
            return serializer.serialize_i64(number);
        }
        match text.parse::<f64>().ok().filter(|float| Decimal::of_float(*float).as_ref() == Some(&self.0)) {
            Some(float) => serializer.serialize_f64(float),
            None => serializer.serialize_str(&text),
        }
    }
}

#[cfg(test)]
impl JsonSchema for Written {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "WrittenNumber".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "number"}, {"type": "string", "pattern": PATTERN}]})
    }
}
