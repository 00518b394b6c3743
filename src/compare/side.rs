//! Arms and sides of a comparison: a run's results, condensed to their cases one by one as they are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::changes::{Figure, Sum, figures};
use crate::case::CaseKind;
use crate::fold::CaseTrials;
use crate::grade::{ComparedWith, GradeRecord};
use crate::ids::{TrialId, TrialRecord, column_name, without_copy};
use crate::result::{EarlierAttempts, TrialResult, Warning};
use crate::run::{CaseRecord, PriceRecord, RunRecord};
use crate::trace::ToolKind;
use crate::verdict::{PassTrials, Verdict};

/// Interned strings: the steps of traces, each kept once.
#[derive(Debug, Default)]
pub struct Interner {
    numbers: HashMap<Box<str>, u32>,
    words: Vec<Box<str>>,
}

impl Interner {
    fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = self.words.len() as u32;
        self.words.push(word.into());
        self.numbers.insert(word.into(), number);
        number
    }

    pub fn word(&self, number: u32) -> &str {
        self.words.get(number as usize).map_or("", AsRef::as_ref)
    }
}

/// A side of a comparison: a run, or a baseline.
#[derive(Debug, Clone, Default)]
pub struct Side {
    /// The run's id.
    pub run: String,
    /// The run's label. Absent if it has none, and for a baseline.
    pub label: Option<String>,
    /// Version of `evals`.
    pub evals: String,
    /// The cases of the side, by id.
    pub cases: BTreeMap<String, CaseFacts>,
    /// Digests of the manifests, by harness.
    pub harnesses: BTreeMap<String, String>,
    /// The arms, in the order of the plan.
    pub arms: Vec<Arm>,
    /// True if the side is a baseline, which has no traces.
    pub baseline: bool,
    /// True if the trials were graded again, perhaps by a case that had changed since they ran.
    pub graded: bool,
    /// The other runs that the trials come from: for trials that were graded again, the original runs, the nearest first;
    /// then the shards of merged runs.
    pub origins: Vec<String>,
    /// The digests of the results of a shard or a merged run. Empty for other runs, for baselines, and if a digest is unknown.
    pub digests: HashMap<TrialId, Arc<str>>,
    /// The number of times the scores were evaluated while the run was in progress; 1 without `--trials auto`.
    pub looks: u32,
    /// True if the trials of the arms ran interleaved.
    pub interleaved: bool,
    /// The cases that were in quarantine when the run began, with the reason as text.
    pub quarantined: BTreeMap<String, String>,
    /// The price table. `None` for runs and baselines of older versions.
    pub prices: Option<PriceRecord>,
    /// The names of the user's environment variables that the agents got (`--env`). `None` for baselines of older versions.
    pub env: Option<BTreeSet<String>>,
}

/// The properties of a case that decide whether it can be compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseFacts {
    /// Digest of everything that the case is made from.
    pub digest: String,
    /// Digest of the agents' input. Absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<String>,
    /// True if the case changed between trials: some may have run before the change and others after it.
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
    /// The number of trials that must pass.
    #[serde(default)]
    pub pass: PassTrials,
    /// True if losing this case alone fails a gate.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub critical: bool,
    /// The run that the results come from, if they were kept from an earlier baseline because the case was in quarantine.
    /// Absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_from: Option<String>,
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
    /// The results of the arm by case.
    pub cases: BTreeMap<String, CaseTrials>,
    /// The results of the cases that were taken out because they are in quarantine.
    pub quarantined: BTreeMap<String, CaseTrials>,
    /// The model asked for. `None` if none was, and for a variant of a baseline, which does not keep it.
    pub model: Option<String>,
    /// The cases of which a baseline has no results because they were in quarantine when it was set, with the reason as text,
    /// without those that are in quarantine in the comparison. Empty for runs.
    pub left_out: BTreeMap<String, String>,
    /// Cases that the arm skipped.
    pub skipped: BTreeSet<String>,
    /// Cases in which the arm's agents got the same prompts, files and settings as those of another arm of the run, by the name
    /// of that variant. A baseline does not keep them.
    pub same_as: BTreeMap<String, BTreeSet<String>>,
    /// Cases whose counted graders ask for a skill that other arms of the run have and this one does not, by the name of the
    /// skill. A baseline does not keep them.
    pub lacks_skills: BTreeMap<String, BTreeSet<String>>,
    /// The harness, model and settings that produced the trials.
    pub made: MadeWith,
    /// Details that only results contain; a baseline does not keep them.
    pub details: Option<ArmDetails>,
}

/// The agents, models, judge models and sandboxes with which the trials of an arm were made and graded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MadeWith {
    /// The agents with their versions.
    #[serde(default)]
    pub agents: BTreeSet<String>,
    /// Trials with a score whose agent is unknown; a baseline does not keep this number.
    #[serde(skip)]
    pub versionless: u64,
    /// The models that answered. Absent if not reported.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub models: BTreeSet<String>,
    /// The sources of the models' answers that came through the gateway: `upstream`, `cassette`, `script`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub model_from: BTreeSet<String>,
    /// The judge models that were called. Absent if there were none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub judges: BTreeSet<String>,
    /// The models that answered, by the name of the judge model. Absent if not reported; a baseline does not keep them.
    #[serde(skip)]
    pub judge_models: BTreeMap<String, BTreeSet<String>>,
    /// The judge models that gave scores and have no calibration against labels by people.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub uncalibrated: BTreeSet<String>,
    /// Digests of the accepted snapshots that trials with a score were compared with, by case and grader. Absent if there
    /// were none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub snapshots: BTreeMap<String, BTreeSet<String>>,
    /// The cases and graders whose trials could not differ, because their own run accepted their snapshots. Absent if there
    /// were none.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub own_snapshots: BTreeSet<String>,
    /// The sandboxes that the trials ran in, in the words of `--sandbox`. Absent if unknown.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub sandboxes: BTreeSet<String>,
    /// The digest of the variant. Absent if the arm is a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// True if the manifest changed between the trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed: bool,
    /// True if the variant changed between the trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mixed_variant: bool,
}

impl MadeWith {
    /// Returns true if the manifest or the variant changed between the trials.
    pub fn is_mixed(&self) -> bool {
        self.mixed || self.mixed_variant
    }
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
pub struct ArmDetails {
    /// The figures of each case: their sums over trials.
    pub figures: BTreeMap<String, BTreeMap<Figure, Sum>>,
    /// The number of trials of each case whose figures are in `figures`.
    pub trials: BTreeMap<String, u64>,
    /// Tool calls by kind for each case, over the trials whose calls were visible.
    pub kinds: BTreeMap<String, BTreeMap<ToolKind, u64>>,
    /// The number of trials whose calls were visible, by case.
    pub seen: BTreeMap<String, u64>,
    /// The calls of each step of each trial, by case, as numbers into [`Interner`].
    pub shapes: BTreeMap<String, Vec<Vec<u32>>>,
    /// The number of failures of each grader by case, and by rule if the grader reported the broken rule.
    pub broken: BTreeMap<String, BTreeMap<Broken, u64>>,
    /// Skills that agents loaded although they belong neither to the agent nor to its trial.
    pub unexpected: BTreeSet<String>,
    /// True if an agent used the user's own home, with whatever skills and instructions it contains.
    pub user_home: bool,
    /// Trials whose agent listed no skills, although it could have.
    pub without_skills: u64,
    /// Trials whose agent listed no MCP servers, although it could have.
    pub without_servers: u64,
    /// Cases in which a person answered the agent.
    pub manual: BTreeSet<String>,
    /// The trials whose time does not include the start of the agent's program.
    pub starts_apart: u64,
    /// The trials whose time includes the start of the agent's program.
    pub starts_within: u64,
}

impl ArmDetails {
    /// Returns the mean number of calls of each kind in the trials of a case whose calls were visible. `None` if there are no
    /// such trials.
    pub fn calls_by_kind(&self, case: &str) -> Option<BTreeMap<ToolKind, f64>> {
        let seen = self.seen.get(case).copied().filter(|seen| *seen > 0)?;
        let kinds = self.kinds.get(case).into_iter().flatten();
        Some(kinds.map(|(kind, count)| (*kind, *count as f64 / seen as f64)).collect())
    }

    /// Returns the mean number of calls in the trials of a case whose calls were visible. `None` if there are no such trials.
    pub fn calls(&self, case: &str) -> Option<f64> {
        let seen = self.seen.get(case).copied().filter(|seen| *seen > 0)?;
        let all: u64 = self.kinds.get(case).into_iter().flat_map(BTreeMap::values).sum();
        Some(all as f64 / seen as f64)
    }

    /// Returns true if the times of the trials include the start of the agent's program, and false if they do not. `None`
    /// if it is unknown, or not the same for all trials.
    pub fn times_include_start(&self) -> Option<bool> {
        match (self.starts_apart, self.starts_within) {
            (0, 0) => None,
            (_, 0) => Some(false),
            (0, _) => Some(true),
            _ => None,
        }
    }

    /// Returns true if the times of one arm include the start of the program and those of the other do not.
    pub fn is_timed_otherwise(&self, other: &Self) -> bool {
        matches!((self.times_include_start(), other.times_include_start()), (Some(one), Some(other)) if one != other)
    }
}

impl Arm {
    /// Returns true if the times of one arm include the start of the program and those of the other do not.
    pub fn is_timed_otherwise(&self, other: &Arm) -> bool {
        matches!((&self.details, &other.details), (Some(details), Some(of_other)) if details.is_timed_otherwise(of_other))
    }
}

/// Returns the model of a column that is no variant: its name, or `None` if no model was asked for.
pub fn model_of_column(column: &str) -> Option<String> {
    Some(without_copy(column)).filter(|name| *name != "default").map(str::to_owned)
}

fn quarantined(record: &RunRecord) -> BTreeMap<String, String> {
    let of = |case: &CaseRecord| {
        let quarantine = record.quarantine(&case.id)?;
        Some((case.id.clone(), format!("it is in quarantine until {}: {}", quarantine.until, quarantine.why)))
    };
    record.cases.iter().filter_map(of).collect()
}

impl Side {
    /// Takes the results of the cases that are in quarantine on this or another side out of the arms.
    pub fn take_out_quarantined(&mut self, others: &BTreeMap<String, String>) {
        self.quarantined.extend(others.iter().map(|(id, why)| (id.clone(), why.clone())));
        for arm in &mut self.arms {
            let is_quarantined = |(id, _): &(String, CaseTrials)| self.quarantined.contains_key(id);
            let (quarantined, cases): (BTreeMap<_, _>, BTreeMap<_, _>) =
                std::mem::take(&mut arm.cases).into_iter().partition(is_quarantined);
            arm.cases = cases;
            arm.quarantined.extend(quarantined);
            if let Some(details) = &mut arm.details {
                details.seen.retain(|id, _| !self.quarantined.contains_key(id));
                details.kinds.retain(|id, _| !self.quarantined.contains_key(id));
            }
            arm.skipped.retain(|id| !self.quarantined.contains_key(id));
            arm.left_out.retain(|id, _| !self.quarantined.contains_key(id));
        }
    }

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
                kept_from: None,
            };
            (case.id.clone(), facts)
        });
        let mut side = Self {
            run: record.run.clone(),
            label: record.label.clone(),
            evals: record.evals.clone(),
            cases: cases.collect(),
            harnesses: record.harnesses.iter().map(|it| (it.name.clone(), it.digest.clone())).collect(),
            arms: Vec::new(),
            baseline: false,
            graded: record.graded,
            origins: Vec::new(),
            digests: HashMap::new(),
            interleaved: record.experiment.is_some() || record.options.aa,
            quarantined: quarantined(record),
            prices: record.prices.clone(),
            env: Some(record.options.env.iter().cloned().collect()),
            looks: record.options.looks.as_ref().map_or(1, |looks| looks.len() as u32),
        };
        for trial in &record.trials {
            let arm = side.arm(&trial.harness, &trial.arm);
            let of_column = || model_of_column(&arm.column).filter(|_| record.experiment.is_none());
            arm.model = trial.model.clone().or_else(of_column);
            if trial.skip.is_none() {
                arm.made.sandboxes.insert(trial.sandbox.word().to_owned());
                arm.cases.entry(trial.case.clone()).or_default().plan();
            }
        }
        for known in &record.arms {
            let of_arm = |arm: &&mut Arm| without_copy(&arm.column) == known.name || arm.column == known.name;
            for arm in side.arms.iter_mut().filter(of_arm) {
                arm.made.variant = Some(known.digest.clone());
                arm.same_as.clone_from(&known.same_as);
                arm.lacks_skills.clone_from(&known.lacks_skills);
                arm.made.mixed_variant |= known.mixed;
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
            self.arms.push(Arm { name, run, harness, column, details: Some(ArmDetails::default()), ..Arm::default() });
            self.arms.len() - 1
        });
        &mut self.arms[place]
    }

    /// Adds the cost of attempts of a trial that no result includes.
    pub fn add_unfinished(&mut self, trial: &TrialRecord, attempts: &EarlierAttempts) {
        let arm = self.arm(&trial.harness, &trial.arm);
        if let Some(case) = arm.cases.get_mut(&trial.case) {
            case.add_unfinished(attempts);
        }
    }

    pub fn add(&mut self, result: &TrialResult, words: &mut Interner) {
        let arm = self.arm(&result.harness, &result.arm);
        if result.verdict == Verdict::Skipped {
            arm.skipped.insert(result.case.clone());
            if let Some(case) = arm.cases.get_mut(&result.case) {
                case.add(result);
            }
            arm.cases.retain(|id, case| *id != result.case || case.planned() > 0);
            return;
        }
        arm.cases.entry(result.case.clone()).or_default().add(result);
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
            for one in &judge.judges {
                if let Some(model) = &one.model {
                    arm.made.judge_models.entry(one.judge.clone()).or_default().insert(model.clone());
                }
            }
        }
        let counts = |grade: &&GradeRecord| grade.passed.is_some() && !grade.diagnostic;
        for judge in result.grades.iter().filter(counts).filter_map(|grade| grade.judge.as_ref()) {
            if judge.calibrated == Some(false) && !arm.made.uncalibrated.contains(&judge.model) {
                arm.made.uncalibrated.insert(judge.model.clone());
            }
        }
        for grade in result.grades.iter().filter(counts) {
            let of_grader = || format!("{} ({})", result.case, grade.name);
            match &grade.snapshot {
                Some(ComparedWith::Accepted(digest)) => {
                    arm.made.snapshots.entry(of_grader()).or_default().insert(digest.clone());
                }
                Some(ComparedWith::OwnRun) => _ = arm.made.own_snapshots.insert(of_grader()),
                None => {}
            }
        }
        if let Some(model) = result.model_that_answered().filter(|_| result.score.is_some())
            && !arm.made.models.contains(model)
        {
            arm.made.models.insert(model.to_owned());
        }
        if let Some(source) = result.model_from
            && !arm.made.model_from.contains(source.word())
        {
            arm.made.model_from.insert(source.word().to_owned());
        }
        let Some(details) = &mut arm.details else { return };
        for warning in &result.warnings {
            match warning {
                Warning::UnexpectedSkill { names } => details.unexpected.extend(names.iter().cloned()),
                Warning::UserHome => details.user_home = true,
                Warning::SkillsNotListed => details.without_skills += 1,
                Warning::ServersNotListed => details.without_servers += 1,
                _ => {}
            }
        }
        if result.manual {
            details.manual.insert(result.case.clone());
        }
        if result.verdict == Verdict::Errored {
            return;
        }
        *details.trials.entry(result.case.clone()).or_default() += 1;
        if result.duration_ms().is_some() {
            let is_apart = result.metrics.start_ms.is_some();
            *if is_apart { &mut details.starts_apart } else { &mut details.starts_within } += 1;
        }
        let of_case = details.figures.entry(result.case.clone()).or_default();
        for (figure, value) in figures(result) {
            let sum = of_case.entry(figure).or_default();
            *sum = (sum.0 + value, sum.1 + 1);
        }
        if let Some(kinds) = &result.metrics.tool_calls_by_kind {
            *details.seen.entry(result.case.clone()).or_default() += 1;
            let of_case = details.kinds.entry(result.case.clone()).or_default();
            kinds.iter().for_each(|(kind, count)| *of_case.entry(*kind).or_default() += count);
            let shape = result.shape.iter().map(|step| words.number(&step.join(" + "))).collect();
            details.shapes.entry(result.case.clone()).or_default().push(shape);
        }
        for grade in result.grades.iter().filter(|grade| grade.passed == Some(false)) {
            let of_case = details.broken.entry(result.case.clone()).or_default();
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
