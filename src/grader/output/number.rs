//! Checks a number in an answer, with a tolerance.

#[cfg(test)]
use schemars::{Schema, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected};
use serde::{Deserialize, Serialize};

use super::spec::Written;
use super::written_numbers;
use crate::decimal::Decimal;
use crate::grader::checks::Checks;
use crate::reason_text;
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};
use crate::yaml::lists::not_null;

/// The maximum number of numbers in an answer that are checked.
const MAX_NUMBERS: usize = 100_000;

/// A number that the answer must contain.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(transform = or_a_number))]
pub struct Number {
    /// The expected number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Written>,
    /// The minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Written>,
    /// The maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Written>,
    /// The allowed absolute difference from `equals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Written>,
    /// The allowed difference from `equals`, as a share of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relative: Option<Written>,
    /// Which number of the answer is checked.
    pub which: Which,
}

/// Which number of an answer is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// The last number.
    #[default]
    Last,
    /// The first number.
    First,
    /// Any of the numbers.
    Any,
    /// The answer must consist of a number only.
    Only,
}

/// Makes the schema accept a number instead of the map.
#[cfg(test)]
fn or_a_number(schema: &mut Schema) {
    let mut map = std::mem::take(schema);
    let object = map.ensure_object();
    // All keys are optional, and no other key is known.
    object.remove("required");
    object.insert("additionalProperties".to_owned(), false.into());
    *schema = json_schema!({"anyOf": [{"type": "number"}, {"type": "string", "pattern": super::spec::PATTERN}, map]});
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Map {
    #[serde(deserialize_with = "not_null")]
    equals: Option<Written>,
    #[serde(deserialize_with = "not_null")]
    min: Option<Written>,
    #[serde(deserialize_with = "not_null")]
    max: Option<Written>,
    #[serde(deserialize_with = "not_null")]
    tolerance: Option<Written>,
    #[serde(deserialize_with = "not_null")]
    relative: Option<Written>,
    which: Which,
}

impl<'de> Forms<'de> for Number {
    const EXPECTED: &'static str = "a number, or a map such as `{equals: 3.14, tolerance: 0.01}`";

    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        Written::read(number).map(Number::equal_to)
    }

    fn from_text<E: Error>(text: &str) -> Result<Self, E> {
        let wrong = || E::invalid_type(Unexpected::Str(text), &Self::EXPECTED);
        Decimal::parse(text).map(|number| Number::equal_to(Written(number))).ok_or_else(wrong)
    }

    fn from_map<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        let Map { equals, min, max, tolerance, relative, which } = Map::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Number { equals, min, max, tolerance, relative, which })
    }
}

deserialize_forms!(Number, deserialize_any);

impl Number {
    fn equal_to(number: Written) -> Self {
        Self { equals: Some(number), ..Self::default() }
    }

    /// Returns why the check is meaningless.
    pub fn refusal(&self) -> Option<String> {
        let Self { equals, min, max, tolerance, relative, which: _ } = self;
        if equals.is_none() && min.is_none() && max.is_none() {
            Some("checks nothing: `number` has none of `equals`, `min` and `max`".to_owned())
        } else if [tolerance, relative].into_iter().flatten().any(|room| room.0.is_negative()) {
            Some("contradicts itself: `number` has a tolerance below 0".to_owned())
        } else if equals.is_none() && (tolerance.is_some() || relative.is_some()) {
            Some("has a tolerance in `number`, but no `equals`".to_owned())
        } else if matches!((min, max), (Some(min), Some(max)) if min.0 > max.0) {
            Some("contradicts itself: in `number` `min` is above `max`".to_owned())
        } else {
            None
        }
    }

    /// Checks the answer.
    pub fn check(&self, checks: &mut Checks, output: &str, shown: &str, answer_at: Option<u64>) {
        let mut found = match self.which {
            Which::Only => written_numbers::only(output).into_iter().collect(),
            Which::Last | Which::First | Which::Any => written_numbers::all(output),
        };
        match self.which {
            Which::Last => drop(found.drain(..found.len().saturating_sub(1))),
            Which::First => found.truncate(1),
            Which::Any => found.truncate(MAX_NUMBERS),
            Which::Only => {}
        }
        let which = match self.which {
            Which::Last => "the last number in the output",
            Which::First => "the first number in the output",
            Which::Any => "a number in the output",
            Which::Only => "the output",
        };
        let wanted = self.described();
        match found.iter().find(|number| self.fits(number)) {
            Some(number) => checks.held(format!("{which} is {number}, which is {wanted}"), answer_at),
            None if found.is_empty() => {
                let what = if self.which == Which::Only { "is not a number" } else { "contains no number" };
                checks.lacking(format!("the output {what}, expected {wanted}; it is {shown}"), answer_at);
            }
            None => {
                let numbers = reason_text::first_few(&found, 5);
                checks.lacking(format!("{which} is {numbers}, not {wanted}; the output is {shown}"), answer_at);
            }
        }
    }

    fn fits(&self, number: &Decimal) -> bool {
        let near = self.equals.as_ref().is_none_or(|Written(wanted)| {
            let zero = Written::default();
            let Written(room) = self.tolerance.as_ref().unwrap_or(&zero);
            let Written(share) = self.relative.as_ref().unwrap_or(&zero);
            number.minus(wanted).abs() <= share.times(wanted).abs().max(room.clone())
        });
        near && self.min.as_ref().is_none_or(|min| *number >= min.0)
            && self.max.as_ref().is_none_or(|max| *number <= max.0)
    }

    fn described(&self) -> String {
        let mut parts = Vec::new();
        if let Some(Written(wanted)) = &self.equals {
            let mut text = wanted.to_string();
            for (room, unit) in [(&self.tolerance, ""), (&self.relative, " of it")] {
                if let Some(Written(room)) = room.as_ref().filter(|room| **room != Written::default()) {
                    text.push_str(&format!(" ± {room}{unit}"));
                }
            }
            parts.push(text);
        }
        parts.extend(self.min.as_ref().map(|min| format!("at least {}", min.0)));
        parts.extend(self.max.as_ref().map(|max| format!("at most {}", max.0)));
        parts.join(" and ")
    }
}
