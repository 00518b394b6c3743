//! The results of a skill by the convention of Agent Skills: `grading.json` and `timing.json` for each trial, and
//! `benchmark.json`, whose viewer reads exactly these names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::Exported;
use crate::grade::GradeRecord;
use crate::grade::judge_record::CriterionVerdict;
use crate::report::Report;
use crate::report::whole::WholeReport;
use crate::result::TrialResult;
use crate::run::ArmRecord;
use crate::statistics::means;

/// The names of the configurations that the viewer knows.
const WITH: &str = "with_skill";
const WITHOUT: &str = "without_skill";

pub(super) fn export(report: WholeReport<'_>) -> Result<Exported, String> {
    let names = configurations(&report)?;
    let mut exported = Exported::default();
    let mut runs: Vec<Run> = Vec::new();
    let cases: Vec<&str> = report.run.cases.iter().map(|case| case.id.as_str()).collect();
    for result in report.all_results() {
        let number = cases.iter().position(|id| *id == result.case).map(|at| at + 1);
        let (Some(configuration), Some(number)) = (names.get(&result.arm), number) else {
            exported.notes.push(format!("{} is left out: the run does not list its case and its arm", result.id()));
            continue;
        };
        let expectations: Vec<Value> =
            result.grades.iter().filter(|grade| !grade.diagnostic).flat_map(expectations).collect();
        if report.run.quarantine(&result.case).is_some() {
            exported.notes.push(format!("{} is in quarantine and left out", result.id()));
            continue;
        }
        if result.score.is_none() || expectations.is_empty() {
            let verdict = result.verdict.word();
            exported.notes.push(format!("{} is {verdict} and left out: it is neither a pass nor a fail", result.id()));
            continue;
        }
        let run = Run { number, configuration: configuration.clone(), result, expectations };
        let folder = PathBuf::from(format!("eval-{number}/{configuration}/run-{}", result.trial));
        exported.files.push((folder.join("grading.json"), run.grading()));
        exported.files.push((folder.join("timing.json"), run.timing()));
        runs.push(run);
    }
    for (at, id) in cases.iter().enumerate().filter(|(_, id)| report.run.quarantine(id).is_none()) {
        let metadata = json!({"eval_id": at + 1, "eval_name": id});
        exported.files.push((PathBuf::from(format!("eval-{}/eval_metadata.json", at + 1)), metadata));
    }
    exported.files.push((PathBuf::from("benchmark.json"), benchmark(report, &runs, &exported.notes)));
    Ok(exported)
}

/// Returns the name of the configuration of each arm: the first arm without skills, the first with some, and the names
/// of the others, with a number if two would be equal.
fn configurations(report: &Report) -> Result<BTreeMap<String, String>, String> {
    let has_skills = |arm: &ArmRecord| {
        arm.overrides.get("skills").and_then(Value::as_array).is_some_and(|skills| !skills.is_empty())
    };
    let arms = &report.run.arms;
    let (Some(with), Some(without)) =
        (arms.iter().find(|arm| has_skills(arm)), arms.iter().find(|arm| !has_skills(arm)))
    else {
        return Err(format!(
            "run {} has no arm with a skill beside one without; run an experiment that varies `skills`",
            report.run.run
        ));
    };
    let mut names = BTreeMap::from([(with.name.clone(), WITH.to_owned()), (without.name.clone(), WITHOUT.to_owned())]);
    for arm in arms {
        if names.contains_key(&arm.name) {
            continue;
        }
        let plain: String = arm.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let mut numbered = std::iter::once(plain.clone()).chain((2_u64..).map(|number| format!("{plain}_{number}")));
        let free = numbered.find(|name| names.values().all(|known| known != name));
        names.extend(free.map(|name| (arm.name.clone(), name)));
    }
    Ok(names)
}

/// A trial with a score.
struct Run<'a> {
    number: usize,
    configuration: String,
    result: &'a TrialResult,
    expectations: Vec<Value>,
}

impl Run<'_> {
    fn passed(&self) -> usize {
        self.expectations.iter().filter(|it| it.get("passed") == Some(&Value::Bool(true))).count()
    }

    fn pass_rate(&self) -> f64 {
        self.passed() as f64 / self.expectations.len() as f64
    }

    fn seconds(&self) -> Option<f64> {
        self.result.duration_ms().map(|ms| ms as f64 / 1000.0)
    }

    fn tokens(&self) -> Option<f64> {
        self.result.metrics.tokens().filter(|tokens| tokens.is_exact()).map(|tokens| tokens.value() as f64)
    }

    fn summary(&self) -> Value {
        let (passed, total) = (self.passed(), self.expectations.len());
        json!({"passed": passed, "failed": total - passed, "total": total, "pass_rate": self.pass_rate()})
    }

    fn grading(&self) -> Value {
        let metrics = &self.result.metrics;
        let mut execution = Map::new();
        if let Some(kinds) = &metrics.tool_calls_by_kind {
            execution.insert("tool_calls".to_owned(), json!(kinds));
        }
        put(&mut execution, "total_tool_calls", metrics.tool_calls.map(|calls| json!(calls)));
        put(&mut execution, "total_steps", Some(json!(self.result.shape.len())));
        json!({
            "expectations": self.expectations,
            "summary": self.summary(),
            "execution_metrics": execution,
            "timing": self.times(),
        })
    }

    fn times(&self) -> Value {
        let mut timing = Map::new();
        put(&mut timing, "executor_duration_seconds", self.seconds().map(|seconds| json!(seconds)));
        put(&mut timing, "total_duration_seconds", self.seconds().map(|seconds| json!(seconds)));
        Value::Object(timing)
    }

    fn timing(&self) -> Value {
        let mut timing = Map::new();
        put(&mut timing, "total_tokens", self.tokens().map(|tokens| json!(tokens as u64)));
        put(&mut timing, "duration_ms", self.result.duration_ms().map(|ms| json!(ms)));
        put(&mut timing, "total_duration_seconds", self.seconds().map(|seconds| json!(seconds)));
        Value::Object(timing)
    }

    fn entry(&self) -> Value {
        let mut result = self.summary();
        if let Value::Object(result) = &mut result {
            put(result, "time_seconds", self.seconds().map(|seconds| json!(seconds)));
            put(result, "tokens", self.tokens().map(|tokens| json!(tokens as u64)));
            put(result, "tool_calls", self.result.metrics.tool_calls.map(|calls| json!(calls)));
        }
        json!({
            "eval_id": self.number,
            "eval_name": self.result.case,
            "configuration": self.configuration,
            "run_number": self.result.trial,
            "result": result,
            "expectations": self.expectations,
            "notes": [],
        })
    }
}

/// Puts a figure that is known. An unknown one is absent, never 0.
fn put(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    map.extend(value.map(|value| (key.to_owned(), value)));
}

/// Returns the expectations of a grade: its criteria if it has any, else the grade itself. Parts that are unknown are left out.
fn expectations(grade: &GradeRecord) -> Vec<Value> {
    let criteria = grade.judge.iter().flat_map(|judge| &judge.criteria);
    let judged: Vec<Value> = criteria
        .filter_map(|it| {
            let passed = match it.verdict {
                CriterionVerdict::Pass => true,
                CriterionVerdict::Fail => false,
                CriterionVerdict::Unknown => return None,
            };
            Some(json!({"text": it.criterion, "passed": passed, "evidence": it.reason}))
        })
        .collect();
    match (judged.is_empty(), grade.passed) {
        (false, _) => judged,
        (true, Some(passed)) => vec![json!({"text": grade.name, "passed": passed, "evidence": grade.reason})],
        (true, None) => Vec::new(),
    }
}

fn benchmark(report: WholeReport<'_>, runs: &[Run<'_>], left_out: &[String]) -> Value {
    let configurations: Vec<&str> = {
        let others: BTreeSet<&str> = runs.iter().map(|run| run.configuration.as_str()).collect();
        let first = [WITH, WITHOUT].into_iter().filter(|name| others.contains(name));
        first.chain(others.iter().copied().filter(|name| ![WITH, WITHOUT].contains(name))).collect()
    };
    let mut summary = Map::new();
    for name in &configurations {
        let of: Vec<&Run<'_>> = runs.iter().filter(|run| run.configuration == *name).collect();
        let mut figures = Map::new();
        put(&mut figures, "pass_rate", statistics(of.iter().map(|run| Some(run.pass_rate()))));
        put(&mut figures, "time_seconds", statistics(of.iter().map(|run| run.seconds())));
        put(&mut figures, "tokens", statistics(of.iter().map(|run| run.tokens())));
        summary.insert((*name).to_owned(), Value::Object(figures));
    }
    let mean = |name: &str, key: &str| summary.get(name)?.get(key)?.get("mean")?.as_f64();
    let delta = |key: &str| Some(mean(WITH, key)? - mean(WITHOUT, key)?);
    let mut deltas = Map::new();
    put(&mut deltas, "pass_rate", delta("pass_rate").map(|it| json!(format!("{it:+.2}"))));
    put(&mut deltas, "time_seconds", delta("time_seconds").map(|it| json!(format!("{it:+.1}"))));
    put(&mut deltas, "tokens", delta("tokens").map(|it| json!(format!("{it:+.0}"))));
    summary.insert("delta".to_owned(), Value::Object(deltas));
    let run = &report.run;
    let skill = run.arms.iter().find_map(|arm| arm.overrides.get("skills")?.as_array()?.first()?.get("name").cloned());
    let path = run.arms.iter().find_map(|arm| arm.sources.keys().next());
    let models: BTreeSet<&str> =
        report.all_results().iter().filter_map(|result| result.model.effective.as_deref()).collect();
    let is_counted = |case: &str| run.quarantine(case).is_none();
    let counted = report.all_results().iter().filter(|result| is_counted(&result.case));
    let trials = counted.map(|result| result.trial).max().unwrap_or(0);
    let numbers = (1..).zip(&run.cases).filter(|(_, case)| is_counted(&case.id)).map(|(number, _)| number);
    let numbers: Vec<usize> = numbers.collect();
    let mut metadata = Map::new();
    put(&mut metadata, "skill_name", skill);
    put(&mut metadata, "skill_path", path.map(|path| json!(path)));
    let model = models.into_iter().collect::<Vec<_>>().join(", ");
    put(&mut metadata, "executor_model", Some(json!(model)).filter(|_| !model.is_empty()));
    put(&mut metadata, "timestamp", Some(json!(run.started)));
    put(&mut metadata, "evals_run", Some(json!(numbers)));
    put(&mut metadata, "runs_per_configuration", Some(json!(trials)));
    let notes: Vec<&String> = report.notes.iter().chain(left_out).collect();
    json!({
        "metadata": metadata,
        "runs": runs.iter().map(Run::entry).collect::<Vec<_>>(),
        "run_summary": summary,
        "notes": notes,
    })
}

/// Returns mean, standard deviation, minimum and maximum of the known figures; `None` if one is unknown, or if there is none.
fn statistics(figures: impl Iterator<Item = Option<f64>>) -> Option<Value> {
    let known: Vec<f64> = figures.collect::<Option<_>>()?;
    let mean = means::mean(&known)?;
    let stddev = means::variance(&known).map_or(0.0, f64::sqrt);
    let (min, max) = known.iter().fold((f64::MAX, f64::MIN), |(min, max), it| (min.min(*it), max.max(*it)));
    Some(json!({"mean": mean, "stddev": stddev, "min": min, "max": max}))
}
