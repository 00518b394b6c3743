//! The agent's task: prompts, command line, environment, and the header before the agent starts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Attempt, Engine, Folders, TrialError, command, io, mcp_config};
use crate::adapter::replay;
use crate::attachment;
use crate::case::{Case, SessionSettings};
use crate::driver::Task;
use crate::environment::{self, Placeholders};
use crate::harness::{Home, HomeName, Manifest, PromptVia, ServersVia, SystemPromptVia};
use crate::ids::TrialRecord;
use crate::interaction::Policy;
use crate::process;
use crate::resources::Exhausted;
use crate::result::Warning;
use crate::secrets::{self, Masker};
use crate::shell::Shell;
use crate::trace::{Header, Model};
use crate::values::now_text;

pub(super) fn placeholders(
    engine: &Engine,
    attempt: &Attempt,
    folders: &Folders,
    scratch: &Path,
    gateway: Option<String>,
) -> Result<Placeholders, TrialError> {
    let case = &attempt.case;
    let mut placeholders = Placeholders {
        prompt: turns(case, &attempt.manifest).into_iter().next().unwrap_or_default(),
        model: model_asked(attempt).requested,
        workspace: folders.workspace.to_string_lossy().into_owned(),
        home: folders.home.to_string_lossy().into_owned(),
        scratch: scratch.to_string_lossy().into_owned(),
        gateway,
        this_program: engine.this_program.to_string_lossy().into_owned(),
        scripts: BTreeMap::new(),
        prompt_file: None,
        system_prompt: case.system_prompt.clone().filter(|_| system_prompt_via(attempt) == SystemPromptVia::Flag),
        servers_file: None,
        manifest_dir: attempt.manifest.folder_text(),
    };
    if placeholders.gateway.is_some() && placeholders.model.is_none() {
        // The files and variables that point the agent at the gateway may name the model.
        placeholders.model = attempt.manifest.gateway.as_ref().and_then(|route| route.model.clone());
    }
    for variant in attempt.manifest.script_variants() {
        if let Some(path) = case.script(&variant) {
            placeholders.scripts.insert(variant, path.to_string_lossy().into_owned());
        }
    }
    if attempt.manifest.prompt_via == PromptVia::File {
        let path = folders.home.join("prompt.txt");
        fs::write(&path, &placeholders.prompt).map_err(io("write the prompt to a file"))?;
        placeholders.prompt_file = Some(path.to_string_lossy().into_owned());
    }
    if attempt.manifest.servers_via() == ServersVia::Flag && !case.mcp_servers.is_empty() {
        let path = folders.home.join("mcp-servers.json");
        fs::write(&path, mcp_config::as_file(&case.mcp_servers)).map_err(io("write the MCP servers to a file"))?;
        placeholders.servers_file = Some(path.to_string_lossy().into_owned());
    }
    Ok(placeholders)
}

fn system_prompt_via(attempt: &Attempt) -> SystemPromptVia {
    attempt.manifest.system_prompt.via
}

/// Returns the prompts of a case, with its system prompt before the first if the agent has no place for one.
fn turns(case: &Case, manifest: &Manifest) -> Vec<String> {
    let mut turns = case.turns.clone();
    if let (SystemPromptVia::Prompt, Some(system), Some(first)) =
        (manifest.system_prompt.via, &case.system_prompt, turns.first_mut())
    {
        *first = format!("{system}\n\n{first}");
    }
    turns
}

pub(super) fn task_of(
    attempt: &Attempt,
    folders: &Folders,
    placeholders: &Placeholders,
    env: BTreeMap<String, String>,
    terminals: Shell,
) -> Task {
    let (case, manifest) = (&attempt.case, &attempt.manifest);
    let wants_requests = attempt.interaction.needs_interaction() || case.wants_requests();
    let of_manifest = manifest.mode(wants_requests).map(str::to_owned);
    Task {
        turns: turns(case, manifest),
        system_prompt: case
            .system_prompt
            .clone()
            .filter(|_| system_prompt_via(attempt) == SystemPromptVia::SessionMeta),
        model: model_for_agent(attempt),
        command: command::line(manifest, placeholders).into(),
        folder: folders.workspace.clone(),
        env,
        manifest: manifest.clone(),
        policy: Policy::new(attempt.interaction.clone(), case.answers.clone()),
        mcp_servers: if manifest.servers_via() == ServersVia::Session { case.mcp_servers.clone() } else { Vec::new() },
        session: SessionSettings { mode: case.session.mode.clone().or(of_manifest), ..case.session.clone() },
        mode_of_manifest: case.session.mode.is_none(),
        must_ask: attempt.interaction.needs_interaction(),
        attachments: Vec::new(),
        terminals,
        recording: manifest.recording.clone(),
    }
}

/// Copies the case's files into the agent's home. The inner error is the reason why the case cannot be run; the
/// outer one is the engine's own.
pub(super) fn attach(task: &mut Task, attempt: &Attempt, folders: &Folders) -> Result<Result<(), String>, TrialError> {
    let adapter = attempt.manifest.adapter;
    if !adapter.starts_a_process() {
        return Ok(Ok(()));
    }
    let attached = match attachment::copy(&attempt.case.attachments, &folders.home.join(attachment::FOLDER)) {
        Ok(attached) => attached,
        Err(error) if Exhausted::of(&error) == Some(Exhausted::Disk) => {
            return Err(io("copy an attachment")(std::io::Error::other(error)));
        }
        Err(error) => return Ok(Err(format!("an attachment could not be copied: {error}"))),
    };
    if let Err(why) = crate::driver::takes(adapter, &attached) {
        return Ok(Err(why));
    }
    task.attachments = attached;
    Ok(Ok(()))
}

/// Returns the name of the trial for a person.
pub(super) fn shown_as(attempt: &Attempt) -> String {
    let TrialRecord { case, harness, arm, trial, .. } = &attempt.trial;
    format!("{case}  {}  trial {trial}", crate::ids::column_name(harness, arm))
}

pub(super) fn header_of(attempt: &Attempt, workspace: &Path) -> Header {
    let manifest = &attempt.manifest;
    let mut header = Header::new(manifest.adapter.word(), manifest.seen());
    header.case = Some(attempt.case.id.clone());
    header.harness = Some(manifest.name.clone());
    header.command_title = manifest.command_title.as_ref().map(ToString::to_string);
    header.unshown_tools.clone_from(&manifest.unshown_tools);
    header.unshown_outcomes.clone_from(&manifest.unshown_outcomes);
    header.trial = Some(attempt.trial.trial);
    header.cwd = Some(workspace.to_string_lossy().into_owned());
    header.model = model_asked(attempt);
    header.started = Some(now_text());
    header
}

pub(super) fn model_asked(attempt: &Attempt) -> Model {
    // A default model that cannot be passed to the agent was not requested.
    let default = || attempt.manifest.model.default.clone().filter(|_| attempt.manifest.model_selection());
    let requested = attempt.trial.model.clone().or_else(default);
    Model { requested, effective: None }
}

/// Returns the model as the agent is asked for it over its protocol.
fn model_for_agent(attempt: &Attempt) -> Option<String> {
    let asked = model_asked(attempt).requested?;
    let form = attempt.manifest.gateway.as_ref().and_then(|route| route.ask.as_ref());
    let form = form.filter(|_| attempt.route.is_some());
    Some(form.map_or_else(|| asked.clone(), |form| form.replace("{model}", &asked)))
}

pub(super) fn trace_of_recording(task: &Task) -> Option<PathBuf> {
    task.recording.clone().filter(|path| replay::is_trace(path))
}

/// Returns the required variables that are missing, or `None` if the agent's program is missing, because that is
/// reported first.
pub(super) fn missing_env(task: &Task) -> Option<String> {
    let Task { manifest, env, .. } = task;
    let missing: Vec<&str> =
        manifest.requires_env.iter().filter(|name| !env.contains_key(*name)).map(String::as_str).collect();
    let path = env.get("PATH").map(String::as_str);
    let startable = task.command.program().is_none_or(|program| process::find(program, &task.folder, path).is_some());
    (startable && !missing.is_empty())
        .then(|| format!("harness `{}` needs {} in the environment", manifest.name, missing.join(", ")))
}

pub(super) fn warnings_before(attempt: &Attempt, env: &BTreeMap<String, String>, masker: &Masker) -> Vec<Warning> {
    let manifest = &attempt.manifest;
    let mut warnings = Vec::new();
    if manifest.home == Home::Named(HomeName::User) {
        warnings.push(Warning::UserHome);
    }
    if !manifest.seen().interaction {
        let (harness, policy) = (manifest.name.clone(), attempt.interaction.word().to_owned());
        warnings.push(Warning::NoPermissions { harness, policy });
    }
    if attempt.case.system_prompt.is_some() && system_prompt_via(attempt) == SystemPromptVia::Prompt {
        warnings.push(Warning::SystemPromptInPrompt);
    }
    for name in environment::unmasked(masker, env, manifest, &attempt.case.mcp_servers) {
        warnings.push(Warning::ShortSecret { name, shortest: secrets::MIN_SECRET_BYTES as u64 });
    }
    warnings
}
