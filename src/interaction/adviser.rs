//! A model that answers permission requests: what the policy `llm` is told, and of whom it asks.

use std::sync::atomic::AtomicBool;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, DefaultAnswer, Question};
use crate::model_client::ModelName;

/// The settings of the policy `llm`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Llm {
    /// Who answers: `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`; EVALS_JUDGE where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// What the user would have answered by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Where the model gives no answer; rejected where this is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
}

/// What a model answers to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The answer.
    pub answer: Answer,
    /// Who gave it, and why.
    pub reason: String,
    /// The rule that decided in the model's place, if no model was asked.
    pub rule: Option<&'static str>,
}

/// Who asks a model.
pub trait Adviser: std::fmt::Debug + Send + Sync {
    /// Asks, and waits for the answer. May block.
    ///
    /// # Errors
    /// Why there is none.
    fn advise(&self, llm: &Llm, question: &Question, withdrawn: &AtomicBool) -> Result<Advice, String>;
}
