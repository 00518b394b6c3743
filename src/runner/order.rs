//! The order in which the trials of an experiment run: drawn from the seed, so that what changes with time, such as the
//! load of a service or a warm cache, affects all arms alike. Pure.

use std::collections::HashMap;

use crate::ids::TrialRecord;
use crate::run::RunRecord;

/// Orders the waiting trials of a run. In an experiment, the trials of each case run round by round: the first trial of
/// each arm, then the second of each, with the arms of each round in an order drawn from the seed. Other runs keep the
/// order of the plan.
pub(super) fn fair<'a>(plan: &RunRecord, waiting: Vec<(&'a TrialRecord, u32)>) -> Vec<(&'a TrialRecord, u32)> {
    if plan.experiment.is_none() && !plan.options.aa {
        return waiting;
    }
    let seed = plan.options.seed.unwrap_or_default();
    let places: HashMap<&str, usize> = plan.cases.iter().enumerate().map(|(at, case)| (&*case.id, at)).collect();
    let place = |trial: &TrialRecord| places.get(&*trial.case).copied();
    let mut keyed: Vec<_> =
        waiting.into_iter().map(|entry| ((place(entry.0), entry.0.trial, drawn(seed, entry.0)), entry)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, entry)| entry).collect()
}

/// Returns a number that the seed draws for a trial.
fn drawn(seed: u64, trial: &TrialRecord) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    for part in [&trial.case, &trial.harness, &trial.arm] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(&trial.trial.to_le_bytes());
    *hasher.finalize().as_bytes()
}
