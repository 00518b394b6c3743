//! Conditions of a script's turns on the results of earlier tool calls. Pure.

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::gateway::ToolResult;
use crate::judgement::Judgement;
use crate::values::Pattern;
use crate::word::word;
use crate::yaml::forms::{Forms, ParsedNumber, deserialize_forms};

/// A condition on the results of earlier calls. It holds if one result fits all of its keys.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// A pattern that is found in the text of the result.
    pub result: Option<Pattern>,
    /// The status of the result. Only the APIs of Anthropic and Gemini state it.
    pub status: Option<Status>,
    /// The results that are looked at. Default: `last`.
    pub of: Of,
    /// The number of the call in its turn, from 0. Default: every call.
    pub call: Option<usize>,
}

/// The status of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Status {
    /// The call succeeded.
    Ok,
    /// The call failed.
    Error,
}

word!(Status);

/// The results that a condition looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Of {
    /// The results of the previous turn.
    #[default]
    Last,
    /// The results of all earlier turns.
    Any,
    /// The results of the turn with this number, from 0.
    Turn(usize),
}

impl When {
    /// Returns true if the condition states something about a result.
    pub fn has_content(&self) -> bool {
        self.result.is_some() || self.status.is_some()
    }

    /// Returns the results that the condition examines, for the turn with this number. `results` are the results of the
    /// turns of the script.
    pub fn looked_at<'a>(&self, number: usize, results: &'a [ToolResult]) -> impl Iterator<Item = &'a ToolResult> {
        let (of, call) = (self.of, self.call);
        let in_turn = move |turn: usize| match of {
            Of::Last => turn + 1 == number,
            Of::Any => turn < number,
            Of::Turn(wanted) => turn == wanted,
        };
        results.iter().filter(move |it| it.turn.is_some_and(in_turn) && call.is_none_or(|call| call == it.call))
    }

    /// Returns whether the condition of the turn with this number holds.
    pub fn holds(&self, number: usize, results: &[ToolResult]) -> Judgement {
        self.looked_at(number, results).fold(Judgement::False, |any, result| any.or(|| self.fits(result)))
    }

    fn fits(&self, result: &ToolResult) -> Judgement {
        let text = self.result.as_ref().is_none_or(|pattern| pattern.is_match(&result.text));
        let status = match (self.status, result.failed) {
            (None, _) => Judgement::True,
            (Some(_), None) => Judgement::Unknown,
            (Some(status), Some(failed)) => Judgement::from(failed == (status == Status::Error)),
        };
        Judgement::from(text).and(|| status)
    }
}

impl Forms<'_> for Of {
    const EXPECTED: &'static str = "`last`, `any` or the number of a turn, from 0";

    fn from_text<E: Error>(word: &str) -> Result<Self, E> {
        match word {
            "last" => Ok(Of::Last),
            "any" => Ok(Of::Any),
            _ => Err(E::custom(format!("`{word}` is neither `last` nor `any` nor the number of a turn, from 0"))),
        }
    }

    fn from_number<E: Error>(number: ParsedNumber) -> Result<Self, E> {
        let turn = match number {
            ParsedNumber::Unsigned(turn) => usize::try_from(turn),
            ParsedNumber::Signed(turn) => usize::try_from(turn),
            ParsedNumber::Float(_) => return Err(number.refused(Self::EXPECTED)),
        };
        turn.map(Of::Turn).map_err(|_| E::custom(format!("{number} is not the number of a turn")))
    }
}

deserialize_forms!(Of, deserialize_any);

#[cfg(test)]
impl JsonSchema for Of {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Of".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [{"type": "string", "enum": ["last", "any"]}, {"type": "integer", "minimum": 0}]})
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(turn: usize, call: usize, text: &str, failed: Option<bool>) -> ToolResult {
        ToolResult { turn: Some(turn), numbered: true, call, text: text.to_owned(), failed }
    }

    #[test]
    fn one_result_must_fit_all_keys() {
        let results = [
            ToolResult { text: "before the prompt".to_owned(), ..ToolResult::default() },
            result(0, 0, "old", Some(true)),
            result(1, 0, "passed", Some(false)),
            result(1, 1, "failed", Some(true)),
            result(2, 0, "later", None),
        ];
        for (keys, number, expected) in [
            (json!({"result": "passed"}), 2, Judgement::True),
            (json!({"result": "old"}), 2, Judgement::False),
            (json!({"result": "old", "of": "any"}), 2, Judgement::True),
            (json!({"result": "old", "of": 0}), 2, Judgement::True),
            (json!({"result": "passed", "status": "error"}), 2, Judgement::False),
            (json!({"result": "failed", "status": "error"}), 2, Judgement::True),
            (json!({"result": "failed", "call": 0}), 2, Judgement::False),
            (json!({"result": "failed", "call": 1}), 2, Judgement::True),
            (json!({"status": "ok", "call": 0}), 2, Judgement::True),
            // A repeated request for a turn is matched only against the results between the prompt and that turn.
            (json!({"result": "later", "of": "any"}), 2, Judgement::False),
            (json!({"result": "before", "of": "any"}), 2, Judgement::False),
            (json!({"result": "before"}), 0, Judgement::False),
            // The API does not state whether the call failed.
            (json!({"status": "error"}), 3, Judgement::Unknown),
            (json!({"result": "other", "status": "error"}), 3, Judgement::False),
        ] {
            let when: When = serde_json::from_value(keys.clone()).unwrap();
            assert_eq!(when.holds(number, &results), expected, "{keys}");
        }
        assert!(serde_json::from_value::<When>(json!({"result": "a", "of": "first"})).is_err());
    }
}
