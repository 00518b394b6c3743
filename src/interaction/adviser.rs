//! The policy `llm`: its settings, and the trait for asking a model about permission requests.

use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Decision, DefaultAnswer, Request};
use crate::model_client::ModelName;

/// The settings of the policy `llm`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// Asks a model.
pub trait Adviser: std::fmt::Debug + Send + Sync {
    /// Asks the model and waits for the answer. May block.
    ///
    /// # Errors
    /// Returns the reason if there is no answer.
    fn advise(&self, llm: &Llm, request: &Request, withdrawn: &AtomicBool) -> Result<Decision, String>;
}
