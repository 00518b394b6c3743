//! `evals harness list|show`: the agents that can be run, where each manifest came from, and what it says.

use std::io::Write;
use std::path::Path;

use super::list::{self, OutputFormat};
use super::{CliError, inputs};
use crate::harness::Manifest;
use crate::process;

#[derive(Debug, clap::Args)]
pub struct HarnessArgs {
    #[command(subcommand)]
    command: HarnessCommand,
}

#[derive(Debug, clap::Subcommand)]
enum HarnessCommand {
    /// List the harnesses
    List {
        /// The format
        #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
        format: OutputFormat,
    },
    /// Print a harness' manifest and where it came from
    Show {
        /// Its name, or the path of its manifest
        name: String,
        /// The format
        #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
        format: OutputFormat,
    },
}

pub fn run(args: &HarnessArgs) -> Result<u8, CliError> {
    match &args.command {
        HarnessCommand::List { format } => list::harnesses(*format),
        HarnessCommand::Show { name, format } => show(name, *format),
    }
}

fn show(name: &str, format: OutputFormat) -> Result<u8, CliError> {
    let (catalog, names) = inputs::catalog(&[name.to_owned()])?;
    let name = names.first().map_or(name, String::as_str);
    let entry = catalog.get(name).map_err(|error| CliError::all([error]))?;
    let manifest = &entry.manifest;
    let seen = manifest.seen();
    let installed = missing_program(manifest).is_none();
    let mut out = std::io::stdout().lock();
    if format == OutputFormat::Json {
        let shown = serde_json::json!({
            "name": manifest.name,
            "origin": entry.origin.to_string(),
            "installed": installed,
            "capabilities": {
                "tracing": seen.tracing,
                "interaction": seen.interaction,
                "multi_turn": manifest.multi_turn(),
                "model_selection": manifest.model_selection(),
            },
            "manifest": manifest,
        });
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
    match missing_program(manifest) {
        None => writeln!(out, "# installed: yes")?,
        Some(program) => writeln!(out, "# installed: no, program `{program}` is not on PATH")?,
    }
    write!(out, "{}", crate::yaml::write(manifest))?;
    Ok(0)
}

/// The program of a harness, where it is not there to be run.
pub fn missing_program(manifest: &Manifest) -> Option<String> {
    let program = manifest.command.first()?;
    if program == "{self}" {
        return None;
    }
    let path = std::env::var("PATH").ok();
    process::find(program, Path::new("."), path.as_deref()).is_none().then(|| program.clone())
}
