//! Reads values that may be written in several forms, such as a word or a map.

use std::fmt;
use std::marker::PhantomData;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

/// A number, as the parser read it.
#[derive(Debug, Clone, Copy)]
pub enum ParsedNumber {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl ParsedNumber {
    /// Returns the number as a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Unsigned(number) => number as f64,
            Self::Signed(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Returns the error that this number is none of the expected forms.
    pub fn refused<E: Error>(self, expected: &str) -> E {
        let unexpected = match self {
            Self::Unsigned(number) => Unexpected::Unsigned(number),
            Self::Signed(number) => Unexpected::Signed(number),
            Self::Float(number) => Unexpected::Float(number),
        };
        E::invalid_type(unexpected, &expected)
    }
}

impl fmt::Display for ParsedNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsigned(number) => write!(f, "{number}"),
            Self::Signed(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
        }
    }
}

/// A value with a function for each form in which it may be written. Any other form is an error.
pub trait Forms<'de>: Sized {
    /// The forms, for the error.
    const EXPECTED: &'static str;

    /// Reads a text.
    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Str(text), &Self::EXPECTED))
    }

    /// Reads a truth value.
    fn from_flag<E: Error>(flag: bool) -> Result<Self, E> {
        Err(E::invalid_type(Unexpected::Bool(flag), &Self::EXPECTED))
    }

    /// Reads a number.
    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        Err(number.refused(Self::EXPECTED))
    }

    /// Reads a map.
    fn from_map<A: MapAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Map, &Self::EXPECTED))
    }

    /// Reads a list.
    fn from_list<A: SeqAccess<'de>>(_: A) -> Result<Self, A::Error> {
        Err(A::Error::invalid_type(Unexpected::Seq, &Self::EXPECTED))
    }
}

/// Reads a value with [`Forms`].
pub struct AnyForm<T>(pub PhantomData<T>);

impl<'de, T: Forms<'de>> Visitor<'de> for AnyForm<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::from_text(text)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<T, E> {
        T::from_flag(flag)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
        T::from_number(ParsedNumber::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        T::from_number(ParsedNumber::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        T::from_number(ParsedNumber::Float(number))
    }

    // Deserializers other than that of YAML files, for `OneOrList`.
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::from_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::from_list(list)
    }
}

/// Implements `Deserialize` for types with [`Forms`], by a method of the deserializer.
macro_rules! deserialize_forms {
    ([$($generics:tt)*] $type:ty, $method:ident) => {
        impl<'de, $($generics)*> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.$method($crate::yaml::forms::AnyForm(std::marker::PhantomData))
            }
        }
    };
    ($type:ty, $method:ident) => {
        $crate::yaml::forms::deserialize_forms!([] $type, $method);
    };
}

pub(crate) use deserialize_forms;

/// Hands plain values on to the visitor in a field, unchanged.
macro_rules! hand_on_visits {
    ($field:ident; $($method:ident: $type:ty),* $(,)?) => {$(
        fn $method<E: serde::de::Error>(self, value: $type) -> Result<Self::Value, E> {
            self.$field.$method(value)
        }
    )*};
}

pub(crate) use hand_on_visits;

/// Reads a list.
pub fn list<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(list: A) -> Result<Vec<T>, A::Error> {
    Vec::deserialize(SeqAccessDeserializer::new(list))
}

/// Reads a list of at least one value.
pub fn filled_list<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(items: A) -> Result<Vec<T>, A::Error> {
    not_empty(list(items)?)
}

/// Returns the schema of one value, or of a list of at least one.
#[cfg(test)]
pub fn one_or_list<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let one = generator.subschema_for::<T>();
    json_schema!({"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]})
}

/// Returns the schema of a map of one key.
#[cfg(test)]
pub fn one_key(key: &str, value: serde_json::Value) -> serde_json::Value {
    serde_json::json!({"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": false})
}

/// Refuses an empty list.
pub fn not_empty<T, E: Error>(list: Vec<T>) -> Result<Vec<T>, E> {
    if list.is_empty() { Err(E::custom("this list is empty: it would check nothing")) } else { Ok(list) }
}
