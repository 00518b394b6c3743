//! The arms of an experiment: from the command line for a new run, and from `run.json` for an existing one.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

use super::RunArgs;
use crate::cli::inputs::{self, Inputs};
use crate::cli::{CliError, terminal};
use crate::experiment::{self, Arm, Experiment, OneOff, Resolver, VariantLayer, Written};
use crate::harness::catalog::{Catalog, Entry, Origin, is_path};
use crate::ids::TrialRecord;
use crate::interaction::{Interaction, PolicyFolder};
use crate::limits::Limits;
use crate::paths;
use crate::run::{ArmRecord, AxisRecord, ExperimentRecord, RunRecord};

/// Reads the experiment that the command line names. Returns `None` if it names none.
///
/// # Errors
/// Returns all errors in the file and in the variants of the command line.
pub fn written(args: &RunArgs) -> Result<Option<Written>, CliError> {
    if args.experiment.is_none() && args.variants.is_empty() {
        return Ok(None);
    }
    let one = |option: &str, values: &[String]| match values {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        several => Err(CliError::unreadable(format!(
            "every variant has one {option}, and {} are named; write `{option}` in the variants",
            several.len()
        ))),
    };
    let (harness, model) = (one("harness", &args.harnesses)?, one("model", &args.models)?);
    let common = common(harness, model);
    experiment::read(args.experiment.as_deref(), &args.variants, &common).map(Some).map_err(CliError::all)
}

/// Returns what all variants have that do not override it: the harness and the model of the command line.
pub fn common(harness: Option<String>, model: Option<String>) -> VariantLayer {
    let harness = harness.map(|harness| match is_path(&harness) {
        true => paths::absolute(Path::new(""), Path::new(&harness)).to_string_lossy().into_owned(),
        false => harness,
    });
    VariantLayer { harness, model, ..VariantLayer::default() }
}

/// Returns the harnesses that the arms name, for the catalog.
pub fn harnesses(written: &Written) -> Vec<String> {
    let named: BTreeSet<&String> = written.arms.iter().filter_map(|arm| arm.layer.harness.as_ref()).collect();
    // An unknown name is reported at its place in the experiment.
    named.into_iter().filter(|name| is_path(name)).cloned().collect()
}

/// Returns the paths of the cases from the command line, or else from the experiment.
///
/// # Errors
/// Returns an error if neither names any, and the project has no folder of cases.
pub fn cases(args: &RunArgs, written: Option<&Written>) -> Result<Vec<PathBuf>, CliError> {
    match written {
        Some(written) if args.paths.is_empty() && !written.cases.is_empty() => Ok(written.cases.clone()),
        _ => inputs::cases_or_default(&args.paths),
    }
}

/// Resolves an experiment with the manifests and policies of the command, and applies the options of the command line
/// to every arm.
///
/// # Errors
/// Returns all errors, each at its place.
pub fn resolved(written: Written, inputs: &Inputs, args: &RunArgs) -> Result<Experiment, CliError> {
    let own = written.arms.iter().any(|arm| arm.layer.harness.is_none());
    let by_path = harnesses(&written);
    let names = by_path.iter().filter_map(|path| Some(&of_path(&inputs.catalog, path)?.manifest.name));
    let shadowed = names.filter(|_| own).find(|name| inputs.cases.iter().any(|case| case.harnesses.contains(name)));
    if let Some(name) = shadowed {
        return Err(CliError::unreadable(format!(
            "a manifest of the experiment has the name `{name}`, which is also that of a harness of its cases; give it \
             a name of its own"
        )));
    }
    let mut experiment = resolve(written, &inputs.catalog, &inputs::named_policies()?)?;
    if experiment.arms.len() < 2 && !args.aa {
        let name = experiment.baseline().map(|arm| arm.name.as_str()).unwrap_or_default();
        terminal::note(format_args!("note: the experiment has only the variant `{name}`, so it compares nothing"));
    }
    let varies = |key: &str| experiment.vary.iter().any(|known| known == key);
    if args.interaction.is_some() && varies("interaction") {
        return Err(CliError::unreadable(
            "--interaction sets one policy for all variants, but the experiment varies it",
        ));
    }
    if !args.limits.is_empty() && varies("limits") {
        return Err(CliError::unreadable(
            "--limit sets a limit for all variants, but the experiment varies the limits",
        ));
    }
    limit(&mut experiment.arms, &args.limits)?;
    Ok(experiment)
}

/// Resolves an experiment with manifests and policies.
///
/// # Errors
/// Returns all errors, each at its place.
pub fn resolve(written: Written, catalog: &Catalog, policies: &PolicyFolder) -> Result<Experiment, CliError> {
    let by_path: Vec<(String, String)> = harnesses(&written)
        .into_iter()
        .filter_map(|path| Some((of_path(catalog, &path)?.manifest.name.clone(), path)))
        .collect();
    let is_shadowed = |name: &str, written: &str| by_path.iter().any(|(known, path)| known == name && path != written);
    let harness = |written: &str| {
        let entry = match is_path(written) {
            true => of_path(catalog, written).ok_or_else(|| {
                "another manifest of the experiment has the same `name`; give each manifest a name of its own"
                    .to_owned()
            })?,
            false => catalog.get(written).map_err(|unknown| unknown.help)?,
        };
        let name = entry.manifest.name.clone();
        if is_shadowed(&name, written) {
            return Err(format!(
                "another manifest of the experiment has the name `{name}` too; give each manifest a name of its own"
            ));
        }
        Ok(name)
    };
    experiment::resolve(written, &Resolver { policies, harness: &harness }).map_err(CliError::all)
}

/// Returns the entry of a manifest that is given by its path.
fn of_path<'a>(catalog: &'a Catalog, path: &str) -> Option<&'a Entry> {
    let is_it = |origin: &Origin| match origin {
        Origin::File(file) => paths::absolute(Path::new(""), file) == Path::new(path),
        Origin::BuiltIn => false,
    };
    catalog.entries().find(|entry| is_it(&entry.origin))
}

/// Sets the limits of the command line for every arm that sets limits of its own.
fn limit(arms: &mut [Arm], asked: &[String]) -> Result<(), CliError> {
    let mut limits = Limits::default();
    for text in asked {
        let (key, value) = text.split_once('=').unwrap_or((text, ""));
        limits.set(key, value).map_err(|error| CliError::unreadable(format!("`--limit {text}`: {error}")))?;
    }
    arms.iter_mut().for_each(|arm| arm.limit(limits));
    Ok(())
}

/// Reads and resolves the experiment of an existing run as it is now. The arms are in the order of the run.
///
/// # Errors
/// Returns an error if the experiment cannot be read any more, or lacks an arm of the run.
pub fn again(record: &RunRecord, catalog: &Catalog) -> Result<Vec<Arm>, CliError> {
    let Some(known) = &record.experiment else { return Ok(Vec::new()) };
    let one_offs: Vec<OneOff> = known.variants.iter().filter_map(|text| text.parse().ok()).collect();
    let common = common(known.harness.clone(), known.model.clone());
    let written = experiment::read(known.file.as_deref(), &one_offs, &common).map_err(|errors| {
        let of_run = format!("restore the files of the experiment of run {}", record.run);
        CliError::unreadable(of_run).and(CliError::all(errors))
    })?;
    let mut experiment = resolve(written, catalog, &inputs::named_policies()?)?;
    limit(&mut experiment.arms, &record.options.limits)?;
    let arms = record.arms.iter().map(|known| {
        experiment.arms.iter().find(|arm| arm.name == known.name).cloned().ok_or_else(|| {
            CliError::unreadable(format!(
                "the experiment of run {} has no variant `{}` any more",
                record.run, known.name
            ))
        })
    });
    arms.collect()
}

/// Returns the record of an experiment for `run.json`.
pub fn record(experiment: &Experiment, args: &RunArgs) -> ExperimentRecord {
    ExperimentRecord {
        file: experiment.file.clone(),
        variants: args.variants.iter().map(|one| format!("{}={}", one.name, one.text)).collect(),
        harness: args.harnesses.first().cloned(),
        model: args.models.first().cloned(),
        description: experiment.description.clone(),
        baseline: experiment.baseline().map(|arm| arm.name.clone()).unwrap_or_default(),
        vary: experiment.vary.clone(),
        axes: experiment
            .axes
            .iter()
            .map(|(key, labels)| AxisRecord { key: key.clone(), labels: labels.clone() })
            .collect(),
    }
}

/// Returns the records of the arms that have trials.
pub fn records(arms: &[Arm], trials: &[TrialRecord]) -> Vec<ArmRecord> {
    let of = |arm: &Arm| {
        let of_arm = |trial: &&TrialRecord| experiment::without_copy(&trial.arm) == arm.name || trial.arm == arm.name;
        let harnesses: BTreeSet<&str> = trials.iter().filter(of_arm).map(|trial| trial.harness.as_str()).collect();
        let only = harnesses.first().filter(|_| harnesses.len() == 1).map(|name| (*name).to_owned());
        (!harnesses.is_empty()).then(|| ArmRecord {
            name: arm.name.clone(),
            harness: only,
            model: arm.layer.model.clone(),
            digest: arm.digest.clone(),
            overrides: arm.resolved.clone(),
            sources: arm.sources.clone(),
            labels: arm.labels.iter().cloned().collect(),
            mixed: false,
            same_as: BTreeMap::new(),
            lacks_skills: BTreeMap::new(),
        })
    };
    arms.iter().filter_map(of).collect()
}

/// Returns a seed for the order of an experiment's trials, if the user gives none.
pub fn drawn_seed() -> u64 {
    // A small number is easier to type again.
    RandomState::new().build_hasher().finish() & 0xffff_ffff
}

/// Returns the policies that a case may be run with: its own, or the policies of the arms that override it.
pub fn policies<'a>(case: &'a Interaction, arms: &'a [Arm]) -> Vec<&'a Interaction> {
    let of_arms: Vec<&Interaction> = arms.iter().map(|arm| arm.layer.interaction.as_ref().unwrap_or(case)).collect();
    if of_arms.is_empty() { vec![case] } else { of_arms }
}

/// Prints the order of the trials of an experiment.
pub fn tell_order(record: &RunRecord) {
    if let (true, Some(seed)) = (record.experiment.is_some() || record.options.aa, record.options.seed) {
        terminal::note(format_args!(
            "note: the trials of each case are interleaved in an order drawn from seed {seed}"
        ));
    }
}
