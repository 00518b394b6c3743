//! Checks experiment files: their arms are resolved and planned, as `evals run --experiment` would.

use std::path::{Path, PathBuf};

use crate::cli::run::arms;
use crate::cli::{CliError, inputs};
use crate::experiment::{self, VariantLayer};
use crate::plan::{PlanError, PlanRequest, plan};
use crate::project;

/// Checks experiments, with each harness of the command line if it names any.
///
/// # Errors
/// Returns all errors in any of them and in their cases.
pub fn check(files: &[PathBuf], harnesses: &[String]) -> Result<(), CliError> {
    let mut base: Vec<_> = harnesses.iter().map(|name| arms::common(Some(name.clone()), None)).collect();
    if base.is_empty() {
        base.push(VariantLayer::default());
    }
    let errors = files.iter().flat_map(|file| base.iter().filter_map(move |base| one(file, base).err()));
    errors.reduce(CliError::and).map_or(Ok(()), Err)
}

fn one(file: &Path, base: &VariantLayer) -> Result<(), CliError> {
    let written = experiment::read(Some(file), &[], base).map_err(CliError::all)?;
    let default = project::path(inputs::CASES);
    let cases = match written.cases.as_slice() {
        [] if default.is_dir() => vec![default],
        cases => cases.to_vec(),
    };
    let harnesses = arms::harnesses(&written);
    if cases.is_empty() {
        // Its cases are named when it is run.
        let (catalog, _) = inputs::catalog(&harnesses)?;
        return arms::resolve(written, &catalog, &inputs::named_policies()?).map(|_| ());
    }
    let inputs = inputs::read(&cases, &harnesses)?;
    let experiment = arms::resolve(written, &inputs.catalog, &inputs::named_policies()?)?;
    let asked = PlanRequest { arms: experiment.arms, ..PlanRequest::default() };
    match plan(&inputs.cases, &inputs.catalog, &asked) {
        Ok(_) => Ok(()),
        Err(PlanError::Arms(errors)) => Err(CliError::all(errors)),
        Err(error) => Err(CliError::unreadable(format!("{}: {error}", file.display()))),
    }
}
