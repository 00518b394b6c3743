//! Arms and sides of a comparison: a run's results, condensed to their cases one by one as they are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::case::CaseKind;
use crate::grade::GradeRecord;
use crate::ids::column_name;
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::statistics::means::mean;
use crate::trace::amount::Amount;
use crate::trace::{ErrorCategory, ToolKind};
use crate::values::Fraction;
use crate::verdict::{PassTrials, Verdict, of_trials};

/// Interned strings: the steps of traces, each kept once.
#[derive(Debug, Default)]
pub struct Words {
    numbers: HashMap<Box<str>, u32>,
    words: Vec<Box<str>>,
}

impl Words {
    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.words.len() as u32;
        self.words.push(word.into());
        self.numbers.insert(word.into(), number);
        number
    }

    /// Returns the string with this number.
    pub fn word(&self, number: u32) -> &str {
        self.words.get(number as usize).map_or("", AsRef::as_ref)
    }
}

/// One side of a comparison: a run, or a baseline.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// The run's id.
    pub run: String,
    /// Version of the program.
    pub evals: String,
    /// Its cases, by id.
    pub cases: BTreeMap<String, CaseFacts>,
    /// Digests of the manifests, by harness.
    pub harnesses: BTreeMap<String, String>,
    /// The arms, in the order of the plan.
    pub arms: Vec<Arm>,
    /// Whether the side is a baseline, which has no traces.
    pub baseline: bool,
    /// Whether the trials were graded again, perhaps by a case that had changed since they ran.
    pub graded: bool,
    /// For trials that were graded again: the runs that they come from, the nearest first.
    pub origins: Vec<String>,
    /// How often the scores were looked at while the run was in progress; 1 without `--trials auto`.
    pub looks: u32,
}

/// The properties of a case that decide whether it can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseFacts {
    /// Digest of everything that the case is made from.
    pub digest: String,
    /// Digest of what the agents were given. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<String>,
    /// Whether the case changed between trials: some may have run before the change and others after it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// The limits that the case ran under.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub limits: serde_json::Value,
    /// The interaction policy.
    #[serde(default)]
    pub interaction: String,
    /// The tags of the case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The purpose of the case.
    #[serde(default)]
    pub kind: CaseKind,
    /// How many trials must pass.
    #[serde(default)]
    pub pass: PassTrials,
    /// Whether losing this case alone fails a gate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
}

/// A sum over trials, some of which may not have reported the figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    /// The sum of the reported figures.
    pub sum: f64,
    /// Trials that reported the whole figure.
    pub told: u64,
    /// Trials that did not report the figure, or only a part of it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untold: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Known {
    /// Adds the known part of one trial's figure; `is_all` states whether it is the whole figure.
    fn add(&mut self, known: f64, is_all: bool) {
        // If the sum overflows, it is unknown.
        let sum = Some(self.sum + known).filter(|sum| sum.is_finite());
        self.sum = sum.unwrap_or(self.sum);
        if is_all && sum.is_some() { self.told += 1 } else { self.untold += 1 }
    }

    /// Returns the mean per trial, which is a lower bound if some trials did not report the figure. Returns
    /// `None` if no trial reported it.
    pub fn mean(&self) -> Option<f64> {
        let is_known = self.told > 0 || self.sum > 0.0;
        is_known.then(|| self.sum / (self.told + self.untold) as f64)
    }

    /// Returns the sum of both figures.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (told, untold) = (self.told + other.told, self.untold + other.untold);
        match self.sum + other.sum {
            sum if sum.is_finite() => Self { sum, told, untold },
            _ => Self { sum: self.sum.max(other.sum), told: 0, untold: told + untold },
        }
    }
}

/// The largest plausible number of trials of a case.
const MOST_TRIALS: u64 = 1_000_000;

/// The results of an arm's trials of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseTrials {
    /// The scores of the trials that have one.
    pub scores: Vec<f64>,
    /// Trials that passed.
    pub passed: u64,
    /// Trials that failed.
    pub failed: u64,
    /// Trials that were ungraded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ungraded: u64,
    /// Trials that were errored.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errored: u64,
    /// Errored trials in which the agent crashed or broke the protocol.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broke: u64,
    /// Trials that were planned but did not run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub not_run: u64,
    /// Errored trials that count as failures, as requested for the comparison.
    #[serde(skip)]
    pub counted_errors: u64,
    /// Cost in US dollars, including earlier attempts.
    pub cost: Known,
    /// Trials that were retried after an attempt that counts in no score.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tried_again: u64,
    /// Trials whose cost comes from a price table instead of the agent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priced: u64,
    /// Tokens.
    pub tokens: Known,
    /// Duration in milliseconds.
    pub duration: Known,
}

impl CaseTrials {
    /// Returns the mean score of the trials. Returns `None` if no trial has a score.
    pub fn score(&self) -> Option<f64> {
        mean(&self.scores)
    }

    /// Returns the mean score with every errored trial as 0.
    pub fn score_with_errors(&self) -> Option<f64> {
        let all = self.scores.len() as f64 + self.errored as f64;
        (all > 0.0).then(|| self.scores.iter().sum::<f64>() / all)
    }

    /// Returns the verdict on the cell, from the number of trials that must pass. Trials that were errored,
    /// ungraded or not run leave it open.
    pub fn verdict(&self, pass: PassTrials) -> Verdict {
        let counts = [
            (Verdict::Pass, self.passed),
            (Verdict::Fail, self.failed),
            (Verdict::Ungraded, self.ungraded + self.not_run),
            (Verdict::Errored, self.errored),
        ];
        let trials = counts.into_iter().flat_map(|(verdict, count)| std::iter::repeat_n(verdict, count as usize));
        of_trials(&trials.collect::<Vec<_>>(), pass)
    }

    /// Returns the verdict on the cell from the judged trials alone.
    pub fn verdict_of_judged(&self, pass: PassTrials) -> Verdict {
        let judged = Self { passed: self.passed, failed: self.failed, ..Self::default() };
        judged.verdict(pass)
    }

    /// Returns the number of trials that were planned and not skipped.
    pub fn planned(&self) -> u64 {
        self.trials() + self.not_run
    }

    /// Returns the number of trials that ran and have a score of their own. A crashed trial is not completed,
    /// even if it counts as a failure.
    pub fn completed(&self) -> u64 {
        (self.passed + self.failed).saturating_sub(self.counted_errors)
    }

    /// Returns the number of trials whose outcome is unknown: they may have passed or failed.
    pub fn unknown(&self) -> u64 {
        self.ungraded + self.errored + self.not_run
    }

    /// Returns the number of trials that ran.
    pub fn trials(&self) -> u64 {
        self.passed + self.failed + self.ungraded + self.errored
    }

    /// Returns the reason why no trials can have produced these numbers, if the numbers are impossible.
    pub fn is_impossible(&self) -> Option<String> {
        if let Some(score) = self.scores.iter().find(|score| !(0.0..=1.0).contains(*score)) {
            return Some(format!("{score} is no score; one lies within 0 and 1"));
        }
        let judged = self.passed.checked_add(self.failed);
        if judged != Some(self.scores.len() as u64) {
            let scores = self.scores.len();
            return Some(format!("{} passed and {} failed, and there are {scores} scores", self.passed, self.failed));
        }
        if self.broke > self.errored || self.open().is_none_or(|open| open > MOST_TRIALS) {
            return Some(format!("{} errored trials, of which {} broke, cannot be", self.errored, self.broke));
        }
        let sums = [("cost", self.cost), ("tokens", self.tokens), ("duration", self.duration)];
        let wrong = sums.into_iter().find(|(_, known)| !(known.sum.is_finite() && known.sum >= 0.0));
        wrong.map(|(what, known)| format!("{} is no sum of its {what}", known.sum))
    }

    fn open(&self) -> Option<u64> {
        self.errored.checked_add(self.ungraded)?.checked_add(self.not_run)
    }

    /// Counts trials that crashed or broke the protocol as failed.
    pub fn count_errors(&mut self) {
        self.scores.extend(std::iter::repeat_n(0.0, self.broke as usize));
        self.failed += self.broke;
        self.errored -= self.broke;
        self.counted_errors += self.broke;
        self.broke = 0;
    }
}

/// A harness with a model, of a run or of a baseline.
#[derive(Debug, Clone, Default)]
pub struct Arm {
    /// The arm's display name, unique in the comparison.
    pub name: String,
    /// The run that the arm belongs to.
    pub run: String,
    /// Name of the harness.
    pub harness: String,
    /// Name of the column.
    pub column: String,
    /// What the arm did in each case.
    pub cases: BTreeMap<String, CaseTrials>,
    /// Cases that the arm skipped.
    pub skipped: BTreeSet<String>,
    /// The harness, model and settings that produced the trials.
    pub made: Made,
    /// Details that only results contain; a baseline does not keep them.
    pub told: Option<Told>,
}

/// The agents, models, judge models and sandboxes with which the trials of an arm were made and judged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    /// The agents with their versions.
    #[serde(default)]
    pub agents: BTreeSet<String>,
    /// Trials with a score whose agent is unknown; a baseline does not keep this number.
    #[serde(skip)]
    pub versionless: u64,
    /// The models that answered. Absent if not reported.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub models: BTreeSet<String>,
    /// The judge models that were called. Absent if there were none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub judges: BTreeSet<String>,
    /// The judge models that gave scores and have no calibration against labels by people.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uncalibrated: BTreeSet<String>,
    /// The sandboxes that the trials ran in, in the words of `--sandbox`. Absent if unknown.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub sandboxes: BTreeSet<String>,
    /// Whether the manifest changed between the trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
}

/// A grader that failed, or one rule of it that was broken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Broken {
    /// The grader's name.
    pub name: String,
    /// The kind of the grader.
    pub grader: String,
    /// The broken rule, if the grader reported it.
    pub rule: Option<String>,
}

/// Details of an arm that only results contain, besides scores and costs.
#[derive(Debug, Clone, Default)]
pub struct Told {
    /// The duration of each trial, in milliseconds.
    pub durations: Vec<f64>,
    /// Tool calls by kind for each case, over the trials whose calls were visible.
    pub kinds: BTreeMap<String, BTreeMap<ToolKind, u64>>,
    /// The number of trials whose calls were visible, by case.
    pub seen: BTreeMap<String, u64>,
    /// The calls of each step of each trial, by case, as numbers into [`Words`].
    pub shapes: BTreeMap<String, Vec<Vec<u32>>>,
    /// How often each grader of each case failed; by rule, if the grader reported the broken rule.
    pub broken: BTreeMap<String, BTreeMap<Broken, u64>>,
    /// Cases in which a person answered the agent.
    pub manual: BTreeSet<String>,
}

impl Side {
    /// Makes the side of a run without its results: every trial of its plan that is not skipped counts as not
    /// run.
    pub fn of_run(record: &RunRecord) -> Self {
        let cases = record.cases.iter().map(|case| {
            let facts = CaseFacts {
                digest: case.digest.clone(),
                played: case.played.clone(),
                mixed: case.mixed,
                limits: case.limits.clone(),
                interaction: case.interaction.clone(),
                tags: case.tags.clone(),
                kind: case.kind,
                pass: case.pass,
                critical: case.critical,
            };
            (case.id.clone(), facts)
        });
        let mut side = Self {
            run: record.run.clone(),
            evals: record.evals.clone(),
            cases: cases.collect(),
            harnesses: record.harnesses.iter().map(|it| (it.name.clone(), it.digest.clone())).collect(),
            arms: Vec::new(),
            baseline: false,
            graded: record.graded,
            origins: Vec::new(),
            looks: record.options.looks.as_ref().map_or(1, |looks| looks.len() as u32),
        };
        for trial in &record.trials {
            let arm = side.arm(&trial.harness, &trial.arm);
            if trial.skip.is_none() {
                arm.made.sandboxes.insert(trial.sandbox.word().to_owned());
                arm.cases.entry(trial.case.clone()).or_default().not_run += 1;
            }
        }
        for harness in record.harnesses.iter().filter(|harness| harness.mixed) {
            side.arms.iter_mut().filter(|arm| arm.harness == harness.name).for_each(|arm| arm.made.mixed = true);
        }
        side
    }

    fn arm(&mut self, harness: &str, column: &str) -> &mut Arm {
        let known = self.arms.iter().position(|arm| arm.harness == harness && arm.column == column);
        let place = known.unwrap_or_else(|| {
            let run = self.run.clone();
            let name = column_name(harness, column);
            let (harness, column) = (harness.to_owned(), column.to_owned());
            self.arms.push(Arm { name, run, harness, column, told: Some(Told::default()), ..Arm::default() });
            self.arms.len() - 1
        });
        &mut self.arms[place]
    }

    /// Adds the result of one trial.
    pub fn add(&mut self, result: &TrialResult, words: &mut Words) {
        let arm = self.arm(&result.harness, &result.arm);
        if result.verdict == Verdict::Skipped {
            arm.skipped.insert(result.case.clone());
            if let Some(case) = arm.cases.get_mut(&result.case) {
                case.not_run = case.not_run.saturating_sub(1);
            }
            arm.cases.retain(|id, case| *id != result.case || case.planned() > 0);
            return;
        }
        let case = arm.cases.entry(result.case.clone()).or_default();
        case.not_run = case.not_run.saturating_sub(1);
        case.add(result);
        if let Some(agent) = &result.agent {
            let version = agent.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
            arm.made.agents.insert(format!("{}{version}", agent.name));
        } else if result.score.is_some() {
            arm.made.versionless += 1;
        }
        for judge in result.grades.iter().filter_map(|grade| grade.judge.as_ref()) {
            if !arm.made.judges.contains(&judge.model) {
                arm.made.judges.insert(judge.model.clone());
            }
        }
        let counts = |grade: &&GradeRecord| grade.passed.is_some() && !grade.diagnostic;
        for judge in result.grades.iter().filter(counts).filter_map(|grade| grade.judge.as_ref()) {
            if judge.calibrated == Some(false) && !arm.made.uncalibrated.contains(&judge.model) {
                arm.made.uncalibrated.insert(judge.model.clone());
            }
        }
        if let Some(model) = &result.model.effective
            && !arm.made.models.contains(model)
        {
            arm.made.models.insert(model.clone());
        }
        let Some(told) = &mut arm.told else { return };
        if result.manual {
            told.manual.insert(result.case.clone());
        }
        if result.verdict == Verdict::Errored {
            return;
        }
        told.durations.extend(result.metrics.duration_ms.map(|it| it as f64));
        if let Some(kinds) = &result.metrics.tool_calls_by_kind {
            *told.seen.entry(result.case.clone()).or_default() += 1;
            let of_case = told.kinds.entry(result.case.clone()).or_default();
            kinds.iter().for_each(|(kind, count)| *of_case.entry(*kind).or_default() += count);
            let shape = result.shape.iter().map(|step| words.number(&step.join(" + "))).collect();
            told.shapes.entry(result.case.clone()).or_default().push(shape);
        }
        for grade in result.grades.iter().filter(|grade| grade.passed == Some(false)) {
            let of_case = told.broken.entry(result.case.clone()).or_default();
            let key = |rule: Option<&String>| Broken {
                name: grade.name.clone(),
                grader: grade.grader.clone(),
                rule: rule.cloned(),
            };
            match grade.broken.as_slice() {
                [] => *of_case.entry(key(None)).or_default() += 1,
                rules => rules.iter().for_each(|rule| *of_case.entry(key(Some(rule))).or_default() += 1),
            }
        }
    }
}

impl CaseTrials {
    fn add(&mut self, result: &TrialResult) {
        match result.verdict {
            Verdict::Pass => self.passed += 1,
            Verdict::Fail => self.failed += 1,
            Verdict::Ungraded => self.ungraded += 1,
            Verdict::Skipped => return,
            Verdict::Errored => {
                self.errored += 1;
                let category = result.error.as_ref().map(|error| error.category);
                self.broke += u64::from(matches!(category, Some(ErrorCategory::Crashed | ErrorCategory::Protocol)));
            }
        }
        self.scores.extend(result.score.map(Fraction::get));
        // If no agent ran, nothing can have been spent; but earlier attempts of the trial were paid for.
        if result.agent_ran() || result.earlier_attempts.is_some() {
            self.cost.add(result.costs_usd().sum(), result.cost_is_known());
        }
        self.tried_again += u64::from(result.earlier_attempts.is_some());
        self.priced += u64::from(result.metrics.cost_source.is_some());
        if result.agent_ran() {
            let tokens = result.metrics.tokens();
            let known = tokens.map_or(0, Amount::value);
            self.tokens.add(known as f64, tokens.is_some_and(Amount::is_exact));
        }
        if result.verdict != Verdict::Errored {
            let duration = result.metrics.duration_ms;
            self.duration.add(duration.unwrap_or_default() as f64, duration.is_some());
        }
    }
}
