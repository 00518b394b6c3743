//! Runs the trials of a plan: several at once, with a journal and retries, until done or stopped by the user or
//! a budget. A schedule may add trials after each stage.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet};
use tokio::time::sleep_until;

use crate::case::Case;
use crate::case::seal::{Digests, Seal, SealedFiles};
use crate::experiment::{Arm, arm_of};
use crate::harness::Manifest;
use crate::harness::catalog::Catalog;
use crate::ids::TrialId;
use crate::ids::TrialRecord;
use crate::interaction::Interaction;
use crate::judgement::tolerance;
use crate::process;
use crate::project;
use crate::reason_text::money_beside;
use crate::result::{EarlierAttempts, TrialResult, Warning};
use crate::run::events::{RunEvent, StageDecision};
use crate::run::folder::RunFolder;
use crate::run::journal::{Journal, JournalChange, JournalEvent, JournalLine, TrialState};
use crate::run::{RunError, RunOptions, RunRecord, read_json};
use crate::trace::ErrorCategory;
use crate::trial::foreign::{Foreign, is_aside};
use crate::trial::previous_attempts::{self, MayAsk, PreviousAttempts};
use crate::trial::{self, Attempt, Engine, OfArms, Outcome, SkillOfArm, TrialError};
use crate::values::{Time, now_text};
use crate::verdict::Verdict;

mod order;
mod queue;
mod schedule;

use queue::Queue;
pub use schedule::Schedule;

/// The inputs of a run.
pub struct Run<'a> {
    pub folder: &'a RunFolder,
    /// The cases, with their graders.
    pub cases: &'a HashMap<String, Arc<Case>>,
    pub catalog: &'a Catalog,
    /// The arms of the experiment. Empty if the columns are models.
    pub arms: &'a [Arm],
    /// A policy that overrides those of the cases.
    pub interaction: Option<Interaction>,
    pub options: &'a RunOptions,
    /// The data that all trials share.
    pub engine: Arc<Engine>,
    /// Finished trials to run again.
    pub redo: &'a HashSet<TrialId>,
    /// The plan after the first trials.
    pub schedule: Schedule,
}

#[derive(Debug, Default)]
pub struct RunOutcome {
    /// True if the user interrupted the run.
    pub interrupted: bool,
    /// Trials that were not started, including finished ones that were to be run again.
    pub not_run: usize,
    /// Finished trials that were to be run again, and were not, without those whose results were discarded. Their earlier
    /// results stay.
    pub not_rerun: usize,
    /// The reason why these trials were not started.
    pub why: Option<String>,
    /// The maximum cost in US dollars, if it is reached: the run goes on only with a higher one.
    pub spent_all: Option<f64>,
    /// The maximum duration, if it has passed: a resumed run has that limit again, from its own start.
    pub time_over: Option<Time>,
    /// Errored trials that should have been retried, and were not.
    pub not_retried: usize,
    /// Attempts of which a part of the cost is unknown, if there was a cost budget.
    pub unknown_costs: usize,
    /// The change of the journal by another program during the run.
    pub changed_journal: Option<JournalChange>,
    /// True if another program changed `run.json` during the run; it was written again.
    pub changed_record: bool,
}

/// Runs the trials of the plan that have not finished yet, and those that the schedule adds to it. Each finished
/// trial is on disk before its event.
///
/// # Errors
/// Returns an error if the run folder cannot be written; finished trials are on disk.
pub async fn run(run: &Run<'_>, plan: &mut RunRecord, mut tell: impl FnMut(RunEvent)) -> Result<RunOutcome, RunError> {
    let begun = Instant::now();
    let before = if run.options.max_cost.is_some() { spent_before(run, plan)? } else { Spent::default() };
    let (errored, finished, again) = attempts_before(run)?;
    let mut progress = Progress {
        outcome: RunOutcome::default(),
        budget: Budget { spent: before, failed: false, quarantined: quarantined(plan), options: run.options, begun },
        errored,
        finished,
        again,
        seals: seals(run, plan)?,
    };
    stage(run, plan, run.redo, &mut progress, &mut tell).await?;
    while plan_more(run, plan, &mut progress.outcome, &mut tell)? {
        stage(run, plan, &HashSet::new(), &mut progress, &mut tell).await?;
    }
    process::dismiss_all().await;
    progress.outcome.unknown_costs = if run.options.max_cost.is_some() { progress.budget.spent.unknown } else { 0 };
    Ok(progress.outcome)
}

/// The state of a run over all its stages.
struct Progress<'a> {
    outcome: RunOutcome,
    budget: Budget<'a>,
    /// The number of errored attempts of each trial.
    errored: HashMap<TrialId, u32>,
    /// The number of finished attempts of each trial that has further ones.
    finished: HashMap<TrialId, usize>,
    /// The trials that had finished and run again, as the journal states them at the start.
    again: HashMap<TrialId, TrialState>,
    /// The seals, by case.
    seals: Seals,
}

impl Progress<'_> {
    /// Records why no more trials are started, if so. Returns true if none are.
    fn check_limits(&mut self) -> bool {
        let Self { outcome, budget, .. } = self;
        outcome.why = outcome.why.take().or_else(|| budget.exhausted());
        (outcome.spent_all, outcome.time_over) = (budget.spent_all(), budget.time_over());
        outcome.interrupted || outcome.why.is_some()
    }
}

/// The seals of the cases, by case, harness and arm of the experiment.
type Seals = HashMap<(String, String, Option<String>), Arc<Seal>>;

/// Asks the schedule for the continuation after a stage. Returns true if it planned more trials.
fn plan_more(
    run: &Run<'_>,
    plan: &mut RunRecord,
    outcome: &mut RunOutcome,
    tell: &mut impl FnMut(RunEvent),
) -> Result<bool, RunError> {
    outcome.changed_record |= run.folder.settle_record()?;
    if outcome.interrupted || matches!(run.schedule, Schedule::Fixed) {
        return Ok(false);
    }
    // A stage of which trials are left is finished by a resumed run.
    if outcome.not_run > 0 || *run.engine.interrupt.borrow() {
        return Ok(false);
    }
    let results = run.folder.results_of_trials(plan)?;
    let Some((trials, decision)) = run.schedule.decide(plan, &results) else { return Ok(false) };
    let goes_on = matches!(decision, StageDecision::GoesOn(_));
    tell(RunEvent::StageEnded { trials, decision });
    if !goes_on {
        return Ok(false);
    }
    run.folder.write_record(plan)?;
    let Some(why) = outcome.why.clone() else { return Ok(true) };
    // The budget was spent by the last trial of the stage, so that none of the next one is started.
    outcome.not_run = waiting(run.folder, &plan.trials, &HashSet::new())?.len();
    tell(RunEvent::NotRun { count: outcome.not_run, why });
    Ok(false)
}

/// Runs the trials of the plan that have not finished yet.
async fn stage(
    run: &Run<'_>,
    plan: &RunRecord,
    redo: &HashSet<TrialId>,
    progress: &mut Progress<'_>,
    tell: &mut impl FnMut(RunEvent),
) -> Result<(), RunError> {
    let mut stage = Stage::of(order::fair(plan, waiting(run.folder, &plan.trials, redo)?));
    let journal = run.folder.open_journal()?;
    let skipped = plan.trials.iter().filter(|trial| trial.skip.is_some()).count();
    tell(RunEvent::Planned { trials: stage.queue.len(), skipped });
    let mut interrupt = run.engine.interrupt.clone();
    loop {
        progress.outcome.interrupted |= *interrupt.borrow();
        let is_stopping = progress.check_limits();
        let now = Instant::now();
        let starting = if is_stopping {
            stage.drop_retries(&mut progress.outcome);
            Ok(Vec::new())
        } else {
            stage.queue_retries(now);
            stage.prepare_attempts(run, progress)
        };
        // One sync for the trials that have finished and those that take their places.
        stage.unwritten.write(&journal, tell)?;
        starting?.into_iter().for_each(|(place, attempt)| start(run, place, attempt, &mut stage.running));
        let wake = stage.retries.iter().map(|retry| retry.until).min();
        if stage.running.is_empty() && wake.is_none() {
            break;
        }
        let ended = tokio::select! {
            Some(ended) = stage.running.join_next() => ended,
            Ok(()) = interrupt.changed(), if !progress.outcome.interrupted => continue,
            () = sleep_until(wake.unwrap_or(now).into()), if wake.is_some() => continue,
        };
        // Others may have finished while the journal was written.
        let mut all = vec![ended];
        all.extend(std::iter::from_fn(|| stage.running.try_join_next()));
        if let Some(error) = stage.record_ended(run, progress, all) {
            stage.unwritten.write(&journal, tell)?;
            return Err(error);
        }
    }
    // The journal must hold what this process wrote: agents without a sandbox can change the file.
    let outcome = &mut progress.outcome;
    outcome.changed_journal = journal.settle()?.or(outcome.changed_journal.take());
    report_not_run(run, &stage.queue, redo, outcome, tell)
}

/// The trials of a stage, from the queue to the journal.
struct Stage<'a> {
    queue: Queue<'a>,
    running: JoinSet<Ended>,
    /// The number of running trials of each harness.
    running_of_harness: HashMap<String, usize>,
    /// The errored trials that are retried later.
    retries: Vec<PendingRetry<'a>>,
    /// The trials of the started attempts. An attempt that ends is found by its index, without a search of the plan.
    started: Vec<&'a TrialRecord>,
    unwritten: Unwritten,
}

impl<'a> Stage<'a> {
    fn of(trials: Vec<(&'a TrialRecord, u32)>) -> Self {
        Self {
            queue: Queue::new(trials),
            running: JoinSet::new(),
            running_of_harness: HashMap::new(),
            retries: Vec::new(),
            started: Vec::new(),
            unwritten: Unwritten::default(),
        }
    }

    /// Drops the retries. Each errored attempt is already in the journal, and counts as the result until the run is resumed.
    fn drop_retries(&mut self, outcome: &mut RunOutcome) {
        for retry in self.retries.drain(..) {
            outcome.not_retried += 1;
            self.unwritten.events.push(RunEvent::Finished { result: retry.result });
        }
    }

    /// Puts the errored trials whose pause is over before all others.
    fn queue_retries(&mut self, now: Instant) {
        for retry in self.retries.extract_if(.., |retry| retry.until <= now) {
            self.queue.push_front((retry.trial, retry.attempt + 1));
        }
    }

    /// Takes trials from the queue as long as there is room, and prepares their attempts, each with its place among the started
    /// ones.
    fn prepare_attempts(&mut self, run: &Run<'_>, progress: &Progress<'_>) -> Result<Vec<(usize, Attempt)>, RunError> {
        let mut attempts = Vec::new();
        while self.running.len() + attempts.len() < run.options.jobs.max(1) {
            let has_room = |harness: &str| has_room(harness, &self.running_of_harness, run.catalog);
            let Some(next) = self.queue.take(has_room) else { break };
            let id = next.0.id();
            let before = (progress.finished.get(&id).copied().unwrap_or_default(), progress.again.get(&id));
            attempts.push((self.started.len(), prepare(run, &progress.seals, next, before)?));
            *self.running_of_harness.entry(next.0.harness.clone()).or_default() += 1;
            self.unwritten.started(next);
            self.started.push(next.0);
        }
        Ok(attempts)
    }

    /// Records the attempts that have ended: those that finished beside one that failed are still written. Returns the first
    /// failure.
    fn record_ended(
        &mut self,
        run: &Run<'_>,
        progress: &mut Progress<'_>,
        all: Vec<Result<Ended, JoinError>>,
    ) -> Option<RunError> {
        let mut failed = None;
        for ended in all {
            let (place, number, outcome) = match ended {
                Ok(ended) => ended,
                Err(error) => {
                    let message = format!("the engine failed: {error}");
                    failed.get_or_insert(RunError::Trial { path: run.folder.path.clone(), message });
                    continue;
                }
            };
            let Some(&trial) = self.started.get(place) else { continue };
            if let Some(count) = self.running_of_harness.get_mut(&trial.harness) {
                *count -= 1;
            }
            match outcome {
                Err(error) => _ = failed.get_or_insert(error),
                Ok(Outcome::Interrupted) => progress.outcome.interrupted = true,
                Ok(Outcome::Done(result)) => {
                    let retry = finished_trial(run, progress, &mut self.unwritten, (trial, number), result);
                    self.retries.extend(retry);
                }
            }
        }
        failed
    }
}

/// Records a trial that has finished. Returns its next attempt if it is retried.
fn finished_trial<'a>(
    run: &Run<'_>,
    Progress { outcome, budget, errored, finished, .. }: &mut Progress<'_>,
    unwritten: &mut Unwritten,
    (trial, attempt): (&'a TrialRecord, u32),
    result: Box<TrialResult>,
) -> Option<PendingRetry<'a>> {
    budget.add(&result);
    run.folder.keep_copy(&result);
    let errors = errored.entry(trial.id()).or_default();
    *errors += u32::from(result.verdict == Verdict::Errored);
    let again = retry(run, trial, &result, *errors);
    let line = line(trial, JournalEvent::Finished, attempt).with_result(&result);
    let Some(pause) = again else {
        unwritten.add(line, Some(RunEvent::Finished { result }));
        return None;
    };
    let why = result.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
    *finished.entry(trial.id()).or_default() += 1;
    let goes_on = !outcome.interrupted && outcome.why.is_none();
    let event = goes_on.then(|| RunEvent::Retry { trial: trial.id(), attempt, why });
    unwritten.add(JournalLine { retry: true, ..line }, event);
    Some(PendingRetry { until: Instant::now() + pause, trial, attempt, result })
}

/// Counts the trials that were not started, and reports them.
fn report_not_run(
    run: &Run<'_>,
    queue: &Queue<'_>,
    redo: &HashSet<TrialId>,
    outcome: &mut RunOutcome,
    tell: &mut impl FnMut(RunEvent),
) -> Result<(), RunError> {
    outcome.not_run = queue.len();
    if outcome.not_run == 0 {
        return Ok(());
    }
    let why = outcome.why.clone().unwrap_or_else(|| "interrupted".to_owned());
    let states = run.folder.states()?;
    let has_result = |id: &TrialId| states.get(id).is_some_and(|state| state.finished.is_some());
    outcome.not_rerun = queue.trials().map(TrialRecord::id).filter(|id| redo.contains(id) && has_result(id)).count();
    let count = outcome.not_run - outcome.not_rerun;
    if count > 0 {
        tell(RunEvent::NotRun { count, why: why.clone() });
    }
    if outcome.not_rerun > 0 {
        tell(RunEvent::NotRerun { count: outcome.not_rerun, why });
    }
    Ok(())
}

/// The cost of attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Spent {
    /// The known cost in US dollars.
    usd: f64,
    /// Attempts of which a part of the cost is unknown; an unknown cost is not 0.
    unknown: usize,
}

impl Spent {
    fn add(&mut self, result: &TrialResult) {
        let cost = result.spent();
        self.plus(Self { usd: cost.value(), unknown: usize::from(!cost.is_exact()) });
    }

    fn plus(&mut self, other: Self) {
        self.usd += other.usd;
        self.unknown += other.unknown;
    }
}

/// Returns the cost of earlier attempts, including attempts whose results were replaced: a resumed run has one budget.
fn spent_before(run: &Run<'_>, plan: &RunRecord) -> Result<Spent, RunError> {
    let mut spent = Spent::default();
    for trial in &plan.trials {
        let harness = plan.harnesses.iter().find(|known| known.name == trial.harness);
        spent.plus(spent_on(&run.folder.trial_of(trial)?, harness.map(|known| &known.manifest))?);
    }
    Ok(spent)
}

/// Returns the cost of all attempts of a trial. `manifest` is that of the harness.
fn spent_on(trial: &Path, manifest: Option<&Manifest>) -> Result<Spent, RunError> {
    let attempts = trial.join("attempts");
    // The target of a link is not an attempt.
    let earlier = if attempts.is_symlink() { Vec::new() } else { entries(&attempts)? };
    let number =
        |path: &Path| path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok());
    // The last attempt has no number in its path. Other files beside the attempts have none, either.
    let earlier = earlier.into_iter().map(|path| (number(&path).unwrap_or(0), path));
    let mut costs: Vec<(u32, Spent)> = Vec::new();
    let mut carried: Option<(u32, EarlierAttempts)> = None;
    for (number, folder) in std::iter::once((u32::MAX, trial.to_owned())).chain(earlier) {
        let mut cost = Spent::default();
        match read_json::<TrialResult>(&folder.join("result.json")) {
            Ok(result) => {
                cost.add(&result);
                let is_later = number > carried.map_or(0, |(last, _)| last);
                carried = result.earlier_attempts.filter(|_| is_later).map(|known| (number, known)).or(carried);
            }
            Err(_) => {
                let (known, is_unknown) = previous_attempts::of_interrupted(&folder, manifest);
                cost.plus(Spent { usd: known.unwrap_or(0.0), unknown: usize::from(is_unknown) });
            }
        }
        costs.push((number, cost));
    }
    // Attempts whose folders were removed are in the figures of the last attempt that has a result. It may not be the last one
    // of all: an interrupted attempt has no figures.
    let last = carried.map_or(0, |(number, _)| number);
    let (mut before, mut spent, mut folders) = (Spent::default(), Spent::default(), 0);
    for (number, cost) in costs {
        let sum = if number < last { &mut before } else { &mut spent };
        sum.plus(cost);
        folders += usize::from((1..last).contains(&number));
    }
    if let Some((_, known)) = carried.filter(|(_, known)| known.count as usize > folders) {
        let asked = known.asked_cost();
        before.usd = before.usd.max(known.cost_usd.unwrap_or(0.0) + asked.value());
        before.unknown = before.unknown.max(known.cost_unknown as usize).max(usize::from(!asked.is_exact()));
    }
    spent.plus(before);
    Ok(spent)
}

/// An errored trial that is retried later; others run meanwhile.
struct PendingRetry<'a> {
    until: Instant,
    trial: &'a TrialRecord,
    attempt: u32,
    result: Box<TrialResult>,
}

/// An attempt that has ended: its place among the started ones, its number, and the outcome.
type Ended = (usize, u32, Result<Outcome, RunError>);

/// Lines that are not in the journal yet, and the events that follow them.
#[derive(Default)]
struct Unwritten {
    lines: Vec<JournalLine>,
    events: Vec<RunEvent>,
}

impl Unwritten {
    fn add(&mut self, line: JournalLine, event: Option<RunEvent>) {
        self.lines.push(line);
        self.events.extend(event);
    }

    fn started(&mut self, (trial, attempt): (&TrialRecord, u32)) {
        let event = RunEvent::Started { trial: trial.id(), attempt };
        self.add(line(trial, JournalEvent::Started, attempt), Some(event));
    }

    /// Writes the lines with one sync, and then sends the events.
    fn write(&mut self, journal: &Journal, tell: &mut impl FnMut(RunEvent)) -> Result<(), RunError> {
        journal.write_all(&self.lines)?;
        self.lines.clear();
        self.events.drain(..).for_each(tell);
        Ok(())
    }
}

/// Returns the remaining trials, each with the number of its next attempt.
///
/// # Errors
/// Returns an error if the journal cannot be read.
pub fn waiting<'a>(
    folder: &RunFolder,
    trials: &'a [TrialRecord],
    redo: &HashSet<TrialId>,
) -> Result<Vec<(&'a TrialRecord, u32)>, RunError> {
    let states = folder.states()?;
    let waits = |trial: &'a TrialRecord| {
        let state = states.get(&trial.id()).cloned().unwrap_or_default();
        let waits = trial.skip.is_none() && (!state.is_done() || redo.contains(&trial.id()));
        waits.then_some((trial, state.attempts.saturating_add(1)))
    };
    Ok(trials.iter().filter_map(waits).collect())
}

/// The number of errored attempts of each trial.
type Errored = HashMap<TrialId, u32>;

/// The number of finished attempts of each trial.
type Finished = HashMap<TrialId, usize>;

/// The states of the trials that had finished and run again.
type Again = HashMap<TrialId, TrialState>;

/// Returns how often each remaining trial was errored before, which counts towards the maximum number of retries; how many
/// attempts of each trial that is to run have finished, as far as the journal has their digests; and the states of the trials
/// that had finished and run again.
fn attempts_before(run: &Run<'_>) -> Result<(Errored, Finished, Again), RunError> {
    let (mut errored, mut finished, mut again) = (HashMap::new(), HashMap::new(), HashMap::new());
    for (key, state) in run.folder.states()? {
        if state.discarded > 0 || state.ran_again || (state.is_done() && run.redo.contains(&key)) {
            again.insert(key.clone(), state.clone());
        }
        if !state.judged.is_empty() && (!state.is_done() || run.redo.contains(&key)) {
            finished.insert(key.clone(), state.judged.len());
        }
        if !state.is_done() {
            errored.insert(key, state.errored);
        }
    }
    Ok((errored, finished, again))
}

/// Returns true if a harness may run another trial.
fn has_room(harness: &str, at_work: &HashMap<String, usize>, catalog: &Catalog) -> bool {
    let most = catalog.named(harness).and_then(|entry| entry.manifest.jobs);
    most.is_none_or(|most| at_work.get(harness).copied().unwrap_or(0) < most.max(1))
}

/// Returns a seal for each case, harness and arm: the digests that the plan expects of the case's files and of the files that
/// the arm adds, and the files that were read when the run began.
fn seals(run: &Run<'_>, plan: &RunRecord) -> Result<Seals, RunError> {
    let (graders, policies) = (project::root().join("graders"), project::root().join("policies"));
    let mut harnesses: HashMap<&str, BTreeSet<&str>> = HashMap::new();
    for trial in &plan.trials {
        harnesses.entry(&trial.case).or_default().insert(&trial.harness);
    }
    let (mut seals, mut files) = (Seals::new(), SealedFiles::default());
    for record in &plan.cases {
        let Some(case) = run.cases.get(&record.id) else { continue };
        let arms = plan.arms.iter().map(|arm| (Some(arm.name.clone()), arm.sources.clone()));
        let without = plan.arms.is_empty().then(|| (None, BTreeMap::new()));
        for (arm, laid) in arms.chain(without) {
            let digests = Digests { case: record.digest.clone(), judged_by: record.judged_by.clone(), laid };
            let seal = Seal::new(case.clone(), digests).map_err(RunError::io("read the inputs of", &case.file))?;
            for harness in harnesses.get(&*record.id).into_iter().flatten() {
                let of_harness = seal.with_files(&mut files, &graders, &policies, run.catalog.named(harness));
                let key = (record.id.clone(), (*harness).to_owned(), arm.clone());
                seals.insert(key, Arc::new(of_harness));
            }
        }
    }
    Ok(seals)
}

/// Makes everything that an attempt needs before its line in the journal. `finished` is the number of its earlier attempts
/// that have finished, and `again` the state of a trial that had finished and runs again.
fn prepare(
    run: &Run<'_>,
    seals: &Seals,
    (trial, number): (&TrialRecord, u32),
    (finished, again): (usize, Option<&TrialState>),
) -> Result<Attempt, RunError> {
    let folder = run.folder.trial_of(trial)?;
    let foreign = keep_earlier_attempt(&folder, number)?;
    let (Some(case), Some(entry)) = (run.cases.get(&trial.case), run.catalog.named(&trial.harness)) else {
        return Err(RunError::Malformed {
            path: run.folder.path.join("run.json"),
            message: format!("case `{}` or harness `{}` of the plan is not loaded", trial.case, trial.harness),
        });
    };
    let arm = arm_of(run.arms, &trial.arm);
    let key = (trial.case.clone(), trial.harness.clone(), arm.map(|arm| arm.name.clone()));
    let seal = seals.get(&key).cloned();
    let (case, manifest) = match arm {
        Some(arm) => (Arc::new(arm.case(case)), Arc::new(arm.manifest(&entry.manifest))),
        None => (case.clone(), entry.manifest.clone()),
    };
    let route = case.route(run.options.gateway, &trial.harness, trial.arm_of())?;
    let interaction = run.interaction.clone().unwrap_or_else(|| case.interaction.clone());
    let may_ask = MayAsk {
        judges: case.graders.iter().any(|grader| grader.kind.needs().model),
        policy: matches!(interaction, Interaction::Llm(_)),
    };
    let previous = PreviousAttempts::before(&folder, number, finished, &manifest, may_ask);
    Ok(Attempt {
        previous: match again {
            Some(state) => previous.run_again(&folder, state, &manifest, may_ask),
            None => previous,
        },
        route,
        trial: trial.clone(),
        interaction,
        case,
        manifest,
        attempt: number,
        folder,
        foreign,
        arms: of_arms(run)?,
        seal,
    })
}

fn start(run: &Run<'_>, place: usize, attempt: Attempt, running: &mut JoinSet<Ended>) {
    let (engine, number) = (run.engine.clone(), attempt.attempt);
    let attempt = Arc::new(attempt);
    let (for_engine, for_attempt) = (engine.clone(), attempt.clone());
    // In the state of a trial there is much memory, so only its own task holds it.
    // It is large, so it is moved to its place once.
    let trial_alone = guarded(async move { Box::pin(trial::run(&for_engine, &for_attempt)).await });
    running.spawn(async move {
        let outcome = match trial_alone.await {
            Ok(outcome) => Ok(outcome),
            // An engine failure is recorded as such; the run ends only if it cannot be recorded.
            Err(error) if error.is_of_the_disk() => Err(error.of_run(&attempt.folder)),
            Err(error) => {
                trial::internal_error(&engine, &attempt, &error).map_err(|second| second.of_run(&attempt.folder))
            }
        };
        (place, number, outcome)
    });
}

/// Returns what the arms of an experiment lay. A trial is searched for all of it, so all of it must be readable.
fn of_arms(run: &Run<'_>) -> Result<Option<Arc<OfArms>>, RunError> {
    if run.arms.is_empty() {
        return Ok(None);
    }
    let mut laid = OfArms { servers: run.arms.iter().flat_map(Arm::servers).collect(), ..OfArms::default() };
    for skill in run.arms.iter().flat_map(|arm| arm.skills.iter().flatten()) {
        let malformed = |message| RunError::Malformed { path: skill.folder.clone(), message };
        let description = crate::skill::read(&skill.folder).map_err(malformed)?.description;
        laid.skills.push(SkillOfArm { name: skill.name.clone(), description });
    }
    for instructions in run.arms.iter().filter_map(|arm| arm.layer.instructions.as_ref()) {
        let path = instructions.file.as_deref().unwrap_or(&run.folder.path);
        laid.instructions.push(instructions.read().map_err(RunError::io("read the instruction file", path))?);
    }
    Ok(Some(Arc::new(laid)))
}

/// Starts a trial in its own task: a bug in the engine ends only that trial. Dropping the returned future ends the task.
fn guarded(
    trial: impl Future<Output = Result<Outcome, TrialError>> + Send + 'static,
) -> impl Future<Output = Result<Outcome, TrialError>> + Send + 'static {
    let mut alone = JoinSet::new();
    alone.spawn(trial);
    outcome_of(alone)
}

/// Waits for the only task of a set.
async fn outcome_of(mut alone: JoinSet<Result<Outcome, TrialError>>) -> Result<Outcome, TrialError> {
    match alone.join_next().await {
        Some(Ok(outcome)) => outcome,
        Some(Err(error)) if error.is_panic() => {
            let panic = error.into_panic();
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it gave no reason");
            Err(TrialError::Panicked(text.to_owned()))
        }
        Some(Err(_)) | None => Ok(Outcome::Interrupted),
    }
}

/// Moves the files of an earlier attempt into `attempts/`; only temporary files of a killed engine are deleted.
/// Only attempts in the journal are attempts: other files were put there by another program, and are moved to a
/// folder that is not searched for results.
fn keep_earlier_attempt(folder: &Path, number: u32) -> Result<Option<Warning>, RunError> {
    let mut foreign = Foreign::of(folder);
    let there = folder.symlink_metadata();
    if there.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        return Ok(None);
    }
    if there.is_ok_and(|meta| !meta.is_dir()) {
        // A link or a file in place of the folder: a link would lead the trial's files elsewhere.
        fs::remove_file(folder).map_err(RunError::io("remove what is no folder", folder))?;
        foreign.add_name(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
    }
    let earlier = number.saturating_sub(1);
    let attempts = folder.join("attempts");
    let is_attempt = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse::<u32>().ok());
        name.is_some_and(|name| (1..=earlier).contains(&name)) && path.is_dir() && !path.is_symlink()
    };
    if attempts.is_symlink() || earlier == 0 {
        foreign.take(&attempts)?;
    }
    let has_result = entries(folder)?.iter().any(|it| is_result(it));
    for path in entries(&attempts)? {
        // An attempt that was moved before its successor started is already there. The result is moved first, so beside one
        // the engine itself leaves only an empty folder.
        let again = path == attempts.join(earlier.to_string()) && has_result && !entries(&path)?.is_empty();
        if !is_attempt(&path) || again {
            foreign.take(&path)?;
        }
    }
    let left: Vec<_> =
        entries(folder)?.into_iter().filter(|path| !path.ends_with("attempts") && !is_aside(path)).collect();
    let (result, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|path| is_result(path));
    let kept = attempts.join(earlier.to_string());
    for path in result.into_iter().chain(others) {
        if earlier == 0 {
            foreign.take(&path)?;
            continue;
        }
        fs::create_dir_all(&kept).map_err(RunError::io("make the folder", &kept))?;
        if path.extension().is_some_and(|end| end == "part") && path.is_file() {
            fs::remove_file(&path).map_err(RunError::io("remove half a file", &path))?;
            continue;
        }
        let to = kept.join(path.file_name().unwrap_or_default());
        fs::rename(&path, &to).map_err(RunError::io("keep the earlier attempt", &path))?;
    }
    Ok(foreign.warning())
}

/// Returns the paths in a folder, sorted; empty if the folder does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    let found = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        found => found.and_then(|found| found.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()),
    };
    let mut entries = found.map_err(RunError::io("list", folder))?;
    entries.sort();
    Ok(entries)
}

fn is_result(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "result.json")
}

fn line(trial: &TrialRecord, event: JournalEvent, attempt: u32) -> JournalLine {
    let at = now_text();
    JournalLine::new(at, event, trial, attempt)
}

/// Returns how long to wait before the next retry of a trial with this number of errors, if it is retried. An
/// attempt that was interrupted with its engine does not count.
fn retry(run: &Run<'_>, trial: &TrialRecord, result: &TrialResult, errors: u32) -> Option<Duration> {
    let error = result.error.as_ref()?;
    let case = run.cases.get(&trial.case)?;
    // The command line overrides the case.
    let most = run.options.retries.or(case.retries.max).unwrap_or(0);
    let on: &[ErrorCategory] = if case.retries.on.is_empty() { &RETRIED } else { &case.retries.on };
    // A recording stays as it is, so another attempt would only hide that the agent asked for something else this time.
    let is_missed = result.warnings.iter().any(|warning| matches!(warning, Warning::CassetteMissed { .. }));
    if errors > most || !on.contains(&error.category) || is_missed {
        return None;
    }
    Some(Duration::from_secs(1 << errors.saturating_sub(1).min(5)))
}

/// Errors that may be temporary. A missing program or a refused login is not.
const RETRIED: [ErrorCategory; 6] = [
    ErrorCategory::RateLimit,
    ErrorCategory::Provider,
    ErrorCategory::Crashed,
    ErrorCategory::Protocol,
    ErrorCategory::Handshake,
    ErrorCategory::Internal,
];

struct Budget<'a> {
    spent: Spent,
    failed: bool,
    /// The cases in quarantine. Their failures do not end a run with `--fail-fast`.
    quarantined: HashSet<String>,
    options: &'a RunOptions,
    begun: Instant,
}

fn quarantined(plan: &RunRecord) -> HashSet<String> {
    let ids = plan.cases.iter().map(|case| &case.id);
    ids.filter(|id| plan.quarantine(id).is_some()).cloned().collect()
}

impl Budget<'_> {
    fn add(&mut self, result: &TrialResult) {
        self.spent.add(result);
        self.failed |= result.verdict == Verdict::Fail && !self.quarantined.contains(&result.case);
    }

    /// Returns the maximum cost, if it is reached.
    fn spent_all(&self) -> Option<f64> {
        self.options.max_cost.filter(|most| tolerance::reaches(self.spent.usd, *most))
    }

    /// Returns the maximum duration, if it has passed.
    fn time_over(&self) -> Option<Time> {
        self.options.max_time.filter(|most| self.begun.elapsed() >= most.0)
    }

    /// Returns why no more trials are started, if so.
    fn exhausted(&self) -> Option<String> {
        if self.options.fail_fast && self.failed {
            return Some("--fail-fast: a trial failed".to_owned());
        }
        if let Some(most) = self.spent_all() {
            return Some(format!("--max-cost {most}: {} US dollars are spent", money_beside(self.spent.usd, most)));
        }
        self.time_over().map(|most| format!("--max-time {most} is over"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_attempt_costs_what_a_later_result_states_though_the_last_attempt_was_interrupted() {
        let planned = TrialRecord::for_test("h", 1);
        let earlier = |count, cost_usd| Some(EarlierAttempts { count, cost_usd, ..EarlierAttempts::default() });
        // The numbers of attempts, each with the figures of those before it: own costs are 0.5 US dollars.
        for (attempts, usd) in [
            (vec![(2, earlier(1, Some(5.0)))], 5.5),
            // A result that was written before the others were removed.
            (vec![(1, None), (2, earlier(1, Some(0.5)))], 1.0),
            // Attempts are in the order of their numbers, not of their names.
            (vec![(2, earlier(1, Some(5.0))), (10, earlier(9, Some(20.0)))], 20.5),
            (vec![(2, earlier(1, Some(5.0))), (3, earlier(2, Some(5.5)))], 6.0),
        ] {
            let root = tempfile::tempdir().unwrap();
            for (number, earlier_attempts) in &attempts {
                let mut result = TrialResult::blank(&planned, Verdict::Fail);
                result.earlier_attempts = *earlier_attempts;
                (result.metrics.measured_ms, result.metrics.cost_usd) = (Some(5), Some(0.5));
                let folder = root.path().join(format!("attempts/{number}"));
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join("result.json"), serde_json::to_vec(&result).unwrap()).unwrap();
            }
            assert_eq!(spent_on(root.path(), None).unwrap(), Spent { usd, unknown: 0 }, "{attempts:?}");
            // The last attempt was interrupted, and its cost is unknown.
            fs::write(root.path().join("wire.jsonl"), "").unwrap();
            assert_eq!(spent_on(root.path(), None).unwrap(), Spent { usd, unknown: 1 }, "{attempts:?}");
        }
    }

    #[test]
    fn attempts_that_cannot_be_listed_are_not_taken_for_none() {
        let root = tempfile::tempdir().unwrap();
        assert!(entries(&root.path().join("gone")).unwrap().is_empty());
        let error = entries(&root.path().join("x".repeat(300))).unwrap_err().to_string();
        assert!(error.starts_with("could not list "), "{error}");
    }

    #[test]
    fn an_attempt_is_kept_though_the_engine_was_killed_while_it_was_moved() {
        let root = tempfile::tempdir().unwrap();
        let kept = root.path().join("attempts/1");
        fs::create_dir_all(&kept).unwrap();
        for name in ["llm.jsonl", "result.json"] {
            fs::write(root.path().join(name), "x").unwrap();
        }
        assert_eq!(keep_earlier_attempt(root.path(), 2).unwrap(), None);
        assert_eq!(entries(&kept).unwrap(), [kept.join("llm.jsonl"), kept.join("result.json")]);
    }

    #[tokio::test]
    async fn a_mistake_of_the_engine_ends_one_trial() {
        let broken = guarded(async { panic!("index {} out of range", 7) }).await;
        assert!(matches!(broken, Err(TrialError::Panicked(why)) if why == "index 7 out of range"));
        assert!(matches!(guarded(async { Ok(Outcome::Interrupted) }).await, Ok(Outcome::Interrupted)));
    }
}
