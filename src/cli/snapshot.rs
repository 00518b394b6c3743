//! `evals snapshot`: compares a run, or stored traces, with accepted snapshots; accepts or rejects differences.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::beside_cases::refuse_elsewhere;
use super::grade::{stored_run, stored_traces};
use super::output::{self, Content};
use super::{CliError, RunsFolder, complete, engine, named_run, terminal};
use crate::ids::SnapshotCellId;
use crate::own_environment::in_ci;
use crate::report::notes::in_quarantine;
use crate::report::text::harmless;
use crate::report::{page, snapshots};
use crate::run::folder::RunFolder;
use crate::run::read_json;
use crate::snapshot::compare::{Compared, State};
use crate::values::{Day, NameGlob};
use crate::whole_file::write_whole;

pub mod acceptance;
mod trials;
pub mod during_run;
mod review;
mod unreferenced;

use trials::{CellWithoutCase, Placed};
use unreferenced::Unreferenced;

/// The file of the comparison in a run folder.
const KEPT: &str = "snapshots.json";

#[derive(Debug, Args)]
pub struct SnapshotArgs {
    #[command(subcommand)]
    what: SnapshotCommand,
}

#[derive(Debug, Subcommand)]
enum SnapshotCommand {
    /// Compare a run, or traces, with the accepted snapshots, without writing anything
    Check {
        #[command(flatten)]
        chosen: Chosen,
        /// Output format
        #[arg(long, value_enum, default_value_t = ComparisonFormat::Table)]
        format: ComparisonFormat,
    },
    /// Review the differences one by one, and decide with a key
    Review {
        #[command(flatten)]
        chosen: Chosen,
    },
    /// Accept new and changed snapshots
    Accept {
        #[command(flatten)]
        chosen: Chosen,
        /// Keep the previously accepted snapshot as well
        #[arg(long)]
        add: bool,
    },
    /// Keep the accepted snapshots, and record that this run is rejected
    Reject {
        #[command(flatten)]
        chosen: Chosen,
    },
}

#[derive(Debug, Args)]
struct Chosen {
    /// Run: ID, ID prefix, label, path, or `latest`; or trace files, where - is standard input
    #[arg(value_name = "RUN|TRACE", default_value = "latest", add = complete::runs())]
    stored: Vec<String>,
    /// Case of the traces; for a run, it replaces the run's case of the same ID; repeatable
    #[arg(long = "case", value_name = "FILE")]
    cases: Vec<PathBuf>,
    /// Harness of the traces (default: as stated in the traces)
    #[arg(long, value_name = "NAME", add = complete::harnesses())]
    harness: Option<String>,
    /// Only cells with this name: CASE/HARNESS, or CASE/HARNESS/MODEL; `*` matches anything; repeatable
    #[arg(long, value_name = "GLOB")]
    only: Vec<NameGlob>,
    #[command(flatten)]
    folder: RunsFolder,
}

/// The output format of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ComparisonFormat {
    /// For people, in a terminal
    Table,
    /// One JSON object
    Json,
}

/// The selected cells.
struct Selection {
    placed: Vec<Placed>,
    /// The run of the cells. Absent for single traces.
    run: Option<RunFolder>,
    /// The cells whose case no longer exists.
    without_case: Vec<CellWithoutCase>,
    /// Snapshots without a reference.
    unreferenced: Vec<Unreferenced>,
    /// The cases that the user named.
    named: Vec<PathBuf>,
    /// The cases in quarantine, each with a note. Their differences change no exit code.
    quarantined: BTreeMap<String, String>,
}

pub fn run(args: &SnapshotArgs) -> Result<u8, CliError> {
    match &args.what {
        SnapshotCommand::Check { chosen, format } => check(chosen, *format),
        SnapshotCommand::Review { chosen } => review::run(&selection(chosen)?),
        SnapshotCommand::Accept { chosen, add } => accept(&selection(chosen)?, *add),
        SnapshotCommand::Reject { chosen } => reject(&selection(chosen)?),
    }
}

/// Stores the comparison in the run's folder.
pub fn keep(run: &RunFolder, all: &[Compared]) -> Result<(), CliError> {
    Ok(write_whole(&run.path.join(KEPT), |out| {
        serde_json::to_writer_pretty(&mut *out, all)?;
        out.write_all(b"\n")
    })?)
}

/// Returns the stored comparison.
pub fn kept(run: &RunFolder) -> Result<Vec<Compared>, CliError> {
    let path = run.path.join(KEPT);
    if path.is_file() { Ok(read_json(&path)?) } else { Ok(Vec::new()) }
}

fn selection(chosen: &Chosen) -> Result<Selection, CliError> {
    let mut selection = if stored_traces::are_meant(&chosen.stored)? { in_traces(chosen)? } else { in_run(chosen)? };
    if !chosen.only.is_empty() {
        let is_meant = |name: &str| chosen.only.iter().any(|glob| glob.is_match(name));
        selection.placed.retain(|it| is_meant(&it.cell.id.to_string()));
        selection.without_case.retain(|it| is_meant(&it.name));
        selection.unreferenced.clear();
        if selection.placed.is_empty() && selection.without_case.is_empty() {
            return Err(CliError::unreadable("no cell matches --only; a cell is CASE/HARNESS, or CASE/HARNESS/MODEL"));
        }
    }
    Ok(selection)
}

fn in_traces(chosen: &Chosen) -> Result<Selection, CliError> {
    let case = stored_traces::case(&chosen.cases)?;
    let private = engine::temporary()?;
    let placed = trials::of_traces(&chosen.stored, &case, chosen.harness.as_deref(), private.path())?;
    let quarantine = case.quarantine.as_ref().filter(|quarantine| quarantine.until >= Day::today());
    let quarantined = quarantine.map(|quarantine| (case.id.clone(), in_quarantine(&case.id, quarantine)));
    let (without_case, unreferenced) = (Vec::new(), Vec::new());
    let quarantined = quarantined.into_iter().collect();
    Ok(Selection { placed, run: None, without_case, unreferenced, named: chosen.cases.clone(), quarantined })
}

fn in_run(chosen: &Chosen) -> Result<Selection, CliError> {
    let [name] = chosen.stored.as_slice() else {
        return Err(CliError::unreadable("name one run, or the files of traces and their case with --case FILE"));
    };
    if chosen.harness.is_some() {
        return Err(CliError::unreadable(
            "--harness is for traces; the trials of a run record their harness, so select cells with --only",
        ));
    }
    let run = named_run::by_name(&chosen.folder.runs, name)?;
    let record = run.record()?;
    if run.states()?.values().all(|state| state.finished.is_none()) {
        // Results of trials of which the journal knows nothing show that its lines were removed.
        run.results(&record)?;
    }
    let cases = stored_run::cases(&chosen.cases, &record)?;
    let (placed, without_case) = trials::of_run(&run, &record, &cases, true)?;
    let unreferenced = unreferenced::of_run(&record, &cases, &placed);
    let quarantined = record.in_quarantine().map(|(case, it)| (case.id.clone(), in_quarantine(&case.id, it))).collect();
    Ok(Selection { placed, run: Some(run), without_case, unreferenced, named: chosen.cases.clone(), quarantined })
}

fn check(chosen: &Chosen, format: ComparisonFormat) -> Result<u8, CliError> {
    let selection = selection(chosen)?;
    let all = compared(&selection)?;
    // Unreadable snapshots are an error of the command, even if others only differ.
    let unread = unreadable(&selection);
    let code = unread.as_ref().map_or_else(CliError::code, |()| exit_code(&all, &selection));
    let quarantined = selection.quarantined.iter().filter(|(case, _)| all.iter().any(|it| it.id.case == **case));
    let mut notes: Vec<String> = Vec::new();
    for note in
        selection.without_case.iter().map(CellWithoutCase::note).chain(quarantined.map(|(_, note)| note.clone()))
    {
        notes.extend((!notes.contains(&note)).then_some(note));
    }
    let mut out = output::stdout(Content::json(format == ComparisonFormat::Json));
    if format == ComparisonFormat::Json {
        #[derive(Serialize)]
        struct Document<'a> {
            snapshots: &'a [Compared],
            unreferenced: &'a [Unreferenced],
            notes: &'a [String],
            exit_code: u8,
        }
        let document =
            Document { snapshots: &all, unreferenced: &selection.unreferenced, notes: &notes, exit_code: code };
        serde_json::to_writer_pretty(&mut out, &document).map_err(std::io::Error::from)?;
        writeln!(out)?;
        return unread.map(|()| code);
    }
    let look = terminal::stdout_look();
    for one in all.iter().filter(|it| it.state != State::Same || it.note.is_some()) {
        let mut entry = snapshots::in_full(one);
        entry
            .about
            .extend(selection.quarantined.contains_key(&one.id.case).then(|| snapshots::IN_QUARANTINE.to_owned()));
        page::terminal::entry(&entry, &look, &mut out)?;
        writeln!(out)?;
    }
    for one in &selection.unreferenced {
        writeln!(out, "unreferenced  {}", harmless(&format!("{}: {}", one.file, one.why)))?;
    }
    for note in &notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out, "{}", snapshots::counts(&all, selection.unreferenced.len()))?;
    drop(out);
    unread.map(|()| code)
}

/// Returns an error for snapshots that cannot be read; these do not count as different.
fn unreadable(selection: &Selection) -> Result<(), CliError> {
    let errors = selection.placed.iter().filter_map(|it| it.accepted.as_ref().err());
    errors.map(CliError::unreadable).reduce(CliError::and).map_or(Ok(()), Err)
}

/// Compares every selected cell with its snapshot, and marks the cells whose new snapshot was rejected earlier.
fn compared(selection: &Selection) -> Result<Vec<Compared>, CliError> {
    let before = match &selection.run {
        Some(run) => kept(run)?,
        None => Vec::new(),
    };
    let rejected: HashSet<&SnapshotCellId> = before.iter().filter(|it| it.rejected).map(|it| &it.id).collect();
    let all = selection.placed.iter().map(|it| it.compared(true));
    Ok(all.map(|it| Compared { rejected: it.differs && rejected.contains(&it.id), ..it }).collect())
}

/// Returns 1 if a snapshot differs, else 3 if a trial could not be compared or there was none, else 0. Cases in quarantine
/// do not count.
fn exit_code(all: &[Compared], selection: &Selection) -> u8 {
    let counts = |case: &String| !selection.quarantined.contains_key(case);
    let counted: Vec<&Compared> = all.iter().filter(|it| counts(&it.id.case)).collect();
    match () {
        () if counted.iter().any(|it| it.differs) => 1,
        // Without its case, no snapshot of a cell is looked for.
        () if selection.without_case.iter().any(|it| counts(&it.case)) => 3,
        () if counted.is_empty() || counted.iter().any(|it| it.trials == 0 || it.passed_over > 0) => 3,
        () => 0,
    }
}

fn accept(selection: &Selection, add: bool) -> Result<u8, CliError> {
    if in_ci() {
        return Err(CliError::unreadable("CI is set, so nothing is written; accept snapshots where you review them"));
    }
    refuse_changed(selection)?;
    let all = compared(selection)?;
    let mut out = output::stdout(Content::Text);
    let mut accepted = 0;
    for (one, placed) in all.iter().zip(&selection.placed).filter(|(one, _)| one.differs && one.trials > 0) {
        let now = decide(selection, one, placed, Decision::Accept { beside: add })?;
        accepted += 1;
        writeln!(out, "{}", harmless(&format!("accepted  {}  {}", one.id, one.file)))?;
        if let Some(note) = now.note {
            writeln!(out, "  note: {}", harmless(&note))?;
        }
    }
    for one in all.iter().filter(|it| it.trials == 0) {
        let note = one.note.as_deref().unwrap_or("it has no trial");
        writeln!(out, "{}", harmless(&format!("passed over  {}: {note}", one.id)))?;
    }
    if accepted == 0 {
        writeln!(out, "nothing to accept")?;
    }
    Ok(0)
}

/// Refuses cells with trials whose files were changed after grading, because such files do not show the agent's
/// behaviour.
fn refuse_changed(selection: &Selection) -> Result<(), CliError> {
    for placed in &selection.placed {
        if let Some(trial) = placed.cell.passed_over.iter().find(|it| it.changed) {
            return Err(CliError::unreadable(format!(
                "{}: {} {}, so nothing is accepted; run the trial again, or choose other cells with --only",
                placed.cell.id, trial.name, trial.why
            )));
        }
    }
    Ok(())
}

fn reject(selection: &Selection) -> Result<u8, CliError> {
    if selection.run.is_none() {
        return Err(CliError::unreadable(
            "rejections are recorded in runs; a trace needs none, because it is not accepted by itself",
        ));
    }
    let all = compared(selection)?;
    let mut out = output::stdout(Content::Text);
    let mut rejected = 0;
    for (one, placed) in all.iter().zip(&selection.placed).filter(|(one, _)| one.differs && !one.rejected) {
        decide(selection, one, placed, Decision::Reject)?;
        rejected += 1;
        writeln!(out, "rejected  {}", one.id)?;
    }
    if rejected == 0 {
        writeln!(out, "nothing to reject")?;
    }
    Ok(0)
}

/// A decision about a cell.
#[derive(Debug, Clone, Copy)]
enum Decision {
    Accept { beside: bool },
    Reject,
}

/// Carries out a decision, and stores it in the run's folder. Returns the new state of the cell.
fn decide(selection: &Selection, one: &Compared, placed: &Placed, decision: Decision) -> Result<Compared, CliError> {
    let mut now = one.clone();
    match decision {
        Decision::Accept { beside } => {
            refuse_elsewhere(&placed.file, &selection.named, "name where the cases are with --case")?;
            placed.accept(beside, &mut now)?;
            now.rejected = false;
        }
        Decision::Reject => now.rejected = true,
    }
    let Some(run) = &selection.run else { return Ok(now) };
    let mut all = kept(run)?;
    match all.iter_mut().find(|it| it.id == now.id) {
        Some(known) => *known = now.clone(),
        None => all.push(now.clone()),
    }
    keep(run, &all)?;
    Ok(now)
}
