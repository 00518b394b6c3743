//! Runs a check: starts the agent for each probe as a trial of a small case, and evaluates the sessions.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::evaluate::{About, Evaluation, evaluate};
use super::observed::Observed;
use super::probes::{NO_SUCH_MODEL, Probe, SCRIPTS_MODEL, probes};
use super::{ModelSource, Report};
use crate::case::Case;
use crate::gateway::route::Route;
use crate::harness::catalog::Entry;
use crate::harness::login::Login;
use crate::harness::{Home, Manifest, ModelVia, Pointed, PrivateHome};
use crate::ids::TrialRecord;
use crate::process;
use crate::project;
use crate::run::RunError;
use crate::sandbox;
use crate::secrets::looks_secret;
use crate::trial::{self, Attempt, Engine, Outcome, TrialError, version};
use crate::values::Time;
use crate::whole_file::FileError;
use crate::whole_file::write_whole;
use crate::wire::{self, WireLine};

/// The input of a check.
pub struct Check<'a> {
    /// The harness.
    pub entry: &'a Entry,
    /// The folder for the evidence.
    pub folder: PathBuf,
    /// The engine that runs the trials.
    pub engine: &'a Engine,
    /// The cases of the probes, by id.
    pub cases: &'a HashMap<String, Case>,
    /// True if the agent may use its configured model.
    pub live: bool,
    /// The model to request. Absent if none is requested.
    pub model: Option<&'a str>,
    /// The timeout of each probe.
    pub time: Time,
}

/// The reason why a check has no report.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The user interrupted the check.
    #[error("interrupted")]
    Interrupted,
    /// The engine itself failed.
    #[error(transparent)]
    Trial(#[from] TrialError),
    /// The evidence could not be written or read.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl From<FileError> for CheckError {
    fn from(error: FileError) -> Self {
        Self::Run(error.into())
    }
}

/// Checks a harness. Calls `tell` at the start of each probe.
///
/// # Errors
/// Returns an error if the user interrupts the check, or the engine itself fails. Failures of the agent are in the
/// report.
pub async fn carry_out(check: &Check<'_>, mut tell: impl FnMut(Probe)) -> Result<Report, CheckError> {
    let source = model_source(&check.entry.manifest, check.live);
    let manifest = Arc::new(prepared(&check.entry.manifest, source, check.time));
    if let Some(why) = not_to_be_started(&manifest, source, check.engine) {
        let about = About { manifest: &manifest, model: source, printed: None, not_started: Some(why) };
        return Ok(report(check, source, None, evaluate(&about, &[])));
    }
    let printed = version::printed(check.engine, &manifest, &BTreeMap::new(), None).await;
    let mut sessions = Vec::new();
    for probe in probes(&manifest, source) {
        let Some(case) = check.cases.get(probe.case()) else { continue };
        tell(probe);
        let attempt = attempt(check, &manifest, source, probe, case);
        let result = match trial::run(check.engine, &attempt).await? {
            Outcome::Done(result) => *result,
            Outcome::Interrupted => return Err(CheckError::Interrupted),
        };
        let lines = read_wire(&attempt.folder.join("wire.jsonl"))?;
        let requests = read_requests(&attempt.folder.join("llm.jsonl"))?;
        sessions.push(Observed { requests, ..Observed::new(probe, &manifest, lines, result) });
    }
    let about = About { manifest: &manifest, model: source, printed, not_started: None };
    let evaluation = evaluate(&about, &sessions);
    let report = report(check, source, Some(&check.folder), evaluation);
    std::fs::create_dir_all(&check.folder).map_err(RunError::io("make the folder", &check.folder))?;
    write_whole(&check.folder.join("report.json"), |out| {
        serde_json::to_writer_pretty(&mut *out, &report)?;
        out.write_all(b"\n")
    })?;
    Ok(report)
}

/// Returns the source of the model's answers.
fn model_source(manifest: &Manifest, live: bool) -> ModelSource {
    if manifest.plays_a_script() {
        ModelSource::Own
    } else if live {
        ModelSource::Live
    } else if manifest.gateway.is_some() {
        ModelSource::Scripted
    } else {
        ModelSource::None
    }
}

/// Returns the manifest for a check. If no model answers, the user's logins are withheld, so that none is paid for.
fn prepared(manifest: &Manifest, source: ModelSource, time: Time) -> Manifest {
    let mut manifest = manifest.clone();
    manifest.timeouts.start = Time(manifest.timeouts.start.0.min(time.0));
    if source == ModelSource::None {
        let Manifest { env, .. } = &mut manifest;
        let secret = std::mem::take(&mut env.secret);
        env.pass.retain(|name| !secret.contains(name) && !looks_secret(name));
        env.secret = secret;
        manifest.env.named_in.clear();
        manifest.requires_env.clear();
        manifest.home = Home::Private(PrivateHome::default());
    }
    manifest
}

/// Returns why nothing can be started, if so: the program is not installed or unknown.
fn not_to_be_started(manifest: &Manifest, source: ModelSource, engine: &Engine) -> Option<String> {
    let scripted = source == ModelSource::Scripted;
    let pointed = scripted.then(|| manifest.at_gateway(&Pointed::Script, None).ok()).flatten();
    let Some(program) = pointed.as_ref().unwrap_or(manifest).command.first() else {
        return Some("it cannot be launched: its manifest has no command".to_owned());
    };
    let path = engine.env.get("PATH").map(String::as_str);
    if program == "{self}" || process::find(&manifest.placed(program), project::root(), path).is_some() {
        return None;
    }
    let install = manifest.install.as_ref().map(|line| format!("; install it with: `{line}`")).unwrap_or_default();
    Some(format!("it is not installed: {}{install}", process::not_found(program, project::root())))
}

fn attempt(check: &Check<'_>, manifest: &Arc<Manifest>, source: ModelSource, probe: Probe, case: &Case) -> Attempt {
    let mut case = case.clone();
    probe.word().clone_into(&mut case.id);
    case.limits.time = Some(check.time);
    if !probe.prompts() {
        case.turns.clear();
    }
    let script = || Route::Script(case.folder().join(format!("{}.model.yaml", probe.case())));
    let route = (source == ModelSource::Scripted).then(script);
    let asked = match probe {
        Probe::Model => Some(NO_SUCH_MODEL.to_owned()),
        Probe::Session => None,
        _ => check.model.map(str::to_owned).or_else(|| {
            // An agent that gets its model when it is started shows a model only if one is set.
            let launched = matches!(manifest.model.via, ModelVia::Flag | ModelVia::Env);
            (launched && source == ModelSource::Own).then(|| SCRIPTS_MODEL.to_owned())
        }),
    };
    let sandbox = sandbox::kind(check.engine.sandbox, case.sandbox.as_ref(), manifest.sandbox.as_ref());
    let trial = TrialRecord::alone(&case.id, &manifest.name, asked, sandbox);
    let folder = check.folder.join(probe.word());
    Attempt { route, ..Attempt::alone(Arc::new(case), manifest.clone(), trial, folder) }
}

fn read_wire(path: &Path) -> Result<Vec<WireLine>, RunError> {
    let file = match File::open(path) {
        // A trial that could not begin has no wire log.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file.map_err(RunError::io("read", path))?,
    };
    let mut reader = wire::Reader::new(BufReader::new(file));
    let mut lines = Vec::new();
    while let Some(line) = reader.next_line().map_err(RunError::io("read", path))? {
        lines.push(line);
    }
    Ok(lines)
}

/// Returns the requests that a scripted model got; empty without such a model.
fn read_requests(path: &Path) -> Result<Vec<serde_json::Value>, RunError> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(RunError::io("read", path))?,
    };
    let malformed =
        |error: serde_json::Error| RunError::Malformed { path: path.to_owned(), message: error.to_string() };
    text.lines().map(|line| serde_json::from_str(line).map_err(malformed)).collect()
}

fn report(check: &Check<'_>, model: ModelSource, folder: Option<&Path>, evaluation: Evaluation) -> Report {
    let Entry { manifest, origin } = check.entry;
    // The login follows from the original manifest, not from the one prepared for the check.
    let login = Login { offered: evaluation.offered, ..Login::of(manifest, &check.engine.env) };
    Report {
        harness: manifest.name.clone(),
        registry_id: manifest.registry_id.clone(),
        adapter: manifest.adapter.word().to_owned(),
        origin: origin.to_string(),
        checked: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        model,
        folder: folder.map(|folder| folder.display().to_string()),
        version: evaluation.version,
        verified: manifest.verified.last().map(|verified| verified.version.clone()),
        login,
        items: evaluation.items,
        tier: evaluation.tier,
        declared_tier: manifest.tier,
        oddities: evaluation.oddities,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_cannot_be_read_is_not_an_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        assert!(read_requests(&path("llm.jsonl")).unwrap().is_empty());
        assert!(read_wire(&path("wire.jsonl")).unwrap().is_empty());
        std::fs::write(path("llm.jsonl"), b"\xff\n").unwrap();
        assert!(read_requests(&path("llm.jsonl")).is_err());
        // A file is where the folder of the log should be.
        assert!(read_requests(&path("llm.jsonl/llm.jsonl")).is_err());
        assert!(read_wire(&path("llm.jsonl/wire.jsonl")).is_err());
    }
}
