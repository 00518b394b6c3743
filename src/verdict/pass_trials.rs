//! The number of a cell's trials that must pass: `all`, `any`, or a share such as `0.8`.

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Serialize, Serializer};

use crate::values::Fraction;
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};

/// The number or share of a cell's trials that must pass.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum PassTrials {
    /// Every trial.
    #[default]
    All,
    /// At least one trial.
    Any,
    /// At least this share of the trials.
    Share(Fraction),
}

impl Serialize for PassTrials {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            PassTrials::All => serializer.serialize_str("all"),
            PassTrials::Any => serializer.serialize_str("any"),
            PassTrials::Share(share) => share.serialize(serializer),
        }
    }
}

impl Forms<'_> for PassTrials {
    const EXPECTED: &'static str = "`all`, `any` or a share such as 0.8";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        match word {
            "all" => Ok(PassTrials::All),
            "any" => Ok(PassTrials::Any),
            other if other.ends_with('%') => {
                Err(E::custom(format!("`{other}` is not a share of trials; write a number from 0 to 1, such as 0.75")))
            }
            other => Err(E::unknown_variant(other, &["all", "any"])),
        }
    }

    fn from_number<E: Error>(share: ParsedNumber) -> Result<Self, E> {
        let share = Fraction::new(share.as_f64()).filter(|share| share.get() > 0.0);
        share
            .map(PassTrials::Share)
            .ok_or_else(|| E::custom("a share of trials must be more than 0 and at most 1; `any` asks for one trial"))
    }
}

deserialize_forms!(PassTrials, deserialize_any);

#[cfg(test)]
impl JsonSchema for PassTrials {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PassTrials".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "how many trials must pass",
            "oneOf": [{"enum": ["all", "any"]}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}]
        })
    }
}
