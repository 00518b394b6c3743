//! Prepares a trial for its agent: sandbox, model, workspace, environment, home and task.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use super::gateway::{self, Gateway, Reserved};
use super::prepare_workspace::{Before, NotSetUp, set_up};
use super::sandboxing::{confine, inside, shell};
use super::task::{attach, missing_env, placeholders, shown_as, task_of, warnings_before};
use super::{Attempt, Ended, Engine, Folders, Outcome, io, masker_before, unless_interrupted, version};
use crate::driver::Task;
use crate::environment;
use crate::judge::adviser::OfTrial;
use crate::overlay::{self, OverlayPlace};
use crate::result::Warning;
use crate::sandbox::TrialSandbox;
use crate::secrets::Masker;
use crate::shell::Shell;
use crate::trace::ErrorCategory;

/// A trial whose agent can be started.
pub(super) struct PreparedTrial {
    /// The agent's task.
    pub task: Task,
    pub inside: TrialSandbox,
    /// The shell of the setup commands, from which that of the graders is derived.
    pub shell: Shell,
    /// The gateway, if the agent is pointed at it.
    pub gateway: Option<Gateway>,
    /// The state of the workspace before the agent.
    pub before: Before,
    /// Redacts the secrets of this trial.
    pub masker: Arc<Masker>,
    /// Asks a model if the policy is `llm`.
    pub adviser: Arc<OfTrial>,
    /// The version that the agent's program printed.
    pub version: Option<String>,
    /// Warnings so far.
    pub warnings: Vec<Warning>,
}

/// Prepares the trial; if that fails, the attempt has its outcome.
pub(super) async fn prepare_trial(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
) -> Result<PreparedTrial, Ended> {
    let case = &attempt.case;
    let setup = |why: String| Ended::without_agent(attempt, &masker_before(engine, attempt), ErrorCategory::Setup, why);
    let mut inside = inside(engine, attempt, folders).map_err(|error| setup(error.to_string()))?;
    let mut shell = shell(engine, attempt, folders, &inside)?;
    let reserved = gateway::reserve(attempt, &inside).await.map_err(setup)?;
    let address = reserved.as_ref().map(Reserved::base_url);
    let placeholders = placeholders(engine, attempt, folders, &inside.places.scratch, address)?;
    let mut env = environment::of_agent(&engine.env, &attempt.manifest, &case.env, &engine.pass, &placeholders);
    if reserved.is_some() {
        env = gateway::environment(env, attempt, &placeholders);
    }
    let masker = environment::masker(&engine.env, &env, &attempt.manifest, &environment::given_by(case));
    let masker = Arc::new(masker.map_err(|unread| setup(unread.to_string()))?);
    let no_agent = |category, why| Ended::without_agent(attempt, &masker, category, why);
    let scratch = inside.places.scratch.clone();
    let gateway = reserved.map(|it| it.start(engine, attempt, folders, &scratch, &masker)).transpose();
    let gateway = gateway.map_err(|why| no_agent(ErrorCategory::Setup, why))?;
    let before = match unless_interrupted(engine, set_up(engine, attempt, folders, &shell)).await {
        Some(Ok(made)) => made,
        Some(Err(NotSetUp::Case(why))) => return Err(no_agent(ErrorCategory::Setup, why)),
        Some(Err(NotSetUp::Engine(error))) => return Err(Ended::Broken(error)),
        None => return Err(Ended::With(Outcome::Interrupted)),
    };
    inside.places.around = before.around(folders);
    shell.inside = Some(inside.clone());
    let warnings = warnings_before(attempt, &env, &masker);
    let mut task = task_of(attempt, folders, &placeholders, env, shell.clone());
    task.policy = task.policy.redacted(|text| masker.mark_in_any_case(text).map(str::to_owned));
    task.policy = task.policy.asking(engine.person.clone(), shown_as(attempt));
    let (judges, used) = (engine.judges.clone(), Mutex::default());
    let adviser = Arc::new(OfTrial { judges, masker: masker.as_ref().clone(), used });
    task.policy = task.policy.advised_by(adviser.clone());
    attach(&mut task, attempt, folders)?.map_err(|why| no_agent(ErrorCategory::Setup, why))?;
    let relay = gateway.as_ref().and_then(|gateway| gateway.relay.as_ref());
    confine(&mut task, inside.clone(), engine, &placeholders, relay);
    if let Some(why) = missing_env(&task) {
        return Err(no_agent(ErrorCategory::Auth, why));
    }
    let version = unless_interrupted(engine, version::of_trial(engine, attempt, &inside)).await;
    let version = version.ok_or(Ended::With(Outcome::Interrupted))?;
    let user_home = engine.env.get("HOME").map(PathBuf::from);
    environment::fill_home(&folders.home, user_home.as_deref(), &attempt.manifest, &placeholders)
        .map_err(io("fill the private home"))?;
    let laid = overlay::items(&case.overlay, &attempt.manifest)
        .map_err(|why| no_agent(ErrorCategory::Setup, format!("the case {why}")))?;
    overlay::lay(&laid, OverlayPlace::User, &folders.home, |skill| case.evals_in(skill))
        .map_err(|error| no_agent(ErrorCategory::Setup, format!("could not lay files into the home: {error}")))?;
    Ok(PreparedTrial { task, inside, shell, gateway, before, masker, adviser, version, warnings })
}
