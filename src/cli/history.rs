//! `evals history`: the scores, costs and times of cells over the runs of a folder.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::compare::{Use, tell_not_accepted};
use super::import::ignore_closed_pipe;
use super::output::Content;
use super::pager::PagerArgs;
use super::snapshot::acceptance::Acceptance;
use super::{CliError, RunsFolder, complete, report, terminal};
use crate::paths;
use crate::report::history::{self, Collector, History};
use crate::report::html;
use crate::report::list::ListForm;
use crate::report::text::Look;
use crate::report::unfinished::{self, OpenTrials};
use crate::run::RunRecord;
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::run::merge::replaced::Merges;
use crate::run::user_file::write_named;
use crate::text::some_of;
use crate::values::NameGlob;

#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// ID of a case, or a glob of IDs (default: all cases)
    #[arg(add = complete::cases())]
    case: Option<String>,
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

/// The format of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people, in a terminal
    Table,
    /// One JSON object
    Json,
    /// One HTML file with charts
    Html,
}

pub fn run(args: &HistoryArgs) -> Result<u8, CliError> {
    let runs = &args.folder.runs;
    if let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) {
        if path.is_dir() {
            let path = path.display();
            return Err(CliError::unreadable(format!("{path} is a folder; name a file in it")));
        }
        report::make_place(path)?;
    }
    let mut unread: Vec<String> = find::unreadable(runs).iter().map(ToString::to_string).collect();
    unread.iter().for_each(|error| terminal::note(format_args!("note: {error}")));
    let glob = match &args.case {
        Some(text) => Some(text.parse::<NameGlob>().map_err(CliError::unreadable)?),
        None => None,
    };
    let mut collector = Collector::default();
    let all = find::all(runs);
    let shown = without_replaced(&all);
    let holders = find::copies::holders(&shown);
    let mut seen: HashMap<&str, &Path> = HashMap::new();
    let mut is_any_read = false;
    for (path, record) in &shown {
        let run = &record.run;
        if let Some(holder) = holders.get(path.as_path()) {
            let (path, holder) = (path.display(), holder.display());
            terminal::note(format_args!(
                "note: {path} is left out: it is a copy of run {run}: all its results are in {holder}"
            ));
            continue;
        }
        if let Some(other) = seen.insert(run, path) {
            let (path, other) = (path.display(), other.display());
            terminal::note(format_args!(
                "note: {other} and {path} are copies of run {run} with different results, so the run is shown for each of them"
            ));
        }
        let folder = RunFolder::open(path);
        // Asked first: a run that ends in this moment has all of its results.
        let is_in_use = folder.is_in_use();
        match folder.results(record) {
            Ok(results) => {
                results.iter().for_each(terminal::tell_if_not_as_judged);
                let mut open = OpenTrials::of(record);
                results.iter().for_each(|result| open.see(result));
                let (results, not_accepted) = Acceptance::of(&folder, record).all_counted(results.clone());
                // A run that was made from another one is not shown.
                if !not_accepted.is_empty() && !record.graded && record.derived_from.is_none() {
                    tell_not_accepted(record, &folder, not_accepted, Use::Compared)?;
                }
                collector.add(record, &results, &unfinished::of(record, &folder, open.all(), is_in_use));
            }
            Err(error) => {
                terminal::note(format_args!("note: {error}"));
                unread.push(error.to_string());
                continue;
            }
        }
        is_any_read = true;
    }
    let wanted = |id: &str| match (&args.case, &glob) {
        (Some(text), Some(glob)) => text == id || glob.is_match(id),
        _ => true,
    };
    let history = collector.history(wanted);
    if history.cells.is_empty() {
        let folder = paths::absolute(Path::new(""), runs);
        let folder = folder.display();
        if !is_any_read && !unread.is_empty() {
            return Err(CliError::unreadable(format!("no run could be read: {}", some_of(&unread, 3))));
        }
        return Err(CliError::unreadable(match &args.case {
            Some(case) => {
                format!(
                    "no run in {folder} has a case `{case}` with a trial that was run; `evals list runs` lists the runs"
                )
            }
            None => format!("there are no runs in {folder} with a trial that was run; `evals run` makes one"),
        }));
    }
    match args.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(path) => write_named(path, |out| write(&history, args.format, Look::PLAIN, out))?,
        None => print(&history, args)?,
    }
    Ok(0)
}

/// Returns the runs whose results are in no merged run, the oldest first. The newest run is first in `all`.
fn without_replaced(all: &[(PathBuf, RunRecord)]) -> Vec<&(PathBuf, RunRecord)> {
    let merges = Merges::of(all);
    let replaced = find::evidence::replaced(all, &merges);
    let mut left = Vec::new();
    for run in all.iter().rev().filter(|(path, _)| !replaced.contains(path.as_path())) {
        let (path, record) = run;
        if merges.is_outdated(path) {
            terminal::note(format_args!(
                "note: run {} is left out: its shards have all its results and further ones; merge them again with `evals merge`",
                record.run
            ));
        } else {
            left.push(run);
        }
    }
    left
}

fn print(history: &History, args: &HistoryArgs) -> Result<(), CliError> {
    let format = args.format;
    let written = if format == Format::Html {
        // The page is a file for a browser, and its text is escaped.
        let mut out = io::BufWriter::new(io::stdout().lock());
        html::history::write(history, &mut out).and_then(|()| out.flush())
    } else {
        let mut out = args.pager.stdout(Content::json(format == Format::Json));
        write(history, format, terminal::stdout_look(), &mut out).and_then(|()| out.flush())
    };
    ignore_closed_pipe(written)
}

fn write(history: &History, format: Format, look: Look, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Table => history::write(history, ListForm::Table(look), out),
        Format::Json => history::write(history, ListForm::Json, out),
        Format::Html => html::history::write(history, out),
    }
}
