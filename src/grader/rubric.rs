//! `rubric`: asks a judge model to judge a session by criteria. Its memory use is bounded.

use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use super::{Calibrate, Evidence, Finding, Findings, GraderSpec, JudgedSession, LabelValue, Needs, Observer, Verdicts};
use crate::grade::Grade;
use crate::grade::judge_record::JudgeRecord;
use crate::judge::Judges;
use crate::judge::calibration::CalibrationRequirements;
use crate::judge::rubric::{Rubric, RubricResult, calibration_beside};
use crate::judge::view::{ShownSession, View};
use crate::model_client::ModelName;
use crate::paths;
use crate::regular;
use crate::trace::jsonl::Reader;
use crate::trace::{Event, Lost, Model};
use crate::yaml::wrong_part::WrongPart;

impl GraderSpec for Rubric {
    fn depends_on_loss(&self, _: Lost) -> bool {
        true
    }

    fn needs() -> Needs {
        Needs { model: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
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

    fn calibrated(&self) -> Option<Arc<dyn Calibrate>> {
        Some(Arc::new(self.clone()))
    }

    fn is_named(&mut self, folder: &Path, name: &str) {
        self.calibration = Some(calibration_beside(self.calibration.take(), folder, name));
    }
}

impl Calibrate for Rubric {
    fn wanted(&self) -> CalibrationRequirements<'_> {
        self.wanted_calibration()
    }

    fn questions(&self) -> Vec<(&str, &str)> {
        self.criteria.iter().map(|it| (&*it.id, &*it.ask)).collect()
    }

    fn labels(&self) -> &'static [LabelValue] {
        &[LabelValue::Pass, LabelValue::Fail]
    }

    fn label_passes(&self, label: LabelValue) -> bool {
        label == LabelValue::Pass
    }

    fn takes_reference(&self) -> bool {
        false
    }

    fn compared(&self, _: &Path) -> Result<Vec<(&'static str, String)>, String> {
        Ok(Vec::new())
    }

    fn session(
        &self,
        trace: &Path,
        patch: Option<&str>,
        _: Option<&Path>,
    ) -> Result<(Box<dyn JudgedSession>, Model), String> {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", paths::shown(trace).display());
        let opened = regular::open(trace).map_err(|error| failed(&error))?;
        let mut reader = Reader::lawful(BufReader::new(opened)).map_err(|error| failed(&error))?;
        let (model, tracing) = (reader.header().model.clone(), reader.header().capabilities.tracing);
        let mut view = View::new(self.rules());
        while let Some(event) = reader.next_event().map_err(|error| failed(&error))? {
            view.event(&event);
        }
        let shown = view.finish(tracing, patch);
        Ok((Box::new(StoredSession { rubric: self.clone(), shown }), model))
    }
}

/// A stored session, which judges judge by a rubric.
struct StoredSession {
    rubric: Rubric,
    shown: ShownSession,
}

#[async_trait]
impl JudgedSession for StoredSession {
    async fn judge(self: Box<Self>, judges: &Judges, names: &[ModelName]) -> Verdicts {
        let (findings, failed) = self.rubric.findings(judges, names, &self.shown).await;
        let of_criteria = findings.into_iter().map(|it| (it.criterion, it.verdict)).collect();
        Verdicts { of_criteria, failed, ..Verdicts::default() }
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
    /// The number of bytes that are read at least, so that a usual change is read whole.
    const MIN_READ_BYTES: u64 = 1 << 20;
    // A character has up to four bytes.
    let most = MIN_READ_BYTES.max((characters as u64).saturating_add(1).saturating_mul(4));
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
