//! `pairwise`: asks a judge model to compare the agent's answer or session with a reference, in both orders.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::rubric::patch;
use super::{Calibrate, Evidence, Findings, GraderSpec, JudgedSession, LabelValue, Needs, Observer, Verdicts};
use crate::grade::Grade;
use crate::grade::judge_record::{CriterionVerdict, JudgeRecord, PairOutcome};
use crate::judge::Judges;
use crate::judge::calibration::{CalibrationRequirements, Floor};
use crate::judge::joined;
use crate::judge::pairwise::{Pair, digest, digest_of_asking, passes};
use crate::judge::rubric::{RubricResult, calibration_beside, mark_uncalibrated};
use crate::judge::view::{Rules, Show, View};
use crate::model_client::ModelName;
use crate::paths::shown as shown_path;
use crate::regular;
use crate::text::{first_chars, plural};
use crate::trace::Lost;
use crate::trace::jsonl::Reader;
use crate::trace::{Body as TraceBody, Event, Model};
use crate::yaml::Step;
use crate::yaml::lists::OneOrList;
use crate::yaml::wrong_part::WrongPart;

/// The maximum number of characters of each side that are shown.
const CHARACTERS: usize = 30_000;

/// A comparison of the session with a reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a map such as `{ask: Which answer is better?, reference: {text: 42}}`"
)]
pub struct Pairwise {
    /// The judge, or a list of judges: `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<OneOrList<ModelName>>,
    /// The question that decides which side is better, such as `Which answer explains the fault better?`.
    pub ask: String,
    /// The answer or session that the agent's is compared with.
    pub reference: Reference,
    /// The grade of a tie with the reference.
    #[serde(default)]
    pub tie: Tie,
    /// If `true`, the grader is ungraded without a calibration that reaches the floor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_calibration: bool,
    /// The minimum agreement that a calibration must reach.
    #[serde(default)]
    pub floor: Floor,
    /// The file of the calibration. Default for a grader in `graders/`: a file beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<PathBuf>,
}

/// The name of the single question in a calibration of pairs.
const PAIR: &str = "pair";

/// A reference. Exactly one key is required; it determines whether answers or sessions are compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default, expecting = "a map such as `{file: answer.md}`")]
pub struct Reference {
    /// A text that the final answer is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A file beside the case that the final answer is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// A trace beside the case whose session the session is compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
}

/// The grade of a tie.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// A tie passes.
    #[default]
    Pass,
    /// A tie fails.
    Fail,
}

impl GraderSpec for Pairwise {
    fn depends_on_loss(&self, _: Lost) -> bool {
        true
    }

    fn needs() -> Needs {
        Needs { model: true, ..Needs::NONE }
    }

    fn passes_on_absence(&self) -> bool {
        false
    }

    fn wrong_part(&self) -> Option<WrongPart> {
        let Reference { text, file, trace } = &self.reference;
        let is_empty = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str().is_empty());
        let empty = text.as_ref().is_some_and(|text| text.trim().is_empty()) || is_empty(file) || is_empty(trace);
        let named = [text.is_some(), file.is_some(), trace.is_some()].into_iter().filter(|is| *is).count();
        let (key, why) = if self.ask.trim().is_empty() {
            ("ask", "asks nothing: its `ask` is empty")
        } else if empty {
            ("reference", "compares with nothing: its `reference` is empty")
        } else if named != 1 {
            ("reference", "has an ambiguous `reference`: write exactly one of `text`, `file` and `trace`")
        } else {
            return self.floor.refusal().map(|why| WrongPart::new(&[Step::Key("floor")], why));
        };
        Some(WrongPart::new(&[Step::Key(key)], why))
    }

    fn watch(&self) -> Box<dyn Observer> {
        Box::new(Watch { view: View::new(self.rules()), wanted: self.clone() })
    }

    fn named_files(&self) -> Vec<&Path> {
        self.reference.file.iter().chain(&self.reference.trace).map(PathBuf::as_path).collect()
    }

    fn count_from(&mut self, folder: &Path) {
        let Reference { file, trace, .. } = &mut self.reference;
        for path in file.iter_mut().chain(trace).chain(&mut self.calibration) {
            *path = folder.join(&*path);
        }
    }

    fn unusable_file(&self, folder: &Path) -> Option<WrongPart> {
        let at = |key, why| Some(WrongPart::new(&[Step::Key("reference"), Step::Key(key)], why));
        let lacks = |path: &Path, error: &dyn std::fmt::Display| {
            format!("compares with `{}`, which could not be read: {error}", path.display())
        };
        if let Some(path) = &self.reference.file {
            return match regular::read_to_string(folder.join(path)) {
                Err(error) => at("file", lacks(path, &error)),
                Ok(text) if text.trim().is_empty() => {
                    at("file", format!("compares with nothing: `{}` is empty", path.display()))
                }
                Ok(_) => None,
            };
        }
        let path = self.reference.trace.as_ref()?;
        let file = regular::open(folder.join(path)).map_err(|error| lacks(path, &error));
        let read = file.and_then(|file| {
            let mut reader = Reader::lawful(BufReader::new(file)).map_err(|error| lacks(path, &error))?;
            reader.try_for_each(|event| event.map(drop)).map_err(|error| lacks(path, &error))
        });
        read.err().and_then(|why| at("trace", why))
    }

    fn judges(&self) -> &[ModelName] {
        self.judge.as_ref().map_or(&[], |judge| judge.0.as_slice())
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

impl Calibrate for Pairwise {
    fn wanted(&self) -> CalibrationRequirements<'_> {
        self.wanted_calibration()
    }

    fn questions(&self) -> Vec<(&str, &str)> {
        vec![(PAIR, &*self.ask)]
    }

    fn labels(&self) -> &'static [LabelValue] {
        &[LabelValue::Better, LabelValue::Worse, LabelValue::Tie]
    }

    fn label_passes(&self, label: LabelValue) -> bool {
        label.outcome().is_some_and(|outcome| self.passes(outcome) == Some(true))
    }

    fn takes_reference(&self) -> bool {
        true
    }

    fn compared(&self, trace: &Path) -> Result<Vec<(&'static str, String)>, String> {
        let (pair, _) = self.pair_of(trace, None, None)?;
        // The session has just been shown. If the comparison is about answers, the answer is shown again.
        let answer = Some(("the answer", pair.candidate)).filter(|_| self.compares_answers());
        Ok(answer.into_iter().chain([("compared with", pair.reference)]).collect())
    }

    fn session(
        &self,
        trace: &Path,
        patch: Option<&str>,
        reference: Option<&Path>,
    ) -> Result<(Box<dyn JudgedSession>, Model), String> {
        let (pair, model) = self.pair_of(trace, patch, reference)?;
        Ok((Box::new(StoredPair { pairwise: self.clone(), pair }), model))
    }
}

/// A stored session with its reference, which judges compare.
struct StoredPair {
    pairwise: Pairwise,
    pair: Pair,
}

#[async_trait]
impl JudgedSession for StoredPair {
    async fn judge(self: Box<Self>, judges: &Judges, names: &[ModelName]) -> Verdicts {
        let Self { pairwise, pair } = *self;
        let mut verdicts = Verdicts::default();
        // Judges are not asked about an empty answer, nor about sessions that cannot be compared.
        let outcome = if pair.candidate.trim().is_empty() {
            PairOutcome::Worse
        } else if pair.incomparable.is_some() {
            PairOutcome::Unknown
        } else {
            let compared = pair.compare(judges, names).await;
            verdicts.orders = compared.answers.iter().map(|both| both.orders).collect();
            let decided = compared.decided(names.len());
            verdicts.failed = compared.failed;
            decided.unwrap_or(PairOutcome::Unknown)
        };
        let verdict = match pairwise.passes(outcome) {
            Some(true) => CriterionVerdict::Pass,
            Some(false) => CriterionVerdict::Fail,
            None => CriterionVerdict::Unknown,
        };
        (verdicts.outcome, verdicts.of_criteria) = (Some(outcome), vec![(PAIR.to_owned(), verdict)]);
        verdicts
    }
}

/// Collects the view of the session for the judge model.
struct Watch {
    view: View,
    wanted: Pairwise,
}

#[async_trait]
impl Observer for Watch {
    fn event(&mut self, event: &Event) {
        self.view.event(event);
    }

    async fn finish(self: Box<Self>, evidence: &Evidence<'_>) -> Findings {
        let Self { view, wanted } = *self;
        wanted.ask(view, evidence).await.into()
    }
}

impl Pairwise {
    /// Returns the requirements for the calibration. It measures how a judge model answers `ask`, and holds for every
    /// reference.
    fn wanted_calibration(&self) -> CalibrationRequirements<'_> {
        let what = if self.reference.trace.is_some() { "sessions" } else { "answers" };
        // The grade of a tie affects what counts as a pass.
        let prompt_digest = digest_of_asking(&self.ask, &format!("{what}, tie {:?}", self.tie));
        CalibrationRequirements {
            prompt_digest,
            file: self.calibration.as_deref(),
            floor: &self.floor,
            criteria: vec![PAIR],
        }
    }

    /// Returns whether an outcome passes, or `None` if unknown.
    fn passes(&self, outcome: PairOutcome) -> Option<bool> {
        passes(outcome, self.tie == Tie::Pass)
    }

    /// Returns a stored trace with its reference, which is the label's own file or that of the grader, and the
    /// model of the trace.
    ///
    /// # Errors
    /// Returns an error if one of the files cannot be read.
    fn pair_of(&self, trace: &Path, patch: Option<&str>, reference: Option<&Path>) -> Result<(Pair, Model), String> {
        let StoredSession { view, output, model, tracing } = self.stored(trace)?;
        let mut other = self.clone();
        if let Some(path) = reference.map(Path::to_path_buf) {
            let is_trace = self.reference.trace.is_some();
            let (file, trace) = if is_trace { (None, Some(path)) } else { (Some(path), None) };
            other.reference = Reference { text: None, file, trace };
        }
        let reference = other.reference_text(Path::new(""))?;
        Ok((self.pair(view, &output, tracing, patch, reference), model))
    }

    /// Returns true if answers are compared, and false if sessions are.
    fn compares_answers(&self) -> bool {
        self.reference.trace.is_none()
    }

    fn pair(&self, view: View, output: &str, tracing: bool, patch: Option<&str>, reference: Shortened) -> Pair {
        let task = view.prompts().join("\n\n");
        let is_trace = self.reference.trace.is_some();
        let session = is_trace.then(|| view.finish(tracing, patch));
        let (candidate, missing) = session.as_ref().map_or_else(|| cut(output), |shown| (shown.text(), None));
        let mut left_out = session.as_ref().map_or_else(|| missing.iter().cloned().collect(), |it| it.notes.clone());
        let missing = session.as_ref().and_then(|shown| shown.too_long.clone()).or(missing);
        let Shortened { text: reference, missing: of_reference, hides_calls } = reference;
        let of_reference = of_reference.map(|missing| format!("of the reference: {missing}"));
        left_out.extend(of_reference.clone());
        let too_long = [missing, of_reference].into_iter().flatten().collect::<Vec<_>>().join("; ");
        let too_long = (!too_long.is_empty()).then_some(too_long);
        let of_candidate = session.as_ref().is_some_and(|shown| shown.hides_calls).then_some("the agent");
        let silent = of_candidate.or(hides_calls.then_some("the agent of the reference"));
        let incomparable =
            silent.map(|who| format!("the sessions cannot be compared, because {who} shows no tool calls"));
        let (ask, tie_passes) = (self.ask.clone(), self.tie == Tie::Pass);
        Pair { ask, task, candidate, reference, tie_passes, session, too_long, left_out, incomparable }
    }

    /// Reads the session of a stored trace.
    fn stored(&self, path: &Path) -> Result<StoredSession, String> {
        let lacks =
            |error: &dyn std::fmt::Display| format!("`{}` could not be read: {error}", shown_path(path).display());
        let file = regular::open(path).map_err(|error| lacks(&error))?;
        let mut reader = Reader::lawful(BufReader::new(file)).map_err(|error| lacks(&error))?;
        let (model, tracing) = (reader.header().model.clone(), reader.header().capabilities.tracing);
        let (mut view, mut output) = (View::new(self.rules()), String::new());
        while let Some(event) = reader.next_event().map_err(|error| lacks(&error))? {
            if let TraceBody::Stop(stop) = &event.body {
                output = stop.output.clone().unwrap_or_default();
            }
            view.event(&event);
        }
        Ok(StoredSession { view, output, model, tracing })
    }

    /// Returns the rules for the view: sessions are shown with calls and results, answers with messages only.
    fn rules(&self) -> Rules {
        let show = if self.reference.trace.is_some() { Vec::new() } else { vec![Show::Closing] };
        Rules { show, characters: CHARACTERS }
    }

    async fn ask(&self, view: View, evidence: &Evidence<'_>) -> RubricResult {
        let mut record = JudgeRecord { calibrated: Some(false), ..JudgeRecord::default() };
        let reference = match self.reference_text(evidence.case_folder) {
            Ok(text) => text,
            Err(why) => return RubricResult { grade: Grade::ungraded(why), record },
        };
        record.prompt_digest = digest(&self.ask, &reference.text);
        let patch = match self.reference.trace {
            Some(_) => patch(evidence, CHARACTERS).await,
            None => Ok(None),
        };
        let patch = match patch {
            Ok(patch) => patch,
            Err(why) => return RubricResult { grade: Grade::ungraded(why), record },
        };
        let pair = self.pair(view, evidence.output, evidence.header.capabilities.tracing, patch.as_deref(), reference);
        if pair.candidate.trim().is_empty() {
            let grade = Grade::fail("the agent gave no answer, so there is nothing to compare");
            return RubricResult { grade, record: JudgeRecord::default() };
        }
        record.left_out.clone_from(&pair.left_out);
        if let Some(why) = &pair.incomparable {
            return RubricResult { grade: Grade::ungraded(why), record };
        }
        let names = match evidence.judges.chosen(self.judges()) {
            Ok(names) => names,
            Err(why) => return RubricResult { grade: Grade::ungraded(why), record },
        };
        record.model = joined(&names);
        let wanted = self.wanted_calibration();
        if let Some(why) = wanted.tell(&names, evidence.case_folder, self.require_calibration, &mut record) {
            return RubricResult { grade: Grade::ungraded(format!("the comparison {why}")), record };
        }
        let mut grade = pair.judge(evidence.judges, &names, &mut record).await;
        // If no judge answered, there is no grade to mark.
        if !matches!(grade, Grade::Ungraded { .. }) {
            mark_uncalibrated(&mut grade, &record);
        }
        RubricResult { grade, record }
    }

    fn reference_text(&self, case_folder: &Path) -> Result<Shortened, String> {
        let lacks = |path: &Path, error: &dyn std::fmt::Display| {
            format!("the reference `{}` could not be read: {error}", shown_path(path).display())
        };
        if let Some(path) = &self.reference.trace {
            let file = regular::open(case_folder.join(path)).map_err(|error| lacks(path, &error))?;
            let mut reader = Reader::lawful(BufReader::new(file)).map_err(|error| lacks(path, &error))?;
            let mut view = View::new(self.rules());
            while let Some(event) = reader.next_event().map_err(|error| lacks(path, &error))? {
                view.event(&event);
            }
            // The change of its workspace is not a part of a trace.
            let shown = view.finish(reader.header().capabilities.tracing, None);
            return Ok(Shortened { text: shown.text(), missing: shown.too_long, hides_calls: shown.hides_calls });
        }
        let (text, missing) = match &self.reference.file {
            Some(path) => {
                let text = regular::read_to_string(case_folder.join(path)).map_err(|error| lacks(path, &error))?;
                cut(&text)
            }
            None => cut(self.reference.text.as_deref().unwrap_or_default()),
        };
        Ok(Shortened { text, missing, hides_calls: false })
    }
}

/// A stored session that is compared.
struct StoredSession {
    view: View,
    /// The final answer.
    output: String,
    model: Model,
    /// True if the agent shows its tool calls.
    tracing: bool,
}

/// A reference, shortened to the part that is shown, with a note on the missing part.
struct Shortened {
    text: String,
    missing: Option<String>,
    /// True if the reference is a session of an agent that shows no tool calls.
    hides_calls: bool,
}

/// Returns the part of a text that is shown, and a note on the missing part.
fn cut(text: &str) -> (String, Option<String>) {
    let missing = text.chars().count().saturating_sub(CHARACTERS);
    let note = (missing > 0).then(|| format!("left out: {} at its end", plural(missing, "character")));
    (first_chars(text, CHARACTERS).to_owned(), note)
}
