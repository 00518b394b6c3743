//! The scripted model of a trial: its server, the agent that is pointed at it, and the log of its requests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Attempt, Folders};
use crate::environment::{Placeholders, is_proxy};
use crate::gateway::log::LogLine;
use crate::gateway::play::What;
use crate::gateway::script::Script;
use crate::gateway::server::{self, Running};
use crate::result::Warning;
use crate::run::RunError;
use crate::sandbox::{Inside, Network, Sandbox};
use crate::secrets::Masker;
use crate::text::plural;
use crate::whole_file::PartFile;
use crate::whole_file::write_part;

/// The server of a trial.
pub(super) struct ScriptedModel {
    running: Running,
    turns: usize,
    /// The connection to the server if the sandbox has no network.
    pub(super) relay: Option<Relay>,
}

/// The name of the socket in the folder that is mounted as `/tmp` in the sandbox.
const SOCKET: &str = "model.sock";

/// A port in a sandbox that is connected to a socket, by its path in the sandbox.
pub(super) struct Relay {
    pub(super) port: u16,
    pub(super) socket: PathBuf,
}

/// Starts the server of a trial whose case names a script; `None` if it names none.
///
/// # Errors
/// Returns the reason why the server cannot start.
pub(super) async fn begin(
    attempt: &Attempt,
    folders: &Folders,
    inside: &Inside,
) -> Result<Option<ScriptedModel>, String> {
    let Some(path) = &attempt.case.model_script else { return Ok(None) };
    let mut script = Script::load(path).map_err(|errors| {
        let first = errors.first().map(ToString::to_string).unwrap_or_default();
        format!("the model's script cannot be read: {first}")
    })?;
    script.aside.extend(attempt.manifest.gateway.iter().flat_map(|route| route.aside.clone()));
    let turns = script.turns.len();
    let apart = matches!(inside.sandbox, Sandbox::Bwrap { network: Network::Loopback | Network::None, .. });
    let socket = apart.then(|| inside.places.scratch.join(SOCKET));
    let workspace = Some(folders.workspace.to_string_lossy().into_owned());
    let prompts = attempt.case.turns.clone();
    let options = server::Options { socket, workspace, prompts, ..server::Options::default() };
    let running = server::start(script, options).await;
    let running = running.map_err(|error| format!("the scripted model could not listen on loopback: {error}"))?;
    let relay = apart.then(|| Relay { port: running.port(), socket: Path::new("/tmp").join(SOCKET) });
    Ok(Some(ScriptedModel { running, turns, relay }))
}

/// Returns the attempt with an agent that is pointed at the server; `None` if its manifest does not define how.
pub(super) fn pointed(attempt: &Attempt) -> Option<Attempt> {
    Some(Attempt {
        case: attempt.case.clone(),
        manifest: Arc::new(attempt.manifest.at_gateway()?),
        trial: attempt.trial.clone(),
        interaction: attempt.interaction.clone(),
        attempt: attempt.attempt,
        folder: attempt.folder.clone(),
        foreign: attempt.foreign.clone(),
        skills_of_arms: attempt.skills_of_arms.clone(),
        seal: attempt.seal.clone(),
    })
}

impl ScriptedModel {
    pub(super) fn base_url(&self) -> String {
        self.running.base_url()
    }

    /// Ends the server, and writes its requests to `model.jsonl`.
    pub(super) fn end(self, attempt: &Attempt, masker: &Masker) -> Result<Ended, RunError> {
        let turns = self.turns;
        let (lines, more) = self.running.stop();
        let part = write_part(&attempt.folder.join("model.jsonl"), |out| {
            lines.iter().try_for_each(|line| writeln!(out, "{}", masker.mask(&line.json())))
        })?;
        let not_played = lines.iter().find(|line| line.turn.is_some() && line.problem.is_some());
        let not_played = not_played.and_then(|line| line.problem.clone()).or_else(|| never_begun(&lines));
        let mut warnings = problems(&lines);
        warnings.extend(not_kept(lines.len(), more));
        Ok(Ended {
            part,
            not_played: not_played.map(|problem| format!("the scripted model: {problem}")),
            warnings,
            // The turns played for requests that were not kept are unknown.
            left: if more == 0 { left(&lines, turns) } else { Vec::new() },
        })
    }
}

/// Facts about a scripted model after its trial.
pub(super) struct Ended {
    /// The log of the requests and their answers.
    pub(super) part: PartFile,
    /// A turn that could not be played for this agent. The trial then does not match its case, and is not judged.
    pub(super) not_played: Option<String>,
    /// Warnings.
    pub(super) warnings: Vec<Warning>,
    /// Warnings for an agent that ended without intervention.
    pub(super) left: Vec<Warning>,
}

/// Returns an error if the agent never sent the case's prompt, so that no turn of the script was played.
fn never_begun(lines: &[LogLine]) -> Option<String> {
    let strangers = lines.iter().filter(|line| line.without_prompt).count();
    let begun = lines.iter().any(|line| line.turn.is_some() && line.sub_agent.is_none());
    (strangers > 0 && !begun).then(|| {
        let requests = plural(strangers, "request");
        format!("no turn of the script was played, because none of {requests} with tools contains the case's prompt")
    })
}

fn problems(lines: &[LogLine]) -> Vec<Warning> {
    const SHOWN: usize = 3;
    let mut warnings: Vec<Warning> = Vec::new();
    for problem in lines.iter().filter(|line| line.turn.is_none()).filter_map(|line| line.problem.as_ref()) {
        let warning = Warning::ScriptedModel { problem: problem.clone() };
        if warnings.len() < SHOWN && !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// Returns a warning if requests are missing from the log.
fn not_kept(kept: usize, more: u64) -> Option<Warning> {
    let kept = kept as u64;
    (more > 0).then(|| Warning::ModelLogCut { asked: more.saturating_add(kept), kept })
}

/// Returns warnings about script turns that were not requested, and about further requests.
fn left(lines: &[LogLine], turns: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let last = lines.iter().filter(|line| line.sub_agent.is_none()).filter_map(|line| line.turn).max();
    let played = last.map_or(0, |last| last + 1);
    if played < turns {
        warnings.push(Warning::ScriptLeft { played: played as u64, turns: turns as u64 });
    }
    let more = lines.iter().filter(|line| line.played == What::AfterTheLast).count();
    if more > 0 {
        warnings.push(Warning::ScriptExceeded { requests: more as u64 });
    }
    warnings
}

/// Returns the environment of an agent whose model is on loopback: without a proxy, and with the gateway's
/// variables overriding those of the case.
pub(super) fn environment(
    mut env: BTreeMap<String, String>,
    attempt: &Attempt,
    placeholders: &Placeholders,
) -> BTreeMap<String, String> {
    env.retain(|name, _| !is_proxy(name));
    let route = attempt.manifest.gateway.iter().flat_map(|route| &route.env);
    env.extend(route.map(|(name, value)| (name.clone(), placeholders.fill(value))));
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_not_kept_are_told() {
        assert_eq!(not_kept(20_000, 0), None);
        let told = "the scripted model was asked 20003 times; `model.jsonl` holds the first 20000 requests";
        assert_eq!(not_kept(20_000, 3).map(|warning| warning.to_string()).as_deref(), Some(told));
    }
}
