//! `evals init`: creates an example suite that runs with the demo agent and without keys, and workflows for CI services.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::output::{self, Content};
use super::{CliError, harness, inputs, terminal};
use crate::case::{self, LoadContext};
use crate::harness::Manifest;
use crate::harness::catalog::Origin;
use crate::project;
use crate::schema;
use crate::text::some_of;
use ci::Service;

mod ci;

#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Folder (default: the working directory; with --ci, the project)
    folder: Option<PathBuf>,
    /// Write a workflow for a CI service; the example suite is written only if there is no cases/
    #[arg(long, value_enum, value_name = "SERVICE")]
    ci: Option<Service>,
    /// Number of shards of the workflow (default: 2, or 1 for a single case)
    #[arg(long, value_name = "N", requires = "ci", value_parser = clap::value_parser!(u32).range(1..=256))]
    shards: Option<u32>,
    /// Command that installs evals in the workflow (default: cargo install --locked evals-cli@VERSION)
    #[arg(long, value_name = "COMMAND", requires = "ci", value_parser = one_line)]
    install: Option<String>,
}

/// The files of the example suite.
const EXAMPLE: [(&str, &str); 5] = [
    ("cases/suite.yaml", include_str!("init/example/suite.yaml")),
    ("cases/greeting.yaml", include_str!("init/example/greeting.yaml")),
    ("cases/greeting.demo.yaml", include_str!("init/example/greeting.demo.yaml")),
    ("cases/greeting/greet.sh", include_str!("init/example/greet.sh")),
    ("cases/greeting.hidden/check.sh", include_str!("init/example/check.sh")),
];

/// The built-in example of a manifest, which is no agent.
const EXAMPLE_HARNESS: &str = "command";

/// The agent of the example command if none is installed here.
const EXAMPLE_AGENT: &str = "claude-code-stream";

/// A file to write: its path below the folder, and its text.
type NewFile = (&'static str, String);

pub fn run(args: &InitArgs) -> Result<u8, CliError> {
    let folder = &folder(args)?;
    let mut files: Vec<NewFile> = Vec::new();
    if args.ci.is_none() || !folder.join("cases").exists() {
        files.extend(EXAMPLE.map(|(name, text)| (name, text.to_owned())));
        // Editors check and complete the example's files by the schemas that their first lines name.
        for (name, kind) in [("cases/.schema/case.json", "case"), ("cases/.schema/suite.json", "suite")] {
            let schema = schema::schema(kind).unwrap_or_default();
            files.push((name, format!("{schema:#}\n")));
        }
    }
    let mut next = Vec::new();
    if let Some(service) = args.ci {
        let shards = number_of_shards(args.shards, &folder.join("cases"))?;
        let (more, steps) = ci::files(service, shards, args.install.as_deref(), folder);
        files.extend(more);
        next = steps;
    }
    write(folder, &files)?;
    let mut out = output::stdout(Content::Text);
    // Paths in the working directory need no `./`.
    let shown = |name: &str| if folder == Path::new(".") { PathBuf::from(name) } else { folder.join(name) };
    for (name, _) in &files {
        writeln!(out, "wrote {}", shown(name).display())?;
    }
    let cases = shown("cases");
    let installed = installed_agents()?;
    writeln!(out, "\nRun it:                 evals run {}", cases.display())?;
    let agent = installed.first().map_or(EXAMPLE_AGENT, String::as_str);
    writeln!(out, "Run it on a real agent: evals run {} --harness {agent}", cases.display())?;
    for step in next {
        writeln!(out, "{step}")?;
    }
    drop(out);
    if installed.is_empty() {
        terminal::note(
            "note: no agent is installed here; `evals list harnesses --all` has the known ones, `evals harness show NAME` the program of one",
        );
    } else {
        terminal::note(format_args!("note: harnesses whose agents are installed here: {}", some_of(&installed, 8)));
    }
    Ok(0)
}

/// Returns the folder to write into. A workflow belongs to the project, also from a folder within it; an example in there
/// would be a project of its own, so its folder must be named.
///
/// # Errors
/// Returns an error for an example within a project, if no folder is named.
fn folder(args: &InitArgs) -> Result<PathBuf, CliError> {
    match &args.folder {
        Some(folder) => Ok(folder.clone()),
        None if !project::is_above() => Ok(PathBuf::from(".")),
        None if args.ci.is_some() => {
            terminal::name_project_above();
            Ok(project::path(""))
        }
        None => Err(CliError::unreadable(format!(
            "this folder is in the project {}; `evals init .` makes a project of its own here",
            project::root().display()
        ))),
    }
}

/// Returns the harnesses whose agents are installed here, without the built-in demo agents.
///
/// # Errors
/// Returns an error if a manifest cannot be read.
fn installed_agents() -> Result<Vec<String>, CliError> {
    let (catalog, _) = inputs::catalog(&[])?;
    let own = |manifest: &Manifest| manifest.command.first().is_none_or(|program| program == "{self}");
    let is_agent = |manifest: &Manifest| !own(manifest) && manifest.name != EXAMPLE_HARNESS;
    let known = catalog.entries().filter(|entry| entry.origin == Origin::BuiltIn).map(|entry| &entry.manifest);
    let mut installed: Vec<_> = known.filter(|it| is_agent(it) && harness::is_installed(it) == Some(true)).collect();
    // The one that shows the most comes first.
    installed.sort_by_key(|manifest| {
        let seen = manifest.seen();
        std::cmp::Reverse((seen.tracing, seen.interaction))
    });
    Ok(installed.into_iter().map(|manifest| manifest.name.clone()).collect())
}

/// Writes the files, or none of them if one exists already.
fn write(folder: &Path, files: &[NewFile]) -> Result<(), CliError> {
    if let Some((name, _)) = files.iter().find(|(name, _)| folder.join(name).exists()) {
        let path = folder.join(name);
        let way_out = if name.starts_with("cases/") {
            "name an empty folder: evals init DIR"
        } else {
            "move the file away to get a new one"
        };
        let path = path.display();
        return Err(CliError::unreadable(format!(
            "{path} is there already; `evals init` overwrites nothing, so {way_out}"
        )));
    }
    for (name, text) in files {
        let path = folder.join(name);
        let failed = |what: &str, path: &Path, error: std::io::Error| {
            CliError::unreadable(format!("could not {what} {}: {error}", path.display()))
        };
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| failed("make", parent, error))?;
        }
        fs::write(&path, text).map_err(|error| failed("write", &path, error))?;
    }
    Ok(())
}

/// Returns the number of shards. A shard without a case would fail its job.
fn number_of_shards(asked: Option<u32>, cases: &Path) -> Result<u32, CliError> {
    let count = if cases.exists() {
        // Cases that cannot be read are not counted; `evals check` names their errors.
        case::load(&[cases.to_owned()], &LoadContext::default()).ok().map(|cases| cases.len())
    } else {
        Some(1)
    };
    match (asked, count) {
        (Some(asked), Some(count)) if asked as usize > count => Err(CliError::unreadable(format!(
            "--shards {asked} is more than the number of cases, {count}; a shard without a case would fail"
        ))),
        (Some(asked), _) => Ok(asked),
        (None, count) => Ok(if count.is_some_and(|count| count > 1) { 2 } else { 1 }),
    }
}

fn one_line(text: &str) -> Result<String, String> {
    if text.trim().is_empty() || text.contains(['\n', '\r']) {
        return Err("a command is one line, such as: cargo install --locked evals-cli".to_owned());
    }
    Ok(text.to_owned())
}
