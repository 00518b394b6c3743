//! Reads a map whose keys belong to two owners: a body, and a few common keys beside those of the body.
//!
//! serde's `flatten` does the same, but its buffer loses the place of errors. Here every error keeps its place.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use crate::yaml::forms::hand_on_visits;

/// The keys beside a body's own.
pub trait SharedKeys {
    /// The names of the keys.
    const KEYS: &'static [&'static str];

    /// Reads the value of one of the keys.
    fn read<'de, A: MapAccess<'de>>(&mut self, key: &'static str, map: &mut A) -> Result<(), A::Error>;
}

/// A deserializer for the body that intercepts the keys beside it.
pub struct Split<'a, D, B> {
    /// The deserializer of the whole map.
    pub inner: D,
    /// The receiver of the keys beside the body's own.
    pub beside: &'a mut B,
}

impl<'de, D: Deserializer<'de>, B: SharedKeys> Deserializer<'de> for Split<'_, D, B> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_any(SplitVisitor { visitor, beside: self.beside, fields: None })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(SplitVisitor { visitor, beside: self.beside, fields: None })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = SplitVisitor { visitor, beside: self.beside, fields: Some(fields) };
        self.inner.deserialize_struct(name, fields, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct enum identifier ignored_any
    }
}

struct SplitVisitor<'a, V, B> {
    visitor: V,
    beside: &'a mut B,
    fields: Option<&'static [&'static str]>,
}

impl<'de, V: Visitor<'de>, B: SharedKeys> Visitor<'de> for SplitVisitor<'_, V, B> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.visitor.expecting(f)
    }

    hand_on_visits!(visitor; visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.visitor.visit_none()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_seq(seq)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(data)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_map(SplitMap { map, beside: self.beside, fields: self.fields, read: Vec::new() })
    }
}

struct SplitMap<'a, A, B> {
    map: A,
    beside: &'a mut B,
    fields: Option<&'static [&'static str]>,
    read: Vec<&'static str>,
}

impl<'de, A: MapAccess<'de>, B: SharedKeys> MapAccess<'de> for SplitMap<'_, A, B> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, mut seed: K) -> Result<Option<K::Value>, A::Error> {
        loop {
            let peek = Peek::<K, B> { seed, read: &self.read, fields: self.fields, beside: PhantomData };
            match self.map.next_key_seed(peek)? {
                None => return Ok(None),
                Some(Key::Body(key)) => return Ok(Some(key)),
                Some(Key::SharedKeys(key, unused)) => {
                    self.beside.read(key, &mut self.map)?;
                    self.read.push(key);
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Inspects a key from within its own deserializer, so that an error about the key has the key's place.
struct Peek<'a, K, B> {
    seed: K,
    read: &'a [&'static str],
    fields: Option<&'static [&'static str]>,
    beside: PhantomData<B>,
}

enum Key<T, K> {
    Body(T),
    SharedKeys(&'static str, K),
}

impl<'de, K: DeserializeSeed<'de>, B: SharedKeys> DeserializeSeed<'de> for Peek<'_, K, B> {
    type Value = Key<K::Value, K>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl<'de, K: DeserializeSeed<'de>, B: SharedKeys> Visitor<'de> for Peek<'_, K, B> {
    type Value = Key<K::Value, K>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        if let Some(ours) = B::KEYS.iter().find(|ours| **ours == key) {
            if self.read.contains(ours) {
                return Err(E::duplicate_field(ours));
            }
            return Ok(Key::SharedKeys(ours, self.seed));
        }
        if let Some(fields) = self.fields
            && !fields.contains(&key)
        {
            // The body alone would list only its own keys.
            let known: Vec<String> = fields.iter().chain(B::KEYS).map(|known| format!("`{known}`")).collect();
            return Err(E::custom(format_args!("unknown field `{key}`, expected one of {}", known.join(", "))));
        }
        self.seed.deserialize(key.into_deserializer()).map(Key::Body)
    }
}
