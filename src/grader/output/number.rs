//! A number in an answer, within a tolerance.

use std::fmt;

use schemars::{JsonSchema, Schema, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::grader::checks::Checks;
use crate::grader::lists::said;
use crate::grader::words;

/// Numbers of an answer that are looked at, at most.
const MOST: usize = 100_000;

/// A number that the answer has to hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(transform = or_a_number)]
pub struct Number {
    /// It is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<f64>,
    /// It is at least this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// It is at most this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// How far from `equals` it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<f64>,
    /// How far from `equals` it may be, as a share of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<f64>,
    /// Which of the numbers in the answer is meant.
    pub which: Which,
}

/// Which of the numbers in an answer is meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The last one.
    #[default]
    Last,
    /// The first one.
    First,
    /// Any of them.
    Any,
    /// The answer is a number and nothing else.
    Only,
}

/// What people write for a number: that, or a map.
fn or_a_number(schema: &mut Schema) {
    let mut map = std::mem::take(schema);
    let object = map.ensure_object();
    // Each key may be left out, and no other is known.
    object.remove("required");
    object.insert("additionalProperties".to_owned(), false.into());
    *schema = json_schema!({"anyOf": [{"type": "number"}, map]});
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    #[serde(deserialize_with = "said")]
    equals: Option<f64>,
    #[serde(deserialize_with = "said")]
    min: Option<f64>,
    #[serde(deserialize_with = "said")]
    max: Option<f64>,
    #[serde(deserialize_with = "said")]
    tolerance: Option<f64>,
    #[serde(deserialize_with = "said")]
    relative: Option<f64>,
    which: Which,
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberOrMap;
        impl<'de> Visitor<'de> for NumberOrMap {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a map such as `{equals: 3.14, tolerance: 0.01}`")
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
                self.visit_f64(number as f64)
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
                self.visit_f64(number as f64)
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
                Ok(Number { equals: Some(number), ..Number::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Number, A::Error> {
                let Written { equals, min, max, tolerance, relative, which } =
                    Written::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Number { equals, min, max, tolerance, relative, which })
            }
        }
        deserializer.deserialize_any(NumberOrMap)
    }
}

impl Number {
    /// Why it means nothing.
    pub fn refusal(&self) -> Option<String> {
        let Self { equals, min, max, tolerance, relative, which: _ } = self;
        let is = |wrong: &dyn Fn(f64) -> bool, numbers: &[&Option<f64>]| {
            numbers.iter().any(|number| number.is_some_and(wrong))
        };
        if is(&|number| !number.is_finite(), &[equals, min, max, tolerance, relative]) {
            Some("checks nothing: `number` holds what is no number".to_owned())
        } else if equals.is_none() && min.is_none() && max.is_none() {
            Some("checks nothing: `number` says neither `equals` nor `min` nor `max`".to_owned())
        } else if is(&|room| room < 0.0, &[tolerance, relative]) {
            Some("contradicts itself: `number` has a tolerance below 0".to_owned())
        } else if equals.is_none() && (tolerance.is_some() || relative.is_some()) {
            Some("has a tolerance in `number`, and no `equals` that it is about".to_owned())
        } else if matches!((min, max), (Some(min), Some(max)) if min > max) {
            Some("contradicts itself: in `number` `min` is above `max`".to_owned())
        } else {
            None
        }
    }

    /// Judges the answer.
    pub fn check(&self, checks: &mut Checks, output: &str, shown: &str, said_at: Option<u64>) {
        let found: Vec<f64> = match self.which {
            Which::Only => only(output).into_iter().collect(),
            Which::Last => numbers(output).last().into_iter().collect(),
            Which::First => numbers(output).next().into_iter().collect(),
            Which::Any => numbers(output).take(MOST).collect(),
        };
        let which = match self.which {
            Which::Last => "the last number in the output",
            Which::First => "the first number in the output",
            Which::Any => "a number in the output",
            Which::Only => "the output",
        };
        let wanted = self.told();
        match found.iter().find(|number| self.fits(**number)) {
            Some(number) => checks.held(format!("{which} is {number}, which is {wanted}"), said_at),
            None if found.is_empty() => {
                let what = if self.which == Which::Only { "is no number" } else { "holds no number" };
                checks.violated(format!("the output {what}, and {wanted} is wanted; it is {shown}"), said_at);
            }
            None => {
                let numbers = words::first_few(&found, 5);
                checks.violated(format!("{which} is {numbers}, and not {wanted}; the output is {shown}"), said_at);
            }
        }
    }

    fn fits(&self, number: f64) -> bool {
        let near = self.equals.is_none_or(|wanted| {
            let room = self.tolerance.unwrap_or(0.0).max(self.relative.unwrap_or(0.0) * wanted.abs());
            // What is written with a few digits is not exact: 0.1 + 0.2 is 0.3.
            (number - wanted).abs() <= room + wanted.abs().max(room) * 1e-12
        });
        near && self.min.is_none_or(|min| number >= min) && self.max.is_none_or(|max| number <= max)
    }

    fn told(&self) -> String {
        let mut parts = Vec::new();
        if let Some(wanted) = self.equals {
            let mut told = wanted.to_string();
            for (room, unit) in [(self.tolerance, ""), (self.relative, " of it")] {
                if let Some(room) = room.filter(|room| *room > 0.0) {
                    told.push_str(&format!(" ± {room}{unit}"));
                }
            }
            parts.push(told);
        }
        parts.extend(self.min.map(|min| format!("at least {min}")));
        parts.extend(self.max.map(|max| format!("at most {max}")));
        parts.join(" and ")
    }
}

/// The number that a text is.
fn only(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('.');
    let (number, end) = number_at(text.as_bytes(), 0)?;
    (end == text.len()).then_some(number)
}

/// The numbers in a text: digits, with a sign, a point, an exponent, and commas between thousands.
fn numbers(text: &str) -> impl Iterator<Item = f64> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            if let Some((number, end)) = number_at(bytes, at) {
                at = end;
                return Some(number);
            }
            at += 1;
        }
        None
    })
}

/// The number that begins here, and where it ends.
fn number_at(bytes: &[u8], start: usize) -> Option<(f64, usize)> {
    let is = |at: usize, wanted: &[u8]| bytes.get(at).is_some_and(|byte| wanted.contains(byte));
    let digits = |from: usize| bytes.iter().skip(from).take_while(|byte| byte.is_ascii_digit()).count();
    let before = start.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
    // The 8 of `utf8` and the 3 of `v1.2.3` are no numbers of their own.
    if before.is_ascii_alphanumeric() || before == b'_' || before == b'.' {
        return None;
    }
    let mut at = start + usize::from(is(start, b"+-"));
    let whole = digits(at);
    if whole == 0 && !(is(at, b".") && digits(at + 1) > 0) {
        return None;
    }
    at += whole;
    // Commas stand between groups of three.
    while (1..=3).contains(&whole) && is(at, b",") && digits(at + 1) == 3 {
        at += 4;
    }
    if is(at, b".") && digits(at + 1) > 0 {
        at += 1 + digits(at + 1);
    }
    if is(at, b"eE") {
        let sign = usize::from(is(at + 1, b"+-"));
        let power = digits(at + 1 + sign);
        at += if power > 0 { 1 + sign + power } else { 0 };
    }
    let text: String =
        bytes.get(start..at)?.iter().filter(|byte| **byte != b',').map(|byte| char::from(*byte)).collect();
    let number: f64 = text.parse().ok()?;
    number.is_finite().then_some((number, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_as_people_write_them() {
        let found = |text: &str| numbers(text).collect::<Vec<f64>>();
        assert_eq!(found("a 1, b -2.5 and 3e2"), [1.0, -2.5, 300.0]);
        assert_eq!(found("1,234,567 of 12,34"), [1_234_567.0, 12.0, 34.0]);
        assert_eq!(found("It is 42."), [42.0]);
        assert_eq!(found("$3.50, 50%, (7), .5"), [3.5, 50.0, 7.0, 0.5]);
        assert_eq!(found("utf8 x_2 v1.2.3"), [] as [f64; 0]);
        assert_eq!(found("no"), [] as [f64; 0]);
        assert_eq!(found("1e999 5 6e"), [5.0, 6.0]);
        assert_eq!((only(" 42. "), only("42 apples"), only("-1,000")), (Some(42.0), None, Some(-1000.0)));
    }
}
