//! Resolves the branches and tags that cases name to commits, once when a run begins, so that every trial uses
//! the same commit.

use crate::case::{Case, WorkspaceSource};
use crate::cli::{CliError, engine};
use crate::environment;
use crate::ids::{TrialRecord, cases_of};
use crate::process;
use crate::run::{Resolved, RunRecord};
use crate::shell::Shell;
use crate::workspace::git;

/// Resolves the revisions of the cases that have trials to run. A revision that cannot be resolved stays as it
/// is: each of its trials tries again, and is errored with the reason.
///
/// # Errors
/// Returns an error if the private folder or the runtime cannot be made.
pub fn resolve(cases: &mut [Case], trials: &[TrialRecord]) -> Result<(), CliError> {
    let planned = cases_of(trials.iter().filter(|trial| trial.skip.is_none()));
    let runs = |case: &Case| planned.contains(case.id.as_str());
    let moves = |case: &Case| match &case.workspace.source {
        WorkspaceSource::Git(source) => !source.is_fixed() && source.commit.is_none(),
        _ => false,
    };
    let mut waiting: Vec<&mut Case> = cases.iter_mut().filter(|case| moves(case) && runs(case)).collect();
    if waiting.is_empty() {
        return Ok(());
    }
    let temporary = engine::temporary()?;
    process::supervise_with(&std::env::current_exe()?);
    let runtime = engine::runtime()?;
    let env = engine::environment();
    for (number, case) in waiting.iter_mut().enumerate() {
        let folder = temporary.path().join(format!("resolve-{number}"));
        std::fs::create_dir(&folder)?;
        let shown = folder.to_string_lossy();
        let env = environment::of_commands(&env, &case.env, &shown, &shown);
        let shell = Shell { folder: folder.clone(), env, ..Shell::default() };
        if let WorkspaceSource::Git(source) = &mut case.workspace.source {
            let found = runtime.block_on(git::resolve(source, &folder.join("clone"), &shell));
            source.commit = found.ok();
        }
    }
    runtime.shutdown_background();
    Ok(())
}

/// Returns the commit of a case's revision.
pub fn resolved(case: &Case) -> Option<Resolved> {
    match &case.workspace.source {
        WorkspaceSource::Git(source) => Some(Resolved { rev: source.rev.clone(), commit: source.commit.clone()? }),
        _ => None,
    }
}

/// Sets the commits that the cases' revisions had when a run began. A case that names another revision now gets
/// none.
pub fn restore(cases: &mut [Case], record: &RunRecord) {
    for case in cases {
        let known = record.case(&case.id).and_then(|known| known.resolved.as_ref());
        if let (WorkspaceSource::Git(source), Some(known)) = (&mut case.workspace.source, known)
            && source.rev == known.rev
            && !source.is_fixed()
        {
            source.commit = Some(known.commit.clone());
        }
    }
}
