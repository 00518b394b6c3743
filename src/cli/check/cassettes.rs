//! Checks the cassettes of cases: cassettes that a case names, and cassettes recorded beside a case.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::case::Case;
use crate::cli::CliError;
use crate::gateway::cassette;
use crate::gateway::route::CaseModel;
use crate::paths::shown;

/// Reads every cassette.
///
/// # Errors
/// Returns all errors in the cassettes, each with its line.
pub(super) fn check(cases: &[Case]) -> Result<(), CliError> {
    let files: BTreeSet<PathBuf> = cases.iter().flat_map(of_case).collect();
    let problem = |file: &PathBuf| {
        let error = cassette::load(file).err()?;
        let file = shown(file).display().to_string();
        Some(if error.is_missing() {
            CliError::unreadable(format!("there is no cassette {file}; record it with `evals run --gateway record`"))
        } else {
            CliError::unreadable(error)
        })
    };
    let wrong = files.iter().filter_map(problem);
    wrong.reduce(CliError::and).map_or(Ok(()), Err)
}

fn of_case(case: &Case) -> Vec<PathBuf> {
    let named = match &case.model {
        Some(CaseModel::Cassette { file, .. }) => Some(file.clone()),
        Some(CaseModel::Script(_)) | None => None,
    };
    let beside = std::fs::read_dir(case.cassettes()).into_iter().flatten().flatten().map(|entry| entry.path());
    let recorded = beside.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    named.into_iter().chain(recorded).collect()
}
