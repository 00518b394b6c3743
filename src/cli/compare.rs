//! `evals compare`: compares two runs, the models of one run, or a run with its baseline.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::grade::stored_run::origins;
use super::output::{self, Content};
use super::pager::{self, PagerArgs};
use super::snapshot::acceptance::Acceptance;
use super::{CliError, RunsFolder, complete, named_run};
use crate::baseline::{self, Baseline};
use crate::compare::gate::{Demand, GateRequest, NO_REGRESSIONS};
use crate::compare::side::{Arm, Interner, Side};
use crate::compare::{ArmPair, MARGIN, Options, Unmatched, arm_pairs, compare};
use crate::report::commands::run_word;
use crate::report::compare::{Format, write};
use crate::report::decisions;
use crate::report::html::Compared;
use crate::report::text::{Look, plural};
use crate::report::unfinished::{self, OpenTrials};
use crate::report::whole::WholeReport;
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::run::merge::MergedFrom;
use crate::run::merge::replaced::result_digests;
use crate::run::user_file::write_named;
use crate::run::{RunError, RunRecord};
use crate::runner;
use crate::text::some_of;
use crate::values::Fraction;

/// The default seed.
const SEED: u64 = 1;

#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The old run and the new run; or a single run, to compare its models or to compare it with its baseline
    #[arg(value_name = "RUN", num_args = 0..=2, add = complete::runs())]
    compared: Vec<String>,
    /// Baseline of the comparison: a model of the run, a baseline file, or another run
    #[arg(long, value_name = "MODEL|FILE|RUN", add = complete::runs())]
    baseline: Option<String>,
    /// Let the gates alone set the exit code. Repeatable: no-regressions (default of a bare --gate),
    /// margin=0.05 (not worse by more than this, one-sided), completed=0.9 (share of each side's planned
    /// trials), cases=1.0 (share of the old side's cases with a score in the new one)
    #[arg(long, value_name = "DEMAND", num_args = 0..=1, default_missing_value = NO_REGRESSIONS, value_delimiter = ',')]
    gate: Vec<Demand>,
    /// Gate: the new score is at least this
    #[arg(long, value_name = "SCORE")]
    fail_under: Option<Fraction>,
    /// Gate: the new side costs at most this, in US dollars
    #[arg(long, value_name = "USD", value_parser = super::run::dollars, allow_negative_numbers = true)]
    max_cost: Option<f64>,
    /// Differences up to this count as none (default: the gate's margin, else 0.05)
    #[arg(long, value_name = "M", value_parser = margin)]
    margin: Option<f64>,
    /// Treatment of crashed trials and protocol errors; other errors never count as failures
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = Errors::Exclude)]
    errors: Errors,
    /// Seed of sampled sign flips (default: the run's, else 1)
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Output file (default: standard output)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    pager: PagerArgs,
    #[command(flatten)]
    folder: RunsFolder,
}

/// The treatment of errored trials in scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Errors {
    /// In no score; they are counted separately
    Exclude,
    /// Crashes and protocol errors are failures
    Fail,
}

fn margin(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if number > 0.0 && number < 1.0 { Ok(number) } else { Err("a margin is between 0 and 1".to_owned()) }
}

pub fn run(args: &CompareArgs) -> Result<u8, CliError> {
    let mut words = Interner::default();
    let gates =
        GateRequest::of(&args.gate, args.fail_under.map(Fraction::get), args.max_cost).map_err(CliError::unreadable)?;
    let Sides { mut old, mut new, record } = sides(args, gates.any(), &mut words)?;
    let sides = old.iter_mut().chain(std::iter::once(&mut new));
    if args.errors == Errors::Fail {
        let cases = sides.flat_map(|side| &mut side.arms).flat_map(|arm| arm.cases.values_mut());
        cases.for_each(crate::fold::CaseTrials::count_errors);
    }
    let options = Options {
        margin: args.margin.or(gates.margin).unwrap_or(MARGIN),
        errors_fail: args.errors == Errors::Fail,
        seed: args.seed.or(record.options.seed).unwrap_or(SEED),
        gates,
    };
    let is_one_run = old.is_none();
    let (pairs, unmatched) = match &mut old {
        Some(old) => matched(old, &mut new)?,
        None => match (&args.baseline, &record.experiment) {
            (None, Some(experiment)) => of_experiment(&new, &experiment.baseline)?,
            (wanted, _) => (within(&new, wanted.as_deref())?, Unmatched::default()),
        },
    };
    if options.gates.any() && !unmatched.new.is_empty() {
        let what_to_do = match is_one_run {
            true => "let the baseline of the experiment run on the same harnesses",
            false => {
                "compare runs of the same harnesses and models, or set a baseline that has them with `evals baseline set`"
            }
        };
        return Err(CliError::unreadable(format!(
            "the old side has no results to compare {} with, and a gate cannot pass without them; {what_to_do}",
            unmatched.new.join(", ")
        )));
    }
    let mut comparison = compare(&pairs, &words, &options).map_err(CliError::unreadable)?.with_unmatched(unmatched);
    if let Some(old) = &old {
        comparison = comparison.with_gone(&options.gates, old);
    } else {
        comparison.add_axes(&new, &record);
        if let Some(experiment) = &record.experiment {
            comparison.conclude(&experiment.vary, &experiment.baseline);
        }
    }
    match &args.output {
        Some(path) => {
            super::report::make_place(path)?;
            write_named(path, |out| write(args.format, &comparison, &Look::PLAIN, out))?;
        }
        None => {
            let look = super::terminal::stdout_look();
            let mut out = match args.format {
                Format::Table => args.pager.stdout(Content::Text),
                other => pager::Output::Direct(output::stdout(Content::json(matches!(other, Format::Json)))),
            };
            let written = write(args.format, &comparison, &look, &mut out).and_then(|()| out.flush());
            super::import::ignore_closed_pipe(written)?;
        }
    }
    Ok(comparison.exit_code)
}

/// Compares a run with its baseline, or its arms with each other, for a report of the run. The settings are the
/// defaults of `evals compare`.
pub fn of_report(report: WholeReport<'_>) -> Compared {
    let record = &report.run;
    let folder = RunFolder::open(&report.folder);
    if let Some(from) = selected_from(&folder, record) {
        return Compared::Refused(format!(
            "it contains only the failed trials of run {from}, so its trials were selected by their outcome"
        ));
    }
    match UnfinishedTrials::of(&folder, record, report.summary.not_run) {
        Ok(left) if left.any() => return Compared::Refused(left.text(record, report.going_on)),
        Ok(_) => {}
        Err(error) => return Compared::Refused(error.to_string()),
    }
    let origins = match origins_of(&folder, record) {
        Ok(origins) => origins,
        Err(error) => return Compared::Refused(error.to_string()),
    };
    let mut words = Interner::default();
    let mut new = Side { origins, ..Side::of_run(record) };
    let mut open = OpenTrials::of(record);
    let acceptance = Acceptance::of(&folder, record);
    for result in report.all_results() {
        open.see(result);
        new.add(&acceptance.counted(result), &mut words);
    }
    add_unfinished(&mut new, record, &folder, open, folder.is_in_use());
    let baseline = record.experiment.is_none().then(|| baseline::found(record)).flatten();
    let mut old = match baseline.map(|path| Baseline::read(&path)) {
        Some(Ok(baseline)) => Some(baseline.side()),
        Some(Err(error)) => return Compared::Refused(error.to_string()),
        None if new.arms.len() < 2 => return Compared::Nothing,
        None => None,
    };
    leave_quarantined_out(old.as_mut(), &mut new);
    let seed = record.options.seed.unwrap_or(SEED);
    let options = Options { margin: MARGIN, errors_fail: false, seed, gates: GateRequest::default() };
    let made: Result<(Vec<ArmPair<'_>>, Unmatched), CliError> = match &mut old {
        Some(old) => matched(old, &mut new),
        None => match &record.experiment {
            Some(experiment) => of_experiment(&new, &experiment.baseline),
            None => within(&new, None).map(|pairs| (pairs, Unmatched::default())),
        },
    };
    let compared = made.map_err(|error| error.text()).and_then(|(pairs, unmatched)| {
        let compared = compare(&pairs, &words, &options).map_err(|error| error.to_string())?;
        Ok(compared.with_unmatched(unmatched))
    });
    match compared {
        Ok(mut comparison) => {
            if old.is_none() {
                comparison.add_axes(&new, record);
                if let Some(experiment) = &record.experiment {
                    comparison.conclude(&experiment.vary, &experiment.baseline);
                }
            }
            Compared::With(Box::new(comparison))
        }
        Err(why) => Compared::Refused(why),
    }
}

/// The sides of a comparison.
struct Sides {
    /// The old side. `None` if the columns of the new run are compared with each other.
    old: Option<Side>,
    new: Side,
    /// The plan of the new run.
    record: RunRecord,
}

impl Sides {
    /// Removes the cases that are in quarantine on the new side from both sides. A quarantine on the old side alone has
    /// no effect, because it does not excuse the new side.
    fn without_quarantined(mut old: Option<Side>, mut new: Side, record: RunRecord) -> Self {
        leave_quarantined_out(old.as_mut(), &mut new);
        Self { old, new, record }
    }
}

/// Takes the results of the cases that are in quarantine on the new side out of both sides.
fn leave_quarantined_out(old: Option<&mut Side>, new: &mut Side) {
    let quarantined = new.quarantined.clone();
    new.take_out_quarantined(&quarantined);
    if let Some(old) = old {
        old.quarantined.clear();
        old.take_out_quarantined(&quarantined);
    }
}

/// Reads the sides of a comparison.
fn sides(args: &CompareArgs, gated: bool, words: &mut Interner) -> Result<Sides, CliError> {
    let runs = &args.folder.runs;
    // A gate checks the evidence itself; a figure does not.
    let what = if gated { Use::Gated } else { Use::Compared };
    if let [old, new] = args.compared.as_slice() {
        if args.baseline.is_some() {
            return Err(CliError::unreadable("two runs are compared with each other; leave --baseline out"));
        }
        let new = comparable(runs, new, what, words);
        return match (old_side(runs, old, what, words), new) {
            (Ok(old), Ok((new, record))) => Ok(Sides::without_quarantined(Some(old), new, record)),
            // A user who wrote both names wrong learns it at once.
            (Err(old), Err(new)) => Err(old.and(new)),
            (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        };
    }
    let name = args.compared.first().map_or("latest", String::as_str);
    let (new, record) = comparable(runs, name, what, words)?;
    let old = match &args.baseline {
        Some(wanted) if !named(&new, wanted).is_empty() => None,
        Some(wanted) => Some(old_side(runs, wanted, what, words).map_err(|error| {
            // If the file or run exists but cannot be used, its own error is reported.
            if Path::new(wanted).is_file() || find::by_name(runs, wanted).is_ok() {
                return error;
            }
            let columns: Vec<&str> = new.arms.iter().map(|arm| &*arm.name).collect();
            let columns = columns.join(", ");
            let text = format!(
                "--baseline {wanted} is neither a model of run {}, which has {columns}, nor a file or a run",
                new.run
            );
            CliError::unreadable(text).and(error)
        })?),
        // An experiment has a baseline of its own.
        None if record.experiment.is_some() => None,
        None => match baseline::found(&record) {
            Some(path) => Some(Baseline::read(&path)?.side()),
            None => None,
        },
    };
    Ok(Sides::without_quarantined(old, new, record))
}

/// Reads a baseline file or a run.
fn old_side(runs: &Path, name: &str, what: Use, words: &mut Interner) -> Result<Side, CliError> {
    let path = Path::new(name);
    if path.is_file() {
        return Ok(Baseline::read(path)?.side());
    }
    Ok(comparable(runs, name, what, words)?.0)
}

/// The purpose for which a run is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Figures. The run must be finished.
    Compared,
    /// Gates. A trial that did not run counts as not completed, but the run must not be going on.
    Gated,
    /// A baseline file. The run must be finished.
    Baseline,
}

impl Use {
    fn word(self) -> &'static str {
        match self {
            Use::Compared | Use::Gated => "compared",
            Use::Baseline => "a baseline",
        }
    }
}

/// Reads a run for a comparison or a baseline, and condenses its results one by one. The run must be finished,
/// or be read for gates and not be going on, and must not be a rerun of failed trials.
///
/// # Errors
/// Returns an error if the run does not exist, or cannot be used for this purpose.
pub fn comparable(runs: &Path, name: &str, usage: Use, words: &mut Interner) -> Result<(Side, RunRecord), CliError> {
    let what = usage.word();
    let folder = named_run::by_name(runs, name)?;
    let record = folder.record()?;
    if let Some(from) = selected_from(&folder, &record) {
        let (contains, or_regrade) = match record.graded {
            true => ("regrades a run that contains", format!(", or regrade it with `evals grade {from}`")),
            false => ("contains", String::new()),
        };
        return Err(CliError::unreadable(format!(
            "run {} {contains} only the failed trials of run {from}, so it cannot be {what}: its trials were selected \
             by their outcome; use run {from}{or_regrade}",
            record.run
        )));
    }
    // Asked first: a run that ends in this moment has all of its results.
    let is_going_on = folder.is_in_use();
    let acceptance = Acceptance::of(&folder, &record);
    let begin = || (Side::of_run(&record), record.trials.len(), OpenTrials::of(&record), Vec::new());
    let folded = folder.fold_results(&record, begin, |(side, missing, open, not_accepted), result| {
        super::terminal::tell_if_not_as_judged(&result);
        let counted = acceptance.counted(&result);
        if matches!(counted, Cow::Owned(_)) {
            not_accepted.push(result.cell().to_string());
        }
        side.add(&counted, words);
        *missing = missing.saturating_sub(1);
        open.see(&result);
    });
    let (side, missing, open, not_accepted) = folded?;
    let left = UnfinishedTrials::of(&folder, &record, missing)?;
    let origins = origins_of(&folder, &record)?;
    let is_in_parts = record.shard.is_some() || MergedFrom::of(&folder.path)?.is_some();
    let digests = if is_in_parts { result_digests(&folder)? } else { HashMap::new() };
    let mut side = Side { origins, digests, ..side };
    // A gate counts trials that did not run as not completed; those of a run that is going on may still be completed.
    if left.any() && (usage != Use::Gated || is_going_on || left.lacks_plan) {
        let word = run_word(&record, &folder.path);
        let go_on = match (record.graded, is_going_on) {
            (true, _) => String::new(),
            (false, true) => "; the run is going on".to_owned(),
            (false, false) => format!("; resume it with `evals run --resume {word}`{}", left.again()),
        };
        return Err(CliError::unreadable(format!(
            "run {} is not finished, so it cannot be {what}: {}{go_on}",
            record.run,
            left.text(&record, is_going_on)
        )));
    }
    add_unfinished(&mut side, &record, &folder, open, is_going_on);
    if !not_accepted.is_empty() {
        tell_not_accepted(&record, &folder, not_accepted, usage)?;
    }
    Ok((side, record))
}

/// Notes that trials count as ungraded, because they have passed for snapshots that were not accepted. `cells` are their cells.
///
/// # Errors
/// Returns an error if the run is read for a baseline, which would lack the scores of these trials.
pub fn tell_not_accepted(
    record: &RunRecord,
    folder: &RunFolder,
    mut cells: Vec<String>,
    usage: Use,
) -> Result<(), CliError> {
    let count = plural(cells.len(), "trial");
    cells.dedup();
    let (run, word) = (&record.run, run_word(record, &folder.path));
    let why = format!(
        "the `snapshot` graders of {count} have passed because the run accepts its snapshots, and these were not accepted: {}; \
         accept them with `evals snapshot accept {word}`, or compare them again with `evals run --resume {word}`",
        some_of(cells, 5)
    );
    if usage == Use::Baseline {
        return Err(CliError::unreadable(format!("run {run} cannot be a baseline: {why}")));
    }
    super::terminal::note(format_args!("note: run {run}: these trials count as ungraded: {why}"));
    Ok(())
}

/// Adds the cost of the attempts that no result includes. A regraded run has finished, and can have such attempts of the
/// original run.
fn add_unfinished(side: &mut Side, record: &RunRecord, folder: &RunFolder, open: OpenTrials<'_>, is_in_use: bool) {
    for found in unfinished::of(record, folder, open.all(), is_in_use) {
        side.add_unfinished(found.trial, &found.attempts);
    }
}

/// The trials that a run has not finished.
#[derive(Debug, Clone, Copy)]
struct UnfinishedTrials {
    /// Trials without a result.
    not_run: usize,
    /// Trials that have a result and are to run again, because a retry or `--rerun` was interrupted.
    not_run_again: usize,
    /// True if the run did not reach its end.
    lacks_end: bool,
    /// True if the run may lack trials that no plan has yet (`--trials auto`).
    lacks_plan: bool,
}

impl UnfinishedTrials {
    /// Counts the trials that a run has not finished. `not_run` is the number of those without a result.
    fn of(folder: &RunFolder, record: &RunRecord, not_run: usize) -> Result<Self, RunError> {
        let waiting = runner::waiting(folder, &record.trials, &HashSet::new())?.len();
        let lacks_end = folder.lacks_end(record)?;
        let lacks_plan = lacks_end && record.options.looks.is_some();
        Ok(Self { not_run, not_run_again: waiting.saturating_sub(not_run), lacks_end, lacks_plan })
    }

    fn any(self) -> bool {
        self.not_run + self.not_run_again > 0 || self.lacks_end
    }

    /// Returns the addition to the command that resumes the run: a plain `--resume` leaves out the trials that an interrupted
    /// rerun had not begun.
    fn again(self) -> &'static str {
        if self.not_run_again > 0 { ", with the same `--rerun` if a rerun was interrupted" } else { "" }
    }

    fn text(self, record: &RunRecord, is_going_on: bool) -> String {
        let planned = record.trials.len();
        let parts = [(self.not_run, "not run"), (self.not_run_again, "not run again")];
        let parts = parts.into_iter().filter(|(count, _)| *count > 0);
        let parts = parts.map(|(count, what)| format!("{} of {planned} {what}", plural(count, "trial")));
        let text = parts.collect::<Vec<_>>().join(", ");
        if text.is_empty() { decisions::missing_end(record, is_going_on) } else { text }
    }
}

/// Returns the other runs that the trials of a run come from: for a regraded run, the runs that it was made from, the nearest
/// first, also if they were removed; then the shards of each of these runs that was merged.
fn origins_of(folder: &RunFolder, record: &RunRecord) -> Result<Vec<String>, RunError> {
    // The trials of a rerun ran in the rerun itself.
    let regraded = |record: &RunRecord| record.derived_from.clone().filter(|_| record.graded);
    let mut found: Vec<String> = regraded(record).into_iter().collect();
    let mut shards = shards_of(folder)?;
    for origin in origins(folder, record) {
        found.extend(origin.record().ok().and_then(|record| regraded(&record)));
        shards.extend(shards_of(&origin)?);
    }
    found.extend(shards);
    Ok(found)
}

/// Returns the shards of a merged run, or an empty list if the run was not merged.
fn shards_of(folder: &RunFolder) -> Result<Vec<String>, RunError> {
    let merged = MergedFrom::of(&folder.path)?;
    Ok(merged.into_iter().flat_map(|merged| merged.shards).map(|shard| shard.run).collect())
}

/// Returns the run whose failed trials alone are in a run, if so: it is a rerun of them, or regrades one. The trials of a
/// regraded run name it; in runs of older versions, only the runs that the run was made from show it.
fn selected_from(folder: &RunFolder, record: &RunRecord) -> Option<String> {
    if !record.graded && record.derived_from.is_some() {
        return record.derived_from.clone();
    }
    let named = record.trials.iter().find_map(|trial| trial.failed_in.clone());
    let records = || origins(folder, record).into_iter().filter_map(|origin| origin.record().ok());
    named.or_else(|| records().filter(|origin| !origin.graded).find_map(|origin| origin.derived_from))
}

/// Returns the arms of a side that a name selects: by model, harness, or both.
fn named<'a>(side: &'a Side, name: &str) -> Vec<&'a Arm> {
    let by = |means: &dyn Fn(&Arm) -> bool| side.arms.iter().filter(|arm| means(arm)).collect::<Vec<_>>();
    let whole = by(&|arm| arm.name == name || format!("{}={}", arm.harness, arm.column) == name);
    if whole.is_empty() {
        by(&|arm| arm.column == name || (arm.harness == name && arm.column == "default"))
    } else {
        whole
    }
}

/// Pairs the arms of one run: each with the baseline arm, which is the first that has a case unless one is named.
fn within<'a>(side: &'a Side, wanted: Option<&str>) -> Result<Vec<ArmPair<'a>>, CliError> {
    let columns = || side.arms.iter().map(|arm| arm.name.as_str()).collect::<Vec<_>>().join(", ");
    let old = match wanted.map(|wanted| (wanted, named(side, wanted))) {
        Some((_, arms)) if arms.len() == 1 => arms.first().copied(),
        Some((wanted, arms)) => {
            let names: Vec<&str> = arms.iter().map(|arm| &*arm.name).collect();
            let text = format!(
                "--baseline {wanted} is ambiguous: it could be any of {}; write HARNESS=MODEL",
                names.join(", ")
            );
            return Err(CliError::unreadable(text));
        }
        None => arm_pairs::first(side),
    };
    let Some(old) = old.filter(|_| side.arms.len() > 1) else {
        return Err(CliError::unreadable(format!(
            "run {} has only one harness and model, {}, and nothing to compare it with: name a second run, run it with \
             two models, or set a baseline with `evals baseline set`",
            side.run,
            columns()
        )));
    };
    Ok(arm_pairs::with(side, old))
}

/// Pairs the arms of an experiment with its baseline. Also returns the names of the arms without a partner.
fn of_experiment<'a>(side: &'a Side, baseline: &str) -> Result<(Vec<ArmPair<'a>>, Unmatched), CliError> {
    let (pairs, unmatched) = arm_pairs::of_experiment(side, baseline);
    if pairs.is_empty() {
        return Err(CliError::unreadable(format!(
            "run {} has no arm to compare with its baseline `{baseline}`; name a second run",
            side.run
        )));
    }
    Ok((pairs, unmatched))
}

/// Pairs the arms of two sides by harness and model. If each side has only one arm, these two are paired. Also returns
/// the names of the arms without a partner.
fn matched<'a>(old: &'a mut Side, new: &'a mut Side) -> Result<(Vec<ArmPair<'a>>, Unmatched), CliError> {
    let names = |side: &Side| side.arms.iter().map(|arm| arm.name.clone()).collect::<Vec<_>>().join(", ");
    let (old_names, new_names) = (names(old), names(new));
    // Arms are identified by name, also in the report: by the labels of their runs if these tell them apart.
    let labels_differ = old.label != new.label;
    for side in [&mut *old, &mut *new] {
        let label = side.label.clone().filter(|_| labels_differ);
        let run = label.unwrap_or_else(|| side.run.clone());
        side.arms.iter_mut().filter(|_| !side.baseline).for_each(|arm| arm.name = format!("{} ({run})", arm.name));
    }
    let (old, new): (&'a Side, &'a Side) = (old, new);
    let is_same_run = old.run == new.run && !old.baseline;
    if is_same_run || (!old.digests.is_empty() && old.digests == new.digests) {
        let why = if is_same_run { String::new() } else { format!(": run {} has exactly the same trials", old.run) };
        return Err(CliError::unreadable(format!(
            "run {} would be compared with itself{why}; compare its models with `evals compare {} --baseline MODEL`",
            new.run, new.run
        )));
    }
    if let ([old_arm], [new_arm]) = (old.arms.as_slice(), new.arms.as_slice()) {
        return Ok((vec![((old, old_arm), (new, new_arm))], Unmatched::default()));
    }
    let alike = |one: &Arm, other: &Arm| one.harness == other.harness && one.column == other.column;
    let same = |arm: &Arm| old.arms.iter().find(|old_arm| alike(old_arm, arm));
    let pairs: Vec<ArmPair<'a>> =
        new.arms.iter().filter_map(|new_arm| Some(((old, same(new_arm)?), (new, new_arm)))).collect();
    if pairs.is_empty() {
        return Err(CliError::unreadable(format!(
            "the runs have no harness and model in common: {old_names} before, {new_names} now; compare runs with one each, or the \
             models of one run with --baseline MODEL"
        )));
    }
    let alone = |arms: &[Arm], others: &[Arm]| {
        let alone = arms.iter().filter(|arm| !others.iter().any(|other| alike(arm, other)));
        alone.map(|arm| arm.name.clone()).collect()
    };
    let unmatched = Unmatched { old: alone(&old.arms, &new.arms), new: alone(&new.arms, &old.arms) };
    Ok((pairs, unmatched))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arm_is_meant_by_model_harness_or_both() {
        let arm = |harness: &str, column: &str| Arm {
            name: crate::ids::column_name(harness, column),
            harness: harness.to_owned(),
            column: column.to_owned(),
            ..Arm::default()
        };
        let side =
            Side { arms: vec![arm("a", "x"), arm("b", "x"), arm("b", "y"), arm("c", "default")], ..Side::default() };
        let count = |name: &str| named(&side, name).len();
        assert_eq!([count("y"), count("x"), count("a=x"), count("a / x"), count("c"), count("z")], [1, 2, 1, 1, 1, 0]);
    }
}
