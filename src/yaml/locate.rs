//! Finds the place of a value in a YAML text by parsing the text again, because the parser keeps no places.

use std::cell::Cell;
use std::fmt;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A step from a value to a value within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// Into a map, by key.
    Key(&'a str),
    /// Into a list, by position from 0.
    Item(usize),
}

/// The part of the last step that is located.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepPart {
    Key,
    Value,
}

/// Returns the bytes of the value, or the key, at these steps from the top, or `None` if there is none.
pub fn find(text: &str, steps: &[Step<'_>], part: StepPart) -> Option<Range<usize>> {
    let found = Cell::new(false);
    let walk = Walk { steps, part, found: &found };
    let error = walk.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    let place = error.location().filter(|_| found.get())?;
    Some(token(text, place.index()))
}

/// Returns true if a text was written as `null` or `~` without quotes. Other readers of YAML read no value there.
pub fn is_written_null(text: &str, steps: &[Step<'_>], value: &str) -> bool {
    matches!(value, "null" | "Null" | "NULL" | "~")
        && find(text, steps, StepPart::Value).and_then(|at| text.get(at)).is_some_and(|written| written == value)
}

/// Returns the line and the column of a byte, both from 1, the column in characters.
pub(super) fn line_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    (line, before.get(line_start..).unwrap_or_default().trim_start_matches('\u{feff}').chars().count() + 1)
}

/// Returns the bytes of the key or value that begins at a byte, up to the end of its line.
pub(super) fn token(text: &str, start: usize) -> Range<usize> {
    let start = text.floor_char_boundary(start.min(text.len()));
    let rest = text.get(start..).unwrap_or_default();
    let line = rest.lines().next().unwrap_or_default();
    let length = match line.chars().next() {
        None => 0,
        Some(quote @ ('"' | '\'')) => {
            let mut escaped = false;
            let close = line.char_indices().skip(1).find(|(_, c)| {
                let closes = *c == quote && !escaped;
                escaped = quote == '"' && *c == '\\' && !escaped;
                closes
            });
            close.map_or(line.len(), |(at, _)| at + 1)
        }
        Some('{' | '[' | '|' | '>') => 1,
        Some(_) => {
            let ends = [": ", " #", ",", "}", "]"].iter().filter_map(|end| line.find(end));
            let end = ends.min().unwrap_or(line.len());
            let shown = line.get(..end).unwrap_or(line).trim_end();
            shown.strip_suffix(':').unwrap_or(shown).len().max(1)
        }
    };
    start..text.ceil_char_boundary((start + length).min(text.len()))
}

/// Returns the parser's message without its place, which is shown before the message.
pub(super) fn without_place(error: &serde_yaml::Error) -> String {
    let text = error.to_string();
    let text = match error.location() {
        Some(at) => text.replacen(&format!(" at line {} column {}", at.line(), at.column()), "", 1),
        None => text,
    };
    text.replace(" at line ", " that begins at line ").replace(" column ", ", column ")
}

/// Visits plain values by a method of the visitor.
macro_rules! visit_plain {
    ($visit:ident; $($method:ident: $type:ty),* $(,)?) => {$(
        fn $method<E: serde::de::Error>(self, _: $type) -> Result<Self::Value, E> {
            self.$visit()
        }
    )*};
}

pub(super) use visit_plain;

struct Walk<'a> {
    steps: &'a [Step<'a>],
    part: StepPart,
    found: &'a Cell<bool>,
}

impl Walk<'_> {
    fn here<E: de::Error>(&self) -> Result<(), E> {
        if self.steps.is_empty() {
            self.found.set(true);
            return Err(E::custom("here"));
        }
        Ok(())
    }

    fn inner(&self) -> Self {
        Self { steps: self.steps.get(1..).unwrap_or_default(), ..*self }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    visit_plain!(here; visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str);

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.here()
    }

    fn visit_none<E: de::Error>(self) -> Result<(), E> {
        self.here()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        self.here()?;
        if let Some(Step::Item(number)) = self.steps.first() {
            for _ in 0..*number {
                if list.next_element::<IgnoredAny>()?.is_none() {
                    return Ok(());
                }
            }
            list.next_element_seed(self.inner())?;
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.here()?;
        let Some(Step::Key(wanted)) = self.steps.first().copied() else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let stop = self.part == StepPart::Key && self.steps.len() == 1;
        while let Some(matched) = map.next_key_seed(Wanted { wanted, stop, found: self.found })? {
            if matched {
                map.next_value_seed(self.inner())?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Wanted<'a> {
    wanted: &'a str,
    stop: bool,
    found: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Wanted<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<bool, E> {
        let matched = key == self.wanted;
        if matched && self.stop {
            self.found.set(true);
            return Err(E::custom("here"));
        }
        Ok(matched)
    }
}
