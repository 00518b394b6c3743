//! `evals harness …`: lists, shows, checks and imports harnesses.

use std::io::Write;

use super::list::{self, OutputFormat};
use super::output::{self, Content};
use super::{CliError, complete, inputs};
use crate::harness::Manifest;
use crate::process;
use crate::project;
use crate::report::list as rows;

mod check;
mod import;
mod parity;

#[derive(Debug, clap::Args)]
pub struct HarnessArgs {
    #[command(subcommand)]
    command: HarnessCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HarnessCommand {
    /// List the harnesses
    List {
        /// Output format
        #[arg(long, value_enum, default_value_t = ListFormat::Table)]
        format: ListFormat,
        /// Only agents of the protocol's own registry
        #[arg(long)]
        registry: bool,
    },
    /// Print a harness's manifest and its origin
    Show {
        /// Harness: name, acp:ID for an ID in the protocol's registry, or path of a manifest
        #[arg(add = complete::harnesses())]
        name: String,
        /// Output format
        #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
        format: OutputFormat,
    },
    /// Start agents and report the observed behaviour of each
    Check(check::CheckArgs),
    /// Compare an agent inside the engine with its own one-shot command
    Parity(parity::ParityArgs),
    /// Import a manifest of another system: BenchFlow's manifest.toml
    Import(import::HarnessImportArgs),
}

/// The output format of a list of harnesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ListFormat {
    /// For people, in a terminal
    Table,
    /// One JSON document
    Json,
    /// Markdown, for documents
    Markdown,
}

pub fn run(args: HarnessArgs) -> Result<u8, CliError> {
    match args.command {
        HarnessCommand::List { format, registry } => list_them(format, registry),
        HarnessCommand::Show { name, format } => show(&name, format),
        HarnessCommand::Check(args) => check::run(&args),
        HarnessCommand::Parity(args) => parity::run(&args),
        HarnessCommand::Import(args) => import::run(&args),
    }
}

fn list_them(format: ListFormat, of_registry: bool) -> Result<u8, CliError> {
    let harnesses = list::harness_rows(of_registry)?;
    let mut out = output::stdout(Content::Text);
    list::written(match format {
        ListFormat::Table => rows::harnesses(&harnesses, OutputFormat::Table.form(), &mut out),
        ListFormat::Json => rows::harnesses(&harnesses, OutputFormat::Json.form(), &mut out),
        ListFormat::Markdown => rows::harnesses_in_markdown(&harnesses, &mut out),
    })
}

fn show(name: &str, format: OutputFormat) -> Result<u8, CliError> {
    let (catalog, names) = inputs::catalog(&[name.to_owned()])?;
    let name = names.first().map_or(name, String::as_str);
    let entry = catalog.get(name).map_err(|error| CliError::all([error]))?;
    let manifest = &entry.manifest;
    let seen = manifest.seen();
    let mut out = output::stdout(Content::Text);
    if format == OutputFormat::Json {
        let mut shown = serde_json::json!({
            "name": manifest.name,
            "origin": entry.origin.to_string(),
            "capabilities": {
                "tracing": seen.tracing,
                "interaction": seen.interaction,
                "multi_turn": manifest.multi_turn(),
                "model_selection": manifest.model_selection(),
            },
            "manifest": **manifest,
        });
        if let (Some(installed), Some(shown)) = (is_installed(manifest), shown.as_object_mut()) {
            shown.insert("installed".to_owned(), installed.into());
        }
        writeln!(out, "{shown:#}")?;
        return Ok(0);
    }
    let yes = |flag: bool| if flag { "yes" } else { "no" };
    writeln!(out, "# harness `{}`, {}", manifest.name, entry.origin)?;
    writeln!(
        out,
        "# tracing: {}, interaction: {}, several turns: {}, model selection: {}",
        yes(seen.tracing),
        yes(seen.interaction),
        yes(manifest.multi_turn()),
        yes(manifest.model_selection())
    )?;
    match (is_installed(manifest), missing_program(manifest)) {
        (None, _) => writeln!(out, "# installed: unknown, the manifest has no command")?,
        (_, None) => writeln!(out, "# installed: yes")?,
        (_, Some(program)) => writeln!(out, "# installed: no, program `{program}` is not on PATH")?,
    }
    if let Some(tier) = manifest.tier.filter(|_| manifest.verified.is_empty()) {
        writeln!(out, "# tier: {}; no version was verified yet", tier.word())?;
    }
    write!(out, "{}", crate::yaml::write(&**manifest))?;
    Ok(0)
}

/// Returns true if the program of a harness is installed, or `None` if its manifest names none.
pub fn is_installed(manifest: &Manifest) -> Option<bool> {
    let known = !manifest.command.is_empty() || !manifest.adapter.starts_a_process();
    known.then(|| missing_program(manifest).is_none())
}

/// Returns the program of a harness if it is not installed.
pub fn missing_program(manifest: &Manifest) -> Option<String> {
    let program = manifest.command.first()?;
    if program == "{self}" {
        return None;
    }
    let path = crate::own_environment::var("PATH").and_then(|path| path.into_string().ok());
    process::find(&manifest.placed(program), project::root(), path.as_deref()).is_none().then(|| program.clone())
}
