//! Continues after an error: wrong parts are left out, and the text is read again until the rest is a value.
//!
//! A wrapper around the deserializer keeps the place of each value. It records where reading failed, and skips the
//! places that are to be left out. It also refuses texts that YAML would change, because it takes them for numbers, and
//! keys without a value, which would otherwise be ignored.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::UnitDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Unexpected,
    Visitor,
};

use super::forms::hand_on_visits;
use super::lists::ONE_OR_LIST;
use super::locate::{StepPart, find};
use super::recovered::{LeftOut, OwnedStep};

/// The state of the deserializer wrapper during a read.
pub(super) struct Reading<'a> {
    text: &'a str,
    left_out: &'a LeftOut,
    at: Vec<OwnedStep>,
    /// True while the value of a struct's field is read, until a value within it is read.
    is_field: bool,
    failed: Option<Failure>,
    /// The message about the key without a value at which reading fails.
    blank: Option<String>,
}

/// The place where reading failed.
#[derive(Default)]
pub(super) struct Failure {
    /// The steps to the innermost value, or to the key.
    pub(super) at: Vec<OwnedStep>,
    /// The message, if a key at this place has no value. The error of the parser then has another place.
    pub(super) blank: Option<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(text: &'a str, left_out: &'a LeftOut) -> RefCell<Self> {
        RefCell::new(Self { text, left_out, at: Vec::new(), is_field: false, failed: None, blank: None })
    }

    /// Returns where reading failed.
    pub(super) fn failed(self) -> Failure {
        self.failed.unwrap_or_default()
    }

    /// Keeps the message of an error about a key without a value.
    fn refuse_blank<E: Error>(reading: &RefCell<Self>, error: E) -> E {
        reading.borrow_mut().blank = Some(error.to_string());
        error
    }

    /// Returns an error if the value at this place is a number that is written in another form, such as `0x10` for 16.
    fn as_written<E: Error>(&self, number: &str) -> Result<(), E> {
        let steps: Vec<_> = self.at.iter().map(OwnedStep::step).collect();
        let written = find(self.text, &steps, StepPart::Value).and_then(|range| self.text.get(range));
        // An anchor may stand before the number.
        match written.and_then(|written| written.split_whitespace().next_back()) {
            Some(written) if written != number => {
                Err(E::custom(format_args!("a text that looks like the number {written} must be in quotes")))
            }
            _ => Ok(()),
        }
    }

    fn leaves_out(&mut self, step: OwnedStep) -> bool {
        self.at.push(step);
        let out = self.left_out.contains(&self.at);
        self.at.pop();
        out
    }

    /// Reads the value at a further step.
    fn within<T, E>(
        reading: &RefCell<Self>,
        step: OwnedStep,
        is_field: bool,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        Self::enter(reading, step, is_field);
        let outcome = read();
        Self::leave(reading, outcome.is_ok());
        outcome
    }

    // `enter` and `leave` are not generic, so that they are compiled once.
    fn enter(reading: &RefCell<Self>, step: OwnedStep, is_field: bool) {
        let mut reading = reading.borrow_mut();
        reading.at.push(step);
        reading.is_field = is_field;
    }

    fn leave(reading: &RefCell<Self>, is_read: bool) {
        let mut reading = reading.borrow_mut();
        if is_read {
            (reading.failed, reading.blank) = (None, None);
        } else if reading.failed.is_none() {
            let blank = reading.blank.take();
            reading.failed = Some(Failure { at: reading.at.clone(), blank });
        }
        reading.at.pop();
    }
}

/// A part of serde's reading, such as a deserializer or a visitor, with the current place.
pub(super) struct At<'a, 'b, T> {
    pub(super) inner: T,
    pub(super) reading: &'a RefCell<Reading<'b>>,
}

impl<'a, 'b, T> At<'a, 'b, T> {
    fn with<U>(&self, inner: U) -> At<'a, 'b, U> {
        At { inner, reading: self.reading }
    }
}

macro_rules! hand_on {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            let visitor = self.with(visitor);
            self.inner.$method(visitor)
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for At<'_, '_, D> {
    type Error = D::Error;

    hand_on!(
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_option deserialize_unit deserialize_identifier deserialize_ignored_any
    );

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        if self.reading.borrow().is_field {
            return self.inner.deserialize_option(FilledList { visitor, reading: self.reading });
        }
        self.inner.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        if self.reading.borrow().is_field {
            return self.inner.deserialize_option(FilledMap { visitor, reading: self.reading });
        }
        self.inner.deserialize_map(visitor)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        if name == ONE_OR_LIST {
            return self.inner.deserialize_any(AsWritten { inner: visitor });
        }
        self.inner.deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_tuple(length, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_tuple_struct(name, length, visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = Fields(self.with(visitor));
        if self.reading.borrow().is_field {
            return self.inner.deserialize_option(FilledMap { visitor, reading: self.reading });
        }
        self.inner.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        let visitor = self.with(visitor);
        self.inner.deserialize_enum(name, variants, visitor)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for At<'_, '_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    hand_on_visits!(
        inner; visit_bool: bool, visit_i64: i64, visit_i128: i128, visit_u64: u64, visit_u128: u128, visit_f64: f64,
        visit_str: &str, visit_borrowed_str: &'de str, visit_string: String, visit_bytes: &[u8],
    );

    /// Reads an optional value that is null. For a key, this is the error of the value's own type.
    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        let is_key = matches!(self.reading.borrow().at.last(), Some(OwnedStep::Key(_)));
        if !is_key {
            return self.inner.visit_none();
        }
        let error = match self.inner.visit_some(UnitDeserializer::<E>::new()) {
            Err(error) => error,
            Ok(_) => E::invalid_type(Unexpected::Unit, &"a value"),
        };
        Err(Reading::refuse_blank(self.reading, error))
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_some(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.visit_newtype_struct(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        let items = Items { list: self.with(list), next: 0 };
        self.inner.visit_seq(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let entries = Entries { map: self.with(map), key: String::new(), are_fields: false };
        self.inner.visit_map(entries)
    }

    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(tagged)
    }
}

/// A visitor of a struct.
struct Fields<'a, 'b, V>(At<'a, 'b, V>);

impl<'de, V: Visitor<'de>> Visitor<'de> for Fields<'_, '_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        let entries = Entries { map: self.0.with(map), key: String::new(), are_fields: true };
        self.0.inner.visit_map(entries)
    }
}

/// Declares a visitor of an optional list or map that refuses null: the parser would take a key without a value for an
/// empty one.
macro_rules! filled {
    ($name:ident, $method:ident) => {
        struct $name<'a, 'b, V> {
            visitor: V,
            reading: &'a RefCell<Reading<'b>>,
        }

        impl<'de, V: Visitor<'de>> Visitor<'de> for $name<'_, '_, V> {
            type Value = V::Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.visitor.expecting(f)
            }

            fn visit_none<E: Error>(self) -> Result<V::Value, E> {
                Err(Reading::refuse_blank(self.reading, E::invalid_type(Unexpected::Unit, &self.visitor)))
            }

            fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
                deserializer.$method(self.visitor)
            }
        }
    };
}

filled!(FilledList, deserialize_seq);
filled!(FilledMap, deserialize_map);

/// A visitor of a text, or a list of texts, that refuses a number in another form than the decimal one: the text as it is
/// written is lost.
struct AsWritten<'a, 'b, V> {
    inner: At<'a, 'b, V>,
}

impl<'de, V: Visitor<'de>> Visitor<'de> for AsWritten<'_, '_, V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    hand_on_visits!(
        inner; visit_bool: bool, visit_f64: f64, visit_str: &str, visit_borrowed_str: &'de str, visit_string: String,
    );

    fn visit_u64<E: Error>(self, number: u64) -> Result<V::Value, E> {
        self.inner.reading.borrow().as_written::<E>(&number.to_string())?;
        self.inner.visit_u64(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<V::Value, E> {
        self.inner.reading.borrow().as_written::<E>(&number.to_string())?;
        self.inner.visit_i64(number)
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(map)
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for At<'_, '_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        let deserializer = self.with(deserializer);
        self.inner.deserialize(deserializer)
    }
}

struct Items<'a, 'b, A> {
    list: At<'a, 'b, A>,
    next: usize,
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Items<'_, '_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        while self.list.reading.borrow_mut().leaves_out(OwnedStep::Item(self.next)) {
            if self.list.inner.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
            self.next += 1;
        }
        let step = OwnedStep::Item(self.next);
        self.next += 1;
        let seed = self.list.with(seed);
        Reading::within(seed.reading, step, false, || self.list.inner.next_element_seed(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.list.inner.size_hint()
    }
}

struct Entries<'a, 'b, A> {
    map: At<'a, 'b, A>,
    key: String,
    /// True if the keys are fields of a struct.
    are_fields: bool,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Entries<'_, '_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, mut seed: S) -> Result<Option<S::Value>, A::Error> {
        loop {
            self.key.clear();
            let key = Key { seed: self.map.with(seed), name: &mut self.key };
            match self.map.inner.next_key_seed(key)? {
                None => return Ok(None),
                Some(Peeked::Key(key)) => return Ok(Some(key)),
                Some(Peeked::LeftOut(unused)) => {
                    self.map.inner.next_value::<IgnoredAny>()?;
                    seed = unused;
                }
            }
        }
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        let step = OwnedStep::Key(std::mem::take(&mut self.key));
        let seed = self.map.with(seed);
        Reading::within(seed.reading, step, self.are_fields, || self.map.inner.next_value_seed(seed))
    }
}

/// A reader of a key that runs within the key's own deserializer, so that an error about the key is at the key.
struct Key<'a, 'b, 'c, S> {
    seed: At<'a, 'b, S>,
    name: &'c mut String,
}

enum Peeked<T, S> {
    Key(T),
    LeftOut(S),
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Key<'_, '_, '_, S> {
    type Value = Peeked<S::Value, S>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Key<'_, '_, '_, S> {
    type Value = Peeked<S::Value, S>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        let step = OwnedStep::Key(key.to_owned());
        let At { inner, reading } = self.seed;
        if reading.borrow_mut().leaves_out(step.clone()) {
            return Ok(Peeked::LeftOut(inner));
        }
        key.clone_into(self.name);
        Reading::within(reading, step, false, || inner.deserialize(key.into_deserializer())).map(Peeked::Key)
    }
}
