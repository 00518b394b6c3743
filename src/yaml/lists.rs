//! Reads lists and optional values: one value or several, and never an empty one by accident.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use super::forms::{AnyForm, Forms, ParsedNumber, not_empty};

/// The name by which [`OneOrList`] asks the reader of YAML for a value whose text must be as written.
pub(super) const ONE_OR_LIST: &str = "OneOrList";

/// A single value, or a list of at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct OneOrList<T>(pub Vec<T>);

impl<T> OneOrList<T> {
    /// Returns an iterator over the values.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }
}

impl<'de, T: Deserialize<'de>> Forms<'de> for OneOrList<T> {
    const EXPECTED: &'static str = "a value or a list of values";

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        T::deserialize(text.into_deserializer()).map(|one| OneOrList(vec![one]))
    }

    // At this point, the text as written is lost: 1.50 is 1.5 here, and True is true.
    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        match number {
            ParsedNumber::Float(number) => {
                Err(E::custom(format_args!("a text that looks like the number {number} must be in quotes")))
            }
            whole => Self::from_text(&whole.to_string()),
        }
    }

    fn from_flag<E: Error>(flag: bool) -> Result<Self, E> {
        Err(E::custom(format_args!("a text that looks like the boolean {flag} must be in quotes")))
    }

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        collect(list).map(OneOrList)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(ONE_OR_LIST, AnyForm(PhantomData))
    }
}

impl<T: Serialize> Serialize for OneOrList<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(&self.0, serializer)
    }
}

/// Writes a list, or its only value without the list.
///
/// # Errors
/// Returns an error if the serializer fails.
pub fn write<T: Serialize, S: Serializer>(list: &[T], serializer: S) -> Result<S::Ok, S::Error> {
    match list {
        [one] => one.serialize(serializer),
        list => list.serialize(serializer),
    }
}

#[cfg(test)]
impl<T: JsonSchema> JsonSchema for OneOrList<T> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("OneOrListOf{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        super::forms::one_or_list::<T>(generator)
    }
}

/// Reads a list of at least one value.
pub fn filled<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_seq(AnyForm::<Filled<Vec<T>>>(PhantomData)).map(|list| list.0)
}

/// Reads a map of at least one entry, each key once.
pub fn filled_map<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, T>, D::Error> {
    deserializer.deserialize_map(AnyForm::<Filled<BTreeMap<String, T>>>(PhantomData)).map(|map| map.0)
}

/// A list or a map that is not empty.
struct Filled<T>(T);

impl<'de, T: Deserialize<'de>> Forms<'de> for Filled<Vec<T>> {
    const EXPECTED: &'static str = "a list";

    fn from_list<A: SeqAccess<'de>>(list: A) -> Result<Self, A::Error> {
        collect(list).map(Filled)
    }
}

impl<'de, T: Deserialize<'de>> Forms<'de> for Filled<BTreeMap<String, T>> {
    const EXPECTED: &'static str = "a map";

    fn from_map<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut read = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = map.next_value()?;
            if read.contains_key(&key) {
                return Err(A::Error::custom(format_args!("`{key}` occurs twice")));
            }
            read.insert(key, value);
        }
        if read.is_empty() {
            return Err(A::Error::custom("this map is empty: it would check nothing"));
        }
        Ok(Filled(read))
    }
}

/// Reads an optional value that must not be null if its key is written.
pub fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// Reads an element of a list, and refuses null: YAML would read it as the text `~`.
struct NotNull<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for NotNull<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for NotNull<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        T::deserialize(deserializer)
    }

    fn visit_none<E: Error>(self) -> Result<T, E> {
        Err(E::custom("this entry is null; write a value, or put quotes around a text such as \"~\""))
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        self.visit_none()
    }
}

fn collect<'de, A: SeqAccess<'de>, T: Deserialize<'de>>(mut seq: A) -> Result<Vec<T>, A::Error> {
    let mut list = Vec::new();
    while let Some(value) = seq.next_element_seed(NotNull(PhantomData))? {
        list.push(value);
    }
    not_empty(list)
}
