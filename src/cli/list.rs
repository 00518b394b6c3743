//! `evals list`: lists cases, harnesses, graders, policies or runs, each with its origin.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::output::{self, Content};
use super::{CliError, inputs, terminal};
use crate::case::{LoadContext, load_all};
use crate::embedded;
use crate::ids::column_name;
use crate::paths;
use crate::report::Summary;
use crate::report::list::{self, CaseRow, HarnessRow, ListForm, NamedRow, RunRow};
use crate::run::find;
use crate::run::folder::RunFolder;
use crate::text::plural;

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Kind of items to list
    #[arg(value_enum)]
    what: Listed,
    /// Cases, or folders of cases (default: cases/)
    paths: Vec<PathBuf>,
    /// List also the harnesses that are not installed
    #[arg(long)]
    all: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
    #[command(flatten)]
    folder: super::RunsFolder,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Listed {
    Cases,
    Harnesses,
    Graders,
    Policies,
    Runs,
}

/// The output format of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people, in a terminal
    Table,
    /// One JSON document
    Json,
}

impl OutputFormat {
    pub fn form(self) -> ListForm {
        match self {
            OutputFormat::Table => ListForm::Table(terminal::stdout_look()),
            OutputFormat::Json => ListForm::Json,
        }
    }
}

pub fn run(args: &ListArgs) -> Result<u8, CliError> {
    refuse_without_effect(args)?;
    if !matches!(args.what, Listed::Runs) {
        for note in inputs::passed_over() {
            terminal::note(format_args!("note: {note}"));
        }
    }
    match args.what {
        Listed::Cases => cases(&args.paths, args.format),
        Listed::Harnesses => harnesses(args.format, args.all),
        Listed::Graders => graders(args.format),
        Listed::Policies => policies(args.format),
        Listed::Runs => runs(args),
    }
}

/// Refuses arguments that have no effect on the list.
fn refuse_without_effect(args: &ListArgs) -> Result<(), CliError> {
    let out = args.folder.runs != super::default_runs();
    let why = match args.what {
        Listed::Cases | Listed::Graders | Listed::Policies | Listed::Runs if args.all => {
            "--all is for `evals list harnesses`"
        }
        Listed::Cases | Listed::Harnesses | Listed::Graders | Listed::Policies if out => {
            "--out is for `evals list runs`"
        }
        Listed::Runs if !args.paths.is_empty() => {
            "paths are for `evals list cases`; name the folder of the runs with --out"
        }
        Listed::Harnesses | Listed::Graders | Listed::Policies if !args.paths.is_empty() => {
            "paths are for `evals list cases`"
        }
        _ => return Ok(()),
    };
    Err(CliError::unreadable(why))
}

fn cases(paths: &[PathBuf], format: OutputFormat) -> Result<u8, CliError> {
    let (graders, policies) = (inputs::named_graders()?, inputs::named_policies()?);
    let context = LoadContext { graders, policies, without_agents: false };
    let loaded = load_all(&inputs::cases_or_default(paths)?, &context).map_err(CliError::all)?;
    let rows: Vec<CaseRow> = loaded
        .cases
        .iter()
        .map(|case| CaseRow {
            id: case.id.clone(),
            path: case.file.display().to_string(),
            description: case.description.clone(),
            kind: Some(case.kind.word().to_owned()),
            tags: case.tags.clone(),
            harnesses: case.harnesses.clone(),
            trials: case.trials,
            graders: crate::grader::unique_names(case.graders.iter().map(AsRef::as_ref)),
        })
        .collect();
    for note in &loaded.notes {
        terminal::note(format_args!("note: {note}"));
    }
    written(list::cases(&rows, format.form(), &mut output::stdout(Content::json(matches!(format, OutputFormat::Json)))))
}

/// Lists harnesses. A table contains only the installed ones and the user's own, unless `all` is set.
pub fn harnesses(format: OutputFormat, all: bool) -> Result<u8, CliError> {
    let mut rows = harness_rows(false)?;
    let mut hidden = 0;
    if format == OutputFormat::Table {
        let is_here = |row: &HarnessRow| row.installed == Some(true) || row.origin != embedded::ORIGIN;
        rows.sort_by_key(|row| (row.installed != Some(true), !is_here(row)));
        if !all {
            let known = rows.len();
            rows.retain(is_here);
            hidden = known - rows.len();
        }
    }
    let mut out = output::stdout(Content::json(format == OutputFormat::Json));
    let code = written(list::harnesses(&rows, format.form(), &mut out))?;
    drop(out);
    if hidden > 0 {
        let more = plural(hidden, "more harness");
        terminal::note(format_args!("{more} known, and not installed here: evals list harnesses --all"));
    }
    Ok(code)
}

/// Returns the rows of all harnesses, or of the harnesses in the protocol's registry only.
///
/// # Errors
/// Returns an error if a manifest cannot be read.
pub fn harness_rows(of_registry: bool) -> Result<Vec<HarnessRow>, CliError> {
    let (catalog, _) = inputs::catalog(&[])?;
    let rows = catalog
        .entries()
        .filter(|entry| !of_registry || entry.manifest.registry_id.is_some())
        .map(|entry| {
            let manifest = &entry.manifest;
            let seen = manifest.seen();
            let can = [
                (seen.tracing, "tracing"),
                (seen.interaction, "interaction"),
                (manifest.multi_turn(), "multi_turn"),
                (manifest.model_selection(), "model_selection"),
            ];
            HarnessRow {
                name: manifest.name.clone(),
                adapter: manifest.adapter.word().to_owned(),
                origin: entry.origin.to_string(),
                tier: manifest.tier.map(|tier| tier.word().to_owned()),
                registry_id: manifest.registry_id.clone(),
                capabilities: can.iter().filter(|(can, _)| *can).map(|(_, word)| (*word).to_owned()).collect(),
                installed: super::harness::is_installed(manifest),
                verified: manifest.verified.last().map(|verified| verified.version.clone()),
                install: manifest.install.clone(),
                description: manifest.description.clone(),
            }
        })
        .collect();
    Ok(rows)
}

fn graders(format: OutputFormat) -> Result<u8, CliError> {
    let folder = inputs::named_graders()?;
    let library = folder.library();
    let rows: Vec<NamedRow> = library
        .iter()
        .map(|(name, grader)| NamedRow {
            name: name.to_owned(),
            origin: grader.origin.clone(),
            description: grader.read().ok().and_then(|file| file.description),
        })
        .collect();
    written(list::named(
        "grader",
        &rows,
        format.form(),
        &mut output::stdout(Content::json(matches!(format, OutputFormat::Json))),
    ))
}

fn policies(format: OutputFormat) -> Result<u8, CliError> {
    let folder = inputs::named_policies()?;
    let rows: Vec<NamedRow> = folder
        .iter()
        .map(|(name, policy)| NamedRow {
            name: name.to_owned(),
            origin: policy.origin.clone(),
            description: policy.description.clone(),
        })
        .collect();
    written(list::named(
        "policy",
        &rows,
        format.form(),
        &mut output::stdout(Content::json(matches!(format, OutputFormat::Json))),
    ))
}

fn runs(args: &ListArgs) -> Result<u8, CliError> {
    let unreadable = find::unreadable(&args.folder.runs);
    for error in &unreadable {
        terminal::note(format_args!("note: {error}"));
    }
    let rows: Vec<RunRow> = find::in_order(&args.folder.runs)
        .into_iter()
        .filter_map(|path| {
            let folder = RunFolder::open(&path);
            // Of all runs, the plan of one is held.
            let record = folder.record_to_read().ok()?;
            // Asked first: a run that ends in this moment has all of its results.
            let is_in_use = folder.is_in_use();
            let summary = folder
                .results(&record)
                .ok()
                .inspect(|results| results.iter().for_each(terminal::tell_if_not_as_judged))
                .map(|results| Summary::of(&results, record.trials.len() - results.len()));
            // The journal was just read for the results.
            let lacks_end = folder.lacks_end(&record).unwrap_or(true);
            let mut columns: Vec<String> = Vec::new();
            for trial in &record.trials {
                let column = column_name(&trial.harness, &trial.arm);
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
            Some(RunRow {
                run: record.run,
                label: record.label,
                shard: record.shard,
                started: record.started,
                path: path.display().to_string(),
                columns,
                going_on: is_in_use && summary.as_ref().is_some_and(|summary| summary.not_run > 0 || lacks_end),
                lacks_end: lacks_end && !is_in_use,
                summary,
                derived_from: record.derived_from,
            })
        })
        .collect();
    if rows.is_empty() {
        let folder = paths::absolute(Path::new(""), &args.folder.runs);
        let folder = folder.display();
        match unreadable.is_empty() {
            true => terminal::note(format_args!("note: there are no runs in {folder}; `evals run` makes one")),
            false => terminal::note(format_args!("note: no run in {folder} can be read")),
        }
    }
    written(list::runs(
        &rows,
        args.format.form(),
        &mut output::stdout(Content::json(matches!(args.format, OutputFormat::Json))),
    ))
}

/// Returns the exit code of a list that was written.
///
/// # Errors
/// Returns an error if the list cannot be written.
pub fn written(result: std::io::Result<()>) -> Result<u8, CliError> {
    super::import::ignore_closed_pipe(result)?;
    Ok(0)
}
