//! The policy `llm`: its settings, and the trait for asking a model about permission requests.

use std::sync::atomic::AtomicBool;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, DefaultAnswer, Question};
use crate::model_client::ModelName;

/// The settings of the policy `llm`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Llm {
    /// The model: `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`. Default: EVALS_JUDGE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Instructions for the model's decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The answer if the model gives none. Default: `reject`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultAnswer>,
}

/// A model's answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The answer.
    pub answer: Answer,
    /// The model, and its reason.
    pub reason: String,
    /// The rule that decided instead, if no model was asked.
    pub rule: Option<&'static str>,
}

/// Asks a model.
pub trait Adviser: std::fmt::Debug + Send + Sync {
    /// Asks, and waits for the answer. May block.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn advise(&self, llm: &Llm, question: &Question, withdrawn: &AtomicBool) -> Result<Advice, String>;
}
