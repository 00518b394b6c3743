//! `evals baseline`: stores a run's scores beside its cases, for version control, and prints them.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::beside_cases::refuse_elsewhere;
use super::compare::{Use, comparable};
use super::output::{self, Content};
use super::{CliError, RunsFolder, complete};
use crate::baseline::{self, Baseline, Lacked, Lost};
use crate::compare::side::{Arm, Interner, Side};
use crate::project;
use crate::report::compare::baseline_table;
use crate::text::{plural, some_of};

#[derive(Debug, clap::Args)]
pub struct BaselineArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Write a run's scores, digests and versions to the baseline file
    Set(SetArgs),
    /// Print the baseline
    Show(ShowArgs),
}

#[derive(Debug, clap::Args)]
struct SetArgs {
    /// Run: ID, ID prefix, label, path, or `latest`
    #[arg(default_value = "latest", add = complete::runs())]
    run: String,
    /// Baseline file (default: baseline.json beside the run's cases)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Replace the file even if it contains results that this run does not have
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    folder: RunsFolder,
}

#[derive(Debug, clap::Args)]
struct ShowArgs {
    /// Baseline file (default: cases/baseline.json of the project)
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Output format; json has the content of the file
    #[arg(long, value_enum, default_value_t = ShowFormat::Table)]
    format: ShowFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ShowFormat {
    /// For people, in a terminal
    Table,
    /// One JSON object
    Json,
}

pub fn run(args: &BaselineArgs) -> Result<u8, CliError> {
    match &args.command {
        Command::Set(args) => set(args),
        Command::Show(args) => show(args),
    }
}

fn set(args: &SetArgs) -> Result<u8, CliError> {
    let (side, record) = comparable(&args.folder.runs, &args.run, Use::Baseline, &mut Interner::default())?;
    if let Some(shard) = record.shard.filter(|shard| shard.n > 1 && args.file.is_none()) {
        return Err(CliError::unreadable(format!(
            "run {} is shard {shard} of a plan, so its baseline would lack the cases of the other shards; make one run of all \
             shards with `evals merge`, or write to another file with --file",
            record.run
        )));
    }
    let mut baseline = Baseline::of(&record, &side);
    if baseline.arms.iter().all(|arm| arm.cases.values().all(|case| case.scores.is_empty())) {
        return Err(CliError::unreadable(format!("no trial of run {} has a score to compare with", record.run)));
    }
    let path = match &args.file {
        Some(path) => path.clone(),
        None => {
            let path = baseline::place(&record);
            let path = path.ok_or_else(|| CliError::unreadable(format!("run {} has no cases", record.run)))?;
            refuse_elsewhere(&path, &[], "name the file with --file")?;
            path
        }
    };
    let (mut kept, mut forgotten) = (Vec::new(), Vec::<String>::new());
    if !args.replace && path.is_file() {
        let before = Baseline::read(&path)?;
        kept = baseline.keep_quarantined(&before, &side);
        refuse_to_lose(&path, &before, &baseline, &side)?;
    } else if path.is_file()
        && let Ok(before) = Baseline::read(&path)
    {
        // A file that cannot be read may be replaced as well.
        forgotten = baseline.forgotten_of(&before, &side).iter().map(Lacked::name).collect();
    }
    let of_run = baseline.cases.len().saturating_sub(kept.len());
    let (cases, arms) = (plural(of_run, "case"), plural(baseline.arms.len(), "column"));
    super::report::make_place(&path)?;
    baseline.write(&path)?;
    super::terminal::note(format_args!("{}: {cases}, {arms} of run {}", path.display(), record.run));
    if !side.quarantined.is_empty() {
        let left_out: Vec<&str> = side.quarantined.keys().map(String::as_str).collect();
        super::terminal::note(format_args!("without cases in quarantine: {}", some_of(&left_out, 20)));
    }
    if !kept.is_empty() {
        let kept = some_of(&kept, 20);
        super::terminal::note(format_args!("the file keeps the earlier results of cases in quarantine: {kept}"));
    }
    if !forgotten.is_empty() {
        super::terminal::note(format_args!(
            "note: the file that was replaced named {} without results because of a quarantine; no gate finds out any more \
             whether one of them is lost: {}",
            plural(forgotten.len(), "case"),
            some_of(&forgotten, 20)
        ));
    }
    tell_lacked(&baseline, &side);
    let read: Vec<String> = baseline.read_own_case().collect();
    if !read.is_empty() {
        super::terminal::note(format_args!(
            "note: agents could read files of their own case in {}, so its scores may be too high: {}",
            plural(read.len(), "cell"),
            some_of(&read, 20)
        ));
    }
    Ok(0)
}

/// Prints notes that name the cells without a score, and the cases of which the baseline has no results because they are in
/// quarantine, with what to do about them. `side` is its run.
fn tell_lacked(baseline: &Baseline, side: &Side) {
    let unscored: Vec<String> = baseline.unscored().collect();
    if !unscored.is_empty() {
        super::terminal::note(format_args!(
            "note: the file has no score of {}, so no gate can find out whether one of them is lost: {}",
            plural(unscored.len(), "cell"),
            some_of(&unscored, 20)
        ));
    }
    let lacked = baseline.lacked();
    if lacked.is_empty() {
        return;
    }
    let is_skipped = |case: &&Lacked<'_>| {
        let skips = |name: &String| side.arms.iter().any(|arm| arm.name == *name && arm.skipped.contains(case.id));
        case.columns.iter().all(skips)
    };
    let (tried, gone): (Vec<&Lacked<'_>>, Vec<_>) = lacked.iter().partition(|case| side.cases.contains_key(case.id));
    let (skipped, tried): (Vec<&Lacked<'_>>, Vec<_>) = tried.into_iter().partition(is_skipped);
    let names = |cases: &[&Lacked<'_>]| some_of(cases.iter().map(|case| case.name()), 20);
    let mut what_to_do = Vec::new();
    if !tried.is_empty() {
        let set = "set the baseline again from a run with their scores when the quarantine has ended";
        what_to_do.push(set.to_owned());
    }
    let run = &baseline.run;
    if !gone.is_empty() {
        let names = names(&gone);
        what_to_do.push(format!("run {run} does not have {names}: --replace drops the names of deleted cases"));
    }
    if !skipped.is_empty() {
        let names = names(&skipped);
        what_to_do.push(format!("run {run} skipped {names}: --replace drops the names of what is always skipped"));
    }
    super::terminal::note(format_args!(
        "note: the file has no results of {} in quarantine, so no gate can find out whether one of them is lost: {}; \
         {}",
        plural(lacked.len(), "case"),
        some_of(lacked.iter().map(|case| format!("{} ({})", case.name(), case.why)), 20),
        what_to_do.join("; ")
    ));
}

/// Refuses a run whose baseline would remove scores: of cases or columns that it does not have, or of cells in which all of its
/// trials were skipped, errored or ungraded. A gate would take such a cell for a new one, and pass whatever it lost.
fn refuse_to_lose(path: &Path, before: &Baseline, now: &Baseline, side: &Side) -> Result<(), CliError> {
    let Lost { cases, columns, cells } = before.lost_with(now);
    let run = &now.run;
    // The run has the cases in quarantine, and skipped cells would be skipped again.
    let is_skipped = |id: &String| side.arms.iter().any(|arm| arm.skipped.contains(id));
    let cases = cases.into_iter().filter(|id| !side.quarantined.contains_key(id));
    let (skipped, cases): (Vec<String>, Vec<String>) = cases.partition(is_skipped);
    let skipped_in = |cell: &String| {
        let of_arm =
            |arm: &Arm| arm.skipped.iter().any(|id| baseline::cell_name(id, &arm.harness, &arm.column) == *cell);
        side.arms.iter().any(of_arm)
    };
    let (skipped_cells, cells): (Vec<String>, Vec<String>) = cells.into_iter().partition(skipped_in);
    let skipped: Vec<String> = skipped.into_iter().chain(skipped_cells).collect();
    let mut parts = Vec::new();
    for (names, noun) in [(&cases, "case"), (&columns, "column")] {
        if !names.is_empty() {
            let count = plural(names.len(), noun);
            parts.push(format!("{count} that run {run} does not have: {}", some_of(names, 5)));
        }
    }
    if !cells.is_empty() {
        let count = plural(cells.len(), "cell");
        parts.push(format!("scores of {count} in which run {run} has none: {}", some_of(&cells, 5)));
    }
    if !skipped.is_empty() {
        parts.push(format!("scores of what run {run} skipped: {}", some_of(&skipped, 5)));
    }
    if parts.is_empty() {
        return Ok(());
    }
    let again = match (cases.is_empty(), columns.is_empty()) {
        (true, true) if cells.is_empty() => String::new(),
        (true, true) if !side.graded => format!(
            "run the errored or ungraded trials again with `evals run --resume {run} --rerun errored` (or `ungraded`), "
        ),
        (_, true) => "run the whole suite, ".to_owned(),
        (_, false) => "run the whole suite with all of its harnesses, models and variants, ".to_owned(),
    };
    Err(CliError::unreadable(format!(
        "{} has {}; {again}write to another file with --file, or pass --replace if these results are no longer needed",
        path.display(),
        parts.join(", and ")
    )))
}

fn show(args: &ShowArgs) -> Result<u8, CliError> {
    let file = args.file.clone().unwrap_or_else(|| project::path("cases/baseline.json"));
    if !file.is_file() {
        return Err(CliError::unreadable(format!(
            "there is no baseline at {}; `evals baseline set RUN` writes one",
            file.display()
        )));
    }
    let baseline = Baseline::read(&file)?;
    let look = super::terminal::stdout_look();
    let mut out = output::stdout(Content::json(matches!(args.format, ShowFormat::Json)));
    let written = match args.format {
        ShowFormat::Table => baseline_table(&baseline, &look, &mut out),
        ShowFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &baseline).map_err(std::io::Error::from).and_then(|()| writeln!(out))
        }
    };
    super::import::ignore_closed_pipe(written.and_then(|()| out.flush()))?;
    Ok(0)
}
