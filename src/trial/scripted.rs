//! A scripted model in a trial: a server of its own, an agent that is pointed at it, and what it was asked.

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
use crate::whole_file::PartFile;
use crate::whole_file::write_part;

/// The server of a trial.
pub(super) struct ScriptedModel {
    running: Running,
    turns: usize,
    /// Leads to the server where the sandbox has no network to it.
    pub(super) relay: Option<Relay>,
}

/// The socket's name in the folder that stands as `/tmp` in the sandbox.
const SOCKET: &str = "model.sock";

/// A port in a sandbox that leads to a socket, by the name that it has there.
pub(super) struct Relay {
    pub(super) port: u16,
    pub(super) socket: PathBuf,
}

/// Starts the server of a trial whose case names a script; nothing where it names none.
///
/// # Errors
/// What kept it from starting, in words.
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

/// The attempt with an agent that is pointed at the server; nothing where its manifest does not say how.
pub(super) fn pointed(attempt: &Attempt) -> Option<Attempt> {
    Some(Attempt {
        case: attempt.case.clone(),
        manifest: Arc::new(attempt.manifest.at_gateway()?),
        trial: attempt.trial.clone(),
        interaction: attempt.interaction.clone(),
        attempt: attempt.attempt,
        folder: attempt.folder.clone(),
        foreign: attempt.foreign.clone(),
        seal: attempt.seal.clone(),
    })
}

impl ScriptedModel {
    pub(super) fn base_url(&self) -> String {
        self.running.base_url()
    }

    /// Ends the server, and writes what it was asked to `model.jsonl`.
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
            // What was played in requests that nobody kept is not known.
            left: if more == 0 { left(&lines, turns) } else { Vec::new() },
        })
    }
}

/// What is known of a scripted model when its trial is over.
pub(super) struct Ended {
    /// Every request, and what it got.
    pub(super) part: PartFile,
    /// A turn that this agent could not be given: then this was another case, and it is not judged.
    pub(super) not_played: Option<String>,
    /// What the user should know.
    pub(super) warnings: Vec<Warning>,
    /// What the user should know of an agent that came to its own end.
    pub(super) left: Vec<Warning>,
}

/// The agent asked, and never with the case's prompt: then no turn of the script was played.
fn never_begun(lines: &[LogLine]) -> Option<String> {
    let strangers = lines.iter().filter(|line| line.without_prompt).count();
    let begun = lines.iter().any(|line| line.turn.is_some() && line.sub_agent.is_none());
    (strangers > 0 && !begun).then(|| {
        let requests = if strangers == 1 { "1 request".to_owned() } else { format!("{strangers} requests") };
        format!("no turn of the script was played, since none of {requests} with tools holds the case's prompt")
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

/// That requests stand in no log, if some do.
fn not_kept(kept: usize, more: u64) -> Option<Warning> {
    let kept = kept as u64;
    (more > 0).then(|| Warning::ModelLogCut { asked: more.saturating_add(kept), kept })
}

/// How much of the script was not asked for, or how often more was.
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

/// The environment of an agent whose model is on loopback: no proxy stands between, and what points it there counts
/// before what the case says.
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
