//! Repositories, revisions and folders that cases name as their workspace, looked up on this machine.

use std::collections::{HashMap, HashSet};

use crate::case::{Case, WorkspaceSource};
use crate::cli::{CliError, engine};
use crate::environment;
use crate::process;
use crate::shell::Shell;
use crate::workspace::git::{self, Lacking};
use crate::workspace::git_source::GitRepository;
use crate::yaml::Step;

/// Looks up the repositories of this machine that cases name. Each source is looked up once with each environment of the
/// cases.
///
/// # Errors
/// Returns an error for each repository, revision and folder that does not exist.
pub fn check(cases: &[Case]) -> Result<(), CliError> {
    let sources = cases.iter().filter_map(|case| match &case.workspace.source {
        WorkspaceSource::Git(source) if matches!(source.repository, GitRepository::Path(_)) => Some((case, source)),
        _ => None,
    });
    let sources: Vec<_> = sources.collect();
    if sources.is_empty() {
        return Ok(());
    }
    let temporary = engine::temporary()?;
    process::supervise_with(&std::env::current_exe()?);
    let runtime = engine::runtime()?;
    let folder = temporary.path().to_owned();
    let shown = folder.to_string_lossy().into_owned();
    let mut errors = Vec::new();
    let mut known: HashMap<_, Option<Lacking>> = HashMap::new();
    // Several cases may have their workspace from one place in `suite.yaml`.
    let mut reported = HashSet::new();
    for (case, source) in sources {
        let found = known.entry((source, &case.env)).or_insert_with(|| {
            let env = environment::of_commands(&engine::environment(), &case.env, &shown, &shown);
            let shell = Shell { folder: folder.clone(), env, ..Shell::default() };
            runtime.block_on(git::lacking(source, &shell))
        });
        let Some(lacking) = found else { continue };
        let steps = ["workspace", "git", lacking.key].map(Step::Key);
        let error = case.error_at(&steps, &lacking.what);
        if reported.insert((error.path().to_owned(), error.place(), lacking.what.clone())) {
            errors.push(error);
        }
    }
    runtime.shutdown_background();
    if errors.is_empty() { Ok(()) } else { Err(CliError::all(errors)) }
}
