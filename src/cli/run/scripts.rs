//! Reads the scripts of the demo agent and of models before a run begins, so that a typo is reported with its
//! place as the user's error, not as an agent's crash.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::case::Case;
use crate::cli::CliError;
use crate::cli::inputs::Inputs;
use crate::demo::script::Script;
use crate::gateway::script::Script as ModelScript;
use crate::harness::Manifest;
use crate::ids::{TrialRecord, by_case_id, cases_of};
use crate::paths::shown as shown_path;

/// Reads every script that a planned trial would play.
///
/// # Errors
/// Returns all errors in the scripts.
pub fn check(inputs: &Inputs, trials: &[TrialRecord]) -> Result<(), CliError> {
    let mut played = BTreeSet::new();
    for trial in trials.iter().filter(|trial| trial.skip.is_none()) {
        let case = by_case_id(&inputs.cases, &trial.case);
        let manifest = inputs.catalog.get(&trial.harness).ok().map(|entry| &entry.manifest);
        if let (Some(case), Some(manifest)) = (case, manifest.filter(|manifest| is_demo(manifest))) {
            let there = manifest.script_variants().into_iter().filter(|variant| case.script(variant).is_some());
            played.extend(there.map(|variant| case.shown().with_file_name(case.script_name(&variant))));
        }
    }
    let planned = cases_of(trials.iter().filter(|trial| trial.skip.is_none()));
    let is_planned = |case: &&Case| planned.contains(case.id.as_str());
    let models: BTreeSet<_> = inputs.cases.iter().filter(is_planned).filter_map(model_script).collect();
    let errors = played.iter().filter_map(|path| Script::load(path).err());
    let errors: Vec<_> =
        errors.chain(models.iter().filter_map(|path| ModelScript::load(path).err())).flatten().collect();
    if errors.is_empty() { Ok(()) } else { Err(CliError::all(errors)) }
}

/// Returns the path of a case's model script as messages show it.
pub fn model_script(case: &Case) -> Option<PathBuf> {
    case.model_script().map(|path| shown_path(path))
}

/// Returns true if a harness is the built-in agent; other agents may use scripts in other forms.
fn is_demo(manifest: &Manifest) -> bool {
    manifest.command.iter().map(String::as_str).take(2).eq(["{self}", "demo-agent"])
}
