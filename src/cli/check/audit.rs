//! `evals check --audit`: runs the three built-in agents of the audit on each case, several cases at once.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::JoinSet;

use crate::audit::vandal::{self, Trick};
use crate::audit::{Agent, Audited, Tried, not_shown_by_folder, shown_by_folder};
use crate::case::{Case, Oracle};
use crate::cli::door::{self, Content};
use crate::cli::stop::{INTERRUPTED, on_interrupt};
use crate::cli::{CliError, engine, terminal};
use crate::grader::unique_names;
use crate::harness::Adapter;
use crate::harness::Manifest;
use crate::report::audit as report;
use crate::report::page::terminal::write;
use crate::sandbox;
use crate::trial::audited::{Played, applies, attempt_of, play};
use crate::trial::{self, Engine, Outcome, TrialError};
use crate::workspace::copy_folder;

/// The output format of an audit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum AuditFormat {
    /// Table
    #[default]
    Table,
    /// One JSON object
    Json,
}

/// Audits cases and writes the report. Returns the exit code: 1 if a case is not sound.
pub fn run(cases: Vec<Case>, format: AuditFormat) -> Result<u8, CliError> {
    let confined = |case: &Case| sandbox::kind(None, case.sandbox.as_ref(), None) == sandbox::Kind::Bwrap;
    if cases.iter().any(confined) {
        sandbox::bwrap::works().map_err(CliError::unreadable)?;
    }
    let temporary = engine::temporary()?;
    let runs = Path::new(".evals/runs");
    let engine = Arc::new(engine::engine(&temporary, on_interrupt(), engine::hides(runs, cases.iter())?)?);
    let runtime = engine::runtime()?;
    let audited = runtime.block_on(audit_all(cases, &engine));
    runtime.shutdown_background();
    let Some(audited) = audited? else {
        terminal::note(format_args!("interrupted"));
        return Ok(INTERRUPTED);
    };
    let mut out = door::stdout(Content::json(matches!(format, AuditFormat::Json)));
    let written = match format {
        AuditFormat::Table => write(&report::page(&audited), &terminal::stdout_look(), &mut out),
        AuditFormat::Json => report::json(&audited, &mut out),
    };
    crate::cli::import::ignore_closed_pipe(written.and_then(|()| out.flush()))?;
    Ok(u8::from(!audited.iter().all(|case| case.sound)))
}

async fn audit_all(cases: Vec<Case>, engine: &Arc<Engine>) -> Result<Option<Vec<Audited>>, CliError> {
    let mut audited: Vec<Option<Audited>> = cases.iter().map(|_| None).collect();
    let mut running: JoinSet<(usize, Option<Audited>)> = JoinSet::new();
    let mut waiting = cases.into_iter().enumerate();
    loop {
        while running.len() < engine::default_jobs()
            && let Some((number, case)) = waiting.next()
        {
            let engine = engine.clone();
            running.spawn(async move { (number, audit(&engine, Arc::new(case), number).await) });
        }
        let Some(done) = running.join_next().await else { break };
        let (number, done) = done.map_err(|error| CliError::unreadable(format!("the engine failed: {error}")))?;
        if done.is_none() || *engine.interrupt.borrow() {
            return Ok(None);
        }
        if let Some(place) = audited.get_mut(number) {
            *place = done;
        }
    }
    Ok(Some(audited.into_iter().flatten().collect()))
}

/// Audits a case. Returns `None` if the user interrupts it.
async fn audit(engine: &Engine, case: Arc<Case>, number: usize) -> Option<Audited> {
    let (case, of_models) = without_models(&case);
    if !of_models.is_empty() && !case.graders.iter().any(|judge| judge.counts()) {
        let why = "only judge models grade it, and the audit calls none; add a grader that needs no model";
        let agents = Agent::ALL.map(|agent| Tried::without(agent, why, Vec::new()));
        return Some(Audited::of(&case.id, case.shown().display().to_string(), agents.into(), of_models));
    }
    let mut agents = Vec::new();
    let bare = |agent: Agent| {
        let mut manifest = Manifest::bare(Adapter::OutputOnly);
        agent.word().clone_into(&mut manifest.name);
        manifest
    };
    let attempt = attempt_of(&case, bare(Agent::Null), PathBuf::new());
    agents.push(tried(Agent::Null, None, play(engine, &attempt, |_| Ok(()), None).await)?);
    agents.push(oracle(engine, &case, bare(Agent::Oracle), number).await?);
    for way in Trick::ALL {
        let attempt = attempt_of(&case, bare(Agent::Vandal), PathBuf::new());
        let protect = case.workspace.protect.clone();
        let act = move |workspace: &Path| way.act(workspace, &protect);
        let played = play(engine, &attempt, act, Some(vandal::SAYS)).await;
        agents.push(tried(Agent::Vandal, Some(way.word()), played)?);
    }
    Some(Audited::of(&case.id, case.shown().display().to_string(), agents, of_models))
}

/// Returns the case without graders that call models, and their names: an audit costs nothing and is
/// deterministic.
fn without_models(case: &Arc<Case>) -> (Arc<Case>, Vec<String>) {
    let names = unique_names(case.graders.iter().map(AsRef::as_ref));
    let named = case.graders.iter().zip(names).filter(|(judge, _)| judge.kind.needs().model);
    let of_models: Vec<String> = named.map(|(_, name)| name).collect();
    if of_models.is_empty() {
        return (case.clone(), of_models);
    }
    let mut without = case.as_ref().clone();
    without.graders.retain(|judge| !judge.kind.needs().model);
    (Arc::new(without), of_models)
}

fn tried(agent: Agent, how: Option<&'static str>, played: Result<Played, TrialError>) -> Option<Tried> {
    Some(match played {
        Ok(Played::Judged(result)) => Tried::of(agent, how, &result),
        Ok(Played::NotReady(why)) => Tried::impossible(agent, how, why),
        Ok(Played::Interrupted) => return None,
        Err(error) => Tried::impossible(agent, how, error.to_string()),
    })
}

async fn oracle(engine: &Engine, case: &Arc<Case>, bare: Manifest, number: usize) -> Option<Tried> {
    match &case.oracle {
        None => Some(Tried::without(
            Agent::Oracle,
            "the case has no `oracle`, so it is unknown whether it can pass",
            Vec::new(),
        )),
        Some(Oracle::Copy(folder)) => {
            let folder = folder.clone();
            let act = move |workspace: &Path| copy_folder(&folder, workspace, true).map_err(std::io::Error::other);
            outcome_alone(engine, case, bare, act).await
        }
        Some(Oracle::Patch(patch)) => outcome_alone(engine, case, bare, applies(engine, patch)).await,
        Some(Oracle::Script(script)) => played(engine, case, script, number).await,
    }
}

/// Tests a folder or a patch as the oracle: it shows the correct workspace, but neither calls nor messages.
async fn outcome_alone(
    engine: &Engine,
    case: &Arc<Case>,
    manifest: Manifest,
    act: impl FnOnce(&Path) -> std::io::Result<()> + Send + 'static,
) -> Option<Tried> {
    let not_audited = not_shown_by_folder(case.graders.iter().map(AsRef::as_ref));
    let mut shown = case.as_ref().clone();
    shown.graders.retain(|judge| shown_by_folder(judge));
    if !shown.graders.iter().any(|judge| judge.counts()) {
        let why = "the oracle shows files alone, but no grader that counts judges files; `oracle: {script: …}` \
            tests the other graders";
        return Some(Tried::without(Agent::Oracle, why, not_audited));
    }
    let played = play(engine, &attempt_of(&Arc::new(shown), manifest, PathBuf::new()), act, None).await;
    Some(Tried { not_audited, ..tried(Agent::Oracle, None, played)? })
}

/// Tests a script as the oracle: the demo agent plays it, as in a run.
async fn played(engine: &Engine, case: &Arc<Case>, script: &Path, number: usize) -> Option<Tried> {
    let Some(demo) = crate::harness::built_in().iter().find(|manifest| manifest.name == "demo") else {
        return Some(Tried::impossible(Agent::Oracle, None, "the demo agent is not built in".to_owned()));
    };
    let mut with = case.as_ref().clone();
    with.demo_scripts = BTreeMap::from([(String::new(), script.to_owned())]);
    let folder = engine.temporary.join(format!("audit-{number}"));
    let attempt = attempt_of(&Arc::new(with), demo.clone(), folder);
    Some(match trial::run(engine, &attempt).await {
        Ok(Outcome::Done(result)) => Tried::of(Agent::Oracle, None, &result),
        Ok(Outcome::Interrupted) => return None,
        Err(error) => Tried::impossible(Agent::Oracle, None, error.to_string()),
    })
}
