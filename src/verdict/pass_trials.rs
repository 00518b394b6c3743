//! The number of a cell's trials that must pass: `all`, `any`, or a share such as `0.8`.

use std::fmt;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use crate::values::Fraction;

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

impl<'de> Deserialize<'de> for PassTrials {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PassTrialsVisitor;
        impl Visitor<'_> for PassTrialsVisitor {
            type Value = PassTrials;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`all`, `any` or a share such as 0.8")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<PassTrials, E> {
                match word {
                    "all" => Ok(PassTrials::All),
                    "any" => Ok(PassTrials::Any),
                    other if other.ends_with('%') => Err(E::custom(format!(
                        "`{other}` is not a share of trials; write a number from 0 to 1, such as 0.75"
                    ))),
                    other => Err(E::unknown_variant(other, &["all", "any"])),
                }
            }

            fn visit_f64<E: de::Error>(self, share: f64) -> Result<PassTrials, E> {
                let share = Fraction::new(share).filter(|share| share.get() > 0.0);
                share.map(PassTrials::Share).ok_or_else(|| {
                    E::custom("a share of trials must be more than 0 and at most 1; `any` asks for one trial")
                })
            }

            fn visit_u64<E: de::Error>(self, share: u64) -> Result<PassTrials, E> {
                self.visit_f64(share as f64)
            }

            fn visit_i64<E: de::Error>(self, share: i64) -> Result<PassTrials, E> {
                self.visit_f64(share as f64)
            }
        }
        deserializer.deserialize_any(PassTrialsVisitor)
    }
}

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
