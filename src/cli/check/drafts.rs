//! Warnings about cases: drafts that a person has to read first, settings without an effect, and probable mistakes in graders.

use std::path::Path;

use crate::case::{Case, Review, WorkspaceSource};
use crate::text::some_of;

/// The maximum number of leaks that a warning names.
const MAX_NAMED_LEAKS: usize = 5;

/// Returns a warning if the case is a draft, one if its prompt contains parts of its solution, one if it makes the
/// protection of no file strict, one if globs of its protected files are about no folder of the workspace, and one for each grader
/// with a probable mistake.
pub fn warnings(case: &Case) -> Vec<String> {
    let (id, file) = (&case.id, case.shown().display());
    let mut warnings = Vec::new();
    if case.review == Some(Review::Needed) {
        let set_in = case.set_in("review").display();
        warnings.push(format!(
            "case `{id}` is a draft: read its prompt, correct it, and remove `review: needed` from {set_in}"
        ));
    }
    let leaks = case.provenance.iter().flat_map(|provenance| &provenance.leaks);
    let leaks: Vec<String> = leaks.map(|leak| format!("`{leak}`")).collect();
    if !leaks.is_empty() {
        warnings.push(format!(
            "the prompt of case `{id}` contains words or lines of its solution: {}; rephrase it and remove \
             `provenance.leaks` from {file}",
            some_of(leaks, MAX_NAMED_LEAKS)
        ));
    }
    if case.workspace.protect_strict && case.workspace.protect.is_empty() {
        warnings.push(format!(
            "case `{id}`: `protect-strict` has no effect, because `workspace.protect` names no files; add them in {file}"
        ));
    }
    let unmatched: Vec<String> = unmatched_protection(case).iter().map(|glob| format!("`{glob}`")).collect();
    if !unmatched.is_empty() {
        warnings.push(format!(
            "case `{id}`: `workspace.protect` protects no file by {}, because the workspace and the hidden files have no \
             such folder; correct it in {}",
            some_of(unmatched, MAX_NAMED_LEAKS),
            case.set_in("workspace").display()
        ));
    }
    let doubtful = case.graders.iter().filter_map(|grader| Some((&grader.name, grader.kind.spec().warning()?)));
    warnings.extend(doubtful.map(|(name, why)| format!("case `{id}`: grader `{name}` {why}")));
    warnings
}

/// Returns the globs that protect no file, if the folders of the workspace are known before a trial.
fn unmatched_protection(case: &Case) -> Vec<String> {
    if !case.workspace.setup.is_empty() || case.overlay.files.is_some() || case.provenance.is_some() {
        return Vec::new();
    }
    let has_folder = |folder: &Path| match &case.workspace.source {
        WorkspaceSource::Copy(root) => root.join(folder).is_dir(),
        WorkspaceSource::Files(files) => files.keys().any(|file| file_folder(file) == Some(folder)),
        WorkspaceSource::Empty => false,
        WorkspaceSource::Git(_) => true,
    };
    let is_hidden = |folder: &Path| case.hidden.as_ref().is_some_and(|hidden| hidden.join(folder).is_dir());
    case.workspace.unmatched_protection(|folder| has_folder(folder) || is_hidden(folder))
}

/// Returns the first folder of a file's path.
fn file_folder(file: &str) -> Option<&Path> {
    let file = file.strip_prefix("./").unwrap_or(file);
    file.split_once('/').map(|(folder, _)| Path::new(folder))
}
