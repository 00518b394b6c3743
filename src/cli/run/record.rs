//! The content of `run.json`: the plan, digests, manifests and options, without secrets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use super::{RunArgs, arms, auto, commits, gateway};
use crate::case::Case;
use crate::case::digest::file_digest;
use crate::cli::CliError;
use crate::cli::engine::default_jobs;
use crate::cli::inputs::Inputs;
use crate::cli::snapshot::during_run::Mode;
use crate::experiment::Experiment;
use crate::ids::{TrialRecord, by_case_id, cases_of, trials_by_case};
use crate::interaction::Interaction;
use crate::judge::Chosen;
use crate::project;
use crate::run::{CaseRecord, HarnessRecord, PriceRecord, RunOptions, RunRecord, names};
use crate::secrets::Masker;

/// The name of the policy that asks a person, as used in the record.
const MANUAL: &str = "manual";

/// Makes the record of a new run.
///
/// # Errors
/// Returns an error if a file of a case cannot be read.
pub fn of(
    args: &RunArgs,
    inputs: &Inputs,
    trials: Vec<TrialRecord>,
    experiment: Option<&Experiment>,
) -> Result<RunRecord, CliError> {
    let used = cases_of(&trials);
    let mut cases = Vec::new();
    for case in inputs.cases.iter().filter(|case| used.contains(case.id.as_str())) {
        cases.push(case_record(case, args.interaction.as_ref())?);
    }
    let names: BTreeSet<&str> = trials.iter().map(|trial| trial.harness.as_str()).collect();
    let harnesses = names.into_iter().filter_map(|name| inputs.catalog.named(name));
    let mut record = RunRecord {
        prices: Some(PriceRecord::now()),
        label: args.label.clone(),
        cases,
        harnesses: harnesses.map(|entry| HarnessRecord::of(&entry.manifest, entry.origin.to_string())).collect(),
        experiment: experiment.map(|it| arms::record(it, args)),
        arms: experiment.map(|it| arms::records(&it.arms, &trials)).unwrap_or_default(),
        trials,
        options: RunOptions {
            jobs: args.jobs.map_or_else(default_jobs, usize::from),
            keep_workspace: args.keep_workspace.unwrap_or_default(),
            interaction: args.interaction.as_ref().map(Interaction::to_text),
            limits: args.limits.clone(),
            retries: args.retries,
            max_cost: args.max_cost,
            max_time: args.max_time,
            fail_fast: args.fail_fast,
            fail_under: args.fail_under,
            sandbox: args.sandbox,
            env: args.env.clone(),
            env_not_passed: Vec::new(),
            allow_mounts: args.allow_mounts,
            looks: auto::looks(args.trials),
            judges: Chosen::default(),
            gateway: args.gateway.mode,
            enforce_model: args.gateway.enforce_model,
            gateway_timing: args.gateway.gateway_timing,
            aa: args.aa,
            snapshot: args.snapshot,
            seed: args.seed.or_else(|| (experiment.is_some() || args.aa).then(arms::drawn_seed)),
        },
        ..RunRecord::blank()
    };
    let planned = record.trials.iter().filter(|trial| trial.skip.is_none());
    let of_case = |id: &str| record.case(id).is_some_and(|case| case.interaction == MANUAL);
    // The command line overrides the arms.
    let arms = experiment.filter(|_| args.interaction.is_none());
    let manual = |trial: &TrialRecord| {
        let of_arm = arms.and_then(|it| it.arm(&trial.arm)?.layer.interaction.as_ref());
        of_arm.map_or_else(|| of_case(&trial.case), |policy| *policy == Interaction::Manual)
    };
    record.manual = planned.clone().any(manual);
    record_judged_by(&mut record, &inputs.cases, &|_| true)?;
    let secrets = experiment.iter().flat_map(|it| &it.arms).flat_map(|arm| arm.secrets.clone()).collect::<Vec<_>>();
    begin(&mut record);
    mask_with(&mut record, &secrets);
    Ok(record)
}

/// Records digests of further files that the verdicts depend on, of the cases of which `which` returns true.
///
/// # Errors
/// Returns an error if one of the files cannot be read.
pub fn record_judged_by(record: &mut RunRecord, cases: &[Case], which: &dyn Fn(&str) -> bool) -> Result<(), CliError> {
    let accepts = record.options.snapshot == Some(Mode::Update);
    let planned = trials_by_case(record.trials.iter().filter(|trial| trial.skip.is_none()));
    for known in record.cases.iter_mut().filter(|known| which(&known.id)) {
        let Some(case) = by_case_id(cases, &known.id) else { continue };
        let of_case = planned.get(&*known.id).map(Vec::as_slice).unwrap_or_default();
        // Files that the run itself accepts are not its inputs.
        let snapshots = of_case.iter().filter(|_| !accepts);
        let mut files = case.judged_by(snapshots.map(|trial| (&*trial.harness, trial.arm_of())))?;
        files.extend(gateway::played_files(case, record.options.gateway, of_case.iter().copied())?);
        known.judged_by = digests(files, case)?;
    }
    Ok(())
}

fn digests(files: BTreeSet<PathBuf>, case: &Case) -> Result<BTreeMap<PathBuf, String>, CliError> {
    let digest = |file: PathBuf| match file_digest(&file) {
        Ok(digest) => Ok((file, digest)),
        Err(error) => {
            let (shown, file) = (case.shown().display().to_string(), file.display());
            Err(CliError::unreadable(format!(
                "{shown}: {file}, which is used to grade its trials, cannot be read: {error}"
            )))
        }
    };
    files.into_iter().map(digest).collect()
}

/// Returns true if a grader of a case depends on a file that has changed since the run began.
pub fn is_judged_by_others(known: &CaseRecord, case: &Case) -> Result<bool, CliError> {
    let files =
        known.judged_by.keys().filter(|file| case.is_graded_by(file) || case.is_played(file)).cloned().collect();
    let now = digests(files, case)?;
    Ok(now.iter().any(|(file, digest)| known.judged_by.get(file) != Some(digest)))
}

/// Sets id, start time and command line, and redacts free text.
pub fn begin(record: &mut RunRecord) {
    let now = jiff::Timestamp::now();
    record.run = names::new_run_id(now);
    record.started = now.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
    env!("CARGO_PKG_VERSION").clone_into(&mut record.evals);
    (record.digests, record.ends, record.replaces) = (true, true, None);
    record.project = Some(project::root().to_path_buf());
    record.argv = std::env::args().skip(1).collect();
    mask(record);
}

/// Redacts the secrets of the environment and of the manifests in all free text.
pub(super) fn mask(record: &mut RunRecord) {
    mask_with(record, &[]);
}

/// Redacts also these secrets, given by name and value.
pub(super) fn mask_with(record: &mut RunRecord, more: &[(String, String)]) {
    let mut env: Vec<(String, String)> = crate::own_environment::texts().into_iter().collect();
    env.extend(more.iter().cloned());
    let manifests = record.harnesses.iter().map(|harness| &harness.manifest);
    env.extend(manifests.clone().flat_map(|manifest| manifest.env.set.clone()));
    let secret: Vec<String> = manifests.flat_map(|manifest| manifest.env.secret.clone()).collect();
    let secret: Vec<String> = secret.into_iter().chain(more.iter().map(|(name, _)| name.clone())).collect();
    let masker = Masker::of_env(env.iter().map(|(name, value)| (name.as_str(), value.as_str())), &secret);
    if masker.is_empty() {
        return;
    }
    let hide = |text: &mut String| {
        if let Cow::Owned(masked) = masker.mask(text) {
            *text = masked;
        }
    };
    let prices = record.prices.iter_mut().flat_map(|prices| &mut prices.origin);
    record.argv.iter_mut().chain(&mut record.label).chain(prices).for_each(hide);
    if let Some(experiment) = &mut record.experiment {
        experiment.variants.iter_mut().chain(&mut experiment.description).for_each(hide);
    }
    for arm in &mut record.arms {
        arm.overrides.values_mut().for_each(|value| hide_in(value, &hide));
    }
    for HarnessRecord { manifest, .. } in &mut record.harnesses {
        manifest.command.iter_mut().chain(&mut manifest.version).for_each(hide);
        manifest.env.set.values_mut().chain(manifest.files.values_mut()).for_each(hide);
        if let Some(route) = &mut manifest.gateway {
            route.command.iter_mut().chain(&mut route.args).for_each(hide);
            route.env.values_mut().chain(route.files.values_mut()).for_each(hide);
        }
        manifest.description.iter_mut().chain(&mut manifest.install).for_each(hide);
        manifest.sandbox.iter_mut().flat_map(|sandbox| &mut sandbox.command).for_each(hide);
    }
}

/// Redacts the secrets in every text of a value.
fn hide_in(value: &mut Value, hide: &impl Fn(&mut String)) {
    match value {
        Value::String(text) => hide(text),
        Value::Array(list) => list.iter_mut().for_each(|value| hide_in(value, hide)),
        Value::Object(map) => map.values_mut().for_each(|value| hide_in(value, hide)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Makes the current record of a case, for `run.json`.
///
/// # Errors
/// Returns an error if a file of the case cannot be read.
pub fn case_record(case: &Case, interaction: Option<&Interaction>) -> Result<CaseRecord, CliError> {
    let unreadable = |error| {
        let shown = case.shown().display();
        CliError::unreadable(format!("{shown}: a file of case `{}` cannot be read: {error}", case.id))
    };
    let digest = case.digest().map_err(unreadable)?;
    let workspace = case.workspace_digest().map_err(unreadable)?;
    let interaction = interaction.unwrap_or(&case.interaction);
    let played = case.played_digest(interaction).map_err(unreadable)?;
    Ok(CaseRecord {
        id: case.id.clone(),
        path: case.file.clone(),
        digest,
        workspace: Some(workspace),
        judged_by: BTreeMap::new(),
        resolved: commits::resolved(case),
        played: Some(played),
        evidence: Some(case.evidence_keys().map_err(unreadable)?),
        mixed: false,
        tags: case.tags.clone(),
        pass: case.pass.trials,
        threshold: case.pass.threshold,
        limits: serde_json::to_value(case.limits).unwrap_or_default(),
        interaction: interaction.word().to_owned(),
        kind: case.kind,
        graders: case.grader_places(),
        critical: case.critical,
        quarantine: case.quarantine.clone(),
    })
}
