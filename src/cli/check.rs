//! `evals check`: validates cases, manifests, graders and the price table, and reports all errors at once.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::mine::memory_size;
use super::output::{self, Content};
use super::run::model_script;
use super::{CliError, complete, inputs, terminal};
use crate::case::find::demo_scripts;
use crate::case::{Oracle, WrittenGrader, case_files, mcp_servers};
use crate::demo::script::Script;
use crate::experiment;
use crate::gateway::script::Script as ModelScript;
use crate::grader::{Library, NamedGrader};
use crate::paths::{self, shown as shown_path};
use crate::price::PriceTable;
use crate::project;
use crate::regular;
use crate::sandbox::{SandboxError, bwrap};
use crate::text::plural;
use crate::yaml::{self, YamlError};

mod cassettes;
mod audit;
mod drafts;
mod experiments;
mod limits;
mod models;
mod revisions;

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Cases, experiments, manifests, or folders of them (default: cases/)
    paths: Vec<PathBuf>,
    /// Also validate these manifests; repeatable
    #[arg(long = "harness", value_name = "NAME", add = complete::harnesses())]
    harnesses: Vec<String>,
    /// Also test the cases: an agent that does nothing and an agent that damages the workspace must fail, and the
    /// reference solution must pass
    #[arg(long)]
    audit: bool,
    /// With --audit: the number of mutations of each reference solution that the graders have to notice; 0 tries
    /// none
    #[arg(long, value_name = "N", requires = "audit", default_value_t = 3)]
    mutants: usize,
    /// With --audit: memory limit of a command of set-up or of a grader, such as 4GiB (default: half the machine's)
    #[arg(long, value_name = "SIZE", requires = "audit", value_parser = memory_size)]
    memory: Option<u64>,
    /// Output format of --audit
    #[arg(long, value_enum, requires = "audit", default_value_t)]
    format: audit::AuditFormat,
}

/// Returns true if a path is a folder of manifests, a file in one, or a file that has keys of a manifest.
fn is_of_manifests(path: &Path) -> bool {
    if is_of_graders(path) {
        return false;
    }
    if path.is_file() && is_manifest(path) {
        return true;
    }
    let files = || yaml::files(path).into_iter().flatten().map(|(_, file)| file);
    if path.is_dir() && files().next().is_some() && files().all(|file| is_manifest(&file)) {
        return true;
    }
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let folder = folder.and_then(|folder| std::path::absolute(folder).ok());
    folder.is_some_and(|folder| folder.file_name().is_some_and(|name| name == inputs::HARNESSES))
}

/// Returns true if a file has the key `adapter`, which only a manifest has, or has `name` and `command` but neither
/// `prompt` nor `turns`.
fn is_manifest(path: &Path) -> bool {
    let Ok(text) = regular::read_to_string(path) else { return false };
    let has = |key: &str| text.lines().any(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':')));
    has("adapter") || (has("name") && has("command") && !has("prompt") && !has("turns"))
}

/// Returns true if a path is the project's folder of named graders, or a file in it.
fn is_of_graders(path: &Path) -> bool {
    paths::absolute(Path::new(""), path).starts_with(project::root().join("graders"))
}

/// Returns the files of named graders at a path in the project's folder of them.
///
/// # Errors
/// Returns an error if the path is neither this folder nor such a file, or the folder cannot be read.
fn grader_files(path: &Path) -> Result<Vec<PathBuf>, YamlError> {
    let (folder, absolute) = (project::root().join("graders"), paths::absolute(Path::new(""), path));
    let files = yaml::files(&folder)?.into_iter().map(|(_, file)| file);
    let files: Vec<PathBuf> = files.filter(|file| file.starts_with(&absolute)).collect();
    let passed_over = yaml::passed_over(&folder).into_iter().find(|(file, _)| *file == absolute);
    // A calibration lies beside its grader.
    let is_calibration = absolute.is_file() && absolute.to_string_lossy().ends_with(".calibration.yaml");
    if !files.is_empty() || (absolute == folder && folder.is_dir()) || (is_calibration && passed_over.is_none()) {
        return Ok(files);
    }
    let why = match passed_over {
        Some((_, why)) => format!("the file is not read: {why}"),
        None if path.exists() => "this is no named grader, which is a file graders/NAME.yaml".to_owned(),
        None => "there is no such file".to_owned(),
    };
    Err(YamlError::at(path, "", None, why))
}

/// Returns the errors in named graders, and about files that they name.
fn wrong_in_graders(library: &Library) -> Vec<YamlError> {
    let wrong = |(_, grader): (&str, &NamedGrader)| match grader.read() {
        Ok(file) => grader.missing_files(&file),
        Err(errors) => errors,
    };
    library.iter().flat_map(wrong).collect()
}

/// Returns the errors in the project's price table, if it has one.
fn wrong_prices() -> Option<YamlError> {
    PriceTable::load(&inputs::price_table()?).err()
}

/// Checks manifests without cases, and the other files of the project. Returns the number of manifests.
///
/// # Errors
/// Returns everything that is wrong.
fn check_manifests(harnesses: &[String]) -> Result<usize, CliError> {
    let (catalog, names) = inputs::catalog(harnesses)?;
    for warning in catalog.warnings() {
        terminal::note(format_args!("note: {warning}"));
    }
    for line in models::needed(&names, &catalog) {
        terminal::note(format_args!("warning: {line}"));
    }
    let mut wrong = wrong_in_graders(&inputs::named_graders()?.library());
    wrong.extend(wrong_prices());
    let judges = inputs::wrong_judges();
    match wrong.is_empty() && judges.is_empty() {
        true => Ok(names.len()),
        false => Err(CliError::all(wrong).and(CliError::all(judges))),
    }
}

/// The inputs of a run, with counts of the files that were read with them.
struct CheckedInputs {
    inputs: inputs::Inputs,
    /// The number of scripts for the demo agent.
    scripts: usize,
    named_graders: usize,
}

/// Reads cases, and everything that they name.
///
/// # Errors
/// Returns everything that is wrong.
fn read_all(paths: &[PathBuf], harnesses: &[String]) -> Result<CheckedInputs, CliError> {
    let inputs = inputs::read(paths, harnesses);
    // Graders that could not be listed were reported with the inputs.
    let library = inputs::named_graders().map(|graders| graders.library()).unwrap_or_default();
    let mut wrong = wrong_in_graders(&library);
    let graders = inputs.iter().flat_map(|inputs| &inputs.cases).flat_map(|case| &case.written_graders);
    for missing in graders.filter_map(WrittenGrader::missing_file) {
        // A grader of a suite belongs to each of its cases.
        if !wrong.iter().any(|known| known.to_string() == missing.to_string()) {
            wrong.push(missing);
        }
    }
    wrong.extend(wrong_prices());
    let judges = inputs::wrong_judges();
    let mut scripts = 0;
    let files = match &inputs {
        Ok(inputs) => inputs.cases.iter().map(|case| case.file.clone()).collect(),
        Err(_) => case_files(paths),
    };
    for script in demo_scripts(&files) {
        scripts += 1;
        wrong.extend(Script::load(&shown_path(&script)).err().into_iter().flatten());
    }
    let cases = inputs.as_ref().map(|inputs| inputs.cases.as_slice()).unwrap_or_default();
    let models: BTreeSet<PathBuf> = cases.iter().filter_map(model_script).collect();
    wrong.extend(models.iter().filter_map(|path| ModelScript::load(path).err()).flatten());
    // A script used as an oracle need not have the usual name beside its case.
    let oracles = inputs.iter().flat_map(|inputs| &inputs.cases).filter_map(|case| match &case.oracle {
        Some(Oracle::Script(script)) if !case.demo_scripts.values().any(|known| known == script) => Some(script),
        _ => None,
    });
    wrong.extend(oracles.filter_map(|script| Script::load(&shown_path(script)).err()).flatten());
    let inputs = match (inputs, wrong.is_empty() && judges.is_empty()) {
        (Ok(inputs), true) => inputs,
        (Ok(_), false) => return Err(CliError::all(wrong).and(CliError::all(judges))),
        (Err(error), _) => return Err(error.and(CliError::all(wrong)).and(CliError::all(judges))),
    };
    cassettes::check(&inputs.cases)?;
    revisions::check(&inputs.cases)?;
    Ok(CheckedInputs { inputs, scripts, named_graders: library.iter().count() })
}

/// Writes the warnings and notes about the inputs of a run.
fn tell_of(inputs: &inputs::Inputs) {
    for warning in inputs.ended_quarantines() {
        terminal::note(format_args!("warning: {warning}"));
    }
    for warning in inputs.cases.iter().flat_map(drafts::warnings) {
        terminal::note(format_args!("warning: {warning}"));
    }
    for note in inputs.notes.iter().cloned().chain(inputs.cases.iter().flat_map(mcp_servers::notes)) {
        terminal::note(format_args!("note: {note}"));
    }
    for line in limits::never_shown(&inputs.cases, &inputs.catalog, &inputs.harnesses) {
        terminal::note(format_args!("warning: {line}"));
    }
    let of_cases = inputs.cases.iter().flat_map(|case| &case.harnesses);
    for line in models::needed(inputs.harnesses.iter().chain(of_cases), &inputs.catalog) {
        terminal::note(format_args!("warning: {line}"));
    }
}

pub fn run(args: &CheckArgs) -> Result<u8, CliError> {
    terminal::name_project_above();
    let (manifests, paths): (Vec<PathBuf>, Vec<PathBuf>) =
        args.paths.iter().cloned().partition(|path| is_of_manifests(path));
    let mut harnesses = args.harnesses.clone();
    for path in &manifests {
        let files = if path.is_dir() {
            yaml::files(path).map_err(|error| CliError::all([error]))?.into_iter().map(|(_, file)| file).collect()
        } else {
            vec![path.clone()]
        };
        harnesses.extend(files.iter().map(|file| Path::new(".").join(file).to_string_lossy().into_owned()));
    }
    let (of_graders, paths): (Vec<PathBuf>, Vec<PathBuf>) = paths.into_iter().partition(|path| is_of_graders(path));
    let (files, wrong): (Vec<_>, Vec<_>) = of_graders.iter().map(|path| grader_files(path)).partition(Result::is_ok);
    if !wrong.is_empty() {
        return Err(CliError::all(wrong.into_iter().filter_map(Result::err)));
    }
    let named_files: BTreeSet<PathBuf> = files.into_iter().flatten().flatten().collect();
    let has_manifests = !manifests.is_empty();
    if paths.is_empty() && (has_manifests || !of_graders.is_empty()) {
        let manifests = check_manifests(&harnesses)?;
        let manifests = Some(plural(manifests, "manifest")).filter(|_| has_manifests);
        let graders = Some(plural(named_files.len(), "named grader")).filter(|_| !of_graders.is_empty());
        let read: Vec<String> = manifests.into_iter().chain(graders).collect();
        writeln!(output::stdout(Content::Text), "{} can be read", read.join(" and "))?;
        return Ok(0);
    }
    let paths = inputs::cases_or_default(&paths)?;
    let (mut experiments, mut unread): (Vec<PathBuf>, Vec<_>) = (Vec::new(), Vec::new());
    for (files, folders) in paths.iter().map(|path| experiment::files_in(path)) {
        experiments.extend(files);
        unread.extend(folders);
    }
    experiments::check(&experiments, &args.harnesses)?;
    // A folder of experiments alone contains no case, and the cases of an experiment were read with it.
    let of_cases = |path: &PathBuf| {
        !experiments.contains(path) && (path.is_file() || !case_files(std::slice::from_ref(path)).is_empty())
    };
    let (paths, others): (Vec<PathBuf>, Vec<PathBuf>) =
        paths.into_iter().partition(|path| experiments.is_empty() || of_cases(path));
    // The loader of cases reports folders below its own paths.
    if let Some((folder, why)) = unread.iter().find(|(folder, _)| others.iter().any(|path| folder.starts_with(path))) {
        return Err(CliError::unreadable(format!("`{}` could not be read: {why}", shown_path(folder).display())));
    }
    if paths.is_empty() {
        writeln!(output::stdout(Content::Text), "{} can be read", plural(experiments.len(), "experiment"))?;
        return Ok(0);
    }
    let CheckedInputs { inputs, scripts, named_graders } = read_all(&paths, &harnesses)?;
    tell_of(&inputs);
    // JSON output must be the only output.
    let read = format!(
        "{}{}, {}, {} and {} can be read",
        if experiments.is_empty() { String::new() } else { format!("{}, ", plural(experiments.len(), "experiment")) },
        plural(inputs.cases.len(), "case"),
        plural(scripts, "demo script"),
        plural(inputs.catalog.names().len(), "harness"),
        plural(named_graders, "named grader")
    );
    let sandbox = match bwrap::works() {
        Ok(()) => "sandbox bwrap: works here".to_owned(),
        Err(SandboxError::NoBwrap(why)) => format!("sandbox bwrap: does not work here: {why}"),
        Err(error) => format!("sandbox bwrap: {error}"),
    };
    match args.format {
        audit::AuditFormat::Table => writeln!(output::stdout(Content::Text), "{read}\n{sandbox}")?,
        audit::AuditFormat::Json => terminal::note(format_args!("{read}\n{sandbox}")),
    }
    if args.audit { audit::run(inputs.cases, args.format, args.mutants, args.memory) } else { Ok(0) }
}
