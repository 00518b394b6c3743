//! A rubric, and how judge models apply it to a session: canaries, answers, majority, and the resulting grade.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer;
use super::calibration::{Floor, Wanted};
use super::criteria::{self, Aggregate, Criterion, aggregate};
use super::view::{Rules, Show, Shown};
use super::vote::{agreement, majority};
use super::{Judges, Spent, canary, joined, prompt};
use crate::grade::judge_record::{CriterionFinding, CriterionVerdict, JudgeRecord, OneJudge};
use crate::grade::{Grade, Score};
use crate::model_client::{AskError, ModelName, Question, Reply};
use crate::values::Fraction;
use crate::yaml::Step;
use crate::yaml::lists::OneOrList;
use crate::yaml::wrong_part::WrongPart;

/// The default of `characters`.
const CHARACTERS: usize = 60_000;

/// Criteria by which a judge model judges a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rubric {
    /// The judge, or a list of judges: `anthropic:MODEL`, `openai:MODEL` or `harness:NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<OneOrList<ModelName>>,
    /// What a judge needs to know about the task that the trace does not show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The criteria.
    pub criteria: Vec<Criterion>,
    /// The rule by which the rubric passes.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// The weighted mean of the criteria that passes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Fraction>,
    /// What the judge is shown besides tool calls and results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub show: Vec<Show>,
    /// The maximum number of characters of the trace that are shown, from its beginning and its end.
    #[serde(default = "usual_characters")]
    #[schemars(range(min = 2000))]
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
pub struct Judgement {
    /// The grade.
    pub grade: Grade,
    /// The judges that gave the grade, and their answers.
    pub record: JudgeRecord,
}

/// One judge's answer.
struct Asked {
    one: OneJudge,
    findings: Result<Vec<CriterionFinding>, String>,
    spent: Spent,
}

impl Rubric {
    /// Returns the reason why the rubric is invalid, and its place.
    pub fn refusal(&self) -> Option<WrongPart> {
        if self.characters < 2000 {
            let why = "shows next to nothing: `characters` is below 2000";
            return Some(WrongPart::new(&[Step::Key("characters")], why));
        }
        let floor = || Some(WrongPart::new(&[Step::Key("floor")], self.floor.refusal()?));
        criteria::refusal(&self.criteria, self.aggregate, self.min).or_else(floor)
    }

    /// Returns what a judge is shown.
    pub fn rules(&self) -> Rules {
        Rules { show: self.show.clone(), characters: self.characters }
    }

    /// Returns the judges that the rubric names.
    pub fn judges(&self) -> &[ModelName] {
        self.judge.as_ref().map_or(&[], |judge| judge.0.as_slice())
    }

    /// Returns the digest of the instructions to a judge, which are independent of the session.
    pub fn prompt_digest(&self) -> String {
        prompt::digest(self.about.as_deref(), &self.criteria, &format!("{:?}", self.rules()))
    }

    /// Returns the requirements for the calibration.
    pub fn wanted_calibration(&self) -> Wanted<'_> {
        Wanted {
            prompt_digest: self.prompt_digest(),
            file: self.calibration.as_deref(),
            floor: &self.floor,
            criteria: self.criteria.iter().map(|criterion| &*criterion.id).collect(),
        }
    }

    /// Has a session judged.
    pub async fn judge(&self, judges: &Judges, shown: &Shown, case_folder: &Path) -> Judgement {
        let mut record = JudgeRecord {
            prompt_digest: self.prompt_digest(),
            left_out: shown.notes.clone(),
            suspicious: shown.speaks_to_a_judge(),
            calibrated: Some(false),
            ..JudgeRecord::default()
        };
        let names = match judges.chosen(self.judges()) {
            Ok(names) => names,
            Err(why) => return Judgement { grade: Grade::ungraded(why), record },
        };
        record.model = joined(&names);
        if let Some(why) = self.wanted_calibration().tell(&names, case_folder, self.require_calibration, &mut record) {
            return Judgement { grade: Grade::ungraded(format!("the rubric {why}")), record };
        }
        let asked = self.ask_all(judges, &names, shown).await;
        let mut spent = Spent::default();
        asked.iter().for_each(|it| spent.join(&it.spent));
        spent.tell(&mut record);
        record.judges = asked.iter().map(|it| it.one.clone()).collect();
        let answers: Vec<Option<Vec<CriterionFinding>>> =
            asked.iter().map(|it| it.findings.as_ref().ok().cloned()).collect();
        if answers.iter().all(Option::is_none) {
            let why: Vec<String> = asked.iter().filter_map(|it| it.findings.clone().err()).collect();
            return Judgement { grade: Grade::ungraded(why.join("; ")), record };
        }
        record.agreement = agreement(&self.criteria, &answers);
        record.criteria = majority(&self.criteria, &answers);
        let missing: Vec<String> = asked.iter().filter_map(|it| it.findings.clone().err()).collect();
        let mut grade = self.grade(&record.criteria, shown.change, &missing);
        mark_uncalibrated(&mut grade, &record);
        Judgement { grade, record }
    }

    /// Returns the answers of every judge about a session, without a grade. Used to measure judges.
    pub async fn findings(
        &self,
        judges: &Judges,
        names: &[ModelName],
        shown: &Shown,
    ) -> (Vec<CriterionFinding>, Vec<String>) {
        let asked = self.ask_all(judges, names, shown).await;
        let answers: Vec<_> = asked.iter().map(|it| it.findings.as_ref().ok().cloned()).collect();
        let failed = asked.into_iter().filter_map(|it| it.findings.err()).collect();
        (majority(&self.criteria, &answers), failed)
    }

    async fn ask_all(&self, judges: &Judges, names: &[ModelName], shown: &Shown) -> Vec<Asked> {
        let mut running = tokio::task::JoinSet::new();
        for (number, name) in names.iter().enumerate() {
            let (rubric, judges, name, shown) = (self.clone(), judges.clone(), name.clone(), shown.clone());
            running.spawn(async move { (number, rubric.ask(&judges, &name, &shown).await) });
        }
        let mut asked: Vec<(usize, Asked)> = Vec::new();
        while let Some(done) = running.join_next().await {
            asked.extend(done.ok());
        }
        asked.sort_by_key(|(number, _)| *number);
        asked.into_iter().map(|(_, asked)| asked).collect()
    }

    async fn ask(&self, judges: &Judges, name: &ModelName, shown: &Shown) -> Asked {
        let mut spent = Spent::default();
        let mut one = OneJudge { judge: name.to_string(), ..OneJudge::default() };
        // A provider may change the model behind a name: a judge that is called now is tested now, and a cached
        // answer has its own test.
        let fresh = !judges.is_kept(name, &prompt::question(self.about.as_deref(), &self.criteria, shown));
        let key = format!("{name}\n{}\n{fresh}", self.prompt_digest());
        let void = judges.void_once(key, self.void(judges, name, &mut spent, fresh)).await;
        let findings = match void {
            Err(error) => Err(told(name, &error)),
            Ok(Some(canary)) => Err(format!("the judge `{name}` is void: it passed the canary {canary}")),
            Ok(None) => match self.put(judges, name, shown, &mut spent, false).await {
                Err(error) => Err(told(name, &error)),
                Ok((answer, reply)) => {
                    one.model.clone_from(&reply.model);
                    Ok(answer.findings(&self.criteria, shown))
                }
            },
        };
        match &findings {
            Ok(findings) => one.verdicts = findings.iter().map(|it| it.verdict).collect(),
            Err(why) => one.void = Some(why.clone()),
        }
        Asked { one, findings, spent }
    }

    /// Returns the canary that a judge passes, if it passes one.
    async fn void(
        &self,
        judges: &Judges,
        name: &ModelName,
        spent: &mut Spent,
        fresh: bool,
    ) -> Result<Option<String>, AskError> {
        for (canary, shown) in canary::canaries(&self.prompt_digest(), &self.rules()) {
            match self.put(judges, name, &shown, spent, fresh).await {
                Ok((answer, _)) if answer.passes_any() => return Ok(Some(canary.to_owned())),
                // A judge that declines has passed nothing. If an answer is malformed, it is unknown what the
                // judge would pass.
                Ok(_) | Err(AskError::Declined) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    async fn put(
        &self,
        judges: &Judges,
        name: &ModelName,
        shown: &Shown,
        spent: &mut Spent,
        fresh: bool,
    ) -> Result<(answer::Answer, Reply), AskError> {
        let question = Question { fresh, ..prompt::question(self.about.as_deref(), &self.criteria, shown) };
        let criteria = self.criteria.clone();
        let reply = judges.ask(name, question, move |text| answer::read(text, &criteria).map(|_| ())).await;
        let reply = reply.inspect_err(|failed| spent.add_failed(name, failed)).map_err(|failed| failed.error)?;
        spent.add(name, &reply);
        let unfit = |why| AskError::WrongForm { why };
        let answer = answer::read(&reply.text, &self.criteria).map_err(unfit)?;
        Ok((answer, reply))
    }

    fn grade(&self, findings: &[CriterionFinding], change: Option<u64>, missing: &[String]) -> Grade {
        let said: Vec<(CriterionVerdict, Option<f64>)> = findings.iter().map(|it| (it.verdict, it.value)).collect();
        let (verdict, value) = aggregate(&self.criteria, &said, self.aggregate, self.min);
        let told = |want: CriterionVerdict| -> Vec<String> {
            let those = findings.iter().filter(|it| it.verdict == want);
            those.map(|it| format!("`{}`: {}", it.criterion, short(it.void.as_ref().unwrap_or(&it.reason)))).collect()
        };
        let of_all = format!("{} of {} criteria hold", told(CriterionVerdict::Pass).len(), findings.len());
        let (passed, reason) = match verdict {
            CriterionVerdict::Unknown => {
                let mut why = told(CriterionVerdict::Unknown);
                why.extend(missing.iter().cloned());
                return Grade::ungraded(format!("the judge could not tell: {}", why.join("; ")));
            }
            CriterionVerdict::Fail => (false, format!("{of_all}; {}", told(CriterionVerdict::Fail).join("; "))),
            CriterionVerdict::Pass => (true, format!("{of_all}; {}", told(CriterionVerdict::Pass).join("; "))),
        };
        let deciding = if passed { CriterionVerdict::Pass } else { CriterionVerdict::Fail };
        let evidence = findings.iter().filter(|it| it.verdict == deciding).flat_map(|it| it.evidence.iter().copied());
        let evidence: Vec<u64> = evidence.filter(|seq| Some(*seq) != change).collect();
        let value = value.unwrap_or(if passed { Fraction::ONE } else { Fraction::ZERO });
        Grade::Scored(Score { value, passed, reason, evidence: Vec::new(), broken: Vec::new() }).pointing_at(evidence)
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

/// Returns the text of an error of one of several judges.
pub(super) fn told(name: &ModelName, error: &AskError) -> String {
    let text = error.to_string();
    // Some errors already name the judge.
    if text.contains(&format!("`{name}`")) { text } else { format!("{name}: {text}") }
}

/// Returns a reason on one line, of readable length.
pub(super) fn short(text: &str) -> String {
    let line = super::view::squeezed(text);
    let cut: String = line.chars().filter(|c| !c.is_control()).take(300).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}
