//! `evals harness parity`: runs cases inside the engine and with the agent's own one-shot command, and compares
//! them.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::check::{built_in, evidence_folder};
use crate::case::Case;
use crate::cli::list::OutputFormat;
use crate::cli::output::{self, Content};
use crate::cli::stop::{INTERRUPTED, on_interrupt};
use crate::cli::{CliError, engine, inputs, list, terminal};
use crate::conformance::probes::Probe;
use crate::gateway::cassette;
use crate::gateway::route::CaseModel;
use crate::harness::Manifest;
use crate::harness::catalog::Catalog;
use crate::parity::{ParityError, ParityReport, compare, exit_code, outside};
use crate::plan;
use crate::project;
use crate::report::page::terminal::write;
use crate::report::parity as report;
use crate::run::temporary::Temporary;
use crate::values::Time;
use crate::whole_file::case_folder;

/// The folder for the evidence.
const PARITY: &str = ".evals/parity";

#[derive(Debug, clap::Args)]
pub struct ParityArgs {
    /// Harness: name, acp:ID, or path of a manifest
    name: String,
    /// Cases, or folders of cases (default: a small built-in one)
    paths: Vec<PathBuf>,
    /// Request this model on both sides
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Timeout of each trial
    #[arg(long, value_name = "TIME", default_value = "5m")]
    timeout: Time,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

pub fn run(args: &ParityArgs) -> Result<u8, CliError> {
    if args.timeout.0.is_zero() {
        return Err(CliError::unreadable("`--timeout` must be more than 0"));
    }
    let (catalog, names) = inputs::catalog(std::slice::from_ref(&args.name))?;
    let name = names.first().map_or(args.name.as_str(), String::as_str);
    let inside = &catalog.get(name).map_err(|error| CliError::all([error]))?.manifest;
    let (beside, outside) = counterpart(&catalog, inside)?;
    let temporary = engine::temporary()?;
    let cases = cases(args, &temporary)?;
    refuse_unserved(&cases, [inside, &beside], &catalog)?;
    if let Some(model) = &args.model {
        refuse_unasked(model, [(inside, format!("harness `{}`", inside.name)), (&beside, outside.clone())])?;
    }
    let runtime = engine::runtime()?;
    let result = runtime.block_on(compare_all(args, &temporary, &cases, inside, &beside));
    runtime.shutdown_background();
    let Some(compared) = result? else { return Ok(INTERRUPTED) };
    let parity = ParityReport { harness: inside.name.clone(), outside, cases: compared };
    let mut out = output::stdout(Content::json(matches!(args.format, OutputFormat::Json)));
    list::written(match args.format {
        OutputFormat::Table => write(&report::page(&parity), &terminal::stdout_look(), &mut out),
        OutputFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &parity).map_err(std::io::Error::from).and_then(|()| writeln!(out))
        }
    })?;
    Ok(exit_code(&parity))
}

/// Returns the program that the harness is compared with, and its name.
fn counterpart(catalog: &Catalog, manifest: &Manifest) -> Result<(Manifest, String), CliError> {
    let Some(parity) = &manifest.parity else {
        return Err(CliError::unreadable(format!(
            "the manifest of harness `{}` has no one-shot command; add `parity: {{command: [program, \
             \"{{prompt}}\"]}}` or `parity: {{harness: NAME}}` to it",
            manifest.name
        )));
    };
    match &parity.harness {
        Some(name) => {
            let entry = catalog.get(name).map_err(|error| CliError::all([error]))?;
            Ok((Manifest::clone(&entry.manifest), format!("harness `{}`", entry.manifest.name)))
        }
        None => Ok((outside(manifest, parity), format!("command `{}`", parity.command.join(" ")))),
    }
}

/// Returns the requested cases, or the built-in case, which needs tools.
fn cases(args: &ParityArgs, temporary: &Temporary) -> Result<Vec<Arc<Case>>, CliError> {
    let mut cases = if args.paths.is_empty() {
        built_in(temporary)?.into_values().filter(|case| case.id == Probe::Tools.case()).collect()
    } else {
        inputs::read(&args.paths, &[])?.cases
    };
    for case in &mut cases {
        case.limits.time = Some(case.limits.time.map_or(args.timeout, |time| Time(time.0.min(args.timeout.0))));
    }
    Ok(cases.into_iter().map(Arc::new).collect())
}

/// Refuses cases that one of the sides cannot run unchanged, and cassettes that cannot be read.
fn refuse_unserved(cases: &[Arc<Case>], manifests: [&Manifest; 2], catalog: &Catalog) -> Result<(), CliError> {
    for case in cases {
        if let Some(CaseModel::Cassette { file, .. }) = &case.model {
            cassette::load(file).map_err(CliError::unreadable)?;
        }
    }
    for manifest in manifests {
        if manifest.command.is_empty() {
            let message = format!("harness `{}` cannot be launched: its manifest has no command", manifest.name);
            return Err(CliError::unreadable(message));
        }
        for case in cases {
            if let Some(variant) = manifest.script_variants().iter().find(|variant| case.script(variant).is_none()) {
                let (shown, script) = (case.shown().display(), case.script_name(variant));
                let message =
                    format!("{shown}: case `{}` has no script for `{}` (`{script}` beside it)", case.id, manifest.name);
                return Err(CliError::unreadable(message));
            }
            if let Some(why) = plan::unserved(case, manifest, catalog) {
                let (shown, name) = (case.shown().display(), &manifest.name);
                let message = format!("{shown}: case `{}` cannot be run with `{name}` unchanged: {why}", case.id);
                return Err(CliError::unreadable(message));
            }
        }
    }
    Ok(())
}

/// Refuses a model that one of the sides cannot request: another model would be compared.
fn refuse_unasked(model: &str, sides: [(&Manifest, String); 2]) -> Result<(), CliError> {
    match sides.into_iter().find(|(manifest, _)| !manifest.model_selection()) {
        Some((_, side)) => Err(CliError::unreadable(format!(
            "{side} cannot be asked for the model `{model}`: add `{{model}}` to its command, add a `model` route to \
             the manifest, or leave --model out"
        ))),
        None => Ok(()),
    }
}

/// Compares the cases in order. Returns `None` if the user interrupts the comparison.
async fn compare_all(
    args: &ParityArgs,
    temporary: &Temporary,
    cases: &[Arc<Case>],
    inside: &Manifest,
    beside: &Manifest,
) -> Result<Option<Vec<crate::parity::CaseParity>>, CliError> {
    let hides = engine::hides(&project::root().join(".evals"), cases.iter().map(|case| &**case))?;
    let engine = engine::engine(temporary, on_interrupt(), hides)?;
    let folder = evidence_folder(PARITY, &inside.name)?;
    let (inside, beside) = (Arc::new(inside.clone()), Arc::new(beside.clone()));
    let mut compared = Vec::new();
    for case in cases {
        terminal::note(format_args!("{}: {}", inside.name, case.id));
        let folder: &Path = &folder.join(case_folder(&case.id)?);
        match compare(&engine, case, &inside, &beside, args.model.as_deref(), folder).await {
            Ok(done) => compared.push(done),
            Err(ParityError::Interrupted) => return Ok(None),
            Err(error) => return Err(CliError::unreadable(format!("case `{}` failed: {error}", case.id))),
        }
    }
    Ok(Some(compared))
}
