//! Reads JSON of any shape: a value of an unexpected type counts as absent, and never invalidates its line.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A text, if the value is one; borrowed from the line if it holds no escapes.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

/// A word: a text, absent, or a value of another type.
#[derive(Debug, Default)]
pub(crate) enum Word<'a> {
    /// No value, or null.
    #[default]
    Absent,
    Text(Cow<'a, str>),
    Odd,
}

/// A boolean, if the value is one or plainly states one: `"true"`, 1.
#[derive(Debug, Default)]
pub(crate) struct Flag(pub(crate) Option<bool>);

/// A boolean that decides an outcome: a value that is not a boolean is distinguished from an absent one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stated {
    /// No value, or null.
    #[default]
    Absent,
    Is(bool),
    Odd,
}

/// A whole number from 0, if the value is one.
#[derive(Debug, Default)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// An exit code: a whole number, absent, or a value of another type.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// No value, or null.
    #[default]
    Absent,
    Is(i64),
    Odd,
}

/// A number, if the value is one.
#[derive(Debug, Default)]
pub(crate) struct Number(pub(crate) Option<f64>);

/// An object, if the value is one.
#[derive(Debug)]
pub(crate) struct Object<T>(pub(crate) Option<T>);

/// An object, absent, or a value of another type.
#[derive(Debug, Default)]
pub(crate) enum Present<T> {
    /// No value, or null.
    #[default]
    Absent,
    Is(T),
    Odd,
}

/// A list; any other value is an empty list.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl Text<'_> {
    /// Returns the text, unless it is absent or empty.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|text| !text.is_empty())
    }

    /// Returns the text, or an empty text if it is absent or no string.
    pub(crate) fn or_empty(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Returns the text as a `String`, unless it is absent or empty.
    pub(crate) fn owned(&self) -> Option<String> {
        self.get().map(str::to_owned)
    }
}

impl Flag {
    /// Returns false if the value is absent or states no boolean.
    pub(crate) fn is_true(&self) -> bool {
        self.0 == Some(true)
    }
}

impl Stated {
    /// Returns true if the value is true.
    pub(crate) fn is_true(self) -> bool {
        self == Self::Is(true)
    }
}

/// Returns the boolean that a text plainly states.
fn boolean_in(text: &str) -> Option<bool> {
    match text {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Returns the boolean that a number plainly states.
fn boolean_of(count: u64) -> Option<bool> {
    match count {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

impl<T> Default for Object<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Conversions from a value of each shape; by default, each gives the value for an unexpected shape.
pub(crate) trait Lenient<'de>: Default {
    /// Returns the value for an unexpected shape.
    fn other() -> Self {
        Self::default()
    }

    /// Converts a text.
    fn text(_text: Cow<'de, str>) -> Self {
        Self::other()
    }

    /// Converts a boolean.
    fn flag(_flag: bool) -> Self {
        Self::other()
    }

    /// Converts a whole number from 0.
    fn count(_count: u64) -> Self {
        Self::other()
    }

    /// Converts any other number.
    fn number(_number: f64) -> Self {
        Self::other()
    }

    /// Converts a list.
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }

    /// Converts an object.
    fn object<A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Self::other())
    }
}

/// Reads a value of any shape.
pub(crate) fn any_shape<'de, D: Deserializer<'de>, T: Lenient<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(AnyShape(PhantomData))
}

struct AnyShape<T>(PhantomData<T>);

impl<'de, T: Lenient<'de>> Visitor<'de> for AnyShape<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<T, E> {
        Ok(T::flag(flag))
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<T, E> {
        Ok(T::count(count))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<T, E> {
        Ok(T::number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<T, E> {
        Ok(T::number(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<T, E> {
        Ok(T::text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<T, E> {
        Ok(T::text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<T, A::Error> {
        T::list(list)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Text<'a> {
    fn text(text: Cow<'de, str>) -> Self {
        Self(Some(text))
    }
}

impl<'de: 'a, 'a> Lenient<'de> for Word<'a> {
    fn other() -> Self {
        Self::Odd
    }

    fn text(text: Cow<'de, str>) -> Self {
        Self::Text(text)
    }
}

/// Skips a value of any shape.
impl Lenient<'_> for () {}

impl<'de> Lenient<'de> for Flag {
    fn text(text: Cow<'de, str>) -> Self {
        Self(boolean_in(&text))
    }

    fn flag(flag: bool) -> Self {
        Self(Some(flag))
    }

    fn count(count: u64) -> Self {
        Self(boolean_of(count))
    }
}

impl<'de> Lenient<'de> for Stated {
    fn other() -> Self {
        Self::Odd
    }

    fn text(text: Cow<'de, str>) -> Self {
        boolean_in(&text).map_or(Self::Odd, Self::Is)
    }

    fn flag(flag: bool) -> Self {
        Self::Is(flag)
    }

    fn count(count: u64) -> Self {
        boolean_of(count).map_or(Self::Odd, Self::Is)
    }
}

impl Lenient<'_> for Count {
    fn text(text: Cow<'_, str>) -> Self {
        Self(text.trim().parse().ok())
    }

    fn count(count: u64) -> Self {
        Self(Some(count))
    }

    fn number(number: f64) -> Self {
        let whole = number >= 0.0 && number.fract() == 0.0 && number < u64::MAX as f64;
        Self(whole.then_some(number as u64))
    }
}

impl Lenient<'_> for ExitCode {
    fn other() -> Self {
        Self::Odd
    }

    fn text(text: Cow<'_, str>) -> Self {
        text.trim().parse().map_or(Self::Odd, Self::Is)
    }

    fn count(count: u64) -> Self {
        i64::try_from(count).map_or(Self::Odd, Self::Is)
    }

    fn number(number: f64) -> Self {
        let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
        if is_whole { Self::Is(number as i64) } else { Self::Odd }
    }
}

impl Lenient<'_> for Number {
    fn text(text: Cow<'_, str>) -> Self {
        Self(text.trim().parse().ok().filter(|number: &f64| number.is_finite()))
    }

    fn count(count: u64) -> Self {
        Self(Some(count as f64))
    }

    fn number(number: f64) -> Self {
        Self(Some(number))
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for Object<T> {
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|object| Self(Some(object)))
    }
}

impl<T> Present<T> {
    /// Returns the object, if the value is one.
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Is(object) => Some(object),
            Self::Absent | Self::Odd => None,
        }
    }
}

impl<'de, T: Deserialize<'de> + Default> Lenient<'de> for Present<T> {
    fn other() -> Self {
        Self::Odd
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Self::Is)
    }
}

impl<'de, T: Deserialize<'de>> Lenient<'de> for List<T> {
    fn list<A: SeqAccess<'de>>(mut list: A) -> Result<Self, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Self(items))
    }
}

macro_rules! read_leniently {
    ($([$($generics:tt)*] $type:ty),* $(,)?) => {$(
        impl<'de, $($generics)*> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                any_shape(deserializer)
            }
        }
    )*};
}

read_leniently!([] Flag, [] Stated, [] Count, [] ExitCode, [] Number, [T: Deserialize<'de>] Object<T>, [T: Deserialize<'de>] List<T>, [T: Deserialize<'de> + Default] Present<T>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_shape(deserializer)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        any_shape(deserializer)
    }
}
