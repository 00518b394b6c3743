//! Names of models: the API, and the name of the model in it.

use std::fmt;
use std::str::FromStr;

#[cfg(test)]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{EnumString, IntoStaticStr};

use crate::word::word;

/// A model, as `anthropic:MODEL`, `openai:MODEL` or `harness:NAME[=MODEL]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelName {
    /// The route to the model.
    pub via: Via,
    /// The model, or the harness.
    pub model: String,
    /// The model that a harness is asked to use.
    pub of_harness: Option<String>,
}

/// A route to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum Via {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, which many services speak.
    Openai,
    /// A harness that gets the question as its prompt.
    Harness,
}

word!(Via);

impl FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is not a model name; write `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`, such as `anthropic:claude-opus-4-8`"
            )
        };
        let (via, model) = text.trim().split_once(':').ok_or_else(wrong)?;
        let via: Via = via.parse().map_err(|_| wrong())?;
        let (model, of_harness) = match (via, model.split_once('=')) {
            (Via::Harness, Some((harness, model))) if !model.trim().is_empty() => {
                (harness, Some(model.trim().to_owned()))
            }
            _ => (model, None),
        };
        if model.trim().is_empty() || model.chars().any(char::is_control) {
            return Err(wrong());
        }
        Ok(Self { via, model: model.trim().to_owned(), of_harness })
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.via.word(), self.model)?;
        self.of_harness.as_ref().map_or(Ok(()), |model| write!(f, "={model}"))
    }
}

impl<'de> Deserialize<'de> for ModelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Serialize for ModelName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
impl JsonSchema for ModelName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelName".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(anthropic|openai|harness):."})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_with_its_api() {
        for text in ["anthropic:claude-opus-4-8", "openai:llama3:8b", "harness:codex-acp=gpt-5", "openai:a=b"] {
            assert_eq!(text.parse::<ModelName>().unwrap().to_string(), text);
        }
        let harness: ModelName = "harness:a=b".parse().unwrap();
        assert_eq!((harness.model.as_str(), harness.of_harness.as_deref()), ("a", Some("b")));
        for text in ["claude-opus-4-8", "anthropic:", "gemini:x", "openai: \u{7}"] {
            assert!(text.parse::<ModelName>().unwrap_err().contains("is not a model name"), "{text}");
        }
    }
}
