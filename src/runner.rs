//! Runs the trials of a plan: several at once, journalled, retried, and stopped when the user or a budget says so.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::sleep_until;

use crate::case::Case;
use crate::case::seal::{Digests, Seal};
use crate::harness::Manifest;
use crate::ids::TrialId;
use crate::ids::TrialRecord;
use crate::interaction::Interaction;
use crate::result::{TrialResult, Warning};
use crate::run::events::RunEvent;
use crate::run::folder::RunFolder;
use crate::run::integrity;
use crate::run::journal::{Journal, JournalEvent, JournalLine};
use crate::run::{RunError, RunOptions, read_json};
use crate::trace::ErrorCategory;
use crate::trial::{self, Attempt, Engine, Outcome, TrialError};
use crate::verdict::Verdict;

/// What a run is made from.
pub struct Run<'a> {
    /// Where it goes.
    pub folder: &'a RunFolder,
    /// Its trials, in the order in which they are begun.
    pub trials: &'a [TrialRecord],
    /// Its cases, with their graders.
    pub cases: &'a HashMap<String, Arc<Case>>,
    /// The digests that its cases are held to, by the cases' ids.
    pub digests: HashMap<String, Digests>,
    /// Its harnesses.
    pub manifests: &'a BTreeMap<String, Arc<Manifest>>,
    /// A policy in the place of the cases' own.
    pub interaction: Option<Interaction>,
    /// How it is run.
    pub options: &'a RunOptions,
    /// What every trial shares.
    pub engine: Arc<Engine>,
    /// Trials that are run again although they have finished.
    pub redo: &'a HashSet<TrialId>,
}

/// What became of a run.
#[derive(Debug, Default)]
pub struct Ran {
    /// The user interrupted it.
    pub interrupted: bool,
    /// Trials that were not started.
    pub not_run: usize,
    /// Why they were not.
    pub why: Option<String>,
    /// Errored trials that were to be tried again, and were not.
    pub not_retried: usize,
    /// Trials whose cost nobody told, where a budget of money was to be kept.
    pub untold_costs: usize,
    /// Where a journal is now that somebody else had changed while the run went on, if one had.
    pub changed_journal: Option<PathBuf>,
}

/// Runs what has not finished yet. Each finished trial is on disk before it is told.
///
/// # Errors
/// The run folder could not be written; what had finished is on disk.
pub async fn run(run: &Run<'_>, mut tell: impl FnMut(RunEvent)) -> Result<Ran, RunError> {
    let mut queue = VecDeque::from(waiting(run.folder, run.trials, run.redo)?);
    let journal = Arc::new(run.folder.open_journal()?);
    let skipped = run.trials.iter().filter(|trial| trial.skip.is_some()).count();
    tell(RunEvent::Planned { trials: queue.len(), skipped });
    let begun = Instant::now();
    let spent = if run.options.max_cost.is_some() { spent_before(run)? } else { 0.0 };
    let mut budget = Budget { spent, untold: 0, failed: false, options: run.options, begun };
    let mut running: JoinSet<(TrialRecord, u32, Result<Outcome, RunError>)> = JoinSet::new();
    let mut at_work: HashMap<String, usize> = HashMap::new();
    let mut ran = Ran::default();
    let mut interrupt = run.engine.interrupt.clone();
    let mut waiting: Vec<Waiting<'_>> = Vec::new();
    let mut errored = errored_before(run)?;
    let seals = seals(run)?;
    loop {
        ran.interrupted |= *interrupt.borrow();
        ran.why = ran.why.or_else(|| budget.exhausted());
        let over = ran.interrupted || ran.why.is_some();
        let now = Instant::now();
        for waited in waiting.extract_if(.., |waited| over || waited.until <= now) {
            if over {
                // This one counts, and the journal holds it already, until the run is gone on with.
                ran.not_retried += 1;
                tell(RunEvent::Finished { result: waited.result });
            } else {
                queue.push_front((waited.trial, waited.attempt + 1));
            }
        }
        while running.len() < run.options.jobs.max(1) && !ran.interrupted && ran.why.is_none() {
            let Some(next) = take_next(&mut queue, &at_work, run.manifests) else { break };
            let (trial, number) = next;
            *at_work.entry(trial.harness.clone()).or_default() += 1;
            start(run, &journal, &seals, (trial, number), &mut running, &mut tell)?;
        }
        let wake = waiting.iter().map(|waited| waited.until).min();
        if running.is_empty() && wake.is_none() {
            break;
        }
        let done = tokio::select! {
            Some(done) = running.join_next() => done,
            Ok(()) = interrupt.changed(), if !ran.interrupted => continue,
            () = sleep_until(wake.unwrap_or(now).into()), if wake.is_some() => continue,
        };
        let Ok((trial, number, outcome)) = done else { continue };
        if let Some(count) = at_work.get_mut(&trial.harness) {
            *count -= 1;
        }
        match outcome? {
            Outcome::Interrupted => ran.interrupted = true,
            Outcome::Done(result) => {
                budget.add(&result);
                let planned = run.trials.iter().find(|planned| planned.id() == trial.id());
                let errors = errored.entry(trial.id()).or_default();
                *errors += u32::from(result.verdict == Verdict::Errored);
                let again = retry(run, &trial, &result, *errors).zip(planned);
                let Some((pause, planned)) = again else {
                    finish(&journal, result, &trial, number, &mut tell)?;
                    continue;
                };
                journal.write(&JournalLine { retry: true, ..finished(&trial, number, &result) })?;
                if !ran.interrupted && ran.why.is_none() {
                    let why = result.error.as_ref().map(|error| error.message.clone()).unwrap_or_default();
                    let (case, harness, arm) = (trial.case.clone(), trial.harness.clone(), trial.arm.clone());
                    tell(RunEvent::Retry { case, harness, arm, trial: trial.trial, attempt: number, why });
                }
                waiting.push(Waiting { until: Instant::now() + pause, trial: planned, attempt: number, result });
            }
        }
    }
    // What was judged is what this process knows: agents without a sandbox can write to the file.
    ran.changed_journal = journal.settle()?;
    ran.not_run = queue.len();
    ran.untold_costs = if run.options.max_cost.is_some() { budget.untold } else { 0 };
    if ran.not_run > 0 {
        let why = ran.why.clone().unwrap_or_else(|| "interrupted".to_owned());
        tell(RunEvent::NotRun { count: ran.not_run, why });
    }
    Ok(ran)
}

/// What earlier attempts cost, also those that were run again: a run that goes on has one budget.
fn spent_before(run: &Run<'_>) -> Result<f64, RunError> {
    let mut spent = 0.0;
    for trial in run.trials {
        let folder = run.folder.trial_of(trial)?;
        let attempts = folder.join("attempts");
        // What a link leads to is no attempt.
        let earlier = if attempts.is_symlink() { Vec::new() } else { entries(&attempts)? };
        for folder in std::iter::once(folder).chain(earlier) {
            let result = read_json::<TrialResult>(&folder.join("result.json"));
            if let Ok(result) = result {
                let costs =
                    [result.metrics.cost_usd.unwrap_or(0.0), result.judges_cost_usd(), result.policy_cost_usd()];
                // Somebody else may have written the file: nothing gives money back.
                spent += costs.into_iter().filter(|cost| *cost > 0.0).sum::<f64>();
            }
        }
    }
    Ok(spent)
}

/// An errored trial that is tried again later; others run meanwhile.
struct Waiting<'a> {
    until: Instant,
    trial: &'a TrialRecord,
    attempt: u32,
    result: Box<TrialResult>,
}

fn finish(
    journal: &Journal,
    result: Box<TrialResult>,
    trial: &TrialRecord,
    attempt: u32,
    tell: &mut impl FnMut(RunEvent),
) -> Result<(), RunError> {
    journal.write(&finished(trial, attempt, &result))?;
    tell(RunEvent::Finished { result });
    Ok(())
}

/// The trials that are still to be run, each with the number of its next attempt.
///
/// # Errors
/// The journal cannot be read.
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

/// How often each trial that is to go on was errored before: that counts where it is said how often it may be.
fn errored_before(run: &Run<'_>) -> Result<HashMap<TrialId, u32>, RunError> {
    let states = run.folder.states()?;
    let left = states.into_iter().filter(|(_, state)| !state.is_done());
    Ok(left.map(|(key, state)| (key, state.errored)).collect())
}

/// The next trial whose harness may run one more at once.
fn take_next<'a>(
    queue: &mut VecDeque<(&'a TrialRecord, u32)>,
    at_work: &HashMap<String, usize>,
    manifests: &BTreeMap<String, Arc<Manifest>>,
) -> Option<(&'a TrialRecord, u32)> {
    let has_room = |(trial, _): &&(&TrialRecord, u32)| {
        let most = manifests.get(&trial.harness).and_then(|manifest| manifest.jobs);
        most.is_none_or(|most| at_work.get(&trial.harness).copied().unwrap_or(0) < most.max(1))
    };
    let index = queue.iter().position(|entry| has_room(&entry))?;
    queue.remove(index)
}

/// The seals of the cases whose trials are to be run.
fn seals(run: &Run<'_>) -> Result<HashMap<String, Arc<Seal>>, RunError> {
    let sealed = run.cases.iter().filter_map(|(id, case)| Some((id, case, run.digests.get(id)?)));
    let seal = |(id, case, digests): (&String, &Arc<Case>, &Digests)| {
        let seal = Seal::new(case.clone(), digests.clone()).map_err(RunError::io("read the inputs of", &case.file))?;
        Ok((id.clone(), Arc::new(seal)))
    };
    sealed.map(seal).collect()
}

fn start(
    run: &Run<'_>,
    journal: &Arc<Journal>,
    seals: &HashMap<String, Arc<Seal>>,
    (trial, number): (&TrialRecord, u32),
    running: &mut JoinSet<(TrialRecord, u32, Result<Outcome, RunError>)>,
    tell: &mut impl FnMut(RunEvent),
) -> Result<(), RunError> {
    let folder = run.folder.trial_of(trial)?;
    let foreign = keep_earlier_attempt(&folder, number)?;
    let (Some(case), Some(manifest)) = (run.cases.get(&trial.case), run.manifests.get(&trial.harness)) else {
        return Err(RunError::Malformed {
            path: run.folder.path.join("run.json"),
            message: format!("case `{}` or harness `{}` of the plan is not loaded", trial.case, trial.harness),
        });
    };
    let attempt = Attempt {
        case: case.clone(),
        manifest: manifest.clone(),
        trial: trial.clone(),
        interaction: run.interaction.clone().unwrap_or_else(|| case.interaction.clone()),
        attempt: number,
        folder,
        foreign,
        seal: seals.get(&trial.case).cloned(),
    };
    journal.write(&line(trial, JournalEvent::Started, number))?;
    let (case, harness, arm) = (trial.case.clone(), trial.harness.clone(), trial.arm.clone());
    tell(RunEvent::Started { case, harness, arm, trial: trial.trial, attempt: number });
    let (engine, trial) = (run.engine.clone(), trial.clone());
    running.spawn(async move {
        let attempt = Arc::new(attempt);
        let (for_engine, for_attempt) = (engine.clone(), attempt.clone());
        let outcome = match guarded(async move { trial::run(&for_engine, &for_attempt).await }).await {
            Ok(outcome) => Ok(outcome),
            // The engine's own failure is recorded as what it is; only where not even that can be written the run ends.
            Err(error) if error.is_of_the_disk() => Err(error.of_run(&attempt.folder)),
            Err(error) => {
                trial::internal_error(&engine, &attempt, &error).map_err(|second| second.of_run(&attempt.folder))
            }
        };
        (trial, number, outcome)
    });
    Ok(())
}

/// Runs a trial by itself: where the engine has a mistake, that trial alone ends with it.
async fn guarded(
    trial: impl Future<Output = Result<Outcome, TrialError>> + Send + 'static,
) -> Result<Outcome, TrialError> {
    // A set of one: what is dropped ends with it.
    let mut alone = JoinSet::new();
    alone.spawn(trial);
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

/// Moves what an earlier attempt left into `attempts/`; nothing of it is deleted but half a file, which an engine that
/// was killed leaves under a name of its own. Only attempts that the journal knows are attempts: what else lies there was
/// put there by somebody else, and is moved to a folder where nothing looks for results.
fn keep_earlier_attempt(folder: &Path, number: u32) -> Result<Option<Warning>, RunError> {
    let mut foreign = Foreign { folder, names: Vec::new(), to: None };
    if folder.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
        // Not the folder of a trial: it would lead the trial's files elsewhere.
        fs::remove_file(folder).map_err(RunError::io("remove what is no folder", folder))?;
        foreign.names.push(folder.file_name().unwrap_or_default().to_string_lossy().into_owned());
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
        // One that was put aside before its follower was begun lies there already.
        let again = path == attempts.join(earlier.to_string()) && has_result;
        if !is_attempt(&path) || again {
            foreign.take(&path)?;
        }
    }
    let left: Vec<_> =
        entries(folder)?.into_iter().filter(|path| !path.ends_with("attempts") && !is_aside(path)).collect();
    let kept = attempts.join(earlier.to_string());
    for path in left {
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

/// The paths in a folder, sorted; none where there is no such folder.
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

/// How the names of folders begin that hold what somebody else put into a trial's folder.
const FOREIGN: &str = "foreign-";

fn is_aside(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(FOREIGN))
}

/// What somebody else put into a trial's folder, and where it is now.
struct Foreign<'a> {
    folder: &'a Path,
    names: Vec<String>,
    to: Option<PathBuf>,
}

impl Foreign<'_> {
    fn take(&mut self, path: &Path) -> Result<(), RunError> {
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        let to = match &self.to {
            Some(to) => to.clone(),
            None => {
                let free = |number: u32| self.folder.join(format!("{FOREIGN}{number}"));
                let to = (1..).map(free).find(|to| to.symlink_metadata().is_err()).unwrap_or_default();
                fs::create_dir(&to).map_err(RunError::io("make the folder", &to))?;
                self.to.insert(to).clone()
            }
        };
        let name = path.strip_prefix(self.folder).unwrap_or(path).to_string_lossy().into_owned();
        let place = to.join(self.names.len().to_string()).with_extension(path.file_name().unwrap_or_default());
        fs::rename(path, &place).map_err(RunError::io("move aside", path))?;
        self.names.push(name);
        Ok(())
    }

    fn warning(self) -> Option<Warning> {
        const NAMED: usize = 20;
        let moved_to = self.to.as_deref().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        let names: Vec<String> = self.names.into_iter().take(NAMED).collect();
        (!names.is_empty()).then_some(Warning::ForeignFiles { names, moved_to })
    }
}

fn finished(trial: &TrialRecord, attempt: u32, result: &TrialResult) -> JournalLine {
    let line = line(trial, JournalEvent::Finished, attempt);
    JournalLine { verdict: Some(result.verdict), digest: Some(integrity::digest_of(result)), ..line }
}

fn line(trial: &TrialRecord, event: JournalEvent, attempt: u32) -> JournalLine {
    JournalLine {
        at: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
        event,
        case: trial.case.clone(),
        harness: trial.harness.clone(),
        model: trial.arm.clone(),
        trial: trial.trial,
        attempt,
        verdict: None,
        retry: false,
        digest: None,
        plan: None,
    }
}

/// How long to wait before a trial that was errored so often is tried again, if it is. An attempt that was cut short
/// with its engine is none.
fn retry(run: &Run<'_>, trial: &TrialRecord, result: &TrialResult, errors: u32) -> Option<Duration> {
    let error = result.error.as_ref()?;
    let case = run.cases.get(&trial.case)?;
    // What the command line asks for counts before what the case says.
    let most = if run.options.retries > 0 { run.options.retries } else { case.retries.max.unwrap_or(0) };
    let on: &[ErrorCategory] = if case.retries.on.is_empty() { &RETRIED } else { &case.retries.on };
    if errors > most || !on.contains(&error.category) {
        return None;
    }
    Some(Duration::from_secs(1 << errors.saturating_sub(1).min(5)))
}

/// Errors that may be gone the next time. A missing program or a refused login will not be.
const RETRIED: [ErrorCategory; 6] = [
    ErrorCategory::RateLimit,
    ErrorCategory::Provider,
    ErrorCategory::Crashed,
    ErrorCategory::Protocol,
    ErrorCategory::Handshake,
    ErrorCategory::Internal,
];

struct Budget<'a> {
    spent: f64,
    /// Trials that ran and told no cost; what they spent is unknown, not nothing.
    untold: usize,
    failed: bool,
    options: &'a RunOptions,
    begun: Instant,
}

impl Budget<'_> {
    fn add(&mut self, result: &TrialResult) {
        match result.metrics.cost() {
            Some(cost) => {
                self.spent += cost.value();
                self.untold += usize::from(!cost.is_exact());
            }
            None if result.metrics.duration_ms.is_some() => self.untold += 1,
            None => {}
        }
        // Judges and the models of policies are paid for as agents are, as far as they tell.
        self.spent += result.judges_cost_usd() + result.policy_cost_usd();
        self.failed |= result.verdict == Verdict::Fail;
    }

    /// Why no more trials are started, if none are.
    fn exhausted(&self) -> Option<String> {
        if self.options.fail_fast && self.failed {
            return Some("--fail-fast: a trial failed".to_owned());
        }
        if let Some(most) = self.options.max_cost.filter(|most| self.spent >= *most) {
            return Some(format!("--max-cost {most}: {:.4} US dollars are spent", self.spent));
        }
        let time = self.options.max_time.filter(|most| self.begun.elapsed() >= most.0)?;
        Some(format!("--max-time {time} is over"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_that_cannot_be_listed_are_not_taken_for_none() {
        let root = tempfile::tempdir().unwrap();
        assert!(entries(&root.path().join("gone")).unwrap().is_empty());
        let error = entries(&root.path().join("x".repeat(300))).unwrap_err().to_string();
        assert!(error.starts_with("could not list "), "{error}");
    }

    #[tokio::test]
    async fn a_mistake_of_the_engine_ends_one_trial() {
        let broken = guarded(async { panic!("index {} out of range", 7) }).await;
        assert!(matches!(broken, Err(TrialError::Panicked(why)) if why == "index 7 out of range"));
        assert!(matches!(guarded(async { Ok(Outcome::Interrupted) }).await, Ok(Outcome::Interrupted)));
    }
}
