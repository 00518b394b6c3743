//! Resumes a run: the plan is that in `run.json`; changes since then are reported.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use clap::ValueEnum;

use super::record::{case_record, is_judged_by_others, mask_with, record_judged_by};
use super::{Prepared, RunArgs, arms, commits, created, laid, override_limits, ready, surroundings};
use crate::case::digest::{is_same, may_differ_behind_links};
use crate::case::{Case, WorkspaceSource};
use crate::cli::left_above::LeftAbove;
use crate::cli::snapshot::acceptance::Acceptance;
use crate::cli::snapshot::during_run::Mode;
use crate::cli::{CliError, inputs, judges, named_run, terminal};
use crate::experiment::{Arm, without_copy};
use crate::harness::{HOME_IS_PRIVATE, Manifest};
use crate::ids::{TrialId, TrialRecord, by_case_id, cases_of};
use crate::interaction::Interaction;
use crate::judge::{Chosen, joined};
use crate::model_client::ModelName;
use crate::plan::{PlanRequest, arm_doubts};
use crate::report::notes;
use crate::result::TrialResult;
use crate::run::folder::RunFolder;
use crate::run::journal::TrialState;
use crate::run::project_of_run;
use crate::run::shard::{Elsewhere, Shard};
use crate::run::{PriceRecord, RunOptions, RunRecord};
use crate::text::plural;
use crate::verdict::Verdict;

/// The handling of cases and manifests that have changed since the run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Changed {
    /// Keep finished trials, and continue with the changed files
    Keep,
    /// Run the trials of changed cases and manifests again; after a change of prices, those with computed costs
    Rerun,
}

/// The finished trials to run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Rerun {
    /// Failed trials, as a new run; trials that now pass are reported as flaky
    Failed,
    /// Errored trials, in the same run
    Errored,
    /// Ungraded trials, in the same run
    Ungraded,
}

/// A run, and its inputs as they are now.
struct Opened {
    run: RunFolder,
    /// `run.json` as it is.
    before: RunRecord,
    /// The record of the run that goes on.
    record: RunRecord,
    /// The part of the plan that the run plays, if `record` has the whole plan.
    shard: Option<Shard>,
    inputs: inputs::Inputs,
    arms: Vec<Arm>,
    /// The judge models of the command line.
    judges: Chosen,
    states: HashMap<TrialId, TrialState>,
    /// The names of the cases, harnesses and arms that changed.
    changed: Vec<String>,
    /// Finished trials of what changed, to be run again: their results do not count any more.
    stale: HashSet<TrialId>,
    prices: PriceRecord,
    /// True if trials were priced by another table.
    other_prices: bool,
    interaction: Option<Interaction>,
}

/// Opens a run and reads its inputs again.
pub(super) fn prepare(args: &RunArgs, name: &str) -> Result<Prepared, CliError> {
    let opened = open(args, name)?;
    match args.rerun {
        Some(Rerun::Failed) => prepare_new_run(args, opened),
        Some(Rerun::Errored) => prepare_same_run(args, opened, Some(Verdict::Errored)),
        Some(Rerun::Ungraded) => prepare_same_run(args, opened, Some(Verdict::Ungraded)),
        None => prepare_same_run(args, opened, None),
    }
}

fn open(args: &RunArgs, name: &str) -> Result<Opened, CliError> {
    // `--rerun` is about a whole run, not about the failed trials of one.
    let mut run = named_run::to_resume(&args.folder.runs, name, args.rerun.is_none())?;
    // A run that another engine is still writing cannot be resumed.
    run.lock()?;
    let before = run.record()?;
    terminal::tell_project(&before);
    project_of_run::enter(&before);
    super::prices(args.prices.as_deref().or_else(|| named_prices(&before)))?;
    // After a change, the shards of a plan make one run only if each of them records the changed cases of all shards.
    let shard = before.shard.filter(|_| args.changed == Some(Changed::Rerun));
    let mut record = if shard.is_some() { before.clone().whole() } else { before.clone() };
    if record.graded {
        let from = record.derived_from.as_ref().map(|from| format!("; resume run {from}, which it was made from"));
        return Err(CliError::unreadable(format!(
            "run {} was made by `evals grade` and ran no agent, so there is nothing to resume{}",
            record.run,
            from.unwrap_or_default()
        )));
    }
    if has_ignored_home(&record) {
        terminal::note(format_args!("note: --env HOME of the run is ignored: the home of each trial is private"));
    }
    let harnesses: Vec<String> = record.harnesses.iter().map(|harness| harness.origin_or_name()).collect();
    let cases: Vec<_> = record.cases.iter().map(|case| (case.path.clone(), case.id.clone())).collect();
    let mut inputs = inputs::read_again(&cases, &harnesses)?;
    restore_ids(&mut inputs.cases, &record);
    override_limits(&mut inputs.cases, &record.options.limits)?;
    let arms = arms::again(&record, &inputs.catalog)?;
    let judges = judges::chosen(&args.judges, &inputs.catalog)?;
    let (changed, unknown) = changed(&inputs, &arms, &record)?;
    if !args.dry_run {
        resolve_again(&mut inputs.cases, &mut record, &changed, args)?;
    }
    super::scripts::check(&inputs, &before.trials)?;
    if !args.dry_run {
        super::sandboxes::check(&inputs, &before.trials, &record.options)?;
    }
    let states = run.states()?;
    if states.values().all(|state| state.finished.is_none()) {
        // Results of trials of which the journal knows nothing show that its lines were removed.
        run.results(&before)?;
    }
    if let Some(note) = notes::unknown_to_journal(run.unknown_results(&before)?) {
        terminal::note(format_args!("warning: {note}"));
    }
    if let Some(warning) = run.changed_journal()? {
        terminal::note(format_args!("warning: {warning}"));
    }
    let mut stale: HashSet<TrialId> = HashSet::new();
    let prices = PriceRecord::now();
    // As with cases, the user is asked again as long as trials were priced by different tables.
    let other_prices = record.prices.as_ref().is_some_and(|known| known.mixed || known.digest != prices.digest);
    match (changed.is_empty() && !other_prices, args.changed) {
        (true, _) | (false, Some(Changed::Keep)) => {}
        (false, Some(Changed::Rerun)) => {
            let changed: HashSet<&str> = changed.iter().map(String::as_str).collect();
            let affected = |id: &TrialId| names_of(id).iter().any(|name| changed.contains(&**name));
            stale.extend(before.trials.iter().map(TrialRecord::id).filter(affected));
        }
        (false, None) => return Err(undecided(&record.run, &changed, &unknown, other_prices)),
    }
    let interaction = match &record.options.interaction {
        Some(text) => Some(text.parse::<Interaction>().map_err(CliError::unreadable)?),
        None => None,
    };
    Ok(Opened {
        run,
        before,
        record,
        shard,
        inputs,
        arms,
        judges,
        states,
        changed,
        stale,
        prices,
        other_prices,
        interaction,
    })
}

/// Makes a new run of the failed trials, so that its trials are not mixed with others.
fn prepare_new_run(args: &RunArgs, opened: Opened) -> Result<Prepared, CliError> {
    let Opened { run, before: source, record, inputs, arms, judges: now, states, interaction, .. } = opened;
    let mut left_above = LeftAbove::default();
    left_above.see_run(&run, &source, &states);
    let mut record = failed_again(args, &record, (&inputs, &arms), &states, interaction.as_ref())?;
    refuse_home_of_case(&inputs.cases, &record.trials.iter().collect::<Vec<_>>())?;
    let before = std::mem::take(&mut record.options.judges);
    let pick = |now: Vec<ModelName>, before| if now.is_empty() { before } else { now };
    let otherwise = pick(before.otherwise, now.otherwise);
    record.options.judges = Chosen { over: pick(now.over, before.over), otherwise };
    super::refuse_what_is_not_served(&inputs, &record.trials, interaction.as_ref(), &arms, &record.options.judges)?;
    check_laid((&inputs, &arms), &record.trials.iter().collect::<Vec<_>>(), &record.options.env)?;
    check_surroundings(args, &inputs, &record.trials.iter().collect::<Vec<_>>(), &record)?;
    let redo = record.trials.iter().map(TrialRecord::id).collect();
    let folder = if args.dry_run { run } else { created(args, &mut record)? };
    Ok(Prepared { left_above, ..ready(folder, record, inputs, interaction, redo, arms) })
}

/// Prepares the trials that the run has not finished, and those with the wanted verdict again.
fn prepare_same_run(args: &RunArgs, opened: Opened, wanted: Option<Verdict>) -> Result<Prepared, CliError> {
    let Opened { run, before, mut record, shard, mut inputs, arms, judges: now, states, .. } = opened;
    let Opened { changed, mut stale, prices, other_prices, interaction, .. } = opened;
    let again = states.iter().filter(|(_, state)| wanted.is_some() && state.finished == wanted);
    let mut redo: HashSet<TrialId> = again.map(|(key, _)| key.clone()).collect();
    let (mut was_priced, mut left_above, mut copies) = (false, LeftAbove::default(), Vec::new());
    let mut with_asked: Vec<TrialId> = Vec::new();
    let mut not_accepted: Vec<TrialId> = Vec::new();
    let acceptance = (args.snapshot == Some(Mode::Off)).then(|| Acceptance::of(&run, &before));
    for trial in before.trials.iter().filter(|trial| trial.skip.is_none()) {
        let Some(state) = states.get(&trial.id()).filter(|state| state.finished.is_some()) else { continue };
        // A result that cannot be read is reported when it is needed.
        let Ok(result) = run.result_of(trial, state) else { continue };
        terminal::tell_if_not_as_judged(&result);
        if result.is_from_copy() {
            copies.push(result.clone());
        } else if !result.is_not_as_judged() {
            // Agents without a sandbox can remove the files of trials that finished before.
            run.keep_copy(&result);
        }
        left_above.see(&result);
        if acceptance.as_ref().is_some_and(|acceptance| acceptance.is_open(&result)) {
            not_accepted.push(trial.id());
        }
        if result.is_not_as_judged() && wanted == Some(Verdict::Errored) {
            redo.insert(trial.id());
        }
        if result.metrics.cost_source.is_some() {
            if other_prices && args.changed == Some(Changed::Rerun) {
                stale.insert(trial.id());
            } else {
                was_priced = true;
            }
        }
        if result.asked_cost().value() > 0.0 {
            with_asked.push(trial.id());
        }
    }
    left_above.see_journal(&run, &before);
    redo.extend(stale.iter().cloned());
    if not_accepted.iter().any(|id| !redo.contains(id)) {
        return Err(CliError::unreadable(format!(
            "`--snapshot off` cannot be used for run {}: its `snapshot` graders have passed because the run accepts its \
             snapshots, and some were not accepted; resume it without the option, or with --snapshot check to write none",
            before.run
        )));
    }
    with_asked.retain(|id| other_prices && !redo.contains(id));
    if !with_asked.is_empty() {
        let trials = plural(with_asked.len(), "trial");
        terminal::note(format_args!(
            "note: the price table has changed; the costs of judge models and of the policy `llm` in {trials} stay those of the \
             earlier table"
        ));
    }
    let is_waiting = |id: &TrialId| redo.contains(id) || !states.get(id).is_some_and(TrialState::is_done);
    let mut planned = before.trials.iter().filter(|trial| trial.skip.is_none()).map(TrialRecord::id);
    if other_prices && (args.changed == Some(Changed::Rerun) || planned.any(|id| is_waiting(&id))) {
        record.prices = Some(PriceRecord { mixed: was_priced, ..prices });
    }
    let chosen = same_judges(&run, &before, now, &redo)?;
    // Of a part of the plan, only the trials of this run start.
    let starting = before.trials.iter().filter(|trial| trial.skip.is_none() && is_waiting(&trial.id()));
    let starting: Vec<&TrialRecord> = starting.collect();
    refuse_home_of_case(&inputs.cases, &starting)?;
    super::refuse_what_is_not_served(&inputs, starting.iter().copied(), interaction.as_ref(), &arms, &chosen)?;
    let passed: Vec<String> = record.options.env.iter().chain(&args.env).cloned().collect();
    check_laid((&inputs, &arms), &starting, &passed)?;
    check_surroundings(args, &inputs, &starting, &before)?;
    record.options.judges = chosen;
    let (waiting, kept): (Vec<TrialId>, Vec<TrialId>) =
        before.trials.iter().filter(|trial| trial.skip.is_none()).map(TrialRecord::id).partition(&is_waiting);
    let kept: Vec<&TrialState> = kept.iter().filter_map(|id| states.get(id)).collect();
    refuse_other_variables(args, &before, &kept)?;
    add_variables(&mut record.options, args);
    if !waiting.is_empty() && has_ignored_home(&record) {
        match kept.is_empty() {
            true => forget_home(&mut record.options),
            // The kept trials may have had it.
            false => record.options.env_not_passed = vec!["HOME".to_owned()],
        }
    }
    if !waiting.is_empty() {
        played_by_this_version(&mut record, kept.is_empty());
        // An older version may have begun the run.
        record.ends = true;
    }
    record.options.fail_under = args.fail_under.or(record.options.fail_under);
    record.options.snapshot = args.snapshot.or(record.options.snapshot);
    if !changed.is_empty() {
        note_changes(&mut record, &changed, (&inputs, &arms), (&states, &redo, &stale), interaction.as_ref())?;
    }
    // The verdicts of a case whose trials are all kept rest on the recorded files.
    let waiting = record.trials.iter().filter(|trial| trial.skip.is_none() && is_waiting(&trial.id()));
    let go_on: HashSet<String> = waiting.map(|trial| trial.case.clone()).collect();
    record_judged_by(&mut record, &inputs.cases, &|case| go_on.contains(case))?;
    if let Some(shard) = shard {
        record = record.played_by(shard);
        inputs.cases.retain(|case| record.case(&case.id).is_some());
    }
    // What is refused changes nothing in the run.
    super::check_env(&record, &args.env)?;
    if !args.dry_run {
        super::make_places(args, record.label.as_deref())?;
    }
    let discarded = discarded(&record, &states, &stale);
    let changes = Changes { copies, discarded, is_other_record: record != before };
    Ok(Prepared { changes, left_above, ..ready(run, record, inputs, interaction, redo, arms) })
}

/// Checks what is laid for the agents of these trials.
fn check_laid(
    (inputs, arms): (&inputs::Inputs, &[Arm]),
    trials: &[&TrialRecord],
    passed: &[String],
) -> Result<(), CliError> {
    laid::check_cases_in_sight(inputs, trials, arms)?;
    laid::check_folders(inputs, trials, arms, passed)
}

/// Checks what agents would find above their workspaces, as a new run does.
fn check_surroundings(
    args: &RunArgs,
    inputs: &inputs::Inputs,
    trials: &[&TrialRecord],
    record: &RunRecord,
) -> Result<(), CliError> {
    let starts = !args.dry_run && !trials.is_empty();
    let is_experiment = record.experiment.is_some() || record.options.aa;
    if starts { surroundings::check(inputs, trials, is_experiment, record.options.sandbox) } else { Ok(()) }
}

/// Returns the price table that the command line of the run named, if the file still exists. Only its path is absolute.
pub fn named_prices(record: &RunRecord) -> Option<&Path> {
    let origin = record.prices.as_ref()?.origin.as_deref().map(Path::new);
    origin.filter(|file| file.is_absolute() && file.is_file())
}

/// The changes that resuming makes to a run before its trials begin.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Results whose files are missing and that come from other copies. The files are written again.
    copies: Vec<TrialResult>,
    /// The finished trials whose results do not count any more, each with its attempt.
    discarded: Vec<(TrialRecord, u32)>,
    /// True if `run.json` has other content.
    is_other_record: bool,
}

impl Changes {
    /// Writes the changes. The caller has checked everything that can refuse the run.
    ///
    /// # Errors
    /// Returns an error if the file system refuses.
    pub(super) fn write(&self, run: &RunFolder, record: &mut RunRecord) -> Result<(), CliError> {
        super::restore_results(run, record, &self.copies);
        // First, because the new `run.json` has the changed inputs, which the discarded results do not belong to.
        run.discard_results(&self.discarded.iter().map(|(trial, attempt)| (trial, *attempt)).collect::<Vec<_>>())?;
        if self.is_other_record {
            run.write_record(record)?;
        }
        Ok(())
    }
}

/// Returns the finished trials among these, whose results are discarded: if a budget or an interrupt keeps the trials from
/// running again, they count as not run.
fn discarded(
    record: &RunRecord,
    states: &HashMap<TrialId, TrialState>,
    stale: &HashSet<TrialId>,
) -> Vec<(TrialRecord, u32)> {
    let finished = record.trials.iter().filter_map(|trial| {
        let state = states.get(&trial.id()).filter(|state| state.finished.is_some())?;
        stale.contains(&trial.id()).then(|| (trial.clone(), state.attempt))
    });
    finished.collect()
}

/// Restores the commits of the run for its cases. Cases that have changed, or whose revision could not be
/// resolved when the run began, are resolved again.
fn resolve_again(
    cases: &mut [Case],
    record: &mut RunRecord,
    changed: &[String],
    args: &RunArgs,
) -> Result<(), CliError> {
    commits::restore(cases, record);
    for case in cases.iter_mut().filter(|case| changed.contains(&case.id)) {
        if let (WorkspaceSource::Git(source), Some(Changed::Rerun)) = (&mut case.workspace.source, args.changed) {
            source.commit = None;
        }
    }
    commits::resolve(cases, &record.trials)?;
    for known in record.cases.iter_mut().filter(|known| known.resolved.is_none()) {
        if let Some(case) = by_case_id(cases, &known.id) {
            known.resolved = commits::resolved(case);
        }
    }
    Ok(())
}

/// Refuses variables that the finished trials whose results are kept did not get: their results and the others would not be
/// of the same thing.
fn refuse_other_variables(args: &RunArgs, record: &RunRecord, kept: &[&TrialState]) -> Result<(), CliError> {
    let others: Vec<&str> =
        args.env.iter().map(String::as_str).filter(|name| !record.options.env.iter().any(|it| it == name)).collect();
    if others.is_empty() || kept.is_empty() {
        return Ok(());
    }
    let are_errored = kept.iter().all(|state| state.finished == Some(Verdict::Errored));
    let again = if are_errored { "run these trials again with --rerun errored, " } else { "" };
    let finished = match kept.len() {
        1 => "the finished trial did".to_owned(),
        count => format!("{count} finished trials did"),
    };
    Err(CliError::unreadable(format!(
        "`--env {}` would pass a variable that {finished} not get, so the results of run {} would not compare; {again}resume \
         without it, or start a new run",
        others.join(", --env "),
        record.run
    )))
}

/// Returns true if a run of an older version names `HOME` with `--env`, which agents with a private home do not get any more.
fn has_ignored_home(record: &RunRecord) -> bool {
    super::has_private_home(record) && record.options.env.iter().any(|name| name == "HOME")
}

/// Removes `HOME` from the variables of a run of which no trial has had it.
fn forget_home(options: &mut RunOptions) {
    options.env.retain(|name| name != "HOME");
    options.env_not_passed.clear();
}

/// Refuses a case of an older version whose `env` has `HOME`, if one of these trials of it is to start.
fn refuse_home_of_case(cases: &[Case], trials: &[&TrialRecord]) -> Result<(), CliError> {
    let starts = |case: &Case| trials.iter().any(|trial| trial.case == case.id);
    match cases.iter().find(|case| case.env.contains_key("HOME") && starts(case)) {
        Some(case) => Err(CliError::unreadable(format!(
            "{}: `env` of case `{}` has `HOME`, and its next trials cannot get it: {HOME_IS_PRIVATE}; remove it, and resume \
             the run with --changed rerun",
            case.shown().display(),
            case.id
        ))),
        None => Ok(()),
    }
}

/// Adds the variables of this command to those of the run.
fn add_variables(options: &mut RunOptions, args: &RunArgs) {
    options.env.extend(args.env.iter().cloned());
    options.env.sort();
    options.env.dedup();
}

/// Records that this version of `evals` runs the trials that follow. `alone` is true if the results of no other version
/// are kept.
fn played_by_this_version(record: &mut RunRecord, alone: bool) {
    let now = env!("CARGO_PKG_VERSION");
    if record.evals.split(", ").any(|version| version == now) {
        return;
    }
    terminal::note(format_args!(
        "note: run {} was begun by evals {}; the trials that follow are run by evals {now}",
        record.run, record.evals
    ));
    record.evals = if alone { now.to_owned() } else { format!("{}, {now}", record.evals) };
}

/// Returns the judges to continue with: the judges of the plan. Other judges are allowed only if no trial whose result is
/// kept has a grade of a judge.
fn same_judges(run: &RunFolder, record: &RunRecord, now: Chosen, redo: &HashSet<TrialId>) -> Result<Chosen, CliError> {
    let mut chosen = record.options.judges.clone();
    let are_others = |now: &[ModelName], then: &[ModelName]| !now.is_empty() && sorted(now) != sorted(then);
    if are_others(&now.over, &chosen.over) {
        let was_judged = |result: &TrialResult| {
            !redo.contains(&result.id())
                && result.grades.iter().filter_map(|grade| grade.judge.as_ref()).any(|judge| !judge.judges.is_empty())
        };
        if run.results_of_trials(record)?.iter().any(was_judged) {
            let then = match (&*chosen.over, &*chosen.otherwise) {
                ([], []) => "the ones that its graders name".to_owned(),
                ([], usual) => format!("{}, from EVALS_JUDGE, for graders that name none", joined(usual)),
                (over, _) => joined(over),
            };
            let (id, now) = (&record.run, joined(&now.over));
            return Err(CliError::unreadable(format!(
                "the judges of run {id} are {then}, and --judge {now} would mix in others; resume without --judge, \
                 then regrade the whole run with: evals grade {id} --judge …"
            )));
        }
        chosen.over = now.over;
    }
    if chosen.otherwise.is_empty() {
        chosen.otherwise = now.otherwise;
    } else if are_others(&now.otherwise, &chosen.otherwise) {
        let (then, now) = (joined(&chosen.otherwise), joined(&now.otherwise));
        writeln!(
            crate::cli::output::stderr(),
            "note: EVALS_JUDGE names {now}, but the run keeps its own judges, {then}"
        )?;
    }
    Ok(chosen)
}

fn sorted(names: &[ModelName]) -> Vec<&ModelName> {
    let mut names: Vec<_> = names.iter().collect();
    names.sort();
    names
}

/// Makes the plan of a rerun: a new run with the failed trials. The original run is not changed.
fn failed_again(
    args: &RunArgs,
    record: &RunRecord,
    (inputs, arms): (&inputs::Inputs, &[Arm]),
    states: &HashMap<TrialId, TrialState>,
    interaction: Option<&Interaction>,
) -> Result<RunRecord, CliError> {
    let failed = |trial: &&TrialRecord| {
        states.get(&trial.id()).is_some_and(|state| state.is_done() && state.finished == Some(Verdict::Fail))
    };
    let trials: Vec<TrialRecord> = record
        .trials
        .iter()
        .filter(failed)
        .map(|trial| TrialRecord { failed_in: Some(record.run.clone()), ..trial.clone() })
        .collect();
    if trials.is_empty() {
        return Err(CliError::unreadable(format!(
            "no trial of run {} failed, so there is nothing to run again",
            record.run
        )));
    }
    let mut derived = RunRecord { shard: None, elsewhere: Elsewhere::default(), ..record.clone() };
    let of_cases = cases_of(&trials);
    derived.cases.retain(|case| of_cases.contains(&*case.id));
    derived.harnesses.retain(|harness| trials.iter().any(|trial| trial.harness == harness.name));
    derived.arms.retain(|arm| trials.iter().any(|trial| without_copy(&trial.arm) == arm.name || trial.arm == arm.name));
    // The rerun uses the current files, even if the user chose to keep what had changed.
    renew(&mut derived, (inputs, arms), interaction, &|_| true)?;
    derived.trials.clone_from(&trials);
    derived.prices = derived.prices.map(|_| PriceRecord::now());
    // A minimum score for the whole run does not apply to its failed trials, and the snapshots of its cells are not made from
    // these alone.
    let compared = record.options.snapshot.filter(|mode| *mode != Mode::Update);
    derived.options = RunOptions {
        fail_under: args.fail_under,
        snapshot: args.snapshot.or(compared),
        ..super::options(args, &derived.options)
    };
    add_variables(&mut derived.options, args);
    super::check_env(&derived, &args.env)?;
    if has_ignored_home(&derived) {
        forget_home(&mut derived.options);
    }
    record_judged_by(&mut derived, &inputs.cases, &|_| true)?;
    super::record::begin(&mut derived);
    Ok(RunRecord { trials, label: None, derived_from: Some(record.run.clone()), ..derived })
}

/// Updates the record for the trials that follow: changed cases and harnesses that still have trials to run are
/// recorded as they are now, and marked as mixed if trials of them have finished before and their results stay.
fn note_changes(
    record: &mut RunRecord,
    changed: &[String],
    (inputs, arms): (&inputs::Inputs, &[Arm]),
    (states, redo, stale): (&HashMap<TrialId, TrialState>, &HashSet<TrialId>, &HashSet<TrialId>),
    interaction: Option<&Interaction>,
) -> Result<(), CliError> {
    let planned: Vec<TrialId> =
        record.trials.iter().filter(|trial| trial.skip.is_none()).map(TrialRecord::id).collect();
    let done = |key: &&TrialId| !stale.contains(*key) && states.get(*key).is_some_and(TrialState::is_done);
    let (played, waiting): (Vec<&TrialId>, Vec<&TrialId>) = planned.iter().partition(done);
    // Both may be as many as the trials, so the names are looked up and not compared.
    let changed: HashSet<&str> = changed.iter().map(String::as_str).collect();
    let names = |id: &TrialId| -> Vec<String> {
        names_of(id).into_iter().filter(|name| changed.contains(&**name)).map(Cow::into_owned).collect()
    };
    let going_on: HashSet<String> = waiting.into_iter().chain(redo).flat_map(names).collect();
    let played: HashSet<String> = played.into_iter().flat_map(names).collect();
    let goes_on = |name: &String| going_on.contains(name);
    renew(record, (inputs, arms), interaction, &goes_on)?;
    for known in record.cases.iter_mut().filter(|known| goes_on(&known.id)) {
        known.mixed = played.contains(&known.id);
    }
    for known in record.harnesses.iter_mut().filter(|known| goes_on(&known.name)) {
        known.mixed = played.contains(&known.name);
    }
    for known in record.arms.iter_mut().filter(|known| goes_on(&shown_arm(&known.name))) {
        known.mixed = played.contains(&shown_arm(&known.name));
    }
    Ok(())
}

/// Returns the names of a trial's case, harness and arm in a list of changed ones.
fn names_of(trial: &TrialId) -> [Cow<'_, str>; 4] {
    let [arm, original] = [shown_arm(&trial.arm), shown_arm(without_copy(&trial.arm))].map(Cow::Owned);
    [Cow::Borrowed(&*trial.case), Cow::Borrowed(&*trial.harness), arm, original]
}

/// Returns the text that names an arm in a list of cases and harnesses: `variant NAME`.
fn shown_arm(name: &str) -> String {
    format!("variant {name}")
}

/// Records cases, harnesses and arms as they are now.
fn renew(
    record: &mut RunRecord,
    (inputs, arms): (&inputs::Inputs, &[Arm]),
    interaction: Option<&Interaction>,
    which: &dyn Fn(&String) -> bool,
) -> Result<(), CliError> {
    for known in record.cases.iter_mut().filter(|known| which(&known.id)) {
        if let Some(case) = by_case_id(&inputs.cases, &known.id) {
            *known = case_record(case, interaction)?;
        }
    }
    for known in record.harnesses.iter_mut().filter(|known| which(&known.name)) {
        if let Ok(entry) = inputs.catalog.get(&known.name) {
            known.digest = entry.manifest.digest();
            known.manifest = Manifest::clone(&entry.manifest);
            known.mixed = false;
        }
    }
    for known in record.arms.iter_mut().filter(|known| which(&shown_arm(&known.name))) {
        if let Some(arm) = arms.iter().find(|arm| arm.name == known.name) {
            (known.digest, known.overrides) = (arm.digest.clone(), arm.resolved.clone());
            (known.sources, known.mixed) = (arm.sources.clone(), false);
        }
    }
    let is_recorded = |arm: &Arm| record.arms.iter().any(|known| known.name == arm.name && known.digest == arm.digest);
    if arms.iter().all(is_recorded) {
        let (arms, aa) = (arms.to_vec(), record.options.aa);
        let asked = PlanRequest { arms, aa, ..PlanRequest::default() };
        let doubts = arm_doubts::of_plan(&inputs.cases, &inputs.catalog, &asked);
        record.record_arm_doubts(doubts, |case| by_case_id(&inputs.cases, case).is_some());
    }
    let secrets: Vec<(String, String)> = arms.iter().flat_map(|arm| arm.secrets.clone()).collect();
    mask_with(record, &secrets);
    Ok(())
}

/// Restores the planned id of a case whose id has changed since.
pub fn restore_ids(cases: &mut [Case], record: &RunRecord) {
    let mut planned: HashMap<&Path, &str> = HashMap::new();
    for known in &record.cases {
        planned.entry(&known.path).or_insert(&known.id);
    }
    for case in cases {
        if let Some(id) = planned.get(&*case.file).filter(|id| **id != case.id) {
            case.id = (*id).to_owned();
        }
    }
}

fn digest(case: &Case) -> Result<String, CliError> {
    let unreadable = |error| CliError::unreadable(format!("a file of case `{}` cannot be read: {error}", case.id));
    case.digest().map_err(unreadable)
}

/// Returns the error that asks the user how to continue with what has changed, or may have changed, since a run began.
fn undecided(run: &str, changed: &[String], unknown: &HashSet<String>, other_prices: bool) -> CliError {
    let (unknown, known): (Vec<&String>, Vec<&String>) = changed.iter().partition(|name| unknown.contains(*name));
    let quoted = |names: Vec<&String>| names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>();
    let (unknown, mut known) = (quoted(unknown), quoted(known));
    known.extend(other_prices.then(|| "the price table".to_owned()));
    let mut reasons = Vec::new();
    if !known.is_empty() {
        reasons.push(format!("since run {run} began, {} changed", known.join(", ")));
    }
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        reasons.push(format!(
            "it is unknown whether {names} changed since run {run} began: the digests in its run.json do not cover the \
             files that links lead to, because an older version of evals wrote them"
        ));
    }
    CliError::unreadable(format!(
        "{}; continue with the current files with --changed keep, or run the affected trials again with --changed rerun",
        reasons.join("; ")
    ))
}

/// Returns the cases, harnesses and arms that have changed or may have changed, and those of which it is unknown.
fn changed(
    inputs: &inputs::Inputs,
    arms: &[Arm],
    record: &RunRecord,
) -> Result<(Vec<String>, HashSet<String>), CliError> {
    let (mut changed, mut unknown) = (Vec::new(), HashSet::new());
    for known in &record.cases {
        let now = by_case_id(&inputs.cases, &known.id);
        let digest = now.map(digest).transpose()?;
        let others = now.map(|case| is_judged_by_others(known, case)).transpose()?.unwrap_or_default();
        if known.mixed || others || digest.as_ref().is_none_or(|now| !is_same(now, &known.digest)) {
            changed.push(known.id.clone());
        } else if digest.is_some_and(|now| may_differ_behind_links(&now, &known.digest)) {
            changed.push(known.id.clone());
            unknown.insert(known.id.clone());
        }
    }
    for known in &record.harnesses {
        let now = inputs.catalog.get(&known.name).ok().map(|entry| entry.manifest.digest());
        if known.mixed || now.as_deref() != Some(known.digest.as_str()) {
            changed.push(known.name.clone());
        }
    }
    for (known, now) in record.arms.iter().zip(arms) {
        if known.mixed || known.digest != now.digest {
            changed.push(shown_arm(&known.name));
        }
    }
    Ok((changed, unknown))
}
