//! The token usage of one answer, counted in the same way for all APIs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The token usage of one answer. A figure that the service does not report is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TokenUsage {
    /// Input tokens, without those read from or written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Output tokens, including those of thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input tokens read from the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Input tokens written to the cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// Output tokens of thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_tokens: Option<u64>,
}

impl TokenUsage {
    /// Returns the usage unless no figure of it is above zero: services that count nothing report zeros.
    pub(super) fn some(self) -> Option<Self> {
        let figures = [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.thought_tokens,
        ];
        figures.into_iter().flatten().any(|figure| figure > 0).then_some(self)
    }
}

/// Returns a count at a place of a usage object.
pub(super) fn count(usage: &Value, pointer: &str) -> Option<u64> {
    let value = usage.pointer(pointer)?;
    // Some services write counts as numbers with a fraction of zero.
    value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0).map(whole))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked by the caller, and saturating")]
fn whole(number: f64) -> u64 {
    number as u64
}
