//! Parity: whether an agent does the same under the engine's protocol as with its own one-shot command. Each
//! case is run both ways, and the resulting workspaces and tool calls are compared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::case::Case;
use crate::gateway::route::Route;
use crate::grade::GradeRecord;
use crate::grader::Kind;
use crate::harness::Adapter;
use crate::harness::{Capabilities, Manifest, ModelRoute, ModelVia, Parity, PromptVia, UsageConvention};
use crate::harness::{SystemPromptRoute, SystemPromptVia};
use crate::ids::TrialRecord;
use crate::interaction::Interaction;
use crate::regular;
use crate::result::TrialResult;
use crate::run::RunError;
use crate::sandbox;
use crate::trace::{Body, CallStatus, jsonl};
use crate::trial::{self, Attempt, Engine, Outcome, TrialError};

/// The result of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Same {
    /// Both sides are equal.
    #[serde(rename = "same")]
    Equal,
    /// The sides differ.
    Differs,
    /// The sides cannot be compared.
    Unknown,
}

impl Same {
    /// Returns the result as a word.
    pub fn word(self) -> &'static str {
        match self {
            Same::Equal => "same",
            Same::Differs => "differs",
            Same::Unknown => "not compared",
        }
    }
}

/// The comparison of one aspect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Compared {
    /// The result.
    pub same: Same,
    /// The compared values, or why they could not be compared.
    pub text: String,
}

/// The comparison of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CaseParity {
    /// The id of the case.
    pub case: String,
    /// The results of the graders of the workspace.
    pub outcome: Compared,
    /// The kinds of the executed calls, in order.
    pub tools: Compared,
    /// The folder of both trials: `inside` and `outside` below it.
    pub folder: String,
}

/// The output of `evals harness parity`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParityReport {
    /// The name of the harness.
    pub harness: String,
    /// The program outside `evals` that the harness was compared with: a harness, or a command.
    pub outside: String,
    /// The comparison of each case.
    pub cases: Vec<CaseParity>,
}

/// Returns the exit code: 1 if anything differs, 3 if an outcome could not be compared or there is no case, else 0.
pub fn exit_code(report: &ParityReport) -> u8 {
    let parts = |case: &CaseParity| [case.outcome.same, case.tools.same];
    if report.cases.iter().any(|case| parts(case).contains(&Same::Differs)) {
        1
    } else if report.cases.is_empty() || report.cases.iter().any(|case| case.outcome.same == Same::Unknown) {
        3
    } else {
        0
    }
}

/// Returns the agent's own command as a harness: with the same environment and home, without the protocol.
pub fn outside(manifest: &Manifest, parity: &Parity) -> Manifest {
    let mut outside = Manifest {
        adapter: Adapter::OutputOnly,
        command: parity.command.clone(),
        prompt_via: PromptVia::Argument,
        capabilities: Capabilities::default(),
        usage: UsageConvention::default(),
        agent_info: None,
        ..manifest.clone()
    };
    if let Some(gateway) = &mut outside.gateway {
        // The gateway's command starts the form that runs inside.
        gateway.command.clear();
    }
    if outside.system_prompt.via == SystemPromptVia::SessionMeta {
        outside.system_prompt = SystemPromptRoute::default();
    }
    // Outside, the model cannot be set over the protocol, nor by a placeholder in the command that runs inside.
    let has_place = |word: &String| word.contains("{model}");
    let route = |via| ModelRoute { via, flag: None, env: None, default: manifest.model.default.clone() };
    outside.model = match &manifest.model {
        _ if parity.command.iter().any(has_place) => route(ModelVia::Flag),
        ModelRoute { via: ModelVia::Env, .. } | ModelRoute { via: ModelVia::Flag, flag: Some(_), .. } => {
            return outside;
        }
        _ if manifest.env.set.values().any(has_place) => route(ModelVia::Env),
        _ => ModelRoute::default(),
    };
    outside
}

/// The reason why a case was not compared.
#[derive(Debug, thiserror::Error)]
pub enum ParityError {
    /// The user interrupted the comparison.
    #[error("interrupted")]
    Interrupted,
    /// The engine itself failed.
    #[error(transparent)]
    Trial(#[from] TrialError),
}

/// Runs a case both ways and compares the results.
///
/// # Errors
/// Returns an error if the user interrupts the comparison, or the engine itself fails.
pub async fn compare(
    engine: &Engine,
    case: &Arc<Case>,
    inside: &Arc<Manifest>,
    outside: &Arc<Manifest>,
    model: Option<&str>,
    folder: &Path,
) -> Result<CaseParity, ParityError> {
    let one = run(engine, case, inside, model, &folder.join("inside")).await?;
    let other = run(engine, case, outside, model, &folder.join("outside")).await?;
    Ok(CaseParity {
        case: case.id.clone(),
        outcome: outcomes(&one.result, &other.result),
        tools: sequences(&one, &other),
        folder: folder.display().to_string(),
    })
}

/// A finished trial, of the two that are compared.
struct FinishedTrial {
    result: TrialResult,
    /// The kinds of the executed calls. Absent if calls are not visible.
    calls: Option<Vec<String>>,
}

async fn run(
    engine: &Engine,
    case: &Arc<Case>,
    manifest: &Arc<Manifest>,
    model: Option<&str>,
    folder: &Path,
) -> Result<FinishedTrial, ParityError> {
    let model = model.filter(|_| manifest.model_selection()).map(str::to_owned);
    let sandbox = sandbox::kind(engine.sandbox, case.sandbox.as_ref(), manifest.sandbox.as_ref());
    let trial = TrialRecord::alone(&case.id, &manifest.name, model, sandbox);
    let attempt = Attempt {
        // The agent's own command asks no permission, so everything is allowed inside, too.
        interaction: Interaction::AutoApprove,
        // Both sides get the case's own model, if it has one.
        route: Route::of(case.model.as_ref(), None, PathBuf::new),
        ..Attempt::alone(case.clone(), manifest.clone(), trial, folder.to_owned())
    };
    match trial::run(engine, &attempt).await? {
        Outcome::Interrupted => Err(ParityError::Interrupted),
        Outcome::Done(result) => {
            let seen = manifest.seen().tracing;
            let calls = if seen { calls(&folder.join("trace.jsonl")).map_err(TrialError::from)? } else { None };
            Ok(FinishedTrial { result: *result, calls })
        }
    }
}

/// Returns the kinds of the calls that the main agent executed, in the order of their announcement.
fn calls(trace: &Path) -> Result<Option<Vec<String>>, RunError> {
    let Ok(file) = regular::open(trace) else { return Ok(None) };
    let unreadable =
        |error: jsonl::ReadError| RunError::Malformed { path: trace.to_owned(), message: error.to_string() };
    let mut reader = jsonl::Reader::new(std::io::BufReader::new(file)).map_err(unreadable)?;
    let (mut calls, mut left) = (Vec::new(), Vec::new());
    while let Some(event) = reader.next_event().map_err(unreadable)? {
        match event.body {
            Body::ToolCall(call) if event.parent.is_none() => calls.push((call.call, call.kind.to_string())),
            Body::ToolResult(result) if matches!(result.status, CallStatus::Denied | CallStatus::Cancelled) => {
                left.push(result.call);
            }
            _ => {}
        }
    }
    Ok(Some(calls.into_iter().filter(|(call, _)| !left.contains(call)).map(|(_, kind)| kind).collect()))
}

/// Compares the results of the graders of the workspace, one by one.
fn outcomes(inside: &TrialResult, outside: &TrialResult) -> Compared {
    for (which, result) in [("inside", inside), ("outside", outside)] {
        if let Some(error) = &result.error {
            return unknown(format!("the {which} trial was errored: {}", error.message));
        }
    }
    let judged = |result: &TrialResult| -> Vec<(String, Option<bool>)> {
        let of_workspace = |grade: &&GradeRecord| Kind::needs_of(&grade.grader).grades_workspace();
        result.grades.iter().filter(of_workspace).map(|grade| (grade.name.clone(), grade.passed)).collect()
    };
    let (one, mut other) = (judged(inside), judged(outside));
    if one.is_empty() {
        return unknown("the case has no grader that looks at the workspace".to_owned());
    }
    let word = |passed: Option<bool>| match passed {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "ungraded",
    };
    let (mut differences, mut unknowns) = (Vec::new(), Vec::new());
    for (name, inside) in &one {
        // A script names its grades itself, and may return different names the second time.
        let found = other.iter().position(|(known, _)| known == name).map(|at| other.remove(at).1);
        match (inside, found) {
            (Some(inside), Some(Some(outside))) if *inside == outside => {}
            (Some(inside), Some(Some(outside))) => {
                differences.push(format!(
                    "`{name}` {} inside and {} outside",
                    word(Some(*inside)),
                    word(Some(outside))
                ));
            }
            (inside, Some(outside)) => {
                unknowns.push(format!("`{name}` is {} inside and {} outside", word(*inside), word(outside)));
            }
            (_, None) => unknowns.push(format!("`{name}` is graded only inside")),
        }
    }
    unknowns.extend(other.iter().map(|(name, _)| format!("`{name}` is graded only outside")));
    if differences.is_empty() && !unknowns.is_empty() {
        return unknown(unknowns.join("; "));
    }
    if differences.is_empty() {
        let told: Vec<String> = one.iter().map(|(name, passed)| format!("`{name}` {}", word(*passed))).collect();
        return Compared { same: Same::Equal, text: told.join(", ") };
    }
    // A known difference decides the result, even if other results are unknown.
    differences.extend(unknowns);
    Compared { same: Same::Differs, text: differences.join("; ") }
}

fn sequences(inside: &FinishedTrial, outside: &FinishedTrial) -> Compared {
    if let Some(which) = [("inside", inside), ("outside", outside)].iter().find(|(_, done)| done.result.error.is_some())
    {
        return unknown(format!("the {} trial was errored", which.0));
    }
    match (&inside.calls, &outside.calls) {
        (Some(one), Some(other)) if one == other => Compared { same: Same::Equal, text: list(one) },
        (Some(one), Some(other)) => {
            Compared { same: Same::Differs, text: format!("inside {}; outside {}", list(one), list(other)) }
        }
        (None, _) => unknown("the inside trial shows no calls".to_owned()),
        (_, None) => unknown("the outside trial shows no calls".to_owned()),
    }
}

fn list(calls: &[String]) -> String {
    if calls.is_empty() { "no call".to_owned() } else { calls.join(", ") }
}

fn unknown(text: String) -> Compared {
    Compared { same: Same::Unknown, text }
}
