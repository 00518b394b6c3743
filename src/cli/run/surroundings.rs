//! Looks for instruction files and skills above the folder in which trials run: most agents search the parents of their
//! workspace, so every arm would get them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::case::Case;
use crate::cli::inputs::Inputs;
use crate::cli::{CliError, terminal};
use crate::harness::catalog::Entry;
use crate::ids::TrialRecord;

/// Refuses an experiment, and a run with a case that lays skills or instructions, if its trials would find instructions or
/// skills above their workspaces; for another run, prints a warning if one of its agents reads such files.
///
/// # Errors
/// Returns an error that names what was found.
pub fn check(inputs: &Inputs, trials: &[&TrialRecord], is_experiment: bool) -> Result<(), CliError> {
    let played = || trials.iter().copied().filter(|trial| trial.skip.is_none());
    let lays = |case: &Case| !case.overlay.skills.is_empty() || case.overlay.instructions.is_some();
    let laying: BTreeSet<&str> = inputs.cases.iter().filter(|case| lays(case)).map(|case| case.id.as_str()).collect();
    // The result would be that of what is laid together with what lies there.
    let is_refused = is_experiment || played().any(|trial| laying.contains(trial.case.as_str()));
    let found = if is_refused {
        above(inputs.catalog.entries(), &ALSO_READ)
    } else {
        let used: BTreeSet<&str> = played().map(|trial| trial.harness.as_str()).collect();
        above(used.into_iter().filter_map(|name| inputs.catalog.named(name)), &[])
    };
    if found.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = found.iter().map(|path| path.display().to_string()).collect();
    let text = format!(
        "agents read {}, which {} above the folder of the trials ({}); remove {}, or set TMPDIR to another folder",
        names.join(", "),
        if names.len() == 1 { "lies" } else { "lie" },
        std::env::temp_dir().display(),
        if names.len() == 1 { "it" } else { "them" }
    );
    if is_refused {
        return Err(CliError::unreadable(text));
    }
    terminal::note(format_args!("warning: {text}"));
    Ok(())
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
    let temporary = std::env::temp_dir();
    let temporary = temporary.canonicalize().unwrap_or(temporary);
    let mut names: Vec<PathBuf> = Vec::new();
    for Entry { manifest, .. } in harnesses {
        names.extend(manifest.skills.iter().filter_map(|skills| skills.project.clone()));
        names.extend(manifest.instructions.iter().filter_map(|instructions| instructions.project.clone()));
    }
    names.extend(also.iter().map(PathBuf::from));
    names.sort();
    names.dedup();
    let there = temporary.ancestors().flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    there.filter(|path| path.exists()).collect()
}
