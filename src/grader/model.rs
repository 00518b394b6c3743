//! `model`: checks which model answered.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Evidence, Findings, GraderSpec, Needs, Observer};
use crate::grade::Grade;
use crate::trace::Lost;
use crate::values::NameGlob;

/// The model that must have answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelIs {
    /// A glob for the model that the agent reports; `*` matches anything.
    pub effective: NameGlob,
}

impl GraderSpec for ModelIs {
    fn misses(&self, _: Lost) -> bool {
        false
    }

    fn needs() -> Needs {
        Needs::NONE
    }

    fn refusal(&self) -> Option<String> {
        self.effective.to_string().is_empty().then(|| "checks nothing: `effective` is empty".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(ModelJudge(self.clone()))
    }
}

struct ModelJudge(ModelIs);

#[async_trait]
impl Observer for ModelJudge {
    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl ModelJudge {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let wanted = &self.0.effective;
        match &evidence.header.model.effective {
            None => Grade::ungraded("could not be judged, because the agent did not report which model answered"),
            Some(model) if wanted.is_match(model) => Grade::pass(format!("the model is `{model}`")),
            Some(model) => Grade::fail(format!("the model is `{model}`, which is not `{wanted}`")),
        }
    }
}
