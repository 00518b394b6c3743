//! `evals grade`: grades stored traces and workspaces with the current graders. It starts no agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinSet;

use super::judges::{self, JudgeArgs};
use super::left_above::LeftAbove;
use super::snapshot::during_run;
use super::stop::{INTERRUPTED, on_interrupt};
use super::{CliError, RunsFolder, complete, engine, inputs, terminal};
use crate::case::Case;
use crate::ids::TrialRecord;
use crate::report::format::{Format, ReporterArg};
use crate::report::{self, Report, RunContext};
use crate::result::{TrialResult, Warning};
use crate::run::folder::RunFolder;
use crate::run::{PriceRecord, RunRecord};
use crate::sandbox::{self, Sandbox, bwrap};
use crate::snapshot::compare::Compared;
use crate::snapshot::mode::SnapshotMode;
use crate::text::plural;
use crate::trial::regrade::{self, StoredFiles};
use crate::trial::{Attempt, Engine, Outcome};

mod derived_run;
pub(super) mod stored_run;
pub(super) mod stored_traces;

#[derive(Debug, clap::Args)]
pub struct GradeArgs {
    /// Run: ID, ID prefix, label, path, or `latest`; or trace files, where - is standard input
    #[arg(required = true, value_name = "RUN|TRACE", add = complete::runs())]
    stored: Vec<String>,
    /// Case whose graders are used. Required for traces; for a run, it replaces the run's case of the same ID; repeatable
    #[arg(long = "case", value_name = "FILE")]
    cases: Vec<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also write a report: table, json, jsonl, junit, markdown, github, html or benchmark; repeatable
    #[arg(long = "reporter", value_name = "FORMAT[=PATH]")]
    reporters: Vec<ReporterArg>,
    /// Label of the derived run
    #[arg(long, value_name = "TEXT", value_parser = super::label)]
    label: Option<String>,
    /// Concurrent trials (default: the number of cores)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Sandbox of grading commands, instead of that of the run, its cases and manifests
    #[arg(long, value_enum, value_name = "KIND")]
    sandbox: Option<sandbox::Kind>,
    #[command(flatten)]
    folder: RunsFolder,
    #[command(flatten)]
    judges: JudgeArgs,
}

/// The trials to grade again, and the settings for it.
struct Plan {
    /// The record of the derived run.
    record: RunRecord,
    /// The finished trials.
    works: Vec<Work>,
    /// The source run, if none of its trials has finished: no run is derived from it.
    nothing_finished: Option<(RunFolder, RunRecord)>,
    /// The attempts of a run that no result includes.
    without_result: Vec<LeftAttempt>,
    /// The sandbox of grading commands, if it overrides those of case and manifest.
    sandbox: Option<sandbox::Kind>,
    /// Settings that the agents of the run may have left above the engine's folders.
    left_above: LeftAbove,
}

/// A trial to grade again.
struct Work {
    trial: TrialRecord,
    attempt: u32,
    /// The case and its settings, or the reason why it is missing.
    with: Result<Arc<Attempt>, String>,
    files: Arc<StoredFiles>,
    /// The name in messages.
    shown: String,
    /// The stored folder of the trial, whose files the derived run links. Absent for a trace file.
    folder: Option<PathBuf>,
}

/// An attempt that no result includes, because it was interrupted or its result was discarded. What it cost counts in the
/// derived run, too.
struct LeftAttempt {
    trial: TrialRecord,
    /// The number of the attempt, from 1.
    number: u32,
    /// The folder of its files.
    folder: PathBuf,
}

pub fn run(args: &GradeArgs) -> Result<u8, CliError> {
    super::report::check_places(&args.reporters, args.label.as_deref())?;
    let temporary = engine::temporary()?;
    let mut plan = if stored_traces::are_meant(&args.stored)? {
        stored_traces::plan(args, temporary.path())?
    } else {
        stored_run::plan(args)?
    };
    if let Some((source, record)) = plan.nothing_finished.take() {
        return report_source(args, &source, record);
    }
    check_sandboxes(&plan)?;
    let cases = plan.works.iter().filter_map(|work| work.with.as_ref().ok()).map(|attempt| attempt.case.clone());
    let cases: Vec<_> = cases.collect();
    let hides = engine::hides(&args.folder.runs, cases.iter().map(AsRef::as_ref))?;
    let engine = engine::engine(&temporary, on_interrupt(), hides)?;
    let settings_above = plan.left_above.count_in(engine.settings_above);
    let engine = Engine { sandbox: plan.sandbox, settings_above, ..engine };
    // Harnesses can be judges. If the manifests cannot be read, such a judge fails with a message.
    let catalog = inputs::catalog(&[]).map(|(catalog, _)| catalog).unwrap_or_default();
    let chosen = judges::chosen(&args.judges, &catalog)?;
    plan.record.options.judges = chosen.clone();
    let engine = Arc::new(judges::asking(engine, chosen, &args.judges, catalog)?);
    let runtime = engine::runtime()?;
    let judged = runtime.block_on(grade_all(&plan, &engine, args.jobs.map_or_else(engine::default_jobs, usize::from)));
    runtime.shutdown_background();
    judges::mark_cache()?;
    let Some(results) = judged? else {
        terminal::note(format_args!("interrupted; nothing was written"));
        return Ok(INTERRUPTED);
    };
    let (folder, results) = derived_run::write(&args.folder.runs, &mut plan, results)?;
    tell_what_is_missing(&results);
    tell_other_prices(&plan.record, &results);
    let not_run = plan.record.trials.len() - results.len();
    let snapshots = snapshots(&plan, &folder)?;
    let (root, lacks_end) = (super::report::repository(), plan.record.ends);
    let beside = RunContext { snapshots, root, lacks_end, ..RunContext::default() };
    let report = Report::with(Arc::new(plan.record), results, not_run, &folder.path, beside);
    super::report::tell_gates(&report);
    let code = report::exit_code(&report);
    super::report::write_all(&report, &args.reporters, Some(args.format))?;
    Ok(code)
}

/// Reports a run in which no trial has finished, without its results since then. Its exit code says that trials did not run.
fn report_source(args: &GradeArgs, source: &RunFolder, record: RunRecord) -> Result<u8, CliError> {
    let run = &record.run;
    terminal::note(format_args!(
        "note: no trial of run {run} has finished: there is nothing to grade, and no run was written"
    ));
    let going_on = source.is_in_use();
    let skipped = |trial: &TrialRecord| trial.skip.as_ref().map(|reason| TrialResult::skipped(trial, reason));
    let results = record.trials.iter().filter_map(skipped).collect();
    let report = super::report::of_stored(source, Arc::new(record), results, going_on)?;
    super::report::tell_gates(&report);
    let code = report::exit_code(&report);
    super::report::write_all(&report, &args.reporters, Some(args.format))?;
    Ok(code)
}

/// Loads the price table, by which the costs of judges are calculated. Without a judge, nothing is priced, and a table that
/// cannot be read changes nothing.
fn prices<'a>(named: Option<&Path>, cases: impl IntoIterator<Item = &'a Case>) -> Result<(), CliError> {
    let asks_a_model = |case: &Case| case.graders.iter().any(|grader| grader.kind.needs().model);
    match cases.into_iter().any(asks_a_model) {
        true => super::run::prices(named),
        false => Ok(()),
    }
}

/// Checks that the sandboxes are available before anything is graded.
fn check_sandboxes(plan: &Plan) -> Result<(), CliError> {
    let mut confined = false;
    for attempt in plan.works.iter().filter_map(|work| work.with.as_ref().ok()) {
        if !attempt.case.graders.iter().any(|grader| grader.kind.needs().reads_files()) {
            continue;
        }
        let (case, manifest) = (&attempt.case, &attempt.manifest);
        let decided = Sandbox::decide(plan.sandbox, case.sandbox.as_ref(), manifest.sandbox.as_ref());
        let decided = decided.map_err(|error| CliError::unreadable(format!("{}: {error}", case.shown().display())))?;
        confined |= decided.kind() == sandbox::Kind::Bwrap;
    }
    if confined { bwrap::works().map_err(CliError::unreadable) } else { Ok(()) }
}

/// Compares a run that was graded again with the accepted snapshots, as the run itself was. Traces without a run are not
/// compared.
fn snapshots(plan: &Plan, folder: &RunFolder) -> Result<Vec<Compared>, CliError> {
    if plan.works.iter().any(|work| work.folder.is_none()) {
        return Ok(Vec::new());
    }
    let cases = plan.works.iter().filter_map(|work| work.with.as_ref().ok());
    let cases = cases.map(|attempt| (attempt.case.id.clone(), attempt.case.clone())).collect();
    // What the run accepted, it is compared with now.
    let mode = plan.record.options.snapshot.filter(|mode| *mode != SnapshotMode::Update);
    Ok(during_run::after(mode, folder, &plan.record, &cases, false)?.compared)
}

/// Grades every trial, several at once. Returns `None` if the user interrupts it.
async fn grade_all(plan: &Plan, engine: &Arc<Engine>, jobs: usize) -> Result<Option<Vec<TrialResult>>, CliError> {
    let mut results: Vec<Option<TrialResult>> = plan.works.iter().map(|_| None).collect();
    let mut running: JoinSet<(usize, Result<Option<TrialResult>, String>)> = JoinSet::new();
    let mut waiting = plan.works.iter().enumerate();
    loop {
        while running.len() < jobs.max(1)
            && let Some((number, work)) = waiting.next()
        {
            let (engine, files) = (engine.clone(), work.files.clone());
            let (trial, count, with) = (work.trial.clone(), work.attempt, work.with.clone());
            let single = work.folder.is_none().then(|| work.shown.clone());
            running.spawn(async move {
                let result = match with {
                    Ok(attempt) => match regrade::grade(&engine, &attempt, &files).await {
                        Ok(Outcome::Done(result)) => Ok(Some(*result)),
                        Ok(Outcome::Interrupted) => Ok(None),
                        Err(error) => match single {
                            // The user has just named the file.
                            Some(shown) => Err(format!("{shown}: {error}")),
                            None => Ok(Some(regrade::ungraded(&trial, count, &files, &error.to_string()))),
                        },
                    },
                    Err(why) => Ok(Some(regrade::without_case(&trial, count, &files, &why))),
                };
                (number, result)
            });
        }
        let Some(done) = running.join_next().await else { break };
        let (number, result) = done.map_err(|error| CliError::unreadable(format!("the engine failed: {error}")))?;
        let result = result.map_err(CliError::unreadable)?;
        if result.is_none() || *engine.interrupt.borrow() {
            return Ok(None);
        }
        if let Some(place) = results.get_mut(number) {
            *place = result;
        }
    }
    Ok(Some(results.into_iter().flatten().collect()))
}

/// Prints a note if judges were priced by another table than the agents of the run, whose costs stay.
fn tell_other_prices(record: &RunRecord, results: &[TrialResult]) {
    let now = PriceRecord::now();
    let known = record.prices.as_ref().filter(|known| known.digest != now.digest);
    let is_paid = results.iter().flat_map(TrialResult::used_by_judges).any(|used| used.requests > used.cached);
    if let Some(known) = known.filter(|_| is_paid) {
        let named = |table: &PriceRecord| match &table.origin {
            Some(origin) => format!("{origin}, dated {}", table.date),
            None => format!("dated {}", table.date),
        };
        let (now, known) = (named(&now), named(known));
        terminal::note(format_args!(
            "note: the costs of judge models follow the current price table ({now}), not that of the run ({known})"
        ));
    }
}

/// Prints a warning for everything that a stored run does not contain, each once.
fn tell_what_is_missing(results: &[TrialResult]) {
    let mut lacks: Vec<(&Warning, usize)> = Vec::new();
    for lack in results.iter().flat_map(|result| &result.warnings).filter(|warning| warning.tells_of_a_lack()) {
        match lacks.iter_mut().find(|(known, _)| *known == lack) {
            Some((_, count)) => *count += 1,
            None => lacks.push((lack, 1)),
        }
    }
    for (line, count) in lacks.iter().take(10) {
        let trials = plural(*count, "trial");
        terminal::note(format_args!("note: {trials}: {line}"));
    }
    if lacks.len() > 10 {
        terminal::note(format_args!("note: and {} more; see the warnings of the results", lacks.len() - 10));
    }
}
