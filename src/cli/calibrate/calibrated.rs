//! The grader to calibrate, a rubric or a comparison: its questions to people, and its judges' verdicts on a
//! stored trace.

use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::CliError;
use super::labels::LabelValue;
use crate::cli::inputs;
use crate::grade::judge_record::{CriterionVerdict, PairOutcome};
use crate::grader::{Calibrated, Common, GraderEntry, GraderError, GraderOrName, Library, PAIR, Use, expand};
use crate::judge::Judges;
use crate::judge::calibration::CalibrationRequirements;
use crate::judge::pairwise::Pair;
use crate::judge::rubric::Rubric;
use crate::judge::view::{ShownSession, View};
use crate::model_client::ModelName;
use crate::paths;
use crate::regular;
use crate::secrets::Masker;
use crate::trace::Model;
use crate::trace::jsonl::Reader;
use crate::yaml::words::known_words;

/// A trace and, for a comparison, its reference if that is not the grader's own.
pub type Labelled = (PathBuf, Option<PathBuf>);

/// A trace in the form that judges get.
pub struct JudgedTrace {
    pub of: Labelled,
    /// The model of the agent.
    pub model: String,
    shown: Material,
}

enum Material {
    About(ShownSession),
    Pair(Pair),
}

/// The judges' verdicts on a trace.
pub struct JudgeVerdicts {
    /// The trace.
    pub of: Labelled,
    /// The model of the agent.
    pub model: String,
    /// The verdict on each criterion.
    pub said: Vec<(String, CriterionVerdict)>,
    /// The outcome of a comparison.
    pub outcome: Option<PairOutcome>,
    /// Each judge's outcome in each order.
    pub orders: Vec<[PairOutcome; 2]>,
    /// The errors of judges that gave no verdict.
    pub failed: Vec<String>,
}

impl Calibrated {
    /// Returns the single grader in a named grader's file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, calls no model, or contains several graders.
    pub fn named(name: &str) -> Result<Self, CliError> {
        let library = inputs::named_graders()?.library();
        let entry = GraderEntry { common: Common::default(), what: GraderOrName::Use(Use { grader: name.to_owned() }) };
        let graders = expand(&[entry], &library).map_err(|error| match error {
            GraderError::Unknown { .. } => CliError::unreadable(format!(
                "there is no grader named `{name}` in graders/; {}",
                known_words(name, &asking_models(&library), "rubrics and comparisons")
            )),
            error => CliError::unreadable(error),
        })?;
        let mut asking = graders.into_iter().filter_map(|grader| grader.kind.calibrated());
        match (asking.next(), asking.next()) {
            (Some(graded), None) => Ok(graded),
            (None, _) => Err(CliError::unreadable(format!(
                "the grader `{name}` has neither `rubric` nor `pairwise`, so it has no judge to calibrate"
            ))),
            (Some(_), Some(_)) => Err(CliError::unreadable(format!(
                "the grader `{name}` contains several graders that ask a model; put each in its own file to calibrate \
                 it"
            ))),
        }
    }

    /// Returns the judge models named by the grader, or an empty slice.
    pub fn judges(&self) -> &[ModelName] {
        match self {
            Calibrated::Rubric(rubric) => rubric.judges(),
            Calibrated::Pairwise(pairwise) => pairwise.judge.as_ref().map_or(&[], |judge| judge.0.as_slice()),
        }
    }

    /// Returns the requirements for the calibration.
    pub fn wanted(&self) -> CalibrationRequirements<'_> {
        match self {
            Calibrated::Rubric(rubric) => rubric.wanted_calibration(),
            Calibrated::Pairwise(pairwise) => pairwise.wanted_calibration(),
        }
    }

    /// Returns the questions about each trace: the criterion and its text.
    pub fn questions(&self) -> Vec<(&str, &str)> {
        match self {
            Calibrated::Rubric(rubric) => rubric.criteria.iter().map(|it| (&*it.id, &*it.ask)).collect(),
            Calibrated::Pairwise(pairwise) => vec![(PAIR, &*pairwise.ask)],
        }
    }

    /// Returns the possible labels.
    pub fn words(&self) -> &'static [LabelValue] {
        match self {
            Calibrated::Rubric(_) => &[LabelValue::Pass, LabelValue::Fail],
            Calibrated::Pairwise(_) => &[LabelValue::Better, LabelValue::Worse, LabelValue::Tie],
        }
    }

    /// Returns true if a label by a person is a pass.
    pub fn passes(&self, word: LabelValue) -> bool {
        match (self, word.outcome()) {
            (Calibrated::Pairwise(pairwise), Some(outcome)) => pairwise.passes(outcome) == Some(true),
            _ => word == LabelValue::Pass,
        }
    }

    /// Returns the reference that a comparison compares a trace with, for people: a heading and a text for each part.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn compared(&self, trace: &Path) -> Result<Vec<(&'static str, String)>, CliError> {
        let Calibrated::Pairwise(pairwise) = self else { return Ok(Vec::new()) };
        let (pair, _) = pairwise.pair_of(trace, None, None).map_err(CliError::unreadable)?;
        // The session has just been shown. If the comparison is about answers, the answer is shown again.
        let answer = Some(("the answer", pair.candidate)).filter(|_| pairwise.compares_answers());
        Ok(answer.into_iter().chain([("compared with", pair.reference)]).collect())
    }

    /// Returns a trace as judges see it. In a trial's folder, the change of the workspace is included.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn session(&self, of: Labelled, masker: &Masker) -> Result<JudgedTrace, CliError> {
        let path = of.0.with_file_name("workspace.patch");
        let patch = match regular::read(&path) {
            Ok(bytes) => Some(masker.mask(&String::from_utf8_lossy(&bytes)).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(CliError::unreadable(format!("{} cannot be read: {error}", paths::shown(&path).display())));
            }
        };
        let (shown, model) = match self {
            Calibrated::Rubric(rubric) => {
                let (shown, model) = seen(&of.0, rubric, patch.as_deref())?;
                (Material::About(shown), model)
            }
            Calibrated::Pairwise(pairwise) => {
                let read = pairwise.pair_of(&of.0, patch.as_deref(), of.1.as_deref());
                let (pair, model) = read.map_err(CliError::unreadable)?;
                (Material::Pair(pair), model)
            }
        };
        let model = model.effective.or(model.requested).unwrap_or_else(|| "unknown".to_owned());
        Ok(JudgedTrace { of, model, shown })
    }

    /// Returns the verdicts of judges on a trace.
    pub async fn judge(&self, judges: &Judges, names: &[ModelName], session: JudgedTrace) -> JudgeVerdicts {
        let JudgedTrace { of, model, shown } = session;
        let mut judged =
            JudgeVerdicts { of, model, said: Vec::new(), outcome: None, orders: Vec::new(), failed: Vec::new() };
        match (self, shown) {
            (Calibrated::Rubric(rubric), Material::About(shown)) => {
                let (findings, failed) = rubric.findings(judges, names, &shown).await;
                judged.said = findings.into_iter().map(|it| (it.criterion, it.verdict)).collect();
                judged.failed = failed;
            }
            (Calibrated::Pairwise(pairwise), Material::Pair(pair)) => {
                // Judges are not asked about an empty answer, nor about sessions that cannot be compared.
                let outcome = if pair.candidate.trim().is_empty() {
                    PairOutcome::Worse
                } else if pair.incomparable.is_some() {
                    PairOutcome::Unknown
                } else {
                    let compared = pair.compare(judges, names).await;
                    judged.orders = compared.said.iter().map(|both| both.orders).collect();
                    let decided = compared.decided(names.len());
                    judged.failed = compared.failed;
                    decided.unwrap_or(PairOutcome::Unknown)
                };
                let said = match pairwise.passes(outcome) {
                    Some(true) => CriterionVerdict::Pass,
                    Some(false) => CriterionVerdict::Fail,
                    None => CriterionVerdict::Unknown,
                };
                (judged.outcome, judged.said) = (Some(outcome), vec![(PAIR.to_owned(), said)]);
            }
            _ => {}
        }
        judged
    }
}

/// Returns the names of the graders that can be calibrated.
fn asking_models(library: &Library) -> Vec<String> {
    let asks = |name: &str| {
        let what = GraderOrName::Use(Use { grader: name.to_owned() });
        let graders = expand(&[GraderEntry { common: Common::default(), what }], library).unwrap_or_default();
        graders.into_iter().filter_map(|grader| grader.kind.calibrated()).count() == 1
    };
    library.iter().map(|(name, _)| name.to_owned()).filter(|name| asks(name)).collect()
}

fn seen(file: &Path, rubric: &Rubric, patch: Option<&str>) -> Result<(ShownSession, Model), CliError> {
    let failed =
        |error: &dyn std::fmt::Display| CliError::unreadable(format!("{}: {error}", paths::shown(file).display()));
    let opened = regular::open(file).map_err(|error| failed(&error))?;
    let mut reader = Reader::lawful(BufReader::new(opened)).map_err(|error| failed(&error))?;
    let (model, tracing) = (reader.header().model.clone(), reader.header().capabilities.tracing);
    let mut view = View::new(rubric.rules());
    while let Some(event) = reader.next_event().map_err(|error| failed(&error))? {
        view.event(&event);
    }
    Ok((view.finish(tracing, patch), model))
}
