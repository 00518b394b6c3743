//! `--dry-run`: prints the trials that would run, those that would be skipped and why, and agents that are not
//! installed.

use std::collections::HashSet;
use std::io::Write;

use crate::cli::door::{self, Content};
use crate::cli::{CliError, harness};
use crate::harness::Manifest;
use crate::ids::TrialRecord;
use crate::ids::column_name;
use crate::text::plural;

/// Prints a plan.
pub fn print_plan<'a>(manifests: impl Iterator<Item = &'a Manifest>, trials: &[&TrialRecord]) -> Result<(), CliError> {
    let mut out = door::stdout(Content::Text);
    for cell in trials.chunk_by(|one, other| one.cell() == other.cell()) {
        let Some(trial) = cell.first() else { continue };
        let column = column_name(&trial.harness, &trial.arm);
        match &trial.skip {
            Some(reason) => writeln!(out, "skip  {}  {column}  {reason}", trial.case)?,
            None => writeln!(out, "run   {}  {column}  {} ×", trial.case, cell.len())?,
        }
    }
    let runs = trials.iter().filter(|trial| trial.skip.is_none()).count();
    let count = plural(runs, "trial");
    writeln!(out, "{count}, {} skipped", trials.len() - runs)?;
    let used: HashSet<&str> = trials.iter().map(|trial| trial.harness.as_str()).collect();
    for manifest in manifests.filter(|manifest| used.contains(manifest.name.as_str())) {
        if let Some(missing) = harness::missing_program(manifest) {
            let install = manifest.install.as_deref().map(|line| format!("; install it with: {line}"));
            let install = install.unwrap_or_default();
            writeln!(out, "harness `{}` is not installed: program `{missing}` is not on PATH{install}", manifest.name)?;
        }
    }
    Ok(())
}
