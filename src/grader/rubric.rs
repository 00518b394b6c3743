//! `rubric`: asks a judge model to judge a session by criteria. Its memory use is bounded.

use std::path::Path;

use async_trait::async_trait;

use super::{Calibrated, Evidence, Finding, Findings, GraderSpec, Needs, Observer};
use crate::grade::Grade;
use crate::grade::judge_record::JudgeRecord;
use crate::judge::rubric::{Rubric, RubricResult, calibration_beside};
use crate::judge::view::View;
use crate::model_client::ModelName;
use crate::regular;
use crate::trace::Event;
use crate::trace::Lost;
use crate::yaml::wrong_part::WrongPart;

impl GraderSpec for Rubric {
    fn misses(&self, _: Lost) -> bool {
        true
    }

    fn needs() -> Needs {
        Needs { model: true, ..Needs::NONE }
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(Watch { view: View::new(self.rules()), wanted: self.clone() })
    }

    fn wrong_part(&self) -> Option<WrongPart> {
        self.refusal()
    }

    fn count_from(&mut self, folder: &Path) {
        if let Some(path) = &mut self.calibration {
            *path = folder.join(&*path);
        }
    }

    fn judges(&self) -> &[ModelName] {
        Rubric::judges(self)
    }

    fn calibration(&self) -> Option<&Path> {
        self.calibration.as_deref()
    }

    fn calibrated(&self) -> Option<Calibrated> {
        Some(Calibrated::Rubric(self.clone()))
    }

    fn is_named(&mut self, folder: &Path, name: &str) {
        self.calibration = Some(calibration_beside(self.calibration.take(), folder, name));
    }
}

/// Collects the view of the session for the judge model.
struct Watch {
    view: View,
    wanted: Rubric,
}

#[async_trait]
impl Observer for Watch {
    fn event(&mut self, event: &Event) {
        self.view.event(event);
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        let Self { view, wanted } = *self;
        let patch = match patch(evidence, wanted.characters).await {
            Ok(patch) => patch,
            Err(why) => return RubricResult { grade: Grade::ungraded(why), record: JudgeRecord::default() }.into(),
        };
        let shown = view.finish(evidence.header.capabilities.tracing, patch.as_deref());
        wanted.judge(evidence.judges, &shown, evidence.case_folder).await.into()
    }
}

impl From<RubricResult> for Findings {
    fn from(RubricResult { grade, record }: RubricResult) -> Self {
        Self(vec![Finding { judge: Some(record), ..grade.into() }])
    }
}

/// Returns the stored change of the workspace, which is redacted. Of a long change, only a little more is read than
/// may be shown. Returns `None` if the change is unknown or is not stored.
///
/// # Errors
/// Returns the reason as text if the stored change cannot be read.
pub(super) async fn patch(evidence: &Evidence<'_>, characters: usize) -> Result<Option<String>, String> {
    /// The maximum number of bytes that are shown if not everything fits.
    const MOST: u64 = 1 << 20;
    // A character has up to four bytes.
    let most = MOST.max((characters as u64).saturating_add(1).saturating_mul(4));
    let Some(path) = evidence.patch.map(Path::to_owned) else { return Ok(None) };
    let read = tokio::task::spawn_blocking(move || {
        use std::io::Read;
        let mut bytes = Vec::new();
        regular::open(path)?.take(most).read_to_end(&mut bytes)?;
        std::io::Result::Ok(String::from_utf8_lossy(&bytes).into_owned())
    });
    let read = read.await.map_err(std::io::Error::other).flatten();
    read.map(Some).map_err(|error| format!("the change of the workspace could not be read: {error}"))
}
