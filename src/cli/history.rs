//! `evals history`: the scores, costs and times of cells over the runs of a folder.

use super::door::{self, Content};
use super::list::OutputFormat;
use super::{CliError, RunsFolder, terminal};
use crate::report::history::{self, Collector};
use crate::run::folder::{self, RunFolder};
use crate::values::NameGlob;

#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// Id of a case, or a glob of ids (default: all cases)
    case: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
    #[command(flatten)]
    folder: RunsFolder,
}

pub fn run(args: &HistoryArgs) -> Result<u8, CliError> {
    let runs = &args.folder.runs;
    for error in folder::unreadable(runs) {
        terminal::note(format_args!("note: {error}"));
    }
    let glob = match &args.case {
        Some(text) => Some(text.parse::<NameGlob>().map_err(CliError::unreadable)?),
        None => None,
    };
    let mut collector = Collector::default();
    // The newest run is first in the folder. Trials of merged shards are in the merged run.
    let all = folder::all(runs);
    let merged = folder::merged_shards(&all);
    for (path, record) in all.iter().rev().filter(|(_, record)| !merged.contains(&record.run)) {
        match RunFolder::open(path).results(record) {
            Ok(results) => {
                results.iter().for_each(terminal::tell_if_not_as_judged);
                collector.add(record, &results);
            }
            Err(error) => terminal::note(format_args!("note: {error}")),
        }
    }
    let wanted = |id: &str| match (&args.case, &glob) {
        (Some(text), Some(glob)) => text == id || glob.is_match(id),
        _ => true,
    };
    let history = collector.history(wanted);
    if history.cells.is_empty() {
        let folder = runs.display();
        return Err(CliError::unreadable(match &args.case {
            Some(case) => format!("no run in {folder} has a case `{case}`; `evals list runs` lists the runs"),
            None => format!("there are no runs in {folder} yet; `evals run` makes one"),
        }));
    }
    let content = Content::json(matches!(args.format, OutputFormat::Json));
    let mut out = door::stdout(content);
    let written = history::write(&history, args.format.form(), &mut out);
    super::import::ignore_closed_pipe(written)?;
    Ok(0)
}
