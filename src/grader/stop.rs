//! `stop`: checks how the session ended.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use strum::VariantArray;

use super::checks::Checks;
use super::{Evidence, Findings, GraderSpec, Needs, Observer};
use crate::grade::Grade;
use crate::reason_text;
use crate::trace::{Body as EventBody, Event, Lost, StopReason};
use crate::yaml::lists::OneOrList;

/// The required end of the session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a map such as `{reason: [end_turn]}`")]
pub struct StopIs {
    /// The stop reason, or a list of which one must apply.
    pub reason: OneOrList<StopReason>,
}

impl GraderSpec for StopIs {
    fn depends_on_loss(&self, _: Lost) -> bool {
        false
    }

    fn requires_end(&self, reason: StopReason) -> bool {
        self.reason.iter().any(|asked| *asked == reason)
    }

    fn needs() -> Needs {
        Needs::NONE
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn refusal(&self) -> Option<String> {
        if self.reason.0.is_empty() {
            return Some("checks nothing: `reason` is empty".to_owned());
        }
        let is_named = |reason: &StopReason| self.reason.iter().any(|named| named == reason);
        StopReason::VARIANTS.iter().all(is_named).then(|| "checks nothing: `reason` names every reason".to_owned())
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(StopObserver { wanted: self.clone(), stopped_at: None })
    }
}

struct StopObserver {
    wanted: StopIs,
    stopped_at: Option<u64>,
}

#[async_trait]
impl Observer for StopObserver {
    fn event(&mut self, event: &Event) {
        if let EventBody::Stop(_) = event.body {
            self.stopped_at = Some(event.seq);
        }
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        self.grade(evidence).into()
    }
}

impl StopObserver {
    fn grade(self, evidence: &Evidence<'_>) -> Grade {
        let stop = evidence.stop;
        let holds = self.wanted.reason.iter().any(|reason| *reason == stop.reason);
        let detail =
            stop.detail.as_ref().map(|detail| format!(" ({})", reason_text::short(detail, 100))).unwrap_or_default();
        let mut reason = format!("the session ended with {}{detail}", stop.reason.word());
        if !holds {
            let wanted = reason_text::any_of(self.wanted.reason.iter().map(|reason| reason.word().to_owned()));
            reason.push_str(&format!(", not with {wanted}"));
        }
        let mut checks = Checks::default();
        checks.either(holds, reason, self.stopped_at);
        checks.grade()
    }
}
