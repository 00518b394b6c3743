//! `evals baseline`: stores a run's scores beside its cases, for version control, and prints them.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::beside_cases::refuse_elsewhere;
use super::compare::{Use, comparable};
use super::output::{self, Content};
use super::{CliError, RunsFolder, complete};
use crate::baseline::{self, Baseline};
use crate::compare::side::{Interner, Side};
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
    /// Replace the file even if it contains cases that this run does not have
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
    let baseline = Baseline::of(&record, &side);
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
    if !args.replace {
        refuse_to_lose(&path, &baseline, &side)?;
    }
    super::report::make_place(&path)?;
    baseline.write(&path)?;
    let (cases, arms) = (plural(baseline.cases.len(), "case"), plural(baseline.arms.len(), "column"));
    super::terminal::note(format_args!("{}: {cases}, {arms} of run {}", path.display(), record.run));
    if !side.quarantined.is_empty() {
        let left_out: Vec<&str> = side.quarantined.keys().map(String::as_str).collect();
        super::terminal::note(format_args!("without cases in quarantine: {}", some_of(&left_out, 20)));
    }
    Ok(0)
}

/// Refuses a run of only a part of the suite: its baseline would remove the scores of the other cases.
fn refuse_to_lose(path: &Path, now: &Baseline, side: &Side) -> Result<(), CliError> {
    if !path.is_file() {
        return Ok(());
    }
    let mut lost = Baseline::read(path)?.lost_with(now);
    lost.retain(|id| !side.quarantined.contains_key(id));
    if lost.is_empty() {
        return Ok(());
    }
    Err(CliError::unreadable(format!(
        "{} has {} that run {} does not have: {}; run the whole suite, write to another file with --file, or pass \
         --replace if the cases were removed",
        path.display(),
        plural(lost.len(), "case"),
        now.run,
        some_of(&lost, 5)
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
