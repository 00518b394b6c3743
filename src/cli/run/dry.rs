//! `--dry-run`: prints the trials that would run, the trials that would be skipped with the reason, and agents that are
//! not installed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::path::Path;

use crate::case::Case;
use crate::cli::output::{self, Content};
use crate::cli::{CliError, harness, present_digests};
use crate::experiment::Experiment;
use crate::harness::catalog::Catalog;
use crate::ids::{CellId, TrialRecord, column_name};
use crate::own_environment;
use crate::report::text::{harmless, money};
use crate::rounding;
use crate::run::RunRecord;
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::secrets::Masker;
use crate::statistics::means;
use crate::statistics::power::{self, Spread};
use crate::text::plural;
use crate::values::Fraction;

/// Prints a plan.
pub fn print_plan(catalog: &Catalog, trials: &[&TrialRecord]) -> Result<(), CliError> {
    let mut out = output::stdout(Content::Text);
    for cell in trials.chunk_by(|one, other| one.cell() == other.cell()) {
        let Some(trial) = cell.first() else { continue };
        let column = column_name(&trial.harness, &trial.arm);
        match &trial.skip {
            Some(reason) => writeln!(out, "skip  {}  {column}  {reason}", trial.case)?,
            None => writeln!(out, "run   {}  {column}  {} ×", trial.case, cell.len())?,
        }
    }
    let runs = trials.iter().filter(|trial| trial.skip.is_none()).count();
    let count = plural(runs, "trial");
    writeln!(out, "{count}, {} skipped", trials.len() - runs)?;
    let used: BTreeSet<&str> = trials.iter().map(|trial| trial.harness.as_str()).collect();
    for manifest in used.into_iter().filter_map(|name| catalog.named(name)).map(|entry| &entry.manifest) {
        if let Some(missing) = harness::missing_program(manifest) {
            let install = manifest.install.as_deref().map(|line| format!("; install it with: `{line}`"));
            let install = install.unwrap_or_default();
            writeln!(out, "harness `{}` is not installed: program `{missing}` is not on PATH{install}", manifest.name)?;
        }
    }
    Ok(())
}

/// Prints the keys that each arm of an experiment changes, compared with the baseline.
pub fn print_experiment(experiment: &Experiment) -> Result<(), CliError> {
    let mut out = output::stdout(Content::Text);
    let Some((baseline, others)) = experiment.arms.split_first() else { return Ok(()) };
    let env: Vec<(String, String)> = own_environment::texts().into_iter().collect();
    let masker = Masker::of_env(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &[]);
    writeln!(out, "\nbaseline: {}", baseline.name)?;
    for arm in others {
        writeln!(out, "{}:", arm.name)?;
        for (key, there, here) in arm.differences(baseline) {
            writeln!(out, "  {}", harmless(&masker.mask(&format!("{key}: {here} instead of {there}"))))?;
        }
    }
    Ok(())
}

/// Prints the smallest difference that the plan can detect, and the number of trials that a smaller difference needs.
/// The spread of the scores and the cost of a trial come from stored runs of the same cases. Without such runs, a
/// spread is assumed, and the text says so. `all` has every case that a trial may name.
pub fn print_power(trials: &[TrialRecord], all: &[Case], runs: &Path) -> Result<(), CliError> {
    let planned: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.skip.is_none()).collect();
    let cases: BTreeSet<&str> = planned.iter().map(|trial| trial.case.as_str()).collect();
    let cells: BTreeSet<CellId> = planned.iter().map(|trial| trial.cell()).collect();
    if cells.is_empty() || cases.is_empty() {
        return Ok(());
    }
    let stored = Stored::of(all.iter().filter(|case| cases.contains(case.id.as_str())), runs);
    let each = planned.len() as f64 / cells.len() as f64;
    let (variance, from) = match stored.variance() {
        Some(variance) => (variance, format!("by the scores of {} in stored runs", plural(stored.trials, "trial"))),
        None => (ASSUMED * (1.0 - ASSUMED), format!("if {:.0} % of the trials pass", ASSUMED * 100.0)),
    };
    // Differences between cases are unknown before the run; they make the effect larger, never smaller.
    let spread = Spread { between: 0.0, within_a: variance, within_b: variance };
    let count = cases.len() as f64;
    let smallest = power::smallest_effect(count, spread, (each, each), ALPHA, POWER);
    let needed = power::trials_needed(TARGET / power::errors_apart(ALPHA, POWER), count, spread).unwrap_or(each).ceil();
    let mut out = output::stdout(Content::Text);
    writeln!(
        out,
        "\nminimum detectable effect at 80 % power: {} pp, {from} and the arms differ by the same amount in every case",
        rounding::percent_figure(smallest.min(1.0)),
    )?;
    let all = needed * cells.len() as f64;
    let cost = stored.cost().map(|cost| format!(", about {}", money(cost * all)));
    writeln!(
        out,
        "detecting {} pp needs {} of each case and arm, {all:.0} in all{}",
        rounding::percent_figure(TARGET),
        plural(needed as u64, "trial"),
        cost.unwrap_or_else(|| "; no stored run has the cost of a trial".to_owned())
    )?;
    Ok(())
}

/// The error rate of the test.
const ALPHA: f64 = 0.05;
/// The probability of detecting a difference that exists.
const POWER: f64 = 0.8;
/// The share of trials that pass, if no stored run shows it.
const ASSUMED: f64 = 0.7;
/// The difference whose price is shown.
const TARGET: f64 = 0.05;
/// The maximum number of stored runs whose results are read.
const MOST_RUNS: usize = 20;

/// The scores and costs of stored trials.
#[derive(Default)]
struct Stored {
    scores: BTreeMap<String, Vec<f64>>,
    costs: Vec<f64>,
    trials: usize,
}

impl Stored {
    /// Reads the newest runs of a folder that ran these cases with their present content. Each trial counts once, and reruns
    /// of failed trials do not count, because they were selected by their outcome.
    fn of<'a>(cases: impl Iterator<Item = &'a Case>, runs: &Path) -> Self {
        let mut stored = Self::default();
        let all = find::all(runs);
        if all.is_empty() {
            return stored;
        }
        let digests = present_digests::of(cases);
        let is_present = |record: &RunRecord, id: &str| record.case(id).is_some_and(|case| case.is_present(&digests));
        let counts = |record: &RunRecord| {
            let has_cases = record.cases.iter().any(|case| case.is_present(&digests));
            !record.graded && record.derived_from.is_none() && has_cases
        };
        let newest = find::without_repeated(&all).into_iter().filter(|(_, record)| counts(record)).take(MOST_RUNS);
        // Two copies of a run may each have lost a result that the other one has; both are read.
        let mut seen = HashSet::new();
        for (path, record) in newest {
            let Ok(results) = RunFolder::open(path).results_of_trials(record) else { continue };
            for result in results.iter().filter(|result| is_present(record, &result.case)) {
                let cost = result.costs_usd().reduce(|one, other| one + other);
                // A lost result has neither.
                let is_known = result.score.is_some() || cost.is_some();
                if !is_known || !seen.insert((record.run.as_str(), result.id())) {
                    continue;
                }
                let key = format!("{} {} {}", result.case, result.harness, result.arm);
                stored.scores.entry(key).or_default().extend(result.score.map(Fraction::get));
                stored.trials += usize::from(result.score.is_some());
                stored.costs.extend(cost);
            }
        }
        stored
    }

    /// Returns the mean variance of the trials of a cell; `None` if no cell has two trials, or if none varied.
    fn variance(&self) -> Option<f64> {
        let known: Vec<f64> = self.scores.values().filter_map(|scores| means::variance(scores)).collect();
        means::mean(&known).filter(|variance| *variance > 0.0)
    }

    fn cost(&self) -> Option<f64> {
        means::mean(&self.costs)
    }
}
