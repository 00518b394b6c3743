//! Tests a written case in fresh workspaces, as the audit does: it must fail if nothing is done, and pass with its patch.

use std::path::Path;
use std::sync::Arc;

use super::laboratory::toolchains;
use crate::audit::Agent;
use crate::case::{Case, LoadContext, Oracle, load};
use crate::grade::GradeRecord;
use crate::harness::{Adapter, Manifest};
use crate::sandbox::{Kind, Network, Settings};
use crate::trial::audited::{Played, applies, attempt_of, play};
use crate::trial::{Engine, TrialError};

/// The result of the test.
pub enum Sound {
    /// The case is sound.
    Yes,
    /// The case is not sound, for this reason.
    No(String),
    /// The patch does not solve the case in a fresh workspace, for this reason.
    Unsolved(String),
    /// The user interrupted the test.
    Interrupted,
}

/// Tests a case. `needs` are the programs that its commands start.
///
/// # Errors
/// Returns an error if the engine itself fails.
pub async fn test(engine: &Engine, file: &Path, needs: &[String], is_confined: bool) -> Result<Sound, TrialError> {
    let loaded = load(&[file.to_owned()], &LoadContext::default());
    let mut case: Case = match loaded.map(|cases| cases.into_iter().next()) {
        Ok(Some(case)) => case,
        Ok(None) => return Ok(Sound::No("the case was not found".to_owned())),
        Err(errors) => {
            let why: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Ok(Sound::No(format!("the case cannot be read: {}", why.join("; "))));
        }
    };
    if is_confined {
        let mount = toolchains(needs, &engine.env);
        let kind = Some(Kind::Bwrap);
        case.sandbox = Some(Settings { kind, network: Some(Network::None), mount, ..Settings::default() });
    }
    let Some(Oracle::Patch(patch)) = case.oracle.clone() else {
        return Ok(Sound::No("the case has no patch".to_owned()));
    };
    let case = Arc::new(case);
    for agent in [Agent::Null, Agent::Oracle] {
        let is_solution = matches!(agent, Agent::Oracle);
        let mut manifest = Manifest::bare(Adapter::OutputOnly);
        agent.word().clone_into(&mut manifest.name);
        let attempt = attempt_of(&case, manifest, std::path::PathBuf::new());
        let played = match agent {
            Agent::Oracle => play(engine, &attempt, applies(engine, &patch), None).await?,
            Agent::Null | Agent::Vandal => play(engine, &attempt, |_| Ok(()), None).await?,
        };
        let result = match played {
            Played::Graded(result) => result,
            Played::NotReady(why) => return Ok(Sound::No(format!("in a fresh workspace {why}"))),
            Played::Interrupted => return Ok(Sound::Interrupted),
        };
        if result.verdict != agent.must() {
            let reasons: Vec<&str> = result.grades.iter().map(|grade: &GradeRecord| grade.reason.as_str()).collect();
            let (agent, verdict) = (agent.word(), result.verdict.word());
            let why = format!("in a fresh workspace the agent `{agent}` came to {verdict}: {}", reasons.join("; "));
            return Ok(if is_solution { Sound::Unsolved(why) } else { Sound::No(why) });
        }
    }
    Ok(Sound::Yes)
}
