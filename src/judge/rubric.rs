//! A rubric, and how judge models apply it to a session: canaries, answers, majority, and the resulting grade.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::answer::{self, Answer};
use super::asking::{Asking, Form, JudgeReply, ask_all};
use super::calibration::{CalibrationRequirements, Floor};
use super::criteria::{self, Aggregate, Criterion, aggregate};
use super::view::{Rules, Show, ShownSession};
use super::vote::{agreement, majority};
use super::{Judges, Spent, canary, joined, prompt};
use crate::grade::judge_record::{CriterionFinding, CriterionVerdict, JudgeRecord};
use crate::grade::{Grade, Score};
use crate::model_client::{AskError, ModelName, Question};
use crate::text::marked;
use crate::values::Fraction;
use crate::yaml::Step;
use crate::yaml::lists::OneOrList;
use crate::yaml::wrong_part::WrongPart;

/// The default of `characters`.
const CHARACTERS: usize = 60_000;

/// Criteria by which a judge model judges a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "a map such as `{criteria: [{id: answered, ask: Is the question answered?}]}`"
)]
pub struct Rubric {
    /// The judge, or a list of judges: `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<OneOrList<ModelName>>,
    /// Information about the task that a judge needs and the trace does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The questions that the judge answers about the session, at least one.
    pub criteria: Vec<Criterion>,
    /// The rule by which the rubric passes.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// The minimum weighted mean of the criteria to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
    /// The parts of the session that the judge is shown besides tool calls and results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<Show>,
    /// The maximum number of characters of the trace that are shown, from its beginning and its end.
    #[serde(default = "usual_characters")]
    #[cfg_attr(test, schemars(range(min = 2000)))]
    pub characters: usize,
    /// If `true`, the rubric is ungraded without a calibration that reaches the floor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_calibration: bool,
    /// The minimum agreement that a calibration must reach, for each criterion.
    #[serde(default)]
    pub floor: Floor,
    /// The file of the calibration. Default for a grader in `graders/`: a file beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<PathBuf>,
}

fn usual_characters() -> usize {
    CHARACTERS
}

/// The result of judging.
#[derive(Debug, Clone, PartialEq)]
pub struct RubricResult {
    pub grade: Grade,
    /// The judges that gave the grade, and their answers.
    pub record: JudgeRecord,
}

/// The question whether a session meets the criteria of a rubric.
#[derive(Clone)]
struct RubricQuestion {
    rubric: Rubric,
    shown: ShownSession,
}

impl RubricQuestion {
    fn question(&self) -> Question {
        prompt::question(self.rubric.about.as_deref(), &self.rubric.criteria, &self.shown)
    }
}

impl Form for RubricQuestion {
    type Answer = Answer;

    fn key(&self) -> String {
        self.rubric.prompt_digest()
    }

    fn questions(&self) -> Vec<Question> {
        vec![self.question()]
    }

    fn canaries(&self) -> Vec<(&'static str, Self)> {
        let canaries = canary::canaries(&self.key(), &self.rubric.rules());
        canaries.map(|(name, shown)| (name, Self { rubric: self.rubric.clone(), shown })).into()
    }

    fn passes(&self, answer: &Answer) -> bool {
        answer.passes_any()
    }

    async fn put(&self, asking: &mut Asking<'_>) -> Result<Answer, AskError> {
        let criteria = self.rubric.criteria.clone();
        asking.ask(self.question(), move |text| answer::read(text, &criteria)).await
    }
}

impl Rubric {
    /// Returns the reason why the rubric is invalid, and its place.
    pub fn refusal(&self) -> Option<WrongPart> {
        if self.characters < 2000 {
            let why = "shows too little of a session: `characters` is below 2000";
            return Some(WrongPart::new(&[Step::Key("characters")], why));
        }
        let floor = || Some(WrongPart::new(&[Step::Key("floor")], self.floor.refusal()?));
        criteria::refusal(&self.criteria, self.aggregate, self.min).or_else(floor)
    }

    /// Returns the rules for the view that a judge is shown.
    pub fn rules(&self) -> Rules {
        Rules { show: self.show.clone(), characters: self.characters }
    }

    pub fn judges(&self) -> &[ModelName] {
        self.judge.as_ref().map_or(&[], |judge| judge.0.as_slice())
    }

    /// Returns the digest of the instructions to a judge, which are independent of the session.
    pub fn prompt_digest(&self) -> String {
        prompt::digest(self.about.as_deref(), &self.criteria, &format!("{:?}", self.rules()))
    }

    /// Returns the agreement that a calibration must show so that the judges' answers count.
    pub fn wanted_calibration(&self) -> CalibrationRequirements<'_> {
        CalibrationRequirements {
            prompt_digest: self.prompt_digest(),
            file: self.calibration.as_deref(),
            floor: &self.floor,
            criteria: self.criteria.iter().map(|criterion| &*criterion.id).collect(),
        }
    }

    pub async fn judge(&self, judges: &Judges, shown: &ShownSession, case_folder: &Path) -> RubricResult {
        let mut record = JudgeRecord {
            prompt_digest: self.prompt_digest(),
            left_out: shown.notes.clone(),
            suspicious: shown.speaks_to_a_judge(),
            calibrated: Some(false),
            ..JudgeRecord::default()
        };
        let names = match judges.chosen(self.judges()) {
            Ok(names) => names,
            Err(why) => return RubricResult { grade: Grade::ungraded(why), record },
        };
        record.model = joined(&names);
        if let Some(why) = self.wanted_calibration().tell(&names, case_folder, self.require_calibration, &mut record) {
            return RubricResult { grade: Grade::ungraded(format!("the rubric {why}")), record };
        }
        let asked = self.ask_all(judges, &names, shown).await;
        let mut spent = Spent::default();
        asked.iter().for_each(|it| spent.join(&it.spent));
        record.record_used(spent.figures());
        record.judges = asked.iter().map(|it| it.one.clone()).collect();
        let answers: Vec<Option<Vec<CriterionFinding>>> =
            asked.iter().map(|it| it.answer.as_ref().ok().cloned()).collect();
        if answers.iter().all(Option::is_none) {
            let why: Vec<String> = asked.iter().filter_map(|it| it.answer.clone().err()).collect();
            return RubricResult { grade: Grade::ungraded(why.join("; ")), record };
        }
        record.agreement = agreement(&self.criteria, &answers);
        record.criteria = majority(&self.criteria, &answers);
        let missing: Vec<String> = asked.iter().filter_map(|it| it.answer.clone().err()).collect();
        let mut grade = self.grade(&record.criteria, shown.change, &missing);
        mark_uncalibrated(&mut grade, &record);
        RubricResult { grade, record }
    }

    /// Returns the answers of every judge about a session, without a grade. Used to measure judges.
    pub async fn findings(
        &self,
        judges: &Judges,
        names: &[ModelName],
        shown: &ShownSession,
    ) -> (Vec<CriterionFinding>, Vec<String>) {
        let asked = self.ask_all(judges, names, shown).await;
        let answers: Vec<_> = asked.iter().map(|it| it.answer.as_ref().ok().cloned()).collect();
        let failed = asked.into_iter().filter_map(|it| it.answer.err()).collect();
        (majority(&self.criteria, &answers), failed)
    }

    async fn ask_all(
        &self,
        judges: &Judges,
        names: &[ModelName],
        shown: &ShownSession,
    ) -> Vec<JudgeReply<Vec<CriterionFinding>>> {
        let session = RubricQuestion { rubric: self.clone(), shown: shown.clone() };
        let with_findings = |JudgeReply { mut one, answer, spent }: JudgeReply<Answer>| {
            let answer = answer.map(|answer| answer.findings(&self.criteria, shown));
            one.verdicts = answer.iter().flatten().map(|it| it.verdict).collect();
            JudgeReply { one, answer, spent }
        };
        ask_all(&session, judges, names).await.into_iter().map(with_findings).collect()
    }

    fn grade(&self, findings: &[CriterionFinding], change: Option<u64>, missing: &[String]) -> Grade {
        let answers: Vec<(CriterionVerdict, Option<f64>)> = findings.iter().map(|it| (it.verdict, it.value)).collect();
        let (verdict, value) = aggregate(&self.criteria, &answers, self.aggregate, self.min);
        let reasons = |want: CriterionVerdict| -> Vec<String> {
            let those = findings.iter().filter(|it| it.verdict == want);
            those.map(|it| format!("`{}`: {}", it.criterion, short(it.void.as_ref().unwrap_or(&it.reason)))).collect()
        };
        let of_all = format!("{} of {} criteria hold", reasons(CriterionVerdict::Pass).len(), findings.len());
        let (passed, reason) = match verdict {
            CriterionVerdict::Unknown => {
                let mut why = reasons(CriterionVerdict::Unknown);
                why.extend(missing.iter().cloned());
                return Grade::ungraded(format!("the judge gave no verdict: {}", why.join("; ")));
            }
            CriterionVerdict::Fail => (false, format!("{of_all}; {}", reasons(CriterionVerdict::Fail).join("; "))),
            CriterionVerdict::Pass => (true, format!("{of_all}; {}", reasons(CriterionVerdict::Pass).join("; "))),
        };
        let deciding = if passed { CriterionVerdict::Pass } else { CriterionVerdict::Fail };
        let evidence = findings.iter().filter(|it| it.verdict == deciding).flat_map(|it| it.evidence.iter().copied());
        let evidence: Vec<u64> = evidence.filter(|seq| Some(*seq) != change).collect();
        let value = value.unwrap_or(if passed { Fraction::ONE } else { Fraction::ZERO });
        // A judge cannot tell what is absent from what was not shown.
        let lacks = !passed;
        let score = Score { lacks, ..Score::new(value, passed, reason) };
        Grade::Scored(score).pointing_at(evidence)
    }
}

/// Returns the path of a named grader's calibration: the path that the grader sets, relative to `folder`, or by
/// default `NAME.calibration.yaml` in it. (A path written in a case is relative to the case instead.)
pub fn calibration_beside(own: Option<PathBuf>, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(own.unwrap_or_else(|| format!("{name}.calibration.yaml").into()));
    std::path::absolute(&path).unwrap_or(path)
}

/// Notes in the reason that the judges are not calibrated.
pub fn mark_uncalibrated(grade: &mut Grade, record: &JudgeRecord) {
    match grade {
        _ if record.calibrated == Some(true) => {}
        Grade::Scored(Score { reason, .. }) | Grade::Ungraded { reason } => reason.push_str(" (uncalibrated)"),
    }
}

/// Returns a reason on one line, of readable length.
pub(super) fn short(text: &str) -> String {
    let line = super::view::squeezed(text);
    let cut: String = line.chars().filter(|c| !c.is_control()).take(300).collect();
    marked(&cut, &line)
}
