//! `evals show`: prints the trace of a trial on a terminal.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;

use super::output::Content;
use super::pager::PagerArgs;
use super::{CliError, RunsFolder, complete, named_run, terminal};
use crate::ids::TrialRecord;
use crate::regular;
use crate::report::text::Look;
use crate::report::{self, show};
use crate::run::folder::RunFolder;
use crate::run::{RunRecord, integrity};
use crate::trace::jsonl::Reader;
use crate::verdict::Verdict;

#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// Run: ID, ID prefix, label, path, or `latest`; or a trace file
    #[arg(default_value = "latest", add = complete::runs())]
    run: String,
    /// Trial: CASE/HARNESS/MODEL/N or the beginning of it, such as the case's ID (default: the first that did
    /// not pass)
    #[arg(add = complete::cases())]
    trial: Option<String>,
    /// Print everything in full
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    pager: PagerArgs,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &ShowArgs) -> Result<u8, CliError> {
    let path = Path::new(&args.run);
    if args.trial.is_none() && path.is_file() {
        if let Some(why) = integrity::beside(path).changed {
            terminal::note(format_args!("warning: the trace is not the one that was graded: {why}"));
        }
        return trace(path, regular::open(path), |_, _| Ok(()), args);
    }
    let folder = named_run::by_name(&args.folder.runs, &args.run)?;
    let record = folder.record()?;
    let trial = choose(&folder, &record, args.trial.as_deref())?;
    let states = folder.states()?;
    let state = states.get(&trial.id()).filter(|state| state.finished.is_some() && trial.skip.is_none());
    let result = state.and_then(|state| folder.result_of(trial, state).ok());
    let at = match state {
        Some(state) => folder.counting_attempt(trial, state)?,
        None => folder.stored_trial(&trial.id())?,
    };
    for why in result.iter().filter_map(|result| integrity::changed_file(&at, "trace.jsonl", result)) {
        terminal::note(format_args!("warning: the trace is not the one that was graded: {why}"));
    }
    let file = at.join("trace.jsonl");
    if file.is_file() {
        let end = |look: &Look, out: &mut dyn Write| match &result {
            Some(result) => show::result(&record, &at, result, look, out),
            None => Ok(()),
        };
        return trace(&file, regular::open_own(&file), end, args);
    }
    match result {
        Some(result) => {
            // A trial that ended before its agent began has no trace.
            if result.files.contains_key("trace.jsonl") || result.error.is_none() {
                terminal::note(format_args!(
                    "warning: {} is missing, so only the result of the trial is shown",
                    file.display()
                ));
            }
            let mut out = args.pager.stdout(Content::Text);
            exit_code_of(
                show::result(&record, &at, &result, &terminal::stdout_look(), &mut out).and_then(|()| out.flush()),
            )
        }
        None => {
            let why = match (&trial.skip, state) {
                (Some(why), _) => why.clone(),
                (None, None) => "it was not run".to_owned(),
                (None, Some(_)) => {
                    format!("it was run, but its files are missing or cannot be read: {}", at.display())
                }
            };
            Err(CliError::unreadable(format!("trial {} has no trace: {why}", trial.id())))
        }
    }
}

/// Prints a trace, and what `end` prints below it.
fn trace(
    path: &Path,
    file: io::Result<File>,
    end: impl FnOnce(&Look, &mut dyn Write) -> io::Result<()>,
    args: &ShowArgs,
) -> Result<u8, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::unreadable(format!("{}: {error}", path.display()));
    let file = file.map_err(|error| failed(&error))?;
    let mut reader = Reader::new(BufReader::new(file)).map_err(|error| failed(&error))?;
    let look = terminal::stdout_look();
    let mut out = args.pager.stdout(Content::Text);
    match show::trace(&mut reader, args.full, &look, &mut out) {
        Ok(()) => {}
        Err(show::ShowError::Write(error)) => return exit_code_of(Err(error)),
        Err(error) => return Err(failed(&error)),
    }
    exit_code_of(end(&look, &mut out).and_then(|()| out.flush()))
}

/// Returns the selected trial. Without a name: the first that neither passed nor was skipped, else the first that was
/// not skipped.
fn choose<'a>(folder: &RunFolder, record: &'a RunRecord, name: Option<&str>) -> Result<&'a TrialRecord, CliError> {
    let Some(name) = name else {
        let results = folder.results(record)?;
        results.iter().for_each(terminal::tell_if_not_as_judged);
        let failed = results.iter().find(|result| !matches!(result.verdict, Verdict::Pass | Verdict::Skipped));
        let wanted = failed.or_else(|| results.iter().find(|result| result.verdict != Verdict::Skipped));
        let planned = wanted.and_then(|result| record.trials.iter().find(|trial| trial.id() == result.id()));
        return planned.ok_or_else(|| CliError::unreadable(format!("run {} has no trial that was run", record.run)));
    };
    let found = report::trials_named(record, name);
    match found.as_slice() {
        [] => {
            let known: Vec<String> = record.trials.iter().take(5).map(name_of).collect();
            Err(CliError::unreadable(format!(
                "run {} has no trial called `{name}`; there are {}{}",
                record.run,
                known.join(", "),
                if record.trials.len() > 5 { ", …" } else { "" }
            )))
        }
        [one] => Ok(one),
        several => {
            let mut all_of_a_cell = several.windows(2).all(|pair| {
                (&pair[0].case, &pair[0].harness, &pair[0].arm) == (&pair[1].case, &pair[1].harness, &pair[1].arm)
            });
            all_of_a_cell &= several.len() > 1;
            let names: Vec<String> = several.iter().copied().map(name_of).collect();
            // If a name selects several trials of one cell, the first is shown, and the others are listed.
            if all_of_a_cell {
                terminal::note(format_args!("{} trials; this is {}", names.len(), names[0]));
                return Ok(several[0]);
            }
            Err(CliError::unreadable(format!("`{name}` could be any of {}; write more of it", names.join(", "))))
        }
    }
}

fn name_of(trial: &TrialRecord) -> String {
    trial.id().to_string()
}

fn exit_code_of(result: std::io::Result<()>) -> Result<u8, CliError> {
    super::import::ignore_closed_pipe(result)?;
    Ok(0)
}
