//! `evals check --audit`: runs the three built-in agents of the audit on each case, several cases at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use crate::audit::duplicates::{Compared, Duplicate, lines, near_duplicates};
use crate::audit::quality::Finding;
use crate::audit::vandal::{self, Trick};
use crate::audit::{self, Agent, Audited, Tried, not_shown_by_folder, passes_without_change, shown_by_folder};
use crate::case::{Case, Oracle, WorkspaceSource};
use crate::cli::output::{self, Content};
use crate::cli::stop::{INTERRUPTED, on_interrupt};
use crate::cli::{CliError, engine, terminal};
use crate::grader::unique_names;
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::regular;
use crate::report::audit as report;
use crate::report::page::terminal::write;
use crate::report::text::{duration, plural};
use crate::resources::Exhausted;
use crate::result::Warning;
use crate::sandbox;
use crate::trial::audited::{LookAt, Observations, Played, applies, attempt_of, play, play_and_look};
use crate::trial::{self, Engine, Outcome, TrialError};
use crate::workspace::copy_folder;
use crate::workspace::walk::{Descend, walk};

mod answers;
mod mutation;
mod stored;

use answers::TextsFound;
use mutation::{Solution, mutate};

/// The maximum size, in bytes, of a workspace whose lines are compared with those of others.
const MAX_WORKSPACE_BYTES: u64 = 16 << 20;
/// The maximum number of files of such a workspace.
const MAX_FILES: usize = 5000;

/// The time between two lines about an audit that is not finished.
const MINUTE: Duration = Duration::from_secs(60);

/// The output format of an audit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AuditFormat {
    /// For people, in a terminal
    #[default]
    Table,
    /// One JSON object
    Json,
}

/// The exit code if a case is not sound.
const UNSOUND: u8 = 1;
/// The exit code if no case is unsound, and a case was not audited.
const NOT_AUDITED: u8 = 3;

/// Audits cases and writes the report. `memory` is the limit of a command, in bytes; absent: half of the machine's. Returns the
/// exit code.
pub fn run(cases: Vec<Case>, format: AuditFormat, mutants: usize, memory: Option<u64>) -> Result<u8, CliError> {
    let confined = |case: &Case| sandbox::kind(None, case.sandbox.as_ref(), None) == sandbox::Kind::Bwrap;
    if cases.iter().any(confined) {
        sandbox::bwrap::works().map_err(CliError::unreadable)?;
    }
    let temporary = engine::temporary()?;
    let runs = &crate::cli::default_runs();
    let engine = engine::engine(&temporary, on_interrupt(), engine::hides(runs, cases.iter())?)?;
    let engine = Arc::new(Engine { memory, ..engine });
    let stored = stored::read(runs, &cases);
    let of_runs: Vec<Vec<Finding>> = cases.iter().map(|case| stored.findings(case)).collect();
    let duplicates = duplicates(&cases);
    let runtime = engine::runtime()?;
    let ended = runtime.block_on(audit_all(cases, &engine, mutants));
    runtime.shutdown_background();
    let Ended { audited, is_interrupted } = ended?;
    let all = audited.len();
    let whole = audited.into_iter().zip(of_runs).zip(duplicates).filter_map(|((case, of_runs), duplicate)| {
        let mut case = case?;
        case.findings = of_runs.into_iter().chain(duplicate).chain(case.findings).collect();
        Some(case)
    });
    let audited: Vec<Audited> = whole.collect();
    if is_interrupted {
        let rest = if audited.is_empty() { "" } else { "; the report is about these" };
        terminal::note(format_args!("interrupted after {} of {}{rest}", audited.len(), plural(all, "case")));
        if audited.is_empty() {
            return Ok(INTERRUPTED);
        }
    }
    let mut out = output::stdout(Content::json(matches!(format, AuditFormat::Json)));
    let written = match format {
        AuditFormat::Table => write(&report::page(&audited), &terminal::stdout_look(), &mut out),
        AuditFormat::Json => report::json(&audited, &mut out),
    };
    crate::cli::import::ignore_closed_pipe(written.and_then(|()| out.flush()))?;
    Ok(match audited.iter().any(Audited::is_unsound) {
        _ if is_interrupted => INTERRUPTED,
        true => UNSOUND,
        false if audited.iter().any(|case| !case.audited) => NOT_AUDITED,
        false => 0,
    })
}

/// Returns for each case the finding that it is a near duplicate of an earlier one. A case whose workspace cannot be read
/// is not compared.
fn duplicates(cases: &[Case]) -> Vec<Option<Finding>> {
    let compared = |(number, case): (usize, &Case)| Compared {
        prompt: case.turns.join("\n\n"),
        workspace: case.workspace_digest().unwrap_or_else(|_| format!("unknown {number}")),
        lines: workspace_lines(case).unwrap_or_default(),
    };
    let compared: Vec<Compared> = cases.iter().enumerate().map(compared).collect();
    let mut findings: Vec<Option<Finding>> = cases.iter().map(|_| None).collect();
    for duplicate in near_duplicates(&compared) {
        if let (Some(place), Some(of)) = (findings.get_mut(duplicate.case), cases.get(duplicate.of)) {
            let Duplicate { similarity, workspaces, .. } = duplicate;
            *place = Some(Finding::NearDuplicate { of: of.id.clone(), similarity, workspaces });
        }
    }
    findings
}

/// Returns the lines of a case's workspace. `None` if it is a checkout, whose revision distinguishes it, or too large.
fn workspace_lines(case: &Case) -> Option<BTreeSet<u64>> {
    let mut all = BTreeSet::new();
    match &case.workspace.source {
        WorkspaceSource::Empty | WorkspaceSource::Git(_) => return None,
        WorkspaceSource::Files(files) => {
            files.iter().for_each(|(name, text)| all.extend(lines(name, text.as_bytes())));
        }
        WorkspaceSource::Copy(folder) => {
            let (mut paths, mut bytes) = (Vec::new(), 0_u64);
            walk(folder, |path, meta| {
                if meta.is_file() {
                    bytes = bytes.saturating_add(meta.len());
                    paths.push(path.to_owned());
                }
                if bytes > MAX_WORKSPACE_BYTES || paths.len() > MAX_FILES { Descend::Skip } else { Descend::Enter }
            })
            .ok()?;
            if bytes > MAX_WORKSPACE_BYTES || paths.len() > MAX_FILES {
                return None;
            }
            for path in paths {
                all.extend(lines(&path.to_string_lossy(), &regular::read(folder.join(&path)).ok()?));
            }
        }
    }
    for line in &case.workspace.setup {
        all.extend(lines("", line.as_bytes()));
    }
    Some(all)
}

/// The cases that were audited before the end.
struct Ended {
    /// The outcome of each case, in the order of the cases; `None` if its audit did not end.
    audited: Vec<Option<Audited>>,
    is_interrupted: bool,
}

async fn audit_all(cases: Vec<Case>, engine: &Arc<Engine>, mutants: usize) -> Result<Ended, CliError> {
    let mut audited: Vec<Option<Audited>> = cases.iter().map(|_| None).collect();
    let ids: Vec<String> = cases.iter().map(|case| case.id.clone()).collect();
    let mut running: JoinSet<(usize, Result<Audited, Stop>)> = JoinSet::new();
    let mut waiting = cases.into_iter().enumerate();
    let mut begun = 0;
    let begins = tokio::time::Instant::now();
    let mut minutes = tokio::time::interval_at(begins + MINUTE, MINUTE);
    loop {
        while running.len() < engine::default_jobs()
            && let Some((number, case)) = waiting.next()
        {
            let engine = engine.clone();
            begun = number + 1;
            running.spawn(async move { (number, audit(&engine, Arc::new(case), number, mutants).await) });
        }
        let done = tokio::select! {
            done = running.join_next() => done,
            _ = minutes.tick() => {
                let open = ids.iter().zip(&audited).take(begun).filter(|(_, done)| done.is_none());
                let open: Vec<&str> = open.map(|(id, _)| id.as_str()).collect();
                let ended = audited.iter().flatten().count();
                let elapsed = duration(u64::try_from(begins.elapsed().as_millis()).unwrap_or(u64::MAX));
                let all = plural(ids.len(), "case");
                terminal::note(format_args!("audited {ended} of {all} in {elapsed}; running: {}", open.join(", ")));
                continue;
            }
        };
        let Some(done) = done else { break };
        let (number, done) = done.map_err(|error| CliError::unreadable(format!("the engine failed: {error}")))?;
        match done {
            // An interrupt ends the programs of a trial, so that its outcome is none.
            Ok(_) if *engine.interrupt.borrow() => return Ok(Ended { audited, is_interrupted: true }),
            Err(Stop::Interrupted) => return Ok(Ended { audited, is_interrupted: true }),
            Err(Stop::Broken(error)) => return Err(CliError::of_the_engine(error)),
            Ok(done) => {
                if let Some(place) = audited.get_mut(number) {
                    *place = Some(done);
                }
            }
        }
    }
    Ok(Ended { audited, is_interrupted: false })
}

/// The reason why an audit ends early.
enum Stop {
    Interrupted,
    /// The machine is exhausted, so nothing is known about the case.
    Broken(TrialError),
}

impl Stop {
    /// Returns the message of an error that is about this trial alone, such as a change that cannot be applied.
    fn unless_of_the_trial(error: TrialError) -> Result<String, Self> {
        match Exhausted::of(&error) {
            Some(_) => Err(Self::Broken(error)),
            None => Ok(error.to_string()),
        }
    }
}

/// Returns the manifest of a built-in agent.
fn bare(agent: Agent) -> Manifest {
    let mut manifest = Manifest::bare(Adapter::OutputOnly);
    agent.word().clone_into(&mut manifest.name);
    manifest
}

async fn audit(engine: &Engine, case: Arc<Case>, number: usize, mutants: usize) -> Result<Audited, Stop> {
    let (case, of_models) = without_models(&case);
    if !of_models.is_empty() && !case.graders.iter().any(|grader| grader.counts()) {
        return Ok(Audited::not_audited(&case.id, case.shown().display().to_string(), of_models));
    }
    // The oracle comes first: the null agent's workspace shows which parts of its solution are new.
    let (of_oracle, solution) = oracle(engine, &case, number).await?;
    let patch = solution.as_ref().map(|solution| solution.observations.patch.as_slice()).unwrap_or_default();
    let answers = answers::of(&case, patch);
    let known = TextsFound::default();
    let search = known.search(answers.iter().map(|answer| answer.text.clone()).collect());
    let attempt = attempt_of(&case, bare(Agent::Null), PathBuf::new());
    let played = play(engine, &attempt, search, None).await;
    let mut findings = Vec::new();
    if let Ok(Played::Graded(result)) = &played {
        findings.extend(passes_without_change(&case.graders, result));
        let parts = audit::answers::new(answers, known.texts().as_ref());
        findings.extend((!parts.is_empty()).then_some(Finding::AnswerInPrompt { parts }));
    }
    let mut agents = vec![tried(Agent::Null, None, played)?, of_oracle];
    for way in Trick::ALL {
        let attempt = attempt_of(&case, bare(Agent::Vandal), PathBuf::new());
        let protect = case.workspace.protect.clone();
        let act = move |workspace: &Path| way.act(workspace, &protect);
        let played = play(engine, &attempt, act, Some(vandal::SAYS)).await;
        agents.push(tried(Agent::Vandal, Some(way.word()), played)?);
    }
    let mutants = match solution {
        Some(solution) if mutants > 0 => Some(mutate(engine, &solution, mutants).await?),
        Some(_) | None => None,
    };
    let audited = Audited::of(&case.id, case.shown().display().to_string(), agents, of_models);
    Ok(Audited { findings, ..audited }.with(mutants))
}

/// Returns the case without graders that call models, and their names: an audit costs nothing and is
/// deterministic.
fn without_models(case: &Arc<Case>) -> (Arc<Case>, Vec<String>) {
    let names = unique_names(case.graders.iter().map(AsRef::as_ref));
    let named = case.graders.iter().zip(names).filter(|(grader, _)| grader.kind.needs().model);
    let of_models: Vec<String> = named.map(|(_, name)| name).collect();
    if of_models.is_empty() {
        return (case.clone(), of_models);
    }
    let mut without = case.as_ref().clone();
    without.graders.retain(|grader| !grader.kind.needs().model);
    (Arc::new(without), of_models)
}

fn tried(agent: Agent, how: Option<&'static str>, played: Result<Played, TrialError>) -> Result<Tried, Stop> {
    Ok(match played {
        Ok(Played::Graded(result)) => Tried::of(agent, how, &result),
        Ok(Played::NotReady(why)) => Tried::impossible(agent, how, why),
        Ok(Played::Interrupted) => return Err(Stop::Interrupted),
        Err(error) => Tried::impossible(agent, how, Stop::unless_of_the_trial(error)?),
    })
}

/// Tests the oracle. Returns the solution if it passed and shows files.
async fn oracle(engine: &Engine, case: &Arc<Case>, number: usize) -> Result<(Tried, Option<Solution>), Stop> {
    match &case.oracle {
        None => {
            let why = "the case has no `oracle`, so it is unknown whether it can pass";
            Ok((Tried::without(Agent::Oracle, why, Vec::new()), None))
        }
        Some(Oracle::Copy(folder)) => {
            let folder = folder.clone();
            let act = move |workspace: &Path| copy_folder(&folder, workspace, true).map_err(std::io::Error::other);
            outcome_alone(engine, case, act).await
        }
        Some(Oracle::Patch(patch)) => outcome_alone(engine, case, applies(engine, patch)).await,
        Some(Oracle::Script(script)) => played(engine, case, script, number).await,
    }
}

/// Returns the case with the graders that grade files, or `None` if none of them counts.
fn graded_by_files(case: &Case) -> Option<Arc<Case>> {
    let mut shown = case.clone();
    shown.graders.retain(|grader| shown_by_folder(grader));
    shown.graders.iter().any(|grader| grader.counts()).then(|| Arc::new(shown))
}

/// Grades a folder or a patch as the oracle's work. Only the resulting workspace is known; there are no calls and no
/// messages.
async fn outcome_alone(
    engine: &Engine,
    case: &Arc<Case>,
    act: impl FnOnce(&Path) -> std::io::Result<()> + Send + 'static,
) -> Result<(Tried, Option<Solution>), Stop> {
    let not_audited = not_shown_by_folder(case.graders.iter().map(AsRef::as_ref));
    let Some(shown) = graded_by_files(case) else {
        let why = "its oracle shows files alone, and no counted grader reads files: use `oracle: {script: …}`";
        return Ok((Tried::without(Agent::Oracle, why, not_audited), None));
    };
    let attempt = attempt_of(&shown, bare(Agent::Oracle), PathBuf::new());
    let (result, observations) = match play_and_look(engine, &attempt, act, None, Some(LookAt::Changes)).await {
        Ok((played, observations)) => (Ok(played), observations),
        Err(error) => (Err(error), Observations::default()),
    };
    let oracle = Tried { not_audited, ..tried(Agent::Oracle, None, result)? };
    let solution = oracle.sound.then(|| Solution { case: shown, observations, is_graded: true });
    Ok((oracle, solution))
}

/// Tests a script as the oracle: the demo agent plays it, as in a run.
async fn played(
    engine: &Engine,
    case: &Arc<Case>,
    script: &Path,
    number: usize,
) -> Result<(Tried, Option<Solution>), Stop> {
    let Some(demo) = crate::harness::built_in::named("demo") else {
        let why = "the demo agent is not built in".to_owned();
        return Ok((Tried::impossible(Agent::Oracle, None, why), None));
    };
    let mut with = case.as_ref().clone();
    with.demo_scripts = BTreeMap::from([(String::new(), script.to_owned())]);
    let folder = engine.temporary.join(format!("audit-{number}"));
    let attempt = attempt_of(&Arc::new(with), demo.clone(), folder.clone());
    let result = match trial::run(engine, &attempt).await {
        Ok(Outcome::Done(result)) => result,
        Ok(Outcome::Interrupted) => return Err(Stop::Interrupted),
        Err(error) => {
            let why = Stop::unless_of_the_trial(error)?;
            return Ok((Tried::impossible(Agent::Oracle, None, why), None));
        }
    };
    let oracle = Tried::of(Agent::Oracle, None, &result);
    let is_masked = result.warnings.iter().any(|it| matches!(it, Warning::PatchMasked));
    let patch = regular::read(folder.join("workspace.patch")).ok().filter(|_| oracle.sound && !is_masked);
    let solution = patch.and_then(|patch| {
        let observations = Observations { patch, is_partial: true, ..Observations::default() };
        graded_by_files(case).map(|case| Solution { case, observations, is_graded: false })
    });
    Ok((oracle, solution))
}
