//! `evals harness check`: starts agents and reports the observed behaviour of each, with the lines that show it.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;

use super::is_installed;
use crate::case::{Case, LoadContext, load_all};
use crate::cli::complete;
use crate::cli::output::{self, Content};
use crate::cli::stop::{INTERRUPTED, on_interrupt};
use crate::cli::{CliError, engine, inputs, list, terminal};
use crate::conformance::carry_out::{Check, CheckError, carry_out};
use crate::conformance::{Checks, Report, exit_code, probes};
use crate::harness::catalog::{Catalog, Entry};
use crate::project;
use crate::report::{conformance, page};
use crate::run::folder::write_gitignore;
use crate::run::names::new_run_id;
use crate::run::temporary::Temporary;
use crate::values::Time;
use crate::whole_file::folder_name;

/// The folder for the evidence of checks.
const CHECKS: &str = ".evals/checks";

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Harnesses: name, acp:ID, or path of a manifest
    #[arg(required_unless_present = "all", add = complete::harnesses())]
    names: Vec<String>,
    /// Check every installed harness
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Let the agent call its configured model, which may cost money
    #[arg(long)]
    live: bool,
    /// Request this model
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Timeout of each probe
    #[arg(long, value_name = "TIME", default_value = "2m")]
    timeout: Time,
    /// Output format
    #[arg(long, value_enum, default_value_t = CheckFormat::Table)]
    format: CheckFormat,
}

/// The output format of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CheckFormat {
    /// For people, in a terminal
    Table,
    /// One JSON object
    Json,
    /// Markdown, for documents
    Markdown,
}

pub fn run(args: &CheckArgs) -> Result<u8, CliError> {
    if args.timeout.0.is_zero() {
        return Err(CliError::unreadable("`--timeout` must be more than 0"));
    }
    let (catalog, names) = inputs::catalog(&args.names)?;
    let entries = wanted(&catalog, &names, args.all)?;
    let temporary = engine::temporary()?;
    let cases = built_in(&temporary)?;
    let runtime = engine::runtime()?;
    let result = runtime.block_on(check_all(args, &entries, &temporary, &cases));
    runtime.shutdown_background();
    let Some(reports) = result? else { return Ok(INTERRUPTED) };
    let code = exit_code(&reports);
    let mut out = output::stdout(Content::json(matches!(args.format, CheckFormat::Json)));
    let written = match args.format {
        CheckFormat::Table => {
            let look = terminal::stdout_look();
            page::terminal::write(&conformance::page(&reports, &look), &look, &mut out)
        }
        CheckFormat::Markdown => out.write_all(page::markdown::table(&conformance::table(&reports)).as_bytes()),
        CheckFormat::Json => serde_json::to_writer_pretty(&mut out, &Checks { checks: reports })
            .map_err(std::io::Error::from)
            .and_then(|()| writeln!(out)),
    };
    list::written(written)?;
    Ok(code)
}

/// Returns the requested harnesses: by name, or all installed ones.
fn wanted<'a>(catalog: &'a Catalog, names: &[String], all: bool) -> Result<Vec<&'a Entry>, CliError> {
    let agent = |entry: &&Entry| entry.manifest.adapter.starts_a_process();
    if all {
        return Ok(catalog.entries().filter(agent).filter(|it| is_installed(&it.manifest) == Some(true)).collect());
    }
    let mut entries: Vec<&Entry> = Vec::new();
    for name in names {
        let entry = catalog.get(name).map_err(|error| CliError::all([error]))?;
        if !agent(&entry) {
            let message = format!("harness `{name}` plays a recording; there is no agent that could be checked");
            return Err(CliError::unreadable(message));
        }
        if !entries.iter().any(|known| known.manifest.name == entry.manifest.name) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// Returns the cases of the probes, by id.
pub fn built_in(temporary: &Temporary) -> Result<HashMap<String, Case>, CliError> {
    let root = probes::write_cases(temporary.path())?;
    let loaded = load_all(&[root], &LoadContext::default()).map_err(CliError::all)?;
    Ok(loaded.cases.into_iter().map(|case| (case.id.clone(), case)).collect())
}

/// Returns the path of a new folder for the files of one harness, in a folder of the project, which is made.
pub fn evidence_folder(of: &str, harness: &str) -> Result<PathBuf, CliError> {
    let root = project::path(of);
    std::fs::create_dir_all(&root)?;
    write_gitignore(&root)?;
    Ok(root.join(folder_name(harness)?).join(new_run_id(jiff::Timestamp::now())))
}

/// Checks the harnesses in order. Returns `None` if the user interrupts the check.
async fn check_all(
    args: &CheckArgs,
    entries: &[&Entry],
    temporary: &Temporary,
    cases: &HashMap<String, Case>,
) -> Result<Option<Vec<Report>>, CliError> {
    let hides = vec![project::root().join(".evals")];
    let engine = engine::engine(temporary, on_interrupt(), hides)?;
    let mut reports = Vec::new();
    for entry in entries {
        let name = &entry.manifest.name;
        let check = Check {
            entry,
            folder: evidence_folder(CHECKS, name)?,
            engine: &engine,
            cases,
            live: args.live,
            model: args.model.as_deref(),
            time: args.timeout,
        };
        let on_probe = |probe: probes::Probe| {
            terminal::note(format_args!("{name}: {}", probe.word()));
        };
        match carry_out(&check, on_probe).await {
            Ok(report) => reports.push(report),
            Err(CheckError::Interrupted) => return Ok(None),
            Err(error) => return Err(CliError::unreadable(format!("the check of `{name}` failed: {error}"))),
        }
    }
    Ok(Some(reports))
}
