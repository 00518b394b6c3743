//! The exit codes of an agent's program, and their meanings according to its manifest.

#[cfg(test)]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trace::{ErrorCategory, StopReason};

/// An exit code as the key of a map: a number, which file formats represent as a number or as a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExitCode(pub i32);

impl<'de> Deserialize<'de> for ExitCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = text.trim().parse().map(ExitCode);
        number.map_err(|_| serde::de::Error::custom(format!("`{text}` is not an exit code; write a number such as 53")))
    }
}

impl Serialize for ExitCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

#[cfg(test)]
impl JsonSchema for ExitCode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExitCode".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^-?[0-9]+$"})
    }
}

/// The meaning of an exit code of an agent's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitMeaning {
    /// The agent ended for this reason.
    Stop(StopReason),
    /// The agent failed with an error of this category.
    Error(ErrorCategory),
}

impl ExitMeaning {
    /// Every meaning, with its word.
    pub const ALL: [(&'static str, ExitMeaning); 8] = [
        ("max_turns", ExitMeaning::Stop(StopReason::MaxTurns)),
        ("max_tokens", ExitMeaning::Stop(StopReason::MaxTokens)),
        ("max_budget", ExitMeaning::Stop(StopReason::MaxBudget)),
        ("refusal", ExitMeaning::Stop(StopReason::Refusal)),
        ("cancelled", ExitMeaning::Stop(StopReason::Cancelled)),
        ("auth", ExitMeaning::Error(ErrorCategory::Auth)),
        ("rate_limit", ExitMeaning::Error(ErrorCategory::RateLimit)),
        ("provider", ExitMeaning::Error(ErrorCategory::Provider)),
    ];

    fn words() -> Vec<&'static str> {
        Self::ALL.iter().map(|(word, _)| *word).collect()
    }
}

impl<'de> Deserialize<'de> for ExitMeaning {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        let found = Self::ALL.iter().find(|(known, _)| *known == word);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            let known = Self::words().join("`, `");
            serde::de::Error::custom(format!("`{word}` is not a meaning of an exit code; expected one of `{known}`"))
        })
    }
}

impl Serialize for ExitMeaning {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let found = Self::ALL.iter().find(|(_, meaning)| meaning == self);
        serializer.serialize_str(found.map_or("", |(word, _)| *word))
    }
}

#[cfg(test)]
impl JsonSchema for ExitMeaning {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ExitMeaning".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"enum": Self::words()})
    }
}
