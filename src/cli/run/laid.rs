//! Checks what is laid for the agents of a run, before the first of them starts.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::case::Case;
use crate::cli::CliError;
use crate::cli::inputs::Inputs;
use crate::experiment::{Arm, arm_of};
use crate::harness::login::named_in_files;
use crate::ids::{TrialRecord, by_case_id, cases_of};
use crate::overlay;
use crate::own_environment;
use crate::paths;
use crate::plan::shown_cases;
use crate::text::some_of;

/// The maximum number of folders that a note names.
const MAX_NAMES: usize = 5;

/// Refuses trials whose agents would not find what is laid into their home: a variable of the user, which the manifest or the
/// command line (`passed`) passes on, names another folder.
///
/// # Errors
/// Returns an error for the first such trial.
pub fn check_folders(
    inputs: &Inputs,
    trials: &[&TrialRecord],
    arms: &[Arm],
    passed: &[String],
) -> Result<(), CliError> {
    let is_set = |name: &&str| own_environment::var(name).is_some_and(|value| !value.is_empty());
    let set: Vec<&str> = overlay::folder_variables().filter(is_set).collect();
    if set.is_empty() {
        return Ok(());
    }
    let home = own_environment::var("HOME").filter(|home| !home.is_empty());
    let mut seen = HashSet::new();
    for trial in trials.iter().filter(|trial| trial.skip.is_none()) {
        if !seen.insert((&trial.case, &trial.harness, &trial.arm)) {
            continue;
        }
        let case = by_case_id(&inputs.cases, &trial.case);
        let (Some(case), Some(entry)) = (case, inputs.catalog.named(&trial.harness)) else { continue };
        let env = &entry.manifest.env;
        let named = named_in_files(&entry.manifest, home.as_deref().map(Path::new));
        let passes = |name: &str| {
            let of_manifest = env.pass.iter().chain(&named).any(|it| it == name) && !env.set.contains_key(name);
            of_manifest || passed.iter().any(|it| it == name)
        };
        let mut of_user: BTreeSet<String> =
            set.iter().copied().filter(|name| passes(name)).map(str::to_owned).collect();
        if of_user.is_empty() {
            continue;
        }
        let with = arm_of(arms, &trial.arm).map_or_else(|| case.clone(), |arm| arm.case(case));
        // What the case sets replaces what is passed on.
        of_user.retain(|name| !with.env.contains_key(name));
        if let Some(why) = overlay::not_found_by_user(&with.overlay, &entry.manifest, &of_user) {
            return Err(CliError::unreadable(format!(
                "{}: on harness `{}`, the case {why}; unset it, or lay the files into the workspace with `in: project`",
                case.shown().display(),
                trial.harness
            )));
        }
    }
    Ok(())
}

/// Refuses trials whose agents would find files of their case in what their arm lays: the plan of an older version may have
/// them.
///
/// # Errors
/// Returns an error for each such file or folder, at its place.
pub fn check_cases_in_sight(inputs: &Inputs, trials: &[&TrialRecord], arms: &[Arm]) -> Result<(), CliError> {
    let mut errors = Vec::new();
    for arm in arms {
        let is_of_arm = |trial: &&&TrialRecord| {
            trial.skip.is_none() && arm_of(arms, &trial.arm).is_some_and(|it| it.name == arm.name)
        };
        let of_arm = cases_of(trials.iter().filter(is_of_arm).copied());
        let cases: Vec<&Case> = inputs.cases.iter().filter(|case| of_arm.contains(case.id.as_str())).collect();
        errors.extend(shown_cases(arm, &cases));
    }
    if errors.is_empty() { Ok(()) } else { Err(CliError::all(errors)) }
}

/// Returns a note for each skill that is laid without its folders of cases.
pub fn without_evals(inputs: &Inputs, trials: &[TrialRecord], arms: &[Arm]) -> BTreeSet<String> {
    let planned = cases_of(trials);
    let mut notes = BTreeSet::new();
    for case in inputs.cases.iter().filter(|case| planned.contains(case.id.as_str())) {
        let of_arms = arms.iter().flat_map(|arm| arm.skills.iter().flatten());
        for skill in case.overlay.skills.iter().chain(of_arms) {
            let evals: BTreeSet<String> =
                case.evals_in(&skill.folder).iter().map(|part| format!("`{}`", part.display())).collect();
            let what = match evals.len() {
                0 => continue,
                1 => format!("folder {}, which holds cases", some_of(&evals, MAX_NAMES)),
                _ => format!("folders {}, which hold cases", some_of(&evals, MAX_NAMES)),
            };
            notes.insert(format!("the skill {} is laid without its {what}", paths::shown(&skill.folder).display()));
        }
    }
    notes
}
