//! `evals run`: reads the inputs, plans, runs and reports. Also resumes an interrupted run.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use super::errors::of_new_run;
use super::inputs::{self, Inputs};
use super::judges::{self, JudgeArgs};
use super::left_above::LeftAbove;
use super::report::{both, none_written};
use super::snapshot::during_run::{Mode, SnapshotResults};
use super::stop::{self, INTERRUPTED};
use super::{BROKEN_OFF, CliError, RunsFolder, ask, complete, engine, snapshot, terminal};
use crate::case::Case;
use crate::experiment::{Arm, OneOff};
use crate::harness::catalog::Catalog;
use crate::harness::login::is_variable;
use crate::harness::{HOME_IS_PRIVATE, Home};
use crate::ids::{TrialId, TrialRecord, cases_of};
use crate::interaction::{Interaction, Llm};
use crate::judge::Chosen;
use crate::own_environment::in_ci;
use crate::plan::{AskedModel, PlanError, PlanRequest, arm_doubts, plan};
use crate::price::PriceTable;
use crate::process::{self, descriptors};
use crate::report::format::{Format, ReporterArg};
use crate::report::progress::{Live, LiveConditions, Plain, Watch};
use crate::report::text::shell_word_for_terminal;
use crate::report::{self, Report, RunContext};
use crate::result::TrialResult;
use crate::run::folder::{Restored, RunFolder};
use crate::run::journal::JournalChange;
use crate::run::shard::{Shard, in_order};
use crate::run::temporary;
use crate::run::{Keep, RunError, RunOptions, RunRecord};
use crate::runner::{self, Run, RunOutcome};
use crate::sandbox;
use crate::text::{plural, some_of};
use crate::trial::Engine;
use crate::values::{Fraction, Time};
use crate::yaml::words;

pub(super) mod arms;
mod auto;
pub(super) mod commits;
mod dry;
pub(super) mod gateway;
mod laid;
pub(super) mod record;
pub(super) mod resume;
mod sandboxes;
mod scripts;
mod surroundings;

pub use scripts::model_script;

#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Cases, or folders of cases (default: cases/)
    paths: Vec<PathBuf>,
    /// Harness: name, or path of a manifest; repeatable (default: the case's, else the built-in demo)
    #[arg(long = "harness", value_name = "NAME", add = complete::harnesses())]
    harnesses: Vec<String>,
    /// Model to request; each is a further column to compare; repeatable
    #[arg(long = "model", value_name = "[HARNESS=]MODEL", add = complete::models())]
    models: Vec<String>,
    /// Experiment file, whose arms differ only in the keys that it names
    #[arg(long, value_name = "FILE", conflicts_with_all = ["harnesses", "models"])]
    experiment: Option<PathBuf>,
    /// An arm of an experiment: the overridden keys, as YAML or as the path of a file; repeatable, the first one is the
    /// baseline
    #[arg(long = "variant", value_name = "NAME=YAML|FILE")]
    variants: Vec<OneOff>,
    /// Compare the baseline with itself, to count how often the suite shows a difference although there is none
    #[arg(long)]
    aa: bool,
    /// Trials of each cell; auto begins with 2 and doubles them, up to 16, until each harness or model is clearly different from
    /// the first (in an experiment, from the baseline), or clearly equivalent
    #[arg(long, value_name = "N|auto")]
    trials: Option<auto::Trials>,
    /// Concurrent trials (default: the number of cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run only cases whose ID matches; repeatable
    #[arg(long = "case", value_name = "GLOB", add = complete::cases())]
    cases: Vec<String>,
    /// Run only cases with this tag; repeatable
    #[arg(long = "tag", value_name = "TAG", add = complete::tags())]
    tags: Vec<String>,
    /// Run only part K of N
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Label of the run
    #[arg(long, value_name = "TEXT", value_parser = super::label)]
    label: Option<String>,
    /// Override the cases' interaction policy: auto-approve, auto-reject, manual, the name of a policy in
    /// policies/, or its YAML
    #[arg(long, value_name = "POLICY")]
    interaction: Option<Interaction>,
    /// Pass this environment variable to the agents; repeatable
    #[arg(long = "env", value_name = "NAME", value_parser = variable)]
    env: Vec<String>,
    /// Override a limit: time=2m, cost-usd=1.50 …; repeatable
    #[arg(long = "limit", value_name = "KEY=VALUE")]
    limits: Vec<String>,
    #[command(flatten)]
    folder: RunsFolder,
    /// Resume an interrupted run
    #[arg(long, value_name = "RUN", add = complete::runs(), conflicts_with_all = ["harnesses", "models", "experiment", "variants", "aa", "trials", "cases", "tags", "shard", "label", "limits", "interaction", "sandbox", "allow_mounts", "paths"])]
    resume: Option<String>,
    /// With --resume: how to handle cases and manifests that have changed since the run began
    #[arg(long, value_name = "HOW", requires = "resume")]
    changed: Option<resume::Changed>,
    /// With --resume: run these trials again
    #[arg(long, value_name = "WHICH", requires = "resume")]
    rerun: Option<resume::Rerun>,
    /// Write a report: table, json, jsonl, junit, markdown, github, html or benchmark; repeatable
    #[arg(long = "reporter", value_name = "FORMAT[=PATH]")]
    reporters: Vec<ReporterArg>,
    /// Workspaces to keep (default: failed)
    #[arg(long, value_enum, value_name = "WHICH")]
    keep_workspace: Option<Keep>,
    /// Maximum number of retries of errored trials; overrides those of the cases
    #[arg(long, value_name = "N")]
    retries: Option<u32>,
    /// Let the exit code depend on whether every harness and model scores at least this and loses no critical
    /// case, instead of on the verdicts of the cases; a snapshot that differs still gives 1
    #[arg(long, value_name = "SCORE")]
    fail_under: Option<Fraction>,
    /// Start no more trials after this cost in US dollars
    #[arg(long, value_name = "USD", value_parser = dollars, allow_negative_numbers = true)]
    max_cost: Option<f64>,
    /// Start no more trials after this time
    #[arg(long, value_name = "TIME")]
    max_time: Option<Time>,
    /// Start no more trials after a failed one
    #[arg(long)]
    fail_fast: bool,
    /// Seed of the random choices about this run, such as the sign flips of a comparison
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Sandbox of the agents, instead of that of cases and manifests
    #[arg(long, value_enum, value_name = "KIND")]
    sandbox: Option<sandbox::Kind>,
    /// With --sandbox bwrap: also mount the paths that cases and suites name under `sandbox.mount`
    #[arg(long, requires = "sandbox")]
    allow_mounts: bool,
    /// Compare with the accepted snapshots, or accept new and changed ones (default: compare cells that have a
    /// snapshot)
    #[arg(long, value_enum, value_name = "HOW")]
    snapshot: Option<snapshot::during_run::Mode>,
    /// Print the plan and start nothing
    #[arg(long)]
    dry_run: bool,
    /// Plain lines instead of the live display
    #[arg(long)]
    no_progress: bool,
    /// Price table instead of the built-in one (default: prices.yaml of the project, if it exists)
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    #[command(flatten)]
    gateway: gateway::GatewayArgs,
    #[command(flatten)]
    judges: JudgeArgs,
}

impl RunArgs {
    /// Returns true if all requests of the cases and their suites are included.
    pub fn is_whole(&self) -> bool {
        let chosen = [&self.harnesses, &self.models, &self.cases, &self.tags];
        let experiment = self.experiment.is_some() || !self.variants.is_empty() || self.aa;
        !experiment && self.shard.is_none() && chosen.iter().all(|it| it.is_empty())
    }
}

fn variable(text: &str) -> Result<String, String> {
    if let Some((name, _)) = text.split_once('=') {
        return Err(format!(
            "it takes only a name: write `{name}=… evals run --env {name}`, so that no value is recorded"
        ));
    }
    let text = text.to_owned();
    if is_variable(&text) { Ok(text) } else { Err(format!("`{text}` is not the name of a variable")) }
}

/// Returns true if a harness of a run gives its agents a private home, which no variable replaces.
fn has_private_home(record: &RunRecord) -> bool {
    record.harnesses.iter().any(|harness| matches!(harness.manifest.home, Home::Private(_)))
}

/// Refuses a run whose agents would not get the variables that the user names. `asked` are those of this command: a run of an
/// older version may have `HOME` besides.
fn check_env(record: &RunRecord, asked: &[String]) -> Result<(), CliError> {
    let is_private = has_private_home(record);
    if is_private && asked.iter().any(|name| name == "HOME") {
        let help = "leave it out; for the user's own home, write `home: user` in the manifest of the harness";
        return Err(CliError::unreadable(format!("--env HOME: {HOME_IS_PRIVATE}; {help}")));
    }
    let names = record.options.env.iter().map(String::as_str).filter(|name| !is_private || *name != "HOME");
    let missing: Vec<&str> = names.filter(|name| crate::own_environment::var(name).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "`--env {}` names a variable that is not set; set it, or leave the option out",
        missing.join(", --env ")
    );
    Err(CliError::unreadable(message))
}

pub(super) fn dollars(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not an amount of money; write a number from 0"))?;
    crate::limits::Dollars::new(number).map(crate::limits::Dollars::get)
}

pub fn run(args: RunArgs) -> Result<u8, CliError> {
    let begun = Instant::now();
    engine::enough_open_files()?;
    engine::enough_threads()?;
    terminal::name_project_above();
    let args = with_policy(args)?;
    let prepared = match &args.resume {
        Some(name) => resume::prepare(&args, name).map(Some),
        None => prices(args.prices.as_deref()).and_then(|()| fresh(&args)),
    };
    let Some(mut prepared) = prepared.map_err(|error| none_written(error, &args.reporters))? else { return Ok(0) };
    if args.dry_run {
        let waiting = runner::waiting(&prepared.folder, &prepared.record.trials, &prepared.redo)?;
        let trials: Vec<&TrialRecord> = waiting.into_iter().map(|(trial, _)| trial).collect();
        dry::print_plan(&prepared.catalog, &trials)?;
        return Ok(0);
    }
    make_places(&args, prepared.record.label.as_deref())?;
    let (mode, finished) = snapshot_mode(&args, &prepared)?;
    snapshot::during_run::tell(mode, &mut prepared.cases);
    let runtime = engine::runtime()?;
    let result = runtime.block_on(carry_out(&args, &mut prepared));
    // Background work that an agent's process left in the runtime must not delay the program.
    runtime.shutdown_background();
    let outcome = match result.map_err(|error| none_written(error, &args.reporters))? {
        Ok(outcome) => outcome,
        Err(error) => return Err(broken_off(&args, &prepared, &error)),
    };
    let whole = outcome.not_run == 0 && !outcome.interrupted;
    let Prepared { folder, record, cases, .. } = &prepared;
    let compared = snapshot::during_run::after_resume(mode, folder, record, cases, whole, &finished);
    // The results are reported even if snapshots fail.
    let failed = |error: CliError| SnapshotResults { unwritten: Some(error), ..SnapshotResults::default() };
    let mut snapshots = compared.unwrap_or_else(failed);
    let failed = snapshots.unwritten.take().map(CliError::after_the_start);
    let code = report_on(&args, &prepared, &outcome, snapshots, failed.as_ref()).map_err(CliError::after_the_start)?;
    let elapsed = begun.elapsed().as_millis().try_into().unwrap_or(u64::MAX);
    terminal::note(format_args!("took {}", crate::report::text::duration(elapsed)));
    failed.map_or(Ok(code), Err)
}

/// Replaces a policy name on the command line by the policy.
fn with_policy(mut args: RunArgs) -> Result<RunArgs, CliError> {
    if let Some(interaction) = args.interaction.take() {
        let policies = inputs::named_policies()?;
        let resolved = interaction.resolved(&policies).map_err(|name| {
            CliError::unreadable(format!("`{name}` is not an interaction policy; {}", policies.known(&name)))
        })?;
        args.interaction = Some(resolved);
    }
    Ok(args)
}

/// Returns the use of snapshots that was asked for: now, or when the run began. Of a resumed run, also returns the finished
/// trials, unless it is asked now to accept snapshots: others may have been accepted for their cells since.
fn snapshot_mode(args: &RunArgs, prepared: &Prepared) -> Result<(Option<Mode>, HashSet<TrialId>), CliError> {
    let recorded = prepared.record.options.snapshot;
    if args.resume.is_none() || args.snapshot == Some(Mode::Update) {
        return Ok((recorded, HashSet::new()));
    }
    let trials = &prepared.record.trials;
    let waiting = runner::waiting(&prepared.folder, trials, &prepared.redo)?;
    let waiting: HashSet<TrialId> = waiting.into_iter().map(|(trial, _)| trial.id()).collect();
    let planned = trials.iter().filter(|trial| trial.skip.is_none()).map(TrialRecord::id);
    Ok((recorded, planned.filter(|id| !waiting.contains(id)).collect()))
}

/// Makes the folders of the reports, so that hours of work do not end with a report that cannot be written.
fn make_places(args: &RunArgs, label: Option<&str>) -> Result<(), CliError> {
    super::report::check_places(&args.reporters, label)
}

/// A run that is ready to start.
struct Prepared {
    folder: RunFolder,
    record: RunRecord,
    cases: HashMap<String, Arc<Case>>,
    catalog: Catalog,
    interaction: Option<Interaction>,
    redo: HashSet<TrialId>,
    arms: Vec<Arm>,
    /// The changes that resuming makes in the run before its trials begin.
    changes: resume::Changes,
    /// Settings that the agents of earlier trials may have left above the engine's folders.
    left_above: LeftAbove,
}

/// Sets the price table: the named file, the project's, or the built-in one.
pub(super) fn prices(named: Option<&Path>) -> Result<(), CliError> {
    let default = inputs::price_table();
    let Some(path) = named.or(default.as_deref()) else { return Ok(()) };
    let table = PriceTable::load(path).map_err(|error| CliError::all([error]))?;
    crate::price::replace(if named.is_some() { table.with_absolute_file() } else { table });
    Ok(())
}

/// Reads and plans a new run. Nothing is written until everything is read.
fn fresh(args: &RunArgs) -> Result<Option<Prepared>, CliError> {
    let written = arms::written(args)?;
    let named = written.as_ref().map_or_else(|| args.harnesses.clone(), arms::harnesses);
    let mut inputs = inputs::read(&arms::cases(args, written.as_ref())?, &named)?;
    override_limits(&mut inputs.cases, &args.limits)?;
    let experiment = written.map(|written| arms::resolved(written, &inputs, args)).transpose()?;
    let models = args.models.iter().filter(|_| experiment.is_none()).map(|text| asked_model(text, &inputs));
    let models = models.collect::<Result<Vec<_>, _>>()?;
    let asked = PlanRequest {
        harnesses: if experiment.is_some() { Vec::new() } else { inputs.harnesses.clone() },
        models,
        trials: args.trials.map(auto::Trials::first).or(experiment.as_ref().and_then(|it| it.trials)),
        arms: experiment.as_ref().map(|it| it.arms.clone()).unwrap_or_default(),
        aa: args.aa,
        cases: args.cases.clone(),
        tags: args.tags.clone(),
        interaction: args.interaction.clone(),
        sandbox: args.sandbox,
        gateway: args.gateway.mode,
    };
    let whole = plan(&inputs.cases, &inputs.catalog, &asked).map_err(|error| match error {
        PlanError::Arms(errors) => CliError::all(errors),
        other => CliError::unreadable(other),
    })?;
    let trials = own_part(args, &whole)?;
    let doubts = arm_doubts::of_plan(&inputs.cases, &inputs.catalog, &asked);
    for doubt in &doubts {
        terminal::note(format_args!("warning: {doubt}"));
    }
    auto::check(args, &trials)?;
    scripts::check(&inputs, &trials)?;
    if !args.dry_run {
        let asked = RunOptions { sandbox: args.sandbox, allow_mounts: args.allow_mounts, ..RunOptions::default() };
        sandboxes::check(&inputs, &trials, &asked)?;
    }
    let chosen = judges::chosen(&args.judges, &inputs.catalog)?;
    refuse_what_is_not_served(&inputs, &trials, args.interaction.as_ref(), &asked.arms, &chosen)?;
    laid::check_folders(&inputs, &trials.iter().collect::<Vec<_>>(), &asked.arms, &args.env)?;
    for note in laid::without_evals(&inputs, &trials, &asked.arms) {
        terminal::note(format_args!("note: {note}"));
    }
    for warning in inputs.ended_quarantines() {
        terminal::note(format_args!("warning: {warning}"));
    }
    for note in &inputs.notes {
        terminal::note(format_args!("note: {note}"));
    }
    if args.dry_run {
        dry::print_plan(&inputs.catalog, &trials.iter().collect::<Vec<_>>())?;
        if let Some(experiment) = &experiment {
            dry::print_experiment(experiment)?;
            let looks = auto::looks(args.trials).unwrap_or_default();
            dry::print_power(&trials, &inputs.cases, &args.folder.runs, &looks)?;
        }
        return Ok(None);
    }
    let is_experiment = experiment.is_some() || args.aa;
    surroundings::check(&inputs, &trials.iter().collect::<Vec<_>>(), is_experiment, args.sandbox)?;
    make_places(args, args.label.as_deref())?;
    // Every shard resolves and records the whole plan, so that `evals merge` can compare their inputs.
    commits::resolve(&mut inputs.cases, &whole)?;
    let mut record = record::of(args, &inputs, whole, experiment.as_ref())?;
    check_env(&record, &args.env)?;
    record.options.judges = chosen;
    record.record_arm_doubts(doubts, |_| true);
    if let Some(shard) = args.shard {
        record = record.played_by(shard);
    }
    gateway::check(&record, &inputs.cases)?;
    arms::tell_order(&record);
    let folder = created(args, &mut record)?;
    Ok(Some(ready(folder, record, inputs, args.interaction.clone(), HashSet::new(), asked.arms)))
}

fn created(args: &RunArgs, record: &mut RunRecord) -> Result<RunFolder, CliError> {
    RunFolder::create(&args.folder.runs, record).map_err(|error| of_new_run(error, "--out DIR"))
}

/// Returns the trials of this run: all trials of the plan, or the trials of its shard.
fn own_part(args: &RunArgs, whole: &[TrialRecord]) -> Result<Vec<TrialRecord>, CliError> {
    let Some(shard) = args.shard else { return Ok(whole.to_vec()) };
    let own = shard.own(whole);
    if own.is_empty() {
        let cases = plural(in_order(whole).len(), "case");
        return Err(CliError::unreadable(format!("--shard {shard} contains none of the {cases}; use fewer shards")));
    }
    Ok(own)
}

fn ready(
    folder: RunFolder,
    record: RunRecord,
    inputs: Inputs,
    interaction: Option<Interaction>,
    redo: HashSet<TrialId>,
    arms: Vec<Arm>,
) -> Prepared {
    let Inputs { cases, catalog, .. } = inputs;
    let cases = cases.into_iter().map(|case| (case.id.clone(), Arc::new(case)));
    let changes = resume::Changes::default();
    let (cases, left_above) = (cases.collect(), LeftAbove::default());
    Prepared { folder, record, cases, catalog, interaction, redo, arms, changes, left_above }
}

/// Parses `HARNESS=MODEL`, but only if the text before the sign is a harness: a model's own name may contain
/// the sign.
fn asked_model(text: &str, inputs: &Inputs) -> Result<AskedModel, CliError> {
    let named = text.split_once('=').is_none_or(|(harness, model)| !harness.is_empty() && !model.trim().is_empty());
    if !named || text.trim().is_empty() {
        return Err(CliError::unreadable(format!(
            "`--model {}` names no model; write it like `--model claude-opus-4-8`, or leave --model out for the agent's \
             own choice",
            shell_word_for_terminal(text)
        )));
    }
    let of_all = || AskedModel { harness: None, model: text.to_owned() };
    let Some((harness, model)) = text.split_once('=') else { return Ok(of_all()) };
    if inputs.catalog.get(harness).is_ok() {
        return Ok(AskedModel { harness: Some(inputs.catalog.canonical(harness)), model: model.to_owned() });
    }
    // The name of a model may contain `=`, so only what is nearly the name of a harness is refused.
    match words::nearest(harness, &inputs.catalog.names()) {
        Some(near) => Err(CliError::unreadable(format!(
            "`--model {text}`: no harness is named `{harness}`; did you mean `{near}={model}`? For a model that is \
             named `{text}`, write `--model HARNESS={text}`"
        ))),
        None => Ok(of_all()),
    }
}

/// Refuses trials whose policy would answer every request without a model: their results would not be comparable. `chosen` are
/// the judges of the run. Also prints a note if the policy asks only one of them.
fn refuse_what_is_not_served<'a>(
    inputs: &Inputs,
    trials: impl IntoIterator<Item = &'a TrialRecord>,
    interaction: Option<&Interaction>,
    arms: &[Arm],
    chosen: &Chosen,
) -> Result<(), CliError> {
    if let Some(Interaction::Llm(Llm { model: Some(model), .. })) = interaction {
        judges::fit("--interaction llm:", model, &inputs.catalog)?;
    }
    let (mut refused, mut asks_one): (Option<CliError>, Option<String>) = (None, None);
    let planned = cases_of(trials);
    for case in inputs.cases.iter().filter(|case| planned.contains(case.id.as_str())) {
        let policies = interaction.map_or_else(|| arms::policies(&case.interaction, arms), |asked| vec![asked]);
        for policy in policies {
            let Interaction::Llm(llm) = policy else { continue };
            asks_one = asks_one.or_else(|| judges::asks_only_the_first(llm, chosen));
            let Some(why) = judges::lacks_a_model(llm, chosen) else { continue };
            let error = CliError::unreadable(format!(
                "{}: the policy `llm` cannot answer: {why}; or run it with another policy, such as --interaction auto-reject",
                case.shown().display()
            ));
            refused = Some(match refused {
                Some(before) => before.and(error),
                None => error,
            });
        }
    }
    if let Some(note) = asks_one.filter(|_| refused.is_none()) {
        terminal::note(format_args!("note: {note}"));
    }
    refused.map_or(Ok(()), Err)
}

pub(super) fn override_limits(cases: &mut [Case], limits: &[String]) -> Result<(), CliError> {
    for limit in limits {
        let Some((key, value)) = limit.split_once('=') else {
            return Err(CliError::unreadable(format!("`--limit {limit}` is not KEY=VALUE, such as time=2m")));
        };
        for case in cases.iter_mut() {
            case.limits.set(key, value).map_err(|error| CliError::unreadable(format!("`--limit {limit}`: {error}")))?;
        }
    }
    Ok(())
}

/// Merges the options of this command with the options recorded when the run began. The options of this command take
/// precedence.
fn options(args: &RunArgs, recorded: &RunOptions) -> RunOptions {
    RunOptions {
        jobs: args.jobs.map_or(recorded.jobs, usize::from),
        keep_workspace: args.keep_workspace.unwrap_or(recorded.keep_workspace),
        retries: args.retries.or(recorded.retries),
        max_cost: args.max_cost.or(recorded.max_cost),
        max_time: args.max_time.or(recorded.max_time),
        fail_fast: args.fail_fast || recorded.fail_fast,
        fail_under: args.fail_under.or(recorded.fail_under),
        ..recorded.clone()
    }
}

/// Returns true if a person answers in any of the trials.
fn is_manual(prepared: &Prepared) -> bool {
    if let Some(interaction) = &prepared.interaction {
        return *interaction == Interaction::Manual;
    }
    let planned = prepared.record.trials.iter().filter(|trial| trial.skip.is_none());
    let mut cases = planned.filter_map(|trial| prepared.cases.get(&trial.case));
    cases.any(|case| arms::policies(&case.interaction, &prepared.arms).contains(&&Interaction::Manual))
}

/// Limits the number of concurrent trials to the number that the limit of open files allows.
fn bounded(options: RunOptions) -> RunOptions {
    let Some((most, limit)) = descriptors::most_trials().filter(|(most, _)| options.jobs > *most) else {
        return options;
    };
    terminal::note(format_args!(
        "note: {} trials at once need more open files than the limit of {limit} (ulimit -n): {most} run at once",
        options.jobs
    ));
    RunOptions { jobs: most, ..options }
}

/// Prints notes about files and processes that the run did not clean up, or may not have cleaned up.
fn tell_of_what_is_left() {
    for left in temporary::left_behind() {
        terminal::note(format_args!("note: {left}"));
    }
    if process::may_have_missed_some() {
        terminal::note(format_args!(
            "note: this system does not hand orphaned processes to evals: a process that left its group may have \
             outlived its trial"
        ));
    }
    if process::could_not_look() {
        terminal::note(format_args!(
            "note: too few files could be opened to look for processes, so a process that left its group may have \
             outlived its trial; raise the limit of open files (ulimit -n)"
        ));
    }
}

/// Carries out the run. The inner error is that of a run that had begun and cannot continue.
async fn carry_out(args: &RunArgs, prepared: &mut Prepared) -> Result<Result<RunOutcome, RunError>, CliError> {
    // Questions and a live display would overwrite each other.
    let manual = is_manual(prepared);
    let (is_terminal, is_disabled) = (terminal::stderr_is_terminal(), args.no_progress || manual);
    let moves = LiveConditions { is_terminal, in_ci: in_ci(), is_disabled }.may_move();
    let interrupt = if moves { stop::on_interrupt_of_display() } else { stop::on_interrupt_of_run() };
    let options = options(args, &prepared.record.options);
    let temporary = engine::temporary()?;
    let run = std::path::absolute(&prepared.folder.path)?;
    let runs = run.parent().unwrap_or(&run);
    let hides = engine::hides(runs, prepared.cases.values().map(AsRef::as_ref))?;
    let shared = engine::engine(&temporary, interrupt.clone(), hides)?;
    let engine = Engine {
        gateway: gateway::settings(prepared)?,
        keep: options.keep_workspace,
        person: if manual { ask::person(interrupt.clone()) } else { None },
        sandbox: options.sandbox,
        pass: options.env.iter().filter(|name| !options.env_not_passed.contains(name)).cloned().collect(),
        settings_above: prepared.left_above.count_in(shared.settings_above),
        ..shared
    };
    let chosen = prepared.record.options.judges.clone();
    let engine = Arc::new(judges::asking(engine, chosen, &args.judges, prepared.catalog.clone())?);
    // Nothing refuses the run any more.
    prepared.changes.write(&prepared.folder, &mut prepared.record)?;
    let look = terminal::stderr_look();
    let mut display: Box<dyn Watch> = if moves {
        let interrupted = move || interrupt.borrow().then_some(stop::NOTICE_OF_RUN);
        Box::new(Live::new(std::io::stderr(), look, Box::new(terminal::stderr_size), Box::new(interrupted)))
    } else {
        Box::new(Plain::new(super::output::Notes, look))
    };
    let options = bounded(options);
    let run = Run {
        folder: &prepared.folder,
        cases: &prepared.cases,
        catalog: &prepared.catalog,
        arms: &prepared.arms,
        interaction: prepared.interaction.clone(),
        options: &options,
        engine,
        redo: &prepared.redo,
        schedule: auto::schedule(&prepared.record),
    };
    let outcome = runner::run(&run, &mut prepared.record, |event| display.see(&event)).await;
    display.end();
    drop(run);
    tell_of_what_is_left();
    // The trials have run, so their results are reported in any case.
    if let Err(error) = judges::mark_cache() {
        terminal::note(format_args!("warning: {}", error.text()));
    }
    Ok(outcome)
}

/// Writes the reports of a run that cannot continue, from the trials that had finished: reports of an earlier run must not
/// stay in their place. Returns the error of the command.
fn broken_off(args: &RunArgs, prepared: &Prepared, error: &RunError) -> CliError {
    let folder = &prepared.folder.path;
    if !folder.join("run.json").exists() {
        let loss = CliError::of_the_engine(format!(
            "{error}\nthe run cannot continue: another program removed files of its folder {}, and the results of finished trials \
             may be lost, so the run cannot be resumed; run the cases again",
            folder.display()
        ));
        return none_written(loss, &args.reporters);
    }
    let again = report::commands::run_word(&prepared.record, &prepared.folder.path);
    let failure = CliError::of_the_engine(format!(
        "{error}\nthe run cannot continue; finished trials are on disk; resume it with: evals run --resume {again}"
    ));
    let results = match prepared.folder.results_of_trials(&prepared.record) {
        Ok(results) => results,
        Err(unreadable) => return none_written(failure.and(unreadable.into()), &args.reporters),
    };
    // The copies of results that an agent removed or changed end with this process.
    restore_results(&prepared.folder, &prepared.record, &results);
    // The error of the run is reported already, and a full disk refuses this file, too.
    let _ = prepared.folder.write_results(&results);
    let not_run = prepared.record.trials.len() - results.len();
    let beside = RunContext {
        root: super::report::repository(),
        broken_off: Some(error.to_string()),
        exit_code: Some(BROKEN_OFF),
        ..RunContext::default()
    };
    let report = Report::with(Arc::new(prepared.record.clone()), results, not_run, &prepared.folder.path, beside);
    match super::report::write_all(&report, &args.reporters, Some(Format::Table)) {
        Ok(()) => failure,
        Err(unwritten) => failure.and(unwritten),
    }
}

/// Returns what other programs did to `run.json` and the journal during the run.
fn changes_of_others(outcome: &RunOutcome) -> Vec<String> {
    let record = outcome.changed_record.then(|| "run.json was changed during the run; it was written again".to_owned());
    let journal = outcome.changed_journal.as_ref().map(|change| match change {
        JournalChange::Removed => "the journal was removed during the run; it was written again".to_owned(),
        JournalChange::Changed(aside) => format!(
            "the journal was changed during the run; it was restored, and the changed file is {}",
            aside.display()
        ),
    });
    record.into_iter().chain(journal).collect()
}

/// Writes each `result.json` again that is missing or was changed and of which there is a copy, with a warning.
fn restore_results(folder: &RunFolder, record: &RunRecord, results: &[TrialResult]) {
    let lost: Vec<_> = results.iter().filter(|result| result.is_from_copy()).map(TrialResult::id).collect();
    if lost.is_empty() {
        return;
    }
    let trials = some_of(&lost, 5);
    let counts = "the copy counts, which the journal confirms";
    let why = match folder.restore_results(record, results) {
        Ok(Restored { left: 0, aside }) => {
            let written = "it was written again from a copy, which the journal confirms";
            match aside.is_empty() {
                true => written.to_owned(),
                false => format!("{written}; the changed file is kept as {}", some_of(shown(&aside), 5)),
            }
        }
        Ok(Restored { left, .. }) => format!("{counts}, but {} could not be written", plural(left, "file")),
        Err(error) => format!("{counts}, but it could not be written: {error}"),
    };
    terminal::note(format_args!("warning: the result.json of {trials} was removed or replaced; {why}"));
}

fn shown(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

fn report_on(
    args: &RunArgs,
    prepared: &Prepared,
    outcome: &RunOutcome,
    snapshots: SnapshotResults,
    failed: Option<&CliError>,
) -> Result<u8, CliError> {
    let changes = changes_of_others(outcome);
    changes.iter().for_each(|change| terminal::note(format_args!("warning: {change}")));
    let results = prepared.folder.results_of_trials(&prepared.record);
    let results = results.map_err(|error| none_written(CliError::from(error).after_the_start(), &args.reporters))?;
    restore_results(&prepared.folder, &prepared.record, &results);
    // An interrupted run with `--trials auto` may lack trials that no plan has yet.
    let lacks_end = failed.is_some() || (outcome.interrupted && prepared.record.options.looks.is_some());
    // The end comes first: results that are newer than the journal are complete.
    let ended = if lacks_end { Ok(()) } else { prepared.folder.write_end() };
    // The reports are written in any case: reports of an earlier run must not stay in their place.
    let kept = ended.and(prepared.folder.write_results(&results));
    let not_run = prepared.record.trials.len() - results.len();
    let broken_off = kept.as_ref().err().map(ToString::to_string);
    let broken_off_by_disk = broken_off.is_some();
    let broken_off = broken_off.or_else(|| failed.map(CliError::text));
    let beside = RunContext {
        snapshots: snapshots.compared,
        notes: changes.into_iter().chain(snapshots.notes).collect(),
        root: super::report::repository(),
        exit_code: broken_off.as_ref().map(|_| BROKEN_OFF).or(outcome.interrupted.then_some(INTERRUPTED)),
        broken_off,
        lacks_end: false,
    };
    let report = Report::with(Arc::new(prepared.record.clone()), results, not_run, &prepared.folder.path, beside);
    super::report::tell_gates(&report);
    let code = report::exit_code(&report);
    let written = super::report::write_all(&report, &args.reporters, Some(Format::Table));
    let run = report::commands::run_word(&prepared.record, &prepared.folder.path);
    let ended = |error: CliError| match broken_off_by_disk {
        true => error,
        false => error.and(CliError::of_the_engine(format!(
            "the results of the run are on disk; print its report with: evals report {run}"
        ))),
    };
    both(kept.map_err(CliError::from), written).map_err(ended)?;
    if outcome.unknown_costs > 0 {
        let attempts = plural(outcome.unknown_costs, "attempt");
        terminal::note(format_args!(
            "note: the cost of {attempts} is unknown, at least in part: --max-cost counts the known cost only"
        ));
    }
    if outcome.not_run > 0 || outcome.not_retried > 0 || outcome.interrupted {
        let why = outcome.why.clone().unwrap_or_else(|| "interrupted".to_owned());
        if not_run == 0 && outcome.not_retried == 0 && outcome.not_rerun == 0 {
            terminal::note(format_args!("{why}; every trial had finished"));
            return Ok(code);
        }
        let trials = |count| if count == 1 { "1 trial was".to_owned() } else { format!("{count} trials were") };
        let left = [
            (not_run, "not run"),
            (outcome.not_rerun, "not run again, so earlier results count"),
            (outcome.not_retried, "not tried again"),
        ];
        let left = left.into_iter().filter(|(count, _)| *count > 0);
        let left: Vec<String> = left.map(|(count, what)| format!("{} {what}", trials(count))).collect();
        terminal::note(format_args!("{why}; {}", left.join(", ")));
        // A plain `--resume` would not rerun these trials, so the hint repeats the option.
        let again = match args.rerun.filter(|_| outcome.not_rerun > 0) {
            Some(resume::Rerun::Errored) => " --rerun errored",
            Some(resume::Rerun::Ungraded) => " --rerun ungraded",
            Some(resume::Rerun::Failed) | None => "",
        };
        // The recorded limits hold again, so a plain `--resume` would start nothing, or end as early.
        let limits = [
            outcome.spent_all.map(|most| (most.to_string(), "--max-cost MORE")),
            outcome.time_over.map(|most| (most.to_string(), "--max-time MORE")),
        ];
        let (reached, more): (Vec<String>, Vec<&str>) = limits.into_iter().flatten().unzip();
        match reached.is_empty() {
            true => terminal::note(format_args!("resume it with: evals run --resume {run}{again}")),
            false => terminal::note(format_args!(
                "resume it with a higher limit than {}: evals run --resume {run}{again} {}",
                reached.join(" or "),
                more.join(" ")
            )),
        }
    }
    Ok(code)
}
