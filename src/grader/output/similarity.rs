//! Measures the similarity of an answer to a text.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::grader::checks::Checks;
use crate::judgement::tolerance;
use crate::reason_text;
use crate::values::Fraction;
use crate::yaml::lists::OneOrList;

/// The maximum number of characters that are compared: the cost grows with the square.
const MAX_EDIT_CHARS: usize = 20_000;

/// A text that the answer must be similar to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Similarity {
    /// The text, or a list of which the most similar text counts.
    pub to: OneOrList<String>,
    /// The minimum similarity, from 0 to 1.
    #[serde(default = "four_fifths")]
    pub min: Fraction,
    /// The parts of the texts that are compared: characters or words.
    #[serde(default)]
    pub by: Measure,
}

/// The measure of similarity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// 1 minus the share of characters that must be changed (Levenshtein).
    #[default]
    Edits,
    /// The share of common words, in any order (F1).
    Words,
}

fn four_fifths() -> Fraction {
    Fraction::of(4, 5)
}

impl Similarity {
    /// Returns why the check is meaningless.
    pub fn refusal(&self) -> Option<String> {
        if self.to.iter().any(|text| text.trim().is_empty()) {
            Some("checks nothing: `similarity` to an empty text".to_owned())
        } else if self.min == Fraction::ZERO {
            Some("checks nothing: with `min: 0` every answer is similar enough".to_owned())
        } else {
            None
        }
    }

    /// Adds the similarity of the answer with the closest text, unless one of them is too long to compare.
    pub fn check(&self, checks: &mut Checks, output: &str, ignore_case: bool, answer_at: Option<u64>) {
        let folded = |text: &str| if ignore_case { text.trim().to_lowercase() } else { text.trim().to_owned() };
        let output = folded(output);
        let too_long = |text: &str| self.by == Measure::Edits && text.chars().nth(MAX_EDIT_CHARS).is_some();
        if too_long(&output) || self.to.iter().any(|text| too_long(text)) {
            let reason = format!(
                "the similarity of texts of more than {MAX_EDIT_CHARS} characters is not measured by edits; write `by: words`"
            );
            return checks.unknown(reason);
        }
        let near = self.to.iter().map(|text| (self.measure(&output, &folded(text)), text));
        let Some((value, text)) = near.max_by(|one, other| one.0.total_cmp(&other.0)) else { return };
        let by = match self.by {
            Measure::Edits => "edits",
            Measure::Words => "words",
        };
        let holds = tolerance::reaches(value, self.min.get());
        let word = if holds { "at least" } else { "below" };
        let value = (value * 1000.0).floor() / 1000.0;
        let text = reason_text::short(text, 120);
        let mut reason = format!("the similarity of the output to `{text}` by {by} is {value}, {word} {}", self.min);
        if !holds {
            reason.push_str(&format!("; it is `{}`", reason_text::short(&output, 120)));
        }
        checks.found(holds, reason, answer_at);
    }

    fn measure(&self, one: &str, other: &str) -> f64 {
        match self.by {
            Measure::Edits => strsim::normalized_levenshtein(one, other),
            Measure::Words => by_words(one, other),
        }
    }
}

/// Returns twice the number of common words, divided by the number of words in both.
fn by_words(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> Vec<String> {
        let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        parts.map(str::to_lowercase).collect()
    };
    let (one, other) = (words(one), words(other));
    let all = one.len() + other.len();
    if all == 0 {
        return 1.0;
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in &one {
        *left.entry(word).or_default() += 1;
    }
    let mut shared = 0;
    for word in &other {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    2.0 * f64::from(shared) / all as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearness_is_symmetric_and_one_for_the_same() {
        for by in [Measure::Edits, Measure::Words] {
            let of = Similarity { to: OneOrList(vec![]), min: Fraction::ONE, by };
            for (one, other) in [("a b c", "c b a"), ("kitten", "sitting"), ("", "x"), ("the cat", "The cat, the cat")]
            {
                assert_eq!(of.measure(one, other), of.measure(other, one));
                assert_eq!(of.measure(one, one), 1.0);
            }
        }
        assert_eq!(by_words("a b c", "c b a"), 1.0);
        assert!((by_words("the cat", "the cat the cat") - 2.0 / 3.0).abs() < 1e-12);
    }
}
