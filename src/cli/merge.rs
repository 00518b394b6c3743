//! `evals merge`: makes one run of the shards of a plan, and ends as that run would have ended.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::grade::stored_run;
use super::snapshot::acceptance::Acceptance;
use super::snapshot::during_run::{self, Mode, SnapshotResults};
use super::{CliError, complete, errors, named_run, terminal};
use crate::case::Case;
use crate::case::digest::{ABSENT, is_same};
use crate::ids::{TrialRecord, trials_by_case};
use crate::project;
use crate::report::commands::run_word;
use crate::report::format::{Format, ReporterArg};
use crate::report::{self, Report, RunContext};
use crate::run::find::{self, Names, REMOVED, UNFINISHED};
use crate::run::folder::RunFolder;
use crate::run::merge::{self, MergedFrom, merged};
use crate::run::{CaseRecord, RunError, RunHead, RunRecord, names};
use crate::snapshot::store;
use crate::text::{plural, some_of};

mod locate_cases;

/// The number of levels below a folder at which runs are found: artifacts may add folders of their own.
const DEPTH: usize = 4;

#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// Shards: ID, ID prefix, label, or path of a run; or a folder, for all runs below it
    #[arg(required = true, value_name = "RUN", add = complete::runs())]
    shards: Vec<String>,
    /// Folder of runs in which the merged run is written (default: that of --out)
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Folder in which runs are searched
    #[arg(long = "out", value_name = "DIR", default_value_os_t = super::default_runs())]
    runs: PathBuf,
    /// Label of the merged run (default: the shards' label, if all shards have the same one)
    #[arg(long, value_name = "TEXT", value_parser = super::label)]
    label: Option<String>,
    /// Write a report: table, json, jsonl, junit, markdown, github, html or benchmark; repeatable
    #[arg(long = "reporter", value_name = "FORMAT[=PATH]")]
    reporters: Vec<ReporterArg>,
    /// Compare with the accepted snapshots, or accept new and changed ones (default: as the shards were run)
    #[arg(long, value_enum, value_name = "HOW")]
    snapshot: Option<Mode>,
}

pub fn run(args: &MergeArgs) -> Result<u8, CliError> {
    super::report::check_places(&args.reporters, args.label.as_deref())?;
    let mut shards: Vec<(RunFolder, RunRecord)> = Vec::new();
    for mut folder in named(args)? {
        let known = folder.record()?.run;
        // A shard that is still going on is not merged. Folders that cannot be written to are not in use.
        if !shards.iter().any(|(_, record)| record.run == known)
            && let Err(busy @ RunError::Busy(_)) = folder.lock()
        {
            return Err(busy.into());
        }
        let record = folder.record()?;
        shards.push((folder, record));
    }
    let records: Vec<RunRecord> = shards.iter().map(|(_, record)| record.clone()).collect();
    let mut record = merged(&records).map_err(CliError::unreadable)?;
    record.run = names::new_run_id(jiff::Timestamp::now());
    record.label = args.label.clone().or(record.label);
    if let Ok(project) = std::env::current_dir() {
        record = locate_cases::found_below(&project, record);
        record.project = Some(project::root().to_path_buf());
    }
    shards.sort_by_key(|(_, record)| record.shard);

    let mode = args.snapshot.or(record.options.snapshot);
    if mode == Some(Mode::Off) {
        refuse_unaccepted(&shards)?;
    }
    let cases = cases_for_snapshots(&record, mode)?;
    let runs = args.output.as_ref().unwrap_or(&args.runs);
    let folder = merge::folder::write(runs, &mut record, &shards);
    let folder = folder.map_err(|error| errors::of_new_run(error, "-o DIR"))?;
    let results = folder.results(&record)?;
    results.iter().for_each(terminal::tell_if_not_as_judged);
    let not_run = record.trials.len().saturating_sub(results.len());
    let snapshots = match mode {
        Some(Mode::Off) => during_run::of_shards(&folder, &shards)?,
        _ => during_run::after(mode, &folder, &record, &cases, not_run == 0)?,
    };
    let SnapshotResults { compared, notes, unwritten } = snapshots;
    if unwritten.is_none() {
        folder.write_end()?;
        // Results that are newer than the journal are complete.
        folder.write_results(&results)?;
    }
    let root = super::report::repository();
    let broken_off = unwritten.as_ref().map(CliError::text);
    let exit_code = unwritten.as_ref().map(CliError::code);
    let beside = RunContext { snapshots: compared, notes, root, broken_off, exit_code, ..RunContext::default() };
    let report = Report::with(Arc::new(record), results, not_run, &folder.path, beside);
    super::report::tell_gates(&report);
    let code = report::exit_code(&report);
    super::report::write_all(&report, &args.reporters, Some(Format::Table))?;
    terminal::note(format_args!("merged {} into run {}", plural(shards.len(), "shard"), report.run.run));
    unwritten.map_or(Ok(code), Err)
}

/// Refuses to merge shards without snapshots if the `snapshot` graders of one of them have passed because it accepts its
/// snapshots, and it has not accepted them.
fn refuse_unaccepted(shards: &[(RunFolder, RunRecord)]) -> Result<(), CliError> {
    for (folder, record) in shards {
        let open = Acceptance::of(folder, record).open_cells()?;
        if !open.is_empty() {
            let word = run_word(record, &folder.path);
            return Err(CliError::unreadable(format!(
                "the `snapshot` graders of run {} have passed because the run accepts its snapshots, and these were not \
                 accepted: {}; resume it with `evals run --resume {word}`, accept them with \
                 `evals snapshot accept {word}`, or merge without `--snapshot off`",
                record.run,
                some_of(open, 5)
            )));
        }
    }
    Ok(())
}

/// Returns the runs that the arguments name. A folder that is not a run means all runs below it, except merged ones. A run that
/// only a label adds and that another argument names counts once.
fn named(args: &MergeArgs) -> Result<Vec<RunFolder>, CliError> {
    let (mut folders, mut of_labels) = (Vec::new(), HashSet::new());
    let names = Names::of(&args.runs);
    for name in &args.shards {
        let path = Path::new(name);
        let is_folder_of_runs = path.is_dir() && !path.join("run.json").exists();
        let below = if is_folder_of_runs { runs_below(path, DEPTH) } else { Vec::new() };
        if !below.is_empty() {
            folders.extend(below.iter().map(|path| RunFolder::open(path)).filter(|run| !was_merged(run)));
        } else if is_folder_of_runs && !find::is_run(path) {
            return Err(CliError::unreadable(format!("there is no run in the folder {name}")));
        } else {
            let found = by_name(&names, name)?;
            if found.by_label {
                of_labels.extend(folders.len()..folders.len() + found.runs.len());
            }
            folders.extend(found.runs);
        }
    }
    if of_labels.is_empty() || of_labels.len() == folders.len() {
        return Ok(folders);
    }
    let runs = folders.iter().map(|folder| folder.record().map(|record| record.run)).collect::<Result<Vec<_>, _>>()?;
    let others: HashSet<&String> =
        runs.iter().enumerate().filter(|(at, _)| !of_labels.contains(at)).map(|(_, run)| run).collect();
    let is_repeated = |at: usize| of_labels.contains(&at) && runs.get(at).is_some_and(|run| others.contains(run));
    Ok(folders.into_iter().enumerate().filter(|(at, _)| !is_repeated(*at)).map(|(_, folder)| folder).collect())
}

/// The runs that a name means.
struct Named {
    runs: Vec<RunFolder>,
    by_label: bool,
}

/// Returns the runs that a name means. A label means all shards with the label that have the plan of the newest one. If all of
/// them are runs of one shard, it means the newest: shards may each have a label of their own.
fn by_name(names: &Names<'_>, name: &str) -> Result<Named, CliError> {
    let found = named_run::among(names, name)?;
    let is_label = |record: &RunRecord| record.run != name && name != "latest" && record.label.as_deref() == Some(name);
    if Path::new(name).join("run.json").is_file() || !found.record().is_ok_and(|record| is_label(&record)) {
        return Ok(Named { runs: vec![found], by_label: false });
    }
    let mut seen = HashSet::new();
    let is_shard = |(_, head): &&(PathBuf, RunHead)| {
        let has_label = head.label.as_deref() == Some(name);
        // Of copies of a run, the first holds the results of the others.
        has_label && head.has_run() && head.shard.is_some() && seen.insert(head.run.clone())
    };
    let read = |(path, _): &(PathBuf, RunHead)| {
        let record = RunFolder::open(path).record_to_read().ok()?;
        Some((path.clone(), record))
    };
    let shards: Vec<(PathBuf, RunRecord)> = names.runs().iter().filter(is_shard).filter_map(read).collect();
    let Some(newest) = shards.first().map(|(_, record)| record.clone().whole()) else {
        return Ok(Named { runs: vec![found], by_label: true });
    };
    let (own, others): (Vec<_>, Vec<_>) =
        shards.into_iter().partition(|(_, record)| merge::is_same_plan(&newest, &record.clone().whole()));
    let others: Vec<&str> =
        others.iter().filter(|(_, it)| it.shard != newest.shard).map(|(_, it)| it.run.as_str()).collect();
    if !others.is_empty() {
        terminal::note(format_args!(
            "note: left out, because their plan is not that of run {}, the newest shard labelled `{name}`: {}",
            newest.run,
            some_of(others, 5)
        ));
    }
    let is_one_shard = own.iter().all(|(_, record)| record.shard == newest.shard);
    let count = if is_one_shard { 1 } else { own.len() };
    let runs = own.iter().take(count).map(|(path, _)| RunFolder::open(path)).collect();
    Ok(Named { runs, by_label: true })
}

/// Returns true if a run is the result of an earlier merge, which by default is written beside its shards.
fn was_merged(run: &RunFolder) -> bool {
    let of = |record: RunRecord| record.shard.is_none() && matches!(MergedFrom::of(&run.path), Ok(Some(_)));
    run.record().is_ok_and(of)
}

/// Returns the folders of runs below a folder, sorted. Links are not followed.
fn runs_below(folder: &Path, depth: usize) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    let mut found = Vec::new();
    for entry in entries.iter().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with(REMOVED) {
            continue;
        }
        if path.join("run.json").is_file() {
            found.push(path);
            continue;
        }
        let goes_on = depth > 1 && !name.starts_with(UNFINISHED);
        let below = if goes_on { runs_below(&path, depth - 1) } else { Vec::new() };
        // A run whose `run.json` was removed is an error, and not a shard less. Folders of other programs may have a journal, too.
        let is_run = below.is_empty() && goes_on && find::is_run(&path);
        found.extend(below.into_iter().chain(is_run.then_some(path)));
    }
    found
}

/// Returns the cases that the snapshots are compared with.
///
/// # Errors
/// Returns an error if a case whose snapshots decide the exit code cannot be read: without it, differences would not
/// be found.
fn cases_for_snapshots(record: &RunRecord, mode: Option<Mode>) -> Result<HashMap<String, Arc<Case>>, CliError> {
    if mode == Some(Mode::Off) {
        return Ok(HashMap::new());
    }
    let cases = stored_run::cases(&[], record)?;
    let planned = trials_by_case(record.trials.iter().filter(|trial| trial.skip.is_none()));
    let of_case = |case: &CaseRecord| planned.get(&*case.id).map(Vec::as_slice).unwrap_or_default();
    let is_needed = |case: &&CaseRecord| mode.is_some() || has_snapshot(case, of_case(case));
    let is_here = |known: &CaseRecord| {
        let now = cases.get(&known.id).and_then(|case| case.digest().ok());
        now.is_some_and(|digest| is_same(&digest, &known.digest))
    };
    let missing: Vec<&str> = record
        .cases
        .iter()
        .filter(is_needed)
        .filter(|known| !is_here(known))
        .map(|known| known.path.to_str().unwrap_or(&known.id))
        .collect();
    if missing.is_empty() {
        return Ok(cases);
    }
    Err(CliError::unreadable(format!(
        "the snapshots of the run cannot be compared, because these cases are not here or have changed: {}; merge the shards in the \
         project's folder, or without snapshots: --snapshot off",
        some_of(missing, 5)
    )))
}

/// Returns true if a cell of the case had an accepted snapshot when the shards began.
fn has_snapshot(case: &CaseRecord, planned: &[&TrialRecord]) -> bool {
    let folder = store::folder(&case.path);
    let mut files = planned.iter().filter_map(|trial| store::file(&folder, &trial.harness, trial.arm_of()).ok());
    files.any(|file| case.judged_by.get(&file).is_some_and(|digest| digest != ABSENT))
}
