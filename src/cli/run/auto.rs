//! `--trials auto`: adds trials until the comparison of the models is clear, or a budget is spent.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Instant;

use tokio::runtime::Runtime;

use super::{Prepared, RunArgs, options};
use crate::cli::stop::on_interrupt;
use crate::cli::{CliError, terminal};
use crate::compare::MARGIN;
use crate::compare::sequential::{self, LOOKS};
use crate::compare::side::{Side, Words};
use crate::ids::TrialRecord;
use crate::report::text::plural;
use crate::run::RunRecord;
use crate::runner::Ran;
use crate::values::Time;

/// The number of trials of each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trials {
    /// This number.
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
            _ => Err(format!("`{text}` is no number of trials; write one from 1 on, or auto")),
        }
    }
}

/// Returns the looks, as stored in `run.json`.
pub fn looks(trials: Option<Trials>) -> Option<Vec<u32>> {
    (trials == Some(Trials::Auto)).then(|| LOOKS.to_vec())
}

/// Refuses `--trials auto` without two arms, because no comparison would ever be clear.
pub fn check(args: &RunArgs, trials: &[TrialRecord]) -> Result<(), CliError> {
    let mut arms: Vec<(&str, &str)> = trials.iter().map(|trial| (&*trial.harness, &*trial.arm)).collect();
    arms.sort_unstable();
    arms.dedup();
    if args.trials == Some(Trials::Auto) && arms.len() < 2 {
        return Err(CliError::unreadable(
            "--trials auto goes on until it is clear how harnesses or models compare, and there is only one; name \
             another with --model or --harness, or say how many trials there are to be",
        ));
    }
    Ok(())
}

/// Executes the plan; with `--trials auto`, the plan grows until the comparison is clear or a budget is spent.
pub fn carry_out(args: &RunArgs, prepared: &mut Prepared, runtime: &Runtime) -> Result<Ran, CliError> {
    let begun = Instant::now();
    let interrupt = on_interrupt();
    loop {
        let mut options = options(args, &prepared.record.options);
        // The budget covers all stages together; the runner itself knows the cost of earlier stages.
        options.max_time = options.max_time.map(|Time(time)| Time(time.saturating_sub(begun.elapsed())));
        let ran = runtime.block_on(super::carry_out(args, prepared, options, interrupt.clone()))?;
        if prepared.folder.settle_record().map_err(|error| CliError::from(error).after_the_start())? {
            terminal::note(format_args!(
                "warning: somebody changed run.json while the run went on; it was written again"
            ));
        }
        if prepared.record.options.looks.is_none() || prepared.record.derived_from.is_some() || ran.interrupted {
            return Ok(ran);
        }
        if ran.why.is_some() || ran.not_run > 0 {
            return out_of_budget(prepared, ran);
        }
        if *interrupt.borrow() || !grown(prepared)? {
            return Ok(ran);
        }
    }
}

/// Looks at the scores, and plans more trials if they are needed.
fn grown(prepared: &mut Prepared) -> Result<bool, CliError> {
    let mut words = Words::default();
    // Cached results of the previous stage would be out of date.
    let results = prepared.folder.results_of_trials(&prepared.record)?;
    let mut side = Side::of_run(&prepared.record);
    results.iter().for_each(|result| side.add(result, &mut words));
    let done = fewest(&prepared.record);
    let of_each = format!("{} of each case", plural(done as usize, "trial"));
    if sequential::is_clear(&side, MARGIN) {
        terminal::note(format_args!("--trials auto: clear after {of_each}"));
        return Ok(false);
    }
    let Some(next) = sequential::next(done) else {
        terminal::note(format_args!("--trials auto: still not clear after {of_each}, the most"));
        return Ok(false);
    };
    terminal::note(format_args!("--trials auto: not clear after {of_each}; going on to {next}"));
    grow(&mut prepared.record, next);
    prepared.redo.clear();
    prepared.folder.write_record(&mut prepared.record)?;
    Ok(true)
}

/// Returns the smallest number of trials of any cell.
fn fewest(record: &RunRecord) -> u32 {
    last_trials(record).values().copied().min().unwrap_or(0)
}

/// Returns the last trial of each cell that is run.
fn last_trials(record: &RunRecord) -> HashMap<(String, String, String), u32> {
    let mut last = HashMap::new();
    for trial in record.trials.iter().filter(|trial| trial.skip.is_none()) {
        let most = last.entry((trial.case.clone(), trial.harness.clone(), trial.arm.clone())).or_insert(0);
        *most = trial.trial.max(*most);
    }
    last
}

/// Plans this number of trials for each cell; the trials of a cell stay together.
fn grow(record: &mut RunRecord, trials: u32) {
    let last = last_trials(record);
    let mut grown = Vec::with_capacity(record.trials.len() * 2);
    for trial in std::mem::take(&mut record.trials) {
        let cell = (trial.case.clone(), trial.harness.clone(), trial.arm.clone());
        let most = last.get(&cell).copied().unwrap_or(u32::MAX);
        let ends = trial.skip.is_none() && trial.trial == most;
        let template = trial.clone();
        grown.push(trial);
        if ends {
            grown.extend((most + 1..=trials).map(|number| TrialRecord { trial: number, ..template.clone() }));
        }
    }
    record.trials = grown;
}

/// Removes trials of an added stage that a spent budget left out from the plan: the run is complete without
/// them.
fn out_of_budget(prepared: &mut Prepared, mut ran: Ran) -> Result<Ran, CliError> {
    let states = prepared.folder.states()?;
    let first = LOOKS.first().copied().unwrap_or(1);
    let before = prepared.record.trials.len();
    let done = |trial: &TrialRecord| states.get(&trial.id()).is_some_and(|state| state.finished.is_some());
    prepared.record.trials.retain(|trial| trial.trial <= first || done(trial));
    if prepared.record.trials.len() < before {
        prepared.folder.write_record(&mut prepared.record)?;
        let why = ran.why.clone().unwrap_or_else(|| "the budget is spent".to_owned());
        let fewest = plural(fewest(&prepared.record) as usize, "trial");
        terminal::note(format_args!("--trials auto: {why}; it ends with {fewest} or more of each case"));
        let cut = before - prepared.record.trials.len();
        ran.not_run = ran.not_run.saturating_sub(cut);
    }
    Ok(ran)
}
