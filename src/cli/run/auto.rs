//! `--trials auto`: the permitted numbers of trials, and the condition under which the comparison of the models is
//! clear.

use std::str::FromStr;

use super::RunArgs;
use crate::cli::CliError;
use crate::compare::MARGIN;
use crate::compare::sequential::{self, LOOKS};
use crate::compare::side::{Interner, Side};
use crate::ids::TrialRecord;
use crate::result::TrialResult;
use crate::run::RunRecord;
use crate::runner::Schedule;

/// The number of trials of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trials {
    /// A fixed number of trials.
    Fixed(u32),
    /// Until the comparison is clear.
    Auto,
}

impl Trials {
    /// Returns the initial number of trials.
    pub fn first(self) -> u32 {
        match self {
            Trials::Fixed(trials) => trials,
            Trials::Auto => LOOKS.first().copied().unwrap_or(1),
        }
    }
}

impl FromStr for Trials {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            _ if text == "auto" => Ok(Trials::Auto),
            Ok(trials) if trials > 0 => Ok(Trials::Fixed(trials)),
            _ => Err(format!("`{text}` is not a number of trials; write a number from 1, or auto")),
        }
    }
}

/// Returns the looks, as stored in `run.json`.
pub fn looks(trials: Option<Trials>) -> Option<Vec<u32>> {
    (trials == Some(Trials::Auto)).then(|| LOOKS.to_vec())
}

/// Refuses `--trials auto` without two arms, because no comparison would ever be clear, and with a part of the cases.
pub fn check(args: &RunArgs, trials: &[TrialRecord]) -> Result<(), CliError> {
    if let (Some(Trials::Auto), Some(shard)) = (args.trials, args.shard) {
        return Err(CliError::unreadable(format!(
            "--trials auto looks at the results of all cases, and --shard {shard} plays a part of them; give a number \
             of trials"
        )));
    }
    let mut arms: Vec<(&str, &str)> = trials.iter().map(|trial| (&*trial.harness, &*trial.arm)).collect();
    arms.sort_unstable();
    arms.dedup();
    if args.trials == Some(Trials::Auto) && arms.len() < 2 {
        return Err(CliError::unreadable(
            "--trials auto compares harnesses or models, but there is only one; add another with --model or \
             --harness, or give a number of trials",
        ));
    }
    Ok(())
}

/// Returns the schedule of a run after its first trials. A rerun of another run's failed trials gets no further
/// trials.
pub fn schedule(record: &RunRecord) -> Schedule {
    match record.options.looks {
        Some(_) if record.derived_from.is_none() => Schedule::Auto { stages: &LOOKS, is_clear },
        _ => Schedule::Fixed,
    }
}

/// Returns true if the comparison of the run is clear, or `None` if further trials show nothing.
fn is_clear(record: &RunRecord, results: &[TrialResult]) -> Option<bool> {
    let mut words = Interner::default();
    let mut side = Side::of_run(record);
    results.iter().for_each(|result| side.add(result, &mut words));
    // As in the comparison, an arm whose cases are all in quarantine has no case.
    let quarantined = side.quarantined.clone();
    side.take_out_quarantined(&quarantined);
    let baseline = record.experiment.as_ref().map(|experiment| experiment.baseline.as_str());
    sequential::is_clear(&side, baseline, MARGIN)
}
