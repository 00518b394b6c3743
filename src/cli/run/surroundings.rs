//! Looks for instruction files and skills above the folder in which trials run: most agents search the parents of their
//! workspace, so every arm would get them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::case::Case;
use crate::cli::inputs::Inputs;
use crate::cli::{CliError, terminal};
use crate::harness::catalog::Entry;
use crate::harness::{Home, HomeName};
use crate::ids::{TrialRecord, by_case_id};
use crate::process::Launch;
use crate::sandbox::{self, Places, Sandbox, TrialSandbox};
use crate::{own_environment, project};

/// Refuses an experiment, and a run with a case that lays skills or instructions, if its trials would find instructions or
/// skills above their workspaces; for another run, prints a warning if one of its agents reads such files. Files that the
/// sandboxes of all these trials hide are no reason. `asked` is the sandbox of the command line.
///
/// # Errors
/// Returns an error that names what was found.
pub fn check(
    inputs: &Inputs,
    trials: &[&TrialRecord],
    is_experiment: bool,
    asked: Option<sandbox::Kind>,
) -> Result<(), CliError> {
    let played: Vec<&TrialRecord> = trials.iter().copied().filter(|trial| trial.skip.is_none()).collect();
    let lays = |case: &Case| !case.overlay.skills.is_empty() || case.overlay.instructions.is_some();
    let laying: BTreeSet<&str> = inputs.cases.iter().filter(|case| lays(case)).map(|case| case.id.as_str()).collect();
    // The result would be that of what is laid together with what lies there.
    let is_measured = |trial: &&TrialRecord| is_experiment || laying.contains(trial.case.as_str());
    let measured: Vec<&TrialRecord> = played.iter().copied().filter(is_measured).collect();
    let mut found = Vec::new();
    if !measured.is_empty() {
        found = shown(above(inputs.catalog.entries(), &ALSO_READ), inputs, &measured, asked);
    }
    let is_refused = !found.is_empty();
    if !is_refused {
        let used: BTreeSet<&str> = played.iter().map(|trial| trial.harness.as_str()).collect();
        let read = above(used.into_iter().filter_map(|name| inputs.catalog.named(name)), &[]);
        found = shown(read, inputs, &played, asked);
    }
    if found.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
    let is_empty = std::env::temp_dir().as_os_str().is_empty();
    let text = format!(
        "agents read {}, which {} above the folder of the trials ({}{}); remove {}, or set TMPDIR to another folder",
        names.join(", "),
        if names.len() == 1 { "lies" } else { "lie" },
        temporary().display(),
        if is_empty { ", the current folder, because TMPDIR is empty" } else { "" },
        if names.len() == 1 { "it" } else { "them" }
    );
    if is_refused {
        return Err(CliError::unreadable(text));
    }
    terminal::note(format_args!("warning: {text}"));
    Ok(())
}

/// Returns the files that an agent of one of these trials can read: not those that all of their sandboxes hide.
fn shown(found: Vec<PathBuf>, inputs: &Inputs, trials: &[&TrialRecord], asked: Option<sandbox::Kind>) -> Vec<PathBuf> {
    let mut hidden = found.clone();
    let mut seen: BTreeSet<(&str, &str, sandbox::Kind)> = BTreeSet::new();
    for trial in trials {
        if hidden.is_empty() {
            return found;
        }
        if seen.insert((trial.case.as_str(), trial.harness.as_str(), trial.sandbox)) {
            match confined(inputs, trial, asked) {
                Some((inside, launch)) => hidden.retain(|file| !inside.shows(&launch, file)),
                None => hidden.clear(),
            }
        }
    }
    found.into_iter().filter(|file| !hidden.contains(file)).collect()
}

/// Returns the sandbox of a trial with the command line of its agent, if both the plan and the present case and manifest name
/// bubblewrap.
fn confined(inputs: &Inputs, trial: &TrialRecord, asked: Option<sandbox::Kind>) -> Option<(TrialSandbox, Launch)> {
    let case = by_case_id(&inputs.cases, &trial.case)?;
    let manifest = &inputs.catalog.named(&trial.harness)?.manifest;
    let sandbox = Sandbox::decide(asked, case.sandbox.as_ref(), manifest.sandbox.as_ref()).ok()?;
    if trial.sandbox != sandbox::Kind::Bwrap || sandbox.kind() != sandbox::Kind::Bwrap {
        return None;
    }
    // The folders of the trial itself do not exist yet.
    let own = temporary().join("evals-trial");
    let home = match manifest.home {
        Home::Named(HomeName::User) => PathBuf::from(own_environment::var("HOME")?),
        Home::Private(_) => own.join("home"),
    };
    let root = project::root();
    let beside = manifest.folder.as_deref().unwrap_or(root);
    let placed = |word: &String| {
        word.replace("{project}", &root.to_string_lossy()).replace("{manifest-dir}", &beside.to_string_lossy())
    };
    let mut command: Vec<String> = manifest.command.iter().map(placed).collect();
    if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
        *program = root.join(&*program).to_string_lossy().into_owned();
    }
    // The packages of the files that the command line names are mounted too.
    let reads = command.iter().map(PathBuf::from).filter(|file| file.is_absolute() && file.is_file()).collect();
    let places =
        Places { workspace: own.join("workspace"), home, scratch: own.join("tmp"), reads, ..Places::default() };
    let path = own_environment::var("PATH").and_then(|path| path.into_string().ok());
    let env = path.map(|path| ("PATH".to_owned(), path)).into_iter().collect();
    let inside = TrialSandbox { sandbox, places };
    let launch = inside.around(command, &env);
    Some((inside, launch))
}

/// Returns the folder in which the folders of the trials are made.
fn temporary() -> PathBuf {
    let temporary = std::env::temp_dir();
    // An empty TMPDIR names the current folder.
    let temporary = if temporary.as_os_str().is_empty() { PathBuf::from(".") } else { temporary };
    temporary.canonicalize().unwrap_or(temporary)
}

/// Instruction files and folders that agents read, besides the ones in which the engine places something.
const ALSO_READ: [&str; 14] = [
    "CLAUDE.local.md",
    ".claude/CLAUDE.md",
    ".claude/rules",
    "AGENTS.override.md",
    ".codex/skills",
    ".opencode/skill",
    ".opencode/skills",
    ".cursorrules",
    ".cursor/rules",
    ".clinerules",
    ".goosehints",
    ".windsurfrules",
    "CRUSH.md",
    "CONVENTIONS.md",
];

/// Returns the instruction files and folders of skills that agents would find in a parent of a trial's workspace.
fn above<'a>(harnesses: impl Iterator<Item = &'a Entry>, also: &[&str]) -> Vec<PathBuf> {
    let mut names: Vec<PathBuf> = Vec::new();
    for Entry { manifest, .. } in harnesses {
        names.extend(manifest.skills.iter().filter_map(|skills| skills.project.clone()));
        names.extend(manifest.instructions.iter().filter_map(|instructions| instructions.project.clone()));
    }
    names.extend(also.iter().map(PathBuf::from));
    names.sort();
    names.dedup();
    let temporary = temporary();
    let there = temporary.ancestors().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    there.filter(|path| path.exists()).collect()
}
