//! Reads the inputs of commands: manifests, named graders and cases, with all errors at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::CliError;
use crate::case::{
    Case, GraderFolder, LoadContext, LoadError, Loaded, check_harnesses, check_judges, check_named_judges, load_all,
    load_known,
};
use crate::harness::catalog::{Catalog, is_path};
use crate::interaction::PolicyFolder;
use crate::project;
use crate::values::Day;
use crate::yaml;

/// The folder of cases.
pub const CASES: &str = "cases";
/// The folder of the user's own manifests.
pub const HARNESSES: &str = "harnesses";
/// The folder of the user's own named graders.
const GRADERS: &str = "graders";
/// The folder of the user's own named policies.
const POLICIES: &str = "policies";
/// The user's own price table.
const PRICES: &str = "prices.yaml";
/// A name of the price table that is not read.
const OTHER_PRICES: &str = "prices.yml";

/// The inputs of a command.
pub struct Inputs {
    /// The cases, by id.
    pub cases: Vec<Case>,
    /// The manifests.
    pub catalog: Catalog,
    /// The harnesses named on the command line.
    pub harnesses: Vec<String>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Inputs {
    /// Returns a warning for each case whose quarantine is over.
    pub fn ended_quarantines(&self) -> Vec<String> {
        let today = Day::today();
        let notes = self.cases.iter().filter_map(|case| {
            let until = case.quarantine.as_ref().map(|it| it.until).filter(|until| *until < today)?;
            let (id, file) = (&case.id, case.shown());
            Some(format!(
                "the quarantine of case `{id}` ended on {until}, so its verdicts count again; remove `quarantine` from {}",
                file.display()
            ))
        });
        notes.collect()
    }
}

/// Reads cases, and the manifests that they and the command line name.
///
/// # Errors
/// Returns all errors of files that cannot be read.
pub fn read(paths: &[PathBuf], harnesses: &[String]) -> Result<Inputs, CliError> {
    read_with(harnesses, |context| load_all(paths, context))
}

/// Reads the inputs of an existing run again: its cases by file and id.
///
/// # Errors
/// Returns all errors of files that cannot be read.
pub fn read_again(cases: &[(PathBuf, String)], harnesses: &[String]) -> Result<Inputs, CliError> {
    read_with(harnesses, |context| load_known(cases, context))
}

/// Reads cases without the harnesses that they name, because nothing is run.
///
/// # Errors
/// Returns all errors of files that could not be read.
pub fn cases_alone(load: impl FnOnce(&LoadContext) -> Result<Loaded, Vec<LoadError>>) -> Result<Vec<Case>, CliError> {
    let context = LoadContext { graders: named_graders()?, policies: named_policies()?, without_agents: true };
    load(&context).map(|loaded| loaded.cases).map_err(CliError::all)
}

fn read_with(
    harnesses: &[String],
    load: impl FnOnce(&LoadContext) -> Result<Loaded, Vec<LoadError>>,
) -> Result<Inputs, CliError> {
    let mut errors: Option<CliError> = None;
    let mut failed = |error: CliError| {
        errors = Some(match errors.take() {
            Some(before) => before.and(error),
            None => error,
        });
    };
    let catalog = catalog(harnesses).map_err(&mut failed).ok();
    let graders = named_graders().map_err(&mut failed).ok().unwrap_or_default();
    let policies = named_policies().map_err(&mut failed).ok().unwrap_or_default();
    let context = LoadContext { graders, policies, without_agents: false };
    let loaded = load(&context).map_err(|errors| failed(CliError::all(errors))).ok();
    let (mut cases, mut notes) = loaded.map(|loaded| (loaded.cases, loaded.notes)).unwrap_or_default();
    let catalog = catalog.and_then(|known| with_manifests_of(&cases, harnesses, known).map_err(&mut failed).ok());
    if let Some((catalog, asked)) = &catalog {
        let mut unknown = check_harnesses(&cases, catalog);
        unknown.extend(check_judges(&cases, &context, catalog));
        if !unknown.is_empty() {
            failed(CliError::all(unknown));
        }
        for name in cases.iter_mut().flat_map(|case| &mut case.harnesses) {
            *name = catalog.canonical(name);
        }
        // Warnings about manifests that the command does not use are left out.
        let used: Vec<&str> = if asked.is_empty() { named(&cases) } else { asked.iter().map(String::as_str).collect() };
        match used.is_empty() {
            true => notes.extend(catalog.warnings().cloned()),
            false => notes.extend(catalog.warnings_about(&used).cloned()),
        }
        notes.extend(passed_over());
    }
    match (errors, catalog) {
        (None, Some((catalog, harnesses))) => Ok(Inputs { cases, catalog, harnesses, notes }),
        (Some(error), _) => Err(error),
        (None, None) => Err(CliError::unreadable("the harnesses could not be read")),
    }
}

/// Returns the catalog with the manifests that cases name by their paths, and the harnesses of the command line.
///
/// # Errors
/// Returns an error if one of these manifests cannot be read, or has the name of another harness that is used too.
fn with_manifests_of(
    cases: &[Case],
    harnesses: &[String],
    known: (Catalog, Vec<String>),
) -> Result<(Catalog, Vec<String>), CliError> {
    let (by_path, plain): (BTreeSet<&str>, BTreeSet<&str>) = named(cases).into_iter().partition(|name| is_path(name));
    if by_path.is_empty() {
        return Ok(known);
    }
    let (before, asked) = known;
    let all: Vec<String> = harnesses.iter().cloned().chain(by_path.iter().map(|path| (*path).to_owned())).collect();
    let (catalog, names) = catalog(&all)?;
    let used = || plain.iter().copied().chain(asked.iter().map(String::as_str));
    let is_other = |name: &str| {
        let origin = |catalog: &Catalog| catalog.find(name).map(|entry| entry.origin.clone());
        before.find(name).is_some() && origin(&before) != origin(&catalog)
    };
    for (path, name) in by_path.iter().zip(names.iter().skip(harnesses.len())) {
        if used().any(|used| before.canonical(used) == *name) && is_other(name) {
            return Err(CliError::unreadable(format!(
                "the manifest `{path}` that a case names has the name `{name}`, which is also that of another harness; \
                 give it a name of its own"
            )));
        }
    }
    Ok((catalog, asked))
}

/// Returns the error about two manifests in different folders that are named by their paths and have the same name.
fn same_name(names: &[String]) -> Option<CliError> {
    let mut known: BTreeMap<String, &str> = BTreeMap::new();
    for path in names.iter().map(String::as_str).filter(|name| is_path(name)) {
        let read = Catalog::load(&[], Path::new(""), &[PathBuf::from(path)]).ok()?;
        let name = read.names().first().map(|name| (*name).to_owned())?;
        let is_other = |other: &str| Path::new(other).canonicalize().ok() != Path::new(path).canonicalize().ok();
        match known.get(&name).filter(|other| is_other(other)) {
            Some(other) => {
                return Some(CliError::unreadable(format!(
                    "the manifests `{other}` and `{path}` both have the name `{name}`; give one of them another `name`"
                )));
            }
            None => _ = known.insert(name, path),
        }
    }
    None
}

/// Returns the harnesses that cases name.
fn named(cases: &[Case]) -> Vec<&str> {
    cases.iter().flat_map(|case| &case.harnesses).map(String::as_str).collect()
}

/// Reads the manifests. Also returns the names of the harnesses on the command line.
///
/// # Errors
/// Returns an error if a manifest cannot be read, or a name is unknown.
pub fn catalog(asked: &[String]) -> Result<(Catalog, Vec<String>), CliError> {
    let (catalog, names) = Catalog::for_command(&project::path(HARNESSES), asked).map_err(CliError::all)?;
    for name in &names {
        catalog.get(name).map_err(|error| same_name(asked).unwrap_or_else(|| CliError::all([error])))?;
    }
    Ok((catalog, names))
}

/// Reads the named graders.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn named_graders() -> Result<GraderFolder, CliError> {
    GraderFolder::load(&project::path(GRADERS)).map_err(CliError::all)
}

/// Reads the named policies.
///
/// # Errors
/// Returns all errors in the policies' files.
pub fn named_policies() -> Result<PolicyFolder, CliError> {
    PolicyFolder::load(&project::path(POLICIES)).map_err(CliError::all)
}

/// Returns errors about judges that named graders and policies name and that are not available, whether or not
/// a case uses them.
pub fn wrong_judges() -> Vec<LoadError> {
    // Files that cannot be read were reported with the inputs.
    let (Ok((catalog, _)), Ok(graders), Ok(policies)) = (catalog(&[]), named_graders(), named_policies()) else {
        return Vec::new();
    };
    check_named_judges(&LoadContext { graders, policies, without_agents: true }, &catalog)
}

/// Returns the project's price table, if it has one.
pub fn price_table() -> Option<PathBuf> {
    // A link to a file that does not exist, or a folder of this name, is an error and not the built-in table.
    Some(project::path(PRICES)).filter(|path| path.symlink_metadata().is_ok())
}

/// Returns notes about YAML files in the folders of harnesses, named graders and named policies, and about a price table,
/// that are not read.
pub fn passed_over() -> Vec<String> {
    let files = [HARNESSES, GRADERS, POLICIES].into_iter().flat_map(|folder| yaml::passed_over(&project::path(folder)));
    let prices = Some(project::path(OTHER_PRICES)).filter(|path| path.is_file());
    let prices = prices.map(|file| (file, format!("its name does not end in .yaml; rename it to {PRICES}")));
    files.chain(prices).map(|(file, why)| format!("`{}` is not read: {why}", file.display())).collect()
}

/// Returns the paths, or the project's folder of cases if there are none.
///
/// # Errors
/// Returns an error if there are no paths and the project has no folder of cases.
pub fn cases_or_default(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    if !paths.is_empty() {
        return Ok(paths.to_vec());
    }
    let default = project::path(CASES);
    if default.is_dir() { Ok(vec![default]) } else { Err(CliError::all([NoCases])) }
}

/// An error: no path was given, and the project has no folder of cases.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("`{}` has no folder `{CASES}`", project::root().display())]
#[diagnostic(help(
    "`evals init` creates an example suite here; or name a case file, or a folder with cases in it{}",
    crate::case::find::beyond_the_repository()
))]
struct NoCases;
