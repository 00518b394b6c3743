//! `model`: checks which model answered.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::{Evidence, Findings, GraderSpec, Needs, Observer};
use crate::grade::Grade;
use crate::trace::{Body, Event, Lost, NoticeCode, Usage};
use crate::values::NameGlob;

/// The model that must have answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a map such as `{effective: claude-*}`")]
pub struct ModelIs {
    /// A glob for the model that the agent reports; `*` matches anything.
    pub effective: NameGlob,
}

impl GraderSpec for ModelIs {
    /// Returns true for a lost line: it may name another model.
    fn depends_on_loss(&self, lost: Lost) -> bool {
        lost == Lost::Line
    }

    fn needs() -> Needs {
        Needs::NONE
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        self.effective.to_string().is_empty().then(|| "checks nothing: `effective` is empty".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(ModelObserver { wanted: self.clone(), changed_at: None, other: None })
    }
}

struct ModelObserver {
    wanted: ModelIs,
    /// `seq` of the first notice that another model answers than before, or than the agent reports elsewhere.
    changed_at: Option<u64>,
    /// The first usage report of the agent about a model that is not wanted, with its `seq`.
    other: Option<(String, u64)>,
}

#[async_trait]
impl Observer for ModelObserver {
    fn event(&mut self, event: &Event) {
        if let Body::Notice { code: NoticeCode::ModelChanged, .. } = &event.body {
            self.changed_at = self.changed_at.or(Some(event.seq));
        }
        if let Body::Usage(Usage { model: Some(model), source: None, .. }) = &event.body
            && self.other.is_none()
            && !self.wanted.effective.is_match(model)
        {
            self.other = Some((model.clone(), event.seq));
        }
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl ModelObserver {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let wanted = &self.wanted.effective;
        match (&evidence.header.model.effective, self.changed_at) {
            (Some(model), None) if wanted.is_match(model) && self.other.is_some() => {
                let (other, seq) = self.other.unwrap_or_default();
                Grade::ungraded(format!(
                    "could not be graded: the agent reports `{model}`, and usage of `{other}` (event {seq})"
                ))
            }
            (None, _) => Grade::ungraded("could not be graded, because the agent did not report which model answered"),
            (Some(model), Some(seq)) if wanted.is_match(model) => Grade::ungraded(format!(
                "could not be graded: `{model}` answered last, and another model before (event {seq})"
            )),
            (Some(model), None) if wanted.is_match(model) => Grade::pass(format!("the model is `{model}`")),
            (Some(model), _) => Grade::fail(format!("the model is `{model}`, which is not `{wanted}`")),
        }
    }
}
