//! `evals list`: cases, harnesses, graders, policies or runs, each with where it comes from.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;

use super::{CliError, inputs, terminal};
use crate::case::{CaseKind, LoadContext, load_all};
use crate::report::Summary;
use crate::report::cells::column_name;
use crate::report::list::{self, CaseRow, HarnessRow, ListForm, NamedRow, RunRow};
use crate::run::folder::{self, RunFolder};

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// What
    #[arg(value_enum)]
    what: What,
    /// Cases, or folders of them (default: cases/)
    paths: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
    #[command(flatten)]
    folder: super::RunsFolder,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    Cases,
    Harnesses,
    Graders,
    Policies,
    Runs,
}

/// How lists are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OutputFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

impl OutputFormat {
    fn form(self) -> ListForm {
        match self {
            OutputFormat::Table => ListForm::Table(terminal::stdout_look()),
            OutputFormat::Json => ListForm::Json,
        }
    }
}

pub fn run(args: &ListArgs) -> Result<u8, CliError> {
    match args.what {
        What::Cases => cases(&args.paths, args.format),
        What::Harnesses => harnesses(args.format),
        What::Graders => graders(args.format),
        What::Policies => policies(args.format),
        What::Runs => runs(args),
    }
}

fn cases(paths: &[PathBuf], format: OutputFormat) -> Result<u8, CliError> {
    let context = LoadContext { graders: inputs::named_graders()?, policies: inputs::named_policies()? };
    let loaded = load_all(&inputs::cases_or_default(paths), &context).map_err(CliError::all)?;
    let rows: Vec<CaseRow> = loaded
        .cases
        .iter()
        .map(|case| CaseRow {
            id: case.id.clone(),
            path: case.file.display().to_string(),
            description: case.description.clone(),
            kind: Some(
                match case.kind {
                    CaseKind::Capability => "capability",
                    CaseKind::Regression => "regression",
                }
                .to_owned(),
            ),
            tags: case.tags.clone(),
            harnesses: case.harnesses.clone(),
            trials: case.trials,
            graders: crate::grader::unique_names(case.judges.iter().map(AsRef::as_ref)),
        })
        .collect();
    written(list::cases(&rows, format.form(), &mut std::io::stdout().lock()))
}

/// Lists the harnesses.
pub fn harnesses(format: OutputFormat) -> Result<u8, CliError> {
    let (catalog, _) = inputs::catalog(&[])?;
    let rows: Vec<HarnessRow> = catalog
        .entries()
        .map(|entry| {
            let manifest = &entry.manifest;
            let seen = manifest.seen();
            let can = [
                (seen.tracing, "tracing"),
                (seen.interaction, "interaction"),
                (manifest.multi_turn(), "multi_turn"),
                (manifest.model_selection(), "model_selection"),
            ];
            let tier = manifest.tier.and_then(|tier| serde_json::to_value(tier).ok());
            HarnessRow {
                name: manifest.name.clone(),
                adapter: manifest.adapter.word().to_owned(),
                origin: entry.origin.to_string(),
                tier: tier.and_then(|tier| tier.as_str().map(str::to_owned)),
                capabilities: can.iter().filter(|(can, _)| *can).map(|(_, word)| (*word).to_owned()).collect(),
                installed: Some(super::harness::missing_program(manifest).is_none()),
                description: manifest.description.clone(),
            }
        })
        .collect();
    written(list::harnesses(&rows, format.form(), &mut std::io::stdout().lock()))
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
    written(list::named("grader", &rows, format.form(), &mut std::io::stdout().lock()))
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
    written(list::named("policy", &rows, format.form(), &mut std::io::stdout().lock()))
}

fn runs(args: &ListArgs) -> Result<u8, CliError> {
    for error in folder::unreadable(&args.folder.runs) {
        writeln!(std::io::stderr(), "note: {error}")?;
    }
    let rows: Vec<RunRow> = folder::all(&args.folder.runs)
        .into_iter()
        .map(|(path, record)| {
            let summary = RunFolder::open(&path)
                .results(&record)
                .ok()
                .map(|results| Summary::of(&results, record.trials.len() - results.len()));
            let mut columns: Vec<String> = Vec::new();
            for trial in &record.trials {
                let column = column_name(&trial.harness, &trial.arm);
                if !columns.contains(&column) {
                    columns.push(column);
                }
            }
            RunRow {
                run: record.run,
                label: record.label,
                started: record.started,
                path: path.display().to_string(),
                columns,
                summary,
                derived_from: record.derived_from,
            }
        })
        .collect();
    written(list::runs(&rows, args.format.form(), &mut std::io::stdout().lock()))
}

fn written(result: std::io::Result<()>) -> Result<u8, CliError> {
    super::import::ignore_closed_pipe(result)?;
    Ok(0)
}
