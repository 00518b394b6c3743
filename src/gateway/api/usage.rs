//! The token usage of one answer, counted in the same way for all APIs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The token usage of one answer. A figure that the service does not report is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// The total, if it is above the sum of the other figures: the service counts tokens that none of them shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// True if the answer may have used more tokens than the figures show.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lower_bound: bool,
    /// True if the answer costs more than its tokens at the prices of a price table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cost_lower_bound: bool,
}

/// The cost of an answer, compared with its tokens at the prices of a price table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pricing {
    /// It costs its tokens.
    Listed,
    /// It costs more than its tokens.
    More,
    /// It costs less than its tokens, by a price that no table has.
    Less,
}

impl TokenUsage {
    /// Sets the total that the service reports, if the other figures do not explain it.
    pub(super) fn with_total(self, total: Option<u64>) -> Self {
        Self { total_tokens: total.filter(|total| *total > self.sum()), ..self }
    }

    /// Adds the tokens of other models than the one that answered. Only the total shows them, because their price is another.
    pub(super) fn with_others(self, tokens: u64) -> Self {
        let total = self.sum().saturating_add(tokens);
        self.with_total(Some(total))
    }

    /// Returns the sum of the figures besides the total. Thoughts are a part of the output.
    fn sum(&self) -> u64 {
        let parts = [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// Returns the number of tokens that only the total shows.
    pub fn beyond(&self) -> u64 {
        self.total_tokens.map_or(0, |total| total.saturating_sub(self.sum()))
    }

    /// Returns the usage unless no figure of it is above zero: services that count nothing report zeros.
    pub(super) fn some(self) -> Option<Self> {
        let figures = [
            self.input_tokens,
            self.output_tokens,
            self.cache_read_tokens,
            self.cache_write_tokens,
            self.thought_tokens,
            self.total_tokens,
        ];
        figures.into_iter().flatten().any(|figure| figure > 0).then_some(self)
    }
}

/// The largest count. Larger numbers are no counts, and a cost that is made of them is wrong.
const MAX_TOKEN_COUNT: u64 = 1 << 53;

/// Returns a count at a place of a usage object.
pub(super) fn count(usage: &Value, pointer: &str) -> Option<u64> {
    let value = usage.pointer(pointer)?;
    // Some services write counts as numbers with a fraction of zero.
    let fraction = || value.as_f64().filter(|number| *number >= 0.0 && number.fract() == 0.0).map(whole);
    value.as_u64().or_else(fraction).filter(|count| *count <= MAX_TOKEN_COUNT)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked by the caller, and saturating")]
fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_number_that_cannot_be_a_count_is_unknown() {
        let usage = json!({"a": [0, 12, 12.0, 9_007_199_254_740_992_u64, 1.5, -1.0, 1e30, u64::MAX, "7", null]});
        let counts: Vec<Option<u64>> = (0..11).map(|at| count(&usage, &format!("/a/{at}"))).collect();
        let unknown = [None; 7];
        assert_eq!(counts[..4], [Some(0), Some(12), Some(12), Some(MAX_TOKEN_COUNT)]);
        assert_eq!(counts[4..], unknown);
    }
}
