//! `--dry-run`: prints the trials that would run, the trials that would be skipped with the reason, and agents that are
//! not installed.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::path::Path;

use crate::case::Case;
use crate::cli::output::{self, Content};
use crate::cli::{CliError, harness, present_digests, terminal};
use crate::compare::differing::Differing;
use crate::compare::power::size;
use crate::compare::{one_case, sequential};
use crate::experiment::Experiment;
use crate::harness::catalog::Catalog;
use crate::ids::{CellId, TrialRecord, column_name};
use crate::own_environment;
use crate::report::text::{harmless, locale_is_unicode, money, one_line};
use crate::rounding;
use crate::run::RunRecord;
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::secrets::Masker;
use crate::statistics::means;
use crate::statistics::power::{self, ALPHA, POWER, Spread};
use crate::text::{plural, some_of};
use crate::values::Fraction;

pub fn print_plan(catalog: &Catalog, trials: &[&TrialRecord]) -> Result<(), CliError> {
    let mut out = output::stdout(Content::Text);
    let look = terminal::stdout_look();
    // Names of cases come from files of unknown authors.
    let shown = |text: &str| one_line(text, usize::MAX, &look);
    let times = if locale_is_unicode() { "×" } else { "x" };
    for cell in trials.chunk_by(|one, other| one.cell() == other.cell()) {
        let Some(trial) = cell.first() else { continue };
        let (case, column) = (shown(&trial.case), shown(&column_name(&trial.harness, &trial.arm)));
        match &trial.skip {
            Some(reason) => writeln!(out, "skip  {case}  {column}  {}", shown(reason))?,
            None => writeln!(out, "run   {case}  {column}  {} {times}", cell.len())?,
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
            let name = &manifest.name;
            let line = format!("harness `{name}` is not installed: program `{missing}` is not on PATH{install}");
            writeln!(out, "{}", shown(&line))?;
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
/// The spread of the scores and the cost of a trial come from stored runs of the same cases with the same harnesses and
/// models. Without such runs, a spread is assumed, and the text says so. `all` has every case that a trial may name. `looks`
/// are the numbers of trials at which the scores are evaluated, empty if they are evaluated once.
pub fn print_power(trials: &[TrialRecord], all: &[Case], runs: &Path, looks: &[u32]) -> Result<(), CliError> {
    let planned: Vec<&TrialRecord> = trials.iter().filter(|trial| trial.skip.is_none()).collect();
    let cases: BTreeSet<&str> = planned.iter().map(|trial| trial.case.as_str()).collect();
    let cells: BTreeSet<CellId> = planned.iter().map(|trial| trial.cell()).collect();
    if cells.is_empty() || cases.is_empty() {
        return Ok(());
    }
    let mut agents: BTreeMap<Agent, BTreeSet<CellId>> = BTreeMap::new();
    for trial in &planned {
        agents.entry((trial.harness.clone(), trial.model.clone())).or_default().insert(trial.cell());
    }
    let names = agents.keys().cloned().collect();
    let stored = Stored::of(all.iter().filter(|case| cases.contains(case.id.as_str())), runs, &names);
    let each = planned.len() as f64 / cells.len() as f64;
    let (variance, from) = match stored.variance() {
        Some(variance) => {
            let without = named(agents.keys().filter(|agent| stored.of_agent(agent).is_none_or(|it| it.trials == 0)));
            let without = without.map(|names| format!(", none of them of {names},")).unwrap_or_default();
            (variance, format!("by the scores of {} in stored runs{without}", plural(stored.trials(), "trial")))
        }
        None => (ASSUMED * (1.0 - ASSUMED), format!("if {:.0} % of the trials pass", ASSUMED * 100.0)),
    };
    // Differences between cases are unknown before the run; they make the effect larger, never smaller.
    let spread = Spread { between: 0.0, within_a: variance, within_b: variance };
    let count = cases.len() as f64;
    let alpha = if looks.is_empty() { ALPHA } else { 1.0 - sequential::level(looks.len() as u32) };
    // As in a comparison: a single case, or cases with one trial each, are compared by shares.
    let errors_apart = |each: f64| match count > 1.0 && each > 1.0 {
        true => power::errors_apart_by_t(alpha, POWER, count - 1.0),
        false => power::errors_apart(alpha, POWER),
    };
    let smallest = |each: f64| match cases.len() {
        // A mean number of trials is rounded down: fewer trials detect no more.
        1 if each < (one_case::MAX_TRIALS + 1) as f64 => {
            let each = each as u64;
            one_case::smallest_effect(share_of(variance), each, each, 1.0 - alpha)
        }
        1 => {
            let by_error = errors_apart(each) * spread.of_case(each, each).sqrt();
            Some(by_error.max(at_effect(errors_apart(each), variance, each)))
        }
        number => {
            let by_error = errors_apart(each) * (spread.of_case(each, each) / count).sqrt();
            let differing = if each > 1.0 { Differing::T(1.0 - alpha) } else { Differing::Counts(1.0 - alpha) };
            // A loss of trials that always passed has a spread of its own.
            let is_seen = 2.0 * variance > by_error * (1.0 - by_error);
            let share = differing.share(number as u64);
            if each <= 1.0 && share.is_none() {
                return None;
            }
            let of_loss = at_effect(errors_apart(each), variance, each * count);
            Some(by_error.max(of_loss).max(share.filter(|_| !is_seen).map_or(0.0, |share| share / each)))
        }
    };
    let smallest =
        |each: f64| smallest(each).map_or_else(|| "none (so few trials detect no difference)".to_owned(), size);
    let smallest = match (looks.first(), looks.last()) {
        (Some(first), Some(most)) => format!(
            "{} with {first} trials of each case and arm (the first evaluation), {} with {most} (the maximum)",
            smallest(f64::from(*first)),
            smallest(f64::from(*most))
        ),
        _ => format!("{} with {} of each case and arm", smallest(each), number_of_trials(each)),
    };
    let apart = if count > 1.0 {
        power::errors_apart_by_t(alpha, POWER, count - 1.0)
    } else {
        power::errors_apart(alpha, POWER)
    };
    let at_target = Spread { within_b: variance.max(after_loss(variance, TARGET)), ..spread };
    let needed = power::trials_needed(TARGET / apart, count, at_target).unwrap_or(each).ceil();
    let mut out = output::stdout(Content::Text);
    writeln!(
        out,
        "\nminimum detectable effect at 80 % power: {smallest}, {from} and the arms differ by the same amount in \
         every case"
    )?;
    let all = needed * cells.len() as f64;
    writeln!(
        out,
        "detecting {} pp needs {} of each case and arm, {all:.0} in all{}",
        rounding::percent_figure(TARGET),
        plural(needed as u64, "trial"),
        price(&stored, &agents, needed)
    )?;
    Ok(())
}

/// Returns the share of passing trials, at least a half, that has this variance.
fn share_of(variance: f64) -> f64 {
    0.5 + (0.25 - variance).max(0.0).sqrt()
}

/// Returns the variance of trials that lose this share of passes, if this was the variance before.
fn after_loss(variance: f64, loss: f64) -> f64 {
    let left = (share_of(variance) - loss).max(0.0);
    left * (1.0 - left)
}

/// Returns the smallest loss that is at least `errors_apart` standard errors above 0, or 1 if there is none. The standard error
/// includes the spread that the loss itself causes.
fn at_effect(errors_apart: f64, variance: f64, trials: f64) -> f64 {
    let is_found = |loss: f64| loss >= errors_apart * ((variance + after_loss(variance, loss)) / trials).sqrt();
    let (mut missed, mut found) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = f64::midpoint(missed, found);
        if is_found(middle) { found = middle } else { missed = middle }
    }
    found
}

/// Returns the price of `trials` trials of each cell, with the number of stored trials that it is computed from. The price of a
/// harness and model is never computed from the costs of others.
fn price(stored: &Stored, agents: &BTreeMap<Agent, BTreeSet<CellId>>, trials: f64) -> String {
    let cost = |agent: &Agent| means::mean(&stored.of_agent(agent)?.costs);
    let known = agents.iter().filter_map(|(agent, cells)| Some(cost(agent)? * trials * cells.len() as f64));
    let known: Vec<f64> = known.collect();
    if known.is_empty() {
        return "; no stored run has the cost of a trial of these harnesses and models".to_owned();
    }
    let count: usize = stored.agents.values().map(|agent| agent.costs.len()).sum();
    let without = named(agents.keys().filter(|agent| cost(agent).is_none()));
    let without = without.map(|names| format!(", without that of {names}, which is unknown")).unwrap_or_default();
    let (sum, count) = (money(known.iter().sum()), plural(count, "trial"));
    format!(", about {sum} by the known costs of {count} in stored runs{without}")
}

/// Returns the names of harnesses with their models, if there are any.
fn named<'a>(agents: impl Iterator<Item = &'a Agent>) -> Option<String> {
    let name = |(harness, model): &Agent| column_name(harness, model.as_deref().unwrap_or("default"));
    let names: Vec<String> = agents.map(name).collect();
    (!names.is_empty()).then(|| some_of(names, MAX_NAMES))
}

/// Returns the number of trials of a cell as text. It is a mean if cells have different numbers.
fn number_of_trials(each: f64) -> String {
    if each.fract() == 0.0 { plural(each as u64, "trial") } else { format!("a mean of {each:.1} trials") }
}

/// The share of trials that pass, if no stored run shows it.
const ASSUMED: f64 = 0.7;
/// The difference whose price is shown.
const TARGET: f64 = 0.05;
/// The maximum number of stored runs whose results are read.
const MAX_READ_RUNS: usize = 20;
/// The maximum number of harnesses and models that are named.
const MAX_NAMES: usize = 4;

/// A harness with the requested model. Prices and spreads of one say nothing about another.
type Agent = (String, Option<String>);

/// The scores and costs of stored trials of the planned harnesses and models.
#[derive(Default)]
struct Stored {
    agents: BTreeMap<Agent, StoredTrials>,
}

/// The scores and costs of stored trials of a harness and model.
#[derive(Default)]
struct StoredTrials {
    /// The scores by cell.
    scores: BTreeMap<String, Vec<f64>>,
    /// The costs that are known as a whole.
    costs: Vec<f64>,
    /// The number of trials with a score.
    trials: usize,
}

impl Stored {
    /// Reads the newest runs of a folder that ran these cases with their present content. Each trial counts once, and reruns
    /// of failed trials do not count, because they were selected by their outcome.
    fn of<'a>(cases: impl Iterator<Item = &'a Case>, runs: &Path, agents: &BTreeSet<Agent>) -> Self {
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
        let newest = find::without_repeated(&all).into_iter().filter(|(_, record)| counts(record)).take(MAX_READ_RUNS);
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
                let agent = (result.harness.clone(), result.model.requested.clone());
                if !agents.contains(&agent) {
                    continue;
                }
                let of_agent = stored.agents.entry(agent).or_default();
                let key = format!("{} {} {}", result.case, result.harness, result.arm);
                of_agent.scores.entry(key).or_default().extend(result.score.map(Fraction::get));
                of_agent.trials += usize::from(result.score.is_some());
                of_agent.costs.extend(cost.filter(|_| result.cost_is_known()));
            }
        }
        stored
    }

    fn of_agent(&self, agent: &Agent) -> Option<&StoredTrials> {
        self.agents.get(agent)
    }

    /// Returns the number of trials with a score.
    fn trials(&self) -> usize {
        self.agents.values().map(|agent| agent.trials).sum()
    }

    /// Returns the mean variance of the trials of a cell, in which each harness and model counts once; `None` if no cell has
    /// two trials, or if none varied and trials have a partial score.
    fn variance(&self) -> Option<f64> {
        let of_agent = |agent: &StoredTrials| {
            let known: Vec<f64> = agent.scores.values().filter_map(|scores| means::variance(scores)).collect();
            means::mean(&known)
        };
        let known: Vec<f64> = self.agents.values().filter_map(of_agent).collect();
        let mut scores = self.agents.values().flat_map(|agent| agent.scores.values().flatten());
        let are_shares = scores.all(|score| *score == 0.0 || *score == 1.0);
        means::mean(&known).filter(|variance| *variance > 0.0 || are_shares)
    }
}
