//! Graders as a case writes them: one-key maps.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A grader as a case says it.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
pub struct GraderEntry {
    /// A grader that stands here, or the name of one.
    pub what: What,
}

/// A grader, or the name of one.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
pub enum What {
    /// One that stands here: its kind, and what it is told.
    Kind(String, Value),
    /// One that stands in `graders/`.
    Use(Use),
}

/// A named grader from `graders/`.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
pub struct Use {
    /// Its name: the file's, without extension.
    pub grader: String,
}

impl<'de> Deserialize<'de> for GraderEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneKey;
        impl<'de> Visitor<'de> for OneKey {
            type Value = GraderEntry;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a grader: a map of one key, such as `command: {run: cargo test}`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GraderEntry, A::Error> {
                let word: String = map.next_key()?.ok_or_else(|| A::Error::custom("this grader is empty"))?;
                let body: Value = map.next_value()?;
                if map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
                    return Err(A::Error::custom("a grader has one key"));
                }
                let named = body.as_str().or_else(|| body.get("grader").and_then(Value::as_str));
                let what = match named.filter(|_| word == "use") {
                    Some(name) => What::Use(Use { grader: name.to_owned() }),
                    None => What::Kind(word, body),
                };
                Ok(GraderEntry { what })
            }
        }
        deserializer.deserialize_map(OneKey)
    }
}
