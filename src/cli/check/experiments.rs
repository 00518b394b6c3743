//! Checks experiment files: their arms are resolved and planned, as `evals run --experiment` would.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::cli::run::arms;
use crate::cli::{CliError, inputs, terminal};
use crate::experiment::{self, VariantLayer};
use crate::plan::{PlanError, PlanRequest, arm_doubts, plan};
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
    let (mut warnings, mut errors) = (BTreeSet::new(), Vec::new());
    for file in files {
        for base in &base {
            match one(file, base) {
                Ok(found) => warnings.extend(found),
                Err(error) => errors.push(error),
            }
        }
    }
    for warning in warnings {
        terminal::note(format_args!("warning: {warning}"));
    }
    errors.into_iter().reduce(CliError::and).map_or(Ok(()), Err)
}

/// Checks one experiment. Returns warnings about its arms.
fn one(file: &Path, base: &VariantLayer) -> Result<Vec<String>, CliError> {
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
        return arms::resolve(written, &catalog, &inputs::named_policies()?).map(|_| Vec::new());
    }
    let inputs = inputs::read(&cases, &harnesses)?;
    let experiment = arms::resolve(written, &inputs.catalog, &inputs::named_policies()?)?;
    let asked = PlanRequest { arms: experiment.arms, ..PlanRequest::default() };
    match plan(&inputs.cases, &inputs.catalog, &asked) {
        Ok(_) => {
            let doubts = arm_doubts::of_plan(&inputs.cases, &inputs.catalog, &asked);
            Ok(doubts.iter().map(|doubt| format!("{}: {doubt}", file.display())).collect())
        }
        Err(PlanError::Arms(errors)) => Err(CliError::all(errors)),
        Err(error) => Err(CliError::unreadable(format!("{}: {error}", file.display()))),
    }
}
