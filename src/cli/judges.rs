//! Judges: `--judge`, the services and keys of the environment, and the cache of answers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::CliError;
use crate::case::unfit;
use crate::gateway::upstream::service_secrets;
use crate::harness::catalog::Catalog;
use crate::interaction::Llm;
use crate::judge::{Chosen, Judges, joined};
use crate::model_client::{Client, ModelName, Services, Settings};
use crate::project;
use crate::run::Keep;
use crate::run::folder::write_gitignore;
use crate::secrets::Masker;
use crate::trial::Engine;
use crate::trial::agent_as_model::InPlaceOfModel;
use crate::trial::version::Versions;
use crate::values::Time;

/// The folder of the cache, in the project.
const CACHE: &str = ".evals/cache/judge";

/// The judges on the command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct JudgeArgs {
    /// Judge models, instead of those that graders or the rubric name: anthropic:MODEL, openai:MODEL or harness:NAME;
    /// repeatable
    #[arg(long = "judge", value_name = "MODEL")]
    pub judges: Vec<ModelName>,
    /// Do not use cached answers of judges
    #[arg(long)]
    pub no_judge_cache: bool,
}

/// Returns the judges named on the command line and in the environment.
///
/// # Errors
/// Returns an error if an environment variable is invalid, or it or `--judge` names a harness that cannot judge.
pub fn chosen(args: &JudgeArgs, catalog: &Catalog) -> Result<Chosen, CliError> {
    let env = environment();
    // Errors in the settings are reported before anything starts.
    settings(&env)?;
    let chosen = Chosen { over: args.judges.clone(), otherwise: usual(&env)? };
    for (by, names) in [("--judge", &chosen.over), ("EVALS_JUDGE", &chosen.otherwise)] {
        names.iter().try_for_each(|name| fit(by, name, catalog))?;
    }
    Ok(chosen)
}

/// Refuses a harness that cannot answer instead of a model.
///
/// # Errors
/// Returns the reason why the harness cannot answer.
pub fn fit(by: &str, name: &ModelName, catalog: &Catalog) -> Result<(), CliError> {
    match unfit(name, catalog) {
        Some((why, help)) => Err(CliError::unreadable(format!("{by} {name}: {why}; {help}"))),
        None => Ok(()),
    }
}

/// Adds access to models to an engine.
///
/// # Errors
/// Returns an error if an environment variable is invalid.
pub fn asking(engine: Engine, chosen: Chosen, args: &JudgeArgs, catalog: Catalog) -> Result<Engine, CliError> {
    let mut settings = settings(&engine.env)?;
    // An agent takes longer than a service, unless a timeout is set.
    let time = engine.env.get("EVALS_MODEL_TIMEOUT").filter(|it| !it.trim().is_empty()).map(|_| Time(settings.time));
    if !args.no_judge_cache {
        // The folder is created with the first answer; until then nothing is written.
        settings.cache = Some(std::path::absolute(project::root().join(CACHE))?);
    }
    let of_services = service_secrets(&engine.env);
    let named: Vec<String> = of_services.iter().map(|(name, _)| name.clone()).collect();
    let env = engine.env.iter().chain(of_services.iter().map(|(name, value)| (name, value)));
    let masker = Masker::of_env(env.map(|(name, value)| (name.as_str(), value.as_str())), &named);
    let starts = Engine {
        env: engine.env.clone(),
        this_program: engine.this_program.clone(),
        keep: Keep::Never,
        interrupt: engine.interrupt.clone(),
        temporary: engine.temporary.clone(),
        settings_above: engine.settings_above.clone(),
        hides: engine.hides.clone(),
        memory: engine.memory,
        sandbox: engine.sandbox,
        person: None,
        judges: Judges::none(),
        pass: Vec::new(),
        gateway: Default::default(),
        versions: Versions::default(),
    };
    let harnesses = Arc::new(InPlaceOfModel::new(starts, catalog, time));
    let client = Client::new(settings, engine.interrupt.clone(), Some(harnesses));
    Ok(Engine { judges: Judges::new(client, chosen, masker), ..engine })
}

/// Returns the settings for calling services from an environment.
fn settings(env: &BTreeMap<String, String>) -> Result<Settings, CliError> {
    let mut settings = Settings::usual(Services::of_env(env));
    let get = |name: &str| env.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    if let Some(text) = get("EVALS_MODEL_RETRIES") {
        let wrong = |_| CliError::unreadable(format!("EVALS_MODEL_RETRIES=`{text}` is not a number from 0"));
        settings.retries = text.parse().map_err(wrong)?;
    }
    if let Some(text) = get("EVALS_MODEL_TIMEOUT") {
        let wrong = |error| CliError::unreadable(format!("EVALS_MODEL_TIMEOUT: {error}"));
        settings.time = text.parse::<Time>().map_err(wrong)?.0.max(Duration::from_millis(1));
    }
    Ok(settings)
}

/// Excludes the cache of answers from version control, if it exists.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn mark_cache() -> Result<(), CliError> {
    let place = project::root().join(CACHE);
    if place.is_dir() {
        write_gitignore(&place)?;
    }
    Ok(())
}

/// Returns the default judges: `EVALS_JUDGE`, separated by commas.
fn usual(env: &BTreeMap<String, String>) -> Result<Vec<ModelName>, CliError> {
    let text = env.get("EVALS_JUDGE").map(String::as_str).unwrap_or_default();
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let wrong = |error| CliError::unreadable(format!("EVALS_JUDGE: {error}"));
    names.map(str::parse).collect::<Result<_, String>>().map_err(wrong)
}

/// Returns why the policy `llm` has no model, if it has none: every request would be answered with its default. `chosen` are
/// the judges of the run.
pub fn lacks_a_model(llm: &Llm, chosen: &Chosen) -> Option<String> {
    match llm.model.as_ref().or_else(|| chosen.otherwise.first()) {
        None => Some("it names no model; write `llm: {model: anthropic:MODEL}`, or set EVALS_JUDGE".to_owned()),
        Some(model) => check_service(model).err(),
    }
}

/// Returns the note that the policy `llm` asks only the first of several default judges, if it does.
pub fn asks_only_the_first(llm: &Llm, chosen: &Chosen) -> Option<String> {
    let [first, _, ..] = chosen.otherwise.as_slice() else { return None };
    let names = joined(&chosen.otherwise);
    llm.model.is_none().then(|| {
        format!("the policy `llm` asks {first} alone, the first of the models that EVALS_JUDGE names ({names})")
    })
}

/// Checks that the service of a model can be asked.
///
/// # Errors
/// Returns the missing key, or the wrong address.
pub fn check_service(model: &ModelName) -> Result<(), String> {
    Services::of_env(&environment()).of(model).map(drop).map_err(|error| error.to_string())
}

fn environment() -> BTreeMap<String, String> {
    crate::own_environment::texts()
}
