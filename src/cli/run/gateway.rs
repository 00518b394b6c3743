//! The options of `evals run` for the model gateway, and the checks of its cassettes before a run begins.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;

use super::Prepared;
use crate::case::Case;
use crate::cli::{CliError, terminal};
use crate::gateway::cassette;
use crate::gateway::guard::Enforce;
use crate::gateway::route::{Mode, Route};
use crate::gateway::server::Timing;
use crate::gateway::settings::Settings;
use crate::gateway::upstream::Upstream;
use crate::harness::Pointed;
use crate::ids::{TrialId, TrialRecord, by_case_id};
use crate::paths::shown;
use crate::run::RunRecord;

/// The options of the model gateway.
#[derive(Debug, clap::Args)]
pub struct GatewayArgs {
    /// Point the agents at the model gateway, which logs each exchange with the model in llm.jsonl
    #[arg(long = "gateway", value_enum, value_name = "MODE", conflicts_with = "resume")]
    pub mode: Option<Mode>,
    /// With --gateway: what to do with requests for another model than the requested one
    #[arg(long, value_enum, value_name = "HOW", requires = "mode", conflicts_with = "resume")]
    pub enforce_model: Option<Enforce>,
    /// Pace of recorded answers: none, recorded, or a factor of the recorded time (default: none)
    #[arg(long, value_name = "none|recorded|FACTOR", value_parser = timing, conflicts_with = "resume")]
    pub gateway_timing: Option<Timing>,
}

/// Parses a pace.
pub fn timing(text: &str) -> Result<Timing, String> {
    match text {
        "none" => Ok(Timing::None),
        "recorded" => Ok(Timing::Recorded),
        _ => match text.parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor >= 0.0 => Ok(Timing::Factor(factor)),
            _ => Err(format!("`{text}` is neither `none` nor `recorded` nor a number from 0")),
        },
    }
}

/// Checks that each cassette that the run plays can be read, and that the services have valid addresses.
///
/// # Errors
/// Returns all errors.
pub fn check(record: &RunRecord, cases: &[Case]) -> Result<(), CliError> {
    let mut refused: Option<CliError> = None;
    let mut add = |error: CliError| {
        refused = Some(match refused.take() {
            Some(before) => before.and(error),
            None => error,
        });
    };
    let mut seen = BTreeSet::new();
    let (mut reaches, mut plays) = (false, false);
    let mut written: BTreeMap<PathBuf, &TrialRecord> = BTreeMap::new();
    for (case, trial, route) in routes(record, cases)? {
        reaches |= route.reaches_the_service();
        plays |= route.plays().is_some();
        let manifest = record.harnesses.iter().map(|it| &it.manifest).find(|it| it.name == trial.harness);
        if let (Some(manifest), false) = (manifest, matches!(route, Route::Script(_)))
            && let Err(why) = manifest.at_gateway(&Pointed::Recording, trial.model.as_deref())
        {
            add(CliError::unreadable(why));
        }
        if let Some(file) = route.records() {
            if let Err(why) = cassette::may_replace(file) {
                add(CliError::unreadable(format!("{}: {why}", case.shown().display())));
            }
            let first = *written.entry(file.to_owned()).or_insert(trial);
            if first.cell() != trial.cell() {
                let message = format!(
                    "{} and {} would record the same cassette {}; run one of them, or let the case name no cassette",
                    first.cell(),
                    trial.cell(),
                    shown(file).display()
                );
                add(CliError::unreadable(message));
            }
        }
        let Some(file) = route.plays().filter(|file| seen.insert(file.to_path_buf())) else { continue };
        match cassette::load(file) {
            Ok(_) => {}
            Err(error) if error.is_missing() && matches!(route, Route::Auto(_)) => {}
            Err(error) if error.is_missing() => add(CliError::unreadable(missing(case, trial, file))),
            Err(error) => add(CliError::unreadable(error)),
        }
    }
    if reaches && let Err(error) = Upstream::of_env(&crate::own_environment::texts()) {
        add(CliError::unreadable(error));
    }
    let runs = record.trials.iter().any(|trial| trial.skip.is_none());
    // A run of a part of the suite may have the options of the whole one.
    let any = |of: fn(&Route) -> bool| {
        let route = |case: &Case| Route::of(case.model.as_ref(), record.options.gateway, PathBuf::new);
        cases.iter().filter_map(route).any(|route| of(&route))
    };
    if record.options.enforce_model.is_some() && !reaches && runs {
        match any(Route::reaches_the_service) {
            true => terminal::note(format_args!(
                "note: --enforce-model has no effect on this part of the suite: all of its answers are recorded or scripted"
            )),
            false => add(CliError::unreadable(
                "--enforce-model has no effect on recorded answers; leave it out, or use --gateway observe, record or auto",
            )),
        }
    }
    if record.options.gateway_timing.is_some() && !plays && runs {
        match any(|route| route.plays().is_some()) {
            true => terminal::note(format_args!(
                "note: --gateway-timing has no effect on this part of the suite: no trial plays recorded answers"
            )),
            false => add(CliError::unreadable(
                "--gateway-timing has no effect, because no trial plays recorded answers; leave it out, or use --gateway \
                 replay or auto",
            )),
        }
    }
    let asks = |trial: &&TrialRecord| trial.skip.is_none() && trial.model.is_none();
    if record.options.enforce_model.is_some() && record.trials.iter().any(|trial| asks(&trial)) {
        terminal::note(format_args!(
            "warning: --enforce-model has no effect on trials for which no model is asked; pass --model"
        ));
    }
    refused.map_or(Ok(()), Err)
}

fn missing(case: &Case, trial: &TrialRecord, file: &std::path::Path) -> String {
    let TrialRecord { harness, model, .. } = trial;
    if trial.arm_of().variant.is_some() {
        return format!(
            "{}: there is no cassette {} to replay; record it: run the experiment with --gateway record",
            case.shown().display(),
            shown(file).display()
        );
    }
    let model = model.as_ref().map(|model| format!(" --model {model}")).unwrap_or_default();
    format!(
        "{}: there is no cassette {} to replay; record it with: evals run {} --harness {harness}{model} --gateway record",
        case.shown().display(),
        shown(file).display(),
        case.shown().display()
    )
}

/// Returns the files that a cassette consists of, for the trials of a case that play one and do not record it.
///
/// # Errors
/// Returns an error if a cell cannot have a cassette.
pub fn played_files<'a>(
    case: &Case,
    mode: Option<Mode>,
    trials: impl Iterator<Item = &'a TrialRecord>,
) -> Result<BTreeSet<PathBuf>, CliError> {
    let mut files = BTreeSet::new();
    for trial in trials {
        if let Some(Route::Replay(file)) = route(case, mode, trial)? {
            let bodies = std::fs::read_dir(cassette::bodies(&file));
            files.extend(bodies.into_iter().flatten().flatten().map(|entry| entry.path()));
            files.insert(file);
        }
    }
    Ok(files)
}

/// Returns the settings of a run for its gateways.
///
/// # Errors
/// Returns an error if a cell cannot have a cassette.
pub(super) fn settings(prepared: &Prepared) -> Result<Settings, CliError> {
    let options = &prepared.record.options;
    let settings = Settings::new(options.gateway_timing.unwrap_or_default(), options.enforce_model);
    if !options.gateway.is_some_and(|mode| matches!(mode, Mode::Record | Mode::Auto)) {
        return Ok(settings);
    }
    let planned: HashMap<TrialId, &TrialRecord> =
        prepared.record.trials.iter().map(|trial| (trial.id(), trial)).collect();
    // Cassettes of trials that ended before the run was resumed.
    for result in prepared.folder.results_of_trials(&prepared.record)?.iter().filter(|it| it.error.is_none()) {
        let Some(&trial) = planned.get(&result.id()) else { continue };
        let Some(case) = prepared.cases.get(&trial.case) else { continue };
        if let Some(file) = route(case, options.gateway, trial)?.as_ref().and_then(Route::records) {
            settings.note_recorded(trial.trial, file.to_owned());
        }
    }
    Ok(settings)
}

fn routes<'a>(record: &'a RunRecord, cases: &'a [Case]) -> Result<Vec<(&'a Case, &'a TrialRecord, Route)>, CliError> {
    let mut found = Vec::new();
    for trial in record.trials.iter().filter(|trial| trial.skip.is_none()) {
        let Some(case) = by_case_id(cases, &trial.case) else { continue };
        if let Some(route) = route(case, record.options.gateway, trial)? {
            found.push((case, trial, route));
        }
    }
    Ok(found)
}

fn route(case: &Case, mode: Option<Mode>, trial: &TrialRecord) -> Result<Option<Route>, CliError> {
    case.route(mode, &trial.harness, trial.arm_of()).map_err(CliError::unreadable)
}
